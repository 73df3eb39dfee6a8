/* ELF: headers, identity, kind, features. */
#include "object/elf.h"

#include <inttypes.h>

struct elf_header {
    uint64_t phoff, shoff;
    uint16_t phentsize, phnum, shentsize, shnum, shstrndx;
};

static enum sl_code elf_invalid(struct sl_error *error, const char *what, uint64_t offset)
{
    return sl_fail(error, SL_MALFORMED, "invalid ELF file: %s at 0x%" PRIx64, what, offset);
}

static uint64_t read_word(struct sl_reader *r, bool is_64bit)
{
    return is_64bit ? sl_read_u64(r) : sl_read_u32(r);
}

/* Reads the file header. False if the header is cut off, or if class (32 or 64 bits) or byte order is invalid. */
static bool elf_read_header(struct sl_object *object, struct elf *elf, struct elf_header *h)
{
    struct sl_reader r = sl_reader(object->bytes, false);
    sl_reader_skip(&r, 4); /* magic */
    /* 1 ELFCLASS32, 2 ELFCLASS64; 1 ELFDATA2LSB, 2 ELFDATA2MSB */
    uint8_t class = sl_read_u8(&r), data = sl_read_u8(&r);
    if ((class != 1 && class != 2) || (data != 1 && data != 2))
        return false;
    object->info.is_64bit = class == 2;
    object->info.big_endian = r.big_endian = data == 2;
    sl_reader_seek(&r, 16); /* after e_ident */
    elf->type = sl_read_u16(&r);
    elf->machine = sl_read_u16(&r);
    sl_read_u32(&r);           /* e_version */
    read_word(&r, class == 2); /* e_entry */
    h->phoff = read_word(&r, class == 2);
    h->shoff = read_word(&r, class == 2);
    elf->flags = sl_read_u32(&r);
    sl_read_u16(&r); /* e_ehsize */
    h->phentsize = sl_read_u16(&r);
    h->phnum = sl_read_u16(&r);
    h->shentsize = sl_read_u16(&r);
    h->shnum = sl_read_u16(&r);
    h->shstrndx = sl_read_u16(&r);
    return !r.failed;
}

/* Reads `count` program headers. The field `flags` comes second in 64-bit files, and second to last in 32-bit files. False if the headers
 * are outside the file, or when out of memory, which is recorded in the object. */
static bool read_segments(struct sl_object *object, struct elf *elf, const struct elf_header *h, uint64_t count)
{
    bool wide = object->info.is_64bit;
    if (count == 0)
        return true;
    if (h->phentsize != (wide ? 56 : 32) || h->phoff > object->bytes.size ||
        count > (object->bytes.size - h->phoff) / h->phentsize)
        return false;
    elf->segments = SL_ARENA_ARRAY(&object->arena, struct elf_segment, count);
    if (!elf->segments)
        return object_no_memory(object), false;
    struct sl_reader r = sl_reader(object->bytes, object->info.big_endian);
    sl_reader_seek(&r, h->phoff);
    for (size_t i = 0; i < count; i++) {
        struct elf_segment *s = &elf->segments[i];
        s->type = sl_read_u32(&r);
        if (wide)
            s->flags = sl_read_u32(&r);
        s->offset = read_word(&r, wide);
        s->address = read_word(&r, wide);
        read_word(&r, wide); /* physical address */
        s->file_size = read_word(&r, wide);
        s->memory_size = read_word(&r, wide);
        if (!wide)
            s->flags = sl_read_u32(&r);
        read_word(&r, wide); /* alignment */
    }
    elf->segment_count = count;
    return !r.failed;
}

/* Reads a section header; words are 64 bits wide if `wide`. `*name` is the offset of the name in the section of names (e_shstrndx). */
static void read_section(struct sl_reader *r, bool wide, struct elf_section *s, uint32_t *name)
{
    *name = sl_read_u32(r);
    s->type = sl_read_u32(r);
    s->flags = read_word(r, wide);
    s->address = read_word(r, wide);
    s->offset = read_word(r, wide);
    s->size = read_word(r, wide);
    s->link = sl_read_u32(r);
    s->info = sl_read_u32(r);
    s->alignment = read_word(r, wide);
    s->entsize = read_word(r, wide);
}

