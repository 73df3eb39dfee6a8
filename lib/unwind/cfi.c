/* Reads a CFI cache (layout: cfi_format.h) in place. Every id and offset is checked when it is used, as the file may be damaged. */
#include "unwind/cfi_format.h"

#include "unwind/impl.h"
#include "base/search.h"

/* Opens the rows, the buckets that shorten the search in them, and the rules to which rows refer. False if sections have wrong sizes. */
static bool open_rows(struct sl_cfi *cfi)
{
    const struct sl_bytes *sections = cfi->table.sections;
    if (!sl_table_columns(sections[CFI_ROWS], cfi->row_count, CFI_ROW_COLUMNS, cfi->rows) || cfi->bucket_shift > 63)
        return false;
    uint64_t last = cfi->row_count ? sl_column_get(&cfi->rows[CFI_ROW_ADDRESS], cfi->row_count - 1) : 0;
    cfi->bucket_count = (last >> cfi->bucket_shift) + 1;
    /* the column of buckets has one more number: the end of the last bucket */
    return cfi->bucket_count < UINT32_MAX &&
           sl_table_columns(sections[CFI_BUCKETS], cfi->bucket_count + 1, 1, &cfi->buckets) &&
           sl_table_units(sections[CFI_SET_OFFSETS], sections[CFI_SETS], cfi->set_count, &cfi->sets);
}

/* Opens the STACK WIN records (those of type 0, then those of type 4) and their programs. False if sections have wrong sizes. */
static bool open_windows(struct sl_cfi *cfi)
{
    const struct sl_bytes *sections = cfi->table.sections;
    uint64_t count = (uint64_t)cfi->win_count[0] + cfi->win_count[1];
    struct sl_bytes offsets = sections[CFI_PROGRAM_OFFSETS];
    /* the section has the 32-bit offset of each program, and of the end */
    cfi->program_count = offsets.size >= 4 ? (uint32_t)(offsets.size / 4 - 1) : 0;
    return sl_table_columns(sections[CFI_WINDOWS], count, CFI_WIN_COLUMNS, cfi->win) &&
           sl_table_columns(sections[CFI_PROGRAM_IDS], count, 1, &cfi->win[CFI_WIN_PROGRAM]) &&
           sl_table_units(offsets, sections[CFI_PROGRAMS], cfi->program_count, &cfi->programs);
}

enum sl_code sl_cfi_open(struct sl_bytes bytes, struct sl_cfi *cfi, struct sl_error *error)
{
    const uint8_t *h = bytes.data;
    *cfi = (struct sl_cfi){.row_count = 0};
    enum sl_code code = sl_table_open(bytes, &cfi_format, &cfi->table, error);
    if (code != SL_OK)
        return code;
    /* the 32-bit word at CFI_AT_FLAGS has the flags in its low half and the architecture (CFI_AT_ARCH) in its high half */
    uint32_t flags = sl_table_u32(h + CFI_AT_FLAGS) & UINT16_MAX;
    struct sl_bytes module = cfi->table.sections[CFI_MODULE];
    cfi->big_endian = flags & CFI_FLAG_BIG_ENDIAN;
    cfi->arch = (enum sl_arch)(sl_table_u32(h + CFI_AT_FLAGS) >> 16);
    cfi->family = sl_arch_family(cfi->arch);
    memcpy(cfi->debug_id.uuid, h + CFI_AT_UUID, sizeof cfi->debug_id.uuid);
    cfi->debug_id.age = sl_table_u32(h + CFI_AT_AGE);
    cfi->debug_id.pdb20 = flags & CFI_FLAG_PDB20;
    cfi->debug_file = (struct sl_str){(const char *)module.data, module.size};
    cfi->row_count = sl_table_u32(h + CFI_AT_ROWS);
    cfi->set_count = sl_table_u32(h + CFI_AT_SETS);
    cfi->win_count[0] = sl_table_u32(h + CFI_AT_WIN_0);
    cfi->win_count[1] = sl_table_u32(h + CFI_AT_WIN_4);
    cfi->bucket_shift = sl_table_u32(h + CFI_AT_SHIFT);
    return open_rows(cfi) && open_windows(cfi)
               ? SL_OK
               : sl_fail(error, SL_MALFORMED, "damaged CFI cache: the sections have other sizes than its header says");
}

