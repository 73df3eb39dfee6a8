/* Folds runs of functions, and symbols, into the entries of the map.
 *
 * Functions hardly ever overlap: their runs, sorted by first address, are already in entry order. Functions that overlap form a
 * cluster, whose operations are sorted again. Clusters are grouped into pieces of about equal work. A window of pieces is folded in
 * parallel, each piece into its own part of one array; then the parts are joined. Only one window of entries is in memory. */
#include "symcache/build.h"

#include "function/order.h"
#include "object/nesting.h"
#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

/* ---- clusters ---- */

enum { PIECE = 16384 }; /* operations of functions per piece */

struct ordered_run {
    uint64_t base;
    const struct symcache_op_run *run;
};

struct cluster { /* runs [first, first + count) in address order */
    size_t first, count, op_count;
    uint64_t base;
};

struct symcache_fold_piece { /* clusters [first, end), addresses [low, limit) */
    size_t first, end;
    uint64_t low, limit;
    struct op *out;
    size_t capacity, count; /* capacity and entries of `out` */
    struct op last;         /* last entry, if `any` */
    bool any, failed;
};

struct symcache_folding {
    struct sl_account account;
    const struct sl_parallel *parallel;
    const struct op *symbols; /* sorted and folded */
    size_t symbol_count;
    struct ordered_run *runs;
    struct cluster *clusters;
    struct symcache_fold_piece *pieces;
    size_t run_count, cluster_count, piece_count, next_piece;
    struct op *out; /* entries of a window */
    size_t out_capacity;
    struct op last; /* last entry of the window before, if `any` */
    bool any;
};

SL_ORDER_BY(by_base, struct ordered_run, base, run)

SL_ORDER_BY(by_sequence, struct ordered_run, run)

/* Lists the runs by first address. Most inputs are sorted already, which is checked to save the sort. False when out of memory. */
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

/* Groups overlapping runs into clusters. Runs that only touch, a hole of one at the first address of the next, do not overlap: the order of
 * a hole and another operation at one address does not matter. False when out of memory. */
