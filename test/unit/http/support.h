/* A real server on a loop in a thread of its own, and raw blocking clients. */
#pragma once

#include "../check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/log.h"
#include "core/loop.h"
#include "http/http.h"

enum { CLIENT_PATIENCE_MS = 20000 };

struct test_server {
    struct http_options options;
    struct http_family family; /* of the routes that server_start is given */
    const struct http_family *families[2];
    struct http_server *server;
    const char *bind[2];
    char address[2][128];
    uint16_t port;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ready;
    uv_async_t wish; /* the test asks the loop's thread for something */
    enum { WISH_NONE, WISH_STOP, WISH_DRAIN, WISH_RUN } wanted;
    void (*work)(void); /* of WISH_RUN */
    struct fiber_wait_list wishes;
};

static void on_wish(uv_async_t *async)
{
    struct test_server *t = async->data;
    fiber_wake_all(&t->wishes);
}

static int take_wish(struct test_server *t)
{
    pthread_mutex_lock(&t->lock);
    int wish = t->wanted;
    if (wish == WISH_RUN)
        t->work();
    t->wanted = WISH_NONE;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return wish;
}

/* On the loop: before the server starts, and when it has ended. Of all servers of a test; may be NULL. */
static void (*server_on_ready)(void), (*server_on_stop)(void);

static void serve(void *arg)
{
    struct test_server *t = arg;
    struct sl_error error = {.message = ""};
    uv_async_init(loop_get(), &t->wish, on_wish);
    t->wish.data = t;
    if (server_on_ready)
        server_on_ready();
    if (http_server_start(&t->options, &t->server, &error) != SL_OK) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    for (size_t i = 0; i < t->options.bind_count; i++)
        snprintf(t->address[i], sizeof t->address[i], "%s", http_server_address(t->server, i));
    t->port = (uint16_t)strtoul(strrchr(t->address[0], ':') + 1, NULL, 10);
    pthread_mutex_lock(&t->lock);
    t->ready = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    for (int wish; (wish = take_wish(t)) != WISH_STOP;) {
        if (wish == WISH_DRAIN)
            http_server_drain(t->server);
        else if (wish == WISH_NONE)
            fiber_wait_on(&t->wishes, UINT64_MAX);
    }
    http_server_stop(t->server);
    if (server_on_stop)
        server_on_stop();
    uv_close((uv_handle_t *)&t->wish, NULL);
}

static void *loop_thread(void *arg)
{
    loop_init(4);
    loop_run_fiber(serve, arg);
    loop_close();
    return NULL;
}

/* `adjust` may change the options before the start. */
static void server_start(struct test_server *t, const struct http_route *routes, void (*adjust)(struct http_options *o))
{
    memset(t, 0, sizeof *t);
    http_options_default(&t->options);
    t->bind[0] = "127.0.0.1:0";
    t->options.bind = t->bind;
    t->options.bind_count = 1;
    t->family.routes = routes;
    t->families[0] = &t->family;
    t->options.families = t->families;
    t->options.access = HTTP_ACCESS_OFF;
    if (adjust)
        adjust(&t->options);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    assert_int_equal(pthread_create(&t->thread, NULL, loop_thread, t), 0);
    pthread_mutex_lock(&t->lock);
    while (!t->ready)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

static void server_wish(struct test_server *t, int wish)
{
    pthread_mutex_lock(&t->lock);
    t->wanted = wish;
    uv_async_send(&t->wish);
    while (t->wanted != WISH_NONE)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

/* Runs it on the loop's thread, whose state is nobody else's, and waits for its end. */
static inline void server_run(struct test_server *t, void (*work)(void))
{
    t->work = work;
    server_wish(t, WISH_RUN);
}

static void server_stop(struct test_server *t)
{
    server_wish(t, WISH_STOP);
    pthread_join(t->thread, NULL);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
}

/* ---- clients ---- */
static int client_connect(const struct test_server *t)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(t->port)};
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Sends as much as the server takes; it may close while we send. */
static void client_send(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        at += n;
        size -= (size_t)n;
    }
}

static inline void client_text(int fd, const char *text)
{
    client_send(fd, text, strlen(text));
}