/* ---- rows ---- */

/* Finds the last row at or before the address; false if there is none, or if the file is damaged. Rows are sorted by address, so it is the
 * one before the first row above the address, which is searched in the address's bucket only. */
static bool row_before(const struct sl_cfi *cfi, uint64_t address, uint32_t *row)
{
    const struct sl_column *addresses = &cfi->rows[CFI_ROW_ADDRESS];
    uint64_t bucket = address >> cfi->bucket_shift, low, high;
    if (bucket >= cfi->bucket_count)
        return false;
    low = sl_column_get(&cfi->buckets, bucket); /* a bucket is the number of rows before its first address */
    high = sl_column_get(&cfi->buckets, bucket + 1);
    if (low > high || high > cfi->row_count)
        return false;
    low = SL_PARTITION_POINT(middle, low, high,
                             sl_column_get(addresses, middle) <= address); /* first row above the address */
    *row = (uint32_t)low - 1;
    return low > 0;
}

/* Opens the rules of row `index`; false if the row has none, because a range ends there, or if the file is damaged. */
static bool open_row(const struct sl_cfi *cfi, uint32_t index, struct sl_cfi_row *row)
{
    /* 1 + the index in cfi->sets of the byte string with the rules; 0: none */
    uint64_t set = sl_column_get(&cfi->rows[CFI_ROW_SET], index);
    if (!set || set > cfi->set_count)
        return false;
    struct sl_bytes bytes = sl_table_unit(&cfi->sets, set - 1);
    if (!bytes.size)
        return false;
    row->address = sl_column_get(&cfi->rows[CFI_ROW_ADDRESS], index);
    row->begins = sl_column_get(&cfi->rows[CFI_ROW_BEGINS], index);
    row->signal_frame = bytes.data[0] & CFI_SET_SIGNAL_FRAME; /* the first byte has flags, the others the rules */
    row->next = (struct sl_reader){.begin = bytes.data, .at = bytes.data + 1, .end = bytes.data + bytes.size};
    return true;
}

bool sl_cfi_find(const struct sl_cfi *cfi, uint64_t address, struct sl_cfi_row *row)
{
    uint32_t index;
    return row_before(cfi, address, &index) && open_row(cfi, index, row);
}

static struct sl_str read_cfi_bytes(struct sl_reader *r)
{
    struct sl_bytes bytes = sl_read_bytes(r, sl_read_uleb(r));
    return (struct sl_str){(const char *)bytes.data, bytes.size};
}

/* Reads the code of a register: 0 to 2 stand for the CFA, the return address and a register given by name, larger ones for DWARF numbers
 * plus CFI_REGISTER_FIRST. A number that is too large sets r->failed. */
static uint16_t read_cfi_register(struct sl_reader *r)
{
    uint64_t reg = sl_read_uleb(r);
    switch (reg) {
    case CFI_REGISTER_CFA: return SL_UNWIND_CFA;
    case CFI_REGISTER_RA: return SL_UNWIND_RA;
    case CFI_REGISTER_NAMED: return SL_UNWIND_NAMED;
    }
    r->failed |= reg - CFI_REGISTER_FIRST >= SL_UNWIND_NAMED;
    return (uint16_t)(reg - CFI_REGISTER_FIRST);
}

