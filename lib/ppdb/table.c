/* Reads the look-up table of a Portable PDB in place. Every id and offset is checked where it is used. */
#include "ppdb/format.h"
#include "base/search.h"

/* ---- opening ---- */

/* Locates the sections by the sizes in the header `h`. False if they are not inside the file or are inconsistent. */
static bool open_sections(struct sl_ppdb_table *t, const uint8_t *h)
{
    const struct sl_bytes *sections = t->table.sections;
    /* in the order of the section ids, which begin with 1 */
    const uint64_t sizes[SECTION_ID_END - 1] = {
        (uint64_t)t->method_count * 4, /* offsets of the methods' points */
        (uint64_t)t->document_count * DOCUMENT_SIZE,
        /* offsets of the groups of names, and the end of the last group */
        (((uint64_t)t->document_count + SL_TABLE_GROUP - 1) / SL_TABLE_GROUP + 1) * 4,
        sl_table_u32(h + AT_NAMES_SIZE),
        sl_table_u32(h + AT_POINTS_SIZE),
        (uint64_t)t->source_count * SOURCE_SIZE,
        sl_table_u32(h + AT_LINKS_SIZE),
    };
    return sl_table_locate_sections(&t->table, sizes, SECTION_ID_END - 1) &&
           sl_table_strings(sections[SECTION_GROUPS], sections[SECTION_NAMES], t->document_count, &t->names) &&
           sl_ppdb_links_open(sections[SECTION_LINKS], &t->links);
}

enum sl_code sl_ppdb_table_open(struct sl_bytes bytes, struct sl_ppdb_table *t, struct sl_error *error)
{
    const uint8_t *h = bytes.data;
    *t = (struct sl_ppdb_table){.method_count = 0};
    enum sl_code code = sl_table_open(bytes, &ppdb_table_format, &t->table, error);
    if (code != SL_OK)
        return code;
    memcpy(t->debug_id.uuid, h + AT_UUID, sizeof t->debug_id.uuid);
    t->debug_id.age = sl_table_u32(h + AT_AGE);
    t->method_count = sl_table_u32(h + AT_METHODS);
    t->document_count = sl_table_u32(h + AT_DOCUMENTS);
    t->source_count = sl_table_u32(h + AT_SOURCES);
    return open_sections(t, h) ? SL_OK
                               : sl_fail(error, SL_MALFORMED, "%s: the sections have other sizes than its header says",
                                         ppdb_table_format.name);
}

/* ---- points ---- */

/* A decoder of a run: a method's points are stored in runs of RUN_POINTS points, each readable on its own, so that a lookup decodes only
 * one run. */
struct ppdb_point_run {
    struct sl_reader r;
    uint64_t left;                      /* points not yet decoded */
    uint32_t il_offset, document, line; /* of the last decoded point */
    bool begun;                         /* the first point is decoded */
};

/* Decodes the next point of a run of points (format.h). False at the end and if the file is damaged. Sums of a damaged file wrap around at
 * 32 bits: they are wrong, but harmless. */
static bool next_point(struct ppdb_point_run *run)
{
    struct sl_reader *r = &run->r;
    if (!run->left || r->failed)
        return false;
    run->left--;
    if (!run->begun) {
        run->begun = true;
        run->il_offset = (uint32_t)sl_read_uleb(r);
        run->document = (uint32_t)sl_read_uleb(r);
        run->line = (uint32_t)sl_read_uleb(r);
        return !r->failed;
    }
    run->il_offset += (uint32_t)sl_read_uleb(r);
    uint64_t line = sl_read_uleb(r);
    if (line == 0) { /* another document follows, then the line */
        run->document = (uint32_t)sl_read_uleb(r);
        line = sl_read_uleb(r);
    }
    r->failed |= line == 0; /* no second document may follow the first */
    line--;                 /* the difference is stored plus 1 */
    run->line += (uint32_t)sl_unzigzag(line);
    return !r->failed;
}

/* The points of one method: `restarts` has, for each run of points but the first, a u32 IL offset and the u32 position in `runs`. */
struct ppdb_table_block {
    struct sl_bytes restarts, runs;
    uint64_t point_count, run_count;
};