/* Reads until `enough` bytes, `until` occurs (may be NULL) or the end; appends and terminates. False at the end or on a
 * reset. */
static bool client_read(int fd, struct sl_buf *in, const char *until)
{
    char piece[65536];
    for (;;) {
        if (until && in->size && memmem(in->data, in->size, until, strlen(until)))
            return true;
        struct pollfd poll_fd = {fd, POLLIN, 0};
        assert_int_equal(poll(&poll_fd, 1, CLIENT_PATIENCE_MS), 1);
        ssize_t n = recv(fd, piece, sizeof piece, 0);
        if (n <= 0)
            return false;
        sl_buf_add(in, piece, (size_t)n);
        assert_true(sl_buf_reserve(in, 1));
        in->data[in->size] = '\0';
    }
}

struct answer {
    int status;
    bool closed;       /* the connection has ended after the answer */
    struct sl_buf raw; /* everything received */
    struct sl_str head, body;
};

static struct sl_str answer_header(const struct answer *answer, const char *name)
{
    char line[128];
    int size = snprintf(line, sizeof line, "\r\n%s: ", name);
    const char *found = strcasestr((const char *)answer->raw.data, line);
    if (!found || found > answer->head.data + answer->head.size)
        return (struct sl_str){NULL, 0};
    found += size;
    return (struct sl_str){found, strcspn(found, "\r")};
}

/* Reads one answer; `head_only` for HEAD. Bytes of a next answer stay in raw behind it. */
static void client_answer(int fd, struct answer *answer, bool head_only)
{
    answer->closed = !client_read(fd, &answer->raw, "\r\n\r\n");
    answer->status = 0;
    char *end = answer->raw.size ? strstr((char *)answer->raw.data, "\r\n\r\n") : NULL;
    if (!end)
        return;
    answer->head = (struct sl_str){(char *)answer->raw.data, (size_t)(end + 4 - (char *)answer->raw.data)};
    assert_int_equal(sscanf((char *)answer->raw.data, "HTTP/1.1 %d", &answer->status), 1);
    struct sl_str length = answer_header(answer, "Content-Length");
    size_t size = length.data && !head_only ? strtoul(length.data, NULL, 10) : 0;
    size_t head = answer->head.size;
    char piece[65536];
    while (answer->raw.size < head + size) {
        ssize_t n = recv(fd, piece, sizeof piece, 0);
        if (n <= 0)
            break;
        sl_buf_add(&answer->raw, piece, (size_t)n);
        sl_buf_reserve(&answer->raw, 1);
        answer->raw.data[answer->raw.size] = '\0';
    }
    answer->head = (struct sl_str){(char *)answer->raw.data, head};
    answer->body = (struct sl_str){(char *)answer->raw.data + head,
                                   answer->raw.size < head + size ? answer->raw.size - head : size};
}

static void answer_free(struct answer *answer)
{
    sl_buf_free(&answer->raw);
    *answer = (struct answer){0};
}

/* One request on a new connection; the connection is closed afterwards. */
static int exchange_bytes(const struct test_server *t, const void *request, size_t size, struct answer *answer)
{
    int fd = client_connect(t);
    client_send(fd, request, size);
    *answer = (struct answer){0};
    client_answer(fd, answer, size > 5 && memcmp(request, "HEAD ", 5) == 0);
    close(fd);
    return answer->status;
}

static inline int exchange(const struct test_server *t, const char *request, struct answer *answer)
{
    return exchange_bytes(t, request, strlen(request), answer);
}

static inline int status_of(const struct test_server *t, const char *request)
{
    struct answer answer;
    int status = exchange(t, request, &answer);
    answer_free(&answer);
    return status;
}

#define assert_str(actual, expected)                                                                                   \
    do {                                                                                                               \
        struct sl_str actual_ = (actual);                                                                              \
        const char *expected_ = (expected);                                                                            \
        if (!sl_str_equal(actual_, sl_str(expected_)))                                                                 \
            fail_msg("\"%.*s\" != \"%s\"", (int)actual_.size, actual_.data ? actual_.data : "", expected_);            \
    } while (0)
