#include "crash/pack.h"

#include <string.h>

#include "base/json.h"

enum { MAX_TRUST = 7 /* the bits of sl_crash_frame.trust */, DEBUG_ID_BYTES = 16 + 8 + 1 };

/* ---- values ---- */

void sl_pack_text(struct sl_buf *out, struct sl_str text)
{
    sl_buf_u64(out, text.data ? text.size : UINT64_MAX);
    if (text.data)
        sl_buf_str(out, text);
}

struct sl_str sl_unpack_text(struct sl_reader *r)
{
    uint64_t size = sl_read_u64(r);
    if (r->failed || size == UINT64_MAX)
        return (struct sl_str){NULL, 0};
    struct sl_bytes bytes = sl_read_bytes(r, size);
    struct sl_str text = {(const char *)bytes.data, bytes.size};
    if (!r->failed && !sl_str_is_utf8(text))
        r->failed = true;
    return r->failed ? (struct sl_str){NULL, 0} : text;
}

uint64_t sl_unpack_number(struct sl_reader *r, uint64_t most)
{
    uint64_t number = sl_read_u64(r);
    r->failed = r->failed || number > most;
    return r->failed ? 0 : number;
}

bool sl_unpack_flag(struct sl_reader *r)
{
    uint8_t flag = sl_read_u8(r);
    r->failed = r->failed || flag > 1;
    return !r->failed && flag;
}

size_t sl_unpack_count(struct sl_reader *r, size_t least)
{
    return (size_t)sl_unpack_number(r, sl_reader_left(r) / least);
}

/* ---- writing ---- */

static void pack_frame(struct sl_buf *out, const struct sl_crash_frame *frame)
{
    sl_buf_u64(out, frame->address);
    sl_pack_text(out, frame->package);
    sl_pack_text(out, frame->function);
    sl_pack_text(out, frame->filename);
    sl_buf_u64(out, frame->symbol_offset);
    sl_buf_u64(out, frame->line);
    sl_buf_u64(out, frame->trust);
    sl_buf_u8(out, frame->is_exact);
}

static void pack_thread(struct sl_buf *out, const struct sl_crash_thread *thread)
{
    sl_buf_u64(out, thread->id);
    sl_buf_u8(out, thread->has_id);
    sl_buf_u64(out, thread->requesting);
    sl_pack_text(out, thread->name);
    sl_buf_u64(out, thread->register_count);
    for (size_t i = 0; i < thread->register_count; i++) {
        sl_pack_text(out, thread->registers[i].name);
        sl_buf_u64(out, thread->registers[i].value);
    }
    sl_buf_u64(out, thread->frame_count);
    for (size_t i = 0; i < thread->frame_count; i++)
        pack_frame(out, &thread->frames[i]);
}

static void pack_module(struct sl_buf *out, const struct sl_crash_module *module)
{
    sl_buf_u64(out, module->address);
    sl_buf_u64(out, module->size);
    sl_pack_text(out, module->code_file);
    sl_pack_text(out, module->debug_file);
    sl_pack_text(out, module->code_id);
    sl_pack_text(out, module->version);
    sl_buf_add(out, module->debug_id.uuid, sizeof module->debug_id.uuid);
    sl_buf_u64(out, module->debug_id.age);
    sl_buf_u8(out, module->debug_id.pdb20);
    sl_buf_u8(out, module->has_debug_id);
    sl_buf_u64(out, module->list_index);
}

static void pack_extras(struct sl_buf *out, const struct sl_crash_extra *extras, size_t count)
{
    sl_buf_u64(out, count);
    for (size_t i = 0; i < count; i++) {
        sl_pack_text(out, extras[i].name);
        sl_pack_text(out, extras[i].json);
    }
}

void sl_crash_pack(const struct sl_crash *crash, struct sl_buf *out)
{
    const struct sl_crash_system *system = &crash->system;
    sl_pack_text(out, system->os_name);
    sl_pack_text(out, system->os_version);
    sl_pack_text(out, system->os_build);
    sl_pack_text(out, system->device_model);
    sl_buf_u64(out, system->arch);
    sl_buf_u8(out, crash->crashed);
    sl_buf_u8(out, crash->has_timestamp);
    sl_buf_u64(out, (uint64_t)crash->timestamp);
    sl_pack_text(out, crash->reason);
    sl_pack_text(out, crash->details);
    sl_pack_text(out, crash->assertion);
    sl_buf_u64(out, crash->format);
    sl_buf_u64(out, crash->thread_count);
    for (size_t i = 0; i < crash->thread_count; i++)
        pack_thread(out, &crash->threads[i]);
    sl_buf_u64(out, crash->module_count);
    for (size_t i = 0; i < crash->module_count; i++)
        pack_module(out, &crash->modules[i]);
    pack_extras(out, crash->extras, crash->extra_count);
    pack_extras(out, crash->members, crash->member_count);
}

/* ---- reading ---- */

struct unpacking_crash {
    struct sl_reader *r;
    struct sl_arena *arena;
    bool no_memory;
};

/* Reads the length of a list of items of at least `least` bytes, and allocates it; NULL if that fails. */
static void *unpack_list(struct unpacking_crash *u, size_t least, size_t item_size, size_t *count)
{
    *count = sl_unpack_count(u->r, least);
    void *items = sl_arena_zalloc(u->arena, *count + 1, item_size);
    u->no_memory = u->no_memory || !items;
    if (!items || u->r->failed)
        *count = 0;
    return items;
}