/* Finds the points of a method (methods count from 1), which are stored in runs of RUN_POINTS: their number, `restarts` (IL offset and
 * position of each run but the first) and the runs. False if it has none or they are damaged. */
static bool open_block(const struct sl_ppdb_table *t, uint32_t method, struct ppdb_table_block *block)
{
    if (method == 0 || method > t->method_count)
        return false;
    uint32_t offset = sl_table_u32(t->table.sections[SECTION_DIRECTORY].data + (size_t)(method - 1) * 4);
    struct sl_reader r = sl_reader(t->table.sections[SECTION_POINTS], false);
    sl_reader_seek(&r, offset);
    block->point_count = sl_read_uleb(&r);
    block->run_count = block->point_count / RUN_POINTS + (block->point_count % RUN_POINTS != 0);
    /* the number of runs is checked before it is multiplied, which could overflow */
    if (!offset || !block->point_count || block->run_count - 1 > sl_reader_left(&r) / RESTART_SIZE)
        return false;
    block->restarts = sl_read_bytes(&r, (block->run_count - 1) * RESTART_SIZE);
    block->runs = sl_read_bytes(&r, sl_reader_left(&r));
    return !r.failed;
}

/* Makes a decoder for the run of points with this index; the first run begins at 0, the others where `restarts` tells. */
static void open_run(const struct ppdb_table_block *block, uint64_t index, struct ppdb_point_run *run)
{
    uint64_t begin = index ? sl_table_u32(block->restarts.data + (index - 1) * RESTART_SIZE + 4) : 0;
    uint64_t left = block->point_count - index * RUN_POINTS;
    *run = (struct ppdb_point_run){.r = sl_reader(block->runs, false), .left = left < RUN_POINTS ? left : RUN_POINTS};
    sl_reader_seek(&run->r, begin);
}

/* Returns the index of the last run of points that begins at or before the IL offset; 0 if all begin after it. The first run has no entry
 * in `restarts`, so entry i belongs to run i + 1. */
static uint64_t find_run(const struct ppdb_table_block *block, uint32_t il_offset)
{
    return SL_PARTITION_POINT(middle, 0, block->run_count - 1,
                              sl_table_u32(block->restarts.data + middle * RESTART_SIZE) <= il_offset);
}

bool sl_ppdb_table_lookup(const struct sl_ppdb_table *t, uint32_t method, uint32_t il_offset,
                          struct sl_ppdb_location *location)
{
    struct ppdb_table_block block;
    struct ppdb_point_run run;
    bool found = false;
    /* clients send UINT32_MAX for an unknown offset */
    if (il_offset == UINT32_MAX || !open_block(t, method, &block))
        return false;
    open_run(&block, find_run(&block, il_offset), &run);
    while (next_point(&run) && run.il_offset <= il_offset) {
        *location = (struct sl_ppdb_location){run.document, run.line};
        found = true;
    }
    return found && location->document < t->document_count; /* in a damaged table it may be any number */
}

/* ---- documents ---- */

bool sl_ppdb_table_document(const struct sl_ppdb_table *t, uint32_t id, struct sl_ppdb_table_document *document)
{
    *document = (struct sl_ppdb_table_document){0};
    if (id >= t->document_count)
        return false;
    const uint8_t *at = t->table.sections[SECTION_DOCUMENTS].data + (size_t)id * DOCUMENT_SIZE;
    document->properties.language = at[0] <= SL_LANG_FSHARP ? (enum sl_language)at[0] : SL_LANG_UNKNOWN;
    document->embedded = at[1] & DOCUMENT_EMBEDDED;
    document->linked = at[1] & DOCUMENT_LINKED;
    document->properties.hash = at[2] <= SL_PPDB_HASH_SHA256 ? (enum sl_ppdb_hash)at[2] : SL_PPDB_HASH_NONE;
    memcpy(document->properties.digest, at + 4, sizeof document->properties.digest);
    return true;
}

void sl_ppdb_table_name(const struct sl_ppdb_table *t, uint32_t id, struct sl_buf *name)
{
    sl_table_string(&t->names, id, name);
}

