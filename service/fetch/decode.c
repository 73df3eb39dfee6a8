/* Decompression: br, gzip (RFC 1952, multi-member), deflate (a zlib stream, RFC 1950), zstd (RFC 8878, all frames), xz. The
 * whole input is in memory (a mapping), the output goes to a file, within the limits of decompression. */
#include <brotli/decode.h>
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/file.h"
#include "core/loop.h"
#include "core/temp_dir.h"
#include "fetch/impl.h"

enum { PIECE = 256 * 1024, COPY_PIECE = 64 << 20 };
#define RATIO_COUNTS_FROM (256ull << 20) /* bytes of output up to which the compression ratio is not checked */

/* False, with the error, if the time limit is over: checked for every piece, as a small file may decompress to a huge one. */
static bool in_time(struct decode_sink *sink)
{
    if (clock_mono_ns() < sink->limits.until_ns)
        return true;
    sink->over_limit = true;
    fail_for_time_limit(sink->error, sink->limits.timeout_ns);
    return false;
}

/* True for the beginning of an ELF core file: e_type, in either byte order, is 4. */
static bool begins_core(const uint8_t *data, size_t size)
{
    static const uint8_t magic[] = {0x7F, 'E', 'L', 'F'};
    return size >= 18 && memcmp(data, magic, sizeof magic) == 0 && data[16] + data[17] == 4;
}

bool decode_write(struct decode_sink *sink, const void *data, size_t size)
{
    if (!in_time(sink))
        return false;
    if (size > sink->limits.max_size - sink->written) {
        sink->over_limit = true;
        fetch_too_large(sink->error);
        if (sink->limits.for_core)
            sink->error->code = SL_UNSUPPORTED;
        return false;
    }
    if (!sink->written && sink->limits.for_core && begins_core(data, size))
        sink->max_ratio = UINT64_MAX;
    if (sink->written + size > RATIO_COUNTS_FROM && (sink->written + size) / sink->max_ratio > sink->input) {
        sink->over_limit = true;
        sl_fail(sink->error, SL_MALFORMED, "the file grows more than %llu times when decompressed",
                (unsigned long long)sink->max_ratio);
        return false;
    }
    if (!sl_write_sparse(sink->fd, (struct sl_bytes){data, size})) {
        sl_fail_errno(sink->error, errno, "cannot write the decompressed file");
        return false;
    }
    sink->written += size;
    return true;
}

static enum sl_code sink_code(const struct decode_sink *sink)
{
    return sink->error->code;
}

static enum sl_code bad(struct decode_sink *sink, const char *what)
{
    return sl_fail(sink->error, SL_MALFORMED, "%s", what);
}

/* `gzip`: also accepts concatenated members. */
static enum sl_code inflate_all(struct sl_bytes in, bool gzip, uint8_t *out, struct decode_sink *sink)
{
    z_stream z = {.next_in = (Bytef *)in.data};
    size_t left = in.size;
    if (inflateInit2(&z, gzip ? 16 + MAX_WBITS : MAX_WBITS) != Z_OK)
        return sl_fail(sink->error, SL_BUSY, "out of memory");
    enum sl_code code = SL_OK;
    for (int status = Z_OK; code == SL_OK;) {
        if (z.avail_in == 0 && left) {
            z.avail_in = left < PIECE ? (uInt)left : PIECE;
            left -= z.avail_in;
        }
        z.next_out = out;
        z.avail_out = PIECE;
        status = inflate(&z, Z_NO_FLUSH);
        if (status != Z_OK && status != Z_STREAM_END)
            code = bad(sink, status == Z_BUF_ERROR ? "unexpected end of file"
                             : z.msg               ? z.msg
                                                   : "corrupt deflate stream");
        else if (!decode_write(sink, out, PIECE - z.avail_out))
            code = sink_code(sink);
        if (status == Z_STREAM_END && code == SL_OK) {
            bool another = gzip && z.avail_in + left >= 2 && z.next_in[0] == 0x1F && z.next_in[1] == 0x8B;
            if (!another)
                break;
            inflateReset(&z);
        }
    }
    inflateEnd(&z);
    return code;
}

