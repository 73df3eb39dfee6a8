/* Abbreviation tables (DWARF 5, 7.5.3). Each abbreviation is compiled to steps when its table is read, because thousands of entries use it:
 * consecutive attributes that the reader does not need become one skip of their total size. */
#include "dwarf/impl.h"
#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

/* Returns the size of a form in bytes; -1 if it varies. Addresses and offsets have the sizes of the unit. In version 2 DW_FORM_ref_addr has
 * the size of an address, later that of an offset. */
static int size_of_form(uint16_t form, const struct abbrev_table *table)
{
    switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const: return 0;
    case DW_FORM_data1:
    case DW_FORM_flag:
    case DW_FORM_ref1:
    case DW_FORM_strx1:
    case DW_FORM_addrx1: return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2: return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3: return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4: return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8: return 8;
    case DW_FORM_data16: return 16;
    case DW_FORM_addr: return table->address_size;
    case DW_FORM_ref_addr: return table->version <= 2 ? table->address_size : table->offset_size;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_sec_offset:
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt: return table->offset_size;
    default: return -1;
    }
}

/* Returns the size of a form in bytes, -1 if it varies. Sizes of common forms were computed with the table, which makes this faster than
 * size_of_form. */
static int fixed_size(uint16_t form, const struct abbrev_table *table)
{
    return form < COMMON_FORMS ? table->sizes[form] : size_of_form(form, table);
}

/* Returns the slot of an entry's attribute in struct dwarf_function_entry; SLOT_OTHER for one that functions do not need. */
static enum entry_slot get_slot(uint16_t attribute)
{
    switch (attribute) {
    case DW_AT_sibling: return SLOT_SIBLING;
    case DW_AT_declaration: return SLOT_DECLARATION;
    case DW_AT_low_pc: return SLOT_LOW_PC;
    case DW_AT_high_pc: return SLOT_HIGH_PC;
    case DW_AT_ranges: return SLOT_RANGES;
    case DW_AT_name: return SLOT_NAME;
    case DW_AT_linkage_name:
    case DW_AT_MIPS_linkage_name: return SLOT_LINKAGE;
    case DW_AT_abstract_origin:
    case DW_AT_specification: return SLOT_ORIGIN;
    case DW_AT_call_file: return SLOT_CALL_FILE;
    case DW_AT_call_line: return SLOT_CALL_LINE;
    case DW_AT_call_column: return SLOT_CALL_COLUMN;
    default: return SLOT_OTHER;
    }
}

/* True for attributes that names of variables and types need. */
static bool is_needed_for_types(uint16_t attribute)
{
    switch (attribute) {
    case DW_AT_name:
    case DW_AT_type:
    case DW_AT_abstract_origin:
    case DW_AT_specification:
    case DW_AT_declaration:
    case DW_AT_lower_bound:
    case DW_AT_upper_bound:
    case DW_AT_count: return true;
    default: return false;
    }
}

/* The attributes of an entry that are read: all, those needed for code, those needed for types, only DW_AT_sibling. */
enum wanted_attributes { WANT_ALL, WANT_CODE, WANT_TYPES, WANT_SIBLING };

/* Returns which attributes of entries with this tag are read. Of the root entry, of which a unit has only one, all are read; of functions
 * those needed for code. Of other entries those needed for types are read if variables are, else only DW_AT_sibling. */
static enum wanted_attributes choose_wanted_attributes(uint16_t tag, bool variables)
{
    switch (tag) {
    case DW_TAG_compile_unit:
    case DW_TAG_partial_unit:
    case DW_TAG_skeleton_unit: return WANT_ALL;
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine: return WANT_CODE;
    default: return variables ? WANT_TYPES : WANT_SIBLING;
    }
}

