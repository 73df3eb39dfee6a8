/* ELF sections: finding and decompressing them (gABI, "Section Compression"; the older .zdebug form). */
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

bool elf_bytes_at_address(const struct sl_object *object, uint64_t address, struct sl_bytes *bytes)
{
    *bytes = sl_object_at(object, address - object->info.load_address);
    return bytes->size > 0;
}

static bool is_zdebug(const struct elf_section *s)
{
    return sl_str_starts(s->name, SL_STR(".z"));
}

/* Reads the header of a compressed section: the older form (.zdebug_*), Elf32_Chdr or Elf64_Chdr. Returns 1 if the section is compressed, 0
 * if it is not, -1 if it lies outside the file or its header cannot be read. */
static int read_compression(const struct sl_object *object, const struct elf_section *s, struct object_compressed *c)
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
        sl_read_u32(&r); /* reserved */
        c->size = sl_read_u64(&r);
        sl_read_u64(&r); /* alignment */
    } else {
        type = sl_read_u32(&r);
        c->size = sl_read_u32(&r);
        sl_read_u32(&r); /* alignment */
    }
    if (r.failed || (type != 1 && type != 2)) /* ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD */
        return -1;
    c->zstd = type == 2;
    c->stream = sl_read_bytes(&r, sl_reader_left(&r));
    return 1;
}

const char *elf_compression(const struct sl_object *object, const struct elf_section *section)
{
    struct object_compressed c;
    return read_compression(object, section, &c) == 1 ? c.zstd ? "zstd" : "zlib" : NULL;
}

/* True for BTF, which is not relocated: its offsets are relative to their section, and libbpf uses them as they are. */
static bool is_btf(const struct elf_section *s)
{
    return sl_str_equal(s->name, SL_STR(".BTF")) || sl_str_equal(s->name, SL_STR(".BTF.ext"));
}

/* Sets `*bytes` to the contents of the section, decompressed and relocated; both is done at the first call and stored in s->inflated. False
 * if there are no contents or they cannot be read; for .debug_info, without which there is no debug information, the object records why. */
static bool contents(struct sl_object *object, struct elf_section *s, struct sl_bytes *bytes)
{
    struct object_compressed c;
    struct elf *elf = object->impl;
    /* 1: compressed, or decompressed or relocated by an earlier call (s->tried); 0: plain; -1: unreadable */
    int state = s->tried ? 1 : read_compression(object, s, &c);
    bool relocate = elf->type == ET_REL && !is_btf(s); /* BTF's offsets are relative to its section: used as they are */
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
        *bytes = (struct sl_bytes){NULL, 0};
    if (!bytes->size && s->size && sl_str_equal(s->name, SL_STR(".debug_info")))
        sl_fail(object_debug_info_error(object), SL_UNSUPPORTED, "cannot read section .debug_info: %s",
                state < 0    ? "it extends beyond the file or has an unknown compression"
                : state == 1 ? "it is damaged, or too large after decompression"
                             : "it extends beyond the file");
    return bytes->size > 0;
}

bool elf_is_units(const struct elf_section *s)
{
    return s->type != SHT_NOBITS && s->offset &&
           (sl_str_equal(s->name, SL_STR(".debug_info")) || sl_str_equal(s->name, SL_STR(".debug_info.dwo")));
}

uint64_t elf_plain_size(const struct sl_object *object, const struct elf_section *s)
{
    struct object_compressed c;
    int state = read_compression(object, s, &c);
    return state == 1 ? c.size : state == 0 ? s->size : 0;
}

/* Iterates over all sections called `name`, which is .debug_info or .debug_info.dwo. */
struct unit_sections {
    struct sl_object *object;
    size_t next; /* index of the section to look at next */
    struct sl_str name;
    uint64_t left; /* bytes that the next sections may have; all have at most the file's size, unless they overlap */
};

/* Finds the next section called all->name and reads its contents. Skips sections that cannot be read or are larger than all->left, because
 * sections overlap then. Relocating a section needs a search of all section headers, which is charged to the budget: once that is used up,
 * all other sections are skipped. False at the end. */
