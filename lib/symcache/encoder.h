/* The state of writing one symcache file, shared by encode.c, blocks.c and variables.c. */
#pragma once

#include "symcache/build.h"
#include "table/writer.h"

/* New ids of contexts, functions or files, in order of first use by address. */
struct renumbering {
    uint32_t *id;    /* new id by old one; UINT32_MAX = not used so far */
    uint32_t *order; /* old id by new one */
    size_t id_capacity, order_capacity;
    uint32_t count;
};

/* State while the entries of a block are encoded (format.h). */
struct symcache_block {
    uint64_t address; /* of the last entry */
    uint32_t context; /* of the last entry, a new id */
    uint32_t highest; /* highest context so far */
    uint32_t count;   /* of entries */
};

/* Where a list of variables is in the section VARIABLES. */
struct variable_rows {
    uint32_t first, count;
    bool used;
};

struct encoder {
    struct sl_symcache_writer *w;
    struct symcache_block block;  /* the last one */
    uint32_t lines[LINE_SLOTS];   /* last line per slot (format.h) */
    struct sl_table_writer table; /* the section BLOCKS comes first */
    uint64_t *starts;             /* first addresses of the blocks */
    uint32_t *offsets;            /* of the blocks in the section */
    size_t block_count, start_capacity, offset_capacity;
    struct renumbering contexts, functions, files;
    uint64_t max_entry;                   /* highest entry address of a function, plus one */
    uint32_t max_call_line, max_language; /* highest values */
    struct origin_row *origins;           /* by new id of a file; NULL = no file has an origin */
    struct variable_rows *variable_rows;  /* one for each list of variables of the writer; NULL = no lists */
    uint32_t *used_variables;             /* numbers of the lists that functions use, in the order of the functions */
    struct sl_variable *variables;        /* rows of the section VARIABLES; texts as positions in the sorted order */
    size_t used_variables_count, variable_count, variable_capacity;
    uint32_t max_variables;           /* highest number per function */
    uint32_t *text_order, *text_rank; /* id of a text by its rank among the sorted ones; rank by id */
    size_t text_count;
    uint32_t flags;
};

/* ---- variables.c ---- */

/* Fills e->used_variables with the lists of variables that functions use, each once, marks their texts in `used_texts`, and sets
 * FLAG_VARIABLES if there are any. False when out of memory. */
bool symcache_use_variables(struct encoder *e, uint8_t *used_texts);

/* Makes the rows of the section VARIABLES from the lists in e->used_variables, after the texts were sorted. False when out of memory, or if
 * there are more than 2^32 - 1 rows. */
bool symcache_write_variables(struct encoder *e);

/* Returns the new id of a file, plus one; 0 for SL_NO_FILE. */
static inline uint64_t file_plus_one(const struct encoder *e, uint32_t file)
{
    return file == SL_NO_FILE ? 0 : (uint64_t)e->files.id[file] + 1;
}
