/* JSON out: a streaming writer over a buffer; compact, UTF-8, non-ASCII not escaped. Invalid UTF-8 in text becomes
 * U+FFFD, control bytes are escaped. JSON in is json-c; json_parse checks depth and the end of input.
 *
 * The writer puts commas itself: json_key before each member, values as they come. */
#pragma once

#include <json-c/json.h>

#include "base/buf.h"
#include "base/error.h"

struct json_writer {
    struct sl_buf *out;
    bool comma; /* before the next member or element */
};

static inline struct json_writer json_writer(struct sl_buf *out)
{
    return (struct json_writer){out, false};
}

void json_object_begin(struct json_writer *w);
void json_object_end(struct json_writer *w);
void json_array_begin(struct json_writer *w);
void json_array_end(struct json_writer *w);
void json_key(struct json_writer *w, const char *key);       /* a plain ASCII key that needs no escape */
void json_key_str(struct json_writer *w, struct sl_str key); /* any key */
void json_str(struct json_writer *w, struct sl_str text);
void json_u64(struct json_writer *w, uint64_t v);
void json_i64(struct json_writer *w, int64_t v);
void json_double(struct json_writer *w, double v);
void json_boolean(struct json_writer *w, bool v); /* json_bool is a type of json-c */
void json_null(struct json_writer *w);
void json_hex(struct json_writer *w, uint64_t v);         /* "0x..." */
void json_raw(struct json_writer *w, struct sl_str json); /* a complete value */

/* Parses one document; trailing bytes other than white space are an error, as are more than 128 levels
 * or 8 million values.
 * SL_MALFORMED with "<reason> at line L column C". The caller owns the object (json_object_put). */
enum sl_code json_parse(struct sl_str text, struct json_object **object, struct sl_error *error);

/* The text of an object's member; empty when it is absent or no text. It belongs to the object. */
struct sl_str json_member(struct json_object *object, const char *name);

/* Writes a json-c value as it came in (numbers keep their text). */
void json_value(struct json_writer *w, struct json_object *value);
