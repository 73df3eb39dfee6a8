/* Relocations of COFF object files (Microsoft's "PE Format", "COFF Relocations"): applies those of debug sections to copies.
 * An entry is the offset u32, the symbol's number u32, the type u16; the addend is the value at the offset.
 *
 * CodeView refers to code by section number and offset. Here all code counts as section 1, and the offset is the address that coff.c
 * gave the code; what is not code has section 0. */
#include "object/coff.h"

enum { ENTRY = 10, CLASS_WEAK_EXTERNAL = 105, ABSOLUTE = -1 };
enum kind { NOTHING, ADDRESS_64, ADDRESS_32, SECTION_NUMBER };

/* The numbers of the relocation types, by machine; 0: the machine has no such type. */
static const struct coff_machine {
    uint16_t number, address_64, address_32, address_32_nb, section, section_offset;
} machines[] = {
    {0x8664, 1, 2, 3, 10, 11}, {0x014C, 0, 6, 7, 10, 11}, {0xAA64, 14, 1, 2, 13, 8},
    {0xA641, 14, 1, 2, 13, 8}, {0x01C0, 0, 1, 2, 14, 15}, {0x01C4, 0, 1, 2, 14, 15},
};

/* Returns what a relocation of this type writes; NOTHING for types that do not occur in debug sections, and for type 0 (ABSOLUTE), which
 * has no effect. */
static enum kind relocation_kind(uint16_t machine, uint16_t type)
{
    for (size_t i = 0; type && i < sizeof machines / sizeof *machines; i++) {
        const struct coff_machine *m = &machines[i];
        if (m->number != machine)
            continue;
        if (type == m->address_64)
            return ADDRESS_64;
        if (type == m->address_32 || type == m->address_32_nb || type == m->section_offset)
            return ADDRESS_32;
        return type == m->section ? SECTION_NUMBER : NOTHING;
    }
    return NOTHING;
}

/* Value of a symbol; `known`: the symbol is defined; `code`: in a section with code, which counts as section 1. */
struct coff_relocation_value {
    uint64_t address;
    bool known, code;
};

/* Reads a symbol. `*tag` becomes the first word of its auxiliary record, 0 if it has none; for a weak external that is the index of its
 * default symbol. A symbol outside of the table counts as undefined (section 0). */
static void read_symbol(const struct pe *pe, uint64_t index, uint32_t *value, int32_t *section, uint8_t *class,
                        uint32_t *tag)
{
    struct sl_reader r = sl_reader(pe->symbols, false);
    sl_reader_seek(&r, index * pe->symbol_size);
    sl_reader_skip(&r, 8); /* name */
    *value = sl_read_u32(&r);
    /* symbols of /bigobj files have 20 bytes: their section number has 32 bits */
    *section = pe->symbol_size > 18 ? (int32_t)sl_read_u32(&r) : (int16_t)sl_read_u16(&r);
    sl_read_u16(&r); /* type */
    *class = sl_read_u8(&r);
    uint8_t auxiliary = sl_read_u8(&r);
    *tag = auxiliary ? sl_read_u32(&r) : 0;
    if (r.failed)
        *section = 0;
}

/* Returns the value of a symbol, `known` false if it is undefined. An undefined weak external has the value of its default symbol. */
static struct coff_relocation_value symbol_value(const struct pe *pe, uint64_t index)
{
    uint32_t value, tag;
    int32_t section;
    uint8_t class;
    read_symbol(pe, index, &value, &section, &class, &tag);
    if (section == 0 && class == CLASS_WEAK_EXTERNAL)
        read_symbol(pe, tag, &value, &section, &class, &tag);
    if (section == ABSOLUTE)
        return (struct coff_relocation_value){.address = value, .known = true};
    if (section <= 0 || (size_t)section > pe->section_count)
        return (struct coff_relocation_value){.known = false};
    const struct pe_section *s = &pe->sections[section - 1];
    return (struct coff_relocation_value){
        .address = (uint64_t)s->address + value, .known = true, .code = s->executable};
}