static enum sl_code decode_zstd(struct sl_bytes in, uint8_t *out, struct decode_sink *sink)
{
    ZSTD_DStream *z = ZSTD_createDStream();
    if (!z)
        return sl_fail(sink->error, SL_BUSY, "out of memory");
    ZSTD_inBuffer from = {in.data, in.size, 0};
    enum sl_code code = SL_OK;
    for (size_t hint = 1; code == SL_OK && (from.pos < from.size || hint != 0);) {
        ZSTD_outBuffer to = {out, PIECE, 0};
        size_t before = from.pos;
        hint = ZSTD_decompressStream(z, &to, &from);
        if (ZSTD_isError(hint))
            code = bad(sink, ZSTD_getErrorName(hint));
        else if (!decode_write(sink, out, to.pos))
            code = sink_code(sink);
        else if (from.pos == before && to.pos == 0)
            code = bad(sink, "unexpected end of file");
    }
    ZSTD_freeDStream(z);
    return code;
}

static enum sl_code decode_brotli(struct sl_bytes in, uint8_t *out, struct decode_sink *sink)
{
    BrotliDecoderState *b = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    if (!b)
        return sl_fail(sink->error, SL_BUSY, "out of memory");
    size_t left = in.size;
    const uint8_t *at = in.data;
    enum sl_code code = SL_OK;
    for (BrotliDecoderResult result = BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
         code == SL_OK && result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;) {
        size_t room = PIECE;
        uint8_t *to = out;
        result = BrotliDecoderDecompressStream(b, &left, &at, &room, &to, NULL);
        if (result == BROTLI_DECODER_RESULT_ERROR)
            code = bad(sink, BrotliDecoderErrorString(BrotliDecoderGetErrorCode(b)));
        else if (!decode_write(sink, out, PIECE - room))
            code = sink_code(sink);
        else if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT)
            code = bad(sink, "unexpected end of file");
    }
    BrotliDecoderDestroyInstance(b);
    return code;
}

static enum sl_code decode_xz(struct sl_bytes in, uint8_t *out, struct decode_sink *sink)
{
    enum { XZ_MEMORY = 256 << 20 };
    lzma_stream z = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&z, XZ_MEMORY, LZMA_CONCATENATED) != LZMA_OK)
        return sl_fail(sink->error, SL_BUSY, "out of memory");
    z.next_in = in.data;
    z.avail_in = in.size;
    enum sl_code code = SL_OK;
    for (lzma_ret status = LZMA_OK; code == SL_OK && status != LZMA_STREAM_END;) {
        z.next_out = out;
        z.avail_out = PIECE;
        status = lzma_code(&z, LZMA_FINISH);
        if (status != LZMA_OK && status != LZMA_STREAM_END)
            code = bad(sink, status == LZMA_BUF_ERROR        ? "unexpected end of file"
                             : status == LZMA_MEMLIMIT_ERROR ? "xz stream needs too much memory"
                                                             : "corrupt xz stream");
        else if (!decode_write(sink, out, PIECE - z.avail_out))
            code = sink_code(sink);
    }
    lzma_end(&z);
    return code;
}

enum sl_code decode_bytes(struct sl_bytes in, enum fetch_coding coding, struct decode_sink *sink)
{
    uint8_t *out = malloc(PIECE);
    if (!out)
        return sl_fail(sink->error, SL_BUSY, "out of memory");
    enum sl_code code = SL_OK;
    switch (coding) {
    case CODING_IDENTITY: code = decode_write(sink, in.data, in.size) ? SL_OK : sink_code(sink); break;
    case CODING_GZIP: code = inflate_all(in, true, out, sink); break;
    case CODING_DEFLATE: code = inflate_all(in, false, out, sink); break;
    case CODING_ZSTD: code = decode_zstd(in, out, sink); break;
    case CODING_BR: code = decode_brotli(in, out, sink); break;
    case CODING_XZ: code = decode_xz(in, out, sink); break;
    }
    free(out);
    return code;
}

/* ---- in place ---- */
/* A temporary file in the configured directory, or in that of the system; -1 on failure. */
static int temporary(void)
{
    const char *configured = fetch_state.tmp_dir;
    return sl_unlinked_file(configured ? configured : temp_dir());
}

