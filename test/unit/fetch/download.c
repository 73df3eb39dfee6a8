/* One download: statuses, attempts, time limits, redirects, what is sent. */
#include "support.h"

#include <sys/resource.h>
#include <time.h>

static struct server *server, *other; /* other: another port, which counts as another host */

/* Bodies of errors are longer than what is read of them, or never come. */
static bool route(struct call *c)
{
    char value[256];
    int status;
    if (sscanf(c->path, "/status/%d", &status) == 1)
        return status_answer(c, status, "");
    if (sscanf(c->path, "/moved/%d", &status) == 1) {
        say(c, "HTTP/1.1 %d X\r\nLocation: /file\r\nContent-Length: 0\r\n\r\n", status);
        return true;
    }
    if (starts(c->path, "/file"))
        return body_answer(c, "", "contents", 8);
    if (starts(c->path, "/to?")) { /* the location follows */
        say(c, "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", strchr(c->path, '?') + 1);
        return true;
    }
    if (starts(c->path, "/other/"))
        return say(c, "HTTP/1.1 302 Found\r\nLocation: %s%s\r\nContent-Length: 0\r\n\r\n", other->base, c->path + 6),
               true;
    if (starts(c->path, "/back/"))
        return say(c, "HTTP/1.1 307 X\r\nLocation: %s%s\r\nContent-Length: 0\r\n\r\n", server->base, c->path + 5), true;
    if (starts(c->path, "/chain/")) {
        int left = leading_number(c->path + 7);
        say(c, "HTTP/1.1 302 Found\r\nLocation: %s%d\r\nContent-Length: 0\r\n\r\n", left > 1 ? "/chain/" : "/file",
            left - 1);
        return true;
    }
    if (starts(c->path, "/retry/")) {
        say(c, "HTTP/1.1 %.3s X\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n", c->path + 7, c->path + 11);
        return true;
    }
    if (starts(c->path, "/later"))
        return hits_of(c->server) < 3 ? status_answer(c, 503, "Retry-After: 1\r\n") : body_answer(c, "", "late", 4);
    if (starts(c->path, "/date")) {
        time_t at = time(NULL) + 3600;
        struct tm tm;
        strftime(value, sizeof value, "Retry-After: %a, %d %b %Y %H:%M:%S GMT\r\n", gmtime_r(&at, &tm));
        return status_answer(c, 429, value);
    }
    if (starts(c->path, "/silent"))
        return hang(c), false;
    if (starts(c->path, "/reset"))
        return false;
    if (starts(c->path, "/stall"))
        return say(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), hang(c), false;
    if (starts(c->path, "/short"))
        return say(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), false;
    if (starts(c->path, "/notfound-stall"))
        return say(c, "HTTP/1.1 404 No\r\nContent-Length: 100\r\n\r\nabc"), hang(c), false;
    if (starts(c->path, "/notfound-endless")) {
        say(c, "HTTP/1.1 404 No\r\n\r\n");
        for (char piece[4096] = {0}; send(c->fd, piece, sizeof piece, MSG_NOSIGNAL) > 0;)
            ;
        return false;
    }
    if (starts(c->path, "/interim"))
        return say(c, "HTTP/1.1 103 Early Hints\r\nContent-Encoding: nonsense\r\nLocation: /reset\r\n\r\n"),
               body_answer(c, "", "contents", 8);
    if (starts(c->path, "/upgrade"))
        return say(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nbytes"), hang(c),
               false;
    if (starts(c->path, "/trailer"))
        return say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Location\r\n\r\n"
                      "8\r\ncontents\r\n0\r\nLocation: /reset\r\nContent-Encoding: gzip\r\n\r\n"),
               true;
    if (starts(c->path, "/garbage"))
        return say(c, "this is not HTTP\r\n\r\n"), false;
    if (starts(c->path, "/length/"))
        return say(c, "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\ncontents", c->path + 8), hang(c), false;
    if (starts(c->path, "/total/"))
        return say(c, "HTTP/1.1 206 P\r\nContent-Range: bytes 0-7/%s\r\nContent-Length: 8\r\n\r\ncontents",
                   c->path + 7),
               hang(c), false;
    if (starts(c->path, "/huge-head")) {
        say(c, "HTTP/1.1 200 OK\r\n");
        for (int i = 0; i < 20000; i++)
            say(c, "X-Field-%d: %0100d\r\n", i, i);
        return body_answer(c, "", "", 0), false;
    }
    return status_answer(c, 404, "");
}

