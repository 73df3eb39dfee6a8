/* Walks stacks in a converter: its requests and answers, and the walks with the CFI caches and symcaches of a request. */
#include "conversion/walks.h"

#include "base/grow.h"
#include "minidump/pack.h"
#include "symcache/symcache.h"

/* ---- requests to walk stacks, from the service to a converter ----
 *
 *     u32 number of tables (CFI caches and symcaches), for each: u32 module, u8 is_symbols, u8 is_found, u64 ahead
 *     u32 number of stack walks, for each: u32 thread, state of the walk (sl_walk_pack)
 *
 * ---- its answers ----
 *
 *     for each table of the request: u8, 1 if a walk has needed the table
 *     for each walk: u8 need, u32 module that it needs something of, state of the walk (sl_walk_pack), u32 number of new frames
 *         for each frame: u64 resume, u64 instruction, u8 trust, registers if they are kept */

/* The least number of bytes that one table, walk or frame takes in a request or answer: read_count checks the counts with them. */
enum { TABLE_BYTES = 14, WALK_BYTES = 50, FRAME_BYTES = 17 };

void walks_write_request(const struct thread_walk *walks, size_t walk_count, const struct walk_table *tables,
                         size_t table_count, struct sl_buf *out)
{
    sl_buf_u32(out, (uint32_t)table_count);
    for (size_t i = 0; i < table_count; i++) {
        sl_buf_u32(out, tables[i].module);
        sl_buf_u8(out, tables[i].is_symbols); /* true: a symcache; false: a CFI cache */
        sl_buf_u8(out, tables[i].is_found);   /* false: the module has no such table */
        sl_buf_u64(out, tables[i].ahead);
    }
    sl_buf_u32(out, (uint32_t)walk_count);
    for (size_t i = 0; i < walk_count; i++) {
        sl_buf_u32(out, (uint32_t)walks[i].thread);
        sl_walk_pack(&walks[i].saved, out);
    }
}

/* Reads how many items follow. If what is left has not `least` bytes for each of them, sets r->failed and returns 0. */
static uint32_t read_count(struct sl_reader *r, size_t least)
{
    uint32_t count = sl_read_u32(r);
    r->failed = r->failed || count > sl_reader_left(r) / least;
    return r->failed ? 0 : count;
}

/* Reads a number of one byte, which must not be greater than `most`: else sets r->failed and returns 0. */
static uint8_t read_small(struct sl_reader *r, uint8_t most)
{
    uint8_t value = sl_read_u8(r);
    r->failed = r->failed || value > most;
    return r->failed ? 0 : value;
}

/* ---- tables ---- */

/* A symcache in the form in which walks ask for symbols (struct sl_walk_symbols). */
struct walk_coverage {
    struct sl_walk_symbols base;
    struct sl_symcache table;
    uint64_t ahead; /* added to an address relative to the module to look it up in `table` */
};

/* True if the symcache has a function at the address, which is relative to the module. */
static bool is_covered(const struct sl_walk_symbols *symbols, uint64_t address)
{
    const struct walk_coverage *covered = (const struct walk_coverage *)symbols;
    struct sl_location location;
    return sl_symcache_lookup(&covered->table, address + covered->ahead, &location, 1) > 0;
}

/* Sets `*function` to the index of the function at the address, without inlining: it is the last of the inline chain. False if there is
 * none, or if the chain is longer than the buffer, so that its last element was not stored. */
static bool function_at(const struct sl_walk_symbols *symbols, uint64_t address, uint32_t *function)
{
    /* `symbols` is the first member (`base`) of a struct walk_coverage */
    const struct walk_coverage *covered = (const struct walk_coverage *)symbols;
    struct sl_location chain[SL_SYMCACHE_MAX_CHAIN];
    size_t count = sl_symcache_lookup(&covered->table, address + covered->ahead, chain, SL_SYMCACHE_MAX_CHAIN);
    if (!count || count > SL_SYMCACHE_MAX_CHAIN)
        return false;
    *function = chain[count - 1].function;
    return true;
}

/* True if both addresses, relative to the module, lie in one function of the symcache. */
static bool is_same_function(const struct sl_walk_symbols *symbols, uint64_t a, uint64_t b)
{
    uint32_t one, other;
    return function_at(symbols, a, &one) && function_at(symbols, b, &other) && one == other;
}

