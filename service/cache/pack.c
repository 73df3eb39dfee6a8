/* Compresses entries for the shared cache (Redis or bucket) as zstd frames, and decompresses them. */
#include "cache/shared.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { LEVEL = 3, CHUNK = 128 << 10 };

/* Writes the bytes to the file at `*offset`, and adds their number to `*offset`. False on failure. */
static bool write_at(int fd, const void *data, size_t size, uint64_t *offset)
{
    bool ok = sl_write_all_at(fd, (struct sl_bytes){data, size}, *offset);
    *offset += size;
    return ok;
}

static enum sl_code write_failed(struct sl_error *error)
{
    return sl_fail(error, SL_INTERNAL, "cannot write a compressed cache entry to a temporary file: %s",
                   strerror(errno));
}

/* Compresses p->contents into the file, as one zstd frame, and maps the file. SL_UNSUPPORTED, with `too_large`: the result exceeds
 * max_packed. The frame gets a checksum, by which damage is detected: the contents of some kinds have none of their own. */
static enum sl_code compress(struct pack_job *p, ZSTD_CCtx *context, uint8_t *chunk, int fd)
{
    ZSTD_inBuffer in = {p->contents.data, p->contents.size, 0};
    uint64_t written = 0;
    size_t left;
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setPledgedSrcSize(context, p->contents.size);
    do {
        ZSTD_outBuffer out = {chunk, CHUNK, 0};
        left = ZSTD_compressStream2(context, &out, &in, ZSTD_e_end);
        if (ZSTD_isError(left) && ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation)
            return sl_fail(&p->error, SL_BUSY, "out of memory");
        if (ZSTD_isError(left))
            return sl_fail(&p->error, SL_INTERNAL, "cannot compress a cache entry: zstd: %s", ZSTD_getErrorName(left));
        if (written + out.pos > p->max_packed) {
            p->too_large = true;
            return SL_UNSUPPORTED;
        }
        if (!write_at(fd, chunk, out.pos, &written))
            return write_failed(&p->error);
    } while (left);
    return sl_map_fd(fd, &p->packed, &p->error);
}

/* Pool work: compresses an entry into an unlinked temporary file, and maps that as p->packed. On failure p->packed is empty, and p->error
 * or p->too_large says why. */
void pack_run(void *arg)
{
    struct pack_job *p = arg;
    struct cache_tmp tmp;
    p->packed = (struct sl_mapping){0};
    if (cache_tmp_create(&tmp, true, &p->error) != SL_OK)
        return;
    ZSTD_CCtx *context = ZSTD_createCCtx();
    uint8_t *chunk = malloc(CHUNK);
    if (!context || !chunk)
        sl_fail(&p->error, SL_BUSY, "out of memory");
    else if (compress(p, context, chunk, tmp.fd) != SL_OK)
        p->packed = (struct sl_mapping){0};
    free(chunk);
    ZSTD_freeCCtx(context);
    cache_tmp_discard(&tmp); /* the mapping stays valid without it */
}

/* Decompresses u->packed, which must be one complete zstd frame and nothing else (SL_MALFORMED), into the file u->fd. */
static enum sl_code decompress(struct unpack_job *u, ZSTD_DCtx *context, uint8_t *chunk)
{
    ZSTD_inBuffer in = {u->packed.data, u->packed.size, 0};
    uint64_t written = 0;
    size_t left = 1;
    while (left) {
        ZSTD_outBuffer out = {chunk, CHUNK, 0};
        size_t before = in.pos;
        left = ZSTD_decompressStream(context, &out, &in);
        if (ZSTD_isError(left) && ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation)
            return sl_fail(&u->error, SL_BUSY, "out of memory");
        if (ZSTD_isError(left))
            return sl_fail(&u->error, SL_MALFORMED, "cannot decompress an entry of the shared cache: zstd: %s",
                           ZSTD_getErrorName(left));
        if (left && in.pos == before && out.pos == 0) /* no progress, but the frame goes on */
            return sl_fail(&u->error, SL_MALFORMED,
                           "cannot decompress an entry of the shared cache: its zstd frame ends early at offset %zu",
                           in.pos);
        if (out.pos > u->max_size - written)
            return sl_fail(&u->error, SL_MALFORMED,
                           "cannot decompress an entry of the shared cache: it has more than %llu bytes",
                           (unsigned long long)u->max_size);
        if (!write_at(u->fd, chunk, out.pos, &written))
            return write_failed(&u->error);
    }
    return in.pos == in.size ? SL_OK
                             : sl_fail(&u->error, SL_MALFORMED,
                                       "cannot decompress an entry of the shared cache: bytes follow its zstd frame");
}

/* Pool work: decompresses an entry into a file. Sets u->code and, on failure, u->error. */
void unpack_run(void *arg)
{
    struct unpack_job *u = arg;
    ZSTD_DCtx *context = ZSTD_createDCtx();
    uint8_t *chunk = malloc(CHUNK);
    u->code = context && chunk ? decompress(u, context, chunk) : sl_fail(&u->error, SL_BUSY, "out of memory");
    free(chunk);
    ZSTD_freeDCtx(context);
}
