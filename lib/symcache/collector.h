/* Shared by collect.c and sweep.c: the scratch memory of a worker, its ids, operations of a function in address order. Private to this
 * folder.
 *
 *     collect.c  ids of files and functions, batches; functions in any form
 *     sweep.c    functions with a flat list of inlined calls (struct sl_flat) */
#pragma once

#include "symcache/build.h"

#include "function/assemble.h"

/* Where an inlined function is called; `context` is the caller. Valid for its code from `address` on. */
struct symcache_call {
    uint64_t address;
    uint32_t context, file, line;
};

struct symcache_span { /* code of inlined calls */
    uint64_t start, end;
};

enum { NAME_CACHE = 512 }; /* number of entries of the cache of inlined functions */
/* An entry of that cache, in which functions are found by the pointer of their name: equal names mostly have the same pointer, so that
 * neither hash nor text is needed. */
struct symcache_known_name {
    struct sl_str name;
    uint32_t generation, id;
    enum sl_language language;
    uint32_t variables;
};

/* Scratch of one worker, reused from batch to batch, and the memory of its operations, which live until the end. */
struct symcache_collector {
    struct sl_account account;   /* charges the arrays */
    struct sl_arena kept, texts; /* operations; paths of lasting batches */
    const struct sl_symcache_writer *writer;
    const struct sl_function_batch *batch;
    struct sl_arena *arena; /* the batch's */
    struct sl_assembler assembler;
    struct op *ops;                     /* of the current function, in any order */
    struct sl_ordered *order, *scratch; /* to sort `ops` */
    struct short_op *folded;            /* operations of the current function in address order (fast path) */
    uint64_t *starts;                   /* of inlined calls: sweep.c */
    struct symcache_op_run *runs;
    struct symcache_span *spans;
    struct symcache_call *calls; /* where inlined calls of the open functions begin: a stack */
    struct context *contexts;
    struct local_function *functions;
    struct symcache_text *files;
    uint32_t *file_ids;                               /* this worker's ids by file of the batch */
    struct id_list numbered_files, numbered_inlinees; /* this worker's ids by sl_file.number, sl_function.number */
    /* the writer's ids by this worker's; filled by the sink's `consume` */
    struct id_list global_functions, global_files;
    size_t op_count, op_capacity, start_capacity, order_capacity, scratch_capacity, folded_count, folded_capacity,
        run_count, run_capacity;
    size_t span_capacity, call_count, call_capacity, context_count, context_capacity, function_count;
    size_t function_capacity, file_count, file_capacity, file_id_count, file_id_capacity;
    struct sl_id_table context_table, function_table, file_table;
    struct symcache_known_name names[NAME_CACHE];
    struct sl_buf path;
    struct sl_file mapped, mapped_from; /* cache of the last file that map_line returned; mapped_id is its id */
    uint32_t mapped_id;
    bool has_mapped;
    bool lasting;   /* sl_function_batch.lasting of the current batch */
    bool has_calls; /* a call inlined directly in the current outermost function has lines */
};

enum { ID_UNKNOWN = UINT32_MAX - 1 }; /* in lists of ids: not looked up yet */

/* ---- collect.c ---- */

/* Returns this worker's id of a file, which is added if it is new; a file with a number is looked up only once. The caller caches the id
 * per file of the batch (file_id). */
uint32_t symcache_file_id(struct symcache_collector *c, const struct sl_file *file);

struct location {
    uint32_t file, line;
};

/* Returns this worker's file id, and the line, after the option map_line was applied to file `file` of the batch and `line`; unchanged if
 * it does not map them. */
struct location symcache_mapped_location(struct symcache_collector *c, uint32_t file, uint32_t line);

/* Returns this worker's id of an inlined function, which is added if it is new; 0 when out of memory (account.failed). `number` is
 * sl_function.number: it identifies a function in batches that are `lasting`; these have no lists of variables. */
uint32_t symcache_inlinee_id(struct symcache_collector *c, struct sl_str name, enum sl_language language,
                             uint32_t number, uint32_t variables);

/* Returns the id in the batch of a context, a link of an inline chain in the current outermost function; adds it if it is new. 0 when out
 * of memory (account.failed). */
uint32_t symcache_intern_context(struct symcache_collector *c, struct context context);

/* Returns this worker's id of file `index` of the batch; SL_NO_FILE if there is no such file. */
static inline uint32_t file_id(struct symcache_collector *c, uint32_t index)
{
    if (index >= c->file_id_count)
        return SL_NO_FILE;
    if (c->file_ids[index] == ID_UNKNOWN) /* made on demand: most files are never used */
        c->file_ids[index] = symcache_file_id(c, &c->batch->files[index]);
    return c->file_ids[index];
}

/* Returns file id and line of a location, mapped if the option map_line is set. */
static inline struct location get_location(struct symcache_collector *c, uint32_t file, uint32_t line)
{
    return c->writer->options.map_line ? symcache_mapped_location(c, file, line)
                                       : (struct location){file_id(c, file), line};
}

static inline uint64_t end_address(uint64_t address, uint64_t size)
{
    return size > UINT64_MAX - address ? UINT64_MAX : address + size;
}

/* ---- operations in address order ---- */

struct symcache_location {
    uint32_t context, file, line;
};

static inline struct short_op op_at(uint32_t offset, const struct symcache_location *at, enum op_kind kind)
{
    return (struct short_op){offset, at->context, at->file, op_kind_and_line(kind, at->line > MAX_LINE ? 0 : at->line)};
}

static const struct symcache_location nowhere = {NO_CONTEXT, SL_NO_FILE, 0};

/* ---- sweep.c ---- */

/* Makes the operations of an outermost function in c->folded, without the hole at its end, from its lines and its flat list of inlined
 * calls: the same as if sl_assemble() had made a tree of the calls first. `entry` is its context; `*file` receives the file of its first
 * line. False if calls or lines overlap or are out of order in a way that needs sl_assemble(). */
bool symcache_sweep(struct symcache_collector *c, const struct sl_function *function, const struct sl_flat *flat,
                    uint32_t entry, uint32_t *file);
