/* The server as a whole: listeners, the table of connections, timeouts, limits, drain and end. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/log.h"
#include "core/loop.h"
#include "http/impl.h"

enum { GAUGE_PERIOD_MS = 1000, EVICT_IDLE_MS = 1000, RESERVE_HEADER_MS = 2000, DISCARD_MS = 2000, LINGER_MS = 5000 };

void http_options_default(struct http_options *options)
{
    struct rlimit files;
    uint64_t descriptors = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 1024;
    uint64_t connections = descriptors > 1024 ? (descriptors - 512) / 2 : descriptors / 4;
    *options = (struct http_options){
        .backlog = 511,
        .max_request_line = 8 * 1024,
        .max_head_bytes = 32 * 1024,
        .compress_min = 4 * 1024,
        .max_header_fields = 100,
        .max_bodies_in_flight = 800,
        .max_connections = connections < 10000 ? (unsigned)connections : 10000,
        .keepalive_requests = 10000,
        .header_timeout_ms = 10000,
        .body_timeout_ms = 30000,
        .idle_timeout_ms = 75000,
        .write_timeout_ms = 30000,
        .min_rate = 1024,
        .server_header = true,
    };
}

/* ---- timeouts ----
 * Every timeout of one kind lasts equally long, so its list is in order of expiry: starting one appends it. */
void server_timer(struct connection *c, enum timeout timeout)
{
    struct timer_queue *queue = &c->server->queues[c->timeout];
    if (c->timeout != TIMEOUT_NONE) {
        *(c->timer_previous ? &c->timer_previous->timer_next : &queue->first) = c->timer_next;
        *(c->timer_next ? &c->timer_next->timer_previous : &queue->last) = c->timer_previous;
    }
    c->timeout = timeout;
    if (timeout == TIMEOUT_NONE)
        return;
    queue = &c->server->queues[timeout];
    c->due_ms = loop_now_ms() + queue->ms;
    c->timer_next = NULL;
    c->timer_previous = queue->last;
    *(queue->last ? &queue->last->timer_next : &queue->first) = c;
    queue->last = c;
}

static void update_gauges(struct http_server *server)
{
    const size_t *counts = server->counts;
    metric_set(METRIC_HTTP_CONNECTIONS, (double)counts[STATE_IDLE], "idle", NULL, NULL);
    metric_set(METRIC_HTTP_CONNECTIONS, (double)(counts[STATE_HEAD] + counts[STATE_BODY]), "reading", NULL, NULL);
    metric_set(METRIC_HTTP_CONNECTIONS, (double)counts[STATE_WORK], "working", NULL, NULL);
}

static void on_tick(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    uint64_t now = loop_now_ms();
    for (int i = TIMEOUT_NONE + 1; i < TIMEOUTS; i++)
        while (server->queues[i].first && server->queues[i].first->due_ms <= now)
            connection_expired(server->queues[i].first);
    if (now >= server->next_gauges_ms) {
        update_gauges(server);
        server->next_gauges_ms = now + GAUGE_PERIOD_MS;
    }
}

static uint64_t tick_period(const struct http_server *server)
{
    uint64_t period = 400;
    for (int i = TIMEOUT_NONE + 1; i < TIMEOUTS; i++)
        if (server->queues[i].ms < period)
            period = server->queues[i].ms;
    return period / 4 ? period / 4 : 1;
}

/* ---- connections ---- */
static void wake_stopper(struct http_server *server)
{
    if (server->stopper)
        fiber_wake(server->stopper);
}

static size_t most_connections(const struct http_server *server)
{
    return (size_t)server->options.max_connections + RESERVE_LANE;
}

void server_remember(struct connection *c)
{
    struct http_server *server = c->server;
    if (server->connection_count == 0)
        uv_timer_start(&server->tick, on_tick, tick_period(server), tick_period(server));
    c->next = server->connections;
    if (c->next)
        c->next->previous = c;
    server->connections = c;
    server->connection_count++;
    server->counts[STATE_IDLE]++;
}

