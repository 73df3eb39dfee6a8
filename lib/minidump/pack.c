/* Writes and reads a minidump as bytes for another process: what stack walks need of it. */
#include "minidump/pack.h"

/* ---- writing ---- */

/* Writes offset and size of the bytes in the dump's file; 0 and 0 for no bytes. */
static void pack_place(const struct sl_minidump *dump, struct sl_bytes bytes, struct sl_buf *out)
{
    sl_buf_u64(out, bytes.data && bytes.size ? (uint64_t)(bytes.data - dump->bytes.data) : 0);
    sl_buf_u64(out, bytes.data ? bytes.size : 0);
}

/* Writes the registers with which the walk of a thread begins; for a thread that is not walked, registers of which none is valid. */
static void pack_registers(const struct sl_minidump *dump, size_t thread, struct sl_buf *out)
{
    struct sl_registers registers = {.valid = 0};
    struct sl_walk_stack stack;
    if (dump->threads[thread].is_walked)
        sl_minidump_start(dump, thread, &registers, &stack);
    sl_registers_pack(&registers, out);
}

/* Writes what the walk of a thread begins with; unpack_thread() reads the same members in this order. */
static void pack_thread(const struct sl_minidump *dump, size_t index, struct sl_buf *out)
{
    const struct sl_minidump_thread *thread = &dump->threads[index];
    pack_registers(dump, index, out);
    sl_buf_u64(out, thread->family);
    sl_buf_u64(out, thread->stack.address);
    pack_place(dump, thread->stack.bytes, out);
    sl_buf_u8(out, thread->is_walked);
}

static void pack_system(const struct sl_minidump *dump, struct sl_buf *out)
{
    sl_buf_u64(out, dump->os);
    sl_buf_u8(out, dump->big_endian);
    sl_buf_u64(out, dump->family);
    sl_buf_u64(out, dump->address_mask);
}

/* Writes what stack walks need of each thread, and the list of memory. */
static void pack_threads(const struct sl_minidump *dump, struct sl_buf *out)
{
    for (size_t i = 0; i < dump->crash.thread_count; i++)
        pack_thread(dump, i, out);
    sl_buf_u64(out, dump->memory_count);
    for (size_t i = 0; i < dump->memory_count; i++) {
        sl_buf_u64(out, dump->memory[i].address);
        pack_place(dump, dump->memory[i].bytes, out);
    }
}

/* Writes the unloaded modules: address, size and name of each. */
static void pack_unloaded(const struct sl_minidump *dump, struct sl_packer *packer)
{
    struct sl_buf *out = packer->out;
    sl_buf_u64(out, dump->unloaded_count);
    for (size_t i = 0; i < dump->unloaded_count; i++) {
        sl_buf_u64(out, dump->unloaded[i].address);
        sl_buf_u64(out, dump->unloaded[i].size);
        sl_pack_text(packer, dump->unloaded[i].name);
    }
}

/* Sets the frames of each thread that would be walked to those that the client walked itself; none if it has none. False when out of
 * memory. */
static bool set_client_frames(struct sl_minidump *dump, const struct sl_minidump_client *client, struct sl_arena *arena)
{
    for (size_t i = 0; i < dump->crash.thread_count; i++) {
        struct sl_crash_thread *thread = &dump->crash.threads[i];
        size_t count = 0;
        thread->frames = NULL;
        thread->frame_count = 0;
        if (!dump->threads[i].is_walked)
            continue;
        if (!sl_minidump_client_frames(client, thread->id, arena, &thread->frames, &count) && count)
            return false;
        for (size_t k = 0; k < count; k++)
            thread->frames[k].trust = SL_TRUST_PREWALKED;
        thread->frame_count = count;
    }
    return true;
}

bool sl_minidump_pack(struct sl_minidump *dump, const struct sl_minidump_client *client, struct sl_arena *arena,
                      struct sl_buf *out)
{
    struct sl_packer packer = {.out = out};
    if (!set_client_frames(dump, client, arena))
        return false;
    sl_crash_pack(&dump->crash, &packer);
    sl_buf_u64(out, client->count);
    sl_buf_u8(out, dump->is_microdump);
    if (dump->is_microdump) {
        sl_buf_u64(out, dump->bytes.size);
        sl_buf_add(out, dump->bytes.data, dump->bytes.size);
    }
    pack_system(dump, out);
    pack_threads(dump, out);
    pack_unloaded(dump, &packer);
    sl_packer_free(&packer);
    return !out->failed;
}

