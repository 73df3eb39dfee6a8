/* The symcache writer: interns texts, functions and files of batches in file order; adds the symbols. */
#include "symcache/build.h"

#include "base/map.h"
#include "dwarf/dwarf.h"
#include "function/undecorate.h"
#include "object/symbols.h"

#include <stdlib.h>

/* Returns the error for account.failed: the budget is used up, or memory has run out. */
static enum sl_code symcache_writer_fail(const struct sl_symcache_writer *w, struct sl_error *error)
{
    return sl_budget_fail(w->options.budget, error);
}

/* ---- interning ---- */

/* The hash table slot of an item is prefetched when the item AHEAD before it is looked up. */
enum { AHEAD = 8 };

static bool same_text(const void *texts, uint32_t i, const void *key)
{
    const struct symcache_text *a = (const struct symcache_text *)texts + i, *b = key;
    return a->hash == b->hash && sl_str_equal(a->str, b->str);
}

/* Returns the id of a text, which is added if it is new; 0 when out of memory (account.failed). With `lasting` the caller guarantees that
 * the text lives until the file is written, so it is not copied. */
static uint32_t intern_text(struct sl_symcache_writer *w, struct sl_str str, uint64_t hash, bool lasting)
{
    struct symcache_text text = {str, hash};
    struct sl_id_slot *slot = sl_id_table_find(&w->text_table, &w->account, (uint32_t)hash, same_text, w->texts, &text);
    if (!slot)
        return 0;
    if (sl_id_table_has(&w->text_table, slot))
        return sl_id_table_id(&w->text_table, slot);
    if (!sl_account_spend(&w->account, str.size)) /* texts may share bytes in the object, but not in the symcache */
        return 0;
    const char *copy = lasting && str.data ? str.data : sl_arena_strndup(&w->arena, str.data, str.size);
    if (!copy || !sl_account_grow(&w->account, &w->texts, &w->text_capacity, w->text_count + 1, sizeof *w->texts)) {
        w->account.failed = true;
        return 0;
    }
    w->texts[w->text_count] = (struct symcache_text){{copy, str.size}, hash};
    return sl_id_table_put(&w->text_table, slot, (uint32_t)hash, (uint32_t)w->text_count++);
}

uint32_t symcache_intern(struct sl_symcache_writer *w, struct sl_str text)
{
    return intern_text(w, text, sl_hash(text.data, text.size), false);
}

static bool same_function(const void *functions, uint32_t i, const void *key)
{
    const struct function_row *a = (const struct function_row *)functions + i, *b = key;
    return a->name == b->name && a->entry == b->entry && a->language == b->language && a->variables == b->variables;
}

/* Returns the id of a function; adds it if none is equal in name, entry, language and variables. 0 when out of memory (account.failed). */
static uint32_t intern_function(struct sl_symcache_writer *w, uint32_t name, uint64_t entry, enum sl_language language,
                                uint32_t variables)
{
    struct function_row row = {entry, name, NO_CONTEXT, variables, (uint8_t)language};
    uint32_t hash = (uint32_t)symcache_mix((uint64_t)name << 8 | row.language, entry);
    struct sl_id_slot *slot =
        sl_id_table_find(&w->function_table, &w->account, hash, same_function, w->functions, &row);
    if (!slot)
        return 0;
    if (sl_id_table_has(&w->function_table, slot))
        return sl_id_table_id(&w->function_table, slot);
    if (!sl_account_grow(&w->account, &w->functions, &w->function_capacity, w->function_count + 1,
                         sizeof *w->functions))
        return 0;
    w->functions[w->function_count] = row;
    return sl_id_table_put(&w->function_table, slot, hash, (uint32_t)w->function_count++);
}

static bool same_file(const void *files, uint32_t i, const void *path)
{
    return ((const uint32_t *)files)[i] == *(const uint32_t *)path;
}

