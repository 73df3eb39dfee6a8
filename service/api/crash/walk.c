#include "api/crash/walk.h"

#include "core/pool.h"

/* Threads are walked in batches to save pool jobs; but several batches run concurrently even for few threads, so that their
 * look-ups overlap. */
enum { MIN_AT_ONCE = 16, MAX_AT_ONCE = 64, BATCH = 8, COMPAT_FRAMES = 256 };

/* ---- modules ---- */

/* True if the symbols have a function at the address. */
static bool is_covered(const struct sl_walk_symbols *symbols, uint64_t address)
{
    const struct dump_coverage *covered = (const struct dump_coverage *)symbols;
    struct sl_location location;
    return sl_symcache_lookup(covered->table, address + covered->ahead, &location, 1) > 0;
}

/* Sets the outermost (not inlined) function at the address; false if there is none. */
static bool function_at(const struct sl_walk_symbols *symbols, uint64_t address, uint32_t *function)
{
    const struct dump_coverage *covered = (const struct dump_coverage *)symbols;
    struct sl_location chain[SL_SYMCACHE_MAX_CHAIN];
    size_t count = sl_symcache_lookup(covered->table, address + covered->ahead, chain, SL_SYMCACHE_MAX_CHAIN);
    if (!count || count > SL_SYMCACHE_MAX_CHAIN)
        return false;
    *function = chain[count - 1].function;
    return true;
}

static bool is_same_function(const struct sl_walk_symbols *symbols, uint64_t a, uint64_t b)
{
    uint32_t one, other;
    return function_at(symbols, a, &one) && function_at(symbols, b, &other) && one == other;
}

/* Looks up the module. NULL: the whole walk ends, for SL_BUSY or SL_CANCELLED, which say nothing about the module. */
static const struct search_result *walk_find(struct dump_walk *w, size_t index, const struct search_target *use)
{
    const struct search_result *found = module_needs_get(&w->needs, index, use);
    if (found->code != SL_BUSY && found->code != SL_CANCELLED)
        return found;
    if (!w->error.code)
        w->error = found->error;
    return NULL;
}

static const struct sl_cfi *get_cfi(const struct walked_module *module)
{
    return module->cfi && module->cfi->item ? module->cfi->item->loaded : NULL;
}

static const struct search_target *choose_symbols_target(const struct dump_walk *w, size_t module)
{
    return search_symbols_target(&w->needs.ids[module], w->wants_variables);
}

struct symbol_prefetch {
    struct dump_walk *w;
    size_t module;
};

static void prefetch_symbols(void *arg)
{
    const struct symbol_prefetch *ahead = arg;
    module_needs_get(&ahead->w->needs, ahead->module, choose_symbols_target(ahead->w, ahead->module));
}

/* Prefetches the symbols of a module with a frame. Modules without a debug id wait, as their file may supply it. */
static void start_symbol_prefetch(struct dump_walk *w, size_t index)
{
    const struct sl_crash_module *known = &w->dump->crash.modules[index];
    bool wanted = w->finds_symbols && known->has_debug_id && known->debug_file.size && w->ahead.count < MAX_AT_ONCE;
    struct symbol_prefetch *ahead = wanted ? SL_ARENA_NEW(w->arena, struct symbol_prefetch) : NULL;
    if (!ahead)
        return;
    *ahead = (struct symbol_prefetch){w, index};
    fiber_start_helper(&w->ahead, prefetch_symbols, ahead);
}

/* Returns the offset between addresses of the module and of its table: the size of segments that a tool put in front
 * (symbol_table_base). */
static uint64_t ahead_of_table(const struct dump_walk *w, size_t index, const struct search_result *found)
{
    return w->targets[index].base - symbol_table_base(&found->place, w->targets[index].base);
}

/* Looks up the unwind rules of a module. With its first use the symbols are prefetched, as they will be needed for its
 * frames. False ends the walk. */
static bool find_cfi(struct dump_walk *w, size_t index)
{
    if (!w->modules[index].is_asked) {
        w->modules[index].is_asked = true;
        start_symbol_prefetch(w, index);
    }
    const struct search_result *found = walk_find(w, index, &search_unwind_target);
    struct walked_module *module = &w->modules[index];
    if (!found)
        return false;
    module->cfi = found;
    w->targets[index].cfi_offset = ahead_of_table(w, index, found);
    sl_walk_set_cfi(&w->targets[index], get_cfi(module));
    return true;
}

