/* Driving the reader: windows of units, each in four steps.
 *
 *     read units (parallel) ▶ drop repeated ranges (in order) ▶ the sink's prepare (parallel) ▶ consume (in order)
 *
 * With one worker a window is one unit, which stays in the processor's cache from step to step. */
#include "dwarf/impl.h"

#include <stdlib.h>

enum { UNITS_PER_WORKER = 24 };

struct slot {
    struct sl_arena arena;
    struct sl_function_batch batch;
    struct sl_function *functions; /* of the batch */
    bool skip, failed;
};

/* (begin, size) of every range emitted so far. */
struct range_set {
    uint64_t *keys;
    size_t capacity, count;
};

struct window {
    struct dwarf_reader *reader;
    struct dwarf_worker *workers;
    struct slot *slots;
    struct sl_function_sink *sink;
    size_t first, count;
};

static uint64_t range_key(const struct sl_function *f)
{
    uint64_t key = f->address * 0x9E3779B97F4A7C15u ^ f->size * 0xC2B2AE3D27D4EB4Fu;
    key ^= key >> 29;
    return key ? key : 1;
}

/* True if the key is new. Out of memory: everything counts as new. */
static bool range_set_add(struct range_set *set, uint64_t key)
{
    if ((set->count + 1) * 2 > set->capacity) {
        size_t capacity = set->capacity ? set->capacity * 2 : 4096;
        uint64_t *keys = calloc(capacity, sizeof *keys);
        if (!keys)
            return true;
        for (size_t i = 0; i < set->capacity; i++) {
            size_t at = (size_t)set->keys[i] & (capacity - 1);
            while (set->keys[i] && keys[at])
                at = (at + 1) & (capacity - 1);
            if (set->keys[i])
                keys[at] = set->keys[i];
        }
        free(set->keys);
        set->keys = keys;
        set->capacity = capacity;
    }
    size_t at = (size_t)key & (set->capacity - 1);
    for (; set->keys[at]; at = (at + 1) & (set->capacity - 1))
        if (set->keys[at] == key)
            return false;
    set->keys[at] = key;
    set->count++;
    return true;
}

static bool build_symbol_index(struct dwarf_reader *reader, struct sl_arena *arena)
{
    struct sl_symbol *symbols;
    size_t count, capacity = 16;
    if (sl_object_symbols(reader->object, arena, &symbols, &count, NULL) != SL_OK || count > UINT32_MAX / 4)
        return false;
    while (capacity < count * 2)
        capacity *= 2;
    uint32_t *slots = SL_ARENA_ARRAY(arena, uint32_t, capacity);
    if (!slots)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!symbols[i].name.size)
            continue;
        symbols[i].address -= sl_object_info(reader->object)->dwarf_bias;
        size_t at = (size_t)(symbols[i].address * 0x9E3779B97F4A7C15u >> 24) & (capacity - 1);
        while (slots[at] && symbols[slots[at] - 1].address != symbols[i].address)
            at = (at + 1) & (capacity - 1);
        if (!slots[at])
            slots[at] = (uint32_t)i + 1;
    }
    reader->symbols = (struct symbol_index){symbols, slots, capacity - 1};
    return true;
}

static bool has_code(const struct dwarf_unit *unit)
{
    return unit->has_ranges || (unit->has_low_pc && unit->low_pc) || unit->address_file->relocatable;
}

static bool is_skeleton(const struct dwarf_unit *unit)
{
    return unit->header->type == DW_UT_skeleton || unit->dwo_name.size ||
           (unit->header->version < 5 && unit->header->dwo_id);
}

/* Addresses of WASM are relative to the code section until here. The structures are the worker's own. */
static void shift_functions(const struct sl_function *functions, size_t count, uint64_t bias)
{
    for (size_t i = 0; i < count; i++) {
        struct sl_function *f = (struct sl_function *)&functions[i];
        f->address += bias;
        for (uint32_t j = 0; j < f->line_count; j++)
            ((struct sl_line *)f->lines)[j].address += bias;
        shift_functions(f->inlinees, f->inlinee_count, bias);
    }
}

static bool copy_batch(struct dwarf_worker *w, struct slot *slot)
{
    struct sl_function *functions =
        sl_arena_alloc(&slot->arena, w->function_count * sizeof *functions + 1, _Alignof(struct sl_function));
    struct sl_file *files =
        sl_arena_alloc(&slot->arena, w->lines.file_count * sizeof *files + 1, _Alignof(struct sl_file));
    if (!functions || !files)
        return false;
    if (w->function_count)
        memcpy(functions, w->functions, w->function_count * sizeof *functions);
    if (w->lines.file_count)
        memcpy(files, w->lines.files, w->lines.file_count * sizeof *files);
    slot->functions = functions;
    slot->batch = (struct sl_function_batch){
        .files = files,
        .file_count = w->lines.file_count,
        .functions = functions,
        .function_count = w->function_count,
    };
    return true;
}

