/* Converts the functions of a batch to operations on the address map (build.h), with ids that are local to the batch or worker. */
#include "symcache/collector.h"

#include "base/map.h"
#include "function/path.h"
#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

/* KEPT_CHUNK: bytes of a chunk of the arena `kept`. BYTES_PER_STEP: bytes of text for which a step of the work budget is charged. */
enum { KEPT_CHUNK = 1 << 20, BYTES_PER_STEP = 16 };

/* The arena `kept` has larger chunks than the default: it holds the operations of all batches until the file is written. */
struct symcache_collector *symcache_collectors_new(unsigned workers, struct sl_budget *budget)
{
    struct symcache_collector *collectors = calloc(workers, sizeof *collectors);
    for (unsigned i = 0; collectors && i < workers; i++) {
        struct symcache_collector *c = &collectors[i];
        c->account.budget = c->kept.budget = c->texts.budget = budget;
        c->kept.next_chunk = KEPT_CHUNK;
        c->assembler.account.budget = budget;
    }
    return collectors;
}

void symcache_collectors_free(struct symcache_collector *collectors, unsigned workers)
{
    for (unsigned i = 0; collectors && i < workers; i++) {
        struct symcache_collector *c = &collectors[i];
        sl_arena_free(&c->kept);
        sl_arena_free(&c->texts);
        sl_assembler_free(&c->assembler);
        free(c->ops);
        free(c->order);
        free(c->scratch);
        free(c->folded);
        free(c->starts);
        free(c->runs);
        free(c->spans);
        free(c->calls);
        free(c->contexts);
        free(c->functions);
        free(c->files);
        free(c->numbered_files.ids);
        free(c->numbered_inlinees.ids);
        free(c->file_ids);
        free(c->global_functions.ids);
        free(c->global_files.ids);
        free(c->context_table.slots);
        free(c->function_table.slots);
        free(c->file_table.slots);
        sl_buf_free(&c->path);
        sl_account_release(&c->account);
    }
    free(collectors);
}

void symcache_clear_operations(struct symcache_collector *collectors)
{
    sl_arena_reset(&collectors->kept);
}

/* ---- local ids ---- */

static bool same_file(const void *items, uint32_t index, const void *key)
{
    const struct symcache_text *a = (const struct symcache_text *)items + index, *b = key;
    return a->hash == b->hash && sl_str_equal(a->str, b->str);
}

/* Returns this worker's id of a file by its full path; adds it if it is new. If the option map_line put this file in place of another,
 * `from` is the other, whose path is stored after a NUL to look up its origin later; else NULL. SL_NO_FILE for an empty path, or when out
 * of memory. */
static uint32_t intern_file(struct symcache_collector *c, const struct sl_file *file, const struct sl_file *from)
{
    sl_buf_clear(&c->path);
    /* the option written_paths: paths as in the debug information, not cleaned */
    (c->writer->options.written_paths ? sl_path_written : sl_path_full)(&c->path, file->comp_dir, file->directory,
                                                                        file->name);
    c->account.failed = c->account.failed || c->path.failed;
    if (!c->path.size || c->account.failed)
        return SL_NO_FILE;
    if (from) {
        sl_buf_u8(&c->path, '\0');
        sl_path_full(&c->path, from->comp_dir, from->directory, from->name);
        c->account.failed = c->account.failed || c->path.failed;
        if (c->account.failed)
            return SL_NO_FILE;
    }
    struct symcache_text text = {sl_buf_view(&c->path), sl_hash(c->path.data, c->path.size)};
    uint32_t hash = (uint32_t)text.hash;
    struct sl_id_slot *slot = sl_id_table_find(&c->file_table, &c->account, hash, same_file, c->files, &text);
    if (!slot || !sl_account_spend(&c->account, c->path.size / BYTES_PER_STEP))
        return SL_NO_FILE;
    if (!sl_id_table_has(&c->file_table, slot)) {
        /* in a `lasting` batch ids of files are kept for the next batch, so the path must outlive this one */
        text.str.data = sl_arena_strndup(c->lasting ? &c->texts : c->arena, text.str.data, text.str.size);
        c->account.failed = c->account.failed || !text.str.data;
        if (c->account.failed ||
            !sl_account_grow(&c->account, &c->files, &c->file_capacity, c->file_count + 1, sizeof *c->files))
            return SL_NO_FILE;
        sl_id_table_put(&c->file_table, slot, hash, (uint32_t)c->file_count);
        c->files[c->file_count++] = text;
    }
    return sl_id_table_id(&c->file_table, slot);
}

