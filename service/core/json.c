#include "core/json.h"
#include "core/value.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LEVELS = 128 };

/* ---- out ---- */
static inline void comma(struct json_writer *w)
{
    if (w->comma)
        sl_buf_u8(w->out, ',');
    w->comma = true;
}

static inline void open_with(struct json_writer *w, uint8_t bracket)
{
    comma(w);
    sl_buf_u8(w->out, bracket);
    w->comma = false;
}

static inline void close_with(struct json_writer *w, uint8_t bracket)
{
    sl_buf_u8(w->out, bracket);
    w->comma = true;
}

void json_object_begin(struct json_writer *w)
{
    open_with(w, '{');
}
void json_object_end(struct json_writer *w)
{
    close_with(w, '}');
}
void json_array_begin(struct json_writer *w)
{
    open_with(w, '[');
}
void json_array_end(struct json_writer *w)
{
    close_with(w, ']');
}

void json_key(struct json_writer *w, const char *key)
{
    size_t size = strlen(key);
    if (!sl_buf_reserve(w->out, size + 4))
        return;
    uint8_t *at = w->out->data + w->out->size, *start = at;
    if (w->comma)
        *at++ = ',';
    *at++ = '"';
    memcpy(at, key, size);
    at += size;
    *at++ = '"';
    *at++ = ':';
    w->out->size += (size_t)(at - start);
    w->comma = false;
}

#define ONES  0x0101010101010101ull
#define HIGHS 0x8080808080808080ull

/* Bytes from `at` that need no escape: printable ASCII but quote and backslash, eight at a time. */
static size_t plain_run(const uint8_t *at, const uint8_t *end)
{
    const uint8_t *start = at;
    for (; end - at >= 8; at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        uint64_t quote = word ^ (ONES * '"'), slash = word ^ (ONES * '\\');
        uint64_t stop = ((word - ONES * 0x20) & ~word) | ((quote - ONES) & ~quote) | ((slash - ONES) & ~slash) | word;
        if (stop & HIGHS)
            break;
    }
    while (at < end && *at >= 0x20 && *at < 0x80 && *at != '"' && *at != '\\')
        at++;
    return (size_t)(at - start);
}

static void escape_byte(struct sl_buf *out, uint8_t c)
{
    static const char short_forms[] = "btn\0fr"; /* 8 to 13; 11 has none */
    static const char digits[] = "0123456789abcdef";
    char text[6] = {'\\', (char)c};
    size_t size = 2;
    if (c >= 8 && c <= 13 && c != 11) {
        text[1] = short_forms[c - 8];
    } else if (c < 0x20) {
        text[1] = 'u';
        text[2] = text[3] = '0';
        text[4] = digits[c >> 4];
        text[5] = digits[c & 15];
        size = 6;
    }
    sl_buf_add(out, text, size);
}

static void add_quoted(struct sl_buf *out, struct sl_str text)
{
    const uint8_t *end = (const uint8_t *)text.data + text.size;
    if (!sl_buf_reserve(out, text.size + 2))
        return;
    sl_buf_u8(out, '"');
    for (size_t at = 0; at < text.size;) {
        const uint8_t *rest = (const uint8_t *)text.data + at;
        size_t run = plain_run(rest, end);
        sl_buf_add(out, rest, run);
        at += run;
        if (at == text.size)
            break;
        if (rest[run] < 0x80)
            escape_byte(out, (uint8_t)text.data[at++]);
        else
            sl_buf_str(out, sl_utf8_mended(text, &at));
    }
    sl_buf_u8(out, '"');
}

void json_key_str(struct json_writer *w, struct sl_str key)
{
    comma(w);
    add_quoted(w->out, key);
    sl_buf_u8(w->out, ':');
    w->comma = false;
}

void json_str(struct json_writer *w, struct sl_str text)
{
    comma(w);
    add_quoted(w->out, text);
}

static void add_decimal(struct sl_buf *out, uint64_t v, bool negative)
{
    char digits[21];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + v % 10);
    while (v /= 10);
    if (negative)
        digits[--at] = '-';
    sl_buf_add(out, digits + at, sizeof digits - at);
}

void json_u64(struct json_writer *w, uint64_t v)
{
    comma(w);
    add_decimal(w->out, v, false);
}

void json_i64(struct json_writer *w, int64_t v)
{
    comma(w);
    add_decimal(w->out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0);
}

