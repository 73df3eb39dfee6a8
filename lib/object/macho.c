/* Mach-O: header, load commands, identity, features. */
#include "object/macho.h"

#include "base/grow.h"

#include <inttypes.h>

enum {
    LC_SEGMENT = 0x1,
    LC_SYMTAB = 0x2,
    LC_DYSYMTAB = 0xB,
    LC_ID_DYLIB = 0xD,
    LC_SEGMENT_64 = 0x19,
    LC_UUID = 0x1B,
    VM_PROT_EXECUTE = 4,
    S_ATTR_SOME_INSTRUCTIONS = 0x400,
    CPU_X86 = 7,
    CPU_ARM = 12,
    CPU_POWERPC = 18,
    CPU_ABI64 = 0x01000000,
    CPU_ABI64_32 = 0x02000000,
};

static const uint32_t S_ATTR_PURE_INSTRUCTIONS = 0x80000000;
static const uint8_t fat_magic[] = {0xCA, 0xFE, 0xBA};

static enum sl_code macho_invalid(struct sl_error *error, const char *what, uint64_t offset)
{
    return sl_fail(error, SL_MALFORMED, "invalid MachO file: %s at 0x%" PRIx64, what, offset);
}

/* Reads a name of at most 16 bytes, padded with NULs. */
static struct sl_str read_name(struct sl_reader *r)
{
    struct sl_bytes field = sl_read_bytes(r, 16);
    size_t size = 0;
    while (size < field.size && field.data[size])
        size++;
    return (struct sl_str){(const char *)field.data, size};
}

static uint64_t read_word(struct sl_reader *r, bool is_64bit)
{
    return is_64bit ? sl_read_u64(r) : sl_read_u32(r);
}

/* Reads a section header, which is the same for 32 and 64 bits but for the width of words and a last reserved field. False if it extends
 * beyond its load command. */
static bool read_section(struct sl_reader *r, struct macho_section *s, bool wide)
{
    *s = (struct macho_section){0};
    s->name = read_name(r);
    s->segment_name = read_name(r);
    s->address = read_word(r, wide);
    s->size = read_word(r, wide);
    s->offset = sl_read_u32(r);
    sl_read_u32(r); /* alignment */
    s->reloc_offset = sl_read_u32(r);
    s->reloc_count = sl_read_u32(r);
    uint32_t flags = sl_read_u32(r);
    s->type = flags & 0xFF;
    s->has_code = flags & (S_ATTR_PURE_INSTRUCTIONS | S_ATTR_SOME_INSTRUCTIONS);
    s->first_indirect = sl_read_u32(r); /* reserved1 */
    s->stub_size = sl_read_u32(r);      /* reserved2 */
    sl_reader_skip(r, wide ? 4 : 0);
    return !r->failed;
}

/* Reads a segment and its sections from a load command. If the command is too short, the sections beyond its end are left out and the
 * object is marked as partial. False only when out of memory. */
static bool read_segment(struct sl_object *object, struct macho *macho, struct sl_reader *r, bool wide)
{
    struct sl_arena *arena = &object->arena;
    struct macho_segment segment = {.name = read_name(r)};
    segment.address = read_word(r, wide);
    segment.memory_size = read_word(r, wide);
    segment.offset = read_word(r, wide);
    segment.file_size = read_word(r, wide);
    sl_read_u32(r); /* maximum protection */
    segment.executable = sl_read_u32(r) & VM_PROT_EXECUTE;
    uint32_t sections = sl_read_u32(r);
    sl_read_u32(r); /* flags */
    if (r->failed) {
        object->info.partial = true;
        return true;
    }
    if (!sl_grow_in_arena(arena, &macho->segments, &macho->segment_capacity, macho->segment_count + 1, sizeof segment))
        return false;
    macho->segments[macho->segment_count++] = segment;
    for (uint32_t i = 0; i < sections; i++) {
        struct macho_section section;
        if (!read_section(r, &section, wide)) {
            object->info.partial = true;
            return true;
        }
        section.segment = (uint32_t)macho->segment_count - 1;
        if (!sl_grow_in_arena(arena, &macho->sections, &macho->section_capacity, macho->section_count + 1,
                              sizeof section))
            return false;
        macho->sections[macho->section_count++] = section;
    }
    return true;
}

