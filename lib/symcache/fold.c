/* Folds the operations of functions and symbols into the entries of the address map.
 *
 * The operations of one function, a run, are sorted by address. Functions hardly ever overlap, so their runs, in the order of their first
 * addresses, are already in entry order. Functions that overlap form a cluster, whose operations are sorted together. Clusters are grouped
 * into work items of about equal size. A few work items at a time, a window, are folded in parallel, each into its own part of one array;
 * then the parts are joined. Only the entries of one window are in memory. */
#include "symcache/build.h"

#include "function/order.h"
#include "object/nesting.h"
#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

/* ---- clusters ---- */

enum { OPS_PER_ITEM = 16384 }; /* operations of functions per work item */

struct ordered_run {
    uint64_t base;
    const struct symcache_op_run *run;
};

struct cluster {                   /* a group of functions that overlap; mostly a single one that overlaps none */
    size_t first, count, op_count; /* its runs are [first, first + count) in address order */
    uint64_t base;                 /* lowest address */
};

struct fold_item { /* a work item: clusters [first, end), addresses [low, limit) */
    size_t first, end;
    uint64_t low, limit;
    struct op *out;
    size_t capacity, count; /* capacity and entries of `out` */
    struct op last;         /* last entry, if `any` */
    bool any, failed;       /* there is an entry; memory ran out */
};

struct symcache_folding {
    struct sl_account account;
    const struct sl_parallel *parallel;
    const struct op *symbols; /* operations of symbols, sorted and folded to one per address */
    size_t symbol_count;
    struct ordered_run *runs;
    struct cluster *clusters;
    struct fold_item *items;
    size_t run_count, cluster_count, item_count, next_item;
    struct op *out; /* entries of a window */
    size_t out_capacity;
    struct op last; /* last entry of the window before, if `any` */
    bool any;
};

SL_ORDER_BY(by_base, struct ordered_run, base, run)

SL_ORDER_BY(by_sequence, struct ordered_run, run)

/* Fills f->runs: the operations of each function, in the order of their first addresses. Most inputs are sorted already, which is checked
 * to save the sort. False when out of memory. */
static bool order_runs(struct symcache_folding *f, const struct sl_symcache_writer *w)
{
    bool sorted = true;
    f->run_count = w->run_count;
    f->runs = sl_account_alloc(&f->account, w->run_count + 1, sizeof *f->runs);
    for (size_t i = 0; f->runs && i < w->run_count; i++) {
        f->runs[i] = (struct ordered_run){w->runs[i].base, &w->runs[i]};
        sorted = sorted && (i == 0 || f->runs[i - 1].base <= f->runs[i].base);
    }
    if (f->runs && !sorted)
        qsort(f->runs, f->run_count, sizeof *f->runs, by_base);
    return f->runs != NULL;
}

/* Groups functions that overlap into clusters. Functions that only touch, with the hole at the end of one at the first address of the next,
 * do not overlap: the order of a hole and another operation at one address does not matter. False when out of memory. */
static bool find_clusters(struct symcache_folding *f)
{
    uint64_t last = 0; /* highest address of an operation in the cluster */
    bool last_is_hole = true;
    struct cluster *cluster = NULL;
    f->clusters = sl_account_alloc(&f->account, f->run_count + 1, sizeof *f->clusters);
    for (size_t i = 0; f->clusters && i < f->run_count; i++) {
        const struct symcache_op_run *run = f->runs[i].run;
        const struct short_op *end = &run->ops[run->count - 1];
        uint64_t run_last = run->base + end->offset;
        bool overlaps = cluster && (run->base < last || (run->base == last && !last_is_hole));
        if (!overlaps) {
            cluster = &f->clusters[f->cluster_count++];
            *cluster = (struct cluster){.first = i, .base = run->base};
            last = run_last;
            last_is_hole = op_kind(end->kind_and_line) == OP_HOLE;
        } else if (run_last >= last) {
            last_is_hole = op_kind(end->kind_and_line) == OP_HOLE && (run_last > last || last_is_hole);
            last = run_last;
        }
        cluster->count++;
        cluster->op_count += run->count;
    }
    return f->clusters != NULL;
}

