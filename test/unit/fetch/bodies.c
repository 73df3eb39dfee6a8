/* Bodies: ranges honoured, ignored and lied about, content codings, the size limit. */
#include "support.h"

#include <brotli/encode.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

enum { SIZE = 1000003, SPLIT = 100000 };
static struct server *server;
static uint8_t contents[SIZE + 1];
static unsigned parts_seen;

/* Pieces of random bytes and of repetitions, so that codings have something to do. */
static void fill(void)
{
    uint32_t state = 1;
    for (size_t i = 0; i < SIZE; i++) {
        state = state * 1664525 + 1013904223;
        contents[i] = i / 1000 % 2 ? (uint8_t)(i / 1000) : (uint8_t)(state >> 24);
    }
}

/* ---- codings ---- */
static struct sl_buf coded(const char *coding, const void *data, size_t size)
{
    struct sl_buf out = {0};
    size_t room = size + size / 4 + 4096;
    assert_true(sl_buf_reserve(&out, room));
    if (strcmp(coding, "br") == 0) {
        assert_true(BrotliEncoderCompress(5, 22, BROTLI_MODE_GENERIC, size, data, &room, out.data));
        out.size = room;
    } else if (strcmp(coding, "zstd") == 0) {
        out.size = ZSTD_compress(out.data, room, data, size, 3);
        assert_false(ZSTD_isError(out.size));
    } else if (strcmp(coding, "xz") == 0) {
        assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, data, size, out.data, &out.size, room),
                         LZMA_OK);
    } else {
        z_stream z = {.next_in = (Bytef *)data, .avail_in = (uInt)size, .next_out = out.data, .avail_out = (uInt)room};
        int bits = strcmp(coding, "gzip") == 0 ? 16 + MAX_WBITS : MAX_WBITS;
        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        out.size = z.total_out;
        deflateEnd(&z);
    }
    return out;
}

static bool coded_answer(struct call *c, const char *fields, const char *coding, const void *data, size_t size)
{
    char all[256];
    struct sl_buf body = coded(coding, data, size);
    snprintf(all, sizeof all, "Content-Encoding: %s\r\n%s", coding, fields);
    body_answer(c, all, body.data, body.size);
    sl_buf_free(&body);
    return true;
}

/* Gigabytes of zeros in a body of some hundred kilobytes. */
static bool bomb(struct call *c)
{
    struct sl_buf out = {0};
    static uint8_t zeros[1 << 20];
    assert_true(sl_buf_reserve(&out, 4 << 20));
    z_stream z = {.next_out = out.data, .avail_out = 4 << 20};
    deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    for (int i = 0; i < 400; i++) {
        z.next_in = zeros;
        z.avail_in = sizeof zeros;
        deflate(&z, i == 399 ? Z_FINISH : Z_NO_FLUSH);
    }
    deflateEnd(&z);
    body_answer(c, "Content-Encoding: gzip\r\n", out.data, z.total_out);
    sl_buf_free(&out);
    return true;
}

/* ---- the server ---- */
static bool range_of(const struct call *c, size_t *start, size_t *end)
{
    char value[64];
    return header_of(c->head, "Range", value, sizeof value) && sscanf(value, "bytes=%zu-%zu", start, end) == 2;
}

static bool slice(struct call *c, const struct sl_bytes *of, size_t start, size_t end, const char *fields)
{
    if (end >= of->size)
        end = of->size - 1;
    say(c, "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %zu-%zu/%zu\r\n%sContent-Length: %zu\r\n\r\n", start,
        end, of->size, fields, end + 1 - start);
    send_all(c->fd, of->data + start, end + 1 - start);
    return true;
}

