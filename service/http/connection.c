/* A connection: reads, splits the stream into heads and bodies, keeps early bytes of the next request, and closes gracefully. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/log.h"
#include "core/loop.h"
#include "http/impl.h"

/* LINGER_TOTAL_MS: how long a client that goes on sending is read after its response. RATE_GRACE_MS: the time from the begin of a body or
 * response during which its rate is not checked. */
enum { LINGER_TOTAL_MS = 30000, RATE_GRACE_MS = 30000 };

void connection_state(struct connection *c, enum http_request_state state)
{
    server_count(c, -1);
    c->state = state;
    server_count(c, 1);
    c->state_since_ms = loop_now_ms();
}

/* Returns the client's address as text, without a port: "unix" for a Unix socket, "unknown" if the system does not tell. Kept by the
 * connection. */
const char *connection_peer(struct connection *c)
{
    struct sockaddr_storage address;
    int size = sizeof address;
    if (c->peer[0])
        return c->peer;
    if (c->unix_socket)
        return "unix";
    if (uv_tcp_getpeername(&c->uv.tcp, (struct sockaddr *)&address, &size) != 0 ||
        uv_ip_name((struct sockaddr *)&address, c->peer, sizeof c->peer) != 0)
        return "unknown";
    if (strncmp(c->peer, "::ffff:", 7) == 0 && strchr(c->peer, '.')) /* IPv4 on a dual-stack socket */
        memmove(c->peer, c->peer + 7, strlen(c->peer + 7) + 1);
    return c->peer;
}

/* ---- small writes outside of responses ---- */
struct interim_write {
    uv_write_t write;
    char bytes[];
};

static void on_small_write_done(uv_write_t *write, int status)
{
    (void)status; /* the next write meets the same failure */
    free(write);
}

/* Writes at once what the kernel accepts, and queues a copy of the rest. False if the write failed or memory is out. */
static bool send_bytes(struct connection *c, struct sl_str text)
{
    uv_buf_t buf = uv_buf_init((char *)(uintptr_t)text.data, (unsigned)text.size);
    int written = text.size ? uv_try_write(&c->uv.stream, &buf, 1) : 0;
    size_t left = text.size - (written > 0 ? (size_t)written : 0);
    if (left == 0)
        return true;
    bool has_failed = written < 0 && written != UV_EAGAIN;
    struct interim_write *queued = has_failed ? NULL : malloc(sizeof *queued + left);
    if (!queued)
        return false;
    memcpy(queued->bytes, text.data + text.size - left, left);
    buf = uv_buf_init(queued->bytes, (unsigned)left);
    if (uv_write(&queued->write, &c->uv.stream, &buf, 1, on_small_write_done) == 0)
        return true;
    free(queued);
    return false;
}

/* Sends output of TLS itself: handshakes, tickets, alerts. */
static bool send_tls_output(struct connection *c)
{
    struct sl_buf *out = tls_output(c->tls);
    bool was_sent = !out->failed && send_bytes(c, sl_buf_view(out));
    sl_buf_free(out);
    return was_sent;
}

bool connection_send(struct connection *c, struct sl_str text)
{
    if (c->tls)
        return tls_write(c->tls, (struct sl_bytes){(const uint8_t *)text.data, text.size}) && send_tls_output(c);
    return send_bytes(c, text);
}

/* Sends TLS's close_notify: without it a client cannot know that the response was not cut off. */
static void send_close_notify(struct connection *c)
{
    if (!c->tls || !tls_is_ready(c->tls))
        return;
    tls_close_notify(c->tls);
    send_tls_output(c);
}

/* ---- the end ---- */
/* Frees the connection when both its handle is closed and its request is finished. */
static void release(struct connection *c)
{
    if (!c->closed || c->request)
        return;
    sl_buf_free(&c->pending);
    tls_free(c->tls);
    address_remove_connection(c);
    server_remove_connection(c);
    free(c);
}