/* Copies through a mapping, if another file system or the kernel prevents copy_file_range. */
static enum sl_code copy_mapped(struct decode_sink *sink, int to, uint64_t at)
{
    struct sl_mapping mapping;
    enum sl_code code = sl_map_fd(sink->fd, &mapping, sink->error);
    if (code != SL_OK)
        return code;
    while (code == SL_OK && at < sink->written) {
        uint64_t size = sink->written - at < COPY_PIECE ? sink->written - at : COPY_PIECE;
        if (!in_time(sink))
            code = sink_code(sink);
        else if (!sl_write_all_at(to, (struct sl_bytes){mapping.bytes.data + at, size}, at))
            code = sl_fail_errno(sink->error, errno, "cannot write the decompressed file");
        at += size;
    }
    sl_unmap(&mapping);
    return code;
}

/* Returns how many bytes from `*at` on to copy in one call, after it has moved `*at` over a hole. */
static uint64_t next_piece(const struct decode_sink *sink, off_t *at)
{
    off_t data = lseek(sink->fd, *at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) /* only a hole is left */
        data = (off_t)sink->written;
    *at = data < 0 ? *at : data;
    off_t hole = data < 0 || (uint64_t)data >= sink->written ? -1 : lseek(sink->fd, *at, SEEK_HOLE);
    uint64_t end = hole > *at ? (uint64_t)hole : sink->written, left = end - (uint64_t)*at;
    return left < COPY_PIECE ? left : COPY_PIECE;
}

/* Replaces the contents of the download's file by the decompressed ones; holes stay holes. */
static enum sl_code copy_back(struct decode_sink *sink, int to)
{
    off_t at = 0;
    ssize_t n = 1;
    if (ftruncate(to, 0) != 0 || ftruncate(to, (off_t)sink->written) != 0 || lseek(to, 0, SEEK_SET) != 0)
        return sl_fail_errno(sink->error, errno, "cannot write the decompressed file");
    while ((uint64_t)at < sink->written && n > 0) {
        uint64_t size = next_piece(sink, &at);
        off_t to_at = at;
        if (!in_time(sink))
            return sink_code(sink);
        n = size ? copy_file_range(sink->fd, &at, to, &to_at, size, 0) : 0;
    }
    return (uint64_t)at == sink->written ? SL_OK : copy_mapped(sink, to, (uint64_t)at);
}

enum sl_code decode_in_place(int fd, const struct decode_limits *limits, struct sl_error *error,
                             enum sl_code (*decode)(struct sl_bytes in, void *arg, struct decode_sink *sink), void *arg)
{
    struct sl_error own;
    struct sl_mapping mapping;
    error = error ? error : &own;
    enum sl_code code = sl_map_fd(fd, &mapping, error);
    if (code != SL_OK)
        return code == SL_BUSY ? code : sl_fail(error, SL_INTERNAL, "cannot map the downloaded file");
    struct decode_sink sink = {.fd = temporary(), .limits = *limits, .input = mapping.bytes.size, .error = error};
    if (!sink.limits.max_size)
        sink.limits.max_size = fetch_state.max_download_size;
    uint64_t ratio = fetch_state.max_inflate_ratio;
    sink.max_ratio = ratio ? ratio : 1000;
    code =
        sink.fd < 0 ? sl_fail_errno(error, errno, "cannot create a temporary file") : decode(mapping.bytes, arg, &sink);
    sl_unmap(&mapping);
    if (code == SL_OK)
        code = copy_back(&sink, fd);
    sl_close(sink.fd);
    return code;
}

/* Decodes the Content-Encoding. Damaged data is an error of the download, and does not mean that the file is malformed. */
static enum sl_code decode_coding(struct sl_bytes in, void *arg, struct decode_sink *sink)
{
    if (in.size == 0) /* no body, so it is not encoded */
        return SL_OK;
    enum sl_code code = decode_bytes(in, *(enum fetch_coding *)arg, sink);
    if (code == SL_MALFORMED && !sink->over_limit)
        sink->error->code = code = SL_DOWNLOAD_ERROR;
    return code;
}

enum sl_code decode_file(int fd, enum fetch_coding coding, const struct decode_limits *limits, struct sl_error *error)
{
    return decode_in_place(fd, limits, error, decode_coding, &coding);
}