bool sl_minidump_pack_stacks(const struct sl_minidump *dump, struct sl_buf *out)
{
    pack_system(dump, out);
    sl_buf_u64(out, dump->crash.module_count);
    for (size_t i = 0; i < dump->crash.module_count; i++) {
        sl_buf_u64(out, dump->crash.modules[i].address);
        sl_buf_u64(out, dump->crash.modules[i].size);
        sl_buf_u8(out, sl_crash_has_id(&dump->crash.modules[i]));
    }
    sl_buf_u64(out, dump->crash.thread_count);
    pack_threads(dump, out);
    return !out->failed;
}

/* ---- reading ---- */

/* Reads offset and size of bytes in the dump's file, and returns these bytes; data NULL for size 0. The reader fails if they lie
 * outside. */
static struct sl_bytes unpack_place(struct sl_reader *r, const struct sl_minidump *dump)
{
    uint64_t offset = sl_unpack_number(r, dump->bytes.size);
    uint64_t size = sl_unpack_number(r, dump->bytes.size - offset);
    return size ? (struct sl_bytes){dump->bytes.data + offset, (size_t)size} : (struct sl_bytes){NULL, 0};
}

/* True if the memory has bytes and does not reach beyond the address space. */
static bool is_valid_memory(const struct sl_minidump_memory *memory)
{
    return memory->bytes.size && memory->address + (memory->bytes.size - 1) >= memory->address;
}

/* Reads the registers with which the walk of a thread begins. False when out of memory. */
static bool unpack_registers(struct sl_reader *r, struct sl_arena *arena, struct sl_minidump_thread *thread)
{
    struct sl_registers *registers = SL_ARENA_NEW(arena, struct sl_registers);
    if (!registers)
        return false;
    sl_registers_unpack(r, registers);
    thread->initial = registers;
    return true;
}

/* Reads what pack_thread() wrote of a thread. Frames that it has already are those that the client walked itself (sl_minidump_pack): they
 * move to thread->prewalked, so that the stack walk can fill in its own. False if out of memory. */
static bool unpack_thread(struct sl_reader *r, struct sl_arena *arena, struct sl_minidump *dump, size_t index)
{
    struct sl_minidump_thread *thread = &dump->threads[index];
    struct sl_crash_thread *known = &dump->crash.threads[index];
    if (!unpack_registers(r, arena, thread))
        return false;
    thread->family = (enum sl_cpu_family)sl_unpack_number(r, SL_CPU_LOONGARCH64); /* the greatest value */
    thread->stack.address = sl_read_u64(r);
    thread->stack.bytes = unpack_place(r, dump);
    thread->is_walked = sl_unpack_flag(r);
    thread->prewalked = known->frames;
    thread->prewalked_count = known->frame_count;
    known->frames = NULL;
    known->frame_count = 0;
    return true;
}

/* Reads the memory regions; fails the reader if one is not valid, or if they are not sorted by address. */
static void unpack_memory(struct sl_reader *r, struct sl_minidump *dump)
{
    for (size_t i = 0; i < dump->memory_count && !r->failed; i++) {
        struct sl_minidump_memory *memory = &dump->memory[i];
        memory->address = sl_read_u64(r);
        memory->bytes = unpack_place(r, dump);
        r->failed = r->failed || !is_valid_memory(memory) || (i && memory->address <= memory[-1].address);
    }
}

/* Reads the list of unloaded modules, of at least 24 bytes each. False when out of memory. */
static bool unpack_unloaded(struct sl_unpacker *u, struct sl_minidump *dump)
{
    dump->unloaded_count = sl_unpack_count(&u->r, 24);
    /* + 1: NULL only when out of memory, not for 0 modules */
    dump->unloaded = SL_ARENA_ARRAY(u->arena, struct sl_minidump_unloaded, dump->unloaded_count + 1);
    if (!dump->unloaded)
        return false;
    for (size_t i = 0; i < dump->unloaded_count && !u->r.failed; i++) {
        dump->unloaded[i].address = sl_read_u64(&u->r);
        dump->unloaded[i].size = sl_read_u64(&u->r);
        dump->unloaded[i].name = sl_unpack_text(u);
    }
    return !u->no_memory;
}

/* True if the modules are sorted by address, have a size and do not reach beyond the address space. */
static bool has_valid_modules(const struct sl_crash *crash)
{
    for (size_t i = 0; i < crash->module_count; i++) {
        const struct sl_crash_module *module = &crash->modules[i];
        if (!module->size || module->address + (module->size - 1) < module->address ||
            (i && module->address < module[-1].address))
            return false;
    }
    return true;
}