/* True if the texts are the same memory, which is faster than to compare the texts. */
static bool same_pointers(struct sl_str a, struct sl_str b)
{
    return a.data == b.data && a.size == b.size;
}

static bool same_file_pointers(const struct sl_file *a, const struct sl_file *b)
{
    return same_pointers(a->name, b->name) && same_pointers(a->directory, b->directory) &&
           same_pointers(a->comp_dir, b->comp_dir);
}

/* Returns the slot in `ids` for this worker's id of the file or inlined function that has this number from the reader, which saves looking
 * up its text; a new slot has ID_UNKNOWN. NULL if it has no number (0), if the batch is not `lasting` (the next batch may use the same
 * number for something else), or when out of memory. */
static inline uint32_t *numbered_slot(struct symcache_collector *c, struct id_list *ids, uint32_t number)
{
    size_t known = ids->capacity;
    if (!c->lasting || !number)
        return NULL;
    if (number >= known) {
        if (!sl_account_grow(&c->account, &ids->ids, &ids->capacity, (size_t)number + 1, sizeof *ids->ids))
            return NULL;
        for (size_t i = known; i < ids->capacity; i++)
            ids->ids[i] = ID_UNKNOWN;
    }
    return &ids->ids[number];
}

/* Returns this worker's id of a file after the option map_file, if it is set, has rewritten it. */
static uint32_t intern_renamed_file(struct symcache_collector *c, struct sl_file file)
{
    const struct sl_symcache_options *o = &c->writer->options;
    if (o->map_file)
        o->map_file(o->map_arg, &file);
    return intern_file(c, &file, NULL);
}

/* Returns this worker's id of a file; a file with a number is interned only once. */
uint32_t symcache_file_id(struct symcache_collector *c, const struct sl_file *file)
{
    uint32_t *slot = numbered_slot(c, &c->numbered_files, file->number);
    if (!slot)
        return intern_renamed_file(c, *file);
    if (*slot == ID_UNKNOWN)
        *slot = intern_renamed_file(c, *file);
    return *slot;
}

/* Returns this worker's id of `file`, which the option map_line put in place of `from`. Caches the last one by its pointers: adjacent lines
 * mostly map to the same file. */
static uint32_t mapped_file(struct symcache_collector *c, const struct sl_file *file, const struct sl_file *from)
{
    if (!c->has_mapped || !same_file_pointers(file, &c->mapped) || !same_file_pointers(from, &c->mapped_from)) {
        /* keeps_sources: the path of the file that was replaced is stored, too, to look up its origin later */
        c->mapped_id = intern_file(c, file, c->writer->keeps_sources ? from : NULL);
        c->mapped = *file;
        c->mapped_from = *from;
        c->has_mapped = true;
    }
    return c->mapped_id;
}

struct location symcache_mapped_location(struct symcache_collector *c, uint32_t index, uint32_t line)
{
    const struct sl_symcache_options *o = &c->writer->options;
    struct sl_file file;
    uint32_t number = line;
    const struct sl_file *from = index < c->batch->file_count ? &c->batch->files[index] : NULL;
    if (from && o->map_line(o->map_arg, from, line, &file, &number))
        return (struct location){mapped_file(c, &file, from), number};
    return (struct location){file_id(c, index), line};
}

static bool same_function(const void *items, uint32_t index, const void *key)
{
    const struct local_function *a = (const struct local_function *)items + index, *b = key;
    return a->hash == b->hash && a->entry == b->entry && a->language == b->language && a->variables == b->variables &&
           sl_str_equal(a->name, b->name);
}

/* Makes a function; its name is first rewritten by the option map_name, if that is set. `entry`: its address, UINT64_MAX if it is inlined;
 * `variables`: the number of its list of variables in the batch, 0 = none. */
