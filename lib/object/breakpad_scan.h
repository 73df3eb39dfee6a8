/* Numbers of Breakpad records, scanned eight digits at a time.
 *
 * The scanners take a position and return the one behind what they read, or NULL when it is not there. They need no end:
 * the text ends in a newline, which is part of no number, and SCAN_SLACK bytes behind it can be read. Digits are found
 * and converted without a branch for each, as their number varies from field to field and would be mispredicted. */
#pragma once

#include <endian.h>
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

/* 0x80 in the first byte that is no digit, and nothing below it. Bytes above may be wrong: sums carry into them. */
static inline uint64_t scan_no_decimal(uint64_t word)
{
    uint64_t value = word ^ SCAN_EACH('0');
    return ((value + SCAN_EACH(0x80 - 10)) | value) & SCAN_EACH(0x80);
}

static inline uint64_t scan_no_hex(uint64_t word)
{
    uint64_t lower = word | SCAN_EACH(0x20);
    uint64_t digits = (word + SCAN_EACH(0x80 - '0')) & ~(word + SCAN_EACH(0x7F - '9'));
    uint64_t letters = (lower + SCAN_EACH(0x80 - 'a')) & ~(lower + SCAN_EACH(0x7F - 'f'));
    return (~(digits | letters) | word) & SCAN_EACH(0x80);
}

/* Eight characters that are digits, or NUL for leading zeros. */
static inline uint64_t scan_hex_value(uint64_t word)
{
    uint64_t v = (word & SCAN_EACH(0x0F)) + 9 * (word >> 6 & SCAN_EACH(1));
    v = (v << 4 | v >> 8) & UINT64_C(0x00FF00FF00FF00FF);
    v = (v << 8 | v >> 16) & UINT64_C(0x0000FFFF0000FFFF);
    return (v << 16 | v >> 32) & UINT32_MAX;
}

static inline uint64_t scan_decimal_value(uint64_t word)
{
    const uint64_t every_fourth = UINT64_C(0x000000FF000000FF);
    uint64_t v = word & SCAN_EACH(0x0F);
    v = v * 10 + (v >> 8); /* pairs, in every other byte */
    return ((v & every_fourth) * (100 + (UINT64_C(1000000) << 32)) +
            (v >> 16 & every_fourth) * (1 + (UINT64_C(10000) << 32))) >>
           32;
}

/* At most 16 digits. */
static inline const uint8_t *scan_hex(const uint8_t *at, uint64_t *value)
{
    uint64_t word = scan_load(at), stop = scan_no_hex(word), high = 0;
    if (!stop) {
        high = scan_hex_value(word);
        at += 8;
        word = scan_load(at);
        stop = scan_no_hex(word);
        if (!stop) {
            *value = high << 32 | scan_hex_value(word);
            return scan_no_hex(scan_load(at + 8)) & 0x80 ? at + 8 : NULL;
        }
        if (stop & 0x80) {
            *value = high;
            return at;
        }
    }
    unsigned bits = (unsigned)__builtin_ctzll(stop) & ~7u;
    if (!bits)
        return NULL;
    *value = high << (bits / 2) | scan_hex_value(word << (64 - bits));
    return at + bits / 8;
}

/* At most 16 digits. */
static inline const uint8_t *scan_decimal(const uint8_t *at, uint64_t *value)
{
    static const uint32_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    uint64_t word = scan_load(at), stop = scan_no_decimal(word), high = 0;
    if (!stop) {
        high = scan_decimal_value(word);
        at += 8;
        word = scan_load(at);
        stop = scan_no_decimal(word);
        if (!stop) {
            *value = high * 100000000 + scan_decimal_value(word);
            return scan_no_decimal(scan_load(at + 8)) & 0x80 ? at + 8 : NULL;
        }
        if (stop & 0x80) {
            *value = high;
            return at;
        }
    }
    unsigned bits = (unsigned)__builtin_ctzll(stop) & ~7u;
    if (!bits)
        return NULL;
    *value = high * powers[bits / 8] + scan_decimal_value(word << (64 - bits));
    return at + bits / 8;
}

/* What the next SCAN_WINDOW bytes are, a bit for each, the first in the lowest: what finds and checks all fields of a usual
 * line at once. */
struct scan_window {
    uint32_t spaces, digits, letters, newlines; /* letters: those of hexadecimal numbers */
};

#ifdef __SSE2__
static inline struct scan_window scan_half(const uint8_t *at)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)at), lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
    __m128i digits = _mm_sub_epi8(bytes, _mm_set1_epi8('0')), letters = _mm_sub_epi8(lower, _mm_set1_epi8('a'));
    return (struct scan_window){
        .spaces = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(' '))),
        .digits = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(digits, _mm_set1_epi8(9)), digits)),
        .letters = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(letters, _mm_set1_epi8(5)), letters)),
        .newlines = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'))),
    };
}

static inline struct scan_window scan_window(const uint8_t *at)
{
    struct scan_window low = scan_half(at), high = scan_half(at + 16);
    return (struct scan_window){
        .spaces = low.spaces | high.spaces << 16,
        .digits = low.digits | high.digits << 16,
        .letters = low.letters | high.letters << 16,
        .newlines = low.newlines | high.newlines << 16,
    };
}
#else
static inline struct scan_window scan_window(const uint8_t *at)
{
    (void)at;
    return (struct scan_window){0}; /* nothing is usual: everything is scanned number by number */
}
#endif

static inline uint64_t scan_hex_digit(uint8_t digit)
{
    return (digit & 0x0Fu) + 9u * (digit >> 6);
}

/* Numbers of one to eight digits at [begin, end), which are digits. */
static inline uint64_t scan_hex_at(const uint8_t *at, unsigned begin, unsigned end)
{
    return scan_hex_value(scan_load(at + begin) << (64 - 8 * (end - begin)));
}

static inline uint64_t scan_decimal_at(const uint8_t *at, unsigned begin, unsigned end)
{
    return scan_decimal_value(scan_load(at + begin) << (64 - 8 * (end - begin)));
}

/* At least one space or tab. */
static inline const uint8_t *scan_blanks(const uint8_t *at)
{
    if (*at != ' ' && *at != '\t')
        return NULL;
    do
        at++;
    while (*at == ' ' || *at == '\t');
    return at;
}

/* Behind the newline, if nothing but blanks is before it. */
static inline const uint8_t *scan_line_end(const uint8_t *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r')
        at++;
    return *at == '\n' ? at + 1 : NULL;
}
