/* Converts functions of a batch to records of a symbfile: one for the function itself and one for each inlined call. Private to this
 * folder. */
#pragma once

#include "base/account.h"
#include "function/function.h"
#include "symbfile/names.h"
#include "symbfile/symbfile.h"

struct tree_maker { /* state of a worker thread, reused for each batch */
    struct sl_account account;
    struct symbfile_names names;
    uint64_t load_address;
    struct sl_str *paths; /* paths of the batch's files; data NULL = not built yet */
    const struct sl_function_batch *batch;
    struct sl_arena *arena; /* the batch's arena: paths, lines */
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

/* Returns the records of all functions of the batch; NULL if out of memory or budget. The list lies in the arena; names belong to the
 * maker. A function has no record if neither it nor any call inlined in it has lines. Where the file changes inside of a function, its
 * record is split: then several records have depth 0. */
const struct tree_list *tree_maker_convert(struct tree_maker *maker, const struct sl_function_batch *batch,
                                           struct sl_arena *arena);
