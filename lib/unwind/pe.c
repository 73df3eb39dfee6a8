/* PE: where the exception directory is (Microsoft's "PE Format"). */
#include "unwind/pe.h"

#include <stdlib.h>

enum { DIRECTORY_EXCEPTION = 3 };

struct sl_bytes pe_tables_at(const struct pe_tables *t, uint32_t address)
{
    uint64_t wanted = sl_object_info(t->object)->load_address + address;
    for (size_t i = 0; i < t->section_count; i++) {
        const struct sl_section_info *s = &t->sections[i];
        if (wanted >= s->address && wanted - s->address < s->size)
            return sl_bytes_slice(sl_object_file(t->object), s->offset + (wanted - s->address),
                                  s->size - (wanted - s->address), NULL);
    }
    return (struct sl_bytes){NULL, 0};
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
    t->directory = pe_tables_at(t, address);
    t->directory.size = t->directory.size < size ? t->directory.size : size;
    builder_grant(b, sl_object_file(object).size);
    if (b->family == SL_CPU_ARM64)
        pe_read_arm64(t, b);
    else
        pe_read_x86_64(t, b);
    free(t);
    return b->code;
}
