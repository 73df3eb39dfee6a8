/* Custom debug information: embedded sources and Source Link (Portable PDB Format Specification v1.0,
 * "CustomDebugInformation Table"). */
#include "ppdb/impl.h"

#include <zlib.h>

enum custom_column { CUSTOM_PARENT, CUSTOM_KIND, CUSTOM_VALUE };
enum { PARENT_TAG_BITS = 5, PARENT_MODULE = 7, PARENT_DOCUMENT = 22 };
/* Limits of the number and the size in bytes of Source Link blobs: compilers write one, but a hostile file may have many rows that share
 * one large blob. */
enum { MAX_LINK_BLOBS = 8, MAX_LINK_BLOB = 16 << 20 };
/* Limit in bytes of an embedded source that is stored without compression. */
static const uint64_t max_raw_source = UINT64_C(64) << 20;

/* GUIDs of the kinds of custom debug information, in stored byte order. */
static const uint8_t kinds[][16] = {
    [CUSTOM_EMBEDDED_SOURCE] = {0x1B, 0x57, 0x8A, 0x0E, 0x26, 0x69, 0x6E, 0x46, 0xB4, 0xAD, 0x8A, 0xB0, 0x46, 0x11,
                                0xF5, 0xFE},
    [CUSTOM_SOURCE_LINK] = {0x56, 0x05, 0x11, 0xCC, 0x91, 0xA0, 0x38, 0x4D, 0x9F, 0xEC, 0x25, 0xAB, 0x9A, 0x35, 0x1A,
                            0x6A},
};

/* `*row` is the last row that was returned, 0 to begin. A parent is a coded index: the lowest bits tell its table, the rest is a row. */
bool ppdb_next_custom(const struct sl_ppdb *ppdb, enum custom_kind kind, uint32_t *row, uint32_t *parent_tag,
                      uint32_t *parent, uint64_t *blob)
{
    uint64_t values[MAX_COLUMNS];
    while (ppdb_row(ppdb, TABLE_CUSTOM_DEBUG_INFORMATION, *row + 1, values)) {
        ++*row;
        const uint8_t *guid = ppdb_guid(ppdb, values[CUSTOM_KIND]);
        if (!guid || memcmp(guid, kinds[kind], sizeof kinds[kind]) != 0)
            continue;
        *parent_tag = (uint32_t)values[CUSTOM_PARENT] & ((1u << PARENT_TAG_BITS) - 1);
        *parent = (uint32_t)values[CUSTOM_PARENT] >> PARENT_TAG_BITS;
        *blob = values[CUSTOM_VALUE];
        return true;
    }
    return false;
}

/* ---- embedded sources ---- */

/* Describes an embedded source by the position of its bytes; nothing is inflated here. The blob begins with an i32: 0 if the bytes after it
 * are the text, else the size of the text, which is then stored deflated. False if the blob is damaged. */
static bool describe_source(const struct sl_ppdb *ppdb, uint64_t blob_offset, struct sl_ppdb_source *source)
{
    struct sl_bytes blob;
    if (ppdb_blob(ppdb, blob_offset, &blob, NULL) != SL_OK || blob.size < 4)
        return false;
    struct sl_reader r = sl_reader(blob, false);
    uint32_t format = sl_read_u32(&r);
    if (format > INT32_MAX) /* negative: no such format is defined */
        return false;
    source->offset = (uint64_t)(r.at - ppdb->bytes.data);
    source->stored = (uint32_t)sl_reader_left(&r);
    source->deflated = format != 0;
    source->size = format ? format : source->stored;
    return true;
}

bool sl_ppdb_next_source(const struct sl_ppdb *ppdb, uint32_t *cursor, struct sl_ppdb_source *source)
{
    uint32_t tag, parent;
    uint64_t blob;
    while (ppdb_next_custom(ppdb, CUSTOM_EMBEDDED_SOURCE, cursor, &tag, &parent, &blob)) {
        *source = (struct sl_ppdb_source){.document = parent};
        if (tag == PARENT_DOCUMENT && parent && parent <= ppdb->tables[TABLE_DOCUMENT].count &&
            describe_source(ppdb, blob, source))
            return true;
    }
    return false;
}

/* False if `stored` cannot inflate to `size` bytes, so that no memory is allocated for a false size. Deflate makes at most 258 bytes from
 * two bits (RFC 1951), which is 1032 from a byte; + 1 is a safety margin. */
static bool size_is_possible(struct sl_bytes stored, uint32_t size)
{
    return size <= ((uint64_t)stored.size + 1) * 1032;
}

