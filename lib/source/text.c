#include "source/text.h"

size_t sl_utf8_sequence(const char *text, size_t left, size_t *bad)
{
    const uint8_t *s = (const uint8_t *)text;
    size_t size = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    size_t good = 1;
    /* The second byte's range tells overlong forms, surrogates and what is beyond U+10FFFF. */
    uint8_t low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
    uint8_t high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
    while (good < size && good < left && s[good] >= low && s[good] <= high) {
        good++;
        low = 0x80;
        high = 0xBF;
    }
    if (bad)
        *bad = good;
    return good == size ? size : 0;
}

size_t sl_utf8_encode(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

uint32_t sl_utf8_next(struct sl_str text, size_t *at)
{
    size_t bad, size = sl_utf8_sequence(text.data + *at, text.size - *at, &bad);
    const uint8_t *s = (const uint8_t *)text.data + *at;
    *at += size ? size : bad;
    switch (size) {
    case 1: return s[0];
    case 2: return (s[0] & 0x1Fu) << 6 | (s[1] & 0x3Fu);
    case 3: return (s[0] & 0x0Fu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu);
    case 4: return (s[0] & 0x07u) << 18 | (s[1] & 0x3Fu) << 12 | (s[2] & 0x3Fu) << 6 | (s[3] & 0x3Fu);
    default: return 0xFFFD;
    }
}

static void add_code(struct sl_buf *out, uint32_t code)
{
    char text[4];
    sl_buf_add(out, text, sl_utf8_encode(code, text));
}

static void decode_utf16(struct sl_bytes bytes, bool big_endian, struct sl_buf *out)
{
    struct sl_reader r = sl_reader(bytes, big_endian);
    while (sl_reader_left(&r) >= 2 && !out->failed) {
        uint32_t code = sl_read_u16(&r);
        if (code >= 0xD800 && code < 0xDC00 && sl_reader_left(&r) >= 2) {
            struct sl_reader ahead = r;
            uint32_t low = sl_read_u16(&ahead);
            if (low >= 0xDC00 && low < 0xE000) {
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                r = ahead;
            }
        }
        add_code(out, code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
    }
    if (sl_reader_left(&r))
        add_code(out, 0xFFFD);
}

static void replace_malformed(struct sl_str text, struct sl_buf *out)
{
    for (size_t at = 0; at < text.size && !out->failed;) {
        size_t bad, size = sl_utf8_sequence(text.data + at, text.size - at, &bad);
        if (size)
            sl_buf_add(out, text.data + at, size);
        else
            add_code(out, 0xFFFD);
        at += size ? size : bad;
    }
}

bool sl_text_decode(struct sl_bytes bytes, struct sl_buf *scratch, struct sl_str *text)
{
    struct sl_str plain = {(const char *)bytes.data, bytes.size};
    bool little = sl_str_starts(plain, SL_STR("\xFF\xFE")), big = sl_str_starts(plain, SL_STR("\xFE\xFF"));
    sl_buf_clear(scratch);
    if (sl_str_starts(plain, SL_STR("\xEF\xBB\xBF")))
        plain = (struct sl_str){plain.data + 3, plain.size - 3};
    *text = plain;
    if (little || big) {
        decode_utf16((struct sl_bytes){bytes.data + 2, bytes.size - 2}, big, scratch);
        *text = sl_buf_view(scratch);
    } else if (!sl_str_is_utf8(plain)) {
        replace_malformed(plain, scratch);
        *text = sl_buf_view(scratch);
    }
    return !scratch->failed && (!text->size || !memchr(text->data, '\0', text->size));
}
