/* Reads and writes ZIP archives in memory. Section numbers are those of APPNOTE.TXT. */
#include "source/zip.h"

#include <stdlib.h>
#include <zlib.h>

enum {
    END_SIZE = 22,
    LOCATOR_SIZE = 20,
    ENTRY_SIZE = 46,
    LOCAL_SIZE = 30,
    MAX_COMMENT = 65535,      /* bytes of the comment after the end record, whose size is stored in 16 bits */
    STREAM_PIECE = 256 << 10, /* bytes passed to a sink at once */
    MADE_BY_UNIX = 3,
    MODE_LINK = 0xA,
};
static const uint32_t end_magic = 0x06054B50, end64_magic = 0x06064B50, locator_magic = 0x07064B50,
                      entry_magic = 0x02014B50, local_magic = 0x04034B50;

struct directory {
    uint64_t at, size, count; /* of the central directory: offset, bytes, entries */
};

static struct sl_reader reader_at(struct sl_bytes bytes, uint64_t offset)
{
    struct sl_reader r = sl_reader(bytes, false);
    sl_reader_seek(&r, offset);
    return r;
}

/* ---- the end record ---- */

/* Reads the ZIP64 end record into `d`. Its offset is in the locator, which directly precedes the end record at offset `end`; without a
 * locator there is no such record, and `d` is unchanged. */
static void read_end64(struct sl_bytes bytes, size_t end, size_t skip, struct directory *d)
{
    if (end < LOCATOR_SIZE)
        return;
    struct sl_reader r = reader_at(bytes, end - LOCATOR_SIZE);
    if (sl_read_u32(&r) != locator_magic)
        return;
    sl_read_u32(&r); /* disk */
    uint64_t at = sl_read_u64(&r);
    /* `skip` bytes precede the archive: offsets may be relative to the file or to the archive */
    const uint64_t offsets[] = {at, skip <= UINT64_MAX - at ? at + skip : at};
    for (size_t i = 0; i < 2; i++) {
        r = reader_at(bytes, offsets[i]);
        if (sl_read_u32(&r) != end64_magic)
            continue;
        sl_reader_skip(&r, 8 + 2 + 2 + 4 + 4 + 8); /* size of the record, versions, disks, entries on this disk */
        struct directory found = {.count = sl_read_u64(&r)};
        found.size = sl_read_u64(&r);
        found.at = sl_read_u64(&r);
        if (!r.failed)
            *d = found;
        return;
    }
}

/* Finds the end record and reads the position of the directory from it. Searches backwards, because a comment of unknown size may follow
 * the record. False if there is none. */
static bool find_end(struct sl_bytes bytes, size_t skip, struct directory *d)
{
    if (bytes.size < END_SIZE)
        return false;
    size_t last = bytes.size - END_SIZE, first = last > MAX_COMMENT ? last - MAX_COMMENT : 0;
    for (size_t at = last + 1; at-- > first;) {
        if (bytes.data[at] != 'P')
            continue;
        struct sl_reader r = reader_at(bytes, at);
        if (sl_read_u32(&r) != end_magic)
            continue;
        sl_reader_skip(&r, 2 + 2 + 2); /* disks, entries on this disk */
        d->count = sl_read_u16(&r);
        d->size = sl_read_u32(&r);
        d->at = sl_read_u32(&r);
        /* all ones: a number is too large for this record and is in the ZIP64 record */
        if (d->count == UINT16_MAX || d->size == UINT32_MAX || d->at == UINT32_MAX)
            read_end64(bytes, at, skip, d);
        return true;
    }
    return false;
}

/* ---- entries ---- */

/* Reads the ZIP64 extra field (APPNOTE.TXT 4.5.3), whose id is 1. A number that does not fit into the entry is all ones there, and the
 * field has it in 64 bits. It has only these numbers, always in the order size, packed size, offset. */
static void read_extra64(struct sl_reader extra, struct sl_zip_entry *entry)
{
    while (sl_reader_left(&extra) >= 4) {
        uint16_t id = sl_read_u16(&extra), size = sl_read_u16(&extra);
        struct sl_reader field = sl_reader(sl_read_bytes(&extra, size), false);
        if (id != 1)
            continue;
        if (entry->size == UINT32_MAX)
            entry->size = sl_read_u64(&field);
        if (entry->packed == UINT32_MAX)
            entry->packed = sl_read_u64(&field);
        if (entry->offset == UINT32_MAX)
            entry->offset = sl_read_u64(&field);
        return;
    }
}

