/* From the sequence of operations to the final map: a stable sort by address, then every address on its own. */
#include "symcache/build.h"

#include <stdlib.h>

struct key {
    uint32_t address, index;
};

/* LSD radix sort by 11 bits; three passes for 32-bit addresses. Returns the array that holds the result. */
static struct key *radix_sort(struct key *a, struct key *b, size_t count)
{
    enum { BITS = 11, SIZE = 1 << BITS };
    static const unsigned shifts[] = {0, 11, 22};
    size_t histogram[3][SIZE];
    memset(histogram, 0, sizeof histogram);
    for (size_t i = 0; i < count; i++)
        for (unsigned pass = 0; pass < 3; pass++)
            histogram[pass][a[i].address >> shifts[pass] & (SIZE - 1)]++;
    for (unsigned pass = 0; pass < 3; pass++) {
        size_t *slots = histogram[pass], sum = 0;
        if (count && slots[a[0].address >> shifts[pass] & (SIZE - 1)] == count)
            continue;
        for (size_t i = 0; i < SIZE; i++) {
            size_t n = slots[i];
            slots[i] = sum;
            sum += n;
        }
        for (size_t i = 0; i < count; i++)
            b[slots[a[i].address >> shifts[pass] & (SIZE - 1)]++] = a[i];
        struct key *t = a;
        a = b;
        b = t;
    }
    return a;
}

/* Stable merge sort of indexes for addresses beyond 32 bits. */
static void merge_sort(const struct op *ops, uint32_t *a, uint32_t *scratch, size_t count)
{
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t middle = start + width < count ? start + width : count;
            size_t end = start + 2 * width < count ? start + 2 * width : count;
            size_t i = start, j = middle, k = start;
            while (i < middle || j < end)
                scratch[k++] = j >= end || (i < middle && ops[a[i]].address <= ops[a[j]].address) ? a[i++] : a[j++];
        }
        memcpy(a, scratch, count * sizeof *a);
    }
}

/* The order of the operations by (address, sequence); NULL when out of memory. */
static uint32_t *sorted_order(const struct op *ops, size_t count)
{
    bool wide = false;
    for (size_t i = 0; i < count && !wide; i++)
        wide = ops[i].address > UINT32_MAX;
    uint32_t *order = malloc((count + 1) * sizeof *order);
    if (wide) {
        uint32_t *scratch = malloc((count + 1) * sizeof *scratch);
        for (size_t i = 0; order && scratch && i < count; i++)
            order[i] = (uint32_t)i;
        if (order && scratch)
            merge_sort(ops, order, scratch, count);
        free(scratch);
        return order;
    }
    struct key *keys = malloc((count + 1) * sizeof *keys), *scratch = malloc((count + 1) * sizeof *scratch);
    if (order && keys && scratch) {
        for (size_t i = 0; i < count; i++)
            keys[i] = (struct key){(uint32_t)ops[i].address, (uint32_t)i};
        const struct key *sorted = radix_sort(keys, scratch, count);
        for (size_t i = 0; i < count; i++)
            order[i] = sorted[i].index;
    } else {
        free(order);
        order = NULL;
    }
    free(keys);
    free(scratch);
    return order;
}

static bool same_location(const struct op *a, const struct op *b)
{
    if (a->kind == OP_HOLE || b->kind == OP_HOLE)
        return a->kind == b->kind;
    return a->context == b->context && a->file == b->file && a->line == b->line;
}

bool symcache_fold(struct sl_symcache_writer *w, struct encoded *out)
{
    uint32_t *order = w->op_count < UINT32_MAX ? sorted_order(w->ops, w->op_count) : NULL;
    struct op *folded = order ? malloc((w->op_count + 1) * sizeof *folded) : NULL;
    size_t count = 0;
    if (!folded) {
        free(order);
        return false;
    }
    for (size_t i = 0; i < w->op_count;) {
        struct op now = w->ops[order[i++]];
        while (i < w->op_count && w->ops[order[i]].address == now.address) {
            const struct op *next = &w->ops[order[i++]];
            if (next->kind == OP_SET || (next->kind == OP_ENTRY && now.kind == OP_HOLE))
                now = *next;
        }
        now.kind = now.kind == OP_HOLE ? OP_HOLE : OP_SET;
        bool redundant = count ? same_location(&folded[count - 1], &now) : now.kind == OP_HOLE;
        if (!redundant)
            folded[count++] = now;
    }
    free(order);
    free(w->ops);
    w->ops = folded;
    w->op_capacity = w->op_count = count;
    out->ops = folded;
    out->op_count = count;
    return true;
}
