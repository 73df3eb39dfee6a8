/* Framing on the wire: what is accepted, what is refused, in which order, and what becomes of the connection. */
#include "support.h"

#include "../json.h"

#define H "POST /symbolicate HTTP/1.1\r\nHost: x\r\n"

static void health(struct http_exchange *x)
{
    http_reply(x, 200, "text/plain; charset=utf-8", SL_STR("ok"));
}

static void symbolicate(struct http_exchange *x)
{
    struct sl_bytes body;
    if (http_body(x, &body) != SL_OK)
        return;
    if (!is_json((struct sl_str){(const char *)body.data, body.size})) {
        http_reply(x, 400, "text/plain", SL_STR("no JSON"));
        return;
    }
    http_reply(x, 200, "application/json", SL_STR("{\"status\":\"completed\",\"stacktraces\":[],\"modules\":[]}"));
}

static void proxy(struct http_exchange *x)
{
    size_t parts = 1;
    for (size_t i = 0; i < x->captures[0].size; i++)
        parts += x->captures[0].data[i] == '/';
    if (parts != 3)
        http_reply_empty(x, 404);
    else
        http_reply(x, 200, "text/plain", x->captures[0]);
}

static void poll_result(struct http_exchange *x)
{
    http_reply(x, 200, "text/plain", x->captures[0]);
}

static void check(struct http_exchange *x)
{
    struct sl_str type = http_header(x, "content-type");
    if (http_query_count(x, "timeout") > 1)
        http_reply(x, 400, "text/plain; charset=utf-8", SL_STR("Failed to deserialize query string: timeout twice"));
    else if (type.data && !sl_str_equal(type, SL_STR("application/json")))
        http_reply(x, 415, "text/plain; charset=utf-8",
                   SL_STR("Expected request with `Content-Type: application/json`"));
}

static uint64_t limit(const struct http_exchange *x)
{
    (void)x;
    return 1000000;
}

static const struct http_route routes[] = {
    {"GET", "/healthcheck", health, true, false, NULL, NULL},
    {"POST", "/symbolicate", symbolicate, false, true, check, limit},
    {"GET", "/requests/{id}", poll_result, false, false, NULL, NULL},
    {"GET", "/proxy/{path..}", proxy, false, true, NULL, NULL},
    {NULL, NULL, NULL, false, false, NULL, NULL},
};

/* An API with a form of its own for errors, below a prefix. */
static void reply_title(struct http_exchange *x, int status, const char *detail)
{
    sl_buf_printf(&x->body, "{\"title\": \"%d %s\"}", status, detail ? detail : "-");
}

static const char *titled_prefix(const void *service)
{
    assert_null(service);
    return "/titled";
}

static const struct http_route titled_routes[] = {
    {"POST", "/v5", symbolicate, false, true, NULL, limit},
    {"PUT", "/v5", symbolicate, false, true, NULL, limit},
    {NULL, NULL, NULL, false, false, NULL, NULL},
};

static const struct http_family plain = {.routes = routes};
static const struct http_family titled = {
    .routes = titled_routes, .prefix = titled_prefix, .error = reply_title, .allow_separator = ", "};
static const struct http_family *const families[] = {&plain, &titled, NULL};

static void with_families(struct http_options *options)
{
    options->families = families;
}

static struct test_server server;

static int setup(void **state)
{
    server_start(&server, NULL, with_families);
    return 0;
}

static int teardown(void **state)
{
    server_stop(&server);
    return 0;
}

/* The answer has this status and is the only one; the connection is closed after it. */
static void assert_refused_bytes(const void *request, size_t size, int status)
{
    struct sl_buf in = {0};
    int fd = client_connect(&server);
    int received = 0;
    client_send(fd, request, size);
    assert_false(client_read(fd, &in, NULL));
    assert_non_null(in.data);
    assert_int_equal(sscanf((char *)in.data, "HTTP/1.1 %d", &received), 1);
    if (received != status)
        fail_msg("%d instead of %d for %.60s", received, status, (const char *)request);
    assert_non_null(strstr((char *)in.data, "\r\nConnection: close\r\n"));
    assert_null(strstr((char *)in.data + 8, "HTTP/1.1"));
    close(fd);
    sl_buf_free(&in);
}

