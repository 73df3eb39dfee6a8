/* Line programs (DWARF 5, 6.2), decoded once per unit into rows and into sequences sorted by address. */
#include "dwarf/impl.h"

#include "base/order.h"

#include <stdlib.h>

struct program {
    struct sl_bytes code;
    uint16_t version;
    uint8_t address_size, offset_size, min_instruction, max_ops, line_range, opcode_base;
    int8_t line_base;
    uint8_t lengths[256];
    uint8_t special_ops[256];   /* by special opcode: by how many operations it advances */
    int16_t special_lines[256]; /* by special opcode: by how many lines it advances */
    bool big_endian;
};

struct file_entry {
    struct sl_str name;
    uint64_t directory;
};

struct table_reader {
    struct dwarf_worker *w;
    const struct dwarf_unit *unit;
    size_t directory_count; /* in worker->directories */
    uint8_t offset_size;    /* of the program: assemblers write 32-bit programs for 64-bit units */
    bool names_first;       /* versions 2 to 4: directory 0, too, is joined to the compilation directory */
};

/* Adds a file with the directory of that number to the table; a number beyond the list is ignored. False when out of memory. */
static bool dwarf_line_add_file(struct table_reader *t, struct sl_str name, uint64_t directory)
{
    struct dwarf_line_table *lines = &t->w->lines;
    if (!sl_account_grow(&t->w->account, &lines->files, &lines->file_capacity, lines->file_count + 1,
                         sizeof *lines->files))
        return false;
    struct sl_file *file = &lines->files[lines->file_count++];
    *file = (struct sl_file){.comp_dir = t->unit->comp_dir, .name = name};
    /* In version 5 directory 0 is the compilation directory itself. It may be relative, so it is not joined to itself; in versions 2 to 4
     * (`names_first`) it is, see read_tables_v4(). */
    if ((directory || t->names_first) && directory < t->directory_count)
        file->directory = t->w->directories[directory];
    else if (t->directory_count && t->w->directories[0].size) /* may be missing in the root entry */
        file->comp_dir = t->w->directories[0];
    return true;
}

/* Appends a directory to the table's list in the worker. False when out of memory. */
static bool add_directory(struct table_reader *t, struct sl_str name)
{
    struct dwarf_worker *w = t->w;
    if (!sl_account_grow(&w->account, &w->directories, &w->directory_capacity, t->directory_count + 1,
                         sizeof *w->directories))
        return false;
    w->directories[t->directory_count++] = name;
    return true;
}

/* Reads the tables of versions 2 to 4: directory 0 is the compilation directory, file 0 the unit's own name. A relative compilation
 * directory occurs twice in the joined path. Symbolicator does the same, and crashes are grouped by such paths, so this must not be
 * corrected. False if the tables are cut off, or when out of memory. */
static bool read_tables_v4(struct table_reader *t, struct sl_reader *r)
{
    t->names_first = true;
    bool ok = add_directory(t, t->unit->comp_dir);
    while (ok && !r->failed) {
        struct sl_str name = sl_read_cstr(r);
        if (name.size == 0)
            break;
        ok = add_directory(t, name);
    }
    ok = ok && dwarf_line_add_file(t, t->unit->name, 0);
    while (ok && !r->failed) {
        struct sl_str name = sl_read_cstr(r);
        if (name.size == 0)
            break;
        uint64_t directory = sl_read_uleb(r);
        sl_read_uleb(r); /* time of modification */
        sl_read_uleb(r); /* size */
        ok = dwarf_line_add_file(t, name, directory);
    }
    return ok && !r->failed;
}

/* Reads the list that describes an entry of the directory or file table (DWARF 5, 6.2.4.1); returns its length, 0 if it is damaged. A form
 * of more than 16 bits becomes 0, which no reader knows: the table is then unreadable. */
