/* Answers: compression, files with conditions and ranges, slow readers, addresses, limits of connections, drain. */
#include "support.h"

#include <sys/resource.h>
#include <sys/un.h>
#include <zlib.h>
#include <zstd.h>

#include "core/metrics.h"
#include "http/impl.h"

enum { LARGE = 10 << 20, REPEATS = 5000 };

static char large[LARGE];
static struct sl_mapping thousand, big;
static int released; /* loop thread, read after the server's end */

static void note_release(void *arg)
{
    *(int *)arg += 1;
}

static void health(struct http_exchange *x)
{
    http_reply(x, 200, "text/plain; charset=utf-8", SL_STR("ok"));
}

static void whoami(struct http_exchange *x)
{
    http_reply(x, 200, "text/plain", x->client);
}

static void json(struct http_exchange *x)
{
    struct sl_buf out = {0};
    struct sl_json_writer w = sl_json_writer(&out);
    sl_json_begin_array(&w);
    for (int i = 0; i < REPEATS; i++)
        sl_json_put_u64(&w, (uint64_t)i);
    sl_json_end_array(&w);
    http_reply_json(x, 200, &out);
}

static void large_answer(struct http_exchange *x)
{
    http_reply(x, 200, "application/octet-stream", (struct sl_str){large, LARGE});
}

static void file(struct http_exchange *x)
{
    struct sl_mapping *mapping = sl_str_equal(x->captures[0], SL_STR("big")) ? &big : &thousand;
    http_reply_file(x, "application/octet-stream", mapping, "\"tag-1\"", 784111777, note_release, &released);
}

static void forge(struct http_exchange *x)
{
    http_set_header(x, "X-Bad", SL_STR("a\r\nX-Forged: b"));
    http_set_header(x, "X-Twice", SL_STR("1"));
    http_set_header(x, "x-twice", SL_STR("2"));
    http_reply_detail(x, 422, "a \"detail\"", "its cause");
}

static void numbers(struct http_exchange *x)
{
    http_reply(x, 200, "text/plain", SL_STR(""));
    metrics_write(&x->body, false);
}

static void silent(struct http_exchange *x)
{
    (void)x;
}

/* From now on there is no fiber for another request. */
static void no_more_fibers(struct http_exchange *x)
{
    http_reply(x, 200, "text/plain", SL_STR(""));
    fiber_set_limit(1);
}

/* Fills the connection's socket as an answer before would, until a 100 Continue has to wait; says how many were sent. */
static void jam(struct http_exchange *x)
{
    static const char junk[65536];
    struct request *r = x->connection;
    uv_os_fd_t fd;
    int interims = 0;
    assert_int_equal(uv_fileno(&r->connection->uv.handle, &fd), 0);
    while (uv_stream_get_write_queue_size(&r->connection->uv.stream) == 0) {
        while (write(fd, junk, sizeof junk) > 0)
            ;
        send_interim(r);
        interims++;
    }
    char text[16];
    int size = snprintf(text, sizeof text, "%d", interims);
    http_reply(x, 200, "text/plain", (struct sl_str){text, (size_t)size});
}

static uint64_t body_limit(const struct http_exchange *x)
{
    (void)x;
    return 1 << 20;
}

static const struct http_route routes[] = {
    {"GET", "/healthcheck", health, true, false, NULL, NULL},
    {"GET", "/whoami", whoami, false, false, NULL, NULL},
    {"GET", "/json", json, false, false, NULL, NULL},
    {"GET", "/large", large_answer, false, false, NULL, NULL},
    {"GET", "/file/{name}", file, false, false, NULL, NULL},
    {"GET", "/forge", forge, false, false, NULL, NULL},
    {"GET", "/numbers", numbers, true, false, NULL, NULL},
    {"GET", "/jam", jam, false, false, NULL, NULL},
    {"GET", "/no-more-fibers", no_more_fibers, false, false, NULL, NULL},
    {"GET", "/silent", silent, false, false, NULL, NULL},
    {"POST", "/large", large_answer, false, false, NULL, body_limit},
    {"POST", "/work", health, false, true, NULL, NULL},
    {NULL, NULL, NULL, false, false, NULL, NULL},
};

static struct test_server server;
static const char *const proxies[] = {"10.0.0.0/8", "127.0.0.1", "2001:db8::/33", "unix"};
static const char *const hosts[] = {"good.example", "[::1]"};
static char socket_path[100];

static void adjust(struct http_options *options)
{
    options->trusted_proxies = proxies;
    options->trusted_proxy_count = 4;
    options->write_timeout_ms = 400;
}

