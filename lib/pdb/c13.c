/* The line information of a module ("C13"): subsections with code ranges and their lines, source files, and the source locations of
 * inlined functions.
 *
 *     lines     (0xF2): offset u32, section u16, flags u16, size u32, then blocks, each with successive lines of one file
 *     checksums (0xF4): name u32, size u8, kind u8, bytes, padding to 4; a file is the offset of its record
 *     inlinees  (0xF6): id u32, file u32, line u32 */
#include "pdb/impl.h"

#include "base/account.h"
#include "base/order.h"
#include "base/search.h"

#include <stdlib.h>

/* Lines HIDDEN_LINE and HIDDEN_LINE_2 mark code without a source line. IGNORE: the bit of a kind that tells readers to skip the
 * subsection. */
enum { HIDDEN_LINE = 0xFEEFEE, HIDDEN_LINE_2 = 0xF00F00, LINE_MASK = 0xFFFFFF, HAS_COLUMNS = 1, IGNORE = 0x80000000 };
enum { STEPS_PER_COPY = 48 }; /* steps of work for a copied line, including what readers do with it later */

/* Reads the next subsection, kind u32, size u32, data, padding to 4; skips those with the flag IGNORE. False at the end and at a damaged
 * one. */
bool c13_next(struct sl_reader *r, uint32_t *kind, struct sl_bytes *data)
{
    while (sl_reader_left(r) >= 8) {
        *kind = sl_read_u32(r);
        *data = sl_read_bytes(r, sl_read_u32(r));
        if (r->failed)
            return false;
        uint64_t padding = -(uint64_t)data->size & 3;
        sl_reader_skip(r, padding < sl_reader_left(r) ? padding : sl_reader_left(r));
        if (!(*kind & IGNORE))
            return true;
    }
    return false;
}

/* ---- building the tables ---- */

/* Upper bounds of the numbers of records, to allocate the arrays once. */
struct c13_counts {
    size_t sections, files, inlinees;
};

/* Adds a lines subsection to the table; one that is too short is ignored. Its lines are only read when a function needs them
 * (convert_section). */
static void read_line_section(struct pdb_line_table *t, struct sl_bytes data)
{
    struct sl_reader r = sl_reader(data, false);
    struct line_section s = {.order = (uint32_t)t->section_count};
    s.offset = sl_read_u32(&r);
    s.section = sl_read_u16(&r);
    s.columns = sl_read_u16(&r) & HAS_COLUMNS;
    s.size = sl_read_u32(&r);
    s.blocks = sl_read_bytes(&r, sl_reader_left(&r));
    if (!r.failed)
        t->sections[t->section_count++] = s;
}

/* Reads the checksums subsection, which has a record for each source file. Lines and inlinees refer to a file by the offset of its
 * record. */
static void c13_read_files(struct pdb_line_table *t, struct sl_bytes data)
{
    struct sl_reader r = sl_reader(data, false);
    while (sl_reader_left(&r) >= 6) {
        uint32_t at = (uint32_t)sl_reader_offset(&r), name = sl_read_u32(&r);
        uint8_t size = sl_read_u8(&r);
        sl_read_u8(&r); /* kind of checksum */
        sl_reader_skip(&r, size);
        uint64_t padding = -(uint64_t)sl_reader_offset(&r) & 3;
        sl_reader_skip(&r, padding < sl_reader_left(&r) ? padding : sl_reader_left(&r));
        t->offsets[t->file_count].offset = at;
        struct sl_file *file = &t->files[t->file_count++];
        *file = (struct sl_file){.name = pdb_name(t->pdb, name, &t->account)};
    }
}

/* Reads the inlinees subsection: id, file and line of each inlined function. With signature 1 each record is followed by a list of extra
 * files, which is skipped. t->inlinees has room for all: line_table_open() has counted them. */
static void read_inlinees(struct pdb_line_table *t, struct sl_bytes data)
{
    struct sl_reader r = sl_reader(data, false);
    uint32_t signature = sl_read_u32(&r);
    while (signature <= 1 && sl_reader_left(&r) >= 12) {
        struct inlinee inlinee = {.order = (uint32_t)t->inlinee_count};
        inlinee.id = sl_read_u32(&r);
        inlinee.file = sl_read_u32(&r);
        inlinee.line = sl_read_u32(&r);
        if (signature == 1)
            sl_reader_skip(&r, (uint64_t)sl_read_u32(&r) * 4);
        if (r.failed)
            return;
        t->inlinees[t->inlinee_count++] = inlinee;
    }
}