/* Sets the code id and the debug id to the UUID. Both stay empty if the load command is too short. They also stay empty when out of memory;
 * object_hex() records that, so that opening the object fails. */
static void set_uuid(struct sl_object *object, struct sl_reader *r)
{
    struct sl_bytes uuid = sl_read_bytes(r, 16);
    struct sl_str hex = object_hex(object, uuid);
    if (!hex.size)
        return;
    object->info.code_id = hex;
    memcpy(object->info.debug_id.uuid, uuid.data, 16);
}

/* Reads a load command; `command` includes its type and size. Unknown commands are ignored. False only when out of memory. */
static bool read_command(struct sl_object *object, struct macho *macho, uint32_t type, struct sl_bytes command)
{
    struct sl_reader r = sl_reader(command, object->info.big_endian);
    sl_reader_skip(&r, 8); /* type and size */
    switch (type) {
    case LC_SEGMENT: return read_segment(object, macho, &r, false);
    case LC_SEGMENT_64: return read_segment(object, macho, &r, true);
    case LC_UUID:
        if (!object->info.code_id.size) /* of several UUIDs the first one counts */
            set_uuid(object, &r);
        return true;
    case LC_DYSYMTAB:
        sl_reader_seek(&r, 56); /* indirectsymoff */
        macho->indirect_offset = sl_read_u32(&r);
        macho->indirect_count = sl_read_u32(&r);
        return true;
    case LC_ID_DYLIB: /* the offset of the library's name in the command */
        object->info.debug_file = sl_cstr_at(command, sl_read_u32(&r));
        return true;
    case LC_SYMTAB:
        macho->symbol_offset = sl_read_u32(&r);
        macho->symbol_count = sl_read_u32(&r);
        macho->string_offset = sl_read_u32(&r);
        macho->string_size = sl_read_u32(&r);
        macho->has_symtab = !r.failed;
        return true;
    default: return true;
    }
}

/* Reads `count` load commands, together `size` bytes. Each begins with its type and size. SL_MALFORMED if they extend beyond the file or
 * beyond `size`, or if a command is shorter than its header; SL_BUSY when out of memory. */
static enum sl_code read_commands(struct sl_object *object, struct macho *macho, struct sl_reader *r, uint32_t count,
                                  uint32_t size, struct sl_error *error)
{
    if (size > sl_reader_left(r))
        return macho_invalid(error, "load commands extend beyond the file", sl_reader_offset(r));
    r->end = r->at + size; /* no command may extend beyond the list */
    for (uint32_t i = 0; i < count; i++) {
        struct sl_reader at = *r; /* a copy, as the command's bytes include the two words read here */
        uint64_t offset = sl_reader_offset(r);
        uint32_t type = sl_read_u32(&at), length = sl_read_u32(&at);
        if (at.failed || length < 8)
            return macho_invalid(error, "bad load command", offset);
        struct sl_bytes command = sl_read_bytes(r, length);
        if (r->failed)
            return macho_invalid(error, "load command extends beyond the list", offset);
        if (!read_command(object, macho, type, command))
            return sl_fail(error, SL_BUSY, "out of memory");
    }
    return SL_OK;
}

static const struct cpu_row {
    uint32_t type;
    int subtype; /* -1: any other */
    enum sl_arch arch;
} cpus[] = {
    {CPU_X86, 3, SL_ARCH_X86},
    {CPU_X86, -1, SL_ARCH_X86_UNKNOWN},
    {CPU_X86 | CPU_ABI64, 3, SL_ARCH_X86_64},
    {CPU_X86 | CPU_ABI64, 8, SL_ARCH_X86_64H},
    {CPU_X86 | CPU_ABI64, -1, SL_ARCH_X86_64_UNKNOWN},
    {CPU_ARM | CPU_ABI64, 0, SL_ARCH_ARM64},
    {CPU_ARM | CPU_ABI64, 1, SL_ARCH_ARM64V8},
    {CPU_ARM | CPU_ABI64, 2, SL_ARCH_ARM64E},
    {CPU_ARM | CPU_ABI64, -1, SL_ARCH_ARM64_UNKNOWN},
    {CPU_ARM | CPU_ABI64_32, 0, SL_ARCH_ARM64_32},
    {CPU_ARM | CPU_ABI64_32, 1, SL_ARCH_ARM64_32_V8},
    {CPU_ARM | CPU_ABI64_32, -1, SL_ARCH_ARM64_32_UNKNOWN},
    {CPU_ARM, 0, SL_ARCH_ARM},
    {CPU_ARM, 6, SL_ARCH_ARMV6},
    {CPU_ARM, 7, SL_ARCH_ARMV5},
    {CPU_ARM, 9, SL_ARCH_ARMV7},
    {CPU_ARM, 10, SL_ARCH_ARMV7F},
    {CPU_ARM, 11, SL_ARCH_ARMV7S},
    {CPU_ARM, 12, SL_ARCH_ARMV7K},
    {CPU_ARM, 14, SL_ARCH_ARMV6M},
    {CPU_ARM, 15, SL_ARCH_ARMV7M},
    {CPU_ARM, 16, SL_ARCH_ARMV7EM},
    {CPU_ARM, -1, SL_ARCH_ARM_UNKNOWN},
    {CPU_POWERPC, 0, SL_ARCH_PPC},
    {CPU_POWERPC | CPU_ABI64, 0, SL_ARCH_PPC64},
};

