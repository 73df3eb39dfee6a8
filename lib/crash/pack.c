#include "crash/pack.h"

#include <string.h>

#include "base/grow.h"
#include "base/json.h"

enum {
    TRUST_MASK = 7, /* sl_crash_frame.trust has three bits; its values go up to 6 */
    /* The least number of bytes that each item takes: a count of more items than the bytes left can hold is refused before memory is
     * allocated. */
    NUMBER = 8,
    TEXT = 8, /* an absent one has only its size */
    FLAG = 1,
    REGISTER_BYTES = TEXT + NUMBER,
    FRAME_BYTES = 4 * NUMBER + 3 * TEXT + FLAG,
    THREAD_BYTES = 4 * NUMBER + TEXT + FLAG,
    DEBUG_ID_BYTES = 16 + NUMBER + FLAG,
    MODULE_BYTES = 3 * NUMBER + 4 * TEXT + DEBUG_ID_BYTES + FLAG,
    EXTRA_BYTES = 2 * TEXT,
    /* More than any reader of crash files makes. Hostile bytes could have many that share one long text, each of which is parsed. */
    MAX_EXTRAS = 64,
};

/* ---- values ---- */

/* Written instead of a text's size. no_text: its data is NULL. known_text: it was written before, and its number follows. */
static const uint64_t no_text = UINT64_MAX, known_text = UINT64_MAX - 1;

void sl_packer_free(struct sl_packer *packer)
{
    sl_map_free(&packer->texts);
    sl_arena_free(&packer->arena);
}

/* Returns the number plus 1 of a long text that was packed before; 0 if this one is new, which gets the next number. Two texts are the same
 * here if they are views of the same bytes in memory: the key of the map is the view itself, address and size. Sets packer->out->failed
 * when out of memory. */
static size_t find_packed_text(struct sl_packer *packer, struct sl_str text)
{
    struct sl_str key = {(const char *)&text, sizeof text};
    const void *known = sl_map_get(&packer->texts, key);
    if (known)
        return (size_t)(uintptr_t)known;
    packer->arena.budget = packer->texts.budget = packer->out->budget; /* both are still empty at the first call */
    key.data = sl_arena_strndup(&packer->arena, key.data, key.size);
    if (!key.data || !sl_map_put(&packer->texts, key, (void *)(uintptr_t)(packer->texts.count + 1)))
        packer->out->failed = true;
    return 0;
}

/* Writes the size and the bytes. Instead of the size stands `no_text` for data NULL, or `known_text` for a long text that was packed before
 * and whose number follows. */
void sl_pack_text(struct sl_packer *packer, struct sl_str text)
{
    size_t known = text.data && text.size >= SL_PACK_LONG ? find_packed_text(packer, text) : 0;
    sl_buf_u64(packer->out, !text.data ? no_text : known ? known_text : text.size);
    if (known)
        sl_buf_u64(packer->out, known - 1);
    else if (text.data)
        sl_buf_str(packer->out, text);
}

/* Gives a long text that was read the next number, by which later texts may refer to it. False when out of memory. */
static bool remember_text(struct sl_unpacker *u, struct sl_str text)
{
    if (!sl_grow_in_arena(u->arena, &u->texts, &u->text_capacity, u->text_count + 1, sizeof *u->texts))
        return false;
    u->texts[u->text_count++] = text;
    return true;
}

