/* `symloom symbolicate`: logs in UTF-16 (The Unicode Standard, section 3.10), as PowerShell redirects the output of programs, and byte
 * order marks. Such a log is read as UTF-8 and written as it was. */
#include "cli/symbolicate/symbolicate.h"

void log_encoding_find(struct log_encoding *e, const uint8_t *bytes, size_t size)
{
    bool little = size >= 2 && bytes[0] == 0xFF && bytes[1] == 0xFE;
    bool big = size >= 2 && bytes[0] == 0xFE && bytes[1] == 0xFF;
    e->has_mark = little || big || (size >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0);
    if (!e->has_mark && size >= 4) {
        little = bytes[0] && !bytes[1] && bytes[2] && !bytes[3];
        big = !bytes[0] && bytes[1] && !bytes[2] && bytes[3];
    }
    e->units = little ? LOG_UTF16_LITTLE : big ? LOG_UTF16_BIG : LOG_BYTES;
}

/* ---- in ---- */

static uint32_t unit_at(const struct log_encoding *e, const uint8_t *at)
{
    return e->units == LOG_UTF16_BIG ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
}

static bool is_first_half(uint32_t unit)
{
    return unit >= 0xD800 && unit < 0xDC00;
}

static bool is_second_half(uint32_t unit)
{
    return unit >= 0xDC00 && unit < 0xE000;
}

static void add_code(struct sl_buf *out, uint32_t code)
{
    char text[4];
    sl_buf_add(out, text, sl_utf8_encode(code, text));
}

/* Takes a character off the pending bytes; false when it may go on behind them. */
static bool take_pending(struct log_encoding *e, bool end)
{
    size_t size = e->pending_in_size, used = size < 2 ? size : 2;
    uint32_t code = size < 2 ? 0xFFFD : unit_at(e, e->pending_in);
    if (!size || (!end && (size < 2 || (is_first_half(code) && size < 4))))
        return false;
    uint32_t second = is_first_half(code) && size == 4 ? unit_at(e, e->pending_in + 2) : 0;
    if (is_second_half(second)) {
        code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
        used = 4;
    } else if (is_first_half(code) || is_second_half(code)) {
        code = 0xFFFD;
    }
    add_code(&e->in, code);
    memmove(e->pending_in, e->pending_in + used, size - used);
    e->pending_in_size -= used;
    return true;
}

void log_encoding_decode(struct log_encoding *e, const uint8_t *bytes, size_t size, bool end)
{
    for (size_t i = 0; i < size; i++) {
        e->pending_in[e->pending_in_size++] = bytes[i];
        take_pending(e, false);
    }
    while (end && take_pending(e, true)) {
    }
}

/* ---- out ---- */

static void put_unit(struct log_encoding *e, uint32_t unit)
{
    bool big = e->units == LOG_UTF16_BIG;
    sl_buf_u8(&e->out, (uint8_t)(big ? unit >> 8 : unit));
    sl_buf_u8(&e->out, (uint8_t)(big ? unit : unit >> 8));
}

static size_t sequence_size(uint8_t first)
{
    return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/* A whole sequence of UTF-8, which is well-formed but for bytes that a mapping or a map brought. */
static void put_sequence(struct log_encoding *e)
{
    const uint8_t *s = e->pending_out;
    size_t size = e->pending_out_size;
    uint32_t code = size == 1 ? s[0] : size == 2 ? s[0] & 0x1Fu : size == 3 ? s[0] & 0x0Fu : s[0] & 0x07u;
    for (size_t i = 1; i < size; i++)
        code = code << 6 | (s[i] & 0x3F);
    if (code > 0x10FFFF || (size == 1 && code > 0x7F))
        code = 0xFFFD;
    if (code < 0x10000) {
        put_unit(e, code);
    } else {
        put_unit(e, 0xD800 + ((code - 0x10000) >> 10));
        put_unit(e, 0xDC00 + ((code - 0x10000) & 0x3FF));
    }
    e->pending_out_size = 0;
}

void log_encoding_encode(struct log_encoding *e, struct sl_str text)
{
    bool first = !e->began_output;
    e->began_output = true;
    sl_buf_clear(&e->out);
    if (e->units == LOG_BYTES) {
        if (first && e->has_mark)
            sl_buf_cstr(&e->out, "\xEF\xBB\xBF");
        sl_buf_str(&e->out, text);
        return;
    }
    if (first && e->has_mark)
        put_unit(e, 0xFEFF);
    for (size_t i = 0; i < text.size; i++) {
        e->pending_out[e->pending_out_size++] = (uint8_t)text.data[i];
        if (e->pending_out_size == sequence_size(e->pending_out[0]))
            put_sequence(e);
    }
}

void log_encoding_free(struct log_encoding *e)
{
    sl_buf_free(&e->in);
    sl_buf_free(&e->out);
}
