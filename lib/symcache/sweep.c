/* Sweeping: the operations of a function from its lines and the list of its inlined calls, by address, with a stack of the
 * calls that cover it. Nothing is built on the way: records as compilers make them, where calls nest and lines do not
 * overlap, need no more. The operations are those of the assembled function (walk, in collect.c). */
#include "symcache/collector.h"

enum { MAX_DEPTH = 64, INDEX_BITS = 22, DEPTH_BITS = 10, MOVES_PER_CALL = 32 };

struct frame { /* of an open call; the first: the function itself. Offsets are from its begin */
    uint64_t at, end;
    struct context link;   /* made when the first line is met */
    struct place around;   /* where code is that has no line */
    uint32_t id;           /* NO_CONTEXT: not made yet */
    bool calls, has_lines; /* a call ends at `at`; a line was met */
};

struct sweep {
    struct collector *c;
    const struct sl_flat_inlinee *calls;
    struct frame frames[MAX_DEPTH + 1];
    struct frame *top;
    bool call_has_lines; /* one of the function's own calls */
};

/* Puts numbers of offset, depth and index of the calls into c->starts, ascending. `*count`: those that cover code. False
 * when they are none of the rule's or far out of order. */
static bool order_calls(struct collector *c, const struct sl_function *f, const struct sl_flat *flat, size_t *count)
{
    size_t budget = MOVES_PER_CALL * flat->inlinee_count, n = 0;
    if (flat->inlinee_count >> INDEX_BITS ||
        !symcache_room(c, &c->starts, &c->start_capacity, flat->inlinee_count, sizeof *c->starts))
        return false;
    for (size_t i = 0; i < flat->inlinee_count; i++) {
        const struct sl_flat_inlinee *call = &flat->inlinees[i];
        uint64_t offset = call->address - f->address;
        if (!call->size)
            continue;
        if (call->address < f->address || offset > f->size || call->size > f->size - offset || call->depth >= MAX_DEPTH)
            return false;
        uint64_t start = offset << 32 | (uint64_t)call->depth << INDEX_BITS | i;
        size_t at = n++;
        for (; at && c->starts[at - 1] > start && budget; at--, budget--)
            c->starts[at] = c->starts[at - 1];
        c->starts[at] = start;
    }
    *count = n;
    return budget > 0;
}

/* Code of the frame up to `offset` has no line. */
static inline bool skip_to(struct sweep *s, struct frame *frame, uint64_t offset)
{
    if (offset <= frame->at)
        return true;
    if (frame > s->frames)
        put(s->c, (uint32_t)frame->at, &frame->around, OP_SET);
    else if (frame->calls && !s->call_has_lines) /* whether a later one has is not known */
        return false;
    else if (frame->calls)
        put(s->c, (uint32_t)frame->at, &nowhere, OP_HOLE);
    return true;
}

static inline bool pop_until(struct sweep *s, uint64_t offset)
{
    for (; s->top > s->frames && s->top->end <= offset; s->top--)
        if (!skip_to(s, s->top, s->top->end))
            return false;
    return true;
}

/* The frame has a line, or a call, at `offset`. */
static inline bool enter(struct sweep *s, uint64_t offset, struct location location)
{
    struct frame *frame = s->top;
    if (!frame->has_lines) {
        frame->has_lines = true;
        frame->link.file = location.file;
        if (frame == s->frames) {
            if (offset)
                put(s->c, 0, &(struct place){frame->id, SL_NO_FILE, 0}, OP_ENTRY);
        } else {
            frame->id = symcache_intern_context(s->c, frame->link);
            s->call_has_lines = s->call_has_lines || frame == s->frames + 1;
        }
    }
    return skip_to(s, frame, offset);
}

static bool push(struct sweep *s, uint64_t start)
{
    const struct sl_flat_inlinee *call = &s->calls[start & ((1u << INDEX_BITS) - 1)];
    uint64_t offset = start >> 32, end = offset + call->size;
    struct frame *caller = s->top;
    if (s->top != &s->frames[call->depth] || end > caller->end)
        return false;
    struct location location = location_of(s->c, call->call_file, call->call_line);
    if (!enter(s, offset, location))
        return false;
    uint32_t callee = symcache_inlinee_id(s->c, call->name, call->language, call->number);
    *++s->top = (struct frame){
        .at = offset,
        .end = end,
        .link = {callee, caller->id, location.file, location.line, SL_NO_FILE},
        .around = {caller->id, location.file, location.line},
        .id = NO_CONTEXT,
    };
    caller->at = end;
    caller->calls = true;
    return true;
}

/* A piece of a line in the innermost call. */
static inline bool add_line(struct sweep *s, uint64_t offset, uint64_t end, struct location location)
{
    if (!enter(s, offset, location))
        return false;
    put(s->c, (uint32_t)offset, &(struct place){s->top->id, location.file, location.line}, OP_SET);
    s->top->at = end;
    s->top->calls = false;
    return true;
}

/* The lines and the calls that begin in them. */
static bool sweep_lines(struct sweep *s, const struct sl_function *f, const uint64_t *start, const uint64_t *starts_end)
{
    uint64_t behind = 0;
    for (const struct sl_line *line = f->lines; line < f->lines + f->line_count; line++) {
        uint64_t at = line->address - f->address, size = line->size ? line->size : 1, end = at + size;
        if (line->address < f->address || at < behind || at > f->size || size > f->size - at)
            return false;
        behind = end;
        struct location location = location_of(s->c, line->file, line->line);
        do {
            while (start < starts_end && *start >> 32 <= at)
                if (!pop_until(s, *start >> 32) || !push(s, *start++))
                    return false;
            if (!pop_until(s, at))
                return false;
            uint64_t stop = s->top->end < end ? s->top->end : end;
            stop = start < starts_end && *start >> 32 < stop ? *start >> 32 : stop;
            if (!add_line(s, at, stop, location))
                return false;
            at = stop;
        } while (at < end);
    }
    for (; start < starts_end; start++)
        if (!pop_until(s, *start >> 32) || !push(s, *start))
            return false;
    return pop_until(s, f->size) && skip_to(s, s->top, f->size);
}

bool symcache_sweep(struct collector *c, const struct sl_function *f, const struct sl_flat *flat, uint32_t entry,
                    uint32_t *file)
{
    struct sweep s = {.c = c, .calls = flat->inlinees};
    size_t count;
    s.top = s.frames;
    *s.top = (struct frame){.end = f->size, .link = {.file = SL_NO_FILE}, .id = entry};
    /* A line is cut at begins and ends of calls; a piece is one operation, and one more for what is before it. */
    if (!order_calls(c, f, flat, &count) ||
        !symcache_room(c, &c->folded, &c->folded_capacity, 2 * ((size_t)f->line_count + 3 * count) + 4,
                       sizeof *c->folded) ||
        !sweep_lines(&s, f, c->starts, c->starts + count))
        return false;
    if (!s.frames->has_lines)
        put(c, 0, &(struct place){entry, SL_NO_FILE, 0}, OP_ENTRY);
    *file = s.frames->link.file;
    return true;
}
