/* What collecting shares: the scratch of a worker, the local ids, the operations of a function that are made in address order.
 * Private to this folder.
 *
 *     collect.c  local ids, batches; functions in any form
 *     sweep.c    functions as flat records */
#pragma once

#include "symcache/build.h"

#include "function/assemble.h"

struct call { /* from `address` on, the callee's parent is this location */
    uint64_t address;
    uint32_t context, file, line;
};

struct span {
    uint64_t start, end;
};

/* Names are mostly seen again under the same pointer. */
enum { NAME_CACHE = 512 };
struct known_name {
    struct sl_str name;
    uint32_t generation, id;
    enum sl_language language;
    uint32_t variables;
};

/* Scratch of one worker, reused from batch to batch, and the memory that keeps its operations until the end. */
struct collector {
    struct sl_account account;   /* of the arrays */
    struct sl_arena kept, texts; /* operations; paths made of lasting text */
    const struct sl_symcache_writer *writer;
    const struct sl_function_batch *batch;
    struct sl_arena *arena; /* of the batch */
    struct sl_assembler assembler;
    struct op *ops;
    struct sl_ordered *order, *scratch;
    struct short_op *folded;
    uint64_t *starts; /* of inlined calls: sweep.c */
    struct run *runs;
    struct span *spans;
    struct call *calls; /* a stack */
    struct context *contexts;
    struct local_function *functions;
    struct text *files;
    uint32_t *file_ids;                               /* by file of the batch */
    struct id_list numbered_files, numbered_inlinees; /* by the numbers of what lasts */
    struct id_list global_functions, global_files;
    size_t op_count, op_capacity, start_capacity, order_capacity, scratch_capacity, folded_count, folded_capacity,
        run_count, run_capacity;
    size_t span_capacity, call_count, call_capacity, context_count, context_capacity, function_count;
    size_t function_capacity, file_count, file_capacity, file_id_count, file_id_capacity;
    struct sl_id_table context_table, function_table, file_table;
    struct known_name names[NAME_CACHE];
    struct sl_buf path;
    struct sl_file mapped, mapped_from; /* the last one that the options mapped to, and its id */
    uint32_t mapped_id;
    bool has_mapped;
    bool lasting;   /* text of the batch, and that of those before */
    bool has_calls; /* the outermost function that is walked */
};

enum { ID_UNKNOWN = UINT32_MAX - 1 };

/* ---- collect.c ---- */

/* The local id of a file of the batch that has none yet. */
uint32_t symcache_file_id(struct collector *c, const struct sl_file *file);

struct location {
    uint32_t file, line;
};

/* Where a line is, by the options' mapping. */
struct location symcache_mapped_location(struct collector *c, uint32_t file, uint32_t line);

/* The local id of an inlined function. `number` as in struct sl_function: of lasting batches, of others that of the variables. */
uint32_t symcache_inlinee_id(struct collector *c, struct sl_str name, enum sl_language language, uint32_t number,
                             uint32_t variables);

/* The id in the batch of a link of an inline chain of the current outermost function. */
uint32_t symcache_intern_context(struct collector *c, struct context context);

static inline uint32_t file_id(struct collector *c, uint32_t index)
{
    if (index >= c->file_id_count)
        return SL_NO_FILE;
    if (c->file_ids[index] == ID_UNKNOWN) /* made when it is first asked for: most are not */
        c->file_ids[index] = symcache_file_id(c, &c->batch->files[index]);
    return c->file_ids[index];
}

static inline struct location location_of(struct collector *c, uint32_t file, uint32_t line)
{
    return c->writer->options.map_line ? symcache_mapped_location(c, file, line)
                                       : (struct location){file_id(c, file), line};
}

static inline uint64_t end_of(uint64_t address, uint64_t size)
{
    return size > UINT64_MAX - address ? UINT64_MAX : address + size;
}

/* ---- operations in address order ---- */

struct place {
    uint32_t context, file, line;
};

static inline struct short_op op_at(uint32_t offset, const struct place *at, enum op_kind kind)
{
    return (struct short_op){offset, at->context, at->file, op_what(kind, at->line > MAX_LINE ? 0 : at->line)};
}

static const struct place nowhere = {NO_CONTEXT, SL_NO_FILE, 0};

/* ---- sweep.c ---- */

/* Operations of an outermost function from its flat records, without its end, into c->folded: what the assembled one would
 * give. `*entry` is its context; the file of its first line goes to `*file`. False when the records overlap or are out of
 * order: they have to be assembled. */
bool symcache_sweep(struct collector *c, const struct sl_function *function, const struct sl_flat *flat, uint32_t entry,
                    uint32_t *file);
