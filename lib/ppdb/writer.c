/* Writes the look-up table of a Portable PDB. */
#include "ppdb/format.h"
#include "ppdb/impl.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/order.h"
#include "table/writer.h"

struct document {
    struct sl_ppdb_document properties;
    size_t name_offset, name_size; /* in writer.names */
    uint32_t row;
    uint8_t flags;
};

struct ppdb_table_entry { /* a visible point */
    uint32_t il_offset, document, line;
};

struct ppdb_table_writer {
    const struct sl_ppdb *ppdb;
    const struct sl_ppdb_info *info;
    struct sl_arena arena;
    struct sl_buf names; /* of all documents, concatenated */
    struct document *documents;
    size_t document_count;
    uint32_t *ids; /* id of a document by row - 1; UINT32_MAX = left out */
    struct ppdb_table_entry *entries;
    size_t entry_count, entry_capacity;
    uint32_t *directory;          /* per method: offset in `points`; 0 = it has no points */
    size_t method_count;          /* entries of `directory`, up to the last method with points */
    struct sl_buf runs, restarts; /* scratch for one method: its runs of points, and where they begin (format.h) */
    struct sl_buf points;         /* the section of points */
    struct sl_ppdb_source *sources;
    size_t source_count;
    struct sl_buf links;
    struct sl_account account; /* charged for blobs: rows may share them, so a small file can cause much work */
    size_t dropped;            /* documents and methods that could not be read completely */
};

/* Returns the error for a failure that the contents of the file do not explain: memory or budget has run out. */
static enum sl_code ppdb_writer_fail(const struct ppdb_table_writer *w, struct sl_error *error)
{
    return sl_budget_fail(w->ppdb->budget, error);
}

/* ---- documents ---- */

/* Orders documents by name, then language; equal ones by row, so that the first of them is kept. */
static int ppdb_writer_by_name(const void *a, const void *b, void *names)
{
    const struct document *x = a, *y = b;
    const char *text = names;
    int order = sl_str_compare((struct sl_str){text + x->name_offset, x->name_size},
                               (struct sl_str){text + y->name_offset, y->name_size});
    if (!order)
        order = (int)x->properties.language - (int)y->properties.language;
    return order ? order : x->row < y->row ? -1 : 1;
}

static struct sl_str document_name(const struct ppdb_table_writer *w, const struct document *d)
{
    return w->names.data ? (struct sl_str){(const char *)w->names.data + d->name_offset, d->name_size} : SL_STR("");
}

/* True if the documents have the same name and language, and so get one id. */
static bool same_file(const struct ppdb_table_writer *w, const struct document *a, const struct document *b)
{
    return a->properties.language == b->properties.language && sl_str_equal(document_name(w, a), document_name(w, b));
}

/* Reads all documents; those with damaged names are left out and counted in w->dropped. */
static enum sl_code ppdb_writer_read_documents(struct ppdb_table_writer *w, struct sl_error *error)
{
    for (uint32_t row = 1; row <= w->info->document_count; row++) {
        struct document *d = &w->documents[w->document_count];
        *d = (struct document){.name_offset = w->names.size, .row = row};
        enum sl_code code = sl_ppdb_document(w->ppdb, row, &d->properties, &w->names, NULL);
        uint32_t work = d->properties.work;
        if (code != SL_OK) { /* damaged; or out of memory, which w->names.failed tells below */
            w->dropped++;
        } else {
            d->name_size = w->names.size - d->name_offset;
            w->document_count++;
        }
        if (w->names.failed || !sl_account_spend(&w->account, work))
            return ppdb_writer_fail(w, error);
    }
    return SL_OK;
}

/* Sorts the documents, keeps one of those with equal names and languages, and sets w->ids: the index that each row got. */
static void number_documents(struct ppdb_table_writer *w)
{
    size_t kept = 0;
    if (w->document_count)
        qsort_r(w->documents, w->document_count, sizeof *w->documents, ppdb_writer_by_name,
                w->names.data ? w->names.data
                              : (void *)""); /* NULL if all names are empty: no offset may be added to it */
    for (uint32_t i = 0; i < w->info->document_count; i++)
        w->ids[i] = UINT32_MAX; /* left out: its name is damaged */
    for (size_t i = 0; i < w->document_count; i++) {
        if (!kept || !same_file(w, &w->documents[kept - 1], &w->documents[i]))
            w->documents[kept++] = w->documents[i];
        w->ids[w->documents[i].row - 1] = (uint32_t)(kept - 1);
    }
    w->document_count = kept;
}

