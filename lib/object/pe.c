/* PE executables: headers, identity, kind, features. */
#include "object/pe.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    FILE_DLL = 0x2000,
    MAGIC_PE32 = 0x10B,
    MAGIC_PE32_PLUS = 0x20B,
    SECTION_CODE = 0x20,
    SECTION_MORE_RELOCS = 0x01000000,
    SECTION_DISCARDABLE = 0x02000000,
    SECTION_EXECUTE = 0x20000000,
    SYMBOL_SIZE = 18,
    PORTABLE_PDB_MINOR = 0x504D,
};

struct headers {
    uint32_t offset; /* of "PE\0\0" */
    uint16_t machine, section_count, optional_size, characteristics;
    uint32_t time_stamp, symbol_offset, symbol_count, image_size;
    uint64_t optional_offset;
};

static enum sl_code pe_invalid(struct sl_error *error, const char *what, uint64_t offset)
{
    return sl_fail(error, SL_MALFORMED, "invalid PE file: %s at 0x%" PRIx64, what, offset);
}

enum sl_arch object_machine_arch(uint16_t machine)
{
    switch (machine) {
    case 0x014C: return SL_ARCH_X86;
    case 0x8664: return SL_ARCH_X86_64;
    case 0x01C0: /* ARM */
    case 0x01C4: /* ARMNT: Thumb-2 */ return SL_ARCH_ARM;
    case 0xAA64: /* ARM64 */
    case 0xA641: /* ARM64EC */ return SL_ARCH_ARM64;
    case 0x01F0: return SL_ARCH_PPC;
    default: return SL_ARCH_UNKNOWN;
    }
}

/* Reads the COFF header behind the DOS stub; the word at 0x3C is its offset. False if it is cut off or has another signature than "PE"; the
 * caller's error then names h->offset, which is always set. */
static bool read_file_header(struct sl_bytes file, struct headers *h)
{
    struct sl_reader r = sl_reader(file, false);
    sl_reader_seek(&r, 0x3C);
    h->offset = sl_read_u32(&r);
    sl_reader_seek(&r, h->offset);
    if (sl_read_u32(&r) != 0x4550) /* "PE\0\0" */
        return false;
    h->machine = sl_read_u16(&r);
    h->section_count = sl_read_u16(&r);
    h->time_stamp = sl_read_u32(&r);
    h->symbol_offset = sl_read_u32(&r);
    h->symbol_count = sl_read_u32(&r);
    h->optional_size = sl_read_u16(&r);
    h->characteristics = sl_read_u16(&r);
    h->optional_offset = sl_reader_offset(&r);
    return !r.failed;
}

/* Reads the optional header. The offsets of its fields depend on its magic: PE32+ has wider addresses than PE32. False if the magic is
 * unknown or the header is too short. */
static bool read_optional_header(struct sl_object *object, struct pe *pe, struct headers *h)
{
    bool inside;
    struct sl_bytes bytes = sl_bytes_slice(object->bytes, h->optional_offset, h->optional_size, &inside);
    struct sl_reader r = sl_reader(bytes, false);
    uint16_t magic = sl_read_u16(&r);
    if (!inside || (magic != MAGIC_PE32 && magic != MAGIC_PE32_PLUS))
        return false;
    bool wide = magic == MAGIC_PE32_PLUS;
    object->info.is_64bit = wide;
    sl_reader_seek(&r, wide ? 24 : 28); /* ImageBase */
    object->info.load_address = wide ? sl_read_u64(&r) : sl_read_u32(&r);
    sl_reader_seek(&r, 56); /* SizeOfImage */
    h->image_size = sl_read_u32(&r);
    object->info.image_size = h->image_size;
    sl_reader_seek(&r, wide ? 108 : 92); /* NumberOfRvaAndSizes, then the directories */
    uint32_t count = sl_read_u32(&r);
    if (r.failed)
        return false;
    for (uint32_t i = 0; i < count && i < PE_DIRECTORIES && sl_reader_left(&r) >= 8; i++) {
        pe->directories[i].address = sl_read_u32(&r);
        pe->directories[i].size = sl_read_u32(&r);
    }
    return true;
}