static bool next_units(struct unit_sections *all, struct sl_bytes *bytes)
{
    struct elf *elf = all->object->impl;
    while (all->next < elf->section_count) {
        struct elf_section *s = &elf->sections[all->next++];
        if (!elf_is_units(s) || !sl_str_equal(s->name, all->name) || s->size > all->left ||
            !sl_budget_spend(all->object->budget, elf->section_count))
            continue;
        all->left -= s->size;
        if (contents(all->object, s, bytes))
            return true;
    }
    return false;
}

/* Sets `*joined` to the contents of all .debug_info (or .debug_info.dwo) sections, one after the other; section `first` is the first of the
 * name. There are several if -fdebug-types-section puts each type unit into a section of its own. A single section is not copied. The
 * result is kept in elf->units for the next call. False if there is nothing to read. */
static bool join_units(struct sl_object *object, size_t first, struct sl_bytes *joined)
{
    struct elf *elf = object->impl;
    struct sl_str name = elf->sections[first].name;
    struct sl_bytes *kept = &elf->units[sl_str_equal(name, SL_STR(".debug_info"))], part;
    size_t size = 0, at = 0, count = 0;
    if (!kept->size) {
        struct unit_sections all = {object, first, name, object->bytes.size};
        for (; next_units(&all, &part); count++) {
            *kept = part;
            size += part.size;
        }
    }
    if (count > 1) {
        /* the copy is charged, and limited in size, like a decompressed section */
        uint8_t *out = object_may_inflate(object, size, size) ? object_block(object, size) : NULL;
        struct unit_sections all = {object, first, name, object->bytes.size};
        /* the same sections as above, or fewer if the budget is used up meanwhile */
        while (out && next_units(&all, &part) && part.size <= size - at) {
            memcpy(out + at, part.data, part.size);
            at += part.size;
        }
        *kept = (struct sl_bytes){out, at};
        if (!out)
            sl_fail(object_debug_info_error(object), SL_UNSUPPORTED,
                    "cannot read sections " SL_STR_FMT ": they are too large", SL_STR_ARG(name));
    }
    *joined = *kept;
    return joined->size > 0;
}

/* Finds the first section called `.` and `name`, or `.z` and `name` (the older compressed form), and sets `*bytes` to its contents and
 * `*address` (may be NULL) to its relative address. False if there is none or its contents cannot be read. */
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
        return elf_is_units(s) ? join_units(object, i, bytes) : contents(object, s, bytes);
    }
    return false;
}

/* ---- MiniDebugInfo ---- */

/* Returns the uncompressed size of an .xz file of one stream, by its index (The .xz File Format, 4); 0 if it is not one. */
static uint64_t xz_size(struct sl_bytes in)
{
    lzma_stream_flags footer;
    lzma_index *index = NULL;
    uint64_t memory = 1 << 20, size = 0; /* memory: limit in bytes for the decoded index */
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
    uint64_t memory = UINT64_C(80) << 20; /* limit of the decoder, bytes: files of xz -9 take 65 MiB */
    size_t given = 0, done = 0;
    return lzma_stream_buffer_decode(&memory, 0, NULL, in.data, &given, in.size, out, &done, size) == LZMA_OK &&
           done == size;
}

/* Returns the ELF file inside .gnu_debugdata, which is decompressed and opened at the first call; NULL if there is none or it cannot be
 * read. Also NULL for a file that is itself inside another one, because crafted files could nest them without end. */
struct sl_object *elf_mini_debug_info(struct sl_object *object)
{
    struct elf *elf = object->impl;
    if (elf->mini_debug_info_tried || object->is_inner)
        return elf->mini_debug_info;
    elf->mini_debug_info_tried = true;
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
        object_grow_budget(object, size); /* it was made for the size of the compressed file */
        elf->mini_debug_info = object_open_inner(object, bytes);
    }
    return elf->mini_debug_info;
}
