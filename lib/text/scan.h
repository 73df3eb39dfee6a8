/* A cursor over a line, for matching without backtracking: each function moves past what it matched, or not at all. Private to
 * this folder. */
#pragma once

#include "base/bytes.h"

struct sl_scan {
    const char *at, *end;
};

static inline struct sl_scan sl_scan(struct sl_str text)
{
    return (struct sl_scan){text.data, text.data + text.size};
}

static inline size_t sl_scan_left(const struct sl_scan *s)
{
    return (size_t)(s->end - s->at);
}

static inline struct sl_str sl_scan_rest(const struct sl_scan *s)
{
    return (struct sl_str){s->at, sl_scan_left(s)};
}

static inline bool sl_scan_char(struct sl_scan *s, char c)
{
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static inline bool sl_scan_word(struct sl_scan *s, struct sl_str word)
{
    if (sl_scan_left(s) < word.size || memcmp(s->at, word.data, word.size) != 0)
        return false;
    s->at += word.size;
    return true;
}

/* Skips blanks and tabs; returns their number. */
static inline size_t sl_scan_blanks(struct sl_scan *s)
{
    const char *begin = s->at;
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
        s->at++;
    return (size_t)(s->at - begin);
}

/* Skips decimal digits and stores them in `*digits`; false if there is none. */
static inline bool sl_scan_digits(struct sl_scan *s, struct sl_str *digits)
{
    const char *begin = s->at;
    while (s->at < s->end && sl_is_digit(*s->at))
        s->at++;
    *digits = (struct sl_str){begin, (size_t)(s->at - begin)};
    return digits->size > 0;
}

/* Reads a number of 1 to 16 hex digits; false if there is none or it has more digits. */
static inline bool sl_scan_hex(struct sl_scan *s, uint64_t *value)
{
    const char *at = s->at;
    *value = 0;
    for (; at < s->end && sl_hex_digit(*at) >= 0 && at - s->at < 17;
         at++) /* a 17th digit is read to refuse the number */
        *value = *value << 4 | (uint64_t)sl_hex_digit(*at);
    if (at == s->at || at - s->at > 16)
        return false;
    s->at = at;
    return true;
}

/* Reads "0x" or "0X" and a number of 1 to 16 hex digits. False otherwise; then nothing is skipped. */
static inline bool sl_scan_0x(struct sl_scan *s, uint64_t *value)
{
    struct sl_scan from = *s;
    if (!sl_scan_char(&from, '0') || !(sl_scan_char(&from, 'x') || sl_scan_char(&from, 'X')) ||
        !sl_scan_hex(&from, value))
        return false;
    *s = from;
    return true;
}

/* Returns the text between two positions. */
static inline struct sl_str sl_scan_between(const char *begin, const char *end)
{
    return (struct sl_str){begin, (size_t)(end - begin)};
}
