/* The life of a request: a fiber runs its handler and writes the response; when the fiber and all fibers that the handler
 * started have ended, the memory is reused for the next request. */
#include <stdlib.h>

#include "core/log.h"
#include "core/loop.h"
#include "http/impl.h"

/* KEEP_*: larger buffers are freed instead of kept for the next request. FREE_REQUESTS: most request structures kept for reuse.
 * ANSWER_AT_ONCE: larger responses are sent by a fiber, which can wait for the client. */
enum { KEEP_ARENA = 16 * 1024, KEEP_BODY = 16 * 1024, FREE_REQUESTS = 128, ANSWER_AT_ONCE = 16 * 1024 };

static void on_empty(struct fiber_group *group);

/* Makes the request of a connection, from a recycled one if there is any; NULL when out of memory. */
struct request *request_new(struct connection *c)
{
    struct http_server *server = c->server;
    struct request *r = server->free_requests;
    if (r) {
        server->free_requests = r->next_free;
        server->free_request_count--;
    } else {
        r = calloc(1, sizeof *r);
        if (!r)
            return NULL;
    }
    r->server = server;
    r->connection = c;
    r->x.service = server->options.service;
    r->x.connection = r; /* by which unit tests find the request */
    r->x.content_length = -1;
    fiber_group_init(&r->x.group, NULL);
    r->x.group.on_empty = on_empty;
    r->start_ns = clock_mono_ns();
    c->request = r;
    server->active++;
    return r;
}

/* Frees what an ended request holds, except small buffers, and keeps the zeroed structure for a later request; frees it if enough are
 * kept already. */
static void request_recycle(struct request *r)
{
    struct http_server *server = r->server;
    body_finish(r);
    shared_blob_release(r->x.content);
    memory_resize(&r->x.memory, 0); /* returns what the request has reserved of the memory budget */
    if (r->x.body.capacity > KEEP_BODY || r->x.body.failed)
        sl_buf_free(&r->x.body);
    if (r->x.arena.used > KEEP_ARENA)
        sl_arena_free(&r->x.arena);
    else
        sl_arena_reset(&r->x.arena);
    if (server->free_request_count >= FREE_REQUESTS || server->stopping) {
        request_free(r);
        return;
    }
    struct request clean = {.x.arena = r->x.arena,
                            .x.body = r->x.body,
                            .body.window = r->body.window,
                            .body.raw = r->body.raw,
                            .body.piece = r->body.piece};
    *r = clean;
    sl_buf_clear(&r->x.body);
    r->next_free = server->free_requests;
    server->free_requests = r;
    server->free_request_count++;
}

/* Frees the request and its buffers. */
void request_free(struct request *r)
{
    sl_buf_free(&r->body.window);
    sl_buf_free(&r->body.raw);
    sl_buf_free(&r->body.piece);
    sl_buf_free(&r->x.body);
    sl_arena_free(&r->x.arena);
    free(r);
}

/* Recycles the request and lets the connection go on with the next one. */
static void request_end(struct request *r)
{
    struct connection *c = r->connection;
    /* copied, as request_recycle clears the request */
    bool close = r->close, whole = r->message_done && !r->framing_error;
    fiber_group_finish(&r->x.group);
    request_recycle(r);
    c->request = NULL;
    c->server->active--;
    connection_end_request(c, close, whole);
}

/* The last fiber of the request has ended. */
static void on_empty(struct fiber_group *group)
{
    request_end((struct request *)((char *)group - offsetof(struct request, x.group)));
}

/* Receives and drops a body that the route does not use, before the handler runs. If that fails, or the body is longer than DISCARD_LIMIT,
 * responds with an error and closes the connection. */
static void drop_body(struct request *r)
{
    if (body_discard_rest(r) || r->connection->dead)
        return;
    r->close = true;
    http_reply_error(&r->x, r->body.failed_status ? r->body.failed_status : 413, r->body.failed_detail);
}

