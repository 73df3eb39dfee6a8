/* `symloom symbolicate`: a crash as it was written down to a readable one. */
#include "cli/symbolicate/symbolicate.h"

static const struct option_spec specs[] = {
    {"mapping", 0, OPTION_VALUE, true, "FILE",
     "mapping of ProGuard or R8; of several the first that knows a class tells"},
    {"type", 0, OPTION_VALUE, false, "trace", "what the input is (default: trace, when there is a mapping)"},
    {"format", 'f', OPTION_VALUE, false, "text", "how the answer is written (default: text)"},
    {"output", 0, OPTION_VALUE, false, "FILE", "write there instead of standard output"},
    {"verbose", 'v', OPTION_FLAG, true, NULL, NULL},
    QUIET_OPTIONS,
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

static bool is_choice(const struct options *o, const char *name, const char *only)
{
    const char *value = option_value(o, name, only);
    if (strcmp(value, only) == 0)
        return true;
    options_wrong("symbolicate", "--%s: '%s' is none of: %s", name, value, only);
    return false;
}

static int symbolicate_run(const struct options *o)
{
    size_t mapping_count;
    const char *const *mappings = option_values(o, "mapping", &mapping_count);
    if (!is_choice(o, "type", "trace") || !is_choice(o, "format", "text") || !options_arguments(o, 1, "symbolicate"))
        return 2;
    if (!mapping_count)
        return options_wrong("symbolicate", "a stack trace needs its --mapping");
    return symbolicate_trace(o->argument_count ? o->arguments[0] : "-", mappings, mapping_count,
                             option_value(o, "output", NULL));
}

int command_symbolicate(int argc, char **argv)
{
    return options_command(
        specs, "symbolicate --mapping FILE [OPTION..] [TRACE]",
        "Stack traces of obfuscated JVM programs, or logs with such in them, with the names and lines of the source.\n"
        "Without TRACE, or when it is -, standard input is read; lines that are no part of a trace stay as they are.",
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