static int setup(void **state)
{
    memset(large, 'x', sizeof large);
    thousand.bytes = (struct sl_bytes){(const uint8_t *)large, 1000};
    big.bytes = (struct sl_bytes){(const uint8_t *)large, LARGE};
    server_start(&server, routes, adjust);
    return 0;
}

static int teardown(void **state)
{
    server_stop(&server);
    return 0;
}

static int get(const char *path, const char *headers, struct answer *answer)
{
    char request[2048];
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", path, headers);
    return exchange(&server, request, answer);
}

/* ---- compression ---- */
TEST(answers_are_compressed_as_asked)
{
    static const struct {
        const char *accept, *coding;
    } cases[] = {
        {"", NULL},
        {"Accept-Encoding: gzip\r\n", "gzip"},
        {"Accept-Encoding: gzip, deflate, br, zstd\r\n", "zstd"},
        {"Accept-Encoding: gzip;q=1.0, zstd;q=0.5\r\n", "gzip"},
        {"Accept-Encoding: gzip\t;q=1, zstd;q=0.5\r\n", "gzip"},
        {"Accept-Encoding: gzip;q=0\r\n", NULL},
        {"Accept-Encoding: *\r\n", "zstd"},
        {"Accept-Encoding: *;q=0.1, zstd;q=0\r\n", "gzip"},
        {"Accept-Encoding: br\r\n", NULL},
        {"Accept-Encoding: gzip;q=nonsense\r\n", NULL},
    };
    struct answer plain, answer;
    assert_int_equal(get("/json", "", &plain), 200);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(get("/json", cases[i].accept, &answer), 200);
        struct sl_str coding = answer_header(&answer, "Content-Encoding");
        if (!cases[i].coding) {
            assert_null(coding.data);
            assert_null(answer_header(&answer, "Vary").data);
            assert_true(sl_str_equal(answer.body, plain.body));
        } else {
            char *out = malloc(plain.body.size);
            uLongf size = plain.body.size;
            assert_str(coding, cases[i].coding);
            assert_str(answer_header(&answer, "Vary"), "Accept-Encoding");
            if (*cases[i].coding == 'z') {
                size = ZSTD_decompress(out, size, answer.body.data, answer.body.size);
            } else {
                z_stream z = {.next_in = (Bytef *)(uintptr_t)answer.body.data,
                              .avail_in = (uInt)answer.body.size,
                              .next_out = (Bytef *)out,
                              .avail_out = (uInt)size};
                inflateInit2(&z, 31);
                assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
                size = z.total_out;
                inflateEnd(&z);
            }
            assert_true(sl_str_equal((struct sl_str){out, size}, plain.body));
            free(out);
        }
        answer_free(&answer);
    }
    assert_int_equal(get("/whoami", "Accept-Encoding: gzip\r\n", &answer), 200); /* too small to pay */
    assert_null(answer_header(&answer, "Content-Encoding").data);
    answer_free(&answer);
    assert_int_equal(get("/file/a", "Accept-Encoding: gzip\r\n", &answer), 200);
    assert_null(answer_header(&answer, "Content-Encoding").data);
    answer_free(&answer);
    answer_free(&plain);
}

