/* The object's symbols by address, for what its entries do not name. */
#include "dwarf/impl.h"

#include <stdlib.h>

enum sl_code dwarf_index_symbols(struct dwarf_reader *reader, struct sl_arena *arena, struct sl_error *error)
{
    struct sl_symbol *symbols;
    size_t count = 0, named = 0;
    enum sl_code code = sl_object_symbols(reader->object, arena, &symbols, &count, error);
    if (code == SL_BUSY || sl_budget_used_up(reader->budget))
        return code;
    if (code != SL_OK || count > UINT32_MAX)
        count = 0;
    struct sl_ordered *order = SL_ARENA_ARRAY(arena, struct sl_ordered, count + 1);
    struct sl_ordered *scratch = malloc((count + 1) * sizeof *scratch);
    if (order && scratch) {
        for (size_t i = 0; i < count; i++) {
            symbols[i].address -= sl_object_info(reader->object)->dwarf_bias;
            if (symbols[i].name.size)
                order[named++] = (struct sl_ordered){symbols[i].address, 0, (uint32_t)i};
        }
        sl_order(order, scratch, named);
        reader->symbols = (struct symbol_index){symbols, order, named};
    }
    code = order && scratch ? SL_OK : sl_budget_fail(reader->budget, error);
    free(scratch);
    return code;
}

/* The first place in [low, count) behind all symbols up to `address`. */
static size_t behind(const struct symbol_index *index, size_t low, uint64_t address)
{
    size_t high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->order[middle].key <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct sl_symbol *symbol(const struct symbol_index *index, size_t place)
{
    return &index->symbols[index->order[place].index];
}

const struct sl_symbol *dwarf_symbol_at(const struct symbol_index *index, uint64_t address)
{
    size_t place = address ? behind(index, 0, address - 1) : 0;
    return place < index->count && index->order[place].key == address ? symbol(index, place) : NULL;
}

struct symbol_span dwarf_symbol_over(struct dwarf_worker *w, const struct symbol_index *index, uint64_t address)
{
    size_t next = behind(index, 0, address), place = next;
    struct symbol_span span = {NULL, next < index->count ? index->order[next].key : UINT64_MAX};
    uint64_t next_start = span.end;
    while (place && index->order[place - 1].key == index->order[next - 1].key && dwarf_spend(w, 1)) {
        const struct sl_symbol *s = symbol(index, --place);
        uint64_t end = s->size && s->size < UINT64_MAX - s->address ? s->address + s->size : next_start;
        if (end > address)
            span = (struct symbol_span){s, end < next_start ? end : next_start};
    }
    return span;
}
