/* Reads the modules of a PDB: many of them in parallel (a window), then passes their functions to the sink in the order of the module list,
 * then the next window. */
#include "pdb/impl.h"

#include <stdlib.h>

enum { MODULES_PER_WORKER = 16 };

struct pdb_batch_slot { /* a module of the window */
    struct sl_arena arena;
    struct sl_function_batch batch;
    bool failed;
};

struct pdb_read_window {
    const struct sl_pdb *pdb;
    struct module_reader *readers; /* per worker */
    struct pdb_batch_slot *slots;
    struct sl_function_sink *sink;
    size_t first, count; /* number of the first module in the list; number of modules */
};

/* A task of sl_parallel_run(): reads module `index` of the window and lets the sink prepare its functions. */
static void read_module(void *arg, size_t index, unsigned worker)
{
    struct pdb_read_window *window = arg;
    struct pdb_batch_slot *slot = &window->slots[index];
    const struct pdb_module *module = &window->pdb->modules[window->first + index];
    slot->failed = !module_read(&window->readers[worker], module, &slot->arena, &slot->batch);
    if (!slot->failed && slot->batch.function_count && window->sink->prepare)
        window->sink->prepare(window->sink, &slot->batch, &slot->arena, worker);
}

/* Reads the modules of the window in parallel, then passes their functions to the sink in the order of the module list. Modules that cannot
 * be read are counted in the sink's skipped_units, others in `*read`. Returns the first error of the sink. */
static enum sl_code consume_window(struct pdb_read_window *window, const struct sl_parallel *parallel, size_t *read,
                                   struct sl_error *error)
{
    enum sl_code code = SL_OK;
    sl_parallel_run(parallel, window->count, read_module, window);
    for (size_t i = 0; i < window->count; i++) {
        struct pdb_batch_slot *slot = &window->slots[i];
        if (slot->failed && !window->sink->skipped_units)
            sl_fail(&window->sink->first_skipped, SL_MALFORMED,
                    "cannot read the symbols of module number %zu in the PDB", window->first + i);
        window->sink->skipped_units += slot->failed;
        *read += !slot->failed;
        if (!slot->failed && slot->batch.function_count && code == SL_OK)
            code = window->sink->consume(window->sink, &slot->batch, error);
        sl_arena_reset(&slot->arena);
    }
    return code;
}

/* Reads all modules and passes their functions to the sink. SL_MALFORMED if there are modules and none of them could be read; one readable
 * module is enough for success. */
static enum sl_code pdb_read_all(const struct sl_pdb *pdb, const struct sl_parallel *parallel,
                                 struct sl_function_sink *sink, struct sl_error *error)
{
    unsigned workers = sl_parallel_workers(parallel);
    size_t slots = workers == 1 ? 1 : (size_t)workers * MODULES_PER_WORKER, read = 0;
    struct pdb_read_window window = {
        .pdb = pdb,
        .readers = calloc(workers, sizeof(struct module_reader)),
        .slots = calloc(slots, sizeof(struct pdb_batch_slot)),
        .sink = sink,
    };
    enum sl_code code = SL_OK;
    if (!window.readers || !window.slots)
        code = sl_fail(error, SL_BUSY, "out of memory");
    for (unsigned i = 0; code == SL_OK && i < workers; i++)
        module_reader_init(&window.readers[i], pdb);
    while (code == SL_OK && window.first < pdb->module_count) {
        size_t left = pdb->module_count - window.first;
        window.count = left < slots ? left : slots;
        code = consume_window(&window, parallel, &read, error);
        window.first += window.count;
    }
    for (size_t i = 0; window.slots && i < slots; i++)
        sl_arena_free(&window.slots[i].arena);
    for (unsigned i = 0; window.readers && i < workers; i++)
        module_reader_free(&window.readers[i]);
    free(window.slots);
    free(window.readers);
    if (code == SL_OK)
        code = sl_pdb_status(pdb, error);
    if (code == SL_OK && read == 0 && pdb->module_count)
        return sl_fail(error, SL_MALFORMED, "bad debug file: no module of the PDB can be read");
    return code;
}

bool pdb_read_types(struct sl_pdb *pdb)
{
    if (!pdb->types_tried && (!type_table_open(&pdb->msf, STREAM_TPI, pdb->arena, &pdb->types) ||
                              !type_table_open(&pdb->msf, STREAM_IPI, pdb->arena, &pdb->ids)))
        return false;
    pdb->types_tried = true;
    return true;
}

enum sl_code sl_pdb_read_functions(struct sl_pdb *pdb, const struct sl_parallel *parallel,
                                   struct sl_function_sink *sink, struct sl_error *error)
{
    if (!pdb_read_types(pdb))
        return sl_fail(error, SL_BUSY, "out of memory");
    return pdb_read_all(pdb, parallel, sink, error);
}
