/* Downloads against servers of the test's own: a scripted one in threads of this process, which does what `route` says,
 * and the running of fetch_get as a fiber. Nothing leaves the loopback interface. */
#pragma once

#include "../check.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "core/log.h"
#include "core/loop.h"
#include "fetch/impl.h"

#define MS_NS 1000000ull
#define S_NS  1000000000ull

/* libcurl 7.88 closes a socket that is still connecting before it says so; the number may be the server's by then, and
 * what libuv does with it, leaving it out of its epoll set, has no effect. */
__attribute__((weak)) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:epoll_ctl\n";
}

/* ---- the scripted server ---- */
enum { MAX_CONNECTIONS = 2048, HEAD_MAX = 16 * 1024 };

struct connection {
    struct server *server;
    pthread_t thread;
    int fd;
};

struct call { /* one request */
    struct server *server;
    int fd;
    char head[HEAD_MAX]; /* of the request, with the empty line */
    char path[1024];     /* with the query */
};

struct server {
    int listener, stop[2];
    uint16_t port;
    char base[64];                    /* "http://127.0.0.1:port" */
    bool (*route)(struct call *call); /* answers; false = close the connection */
    pthread_t thread;
    pthread_mutex_t lock;
    struct connection connections[MAX_CONNECTIONS];
    size_t connection_count;
    unsigned hits, running, most_running; /* requests */
    struct sl_buf log;                    /* the heads of all requests */
};

static void send_all(int fd, const void *data, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t n = send(fd, (const char *)data + at, size - at, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        at += (size_t)n;
    }
}

static void say(struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct call *call, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    send_all(call->fd, text, (size_t)size);
}

/* Until the client has gone. */
static inline void hang(struct call *call)
{
    char piece[4096];
    while (recv(call->fd, piece, sizeof piece, 0) > 0)
        ;
}

static inline bool status_answer(struct call *call, int status, const char *fields)
{
    say(call, "HTTP/1.1 %d X\r\n%sContent-Length: 0\r\n\r\n", status, fields);
    return true;
}

static inline bool body_answer(struct call *call, const char *fields, const void *body, size_t size)
{
    say(call, "HTTP/1.1 200 OK\r\n%sContent-Length: %zu\r\n\r\n", fields, size);
    send_all(call->fd, body, size);
    return true;
}

/* The value of a header in a request's head, in `value`; NULL when it was not sent. */
static inline const char *header_of(const char *head, const char *name, char *value, size_t room)
{
    char line[128];
    int size = snprintf(line, sizeof line, "\r\n%s:", name);
    const char *found = strcasestr(head, line);
    if (!found)
        return NULL;
    found += size;
    found += strspn(found, " ");
    size_t length = strcspn(found, "\r");
    snprintf(value, room, "%.*s", (int)length, found);
    return value;
}

static inline bool starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* One request head; false at the end of the connection. What follows it is not kept: clients here do not pipeline. */
static bool read_head(struct call *call)
{
    size_t size = 0;
    call->head[0] = '\0';
    while (!strstr(call->head, "\r\n\r\n")) {
        ssize_t n = size + 1 < HEAD_MAX ? recv(call->fd, call->head + size, HEAD_MAX - 1 - size, 0) : 0;
        if (n <= 0)
            return false;
        size += (size_t)n;
        call->head[size] = '\0';
    }
    return sscanf(call->head, "GET %1023s", call->path) == 1;
}

static void *serve_connection(void *arg)
{
    struct connection *connection = arg;
    struct server *s = connection->server;
    struct call *call = malloc(sizeof *call);
    call->server = s;
    call->fd = connection->fd;
    bool more = true;
    while (more && read_head(call)) {
        pthread_mutex_lock(&s->lock);
        s->hits++;
        s->running++;
        if (s->running > s->most_running)
            s->most_running = s->running;
        sl_buf_cstr(&s->log, call->head);
        pthread_mutex_unlock(&s->lock);
        more = s->route(call);
        pthread_mutex_lock(&s->lock);
        s->running--;
        pthread_mutex_unlock(&s->lock);
    }
    shutdown(call->fd, SHUT_RDWR);
    free(call);
    return NULL;
}

static void *serve(void *arg)
{
    struct server *s = arg;
    for (;;) {
        struct pollfd wanted[2] = {{s->listener, POLLIN, 0}, {s->stop[0], POLLIN, 0}};
        if (poll(wanted, 2, -1) < 0 || wanted[1].revents)
            return NULL;
        int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        struct connection *c = &s->connections[s->connection_count];
        *c = (struct connection){.server = s, .fd = fd};
        if (s->connection_count == MAX_CONNECTIONS || pthread_create(&c->thread, NULL, serve_connection, c) != 0)
            close(fd);
        else
            s->connection_count++;
    }
}