/* Reads the section headers, and sets `*segments` to the number of program headers. If a number does not fit into 16 bits of the file
 * header, the header of section 0 has it. False if the section headers are outside the file, or when out of memory, which is recorded in
 * the object. */
static bool elf_read_sections(struct sl_object *object, struct elf *elf, struct elf_header *h, uint64_t *segments)
{
    bool wide = object->info.is_64bit;
    uint64_t count = h->shnum, names_index = h->shstrndx;
    *segments = h->phnum;
    if (h->shoff == 0)
        return true;
    size_t entry = wide ? 64 : 40;
    if (h->shentsize != entry || h->shoff > object->bytes.size || object->bytes.size - h->shoff < entry)
        /* tools that remove the section headers may leave their offset */
        return count == 0 && h->shentsize == 0;
    struct sl_reader r = sl_reader(object->bytes, object->info.big_endian);
    struct elf_section zero = {0};
    uint32_t name;
    sl_reader_seek(&r, h->shoff);
    read_section(&r, wide, &zero, &name);
    if (count == 0)
        count = zero.size;
    if (names_index == SHN_XINDEX)
        names_index = zero.link;
    if (h->phnum == 0xFFFF)
        *segments = zero.info;
    if (count > (object->bytes.size - h->shoff) / entry)
        return false;
    elf->sections = SL_ARENA_ARRAY(&object->arena, struct elf_section, count ? count : 1);
    uint32_t *names = SL_ARENA_ARRAY(&object->arena, uint32_t, count ? count : 1);
    if (!elf->sections || !names)
        return object_no_memory(object), false;
    sl_reader_seek(&r, h->shoff);
    for (size_t i = 0; i < count; i++)
        read_section(&r, wide, &elf->sections[i], &names[i]);
    elf->section_count = count;
    struct sl_bytes table;
    struct sl_account account = {.budget = object->budget};
    if (names_index < count && elf_raw(object, &elf->sections[names_index], &table)) {
        for (size_t i = 0; i < count; i++)
            elf->sections[i].name = sl_account_read_name(&account, table, names[i]);
    } else if (count) {
        object->info.partial = true; /* sections have no names */
    }
    return !r.failed;
}

/* Gives each section with code of a relocatable file an address of its own, one after the other in file order. In the file all have address
 * 0, so an address would not identify a section. Several .debug_info sections are read as one; the address of each becomes its offset
 * there. */
static void lay_out(const struct sl_object *object, struct elf *elf)
{
    uint64_t end = 0, begin, units[2] = {0, 0}; /* units: sizes of all .debug_info.dwo and all .debug_info so far */
    for (size_t i = 0; elf->type == ET_REL && i < elf->section_count; i++) {
        struct elf_section *s = &elf->sections[i];
        if (elf_is_units(s)) {
            uint64_t *next = &units[sl_str_equal(s->name, SL_STR(".debug_info"))];
            s->address = *next;
            *next += elf_plain_size(object, s);
            continue;
        }
        uint64_t padding = s->alignment && !(s->alignment & (s->alignment - 1)) ? -end & (s->alignment - 1) : 0;
        /* a section that has an address keeps it; one beyond the end of the address space stays at 0 */
        if (!(s->flags & SHF_EXECINSTR) || s->address || __builtin_add_overflow(end, padding, &begin) ||
            __builtin_add_overflow(begin, s->size, &end))
            continue;
        s->address = begin;
    }
}

/* Maps e_machine to an architecture; SL_ARCH_UNKNOWN for all that cannot be symbolicated. MIPS has the same numbers
 * for 32 and 64 bits, so the class of the file and the ABI in e_flags decide. The byte order does not matter. */
