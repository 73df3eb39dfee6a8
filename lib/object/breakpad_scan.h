/* Numbers of Breakpad records, scanned eight digits at a time.
 *
 * The scanners take a position and return the position after the item, or NULL if the item is not there. They take no end pointer:
 * the text ends in a newline, which is part of no number, and SCAN_SLACK bytes after it are readable. Digits are found and
 * converted without a branch per digit: their count varies from field to field, so the branch would be mispredicted. */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { SCAN_WINDOW = 32, SCAN_SLACK = SCAN_WINDOW };

#define SCAN_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Eight characters, the first in the lowest byte. */
static inline uint64_t scan_load(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return le64toh(word);
}

/* Returns 0x80 in the lowest byte that is not a digit, 0 in the bytes below it. Bytes above may be wrong: sums carry into them. */
static inline uint64_t scan_no_decimal(uint64_t word)
{
    uint64_t value = word ^ SCAN_EACH('0');
    return ((value + SCAN_EACH(0x80 - 10)) | value) & SCAN_EACH(0x80);
}

/* Like scan_no_decimal, for hexadecimal digits. */
static inline uint64_t scan_no_hex(uint64_t word)
{
    uint64_t lower = word | SCAN_EACH(0x20);
    uint64_t digits = (word + SCAN_EACH(0x80 - '0')) & ~(word + SCAN_EACH(0x7F - '9'));
    uint64_t letters = (lower + SCAN_EACH(0x80 - 'a')) & ~(lower + SCAN_EACH(0x7F - 'f'));
    return (~(digits | letters) | word) & SCAN_EACH(0x80);
}

/* Converts eight hex digits; NUL counts as a leading zero. */
static inline uint64_t scan_hex_value(uint64_t word)
{
    uint64_t v = (word & SCAN_EACH(0x0F)) + 9 * (word >> 6 & SCAN_EACH(1));
    v = (v << 4 | v >> 8) & UINT64_C(0x00FF00FF00FF00FF);
    v = (v << 8 | v >> 16) & UINT64_C(0x0000FFFF0000FFFF);
    return (v << 16 | v >> 32) & UINT32_MAX;
}

/* Converts eight decimal digits, the first in the lowest byte: pairs, then groups of four, then all, so without a loop. */
static inline uint64_t scan_decimal_value(uint64_t word)
{
    const uint64_t every_fourth = UINT64_C(0x000000FF000000FF);
    uint64_t v = word & SCAN_EACH(0x0F);
    v = v * 10 + (v >> 8); /* pairs, in every other byte */
    return ((v & every_fourth) * (100 + (UINT64_C(1000000) << 32)) +
            (v >> 16 & every_fourth) * (1 + (UINT64_C(10000) << 32))) >>
           32;
}

/* Reads a number of at most 16 digits. Always inlined, so that `hex` is a constant. */
static inline __attribute__((always_inline)) const uint8_t *scan_number(const uint8_t *at, uint64_t *value, bool hex)
{
    static const uint32_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    uint64_t word = scan_load(at), stop = hex ? scan_no_hex(word) : scan_no_decimal(word), high = 0;
    if (!stop) {
        high = hex ? scan_hex_value(word) : scan_decimal_value(word);
        at += 8;
        word = scan_load(at);
        stop = hex ? scan_no_hex(word) : scan_no_decimal(word);
        if (!stop) {
            uint64_t behind = scan_load(at + 8);
            *value = hex ? high << 32 | scan_hex_value(word) : high * 100000000 + scan_decimal_value(word);
            return (hex ? scan_no_hex(behind) : scan_no_decimal(behind)) & 0x80 ? at + 8 : NULL;
        }
        if (stop & 0x80) {
            *value = high;
            return at;
        }
    }
    unsigned bits = (unsigned)__builtin_ctzll(stop) & ~7u;
    if (!bits)
        return NULL;
    word <<= 64 - bits;
    *value = hex ? high << (bits / 2) | scan_hex_value(word) : high * powers[bits / 8] + scan_decimal_value(word);
    return at + bits / 8;
}

static inline const uint8_t *scan_hex(const uint8_t *at, uint64_t *value)
{
    return scan_number(at, value, true);
}

static inline const uint8_t *scan_decimal(const uint8_t *at, uint64_t *value)
{
    return scan_number(at, value, false);
}

/* Finds the ends of all fields of a usual line at once. Bit i is set if byte i of the next SCAN_WINDOW bytes ends a field: it is less
 * than '0' or not ASCII. */
