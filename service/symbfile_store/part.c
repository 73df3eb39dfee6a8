/* One part of an upload: decompresses it, determines its mode, and decodes it while it arrives. */
#include "symbfile_store/symbfile_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum {
    COMPRESSION_HEAD = 4,
    SYMBFILE_HEAD = 8,
    OUT_STEP = 256 * 1024,
    ZSTD_WINDOW_LOG = 23 /* 8 MiB, as for HTTP: RFC 9659 */
};
enum part_coding { CODING_UNKNOWN, CODING_PLAIN, CODING_ZSTD, CODING_GZIP };

struct symbfile_part {
    bool first, alone; /* part 0; the only part */
    enum symbfile_mode mode;
    struct sl_symbfile_sink ignore;
    struct sl_symbfile_reader *reader;
    uint64_t received, inflated, max_inflated;
    /* compression */
    uint8_t head[COMPRESSION_HEAD];
    size_t head_size;
    enum part_coding coding;
    z_stream zlib;
    ZSTD_DStream *zstd;
    bool ended;  /* a stream is complete; another may follow */
    bool scarce; /* decompression ran out of memory */
    uint8_t *out;
    /* for later parts: their first inflated bytes */
    uint8_t begin[SYMBFILE_HEAD];
    size_t begin_size;
};

static enum sl_code ignore_range(struct sl_symbfile_sink *sink, const struct sl_symbfile_range *range,
                                 struct sl_error *error)
{
    (void)sink, (void)range, (void)error;
    return SL_OK;
}

static enum sl_code ignore_pad(struct sl_symbfile_sink *sink, const struct sl_symbfile_pad *pad, struct sl_error *error)
{
    (void)sink, (void)pad, (void)error;
    return SL_OK;
}

/* Creates the decoder of part `number` of `count`. Without a sink the records are decoded, to check them, and dropped. */
struct symbfile_part *symbfile_part_new(uint64_t number, uint64_t count, uint64_t max_inflated,
                                        struct sl_symbfile_sink *sink)
{
    struct symbfile_part *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->ignore = (struct sl_symbfile_sink){.range = ignore_range, .pad = ignore_pad};
    p->reader = sl_symbfile_reader_new(sink ? sink : &p->ignore);
    p->first = number == 0;
    p->alone = count == 1;
    p->mode = SYMBFILE_WHOLE;
    p->max_inflated = max_inflated;
    if (p->reader)
        return p;
    free(p);
    return NULL;
}

/* Frees the decoder, which may be NULL, in any state. */
void symbfile_part_free(struct symbfile_part *p)
{
    if (!p)
        return;
    sl_symbfile_reader_free(p->reader);
    if (p->coding == CODING_GZIP)
        inflateEnd(&p->zlib);
    ZSTD_freeDStream(p->zstd);
    free(p->out);
    free(p);
}

enum symbfile_mode symbfile_part_mode(const struct symbfile_part *p)
{
    return p->mode;
}

uint64_t symbfile_part_records(const struct symbfile_part *p)
{
    return sl_symbfile_reader_records(p->reader);
}

uint64_t symbfile_part_inflated(const struct symbfile_part *p)
{
    return p->inflated;
}

bool symbfile_part_is_truncated(const struct symbfile_part *p)
{
    return sl_symbfile_reader_is_truncated(p->reader);
}

/* ---- decoding ---- */

/* Converts the decoder's result. Malformed symbfiles have error codes from 1200 on, one for each problem, so that clients
 * can tell them apart. */
static bool decoded(struct symbfile_part *p, enum sl_code code, const struct sl_error *error,
                    struct symbfile_failure *failure)
{
    char number[8];
    if (code == SL_OK)
        return true;
    if (code != SL_MALFORMED) {
        symbfile_fail_with_cause(failure, code, error->message);
        return false;
    }
    snprintf(number, sizeof number, "%d", 1200 + (int)sl_symbfile_reader_problem(p->reader) % 100);
    symbfile_fail(failure, 400, number, "Symbfile is malformed: %.200s.", error->message);
    return false;
}

static bool feed_reader(struct symbfile_part *p, struct sl_bytes bytes, struct symbfile_failure *failure)
{
    struct sl_error error = {0};
    enum sl_code code = sl_symbfile_reader_feed(p->reader, bytes, &error);
    return decoded(p, code, &error, failure);
}