/* Looks up the symbols of a module, which tell the walk where functions are. Pool threads read `covered` as soon as it is
 * set, so it is written once. False ends the walk. */
static bool find_covered(struct dump_walk *w, size_t index)
{
    const struct search_result *found = walk_find(w, index, choose_symbols_target(w, index));
    struct dump_coverage *covered = &w->modules[index].covered;
    if (found && !w->targets[index].symbols) {
        *covered =
            (struct dump_coverage){{is_covered, is_same_function}, found->symcache, ahead_of_table(w, index, found)};
        sl_walk_set_symbols(&w->targets[index], found->symcache ? &covered->base : NULL);
    }
    return found;
}

/* ---- threads ---- */

struct thread_walk {
    struct dump_walk *w;
    size_t thread;
    struct sl_arena arena; /* memory of the walk */
    struct sl_walk *walk;
    enum sl_walk_need need;
    size_t module;
    bool context_only, is_over;
};

struct walk_batch {
    struct thread_walk walks[BATCH];
    size_t count;
};

/* Walks until it needs data or is done. */
static void continue_walk(struct thread_walk *t)
{
    const struct sl_minidump *dump = t->w->dump;
    struct sl_walk_target target = sl_minidump_target(dump, t->thread);
    struct sl_registers registers;
    struct sl_walk_stack stack;
    target.frame_pointer_first = t->w->frame_pointer_first;
    target.keeps_registers = t->w->keeps_registers;
    target.compat = t->w->compat;
    target.work = &t->w->work;
    if (!t->walk) {
        sl_minidump_start(dump, t->thread, &registers, &stack);
        if (t->context_only)
            stack = (struct sl_walk_stack){0, {NULL, 0}, NULL, NULL};
        t->walk = sl_walk_new(&t->arena, &target, t->w->targets, &dump->module_map, &registers, &stack);
    }
    t->need = t->walk ? sl_walk_run(t->walk, &t->module) : SL_WALK_DONE;
    t->is_over = t->need == SL_WALK_DONE;
}

/* Runs on the pool. */
static void walk_batch(void *arg)
{
    struct walk_batch *batch = arg;
    for (size_t i = 0; i < batch->count; i++)
        if (!batch->walks[i].is_over)
            continue_walk(&batch->walks[i]);
}

/* Looks up what the walk needs. */
static bool find_needed(struct thread_walk *t)
{
    switch (t->need) {
    case SL_WALK_NEED_CFI: return t->w->targets[t->module].cfi || find_cfi(t->w, t->module);
    case SL_WALK_NEED_SYMBOLS: return t->w->targets[t->module].symbols || find_covered(t->w, t->module);
    default: return true;
    }
}

/* Walks the threads of a batch: runs them on the pool until each needs data or is done, looks the data up, and repeats. */
static enum sl_code run_batch(struct dump_walk *w, struct walk_batch *batch, struct sl_error *error)
{
    bool all_over;
    do {
        enum sl_code code = pool_run(POOL_WALK, walk_batch, batch, error);
        if (code != SL_OK)
            return code;
        all_over = true;
        for (size_t i = 0; i < batch->count; i++) {
            if (!find_needed(&batch->walks[i]) || w->error.code) {
                *error = w->error;
                return error->code;
            }
            all_over = all_over && batch->walks[i].is_over;
        }
    } while (!all_over);
    return SL_OK;
}

/* Takes the frames of a finished walk, within the limit of frames. False when out of memory. */
static bool take_frames(struct thread_walk *t)
{
    struct dump_walk *w = t->w;
    struct sl_crash_thread *thread = &w->dump->crash.threads[t->thread];
    if (!t->walk || t->walk->out_of_memory)
        return false;
    size_t most = w->compat ? COMPAT_FRAMES : t->walk->frame_count;
    size_t count = t->walk->frame_count < most ? t->walk->frame_count : most;
    thread->frames = SL_ARENA_ARRAY(w->arena, struct sl_crash_frame, count);
    if (!thread->frames)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct sl_walk_frame *frame = &t->walk->frames[i];
        thread->frames[i] = (struct sl_crash_frame){.address = frame->resume,
                                                    .trust = (uint8_t)frame->trust,
                                                    .is_exact = i && frame->instruction == frame->resume};
    }
    thread->frame_count = count;
    if (w->keeps_registers) {
        struct sl_registers *registers = SL_ARENA_ARRAY(w->arena, struct sl_registers, count);
        if (!registers)
            return false;
        memcpy(registers, t->walk->registers, count * sizeof *registers);
        w->dump->threads[t->thread].registers = registers;
    }
    w->max_frames -= count < w->max_frames ? count : w->max_frames;
    return true;
}

