/* Reads the sources of an executable's symbols (DWARF, Go line table, symbol tables) one after the other; a filter keeps each piece of code
 * for the first source that has it. */
#include "base/account.h"
#include "dwarf/dwarf.h"
#include "function/order.h"
#include "go/go.h"
#include "object/nesting.h"
#include "symbfile/coverage.h"
#include "symbfile/extract.h"
#include "symbfile/tree.h"
#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

const char *const sl_symbfile_source_names[SL_SOURCES] = {"DWARF", "Go line table", "symbol tables"};

struct extractor {
    struct sl_function_sink functions; /* must be first */
    struct sl_symbfile_tree_sink *sink;
    struct sl_budget *budget;
    struct coverage *coverage;
    struct coverage_counts counts; /* of the current source */
    struct tree_maker *makers;     /* one for each worker */
    unsigned maker_count;
    struct symbfile_names names; /* names of symbols */
    uint64_t load_address;
    struct sl_symbfile_range *accepted; /* scratch of filter_tree() */
    size_t accepted_capacity;
    struct sl_account account; /* charges `accepted` */
    bool sink_failed;          /* the sink failed or memory ran out: ends the extraction, not only the current source */
};

/* Passes the ranges of a function and its inlined calls to the sink, without those that coverage_accept() rejects. If the outermost range,
 * the function itself, is rejected, nothing is passed. */
static enum sl_code filter_tree(struct extractor *e, const struct sl_symbfile_range *ranges, size_t count,
                                struct sl_error *error)
{
    size_t kept = 0;
    if (!sl_account_grow(&e->account, &e->accepted, &e->accepted_capacity, count, sizeof *e->accepted)) {
        e->sink_failed = true; /* ends the extraction, as a failure of the sink does */
        return sl_budget_fail(e->budget, error);
    }
    const struct sl_symbfile_range *accepted = ranges; /* copied only if a range is left out */
    for (size_t i = 0; i < count; i++) {
        bool good =
            coverage_accept(e->coverage, ranges[i].va, ranges[i].va + ranges[i].length, ranges[i].depth, &e->counts);
        if (!good && accepted == ranges) {
            memcpy(e->accepted, ranges, i * sizeof *ranges);
            accepted = e->accepted;
        } else if (good && accepted != ranges) {
            e->accepted[kept] = ranges[i];
        }
        kept += good;
    }
    enum sl_code code = kept && accepted[0].depth == 0 ? e->sink->tree(e->sink, accepted, kept, error) : SL_OK;
    e->sink_failed |= code != SL_OK;
    return code;
}

/* Splits the list into functions with their inlined calls, each of which begins with a range of depth 0, and filters each. */
static enum sl_code filter_all(struct extractor *e, const struct sl_symbfile_range *ranges, size_t count,
                               struct sl_error *error)
{
    enum sl_code code = SL_OK;
    for (size_t first = 0, next; first < count && code == SL_OK; first = next) {
        for (next = first + 1; next < count && ranges[next].depth; next++)
            continue;
        code = filter_tree(e, ranges + first, next - first, error);
    }
    return code;
}

/* The function sink's `prepare`: builds the records of a batch. This runs on a worker thread, because it is most of the work, and batches
 * are independent. */
static void extract_prepare(struct sl_function_sink *sink, struct sl_function_batch *batch, struct sl_arena *arena,
                            unsigned worker)
{
    struct extractor *e = (struct extractor *)sink;
    batch->prepared = (void *)(uintptr_t)tree_maker_convert(&e->makers[worker], batch, arena);
}

/* The function sink's `consume`: passes the records that extract_prepare() made of the batch to the filter. If batch->prepared is NULL,
 * memory or budget had run out, and the extraction ends. */
static enum sl_code extract_consume(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                                    struct sl_error *error)
{
    struct extractor *e = (struct extractor *)sink;
    const struct tree_list *list = batch->prepared;
    if (list)
        return filter_all(e, list->ranges, list->count, error);
    e->sink_failed = true;
    return sl_budget_fail(e->budget, error);
}

