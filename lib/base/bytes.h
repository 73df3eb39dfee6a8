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

/* A size as printf takes it: a negative one would mean "up to the NUL", and views have none. */
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

/* Byte order, shorter first among equal prefixes; as memcmp. */
int sl_str_compare(struct sl_str a, struct sl_str b);
/* The same of two `struct sl_str`, for qsort. */
int sl_str_order(const void *left, const void *right);

/* Negative, 0 or positive as `a` is below, equal to or above `b`: for qsort. */
static inline int sl_compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* ASCII letters without case. */
bool sl_str_equal_nocase(struct sl_str a, struct sl_str b);
bool sl_str_starts(struct sl_str text, struct sl_str prefix);
bool sl_str_ends(struct sl_str text, struct sl_str suffix);

/* A decimal digit of ASCII, whatever the locale. */
static inline bool sl_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* White space of ASCII, as C's isspace() has it whatever the locale. */
static inline bool sl_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The value of a hex digit, -1 for another character. */
static inline int sl_hex_digit(char c)
{
    char lower = (char)(c | 0x20);
    return sl_is_digit(c) ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The number that a text of decimal or hex digits is. False for an empty text, for other characters, signs and blanks too, and
 * when 64 bits do not hold the number. */
bool sl_parse_u64(struct sl_str digits, uint64_t *value);
bool sl_parse_hex_u64(struct sl_str digits, uint64_t *value);

/* Takes the decimal digits that `rest` begins with. False when there are none, or 64 bits do not hold the number. */
bool sl_str_take_u64(struct sl_str *rest, uint64_t *value);

/* Without white space at its ends. */
struct sl_str sl_str_trimmed(struct sl_str text);

/* Takes the next line off `rest`, without the LF or CRLF that ends it; false at the end. */
bool sl_str_next_line(struct sl_str *rest, struct sl_str *line);

/* RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool sl_str_is_utf8(struct sl_str text);

/* Length of the well-formed sequence that begins at `s`, of which `left` bytes are there; 0 when it is none. Then
 * `*bad` (may be NULL) is the number of bytes that one replacement character stands for, at least 1. */
size_t sl_utf8_sequence(const char *s, size_t left, size_t *bad);

/* Appends at most four bytes to `out`; no surrogates. */
size_t sl_utf8_encode(uint32_t code, char *out);

/* The code point that begins at `*at`, moving `*at` behind it; U+FFFD for what is not UTF-8. `*at` is before the end. */
uint32_t sl_utf8_next(struct sl_str text, size_t *at);

/* The character that begins at `*at` as well-formed UTF-8, moving `*at` behind it: U+FFFD for bytes that are none, one for
 * each maximal part of a sequence (The Unicode Standard, 3.9, "U+FFFD Substitution of Maximal Subparts"). `*at` is before
 * the end. */
struct sl_str sl_utf8_mended(struct sl_str text, size_t *at);

/* The part [offset, offset + size) of `bytes`; empty (data NULL) with `*ok` false when it is not inside. `ok` may be
 * NULL. */
struct sl_bytes sl_bytes_slice(struct sl_bytes bytes, uint64_t offset, uint64_t size, bool *ok);

/* What is behind `offset` of `bytes`; empty when it is not inside. */
static inline struct sl_bytes sl_bytes_from(struct sl_bytes bytes, uint64_t offset)
{
    return offset <= bytes.size ? (struct sl_bytes){bytes.data + offset, bytes.size - (size_t)offset}
                                : (struct sl_bytes){NULL, 0};
}

/* As much of `bytes` as there is from `offset` on, `size` at most. */
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
void sl_reader_skip(struct sl_reader *r, uint64_t count);

static inline bool sl_reader_need(struct sl_reader *r, size_t size)
{
    if (__builtin_expect(size <= sl_reader_left(r) && !r->failed, 1))
        return true;
    r->failed = true;
    r->at = r->end;
    return false;
}

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

/* An unsigned integer of 1, 2, 3, 4 or 8 bytes; another size fails. */
uint64_t sl_read_uint(struct sl_reader *r, unsigned size);

/* LEB128 (DWARF 5, section 7.6). Encodings longer than ten bytes, or whose value needs more than 64 bits, fail;
 * padding with zero (sign) groups is accepted up to ten bytes. */
uint64_t sl_read_uleb_slow(struct sl_reader *r);
int64_t sl_read_sleb(struct sl_reader *r);

static inline uint64_t sl_read_uleb(struct sl_reader *r)
{
    if (__builtin_expect(r->at < r->end && *r->at < 0x80, 1))
        return *r->at++;
    return sl_read_uleb_slow(r);
}

/* `size` bytes as a view; empty on failure. */
struct sl_bytes sl_read_bytes(struct sl_reader *r, uint64_t size);

/* Text up to a NUL, which is consumed and not part of the view; a missing NUL fails. */
struct sl_str sl_read_cstr(struct sl_reader *r);

/* The NUL-terminated text at `offset` of a string table; empty when the offset is outside or the NUL is missing. */
struct sl_str sl_cstr_at(struct sl_bytes table, uint64_t offset);
