#include "api/crash/walk.h"

#include "core/pool.h"

enum { MOST_AT_ONCE = 64, KEPT_FRAMES = 256 };

/* ---- modules ---- */

static bool is_covered(const struct sl_walk_symbols *symbols, uint64_t address)
{
    struct sl_location location;
    return sl_symcache_lookup(((const struct covered *)symbols)->table, address, &location, 1) > 0;
}

/* That there was no room, or no time, says nothing of a module: the whole walk ends for it. */
static void note_failure(struct dump_walk *w, enum sl_code code, const struct sl_error *error)
{
    if ((code == SL_BUSY || code == SL_CANCELLED) && !w->error.code)
        sl_fail(&w->error, code, "%s", error->message);
}

static void walk_find(struct dump_walk *w, size_t index, const struct kinds_use *use, struct kinds_found *found)
{
    const struct kinds_search where = {w->request->sources, w->request->source_count, w->request->scope, w->arena};
    kinds_find(&where, use, &w->modules[index].id, found);
    note_failure(w, found->code, &found->error);
}

static const struct sl_cfi *cfi_of(const struct walked_module *module)
{
    return module->cfi.item ? module->cfi.item->loaded : NULL;
}

static void find_cfi(struct dump_walk *w, size_t index)
{
    struct walked_module *module = &w->modules[index];
    module->used = true;
    walk_find(w, index, &kinds_unwind, &module->cfi);
    sl_walk_set_cfi(&w->targets[index], cfi_of(module));
}

static void find_symbols(struct dump_walk *w, size_t index)
{
    struct walked_module *module = &w->modules[index];
    walk_find(w, index, kinds_symbols_of(&module->id), &module->symbols);
    module->covered = (struct covered){{is_covered}, module->symbols.symcache};
    sl_walk_set_symbols(&w->targets[index], module->symbols.symcache ? &module->covered.base : NULL);
}

/* Looks up what is needed, or waits for whoever does, who may have done so while the walk came here from the pool. False when
 * cancelled. */
static bool walk_need(struct dump_walk *w, enum sl_walk_need need, size_t index)
{
    struct walked_module *module = &w->modules[index];
    bool is_cfi = need == SL_WALK_NEED_CFI;
    bool *asked = is_cfi ? &module->asked_cfi : &module->asked_symbols;
    bool *known = is_cfi ? &module->known_cfi : &module->known_symbols;
    while (*asked && !*known)
        if (fiber_wait_on(&module->waiting, UINT64_MAX) != FIBER_WOKEN)
            return false;
    if (*known)
        return true;
    *asked = true;
    if (is_cfi)
        find_cfi(w, index);
    else
        find_symbols(w, index);
    *known = true;
    fiber_wake_all(&module->waiting);
    return !fiber_cancelled();
}

/* ---- threads ---- */

struct thread_walk {
    struct dump_walk *w;
    size_t thread;
    struct sl_arena arena; /* of the walk */
    struct sl_walk *walk;
    enum sl_walk_need need;
    size_t module;
    bool context_only;
};

/* On the pool: goes on as far as it can. */
static void walk_on(void *arg)
{
    struct thread_walk *t = arg;
    const struct sl_minidump *dump = t->w->dump;
    struct sl_walk_target target = sl_minidump_target(dump);
    struct sl_registers registers;
    struct sl_walk_stack stack;
    target.frame_pointer_first = t->w->frame_pointer_first;
    if (!t->walk) {
        sl_minidump_start(dump, t->thread, &registers, &stack);
        if (t->context_only)
            stack = (struct sl_walk_stack){0, {NULL, 0}, NULL, NULL};
        t->walk = sl_walk_new(&t->arena, &target, t->w->targets, dump->crash.module_count, &registers, &stack);
    }
    t->need = t->walk ? sl_walk_run(t->walk, &t->module) : SL_WALK_DONE;
}

static enum sl_code run_walk(struct thread_walk *t, struct sl_error *error)
{
    do {
        enum sl_code code = pool_run(POOL_WALK, walk_on, t, error);
        if (code != SL_OK)
            return code;
        if (t->need != SL_WALK_DONE && !walk_need(t->w, t->need, t->module))
            return sl_fail(error, SL_CANCELLED, "cancelled");
        if (t->w->error.code) {
            *error = t->w->error;
            return error->code;
        }
    } while (t->need != SL_WALK_DONE);
    return t->walk && !t->walk->out_of_memory ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

static bool take_frames(struct thread_walk *t)
{
    struct dump_walk *w = t->w;
    struct sl_crash_thread *thread = &w->dump->crash.threads[t->thread];
    size_t count = t->walk->frame_count < KEPT_FRAMES ? t->walk->frame_count : KEPT_FRAMES;
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
    w->max_frames -= count < w->max_frames ? count : w->max_frames;
    return true;
}

static void walk_thread(struct dump_walk *w, size_t thread)
{
    struct thread_walk t = {.w = w, .thread = thread, .context_only = !w->max_frames};
    struct sl_error error;
    enum sl_code code = run_walk(&t, &error);
    if (code == SL_OK && !take_frames(&t))
        code = sl_fail(&error, SL_BUSY, "out of memory");
    if (code != SL_OK && !w->error.code)
        w->error = error;
    sl_arena_free(&t.arena);
}

static void take_threads(void *arg)
{
    struct dump_walk *w = arg;
    while (w->next < w->dump->crash.thread_count && !w->error.code && !fiber_cancelled()) {
        size_t thread = w->next++;
        if (w->dump->threads[thread].is_walked)
            walk_thread(w, thread);
    }
}

/* ---- the dump ---- */

/* A module may get from its file what the dump does not say. */
static void take_module(struct dump_walk *w, size_t index)
{
    struct walked_module *module = &w->modules[index];
    struct sl_crash_module *known = &w->dump->crash.modules[index];
    const struct sl_cfi *cfi = cfi_of(module);
    module->unwind.status = module->used ? native_lookup_status(module->cfi.code) : "unused";
    module->unwind.features = module->cfi.features;
    module->unwind.candidates = module->cfi.candidates;
    if (cfi && !known->has_debug_id && !sl_debug_id_is_nil(&cfi->debug_id)) {
        known->debug_id = cfi->debug_id;
        known->has_debug_id = true;
    }
    if (cfi && !known->debug_file.size && cfi->debug_file.size)
        known->debug_file = cfi->debug_file;
}

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
    bool done = fiber_crew(take_threads, walk, threads < MOST_AT_ONCE ? threads : MOST_AT_ONCE);
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
    for (size_t i = 0; walk->modules && i < walk->dump->crash.module_count; i++) {
        cache_release(walk->modules[i].cfi.item);
        cache_release(walk->modules[i].symbols.item);
        walk->modules[i].cfi.item = walk->modules[i].symbols.item = NULL;
    }
}
