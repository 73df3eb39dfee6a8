#include "jvm/numbers.h"

#include "jvm/format.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 64 };

static bool numbers_fail(struct sl_account *account)
{
    account->failed = true;
    return false;
}

static uint32_t no_key(struct sl_account *account)
{
    account->failed = true;
    return JVM_NO_ROW;
}

static void put_slot(struct jvm_slots *s, struct jvm_slot slot)
{
    size_t mask = s->count - 1, i = slot.hash & mask;
    while (s->slots[i].number)
        i = (i + 1) & mask;
    s->slots[i] = slot;
}

/* Room for one more than `count`. */
static bool slots_make_room(struct jvm_slots *s, struct sl_account *account, uint32_t count)
{
    if ((size_t)count * 2 < s->count)
        return true;
    struct jvm_slots larger = {.count = s->count ? s->count * 2 : FIRST_SLOTS};
    if (count == UINT32_MAX - 1 || !sl_account_spend(account, count / 8) ||
        !(larger.slots = sl_account_alloc(account, larger.count, sizeof *larger.slots)))
        return numbers_fail(account);
    memset(larger.slots, 0, larger.count * sizeof *larger.slots);
    for (size_t i = 0; i < s->count; i++)
        if (s->slots[i].number)
            put_slot(&larger, s->slots[i]);
    sl_account_free(account, s->slots, s->count, sizeof *s->slots);
    *s = larger;
    return true;
}

/* ---- texts ---- */

static bool has_text(const struct jvm_strings *s, uint32_t id, struct sl_str text)
{
    const uint8_t *at = s->bytes.data + id + s->room;
    if (text.size < 0x80)
        return *at == text.size && memcmp(at + 1, text.data, text.size) == 0;
    struct sl_reader r = {at, at, s->bytes.data + s->bytes.size, false, false};
    return sl_read_uleb(&r) == text.size && memcmp(r.at, text.data, text.size) == 0;
}

static struct jvm_text add_text(struct jvm_strings *s, struct sl_str text, uint32_t hash)
{
    static const uint8_t nothing[16];
    struct sl_account *account = s->account;
    struct jvm_text added = {(uint32_t)s->bytes.size, hash};
    if (!slots_make_room(&s->slots, account, s->count))
        return (struct jvm_text){0, 0};
    put_slot(&s->slots, (struct jvm_slot){hash, added.id + 1});
    s->count++;
    sl_buf_add(&s->bytes, nothing, s->room);
    sl_buf_uleb(&s->bytes, text.size);
    sl_buf_str(&s->bytes, text);
    account->failed |= s->bytes.failed || s->bytes.size > JVM_MOST_TEXT;
    return added;
}

struct jvm_wanted jvm_want(const struct jvm_strings *s, struct sl_str text)
{
    uint32_t hash = jvm_hash(text);
    if (s->slots.count)
        __builtin_prefetch(&s->slots.slots[hash & (s->slots.count - 1)]);
    return (struct jvm_wanted){text, hash};
}

void jvm_want_text(const struct jvm_strings *s, const struct jvm_wanted *wanted)
{
    const struct jvm_slot *slot = s->slots.count ? &s->slots.slots[wanted->hash & (s->slots.count - 1)] : NULL;
    if (slot && slot->number)
        __builtin_prefetch(s->bytes.data + slot->number - 1);
}

struct jvm_text jvm_take(struct jvm_strings *s, const struct jvm_wanted *wanted)
{
    uint32_t hash = wanted->hash;
    size_t mask = s->slots.count - 1;
    for (size_t i = hash & mask; s->slots.count && s->slots.slots[i].number; i = (i + 1) & mask) {
        struct jvm_slot slot = s->slots.slots[i];
        if (!sl_account_spend(s->account, 1)) {
            numbers_fail(s->account);
            return (struct jvm_text){0, 0};
        }
        if (slot.hash == hash && has_text(s, slot.number - 1, wanted->text))
            return (struct jvm_text){slot.number - 1, hash};
    }
    return add_text(s, wanted->text, hash);
}

struct jvm_text jvm_string(struct jvm_strings *s, struct sl_str text)
{
    return jvm_take(s, &(struct jvm_wanted){text, jvm_hash(text)});
}

/* ---- keys ---- */

static uint32_t key_hash(struct jvm_key key)
{
    uint64_t h = (key.a * UINT64_C(0x9E3779B97F4A7C15)) ^ (key.b * UINT64_C(0xC2B2AE3D27D4EB4F));
    h = (h ^ h >> 29 ^ key.c) * UINT64_C(0x165667B19E3779F9);
    return (uint32_t)(h >> 32);
}

static bool same_key(struct jvm_key a, struct jvm_key b)
{
    return a.a == b.a && a.b == b.b && a.c == b.c;
}

static uint32_t find_key(struct jvm_keys *k, struct jvm_key key, uint32_t hash)
{
    size_t mask = k->slots.count - 1;
    for (size_t i = hash & mask; k->slots.count && k->slots.slots[i].number; i = (i + 1) & mask) {
        struct jvm_slot slot = k->slots.slots[i];
        if (!sl_account_spend(k->account, 1))
            return no_key(k->account);
        if (slot.hash == hash && same_key(k->keys[slot.number - 1], key))
            return slot.number - 1;
    }
    return JVM_NO_ROW;
}

uint32_t jvm_key_find(struct jvm_keys *k, struct jvm_key key)
{
    return find_key(k, key, key_hash(key));
}

uint32_t jvm_key_row(struct jvm_keys *k, struct jvm_key key, bool *made)
{
    struct sl_account *account = k->account;
    uint32_t hash = key_hash(key), row = find_key(k, key, hash);
    *made = row == JVM_NO_ROW && !account->failed;
    if (!*made)
        return row;
    if (!sl_account_grow(account, &k->keys, &k->capacity, k->count + 1, sizeof *k->keys) ||
        !slots_make_room(&k->slots, account, k->count))
        return no_key(account);
    k->keys[k->count] = key;
    put_slot(&k->slots, (struct jvm_slot){hash, k->count + 1});
    return k->count++;
}

/* Each is as far behind its hash as when it was put there, whatever is free before it. */
void jvm_keys_clear(struct jvm_keys *k)
{
    size_t mask = k->slots.count - 1;
    while (k->count) {
        size_t i = key_hash(k->keys[--k->count]) & mask;
        while (k->slots.slots[i].number != k->count + 1)
            i = (i + 1) & mask;
        k->slots.slots[i].number = 0;
    }
}
