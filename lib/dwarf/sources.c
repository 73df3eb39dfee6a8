/* Source texts in line tables. The tables are read without their units: tables of version 5 are self-contained. */
#include "dwarf/impl.h"

#include <stdlib.h>

struct source_reader {
    struct sl_account account;
    struct dwarf_file file;
    struct dwarf_unit_header header; /* sizes of the current table */
    struct dwarf_unit unit;          /* for reading forms */
    struct sl_str *directories;
    size_t directory_count, directory_capacity;
    bool any; /* some table has texts */
    /* NULL in the first pass, which only sets `any` */
    bool (*found)(void *arg, const struct sl_file *file, struct sl_bytes text);
    void *arg;
};

struct source_entry {
    struct sl_str name, text;
    uint64_t directory;
};

/* Reads the fields of a directory or file. Several entries may share a source text, so the size of the text is charged for each. False if
 * a form is unknown or reaches past the end, or if the budget is used up. */
static bool dwarf_sources_read_entry(struct source_reader *s, struct sl_reader *r, const struct entry_format *formats,
                                     size_t count, struct source_entry *entry)
{
    *entry = (struct source_entry){.directory = 0};
    if (!sl_account_spend(&s->account, (uint32_t)count)) /* forms may take no bytes */
        return false;
    for (size_t i = 0; i < count; i++) {
        struct attribute a;
        if (!dwarf_read_form(r, &s->unit, formats[i].form, 0, &a))
            return false;
        switch (formats[i].content) {
        case DW_LNCT_path: entry->name = dwarf_text(&s->account, &s->unit, &a); break;
        case DW_LNCT_LLVM_source: entry->text = dwarf_whole_text(&s->unit, &a); break;
        case DW_LNCT_directory_index: entry->directory = a.value; break;
        }
    }
    /* one step for 64 bytes */
    return sl_account_spend(&s->account,
                            (uint32_t)(entry->text.size / 64 < UINT32_MAX ? entry->text.size / 64 : UINT32_MAX));
}

/* True if the files of a table have a field with their source text. */
static bool has_texts(const struct entry_format *formats, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (formats[i].content == DW_LNCT_LLVM_source)
            return true;
    return false;
}

/* Reads the list of directories. False if it is damaged: then the files cannot be found. */
static bool read_directories(struct source_reader *s, struct sl_reader *r)
{
    struct entry_format formats[MAX_FORMATS];
    struct source_entry entry;
    size_t format_count = dwarf_read_formats(r, formats);
    uint64_t count = sl_read_uleb(r);
    s->directory_count = 0;
    if (count > sl_reader_left(r) || (count && !format_count) ||
        !sl_grow(&s->directories, &s->directory_capacity, (size_t)count, sizeof *s->directories))
        return false;
    for (; s->directory_count < count; s->directory_count++) {
        if (!dwarf_sources_read_entry(s, r, formats, format_count, &entry))
            return false;
        s->directories[s->directory_count] = entry.name;
    }
    return true;
}

/* Passes each file of a table that has a source text to `found`; a damaged table yields the files before the damage. False to stop: `found`
 * returned false; or in the first pass (without `found`) the table has texts, which is all that pass wants to know. */
static bool dwarf_sources_read_files(struct source_reader *s, struct sl_reader *r)
{
    struct entry_format formats[MAX_FORMATS];
    struct source_entry entry;
    size_t format_count = dwarf_read_formats(r, formats);
    uint64_t count = sl_read_uleb(r);
    if (!has_texts(formats, format_count) || count > sl_reader_left(r))
        return true;
    if (!s->found) {
        s->any = true;
        return false;
    }
    for (uint64_t i = 0; i < count && dwarf_sources_read_entry(s, r, formats, format_count, &entry); i++) {
        if (!entry.text.size || !entry.name.size)
            continue;
        struct sl_file file = {.name = entry.name};
        if (s->directory_count)
            file.comp_dir = s->directories[0];
        if (entry.directory && entry.directory < s->directory_count) /* 0 is the compilation directory itself */
            file.directory = s->directories[entry.directory];
        if (!s->found(s->arg, &file, (struct sl_bytes){(const uint8_t *)entry.text.data, entry.text.size}))
            return false;
    }
    return true;
}

/* Reads the header fields between the table's length and its directories. False if the table is not of version 5, or is damaged. */
static bool read_head(struct source_reader *s, struct sl_reader *r)
{
    if (sl_read_u16(r) != 5)
        return false;
    s->header.address_size = sl_read_u8(r);
    sl_read_u8(r); /* size of a segment selector */
    uint64_t size = sl_read_uint(r, s->header.offset_size);
    if (size > sl_reader_left(r))
        return false;
    r->end = r->at + size;
    sl_reader_skip(r, 5); /* instruction length, operations, is_stmt, line base and range */
    uint8_t opcodes = sl_read_u8(r);
    sl_reader_skip(r, opcodes ? opcodes - 1u : 0); /* number of operands of each standard opcode; they count from 1 */
    return !r->failed;
}

/* Reads the tables one after the other. A table of another version, or a damaged one, is skipped by its length. */
static void read_tables(struct source_reader *s)
{
    struct sl_reader r = sl_reader(s->file.line, s->file.big_endian);
    while (sl_reader_left(&r) > 4) { /* a table is longer than its length field */
        s->header = (struct dwarf_unit_header){.version = 5, .offset_size = 4};
        uint64_t length = sl_read_u32(&r);
        if (length == 0xFFFFFFFF) {
            s->header.offset_size = 8;
            length = sl_read_u64(&r);
        }
        if (r.failed || length > sl_reader_left(&r))
            return;
        struct sl_reader table = r;
        table.end = r.at + length;
        r.at += length;
        if (read_head(s, &table) && read_directories(s, &table) && !dwarf_sources_read_files(s, &table))
            return;
    }
}

void sl_dwarf_sources(struct sl_object *object,
                      bool (*found)(void *arg, const struct sl_file *file, struct sl_bytes text), void *arg)
{
    struct source_reader s = {.account = {.budget = sl_object_budget(object)}, .arg = arg};
    sl_object_section(object, "debug_line", &s.file.line, NULL);
    s.file.big_endian = sl_object_info(object)->big_endian;
    s.unit = (struct dwarf_unit){.file = &s.file, .address_file = &s.file, .header = &s.header};
    read_tables(&s);
    if (s.any) { /* rare: only then inflate the other sections */
        sl_object_section(object, "debug_line_str", &s.file.line_str, NULL);
        sl_object_section(object, "debug_str", &s.file.str, NULL);
        s.found = found;
        read_tables(&s);
    }
    free(s.directories);
}