/* Adds the symbol's value to the number at the offset. SECTION_NUMBER instead stores 1 for code, as coff.c lays out all code as one
 * section, and 0 for all else, also for an undefined symbol. Other kinds with an undefined symbol, and offsets beyond the section, change
 * nothing. */
static void apply(uint8_t *out, size_t size, uint64_t offset, enum kind kind, struct coff_relocation_value value)
{
    size_t width = kind == ADDRESS_64 ? 8 : kind == ADDRESS_32 ? 4 : 2;
    if (size < width || offset > size - width || (!value.known && kind != SECTION_NUMBER))
        return;
    struct sl_reader r = sl_reader((struct sl_bytes){out + offset, width}, false);
    uint64_t there = sl_read_uint(&r, (unsigned)width),
             result = kind == SECTION_NUMBER ? value.code : value.address + there;
    for (size_t i = 0; i < width; i++)
        out[offset + i] = (uint8_t)(result >> (8 * i));
}

/* Returns the relocation entries of a section. If their number does not fit into 16 bits, the first entry holds the number, which counts
 * that entry, too. */
static struct sl_bytes get_entries(const struct sl_object *object, const struct pe_section *s)
{
    enum { OVERFLOWN = 0xFFFF };
    uint64_t count = s->reloc_count, offset = s->reloc_offset;
    if (s->more_relocs && count == OVERFLOWN) {
        struct sl_reader r = sl_reader(sl_bytes_from(object->bytes, offset), false);
        count = sl_read_u32(&r);
        count -= count > 0;
        offset += ENTRY;
    }
    return count ? sl_bytes_part(object->bytes, offset, count * ENTRY) : (struct sl_bytes){NULL, 0};
}

/* Returns a copy of the contents with the relocations applied, in the object's arena. Empty when out of memory or budget, which the object
 * records. */
static struct sl_bytes relocate(struct sl_object *object, struct sl_bytes contents, struct sl_bytes entries)
{
    /* rough costs of a relocation and of copying, in steps of the work budget */
    enum { STEPS_PER_ENTRY = 4, BYTES_PER_STEP = 32 };
    const struct coff *coff = object->impl;
    uint64_t steps = entries.size / ENTRY * STEPS_PER_ENTRY + contents.size / BYTES_PER_STEP;
    uint8_t *copy = sl_budget_spend(object->budget, steps) ? sl_arena_alloc(&object->arena, contents.size, 8) : NULL;
    if (!copy) {
        object_no_memory(object);
        return (struct sl_bytes){NULL, 0};
    }
    memcpy(copy, contents.data, contents.size);
    struct sl_reader r = sl_reader(entries, false);
    while (sl_reader_left(&r) >= ENTRY) {
        uint32_t offset = sl_read_u32(&r), symbol = sl_read_u32(&r);
        enum kind kind = relocation_kind(coff->machine, sl_read_u16(&r));
        if (kind != NOTHING)
            apply(copy, contents.size, offset, kind, symbol_value(&coff->pe, symbol));
    }
    return (struct sl_bytes){copy, contents.size};
}

struct sl_bytes coff_contents(struct sl_object *object, struct pe_section *s)
{
    struct sl_bytes raw = pe_raw(object, s), entries = get_entries(object, s);
    struct coff *coff = object->impl;
    if (s->executable || !raw.size || s->tried) /* relocations of code are not needed */
        return s->tried ? s->inflated : raw;    /* s->inflated: the relocated contents of an earlier call */
    s->tried = true;
    coff->read += raw.size + entries.size;
    /* Sections of real objects share no bytes: many over the same bytes would cost far more than the file's size justifies. */
    if (coff->read > object->bytes.size)
        sl_fail(object_debug_info_error(object), SL_UNSUPPORTED,
                "cannot read the debug information: sections of the object file overlap");
    else
        s->inflated = entries.size ? relocate(object, raw, entries) : raw;
    return s->inflated;
}