/* Passes the code of a symbol to the sink as a function of `size` bytes, unless it is covered already. Symbols at address 0, without a
 * size, without a name, or with a name that is not UTF-8, which a symbfile cannot hold, are ignored. */
static enum sl_code add_symbol(struct extractor *e, const struct sl_symbol *symbol, uint64_t size,
                               struct sl_error *error)
{
    uint64_t va = symbol->address + e->load_address;
    if (!va || !size || !symbol->name.size || !sl_str_is_utf8(symbol->name))
        return SL_OK;
    uint32_t length = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
    if (!coverage_accept(e->coverage, va, va + length, 0, &e->counts))
        return SL_OK; /* mostly covered by better sources; this saves demangling */
    struct sl_symbfile_range range = {
        .va = va,
        .length = length,
        .function = {names_readable(&e->names, symbol->name), SL_SYMBFILE_INLINE},
    };
    enum sl_code code = e->names.failed ? sl_budget_fail(e->budget, error) : e->sink->tree(e->sink, &range, 1, error);
    e->sink_failed |= code != SL_OK;
    return code;
}

/* Returns the end of the executable segment that contains `va`; `va` if there is none. */
static uint64_t code_end(const struct sl_symbfile_image *image, uint64_t va)
{
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct image_segment *s = &image->segments[i];
        if (s->executable && va >= s->address && va - s->address < s->memory_size)
            return s->address + s->memory_size;
    }
    return va;
}

/* Adds symbols without size, often of assembler code: they extend to the next symbol or to the end of their segment, unless their code is
 * covered already. */
static enum sl_code add_sizeless_symbols(struct extractor *e, const struct sl_symbfile_image *image,
                                         const struct sl_symbol *symbols, size_t count, struct sl_error *error)
{
    uint64_t *starts = sl_account_alloc(&e->account, count + 1, sizeof *starts);
    enum sl_code code = starts ? SL_OK : sl_budget_fail(e->budget, error);
    for (size_t i = 0; starts && i < count; i++)
        starts[i] = symbols[i].address;
    if (starts && count)
        qsort(starts, count, sizeof *starts, sl_order_u64);
    for (size_t i = 0; i < count && code == SL_OK; i++) {
        uint64_t address = symbols[i].address, end = code_end(image, address + e->load_address);
        if (symbols[i].size)
            continue;
        /* index of the next symbol */
        size_t low = SL_PARTITION_POINT(middle, 0, count, starts[middle] <= address);
        end -= e->load_address; /* symbols have relative addresses, segments absolute ones */
        if (low < count && starts[low] < end)
            end = starts[low];
        code = add_symbol(e, &symbols[i], end > address ? end - address : 0, error);
    }
    sl_account_free(&e->account, starts, count + 1, sizeof *starts);
    return code;
}

/* Adds the code from `*at` to `limit` in parts: each part is code of the innermost symbol around it. `nesting` has the open symbols, those
 * that begin at or before `*at`; code outside of all of them is skipped. `*at` becomes `limit`. */
static enum sl_code add_open(struct extractor *e, const struct sl_symbol *symbols, struct sl_nesting *nesting,
                             uint64_t *at, uint64_t limit, struct sl_error *error)
{
    const struct sl_nested *inner;
    enum sl_code code = SL_OK;
    while (code == SL_OK && *at < limit && (inner = sl_nesting_at(nesting, *at))) {
        struct sl_symbol piece = symbols[inner->tag]; /* `tag` is the index of the symbol */
        uint64_t end = inner->end < limit ? inner->end : limit;
        piece.address = *at;
        code = add_symbol(e, &piece, end - *at, error);
        *at = end;
    }
    *at = *at < limit ? limit : *at;
    return code;
}

