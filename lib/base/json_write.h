/* JSON out: a streaming writer over a buffer; compact, UTF-8, non-ASCII not escaped. Invalid UTF-8 in text becomes
 * U+FFFD, control bytes are escaped. JSON in is base/json.h.
 *
 * The writer puts commas itself: sl_json_put_key before each member, values as they come. */
#pragma once

#include "base/buf.h"
#include "base/json.h"

struct sl_json_writer {
    struct sl_buf *out;
    bool comma; /* before the next member or element */
};

static inline struct sl_json_writer sl_json_writer(struct sl_buf *out)
{
    return (struct sl_json_writer){out, false};
}

void sl_json_begin_object(struct sl_json_writer *w);
void sl_json_end_object(struct sl_json_writer *w);
void sl_json_begin_array(struct sl_json_writer *w);
void sl_json_end_array(struct sl_json_writer *w);
static inline void sl_json_put_key(struct sl_json_writer *w,
                                   const char *key) /* a plain ASCII key that needs no escape */
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
void sl_json_put_key_str(struct sl_json_writer *w, struct sl_str key); /* any key */
void sl_json_put_str(struct sl_json_writer *w, struct sl_str text);
/* A member that is an array of texts; nothing when there are none. */
void sl_json_put_texts(struct sl_json_writer *w, const char *key, const struct sl_str *texts, size_t count);
void sl_json_put_u64(struct sl_json_writer *w, uint64_t v);
void sl_json_put_i64(struct sl_json_writer *w, int64_t v);
void sl_json_put_double(struct sl_json_writer *w, double v);
void sl_json_put_boolean(struct sl_json_writer *w, bool v);
void sl_json_put_null(struct sl_json_writer *w);
void sl_json_put_hex(struct sl_json_writer *w, uint64_t v);                        /* "0x..." */
void sl_json_put_hex_padded(struct sl_json_writer *w, uint64_t v, unsigned least); /* with so many digits at least */
void sl_json_put_raw(struct sl_json_writer *w, struct sl_str json);                /* a complete value */

/* ---- members: a key and its value ---- */

#define SL_JSON_MEMBER(kind, type)                                                                                     \
    static inline void sl_json_member_##kind(struct sl_json_writer *w, const char *key, type value)                    \
    {                                                                                                                  \
        sl_json_put_key(w, key);                                                                                       \
        sl_json_put_##kind(w, value);                                                                                  \
    }
SL_JSON_MEMBER(str, struct sl_str)
SL_JSON_MEMBER(u64, uint64_t)
SL_JSON_MEMBER(i64, int64_t)
SL_JSON_MEMBER(double, double)
SL_JSON_MEMBER(boolean, bool)
SL_JSON_MEMBER(hex, uint64_t)
SL_JSON_MEMBER(raw, struct sl_str)
#undef SL_JSON_MEMBER

static inline void sl_json_member_null(struct sl_json_writer *w, const char *key)
{
    sl_json_put_key(w, key);
    sl_json_put_null(w);
}

/* These open it. */
static inline void sl_json_member_object(struct sl_json_writer *w, const char *key)
{
    sl_json_put_key(w, key);
    sl_json_begin_object(w);
}
static inline void sl_json_member_array(struct sl_json_writer *w, const char *key)
{
    sl_json_put_key(w, key);
    sl_json_begin_array(w);
}

/* A text whose data is NULL is left out, or null. */
static inline void sl_json_member_known(struct sl_json_writer *w, const char *key, struct sl_str text)
{
    if (text.data)
        sl_json_member_str(w, key, text);
}
static inline void sl_json_member_or_null(struct sl_json_writer *w, const char *key, struct sl_str text)
{
    sl_json_put_key(w, key);
    if (text.data)
        sl_json_put_str(w, text);
    else
        sl_json_put_null(w);
}

/* Writes the value that comes next in `j` as it came in: numbers keep their text, members their order. False: the reader has
 * failed, and the value is not complete. */
bool sl_json_put_value(struct sl_json_writer *w, struct sl_json *j);
