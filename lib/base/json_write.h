/* JSON writer: streams into a buffer. Compact, UTF-8, non-ASCII not escaped; ill-formed UTF-8 becomes U+FFFD, control bytes are
 * escaped. The reader is base/json.h.
 *
 * The writer adds commas itself: call sl_json_put_key() before each member, and put values in sequence. */
#pragma once

#include "base/buf.h"
#include "base/json.h"

struct sl_json_writer {
    struct sl_buf *out;
    bool comma; /* the next member or element needs a comma before it */
};

static inline struct sl_json_writer sl_json_writer(struct sl_buf *out)
{
    return (struct sl_json_writer){out, false};
}

void sl_json_begin_object(struct sl_json_writer *w);
void sl_json_end_object(struct sl_json_writer *w);
void sl_json_begin_array(struct sl_json_writer *w);
void sl_json_end_array(struct sl_json_writer *w);
/* Writes a key of printable ASCII that needs no escape. It is mostly a literal, so the compiler knows the sizes of strlen and memcpy. */
static inline void sl_json_put_key(struct sl_json_writer *w, const char *key)
{
    size_t size = strlen(key);
    if (!sl_buf_reserve(w->out, size + 4)) /* a comma, two quotes and a colon */
        return;
    uint8_t *start = w->out->data + w->out->size, *at = start;
    *at = ','; /* overwritten by the quote if no comma is needed: this needs no branch */
    at += w->comma;
    *at++ = '"';
    memcpy(at, key, size);
    memcpy(at + size, "\":", 2);
    w->out->size += (size_t)(at - start) + size + 2;
    w->comma = false;
}
void sl_json_put_key_str(struct sl_json_writer *w, struct sl_str key); /* any key */
void sl_json_put_str(struct sl_json_writer *w, struct sl_str text);
/* Writes the member `key`, an array of strings; writes nothing, not even the key, when `count` is 0. */
void sl_json_put_texts(struct sl_json_writer *w, const char *key, const struct sl_str *texts, size_t count);
void sl_json_put_u64(struct sl_json_writer *w, uint64_t v);
void sl_json_put_i64(struct sl_json_writer *w, int64_t v);
void sl_json_put_double(struct sl_json_writer *w, double v);
void sl_json_put_boolean(struct sl_json_writer *w, bool v);
void sl_json_put_null(struct sl_json_writer *w);
void sl_json_put_hex(struct sl_json_writer *w, uint64_t v); /* "0x..." */
void sl_json_put_hex_padded(struct sl_json_writer *w, uint64_t v,
                            unsigned least);                        /* at least `least` digits, zeros in front */
void sl_json_put_raw(struct sl_json_writer *w, struct sl_str json); /* a complete value, already JSON */

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

/* Write a key and open its object or array. */
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

/* Write a member that is a string. If `text` has data NULL, sl_json_member_if_set() leaves the member out, sl_json_member_or_null() writes
 * null. */
static inline void sl_json_member_if_set(struct sl_json_writer *w, const char *key, struct sl_str text)
{
    if (text.data)
        sl_json_member_str(w, key, text);
}
/* Writes a member that is a string, or null if `text` has data NULL. */
static inline void sl_json_member_or_null(struct sl_json_writer *w, const char *key, struct sl_str text)
{
    sl_json_put_key(w, key);
    if (text.data)
        sl_json_put_str(w, text);
    else
        sl_json_put_null(w);
}

/* Writes a copy of the next value of the reader `j`: numbers keep their text, members their order. False: the reader has failed and the
 * copy is incomplete. */
bool sl_json_put_value(struct sl_json_writer *w, struct sl_json *j);