static struct local_function make_local_function(struct symcache_collector *c, struct sl_str name,
                                                 enum sl_language language, uint64_t entry, uint32_t variables)
{
    const struct sl_symcache_options *o = &c->writer->options;
    name = o->map_name ? o->map_name(o->map_arg, name) : name;
    sl_account_spend(&c->account, name.size / BYTES_PER_STEP);
    return (struct local_function){name, sl_hash(name.data, name.size), entry, language, variables};
}

/* Appends a function without looking for an equal one, and returns this worker's id of it; 0 when out of memory (account.failed). */
static uint32_t symcache_collect_add_function(struct symcache_collector *c, const struct local_function *function)
{
    if (!sl_account_grow(&c->account, &c->functions, &c->function_capacity, c->function_count + 1,
                         sizeof *c->functions))
        return 0;
    c->functions[c->function_count] = *function;
    return (uint32_t)c->function_count++;
}

/* Adds an outermost function and returns this worker's id of it; 0 when out of memory (account.failed). Looking for an equal one would be
 * wasted: two functions rarely begin at one address. */
static uint32_t outermost_id(struct symcache_collector *c, const struct sl_function *f)
{
    struct local_function function = make_local_function(c, f->name, f->language, f->address, f->variables);
    return symcache_collect_add_function(c, &function);
}

/* Returns this worker's id of an inlined function; adds it if it is new. 0 when out of memory (account.failed). */
static uint32_t intern_inlinee(struct symcache_collector *c, struct sl_str name, enum sl_language language,
                               uint32_t variables)
{
    struct local_function function = make_local_function(c, name, language, UINT64_MAX, variables);
    uint32_t hash = (uint32_t)function.hash;
    struct sl_id_slot *slot =
        sl_id_table_find(&c->function_table, &c->account, hash, same_function, c->functions, &function);
    if (!slot)
        return 0;
    if (!sl_id_table_has(&c->function_table, slot)) {
        uint32_t id = symcache_collect_add_function(c, &function);
        if (c->account.failed)
            return 0;
        sl_id_table_put(&c->function_table, slot, hash, id);
    }
    return sl_id_table_id(&c->function_table, slot);
}

uint32_t symcache_inlinee_id(struct symcache_collector *c, struct sl_str name, enum sl_language language,
                             uint32_t number, uint32_t variables)
{
    uint32_t *slot = numbered_slot(c, &c->numbered_inlinees, number);
    if (slot) {
        if (*slot == ID_UNKNOWN)
            *slot = intern_inlinee(c, name, language, 0); /* 0: batches in which numbers are valid have no variables */
        return *slot;
    }
    struct symcache_known_name *known = &c->names[symcache_mix((uintptr_t)name.data, name.size) % NAME_CACHE];
    /* clearing the table, which makes the ids in it invalid, changes its generation */
    bool hit = known->generation == c->function_table.generation && known->name.data == name.data &&
               known->name.size == name.size && known->language == language && known->variables == variables;
    if (!hit) {
        uint32_t id = intern_inlinee(c, name, language, variables);
        *known = (struct symcache_known_name){name, c->function_table.generation, id, language, variables};
    }
    return known->id;
}

static bool same_context(const void *items, uint32_t index, const void *key)
{
    const struct context *a = (const struct context *)items + index, *b = key;
    return a->function == b->function && a->parent == b->parent && a->call_file == b->call_file &&
           a->call_line == b->call_line;
}

/* c->context_table has only the contexts of the current outermost function: no other function shares them. */
uint32_t symcache_intern_context(struct symcache_collector *c, struct context context)
{
    uint32_t hash = (uint32_t)symcache_mix((uint64_t)context.function << 32 | context.parent,
                                           (uint64_t)context.call_file << 32 | context.call_line);
    struct sl_id_slot *slot =
        sl_id_table_find(&c->context_table, &c->account, hash, same_context, c->contexts, &context);
    if (!slot)
        return 0;
    if (sl_id_table_has(&c->context_table, slot))
        return sl_id_table_id(&c->context_table, slot);
    if (!sl_account_grow(&c->account, &c->contexts, &c->context_capacity, c->context_count + 1, sizeof *c->contexts))
        return 0;
    sl_id_table_put(&c->context_table, slot, hash, (uint32_t)c->context_count);
    c->contexts[c->context_count] = context;
    return (uint32_t)c->context_count++;
}

static uint32_t inlinee_id(struct symcache_collector *c, const struct sl_function *f)
{
    return symcache_inlinee_id(c, f->name, f->language, f->number, f->variables);
}