/* libuv has closed the handle. A request that has not started, or that only drops the rest of its body, is finished here; any other by
 * its fiber or the end of its write. */
static void on_closed(uv_handle_t *handle)
{
    struct connection *c = handle->data;
    c->closed = true;
    if (c->request && (!c->request->started || c->request->discarding))
        request_finish(c->request); /* calls release */
    else
        release(c);
}

/* Closes the socket at once and cancels the request; `c` is freed later, when the request has ended. `reset`: without TLS's close_notify,
 * and with a TCP reset, as the client must not take the response for complete. */
void connection_abort(struct connection *c, bool reset)
{
    if (c->dead)
        return;
    if (!reset)
        send_close_notify(c);
    c->dead = true;
    loop_waiter_leave(&c->turn); /* does not wait for its turn to read any more */
    c->server->closing++;
    server_timer(c, TIMEOUT_NONE);
    connection_state(c, STATE_CLOSING);
    if (!reset || c->unix_socket || uv_tcp_close_reset(&c->uv.tcp, on_closed) != 0)
        uv_close(&c->uv.handle, on_closed);
    if (c->request) {
        if (c->request->body.reader)
            fiber_wake(c->request->body.reader);
        fiber_group_cancel(&c->request->x.group);
    }
}

/* Lingers: the response is written, but the client may still be sending. Closing now would reset the connection, and the
 * client could lose the response. Therefore this sends the end of the stream and reads on for a while. */
static void linger(struct connection *c)
{
    uv_os_fd_t fd;
    send_close_notify(c);
    if (c->eof || uv_fileno(&c->uv.handle, &fd) != 0 || shutdown(fd, SHUT_WR) != 0) {
        connection_abort(c, false);
        return;
    }
    sl_buf_free(&c->pending);
    connection_state(c, STATE_LINGER);
    c->linger_end_ms = loop_now_ms() + LINGER_TOTAL_MS;
    connection_read(c, true);
    server_timer(c, TIMEOUT_LINGER);
}

/* ---- parsing ---- */
/* Makes a request whose response is an error, for a head that cannot be used. NULL when out of memory: the connection is closed then. */
static struct request *connection_refuse(struct connection *c, int status, const char *detail)
{
    struct request *r = request_new(c);
    if (!r) {
        connection_abort(c, false);
        return NULL;
    }
    server_timer(c, TIMEOUT_NONE);
    connection_state(c, STATE_WORK); /* the response is being made */
    set_client_and_request_id(r);
    parse_refuse(r, status, detail);
    metric_add(METRIC_HTTP_ABORTED, 1, status == 408 ? "header_timeout" : "framing", NULL, NULL);
    return r;
}

/* True if no request line can begin with this byte, as in a TLS hello or a binary protocol: the end of a head will not come. */
static bool cannot_be_http(const struct connection *c, struct sl_bytes data)
{
    uint8_t first = data.size > c->scan.start ? data.data[c->scan.start] : 'G'; /* 'G': valid while there is none */
    return first < 0x20 ? first != '\r' && first != '\n' : first >= 0x7F;
}

/* Ends the state of reading a body, successfully or not. A response may be in progress already and keeps its timeout. */
static void body_over(struct connection *c)
{
    connection_state(c, STATE_WORK);
    if (c->timeout != TIMEOUT_WRITE)
        server_timer(c, TIMEOUT_NONE);
}

/* Returns the timeout for the request's body. Some APIs have one of their own (http_family.body_timeout_ms). */
static enum connection_timeout body_timeout(const struct request *r)
{
    return r->x.route ? r->server->body_timeouts[r->route_index] : TIMEOUT_BODY;
}

/* Makes a request from a complete head. Returns the bytes used: 0 if the head is incomplete, all bytes if it was refused, as it is not
 * known then where a next request begins. */