/* Returns the writer's id of a file by the text of its path; adds it if it is new. SL_NO_FILE when out of memory (account.failed). */
static uint32_t intern_file(struct sl_symcache_writer *w, const struct symcache_text *path)
{
    uint32_t text = intern_text(w, path->str, path->hash, false), hash = (uint32_t)symcache_mix(text, 1);
    struct sl_id_slot *slot = sl_id_table_find(&w->file_table, &w->account, hash, same_file, w->files, &text);
    if (!slot)
        return SL_NO_FILE;
    if (sl_id_table_has(&w->file_table, slot))
        return sl_id_table_id(&w->file_table, slot);
    if (!sl_account_grow(&w->account, &w->files, &w->file_capacity, w->file_count + 1, sizeof *w->files))
        return SL_NO_FILE;
    w->files[w->file_count] = text;
    return sl_id_table_put(&w->file_table, slot, hash, (uint32_t)w->file_count++);
}

/* ---- batches ---- */

/* Returns the writer's id for an id of a batch; UINT32_MAX, which stands for none, stays. */
static uint32_t global_id(const uint32_t *map, uint32_t local)
{
    return local == UINT32_MAX ? UINT32_MAX : map[local];
}

/* Appends the contexts of a batch (links of inline chains), with the writer's ids instead of the batch's. Equal ones need not be looked
 * for: two outermost functions have no chains in common. */
static void add_contexts(struct sl_symcache_writer *w, const struct symcache_prepared *p, const uint32_t *files,
                         const uint32_t *functions)
{
    uint32_t base = (uint32_t)w->context_count;
    for (size_t i = 0; i < p->context_count; i++) {
        struct context c = p->contexts[i];
        c.function = functions[c.function];
        c.call_file = global_id(files, c.call_file);
        c.file = global_id(files, c.file);
        if (c.parent != NO_CONTEXT)
            c.parent += base;
        else if (w->functions[c.function].root == NO_CONTEXT)
            w->functions[c.function].root = base + (uint32_t)i; /* its context as an outermost function */
        w->contexts[w->context_count++] = c;
    }
}

/* Stores the operations of the batch's functions, which may be in any order, with the writer's ids; they are folded when all functions are
 * known. */
static enum sl_code store_runs(struct sl_symcache_writer *w, const struct symcache_prepared *p,
                               const struct run_ids *ids, struct sl_error *error)
{
    if (!sl_account_grow(&w->account, &w->runs, &w->run_capacity, w->run_count + p->run_count, sizeof *w->runs))
        return symcache_writer_fail(w, error);
    for (size_t i = 0; i < p->run_count; i++) {
        const struct symcache_op_run *run = &p->runs[i];
        for (struct short_op *op = run->ops, *end = op + run->count; op < end; op++) {
            op->context = symcache_global_context(ids, op->context);
            op->file = symcache_global_file(ids, op->file);
        }
        w->runs[w->run_count++] = *run;
    }
    return SL_OK;
}

/* Encodes the operations of the batch's functions, which must be in address order, at once, and frees them. A function out of order ends
 * the conversion with w->is_out_of_order, and sl_symcache_convert() repeats it without expecting an order. */
static enum sl_code encode_runs(struct sl_symcache_writer *w, const struct symcache_prepared *p,
                                const struct run_ids *ids, struct sl_error *error)
{
    for (size_t i = 0; i < p->run_count; i++) {
        if (!symcache_ordered_fold_accepts(w->flow, &p->runs[i])) {
            w->is_out_of_order = true;
            return sl_fail(error, SL_UNSUPPORTED, "the functions of the debug file are not sorted by address");
        }
        if (!symcache_ordered_fold_add(w->flow, &p->runs[i], ids, w->encoder))
            return symcache_writer_fail(w, error);
    }
    symcache_clear_operations(w->collectors);
    return SL_OK;
}