/* ---- operations ---- */

/* Adds an operation to c->ops. Addresses beyond the limit of the format are ignored; lines that are too large become 0 (unknown). */
static void add_op(struct symcache_collector *c, enum op_kind kind, uint64_t address, uint32_t context, uint32_t file,
                   uint32_t line)
{
    if (address <= max_address &&
        sl_account_grow(&c->account, &c->ops, &c->op_capacity, c->op_count + 1, sizeof *c->ops))
        c->ops[c->op_count++] = (struct op){address, context, file, op_kind_and_line(kind, line > MAX_LINE ? 0 : line)};
}

SL_ORDER_BY(symcache_collect_by_start, struct symcache_span, start)

/* Fills c->spans with the code that the lines of calls inlined directly into the function cover, sorted by start; returns the number of
 * spans, 0 also when out of memory (account.failed). A line of size 0, whose size is not known, covers one byte, so that a lookup of its
 * address finds it. */
static size_t inlinee_spans(struct symcache_collector *c, const struct sl_function *function)
{
    size_t total = 0, count = 0;
    bool sorted = true;
    for (uint32_t i = 0; i < function->inlinee_count; i++)
        total += function->inlinees[i].line_count;
    if (!total || !sl_account_grow(&c->account, &c->spans, &c->span_capacity, total, sizeof *c->spans))
        return 0;
    struct symcache_span *spans = c->spans;
    for (uint32_t i = 0; i < function->inlinee_count; i++) {
        const struct sl_function *inlinee = &function->inlinees[i];
        for (uint32_t j = 0; j < inlinee->line_count; j++) {
            const struct sl_line *line = &inlinee->lines[j];
            spans[count] =
                (struct symcache_span){line->address, end_address(line->address, line->size ? line->size : 1)};
            sorted = sorted && (count == 0 || spans[count - 1].start <= line->address);
            count++;
        }
    }
    if (!sorted)
        qsort(spans, count, sizeof *spans, symcache_collect_by_start);
    return count;
}

/* Returns the index of the last call at or before `address`; 0, the first one, if all are after it. */
static size_t call_at(const struct symcache_call *calls, size_t count, uint64_t address)
{
    return SL_PARTITION_POINT(middle, 1, count, calls[middle].address <= address) - 1;
}

/* Adds the operations of the lines of `f`, ascending, and pushes the places where calls inlined in `f` begin on the stack c->calls. `f`
 * itself (local function id `id`) is called at the `call_count` places from index `first_call` on. A line that begins inside an earlier one
 * is dropped; a line of size 0 covers one byte. Code of a line that an inlined call covers is left out: it belongs to that call. */
static void collect_lines(struct symcache_collector *c, const struct sl_function *f, uint32_t id, size_t first_call,
                          size_t call_count)
{
    /* at_call: the call of `f` to which the current line belongs; context_call: the one for which `context` was made */
    size_t span_count = inlinee_spans(c, f), next_span = 0, at_call = 0, context_call = SIZE_MAX;
    if (!sl_account_grow(&c->account, &c->calls, &c->call_capacity, c->call_count + span_count, sizeof *c->calls))
        return;
    const struct symcache_span *spans = c->spans;
    const struct symcache_call *calls = c->calls + first_call;
    uint32_t context = NO_CONTEXT;
    uint64_t covered = 0;
    if (f->line_count)
        at_call = call_at(calls, call_count, f->lines[0].address);
    for (uint32_t i = 0; i < f->line_count; i++) {
        const struct sl_line *line = &f->lines[i];
        uint64_t cur = line->address, end = end_address(cur, line->size ? line->size : 1);
        if (i && cur < covered) /* it begins inside an earlier line */
            continue;
        while (at_call + 1 < call_count && calls[at_call + 1].address <= cur)
            at_call++;
        struct location at = get_location(c, line->file, line->line);
        if (context_call != at_call) {
            const struct symcache_call *call = &calls[at_call];
            context_call = at_call;
            context = symcache_intern_context(c, (struct context){id, call->context, call->file, call->line, at.file});
        }
        while (cur < end) { /* each part of the line up to the next inlined call is one operation */
            if (next_span >= span_count || spans[next_span].start > cur)
                add_op(c, OP_SET, cur, context, at.file, at.line);
            if (next_span >= span_count || spans[next_span].start >= end) {
                cur = end;
                break;
            }
            c->calls[c->call_count++] = (struct symcache_call){spans[next_span].start, context, at.file, at.line};
            if (spans[next_span].end > cur)
                cur = spans[next_span].end;
            next_span++;
        }
        covered = cur;
    }
}

