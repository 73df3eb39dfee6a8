/* Request bodies: codings, limits, files for large ones, early answers, slow clients. */
#include "support.h"

#include <assert.h>
#include <stdatomic.h>
#include <zlib.h>
#include <zstd.h>

#define HEAD(path) "POST " path " HTTP/1.1\r\nHost: x\r\n"

enum { SMALL_LIMIT = 1 << 20, LARGE_LIMIT = 64 << 20 };

static uint64_t small_limit(const struct http_exchange *x)
{
    (void)x;
    return SMALL_LIMIT;
}

static uint64_t large_limit(const struct http_exchange *x)
{
    (void)x;
    return LARGE_LIMIT;
}

static void reply_sum(struct http_exchange *x, uint64_t size, uint64_t sum)
{
    struct sl_json_writer w = sl_json_writer(&x->body);
    sl_json_begin_array(&w);
    sl_json_put_u64(&w, size);
    sl_json_put_u64(&w, sum);
    sl_json_end_array(&w);
    x->status = 200;
    http_set_header(x, "Content-Type", SL_STR("application/json"));
}

static uint64_t add_up(uint64_t sum, struct sl_bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        sum = sum * 31 + bytes.data[i];
    return sum;
}

static void collect(struct http_exchange *x)
{
    struct sl_bytes body;
    if (http_body(x, &body) == SL_OK)
        reply_sum(x, body.size, add_up(0, body));
}

static void stream(struct http_exchange *x)
{
    struct sl_bytes piece;
    uint64_t size = 0, sum = 0;
    enum sl_code code;
    while ((code = http_body_read(x, &piece)) == SL_OK && piece.size > 0) {
        assert(piece.size <= 512 * 1024);
        size += piece.size;
        sum = add_up(sum, piece);
    }
    if (code == SL_OK)
        reply_sum(x, size, sum);
}

/* Answers without looking at the body. */
static void refuse(struct http_exchange *x)
{
    http_reply_detail(x, 503, "busy", NULL);
}

static int taken_fd; /* between two requests */

static void take(struct http_exchange *x)
{
    if (http_body_take(x, &taken_fd) == SL_OK)
        http_reply_empty(x, 204);
    else
        assert(taken_fd == -1);
}

static void reply_taken(struct http_exchange *x)
{
    struct sl_mapping mapping;
    assert(sl_map_fd(taken_fd, &mapping, NULL) == SL_OK);
    close(taken_fd);
    reply_sum(x, mapping.bytes.size, add_up(0, mapping.bytes));
    sl_unmap(&mapping);
}

static struct fiber_wait_list gate; /* loop thread */
static atomic_int at_gate, cancelled;

static void wait_at_gate(struct http_exchange *x)
{
    at_gate++;
    if (fiber_wait_on(&gate, UINT64_MAX) == FIBER_CANCELLED) {
        cancelled++;
        assert(http_client_gone(x));
    } else {
        http_reply(x, 200, "text/plain", SL_STR("through"));
    }
}

static void open_gate(struct http_exchange *x)
{
    fiber_wake_all(&gate);
    http_reply_empty(x, 204);
}

static const struct http_route routes[] = {
    {"POST", "/collect", collect, false, false, NULL, large_limit},
    {"POST", "/small", collect, false, false, NULL, small_limit},
    {"POST", "/stream", stream, false, false, NULL, large_limit},
    {"POST", "/take", take, false, false, NULL, large_limit},
    {"GET", "/taken", reply_taken, false, false, NULL, NULL},
    {"POST", "/refuse", refuse, false, false, NULL, large_limit},
    {"GET", "/gate", wait_at_gate, false, false, NULL, NULL},
    {"POST", "/gate", open_gate, false, false, NULL, NULL},
    {NULL, NULL, NULL, false, false, NULL, NULL},
};

/* An API whose bodies may be silent for longer, and whose errors have a form of their own. */
enum { PATIENCE_MS = 900 };

static uint64_t patience_ms(const void *service)
{
    (void)service;
    return PATIENCE_MS;
}

static void reply_code(struct http_exchange *x, int status, const char *detail)
{
    (void)detail;
    sl_buf_printf(&x->body, "code %d", status);
}

static const struct http_route patient_routes[] = {
    {"POST", "/upload", collect, false, false, NULL, small_limit},
    {NULL, NULL, NULL, false, false, NULL, NULL},
};
static const struct http_family all = {.routes = routes};
static const struct http_family patient = {
    .routes = patient_routes, .error = reply_code, .body_timeout_ms = patience_ms};
