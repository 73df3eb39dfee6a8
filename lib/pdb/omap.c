/* Programs that were rearranged after linking (Vulcan, Syzygy, BBT): symbols have original addresses, and OMAP maps them to addresses
 * of the image. For a function of 10 bytes at 0x1000 that got 5 bytes in its middle, in front of its second block, and whose last 2
 * bytes were moved away:
 *
 *     from    1000 -> 1000, 1005 -> 100a, 1008 -> 3000
 *     to      1000 -> 1000, 1005 -> 1005, 100a -> 1005, 100d -> nowhere, 3000 -> 1008
 *
 * "to" maps the 5 bytes at 1005 to the block after them; "from" maps that block only once, to 100a. Code that only "to" maps is
 * called "added". For inserted code without an original, tools write "nowhere" in "to": 0, or an address beyond any image. */
#include "pdb/impl.h"

#include "base/grow.h"
#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

enum { PAIR = 8, IMAGE_LIMIT = 0x7fffffff, LOOKS = 64, STEPS_PER_PART = 16, STEPS_PER_ADDED = 96 };

struct omap_pair {
    uint32_t from, to;
};

static struct omap_pair pair_at(struct sl_bytes table, size_t index)
{
    struct sl_reader r = sl_reader(table, false);
    sl_reader_skip(&r, index * PAIR);
    uint32_t from = sl_read_u32(&r);
    return (struct omap_pair){from, sl_read_u32(&r)};
}

/* Returns the number of pairs that begin at or below `address`. */
static size_t pairs_up_to(struct sl_bytes table, uint32_t address)
{
    return SL_PARTITION_POINT(middle, 0, table.size / PAIR, pair_at(table, middle).from <= address);
}

/* Returns the image address of `address`, or NOT_MAPPED. The mapping is linear up to `*end`. */
static uint32_t translate(struct sl_bytes from, uint32_t address, uint32_t *end)
{
    size_t below = pairs_up_to(from, address);
    *end = below < from.size / PAIR ? pair_at(from, below).from : UINT32_MAX;
    if (*end <= address) /* out of order */
        *end = UINT32_MAX;
    if (!below)
        return NOT_MAPPED;
    struct omap_pair last = pair_at(from, below - 1);
    return last.to && last.to <= IMAGE_LIMIT ? last.to + (address - last.from) : NOT_MAPPED;
}

/* Returns the image address of added code for `address`, or NOT_MAPPED. Copies overlap rarely, so only the last LOOKS entries are checked:
 * more are only found in crafted files. */
static uint32_t find_added(const struct omap *omap, uint32_t address)
{
    size_t below = SL_COUNT_UP_TO(omap->inserted, omap->added_count, original, address);
    for (size_t looks = 0; below && looks < LOOKS && omap->inserted[below - 1].reach > address; looks++) {
        const struct omap_inserted *inserted = &omap->inserted[--below];
        if (address - inserted->original < inserted->size)
            return inserted->address + (address - inserted->original);
    }
    return NOT_MAPPED;
}

uint32_t pdb_translate(const struct sl_pdb *pdb, uint32_t address)
{
    uint32_t end, now;
    if (pdb->no_addresses)
        return NOT_MAPPED;
    if (!pdb->has_omap)
        return address;
    now = translate(pdb->omap.from, address, &end);
    return now == NOT_MAPPED ? find_added(&pdb->omap, address) : now;
}

/* ---- added code ---- */

SL_ORDER_BY(by_original, struct omap_inserted, original, address)

/* Adds code that was copied: "to" maps [address, address + size) of the image to `original`. Parts that "from" maps to the same address are
 * the moved code itself; the others are added to omap.inserted. False when out of memory or budget. */
static bool add_parts(struct sl_pdb *pdb, struct sl_account *account, size_t *capacity, uint32_t original,
                      uint32_t size, uint32_t address)
{
    struct omap *omap = &pdb->omap;
    while (size) {
        uint32_t end, now = translate(omap->from, original, &end), part = end - original < size ? end - original : size;
        if (!sl_account_spend(account, STEPS_PER_PART))
            return false;
        /* "from" has the original elsewhere: this is a copy of it */
        if (now != address) {
            if (!sl_account_spend(account, STEPS_PER_ADDED) ||
                !sl_grow_in_arena(pdb->arena, &omap->inserted, capacity, omap->added_count + 1, sizeof *omap->inserted))
                return false;
            omap->inserted[omap->added_count++] =
                (struct omap_inserted){.original = original, .size = part, .address = address};
        }
        original += part;
        address += part;
        size -= part;
    }
    return true;
}

