/* Split DWARF: finds the full unit of a skeleton in a package (DWARF 5, 7.3.5; GNU version 2) or a .dwo file.
 *
 *     .debug_cu_index   header: version, columns, units, slots; u32 each (version 5: u16 and padding)
 *                       hash table: slots x u64 dwo id, slots x u32 row, from 1; 0 = free slot
 *                       columns x u32 section id, then units x columns x u32 offset, units x columns x u32 size */
#include "dwarf/impl.h"

/* HEADER_STEPS: cost of reading and keeping a unit header. MAX_TRIES: probes of the index per id; a third of its slots or more is free. */
enum { HEADER_STEPS = 4, MAX_TRIES = 128 };
enum { SECT_INFO = 1, SECT_ABBREV = 3, SECT_LINE = 4, SECT_STR_OFFSETS = 6, SECT_RNGLISTS = 8 };

struct contribution {
    uint32_t id;
    struct sl_bytes *section;
};

/* Returns the row of `dwo_id` in the package's index, counted from 1; 0 if absent, if the hash table is damaged, or if the budget is used
 * up (account.failed). The index is an open hash table of `slots` ids, then as many rows; the distance between probes comes from the id's
 * upper half (DWARF 5, 7.3.5.3). */
static uint32_t find_row(struct dwarf_worker *w, struct sl_reader *r, uint64_t dwo_id, uint32_t slots)
{
    if (!slots || (slots & (slots - 1)) || slots > sl_reader_left(r) / 12) /* 12: u64 id and u32 row */
        return 0;
    uint64_t mask = slots - 1, at = dwo_id & mask, step = ((dwo_id >> 32) & mask) | 1;
    size_t start = sl_reader_offset(r);
    for (uint32_t tries = 0; tries < MAX_TRIES && tries < slots && sl_account_spend(&w->account, 1);
         tries++, at = (at + step) & mask) {
        sl_reader_seek(r, start + at * 8);
        uint64_t signature = sl_read_u64(r);
        sl_reader_seek(r, start + (uint64_t)slots * 8 + at * 4);
        uint32_t row = sl_read_u32(r);
        if (signature == dwo_id && row)
            return row;
        if (!row)
            return 0;
    }
    return 0;
}

/* Cuts the sections of a package down to the parts that the unit `dwo_id` contributed. False if the package does not have the unit, or is
 * damaged. An id of 0 in `parts` stands for a section that this version does not have. */
static bool cut_package(struct dwarf_worker *w, struct dwarf_file *file, uint64_t dwo_id)
{
    struct sl_reader r = sl_reader(file->cu_index, file->big_endian);
    uint32_t version = sl_read_u32(&r);
    if (version != 2) { /* version 5: u16 and padding */
        sl_reader_seek(&r, 0);
        version = sl_read_u16(&r);
        sl_read_u16(&r);
    }
    uint32_t columns = sl_read_u32(&r), units = sl_read_u32(&r), slots = sl_read_u32(&r);
    if (r.failed || (version != 2 && version != 5) || columns > 16) /* a column is a section: there are 8 kinds */
        return false;
    size_t table = sl_reader_offset(&r);
    uint32_t row = find_row(w, &r, dwo_id, slots);
    if (!row || row > units)
        return false;
    struct contribution parts[] = {{SECT_INFO, &file->info},
                                   {SECT_ABBREV, &file->abbrev},
                                   {SECT_STR_OFFSETS, &file->str_offsets},
                                   {version == 5 ? SECT_RNGLISTS : 0, &file->rnglists}};
    uint64_t ids = table + (uint64_t)slots * 12, offsets = ids + (uint64_t)columns * 4;
    uint64_t sizes = offsets + (uint64_t)units * columns * 4;
    for (uint32_t column = 0; column < columns; column++) {
        uint64_t cell = ((uint64_t)(row - 1) * columns + column) * 4;
        struct sl_reader at = sl_reader(file->cu_index, file->big_endian);
        sl_reader_seek(&at, ids + column * 4);
        uint32_t id = sl_read_u32(&at);
        sl_reader_seek(&at, offsets + cell);
        uint32_t offset = sl_read_u32(&at);
        sl_reader_seek(&at, sizes + cell);
        uint32_t size = sl_read_u32(&at);
        if (at.failed)
            return false;
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (parts[i].id == id && id)
                *parts[i].section = sl_bytes_slice(*parts[i].section, offset, size, NULL);
    }
    return true;
}

/* Finds the header of the unit with the id; false if there is none. Headers of version 4 have no id, so the first unit is taken: the caller
 * compares the id of its root entry. */
static bool find_unit(struct dwarf_file *file, uint64_t dwo_id, const struct dwarf_unit_header **header)
{
    for (size_t i = 0; i < file->unit_count; i++) {
        const struct dwarf_unit_header *h = &file->units[i];
        bool match = h->version >= 5 ? h->type == DW_UT_split_compile && h->dwo_id == dwo_id : true;
        if (match) {
            *header = h;
            return true;
        }
    }
    return false;
}

bool dwarf_open_split(struct dwarf_reader *reader, struct dwarf_worker *w, const struct dwarf_unit *skeleton,
                      struct dwarf_file *file, struct sl_arena *arena, struct dwarf_unit *split)
{
    uint64_t id = skeleton->dwo_id;
    const struct dwarf_unit_header *header;
    size_t skipped = 0, most = 1; /* a package has one unit per id */
    *file = reader->dwp;
    if (!reader->has_dwp || !cut_package(w, file, id)) {
        most = SIZE_MAX;
        const struct sl_companions *c = reader->companions;
        struct sl_object *dwo =
            c && c->open_dwo ? c->open_dwo(c->arg, skeleton->comp_dir, skeleton->dwo_name, id) : NULL;
        if (!dwo)
            return false;
        *file = (struct dwarf_file){0};
        dwarf_file_open(file, dwo, true); /* true: sections with the suffix .dwo */
        dwarf_charge_to(reader, dwo);     /* work and memory for it count in the object's budget */
    }
    if (!dwarf_index_units(file, most, arena, &skipped))
        w->account.failed = true;
    /* Charged for each skeleton: many may share a file of many units. */
    if (w->account.failed || !sl_account_spend(&w->account, HEADER_STEPS * file->unit_count) ||
        !find_unit(file, id, &header))
        return false;
    *split = (struct dwarf_unit){
        .file = file,
        .header = header,
        .address_file = skeleton->file,
        .gnu_ranges_base = skeleton->gnu_ranges_base,
    };
    split->abbrevs = dwarf_abbrevs(w, file, header);
    dwarf_unit_bases(split);
    if (!split->abbrevs || !dwarf_read_root(w, split))
        return false;
    /* In version 4 the id is in the root entry. A file that was compiled again has another id. */
    if (header->version < 5 && split->dwo_id && id && split->dwo_id != id)
        return false;
    /* these members of a split unit are in its skeleton; they are set after dwarf_read_root(), which overwrites them */
    split->addr_base = skeleton->addr_base;
    split->low_pc = skeleton->low_pc;
    split->gnu_ranges_base = skeleton->gnu_ranges_base;
    return true;
}
