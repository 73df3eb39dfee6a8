/* Unpacks archives, and detects compressed files by their magic numbers, whatever their names. A ZIP archive or cabinet must have exactly
 * one member, whose name is ignored; of a tar archive one member is taken by its name. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>

#include "fetch/impl.h"
#include "source/zip.h"

enum { CAB_FILE_COUNT = 28 }; /* CFHEADER.cFiles (MS-CAB, 2.1) */

/* Called by sl_zip_stream for each piece of decompressed bytes: writes it to the output file. False ends the decompression. */
static bool take_piece(void *arg, struct sl_bytes piece, uint64_t used)
{
    (void)used;
    return decode_write(arg, piece.data, piece.size);
}

/* Decompresses the only member of a ZIP archive. SL_MALFORMED if there is not exactly one, or if it is encrypted or neither stored nor
 * deflated. */
static enum sl_code read_only_entry(const struct sl_zip *zip, struct decode_sink *sink)
{
    const struct sl_zip_sink pieces = {take_piece, sink};
    const struct sl_zip_entry *entry = zip->entries;
    if (zip->count != 1)
        return sl_fail(sink->error, SL_MALFORMED,
                       zip->count ? "ZipArchive contains more than one symbol file"
                                  : "ZipArchive contains no symbol file");
    if (entry->method == SL_ZIP_ENCRYPTED)
        return sl_fail(sink->error, SL_MALFORMED, "Password required to decrypt file");
    if (entry->method != SL_ZIP_STORED && entry->method != SL_ZIP_DEFLATED)
        return sl_fail(sink->error, SL_MALFORMED, "Compression method not supported");
    enum sl_code code = sl_zip_stream(zip, entry, &pieces, sink->error);
    return code == SL_CANCELLED ? sink->error->code : code; /* SL_CANCELLED: take_piece has failed and set the error */
}

/* Opens a ZIP archive and decompresses its only member. */
static enum sl_code unwrap_zip(struct sl_bytes in, struct decode_sink *sink)
{
    struct sl_arena arena = {0};
    struct sl_zip zip;
    enum sl_code code = sl_zip_open(in, 0, &arena, &zip, sink->error);
    if (code == SL_OK)
        code = read_only_entry(&zip, sink);
    sl_arena_free(&arena);
    return code;
}

/* Sets and returns the error for a failure of libarchive: SL_BUSY when out of memory, else SL_MALFORMED with libarchive's text. */
static enum sl_code bad_archive(struct archive *a, struct decode_sink *sink)
{
    const char *text = archive_error_string(a);
    if (archive_errno(a) == ENOMEM)
        return sl_fail(sink->error, SL_BUSY, "out of memory");
    return sl_fail(sink->error, SL_MALFORMED, "%s", text ? text : "corrupt archive");
}

/* True if libarchive can read on after this status. ARCHIVE_WARN concerns the name or attributes of a member; its contents can be read. */
static bool usable(int status)
{
    return status == ARCHIVE_OK || status == ARCHIVE_WARN;
}

/* Writes the contents of the archive member whose header was read last to the output file. */
static enum sl_code read_entry(struct archive *a, struct decode_sink *sink)
{
    const void *piece;
    size_t size;
    la_int64_t offset;
    int status;
    /* usable: ARCHIVE_OK or a warning */
    while (usable(status = archive_read_data_block(a, &piece, &size, &offset)))
        if (!decode_write(sink, piece, size))
            return sink->error->code;
    return status == ARCHIVE_EOF ? SL_OK : bad_archive(a, sink);
}

/* Decompresses the only file of a cabinet; SL_MALFORMED if there is not exactly one. The number of files is read from the cabinet's header
 * here, as libarchive does not tell it. */
static enum sl_code read_cab(struct archive *a, struct sl_bytes in, struct decode_sink *sink)
{
    struct archive_entry *entry;
    struct sl_reader header = sl_reader(in, false);
    sl_reader_seek(&header, CAB_FILE_COUNT); /* offset of the field cFiles */
    unsigned count = sl_read_u16(&header);
    if (count != 1)
        return sl_fail(sink->error, SL_MALFORMED,
                       header.failed ? "cab file header is cut off"
                       : count       ? "cab file contains more than 1 symbol file"
                                     : "cab file is empty");
    if (archive_read_support_format_cab(a) != ARCHIVE_OK ||
        archive_read_open_memory(a, in.data, in.size) != ARCHIVE_OK || !usable(archive_read_next_header(a, &entry)))
        return bad_archive(a, sink);
    return read_entry(a, sink);
}

