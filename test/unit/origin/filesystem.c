/* Sources that are directories, and sources behind HTTP: getting one file. */
#include "../fixture.h"
#include "../fetch/support.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <zlib.h>

#include "core/loop.h"
#include "core/pool.h"
#include "origin/health.h"
#include "origin/impl.h"

static const char *in_dir(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", fixture_dir, name);
    return path;
}

static int setup(void **state)
{
    if (fixture_begin(state) != 0)
        return -1;
    mkdir(in_dir("root"), 0755);
    mkdir(in_dir("root/sub"), 0755);
    fixture_write("outside", "outside", 7);
    fixture_write("root/file", "contents", 8);
    fixture_write("root/sub/file", "deeper", 6);
    fixture_write("root/empty", "", 0);
    fixture_write("root/secret", "secret", 6);
    chmod(in_dir("root/secret"), 0);
    uint8_t packed[256];
    z_stream z = {.next_in = (Bytef *)"contents", .avail_in = 8, .next_out = packed, .avail_out = sizeof packed};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    fixture_write("root/packed.gz", packed, z.total_out);
    fixture_write("root/broken", packed, z.total_out - 4);
    deflateEnd(&z);
    static const char *const links[][2] = {
        {"../outside", "root/out"}, {"sub/file", "root/in"}, {"/etc/hostname", "root/far"},
        {"loop", "root/loop"},      {"..", "root/up"},       {"/proc/self/fd/0", "root/magic"}};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        assert_int_equal(symlink(links[i][0], in_dir(links[i][1])), 0);
    assert_int_equal(mkfifo(in_dir("root/pipe"), 0600), 0);
    return 0;
}

static int teardown(void **state)
{
    return fixture_end(state);
}

/* In a fiber. */
static struct got *fetch(const struct source *source, const char *location, const char *checksum)
{
    static struct got got;
    struct remote_file file = {.source = source, .location = sl_str(location), .checksum = sl_str(checksum)};
    int fd = empty_file();
    got.error = (struct sl_error){.message = ""};
    got.code = origin_fetch(&file, fd, &got.error);
    read_file(fd, &got.body);
    close(fd);
    return &got;
}

static void run(void (*fn)(void *arg), uint64_t max_size);

FIBER_TEST_WITH(only_files_below_the_root_are_read, 0)
{
    struct sl_str root = sl_str(strdup(in_dir("root")));
    const struct source source = {.type = SOURCE_FILESYSTEM, .path = root};
    expect_body(fetch(&source, "file", NULL), "contents", 8);
    expect_body(fetch(&source, "sub/file", NULL), "deeper", 6);
    expect_body(fetch(&source, "sub/../file", NULL), "contents", 8);
    expect_body(fetch(&source, "in", NULL), "deeper", 6);
    expect_error(fetch(&source, "empty", NULL), SL_DOWNLOAD_ERROR, "the file is empty");
    expect_body(fetch(&source, "packed.gz", NULL), "contents", 8);
    expect_error(fetch(&source, "broken", NULL), SL_MALFORMED, "unexpected end of file");
    static const char *const missing[] = {"missing",    "file/x",
                                          "sub",        "",
                                          "../outside", "sub/../../outside",
                                          "out",        "/etc/hostname",
                                          "up/outside", "far",
                                          "loop",       "pipe",
                                          "magic",      "/",
                                          "..",         "."};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        expect_error(fetch(&source, missing[i], NULL), SL_NOT_FOUND, "");
    char name[400];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    expect_error(fetch(&source, name, NULL), SL_NOT_FOUND, "");
    if (geteuid() != 0)
        expect_error(fetch(&source, "secret", NULL), SL_PERMISSION_DENIED, "Permission denied");
    const struct source nowhere = {.type = SOURCE_FILESYSTEM, .path = SL_STR("/nonexistent/root")};
    expect_error(fetch(&nowhere, "file", NULL), SL_NOT_FOUND, "");
    origin_health_watch(); /* a service: nothing is known of its files */
    expect_error(fetch(&nowhere, "file", NULL), SL_DOWNLOAD_ERROR,
                 "cannot read the directory of the symbol source: No such file or directory");
    free((char *)root.data);
}

FIBER_TEST_WITH(files_over_the_size_limit_are_refused, 6)
{
    struct sl_str root = sl_str(strdup(in_dir("root")));
    const struct source source = {.type = SOURCE_FILESYSTEM, .path = root};
    expect_body(fetch(&source, "sub/file", NULL), "deeper", 6);
    expect_error(fetch(&source, "file", NULL), SL_MALFORMED, "Maximum file size exceeded");
    free((char *)root.data);
}

