/* Reads the units in groups ("windows"), on all workers. Within a window no thread waits for another:
 *
 *     read a unit ▶ drop repeated ranges ▶ the sink's prepare ▶ consume
 *     (parallel)    (in file order)        (parallel)           (in file order)
 *
 * A thread that has read or prepared a unit also takes the steps in file order that have become possible, for any unit.
 * With one worker a window is one unit, which stays in the processor's cache from step to step. */
#include "dwarf/impl.h"
#include "base/search.h"

#include <stdio.h>
#include <stdlib.h>

/* UNITS_PER_WORKER: a window has so many units for each worker. UNIT_CHUNK: bytes of the first chunk of a unit's arena, enough for most
 * units: with smaller chunks all threads would compete for malloc. */
enum { UNITS_PER_WORKER = 32, UNIT_CHUNK = 256 * 1024 };

/* Memory of a batch. A worker takes the first one in its own list that is not in use, so few are ever allocated. */
struct batch_memory {
    struct sl_arena arena;
    struct batch_memory *next;
    atomic_bool busy;
};

/* What has been done with a slot. The order matters: dwarf_read_advance compares states by `>=`. */
enum slot_state { SLOT_WAITING, SLOT_READ, SLOT_PREPARED };

struct dwarf_batch_slot {
    struct batch_memory *memory; /* NULL if the unit has no code or memory is exhausted */
    struct sl_function_batch batch;
    struct sl_function *functions; /* of the batch */
    const char *damage;            /* why the unit could not be read to its end; NULL = it was */
    struct sl_str missing;         /* the unit's .dwo file, if it is needed but not available; else data NULL */
    bool skip;                     /* the sink gets nothing of this unit */
    bool exhausted;                /* out of memory or budget */
    atomic_int state;
};

/* A step that runs for the slots in order, in one thread at a time. */
struct stage {
    atomic_bool busy;
    atomic_size_t done; /* number of slots for which the step is done */
};

struct dwarf_read_window {
    struct dwarf_reader *reader;
    struct dwarf_worker *workers;
    struct batch_memory **memories; /* by worker: its list */
    struct dwarf_batch_slot *slots;
    struct sl_function_sink *sink;
    size_t first, count;
    struct stage dropping, consuming;
    atomic_size_t claimed; /* slots whose prepare has begun */
    size_t read;           /* units that could be read */
    enum sl_code code;
    struct sl_error *error;
};

/* True if the unit may have code: its root entry has ranges or a low_pc other than 0, or the file may have code at address 0. A high_pc
 * with a low_pc of 0, or without low_pc, means that the linker dropped the code: false. A root entry without any of them says little: true
 * if the unit has subprograms or lines; false for a partial unit, which only has entries that other units share. */
static bool has_code(const struct dwarf_unit *unit)
{
    if (unit->has_ranges || (unit->has_low_pc && unit->low_pc) || dwarf_may_have_code_at_zero(unit->address_file))
        return true;
    if (unit->high_pc_form || unit->tag == DW_TAG_partial_unit)
        return false;
    return unit->abbrevs->has_functions || dwarf_has_rows(unit);
}

/* True for a skeleton: it has the code addresses and lines; the entries are in a .dwo file or a package. */
static bool is_skeleton(const struct dwarf_unit *unit)
{
    return unit->header->type == DW_UT_skeleton || unit->dwo_name.size || (unit->header->version < 5 && unit->dwo_id);
}

/* Adds the bias of WASM, whose addresses are relative to the code section until here. The casts are fine: the worker owns the batch. */
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

/* Copies the worker's functions, files and variables into the slot's arena: the worker reuses its arrays for the next unit. False when out
 * of memory. */