/* Returns the architecture. A negative subtype in the table matches all. The high byte of the file's subtype is ignored: it has
 * capabilities, such as the ABI version of arm64e. */
static enum sl_arch get_arch(const struct macho *macho)
{
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++)
        if (cpus[i].type == macho->cpu_type &&
            (cpus[i].subtype < 0 || (uint32_t)cpus[i].subtype == (macho->cpu_subtype & 0x00FFFFFF)))
            return cpus[i].arch;
    return SL_ARCH_UNKNOWN;
}

/* Maps the file type (mach-o/loader.h: 1 MH_OBJECT, 2 MH_EXECUTE, 3 MH_FVMLIB, 4 MH_CORE, 5 MH_PRELOAD, 6 MH_DYLIB, 7 MH_DYLINKER,
 * 8 MH_BUNDLE, 9 MH_DYLIB_STUB, 10 MH_DSYM, 11 MH_KEXT_BUNDLE) to a kind of object. */
static enum sl_object_kind get_object_kind(uint32_t file_type)
{
    static const enum sl_object_kind kinds[] = {
        [1] = SL_KIND_REL,   [2] = SL_KIND_EXE,  [3] = SL_KIND_LIB,  [4] = SL_KIND_DUMP,
        [5] = SL_KIND_EXE,   [6] = SL_KIND_LIB,  [7] = SL_KIND_EXE,  [8] = SL_KIND_LIB,
        [9] = SL_KIND_OTHER, [10] = SL_KIND_DBG, [11] = SL_KIND_LIB,
    };
    return file_type && file_type < sizeof kinds / sizeof *kinds ? kinds[file_type] : SL_KIND_OTHER;
}

/* Sets the load address to that of the first __TEXT segment, and the image size by the highest end of a segment. */
static void set_addresses(struct sl_object *object, const struct macho *macho)
{
    bool found = false;
    uint64_t end = 0;
    for (size_t i = 0; i < macho->segment_count; i++) {
        const struct macho_segment *s = &macho->segments[i];
        if (!found && sl_str_equal(s->name, SL_STR("__TEXT"))) {
            object->info.load_address = s->address;
            found = true;
        }
        /* __DWARF of a dSYM is after the image but is not part of it; __PAGEZERO is never mapped. */
        if (sl_str_equal(s->name, SL_STR("__PAGEZERO")) || sl_str_equal(s->name, SL_STR("__DWARF")))
            continue;
        if (s->address <= UINT64_MAX - s->memory_size && s->address + s->memory_size > end)
            end = s->address + s->memory_size;
    }
    object->info.image_size = end > object->info.load_address ? end - object->info.load_address : 0;
}

/* Sets the features by the sections that have contents: a stripped file may still have headers of sections that were removed. */
static void set_features(struct sl_object *object, const struct macho *macho)
{
    struct sl_features *f = &object->info.features;
    f->has_symbols = macho->has_symtab || object_has_go_table(object);
    for (size_t i = 0; i < macho->section_count; i++) {
        const struct macho_section *s = &macho->sections[i];
        struct sl_bytes bytes;
        if (!macho_raw(object, s, &bytes) || !bytes.size)
            continue;
        f->has_debug_info = f->has_debug_info || macho_section_named(s, SL_STR("debug_info"));
        f->has_unwind_info = f->has_unwind_info || macho_section_named(s, SL_STR("eh_frame")) ||
                             macho_section_named(s, SL_STR("debug_frame")) ||
                             macho_section_named(s, SL_STR("unwind_info"));
    }
}

