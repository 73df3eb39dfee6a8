/* The server as a whole: listeners, the table of connections, timeouts, limits, drain and end. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/log.h"
#include "core/loop.h"
#include "core/temp_dir.h"
#include "core/loop_slice.h"
#include "http/impl.h"

enum {
    HANDSHAKE_MS = 10000, /* time limit of a TLS handshake */
    /* EVICT_*_MS: how long a connection must have waited before a full server may close it */
    EVICT_IDLE_MS = 1000,
    EVICT_LOOKS = 64,         /* most connections that evict_from_busy_address looks at */
    EVICT_ANSWERED_MS = 250,  /* its response is sent, the rest of its body is dropped */
    EVICT_SILENT_MS = 1000,   /* within a head or body */
    EVICT_UPLOAD_MS = 5000,   /* within a body of an API with a body timeout of its own */
    RESERVE_HEADER_MS = 2000, /* timeouts of TIMEOUT_RESERVE, _DISCARD, _LINGER and _PROBE */
    DISCARD_MS = 2000,
    LINGER_MS = 5000,
    PROBE_MS = 400,
    ACCEPTS_PER_EVENT = 64
};

void http_options_default(struct http_options *options)
{
    *options = (struct http_options){
        .backlog = 4096,
        .max_request_line = 8 * 1024,
        .max_head_bytes = 32 * 1024,
        .compress_min = 4 * 1024,
        .max_header_fields = 100,
        .max_bodies_in_flight = 800,
        .max_connections = loop_default_connections(),
        .keepalive_requests = 10000,
        .header_timeout_ms = 10000,
        .body_timeout_ms = 30000,
        .idle_timeout_ms = 75000,
        .write_timeout_ms = 30000,
        .min_rate = 1024,
        .file_max_age_s = 3600,
        .server_header = true,
    };
}

/* ---- timeouts ----
 * Connections with the same kind of timeout are in one queue. As a kind has one duration, appending keeps a queue ordered by due time. A
 * connection that writes is counted in a gauge of its own, which changes with the timeout. */
void server_timer(struct connection *c, enum connection_timeout timeout)
{
    struct timer_queue *queue = &c->server->queues[c->timeout];
    if (c->timeout != TIMEOUT_NONE)
        sl_list_remove(&queue->connections, &c->timer);
    if ((c->timeout == TIMEOUT_WRITE) != (timeout == TIMEOUT_WRITE)) {
        server_count(c, -1);
        c->timeout = timeout;
        server_count(c, 1);
    }
    c->timeout = timeout;
    if (timeout == TIMEOUT_NONE)
        return;
    queue = &c->server->queues[timeout];
    c->due_ms = loop_now_ms() + queue->ms;
    sl_list_append(&queue->connections, &c->timer);
}

static struct connection *first_due(const struct http_server *server, size_t timeout)
{
    return SL_LIST_FIRST(&server->queues[timeout].connections, struct connection, timer);
}

static void resume_listeners(struct http_server *server);

/* Handles all timeouts that are due, and lets paused listeners accept again if there is room. The timer stops when there are no
 * connections. */
static void on_tick(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    uint64_t now = loop_now_ms();
    resume_listeners(server); /* a connection may have become old enough to be closed for a new one */
    if (server->connection_count == 0)
        uv_timer_stop(timer);
    for (size_t i = TIMEOUT_NONE + 1; i < server->queue_count; i++)
        for (struct connection *c; (c = first_due(server, i)) && c->due_ms <= now;)
            connection_handle_timeout(c);
}

/* Returns how often timeouts are checked, in milliseconds: four times within the shortest one, and every 100 ms at
 * least. */
static uint64_t tick_period(const struct http_server *server)
{
    uint64_t period = 400;
    for (size_t i = TIMEOUT_NONE + 1; i < server->queue_count; i++)
        if (server->queues[i].ms < period)
            period = server->queues[i].ms;
    return period / 4 ? period / 4 : 1;
}

static void start_tick(struct http_server *server)
{
    if (!uv_is_active((uv_handle_t *)&server->tick))
        uv_timer_start(&server->tick, on_tick, tick_period(server), tick_period(server));
}