/* Reads all documents and gives them ids. */
static enum sl_code collect_documents(struct ppdb_table_writer *w, struct sl_error *error)
{
    w->documents = SL_ARENA_ARRAY(&w->arena, struct document, (size_t)w->info->document_count + 1);
    w->ids = SL_ARENA_ARRAY(&w->arena, uint32_t, (size_t)w->info->document_count + 1);
    if (!w->documents || !w->ids)
        return ppdb_writer_fail(w, error);
    enum sl_code code = ppdb_writer_read_documents(w, error);
    if (code == SL_OK)
        number_documents(w);
    return code;
}

/* ---- points ---- */

/* Adds a visible point. Of points at one IL offset only the last is used. False when out of memory. */
static bool add_entry(struct ppdb_table_writer *w, struct ppdb_table_entry entry)
{
    if (w->entry_count && w->entries[w->entry_count - 1].il_offset == entry.il_offset)
        w->entry_count--;
    if (!sl_grow_in_arena(&w->arena, &w->entries, &w->entry_capacity, w->entry_count + 1, sizeof *w->entries))
        return false;
    w->entries[w->entry_count++] = entry;
    return true;
}

/* Collects the visible points of a method in w->entries, up to the first one that is damaged or in a document that could not be read: such
 * a method is counted in w->dropped. */
static enum sl_code collect_points(struct ppdb_table_writer *w, uint32_t method, struct sl_error *error)
{
    struct sl_ppdb_points points;
    struct sl_ppdb_point point;
    sl_ppdb_points_begin(w->ppdb, method, &points);
    w->entry_count = 0;
    if (!sl_account_spend(&w->account, (uint32_t)sl_reader_left(&points.blob) + 1))
        return ppdb_writer_fail(w, error);
    while (sl_ppdb_points_next(&points, &point)) {
        if (point.hidden)
            continue;
        uint32_t row = point.document;
        uint32_t id = row && row <= w->info->document_count ? w->ids[row - 1] : UINT32_MAX;
        if (id == UINT32_MAX) {
            points.failed = true;
            break;
        }
        if (!add_entry(w, (struct ppdb_table_entry){point.il_offset, id, point.line}))
            return ppdb_writer_fail(w, error);
    }
    w->dropped += points.failed;
    return SL_OK;
}

/* Appends a run of points (format.h). The first point has full values, the others differences to the point before. A 0 in the place of a
 * line announces another document: differences of lines are stored plus 1, so none is 0. */
static void encode_run(const struct ppdb_table_entry *entries, size_t count, struct sl_buf *out)
{
    sl_buf_uleb(out, entries[0].il_offset);
    sl_buf_uleb(out, entries[0].document);
    sl_buf_uleb(out, entries[0].line);
    for (size_t i = 1; i < count; i++) {
        sl_buf_uleb(out, entries[i].il_offset - entries[i - 1].il_offset);
        if (entries[i].document != entries[i - 1].document) {
            sl_buf_u8(out, 0);
            sl_buf_uleb(out, entries[i].document);
        }
        sl_buf_uleb(out, sl_zigzag((int64_t)entries[i].line - entries[i - 1].line) + 1);
    }
}

/* Appends the block of a method to w->points (format.h): the number of its points, where each run of points but the first begins, and the
 * runs. */
static void encode_method(struct ppdb_table_writer *w)
{
    sl_buf_clear(&w->runs);
    sl_buf_clear(&w->restarts);
    for (size_t i = 0; i < w->entry_count; i += RUN_POINTS) {
        size_t left = w->entry_count - i;
        if (i) {
            sl_buf_u32(&w->restarts, w->entries[i].il_offset);
            sl_buf_u32(&w->restarts, (uint32_t)w->runs.size);
        }
        encode_run(&w->entries[i], left < RUN_POINTS ? left : RUN_POINTS, &w->runs);
    }
    sl_buf_uleb(&w->points, w->entry_count);
    sl_buf_str(&w->points, sl_buf_view(&w->restarts));
    sl_buf_str(&w->points, sl_buf_view(&w->runs));
    w->points.failed |= w->runs.failed || w->restarts.failed;
}

