/* Shared by the files of the symcache writer: the operations on the address map and the tables they refer to. Private to this folder.
 *
 *     collect.c    functions of a batch ──▶ their operations (one run each), contexts; ids local to the batch or worker   (parallel)
 *     writer.c     local ids ──▶ the writer's ids; symbols                                                              (in file order)
 *     variables.c  the same for lists of variables; their section
 *     fold.c       operations of all functions and symbols ──▶ entries, part by part                                    (parallel)
 *                      or, if functions come in address order, those of each function as it comes
 *     blocks.c     entries ──▶ ids in order of first use, blocks
 *     encode.c     the other sections; strings.c: sorting of texts                                                      (parallel)
 *
 * The map has entries, sorted by address: from here on the code has this location, or is a hole (has no symbol). It is the result of a
 * sequence of operations "at address A, set X". The result depends only on what A had before, so the operations of one address can be
 * folded in steps: first those of one function, then those of all. */
#pragma once

#include "symcache/format.h"

#include "base/idtable.h"
#include "base/account.h"
#include "base/map.h"

/* Columns are at most 56 bits wide: higher addresses are beyond any address space and are ignored. */
static const uint64_t max_address = (UINT64_C(1) << 56) - 2;

enum { NO_CONTEXT = UINT32_MAX, MAX_LINE = (1 << 30) - 1 };

enum op_kind {
    OP_SET = 0,   /* set this location, replacing any other */
    OP_ENTRY = 1, /* set this location if the address has none or a hole */
    /* Set a hole if the address has nothing yet. Where a symbol within another one ends, the hole has the context of the outer symbol,
     * which continues there. */
    OP_HOLE = 2,
    OP_LABEL = 3, /* symbols only: as OP_ENTRY, but ignored within functions */
};

struct op {
    uint64_t address;
    uint32_t context, file;
    uint32_t kind_and_line; /* enum op_kind in the bits from LINE_BITS on, the line below */
};

struct short_op { /* an operation of a function; `offset`: its address, relative to `base` of the run */
    uint32_t offset, context, file;
    uint32_t kind_and_line;
};

enum { LINE_BITS = 30 };

static inline uint32_t op_kind_and_line(enum op_kind kind, uint32_t line)
{
    return (uint32_t)kind << LINE_BITS | line;
}

static inline enum op_kind op_kind(uint32_t kind_and_line)
{
    return (enum op_kind)(kind_and_line >> LINE_BITS);
}

static inline uint32_t op_line(uint32_t kind_and_line)
{
    return kind_and_line & MAX_LINE;
}

/* Converts the kind of the operation that is left at an address to that of an entry of the map: OP_ENTRY becomes OP_SET; OP_SET and OP_HOLE
 * stay. OP_LABEL does not occur here: folding has ignored it or made it OP_ENTRY. */
static inline uint32_t op_entry(uint32_t kind_and_line)
{
    return kind_and_line & ~op_kind_and_line(OP_ENTRY, 0);
}

/* A run: the operations of one function, sorted by address and folded to one per address. */
struct symcache_op_run {
    uint64_t base; /* address of the first operation; offsets are relative to it */
    struct short_op *ops;
    uint32_t count;
};

/* Converts the ids in operations, which are local to a batch, to ids of the writer: context + first_context, files[file]. */
struct run_ids {
    uint32_t first_context;
    const uint32_t *files;
};

struct context {                   /* one link of an inline chain: a function, called at this place of its parent */
    uint32_t function, parent;     /* `parent` is a context; NO_CONTEXT = outermost */
    uint32_t call_file, call_line; /* of the call in the parent */
    uint32_t file; /* default file, the first one seen with this context: entries store only other files */
};

struct function_row {
    uint64_t entry; /* UINT64_MAX = inlinee */
    uint32_t name;
    uint32_t root;      /* id of its context that has no parent; NO_CONTEXT = not made yet */
    uint32_t variables; /* number of its list of variables in the writer, counted from 1; 0 = none */
    uint8_t language;
};

struct symcache_text {
    struct sl_str str;
    uint64_t hash;
};

struct origin_row { /* text ids + 1; 0 = none */
    uint32_t path, revision, url;
};

/* Array of ids, indexed by other ids: for example the writer's ids by those of a batch. */
struct id_list {
    uint32_t *ids;
    size_t capacity;
};

/* Result of symcache_prepare() for a batch, valid until the sink's `consume` has returned; the operations stay valid longer, see
 * symcache_clear_operations(). Ids of contexts are local to the batch. Ids of functions and files are local to the worker, which keeps them
 * from one lasting batch (whose texts outlive it) to the next: only those that are new in this batch are here. */
