/* Breakpad: reading FUNC, INLINE and line records: tables of names, chunks, workers. Private to this folder.
 *
 * The file is cut into chunks that begin with a FUNC line; the functions of a chunk become a batch for the sink, the
 * caller's receiver of functions. A window of several chunks is read in parallel, then the next window:
 *
 *     breakpad_functions.c   windows: cut, read, hand to the sink
 *     breakpad_chunk.c       one chunk: records to functions
 *     breakpad_names.c       FILE and INLINE_ORIGIN tables */
#pragma once

#include "object/breakpad.h"

#include "base/account.h"
#include "base/map.h"
#include "function/assemble.h"

/* Names by number. Numbers count from zero in practice and index an array; numbers from `dense_limit` on are in a map. */
struct breakpad_names {
    struct sl_str *items; /* data NULL: not defined */
    size_t count, capacity;
    size_t dense_limit;   /* smaller numbers index `items` */
    struct sl_map sparse; /* by number: struct sparse_name */
    struct sl_arena arena;
    struct sl_account account; /* charges `items` */
    bool redefined;            /* some number was defined twice */
    bool failed;               /* out of memory */
};

/* Initialises an empty table that charges its memory to `budget`. */
void breakpad_names_init(struct breakpad_names *names, size_t dense_limit, struct sl_budget *budget);

/* Adds a name; `fields` are the `number name` of a FILE or INLINE_ORIGIN line. False if they are malformed. When out of memory it sets
 * names->failed and returns true. */
bool breakpad_names_define(struct breakpad_names *names, struct breakpad_fields fields);

/* Returns the name with a number; data NULL if the number is not defined. For a defined number `*index` (`index` may be NULL) is an index
 * below breakpad_names_count() that no other number has; otherwise it has no meaning. */
struct sl_str breakpad_names_get(const struct breakpad_names *names, uint64_t number, size_t *index);
size_t breakpad_names_count(const struct breakpad_names *names); /* exclusive end of the indexes */
void breakpad_names_free(struct breakpad_names *names);

struct breakpad_chunk {
    const char *begin, *end;      /* in the file */
    const uint8_t *text, *behind; /* the text that is scanned: begin..end itself, or a padded copy (breakpad_scan.h) */
    struct sl_arena arena;
    struct sl_account account;
    struct sl_function_batch batch;
    struct sl_line *lines;
    struct sl_function *functions;
    struct sl_flat *flats; /* one per function */
    struct sl_flat_inlinee *inlinees;
    struct sl_file *files;
    size_t line_count, line_capacity, function_count, function_capacity, flat_capacity, file_count, file_capacity;
    size_t inlinee_count, inlinee_capacity;
    size_t skipped;       /* malformed lines */
    size_t first_skipped; /* offset of the first malformed line in the chunk; valid if skipped > 0 */
    bool defines_origin;  /* contains INLINE_ORIGIN: the chunk must be read again, in order; all else is invalid then */
    bool failed;          /* out of memory or budget */
};

/* Memory that a worker reuses from chunk to chunk. */
struct breakpad_worker {
    struct sl_assembler assembler;
    struct sl_account account;
    struct sl_line *sorted;
    size_t sorted_capacity;
    /* for each file of the table: its index in the files of the current chunk, valid if `batch` is the worker's */
    struct breakpad_file_index {
        uint32_t batch, index;
    } * indexes;
    size_t index_count;
    uint32_t batch; /* counts the chunks that the worker has read, from 1 on: zeroed `indexes` are invalid */
};

struct breakpad_reader {
    const struct sl_object *object;
    struct breakpad_names files, origins; /* of FILE and INLINE_ORIGIN records */
    struct breakpad_worker *workers;
    struct breakpad_chunk *chunks; /* a window: those that are read in parallel */
    size_t chunk_count;
    struct sl_function_sink *sink;
    size_t skipped, functions; /* numbers of malformed lines and of functions so far */
    bool ordered;              /* chunks are read one after the other: an INLINE_ORIGIN is valid from its line on */
};

/* Reads the text from chunk->begin to chunk->end into chunk->batch. If an INLINE_ORIGIN is found while chunks are read in parallel, sets
 * chunk->defines_origin; when out of memory or budget, chunk->failed. The batch is invalid in both cases. */
void breakpad_chunk_read(struct breakpad_reader *reader, struct breakpad_chunk *chunk, struct breakpad_worker *worker);