/* True if the attribute is one of those `wanted`; all others are skipped without reading. */
static bool is_wanted(enum wanted_attributes wanted, uint16_t attribute, const struct dwarf_worker *w)
{
    if (wanted == WANT_SIBLING)
        return attribute == DW_AT_sibling;
    if (wanted != WANT_CODE)
        return wanted == WANT_ALL || attribute == DW_AT_sibling || is_needed_for_types(attribute);
    /* only a listing of the file's units (w->row_list) shows where functions are declared */
    if (attribute == DW_AT_decl_file || attribute == DW_AT_decl_line || attribute == DW_AT_GNU_discriminator)
        return w->row_list;
    enum entry_slot slot = get_slot(attribute);
    return slot != SLOT_OTHER && (slot != SLOT_CALL_COLUMN || w->positions || w->row_list); /* only these use columns */
}

/* Returns the kind of an entry that matters only if variables are read: a variable, or a scope, such as a class, whose variables do not
 * belong to the enclosing function. KIND_OTHER for all other tags. */
static enum abbrev_kind kind_with_variables(uint16_t tag)
{
    switch (tag) {
    case DW_TAG_formal_parameter:
    case DW_TAG_variable: return KIND_VARIABLE;
    case DW_TAG_class_type:
    case DW_TAG_interface_type:
    case DW_TAG_module:
    case DW_TAG_namespace:
    case DW_TAG_structure_type:
    case DW_TAG_subroutine_type:
    case DW_TAG_union_type: return KIND_SCOPE;
    default: return KIND_OTHER;
    }
}

/* Returns the kind of entries with this tag. KIND_LEAF_TYPE is for tags whose children have no code: the children are passed over if the
 * entry has a sibling attribute. If variables are read, some of these tags are of other kinds, since their children are needed. */
static enum abbrev_kind get_entry_kind(uint16_t tag, bool variables)
{
    enum abbrev_kind kind = variables ? kind_with_variables(tag) : KIND_OTHER;
    if (kind != KIND_OTHER)
        return kind;
    switch (tag) {
    case DW_TAG_subprogram: return KIND_SUBPROGRAM;
    case DW_TAG_inlined_subroutine: return KIND_INLINED;
    case DW_TAG_array_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_subroutine_type:
    case DW_TAG_formal_parameter:
    case DW_TAG_variable:
    case DW_TAG_call_site:
    case DW_TAG_GNU_call_site: return KIND_LEAF_TYPE;
    default: return KIND_OTHER;
    }
}

/* Adds a step to those that read an entry. Skips of fixed size that follow each other become one; a skip of 0 bytes is left out. False when
 * out of memory or budget. */
static bool add_step(struct abbrev_table *t, struct abbrev *abbrev, struct abbrev_step step)
{
    struct abbrev_step *last = abbrev->step_count ? &t->steps[t->step_count - 1] : NULL;
    if (step.op == STEP_SKIP && (step.value == 0 || (last && last->op == STEP_SKIP))) {
        if (step.value)
            last->value += step.value;
        return true;
    }
    if (!sl_account_grow(&t->w->account, &t->steps, &t->step_capacity, t->step_count + 1, sizeof *t->steps))
        return false;
    t->steps[t->step_count++] = step;
    abbrev->step_count++;
    return true;
}

/* Returns how to skip a form of variable size; STEP_INDIRECT for those that the general reader skips. */
static enum abbrev_op choose_skip_op(uint16_t form)
{
    switch (form) {
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index: return STEP_ULEB;
    case DW_FORM_block1: return STEP_BLOCK1;
    case DW_FORM_block2: return STEP_BLOCK2;
    case DW_FORM_block4: return STEP_BLOCK4;
    case DW_FORM_block:
    case DW_FORM_exprloc: return STEP_BLOCK;
    case DW_FORM_string: return STEP_STRING;
    default: return STEP_INDIRECT;
    }
}

/* Chooses the fastest reader of a form. The general reader, READ_FORM, is for big-endian files, which are rare, and for forms without a
 * fast one: flag_present, which has no bytes, sdata, which is signed, and texts, blocks and other sizes. */