/* True if the document has exactly this name; false for an id beyond the last. */
static bool is_named(const struct sl_ppdb_table *t, uint32_t id, struct sl_str wanted)
{
    return id < t->document_count && sl_table_string_is(&t->names, id, wanted);
}

bool sl_ppdb_table_find(const struct sl_ppdb_table *t, struct sl_str name, uint32_t *id)
{
    *id = sl_table_strings_before(&t->names, name); /* names are sorted, so the number of lesser ones is the id */
    return is_named(t, *id, name);
}

/* ---- sources ---- */

/* Reads an entry of the list of embedded sources. */
static void source_at(const struct sl_ppdb_table *t, uint32_t index, struct sl_ppdb_source *source)
{
    const uint8_t *at = t->table.sections[SECTION_SOURCES].data + (size_t)index * SOURCE_SIZE;
    *source = (struct sl_ppdb_source){
        .offset = sl_table_u64(at),
        .document = sl_table_u32(at + 8),
        .stored = sl_table_u32(at + 12),
        .size = sl_table_u32(at + 16),
        .deflated = sl_table_u32(at + 20) & SOURCE_DEFLATED,
    };
}

/* Finds the embedded source of a document by binary search: sources are sorted by document. False if it has none. */
static bool read_source(const struct sl_ppdb_table *t, uint32_t document, struct sl_ppdb_source *source)
{
    uint32_t low = 0, high = t->source_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        source_at(t, middle, source);
        if (source->document == document)
            return true;
        if (source->document < document)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* Documents may have equal names in different languages: tries those that follow in the order of names, too. */
bool sl_ppdb_table_source(const struct sl_ppdb_table *t, struct sl_str name, struct sl_ppdb_source *source)
{
    uint32_t id;
    if (!sl_ppdb_table_find(t, name, &id))
        return false;
    while (!read_source(t, id, source))
        if (!is_named(t, ++id, name))
            return false;
    return true;
}

/* ---- verifying ---- */

/* True if all points of the method can be decoded, have ascending IL offsets and refer to documents, and if each run of points begins with
 * the IL offset that `restarts` has for it. A method without points is valid. */
static bool verify_method(const struct sl_ppdb_table *t, uint32_t method)
{
    struct ppdb_table_block block;
    uint32_t last = 0;
    bool any = false;
    if (!sl_table_u32(t->table.sections[SECTION_DIRECTORY].data + (size_t)(method - 1) * 4))
        return true; /* offset 0: it has no points */
    if (!open_block(t, method, &block))
        return false;
    for (uint64_t i = 0; i < block.run_count; i++) {
        struct ppdb_point_run run;
        open_run(&block, i, &run);
        for (bool first = true; run.left; first = false) {
            if (!next_point(&run) || run.document >= t->document_count || (any && run.il_offset <= last) ||
                (first && i && run.il_offset != sl_table_u32(block.restarts.data + (i - 1) * RESTART_SIZE)))
                return false;
            last = run.il_offset;
            any = true;
        }
    }
    return true;
}

/* True if the embedded sources are sorted by document, with at most one for each. */
static bool verify_sources(const struct sl_ppdb_table *t)
{
    struct sl_ppdb_source source, last = {0};
    for (uint32_t i = 0; i < t->source_count; i++, last = source) {
        source_at(t, i, &source);
        if (source.document >= t->document_count || (i && source.document <= last.document))
            return false;
    }
    return true;
}

enum sl_code sl_ppdb_table_verify(const struct sl_ppdb_table *t, struct sl_error *error)
{
    for (uint32_t m = 1; m <= t->method_count; m++)
        if (!verify_method(t, m))
            return sl_fail(error, SL_MALFORMED, "look-up table of a portable PDB: invalid sequence points of method %u",
                           m);
    if (!sl_table_strings_sorted(&t->names))
        return sl_fail(error, SL_MALFORMED, "look-up table of a portable PDB: the names are not sorted");
    if (!verify_sources(t))
        return sl_fail(error, SL_MALFORMED, "look-up table of a portable PDB: invalid list of embedded sources");
    return SL_OK;
}