static size_t receive_head(struct connection *c, struct sl_bytes data)
{
    static const struct {
        int status;
        const char *detail;
    } refusals[] = {[HEAD_BAD] = {400, "malformed request head"},
                    [HEAD_LINE_TOO_LONG] = {414, "request line too long"},
                    [HEAD_TOO_LARGE] = {431, "request head too large"}};
    if (c->state == STATE_IDLE) {
        connection_state(c, STATE_HEAD);
        c->scan = (struct head_scan){0};
        if (c->requests > 0) /* the timeout of the first head runs since the connection was accepted */
            server_timer(c, TIMEOUT_HEADER);
    }
    size_t size = 0;
    enum head_result result = head_scan(&c->scan, data, &c->server->options, &size);
    if (result == HEAD_MORE && cannot_be_http(c, data)) /* refused before its end is known */
        result = HEAD_BAD;
    if (result == HEAD_MORE)
        return 0;
    if (result != HEAD_COMPLETE) {
        connection_refuse(c, refusals[result].status, refusals[result].detail);
        return data.size; /* where a next request begins is unknown */
    }
    struct request *r = request_new(c);
    if (!r) {
        connection_abort(c, false);
        return data.size;
    }
    r->body.here = data.size - size; /* bytes of the body that arrived with the head */
    parse_head(r, (struct sl_bytes){data.data, size}, c->scan.lines);
    bool expects_body = !r->message_done && !r->framing_error;
    connection_state(c, expects_body ? STATE_BODY : STATE_WORK);
    server_timer(c, expects_body ? body_timeout(r) : TIMEOUT_NONE);
    return size;
}

/* Passes bytes to the body; returns how many belong to it. At its end the connection's state becomes STATE_WORK (body_over). */
static size_t receive_body(struct connection *c, struct sl_bytes data)
{
    struct request *r = c->request;
    size_t used = parse_body(r, data);
    if ((r->message_done || r->framing_error) && c->state == STATE_BODY)
        body_over(c);
    return used;
}

/* Keeps bytes that cannot be parsed yet in `pending`, where `rest` may point already. A closing connection needs no bytes any more. */
static void connection_keep(struct connection *c, struct sl_bytes rest)
{
    if (rest.size == 0 || c->dead || c->state == STATE_LINGER) {
        sl_buf_free(&c->pending);
    } else if (rest.data >= c->pending.data && rest.data <= c->pending.data + c->pending.size && c->pending.data) {
        memmove(c->pending.data, rest.data, rest.size);
        c->pending.size = rest.size;
    } else {
        sl_buf_add(&c->pending, rest.data, rest.size);
        if (c->pending.failed)
            connection_abort(c, false);
    }
}

/* Called after bytes of a request were parsed. Starts the handler, unless it would only wait for the rest of a small body. If the request
 * was answered early and its body has been read to the end now, finishes it. turn.taken: request_start was called already; the request is
 * queued. */
static void continue_request(struct connection *c)
{
    struct request *r = c->request;
    bool has_ended = r->message_done || r->framing_error || r->body.failed_status;
    if (c->dead)
        return;
    if (r->discarding && has_ended)
        request_finish(r);
    else if (!r->started && !r->turn.taken && (has_ended || !body_is_awaited(r)))
        request_start(r);
}

/* Parses as much as possible and keeps the rest in `pending`. Sends 100 Continue if a client waits for it before it sends the body. Bytes
 * after a complete request wait for the end of its response. */
static void connection_consume(struct connection *c, struct sl_bytes data)
{
    size_t at = 0;
    c->processing = true;
    while (!c->dead && at < data.size && c->state != STATE_LINGER) {
        struct sl_bytes rest = {data.data + at, data.size - at};
        if (c->request && c->state != STATE_BODY)
            break;
        if (c->request) {
            at += receive_body(c, rest);
            continue_request(c);
            continue;
        }
        size_t used = receive_head(c, rest);
        if (used == 0)
            break;
        at += used;
        if (c->dead)
            break;
        struct request *r = c->request;
        /* a client that has begun to send its body does not wait for 100 Continue */
        if (c->state == STATE_BODY && at < data.size)
            at += receive_body(c, (struct sl_bytes){data.data + at, data.size - at});
        else if (r->interim_due && !r->x.status) /* the client waits for 100 Continue */
            send_interim(r);
        /* remains true for a refused request: its client may never send the body, so rest_is_small does not wait for it */
        r->interim_due &= r->x.status != 0;
        continue_request(c);
    }
    c->processing = false;
    connection_keep(c, (struct sl_bytes){data.data + at, data.size - at});
}

