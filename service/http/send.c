/* Writes responses: head and body in one system call if the socket takes both, else waits until the client has read some. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/loop.h"
#include "core/pool.h"
#include "core/status.h"
#include "http/impl.h"

/* FILE_WINDOW: bytes of a file that are read and sent at a time. KEEP_SEALED: a TLS output buffer up to this size is kept for the next
 * write. */
enum { FILE_WINDOW = 256 * 1024, KEEP_SEALED = 4 * 1024 };

/* Returns the value of the header Date, formatted once a second. */
const char *server_date(struct http_server *server)
{
    time_t now = (time_t)clock_wall_s();
    if (now != server->date_second) {
        struct tm tm;
        gmtime_r(&now, &tm);
        /* names of days and months are in English, as the process uses the C locale */
        strftime(server->date, sizeof server->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        server->date_second = now;
    }
    return server->date;
}

/* ---- the head ---- */
static char *http_send_put(char *at, const char *data, size_t size)
{
    memcpy(at, data, size);
    return at + size;
}

static char *put_cstr(char *at, const char *text)
{
    return http_send_put(at, text, strlen(text));
}

/* Writes the number in decimal; returns the end. */
static char *put_number(char *at, uint64_t v)
{
    char digits[20];
    size_t i = sizeof digits;
    do
        digits[--i] = (char)('0' + v % 10);
    while (v /= 10);
    return http_send_put(at, digits + i, sizeof digits - i);
}

/* True if a response of this status has a body (RFC 9110, 15.3.5 and 15.4.5). */
static bool has_length(int status)
{
    return status != 204 && status != 304;
}

/* Returns an upper bound of the size of the head that make_head writes: 512 bytes are enough for what does not depend on the request. */
static size_t head_bound(const struct http_exchange *x)
{
    size_t bound = 512 + x->request_id.size;
    for (size_t i = 0; i < x->response_header_count; i++)
        bound += x->response_headers[i].name.size + x->response_headers[i].value.size + 4;
    return bound;
}

/* True if Retry-After may be sent. Not on routes that start jobs: their clients have retry rules of their own, and some
 * would sleep for the whole time. */
static bool wants_retry_after(const struct http_exchange *x)
{
    return x->route && !x->route->job;
}

/* Writes the head into the request's arena; base NULL when out of memory, now or before, when a header was set (x->header_lost). */
static uv_buf_t make_head(struct request *r, uint64_t length)
{
    struct http_exchange *x = &r->x;
    struct sl_str set;
    char *head = x->header_lost ? NULL : sl_arena_alloc(&x->arena, head_bound(x), 1), *at = head;
    if (!head)
        return uv_buf_init(NULL, 0);
    at = put_cstr(at, "HTTP/1.1 ");
    at = put_number(at, (uint64_t)x->status);
    *at++ = ' ';
    const char *reason = status_reason(x->status);
    /* llhttp calls a status that it does not know "<unknown>" */
    at = put_cstr(at, *reason == '<' ? "" : reason);
    at = put_cstr(at, "\r\nDate: ");
    at = put_cstr(at, server_date(r->server));
    if (r->server->options.server_header)
        at = put_cstr(at, "\r\nServer: symloom");
    at = put_cstr(at, "\r\nX-Content-Type-Options: nosniff");
    if (x->request_id.size) {
        at = put_cstr(at, "\r\nX-Request-Id: ");
        at = http_send_put(at, x->request_id.data, x->request_id.size);
    }
    if (!header_is_set(x, "Cache-Control", &set))
        at = put_cstr(at, "\r\nCache-Control: no-store");
    if (x->status == 503 && wants_retry_after(x) && !header_is_set(x, "Retry-After", &set))
        at = put_cstr(at, "\r\nRetry-After: 5");
    for (size_t i = 0; i < x->response_header_count; i++) {
        at = http_send_put(at, "\r\n", 2);
        at = http_send_put(at, x->response_headers[i].name.data, x->response_headers[i].name.size);
        at = http_send_put(at, ": ", 2);
        at = http_send_put(at, x->response_headers[i].value.data, x->response_headers[i].value.size);
    }
    if (has_length(x->status)) {
        at = put_cstr(at, "\r\nContent-Length: ");
        at = put_number(at, length);
    }
    if (r->close)
        at = put_cstr(at, "\r\nConnection: close");
    else if (r->http10)
        at = put_cstr(at, "\r\nConnection: keep-alive");
    at = http_send_put(at, "\r\n\r\n", 4);
    return uv_buf_init(head, (unsigned)(at - head));
}

/* ---- writing ---- */
static void on_written(uv_write_t *write, int status)
{
    struct request *r = write->data;
    r->write_status = status;
    r->write_done = true;
    fiber_wake(r->writer);
}

/* Removes the first `size` bytes, which are written, from the buffers. */
static void skip(uv_buf_t **bufs, unsigned *count, size_t size)
{
    while (*count > 0 && size >= (*bufs)->len) {
        size -= (*bufs)->len;
        (*bufs)++;
        (*count)--;
    }
    if (*count > 0) {
        (*bufs)->base += size;
        (*bufs)->len -= size;
    }
}

/* Closes the connection after a failed write; returns false. A response that is a file ends with a reset, as a truncated body must not look
 * complete. */
static bool write_failed(struct request *r)
{
    if (!r->connection->dead) {
        r->aborted = "reset";
        connection_abort(r->connection, r->x.file);
    }
    return false;
}

static size_t http_send_count_bytes(const uv_buf_t *bufs, unsigned count)
{
    size_t size = 0;
    for (unsigned i = 0; i < count; i++)
        size += bufs[i].len;
    return size;
}

/* ---- with TLS: encrypts a few records of up to 16 KiB at a time, so that little output is in memory both plain and encrypted ---- */

/* Takes the plain bytes of the next TLS record from `*bufs`. If the first buffer is smaller than a record and not the last one, copies
 * bytes of several buffers into one record, to send fewer of them. */
static struct sl_bytes next_record(struct http_server *server, uv_buf_t **bufs, unsigned *count)
{
    struct sl_bytes record = {(const uint8_t *)(*bufs)->base, (*bufs)->len};
    if (record.size >= PLAIN_BUFFER || *count == 1) {
        record.size = record.size < PLAIN_BUFFER ? record.size : PLAIN_BUFFER;
        skip(bufs, count, record.size);
        return record;
    }
    record = (struct sl_bytes){server->to_seal, 0};
    while (*count > 0 && record.size < PLAIN_BUFFER) {
        size_t left = PLAIN_BUFFER - record.size, size = (*bufs)->len < left ? (*bufs)->len : left;
        memcpy(server->to_seal + record.size, (*bufs)->base, size);
        record.size += size;
        skip(bufs, count, size);
    }
    return record;
}

/* Encrypts records and writes them until the socket takes no more; encrypted bytes that are left stay in tls_output. False if that failed;
 * the connection is closed then. */
static bool seal_and_write(struct request *r, uv_buf_t **bufs, unsigned *count)
{
    struct connection *c = r->connection;
    struct sl_buf *out = tls_output(c->tls);
    do {
        while (*count > 0 && out->size < MAX_ENCRYPTED)
            if (!tls_write(c->tls, next_record(r->server, bufs, count)) || out->failed)
                return write_failed(r);
        uv_buf_t encrypted = uv_buf_init((char *)out->data, (unsigned)out->size);
        int written = out->size ? uv_try_write(&c->uv.stream, &encrypted, 1) : 0;
        if (written < 0 && written != UV_EAGAIN)
            return write_failed(r);
        size_t done = written > 0 ? (size_t)written : 0;
        r->bytes_out += done;
        out->size -= done;
        if (out->size)
            memmove(out->data, out->data + done, out->size);
        else if (out->capacity > KEEP_SEALED)
            sl_buf_free(out);
    } while (*count > 0 && !tls_output(c->tls)->size); /* the socket took all, and more is to be encrypted */
    return true;
}

/* True if write_some has left bytes: plain ones in its buffers (`count`), or encrypted ones. */
static bool is_unsent(const struct request *r, unsigned count)
{
    return count > 0 || (r->connection->tls && !r->connection->dead && tls_output(r->connection->tls)->size > 0);
}

/* Writes what the socket takes now; `*bufs` and `*count` become the rest. False if the connection is closed. */
static bool write_some(struct request *r, uv_buf_t **bufs, unsigned *count)
{
    if (r->connection->dead)
        return false;
    if (r->connection->tls)
        return seal_and_write(r, bufs, count);
    int written = uv_try_write(&r->connection->uv.stream, *bufs, *count);
    if (written < 0 && written != UV_EAGAIN)
        return write_failed(r);
    skip(bufs, count, written > 0 ? (size_t)written : 0);
    r->bytes_out += written > 0 ? (size_t)written : 0;
    return true;
}

/* Lets libuv write the buffers as the client takes them, then call `done`. With TLS it writes only the bytes that are encrypted already,
 * not `bufs`. False if that failed; the connection is closed then. */
static bool write_rest(struct request *r, uv_buf_t *bufs, unsigned count, uv_write_cb done)
{
    struct connection *c = r->connection;
    uv_buf_t encrypted;
    r->write.data = r;
    r->write_done = false;
    if (c->tls) {
        r->encrypted = *tls_output(c->tls);
        *tls_output(c->tls) = (struct sl_buf){0};
        encrypted = uv_buf_init((char *)r->encrypted.data, (unsigned)r->encrypted.size);
        bufs = &encrypted;
        count = 1;
    }
    r->write_status = uv_write(&r->write, &c->uv.stream, bufs, count, done);
    if (r->write_status != 0) {
        sl_buf_free(&r->encrypted);
        return write_failed(r);
    }
    c->answer_size = http_send_count_bytes(bufs, count);
    c->unsent = uv_stream_get_write_queue_size(&c->uv.stream);
    c->write_progress_ms = loop_now_ms();
    server_timer(c, TIMEOUT_WRITE);
    return true;
}

/* Called when the write that write_rest started has ended; false if that failed, which closes the connection. */
static bool rest_is_written(struct request *r)
{
    struct connection *c = r->connection;
    size_t size = c->answer_size;
    c->answer_size = 0;
    sl_buf_free(&r->encrypted);
    if (c->dead || r->write_status != 0)
        return write_failed(r);
    server_timer(c, TIMEOUT_NONE);
    r->bytes_out += size;
    return true;
}

/* Writes the buffers; suspends until libuv has written them. False if the connection is closed. */
static bool write_bufs(struct request *r, uv_buf_t *bufs, unsigned count)
{
    while (write_some(r, &bufs, &count)) {
        if (!is_unsent(r, count))
            return true;
        r->writer = fiber_self();
        if (!write_rest(r, bufs, count, on_written))
            return false;
        while (!r->write_done)
            fiber_suspend_uncancellable(); /* the buffers are in use until then */
        if (!rest_is_written(r))
            return false;
        /* Without TLS libuv has written everything; with TLS only what was encrypted, so the loop goes on. */
        if (!r->connection->tls)
            return true;
    }
    return false;
}

/* ---- files, window by window: only one window of unsent bytes is in memory ---- */
struct content_source {
    struct shared_blob *content; /* a response body that is in a file; NULL = the file is mapped at `mapped` */
    const uint8_t *mapped;
};

struct copy_job {
    void *to;
    const void *from;
    size_t size;
};

static void http_send_copy(void *arg)
{
    struct copy_job *job = arg;
    memcpy(job->to, job->from, job->size);
}

/* Copies a window of the source to `to`, on the pool: shared_blob_read reads a file, and the pages of a mapping may not be resident. */
static bool read_window(const struct content_source *source, uint64_t offset, void *to, size_t size)
{
    if (source->content)
        return shared_blob_read(source->content, offset, to, size, NULL) == SL_OK;
    struct copy_job job = {to, source->mapped + offset, size};
    return pool_run(POOL_IO, http_send_copy, &job, NULL) == SL_OK;
}

/* Sends a part of a file through a buffer of FILE_WINDOW bytes, the first window together with the head. On failure closes the
 * connection and returns false. */
static bool write_windows(struct request *r, uv_buf_t head, const struct content_source *source, struct file_part part)
{
    size_t window = part.size < FILE_WINDOW ? (size_t)part.size : FILE_WINDOW;
    char *buffer = malloc(window ? window : 1);
    bool ok = buffer != NULL;
    for (uint64_t done = 0; ok && done < part.size;) {
        size_t size = part.size - done < window ? (size_t)(part.size - done) : window;
        uv_buf_t bufs[2] = {head, uv_buf_init(buffer, (unsigned)size)};
        ok = read_window(source, part.offset + done, buffer, size) && write_bufs(r, bufs, 2);
        head.len = 0; /* it is sent */
        done += size;
    }
    free(buffer);
    if (!ok)
        connection_abort(r->connection, true); /* a truncated body must not look complete */
    return ok;
}

enum { SENT_IN_PLACE = 64 * 1024 };

/* True if the file can be sent from its mapping: the kernel reads it then, and answers EFAULT if the file was truncated meanwhile. Not with
 * TLS: this process would read it to encrypt it, and get SIGBUS. */
static bool may_send_in_place(const struct request *r, struct file_part part)
{
    return r->x.file_is_resident && part.size <= SENT_IN_PLACE && !r->connection->tls;
}

/* Sends a part of a mapped file after the head: at once from the mapping if that is possible, else in windows. */
static void write_file(struct request *r, uv_buf_t head, struct file_part part)
{
    struct content_source source = {.mapped = r->x.file->bytes.data};
    if (!may_send_in_place(r, part)) {
        write_windows(r, head, &source, part);
        return;
    }
    char *bytes = (char *)(uintptr_t)(source.mapped + part.offset);
    uv_buf_t bufs[2] = {head, uv_buf_init(bytes, (unsigned)part.size)};
    write_bufs(r, bufs, 2);
}

/* Sends a shared body after the head: from memory, or in windows if it is in a file. If more than OUTPUT_MAX is left when the socket takes
 * no more, moves the body to a file, so that a slow client does not hold memory. False if the connection is closed. */
static bool write_content(struct request *r, uv_buf_t head, struct shared_blob *content)
{
    struct sl_bytes bytes = shared_blob_pin(content);
    struct file_part part = {0, bytes.size}; /* the size is set even if the bytes are in a file */
    struct content_source source = {.content = content};
    if (!bytes.data)
        return write_windows(r, head, &source, part);
    uv_buf_t both[2] = {head, uv_buf_init((char *)(uintptr_t)bytes.data, (unsigned)bytes.size)}, *bufs = both;
    unsigned count = 2;
    bool ok = write_some(r, &bufs, &count);
    size_t left = http_send_count_bytes(bufs, count);
    /* count 1: the head is written, only bytes of the body are left */
    bool move =
        ok && left > OUTPUT_MAX && count == 1 && shared_blob_spill(content, r->server->options.tmp_dir, NULL) == SL_OK;
    if (ok && is_unsent(r, count) && !move)
        ok = write_bufs(r, bufs, count);
    shared_blob_unpin(content);
    part = (struct file_part){bytes.size - left, left};
    return move ? write_windows(r, uv_buf_init(NULL, 0), &source, part) : ok;
}

/* True if the unread rest of the body is small enough to read it and keep the connection. Not if its size is unknown, or the client waits
 * for 100 Continue (interim_due) and may never send it. */
static bool rest_is_small(const struct request *r)
{
    if (r->message_done)
        return true;
    if (r->framing_error || r->interim_due || r->x.content_length < 0)
        return false;
    return (uint64_t)r->x.content_length - r->body.received <= DISCARD_LIMIT;
}

/* Called before a response is written: sets r->close if it is the last one of the connection, and notes the time, for the check of the
 * client's minimum rate. */
static void begin_response(struct request *r)
{
    const struct http_server *server = r->server;
    if (server->draining || server->stopping || !rest_is_small(r) ||
        r->connection->requests + 1 >= server->options.keepalive_requests)
        r->close = true;
    r->connection->write_started_ms = loop_now_ms();
}

/* Replaces a body that ran out of memory by an error. */
static void check_body(struct http_exchange *x)
{
    if (x->body.failed) {
        sl_buf_free(&x->body);
        http_reply_no_memory(x);
    }
}

/* Makes a large body a shared_blob, which is charged to the memory budget and can be moved to a file. Without memory for that it remains
 * a body. */
static void share_large_body(struct http_exchange *x)
{
    if (x->content || x->body.size <= OUTPUT_MAX)
        return;
    x->content = shared_blob_new(&x->body);
}

bool send_reset(struct request *r)
{
    const struct http_exchange *x = &r->x;
    bool may_retry = x->status == 429 || x->status == 500 || x->status == 503; /* another attempt may succeed */
    if (!may_retry || !x->route || !x->route->family->prefers_reset || !x->route->family->prefers_reset(x))
        return false;
    r->aborted = "refused";
    connection_abort(r->connection, true);
    return true;
}

/* Completes the status and headers (conditions and ranges of a file, compression of other bodies), then sends head and body. Without
 * memory for the head the connection is closed. */
void send_answer(struct request *r)
{
    struct http_exchange *x = &r->x;
    struct connection *c = r->connection;
    struct file_part part = {0, 0};
    if (send_reset(r))
        return;
    check_body(x); /* a body that ran out of memory becomes an error */
    if (x->file)
        part = file_evaluate_conditions(x);
    else
        encode_body(r);
    share_large_body(x); /* sets x->content: charged to the memory budget, and can be moved to a file */
    begin_response(r);
    uint64_t length = x->file ? part.size : x->content ? shared_blob_size(x->content) : x->body.size;
    uv_buf_t bufs[2] = {make_head(r, length),
                        uv_buf_init((char *)x->body.data, 0)}; /* 0: the last branch sets the size */
    if (!bufs[0].base) {
        connection_abort(c, true);
    } else if (r->head_only || !has_length(x->status)) {
        write_bufs(r, bufs, 1);
    } else if (x->content && length > 0) {
        write_content(r, bufs[0], x->content);
    } else if (x->file && part.size > 0) {
        write_file(r, bufs[0], part);
    } else {
        bufs[1].len = x->file ? 0 : x->body.size;
        write_bufs(r, bufs, bufs[1].len ? 2 : 1);
    }
}

/* The write that send_now left to libuv has ended. */
static void on_now_written(uv_write_t *write, int status)
{
    struct request *r = write->data;
    r->write_status = status;
    rest_is_written(r);
    request_answered(r);
}

/* Sends head and body on the loop. If the socket does not take all at once, libuv writes the rest later and on_now_written calls
 * request_answered; else it is called here, also after a failure. */
void send_now(struct request *r)
{
    struct http_exchange *x = &r->x;
    if (send_reset(r)) {
        request_answered(r);
        return;
    }
    check_body(x); /* a body that ran out of memory becomes an error */
    begin_response(r);
    uv_buf_t both[2] = {make_head(r, x->body.size), uv_buf_init((char *)x->body.data, (unsigned)x->body.size)};
    uv_buf_t *bufs = both;
    unsigned count = r->head_only || !has_length(x->status) || x->body.size == 0 ? 1 : 2;
    if (!bufs[0].base)
        connection_abort(r->connection, true);
    else if (write_some(r, &bufs, &count) && is_unsent(r, count) && write_rest(r, bufs, count, on_now_written))
        return;
    request_answered(r);
}

/* Sends 100 Continue. If the socket is still full of an earlier response, it is queued, before all that is written later. */
void send_interim(struct request *r)
{
    r->interim_due = false;
    if (!connection_send(r->connection, SL_STR("HTTP/1.1 100 Continue\r\n\r\n")))
        write_failed(r);
}
