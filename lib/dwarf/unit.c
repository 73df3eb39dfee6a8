/* Unit headers and root entries (DWARF 5, 7.5.1; 3.1). */
#include "dwarf/impl.h"
#include "base/search.h"

#include <stdlib.h>

/* Returns the first tombstone address. Linkers give dropped code one of the last two addresses of the address size; these are not
 * tombstones if the file has code there. */
static uint64_t first_dead(const struct dwarf_file *f, unsigned size)
{
    uint64_t last = size == MAX_ADDRESS_SIZE ? UINT64_MAX : (UINT64_C(1) << (8 * size)) - 1;
    if (f->relocatable || f->split || !sl_object_holds_code(f->object, last - 1))
        return last - 1;
    return last < UINT64_MAX && sl_object_holds_code(f->object, last) ? last + 1 : last;
}

/* Finds the sections of an object, or with `split` those of a package or .dwo file. Sections that the file does not have stay empty. */
void dwarf_file_open(struct dwarf_file *f, struct sl_object *object, bool split)
{
    const struct {
        const char *name, *split_name;
        struct sl_bytes *bytes;
    } sections[] = {
        {"debug_info", "debug_info.dwo", &f->info},
        {"debug_abbrev", "debug_abbrev.dwo", &f->abbrev},
        {"debug_str", "debug_str.dwo", &f->str},
        {"debug_line_str", "debug_line_str", &f->line_str},
        {"debug_str_offsets", "debug_str_offsets.dwo", &f->str_offsets},
        {"debug_line", "debug_line.dwo", &f->line},
        {"debug_ranges", "debug_ranges", &f->ranges},
        {"debug_rnglists", "debug_rnglists.dwo", &f->rnglists},
        {"debug_addr", "debug_addr", &f->addr},
        {"debug_cu_index", "debug_cu_index", &f->cu_index},
    };
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        sl_object_section(object, split ? sections[i].split_name : sections[i].name, sections[i].bytes, NULL);
    f->object = object;
    f->big_endian = sl_object_info(object)->big_endian;
    f->relocatable = sl_object_info(object)->kind == SL_KIND_REL;
    f->split = split;
    f->code_at_zero = !f->relocatable && !split && sl_object_holds_code(object, 0);
    for (unsigned size = 1; size <= MAX_ADDRESS_SIZE; size++)
        f->dead[size] = first_dead(f, size); /* addresses from here on are tombstones of dropped code */
    enum sl_cpu_family cpu = sl_arch_family(sl_object_info(object)->arch);
    /* bit 0 of low_pc, where it marks Thumb or microMIPS code and is no part of the address */
    f->mode_bit = cpu == SL_CPU_ARM || cpu == SL_CPU_MIPS;
    f->decorates = sl_object_info(object)->decorates;
}

/* Reads one header and moves the reader past the unit. False if the rest of the section cannot be read; `*usable` is false if only this
 * unit cannot, for example because its version is unknown. */
static bool dwarf_unit_read_header(struct sl_reader *r, struct dwarf_unit_header *h, bool *usable)
{
    *h = (struct dwarf_unit_header){.offset = sl_reader_offset(r), .offset_size = 4};
    uint64_t length = sl_read_u32(r);
    if (length == 0xFFFFFFFF) {
        h->offset_size = 8;
        length = sl_read_u64(r);
    } else if (length >= 0xFFFFFFF0) { /* reserved */
        return false;
    }
    if (r->failed || length > sl_reader_left(r))
        return false;
    uint64_t start = sl_reader_offset(r);
    h->end = start + length;
    struct sl_reader in = *r;
    in.end = in.at + length;
    h->version = sl_read_u16(&in);
    h->type = DW_UT_compile;
    if (h->version >= 5) {
        h->type = sl_read_u8(&in);
        h->address_size = sl_read_u8(&in);
        h->abbrev_offset = sl_read_uint(&in, h->offset_size);
        if (h->type == DW_UT_skeleton || h->type == DW_UT_split_compile)
            h->dwo_id = sl_read_u64(&in);
        else if (h->type == DW_UT_type || h->type == DW_UT_split_type)
            sl_reader_skip(&in, 8u + h->offset_size); /* type signature and type offset */
    } else {
        h->abbrev_offset = sl_read_uint(&in, h->offset_size);
        h->address_size = sl_read_u8(&in);
    }
    h->die = sl_reader_offset(&in);
    bool good_size = h->address_size == 2 || h->address_size == 4 || h->address_size == 8;
    *usable = !in.failed && h->version >= 2 && h->version <= 5 && good_size;
    sl_reader_seek(r, h->end);
    return true;
}