SL_ORDER_BY(by_position, struct line_section, section, offset, order)

SL_ORDER_BY(by_id, struct inlinee, id, order)

/* Reads the subsections of a module: lines, source files (of the first checksums subsection), inlined functions and imports. A first loop
 * counts, a second one reads. The array `raw`, for lines that have no addresses yet, is kept from the module before, to save allocations.
 * False when out of memory. */
bool line_table_open(struct pdb_line_table *t, const struct sl_pdb *pdb, struct sl_bytes c13, struct sl_arena *arena)
{
    const struct pdb_line_table last = *t; /* as it was for the module before */
    struct c13_counts most = {0};
    struct sl_bytes data;
    uint32_t kind;
    *t = (struct pdb_line_table){
        .pdb = pdb, .arena = arena, .raw = last.raw, .raw_capacity = last.raw_capacity, .account = last.account};
    struct sl_reader r = sl_reader(c13, false);
    while (c13_next(&r, &kind, &data)) {
        most.sections += kind == C13_LINES;
        /* At least 6 bytes per file, 12 per inlined function. */
        most.files += kind == C13_CHECKSUMS && !most.files ? data.size / 6 : 0;
        most.inlinees += kind == C13_INLINEES ? data.size / 12 : 0;
    }
    t->sections = SL_ARENA_ARRAY(arena, struct line_section, most.sections + 1);
    t->offsets = SL_ARENA_ARRAY(arena, struct source_file, most.files + 1);
    t->files = SL_ARENA_ARRAY(arena, struct sl_file, most.files + 1);
    t->inlinees = SL_ARENA_ARRAY(arena, struct inlinee, most.inlinees + 1);
    if (!t->sections || !t->offsets || !t->files || !t->inlinees)
        return false;
    r = sl_reader(c13, false);
    while (c13_next(&r, &kind, &data)) {
        switch (kind) {
        case C13_LINES: read_line_section(t, data); break;
        case C13_CHECKSUMS:
            if (!t->file_count)
                c13_read_files(t, data);
            break;
        case C13_INLINEES: read_inlinees(t, data); break;
        case C13_IMPORTS: t->imports = data; break;
        default: break;
        }
    }
    qsort(t->sections, t->section_count, sizeof *t->sections, by_position);
    qsort(t->inlinees, t->inlinee_count, sizeof *t->inlinees, by_id);
    return true;
}

/* ---- lines ---- */

/* Converts the offset of a checksum record to an index in t->files; SL_NO_FILE if no record begins there. */
static uint32_t file_index(const struct pdb_line_table *t, uint32_t offset)
{
    size_t low = SL_PARTITION_POINT(middle, 0, t->file_count, t->offsets[middle].offset < offset);
    return low < t->file_count && t->offsets[low].offset == offset ? (uint32_t)low : SL_NO_FILE;
}

/* Appends a line to t->raw, the lines that are being read, and numbers it, so that a sort keeps lines at one address in file order. False
 * when out of memory, which is recorded for the whole PDB, because the lines read from it are incomplete then. */
bool raw_lines_add(struct pdb_line_table *t, struct raw_line line)
{
    if (!sl_account_grow(&t->account, &t->raw, &t->raw_capacity, t->raw_count + 1, sizeof *t->raw)) {
        *t->pdb->msf.no_memory = true;
        return false;
    }
    line.order = (uint32_t)t->raw_count;
    t->raw[t->raw_count++] = line;
    return true;
}

SL_ORDER_BY(by_offset, struct raw_line, offset, order)

/* Sorts t->raw, the lines that are being read, by offset. Most are sorted already, and checking is cheaper than qsort. */
static void sort_raw(struct pdb_line_table *t)
{
    bool sorted = true;
    for (size_t i = 1; i < t->raw_count && sorted; i++)
        sorted = t->raw[i - 1].offset <= t->raw[i].offset;
    if (!sorted)
        qsort(t->raw, t->raw_count, sizeof *t->raw, by_offset);
}

/* Merges adjacent lines with the same file and line number. Where two lines overlap, the second one loses the common part. Returns the new
 * number of lines. */
static uint32_t merge_lines(struct sl_line *lines, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct sl_line line = lines[i], *last = kept ? &lines[kept - 1] : NULL;
        uint64_t end = line.address + line.size, taken = last ? last->address + last->size : 0;
        if (end <= taken)
            continue;
        if (line.address < taken) {
            line.address = taken;
            line.size = end - taken;
        }
        if (last && line.address == taken && last->file == line.file && last->line == line.line)
            last->size += line.size;
        else
            lines[kept++] = line;
    }
    return kept;
}

