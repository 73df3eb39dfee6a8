/* Assembles flat records into a tree: the lists of inlined calls of DWARF and Breakpad become a `struct sl_function` whose lines are
 * sorted, do not overlap, and include the call lines of its inlinees.
 *
 *     lines      0x00..0x08 f.c:1, 0x08..0x10 g.h:3, 0x10..0x20 f.c:8
 *     inlinees   0x08..0x10 g, called at f.c:7
 *     becomes    f with lines 0x00..0x08 f.c:1, 0x08..0x10 f.c:7, 0x10..0x20 f.c:8
 *                  and the inlinee g with lines 0x08..0x10 g.h:3
 *
 * An assembler is scratch memory, reused from function to function; one per thread. */
#pragma once

#include "base/account.h"
#include "function/function.h"
#include "function/order.h"

struct sl_flat_inlinee { /* members mean what they mean in struct sl_function */
    uint64_t address, size;
    struct sl_str name;
    enum sl_language language;
    uint32_t number;
    uint32_t depth; /* 0 = inlined into the function itself */
    uint32_t call_file, call_line;
    uint32_t variables;
};

enum { SL_MAX_INLINE_DEPTH = 512 }; /* maximal sl_flat_inlinee.depth; deeper inlinees are dropped */

struct sl_assembler {
    struct sl_account account; /* the caller sets its budget before the first use; NULL = no limits */
    struct sl_ordered *order, *scratch;
    struct assemble_part *queue;
    struct function_returned *returned;
    struct function_node *nodes;
    struct owned_line *owned;
    size_t order_capacity, scratch_capacity, queue_capacity, returned_capacity, node_capacity, owned_capacity;
    size_t returned_count;
    uint64_t turn;
};

void sl_assembler_free(struct sl_assembler *assembler);

/* Fills `function`'s lines and inlinees from `inlinees` in any order and `lines` sorted by address, into the arena. The caller has set
 * address, size, name and language. False when out of memory, or when the work budget is exhausted: inlinees may overlap any number of
 * others. */
bool sl_assemble(struct sl_assembler *assembler, struct sl_arena *arena, struct sl_function *function,
                 const struct sl_flat_inlinee *inlinees, size_t inlinee_count, const struct sl_line *lines,
                 size_t line_count);