/* ---- connections ---- */
/* Returns the gauge that counts the connection: by its state or, while a response is written, GAUGE_WRITING. */
static enum connection_gauge choose_gauge(const struct connection *c)
{
    /* STATE_IDLE has the value 0, GAUGE_IDLE */
    static const enum connection_gauge of_state[STATES] = {
        [STATE_HEAD] = GAUGE_READING,        [STATE_BODY] = GAUGE_READING, [STATE_WORK] = GAUGE_WORKING,
        [STATE_HANDSHAKE] = GAUGE_HANDSHAKE, [STATE_LINGER] = GAUGE_NONE,  [STATE_CLOSING] = GAUGE_NONE,
    };
    return c->timeout == TIMEOUT_WRITE ? GAUGE_WRITING : of_state[c->state];
}

/* Makes the series of the gauges. GAUGE_NONE, the last one, has none: such connections are not reported. */
static void gauges_init(struct http_server *server)
{
    static const char *const names[GAUGE_NONE] = {"idle", "reading", "working", "writing", "handshake"};
    for (int i = 0; i < GAUGE_NONE; i++) {
        server->gauges[i] = metric_series(METRIC_HTTP_CONNECTIONS, names[i], NULL, NULL);
        metric_series_set(server->gauges[i], 0);
    }
}

void server_count(const struct connection *c, int change)
{
    struct http_server *server = c->server;
    enum connection_gauge gauge = choose_gauge(c);
    server->counts[gauge] += (size_t)change;
    metric_series_set(server->gauges[gauge], (double)server->counts[gauge]);
}

static void wake_stopper(struct http_server *server)
{
    if (server->stopper)
        fiber_wake(server->stopper);
}

/* Returns the limit of open connections, including the reserve for health checks. */
static size_t most_connections(const struct http_server *server)
{
    size_t most = server->options.max_connections;
    return most + (most < RESERVE_CLASS ? most : RESERVE_CLASS); /* a small reserve if there are few descriptors */
}

void server_add_connection(struct connection *c)
{
    struct http_server *server = c->server;
    start_tick(server);
    sl_list_prepend(&server->connections, &c->link);
    server->connection_count++;
    server_count(c, 1);
}

void server_remove_connection(struct connection *c)
{
    struct http_server *server = c->server;
    sl_list_remove(&server->connections, &c->link);
    server->connection_count--;
    server->closing -= c->dead;
    server_count(c, -1);
    if (server->connection_count == 0)
        wake_stopper(server);
    resume_listeners(server);
}

static size_t open_connections(const struct http_server *server)
{
    return server->connection_count - server->closing;
}

bool server_is_full(const struct http_server *server)
{
    return open_connections(server) > server->options.max_connections;
}

/* Closes the connection that was idle longest, if for at least `ms`; its descriptor is free at once. False if there is none. */
static bool evict_idle(struct http_server *server, uint64_t ms)
{
    struct connection *oldest = first_due(server, TIMEOUT_IDLE);
    if (!oldest || loop_now_ms() - oldest->state_since_ms < ms)
        return false;
    connection_abort(oldest, false);
    return true;
}

/* Closes the connection with this timeout that has waited longest for its client, if for at least `ms`; false if there is none. */
static bool evict_silent(struct http_server *server, size_t timeout, uint64_t ms)
{
    const struct timer_queue *queue = &server->queues[timeout];
    struct connection *oldest = first_due(server, timeout);
    if (!oldest || loop_now_ms() + queue->ms < oldest->due_ms + ms) /* it waits since due_ms - queue->ms */
        return false;
    if (oldest->request && !oldest->request->aborted)
        oldest->request->aborted = "slow";
    connection_abort(oldest, false);
    return true;
}

/* Closes a connection with an incomplete body whose client address has more incomplete bodies than a quarter of max_connections: the one
 * of these that was silent longest. Looks at few, as this may be called for each new connection. */