/* Reads the header and the load commands. The magic, read as big-endian, is 0xFEEDFACE (32 bits) or 0xFEEDFACF (64 bits); in a
 * little-endian file its bytes are swapped. */
static enum sl_code macho_open(struct sl_object *object, struct sl_error *error)
{
    struct macho *macho = SL_ARENA_NEW(&object->arena, struct macho);
    if (!macho)
        return sl_fail(error, SL_BUSY, "out of memory");
    object->impl = macho;
    if (memcmp(object->bytes.data, fat_magic, sizeof fat_magic) == 0)
        return macho_invalid(error, "fat files must be opened as an archive", 0);
    struct sl_reader r = sl_reader(object->bytes, true);
    uint32_t magic = sl_read_u32(&r);
    object->info.big_endian = r.big_endian = magic >> 16 == 0xFEED;
    object->info.is_64bit = (magic & 0xFF) == 0xCF || magic >> 24 == 0xCF;
    macho->cpu_type = sl_read_u32(&r);
    macho->cpu_subtype = sl_read_u32(&r);
    macho->file_type = sl_read_u32(&r);
    uint32_t count = sl_read_u32(&r), size = sl_read_u32(&r);
    sl_reader_skip(&r, object->info.is_64bit ? 8 : 4); /* flags, and with 64 bits a reserved word */
    if (r.failed)
        return macho_invalid(error, "bad file header", 0);
    enum sl_code code = read_commands(object, macho, &r, count, size, error);
    if (code != SL_OK)
        return code;
    object->info.arch = get_arch(macho);
    object->info.kind = get_object_kind(macho->file_type);
    set_addresses(object, macho);
    set_features(object, macho);
    return SL_OK;
}

/* Describes section `index`; sections `__zdebug_*` are compressed with zlib. False behind the last one. */
static bool macho_section_info(struct sl_object *object, size_t index, struct sl_section_info *info)
{
    const struct macho *macho = object->impl;
    if (index >= macho->section_count)
        return false;
    const struct macho_section *s = &macho->sections[index];
    *info = (struct sl_section_info){.name = s->name,
                                     .address = s->address,
                                     .offset = s->offset,
                                     .size = s->size,
                                     .compression = macho_is_compressed(s) ? "zlib" : NULL};
    return true;
}

/* Returns segment `index`, with its address relative to the load address; false behind the last one. */
static bool macho_segment(const struct sl_object *object, size_t index, struct sl_segment *segment)
{
    const struct macho *macho = object->impl;
    if (index >= macho->segment_count)
        return false;
    const struct macho_segment *s = &macho->segments[index];
    *segment = (struct sl_segment){.address = s->address - object->info.load_address,
                                   .memory_size = s->memory_size,
                                   .bytes = sl_bytes_part(object->bytes, s->offset, s->file_size),
                                   .executable = s->executable};
    return true;
}

/* True if the address lies in a __text section, of any segment. */
static bool macho_holds_code(const struct sl_object *object, uint64_t address)
{
    const struct macho *macho = object->impl;
    for (size_t i = 0; i < macho->section_count; i++)
        if (sl_str_equal(macho->sections[i].name, SL_STR("__text")) &&
            address - macho->sections[i].address < macho->sections[i].size)
            return true;
    return false;
}

/* Gets the contents of section `index`, empty if they cannot be read; false behind the last one. They are hashed to make an id for a file
 * without UUID, which Breakpad does with all sections. */
static bool macho_contents(const struct sl_object *object, size_t index, struct sl_bytes *part)
{
    const struct macho *macho = object->impl;
    if (index >= macho->section_count)
        return false;
    if (!macho_raw(object, &macho->sections[index], part))
        *part = (struct sl_bytes){NULL, 0};
    return true;
}

const struct object_format sl_object_macho = {
    .open = macho_open,
    .section = macho_section_bytes,
    .section_info = macho_section_info,
    .segment = macho_segment,
    .holds_code = macho_holds_code,
    .contents = macho_contents,
    .symbols = macho_symbols,
    .data_symbols = macho_data_symbols,
};
