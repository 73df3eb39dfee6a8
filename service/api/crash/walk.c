#include "api/crash/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/order.h"
#include "conversion/crashes.h"
#include "core/pool.h"

enum {
    MAX_AT_ONCE = 64, /* look-ups */
    COMPAT_FRAMES = 256,
    MAX_ON_LOOP = 64 << 10,       /* bytes of an answer that the loop reads */
    MAX_FORGOTTEN = 64,           /* how often the tables may be dropped because they are too many */
    MAX_OFFERED = 48,             /* tables that the first round gets without having asked for them */
    MAX_PEEKED = 256,             /* modules whose tables may be offered: each is a look-up in memory */
    MAX_OFFERED_BYTES = 64 << 20, /* together: what is offered counts towards the limit of a worker's input */
};

/* ---- modules ---- */

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

/* Adds a table of the module to those that the walks get; `table` NULL: there is none. Addresses of the module and of its table differ
 * by the size of segments that a tool put in front (symbol_table_base). */
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
    bool is_whole = table->bytes.data == found->item->mapping.bytes.data;
    w->inputs[w->found_count++] =
        (struct converter_input){table->bytes, -1, INPUT_TABLE, is_whole ? found->item->place : NULL};
}

/* Returns the table that a look-up has found; NULL if it found none. */
static const struct sl_table *table_of(const struct search_result *found, bool is_symbols)
{
    if (is_symbols)
        return found->symcache ? &found->symcache->table : NULL;
    const struct sl_cfi *cfi = found->item ? found->item->loaded : NULL;
    return cfi ? &cfi->table : NULL;
}

/* Called with the first use of a module: its symbols are prefetched, as they will be needed for its frames. */
static void begin_use(struct dump_walk *w, size_t index)
{
    if (w->modules[index].is_asked)
        return;
    w->modules[index].is_asked = true;
    start_symbol_prefetch(w, index);
}

/* Looks up the unwind rules of a module. */
static void find_cfi(struct dump_walk *w, size_t index)
{
    begin_use(w, index);
    const struct search_result *found = walk_find(w, index, &search_unwind_target);
    if (!found)
        return;
    w->modules[index].cfi = found;
    add_table(w, index, false, found, table_of(found, false));
}

/* Looks up the symbols of a module, which tell the walk where functions are. */
static void find_symbols(struct dump_walk *w, size_t index)
{
    const struct search_result *found = walk_find(w, index, choose_symbols_target(w, index));
    if (found)
        add_table(w, index, true, found, table_of(found, true));
}

struct wanted_table {
    struct dump_walk *w;
    size_t module;
    bool is_symbols;
};

static void find_table(void *arg)
{
    const struct wanted_table *wanted = arg;
    if (wanted->is_symbols)
        find_symbols(wanted->w, wanted->module);
    else
        find_cfi(wanted->w, wanted->module);
}

/* Drops the tables if those that are wanted now may not fit: walks then ask again for what they need. */
static enum sl_code make_room(struct dump_walk *w, size_t wanted, struct sl_error *error)
{
    if (w->found_count + wanted <= CONVERTER_MAX_TABLES || !w->found_count)
        return SL_OK;
    if (w->forgotten++ == MAX_FORGOTTEN)
        return sl_fail(error, SL_UNSUPPORTED, "the stacks touch too many modules at once");
    for (size_t i = 0; i < w->dump->crash.module_count; i++)
        w->modules[i].has[0] = w->modules[i].has[1] = false;
    w->table_count = w->found_count = 0;
    return SL_OK;
}

