/* `symloom symbolicate`: a crash as it was written down to a readable one. */
#include "cli/symbolicate/symbolicate.h"

#include <stdlib.h>

#include "cli/by_id/by_id.h"

static const struct option_spec specs[] = {
    {"type", 0, OPTION_VALUE, false, "minidump|apple|trace|jsstack",
     "what the input is (default: as it looks; jsstack is to be said)"},
    {"format", 'f', OPTION_VALUE, false, "json|compact|pretty|full|text",
     "how the answer is written (default: compact on a terminal, else json; text of traces)"},
    {"output", 0, OPTION_VALUE, false, "FILE", "write there instead of standard output"},
    {"indent", 0, OPTION_FLAG, false, NULL, "JSON in lines"},
    BY_ID_OPTIONS,
    {"config", 'c', OPTION_VALUE, false, "FILE", "configuration with further sources of files by id"},
    {"candidates", 'd', OPTION_FLAG, false, NULL, "tell where each file was looked for"},
    {"rewrite-first-module", 0, OPTION_VALUE, false, "JSON",
     "other names for the first module: [{\"from\": pattern, \"to\": text}]"},
    {"crashed-only", 0, OPTION_FLAG, false, NULL, "the thread that crashed (default of compact and pretty)"},
    {"all-threads", 0, OPTION_FLAG, false, NULL, "all threads (default of full)"},
    {"thread", 0, OPTION_VALUE, false, "ID", "the thread with this id"},
    {"thread-index", 0, OPTION_VALUE, false, "N", "the thread at this place, counted from 0"},
    {"context", 0, OPTION_VALUE, false, "N", "full: lines of source above and below (default: none)"},
    {"no-source-context", 0, OPTION_FLAG, false, NULL, "no lines of source"},
    {"fail-on-missing", 0, OPTION_FLAG, false, NULL, "status 3 when a module's debug information was not found"},
    {"timeout", 0, OPTION_VALUE, false, "DURATION", "give up then (default: 15m)"},
    {"mapping", 0, OPTION_VALUE, true, "FILE",
     "of traces: mapping of ProGuard or R8; of several the first that knows a class tells"},
    {"verbose", 'v', OPTION_FLAG, true, NULL, "full: also modules that played no part; log more"},
    QUIET_OPTIONS,
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

static int run_trace(const struct options *o, const char *const *mappings, size_t mapping_count)
{
    const char *format = option_value(o, "format", "text");
    if (strcmp(format, "text") != 0)
        return options_wrong("symbolicate", "--format: '%s' is none of: text", format);
    if (!options_arguments(o, 1, "symbolicate"))
        return 2;
    if (!mapping_count)
        return options_wrong("symbolicate", "a stack trace needs its --mapping");
    return symbolicate_trace(o->argument_count ? o->arguments[0] : "-", mappings, mapping_count,
                             option_value(o, "output", NULL));
}

/* Scripts are looked for below --symbols and what follows the stack. */
static int run_scripts(const struct options *o)
{
    size_t symbol_count, count = 0;
    const char *const *symbols = option_values(o, "symbols", &symbol_count);
    size_t more = o->argument_count > 1 ? o->argument_count - 1 : 0;
    const char *format = option_value(o, "format", "text");
    if (strcmp(format, "text") != 0)
        return options_wrong("symbolicate", "--format: '%s' is none of: text", format);
    if (!symbol_count && !more)
        return options_wrong("symbolicate", "a stack of JavaScript needs --symbols with its scripts and source maps");
    const char **places = calloc(symbol_count + more, sizeof *places);
    if (!places)
        return report(1, "out of memory", NULL);
    for (size_t i = 0; i < symbol_count; i++)
        places[count++] = symbols[i];
    for (size_t i = 1; i <= more; i++)
        places[count++] = o->arguments[i];
    int status =
        symbolicate_scripts(o->argument_count ? o->arguments[0] : "-", places, count, option_value(o, "output", NULL));
    free(places);
    return status;
}

static int symbolicate_run(const struct options *o)
{
    static const char *const types[] = {"minidump", "apple", "trace", "jsstack", NULL};
    size_t mapping_count, known = 0;
    const char *const *mappings = option_values(o, "mapping", &mapping_count);
    const char *type = option_value(o, "type", mapping_count ? "trace" : "");
    while (*type && types[known] && strcmp(types[known], type) != 0)
        known++;
    if (!types[known])
        return options_wrong("symbolicate", "--type: '%s' is none of: minidump, apple, trace, jsstack", type);
    if (strcmp(type, "trace") == 0)
        return run_trace(o, mappings, mapping_count);
    if (mapping_count)
        return options_wrong("symbolicate", "--mapping is for traces");
    if (strcmp(type, "jsstack") == 0)
        return run_scripts(o);
    if (!o->argument_count)
        return options_wrong("symbolicate", "no file given");
    return symbolicate_crash(o, o->arguments[0]);
}

int command_symbolicate(int argc, char **argv)
{
    return options_command(
        specs, "symbolicate [OPTION..] FILE [SYMBOLS..]",
        "The stacks of a minidump or of a crash report of an Apple system, with the functions and "
        "lines that the debug\n"
        "files of --symbols, of SYMBOLS and the configuration know. With --mapping: stack traces of obfuscated "
        "JVM programs, or logs\n"
        "with such in them, with the names and lines of the source; lines that are no part of a "
        "trace stay as they are. With --type jsstack: the same for stacks of JavaScript, with the scripts and source "
        "maps "
        "below --symbols.\n"
        "- is standard input, which traces are also read from without FILE.",
        symbolicate_run, argc, argv);
}

static const struct option_spec retrace_specs[] = {
    QUIET_OPTIONS,
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

static int retrace_run(const struct options *o)
{
    if (!o->argument_count)
        return options_wrong("retrace", "no mapping given");
    if (!options_arguments(o, 2, "retrace"))
        return 2;
    const char *mapping = o->arguments[0];
    return symbolicate_trace(o->argument_count > 1 ? o->arguments[1] : "-", &mapping, 1, NULL);
}

int command_retrace(int argc, char **argv)
{
    return options_command(retrace_specs, "retrace MAPPING [TRACE]",
                           "A stack trace with the names and lines of the source.", retrace_run, argc, argv);
}
