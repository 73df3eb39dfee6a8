#include "base/json_write.h"

#include "base/plain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Called before a value is written: writes a comma, unless the value is the first of an array or follows a key. Until a key or an opening
 * bracket is written, later values need one. */
static inline void comma(struct sl_json_writer *w)
{
    if (w->comma)
        sl_buf_u8(w->out, ',');
    w->comma = true;
}

/* Writes an opening bracket; no comma is needed directly after it. */
static inline void open_with(struct sl_json_writer *w, uint8_t bracket)
{
    comma(w);
    sl_buf_u8(w->out, bracket);
    w->comma = false;
}

static inline void close_with(struct sl_json_writer *w, uint8_t bracket)
{
    sl_buf_u8(w->out, bracket);
    w->comma = true;
}

void sl_json_begin_object(struct sl_json_writer *w)
{
    open_with(w, '{');
}
void sl_json_end_object(struct sl_json_writer *w)
{
    close_with(w, '}');
}
void sl_json_begin_array(struct sl_json_writer *w)
{
    open_with(w, '[');
}
void sl_json_end_array(struct sl_json_writer *w)
{
    close_with(w, ']');
}

/* Writes the escape of a quote, a backslash or a control byte. DEL (0x7F) needs no escape, but sl_plain_copy() stops at it as well. */
static void escape_byte(struct sl_buf *out, uint8_t c)
{
    static const char short_forms[] = "btn\0fr"; /* of the bytes 8 to 13; 11 has no short form */
    static const char digits[] = "0123456789abcdef";
    char text[6] = {'\\', (char)c};
    size_t size = 2;
    if (c == 0x7F) {
        sl_buf_u8(out, c);
        return;
    }
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

/* Writes a text as a JSON string: copies runs of plain ASCII, escapes quotes, backslashes and control bytes, and writes other characters
 * with ill-formed UTF-8 replaced. */
static void add_quoted(struct sl_buf *out, struct sl_str text)
{
    if (!sl_buf_reserve(out, text.size + 2 + SL_PLAIN_SLACK))
        return;
    out->data[out->size++] = '"';
    for (size_t at = 0; at < text.size && sl_buf_reserve(out, text.size - at + SL_PLAIN_SLACK);) {
        /* may overwrite SL_PLAIN_SLACK bytes after the rest of the text */
        size_t run = sl_plain_copy((char *)out->data + out->size, (struct sl_str){text.data + at, text.size - at});
        out->size += run;
        at += run;
        if (at == text.size)
            break;
        if ((uint8_t)text.data[at] < 0x80)
            escape_byte(out, (uint8_t)text.data[at++]);
        else
            sl_buf_str(out, sl_utf8_next_valid(text, &at));
    }
    sl_buf_u8(out, '"');
}

void sl_json_put_key_str(struct sl_json_writer *w, struct sl_str key)
{
    comma(w);
    add_quoted(w->out, key);
    sl_buf_u8(w->out, ':');
    w->comma = false;
}

void sl_json_put_str(struct sl_json_writer *w, struct sl_str text)
{
    comma(w);
    add_quoted(w->out, text);
}

void sl_json_put_texts(struct sl_json_writer *w, const char *key, const struct sl_str *texts, size_t count)
{
    if (!count)
        return;
    sl_json_member_array(w, key);
    for (size_t i = 0; i < count; i++)
        sl_json_put_str(w, texts[i]);
    sl_json_end_array(w);
}

void sl_json_put_u64(struct sl_json_writer *w, uint64_t v)
{
    comma(w);
    sl_buf_decimal(w->out, v);
}

void sl_json_put_i64(struct sl_json_writer *w, int64_t v)
{
    comma(w);
    if (v < 0)
        sl_buf_u8(w->out, '-');
    sl_buf_decimal(w->out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* Writes a number with the fewest digits, from 15 to 17, that read back as the same number; adds ".0" to one without dot and exponent.
 * Infinity and NaN, which JSON does not have, become null. */
void sl_json_put_double(struct sl_json_writer *w, double v)
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

void sl_json_put_boolean(struct sl_json_writer *w, bool v)
{
    comma(w);
    sl_buf_cstr(w->out, v ? "true" : "false");
}

void sl_json_put_null(struct sl_json_writer *w)
{
    comma(w);
    sl_buf_add(w->out, "null", 4);
}

void sl_json_put_hex_padded(struct sl_json_writer *w, uint64_t v, unsigned least)
{
    static const char digits[] = "0123456789abcdef";
    /* `needed`: the number of significant bits, divided by 4 and rounded up */
    size_t needed = v ? (size_t)(67 - __builtin_clzll(v)) / 4 : 1, count = needed < least ? least : needed;
    comma(w);
    if (!sl_buf_reserve(w->out, count + 4)) /* also "0x" and two quotes */
        return;
    uint8_t *at = w->out->data + w->out->size;
    memcpy(at, "\"0x", 3);
    at[count + 3] = '"';
    for (size_t i = count; i-- > 0; v >>= 4)
        at[3 + i] = (uint8_t)digits[v & 15];
    w->out->size += count + 4;
}

void sl_json_put_hex(struct sl_json_writer *w, uint64_t v)
{
    sl_json_put_hex_padded(w, v, 1);
}

void sl_json_put_raw(struct sl_json_writer *w, struct sl_str json)
{
    comma(w);
    sl_buf_str(w->out, json);
}

/* Copies the members of the next object or array; false if the JSON reader fails. It calls sl_json_put_value(), which calls it again;
 * SL_JSON_MAX_DEPTH of the reader limits that. */
static bool copy_members(struct sl_json_writer *w, struct sl_json *j)
{
    struct sl_str key;
    sl_json_enter(j);
    while (sl_json_next(j, &key)) {
        if (key.data) /* NULL in an array */
            sl_json_put_key_str(w, key);
        sl_json_put_value(w, j);
    }
    return !j->failed;
}

bool sl_json_put_value(struct sl_json_writer *w, struct sl_json *j)
{
    struct sl_str text;
    bool good;
    switch (sl_json_peek(j)) {
    case SL_JSON_OBJECT:
        sl_json_begin_object(w);
        good = copy_members(w, j);
        sl_json_end_object(w);
        return good;
    case SL_JSON_ARRAY:
        sl_json_begin_array(w);
        good = copy_members(w, j);
        sl_json_end_array(w);
        return good;
    case SL_JSON_STRING:
        if ((good = sl_json_string(j, &text)))
            sl_json_put_str(w, text);
        return good;
    default:
        if ((good = sl_json_value(j, &text)))
            sl_json_put_raw(w, text);
        return good;
    }
}