void server_forget(struct connection *c)
{
    struct http_server *server = c->server;
    *(c->previous ? &c->previous->next : &server->connections) = c->next;
    if (c->next)
        c->next->previous = c->previous;
    server->connection_count--;
    server->counts[c->state]--;
    if (server->connection_count == 0) {
        uv_timer_stop(&server->tick);
        update_gauges(server);
        wake_stopper(server);
    }
    for (size_t i = 0; i < server->listener_count && !server->stopping; i++) {
        if (server->listeners[i].waiting && server->connection_count < most_connections(server)) {
            server->listeners[i].waiting = false;
            connection_accept(&server->listeners[i]);
        }
    }
}

/* Near the limit the connections that have been idle longest make room. */
static void evict_idle(struct http_server *server)
{
    struct connection *oldest = server->queues[TIMEOUT_IDLE].first;
    if (server->connection_count >= (size_t)server->options.max_connections * 9 / 10 && oldest &&
        loop_now_ms() - oldest->state_since_ms >= EVICT_IDLE_MS)
        connection_abort(oldest, false);
}

static void on_connection(uv_stream_t *stream, int status)
{
    struct listener *listener = stream->data;
    struct http_server *server = listener->server;
    if (status != 0) {
        metric_add(METRIC_HTTP_CONNECTIONS_TOTAL, 1, "emfile", NULL, NULL);
        if (server->next_accept_warning_ms <= loop_now_ms()) {
            log_warn("http", "connections cannot be accepted", LOG_STR("error", uv_strerror(status)));
            server->next_accept_warning_ms = loop_now_ms() + 60000;
        }
        return;
    }
    evict_idle(server);
    if (server->connection_count >= most_connections(server))
        listener->waiting = true; /* not accepted: libuv does not poll the listener until then */
    else
        connection_accept(listener);
}

/* ---- listeners ---- */
static void tune(uv_handle_t *handle)
{
    uv_os_fd_t fd;
    static const int on = 1, idle_s = 60;
    static const unsigned user_timeout_ms = 30000;
    if (uv_fileno(handle, &fd) != 0)
        return;
    /* Accepted sockets inherit these, which saves system calls per connection. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof user_timeout_ms);
}

static bool parse_address(const char *text, struct sockaddr_storage *address)
{
    char host[64], *end;
    const char *colon = strrchr(text, ':');
    if (!colon || colon[1] < '0' || colon[1] > '9')
        return false;
    unsigned long port = strtoul(colon + 1, &end, 10);
    bool v6 = text[0] == '[';
    size_t size = (size_t)(colon - text) - (v6 ? 2 : 0);
    if (*end || port > 65535 || (v6 && (colon - text < 3 || colon[-1] != ']')) || size >= sizeof host)
        return false;
    memcpy(host, text + v6, size);
    host[size] = '\0';
    if (v6)
        return uv_ip6_addr(host, (int)port, (struct sockaddr_in6 *)address) == 0;
    return uv_ip4_addr(host, (int)port, (struct sockaddr_in *)address) == 0;
}

static void note_bound(struct listener *listener)
{
    struct sockaddr_storage address;
    int size = sizeof address;
    char host[ADDRESS_MAX] = "";
    if (uv_tcp_getsockname(&listener->uv.tcp, (struct sockaddr *)&address, &size) != 0)
        return;
    bool v6 = address.ss_family == AF_INET6;
    unsigned port =
        ntohs(v6 ? ((struct sockaddr_in6 *)&address)->sin6_port : ((struct sockaddr_in *)&address)->sin_port);
    uv_ip_name((struct sockaddr *)&address, host, sizeof host);
    snprintf(listener->address, sizeof listener->address, v6 ? "[%s]:%u" : "%s:%u", host, port);
}

static int listen_tcp(struct listener *listener, const char *text)
{
    struct sockaddr_storage address;
    uv_tcp_init(loop_get(), &listener->uv.tcp);
    if (!parse_address(text, &address))
        return UV_EINVAL;
    int result = uv_tcp_bind(&listener->uv.tcp, (struct sockaddr *)&address, 0);
    if (result != 0)
        return result;
    tune(&listener->uv.handle);
    return 0;
}

/* A socket file that nobody listens on is left from a process that died. */
static void remove_stale(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return;
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED)
        unlink(path);
    close(fd);
}

static int listen_unix(struct listener *listener, const char *path)
{
    struct sockaddr_un limits;
    uv_pipe_init(loop_get(), &listener->uv.pipe, 0);
    listener->unix_socket = true;
    if (strlen(path) >= sizeof limits.sun_path)
        return UV_ENAMETOOLONG;
    remove_stale(path);
    int result = uv_pipe_bind(&listener->uv.pipe, path);
    if (result != 0)
        return result;
    listener->bound = true;
    chmod(path, 0660);
    return 0;
}