/* Replaces the offsets in `section` of t->raw, the lines that are being read, by addresses and drops lines that are empty or
 * not in the image. Only for programs without OMAP, where the code of a line stays contiguous. */
static void map_lines(struct pdb_line_table *t, uint16_t section)
{
    size_t count = 0;
    for (size_t i = 0; i < t->raw_count; i++) {
        struct raw_line raw = t->raw[i];
        raw.order = (uint32_t)i; /* lines at one address stay in the present order */
        raw.offset = pdb_address(t->pdb, section, raw.offset);
        if (raw.offset != NOT_MAPPED && raw.size)
            t->raw[count++] = raw;
    }
    t->raw_count = count;
}

/* Replaces the offsets of t->raw, the lines that were read, by addresses. Only for programs with OMAP, which may have split the code of a
 * line: appends a raw line for each part of it, then removes the original lines from the front. False when out of memory or budget. */
static bool map_split_lines(struct pdb_line_table *t, uint16_t section)
{
    size_t count = t->raw_count;
    for (size_t i = 0; i < count; i++) {
        struct raw_line raw = t->raw[i];
        struct code_piece piece;
        struct code_pieces pieces = pdb_pieces(t->pdb, section, raw.offset, raw.size);
        while (pdb_next_piece(t->pdb, &pieces, &t->account, &piece)) {
            raw.offset = piece.address;
            raw.size = piece.size;
            if (!sl_account_spend(&t->account, STEPS_PER_COPY) || !raw_lines_add(t, raw))
                return false;
        }
    }
    t->raw_count -= count;
    if (t->raw_count)
        memmove(t->raw, t->raw + count, t->raw_count * sizeof *t->raw);
    return true;
}

/* Makes lines of t->raw, the lines that were read, whose offsets are in `section`: sorted by address, with equal lines merged, without
 * overlaps. False when out of memory or budget. */
bool raw_lines_convert(struct pdb_line_table *t, uint16_t section, struct sl_line **out, uint32_t *out_count)
{
    uint32_t last_file = 0, last_index = SL_NO_FILE;
    sort_raw(t); /* by offset: lines that get the same address stay in this order */
    if (!t->pdb->has_omap)
        map_lines(t, section);
    else if (!map_split_lines(t, section))
        return false;
    sort_raw(t); /* addresses may have another order than offsets */
    size_t count = t->raw_count;
    struct sl_line *lines = sl_arena_alloc(t->arena, count * sizeof *lines + 1, _Alignof(struct sl_line));
    if (!lines)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct raw_line *raw = &t->raw[i];
        if (last_index == SL_NO_FILE || raw->file != last_file) { /* most lines are in the file of the line before */
            last_file = raw->file;
            last_index = file_index(t, raw->file);
        }
        lines[i] = (struct sl_line){raw->offset, raw->size, last_index, raw->line};
    }
    *out = lines;
    *out_count = merge_lines(lines, (uint32_t)count);
    return true;
}

/* Reads a block of a lines subsection, which has lines of one file. Hidden lines are left out: their code then belongs to the line before.
 * Columns, which may follow the lines, are skipped. False when the block is malformed, or when out of memory. */
static bool read_block(struct pdb_line_table *t, const struct line_section *s, struct sl_reader *r)
{
    uint32_t file = sl_read_u32(r), count = sl_read_u32(r), size = sl_read_u32(r);
    uint64_t need =
        12 + (uint64_t)count * (s->columns ? 12 : 8); /* the three numbers; 8 bytes a line, 4 for its columns */
    if (r->failed || size < need || size - 12 > sl_reader_left(r))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t offset = sl_read_u32(r), line = sl_read_u32(r) & LINE_MASK, at;
        if (line == HIDDEN_LINE || line == HIDDEN_LINE_2 || __builtin_add_overflow(s->offset, offset, &at))
            continue;
        if (!raw_lines_add(t, (struct raw_line){.offset = at, .file = file, .line = line}))
            return false;
    }
    sl_reader_skip(r, size - 12 - (uint64_t)count * 8);
    return true;
}

/* Reads a lines subsection and converts it to lines with addresses (s->lines); called when the first function needs them. A line ends where
 * the next one begins, the last one at the end of the subsection. A malformed block ends the reading. False when out of memory. */