/* Inflates a source to exactly `size` bytes in the arena. SL_MALFORMED if it is damaged or has another size; SL_BUSY when out of memory. */
static enum sl_code inflate_source(struct sl_bytes stored, uint32_t size, struct sl_arena *arena, struct sl_bytes *text,
                                   struct sl_error *error)
{
    if (!size_is_possible(stored, size))
        return sl_fail(error, SL_MALFORMED, "invalid length");
    uint8_t *out = sl_arena_alloc(arena, (size_t)size + 1, 1);
    z_stream z = {.next_in = (Bytef *)stored.data, .avail_in = (uInt)stored.size, .next_out = out};
    z.avail_out = (uInt)size + 1;                     /* one more byte, to detect excess output */
    if (!out || inflateInit2(&z, -MAX_WBITS) != Z_OK) /* negative: deflate data without a zlib header */
        return sl_fail(error, SL_BUSY, "out of memory");
    int status = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    if (status == Z_MEM_ERROR)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (status != Z_STREAM_END && status != Z_BUF_ERROR && status != Z_OK)
        return sl_fail(error, SL_MALFORMED, "invalid blob data");
    /* Z_BUF_ERROR, Z_OK: the input ended early, or there is more output than `size` */
    if (status != Z_STREAM_END || z.total_out != size)
        return sl_fail(error, SL_MALFORMED, "invalid length");
    *text = (struct sl_bytes){out, size};
    return SL_OK;
}

enum sl_code sl_ppdb_source_text(struct sl_bytes file, const struct sl_ppdb_source *source, uint64_t limit,
                                 struct sl_arena *arena, struct sl_bytes *text, struct sl_error *error)
{
    bool inside;
    struct sl_bytes stored = sl_bytes_slice(file, source->offset, source->stored, &inside);
    *text = (struct sl_bytes){NULL, 0};
    if (!inside)
        return sl_fail(error, SL_MALFORMED, "invalid blob data");
    /* the caller's limit is for inflated text, which takes memory; other text is a view of the file */
    if (source->size > (source->deflated ? limit : max_raw_source))
        return sl_fail(error, SL_MALFORMED, "embedded source file size (%u) exceeds maximum", source->size);
    if (source->deflated)
        return inflate_source(stored, source->size, arena, text, error);
    *text = stored;
    return SL_OK;
}

/* ---- Source Link ---- */

/* Merges the rules of all Source Link blobs of the module. Damaged blobs, and those beyond the limits, are ignored, so that the sources of
 * the others are found; only lack of memory or budget (SL_BUSY) is an error. */
enum sl_code sl_ppdb_read_links(const struct sl_ppdb *ppdb, struct sl_buf *links)
{
    struct sl_arena arena = {.budget = ppdb->budget};
    struct sl_ppdb_link *all = NULL;
    enum sl_code code = SL_OK;
    size_t count = 0;
    uint32_t row = 0, tag, parent;
    uint64_t offset;
    for (unsigned blobs = 0;
         code != SL_BUSY && ppdb_next_custom(ppdb, CUSTOM_SOURCE_LINK, &row, &tag, &parent, &offset);) {
        struct sl_bytes blob;
        struct sl_ppdb_link *rules;
        size_t more;
        if (tag != PARENT_MODULE || parent != 1) /* Source Link belongs to the only row of the Module table */
            continue;
        if (blobs++ == MAX_LINK_BLOBS) /* the rules of the first ones are used */
            break;
        if (ppdb_blob(ppdb, offset, &blob, NULL) != SL_OK || blob.size > MAX_LINK_BLOB)
            continue;
        if (!sl_budget_spend(ppdb->budget, blob.size)) {
            code = SL_BUSY;
            break;
        }
        code = sl_ppdb_links_parse((struct sl_str){(const char *)blob.data, blob.size}, &arena, &rules, &more, NULL);
        if (code != SL_OK || !more) /* damaged: the next blob is tried; SL_BUSY: the loop's condition ends it */
            continue;
        if (count + more > SL_PPDB_MAX_LINKS) /* the rules of the blobs before are used */
            break;
        struct sl_ppdb_link *merged = SL_ARENA_ARRAY(&arena, struct sl_ppdb_link, count + more);
        if (!merged) {
            code = SL_BUSY;
            break;
        }
        if (count)
            memcpy(merged, all, count * sizeof *all);
        memcpy(merged + count, rules, more * sizeof *rules);
        all = merged;
        count += more;
    }
    if (code != SL_BUSY)
        code = sl_ppdb_links_build(all, count, links, NULL);
    sl_arena_free(&arena);
    return code == SL_BUSY ? SL_BUSY : SL_OK;
}
