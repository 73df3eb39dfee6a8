/* COFF object files, as compilers for Windows write them (Microsoft's "PE Format", "COFF File Header"; with too many sections for 16
 * bits (/bigobj) ANON_OBJECT_HEADER_BIGOBJ of winnt.h):
 *
 *     ordinary   machine u16, sections u16, time u32, symbols u32, their number u32, 0 u16, flags u16
 *     /bigobj    0 u16, 0xFFFF u16, version u16, machine u16, time u32, class id, 16 bytes, sections u32, symbols u32, number u32
 *     import     0 u16, 0xFFFF u16, 0 u16, machine u16, time u32, size u32, .., then name NUL library NUL: no code
 *
 * then the section headers. Debug information is CodeView in `.debug$S` and `.debug$T`, or DWARF. */
#include "object/coff.h"

#include "pdb/pdb.h"

#include <inttypes.h>

enum {
    HEADER = 20,
    BIG_HEADER = 56,
    IMPORT_HEADER = 20,
    SECTION = 40,
    SYMBOL = 18,
    BIG_SYMBOL = 20,
    FILE_EXECUTABLE = 0x2,
    ANONYMOUS = 0xFFFF,
    C13_LINES = 0xF2,
};

struct coff_header {
    uint16_t machine;
    uint32_t section_count, symbol_offset, symbol_count, size, symbol_size;
};

static const uint8_t big_class[16] = {0xC7, 0xA1, 0xBA, 0xD1, 0xEE, 0xBA, 0xA9, 0x4B,
                                      0xAF, 0x20, 0xFA, 0xF6, 0x6A, 0xA4, 0xDC, 0xB8};

/* Reads the ordinary header. False for files that are not object files: images have an optional header or the flag of an executable. */
static bool read_header(struct sl_bytes bytes, struct coff_header *h)
{
    struct sl_reader r = sl_reader(bytes, false);
    *h = (struct coff_header){.size = HEADER, .symbol_size = SYMBOL};
    h->machine = sl_read_u16(&r);
    h->section_count = sl_read_u16(&r);
    sl_read_u32(&r); /* time stamp */
    h->symbol_offset = sl_read_u32(&r);
    h->symbol_count = sl_read_u32(&r);
    uint16_t optional_size = sl_read_u16(&r), flags = sl_read_u16(&r);
    return !r.failed && object_machine_arch(h->machine) != SL_ARCH_UNKNOWN && !optional_size &&
           !(flags & FILE_EXECUTABLE);
}

/* Reads an anonymous header and returns its kind. COFF_IMPORT: version 0. COFF_BIG (/bigobj): version 2 or later, with the class id of such
 * files. COFF_OTHER: any other; files compiled for link-time code generation have another class id. */
static enum coff_anonymous read_anonymous(struct sl_bytes bytes, struct coff_header *h)
{
    struct sl_reader r = sl_reader(bytes, false);
    *h = (struct coff_header){.size = BIG_HEADER, .symbol_size = BIG_SYMBOL};
    sl_reader_skip(&r, 4); /* 0 and 0xFFFF, which tell this header from the ordinary one */
    uint16_t version = sl_read_u16(&r);
    h->machine = sl_read_u16(&r);
    sl_read_u32(&r); /* time stamp */
    struct sl_bytes class = sl_read_bytes(&r, sizeof big_class);
    sl_reader_skip(&r, 16); /* size of data, flags, size and offset of metadata */
    h->section_count = sl_read_u32(&r);
    h->symbol_offset = sl_read_u32(&r);
    h->symbol_count = sl_read_u32(&r);
    if (version == 0)
        return COFF_IMPORT; /* its header is shorter: r.failed, and the fields after the machine, do not count */
    return !r.failed && version >= 2 && memcmp(class.data, big_class, sizeof big_class) == 0 ? COFF_BIG : COFF_OTHER;
}

/* True if there are sections and the tables of sections and symbols lie inside the file, one behind the other. Object files have no magic,
 * so this is part of recognising the format. */