/* Collects what the walks need, each table once. SL_MALFORMED if a walk needs what it has. */
static enum sl_code collect_wanted(struct dump_walk *w, struct wanted_table *items, void **pointers, size_t *count,
                                   struct sl_error *error)
{
    *count = 0;
    for (size_t i = 0; i < w->live; i++) {
        struct walked_module *module = &w->modules[w->walks[i].module];
        bool is_symbols = w->walks[i].need == SL_WALK_NEED_SYMBOLS;
        if (w->walks[i].need == SL_WALK_DONE) /* only before the first round */
            continue;
        if (module->has[is_symbols])
            return sl_fail(error, SL_MALFORMED, "the reader gave no proper stacks for this file");
        if (module->wants[is_symbols] || *count == CONVERTER_MAX_TABLES)
            continue;
        module->wants[is_symbols] = true;
        items[*count] = (struct wanted_table){w, w->walks[i].module, is_symbols};
        pointers[*count] = &items[*count];
        ++*count;
    }
    for (size_t i = 0; i < *count; i++)
        w->modules[items[i].module].wants[items[i].is_symbols] = false;
    return SL_OK;
}

/* Looks up the tables that walks need. */
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
        return sl_fail(error, SL_CANCELLED, "cancelled");
    if (w->error.code)
        *error = w->error;
    return w->error.code;
}

/* ---- tables that are offered ---- */

/* Offers a table of a module if it is in memory. True if it is known now, also that there is none. */
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

/* Offers tables for the first round. Symbols are needed only where there are unwind rules, or the answer that there are none. */
static void offer_tables(struct dump_walk *w)
{
    uint64_t bytes = MAX_OFFERED_BYTES;
    size_t asked = w->table_count;
    if (w->found_count + MAX_OFFERED > CONVERTER_MAX_TABLES)
        return;
    for (size_t i = 0; i < w->dump->crash.module_count && i < MAX_PEEKED; i++) {
        if (w->table_count - asked + 2 > MAX_OFFERED)
            break;
        if (offer_table(w, i, false, &bytes))
            offer_table(w, i, true, &bytes);
    }
}

/* Treats the offered tables that walks have needed like those that they have asked for, for which this changes nothing. */
static void take_used_tables(struct dump_walk *w)
{
    for (size_t i = 0; i < w->table_count; i++) {
        const struct walk_table *table = &w->tables[i];
        if (!table->is_used || table->is_symbols)
            continue;
        begin_use(w, table->module);
        w->modules[table->module].cfi = w->results[i];
    }
}

/* ---- threads ---- */

/* Makes the walk of a thread. The first frame needs the rules of its module, whatever the stack is. */
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

/* Moves the walks that are over behind the others. */
static void drop_ended(struct dump_walk *w)
{
    for (size_t i = 0; i < w->live;)
        if (w->walks[i].need != SL_WALK_DONE)
            i++;
        else
            swap_walks(&w->walks[i], &w->walks[--w->live]);
}

/* Lets the walks go on with the tables. The converter reads the list of modules and memory in each round, and a stack may be made to
 * name another module in each, so this is work of the walks, too. When the work is used up, they end where they are. */
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
    else
        converter_add_bytes(&call, INPUT_FILE, w->dump->bytes); /* what was made of a microdump */
    enum sl_code code = conversion_run(&about, &converter_walk, &call, &result, error);
    if (code != SL_OK)
        return code;
    if (result.steps < options.steps)
        atomic_store(&w->work.steps, result.steps);
    if (result.out_of_work)
        sl_budget_spend(&w->work, UINT32_MAX);
    struct answer_reading reading = {w, out};
    return get_file_size(out) > MAX_ON_LOOP ? pool_call(POOL_WALK, read_answer, &reading, error)
                                            : read_answer(&reading, error);
}

static enum sl_code run_round(struct dump_walk *w, struct sl_error *error)
{
    struct sl_buf request = {0};
    int out = conversion_new_output("walks");
    if (out < 0)
        return sl_fail_errno(error, errno, "cannot create a file in memory");
    enum sl_code code = run_converter(w, out, &request, error);
    sl_buf_free(&request);
    close(out);
    return code;
}

/* Walks until all threads are over. */
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

/* Takes the frames of a walk. False when out of memory. */
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

/* Takes the frames of all threads; beyond the limit only the first frame of each. False when out of memory. */
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

/* Walks all threads, then adds what the look-ups found out about the modules. */
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
