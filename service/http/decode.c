/* Decodes bodies with a content coding (RFC 9110, 8.4) by zlib and libzstd. */
#include "http/decode.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { OUT_STEP = 64 * 1024 };

struct http_decoder {
    enum content_coding coding;
    z_stream zlib;
    ZSTD_DStream *zstd;
    bool ended; /* a stream is complete; another gzip or zstd stream may follow */
};

enum content_coding coding_parse(struct sl_str value)
{
    static const struct {
        const char *name;
        enum content_coding coding;
    } codings[] = {{"identity", CODING_IDENTITY},
                   {"gzip", CODING_GZIP},
                   {"x-gzip", CODING_GZIP},
                   {"deflate", CODING_DEFLATE},
                   {"zstd", CODING_ZSTD}};
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++)
        if (sl_str_equal_nocase(value, sl_str(codings[i].name)))
            return codings[i].coding;
    return CODING_UNKNOWN;
}

struct http_decoder *decoder_new(enum content_coding coding, int zstd_window_log)
{
    struct http_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return NULL;
    decoder->coding = coding;
    bool ready;
    if (coding == CODING_ZSTD) {
        decoder->zstd = ZSTD_createDStream();
        ready =
            decoder->zstd && !ZSTD_isError(ZSTD_DCtx_setParameter(decoder->zstd, ZSTD_d_windowLogMax, zstd_window_log));
    } else {
        /* window bits: 15 is the largest window, 16 more stand for a gzip header instead of zlib's */
        ready = inflateInit2(&decoder->zlib, coding == CODING_GZIP ? 15 + 16 : 15) == Z_OK;
    }
    if (ready)
        return decoder;
    ZSTD_freeDStream(decoder->zstd);
    free(decoder);
    return NULL;
}

void decoder_free(struct http_decoder *decoder)
{
    if (!decoder)
        return;
    if (decoder->coding == CODING_ZSTD)
        ZSTD_freeDStream(decoder->zstd);
    else
        inflateEnd(&decoder->zlib);
    free(decoder);
}

bool decoder_ended(const struct http_decoder *decoder)
{
    return decoder->ended;
}

/* Decodes from `*in` (advanced) until the `*size` bytes of `out` are full or the input is used; sets `*size` to the bytes written.
 * SL_MALFORMED, or SL_BUSY when out of memory. */
static enum sl_code step_zlib(struct http_decoder *decoder, struct sl_bytes *in, uint8_t *out, size_t *size)
{
    z_stream *z = &decoder->zlib;
    if (decoder->ended) { /* input after the end: only another gzip member may follow (RFC 1952, 2.2) */
        if (decoder->coding != CODING_GZIP || inflateReset(z) != Z_OK)
            return SL_MALFORMED;
        decoder->ended = false;
    }
    uInt given = in->size > (1u << 30) ? 1u << 30 : (uInt)in->size; /* zlib counts in 32 bits */
    z->next_in = (Bytef *)(uintptr_t)in->data;
    z->avail_in = given;
    z->next_out = out;
    z->avail_out = (uInt)*size;
    int result = inflate(z, Z_NO_FLUSH);
    in->data += given - z->avail_in;
    in->size -= given - z->avail_in;
    *size -= z->avail_out;
    decoder->ended = result == Z_STREAM_END;
    if (result == Z_MEM_ERROR)
        return SL_BUSY;
    /* Z_BUF_ERROR: nothing was read or written, which decoder_run handles */
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR ? SL_OK : SL_MALFORMED;
}

/* Decodes from `*in` (advanced) into the `*size` bytes of `out`; sets `*size` to the bytes written. libzstd begins the next frame by
 * itself. SL_MALFORMED, or SL_BUSY when out of memory. */
static enum sl_code step_zstd(struct http_decoder *decoder, struct sl_bytes *in, uint8_t *out, size_t *size)
{
    ZSTD_inBuffer input = {in->data, in->size, 0};
    ZSTD_outBuffer output = {out, *size, 0};
    size_t result = ZSTD_decompressStream(decoder->zstd, &output, &input);
    if (ZSTD_isError(result))
        return ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? SL_BUSY : SL_MALFORMED;
    in->data += input.pos;
    in->size -= input.pos;
    *size = output.pos;
    decoder->ended = result == 0;
    return SL_OK;
}

enum sl_code decoder_run(struct http_decoder *decoder, struct sl_bytes *in, struct sl_buf *out, size_t limit)
{
    while (out->size < limit && !(decoder->ended && in->size == 0)) {
        size_t size = limit - out->size < OUT_STEP ? limit - out->size : OUT_STEP, before = in->size;
        if (!sl_buf_reserve(out, size))
            return SL_BUSY;
        enum sl_code code = decoder->coding == CODING_ZSTD ? step_zstd(decoder, in, out->data + out->size, &size)
                                                           : step_zlib(decoder, in, out->data + out->size, &size);
        if (code)
            return code;
        out->size += size;
        if (in->size == 0 && size == 0)
            return SL_OK; /* all input is used and no output pending */
        if (in->size == before && size == 0)
            return SL_MALFORMED; /* no progress */
    }
    return SL_OK;
}
