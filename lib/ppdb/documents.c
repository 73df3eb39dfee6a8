/* Source documents (Portable PDB Format Specification v1.0, "Document Table" and "Document Name Blob"). */
#include "ppdb/impl.h"

enum document_column { DOCUMENT_NAME, DOCUMENT_HASH_ALGORITHM, DOCUMENT_HASH, DOCUMENT_LANGUAGE };

/* Languages and hash algorithms have GUIDs; both tables have them in stored byte order. */
static const struct {
    uint8_t guid[16];
    enum sl_language language;
} languages[] = {
    {{0xF8, 0x62, 0x51, 0x3F, 0xC6, 0x07, 0xD3, 0x11, 0x90, 0x53, 0x00, 0xC0, 0x4F, 0xA3, 0x02, 0xA1}, SL_LANG_CSHARP},
    {{0xB8, 0xD0, 0x12, 0x3A, 0x6C, 0xC2, 0xD0, 0x11, 0xB4, 0x42, 0x00, 0xA0, 0x24, 0x4A, 0x1D, 0xD2},
     SL_LANG_VISUALBASIC},
    {{0xC9, 0x38, 0x4F, 0xAB, 0xE6, 0xB6, 0xBA, 0x43, 0xBE, 0x3B, 0x58, 0x08, 0x0B, 0x2C, 0xCC, 0xE3}, SL_LANG_FSHARP},
};
static const struct {
    uint8_t guid[16];
    enum sl_ppdb_hash hash;
    uint8_t size;
} hashes[] = {
    {{0xEC, 0x16, 0x18, 0xFF, 0x5E, 0xAA, 0x10, 0x4D, 0x87, 0xF7, 0x6F, 0x49, 0x63, 0x83, 0x34, 0x60},
     SL_PPDB_HASH_SHA1,
     20},
    {{0x0F, 0xD0, 0x29, 0x88, 0xB8, 0x11, 0x13, 0x42, 0x87, 0x8B, 0x77, 0x0E, 0x85, 0x97, 0xAC, 0x16},
     SL_PPDB_HASH_SHA256,
     32},
};

static bool is_utf8(struct sl_bytes text)
{
    return sl_str_is_utf8((struct sl_str){(const char *)text.data, text.size});
}

static enum sl_code bad_name(struct sl_error *error)
{
    return sl_fail(error, SL_MALFORMED, "invalid document name");
}

/* Reads the separator of the parts of a name: one character, of up to four UTF-8 bytes. A NUL stands for no separator (empty). The caller
 * checks r->failed. */
static struct sl_bytes read_separator(struct sl_reader *r)
{
    uint8_t first = sl_read_u8(r);
    unsigned more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
    struct sl_bytes separator = {r->at - 1, 1 + more};
    if (first == 0)
        return (struct sl_bytes){NULL, 0};
    sl_reader_skip(r, more);
    return separator;
}

/* Appends the document's name to `name`, whose size was `start`: the blob is a separator and blob offsets of the parts. Adds the number of
 * parts and of bytes to `*work`, which the caller charges to a budget. SL_MALFORMED if a part is damaged or not UTF-8, or the name is too
 * long; SL_BUSY when out of memory. */
static enum sl_code add_parts(const struct sl_ppdb *ppdb, struct sl_bytes blob, struct sl_buf *name, size_t start,
                              uint32_t *work, struct sl_error *error)
{
    struct sl_reader r = sl_reader(blob, false);
    struct sl_bytes separator = read_separator(&r);
    if (r.failed || !is_utf8(separator))
        return bad_name(error);
    for (bool first = true; sl_reader_left(&r); first = false) {
        struct sl_bytes part = {NULL, 0};
        uint32_t offset = ppdb_read_unsigned(&r);
        enum sl_code code = r.failed ? bad_name(error) : ppdb_blob(ppdb, offset, &part, error);
        *work += 1;
        if (code != SL_OK)
            return code;
        if (!first && part.size + separator.size == 0)
            return bad_name(
                error); /* an empty part adds nothing to the name, so the limit of its length would not end a long list */
        if (part.size + separator.size > SL_PPDB_MAX_NAME - (name->size - start) || !is_utf8(part))
            return bad_name(error);
        if (!first)
            sl_buf_add(name, separator.data, separator.size);
        sl_buf_add(name, part.data, part.size);
        *work += (uint32_t)(separator.size + part.size);
    }
    return name->failed ? sl_fail(error, SL_BUSY, "out of memory") : SL_OK;
}

/* Returns the language with this GUID; SL_LANG_UNKNOWN for NULL and other GUIDs. */
static enum sl_language language_from_guid(const uint8_t *guid)
{
    for (size_t i = 0; guid && i < sizeof languages / sizeof *languages; i++)
        if (memcmp(guid, languages[i].guid, sizeof languages[i].guid) == 0)
            return languages[i].language;
    return SL_LANG_UNKNOWN;
}

/* Stores the digest of the source file if the GUID `algorithm` (NULL: none) is known and the digest has that algorithm's size; else the
 * document is left without one. */
static void read_hash(struct sl_ppdb_document *document, const uint8_t *algorithm, struct sl_bytes digest)
{
    for (size_t i = 0; algorithm && i < sizeof hashes / sizeof *hashes; i++)
        if (memcmp(algorithm, hashes[i].guid, sizeof hashes[i].guid) == 0 && digest.size == hashes[i].size) {
            document->hash = hashes[i].hash;
            memcpy(document->digest, digest.data, digest.size);
        }
}

enum sl_code sl_ppdb_document(const struct sl_ppdb *ppdb, uint32_t row, struct sl_ppdb_document *document,
                              struct sl_buf *name, struct sl_error *error)
{
    uint64_t values[MAX_COLUMNS];
    struct sl_bytes blob;
    size_t start = name->size;
    *document = (struct sl_ppdb_document){.work = 1};
    if (!ppdb_row(ppdb, TABLE_DOCUMENT, row, values))
        return sl_fail(error, SL_MALFORMED, "row index %u is out of bounds for table Document", row);
    enum sl_code code = ppdb_blob(ppdb, values[DOCUMENT_NAME], &blob, error);
    if (code == SL_OK && (blob.size == 0 || blob.size > SL_PPDB_MAX_NAME))
        code = bad_name(error);
    if (code == SL_OK)
        code = add_parts(ppdb, blob, name, start, &document->work, error);
    if (code != SL_OK) {
        name->size = start;
        return code;
    }
    document->language = language_from_guid(ppdb_guid(ppdb, values[DOCUMENT_LANGUAGE]));
    if (ppdb_blob(ppdb, values[DOCUMENT_HASH], &blob, NULL) == SL_OK)
        read_hash(document, ppdb_guid(ppdb, values[DOCUMENT_HASH_ALGORITHM]), blob);
    return SL_OK;
}
