/* Commands that write function names into texts by running `symbolicate`: asan_symbolize of compiler-rt, ndk-stack of Android's NDK, and
 * `llvm-symbolizer --filter-markup`, which the command llvm-symbolizer (lookup) passes on. */
#include "cli/symbolicate/symbolicate.h"

#include <stdio.h>
#include <stdlib.h>

extern const struct command command_symbolicate;

enum { MAX_WORDS = 16 };

struct text_words { /* additional arguments for `symbolicate`; callers add fewer than MAX_WORDS */
    const char *items[MAX_WORDS];
    int count;
};

static void add(struct text_words *words, const char *word)
{
    words->items[words->count++] = word;
}

/* Runs `symbolicate --type text <words> --symbols <path>.. -- <input>` within the command of `o`, and returns its exit status. */
static int run_as_text(const struct options *o, struct text_words *words, const char *const *paths, size_t path_count,
                       const char *input)
{
    /* 6: --type text, --, the input, NULL, and a spare */
    char **all = calloc(MAX_WORDS + 2 * path_count + 6, sizeof *all);
    int count = 0;
    if (!all)
        return report_no_memory();
    all[count++] = (char *)"--type";
    all[count++] = (char *)"text";
    for (int i = 0; i < words->count; i++)
        all[count++] = (char *)words->items[i];
    for (size_t i = 0; i < path_count; i++) {
        all[count++] = (char *)"--symbols";
        all[count++] = (char *)paths[i];
    }
    all[count++] = (char *)"--";
    all[count++] = (char *)input;
    int status = command_start_within(o, &command_symbolicate, count, all);
    free(all);
    return status;
}

/* ---- asan_symbolize ---- */

static const struct option_spec asan_specs[] = {
    {"demangle", 'd', OPTION_FLAG, false, NULL, "Ignored: names are always demangled"},
    {"logfile", 'l', OPTION_VALUE, false, "FILE", "Read this file (default: standard input)"},
    {"sysroot", 's', OPTION_VALUE, true, "DIR", "Search this directory for the modules"},
    {"symbols", 0, OPTION_VALUE, true, "[LAYOUT:]PATH|URL", "Search this directory, file or server"},
    {"force-system-symbolizer", 0, OPTION_FLAG, false, NULL, NULL},
    {"skip-uuid-validation", 0, OPTION_FLAG, false, NULL, NULL},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

/* Runs the command asan_symbolize as `symbolicate --type text`. Returns an exit status. */
static int asan_run(const struct options *o)
{
    size_t count;
    if (o->argument_count)
        return options_wrong(o, "paths to cut from file names are not supported: '%s'", o->arguments[0]);
    const char **paths = option_values_joined(o, "sysroot", "symbols", &count);
    if (!paths)
        return report_no_memory();
    struct text_words words = {.count = 0};
    /* the report names the modules by their paths on this machine */
    add(&words, "--local-debug-info");
    int status = run_as_text(o, &words, paths, count, option_value(o, "logfile", "-"));
    free(paths);
    return status;
}

const struct command command_asan_symbolize = {
    .name = "asan_symbolize",
    .usage = "asan_symbolize [OPTION...]",
    .about = "Writes the names of functions into a report of AddressSanitizer, as asan_symbolize.py of LLVM does. "
             "Reads standard "
             "input, and the modules at their paths on this machine.",
    .options = asan_specs,
    .run = asan_run,
};

/* ---- ndk-stack ---- */

static const struct option_spec ndk_specs[] = {
    {"sym", 0, OPTION_VALUE, true, "DIR", "Search this directory for libraries with symbols"},
    {"dump", 0, OPTION_VALUE, false, "FILE", "Read this file (default: standard input)"},
    {"input", 'i', OPTION_VALUE, false, "FILE", "Same as --dump"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

/* Runs the command ndk-stack as `symbolicate --type text`. Returns an exit status. */
static int ndk_run(const struct options *o)
{
    size_t count;
    const char *const *paths = option_values(o, "sym", &count);
    struct text_words words = {.count = 0};
    if (!count)
        return options_wrong(o, "no directory given: pass -sym DIR");
    if (!options_arguments(o, 0))
        return 2;
    return run_as_text(o, &words, paths, count, option_value(o, "dump", option_value(o, "input", "-")));
}

/* Starts the command ndk-stack: lets the options -sym and -dump begin with one dash, as the original does, and then parses all. */
static int ndk_main(const struct command *command, int argc, char **argv)
{
    static char sym[] = "--sym", dump[] = "--dump";
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "-sym") == 0)
            argv[i] = sym;
        else if (strcmp(argv[i], "-dump") == 0)
            argv[i] = dump;
    }
    return command_parse_and_run(command, argc, argv);
}

const struct command command_ndk_stack = {
    .name = "ndk-stack",
    .usage = "ndk-stack -sym DIR [-dump FILE]",
    .about = "Writes names into the native stacks of an Android log or tombstone, in the place of ndk-stack. All other "
             "lines stay "
             "as they are.",
    .options = ndk_specs,
    .run = ndk_run,
    .main = ndk_main,
};

/* ---- llvm-symbolizer --filter-markup ---- */

static const struct option_spec markup_specs[] = {
    {"filter-markup", 0, OPTION_FLAG, false, NULL, "Read Symbolizer Markup"},
    {"debug-file-directory", 0, OPTION_VALUE, true, "DIR", "Search this directory for debug files"},
    {"fallback-debug-path", 0, OPTION_VALUE, true, "DIR", "Same as --debug-file-directory"},
    {"debuginfod", 0, OPTION_FLAG, false, NULL, "Search the servers listed in $DEBUGINFOD_URLS"},
    {"no-debuginfod", 0, OPTION_FLAG, false, NULL, NULL},
    {"demangle", 'C', OPTION_FLAG, false, NULL, NULL},
    {"color", 0, OPTION_OPTIONAL, false, "WHEN", NULL},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

/* Runs the command `llvm-symbolizer --filter-markup` as `symbolicate --type text`. Returns an exit status. */
static int markup_run(const struct options *o)
{
    size_t count;
    const char **paths = option_values_joined(o, "debug-file-directory", "fallback-debug-path", &count);
    struct text_words words = {.count = 0};
    if (!paths)
        return report_no_memory();
    if (option_given(o, "debuginfod"))
        add(&words, "--debuginfod");
    int status = run_as_text(o, &words, paths, count, o->argument_count ? o->arguments[0] : "-");
    free(paths);
    return status;
}

const struct command command_filter_markup = {
    .name = "llvm-symbolizer",
    .usage = "llvm-symbolizer --filter-markup [OPTION...] [FILE]",
    .about = "Writes names into a log with Symbolizer Markup, as llvm-symbolizer of LLVM does.",
    .options = markup_specs,
    .run = markup_run,
};
