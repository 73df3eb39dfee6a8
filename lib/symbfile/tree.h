/* A function of the stream as records: itself and what is inlined in it. Private to this folder. */
#pragma once

#include "function/function.h"
#include "symbfile/names.h"
#include "symbfile/symbfile.h"

struct tree_maker {
    struct names names;
    struct sl_arena arena; /* of the function: paths, lines */
    uint64_t load_address;
    struct sl_str *paths; /* of the batch's files; data NULL = not made yet */
    const struct sl_function_batch *batch;
    struct sl_symbfile_range *ranges;
    size_t count, capacity;
    struct tree_row *rows;
    size_t row_capacity;
    bool failed; /* out of memory */
};

void tree_maker_free(struct tree_maker *maker);

/* Before the functions of a batch. */
void tree_begin_batch(struct tree_maker *maker, const struct sl_function_batch *batch);

/* Fills maker->ranges, in pre-order; valid until the next call. A function of whose lines nothing is known gives nothing.
 * Where code comes from another file in the middle, the record is cut: then there are several of depth 0. */
void tree_make(struct tree_maker *maker, const struct sl_function *function);