static enum sl_arch get_arch(const struct elf *elf, bool is_64bit)
{
    switch (elf->machine) {
    case EM_386: return SL_ARCH_X86;
    case EM_X86_64: return SL_ARCH_X86_64;
    case EM_AARCH64: return SL_ARCH_ARM64;
    case EM_ARM: return SL_ARCH_ARM;
    case EM_RISCV: return is_64bit ? SL_ARCH_RISCV64 : SL_ARCH_RISCV;
    case EM_S390: return is_64bit ? SL_ARCH_S390X : SL_ARCH_UNKNOWN;
    case EM_LOONGARCH: return is_64bit ? SL_ARCH_LOONGARCH64 : SL_ARCH_UNKNOWN;
    case EM_PPC: return SL_ARCH_PPC;
    case EM_PPC64: return SL_ARCH_PPC64;
    case EM_MIPS:
    case EM_MIPS_RS3_LE: {
        uint32_t abi = elf->flags & 0xF000; /* O64 0x2000, EABI64 0x4000; EABI32 0x3000 has 32-bit pointers */
        return is_64bit || abi == 0x2000 || abi == 0x4000 ? SL_ARCH_MIPS64 : SL_ARCH_MIPS;
    }
    default: return SL_ARCH_UNKNOWN;
    }
}

/* True if the file contains the name of a dynamic linker (PT_INTERP), as programs do. A debug companion has at most the header for it. */
static bool has_interpreter(const struct sl_object *object, const struct elf *elf)
{
    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct elf_segment *s = &elf->segments[i];
        bool inside;
        if (s->type == PT_INTERP && s->file_size) {
            struct sl_bytes text = sl_bytes_slice(object->bytes, s->offset, s->file_size, &inside);
            return inside && text.data[0] != '\0';
        }
    }
    return false;
}

/* True for a position-independent program. Such programs are shared objects with DF_1_PIE, or (older linkers) with an interpreter and
 * without DT_SONAME. */
static bool is_pie(const struct sl_object *object, const struct elf *elf)
{
    struct elf_dynamic dynamic;
    return elf_read_dynamic(object, &dynamic) &&
           (dynamic.flags_1 & DF_1_PIE || (!dynamic.has_soname && has_interpreter(object, elf)));
}

/* True if a loaded executable segment has contents in the file. */
static bool has_code_segment(const struct elf *elf)
{
    for (size_t i = 0; i < elf->loaded_count; i++)
        if (elf->loaded[i].executable && elf->loaded[i].bytes.size)
            return true;
    return false;
}

/* Returns the kind of the file. A debug companion has the e_type of its program. An ET_EXEC file counts as one if it has no interpreter
 * (also a static program, which has none either), an ET_DYN file if it lacks the contents of its code. */
static enum sl_object_kind get_object_kind(const struct sl_object *object, const struct elf *elf)
{
    switch (elf->type) {
    case ET_NONE: return SL_KIND_NONE;
    case ET_REL: return SL_KIND_REL;
    case ET_EXEC: return has_interpreter(object, elf) ? SL_KIND_EXE : SL_KIND_DBG;
    case ET_DYN: {
        struct elf_section *text = elf_find(object, ".text"); /* NULL also if its contents are not in the file */
        if (elf->section_count ? !text || !text->size : !has_code_segment(elf))
            return SL_KIND_DBG;
        return is_pie(object, elf) ? SL_KIND_EXE : SL_KIND_LIB;
    }
    case ET_CORE: return SL_KIND_DUMP;
    case ET_SCE_EXEC: return SL_KIND_EXE; /* PlayStation */
    case ET_SCE_DYN: return SL_KIND_LIB;
    default: return SL_KIND_OTHER;
    }
}

/* Steps of work that reading a note costs: many, because only crafted files have so many notes that this matters. */
enum { STEPS_PER_NOTE = 16 };

/* Returns the contents of the first note of type 3 (NT_GNU_BUILD_ID). If `gnu`, its name must be "GNU"; else it may have any name, because
 * the name of the section says that it is a build id. Empty if there is none, or if the budget is used up. */