static bool copy_batch(struct dwarf_worker *w, const struct dwarf_unit *unit, struct dwarf_batch_slot *slot)
{
    /* + 1: not NULL if there are none */
    struct sl_function *functions =
        sl_arena_alloc(&slot->memory->arena, w->function_count * sizeof *functions + 1, _Alignof(struct sl_function));
    struct sl_file *files =
        sl_arena_alloc(&slot->memory->arena, w->lines.file_count * sizeof *files + 1, _Alignof(struct sl_file));
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
        .producer = unit->producer,
    };
    return !w->variables || variables_copy_to_batch(w, &slot->batch, &slot->memory->arena);
}

/* Returns memory of the worker's list that no batch uses, or new one; NULL when out of memory. Testing `busy` and then setting it are two
 * steps, which is safe: only this worker sets it, and the thread that consumes the batch only clears it. */
static struct batch_memory *take_memory(struct batch_memory **list, struct sl_budget *budget)
{
    for (struct batch_memory *m = *list; m; m = m->next)
        if (!atomic_load(&m->busy)) {
            atomic_store(&m->busy, true);
            return m;
        }
    struct batch_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    memory->arena.next_chunk = UNIT_CHUNK;
    memory->arena.budget = budget;
    memory->next = *list;
    atomic_store(&memory->busy, true);
    return *list = memory;
}

/* Frees a worker's list of batch memory. */
static void free_memory(struct batch_memory *memory)
{
    while (memory) {
        struct batch_memory *next = memory->next;
        sl_arena_free(&memory->arena);
        free(memory);
        memory = next;
    }
}

/* Reads the lines and functions of a unit with code into the slot. A skeleton's functions are in its split unit; if that is not available,
 * `missing` names it, and only code that symbols name is read. What can be read of a damaged unit is kept, and `damage` says so.
 * `exhausted` is set when out of memory or budget. */
static void read_code(struct dwarf_reader *reader, struct dwarf_batch_slot *slot, struct dwarf_worker *w,
                      const struct dwarf_unit *unit)
{
    struct dwarf_unit split;
    struct dwarf_file split_file;
    const struct dwarf_unit *walked = unit; /* the unit that has the entries of functions */
    dwarf_read_lines(w, unit);
    if (is_skeleton(unit)) {
        if (dwarf_open_split(reader, w, unit, &split_file, &slot->memory->arena, &split))
            walked = &split;
        else if (unit->has_ranges || unit->has_low_pc) /* not for a unit without code, of which nothing is missed */
            slot->missing = unit->dwo_name.data ? unit->dwo_name : SL_STR("?"); /* a file of unknown name */
    }
    w->pinned = walked->abbrevs;
    /* first drops the lines that the linker left at address 0, then reads the functions */
    if (!dwarf_keep_zero_lines(reader, w, unit, walked, &slot->memory->arena) ||
        !dwarf_read_functions(reader, w, walked, &slot->memory->arena))
        slot->damage = "some of its entries cannot be read";
    w->pinned = NULL;
    dwarf_add_uncovered(reader, w, unit, walked->language, &slot->memory->arena); /* a failure sets account.failed */
    slot->skip = w->account.failed || !copy_batch(w, walked, slot);
    slot->exhausted = slot->skip;
    uint64_t bias = sl_object_info(reader->object)->dwarf_bias;
    if (!slot->skip && bias)
        shift_functions(slot->functions, slot->batch.function_count, bias);
    if (is_skeleton(unit)) /* cached tables point to split_file, which goes out of scope */
        dwarf_invalidate_caches(w, &split_file);
}

bool dwarf_is_wanted(const struct sl_function_sink *sink, uint64_t bias, uint64_t begin, uint64_t end)
{
    /* first wanted address at or after `begin` */
    size_t low = SL_PARTITION_POINT(middle, 0, sink->wanted_count, sink->wanted[middle] + bias < begin);
    return low < sink->wanted_count && sink->wanted[low] + bias < end;
}

