/* What the writer's files share: the operations on the address map and the tables they refer to. Private to this folder.
 *
 *     collect.c  functions of a batch ──▶ runs of operations, contexts, functions; local ids        (parallel)
 *     writer.c   local ids ──▶ global ids; symbols                                                  (in file order)
 *     variables.c     the same of lists of variables; their sections
 *     fold.c     all runs and symbols ──▶ entries, window by window                                 (parallel)
 *                    or, where functions come in address order, each run as it comes
 *     blocks.c   ids in order of first use, blocks as entries come
 *     encode.c   the other sections; strings.c: the texts sorted                                    (parallel)
 *
 * The semantics of the map are those of a sequence of writes "at address A, do X". As X looks only at A itself, the
 * operations of one address can be folded in parts: first those of a function, then those of all. */
#pragma once

#include "symcache/format.h"

#include "base/idtable.h"
#include "base/account.h"
#include "base/map.h"

/* Columns are at most 56 bits wide: what lies above is beyond any address space and is ignored. */
static const uint64_t max_address = (UINT64_C(1) << 56) - 2;

enum { NO_CONTEXT = UINT32_MAX, MAX_LINE = (1 << 30) - 1 };

enum op_kind {
    OP_SET = 0,   /* this location, whatever was there */
    OP_ENTRY = 1, /* this location if vacant or a hole */
    OP_HOLE = 2,  /* a hole if vacant; of symbols with a context: that of the symbol around, which goes on there */
    OP_LABEL = 3, /* of symbols: this location outside of functions, if vacant or a hole */
};

struct op {
    uint64_t address;
    uint32_t context, file;
    uint32_t what; /* kind and line */
};

struct short_op { /* of a run */
    uint32_t offset, context, file;
    uint32_t what;
};

enum { LINE_BITS = 30 };

static inline uint32_t op_what(enum op_kind kind, uint32_t line)
{
    return (uint32_t)kind << LINE_BITS | line;
}

static inline enum op_kind op_kind(uint32_t what)
{
    return (enum op_kind)(what >> LINE_BITS);
}

static inline uint32_t op_line(uint32_t what)
{
    return what & MAX_LINE;
}

/* What is there when nothing was before: of a location, that it is set. */
static inline uint32_t op_entry(uint32_t what)
{
    return what & ~op_what(OP_ENTRY, 0);
}

/* Folded operations of one function, by address; those of an address are one. */
struct run {
    uint64_t base; /* address of the first */
    struct short_op *ops;
    uint32_t count;
};

/* What local ids of a run become: contexts are counted from `first_context`. */
struct run_ids {
    uint32_t first_context;
    const uint32_t *files;
};

struct context {               /* one link of an inline chain */
    uint32_t function, parent; /* parent: NO_CONTEXT = none */
    uint32_t call_file, call_line;
    uint32_t file; /* default: the first file seen with it */
};

struct function_row {
    uint64_t entry; /* UINT64_MAX: inlinee */
    uint32_t name;
    uint32_t root;      /* a context without parent, NO_CONTEXT = none yet */
    uint32_t variables; /* number of a list, counted from 1; 0 = none */
    uint8_t language;
};

struct text {
    struct sl_str str;
    uint64_t hash;
};

struct origin_row { /* texts + 1; 0 = none */
    uint32_t path, revision, url;
};

/* Ids by what they stand for: by local ids, global ones, filled by consume. */
struct id_list {
    uint32_t *ids;
    size_t capacity;
};

/* What prepare makes of a batch. Ids of contexts are local to it, those of functions and files to the worker: where text
 * lasts, a worker knows them from batch to batch and only the new ones are here. Valid until consume has returned; runs
 * and operations longer. */
struct prepared {
    struct run *runs;
    struct context *contexts;
    struct local_function *functions;
    struct text *files; /* full paths */
    size_t run_count, context_count, function_count, file_count, first_function, first_file;
    struct id_list *function_ids, *file_ids;
    bool lasting; /* the names of the functions */
    bool failed;
};

struct local_function {
    struct sl_str name;
    uint64_t hash, entry;
    enum sl_language language;
    uint32_t variables; /* list of the batch, as in struct sl_function */
};

struct sl_symcache_writer {
    struct sl_function_sink sink;
    struct sl_symcache_options options;
    bool partial; /* the object has not all that its headers name */
    const struct sl_parallel *parallel;
    struct sl_account account;    /* of the arrays below, and the encoder's */
    struct sl_arena arena;        /* texts */
    struct collector *collectors; /* one a worker */
    struct run *runs;             /* of all functions, in file order */
    struct op *ops;               /* of the symbols */
    struct context *contexts;
    struct function_row *functions;
    uint32_t *files; /* path text ids */
    struct text *texts;
    struct sl_variables *variables; /* lists of texts, in the arena */
    struct sl_map variable_map;     /* by contents: the number of a list, counted from 1 */
    struct sl_variable *list;       /* scratch */
    size_t variables_count, variables_capacity, list_capacity;
    struct id_list batch_texts,
        batch_variables; /* of the batch that is consumed: texts, lists; filled as they are met */
    size_t run_count, run_capacity, op_count, op_capacity, context_count, context_capacity;
    size_t function_count, function_capacity, file_count, file_capacity, text_count, text_capacity;
    struct sl_id_table function_table, file_table, text_table;
    struct encoder *encoder; /* NULL: not begun */
    struct flow *flow;       /* functions come in address order and are encoded as they come; NULL: they are kept */
    bool disordered;         /* they were expected to, and did not */
    bool keeps_sources;      /* the path of a mapped file is followed by NUL and the path that it was mapped from */
    bool failed;             /* out of memory or budget */
};