static void read_unit(void *arg, size_t index, unsigned worker)
{
    struct window *window = arg;
    struct dwarf_reader *reader = window->reader;
    struct dwarf_worker *w = &window->workers[worker];
    struct slot *slot = &window->slots[index];
    struct dwarf_unit unit, split;
    struct dwarf_file split_file;
    slot->skip = true;
    slot->failed = false;
    const struct dwarf_unit_header *header = &reader->main.units[window->first + index];
    if (header->type == DW_UT_type || header->type == DW_UT_split_type)
        return;
    if (!dwarf_unit_open(w, &reader->main, header, &unit)) {
        slot->failed = true;
        return;
    }
    if (!has_code(&unit))
        return;
    dwarf_read_lines(w, &unit, &slot->arena);
    const struct dwarf_unit *walked = &unit;
    if (is_skeleton(&unit) && dwarf_open_split(reader, w, &unit, &split_file, &slot->arena, &split))
        walked = &split;
    w->pinned = walked->abbrevs;
    slot->failed = !dwarf_read_functions(reader, w, walked, &slot->arena);
    w->pinned = NULL;
    slot->skip = !copy_batch(w, slot);
    uint64_t bias = sl_object_info(reader->object)->dwarf_bias;
    if (!slot->skip && bias)
        shift_functions(slot->functions, slot->batch.function_count, bias);
    if (walked == &split) /* its tables point into this unit's file structure, which ends here */
        dwarf_forget_file(w, &split_file);
}

static void drop_repeated(struct slot *slot, struct range_set *set)
{
    size_t kept = 0;
    for (size_t i = 0; i < slot->batch.function_count; i++)
        if (range_set_add(set, range_key(&slot->functions[i])))
            slot->functions[kept++] = slot->functions[i];
    slot->batch.function_count = kept;
}

static void prepare_unit(void *arg, size_t index, unsigned worker)
{
    struct window *window = arg;
    struct slot *slot = &window->slots[index];
    if (!slot->skip && window->sink->prepare)
        window->sink->prepare(window->sink, &slot->batch, &slot->arena, worker);
}

static enum sl_code consume_window(struct window *window, const struct sl_parallel *parallel, struct range_set *set,
                                   size_t *read, struct sl_error *error)
{
    sl_parallel_run(parallel, window->count, read_unit, window);
    for (size_t i = 0; i < window->count; i++) {
        window->sink->skipped_units += window->slots[i].failed;
        *read += !window->slots[i].failed || !window->slots[i].skip;
        if (!window->slots[i].skip)
            drop_repeated(&window->slots[i], set);
    }
    sl_parallel_run(parallel, window->count, prepare_unit, window);
    enum sl_code code = SL_OK;
    for (size_t i = 0; i < window->count; i++) {
        struct slot *slot = &window->slots[i];
        if (!slot->skip && code == SL_OK)
            code = window->sink->consume(window->sink, &slot->batch, error);
        sl_arena_reset(&slot->arena);
    }
    return code;
}

static enum sl_code read_all(struct dwarf_reader *reader, const struct sl_parallel *parallel,
                             struct sl_function_sink *sink, struct sl_error *error)
{
    unsigned workers = sl_parallel_workers(parallel);
    size_t slots = workers == 1 ? 1 : workers * UNITS_PER_WORKER, read = 0;
    struct window window = {
        reader, calloc(workers, sizeof(struct dwarf_worker)), calloc(slots, sizeof(struct slot)), sink, 0, 0};
    struct range_set set = {0};
    enum sl_code code = SL_OK;
    if (!window.workers || !window.slots)
        code = sl_fail(error, SL_INTERNAL, "out of memory");
    while (code == SL_OK && window.first < reader->main.unit_count) {
        size_t left = reader->main.unit_count - window.first;
        window.count = left < slots ? left : slots;
        code = consume_window(&window, parallel, &set, &read, error);
        window.first += window.count;
    }
    for (size_t i = 0; window.slots && i < slots; i++)
        sl_arena_free(&window.slots[i].arena);
    for (unsigned i = 0; window.workers && i < workers; i++)
        dwarf_worker_free(&window.workers[i]);
    free(window.slots);
    free(window.workers);
    free(set.keys);
    if (code == SL_OK && read == 0 && sink->skipped_units)
        return sl_fail(error, SL_MALFORMED, "bad debug file: no unit of .debug_info can be read");
    return code;
}

enum sl_code sl_dwarf_read(struct sl_object *object, const struct sl_companions *companions,
                           const struct sl_parallel *parallel, struct sl_function_sink *sink, struct sl_error *error)
{
    struct dwarf_reader reader = {
        .object = object,
        .companions = companions,
        .load_address = sl_object_info(object)->load_address,
    };
    struct sl_arena arena = {0};
    size_t ignored = 0;
    dwarf_file_open(&reader.main, object, false);
    if (!reader.main.info.size)
        return sl_fail(error, SL_NOT_FOUND, "no debug information");
    if (companions && companions->dwz) {
        dwarf_file_open(&reader.sup, companions->dwz, false);
        reader.has_sup = dwarf_index_units(&reader.sup, &arena, &ignored);
        reader.main.sup = reader.has_sup ? &reader.sup : NULL;
    }
    if (companions && companions->dwp) {
        dwarf_file_open(&reader.dwp, companions->dwp, true);
        /* the index is not a .dwo section */
        sl_object_section(companions->dwp, "debug_cu_index", &reader.dwp.cu_index, NULL);
        reader.has_dwp = reader.dwp.info.size > 0;
    }
    enum sl_code code = SL_OK;
    if (!dwarf_index_units(&reader.main, &arena, &sink->skipped_units))
        code = sl_fail(error, SL_INTERNAL, "out of memory");
    if (code == SL_OK) {
        build_symbol_index(&reader, &arena);
        code = read_all(&reader, parallel, sink, error);
    }
    sl_arena_free(&arena);
    return code;
}

enum sl_code sl_object_read_functions(struct sl_object *object, const struct sl_companions *companions,
                                      const struct sl_parallel *parallel, struct sl_function_sink *sink,
                                      struct sl_error *error)
{
    if (sl_object_reads_own_functions(object))
        return sl_object_read_own_functions(object, parallel, sink, error);
    return sl_dwarf_read(object, companions, parallel, sink, error);
}
