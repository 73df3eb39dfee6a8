#include "function/assemble.h"

#include <stdlib.h>

/* Cost of a part in steps of the budget: it is checked, becomes a node, and cuts a line in two. */
enum { STEPS_PER_PART = 24 };

/* A part is one inlinee, or what is left of it after cutting at its siblings and its parent. */
struct assemble_part {
    uint64_t address, end;
    uint32_t depth, index; /* index: of the inlinee in the caller's list */
};

/* The rest of a part that was cut, to be handled again; the later it was cut, the larger is `turn`. */
struct function_returned {
    struct assemble_part part;
    uint64_t turn;
};

struct function_node { /* a node of the tree: a part that was accepted, or the function itself */
    struct assemble_part part;
    uint32_t parent, line_count, child_count;
    struct sl_function *target; /* the result */
};

/* A part of a line, and the index of the node whose line it becomes. */
struct owned_line {
    struct sl_line line;
    uint32_t owner;
};

/* Frees the arrays; the assembler is then empty and can be used again, with the same budget. */
void sl_assembler_free(struct sl_assembler *a)
{
    free(a->order);
    free(a->scratch);
    free(a->queue);
    free(a->returned);
    free(a->nodes);
    free(a->owned);
    sl_account_release(&a->account);
    *a = (struct sl_assembler){.account = a->account};
}

static uint64_t end_address(uint64_t address, uint64_t size)
{
    return size > UINT64_MAX - address ? UINT64_MAX : address + size;
}

/* True if `a` comes before `b`: parts are ordered by start, then callers before the calls in them. */
static bool before(const struct assemble_part *a, const struct assemble_part *b)
{
    return a->address != b->address ? a->address < b->address : a->depth < b->depth;
}

static struct assemble_part make_part(const struct sl_flat_inlinee *inlinees, size_t i)
{
    const struct sl_flat_inlinee *f = &inlinees[i];
    return (struct assemble_part){f->address, end_address(f->address, f->size), f->depth, (uint32_t)i};
}

/* Fills the queue with the inlinees, sorted by start and depth; equal ones keep their order. Those that begin before the function, are
 * too deep or have no code are dropped. False when out of memory or budget. */
static bool fill_queue(struct sl_assembler *a, const struct sl_function *function,
                       const struct sl_flat_inlinee *inlinees, size_t inlinee_count, size_t *queued)
{
    size_t count = 0;
    bool sorted = true;
    if (inlinee_count > UINT32_MAX ||
        !sl_account_grow(&a->account, &a->queue, &a->queue_capacity, inlinee_count, sizeof *a->queue))
        return false;
    for (size_t i = 0; i < inlinee_count; i++) {
        const struct sl_flat_inlinee *f = &inlinees[i];
        if (f->address < function->address || f->depth > SL_MAX_INLINE_DEPTH || !f->size)
            continue;
        a->queue[count] = make_part(inlinees, i);
        sorted = sorted && (!count || !before(&a->queue[count], &a->queue[count - 1]));
        count++;
    }
    *queued = count;
    if (sorted)
        return true;
    if (!sl_account_grow(&a->account, &a->order, &a->order_capacity, count, sizeof *a->order) ||
        !sl_account_grow(&a->account, &a->scratch, &a->scratch_capacity, count, sizeof *a->scratch))
        return false;
    for (size_t i = 0; i < count; i++)
        a->order[i] =
            (struct sl_ordered){.key = a->queue[i].address, .minor = a->queue[i].depth, .index = a->queue[i].index};
    sl_order(a->order, a->scratch, count);
    for (size_t i = 0; i < count; i++)
        a->queue[i] = make_part(inlinees, a->order[i].index);
    return true;
}

/* True if `a` is before `b`; of equal parts the one that was put back last is first. */
static bool returns_before(const struct function_returned *a, const struct function_returned *b)
{
    return before(&a->part, &b->part) || (!before(&b->part, &a->part) && a->turn > b->turn);
}

/* Pushes the rest of a part that was cut onto the binary heap of such parts. False when out of memory or budget. */
static bool put_back(struct sl_assembler *a, struct assemble_part part)
{
    size_t at = a->returned_count++;
    struct function_returned item = {part, ++a->turn}; /* `turn`: of equal parts the last one returns first */
    if (!sl_account_grow(&a->account, &a->returned, &a->returned_capacity, at + 1, sizeof *a->returned))
        return false;
    for (; at && returns_before(&item, &a->returned[(at - 1) / 2]); at = (at - 1) / 2)
        a->returned[at] = a->returned[(at - 1) / 2];
    a->returned[at] = item;
    return true;
}

/* Pops the first part, by start and depth, from the binary heap of parts that were put back. */
static struct assemble_part pop_returned(struct sl_assembler *a)
{
    struct assemble_part first = a->returned[0].part;
    size_t count = --a->returned_count, at = 0;
    struct function_returned last = a->returned[count];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && returns_before(&a->returned[child + 1], &a->returned[child]);
        if (!returns_before(&a->returned[child], &last))
            break;
        a->returned[at] = a->returned[child];
    }
    a->returned[at] = last;
    return first;
}