static bool evict_from_busy_address(struct http_server *server)
{
    struct connection *c = first_due(server, TIMEOUT_BODY);
    for (int looks = 0; c && looks < EVICT_LOOKS; looks++, c = SL_LIST_NEXT(c, timer)) {
        const struct client_address *entry = c->request ? c->request->body.in_flight_of : NULL;
        if (!entry || entry->halves <= server->options.max_connections / 4)
            continue;
        c->request->aborted = c->request->aborted ? c->request->aborted : "slow";
        connection_abort(c, false);
        return true;
    }
    return false;
}

/* Closes a connection of a full server, the first of: an idle one; an answered one that still sends; one that was silent within a body or
 * head; one of an address with very many bodies. False if there is none. */
static bool evict_one(struct http_server *server)
{
    static const struct {
        enum connection_timeout timeout;
        uint64_t ms;
    } waiting[] = {{TIMEOUT_LINGER, EVICT_ANSWERED_MS},
                   {TIMEOUT_DISCARD, EVICT_ANSWERED_MS},
                   {TIMEOUT_BODY, EVICT_SILENT_MS},
                   {TIMEOUT_HEADER, EVICT_SILENT_MS}};
    if (evict_idle(server, 0))
        return true;
    for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++)
        if (evict_silent(server, waiting[i].timeout, waiting[i].ms))
            return true;
    for (size_t i = TIMEOUT_FAMILY; i < server->queue_count; i++) /* bodies of APIs that have a timeout of their own */
        if (evict_silent(server, i, EVICT_UPLOAD_MS))
            return true;
    return evict_from_busy_address(server);
}

/* Closes the connection whose TLS handshake began first when there are more than MAX_HANDSHAKES. */
void server_bound_handshakes(struct http_server *server)
{
    struct connection *oldest = first_due(server, TIMEOUT_HANDSHAKE);
    if (oldest && server->counts[GAUGE_HANDSHAKE] > MAX_HANDSHAKES)
        connection_abort(oldest, false);
}

/* Called for each new connection: closes one that was idle for EVICT_IDLE_MS when 90 % of the limit are open, and others that do no
 * work when the limit is reached. */
static void server_close_idle(struct http_server *server)
{
    size_t limit = server->options.max_connections;
    if (open_connections(server) >= limit * 9 / 10)
        evict_idle(server, EVICT_IDLE_MS);
    while (open_connections(server) >= limit && evict_one(server)) {
    }
}

/* ---- accepting ----
 * libuv's own listeners retry at once when accept fails, which loops while no descriptor is free. These pause instead, until on_tick or
 * the end of a connection resumes them. */
static void pause_listener(struct http_listener *listener)
{
    listener->paused = true;
    uv_poll_stop(&listener->poll);
    start_tick(listener->server);
}

static void on_acceptable(uv_poll_t *poll, int status, int events);

/* True if a listener has stopped accepting for a while. */
static bool any_paused(const struct http_server *server)
{
    bool any = false;
    for (size_t i = 0; i < server->listener_count; i++)
        any = any || server->listeners[i].paused;
    return any;
}

/* Lets paused listeners accept connections again, if the server is not full any more or could close a connection for a new one. */
static void resume_listeners(struct http_server *server)
{
    if (server->stopping || !any_paused(server) ||
        (open_connections(server) >= most_connections(server) && !evict_one(server)))
        return;
    for (size_t i = 0; i < server->listener_count; i++) {
        if (server->listeners[i].paused) {
            server->listeners[i].paused = false;
            uv_poll_start(&server->listeners[i].poll, UV_READABLE, on_acceptable);
        }
    }
}

static void note_accept_failure(struct http_server *server, int number)
{
    metric_add(METRIC_HTTP_CONNECTIONS_TOTAL, 1, "emfile", NULL, NULL);
    if (loop_minutely(&server->next_accept_warning_ms))
        log_error("http", "cannot accept connections", LOG_STR("error", strerror(number)));
}

/* Accepts waiting connections: ACCEPTS_PER_EVENT, or more while the loop's time slice lasts. To make room, a full server closes a
 * connection that does no work (evict_one); if there is none, it stops accepting for a while. */
