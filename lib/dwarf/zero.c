/* Code at address 0 of linked files: vector tables and boot code of firmware. GNU linkers leave the entries and lines of dropped
 * functions, with address 0: of all entries and line sequences at 0, one is live. It is chosen by the symbols at 0.
 *
 *     entries   the subprogram with the name of a symbol at 0
 *     lines     in the unit with that subprogram, the sequence that ends at or after its end; in a unit without subprograms at 0, the
 *               sequence that ends with the symbol, unless the root entry has ranges that do not begin at 0
 *
 * A file that has symbols, but none at 0, has a vector table there, and no code. */
#include "dwarf/impl.h"

#include "object/symbols.h"

#include <stdlib.h>

enum { BYTES_PER_STEP = 4 };
/* More symbols at 0 are ignored; usually there are one or two, and labels of linker scripts. */
enum { MAX_SYMBOLS = 64 };

/* Sets next_code: the lowest address above 0 at which a root entry has code. Units that cannot be read are passed
 * over. SL_BUSY when out of memory; a used-up budget is recorded in the object, where the caller looks later. */
static enum sl_code find_next_code(struct dwarf_reader *reader, struct sl_error *error)
{
    struct dwarf_worker *w = calloc(1, sizeof *w);
    struct dwarf_unit unit;
    if (!w)
        return sl_fail(error, SL_BUSY, "out of memory");
    w->account.budget = reader->budget;
    /* stops when the budget is used up (account.failed) */
    for (size_t i = 0; i < reader->main.unit_count && !w->account.failed; i++) {
        size_t count =
            dwarf_unit_peek(w, &reader->main, &reader->main.units[i], &unit) ? dwarf_unit_ranges(w, &unit) : 0;
        for (size_t j = 0; j < count; j++) {
            uint64_t begin = w->ranges[j].begin;
            if (begin && begin < reader->next_code && sl_object_holds_code(reader->object, begin))
                reader->next_code = begin;
        }
    }
    dwarf_worker_free(w);
    free(w);
    return SL_OK;
}

enum sl_code dwarf_index_zero(struct dwarf_reader *reader, struct sl_arena *arena, struct sl_error *error)
{
    const struct sl_symbol *symbols;
    size_t count = 0, capacity = 0;
    reader->next_code = UINT64_MAX; /* no code above 0 is known */
    if (!reader->main.code_at_zero)
        return SL_OK;
    enum sl_code code = sl_object_cached_symbols(reader->object, &symbols, &count, error);
    if (code == SL_BUSY || sl_budget_exhausted(reader->budget))
        return code;
    for (size_t i = 0; code == SL_OK && i < count && reader->zero_symbol_count < MAX_SYMBOLS; i++) {
        reader->has_symbols = reader->has_symbols || symbols[i].name.size;
        /* symbols are relative to the load address */
        if (symbols[i].address + reader->load_address != 0 || !symbols[i].name.size)
            continue;
        if (!sl_grow_in_arena(arena, &reader->zero_symbols, &capacity, reader->zero_symbol_count + 1,
                              sizeof *reader->zero_symbols))
            return sl_budget_fail(reader->budget, error);
        reader->zero_symbols[reader->zero_symbol_count++] = symbols[i].name;
        reader->zero_size = symbols[i].size > reader->zero_size ? symbols[i].size : reader->zero_size;
    }
    return find_next_code(reader, error);
}

/* False for a file that has symbols, but none at 0: what is there is no code. */
static bool may_have_code_at_zero(const struct dwarf_reader *reader)
{
    return reader->zero_symbol_count || !reader->has_symbols;
}

/* True if a subprogram at 0 is live, not dropped: its name is that of a symbol at 0, as it is or mangled. If the file has no symbols, or
 * the subprogram no name, there is nothing to compare, and the subprogram counts as live. */
bool dwarf_is_at_zero(const struct dwarf_reader *reader, struct dwarf_worker *w, struct entry_name name)
{
    for (size_t i = 0;
         i < reader->zero_symbol_count && sl_account_spend(&w->account, 1 + name.text.size / BYTES_PER_STEP); i++) {
        struct sl_str symbol = reader->zero_symbols[i];
        bool begins = sl_str_starts(symbol, name.text);
        /* the name, the name with a suffix of the compiler as in `name.part.0`, or its mangled form */
        if ((begins && (symbol.size == name.text.size || symbol.data[name.text.size] == '.')) ||
            (!name.linkage && dwarf_mangles(symbol, name.text)))
            return true;
    }
    return !reader->has_symbols || !name.text.size;
}

/* True if the unit may have code at 0: its root entry has no ranges, or one that begins at 0. */
static bool may_be_at_zero(struct dwarf_worker *w, const struct dwarf_unit *unit)
{
    size_t count = dwarf_unit_ranges(w, unit);
    bool found = !count;
    for (size_t i = 0; i < count && !found; i++)
        found = w->ranges[i].begin == 0;
    return found;
}

bool dwarf_keep_zero_lines(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *unit,
                           const struct dwarf_unit *walked, struct sl_arena *arena)
{
    struct dwarf_line_table *lines = &w->lines;
    struct sequence *s = lines->sequences;
    struct zero_claims claims;
    size_t count = 0, best = 0;
    while (count < lines->sequence_count && s[count].start == 0)
        count++;
    if (!count || !reader->main.code_at_zero)
        return true;
    bool read = dwarf_find_zero(reader, w, walked, arena, &claims);
    /* this unit has the live code: by its subprograms at 0, or if it has none, by its root entry */
    bool own = claims.count ? claims.end > 0 : may_be_at_zero(w, unit);
    uint64_t end = claims.count ? claims.end : reader->zero_size;
    for (size_t i = 1; i < count; i++) { /* keep the shortest that covers `end`, else the longest */
        bool covers = s[i].end >= end, best_covers = s[best].end >= end;
        if (covers ? !best_covers || s[i].end < s[best].end : !best_covers && s[i].end > s[best].end)
            best = i;
    }
    if (!claims.count) /* without subprograms at 0 to compare: the sequence must not reach into other code */
        own = own && s[best].end <= reader->next_code && may_have_code_at_zero(reader);
    size_t dropped = count - own; /* `own`: one of them is kept */
    if (own)
        s[dropped] = s[best];
    lines->sequence_count -= dropped;
    memmove(s, s + dropped, lines->sequence_count * sizeof *s);
    return read;
}