static struct sl_bytes build_id_note(struct sl_account *account, struct sl_bytes notes, bool big_endian, bool gnu)
{
    struct sl_reader r = sl_reader(notes, big_endian);
    while (sl_reader_left(&r) >= 12 && sl_account_spend(account, STEPS_PER_NOTE)) {
        uint32_t name_size = sl_read_u32(&r), size = sl_read_u32(&r), type = sl_read_u32(&r);
        struct sl_bytes name = sl_read_bytes(&r, name_size);
        sl_reader_skip(&r, -(uint64_t)name_size & 3);
        struct sl_bytes desc = sl_read_bytes(&r, size);
        if (r.failed)
            break;
        if (type == 3 && size && (!gnu || (name.size >= 3 && memcmp(name.data, "GNU", 3) == 0)))
            return desc;
        uint64_t padding = -(uint64_t)size & 3;
        if (padding > sl_reader_left(&r))
            break;
        sl_reader_skip(&r, padding);
    }
    return (struct sl_bytes){NULL, 0};
}

/* Returns the build id, or an empty one. Tries in this order: notes of segments, the section of the build id, other note sections, the id
 * of PlayStation files, the id of a supplementary file. */
static struct sl_bytes build_id(struct sl_object *object, const struct elf *elf)
{
    bool inside;
    struct sl_account account = {.budget = object->budget}; /* in crafted files many segments may have the same notes */
    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct elf_segment *s = &elf->segments[i];
        struct sl_bytes notes = sl_bytes_slice(object->bytes, s->offset, s->file_size, &inside);
        struct sl_bytes id = {NULL, 0};
        if (s->type == PT_NOTE && inside)
            id = build_id_note(&account, notes, object->info.big_endian, true);
        if (id.size)
            return id;
    }
    struct elf_section *section = elf_find(object, ".note.gnu.build-id");
    struct sl_bytes notes;
    if (section && elf_raw(object, section, &notes)) {
        struct sl_bytes id = build_id_note(&account, notes, object->info.big_endian, false);
        if (id.size)
            return id;
    }
    /* after the segments failed: those of a debug file may point to bytes that it does not have */
    for (size_t i = 0; i < elf->section_count; i++) {
        if (elf->sections[i].type != SHT_NOTE || !elf_raw(object, &elf->sections[i], &notes))
            continue;
        struct sl_bytes id = build_id_note(&account, notes, object->info.big_endian, true);
        if (id.size)
            return id;
    }
    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct elf_segment *s = &elf->segments[i];
        if (s->type == PT_SCE_BUILD_ID && s->file_size >= 20) /* PlayStation: the id is the first 20 bytes */
            return sl_bytes_slice(object->bytes, s->offset, 20, &inside);
    }
    return object_supplementary_id(object);
}

/* Sets code id and debug id. A file without build id has no code id; its debug id is the one that Breakpad computes: the first page of
 * .text, 16 bytes at a time, combined by XOR. */
static void set_ids(struct sl_object *object, const struct elf *elf)
{
    struct sl_bytes id = build_id(object, elf);
    uint8_t hash[16] = {0};
    if (id.size) {
        object->info.code_id = object_hex(object, id);
        if (!object->info.code_id.size) /* out of memory */
            return;
    } else {
        struct elf_section *section = elf_find(object, ".text");
        struct sl_bytes text;
        if (!section || !elf_raw(object, section, &text))
            return;
        for (size_t i = 0; i < text.size && i < 4096; i++)
            hash[i % 16] ^= text.data[i];
        id = (struct sl_bytes){hash, sizeof hash};
    }
    object->info.debug_id = sl_debug_id_from_build_id(id, object->info.big_endian);
}

/* True if the section (.eh_frame if `eh_frame`, else .debug_frame) describes code: it has at least one FDE (DWARF 5, 6.4.1; LSB 10.6), not
 * only CIEs or a terminator. */