/* Sets pe->symbols and the string table behind them, pe->strings; both stay empty if there are no symbols or they extend beyond the file.
 * pe->symbol_size is always set, because callers divide by it. */
void pe_find_symbols(const struct sl_object *object, struct pe *pe, uint32_t offset, uint32_t count,
                     uint32_t symbol_size)
{
    bool inside;
    uint64_t size = (uint64_t)count * symbol_size;
    pe->symbol_size = symbol_size;
    if (!offset)
        return;
    struct sl_bytes symbols = sl_bytes_slice(object->bytes, offset, size, &inside);
    if (!inside)
        return;
    pe->symbols = symbols;
    struct sl_reader r = sl_reader(object->bytes, false);
    sl_reader_seek(&r, offset + size);
    uint32_t length = sl_read_u32(&r);
    pe->strings = sl_bytes_slice(object->bytes, offset + size, length, NULL);
}

/* Returns the name at an offset of the string table. The table begins with its own length, so there is no name at offsets below 4. */
struct sl_str pe_string(const struct pe *pe, uint64_t offset, struct sl_account *account)
{
    return offset >= 4 ? sl_account_read_name(account, pe->strings, offset) : (struct sl_str){NULL, 0};
}

/* Returns the name of a section from the 8 bytes of its header. "/123" is a decimal offset in the string table, "//AAAAAA" an offset in
 * base 64. If the name has another form, or the string table has no name there, returns the name as it is in the header. */
static struct sl_str section_name(const struct pe *pe, struct sl_bytes raw, struct sl_account *account)
{
    struct sl_str name = {(const char *)raw.data, strnlen((const char *)raw.data, raw.size)};
    uint64_t offset = 0;
    if (name.size < 2 || name.data[0] != '/')
        return name;
    bool base64 = name.data[1] == '/';
    for (size_t i = base64 ? 2 : 1; i < name.size; i++) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        char c = name.data[i];
        const char *digit = base64 ? memchr(digits, c, 64) : NULL;
        if (base64 ? !digit : c < '0' || c > '9')
            return name;
        offset = base64 ? offset * 64 + (uint64_t)(digit - digits) : offset * 10 + (uint64_t)(c - '0');
    }
    struct sl_str text = pe_string(pe, offset, account);
    return text.size ? text : name;
}

bool pe_read_sections(struct sl_object *object, struct pe *pe, uint64_t offset, size_t count)
{
    struct sl_reader r = sl_reader(object->bytes, false);
    sl_reader_seek(&r, offset);
    if (r.failed || count > sl_reader_left(&r) / 40) /* bytes of a section header */
        return false;
    struct sl_account account = {.budget = object->budget};
    pe->sections = SL_ARENA_ARRAY(&object->arena, struct pe_section, count + 1);
    if (!pe->sections)
        return object_no_memory(object), false;
    for (size_t i = 0; i < count; i++) {
        struct pe_section *s = &pe->sections[i];
        struct sl_bytes name = sl_read_bytes(&r, 8);
        s->virtual_size = sl_read_u32(&r);
        s->address = sl_read_u32(&r);
        s->raw_size = sl_read_u32(&r);
        s->offset = sl_read_u32(&r);
        s->reloc_offset = sl_read_u32(&r);
        sl_read_u32(&r); /* offset of the line numbers */
        s->reloc_count = sl_read_u16(&r);
        sl_read_u16(&r); /* number of line numbers */
        /* alignment: 0 not stated, else 1 more than the power of two (IMAGE_SCN_ALIGN_...) */
        uint32_t characteristics = sl_read_u32(&r), alignment = characteristics >> 20 & 15;
        s->alignment = alignment ? 1u << (alignment - 1) : 1;
        s->more_relocs = characteristics & SECTION_MORE_RELOCS;
        s->executable = characteristics & (SECTION_CODE | SECTION_EXECUTE);
        s->discardable = characteristics & SECTION_DISCARDABLE;
        s->name = section_name(pe, name, &account);
        s->cut_name = s->name.size == 8 && (const uint8_t *)s->name.data == name.data; /* fills the field */
    }
    pe->section_count = count;
    return true;
}

