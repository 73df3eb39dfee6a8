/* Walks the stacks of a dump in rounds: searching tables of modules, and running the converter that walks (walk.h). */
#include "api/crash/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/order.h"
#include "conversion/crashes.h"
#include "core/pool.h"

enum {
    MAX_AT_ONCE = 64,       /* searches at the same time */
    COMPAT_FRAMES = 256,    /* frames per stack with `compat` */
    MAX_ON_LOOP = 64 << 10, /* larger answers of the converter, in bytes, are read on the pool instead of the loop */
    MAX_FORGOTTEN = 64,     /* how often the tables may be dropped because they are too many */
    MAX_OFFERED = 48,       /* tables that the first round gets without having asked for them */
    MAX_PEEKED = 256,       /* in the first round, tables are looked for in memory for so many modules */
    MAX_OFFERED_BYTES = 64 << 20, /* of all tables that the first round gets unasked: they are input of a worker */
};

/* ---- modules ---- */

/* Searches a table of module `index`: its CFI cache or its symbols, as `use` says. NULL if the search ended with SL_BUSY or SL_CANCELLED,
 * which say nothing about the module: w->error is set, and the whole walk will end. */
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

struct symbol_prefetch { /* argument of a fiber */
    struct dump_walk *w;
    size_t module;
};

/* A fiber: searches the symbols of a module. The result stays in w->needs, where a later search finds it at once. */
static void prefetch_symbols(void *arg)
{
    const struct symbol_prefetch *ahead = arg;
    module_needs_get(&ahead->w->needs, ahead->module, choose_symbols_target(ahead->w, ahead->module));
}

/* Starts a fiber that searches the symbols of a module. Not for modules without a debug id or debug file name, which may still be found in
 * their CFI cache; nor if too many such fibers run. */
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

/* Adds a table (CFI cache or symbols) to those that the next round gets; with `table` NULL the round is told that there is none. Addresses
 * relative to the module and to its table differ by `ahead` if a tool has put segments in front of those of the program
 * (symbol_table_base). */
static void add_table(struct dump_walk *w, size_t index, bool is_symbols, const struct search_result *found,
                      const struct sl_table *table)
{
    uint64_t base = w->dump->crash.modules[index].address;
    w->results[w->table_count] = found;
    struct walk_table *added = &w->tables[w->table_count++];
    *added = (struct walk_table){.module = (uint32_t)index,
                                 .is_symbols = is_symbols,
                                 .is_found = table,
                                 .ahead = base - symbol_table_base(&found->fixed_load, base)};
    w->modules[index].has[is_symbols] = true;
    if (!table)
        return;
    /* of a table that is a whole cache file the worker gets the file (`place`); of one inside a file it gets a copy */
    bool is_whole = table->bytes.data == found->item->mapping.bytes.data;
    w->inputs[w->found_count++] = (struct converter_input){
        .bytes = table->bytes, .fd = -1, .role = INPUT_TABLE, .place = is_whole ? found->item->place : NULL};
}

/* Returns the table that a search has found: the symbols if `is_symbols`, else the CFI cache; NULL if it found none. */
static const struct sl_table *table_of(const struct search_result *found, bool is_symbols)
{
    if (is_symbols)
        return found->symcache ? &found->symcache->table : NULL;
    const struct sl_cfi *cfi = found->item ? found->item->loaded : NULL;
    return cfi ? &cfi->table : NULL;
}

/* Called when a walk needs the CFI cache of a module: the first time, prefetches its symbols, as they will be needed for its frames. */
static void begin_use(struct dump_walk *w, size_t index)
{
    if (w->modules[index].is_asked)
        return;
    w->modules[index].is_asked = true;
    start_symbol_prefetch(w, index);
}

/* Searches the CFI cache of a module and adds it to the tables of the next round. */
static void find_cfi(struct dump_walk *w, size_t index)
{
    begin_use(w, index); /* starts a search for the module's symbols, which will be needed later */
    const struct search_result *found = walk_find(w, index, &search_unwind_target);
    if (!found)
        return;
    w->modules[index].cfi = found;
    add_table(w, index, false, found, table_of(found, false));
}

/* Searches the symbols of a module, which tell the walk where functions are, and adds them to the tables of the next round. */
static void find_symbols(struct dump_walk *w, size_t index)
{
    const struct search_result *found = walk_find(w, index, choose_symbols_target(w, index));
    if (found)
        add_table(w, index, true, found, table_of(found, true));
}

struct wanted_table { /* a table that a walk waits for: the symbols or the CFI cache of a module */
    struct dump_walk *w;
    size_t module;
    bool is_symbols;
};

/* A fiber: searches one table that a walk waits for. */
static void find_table(void *arg)
{
    const struct wanted_table *wanted = arg;
    if (wanted->is_symbols)
        find_symbols(wanted->w, wanted->module);
    else
        find_cfi(wanted->w, wanted->module);
}