struct symcache_prepared {
    struct symcache_op_run *runs; /* one per function, rarely more */
    struct context *contexts;
    struct local_function *functions;
    struct symcache_text *files; /* full paths */
    /* first_...: the worker's id of the first one here; those below are known from earlier batches */
    size_t run_count, context_count, function_count, file_count, first_function, first_file;
    struct id_list *function_ids, *file_ids; /* the writer's ids by the worker's: `consume` adds the new ones */
    bool lasting;                            /* names of functions last (struct sl_function_batch) */
    bool failed;
};

struct local_function {
    struct sl_str name;
    uint64_t hash, entry;
    enum sl_language language;
    uint32_t variables; /* number of its list of variables in the batch, as in struct sl_function; 0 = none */
};

struct sl_symcache_writer {
    struct sl_function_sink sink;
    struct sl_symcache_options options;
    bool partial; /* sl_object_info.partial */
    const struct sl_parallel *parallel;
    struct sl_account account;             /* charges the arrays below and the encoder's */
    struct sl_arena arena;                 /* texts */
    struct symcache_collector *collectors; /* one per worker */
    struct symcache_op_run *runs;          /* of all functions, in file order */
    struct op *ops;                        /* of the symbols */
    struct context *contexts;
    struct function_row *functions;
    uint32_t *files; /* path text ids */
    struct symcache_text *texts;
    struct sl_variables *variables; /* lists of variables, as text ids; items are in the arena */
    struct sl_map variable_map;     /* number of a list, from 1, by its contents */
    struct sl_variable *list;       /* scratch */
    size_t variables_count, variables_capacity, list_capacity;
    struct id_list batch_texts;     /* the writer's ids of texts by those of the current batch; filled on first use */
    struct id_list batch_variables; /* the same for lists of variables */
    size_t run_count, run_capacity, op_count, op_capacity, context_count, context_capacity;
    size_t function_count, function_capacity, file_count, file_capacity, text_count, text_capacity;
    struct sl_id_table function_table, file_table, text_table;
    struct encoder *encoder;   /* NULL = not begun */
    struct ordered_fold *flow; /* not NULL: functions come in address order and are encoded as they come, not kept */
    bool is_out_of_order;      /* a function was out of order in spite of `flow` */
    bool
        keeps_sources; /* stored path of a file that map_line put in place of another: its own path, NUL, path of the other */
    bool failed;       /* out of memory or budget */
};

/* Returns a hash of two numbers. */
static inline uint64_t symcache_mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ 0x9E3779B97F4A7C15u) * 0xC2B2AE3D27D4EB4Fu;
    h = (h ^ (h >> 29) ^ b) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 32);
}

/* ---- writer.c ---- */

/* Interns a copy of the text and returns its id; 0, and account.failed is set, when out of memory. */
uint32_t symcache_intern(struct sl_symcache_writer *w, struct sl_str text);

/* ---- variables.c ---- */

/* Forgets the ids of the last batch's lists of variables; call it when a batch is consumed. False when out of memory. */
bool symcache_begin_variables(struct sl_symcache_writer *w, const struct sl_function_batch *batch);

/* Returns the number in the writer of a list of variables with the number `variables` in the batch; both count from 1. Adds the list if it
 * is new. 0 when out of memory (account.failed). */
uint32_t symcache_encode_variables(struct sl_symcache_writer *w, const struct sl_function_batch *batch,
                                   uint32_t variables);
/* Frees the writer's lists of variables and their tables, but not the texts, which are in its arena. */
void symcache_free_variables(struct sl_symcache_writer *w);

/* ---- collect.c ---- */

/* Makes an array of one collector per worker; NULL when out of memory. Its memory is charged to `budget`, which may be NULL. */
struct symcache_collector *symcache_collectors_new(unsigned workers, struct sl_budget *budget);
/* Frees the array of `workers` collectors with all they hold, also the operations of batches. `collectors` may be NULL. */
void symcache_collectors_free(struct symcache_collector *collectors, unsigned workers);

/* Frees the operations of all consumed batches. Only for writers with one worker, whose operations are all in the first collector. */
void symcache_clear_operations(struct symcache_collector *collectors);

/* The callback sl_function_sink.prepare, called in parallel: converts the functions of a batch to operations (struct short_op) whose
 * contexts, functions and files have ids local to the batch, and stores the result in batch->prepared. That is NULL, or has `failed` set,
 * when out of memory or budget; the sink's `consume`, which converts the ids to the writer's, then fails. */