/* What the parts after the first are answered with. */
static bool odd_part(struct call *c, const char *how, size_t start, size_t end)
{
    unsigned seen = __atomic_add_fetch(&parts_seen, 1, __ATOMIC_RELAXED);
    if (strcmp(how, "whole") == 0)
        return body_answer(c, "", contents, SIZE);
    if (strcmp(how, "short") == 0)
        return say(c, "HTTP/1.1 206 P\r\nContent-Range: bytes %zu-%zu/%d\r\nContent-Length: 5\r\n\r\nshort", start, end,
                   SIZE),
               true;
    if (strcmp(how, "long") == 0) {
        say(c, "HTTP/1.1 206 P\r\nContent-Range: bytes %zu-%zu/%d\r\nContent-Length: %zu\r\n\r\n", start, end, SIZE,
            end - start + 2);
        send_all(c->fd, contents + start - 1, end - start + 2);
        return true;
    }
    if (strcmp(how, "elsewhere") == 0)
        return slice(c, &(struct sl_bytes){contents, SIZE}, start - 1, end, "");
    if (strcmp(how, "less") == 0)
        return slice(c, &(struct sl_bytes){contents, SIZE}, start, end - 1, "");
    if (strcmp(how, "other-size") == 0)
        return slice(c, &(struct sl_bytes){contents, SIZE + 1}, start, end, "");
    if (strcmp(how, "coded") == 0)
        return slice(c, &(struct sl_bytes){contents, SIZE}, start, end, "Content-Encoding: gzip\r\n");
    if (strcmp(how, "refused") == 0)
        return status_answer(c, 403, "");
    if (strcmp(how, "busy") == 0)
        return status_answer(c, 503, "Retry-After: 3600\r\n");
    if (strcmp(how, "stall") == 0 && start > SIZE / 2)
        return hang(c), false;
    if (strcmp(how, "once") == 0 && seen == 2) /* one part breaks; the next attempt is fine */
        return false;
    return slice(c, &(struct sl_bytes){contents, SIZE}, start, end, "ETag: \"v1\"\r\n");
}

static bool route(struct call *c)
{
    size_t start = 0, end = 0;
    bool ranged = range_of(c, &start, &end);
    if (starts(c->path, "/odd/")) {
        if (start > 0)
            return odd_part(c, c->path + 5, start, end);
        return slice(c, &(struct sl_bytes){contents, SIZE}, start, end, "ETag: \"v1\"\r\n");
    }
    if (starts(c->path, "/small-first"))
        return slice(c, &(struct sl_bytes){contents, 110}, start, start ? end : 9, "");
    if (starts(c->path, "/ignored"))
        return body_answer(c, "", contents, SIZE);
    if (starts(c->path, "/unsaid"))
        return say(c, "HTTP/1.1 206 P\r\nContent-Length: 8\r\n\r\ncontents"), true;
    if (starts(c->path, "/says/")) { /* Content-Range as the path has it, '_' for a blank */
        char text[256];
        snprintf(text, sizeof text, "%s", c->path + 6);
        for (char *at = text; *at; at++)
            *at = *at == '_' ? ' ' : *at;
        if (ranged)
            return say(c, "HTTP/1.1 206 P\r\nContent-Range: %s\r\nContent-Length: 8\r\n\r\ncontents", text), true;
        return body_answer(c, "", "plain", 5);
    }
    if (starts(c->path, "/416"))
        return ranged ? status_answer(c, 416, "") : body_answer(c, "", "plain", 5);
    if (starts(c->path, "/empty-range"))
        return say(c, "HTTP/1.1 206 P\r\nContent-Range: bytes 0-0/0\r\nContent-Encoding: gzip\r\nContent-Length: "
                      "1\r\n\r\n"),
               hang(c), false;
    if (starts(c->path, "/coded/"))
        return coded_answer(c, "", c->path + 7, contents, SIZE);
    if (starts(c->path, "/coded-parts/")) {
        char fields[64];
        struct sl_buf all = coded(c->path + 13, contents, SIZE);
        snprintf(fields, sizeof fields, "Content-Encoding: %s\r\n", c->path + 13);
        slice(c, &(struct sl_bytes){all.data, all.size}, start, end, fields);
        sl_buf_free(&all);
        return true;
    }
    if (starts(c->path, "/hello/"))
        return coded_answer(c, "", c->path + 7, "hello world", 11);
    if (starts(c->path, "/five/"))
        return coded_answer(c, "", c->path + 6, "12345", 5);
    if (starts(c->path, "/plain/"))
        return body_answer(c, "", c->path + 7, strlen(c->path + 7));
    if (starts(c->path, "/chunked"))
        return say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n123\r\n3\r\n456\r\n0\r\n\r\n"), true;
    if (starts(c->path, "/label/")) { /* a coding that is only claimed */
        char fields[300];
        snprintf(fields, sizeof fields, "Content-Encoding:  %s \r\n", c->path + 7);
        return body_answer(c, fields, "contents", 8);
    }
    if (starts(c->path, "/two"))
        return body_answer(c, "Content-Encoding: gzip\r\nContent-Encoding: br\r\n", "x", 1);
    if (starts(c->path, "/nothing"))
        return body_answer(c, "Content-Encoding: gzip\r\n", "", 0);
    if (starts(c->path, "/wrapped")) { /* as a file, and with a coding of the transfer around it */
        struct sl_buf file = coded("gzip", contents, SIZE);
        if (strcmp(c->path, "/wrapped-and-coded") == 0)
            coded_answer(c, "", "zstd", file.data, file.size);
        else if (strcmp(c->path, "/wrapped-broken") == 0)
            body_answer(c, "", file.data, file.size / 2);
        else
            body_answer(c, "", file.data, file.size);
        sl_buf_free(&file);
        return true;
    }
    if (starts(c->path, "/bomb"))
        return bomb(c);
    return status_answer(c, 404, "");
}