static bool is_inside(struct sl_bytes bytes, const struct coff_header *h)
{
    uint64_t sections = h->size + (uint64_t)h->section_count * SECTION;
    uint64_t symbols = h->symbol_offset + (uint64_t)h->symbol_count * h->symbol_size;
    return sections <= bytes.size && symbols <= bytes.size && (!h->symbol_offset || h->symbol_offset >= sections) &&
           (h->symbol_offset || !h->symbol_count) && h->section_count;
}

/* Reads an ordinary or an anonymous header; `*anonymous` is the kind of header (COFF_NAMED: ordinary). False if the file is not COFF. A
 * file whose header has tables of sections and symbols is COFF only if these lie inside the file (is_inside). */
static bool read_any_header(struct sl_bytes bytes, struct coff_header *h, enum coff_anonymous *anonymous)
{
    struct sl_reader r = sl_reader(bytes, false);
    bool is_anonymous = sl_read_u16(&r) == 0 && sl_read_u16(&r) == ANONYMOUS;
    *anonymous = COFF_NAMED;
    if (bytes.size < IMPORT_HEADER) /* no header is shorter */
        return false;
    if (!is_anonymous)
        return read_header(bytes, h) && is_inside(bytes, h);
    *anonymous = read_anonymous(bytes, h);
    return object_machine_arch(h->machine) != SL_ARCH_UNKNOWN && (*anonymous != COFF_BIG || is_inside(bytes, h));
}

bool coff_detect(struct sl_bytes bytes, enum coff_anonymous *anonymous)
{
    struct coff_header h;
    return read_any_header(bytes, &h, anonymous);
}

/* True for members of import libraries that have no code: all sections are tables for the import members (.idata$*), or the name of the
 * compiler (.debug$S). */
static bool has_tables_alone(struct sl_bytes bytes, const struct coff_header *h)
{
    struct sl_reader r = sl_reader(bytes, false);
    bool has_table = false;
    sl_reader_seek(&r, h->size);
    for (uint32_t i = 0; i < h->section_count; i++) {
        struct sl_bytes name = sl_read_bytes(&r, 8);
        sl_reader_skip(&r, SECTION - 8);
        bool is_table = !r.failed && memcmp(name.data, ".idata$", 7) == 0;
        if (!is_table && (r.failed || memcmp(name.data, ".debug$S", 8) != 0))
            return false;
        has_table = has_table || is_table;
    }
    return has_table;
}

bool sl_coff_import(struct sl_bytes bytes, struct sl_str *library)
{
    struct coff_header h;
    enum coff_anonymous anonymous;
    *library = (struct sl_str){NULL, 0};
    if (!read_any_header(bytes, &h, &anonymous))
        return false;
    if (anonymous != COFF_IMPORT)
        return anonymous == COFF_NAMED && has_tables_alone(bytes, &h); /* such members have the ordinary header */
    struct sl_bytes texts = sl_bytes_from(bytes, IMPORT_HEADER);       /* name NUL library NUL */
    *library = sl_cstr_at(texts, sl_cstr_at(texts, 0).size + 1);
    return true;
}

/* ---- opening ---- */

/* Gives each section with code an address of its own: one after the other, in file order. In the file all sections have address 0, so an
 * address would not identify one. Code beyond 4 GiB and sections without code keep address 0. False when out of memory. */
static bool lay_out(struct sl_object *object, struct coff *coff)
{
    struct pe *pe = &coff->pe;
    uint64_t end = 0;
    pe->by_address = SL_ARENA_ARRAY(&object->arena, const struct pe_section *, pe->section_count + 1);
    if (!pe->by_address)
        return object_no_memory(object), false;
    for (size_t i = 0; i < pe->section_count; i++) {
        struct pe_section *s = &pe->sections[i];
        s->address = s->virtual_size = 0; /* object files have no virtual sizes: raw_size counts */
        if (!s->executable)
            continue;
        uint64_t begin = (end + s->alignment - 1) & ~((uint64_t)s->alignment - 1);
        if (begin + s->raw_size > UINT32_MAX) /* addresses of sections have 32 bits */
            break;
        s->address = (uint32_t)begin;
        end = begin + s->raw_size;
        if (s->raw_size)
            pe->by_address[pe->mapped_count++] = s; /* in ascending order, as each gets the next address */
    }
    coff->code_size = (uint32_t)end;
    return true;
}

