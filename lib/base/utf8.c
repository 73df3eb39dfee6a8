#include "base/buf.h"

size_t sl_utf8_sequence(const char *text, size_t left, size_t *bad)
{
    const uint8_t *s = (const uint8_t *)text;
    /* The first byte says how many follow; 0 if it cannot begin a sequence: 0x80 to 0xBF continue one, 0xC0 and 0xC1
     * would be overlong. */
    size_t size = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    size_t good = 1;
    /* The range of the second byte excludes overlong forms, surrogates and code points above U+10FFFF; all later bytes have the full
     * range. */
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

struct sl_str sl_utf8_next_valid(struct sl_str text, size_t *at)
{
    size_t bad, size = sl_utf8_sequence(text.data + *at, text.size - *at, &bad);
    struct sl_str character = size ? (struct sl_str){text.data + *at, size} : SL_STR("\xEF\xBF\xBD");
    *at += size ? size : bad;
    return character;
}

void sl_buf_utf8(struct sl_buf *buf, struct sl_str text)
{
    for (size_t at = 0; at < text.size && !buf->failed;)
        sl_buf_str(buf, sl_utf8_next_valid(text, &at));
}

bool sl_str_is_utf8(struct sl_str text)
{
    if (!text.size) /* data may be NULL */
        return true;
    const uint8_t *at = (const uint8_t *)text.data, *end = at + text.size;
    while (at < end) {
        uint64_t word;
        /* skips eight bytes of ASCII at a time */
        while (end - at >= 8 && (memcpy(&word, at, 8), !(word & UINT64_C(0x8080808080808080))))
            at += 8;
        /* 1: the end is reached; any number but 0, which means ill-formed */
        size_t size = at < end ? sl_utf8_sequence((const char *)at, (size_t)(end - at), NULL) : 1;
        if (!size)
            return false;
        at += at < end ? size : 0;
    }
    return true;
}