static enum read_op choose_read_op(uint16_t form, const struct abbrev_table *t)
{
    if (form == DW_FORM_implicit_const)
        return READ_CONSTANT;
    if (t->file->big_endian || form == DW_FORM_flag_present)
        return READ_FORM;
    if (fixed_size(form, t) < 0 && choose_skip_op(form) == STEP_ULEB && form != DW_FORM_sdata)
        return READ_ULEB;
    switch (fixed_size(form, t)) {
    case 1: return READ_1;
    case 2: return READ_2;
    case 4: return READ_4;
    case 8: return READ_8;
    default: return READ_FORM;
    }
}

/* Adds the attribute to the steps that skip the whole entry. A form of variable size is a step; sizes of fixed forms are added up in
 * `then` of the step before them, or in `lead` if there is none. False when a sum overflows, or when out of memory or budget. */
static bool add_skip(struct abbrev_table *t, struct abbrev *abbrev, uint16_t form)
{
    int size = fixed_size(form, t);
    if (size < 0) {
        if (!sl_account_grow(&t->w->account, &t->skips, &t->skip_capacity, t->skip_count + 1, sizeof *t->skips))
            return false;
        t->skips[t->skip_count++] = (struct skip_step){choose_skip_op(form), form, 0};
        abbrev->skip_count++;
        return true;
    }
    uint32_t *sum = abbrev->skip_count ? &t->skips[t->skip_count - 1].then : &abbrev->lead;
    return !__builtin_add_overflow(*sum, (uint32_t)size, sum);
}

/* Adds the attribute to the steps that skip a whole entry, and to those that read the entry: there it is read if it is `wanted`, else
 * skipped. False when out of memory or budget. */
static bool add_attribute(struct abbrev_table *t, struct abbrev *abbrev, enum wanted_attributes wanted,
                          uint16_t attribute, uint16_t form, int64_t constant)
{
    if (!add_skip(t, abbrev, form))
        return false;
    if (is_wanted(wanted, attribute, t->w))
        return add_step(
            t, abbrev,
            (struct abbrev_step){STEP_READ, choose_read_op(form, t), get_slot(attribute), attribute, form, constant});
    int size = fixed_size(form, t);
    if (size >= 0)
        return add_step(t, abbrev, (struct abbrev_step){.op = STEP_SKIP, .form = form, .value = size});
    return add_step(t, abbrev, (struct abbrev_step){.op = choose_skip_op(form), .form = form});
}

/* Which attributes an abbreviation has, of those that decide how its entries are handled (enum abbrev_walk). */
struct traits {
    bool sibling, declaration, low_pc, high_pc, ranges;
};

/* Decides by kind and attributes how the walk over a unit's entries (functions.c) handles those of this abbreviation. `jump`: their
 * children can be passed over by the sibling attribute, which is done only where children cannot have code: below a declaration and below
 * types. WALK_CODE, _JUMP and _VARIABLE need attributes of the entry; WALK_PASS, _NOCODE and _SCOPE skip them and go on with its
 * children. */
static enum abbrev_walk choose_walk(const struct abbrev *abbrev, const struct traits *traits)
{
    bool code = traits->ranges || (traits->low_pc && traits->high_pc), jump = traits->sibling && abbrev->children;
    switch (abbrev->kind) {
    case KIND_SUBPROGRAM: return code ? WALK_CODE : jump && traits->declaration ? WALK_JUMP : WALK_NOCODE;
    case KIND_INLINED: return code ? WALK_CODE : WALK_PASS;
    case KIND_LEAF_TYPE: return jump ? WALK_JUMP : WALK_PASS;
    case KIND_VARIABLE: return WALK_VARIABLE;
    case KIND_SCOPE: return abbrev->children ? WALK_SCOPE : WALK_PASS;
    default: return WALK_PASS;
    }
}

