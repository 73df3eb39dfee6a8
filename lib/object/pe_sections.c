/* PE sections: finds them by name and by address, decompresses them; the embedded Portable PDB. */
#include "object/pe.h"

#include "object/embedded.h"
#include "base/search.h"

#include <stdlib.h>
#include <zlib.h>

/* Returns the contents of a section. Files pad sections with zeros to the file alignment, so the virtual size is the true one if it is less
 * and not 0. */
struct sl_bytes pe_raw(const struct sl_object *object, const struct pe_section *s)
{
    uint32_t size = s->virtual_size && s->virtual_size < s->raw_size ? s->virtual_size : s->raw_size;
    if (!s->offset || s->offset > object->bytes.size)
        return (struct sl_bytes){NULL, 0};
    uint64_t left = object->bytes.size - s->offset;
    return sl_bytes_slice(object->bytes, s->offset, size < left ? size : left, NULL);
}

/* Returns the bytes that a section occupies in memory or in the file, whichever is more: the virtual size may be 0. */
static uint32_t pe_section_size(const struct pe_section *s)
{
    return s->virtual_size > s->raw_size ? s->virtual_size : s->raw_size;
}

/* For qsort: by address, then in file order. */
static int pe_sections_by_address(const void *left, const void *right)
{
    const struct pe_section *a = *(const struct pe_section *const *)left, *b = *(const struct pe_section *const *)right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (a > b) - (a < b);
}

/* Sorts the sections that take up memory by address. False when out of memory, which is recorded in the object. */
bool pe_index_sections(struct sl_object *object)
{
    struct pe *pe = object->impl;
    pe->by_address = SL_ARENA_ARRAY(&object->arena, const struct pe_section *, pe->section_count + 1);
    if (!pe->by_address)
        return object_no_memory(object), false;
    for (size_t i = 0; i < pe->section_count; i++)
        if (pe_section_size(&pe->sections[i]))
            pe->by_address[pe->mapped_count++] = &pe->sections[i];
    qsort(pe->by_address, pe->mapped_count, sizeof(void *), pe_sections_by_address);
    return true;
}

const struct pe_section *pe_section_at(const struct pe *pe, uint32_t address)
{
    /* index of the first section that begins above the address */
    size_t low = SL_PARTITION_POINT(middle, 0, pe->mapped_count, pe->by_address[middle]->address <= address);
    const struct pe_section *s = low ? pe->by_address[low - 1] : NULL;
    return s && address - s->address < pe_section_size(s) ? s : NULL;
}

struct sl_bytes pe_at(const struct sl_object *object, uint64_t address)
{
    const struct pe_section *s = address <= UINT32_MAX ? pe_section_at(object->impl, (uint32_t)address) : NULL;
    return s ? sl_bytes_from(pe_raw(object, s), address - s->address) : (struct sl_bytes){NULL, 0};
}

/* Returns section `index` as a segment, because PE has no segments; false behind the last one. */
bool pe_segment(const struct sl_object *object, size_t index, struct sl_segment *segment)
{
    const struct pe *pe = object->impl;
    if (index >= pe->section_count)
        return false;
    const struct pe_section *s = &pe->sections[index];
    *segment = (struct sl_segment){.address = s->address,
                                   .memory_size = pe_section_size(s),
                                   .bytes = pe_raw(object, s),
                                   .executable = s->executable};
    return true;
}

/* Gets the contents of section `index`; empty for discardable sections, such as relocations and debug information, which are not part of
 * the loaded program. False behind the last one. */
bool pe_contents(const struct sl_object *object, size_t index, struct sl_bytes *part)
{
    const struct pe *pe = object->impl;
    if (index >= pe->section_count)
        return false;
    *part = pe->sections[index].discardable ? (struct sl_bytes){NULL, 0} : pe_raw(object, &pe->sections[index]);
    return true;
}

/* Returns the inflated contents of a section like ".zdebug_info": "ZLIB", the size as eight big-endian bytes, the stream. It is inflated at
 * the first call. Empty if it is damaged or over the limits. */
static struct sl_bytes inflate_section(struct sl_object *object, struct pe_section *s)
{
    if (s->tried)
        return s->inflated;
    struct sl_reader r = sl_reader(pe_raw(object, s), true);
    uint32_t magic = sl_read_u32(&r);
    uint64_t size = sl_read_u64(&r);
    bool ended = false;
    s->tried = true;
    if (r.failed || magic != 0x5A4C4942) /* "ZLIB" */
        return s->inflated;
    struct sl_bytes in = sl_read_bytes(&r, sl_reader_left(&r));
    uint8_t *out = object_may_inflate(object, in.size, size) ? object_block(object, (size_t)size) : NULL;
    if (out && object_inflate(in, out, (size_t)size, MAX_WBITS, &ended) == size && ended) {
        object_grow_budget(object, size);
        s->inflated = (struct sl_bytes){out, (size_t)size};
    } else if (out) {
        object_block_free(object, out);
    }
    return s->inflated;
}