/* If the tables (CFI caches and symbols) found so far and the `wanted` new ones are more than a converter can get, drops the old ones; a
 * walk that still needs one will ask again. SL_UNSUPPORTED if that has happened too often: a file can be made so that it never ends. */
static enum sl_code make_room(struct dump_walk *w, size_t wanted, struct sl_error *error)
{
    if (w->found_count + wanted <= CONVERTER_MAX_TABLES || !w->found_count)
        return SL_OK;
    if (w->forgotten++ == MAX_FORGOTTEN)
        return sl_fail(
            error, SL_UNSUPPORTED,
            "cannot walk the stacks: they need the unwind information and symbols of too many modules at once");
    for (size_t i = 0; i < w->dump->crash.module_count; i++)
        w->modules[i].has[0] = w->modules[i].has[1] = false;
    w->table_count = w->found_count = 0;
    return SL_OK;
}

/* Collects the tables (CFI caches and symbols) that walks wait for, each once, at most CONVERTER_MAX_TABLES; `pointers` get the addresses
 * of the `items`. SL_MALFORMED if a walk asks for a table that it has been given: then the converter's answer is wrong. */
static enum sl_code collect_wanted(struct dump_walk *w, struct wanted_table *items, void **pointers, size_t *count,
                                   struct sl_error *error)
{
    *count = 0;
    for (size_t i = 0; i < w->live; i++) { /* the first `live` walks are those that are not over */
        struct walked_module *module = &w->modules[w->walks[i].module];
        bool is_symbols = w->walks[i].need == SL_WALK_NEED_SYMBOLS;
        if (w->walks[i].need == SL_WALK_DONE) /* before the first round: a walk whose first frame is in no module */
            continue;
        if (module->has[is_symbols])
            return sl_fail(error, SL_MALFORMED,
                           "walking the stacks failed: the worker process asked again for data that it has");
        if (module->wants[is_symbols] || *count == CONVERTER_MAX_TABLES)
            continue;
        module->wants[is_symbols] = true;
        items[*count] = (struct wanted_table){w, w->walks[i].module, is_symbols};
        pointers[*count] = &items[*count];
        ++*count;
    }
    for (size_t i = 0; i < *count; i++) /* the marks were only needed to collect each table once */
        w->modules[items[i].module].wants[items[i].is_symbols] = false;
    return SL_OK;
}

/* Searches all tables (CFI caches and symbols) that walks wait for, at the same time. */
static enum sl_code find_wanted(struct dump_walk *w, struct sl_error *error)
{
    struct wanted_table items[CONVERTER_MAX_TABLES];
    void *pointers[CONVERTER_MAX_TABLES];
    size_t count;
    enum sl_code code = collect_wanted(w, items, pointers, &count, error);
    if (code == SL_OK)
        code = make_room(w, count, error);
    if (code != SL_OK)
        return code;
    if (!fiber_for_each(find_table, pointers, count, MAX_AT_ONCE))
        return sl_fail(error, SL_CANCELLED, "the search for unwind information and symbols was cancelled");
    if (w->error.code)
        *error = w->error;
    return w->error.code;
}

/* ---- tables that are offered ---- */

/* Adds a table of a module (CFI cache or symbols) to those that the first round gets, if the result of an earlier search for it is in
 * memory and it has at most `*bytes`, which are reduced. True if the round gets the table, or is told that there is none. */
static bool offer_table(struct dump_walk *w, size_t index, bool is_symbols, uint64_t *bytes)
{
    if (w->modules[index].has[is_symbols])
        return true;
    const struct search_result *found =
        module_needs_peek(&w->needs, index, is_symbols ? choose_symbols_target(w, index) : &search_unwind_target);
    const struct sl_table *table = found ? table_of(found, is_symbols) : NULL;
    if (!found || (table && table->bytes.size > *bytes))
        return false;
    *bytes -= table ? table->bytes.size : 0;
    add_table(w, index, is_symbols, found, table);
    return true;
}

/* Gives the first round tables (CFI caches and symbols) that no walk has asked for yet, but whose search results are in memory. For a
 * module whose CFI cache is not among them, walks do not get to the point where they need its symbols. */
static void offer_tables(struct dump_walk *w)
{
    uint64_t bytes = MAX_OFFERED_BYTES;
    size_t asked = w->table_count;
    if (w->found_count + MAX_OFFERED > CONVERTER_MAX_TABLES)
        return;
    for (size_t i = 0; i < w->dump->crash.module_count && i < MAX_PEEKED; i++) {
        if (w->table_count - asked + 2 > MAX_OFFERED) /* a module may add two tables */
            break;
        if (offer_table(w, i, false, &bytes))
            offer_table(w, i, true, &bytes);
    }
}

