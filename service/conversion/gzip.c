/* Converter that checks files that are uploaded alone (not in an archive), as they are or as gzip files. */
#include "conversion/archives.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <zlib.h>

/* INFLATE_PIECE: bytes that are handled at once. MAX_HEAD: the most bytes of the contents' beginning that are written to the output. */
enum { INFLATE_PIECE = 256 << 10, MAX_HEAD = 64 << 10 };

/* Returns the size of the gzip header (RFC 1952, section 2.3); 0 if it is not gzip. */
static size_t read_header(struct sl_bytes file)
{
    enum { HAS_CRC = 2, HAS_EXTRA = 4, HAS_NAME = 8, HAS_COMMENT = 16 };
    struct sl_reader r = sl_reader(file, false);
    /* the magic number; method 8 is deflate */
    if (sl_read_u8(&r) != 0x1F || sl_read_u8(&r) != 0x8B || sl_read_u8(&r) != 8)
        return 0;
    uint8_t flags = sl_read_u8(&r);
    /* time of modification, extra flags, operating system */
    sl_reader_skip(&r, 6);
    if (flags & HAS_EXTRA)
        sl_reader_skip(&r, sl_read_u16(&r));
    if (flags & HAS_NAME)
        sl_read_cstr(&r);
    if (flags & HAS_COMMENT)
        sl_read_cstr(&r);
    if (flags & HAS_CRC)
        sl_reader_skip(&r, 2);
    return r.failed ? 0 : sl_reader_offset(&r);
}

struct gzip_checking {
    struct conversion *conversion;
    const struct gzip_check_options *options;
    struct gzip_check_result *result;
    EVP_MD_CTX *md5;
    struct sl_buf head; /* the beginning of the contents */
    bool no_memory;     /* zlib could not get its memory */
};

/* Counts and hashes bytes of the contents; keeps the first head_size (at most MAX_HEAD) bytes of the contents in c->head. False if they
 * exceed max_size, the conversion has used up its time, which sl_budget_spend() checks, or hashing failed. */
static bool add_contents(struct gzip_checking *c, const uint8_t *data, size_t size)
{
    size_t most = c->options->head_size < MAX_HEAD ? c->options->head_size : MAX_HEAD, free_bytes = most - c->head.size;
    sl_buf_add(&c->head, data, size < free_bytes ? size : free_bytes);
    c->result->size += size;
    return c->result->size <= c->options->max_size && sl_budget_spend(&c->conversion->budget, 1) &&
           EVP_DigestUpdate(c->md5, data, size) == 1;
}

/* Counts and hashes a file that is not compressed, piece by piece, so that add_contents() checks the time limit after each. False if it
 * fails. */
static bool read_plain(struct gzip_checking *c, struct sl_bytes file)
{
    for (size_t at = 0; at < file.size; at += INFLATE_PIECE) {
        size_t left = file.size - at;
        if (!add_contents(c, file.data + at, left < INFLATE_PIECE ? left : INFLATE_PIECE))
            return false;
    }
    return true;
}

/* Decompresses the only member of a gzip file; `stream` is the file after its header. False if it is damaged, something follows it, or
 * add_contents() fails. */
static bool inflate_only(struct gzip_checking *c, struct sl_bytes stream)
{
    z_stream z = {0};
    uint8_t *piece = malloc(INFLATE_PIECE);
    uLong crc = crc32(0, NULL, 0);
    /* -MAX_WBITS: raw deflate, since `stream` begins after the header */
    int status = piece && inflateInit2(&z, -MAX_WBITS) == Z_OK ? Z_OK : Z_MEM_ERROR;
    size_t in = 0;
    while (status == Z_OK) { /* a truncated stream ends with Z_BUF_ERROR */
        uInt given = stream.size - in > INFLATE_PIECE ? INFLATE_PIECE : (uInt)(stream.size - in);
        z.next_in = (Bytef *)(stream.data + in);
        z.avail_in = given;
        z.next_out = piece;
        z.avail_out = INFLATE_PIECE;
        status = inflate(&z, Z_NO_FLUSH);
        in += given - z.avail_in;
        crc = crc32(crc, piece, INFLATE_PIECE - z.avail_out);
        if (!add_contents(c, piece, INFLATE_PIECE - z.avail_out))
            status = Z_DATA_ERROR;
    }
    if (piece) /* else inflateInit2() was not called */
        inflateEnd(&z);
    free(piece);
    c->no_memory = status == Z_MEM_ERROR;
    struct sl_reader r = sl_reader((struct sl_bytes){stream.data + in, stream.size - in}, false);
    /* the trailer: CRC-32 and size modulo 2^32 of the contents */
    return status == Z_STREAM_END && stream.size - in == 8 && sl_read_u32(&r) == crc &&
           sl_read_u32(&r) == (uint32_t)c->result->size;
}

/* Reads the contents of the file, plain or gzip. False if a gzip file is invalid, a limit is exceeded, or hashing or memory failed. */
static bool read_contents(struct gzip_checking *c, struct sl_bytes file)
{
    if (c->options->is_plain)
        return read_plain(c, file);
    size_t header = c->result->header_size = read_header(file);
    return header && inflate_only(c, (struct sl_bytes){file.data + header, file.size - header});
}

/* Implements converter_gzip_check: checks that a file is a gzip file with one member (with `is_plain`: any file). The result is size and
 * MD5 of its contents; their first `head_size` bytes are the output, if the call has one. */
static enum sl_code check_gzip(struct conversion *conversion, const struct converter_call *call, void *result,
                               struct sl_error *error)
{
    struct gzip_checking c = {.conversion = conversion,
                              .options = converter_options(call),
                              .result = result,
                              .md5 = EVP_MD_CTX_new(),
                              .head = {.budget = &conversion->budget}};
    enum sl_code code =
        c.md5 && EVP_DigestInit_ex(c.md5, EVP_md5(), NULL) == 1 ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK && !read_contents(&c, converter_input_bytes(call, INPUT_FILE)))
        code = sl_budget_exhausted(&conversion->budget) || c.no_memory
                   ? sl_budget_fail(&conversion->budget, error)
                   : sl_fail(error, SL_MALFORMED, "the file is larger than announced, or no valid gzip file");
    if (code == SL_OK && (c.head.failed || EVP_DigestFinal_ex(c.md5, c.result->md5, NULL) != 1))
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK && call->out >= 0)
        code = write_whole_file(call->out, sl_buf_bytes(&c.head), error);
    EVP_MD_CTX_free(c.md5);
    sl_buf_free(&c.head);
    return code;
}

/* Accepts every result of a worker (converter.check_result): it has only numbers, which the caller compares with what the client has
 * announced. */
static bool check_result(const void *result)
{
    (void)result;
    return true;
}

const struct converter converter_gzip_check = {"gzip_check", sizeof(struct gzip_check_options),
                                               sizeof(struct gzip_check_result), check_gzip, check_result};