/* Records that the abbreviation has the attribute. */
static void note_trait(struct traits *traits, uint64_t attribute)
{
    traits->sibling = traits->sibling || attribute == DW_AT_sibling;
    traits->declaration = traits->declaration || attribute == DW_AT_declaration;
    traits->low_pc = traits->low_pc || attribute == DW_AT_low_pc;
    traits->high_pc = traits->high_pc || attribute == DW_AT_high_pc;
    traits->ranges = traits->ranges || attribute == DW_AT_ranges;
}

/* True for forms that dwarf_read_form can read: those of fixed size, the codes from block2 to rnglistx, and the GNU indexes. */
static bool is_known_form(uint16_t form, const struct abbrev_table *t)
{
    return fixed_size(form, t) >= 0 || (form >= DW_FORM_block2 && form <= DW_FORM_rnglistx) ||
           form == DW_FORM_GNU_addr_index || form == DW_FORM_GNU_str_index;
}

/* Reads an abbreviation after its code and compiles it to steps. An unknown form makes its entries unreadable (`known` false), but not
 * those of other abbreviations. False if the table ends within it, or when out of memory or budget. */
static bool read_abbrev(struct abbrev_table *t, struct sl_reader *r, struct abbrev *abbrev)
{
    struct traits traits = {0};
    *abbrev =
        (struct abbrev){.first_step = (uint32_t)t->step_count, .first_skip = (uint32_t)t->skip_count, .known = true};
    uint64_t tag = sl_read_uleb(r);
    abbrev->tag = tag > UINT16_MAX ? 0 : (uint16_t)tag; /* 0: a tag of no meaning here */
    abbrev->children = sl_read_u8(r) != 0;
    abbrev->kind = (uint8_t)get_entry_kind(abbrev->tag, t->w->variables);
    enum wanted_attributes wanted = choose_wanted_attributes(abbrev->tag, t->w->variables);
    for (;;) {
        uint64_t attribute = sl_read_uleb(r), form = sl_read_uleb(r);
        if (r->failed || (attribute == 0 && form == 0)) {
            abbrev->walk = (uint8_t)choose_walk(abbrev, &traits);
            t->has_functions = t->has_functions || (abbrev->kind == KIND_SUBPROGRAM && abbrev->walk == WALK_CODE);
            return !r->failed;
        }
        int64_t constant = form == DW_FORM_implicit_const ? sl_read_sleb(r) : 0;
        if (form > UINT16_MAX || !is_known_form((uint16_t)form, t)) {
            abbrev->known = false;
            continue;
        }
        /* no attribute that is needed has such a large number: 0 stands for "not needed" */
        if (!add_attribute(t, abbrev, wanted, attribute > UINT16_MAX ? 0 : (uint16_t)attribute, (uint16_t)form,
                           constant))
            return false;
        note_trait(&traits, attribute);
    }
}

/* Returns how to skip entries of this abbreviation in the common cases, which struct quick_abbrev can express; QUICK_OTHER for all
 * others. */
static struct quick_abbrev make_quick_reader(const struct abbrev_table *t, const struct abbrev *abbrev)
{
    const struct quick_abbrev other = {.op = QUICK_OTHER};
    struct quick_abbrev q = {.lead = (uint16_t)abbrev->lead, .open = abbrev->children, .op = QUICK_SKIP};
    /* an entry beyond WALK_NOCODE must be read; `lead` has 16 bits here, and there is room for one attribute of variable size */
    if (!abbrev->known || abbrev->walk > WALK_NOCODE || abbrev->lead > UINT16_MAX || abbrev->skip_count > 1)
        return other;
    bool nocode = abbrev->walk == WALK_NOCODE && abbrev->children;
    if (!abbrev->skip_count) {
        q.op = nocode ? QUICK_NOCODE : QUICK_SKIP;
        return q;
    }
    /* the attribute of variable size must be a block or a LEB128 number; for such an entry QUICK_NOCODE has no room */
    const struct skip_step *step = &t->skips[abbrev->first_skip];
    if (nocode || step->then > UINT16_MAX || (step->op != STEP_BLOCK && step->op != STEP_ULEB))
        return other;
    q.op = step->op == STEP_BLOCK ? QUICK_BLOCK : QUICK_ULEB;
    q.then = (uint16_t)step->then;
    return q;
}

