/* Converts source files to UTF-8. */
#include "source/text.h"

/* Appends a code point as UTF-8. */
static void add_code(struct sl_buf *out, uint32_t code)
{
    char text[4];
    sl_buf_add(out, text, sl_utf8_encode(code, text));
}

/* Appends UTF-16 text as UTF-8; unpaired surrogates and an odd byte at the end become U+FFFD. */
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
        sl_buf_utf8(scratch, plain);
        *text = sl_buf_view(scratch);
    }
    return !scratch->failed && (!text->size || !memchr(text->data, '\0', text->size));
}