/* ---- folding ---- */

/* True if context, file, line and kind are equal. Compares them at once: one branch is predicted better than several. Two holes are
 * equal. */
static inline bool same_location(const struct op *a, const struct op *b)
{
    return ((a->context ^ b->context) | (a->file ^ b->file) | (a->kind_and_line ^ b->kind_and_line)) == 0;
}

/* Merges operations of functions with those of symbols, in address order, into entries of a work item. */
struct emitter {
    struct fold_item *item;
    const struct op *symbol, *symbols_end; /* operations of symbols that are left */
    struct op now;                         /* result at the current address, not yet an entry; valid if `any` */
    struct op function;                    /* last operation of a function; a hole if there was none */
    bool any;
};

static const struct op op_hole = {
    .context = NO_CONTEXT, .file = SL_NO_FILE, .kind_and_line = (uint32_t)OP_HOLE << LINE_BITS};

/* Appends the result at the current address to the entries, unless the last entry has the same location: an entry is valid up to the
 * next. */
static void symcache_fold_flush(struct emitter *e)
{
    struct fold_item *p = e->item;
    e->now.kind_and_line = op_entry(e->now.kind_and_line);
    if (!e->any || (p->any && same_location(&p->last, &e->now)))
        return;
    p->out[p->count++] = p->last = e->now;
    p->any = true;
}

/* Applies an operation to the result at the current address; if its address is a new one, first makes that result an entry. */
static void fold_op(struct emitter *e, const struct op *op)
{
    if (e->any && e->now.address == op->address) {
        symcache_apply(&e->now, op);
        return;
    }
    symcache_fold_flush(e);
    e->now = *op;
    e->any = true;
}

/* Applies the next operation of a symbol. Functions have precedence: inside one a label is ignored, and where a symbol ends the function
 * continues. The two first branches are the frequent cases. */
static void fold_symbol_op(struct emitter *e)
{
    const struct op *op = e->symbol++;
    enum op_kind kind = op_kind(op->kind_and_line);
    if (__builtin_expect(kind == OP_ENTRY, true)) {
        fold_op(e, op);
        return;
    }
    bool inside = op_kind(e->function.kind_and_line) != OP_HOLE;
    if (__builtin_expect(kind == OP_HOLE && !inside && op->context == NO_CONTEXT, true)) {
        fold_op(e, op);
        return;
    }
    /* inside a function a label is ignored, and so is the end of a symbol where the address has an operation already */
    if (inside && (kind == OP_LABEL || e->now.address == op->address))
        return;
    /* a label outside of functions, or the end of a symbol: an outer symbol or, if `inside`, the function continues */
    struct op changed = {op->address, op->context, op->file, op_kind_and_line(OP_ENTRY, 0)};
    if (inside)
        changed = (struct op){op->address, e->function.context, e->function.file, op_entry(e->function.kind_and_line)};
    fold_op(e, &changed);
}

/* Applies an operation of a function, after all operations of symbols at lower addresses; those of symbols at its address come after it. */
static void fold_function_op(struct emitter *e, const struct op *op)
{
    if (op->address >= e->item->limit) /* the hole at its end, where the next work item begins */
        return;
    while (e->symbol < e->symbols_end && e->symbol->address < op->address)
        fold_symbol_op(e);
    fold_op(e, op);
    e->function = *op;
}

/* Returns operation `i` of a function, whose operations are `run`, with the writer's ids; `ids` converts them, NULL if `run` has them
 * already. */
static inline struct op make_op(const struct symcache_op_run *run, uint32_t i, const struct run_ids *ids)
{
    const struct short_op *s = &run->ops[i];
    return (struct op){
        run->base + s->offset,
        ids ? symcache_global_context(ids, s->context) : s->context,
        ids ? symcache_global_file(ids, s->file) : s->file,
        s->kind_and_line,
    };
}

/* Returns the order of the operations by address, sorted stably: item i has the index in `ops` of the i-th operation. The array of `count`
 * items is charged to `account`. NULL when out of memory. */
