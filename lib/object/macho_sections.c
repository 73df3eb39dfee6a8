/* Mach-O sections: finds them in the file and applies the relocations of .o files. */
#include "object/macho.h"

enum {
    S_ZEROFILL = 0x1,
    S_GB_ZEROFILL = 0xC,
    S_THREAD_LOCAL_ZEROFILL = 0x12,
    RELOC_POINTER = 0, /* GENERIC_RELOC_VANILLA, X86_64_RELOC_UNSIGNED, ARM64_RELOC_UNSIGNED ... */
    X86_64_RELOC_SUBTRACTOR = 5,
    ARM64_RELOC_SUBTRACTOR = 1,
    CPU_X86_64 = 0x01000007,
    CPU_ARM64 = 0x0100000C,
};

/* Returns the file offset of a section. The field in the section header has 32 bits and wraps around in files of more than 4 GiB. So the
 * offset is computed from that of the segment, too; if both agree in the lower 32 bits, the computed one is right. */
static uint64_t get_file_offset(const struct sl_object *object, const struct macho_section *s)
{
    const struct macho *macho = object->impl;
    const struct macho_segment *segment = &macho->segments[s->segment];
    uint64_t computed = s->address - segment->address + segment->offset;
    bool plausible = object->info.is_64bit && s->address >= segment->address && (uint32_t)computed == s->offset;
    return plausible ? computed : s->offset;
}

/* Sets `*bytes` to the section's contents in the file. False if they lie outside the file, and for sections without any, such as __bss. */
bool macho_raw(const struct sl_object *object, const struct macho_section *s, struct sl_bytes *bytes)
{
    bool inside;
    *bytes = sl_bytes_slice(object->bytes, get_file_offset(object, s), s->size, &inside);
    return inside && s->offset != 0 && s->type != S_ZEROFILL && s->type != S_GB_ZEROFILL &&
           s->type != S_THREAD_LOCAL_ZEROFILL;
}

bool macho_is_compressed(const struct macho_section *s)
{
    return sl_str_starts(s->name, SL_STR("__zdebug_"));
}

bool macho_section_named(const struct macho_section *s, struct sl_str name)
{
    enum { LONGEST = 16 };                          /* longer names are truncated */
    size_t prefix = macho_is_compressed(s) ? 3 : 2; /* length of "__z" or "__" */
    if (!sl_str_starts(s->name, SL_STR("__")))
        return false;
    struct sl_str own = {s->name.data + prefix, s->name.size - prefix};
    return sl_str_equal(own, name) || (s->name.size == LONGEST && sl_str_starts(name, own));
}

/* Returns the contents of a debug section, decompressed if it is compressed, else relocated; empty if it cannot be decompressed. */
static struct sl_bytes make_contents(struct sl_object *object, const struct macho_section *s, struct sl_bytes raw)
{
    struct object_compressed compressed;
    if (!macho_is_compressed(s))
        return macho_relocate(object, s, raw);
    return object_read_zdebug(raw, &compressed) ? object_inflate_section(object, &compressed)
                                                : (struct sl_bytes){NULL, 0};
}

/* Finds the first readable section of this name. Sets `*bytes` to its contents, decompressed, or relocated if it is a debug section of a
 * relocatable file (both is done once), and `*address` (may be NULL) to its relative address. False if there is none or it cannot be
 * decompressed; a section that is not compressed may be empty. */
bool macho_section_bytes(struct sl_object *object, const char *name, struct sl_bytes *bytes, uint64_t *address)
{
    struct macho *macho = object->impl;
    struct sl_str wanted = sl_str(name);
    for (size_t i = 0; i < macho->section_count; i++) {
        struct macho_section *s = &macho->sections[i];
        if (!macho_section_named(s, wanted) || !macho_raw(object, s, bytes))
            continue;
        bool debug = object->info.kind == SL_KIND_REL && sl_str_starts(wanted, SL_STR("debug_"));
        if (debug || macho_is_compressed(s)) {
            if (!s->tried)
                s->prepared_contents = make_contents(object, s, *bytes);
            s->tried = true;
            *bytes = s->prepared_contents;
        }
        if (address)
            *address = s->address - object->info.load_address;
        return bytes->size > 0 || !macho_is_compressed(s);
    }
    *bytes = (struct sl_bytes){NULL, 0};
    return false;
}

