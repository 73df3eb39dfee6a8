/* Bundles that stay open between requests. Opening one reads its whole manifest, which may be megabytes; the memory layer
 * of the kind `objects` is made for handles and would give it up at once. */
#include "kinds/impl.h"

#include <stdlib.h>

#include "base/map.h"
#include "core/loop.h"

/* An entry goes back to the cache now and then, whose business it is to know what is still used. */
static const uint64_t keep_bytes = UINT64_C(64) << 20, keep_ns = UINT64_C(600) * 1000 * 1000 * 1000;

struct open_bundle {
    struct open_bundle *newer, *older;
    struct cache_item *item; /* reference */
    uint64_t until_ns;
    int64_t generation; /* of invalidations, as of which it is known to be good */
    size_t key_size;
    char key[];
};

static struct { /* loop thread */
    struct sl_map map;
    struct open_bundle *newest, *oldest;
    uint64_t bytes;
} table;

static struct sl_str open_bundles_key_of(const struct open_bundle *open)
{
    return (struct sl_str){open->key, open->key_size};
}

static void unlink_bundle(struct open_bundle *open)
{
    *(open->newer ? &open->newer->older : &table.newest) = open->older;
    *(open->older ? &open->older->newer : &table.oldest) = open->newer;
    open->newer = open->older = NULL;
}

static void link_newest(struct open_bundle *open)
{
    open->older = table.newest;
    *(table.newest ? &table.newest->newer : &table.oldest) = open;
    table.newest = open;
}

static void open_bundles_drop(struct open_bundle *open)
{
    unlink_bundle(open);
    sl_map_remove(&table.map, open_bundles_key_of(open));
    table.bytes -= open->item->weight;
    cache_release(open->item);
    free(open);
}

static struct open_bundle *open_bundles_find(struct sl_str key)
{
    struct open_bundle *open = sl_map_get(&table.map, key);
    if (!open || open->until_ns > clock_mono_ns())
        return open;
    open_bundles_drop(open);
    return NULL;
}

/* After another process has invalidated something: whether that was this one. */
static struct open_bundle *open_bundles_check(struct sl_str key, struct open_bundle *open, int64_t generation)
{
    struct cache_item *item = cache_retain(open->item);
    bool replaced = cache_replaced(key, item->time_created);
    open = open_bundles_find(key);
    if (open && open->item == item) {
        open->generation = generation;
        if (replaced)
            open_bundles_drop(open);
    }
    cache_release(item);
    return replaced ? NULL : open_bundles_find(key);
}

struct cache_item *open_bundles_get(struct sl_str key)
{
    int64_t generation = cache_generation_seen();
    struct open_bundle *open = open_bundles_find(key);
    if (open && open->generation != generation)
        open = open_bundles_check(key, open, generation);
    if (!open)
        return NULL;
    unlink_bundle(open);
    link_newest(open);
    return cache_retain(open->item);
}

static void hear(const struct cache_file *files, size_t count)
{
    for (struct open_bundle *open = table.oldest, *newer; open; open = newer) {
        newer = open->newer;
        bool named = false;
        for (size_t i = 0; i < count && !named; i++)
            named = cache_key_names(open_bundles_key_of(open), &files[i]);
        if (named)
            open_bundles_drop(open);
    }
}

static void hear_fault(const void *address)
{
    for (struct open_bundle *open = table.oldest, *newer; open; open = newer) {
        newer = open->newer;
        if (cache_item_holds(open->item, address))
            open_bundles_drop(open);
    }
}

void open_bundles_init(void)
{
    cache_on_invalidation(hear);
    cache_on_fault(hear_fault);
}

void open_bundles_put(struct sl_str key, struct cache_item *item, int64_t generation)
{
    struct open_bundle *open = sl_map_get(&table.map, key);
    if (open)
        open_bundles_drop(open);
    if (generation != cache_generation_seen()) /* it may be an old one */
        return;
    open = item->weight <= keep_bytes ? malloc(sizeof *open + key.size) : NULL;
    if (!open)
        return;
    *open = (struct open_bundle){.until_ns = clock_mono_ns() + keep_ns, .generation = generation, .key_size = key.size};
    memcpy(open->key, key.data, key.size);
    void **slot = sl_map_slot(&table.map, open_bundles_key_of(open), NULL);
    if (!slot) { /* nothing depends on its being kept */
        free(open);
        return;
    }
    *slot = open;
    open->item = cache_retain(item);
    table.bytes += item->weight;
    link_newest(open);
    while (table.bytes > keep_bytes)
        open_bundles_drop(table.oldest);
}

void open_bundles_close(void)
{
    while (table.oldest)
        open_bundles_drop(table.oldest);
    sl_map_free(&table.map);
}