static struct sl_ordered *order_ops(struct sl_account *account, const struct op *ops, size_t count)
{
    struct sl_ordered *order = count < UINT32_MAX ? sl_account_alloc(account, count, sizeof *order) : NULL;
    struct sl_ordered *scratch = order ? sl_account_alloc(account, count, sizeof *scratch) : NULL;
    if (!scratch) {
        sl_account_free(account, order, count, sizeof *order);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        order[i] = (struct sl_ordered){ops[i].address, 0, (uint32_t)i};
    sl_order(order, scratch, count);
    sl_account_free(account, scratch, count, sizeof *scratch);
    return order;
}

/* Fast path: folds the operations of a function that neither overlaps others nor has symbols inside. All but the first and the last become
 * entries without comparing addresses. */
static void fold_undisturbed(struct emitter *e, const struct symcache_op_run *run)
{
    struct op op = make_op(run, 0, NULL);
    fold_function_op(e, &op);
    if (run->count == 1)
        return;
    symcache_fold_flush(e);
    struct op *last = &e->item->out[e->item->count - 1];
    for (uint32_t i = 1; i + 1 < run->count; i++) {
        op = make_op(run, i, NULL);
        op.kind_and_line = op_entry(op.kind_and_line);
        if (!same_location(last, &op))
            *++last = op;
    }
    e->item->count = (size_t)(last + 1 - e->item->out);
    e->item->last = *last;
    /* no entry yet: the next function may begin at its address */
    e->function = e->now = make_op(run, run->count - 1, NULL);
}

/* True if the function, whose operations are `run`, has no symbol inside and ends within this work item. */
static bool is_undisturbed(const struct emitter *e, const struct symcache_op_run *run)
{
    uint64_t last = run->base + run->ops[run->count - 1].offset;
    return last < e->item->limit && (e->symbol == e->symbols_end || e->symbol->address > last);
}

/* Folds the operations of a function one by one. `ids` converts their ids to the writer's; NULL if they have these already. */
static void fold_run(struct emitter *e, const struct symcache_op_run *run, const struct run_ids *ids)
{
    for (uint32_t i = 0; i < run->count; i++) {
        struct op op = make_op(run, i, ids);
        fold_function_op(e, &op);
    }
}

/* Folds the functions of a cluster. Sorts their operations by address, and those at one address in the order of the functions in the file,
 * so that the last function counts: `runs` are put into this order, then order_ops() sorts the operations stably. False when out of
 * memory. */
static bool fold_cluster(struct emitter *e, struct ordered_run *runs, const struct cluster *cluster,
                         struct sl_budget *budget)
{
    struct sl_account account = {.budget = budget};
    struct op *ops = sl_account_alloc(&account, cluster->op_count, sizeof *ops);
    size_t count = 0;
    qsort(runs, cluster->count, sizeof *runs, by_sequence);
    for (size_t i = 0; ops && i < cluster->count; i++)
        for (uint32_t j = 0; j < runs[i].run->count; j++)
            ops[count++] = make_op(runs[i].run, j, NULL);
    struct sl_ordered *order = ops ? order_ops(&account, ops, count) : NULL;
    for (size_t i = 0; order && i < count; i++)
        fold_function_op(e, &ops[order[i].index]);
    bool ok = order != NULL;
    free(ops);
    free(order);
    sl_account_release(&account);
    return ok;
}

/* Returns the first operation of a symbol at or after the address. */
static const struct op *first_symbol(const struct symcache_folding *f, uint64_t address)
{
    size_t low = SL_PARTITION_POINT(middle, 0, f->symbol_count, f->symbols[middle].address < address);
    return f->symbols + low;
}

/* Runs on a worker: folds the clusters of a work item and the symbols among them. Work items do not share addresses. */
static void fold_one_item(void *arg, size_t index, unsigned worker)
{
    (void)worker;
    struct symcache_folding *f = arg;
    struct fold_item *p = &f->items[f->next_item + index];
    struct emitter e = {.item = p, .symbol = first_symbol(f, p->low), .symbols_end = first_symbol(f, p->limit)};
    e.function = op_hole; /* no function yet */
    for (size_t i = p->first; i < p->end; i++) {
        const struct cluster *cluster = &f->clusters[i];
        if (cluster->count > 1) {
            p->failed = p->failed || !fold_cluster(&e, &f->runs[cluster->first], cluster, f->account.budget);
            continue;
        }
        const struct symcache_op_run *run = f->runs[cluster->first].run;
        if (is_undisturbed(&e, run))
            fold_undisturbed(&e, run);
        else
            fold_run(&e, run, NULL);
    }
    while (e.symbol < e.symbols_end)
        fold_symbol_op(&e);
    symcache_fold_flush(&e);
}

/* Divides the clusters into work items of about OPS_PER_ITEM operations, and computes how many entries each can have at most: its
 * operations and those of the symbols in its range. A work item covers the addresses from its `low` up to its `limit`. False when out of
 * memory. */
static bool divide_work(struct symcache_folding *f)
{
    f->items = sl_account_alloc(&f->account, f->cluster_count + 1, sizeof *f->items);
    if (!f->items)
        return false;
    size_t at = 0;
    do { /* at least one item: without functions it has the symbols */
        struct fold_item *p = &f->items[f->item_count++];
        uint64_t low = f->item_count == 1 ? 0 : f->clusters[at].base;
        size_t ops = 0;
        *p = (struct fold_item){.first = at, .low = low};
        while (at < f->cluster_count && ops < OPS_PER_ITEM)
            ops += f->clusters[at++].op_count;
        p->end = at;
        p->limit = at < f->cluster_count ? f->clusters[at].base : UINT64_MAX;
        p->capacity = ops + (size_t)(first_symbol(f, p->limit) - first_symbol(f, low));
    } while (at < f->cluster_count);
    return true;
}

/* Joins the entries of the window's work items to one array without gaps. The first entry of a work item is left out if it repeats the last
 * one before it. False if a work item failed. */
static bool join_items(struct symcache_folding *f, size_t items, size_t *count)
{
    size_t total = 0;
    for (size_t i = 0; i < items; i++) {
        const struct fold_item *p = &f->items[f->next_item + i];
        if (p->failed)
            return false;
        if (!p->count)
            continue;
        /* a hole before the first entry of all says nothing: addresses there have no symbol anyway */
        size_t skip = f->any ? same_location(&f->last, p->out) : op_kind(p->out->kind_and_line) == OP_HOLE;
        memmove(f->out + total, p->out + skip, (p->count - skip) * sizeof *f->out);
        total += p->count - skip;
        if (total) {
            f->last = f->out[total - 1];
            f->any = true;
        }
    }
    *count = total;
    return true;
}

/* Opens the symbols whose first operations are order[first..end), all at one address. In w->ops the end of a symbol, a hole, follows its
 * start; a symbol without one is not opened. False when out of memory. */
static bool open_symbols(struct sl_nesting *nesting, const struct sl_symcache_writer *w, const struct sl_ordered *order,
                         size_t first, size_t end)
{
    for (size_t i = end; i-- > first;) { /* the first in the file is the innermost */
        uint32_t index = order[i].index;
        const struct op *op = &w->ops[index], *next = op + 1;
        bool has_end =
            op_kind(op->kind_and_line) != OP_HOLE && index + 1 < w->op_count && op_kind(next->kind_and_line) == OP_HOLE;
        if (has_end && !sl_nesting_open(nesting, next->address, op->context))
            return false;
    }
    return true;
}

/* Sets the context of holes within symbols to that of the enclosing symbol. `order` is the order of w->ops by address, `sorted` has them
 * folded to one per address. False when out of memory. */
static bool fill_holes(const struct sl_symcache_writer *w, const struct sl_ordered *order, struct op *sorted)
{
    struct sl_nesting nesting = {.account.budget = w->account.budget};
    bool ok = true;
    for (size_t i = 0, first; ok && i < w->op_count; sorted++) {
        for (first = i; i < w->op_count && order[i].key == sorted->address;)
            i++;
        const struct sl_nested *around = sl_nesting_at(&nesting, sorted->address);
        if (op_kind(sorted->kind_and_line) == OP_HOLE && around)
            sorted->context = around->tag; /* the context that open_symbols() has given it */
        ok = open_symbols(&nesting, w, order, first, i);
    }
    sl_nesting_free(&nesting);
    return ok;
}

/* Sorts the operations of the symbols and applies those at one address to one another, in file order; the result replaces writer->ops. In
 * writer->ops the end of a symbol follows its start: unless symbols are nested, there is no operation between the two in address order
 * either. If they are nested, the end of an inner one returns to the outer one (fill_holes). False when out of memory. */
static bool sort_symbols(struct sl_symcache_writer *w)
{
    size_t capacity = w->op_count + 1;
    struct sl_ordered *order = order_ops(&w->account, w->ops, w->op_count);
    struct op *sorted = sl_account_alloc(&w->account, capacity, sizeof *sorted);
    size_t count = 0;
    bool nested = false;
    for (size_t i = 0; order && sorted && i < w->op_count; i++) {
        const struct op *op = &w->ops[order[i].index];
        if (count && sorted[count - 1].address == op->address) {
            symcache_apply(&sorted[count - 1], op);
        } else {
            sorted[count++] = *op;
        }
        /* op[-1] is the start of the symbol that ends here; if it is not the last operation before this one, symbols are nested */
        if (op_kind(op->kind_and_line) == OP_HOLE)
            nested |= op[-1].address != sorted[count - 2].address;
    }
    bool ok = order && sorted && (!nested || fill_holes(w, order, sorted));
    sl_account_free(&w->account, order, w->op_count, sizeof *order);
    if (!ok) {
        sl_account_free(&w->account, sorted, capacity, sizeof *sorted);
        return false;
    }
    sl_account_free(&w->account, w->ops, w->op_capacity, sizeof *w->ops);
    w->ops = sorted;
    w->op_count = count;
    w->op_capacity = capacity;
    return true;
}

struct symcache_folding *symcache_fold(struct sl_symcache_writer *w)
{
    struct symcache_folding *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->parallel = w->parallel;
    f->account.budget = w->account.budget;
    bool ok = sort_symbols(w);
    f->symbols = w->ops;
    f->symbol_count = w->op_count;
    ok = ok && order_runs(f, w) && find_clusters(f) && divide_work(f);
    if (!ok) {
        symcache_folding_free(f);
        return NULL;
    }
    return f;
}

bool symcache_fold_window(struct symcache_folding *f, const struct op **entries, size_t *count)
{
    /* work items that are folded at once: two for each worker, so that one that ends early has more to do */
    size_t window = sl_parallel_workers(f->parallel) > 1 ? 2 * (size_t)sl_parallel_workers(f->parallel) : 1;
    size_t items = 0, capacity = 0;
    *count = 0;
    for (; items < window && f->next_item + items < f->item_count; items++)
        capacity += f->items[f->next_item + items].capacity;
    if (!sl_account_grow(&f->account, &f->out, &f->out_capacity, capacity + 1, sizeof *f->out))
        return false;
    struct op *out = f->out;
    for (size_t i = 0; i < items; i++) {
        f->items[f->next_item + i].out = out;
        out += f->items[f->next_item + i].capacity;
    }
    sl_parallel_run(f->parallel, items, fold_one_item, f);
    if (!join_items(f, items, count))
        return false;
    f->next_item += items;
    *entries = f->out;
    return true;
}

bool symcache_fold_ended(const struct symcache_folding *f)
{
    return f->next_item == f->item_count;
}

void symcache_folding_free(struct symcache_folding *f)
{
    if (!f)
        return;
    free(f->runs);
    free(f->clusters);
    free(f->items);
    free(f->out);
    sl_account_release(&f->account);
    free(f);
}

/* ---- functions in address order ---- */

struct ordered_fold {
    struct sl_account *account; /* the writer's */
    struct fold_item item;      /* entries that the encoder does not have yet */
    struct emitter emitter;
    uint64_t last; /* address of the last operation of the last function */
    bool last_is_hole;
    bool any; /* the encoder got an entry */
};

struct ordered_fold *symcache_ordered_fold_new(struct sl_symcache_writer *w)
{
    struct ordered_fold *f = calloc(1, sizeof *f);
    if (!f || !sort_symbols(w)) {
        free(f);
        return NULL;
    }
    f->account = &w->account;
    f->last_is_hole = true;
    f->item.limit = UINT64_MAX;
    f->emitter = (struct emitter){.item = &f->item, .symbol = w->ops, .symbols_end = w->ops + w->op_count};
    f->emitter.function = op_hole;
    return f;
}

void symcache_ordered_fold_free(struct ordered_fold *f)
{
    if (f)
        free(f->item.out);
    free(f);
}

bool symcache_ordered_fold_accepts(const struct ordered_fold *f, const struct symcache_op_run *run)
{
    return run->base > f->last || (run->base == f->last && f->last_is_hole);
}

/* Grows the array of entries for `count` operations of a function and those of the symbols up to the address `last`. False when out of
 * memory. */
static bool symcache_fold_reserve(struct ordered_fold *f, size_t count, uint64_t last)
{
    struct fold_item *p = &f->item;
    const struct op *symbol = f->emitter.symbol;
    while (symbol < f->emitter.symbols_end && symbol->address <= last)
        symbol++;
    return sl_account_grow(f->account, &p->out, &p->capacity, count + (size_t)(symbol - f->emitter.symbol) + 1,
                           sizeof *p->out);
}

/* Encodes the collected entries and removes them. A hole at the start of the map is left out, because addresses before the first entry have
 * no symbol anyway. False when out of memory, or when the section is too large. */
static bool pass_to_encoder(struct ordered_fold *f, struct encoder *e)
{
    struct fold_item *p = &f->item;
    size_t count = p->count, skip = count && !f->any && op_kind(p->out->kind_and_line) == OP_HOLE;
    f->any = f->any || count > skip;
    p->count = 0;
    return symcache_encoder_add(e, p->out + skip, count - skip);
}

/* Fast path: folds the operations of a function that neither overlaps others nor has symbols inside. All but the first and the last are
 * encoded directly, without a copy. False when out of memory, or when the section is too large. */
static bool encode_undisturbed(struct ordered_fold *f, const struct symcache_op_run *run, const struct run_ids *ids,
                               struct encoder *e)
{
    struct op op = make_op(run, 0, ids);
    fold_function_op(&f->emitter, &op);
    symcache_fold_flush(&f->emitter);
    if (!pass_to_encoder(f, e) || !symcache_encoder_add_run(e, run, ids))
        return false;
    f->item.last = make_op(run, run->count - 2, ids); /* the last one that symcache_encoder_add_run() has encoded */
    f->item.last.kind_and_line = op_entry(f->item.last.kind_and_line);
    f->emitter.function = f->emitter.now = make_op(run, run->count - 1, ids);
    return true;
}

bool symcache_ordered_fold_add(struct ordered_fold *f, const struct symcache_op_run *run, const struct run_ids *ids,
                               struct encoder *e)
{
    const struct short_op *end = &run->ops[run->count - 1];
    bool undisturbed = run->count > 2 && is_undisturbed(&f->emitter, run); /* > 2: there is one to encode directly */
    f->last = run->base + end->offset;
    f->last_is_hole = op_kind(end->kind_and_line) == OP_HOLE;
    /* 1: of an undisturbed function only the first operation goes through f->item */
    if (!symcache_fold_reserve(f, undisturbed ? 1 : run->count, f->last))
        return false;
    if (undisturbed)
        return encode_undisturbed(f, run, ids, e);
    fold_run(&f->emitter, run, ids);
    return pass_to_encoder(f, e);
}

bool symcache_ordered_fold_end(struct ordered_fold *f, struct encoder *e)
{
    if (!symcache_fold_reserve(f, 0, UINT64_MAX))
        return false;
    while (f->emitter.symbol < f->emitter.symbols_end)
        fold_symbol_op(&f->emitter);
    symcache_fold_flush(&f->emitter);
    return pass_to_encoder(f, e);
}