struct walks_work {
    struct conversion *conversion;
    const struct converter_call *call;
    const struct walk_options *options;
    struct sl_arena arena;
    struct sl_minidump dump;
    struct sl_walk_module *modules;
    struct walk_table *tables; /* CFI caches and symcaches that the request lists */
    uint32_t table_count;
    struct sl_budget work;
    struct sl_buf out;
};

/* Gives the module its CFI table. Without data in `bytes`, tells the walk that there is none, so that it does not ask again. The walk adds
 * `ahead` to an address relative to the module before it looks it up in the table. */
static enum sl_code set_cfi(struct walks_work *w, struct sl_walk_module *module, struct sl_bytes bytes, uint64_t ahead,
                            struct sl_error *error)
{
    struct sl_cfi *cfi = bytes.data ? SL_ARENA_NEW(&w->arena, struct sl_cfi) : NULL;
    if (bytes.data && !cfi)
        return sl_budget_fail(w->arena.budget, error);
    module->cfi_offset = ahead;
    enum sl_code code = cfi ? sl_cfi_open(bytes, cfi, error) : SL_OK;
    if (code == SL_OK)
        sl_walk_set_cfi(module, cfi);
    return code;
}

/* Gives the module its symcache, which the walk asks whether a possible return address lies in a function. Without data in `bytes`, tells
 * the walk that there is none. `ahead` is added to an address relative to the module to look it up in the symcache. */
static enum sl_code set_symbols(struct walks_work *w, struct sl_walk_module *module, struct sl_bytes bytes,
                                uint64_t ahead, struct sl_error *error)
{
    struct walk_coverage *covered = bytes.data ? SL_ARENA_NEW(&w->arena, struct walk_coverage) : NULL;
    if (bytes.data && !covered)
        return sl_budget_fail(w->arena.budget, error);
    if (covered)
        *covered = (struct walk_coverage){.base = {is_covered, is_same_function}, .ahead = ahead};
    enum sl_code code = covered ? sl_symcache_open(bytes, &covered->table, error) : SL_OK;
    if (code == SL_OK)
        sl_walk_set_symbols(module, covered ? &covered->base : NULL);
    return code;
}

/* Reads the list of tables (CFI caches and symcaches) in the request and gives each to its module. The request says of each whether it was
 * found; the found ones are the table inputs of the call, in the same order, so `next` counts them. */
static enum sl_code set_tables(struct walks_work *w, struct sl_reader *r, struct sl_error *error)
{
    uint32_t count = read_count(r, TABLE_BYTES);
    size_t next = 0;
    enum sl_code code = SL_OK;
    w->tables = SL_ARENA_ARRAY(&w->arena, struct walk_table, count + 1); /* + 1: never empty */
    if (!w->tables)
        return sl_budget_fail(w->arena.budget, error);
    for (uint32_t i = 0; i < count && code == SL_OK; i++) {
        uint32_t module = sl_read_u32(r);
        bool is_symbols = read_small(r, 1), is_found = read_small(r, 1); /* a byte each, 0 or 1 */
        uint64_t ahead = sl_read_u64(r);
        struct sl_bytes bytes = {NULL, 0};
        if (r->failed || module >= w->dump.crash.module_count || (is_found && next >= w->call->table_count))
            return sl_fail(error, SL_INTERNAL, "internal error: the stack walker got a damaged request");
        if (is_found)
            bytes = w->call->tables[next++].bytes;
        w->tables[w->table_count++] = (struct walk_table){.module = module, .is_symbols = is_symbols};
        code = is_symbols ? set_symbols(w, &w->modules[module], bytes, ahead, error)
                          : set_cfi(w, &w->modules[module], bytes, ahead, error);
    }
    return code;
}

/* ---- walks ---- */

/* Writes the frames that a walk has found so far, with their registers if the caller wants them. */
static void write_frames(struct walks_work *w, const struct sl_walk *walk)
{
    sl_buf_u32(&w->out, (uint32_t)walk->frame_count);
    for (size_t i = 0; i < walk->frame_count; i++) {
        sl_buf_u64(&w->out, walk->frames[i].resume);
        sl_buf_u64(&w->out, walk->frames[i].instruction);
        sl_buf_u8(&w->out, (uint8_t)walk->frames[i].trust);
        if (w->options->keeps_registers)
            sl_registers_pack(&walk->registers[i], &w->out);
    }
}