static void expect_hits(unsigned hits)
{
    assert_int_equal(hits_of(server), hits);
    free(take_log(server));
}

static void run(void (*fn)(void *arg), void (*adjust)(struct fetch_options *o));

/* ---- what tests change ---- */
static void whole_200ms(struct fetch_options *o)
{
    o->max_download_timeout_ns = 200 * MS_NS;
}
static void head_150ms(struct fetch_options *o)
{
    o->head_timeout_ns = 150 * MS_NS;
}
static void stall_100ms(struct fetch_options *o)
{
    o->stall_timeout_ns = 100 * MS_NS;
}
static void whole_0(struct fetch_options *o)
{
    o->max_download_timeout_ns = 0;
}
static void whole_5s(struct fetch_options *o)
{
    o->max_download_timeout_ns = 5 * S_NS;
}

/* ---- statuses ---- */
FIBER_TEST_WITH(http_statuses_map_to_errors, NULL)
{
    static const struct {
        int status;
        enum sl_code code;
        const char *message;
        unsigned hits;
    } rows[] = {
        {500, SL_DOWNLOAD_ERROR, "500 Internal Server Error", 3},
        {503, SL_DOWNLOAD_ERROR, "503 Service Unavailable", 3},
        {429, SL_DOWNLOAD_ERROR, "429 Too Many Requests", 3},
        {304, SL_DOWNLOAD_ERROR, "304 Not Modified", 3},
        {301, SL_DOWNLOAD_ERROR, "301 Moved Permanently", 3}, /* without a location */
        {599, SL_DOWNLOAD_ERROR, "599 <unknown status code>", 3},
        {302, SL_PERMISSION_DENIED, "Potential login page detected", 1},
        {401, SL_PERMISSION_DENIED, "401 Unauthorized", 1},
        {403, SL_PERMISSION_DENIED, "403 Forbidden", 1},
        {400, SL_NOT_FOUND, "", 1},
        {404, SL_NOT_FOUND, "", 1},
        {408, SL_NOT_FOUND, "", 1},
        {410, SL_NOT_FOUND, "", 1},
        {425, SL_NOT_FOUND, "", 1},
        {416, SL_NOT_FOUND, "", 2}, /* once more without a range */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[32];
        snprintf(path, sizeof path, "/status/%d", rows[i].status);
        expect_error(get(server, path), rows[i].code, rows[i].message);
        expect_hits(rows[i].hits);
    }
    expect_body(get(server, "/status/204"), "", 0);
}

FIBER_TEST_WITH(malformed_http_answers_are_download_errors, NULL)
{
    expect_body(get(server, "/interim"), "contents", 8);
    expect_body(get(server, "/trailer"), "contents", 8);
    expect_hits(2);
    expect_error(get(server, "/reset"), SL_DOWNLOAD_ERROR, "Empty reply from server");
    expect_hits(4); /* the end of a kept connection says nothing yet: curl asks again on a new one */
    expect_error(get(server, "/short"), SL_DOWNLOAD_ERROR, "transfer closed with 97 bytes remaining to read");
    expect_hits(3);
    expect_error(get(server, "/upgrade"), SL_DOWNLOAD_ERROR, "101 Switching Protocols");
    expect_error(get(server, "/garbage"), SL_DOWNLOAD_ERROR, "Received HTTP/0.9 when not allowed");
    expect_error(get(server, "/huge-head"), SL_DOWNLOAD_ERROR, NULL);
    expect_error(get(server, "/notfound-endless"), SL_NOT_FOUND, "");
    free(take_log(server));
    expect_error(get(server, "/notfound-stall"), SL_NOT_FOUND, "");
    expect_hits(1);
}

FIBER_TEST_WITH(absurd_content_lengths_are_refused, NULL)
{
    static const char *const lengths[] = {"9223372036854775808", "18446744073709551614", "18446744073709551615",
                                          "18446744073709551616", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char path[64];
        snprintf(path, sizeof path, "/length/%s", lengths[i]);
        expect_error(get(server, path), SL_MALFORMED, "Maximum file size exceeded");
    }
    expect_error(get(server, "/total/9223372036854775808"), SL_MALFORMED, "Maximum file size exceeded");
    expect_error(get(server, "/total/18446744073709551615"), SL_MALFORMED, "Maximum file size exceeded");
}