/* The callback sl_function_sink.consume: converts ids of a prepared batch to those of the writer, in the order of the batch, and stores its
 * operations or, with `flow`, encodes them. Fails when out of memory or budget, or with SL_UNSUPPORTED if contexts do not fit 32 bits or,
 * with `flow`, if a function is out of order. */
static enum sl_code symcache_writer_consume(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                                            struct sl_error *error)
{
    struct sl_symcache_writer *w = (struct sl_symcache_writer *)sink;
    struct symcache_prepared *p = batch->prepared;
    if (!p || p->failed)
        return symcache_writer_fail(w, error);
    if (p->context_count >= NO_CONTEXT - w->context_count)
        return sl_fail(error, SL_UNSUPPORTED, "the debug file has more than 2^32 inlined calls");
    uint32_t base = (uint32_t)w->context_count;
    struct id_list *file_ids = p->file_ids, *function_ids = p->function_ids;
    if (!sl_account_grow(&w->account, &file_ids->ids, &file_ids->capacity, p->first_file + p->file_count,
                         sizeof *file_ids->ids) ||
        !sl_account_grow(&w->account, &function_ids->ids, &function_ids->capacity,
                         p->first_function + p->function_count, sizeof *function_ids->ids) ||
        !sl_account_grow(&w->account, &w->contexts, &w->context_capacity, w->context_count + p->context_count,
                         sizeof *w->contexts) ||
        !symcache_begin_variables(w, batch))
        return symcache_writer_fail(w, error);
    /* the writer's ids by those of the worker that prepared the batch; the worker's ids below first_... are here already */
    uint32_t *files = file_ids->ids, *functions = function_ids->ids;
    for (size_t i = 0; i < p->file_count; i++)
        files[p->first_file + i] = intern_file(w, &p->files[i]);
    for (size_t i = 0; i < p->function_count; i++) {
        const struct local_function *f = &p->functions[i];
        if (i + AHEAD < p->function_count)
            __builtin_prefetch(sl_id_table_first_slot(&w->text_table, (uint32_t)f[AHEAD].hash));
        uint32_t name = intern_text(w, f->name, f->hash, p->lasting);
        functions[p->first_function + i] = intern_function(
            w, name, f->entry, f->language, f->variables ? symcache_encode_variables(w, batch, f->variables) : 0);
    }
    if (w->account.failed)
        return symcache_writer_fail(w, error);
    add_contexts(w, p, files, functions);
    const struct run_ids ids = {base, files};
    return w->flow ? encode_runs(w, p, &ids, error) : store_runs(w, p, &ids, error);
}

/* ---- the writer ---- */

struct sl_symcache_writer *sl_symcache_writer_new(const struct sl_symcache_options *options,
                                                  const struct sl_parallel *parallel)
{
    struct sl_symcache_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->options = *options;
    w->parallel = parallel;
    w->account.budget = w->arena.budget = options->budget;
    w->sink = (struct sl_function_sink){
        .prepare = symcache_prepare, .consume = symcache_writer_consume, .accepts_flat = true};
    w->sink.needs_positions = options->positions;
    w->sink.needs_variables = options->variables;
    w->sink.accepts_nameless = options->nameless;
    /* origins are found by the path before map_line replaced it; only PDBs with a source server stream have any */
    w->keeps_sources =
        options->map_line && options->origins && sl_object_info(options->origins)->features.srcsrv_vcs.size;
    w->collectors = symcache_collectors_new(sl_parallel_workers(parallel), options->budget);
    if (!w->collectors) {
        free(w);
        return NULL;
    }
    return w;
}