/* Writes which tables of the request the walks have needed, over the zero bytes that walk_all has put at the begin of the answer. */
static void write_uses(struct walks_work *w)
{
    for (uint32_t i = 0; i < w->table_count && !w->out.failed; i++) {
        const struct sl_walk_module *module = &w->modules[w->tables[i].module];
        w->out.data[i] = atomic_load(w->tables[i].is_symbols ? &module->uses_symbols : &module->uses_cfi);
    }
}

/* Walks one stack on from its saved state until it ends or needs a table; writes its new frames, its new state and what it needs. False
 * when out of memory. */
static bool walk_thread(struct walks_work *w, size_t thread, struct sl_walk_saved *saved)
{
    struct sl_walk_target target = sl_minidump_target(&w->dump, thread);
    struct sl_registers registers;
    struct sl_walk_stack stack;
    struct sl_arena arena = {.budget = w->arena.budget};
    size_t module = 0;
    target.frame_pointer_first = w->options->frame_pointer_first;
    target.keeps_registers = w->options->keeps_registers;
    target.compat = w->options->compat; /* true: the frames that Symbolicator gives */
    target.work = &w->work;
    sl_minidump_start(&w->dump, thread, &registers, &stack);
    if (!saved->frame_count) /* the walk has not begun: it starts from the registers of the thread */
        saved->registers = registers;
    /* NULL when out of memory */
    struct sl_walk *walk = sl_walk_resume(&arena, &target, w->modules, &w->dump.module_map, saved, &stack);
    enum sl_walk_need need = walk ? sl_walk_run(walk, &module) : SL_WALK_DONE;
    bool good = walk && !walk->out_of_memory;
    if (good) {
        sl_walk_save(walk, saved);
        sl_buf_u8(&w->out, (uint8_t)need);
        sl_buf_u32(&w->out, need == SL_WALK_DONE ? 0 : (uint32_t)module);
        sl_walk_pack(saved, &w->out);
        write_frames(w, walk);
    }
    sl_arena_free(&arena);
    return good && !w->out.failed;
}

/* Walks all stacks of the request as far as its tables allow. A worker process keeps nothing between two calls, so the request has the
 * saved state of each walk. */
static enum sl_code walk_all(struct walks_work *w, struct sl_error *error)
{
    struct sl_reader r = sl_reader(converter_input_bytes(w->call, INPUT_WALKS), false);
    size_t modules = w->dump.crash.module_count;
    w->modules = SL_ARENA_ARRAY(&w->arena, struct sl_walk_module, modules + 1); /* + 1: never empty */
    if (!w->modules)
        return sl_budget_fail(w->arena.budget, error);
    for (size_t i = 0; i < modules; i++) {
        w->modules[i].base = w->dump.crash.modules[i].address;
        w->modules[i].size = w->dump.crash.modules[i].size;
    }
    enum sl_code code = set_tables(w, &r, error);
    uint32_t count = code == SL_OK ? read_count(&r, WALK_BYTES) : 0;
    for (uint32_t i = 0; i < w->table_count; i++)
        sl_buf_u8(&w->out, 0); /* write_uses overwrites these bytes */
    for (uint32_t i = 0; i < count && code == SL_OK; i++) {
        struct sl_walk_saved saved;
        uint32_t thread = sl_read_u32(&r);
        sl_walk_unpack(&r, &saved);
        if (r.failed || thread >= w->dump.crash.thread_count)
            return sl_fail(error, SL_INTERNAL, "internal error: the stack walker got a damaged request");
        if (!walk_thread(w, thread, &saved))
            code = sl_budget_fail(w->arena.budget, error);
    }
    write_uses(w); /* no harm after a failure: the caller drops the answer then */
    return code;
}

/* The converter's function: continues the stack walks of the request, and writes their frames and new states. The walks share a budget of
 * steps of their own (`w.work`), so that the conversion succeeds, with shorter stacks, when it is used up. */
