/* Files that arrive compressed: recognised by their magic numbers, whatever their names; unwrapped once, not recursively. An
 * archive must have exactly one member; its name is ignored. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/loop.h"
#include "core/metrics.h"
#include "fetch/impl.h"
#include "source/zip.h"

enum { CAB_FILE_COUNT = 28 }; /* CFHEADER.cFiles (MS-CAB, 2.1) */

/* Sink of sl_zip_stream. */
static bool take_piece(void *arg, struct sl_bytes piece, uint64_t used)
{
    (void)used;
    return decode_write(arg, piece.data, piece.size);
}

/* Decompresses the only member of a ZIP archive. */
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
    return code == SL_CANCELLED ? sink->error->code : code; /* the sink has set the error */
}

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

/* Translates an error of libarchive. */
static enum sl_code bad_archive(struct archive *a, struct decode_sink *sink)
{
    const char *text = archive_error_string(a);
    if (archive_errno(a) == ENOMEM)
        return sl_fail(sink->error, SL_BUSY, "out of memory");
    return sl_fail(sink->error, SL_MALFORMED, "%s", text ? text : "corrupt archive");
}

/* Warnings concern the name, which is ignored. */
static bool usable(int status)
{
    return status == ARCHIVE_OK || status == ARCHIVE_WARN;
}

/* Copies the contents of the entry whose header was read. */
static enum sl_code read_entry(struct archive *a, struct decode_sink *sink)
{
    const void *piece;
    size_t size;
    la_int64_t offset;
    int status;
    while (usable(status = archive_read_data_block(a, &piece, &size, &offset)))
        if (!decode_write(sink, piece, size))
            return sink->error->code;
    return status == ARCHIVE_EOF ? SL_OK : bad_archive(a, sink);
}

