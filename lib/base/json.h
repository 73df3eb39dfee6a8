/* Reading the JSON inside of files: manifests of source bundles, source links, line mappings (RFC 8259).
 *
 * A pull reader: the caller walks the document by its own structure and skips what it does not know. Nothing is built.
 *
 *     if (sl_json_peek(&j) == SL_JSON_OBJECT && sl_json_enter(&j))
 *         while (sl_json_next(&j, &key))
 *             ... sl_json_string(&j, &text) or sl_json_skip(&j) ...
 *     if (!sl_json_end(&j)) -> j.failed, j.problem, j.at
 *
 * The failure is sticky: after the first problem every call does nothing and says false, so it is checked once. */
#pragma once

#include "base/arena.h"
#include "base/bytes.h"

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
    size_t at;              /* offset of what is read next */
    struct sl_arena *arena; /* for texts with escapes; all others are views of `text` */
    bool relaxed;           /* comments, trailing commas */
    bool failed;
    const char *problem; /* when failed; static */
    unsigned depth;
    bool fresh;                      /* behind an opening bracket: no comma yet */
    char closing[SL_JSON_MAX_DEPTH]; /* of the brackets that are open */
};

/* A reader at the beginning of `text`; a byte order mark is passed over. */
struct sl_json sl_json(struct sl_str text, struct sl_arena *arena, bool relaxed);

/* The type of the value that comes next. */
enum sl_json_type sl_json_peek(struct sl_json *j);

/* Opens the object or array that comes next; then sl_json_next moves to each member (setting `*key`, which is NULL for
 * arrays), false behind the last one. */
bool sl_json_enter(struct sl_json *j);
bool sl_json_next(struct sl_json *j, struct sl_str *key);

/* Texts are what the escapes stand for; half a surrogate pair becomes U+FFFD. Another type fails. */
bool sl_json_string(struct sl_json *j, struct sl_str *out);

/* True when the next value is an integer of 0 to 2^64-1 without fraction and exponent; any other value is skipped. */
bool sl_json_u64(struct sl_json *j, uint64_t *out);

/* One whole value, whatever it is. */
void sl_json_skip(struct sl_json *j);

/* Makes the document a failure, for a reason of the caller. Always false. */
bool sl_json_fail(struct sl_json *j, const char *problem);

/* True if nothing failed and only white space is left. */
bool sl_json_end(struct sl_json *j);
