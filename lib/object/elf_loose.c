/* Loose symbols: hand-written code has symbols without a type or without a size (gABI, "Symbol Table"). Their ends follow from the
 * symbols around them.
 *
 *     .text   | f (a function, sized)      | entry (no type)  | start (no size)      |
 *                    ^ label: within f                                                ^ end of the section */
#include "object/elf.h"
#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

/* True for the names of mapping symbols ($a, $t, $d, $x, $xrv...), which mark changes of the instruction set (ELF for the Arm
 * Architecture, 5.5.5; RISC-V ELF psABI, "Mapping Symbol"), and of local labels (.L...). */
static bool is_mark(struct sl_str name)
{
    if (sl_str_starts(name, SL_STR(".L")) || sl_str_starts(name, SL_STR("$xrv")))
        return true;
    return name.size >= 2 && name.data[0] == '$' && memchr("atdx", name.data[1], 4) &&
           (name.size == 2 || name.data[2] == '.');
}

bool elf_loose_add(struct elf_loose_list *list, struct elf_loose loose)
{
    if (loose.untyped && (!loose.symbol.name.size || is_mark(loose.symbol.name)))
        return true;
    if (!sl_account_grow(&list->account, &list->items, &list->capacity, list->count + 1, sizeof *list->items))
        return false;
    loose.position = list->count;
    loose.next = UINT64_MAX; /* no function after it is known yet */
    list->items[list->count++] = loose;
    return true;
}

SL_ORDER_BY(elf_loose_by_address, struct elf_loose, symbol.address, position)

/* Returns the index of the first loose symbol at or after the address. */
static size_t first_from(const struct elf_loose_list *list, uint64_t address)
{
    return SL_PARTITION_POINT(middle, 0, list->count, list->items[middle].symbol.address < address);
}

/* Compares the loose symbols (those without type or size) with all functions. The last loose symbol before each function gets `next`, the
 * function's start. The first one at a function's start gets at_function, and at_sized if the function has a size. `around` becomes the
 * number of functions that contain the symbol minus that of the symbol before it: the sum of `around` up to a symbol is the number of
 * functions that contain it. */
static void compare_with(struct elf_loose_list *list, const struct sl_symbol *functions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        /* a function whose size is not known yet contains only its first byte */
        uint64_t begin = functions[i].address, size = functions[i].size ? functions[i].size : 1;
        uint64_t end = size > UINT64_MAX - begin ? UINT64_MAX : begin + size;
        /* first_from(): index of the first loose symbol at or after an address; first..behind - 1 are within the function */
        size_t first = first_from(list, begin), behind = first;
        if (first && begin < list->items[first - 1].next)
            list->items[first - 1].next = begin;
        if (first < list->count && list->items[first].symbol.address < end)
            behind = first_from(list, end);
        if (first < list->count && list->items[first].symbol.address == begin) {
            list->items[first].at_function = true;
            list->items[first].at_sized |= functions[i].size > 0;
        }
        if (behind > first) {
            list->items[first].around++;
            if (behind < list->count)
                list->items[behind].around--;
        }
    }
}

/* Sets at_sized of each loose symbol without a size at whose address a symbol with a size begins: it is a further name of that symbol.
 * Clears at_sized of loose symbols that have a size themselves. */
static void find_names_of_sized(struct elf_loose_list *list)
{
    for (size_t i = 0, next; i < list->count; i = next) {
        bool sized = false;
        for (next = i; next < list->count && list->items[next].symbol.address == list->items[i].symbol.address; next++)
            sized = sized || list->items[next].symbol.size || list->items[next].at_sized;
        for (size_t j = i; j < next; j++)
            list->items[j].at_sized = sized && !list->items[j].symbol.size;
    }
}

/* Sets the size of each loose symbol (one without type or size), from the last to the first, because a symbol ends at the next one that is
 * not dropped. Untyped symbols within functions become labels, without size. Dropped are: labels, if the list keeps none or the label is
 * only a further name of a function; symbols that are further names of one with a size (at_sized); and symbols that would be empty. */
static void find_ends(struct elf_loose_list *list)
{
    int64_t around = 0;
    uint64_t next = UINT64_MAX, kept = 0; /* starts of the next function or symbol, and of the last kept loose symbol */
    for (size_t i = 0; i < list->count; i++) {
        struct elf_loose *loose = &list->items[i], *before = i ? loose - 1 : loose;
        around += loose->around;
        /* compare_with() set at_function only in the first loose symbol of an address */
        loose->at_function |= before->at_function && before->symbol.address == loose->symbol.address;
        loose->symbol.is_label = loose->untyped && around > 0;
        loose->dropped = loose->at_sized || (loose->symbol.is_label && (loose->at_function || !list->keeps_labels));
    }
    for (size_t i = list->count; i--;) {
        struct elf_loose *loose = &list->items[i];
        uint64_t address = loose->symbol.address;
        /* `kept` may be at the same address: two names for the same code, which have the same end */
        if (kept > address && kept < next)
            next = kept;
        if (loose->next < next)
            next = loose->next;
        uint64_t end = next < loose->section_end ? next : loose->section_end;
        if (loose->symbol.is_label || loose->dropped)
            continue;
        if (!loose->symbol.size)
            loose->symbol.size = end > address ? end - address : 0;
        loose->dropped = loose->dropped || !loose->symbol.size;
        if (!loose->dropped)
            kept = address;
    }
}

size_t elf_loose_finish(struct elf_loose_list *list, struct sl_symbol *symbols, size_t count)
{
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, elf_loose_by_address);
    compare_with(list, symbols, count);
    find_names_of_sized(list);
    find_ends(list);
    for (size_t i = 0; i < list->count; i++) {
        const struct elf_loose *loose = &list->items[i];
        /* a symbol with a type is in `symbols` already; a dropped one stays there without name and size */
        if (!loose->untyped)
            symbols[loose->index] = loose->dropped ? (struct sl_symbol){loose->symbol.address} : loose->symbol;
        else if (!loose->dropped)
            symbols[count++] = loose->symbol;
    }
    return count;
}