void dwarf_drop_pages(const struct dwarf_file *file, uint64_t *passed, uint64_t to)
{
    enum { AT_ONCE = 8 << 20 };
    if (to - *passed < AT_ONCE)
        return;
    sl_object_drop_pages(file->object, sl_bytes_part(file->info, *passed, to - *passed));
    *passed = to;
}

bool dwarf_index_units(struct dwarf_file *file, size_t most, struct sl_arena *arena, size_t *skipped)
{
    struct dwarf_unit_header *units = NULL, header;
    struct sl_account account = {.budget = arena->budget};
    size_t count = 0, capacity = 0;
    struct sl_reader r = sl_reader(file->info, file->big_endian);
    /* headers are all over the section, so that its pages would all stay in memory if they were not released */
    for (uint64_t passed = 0; sl_reader_left(&r) > 0 && count < most;
         dwarf_drop_pages(file, &passed, sl_reader_offset(&r))) {
        bool usable = false;
        if (!dwarf_unit_read_header(&r, &header, &usable)) {
            ++*skipped;
            break;
        }
        if (!usable) {
            ++*skipped;
            continue;
        }
        if (!sl_account_grow(&account, &units, &capacity, count + 1, sizeof *units)) {
            free(units);
            sl_account_release(&account);
            return false;
        }
        units[count++] = header;
    }
    file->units = SL_ARENA_ARRAY(arena, struct dwarf_unit_header, count ? count : 1);
    if (file->units && count)
        memcpy(file->units, units, count * sizeof *units);
    free(units);
    sl_account_release(&account);
    file->unit_count = file->units ? count : 0;
    return file->units != NULL;
}

const struct dwarf_unit_header *dwarf_unit_at(const struct dwarf_file *file, uint64_t offset)
{
    size_t low = SL_PARTITION_POINT(middle, 0, file->unit_count, file->units[middle].end <= offset);
    if (low == file->unit_count || offset < file->units[low].die)
        return NULL;
    return &file->units[low];
}

enum sl_language dwarf_language(uint64_t code)
{
    /* DW_LANG_* values (DWARF 5, table 7.17, and the later list on dwarfstd.org) */
    switch (code) {
    case 0x01:
    case 0x02:
    case 0x0c:
    case 0x1d:
    case 0x2c:
    case 0x3e: return SL_LANG_C; /* C89, C, C99, C11, C17, C23 */
    case 0x04:
    case 0x19:
    case 0x1a:
    case 0x21:
    case 0x2a:
    case 0x2b:
    case 0x3a: return SL_LANG_CPP; /* C++, C++03, C++11, C++14, C++17, C++20, C++23 */
    case 0x10: return SL_LANG_OBJC;
    case 0x11: return SL_LANG_OBJCPP;
    case 0x13: return SL_LANG_D;
    case 0x16: return SL_LANG_GO;
    case 0x1c: return SL_LANG_RUST;
    case 0x1e: return SL_LANG_SWIFT;
    default: return SL_LANG_UNKNOWN;
    }
}

/* True for the codes (DW_LANG_*) of languages with the default lower bound 1 (DWARF 5, 7.12): Ada, COBOL, Fortran, Pascal, Modula-2 and -3,
 * PL/I, Julia. */