/* True if the unit certainly has no code at the addresses that the sink wants. */
static bool is_elsewhere(const struct dwarf_reader *reader, struct dwarf_worker *w,
                         const struct dwarf_unit_header *header, const struct sl_function_sink *sink)
{
    struct dwarf_unit unit;
    size_t count = dwarf_unit_peek(w, &reader->main, header, &unit) ? dwarf_unit_ranges(w, &unit) : 0;
    /* wanted addresses are relative to the load address, those of DWARF are not; in WASM they are relative to the code section */
    uint64_t bias = reader->load_address - sl_object_info(reader->object)->dwarf_bias;
    for (size_t i = 0; i < count; i++)
        if (dwarf_is_wanted(sink, bias, w->ranges[i].begin, w->ranges[i].end))
            return false;
    return count > 0 && !w->account.failed; /* without ranges it may be anywhere */
}

/* Reads unit `index` of the window into its slot. Leaves `skip` set for type units, for units without code or without code at a wanted
 * address, and for those whose first entry cannot be read. */
static void read_unit(struct dwarf_read_window *window, size_t index, struct dwarf_worker *w,
                      struct batch_memory **memories)
{
    struct dwarf_reader *reader = window->reader;
    struct dwarf_batch_slot *slot = &window->slots[index];
    struct dwarf_unit unit;
    slot->memory = NULL;
    slot->damage = NULL;
    slot->missing = (struct sl_str){NULL, 0};
    slot->skip = true; /* until read_code() has filled the batch */
    slot->exhausted = w->account.failed;
    const struct dwarf_unit_header *header = &reader->main.units[window->first + index];
    if (slot->exhausted || header->type == DW_UT_type || header->type == DW_UT_split_type)
        return;
    if (window->sink->wanted_count && is_elsewhere(reader, w, header, window->sink))
        return;
    if (!dwarf_unit_open(w, &reader->main, header, &unit)) {
        slot->damage = "its abbreviations or its first entry are invalid";
        slot->exhausted = w->account.failed;
        return;
    }
    if (!has_code(&unit))
        return;
    slot->memory = take_memory(memories, reader->budget);
    slot->exhausted = !slot->memory;
    if (slot->memory)
        read_code(reader, slot, w, &unit);
}

/* Counts damaged units and missing .dwo files, and drops functions whose range an earlier unit already had. Runs in file order, so that the
 * result does not depend on the number of threads. Sets slot->exhausted when out of memory. */
static void drop_repeated(struct dwarf_read_window *window, struct dwarf_batch_slot *slot)
{
    size_t kept = 0;
    if (slot->damage && !window->sink->skipped_units)
        sl_fail(&window->sink->first_skipped, SL_MALFORMED,
                "cannot read all of the compilation unit at offset 0x%llx of .debug_info: %s",
                (unsigned long long)window->reader->main.units[window->first + (size_t)(slot - window->slots)].offset,
                slot->damage);
    window->sink->skipped_units += slot->damage != NULL;
    if (slot->missing.data && !window->sink->missing_units++)
        snprintf(window->sink->first_missing, sizeof window->sink->first_missing, SL_STR_FMT,
                 SL_STR_ARG(slot->missing));
    window->read += !slot->damage || !slot->skip; /* also counts a damaged unit of which a part was read */
    if (slot->skip)
        return;
    for (size_t i = 0; i < slot->batch.function_count; i++) {
        uint64_t key = dwarf_range_key(slot->functions[i].address, slot->functions[i].size);
        enum range_novelty novelty = dwarf_range_add(&window->reader->ranges, key);
        if (novelty == RANGE_NEW)
            slot->functions[kept++] = slot->functions[i];
        slot->exhausted = slot->exhausted || novelty == RANGE_NO_MEMORY;
    }
    slot->batch.function_count = kept;
}

/* Passes the batch of a slot to the sink, unless an earlier batch failed. The memory of the batch is then free for other units. */
static void dwarf_read_consume(struct dwarf_read_window *window, struct dwarf_batch_slot *slot)
{
    if (slot->exhausted && window->code == SL_OK)
        window->code = sl_budget_fail(window->reader->budget, window->error);
    if (!slot->skip && window->code == SL_OK)
        window->code = window->sink->consume(window->sink, &slot->batch, window->error);
    if (slot->memory) {
        sl_arena_reset(&slot->memory->arena);
        atomic_store(&slot->memory->busy, false);
    }
}