static bool has_fde(struct sl_bytes bytes, bool big_endian, bool eh_frame)
{
    struct sl_reader r = sl_reader(bytes, big_endian);
    while (sl_reader_left(&r) >= 8) {
        uint64_t length = sl_read_u32(&r);
        bool wide = length == 0xFFFFFFFF;
        if (wide)
            length = sl_read_u64(&r);
        if (length == 0 && eh_frame) /* the terminator */
            return false;
        if (length < (wide ? 8u : 4u) || length > sl_reader_left(&r))
            return false;
        uint64_t id = wide && !eh_frame ? sl_read_u64(&r) : sl_read_u32(&r); /* always 32 bits in .eh_frame */
        uint64_t cie = eh_frame ? 0 : wide ? UINT64_MAX : UINT32_MAX;        /* the id that marks a CIE */
        if (id != cie)
            return true;
        sl_reader_skip(&r, length - (wide && !eh_frame ? 8 : 4));
    }
    return false;
}

/* Sets the features by the sections that have bytes in the file: a debug companion has headers (SHT_NOBITS) of those that stayed in the
 * program. Unwind information needs at least one FDE, as linkers write sections with only a CIE or an end mark. BTF.ext is debug
 * information too: lines of eBPF programs. */
static void set_features(struct sl_object *object, struct elf *elf)
{
    static const char *const frames[] = {"eh_frame", "debug_frame"};
    struct sl_features *f = &object->info.features;
    f->has_debug_info = false;
    for (size_t i = 0; i < elf->section_count; i++) {
        struct elf_section *s = &elf->sections[i];
        bool debug = sl_str_equal(s->name, SL_STR(".debug_info")) || sl_str_equal(s->name, SL_STR(".zdebug_info")) ||
                     sl_str_equal(s->name, SL_STR(".BTF.ext"));
        if (debug && s->type != SHT_NOBITS && s->offset && s->offset <= object->bytes.size &&
            s->size <= object->bytes.size - s->offset)
            f->has_debug_info = true;
    }
    for (size_t i = 0; i < 2; i++) {
        struct sl_bytes bytes;
        if (!f->has_unwind_info && elf_section_bytes(object, frames[i], &bytes, NULL))
            f->has_unwind_info = has_fde(bytes, object->info.big_endian, i == 0);
    }
    struct sl_bytes index;
    if (elf->machine == EM_ARM && elf_section_bytes(object, "ARM.exidx", &index, NULL))
        f->has_unwind_info |= index.size >= 8; /* EHABI, 6: two words per function */
    f->has_symbols = elf_has_symbols(object) || object_has_go_table(object);
}

static void set_debug_link(struct sl_object *object)
{
    struct elf_section *section = elf_find(object, ".gnu_debuglink");
    struct sl_bytes bytes;
    if (section && elf_raw(object, section, &bytes))
        object_set_debug_link(object, bytes);
}

/* True if all code lies in the upper half of the address space, like a kernel's. */
static bool is_kernel(const struct elf *elf, bool is_64bit)
{
    bool has_code = false;
    for (size_t i = 0; i < elf->segment_count && is_64bit; i++) {
        const struct elf_segment *s = &elf->segments[i];
        if (s->type != PT_LOAD || !(s->flags & PF_X))
            continue;
        if (!(s->address >> 63))
            return false;
        has_code = true;
    }
    return has_code;
}

/* Returns the address of the first PT_LOAD segment if their addresses ascend. Else (firmware, kernels) returns the lowest one, except for
 * segments without memory and the per-CPU segment that Linux links at 0, which is not part of the kernel's image. 0 if there is none. */
static uint64_t lowest_loaded(const struct elf *elf, bool is_64bit)
{
    const struct elf_segment *first = NULL, *before = NULL, *lowest = NULL;
    bool kernel = is_kernel(elf, is_64bit), ascends = true;
    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct elf_segment *s = &elf->segments[i];
        bool per_processor = kernel && !s->address && !(s->flags & PF_X);
        if (s->type != PT_LOAD)
            continue;
        first = first ? first : s;
        ascends = ascends && (!before || s->address >= before->address);
        before = s;
        if (s->memory_size && !per_processor && (!lowest || s->address < lowest->address))
            lowest = s;
    }
    const struct elf_segment *found = ascends ? first : lowest;
    return found ? found->address : 0;
}

/* Makes `load` the load address: fills elf->loaded with the PT_LOAD segments relative to it and sets the image size, for which a segment
 * that wraps around the address space is ignored. Is called again if elf_relate() changes the load address. */