struct symcache_surrounding { /* the function around inlined calls */
    size_t first, end;        /* range of its operations in c->ops; `first` moves on from call to call */
    uint64_t limit;           /* address of its end */
};

/* Adds a hole at `end`, where an inlined call ends, unless the enclosing function has a line there (the usual case) or ends there, too.
 * `around`: the operations of the enclosing function, in c->ops from `first` to `end`, and `limit`, the address of its end. */
static void add_end(struct symcache_collector *c, struct symcache_surrounding *around, uint64_t end)
{
    while (around->first < around->end && c->ops[around->first].address < end)
        around->first++;
    bool goes_on = around->first < around->end && c->ops[around->first].address == end;
    if (!goes_on && end != around->limit)
        add_op(c, OP_HOLE, end, NO_CONTEXT, SL_NO_FILE, 0);
}

/* Adds the operations of the calls inlined in `f`, and of those in them. The operations of `f` itself begin at index `first_op` of c->ops,
 * the places where calls inlined in it begin at index `first_call` of c->calls. Calls without code or beyond the last address of the format
 * are left out. */
static void collect_inlinees(struct symcache_collector *c, const struct sl_function *f, size_t first_op,
                             size_t first_call)
{
    size_t call_count = c->call_count - first_call;
    struct symcache_surrounding around = {first_op, c->op_count, end_address(f->address, f->size)};
    for (uint32_t i = 0; call_count && i < f->inlinee_count && !c->account.failed; i++) {
        const struct sl_function *inlinee = &f->inlinees[i];
        if (!inlinee->size || inlinee->address > max_address)
            continue;
        size_t own_calls = c->call_count, own_ops = c->op_count;
        collect_lines(c, inlinee, inlinee_id(c, inlinee), first_call, call_count);
        collect_inlinees(c, inlinee, own_ops, own_calls);
        add_end(c, &around, end_address(inlinee->address, inlinee->size));
        c->call_count = own_calls;
    }
}

/* Collects the operations of an outermost function and its inlined calls in c->ops, not sorted. A call at address 0 with NO_CONTEXT stands
 * for the missing caller, so that an outermost function is handled like an inlined one. */
static void collect_function(struct symcache_collector *c, const struct sl_function *f)
{
    c->op_count = c->call_count = 0;
    sl_id_table_clear(&c->context_table);
    if (!sl_account_grow(&c->account, &c->calls, &c->call_capacity, 1, sizeof *c->calls))
        return;
    uint32_t id = outermost_id(c, f);
    uint32_t file = f->line_count ? get_location(c, f->lines->file, f->lines->line).file : SL_NO_FILE;
    uint32_t root = symcache_intern_context(c, (struct context){id, NO_CONTEXT, SL_NO_FILE, 0, file});
    c->calls[c->call_count++] = (struct symcache_call){0, NO_CONTEXT, SL_NO_FILE, 0};
    add_op(c, OP_ENTRY, f->address, root, SL_NO_FILE, 0); /* counts only if no line begins there */
    size_t first_op = c->op_count;
    collect_lines(c, f, id, 0, 1);
    collect_inlinees(c, f, first_op, 1);
    add_op(c, OP_HOLE, end_address(f->address, f->size), NO_CONTEXT, SL_NO_FILE, 0);
}

/* ---- runs ---- */

/* Reserves memory for operations in c->kept, where they live until the file is written; the caller returns what it does not use by
 * sl_arena_trim(). NULL when out of memory. */
static struct short_op *reserve_ops(struct symcache_collector *c, size_t count)
{
    struct short_op *ops = sl_arena_alloc(&c->kept, count * sizeof *ops, _Alignof(struct short_op));
    c->account.failed = c->account.failed || !ops;
    return ops;
}

