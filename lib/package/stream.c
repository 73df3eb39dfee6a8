/* Decompresses step by step: gzip (RFC 1952, all members), xz (all streams), zstd (RFC 8878, all frames), bzip2 (all streams). */
#include <bzlib.h>
#include <lzma.h>
#include <stddef.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "package/impl.h"

/* PIECE: bytes decompressed at a time. STEP_BYTES: decompressed bytes that cost one step of the work budget. STORED_PIECE: bytes returned
 * at a time from a file that is not compressed. */
enum { PIECE = 256 << 10, STEP_BYTES = 64, STORED_PIECE = 1 << 20 };
#define RATIO_COUNTS_FROM (UINT64_C(256) << 20) /* bytes: sl_package_limits.max_ratio is checked above it */
#define DEFAULT_RATIO     1000
#define DECODER_MEMORY    (UINT64_C(256) << 20) /* bytes that one decoder may use: dictionaries of xz -9 have 64 MiB */
#define ZSTD_MEMORY       (UINT64_C(128) << 20) /* bytes: libzstd's default limit of a window */
#define INDEX_MEMORY      (UINT64_C(64) << 20)  /* bytes for the index of an xz file: a million blocks */

struct stream {
    struct sl_bytes packed;
    size_t at;
    enum coding coding;
    const struct sl_package_limits *limits;
    uint64_t produced, begun_at; /* decompressed bytes since stream_open; offset in `packed` where it began */
    uint64_t drop;               /* decompressed bytes to leave out before the offset that was asked for */
    bool ended;
    z_stream gzip;
    lzma_stream xz;
    bz_stream bzip2;
    ZSTD_DStream *zstd;
    /* xz, if by_blocks: each block is found by the index and decoded by itself */
    lzma_index *index;
    lzma_index_iter block;
    lzma_block header; /* of the block; the decoder uses it until the end of the block */
    bool by_blocks;
    uint8_t out[PIECE]; /* what was decompressed last */
};

