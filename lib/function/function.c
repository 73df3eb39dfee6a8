#include "function/function.h"

static const char *const names[] = {"unknown", "c",    "cpp",   "d",      "go",          "objc",
                                    "objcpp",  "rust", "swift", "csharp", "visualbasic", "fsharp"};

const char *sl_language_name(enum sl_language language)
{
    return (size_t)language < sizeof names / sizeof *names ? names[language] : names[0];
}

/* Finds the language to which sl_language_name() gives this name; false for any other name. */
bool sl_language_parse(struct sl_str name, enum sl_language *language)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sl_str_equal(name, sl_str(names[i]))) {
            *language = (enum sl_language)i;
            return true;
        }
    return false;
}

void sl_function_sink_add_gaps(struct sl_function_sink *into, const struct sl_function_sink *from)
{
    if (from->skipped_units && !into->skipped_units)
        into->first_skipped = from->first_skipped;
    into->skipped_units += from->skipped_units;
    if (from->missing_units && !into->missing_units)
        memcpy(into->first_missing, from->first_missing, sizeof into->first_missing);
    into->missing_units += from->missing_units;
}
