/* Deduplicating tables for building: equal strings, or equal keys of three numbers, get the same id. Every probe costs a step of
 * the budget, so strings with colliding hashes cost no more than the file's size allows. */
#pragma once

#include "base/buf.h"
#include "base/idtable.h"

/* ---- strings ---- */

struct jvm_strings {
    struct sl_account *account;
    size_t reserved_bytes; /* bytes reserved before each string for its owner's data */
    struct sl_buf bytes;   /* reserved bytes, uleb size, text; the id of a string is its offset */
    struct sl_id_table table;
};

struct jvm_text {
    uint32_t id, hash;
};

/* Returns the string's id, adding it if it is new (its reserved bytes are then zeros). On failure all zeros, and
 * strings->account->failed is set. */
struct jvm_text jvm_string(struct jvm_strings *strings, struct sl_str text);

/* The three steps of jvm_string(): hash, prefetch, add. Each needs memory that the step before has prefetched, so the caller does other
 * work in between. */
struct jvm_string_lookup {
    struct sl_str text;
    uint32_t hash;
};
struct jvm_string_lookup jvm_string_hash(const struct jvm_strings *strings, struct sl_str text);
void jvm_string_prefetch(const struct jvm_strings *strings, const struct jvm_string_lookup *wanted);
struct jvm_text jvm_string_add(struct jvm_strings *strings, const struct jvm_string_lookup *wanted);

/* ---- keys ---- */

struct jvm_key {
    uint32_t a, b, c;
};

/* Numbers distinct keys from 0, in the order in which they were added: the "row" of a key. */
struct jvm_keys {
    struct sl_account *account;
    struct jvm_key *keys; /* by row */
    size_t capacity;
    uint32_t count;
    struct sl_id_table table;
};

enum { JVM_NO_ROW = UINT32_MAX, JVM_MAX_TEXT = UINT32_MAX - 16 };

/* Returns the row of the key, adding the key if it is new, and sets `*made` to whether it was. On failure JVM_NO_ROW, and
 * keys->account->failed is set. */
uint32_t jvm_key_row(struct jvm_keys *keys, struct jvm_key key, bool *made);

/* Returns the row of the key, or JVM_NO_ROW. */
uint32_t jvm_key_find(struct jvm_keys *keys, struct jvm_key key);

void jvm_keys_clear(struct jvm_keys *keys);

/* Writes a ULEB128 at `at`, which must have five bytes left; returns the position after it. */
static inline uint8_t *jvm_put_uleb(uint8_t *at, uint32_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}