/* ---- sockets of the service manager: sd_listen_fds(3) ---- */
enum { FIRST_PASSED = 3, MOST_PASSED = 64 };

/* Of those that were passed the ones for HTTP, which are all but those named for something else. */
static size_t passed_sockets(int fds[MOST_PASSED])
{
    const char *pid = getenv("LISTEN_PID"), *number = getenv("LISTEN_FDS"), *names = getenv("LISTEN_FDNAMES");
    unsigned long all = pid && number && strtol(pid, NULL, 10) == (long)getpid() ? strtoul(number, NULL, 10) : 0;
    size_t count = 0;
    for (unsigned long i = 0; i < all && i < MOST_PASSED; i++) {
        struct sl_str name = {names, names ? strcspn(names, ":") : 0};
        names = names && names[name.size] ? names + name.size + 1 : NULL;
        if (!sl_str_equal(name, SL_STR("https")) && !sl_str_equal(name, SL_STR("admin")))
            fds[count++] = FIRST_PASSED + (int)i;
    }
    return count;
}

/* Children that this process starts shall not take them for theirs. */
static void forget_passed(void)
{
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
}

static int listen_passed(struct listener *listener, int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address, int_size = sizeof(int);
    int type = 0, result;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &int_size) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0 || type != SOCK_STREAM)
        return UV_ENOTSOCK;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    listener->passed = true;
    listener->unix_socket = address.ss_family == AF_UNIX;
    if (listener->unix_socket) {
        uv_pipe_init(loop_get(), &listener->uv.pipe, 0);
        return uv_pipe_open(&listener->uv.pipe, fd);
    }
    uv_tcp_init(loop_get(), &listener->uv.tcp);
    result = uv_tcp_open(&listener->uv.tcp, fd);
    if (result == 0)
        tune(&listener->uv.handle);
    return result;
}

static enum sl_code listener_listen(struct listener *listener, int result, struct sl_error *error)
{
    struct http_server *server = listener->server;
    listener->uv.handle.data = listener;
    server->open_handles++;
    if (result == 0)
        result = uv_listen(&listener->uv.stream, server->options.backlog, on_connection);
    if (result != 0)
        return sl_fail(error, result == UV_EACCES ? SL_PERMISSION_DENIED : SL_INTERNAL, "cannot listen on %s: %s",
                       listener->address, uv_strerror(result));
    if (!listener->unix_socket)
        note_bound(listener);
    return SL_OK;
}

static struct listener *listener_new(struct http_server *server, const char *address)
{
    struct listener *listener = &server->listeners[server->listener_count++];
    listener->server = server;
    snprintf(listener->address, sizeof listener->address, "%s", address);
    return listener;
}

static enum sl_code listeners_passed(struct http_server *server, struct sl_error *error)
{
    int fds[MOST_PASSED];
    size_t count = passed_sockets(fds);
    enum sl_code code = count ? SL_OK : sl_fail(error, SL_INTERNAL, "cannot listen on systemd: no sockets were passed");
    for (size_t i = 0; code == SL_OK && i < count; i++) {
        struct listener *listener = listener_new(server, "systemd");
        int result = listen_passed(listener, fds[i]);
        if (result == UV_ENOTSOCK) { /* never made into a handle */
            server->listener_count--;
            code = sl_fail(error, SL_INTERNAL, "cannot listen on systemd: descriptor %d is no stream socket", fds[i]);
        } else {
            code = listener_listen(listener, result, error);
        }
    }
    forget_passed();
    return code;
}

static enum sl_code listener_start(struct http_server *server, const char *address, struct sl_error *error)
{
    if (strcmp(address, "systemd") == 0)
        return listeners_passed(server, error);
    struct listener *listener = listener_new(server, address);
    bool local = strncmp(address, "unix:", 5) == 0;
    return listener_listen(listener, local ? listen_unix(listener, address + 5) : listen_tcp(listener, address), error);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct http_server *server = handle->type == UV_TIMER ? handle->data : ((struct listener *)handle->data)->server;
    server->open_handles--;
    wake_stopper(server);
    if (server->failed && server->open_handles == 0)
        server_free(server);
}

