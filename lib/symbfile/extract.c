/* The sources of an executable's symbols, one after the other, through the filter that keeps each piece of code for the
 * first of them. */
#include "symbfile/coverage.h"
#include "symbfile/extract.h"
#include "symbfile/pclntab.h"
#include "symbfile/tree.h"
#include "symbfile/utf8.h"

#include <stdlib.h>

const char *const sl_symbfile_source_names[SL_SOURCES] = {"DWARF", "Go line table", "symbol tables"};

struct extractor {
    struct sl_function_sink functions; /* of the debug information; first */
    struct sl_symbfile_tree_sink go;   /* of the Go line table */
    struct sl_symbfile_tree_sink *sink;
    struct coverage *coverage;
    struct coverage_counts counts; /* of the source being read */
    struct tree_maker maker;
    struct sl_symbfile_range *accepted;
    size_t accepted_capacity;
    bool sink_failed; /* the end of all, not of a source */
};

/* What of [ranges, ranges + count), a function and its inlined calls, is new. */
static enum sl_code filter_tree(struct extractor *e, const struct sl_symbfile_range *ranges, size_t count,
                                struct sl_error *error)
{
    size_t kept = 0;
    if (count > e->accepted_capacity) {
        void *grown = realloc(e->accepted, count * 2 * sizeof *e->accepted);
        e->sink_failed |= !grown;
        if (!grown)
            return sl_fail(error, SL_INTERNAL, "out of memory");
        e->accepted = grown;
        e->accepted_capacity = count * 2;
    }
    for (size_t i = 0; i < count; i++)
        if (coverage_accept(e->coverage, ranges[i].va, ranges[i].va + ranges[i].length, ranges[i].depth, &e->counts))
            e->accepted[kept++] = ranges[i];
    enum sl_code code = kept && e->accepted[0].depth == 0 ? e->sink->tree(e->sink, e->accepted, kept, error) : SL_OK;
    e->sink_failed |= code != SL_OK;
    return code;
}

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

static enum sl_code consume(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                            struct sl_error *error)
{
    struct extractor *e = (struct extractor *)sink;
    enum sl_code code = SL_OK;
    tree_begin_batch(&e->maker, batch);
    for (size_t i = 0; i < batch->function_count && code == SL_OK; i++) {
        tree_make(&e->maker, &batch->functions[i]);
        e->sink_failed |= e->maker.failed;
        code = e->maker.failed ? sl_fail(error, SL_INTERNAL, "out of memory")
                               : filter_all(e, e->maker.ranges, e->maker.count, error);
    }
    return code;
}

static enum sl_code go_tree(struct sl_symbfile_tree_sink *sink, const struct sl_symbfile_range *ranges, size_t count,
                            struct sl_error *error)
{
    struct extractor *e = (struct extractor *)((char *)sink - offsetof(struct extractor, go));
    return filter_tree(e, ranges, count, error);
}

static enum sl_code read_symbols(struct extractor *e, struct sl_object *object, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count = 0;
    enum sl_code code = sl_object_symbols(object, &arena, &symbols, &count, error);
    if (code == SL_OK && !count)
        code = SL_NOT_FOUND;
    for (size_t i = 0; i < count && code == SL_OK; i++) {
        uint64_t va = symbols[i].address + e->maker.load_address;
        if (!va || !symbols[i].size || !symbols[i].name.size || !symbfile_is_utf8(symbols[i].name))
            continue;
        struct sl_symbfile_range range = {
            .va = va,
            .length = symbols[i].size > UINT32_MAX ? UINT32_MAX : (uint32_t)symbols[i].size,
            .function = {names_readable(&e->maker.names, symbols[i].name), SL_SYMBFILE_INLINE},
        };
        code = filter_tree(e, &range, 1, error);
    }
    sl_arena_free(&arena);
    return code;
}

static void note(struct extractor *e, enum sl_symbfile_source source, enum sl_code code,
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

static enum sl_code read_sources(struct extractor *e, struct sl_object *object, const struct sl_symbfile_image *image,
                                 const struct sl_companions *companions, const struct sl_parallel *parallel,
                                 struct sl_symbfile_extraction *out, struct sl_error *error)
{
    enum sl_code code = sl_object_read_functions(object, companions, parallel, &e->functions, error);
    out->skipped_units = e->functions.skipped_units;
    note(e, SL_SOURCE_DWARF, code, out);
    if (!e->sink_failed) {
        code = pclntab_read(object, image, &e->go, error);
        note(e, SL_SOURCE_GO, code, out);
    }
    if (!e->sink_failed) {
        code = read_symbols(e, object, error);
        note(e, SL_SOURCE_SYMBOLS, code, out);
    }
    return e->sink_failed ? code : SL_OK;
}

enum sl_code sl_symbfile_extract(struct sl_object *object, const struct sl_symbfile_image *image,
                                 const struct sl_companions *companions, const struct sl_parallel *parallel,
                                 struct sl_symbfile_tree_sink *sink, struct sl_symbfile_extraction *out,
                                 struct sl_error *error)
{
    struct extractor e = {
        .functions = {.consume = consume},
        .go = {.tree = go_tree},
        .sink = sink,
        .maker = {.load_address = sl_object_info(object)->load_address},
    };
    *out = (struct sl_symbfile_extraction){0};
    enum sl_code code = coverage_new(image, &e.coverage, error);
    if (code == SL_OK)
        code = read_sources(&e, object, image, companions, parallel, out, error);
    if (code == SL_OK) {
        bool failed = false, worked = false;
        for (int i = 0; i < SL_SOURCES; i++) {
            failed |= out->sources[i].failed;
            worked |= !out->sources[i].failed && !out->sources[i].absent;
        }
        if (failed && !worked)
            code = sl_fail(error, SL_MALFORMED, "all range extractors failed");
    }
    coverage_free(e.coverage);
    tree_maker_free(&e.maker);
    free(e.accepted);
    return code;
}
