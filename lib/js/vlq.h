/* Base64 VLQ (ECMA-426, section 5): numbers of digits to base 32, the least one first, each but the last with a bit that says
 * there is more; the lowest bit of the number is its sign. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What a byte of mappings is: a digit's value, or one of these. */
enum { VLQ_FOREIGN = 64, VLQ_COMMA, VLQ_SEMICOLON, VLQ_END };

extern const uint8_t js_vlq_kinds[256]; /* the quote that ends a JSON text is the end, as is NUL */

static inline bool vlq_is_digit(uint8_t kind)
{
    return kind < VLQ_FOREIGN;
}

/* Adds the number at `*at`, modulo 2^32. False when it has no end, or more digits than 64 bits are worth. A byte that is no digit
 * can be read behind all digits. */
static inline bool vlq_add(const uint8_t **at, uint32_t *sum)
{
    const uint8_t *next = *at;
    uint8_t digit = js_vlq_kinds[*next++];
    uint64_t value = digit & 31;
    for (unsigned shift = 5; __builtin_expect((digit & 32) != 0, 0); shift += 5) {
        digit = js_vlq_kinds[*next++];
        if (!vlq_is_digit(digit) || shift > 60)
            return false;
        value |= (uint64_t)(digit & 31) << shift;
    }
    uint32_t magnitude = (uint32_t)(value >> 1);
    *sum += value & 1 ? 0 - magnitude : magnitude;
    *at = next;
    return true;
}
