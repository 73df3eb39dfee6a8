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
    size_t key_size;
    char key[];
};

static struct { /* loop thread */
    struct sl_map map;
    struct open_bundle *newest, *oldest;
    uint64_t bytes;
} table;

static struct sl_str key_of(const struct open_bundle *open)
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

static void drop(struct open_bundle *open)
{
    unlink_bundle(open);
    sl_map_remove(&table.map, key_of(open));
    table.bytes -= open->item->weight;
    cache_release(open->item);
    free(open);
}

struct cache_item *open_bundles_get(struct sl_str key)
{
    struct open_bundle *open = sl_map_get(&table.map, key);
    if (!open)
        return NULL;
    if (open->until_ns <= clock_mono_ns()) {
        drop(open);
        return NULL;
    }
    unlink_bundle(open);
    link_newest(open);
    return cache_retain(open->item);
}

void open_bundles_put(struct sl_str key, struct cache_item *item)
{
    struct open_bundle *open = sl_map_get(&table.map, key);
    if (open)
        drop(open);
    open = item->weight <= keep_bytes ? malloc(sizeof *open + key.size) : NULL;
    if (!open)
        return;
    *open = (struct open_bundle){.until_ns = clock_mono_ns() + keep_ns, .key_size = key.size};
    memcpy(open->key, key.data, key.size);
    void **slot = sl_map_slot(&table.map, key_of(open), NULL);
    if (!slot) { /* nothing depends on its being kept */
        free(open);
        return;
    }
    *slot = open;
    open->item = cache_retain(item);
    table.bytes += item->weight;
    link_newest(open);
    while (table.bytes > keep_bytes)
        drop(table.oldest);
}

void kinds_close(void)
{
    while (table.oldest)
        drop(table.oldest);
    sl_map_free(&table.map);
    origin_close();
}