/* True if the section has this name and contents. */
static bool coff_has_name(const struct pe_section *s, const char *name)
{
    return sl_str_equal(s->name, sl_str(name)) && s->offset && s->raw_size;
}

/* True if a .debug$S section has line numbers. Without debug information compilers write the section, too: with their name and version. */
static bool has_lines(const struct sl_object *object, const struct pe_section *s)
{
    struct sl_reader r = sl_reader(pe_raw(object, s), false);
    sl_read_u32(&r); /* signature */
    while (sl_reader_left(&r) >= 8) {
        uint32_t kind = sl_read_u32(&r), size = sl_read_u32(&r);
        if (kind == C13_LINES)
            return true;
        sl_reader_skip(&r, size + (-(uint64_t)size & 3)); /* padded to a multiple of 4 */
    }
    return false;
}

/* Sets the features by the sections. Debug information is a .debug_info section (DWARF), or a .debug$S section with line numbers
 * (CodeView). If there is only CodeView, the object's format becomes the one that reads it. The search for line numbers ends after as many
 * bytes as the file has, because crafted sections may overlap. */
static void set_features(struct sl_object *object, const struct coff *coff)
{
    struct sl_features *f = &object->info.features;
    bool has_codeview = false;
    uint64_t looked_at = 0; /* bytes of .debug$S sections; more than the file's size only if sections overlap */
    for (size_t i = 0; i < coff->pe.section_count; i++) {
        const struct pe_section *s = &coff->pe.sections[i];
        f->has_debug_info = f->has_debug_info || coff_has_name(s, ".debug_info");
        if (has_codeview || looked_at > object->bytes.size || !coff_has_name(s, ".debug$S"))
            continue;
        looked_at += s->raw_size;
        has_codeview = has_lines(object, s);
    }
    if (has_codeview && !f->has_debug_info)
        object->format = &sl_object_codeview;
    f->has_debug_info = f->has_debug_info || has_codeview;
    f->has_symbols = pe_has_symbols(object);
}

/* Returns the error for a file whose anonymous header is not that of /bigobj, so that it has no machine code. */
static enum sl_code fail_anonymous(struct sl_object *object, enum coff_anonymous anonymous, struct sl_error *error)
{
    struct sl_str library;
    if (anonymous == COFF_IMPORT && sl_coff_import(object->bytes, &library))
        return sl_fail(error, SL_UNSUPPORTED, "an import of " SL_STR_FMT ": it contains no code", SL_STR_ARG(library));
    return sl_fail(error, SL_UNSUPPORTED, "object file without machine code: compiled for link-time code generation");
}

/* Opens an object file. Members of import libraries and files compiled for link-time code generation are refused with an error that says so
 * (fail_anonymous). If the file has CodeView and no DWARF, set_features() changes the object's format to one that reads CodeView. */
static enum sl_code coff_open(struct sl_object *object, struct sl_error *error)
{
    struct coff_header h;
    enum coff_anonymous anonymous;
    struct sl_object_info *info = &object->info;
    struct coff *coff = SL_ARENA_NEW(&object->arena, struct coff);
    if (!coff)
        return sl_fail(error, SL_BUSY, "out of memory");
    object->impl = coff;
    if (!read_any_header(object->bytes, &h, &anonymous))
        return sl_fail(error, SL_MALFORMED, "invalid COFF file: bad file header");
    if (anonymous != COFF_NAMED && anonymous != COFF_BIG)
        return fail_anonymous(object, anonymous, error);
    coff->machine = h.machine;
    pe_find_symbols(object, &coff->pe, h.symbol_offset, h.symbol_count, h.symbol_size);
    /* when out of memory they record that in the object, and sl_object_open() reports it in place of this error */
    if (!pe_read_sections(object, &coff->pe, h.size, h.section_count) || !lay_out(object, coff))
        return sl_fail(error, SL_MALFORMED, "invalid COFF file: section headers extend beyond the file");
    info->kind = SL_KIND_REL;
    info->arch = object_machine_arch(h.machine);
    info->decorates = info->arch == SL_ARCH_X86; /* C names have a `_` in front and the like */
    info->is_64bit = sl_cpu_pointer_size(sl_arch_family(info->arch)) == 8;
    info->image_size = coff->code_size;
    set_features(object, coff);
    return SL_OK;
}