static void on_acceptable(uv_poll_t *poll, int status, int events)
{
    struct http_listener *listener = poll->data;
    struct http_server *server = listener->server;
    (void)status, (void)events; /* accept reports errors */
    for (int turn = 0; turn < ACCEPTS_PER_EVENT || !loop_slice_is_used_up(); turn++) {
        if (open_connections(server) >= most_connections(server) && !evict_one(server)) {
            pause_listener(listener);
            return;
        }
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            server_close_idle(server);
            connection_accept(listener, fd);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            note_accept_failure(server, errno);
            if (!evict_one(server)) {
                pause_listener(listener);
                return;
            }
        } /* other errors are of a connection that failed before it was accepted */
    }
}

/* Accepts the waiting connections of a listener that is about to be closed, which would reset them: the other processes that listen on
 * the address do not get them. */
static void accept_rest(struct http_listener *listener)
{
    int fd = 0;
    for (int i = 0; i < listener->server->options.backlog && fd >= 0; i++)
        if ((fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
            connection_accept(listener, fd);
}

/* ---- listeners ---- */
/* Starts to accept on an open listener and counts it; closes it on failure. */
static enum sl_code watch(struct http_listener *listener, struct sl_error *error)
{
    int result = uv_poll_init(loop_get(), &listener->poll, listener->fd);
    if (result != 0) {
        listener_close(listener);
        return sl_fail(error, SL_INTERNAL, "cannot listen on %s: %s", listener->address, uv_strerror(result));
    }
    listener->server->listener_count++;
    listener->server->open_handles++;
    listener->poll.data = listener;
    uv_poll_start(&listener->poll, UV_READABLE, on_acceptable);
    return SL_OK;
}

enum listener_purpose { FOR_HTTP, FOR_HTTPS, FOR_ADMIN };
static const char *const purpose_names[] = {"http", "https", "admin"};

/* Prepares the next free element of server->listeners; watch() counts it once its socket is open. */
static struct http_listener *next_listener(struct http_server *server, enum listener_purpose purpose)
{
    struct http_listener *listener = &server->listeners[server->listener_count];
    *listener =
        (struct http_listener){.server = server, .fd = -1, .tls = purpose == FOR_HTTPS, .admin = purpose == FOR_ADMIN};
    return listener;
}

/* Listens on the sockets that the service manager passed for this purpose. */
static enum sl_code adopt_passed(struct http_server *server, enum listener_purpose purpose, struct sl_error *error)
{
    int fds[MAX_PASSED_LISTENERS];
    size_t count = listeners_get_passed(purpose_names[purpose], fds);
    enum sl_code code =
        count ? SL_OK
              : sl_fail(error, SL_INTERNAL,
                        "cannot listen on systemd: no sockets were passed; start the service by its socket unit");
    for (size_t i = 0; code == SL_OK && i < count; i++) {
        struct http_listener *listener = next_listener(server, purpose);
        code = listener_adopt(listener, fds[i], error);
        code = code == SL_OK ? watch(listener, error) : code;
    }
    return code;
}

/* Listens on an address, or with "systemd" on the passed sockets. */
static enum sl_code listen_on(struct http_server *server, const char *address, enum listener_purpose purpose,
                              struct sl_error *error)
{
    if (strcmp(address, "systemd") == 0)
        return adopt_passed(server, purpose, error);
    struct http_listener *listener = next_listener(server, purpose);
    enum sl_code code = listener_open(listener, address, error);
    return code == SL_OK ? watch(listener, error) : code;
}

/* Opens all listeners; then unsets the environment variables that name the sockets passed by systemd. */
static enum sl_code listen_on_all(struct http_server *server, struct sl_error *error)
{
    const struct http_options *o = &server->options;
    const struct { /* by enum listener_purpose */
        const char *const *addresses;
        size_t count;
    } lists[] = {{o->bind, o->bind_count}, {o->bind_https, o->bind_https_count}, {o->admin_bind, o->admin_bind_count}};
    enum sl_code code = SL_OK;
    server->has_admin = o->admin_bind_count > 0;
    for (int purpose = FOR_HTTP; purpose <= FOR_ADMIN; purpose++)
        for (size_t i = 0; code == SL_OK && i < lists[purpose].count; i++)
            code = listen_on(server, lists[purpose].addresses[i], (enum listener_purpose)purpose, error);
    listeners_unset_environment();
    return code;
}

/* ---- handles ---- */

/* libuv has closed a handle: after the last one http_server_stop continues, or a server that failed to start is freed. */
static void on_handle_closed(uv_handle_t *handle)
{
    struct http_server *server =
        handle->type == UV_TIMER ? handle->data : ((struct http_listener *)handle->data)->server;
    server->open_handles--;
    wake_stopper(server);
    if (server->failed && server->open_handles == 0)
        server_free(server);
}

/* Closes a listener; does nothing the second time. */
static void stop_listening(struct http_listener *listener)
{
    if (uv_is_closing((uv_handle_t *)&listener->poll))
        return;
    listener->paused = false;
    uv_close((uv_handle_t *)&listener->poll, on_handle_closed);
    listener_close(listener);
}

static void close_handles(struct http_server *server)
{
    for (size_t i = 0; i < server->listener_count; i++)
        stop_listening(&server->listeners[i]);
    uv_close((uv_handle_t *)&server->tick, on_handle_closed);
}

/* ---- start and end ---- */
void server_free(struct http_server *server)
{
    while (server->free_requests) {
        struct request *next = server->free_requests->next_free;
        request_free(server->free_requests);
        server->free_requests = next;
    }
    sl_map_free(&server->ips);
    free(server->proxies);
    tls_context_free(server->tls);
    sl_arena_free(&server->arena);
    free(server);
}

/* ---- routes ---- */
static const char *with_prefix(struct sl_arena *arena, const char *prefix, const char *pattern)
{
    struct sl_buf whole = {0};
    sl_buf_cstr(&whole, prefix);
    sl_buf_cstr(&whole, pattern);
    return sl_buf_move_to_arena(&whole, arena).data;
}

/* Copies the routes of an API, with its prefix, to server->routes from the index `*at` on, which advances. False when out of memory. */
static bool copy_routes(struct http_server *server, size_t index, size_t *at)
{
    const struct http_family *family = server->options.families[index];
    const char *prefix = family->prefix ? family->prefix(server->options.service) : "";
    enum connection_timeout timeout =
        family->body_timeout_ms ? (enum connection_timeout)(TIMEOUT_FAMILY + index) : TIMEOUT_BODY;
    for (const struct http_route *route = family->routes; route->method; route++, (*at)++) {
        server->routes[*at] = *route;
        server->routes[*at].family = family;
        server->body_timeouts[*at] = timeout;
        if (*prefix)
            server->routes[*at].pattern = with_prefix(&server->arena, prefix, route->pattern);
        if (!server->routes[*at].pattern)
            return false;
    }
    return true;
}

/* Applies the path prefixes of a new configuration to the routes. When out of memory, the remaining routes keep their old prefixes. */
static void renew_prefixes(struct http_server *server)
{
    const struct http_family *const *families = server->options.families;
    for (size_t i = 0, at = 0; families[i]; i++) {
        const char *prefix = families[i]->prefix ? families[i]->prefix(server->options.service) : "";
        size_t size = strlen(prefix);
        for (const struct http_route *route = families[i]->routes; route->method; route++, at++) {
            const char *pattern = server->routes[at].pattern;
            if (strncmp(pattern, prefix, size) == 0 && strcmp(pattern + size, route->pattern) == 0)
                continue; /* it has this prefix already */
            pattern = *prefix ? with_prefix(&server->arena, prefix, route->pattern) : route->pattern;
            if (!pattern)
                return;
            server->routes[at].pattern = pattern;
            server->series[at] = (struct route_series){.duration = NULL}; /* their label is the pattern */
        }
    }
}

bool server_take_routes(struct http_server *server)
{
    const struct http_family *const *families = server->options.families;
    size_t family_count = 0, at = 0;
    for (; families[family_count]; family_count++)
        for (const struct http_route *route = families[family_count]->routes; route->method; route++)
            server->route_count++;
    /* route_count + 1: for the end mark, and for the series of requests without a route */
    server->queue_count = TIMEOUT_FAMILY + family_count;
    server->queues = SL_ARENA_ARRAY(&server->arena, struct timer_queue, server->queue_count);
    server->routes = SL_ARENA_ARRAY(&server->arena, struct http_route, server->route_count + 1);
    server->body_timeouts = SL_ARENA_ARRAY(&server->arena, enum connection_timeout, server->route_count + 1);
    server->series = SL_ARENA_ARRAY(&server->arena, struct route_series, server->route_count + 1);
    bool good = server->queues && server->routes && server->body_timeouts && server->series;
    for (size_t i = 0; good && i < family_count; i++)
        good = copy_routes(server, i, &at);
    return good;
}

/* Sets the time limit of each queue from the options. */
static void set_timeouts(struct http_server *server)
{
    const struct http_options *options = &server->options;
    server->queues[TIMEOUT_HANDSHAKE].ms =
        options->header_timeout_ms < HANDSHAKE_MS ? options->header_timeout_ms : HANDSHAKE_MS;
    server->queues[TIMEOUT_HEADER].ms = options->header_timeout_ms;
    server->queues[TIMEOUT_RESERVE].ms = RESERVE_HEADER_MS;
    server->queues[TIMEOUT_BODY].ms = options->body_timeout_ms;
    server->queues[TIMEOUT_DISCARD].ms = DISCARD_MS;
    server->queues[TIMEOUT_IDLE].ms = options->idle_timeout_ms;
    server->queues[TIMEOUT_WRITE].ms = options->write_timeout_ms / 4; /* checks the progress in between */
    server->queues[TIMEOUT_LINGER].ms = LINGER_MS;
    server->queues[TIMEOUT_PROBE].ms = PROBE_MS;
    for (size_t i = 0; options->families[i]; i++) {
        uint64_t (*own)(const void *service) = options->families[i]->body_timeout_ms;
        server->queues[TIMEOUT_FAMILY + i].ms = own ? own(options->service) : options->body_timeout_ms;
    }
}

/* Parses the networks of trusted proxies; `unix` stands for all clients of Unix sockets. */
static enum sl_code set_proxies(struct http_server *server, struct sl_error *error)
{
    const struct http_options *options = &server->options;
    server->trust_unix = false;
    server->proxy_count = 0;
    for (size_t i = 0; i < options->trusted_proxy_count; i++) {
        const char *text = options->trusted_proxies[i];
        if (strcmp(text, "unix") == 0)
            server->trust_unix = true;
        else if (!network_parse(sl_str(text), &server->proxies[server->proxy_count++]))
            return sl_fail(
                error, SL_MALFORMED,
                "http.trusted_proxies: %s is not an address or network (examples: 10.0.0.1, 10.0.0.0/8, unix)", text);
    }
    return SL_OK;
}

/* Opens the socket for the other processes of this service, if it has several. FOR_ADMIN: they may use operators' routes. */
static enum sl_code listen_on_peer_socket(struct http_server *server, struct sl_error *error)
{
    char address[128];
    if (!server->options.peer_socket)
        return SL_OK;
    snprintf(address, sizeof address, "unix:%s", server->options.peer_socket);
    return listen_on(server, address, FOR_ADMIN, error);
}

/* Logs the routes that are enabled, for debugging. */
static void log_routes(const struct http_server *server)
{
    for (const struct http_route *r = server->routes; r->method && log_enabled(LOG_DEBUG, "http"); r++) {
        const struct log_field fields[] = {LOG_STR("method", r->method), LOG_STR("path", r->pattern), {.key = NULL}};
        if (!r->family->enabled || r->family->enabled(server->options.service))
            log_write(NULL, LOG_DEBUG, "http", __FILE__, __LINE__, "route", fields);
    }
}

enum sl_code http_server_start(const struct http_options *options, struct http_server **out, struct sl_error *error)
{
    struct http_server *server = calloc(1, sizeof *server);
    if (!server)
        return sl_fail(error, SL_BUSY, "out of memory");
    parse_init();
    gauges_init(server);
    server->options = *options;
    if (!server->options.tmp_dir)
        server->options.tmp_dir = temp_dir();
    server->listeners = SL_ARENA_ARRAY(&server->arena, struct http_listener,
                                       options->bind_count + options->bind_https_count + options->admin_bind_count +
                                           MAX_PASSED_LISTENERS);
    server->proxies = calloc(options->trusted_proxy_count + 1, sizeof *server->proxies);
    uv_timer_init(loop_get(), &server->tick);
    server->tick.data = server;
    server->open_handles = 1; /* `tick` */
    bool good = server_take_routes(server) && server->listeners && server->proxies;
    enum sl_code code = good ? set_proxies(server, error) : sl_fail(error, SL_BUSY, "out of memory");
    if (good)
        set_timeouts(server);
    if (code == SL_OK && options->bind_https_count)
        code = server_load_certificate(options, &server->tls, error);
    if (code == SL_OK)
        code = listen_on_all(server, error);
    if (code == SL_OK)
        code = listen_on_peer_socket(server, error);
    if (code) {
        server->failed = true; /* on_handle_closed frees the server */
        close_handles(server);
        return code;
    }
    http_server_check_certificate(server);
    log_routes(server);
    *out = server;
    return SL_OK;
}

void http_server_configure(struct http_server *server, const struct http_options *options)
{
    struct http_options before = server->options;
    struct network *proxies = calloc(options->trusted_proxy_count + 1, sizeof *proxies); /* + 1: never empty */
    server->options = *options;
    server->options.bind = before.bind; /* these cannot change while the server runs */
    server->options.bind_count = before.bind_count;
    server->options.peer_socket = before.peer_socket;
    server->options.bind_https_count = before.bind_https_count;
    server->options.admin_bind_count = before.admin_bind_count;
    server->options.families = before.families;
    server->options.service = before.service;
    server->options.authorize = before.authorize;
    server->options.tmp_dir = before.tmp_dir;
    if (!proxies)
        server->options.trusted_proxy_count = 0; /* trust no proxy rather than any */
    free(server->proxies);
    server->proxies = proxies;
    set_proxies(server, NULL); /* cannot fail: the configuration was checked */
    set_timeouts(server);
    renew_prefixes(server);
    server_renew_certificate(server);
    if (server->connection_count) /* the timer runs: restarts it with the new period */
        uv_timer_start(&server->tick, on_tick, tick_period(server), tick_period(server));
}

const char *http_server_address(struct http_server *server, size_t index)
{
    return index < server->listener_count ? server->listeners[index].address : "";
}

const char *http_server_protocol(struct http_server *server, size_t index)
{
    const struct http_listener *listener = &server->listeners[index];
    return listener->tls ? "HTTPS" : listener->admin ? "admin" : "HTTP";
}

void http_server_drain(struct http_server *server)
{
    server->draining = true;
    for (struct connection *c = SL_LIST_FIRST(&server->connections, struct connection, link), *next; c; c = next) {
        next = SL_LIST_NEXT(c, link);
        /* a connection without a request so far is new: its first one may be on the way */
        if (c->state == STATE_IDLE && c->pending.size == 0 && c->requests > 0)
            connection_abort(c, false);
    }
    for (size_t i = 0; i < server->listener_count; i++) {
        struct http_listener *listener = &server->listeners[i];
        bool is_shared = server->options.shares_listeners && !listener->unix_socket;
        if (is_shared)
            accept_rest(listener);
        if (is_shared || listener->passed) /* the manager keeps waiting connections for the next process */
            stop_listening(listener);
    }
}
size_t http_server_connections(struct http_server *server)
{
    return server->connection_count;
}
size_t http_server_active(struct http_server *server)
{
    return server->active;
}

void http_server_stop(struct http_server *server)
{
    server->stopping = true;
    close_handles(server);
    /* connections leave the list later, in callbacks of the loop */
    for (struct connection *c = SL_LIST_FIRST(&server->connections, struct connection, link); c;
         c = SL_LIST_NEXT(c, link))
        connection_abort(c, false);
    server->stopper = fiber_self();
    while (server->connection_count > 0 || server->open_handles > 0)
        fiber_suspend_uncancellable();
    server_free(server);
}
