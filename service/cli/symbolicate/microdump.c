/* `symloom symbolicate` of minidumps: which one it is of a log with microdumps. */
#include "minidump/microdump.h"

#include <inttypes.h>

#include "cli/symbolicate/symbolicate.h"

struct chosen_microdump {
    struct sl_microdump microdump;
    uint64_t count;  /* of the log */
    uint64_t number; /* counted from 1; 0: there is none */
};

/* The one with the number; 0: the first that is whole, else the first. */
static struct chosen_microdump choose_microdump(struct sl_str log, uint64_t number)
{
    struct sl_microdump_search search = {.rest = log};
    struct chosen_microdump chosen = {.count = 0};
    struct sl_microdump next;
    while (sl_microdump_next(&search, &next)) {
        chosen.count++;
        bool is_better = !chosen.number || (!chosen.microdump.is_whole && next.is_whole);
        if (number ? chosen.count == number : is_better) {
            chosen.microdump = next;
            chosen.number = chosen.count;
        }
    }
    return chosen;
}

static void tell_choice(const struct options *o, const struct chosen_microdump *chosen, bool was_asked)
{
    if (option_given(o, "quiet"))
        return;
    if (chosen->count > 1 && !was_asked)
        remark("note: the log has %" PRIu64 " microdumps; this is number %" PRIu64
               ", of line %zu. --microdump N shows another.\n",
               chosen->count, chosen->number, chosen->microdump.line);
    if (!chosen->microdump.is_whole)
        remark(
            "warning: the microdump of line %zu is cut: its last line is not there, modules or stack may be missing\n",
            chosen->microdump.line);
}

int symbolicate_minidump(const struct options *o, const struct sentry_project *project, struct sl_bytes bytes)
{
    uint64_t number = 0;
    struct sl_error error;
    bool was_asked = option_given(o, "microdump");
    if (!option_number(o, "microdump", "symbolicate", &number))
        return 2;
    if (was_asked && !number)
        return options_wrong("symbolicate", "--microdump: they are counted from 1");
    if (!sl_microdump_is_in(bytes))
        return was_asked ? options_wrong("symbolicate", "--microdump: the file has no microdump of Breakpad")
                         : symbolicate_crash(o, project, CRASH_FILE_MINIDUMP, bytes);
    const struct chosen_microdump chosen =
        choose_microdump((struct sl_str){(const char *)bytes.data, bytes.size}, number);
    if (!chosen.number) {
        sl_fail(&error, SL_NOT_FOUND, "--microdump: the log has no microdump %" PRIu64 ", only %" PRIu64, number,
                chosen.count);
        return report(2, error.message, NULL);
    }
    tell_choice(o, &chosen, was_asked);
    const struct sl_str text = chosen.microdump.text;
    return symbolicate_crash(o, project, CRASH_FILE_MINIDUMP, (struct sl_bytes){(const uint8_t *)text.data, text.size});
}