static enum sl_code walk(struct conversion *conversion, const struct converter_call *call, void *result,
                         struct sl_error *error)
{
    struct walks_result *found = result;
    struct walks_work w = {.conversion = conversion,
                           .call = call,
                           .options = converter_options(call),
                           .arena = {.budget = &conversion->budget},
                           .out = {.budget = &conversion->budget}};
    sl_budget_init(&w.work, 0);
    /* no memory limit: memory is charged to the budget of the conversion */
    sl_budget_limit(&w.work, 0, conversion->budget.expired, conversion->budget.arg);
    atomic_store(&w.work.steps, w.options->steps); /* replaces those that sl_budget_init sets by file size */
    enum sl_code code = sl_minidump_unpack_stacks(converter_input_bytes(call, INPUT_STACKS),
                                                  converter_input_bytes(call, INPUT_FILE), &w.arena, &w.dump, error);
    if (code == SL_OK)
        code = walk_all(&w, error);
    if (code == SL_OK)
        code = conversion_write(conversion, call, &w.out, error);
    int64_t left = atomic_load(&w.work.steps); /* may be negative: sl_budget_spend subtracts before it compares */
    found->steps = left < 0 ? 0 : left < w.options->steps ? left : w.options->steps;
    found->out_of_work = sl_budget_exhausted(&w.work);
    sl_buf_free(&w.out);
    sl_arena_free(&w.arena);
    return code;
}

/* Checks the result, which a worker process has sent and which is not trusted. */
static bool check_result(const void *result)
{
    const struct walks_result *found = result;
    return found->steps >= 0 && converter_bool_is_valid(&found->out_of_work);
}

const struct converter converter_walk = {"walk", sizeof(struct walk_options), sizeof(struct walks_result), walk,
                                         check_result};

/* ---- answers ---- */

/* Appends the new frames in the answer to the frames of the walk. False only when out of memory. Damaged frames set r->failed: every walk
 * has at least one frame, and the total must be the number in its saved state. */
static bool read_frames(struct sl_reader *r, struct thread_walk *walk, bool keeps_registers, struct sl_arena *arena)
{
    uint32_t count = read_count(r, FRAME_BYTES);
    size_t all = walk->frame_count + count;
    r->failed = r->failed || all != walk->saved.frame_count || !all;
    if (r->failed)
        return true;
    if (!sl_grow_in_arena(arena, &walk->frames, &walk->capacity, all, sizeof *walk->frames) ||
        (keeps_registers &&
         !sl_grow_in_arena(arena, &walk->registers, &walk->register_capacity, all, sizeof *walk->registers)))
        return false;
    for (; walk->frame_count < all; walk->frame_count++) {
        struct sl_walk_frame *frame = &walk->frames[walk->frame_count];
        frame->resume = sl_read_u64(r);
        frame->instruction = sl_read_u64(r);
        frame->trust = (enum sl_trust)read_small(r, SL_TRUST_CONTEXT); /* the greatest value */
        if (keeps_registers)
            sl_registers_unpack(r, &walk->registers[walk->frame_count]);
    }
    return true;
}

enum sl_code walks_read_answer(struct sl_bytes answer, struct thread_walk *walks, size_t count,
                               struct walk_table *tables, size_t table_count, size_t module_count, bool keeps_registers,
                               struct sl_arena *arena, struct sl_error *error)
{
    struct sl_reader r = sl_reader(answer, false);
    bool has_memory = true;
    for (size_t i = 0; i < table_count; i++)
        tables[i].is_used = read_small(&r, 1) || tables[i].is_used;
    for (size_t i = 0; i < count && has_memory && !r.failed; i++) {
        walks[i].need = (enum sl_walk_need)read_small(&r, SL_WALK_NEED_SYMBOLS); /* the greatest value */
        walks[i].module = sl_read_u32(&r);
        sl_walk_unpack(&r, &walks[i].saved);
        r.failed = r.failed || (walks[i].need != SL_WALK_DONE && walks[i].module >= module_count);
        has_memory = r.failed || read_frames(&r, &walks[i], keeps_registers, arena);
    }
    if (!has_memory)
        return sl_budget_fail(arena->budget, error);
    return r.failed || sl_reader_left(&r)
               ? sl_fail(error, SL_MALFORMED, "the stack walker gave a damaged answer for this file")
               : SL_OK;
}
