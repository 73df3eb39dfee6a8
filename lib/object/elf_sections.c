/* ELF sections: finding, decompressing (gABI, "Section Compression"; the older .zdebug form), relocating. */
#include "object/elf.h"

#include "base/grow.h"

#include <lzma.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

bool elf_raw(const struct sl_object *object, const struct elf_section *section, struct sl_bytes *bytes)
{
    bool inside;
    *bytes = sl_bytes_slice(object->bytes, section->offset, section->size, &inside);
    return inside && section->type != SHT_NOBITS && section->offset != 0;
}

struct elf_section *elf_find(const struct sl_object *object, const char *name)
{
    struct elf *elf = object->impl;
    struct sl_str wanted = sl_str(name);
    for (size_t i = 0; i < elf->section_count; i++) {
        struct elf_section *s = &elf->sections[i];
        if (s->type != SHT_NOBITS && s->offset && sl_str_equal(s->name, wanted))
            return s;
    }
    return NULL;
}

bool elf_at_address(const struct sl_object *object, uint64_t address, struct sl_bytes *bytes)
{
    const struct elf *elf = object->impl;
    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct elf_segment *s = &elf->segments[i];
        if (s->type != PT_LOAD || address < s->address || address - s->address >= s->file_size)
            continue;
        uint64_t skip = address - s->address;
        bool inside;
        struct sl_bytes all = sl_bytes_slice(object->bytes, s->offset, s->file_size, &inside);
        if (!inside)
            return false;
        *bytes = (struct sl_bytes){all.data + skip, all.size - (size_t)skip};
        return true;
    }
    return false;
}

bool elf_keep(struct elf *elf, void *memory)
{
    if (!sl_grow(&elf->inflated, &elf->inflated_capacity, elf->inflated_count + 1, sizeof *elf->inflated)) {
        free(memory);
        return false;
    }
    elf->inflated[elf->inflated_count++] = memory;
    return true;
}

/* How a section is compressed: the stream, its inflated size, and which library reads it. */
struct compressed {
    struct sl_bytes stream;
    uint64_t size;
    bool zstd;
};

static bool is_zdebug(const struct elf_section *s)
{
    return sl_str_starts(s->name, SL_STR(".z"));
}

/* 1 compressed, 0 plain, -1 unreadable. */
static int compression_of(const struct sl_object *object, const struct elf_section *s, struct compressed *c)
{
    struct sl_bytes raw;
    bool zdebug = is_zdebug(s);
    if (!zdebug && !(s->flags & SHF_COMPRESSED))
        return 0;
    if (!elf_raw(object, s, &raw))
        return -1;
    struct sl_reader r = sl_reader(raw, zdebug ? true : object->info.big_endian);
    uint32_t type = 1;
    if (zdebug) {
        struct sl_bytes magic = sl_read_bytes(&r, 4);
        if (magic.size != 4 || memcmp(magic.data, "ZLIB", 4) != 0)
            return -1;
        c->size = sl_read_u64(&r);
    } else if (object->info.is_64bit) {
        type = sl_read_u32(&r);
        sl_read_u32(&r);
        c->size = sl_read_u64(&r);
        sl_read_u64(&r);
    } else {
        type = sl_read_u32(&r);
        c->size = sl_read_u32(&r);
        sl_read_u32(&r);
    }
    if (r.failed || (type != 1 && type != 2))
        return -1;
    c->zstd = type == 2;
    c->stream = sl_read_bytes(&r, sl_reader_left(&r));
    return 1;
}

const char *elf_compression(const struct sl_object *object, const struct elf_section *section)
{
    struct compressed c;
    return compression_of(object, section, &c) == 1 ? c.zstd ? "zstd" : "zlib" : NULL;
}

/* zlib may end early: what came out counts. Returns the number of bytes, 0 on error. */
static size_t inflate_zlib(struct sl_bytes in, uint8_t *out, size_t size)
{
    z_stream z = {0};
    size_t done = 0;
    int state = Z_OK;
    if (inflateInit(&z) != Z_OK)
        return 0;
    const uint8_t *at = in.data, *end = in.data + in.size;
    while (state == Z_OK && done < size) {
        uInt in_step = (uInt)((size_t)(end - at) > (1u << 30) ? 1u << 30 : (size_t)(end - at));
        uInt out_step = (uInt)(size - done > (1u << 30) ? 1u << 30 : size - done);
        z.next_in = (Bytef *)at;
        z.avail_in = in_step;
        z.next_out = out + done;
        z.avail_out = out_step;
        state = inflate(&z, Z_NO_FLUSH);
        at += in_step - z.avail_in;
        done += out_step - z.avail_out;
        if (state == Z_BUF_ERROR)
            break;
    }
    inflateEnd(&z);
    return state == Z_STREAM_END || (state == Z_OK && done == size) ? done : 0;
}

