/* The state of writing one file: shared by encode.c and what it calls for the contents of sections. */
#pragma once

#include "symcache/build.h"
#include "table/writer.h"

/* New ids by first use in address order; order[] lists the old ids in the new order. */
struct renumbering {
    uint32_t *id, *order;
    size_t id_capacity, order_capacity;
    uint32_t count;
};

/* What the entries of a block are coded by (format.h). */
struct block {
    uint64_t address;
    uint32_t context, highest;
    uint32_t count; /* of entries */
};

struct encoder {
    struct sl_symcache_writer *w;
    struct block block; /* the last one */
    uint32_t lines[LINE_SLOTS];
    struct sl_table_writer table; /* the section of the blocks comes first */
    uint64_t *starts;             /* first addresses of the blocks */
    uint32_t *offsets;            /* where they begin */
    size_t block_count, start_capacity, offset_capacity;
    struct renumbering contexts, functions, files;
    uint64_t max_entry; /* of the functions, plus one */
    uint32_t max_call_line, max_language;
    struct origin_row *origins; /* by new id of a file; NULL: nothing is known of any */
    uint32_t *text_order, *text_rank;
    size_t text_count;
    uint32_t flags;
};

static inline uint64_t file_plus_one(const struct encoder *e, uint32_t file)
{
    return file == SL_NO_FILE ? 0 : (uint64_t)e->files.id[file] + 1;
}
