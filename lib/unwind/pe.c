/* PE: where the exception directory is (Microsoft's "PE Format"). */
#include "unwind/pe.h"

#include <stdlib.h>

enum { DIRECTORY_EXCEPTION = 3 };

struct sl_bytes pe_tables_at(const struct pe_tables *t, uint32_t address)
{
    uint64_t wanted = sl_object_info(t->object)->load_address + address;
    size_t low = 0, high = t->section_count;
    while (low < high) { /* the first section beyond */
        size_t middle = low + (high - low) / 2;
        if (t->sections[middle].address <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    const struct sl_section_info *s = low ? &t->sections[low - 1] : NULL;
    if (!s || wanted - s->address >= s->size)
        return (struct sl_bytes){NULL, 0};
    return sl_bytes_slice(sl_object_file(t->object), s->offset + (wanted - s->address), s->size - (wanted - s->address),
                          NULL);
}

static bool exception_directory(const struct sl_object *object, uint32_t *address, uint32_t *size)
{
    struct sl_reader r = sl_reader(sl_object_file(object), false);
    sl_reader_seek(&r, 0x3C);
    sl_reader_seek(&r, (uint64_t)sl_read_u32(&r) + 24);
    size_t optional = sl_reader_offset(&r);
    bool wide = sl_read_u16(&r) == 0x20B;
    sl_reader_seek(&r, optional + (wide ? 108 : 92));
    uint32_t count = sl_read_u32(&r);
    sl_reader_skip(&r, DIRECTORY_EXCEPTION * 8);
    *address = sl_read_u32(&r);
    *size = sl_read_u32(&r);
    return !r.failed && count > DIRECTORY_EXCEPTION && *address && *size;
}

static int pe_by_address(const void *left, const void *right)
{
    const struct sl_section_info *a = left, *b = right;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (a->size > b->size) - (a->size < b->size);
}

enum sl_code pe_read(struct sl_object *object, struct builder *b)
{
    uint32_t address, size;
    if (!exception_directory(object, &address, &size))
        return SL_OK;
    struct pe_tables *t = malloc(sizeof *t);
    if (!t)
        return b->code = sl_fail(b->error, SL_BUSY, "out of memory");
    t->object = object;
    for (t->section_count = 0; t->section_count < PE_MAX_SECTIONS; t->section_count++)
        if (!sl_object_section_info(object, t->section_count, &t->sections[t->section_count]))
            break;
    qsort(t->sections, t->section_count, sizeof *t->sections, pe_by_address);
    t->directory = pe_tables_at(t, address);
    t->directory.size = t->directory.size < size ? t->directory.size : size;
    if (b->family == SL_CPU_ARM64)
        pe_read_arm64(t, b);
    else
        pe_read_x86_64(t, b);
    free(t);
    return b->code;
}
