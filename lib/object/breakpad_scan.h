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

/* SCAN_WINDOW: bytes that scan_fields() looks at. SCAN_SLACK: bytes after the text that must be readable. */
enum { SCAN_WINDOW = 32, SCAN_SLACK = SCAN_WINDOW };

/* A word with the same value in each of its eight bytes. */
#define SCAN_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Loads eight characters, the first into the lowest byte. */
static inline uint64_t scan_load(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return le64toh(word);
}

/* Returns a word with 0x80 in the first byte that is not a decimal digit and 0 in the bytes before it; 0 if all eight are digits. The bytes
 * after it may be wrong, because sums carry into them. */
static inline uint64_t scan_no_decimal(uint64_t word)
{
    uint64_t value = word ^ SCAN_EACH('0');
    return ((value + SCAN_EACH(0x80 - 10)) | value) & SCAN_EACH(0x80);
}

/* Returns a word with 0x80 in the first byte that is not a hex digit and 0 in the bytes before it; 0 if all eight are digits. The bytes
 * after it may be wrong, because sums carry into them. */
static inline uint64_t scan_no_hex(uint64_t word)
{
    uint64_t lower = word | SCAN_EACH(0x20);
    uint64_t digits = (word + SCAN_EACH(0x80 - '0')) & ~(word + SCAN_EACH(0x7F - '9'));
    uint64_t letters = (lower + SCAN_EACH(0x80 - 'a')) & ~(lower + SCAN_EACH(0x7F - 'f'));
    return (~(digits | letters) | word) & SCAN_EACH(0x80);
}

/* Converts eight hex digits, the first in the lowest byte. Leading NULs count as zeros. */
static inline uint64_t scan_hex_value(uint64_t word)
{
    uint64_t v = (word & SCAN_EACH(0x0F)) + 9 * (word >> 6 & SCAN_EACH(1)); /* bit 6 is set in letters only */
    v = (v << 4 | v >> 8) & UINT64_C(0x00FF00FF00FF00FF);
    v = (v << 8 | v >> 16) & UINT64_C(0x0000FFFF0000FFFF);
    return (v << 16 | v >> 32) & UINT32_MAX;
}

/* Converts eight decimal digits, the first in the lowest byte: adds up pairs, then the four pairs, so needs no loop. Leading NULs count as
 * zeros. */
static inline uint64_t scan_decimal_value(uint64_t word)
{
    const uint64_t every_fourth = UINT64_C(0x000000FF000000FF);
    uint64_t v = word & SCAN_EACH(0x0F);
    v = v * 10 + (v >> 8); /* pairs, in every other byte */
    return ((v & every_fourth) * (100 + (UINT64_C(1000000) << 32)) +
            (v >> 16 & every_fourth) * (1 + (UINT64_C(10000) << 32))) >>
           32;
}

/* Reads a number of 1 to 16 digits. Returns the position after the number; NULL if there is none or it has more digits. Always inlined, so
 * that `hex` is a constant. */
static inline __attribute__((always_inline)) const uint8_t *scan_number(const uint8_t *at, uint64_t *value, bool hex)
{
    static const uint32_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    /* `stop`: 0x80 in the first byte of `word` that is no digit; `high`: value of the first eight digits, if there are more */
    uint64_t word = scan_load(at), stop = hex ? scan_no_hex(word) : scan_no_decimal(word), high = 0;
    if (!stop) {
        high = hex ? scan_hex_value(word) : scan_decimal_value(word);
        at += 8;
        word = scan_load(at);
        stop = hex ? scan_no_hex(word) : scan_no_decimal(word);
        if (!stop) { /* 16 digits: a 17th is an error */
            uint64_t behind = scan_load(at + 8);
            *value = hex ? high << 32 | scan_hex_value(word) : high * 100000000 + scan_decimal_value(word);
            return (hex ? scan_no_hex(behind) : scan_no_decimal(behind)) & 0x80 ? at + 8 : NULL;
        }
        if (stop & 0x80) { /* exactly eight digits */
            *value = high;
            return at;
        }
    }
    unsigned bits = (unsigned)__builtin_ctzll(stop) & ~7u; /* 8 for each digit in `word` */
    if (!bits)
        return NULL;
    word <<= 64 - bits; /* drops what follows the digits; NULs in front of them count as zeros */
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

/* Returns a bit for each of the next SCAN_WINDOW bytes: bit i is set if byte i is less than '0' or not ASCII, so ends a number. Without
 * SSE2 it returns 0: scan_fields() then fails for every line, and callers scan number by number. */
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
    return 0;
}
#endif

/* Sets `ends` to the offsets of the ends of `count` fields of one to eight characters, separated by single spaces; false if the text at
 * `at` does not begin with such fields. The caller checks that the byte at the end of the last field is a separator. */
static inline bool scan_fields(const uint8_t *at, unsigned *ends, unsigned count)
{
    uint32_t stops = scan_stops(at);
    unsigned sizes = 0, begin = 0; /* sizes: bitwise or of all sizes minus 1, so less than 8 if all are 1 to 8 */
    for (unsigned i = 0; i < count; i++) {
        /* If no stop is left, the field seems to end at byte 31, which is no separator: the caller's check or the one below fails. */
        ends[i] = (unsigned)__builtin_ctz(stops | UINT32_C(1) << (SCAN_WINDOW - 1));
        sizes |= ends[i] - begin - 1;
        begin = ends[i] + 1;
        stops &= stops - 1; /* clears the lowest bit */
    }
    for (unsigned i = 0; i + 1 < count; i++)
        if (at[ends[i]] != ' ')
            return false;
    return sizes < 8;
}

/* Loads the one to eight characters at [at + begin, at + end), with NULs in front of them to fill eight bytes: NULs convert as zeros. */
static inline uint64_t scan_lane(const uint8_t *at, unsigned begin, unsigned end)
{
    return scan_load(at + begin) << ((begin - end) * 8 & 63);
}

/* Two numbers that were converted at once: a line record has two hex and two decimal ones. `wrong` is not 0 if a character above '9' is no
 * digit; characters below '0' are not checked, as scan_fields() ends fields there. */
struct scan_pair {
    uint32_t first, second, wrong;
};

#ifdef __SSE2__
/* Converts two numbers of up to eight hex digits, loaded by scan_lane(): gets the value of each digit, joins each two to a byte, and swaps
 * the bytes. A character above '9' that is no letter from a to f is wrong. */
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

/* Converts two numbers of up to eight decimal digits, loaded by scan_lane(): adds up pairs of digits, then pairs of these, then all. A
 * character above '9' is wrong. */
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
#else /* never called, as scan_fields() fails without SSE2 */
static inline struct scan_pair scan_hex_pair(uint64_t first, uint64_t second)
{
    return (struct scan_pair){(uint32_t)scan_hex_value(first), (uint32_t)scan_hex_value(second), 1};
}

static inline struct scan_pair scan_decimal_pair(uint64_t first, uint64_t second)
{
    return (struct scan_pair){(uint32_t)scan_decimal_value(first), (uint32_t)scan_decimal_value(second), 1};
}
#endif

/* Skips spaces and tabs; NULL if there is none. */
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