/* Reads an entry of the directory; false if it is malformed. */
static bool zip_read_entry(struct sl_reader *r, struct sl_zip_entry *entry)
{
    if (sl_read_u32(r) != entry_magic)
        return false;
    uint16_t made_by = sl_read_u16(r);
    sl_reader_skip(r, 2); /* version needed */
    uint16_t flags = sl_read_u16(r);
    entry->method = sl_read_u16(r);
    sl_reader_skip(r, 2 + 2); /* time, date */
    entry->crc = sl_read_u32(r);
    entry->packed = sl_read_u32(r);
    entry->size = sl_read_u32(r);
    uint16_t name = sl_read_u16(r), extra = sl_read_u16(r), comment = sl_read_u16(r);
    sl_reader_skip(r, 2 + 2);             /* disk, internal attributes */
    uint32_t attributes = sl_read_u32(r); /* Unix: st_mode in the upper half */
    entry->is_link = made_by >> 8 == MADE_BY_UNIX && attributes >> 28 == MODE_LINK;
    entry->offset = sl_read_u32(r);
    struct sl_bytes text = sl_read_bytes(r, name);
    entry->name = (struct sl_str){(const char *)text.data, text.size};
    read_extra64(sl_reader(sl_read_bytes(r, extra), false), entry);
    sl_reader_skip(r, comment);
    if (flags & 1)
        entry->method = SL_ZIP_ENCRYPTED;
    return !r->failed;
}

/* Reads the central directory. `*zip` is set only if all entries could be read; SL_MALFORMED or SL_BUSY otherwise. */
static enum sl_code read_directory(struct sl_bytes bytes, const struct directory *d, struct sl_arena *arena,
                                   struct sl_zip *zip, struct sl_error *error)
{
    struct sl_reader r = reader_at(bytes, d->at);
    if (r.failed || d->count > sl_reader_left(&r) / ENTRY_SIZE || d->count > SL_ZIP_MAX_ENTRIES)
        return sl_fail(
            error, SL_MALFORMED,
            "malformed zip archive: its directory (%llu entries at offset %llu) is too large or not in the file",
            (unsigned long long)d->count, (unsigned long long)d->at);
    struct sl_zip found = {.bytes = bytes, .entries = SL_ARENA_ARRAY(arena, struct sl_zip_entry, d->count)};
    if (d->count && !found.entries)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (; found.count < d->count; found.count++) {
        size_t at = sl_reader_offset(&r);
        if (!zip_read_entry(&r, &found.entries[found.count]))
            return sl_fail(error, SL_MALFORMED, "malformed zip archive: the directory entry at offset %zu is damaged",
                           at);
    }
    *zip = found;
    return SL_OK;
}

enum sl_code sl_zip_open(struct sl_bytes bytes, size_t skip, struct sl_arena *arena, struct sl_zip *zip,
                         struct sl_error *error)
{
    struct directory d;
    *zip = (struct sl_zip){0};
    if (!find_end(bytes, skip, &d))
        return sl_fail(error, SL_MALFORMED, "malformed zip archive: no end record");
    enum sl_code code = read_directory(bytes, &d, arena, zip, error);
    /* second attempt: the offsets may not count the bytes in front of the archive */
    if (code == SL_MALFORMED && skip && skip <= bytes.size) {
        struct sl_bytes rest = {bytes.data + skip, bytes.size - skip};
        code = read_directory(rest, &d, arena, zip, error);
    }
    return code;
}

/* ---- contents ---- */

static enum sl_code bad_entry(const struct sl_zip_entry *entry, const char *what, struct sl_error *error)
{
    return sl_fail(error, SL_MALFORMED, "malformed zip archive: entry at offset %llu %s",
                   (unsigned long long)entry->offset, what);
}

/* Finds the compressed bytes of an entry, after its local header. The sizes in the local header are not used: they may be 0. False if there
 * is no local header or the bytes extend beyond the file. */
static bool packed_bytes(const struct sl_zip *zip, const struct sl_zip_entry *entry, struct sl_bytes *packed)
{
    struct sl_reader r = reader_at(zip->bytes, entry->offset);
    bool local = sl_read_u32(&r) == local_magic;
    sl_reader_skip(&r, LOCAL_SIZE - 4 - 4); /* up to the lengths of name and extra field */
    uint16_t name = sl_read_u16(&r), extra = sl_read_u16(&r);
    sl_reader_skip(&r, (uint64_t)name + extra);
    *packed = sl_read_bytes(&r, entry->packed);
    return local && !r.failed;
}