/* Decodes inflated bytes. The first part must be a symbfile. A later one is a symbfile of its own if it begins with the magic, which may
 * arrive in several pieces; otherwise it continues the symbfile of the first part and is not decoded here. False with `failure` if it is
 * malformed or too large. */
static bool decode_inflated(struct symbfile_part *p, struct sl_bytes bytes, struct symbfile_failure *failure)
{
    p->inflated += bytes.size;
    if (p->inflated > p->max_inflated) {
        symbfile_fail(failure, 413, "1108", "Upload is too large.");
        return false;
    }
    if (p->first)
        return feed_reader(p, bytes, failure);
    if (p->mode == SYMBFILE_PIECE)
        return true;
    if (p->begin_size < SYMBFILE_HEAD) {
        size_t size = SYMBFILE_HEAD - p->begin_size < bytes.size ? SYMBFILE_HEAD - p->begin_size : bytes.size;
        memcpy(p->begin + p->begin_size, bytes.data, size);
        p->begin_size += size;
        bytes.data += size;
        bytes.size -= size;
        if (p->begin_size < SYMBFILE_HEAD)
            return true;
        struct sl_bytes head = {p->begin, SYMBFILE_HEAD};
        if (!sl_symbfile_detect(head)) {
            p->mode = SYMBFILE_PIECE;
            return true;
        }
        if (!feed_reader(p, head, failure))
            return false;
    }
    return feed_reader(p, bytes, failure);
}

/* ---- compression ---- */

/* Called when decompression fails: reports the error. If the compression magic of a later part was a coincidence, the part
 * is accepted as a piece that is not compressed. */
static bool damaged(struct symbfile_part *p, struct symbfile_failure *failure)
{
    if (p->scarce) {
        symbfile_fail_with_cause(failure, SL_BUSY, "out of memory");
        return false;
    }
    if (!p->first && p->begin_size < SYMBFILE_HEAD) { /* not compressed, the magic was a coincidence */
        p->mode = SYMBFILE_PIECE;
        return true;
    }
    symbfile_fail(failure, 400, "1112", "Body could not be decompressed.");
    return false;
}

/* Decompresses one step: removes the used bytes from `in` and sets `*size` to the number of bytes in p->out. False if the stream is invalid
 * or, with p->scarce, when out of memory. */
static bool step_zstd(struct symbfile_part *p, struct sl_bytes *in, size_t *size)
{
    ZSTD_inBuffer input = {in->data, in->size, 0};
    ZSTD_outBuffer output = {p->out, OUT_STEP, 0};
    size_t result = ZSTD_decompressStream(p->zstd, &output, &input);
    if (ZSTD_isError(result)) {
        p->scarce = ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation;
        return false;
    }
    in->data += input.pos;
    in->size -= input.pos;
    *size = output.pos;
    p->ended = result == 0;
    return true;
}

/* Decodes a piece of gzip data to `out`. After the end of a member the next one begins with a reset decoder. False: see step_zstd(). */
static bool step_gzip(struct symbfile_part *p, struct sl_bytes *in, size_t *size)
{
    if (p->ended && inflateReset(&p->zlib) != Z_OK)
        return false;
    uInt given = in->size > (1u << 30) ? 1u << 30 : (uInt)in->size; /* zlib counts input in 32 bits */
    p->zlib.next_in = (Bytef *)(uintptr_t)in->data;
    p->zlib.avail_in = given;
    p->zlib.next_out = p->out;
    p->zlib.avail_out = OUT_STEP;
    int result = inflate(&p->zlib, Z_NO_FLUSH);
    in->data += given - p->zlib.avail_in;
    in->size -= given - p->zlib.avail_in;
    *size = OUT_STEP - p->zlib.avail_out;
    p->ended = result == Z_STREAM_END;
    p->scarce = result == Z_MEM_ERROR;
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR;
}

/* Decompresses all of `in` and decodes it. Ends early if the part turns out to be a piece, whose bytes are not needed. False with
 * `failure`. */