/* Starts a run, the list of the operations of one function, with 32-bit offsets from `base`. NULL when out of memory. */
static struct symcache_op_run *start_run(struct symcache_collector *c, uint64_t base, struct short_op *ops)
{
    if (!sl_account_grow(&c->account, &c->runs, &c->run_capacity, c->run_count + 1, sizeof *c->runs))
        return NULL;
    c->runs[c->run_count] = (struct symcache_op_run){.base = base, .ops = ops};
    return &c->runs[c->run_count++];
}

/* Sorts the operations in c->ops, folds them to one per address, and adds them as a run, or as several if offsets do not fit into 32 bits.
 * The sort is stable: of several operations at one address the one collected last, that of the inner call, is applied last. */
static void add_run(struct symcache_collector *c)
{
    size_t count = c->op_count;
    if (count >= UINT32_MAX)
        c->account.failed = true;
    if (c->account.failed || !sl_account_grow(&c->account, &c->order, &c->order_capacity, count, sizeof *c->order) ||
        !sl_account_grow(&c->account, &c->scratch, &c->scratch_capacity, count, sizeof *c->scratch))
        return;
    struct short_op *out = reserve_ops(c, count);
    if (!out)
        return;
    const struct sl_ordered *order = c->order;
    for (size_t i = 0; i < count; i++)
        c->order[i] = (struct sl_ordered){c->ops[i].address, 0, (uint32_t)i};
    sl_order(c->order, c->scratch, count);
    struct symcache_op_run *run = NULL;
    for (size_t i = 0; i < count;) {
        struct op now = c->ops[order[i++].index];
        while (i < count && order[i].key == now.address)
            symcache_apply(&now, &c->ops[order[i++].index]);
        if ((!run || now.address - run->base > UINT32_MAX) && !(run = start_run(c, now.address, out)))
            return;
        *out++ = (struct short_op){(uint32_t)(now.address - run->base), now.context, now.file, now.kind_and_line};
        run->count++;
    }
    sl_arena_trim(&c->kept, out); /* gives back what was reserved for operations that were folded */
}

/* ---- fast path: in address order ---- */

/* Appends an operation, whose address is the next one, to c->folded; the caller has reserved memory. */
static inline void symcache_collect_put(struct symcache_collector *c, uint32_t offset,
                                        const struct symcache_location *at, enum op_kind kind)
{
    c->folded[c->folded_count++] = op_at(offset, at, kind);
}

/* True if a call inlined directly in `f` has lines. If none has, no hole is needed where the calls end. */
static bool has_calls(const struct sl_function *f)
{
    for (uint32_t i = 0; i < f->inlinee_count; i++)
        if (f->inlinees[i].line_count)
            return true;
    return false;
}

/* Makes the operations of the lines of `f` and of its inlined calls in address order. For each inlined call its caller must have a line
 * with the range and place of the call (the form that sl_assemble() gives); else false. `id` is the context of an outermost function; for
 * an inlined one it is NO_CONTEXT, and a context is made of `link` at the first line. `around` is the location of the call, used for code
 * without lines in an inlined call; NULL for the outermost function. Addresses in operations are relative to `base`. */
static bool symcache_collect_walk(struct symcache_collector *c, const struct sl_function *f, uint64_t base,
                                  struct context link, uint32_t id, const struct symcache_location *around)
{
    const struct sl_function *inlinee = f->inlinees, *inlinees_end = inlinee + f->inlinee_count;
    uint64_t at = f->address, end = end_address(f->address, f->size);
    bool behind_call = false;
    for (const struct sl_line *line = f->lines, *stop = line + f->line_count; line < stop; line++) {
        uint64_t size = line->size ? line->size : 1;
        /* + 3: a line adds at most two operations, and the code after the last line one */
        if (line->address < at || line->address > end || size > end - line->address ||
            !sl_account_grow(&c->account, &c->folded, &c->folded_capacity, c->folded_count + 3, sizeof *c->folded))
            return false;
        struct location location = get_location(c, line->file, line->line);
        if (id == NO_CONTEXT) {
            link.file = location.file;
            id = symcache_intern_context(c, link);
        }
        /* Code before the line has none. In an inlined call it gets the place of the call; in the outermost function it continues the last
         * line, or is a hole if a call ended there: the call's location must not go on. */
        if (line->address > at && (around || (behind_call && c->has_calls)))
            symcache_collect_put(c, (uint32_t)(at - base), around ? around : &nowhere, around ? OP_SET : OP_HOLE);
        struct symcache_location here = {id, location.file, location.line};
        behind_call = inlinee < inlinees_end && inlinee->address == line->address;
        if (!behind_call) {
            symcache_collect_put(c, (uint32_t)(line->address - base), &here, OP_SET);
        } else {
            struct context call = {inlinee_id(c, inlinee), id, here.file, here.line, SL_NO_FILE};
            if (inlinee->size != size || !symcache_collect_walk(c, inlinee, base, call, NO_CONTEXT, &here))
                return false;
            inlinee++;
        }
        at = line->address + size;
    }
    if (!sl_account_grow(&c->account, &c->folded, &c->folded_capacity, c->folded_count + 3, sizeof *c->folded))
        return false;
    if (at < end && (around || (behind_call && c->has_calls)))
        symcache_collect_put(c, (uint32_t)(at - base), around ? around : &nowhere, around ? OP_SET : OP_HOLE);
    return inlinee == inlinees_end;
}

