/* Residency of the pages of mapped entries: reading a page that is not resident blocks until the disk has read it. */
#include <sys/mman.h>
#include <unistd.h>

#include "cache/cache.h"
#include "core/loop.h"

enum {
    PAGES_AT_A_TIME = 4096, /* pages */
    RESIDENT_FOR_MS = 10000,
    CHECK_AGAIN_MS = 1000,
    PAGES_PER_SECOND =
        /* half a millisecond of mincore: large items are checked less often, so that it takes at most a thousandth of the time */
    16 << 10,
    READ_AHEAD_MAX = 32 << 20 /* bytes: larger items are not read ahead */
};

/* True if the last check is too old to rely on. Small items are checked after a fixed time, large ones later. */
static bool is_due(const struct cache_item *item, uint64_t now_ms)
{
    uint64_t pages = item->mapping.mapped / (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t rest = item->is_resident ? RESIDENT_FOR_MS : CHECK_AGAIN_MS;
    return !item->residency_checked_ms || now_ms >= item->residency_checked_ms + rest + pages / PAGES_PER_SECOND * 1000;
}

bool cache_is_resident(struct cache_item *item)
{
    if (!item->mapping.mapped)
        return true; /* a copy */
    if (!item->is_resident)
        return false;
    uint64_t now_ms = loop_now_ms();
    if (!is_due(item, now_ms))
        return true;
    item->residency_checked_ms = now_ms; /* this caller checks */
    return false;
}

/* True if all pages of the mapping are resident, and also if mincore(2) fails: then reading on the pool would gain nothing. */
static bool are_all_resident(const struct sl_mapping *mapping)
{
    unsigned char there[PAGES_AT_A_TIME];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), step = PAGES_AT_A_TIME * page;
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

/* An item that counts as resident is checked in any case: cache_is_resident has already noted the time of this check. */
void cache_check_residency(struct cache_item *item)
{
    uint64_t now_ms = clock_mono_ns() / 1000000;
    if (!item->mapping.mapped || (!item->is_resident && !is_due(item, now_ms)))
        return;
    item->residency_checked_ms = now_ms;
    item->is_resident = are_all_resident(&item->mapping);
    if (!item->is_resident && item->mapping.mapped <= READ_AHEAD_MAX)
        madvise((void *)item->mapping.bytes.data, item->mapping.mapped, MADV_WILLNEED);
}