static bool route(struct call *c)
{
    if (starts(c->path, "/base/crash%20file?sig=1"))
        return body_answer(c, "", "contents", 8);
    return status_answer(c, starts(c->path, "/base/bad") ? 500 : 404, "");
}

FIBER_TEST_WITH(http_sources_send_their_headers, 0)
{
    struct server *server = server_start(route);
    char url[128];
    struct fetch_header headers[] = {{SL_STR("X-A"), {SL_STR("1")}}, {SL_STR("X-B"), {SL_STR("2")}}};
    struct source source = {.type = SOURCE_HTTP, .id = SL_STR("a"), .headers = headers, .header_count = 2};
    snprintf(url, sizeof url, "%s/base/?sig=1", server->base);
    source.url = sl_str(url);
    expect_body(fetch(&source, "crash file", "SHA256:87a8"), "contents", 8);
    char *log = take_log(server);
    assert_non_null(strstr(log, "\r\nX-A: 1\r\nX-B: 2\r\nSymbolChecksum: SHA256:87a8\r\n"));
    free(log);
    expect_error(fetch(&source, "missing", NULL), SL_NOT_FOUND, "");
    log = take_log(server);
    assert_null(strstr(log, "SymbolChecksum"));
    free(log);
    expect_error(fetch(&source, "crash file", "x\r\nInjected: y"), SL_DOWNLOAD_ERROR, "failed to parse header value");
    assert_int_equal(hits_of(server), 0);
    const struct source opaque = {.type = SOURCE_HTTP, .url = SL_STR("mailto:x")};
    expect_error(fetch(&opaque, "file", NULL), SL_NOT_FOUND, "");

    source.id = SL_STR("sentry:a"); /* built in: its failures are not counted */
    expect_error(fetch(&source, "bad", NULL), SL_DOWNLOAD_ERROR, "500 Internal Server Error");
    expect_error(fetch(&source, "bad", NULL), SL_DOWNLOAD_ERROR, "500 Internal Server Error");
    source.id = SL_STR("a");
    expect_error(fetch(&source, "bad", NULL), SL_DOWNLOAD_ERROR, "500 Internal Server Error");
    assert_int_equal(hits_of(server), 9);
    assert_non_null(strstr(fetch(&source, "bad", NULL)->error.message, "Host 127.0.0.1 is temporarily blocked"));
    assert_int_equal(hits_of(server), 9);
    server_stop(server);
}

/* ---- large files and small ones ---- */

static struct {
    atomic_size_t inside;
    atomic_bool open;
} gate;

static void pass_gate(void *arg)
{
    atomic_fetch_add(&gate.inside, 1);
    while (!atomic_load(&gate.open))
        sched_yield();
}

static void hold_thread(void *arg)
{
    assert_int_equal(pool_run(POOL_CONVERT, pass_gate, NULL, NULL), SL_OK);
}

static void fetch_large(void *arg)
{
    struct remote_file file = {.source = arg, .location = SL_STR("large")};
    int fd = empty_file();
    struct sl_error error;
    assert_int_equal(origin_fetch(&file, fd, &error), SL_OK);
    assert_int_equal(lseek(fd, 0, SEEK_END), 3 << 20);
    close(fd);
}

FIBER_TEST_WITH(small_files_do_not_wait_for_large_ones, 0)
{
    const struct source source = {.type = SOURCE_FILESYSTEM, .path = sl_str(strdup(in_dir("root")))};
    size_t heavy = loop_pool_threads() - 1;
    struct fiber_group group;
    fixture_write("root/large", "", 0);
    assert_int_equal(truncate(in_dir("root/large"), 3 << 20), 0);
    fiber_group_init(&group, NULL);
    for (size_t i = 0; i < heavy; i++)
        assert_true(fiber_start(&group, hold_thread, NULL));
    while (atomic_load(&gate.inside) < heavy)
        fiber_sleep(0);
    for (size_t i = 0; i < 8; i++)
        assert_true(fiber_start(&group, fetch_large, (void *)(uintptr_t)&source));
    while (pool_queued() < 8)
        fiber_sleep(0);
    expect_body(fetch(&source, "file", NULL), "contents", 8);
    assert_int_equal(pool_queued(), 8);
    atomic_store(&gate.open, true);
    fiber_group_wait(&group);
    free((char *)(uintptr_t)source.path.data);
}

static void run(void (*fn)(void *arg), uint64_t max_size)
{
    struct fetch_options options = open_options();
    options.deny_threshold = 1;
    if (max_size)
        options.max_download_size = max_size;
    with_fetch(&options, fn, NULL);
}

TEST_FILE(.begin = setup, .end = teardown);