/* Removes and returns the next part by start and depth, from the queue or the heap of returned parts; of equal parts the returned one
 * comes first. */
static struct assemble_part next_part(struct sl_assembler *a, size_t *next, size_t queued)
{
    if (a->returned_count && (*next == queued || !before(&a->queue[*next], &a->returned[0].part)))
        return pop_returned(a);
    return a->queue[(*next)++];
}

/* Makes the nodes of the tree: accepts parts of inlined calls in address order. `ends` is the stack of accepted calls: ends[d] is the end
 * of the last one at depth d, and `height` their number. Code that overlaps an earlier sibling stays with the sibling; what extends beyond
 * the parent is put back, as another part of the parent may follow there. Parts without an open parent are dropped. False when out of
 * memory or budget. */
static bool accept_all(struct sl_assembler *a, size_t queued, size_t *node_count)
{
    uint64_t ends[SL_MAX_INLINE_DEPTH + 1];
    size_t height = 0, next = 0;
    a->returned_count = 0;
    while (next < queued || a->returned_count) {
        struct assemble_part part = next_part(a, &next, queued);
        if (!sl_account_spend(&a->account, STEPS_PER_PART))
            return false;
        if (part.depth > height) /* no open parent */
            continue;
        if (part.depth < height) { /* an earlier sibling */
            uint64_t sibling = ends[part.depth];
            if (part.end <= sibling) /* all of it belongs to the sibling */
                continue;
            if (part.address < sibling) { /* what is left begins later: other parts may come first */
                part.address = sibling;
                if (!put_back(a, part))
                    return false;
                continue;
            }
        }
        height = part.depth;
        if (part.depth) {
            uint64_t parent = ends[part.depth - 1];
            if (parent <= part.address) /* the parent has ended */
                continue;
            if (part.end > parent) {
                struct assemble_part tail = part;
                tail.address = part.end = parent;
                if (!put_back(a, tail))
                    return false;
            }
        }
        ends[height++] = part.end;
        if (!sl_account_grow(&a->account, &a->nodes, &a->node_capacity, *node_count + 1, sizeof *a->nodes))
            return false;
        a->nodes[(*node_count)++] = (struct function_node){.part = part};
    }
    return true;
}

/* Fast path: gives the lines that end at or before `limit` to the node `owner` as they are, while the array has free elements. Returns the
 * index of the first other line. */
static size_t own_whole(struct sl_assembler *a, size_t *count, uint32_t owner, const struct sl_line *lines, size_t next,
                        size_t line_count, uint64_t limit)
{
    if (!a->owned) /* no array yet: own() allocates it */
        return next;
    struct owned_line *out = a->owned + *count, *out_end = a->owned + a->owned_capacity;
    for (; next < line_count && out < out_end; next++) {
        struct sl_line line = lines[next];
        line.size += line.size == 0; /* without a size it covers one byte */
        if (line.address >= limit || line.size > limit - line.address)
            break;
        *out++ = (struct owned_line){line, owner};
    }
    a->nodes[owner].line_count += (uint32_t)(out - a->owned - *count);
    *count = (size_t)(out - a->owned);
    return next;
}

/* Gives the part [start, end) of a line to the node `owner`. False when out of memory or budget. */
static inline bool own(struct sl_assembler *a, size_t *count, uint32_t owner, uint64_t start, uint64_t end,
                       uint32_t file, uint32_t line)
{
    if (*count == a->owned_capacity &&
        !sl_account_grow(&a->account, &a->owned, &a->owned_capacity, *count + 1, sizeof *a->owned))
        return false;
    a->owned[(*count)++] = (struct owned_line){{start, end - start, file, line}, owner};
    a->nodes[owner].line_count++;
    return true;
}

/* Gives every part of every line to the innermost function that covers it; each function around that one gets the line of the call there.
 * Drops nodes after the end of the outermost function. False when out of memory or budget. */