/* Sets the code id, under which symbol servers store images: the time stamp with 8 digits, then the image size without leading zeros. */
static void set_code_id(struct sl_object *object, const struct headers *h)
{
    char text[32];
    int size = snprintf(text, sizeof text, "%08x%x", h->time_stamp, h->image_size);
    char *copy = sl_arena_strndup(&object->arena, text, (size_t)size);
    if (!copy)
        object_no_memory(object);
    object->info.code_id = (struct sl_str){copy, copy ? (size_t)size : 0};
}

/* Reads entry `index` of the debug directory (IMAGE_DEBUG_DIRECTORY); false behind the last one, or if the directory is cut off. */
bool pe_debug_entry(const struct sl_object *object, size_t index, struct pe_debug_entry *entry)
{
    enum { ENTRY = 28 };
    const struct pe *pe = object->impl;
    const struct pe_directory *directory = &pe->directories[PE_DEBUG];
    if (index >= directory->size / ENTRY)
        return false;
    struct sl_reader r = sl_reader(pe_at(object, directory->address), false);
    sl_reader_seek(&r, index * ENTRY);
    sl_read_u32(&r); /* characteristics */
    entry->time_stamp = sl_read_u32(&r);
    sl_read_u16(&r); /* major version */
    entry->minor = sl_read_u16(&r);
    entry->type = sl_read_u32(&r);
    entry->size = sl_read_u32(&r);
    entry->address = sl_read_u32(&r);
    entry->offset = sl_read_u32(&r);
    return !r.failed;
}

static struct sl_str record_path(struct sl_reader *r)
{
    struct sl_bytes rest = sl_read_bytes(r, sl_reader_left(r));
    return sl_cstr_at(rest, 0);
}

/* Sets the debug id and the debug file by a CodeView record. RSDS: GUID, age, path. NB10 (PDB 2.0): offset, time stamp, age, path. The age
 * of a Portable PDB is the time stamp of its debug directory entry, as on symbol servers. False for other records and truncated ones. */
static bool read_codeview(struct sl_bytes record, const struct pe_debug_entry *entry, struct sl_object_info *info)
{
    /* the first three numbers of a GUID are little-endian in the file, and big-endian in a debug id */
    static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    struct sl_reader r = sl_reader(record, false);
    struct sl_debug_id id = {0};
    uint32_t signature = sl_read_u32(&r);
    if (signature == 0x53445352) { /* "RSDS" */
        struct sl_bytes guid = sl_read_bytes(&r, 16);
        for (size_t i = 0; i < guid.size; i++)
            id.uuid[i] = guid.data[order[i]];
        id.age = sl_read_u32(&r);
        if (entry->minor == PORTABLE_PDB_MINOR)
            id.age = entry->time_stamp;
    } else if (signature == 0x3031424E) { /* "NB10" */
        sl_read_u32(&r);                  /* offset, always 0 */
        struct sl_bytes stamp = sl_read_bytes(&r, 4);
        for (size_t i = 0; i < stamp.size; i++)
            id.uuid[i] = stamp.data[3 - i];
        id.age = sl_read_u32(&r);
        id.pdb20 = true;
    } else {
        return false;
    }
    if (r.failed)
        return false;
    info->debug_id = id;
    info->debug_file = record_path(&r);
    return true;
}

/* Sets the debug id by the first readable CodeView record. If there is none at an entry's file offset, the one at its RVA is tried: a tool
 * may have moved the sections without updating the offset. */
static void set_debug_id(struct sl_object *object)
{
    struct pe_debug_entry entry;
    for (size_t i = 0; pe_debug_entry(object, i, &entry); i++) {
        if (entry.type != PE_DEBUG_CODEVIEW)
            continue;
        struct sl_bytes mapped = pe_at(object, entry.address);
        mapped.size = mapped.size < entry.size ? mapped.size : entry.size;
        if (read_codeview(sl_bytes_slice(object->bytes, entry.offset, entry.size, NULL), &entry, &object->info) ||
            read_codeview(mapped, &entry, &object->info))
            return;
    }
}