static struct sl_bytes inflate_section(struct sl_object *object, const struct compressed *c)
{
    struct sl_bytes none = {NULL, 0};
    /* zlib cannot expand more than 1032 times, zstd blocks are bounded too; refuse impossible claims before allocating. */
    if (c->size == 0 || c->size > object->max_section_size || c->size / 65536 > c->stream.size)
        return none;
    uint8_t *out = malloc((size_t)c->size);
    if (!out)
        return none;
    size_t size;
    if (c->zstd) {
        size = ZSTD_decompress(out, (size_t)c->size, c->stream.data, c->stream.size);
        if (ZSTD_isError(size) || size != c->size)
            size = 0;
    } else {
        size = inflate_zlib(c->stream, out, (size_t)c->size);
    }
    if (!size) {
        free(out);
        return none;
    }
    return elf_keep(object->impl, out) ? (struct sl_bytes){out, size} : none;
}

static bool contents(struct sl_object *object, struct elf_section *s, struct sl_bytes *bytes)
{
    struct compressed c;
    struct elf *elf = object->impl;
    int state = s->tried ? 1 : compression_of(object, s, &c);
    bool relocate = elf->type == ET_REL;
    if (!s->tried && (state == 1 || relocate)) {
        struct sl_bytes plain = {NULL, 0};
        if (state == 1)
            plain = inflate_section(object, &c);
        else if (state == 0)
            elf_raw(object, s, &plain);
        s->inflated = relocate && plain.size ? elf_relocate(object, s, plain) : plain;
        s->tried = true;
    }
    if (s->tried)
        *bytes = s->inflated;
    else if (state < 0 || !elf_raw(object, s, bytes))
        return false;
    return bytes->size > 0;
}

bool elf_section_bytes(struct sl_object *object, const char *name, struct sl_bytes *bytes, uint64_t *address)
{
    struct elf *elf = object->impl;
    struct sl_str wanted = sl_str(name);
    for (size_t i = 0; i < elf->section_count; i++) {
        struct elf_section *s = &elf->sections[i];
        if (s->type == SHT_NOBITS || !s->offset || s->name.size < 2 || s->name.data[0] != '.')
            continue;
        struct sl_str plain = {s->name.data + 1, s->name.size - 1};
        bool same = sl_str_equal(plain, wanted) ||
                    (plain.data[0] == 'z' && sl_str_equal((struct sl_str){plain.data + 1, plain.size - 1}, wanted));
        if (!same)
            continue;
        if (address)
            *address = s->address - object->info.load_address;
        return contents(object, s, bytes);
    }
    return false;
}

/* ---- relocatable files ---- */

/* Width in bytes of the absolute relocations that debug sections use; 0 = another kind. */
static unsigned relocation_width(uint16_t machine, uint32_t type)
{
    switch (machine) {
    case EM_X86_64: return type == 1 ? 8 : type == 10 || type == 11 ? 4 : 0;
    case EM_AARCH64: return type == 257 ? 8 : type == 258 ? 4 : 0;
    case EM_386: return type == 1 ? 4 : 0;
    case EM_ARM: return type == 2 ? 4 : 0;
    case EM_PPC: return type == 1 ? 4 : 0;
    case EM_PPC64: return type == 38 ? 8 : type == 1 ? 4 : 0;
    case EM_MIPS: return type == 18 ? 8 : type == 2 ? 4 : 0;
    default: return 0;
    }
}

struct relocator {
    struct sl_object *object;
    struct sl_bytes symbols;
    uint8_t *out;
    size_t size;
};

static uint64_t symbol_value(const struct relocator *rel, uint64_t index)
{
    bool wide = rel->object->info.is_64bit;
    struct sl_reader r = sl_reader(rel->symbols, rel->object->info.big_endian);
    if (index > rel->symbols.size / (wide ? 24 : 16))
        return 0;
    sl_reader_seek(&r, index * (wide ? 24 : 16) + (wide ? 8 : 4));
    return wide ? sl_read_u64(&r) : sl_read_u32(&r);
}

static void store(const struct relocator *rel, uint64_t offset, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++)
        rel->out[offset + i] = (uint8_t)(value >> (8 * (rel->object->info.big_endian ? width - 1 - i : i)));
}