/* Runs `step` for the next slots in order while they have reached `state`, unless another thread is doing so. No slot is missed: that
 * thread checks again after it has cleared `busy`. */
static void dwarf_read_advance(struct dwarf_read_window *window, struct stage *stage, enum slot_state state,
                               void (*step)(struct dwarf_read_window *window, struct dwarf_batch_slot *slot))
{
    size_t done;
    do {
        if (atomic_exchange(&stage->busy, true))
            return;
        done = atomic_load(&stage->done);
        while (done < window->count && atomic_load(&window->slots[done].state) >= (int)state) {
            step(window, &window->slots[done]);
            atomic_store(&stage->done, ++done);
        }
        atomic_store(&stage->busy, false);
    } while (done < window->count && atomic_load(&window->slots[done].state) >= (int)state);
}

/* Sets `*index` to the next slot that is past the step "drop repeated ranges" and that no thread has begun to prepare; no other thread will
 * get it. False if there is none. */
static bool claim(struct dwarf_read_window *window, size_t *index)
{
    *index = atomic_load(&window->claimed);
    while (*index < atomic_load(&window->dropping.done))
        if (atomic_compare_exchange_weak(&window->claimed, index, *index + 1))
            return true;
    return false;
}

/* Task of a thread for one slot of a window: reads the unit, then takes the steps that have become possible, for any slot: drops repeated
 * functions, prepares, consumes. */
static void dwarf_read_work(void *arg, size_t index, unsigned worker)
{
    struct dwarf_read_window *window = arg;
    read_unit(window, index, &window->workers[worker], &window->memories[worker]);
    atomic_store(&window->slots[index].state, SLOT_READ);
    dwarf_read_advance(window, &window->dropping, SLOT_READ, drop_repeated);
    while (claim(window, &index)) {
        struct dwarf_batch_slot *slot = &window->slots[index];
        if (!slot->skip && window->sink->prepare)
            window->sink->prepare(window->sink, &slot->batch, &slot->memory->arena, worker);
        atomic_store(&slot->state, SLOT_PREPARED);
        dwarf_read_advance(window, &window->consuming, SLOT_PREPARED, dwarf_read_consume);
    }
}

/* Reads the units of the window with all workers; returns when all of them are consumed. */
static void read_window(struct dwarf_read_window *window, const struct sl_parallel *parallel)
{
    atomic_store(&window->dropping.done, 0);
    atomic_store(&window->consuming.done, 0);
    atomic_store(&window->claimed, 0);
    for (size_t i = 0; i < window->count; i++)
        atomic_store(&window->slots[i].state, SLOT_WAITING);
    sl_parallel_run(parallel, window->count, dwarf_read_work, window);
}

/* Reads all units, window by window. SL_MALFORMED if there are damaged units and no unit could be read; one readable unit is enough for
 * success. */
static enum sl_code dwarf_read_all(struct dwarf_reader *reader, const struct sl_parallel *parallel,
                                   struct sl_function_sink *sink, struct sl_error *error)
{
    unsigned workers = sl_parallel_workers(parallel);
    /* a slot is for one unit; with a single worker that unit stays in the processor's cache from step to step */
    size_t slots = workers == 1 ? 1 : workers * UNITS_PER_WORKER;
    struct dwarf_read_window window = {
        .reader = reader,
        .workers = calloc(workers, sizeof *window.workers),
        .memories = calloc(workers, sizeof *window.memories),
        .slots = calloc(slots, sizeof *window.slots),
        .sink = sink,
        .error = error,
    };
    if (!window.workers || !window.memories || !window.slots)
        window.code = sl_fail(error, SL_BUSY, "out of memory");
    for (unsigned i = 0; window.workers && i < workers; i++) {
        window.workers[i].account.budget = reader->budget;
        window.workers[i].positions = sink->needs_positions;
        window.workers[i].variables = sink->needs_variables;
    }
    uint64_t passed = 0;
    while (window.code == SL_OK && window.first < reader->main.unit_count) {
        size_t left = reader->main.unit_count - window.first;
        window.count = left < slots ? left : slots;
        read_window(&window, parallel);
        window.first += window.count;
        if (sink->wanted_count) /* a lookup of a few addresses reads most units only once, and only in part */
            dwarf_drop_pages(&reader->main, &passed, reader->main.units[window.first - 1].end);
    }
    for (unsigned i = 0; window.workers && i < workers; i++)
        dwarf_worker_free(&window.workers[i]);
    for (unsigned i = 0; window.memories && i < workers; i++)
        free_memory(window.memories[i]);
    free(window.slots);
    free(window.memories);
    free(window.workers);
    dwarf_range_free(&reader->ranges);
    if (window.code == SL_OK && window.read == 0 && sink->skipped_units)
        return sl_fail(error, SL_MALFORMED, "bad debug file: no readable unit in .debug_info");
    return window.code;
}

