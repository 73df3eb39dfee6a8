#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Each 6 bits are a character, without padding (RFC 4648, section 5). `bits` keeps old bits at its top; only the lowest `held` of it are
 * still to be written. */
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
    if (held)
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
    /* one digit has less than a byte; if there is padding it must fill the last group of four, with one or two
     * characters */
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
    return (bits & ((1u << held) - 1)) == 0;
}
