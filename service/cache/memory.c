/* The layer in memory, one for each kind of cache entries: an LRU cache of contents (items) and errors, by key. */
#include "cache/impl.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "core/loop.h"
#include "core/metrics.h"

/* RESERVED_MAPS: memory maps of the process that are kept for libraries, the heap and files in use. MIN_MAPPED: so many cached files may be
 * mapped in any case. */
enum { RESERVED_MAPS = 4096, MIN_MAPPED = 256 };
/* Bytes that an entry counts against the memory limit. BOOKKEEPING: for its structs; ITEM_MIN: at least, for its contents. */
enum { BOOKKEEPING = 80, ITEM_MIN = 32 };

/* ---- slots ---- */
/* Gives an entry a slot and a new serial number: with both a handle finds the entry without hashing its key, and notices by the serial
 * number if the slot has another entry by now. A free slot's `serial` is 1 + the index of the next free one (0: none); free_slot and the
 * local `slot` are 1 + an index, too. False when out of memory. */
static bool cache_memory_take_slot(struct cache_memory *memory, struct cache_memory_entry *entry)
{
    size_t slot = memory->free_slot;
    if (slot) {
        memory->free_slot = memory->slots[slot - 1].serial;
    } else {
        if (!sl_grow(&memory->slots, &memory->slot_capacity, memory->slot_count + 1, sizeof *memory->slots))
            return false;
        slot = ++memory->slot_count;
    }
    entry->slot = slot - 1;
    memory->slots[slot - 1] = (struct cache_slot){entry, ++memory->serial};
    return true;
}

/* Puts the entry's slot into the list of free slots, which is linked by `serial`. */
static void cache_memory_free_slot(struct cache_memory *memory, const struct cache_memory_entry *entry)
{
    memory->slots[entry->slot] = (struct cache_slot){NULL, memory->free_slot};
    memory->free_slot = entry->slot + 1;
}

/* Sets the metrics of what the kind has in memory. */
static void publish_size(const struct cache_memory *memory)
{
    metric_set(METRIC_CACHE_MEMORY_BYTES, (double)memory->lru.size, memory->name, NULL, NULL);
    metric_set(METRIC_CACHE_MEMORY_ITEMS, (double)memory->lru.map.count, memory->name, NULL, NULL);
    metric_set(METRIC_CACHE_MAPPED_FILES, (double)memory->mapped, memory->name, NULL, NULL);
}

/* Frees an entry that is not in the cache, and its item or error; NULL is allowed. */
static void entry_discard(struct cache_memory_entry *entry)
{
    if (entry && entry->item)
        cache_release(entry->item);
    if (entry)
        free(entry->error);
    free(entry);
}

/* lru.release: frees an entry that was removed from the cache, and its slot. */
static void entry_release(struct lru *lru, struct lru_entry *lru_entry)
{
    struct cache_memory *memory = (struct cache_memory *)((char *)lru - offsetof(struct cache_memory, lru));
    struct cache_memory_entry *entry = LRU_ITEM(lru_entry, struct cache_memory_entry, lru);
    cache_memory_free_slot(memory, entry);
    memory->mapped -= entry->item && entry->item->mapping.mapped != 0;
    entry_discard(entry);
}

void cache_memory_init(struct cache_memory *memory, const char *name)
{
    *memory = (struct cache_memory){.name = name, .lru = {.max_count = SIZE_MAX, .release = entry_release}};
}

/* Makes an entry the most recently used and returns it. NULL if `found` is NULL, or if the entry has expired: then it is removed. */
static struct cache_memory_entry *cache_memory_use(struct cache_memory *memory, struct lru_entry *found,
                                                   uint64_t now_ms)
{
    if (!found)
        return NULL;
    if (!lru_touch(&memory->lru, found, now_ms)) {
        publish_size(memory);
        return NULL;
    }
    struct cache_memory_entry *entry = LRU_ITEM(found, struct cache_memory_entry, lru);
    entry->used_ms = now_ms;
    return entry;
}

struct cache_memory_entry *cache_memory_find(struct cache_memory *memory, struct sl_str key, uint64_t now_ms)
{
    return cache_memory_use(memory, lru_find(&memory->lru, key), now_ms);
}

struct cache_memory_entry *cache_memory_at(struct cache_memory *memory, size_t slot, uint64_t serial, uint64_t now_ms)
{
    bool is_there = slot < memory->slot_count && memory->slots[slot].serial == serial && memory->slots[slot].entry;
    return cache_memory_use(memory, is_there ? &memory->slots[slot].entry->lru : NULL, now_ms);
}

