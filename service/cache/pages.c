/* Whether the pages of mapped entries are in memory: to read one that is not takes as long as the disk does. */
#include <sys/mman.h>
#include <unistd.h>

#include "cache/cache.h"
#include "core/loop.h"

enum {
    AT_A_TIME = 4096, /* pages */
    BELIEVED_MS = 10000,
    LOOK_AGAIN_MS = 1000,
    PAGES_PER_SECOND =
        16 << 10, /* half a millisecond's looking: of large ones less often, a thousandth of the time at most */
    FETCHED_WHOLE = 32 << 20 /* bytes: what is larger comes page by page, as it is used */
};

static bool is_due(const struct cache_item *item, uint64_t now_ms)
{
    uint64_t pages = item->mapping.mapped / (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t rest = item->all_there ? BELIEVED_MS : LOOK_AGAIN_MS;
    return !item->looked_ms || now_ms >= item->looked_ms + rest + pages / PAGES_PER_SECOND * 1000;
}

bool cache_at_hand(struct cache_item *item)
{
    if (!item->mapping.mapped)
        return true; /* a copy */
    if (!item->all_there)
        return false;
    uint64_t now_ms = loop_now_ms();
    if (!is_due(item, now_ms))
        return true;
    item->looked_ms = now_ms; /* who asked looks */
    return false;
}

/* Where the kernel does not tell, they are taken for present. */
static bool are_all_there(const struct sl_mapping *mapping)
{
    unsigned char there[AT_A_TIME];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), step = AT_A_TIME * page;
    for (size_t at = 0; at < mapping->mapped; at += step) {
        size_t size = mapping->mapped - at < step ? mapping->mapped - at : step, pages = (size + page - 1) / page;
        if (mincore((void *)(mapping->bytes.data + at), size, there) != 0)
            return true;
        for (size_t i = 0; i < pages; i++)
            if (!(there[i] & 1))
                return false;
    }
    return true;
}

void cache_look_at_pages(struct cache_item *item)
{
    uint64_t now_ms = clock_mono_ns() / 1000000;
    if (!item->mapping.mapped || (!item->all_there && !is_due(item, now_ms)))
        return;
    item->looked_ms = now_ms;
    item->all_there = are_all_there(&item->mapping);
    if (!item->all_there && item->mapping.mapped <= FETCHED_WHOLE)
        madvise((void *)item->mapping.bytes.data, item->mapping.mapped, MADV_WILLNEED);
}