/* Each pair of "to" is valid up to the next one. Entries overlap, so a lookup by start address alone could not know when to stop going
 * back: `reach`, the highest end so far, tells. */
bool omap_find_added(struct sl_pdb *pdb)
{
    struct omap *omap = &pdb->omap;
    struct sl_account account = {.budget = pdb->budget};
    size_t count = omap->to.size / PAIR, capacity = 0;
    for (size_t i = 0; i < count; i++) {
        struct omap_pair here = pair_at(omap->to, i);
        /* inserted code without an original */
        if (!here.to || here.to >= omap->size)
            continue;
        uint64_t most = omap->size - here.to, length = most;
        if (i + 1 < count) {
            uint32_t next = pair_at(omap->to, i + 1).from;
            length = next > here.from ? next - here.from : 0;
        }
        if (!add_parts(pdb, &account, &capacity, here.to, (uint32_t)(length < most ? length : most), here.from))
            return false;
    }
    if (omap->added_count)
        qsort(omap->inserted, omap->added_count, sizeof *omap->inserted, by_original);
    for (size_t i = 0; i < omap->added_count; i++) {
        uint64_t end = omap->inserted[i].original + omap->inserted[i].size,
                 before = i ? omap->inserted[i - 1].reach : 0;
        omap->inserted[i].reach = end > before ? end : before;
    }
    return true;
}

/* Checks the pairs of "to", from the one that covers `begin` on. The last pair is valid up to the end of the image, so if there are no more
 * pairs, the whole range was checked. */
bool omap_is_all_added(const struct sl_pdb *pdb, uint32_t begin, uint32_t end, struct sl_account *account)
{
    struct sl_bytes to = pdb->omap.to;
    size_t i = pairs_up_to(to, begin);
    if (!i)
        return false;
    for (i--; i < to.size / PAIR; i++) {
        struct omap_pair here = pair_at(to, i);
        /* the pair lies behind the range, so all of it was checked; `> begin`: the pair that covers `begin` is always checked, also if
         * the range is empty or wraps around */
        if (here.from >= end && here.from > begin)
            return true;
        /* an address of the original program: code of the program lies in the range, not only inserted code */
        if (!sl_account_spend(account, STEPS_PER_PART) || (here.to && here.to < pdb->omap.size))
            return false;
    }
    return true;
}

/* ---- code, piece by piece ---- */

struct code_pieces omap_pieces(const struct sl_pdb *pdb, uint32_t address, uint32_t size)
{
    struct code_pieces pieces = {.address = address, .size = size, .begin = address, .end = (uint64_t)address + size};
    if (size && pdb->omap.added_count)
        pieces.inserted = SL_COUNT_UP_TO(pdb->omap.inserted, pdb->omap.added_count, original, pieces.end - 1);
    return pieces;
}

/* Returns the next piece of the code where OMAP moved it; parts that were removed from the program (NOT_MAPPED) are skipped. False at
 * the end: then only added copies are left. */
static bool next_moved(const struct sl_pdb *pdb, struct code_pieces *pieces, struct code_piece *piece)
{
    while (pieces->size) {
        uint32_t end = UINT32_MAX, left = pieces->size;
        piece->address = pdb->has_omap ? translate(pdb->omap.from, pieces->address, &end) : pieces->address;
        piece->size = end - pieces->address < left ? end - pieces->address : left;
        pieces->address += piece->size;
        pieces->size = piece->size ? left - piece->size : 0;
        if (piece->address != NOT_MAPPED)
            return true;
    }
    return false;
}

bool pdb_next_piece(const struct sl_pdb *pdb, struct code_pieces *pieces, struct sl_account *account,
                    struct code_piece *piece)
{
    if (next_moved(pdb, pieces, piece))
        return true;
    /* backwards, while an entry may extend beyond `begin` */
    while (pieces->inserted && pdb->omap.inserted[pieces->inserted - 1].reach > pieces->begin) {
        const struct omap_inserted *inserted = &pdb->omap.inserted[--pieces->inserted];
        uint64_t end = inserted->original + inserted->size;
        uint64_t first = inserted->original > pieces->begin ? inserted->original : pieces->begin;
        uint64_t last = end < pieces->end ? end : pieces->end;
        if (!sl_account_spend(account, STEPS_PER_PART))
            return false;
        if (first >= last)
            continue;
        *piece =
            (struct code_piece){inserted->address + (uint32_t)(first - inserted->original), (uint32_t)(last - first)};
        return true;
    }
    return false;
}