size_t dwarf_read_formats(struct sl_reader *r, struct entry_format formats[MAX_FORMATS])
{
    size_t count = sl_read_u8(r);
    for (size_t i = 0; i < count; i++) {
        formats[i].content = sl_read_uleb(r);
        uint64_t form = sl_read_uleb(r);
        formats[i].form = form > UINT16_MAX ? 0 : (uint16_t)form;
    }
    return r->failed ? 0 : count;
}

/* Reads an attribute of the table. Offsets into string sections have the size of the line program, which may differ from that of the
 * unit. */
static bool read_form(struct table_reader *t, struct sl_reader *r, uint16_t form, struct attribute *a)
{
    if (form != DW_FORM_line_strp && form != DW_FORM_strp)
        return dwarf_read_form(r, t->unit, form, 0, a);
    *a = (struct attribute){.form = form, .value = sl_read_uint(r, t->offset_size)};
    return !r->failed;
}

/* Reads the fields of a directory or file of version 5; only path and directory are kept, the others are skipped. False if a form is
 * unknown or reaches past the end, or if the budget is used up. */
static bool dwarf_line_read_entry(struct table_reader *t, struct sl_reader *r, const struct entry_format *formats,
                                  size_t count, struct file_entry *entry)
{
    *entry = (struct file_entry){0};
    if (!sl_account_spend(&t->w->account, count)) /* forms may take no bytes */
        return false;
    for (size_t i = 0; i < count; i++) {
        struct attribute a;
        if (!read_form(t, r, formats[i].form, &a))
            return false;
        if (formats[i].content == DW_LNCT_path)
            entry->name = dwarf_text(&t->w->account, t->unit, &a);
        else if (formats[i].content == DW_LNCT_directory_index)
            entry->directory = a.value;
    }
    return true;
}

/* Reads directories and files. Both lists have their formats in front. Counts are checked against the bytes left, as an entry has at least
 * one byte. False at the first entry that cannot be read; those before it are kept. */
static bool read_tables_v5(struct table_reader *t, struct sl_reader *r)
{
    struct entry_format formats[MAX_FORMATS];
    struct file_entry entry;
    size_t format_count = dwarf_read_formats(r, formats);
    uint64_t count = sl_read_uleb(r);
    bool ok = count <= sl_reader_left(r) && (!count || format_count); /* no entries without fields */
    for (uint64_t i = 0; ok && i < count; i++)
        ok = dwarf_line_read_entry(t, r, formats, format_count, &entry) && add_directory(t, entry.name);
    format_count = dwarf_read_formats(r, formats);
    count = sl_read_uleb(r);
    ok = ok && count <= sl_reader_left(r) && (!count || format_count);
    for (uint64_t i = 0; ok && i < count; i++)
        ok = dwarf_line_read_entry(t, r, formats, format_count, &entry) &&
             dwarf_line_add_file(t, entry.name, entry.directory);
    return ok;
}

/* Finds the unit's line table and reads the sizes that it begins with. `r` then ends where the table ends; the next `*header` bytes are the
 * rest of the header. False if the table is cut off or its version is unknown. */
static bool read_sizes(struct sl_reader *r, const struct dwarf_unit *unit, struct program *p, uint64_t *header)
{
    const struct dwarf_file *file = unit->address_file;
    *r = sl_reader(file->line, file->big_endian);
    sl_reader_seek(r, unit->stmt_list);
    p->big_endian = file->big_endian;
    p->offset_size = 4;
    uint64_t length = sl_read_u32(r);
    if (length == 0xFFFFFFFF) {
        p->offset_size = 8;
        length = sl_read_u64(r);
    }
    if (r->failed || length > sl_reader_left(r))
        return false;
    r->end = r->at + length;
    p->version = sl_read_u16(r);
    p->address_size = unit->header->address_size;
    if (p->version < 2 || p->version > 5)
        return false;
    if (p->version == 5) {
        p->address_size = sl_read_u8(r);
        sl_read_u8(r); /* size of a segment selector */
    }
    *header = sl_read_uint(r, p->offset_size);
    return *header <= sl_reader_left(r);
}