static void close_handles(struct http_server *server)
{
    for (size_t i = 0; i < server->listener_count; i++) {
        struct listener *listener = &server->listeners[i];
        if (!uv_is_closing(&listener->uv.handle))
            uv_close(&listener->uv.handle, on_handle_closed);
        if (listener->bound)
            unlink(listener->address + 5);
    }
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
    sl_arena_free(&server->arena);
    free(server);
}

static void set_timeouts(struct http_server *server)
{
    const struct http_options *options = &server->options;
    server->queues[TIMEOUT_HEADER].ms = options->header_timeout_ms;
    server->queues[TIMEOUT_RESERVE].ms = RESERVE_HEADER_MS;
    server->queues[TIMEOUT_BODY].ms = options->body_timeout_ms;
    server->queues[TIMEOUT_DISCARD].ms = DISCARD_MS;
    server->queues[TIMEOUT_IDLE].ms = options->idle_timeout_ms;
    server->queues[TIMEOUT_WRITE].ms = options->write_timeout_ms / 4; /* progress is looked for between */
    server->queues[TIMEOUT_LINGER].ms = LINGER_MS;
}

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
            return sl_fail(error, SL_MALFORMED, "%s is not a network", text);
    }
    return SL_OK;
}

enum sl_code http_server_start(const struct http_options *options, struct http_server **out, struct sl_error *error)
{
    struct http_server *server = calloc(1, sizeof *server);
    if (!server)
        return sl_fail(error, SL_INTERNAL, "out of memory");
    parse_init();
    server->options = *options;
    if (!server->options.tmp_dir)
        server->options.tmp_dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    while (options->routes[server->route_count].method)
        server->route_count++;
    server->listeners = SL_ARENA_ARRAY(&server->arena, struct listener, options->bind_count + MOST_PASSED);
    server->series = SL_ARENA_ARRAY(&server->arena, struct route_series, server->route_count + 1);
    server->proxies = SL_ARENA_ARRAY(&server->arena, struct network, options->trusted_proxy_count);
    uv_timer_init(loop_get(), &server->tick);
    server->tick.data = server;
    server->open_handles = 1;
    enum sl_code code = server->listeners && server->series && server->proxies
                            ? set_proxies(server, error)
                            : sl_fail(error, SL_INTERNAL, "out of memory");
    set_timeouts(server);
    for (size_t i = 0; code == SL_OK && i < options->bind_count; i++)
        code = listener_start(server, options->bind[i], error);
    if (code) {
        server->failed = true;
        close_handles(server);
        return code;
    }
    *out = server;
    return SL_OK;
}

void http_server_configure(struct http_server *server, const struct http_options *options)
{
    struct http_options before = server->options;
    struct network *proxies = SL_ARENA_ARRAY(&server->arena, struct network, options->trusted_proxy_count);
    server->options = *options;
    server->options.bind = before.bind;
    server->options.bind_count = before.bind_count;
    server->options.routes = before.routes;
    server->options.service = before.service;
    server->options.tmp_dir = before.tmp_dir;
    if (!proxies)
        server->options.trusted_proxy_count = 0; /* nobody is believed rather than anybody */
    server->proxies = proxies;
    set_proxies(server, NULL);
    set_timeouts(server);
    if (server->connection_count)
        uv_timer_start(&server->tick, on_tick, tick_period(server), tick_period(server));
}

const char *http_server_address(struct http_server *server, size_t index)
{
    return index < server->listener_count ? server->listeners[index].address : "";
}

void http_server_drain(struct http_server *server)
{
    server->draining = true;
    for (size_t i = 0; i < server->listener_count; i++) /* the manager keeps what waits for the next process */
        if (server->listeners[i].passed)
            uv_close(&server->listeners[i].uv.handle, on_handle_closed);
    for (struct connection *c = server->connections, *next; c; c = next) {
        next = c->next;
        if (c->state == STATE_IDLE && c->pending.size == 0 && c->requests > 0)
            connection_abort(c, false);
    }
}

bool http_server_draining(struct http_server *server)
{
    return server->draining;
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
    for (struct connection *c = server->connections; c; c = c->next)
        connection_abort(c, false);
    server->stopper = fiber_self();
    while (server->connection_count > 0 || server->open_handles > 0)
        fiber_suspend_uncancellable();
    server_free(server);
}