static const struct http_family *const families[] = {&all, &patient, NULL};

static struct test_server server;

static void impatient(struct http_options *options)
{
    options->families = families;
    options->header_timeout_ms = 300;
    options->body_timeout_ms = 300;
    options->idle_timeout_ms = 300;
    options->write_timeout_ms = 400;
}

static int setup(void **state)
{
    server_start(&server, NULL, impatient);
    return 0;
}

static int teardown(void **state)
{
    server_stop(&server);
    return 0;
}

/* ---- helpers ---- */
static void make_content(struct sl_buf *content, size_t size)
{
    uint32_t v = 1;
    sl_buf_reserve(content, size);
    for (size_t i = 0; i < size; i++) {
        v = v * 1664525 + 1013904223;
        sl_buf_u8(content, (uint8_t)(v >> 28)); /* compresses by about half */
    }
}

static int post(const char *path, const char *headers, struct sl_bytes body, bool chunked, struct answer *answer)
{
    struct sl_buf request = {0};
    sl_buf_printf(&request, "POST %s HTTP/1.1\r\nHost: x\r\n%s", path, headers);
    if (!chunked) {
        sl_buf_printf(&request, "Content-Length: %zu\r\n\r\n", body.size);
        sl_buf_add(&request, body.data, body.size);
    } else {
        sl_buf_cstr(&request, "Transfer-Encoding: chunked\r\n\r\n");
        for (size_t at = 0; at < body.size;) {
            size_t size = body.size - at < 10000 ? body.size - at : 10000;
            sl_buf_printf(&request, "%zx\r\n", size);
            sl_buf_add(&request, body.data + at, size);
            sl_buf_cstr(&request, "\r\n");
            at += size;
        }
        sl_buf_cstr(&request, "0\r\n\r\n");
    }
    int status = exchange_bytes(&server, request.data, request.size, answer);
    sl_buf_free(&request);
    return status;
}

static void assert_sum(const struct answer *answer, const struct sl_buf *content)
{
    char text[80];
    snprintf(text, sizeof text, "[%zu,%llu]", content->size, (unsigned long long)add_up(0, sl_buf_bytes(content)));
    assert_int_equal(answer->status, 200);
    assert_str(answer->body, text);
}

static struct sl_buf compress_zlib(const struct sl_buf *content, int window)
{
    z_stream z = {0};
    struct sl_buf out = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t bound = deflateBound(&z, content->size);
    sl_buf_reserve(&out, bound);
    z.next_in = content->data;
    z.avail_in = (uInt)content->size;
    z.next_out = out.data;
    z.avail_out = (uInt)bound;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out.size = bound - z.avail_out;
    deflateEnd(&z);
    return out;
}

static struct sl_buf compress_zstd(const struct sl_buf *content)
{
    struct sl_buf out = {0};
    size_t bound = ZSTD_compressBound(content->size);
    sl_buf_reserve(&out, bound);
    out.size = ZSTD_compress(out.data, bound, content->data, content->size, 3);
    return out;
}

/* ---- tests ---- */
TEST(bodies_of_every_size_arrive_whole)
{
    static const size_t sizes[] = {0, 1, 4000, 65535, 65536, 262144, 262145, 1 << 20, (1 << 20) + 1, 9000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct sl_buf content = {0};
        struct answer answer;
        make_content(&content, sizes[i]);
        for (int chunked = 0; chunked < 2; chunked++) {
            post("/collect", "", sl_buf_bytes(&content), chunked, &answer);
            assert_sum(&answer, &content);
            answer_free(&answer);
            post("/stream", "", sl_buf_bytes(&content), chunked, &answer);
            assert_sum(&answer, &content);
            answer_free(&answer);
        }
        sl_buf_free(&content);
    }
}

TEST(taken_bodies_outlive_their_exchange)
{
    static const size_t sizes[] = {0, 1, 70000, 3000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct sl_buf content = {0};
        struct answer answer;
        make_content(&content, sizes[i]);
        struct sl_buf encoded = compress_zstd(&content);
        for (int zstd = 0; zstd < 2; zstd++) {
            struct sl_bytes body = sl_buf_bytes(zstd ? &encoded : &content);
            assert_int_equal(post("/take", zstd ? "Content-Encoding: zstd\r\n" : "", body, zstd, &answer), 204);
            answer_free(&answer);
            exchange(&server, "GET /taken HTTP/1.1\r\nHost: x\r\n\r\n", &answer);
            assert_sum(&answer, &content);
            answer_free(&answer);
        }
        struct sl_bytes cut = {encoded.data, encoded.size - 1};
        assert_int_equal(post("/take", "Content-Encoding: zstd\r\n", cut, false, &answer), 400);
        answer_free(&answer);
        sl_buf_free(&encoded);
        sl_buf_free(&content);
    }
}

