/* ELF sections: finding, decompressing (gABI, "Section Compression"; the older .zdebug form), relocating. */
#include "object/elf.h"

#include <lzma.h>

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
    *bytes = sl_object_at(object, address - object->info.load_address);
    return bytes->size > 0;
}

static bool is_zdebug(const struct elf_section *s)
{
    return sl_str_starts(s->name, SL_STR(".z"));
}

/* 1 compressed, 0 plain, -1 unreadable. */
static int compression_of(const struct sl_object *object, const struct elf_section *s, struct object_compressed *c)
{
    struct sl_bytes raw;
    bool zdebug = is_zdebug(s);
    if (!zdebug && !(s->flags & SHF_COMPRESSED))
        return 0;
    if (!elf_raw(object, s, &raw))
        return -1;
    if (zdebug)
        return object_read_zdebug(raw, c) ? 1 : -1;
    struct sl_reader r = sl_reader(raw, object->info.big_endian);
    uint32_t type;
    if (object->info.is_64bit) {
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
    struct object_compressed c;
    return compression_of(object, section, &c) == 1 ? c.zstd ? "zstd" : "zlib" : NULL;
}

static bool contents(struct sl_object *object, struct elf_section *s, struct sl_bytes *bytes)
{
    struct object_compressed c;
    struct elf *elf = object->impl;
    int state = s->tried ? 1 : compression_of(object, s, &c);
    bool relocate = elf->type == ET_REL;
    if (!s->tried && (state == 1 || relocate)) {
        struct sl_bytes plain = {NULL, 0};
        if (state == 1)
            plain = object_inflate_section(object, &c);
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

/* What a relocation does with its symbol's value and the addend. */
enum relocation_deed { RELOCATION_SET, RELOCATION_ADD, RELOCATION_SUB };

struct relocation {
    unsigned width; /* bytes; 0 = a kind that debug sections do not use */
    enum relocation_deed deed;
    bool six; /* of the lower six bits alone */
};

/* Linkers may shorten code of RISC-V, so that its assembler leaves differences of addresses to them too (RISC-V ELF psABI, 8.5). */
static struct relocation relocation_of_riscv(uint32_t type)
{
    switch (type) {
    case 1: return (struct relocation){4, RELOCATION_SET, false};
    case 2: return (struct relocation){8, RELOCATION_SET, false};
    case 33:
    case 34:
    case 35:
    case 36: return (struct relocation){1u << (type - 33), RELOCATION_ADD, false};
    case 37:
    case 38:
    case 39:
    case 40: return (struct relocation){1u << (type - 37), RELOCATION_SUB, false};
    case 52: return (struct relocation){1, RELOCATION_SUB, true};
    case 53: return (struct relocation){1, RELOCATION_SET, true};
    case 54:
    case 55:
    case 56: return (struct relocation){1u << (type - 54), RELOCATION_SET, false};
    default: return (struct relocation){0, RELOCATION_SET, false};
    }
}

/* Of other machines they are absolute. */
static struct relocation relocation_of(uint16_t machine, uint32_t type)
{
    unsigned width = 0;
    switch (machine) {
    case EM_X86_64: width = type == 1 ? 8 : type == 10 || type == 11 ? 4 : 0; break;
    case EM_AARCH64: width = type == 257 ? 8 : type == 258 ? 4 : 0; break;
    case EM_386: width = type == 1 ? 4 : 0; break;
    case EM_ARM: width = type == 2 ? 4 : 0; break;
    case EM_PPC: width = type == 1 ? 4 : 0; break;
    case EM_PPC64: width = type == 38 ? 8 : type == 1 ? 4 : 0; break;
    case EM_MIPS: width = type == 18 ? 8 : type == 2 ? 4 : 0; break;
    case EM_S390: width = type == 22 ? 8 : type == 4 ? 4 : 0; break;
    case EM_RISCV: return relocation_of_riscv(type);
    default: break;
    }
    return (struct relocation){width, RELOCATION_SET, false};
}

/* `r_info` of a table's entry. MIPS of 64 bits has three types of a byte each behind the symbol, the first of them last; in
 * little-endian files the symbol is the lower half all the same (MIPS 64-bit ELF object file specification, 2.9). */
static void split_info(const struct sl_object *object, uint64_t info, uint64_t *symbol, uint32_t *type)
{
    const struct elf *elf = object->impl;
    bool wide = object->info.is_64bit;
    *symbol = wide ? info >> 32 : info >> 8;
    *type = wide ? (uint32_t)info : (uint32_t)info & 0xFF;
    if (!wide || elf->machine != EM_MIPS)
        return;
    if (!object->info.big_endian) {
        *symbol = (uint32_t)info;
        *type = (uint32_t)(info >> 56);
    }
    *type &= 0xFF;
}

enum { STEPS_PER_RELOCATION = 4, STEPS_PER_OVERLAP = 16 /* of a byte of tables that must overlap others */ };

struct relocator {
    struct sl_object *object;
    struct sl_purse purse;
    struct sl_bytes symbols, section_indexes;
    uint8_t *out;
    size_t size;
    bool knows_symbol; /* the last one: many relocations in a row name the same */
    uint64_t symbol, value;
};

/* Relative to the layout of the file's code. */
static uint64_t read_symbol_value(const struct relocator *rel, uint64_t index)
{
    const struct elf *elf = rel->object->impl;
    bool wide = rel->object->info.is_64bit;
    struct sl_reader r = sl_reader(rel->symbols, rel->object->info.big_endian);
    if (index >= rel->symbols.size / (wide ? 24 : 16))
        return 0;
    sl_reader_seek(&r, index * (wide ? 24 : 16));
    struct elf_raw_symbol symbol = elf_read_symbol(&r, wide);
    uint32_t section = elf_symbol_section(rel->object, rel->section_indexes, &symbol, index);
    return symbol.value + (section < elf->section_count ? elf->sections[section].address : 0);
}

static uint64_t symbol_value(struct relocator *rel, uint64_t index)
{
    if (!rel->knows_symbol || rel->symbol != index)
        rel->value = read_symbol_value(rel, index);
    rel->symbol = index;
    rel->knows_symbol = true;
    return rel->value;
}

static void elf_sections_store(const struct relocator *rel, uint64_t offset, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++)
        rel->out[offset + i] = (uint8_t)(value >> (8 * (rel->object->info.big_endian ? width - 1 - i : i)));
}

static uint64_t related(struct relocation relocation, uint64_t there, uint64_t value)
{
    uint64_t result = relocation.deed == RELOCATION_ADD   ? there + value
                      : relocation.deed == RELOCATION_SUB ? there - value
                                                          : value;
    return relocation.six ? (there & ~UINT64_C(63)) | (result & 63) : result;
}

static void elf_sections_apply(struct relocator *rel, struct sl_bytes table, bool has_addend)
{
    const struct elf *elf = rel->object->impl;
    bool wide = rel->object->info.is_64bit;
    struct sl_reader r = sl_reader(table, rel->object->info.big_endian);
    size_t entry = (wide ? 16u : 8u) + (has_addend ? (wide ? 8u : 4u) : 0u);
    while (sl_reader_left(&r) >= entry && sl_purse_spend(&rel->purse, STEPS_PER_RELOCATION)) {
        uint64_t offset = wide ? sl_read_u64(&r) : sl_read_u32(&r);
        uint64_t info = wide ? sl_read_u64(&r) : sl_read_u32(&r);
        uint64_t addend = has_addend ? wide ? sl_read_u64(&r) : (uint64_t)(int32_t)sl_read_u32(&r) : 0;
        uint64_t symbol;
        uint32_t type;
        split_info(rel->object, info, &symbol, &type);
        struct relocation relocation = relocation_of(elf->machine, type);
        if (!relocation.width || offset > rel->size || relocation.width > rel->size - offset)
            continue;
        struct sl_reader at = sl_reader((struct sl_bytes){rel->out + offset, relocation.width}, r.big_endian);
        uint64_t there = sl_read_uint(&at, relocation.width);
        uint64_t value = symbol_value(rel, symbol) + (has_addend ? addend : there);
        elf_sections_store(rel, offset, relocation.width, related(relocation, there, value));
    }
}

struct sl_bytes elf_relocate(struct sl_object *object, struct elf_section *section, struct sl_bytes plain)
{
    struct elf *elf = object->impl;
    struct relocator rel = {.object = object, .purse = {.budget = object->budget}, .size = plain.size};
    uint32_t link = 0; /* of the last table: there is hardly ever another */
    for (size_t i = 0; i < elf->section_count; i++) {
        struct elf_section *s = &elf->sections[i];
        struct sl_bytes table;
        if ((s->type != SHT_RELA && s->type != SHT_REL) || s->info >= elf->section_count ||
            &elf->sections[s->info] != section || s->link >= elf->section_count || !elf_raw(object, s, &table) ||
            !elf_raw(object, &elf->sections[s->link], &rel.symbols))
            continue;
        elf->relocated += table.size;
        if (elf->relocated > object->bytes.size && !sl_budget_spend(object->budget, table.size * STEPS_PER_OVERLAP))
            break;
        if (s->link != link && !sl_budget_spend(object->budget, elf->section_count))
            continue;
        if (s->link != link)
            rel.section_indexes = elf_section_indexes(object, s->link);
        link = s->link;
        rel.knows_symbol = false;
        if (!rel.out) {
            rel.out = object_block(object, plain.size);
            if (!rel.out)
                return plain;
            memcpy(rel.out, plain.data, plain.size);
        }
        elf_sections_apply(&rel, table, s->type == SHT_RELA);
    }
    return rel.out ? (struct sl_bytes){rel.out, plain.size} : plain;
}

/* ---- MiniDebugInfo ---- */

/* How much an .xz file of one stream holds, as its index says (The .xz File Format, 4); 0 when it is none. */
static uint64_t xz_size(struct sl_bytes in)
{
    lzma_stream_flags footer;
    lzma_index *index = NULL;
    uint64_t memory = 1 << 20, size = 0;
    size_t at = 0;
    if (in.size < 2 * LZMA_STREAM_HEADER_SIZE)
        return 0;
    const uint8_t *end = in.data + in.size - LZMA_STREAM_HEADER_SIZE;
    if (lzma_stream_footer_decode(&footer, end) != LZMA_OK ||
        footer.backward_size > in.size - 2 * LZMA_STREAM_HEADER_SIZE)
        return 0;
    if (lzma_index_buffer_decode(&index, &memory, NULL, end - footer.backward_size, &at, footer.backward_size) ==
        LZMA_OK)
        size = lzma_index_uncompressed_size(index);
    lzma_index_end(index, NULL);
    return size;
}

static bool inflate_xz(struct sl_bytes in, uint8_t *out, size_t size)
{
    uint64_t memory = UINT64_C(80) << 20; /* xz -9 makes files that take 65 MiB to read */
    size_t given = 0, done = 0;
    return lzma_stream_buffer_decode(&memory, 0, NULL, in.data, &given, in.size, out, &done, size) == LZMA_OK &&
           done == size;
}

/* What is inside may again have a file inside, which nobody looks for. */
struct sl_object *elf_mini(struct sl_object *object)
{
    struct elf *elf = object->impl;
    if (elf->mini_tried || object->is_inner)
        return elf->mini;
    elf->mini_tried = true;
    struct elf_section *section = elf_find(object, ".gnu_debugdata");
    struct sl_bytes raw;
    if (!section || !elf_raw(object, section, &raw))
        return NULL;
    while (raw.size && !raw.data[raw.size - 1]) /* padding */
        raw.size--;
    uint64_t size = xz_size(raw);
    uint8_t *file = object_may_inflate(object, raw.size, size) ? object_block(object, (size_t)size) : NULL;
    struct sl_bytes bytes = {file, (size_t)size};
    if (file && inflate_xz(raw, file, bytes.size) && sl_format_detect(bytes) == SL_FORMAT_ELF) {
        object_grant(object, size);
        elf->mini = object_open_inner(object, bytes);
    }
    return elf->mini;
}
