/* The state of writing one file, shared by encode.c, blocks.c and variables.c. */
#pragma once

#include "symcache/build.h"
#include "table/writer.h"

/* New ids of contexts, functions or files, in order of first use by address; order[] lists the old ids in the new order. */
struct renumbering {
    uint32_t *id, *order;
    size_t id_capacity, order_capacity;
    uint32_t count;
};

/* State of encoding a block (format.h). */
struct symcache_block {
    uint64_t address;
    uint32_t context, highest;
    uint32_t count; /* of entries */
};

/* The rows of a list in the section VARIABLES. */
struct variable_rows {
    uint32_t first, count;
    bool used;
};

struct encoder {
    struct sl_symcache_writer *w;
    struct symcache_block block; /* the last one */
    uint32_t lines[LINE_SLOTS];
    struct sl_table_writer table; /* the section BLOCKS comes first */
    uint64_t *starts;             /* first addresses of the blocks */
    uint32_t *offsets;            /* of the blocks in the section */
    size_t block_count, start_capacity, offset_capacity;
    struct renumbering contexts, functions, files;
    uint64_t max_entry; /* of functions, plus one */
    uint32_t max_call_line, max_language;
    struct origin_row *origins;          /* by new id of a file; NULL = no file has an origin */
    struct variable_rows *variable_rows; /* by list of the writer; NULL = no lists */
    uint32_t *used_variables;            /* lists, in the order of their functions */
    struct sl_variable *variables;       /* rows of the section, as new text ids */
    size_t used_variables_count, variable_count, variable_capacity;
    uint32_t max_variables; /* per function */
    uint32_t *text_order, *text_rank;
    size_t text_count;
    uint32_t flags;
};

/* ---- variables.c ---- */

/* Finds the lists that functions use, lists each once in e->used_variables, marks their texts in `used_texts`, and sets FLAG_VARIABLES if
 * there are any. False when out of memory. */
bool symcache_use_variables(struct encoder *e, uint8_t *used_texts);

/* Makes the rows of these lists, after texts have their ranks. False when out of memory, or if there are more than 2^32 - 1. */
bool symcache_write_variables(struct encoder *e);

static inline uint64_t file_plus_one(const struct encoder *e, uint32_t file)
{
    return file == SL_NO_FILE ? 0 : (uint64_t)e->files.id[file] + 1;
}