/* ---- files ---- */
TEST(file_answers_support_conditions_and_ranges)
{
    static const struct {
        const char *headers;
        int status;
        const char *range;
        size_t size;
    } cases[] = {
        {"", 200, NULL, 1000},
        {"Range: bytes=990-\r\n", 206, "bytes 990-999/1000", 10},
        {"Range: bytes=0-0\r\n", 206, "bytes 0-0/1000", 1},
        {"Range: bytes=-5\r\n", 206, "bytes 995-999/1000", 5},
        {"Range: bytes=-5000\r\n", 206, "bytes 0-999/1000", 1000},
        {"Range: bytes=5-99999999999999999999\r\n", 200, NULL, 1000},
        {"Range: bytes=5-9999999\r\n", 206, "bytes 5-999/1000", 995},
        {"Range: bytes=0-0,5-6\r\n", 200, NULL, 1000},
        {"Range: bytes=1000-\r\n", 416, "bytes */1000", 0},
        {"Range: bytes=-0\r\n", 416, "bytes */1000", 0},
        {"Range: bytes=7-3\r\n", 200, NULL, 1000},
        {"Range: lines=7-8\r\n", 200, NULL, 1000},
        {"Range: bytes=\r\n", 200, NULL, 1000},
        {"If-None-Match: \"tag-1\"\r\n", 304, NULL, 0},
        {"If-None-Match: \"a,b\", W/\"tag-1\"\r\n", 304, NULL, 0},
        {"If-None-Match: *\r\n", 304, NULL, 0},
        {"If-None-Match: \"other\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 200, NULL, 1000},
        {"If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 304, NULL, 0},
        {"If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n", 200, NULL, 1000},
        {"If-Modified-Since: yesterday\r\n", 200, NULL, 1000},
        {"Range: bytes=0-9\r\nIf-Range: \"tag-1\"\r\n", 206, "bytes 0-9/1000", 10},
        {"Range: bytes=0-9\r\nIf-Range: \"tag-2\"\r\n", 200, NULL, 1000},
        {"Range: bytes=0-9\r\nIf-Range: W/\"tag-1\"\r\n", 200, NULL, 1000},
        {"Range: bytes=0-9\r\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 206, "bytes 0-9/1000", 10},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct answer answer;
        int status = get("/file/a", cases[i].headers, &answer);
        if (status != cases[i].status || answer.body.size != cases[i].size)
            fail_msg("%d with %zu bytes for %s", status, answer.body.size, cases[i].headers);
        if (cases[i].range)
            assert_str(answer_header(&answer, "Content-Range"), cases[i].range);
        assert_str(answer_header(&answer, "ETag"), "\"tag-1\"");
        assert_str(answer_header(&answer, "Last-Modified"), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_str(answer_header(&answer, "Cache-Control"), "private, max-age=3600");
        answer_free(&answer);
    }
    struct answer answer;
    assert_int_equal(exchange(&server, "HEAD /file/a HTTP/1.1\r\nHost: x\r\n\r\n", &answer), 200);
    assert_str(answer_header(&answer, "Content-Length"), "1000");
    answer_free(&answer);
    assert_int_equal(get("/file/big", "", &answer), 200);
    assert_int_equal(answer.body.size, LARGE);
    assert_memory_equal(answer.body.data, large, LARGE);
    answer_free(&answer);
}

/* ---- what handlers may get wrong ---- */
TEST(handlers_cannot_inject_headers)
{
    struct answer answer;
    assert_int_equal(get("/forge", "", &answer), 422);
    assert_null(strstr((char *)answer.raw.data, "Forged"));
    assert_str(answer_header(&answer, "X-Twice"), "2");
    assert_str(answer.body, "{\"detail\":\"a \\\"detail\\\"\",\"causes\":[\"its cause\"]}");
    answer_free(&answer);
    assert_int_equal(get("/silent", "", &answer), 500);
    answer_free(&answer);
}

/* ---- writing ---- */
/* The client has not read what it was sent, until the server gave up. */
static void assert_reset(int fd)
{
    struct pollfd poll_fd = {fd, 0, 0};
    assert_int_equal(poll(&poll_fd, 1, CLIENT_PATIENCE_MS), 1);
    assert_true(poll_fd.revents & (POLLERR | POLLHUP));
    close(fd);
}

TEST(large_answer_waits_for_its_reader)
{
    struct answer answer;
    assert_int_equal(get("/large", "", &answer), 200);
    assert_int_equal(answer.body.size, LARGE);
    answer_free(&answer);
    int fd = client_connect(&server); /* never reads: reset after write_timeout */
    client_text(fd, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_reset(fd);
}

TEST(body_sent_after_an_early_answer_does_not_extend_the_wait)
{
    static const struct {
        size_t first, second;
    } pieces[] = {{1, 9999}, {1, 300 * 1024}, {1, 0}}; /* to the body's end; to a full window; cut by the client */
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        int fd = client_connect(&server);
        struct pollfd begun = {fd, POLLIN, 0};
        client_text(fd, i == 0 ? "POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n"
                               : "POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n");
        client_send(fd, large, pieces[i].first);
        assert_int_equal(poll(&begun, 1, CLIENT_PATIENCE_MS), 1);
        client_send(fd, large, pieces[i].second);
        if (pieces[i].second == 0)
            shutdown(fd, SHUT_WR);
        assert_reset(fd);
    }
}

/* ---- identity ---- */
TEST(client_address_is_taken_from_trusted_proxies)
{
    static const struct {
        const char *headers, *client;
    } cases[] = {
        {"", "127.0.0.1"},
        {"X-Forwarded-For: 203.0.113.9, 198.51.100.7, 10.0.0.9\r\n", "198.51.100.7"},
        {"X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 198.51.100.7\r\nX-Forwarded-For: 10.0.0.9,10.1.1.1\r\n",
         "198.51.100.7"},
        {"X-Forwarded-For: nonsense\r\n", "127.0.0.1"},
        {"X-Forwarded-For: 10.0.0.1\r\n", "10.0.0.1"},
        {"X-Forwarded-For: 192.0.2.1, 2001:db8:7fff::1\r\n", "192.0.2.1"},
        {"X-Forwarded-For: 192.0.2.1, 2001:db8:8000::1\r\n", "2001:db8:8000::1"},
        {"Forwarded: for=192.0.2.1\r\n", "127.0.0.1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct answer answer;
        assert_int_equal(get("/whoami", cases[i].headers, &answer), 200);
        assert_str(answer.body, cases[i].client);
        answer_free(&answer);
    }
    struct answer answer;
    get("/whoami", "X-Request-Id: my-id_1.2\r\n", &answer);
    assert_str(answer_header(&answer, "X-Request-Id"), "my-id_1.2");
    answer_free(&answer);
    get("/whoami", "X-Request-Id: my id\r\n", &answer);
    assert_int_equal(answer_header(&answer, "X-Request-Id").size, 36);
    answer_free(&answer);
}

/* ---- other servers: their own options ---- */
static void listen_on_a_socket(struct http_options *options)
{
    static const char *bind[2];
    bind[0] = "127.0.0.1:0";
    bind[1] = socket_path;
    options->bind = bind;
    options->bind_count = 2;
    options->allowed_hosts = hosts;
    options->allowed_host_count = 2;
}

TEST(unix_socket_requests_are_held_to_allowed_hosts, .alone = true)
{
    struct test_server other;
    snprintf(socket_path, sizeof socket_path, "unix:/tmp/symloom-unit-%d.sock", (int)getpid());
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path + 5);
    int stale = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(stale, (struct sockaddr *)&address, sizeof address), 0);
    close(stale); /* the file stays, nobody listens */
    server_start(&other, routes, listen_on_a_socket);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    struct answer answer = {0};
    client_text(fd, "GET /whoami HTTP/1.1\r\nHost: GOOD.example:80\r\n\r\n");
    client_answer(fd, &answer, false);
    assert_str(answer.body, "unix");
    answer_free(&answer);
    client_text(fd, "GET /whoami HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    client_answer(fd, &answer, false);
    assert_int_equal(answer.status, 421);
    answer_free(&answer);
    client_text(fd, "GET /whoami HTTP/1.1\r\nHost: [::1]:3021\r\n\r\n");
    client_answer(fd, &answer, false);
    assert_int_equal(answer.status, 200);
    answer_free(&answer);
    close(fd);
    server_stop(&other);
    assert_int_not_equal(access(address.sun_path, F_OK), 0);
}

static void few_connections(struct http_options *options)
{
    options->max_connections = 4;
    options->keepalive_requests = 3;
}

TEST(only_health_is_answered_over_the_connection_limit, .alone = true)
{
    struct test_server other;
    server_start(&other, routes, few_connections);
    int held[4];
    struct answer answer = {0};
    for (int i = 0; i < 4; i++) {
        held[i] = client_connect(&other);
        client_text(held[i], "GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\nGET "); /* it is not idle behind its answer */
        client_answer(held[i], &answer, false);
        answer_free(&answer);
    }
    exchange(&other, "GET /whoami HTTP/1.1\r\nHost: x\r\n\r\n", &answer);
    assert_int_equal(answer.status, 503);
    assert_str(answer_header(&answer, "Connection"), "close");
    answer_free(&answer);
    assert_int_equal(status_of(&other, "GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
    for (int i = 0; i < 4; i++)
        close(held[i]);
    server_stop(&other);
}

TEST(connections_end_after_their_request_limit, .alone = true)
{
    struct test_server other;
    server_start(&other, routes, few_connections);
    int fd = client_connect(&other);
    struct answer answer = {0};
    for (int i = 1; i <= 3; i++) {
        client_text(fd, "GET /whoami HTTP/1.1\r\nHost: x\r\n\r\n");
        client_answer(fd, &answer, false);
        assert_int_equal(answer.status, 200);
        assert_int_equal(answer_header(&answer, "Connection").data != NULL, i == 3); /* keepalive_requests */
        answer_free(&answer);
    }
    close(fd);
    server_stop(&other);
}

/* They need not have been idle for long: nobody waits for them. */
TEST(idle_connections_are_closed_for_new_ones, .alone = true)
{
    struct test_server other;
    server_start(&other, routes, few_connections);
    enum { CLIENTS = 40 }; /* more than the reserve lane has too */
    int held[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        struct answer answer = {0};
        held[i] = client_connect(&other);
        client_text(held[i], "GET /whoami HTTP/1.1\r\nHost: x\r\n\r\n");
        client_answer(held[i], &answer, false);
        assert_int_equal(answer.status, 200);
        answer_free(&answer);
    }
    struct sl_buf in = {0};
    assert_false(client_read(held[0], &in, NULL)); /* the longest idle */
    sl_buf_free(&in);
    for (int i = 0; i < CLIENTS; i++)
        close(held[i]);
    server_stop(&other);
}

/* Whether the server has counted a failed accept; asked on a connection whose request had begun. */
static bool accept_failed(int fd)
{
    struct answer answer = {0};
    client_text(fd, "/numbers HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    client_answer(fd, &answer, false);
    assert_int_equal(answer.status, 200);
    bool failed = strstr((char *)answer.raw.data, "http_connections_total{result=\"emfile\"}") != NULL;
    answer_free(&answer);
    close(fd);
    return failed;
}

TEST(connections_wait_for_descriptors)
{
    enum { BEGUN = 50 };
    int begun[BEGUN], waiting = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), next = 0;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(server.port)};
    struct rlimit files, none;
    struct answer answer = {0};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < BEGUN; i++) {
        begun[i] = client_connect(&server);
        client_text(begun[i], "GET ");
    }
    assert_int_equal(status_of(&server, "GET /whoami HTTP/1.1\r\nHost: x\r\n\r\n"), 200); /* all are accepted */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = (struct rlimit){3, files.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int connected = connect(waiting, (struct sockaddr *)&address, sizeof address);
    while (next < BEGUN && !accept_failed(begun[next++]))
        ;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(connected, 0);
    assert_true(next < BEGUN);
    client_text(waiting, "GET /whoami HTTP/1.1\r\nHost: x\r\n\r\n");
    client_answer(waiting, &answer, false);
    assert_int_equal(answer.status, 200);
    answer_free(&answer);
    close(waiting);
    while (next < BEGUN)
        close(begun[next++]);
}

static void one_per_address(struct http_options *options)
{
    options->max_connections_per_ip = 1;
}

TEST(connections_per_address_are_limited, .alone = true)
{
    struct test_server other;
    server_start(&other, routes, one_per_address);
    int fd = client_connect(&other);
    struct answer answer = {0};
    client_text(fd, "GET /whoami HTTP/1.1\r\nHost: x\r\n\r\n");
    client_answer(fd, &answer, false);
    assert_int_equal(answer.status, 200);
    answer_free(&answer);
    assert_int_equal(status_of(&other, "GET /whoami HTTP/1.1\r\nHost: x\r\n\r\n"), 429);
    close(fd);
    server_stop(&other);
}

/* The value of a series, 0 when it is not there. */
static double metric_of(const char *series)
{
    struct sl_buf text = {0};
    metrics_write(&text, false);
    sl_buf_u8(&text, 0);
    const char *found = strstr((char *)text.data, series);
    double value = found ? strtod(found + strlen(series), NULL) : 0;
    sl_buf_free(&text);
    return value;
}

TEST(requests_are_shed_without_fibers, .alone = true)
{
    static const char refused[] = "symloom_http_refused_total{reason=\"slots\"} ";
    double before = metric_of(refused);
    char log[64], line[256] = "";
    snprintf(log, sizeof log, "/tmp/symloom-unit-%d.log", (int)getpid());
    assert_true(log_set_file(log, NULL));
    log_set_levels("warn");
    struct test_server other;
    struct answer answer = {0};
    server_start(&other, routes, NULL);
    assert_int_equal(status_of(&other, "GET /no-more-fibers HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(exchange(&other, "GET /json HTTP/1.1\r\nHost: x\r\n\r\n", &answer), 503);
        assert_non_null(strstr((char *)answer.raw.data, "{\"detail\":\"too many requests are in flight\"}"));
        answer_free(&answer);
    }
    server_stop(&other);
    fiber_set_limit(20000);
    assert_int_equal(metric_of(refused) - before, 3);
    assert_int_equal(metric_of("symloom_http_requests_total{route=\"/json\",method=\"GET\",status=\"503\"} "), 3);
    log_set_file(NULL, NULL);
    log_set_levels("off");
    FILE *file = fopen(log, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_non_null(strstr(line, "all fibers are in use"));
    assert_null(fgets(line, sizeof line, file)); /* once a minute */
    fclose(file);
    unlink(log);
}

TEST(interim_continue_waits_for_output_space, .alone = true)
{
    struct test_server other;
    struct sl_buf in = {0};
    server_start(&other, routes, NULL);
    int fd = client_connect(&other), interims = 0;
    client_text(fd, "GET /jam HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    while (client_read(fd, &in, NULL))
        ;
    close(fd);
    server_stop(&other);
    const uint8_t *at = in.data, *end = in.data + in.size, *answer = memmem(in.data, in.size, "HTTP/1.1 200", 12);
    for (; (at = memmem(at, (size_t)(end - at), "HTTP/1.1 100 Continue\r\n\r\n", 25)); at += 25) {
        assert_true(at < answer);
        interims++;
    }
    assert_true(interims > 0);
    const char *body = memmem(answer, (size_t)(end - answer), "\r\n\r\n", 4);
    assert_non_null(body);
    char number[16];
    snprintf(number, sizeof number, "%.*s", (int)((const char *)end - body - 4), body + 4);
    assert_int_equal(leading_number(number), interims);
    sl_buf_free(&in);
}

TEST(open_connections_are_counted, .alone = true)
{
    enum { HELD = 3, ASKED = 20 }; /* far less than a second of asking */
    struct test_server other;
    struct answer answer = {0};
    server_start(&other, routes, NULL);
    int held[HELD], asking = client_connect(&other);
    for (int i = 0; i < HELD; i++) {
        held[i] = client_connect(&other);
        client_text(held[i], "GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n");
        client_answer(held[i], &answer, false);
        answer_free(&answer);
    }
    static const char *const idle[] = {"state=\"idle\"} 3\n", "state=\"idle\"} 0\n"};
    for (int turn = 0; turn < 2; turn++) {
        bool seen = false;
        for (int i = 0; i < ASKED && !seen; i++) {
            client_text(asking, "GET /numbers HTTP/1.1\r\nHost: x\r\n\r\n");
            client_answer(asking, &answer, false);
            sl_buf_u8(&answer.raw, 0);
            assert_non_null(strstr((char *)answer.raw.data, "symloom_http_connections{state=\"working\"} 1\n"));
            seen = strstr((char *)answer.raw.data, idle[turn]);
            answer_free(&answer);
        }
        assert_true(seen);
        for (int i = 0; turn == 0 && i < HELD; i++)
            close(held[i]);
    }
    close(asking);
    server_stop(&other);
    assert_int_equal(metric_of("symloom_http_connections{state=\"working\"} "), 0);
}

TEST(draining_refuses_work_and_closes_connections, .alone = true)
{
    struct test_server other;
    struct answer answer = {0};
    server_start(&other, routes, NULL);
    int fd = client_connect(&other);
    client_text(fd, "GET /whoami HTTP/1.1\r\nHost: x\r\n\r\n");
    client_answer(fd, &answer, false);
    answer_free(&answer);
    server_wish(&other, WISH_DRAIN);
    assert_false(client_read(fd, &answer.raw, NULL)); /* an idle connection is closed */
    assert_int_equal(answer.raw.size, 0);
    close(fd);
    assert_int_equal(exchange(&other, "POST /work HTTP/1.1\r\nHost: x\r\n\r\n", &answer), 503);
    assert_str(answer.body, "{\"detail\":\"service is shutting down\"}");
    answer_free(&answer);
    assert_int_equal(exchange(&other, "GET /whoami HTTP/1.1\r\nHost: x\r\n\r\n", &answer), 200);
    assert_str(answer_header(&answer, "Connection"), "close");
    answer_free(&answer);
    server_stop(&other);
}

TEST(requests_are_counted)
{
    struct answer answer;
    assert_int_equal(status_of(&server, "GET /silent HTTP/1.1\r\nHost: x\r\n\r\n"), 500);
    assert_int_equal(get("/numbers", "", &answer), 200);
    sl_buf_u8(&answer.raw, 0);
    assert_non_null(strstr((char *)answer.raw.data,
                           "symloom_http_requests_total{route=\"/silent\",method=\"GET\",status=\"500\"} "));
    assert_null(strstr((char *)answer.raw.data, "route=\"/healthcheck\""));
    answer_free(&answer);
}

static int begin_file(void **state)
{
    log_set_levels("off");
    return setup(state);
}

TEST_FILE(.begin = begin_file, .end = teardown);
