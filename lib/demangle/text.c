#include "demangle/text.h"

bool text_is_plain(struct sl_str text)
{
    unsigned bad = 0; /* no branch, so that the compiler checks several characters at once */
    for (size_t i = 0; i < text.size; i++)
        bad |= (uint8_t)(text.data[i] - 0x21) > 0x7E - 0x21;
    return !bad;
}

void text_add_char(struct sl_buf *out, uint32_t c)
{
    char text[4];
    sl_buf_add(out, text, sl_utf8_encode(c, text));
}

enum { BASE = 36, T_MIN = 1, T_MAX = 26, SKEW = 38, DAMP = 700 };

/* Adapts the bias after each code point (RFC 3492, 6.1). */
static uint64_t adapt(uint64_t delta, size_t count, bool first)
{
    uint64_t bias = 0;
    delta = first ? delta / DAMP : delta / 2;
    delta += delta / count;
    for (; delta > (BASE - T_MIN) * T_MAX / 2; bias += BASE)
        delta /= BASE - T_MIN;
    return bias + (BASE - T_MIN + 1) * delta / (delta + SKEW);
}

/* Reads a generalized variable-length integer (RFC 3492, 3.3); false if it ends early or overflows. `a` to `z` are the digits 0 to 25, the
 * ten characters from first_digit on 26 to 35. */
static bool read_delta(struct sl_str *digits, uint64_t bias, char first_digit, uint64_t *delta)
{
    uint64_t weight = 1;
    *delta = 0;
    for (uint64_t k = BASE;; k += BASE) {
        if (!digits->size || weight > UINT32_MAX || *delta > UINT32_MAX)
            return false;
        char c = *digits->data;
        *digits = (struct sl_str){digits->data + 1, digits->size - 1};
        uint64_t digit = BASE;
        if (c >= 'a' && c <= 'z')
            digit = (uint64_t)(c - 'a');
        else if (c >= first_digit && c < first_digit + 10)
            digit = (uint64_t)(c - first_digit) + 26;
        uint64_t t = k <= bias + T_MIN ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias;
        if (digit == BASE)
            return false;
        *delta += digit * weight;
        if (digit < t)
            return true;
        weight *= BASE - t;
    }
}

bool text_punycode(struct sl_str basic, struct sl_str extended, char first_digit, uint32_t *chars, size_t *count)
{
    uint64_t n = 0x80, i = 0, bias = 72, delta;
    size_t size = 0;
    if (basic.size > TEXT_MAX_PUNYCODE)
        return false;
    for (; size < basic.size; size++)
        chars[size] = (uint8_t)basic.data[size];
    for (bool first = true; extended.size; first = false) {
        if (!read_delta(&extended, bias, first_digit, &delta) || size == TEXT_MAX_PUNYCODE)
            return false;
        size++;
        i += delta;
        n += i / size;
        i %= size;
        if (n > 0x10FFFF)
            return false;
        memmove(chars + i + 1, chars + i, (size - 1 - i) * sizeof *chars);
        chars[i++] = (uint32_t)n;
        bias = adapt(delta, size, first);
    }
    *count = size;
    return true;
}