TEST(a_family_has_its_own_patience_and_words)
{
    struct answer answer = {0};
    struct timespec begun, ended;
    int fd = client_connect(&server);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    client_text(fd, HEAD("/upload") "Content-Length: 10\r\n\r\nabc");
    client_answer(fd, &answer, false);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    assert_int_equal(answer.status, 408);
    assert_str(answer.body, "code 408");
    assert_true((ended.tv_sec - begun.tv_sec) * 1000 + (ended.tv_nsec - begun.tv_nsec) / 1000000 >= PATIENCE_MS);
    answer_free(&answer);
    close(fd);
}

TEST(content_codings_are_undone)
{
    static const size_t sizes[] = {0, 10, 5000, 3000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct sl_buf content = {0};
        make_content(&content, sizes[i]);
        struct sl_buf encoded[3] = {compress_zlib(&content, 31), compress_zlib(&content, 15), compress_zstd(&content)};
        static const char *const headers[] = {"Content-Encoding: gzip\r\n", "Content-Encoding: DEFLATE\r\n",
                                              "Content-Encoding: zstd\r\n"};
        for (int j = 0; j < 3; j++) {
            struct answer answer;
            post("/collect", headers[j], sl_buf_bytes(&encoded[j]), j == 1, &answer);
            assert_sum(&answer, &content);
            answer_free(&answer);
            if (encoded[j].size > 20) { /* cut, and damaged */
                struct sl_bytes part = {encoded[j].data, encoded[j].size - 6};
                assert_int_equal(post("/collect", headers[j], part, false, &answer), 400);
                assert_str(answer.body, "{\"detail\":\"request body could not be decompressed\"}");
                answer_free(&answer);
            }
            sl_buf_free(&encoded[j]);
        }
        sl_buf_free(&content);
    }
    struct answer answer;
    struct sl_bytes junk = {(const uint8_t *)"this is no gzip", 15};
    assert_int_equal(post("/collect", "Content-Encoding: gzip\r\n", junk, false, &answer), 400);
    answer_free(&answer);
    assert_int_equal(post("/collect", "Content-Encoding: identity\r\n", junk, false, &answer), 200);
    answer_free(&answer);
}

TEST(unknown_codings_and_bombs_are_refused)
{
    struct answer answer;
    struct sl_buf zeros = {0};
    sl_buf_fill(&zeros, 0, 60 << 20);
    struct sl_buf bomb = compress_zlib(&zeros, 31);
    assert_true(bomb.size < 70000);
    assert_int_equal(post("/small", "Content-Encoding: gzip\r\n", sl_buf_bytes(&bomb), false, &answer), 413);
    answer_free(&answer);
    assert_int_equal(post("/upload", "Content-Encoding: gzip\r\n", sl_buf_bytes(&bomb), false, &answer), 413);
    assert_str(answer.body, "code 413");
    answer_free(&answer);
    struct sl_bytes nothing = {(const uint8_t *)"x", 1};
    assert_int_equal(post("/small", "Content-Encoding: br\r\n", nothing, false, &answer), 415);
    assert_str(answer_header(&answer, "Accept-Encoding"), "zstd, gzip");
    answer_free(&answer);
    assert_int_equal(post("/small", "Content-Encoding: gzip, zstd\r\n", nothing, false, &answer), 415);
    answer_free(&answer);
    assert_int_equal(post("/small", "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", nothing, false, &answer),
                     415);
    answer_free(&answer);
    sl_buf_free(&zeros);
    sl_buf_free(&bomb);
}

TEST(an_undeclared_body_over_the_limit_is_refused)
{
    struct sl_buf content = {0};
    struct answer answer;
    make_content(&content, SMALL_LIMIT + 1);
    assert_int_equal(post("/small", "", sl_buf_bytes(&content), true, &answer), 413);
    assert_str(answer_header(&answer, "Connection"), "close");
    answer_free(&answer);
    content.size = SMALL_LIMIT;
    post("/small", "", sl_buf_bytes(&content), true, &answer);
    assert_sum(&answer, &content);
    answer_free(&answer);
    sl_buf_free(&content);
}

