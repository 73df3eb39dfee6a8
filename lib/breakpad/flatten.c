/* Flattens the tree of a function and its inlined calls into a list of lines and a list of calls, as FUNC and INLINE records have them.
 *
 *     function   |=====a=====|··call··|====b====|·call·|      lines; the line of a call covers the inlined code
 *     inlinee                |==c==|..|                       code without lines of its own keeps the line of the call
 *     inlinee                                   |==d===|
 *     lines      |     a     |  c  |ca|    b    |  d   |
 *
 * An inlined call consists only of the code that its lines cover, as in lib/symcache, and its INLINE record gets exactly these ranges. */
#include "breakpad/impl.h"

#include "base/order.h"
#include "function/assemble.h"

#include <stdlib.h>

struct breakpad_span { /* the code of a line of a function that is inlined directly in the current one */
    uint64_t start, end;
    const struct sl_function *inlinee;
};

struct flatten_walk {
    struct flat_function *flat;
    struct sl_arena *arena;
    breakpad_name_of *name_of;
    void *arg;
    size_t first_line;  /* index of this function's first line in flat->lines */
    uint64_t low, high; /* code outside is not part of the function, even if a line covers it */
    bool failed;
};

/* Returns the end of a range, at most UINT64_MAX. */
static uint64_t flatten_end_address(uint64_t address, uint64_t size)
{
    return size > UINT64_MAX - address ? UINT64_MAX : address + size;
}

SL_ORDER_BY(flatten_by_start, struct breakpad_span, start, inlinee)

/* Returns the lines of all functions that are inlined directly in `f`, sorted by start: they are the code that the inlined calls cover. A
 * line of size 0, whose size is not known, covers one byte. NULL if there are none; also NULL, with w->failed set, when out of memory. */
static struct breakpad_span *make_spans(struct flatten_walk *w, const struct sl_function *f, size_t *count)
{
    size_t total = 0;
    *count = 0;
    for (uint32_t i = 0; i < f->inlinee_count; i++)
        total += f->inlinees[i].line_count;
    struct breakpad_span *spans = total ? sl_arena_alloc(w->arena, total * sizeof *spans, 8) : NULL;
    if (!spans) {
        w->failed = w->failed || total;
        return NULL;
    }
    bool sorted = true; /* they mostly are */
    for (uint32_t i = 0; i < f->inlinee_count; i++)
        for (uint32_t j = 0; j < f->inlinees[i].line_count; j++) {
            const struct sl_line *line = &f->inlinees[i].lines[j];
            spans[*count] = (struct breakpad_span){
                line->address, flatten_end_address(line->address, line->size ? line->size : 1), &f->inlinees[i]};
            sorted = sorted && (*count == 0 || spans[*count - 1].start <= line->address);
            ++*count;
        }
    if (!sorted)
        qsort(spans, *count, sizeof *spans, flatten_by_start);
    return spans;
}

/* Adds the line of [start, end), or extends the last line of this function if that ends at `start` and has the same file and number. Sets
 * w->failed when out of memory. */
static void flatten_add_line(struct flatten_walk *w, uint64_t start, uint64_t end, uint32_t file, uint32_t line)
{
    struct flat_function *f = w->flat;
    struct flat_line *last = f->line_count > w->first_line ? &f->lines[f->line_count - 1] : NULL;
    if (last && last->address + last->size == start && last->file == file && last->line == line) {
        last->size += end - start;
        return;
    }
    if (!sl_account_grow(&f->account, &f->lines, &f->line_capacity, f->line_count + 1, sizeof *f->lines)) {
        w->failed = true;
        return;
    }
    f->lines[f->line_count++] = (struct flat_line){start, end - start, file, line};
}

/* Adds a range of an inlined call at line `line` of `file`, cut to the range of the outermost function. Adds nothing if inlined calls are
 * not wanted (w->name_of NULL). Sets w->failed when out of memory. */
static void add_inline(struct flatten_walk *w, const struct breakpad_span *span, uint32_t depth, uint32_t file,
                       uint32_t line)
{
    struct flat_function *f = w->flat;
    uint64_t start = span->start < w->low ? w->low : span->start, end = span->end > w->high ? w->high : span->end;
    if (!w->name_of || w->failed || start >= end)
        return;
    if (!sl_account_grow(&f->account, &f->inlines, &f->inline_capacity, f->inline_count + 1, sizeof *f->inlines)) {
        w->failed = true;
        return;
    }
    f->inlines[f->inline_count++] =
        (struct flat_inline){start, end - start, depth, file, line, w->name_of(w->arg, span->inlinee)};
}

/* Adds the lines of `f` where nothing is inlined in it, and the ranges of its inlined calls; then does the same for each function inlined
 * in it. Of overlapping lines the first one counts: `covered` is the end of those before. A line of size 0 covers one byte. Sets w->failed
 * when out of memory. */
static void walk_function(struct flatten_walk *w, const struct sl_function *f, uint32_t depth)
{
    size_t span_count, next = 0;
    struct breakpad_span *spans = make_spans(w, f, &span_count);
    uint64_t covered = 0;
    bool any = false;
    for (uint32_t i = 0; i < f->line_count && !w->failed; i++) {
        const struct sl_line *line = &f->lines[i];
        uint64_t at = line->address, end = flatten_end_address(at, line->size ? line->size : 1);
        if ((any && at < covered) || end <= w->low)
            continue;
        at = at < w->low ? w->low : at;
        end = end > w->high ? w->high : end;
        /* [at, stop) has no inlined call; the next one begins at `stop`, if it begins before the line's end */
        while (at < end) {
            uint64_t stop = next < span_count && spans[next].start < end ? spans[next].start : end;
            if (stop > at)
                flatten_add_line(w, at, stop, line->file, line->line);
            if (stop == end && (next >= span_count || spans[next].start >= end)) { /* no more calls in this line */
                at = end;
                break;
            }
            add_inline(w, &spans[next], depth, line->file, line->line);
            at = spans[next].end > at ? spans[next].end : at; /* the code of the call has lines of its own */
            next++;
        }
        covered = at;
        any = true;
    }
    for (uint32_t i = 0; i < f->inlinee_count && depth < SL_MAX_INLINE_DEPTH && !w->failed; i++)
        walk_function(w, &f->inlinees[i], depth + 1);
}