bool sl_cfi_rule(struct sl_cfi_row *row, struct sl_unwind_rule *rule)
{
    struct sl_reader *r = &row->next;
    if (r->failed || !sl_reader_left(r))
        return false;
    *rule = (struct sl_unwind_rule){.kind = sl_read_u8(r)};
    rule->reg = read_cfi_register(r);
    if (rule->reg == SL_UNWIND_NAMED)
        rule->name = read_cfi_bytes(r);
    switch ((enum sl_unwind_kind)rule->kind) {
    case SL_UNWIND_UNDEFINED:
    case SL_UNWIND_SAME: break;
    case SL_UNWIND_REGISTER: rule->base = read_cfi_register(r); break;
    case SL_UNWIND_OFFSET:
    case SL_UNWIND_MEMORY:
        rule->base = read_cfi_register(r);
        rule->offset = sl_read_sleb(r);
        break;
    case SL_UNWIND_PROGRAM:
    case SL_UNWIND_EXPRESSION: rule->program = read_cfi_bytes(r); break;
    default: r->failed = true;
    }
    return !r->failed;
}

/* ---- STACK WIN ---- */

/* Fills `win` from STACK WIN record `index`, where those of type 0 come first, then those of type 4. False if its program (type 0: flag) is
 * missing or empty. */
static bool open_window(const struct sl_cfi *cfi, uint64_t index, struct sl_unwind_win *win)
{
    const struct sl_column *c = cfi->win;
    uint64_t program = sl_column_get(&c[CFI_WIN_PROGRAM], index);
    if (program >= cfi->program_count)
        return false;
    struct sl_bytes text = sl_table_unit(&cfi->programs, program);
    *win = (struct sl_unwind_win){
        .type = index < cfi->win_count[0] ? 0 : 4,
        .start = sl_column_get(&c[CFI_WIN_START], index),
        .size = sl_column_get(&c[CFI_WIN_SIZE], index),
        .prolog = (uint32_t)sl_column_get(&c[CFI_WIN_PROLOG], index),
        .epilog = (uint32_t)sl_column_get(&c[CFI_WIN_EPILOG], index),
        .params = (uint32_t)sl_column_get(&c[CFI_WIN_PARAMS], index),
        .saved = (uint32_t)sl_column_get(&c[CFI_WIN_SAVED], index),
        .locals = (uint32_t)sl_column_get(&c[CFI_WIN_LOCALS], index),
        .max_stack = (uint32_t)sl_column_get(&c[CFI_WIN_MAX_STACK], index),
        .has_program = index >= cfi->win_count[0],
        .program = {(const char *)text.data, text.size},
    };
    return text.size > 0;
}

bool sl_cfi_find_win(const struct sl_cfi *cfi, unsigned type, uint64_t address, struct sl_unwind_win *win)
{
    const struct sl_column *starts = &cfi->win[CFI_WIN_START];
    uint64_t begin = type == 4 ? cfi->win_count[0] : 0, end = begin + cfi->win_count[type == 4];
    uint64_t low = SL_PARTITION_POINT(middle, begin, end, sl_column_get(starts, middle) <= address);
    return low > begin && open_window(cfi, low - 1, win) && address - win->start < win->size;
}

/* ---- reading the whole file ---- */

/* True if the rule's registers exist: their names are needed to write the rule as text. Other rules are only in damaged files. */
static bool is_sound(enum sl_cpu_family family, const struct sl_unwind_rule *rule)
{
    bool takes_base =
        rule->kind == SL_UNWIND_REGISTER || rule->kind == SL_UNWIND_OFFSET || rule->kind == SL_UNWIND_MEMORY;
    if (takes_base && !sl_unwind_register_name(family, rule->base))
        return false;
    return rule->reg == SL_UNWIND_NAMED ? rule->name.size && is_text(rule->name)
                                        : sl_unwind_register_name(family, rule->reg) != NULL;
}

/* Replaces `rules` by those of row `index`; false if the row is damaged, or lacks the CFA. A register that has a slot already keeps it, so
 * that the builder can compare the rules of two rows slot by slot. */