/* Encodes the points of all methods, and stores each method's offset in w->directory, which ends at the last method with points. */
static enum sl_code collect_methods(struct ppdb_table_writer *w, struct sl_error *error)
{
    w->directory = SL_ARENA_ARRAY(&w->arena, uint32_t, (size_t)w->info->method_count + 1);
    if (!w->directory)
        return ppdb_writer_fail(w, error);
    /* so that no method is at offset 0, which stands for a method without points */
    sl_buf_u8(&w->points, 0);
    for (uint32_t m = 1; m <= w->info->method_count; m++) {
        enum sl_code code = collect_points(w, m, error);
        if (code != SL_OK)
            return code;
        if (!w->entry_count)
            continue;
        if (w->points.size > UINT32_MAX) /* the directory has u32 offsets */
            return sl_fail(error, SL_MALFORMED, "the portable PDB has too many sequence points for a look-up table");
        w->directory[m - 1] = (uint32_t)w->points.size;
        w->method_count = m;
        encode_method(w);
    }
    return SL_OK;
}

/* ---- sources ---- */

SL_ORDER_BY(by_document, struct sl_ppdb_source, document, offset)

/* Collects the embedded sources of the documents that were kept, sorted by document; of several for one document the first in the file is
 * used. */
static enum sl_code collect_sources(struct ppdb_table_writer *w, struct sl_error *error)
{
    struct sl_ppdb_source source;
    size_t count = 0, kept = 0;
    for (uint32_t cursor = 0; sl_ppdb_next_source(w->ppdb, &cursor, &source);)
        count++;
    w->sources = SL_ARENA_ARRAY(&w->arena, struct sl_ppdb_source, count + 1);
    if (!w->sources)
        return ppdb_writer_fail(w, error);
    count = 0;
    for (uint32_t cursor = 0; sl_ppdb_next_source(w->ppdb, &cursor, &source);) {
        source.document = w->ids[source.document - 1];
        if (source.document != UINT32_MAX)
            w->sources[count++] = source;
    }
    if (count)
        qsort(w->sources, count, sizeof *w->sources, by_document);
    for (size_t i = 0; i < count; i++)
        if (!kept || w->sources[kept - 1].document != w->sources[i].document)
            w->sources[kept++] = w->sources[i];
    w->source_count = kept;
    return SL_OK;
}

/* Marks the documents whose text is embedded, or that a Source Link rule matches. False when the budget is exhausted. */
static bool flag_documents(struct ppdb_table_writer *w)
{
    struct sl_ppdb_links links;
    sl_ppdb_links_open(sl_buf_bytes(&w->links), &links); /* valid, as sl_ppdb_read_links() has just written them */
    for (size_t i = 0; i < w->source_count; i++)
        w->documents[w->sources[i].document].flags |= DOCUMENT_EMBEDDED;
    for (size_t i = 0; i < w->document_count; i++) {
        if (!sl_account_spend(&w->account, (uint32_t)w->documents[i].name_size + 1))
            return false;
        if (sl_ppdb_links_resolve(&links, document_name(w, &w->documents[i]), NULL))
            w->documents[i].flags |= DOCUMENT_LINKED;
    }
    return true;
}

/* ---- the file ---- */

/* Appends the section of documents; their names are in a section of their own. */
static void put_documents(const struct ppdb_table_writer *w, struct sl_buf *out)
{
    for (size_t i = 0; i < w->document_count; i++) {
        const struct document *d = &w->documents[i];
        sl_buf_u8(out, (uint8_t)d->properties.language);
        sl_buf_u8(out, d->flags);
        sl_buf_u8(out, (uint8_t)d->properties.hash);
        sl_buf_u8(out, 0); /* reserved */
        sl_buf_add(out, d->properties.digest, sizeof d->properties.digest);
    }
}

static struct sl_str get_name(const void *arg, size_t index)
{
    const struct ppdb_table_writer *w = arg;
    return document_name(w, &w->documents[index]);
}

/* Appends the section of embedded sources: where in the Portable PDB the text of each is. */
static void put_sources(const struct ppdb_table_writer *w, struct sl_buf *out)
{
    for (size_t i = 0; i < w->source_count; i++) {
        const struct sl_ppdb_source *s = &w->sources[i];
        sl_buf_u64(out, s->offset);
        sl_buf_u32(out, s->document);
        sl_buf_u32(out, s->stored);
        sl_buf_u32(out, s->size);
        sl_buf_u32(out, s->deflated ? SOURCE_DEFLATED : 0);
    }
}

