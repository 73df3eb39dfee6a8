/* Conditional requests and ranges for files (RFC 9110, 13 and 14). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "http/blank.h"
#include "http/impl.h"

static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* Parses `count` digits at `at`; false if they are not all digits. */
static bool parse_digits(struct sl_str text, size_t at, size_t count, int *number)
{
    uint64_t value = 0;
    bool good = at + count <= text.size && sl_parse_u64((struct sl_str){text.data + at, count}, &value);
    *number = (int)value;
    return good;
}

/* Converts a date like "Sun, 06 Nov 1994 08:49:37 GMT" to seconds since the epoch. False for any other text, also for HTTP's two obsolete
 * formats. */
bool http_date_parse(struct sl_str text, int64_t *seconds)
{
    struct tm tm = {0};
    int year, month = 0;
    if (text.size != 29 || memcmp(text.data + 25, " GMT", 4) != 0 || !parse_digits(text, 5, 2, &tm.tm_mday) ||
        !parse_digits(text, 12, 4, &year) || !parse_digits(text, 17, 2, &tm.tm_hour) ||
        !parse_digits(text, 20, 2, &tm.tm_min) || !parse_digits(text, 23, 2, &tm.tm_sec))
        return false;
    while (month < 12 && memcmp(text.data + 8, months[month], 3) != 0)
        month++;
    if (month == 12)
        return false;
    tm.tm_mon = month;
    tm.tm_year = year - 1900;
    *seconds = timegm(&tm);
    return true;
}

/* Formats the time as HTTP does (RFC 9110, 5.6.7). Data NULL when out of memory. */
static struct sl_str format_date(struct sl_arena *arena, int64_t seconds)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    struct tm tm;
    time_t time = (time_t)seconds;
    char text[40];
    gmtime_r(&time, &tm);
    int size = snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday], tm.tm_mday,
                        months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    char *copy = size > 0 && size < (int)sizeof text ? sl_arena_strndup(arena, text, (size_t)size) : NULL;
    return (struct sl_str){copy, copy ? (size_t)size : 0};
}

/* Removes the prefix W/ of a weak entity tag. */
static struct sl_str strip_weak(struct sl_str tag)
{
    if (sl_str_starts(tag, SL_STR("W/")))
        return (struct sl_str){tag.data + 2, tag.size - 2};
    return tag;
}

/* True if the list contains `*` or the tag, by weak comparison. */
static bool list_matches(struct sl_str list, struct sl_str tag)
{
    for (size_t at = 0; at < list.size;) {
        while (at < list.size && (http_is_blank(list.data[at]) || list.data[at] == ','))
            at++;
        size_t start = at;
        bool quoted = false;
        for (; at < list.size && (quoted || list.data[at] != ','); at++)
            quoted ^= list.data[at] == '"';
        struct sl_str item = http_trim((struct sl_str){list.data + start, at - start});
        if (sl_str_equal(item, SL_STR("*")) || (item.size && sl_str_equal(strip_weak(item), strip_weak(tag))))
            return true;
    }
    return false;
}

/* True if the client has the current version of the file: If-None-Match contains `tag` or, without that header, the file was not modified
 * after If-Modified-Since (RFC 9110, 13.1.3). */
static bool not_modified(const struct http_exchange *x, struct sl_str tag)
{
    struct sl_str none_match = http_header(x, "if-none-match"), since = http_header(x, "if-modified-since");
    int64_t date;
    if (none_match.data)
        return tag.size && list_matches(none_match, tag);
    return since.data && x->file_modified_s > 0 && http_date_parse(since, &date) && x->file_modified_s <= date;
}

bool http_has_tag(const struct http_exchange *x, struct sl_str tag)
{
    struct sl_str none_match = http_header(x, "if-none-match");
    return none_match.data && list_matches(none_match, tag);
}

