#include "jvm/numbers.h"

#include "jvm/format.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 64 };

static bool numbers_fail(struct jvm_memory *memory)
{
    memory->failed = true;
    return false;
}

static uint32_t no_key(struct jvm_memory *memory)
{
    memory->failed = true;
    return JVM_NO_ROW;
}

static void put_row(struct jvm_slots *s, uint32_t hash, uint32_t row)
{
    size_t mask = s->count - 1, i = hash & mask;
    while (s->slots[i])
        i = (i + 1) & mask;
    s->slots[i] = row + 1;
}

/* Room for one more than the `count` rows that have these hashes. */
static bool slots_make_room(struct jvm_slots *s, struct jvm_memory *memory, const uint32_t *hashes, uint32_t count)
{
    if ((size_t)count * 2 < s->count)
        return true;
    size_t new_count = s->count ? s->count * 2 : FIRST_SLOTS;
    uint32_t *slots = sl_alloc_held(&memory->held, new_count, sizeof *slots);
    if (!slots || count == UINT32_MAX - 1 || !sl_purse_spend(&memory->purse, count / 8))
        return numbers_fail(memory);
    memset(slots, 0, new_count * sizeof *slots);
    sl_free_held(&memory->held, s->slots, s->count, sizeof *slots);
    *s = (struct jvm_slots){slots, new_count};
    for (uint32_t row = 0; row < count; row++)
        put_row(s, hashes[row], row);
    return true;
}

/* ---- texts ---- */

bool jvm_strings_begin(struct jvm_strings *s, struct jvm_memory *memory)
{
    *s = (struct jvm_strings){.memory = memory, .bytes.budget = memory->held.budget};
    jvm_string(s, SL_STR(""));
    return !memory->failed;
}

static bool has_text(const struct jvm_strings *s, uint32_t row, struct sl_str text)
{
    const uint8_t *at = s->bytes.data + s->offsets[row];
    struct sl_reader r = {at, at, s->bytes.data + s->bytes.size, false, false};
    return sl_read_uleb(&r) == text.size && (!text.size || memcmp(r.at, text.data, text.size) == 0);
}

static struct jvm_text add_text(struct jvm_strings *s, struct sl_str text, uint32_t hash)
{
    struct jvm_memory *m = s->memory;
    struct jvm_text added = {(uint32_t)s->bytes.size, hash};
    if (!sl_grow_held(&m->held, &s->offsets, &s->offset_capacity, s->count + 1, sizeof *s->offsets) ||
        !sl_grow_held(&m->held, &s->hashes, &s->hash_capacity, s->count + 1, sizeof *s->hashes) ||
        !slots_make_room(&s->slots, m, s->hashes, s->count)) {
        numbers_fail(m);
        return (struct jvm_text){0, 0};
    }
    s->offsets[s->count] = added.id;
    s->hashes[s->count] = hash;
    put_row(&s->slots, hash, s->count++);
    sl_buf_uleb(&s->bytes, text.size);
    sl_buf_str(&s->bytes, text);
    m->failed |= s->bytes.failed || s->bytes.size > UINT32_MAX;
    return added;
}

struct jvm_text jvm_string(struct jvm_strings *s, struct sl_str text)
{
    uint32_t hash = jvm_hash(text);
    size_t mask = s->slots.count - 1;
    for (size_t i = hash & mask; s->slots.count && s->slots.slots[i]; i = (i + 1) & mask) {
        uint32_t row = s->slots.slots[i] - 1;
        if (!sl_purse_spend(&s->memory->purse, 1)) {
            numbers_fail(s->memory);
            return (struct jvm_text){0, 0};
        }
        if (s->hashes[row] == hash && has_text(s, row, text))
            return (struct jvm_text){s->offsets[row], hash};
    }
    return add_text(s, text, hash);
}

/* ---- keys ---- */

static bool same_key(struct jvm_key a, struct jvm_key b)
{
    return a.a == b.a && a.b == b.b && a.c == b.c;
}

uint32_t jvm_key_find(struct jvm_keys *k, struct jvm_key key, uint32_t hash)
{
    size_t mask = k->slots.count - 1;
    for (size_t i = hash & mask; k->slots.count && k->slots.slots[i]; i = (i + 1) & mask) {
        uint32_t row = k->slots.slots[i] - 1;
        if (!sl_purse_spend(&k->memory->purse, 1))
            return no_key(k->memory);
        if (k->hashes[row] == hash && same_key(k->keys[row], key))
            return row;
    }
    return JVM_NO_ROW;
}

uint32_t jvm_key_row(struct jvm_keys *k, struct jvm_key key, uint32_t hash, bool *made)
{
    struct jvm_memory *m = k->memory;
    uint32_t row = jvm_key_find(k, key, hash);
    *made = row == JVM_NO_ROW;
    if (!*made || m->failed)
        return row;
    if (!sl_grow_held(&m->held, &k->keys, &k->key_capacity, k->count + 1, sizeof *k->keys) ||
        !sl_grow_held(&m->held, &k->hashes, &k->hash_capacity, k->count + 1, sizeof *k->hashes) ||
        !slots_make_room(&k->slots, m, k->hashes, k->count))
        return no_key(m);
    k->keys[k->count] = key;
    k->hashes[k->count] = hash;
    put_row(&k->slots, hash, k->count);
    return k->count++;
}

/* Taken out latest first, each is still where a look finds it. */
void jvm_keys_clear(struct jvm_keys *k)
{
    size_t mask = k->slots.count - 1;
    while (k->count) {
        size_t i = k->hashes[--k->count] & mask;
        while (k->slots.slots[i] != k->count + 1)
            i = (i + 1) & mask;
        k->slots.slots[i] = 0;
    }
}
