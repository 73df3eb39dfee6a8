/* Byte ranges (RFC 9110, 14): parses the Content-Range of a partial response, and splits the rest of a large file into ranges to
 * request. */
#include <ctype.h>

#include "fetch/impl.h"

static void skip_space(const char **at)
{
    while (isspace((unsigned char)**at))
        ++*at;
}

/* Parses a number with optional white space around it, and moves `*at` behind; false if there is none, or on overflow. */
static bool parse_number(const char **at, uint64_t *v)
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

/* Skips the character if it is the next one; returns whether it was. */
static bool skip_char(const char **at, char c)
{
    return **at == c && (++*at, true);
}

/* Parses the value of a Content-Range, "bytes 0-99/1000". False for another unit, an unknown total size (`*`), an end before the start, or
 * more text. */
bool byte_range_parse(const char *text, struct byte_range *range)
{
    const char *at = text;
    skip_space(&at);
    if (strncmp(at, "bytes", 5) != 0 || !isspace((unsigned char)at[5]))
        return false;
    at += 5;
    return parse_number(&at, &range->start) && skip_char(&at, '-') && parse_number(&at, &range->end) &&
           skip_char(&at, '/') && parse_number(&at, &range->total) && *at == '\0' && range->end >= range->start;
}

/* Makes as many parts as are needed for at most `split_size` bytes each; more than MAX_PARTS become MAX_PARTS larger ones. The parts have
 * equal sizes; the last one also has the remainder of the division. */
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