/* ---- reading ----
 * Chooses how much libuv reads. While the loop's time slice is used up, bodies and handshakes wait: size 0, for which libuv calls on_read
 * with UV_ENOBUFS. Of anything else little is read, as it may be a health check. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct connection *c = handle->data;
    bool can_wait = c->state == STATE_BODY || c->state == STATE_HANDSHAKE;
    size_t size = !loop_slice_is_used_up() ? READ_BUFFER : can_wait ? 0 : READ_LATE;
    *buf = uv_buf_init(c->server->read_buffer, (unsigned)size);
}

/* True if a body arrives more slowly than `min_rate` allows; never for APIs with a body timeout of their own. */
static bool too_slow(const struct connection *c)
{
    const struct request *r = c->request;
    uint64_t elapsed = loop_now_ms() - r->body.started_ms;
    if (elapsed <= RATE_GRACE_MS || body_timeout(r) != TIMEOUT_BODY)
        return false;
    return r->body.raw_bytes / (elapsed / 1000) < c->server->options.min_rate;
}

/* Ends the body with an error; the connection is closed after the response, since the next request cannot be found. `reason` is for the
 * log and the metric of aborted requests; NULL = none. */
static void fail_body(struct connection *c, int status, const char *detail, const char *reason)
{
    c->request->framing_error = c->request->close = true;
    if (reason)
        c->request->aborted = reason;
    body_fail(c->request, status, detail);
    body_over(c);
    continue_request(c);
}

/* Handles decrypted bytes, as the state of the connection says. */
static void on_data(struct connection *c, struct sl_bytes data)
{
    switch (c->state) {
    case STATE_LINGER: /* the client still sends: drops it, and waits on until linger_end_ms */
        if (loop_now_ms() >= c->linger_end_ms)
            connection_abort(c, false);
        else
            server_timer(c, TIMEOUT_LINGER);
        return;
    case STATE_BODY:
        if (c->timeout == body_timeout(c->request)) /* it restarts whenever bytes arrive */
            server_timer(c, c->timeout);
        if (too_slow(c))
            fail_body(c, 408, "request body too slow", "slow");
        else
            connection_consume(c, data);
        return;
    case STATE_WORK: /* a next request, which waits for the end of this one */
        sl_buf_add(&c->pending, data.data, data.size);
        if (c->pending.failed)
            connection_abort(c, false);
        else if (c->pending.size >= PIPELINE_LIMIT)
            connection_read(c, false);
        return;
    default: /* a head, whose begin may be in `pending` */
        if (c->pending.size > 0) {
            sl_buf_add(&c->pending, data.data, data.size);
            if (c->pending.failed) {
                connection_abort(c, false);
                return;
            }
            data = sl_buf_bytes(&c->pending);
        }
        connection_consume(c, data);
    }
}

/* The client has ended its stream while its request runs. It still gets the response, unless probe_client finds that it is gone. The
 * probe sends an interim response, which HTTP/1.0 does not have: such clients are not probed. */
static void await_answer(struct connection *c)
{
    if (c->timeout == TIMEOUT_NONE && c->request && !c->request->http10)
        server_timer(c, TIMEOUT_PROBE);
}

/* The client has ended its stream. */
static void on_end(struct connection *c)
{
    c->eof = true;
    c->reading = false;
    uv_read_stop(&c->uv.stream);
    if (c->state == STATE_BODY)
        fail_body(c, 400, "connection closed before the end of the body", NULL);
    else if (c->state == STATE_WORK)
        await_answer(c);
    else
        connection_abort(c, false);
}

