#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Each 6 bits become a character. Only the lowest `held` bits of `bits` are still to be written; the higher ones are old and ignored. */
size_t sl_base64url_encode(struct sl_bytes bytes, char *out)
{
    char *at = out;
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        bits = bits << 8 | bytes.data[i];
        for (held += 8; held >= 6; held -= 6)
            *at++ = alphabet[bits >> (held - 6) & 63];
    }
    if (held) /* 2 or 4 bits are left: zeros complete them */
        *at++ = alphabet[bits << (6 - held) & 63];
    return (size_t)(at - out);
}

/* Returns the value of a digit in either alphabet; -1 for other characters. */
static int digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

bool sl_base64_decode(struct sl_str text, uint8_t *out, size_t capacity, size_t *size)
{
    uint32_t bits = 0;
    unsigned held = 0;
    size_t digits = text.size;
    *size = 0;
    while (digits && text.data[digits - 1] == '=')
        digits--;
    /* A single digit in the last group of four has less than a byte. Padding, if there is any, must complete that group and be one or two
     * characters. */
    if (digits % 4 == 1 || (digits < text.size && (text.size % 4 || text.size - digits > 2)))
        return false;
    for (size_t i = 0; i < digits; i++) {
        int value = digit(text.data[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            if (*size == capacity)
                return false;
            out[(*size)++] = (uint8_t)(bits >> held);
        }
    }
    return (bits & ((1u << held) - 1)) == 0; /* the last digit's unused bits */
}