/* It says nothing of the host, whichever part of libcurl runs into it. */
FIBER_TEST_WITH(missing_descriptors_are_busy_not_download_error, NULL)
{
    struct rlimit files, none;
    char named[128], secure[128];
    snprintf(named, sizeof named, "http://localhost:%u/file", server->port);
    snprintf(secure, sizeof secure, "https://127.0.0.1:%u/file", server->port);
    const char *urls[] = {NULL, named, secure};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct sl_error error = {.message = ""};
        char own[128];
        snprintf(own, sizeof own, "%s/file", other->base);
        int fd = empty_file(), next = dup(fd);
        close(next);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
        none = (struct rlimit){(rlim_t)next, files.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        enum sl_code code = fetch_get(
            &(struct fetch_request){.url = urls[i] ? urls[i] : own, .source = "test", .deny_list = true}, fd, &error);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
        if (code != SL_BUSY)
            fail_msg("%zu: %s: %s", i, sl_code_name(code), error.message);
        close(fd);
    }
    expect_body(get(server, "/file"), "contents", 8);
}

FIBER_TEST_WITH(refused_connection_is_a_download_error, NULL)
{
    uint16_t port;
    close(listen_somewhere(&port));
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", port);
    const struct got *got = get(NULL, url);
    expect_error(got, SL_DOWNLOAD_ERROR, NULL);
    assert_non_null(strstr(got->error.message, "connect"));
}

/* ---- what is no URL of ours ---- */
FIBER_TEST_WITH(invalid_urls_are_refused, NULL)
{
    expect_error(get(NULL, "file:///etc/passwd"), SL_DOWNLOAD_ERROR, "URL scheme is not allowed");
    expect_error(get(NULL, "ftp://127.0.0.1/x"), SL_DOWNLOAD_ERROR, "URL scheme is not allowed");
    expect_error(get(NULL, "gopher://127.0.0.1/x"), SL_DOWNLOAD_ERROR, "URL scheme is not allowed");
    expect_error(get(NULL, "127.0.0.1/x"), SL_DOWNLOAD_ERROR, NULL);
    expect_error(get(NULL, "http://"), SL_DOWNLOAD_ERROR, NULL);
    expect_error(get(NULL, ""), SL_DOWNLOAD_ERROR, NULL);
    expect_error(get(NULL, "http://127.0.0.1:0/"), SL_DOWNLOAD_ERROR, NULL);
    expect_error(get(NULL, "http://127.0.0.1:65536/"), SL_DOWNLOAD_ERROR, NULL);
    expect_error(get(NULL, "http://127.0.0.1/a\r\nX: y"), SL_DOWNLOAD_ERROR, NULL);
    assert_int_equal(hits_of(server), 0);
}

/* ---- time ---- */
FIBER_TEST_WITH(silent_server_ends_at_the_total_timeout, whole_200ms)
{
    const struct got *got = get(server, "/silent");
    expect_error(got, SL_TIMEOUT, "200ms");
    assert_int_equal(got->error.duration_ns, 200 * MS_NS);
    expect_hits(1);
}

FIBER_TEST_WITH(late_response_head_ends_the_attempt, head_150ms)
{
    expect_error(get(server, "/silent"), SL_TIMEOUT, "150ms");
    expect_hits(3);
}

FIBER_TEST_WITH(stalled_body_ends_the_attempt, stall_100ms)
{
    expect_error(get(server, "/stall"), SL_TIMEOUT, "100ms");
    expect_hits(3);
}

FIBER_TEST_WITH(zero_timeout_fails_at_once, whole_0)
{
    expect_error(get(server, "/file"), SL_TIMEOUT, "0ns");
}

