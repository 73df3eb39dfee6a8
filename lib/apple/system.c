/* Parsers for the system, the time and the ids of modules; readers of text and of JSON use them. */
#include "apple/impl.h"

#include <time.h>

/* ---- time ---- */

/* Removes a number of exactly `digits` decimal digits and the text `behind` that must follow; returns the number, or -1 without removing
 * anything if the text begins otherwise. */
static int take_digits(struct sl_str *rest, unsigned digits, const char *behind)
{
    uint64_t value;
    size_t size = strlen(behind);
    if (rest->size < digits + size || memcmp(rest->data + digits, behind, size) != 0 ||
        !sl_parse_u64((struct sl_str){rest->data, digits}, &value))
        return -1;
    *rest = (struct sl_str){rest->data + digits + size, rest->size - digits - size};
    return (int)value;
}

/* Converts a time zone, "+0200" or "+02:00", to seconds east of UTC. False if malformed. */
static bool take_zone(struct sl_str text, int *seconds)
{
    struct sl_str rest = {text.data + 1, text.size - 1}; /* not read if the text is empty */
    bool colon = text.size == 6 && text.data[3] == ':';
    if (text.size != (colon ? 6 : 5) || (text.data[0] != '+' && text.data[0] != '-'))
        return false;
    int hours = take_digits(&rest, 2, colon ? ":" : ""), minutes = take_digits(&rest, 2, "");
    *seconds = (hours * 60 + minutes) * (text.data[0] == '-' ? -60 : 60);
    return hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60;
}

/* Parts that are missing become -1 (take_digits) and are rejected after all have been read. */
bool apple_time(struct sl_str text, int64_t *seconds)
{
    int zone;
    struct tm tm = {0}, normalised;
    text = sl_str_trimmed(text);
    tm.tm_year = take_digits(&text, 4, "-") - 1900;
    tm.tm_mon = take_digits(&text, 2, "-") - 1;
    tm.tm_mday = take_digits(&text, 2, " ");
    tm.tm_hour = take_digits(&text, 2, ":");
    tm.tm_min = take_digits(&text, 2, ":");
    tm.tm_sec = take_digits(&text, 2, "");
    if (text.size && text.data[0] == '.')
        do
            text = (struct sl_str){text.data + 1, text.size - 1};
        while (text.size && text.data[0] >= '0' && text.data[0] <= '9');
    text = sl_str_trimmed(text);
    if (!text.size || !take_zone(text, &zone))
        return false;
    if (tm.tm_year < -1900 || tm.tm_mon < 0 || tm.tm_mday < 1 || tm.tm_hour < 0 || tm.tm_hour > 23 || tm.tm_min < 0 ||
        tm.tm_min > 59 || tm.tm_sec < 0 || tm.tm_sec > 60)
        return false;
    normalised = tm;
    *seconds = (int64_t)timegm(&normalised) - zone;
    /* timegm() turns a 30th of February into a day of March, which is rejected; a leap second may change the day too */
    return tm.tm_sec == 60 || (normalised.tm_mon == tm.tm_mon && normalised.tm_mday == tm.tm_mday);
}

/* ---- operating system ---- */

struct sl_str apple_os_name(struct sl_str name)
{
    static const struct {
        struct sl_str written, name;
    } names[] = {
        {SL_STR("Mac OS X"), SL_STR("macOS")},
        {SL_STR("iPhone OS"), SL_STR("iOS")},
        {SL_STR("Apple TVOS"), SL_STR("tvOS")},
        {SL_STR("Watch OS"), SL_STR("watchOS")},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sl_str_equal(name, names[i].written))
            return names[i].name;
    return name;
}

/* Returns the text without " (<build>)" at its end; `*build` is empty if there is none. */
static struct sl_str without_build(struct sl_str text, struct sl_str *build)
{
    const char *open = text.size && text.data[text.size - 1] == ')' ? memrchr(text.data, '(', text.size) : NULL;
    *build = (struct sl_str){"", 0};
    if (!open || open == text.data || open[-1] != ' ')
        return text;
    *build = (struct sl_str){open + 1, (size_t)(text.data + text.size - open) - 2};
    return (struct sl_str){text.data, (size_t)(open - text.data) - 1};
}

/* Splits "<name> <version>" at the last blank; false if the last word, the version, does not begin with a digit, or there is no name. */
static bool split_version(struct sl_str text, struct sl_str *name, struct sl_str *version)
{
    const char *blank = text.size ? memrchr(text.data, ' ', text.size) : NULL;
    if (!blank || blank == text.data || blank + 1 == text.data + text.size || blank[1] < '0' || blank[1] > '9')
        return false;
    *version = (struct sl_str){blank + 1, (size_t)(text.data + text.size - blank) - 1};
    *name = sl_str_trimmed((struct sl_str){text.data, (size_t)(blank - text.data)});
    return name->size > 0;
}

/* True if all characters are hex digits, also for an empty text. */
static bool all_hex(struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!strchr("0123456789abcdefABCDEF", text.data[i]))
            return false;
    return true;
}

/* True for three numbers of any length separated by dots. */
static bool is_mac_version(struct sl_str version)
{
    uint64_t value;
    for (int i = 0; i < 3; i++) {
        if (i && (!version.size || version.data[0] != '.'))
            return false;
        if (i)
            version = (struct sl_str){version.data + 1, version.size - 1};
        if (apple_take_number(&version, &value) == APPLE_NONE)
            return false;
    }
    return !version.size;
}

void apple_os(struct sl_str text, bool split, struct sl_crash_system *system)
{
    struct sl_str build, name, version, rest = without_build(text, &build);
    bool is_split = split_version(rest, &name, &version);
    /* Split even without `split`: "Mac OS X", a version of three numbers and a build of hex digits, which may be absent, but not "()". */
    bool is_mac = is_split && sl_str_equal(name, SL_STR("Mac OS X")) && is_mac_version(version) && all_hex(build) &&
                  (build.size || rest.size == text.size);
    if (!is_mac && !(is_split && split)) {
        system->os_name = text;
        return;
    }
    system->os_name = apple_os_name(name);
    system->os_version = version;
    system->os_build = build;
}

enum sl_arch apple_arch(struct sl_str code_type)
{
    size_t size = 0;
    code_type = sl_str_trimmed(code_type);
    while (size < code_type.size && !sl_is_blank(code_type.data[size]))
        size++;
    return sl_arch_parse((struct sl_str){code_type.data, size});
}

/* sl_debug_id_parse() also accepts debug ids that are more than a UUID: with an age, or of old PDB files (pdb20). These are rejected. */
bool apple_module_id(struct sl_str uuid, struct sl_arena *arena, struct sl_crash_module *module)
{
    bool dashed = uuid.size == 36 && uuid.data[8] == '-'; /* 36 characters without dashes would be a UUID and an age */
    if ((uuid.size != 32 && !dashed) || !sl_debug_id_parse(uuid, &module->debug_id) || module->debug_id.age ||
        module->debug_id.pdb20)
        return false;
    module->has_debug_id = true;
    module->code_id = sl_code_id_normalise(arena, uuid);
    return true;
}