/* Fills `quick` for all codes of the array; false when out of memory or budget. Code 0 ends a list of children: it has no attributes and
 * decreases the depth by one. */
static bool make_quick(struct abbrev_table *t)
{
    if (!sl_account_grow(&t->w->account, &t->quick, &t->quick_capacity, t->dense_count + 1, sizeof *t->quick))
        return false;
    for (size_t i = 1; i < t->dense_count; i++)
        t->quick[i] = make_quick_reader(t, &t->items[i]);
    t->quick[0] = (struct quick_abbrev){.open = -1, .op = QUICK_SKIP};
    return true;
}

SL_ORDER_BY(by_code, struct sparse_abbrev, code, abbrev.first_step)

/* Codes are mostly 1, 2, 3 ..., so abbreviations are stored in an array indexed by code. A code far above the number of abbreviations
 * `read` so far would waste memory there: it goes into the sorted list of sparse codes. */
static bool is_dense(const struct abbrev_table *t, uint64_t code, size_t read)
{
    enum { MAX_DENSE = 1 << 16, GAP = 256 };
    return code < MAX_DENSE && (code < t->dense_count || code <= 4 * (uint64_t)read + GAP);
}

/* Stores an abbreviation in the array by code, or in the list of sparse codes (is_dense). `read`: number of abbreviations read before. Of
 * equal codes in the array the last one counts. False when out of memory or budget. */
static bool store_abbrev(struct abbrev_table *t, uint64_t code, const struct abbrev *abbrev, size_t read)
{
    if (!is_dense(t, code, read)) {
        if (!sl_account_grow(&t->w->account, &t->sparse, &t->sparse_capacity, t->sparse_count + 1, sizeof *t->sparse))
            return false;
        t->sparse[t->sparse_count++] = (struct sparse_abbrev){code, *abbrev};
        return true;
    }
    if (!sl_account_grow(&t->w->account, &t->items, &t->item_capacity, (size_t)code + 1, sizeof *t->items))
        return false;
    for (; t->dense_count <= code; t->dense_count++)
        t->items[t->dense_count] = (struct abbrev){0};
    t->items[code] = *abbrev;
    return true;
}

/* Reads the abbreviations of the unit into `t`, up to the one with code `last` (UINT64_MAX: all); a damaged one ends the table. False if
 * there is none, or when out of memory or budget. Tables may overlap, and a table is read again after the cache replaced it, so the work of
 * every read is charged by the bytes of the table. */
static bool read_table(struct abbrev_table *t, const struct dwarf_file *file, const struct dwarf_unit_header *unit,
                       uint64_t last)
{
    enum { STEPS_PER_BYTE = 8 };
    t->file = file;
    t->offset = unit->abbrev_offset;
    t->address_size = unit->address_size;
    t->offset_size = unit->offset_size;
    t->version = unit->version;
    t->step_count = t->skip_count = t->dense_count = t->sparse_count = 0;
    for (unsigned form = 0; form < COMMON_FORMS; form++)
        t->sizes[form] = (int8_t)size_of_form((uint16_t)form, t);
    /* Allocate one step before reading: abbreviations without attributes point into these arrays, which must not be NULL. */
    if (!sl_account_grow(&t->w->account, &t->steps, &t->step_capacity, 1, sizeof *t->steps) ||
        !sl_account_grow(&t->w->account, &t->skips, &t->skip_capacity, 1, sizeof *t->skips))
        return false;
    struct sl_reader r = sl_reader(file->abbrev, file->big_endian);
    sl_reader_seek(&r, unit->abbrev_offset);
    for (size_t read = 0; !r.failed; read++) {
        size_t start = sl_reader_offset(&r);
        uint64_t code = sl_read_uleb(&r);
        struct abbrev abbrev;
        if (code == 0 || r.failed || !read_abbrev(t, &r, &abbrev))
            break;
        if (!sl_account_spend(&t->w->account, (sl_reader_offset(&r) - start) * STEPS_PER_BYTE) ||
            !store_abbrev(t, code, &abbrev, read))
            return false;
        if (code == last)
            break;
    }
    if (t->sparse_count)
        qsort(t->sparse, t->sparse_count, sizeof *t->sparse, by_code);
    return !t->w->account.failed && (t->dense_count || t->sparse_count) && make_quick(t);
}