/* ---- asked to wait ---- */
FIBER_TEST_WITH(retry_after_is_respected, NULL)
{
    fetch_release_hosts();
    expect_error(get(server, "/retry/429/0"), SL_DOWNLOAD_ERROR, "429 Too Many Requests");
    expect_hits(3);
    fetch_release_hosts();
    expect_error(get(server, "/retry/429/11"), SL_DOWNLOAD_ERROR, "429 Too Many Requests");
    expect_hits(1);
    fetch_release_hosts();
    expect_error(get(server, "/retry/503/3600"), SL_DOWNLOAD_ERROR, "503 Service Unavailable");
    expect_hits(1);
    fetch_release_hosts();
    expect_error(get(server, "/date"), SL_DOWNLOAD_ERROR, "429 Too Many Requests");
    expect_hits(1);
    fetch_release_hosts();
    expect_error(get(server, "/retry/500/3600"), SL_DOWNLOAD_ERROR, "500 Internal Server Error");
    expect_hits(3); /* only 429 and 503 are asked when */
    fetch_release_hosts();
    expect_error(get(server, "/retry/503/99999999999999999999"), SL_DOWNLOAD_ERROR, "503 Service Unavailable");
    expect_hits(1);
    fetch_release_hosts();
    expect_error(get(server, "/retry/503/nonsense"), SL_DOWNLOAD_ERROR, "503 Service Unavailable");
    expect_hits(3);
    fetch_release_hosts();
    uint64_t start = clock_mono_ns();
    expect_body(get(server, "/later"), "late", 4);
    assert_true(clock_mono_ns() - start >= 2 * S_NS);
    expect_hits(3);
}

FIBER_TEST_WITH(retry_after_beyond_the_timeout_is_not_waited_for, whole_5s)
{
    uint64_t start = clock_mono_ns();
    fetch_release_hosts();
    expect_error(get(server, "/retry/503/9"), SL_DOWNLOAD_ERROR, "503 Service Unavailable");
    assert_true(clock_mono_ns() - start < 4 * S_NS);
    expect_hits(1);
}

/* ---- redirects ---- */
FIBER_TEST_WITH(redirects_are_followed, NULL)
{
    static const int followed[] = {301, 302, 303, 307, 308};
    for (size_t i = 0; i < sizeof followed / sizeof *followed; i++) {
        char path[32];
        snprintf(path, sizeof path, "/moved/%d", followed[i]);
        expect_body(get(server, path), "contents", 8);
    }
    expect_hits(10);
    expect_body(get(server, "/chain/10"), "contents", 8);
    free(take_log(server));
    expect_error(get(server, "/chain/11"), SL_DOWNLOAD_ERROR, "too many redirects");
    expect_hits(33);
    expect_error(get(server, "/to?/to?loop"), SL_NOT_FOUND, "");
    free(take_log(server));
    expect_error(get(server, "/to?file:///etc/passwd"), SL_DOWNLOAD_ERROR, "URL scheme is not allowed");
    expect_error(get(server, "/to?gopher://127.0.0.1/"), SL_DOWNLOAD_ERROR, "URL scheme is not allowed");
    expect_error(get(server, "/to?http://metadata.google.internal/x"), SL_DOWNLOAD_ERROR, "destination is restricted");
    expect_error(get(server, "/to?http://Metadata.Google.Internal./x"), SL_DOWNLOAD_ERROR, "destination is restricted");
    expect_error(get(server, "/to?http://169.254.169.254/x"), SL_DOWNLOAD_ERROR, "destination is restricted");
    expect_error(get(server, "/to?http://2852039166/x"), SL_DOWNLOAD_ERROR, "destination is restricted");
    expect_error(get(server, "/to?http://[::ffff:169.254.169.254]/x"), SL_DOWNLOAD_ERROR, "destination is restricted");
    expect_error(get(server, "/to?http://[fd00:ec2::254]/x"), SL_DOWNLOAD_ERROR, "destination is restricted");
    expect_hits(24);
    expect_error(get(server, "/to?http:///"), SL_DOWNLOAD_ERROR, NULL);
}

static bool sent(const char *log, const char *line)
{
    return strstr(log, line) != NULL;
}

