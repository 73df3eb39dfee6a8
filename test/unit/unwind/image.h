/* The smallest files that have given sections, and their STACK records. */
#pragma once

#include "../check.h"

#include "unwind/unwind.h"

struct image_section {
    const char *name;
    uint64_t address;
    struct sl_bytes bytes;
};

static inline struct sl_bytes buf_bytes(struct sl_buf *b)
{
    assert_false(b->failed);
    return sl_buf_bytes(b);
}

static inline void put_number(struct sl_buf *b, uint64_t value, unsigned size, bool big_endian)
{
    for (unsigned i = 0; i < size; i++)
        sl_buf_u8(b, (uint8_t)(value >> 8 * (big_endian ? size - 1 - i : i)));
}

/* An ELF file: header, contents, names, section headers. Of 32 bits if `address_size` is 4. */
static inline struct sl_buf elf_image(unsigned machine, unsigned address_size, bool big_endian,
                                      const struct image_section *sections, size_t count)
{
    struct sl_buf b = {0}, names = {0};
    bool wide = address_size == 8;
    uint64_t at[8], name_at[8];
    const unsigned w = wide ? 8 : 4;
    const uint64_t header = wide ? 64 : 52, entry = wide ? 64 : 40;
    sl_buf_u8(&names, 0);
    uint64_t end = header;
    for (size_t i = 0; i < count; i++) {
        name_at[i] = names.size;
        sl_buf_add(&names, sections[i].name, strlen(sections[i].name) + 1);
        at[i] = end;
        end += sections[i].bytes.size;
    }
    uint64_t own_name = names.size, names_at = end, table = end + names.size + 11;
    sl_buf_add(&names, ".shstrtab", 10);
    sl_buf_u8(&names, 0); /* so that nothing is aligned */
    const uint8_t ident[16] = {0x7F, 'E', 'L', 'F', wide ? 2 : 1, big_endian ? 2 : 1, 1};
    sl_buf_add(&b, ident, 16);
    put_number(&b, 3, 2, big_endian); /* ET_DYN */
    put_number(&b, machine, 2, big_endian);
    put_number(&b, 1, 4, big_endian);
    put_number(&b, 0, w, big_endian);
    put_number(&b, 0, w, big_endian);
    put_number(&b, table, w, big_endian);
    put_number(&b, 0, 4, big_endian);
    const uint64_t tail[6] = {header, 0, 0, entry, count + 2, count + 1};
    for (size_t i = 0; i < 6; i++)
        put_number(&b, tail[i], 2, big_endian);
    for (size_t i = 0; i < count; i++)
        sl_buf_add(&b, sections[i].bytes.data, sections[i].bytes.size);
    sl_buf_add(&b, names.data, names.size);
    for (size_t i = 0; i < count + 2; i++) {
        bool none = i == 0, own = i == count + 1;
        put_number(&b, none ? 0 : own ? own_name : name_at[i - 1], 4, big_endian);
        put_number(&b, none ? 0 : own ? 3 : 1, 4, big_endian);
        put_number(&b, none || own ? 0 : 2, w, big_endian);
        put_number(&b, none || own ? 0 : sections[i - 1].address, w, big_endian);
        put_number(&b, none ? 0 : own ? names_at : at[i - 1], w, big_endian);
        put_number(&b, none ? 0 : own ? names.size : sections[i - 1].bytes.size, w, big_endian);
        put_number(&b, 0, 8, big_endian);
        put_number(&b, none ? 0 : 1, w, big_endian);
        put_number(&b, 0, w, big_endian);
    }
    sl_buf_free(&names);
    return b;
}

/* A Mach-O library of 64 bits whose segment __TEXT is at `load`; section addresses are absolute. `symbol`, if
 * there is one, is where the first section begins. */
static inline struct sl_buf macho_image(uint32_t cpu, uint32_t subtype, uint64_t load,
                                        const struct image_section *sections, size_t count, const char *symbol)
{
    struct sl_buf b = {0};
    uint64_t commands = 72 + 80 * count + (symbol ? 24 : 0), end = 32 + commands, total = end;
    for (size_t i = 0; i < count; i++)
        total += sections[i].bytes.size;
    const uint32_t header[] = {0xFEEDFACF, cpu, subtype, 6, symbol ? 2 : 1, (uint32_t)commands, 0, 0};
    for (size_t i = 0; i < 8; i++)
        sl_buf_u32(&b, header[i]);
    sl_buf_u32(&b, 0x19); /* LC_SEGMENT_64 */
    sl_buf_u32(&b, (uint32_t)(72 + 80 * count));
    sl_buf_add(&b, "__TEXT\0\0\0\0\0\0\0\0\0", 16);
    const uint64_t segment[] = {load, 0x100000, 0, total};
    for (size_t i = 0; i < 4; i++)
        sl_buf_u64(&b, segment[i]);
    const uint32_t rest[] = {5, 5, (uint32_t)count, 0};
    for (size_t i = 0; i < 4; i++)
        sl_buf_u32(&b, rest[i]);
    for (size_t i = 0; i < count; i++) {
        char name[16] = {0};
        memcpy(name, sections[i].name, strnlen(sections[i].name, 16));
        sl_buf_add(&b, name, 16);
        sl_buf_add(&b, "__TEXT\0\0\0\0\0\0\0\0\0", 16);
        sl_buf_u64(&b, sections[i].address);
        sl_buf_u64(&b, sections[i].bytes.size);
        sl_buf_u32(&b, (uint32_t)end);
        sl_buf_fill(&b, 0, 28);
        end += sections[i].bytes.size;
    }
    if (symbol) { /* LC_SYMTAB: the symbol, then the names, of which the first is empty */
        const uint32_t table[] = {2, 24, (uint32_t)total, 1, (uint32_t)total + 16, (uint32_t)strlen(symbol) + 2};
        for (size_t i = 0; i < 6; i++)
            sl_buf_u32(&b, table[i]);
    }
    for (size_t i = 0; i < count; i++)
        sl_buf_add(&b, sections[i].bytes.data, sections[i].bytes.size);
    if (symbol) {
        sl_buf_u32(&b, 1);
        sl_buf_add(&b, "\x0F\1\0", 4); /* N_SECT | N_EXT, section 1 */
        sl_buf_u64(&b, sections[0].address);
        sl_buf_u8(&b, 0);
        sl_buf_add(&b, symbol, strlen(symbol) + 1);
    }
    return b;
}