/* True if the client has reset the connection, which the kernel reports as a pending error of the socket. */
static bool is_reset(const struct connection *c)
{
    uv_os_fd_t fd;
    int error = 0;
    socklen_t size = sizeof error;
    return uv_fileno(&c->uv.handle, &fd) == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error;
}

/* Finds out if a client that has ended its stream closed the connection or only shut down sending. Both look the same until something is
 * sent: if the client has closed, its kernel answers with a reset. So this sends, once, an interim response, which clients ignore
 * (RFC 9110, 15.2). */
static void probe_client(struct connection *c)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (c->state != STATE_WORK || !c->request || c->request->x.status) /* x.status: writing the response shows it */
        return;
    if (is_reset(c) || (!c->probed && !connection_send(c, (struct sl_str){interim, sizeof interim - 1}))) {
        c->request->aborted = "reset";
        connection_abort(c, false);
        return;
    }
    c->probed = true;
    server_timer(c, TIMEOUT_PROBE);
}

/* ---- TLS ---- */

/* Answers a client that does not speak TLS on the port for TLS with an error in plain HTTP. */
static void answer_plainly(struct connection *c)
{
    tls_free(c->tls);
    c->tls = NULL;
    connection_state(c, STATE_HEAD);
    struct request *r = connection_refuse(c, 400, "this port speaks HTTPS only");
    if (r)
        request_start(r);
}

/* Waits for the first request once the TLS handshake is complete. */
static void handshake_done(struct connection *c)
{
    if (c->state != STATE_HANDSHAKE || !tls_is_ready(c->tls))
        return;
    connection_state(c, STATE_IDLE);
    server_timer(c, c->reserve ? TIMEOUT_RESERVE : TIMEOUT_HEADER);
}

/* TLS failed: logs and counts that, and ends the connection. If a request runs, ends it at once, as the request could not be answered any
 * more. */
static void tls_broken(struct connection *c)
{
    log_debug("http", "TLS failed", LOG_STR("client", connection_peer(c)), LOG_STR("error", tls_failure(c->tls)));
    metric_add(METRIC_HTTP_ABORTED, 1, "tls", NULL, NULL);
    if (c->request)
        connection_abort(c, false);
    else
        linger(c); /* so that the client can read the alert */
}

/* Decrypts what has arrived, handles it, and sends what TLS itself answers. */
static void receive_encrypted(struct connection *c, struct sl_bytes encrypted)
{
    uint8_t *plain = c->server->opened;
    enum tls_result result;
    size_t size;
    tls_feed(c->tls, encrypted);
    while ((result = tls_read(c->tls, plain, PLAIN_BUFFER, &size)) == TLS_DATA) {
        handshake_done(c); /* before data that arrived together with the end of the handshake */
        on_data(c, (struct sl_bytes){plain, size});
        if (c->dead)
            return;
    }
    bool was_sent = tls_output(c->tls)->size == 0 || send_tls_output(c);
    handshake_done(c); /* again, for a handshake that ended without data after it; does nothing otherwise */
    if (result == TLS_FAILED)
        tls_broken(c);
    else if (!was_sent)
        connection_abort(c, false);
    else if (result == TLS_END && !c->eof)
        on_end(c);
}

/* Handles bytes from the socket. */
static void on_bytes(struct connection *c, struct sl_bytes bytes)
{
    if (c->state == STATE_HANDSHAKE && !c->tls_begun && !tls_is_handshake_record(bytes)) {
        answer_plainly(c);
        return;
    }
    c->tls_begun = true;
    if (c->tls && c->state != STATE_LINGER) /* a lingering connection drops the bytes: no need to decrypt them */
        receive_encrypted(c, bytes);
    else
        on_data(c, bytes);
}

static void read_in_turn(struct connection *c);

