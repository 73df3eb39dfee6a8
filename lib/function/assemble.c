#include "function/assemble.h"

#include <stdlib.h>

struct node { /* an accepted inlinee; node 0 is the function itself */
    struct sl_flat_inlinee inlinee;
    uint64_t end;
    uint32_t parent, line_count, child_count;
    struct sl_function *target; /* where its struct is built */
};

struct owned_line {
    struct sl_line line;
    uint32_t owner;
};

void sl_assembler_free(struct sl_assembler *a)
{
    free(a->queue);
    free(a->nodes);
    free(a->owned);
    *a = (struct sl_assembler){0};
}

static bool grow(void *pointer, size_t *capacity, size_t need, size_t item)
{
    void **array = pointer;
    if (need <= *capacity)
        return true;
    size_t size = *capacity ? *capacity : 64;
    while (size < need)
        size *= 2;
    void *grown = realloc(*array, size * item);
    if (!grown)
        return false;
    *array = grown;
    *capacity = size;
    return true;
}

static uint64_t end_of(uint64_t address, uint64_t size)
{
    return size > UINT64_MAX - address ? UINT64_MAX : address + size;
}

static int by_start_and_depth(const void *left, const void *right)
{
    const struct sl_flat_inlinee *a = left, *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (a->depth > b->depth) - (a->depth < b->depth);
}

/* Binary insertion keeps equal elements in order and is fast on what compilers emit: nearly sorted lists. */
static void sort_queue(struct sl_flat_inlinee *queue, size_t count)
{
    if (count > 512) {
        bool sorted = true;
        for (size_t i = 1; i < count && sorted; i++)
            sorted = by_start_and_depth(&queue[i - 1], &queue[i]) <= 0;
        if (!sorted)
            qsort(queue, count, sizeof *queue, by_start_and_depth);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        struct sl_flat_inlinee item = queue[i];
        size_t at = i;
        while (at && by_start_and_depth(&queue[at - 1], &item) > 0) {
            queue[at] = queue[at - 1];
            at--;
        }
        queue[at] = item;
    }
}

/* Puts `item` back into the sorted rest of the queue, which begins at `from`; slot `from - 1` is free. */
static void requeue(struct sl_flat_inlinee *queue, size_t from, size_t count, struct sl_flat_inlinee item)
{
    size_t at = from - 1;
    while (at + 1 < count && by_start_and_depth(&queue[at + 1], &item) < 0) {
        queue[at] = queue[at + 1];
        at++;
    }
    queue[at] = item;
}

static bool accept_node(struct sl_assembler *a, size_t *count, const struct sl_flat_inlinee *inlinee)
{
    if (!grow(&a->nodes, &a->node_capacity, *count + 1, sizeof *a->nodes))
        return false;
    a->nodes[(*count)++] = (struct node){.inlinee = *inlinee, .end = end_of(inlinee->address, inlinee->size)};
    return true;
}

/* Step 1 and 2: overlapping siblings are cut, children are cut to their parents, orphans dropped. */
static bool accept_all(struct sl_assembler *a, const struct sl_function *function,
                       const struct sl_flat_inlinee *inlinees, size_t inlinee_count, size_t *node_count)
{
    uint64_t ends[SL_MAX_INLINE_DEPTH];
    size_t count = 0, height = 0;
    size_t budget = inlinee_count * 4 + 16; /* each split re-queues: hostile nesting must not multiply without bound */
    if (!grow(&a->queue, &a->queue_capacity, inlinee_count, sizeof *a->queue))
        return false;
    for (size_t i = 0; i < inlinee_count; i++)
        if (inlinees[i].address >= function->address && inlinees[i].depth < SL_MAX_INLINE_DEPTH && inlinees[i].size)
            a->queue[count++] = inlinees[i];
    sort_queue(a->queue, count);
    for (size_t next = 0; next < count && budget; budget--) {
        struct sl_flat_inlinee item = a->queue[next++];
        uint64_t end = end_of(item.address, item.size);
        if (item.depth > height)
            continue;
        if (item.depth < height) { /* an earlier sibling */
            uint64_t sibling = ends[item.depth];
            if (end <= sibling)
                continue;
            if (item.address < sibling) {
                item.address = sibling;
                item.size = end - sibling;
                requeue(a->queue, next--, count, item);
                continue;
            }
        }
        height = item.depth;
        if (item.depth) {
            uint64_t parent = ends[item.depth - 1];
            if (parent <= item.address)
                continue;
            if (end > parent) {
                struct sl_flat_inlinee tail = item;
                tail.address = parent;
                tail.size = end - parent;
                item.size = parent - item.address;
                end = parent;
                requeue(a->queue, next--, count, tail);
            }
        }
        ends[height++] = end;
        if (!accept_node(a, node_count, &item))
            return false;
    }
    return true;
}