/* Adds symbols sorted by address (`order`); each gets the code where it is the innermost one (object/nesting.h). Symbols at one address
 * are opened last to first, so that the first in the file is the innermost. A label without a size extends to the next symbol or to the
 * end of the symbol around it. */
static enum sl_code add_nested(struct extractor *e, const struct sl_symbol *symbols, const struct sl_ordered *order,
                               size_t count, struct sl_error *error)
{
    struct sl_nesting nesting = {.account.budget = e->budget};
    enum sl_code code = SL_OK;
    uint64_t at = 0;
    for (size_t i = 0, next; i < count && code == SL_OK; i = next) {
        for (next = i; next < count && order[next].key == order[i].key;)
            next++;
        code = add_open(e, symbols, &nesting, &at, order[i].key, error); /* the code in front of these symbols */
        const struct sl_nested *around = sl_nesting_at(&nesting, at);
        uint64_t label_end = around ? around->end : at;
        label_end = next < count && order[next].key < label_end ? order[next].key : label_end;
        for (size_t j = next; j-- > i && code == SL_OK;) {
            const struct sl_symbol *s = &symbols[order[j].index];
            uint64_t end = s->is_label && !s->size ? label_end : sl_symbol_end(s);
            if (end > at && !sl_nesting_open(&nesting, end, order[j].index))
                code = sl_budget_fail(e->budget, error);
        }
    }
    if (code == SL_OK)
        code = add_open(e, symbols, &nesting, &at, UINT64_MAX, error);
    sl_nesting_free(&nesting);
    return code;
}

/* Adds the symbols that have a size. Most files have no symbols within symbols; then each gets all of its code, in file order. */
static enum sl_code add_sized_symbols(struct extractor *e, const struct sl_symbol *symbols, size_t count,
                                      struct sl_error *error)
{
    struct sl_ordered *order = sl_account_alloc(&e->account, count + 1, sizeof *order);
    struct sl_ordered *scratch = sl_account_alloc(&e->account, count + 1, sizeof *scratch);
    enum sl_code code = order && scratch && count < UINT32_MAX ? SL_OK : sl_budget_fail(e->budget, error);
    for (size_t i = 0; code == SL_OK && i < count; i++)
        order[i] = (struct sl_ordered){symbols[i].address, 0, (uint32_t)i};
    if (code == SL_OK && count)
        sl_order(order, scratch, count);
    if (code == SL_OK && sl_symbols_are_nested(symbols, order, count))
        code = add_nested(e, symbols, order, count, error);
    else
        for (size_t i = 0; i < count && code == SL_OK; i++)
            code = add_symbol(e, &symbols[i], symbols[i].size, error);
    sl_account_free(&e->account, order, count + 1, sizeof *order);
    sl_account_free(&e->account, scratch, count + 1, sizeof *scratch);
    return code;
}

/* Adds the symbols of the symbol tables. Those with a size come first, because their ends are known; those without a size only get code
 * that is not covered then. SL_NOT_FOUND if there are no symbols. */
static enum sl_code read_symbols(struct extractor *e, struct sl_object *object, const struct sl_symbfile_image *image,
                                 struct sl_error *error)
{
    struct sl_arena arena = {.budget = e->budget};
    struct sl_symbol *symbols;
    size_t count = 0;
    enum sl_code code = sl_object_symbols(object, &arena, &symbols, &count, error);
    if (code == SL_OK && !count)
        code = SL_NOT_FOUND;
    if (code == SL_OK)
        code = add_sized_symbols(e, symbols, count, error);
    if (code == SL_OK)
        code = add_sizeless_symbols(e, image, symbols, count, error);
    sl_arena_free(&arena);
    return code;
}

/* Stores the counts of a source in `out`, and sets them to 0 for the next source. `code` is the result of reading the source; SL_NOT_FOUND
 * means that the file has no such source. */
