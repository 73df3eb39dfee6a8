/* .debug_aranges (DWARF 5, 6.1.2): code ranges of units whose root entries do not list all of their code. DWARF 2 has no DW_AT_ranges: if a
 * file has code in several sections, LLVM's assembler gives the root entry the range of the first section only, and NASM does the same in
 * DWARF 3. */
#include "dwarf/impl.h"
#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

SL_ORDER_BY(by_unit, struct aranges_set, unit, begin)

/* Reads the header of one unit's set of ranges and moves the reader past the set. False if the rest of the section cannot be read. */
static bool read_set(struct sl_reader *r, struct aranges_set *set)
{
    unsigned offset_size = 4;
    uint64_t start = sl_reader_offset(r), length = sl_read_u32(r);
    if (length == 0xFFFFFFFF) {
        offset_size = 8;
        length = sl_read_u64(r);
    }
    /* at least version (2 bytes), offset of the unit, and sizes of an address and of a segment (1 byte each) */
    if (r->failed || length > sl_reader_left(r) || length < 4u + offset_size)
        return false;
    set->end = sl_reader_offset(r) + length;
    uint16_t version = sl_read_u16(r);
    set->unit = sl_read_uint(r, offset_size);
    set->address_size = sl_read_u8(r);
    bool good = version == 2 && sl_read_u8(r) == 0 && /* no segments */
                (set->address_size == 2 || set->address_size == 4 || set->address_size == 8);
    uint64_t tuple = 2u * set->address_size, header = sl_reader_offset(r) - start;
    /* tuples begin at a multiple of their size from the start of the set; a set that cannot be used gets none */
    set->begin = good ? start + (header + tuple - 1) / tuple * tuple : set->end;
    sl_reader_seek(r, set->end);
    return !r->failed;
}

/* From DWARF 4 on root entries list all of their code, so .debug_aranges is not read. */
enum { LAST_VERSION = 3 };

/* True if the file has a unit of a version whose root entry may not list all of its code. */
static bool needs_aranges(const struct dwarf_file *file)
{
    for (size_t i = 0; i < file->unit_count; i++)
        if (file->units[i].version <= LAST_VERSION)
            return true;
    return false;
}

bool dwarf_index_aranges(struct dwarf_file *file, struct sl_object *object, struct sl_arena *arena)
{
    struct aranges_set set;
    size_t capacity = 0;
    if (!needs_aranges(file) || !sl_object_section(object, "debug_aranges", &file->aranges, NULL))
        return true;
    struct sl_reader r = sl_reader(file->aranges, file->big_endian);
    while (sl_reader_left(&r) && read_set(&r, &set)) {
        if (set.begin >= set.end) /* empty, or of a form that cannot be used (read_set) */
            continue;
        if (!sl_grow_in_arena(arena, &file->sets, &capacity, file->set_count + 1, sizeof set))
            return false;
        file->sets[file->set_count++] = set;
    }
    if (file->set_count)
        qsort(file->sets, file->set_count, sizeof set, by_unit);
    return true;
}

const struct aranges_set *dwarf_find_aranges(const struct dwarf_unit *unit, size_t *count)
{
    const struct dwarf_file *file = unit->file;
    *count = 0;
    if (unit->header->version > LAST_VERSION || unit->has_ranges)
        return NULL;
    size_t low = SL_PARTITION_POINT(middle, 0, file->set_count, file->sets[middle].unit < unit->header->offset);
    while (low + *count < file->set_count && file->sets[low + *count].unit == unit->header->offset)
        ++*count;
    return *count ? &file->sets[low] : NULL;
}