static void set_load_address(struct sl_object *object, uint64_t load)
{
    struct elf *elf = object->impl;
    uint64_t end = 0;
    object->info.load_address = load;
    elf->loaded_count = 0;
    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct elf_segment *s = &elf->segments[i];
        if (s->type != PT_LOAD)
            continue;
        elf->loaded[elf->loaded_count++] = (struct sl_segment){
            s->address - load, s->memory_size, sl_bytes_part(object->bytes, s->offset, s->file_size), s->flags & PF_X};
        if (s->address <= UINT64_MAX - s->memory_size && s->address + s->memory_size > end)
            end = s->address + s->memory_size;
    }
    object->info.image_size = end > load ? end - load : 0;
}

/* Sets load address, image size and `is_fixed` (linked for one address) by the segments. False when out of memory, which is recorded in the
 * object. */
static bool set_addresses(struct sl_object *object, struct elf *elf)
{
    elf->loaded = SL_ARENA_ARRAY(&object->arena, struct sl_segment, elf->segment_count + 1);
    if (!elf->loaded)
        return object_no_memory(object), false;
    set_load_address(object, lowest_loaded(elf, object->info.is_64bit));
    object->info.is_fixed = elf->type == ET_EXEC && elf->loaded_count;
    return true;
}

/* ---- relating a debug file to its program ---- */

static bool is_code(const struct elf_section *s)
{
    return s->flags & SHF_ALLOC && s->flags & SHF_EXECINSTR && s->size;
}

/* Finds a code section with the same name and size in both files. False if there is none. Tries at most MAX_TRIED code sections of `a`:
 * usually the first one matches, and crafted files may have thousands. */
static bool find_common_code(const struct elf *a, const struct elf *b, const struct elf_section **of_a,
                             const struct elf_section **of_b)
{
    enum { MAX_TRIED = 16 };
    unsigned tried = 0;
    for (size_t i = 0; i < a->section_count && tried < MAX_TRIED; i++) {
        *of_a = &a->sections[i];
        if (!is_code(*of_a))
            continue;
        tried++;
        for (size_t j = 0; j < b->section_count; j++) {
            *of_b = &b->sections[j];
            if (is_code(*of_b) && (*of_a)->size == (*of_b)->size && sl_str_equal((*of_a)->name, (*of_b)->name))
                return true;
        }
    }
    return false;
}

/* Sets the load address of a debug file so that relative addresses are those of its program. The two may be linked at different addresses;
 * they differ as much as the addresses of a code section that both have. Without such a section only files linked for fixed addresses
 * (ET_EXEC) are known to agree. Relocatable files have no load address. */
static void elf_relate(struct sl_object *debug, const struct sl_object *program)
{
    const struct elf *a = debug->impl, *b = program->impl;
    const struct elf_section *of_debug, *of_program;
    if (a->type == ET_REL || b->type == ET_REL)
        return;
    if (find_common_code(a, b, &of_debug, &of_program))
        set_load_address(debug, program->info.load_address - of_program->address + of_debug->address);
    else if (a->type == ET_EXEC && b->type == ET_EXEC)
        set_load_address(debug, program->info.load_address);
}

/* Sets info.debug_file to the shared library's name (DT_SONAME), as a file has no other name of its own. Only the
 * first PT_DYNAMIC is read. */
static void set_soname(struct sl_object *object, const struct elf *elf)
{
    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct elf_segment *s = &elf->segments[i];
        if (s->type != PT_DYNAMIC)
            continue;
        struct sl_reader r =
            sl_reader(sl_bytes_slice(object->bytes, s->offset, s->file_size, NULL), object->info.big_endian);
        bool wide = object->info.is_64bit;
        uint64_t name = UINT64_MAX, table = 0;
        while (sl_reader_left(&r) >= (wide ? 16u : 8u)) {
            uint64_t tag = read_word(&r, wide), value = read_word(&r, wide);
            if (tag == 0)
                break;
            if (tag == 14) /* DT_SONAME */
                name = value;
            if (tag == 5) /* DT_STRTAB */
                table = value;
        }
        struct sl_bytes strings;
        if (name != UINT64_MAX && elf_bytes_at_address(object, table, &strings))
            object->info.debug_file = sl_cstr_at(strings, name);
        return;
    }
}