/* Takes the next threads; false if there are no more. */
static bool take_batch(struct dump_walk *w, struct walk_batch *batch)
{
    const struct sl_minidump *dump = w->dump;
    batch->count = 0;
    for (; w->next < dump->crash.thread_count && batch->count < w->batch; w->next++)
        if (dump->threads[w->next].is_walked)
            batch->walks[batch->count++] = (struct thread_walk){
                .w = w,
                .thread = w->next,
                .context_only = !w->max_frames}; /* only the first frame, once the limit is reached */
    return batch->count;
}

/* Takes batches until none is left; ends all workers after the first error. */
static void take_threads(void *arg)
{
    struct dump_walk *w = arg;
    struct walk_batch batch;
    while (!w->error.code && !fiber_cancelled() && take_batch(w, &batch)) {
        struct sl_error error;
        enum sl_code code = run_batch(w, &batch, &error);
        for (size_t i = 0; i < batch.count; i++) {
            if (code == SL_OK && !take_frames(&batch.walks[i]))
                code = sl_fail(&error, SL_BUSY, "out of memory");
            sl_arena_free(&batch.walks[i].arena);
        }
        if (code != SL_OK && !w->error.code)
            w->error = error;
    }
}

/* ---- the dump ---- */

/* Records the module's unwind status; adds ids and names that the dump lacks and its file has. */
static void take_module(struct dump_walk *w, size_t index)
{
    struct walked_module *module = &w->modules[index];
    struct sl_crash_module *known = &w->dump->crash.modules[index];
    const struct sl_cfi *cfi = get_cfi(module);
    module->unwind.status = module->cfi ? native_lookup_status(module->cfi->code) : "unused";
    if (module->cfi) {
        module->unwind.features = module->cfi->features;
        module->unwind.candidates = module->cfi->candidates;
    }
    if (cfi && !known->has_debug_id && !sl_debug_id_is_nil(&cfi->debug_id)) {
        known->debug_id = cfi->debug_id;
        known->has_debug_id = true;
    }
    if (cfi && !known->debug_file.size && cfi->debug_file.size)
        known->debug_file = cfi->debug_file;
}

/* Walks all threads in several fibers, then adds what the look-ups told of the modules. */
enum sl_code dump_walk(struct dump_walk *walk, struct sl_error *error)
{
    const struct sl_crash *crash = &walk->dump->crash;
    size_t threads = crash->thread_count;
    walk->targets = SL_ARENA_ARRAY(walk->arena, struct sl_walk_module, crash->module_count + 1);
    if (!walk->targets)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; i < crash->module_count; i++) {
        walk->targets[i].base = crash->modules[i].address;
        walk->targets[i].size = crash->modules[i].size;
    }
    size_t at_once = threads / BATCH;
    at_once = at_once < MIN_AT_ONCE ? MIN_AT_ONCE : at_once < MAX_AT_ONCE ? at_once : MAX_AT_ONCE;
    walk->batch = 1 + threads / at_once;
    walk->batch = walk->batch < BATCH ? walk->batch : BATCH;
    fiber_group_init(&walk->ahead, fiber_group_current());
    bool done = fiber_run_workers(take_threads, walk, threads < at_once ? threads : at_once);
    if (!done || walk->error.code)
        fiber_group_cancel(&walk->ahead);
    fiber_group_wait(&walk->ahead);
    if (walk->error.code) {
        *error = walk->error;
        return error->code;
    }
    if (!done)
        return sl_fail(error, SL_CANCELLED, "cancelled");
    for (size_t i = 0; i < crash->module_count; i++)
        take_module(walk, i);
    return SL_OK;
}

void dump_walk_release(struct dump_walk *walk)
{
    module_needs_release(&walk->needs);
}