static void expect_hits(unsigned hits)
{
    assert_int_equal(hits_of(server), hits);
    free(take_log(server));
}

static void run(void (*fn)(void *arg), uint64_t max_size);

/* ---- ranges ---- */
FIBER_TEST_WITH(large_file_is_downloaded_in_ranges, 0)
{
    expect_body(get(server, "/odd/none"), contents, SIZE);
    char *log = take_log(server);
    static const char *const ranges[] = {"bytes=0-99999", "bytes=100000-324999", "bytes=325000-549999",
                                         "bytes=550000-774999", "bytes=775000-1000002"};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        assert_non_null(strstr(log, ranges[i]));
    assert_non_null(strstr(log, "\r\nIf-Range: \"v1\"\r\n"));
    free(log);
    expect_body(get(server, "/small-first"), contents, 110);
    log = take_log(server);
    assert_non_null(strstr(log, "Range: bytes=10-109\r\n"));
    free(log);
}

static void parts_that_are_not_as_asked_fail(void *arg)
{
    static const char *const as_asked[] = {"whole", "elsewhere", "less", "other-size", "coded"};
    for (size_t i = 0; i < sizeof as_asked / sizeof *as_asked; i++) {
        char path[32];
        snprintf(path, sizeof path, "/odd/%s", as_asked[i]);
        expect_error(get(server, path), SL_DOWNLOAD_ERROR, "the server did not answer a range request with that range");
    }
    expect_error(get(server, "/odd/short"), SL_DOWNLOAD_ERROR, "the response is shorter than the requested range");
    expect_error(get(server, "/odd/long"), SL_DOWNLOAD_ERROR, "the response is longer than the requested range");
    expect_error(get(server, "/odd/refused"), SL_PERMISSION_DENIED, "403 Forbidden");
    expect_error(get(server, "/odd/busy"), SL_DOWNLOAD_ERROR, "503 Service Unavailable");
    fetch_release_hosts(); /* it asks to be left alone for an hour */
    free(take_log(server));
    __atomic_store_n(&parts_seen, 0, __ATOMIC_RELAXED);
    expect_body(get(server, "/odd/once"), contents, SIZE);
    expect_error(get(server, "/odd/stall"), SL_TIMEOUT, "200ms");
}

FIBER_TEST_WITH(servers_that_ignore_ranges_are_accepted, 0)
{
    expect_body(get(server, "/ignored"), contents, SIZE);
    expect_body(get(server, "/unsaid"), "contents", 8);
    expect_body(get(server, "/says/bytes_0-7/8"), "contents", 8);
    expect_body(get(server, "/says/bytes__0_-_7_/_8"), "contents", 8);
    expect_hits(4);
    static const char *const bad[] = {"items_0-7/8",  "bytes_*/8",   "bytes_0-7/*", "bytes_7-0/8",
                                      "bytes_a-7/8",  "bytes_0-7",   "bytes",       "",
                                      "bytes_0-7/8x", "bytes_-7/8",  "bytes=0-7/8", "bytes_0-99999999999999999999/8",
                                      "bytes_1-7/8",  "bytes_0-8/8", "bytes_0--1/0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char path[64];
        snprintf(path, sizeof path, "/says/%s", bad[i]);
        expect_body(get(server, path), "plain", 5);
        expect_hits(2);
    }
    expect_body(get(server, "/416"), "plain", 5);
    expect_hits(2);
    expect_body(get(server, "/empty-range"), "", 0);
    expect_hits(1);
    expect_error(get(server, "/says/bytes_0-7/9223372036854775807"), SL_MALFORMED, "Maximum file size exceeded");
    expect_hits(3);
    /* a body that is not the one announced */
    expect_error(get(server, "/says/bytes_0-3/9"), SL_DOWNLOAD_ERROR, NULL);
    expect_error(get(server, "/says/bytes_0-30/90"), SL_DOWNLOAD_ERROR, NULL);
}

