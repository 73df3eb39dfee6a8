/* Makes the operations of a function (build.h) from its lines and its flat list of inlined calls, in one sweep by address with a stack of
 * open calls. No tree is built: for the records of compilers, where calls nest and lines do not overlap, this is enough. The operations
 * equal those that symcache_collect_walk() (collect.c) makes of the tree that sl_assemble() builds, which is used for other functions. */
#include "symcache/collector.h"

#include "base/order.h"

#include <stdlib.h>

/* MAX_DEPTH: functions with deeper calls, which are rare, are assembled instead. INDEX_BITS: bits of a call's index in its sort key.
 * MOVES_PER_CALL: limit of the moves for which calls are sorted by insertion. */
enum { MAX_DEPTH = 64, INDEX_BITS = 22, MOVES_PER_CALL = 4 };

struct symcache_sweep_frame {        /* an open call; the first frame is the function itself */
    uint64_t at, end, call_end;      /* offsets in the function: handled so far, end, end of the last call in it */
    struct context link;             /* its context: function, caller, place of the call */
    struct symcache_location around; /* place of the call, used for code of the callee without lines */
    uint32_t id;                     /* id of `link`, made at the first line; NO_CONTEXT = not made yet */
    bool has_lines;
};

struct symcache_sweep {
    struct symcache_collector *c;
    const struct sl_flat_inlinee *calls;
    uint64_t base;                     /* address of the function */
    uint64_t *start, *starts_end;      /* sorted starts of the calls that are not open yet (order_calls) */
    size_t postpones_left, moves_left; /* how many calls may still be postponed, and be moved in `start` for that */
    struct short_op *out;              /* where the next operation goes */
    struct symcache_sweep_frame *top;  /* the innermost open call, or the function */
    bool call_has_lines;               /* a call inlined directly in the function has lines */
    struct symcache_sweep_frame frames[MAX_DEPTH + 1];
};

static inline void symcache_sweep_add(struct symcache_sweep *s, uint64_t offset, const struct symcache_location *at,
                                      enum op_kind kind)
{
    *s->out++ = op_at((uint32_t)offset, at, kind);
}

/* Inserts the last of `count` numbers into the others, which are sorted. Compilers write nearly sorted calls, so few moves are needed; each
 * takes one of `*budget`, and when that is used up the numbers are left unsorted, for the caller to sort with qsort. */
static void insert_last(uint64_t *numbers, size_t count, size_t *budget)
{
    uint64_t number = numbers[count - 1];
    size_t at = count - 1;
    for (; at && numbers[at - 1] > number && *budget; at--, --*budget)
        numbers[at] = numbers[at - 1];
    numbers[at] = number;
}

/* Fills c->starts with a sort key for each inlined call that covers code, sorted by offset in the function, then depth; `*count` is their
 * number. False if a call is outside of the function or too deep, or if there are too many: sl_assemble() must handle such a function.
 *
 *     63       32 31    22 21     0
 *     offset      depth    index of the call */
static bool order_calls(struct symcache_collector *c, const struct sl_function *f, const struct sl_flat *flat,
                        size_t *count)
{
    size_t budget = MOVES_PER_CALL * flat->inlinee_count, n = 0;
    if (flat->inlinee_count >> INDEX_BITS ||
        !sl_account_grow(&c->account, &c->starts, &c->start_capacity, flat->inlinee_count, sizeof *c->starts))
        return false;
    for (size_t i = 0; i < flat->inlinee_count; i++) {
        const struct sl_flat_inlinee *call = &flat->inlinees[i];
        uint64_t offset = call->address - f->address;
        if (!call->size)
            continue;
        if (offset > f->size || call->size > f->size - offset || call->depth >= MAX_DEPTH)
            return false;
        c->starts[n++] = offset << 32 | (uint64_t)call->depth << INDEX_BITS | i;
        insert_last(c->starts, n, &budget);
    }
    if (!budget && n)
        qsort(c->starts, n, sizeof *c->starts, sl_order_u64);
    *count = n;
    return true;
}

/* Adds the operation for the code of `frame` from frame->at to `offset`, which belongs to no line. In an open call the code gets the place
 * of the call. In the function itself (the first of s->frames) it becomes a hole if a call ended at frame->at (frame->call_end), else it
 * continues the last line. False if sl_assemble() must handle the function instead. */