bool dwarf_has_rows(const struct dwarf_unit *unit)
{
    struct sl_reader r;
    struct program p;
    uint64_t header;
    return unit->has_stmt_list && read_sizes(&r, unit, &p, &header) && header < sl_reader_left(&r);
}

/* Reads the header of the line program: its parameters, the lengths of the standard opcodes, and the tables of directories and files.
 * Precomputes what each special opcode adds to operation and line. False if the program cannot be executed, or if the budget is used up. */
static bool dwarf_line_read_header(struct table_reader *t, struct program *p)
{
    struct sl_reader r;
    uint64_t header;
    if (!read_sizes(&r, t->unit, p, &header) || !sl_account_spend(&t->w->account, sl_reader_left(&r)))
        return false;
    t->offset_size = p->offset_size;
    const uint8_t *code = r.at + header;
    p->min_instruction = sl_read_u8(&r);
    p->max_ops = p->version >= 4 ? sl_read_u8(&r) : 1;
    sl_read_u8(&r); /* default_is_stmt */
    p->line_base = (int8_t)sl_read_u8(&r);
    p->line_range = sl_read_u8(&r);
    p->opcode_base = sl_read_u8(&r);
    for (unsigned i = 1; i < p->opcode_base; i++)
        p->lengths[i] = sl_read_u8(&r);
    if (r.failed || p->line_range == 0 || p->opcode_base == 0 || r.at > code)
        return false;
    for (unsigned i = p->opcode_base; i < 256; i++) {
        p->special_ops[i] = (uint8_t)((i - p->opcode_base) / p->line_range);
        p->special_lines[i] = (int16_t)(p->line_base + (int)((i - p->opcode_base) % p->line_range));
    }
    p->code = (struct sl_bytes){code, (size_t)(r.end - code)};
    struct sl_reader tables = r;
    tables.end = code;
    /* Ignore errors: strings of broken files may run past the header's stated length, but the rows are valid. */
    if (p->version == 5)
        read_tables_v5(t, &tables);
    else
        read_tables_v4(t, &tables);
    if (t->w->row_list) {
        t->w->row_list->version = p->version;
        t->w->row_list->directory = t->directory_count ? t->w->directories[0] : (struct sl_str){NULL, 0};
    }
    return true;
}

struct line_machine {
    struct dwarf_line_table *lines;
    struct table_reader *table;
    uint64_t address, dead;
    uint32_t file, line, op_index;
    uint64_t column;
    uint64_t discriminator; /* of the next row */
    size_t first;           /* first row of the open sequence */
    bool open, killed;      /* open: a sequence has begun; killed: rows are dropped until the next set_address */
    bool keep_zero;         /* address 0 may be live code: its rows are kept */
    bool positions;         /* rows have positions, not lines */
};

static uint32_t as_u32(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : 0;
}

/* Appends the current row to the list of all rows, worker->row_list, if the caller wants one. Rows of dropped code come here; if there is a
 * list all rows do, as they then count as dropped (`dead` is 0). False when out of memory. */
static bool list_row(struct line_machine *m, bool is_end)
{
    struct row_list *list = m->table->w->row_list;
    if (!list)
        return true;
    if (!sl_account_grow(&m->table->w->account, &list->rows, &list->capacity, list->count + 1, sizeof *list->rows))
        return false;
    list->rows[list->count++] = (struct sl_dwarf_row){
        m->address, m->file, m->line, as_u32(m->column), as_u32(m->discriminator), m->op_index, is_end};
    m->discriminator = 0;
    return true;
}

/* Adds the current row to the table. Of several rows at one address the last one is used; rows with a lower address than the row before are
 * ignored, because lookups need sorted rows. `killed`: set_address went to dropped code or backwards. False when out of memory. */