/* The shortest of 15 to 17 digits that reads back as the same number; an integral value keeps ".0". */
void json_double(struct json_writer *w, double v)
{
    comma(w);
    if (!isfinite(v)) {
        sl_buf_cstr(w->out, "null");
        return;
    }
    char text[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, v);
        if (strtod(text, NULL) == v)
            break;
    }
    sl_buf_cstr(w->out, text);
    if (!strpbrk(text, ".e"))
        sl_buf_add(w->out, ".0", 2);
}

void json_boolean(struct json_writer *w, bool v)
{
    comma(w);
    sl_buf_cstr(w->out, v ? "true" : "false");
}

void json_null(struct json_writer *w)
{
    comma(w);
    sl_buf_add(w->out, "null", 4);
}

void json_hex(struct json_writer *w, uint64_t v)
{
    static const char digits[] = "0123456789abcdef";
    char text[20];
    size_t at = sizeof text;
    text[--at] = '"';
    do
        text[--at] = digits[v & 15];
    while (v >>= 4);
    text[--at] = 'x';
    text[--at] = '0';
    text[--at] = '"';
    comma(w);
    sl_buf_add(w->out, text + at, sizeof text - at);
}

void json_raw(struct json_writer *w, struct sl_str json)
{
    comma(w);
    sl_buf_str(w->out, json);
}

static void write_number(struct json_writer *w, struct json_object *value)
{
    if (json_object_get_type(value) == json_type_double) { /* json-c keeps the text it was parsed from */
        json_raw(w, sl_str(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN)));
        return;
    }
    int64_t v = json_object_get_int64(value);
    if (v < 0)
        json_i64(w, v);
    else
        json_u64(w, json_object_get_uint64(value));
}

static void write_value(struct json_writer *w, struct json_object *value, unsigned level)
{
    switch (level > MAX_LEVELS ? json_type_null : json_object_get_type(value)) {
    case json_type_null: json_null(w); break;
    case json_type_boolean: json_boolean(w, json_object_get_boolean(value)); break;
    case json_type_int:
    case json_type_double: write_number(w, value); break;
    case json_type_string:
        json_str(w, (struct sl_str){json_object_get_string(value), (size_t)json_object_get_string_len(value)});
        break;
    case json_type_array:
        json_array_begin(w);
        for (size_t i = 0, count = json_object_array_length(value); i < count; i++)
            write_value(w, json_object_array_get_idx(value, i), level + 1);
        json_array_end(w);
        break;
    case json_type_object:
        json_object_begin(w);
        for (struct lh_entry *entry = json_object_get_object(value)->head; entry; entry = entry->next) {
            json_key_str(w, sl_str(lh_entry_k(entry)));
            write_value(w, lh_entry_v(entry), level + 1);
        }
        json_object_end(w);
        break;
    }
}

void json_value(struct json_writer *w, struct json_object *value)
{
    write_value(w, value, 0);
}

/* ---- in ---- */

/* json-c is lenient even when strict: raw control bytes in strings, NaN, `1.`, quotes of the wrong kind, numbers beyond 64
 * bits (which it saturates), overlong UTF-8. So only what the strict reader takes is shown to it. */
static enum sl_code check(struct sl_str text, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct value root;
    enum sl_code code = value_read_json(&arena, text, &root, error);
    sl_arena_free(&arena);
    return code;
}

enum sl_code json_parse(struct sl_str text, struct json_object **object, struct sl_error *error)
{
    *object = NULL;
    if (text.size >= INT_MAX)
        return sl_fail(error, SL_MALFORMED, "document too large");
    enum sl_code code = check(text, error);
    if (code != SL_OK)
        return code;
    struct json_tokener *tokener = json_tokener_new_ex(MAX_LEVELS + 2);
    if (!tokener)
        return sl_fail(error, SL_BUSY, "out of memory");
    *object = json_tokener_parse_ex(tokener, text.data, (int)text.size);
    if (json_tokener_get_error(tokener) == json_tokener_continue) /* a bare number ends where a byte follows */
        *object = json_tokener_parse_ex(tokener, " ", 1);
    enum json_tokener_error why = json_tokener_get_error(tokener);
    json_tokener_free(tokener);
    return why == json_tokener_success ? SL_OK : sl_fail(error, SL_MALFORMED, "%s", json_tokener_error_desc(why));
}

struct sl_str json_member(struct json_object *object, const char *name)
{
    struct json_object *value;
    if (!json_object_is_type(object, json_type_object) || !json_object_object_get_ex(object, name, &value) ||
        !json_object_is_type(value, json_type_string))
        return SL_STR("");
    return (struct sl_str){json_object_get_string(value), (size_t)json_object_get_string_len(value)};
}