/* True for a stub: headers with a .stub section and without the contents of .pdata, whose full file is on a symbol server. */
static bool is_stub(const struct pe *pe)
{
    bool stub = false, empty = false;
    for (size_t i = 0; i < pe->section_count; i++) {
        stub = stub || sl_str_starts(pe->sections[i].name, SL_STR(".stub"));
        empty = empty || (sl_str_equal(pe->sections[i].name, SL_STR(".pdata")) && !pe->sections[i].raw_size);
    }
    return stub && empty;
}

/* True if the file has DWARF, as MinGW and Go write it. CodeView does not count: it is in a PDB of its own. */
static bool has_debug_info(const struct pe *pe)
{
    for (size_t i = 0; i < pe->section_count; i++) {
        const struct pe_section *s = &pe->sections[i];
        if (s->offset && s->raw_size &&
            (sl_str_equal(s->name, SL_STR(".debug_info")) || sl_str_equal(s->name, SL_STR(".zdebug_info"))))
            return true;
    }
    return false;
}

/* Opens an image. If a function runs out of memory, the error here is wrong (such as "section headers extend beyond the file"), but the
 * object records the lack of memory, and open_object() reports that instead. */
static enum sl_code pe_open(struct sl_object *object, struct sl_error *error)
{
    struct headers h = {0};
    struct pe *pe = SL_ARENA_NEW(&object->arena, struct pe);
    if (!pe)
        return sl_fail(error, SL_BUSY, "out of memory");
    object->impl = pe;
    if (!read_file_header(object->bytes, &h))
        return pe_invalid(error, "bad file header", h.offset);
    if (!read_optional_header(object, pe, &h))
        return pe_invalid(error, "bad optional header", h.optional_offset);
    pe_find_symbols(object, pe, h.symbol_offset, h.symbol_count, SYMBOL_SIZE);
    if (!pe_read_sections(object, pe, h.optional_offset + h.optional_size, h.section_count) ||
        !pe_index_sections(object))
        return pe_invalid(error, "section headers extend beyond the file", h.optional_offset + h.optional_size);
    bool stub = is_stub(pe);
    struct sl_object_info *info = &object->info;
    info->arch = object_machine_arch(h.machine);
    info->decorates = info->arch == SL_ARCH_X86; /* C names have a `_` in front and the like */
    info->kind = h.characteristics & FILE_DLL ? SL_KIND_LIB : stub ? SL_KIND_OTHER : SL_KIND_EXE;
    set_code_id(object, &h);
    set_debug_id(object);
    /* the headers of a debug companion still point to the table that was stripped */
    const struct pe_directory *exceptions = &pe->directories[PE_EXCEPTIONS];
    info->features.has_unwind_info =
        !stub && exceptions->address && exceptions->size && pe_at(object, exceptions->address).size;
    info->features.has_debug_info = has_debug_info(pe);
    struct sl_bytes link;
    if (pe_section_bytes(object, "gnu_debuglink", &link, NULL))
        object_set_debug_link(object, link);
    info->features.has_symbols = pe_has_symbols(object) || object_has_go_table(object);
    return SL_OK;
}

struct sl_bytes sl_object_exceptions(const struct sl_object *object)
{
    if (object->info.format != SL_FORMAT_PE)
        return (struct sl_bytes){NULL, 0};
    const struct pe_directory *d = &((const struct pe *)object->impl)->directories[PE_EXCEPTIONS];
    return d->address ? sl_bytes_part(pe_at(object, d->address), 0, d->size) : (struct sl_bytes){NULL, 0};
}

const struct object_format sl_object_pe = {
    .open = pe_open,
    .section = pe_section_bytes,
    .section_info = pe_section_info,
    .segment = pe_segment,
    .at = pe_at,
    .contents = pe_contents,
    .symbols = pe_symbols,
    .data_symbols = pe_data_symbols,
};