SL_ORDER_BY(flatten_by_address, struct flat_line, address, size, file, line)

/* Sorts the lines from index `from` on by address and merges adjacent equal ones. Lines without file and number at the beginning are
 * dropped if they are before `first_call`, the address of the first inlined call; later ones are kept, because readers of the file report
 * an inlined call only for code that has a line. */
static void sort_lines(struct flat_function *f, size_t from, uint64_t first_call)
{
    bool sorted = true;
    for (size_t i = from + 1; i < f->line_count && sorted; i++)
        sorted = f->lines[i - 1].address <= f->lines[i].address;
    if (!sorted)
        qsort(f->lines + from, f->line_count - from, sizeof *f->lines, flatten_by_address);
    size_t kept = from;
    for (size_t i = from; i < f->line_count; i++) {
        struct flat_line *last = kept > from ? &f->lines[kept - 1] : NULL, line = f->lines[i];
        if (!last && line.address < first_call && line.file == SL_NO_FILE && line.line == 0)
            continue;
        if (last && last->address + last->size == line.address && last->file == line.file && last->line == line.line)
            last->size += line.size;
        else
            f->lines[kept++] = line;
    }
    f->line_count = kept;
}

/* qsort() comparison: 0 for two ranges of one inlined call. */
SL_ORDER_BY(by_call, struct flat_inline, depth, call_line, call_file, name)

/* qsort() comparison: the ranges of one inlined call follow each other, sorted by address. */
static int by_call_and_address(const void *left, const void *right)
{
    const struct flat_inline *a = left, *b = right;
    int order = by_call(a, b);
    return order ? order : (a->address > b->address) - (a->address < b->address);
}

struct breakpad_group { /* the ranges of one inlined call */
    const struct flat_inline *first;
    size_t count;
};

/* qsort() comparison: by the address of the first range, then by depth, so that a call precedes the calls inlined in it. */
static int by_first_address(const void *left, const void *right)
{
    const struct breakpad_group *a = left, *b = right;
    if (a->first->address != b->first->address)
        return a->first->address < b->first->address ? -1 : 1;
    return by_call(a->first, b->first);
}

/* Sorts the ranges from index `from` on: those of one inlined call follow each other, merged where they touch; calls are sorted by their
 * first address, then by depth. False when out of memory. */
static bool group_inlines(struct flat_function *f, size_t from, struct sl_arena *arena)
{
    struct flat_inline *all = f->inlines + from;
    size_t count = f->inline_count - from, kept = 0, groups = 0;
    if (!count)
        return true;
    qsort(all, count, sizeof *all, by_call_and_address);
    for (size_t i = 0; i < count; i++) {
        struct flat_inline *last = kept ? &all[kept - 1] : NULL;
        if (last && by_call(last, &all[i]) == 0 && all[i].address <= flatten_end_address(last->address, last->size)) {
            uint64_t end = flatten_end_address(all[i].address, all[i].size);
            last->size = end > last->address + last->size ? end - last->address : last->size;
        } else {
            groups += !last || by_call(last, &all[i]) != 0;
            all[kept++] = all[i];
        }
    }
    /* a group is the ranges of one call; the ranges are copied, so that they can be written back in the order of the calls */
    struct breakpad_group *order = sl_arena_alloc(arena, groups * sizeof *order, 8);
    struct flat_inline *copy = sl_arena_alloc(arena, kept * sizeof *copy, 8);
    if (!order || !copy)
        return false;
    memcpy(copy, all, kept * sizeof *copy);
    groups = 0;
    for (size_t i = 0; i < kept; i++) {
        if (i == 0 || by_call(&copy[i - 1], &copy[i]) != 0)
            order[groups++] = (struct breakpad_group){&copy[i], 0};
        order[groups - 1].count++;
    }
    qsort(order, groups, sizeof *order, by_first_address);
    f->inline_count = from;
    for (size_t i = 0; i < groups; i++) {
        memcpy(f->inlines + f->inline_count, order[i].first, order[i].count * sizeof *copy);
        f->inline_count += order[i].count;
    }
    return true;
}

bool breakpad_flatten(struct flat_function *flat, const struct sl_function *function, breakpad_name_of *name_of,
                      void *arg, struct sl_arena *arena)
{
    struct flatten_walk walk = {
        .flat = flat,
        .arena = arena,
        .name_of = name_of,
        .arg = arg,
        .first_line = flat->line_count,
        .low = function->address,
        .high = flatten_end_address(function->address, function->size),
    };
    size_t inlines = flat->inline_count;
    walk_function(&walk, function, 0);
    if (walk.failed)
        return false;
    uint64_t first_call = UINT64_MAX;
    for (size_t i = inlines; i < flat->inline_count; i++)
        first_call = flat->inlines[i].address < first_call ? flat->inlines[i].address : first_call;
    sort_lines(flat, walk.first_line, first_call);
    return group_inlines(flat, inlines, arena);
}