/* Inflates into `to`. SL_MALFORMED unless the result has exactly `size` bytes, SL_BUSY when out of memory; both without a message. */
static enum sl_code inflate_to(struct sl_bytes packed, uint8_t *to, size_t size)
{
    z_stream z = {0};
    uint8_t spare;
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return SL_BUSY;
    int status = Z_OK;
    size_t in = 0, out = 0;
    while (status == Z_OK) {
        uInt piece = packed.size - in > UINT32_MAX ? UINT32_MAX : (uInt)(packed.size - in);
        uInt space = size - out > UINT32_MAX ? UINT32_MAX : (uInt)(size - out);
        /* zlib needs valid pointers, and space for output to find the end of the stream; a byte that it writes to `spare` is beyond
         * `size` */
        z.next_in = (Bytef *)(piece ? packed.data + in : &spare);
        z.avail_in = piece;
        z.next_out = space ? to + out : &spare;
        z.avail_out = space ? space : 1;
        uInt before = z.avail_out;
        status = inflate(&z, Z_NO_FLUSH);
        in += piece - z.avail_in;
        if (!space && before != z.avail_out)
            status = Z_DATA_ERROR;
        out += space ? before - z.avail_out : 0;
    }
    inflateEnd(&z);
    if (status == Z_MEM_ERROR)
        return SL_BUSY;
    return status == Z_STREAM_END && out == size ? SL_OK : SL_MALFORMED;
}

static bool same_crc(const uint8_t *data, size_t size, uint32_t crc)
{
    return crc32_z(crc32_z(0, NULL, 0), data, size) == crc;
}

enum sl_code sl_zip_read(const struct sl_zip *zip, const struct sl_zip_entry *entry, uint64_t limit, struct sl_buf *out,
                         struct sl_error *error)
{
    /* The most that deflate can shrink data (zlib's technical details, "Maximum Compression Factor"): a larger size is a lie, so no memory
     * is reserved for it. */
    enum { MAX_FACTOR = 1032 };
    struct sl_bytes packed;
    if (entry->method != SL_ZIP_STORED && entry->method != SL_ZIP_DEFLATED)
        return bad_entry(entry, "is encrypted or has an unknown compression", error);
    if (entry->size > limit)
        return sl_fail(error, SL_UNSUPPORTED, "the source file exceeded the size limit");
    if (!packed_bytes(zip, entry, &packed))
        return bad_entry(entry, "has no local header or extends beyond the file", error);
    if (entry->size / MAX_FACTOR > packed.size || (entry->method == SL_ZIP_STORED && packed.size != entry->size))
        return bad_entry(entry, "does not have the size in its header", error);
    if (!sl_buf_reserve(out, entry->size + 1)) /* + 1: out->data must not be NULL for an empty entry */
        return sl_fail(error, SL_BUSY, "out of memory");
    uint8_t *to = out->data + out->size;
    enum sl_code code = entry->method == SL_ZIP_DEFLATED ? inflate_to(packed, to, entry->size) : SL_OK;
    if (code == SL_BUSY)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (code != SL_OK)
        return bad_entry(entry, "does not decompress to the size in its header", error);
    if (entry->method == SL_ZIP_STORED && entry->size)
        memcpy(to, packed.data, entry->size);
    if (!same_crc(to, entry->size, entry->crc))
        return bad_entry(entry, "has a wrong checksum", error);
    out->size += entry->size;
    return SL_OK;
}

enum sl_code sl_zip_packed(const struct sl_zip *zip, const struct sl_zip_entry *entry, struct sl_bytes *packed,
                           struct sl_error *error)
{
    if (!packed_bytes(zip, entry, packed))
        return bad_entry(entry, "has no local header or extends beyond the file", error);
    return SL_OK;
}

/* ---- contents in pieces ---- */

struct streaming {
    const struct sl_zip_sink *sink;
    uint64_t limit,
        size; /* uncompressed bytes: `limit`, of the whole entry according to the directory; `size`, passed so far */
    uint32_t crc; /* of the bytes passed so far */
};

/* Passes a piece to the sink; `used` is how many compressed bytes have been read. False: the sink wants no more. */
static bool pass_piece(struct streaming *s, struct sl_bytes piece, uint64_t used)
{
    s->size += piece.size;
    s->crc = (uint32_t)crc32_z(s->crc, piece.data, piece.size);
    return s->sink->take(s->sink->arg, piece, used);
}

