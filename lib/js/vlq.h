/* Base64 VLQ (ECMA-426, section 5): base-32 digits, least significant first; each digit but the last has the continuation bit
 * 32. The lowest bit of the number is its sign; minus zero means -2^31.
 *
 *     A = 0    C = 1    D = -1    gB = 16 (digits 32 + 0, 1: the bits 100000, sign 0) */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Kinds of bytes in `mappings` that are no base64 digit; the kind of a digit is its value, 0 to 63. VLQ_NOT_SINGLE is not a kind: it marks,
 * in js_vlq_single, a byte that is no number on its own. */
enum { VLQ_FOREIGN = 64, VLQ_COMMA, VLQ_SEMICOLON, VLQ_END, VLQ_NOT_SINGLE = INT8_MIN };

/* The kind of each byte. The quote that ends a JSON string is VLQ_END, and so is NUL. */
extern const uint8_t js_vlq_kinds[256];

/* The signed number that a byte alone encodes, if it is a digit without the continuation bit. VLQ_NOT_SINGLE for any other byte, and for
 * minus zero. */
extern const int8_t js_vlq_single[256];

static inline bool vlq_is_digit(uint8_t kind)
{
    return kind < VLQ_FOREIGN;
}

struct vlq_number {
    const uint8_t *behind; /* the byte after the number; NULL if it is malformed */
    uint32_t number;       /* its bits, of which the lowest is the sign of a signed number */
};

/* Reads the number whose first digit is at `next`. It is malformed if no digit follows one with the continuation bit, or if it has more
 * than 32 bits; zero digits beyond these are allowed. The text must end with a readable byte that is not a digit. */
static __attribute__((noinline)) struct vlq_number vlq_read_bits(const uint8_t *next)
{
    uint8_t digit = js_vlq_kinds[*next++];
    uint64_t value = digit & 31;
    for (unsigned shift = 5; digit & 32; shift += 5) {
        digit = js_vlq_kinds[*next++];
        if (!vlq_is_digit(digit) || (shift > 30 && digit & 31))
            return (struct vlq_number){NULL, 0};
        value |= shift > 30 ? 0 : (uint64_t)(digit & 31) << shift;
    }
    return (struct vlq_number){value >> 32 ? NULL : next, (uint32_t)value};
}

/* Adds the signed number at `*at` to `*sum` and moves `*at` past it. False, with `*at` unchanged, if there is no number or it
 * is malformed. Most numbers have one digit. A map has at most 4 GiB, too little for the sum to overflow. */
static inline bool vlq_add(const uint8_t **at, int64_t *sum)
{
    int8_t number = js_vlq_single[**at];
    if (number != VLQ_NOT_SINGLE) {
        ++*at;
        *sum += number;
        return true;
    }
    uint32_t low = js_vlq_kinds[(*at)[0]];
    if (!vlq_is_digit(low))
        return false;
    uint32_t high = js_vlq_kinds[(*at)[1]];
    if (low >= 32 && high < 32 && high + low != 33) { /* two digits, but not "hA", minus zero */
        int64_t magnitude = high << 4 | (low & 31) >> 1, sign = low & 1;
        *at += 2;
        *sum += (magnitude ^ -sign) + sign;
        return true;
    }
    struct vlq_number read = vlq_read_bits(*at);
    if (!read.behind)
        return false;
    int64_t magnitude = read.number >> 1, sign = read.number & 1;
    *at = read.behind;
    *sum += read.number == 1 ? INT32_MIN : (magnitude ^ -sign) + sign; /* 1, minus zero, means -2^31 */
    return true;
}

/* Adds the number without a sign at `*at` to `*sum` and moves `*at` past it. False, with `*at` unchanged, if there is no number, or it is
 * malformed or has more than 31 bits. */
static inline bool vlq_add_unsigned(const uint8_t **at, uint32_t *sum)
{
    if (!vlq_is_digit(js_vlq_kinds[**at]))
        return false;
    struct vlq_number read = vlq_read_bits(*at);
    if (!read.behind || read.number >> 31)
        return false;
    *at = read.behind;
    *sum += read.number;
    return true;
}