/* After a round: marks the modules whose CFI caches the walks have used as touched, also if no walk had to ask for the cache because the
 * first round got it unasked. */
static void take_used_tables(struct dump_walk *w)
{
    for (size_t i = 0; i < w->table_count; i++) {
        const struct walk_table *table = &w->tables[i];
        if (!table->is_used || table->is_symbols)
            continue;
        begin_use(w, table->module); /* starts a search for the module's symbols, if none was started yet */
        w->modules[table->module].cfi = w->results[i];
    }
}

/* ---- threads ---- */

/* Makes the walk of a thread. It begins by asking for the CFI cache of the module in which the thread was, if any. */
static struct thread_walk begin_thread(const struct sl_minidump *dump, size_t thread)
{
    struct thread_walk walk = {.thread = thread};
    struct sl_registers registers;
    struct sl_walk_numbers numbers;
    struct sl_walk_stack stack;
    sl_minidump_start(dump, thread, &registers, &stack);
    sl_walk_numbers(dump->threads[thread].family, &numbers);
    size_t module = sl_range_map_find(&dump->module_map, registers.value[numbers.pc]);
    if (module != SL_NO_RANGE) {
        walk.need = SL_WALK_NEED_CFI;
        walk.module = module;
    }
    return walk;
}

bool dump_walk_prepare(struct dump_walk *w)
{
    const struct sl_minidump *dump = w->dump;
    /* CFI cache and symbols of each module; + 1, so that arrays are never empty */
    size_t tables = 2 * dump->crash.module_count + 1;
    w->walks = SL_ARENA_ARRAY(&w->own, struct thread_walk, dump->crash.thread_count + 1);
    w->tables = SL_ARENA_ARRAY(&w->own, struct walk_table, tables);
    w->inputs = SL_ARENA_ARRAY(&w->own, struct converter_input, tables);
    w->results = SL_ARENA_ARRAY(&w->own, const struct search_result *, tables);
    if (!w->walks || !w->tables || !w->inputs || !w->results)
        return false;
    for (size_t i = 0; i < dump->crash.thread_count; i++)
        if (dump->threads[i].is_walked)
            w->walks[w->walk_count++] = begin_thread(dump, i);
    return sl_minidump_pack_stacks(dump, &w->stacks);
}

struct answer_reading {
    struct dump_walk *w;
    int fd;
};

/* Reads the converter's answer into w->walks and w->tables. */
static enum sl_code read_answer(void *arg, struct sl_error *error)
{
    const struct answer_reading *reading = arg;
    struct dump_walk *w = reading->w;
    struct sl_arena arena = {0};
    struct sl_bytes answer;
    enum sl_code code = crash_read_packed(reading->fd, &arena, &answer, error);
    if (code == SL_OK)
        code = walks_read_answer(answer, w->walks, w->live, w->tables, w->table_count, w->dump->crash.module_count,
                                 w->keeps_registers, &w->own, error);
    sl_arena_free(&arena);
    return code;
}

static void swap_walks(struct thread_walk *a, struct thread_walk *b)
{
    struct thread_walk kept = *a;
    *a = *b;
    *b = kept;
}

/* Moves the walks that are over behind the others, and reduces w->live to the number of others. */
static void drop_ended(struct dump_walk *w)
{
    for (size_t i = 0; i < w->live;)
        if (w->walks[i].need != SL_WALK_DONE)
            i++;
        else
            swap_walks(&w->walks[i], &w->walks[--w->live]);
}

/* Runs the converter for one round with the tables found so far, and reads its answer. A hostile stack can cause many rounds, in each of
 * which the converter reads the lists of modules and memory again, so their size is charged to the work budget of the walks, too. When the
 * budget is used up, the walks end where they are. */
static enum sl_code run_converter(struct dump_walk *w, int out, struct sl_buf *request, struct sl_error *error)
{
    walks_write_request(w->walks, w->live, w->tables, w->table_count, request);
    if (request->failed)
        return sl_fail(error, SL_BUSY, "out of memory");
    sl_budget_spend(&w->work, w->stacks.size + request->size);
    const struct conversion_description about = {.location = SL_STR("the stacks of a crash file"),
                                                 .size = w->dump->bytes.size + w->stacks.size};
    const struct walk_options options = {.steps = atomic_load(&w->work.steps),
                                         .frame_pointer_first = w->frame_pointer_first,
                                         .keeps_registers = w->keeps_registers,
                                         .compat = w->compat};
    struct walks_result result;
    struct converter_call call = {
        .tables = w->inputs, .table_count = w->found_count, .options = CONVERTER_OPTIONS(options), .out = out};
    converter_add_bytes(&call, INPUT_WALKS, sl_buf_bytes(request));
    converter_add_bytes(&call, INPUT_STACKS, sl_buf_bytes(&w->stacks));
    if (w->dump->bytes.data == w->file->form.parts[PART_FILE].data)
        crash_add_file(&call, w->file);
    else /* a microdump is text; its memory was decoded into other bytes */
        converter_add_bytes(&call, INPUT_FILE, w->dump->bytes);
    enum sl_code code = conversion_run(&about, &converter_walk, &call, &result, error);
    if (code != SL_OK)
        return code;
    if (result.steps < options.steps) /* the steps left; a worker's answer must not raise the budget */
        atomic_store(&w->work.steps, result.steps);
    if (result.out_of_work) /* makes w->work count as used up */
        sl_budget_spend(&w->work, UINT32_MAX);
    struct answer_reading reading = {w, out}; /* a small answer is read at once, on the event loop */
    return get_file_size(out) > MAX_ON_LOOP ? pool_call(POOL_WALK, read_answer, &reading, error)
                                            : read_answer(&reading, error);
}