/* Passes stored contents to the sink in pieces. SL_CANCELLED if the sink wants no more. */
static enum sl_code stream_stored(struct streaming *s, struct sl_bytes packed)
{
    for (size_t at = 0; at < packed.size;) {
        size_t size = packed.size - at < STREAM_PIECE ? packed.size - at : STREAM_PIECE;
        if (!pass_piece(s, (struct sl_bytes){packed.data + at, size}, at + size)) /* stored bytes used so far */
            return SL_CANCELLED;
        at += size;
    }
    return SL_OK;
}

/* The loop of stream_deflated(): inflates into `piece`, STREAM_PIECE bytes of memory, and passes it to the sink. SL_MALFORMED, without a
 * message, if the contents are damaged or longer than the directory says; SL_BUSY when out of memory; SL_CANCELLED if the sink wants no
 * more. */
static enum sl_code stream_inflated(struct streaming *s, z_stream *z, struct sl_bytes packed, uint8_t *piece,
                                    struct sl_error *error)
{
    int status = Z_OK;
    for (size_t in = 0; status == Z_OK;) {
        uInt given = packed.size - in > STREAM_PIECE ? STREAM_PIECE : (uInt)(packed.size - in);
        /* zlib refuses NULL, also at the end, where it reads nothing */
        z->next_in = (Bytef *)(given ? packed.data + in : piece);
        z->avail_in = given;
        z->next_out = piece;
        z->avail_out = STREAM_PIECE;
        status = inflate(z, Z_NO_FLUSH);
        if (status == Z_MEM_ERROR)
            return sl_fail(error, SL_BUSY, "out of memory");
        in += given - z->avail_in;
        struct sl_bytes made = {piece, STREAM_PIECE - z->avail_out};
        if ((status != Z_OK && status != Z_STREAM_END) || made.size > s->limit - s->size)
            return SL_MALFORMED;
        if (made.size && !pass_piece(s, made, in))
            return SL_CANCELLED;
    }
    return SL_OK;
}

/* Inflates deflated contents piece by piece and passes them to the sink. SL_MALFORMED, without a message, if they are damaged or too long;
 * SL_BUSY when out of memory; SL_CANCELLED if the sink wants no more. */
static enum sl_code stream_deflated(struct streaming *s, struct sl_bytes packed, struct sl_error *error)
{
    z_stream z = {0};
    uint8_t *piece = malloc(STREAM_PIECE);
    if (!piece || inflateInit2(&z, -MAX_WBITS) != Z_OK) {
        free(piece);
        return sl_fail(error, SL_BUSY, "out of memory");
    }
    enum sl_code code = stream_inflated(s, &z, packed, piece, error);
    inflateEnd(&z);
    free(piece);
    return code;
}

/* Size and checksum are known only at the end, when the sink has had all pieces. */
enum sl_code sl_zip_stream(const struct sl_zip *zip, const struct sl_zip_entry *entry, const struct sl_zip_sink *sink,
                           struct sl_error *error)
{
    struct streaming s = {.sink = sink, .limit = entry->size};
    struct sl_bytes packed;
    if (entry->method != SL_ZIP_STORED && entry->method != SL_ZIP_DEFLATED)
        return sl_fail(error, SL_UNSUPPORTED, "the zip entry at offset %llu is encrypted or has an unknown compression",
                       (unsigned long long)entry->offset);
    enum sl_code code = sl_zip_packed(zip, entry, &packed, error);
    if (code == SL_OK && entry->method == SL_ZIP_STORED && packed.size != entry->size)
        code = SL_MALFORMED;
    if (code == SL_OK)
        code = entry->method == SL_ZIP_STORED ? stream_stored(&s, packed) : stream_deflated(&s, packed, error);
    if (code == SL_OK && (s.size != entry->size || s.crc != entry->crc))
        code = SL_MALFORMED;
    return code == SL_MALFORMED ? bad_entry(entry, "does not have the size or checksum in its header", error) : code;
}

/* ---- writing ---- */

