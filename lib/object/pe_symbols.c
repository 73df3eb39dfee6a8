/* PE symbols: the exports, then the COFF symbol table, which MinGW's linker leaves in images. They have no sizes: each ends at the next
 * symbol or the end of its section. */
#include "object/pe.h"

enum { SHORT_SYMBOL = 18, CLASS_EXTERNAL = 2, CLASS_STATIC = 3, TYPE_FUNCTION = 2 };

/* The export directory: u32 addresses; for each name its u32 address and the u16 index of its export in `addresses`. */
struct exports {
    struct sl_bytes addresses, names, ordinals;
    struct pe_directory directory;
    size_t count; /* named exports */
};

/* Returns the table of `count` items of `item` bytes at an address, cut at the end of its section. */
static struct sl_bytes table(const struct sl_object *object, uint32_t address, uint32_t count, uint32_t item)
{
    struct sl_bytes bytes = pe_at(object, address);
    size_t inside = bytes.size / item;
    return sl_bytes_slice(bytes, 0, (count < inside ? count : inside) * item, NULL);
}

/* Reads the export directory; its tables are cut at the end of their section. All members are empty if there is none. */
static struct exports read_exports(const struct sl_object *object)
{
    const struct pe *pe = object->impl;
    struct exports e = {.directory = pe->directories[PE_EXPORTS]};
    if (!e.directory.size)
        return e;
    struct sl_reader r = sl_reader(pe_at(object, e.directory.address), false);
    sl_reader_skip(&r, 20); /* flags, time stamp, version, name of the file, first ordinal */
    uint32_t address_count = sl_read_u32(&r), name_count = sl_read_u32(&r);
    uint32_t addresses = sl_read_u32(&r), names = sl_read_u32(&r), ordinals = sl_read_u32(&r);
    if (r.failed)
        return e;
    e.addresses = table(object, addresses, address_count, 4);
    e.names = table(object, names, name_count, 4);
    e.ordinals = table(object, ordinals, name_count, 2);
    e.count = e.names.size / 4 < e.ordinals.size / 2 ? e.names.size / 4 : e.ordinals.size / 2;
    return e;
}

/* Returns the u16 or u32 at an offset; 0 outside. */
static uint32_t word(struct sl_bytes bytes, uint64_t offset, unsigned size)
{
    struct sl_reader r = sl_reader(bytes, false);
    sl_reader_seek(&r, offset);
    return size == 2 ? sl_read_u16(&r) : sl_read_u32(&r);
}

/* Returns the bytes from the address to the end of the section; 0 for symbols that mark the end of a section. */
static uint64_t size_to_end(const struct pe_section *s, uint64_t address)
{
    uint64_t at = address - s->address, size = s->virtual_size ? s->virtual_size : s->raw_size;
    return at < size ? size - at : 0;
}

/* Reads the named export `index`. False if it is not of the wanted kind (code if `code`, else data), has no name or is outside the
 * sections. Also false for a forwarder: its address is inside the export directory, at the name of the other DLL's function. */
static bool export_at(const struct sl_object *object, const struct exports *e, size_t index, bool code,
                      struct sl_symbol *symbol, struct sl_account *account)
{
    uint64_t ordinal = word(e->ordinals, index * 2, 2); /* word(): the u16 or u32 at an offset, 0 outside */
    uint32_t address = word(e->addresses, ordinal * 4, 4);
    const struct pe_section *s = address ? pe_section_at(object->impl, address) : NULL;
    if (!s || s->executable != code ||
        (address >= e->directory.address && address - e->directory.address < e->directory.size))
        return false;
    symbol->address = address;
    symbol->size = size_to_end(s, address);
    symbol->name = sl_account_read_name(account, pe_at(object, word(e->names, index * 4, 4)), 0);
    return symbol->size && symbol->name.size;
}

/* Kinds of COFF symbols: of type function; external in code without that type; local in code without that type; not in code. */
enum coff_kind { FUNCTIONS, UNTYPED_CODE, LOCAL_CODE, DATA };

/* True if a symbol is of the given kind, which follows from its type, its storage class and whether its section has code (`executable`).
 * FUNCTIONS: the type is a function. UNTYPED_CODE: external code without that type, from assemblers, and import thunks of linkers.
 * LOCAL_CODE: local code without that type; these are functions in images that objcopy made of ELF files (EFI programs). DATA: not code. */
static bool is_of_kind(enum coff_kind kind, uint16_t type, uint8_t class, bool executable)
{
    bool function = type >> 4 == TYPE_FUNCTION, external = class == CLASS_EXTERNAL;
    if ((!external && class != CLASS_STATIC) || executable != (kind != DATA))
        return false;
    if (kind == UNTYPED_CODE || kind == LOCAL_CODE)
        return !function && external == (kind == UNTYPED_CODE);
    return function == (kind == FUNCTIONS);
}

