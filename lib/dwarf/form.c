/* Attribute values (DWARF 5, 7.5.4 to 7.5.6). */
#include "dwarf/impl.h"

/* Reads an offset into a section: 4 bytes, or 8 in 64-bit DWARF. */
static uint64_t read_offset(struct sl_reader *r, const struct dwarf_unit *unit)
{
    return unit->header->offset_size == 8 ? sl_read_u64(r) : sl_read_u32(r);
}

/* Reads one attribute value. Blocks and 16-byte constants are skipped without a value: callers only need to know that they are there. */
bool dwarf_read_form(struct sl_reader *r, const struct dwarf_unit *unit, uint16_t form, int64_t implicit,
                     struct attribute *out)
{
    *out = (struct attribute){.form = form};
    switch (form) {
    case DW_FORM_flag_present: out->value = 1; break;
    case DW_FORM_implicit_const: out->value = (uint64_t)implicit; break;
    case DW_FORM_data1:
    case DW_FORM_flag:
    case DW_FORM_ref1:
    case DW_FORM_strx1:
    case DW_FORM_addrx1: out->value = sl_read_u8(r); break;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2: out->value = sl_read_u16(r); break;
    case DW_FORM_strx3:
    case DW_FORM_addrx3: out->value = sl_read_uint(r, 3); break;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4: out->value = sl_read_u32(r); break;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8: out->value = sl_read_u64(r); break;
    case DW_FORM_data16: sl_reader_skip(r, 16); break;
    case DW_FORM_addr: out->value = sl_read_uint(r, unit->header->address_size); break;
    case DW_FORM_ref_addr:
        out->value = unit->header->version <= 2 ? sl_read_uint(r, unit->header->address_size) : read_offset(r, unit);
        break;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_sec_offset:
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt: out->value = read_offset(r, unit); break;
    case DW_FORM_sdata: out->value = (uint64_t)sl_read_sleb(r); break;
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index: out->value = sl_read_uleb(r); break;
    case DW_FORM_string: out->text = sl_read_cstr(r); break;
    case DW_FORM_block1: sl_reader_skip(r, sl_read_u8(r)); break;
    case DW_FORM_block2: sl_reader_skip(r, sl_read_u16(r)); break;
    case DW_FORM_block4: sl_reader_skip(r, sl_read_u32(r)); break;
    case DW_FORM_block:
    case DW_FORM_exprloc: sl_reader_skip(r, sl_read_uleb(r)); break;
    case DW_FORM_indirect: {
        uint64_t real = sl_read_uleb(r);
        if (real == DW_FORM_indirect || real == DW_FORM_implicit_const || real > UINT16_MAX)
            return false;
        return dwarf_read_form(r, unit, (uint16_t)real, 0, out);
    }
    default: return false;
    }
    return !r->failed;
}

bool dwarf_skip_form(struct sl_reader *r, const struct dwarf_unit *unit, uint16_t form)
{
    struct attribute ignored;
    return dwarf_read_form(r, unit, form, 0, &ignored);
}

/* Skips what a step describes: a number of bytes, or an attribute. The frequent kinds of forms have steps of their own; all others are
 * skipped by dwarf_skip_form. False past the end or for an unknown form. */
bool dwarf_skip_step(struct sl_reader *r, const struct dwarf_unit *unit, const struct abbrev_step *step)
{
    switch (step->op) {
    case STEP_SKIP: sl_reader_skip(r, (uint64_t)step->value); break;
    case STEP_ULEB:
        while (r->at < r->end && (*r->at & 0x80))
            r->at++;
        sl_reader_skip(r, 1);
        break;
    case STEP_BLOCK1: sl_reader_skip(r, sl_read_u8(r)); break;
    case STEP_BLOCK2: sl_reader_skip(r, sl_read_u16(r)); break;
    case STEP_BLOCK4: sl_reader_skip(r, sl_read_u32(r)); break;
    case STEP_BLOCK: sl_reader_skip(r, sl_read_uleb(r)); break;
    case STEP_STRING: sl_read_cstr(r); break;
    default: return dwarf_skip_form(r, unit, step->form);
    }
    return !r->failed;
}

const uint8_t *dwarf_skip_rare_form(const struct dwarf_unit *unit, const struct skip_step *step, const uint8_t *at,
                                    const uint8_t *end)
{
    struct sl_reader r = sl_reader((struct sl_bytes){at, (size_t)(end - at)}, unit->file->big_endian);
    return dwarf_skip_step(&r, unit, &(struct abbrev_step){.op = step->op, .form = step->form}) ? r.at : NULL;
}