/* Makes the operations of a function whose inlined calls are a tree, without the hole at its end, in address order. `entry` is its context;
 * `*file` becomes the file of its first line. If it has no line at its start, an operation OP_ENTRY makes the start part of the function.
 * False if its lines and calls are not in the usual order. */
static bool walk_tree(struct symcache_collector *c, const struct sl_function *f, uint32_t entry, uint32_t *file)
{
    struct symcache_location here = {entry, SL_NO_FILE, 0};
    c->has_calls = has_calls(f);
    if (!f->line_count || f->lines->address > f->address)
        symcache_collect_put(c, 0, &here, OP_ENTRY);
    if (f->line_count)
        *file = get_location(c, f->lines->file, f->lines->line).file;
    return symcache_collect_walk(c, f, f->address, (struct context){.file = SL_NO_FILE}, entry, NULL);
}

static const struct sl_flat no_calls = {NULL, 0};

/* The fast path: makes the operations of an outermost function in one pass in address order, so that they need not be sorted. `flat` is the
 * list of its inlined calls, which symcache_sweep() handles; NULL if they are a tree in `f`. False, without effect, if lines or calls are
 * not in the usual order: then use add_any(). If memory runs out at the end, sets account.failed and returns true. */
static bool walk_function(struct symcache_collector *c, const struct sl_function *f, const struct sl_flat *flat)
{
    uint64_t end = end_address(f->address, f->size);
    uint32_t entry = (uint32_t)c->context_count, file = SL_NO_FILE;
    if (end > max_address || f->size > UINT32_MAX ||
        !sl_account_grow(&c->account, &c->contexts, &c->context_capacity, c->context_count + 1, sizeof *c->contexts) ||
        !sl_account_grow(&c->account, &c->folded, &c->folded_capacity, 2, sizeof *c->folded))
        return false;
    if (f->inlinee_count || flat)
        sl_id_table_clear(&c->context_table);
    c->folded_count = 0;
    c->context_count++; /* `entry`, the function's own context, is filled below, when the file of its first line is known */
    if (!flat && !f->inlinee_count)
        flat = &no_calls; /* without inlined calls both forms are the same, and the sweep is used */
    if (!(flat ? symcache_sweep(c, f, flat, entry, &file) : walk_tree(c, f, entry, &file))) {
        c->context_count = entry;
        return false;
    }
    symcache_collect_put(c, (uint32_t)f->size, &nowhere, OP_HOLE);
    c->contexts[entry] = (struct context){outermost_id(c, f), NO_CONTEXT, SL_NO_FILE, 0, file};
    struct short_op *ops = reserve_ops(c, c->folded_count);
    struct symcache_op_run *run = ops ? start_run(c, f->address, ops) : NULL;
    if (run) {
        memcpy(ops, c->folded, c->folded_count * sizeof *ops);
        run->count = (uint32_t)c->folded_count;
    }
    return true;
}

/* ---- the batch ---- */

