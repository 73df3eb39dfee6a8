/* Finds out, by the headers, which parts a file contains: for servers that hand out debug files, programs and single sections. */
#include "object/stored.h"

#include "object/elf.h"
#include "object/impl.h"

/* True for the names of DWARF sections, also of those that are compressed in the old form (.zdebug_*). */
static bool is_debug_section(struct sl_str name)
{
    return sl_str_starts(name, SL_STR(".debug_")) || sl_str_starts(name, SL_STR(".zdebug_"));
}

/* True for a loaded section whose contents are in the file, which shows that the file is the program. Debug files of `objcopy
 * --only-keep-debug` and `eu-strip -f` keep the headers of loaded sections, but as SHT_NOBITS. Notes do not count: debug files keep them,
 * because they have the build id. */
static bool is_loaded_content(const struct elf_section *s)
{
    return s->flags & SHF_ALLOC && s->size && s->type != SHT_NOBITS && s->type != SHT_NOTE;
}

/* True if the contents of an executable segment are inside the file; for programs without section headers. */
static bool has_code_segment(const struct sl_object *object)
{
    struct sl_load_header load;
    bool inside;
    for (size_t i = 0; sl_object_load_header(object, i, &load); i++) {
        sl_bytes_slice(object->bytes, load.offset, load.file_size, &inside);
        if (load.flags & SL_LOAD_EXECUTABLE && load.file_size && inside)
            return true;
    }
    return false;
}

/* Finds out which parts an ELF file contains. Sections of type SHT_NOBITS do not count, because their contents are in another file. In a
 * file without section headers, an executable segment with contents counts as code. */
static void elf_stored_parts(const struct sl_object *object, struct sl_stored_parts *parts)
{
    const struct elf *elf = object->impl;
    struct sl_bytes bytes;
    for (size_t i = 0; i < elf->section_count; i++) {
        const struct elf_section *s = &elf->sections[i];
        if (s->type == SHT_NOBITS || !elf_raw(object, s, &bytes))
            continue;
        parts->has_debug_sections = parts->has_debug_sections || is_debug_section(s->name);
        parts->has_symbol_table = parts->has_symbol_table || (s->type == SHT_SYMTAB && bytes.size);
        parts->has_code = parts->has_code || is_loaded_content(s);
    }
    if (!elf->section_count)
        parts->has_code = has_code_segment(object);
}

/* Finds out which parts a WebAssembly file contains. The section `name` is its symbol table; it has code if it has functions (KIND_LIB). */
static void wasm_stored_parts(struct sl_object *object, struct sl_stored_parts *parts)
{
    struct sl_section_info section;
    parts->has_code = object->info.kind == SL_KIND_LIB;
    for (size_t i = 0; sl_object_section_info(object, i, &section); i++) {
        parts->has_debug_sections = parts->has_debug_sections || is_debug_section(section.name);
        parts->has_symbol_table = parts->has_symbol_table || sl_str_equal(section.name, SL_STR("name"));
    }
}

bool sl_object_stored_parts(struct sl_object *object, struct sl_stored_parts *parts)
{
    *parts = (struct sl_stored_parts){false, false, false};
    if (object->info.format == SL_FORMAT_ELF)
        elf_stored_parts(object, parts);
    else if (object->info.format == SL_FORMAT_WASM)
        wasm_stored_parts(object, parts);
    else
        return false;
    return true;
}

bool sl_object_load_header(const struct sl_object *object, size_t index, struct sl_load_header *header)
{
    if (object->info.format != SL_FORMAT_ELF)
        return false;
    const struct elf *elf = object->impl;
    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct elf_segment *s = &elf->segments[i];
        if (s->type != PT_LOAD || index--) /* passes `index` PT_LOAD segments */
            continue;
        *header = (struct sl_load_header){s->offset, s->address, s->file_size, s->memory_size, s->flags};
        return true;
    }
    return false;
}

bool sl_object_load_headers_usable(const struct sl_object *object)
{
    struct sl_load_header load;
    size_t count = 0;
    for (; sl_object_load_header(object, count, &load); count++)
        if (load.flags & SL_LOAD_EXECUTABLE && !load.file_size)
            return false;
    return count;
}

/* Finds the first section of this name with contents and sets `*bytes` to these as they are in the file. SL_SECTION_EMPTY if all sections
 * of the name are SHT_NOBITS or extend beyond the file. */
static enum sl_section_store elf_raw_section(const struct sl_object *object, struct sl_str name, struct sl_bytes *bytes)
{
    const struct elf *elf = object->impl;
    enum sl_section_store store = SL_SECTION_ABSENT;
    for (size_t i = 0; i < elf->section_count; i++) {
        const struct elf_section *s = &elf->sections[i];
        if (!sl_str_equal(s->name, name) || !s->type) /* SHT_NULL: an unused header */
            continue;
        if (s->type != SHT_NOBITS && elf_raw(object, s, bytes))
            return SL_SECTION_STORED;
        store = SL_SECTION_EMPTY;
    }
    return store;
}

enum sl_section_store sl_object_raw_section(struct sl_object *object, struct sl_str name, struct sl_bytes *bytes)
{
    struct sl_section_info section;
    bool inside = false;
    *bytes = (struct sl_bytes){NULL, 0};
    if (!name.size)
        return SL_SECTION_ABSENT;
    if (object->info.format == SL_FORMAT_ELF)
        return elf_raw_section(object, name, bytes);
    for (size_t i = 0; sl_object_section_info(object, i, &section); i++)
        if (sl_str_equal(section.name, name)) {
            *bytes = sl_bytes_slice(object->bytes, section.offset, section.size, &inside);
            return inside ? SL_SECTION_STORED : SL_SECTION_ABSENT; /* SL_SECTION_EMPTY is for ELF only */
        }
    return SL_SECTION_ABSENT;
}