static bool counts_from_one(uint64_t code)
{
    static const bool from_one[] = {
        [0x03] = true, [0x05] = true, [0x06] = true, [0x07] = true, [0x08] = true, [0x09] = true, [0x0a] = true,
        [0x0d] = true, [0x0e] = true, [0x0f] = true, [0x17] = true, [0x1f] = true, [0x22] = true, [0x23] = true};
    return code < sizeof from_one / sizeof *from_one && from_one[code];
}

/* Returns the language of a value of DW_AT_language_name (DWARF 6, "Language and Version Codes"). */
static enum sl_language language_name(uint64_t code)
{
    static const enum sl_language table[] = {
        [0x03] = SL_LANG_C,    [0x04] = SL_LANG_CPP,    [0x07] = SL_LANG_D,    [0x0a] = SL_LANG_GO,
        [0x11] = SL_LANG_OBJC, [0x12] = SL_LANG_OBJCPP, [0x19] = SL_LANG_RUST, [0x1a] = SL_LANG_SWIFT};
    return code < sizeof table / sizeof *table ? table[code] : SL_LANG_UNKNOWN;
}

/* Which attributes of the root entry one reading of it stores (read_root_part). */
enum root_part {
    ROOT_BASES,  /* bases of tables, needed before attributes that are indexes into these tables */
    ROOT_RANGES, /* all but bases and texts, so that the pages of texts need not be read */
    ROOT_WHOLE,  /* all but bases */
};

/* Stores a text attribute of the root entry in the unit; ignores other attributes. */
static void store_root_text(struct dwarf_worker *w, struct dwarf_unit *unit, const struct attribute *a, uint16_t name)
{
    switch (name) {
    case DW_AT_name: unit->name = dwarf_text(&w->account, unit, a); break;
    case DW_AT_comp_dir: unit->comp_dir = dwarf_text(&w->account, unit, a); break;
    case DW_AT_producer: unit->producer = dwarf_text(&w->account, unit, a); break;
    case DW_AT_dwo_name:
    case DW_AT_GNU_dwo_name: unit->dwo_name = dwarf_text(&w->account, unit, a); break;
    }
}

/* Reads the root entry and stores one part of its attributes. Attributes come in any order, and indexes need a base, so callers read the
 * bases first, then the others. False if the entry cannot be read, or if the budget is used up. */
static bool read_root_part(struct dwarf_worker *w, struct dwarf_unit *unit, enum root_part part)
{
    struct sl_reader r =
        sl_reader((struct sl_bytes){unit->file->info.data, (size_t)unit->header->end}, unit->file->big_endian);
    sl_reader_seek(&r, unit->header->die);
    const struct abbrev *abbrev = abbrev_find(unit->abbrevs, sl_read_uleb(&r));
    if (!abbrev || !sl_account_spend(&w->account, abbrev->step_count + 16))
        return false;
    unit->tag = abbrev->tag;
    struct attribute_walk walk = dwarf_attributes(unit, abbrev);
    struct attribute a;
    for (const struct abbrev_step *step; (step = dwarf_next_attribute(&walk, &r, &a));) {
        if (part == ROOT_WHOLE)
            store_root_text(w, unit, &a, step->attribute);
        if (part == ROOT_BASES) {
            switch (step->attribute) {
            case DW_AT_str_offsets_base: unit->str_offsets_base = a.value; break;
            case DW_AT_addr_base:
            case DW_AT_GNU_addr_base: unit->addr_base = a.value; break;
            case DW_AT_rnglists_base: unit->rnglists_base = a.value; break;
            case DW_AT_GNU_ranges_base: unit->gnu_ranges_base = a.value; break;
            }
            continue;
        }
        switch (step->attribute) {
        case DW_AT_language:
            unit->language = dwarf_language(a.value);
            unit->language_code = a.value <= UINT16_MAX ? (uint16_t)a.value : 0;
            unit->counts_from_one = counts_from_one(a.value);
            unit->is_assembler = a.value == DW_LANG_Mips_Assembler || a.value == DW_LANG_Assembly;
            unit->has_language = true;
            break;
        case DW_AT_language_name:
            unit->language = language_name(a.value);
            unit->has_language = true;
            break;
        case DW_AT_low_pc: unit->has_low_pc = dwarf_address(unit, &a, &unit->low_pc); break;
        case DW_AT_high_pc:
            unit->high_pc = a.value;
            unit->high_pc_form = a.form;
            break;
        case DW_AT_ranges:
            unit->has_ranges = true;
            unit->ranges = a.value;
            unit->ranges_form = a.form;
            break;
        case DW_AT_stmt_list:
            unit->has_stmt_list = true;
            unit->stmt_list = a.value;
            break;
        case DW_AT_GNU_dwo_id: unit->dwo_id = a.value; break;
        }
    }
    return !walk.failed && !w->account.failed &&
           sl_account_spend(&w->account, sl_reader_offset(&r) - unit->header->die);
}

