/* What the writer's files share: the operations on the address map and the tables they refer to. Private to this folder.
 *
 *     functions ──prepare──▶ operations, local ids ──consume──▶ global ids ──finish──▶ sorted, folded, encoded
 *
 * The semantics of the map are those of a sequence of writes "at address A, do X". As X looks only at A itself, the
 * operations can be collected in any order that keeps those of one address in sequence, and folded at the end. */
#pragma once

#include "symcache/format.h"

/* Columns are at most 56 bits wide: what lies above is beyond any address space and is ignored. */
static const uint64_t max_address = (UINT64_C(1) << 56) - 2;

enum { NO_CONTEXT = UINT32_MAX, MAX_LINE = (1 << 30) - 1 };

enum op_kind {
    OP_SET,   /* this location, whatever was there */
    OP_ENTRY, /* this location if vacant or a hole */
    OP_HOLE,  /* a hole if vacant */
};

struct op {
    uint64_t address;
    uint32_t context, file;
    uint32_t line : 30, kind : 2;
};

struct context {               /* one link of an inline chain */
    uint32_t function, parent; /* parent: NO_CONTEXT = none */
    uint32_t call_file, call_line;
    uint32_t file; /* default: the first file seen with it */
};

struct function_row {
    uint64_t entry; /* UINT64_MAX: inlinee */
    uint32_t name;
    uint8_t language;
};

struct text {
    struct sl_str str;
    uint64_t hash;
};

struct table { /* hash -> index + 1, open addressing; the hash in the slot saves looking at the item */
    struct table_slot {
        uint32_t hash, index;
    } * slots;
    size_t capacity, count;
};

struct sl_symcache_writer {
    struct sl_function_sink sink;
    struct sl_symcache_options options;
    const struct sl_parallel *parallel;
    struct sl_arena arena; /* texts */
    struct op *ops;
    struct context *contexts;
    struct function_row *functions;
    uint32_t *files; /* path text ids */
    struct text *texts;
    size_t op_count, op_capacity, context_count, context_capacity, function_count, function_capacity;
    size_t file_count, file_capacity, text_count, text_capacity;
    struct table context_table, function_table, file_table, text_table;
    uint32_t *map; /* scratch: local to global ids */
    size_t map_capacity;
    bool failed; /* out of memory */
};

/* realloc growth; sets writer->failed. */
bool symcache_grow(struct sl_symcache_writer *w, void *array, size_t *capacity, size_t need, size_t item);

/* Finished tables, ready to encode: ids in order of first use, texts sorted. */
struct encoded {
    struct op *ops; /* folded; OP_HOLE or OP_SET */
    size_t op_count;
};

/* Sorts and folds writer->ops in place. */
bool symcache_fold(struct sl_symcache_writer *w, struct encoded *out);

/* Renumbers contexts, functions and files by first use and writes the file. */
enum sl_code symcache_encode(struct sl_symcache_writer *w, struct encoded *e, struct sl_buf *out,
                             struct sl_error *error);

/* Sorts the texts whose `used` is set; `rank[i]` = new id. Returns the number of texts. */
size_t symcache_sort_texts(const struct text *texts, size_t count, const uint8_t *used, uint32_t *order,
                           uint32_t *rank);

/* Removes C decoration of Windows names: `_foo@8`, `@foo@8`, `foo@@12`, `_foo`. */
struct sl_str symcache_undecorate(struct sl_str name);