static void apply(const struct relocator *rel, struct sl_bytes table, bool has_addend)
{
    const struct elf *elf = rel->object->impl;
    bool wide = rel->object->info.is_64bit;
    struct sl_reader r = sl_reader(table, rel->object->info.big_endian);
    size_t entry = (wide ? 16u : 8u) + (has_addend ? (wide ? 8u : 4u) : 0u);
    while (sl_reader_left(&r) >= entry) {
        uint64_t offset = wide ? sl_read_u64(&r) : sl_read_u32(&r);
        uint64_t info = wide ? sl_read_u64(&r) : sl_read_u32(&r);
        uint64_t addend = has_addend ? wide ? sl_read_u64(&r) : (uint64_t)(int32_t)sl_read_u32(&r) : 0;
        unsigned width = relocation_width(elf->machine, wide ? (uint32_t)info : (uint32_t)info & 0xFF);
        if (!width || offset > rel->size || width > rel->size - offset)
            continue;
        if (!has_addend) {
            struct sl_reader at = sl_reader((struct sl_bytes){rel->out + offset, width}, r.big_endian);
            addend = sl_read_uint(&at, width);
        }
        store(rel, offset, width, symbol_value(rel, wide ? info >> 32 : info >> 8) + addend);
    }
}

struct sl_bytes elf_relocate(struct sl_object *object, struct elf_section *section, struct sl_bytes plain)
{
    struct elf *elf = object->impl;
    struct relocator rel = {object, {NULL, 0}, NULL, plain.size};
    for (size_t i = 0; i < elf->section_count; i++) {
        struct elf_section *s = &elf->sections[i];
        struct sl_bytes table;
        if ((s->type != SHT_RELA && s->type != SHT_REL) || s->info >= elf->section_count ||
            &elf->sections[s->info] != section || s->link >= elf->section_count || !elf_raw(object, s, &table) ||
            !elf_raw(object, &elf->sections[s->link], &rel.symbols))
            continue;
        if (!rel.out) {
            rel.out = malloc(plain.size);
            if (!rel.out)
                return plain;
            memcpy(rel.out, plain.data, plain.size);
        }
        apply(&rel, table, s->type == SHT_RELA);
    }
    if (!rel.out || !elf_keep(elf, rel.out))
        return plain;
    return (struct sl_bytes){rel.out, plain.size};
}

/* ---- MiniDebugInfo ---- */

static uint8_t *inflate_xz(struct sl_bytes in, uint64_t limit, size_t *size)
{
    lzma_stream z = LZMA_STREAM_INIT;
    size_t capacity = in.size * 4 + 4096;
    uint8_t *out = NULL;
    *size = 0;
    if (lzma_stream_decoder(&z, UINT64_C(256) << 20, 0) != LZMA_OK)
        return NULL;
    z.next_in = in.data;
    z.avail_in = in.size;
    lzma_ret state = LZMA_OK;
    while (state == LZMA_OK && capacity <= limit) {
        uint8_t *grown = realloc(out, capacity);
        if (!grown)
            break;
        out = grown;
        z.next_out = out + *size;
        z.avail_out = capacity - *size;
        state = lzma_code(&z, LZMA_FINISH);
        *size = capacity - z.avail_out;
        capacity *= 2;
    }
    lzma_end(&z);
    if (state == LZMA_STREAM_END)
        return out;
    free(out);
    return NULL;
}

struct sl_object *elf_mini(struct sl_object *object)
{
    enum { MAX_MINI = 256 << 20 };
    struct elf *elf = object->impl;
    if (elf->mini_tried)
        return elf->mini;
    elf->mini_tried = true;
    struct elf_section *section = elf_find(object, ".gnu_debugdata");
    struct sl_bytes raw;
    size_t size;
    if (!section || !elf_raw(object, section, &raw) || raw.size > MAX_MINI)
        return NULL;
    uint8_t *file = inflate_xz(raw, MAX_MINI, &size);
    if (!file || !elf_keep(elf, file))
        return NULL;
    /* A file inside could hold another one: only an ELF without its own .gnu_debugdata is taken. */
    struct sl_bytes bytes = {file, size};
    if (sl_format_detect(bytes) == SL_FORMAT_ELF)
        sl_object_open(bytes, NULL, &elf->mini, NULL);
    if (elf->mini && elf_find(elf->mini, ".gnu_debugdata")) {
        sl_object_close(elf->mini);
        elf->mini = NULL;
    }
    return elf->mini;
}