/* Also frees the encoder and what a failed conversion left behind, so it may be called at any time. */
void sl_symcache_writer_free(struct sl_symcache_writer *w)
{
    if (!w)
        return;
    symcache_collectors_free(w->collectors, sl_parallel_workers(w->parallel));
    symcache_ordered_fold_free(w->flow);
    symcache_encoder_free(w->encoder);
    sl_arena_free(&w->arena);
    free(w->runs);
    free(w->ops);
    free(w->contexts);
    free(w->functions);
    free(w->files);
    free(w->texts);
    free(w->function_table.slots);
    free(w->file_table.slots);
    free(w->text_table.slots);
    symcache_free_variables(w);
    sl_account_release(&w->account);
    free(w);
}

struct sl_function_sink *sl_symcache_writer_sink(struct sl_symcache_writer *w)
{
    return &w->sink;
}

/* Returns the context of the function as an outermost one, without parent; makes it if there is none. NO_CONTEXT when out of memory
 * (account.failed). */
static uint32_t root_context(struct sl_symcache_writer *w, uint32_t function)
{
    struct function_row *row = &w->functions[function];
    if (row->root == NO_CONTEXT && w->context_count < NO_CONTEXT &&
        sl_account_grow(&w->account, &w->contexts, &w->context_capacity, w->context_count + 1, sizeof *w->contexts)) {
        row->root = (uint32_t)w->context_count;
        w->contexts[w->context_count++] = (struct context){function, NO_CONTEXT, SL_NO_FILE, 0, SL_NO_FILE};
    }
    return row->root;
}

/* Returns the name to store for a symbol, after the options map_name and `decorates` were applied; data NULL for a symbol without name. */
static struct symcache_text symbol_name(const struct sl_symcache_options *o, struct sl_str name)
{
    if (o->map_name)
        name = o->map_name(o->map_arg, name);
    if (!name.size)
        return (struct symcache_text){{NULL, 0}, 0};
    if (o->decorates)
        name = sl_undecorate(name, NULL);
    return (struct symcache_text){name, sl_hash(name.data, name.size)};
}

/* Adds the operations of a symbol. At its start: OP_ENTRY, which applies if no function has the address; for a label OP_LABEL, which is
 * also ignored within functions. At its end, if its size is known: a hole. The caller has reserved memory for both. */
static void add_symbol(struct sl_symcache_writer *w, uint64_t address, uint64_t size, enum op_kind kind,
                       const struct symcache_text *name)
{
    uint32_t text = intern_text(w, name->str, name->hash, true);
    uint32_t function = intern_function(w, text, address, SL_LANG_UNKNOWN, 0);
    if (w->account.failed)
        return;
    w->ops[w->op_count++] = (struct op){address, root_context(w, function), SL_NO_FILE, op_kind_and_line(kind, 0)};
    if (size && size <= max_address - address)
        w->ops[w->op_count++] = (struct op){address + size, NO_CONTEXT, SL_NO_FILE, op_kind_and_line(OP_HOLE, 0)};
}

/* Names are prepared AHEAD symbols before they are interned, so that the hash table slot of each is in the processor's cache when it is
 * needed. */
void sl_symcache_writer_symbols(struct sl_symcache_writer *w, const struct sl_symbol *symbols, size_t count)
{
    struct symcache_text names[AHEAD];
    if (!sl_account_grow(&w->account, &w->ops, &w->op_capacity, w->op_count + 2 * count, sizeof *w->ops))
        return;
    for (size_t i = 0; i < count + AHEAD && !w->account.failed; i++) {
        struct symcache_text *name = &names[i % AHEAD];
        if (i >= AHEAD && name->str.data && symbols[i - AHEAD].address <= max_address)
            add_symbol(w, symbols[i - AHEAD].address, symbols[i - AHEAD].size,
                       symbols[i - AHEAD].is_label ? OP_LABEL : OP_ENTRY, name);
        if (i < count) {
            *name = symbol_name(&w->options, symbols[i].name);
            __builtin_prefetch(sl_id_table_first_slot(&w->text_table, (uint32_t)name->hash));
        }
    }
}