/* The fiber of a request: runs the handler, sends the response, writes the access log, and reads what is left of the body. */
static void exchange_run(void *arg)
{
    struct request *r = arg;
    struct http_exchange *x = &r->x;
    struct connection *c = r->connection;
    fiber_set_request_id(x->request_id);
    if (r->trace.size || r->baggage.size)
        fiber_set_trace(r->trace, r->baggage);
    if (!x->status && !r->message_done && !x->route->body_limit) /* the route takes no body */
        drop_body(r);
    if (!x->status && !c->dead)
        x->route->handler(x);
    if (!x->status && !c->dead) /* the handler has set no response */
        http_reply_error(x, 500, "internal error");
    if (!c->dead)
        send_answer(r);
    else if (!r->aborted)
        r->aborted = "reset";
    if (x->file_release) /* the sent file is not needed any more */
        x->file_release(x->file_arg);
    x->waited_ns += fiber_waited_ns();
    access_record(r);
    if (!r->message_done && !r->close && !c->dead) {
        server_timer(c, TIMEOUT_DISCARD);
        r->close = !body_discard_rest(r);
    }
}

/* Refuses a request for which no fiber is free, with a fixed response, which is sent without a fiber. */
static void refuse_without_fiber(struct request *r)
{
    static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
                               "Content-Length: 44\r\nConnection: close\r\n\r\n"
                               "{\"detail\":\"too many requests are in flight\"}";
    struct http_server *server = r->server;
    r->x.status = 503;
    r->close = true;
    if (!send_reset(r)) /* some clients retry only after a reset: they get that instead */
        r->bytes_out = connection_send(r->connection, (struct sl_str){text, sizeof text - 1}) ? sizeof text - 1 : 0;
    access_record(r);
    metric_add(METRIC_HTTP_REFUSED, 1, "slots", NULL, NULL);
    server->refused_without_fiber++;
    if (loop_minutely(&server->next_fiber_warning_ms))
        log_warn("http", "rejecting requests: all fibers are in use; raise max_fibers if this lasts",
                 LOG_U64("since_start", server->refused_without_fiber));
    request_end(r);
}

/* ---- without a fiber ---- */
/* True if the response can be made and sent without waiting: it is set already and small, or the route's handler never waits. */
static bool needs_no_fiber(const struct request *r)
{
    const struct http_exchange *x = &r->x;
    if (x->status)
        return !x->file && !x->content && x->body.size <= ANSWER_AT_ONCE;
    return x->route->immediate && r->message_done;
}

/* Runs the handler and sends the response on the loop. */
static void answer_at_once(struct request *r)
{
    struct http_exchange *x = &r->x;
    if (!x->status)
        x->route->handler(x);
    if (!x->status)
        http_reply_error(x, 500, "internal error");
    send_now(r);
}

/* Ends a request without a fiber, whose response is written or whose connection is closed. If the rest of its body is still to come, that
 * is dropped first; request_finish is called after it. */
void request_answered(struct request *r)
{
    struct connection *c = r->connection;
    access_record(r);
    if (r->message_done || r->framing_error || r->close || c->dead) {
        request_end(r);
        return;
    }
    r->discarding = true;
    server_timer(c, TIMEOUT_DISCARD);
    connection_read(c, true);
}

/* Ends the request. If its handler has not run, because the client has gone, the access log says so; after an incomplete body the
 * connection is closed. */
void request_finish(struct request *r)
{
    if (!r->started) {
        loop_waiter_leave(&r->turn);
        r->aborted = r->aborted ? r->aborted : "reset";
        access_record(r);
    }
    r->close |= !r->message_done;
    request_end(r);
}

/* Starts the request, with a fiber if it needs one. */
static void start_now(struct request *r)
{
    r->started = true;
    if (needs_no_fiber(r))
        answer_at_once(r);
    else if (!fiber_start_now(&r->x.group, exchange_run, r))
        refuse_without_fiber(r);
}

/* It is the turn of a request that request_start queued. If its connection is being closed, connection.c ends it. */
static void on_turn(struct loop_waiter *waiter)
{
    struct request *r = (struct request *)((char *)waiter - offsetof(struct request, turn));
    if (!r->connection->dead)
        start_now(r);
}

/* Starts the request at once or, if the loop's time slice is used up, after the requests that wait already. Health checks do not
 * wait for other requests. */
void request_start(struct request *r)
{
    const struct http_route *route = r->x.route;
    if ((route && route->health) || !loop_slice_is_used_up())
        start_now(r);
    else
        loop_waiter_enter(&r->turn, on_turn);
}
