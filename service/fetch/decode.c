/* Decompresses streams: br, gzip, deflate, zstd, xz. The whole input is in memory (a mapping), the output goes to a file, within limits of
 * size and compression ratio. If a decoder gets no memory, the code is SL_BUSY, which says nothing about the file. */
#include <brotli/decode.h>
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/file.h"
#include "fetch/impl.h"

enum { PIECE = 256 * 1024 };
#define RATIO_COUNTS_FROM (256ull << 20) /* bytes of output up to which the compression ratio is not checked */

/* True for the beginning of an ELF core file: the two bytes of e_type, in either byte order, are 4 (ET_CORE) and 0. */
static bool begins_core(const uint8_t *data, size_t size)
{
    static const uint8_t magic[] = {0x7F, 'E', 'L', 'F'};
    return size >= 18 && memcmp(data, magic, sizeof magic) == 0 && data[16] + data[17] == 4;
}

/* Appends decompressed bytes to the output file; all decoders call it. False, with sink->error set, if time is up, the write fails, or the
 * output exceeds max_size or grows more than max_ratio times (checked from RATIO_COUNTS_FROM bytes on, as small files may have high
 * ratios). With options->for_core, core files may have any ratio, and beyond max_size the code is SL_UNSUPPORTED. */
bool decode_write(struct decode_sink *sink, const void *data, size_t size)
{
    const struct unpack_options *options = &sink->call->options;
    if (sink->call->may_continue && !sink->call->may_continue(sink->call->arg)) {
        sl_fail(sink->error, SL_CANCELLED, "cancelled");
        return false;
    }
    if (size > options->max_size - sink->written) {
        sink->over_limit = true;
        fetch_too_large(sink->error);
        if (options->for_core)
            sink->error->code = SL_UNSUPPORTED;
        return false;
    }
    if (!sink->written && options->for_core && begins_core(data, size)) /* core files may be mostly zeros */
        sink->max_ratio = UINT64_MAX;
    if (sink->written + size > RATIO_COUNTS_FROM && (sink->written + size) / sink->max_ratio > sink->call->in.size) {
        sink->over_limit = true;
        sl_fail(sink->error, SL_MALFORMED, "the file grows more than %llu times when decompressed",
                (unsigned long long)sink->max_ratio);
        return false;
    }
    if (!sl_write_sparse(sink->call->out, (struct sl_bytes){data, size})) {
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

/* Sets and returns the error for damaged input: `what` is the decoder's text. */
static enum sl_code bad(struct decode_sink *sink, const char *what)
{
    return sl_fail(sink->error, SL_MALFORMED, "%s", what);
}

/* Sets and returns the error for a decoder that got no memory, which it may need at any step: this says nothing about the file. */
static enum sl_code no_memory(struct decode_sink *sink)
{
    return sl_fail(sink->error, SL_BUSY, "out of memory");
}

/* Decompresses gzip, also several members in a row, or a zlib stream (`gzip` false). Bytes behind the last member are ignored, as gzip(1)
 * does. `out` has room for PIECE bytes. */
static enum sl_code inflate_all(struct sl_bytes in, bool gzip, uint8_t *out, struct decode_sink *sink)
{
    z_stream z = {.next_in = (Bytef *)in.data};
    size_t left = in.size;
    if (inflateInit2(&z, gzip ? 16 + MAX_WBITS : MAX_WBITS) != Z_OK) /* 16: a gzip header instead of zlib's */
        return no_memory(sink);
    enum sl_code code = SL_OK;
    for (int status = Z_OK; code == SL_OK;) {
        if (z.avail_in == 0 && left) {
            z.avail_in = left < PIECE ? (uInt)left : PIECE;
            left -= z.avail_in;
        }
        z.next_out = out;
        z.avail_out = PIECE;
        status = inflate(&z, Z_NO_FLUSH);
        if (status == Z_MEM_ERROR)
            code = no_memory(sink);
        else if (status != Z_OK && status != Z_STREAM_END)
            code = bad(sink, status == Z_BUF_ERROR ? "unexpected end of file"
                             : z.msg               ? z.msg
                                                   : "corrupt deflate stream");
        else if (!decode_write(sink, out, PIECE - z.avail_out))
            code = sink_code(sink);
        if (status == Z_STREAM_END && code == SL_OK) {
            /* the magic number of a further member; next_in may be read beyond avail_in, as the input is one mapping */
            bool another = gzip && z.avail_in + left >= 2 && z.next_in[0] == 0x1F && z.next_in[1] == 0x8B;
            if (!another)
                break;
            inflateReset(&z);
        }
    }
    inflateEnd(&z);
    return code;
}

/* Decompresses all zstd frames. `hint`, the result of ZSTD_decompressStream, is 0 at the end of a frame: input that ends when it is not 0
 * is truncated. */
static enum sl_code decode_zstd(struct sl_bytes in, uint8_t *out, struct decode_sink *sink)
{
    ZSTD_DStream *z = ZSTD_createDStream();
    if (!z)
        return no_memory(sink);
    ZSTD_inBuffer from = {in.data, in.size, 0};
    enum sl_code code = SL_OK;
    for (size_t hint = 1; code == SL_OK && (from.pos < from.size || hint != 0);) {
        ZSTD_outBuffer to = {out, PIECE, 0};
        size_t before = from.pos;
        hint = ZSTD_decompressStream(z, &to, &from);
        if (ZSTD_getErrorCode(hint) == ZSTD_error_memory_allocation)
            code = no_memory(sink);
        else if (ZSTD_isError(hint))
            code = bad(sink, ZSTD_getErrorName(hint));
        else if (!decode_write(sink, out, to.pos))
            code = sink_code(sink);
        else if (from.pos == before && to.pos == 0) /* no progress: it needs more input than there is */
            code = bad(sink, "unexpected end of file");
    }
    ZSTD_freeDStream(z);
    return code;
}

/* Decompresses a brotli stream. */
static enum sl_code decode_brotli(struct sl_bytes in, uint8_t *out, struct decode_sink *sink)
{
    BrotliDecoderState *b = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    if (!b)
        return no_memory(sink);
    size_t left = in.size;
    const uint8_t *at = in.data;
    enum sl_code code = SL_OK;
    for (BrotliDecoderResult result = BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
         code == SL_OK && result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;) {
        size_t room = PIECE;
        uint8_t *to = out;
        result = BrotliDecoderDecompressStream(b, &left, &at, &room, &to, NULL);
        BrotliDecoderErrorCode cause = BrotliDecoderGetErrorCode(b);
        /* error codes are negative; those for failed allocations lie between these two */
        if (result == BROTLI_DECODER_RESULT_ERROR)
            code = cause <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES &&
                           cause >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES
                       ? no_memory(sink)
                       : bad(sink, BrotliDecoderErrorString(cause));
        else if (!decode_write(sink, out, PIECE - room))
            code = sink_code(sink);
        else if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT)
            code = bad(sink, "unexpected end of file");
    }
    BrotliDecoderDestroyInstance(b);
    return code;
}

/* Decompresses all xz streams of a file. XZ_MEMORY is the most memory that the decoder may use; files made by xz -9 need 65 MiB. */
static enum sl_code decode_xz(struct sl_bytes in, uint8_t *out, struct decode_sink *sink)
{
    enum { XZ_MEMORY = 256 << 20 };
    lzma_stream z = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&z, XZ_MEMORY, LZMA_CONCATENATED) != LZMA_OK)
        return no_memory(sink);
    z.next_in = in.data;
    z.avail_in = in.size;
    enum sl_code code = SL_OK;
    for (lzma_ret status = LZMA_OK; code == SL_OK && status != LZMA_STREAM_END;) {
        z.next_out = out;
        z.avail_out = PIECE;
        status = lzma_code(&z, LZMA_FINISH);
        if (status == LZMA_MEM_ERROR)
            code = no_memory(sink);
        else if (status != LZMA_OK && status != LZMA_STREAM_END)
            code = bad(sink, status == LZMA_BUF_ERROR        ? "unexpected end of file"
                             : status == LZMA_MEMLIMIT_ERROR ? "xz stream needs too much memory"
                                                             : "corrupt xz stream");
        else if (!decode_write(sink, out, PIECE - z.avail_out))
            code = sink_code(sink);
    }
    lzma_end(&z);
    return code;
}

/* Decompresses `in`, which has one content coding or compression, into the sink's output file. Archives are opened in unwrap.c instead. */
enum sl_code decode_bytes(struct sl_bytes in, enum unpack_format coding, struct decode_sink *sink)
{
    uint8_t *out = malloc(PIECE);
    if (!out)
        return no_memory(sink);
    enum sl_code code = SL_OK;
    switch (coding) {
    case UNPACK_NONE: code = decode_write(sink, in.data, in.size) ? SL_OK : sink_code(sink); break;
    case UNPACK_GZIP: code = inflate_all(in, true, out, sink); break;
    case UNPACK_DEFLATE: code = inflate_all(in, false, out, sink); break;
    case UNPACK_ZSTD: code = decode_zstd(in, out, sink); break;
    case UNPACK_BR: code = decode_brotli(in, out, sink); break;
    case UNPACK_XZ: code = decode_xz(in, out, sink); break;
    default:
        code = sl_fail(sink->error, SL_INTERNAL,
                       "internal error: the compression format is that of an archive, not a stream");
    }
    free(out);
    return code;
}