/* Writes the sections in their order in the file. */
static void put_sections(const struct ppdb_table_writer *w, struct sl_table_writer *t)
{
    struct sl_table_string_source names = {.get = get_name, .arg = w, .count = w->document_count};
    sl_table_section(t, SECTION_DIRECTORY);
    for (size_t i = 0; i < w->method_count; i++)
        sl_buf_u32(&t->file, w->directory[i]);
    sl_table_section(t, SECTION_DOCUMENTS);
    put_documents(w, &t->file);
    sl_table_add_strings(t, SECTION_NAMES, SECTION_GROUPS, &names);
    sl_table_section(t, SECTION_POINTS);
    sl_buf_str(&t->file, sl_buf_view(&w->points));
    sl_table_section(t, SECTION_SOURCES);
    put_sources(w, &t->file);
    sl_table_section(t, SECTION_LINKS);
    sl_buf_str(&t->file, sl_buf_view(&w->links));
}

/* Fills the header, which was left empty until the sizes were known. Dropped documents or methods make the table partial. */
static void put_header(const struct ppdb_table_writer *w, struct sl_table_writer *t)
{
    sl_table_put(t, AT_FLAGS, w->dropped ? FLAG_PARTIAL : 0, 4);
    memcpy(t->file.data + AT_UUID, w->info->debug_id.uuid, sizeof w->info->debug_id.uuid);
    sl_table_put(t, AT_AGE, w->info->debug_id.age, 4);
    sl_table_put(t, AT_METHODS, w->method_count, 4);
    sl_table_put(t, AT_DOCUMENTS, w->document_count, 4);
    sl_table_put(t, AT_NAMES_SIZE, t->sections[SECTION_NAMES - 1].size, 4);
    sl_table_put(t, AT_POINTS_SIZE, w->points.size, 4);
    sl_table_put(t, AT_SOURCES, w->source_count, 4);
    sl_table_put(t, AT_LINKS_SIZE, w->links.size, 4);
}

/* Appends the finished table to `out`. SL_MALFORMED if the size of a section does not fit into 32 bits; otherwise the error for memory or
 * budget that has run out. */
static enum sl_code put_table(const struct ppdb_table_writer *w, struct sl_buf *out, struct sl_error *error)
{
    struct sl_table_writer t;
    if (w->points.failed || w->links.failed || !sl_table_writer_init(&t, &ppdb_table_format, NULL, w->ppdb->budget))
        return ppdb_writer_fail(w, error);
    t.too_large = w->points.size > UINT32_MAX || w->links.size > UINT32_MAX;
    put_sections(w, &t);
    put_header(w, &t);
    if (sl_table_finish(&t, out))
        return SL_OK;
    return t.too_large ? sl_fail(error, SL_MALFORMED, "the portable PDB is too large for a look-up table")
                       : ppdb_writer_fail(w, error);
}

enum sl_code sl_ppdb_table_build(const struct sl_ppdb *ppdb, const struct sl_ppdb_info *info, struct sl_buf *out,
                                 size_t *dropped, struct sl_error *error)
{
    struct sl_budget *budget = ppdb->budget;
    struct ppdb_table_writer w = {.ppdb = ppdb, .info = info, .arena.budget = budget, .account.budget = budget};
    struct sl_buf *bufs[] = {&w.names, &w.runs, &w.restarts, &w.points, &w.links};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        bufs[i]->budget = budget;
    enum sl_code code = collect_documents(&w, error);
    if (code == SL_OK)
        code = collect_methods(&w, error);
    if (code == SL_OK)
        code = collect_sources(&w, error);
    if (code == SL_OK && sl_ppdb_read_links(ppdb, &w.links) != SL_OK)
        code = ppdb_writer_fail(&w, error);
    if (code == SL_OK) {
        code = flag_documents(&w) ? put_table(&w, out, error) : ppdb_writer_fail(&w, error);
    }
    if (dropped)
        *dropped = w.dropped;
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        sl_buf_free(bufs[i]);
    sl_arena_free(&w.arena);
    return code;
}
