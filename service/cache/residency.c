/* Checks whether the pages of mapped entries are resident (in memory): reading one that is not blocks until the disk has read it. */
#include <sys/mman.h>
#include <unistd.h>

#include "cache/cache.h"
#include "core/loop.h"

enum {
    PAGES_AT_A_TIME = 4096,  /* pages that one call of mincore(2) checks */
    RESIDENT_FOR_MS = 10000, /* interval of checks of a resident item */
    CHECK_AGAIN_MS = 1000,   /* interval of checks of an item that is not resident */
    /* Both intervals are a second longer for each so many pages of the item, for which mincore(2) takes half a millisecond. */
    PAGES_PER_SECOND = 16 << 10,
    READ_AHEAD_MAX = 32 << 20 /* bytes: larger items are not read ahead */
};

/* True if an item should be checked: the last check is older than a fixed time, to which large items add some, so that checks take at most
 * about a thousandth of the time. */
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
    /* other callers get true meanwhile: this one reads on the pool, and checks there */
    item->residency_checked_ms = now_ms;
    return false;
}

/* True if all pages of the mapping are resident, and also if mincore(2) fails, as then nothing can be found out. */
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

/* An item that counts as resident is checked in any case, as cache_is_resident has set residency_checked_ms for this check; others only if
 * a check is due. */
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
