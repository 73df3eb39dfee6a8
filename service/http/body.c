/* Request bodies: a window that the connection fills and the handler's fiber empties, decoding its bytes. While it is full the
 * socket is not read, so that a fast client waits for a slow disk. */
#include <stdlib.h>

#include "core/loop.h"
#include "core/pool.h"
#include "http/impl.h"

enum {
    /* A part of at most DECODE_ON_LOOP encoded bytes is decoded on the loop, while the decoded body has less than DECODED_ON_LOOP bytes;
     * anything larger on the pool. */
    DECODE_ON_LOOP = 4096,
    DECODED_ON_LOOP = 16 * 1024,
    KEEP_BUFFER = 16 * 1024, /* larger buffers are freed instead of kept for the next request */
};

/* Prepares for the body that follows the head. It is dropped, unread by any handler, if the request is refused already (x->status) or if
 * its route takes no body. Of a refused request at most DISCARD_LIMIT bytes are received: some clients read the response only after they
 * have sent everything. For other bodies the caller has set the limit to that of the route. */
void body_init(struct request *r)
{
    struct http_exchange *x = &r->x;
    struct request_body *body = &r->body;
    body->discard = x->status != 0 || !x->route || !x->route->body_limit;
    body->started_ms = loop_now_ms();
    if (x->status)
        body->limit = DISCARD_LIMIT;
    /* Allocates the buffer of a small body once instead of growing it. */
    if (!body->discard && x->content_length > 0 && x->content_length <= BODY_FREE)
        sl_buf_reserve(&body->window, (size_t)x->content_length);
}

/* Returns the limit of bodies in flight: at most three quarters of the connections, so that requests without a body
 * are served, too, even if the limit of descriptors allows only few connections. */
static size_t most_bodies(const struct http_server *server)
{
    size_t bodies = server->options.max_bodies_in_flight, connections = server->options.max_connections;
    size_t most = connections > 1 ? connections - connections / 4 : 1;
    return bodies < most ? bodies : most;
}

/* A body that has arrived with the head, or is small (BODY_FREE), is always admitted. Any other counts against the limit of bodies in
 * flight. One address may have at most as many of these as there are free places, so that a few addresses cannot lock out the others. */
bool body_reserve(struct request *r)
{
    const struct http_exchange *x = &r->x;
    struct http_server *server = r->server;
    size_t limit = most_bodies(server), free = limit > server->bodies ? limit - server->bodies : 0;
    bool has_arrived = !x->has_body || (x->content_length >= 0 && (uint64_t)x->content_length <= r->body.here);
    bool small = x->content_length >= 0 && x->content_length <= BODY_FREE;
    struct client_address *entry =
        has_arrived || (!small && server->bodies >= limit) ? NULL : address_entry(server, x->client);
    if (!entry) /* the body has arrived, the limit is reached, or out of memory */
        return has_arrived || small;
    if (!small && entry->bodies > free) {
        address_remove_entry(server, entry); /* only if all its counters are 0, as those of a new entry */
        return false;
    }
    entry->halves++; /* incomplete bodies of the address, small ones included */
    entry->bodies += !small;
    server->bodies += !small;
    r->body.in_flight_of = entry;
    r->body.is_counted = !small;
    return true;
}

bool body_is_awaited(const struct request *r)
{
    const struct http_exchange *x = &r->x;
    return !x->status && x->route->body_weight && x->content_length > 0 && x->content_length <= BODY_WHOLE;
}

/* The body is complete, or its request has ended: it does not count as in flight (body_reserve) any more. */
static void end_count(struct request *r)
{
    struct client_address *entry = r->body.in_flight_of;
    if (!entry)
        return;
    r->body.in_flight_of = NULL;
    r->server->bodies -= r->body.is_counted;
    entry->bodies -= r->body.is_counted;
    entry->halves--;
    address_remove_entry(r->server, entry);
}

/* Notes why the body cannot be read, and wakes the reader. Only the first failure counts; 413 is also counted in the metrics. `detail`
 * may be NULL. */
