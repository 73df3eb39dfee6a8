/* Reading JSON (RFC 8259): bodies of requests, answers of other services, side files, manifests, links, line mappings.
 *
 * A pull reader: the caller walks the document by its own structure and skips what it does not know. Nothing is built, and
 * what is skipped costs no memory.
 *
 *     if (sl_json_object(&j))
 *         while (sl_json_next(&j, &key))
 *             ... sl_json_string(&j, &text) or sl_json_skip(&j) ...
 *     if (!sl_json_end(&j)) -> j.failed, j.problem, j.at
 *
 * The failure is sticky: after the first problem every call does nothing and says false, so it is checked once. Strict: a
 * text is UTF-8 and has no bare control bytes, a number is of any size; a byte order mark in front is passed over. Members
 * of the same name all come, in their order. A reader may be copied, to read a value again or later. */
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
    size_t at;              /* offset of what is read next; of the problem when failed */
    struct sl_arena *arena; /* for texts with escapes; all others are views of `text` */
    const char *problem;    /* when failed; static */
    bool relaxed;           /* comments, trailing commas, texts that are no UTF-8 */
    bool failed;
    bool busy;  /* failed for want of memory, which says nothing about the document */
    bool fresh; /* behind an opening bracket: no comma yet */
    uint8_t depth;
    uint64_t objects[SL_JSON_MAX_DEPTH / 64]; /* which of the open brackets are braces, a bit each */
};

/* A reader at the beginning of `text`. */
struct sl_json sl_json(struct sl_str text, struct sl_arena *arena, bool relaxed);

/* The type of the value that comes next. */
enum sl_json_type sl_json_peek(struct sl_json *j);

/* Opens the object or array that comes next; then sl_json_next moves to each member (setting `*key`, whose data is NULL for
 * arrays), false behind the last one. */
bool sl_json_enter(struct sl_json *j);
bool sl_json_next(struct sl_json *j, struct sl_str *key);

/* ---- values of one type; these fail when another one comes ---- */

/* Texts are what the escapes stand for; half a surrogate pair becomes U+FFFD. */
bool sl_json_string(struct sl_json *j, struct sl_str *out);

/* The same, appended to `out`; when it fails, what was read before is there. */
bool sl_json_append(struct sl_json *j, struct sl_buf *out);

/* A text as it is written, without its quotes; `*escaped`: it is to be unescaped. */
bool sl_json_raw_string(struct sl_json *j, struct sl_str *raw, bool *escaped);

/* The text of a number, for sl_json_integer or strtod. */
bool sl_json_number(struct sl_json *j, struct sl_str *out);

/* ---- values of one type; any other value is skipped, and the answer is false ---- */

bool sl_json_object(struct sl_json *j); /* opens it */
bool sl_json_array(struct sl_json *j);  /* opens it */
bool sl_json_text(struct sl_json *j, struct sl_str *out);
bool sl_json_bool(struct sl_json *j, bool *out);

/* An integer of 0 to 2^64-1, or of -2^63 to 2^63-1, without fraction and exponent. */
bool sl_json_u64(struct sl_json *j, uint64_t *out);
bool sl_json_i64(struct sl_json *j, int64_t *out);

/* ---- anything ---- */

/* One whole value. */
void sl_json_skip(struct sl_json *j);

/* One whole value as it is written. */
bool sl_json_value(struct sl_json *j, struct sl_str *out);

/* Makes the document a failure, for a reason of the caller, which must be static; or for want of memory. Always false. */
bool sl_json_fail(struct sl_json *j, const char *problem);
bool sl_json_no_memory(struct sl_json *j);

/* True if nothing failed and only white space is left. */
bool sl_json_end(struct sl_json *j);

/* SL_OK, SL_MALFORMED or SL_BUSY, by what failed. */
enum sl_code sl_json_code(const struct sl_json *j);

/* ---- outside of a document ---- */

/* Appends to `out`, which has room for `raw.size` bytes, what a raw string stands for; returns the size. */
size_t sl_json_unescape(struct sl_str raw, char *out);

/* The text of a number as sign and magnitude; false when it has a fraction or exponent or does not fit. */
bool sl_json_integer(struct sl_str number, bool *negative, uint64_t *magnitude);

/* Line and column of an offset, in bytes, counted from 1. */
struct sl_json_place {
    size_t line, column;
};
struct sl_json_place sl_json_place(struct sl_str text, size_t at);
