/* Programs that were rearranged after linking (Vulcan, Syzygy, BBT): symbols have original addresses, and OMAP maps them to addresses
 * of the image. For a function of 10 bytes at 0x1000 that got 5 bytes in its middle, in front of its second block, and whose last 2
 * bytes were moved away:
 *
 *     from    1000 -> 1000, 1005 -> 100a, 1008 -> 3000
 *     to      1000 -> 1000, 1005 -> 1005, 100a -> 1005, 100d -> nowhere, 3000 -> 1008
 *
 * "to" maps the 5 bytes at 1005 to the block after them; "from" maps that block only once, to 100a. Such a part of the image, which only
 * "to" maps to original code, is called a copy of it. Code that the tool inserted and that is no copy, such as counters for profiling,
 * has in "to" the address 0 or one beyond any image. */
#include "pdb/impl.h"

#include "base/grow.h"
#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

/* PAIR: bytes of a pair. IMAGE_LIMIT: larger addresses mean "not in the image". LOOKS: copies that find_copy() looks at. STEPS_...: steps
 * of work for a part that is looked at, and for a copy that is stored. */
enum { PAIR = 8, IMAGE_LIMIT = 0x7fffffff, LOOKS = 64, STEPS_PER_PART = 16, STEPS_PER_ADDED = 96 };

struct omap_pair {
    uint32_t from, to; /* of the table "from": original address, image address; of "to": the other way round */
};

/* Reads pair `index` of a table; zeros outside. */
static struct omap_pair pair_at(struct sl_bytes table, size_t index)
{
    struct sl_reader r = sl_reader(table, false);
    sl_reader_skip(&r, index * PAIR);
    uint32_t from = sl_read_u32(&r);
    return (struct omap_pair){from, sl_read_u32(&r)};
}

/* Returns the number of pairs of the table whose first address is at or below `address`. */
static size_t pairs_up_to(struct sl_bytes table, uint32_t address)
{
    return SL_PARTITION_POINT(middle, 0, table.size / PAIR, pair_at(table, middle).from <= address);
}

/* Returns the image address of an original address by the table "from"; NOT_MAPPED if the code was removed. Addresses from there to `*end`,
 * where the next pair begins, are mapped in the same way. */
static uint32_t translate(struct sl_bytes from, uint32_t address, uint32_t *end)
{
    size_t below = pairs_up_to(from, address);
    *end = below < from.size / PAIR ? pair_at(from, below).from : UINT32_MAX;
    if (*end <= address) /* the table is not sorted: do not return an empty range */
        *end = UINT32_MAX;
    if (!below)
        return NOT_MAPPED;
    struct omap_pair last = pair_at(from, below - 1);
    return last.to && last.to <= IMAGE_LIMIT ? last.to + (address - last.from) : NOT_MAPPED;
}

/* Returns the image address of a copy of the code at an original address; NOT_MAPPED if there is none. Copies that begin at or below the
 * address are looked at backwards, while one may still contain it (`reach`), but at most LOOKS: only crafted files have more. */
static uint32_t find_copy(const struct omap *omap, uint32_t address)
{
    size_t below = SL_COUNT_UP_TO(omap->copies, omap->copy_count, original, address);
    for (size_t looks = 0; below && looks < LOOKS && omap->copies[below - 1].reach > address; looks++) {
        const struct omap_copy *copy = &omap->copies[--below];
        if (address - copy->original < copy->size)
            return copy->address + (address - copy->original);
    }
    return NOT_MAPPED;
}

/* Returns the image address of an original address: where OMAP moved it, else that of a copy of it, else NOT_MAPPED. Without OMAP it is the
 * same address. */
uint32_t pdb_translate(const struct sl_pdb *pdb, uint32_t address)
{
    uint32_t end, now;
    if (pdb->no_addresses)
        return NOT_MAPPED;
    if (!pdb->has_omap)
        return address;
    now = translate(pdb->omap.from, address, &end);
    return now == NOT_MAPPED ? find_copy(&pdb->omap, address) : now;
}

/* ---- copies of code ---- */

SL_ORDER_BY(by_original, struct omap_copy, original, address)

/* The table "to" maps the image's code [address, address + size) to the original code at `original`. Adds those parts to omap.copies that
 * are copies: a part is the original code itself if "from" maps it back to the same image address, else a copy. False when out of memory
 * or budget. */
