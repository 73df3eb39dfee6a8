/* Views of bytes and text, and the bounds-checked reader through which all untrusted input is read.
 *
 * A view owns nothing. A reader has a sticky failure: after the first read past the end (or a bad LEB128) `failed` is
 * true and every further read returns zeros, so a parser may read a whole record and check once. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sl_bytes {
    const uint8_t *data; /* may be NULL when size is 0 */
    size_t size;
};

/* Text: UTF-8 unless said otherwise, not terminated, may hold NUL. */
struct sl_str {
    const char *data;
    size_t size;
};

#define SL_STR(literal) ((struct sl_str){"" literal, sizeof(literal) - 1})
#define SL_STR_FMT      "%.*s"
#define SL_STR_ARG(s)   sl_str_precision(s), (s).data ? (s).data : ""

/* Returns a size as the int that printf's %.* takes. Never negative, which would mean "up to the NUL". */
static inline int sl_str_precision(struct sl_str s)
{
    return s.size > INT_MAX ? INT_MAX : (int)s.size;
}

static inline struct sl_str sl_str(const char *text)
{
    return (struct sl_str){text, text ? strlen(text) : 0};
}

static inline bool sl_str_equal(struct sl_str a, struct sl_str b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Returns a number that is negative, 0 or positive as the bytes of `a` come before, equal or come after those of `b`. A text that is a
 * prefix of the other comes first. */
int sl_str_compare(struct sl_str a, struct sl_str b);
/* Calls sl_str_compare() for qsort: the arguments point to `struct sl_str`. */
int sl_str_order(const void *left, const void *right);

/* Returns a number that is negative, 0 or positive as `a` is below, equal to or above `b`: for qsort. */
static inline int sl_compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* True if the texts are equal, without regard to the case of ASCII letters. */
bool sl_str_equal_nocase(struct sl_str a, struct sl_str b);
bool sl_str_starts(struct sl_str text, struct sl_str prefix);
bool sl_str_ends(struct sl_str text, struct sl_str suffix);

/* True for ASCII digits, whatever the locale. */
static inline bool sl_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* True for ASCII white space: isspace() of the C locale, whatever the locale is. */
static inline bool sl_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Returns the value of a hex digit, -1 for any other character. */
static inline int sl_hex_digit(char c)
{
    char lower = (char)(c | 0x20);
    return sl_is_digit(c) ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Parses a text of decimal or hex digits and nothing else: no sign, no blank, no prefix. False for any other text, an empty one,
 * and a number above 64 bits. */
bool sl_parse_u64(struct sl_str digits, uint64_t *value);
bool sl_parse_hex_u64(struct sl_str digits, uint64_t *value);

/* Parses and removes the decimal digits at the beginning of `rest`. False when there are none. Also false when the number exceeds 64 bits;
 * its digits are removed nevertheless. */
bool sl_str_take_u64(struct sl_str *rest, uint64_t *value);

/* Returns the text without white space at both ends. */
struct sl_str sl_str_trimmed(struct sl_str text);

/* Removes the next line from `rest` and returns it without its LF or CRLF; false at the end. */
bool sl_str_next_line(struct sl_str *rest, struct sl_str *line);

/* True for well-formed UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. */
bool sl_str_is_utf8(struct sl_str text);

/* Returns the length of the well-formed sequence at `s` (`left` bytes are readable, at least 1). For an ill-formed one returns
 * 0, and `*bad` (may be NULL) is the number of bytes that one U+FFFD replaces, at least 1. */
size_t sl_utf8_sequence(const char *s, size_t left, size_t *bad);

/* Encodes a code point that is not a surrogate in at most four bytes; returns their number. */
size_t sl_utf8_encode(uint32_t code, char *out);

/* Decodes the code point at `*at`, which is before the end, and advances `*at`. U+FFFD for ill-formed bytes. */
uint32_t sl_utf8_next(struct sl_str text, size_t *at);

/* Returns the character at `*at`, which is before the end, as well-formed UTF-8 and advances `*at`. Ill-formed bytes become one
 * U+FFFD for each maximal subpart (The Unicode Standard, 3.9, "U+FFFD Substitution of Maximal Subparts"). */
struct sl_str sl_utf8_next_valid(struct sl_str text, size_t *at);

/* Returns the part [offset, offset + size) of `bytes`. If it is not inside: empty with data NULL, and `*ok` (may be NULL) is
 * false. */
struct sl_bytes sl_bytes_slice(struct sl_bytes bytes, uint64_t offset, uint64_t size, bool *ok);

/* Returns the bytes from `offset` to the end; empty when `offset` is outside. */
static inline struct sl_bytes sl_bytes_from(struct sl_bytes bytes, uint64_t offset)
{
    return offset <= bytes.size ? (struct sl_bytes){bytes.data + offset, bytes.size - (size_t)offset}
                                : (struct sl_bytes){NULL, 0};
}

/* Returns the bytes from `offset` on, at most `size` of them; fewer when fewer are left. */
static inline struct sl_bytes sl_bytes_part(struct sl_bytes bytes, uint64_t offset, uint64_t size)
{
    struct sl_bytes part = sl_bytes_from(bytes, offset);
    part.size = part.size < size ? part.size : (size_t)size;
    return part;
}

struct sl_reader {
    const uint8_t *begin, *at, *end;
    bool big_endian;
    bool failed;
};

static inline struct sl_reader sl_reader(struct sl_bytes bytes, bool big_endian)
{
    return (struct sl_reader){bytes.data, bytes.data, bytes.data ? bytes.data + bytes.size : NULL, big_endian, false};
}

static inline size_t sl_reader_left(const struct sl_reader *r)
{
    return (size_t)(r->end - r->at);
}
static inline size_t sl_reader_offset(const struct sl_reader *r)
{
    return (size_t)(r->at - r->begin);
}

/* Moves to `offset` from the beginning; fails past the end. */
void sl_reader_seek(struct sl_reader *r, uint64_t offset);
/* Moves forward by `count` bytes; fails past the end. */
void sl_reader_skip(struct sl_reader *r, uint64_t count);

/* True if `size` bytes are left; otherwise the reader fails and moves to the end, so that nothing more is read. */
static inline bool sl_reader_need(struct sl_reader *r, size_t size)
{
    if (__builtin_expect(size <= sl_reader_left(r) && !r->failed, 1))
        return true;
    r->failed = true;
    r->at = r->end;
    return false;
}

/* Read an integer in the reader's byte order. If too few bytes are left, the reader fails and they return 0. */
static inline uint8_t sl_read_u8(struct sl_reader *r)
{
    return sl_reader_need(r, 1) ? *r->at++ : 0;
}

static inline uint16_t sl_read_u16(struct sl_reader *r)
{
    uint16_t v;
    if (!sl_reader_need(r, 2))
        return 0;
    memcpy(&v, r->at, 2);
    r->at += 2;
    return r->big_endian ? __builtin_bswap16(v) : v;
}

static inline uint32_t sl_read_u32(struct sl_reader *r)
{
    uint32_t v;
    if (!sl_reader_need(r, 4))
        return 0;
    memcpy(&v, r->at, 4);
    r->at += 4;
    return r->big_endian ? __builtin_bswap32(v) : v;
}

static inline uint64_t sl_read_u64(struct sl_reader *r)
{
    uint64_t v;
    if (!sl_reader_need(r, 8))
        return 0;
    memcpy(&v, r->at, 8);
    r->at += 8;
    return r->big_endian ? __builtin_bswap64(v) : v;
}

/* Reads an unsigned integer of 1, 2, 3, 4 or 8 bytes; fails for any other size. */
uint64_t sl_read_uint(struct sl_reader *r, unsigned size);

/* Read a LEB128 number (DWARF 5, section 7.6), unsigned or signed. Fail for encodings longer than ten bytes and for values above 64 bits. A
 * longer encoding than needed, padded with groups of zero or sign bits, is accepted. */
uint64_t sl_read_uleb_slow(struct sl_reader *r);
int64_t sl_read_sleb(struct sl_reader *r);

/* Reads an unsigned LEB128 number; most have one byte and are read here. */
static inline uint64_t sl_read_uleb(struct sl_reader *r)
{
    if (__builtin_expect(r->at < r->end && *r->at < 0x80, 1))
        return *r->at++;
    return sl_read_uleb_slow(r);
}

/* Returns the next `size` bytes as a view; empty on failure. */
struct sl_bytes sl_read_bytes(struct sl_reader *r, uint64_t size);

/* Reads text up to a NUL, which is consumed but not part of the view; fails when there is no NUL. */
struct sl_str sl_read_cstr(struct sl_reader *r);

/* Returns the NUL-terminated text at `offset` of a string table; empty when `offset` is outside or the NUL is missing. */
struct sl_str sl_cstr_at(struct sl_bytes table, uint64_t offset);