/* Opens a cabinet and decompresses its only file. */
static enum sl_code unwrap_cab(struct sl_bytes in, struct decode_sink *sink)
{
    struct archive *a = archive_read_new();
    if (!a)
        return sl_fail(sink->error, SL_BUSY, "out of memory");
    enum sl_code code = read_cab(a, in, sink);
    archive_read_free(a);
    return code;
}

/* ---- one member of a tar archive ---- */

/* Finds the regular file with the name `member` in a tar archive and writes it to the output file. Reads the archive from its start, as tar
 * has no table of contents. SL_NOT_FOUND if it has no such file. */
static enum sl_code find_member(struct archive *a, struct sl_bytes in, struct sl_str member, struct decode_sink *sink)
{
    struct archive_entry *entry;
    int status;
    if (archive_read_support_format_tar(a) != ARCHIVE_OK || archive_read_open_memory(a, in.data, in.size) != ARCHIVE_OK)
        return bad_archive(a, sink);
    while (usable(status = archive_read_next_header(a, &entry))) { /* usable: ARCHIVE_OK or a warning */
        const char *name = archive_entry_pathname(entry);
        if (name && archive_entry_filetype(entry) == AE_IFREG && sl_str_equal(sl_str(name), member))
            return read_entry(a, sink);
    }
    return status == ARCHIVE_EOF ? sl_fail(sink->error, SL_NOT_FOUND, "the archive does not contain the file")
                                 : bad_archive(a, sink);
}

/* Opens a tar archive and writes the member that the call names to the output file. */
static enum sl_code take_member(struct sl_bytes in, struct decode_sink *sink)
{
    struct archive *a = archive_read_new();
    if (!a)
        return sl_fail(sink->error, SL_BUSY, "out of memory");
    enum sl_code code = find_member(a, in, sink->call->member, sink);
    archive_read_free(a);
    return code;
}

/* ---- detection ---- */

static const struct wrapper {
    uint8_t magic[6];
    unsigned size;
    enum unpack_format format;
} wrappers[] = {
    {{0x28, 0xB5, 0x2F, 0xFD}, 4, UNPACK_ZSTD}, {{0x1F, 0x8B}, 2, UNPACK_GZIP},
    {{0x78, 0x01}, 2, UNPACK_DEFLATE},          {{0x78, 0x9C}, 2, UNPACK_DEFLATE},
    {{0x78, 0xDA}, 2, UNPACK_DEFLATE},          {{'P', 'K', 3, 4}, 4, UNPACK_ZIP},
    {{'M', 'S', 'C', 'F'}, 4, UNPACK_CAB},      {{0xFD, '7', 'z', 'X', 'Z', 0}, 6, UNPACK_XZ},
};

enum unpack_format unpack_detect(struct sl_bytes head)
{
    for (size_t i = 0; head.size >= 4 && i < sizeof wrappers / sizeof *wrappers; i++)
        if (head.size >= wrappers[i].size && memcmp(head.data, wrappers[i].magic, wrappers[i].size) == 0)
            return wrappers[i].format;
    return UNPACK_NONE;
}

bool fetch_is_wrapped(struct sl_bytes bytes)
{
    return unpack_detect(bytes) != UNPACK_NONE;
}

/* ---- all formats ---- */

enum sl_code unpack_bytes(const struct unpack_call *call, struct unpack_result *result, struct sl_error *error)
{
    struct sl_error own;
    struct decode_sink sink = {.call = call, .max_ratio = call->options.max_ratio, .error = error ? error : &own};
    enum sl_code code;
    switch (call->options.format) {
    case UNPACK_ZIP: code = unwrap_zip(call->in, &sink); break;
    case UNPACK_CAB: code = unwrap_cab(call->in, &sink); break;
    case UNPACK_TAR: code = take_member(call->in, &sink); break;
    default: code = decode_bytes(call->in, call->options.format, &sink);
    }
    result->over_limit = sink.over_limit;
    return code;
}