/* Returns a copy of `count` items of `size` bytes, from index `first` on, in the arena; NULL when out of memory (account.failed). */
static void *symcache_collect_copy(struct symcache_collector *c, struct sl_arena *arena, const void *items,
                                   size_t first, size_t count, size_t size)
{
    void *copied = sl_arena_alloc(arena, count * size + 1, 8); /* + 1: never 0 bytes */
    if (copied && count)
        memcpy(copied, (const uint8_t *)items + first * size, count * size);
    c->account.failed = c->account.failed || !copied;
    return copied;
}

/* Marks all ids as unknown, because numbers mean something else in the next batch. */
static void clear_ids(struct id_list *ids)
{
    for (size_t i = 0; i < ids->capacity; i++)
        ids->ids[i] = ID_UNKNOWN;
}

/* Resets the worker's scratch memory for a batch. From one lasting batch to the next, this worker's ids of functions and files are kept. */
static void start_batch(struct symcache_collector *c, const struct sl_symcache_writer *w,
                        const struct sl_function_batch *batch, struct sl_arena *arena)
{
    c->writer = w;
    c->batch = batch;
    c->arena = arena;
    c->run_count = c->context_count = 0;
    if (!c->lasting || !batch->lasting) {
        c->function_count = c->file_count = 0;
        clear_ids(&c->numbered_files);
        clear_ids(&c->numbered_inlinees);
        sl_id_table_clear(&c->function_table);
        sl_id_table_clear(&c->file_table);
    }
    c->lasting = batch->lasting;
    c->has_mapped = false;
    c->file_id_count = batch->file_count;
    /* on failure account.failed is set, and the caller collects nothing */
    if (sl_account_grow(&c->account, &c->file_ids, &c->file_id_capacity, batch->file_count, sizeof *c->file_ids))
        for (size_t i = 0; i < batch->file_count; i++)
            c->file_ids[i] = ID_UNKNOWN;
}

/* Adds the operations of a function to which the fast path walk_function() did not apply. If its inlined calls are a list (`flat`), makes a
 * tree of them and tries the fast path again; if that fails, too, collects the operations in any order and sorts them. */
static void add_any(struct symcache_collector *c, const struct sl_function *function, const struct sl_flat *flat)
{
    struct sl_function f = *function;
    if (flat) {
        c->account.failed =
            c->account.failed || !sl_assemble(&c->assembler, c->arena, &f, flat->inlinees, flat->inlinee_count,
                                              function->lines, function->line_count);
        if (c->account.failed || walk_function(c, &f, NULL))
            return;
    }
    collect_function(c, &f);
    add_run(c);
}

void symcache_prepare(struct sl_function_sink *sink, struct sl_function_batch *batch, struct sl_arena *arena,
                      unsigned worker)
{
    const struct sl_symcache_writer *w = (const struct sl_symcache_writer *)sink;
    struct symcache_collector *c = &w->collectors[worker];
    struct symcache_prepared *p = SL_ARENA_NEW(arena, struct symcache_prepared);
    batch->prepared = p;
    if (!p)
        return;
    start_batch(c, w, batch, arena);
    size_t first_function = c->function_count,
           first_file = c->file_count; /* those with smaller indexes are from earlier batches */
    for (size_t i = 0; i < batch->function_count && !c->account.failed; i++) {
        /* the list of the inlined calls; NULL: they are a tree in the function */
        const struct sl_flat *flat = batch->flats && batch->flats[i].inlinee_count ? &batch->flats[i] : NULL;
        const struct sl_function *f = &batch->functions[i];
        if (f->size && f->address <= max_address && !walk_function(c, f, flat))
            add_any(c, f, flat);
    }
    *p = (struct symcache_prepared){
        .runs = symcache_collect_copy(c, arena, c->runs, 0, c->run_count, sizeof *c->runs),
        .contexts = symcache_collect_copy(c, arena, c->contexts, 0, c->context_count, sizeof *c->contexts),
        .run_count = c->run_count,
        .context_count = c->context_count,
        .function_count = c->function_count - first_function,
        .file_count = c->file_count - first_file,
        .first_function = first_function,
        .first_file = first_file,
        .function_ids = &c->global_functions,
        .file_ids = &c->global_files,
        .lasting = c->lasting,
    };
    p->functions =
        symcache_collect_copy(c, arena, c->functions, first_function, p->function_count, sizeof *c->functions);
    p->files = symcache_collect_copy(c, arena, c->files, first_file, p->file_count, sizeof *c->files);
    p->failed = c->account.failed;
}
