/* A function of the stream as records: itself and what is inlined in it. Private to this folder. */
#pragma once

#include "base/account.h"
#include "function/function.h"
#include "symbfile/names.h"
#include "symbfile/symbfile.h"

struct tree_maker { /* what a thread needs, and keeps from batch to batch */
    struct sl_account account;
    struct names names;
    uint64_t load_address;
    struct sl_str *paths; /* of the batch's files; data NULL = not made yet */
    const struct sl_function_batch *batch;
    struct sl_arena *arena; /* the batch's: paths, lines */
    struct sl_symbfile_range *ranges;
    size_t count, capacity;
    struct tree_row *rows;
    size_t row_capacity;
};

void tree_maker_free(struct tree_maker *maker);

struct tree_list { /* records of a batch, in pre-order */
    const struct sl_symbfile_range *ranges;
    size_t count;
};

/* The list is in the arena, names are the maker's. NULL when out of memory or budget. A function of whose lines nothing is known
 * gives nothing. Where code comes from another file in the middle, the record is cut: then there are several of depth 0. */
const struct tree_list *tree_make(struct tree_maker *maker, const struct sl_function_batch *batch,
                                  struct sl_arena *arena);