/* Reads what stack walks need of each thread, and the list of memory. False when out of memory; malformed data fails the reader. */
static bool unpack_threads(struct sl_reader *r, struct sl_arena *arena, struct sl_minidump *dump)
{
    /* + 1 here and below: NULL only when out of memory, not for 0 items */
    dump->threads = SL_ARENA_ARRAY(arena, struct sl_minidump_thread, dump->crash.thread_count + 1);
    bool has_memory = dump->threads != NULL;
    for (size_t i = 0; has_memory && i < dump->crash.thread_count && !r->failed; i++)
        has_memory = unpack_thread(r, arena, dump, i);
    dump->memory_count = sl_unpack_count(r, 24); /* 24: address, offset, size */
    dump->memory = SL_ARENA_ARRAY(arena, struct sl_minidump_memory, dump->memory_count + 1);
    if (dump->memory)
        unpack_memory(r, dump);
    return has_memory && dump->memory;
}

static void unpack_system(struct sl_reader *r, struct sl_minidump *dump)
{
    dump->os = (enum sl_minidump_os)sl_unpack_number(r, SL_MINIDUMP_NACL);
    dump->big_endian = sl_unpack_flag(r);
    dump->family = (enum sl_cpu_family)sl_unpack_number(r, SL_CPU_LOONGARCH64);
    dump->address_mask = sl_read_u64(r);
}

enum sl_code sl_minidump_unpack(struct sl_bytes packed, struct sl_bytes bytes, struct sl_arena *arena,
                                struct sl_minidump *dump, uint64_t *client_count, struct sl_error *error)
{
    struct sl_unpacker u = {.r = sl_reader(packed, false), .arena = arena};
    *dump = (struct sl_minidump){.bytes = bytes};
    enum sl_code code = sl_crash_unpack(&u, &dump->crash, error);
    if (code != SL_OK)
        return code;
    *client_count = sl_read_u64(&u.r);
    dump->is_microdump = sl_unpack_flag(&u.r);
    if (dump->is_microdump) /* the minidump made from it in memory, which the log in `bytes` does not contain */
        dump->bytes = sl_read_bytes(&u.r, sl_read_u64(&u.r));
    unpack_system(&u.r, dump);
    bool has_memory = unpack_threads(&u.r, arena, dump) && unpack_unloaded(&u, dump);
    if (has_memory && (u.r.failed || sl_reader_left(&u.r) || !has_valid_modules(&dump->crash)))
        return sl_fail(error, SL_MALFORMED, "the process that read the minidump has handed over damaged data");
    return has_memory && sl_minidump_map_modules(dump, arena) ? SL_OK : sl_budget_fail(arena->budget, error);
}

enum sl_code sl_minidump_unpack_stacks(struct sl_bytes packed, struct sl_bytes bytes, struct sl_arena *arena,
                                       struct sl_minidump *dump, struct sl_error *error)
{
    enum { MODULE_BYTES = 17, THREAD_BYTES = 57 }; /* least size of a packed module and thread */
    struct sl_reader r = sl_reader(packed, false);
    *dump = (struct sl_minidump){.bytes = bytes};
    struct sl_crash *crash = &dump->crash;
    unpack_system(&r, dump);
    crash->module_count = sl_unpack_count(&r, MODULE_BYTES);
    /* + 1 here and below: NULL only when out of memory, not for 0 items */
    crash->modules = SL_ARENA_ARRAY(arena, struct sl_crash_module, crash->module_count + 1);
    for (size_t i = 0; crash->modules && i < crash->module_count; i++) {
        crash->modules[i].address = sl_read_u64(&r);
        crash->modules[i].size = sl_read_u64(&r);
        /* the id itself does not matter, only whether there is one: where modules overlap, an address belongs to one with an id */
        crash->modules[i].has_debug_id = sl_unpack_flag(&r);
        crash->modules[i].debug_id.uuid[0] = 1;
    }
    crash->thread_count = sl_unpack_count(&r, THREAD_BYTES);
    crash->threads = SL_ARENA_ARRAY(arena, struct sl_crash_thread, crash->thread_count + 1);
    bool has_memory = crash->modules && crash->threads && unpack_threads(&r, arena, dump);
    if (has_memory && (r.failed || sl_reader_left(&r) || !has_valid_modules(crash)))
        return sl_fail(error, SL_MALFORMED, "the process that read the minidump has handed over damaged stacks");
    return has_memory && sl_minidump_map_modules(dump, arena) ? SL_OK : sl_budget_fail(arena->budget, error);
}
