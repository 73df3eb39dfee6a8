/* Modules: addresses, names, and the ids by which their debug files are found. */
#include "minidump/impl.h"

#include <stdlib.h>

enum {
    UNLOADED_SIZE = 24,
    CODEVIEW_PDB70 = 0x53445352, /* "RSDS" */
    CODEVIEW_PDB20 = 0x3031424E, /* "NB10" */
    CODEVIEW_ELF = 0x4270454C,   /* Breakpad; the build id follows */
};

/* The identity of a module: time stamp and size of the image for Windows' servers, the CodeView record for debug files. */
struct module_record {
    uint32_t timestamp, size;
    struct sl_bytes codeview;
};

static bool is_apple(const struct sl_minidump *dump)
{
    return dump->os == SL_MINIDUMP_MACOS || dump->os == SL_MINIDUMP_IOS;
}

static bool is_linux(const struct sl_minidump *dump)
{
    return dump->os == SL_MINIDUMP_LINUX || dump->os == SL_MINIDUMP_ANDROID;
}

static bool is_zero(struct sl_bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        if (bytes.data[i])
            return false;
    return true;
}

/* Returns the bytes as hexadecimal digits. */
static struct sl_str module_hex(struct dump_reader *d, struct sl_bytes bytes)
{
    struct sl_buf buf = {.budget = d->arena->budget};
    sl_buf_hex(&buf, bytes.data, bytes.size);
    struct sl_str text = sl_buf_move_to_arena(&buf, d->arena);
    d->out_of_memory |= !text.data;
    return text;
}

/* Converts a GUID in the dump's byte order to big-endian bytes, the order of its text. */
static void read_guid(struct sl_reader *r, uint8_t uuid[16])
{
    uint32_t first = sl_read_u32(r);
    uint16_t second = sl_read_u16(r), third = sl_read_u16(r);
    struct sl_bytes rest = sl_read_bytes(r, 8);
    const uint8_t head[8] = {first >> 24, first >> 16, first >> 8, first, second >> 8, second, third >> 8, third};
    memcpy(uuid, head, 8);
    memset(uuid + 8, 0, 8);
    if (rest.size)
        memcpy(uuid + 8, rest.data, 8);
}

static struct sl_bytes get_rest(struct sl_reader *r)
{
    return sl_read_bytes(r, sl_reader_left(r));
}

/* Returns the code id that Windows' symbol servers use: time stamp and image size. */
static struct sl_str time_and_size(struct dump_reader *d, const struct module_record *record)
{
    return dump_printf(d, "%08x%x", record->timestamp, record->size);
}

/* Reads the record of a PDB: GUID, age, name. Other systems than Windows use it for their ids as well. */
static void identify_pdb70(struct dump_reader *d, const struct module_record *record, struct sl_reader *r,
                           struct sl_crash_module *module)
{
    read_guid(r, module->debug_id.uuid);
    module->debug_id.age = sl_read_u32(r);
    if (r->failed)
        return;
    struct sl_bytes uuid = {module->debug_id.uuid, 16};
    module->has_debug_id = !is_zero(uuid);
    if (is_apple(d->dump))
        module->code_id = module_hex(d, uuid);
    else if (!is_linux(d->dump)) /* on Linux the time stamp is meaningless */
        module->code_id = time_and_size(d, record);
    module->debug_file = dump_utf8(d, get_rest(r));
}

/* Reads the record of an old PDB, whose id is a time stamp in place of a GUID. */
static void identify_pdb20(struct dump_reader *d, const struct module_record *record, struct sl_reader *r,
                           struct sl_crash_module *module)
{
    sl_reader_skip(r, 4); /* offset */
    uint32_t timestamp = sl_read_u32(r), age = sl_read_u32(r);
    if (r->failed)
        return;
    module->debug_id = (struct sl_debug_id){
        .uuid = {timestamp >> 24, timestamp >> 16, timestamp >> 8, timestamp}, .age = age, .pdb20 = true};
    module->has_debug_id = true;
    module->code_id = time_and_size(d, record);
    module->debug_file = dump_utf8(d, get_rest(r));
}