/* False if If-Range names another version: then Range is ignored. */
static bool range_is_current(const struct http_exchange *x, struct sl_str tag)
{
    struct sl_str condition = http_header(x, "if-range");
    int64_t date;
    if (!condition.data)
        return true;
    if (http_date_parse(condition, &date))
        return x->file_modified_s > 0 && date == x->file_modified_s;
    /* a weak tag never matches (RFC 9110, 13.1.5) */
    return tag.size && !sl_str_starts(tag, SL_STR("W/")) && sl_str_equal(condition, tag);
}

/* Parses a number at `*at` and moves on. False, and `*at` stays, if there is none or it is too large. */
static bool parse_number(struct sl_str text, size_t *at, uint64_t *number)
{
    struct sl_str rest = {text.data + *at, text.size - *at};
    if (!sl_str_take_u64(&rest, number))
        return false;
    *at = text.size - rest.size;
    return true;
}

enum http_byte_range { RANGE_NONE, RANGE_ONE, RANGE_UNSATISFIABLE };

/* Parses the header Range for a file of `size` bytes. RANGE_NONE if it is malformed or has several ranges: the whole file is sent.
 * RANGE_UNSATISFIABLE if no byte of the file is in the range. */
static enum http_byte_range parse_range(struct sl_str text, uint64_t size, struct file_part *part)
{
    size_t at = 6; /* after "bytes=" */
    uint64_t first = 0, last = UINT64_MAX;
    if (text.size < at || !sl_str_equal_nocase((struct sl_str){text.data, at}, SL_STR("bytes=")))
        return RANGE_NONE;
    bool has_first = parse_number(text, &at, &first);
    if (at >= text.size || text.data[at] != '-')
        return RANGE_NONE;
    at++;
    bool has_last = parse_number(text, &at, &last);
    if (at != text.size || (!has_first && !has_last) || (has_first && has_last && last < first))
        return RANGE_NONE;
    if (!has_first) { /* suffix range: the last `last` bytes */
        uint64_t count = last < size ? last : size;
        *part = (struct file_part){size - count, count};
        return count ? RANGE_ONE : RANGE_UNSATISFIABLE;
    }
    if (first >= size)
        return RANGE_UNSATISFIABLE;
    if (!has_last || last >= size)
        last = size - 1;
    *part = (struct file_part){first, last - first + 1};
    return RANGE_ONE;
}

static void set_content_range(struct http_exchange *x, const char *text)
{
    char *copy = sl_arena_strndup(&x->arena, text, strlen(text));
    x->header_lost |= !copy;
    if (copy)
        http_set_header(x, "Content-Range", sl_str(copy));
}

struct file_part file_evaluate_conditions(struct http_exchange *x)
{
    uint64_t size = x->file->bytes.size;
    struct file_part part = {0, size};
    struct sl_str tag = {NULL, 0}, range = http_header(x, "range");
    header_is_set(x, "ETag", &tag);
    if (x->file_modified_s > 0) {
        struct sl_str date = format_date(&x->arena, x->file_modified_s);
        x->header_lost |= !date.data; /* out of memory: the response is not sent */
        http_set_header(x, "Last-Modified", date);
    }
    if (x->status != 200) /* conditions and ranges apply to successful responses only (RFC 9110, 13.2.1) */
        return part;
    if (not_modified(x, tag)) {
        x->status = 304;
        return (struct file_part){0, 0};
    }
    if (!range.data || !sl_str_equal(x->method, SL_STR("GET")) || !range_is_current(x, tag))
        return part;
    char text[80];
    switch (parse_range(range, size, &part)) {
    case RANGE_NONE: break;
    case RANGE_ONE:
        x->status = 206;
        snprintf(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)part.offset,
                 (unsigned long long)(part.offset + part.size - 1), (unsigned long long)size);
        set_content_range(x, text);
        break;
    case RANGE_UNSATISFIABLE:
        x->status = 416;
        part.size = 0;
        snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)size);
        set_content_range(x, text);
        break;
    }
    return part;
}
