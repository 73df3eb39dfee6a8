/* Converts overlapping ranges to segments, by a sweep over their starts and ends in address order. Between two adjacent starts or ends the
 * same ranges are open; at most one of each depth is kept, as the call chain, and the rows of line tables split the segment further. */
#include "symbfile/builder.h"

#include "base/account.h"
#include "base/search.h"

#include <stdlib.h>

/* Limits of work (WORK_PER_RANGE) and of functions that are made (NODES_PER_RANGE) per range and line. Normally, as many ranges are open at
 * once as the inlining is deep. A hostile file may have many overlapping ranges, whose cost is quadratic, so a file that costs far more is
 * rejected. MIN_LIMIT is allowed to any file. */
enum { WORK_PER_RANGE = 64, NODES_PER_RANGE = 4, MIN_LIMIT = 1 << 20 };

struct symbfile_sweep {
    struct sl_symbfile_builder *b;
    struct tree_writer *forest;
    uint64_t base;
    uint32_t *order;  /* ranges sorted by start */
    uint32_t *active; /* open ranges sorted by depth, then by file order */
    size_t active_count, active_capacity;
    const struct builder_range *chosen[SL_SYMBFILE_MAX_DEPTH + 1]; /* by depth, outermost first, without gaps */
    size_t chosen_count;
    uint64_t work, max_work, max_nodes;
};

/* ---- ordering ---- */
/* Orders ranges by start; those with one start as in the file. */
static bool range_before(const struct sl_symbfile_builder *builder, uint32_t left, uint32_t right)
{
    const struct builder_range *a = &builder->ranges[left], *b = &builder->ranges[right];
    return a->start != b->start ? a->start < b->start : left < right;
}

/* Merge sort: fast on nearly sorted input, which symbfiles are. */
uint32_t *builder_order(struct sl_symbfile_builder *b, size_t count,
                        bool (*before)(const struct sl_symbfile_builder *b, uint32_t left, uint32_t right))
{
    struct sl_account *account = &b->account;
    uint32_t *a = sl_account_alloc(account, count, sizeof *a),
             *scratch = sl_account_alloc(account, count, sizeof *scratch);
    for (size_t i = 0; a && i < count; i++)
        a[i] = (uint32_t)i;
    size_t looked_at = 0;
    for (size_t width = 1; a && scratch && width < count; width *= 2) {
        for (size_t start = 0; start + width < count; start += 2 * width) {
            size_t middle = start + width, end = middle + width < count ? middle + width : count;
            builder_checkpoint(b, looked_at++);
            if (before(b, a[middle - 1], a[middle])) /* both halves are in order already */
                continue;
            /* when the copy of the left half is used up, the rest of the right half is in its place */
            memcpy(scratch, a + start, width * sizeof *a);
            for (size_t i = 0, j = middle, k = start; i < width; builder_checkpoint(b, looked_at++))
                a[k++] = j < end && before(b, a[j], scratch[i]) ? a[j++] : scratch[i++];
        }
    }
    if (!scratch) {
        sl_account_free(account, a, count, sizeof *a);
        a = NULL;
    }
    sl_account_free(account, scratch, count, sizeof *scratch);
    return a;
}

/* ---- the open ranges ---- */
/* Inserts a range into s->active: after ranges of a lower depth, and in file order among those of its depth. False when out of memory. */
static bool open_range(struct symbfile_sweep *s, uint32_t index)
{
    const struct builder_range *ranges = s->b->ranges;
    if (!sl_account_grow(&s->b->account, &s->active, &s->active_capacity, s->active_count + 1, sizeof *s->active))
        return false;
    size_t at = s->active_count++;
    for (; at && ranges[s->active[at - 1]].depth > ranges[index].depth; at--)
        s->active[at] = s->active[at - 1];
    for (; at && ranges[s->active[at - 1]].depth == ranges[index].depth && s->active[at - 1] > index; at--)
        s->active[at] = s->active[at - 1];
    s->active[at] = index;
    s->work += s->active_count - at;
    return true;
}

/* Removes ranges that end at or before `at` from s->active; returns the lowest end of the others, UINT64_MAX if none is left. */
static uint64_t close_ranges(struct symbfile_sweep *s, uint64_t at)
{
    uint64_t next = UINT64_MAX;
    size_t kept = 0;
    for (size_t i = 0; i < s->active_count; i++) {
        uint64_t end = s->b->ranges[s->active[i]].end;
        if (end <= at)
            continue;
        s->active[kept++] = s->active[i];
        next = end < next ? end : next;
    }
    s->active_count = kept;
    return next;
}

/* True if `outer` contains all of `inner`. */
static bool contains(const struct builder_range *outer, const struct builder_range *inner)
{
    return outer->start <= inner->start && inner->end <= outer->end;
}

/* True if `b`, which comes later in the file, is preferred to `a` of the same depth. In this order: it lies inside `around` (the range
 * chosen one depth above), it has a file or lines, it is shorter or equal, as a shorter range describes its code more precisely. */
static bool is_preferred(const struct builder_range *a, const struct builder_range *b,
                         const struct builder_range *around)
{
    bool a_is_inside = around && contains(around, a), b_is_inside = around && contains(around, b);
    if (a_is_inside != b_is_inside)
        return b_is_inside;
    bool known_a = a->file != FOREST_NO_TEXT || a->line_count, known_b = b->file != FOREST_NO_TEXT || b->line_count;
    if (known_a != known_b)
        return known_b;
    return b->end - b->start <= a->end - a->start;
}