static bool dwarf_line_emit(struct line_machine *m)
{
    struct dwarf_line_table *t = m->lines;
    if (m->killed || m->address >= m->dead || (m->address == 0 && !m->keep_zero))
        return list_row(m, false); /* code that the linker dropped: not in the table, only in a listing */
    uint32_t line = m->positions ? sl_position(m->line, m->column) : m->line;
    if (!m->open) {
        m->open = true;
        m->first = t->row_count;
    } else if (t->row_count > m->first) {
        struct dwarf_row *last = &t->rows[t->row_count - 1];
        if (m->address < last->address)
            return true;
        if (m->address == last->address) {
            last->file = m->file;
            last->line = line;
            return true;
        }
    }
    if (t->row_count == t->row_capacity &&
        !sl_account_grow(&m->table->w->account, &t->rows, &t->row_capacity, t->row_count + 1, sizeof *t->rows))
        return false;
    t->rows[t->row_count++] = (struct dwarf_row){m->address, m->file, line};
    return true;
}

/* Ends the open sequence at `end`, at least one byte after its last row. A sequence without rows is dropped. False when out of memory. */
static bool close_sequence(struct line_machine *m, uint64_t end)
{
    struct dwarf_line_table *t = m->lines;
    bool rows = m->open && t->row_count > m->first;
    m->open = false;
    if (!rows)
        return true;
    const struct dwarf_row *first = &t->rows[m->first], *last = &t->rows[t->row_count - 1];
    if (end <= last->address)
        end = last->address + 1;
    if (!sl_account_grow(&m->table->w->account, &t->sequences, &t->sequence_capacity, t->sequence_count + 1,
                         sizeof *t->sequences))
        return false;
    t->sequences[t->sequence_count++] =
        (struct sequence){first->address, end, (uint32_t)m->first, (uint32_t)(t->row_count - m->first)};
    return true;
}

/* Sets the registers to their values at the start of a sequence (DWARF 5, 6.2.2). */
static void reset(struct line_machine *m)
{
    m->address = 0;
    m->file = 1;
    m->line = 1;
    m->column = 0;
    m->discriminator = 0;
    m->op_index = 0;
    m->killed = false;
}

/* Advances by operations: instructions, or (VLIW) slots of an instruction. */
static void dwarf_line_advance(struct line_machine *m, const struct program *p, uint64_t ops)
{
    if (p->max_ops <= 1) {
        m->address += ops * p->min_instruction;
        return;
    }
    uint64_t total = m->op_index + ops;
    m->address += total / p->max_ops * p->min_instruction;
    m->op_index = (uint32_t)(total % p->max_ops);
}

/* Executes an extended opcode. Its length is given, so unknown ones are skipped; an opcode of length 0 does nothing. False if it reaches
 * past the program's end, or when out of memory. */
static bool extended(struct line_machine *m, const struct program *p, struct sl_reader *r)
{
    uint64_t length = sl_read_uleb(r);
    if (length == 0 || length > sl_reader_left(r))
        return !r->failed && length == 0;
    struct sl_reader in = *r;
    in.end = in.at + length;
    r->at += length;
    switch (sl_read_u8(&in)) {
    case DW_LNE_end_sequence: /* list_row: only in a listing of all rows does the end count as a row */
        if (!list_row(m, true) || !close_sequence(m, m->address))
            return false;
        reset(m);
        break;
    case DW_LNE_set_address: {
        uint64_t size = length - 1;
        uint64_t address = sl_read_uint(&in, size <= 8 ? (unsigned)size : 0); /* size 0 fails */
        if (in.failed)
            return false;
        bool back =
            m->open && m->lines->row_count > m->first && address < m->lines->rows[m->lines->row_count - 1].address;
        /* Rows at 0 and at tombstones are of code that the linker dropped; rows that go back would cover other code. */
        m->killed = back || address >= m->dead || (address == 0 && !m->keep_zero);
        m->address = address;
        m->op_index = 0;
        break;
    }
    case DW_LNE_set_discriminator: m->discriminator = sl_read_uleb(&in); break;
    case DW_LNE_define_file: {
        struct sl_str name = sl_read_cstr(&in);
        uint64_t directory = sl_read_uleb(&in);
        if (!in.failed)
            dwarf_line_add_file(m->table, name, directory); /* out of memory: the account remembers it */
        break;
    }
    }
    return true;
}

