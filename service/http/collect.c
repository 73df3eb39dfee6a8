/* Collects whole request bodies, in memory or in an unlinked file. */
#include <errno.h>
#include <unistd.h>

#include "core/pool.h"
#include "http/impl.h"

/* ---- files ---- */
struct http_body_spool {
    int fd;
    const char *directory;
    struct sl_bytes bytes;
    struct sl_mapping *mapping;
    enum sl_code code;
};

/* Opens the file; runs on the pool, as the disk may be slow. */
static void spool_open(void *arg)
{
    struct http_body_spool *spool = arg;
    spool->fd = sl_unlinked_file(spool->directory);
    spool->code = spool->fd >= 0 ? SL_OK : sl_fail_errno(NULL, errno, ""); /* only the code is used: no message */
}

static void spool_write(void *arg)
{
    struct http_body_spool *spool = arg;
    spool->code = sl_write_sparse(spool->fd, spool->bytes) ? SL_OK : SL_INTERNAL;
}

static void spool_map(void *arg)
{
    struct http_body_spool *spool = arg;
    spool->code = sl_map_fd(spool->fd, spool->mapping, NULL);
}

/* Runs spool_open, spool_write or spool_map on the pool; `bytes` is what spool_write writes, the others ignore it. */
static enum sl_code spool_step(struct http_body_spool *spool, void (*step)(void *arg), struct sl_bytes bytes)
{
    spool->bytes = bytes;
    enum sl_code code = pool_run(POOL_IO, step, spool, NULL);
    return code ? code : spool->code;
}

/* Sets the response for a failure of the disk; 503 if a later attempt may succeed. */
static enum sl_code spool_fail(struct request *r, enum sl_code code, const char *detail)
{
    return code == SL_BUSY ? body_refuse(r, 503, BODY_NO_MEMORY) : body_refuse(r, 500, detail);
}

/* Writes `first`, which was read already, and the rest of the body to a new unlinked file, spool->fd. On failure sets the response, and
 * the file is closed. */
static enum sl_code spool_body(struct request *r, struct sl_bytes first, struct http_body_spool *spool)
{
    *spool = (struct http_body_spool){.fd = -1, .directory = r->server->options.tmp_dir};
    enum sl_code code = spool_step(spool, spool_open, first); /* spool_open ignores `first` */
    if (code)
        return spool_fail(r, code, "cannot create a temporary file for a request body");
    if (first.size > 0)
        code = spool_step(spool, spool_write, first);
    /* size 1 lets the loop begin: it ends with an empty piece, the end of the body */
    for (struct sl_bytes piece = {NULL, 1}; code == SL_OK && piece.size > 0;) {
        enum sl_code read = http_body_read(&r->x, &piece);
        if (read) { /* the response is set */
            close(spool->fd);
            return read;
        }
        if (piece.size > 0)
            code = spool_step(spool, spool_write, piece);
    }
    if (code == SL_OK)
        return SL_OK;
    close(spool->fd);
    return spool_fail(r, code, "cannot write a request body to a temporary file");
}

enum sl_code http_body_take(struct http_exchange *x, int *fd)
{
    struct http_body_spool spool;
    enum sl_code code = spool_body((struct request *)x, (struct sl_bytes){NULL, 0}, &spool);
    *fd = code == SL_OK ? spool.fd : -1;
    return code;
}

/* Writes the body, of which `first` was read already, to a file and maps that, so that a large body is not held in memory. */
static enum sl_code collect_in_file(struct request *r, struct sl_bytes first, struct sl_bytes *body)
{
    struct http_body_spool spool;
    enum sl_code code = spool_body(r, first, &spool);
    if (code)
        return code;
    spool.mapping = &r->body.spool;
    code = spool_step(&spool, spool_map, first); /* spool_map ignores `first` */
    close(spool.fd);
    if (code)
        return spool_fail(r, code, "cannot map the temporary file of a request body");
    *body = r->body.spool.bytes;
    return SL_OK;
}

/* ---- memory ---- */
/* Returns the size up to which a body is kept in memory: a smaller one while memory is short. */
static size_t most_in_memory(void)
{
    return memory_is_short() ? BODY_WHOLE : BODY_IN_MEMORY;
}

/* For a body smaller than the window: waits until all of it has arrived, and sets `*body` to it. The connection reads the socket already,
 * since such a body never fills the window. */
static enum sl_code await_whole(struct request *r, struct sl_bytes *body)
{
    while (!r->message_done && !r->body.failed_status && !r->connection->dead) {
        r->body.reader = fiber_self();
        bool go_on = fiber_suspend();
        r->body.reader = NULL;
        if (!go_on)
            return SL_CANCELLED;
    }
    if (r->connection->dead)
        return SL_CANCELLED;
    return http_body_read(&r->x, body);
}

/* Collects the body in memory, and continues in a file if it becomes too large. */
static enum sl_code collect(struct http_exchange *x, struct sl_bytes *body)
{
    struct request *r = (struct request *)x; /* *x is the first member of a request */
    struct sl_bytes piece;
    *body = (struct sl_bytes){(const uint8_t *)"", 0};
    /* a small body fits the window: no copy is needed */
    if (r->body.coding == CODING_IDENTITY && x->content_length > 0 && x->content_length <= BODY_WHOLE)
        return await_whole(r, body);
    struct sl_buf whole = {0};
    enum sl_code code;
    while ((code = http_body_read(x, &piece)) == SL_OK && piece.size > 0 &&
           whole.size + piece.size <= most_in_memory()) {
        sl_buf_add(&whole, piece.data, piece.size);
        memory_resize(&x->memory, whole.capacity + r->body.window.capacity); /* what the body takes so far */
    }
    if (code == SL_OK && whole.failed)
        code = body_refuse(r, 503, BODY_NO_MEMORY);
    if (code == SL_OK && piece.size > 0) { /* too large for memory */
        sl_buf_add(&whole, piece.data, piece.size);
        code = whole.failed ? body_refuse(r, 503, BODY_NO_MEMORY) : collect_in_file(r, sl_buf_bytes(&whole), body);
    } else if (code == SL_OK && whole.size > 0) {
        struct sl_buf used = r->body.piece; /* exchanged with `whole`, as r->body.piece lives until the request ends */
        r->body.piece = whole;
        whole = used;
        *body = sl_buf_bytes(&r->body.piece);
    }
    sl_buf_free(&whole);
    return code;
}

/* Collects the body, then reserves the memory that parsing it needs. */
enum sl_code http_body(struct http_exchange *x, struct sl_bytes *body)
{
    struct request *r = (struct request *)x; /* *x is the first member of a request */
    enum sl_code code = collect(x, body);
    if (code != SL_OK || !x->route->body_weight)
        return code;
    switch (code = memory_reserve(&x->memory, body->size * x->route->body_weight, NULL)) {
    case SL_OK:
    case SL_CANCELLED: return code;
    case SL_UNSUPPORTED: return body_refuse(r, 413, NULL); /* more than the whole memory budget */
    default: metric_add(METRIC_HTTP_REFUSED, 1, "memory", NULL, NULL); return body_refuse(r, 503, BODY_NO_MEMORY);
    }
}
