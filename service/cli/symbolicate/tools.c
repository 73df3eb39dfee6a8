/* `symbolicate` as other tools: minidump_stackwalk of Breakpad and rust-minidump, retrace of R8 and ProGuard. */
#include "cli/symbolicate/symbolicate.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jvm/mapping.h"

/* ---- minidump_stackwalk: translates its options to those of `symbolicate` ---- */

static const struct option_spec stackwalk_specs[] = {
    {"format", 'f', OPTION_VALUE, false, "human|machine", "Print text for people (default) or for programs"},
    {"machine", 'm', OPTION_FLAG, false, NULL, "Same as -f machine"},
    {"human", 0, OPTION_FLAG, false, NULL, "Same as -f human"},
    {"json", 0, OPTION_FLAG, false, NULL, "Print the JSON of minidump-stackwalk"},
    {"cyborg", 0, OPTION_VALUE, false, "FILE", "Print text, and write that JSON to FILE"},
    {"pretty", 0, OPTION_FLAG, false, NULL, "Indent JSON"},
    {"dump", 0, OPTION_FLAG, false, NULL, "Print every stream of the file"},
    {"brief", 'b', OPTION_FLAG, false, NULL, "Print only the frames of the crashed thread"},
    {"stack-contents", 's', OPTION_FLAG, false, NULL, "Also print the stack memory of each frame"},
    {"stack-pointers", 'd', OPTION_FLAG, false, NULL, "Print every word of the stacks instead of frames"},
    {"crashed-only", 'c', OPTION_FLAG, false, NULL, "Print only the crashed thread"},
    {"thread-index", 't', OPTION_VALUE, false, "N", "Print only the thread at this index (first: 0)"},
    {"symbols-path", 0, OPTION_VALUE, true, "DIR", "Search this directory, as the SYMBOLS arguments"},
    {"symbols-url", 0, OPTION_VALUE, true, "URL", "Search this symbol server"},
    {"symbols-cache", 0, OPTION_VALUE, false, "DIR", "Keep the disk cache in DIR"},
    {"symbols-download-timeout-secs", 0, OPTION_VALUE, false, "S", "Give up a download after S seconds"},
    {"output-file", 0, OPTION_VALUE, false, "FILE", "Write to FILE instead of standard output"},
    {"verbose", 0, OPTION_VALUE, false, "LEVEL", "Log at this level"},
    {"log-file", 0, OPTION_VALUE, false, "FILE", "Write errors and log to FILE"},
    {"no-color", 0, OPTION_FLAG, false, NULL, NULL},
    {"no-interactive", 0, OPTION_FLAG, false, NULL, NULL},
    {"use-local-debuginfo", 0, OPTION_FLAG, false, NULL, "Also use files of this machine that the modules name"},
    {"symbols-tmp", 0, OPTION_VALUE, false, "DIR", NULL},
    {"features", 0, OPTION_VALUE, false, "NAME", NULL},
    {"recover-function-args", 0, OPTION_FLAG, false, NULL, NULL},
    {"evil-json", 0, OPTION_VALUE, false, "FILE", NULL},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

struct argument_list { /* the command line of `symbolicate` that replaces that of minidump_stackwalk */
    char **items;
    int count;
};

static void add_word(struct argument_list *arguments, const char *word)
{
    arguments->items[arguments->count++] = (char *)word;
}

/* Adds each value of the option `name` as a value of `new_name`, the option of `symbolicate` that does the same. */
static void add_pair(struct argument_list *arguments, const struct options *o, const char *name, const char *new_name)
{
    size_t count;
    const char *const *values = option_values(o, name, &count);
    for (size_t i = 0; i < count; i++) {
        add_word(arguments, new_name);
        add_word(arguments, values[i]);
    }
}

/* True if the argument is a URL or an existing path. Else warns: `symbolicate` would refuse it, but minidump_stackwalk ignores symbol
 * directories that do not exist. */
static bool is_present(const char *path)
{
    if (strstr(path, "://") || access(path, F_OK) == 0)
        return true;
    print_note("warning: symbol directory %s is ignored: %s\n", path, strerror(errno));
    return false;
}

/* Adds the values of --symbols-path as --symbols, but for directories that do not exist (is_present). */
static void add_directories(struct argument_list *arguments, const struct options *o)
{
    size_t count;
    const char *const *paths = option_values(o, "symbols-path", &count);
    for (size_t i = 0; i < count; i++)
        if (is_present(paths[i])) {
            add_word(arguments, "--symbols");
            add_word(arguments, paths[i]);
        }
}

/* Adds the arguments: the minidump, and the symbol directories that exist. */
static void add_arguments(struct argument_list *arguments, const struct options *o)
{
    add_word(arguments, "--");
    for (size_t i = 0; i < o->argument_count; i++)
        if (!i || is_present(o->arguments[i])) /* `symbolicate` reports a missing minidump, the first one */
            add_word(arguments, o->arguments[i]);
}

extern const struct command command_symbolicate, command_inspect;

/* Runs `symbolicate --format <format>` with the options of minidump_stackwalk translated, and writes to `output` (NULL: standard output).
 * --stack-contents and --stack-pointers apply only to the format stackwalk. Returns an exit status. */
static int walk_as(const struct options *o, const char *format, const char *output)
{
    /* 32: room for the words that are added once at most; each value of an option takes two words */
    size_t most = 32 + o->argument_count;
    for (size_t i = 0; o->specs[i].name; i++)
        most += 2 * o->counts[i];
    struct argument_list arguments = {calloc(most, sizeof(char *)), 0};
    char timeout[32];
    if (!arguments.items)
        return report_no_memory();
    add_word(&arguments, "--type");
    add_word(&arguments, "minidump");
    add_word(&arguments, "--format");
    add_word(&arguments, format);
    if (option_given(o, "pretty"))
        add_word(&arguments, "--indent");
    if (option_given(o, "brief"))
        add_word(&arguments, "--brief");
    if (option_given(o, "crashed-only"))
        add_word(&arguments, "--crashed-only");
    if (option_given(o, "stack-contents") && strcmp(format, "stackwalk") == 0)
        add_word(&arguments, "--stack-contents");
    if (option_given(o, "stack-pointers") && strcmp(format, "stackwalk") == 0)
        add_word(&arguments, "--stack-pointers");
    if (option_given(o, "use-local-debuginfo"))
        add_word(&arguments, "--local-debug-info");
    add_pair(&arguments, o, "thread-index", "--thread-index");
    add_directories(&arguments, o);
    add_pair(&arguments, o, "symbols-url", "--symbols");
    add_pair(&arguments, o, "symbols-cache", "--cache-dir");
    add_pair(&arguments, o, "verbose", "--log-level");
    if (option_given(o, "symbols-download-timeout-secs")) {
        /* a number of seconds, to which --timeout wants the unit: "10s" */
        snprintf(timeout, sizeof timeout, "%.24ss", option_value(o, "symbols-download-timeout-secs", ""));
        add_word(&arguments, "--timeout");
        add_word(&arguments, timeout);
    }
    if (output) {
        add_word(&arguments, "--output");
        add_word(&arguments, output);
    }
    add_arguments(&arguments, o);
    int status = command_start_within(o, &command_symbolicate, arguments.count, arguments.items);
    free(arguments.items);
    return status;
}

/* Prints the streams of the minidump by running `inspect --raw`. Returns its exit status. */
static int dump_streams(const struct options *o)
{
    char raw[] = "--raw", end[] = "--";
    char *arguments[] = {raw, end, o->arguments[0], NULL};
    return command_start_within(o, &command_inspect, 3, arguments);
}

/* Runs the command minidump_stackwalk: once as `symbolicate`, and for --cyborg a second time to write JSON to its file. The error for -c
 * with -t has the text and status of Breakpad's tool. Returns an exit status. */
static int stackwalk_run(const struct options *o)
{
    const char *format = option_value(o, "format", option_given(o, "machine") ? "machine" : "human");
    const char *output = option_value(o, "output-file", NULL), *cyborg = option_value(o, "cyborg", NULL);
    bool is_machine = strcmp(format, "machine") == 0;
    if (!is_machine && strcmp(format, "human") != 0)
        return options_wrong(o, "--format: '%s' is not one of human, machine", format);
    if (option_given(o, "crashed-only") && option_given(o, "thread-index"))
        return report_error(1, "-c and -t cannot be used together.", NULL);
    if (!o->argument_count)
        return options_wrong(o, "no minidump given");
    if (option_given(o, "log-file") && !freopen(option_value(o, "log-file", ""), "w", stderr))
        return report_error(1, option_value(o, "log-file", ""), strerror(errno));
    if (option_given(o, "dump"))
        return dump_streams(o);
    if (option_given(o, "json"))
        return walk_as(o, "minidump-json", output);
    int status = walk_as(o, is_machine ? "machine" : "stackwalk", output);
    return !status && cyborg ? walk_as(o, "minidump-json", cyborg) : status;
}

const struct command command_minidump_stackwalk = {
    .name = "minidump_stackwalk",
    .usage = "minidump_stackwalk [OPTION...] MINIDUMP [SYMBOLS...]",
    .about = "Prints the stacks of a minidump in the formats of Breakpad's minidump_stackwalk and rust-minidump's "
             "minidump-stackwalk.",
    .options = stackwalk_specs,
    .run = stackwalk_run,
};

/* ---- retrace: options and output of R8's and ProGuard's retrace ---- */

static const struct option_spec retrace_specs[] = {
    {"verbose", 0, OPTION_FLAG, false, NULL, "Print return and argument types of methods"},
    {"regex", 0, OPTION_VALUE, false, "EXPRESSION",
     "Parse lines with this expression: %c class (%C with slashes), %m method, %f field, %t "
     "type, %a argument types, %s source file, %l line, %S file and line"},
    {"allclassnames", 0, OPTION_FLAG, false, NULL, "Replace class names everywhere, not only of exceptions"},
    {"verify-mapping-file-hash", 0, OPTION_FLAG, false, NULL,
     "Reject a mapping that was changed after R8 wrote it; without TRACE, only check"},
    {"info", 0, OPTION_FLAG, false, NULL, "Ignored: there are no further messages"},
    {"quiet", 0, OPTION_FLAG, false, NULL, "Print only errors"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

/* ---- the hash of a mapping ---- */

/* Writes the SHA-256 of the text as 64 hex digits. False if OpenSSL fails. */
static bool sha256_hex(struct sl_str text, char hex[65])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (EVP_Digest(text.data, text.size, digest, &size, EVP_sha256(), NULL) != 1)
        return false;
    for (unsigned i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return true;
}

/* Checks `# pg_map_hash: SHA-256 <64 hex digits>`, which R8 writes before the first class: the hash of all text after that line. SL_OK with
 * a warning if the mapping has no such line. */
static enum sl_code check_hash(struct sl_str text, struct sl_error *error)
{
    static const struct sl_str kind = SL_STR("SHA-256 ");
    struct sl_jvm_reader reader = sl_jvm_reader(text);
    struct sl_jvm_record r;
    char hex[65];
    while (sl_jvm_reader_next(&reader, &r) && r.kind != SL_JVM_RECORD_CLASS) {
        if (r.kind != SL_JVM_RECORD_HEADER || !sl_str_equal(r.key, SL_STR("pg_map_hash")))
            continue;
        if (!sl_str_starts(r.value, kind))
            return sl_fail(error, SL_MALFORMED, "its pg_map_hash is not a SHA-256");
        struct sl_str wanted = {r.value.data + kind.size, r.value.size - kind.size};
        const char *newline = memchr(r.value.data, '\n', (size_t)(text.data + text.size - r.value.data));
        const char *rest = newline ? newline + 1 : text.data + text.size;
        if (!sha256_hex((struct sl_str){rest, (size_t)(text.data + text.size - rest)}, hex))
            return sl_fail(error, SL_BUSY, "out of memory");
        if (!sl_str_equal_nocase(wanted, sl_str(hex)))
            return sl_fail(error, SL_MALFORMED,
                           "the file was changed: its pg_map_hash is " SL_STR_FMT ", but its contents have %s",
                           SL_STR_ARG(wanted), hex);
        return SL_OK;
    }
    fprintf(stderr, "warning: the mapping has no pg_map_hash, so changes cannot be detected\n");
    return SL_OK;
}

/* Checks the hash in a mapping file. Returns 0, or an exit status after a report. */
static int verify(const char *path)
{
    struct sl_mapping file;
    struct sl_error error = {0};
    enum sl_code code = sl_map_file(path, &file, &error);
    if (code == SL_OK) {
        code = check_hash((struct sl_str){(const char *)file.bytes.data, file.bytes.size}, &error);
        sl_unmap(&file);
    }
    return code == SL_OK ? 0 : report_file_error(path, code, &error);
}

/* ---- the command ---- */

/* Runs the command retrace: retraces the file TRACE, or standard input. With --verify-mapping-file-hash it checks the mapping first, and
 * without TRACE does nothing else. Returns an exit status. */
static int retrace_run(const struct options *o)
{
    if (!o->argument_count)
        return options_wrong(o, "no mapping given");
    if (!options_arguments(o, 2))
        return 2;
    const char *mapping = o->arguments[0];
    struct missing_report missing;
    missing_init(&missing, &missing_mappings);
    const struct trace_options arguments = {.missing = &missing,
                                            .regex = option_value(o, "regex", NULL),
                                            .verbose = option_given(o, "verbose"),
                                            .all_classes = option_given(o, "allclassnames")};
    bool verifies = option_given(o, "verify-mapping-file-hash");
    int status = verifies ? verify(mapping) : 0;
    if (!status && (!verifies || o->argument_count > 1)) {
        status = symbolicate_trace(o->argument_count > 1 ? o->arguments[1] : "-", &mapping, 1, &arguments);
        if (!status)
            missing_print(&missing, o);
    }
    missing_free(&missing);
    return status;
}

/* Returns the argument as "--option" if it is "-option", which other implementations of retrace accept; any other argument unchanged. */
static char *with_two_dashes(char *word)
{
    static const char *const others[] = {"help", "version"}; /* options of all commands */
    /* a result for each option, which outlives the call since argv will point to it */
    static char names[sizeof retrace_specs / sizeof *retrace_specs + 2][32];
    if (word[0] != '-' || word[1] == '-' || !word[1])
        return word;
    size_t count = 0;
    for (const struct option_spec *s = retrace_specs; s->name; s++, count++)
        if (strcmp(s->name, word + 1) == 0) {
            snprintf(names[count], sizeof names[count], "--%s", s->name);
            return names[count];
        }
    for (size_t i = 0; i < 2; i++)
        if (strcmp(others[i], word + 1) == 0) {
            snprintf(names[count + i], sizeof names[count + i], "--%s", others[i]);
            return names[count + i];
        }
    return word;
}

/* Starts the command retrace: options may begin with one dash. */
static int retrace_main(const struct command *command, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        argv[i] = with_two_dashes(argv[i]);
    return command_parse_and_run(command, argc, argv);
}

const struct command command_retrace = {
    .name = "retrace",
    .usage = "retrace [OPTION...] MAPPING [TRACE]",
    .about = "Deobfuscates a JVM stack trace, or a log that contains some, as R8's retrace does.\n"
             "Options may start with one dash or two.",
    .options = retrace_specs,
    .run = retrace_run,
    .main = retrace_main,
};
