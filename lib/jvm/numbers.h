/* Numbers for texts and for keys of three numbers, while a table is made: equal ones get the same. Every look takes a step of
 * the budget, so that texts whose hashes are chosen cost no more than the file allows. */
#pragma once

#include "base/buf.h"
#include "base/grow.h"

/* A hash table of rows: 0 = free, else row + 1. At most half of it is taken. */
struct jvm_slots {
    uint32_t *slots;
    size_t count; /* a power of two; 0 at first */
};

struct jvm_memory {
    struct sl_holding held;
    struct sl_purse purse;
    bool failed; /* out of memory, or the budget is used up */
};

/* ---- texts ---- */

struct jvm_strings {
    struct jvm_memory *memory;
    struct sl_buf bytes; /* as in the section STRINGS; a text's number is its offset */
    uint32_t *offsets;   /* by row */
    uint32_t *hashes;    /* by row */
    size_t offset_capacity, hash_capacity;
    uint32_t count;
    struct jvm_slots slots;
};

struct jvm_text {
    uint32_t id, hash;
};

bool jvm_strings_begin(struct jvm_strings *strings, struct jvm_memory *memory);

/* Zeros when it failed; strings->memory->failed then. */
struct jvm_text jvm_string(struct jvm_strings *strings, struct sl_str text);

/* ---- keys ---- */

struct jvm_key {
    uint32_t a, b, c;
};

struct jvm_keys {
    struct jvm_memory *memory;
    struct jvm_key *keys; /* by row */
    uint32_t *hashes;     /* by row */
    size_t key_capacity, hash_capacity;
    uint32_t count;
    struct jvm_slots slots;
};

enum { JVM_NO_ROW = UINT32_MAX };

/* The row of the key, a new one when `*made`; JVM_NO_ROW when it failed. */
uint32_t jvm_key_row(struct jvm_keys *keys, struct jvm_key key, uint32_t hash, bool *made);

/* JVM_NO_ROW when it is not there. */
uint32_t jvm_key_find(struct jvm_keys *keys, struct jvm_key key, uint32_t hash);

/* Forgets all; takes as long as they are many, not as the table once was large. */
void jvm_keys_clear(struct jvm_keys *keys);

static inline uint32_t jvm_key_hash(struct jvm_key key)
{
    uint64_t h = (key.a * UINT64_C(0x9E3779B97F4A7C15)) ^ (key.b * UINT64_C(0xC2B2AE3D27D4EB4F));
    h = (h ^ h >> 29 ^ key.c) * UINT64_C(0x165667B19E3779F9);
    return (uint32_t)(h >> 32);
}