void body_fail(struct request *r, int status, const char *detail)
{
    struct request_body *body = &r->body;
    if (body->failed_status)
        return;
    body->failed_status = status;
    body->failed_detail = detail;
    if (status == 413)
        metric_add(METRIC_HTTP_REFUSED, 1, "too_large", NULL, NULL);
    if (body->reader)
        fiber_wake(body->reader);
}

/* Takes bytes of the body from the connection; stops reading the socket when the window is full. Beyond the route's limit, or if parsing
 * the body would need more memory than the whole budget, the body fails with 413. Of a body that is dropped, bytes are only counted. */
void body_receive(struct request *r, struct sl_bytes data)
{
    struct request_body *body = &r->body;
    body->received += data.size;
    if (body->discard && body->reader) /* body_discard_rest checks how much it has dropped */
        fiber_wake(body->reader);
    if (body->failed_status || body->discard)
        return;
    if (body->received > body->limit || !memory_fits(body->received * r->x.route->body_weight)) {
        r->close = true; /* the rest of the body is not read */
        body_fail(r, 413, NULL);
        return;
    }
    sl_buf_add(&body->window, data.data, data.size);
    if (body->window.failed)
        body_fail(r, 503, BODY_NO_MEMORY);
    if (body->window.size >= BODY_WINDOW) /* wait_for_bytes starts reading again */
        connection_read(r->connection, false);
    if (body->reader)
        fiber_wake(body->reader);
}

void body_complete(struct request *r)
{
    r->message_done = true;
    end_count(r);
    if (r->body.reader)
        fiber_wake(r->body.reader);
}

/* Empties a small buffer, which keeps its memory for the next request; frees a large one. */
static void keep_or_free(struct sl_buf *buf)
{
    if (buf->capacity > KEEP_BUFFER || buf->failed)
        sl_buf_free(buf);
    else
        sl_buf_clear(buf);
}

/* Frees the body of an ended request, except small buffers: request_recycle keeps them for a later request. */
void body_finish(struct request *r)
{
    struct request_body *body = &r->body;
    end_count(r);
    keep_or_free(&body->window);
    keep_or_free(&body->raw);
    keep_or_free(&body->piece);
    decoder_free(body->decoder);
    if (body->spool.bytes.data)
        sl_unmap(&body->spool);
}

/* ---- reading ---- */
/* Waits until the window has bytes, the body has ended, or it has failed: SL_OK in all three cases, which the caller tells apart.
 * SL_CANCELLED: the connection is gone. */
static enum sl_code wait_for_bytes(struct request *r)
{
    struct request_body *body = &r->body;
    while (body->window.size == 0 && !r->message_done && !body->failed_status) {
        if (r->connection->dead)
            return SL_CANCELLED;
        body->reader = fiber_self();
        connection_read(r->connection, true);
        bool go_on = fiber_suspend(); /* false: the request was cancelled */
        body->reader = NULL;
        if (!go_on)
            return SL_CANCELLED;
    }
    return SL_OK;
}

/* Sets the response for a body that has failed with body.failed_status; returns the code that the handler gets. Statuses that are not in
 * the table give SL_MALFORMED. */
static enum sl_code fail_now(struct request *r)
{
    static const struct {
        int status;
        enum sl_code code;
    } codes[] = {{408, SL_TIMEOUT}, {413, SL_UNSUPPORTED}, {503, SL_INTERNAL}, {500, SL_INTERNAL}};
    http_reply_error(&r->x, r->body.failed_status, r->body.failed_detail);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == r->body.failed_status)
            return codes[i].code;
    return SL_MALFORMED;
}

enum sl_code body_refuse(struct request *r, int status, const char *detail)
{
    body_fail(r, status, detail);
    r->close |= !r->message_done;
    return fail_now(r);
}

struct decode_job {
    struct http_decoder *decoder;
    struct sl_bytes in;
    struct sl_buf *out;
    size_t limit;
    enum sl_code code;
};

/* Decodes bytes of job->in to job->out; runs on the loop or on the pool. */
static void decode(void *arg)
{
    struct decode_job *job = arg;
    job->code = decoder_run(job->decoder, &job->in, job->out, job->limit);
}

/* Fills `piece` with decoded bytes from the window; it stays empty at the end of the body. On failure the response is set, except for
 * SL_CANCELLED: the connection is gone. */
