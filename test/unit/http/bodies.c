/* Request bodies: codings, limits, files for large ones, early answers, slow clients. */
#include "handlers.h"

#include <zlib.h>
#include <zstd.h>

enum { SMALL_LIMIT = 1 << 20 };

static uint64_t small_limit(const struct http_exchange *x)
{
    (void)x;
    return SMALL_LIMIT;
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
TEST(bodies_of_every_size_arrive_complete)
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

TEST(family_sets_its_own_timeout_and_error_form)
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

TEST(content_encodings_are_decoded)
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

TEST(unknown_encodings_and_bombs_are_refused)
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

TEST(chunked_body_over_the_limit_is_refused)
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

TEST(early_answer_to_a_small_body_keeps_the_connection)
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
TEST(early_answer_to_a_large_body_is_not_lost)
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

TEST(reset_cancels_the_request_and_half_close_does_not)
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
TEST(closed_connection_cancels_the_request)
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

TEST(truncated_body_is_malformed)
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

static int begin_file(void **state)
{
    log_set_levels("off");
    return setup(state);
}

TEST_FILE(.begin = begin_file, .end = teardown);
