/* The object's symbols sorted by address, for code that the entries do not name. */
#include "dwarf/impl.h"

#include "function/undecorate.h"
#include "object/nesting.h"
#include "object/symbols.h"
#include "base/search.h"

#include <stdlib.h>

/* Copies the symbols, with addresses as in DWARF and names without the C decoration of 32-bit Windows. NULL when out of memory. */
static const struct sl_symbol *as_in_dwarf(const struct sl_symbol *symbols, size_t count,
                                           const struct sl_object_info *info, struct sl_arena *arena)
{
    struct sl_symbol *copy = SL_ARENA_ARRAY(arena, struct sl_symbol, count + 1); /* + 1: NULL only when out of memory */
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = symbols[i];
        copy[i].address -= info->dwarf_bias;
        if (info->decorates)
            copy[i].name = sl_undecorate(copy[i].name, NULL);
    }
    return copy;
}

static const struct sl_symbol *symbol(const struct symbol_index *index, size_t position)
{
    return &index->symbols[index->order[position].index];
}

/* Sets symbol_index.around if symbols are nested: for each symbol the position of the innermost one whose range encloses its start, so that
 * code behind an inner symbol can be attributed to the outer one. False when out of memory. */
static bool find_around(struct symbol_index *index, struct sl_budget *budget, struct sl_arena *arena)
{
    struct sl_nesting nesting = {.account.budget = budget};
    bool nested = sl_symbols_are_nested(index->symbols, index->order, index->count), ok = true;
    uint32_t *around = nested ? SL_ARENA_ARRAY(arena, uint32_t, index->count) : NULL;
    for (size_t i = 0, next; around && ok && i < index->count; i = next) {
        const struct sl_nested *outer = sl_nesting_at(&nesting, index->order[i].key);
        uint32_t position = outer ? outer->tag : NO_POSITION;
        for (next = i; next < index->count && index->order[next].key == index->order[i].key; next++)
            around[next] = position;
        for (size_t j = next; ok && j-- > i;) /* backwards, so that the first in the file counts as the innermost */
            ok = !symbol(index, j)->size || sl_nesting_open(&nesting, sl_symbol_end(symbol(index, j)), (uint32_t)j);
    }
    sl_nesting_free(&nesting);
    index->around = around;
    return ok && (around || !nested);
}

enum sl_code dwarf_index_symbols(struct dwarf_reader *reader, struct sl_arena *arena, struct sl_error *error)
{
    const struct sl_symbol *symbols;
    size_t count = 0, named = 0;
    const struct sl_object_info *info = sl_object_info(reader->object);
    enum sl_code code = sl_object_cached_symbols(reader->object, &symbols, &count, error);
    if (code == SL_BUSY || sl_budget_exhausted(reader->budget))
        return code;
    /* without readable symbols the names are those of DWARF alone */
    if (code != SL_OK || count > UINT32_MAX)
        count = 0;
    if (info->dwarf_bias || info->decorates)
        symbols = as_in_dwarf(symbols, count, info, arena);
    struct sl_ordered *order = SL_ARENA_ARRAY(arena, struct sl_ordered, count + 1);
    struct sl_ordered *scratch = malloc((count + 1) * sizeof *scratch); /* + 1: NULL only when out of memory */
    bool made = order && scratch && (symbols || !count);
    if (made) {
        for (size_t i = 0; i < count; i++)
            if (symbols[i].name.size)
                order[named++] = (struct sl_ordered){.key = symbols[i].address, .index = (uint32_t)i};
        sl_order(order, scratch, named);
        reader->symbols = (struct symbol_index){.symbols = symbols, .order = order, .count = named};
        made = find_around(&reader->symbols, reader->budget, arena);
    }
    code = made ? SL_OK : sl_budget_fail(reader->budget, error);
    free(scratch);
    return code;
}

/* Returns the first index in [low, count) of a symbol that begins after `address`; count if there is none. */
static size_t first_behind(const struct symbol_index *index, size_t low, uint64_t address)
{
    return SL_PARTITION_POINT(middle, low, index->count, index->order[middle].key <= address);
}

/* Returns the first symbol in the file that begins at the address, or NULL. */
const struct sl_symbol *dwarf_symbol_at(const struct symbol_index *index, uint64_t address)
{
    size_t position = address ? first_behind(index, 0, address - 1) : 0;
    return position < index->count && index->order[position].key == address ? symbol(index, position) : NULL;
}

/* True for names mangled as by Itanium C++, Rust, D, Swift, Microsoft C++; with one more underscore on 32-bit Apple and Windows. */
static bool is_mangled(struct sl_str name)
{
    static const char *const starts[] = {"_Z", "_R", "_D", "$s", "$S", "_T0", "?", "__Z", "_$s", "_$S"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (sl_str_starts(name, sl_str(starts[i])))
            return true;
    return false;
}

/* Mangled names contain identifiers as they are; template arguments, the `~` of a destructor and operators are encoded. */
bool dwarf_mangles(struct sl_str symbol, struct sl_str name)
{
    if (sl_str_starts(name, SL_STR("operator")))
        return is_mangled(symbol);
    if (name.size && name.data[0] == '~')
        name = (struct sl_str){name.data + 1, name.size - 1};
    const char *arguments = name.size ? memchr(name.data, '<', name.size) : NULL;
    if (arguments)
        name.size = (size_t)(arguments - name.data);
    return name.size && is_mangled(symbol) && memmem(symbol.data, symbol.size, name.data, name.size);
}

struct sl_str dwarf_symbol_name(const struct symbol_index *index, uint64_t entry, struct entry_name name,
                                enum sl_language language)
{
    /* Apple's bitcode builds have `__hidden#N_` instead of names */
    bool hidden = sl_str_starts(name.text, SL_STR("__hidden#"));
    bool unnamed = !name.text.size || hidden;
    if (!unnamed && (name.linkage || language == SL_LANG_C)) /* C does not mangle names */
        return name.text;
    const struct sl_symbol *symbol = dwarf_symbol_at(index, entry);
    return symbol && (unnamed || dwarf_mangles(symbol->name, name.text)) ? symbol->name : name.text;
}

/* Returns the symbol that covers the address. First looks at the symbols with the highest start at or before it: of those that reach the
 * address the first one in the file counts. If none does, takes the innermost symbol around them (index->around) that does. */
struct symbol_span dwarf_find_symbol_span(struct dwarf_worker *w, const struct symbol_index *index, uint64_t address)
{
    size_t next = first_behind(index, 0, address), position = next;
    struct symbol_span span = {NULL, next < index->count ? index->order[next].key : UINT64_MAX};
    uint64_t next_start = span.end;
    while (position && index->order[position - 1].key == index->order[next - 1].key &&
           sl_account_spend(&w->account, 1)) {
        const struct sl_symbol *s = symbol(index, --position);
        uint64_t end = s->size && s->size < UINT64_MAX - s->address ? s->address + s->size : next_start;
        if (end > address) /* the loop runs backwards: the first in the file is stored last */
            span = (struct symbol_span){s, end < next_start ? end : next_start};
    }
    uint32_t outer = !span.symbol && index->around && next ? index->around[next - 1] : NO_POSITION;
    for (; outer != NO_POSITION && !span.symbol && sl_account_spend(&w->account, 1); outer = index->around[outer]) {
        uint64_t end = sl_symbol_end(symbol(index, outer));
        if (end > address)
            span = (struct symbol_span){symbol(index, outer), end < next_start ? end : next_start};
    }
    return span;
}