static bool rules_of_row(const struct sl_cfi *cfi, uint32_t index, struct unwind_rules *rules, struct sl_cfi_row *row)
{
    struct sl_unwind_rule rule;
    if (!open_row(cfi, index, row))
        return false;
    for (size_t i = 0; i < rules->count; i++)
        rules->slots[i].set = false;
    rules->cfa_known = false;
    rules->not_in_text = row->next.begin[0] & CFI_SET_BEYOND_TEXT; /* symbol files (text) cannot express them */
    while (sl_cfi_rule(row, &rule)) {
        bool is_printable = rule.kind != SL_UNWIND_PROGRAM || (rule.program.size && is_text(rule.program));
        if (!is_sound(cfi->family, &rule) || !is_printable || !rules_set(rules, &rule))
            return false;
    }
    return !row->next.failed && rules->cfa_known;
}

/* Passes the rules of all rows to the builder, which makes ranges of them. A row without rules ends a range. A row that is damaged ends its
 * range and sets `*bad`. Addresses that descend set `*bad` too, and end the reading. */
static void read_rows(const struct sl_cfi *cfi, struct unwind_builder *b, bool *bad)
{
    struct unwind_rules rules;
    uint64_t last = 0;
    rules_clear(&rules);
    for (uint32_t i = 0; i < cfi->row_count && b->code == SL_OK; i++) {
        struct sl_cfi_row row;
        uint64_t address = sl_column_get(&cfi->rows[CFI_ROW_ADDRESS], i);
        bool has_rules = sl_column_get(&cfi->rows[CFI_ROW_SET], i);
        bool begins = sl_column_get(&cfi->rows[CFI_ROW_BEGINS], i);
        if (address < last) {
            *bad = true;
            break;
        }
        last = address;
        if (b->open && (begins || !has_rules))
            builder_end(b, address);
        if (begins || !b->open)
            rules_clear(&rules); /* also frees the slots of registers */
        if (!has_rules)
            continue;
        if (rules_of_row(cfi, i, &rules, &row)) {
            b->signal_frame = row.signal_frame;
            builder_row(b, address, &rules);
        } else {
            *bad = true;
            builder_end(b, address);
        }
    }
    if (b->open) /* only in a damaged file: otherwise the last row has no rules and has ended the last range */
        builder_end(b, last);
}

/* The callbacks of a sink that drops everything, used when a file is only checked. */
static enum sl_code ignore_range(struct sl_unwind_sink *sink, const struct sl_unwind_range *range,
                                 struct sl_error *error)
{
    (void)sink, (void)range, (void)error;
    return SL_OK;
}

static enum sl_code ignore_win(struct sl_unwind_sink *sink, const struct sl_unwind_win *win, struct sl_error *error)
{
    (void)sink, (void)win, (void)error;
    return SL_OK;
}

enum sl_code sl_cfi_read(const struct sl_cfi *cfi, struct sl_unwind_sink *sink, struct sl_error *error)
{
    struct sl_unwind_sink nobody = {.range = ignore_range, .win = ignore_win};
    bool bad = false;
    struct unwind_builder b;
    sink = sink ? sink : &nobody;
    if (!builder_init(&b, sink, cfi->family, NULL, error)) /* NULL: no work budget */
        return sl_fail(error, SL_BUSY, "out of memory");
    read_rows(cfi, &b, &bad);
    for (uint64_t i = 0, count = (uint64_t)cfi->win_count[0] + cfi->win_count[1]; i < count && b.code == SL_OK; i++) {
        struct sl_unwind_win win;
        if (open_window(cfi, i, &win) && is_text(win.program))
            b.code = sink->win(sink, &win, error);
        else
            bad = true;
    }
    enum sl_code code = b.code;
    builder_free(&b);
    return code == SL_OK && bad ? sl_fail(error, SL_MALFORMED, "damaged CFI cache: some unwind rules cannot be decoded")
                                : code;
}