static enum sl_code read_decoded(struct request *r)
{
    struct request_body *body = &r->body;
    sl_buf_clear(&body->piece);
    while (body->piece.size == 0) {
        /* held_back: the decoder has more output, which needs no more input */
        if (body->raw_at == body->raw.size && !body->held_back) {
            enum sl_code code = wait_for_bytes(r);
            if (code)
                return code;
            if (body->failed_status)
                return fail_now(r);
            /* takes the full window to decode it; the connection fills the empty buffer meanwhile */
            struct sl_buf empty = body->raw;
            sl_buf_clear(&empty);
            body->raw = body->window;
            body->window = empty;
            body->raw_at = 0;
            /* no bytes: the body has ended, within the compressed stream unless that is complete */
            if (body->raw.size == 0 && decoder_ended(body->decoder))
                return SL_OK;
            if (body->raw.size == 0)
                return body_refuse(r, 400, "request body could not be decompressed");
        }
        struct decode_job job = {body->decoder,
                                 {body->raw.data + body->raw_at, body->raw.size - body->raw_at},
                                 &body->piece,
                                 BODY_WINDOW,
                                 SL_OK};
        if (job.in.size <= DECODE_ON_LOOP && body->decoded < DECODED_ON_LOOP) {
            job.limit = DECODED_ON_LOOP; /* a few bytes may decode to many, which would block the loop */
            decode(&job);
        } else if (pool_run(POOL_COMPRESS, decode, &job, NULL) != SL_OK) {
            return body_refuse(r, 503, "too much work is queued for the thread pool");
        }
        body->raw_at = body->raw.size - job.in.size;
        body->held_back = body->piece.size >= job.limit && !decoder_ended(body->decoder);
        if (job.code == SL_BUSY || body->piece.failed)
            return body_refuse(r, 503, BODY_NO_MEMORY);
        if (job.code)
            return body_refuse(r, 400, "request body could not be decompressed");
    }
    body->decoded += body->piece.size;
    if (body->decoded > body->limit || !memory_fits(body->decoded * r->x.route->body_weight))
        return body_refuse(r, 413, NULL);
    return SL_OK;
}

/* For a body without a content coding: hands the window's buffer to the handler as its next piece, without copying. The buffer of the
 * previous piece becomes the new, empty window. The piece stays empty at the end of the body. */
static enum sl_code read_plain(struct request *r)
{
    struct request_body *body = &r->body;
    enum sl_code code = wait_for_bytes(r);
    if (code)
        return code;
    if (body->failed_status)
        return fail_now(r);
    struct sl_buf used = body->piece;
    sl_buf_clear(&used);
    body->piece = body->window;
    body->window = used;
    return SL_OK;
}

enum sl_code http_body_read(struct http_exchange *x, struct sl_bytes *piece)
{
    struct request *r = (struct request *)x; /* *x is the first member of a request */
    struct request_body *body = &r->body;
    *piece = (struct sl_bytes){NULL, 0};
    if (body->failed_status)
        return fail_now(r);
    if (body->coding != CODING_IDENTITY && !body->decoder && x->has_body) {
        body->decoder = decoder_new(body->coding, ZSTD_WINDOW_HTTP);
        if (!body->decoder)
            return body_refuse(r, 503, BODY_NO_MEMORY);
    }
    enum sl_code code = body->decoder ? read_decoded(r) : read_plain(r);
    if (code)
        return code;
    *piece = sl_buf_bytes(&body->piece);
    return SL_OK;
}

/* ---- after an early response ----
 * Receives and drops the rest of a body, at most DISCARD_LIMIT bytes. */
bool body_discard_rest(struct request *r)
{
    struct request_body *body = &r->body;
    body->discard = true;
    sl_buf_clear(&body->window);
    uint64_t until = body->raw_bytes + DISCARD_LIMIT; /* if more follows, closing the connection is cheaper */
    while (!r->message_done && !body->failed_status && !r->connection->dead && body->raw_bytes <= until) {
        body->reader = fiber_self();
        connection_read(r->connection, true);
        bool go_on = fiber_suspend();
        body->reader = NULL;
        if (!go_on)
            break;
    }
    return r->message_done && !r->framing_error;
}
