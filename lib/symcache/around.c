/* Converts the part of an object around a few addresses. What a lookup of an address finds depends only on the code from the start of the
 * functions around it up to the address, so only symbols that begin or end there are added:
 *
 *     f [-----------------------x------)        x: the address
 *     g              [----------x---------)
 *           s [--)                              ends within f, before x
 *                    s [---) */
#include "symcache/symcache.h"

#include "base/grow.h"
#include "object/symbols.h"

#include <stdlib.h>

struct symcache_filter { /* a sink that notes where functions begin, and passes them on to the symcache writer's sink */
    struct sl_function_sink sink;
    struct sl_function_sink *inner; /* the writer's sink, to which all is passed on */
    const uint64_t *addresses;
    uint64_t *begins; /* per address: lowest start of a function that contains it; UINT64_MAX = none */
    size_t count;
};

/* The sink's `prepare`: passes the batch on to the writer's. */
static void around_prepare(struct sl_function_sink *sink, struct sl_function_batch *batch, struct sl_arena *arena,
                           unsigned worker)
{
    struct symcache_filter *around = (struct symcache_filter *)sink;
    around->inner->prepare(around->inner, batch, arena, worker);
}

/* The sink's `consume`: stores, for each address, the lowest start of a function that contains it; then passes the batch to the writer. */
static enum sl_code around_consume(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                                   struct sl_error *error)
{
    struct symcache_filter *around = (struct symcache_filter *)sink;
    for (size_t i = 0; i < batch->function_count; i++) {
        const struct sl_function *f = &batch->functions[i];
        for (size_t j = 0; j < around->count; j++)
            /* for an address before the function the difference wraps around to a large number */
            if (around->addresses[j] - f->address < f->size && f->address < around->begins[j])
                around->begins[j] = f->address;
    }
    return around->inner->consume(around->inner, batch, error);
}

/* True if the symbol can change what a lookup of one of the addresses finds: it begins at or before the address, and does not end before
 * the functions around the address begin. For an address outside of all functions no symbol is added: the file then has no line for it, and
 * the caller converts the whole object. */
static bool can_change_answer(const struct symcache_filter *around, const struct sl_symbol *symbol)
{
    for (size_t i = 0; i < around->count; i++)
        /* begins[i] is UINT64_MAX if no function is around the address */
        if (symbol->address <= around->addresses[i] && around->begins[i] <= around->addresses[i] &&
            (symbol->address >= around->begins[i] || symbol->size >= around->begins[i] - symbol->address))
            return true;
    return false;
}

/* Passes those symbols to the writer that can change what a lookup of one of the addresses finds. SL_BUSY when out of memory, or the error
 * of reading the symbols. */
static enum sl_code add_symbols(const struct symcache_filter *around, struct sl_symcache_writer *writer,
                                struct sl_object *object, struct sl_error *error)
{
    const struct sl_symbol *symbols;
    struct sl_symbol *near = NULL;
    size_t count, near_count = 0, capacity = 0;
    enum sl_code code = sl_object_cached_symbols(object, &symbols, &count, error);
    for (size_t i = 0; code == SL_OK && i < count; i++) {
        if (!can_change_answer(around, &symbols[i]))
            continue;
        if (!sl_grow(&near, &capacity, near_count + 1, sizeof *near))
            code = sl_fail(error, SL_BUSY, "out of memory");
        else
            near[near_count++] = symbols[i];
    }
    if (code == SL_OK)
        sl_symcache_writer_symbols(writer, near, near_count);
    free(near);
    return code;
}

enum sl_code sl_symcache_convert_around(struct sl_object *object, const struct sl_companions *companions,
                                        const struct sl_symcache_options *options, const uint64_t *addresses,
                                        size_t count, const struct sl_parallel *parallel, struct sl_buf *out,
                                        struct sl_error *error)
{
    struct sl_symcache_options all = *options; /* the options and three more, which follow from the object */
    all.origins = object;
    all.decorates = sl_object_info(object)->decorates;
    all.budget = sl_object_budget(object);
    struct sl_symcache_writer *writer = sl_symcache_writer_new(&all, parallel);
    struct symcache_filter around = {
        .addresses = addresses, .count = count, .begins = malloc((count + 1) * sizeof(uint64_t))};
    enum sl_code code = writer && around.begins ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; around.begins && i < count; i++)
        around.begins[i] = UINT64_MAX;
    if (code == SL_OK) {
        around.inner = sl_symcache_writer_sink(writer);
        around.sink = *around.inner; /* wants what the writer wants */
        around.sink.prepare = around_prepare;
        around.sink.consume = around_consume;
        around.sink.wanted = addresses;
        around.sink.wanted_count = count;
        code = sl_object_read_functions(object, companions, parallel, &around.sink, error);
        sl_function_sink_add_gaps(around.inner,
                                  &around.sink); /* units that could not be read: the writer reports them */
    }
    if (code == SL_OK)
        code = add_symbols(&around, writer, object, error);
    if (code == SL_OK)
        code = sl_symcache_writer_finish(writer, out, error);
    if (writer)
        sl_symcache_writer_free(writer);
    free(around.begins);
    return code;
}