/* Appends the fields that local headers and directory entries have in common; `packed`, `size` and `name` are numbers of bytes. */
static void add_common(struct sl_buf *out, uint16_t method, uint32_t crc, size_t packed, size_t size, size_t name)
{
    sl_buf_u16(out, 20);      /* version needed: deflate */
    sl_buf_u16(out, 1 << 11); /* names are UTF-8 */
    sl_buf_u16(out, method);
    sl_buf_u16(out, 0);          /* time */
    sl_buf_u16(out, 1 << 5 | 1); /* date: 1980-01-01 */
    sl_buf_u32(out, crc);
    sl_buf_u32(out, (uint32_t)packed);
    sl_buf_u32(out, (uint32_t)size);
    sl_buf_u16(out, (uint16_t)name);
    sl_buf_u16(out, 0); /* extra field */
}

/* Appends the compressed contents; false when out of memory. */
static bool deflate_bytes(struct sl_bytes contents, struct sl_buf *out)
{
    z_stream z = {.next_in = (Bytef *)contents.data,
                  .avail_in = (uInt)contents.size}; /* sl_zip_add() limits the size */
    /* negative: no zlib header, as ZIP requires; 8: zlib's default memory level */
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    bool good = sl_buf_reserve(out, deflateBound(&z, contents.size));
    if (good) {
        z.next_out = out->data + out->size;
        z.avail_out = (uInt)(out->capacity - out->size > UINT32_MAX ? UINT32_MAX : out->capacity - out->size);
        good = deflate(&z, Z_FINISH) == Z_STREAM_END;
        out->size += good ? z.total_out : 0;
    }
    deflateEnd(&z);
    return good;
}

void sl_zip_add(struct sl_zip_writer *writer, struct sl_str name, struct sl_bytes contents)
{
    struct sl_buf packed = {0}, *out = writer->out, *directory = &writer->directory;
    size_t at = out->size;
    if (writer->error.code != SL_OK)
        return;
    /* beyond these limits ZIP64 would be needed; a field with all bits set would announce it, so that value is not used */
    if (name.size > UINT16_MAX || contents.size > INT32_MAX || at > INT32_MAX || writer->count == UINT16_MAX - 1) {
        sl_fail(&writer->error, SL_UNSUPPORTED, "the archive is too large for a source bundle");
        return;
    }
    if (!deflate_bytes(contents, &packed) || !packed.data) {
        sl_fail(&writer->error, SL_BUSY, "out of memory");
        sl_buf_free(&packed);
        return;
    }
    uint32_t crc = (uint32_t)crc32_z(crc32_z(0, NULL, 0), contents.data, contents.size);
    sl_buf_u32(out, local_magic);
    add_common(out, SL_ZIP_DEFLATED, crc, packed.size, contents.size, name.size);
    sl_buf_str(out, name);
    sl_buf_add(out, packed.data, packed.size);
    sl_buf_u32(directory, entry_magic);
    sl_buf_u16(directory, 3 << 8 | 20); /* made by: Unix */
    add_common(directory, SL_ZIP_DEFLATED, crc, packed.size, contents.size, name.size);
    sl_buf_fill(directory, 0, 2 + 2 + 2);           /* comment, disk, internal attributes */
    sl_buf_u32(directory, UINT32_C(0100644) << 16); /* a regular file */
    sl_buf_u32(directory, (uint32_t)at);
    sl_buf_str(directory, name);
    writer->count++;
    sl_buf_free(&packed);
}

enum sl_code sl_zip_finish(struct sl_zip_writer *writer, struct sl_error *error)
{
    struct sl_buf *out = writer->out;
    size_t at = out->size;
    if (writer->error.code == SL_OK && (at > UINT32_MAX || writer->directory.size > UINT32_MAX))
        sl_fail(&writer->error, SL_UNSUPPORTED, "the archive is too large for a source bundle");
    sl_buf_str(out, sl_buf_view(&writer->directory));
    sl_buf_u32(out, end_magic);
    sl_buf_u32(out, 0);                       /* disks */
    sl_buf_u16(out, (uint16_t)writer->count); /* entries on this disk */
    sl_buf_u16(out, (uint16_t)writer->count); /* all entries */
    sl_buf_u32(out, (uint32_t)writer->directory.size);
    sl_buf_u32(out, (uint32_t)at);
    sl_buf_u16(out, 0); /* comment */
    if (writer->error.code == SL_OK && (out->failed || writer->directory.failed))
        sl_fail(&writer->error, SL_BUSY, "out of memory");
    sl_buf_free(&writer->directory);
    if (writer->error.code != SL_OK && error)
        *error = writer->error;
    return writer->error.code;
}