static void record_source(struct extractor *e, enum sl_symbfile_source source, enum sl_code code,
                          struct sl_symbfile_extraction *out)
{
    out->sources[source].produced = e->counts.produced;
    out->sources[source].accepted = e->counts.accepted;
    out->sources[source].rejected = e->counts.rejected;
    out->sources[source].unexpected = e->counts.unexpected;
    out->sources[source].absent = code == SL_NOT_FOUND;
    out->sources[source].failed = code != SL_OK && code != SL_NOT_FOUND;
    e->counts = (struct coverage_counts){0};
    coverage_next_source(e->coverage);
}

/* Reads the sources in order of quality, best first. A source that fails does not end the extraction; a failure of the sink does. */
static enum sl_code read_sources(struct extractor *e, struct sl_object *object, const struct sl_symbfile_image *image,
                                 const struct sl_companions *companions, const struct sl_parallel *parallel,
                                 struct sl_symbfile_extraction *out, struct sl_error *error)
{
    enum sl_code code = sl_dwarf_read(object, companions, parallel, &e->functions, error);
    out->skipped_units = e->functions.skipped_units;
    record_source(e, SL_SOURCE_DWARF, code, out);
    if (!e->sink_failed) {
        code = sl_go_read(object, &e->functions, error);
        record_source(e, SL_SOURCE_GO, code, out);
    }
    if (!e->sink_failed) {
        code = read_symbols(e, object, image, error);
        record_source(e, SL_SOURCE_SYMBOLS, code, out);
    }
    if (e->sink_failed)
        return code;
    /* A failure of one source is no error here. If the budget is used up or memory was short, that is one: the result is incomplete. */
    return sl_budget_exhausted(e->budget) ? sl_budget_fail(e->budget, error) : sl_object_status(object, error);
}

enum sl_code sl_symbfile_extract(struct sl_object *object, const struct sl_symbfile_image *image,
                                 const struct sl_companions *companions, const struct sl_parallel *parallel,
                                 struct sl_symbfile_tree_sink *sink, struct sl_symbfile_extraction *out,
                                 struct sl_error *error)
{
    struct extractor e = {
        /* debug_info_only: symbol tables are a source of their own here, see read_symbols() */
        .functions = {.prepare = extract_prepare, .consume = extract_consume, .debug_info_only = true},
        .sink = sink,
        .maker_count = sl_parallel_workers(parallel), /* each worker has a maker, for extract_prepare() */
        .load_address = sl_object_info(object)->load_address,
        .budget = sl_object_budget(object),
    };
    names_init(&e.names, image->file, e.budget);
    e.account.budget = e.budget;
    *out = (struct sl_symbfile_extraction){0};
    e.makers = calloc(e.maker_count, sizeof *e.makers);
    for (unsigned i = 0; e.makers && i < e.maker_count; i++) {
        struct tree_maker *maker = &e.makers[i];
        *maker = (struct tree_maker){.account = {.budget = e.budget}, .load_address = e.load_address};
        names_init(&maker->names, image->file, e.budget);
    }
    enum sl_code code =
        e.makers ? coverage_new(image, e.budget, &e.coverage, error) : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        code = read_sources(&e, object, image, companions, parallel, out, error);
    if (code == SL_OK) {
        bool failed = false, worked = false;
        for (int i = 0; i < SL_SOURCES; i++) {
            failed |= out->sources[i].failed;
            worked |= !out->sources[i].failed && !out->sources[i].absent;
        }
        if (failed && !worked)
            code = sl_fail(
                error, SL_MALFORMED,
                "the symbols of the file could not be read: neither DWARF, nor a Go line table, nor symbol tables");
    }
    coverage_free(e.coverage);
    for (unsigned i = 0; e.makers && i < e.maker_count; i++)
        tree_maker_free(&e.makers[i]);
    free(e.makers);
    names_free(&e.names);
    free(e.accepted);
    sl_account_release(&e.account);
    return code;
}