void dwarf_charge_to(struct dwarf_reader *reader, struct sl_object *companion)
{
    const struct sl_budget *own = sl_object_budget(companion);
    if (own != reader->budget)
        sl_budget_grow(reader->budget, atomic_load(&own->file_size));
}

enum sl_code sl_dwarf_read(struct sl_object *object, const struct sl_companions *companions,
                           const struct sl_parallel *parallel, struct sl_function_sink *sink, struct sl_error *error)
{
    struct dwarf_reader reader = {
        .object = object,
        .budget = sl_object_budget(object),
        .ranges.budget = sl_object_budget(object),
        .companions = companions,
        .nameless = sink->accepts_nameless,
        .load_address = sl_object_info(object)->load_address,
    };
    struct sl_arena arena = {.budget = reader.budget};
    size_t ignored = 0; /* damaged units of the supplementary file: only references to them fail */
    enum sl_code code = SL_OK;
    dwarf_file_open(&reader.main, object, false); /* false: no .dwo file or package */
    if (!reader.main.info.size)
        return sl_fail(error, SL_NOT_FOUND, "no debug information");
    if (companions && companions->dwz) {
        dwarf_file_open(&reader.sup, companions->dwz, false);
        dwarf_charge_to(&reader, companions->dwz); /* work and memory for it count in the object's budget */
        if (!dwarf_index_units(&reader.sup, SIZE_MAX, &arena, &ignored))
            code = sl_budget_fail(reader.budget, error);
        reader.main.sup = &reader.sup;
    }
    if (companions && companions->dwp) {
        dwarf_file_open(&reader.dwp, companions->dwp, true); /* true: sections with the suffix .dwo */
        dwarf_charge_to(&reader, companions->dwp);
        /* .debug_cu_index has no .dwo suffix */
        sl_object_section(companions->dwp, "debug_cu_index", &reader.dwp.cu_index, NULL);
        reader.has_dwp = reader.dwp.info.size > 0;
    }
    if (code == SL_OK && !dwarf_index_units(&reader.main, SIZE_MAX, &arena, &sink->skipped_units))
        code = sl_budget_fail(reader.budget, error);
    /* .debug_aranges: for units whose root entries do not list their code ranges */
    if (code == SL_OK && !dwarf_index_aranges(&reader.main, object, &arena))
        code = sl_budget_fail(reader.budget, error);
    if (code == SL_OK && sink->skipped_units)
        sl_fail(&sink->first_skipped, SL_MALFORMED,
                "a unit header in .debug_info is invalid, so at least one unit is not read");
    if (code == SL_OK && !sink->debug_info_only)
        code = dwarf_index_symbols(&reader, &arena, error);
    if (code == SL_OK) /* collects the symbols at address 0, which tell live code there from dropped code */
        code = dwarf_index_zero(&reader, &arena, error);
    if (code == SL_OK)
        code = dwarf_read_all(&reader, parallel, sink, error);
    sl_arena_free(&arena);
    return code;
}