/* True if the section is called `.` and `name`, or `.z` and `name` (`*compressed`). Some linkers cut names to eight bytes (".eh_fram"): a
 * cut name matches any longer name that begins with it, except for debug sections, of which several begin alike. */
static bool has_name(const struct pe_section *s, struct sl_str name, bool *compressed)
{
    if (s->name.size < 2 || s->name.data[0] != '.')
        return false;
    struct sl_str own = {s->name.data + 1, s->name.size - 1};
    *compressed = own.data[0] == 'z' && sl_str_starts(name, SL_STR("debug_")) &&
                  sl_str_equal((struct sl_str){own.data + 1, own.size - 1}, name);
    return *compressed || sl_str_equal(own, name) ||
           (s->cut_name && name.size > own.size && sl_str_starts(name, own) && !sl_str_starts(own, SL_STR("debug_")));
}

/* Finds the first section of this name (without its dot) that has contents, and sets `*bytes` to these, decompressed if it is a .zdebug_
 * section, and `*address` (may be NULL). False if there is none. */
bool pe_section_bytes(struct sl_object *object, const char *name, struct sl_bytes *bytes, uint64_t *address)
{
    struct pe *pe = object->impl;
    for (size_t i = 0; i < pe->section_count; i++) {
        struct pe_section *s = &pe->sections[i];
        bool compressed;
        if (!has_name(s, sl_str(name), &compressed))
            continue;
        *bytes = compressed ? inflate_section(object, s) : pe_raw(object, s);
        /* a damaged section ends the search: crafted files may have any number of them, and each costs a decompression */
        if (!bytes->size && compressed)
            break;
        if (!bytes->size)
            continue;
        if (address)
            *address = s->address;
        return true;
    }
    *bytes = (struct sl_bytes){NULL, 0};
    return false;
}

/* Describes section `index`, with an absolute address (in struct pe_section it is relative). False behind the last one. */
bool pe_section_info(struct sl_object *object, size_t index, struct sl_section_info *info)
{
    const struct pe *pe = object->impl;
    if (index >= pe->section_count)
        return false;
    const struct pe_section *s = &pe->sections[index];
    *info = (struct sl_section_info){
        .name = s->name,
        .address = object->info.load_address + s->address,
        .offset = s->offset,
        .size = pe_raw(object, s).size,
        .compression = sl_str_starts(s->name, SL_STR(".zdebug_")) ? "zlib" : NULL,
    };
    return true;
}

enum sl_code sl_object_embedded_ppdb(struct sl_object *object, struct sl_arena *arena, struct sl_bytes *ppdb,
                                     struct sl_error *error)
{
    struct pe_debug_entry entry;
    bool found = false, inside;
    *ppdb = (struct sl_bytes){NULL, 0};
    if (object->info.format != SL_FORMAT_PE)
        return sl_fail(error, SL_NOT_FOUND, "the file is not a PE file");
    for (size_t i = 0; !found && pe_debug_entry(object, i, &entry); i++)
        found = entry.type == PE_DEBUG_EMBEDDED_PPDB;
    if (!found)
        return sl_fail(error, SL_NOT_FOUND, "the PE file has no Portable PDB inside");
    /* from here on the texts are those of lib/ppdb for a damaged Portable PDB */
    if (entry.size < 8)
        return sl_fail(error, SL_MALFORMED, "invalid length");
    struct sl_reader r = sl_reader(sl_bytes_slice(object->bytes, entry.offset, entry.size, &inside), false);
    if (!inside)
        return sl_fail(error, SL_MALFORMED, "invalid blob offset");
    if (sl_read_u32(&r) != 0x4244504D) /* "MPDB" */
        return sl_fail(error, SL_MALFORMED, "invalid signature");
    uint32_t size = sl_read_u32(&r);
    struct sl_bytes in = sl_read_bytes(&r, sl_reader_left(&r));
    if (!object_may_inflate(object, in.size, size))
        return sl_fail(error, SL_MALFORMED, "invalid blob data");
    uint8_t *out = sl_arena_alloc(arena, size, 1);
    if (!out)
        return sl_budget_fail(object->budget, error);
    bool ended;
    if (object_inflate(in, out, size, -MAX_WBITS, &ended) != size || !ended) /* negative: raw deflate */
        return sl_fail(error, SL_MALFORMED, "invalid blob data");
    object_grow_budget(object, size);
    *ppdb = (struct sl_bytes){out, size};
    return SL_OK;
}
