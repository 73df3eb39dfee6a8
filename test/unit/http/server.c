/* The server on raw sockets: framing, limits, keep-alive, pipelining. Bytes in, bytes out. */
#include "../check.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/loop.h"
#include "core/log.h"
#include "core/pool.h"
#include "http/http.h"

static void hello(struct http_exchange *x)
{
    http_reply(x, 200, "text/plain", SL_STR("ok"));
}

static void echo(struct http_exchange *x)
{
    struct sl_bytes body;
    if (http_body(x, &body) == SL_OK)
        http_reply(x, 200, "text/plain", (struct sl_str){(const char *)body.data, body.size});
}

static void capture(struct http_exchange *x)
{
    http_reply(x, 200, "text/plain", x->captures[0]);
}

static uint64_t small_limit(const struct http_exchange *x)
{
    (void)x;
    return 1024;
}

static const struct http_route routes[] = {
    {.method = "GET", .pattern = "/healthcheck", .handler = hello, .health = true},
    {.method = "POST", .pattern = "/echo", .handler = echo, .body_limit = small_limit},
    {.method = "GET", .pattern = "/item/{id}", .handler = capture},
    {.method = NULL},
};
static const struct http_family family = {.routes = routes};
static const struct http_family *const families[] = {&family, NULL};

struct row {
    const char *in;
    const char *out[4]; /* each must occur in the answer, in this order */
    const char *never;
};

static const struct row rows[] = {
    {"GET /healthcheck HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", {"HTTP/1.1 200 OK\r\n", "\r\n\r\nok"}, NULL},
    {"HEAD /healthcheck HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
     {"200 OK", "ontent-", ": 2\r\n"},
     "\r\n\r\nok"},
    {"GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\nGET /healthcheck HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
     {"200 OK", "\r\n\r\nok", "200 OK", "\r\n\r\nok"},
     NULL},
    {"GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", {"404 Not Found"}, NULL},
    {"GET /healthcheck/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", {"404 Not Found"}, NULL},
    {"DELETE /healthcheck HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", {"405 ", "llow: GET,HEAD"}, NULL},
    {"GET /item/a%20b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", {"200 OK", "\r\n\r\na b"}, NULL},
    {"GET /item/%zz HTTP/1.1\r\nHost: x\r\n\r\n", {"400 "}, NULL},
    {"GET /item/%00 HTTP/1.1\r\nHost: x\r\n\r\n", {"400 "}, NULL},
    {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody",
     {"200 OK", "\r\n\r\nbody"},
     NULL},
    {"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: "
     "close\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n",
     {"200 OK", "\r\n\r\nbody"},
     NULL},
    {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n", {"413 "}, NULL},
    {"POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n",
     {"413 "},
     "100 Continue"},
    {"POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
     {"200 OK", "{}"}, /* the body is there already: no interim answer is needed (RFC 9110, 10.1.1) */
     NULL},
    {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET "
     "/healthcheck "
     "HTTP/1.1\r\nHost: x\r\n\r\n",
     {"400 "},
     "200 OK"},
    {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n{} ", {"400 "}, "200 OK"},
    {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\n{} ", {"400 "}, "200 OK"},
    {"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", {"400 "}, "200 OK"},
    {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\nGET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n",
     {"400 "},
     "200 OK"},
    {"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", {"501 "}, NULL},
    {"GET /healthcheck HTTP/1.1\r\n\r\n", {"400 "}, NULL},
    {"GET /healthcheck HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", {"400 "}, NULL},
    {"GET /healthcheck HTTP/2.0\r\nHost: x\r\n\r\n", {"505 "}, NULL},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {"505 "}, NULL},
    {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx", {"415 "}, NULL},
};

struct client {
    int port;
    size_t failures;
    uv_async_t done;
};

/* Sends the bytes and reads until the server closes, or until nothing more comes within two seconds. */
static size_t talk(int port, const char *in, size_t size, char *out, size_t capacity)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    size_t filled = 0;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && write(fd, in, size) == (ssize_t)size) {
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        ssize_t n;
        shutdown(fd, SHUT_WR);
        while (filled < capacity - 1 && poll(&waiting, 1, 5000) > 0 &&
               (n = read(fd, out + filled, capacity - 1 - filled)) > 0)
            filled += (size_t)n;
    }
    close(fd);
    out[filled] = '\0';
    return filled;
}

static bool matches(const struct row *row, const char *answer)
{
    const char *at = answer;
    for (size_t i = 0; i < 4 && row->out[i]; i++) {
        const char *found = strstr(at, row->out[i]);
        if (!found)
            return false;
        at = found + strlen(row->out[i]);
    }
    return !row->never || !strstr(answer, row->never);
}

static void *run_client(void *arg)
{
    struct client *client = arg;
    static char answer[65536];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        talk(client->port, rows[i].in, strlen(rows[i].in), answer, sizeof answer);
        if (!matches(&rows[i], answer)) {
            client->failures++;
            print_error("request:\n%s\nanswer:\n%s\n", rows[i].in, answer);
        }
    }
    uv_async_send(&client->done);
    return NULL;
}

static struct fiber *waiting;

static void wake(uv_async_t *async)
{
    (void)async;
    fiber_wake(waiting);
}

static void serve(void *arg)
{
    struct client *client = arg;
    const char *bind[] = {"127.0.0.1:0"};
    struct http_options options;
    struct http_server *server;
    struct sl_error error = {0};
    pthread_t thread;
    http_options_default(&options);
    options.bind = bind;
    options.bind_count = 1;
    options.families = families;
    options.tmp_dir = "/tmp";
    assert_int_equal(http_server_start(&options, &server, &error), SL_OK);
    client->port = (int)strtol(strrchr(http_server_address(server, 0), ':') + 1, NULL, 10);
    waiting = fiber_self();
    uv_async_init(loop_get(), &client->done, wake);
    pthread_create(&thread, NULL, run_client, client);
    fiber_suspend_uncancellable();
    pthread_join(thread, NULL);
    uv_close((uv_handle_t *)&client->done, NULL);
    http_server_stop(server);
}

TEST(server_answers_framed_requests)
{
    struct client client = {0};
    loop_init(2);
    log_set_levels("error");
    loop_run_fiber(serve, &client);
    loop_close();
    assert_int_equal(client.failures, 0);
}