/* A listening socket on a free port of the loopback interface. */
static int listen_somewhere(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 1024), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static inline struct server *server_start(bool (*route)(struct call *call))
{
    struct server *s = calloc(1, sizeof *s);
    s->route = route;
    s->listener = listen_somewhere(&s->port);
    assert_int_equal(pipe2(s->stop, O_CLOEXEC), 0);
    snprintf(s->base, sizeof s->base, "http://127.0.0.1:%u", s->port);
    pthread_mutex_init(&s->lock, NULL);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
    return s;
}

static inline void server_stop(struct server *s)
{
    close(s->stop[1]);
    pthread_join(s->thread, NULL);
    for (size_t i = 0; i < s->connection_count; i++) {
        shutdown(s->connections[i].fd, SHUT_RDWR);
        pthread_join(s->connections[i].thread, NULL);
        close(s->connections[i].fd);
    }
    close(s->stop[0]);
    close(s->listener);
    pthread_mutex_destroy(&s->lock);
    sl_buf_free(&s->log);
    free(s);
}

static inline unsigned hits_of(struct server *s)
{
    pthread_mutex_lock(&s->lock);
    unsigned hits = s->hits;
    pthread_mutex_unlock(&s->lock);
    return hits;
}

/* The heads since the last call, terminated; the caller frees. */
static inline char *take_log(struct server *s)
{
    pthread_mutex_lock(&s->lock);
    sl_buf_u8(&s->log, 0);
    char *text = strdup((char *)s->log.data);
    sl_buf_clear(&s->log);
    s->hits = 0;
    pthread_mutex_unlock(&s->lock);
    return text;
}

/* ---- downloads ---- */
static inline struct fetch_options open_options(void) /* the defaults, but loopback is allowed; no proxies */
{
    static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
    for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++)
        unsetenv(proxies[i]);
    return (struct fetch_options){.connect_timeout_ns = 5 * S_NS,
                                  .head_timeout_ns = 10 * S_NS,
                                  .max_download_timeout_ns = 300 * S_NS,
                                  .stall_timeout_ns = 30 * S_NS,
                                  .max_download_size = 15ull << 30,
                                  .max_inflate_ratio = 1000,
                                  .max_downloads = 128,
                                  .max_downloads_per_host = 16,
                                  .connect_to_reserved_ips = true,
                                  .deny_list_enabled = true,
                                  .deny_window_ns = 60 * S_NS,
                                  .deny_bucket_ns = 5 * S_NS,
                                  .deny_block_ns = 3600 * S_NS,
                                  .deny_threshold = 60};
}

struct got { /* a finished download */
    enum sl_code code;
    struct sl_error error;
    struct sl_buf body;
};

static inline int empty_file(void)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fd;
}

static inline void read_file(int fd, struct sl_buf *out)
{
    char piece[65536];
    off_t at = 0;
    sl_buf_clear(out);
    for (ssize_t n; (n = pread(fd, piece, sizeof piece, at)) > 0; at += n)
        sl_buf_add(out, piece, (size_t)n);
}

/* In a fiber. The body stays valid until the next one. */
static inline struct got *get_request(struct fetch_request request)
{
    static struct got got;
    int fd = empty_file();
    if (!request.source)
        request.source = "test";
    memset(&got.error, 0x55, sizeof got.error);
    got.code = fetch_get(&request, fd, &got.error);
    assert_true(got.code == SL_OK || got.code == got.error.code);
    read_file(fd, &got.body);
    close(fd);
    return &got;
}

/* `url` may be a path of the server. */
static inline struct got *get(const struct server *s, const char *path)
{
    char url[2048];
    snprintf(url, sizeof url, "%s%s", s ? s->base : "", path);
    return get_request((struct fetch_request){.url = url});
}

static inline void expect_body(const struct got *got, const void *body, size_t size)
{
    if (got->code != SL_OK)
        fail_msg("%s: %s", sl_code_name(got->code), got->error.message);
    assert_int_equal(got->body.size, size);
    if (size)
        assert_memory_equal(got->body.data, body, size);
}

static inline void expect_error(const struct got *got, enum sl_code code, const char *message)
{
    if (got->code != code || (message && strcmp(got->error.message, message) != 0))
        fail_msg("expected %s: %s\ngot %s: %s", sl_code_name(code), message ? message : "*", sl_code_name(got->code),
                 got->code == SL_OK ? "" : got->error.message);
}

/* Runs `fn(arg)` as a fiber with downloads. */
static inline void with_fetch(const struct fetch_options *options, void (*fn)(void *arg), void *arg)
{
    log_set_levels("off");
    loop_init(4);
    fetch_init(options);
    loop_run_fiber(fn, arg);
    fetch_close();
    loop_close();
}
