/* Mach-O symbols: the functions and data of LC_SYMTAB (<mach-o/nlist.h>). They have no sizes: each ends at the next symbol or the end
 * of its section. */
#include "object/bcsymbolmap.h"
#include "object/macho.h"

enum { N_STAB = 0xE0, N_TYPE = 0x0E, N_SECT = 0x0E };

/* Returns the symbols and strings of LC_SYMTAB. Tables that extend beyond the file are cut, so that truncated files still have symbols. */
struct macho_symtab macho_symtab(const struct sl_object *object)
{
    const struct macho *macho = object->impl;
    struct macho_symtab table = {.is_64bit = object->info.is_64bit, .big_endian = object->info.big_endian};
    size_t entry = table.is_64bit ? 16 : 12, size = object->bytes.size;
    if (!macho->has_symtab || macho->symbol_offset > size)
        return table;
    size_t inside = (size - macho->symbol_offset) / entry;
    table.count = macho->symbol_count < inside ? macho->symbol_count : inside;
    table.entries = sl_bytes_slice(object->bytes, macho->symbol_offset, table.count * entry, NULL);
    if (macho->string_offset <= size) {
        size_t left = size - macho->string_offset;
        table.strings = sl_bytes_slice(object->bytes, macho->string_offset,
                                       macho->string_size < left ? macho->string_size : left, NULL);
    }
    return table;
}

/* Reads symbol `index`; its name is an offset in the strings. An index outside of the table gives zeros. */
struct macho_symbol macho_symbol_at(const struct macho_symtab *table, size_t index)
{
    size_t entry = table->is_64bit ? 16 : 12;
    struct sl_reader r = sl_reader(table->entries, table->big_endian);
    sl_reader_seek(&r, index * entry);
    struct macho_symbol symbol = {.name = sl_read_u32(&r)};
    symbol.type = sl_read_u8(&r);
    symbol.section = sl_read_u8(&r);
    sl_reader_skip(&r, 2); /* description */
    symbol.value = table->is_64bit ? sl_read_u64(&r) : sl_read_u32(&r);
    return symbol;
}

/* Returns the section of a defined symbol; NULL for stabs, undefined and absolute symbols, and symbols below the load address. */
static const struct macho_section *find_section(const struct sl_object *object, const struct macho_symbol *symbol)
{
    const struct macho *macho = object->impl;
    if ((symbol->type & N_STAB) || (symbol->type & N_TYPE) != N_SECT || symbol->value < object->info.load_address ||
        symbol->section == 0 || symbol->section > macho->section_count)
        return NULL;
    return &macho->sections[symbol->section - 1];
}

/* True if the section has code. It may have any name: __hot_text, __StaticInit, those of kernel extensions in __TEXT_EXEC. */
static bool has_functions(const struct macho_section *s)
{
    return s->has_code || (sl_str_equal(s->segment_name, SL_STR("__TEXT")) &&
                           (sl_str_equal(s->name, SL_STR("__text")) || sl_str_equal(s->name, SL_STR("__stubs"))));
}

/* True for assembler labels of object files (ltmp0, L_str ...), which linkers remove. Other names begin with an underscore. */
static bool is_label(const struct sl_object *object, struct sl_str name)
{
    return object->info.kind == SL_KIND_REL && name.size && (name.data[0] | 0x20) == 'l';
}

/* Removes the underscore that compilers put before C names, but not from obfuscated names (__hidden#1_), which get no such underscore. */
struct sl_str macho_undecorated(struct sl_str name)
{
    if (name.size && name.data[0] == '_' && !sl_str_starts(name, SL_STR("__hidden#")))
        return (struct sl_str){name.data + 1, name.size - 1};
    return name;
}

void sl_object_set_bcsymbolmap(struct sl_object *object, const struct sl_bcsymbolmap *map)
{
    if (object->info.format == SL_FORMAT_MACHO)
        ((struct macho *)object->impl)->hidden_names = map;
}

/* Returns the symbols in sections with code, without labels of the assembler, then one for each stub (a jump to another library). */
enum sl_code macho_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols, size_t *count,
                           struct sl_error *error)
{
    const struct sl_bcsymbolmap *map = ((struct macho *)object->impl)->hidden_names;
    struct macho_symtab table = macho_symtab(object);
    struct sl_account account = {.budget = object->budget};
    size_t capacity = table.count + (size_t)macho_stub_count(object);
    *symbols = SL_ARENA_ARRAY(arena, struct sl_symbol, capacity + 1);
    if (!*symbols)
        return sl_budget_fail(object->budget, error);
    for (size_t i = 0; i < table.count; i++) {
        struct macho_symbol symbol = macho_symbol_at(&table, i);
        const struct macho_section *s = find_section(object, &symbol);
        if (!s || !has_functions(s) || symbol.value >= s->address + s->size) /* the last: it marks the section's end */
            continue;
        struct sl_str name = sl_account_read_name(&account, table.strings, symbol.name);
        if (!is_label(object, name))
            (*symbols)[(*count)++] = (struct sl_symbol){
                .address = symbol.value - object->info.load_address,
                /* Mach-O stores no sizes: up to the end of the section, until object_clip_to_next() shortens it */
                .size = s->address + s->size - symbol.value,
                .name = macho_undecorated(map ? sl_bcsymbolmap_resolve(map, name) : name),
            };
    }
    /* in this order: stubs have sizes */
    bool ok = object_clip_to_next(*symbols, 0, *count) && macho_add_stubs(object, arena, *symbols, capacity, count);
    return ok ? SL_OK : sl_budget_fail(object->budget, error);
}

/* Returns the symbols in sections without code, without labels of the assembler. A symbol that marks the end of its section is left out. */
enum sl_code macho_data_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                                size_t *count, struct sl_error *error)
{
    struct macho_symtab table = macho_symtab(object);
    struct sl_account account = {.budget = object->budget};
    *symbols = SL_ARENA_ARRAY(arena, struct sl_symbol, table.count ? table.count : 1);
    for (size_t i = 0; *symbols && i < table.count; i++) {
        struct macho_symbol symbol = macho_symbol_at(&table, i);
        const struct macho_section *s = find_section(object, &symbol);
        if (!s || has_functions(s) || symbol.value - s->address >= s->size)
            continue;
        struct sl_str name = sl_account_read_name(&account, table.strings, symbol.name);
        if (name.size && !is_label(object, name))
            (*symbols)[(*count)++] = (struct sl_symbol){
                .address = symbol.value - object->info.load_address,
                /* Mach-O stores no sizes: up to the end of the section, until object_clip_to_next() shortens it */
                .size = s->address + s->size - symbol.value,
                .name = macho_undecorated(name),
            };
    }
    return *symbols && object_clip_to_next(*symbols, 0, *count) ? SL_OK : sl_budget_fail(object->budget, error);
}