/* ---- codings ---- */
FIBER_TEST_WITH(content_encodings_are_decoded, 0)
{
    static const char *const names[] = {"gzip", "br", "deflate", "zstd"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        snprintf(path, sizeof path, "/coded/%s", names[i]);
        expect_body(get(server, path), contents, SIZE);
        snprintf(path, sizeof path, "/coded-parts/%s", names[i]);
        expect_body(get(server, path), contents, SIZE);
        free(take_log(server));
        snprintf(path, sizeof path, "/label/%s", names[i]); /* outside of the attempts */
        expect_error(get(server, path), SL_DOWNLOAD_ERROR, NULL);
        expect_hits(1);
    }
    expect_body(get(server, "/label/"), "contents", 8);
    expect_body(get(server, "/label/identity"), "contents", 8);
    free(take_log(server));
    expect_error(get(server, "/label/GZIP"), SL_DOWNLOAD_ERROR, "Unsupported content encoding");
    expect_error(get(server, "/label/xz"), SL_DOWNLOAD_ERROR, "Unsupported content encoding");
    expect_error(get(server, "/label/gzip,br"), SL_DOWNLOAD_ERROR, "Unsupported content encoding");
    expect_error(get(server, "/two"), SL_DOWNLOAD_ERROR, "Multiple content encodings not supported");
    expect_hits(12);
    expect_body(get(server, "/nothing"), "", 0);
}

FIBER_TEST_WITH(compressed_files_are_unpacked, 0)
{
    char url[128];
    expect_body(get(server, "/wrapped"), contents, SIZE);
    expect_body(get(server, "/wrapped-and-coded"), contents, SIZE);
    free(take_log(server));
    snprintf(url, sizeof url, "%s/wrapped-broken", server->base);
    for (int i = 0; i < 3; i++) /* not the host's failure, and nothing to try again */
        expect_error(get_request((struct fetch_request){.url = url, .deny_list = true}), SL_MALFORMED,
                     "unexpected end of file");
    expect_hits(3);
    snprintf(url, sizeof url, "%s/wrapped-and-coded", server->base);
    struct got *got = get_request((struct fetch_request){.url = url, .keep_wrapper = true});
    struct sl_buf file = coded("gzip", contents, SIZE);
    expect_body(got, file.data, file.size);
    sl_buf_free(&file);
}

/* ---- sizes ---- */
FIBER_TEST_WITH(file_size_limit_holds_for_every_encoding, 5)
{
    static const char *const names[] = {"gzip", "br", "deflate", "zstd"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        snprintf(path, sizeof path, "/hello/%s", names[i]);
        expect_error(get(server, path), SL_MALFORMED, "Maximum file size exceeded");
        snprintf(path, sizeof path, "/five/%s", names[i]);
        expect_body(get(server, path), "12345", 5);
    }
    free(take_log(server));
    expect_body(get(server, "/plain/12345"), "12345", 5);
    expect_hits(1);
    expect_error(get(server, "/plain/123456"), SL_MALFORMED, "Maximum file size exceeded");
    expect_hits(3);
    expect_error(get(server, "/chunked"), SL_MALFORMED, "Maximum file size exceeded");
    expect_error(get(server, "/says/bytes_0-2/6"), SL_MALFORMED, "Maximum file size exceeded");
    char url[128];
    snprintf(url, sizeof url, "%s/plain/12", server->base);
    expect_error(get_request((struct fetch_request){.url = url, .max_size = 1}), SL_MALFORMED,
                 "Maximum file size exceeded");
}

FIBER_TEST_WITH(decompression_bombs_are_refused, 0)
{
    const struct got *got = get(server, "/bomb");
    expect_error(got, SL_MALFORMED, "the file grows more than 1000 times when decompressed");
    assert_true(got->body.size < 4 << 20);
}

/* ---- harness ---- */
static void run(void (*fn)(void *arg), uint64_t max_size)
{
    struct fetch_options options = open_options();
    options.split_size = SPLIT;
    options.deny_threshold = 2;
    options.stall_timeout_ns = options.head_timeout_ns = 200 * MS_NS;
    if (max_size)
        options.max_download_size = max_size;
    if (fn != parts_that_are_not_as_asked_fail) /* the rest is not about time */
        options.stall_timeout_ns = options.head_timeout_ns = 30 * S_NS;
    server = server_start(route);
    with_fetch(&options, fn, NULL);
    server_stop(server);
}

TEST(mismatching_ranges_fail)
{
    run(parts_that_are_not_as_asked_fail, 0);
}

static int begin_file(void **state)
{
    fill();
    return 0;
}

TEST_FILE(.begin = begin_file);