/* A PE32+ file at 0x140000000; section addresses are relative. `directory`: place and size of the exception directory. */
static inline struct sl_buf pe_image(uint16_t machine, const uint32_t directory[2],
                                     const struct image_section *sections, size_t count)
{
    struct sl_buf b = {0};
    uint64_t end = 0x40 + 24 + 240 + 40 * count;
    sl_buf_add(&b, "MZ", 2);
    sl_buf_fill(&b, 0, 0x3A);
    sl_buf_u32(&b, 0x40);
    sl_buf_add(&b, "PE\0", 4);
    sl_buf_u16(&b, machine);
    sl_buf_u16(&b, (uint16_t)count);
    sl_buf_fill(&b, 0, 12);
    sl_buf_u16(&b, 240);
    sl_buf_u16(&b, 0x2022);
    size_t optional = b.size;
    sl_buf_fill(&b, 0, 240);
    assert_false(b.failed);
    memcpy(b.data + optional, "\x0B\x02", 2);
    memcpy(b.data + optional + 24, &(uint64_t){0x140000000}, 8);
    memcpy(b.data + optional + 56, &(uint32_t){0x10000}, 4);
    memcpy(b.data + optional + 108, &(uint32_t){16}, 4);
    memcpy(b.data + optional + 112 + 24, directory, 8);
    for (size_t i = 0; i < count; i++) {
        char name[8] = {0};
        memcpy(name, sections[i].name, strnlen(sections[i].name, 8));
        sl_buf_add(&b, name, 8);
        sl_buf_u32(&b, (uint32_t)sections[i].bytes.size);
        sl_buf_u32(&b, (uint32_t)sections[i].address);
        sl_buf_u32(&b, (uint32_t)sections[i].bytes.size);
        sl_buf_u32(&b, (uint32_t)end);
        sl_buf_fill(&b, 0, 12);
        sl_buf_u32(&b, 0x40000040);
        end += sections[i].bytes.size;
    }
    for (size_t i = 0; i < count; i++)
        sl_buf_add(&b, sections[i].bytes.data, sections[i].bytes.size);
    return b;
}

/* ---- records ---- */

static inline bool append_text(void *arg, struct sl_str text)
{
    sl_buf_str(arg, text);
    return true;
}

struct records {
    struct sl_buf text;
    enum sl_code code;
    struct sl_error error;
    size_t skipped;
};

static inline struct records records_within(struct sl_bytes file, const struct sl_object_limits *limits)
{
    struct records r = {0};
    struct sl_object *object;
    struct sl_unwind_text text;
    uint8_t *copy = malloc(file.size); /* so that reading past the end is noticed */
    assert_non_null(copy);
    memcpy(copy, file.data, file.size);
    if (sl_object_open((struct sl_bytes){copy, file.size}, limits, &object, &r.error) != SL_OK)
        fail_msg("%s", r.error.message);
    sl_unwind_text_init(&text, object);
    text.write = append_text;
    text.arg = &r.text;
    r.code = sl_unwind_read(object, &text.sink, &r.error);
    r.skipped = text.sink.skipped;
    sl_buf_u8(&r.text, 0);
    assert_false(r.text.failed);
    sl_unwind_text_free(&text);
    sl_object_close(object);
    free(copy);
    return r;
}

static inline struct records records_of(struct sl_bytes file)
{
    return records_within(file, NULL);
}

/* The records of the file, which must be these. Takes the buffer. */
static inline void expect(struct sl_buf file, const char *records)
{
    struct records r = records_of(buf_bytes(&file));
    if (r.code != SL_OK && r.code != SL_NOT_FOUND)
        fail_msg("%s", r.error.message);
    assert_string_equal((const char *)r.text.data, records);
    sl_buf_free(&r.text);
    sl_buf_free(&file);
}