TEST(an_early_answer_to_a_small_body_keeps_the_connection)
{
    int fd = client_connect(&server);
    struct answer answer = {0};
    client_text(fd, HEAD("/refuse") "Content-Length: 60000\r\n\r\n");
    client_answer(fd, &answer, false);
    assert_int_equal(answer.status, 503);
    assert_null(answer_header(&answer, "Connection").data);
    answer_free(&answer);
    struct sl_buf rest = {0};
    sl_buf_fill(&rest, 'x', 60000);
    client_send(fd, rest.data, rest.size);
    client_text(fd, HEAD("/collect") "Content-Length: 0\r\n\r\n");
    client_answer(fd, &answer, false);
    assert_int_equal(answer.status, 200);
    answer_free(&answer);
    sl_buf_free(&rest);
    close(fd);
}

/* The client sends its whole large body before it reads: it must see the answer, not a reset. */
TEST(an_early_answer_to_a_large_body_is_not_lost)
{
    struct sl_buf content = {0};
    struct answer answer;
    sl_buf_fill(&content, 'x', 20 << 20);
    assert_int_equal(post("/refuse", "", sl_buf_bytes(&content), false, &answer), 503);
    assert_str(answer_header(&answer, "Connection"), "close");
    answer_free(&answer);
    sl_buf_free(&content);
}

TEST(slow_clients_are_answered_408)
{
    struct answer answer = {0};
    int fd = client_connect(&server);
    client_text(fd, "GET /he");
    client_answer(fd, &answer, false);
    assert_int_equal(answer.status, 408);
    answer_free(&answer);
    close(fd);
    fd = client_connect(&server);
    client_text(fd, HEAD("/collect") "Content-Length: 10\r\n\r\nabc");
    client_answer(fd, &answer, false);
    assert_int_equal(answer.status, 408);
    assert_str(answer_header(&answer, "Connection"), "close");
    answer_free(&answer);
    close(fd);
    fd = client_connect(&server); /* nothing sent: closed without a word */
    struct sl_buf in = {0};
    assert_false(client_read(fd, &in, NULL));
    assert_int_equal(in.size, 0);
    close(fd);
    fd = client_connect(&server); /* idle after an answer: the same */
    client_text(fd, HEAD("/gate") "\r\n");
    client_answer(fd, &answer, false);
    assert_int_equal(answer.status, 204);
    assert_false(client_read(fd, &in, NULL));
    assert_int_equal(in.size, 0);
    answer_free(&answer);
    close(fd);
    sl_buf_free(&in);
}

static void wait_for(atomic_int *counter, int value)
{
    for (int i = 0; i < 20000 && atomic_load(counter) < value; i++)
        poll(NULL, 0, 1);
    assert_true(atomic_load(counter) >= value);
}