struct sl_str sl_unpack_text(struct sl_unpacker *u)
{
    struct sl_reader *r = &u->r;
    uint64_t size = sl_read_u64(r);
    if (r->failed || size == no_text)
        return (struct sl_str){NULL, 0};
    if (size == known_text) {
        uint64_t number = sl_read_u64(r);
        r->failed = r->failed || number >= u->text_count;
        return r->failed ? (struct sl_str){NULL, 0} : u->texts[number];
    }
    struct sl_bytes bytes = sl_read_bytes(r, size);
    struct sl_str text = {(const char *)bytes.data, bytes.size};
    if (!r->failed && !sl_str_is_utf8(text))
        r->failed = true;
    /* numbered in the order in which the packer numbered them */
    if (!r->failed && size >= SL_PACK_LONG && !remember_text(u, text))
        u->no_memory = true;
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

/* Writes a frame; unpack_frame() reads the same members in this order. */
static void pack_frame(struct sl_packer *p, const struct sl_crash_frame *frame)
{
    sl_buf_u64(p->out, frame->address);
    sl_pack_text(p, frame->package);
    sl_pack_text(p, frame->function);
    sl_pack_text(p, frame->filename);
    sl_buf_u64(p->out, frame->symbol_offset);
    sl_buf_u64(p->out, frame->line);
    sl_buf_u64(p->out, frame->trust);
    sl_buf_u8(p->out, frame->is_exact);
}

/* Writes a thread with its registers and frames; unpack_thread() reads the same members in this order. */
static void pack_thread(struct sl_packer *p, const struct sl_crash_thread *thread)
{
    sl_buf_u64(p->out, thread->id);
    sl_buf_u8(p->out, thread->has_id);
    sl_buf_u64(p->out, thread->requesting);
    sl_pack_text(p, thread->name);
    sl_buf_u64(p->out, thread->register_count);
    for (size_t i = 0; i < thread->register_count; i++) {
        sl_pack_text(p, thread->registers[i].name);
        sl_buf_u64(p->out, thread->registers[i].value);
    }
    sl_buf_u64(p->out, thread->frame_count);
    for (size_t i = 0; i < thread->frame_count; i++)
        pack_frame(p, &thread->frames[i]);
}

/* Writes a module; unpack_module() reads the same members in this order. */
static void pack_module(struct sl_packer *p, const struct sl_crash_module *module)
{
    sl_buf_u64(p->out, module->address);
    sl_buf_u64(p->out, module->size);
    sl_pack_text(p, module->code_file);
    sl_pack_text(p, module->debug_file);
    sl_pack_text(p, module->code_id);
    sl_pack_text(p, module->version);
    sl_buf_add(p->out, module->debug_id.uuid, sizeof module->debug_id.uuid);
    sl_buf_u64(p->out, module->debug_id.age);
    sl_buf_u8(p->out, module->debug_id.pdb20);
    sl_buf_u8(p->out, module->has_debug_id);
    sl_buf_u64(p->out, module->list_index);
}

/* Writes a list of names with JSON values; unpack_extras() reads it. */
static void pack_extras(struct sl_packer *p, const struct sl_crash_extra *extras, size_t count)
{
    sl_buf_u64(p->out, count);
    for (size_t i = 0; i < count; i++) {
        sl_pack_text(p, extras[i].name);
        sl_pack_text(p, extras[i].json);
    }
}

void sl_crash_pack(const struct sl_crash *crash, struct sl_packer *p)
{
    const struct sl_crash_system *system = &crash->system;
    sl_pack_text(p, system->os_name);
    sl_pack_text(p, system->os_version);
    sl_pack_text(p, system->os_build);
    sl_pack_text(p, system->device_model);
    sl_buf_u64(p->out, system->arch);
    sl_buf_u8(p->out, crash->crashed);
    sl_buf_u8(p->out, crash->has_timestamp);
    sl_buf_u64(p->out, (uint64_t)crash->timestamp);
    sl_pack_text(p, crash->reason);
    sl_pack_text(p, crash->details);
    sl_pack_text(p, crash->assertion);
    sl_buf_u64(p->out, crash->format);
    sl_buf_u64(p->out, crash->thread_count);
    for (size_t i = 0; i < crash->thread_count; i++)
        pack_thread(p, &crash->threads[i]);
    sl_buf_u64(p->out, crash->module_count);
    for (size_t i = 0; i < crash->module_count; i++)
        pack_module(p, &crash->modules[i]);
    pack_extras(p, crash->extras, crash->extra_count);
    pack_extras(p, crash->members, crash->member_count);
}

/* ---- reading ---- */

/* Reads the number of items of a list into `*count`, and returns a zeroed array for them. An item was written with at least `least` bytes
 * and takes `item_size` bytes in memory. NULL when out of memory. After any failure `*count` is 0, so that callers read no items. */
static void *unpack_list(struct sl_unpacker *u, size_t least, size_t item_size, size_t *count)
{
    *count = sl_unpack_count(&u->r, least);
    void *items = sl_arena_zalloc(u->arena, *count + 1, item_size);
    u->no_memory = u->no_memory || !items;
    if (!items || u->r.failed)
        *count = 0;
    return items;
}

/* Reads what pack_frame() wrote. The bytes come from a worker process that a hostile file may have taken over: a number above its limit
 * fails the reader. The masks show the compiler that the values fit into their bit-fields. */
static void unpack_frame(struct sl_unpacker *u, struct sl_crash_frame *frame)
{
    struct sl_reader *r = &u->r;
    frame->address = sl_read_u64(r);
    frame->package = sl_unpack_text(u);
    frame->function = sl_unpack_text(u);
    frame->filename = sl_unpack_text(u);
    frame->symbol_offset = (uint32_t)sl_unpack_number(r, UINT32_MAX);
    frame->line = (uint32_t)sl_unpack_number(r, SL_CRASH_MAX_LINE) & SL_CRASH_MAX_LINE;
    frame->trust = (uint32_t)sl_unpack_number(r, TRUST_MASK - 1) & TRUST_MASK; /* 0 to 6; 7 is not used */
    frame->is_exact = sl_unpack_flag(r);
}

/* Reads what pack_thread() wrote; bytes that are not valid fail the reader. */
static void unpack_thread(struct sl_unpacker *u, struct sl_crash_thread *thread)
{
    struct sl_reader *r = &u->r;
    thread->id = sl_read_u64(r);
    thread->has_id = sl_unpack_flag(r);
    thread->requesting = (enum sl_requesting_thread)sl_unpack_number(r, SL_REQUESTING_THREAD_YES);
    thread->name = sl_unpack_text(u);
    thread->registers = unpack_list(u, REGISTER_BYTES, sizeof *thread->registers, &thread->register_count);
    for (size_t i = 0; i < thread->register_count && !r->failed; i++) {
        thread->registers[i].name = sl_unpack_text(u);
        thread->registers[i].value = sl_read_u64(r);
    }
    thread->frames = unpack_list(u, FRAME_BYTES, sizeof *thread->frames, &thread->frame_count);
    for (size_t i = 0; i < thread->frame_count && !r->failed; i++)
        unpack_frame(u, &thread->frames[i]);
}

/* Reads what pack_module() wrote; bytes that are not valid fail the reader. */
static void unpack_module(struct sl_unpacker *u, struct sl_crash_module *module)
{
    struct sl_reader *r = &u->r;
    module->address = sl_read_u64(r);
    module->size = sl_read_u64(r);
    module->code_file = sl_unpack_text(u);
    module->debug_file = sl_unpack_text(u);
    module->code_id = sl_unpack_text(u);
    module->version = sl_unpack_text(u);
    struct sl_bytes uuid = sl_read_bytes(r, sizeof module->debug_id.uuid);
    if (!r->failed)
        memcpy(module->debug_id.uuid, uuid.data, sizeof module->debug_id.uuid);
    module->debug_id.age = (uint32_t)sl_unpack_number(r, UINT32_MAX);
    module->debug_id.pdb20 = sl_unpack_flag(r);
    module->has_debug_id = sl_unpack_flag(r);
    module->list_index = (size_t)sl_read_u64(r);
}

/* True if the text is one JSON value. Responses contain the text as it is, so anything else would damage them. */
static bool is_json(struct sl_str text)
{
    struct sl_arena arena = {0};
    struct sl_json j = sl_json(text, &arena, false);
    sl_json_skip(&j);
    bool good = sl_json_end(&j) && !j.failed;
    sl_arena_free(&arena);
    return good;
}

/* Reads a name and its JSON value; the reader fails if one is absent or the value is not JSON. */
static void unpack_extra(struct sl_unpacker *u, struct sl_crash_extra *extra)
{
    struct sl_reader *r = &u->r;
    extra->name = sl_unpack_text(u);
    extra->json = sl_unpack_text(u);
    r->failed = r->failed || !extra->name.data || !extra->json.data || !is_json(extra->json);
}

/* Reads a list of names with JSON values; a list of more than MAX_EXTRAS items fails the reader. */
static struct sl_crash_extra *unpack_extras(struct sl_unpacker *u, size_t *count)
{
    struct sl_crash_extra *extras = unpack_list(u, EXTRA_BYTES, sizeof *extras, count);
    u->r.failed = u->r.failed || *count > MAX_EXTRAS;
    for (size_t i = 0; i < *count && !u->r.failed; i++)
        unpack_extra(u, &extras[i]);
    return extras;
}

/* Reads the threads, modules, extras and members, which sl_crash_pack() wrote last. */
static void unpack_lists(struct sl_unpacker *u, struct sl_crash *crash)
{
    crash->threads = unpack_list(u, THREAD_BYTES, sizeof *crash->threads, &crash->thread_count);
    for (size_t i = 0; i < crash->thread_count && !u->r.failed; i++)
        unpack_thread(u, &crash->threads[i]);
    crash->modules = unpack_list(u, MODULE_BYTES, sizeof *crash->modules, &crash->module_count);
    for (size_t i = 0; i < crash->module_count && !u->r.failed; i++)
        unpack_module(u, &crash->modules[i]);
    crash->extras = unpack_extras(u, &crash->extra_count);
    crash->members = unpack_extras(u, &crash->member_count);
}

enum sl_code sl_crash_unpack(struct sl_unpacker *u, struct sl_crash *crash, struct sl_error *error)
{
    struct sl_reader *r = &u->r;
    struct sl_crash_system *system = &crash->system;
    *crash = (struct sl_crash){.crashed = false};
    system->os_name = sl_unpack_text(u);
    system->os_version = sl_unpack_text(u);
    system->os_build = sl_unpack_text(u);
    system->device_model = sl_unpack_text(u);
    system->arch = (enum sl_arch)sl_unpack_number(r, SL_ARCH_LOONGARCH64); /* the highest of the enumeration */
    crash->crashed = sl_unpack_flag(r);
    crash->has_timestamp = sl_unpack_flag(r);
    crash->timestamp = (int64_t)sl_read_u64(r);
    crash->reason = sl_unpack_text(u);
    crash->details = sl_unpack_text(u);
    crash->assertion = sl_unpack_text(u);
    crash->format = (enum sl_format)sl_unpack_number(r, SL_FORMAT_COFF); /* the highest of the enumeration */
    if (!r->failed)
        unpack_lists(u, crash);
    if (u->no_memory)
        return sl_fail(error, SL_BUSY, "out of memory");
    return r->failed ? sl_fail(error, SL_MALFORMED, "the process that read the crash file returned a damaged result")
                     : SL_OK;
}