/* Returns the compression of a file by its magic number; CODING_STORED if it has none of these. */
enum coding coding_detect(struct sl_bytes bytes)
{
    static const struct {
        uint8_t magic[6];
        unsigned size;
        enum coding coding;
    } rows[] = {
        {{0x1F, 0x8B, 8}, 3, CODING_GZIP},
        {{0xFD, '7', 'z', 'X', 'Z', 0}, 6, CODING_XZ},
        {{0x28, 0xB5, 0x2F, 0xFD}, 4, CODING_ZSTD},
        {{'B', 'Z', 'h'}, 3, CODING_BZIP2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (bytes.size >= rows[i].size && memcmp(bytes.data, rows[i].magic, rows[i].size) == 0)
            return rows[i].coding;
    return CODING_STORED;
}

static enum sl_code damaged(const struct stream *s, struct sl_error *error)
{
    static const char *const names[] = {"", "gzip", "xz", "zstd", "bzip2"};
    return sl_fail(error, SL_MALFORMED, "the package's %s data is damaged or cut off at byte %zu", names[s->coding],
                   s->at);
}

/* Returns the error of a decoder that needs more memory than its limit of `bytes`. */
static enum sl_code needs_memory(uint64_t bytes, struct sl_error *error)
{
    return sl_fail(error, SL_UNSUPPORTED, "decompressing the package needs more than %llu MiB of memory",
                   (unsigned long long)(bytes >> 20));
}

/* ---- xz by blocks: the index at the end of the file has the offset of each block ---- */

/* Reads the indexes of all streams of an xz file, which are behind the blocks; NULL if they are damaged or need too much memory. */
static lzma_index *read_xz_index(struct sl_bytes packed)
{
    lzma_stream strm = LZMA_STREAM_INIT;
    lzma_index *index = NULL;
    if (lzma_file_info_decoder(&strm, &index, INDEX_MEMORY, packed.size) != LZMA_OK)
        return NULL;
    strm.next_in = packed.data;
    strm.avail_in = packed.size;
    lzma_ret result;
    /* Each step reads a header, a footer or an index and may ask to seek. The loop ends, because positions only go back. */
    while ((result = lzma_code(&strm, LZMA_RUN)) == LZMA_OK || result == LZMA_SEEK_NEEDED) {
        if (result == LZMA_OK && strm.avail_in)
            continue;
        if (result == LZMA_OK || strm.seek_pos > packed.size) /* wants more than the file has */
            break;
        strm.next_in = packed.data + strm.seek_pos;
        strm.avail_in = packed.size - (size_t)strm.seek_pos;
    }
    lzma_end(&strm);
    return result == LZMA_STREAM_END ? index : NULL;
}

/* Prepares the decoder for the block at which the iterator s->block is. False if the block's header is damaged or not inside the file, or
 * if decoding needs more than DECODER_MEMORY. */
static bool begin_xz_block(struct stream *s)
{
    lzma_filter filters[LZMA_FILTERS_MAX + 1];
    uint64_t from = s->block.block.compressed_file_offset;
    if (from >= s->packed.size)
        return false;
    lzma_block *header = &s->header;
    *header = (lzma_block){.check = s->block.stream.flags->check, .filters = filters};
    header->header_size = lzma_block_header_size_decode(s->packed.data[from]);
    if (s->packed.data[from] == 0 || /* the first byte of an index, not of a block */
        header->header_size > s->packed.size - from ||
        lzma_block_header_decode(header, NULL, s->packed.data + from) != LZMA_OK)
        return false;
    bool good = lzma_block_compressed_size(header, s->block.block.unpadded_size) == LZMA_OK &&
                lzma_raw_decoder_memusage(filters) <= DECODER_MEMORY && lzma_block_decoder(&s->xz, header) == LZMA_OK;
    lzma_filters_free(filters, NULL);
    header->filters = NULL; /* the decoder has copied them */
    s->at = (size_t)(from + header->header_size);
    return good;
}

/* Prepares to decode from the block that contains the offset. False if there is only one block or the index or the block cannot be used:
 * the file then has to be decoded from its beginning. */
static bool seek_xz(struct stream *s, uint64_t offset)
{
    s->index = read_xz_index(s->packed);
    if (!s->index || lzma_index_block_count(s->index) < 2)
        return false;
    lzma_index_iter_init(&s->block, s->index);
    if (lzma_index_iter_locate(&s->block, offset) || !begin_xz_block(s))
        return false;
    s->by_blocks = true;
    s->drop = offset - s->block.block.uncompressed_file_offset;
    return true;
}

bool stream_is_seekable(struct sl_bytes packed)
{
    enum coding coding = coding_detect(packed);
    lzma_index *index = coding == CODING_XZ ? read_xz_index(packed) : NULL;
    bool has_blocks = index && lzma_index_block_count(index) > 1;
    lzma_index_end(index, NULL);
    return coding == CODING_STORED || has_blocks || (coding == CODING_ZSTD && zstd_has_frames(packed));
}

/* ---- opening ---- */

/* Prepares the decoder for output from `offset` on: at the block that contains it, or, if seek_xz() fails, at the start of the file.
 * s->drop becomes the number of bytes to leave out before the offset. False when out of memory. */
static bool open_xz(struct stream *s, uint64_t offset)
{
    s->xz = (lzma_stream)LZMA_STREAM_INIT;
    if (offset && seek_xz(s, offset))
        return true;
    s->at = 0; /* begin_xz_block() may have changed it */
    s->drop = offset;
    return lzma_stream_decoder(&s->xz, DECODER_MEMORY, LZMA_CONCATENATED) == LZMA_OK;
}

/* Prepares the decoder for output from `offset` on, at the frame that contains it. s->drop becomes the number of bytes to leave out before
 * the offset. False when out of memory. */
static bool open_zstd(struct stream *s, uint64_t offset)
{
    struct block_place place = zstd_find_frame(s->packed, offset);
    s->at = (size_t)place.packed_offset;
    s->drop = offset - place.offset;
    s->zstd = ZSTD_createDStream();
    return s->zstd && !ZSTD_isError(ZSTD_initDStream(s->zstd));
}

/* Moves to the offset in a file that is not compressed; to its end if the offset is beyond that. Always true. */
static bool open_stored(struct stream *s, uint64_t offset)
{
    s->at = offset < s->packed.size ? (size_t)offset : s->packed.size;
    return true;
}

/* Prepares the decoder for output from `offset` on; s->drop becomes the number of bytes to leave out before it. gzip and bzip2 have no
 * index: all before the offset is decoded and left out. False when out of memory. */
static bool open_coding(struct stream *s, uint64_t offset)
{
    switch (s->coding) {
    case CODING_STORED: return open_stored(s, offset);
    case CODING_XZ: return open_xz(s, offset);
    case CODING_ZSTD: return open_zstd(s, offset);
    /* 15: the largest window, as a power of two; adding 16 selects the gzip format */
    case CODING_GZIP: s->drop = offset; return inflateInit2(&s->gzip, 15 + 16) == Z_OK;
    case CODING_BZIP2: break;
    }
    s->drop = offset;
    return BZ2_bzDecompressInit(&s->bzip2, 0, 0) == BZ_OK; /* no messages; the usual, not the small, decoder */
}

struct stream *stream_open(struct sl_bytes packed, uint64_t offset, const struct sl_package_limits *limits,
                           struct sl_error *error)
{
    struct stream *s = malloc(sizeof *s);
    if (s)
        memset(s, 0, offsetof(struct stream, out)); /* `out`, the last member, is written before it is read */
    if (!s) {
        sl_fail(error, SL_BUSY, "out of memory");
        return NULL;
    }
    s->packed = packed;
    s->limits = limits;
    s->coding = coding_detect(packed);
    if (!open_coding(s, offset)) {
        stream_close(s);
        sl_fail(error, SL_BUSY, "out of memory");
        return NULL;
    }
    s->begun_at = s->at; /* compressed bytes are counted from here on (max_ratio) */
    return s;
}

void stream_close(struct stream *s)
{
    if (!s)
        return;
    if (s->coding == CODING_GZIP)
        inflateEnd(&s->gzip);
    else if (s->coding == CODING_BZIP2)
        BZ2_bzDecompressEnd(&s->bzip2);
    else if (s->coding == CODING_XZ)
        lzma_end(&s->xz);
    ZSTD_freeDStream(s->zstd);
    lzma_index_end(s->index, NULL);
    free(s);
}

/* Charges the work budget for the end of a gzip member or bzip2 stream: a small file may have very many empty ones. False if the budget is
 * used up. */
static bool charge_stream(struct stream *s)
{
    enum { STREAM_STEPS = 1000 };
    return !s->limits->budget || sl_budget_spend(s->limits->budget, STREAM_STEPS);
}

/* ---- one function for each compression ---- */

/* Decodes gzip until s->out is full or the input ends; `*size` is the number of bytes, 0 at the end. zlib counts with 32 bits, so it is
 * given at most 1 GiB of input at a time. */
static enum sl_code next_gzip(struct stream *s, size_t *size, struct sl_error *error)
{
    z_stream *z = &s->gzip;
    z->next_out = s->out;
    z->avail_out = PIECE;
    while (z->avail_out && !s->ended) {
        size_t left = s->packed.size - s->at, part = left < (1u << 30) ? left : 1u << 30;
        z->next_in = (Bytef *)(uintptr_t)(s->packed.data + s->at);
        z->avail_in = (uInt)part;
        int result = inflate(z, Z_NO_FLUSH);
        s->at += part - z->avail_in;
        if (result == Z_STREAM_END) { /* the end of a member: another one, padding or nothing follows */
            s->ended = coding_detect(sl_bytes_from(s->packed, s->at)) != CODING_GZIP;
            inflateReset(z);
            if (!charge_stream(s)) /* a small file may have very many empty members */
                return sl_budget_fail(s->limits->budget, error);
        } else if (result == Z_MEM_ERROR) {
            return sl_fail(error, SL_BUSY, "out of memory");
        } else if (result != Z_OK) {
            return damaged(s, error);
        }
    }
    *size = PIECE - z->avail_out;
    return SL_OK;
}

/* Decodes bzip2 until s->out is full or the input ends; `*size` is the number of bytes, 0 at the end. Several streams may follow each
 * other, as `bzip2 -d` accepts. libbz2 is given at most 1 GiB of input at a time, because it counts with 32 bits. */
static enum sl_code next_bzip2(struct stream *s, size_t *size, struct sl_error *error)
{
    bz_stream *z = &s->bzip2;
    z->next_out = (char *)s->out;
    z->avail_out = PIECE;
    while (z->avail_out && !s->ended) {
        size_t left = s->packed.size - s->at, part = left < (1u << 30) ? left : 1u << 30;
        z->next_in = (char *)(uintptr_t)(s->packed.data + s->at);
        z->avail_in = (unsigned)part;
        unsigned room = z->avail_out; /* bytes that are left in s->out */
        int result = BZ2_bzDecompress(z);
        s->at += part - z->avail_in;
        if (result == BZ_STREAM_END) {
            s->ended = coding_detect(sl_bytes_from(s->packed, s->at)) != CODING_BZIP2;
            BZ2_bzDecompressEnd(z);
            /* libbz2 has no reset: end the decoder and begin another at the same output */
            char *out = z->next_out;
            room = z->avail_out;
            *z = (bz_stream){.bzalloc = NULL};
            if (BZ2_bzDecompressInit(z, 0, 0) != BZ_OK)
                return sl_fail(error, SL_BUSY, "out of memory");
            z->next_out = out;
            z->avail_out = room;
            if (!charge_stream(s)) /* a small file may have very many empty streams */
                return sl_budget_fail(s->limits->budget, error);
        } else if (result == BZ_MEM_ERROR) {
            return sl_fail(error, SL_BUSY, "out of memory");
        } else if (result != BZ_OK || (part == z->avail_in && room == z->avail_out)) { /* no progress: cut off */
            return damaged(s, error);
        }
    }
    *size = PIECE - z->avail_out;
    return SL_OK;
}

/* Returns the error for a failure of libzstd: SL_BUSY if out of memory, SL_UNSUPPORTED if the frame needs a larger window than libzstd
 * allows, else SL_MALFORMED. */
static enum sl_code fail_zstd(const struct stream *s, ZSTD_ErrorCode reason, struct sl_error *error)
{
    if (reason == ZSTD_error_memory_allocation)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (reason == ZSTD_error_frameParameter_windowTooLarge)
        return needs_memory(ZSTD_MEMORY, error);
    return damaged(s, error);
}

/* Decodes zstd until s->out is full or the input ends; `*size` is the number of bytes, 0 at the end. */
static enum sl_code next_zstd(struct stream *s, size_t *size, struct sl_error *error)
{
    ZSTD_inBuffer in = {s->packed.data, s->packed.size, s->at};
    ZSTD_outBuffer out = {s->out, PIECE, 0};
    while (out.pos < out.size && !s->ended) {
        size_t was_in = in.pos, was_out = out.pos, result = ZSTD_decompressStream(s->zstd, &out, &in);
        s->at = in.pos;
        if (ZSTD_isError(result))
            return fail_zstd(s, ZSTD_getErrorCode(result), error);
        if (result == 0 && in.pos == in.size) /* 0: the end of a frame, here the last one */
            s->ended = true;
        else if (in.pos == was_in && out.pos == was_out) /* cut off */
            return damaged(s, error);
    }
    *size = out.pos;
    return SL_OK;
}

/* Returns the error for a failure of liblzma: SL_BUSY if out of memory, SL_UNSUPPORTED if decoding needs more memory than DECODER_MEMORY,
 * else SL_MALFORMED. */
static enum sl_code fail_xz(const struct stream *s, lzma_ret result, struct sl_error *error)
{
    if (result == LZMA_MEM_ERROR)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (result == LZMA_MEMLIMIT_ERROR)
        return needs_memory(DECODER_MEMORY, error);
    return damaged(s, error);
}

/* Prepares the decoder for the block after the one that has ended. After the last block it sets s->ended. */
static enum sl_code end_xz_block(struct stream *s, struct sl_error *error)
{
    if (lzma_index_iter_next(&s->block, LZMA_INDEX_ITER_NONEMPTY_BLOCK)) {
        s->ended = true;
        return SL_OK;
    }
    return begin_xz_block(s) ? SL_OK : damaged(s, error);
}

/* Decodes xz until s->out is full or the input ends; `*size` is the number of bytes, 0 at the end. If blocks are decoded by themselves
 * (s->by_blocks), LZMA_STREAM_END is the end of a block. Else it is the end of the file, and LZMA_FINISH makes liblzma report input that is
 * cut off. */
static enum sl_code next_xz(struct stream *s, size_t *size, struct sl_error *error)
{
    s->xz.next_out = s->out;
    s->xz.avail_out = PIECE;
    while (s->xz.avail_out && !s->ended) {
        s->xz.next_in = s->packed.data + s->at;
        s->xz.avail_in = s->packed.size - s->at;
        lzma_ret result = lzma_code(&s->xz, s->by_blocks ? LZMA_RUN : LZMA_FINISH);
        s->at = s->packed.size - s->xz.avail_in;
        if (result == LZMA_STREAM_END && s->by_blocks) {
            enum sl_code code = end_xz_block(s, error);
            if (code != SL_OK)
                return code;
        } else if (result == LZMA_STREAM_END) {
            s->ended = true;
        } else if (result != LZMA_OK) {
            return fail_xz(s, result, error);
        }
    }
    *size = PIECE - s->xz.avail_out;
    return SL_OK;
}

/* ---- reading ---- */

/* Sets `*piece` to the next decompressed bytes, at most PIECE in s->out. If the file is not compressed, `*piece` is a view of the next
 * STORED_PIECE bytes of it. Empty at the end. */
static enum sl_code decode_next(struct stream *s, struct sl_bytes *piece, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    size_t size = 0;
    *piece = (struct sl_bytes){s->out, 0};
    switch (s->coding) {
    case CODING_STORED:
        *piece = sl_bytes_part(s->packed, s->at, STORED_PIECE);
        s->at += piece->size;
        return SL_OK;
    case CODING_GZIP: code = next_gzip(s, &size, error); break;
    case CODING_BZIP2: code = next_bzip2(s, &size, error); break;
    case CODING_ZSTD: code = next_zstd(s, &size, error); break;
    case CODING_XZ: code = next_xz(s, &size, error); break;
    }
    piece->size = size;
    return code;
}

/* Counts `size` decompressed bytes. SL_MALFORMED if all bytes so far exceed max_ratio times the compressed ones; this is checked only above
 * RATIO_COUNTS_FROM (256 MiB). Then grows the work budget by these bytes and charges the work; an error of the budget if it is used up. */
static enum sl_code charge(struct stream *s, size_t size, struct sl_error *error)
{
    uint64_t ratio = s->limits->max_ratio ? s->limits->max_ratio : DEFAULT_RATIO;
    struct sl_budget *budget = s->limits->budget;
    s->produced += size;
    if (s->produced > RATIO_COUNTS_FROM && s->produced / ratio > s->at - s->begun_at)
        return sl_fail(error, SL_MALFORMED, "the package grows more than %llu times when decompressed",
                       (unsigned long long)ratio);
    if (!budget)
        return SL_OK;
    sl_budget_grow(budget, size);
    return sl_budget_spend(budget, size / STEP_BYTES + 1) ? SL_OK : sl_budget_fail(budget, error);
}

enum sl_code stream_next(struct stream *s, struct sl_bytes *piece, struct sl_error *error)
{
    do {
        enum sl_code code = decode_next(s, piece, error);
        if (code == SL_OK && piece->size)
            code = charge(s, piece->size, error);
        if (code != SL_OK)
            return code;
        if (s->drop >= piece->size && piece->size) { /* all of it is before the offset that was asked for */
            s->drop -= piece->size;
            continue;
        }
        break;
    } while (true);
    if (piece->size) {
        *piece = sl_bytes_from(*piece, s->drop);
        s->drop = 0;
    }
    return SL_OK;
}