struct reloc {
    uint32_t offset, symbol;
    unsigned size, type;
    bool is_external, is_relative, is_scattered;
};

/* Reads a relocation. `symbol` is the number of a symbol, if is_external, else that of a section. A scattered relocation (is_scattered) has
 * another layout: its other members have no meaning. */
static struct reloc read_reloc(struct sl_reader *r)
{
    uint32_t address = sl_read_u32(r), word = sl_read_u32(r);
    struct reloc reloc = {.offset = address, .is_scattered = address >> 31};
    /* bit fields, laid out from the other end in big-endian files */
    if (r->big_endian) {
        reloc.symbol = word >> 8;
        reloc.is_relative = word >> 7 & 1;
        reloc.size = 1u << (word >> 5 & 3);
        reloc.is_external = word >> 4 & 1;
        reloc.type = word & 15;
    } else {
        reloc.symbol = word & 0xFFFFFF;
        reloc.is_relative = word >> 24 & 1;
        reloc.size = 1u << (word >> 25 & 3);
        reloc.is_external = word >> 27 & 1;
        reloc.type = word >> 28;
    }
    return reloc;
}

/* Adds the value of a relocation's symbol to the number in `field`. (Relocations without symbol need no change: their field already has the
 * address.) */
static void macho_sections_apply(struct sl_bytes field, uint64_t value, bool big_endian)
{
    struct sl_reader r = sl_reader(field, big_endian);
    uint8_t *out = (uint8_t *)field.data;
    value += sl_read_uint(&r, (unsigned)field.size);
    for (size_t i = 0; i < field.size; i++)
        out[big_endian ? field.size - 1 - i : i] = (uint8_t)(value >> (8 * i));
}

/* True for the first of a pair of relocations that stand for a difference: the symbol of the second minus the symbol of the first. */
static bool is_subtractor(const struct macho *macho, const struct reloc *reloc)
{
    return (macho->cpu_type == CPU_X86_64 && reloc->type == X86_64_RELOC_SUBTRACTOR) ||
           (macho->cpu_type == CPU_ARM64 && reloc->type == ARM64_RELOC_SUBTRACTOR);
}

/* Returns a copy of the contents with the relocations that occur in debug sections applied: pointers, and differences of two symbols.
 * Others are ignored. Returns `contents` itself if there are none, or when out of memory or budget, which the object records. */
struct sl_bytes macho_relocate(struct sl_object *object, const struct macho_section *section, struct sl_bytes contents)
{
    bool inside, big_endian = object->info.big_endian;
    struct sl_bytes table =
        sl_bytes_slice(object->bytes, section->reloc_offset, (uint64_t)section->reloc_count * 8, &inside);
    if (!inside || !table.size || !contents.size)
        return contents;
    struct macho_symtab symbols = macho_symtab(object);
    /* work: a step for each relocation, of 8 bytes, and for each 8 bytes that are copied */
    uint8_t *copy = sl_budget_spend(object->budget, (table.size + contents.size) / 8)
                        ? sl_arena_alloc(&object->arena, contents.size, 8)
                        : NULL;
    if (!copy) {
        object_no_memory(object);
        return contents;
    }
    memcpy(copy, contents.data, contents.size);
    struct sl_bytes result = {copy, contents.size};
    struct sl_reader r = sl_reader(table, big_endian);
    uint64_t minus = 0; /* symbol value of a SUBTRACTOR, to subtract in the relocation after it */
    while (sl_reader_left(&r) >= 8) {
        struct reloc reloc = read_reloc(&r);
        struct sl_bytes field = sl_bytes_slice(result, reloc.offset, reloc.size, &inside);
        uint64_t subtract = minus;
        minus = 0;
        /* without a symbol (not external) the field has its value already; the other forms do not occur in debug sections */
        if (reloc.is_scattered || !reloc.is_external || reloc.is_relative || reloc.symbol >= symbols.count)
            continue;
        uint64_t value = macho_symbol_at(&symbols, reloc.symbol).value;
        if (is_subtractor(object->impl, &reloc))
            minus = value;
        else if (reloc.type == RELOC_POINTER && inside && reloc.size >= 4)
            macho_sections_apply(field, value - subtract, big_endian);
    }
    return result;
}
