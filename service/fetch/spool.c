/* Writes the body of a transfer to disk: curl's callback fills a buffer on the loop, and the fiber of the download has full
 * buffers written on the pool, so that a slow disk holds up one transfer and not the loop. A small file is written by one call. */
#include <errno.h>

#include "base/file.h"
#include "core/pool.h"
#include "fetch/impl.h"

bool spool_has_room(const struct fetch_spool *spool, size_t size)
{
    return spool->full.size == 0 || spool->filling.size + size <= SPOOL_SIZE;
}

/* Exchanges the two buffers when `full` is written (empty): `filling` becomes `full` and is written next, the empty one is filled. */
static void turn_over(struct fetch_spool *spool)
{
    struct sl_buf empty = spool->full;
    spool->full = spool->filling;
    spool->filling = empty;
}

bool spool_add(struct fetch_spool *spool, struct sl_bytes bytes, uint64_t expected)
{
    if (spool->full.size == 0 && spool->filling.size && spool->filling.size + bytes.size > SPOOL_SIZE)
        turn_over(spool); /* the bytes do not fit: exchanges the buffers, so that `filling` is the empty one */
    struct sl_buf *filling = &spool->filling;
    if (filling->capacity == 0 && bytes.size < SPOOL_SIZE) { /* a new buffer: allocate its final size at once */
        size_t size = expected < SPOOL_SIZE ? (size_t)expected : SPOOL_SIZE;
        sl_buf_reserve(filling, size > bytes.size ? size : bytes.size);
    }
    sl_buf_add(filling, bytes.data, bytes.size);
    return !filling->failed;
}

struct spool_write {
    int fd;
    struct sl_bytes bytes;
    uint64_t offset;
};

/* On the pool: writes the bytes at their place in the file. */
static enum sl_code write_bytes(void *arg, struct sl_error *error)
{
    const struct spool_write *w = arg;
    return sl_write_all_at(w->fd, w->bytes, w->offset)
               ? SL_OK
               : sl_fail_errno(error, errno, "cannot write the downloaded file");
}

enum sl_code spool_write(struct fetch_spool *spool, int fd, struct sl_error *error)
{
    if (spool->full.size == 0)
        turn_over(spool);      /* exchanges the two buffers */
    if (spool->full.size == 0) /* both were empty */
        return SL_OK;
    struct spool_write w = {.fd = fd, .bytes = sl_buf_bytes(&spool->full), .offset = spool->offset};
    enum sl_code code = pool_call(POOL_IO, write_bytes, &w, error);
    if (code != SL_OK)
        return code;
    spool->offset += w.bytes.size;
    sl_buf_clear(&spool->full);
    return SL_OK;
}

void spool_free(struct fetch_spool *spool)
{
    sl_buf_free(&spool->filling);
    sl_buf_free(&spool->full);
}