/* Sets s->chosen to one open range of each depth that has any, outermost first: the call chain of the code here. */
static void choose_ranges(struct symbfile_sweep *s)
{
    const struct builder_range *ranges = s->b->ranges;
    s->chosen_count = 0;
    for (size_t i = 0; i < s->active_count;) {
        const struct builder_range *best = &ranges[s->active[i++]];
        const struct builder_range *last = s->chosen_count ? s->chosen[s->chosen_count - 1] : NULL;
        const struct builder_range *around = last && last->depth + 1 == best->depth ? last : NULL;
        for (; i < s->active_count && ranges[s->active[i]].depth == best->depth; i++)
            if (is_preferred(best, &ranges[s->active[i]], around))
                best = &ranges[s->active[i]];
        s->chosen[s->chosen_count++] = best;
    }
}

/* ---- locations ---- */

/* Returns the line that the range's line table has for `va`, 0 if it has none. Lowers `*next` to the address at which the next row of the
 * table begins. */
static uint32_t symbfile_sweep_line_at(const struct symbfile_sweep *s, const struct builder_range *range, uint64_t va,
                                       uint64_t *next)
{
    if (!range->line_count)
        return 0;
    const struct sl_symbfile_line *lines = s->b->lines + range->first_line;
    uint64_t offset = va - range->start;
    size_t low = SL_PARTITION_POINT(middle, 0, range->line_count, lines[middle].offset <= offset);
    if (low < range->line_count && range->start + lines[low].offset < *next)
        *next = range->start + lines[low].offset;
    return low ? lines[low - 1].line : 0;
}

/* Sets `chain` to the functions of the chosen ranges, outermost first, with their positions at `va`. The innermost has the line of the
 * code; every other one has the place at which the next one was inlined. Lowers `*next` to the address up to which these positions are
 * valid. */
static void locate_chain(const struct symbfile_sweep *s, uint64_t va, struct inline_chain_link *chain, uint64_t *next)
{
    for (size_t i = 0; i < s->chosen_count; i++) {
        const struct builder_range *range = s->chosen[i];
        const struct builder_range *inner = i + 1 < s->chosen_count ? s->chosen[i + 1] : NULL;
        chain[i] = (struct inline_chain_link){range->function, range->file, 0};
        /* it is the innermost, or the range of the next depth is missing, so that only its own line table is left */
        if (!inner || inner->depth != range->depth + 1) {
            chain[i].line = symbfile_sweep_line_at(s, range, va, next);
            continue;
        }
        chain[i].line = inner->call_line;
        if (inner->call_file != INHERITED)
            chain[i].file = inner->call_file;
    }
}

/* Fails if the ranges up to `at` have cost more work or made more functions than their number allows. */
static enum sl_code check_work(const struct symbfile_sweep *s, uint64_t at, struct sl_error *error)
{
    return s->work <= s->max_work && tree_writer_node_count(s->forest) <= s->max_nodes
               ? SL_OK
               : sl_fail(error, SL_MALFORMED, "symbfile ranges overlap too much at 0x%llx", (unsigned long long)at);
}

/* Adds the code [start, end), in which the same ranges are open: one segment for each address from which on the call chain has other lines.
 * Without an open range there is nothing to add. */
static enum sl_code add_segment(struct symbfile_sweep *s, uint64_t start, uint64_t end, struct sl_error *error)
{
    struct inline_chain_link chain[SL_SYMBFILE_MAX_DEPTH + 1];
    choose_ranges(s);
    enum sl_code code = SL_OK;
    for (uint64_t at = start, next; at < end && code == SL_OK && s->chosen_count; at = next) {
        next = end;
        locate_chain(s, at, chain, &next);
        s->work += s->chosen_count;
        code = tree_writer_add(s->forest, at - s->base, next - s->base, chain, s->chosen_count, error);
        code = code == SL_OK ? check_work(s, at, error) : code;
    }
    return code;
}

enum sl_code builder_sweep(struct sl_symbfile_builder *b, uint64_t base, struct tree_writer *forest,
                           struct sl_error *error)
{
    struct symbfile_sweep s = {.b = b, .forest = forest, .base = base};
    /* limits of the work and of the functions written: ranges that overlap much could take any number of each */
    s.max_work = (b->range_count + b->line_count) * WORK_PER_RANGE + MIN_LIMIT;
    s.max_nodes = (b->range_count + b->line_count) * NODES_PER_RANGE + MIN_LIMIT;
    s.order = b->range_count < UINT32_MAX ? builder_order(b, b->range_count, range_before) : NULL;
    enum sl_code code = s.order ? SL_OK : sl_budget_fail(b->limit, error);
    uint64_t at = base;
    /* `at` moves from one start or end of a range to the next, which is `next`; i: ranges that have been opened */
    for (size_t i = 0; code == SL_OK && (i < b->range_count || s.active_count);) {
        uint64_t next = close_ranges(&s, at);
        for (; i < b->range_count && b->ranges[s.order[i]].start <= at && code == SL_OK; i++) {
            builder_checkpoint(b, i);
            code = open_range(&s, s.order[i]) ? check_work(&s, at, error) : sl_budget_fail(b->limit, error);
            next = b->ranges[s.order[i]].end < next ? b->ranges[s.order[i]].end : next;
        }
        if (i < b->range_count && b->ranges[s.order[i]].start < next)
            next = b->ranges[s.order[i]].start;
        s.work += s.active_count;
        if (code == SL_OK)
            code = check_work(&s, at, error);
        if (code == SL_OK && s.active_count)
            code = add_segment(&s, at, next, error);
        at = next;
    }
    sl_account_free(&b->account, s.order, b->range_count, sizeof *s.order);
    sl_account_free(&b->account, s.active, s.active_capacity, sizeof *s.active);
    return code;
}
