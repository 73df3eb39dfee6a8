/* Finds and copies "plain" text, which needs no escape in JSON and similar formats, sixteen bytes at a time. */
#pragma once

#include "base/bytes.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* True for a plain character: printable ASCII except quote and backslash. */
static inline bool sl_is_plain(char c)
{
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

enum { SL_PLAIN_SLACK = 16 };

/* Returns how many plain bytes (sl_is_plain) the text begins with, and copies them to `to` (NULL: no copy). The bytes after them may be
 * overwritten: `to` must have SL_PLAIN_SLACK bytes more than the text. */
static inline size_t sl_plain_copy(char *to, struct sl_str text)
{
    size_t i = 0;
#ifdef __SSE2__
    for (; i < text.size; i += 16) {
        char last[16] = {0}; /* padded with bytes that are not plain */
        size_t left = text.size - i;
        const char *at = text.data + i;
        if (left < 16)
            at = memcpy(last, at, left);
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i plain = _mm_cmpgt_epi8(bytes, _mm_set1_epi8(0x1F)); /* signed: bytes above 0x7F are not plain */
        __m128i other = _mm_or_si128(
            _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
            _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7F))));
        if (to)
            _mm_storeu_si128((__m128i *)(void *)(to + i), bytes);
        unsigned stops = ~(unsigned)_mm_movemask_epi8(_mm_andnot_si128(other, plain)) & 0xFFFF;
        if (stops)
            return i + (size_t)__builtin_ctz(stops);
    }
    return text.size;
#endif
    for (; i < text.size && sl_is_plain(text.data[i]); i++) /* processors without SSE2 */
        if (to)
            to[i] = text.data[i];
    return i;
}

/* Returns how many plain bytes (sl_is_plain) the text begins with. */
static inline size_t sl_plain_run(struct sl_str text)
{
    return sl_plain_copy(NULL, text);
}