/* Reads Breakpad's record of an ELF file: the build id. */
static void identify_elf(struct dump_reader *d, struct sl_reader *r, struct sl_crash_module *module)
{
    struct sl_bytes build_id = get_rest(r);
    module->debug_file = module->code_file; /* the record has no file name */
    if (is_zero(build_id) || !dump_charge(d, build_id.size))
        return;
    module->code_id = module_hex(d, build_id);
    module->debug_id = sl_debug_id_from_build_id(build_id, d->dump->big_endian);
    module->has_debug_id = true;
}

/* Sets debug id, code id and debug file of a module by its CodeView record. Windows writes no record for a module without debug
 * information: then only the code id, time stamp and size, is known. */
static void identify(struct dump_reader *d, const struct module_record *record, struct sl_crash_module *module)
{
    struct sl_reader r = dump_make_reader(d->dump, record->codeview);
    switch (sl_read_u32(&r)) {
    case CODEVIEW_PDB70: identify_pdb70(d, record, &r, module); break;
    case CODEVIEW_PDB20: identify_pdb20(d, record, &r, module); break;
    case CODEVIEW_ELF: identify_elf(d, &r, module); break;
    default:
        if (d->dump->os == SL_MINIDUMP_WINDOWS && !record->codeview.size)
            module->code_id = time_and_size(d, record);
    }
}

/* Reads VS_FIXEDFILEINFO: the version of the file. */
static void read_version(struct dump_reader *d, struct sl_reader *r, struct sl_crash_module *module)
{
    uint32_t signature = sl_read_u32(r);
    sl_reader_skip(r, 4); /* version of the structure */
    uint32_t high = sl_read_u32(r), low = sl_read_u32(r);
    sl_reader_skip(r, 36);       /* version of the product, flags, kind of file, date */
    if (signature == 0xFEEF04BD) /* VS_FFI_SIGNATURE: the module has this record */
        module->version = dump_printf(d, "%u.%u.%u.%u", high >> 16, high & 0xFFFF, low >> 16, low & 0xFFFF);
}

/* Reads an entry of the module list. Always reads all of its DUMP_MODULE_SIZE bytes, so that the next entry follows. Returns false if the
 * entry is invalid: without size or name, beyond the address space, or with a CodeView record outside of the file. */
static bool read_listed(struct dump_reader *d, struct sl_reader *r, struct sl_crash_module *module)
{
    struct sl_reader location;
    struct module_record record;
    *module = (struct sl_crash_module){.address = sl_read_u64(r)};
    module->size = record.size = sl_read_u32(r);
    sl_reader_skip(r, 4); /* checksum */
    record.timestamp = sl_read_u32(r);
    module->code_file = dump_string(d, sl_read_u32(r));
    read_version(d, r, module);
    /* looks at the record's size, which dump_location() reads again: with size 0 the module has no record, which is not invalid */
    location = *r;
    bool has_codeview = sl_read_u32(&location) != 0;
    record.codeview = dump_location(d->dump, r, NULL);
    sl_reader_skip(r, 24); /* miscellaneous record, reserved */
    if (!module->size || module->address + module->size < module->address || !module->code_file.data ||
        (has_codeview && !record.codeview.data))
        return false;
    identify(d, &record, module);
    return true;
}

/* Orders modules by begin, then by end, then as in the list, so that the order does not depend on qsort. */
static int by_address(const void *left, const void *right)
{
    const struct sl_crash_module *a = left, *b = right;
    uint64_t a_end = a->address + a->size, b_end = b->address + b->size;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return a_end != b_end ? (a_end < b_end ? -1 : 1)
                          : (a->list_index > b->list_index) - (a->list_index < b->list_index);
}

/* Sets dump->main_module to the module that had this index in the file's list, as sorting and dropping move it; NULL if it was dropped. */
static void find_main(struct sl_minidump *dump, size_t list_index)
{
    dump->main_module = NULL;
    for (size_t i = 0; i < dump->crash.module_count; i++)
        if (dump->crash.modules[i].list_index == list_index)
            dump->main_module = &dump->crash.modules[i];
}