static inline bool skip_to(struct symcache_sweep *s, const struct symcache_sweep_frame *frame, uint64_t offset)
{
    if (offset <= frame->at)
        return true;
    if (frame > s->frames)
        symcache_sweep_add(s, frame->at, &frame->around, OP_SET);
    else if (frame->at == frame->call_end && !s->call_has_lines) /* a hole only if any call has lines: not known yet */
        return false;
    else if (frame->at == frame->call_end)
        symcache_sweep_add(s, frame->at, &nowhere, OP_HOLE);
    return true;
}

/* Called at the first line or call of the innermost open call (s->top), which is at `offset` in `file`: makes its context. If no call is
 * open (the first of s->frames is the function itself), code before that first line gets an operation OP_ENTRY. */
static void begin_lines(struct symcache_sweep *s, uint64_t offset, uint32_t file)
{
    struct symcache_sweep_frame *frame = s->top;
    frame->has_lines = true;
    frame->link.file = file;
    if (frame > s->frames) {
        frame->id = symcache_intern_context(s->c, frame->link);
        s->call_has_lines = s->call_has_lines || frame == s->frames + 1;
    } else if (offset) {
        symcache_sweep_add(s, 0, &(struct symcache_location){frame->id, SL_NO_FILE, 0}, OP_ENTRY);
    }
}

/* Begins a line or call at `offset` in the innermost open call, or in the function if none is open. If the code before it has no line,
 * first adds an operation for that code. False if sl_assemble() must handle the function instead. */
static inline bool enter(struct symcache_sweep *s, uint64_t offset, uint32_t file)
{
    if (!s->top->has_lines)
        begin_lines(s, offset, file);
    return skip_to(s, s->top, offset);
}

/* Closes the calls that end at or before `offset`. False if sl_assemble() must handle the function instead. */
static inline bool pop_until(struct symcache_sweep *s, uint64_t offset)
{
    for (; s->top > s->frames && s->top->end <= offset; s->top--)
        if (!skip_to(s, s->top, s->top->end))
            return false;
    return true;
}

/* Puts the call that was taken from s->start last back among the sorted starts, so that the rest of it, from `offset` on, is opened later.
 * False if that was done too often: then the sweep would not be faster than assembling the function. */
static bool postpone_call(struct symcache_sweep *s, uint64_t offset)
{
    /* the sort key (order_calls) with another offset and the same depth and index */
    uint64_t start = offset << 32 | (*--s->start & UINT32_MAX), *at = s->start;
    for (; s->moves_left && at + 1 < s->starts_end && at[1] >> INDEX_BITS < start >> INDEX_BITS; at++, s->moves_left--)
        at[0] = at[1];
    *at = start;
    return s->postpones_left-- > 0 && s->moves_left;
}

/* Opens the next call, as far as it has code: code that an earlier sibling covers stays with the sibling; code beyond the end of the caller
 * is postponed. A call of depth 0 is called by frames[0], the function. False if sl_assemble() must handle the function instead. */
static bool push(struct symcache_sweep *s)
{
    const struct sl_flat_inlinee *call = &s->calls[*s->start & ((1u << INDEX_BITS) - 1)];
    uint64_t offset = *s->start++ >> 32, end = call->address - s->base + call->size;
    if (!pop_until(s, offset))
        return false;
    struct symcache_sweep_frame *caller = &s->frames[call->depth];
    if (s->top < caller) /* an orphan: its caller is not open */
        return true;
    if (s->top > caller) /* a sibling, caller[1], is open: only the code after its end is left for this call */
        return end <= caller[1].end || postpone_call(s, caller[1].end); /* nothing is left, or the rest comes later */
    if (end > caller->end) {
        if (!postpone_call(s, caller->end))
            return false;
        end = caller->end;
    }
    struct location location = get_location(s->c, call->call_file, call->call_line);
    if (!enter(s, offset, location.file))
        return false;
    uint32_t callee = symcache_inlinee_id(s->c, call->name, call->language, call->number, call->variables);
    *++s->top = (struct symcache_sweep_frame){
        .at = offset,
        .end = end,
        .call_end = UINT64_MAX, /* no call in it has ended */
        .link = {callee, caller->id, location.file, location.line, SL_NO_FILE},
        .around = {caller->id, location.file, location.line},
        .id = NO_CONTEXT,
    };
    caller->at = caller->call_end = end;
    return true;
}

static inline uint64_t next_start(const struct symcache_sweep *s)
{
    return s->start < s->starts_end ? *s->start >> 32 : UINT64_MAX;
}

/* Returns the offset where the next call begins or the innermost one ends, whichever is first. */
static inline uint64_t get_limit(const struct symcache_sweep *s)
{
    uint64_t start = next_start(s);
    return start < s->top->end ? start : s->top->end;
}