void symcache_prepare(struct sl_function_sink *sink, struct sl_function_batch *batch, struct sl_arena *arena,
                      unsigned worker);

/* ---- fold.c ---- */

/* Returns the writer's id of a context to which an operation refers by its id in the batch; the function below does so for files. */
static inline uint32_t symcache_global_context(const struct run_ids *ids, uint32_t context)
{
    return context == NO_CONTEXT ? NO_CONTEXT : ids->first_context + context;
}

static inline uint32_t symcache_global_file(const struct run_ids *ids, uint32_t file)
{
    return file == SL_NO_FILE ? SL_NO_FILE : ids->files[file];
}

/* Applies operation `next` to `now`, the result of the earlier operations at the same address: OP_SET replaces it; OP_ENTRY and OP_LABEL
 * replace only a hole; OP_HOLE changes nothing. */
static inline void symcache_apply(struct op *now, const struct op *next)
{
    if (op_kind(next->kind_and_line) == OP_SET ||
        (op_kind(next->kind_and_line) & OP_ENTRY && op_kind(now->kind_and_line) == OP_HOLE))
        *now = *next;
}

/* Starts folding writer->runs (of functions) and writer->ops (of symbols) into entries (OP_SET or OP_HOLE), which
 * symcache_fold_window() then returns part by part. NULL when out of memory. */
struct symcache_folding *symcache_fold(struct sl_symcache_writer *w);
/* Frees the folding, which may be NULL; the operations themselves belong to the writer. */
void symcache_folding_free(struct symcache_folding *folding);

/* Returns the next entries, possibly none, valid until the next call. False when out of memory. */
bool symcache_fold_window(struct symcache_folding *folding, const struct op **entries, size_t *count);
/* True if symcache_fold_window() has returned all entries. */
bool symcache_fold_ended(const struct symcache_folding *folding);

/* Begins to fold functions that come in address order and do not overlap, one by one, without keeping their operations. writer->ops, the
 * operations of the symbols, must be complete; sorts them. NULL when out of memory. */
struct ordered_fold *symcache_ordered_fold_new(struct sl_symcache_writer *w);
void symcache_ordered_fold_free(struct ordered_fold *flow);

/* True if the operations of the function, `run`, begin after those of all functions added so far: then it may be added. */
bool symcache_ordered_fold_accepts(const struct ordered_fold *flow, const struct symcache_op_run *run);

/* Folds the operations of one function, whose ids `ids` converts to the writer's, and passes entries to the encoder. False when out of
 * memory, or when the section of entries is larger than 4 GiB. */
bool symcache_ordered_fold_add(struct ordered_fold *flow, const struct symcache_op_run *run, const struct run_ids *ids,
                               struct encoder *e);
/* Folds the symbols after the last function, and passes the last entries to the encoder. False when out of memory, or when the section of
 * entries is larger than 4 GiB. */
bool symcache_ordered_fold_end(struct ordered_fold *flow, struct encoder *e);

/* ---- blocks.c ---- */

/* Encodes the next entries. False when out of memory, or when the section is larger than 4 GiB. */
bool symcache_encoder_add(struct encoder *e, const struct op *entries, size_t count);

/* Encodes the operations of a function as entries, without the first, which the caller has added already, and the last, which the caller
 * keeps. `ids` converts their ids to the writer's. False when out of memory, or when the section is larger than 4 GiB. */
bool symcache_encoder_add_run(struct encoder *e, const struct symcache_op_run *run, const struct run_ids *ids);

/* ---- encode.c, strings.c ---- */

/* Starts an empty file; NULL when out of memory. A file without the option `variables` has a smaller section table. */
struct encoder *symcache_encoder_new(struct sl_symcache_writer *w);
/* Frees the encoder, which may be NULL, and the file unless symcache_encode has moved it. */
void symcache_encoder_free(struct encoder *e);

/* Renumbers contexts, functions and files by first use and appends the symcache to `out`. SL_UNSUPPORTED if a section is larger than 4 GiB;
 * else the error of sl_budget_fail() if memory or budget runs out. */
enum sl_code symcache_encode(struct sl_symcache_writer *w, struct sl_buf *out, struct sl_error *error);

/* Sorts the writer's texts with used[i] set: order[new id] = i, rank[i] = new id. Returns their number; SIZE_MAX when out of memory. */
size_t symcache_sort_texts(struct sl_symcache_writer *w, const uint8_t *used, uint32_t *order, uint32_t *rank);