/* Runs the converter once, with a file in memory for its output. */
static enum sl_code run_round(struct dump_walk *w, struct sl_error *error)
{
    struct sl_buf request = {0};
    int out = conversion_new_output("walks");
    if (out < 0)
        return sl_fail_errno(error, errno, "cannot create a file in memory for the output of a worker process");
    enum sl_code code = run_converter(w, out, &request, error);
    sl_buf_free(&request);
    close(out);
    return code;
}

/* Searches the tables that walks wait for and lets the walks go on, again and again, until all are over. */
static enum sl_code run_rounds(struct dump_walk *w, struct sl_error *error)
{
    w->live = w->walk_count;
    enum sl_code code = SL_OK;
    for (bool is_first = true; code == SL_OK && w->live; is_first = false) {
        code = find_wanted(w, error);
        if (code == SL_OK && is_first)
            offer_tables(w);
        if (code == SL_OK)
            code = run_round(w, error);
        if (code == SL_OK)
            take_used_tables(w);
        drop_ended(w);
    }
    return code;
}

/* Copies the first `count` frames of a finished walk, and their registers if they are kept, to the thread in the dump. False when out of
 * memory. */
static bool take_frames(struct dump_walk *w, const struct thread_walk *walk, size_t count)
{
    struct sl_crash_thread *thread = &w->dump->crash.threads[walk->thread];
    thread->frames = SL_ARENA_ARRAY(w->arena, struct sl_crash_frame, count);
    if (!thread->frames)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct sl_walk_frame *frame = &walk->frames[i];
        thread->frames[i] = (struct sl_crash_frame){.address = frame->resume,
                                                    .trust = (uint8_t)frame->trust,
                                                    /* a caller that was interrupted by a signal, not called */
                                                    .is_exact = i && frame->instruction == frame->resume};
    }
    thread->frame_count = count;
    if (w->keeps_registers) {
        struct sl_registers *registers = SL_ARENA_ARRAY(w->arena, struct sl_registers, count);
        if (!registers)
            return false;
        memcpy(registers, walk->registers, count * sizeof *registers);
        w->dump->threads[walk->thread].registers = registers;
    }
    return true;
}

SL_ORDER_BY(walk_by_thread, struct thread_walk, thread)

/* Copies the frames of all walks to the dump, in the order of the threads; with `compat` at most COMPAT_FRAMES of each. When max_frames are
 * reached, further threads get only their first frame. False when out of memory. */
static bool take_all(struct dump_walk *w)
{
    qsort(w->walks, w->walk_count, sizeof *w->walks, walk_by_thread);
    for (size_t i = 0; i < w->walk_count; i++) {
        size_t count = w->walks[i].frame_count, most = w->compat ? COMPAT_FRAMES : count;
        count = count < most ? count : most;
        count = w->max_frames || !count ? count : 1;
        if (!take_frames(w, &w->walks[i], count))
            return false;
        w->max_frames -= count < w->max_frames ? count : w->max_frames;
    }
    return true;
}

/* ---- the dump ---- */

/* Sets the unwind status of module `index` for the answer: "unused" if no walk touched the module. If the dump lacks its debug id or debug
 * file name and the CFI cache has them, adds them. */
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

/* Even after an error waits for the fibers that prefetch symbols, as they use `walk`. */
enum sl_code dump_walk(struct dump_walk *walk, struct sl_error *error)
{
    fiber_group_init(&walk->ahead, fiber_group_current());
    enum sl_code code = run_rounds(walk, error);
    if (code != SL_OK)
        fiber_group_cancel(&walk->ahead);
    fiber_group_wait(&walk->ahead);
    if (code == SL_OK && !take_all(walk))
        code = sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; code == SL_OK && i < walk->dump->crash.module_count; i++)
        take_module(walk, i);
    return code;
}

void dump_walk_release(struct dump_walk *walk)
{
    module_needs_release(&walk->needs);
    sl_arena_free(&walk->own);
    sl_buf_free(&walk->stacks);
}
