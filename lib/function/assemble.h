/* From flat records to a tree: what DWARF and Breakpad give as lists becomes a `struct sl_function` whose lines are
 * sorted, do not overlap, and hold the call lines of its inlinees.
 *
 * An assembler is scratch memory, reused from function to function; one per thread. */
#pragma once

#include "base/account.h"
#include "function/function.h"
#include "function/order.h"

struct sl_flat_inlinee {
    uint64_t address, size;
    struct sl_str name;
    enum sl_language language;
    uint32_t number;
    uint32_t depth; /* 0 = inlined into the function itself */
    uint32_t call_file, call_line;
    uint32_t variables;
}; /* as in struct sl_function */

enum { SL_MAX_INLINE_DEPTH = 512 }; /* of inlinees, counted from 0; deeper ones are dropped */

struct sl_assembler {
    struct sl_account account; /* its budget is the caller's to set, while empty; NULL = no limits */
    struct sl_ordered *order, *scratch;
    struct part *queue;
    struct returned *returned;
    struct node *nodes;
    struct owned_line *owned;
    size_t order_capacity, scratch_capacity, queue_capacity, returned_capacity, node_capacity, owned_capacity;
    size_t returned_count;
    uint64_t turn;
};

void sl_assembler_free(struct sl_assembler *assembler);

/* Fills `function`'s lines and inlinees (its address, size, name and language are set by the caller) from `inlinees` in
 * any order and `lines` sorted by address, into the arena. False when out of memory, or when the work budget is used up: inlinees may
 * overlap as many others as they like. */
bool sl_assemble(struct sl_assembler *assembler, struct sl_arena *arena, struct sl_function *function,
                 const struct sl_flat_inlinee *inlinees, size_t inlinee_count, const struct sl_line *lines,
                 size_t line_count);