#ifdef __SSE2__
static inline uint32_t scan_stops(const uint8_t *at)
{
    const __m128i digit = _mm_set1_epi8('0');
    __m128i low = _mm_cmplt_epi8(_mm_loadu_si128((const __m128i *)at), digit);
    __m128i high = _mm_cmplt_epi8(_mm_loadu_si128((const __m128i *)(at + 16)), digit);
    return (uint32_t)_mm_movemask_epi8(low) | (uint32_t)_mm_movemask_epi8(high) << 16;
}
#else
static inline uint32_t scan_stops(const uint8_t *at)
{
    (void)at;
    return 0; /* without SSE2 no line counts as usual: all are scanned number by number */
}
#endif

/* Finds the ends of `count` fields that are separated by single spaces; the caller checks the byte at the end of the last one. False
 * unless each field has one to eight characters. */
static inline bool scan_fields(const uint8_t *at, unsigned *ends, unsigned count)
{
    uint32_t stops = scan_stops(at);
    unsigned wrong = 0, begin = 0;
    for (unsigned i = 0; i < count; i++) { /* if there are too few, the last one ends where the one before does */
        ends[i] = (unsigned)__builtin_ctz(stops | UINT32_C(1) << (SCAN_WINDOW - 1));
        wrong |= ends[i] - begin - 1;
        begin = ends[i] + 1;
        stops &= stops - 1;
    }
    for (unsigned i = 0; i + 1 < count; i++)
        if (at[ends[i]] != ' ')
            return false;
    return wrong < 8;
}

/* Loads the one to eight characters at [begin, end), padded in front with NULs, which convert as leading zeros. */
static inline uint64_t scan_lane(const uint8_t *at, unsigned begin, unsigned end)
{
    return scan_load(at + begin) << ((begin - end) * 8 & 63);
}

/* Converts two numbers at once: a usual line has two of each kind. `wrong` is not 0 if a character is not a digit. */
struct scan_pair {
    uint32_t first, second, wrong;
};

#ifdef __SSE2__
static inline struct scan_pair scan_hex_pair(uint64_t first, uint64_t second)
{
    __m128i text = _mm_set_epi64x((int64_t)second, (int64_t)first), above = _mm_cmpgt_epi8(text, _mm_set1_epi8('9'));
    __m128i letters = _mm_sub_epi8(_mm_or_si128(text, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
    __m128i good = _mm_cmpeq_epi8(_mm_min_epu8(letters, _mm_set1_epi8(5)), letters);
    __m128i digits = _mm_add_epi8(_mm_and_si128(text, _mm_set1_epi8(0x0F)), _mm_and_si128(above, _mm_set1_epi8(9)));
    __m128i bytes = _mm_or_si128(_mm_slli_epi16(digits, 4), _mm_srli_epi16(digits, 8));
    bytes = _mm_and_si128(bytes, _mm_set1_epi16(0xFF));
    uint64_t both = __builtin_bswap64((uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(bytes, bytes)));
    return (struct scan_pair){(uint32_t)(both >> 32), (uint32_t)both,
                              (uint32_t)_mm_movemask_epi8(_mm_andnot_si128(good, above))};
}

static inline struct scan_pair scan_decimal_pair(uint64_t first, uint64_t second)
{
    __m128i text = _mm_set_epi64x((int64_t)second, (int64_t)first), digits = _mm_and_si128(text, _mm_set1_epi8(0x0F));
    __m128i pairs = _mm_srli_epi16(_mm_mullo_epi16(digits, _mm_set1_epi16((10 << 8) + 1)), 8);
    __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32((1 << 16) + 100));
    __m128i eights = _mm_madd_epi16(_mm_packs_epi32(fours, fours), _mm_set1_epi32((1 << 16) + 10000));
    uint64_t both = (uint64_t)_mm_cvtsi128_si64(eights);
    return (struct scan_pair){(uint32_t)both, (uint32_t)(both >> 32),
                              (uint32_t)_mm_movemask_epi8(_mm_cmpgt_epi8(text, _mm_set1_epi8('9')))};
}
#else
static inline struct scan_pair scan_hex_pair(uint64_t first, uint64_t second)
{
    return (struct scan_pair){(uint32_t)scan_hex_value(first), (uint32_t)scan_hex_value(second), 1};
}

static inline struct scan_pair scan_decimal_pair(uint64_t first, uint64_t second)
{
    return (struct scan_pair){(uint32_t)scan_decimal_value(first), (uint32_t)scan_decimal_value(second), 1};
}
#endif

/* Skips at least one space or tab. */
static inline const uint8_t *scan_blanks(const uint8_t *at)
{
    if (*at != ' ' && *at != '\t')
        return NULL;
    do
        at++;
    while (*at == ' ' || *at == '\t');
    return at;
}

/* Skips blanks and the newline after them; NULL if anything else comes first. */
static inline const uint8_t *scan_line_end(const uint8_t *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r')
        at++;
    return *at == '\n' ? at + 1 : NULL;
}