/* Reads the COFF symbol at offset `*at` and moves `*at` past it and its auxiliary records. False if it is not of the given kind, is
 * undefined, has no name, or marks the end of its section. */
static bool coff_at(const struct sl_object *object, size_t *at, enum coff_kind kind, struct sl_symbol *symbol,
                    struct sl_account *account)
{
    const struct pe *pe = object->impl;
    struct sl_reader r = sl_reader(pe->symbols, false);
    sl_reader_seek(&r, *at);
    struct sl_bytes raw = sl_read_bytes(&r, 8);
    uint32_t value = sl_read_u32(&r);
    uint32_t section = pe->symbol_size == SHORT_SYMBOL ? sl_read_u16(&r) : sl_read_u32(&r);
    uint16_t type = sl_read_u16(&r);
    uint8_t class = sl_read_u8(&r), auxiliary = sl_read_u8(&r);
    *at += pe->symbol_size * (1 + (size_t)auxiliary);
    /* the symbol of a section has an auxiliary record; of the other symbols only those of type function may have one */
    bool section_itself = kind != FUNCTIONS && auxiliary;
    if (r.failed || section_itself || section == 0 || section > pe->section_count ||
        !is_of_kind(kind, type, class, pe->sections[section - 1].executable))
        return false;
    symbol->address = (uint64_t)pe->sections[section - 1].address + value;
    symbol->size = size_to_end(&pe->sections[section - 1], symbol->address);
    if (word(raw, 0, 4)) /* the name itself, of up to 8 bytes; else 0 and its offset in the string table */
        symbol->name = (struct sl_str){(const char *)raw.data, strnlen((const char *)raw.data, 8)};
    else
        symbol->name = pe_string(pe, word(raw, 4, 4), account);
    return symbol->size && symbol->name.size;
}

/* True if the file exports something, or if a COFF symbol names code: the kinds up to LOCAL_CODE do, DATA does not. */
bool pe_has_symbols(const struct sl_object *object)
{
    const struct pe *pe = object->impl;
    struct exports e = read_exports(object);
    struct sl_symbol symbol;
    struct sl_account account = {.budget = object->budget};
    if (e.addresses.size)
        return true;
    for (enum coff_kind kind = FUNCTIONS; kind <= LOCAL_CODE; kind++)
        for (size_t at = 0; at < pe->symbols.size;)
            if (coff_at(object, &at, kind, &symbol, &account))
                return true;
    return false;
}

/* Lists the symbols of code, or of data if `code` is false. The exports come first, then the COFF symbols, beginning with the best kind: of
 * several symbols at an address readers use the first. */
static enum sl_code pe_collect(struct sl_object *object, bool code, struct sl_arena *arena, struct sl_symbol **out,
                               size_t *count, struct sl_error *error)
{
    const struct pe *pe = object->impl;
    struct exports e = read_exports(object);
    struct sl_account account = {.budget = object->budget};
    enum coff_kind first = code ? FUNCTIONS : DATA, last = code ? LOCAL_CODE : DATA;
    size_t capacity = e.count + pe->symbols.size / pe->symbol_size;
    struct sl_symbol *symbols = SL_ARENA_ARRAY(arena, struct sl_symbol, capacity + 1);
    if (!symbols)
        return sl_budget_fail(object->budget, error);
    for (size_t i = 0; i < e.count; i++)
        *count += export_at(object, &e, i, code, &symbols[*count], &account);
    size_t exported = *count;
    for (enum coff_kind kind = first; kind <= last; kind++) {
        for (size_t at = 0; at < pe->symbols.size;)
            *count += coff_at(object, &at, kind, &symbols[*count], &account);
        /* if there are typed functions, untyped local symbols are only labels: LOCAL_CODE is left out */
        if (kind == FUNCTIONS && *count > exported)
            last = UNTYPED_CODE;
    }
    if (!object_clip_to_next(symbols, 0, *count))
        return sl_budget_fail(object->budget, error);
    *out = symbols;
    return SL_OK;
}

enum sl_code pe_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols, size_t *count,
                        struct sl_error *error)
{
    return pe_collect(object, true, arena, symbols, count, error);
}

enum sl_code pe_data_symbols(struct sl_object *object, struct sl_arena *arena, struct sl_symbol **symbols,
                             size_t *count, struct sl_error *error)
{
    return pe_collect(object, false, arena, symbols, count, error);
}
