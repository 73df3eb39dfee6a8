/* Tracks which code of an executable already has symbols, in bitmaps. */
#include "symbfile/coverage.h"

#include <stdlib.h>

/* Limit of all executable segments together, in bytes. Bits are allocated for whole segments; where code has no symbols its bits are never
 * touched, and the kernel provides no memory for these. */
static const uint64_t max_code = UINT64_C(1) << 33;
enum { WORD_BITS = 64 };

struct covered_segment {
    uint64_t start, end;
    uint64_t *bits;
};

struct coverage {
    struct sl_account account;
    unsigned shift; /* log2 of the bytes that one bit stands for */
    struct covered_segment *segments;
    size_t segment_count;
    uint64_t root_start, root_end; /* the last function (depth 0) of the current source */
    bool has_root, root_accepted;  /* the source has had a function; the last one was accepted */
};

enum sl_code coverage_new(const struct sl_symbfile_image *image, struct sl_budget *budget, struct coverage **out,
                          struct sl_error *error)
{
    struct coverage *c = calloc(1, sizeof *c);
    uint64_t total = 0;
    *out = c;
    if (c)
        c->account.budget = budget;
    if (c)
        c->segments = calloc(image->segment_count + 1, sizeof *c->segments);
    if (!c || !c->segments)
        return sl_fail(error, SL_BUSY, "out of memory");
    /* ARM64 instructions are aligned to 4 bytes, so one bit stands for 4 bytes; other code has a bit per byte */
    c->shift = image->family == SL_CPU_ARM64 ? 2 : 0;
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct image_segment *s = &image->segments[i];
        if (!s->executable)
            continue;
        total = s->memory_size > max_code - total ? max_code : total + s->memory_size;
        if (total >= max_code)
            return sl_fail(error, SL_UNSUPPORTED, "the executable segments of the file have more than 8 GiB together");
        struct covered_segment *segment = &c->segments[c->segment_count++];
        *segment = (struct covered_segment){s->address, s->address + s->memory_size, NULL};
        /* words of 64 bits; + 2: the rests of both divisions need one more word, the other is a reserve */
        segment->bits = calloc((size_t)((s->memory_size >> c->shift) / 64 + 2), sizeof *segment->bits);
        if (!segment->bits)
            return sl_fail(error, SL_BUSY, "out of memory");
    }
    return SL_OK;
}

void coverage_free(struct coverage *c)
{
    if (!c)
        return;
    for (size_t i = 0; c->segments && i < c->segment_count; i++)
        free(c->segments[i].bits);
    free(c->segments);
    free(c);
}

void coverage_next_source(struct coverage *c)
{
    c->has_root = false;
}

/* Visits the bits of [start, end): sets them if `set` (and returns false), else returns whether any is set. */
static bool test_or_set_bits(const struct coverage *c, struct covered_segment *s, uint64_t start, uint64_t end,
                             bool set)
{
    uint64_t first = (start - s->start) >> c->shift, last = (end - 1 - s->start) >> c->shift;
    for (uint64_t word = first / 64; word <= last / 64; word++) {
        uint64_t mask = UINT64_MAX;
        if (word == first / 64)
            mask &= UINT64_MAX << (first % 64);
        if (word == last / 64)
            mask &= UINT64_MAX >> (63 - last % 64);
        if (set)
            s->bits[word] |= mask;
        else if (s->bits[word] & mask)
            return true;
    }
    return false;
}

/* True if none of the function's code is covered yet; then marks its code as covered. A function outside of all segments is accepted and
 * covers nothing. Code beyond the end of its segment is ignored. False also if the budget is used up. */
static bool accept_root(struct coverage *c, uint64_t start, uint64_t end)
{
    for (size_t i = 0; i < c->segment_count; i++) {
        struct covered_segment *s = &c->segments[i];
        if (start < s->start || start >= s->end)
            continue;
        end = end < s->end ? end : s->end;
        if (start >= end)
            return true;
        /* Charged to the budget: a segment may be much larger than the file, and the same code may be tested many times. */
        if (!sl_account_spend(&c->account, (uint32_t)(((end - start) >> c->shift) / WORD_BITS) + 1))
            return false;
        if (test_or_set_bits(c, s, start, end, false))
            return false;
        test_or_set_bits(c, s, start, end, true);
        return true;
    }
    return true;
}

bool coverage_accept(struct coverage *c, uint64_t start, uint64_t end, uint32_t depth, struct coverage_counts *counts)
{
    bool accepted;
    counts->produced++;
    if (depth == 0) {
        accepted = c->root_accepted = accept_root(c, start, end);
        c->has_root = true;
        c->root_start = start;
        c->root_end = end;
    } else {
        /* an inlined call: it has no bits of its own, it follows the decision on its function */
        accepted = c->has_root && c->root_accepted && start >= c->root_start && end <= c->root_end;
        counts->unexpected += c->has_root && c->root_accepted && !accepted; /* extends beyond its function */
    }
    counts->accepted += accepted;
    counts->rejected += !accepted;
    return accepted;
}
