/* Parses and formats durations ("1h 30m") and sizes ("64KiB"). */
#include "core/duration.h"

static const uint64_t NS = 1, US = 1000, MS = 1000000, S = 1000000000;

/* In seconds; a year has 365.25 days, and a month 30.44 days, its rounded twelfth part. */
enum { MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400, WEEK_S = 604800, MONTH_S = 2630016, YEAR_S = 31557600 };

static const struct {
    const char *name;
    uint64_t ns;
} duration_units[] = {
    {"ns", 1},
    {"nsec", 1},
    {"nanos", 1},
    {"us", 1000},
    {"usec", 1000},
    {"\xC2\xB5s", 1000},
    {"ms", 1000000},
    {"msec", 1000000},
    {"millis", 1000000},
    {"s", 1000000000},
    {"sec", 1000000000},
    {"secs", 1000000000},
    {"second", 1000000000},
    {"seconds", 1000000000},
    {"m", MINUTE_S * 1000000000ull},
    {"min", MINUTE_S * 1000000000ull},
    {"mins", MINUTE_S * 1000000000ull},
    {"minute", MINUTE_S * 1000000000ull},
    {"minutes", MINUTE_S * 1000000000ull},
    {"h", HOUR_S * 1000000000ull},
    {"hr", HOUR_S * 1000000000ull},
    {"hrs", HOUR_S * 1000000000ull},
    {"hour", HOUR_S * 1000000000ull},
    {"hours", HOUR_S * 1000000000ull},
    {"d", DAY_S * 1000000000ull},
    {"day", DAY_S * 1000000000ull},
    {"days", DAY_S * 1000000000ull},
    {"w", WEEK_S * 1000000000ull},
    {"wk", WEEK_S * 1000000000ull},
    {"wks", WEEK_S * 1000000000ull},
    {"week", WEEK_S * 1000000000ull},
    {"weeks", WEEK_S * 1000000000ull},
    {"M", MONTH_S * 1000000000ull},
    {"month", MONTH_S * 1000000000ull},
    {"months", MONTH_S * 1000000000ull},
    {"y", YEAR_S * 1000000000ull},
    {"yr", YEAR_S * 1000000000ull},
    {"yrs", YEAR_S * 1000000000ull},
    {"year", YEAR_S * 1000000000ull},
    {"years", YEAR_S * 1000000000ull},
};

static const struct {
    const char *name;
    uint64_t bytes;
} size_units[] = {
    {"", 1},      {"B", 1},     {"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30},   {"TiB", 1ull << 40},
    {"kB", 1000}, {"KB", 1000}, {"MB", 1000000},     {"GB", 1000000000},  {"TB", 1000000000000},
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}
/* Returns the position of the first character from `at` on that is no blank. */
static size_t skip_blanks(struct sl_str text, size_t at)
{
    while (at < text.size && is_blank(text.data[at]))
        at++;
    return at;
}

/* Parses the digits at `*at` and moves `*at` behind them; false if there are none, or on overflow. */
static bool take_number(struct sl_str text, size_t *at, uint64_t *number)
{
    struct sl_str rest = {text.data + *at, text.size - *at};
    bool good = sl_str_take_u64(&rest, number);
    *at = text.size - rest.size;
    return good;
}

/* Returns the characters from `*at` up to the next digit or blank, which may be none, and moves `*at` behind them. */
static struct sl_str take_unit(struct sl_str text, size_t *at)
{
    size_t start = *at;
    while (*at < text.size && !sl_is_digit(text.data[*at]) && !is_blank(text.data[*at]))
        (*at)++;
    return (struct sl_str){text.data + start, *at - start};
}

/* Sets `*ns` to the nanoseconds of a unit of time ("ms", "hours"); false if the name is unknown. */
static bool unit_of_duration(struct sl_str name, uint64_t *ns)
{
    for (size_t i = 0; i < sizeof duration_units / sizeof *duration_units; i++) {
        if (sl_str_equal(name, sl_str(duration_units[i].name))) {
            *ns = duration_units[i].ns;
            return true;
        }
    }
    return false;
}

bool duration_parse(struct sl_str text, uint64_t *ns)
{
    uint64_t total = 0;
    size_t at = skip_blanks(text, 0), parts = 0;
    while (at < text.size) {
        uint64_t number, unit;
        if (!take_number(text, &at, &number))
            return false;
        at = skip_blanks(text, at);
        struct sl_str name = take_unit(text, &at);
        if (name.size == 0 && number == 0 && parts == 0 && at == text.size) { /* the text "0": needs no unit */
            *ns = 0;
            return true;
        }
        if (!unit_of_duration(name, &unit) || __builtin_mul_overflow(number, unit, &number) ||
            __builtin_add_overflow(total, number, &total))
            return false;
        at = skip_blanks(text, at);
        parts++;
    }
    *ns = total;
    return parts > 0;
}

void duration_format(uint64_t ns, struct sl_buf *out)
{
    static const struct {
        const char *name;
        uint64_t seconds;
        bool plural;
    } parts[] = {{"year", YEAR_S, true}, {"month", MONTH_S, true}, {"day", DAY_S, true},
                 {"h", HOUR_S, false},   {"m", MINUTE_S, false},   {"s", 1, false}};
    static const struct {
        const char *name;
        uint64_t ns;
    } fractions[] = {{"ms", 1000000}, {"us", 1000}, {"ns", 1}};
    uint64_t seconds = ns / S, rest = ns % S;
    const char *blank = "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        uint64_t n = seconds / parts[i].seconds;
        seconds %= parts[i].seconds;
        if (n > 0) {
            sl_buf_printf(out, "%s%llu%s%s", blank, (unsigned long long)n, parts[i].name,
                          parts[i].plural && n > 1 ? "s" : "");
            blank = " ";
        }
    }
    for (size_t i = 0; i < sizeof fractions / sizeof *fractions; i++) {
        uint64_t n = rest / fractions[i].ns;
        rest %= fractions[i].ns;
        if (n > 0) {
            sl_buf_printf(out, "%s%llu%s", blank, (unsigned long long)n, fractions[i].name);
            blank = " ";
        }
    }
    if (ns == 0)
        sl_buf_cstr(out, "0s");
}

/* Writes the fraction exactly, without zeros at its end. */
void duration_format_short(uint64_t ns, struct sl_buf *out)
{
    uint64_t unit = ns >= S ? S : ns >= MS ? MS : ns >= US ? US : NS;
    const char *name = ns >= S ? "s" : ns >= MS ? "ms" : ns >= US ? "\xC2\xB5s" : "ns";
    char digits[16];
    size_t count = 0;
    uint64_t rest = ns % unit;
    for (uint64_t weight = unit / 10; rest > 0 && count < sizeof digits; weight /= 10) {
        digits[count++] = (char)('0' + rest / weight);
        rest %= weight;
    }
    sl_buf_printf(out, "%llu%s%.*s%s", (unsigned long long)(ns / unit), count ? "." : "", (int)count, digits, name);
}

bool size_parse(struct sl_str text, uint64_t *bytes)
{
    uint64_t number;
    size_t at = skip_blanks(text, 0);
    if (!take_number(text, &at, &number))
        return false;
    at = skip_blanks(text, at);
    struct sl_str name = take_unit(text, &at);
    if (skip_blanks(text, at) != text.size)
        return false;
    for (size_t i = 0; i < sizeof size_units / sizeof *size_units; i++)
        if (sl_str_equal(name, sl_str(size_units[i].name)))
            return !__builtin_mul_overflow(number, size_units[i].bytes, bytes);
    return false;
}
