/* One part of an upload: decompresses and decodes it while it arrives; finds its mode, a whole symbfile or a piece of one. */
#include "symbfile_store/symbfile_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum {
    COMPRESSION_HEAD = 4,  /* bytes by which the compression is recognised */
    SYMBFILE_HEAD = 8,     /* bytes by which a symbfile is recognised */
    OUT_STEP = 256 * 1024, /* size of the buffer for decompressed bytes */
    ZSTD_WINDOW_LOG = 23   /* 8 MiB, as for HTTP: RFC 9659 */
};
enum part_coding { CODING_UNKNOWN, CODING_PLAIN, CODING_ZSTD, CODING_GZIP };

struct symbfile_part {
    bool first, alone; /* part 0; the only part */
    enum symbfile_mode mode;
    struct sl_symbfile_sink ignore; /* used if the caller wants no records */
    struct sl_symbfile_reader *reader;
    uint64_t received, inflated, max_inflated; /* bytes: as sent, after decompression, and the limit of the latter */
    /* compression */
    uint8_t head[COMPRESSION_HEAD];
    size_t head_size;
    enum part_coding coding;
    z_stream zlib;
    ZSTD_DStream *zstd;
    bool stream_ended; /* a stream is complete; another may follow */
    bool no_memory;    /* decompression ran out of memory */
    uint8_t *out;
    /* for parts with numbers from 1 on: their first bytes after decompression */
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

/* True if the decoder's result `code` is SL_OK; else sets the failure by it. Malformed symbfiles get error codes from 1200 on, one for each
 * problem, so that clients can tell the problems apart. */
static bool report_decoding(struct symbfile_part *p, enum sl_code code, const struct sl_error *error,
                            struct symbfile_failure *failure)
{
    char number[8];
    if (code == SL_OK)
        return true;
    if (code != SL_MALFORMED) {
        symbfile_fail_with_cause(failure, code, error->message);
        return false;
    }
    snprintf(number, sizeof number, "%d", 1200 + (int)sl_symbfile_reader_problem(p->reader) % 100); /* 1200 to 1299 */
    symbfile_fail(failure, 400, number, "Symbfile is malformed: %.200s.", error->message);
    return false;
}

static bool feed_reader(struct symbfile_part *p, struct sl_bytes bytes, struct symbfile_failure *failure)
{
    struct sl_error error = {0};
    enum sl_code code = sl_symbfile_reader_feed(p->reader, bytes, &error);
    return report_decoding(p, code, &error, failure);
}

/* Decodes decompressed bytes of the part. Part 0 must be a symbfile. A part with a higher number is a symbfile of its own if it begins
 * with the magic, whose bytes may arrive in several calls; otherwise it continues the symbfile of part 0 (SYMBFILE_PIECE) and is not
 * decoded here. False with `failure` if the part is malformed or too large. */
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

/* Called when decompression fails. A part other than part 0 may be an uncompressed piece of a split symbfile that only looks like a
 * compressed file: if fewer bytes than a symbfile's magic were decompressed, it is accepted as such a piece (true). Otherwise sets the
 * failure. */
static bool fail_decompression(struct symbfile_part *p, struct symbfile_failure *failure)
{
    if (p->no_memory) {
        symbfile_fail_with_cause(failure, SL_BUSY, "out of memory");
        return false;
    }
    if (!p->first && p->begin_size < SYMBFILE_HEAD) {
        p->mode = SYMBFILE_PIECE;
        return true;
    }
    symbfile_fail(failure, 400, "1112", "Body could not be decompressed.");
    return false;
}

/* Decompresses the next bytes of a zstd stream, at most OUT_STEP: removes the used bytes from `in` and sets `*size` to the number of
 * bytes in p->out. False if the stream is invalid or, with p->no_memory, when out of memory. */
static bool step_zstd(struct symbfile_part *p, struct sl_bytes *in, size_t *size)
{
    ZSTD_inBuffer input = {in->data, in->size, 0};
    ZSTD_outBuffer output = {p->out, OUT_STEP, 0};
    size_t result = ZSTD_decompressStream(p->zstd, &output, &input);
    if (ZSTD_isError(result)) {
        p->no_memory = ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation;
        return false;
    }
    in->data += input.pos;
    in->size -= input.pos;
    *size = output.pos;
    p->stream_ended = result == 0;
    return true;
}

/* Decompresses the next bytes of a gzip file, at most OUT_STEP: removes the used bytes from `in` and sets `*size` to the number of bytes
 * in p->out. Several gzip members may follow each other; the decoder is reset for each. False if the data is invalid or, with
 * p->no_memory, when out of memory. */
static bool step_gzip(struct symbfile_part *p, struct sl_bytes *in, size_t *size)
{
    if (p->stream_ended && inflateReset(&p->zlib) != Z_OK)
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
    p->stream_ended = result == Z_STREAM_END;
    p->no_memory = result == Z_MEM_ERROR;
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR; /* Z_BUF_ERROR: it needs more input */
}

/* Decompresses all of `in` and decodes it. Ends early if the part turns out to be a piece of a split symbfile (SYMBFILE_PIECE): such a
 * part is not decoded here. False with `failure`. */
static bool inflate_all(struct symbfile_part *p, struct sl_bytes in, struct symbfile_failure *failure)
{
    size_t size = 0;
    while (p->mode != SYMBFILE_PIECE) {
        size_t before = in.size;
        if (in.size == 0 && (size < OUT_STEP || p->stream_ended))
            return true; /* the output buffer was not filled: the decoder holds nothing back */
        if (!(p->coding == CODING_ZSTD ? step_zstd(p, &in, &size) : step_gzip(p, &in, &size)))
            return fail_decompression(p, failure);
        if (size && !decode_inflated(p, (struct sl_bytes){p->out, size}, failure))
            return false;
        if (in.size == before && size == 0)
            return in.size == 0 || fail_decompression(p, failure); /* no progress although there is input */
    }
    return true;
}

/* Chooses the decoder by the magic: zstd, gzip, or none. False when out of memory. */
static bool open_coding(struct symbfile_part *p)
{
    static const uint8_t zstd[] = {0x28, 0xB5, 0x2F, 0xFD}, gzip[] = {0x1F, 0x8B};
    p->coding = CODING_PLAIN;
    if (p->head_size == COMPRESSION_HEAD && memcmp(p->head, zstd, 4) == 0) {
        p->zstd = ZSTD_createDStream(); /* with a limit of the window, which is held in memory */
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

/* Decodes bytes as they were sent, after decompression if the part is compressed. False with `failure`. */
static bool decode_received(struct symbfile_part *p, struct sl_bytes bytes, struct symbfile_failure *failure)
{
    return p->coding == CODING_PLAIN ? decode_inflated(p, bytes, failure) : inflate_all(p, bytes, failure);
}

/* Called when the first COMPRESSION_HEAD bytes, or all of a shorter part, are in p->head: opens the decoder that they call for, and decodes
 * them. False with `failure`. */
static bool symbfile_part_begin(struct symbfile_part *p, struct symbfile_failure *failure)
{
    if (open_coding(p))
        return decode_received(p, (struct sl_bytes){p->head, p->head_size}, failure);
    symbfile_fail_with_cause(failure, SL_BUSY, "out of memory");
    return false;
}

/* Collects the first COMPRESSION_HEAD bytes, which show the compression, in p->head before it decodes anything. */
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

/* Checks the end of the part and sets its mode. If part 0 ends in the middle of its symbfile or compressed stream, it is accepted if
 * there are more parts, which contain the rest: mode SYMBFILE_OPEN. */
bool symbfile_part_finish(struct symbfile_part *p, struct symbfile_failure *failure)
{
    struct sl_error error = {0};
    if (p->received == 0) {
        symbfile_fail(failure, 400, "1111", "Upload is empty.");
        return false;
    }
    if (p->coding == CODING_UNKNOWN && !symbfile_part_begin(p, failure))
        return false;
    bool cut = p->coding != CODING_PLAIN && !p->stream_ended;
    if (!p->first && p->begin_size < SYMBFILE_HEAD) /* too short to be a symbfile of its own */
        p->mode = SYMBFILE_PIECE;
    if (p->mode == SYMBFILE_PIECE) /* decoded when all parts are there (store_check_set) */
        return true;
    if (cut && (!p->first || p->alone)) /* no other part can contain the rest */
        return fail_decompression(p, failure);
    enum sl_code code = cut ? SL_MALFORMED : sl_symbfile_reader_finish(p->reader, &error);
    enum sl_symbfile_problem problem = sl_symbfile_reader_problem(p->reader);
    bool unfinished = cut || problem == SL_SYMBFILE_SHORT || problem == SL_SYMBFILE_TRUNCATED;
    if (code != SL_OK && p->first && !p->alone && unfinished) { /* the rest is in later parts */
        p->mode = SYMBFILE_OPEN;
        return true;
    }
    return report_decoding(p, code, &error, failure);
}