/* libuv has read bytes, the end of the stream, or an error. UV_ENOBUFS: on_alloc gave no buffer, as the loop's time slice is used up. */
static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct connection *c = stream->data;
    if (c->dead || size == 0)
        return;
    if (size == UV_ENOBUFS) {
        read_in_turn(c);
    } else if (size > 0) {
        on_bytes(c, (struct sl_bytes){(const uint8_t *)buf->base, (size_t)size});
    } else if (size == UV_EOF) {
        on_end(c);
    } else {
        if (c->request)
            c->request->aborted = "reset";
        connection_abort(c, false);
    }
}

/* Reads and handles bytes that have arrived already; returns what read(2) returned. libuv meets the end and errors again later. */
static ssize_t read_now(struct connection *c, size_t most)
{
    uv_buf_t buf = uv_buf_init(c->server->read_buffer, (unsigned)most);
    uv_os_fd_t fd;
    ssize_t size = uv_fileno(&c->uv.handle, &fd) == 0 ? read(fd, buf.base, buf.len) : -1;
    if (size > 0)
        on_read(&c->uv.stream, size, &buf);
    return size;
}

/* It is the turn of a connection that read_in_turn queued: reads one buffer. A full one means that more is there: queues it again, behind
 * the other connections. */
static void on_turn(struct loop_waiter *waiter)
{
    struct connection *c = (struct connection *)((char *)waiter - offsetof(struct connection, turn));
    ssize_t size = read_now(c, READ_BUFFER);
    if (c->dead || !c->reading)
        return;
    if (size == READ_BUFFER)
        loop_waiter_enter(&c->turn, on_turn);
    else
        uv_read_start(&c->uv.stream, on_alloc, on_read); /* which read_in_turn stopped */
}

/* Stops reading until it is the connection's turn in the queue of all that wait for the loop (on_turn). */
static void read_in_turn(struct connection *c)
{
    uv_read_stop(&c->uv.stream);
    loop_waiter_enter(&c->turn, on_turn);
}

/* Starts or stops reading the socket. While a body is received, a stop also suspends its timeout, as the service is the slow side then. */
void connection_read(struct connection *c, bool on)
{
    if (c->reading == on || c->dead || c->eof)
        return;
    c->reading = on;
    loop_waiter_leave(&c->turn);
    if (on)
        uv_read_start(&c->uv.stream, on_alloc, on_read);
    else
        uv_read_stop(&c->uv.stream);
    if (c->state != STATE_BODY)
        return;
    if (on)
        /* the pause does not count as slowness of the client */
        c->request->body.started_ms += loop_now_ms() - c->paused_ms;
    else
        c->paused_ms = loop_now_ms();
    if (c->timeout != TIMEOUT_WRITE && c->timeout != TIMEOUT_DISCARD) /* these are not about the body's speed */
        server_timer(c, on ? body_timeout(c->request) : TIMEOUT_NONE);
}

/* ---- between requests ---- */
void connection_end_request(struct connection *c, bool close, bool whole)
{
    c->requests++;
    if (c->dead) {
        release(c);
        return;
    }
    /* `processing`: connection_consume, which calls this, may have more bytes than `pending` */
    if (close || (c->eof && c->pending.size == 0 && !c->processing)) {
        if (whole && c->pending.size == 0 && !c->processing)
            connection_abort(c, false);
        else
            linger(c);
        return;
    }
    connection_state(c, STATE_IDLE);
    server_timer(c, TIMEOUT_IDLE);
    connection_read(c, true);
    if (c->processing)
        return; /* the loop in connection_consume continues with its bytes */
    if (c->pending.size > 0)
        connection_consume(c, sl_buf_bytes(&c->pending));
    if (c->eof && !c->request && !c->dead && c->state != STATE_LINGER)
        connection_abort(c, false);
}

/* ---- timeouts ---- */
/* Called four times within write_timeout while a response is written: closes the connection if nothing was sent for that time, or less than
 * min_rate on average. */