static bool own(struct sl_assembler *a, size_t *count, uint32_t owner, uint64_t start, uint64_t end, uint32_t file,
                uint32_t line)
{
    if (!grow(&a->owned, &a->owned_capacity, *count + 1, sizeof *a->owned))
        return false;
    a->owned[(*count)++] = (struct owned_line){{start, end - start, file, line}, owner};
    a->nodes[owner].line_count++;
    return true;
}

/* Step 3: hands every piece of every line to the innermost open function, and call lines to the parents. */
static bool distribute(struct sl_assembler *a, size_t node_count, const struct sl_line *lines, size_t line_count,
                       size_t *owned)
{
    uint32_t stack[SL_MAX_INLINE_DEPTH + 1] = {0};
    size_t height = 1, next_node = 1, next_line = 0;
    uint64_t outer_start = a->nodes[0].inlinee.address, outer_end = a->nodes[0].end;
    while (next_line < line_count && lines[next_line].address < outer_start)
        next_line++;
    uint64_t at = next_line < line_count ? lines[next_line].address : UINT64_MAX;
    while (next_node < node_count || next_line < line_count) {
        bool inlinee = next_node < node_count && (next_line >= line_count || a->nodes[next_node].inlinee.address <= at);
        uint64_t start = inlinee ? a->nodes[next_node].inlinee.address : at;
        if (start >= outer_end)
            break;
        while (height > 1 && a->nodes[stack[height - 1]].end <= start)
            height--;
        if (inlinee) {
            struct node *node = &a->nodes[next_node];
            if (height > node->inlinee.depth + 1u)
                height = node->inlinee.depth + 1u;
            uint32_t parent = stack[height - 1];
            node->parent = parent;
            a->nodes[parent].child_count++;
            stack[height++] = (uint32_t)next_node++;
            if (!own(a, owned, parent, start, node->end, node->inlinee.call_file, node->inlinee.call_line))
                return false;
            continue;
        }
        const struct sl_line *line = &lines[next_line];
        uint64_t end = end_of(line->address, line->size ? line->size : 1), stop = end;
        if (a->nodes[stack[height - 1]].end < stop)
            stop = a->nodes[stack[height - 1]].end;
        if (next_node < node_count && a->nodes[next_node].inlinee.address < stop)
            stop = a->nodes[next_node].inlinee.address;
        if (!own(a, owned, stack[height - 1], start, stop, line->file, line->line))
            return false;
        if (stop < end) {
            at = stop;
        } else {
            next_line++;
            at = next_line < line_count ? lines[next_line].address : UINT64_MAX;
        }
    }
    return true;
}

/* Lays lines and children of every node out in arrays of their own. */
static bool build(struct sl_assembler *a, struct sl_arena *arena, struct sl_function *function, size_t node_count,
                  size_t owned)
{
    struct sl_line *lines = sl_arena_alloc(arena, owned * sizeof *lines + 1, _Alignof(struct sl_line));
    struct sl_function *children = sl_arena_alloc(arena, node_count * sizeof *children, _Alignof(struct sl_function));
    if (!lines || !children)
        return false;
    a->nodes[0].target = function;
    for (size_t i = 0; i < node_count; i++) {
        struct node *node = &a->nodes[i];
        if (i) {
            struct node *parent = &a->nodes[node->parent];
            node->target = (struct sl_function *)parent->target->inlinees + parent->target->inlinee_count++;
            *node->target = (struct sl_function){
                .address = node->inlinee.address,
                .size = node->end - node->inlinee.address,
                .name = node->inlinee.name,
                .language = node->inlinee.language,
                .call_file = node->inlinee.call_file,
                .call_line = node->inlinee.call_line,
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
    size_t nodes = 0, owned = 0;
    struct sl_flat_inlinee self = {.address = function->address, .size = function->size};
    function->lines = NULL;
    function->inlinees = NULL;
    function->line_count = function->inlinee_count = 0;
    if (!accept_node(a, &nodes, &self) || !accept_all(a, function, inlinees, inlinee_count, &nodes))
        return false;
    return distribute(a, nodes, lines, line_count, &owned) && build(a, arena, function, nodes, owned);
}