static bool distribute(struct sl_assembler *a, const struct sl_flat_inlinee *inlinees, size_t *nodes,
                       const struct sl_line *lines, size_t line_count, size_t *owned)
{
    size_t node_count = *nodes;
    uint32_t stack[SL_MAX_INLINE_DEPTH + 2];
    size_t height = 1, next_node = 1, next_line = 0;
    stack[0] = 0;
    uint64_t outer_start = a->nodes[0].part.address, outer_end = a->nodes[0].part.end;
    while (next_line < line_count && lines[next_line].address < outer_start)
        next_line++;
    /* address where the next line begins, or the rest of it that no function has got yet */
    uint64_t at = next_line < line_count ? lines[next_line].address : UINT64_MAX;
    while (next_node < node_count || next_line < line_count) {
        bool inlinee = next_node < node_count && (next_line >= line_count || a->nodes[next_node].part.address <= at);
        uint64_t start = inlinee ? a->nodes[next_node].part.address : at;
        if (start >= outer_end)
            break;
        while (height > 1 && a->nodes[stack[height - 1]].part.end <= start)
            height--;
        if (inlinee) {
            struct function_node *node = &a->nodes[next_node];
            /* an earlier sibling ends here, even if it extends further */
            if (height > node->part.depth + 1u)
                height = node->part.depth + 1u;
            uint32_t parent = stack[height - 1];
            node->parent = parent;
            a->nodes[parent].child_count++;
            stack[height++] = (uint32_t)next_node++;
            const struct sl_flat_inlinee *call = &inlinees[node->part.index];
            if (!own(a, owned, parent, start, node->part.end, call->call_file, call->call_line))
                return false;
            continue;
        }
        const struct sl_line *line = &lines[next_line];
        /* a line without a size covers one byte */
        uint64_t end = end_address(line->address, line->size ? line->size : 1), stop = end;
        uint64_t limit = a->nodes[stack[height - 1]].part.end;
        if (next_node < node_count && a->nodes[next_node].part.address < limit)
            limit = a->nodes[next_node].part.address;
        if (at == line->address && end < limit) {
            size_t behind = own_whole(a, owned, stack[height - 1], lines, next_line, line_count, limit);
            at = behind < line_count ? lines[behind].address : UINT64_MAX;
            if (behind > next_line) {
                next_line = behind;
                continue;
            }
        }
        stop = limit < stop ? limit : stop;
        if (!own(a, owned, stack[height - 1], start, stop, line->file, line->line))
            return false;
        if (stop < end) {
            at = stop;
        } else {
            next_line++;
            at = next_line < line_count ? lines[next_line].address : UINT64_MAX;
        }
    }
    *nodes = next_node;
    return true;
}

/* Copies lines and children of every node to arrays in the arena. Nodes are in pre-order, so a parent's array is reserved before its
 * children are placed in it. False when out of memory. */
static bool assemble_build(struct sl_assembler *a, struct sl_arena *arena, struct sl_function *function,
                           const struct sl_flat_inlinee *inlinees, size_t node_count, size_t owned)
{
    /* + 1: not NULL without lines; there is always one node, the function itself */
    struct sl_line *lines = sl_arena_alloc(arena, owned * sizeof *lines + 1, _Alignof(struct sl_line));
    struct sl_function *children = sl_arena_alloc(arena, node_count * sizeof *children, _Alignof(struct sl_function));
    if (!lines || !children)
        return false;
    a->nodes[0].target = function;
    for (size_t i = 0; i < node_count; i++) {
        struct function_node *node = &a->nodes[i];
        if (i) {
            struct function_node *parent = &a->nodes[node->parent];
            const struct sl_flat_inlinee *inlinee = &inlinees[node->part.index];
            node->target = (struct sl_function *)parent->target->inlinees + parent->target->inlinee_count++;
            *node->target = (struct sl_function){
                .address = node->part.address,
                .size = node->part.end - node->part.address,
                .name = inlinee->name,
                .language = inlinee->language,
                .number = inlinee->number,
                .variables = inlinee->variables,
                .call_file = inlinee->call_file,
                .call_line = inlinee->call_line,
            };
        }
        node->target->lines = lines;
        node->target->line_count = 0;
        node->target->inlinees = children;
        node->target->inlinee_count = 0;
        lines += node->line_count;
        children += node->child_count;
    }
    for (size_t i = 0; i < owned; i++) {
        struct sl_function *target = a->nodes[a->owned[i].owner].target;
        ((struct sl_line *)target->lines)[target->line_count++] = a->owned[i].line;
    }
    return true;
}

bool sl_assemble(struct sl_assembler *a, struct sl_arena *arena, struct sl_function *function,
                 const struct sl_flat_inlinee *inlinees, size_t inlinee_count, const struct sl_line *lines,
                 size_t line_count)
{
    size_t queued = 0, nodes = 1, owned = 0; /* counts: calls in the queue, nodes, parts of lines in a->owned */
    function->lines = NULL;
    function->inlinees = NULL;
    function->line_count = function->inlinee_count = 0;
    if (!sl_account_grow(&a->account, &a->nodes, &a->node_capacity, 1, sizeof *a->nodes))
        return false;
    a->nodes[0] = (struct function_node){
        .part = {.address = function->address, .end = end_address(function->address, function->size)}};
    /* sort the calls, make the tree, give the lines to its nodes, copy all to the arena */
    return fill_queue(a, function, inlinees, inlinee_count, &queued) && accept_all(a, queued, &nodes) &&
           distribute(a, inlinees, &nodes, lines, line_count, &owned) &&
           assemble_build(a, arena, function, inlinees, nodes, owned);
}