static bool find_clusters(struct symcache_folding *f)
{
    uint64_t last = 0;
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

/* Compares context, file and line at once: one branch is predicted better than three. Two holes are equal. */
static inline bool same_location(const struct op *a, const struct op *b)
{
    return ((a->context ^ b->context) | (a->file ^ b->file) | (a->kind_and_line ^ b->kind_and_line)) == 0;
}

/* Merges operations of functions with those of symbols into entries. `now` is the result at the current address, not yet an entry. */
struct emitter {
    struct symcache_fold_piece *piece;
    const struct op *symbol, *symbols_end;
    struct op now;
    struct op function; /* last operation of a function; a hole if there was none */
    bool any;
};

static const struct op op_hole = {
    .context = NO_CONTEXT, .file = SL_NO_FILE, .kind_and_line = (uint32_t)OP_HOLE << LINE_BITS};

/* Makes `now` an entry, unless the last entry has the same location: an entry is valid up to the next one. */
static void symcache_fold_flush(struct emitter *e)
{
    struct symcache_fold_piece *p = e->piece;
    e->now.kind_and_line = op_entry(e->now.kind_and_line);
    if (!e->any || (p->any && same_location(&p->last, &e->now)))
        return;
    p->out[p->count++] = p->last = e->now;
    p->any = true;
}

/* Applies an operation to the current address, or goes on to the next one. */
static void feed(struct emitter *e, const struct op *op)
{
    if (e->any && e->now.address == op->address) {
        symcache_apply(&e->now, op);
        return;
    }
    symcache_fold_flush(e);
    e->now = *op;
    e->any = true;
}

/* Feeds the next operation of a symbol. Functions have precedence: inside one a label is ignored, and where a symbol ends the function
 * continues. */
static void feed_symbol(struct emitter *e)
{
    const struct op *op = e->symbol++;
    enum op_kind kind = op_kind(op->kind_and_line);
    if (__builtin_expect(kind == OP_ENTRY, true)) {
        feed(e, op);
        return;
    }
    bool inside = op_kind(e->function.kind_and_line) != OP_HOLE;
    if (__builtin_expect(kind == OP_HOLE && !inside && op->context == NO_CONTEXT, true)) {
        feed(e, op);
        return;
    }
    /* inside a function a label is ignored, and so is the end of a symbol where the address has an operation already */
    if (inside && (kind == OP_LABEL || e->now.address == op->address))
        return;
    struct op changed = {op->address, op->context, op->file, op_kind_and_line(OP_ENTRY, 0)};
    if (inside)
        changed = (struct op){op->address, e->function.context, e->function.file, op_entry(e->function.kind_and_line)};
    feed(e, &changed);
}

/* Feeds an operation of a function, after all symbols at lower addresses; symbols at the same address come after it. */
static void feed_function(struct emitter *e, const struct op *op)
{
    if (op->address >= e->piece->limit) /* a hole at the start of the next piece */
        return;
    while (e->symbol < e->symbols_end && e->symbol->address < op->address)
        feed_symbol(e);
    feed(e, op);
    e->function = *op;
}

/* Returns operation `i` of a run with global ids. `ids` is NULL if the run has global ids already. */
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

/* Sorts operations by address, stably: order[i].index is the i-th one. Returns `count` items, charged to `account`; NULL when out of
 * memory. */
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

/* Fast path: feeds a run that neither overlaps others nor has symbols inside, so its inner operations become entries without comparing
 * addresses. */
static void feed_alone(struct emitter *e, const struct symcache_op_run *run)
{
    struct op op = make_op(run, 0, NULL);
    feed_function(e, &op);
    if (run->count == 1)
        return;
    symcache_fold_flush(e);
    struct op *last = &e->piece->out[e->piece->count - 1];
    for (uint32_t i = 1; i + 1 < run->count; i++) {
        op = make_op(run, i, NULL);
        op.kind_and_line = op_entry(op.kind_and_line);
        if (!same_location(last, &op))
            *++last = op;
    }
    e->piece->count = (size_t)(last + 1 - e->piece->out);
    e->piece->last = *last;
    e->function = e->now = make_op(run, run->count - 1, NULL);
}

/* True if no symbol is inside the run, and the run ends in this piece. */
static bool stands_alone(const struct emitter *e, const struct symcache_op_run *run)
{
    uint64_t last = run->base + run->ops[run->count - 1].offset;
    return last < e->piece->limit && (e->symbol == e->symbols_end || e->symbol->address > last);
}

static void feed_all(struct emitter *e, const struct symcache_op_run *run, const struct run_ids *ids)
{
    for (uint32_t i = 0; i < run->count; i++) {
        struct op op = make_op(run, i, ids);
        feed_function(e, &op);
    }
}

/* Feeds a cluster: sorts its operations by address, those at one address in the order of the functions in the file, so that the last
 * function counts. qsort need not be stable, as no two runs have the same sequence number; order_ops is. False when out of memory. */
static bool feed_overlapping(struct emitter *e, struct ordered_run *runs, const struct cluster *cluster,
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
        feed_function(e, &ops[order[i].index]);
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

/* Folds the clusters of a piece and the symbols among them, on a worker. Pieces do not share addresses. */
static void fold_piece(void *arg, size_t index, unsigned worker)
{
    (void)worker;
    struct symcache_folding *f = arg;
    struct symcache_fold_piece *p = &f->pieces[f->next_piece + index];
    struct emitter e = {.piece = p, .symbol = first_symbol(f, p->low), .symbols_end = first_symbol(f, p->limit)};
    e.function = op_hole;
    for (size_t i = p->first; i < p->end; i++) {
        const struct cluster *cluster = &f->clusters[i];
        if (cluster->count > 1) {
            p->failed = p->failed || !feed_overlapping(&e, &f->runs[cluster->first], cluster, f->account.budget);
            continue;
        }
        const struct symcache_op_run *run = f->runs[cluster->first].run;
        if (stands_alone(&e, run))
            feed_alone(&e, run);
        else
            feed_all(&e, run, NULL);
    }
    while (e.symbol < e.symbols_end)
        feed_symbol(&e);
    symcache_fold_flush(&e);
}

/* Divides the clusters into pieces of about PIECE operations, and computes how many entries each can have at most: its operations and those
 * of the symbols in its range. A piece covers the addresses from its `low` up to its `limit`. False when out of memory. */
static bool cut_pieces(struct symcache_folding *f)
{
    f->pieces = sl_account_alloc(&f->account, f->cluster_count + 1, sizeof *f->pieces);
    if (!f->pieces)
        return false;
    size_t at = 0;
    do {
        struct symcache_fold_piece *p = &f->pieces[f->piece_count++];
        uint64_t low = f->piece_count == 1 ? 0 : f->clusters[at].base;
        size_t ops = 0;
        *p = (struct symcache_fold_piece){.first = at, .low = low};
        while (at < f->cluster_count && ops < PIECE)
            ops += f->clusters[at++].op_count;
        p->end = at;
        p->limit = at < f->cluster_count ? f->clusters[at].base : UINT64_MAX;
        p->capacity = ops + (size_t)(first_symbol(f, p->limit) - first_symbol(f, low));
    } while (at < f->cluster_count);
    return true;
}

/* Joins the pieces of a window to one array. The first entry of a piece is left out if it repeats the last one before it. False if a piece
 * failed. */
static bool join_pieces(struct symcache_folding *f, size_t pieces, size_t *count)
{
    size_t total = 0;
    for (size_t i = 0; i < pieces; i++) {
        const struct symcache_fold_piece *p = &f->pieces[f->next_piece + i];
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

/* Opens the symbols that begin with operations [first, end), all of one address. */
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

/* Sets the context of holes within symbols to the enclosing symbol. `sorted` has one operation per address. */
static bool fill_holes(const struct sl_symcache_writer *w, const struct sl_ordered *order, struct op *sorted)
{
    struct sl_nesting nesting = {.account.budget = w->account.budget};
    bool ok = true;
    for (size_t i = 0, first; ok && i < w->op_count; sorted++) {
        for (first = i; i < w->op_count && order[i].key == sorted->address;)
            i++;
        const struct sl_nested *around = sl_nesting_at(&nesting, sorted->address);
        if (op_kind(sorted->kind_and_line) == OP_HOLE && around)
            sorted->context = around->tag;
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
    ok = ok && order_runs(f, w) && find_clusters(f) && cut_pieces(f);
    if (!ok) {
        symcache_folding_free(f);
        return NULL;
    }
    return f;
}

bool symcache_fold_window(struct symcache_folding *f, const struct op **entries, size_t *count)
{
    size_t window = sl_parallel_workers(f->parallel) > 1 ? 2 * (size_t)sl_parallel_workers(f->parallel) : 1;
    size_t pieces = 0, capacity = 0;
    *count = 0;
    for (; pieces < window && f->next_piece + pieces < f->piece_count; pieces++)
        capacity += f->pieces[f->next_piece + pieces].capacity;
    if (!sl_account_grow(&f->account, &f->out, &f->out_capacity, capacity + 1, sizeof *f->out))
        return false;
    struct op *out = f->out;
    for (size_t i = 0; i < pieces; i++) {
        f->pieces[f->next_piece + i].out = out;
        out += f->pieces[f->next_piece + i].capacity;
    }
    sl_parallel_run(f->parallel, pieces, fold_piece, f);
    if (!join_pieces(f, pieces, count))
        return false;
    f->next_piece += pieces;
    *entries = f->out;
    return true;
}

bool symcache_fold_ended(const struct symcache_folding *f)
{
    return f->next_piece == f->piece_count;
}

void symcache_folding_free(struct symcache_folding *f)
{
    if (!f)
        return;
    free(f->runs);
    free(f->clusters);
    free(f->pieces);
    free(f->out);
    sl_account_release(&f->account);
    free(f);
}

/* ---- runs in order ---- */

struct ordered_fold {
    struct sl_account *account;       /* the writer's */
    struct symcache_fold_piece piece; /* entries that the encoder does not have yet */
    struct emitter emitter;
    uint64_t last; /* address of the last operation */
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
    f->piece.limit = UINT64_MAX;
    f->emitter = (struct emitter){.piece = &f->piece, .symbol = w->ops, .symbols_end = w->ops + w->op_count};
    f->emitter.function = op_hole;
    return f;
}

void symcache_ordered_fold_free(struct ordered_fold *f)
{
    if (f)
        free(f->piece.out);
    free(f);
}

bool symcache_ordered_fold_accepts(const struct ordered_fold *f, const struct symcache_op_run *run)
{
    return run->base > f->last || (run->base == f->last && f->last_is_hole);
}

/* Grows the array of entries for `count` operations and the symbols up to `last`. */
static bool symcache_fold_reserve(struct ordered_fold *f, size_t count, uint64_t last)
{
    struct symcache_fold_piece *p = &f->piece;
    const struct op *symbol = f->emitter.symbol;
    while (symbol < f->emitter.symbols_end && symbol->address <= last)
        symbol++;
    return sl_account_grow(f->account, &p->out, &p->capacity, count + (size_t)(symbol - f->emitter.symbol) + 1,
                           sizeof *p->out);
}

/* Encodes the collected entries. A hole at the start of the map is left out, because addresses before the first entry have no symbol
 * anyway. */
static bool pass_to_encoder(struct ordered_fold *f, struct encoder *e)
{
    struct symcache_fold_piece *p = &f->piece;
    size_t count = p->count, skip = count && !f->any && op_kind(p->out->kind_and_line) == OP_HOLE;
    f->any = f->any || count > skip;
    p->count = 0;
    return symcache_encoder_add(e, p->out + skip, count - skip);
}

/* Like feed_alone, but encodes the inner operations directly from the run. */
static bool encode_alone(struct ordered_fold *f, const struct symcache_op_run *run, const struct run_ids *ids,
                         struct encoder *e)
{
    struct op op = make_op(run, 0, ids);
    feed_function(&f->emitter, &op);
    symcache_fold_flush(&f->emitter);
    if (!pass_to_encoder(f, e) || !symcache_encoder_add_run(e, run, ids))
        return false;
    f->piece.last = make_op(run, run->count - 2, ids);
    f->piece.last.kind_and_line = op_entry(f->piece.last.kind_and_line);
    f->emitter.function = f->emitter.now = make_op(run, run->count - 1, ids);
    return true;
}

bool symcache_ordered_fold_add(struct ordered_fold *f, const struct symcache_op_run *run, const struct run_ids *ids,
                               struct encoder *e)
{
    const struct short_op *end = &run->ops[run->count - 1];
    bool alone = run->count > 2 && stands_alone(&f->emitter, run);
    f->last = run->base + end->offset;
    f->last_is_hole = op_kind(end->kind_and_line) == OP_HOLE;
    if (!symcache_fold_reserve(f, alone ? 1 : run->count, f->last))
        return false;
    if (alone)
        return encode_alone(f, run, ids, e);
    feed_all(&f->emitter, run, ids);
    return pass_to_encoder(f, e);
}

bool symcache_ordered_fold_end(struct ordered_fold *f, struct encoder *e)
{
    if (!symcache_fold_reserve(f, 0, UINT64_MAX))
        return false;
    while (f->emitter.symbol < f->emitter.symbols_end)
        feed_symbol(&f->emitter);
    symcache_fold_flush(&f->emitter);
    return pass_to_encoder(f, e);
}