static void expired_write(struct connection *c)
{
    const struct http_options *options = &c->server->options;
    size_t unsent = uv_stream_get_write_queue_size(&c->uv.stream);
    uint64_t now = loop_now_ms(), elapsed = now - c->write_started_ms;
    if (unsent < c->unsent) {
        c->unsent = unsent;
        c->write_progress_ms = now;
    }
    uint64_t sent =
        c->request ? c->request->bytes_out : 0; /* by earlier writes; the running one has answer_size bytes */
    /* if more is unsent, libuv is still sending a 100 Continue that was queued before the response */
    if (unsent < c->answer_size)
        sent += c->answer_size - unsent;
    bool slow = elapsed > RATE_GRACE_MS && sent / (elapsed / 1000) < options->min_rate;
    if (!slow && now - c->write_progress_ms < options->write_timeout_ms) {
        server_timer(c, TIMEOUT_WRITE);
        return;
    }
    if (c->request)
        c->request->aborted = slow ? "slow" : "write_timeout";
    connection_abort(c, true);
}

/* Ends what has taken too long. A slow head or body is answered with 408; a response is given up if expired_write finds it too slow; a
 * connection without a request is closed. Timeouts from TIMEOUT_FAMILY on are body timeouts of single APIs. */
void connection_handle_timeout(struct connection *c)
{
    enum connection_timeout timeout = c->timeout;
    server_timer(c, TIMEOUT_NONE);
    switch (timeout < TIMEOUT_FAMILY ? timeout : TIMEOUT_BODY) {
    case TIMEOUT_HEADER:
    case TIMEOUT_RESERVE:             /* the header timeout of a connection accepted above max_connections */
        if (c->state == STATE_HEAD) { /* else no byte of a request was received */
            struct request *r = connection_refuse(c, 408, "request head took too long");
            if (r)
                request_start(r);
        } else {
            connection_abort(c, false);
        }
        break;
    case TIMEOUT_BODY: fail_body(c, 408, "request body took too long", "body_timeout"); break;
    /* ends the dropping of a body; the response was sent before */
    case TIMEOUT_DISCARD: fail_body(c, 408, NULL, NULL); break;
    case TIMEOUT_WRITE: expired_write(c); break;
    case TIMEOUT_PROBE: probe_client(c); break;
    default: connection_abort(c, false);
    }
}

/* ---- the beginning ---- */
void connection_accept(struct http_listener *listener, int fd)
{
    struct http_server *server = listener->server;
    struct connection *c = calloc(1, sizeof *c);
    if (!c) {
        close(fd);
        return;
    }
    c->server = server;
    c->unix_socket = listener->unix_socket;
    if (listener->unix_socket)
        uv_pipe_init(loop_get(), &c->uv.pipe, 0);
    else
        uv_tcp_init(loop_get(), &c->uv.tcp);
    c->uv.handle.data = c;
    server_add_connection(c);
    if ((listener->unix_socket ? uv_pipe_open(&c->uv.pipe, fd) : uv_tcp_open(&c->uv.tcp, fd)) != 0) {
        close(fd);
        connection_abort(c, false);
        return;
    }
    c->reserve = server_is_full(server);                  /* accepted above max_connections: for health checks only */
    c->operators = listener->admin || !server->has_admin; /* may request operators' routes */
    c->loopback = listener->loopback;
    metric_add(METRIC_HTTP_CONNECTIONS_TOTAL, 1, c->reserve ? "over_limit" : "accepted", NULL, NULL);
    if (listener->tls && !(c->tls = tls_accept(server->tls))) {
        connection_abort(c, false);
        return;
    }
    if (c->tls)
        connection_state(c, STATE_HANDSHAKE);
    server_timer(c, c->tls ? TIMEOUT_HANDSHAKE : c->reserve ? TIMEOUT_RESERVE : TIMEOUT_HEADER);
    if (c->tls)
        server_bound_handshakes(server); /* too many: closes the oldest */
    connection_read(c, true);
    if (!c->tls || !loop_slice_is_used_up()) /* a handshake takes longer and can wait */
        read_now(c, READ_LATE); /* usually the request has arrived and need not wait for the next turn of the loop */
}
