/* Tables that give equal strings, or equal keys of three numbers, the same number. */
#include "jvm/numbers.h"

#include "jvm/format.h"

#include <stdlib.h>

#include "base/map.h"

uint32_t jvm_hash(struct sl_str text)
{
    return (uint32_t)sl_hash(text.data, text.size);
}

/* ---- strings ---- */

/* Comparison for sl_id_table_find(): true if the string with this id equals the text at `key`. A string is stored as its length (ULEB128)
 * and its bytes; nearly all lengths take one byte. */
static bool has_text(const void *strings, uint32_t id, const void *key)
{
    const struct jvm_strings *s = strings;
    struct sl_str text = *(const struct sl_str *)key;
    const uint8_t *at = s->bytes.data + id + s->reserved_bytes; /* these precede each string */
    if (text.size < 0x80)
        return *at == text.size && memcmp(at + 1, text.data, text.size) == 0;
    struct sl_reader r = {.begin = at, .at = at, .end = s->bytes.data + s->bytes.size};
    return sl_read_uleb(&r) == text.size && memcmp(r.at, text.data, text.size) == 0;
}

struct jvm_string_lookup jvm_string_hash(const struct jvm_strings *s, struct sl_str text)
{
    uint32_t hash = jvm_hash(text);
    __builtin_prefetch(sl_id_table_first_slot(&s->table, hash));
    return (struct jvm_string_lookup){text, hash};
}

void jvm_string_prefetch(const struct jvm_strings *s, const struct jvm_string_lookup *wanted)
{
    const struct sl_id_slot *slot = sl_id_table_first_slot(&s->table, wanted->hash);
    if (slot && sl_id_table_has(&s->table, slot))
        __builtin_prefetch(s->bytes.data + sl_id_table_id(&s->table, slot));
}

/* Returns the string's id and hash, adding the string if it is new. A string is stored as reserved_bytes zeros, in which the caller keeps
 * data of its own, then its length, then its text. Id 0 and hash 0 when out of memory. account->failed is set then, and also if all strings
 * together get too large. */
struct jvm_text jvm_string_add(struct jvm_strings *s, const struct jvm_string_lookup *wanted)
{
    static const uint8_t nothing[16]; /* at least reserved_bytes */
    uint32_t hash = wanted->hash;
    struct sl_id_slot *slot = sl_id_table_find(&s->table, s->account, hash, has_text, s, &wanted->text);
    if (!slot)
        return (struct jvm_text){0, 0};
    if (sl_id_table_has(&s->table, slot))
        return (struct jvm_text){sl_id_table_id(&s->table, slot), hash};
    struct jvm_text added = {sl_id_table_put(&s->table, slot, hash, (uint32_t)s->bytes.size), hash};
    sl_buf_add(&s->bytes, nothing, s->reserved_bytes);
    sl_buf_uleb(&s->bytes, wanted->text.size);
    sl_buf_str(&s->bytes, wanted->text);
    s->account->failed |= s->bytes.failed || s->bytes.size > JVM_MAX_TEXT;
    return added;
}

struct jvm_text jvm_string(struct jvm_strings *s, struct sl_str text)
{
    return jvm_string_add(s, &(struct jvm_string_lookup){text, jvm_hash(text)});
}

/* ---- keys ---- */

static uint32_t key_hash(struct jvm_key key)
{
    uint64_t h = (key.a * UINT64_C(0x9E3779B97F4A7C15)) ^ (key.b * UINT64_C(0xC2B2AE3D27D4EB4F));
    h = (h ^ h >> 29 ^ key.c) * UINT64_C(0x165667B19E3779F9);
    return (uint32_t)(h >> 32);
}

static bool same_key(const void *keys, uint32_t row, const void *key)
{
    const struct jvm_key *a = (const struct jvm_key *)keys + row, *b = key;
    return a->a == b->a && a->b == b->b && a->c == b->c;
}

uint32_t jvm_key_find(struct jvm_keys *k, struct jvm_key key)
{
    const struct sl_id_slot *slot =
        k->count ? sl_id_table_find(&k->table, k->account, key_hash(key), same_key, k->keys, &key) : NULL;
    return slot && sl_id_table_has(&k->table, slot) ? sl_id_table_id(&k->table, slot) : JVM_NO_ROW;
}

uint32_t jvm_key_row(struct jvm_keys *k, struct jvm_key key, bool *made)
{
    uint32_t hash = key_hash(key);
    struct sl_id_slot *slot = sl_id_table_find(&k->table, k->account, hash, same_key, k->keys, &key);
    bool is_there = slot && sl_id_table_has(&k->table, slot);
    *made = slot && !is_there && k->count < JVM_NO_ROW - 1 &&
            sl_account_grow(k->account, &k->keys, &k->capacity, k->count + 1, sizeof *k->keys);
    if (is_there)
        return sl_id_table_id(&k->table, slot);
    if (!*made) {
        k->account->failed = true;
        return JVM_NO_ROW;
    }
    k->keys[k->count] = key;
    return sl_id_table_put(&k->table, slot, hash, k->count++);
}

void jvm_keys_clear(struct jvm_keys *k)
{
    k->count = 0;
    sl_id_table_clear(&k->table);
}