static void assert_refused(const char *request, int status)
{
    assert_refused_bytes(request, strlen(request), status);
}

TEST(ambiguous_lengths_are_refused)
{
    assert_refused(H "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                     "GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n",
                   400);
    assert_refused(H "Content-Length: 3\r\nContent-Length: 3\r\n\r\n{} ", 400);
    assert_refused(H "Content-Length: +3\r\n\r\n{} ", 400);
    assert_refused(H "Content-Length: 3, 3\r\n\r\n{} ", 400);
    assert_refused(H "Content-Length: 0x3\r\n\r\n{} ", 400);
    assert_refused(H "Content-Length:\r\n\r\n{} ", 400);
}

TEST(folded_lines_and_bare_line_ends_are_refused)
{
    assert_refused(H "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400);
    assert_refused(H "X: a\r\n\tb\r\n\r\n", 400);
    assert_refused(H "Content-Length: 0\r\n\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", 400);
    assert_refused("GET /healthcheck HTTP/1.1\nHost: x\n\n", 400);
    assert_refused(H "X: a\rb\r\n\r\n", 400);
    assert_refused(H "X:\r\rb\r\n\r\n", 400);
    assert_refused(H ": x\r\n\r\n", 400);
    assert_refused(H "Name : x\r\n\r\n", 400);
    assert_refused(H "X: a\001b\r\n\r\n", 400);
}

#define C H "Transfer-Encoding: chunked\r\n\r\n"

TEST(malformed_chunks_are_refused)
{
    static const char *const bodies[] = {
        "2\n{}\r\n0\r\n\r\n",
        "2;a\n{}\r\n0\r\n\r\n",
        "2;a\rb\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}\n0\r\n\r\n",
        "2\r\n{}XX0\r\n\r\n",
        " 2\r\n{}\r\n0\r\n\r\n",
        "2\t\r\n{}\r\n0\r\n\r\n",
        "0x2\r\n{}\r\n0\r\n\r\n",
        "-2\r\n{}\r\n0\r\n\r\n",
        "+2\r\n{}\r\n0\r\n\r\n",
        "\r\n{}\r\n0\r\n\r\n",
        ";a\r\n{}\r\n0\r\n\r\n",
        "10000000000000002\r\n{}\r\n0\r\n\r\n",
        /* trailers: bare line feeds and folded lines, as in heads */
        "2\r\n{}\r\n0\r\n\n",
        "2\r\n{}\r\n0\r\nX: y\r\n\n",
        "2\r\n{}\r\n0\r\nX: y\n\r\n",
        "2\r\n{}\r\n0\r\nX: y\r\n z\r\n\r\n",
        "2\r\n{}\r\n0\r\n\tz\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct sl_buf request = {0};
        sl_buf_printf(&request,
                      C "%s"
                        "GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n",
                      bodies[i]);
        assert_refused_bytes(request.data, request.size, 400);
        sl_buf_free(&request);
    }
}

TEST(transfer_codings_other_than_chunked_are_refused)
{
    assert_refused(H "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501);
    assert_refused(H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
    assert_refused(H "Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n", 400);
    assert_refused(H "Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}", 400);
    assert_refused(H "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400);
    assert_refused("POST /symbolicate HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
    assert_int_equal(status_of(&server, H "Transfer-Encoding: CHUNKED\r\n\r\n2\r\n{}\r\n0\r\n\r\n"), 200);
}

TEST(versions_and_host_headers_are_checked)
{
    assert_refused("GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505);
    assert_refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505);
    assert_refused("GET /\r\n\r\n", 505);
    assert_refused("GET /healthcheck HTTP/1.1\r\n\r\n", 400);
    assert_refused("GET /healthcheck HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400);
    assert_int_equal(status_of(&server, "GET /healthcheck HTTP/1.0\r\n\r\n"), 200);
    assert_refused("GET /healthcheck#a HTTP/1.1\r\nHost: x\r\n\r\n", 400);
    assert_refused("\x16\x03\x01\x02", 400);
}

TEST(head_size_is_limited)
{
    struct sl_buf request = {0};
    sl_buf_cstr(&request, "GET /");
    sl_buf_fill(&request, 'a', 9 * 1024);
    sl_buf_cstr(&request, " HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_refused_bytes(request.data, request.size, 414);
    sl_buf_clear(&request);
    sl_buf_cstr(&request, H "X: ");
    sl_buf_fill(&request, 'a', 33 * 1024);
    sl_buf_cstr(&request, "\r\n\r\n");
    assert_refused_bytes(request.data, request.size, 431);
    sl_buf_clear(&request);
    sl_buf_cstr(&request, H);
    for (int i = 0; i < 100; i++)
        sl_buf_cstr(&request, "X: y\r\n");
    sl_buf_cstr(&request, "\r\n");
    assert_refused_bytes(request.data, request.size, 431);
    sl_buf_clear(&request);
    sl_buf_cstr(&request, H "Transfer-Encoding: chunked\r\n\r\n1;");
    sl_buf_fill(&request, 'x', 1 << 20);
    assert_refused_bytes(request.data, request.size, 400);
    sl_buf_clear(&request);
    sl_buf_cstr(&request, H "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: ");
    sl_buf_fill(&request, 'x', 40 * 1024);
    assert_refused_bytes(request.data, request.size, 431);
    sl_buf_free(&request);
}

/* Two answers on one connection, the second to what was sent with the first. */
static void assert_two_answers(const char *requests, int first, int second)
{
    struct sl_buf in = {0};
    int fd = client_connect(&server), one = 0, two = 0;
    client_text(fd, requests);
    shutdown(fd, SHUT_WR);
    assert_false(client_read(fd, &in, NULL));
    sscanf((char *)in.data, "HTTP/1.1 %d", &one);
    char *next = strstr((char *)in.data + 8, "HTTP/1.1 ");
    assert_non_null(next);
    sscanf(next, "HTTP/1.1 %d", &two);
    assert_int_equal(one, first);
    assert_int_equal(two, second);
    assert_null(strstr(next + 8, "HTTP/1.1 "));
    close(fd);
    sl_buf_free(&in);
}

TEST(pipelined_requests_are_answered_in_order)
{
    assert_two_answers("GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\nGET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n", 200,
                       200);
    assert_two_answers(H "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n"
                         "GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n",
                       200, 200);
    assert_two_answers(H "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n000\r\nX: y\r\nZ:\r\n\r\n"
                         "GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n",
                       200, 200);
    assert_two_answers(H "Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}"
                         "GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n",
                       200, 200);
    assert_two_answers("GET /healthcheck HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
                       "GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n",
                       200, 200);
    assert_two_answers(H "Content-Length: 2\r\n\r\n{}GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", 200, 404);
    assert_two_answers(
        H "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n", 415,
        200);
    assert_two_answers("GET /healthcheck HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
                       "GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n",
                       200, 200);
    assert_two_answers("GET /healthcheck HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"
                       "GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n",
                       200, 200);
}

TEST(expect_100_continue_is_answered)
{
    assert_refused(H "Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n",
                   413);
    assert_int_equal(status_of(&server, H "Expect: more\r\nContent-Length: 2\r\n\r\n{}"), 417);
    int fd = client_connect(&server);
    struct sl_buf in = {0};
    client_text(fd, H "Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_true(client_read(fd, &in, "HTTP/1.1 100 Continue\r\n\r\n"));
    sl_buf_clear(&in);
    client_text(fd, "{}");
    assert_true(client_read(fd, &in, "{\"status\":\"completed\",\"stacktraces\":[],\"modules\":[]}"));
    assert_non_null(strstr((char *)in.data, "HTTP/1.1 200 OK"));
    assert_null(strstr((char *)in.data, "100 Continue"));
    close(fd);
    sl_buf_free(&in);
}

TEST(paths_and_methods_are_matched)
{
    struct answer answer;
    assert_int_equal(status_of(&server, "GET /proxy/a%2Fb HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
    assert_int_equal(exchange(&server, "GET /proxy/a%2Fb/c+d?x HTTP/1.1\r\nHost: x\r\n\r\n", &answer), 200);
    assert_str(answer.body, "a/b/c+d");
    answer_free(&answer);
    assert_int_equal(status_of(&server, "GET /proxy/%zz HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
    assert_int_equal(status_of(&server, "GET /proxy/%00 HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
    assert_int_equal(status_of(&server, "GET /requests/%ff HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
    assert_int_equal(status_of(&server, "GET /requests/%2e%2E HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
    assert_int_equal(status_of(&server, "GET /requests/ HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
    assert_int_equal(status_of(&server, "GET /requests/a/b HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
    assert_int_equal(status_of(&server, "GET //requests/a HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
    assert_int_equal(exchange(&server, "GET http://other/requests/a%C3%A4?b#c HTTP/1.0\r\n\r\n", &answer), 400);
    answer_free(&answer);
    assert_int_equal(exchange(&server, "GET http://other/requests/a%C3%A4?b HTTP/1.0\r\n\r\n", &answer), 200);
    assert_str(answer.body, "a\xC3\xA4");
    answer_free(&answer);
    assert_int_equal(exchange(&server, "POST /symbolicate/ HTTP/1.1\r\nHost: x\r\n\r\n", &answer), 404);
    assert_int_equal(answer.body.size, 0);
    assert_str(answer_header(&answer, "Content-Length"), "0");
    answer_free(&answer);
    assert_int_equal(exchange(&server, "GET /symbolicate HTTP/1.1\r\nHost: x\r\n\r\n", &answer), 405);
    assert_str(answer_header(&answer, "Allow"), "POST");
    answer_free(&answer);
    assert_int_equal(exchange(&server, "POST /requests/a HTTP/1.1\r\nHost: x\r\n\r\n", &answer), 405);
    assert_str(answer_header(&answer, "Allow"), "GET,HEAD");
    answer_free(&answer);
    assert_int_equal(exchange(&server, "DESCRIBE /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n", &answer), 405);
    answer_free(&answer);
    assert_int_equal(exchange(&server, "FROB /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n", &answer), 405);
    answer_free(&answer);
    assert_int_equal(status_of(&server, "FROB /nothing HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
    assert_refused("CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n", 405);
    assert_int_equal(exchange(&server, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", &answer), 204);
    assert_str(answer_header(&answer, "Allow"), "GET,HEAD,POST,PUT");
    answer_free(&answer);
    assert_refused("GET * HTTP/1.1\r\nHost: x\r\n\r\n", 400);
    assert_int_equal(exchange(&server, "GET /titled/v5 HTTP/1.1\r\nHost: x\r\n\r\n", &answer), 405);
    assert_str(answer.body, "{\"title\": \"405 -\"}");
    assert_str(answer_header(&answer, "Allow"), "POST, PUT");
    answer_free(&answer);
}

TEST(request_checks_have_a_fixed_order)
{
    struct answer answer;
    assert_int_equal(exchange(&server,
                              "POST /symbolicate?timeout=1&timeout=2 HTTP/1.1\r\nHost: x\r\n"
                              "Content-Type: text/plain\r\nContent-Length: 9999999\r\n\r\n",
                              &answer),
                     400);
    answer_free(&answer);
    assert_int_equal(exchange(&server, H "Content-Type: text/plain\r\nContent-Length: 9999999\r\n\r\n", &answer), 415);
    answer_free(&answer);
    assert_int_equal(exchange(&server, H "Content-Length: 9999999\r\n\r\n", &answer), 413);
    assert_str(answer.body, "Failed to buffer the request body: length limit exceeded");
    assert_str(answer_header(&answer, "Content-Type"), "text/plain; charset=utf-8");
    answer_free(&answer);
    assert_int_equal(
        exchange(&server, "POST /titled/v5 HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n", &answer), 413);
    assert_str(answer.body, "{\"title\": \"413 -\"}");
    assert_int_equal(status_of(&server, "POST /v5 HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
    answer_free(&answer);
    assert_int_equal(status_of(&server, "GET /healthcheck HTTP/1.1\r\nHost: x\r\nContent-Length: 70000\r\n\r\n"), 413);
}

TEST(request_may_arrive_byte_by_byte)
{
    static const char request[] = "\r\n" H "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                                  "1\r\n{\r\n1;a=b\r\n}\r\n0\r\nX: y\r\n\r\n"
                                  "GET /healthcheck HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    int fd = client_connect(&server);
    struct sl_buf in = {0};
    for (size_t i = 0; i < sizeof request - 1; i++)
        client_send(fd, request + i, 1);
    assert_false(client_read(fd, &in, NULL));
    assert_int_equal(strncmp((char *)in.data, "HTTP/1.1 200 OK\r\n", 17), 0);
    assert_non_null(strstr((char *)in.data, "\"completed\""));
    assert_non_null(strstr((char *)in.data, "\r\n\r\nok"));
    close(fd);
    sl_buf_free(&in);
}

TEST(head_answers_as_get_without_the_body)
{
    struct answer answer;
    assert_int_equal(exchange(&server, "HEAD /healthcheck HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", &answer),
                     200);
    assert_str(answer_header(&answer, "Content-Length"), "2");
    assert_str(answer_header(&answer, "Content-Type"), "text/plain; charset=utf-8");
    assert_int_equal(answer.raw.size, answer.head.size);
    answer_free(&answer);
}

TEST(every_answer_has_the_standard_headers)
{
    struct answer answer;
    exchange(&server, "GET /healthcheck HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\n\r\n", &answer);
    assert_str(answer_header(&answer, "Server"), "symloom");
    assert_str(answer_header(&answer, "X-Content-Type-Options"), "nosniff");
    assert_str(answer_header(&answer, "Cache-Control"), "no-store");
    assert_int_equal(answer_header(&answer, "Date").size, 29);
    assert_int_equal(answer_header(&answer, "X-Request-Id").size, 36); /* an untrusted peer's own id is not taken */
    assert_null(answer_header(&answer, "Connection").data);
    answer_free(&answer);
    exchange(&server, "GET /healthcheck HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &answer);
    assert_str(answer_header(&answer, "Connection"), "keep-alive");
    answer_free(&answer);
    exchange(&server, "GET /healthcheck HTTP/1.0\r\n\r\n", &answer);
    assert_str(answer_header(&answer, "Connection"), "close");
    answer_free(&answer);
}

/* Whatever is cut off or garbled, the server answers or closes, and serves the next client. */
TEST(truncated_and_garbled_requests_do_no_harm)
{
    static const char request[] =
        H "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\n\r\n";
    for (size_t cut = 0; cut < sizeof request; cut += 3) {
        int fd = client_connect(&server);
        struct sl_buf in = {0};
        client_send(fd, request, cut);
        shutdown(fd, SHUT_WR);
        client_read(fd, &in, NULL);
        close(fd);
        sl_buf_free(&in);
    }
    for (size_t i = 0; i < sizeof request - 1; i += 2) {
        char garbled[sizeof request];
        memcpy(garbled, request, sizeof request);
        garbled[i] = (char)(garbled[i] ^ (i % 3 == 0 ? 0x80 : i % 3 == 1 ? 0x0F : 0x20));
        int fd = client_connect(&server);
        struct sl_buf in = {0};
        client_send(fd, garbled, sizeof garbled - 1);
        shutdown(fd, SHUT_WR);
        client_read(fd, &in, NULL);
        close(fd);
        sl_buf_free(&in);
    }
    assert_int_equal(status_of(&server, "GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
}

static int begin_file(void **state)
{
    log_set_levels("off");
    return setup(state);
}

TEST_FILE(.begin = begin_file, .end = teardown);