/* ---- reading ---- */

/* Finds the first section with contents whose name is `.` and `name`, and sets `*bytes` and `*address` (may be NULL). An empty section of
 * the name may come before it. False if there is none. */
static bool coff_section(struct sl_object *object, const char *name, struct sl_bytes *bytes, uint64_t *address)
{
    struct pe *pe = object->impl;
    for (size_t i = 0; i < pe->section_count; i++) {
        struct pe_section *s = &pe->sections[i];
        if (s->name.size < 2 || s->name.data[0] != '.' ||
            !sl_str_equal((struct sl_str){s->name.data + 1, s->name.size - 1}, sl_str(name)))
            continue;
        *bytes = coff_contents(object, s);
        if (!bytes->size)
            continue;
        if (address)
            *address = s->address;
        return true;
    }
    return false;
}

/* Returns section `index` of those with code as a segment, with the address that lay_out() gave it; false behind the last one. */
static bool coff_segment(const struct sl_object *object, size_t index, struct sl_segment *segment)
{
    const struct pe *pe = object->impl;
    if (index >= pe->mapped_count)
        return false;
    const struct pe_section *s = pe->by_address[index];
    *segment = (struct sl_segment){
        .address = s->address, .memory_size = s->raw_size, .bytes = pe_raw(object, s), .executable = true};
    return true;
}

static bool coff_holds_code(const struct sl_object *object, uint64_t address)
{
    return address <= UINT32_MAX && pe_section_at(object->impl, (uint32_t)address);
}

/* Reads the CodeView of all `.debug$S` sections (compilers write one per COMDAT function) and of the first section with types. If the types
 * are in another file, whose name is then in `elsewhere`, functions are read without them and the object records what is missing. */
static enum sl_code coff_read_functions(struct sl_object *object, const struct sl_parallel *parallel,
                                        struct sl_function_sink *sink, struct sl_error *error)
{
    const struct coff *coff = object->impl;
    struct sl_bytes *sections = SL_ARENA_ARRAY(&object->arena, struct sl_bytes, coff->pe.section_count + 1);
    struct sl_codeview parts = {.sections = sections, .code_size = coff->code_size};
    struct sl_pdb *pdb;
    struct sl_str elsewhere;
    if (!sections)
        return sl_budget_fail(object->budget, error);
    for (size_t i = 0; i < coff->pe.section_count; i++) {
        struct pe_section *s = &coff->pe.sections[i];
        if (coff_has_name(s, ".debug$S"))
            sections[parts.section_count++] = coff_contents(object, s);
        else if (!parts.types.size && /* .debug$P: types of a precompiled header */
                 (coff_has_name(s, ".debug$T") || coff_has_name(s, ".debug$P")))
            parts.types = pe_raw(object, s); /* types refer to no code: there are no relocations to apply */
    }
    enum sl_code code = sl_pdb_open_codeview(&parts, &object->arena, object->budget, &pdb, &elsewhere, error);
    if (code == SL_OK && elsewhere.size)
        sl_fail(object_debug_info_error(object), SL_UNSUPPORTED,
                "the types of the object file are in " SL_STR_FMT
                ", which is not available: names have no parameters, and inlined calls are missing",
                SL_STR_ARG(elsewhere));
    return code == SL_OK ? sl_pdb_read_functions(pdb, parallel, sink, error) : code;
}

#define COFF                                                                                                           \
    .section = coff_section, .section_info = pe_section_info, .segment = coff_segment, .holds_code = coff_holds_code,  \
    .contents = pe_contents, .symbols = pe_symbols, .data_symbols = pe_data_symbols

const struct object_format sl_object_coff = {COFF, .open = coff_open};
const struct object_format sl_object_codeview = {COFF, .read_functions = coff_read_functions};