/* Frees the arrays of the table and leaves it empty, so it can be read into again. */
void abbrev_table_free(struct abbrev_table *t)
{
    free(t->items);
    free(t->quick);
    free(t->sparse);
    free(t->steps);
    free(t->skips);
    *t = (struct abbrev_table){0};
}

/* Small codes are indexes of `items`, others are found by binary search. Returns NULL for an unknown code, and for an abbreviation that has
 * a form of unknown size, so that its entries cannot be read. */
const struct abbrev *abbrev_find(const struct abbrev_table *t, uint64_t code)
{
    if (code < t->dense_count)
        return t->items[code].known ? &t->items[code] : NULL;
    size_t low = SL_PARTITION_POINT(middle, 0, t->sparse_count, t->sparse[middle].code < code);
    bool known = low < t->sparse_count && t->sparse[low].code == code && t->sparse[low].abbrev.known;
    return known ? &t->sparse[low].abbrev : NULL;
}

/* Returns the unit's table, from the cache if it is there; NULL if it cannot be read. A new table replaces the oldest one in the cache, but
 * never w->pinned, which the unit being walked uses. */
const struct abbrev_table *dwarf_abbrevs(struct dwarf_worker *w, const struct dwarf_file *file,
                                         const struct dwarf_unit_header *header)
{
    for (size_t i = 0; i < ABBREV_TABLES; i++) {
        struct abbrev_table *t = &w->tables[i];
        if (t->used && t->file == file && t->offset == header->abbrev_offset &&
            t->address_size == header->address_size && t->offset_size == header->offset_size &&
            t->version == header->version)
            return t;
    }
    struct abbrev_table *t = &w->tables[w->table_next++ % ABBREV_TABLES];
    if (t == w->pinned)
        t = &w->tables[w->table_next++ % ABBREV_TABLES];
    /* Invalidate cached units that point to the replaced table. */
    for (size_t i = 0; i < FOREIGN_UNITS; i++)
        if (w->foreign_used[i] && w->foreign[i].abbrevs == t)
            w->foreign_used[i] = false;
    t->w = w;
    t->used = read_table(t, file, header, UINT64_MAX);
    return t->used ? t : NULL;
}

const struct abbrev_table *dwarf_root_abbrev(struct dwarf_worker *w, const struct dwarf_file *file,
                                             const struct dwarf_unit_header *header)
{
    struct sl_reader r = sl_reader((struct sl_bytes){file->info.data, (size_t)header->end}, file->big_endian);
    sl_reader_seek(&r, header->die);
    uint64_t code = sl_read_uleb(&r);
    w->root.w = w;
    return !r.failed && code && read_table(&w->root, file, header, code) ? &w->root : NULL;
}

void dwarf_invalidate_caches(struct dwarf_worker *w, const struct dwarf_file *file)
{
    for (size_t i = 0; i < ABBREV_TABLES; i++)
        w->tables[i].used = w->tables[i].used && w->tables[i].file != file;
    for (size_t i = 0; i < FOREIGN_UNITS; i++)
        w->foreign_used[i] = w->foreign_used[i] && w->foreign[i].file != file;
}
