/* Opens a Portable PDB: the metadata root and its streams (ECMA-335, II.24.2.1), identity and counts. Errors in this folder have the words of
 * the Rust crate symbolic-ppdb, which clients of Symbolicator may compare. */
#include "ppdb/impl.h"

enum { ID_SIZE = 20, MAX_STREAM_NAME = 32 };

struct streams {
    struct sl_bytes pdb, tables, guids, blobs;
    bool has_pdb, has_tables, has_guids, has_blobs;
};

/* Stores a stream by its name; streams with other names are not needed. `#-` is the unoptimised form of `#~`. */
static void store_stream(struct streams *streams, struct sl_str name, struct sl_bytes bytes)
{
    const struct {
        struct sl_str name;
        struct sl_bytes *bytes;
        bool *has;
    } known[] = {
        {SL_STR("#Pdb"), &streams->pdb, &streams->has_pdb},
        {SL_STR("#~"), &streams->tables, &streams->has_tables},
        {SL_STR("#-"), &streams->tables, &streams->has_tables},
        {SL_STR("#GUID"), &streams->guids, &streams->has_guids},
        {SL_STR("#Blob"), &streams->blobs, &streams->has_blobs},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (sl_str_equal(known[i].name, name)) {
            *known[i].bytes = bytes;
            *known[i].has = true;
        }
}

/* Reads the header of a metadata stream, and stores the stream's bytes if a stream of this name is needed. SL_MALFORMED if the header or
 * the stream is not inside the file. */
static enum sl_code read_stream_header(struct sl_bytes file, struct sl_reader *r, struct streams *streams,
                                       struct sl_error *error)
{
    uint32_t offset = sl_read_u32(r), size = sl_read_u32(r);
    if (r->failed)
        return sl_fail(error, SL_MALFORMED, "invalid stream header");
    struct sl_str name = sl_read_cstr(r);
    if (r->failed || name.size > MAX_STREAM_NAME)
        return sl_fail(error, SL_MALFORMED, "invalid stream name");
    sl_reader_skip(r, 3 - name.size % 4); /* name and NUL fill multiples of four */
    bool inside;
    struct sl_bytes bytes = sl_bytes_slice(file, offset, size, &inside);
    if (r->failed || !inside)
        return sl_fail(error, SL_MALFORMED, "invalid stream header");
    store_stream(streams, name, bytes);
    return SL_OK;
}

/* Reads the metadata root: the signature, and the list of streams. */
static enum sl_code read_root(struct sl_bytes file, struct streams *streams, struct sl_error *error)
{
    struct sl_reader r = sl_reader(file, false);
    uint32_t signature = sl_read_u32(&r);
    if (r.failed)
        return sl_fail(error, SL_MALFORMED, "invalid header");
    if (signature != 0x424A5342) /* "BSJB" */
        return sl_fail(error, SL_MALFORMED, "invalid signature");
    sl_reader_skip(&r, 8);               /* version of the format, reserved */
    sl_reader_skip(&r, sl_read_u32(&r)); /* version, as text */
    sl_reader_skip(&r, 2);               /* flags */
    uint16_t count = sl_read_u16(&r);
    if (r.failed)
        return sl_fail(error, SL_MALFORMED, "invalid length");
    for (uint16_t i = 0; i < count; i++) {
        enum sl_code code = read_stream_header(file, &r, streams, error);
        if (code != SL_OK)
            return code;
    }
    return SL_OK;
}

/* Makes a debug id of the id in a #Pdb stream: a GUID, and four bytes that become the age. */
static struct sl_debug_id parse_id(const uint8_t bytes[ID_SIZE])
{
    /* The GUID's first three fields are stored little-endian; struct sl_debug_id has text order. */
    static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    struct sl_debug_id id = {0};
    for (size_t i = 0; i < sizeof order; i++)
        id.uuid[i] = bytes[order[i]];
    for (unsigned i = 0; i < 4; i++)
        id.age |= (uint32_t)bytes[16 + i] << (8 * i);
    return id;
}

/* Reads the id, and the row counts of the tables that are in the assembly, not in this file: they determine the widths of indexes. */
static enum sl_code read_pdb_stream(struct sl_ppdb *ppdb, struct sl_bytes stream, struct sl_ppdb_info *info,
                                    struct sl_error *error)
{
    struct sl_reader r = sl_reader(stream, false);
    const uint8_t *id = sl_read_bytes(&r, ID_SIZE).data;
    sl_reader_skip(&r, 4);           /* entry point */
    uint64_t mask = sl_read_u64(&r); /* bit t: table t is in the assembly, and its row count follows */
    for (unsigned t = 0; t < TABLE_COUNT; t++)
        if (mask >> t & 1)
            ppdb->referenced[t] = sl_read_u32(&r);
    if (r.failed)
        return sl_fail(error, SL_MALFORMED, "invalid length");
    info->debug_id = parse_id(id);
    info->id_offset = (uint64_t)(id - ppdb->bytes.data);
    return SL_OK;
}

/* Sets info->has_sources: the file has an embedded source, or Source Link rules and documents. Without documents there is no path that the
 * rules could match. SL_BUSY if memory or budget runs out. */
static enum sl_code find_sources(const struct sl_ppdb *ppdb, struct sl_ppdb_info *info)
{
    uint32_t cursor = 0;
    struct sl_ppdb_source source;
    info->has_sources = sl_ppdb_next_source(ppdb, &cursor, &source);
    if (info->has_sources || !info->document_count)
        return SL_OK;
    struct sl_buf links = {.budget = ppdb->budget};
    enum sl_code code = sl_ppdb_read_links(ppdb, &links);
    info->has_sources = links.size != 0;
    sl_buf_free(&links);
    return code;
}

enum sl_code sl_ppdb_open(struct sl_bytes bytes, struct sl_arena *arena, struct sl_ppdb **out,
                          struct sl_ppdb_info *info, struct sl_error *error)
{
    struct streams streams = {0};
    *out = NULL;
    *info = (struct sl_ppdb_info){.file_size = bytes.size};
    enum sl_code code = read_root(bytes, &streams, error);
    if (code != SL_OK)
        return code;
    if (!streams.has_tables)
        return sl_fail(error, SL_MALFORMED, "file does not contain a #~ stream");
    struct sl_ppdb *ppdb = SL_ARENA_NEW(arena, struct sl_ppdb);
    if (!ppdb)
        return sl_fail(error, SL_BUSY, "out of memory");
    ppdb->bytes = bytes;
    ppdb->budget = arena->budget;
    ppdb->guids = streams.guids;
    ppdb->blobs = streams.blobs;
    /* The widths of indexes depend on the counts in #Pdb, whichever stream comes first. */
    code = streams.has_pdb ? read_pdb_stream(ppdb, streams.pdb, info, error) : SL_OK;
    if (code == SL_OK)
        code = ppdb_read_tables(ppdb, streams.tables, error);
    if (code != SL_OK)
        return code;
    info->document_count = ppdb->tables[TABLE_DOCUMENT].count;
    info->method_count = ppdb->tables[TABLE_METHOD_DEBUG_INFORMATION].count;
    if (info->document_count && !streams.has_guids)
        return sl_fail(error, SL_MALFORMED, "file does not contain a #Guid stream");
    if ((info->document_count || info->method_count) && !streams.has_blobs)
        return sl_fail(error, SL_MALFORMED, "file does not contain a #Blob stream");
    if (find_sources(ppdb, info) != SL_OK)
        return sl_budget_fail(ppdb->budget, error);
    *out = ppdb;
    return SL_OK;
}