/* Adds the operations of a line that covers [at, end): one for each part of it between starts and ends of calls, with the innermost call
 * that is open there. `*limit` is the next start or end of a call. False if sl_assemble() must handle the function instead. */
static inline bool symcache_sweep_add_line(struct symcache_sweep *s, uint64_t at, uint64_t end,
                                           struct location location, uint64_t *limit)
{
    const struct short_op *part_end = NULL; /* s->out after the last part was added */
    for (;;) {
        while (at >= *limit) {
            if (!(next_start(s) <= at ? push(s) : pop_until(s, at)))
                return false;
            *limit = get_limit(s);
        }
        uint64_t stop = end < *limit ? end : *limit;
        if (!enter(s, at, location.file))
            return false;
        /* if nothing was added since the last part and the context is the same, that part continues: no operation is needed */
        if (s->out != part_end || part_end[-1].context != s->top->id)
            symcache_sweep_add(s, at, &(struct symcache_location){s->top->id, location.file, location.line}, OP_SET);
        part_end = s->out;
        s->top->at = stop;
        if (stop == end)
            return true;
        at = stop;
    }
}

/* Adds the operations of all lines and calls. False if sl_assemble() must handle the function instead: lines overlap, are not sorted, or
 * lie outside of the function, or calls do not nest. */
static bool sweep_lines(struct symcache_sweep *s, const struct sl_function *f)
{
    const struct sl_line *lines_end = f->lines + f->line_count;
    uint64_t base = f->address, size = f->size, behind = 0, limit = get_limit(s);
    const uint32_t *file_ids = s->c->file_ids;
    const size_t file_count = s->c->file_id_count;
    const bool mapped = s->c->writer->options.map_line;
    struct short_op *out = s->out; /* a copy, which the compiler can keep in a register */
    for (const struct sl_line *line = f->lines; line < lines_end; line++) {
        /* a line of size 0 covers one byte */
        uint64_t at = line->address - base, covered = line->size + !line->size;
        if (at < behind || at > size || covered > size - at)
            return false;
        behind = at + covered;
        struct location location = {line->file < file_count ? file_ids[line->file] : SL_NO_FILE, line->line};
        if (mapped || location.file == ID_UNKNOWN)
            location = get_location(s->c, line->file, line->line);
        struct symcache_sweep_frame *top = s->top;
        /* fast path: no call begins or ends in the line, there is no gap before it, and the context was made */
        if (behind <= limit && at <= top->at && top->has_lines) {
            *out++ = op_at((uint32_t)at, &(struct symcache_location){top->id, location.file, location.line}, OP_SET);
            top->at = behind;
            continue;
        }
        s->out = out;
        if (!symcache_sweep_add_line(s, at, behind, location, &limit))
            return false;
        out = s->out;
    }
    s->out = out;
    while (s->start < s->starts_end)
        if (!push(s))
            return false;
    return pop_until(s, f->size) && skip_to(s, s->top, f->size);
}

bool symcache_sweep(struct symcache_collector *c, const struct sl_function *f, const struct sl_flat *flat,
                    uint32_t entry, uint32_t *file)
{
    struct symcache_sweep s; /* not initialised as a whole: most frames are never used */
    size_t count;
    /* Upper bound of the operations: calls cut lines into parts at their starts and ends, and each call may be postponed once, so 6 cuts
     * for a call are enough. A part takes one operation, and another for code before it without a line. */
    if (!order_calls(c, f, flat, &count) ||
        !sl_account_grow(&c->account, &c->folded, &c->folded_capacity, 2 * ((size_t)f->line_count + 6 * count) + 4,
                         sizeof *c->folded))
        return false;
    s.c = c;
    s.calls = flat->inlinees;
    s.base = f->address;
    s.start = c->starts;
    s.starts_end = c->starts + count;
    s.postpones_left = count;
    s.moves_left = MOVES_PER_CALL * count + 1;
    s.out = c->folded;
    s.top = s.frames;
    s.call_has_lines = false;
    *s.top = (struct symcache_sweep_frame){
        .end = f->size, .call_end = UINT64_MAX, .link = {.file = SL_NO_FILE}, .id = entry};
    if (!sweep_lines(&s, f))
        return false;
    if (!s.frames->has_lines)
        symcache_sweep_add(&s, 0, &(struct symcache_location){entry, SL_NO_FILE, 0}, OP_ENTRY);
    c->folded_count = (size_t)(s.out - c->folded);
    *file = s.frames->link.file;
    return true;
}