static void unpack_frame(struct sl_reader *r, struct sl_crash_frame *frame)
{
    frame->address = sl_read_u64(r);
    frame->package = sl_unpack_text(r);
    frame->function = sl_unpack_text(r);
    frame->filename = sl_unpack_text(r);
    frame->symbol_offset = (uint32_t)sl_unpack_number(r, UINT32_MAX);
    frame->line = (uint32_t)sl_unpack_number(r, SL_CRASH_MAX_LINE) & SL_CRASH_MAX_LINE;
    frame->trust = (uint32_t)sl_unpack_number(r, MAX_TRUST - 1) & MAX_TRUST;
    frame->is_exact = sl_unpack_flag(r);
}

static void unpack_thread(struct unpacking_crash *u, struct sl_crash_thread *thread)
{
    struct sl_reader *r = u->r;
    thread->id = sl_read_u64(r);
    thread->has_id = sl_unpack_flag(r);
    thread->requesting = (enum sl_requesting_thread)sl_unpack_number(r, SL_REQUESTING_THREAD_YES);
    thread->name = sl_unpack_text(r);
    thread->registers = unpack_list(u, 16, sizeof *thread->registers, &thread->register_count);
    for (size_t i = 0; i < thread->register_count && !r->failed; i++) {
        thread->registers[i].name = sl_unpack_text(r);
        thread->registers[i].value = sl_read_u64(r);
    }
    thread->frames = unpack_list(u, 57, sizeof *thread->frames, &thread->frame_count);
    for (size_t i = 0; i < thread->frame_count && !r->failed; i++)
        unpack_frame(r, &thread->frames[i]);
}

static void unpack_module(struct sl_reader *r, struct sl_crash_module *module)
{
    module->address = sl_read_u64(r);
    module->size = sl_read_u64(r);
    module->code_file = sl_unpack_text(r);
    module->debug_file = sl_unpack_text(r);
    module->code_id = sl_unpack_text(r);
    module->version = sl_unpack_text(r);
    struct sl_bytes uuid = sl_read_bytes(r, sizeof module->debug_id.uuid);
    if (!r->failed)
        memcpy(module->debug_id.uuid, uuid.data, sizeof module->debug_id.uuid);
    module->debug_id.age = (uint32_t)sl_unpack_number(r, UINT32_MAX);
    module->debug_id.pdb20 = sl_unpack_flag(r);
    module->has_debug_id = sl_unpack_flag(r);
    module->list_index = (size_t)sl_read_u64(r);
}

/* True if the text is one JSON value: answers contain it as it is. */
static bool is_json(struct sl_str text)
{
    struct sl_arena arena = {0};
    struct sl_json j = sl_json(text, &arena, true);
    sl_json_skip(&j);
    bool good = sl_json_end(&j) && !j.failed;
    sl_arena_free(&arena);
    return good;
}

static void unpack_extra(struct sl_reader *r, struct sl_crash_extra *extra)
{
    extra->name = sl_unpack_text(r);
    extra->json = sl_unpack_text(r);
    r->failed = r->failed || !extra->name.data || !extra->json.data || !is_json(extra->json);
}

static struct sl_crash_extra *unpack_extras(struct unpacking_crash *u, size_t *count)
{
    struct sl_crash_extra *extras = unpack_list(u, 16, sizeof *extras, count);
    for (size_t i = 0; i < *count && !u->r->failed; i++)
        unpack_extra(u->r, &extras[i]);
    return extras;
}

static void unpack_lists(struct unpacking_crash *u, struct sl_crash *crash)
{
    crash->threads = unpack_list(u, 49, sizeof *crash->threads, &crash->thread_count);
    for (size_t i = 0; i < crash->thread_count && !u->r->failed; i++)
        unpack_thread(u, &crash->threads[i]);
    crash->modules = unpack_list(u, 56 + DEBUG_ID_BYTES, sizeof *crash->modules, &crash->module_count);
    for (size_t i = 0; i < crash->module_count && !u->r->failed; i++)
        unpack_module(u->r, &crash->modules[i]);
    crash->extras = unpack_extras(u, &crash->extra_count);
    crash->members = unpack_extras(u, &crash->member_count);
}

enum sl_code sl_crash_unpack(struct sl_reader *r, struct sl_arena *arena, struct sl_crash *crash,
                             struct sl_error *error)
{
    struct unpacking_crash u = {r, arena, false};
    struct sl_crash_system *system = &crash->system;
    *crash = (struct sl_crash){.crashed = false};
    system->os_name = sl_unpack_text(r);
    system->os_version = sl_unpack_text(r);
    system->os_build = sl_unpack_text(r);
    system->device_model = sl_unpack_text(r);
    system->arch = (enum sl_arch)sl_unpack_number(r, SL_ARCH_LOONGARCH64);
    crash->crashed = sl_unpack_flag(r);
    crash->has_timestamp = sl_unpack_flag(r);
    crash->timestamp = (int64_t)sl_read_u64(r);
    crash->reason = sl_unpack_text(r);
    crash->details = sl_unpack_text(r);
    crash->assertion = sl_unpack_text(r);
    crash->format = (enum sl_format)sl_unpack_number(r, SL_FORMAT_COFF);
    if (!r->failed)
        unpack_lists(&u, crash);
    if (u.no_memory)
        return sl_fail(error, SL_BUSY, "out of memory");
    return r->failed ? sl_fail(error, SL_MALFORMED, "the crash that was read from the file is damaged") : SL_OK;
}