/* Reads the list of unloaded modules; those without a size or name are left out. */
static void read_unloaded(struct dump_reader *d)
{
    struct sl_minidump *dump = d->dump;
    struct sl_reader r;
    size_t entry, count = dump_extended_list(dump, STREAM_UNLOADED_MODULES, UNLOADED_SIZE, false, &r, &entry);
    dump->unloaded = dump_alloc(d, count, sizeof *dump->unloaded);
    for (size_t i = 0; dump->unloaded && i < count; i++) {
        struct sl_reader one = r;
        struct sl_minidump_unloaded *unloaded = &dump->unloaded[dump->unloaded_count];
        unloaded->address = sl_read_u64(&one);
        unloaded->size = sl_read_u32(&one);
        sl_reader_skip(&one, 4); /* checksum */
        unloaded->timestamp = sl_read_u32(&one);
        unloaded->name = dump_string(d, sl_read_u32(&one));
        sl_reader_skip(&r, entry);
        dump->unloaded_count += unloaded->size && unloaded->name.data;
    }
}

/* Reads the loaded modules, sorted by address, and the unloaded ones. When out of memory, d->out_of_memory is set. */
void dump_read_modules(struct dump_reader *d)
{
    struct sl_crash *crash = &d->dump->crash;
    struct sl_reader r;
    size_t count = dump_list(d->dump, STREAM_MODULE_LIST, DUMP_MODULE_SIZE, &r);
    crash->modules = dump_alloc(d, count, sizeof *crash->modules);
    for (size_t i = 0; crash->modules && i < count; i++) {
        struct sl_crash_module *module = &crash->modules[crash->module_count];
        crash->module_count += read_listed(d, &r, module); /* if invalid, the next entry takes its place */
        module->list_index = i;
    }
    /* the program itself is the first valid module of the list */
    size_t main_index = crash->module_count ? crash->modules[0].list_index : 0;
    d->out_of_memory |= !sl_minidump_sort_modules(d->dump, main_index, d->arena);
    read_unloaded(d);
}

bool sl_minidump_sort_modules(struct sl_minidump *dump, size_t main_index, struct sl_arena *arena)
{
    struct sl_crash *crash = &dump->crash;
    if (crash->module_count)
        qsort(crash->modules, crash->module_count, sizeof *crash->modules, by_address);
    find_main(dump, main_index);
    return sl_minidump_map_modules(dump, arena);
}

bool sl_minidump_map_modules(struct sl_minidump *dump, struct sl_arena *arena)
{
    size_t count = dump->crash.module_count;
    struct sl_range *ranges = SL_ARENA_ARRAY(arena, struct sl_range, count + 1);
    for (size_t i = 0; ranges && i < count; i++) {
        const struct sl_crash_module *module = &dump->crash.modules[i];
        /* first address, last address, and whether it takes precedence where modules overlap */
        ranges[i] = (struct sl_range){module->address, module->address + module->size - 1, sl_crash_has_id(module)};
    }
    return ranges && sl_range_map_build(arena, ranges, count, &dump->module_map);
}

bool sl_minidump_drop_overlaps(struct sl_minidump *dump, struct sl_arena *arena)
{
    struct sl_crash_module *modules = dump->crash.modules;
    size_t main_index = dump->main_module ? dump->main_module->list_index : SIZE_MAX;
    size_t kept = 0;
    for (size_t i = 0; i < dump->crash.module_count; i++)
        if (!kept || modules[i].address > modules[kept - 1].address + modules[kept - 1].size - 1)
            modules[kept++] = modules[i];
    if (kept == dump->crash.module_count)
        return true;
    dump->crash.module_count = kept;
    find_main(dump, main_index); /* it has moved, or was dropped */
    return sl_minidump_map_modules(dump, arena);
}

const struct sl_crash_module *sl_minidump_module_at(const struct sl_minidump *dump, uint64_t address)
{
    size_t module = sl_range_map_find(&dump->module_map, address);
    return module == SL_NO_RANGE ? NULL : &dump->crash.modules[module];
}