/* Makes an entry of an item or, if that is NULL, of an error; a copy of the key lies behind the struct. NULL when out of memory. */
static struct cache_memory_entry *new_entry(struct sl_str key, struct cache_item *item, const struct sl_error *error)
{
    struct cache_memory_entry *entry = calloc(1, sizeof *entry + key.size);
    if (!entry)
        return NULL;
    if (item) {
        entry->item = cache_retain(item);
    } else if ((entry->error = malloc(sizeof *error))) {
        *entry->error = *error;
    } else {
        free(entry);
        return NULL;
    }
    memcpy(entry + 1, key.data, key.size);
    entry->lru.key = (struct sl_str){(char *)(entry + 1), key.size};
    return entry;
}

/* Returns the bytes of an entry that count against the kind's memory limit: what the kind has made of the contents, and the contents if
 * they were copied instead of mapped. `item` NULL: an error. */
static uint64_t weigh(const struct cache_item *item)
{
    uint64_t weight = item ? item->weight + (item->mapping.mapped ? 0 : item->mapping.bytes.size) : 0;
    return BOOKKEEPING + (weight < ITEM_MIN ? ITEM_MIN : weight);
}

/* Replaces an older entry of the key. When out of memory the key has no entry afterwards. */
void cache_memory_put(struct cache_memory *memory, struct sl_str key, struct cache_item *item,
                      const struct sl_error *error, int64_t created_ns, int64_t generation, uint64_t deadline_ms)
{
    struct cache_memory_entry *entry = new_entry(key, item, error);
    cache_memory_drop(memory, key);
    if (!entry || !cache_memory_take_slot(memory, entry)) { /* out of memory: do not cache it */
        entry_discard(entry);
        return;
    }
    entry->used_ms = loop_now_ms();
    entry->created_ns = created_ns;
    entry->generation = generation;
    entry->lru.expires_ms = deadline_ms;
    entry->lru.size = weigh(item);
    memory->mapped += item && item->mapping.mapped;
    if (!lru_put(&memory->lru, &entry->lru)) /* out of memory */
        entry_release(&memory->lru, &entry->lru);
    publish_size(memory);
}

void cache_memory_drop(struct cache_memory *memory, struct sl_str key)
{
    struct lru_entry *entry = lru_find(&memory->lru, key);
    if (entry)
        lru_remove(&memory->lru, entry);
    publish_size(memory);
}

void cache_memory_drop_mapped(struct cache_memory *memory,
                              bool (*matches)(const struct cache_item *item, const void *arg), const void *arg,
                              uint64_t used_before_ms)
{
    for (struct cache_memory_entry *entry = CACHE_MEMORY_OLDEST(memory), *newer; entry; entry = newer) {
        newer = LRU_NEWER(entry, lru);
        if (entry->used_ms >= used_before_ms)
            break; /* the order is that of use: all further ones were used later */
        if (entry->item && entry->item->mapping.mapped && matches(entry->item, arg))
            lru_remove(&memory->lru, &entry->lru);
    }
    publish_size(memory);
}

bool cache_memory_evict_mapped(struct cache_memory *memory)
{
    for (struct cache_memory_entry *entry = CACHE_MEMORY_OLDEST(memory); entry; entry = LRU_NEWER(entry, lru))
        if (entry->item && entry->item->mapping.mapped) {
            lru_remove(&memory->lru, &entry->lru);
            publish_size(memory);
            return true;
        }
    return false;
}

void cache_memory_free(struct cache_memory *memory)
{
    lru_clear(&memory->lru);
    free(memory->slots);
    memory->slots = NULL;
    memory->slot_count = memory->slot_capacity = memory->free_slot = 0;
}

/* Each mapped file is one of the maps that the kernel allows a process (vm.max_map_count, 65530 by default). A fiber needs two, for its
 * stack and the guard page. Cached files get what fibers and RESERVED_MAPS leave, but at most half of the maps. */
uint64_t cache_mapped_limit(const struct config *config)
{
    if (config->max_mapped_files && config->max_mapped_files != UINT64_MAX) /* a limit is configured */
        return config->max_mapped_files;
    unsigned long count = 65530;
    FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
    if (f && fscanf(f, "%lu", &count) != 1)
        count = 65530;
    if (f)
        fclose(f);
    uint64_t fibers = 2 * config->max_fibers, others = fibers + RESERVED_MAPS;
    uint64_t left = others < count ? count - others : 0;
    left = left < count / 2 ? left : count / 2;
    return left > MIN_MAPPED ? left : MIN_MAPPED;
}