/* Fills `gaps` with what the reader of the functions could not read. */
static void symcache_writer_gaps(const struct sl_symcache_writer *w, struct sl_symcache_gaps *gaps)
{
    *gaps = (struct sl_symcache_gaps){
        .units = w->sink.skipped_units, .first = w->sink.first_skipped, .missing_units = w->sink.missing_units};
    memcpy(gaps->first_missing, w->sink.first_missing, sizeof gaps->first_missing);
}

enum sl_code sl_symcache_writer_finish(struct sl_symcache_writer *w, struct sl_buf *out, struct sl_error *error)
{
    if (w->account.failed)
        return symcache_writer_fail(w, error);
    if (w->options.gaps)
        symcache_writer_gaps(w, w->options.gaps);
    return symcache_encode(w, out, error);
}

bool sl_symcache_writer_in_order(struct sl_symcache_writer *w)
{
    if (sl_parallel_workers(w->parallel) > 1)
        return false;
    w->encoder = symcache_encoder_new(w);
    w->flow = w->encoder ? symcache_ordered_fold_new(w) : NULL;
    w->account.failed = w->account.failed || !w->flow;
    return true;
}

/* Reads the functions into the writer. An object without debug information is no error: its symbols are converted. */
static enum sl_code add_functions(struct sl_symcache_writer *w, struct sl_object *object,
                                  const struct sl_companions *companions, struct sl_error *error)
{
    enum sl_code code = sl_object_read_functions(object, companions, w->parallel, sl_symcache_writer_sink(w), error);
    return code == SL_NOT_FOUND ? SL_OK : code;
}

/* Converts the object once: symbols and functions into a new writer, and that into `out`. `*in_order` says that functions are expected in
 * address order, and is set to false if one was not: the result is then an error, and the caller converts again without that expectation.
 * SL_BUSY when out of memory. */
static enum sl_code convert(struct sl_object *object, const struct sl_companions *companions,
                            const struct sl_symcache_options *options, const struct sl_parallel *parallel,
                            bool *in_order, struct sl_buf *out, struct sl_error *error)
{
    struct sl_symcache_writer *w = sl_symcache_writer_new(options, parallel);
    const struct sl_symbol *symbols;
    size_t count;
    if (!w)
        return sl_fail(error, SL_BUSY, "out of memory");
    w->partial = sl_object_info(object)->partial;
    enum sl_code code = *in_order ? SL_OK : add_functions(w, object, companions, error);
    if (code == SL_OK)
        code = sl_object_cached_symbols(object, &symbols, &count, error);
    if (code == SL_OK)
        sl_symcache_writer_symbols(w, symbols, count);
    if (code == SL_OK && *in_order) { /* then the symbols must come first: functions are encoded as they come */
        sl_symcache_writer_in_order(w);
        code = w->account.failed ? symcache_writer_fail(w, error) : add_functions(w, object, companions, error);
    }
    if (code == SL_OK)
        code = sl_symcache_writer_finish(w, out, error);
    *in_order = !w->is_out_of_order;
    sl_symcache_writer_free(w);
    return code;
}

enum sl_code sl_symcache_convert(struct sl_object *object, const struct sl_companions *companions,
                                 const struct sl_symcache_options *options, const struct sl_parallel *parallel,
                                 struct sl_buf *out, struct sl_error *error)
{
    struct sl_symcache_options all = *options; /* the options and three more, which follow from the object */
    all.origins = object;
    all.decorates = sl_object_info(object)->decorates;
    all.budget = sl_object_budget(object);
    /* Functions of Breakpad files are nearly always in address order; those of other formats mostly are not. */
    bool in_order = sl_object_info(object)->format == SL_FORMAT_BREAKPAD && sl_parallel_workers(parallel) == 1;
    bool expected = in_order;
    enum sl_code code = convert(object, companions, &all, parallel, &in_order, out, error);
    if (expected && !in_order)
        code = convert(object, companions, &all, parallel, &in_order, out, error);
    return code;
}
