/* Breakpad: reading FUNC, INLINE and line records: tables of names, chunks, workers. Private to this folder.
 *
 * The records are cut into chunks that begin with a FUNC line; a chunk becomes a batch. Windows of chunks are read in
 * parallel:
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
    size_t dense_limit;   /* numbers below index `items` */
    struct sl_map sparse; /* by number: struct sparse_name */
    struct sl_arena arena;
    struct sl_account account; /* charges `items` */
    bool redefined;            /* some number was defined twice */
    bool failed;               /* out of memory */
};

/* Initialises an empty table that charges its memory to `budget`. */
void breakpad_names_init(struct breakpad_names *names, size_t dense_limit, struct sl_budget *budget);

/* Adds `number name`, the rest of a FILE or INLINE_ORIGIN line. False when malformed; sets `failed` when out of memory. */
bool breakpad_names_define(struct breakpad_names *names, struct breakpad_fields fields);

/* Returns the name of a number; data NULL if it is undefined. `*index` (may be NULL) is then unspecified, else a unique index below
 * breakpad_names_count. */
struct sl_str breakpad_names_get(const struct breakpad_names *names, uint64_t number, size_t *index);
size_t breakpad_names_count(const struct breakpad_names *names);
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
    size_t first_skipped; /* offset of the first of them in the chunk */
    bool defines_origin;  /* contains INLINE_ORIGIN: chunks must be read in order; nothing else is valid then */
    bool failed;          /* out of memory or budget */
};

/* Scratch of one worker. */
struct breakpad_worker {
    struct sl_assembler assembler;
    struct sl_account account;
    struct sl_line *sorted;
    size_t sorted_capacity;
    struct breakpad_file_index { /* index of a file in batch number `batch` */
        uint32_t batch, index;
    } * indexes;
    size_t index_count;
    uint32_t batch; /* number of the current batch; never 0 */
};

struct breakpad_reader {
    const struct sl_object *object;
    struct breakpad_names files, origins;
    struct breakpad_worker *workers;
    struct breakpad_chunk *chunks; /* one window */
    size_t chunk_count;
    struct sl_function_sink *sink;
    size_t skipped, functions;
    bool ordered; /* chunks are read one after the other: an INLINE_ORIGIN is valid from its line on */
};

/* Reads chunk `begin`..`end` into its batch. */
void breakpad_chunk_read(struct breakpad_reader *reader, struct breakpad_chunk *chunk, struct breakpad_worker *worker);