/* Decompresses the only file of a cabinet. The number of files is read from the header, as libarchive does not tell it. */
static enum sl_code read_cab(struct archive *a, struct sl_bytes in, struct decode_sink *sink)
{
    struct archive_entry *entry;
    struct sl_reader header = sl_reader(in, false);
    sl_reader_seek(&header, CAB_FILE_COUNT);
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

static enum sl_code unwrap_cab(struct sl_bytes in, struct decode_sink *sink)
{
    struct archive *a = archive_read_new();
    if (!a)
        return sl_fail(sink->error, SL_BUSY, "out of memory");
    enum sl_code code = read_cab(a, in, sink);
    archive_read_free(a);
    return code;
}

static enum sl_code unwrap_zstd(struct sl_bytes in, struct decode_sink *sink)
{
    return decode_bytes(in, CODING_ZSTD, sink);
}
static enum sl_code unwrap_gzip(struct sl_bytes in, struct decode_sink *sink)
{
    return decode_bytes(in, CODING_GZIP, sink);
}
static enum sl_code unwrap_zlib(struct sl_bytes in, struct decode_sink *sink)
{
    return decode_bytes(in, CODING_DEFLATE, sink);
}
static enum sl_code unwrap_xz(struct sl_bytes in, struct decode_sink *sink)
{
    return decode_bytes(in, CODING_XZ, sink);
}

static const struct wrapper {
    uint8_t magic[6];
    unsigned size;
    const char *name; /* label of metrics */
    enum sl_code (*unwrap)(struct sl_bytes in, struct decode_sink *sink);
} wrappers[] = {
    {{0x28, 0xB5, 0x2F, 0xFD}, 4, "zstd", unwrap_zstd},
    {{0x1F, 0x8B}, 2, "gz", unwrap_gzip},
    {{0x78, 0x01}, 2, "zlib", unwrap_zlib},
    {{0x78, 0x9C}, 2, "zlib", unwrap_zlib},
    {{0x78, 0xDA}, 2, "zlib", unwrap_zlib},
    {{'P', 'K', 3, 4}, 4, "zip", unwrap_zip},
    {{'M', 'S', 'C', 'F'}, 4, "cab", unwrap_cab},
    {{0xFD, '7', 'z', 'X', 'Z', 0}, 6, "xz", unwrap_xz},
};

static enum sl_code unwrap_with(struct sl_bytes in, void *arg, struct decode_sink *sink)
{
    return ((const struct wrapper *)arg)->unwrap(in, sink);
}

/* NULL if the file begins with none of the magic numbers. */
static const struct wrapper *find_wrapper(const uint8_t *head, size_t size)
{
    for (size_t i = 0; size >= 4 && i < sizeof wrappers / sizeof *wrappers; i++)
        if (size >= wrappers[i].size && memcmp(head, wrappers[i].magic, wrappers[i].size) == 0)
            return &wrappers[i];
    return NULL;
}

bool fetch_is_wrapped(struct sl_bytes bytes)
{
    return find_wrapper(bytes.data, bytes.size) != NULL;
}

enum sl_code unwrap_file(int fd, const struct decode_limits *limits, struct sl_error *error)
{
    uint8_t head[6];
    ssize_t size = pread(fd, head, sizeof head, 0);
    const struct wrapper *wrapper = find_wrapper(head, size < 0 ? 0 : (size_t)size);
    if (!wrapper)
        return SL_OK;
    metric_add(METRIC_DOWNLOAD_COMPRESSION, 1, wrapper->name, NULL, NULL);
    return decode_in_place(fd, limits, error, unwrap_with, (void *)wrapper);
}

static struct decode_limits get_limits(uint64_t max_size)
{
    uint64_t ns = fetch_state.max_download_timeout_ns, now = clock_mono_ns();
    struct decode_limits limits = {.max_size = max_size, .until_ns = UINT64_MAX, .timeout_ns = ns};
    if (ns && ns < UINT64_MAX - now) /* 0: fetch_init was not called, as in commands without downloads */
        limits.until_ns = now + ns;
    return limits;
}

enum sl_code fetch_unwrap(int fd, uint64_t max_size, struct sl_error *error)
{
    struct decode_limits limits = get_limits(max_size);
    return unwrap_file(fd, &limits, error);
}

enum sl_code fetch_unwrap_core(int fd, uint64_t max_size, struct sl_error *error)
{
    struct decode_limits limits = get_limits(max_size);
    limits.for_core = true;
    return unwrap_file(fd, &limits, error);
}

/* ---- one member of a tar archive ---- */

/* Reads the archive up to the member: tar has no table of contents. */
static enum sl_code find_member(struct archive *a, struct sl_bytes in, struct sl_str member, struct decode_sink *sink)
{
    struct archive_entry *entry;
    int status;
    if (archive_read_support_format_tar(a) != ARCHIVE_OK || archive_read_open_memory(a, in.data, in.size) != ARCHIVE_OK)
        return bad_archive(a, sink);
    while (usable(status = archive_read_next_header(a, &entry))) {
        const char *name = archive_entry_pathname(entry);
        if (name && archive_entry_filetype(entry) == AE_IFREG && sl_str_equal(sl_str(name), member))
            return read_entry(a, sink);
    }
    return status == ARCHIVE_EOF ? sl_fail(sink->error, SL_NOT_FOUND, "the archive does not contain the file")
                                 : bad_archive(a, sink);
}

static enum sl_code take_member(struct sl_bytes in, void *arg, struct decode_sink *sink)
{
    struct archive *a = archive_read_new();
    if (!a)
        return sl_fail(sink->error, SL_BUSY, "out of memory");
    enum sl_code code = find_member(a, in, *(const struct sl_str *)arg, sink);
    archive_read_free(a);
    return code;
}

enum sl_code fetch_take_member(int fd, struct sl_str member, uint64_t max_size, struct sl_error *error)
{
    struct decode_limits limits = get_limits(max_size);
    return decode_in_place(fd, &limits, error, take_member, &member);
}