static inline uint64_t symcache_mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ 0x9E3779B97F4A7C15u) * 0xC2B2AE3D27D4EB4Fu;
    h = (h ^ (h >> 29) ^ b) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 32);
}

/* ---- writer.c ---- */

/* Number of the text, which is kept; 0 and `failed` when out of memory. */
uint32_t symcache_intern(struct sl_symcache_writer *w, struct sl_str text);

/* ---- variables.c ---- */

/* A batch is consumed. False when out of memory. */
bool symcache_begin_variables(struct sl_symcache_writer *w, const struct sl_function_batch *batch);

/* The number of the batch's list, counted from 1 as that is; 0 when out of memory (`failed`). */
uint32_t symcache_variables_of(struct sl_symcache_writer *w, const struct sl_function_batch *batch, uint32_t variables);
void symcache_free_variables(struct sl_symcache_writer *w);

/* ---- collect.c ---- */

struct collector *symcache_collectors_new(unsigned workers, struct sl_budget *budget);
void symcache_collectors_free(struct collector *collectors, unsigned workers);

/* Gives back the operations of all batches that were consumed. */
void symcache_forget_operations(struct collector *collectors);

/* sl_function_sink.prepare */
void symcache_prepare(struct sl_function_sink *sink, struct sl_function_batch *batch, struct sl_arena *arena,
                      unsigned worker);

/* ---- fold.c ---- */

static inline uint32_t symcache_global_context(const struct run_ids *ids, uint32_t context)
{
    return context == NO_CONTEXT ? NO_CONTEXT : ids->first_context + context;
}

static inline uint32_t symcache_global_file(const struct run_ids *ids, uint32_t file)
{
    return file == SL_NO_FILE ? SL_NO_FILE : ids->files[file];
}

/* What `next` does to what `now` has left at the same address. */
static inline void symcache_apply(struct op *now, const struct op *next)
{
    if (op_kind(next->what) == OP_SET || (op_kind(next->what) & OP_ENTRY && op_kind(now->what) == OP_HOLE))
        *now = *next;
}

/* The entries, OP_SET or OP_HOLE, that writer->runs and the symbols' writer->ops become, window by window. NULL when out of
 * memory. */
struct symcache_folding *symcache_fold(struct sl_symcache_writer *w);
void symcache_folding_free(struct symcache_folding *folding);

/* The next entries, maybe none, valid until the next call; folding has ended when there are no more. False when out of
 * memory. */
bool symcache_fold_window(struct symcache_folding *folding, const struct op **entries, size_t *count);
bool symcache_fold_ended(const struct symcache_folding *folding);

/* The same for runs that come in address order and do not overlap, one by one: nothing is kept. Takes over writer->ops,
 * which must be complete. NULL when out of memory. */
struct flow *symcache_flow_new(struct sl_symcache_writer *w);
void symcache_flow_free(struct flow *flow);

/* Whether the run comes in order. */
bool symcache_flow_fits(const struct flow *flow, const struct run *run);

/* Takes the run, whose ids are local ones, and hands entries to the encoder. False when out of memory. */
bool symcache_flow_add(struct flow *flow, const struct run *run, const struct run_ids *ids, struct encoder *e);
bool symcache_flow_end(struct flow *flow, struct encoder *e);

/* ---- blocks.c ---- */

/* The next entries. False when out of memory. */
bool symcache_encoder_add(struct encoder *e, const struct op *entries, size_t count);

/* The entries that the operations of a run between its first and its last become, the first being an entry that was added. */
bool symcache_encoder_add_run(struct encoder *e, const struct run *run, const struct run_ids *ids);

/* ---- encode.c, strings.c ---- */

struct encoder *symcache_encoder_new(struct sl_symcache_writer *w);
void symcache_encoder_free(struct encoder *e);

/* Renumbers contexts, functions and files by first use and writes the file. */
enum sl_code symcache_encode(struct sl_symcache_writer *w, struct sl_buf *out, struct sl_error *error);

/* Sorts the writer's texts whose `used` is set; `rank[i]` = new id. Returns the number of texts, SIZE_MAX when out of memory. */
size_t symcache_sort_texts(struct sl_symcache_writer *w, const uint8_t *used, uint32_t *order, uint32_t *rank);
