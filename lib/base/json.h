/* JSON reader (RFC 8259), for request bodies, responses of other services, and files.
 *
 * A pull reader: the caller walks the document and skips what it does not know. No tree is built, and skipped values cost no
 * memory.
 *
 *     if (sl_json_object(&j))
 *         while (sl_json_next(&j, &key))
 *             ... sl_json_string(&j, &text) or sl_json_skip(&j) ...
 *     if (!sl_json_end(&j)) -> j.failed, j.problem, j.at
 *
 * Failure is sticky: after the first problem every call does nothing and returns false, so the caller checks once. Strict: text
 * must be UTF-8 without bare control bytes. Numbers may have any size, a leading byte order mark is skipped. Repeated members
 * are all returned, in order. A reader may be copied to read a value again or later. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"

enum sl_json_type {
    SL_JSON_NONE, /* no value: the document is malformed here or has ended */
    SL_JSON_OBJECT,
    SL_JSON_ARRAY,
    SL_JSON_STRING,
    SL_JSON_NUMBER,
    SL_JSON_BOOL,
    SL_JSON_NULL,
};

enum { SL_JSON_MAX_DEPTH = 128 };

struct sl_json {
    struct sl_str text;
    size_t at;              /* offset of the next byte to read; after a failure, of the problem */
    struct sl_arena *arena; /* holds strings with escapes; all other strings are views of `text` */
    const char *problem;    /* set on failure; static */
    bool relaxed;           /* accepts comments, trailing commas, strings that are not UTF-8 */
    bool failed;
    bool busy;  /* failed because memory was short, which says nothing about the document */
    bool fresh; /* the last byte read is an opening bracket: no comma expected yet */
    uint8_t depth;
    uint64_t objects[SL_JSON_MAX_DEPTH / 64]; /* one bit for each open bracket: 1 = object */
};

/* Returns a reader at the beginning of `text`. With `relaxed` it also accepts comments, trailing commas and strings that are not UTF-8. */
struct sl_json sl_json(struct sl_str text, struct sl_arena *arena, bool relaxed);

/* Returns the type of the next value, judged by its first byte; SL_JSON_NONE if none begins there. */
enum sl_json_type sl_json_peek(struct sl_json *j);

/* Opens the next object or array. Then sl_json_next() moves to each member and sets `*key` (data NULL in arrays); it returns
 * false after the last one. */
bool sl_json_enter(struct sl_json *j);
bool sl_json_next(struct sl_json *j, struct sl_str *key);

/* ---- values of one type; these fail for a value of another type ---- */

/* Returns the unescaped string; an unpaired surrogate becomes U+FFFD. */
bool sl_json_string(struct sl_json *j, struct sl_str *out);

/* Appends the unescaped string to `out`; on failure the part before the problem has been appended. */
bool sl_json_append(struct sl_json *j, struct sl_buf *out);

/* Returns the string as written, without its quotes; `*escaped`: it contains escapes. */
bool sl_json_raw_string(struct sl_json *j, struct sl_str *raw, bool *escaped);

/* Returns the number as it is written, for sl_json_integer() or strtod(). */
bool sl_json_number(struct sl_json *j, struct sl_str *out);

/* ---- values of one type; these skip a value of another type and return false ---- */

bool sl_json_object(struct sl_json *j); /* opens an object */
bool sl_json_array(struct sl_json *j);  /* opens an array */
bool sl_json_text(struct sl_json *j, struct sl_str *out);
bool sl_json_bool(struct sl_json *j, bool *out);

/* Read an integer without fraction and exponent: 0 to 2^64-1, or -2^63 to 2^63-1. */
bool sl_json_u64(struct sl_json *j, uint64_t *out);
bool sl_json_i64(struct sl_json *j, int64_t *out);

/* ---- values of any type ---- */

/* Skips one value, with everything in it. */
void sl_json_skip(struct sl_json *j);

/* Returns the next value, with everything in it, as it is written; data NULL on failure. */
bool sl_json_value(struct sl_json *j, struct sl_str *out);

/* Set the failure and return false: for a reason of the caller (`problem` must be static), or because memory is short. */
bool sl_json_fail(struct sl_json *j, const char *problem);
bool sl_json_no_memory(struct sl_json *j);

/* True if nothing failed and only white space is left. */
bool sl_json_end(struct sl_json *j);

/* Returns SL_OK, or why the reader failed: SL_MALFORMED, or SL_BUSY when out of memory. */
enum sl_code sl_json_code(const struct sl_json *j);

/* ---- helpers without a reader ---- */

/* Writes the unescaped form of a string as it is in the document (sl_json_raw_string) to `out`, which must have space for `raw.size` bytes.
 * Returns its size. */
size_t sl_json_unescape(struct sl_str raw, char *out);

/* Splits the text of a number into sign and magnitude; false when it has a fraction or exponent or exceeds 64 bits. */
bool sl_json_integer(struct sl_str number, bool *negative, uint64_t *magnitude);

/* Returns line and column of an offset; both count from 1, columns in bytes. */
struct sl_json_position {
    size_t line, column;
};
struct sl_json_position sl_json_position(struct sl_str text, size_t at);
