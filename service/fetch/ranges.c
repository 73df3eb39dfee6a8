/* Byte ranges (RFC 9110, 14.4): the range of a partial response, and how the rest of a large file is split. */
#include <ctype.h>

#include "fetch/impl.h"

static void skip_space(const char **at)
{
    while (isspace((unsigned char)**at))
        ++*at;
}

/* Parses a number, with space around; false if there is none, or it does not fit. */
static bool fetch_ranges_number(const char **at, uint64_t *v)
{
    skip_space(at);
    const char *start = *at;
    for (*v = 0; **at >= '0' && **at <= '9'; ++*at)
        if (__builtin_mul_overflow(*v, 10u, v) || __builtin_add_overflow(*v, (uint64_t)(**at - '0'), v))
            return false;
    bool any = *at > start;
    skip_space(at);
    return any;
}

/* Skips the character if it is the next one. */
static bool literal(const char **at, char c)
{
    return **at == c && (++*at, true);
}

/* Parses "bytes 0-99/1000". False for other units, an unknown total (`*`), an end before the start, or text behind. */
bool byte_range_parse(const char *text, struct byte_range *range)
{
    const char *at = text;
    skip_space(&at);
    if (strncmp(at, "bytes", 5) != 0 || !isspace((unsigned char)at[5]))
        return false;
    at += 5;
    return fetch_ranges_number(&at, &range->start) && literal(&at, '-') && fetch_ranges_number(&at, &range->end) &&
           literal(&at, '/') && fetch_ranges_number(&at, &range->total) && *at == '\0' && range->end >= range->start;
}

/* The parts have equal sizes; the last one also has the remainder. */
size_t byte_range_split(const struct byte_range *first, uint64_t split_size, struct byte_range parts[MAX_PARTS])
{
    if (first->end + 1 >= first->total)
        return 0;
    uint64_t left = first->total - (first->end + 1), start = first->end + 1;
    uint64_t count = left / split_size + (left % split_size != 0);
    if (count > MAX_PARTS)
        count = MAX_PARTS;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t end = i + 1 == count ? first->total - 1 : start + left / count - 1;
        parts[i] = (struct byte_range){start, end, first->total};
        start = end + 1;
    }
    return (size_t)count;
}
