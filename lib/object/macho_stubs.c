/* Stubs: the jumps through which a Mach-O file calls other libraries. They have no symbols; the indirect symbol table has the
 * function that each jumps to (<mach-o/loader.h>, "struct dysymtab_command").
 *
 *     __stubs, reserved1 = 2, reserved2 = 6    | jmp 6 bytes | jmp 6 bytes | ...
 *     indirect symbols, u32 each               | .. | .. | _printf | _puts | ...        entry 2 names the first stub
 *
 * The names are those of Apple's tools: DYLD-STUB$$printf. */
#include "object/macho.h"

enum { S_SYMBOL_STUBS = 0x8 };
static const uint32_t INDIRECT_SYMBOL_LOCAL = 0x80000000, INDIRECT_SYMBOL_ABS = 0x40000000;

/* Returns the number of stubs in the section that have entries in the indirect symbol table; 0 if it is not a section of stubs. */
static uint64_t count_stubs(const struct macho *macho, const struct macho_section *s)
{
    if (s->type != S_SYMBOL_STUBS || !s->stub_size || s->first_indirect > macho->indirect_count)
        return 0;
    uint64_t stubs = s->size / s->stub_size, named = macho->indirect_count - s->first_indirect;
    return stubs < named ? stubs : named;
}

/* Returns the number of stubs of all sections, at most the number of entries of the indirect symbol table that fit into the file. */
uint64_t macho_stub_count(const struct sl_object *object)
{
    const struct macho *macho = object->impl;
    uint64_t entries = macho->indirect_count < object->bytes.size / 4 ? macho->indirect_count : object->bytes.size / 4;
    uint64_t total = 0;
    for (size_t i = 0; i < macho->section_count; i++) {
        uint64_t stubs = count_stubs(macho, &macho->sections[i]);
        total += stubs < entries ? stubs : entries;
    }
    return total < entries ? total : entries; /* only in damaged files do stubs share entries */
}

/* Sets the name of a stub's symbol, as Apple's tools do: DYLD-STUB$$ and the function it jumps to. False when out of memory. */
static bool name_stub(struct sl_arena *arena, struct sl_str function, struct sl_symbol *symbol)
{
    const struct sl_str prefix = SL_STR("DYLD-STUB$$");
    char *name = sl_arena_alloc(arena, prefix.size + function.size, 1);
    if (!name)
        return false;
    memcpy(name, prefix.data, prefix.size);
    memcpy(name + prefix.size, function.data, function.size);
    symbol->name = (struct sl_str){name, prefix.size + function.size};
    return true;
}

/* Appends a symbol for each stub that calls a function whose name is known. Stops early, also with true, when `symbols` is full or the
 * budget is used up. False when out of memory. */
bool macho_add_stubs(const struct sl_object *object, struct sl_arena *arena, struct sl_symbol *symbols, size_t capacity,
                     size_t *count)
{
    const struct macho *macho = object->impl;
    const struct macho_symtab table = macho_symtab(object);
    struct sl_account account = {.budget = object->budget};
    size_t left = capacity - *count; /* too small only for damaged files, where sections share entries */
    for (size_t i = 0; i < macho->section_count; i++) {
        const struct macho_section *s = &macho->sections[i];
        struct sl_reader r = sl_reader(object->bytes, object->info.big_endian);
        sl_reader_seek(&r, macho->indirect_offset + (uint64_t)s->first_indirect * 4);
        uint64_t stubs = s->address >= object->info.load_address ? count_stubs(macho, s) : 0;
        for (uint64_t at = 0; at < stubs && sl_reader_left(&r) >= 4 && left && !sl_budget_exhausted(object->budget);
             at++, left--) {
            uint32_t index = sl_read_u32(&r);
            if (index & (INDIRECT_SYMBOL_LOCAL | INDIRECT_SYMBOL_ABS) || index >= table.count)
                continue;
            struct sl_str name = sl_account_read_name(&account, table.strings, macho_symbol_at(&table, index).name);
            struct sl_symbol *symbol = &symbols[*count];
            *symbol = (struct sl_symbol){.address = s->address - object->info.load_address + at * s->stub_size,
                                         .size = s->stub_size};
            bool is_charged = name.size && sl_account_spend(&account, (uint32_t)name.size); /* the name is copied */
            if (is_charged && !name_stub(arena, macho_undecorated(name), symbol))
                return false;
            *count += is_charged;
        }
    }
    return true;
}