static bool add_copies(struct sl_pdb *pdb, struct sl_account *account, size_t *capacity, uint32_t original,
                       uint32_t size, uint32_t address)
{
    struct omap *omap = &pdb->omap;
    while (size) {
        uint32_t end, now = translate(omap->from, original, &end), part = end - original < size ? end - original : size;
        if (!sl_account_spend(account, STEPS_PER_PART))
            return false;
        /* "from" maps the original code to another address: this is a copy */
        if (now != address) {
            if (!sl_account_spend(account, STEPS_PER_ADDED) ||
                !sl_grow_in_arena(pdb->arena, &omap->copies, capacity, omap->copy_count + 1, sizeof *omap->copies))
                return false;
            omap->copies[omap->copy_count++] =
                (struct omap_copy){.original = original, .size = part, .address = address};
        }
        original += part;
        address += part;
        size -= part;
    }
    return true;
}

/* Finds the copies among the parts of the image that the pairs of "to" map, each up to the next one. Copies may overlap, so each gets
 * `reach`, the highest end of all copies up to it: a search back from an address stops where `reach` is not above the address. False when
 * out of memory or budget. */
bool omap_find_added(struct sl_pdb *pdb)
{
    struct omap *omap = &pdb->omap;
    struct sl_account account = {.budget = pdb->budget};
    size_t count = omap->to.size / PAIR, capacity = 0;
    for (size_t i = 0; i < count; i++) {
        struct omap_pair here = pair_at(omap->to, i);
        if (!here.to || here.to >= omap->size) /* inserted code, which is no copy */
            continue;
        uint64_t most = omap->size - here.to, length = most; /* most: bytes to the end of the original program */
        if (i + 1 < count) {
            uint32_t next = pair_at(omap->to, i + 1).from;
            length = next > here.from ? next - here.from : 0;
        }
        if (!add_copies(pdb, &account, &capacity, here.to, (uint32_t)(length < most ? length : most), here.from))
            return false;
    }
    if (omap->copy_count)
        qsort(omap->copies, omap->copy_count, sizeof *omap->copies, by_original);
    for (size_t i = 0; i < omap->copy_count; i++) {
        uint64_t end = omap->copies[i].original + omap->copies[i].size, before = i ? omap->copies[i - 1].reach : 0;
        omap->copies[i].reach = end > before ? end : before;
    }
    return true;
}

/* True if "to" maps no part of the image's range [begin, end) to an original address: all of it was inserted, and is no copy. Looks at the
 * pairs of "to", from the one that covers `begin` on; the last pair of the table reaches to the end of the image. */
bool omap_is_all_added(const struct sl_pdb *pdb, uint32_t begin, uint32_t end, struct sl_account *account)
{
    struct sl_bytes to = pdb->omap.to;
    size_t i = pairs_up_to(to, begin);
    if (!i)
        return false;
    for (i--; i < to.size / PAIR; i++) {
        struct omap_pair here = pair_at(to, i);
        /* The pair is behind the range, so all of the range was checked. `> begin`: the pair that covers `begin` is always checked, also if
         * the range is empty or wraps around. */
        if (here.from >= end && here.from > begin)
            return true;
        /* an address of the original program: the range has moved or copied code */
        if (!sl_account_spend(account, STEPS_PER_PART) || (here.to && here.to < pdb->omap.size))
            return false;
    }
    return true;
}

/* ---- iterating over the contiguous parts of some code ---- */

struct code_pieces omap_pieces(const struct sl_pdb *pdb, uint32_t address, uint32_t size)
{
    struct code_pieces pieces = {.address = address, .size = size, .begin = address, .end = (uint64_t)address + size};
    if (size && pdb->omap.copy_count)
        pieces.copies = SL_COUNT_UP_TO(pdb->omap.copies, pdb->omap.copy_count, original, pieces.end - 1);
    return pieces;
}

/* Sets `*piece` to the next contiguous part of the code where OMAP moved it; parts that were removed from the program (NOT_MAPPED) are
 * skipped. False if no part is left; copies of the code may be. */
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

/* Sets `*piece` to the next contiguous part of the code: where OMAP moved it, then its copies, clipped to the code. False at the end, or
 * when the work budget is used up. */
bool pdb_next_piece(const struct sl_pdb *pdb, struct code_pieces *pieces, struct sl_account *account,
                    struct code_piece *piece)
{
    if (next_moved(pdb, pieces, piece))
        return true;
    /* copies from the highest original address down, while one may extend beyond the start of the code */
    while (pieces->copies && pdb->omap.copies[pieces->copies - 1].reach > pieces->begin) {
        const struct omap_copy *copy = &pdb->omap.copies[--pieces->copies];
        uint64_t end = copy->original + copy->size;
        uint64_t first = copy->original > pieces->begin ? copy->original : pieces->begin;
        uint64_t last = end < pieces->end ? end : pieces->end;
        if (!sl_account_spend(account, STEPS_PER_PART))
            return false;
        if (first >= last)
            continue;
        *piece = (struct code_piece){copy->address + (uint32_t)(first - copy->original), (uint32_t)(last - first)};
        return true;
    }
    return false;
}