/* Opens the file. Sections are read before segments, because section 0 has the number of segments if it does not fit into the header. Steps
 * that fail for lack of memory record that in the object, and sl_object_open() reports it in place of the error returned here. */
static enum sl_code elf_open(struct sl_object *object, struct sl_error *error)
{
    struct elf *elf = SL_ARENA_NEW(&object->arena, struct elf);
    struct elf_header header = {0};
    uint64_t segments;
    if (!elf)
        return sl_fail(error, SL_BUSY, "out of memory");
    object->impl = elf;
    if (!elf_read_header(object, elf, &header))
        return elf_invalid(error, "bad file header", 0);
    if (!elf_read_sections(object, elf, &header, &segments))
        return elf_invalid(error, "section headers extend beyond the file", header.shoff);
    if (!read_segments(object, elf, &header, segments))
        return elf_invalid(error, "program headers extend beyond the file", header.phoff);
    lay_out(object, elf);
    object->info.arch = get_arch(elf, object->info.is_64bit);
    if (!set_addresses(object, elf))
        return sl_fail(error, SL_BUSY, "out of memory");
    object->info.kind = get_object_kind(object, elf);
    set_ids(object, elf);
    set_debug_link(object);
    set_soname(object, elf);
    set_features(object, elf);
    return SL_OK;
}

static void elf_close(struct sl_object *object)
{
    struct elf *elf = object->impl;
    sl_object_close(elf->mini_debug_info);
}

/* Describes section `index` as it is in the file; its size is that of the compressed bytes. False behind the last one. */
static bool elf_section_info(struct sl_object *object, size_t index, struct sl_section_info *info)
{
    const struct elf *elf = object->impl;
    if (index >= elf->section_count)
        return false;
    const struct elf_section *s = &elf->sections[index];
    *info = (struct sl_section_info){.name = s->name,
                                     .address = s->address,
                                     .offset = s->offset,
                                     .size = s->size,
                                     .compression = elf_compression(object, s),
                                     .is_loaded = (s->flags & SHF_ALLOC) != 0,
                                     .is_code = (s->flags & SHF_EXECINSTR) != 0};
    return true;
}

/* Returns the `index`-th PT_LOAD segment, with its address relative to the load address; false behind the last one. */
static bool elf_segment(const struct sl_object *object, size_t index, struct sl_segment *segment)
{
    const struct elf *elf = object->impl;
    if (index >= elf->loaded_count)
        return false;
    *segment = elf->loaded[index];
    return true;
}

/* True if code is at the (absolute) address. If the file has headers of code sections, only these count: segments are larger than the code,
 * and in many programs the first one begins with the file's headers, at address 0. */
static bool elf_holds_code(const struct sl_object *object, uint64_t address)
{
    const struct elf *elf = object->impl;
    bool has_any = false;
    for (size_t i = 0; i < elf->section_count; i++) {
        const struct elf_section *s = &elf->sections[i];
        if (!is_code(s))
            continue;
        has_any = true;
        if (address - s->address < s->size)
            return true;
    }
    for (size_t i = 0; i < elf->segment_count && !has_any; i++) {
        const struct elf_segment *s = &elf->segments[i];
        if (s->type == PT_LOAD && (s->flags & PF_X) && address - s->address < s->memory_size)
            return true;
    }
    return false;
}

const struct object_format sl_object_elf = {
    .open = elf_open,
    .close = elf_close,
    .section = elf_section_bytes,
    .section_info = elf_section_info,
    .segment = elf_segment,
    .holds_code = elf_holds_code,
    .symbols = elf_symbols,
    .data_symbols = elf_data_symbols,
    .symbol_files = elf_symbol_files,
    .symbol_table = elf_symbol_table,
    .mapping_symbols = elf_mapping_symbols,
    .relate = elf_relate,
};