TEST(a_reset_cancels_the_request_and_a_half_close_does_not)
{
    atomic_store(&at_gate, 0);
    atomic_store(&cancelled, 0);
    int fd = client_connect(&server);
    client_text(fd, "GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for(&at_gate, 1);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    close(fd);
    wait_for(&cancelled, 1);
    fd = client_connect(&server);
    client_text(fd, "GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
    shutdown(fd, SHUT_WR);
    wait_for(&at_gate, 2);
    assert_int_equal(status_of(&server, HEAD("/gate") "\r\n"), 204);
    struct sl_buf in = {0};
    assert_false(client_read(fd, &in, NULL));
    assert_non_null(strstr((char *)in.data, "through"));
    assert_int_equal(atomic_load(&cancelled), 1);
    sl_buf_free(&in);
    close(fd);
}

/* Closing looks like a half-close, until the client is sent something; one that only sends no more gets an interim answer. */
TEST(a_close_cancels_the_request)
{
    struct sl_buf in = {0};
    atomic_store(&at_gate, 0);
    atomic_store(&cancelled, 0);
    int fd = client_connect(&server), half = client_connect(&server);
    client_text(half, "GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
    shutdown(half, SHUT_WR);
    client_text(fd, "GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for(&at_gate, 2);
    close(fd);
    wait_for(&cancelled, 1);
    assert_int_equal(status_of(&server, HEAD("/gate") "\r\n"), 204);
    assert_false(client_read(half, &in, NULL));
    assert_non_null(strstr((char *)in.data, "through"));
    assert_memory_equal(in.data, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200", 37);
    assert_int_equal(atomic_load(&cancelled), 1);
    sl_buf_free(&in);
    close(half);
}

TEST(a_body_cut_by_the_client_is_malformed)
{
    int fd = client_connect(&server);
    struct answer answer = {0};
    client_text(fd, HEAD("/stream") "Content-Length: 10\r\n\r\nabc");
    shutdown(fd, SHUT_WR);
    client_answer(fd, &answer, false);
    assert_int_equal(answer.status, 400);
    answer_free(&answer);
    close(fd);
}

/* ---- many at once ---- */
static void hello(struct http_exchange *x)
{
    http_reply(x, 200, "text/plain", SL_STR("ok"));
}

/* A handler that counts: bodies that fit are awaited before it runs. */
static atomic_int begun;

static void count_and_collect(struct http_exchange *x)
{
    begun++;
    collect(x);
}

static const struct http_route counted_routes[] = {
    {.method = "GET", .pattern = "/live", .handler = hello, .health = true, .immediate = true},
    {.method = "POST",
     .pattern = "/collect",
     .handler = count_and_collect,
     .body_limit = large_limit,
     .body_weight = 4},
    {.method = "GET", .pattern = "/gate", .handler = wait_at_gate},
    {.method = "POST", .pattern = "/gate", .handler = open_gate},
    {.method = NULL},
};

static void few_bodies(struct http_options *options)
{
    options->max_bodies_in_flight = 4;
    options->bind_count = 1;
}

static int connect_from(const struct test_server *t, const char *source)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(t->port)}, from = {.sin_family = AF_INET};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    inet_pton(AF_INET, source, &from.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* Begins a body of 100 KB and says whether it was refused: else the server asks for the rest. */
static bool is_refused(int fd)
{
    struct sl_buf in = {0};
    client_text(fd, HEAD("/collect") "Content-Length: 100000\r\nExpect: 100-continue\r\n\r\n");
    assert_true(client_read(fd, &in, "\r\n\r\n"));
    bool refused = strstr((char *)in.data, "HTTP/1.1 503") != NULL;
    assert_true(refused || strstr((char *)in.data, "100 Continue"));
    sl_buf_free(&in);
    return refused;
}

TEST(slow_bodies_leave_room_for_other_addresses, .alone = true)
{
    struct test_server other;
    int first[4], second[2];
    bool refused[4];
    server_start(&other, counted_routes, few_bodies);
    for (int i = 0; i < 4; i++) {
        first[i] = connect_from(&other, "127.0.0.2");
        refused[i] = is_refused(first[i]);
    }
    assert_false(refused[0] || refused[1] || refused[2]);
    assert_true(refused[3]);
    for (int i = 0; i < 2; i++)
        second[i] = connect_from(&other, "127.0.0.3");
    assert_false(is_refused(second[0]));
    assert_true(is_refused(second[1]));
    struct answer answer; /* a small one is always taken, wherever it comes from */
    assert_int_equal(exchange(&other, HEAD("/collect") "Content-Length: 2\r\n\r\n{}", &answer), 200);
    answer_free(&answer);
    close(first[0]);
    close(first[1]);
    do { /* their places are free, as soon as the server sees it */
        close(second[1]);
        second[1] = connect_from(&other, "127.0.0.3");
    } while (is_refused(second[1]));
    for (int i = 0; i < 2; i++)
        close(second[i]), close(first[i + 2]);
    server_stop(&other);
}

TEST(small_bodies_are_awaited_without_a_fiber, .alone = true)
{
    struct test_server other;
    struct answer answer = {0};
    server_start(&other, counted_routes, NULL);
    atomic_store(&begun, 0);
    int fd = client_connect(&other), reset = client_connect(&other);
    client_text(fd, HEAD("/collect") "Content-Length: 4\r\n\r\nab");
    client_text(reset, HEAD("/collect") "Content-Length: 4\r\n\r\nab");
    assert_int_equal(status_of(&other, "GET /live HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
    assert_int_equal(atomic_load(&begun), 0);
    setsockopt(reset, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    close(reset);
    client_text(fd, "cdGET /live HTTP/1.1\r\nHost: x\r\n\r\n");
    client_answer(fd, &answer, false);
    assert_int_equal(answer.status, 200);
    assert_true(sl_str_starts(answer.body, SL_STR("[4,")));
    assert_int_equal(atomic_load(&begun), 1);
    answer_free(&answer);
    close(fd);
    server_stop(&other);
}

TEST(health_needs_no_fiber, .alone = true)
{
    struct test_server other;
    struct answer answer = {0};
    server_start(&other, counted_routes, NULL);
    atomic_store(&at_gate, 0);
    int held = client_connect(&other);
    client_text(held, "GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for(&at_gate, 1);
    fiber_set_limit(1);
    assert_int_equal(status_of(&other, "GET /gate HTTP/1.1\r\nHost: x\r\n\r\n"), 503);
    for (int i = 0; i < 3; i++)
        assert_int_equal(status_of(&other, "GET /live HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
    assert_int_equal(status_of(&other, "HEAD /live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 200);
    assert_int_equal(exchange(&other, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", &answer), 404);
    answer_free(&answer);
    fiber_set_limit(20000);
    close(held);
    server_stop(&other);
}

/* More answers than the socket takes, to a client that reads late. */
TEST(many_answers_at_once_wait_for_their_client, .alone = true)
{
    enum { REQUESTS = 9000 };
    static const char one[] = "GET /live HTTP/1.1\r\nHost: x\r\n\r\n";
    struct test_server other;
    server_start(&other, counted_routes, NULL);
    int fd = client_connect(&other), small = 4096, large = 1 << 20;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small); /* far less than the answers */
    size_t sent = 0, total = REQUESTS * (sizeof one - 1), ends = 0;
    struct sl_buf in = {0};
    while (ends < REQUESTS) { /* never blocked in sending alone */
        struct pollfd poll_fd = {fd, sent < total ? POLLIN | POLLOUT : POLLIN, 0};
        assert_int_equal(poll(&poll_fd, 1, CLIENT_PATIENCE_MS), 1);
        if (poll_fd.revents & POLLOUT) {
            size_t at = sent % (sizeof one - 1);
            ssize_t n = send(fd, one + at, sizeof one - 1 - at, MSG_NOSIGNAL | MSG_DONTWAIT);
            sent += n > 0 ? (size_t)n : 0;
            if (n > 0)
                continue; /* reads only when no more can be sent */
        }
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof large); /* the rest comes without TCP's pauses */
        char piece[65536];
        ssize_t n = recv(fd, piece, sizeof piece, MSG_DONTWAIT);
        assert_true(n > 0 || errno == EAGAIN);
        if (n <= 0)
            continue;
        sl_buf_add(&in, piece, (size_t)n);
        size_t at = 0;
        for (const char *found; (found = memmem(in.data + at, in.size - at, "\r\n\r\nok", 6)) != NULL; ends++)
            at = (size_t)(found - (char *)in.data) + 6;
        memmove(in.data, in.data + at, in.size - at);
        in.size -= at;
    }
    assert_int_equal(in.size, 0);
    sl_buf_free(&in);
    close(fd);
    server_stop(&other);
}

static struct memory_share held;

static void memory_for_small_bodies(void)
{
    memory_configure(1 << 20, 50); /* of up to 256 KiB, at weight 4 */
}

static void memory_is_taken(void)
{
    memory_set(&held, 1 << 20);
}

static void memory_is_given_back(void)
{
    memory_set(&held, 0);
}

static void memory_for_all(void)
{
    memory_configure(UINT64_MAX, 5000);
}

TEST(bodies_that_memory_is_not_there_for, .alone = true)
{
    struct test_server other;
    struct answer answer = {0};
    static char request[400000];
    server_start(&other, counted_routes, NULL);
    server_run(&other, memory_for_small_bodies);
    assert_int_equal(status_of(&other, HEAD("/collect") "Content-Length: 262145\r\n\r\n"), 413);
    int size = snprintf(request, sizeof request, HEAD("/collect") "Transfer-Encoding: chunked\r\n\r\n%x\r\n", 300000);
    memset(request + size, 'x', 300000);
    assert_int_equal(exchange_bytes(&other, request, (size_t)size + 300000, &answer), 413);
    answer_free(&answer);
    server_run(&other, memory_is_taken);
    size = snprintf(request, sizeof request, HEAD("/collect") "Content-Length: 100000\r\n\r\n");
    memset(request + size, 'x', 100000);
    assert_int_equal(exchange_bytes(&other, request, (size_t)size + 100000, &answer), 503);
    assert_str(answer.body, "{\"detail\":\"not enough memory for this request\"}");
    answer_free(&answer);
    server_run(&other, memory_is_given_back);
    assert_int_equal(exchange_bytes(&other, request, (size_t)size + 100000, &answer), 200);
    answer_free(&answer);
    server_run(&other, memory_for_all);
    server_stop(&other);
    assert_true(memory_used() == 0);
}

static int begin_file(void **state)
{
    log_set_levels("off");
    return setup(state);
}

TEST_FILE(.begin = begin_file, .end = teardown);