/* Executes a standard opcode. Unknown ones are skipped by the number of their operands, which the header gives. False at the end of the
 * program, or when out of memory. Flags of rows (is_stmt, prologue_end and the like) are not used. */
static bool standard(struct line_machine *m, const struct program *p, struct sl_reader *r, uint8_t opcode)
{
    switch (opcode) {
    case DW_LNS_copy: return dwarf_line_emit(m);
    case DW_LNS_advance_pc: dwarf_line_advance(m, p, dwarf_uleb(r)); break;
    case DW_LNS_advance_line: m->line = (uint32_t)((int64_t)m->line + dwarf_sleb(r)); break;
    case DW_LNS_set_file: {
        uint64_t file = sl_read_uleb(r);
        m->file = file > UINT32_MAX - 1 ? SL_NO_FILE : (uint32_t)file;
        break;
    }
    case DW_LNS_set_column: m->column = dwarf_uleb(r); break;
    case DW_LNS_negate_stmt:
    case DW_LNS_set_basic_block:
    case DW_LNS_set_prologue_end:
    case DW_LNS_set_epilogue_begin: break;
    /* advances the address as special opcode 255 does */
    case DW_LNS_const_add_pc: dwarf_line_advance(m, p, (255u - p->opcode_base) / p->line_range); break;
    case DW_LNS_fixed_advance_pc:
        m->address += sl_read_u16(r);
        m->op_index = 0;
        break;
    default:
        for (unsigned i = 0; i < p->lengths[opcode]; i++)
            sl_read_uleb(r);
    }
    return !r->failed;
}

/* Executes the line program until its end or an error; rows before an error are kept. Special opcodes are most of the program, so they are
 * executed here without a call. */
static void dwarf_line_run(struct line_machine *m, const struct program *p)
{
    struct sl_reader r = sl_reader(p->code, p->big_endian);
    bool simple = p->max_ops <= 1; /* no VLIW processor: an operation is an instruction */
    reset(m);
    while (r.at < r.end && !r.failed) {
        uint8_t opcode = *r.at++;
        if (opcode >= p->opcode_base) {
            unsigned ops = p->special_ops[opcode];
            if (simple)
                m->address += (uint64_t)ops * p->min_instruction;
            else
                dwarf_line_advance(m, p, ops);
            m->line += (uint32_t)p->special_lines[opcode];
            if (!dwarf_line_emit(m))
                return;
        } else if (opcode == 0 ? !extended(m, p, &r) : !standard(m, p, &r, opcode)) {
            break;
        }
    }
    /* A sequence without an end covers one byte at its last row. */
    close_sequence(m, 0);
}

SL_ORDER_BY(dwarf_line_by_start, struct sequence, start, first)

/* Sequences are sorted by address; there are none if the header is damaged. Several units may use one line program: it is executed and
 * charged again for each. */
void dwarf_read_lines(struct dwarf_worker *w, const struct dwarf_unit *unit)
{
    struct dwarf_line_table *lines = &w->lines;
    lines->row_count = lines->sequence_count = lines->file_count = 0;
    if (!unit->has_stmt_list)
        return;
    struct table_reader table = {.w = w, .unit = unit};
    struct program program = {0};
    if (!dwarf_line_read_header(&table, &program))
        return;
    struct line_machine machine = {
        .lines = lines,
        .table = &table,
        /* 0: all rows count as dropped, which go to w->row_list only */
        .dead = w->row_list ? 0 : dwarf_dead(unit->address_file, program.address_size),
        .keep_zero = dwarf_may_have_code_at_zero(unit->address_file),
        .positions = w->positions,
    };
    dwarf_line_run(&machine, &program);
    bool sorted = true;
    for (size_t i = 1; i < lines->sequence_count && sorted; i++)
        sorted = lines->sequences[i - 1].start <= lines->sequences[i].start;
    if (!sorted)
        qsort(lines->sequences, lines->sequence_count, sizeof *lines->sequences, dwarf_line_by_start);
}