static bool convert_section(struct pdb_line_table *t, struct line_section *s)
{
    struct sl_reader r = sl_reader(s->blocks, false);
    uint32_t end;
    s->converted = true;
    t->raw_count = 0;
    while (sl_reader_left(&r) >= 12 && read_block(t, s, &r))
        continue;
    if (__builtin_add_overflow(s->offset, s->size, &end))
        end = UINT32_MAX;
    sort_raw(t);
    for (size_t i = 0; i < t->raw_count; i++) {
        uint32_t next = i + 1 < t->raw_count ? t->raw[i + 1].offset : end;
        t->raw[i].size = next > t->raw[i].offset ? next - t->raw[i].offset : 0;
    }
    return raw_lines_convert(t, s->section, &s->lines, &s->line_count);
}

/* Returns the number of lines subsections that begin before a position (section << 32 | offset). */
static size_t sections_before(const struct pdb_line_table *t, uint64_t position)
{
    const struct line_section *s = t->sections;
    return SL_PARTITION_POINT(i, 0, t->section_count, ((uint64_t)s[i].section << 32 | s[i].offset) < position);
}

/* Returns the lines subsection for a function: the last one that begins at or before its code; NULL if there is none in the section. If the
 * linker folded equal functions, several subsections begin at one address: each call for it returns the next one, because the functions
 * come in the same order. */
static struct line_section *find_section(struct pdb_line_table *t, uint16_t section, uint32_t offset)
{
    uint64_t position = (uint64_t)section << 32 | offset;
    size_t end = sections_before(t, position + 1);
    struct line_section *last = end ? &t->sections[end - 1] : NULL;
    if (!last || last->section != section)
        return NULL;
    if (last->offset != offset)
        return last;
    struct line_section *first = &t->sections[sections_before(t, position)];
    /* first->assigned: how many were returned by earlier calls; after all others `last` is returned again and again */
    return first->assigned < last - first ? first + first->assigned++ : last;
}

/* Copies the lines that overlap [begin, end) into the function, clipped to it. False when out of memory. If the budget is used up, the
 * function gets no lines, but the result is true: sl_pdb_status() then reports an error for the whole PDB. */
bool line_table_clip(struct pdb_line_table *t, const struct sl_line *all, size_t count, uint64_t begin, uint64_t end,
                     struct sl_function *f)
{
    f->lines = NULL;
    f->line_count = 0;
    size_t first = SL_PARTITION_POINT(middle, 0, count, all[middle].address + all[middle].size <= begin);
    /* binary searches, because many functions may be in one long list of lines */
    size_t last = SL_PARTITION_POINT(middle, first, count, all[middle].address < end);
    /* Copies are charged, because a crafted file may copy a line for any number of functions. Too many to charge: none are copied. */
    if (last == first || last - first > UINT32_MAX / STEPS_PER_COPY ||
        !sl_account_spend(&t->account, (uint32_t)(last - first) * STEPS_PER_COPY))
        return true;
    struct sl_line *lines = sl_arena_alloc(t->arena, (last - first) * sizeof *lines, _Alignof(struct sl_line));
    if (!lines)
        return false;
    memcpy(lines, all + first, (last - first) * sizeof *lines);
    if (lines[0].address < begin) {
        lines[0].size -= begin - lines[0].address;
        lines[0].address = begin;
    }
    struct sl_line *tail = &lines[last - first - 1];
    if (tail->address + tail->size > end)
        tail->size = end - tail->address;
    f->lines = lines;
    f->line_count = (uint32_t)(last - first);
    return true;
}

/* Sets the lines of each of the `count` contiguous parts (`pieces`) of the function at section:offset, by its lines subsection; none if
 * there is no such subsection. False when out of memory or budget. */
bool line_table_function(struct pdb_line_table *t, uint16_t section, uint32_t offset, struct sl_function *pieces,
                         size_t count)
{
    struct line_section *s = find_section(t, section, offset);
    if (s && !s->converted && !convert_section(t, s))
        return false;
    for (size_t i = 0; s && i < count; i++)
        if (!line_table_clip(t, s->lines, s->line_count, pieces[i].address, pieces[i].address + pieces[i].size,
                             &pieces[i]))
            return false;
    return true;
}

struct inlinee *line_table_inlinee(struct pdb_line_table *t, uint32_t id)
{
    /* index of the first record with a larger id: of several records with one id the last is valid */
    size_t low = SL_PARTITION_POINT(middle, 0, t->inlinee_count, t->inlinees[middle].id <= id);
    return low && t->inlinees[low - 1].id == id ? &t->inlinees[low - 1] : NULL;
}
