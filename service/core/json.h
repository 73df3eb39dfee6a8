/* JSON out: a streaming writer over a buffer; compact, UTF-8, non-ASCII not escaped. Invalid UTF-8 in text becomes
 * U+FFFD, control bytes are escaped. JSON in is base/json.h.
 *
 * The writer puts commas itself: json_key before each member, values as they come. */
#pragma once

#include "base/buf.h"
#include "base/json.h"

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
static inline void json_key(struct json_writer *w, const char *key) /* a plain ASCII key that needs no escape */
{
    size_t size = strlen(key); /* mostly of a constant, and so is what follows */
    if (!sl_buf_reserve(w->out, size + 4))
        return;
    uint8_t *start = w->out->data + w->out->size, *at = start;
    *at = ',';
    at += w->comma;
    *at++ = '"';
    memcpy(at, key, size);
    memcpy(at + size, "\":", 2);
    w->out->size += (size_t)(at - start) + size + 2;
    w->comma = false;
}
void json_key_str(struct json_writer *w, struct sl_str key); /* any key */
void json_str(struct json_writer *w, struct sl_str text);
/* A member that is an array of texts; nothing when there are none. */
void json_texts(struct json_writer *w, const char *key, const struct sl_str *texts, size_t count);
void json_u64(struct json_writer *w, uint64_t v);
void json_i64(struct json_writer *w, int64_t v);
void json_double(struct json_writer *w, double v);
void json_boolean(struct json_writer *w, bool v);
void json_null(struct json_writer *w);
void json_hex(struct json_writer *w, uint64_t v);                        /* "0x..." */
void json_hex_padded(struct json_writer *w, uint64_t v, unsigned least); /* with so many digits at least */
void json_raw(struct json_writer *w, struct sl_str json);                /* a complete value */

/* Writes the value that comes next in `j` as it came in: numbers keep their text, members their order. False: the reader has
 * failed, and the value is not complete. */
bool json_value(struct json_writer *w, struct sl_json *j);
