/* Finds where ELF files of ARM and AArch64 have ARM code, Thumb code and data: by mapping symbols ("ELF for the Arm Architecture", 5.5.5;
 * "ELF for the Arm 64-bit Architecture", 5.7), or, where these were stripped, by the Thumb bit in the addresses of functions. */
#include "object/elf.h"

#include "base/order.h"

#include <stdlib.h>

struct marking {
    const struct sl_object *object;
    struct sl_arena *arena;
    struct sl_mapping_symbol *marks;
    size_t count;
};

/* True for the names of mapping symbols; sets `*isa`: `$a` ARM, `$t` Thumb, `$d` data, `$x` AArch64 code, optionally followed by `.` and
 * any text. */
static bool is_mapping_symbol_name(struct sl_str name, enum sl_code_isa *isa)
{
    if (name.size < 2 || name.data[0] != '$' || (name.size > 2 && name.data[2] != '.'))
        return false;
    switch (name.data[1]) {
    case 'a': *isa = SL_ISA_ARM; return true;
    case 't': *isa = SL_ISA_THUMB; return true;
    case 'd': *isa = SL_ISA_DATA; return true;
    case 'x': *isa = SL_ISA_DEFAULT; return true;
    default: return false;
    }
}

/* Returns the first three characters of a C string in the table, which are enough to recognise a mapping symbol; empty outside of the
 * table. */
static struct sl_str short_name(struct sl_bytes strings, uint32_t at)
{
    enum { LONG_ENOUGH = 3 }; /* mapping symbols are "$a" or "$a.anything" */
    struct sl_str name = {(const char *)strings.data + at, 0};
    while (at < strings.size && name.size < LONG_ENOUGH && name.size < strings.size - at && name.data[name.size])
        name.size++;
    return name;
}

/* Sets `*isa` for a function of an ARM file: bit 0 of its address is set for Thumb code. False for all other symbols. */
static bool mapping_symbol_of_function(const struct elf *elf, const struct elf_raw_symbol *s, enum sl_code_isa *isa)
{
    *isa = s->value & 1 ? SL_ISA_THUMB : SL_ISA_ARM;
    return elf->machine == EM_ARM && s->type == STT_FUNC;
}

/* Fills m->marks with an entry (address, instruction set) for each mapping symbol of the table or, if `of_functions`, for each function of
 * an ARM file. Only sections with code are needed. False when out of memory. */
static bool add_marks(struct marking *m, const struct elf_table *table, bool of_functions)
{
    const struct elf *elf = m->object->impl;
    bool wide = m->object->info.is_64bit;
    size_t count = table->symbols.size / elf_entry_size(m->object);
    uint64_t base = m->object->info.load_address;
    struct sl_reader r = sl_reader(table->symbols, m->object->info.big_endian);
    m->marks = SL_ARENA_ARRAY(m->arena, struct sl_mapping_symbol, count + 1);
    for (size_t i = 0; m->marks && i < count; i++) {
        struct elf_raw_symbol s = elf_read_symbol(&r, wide);
        enum sl_code_isa isa;
        uint32_t number = elf_symbol_section(m->object, table->indexes, &s, i);
        bool wanted = of_functions
                          ? mapping_symbol_of_function(elf, &s, &isa)
                          : s.type == STT_NOTYPE && is_mapping_symbol_name(short_name(table->strings, s.name), &isa);
        if (!wanted || !number || number >= elf->section_count || !(elf->sections[number].flags & SHF_EXECINSTR))
            continue;
        /* a function's address without the Thumb bit; in ET_REL files values are offsets in the section */
        uint64_t address = (of_functions ? s.value & ~UINT64_C(1) : s.value) +
                           (elf->type == ET_REL ? elf->sections[number].address : 0);
        if (address >= base)
            m->marks[m->count++] =
                (struct sl_mapping_symbol){.address = address - base, .isa = isa, .order = (uint32_t)i};
    }
    return m->marks != NULL;
}

SL_ORDER_BY(by_address, struct sl_mapping_symbol, address, order)

/* Lists where code changes between ARM, Thumb and data, sorted by address: by the mapping symbols (`$a`, `$t`, `$x`, `$d`) of .symtab. If a
 * 32-bit file has none, each function of .symtab gets an entry, because its address tells ARM from Thumb. If that gives no entry, the
 * functions among the dynamic symbols get entries. Files of other processors have no entries. */
enum sl_code elf_mapping_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_mapping_symbol **marks,
                                 size_t *count, struct sl_error *error)
{
    const struct elf *elf = object->impl;
    struct marking m = {.object = object, .arena = arena};
    struct elf_table table = {0};
    bool good = true;
    if (elf->machine != EM_ARM && elf->machine != EM_AARCH64)
        return SL_OK;
    if (elf_section_table(object, SHT_SYMTAB, &table)) {
        good = add_marks(&m, &table, false);
        /* no mapping symbols: derive the instruction sets from the addresses of functions (`true`) */
        if (good && !m.count)
            good = add_marks(&m, &table, true);
    }
    table = (struct elf_table){0};
    if (good && !m.count && elf_dynamic_table(object, &table))
        good = add_marks(&m, &table, true);
    if (!good)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (m.count)
        qsort(m.marks, m.count, sizeof *m.marks, by_address);
    *marks = m.marks;
    *count = m.count;
    return SL_OK;
}