FIBER_TEST_WITH(request_headers_are_sent_and_filtered, NULL)
{
    char url[128];
    const struct fetch_header headers[] = {
        {SL_STR("X-Key"), {SL_STR("hidden")}},        {SL_STR("bad name"), {SL_STR("x")}},
        {SL_STR("Content-Length"), {SL_STR("1000")}}, {SL_STR("transfer-encoding"), {SL_STR("chunked")}},
        {SL_STR("Range"), {SL_STR("bytes=1-2")}},     {SL_STR("X-Empty"), {SL_STR("")}},
        {SL_STR("user-agent"), {SL_STR("mine/1")}},   {SL_STR("Authorization"), {SL_STR("Bearer t0ken")}},
    };
    snprintf(url, sizeof url, "%s/file?sig=1#fragment", server->base);
    struct fetch_request request = {.url = url};
    expect_body(get_request(request), "contents", 8);
    char *log = take_log(server);
    assert_true(sent(log, "GET /file?sig=1 HTTP/1.1\r\n"));
    assert_true(sent(log, "\r\nUser-Agent: symloom/"));
    assert_true(sent(log, "\r\nAccept: */*\r\n"));
    assert_true(sent(log, "\r\nAccept-Encoding: br, deflate, gzip, zstd\r\n"));
    assert_true(sent(log, "\r\nRange: bytes=0-134217727\r\n"));
    assert_false(sent(log, "Referer"));
    assert_false(sent(log, "Authorization"));
    free(log);

    request.headers = headers;
    request.header_count = sizeof headers / sizeof *headers;
    expect_body(get_request(request), "contents", 8);
    log = take_log(server);
    assert_true(sent(log, "\r\nX-Key: hidden\r\n"));
    assert_true(sent(log, "\r\nX-Empty:\r\n"));
    assert_true(sent(log, "\r\nuser-agent: mine/1\r\n"));
    assert_true(sent(log, "\r\nAuthorization: Bearer t0ken\r\n"));
    assert_true(sent(log, "\r\nRange: bytes=0-134217727\r\n"));
    assert_false(sent(log, "symloom/"));
    assert_false(sent(log, "bad name"));
    assert_null(strcasestr(log, "content-length"));
    assert_null(strcasestr(log, "chunked"));
    free(log);

    const struct fetch_header split = {SL_STR("X"), {SL_STR("a\r\nY: b")}};
    request.headers = &split;
    request.header_count = 1;
    expect_error(get_request(request), SL_DOWNLOAD_ERROR, "failed to parse header value");
    assert_int_equal(hits_of(server), 0);
}

/* Credentials stay with the host they are for, also when another one sends us back to it. */
FIBER_TEST_WITH(credentials_do_not_follow_redirects_to_other_hosts, NULL)
{
    char url[128];
    const struct fetch_header headers[] = {{SL_STR("X-Key"), {SL_STR("hidden")}}, {SL_STR("Cookie"), {SL_STR("c=1")}}};
    struct fetch_request request = {.url = url, .headers = headers, .header_count = 2};
    snprintf(url, sizeof url, "http://user:pass%%21@127.0.0.1:%u/to?/file", server->port);
    expect_body(get_request(request), "contents", 8);
    char *log = take_log(server);
    char *second = strstr(log, "GET /file");
    assert_true(sent(log, "\r\nAuthorization: Basic dXNlcjpwYXNzIQ==\r\n"));
    assert_true(sent(second, "\r\nAuthorization: Basic dXNlcjpwYXNzIQ==\r\n"));
    assert_true(sent(second, "\r\nX-Key: hidden\r\n"));
    char referer[160];
    snprintf(referer, sizeof referer, "\r\nReferer: %s/to?/file\r\n", server->base);
    assert_true(sent(second, referer));
    free(log);

    snprintf(url, sizeof url, "http://user:pass@127.0.0.1:%u/other/back/file?sig=secret", server->port);
    expect_body(get_request(request), "contents", 8);
    log = take_log(server);
    char *elsewhere = take_log(other);
    second = strstr(log, "GET /file");
    assert_true(sent(log, "\r\nX-Key: hidden\r\n"));
    assert_non_null(second);
    for (int i = 0; i < 2; i++) {
        const char *head = i ? second : elsewhere;
        assert_false(sent(head, "Authorization"));
        assert_false(sent(head, "X-Key"));
        assert_false(sent(head, "Cookie"));
        assert_true(sent(head, "\r\nUser-Agent: symloom/"));
    }
    snprintf(referer, sizeof referer, "\r\nReferer: %s/other/back/file\r\n", server->base);
    assert_true(sent(elsewhere, referer));
    free(log);
    free(elsewhere);
}

/* ---- harness ---- */
static void run(void (*fn)(void *arg), void (*adjust)(struct fetch_options *o))
{
    struct fetch_options options = open_options();
    if (adjust)
        adjust(&options);
    server = server_start(route);
    other = server_start(route);
    with_fetch(&options, fn, NULL);
    server_stop(server);
    server_stop(other);
}