/* Reads the root entry twice: first the bases of string and address tables, which may come after attributes that need them, then the rest.
 * False if it cannot be read. */
bool dwarf_read_root(struct dwarf_worker *w, struct dwarf_unit *unit)
{
    unit->dwo_id = unit->header->dwo_id;
    if (!read_root_part(w, unit, ROOT_BASES) || !read_root_part(w, unit, ROOT_WHOLE))
        return false;
    unit->is_dart = sl_str_equal(unit->producer, SL_STR("Dart VM"));
    return true;
}

/* Sets the bases that hold if the root entry has no attribute for them: just behind the header of the first table. */
void dwarf_unit_bases(struct dwarf_unit *unit)
{
    bool wide = unit->header->offset_size == 8;
    unit->str_offsets_base = unit->header->version >= 5 ? wide ? 16 : 8 : 0;
    unit->addr_base = unit->header->version >= 5 ? wide ? 16 : 8 : 0;
    unit->rnglists_base = wide ? 20 : 12;
}

bool dwarf_unit_open(struct dwarf_worker *w, const struct dwarf_file *file, const struct dwarf_unit_header *header,
                     struct dwarf_unit *unit)
{
    *unit = (struct dwarf_unit){.file = file, .header = header, .address_file = file};
    unit->abbrevs = dwarf_abbrevs(w, file, header);
    dwarf_unit_bases(unit); /* defaults, before the root entry sets those that it has */
    return unit->abbrevs && dwarf_read_root(w, unit);
}

bool dwarf_unit_peek(struct dwarf_worker *w, const struct dwarf_file *file, const struct dwarf_unit_header *header,
                     struct dwarf_unit *unit)
{
    *unit = (struct dwarf_unit){.file = file, .header = header, .address_file = file};
    unit->abbrevs = dwarf_root_abbrev(w, file, header);
    dwarf_unit_bases(unit);
    unit->dwo_id = header->dwo_id;
    return unit->abbrevs && read_root_part(w, unit, ROOT_BASES) && read_root_part(w, unit, ROOT_RANGES);
}

/* Frees what the worker has allocated, not the worker itself. */
void dwarf_worker_free(struct dwarf_worker *w)
{
    for (size_t i = 0; i < ABBREV_TABLES; i++)
        abbrev_table_free(&w->tables[i]);
    abbrev_table_free(&w->root);
    sl_assembler_free(&w->assembler);
    free(w->lines.rows);
    free(w->lines.sequences);
    free(w->lines.files);
    free(w->directories);
    free(w->ranges);
    free(w->inlinees);
    free(w->order);
    free(w->by_address);
    free(w->function_lines);
    free(w->functions);
    free(w->pending);
    free(w->covered);
    free(w->frames);
    free(w->names);
    free(w->name_table.slots);
    variables_free(&w->variable_reader);
    sl_account_release(&w->account);
}