bool dwarf_table_at(struct sl_bytes section, bool big_endian, uint64_t base, uint64_t index, unsigned size,
                    uint64_t *value)
{
    uint64_t offset = base + index * size; /* no overflow: a section is far smaller than 2^60 bytes */
    if (base > section.size || index > section.size || offset > section.size || size > section.size - offset)
        return false;
    const uint8_t *at = section.data + offset;
    if (!big_endian && (size == 8 || size == 4)) {
        *value = size == 8 ? dwarf_load_8(at) : dwarf_load_4(at);
        return true;
    }
    struct sl_reader r = sl_reader((struct sl_bytes){at, size}, big_endian);
    *value = sl_read_uint(&r, size);
    return !r.failed;
}

/* Where the bytes of a text are: a string section and the offset in it. */
struct text_location {
    struct sl_bytes table;
    uint64_t offset;
};

/* Finds where a text lies that is not in the entry itself but in a string section. False for all forms but those of such texts, and if the
 * supplementary file is not available. */
static bool find_text(const struct dwarf_unit *unit, const struct attribute *a, struct text_location *location)
{
    const struct dwarf_file *file = unit->file;
    switch (a->form) {
    case DW_FORM_strp: *location = (struct text_location){file->str, a->value}; return true;
    case DW_FORM_line_strp: *location = (struct text_location){file->line_str, a->value}; return true;
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_strp_alt:
        if (file->sup)
            *location = (struct text_location){file->sup->str, a->value};
        return file->sup != NULL;
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
    case DW_FORM_GNU_str_index:
        location->table = file->str;
        return dwarf_table_at(file->str_offsets, file->big_endian, unit->str_offsets_base, a->value,
                              unit->header->offset_size, &location->offset);
    default: return false;
    }
}

struct sl_str dwarf_text(struct sl_account *account, const struct dwarf_unit *unit, const struct attribute *a)
{
    struct text_location location;
    if (a->form == DW_FORM_string)
        return a->text.size < SL_MAX_NAME ? a->text : (struct sl_str){NULL, 0};
    return find_text(unit, a, &location) ? sl_account_read_name(account, location.table, location.offset)
                                         : (struct sl_str){NULL, 0};
}

const char *dwarf_text_address(const struct dwarf_unit *unit, const struct attribute *a)
{
    struct text_location location;
    if (a->form == DW_FORM_string)
        return a->text.data;
    bool inside = find_text(unit, a, &location) && location.offset < location.table.size;
    return inside ? (const char *)location.table.data + location.offset : NULL;
}

struct sl_str dwarf_whole_text(const struct dwarf_unit *unit, const struct attribute *a)
{
    struct text_location location;
    if (a->form == DW_FORM_string)
        return a->text;
    return find_text(unit, a, &location) ? sl_cstr_at(location.table, location.offset) : (struct sl_str){NULL, 0};
}

bool dwarf_indexed_address(const struct dwarf_unit *unit, uint64_t index, uint64_t *address)
{
    const struct dwarf_file *file = unit->address_file;
    return dwarf_table_at(file->addr, file->big_endian, unit->addr_base, index, unit->header->address_size, address);
}

/* Converts the value of an address form; with an index form the address is looked up in .debug_addr. False for other forms, such as a size
 * in DW_AT_high_pc, and for an index outside of the table. */
bool dwarf_address(const struct dwarf_unit *unit, const struct attribute *a, uint64_t *address)
{
    switch (a->form) {
    case DW_FORM_addr: *address = a->value; return true;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index: return dwarf_indexed_address(unit, a->value, address);
    default: return false;
    }
}

/* Returns the entry that an attribute refers to. `file` is NULL if there is none: for a reference by type signature (DW_FORM_ref_sig8),
 * which is not supported, to an offset outside of the unit, or to a supplementary file that is not there. */
struct reference dwarf_reference(const struct dwarf_unit *unit, const struct attribute *a)
{
    switch (a->form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
        if (a->value > unit->header->end - unit->header->offset)
            return (struct reference){NULL, 0};
        return (struct reference){unit->file, unit->header->offset + a->value};
    case DW_FORM_ref_addr: return (struct reference){unit->file, a->value};
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8:
    case DW_FORM_GNU_ref_alt: return (struct reference){unit->file->sup, a->value};
    default: return (struct reference){NULL, 0};
    }
}