static bool inflate_all(struct symbfile_part *p, struct sl_bytes in, struct symbfile_failure *failure)
{
    size_t size = 0;
    while (p->mode != SYMBFILE_PIECE) {
        size_t before = in.size;
        if (in.size == 0 && (size < OUT_STEP || p->ended))
            return true; /* the output buffer was not filled: the decoder holds nothing back */
        if (!(p->coding == CODING_ZSTD ? step_zstd(p, &in, &size) : step_gzip(p, &in, &size)))
            return damaged(p, failure);
        if (size && !decode_inflated(p, (struct sl_bytes){p->out, size}, failure))
            return false;
        if (in.size == before && size == 0)
            return in.size == 0 || damaged(p, failure); /* no progress although there is input */
    }
    return true;
}

/* Chooses the decoder by the magic: zstd, gzip, or none. False when out of memory. */
static bool open_coding(struct symbfile_part *p)
{
    static const uint8_t zstd[] = {0x28, 0xB5, 0x2F, 0xFD}, gzip[] = {0x1F, 0x8B};
    p->coding = CODING_PLAIN;
    if (p->head_size == COMPRESSION_HEAD && memcmp(p->head, zstd, 4) == 0) {
        p->zstd = ZSTD_createDStream();
        if (!p->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(p->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG)))
            return false;
        p->coding = CODING_ZSTD;
    } else if (p->head_size >= 2 && memcmp(p->head, gzip, 2) == 0) {
        /* 15: the largest window; 16: with a gzip header */
        if (inflateInit2(&p->zlib, 15 + 16) != Z_OK)
            return false;
        p->coding = CODING_GZIP;
    }
    p->out = p->coding == CODING_PLAIN ? NULL : malloc(OUT_STEP);
    return p->coding == CODING_PLAIN || p->out;
}

static bool decode_received(struct symbfile_part *p, struct sl_bytes bytes, struct symbfile_failure *failure)
{
    return p->coding == CODING_PLAIN ? decode_inflated(p, bytes, failure) : inflate_all(p, bytes, failure);
}

/* Called when the first bytes are known: they determine the decoder. */
static bool symbfile_part_begin(struct symbfile_part *p, struct symbfile_failure *failure)
{
    if (open_coding(p))
        return decode_received(p, (struct sl_bytes){p->head, p->head_size}, failure);
    symbfile_fail_with_cause(failure, SL_BUSY, "out of memory");
    return false;
}

/* Decodes the next bytes of the body. Waits for COMPRESSION_HEAD bytes first, by which the compression is recognised. */
bool symbfile_part_feed(struct symbfile_part *p, struct sl_bytes bytes, struct symbfile_failure *failure)
{
    p->received += bytes.size;
    if (p->coding == CODING_UNKNOWN) {
        size_t size = COMPRESSION_HEAD - p->head_size < bytes.size ? COMPRESSION_HEAD - p->head_size : bytes.size;
        memcpy(p->head + p->head_size, bytes.data, size);
        p->head_size += size;
        bytes.data += size;
        bytes.size -= size;
        if (p->head_size < COMPRESSION_HEAD)
            return true;
        if (!symbfile_part_begin(p, failure))
            return false;
    }
    return bytes.size == 0 || decode_received(p, bytes, failure);
}

/* Checks the end of the part and sets its mode. A first part that ends too early, in the compressed stream or in the
 * symbfile, is accepted if there are later parts, which contain the rest. */
bool symbfile_part_finish(struct symbfile_part *p, struct symbfile_failure *failure)
{
    struct sl_error error = {0};
    if (p->received == 0) {
        symbfile_fail(failure, 400, "1111", "Upload is empty.");
        return false;
    }
    if (p->coding == CODING_UNKNOWN && !symbfile_part_begin(p, failure))
        return false;
    bool cut = p->coding != CODING_PLAIN && !p->ended;
    if (!p->first && p->begin_size < SYMBFILE_HEAD)
        p->mode = SYMBFILE_PIECE;
    if (p->mode == SYMBFILE_PIECE)
        return true;
    if (cut && (!p->first || p->alone))
        return damaged(p, failure);
    enum sl_code code = cut ? SL_MALFORMED : sl_symbfile_reader_finish(p->reader, &error);
    enum sl_symbfile_problem problem = sl_symbfile_reader_problem(p->reader);
    bool unfinished = cut || problem == SL_SYMBFILE_SHORT || problem == SL_SYMBFILE_TRUNCATED;
    if (code != SL_OK && p->first && !p->alone && unfinished) { /* the rest is in later parts */
        p->mode = SYMBFILE_OPEN;
        return true;
    }
    return decoded(p, code, &error, failure);
}
