/* Downloads from a real web server: large files in parts, compressed answers, TLS, kept connections. */
#include "../fixture.h"
#include "support.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { LARGE = 40 * 1000 * 1000 + 7, SPLIT = 3 * 1000 * 1000 };
static uint16_t http_port, https_port, http2_port;
static pid_t nginx;
static uint8_t *large;

static const char *in_dir(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", fixture_dir, name);
    return path;
}

static pid_t spawn(const char *const arguments[])
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nowhere, STDERR_FILENO);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            _exit(127);
        execvp(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    return pid;
}

static bool make_certificate(void)
{
    char key[128], certificate[128];
    snprintf(key, sizeof key, "%s/key.pem", fixture_dir);
    snprintf(certificate, sizeof certificate, "%s/cert.pem", fixture_dir);
    const char *const arguments[] = {
        "openssl", "req", "-x509", "-newkey",       "rsa:2048", "-nodes",
        "-days",   "1",   "-subj", "/CN=localhost", "-addext",  "subjectAltName=IP:127.0.0.1",
        "-keyout", key,   "-out",  certificate,     NULL};
    int status;
    pid_t pid = spawn(arguments);
    return waitpid(pid, &status, 0) == pid && status == 0;
}

/* The listening sockets are made here and inherited (as nginx hands them to itself for an upgrade), so that the ports are
 * free ones and requests may come from the first moment on. */
static int start(void **state)
{
    char text[4096], inherited[64], prefix[128], config[128];
    if (fixture_begin(state) != 0 || !make_certificate())
        return -1;
    large = malloc(LARGE);
    for (uint32_t i = 0, x = 1; i < LARGE; i++, x = x * 1664525 + 1013904223)
        large[i] = (uint8_t)(x >> 24);
    mkdir(in_dir("www"), 0755);
    fixture_write("www/large.bin", large, LARGE);
    fixture_write("www/small.txt", "small contents", 14);
    memset(text, 'a', sizeof text);
    fixture_write("www/text.txt", text, sizeof text);
    chmod(fixture_dir, 0755);
    int listeners[] = {listen_somewhere(&http_port), listen_somewhere(&https_port), listen_somewhere(&http2_port)};
    for (size_t i = 0; i < 3; i++)
        fcntl(listeners[i], F_SETFD, 0);
    snprintf(text, sizeof text,
             "%sdaemon off; worker_processes 1; pid nginx.pid; error_log error.log crit;\n"
             "events { worker_connections 256; }\n"
             "http {\n"
             "  access_log off; root www; gzip on; gzip_min_length 100; gzip_proxied any; default_type text/plain;\n"
             "  client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path "
             "t5;\n"
             "  server { listen 127.0.0.1:%u; location = /private { return 403; } location /old { rewrite ^ /small.txt "
             "redirect; }\n"
             "    location = /large.bin { types { } default_type a/b; } }\n"
             "  ssl_certificate %s/cert.pem; ssl_certificate_key %s/key.pem;\n"
             "  server { listen 127.0.0.1:%u ssl; location = /large.bin { types { } default_type a/b; } }\n"
             "  server { listen 127.0.0.1:%u ssl http2; location = /large.bin { types { } default_type a/b; } }\n"
             "}\n",
             geteuid() == 0 ? "user root; " : "", http_port, fixture_dir, fixture_dir, https_port, http2_port);
    fixture_write("nginx.conf", text, strlen(text));
    snprintf(prefix, sizeof prefix, "%s/", fixture_dir);
    snprintf(config, sizeof config, "%s/nginx.conf", fixture_dir);
    snprintf(inherited, sizeof inherited, "%d;%d;%d;", listeners[0], listeners[1], listeners[2]);
    setenv("NGINX", inherited, 1);
    setenv("PATH", "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin:/bin", 1);
    const char *const arguments[] = {"nginx", "-e", "error.log", "-p", prefix, "-c", config, NULL};
    nginx = spawn(arguments);
    for (size_t i = 0; i < 3; i++)
        close(listeners[i]);
    return nginx > 0 ? 0 : -1;
}

static int stop(void **state)
{
    if (nginx > 0) {
        kill(nginx, SIGTERM);
        waitpid(nginx, NULL, 0);
    }
    free(large);
    return fixture_end(state);
}

static struct got *get_from(const char *scheme, uint16_t port, const char *path, bool accept_invalid_certs)
{
    char url[256];
    snprintf(url, sizeof url, "%s://127.0.0.1:%u%s", scheme, port, path);
    return get_request((struct fetch_request){.url = url, .accept_invalid_certs = accept_invalid_certs});
}

static void run(void (*fn)(void *arg));

FIBER_TEST(plain_downloads_work)
{
    expect_body(get_from("http", http_port, "/small.txt", false), "small contents", 14);
    expect_body(get_from("http", http_port, "/old/name", false), "small contents", 14);
    expect_error(get_from("http", http_port, "/missing", false), SL_NOT_FOUND, "");
    expect_error(get_from("http", http_port, "/private", false), SL_PERMISSION_DENIED, "403 Forbidden");
    const struct got *got = get_from("http", http_port, "/text.txt", false);
    assert_int_equal(got->code, SL_OK);
    assert_int_equal(got->body.size, 4096);
    assert_int_equal(got->body.data[4095], 'a');
}

FIBER_TEST(large_downloads_work_over_every_protocol)
{
    for (int i = 0; i < 3; i++)
        expect_body(get_from("http", http_port, "/large.bin", false), large, LARGE);
    expect_body(get_from("https", https_port, "/large.bin", true), large, LARGE);
    expect_body(get_from("https", http2_port, "/large.bin", true), large, LARGE);
}

struct one {
    enum sl_code code;
    bool same;
};

/* By HTTP/2: the parts of all are streams of a few connections. */
static void get_large(void *arg)
{
    struct one *one = arg;
    char url[128];
    struct sl_buf body = {0};
    int fd = empty_file();
    snprintf(url, sizeof url, "https://127.0.0.1:%u/large.bin", http2_port);
    one->code =
        fetch_get(&(struct fetch_request){.url = url, .source = "test", .accept_invalid_certs = true}, fd, NULL);
    read_file(fd, &body);
    one->same = body.size == LARGE && memcmp(body.data, large, LARGE) == 0;
    sl_buf_free(&body);
    close(fd);
}

FIBER_TEST(concurrent_large_downloads_survive_cancellations)
{
    struct one ones[6] = {0};
    struct fiber_group kept, dropped;
    fiber_group_init(&kept, NULL);
    fiber_group_init(&dropped, NULL);
    for (size_t i = 0; i < 6; i++)
        assert_true(fiber_start(i % 2 ? &dropped : &kept, get_large, &ones[i]));
    fiber_sleep(20); /* somewhere in the middle; it does not matter where */
    fiber_group_cancel(&dropped);
    fiber_group_wait(&dropped);
    fiber_group_wait(&kept);
    for (size_t i = 0; i < 6; i += 2) {
        assert_int_equal(ones[i].code, SL_OK);
        assert_true(ones[i].same);
        assert_true(ones[i + 1].code == SL_CANCELLED || ones[i + 1].same);
    }
}

FIBER_TEST(certificates_are_verified)
{
    expect_error(get_from("https", https_port, "/small.txt", false), SL_DOWNLOAD_ERROR, "certificate verify failed");
    expect_body(get_from("https", https_port, "/small.txt", true), "small contents", 14);
    /* a connection that nobody verified serves nobody who wants it verified */
    expect_error(get_from("https", https_port, "/small.txt", false), SL_DOWNLOAD_ERROR, "certificate verify failed");
    expect_body(get_from("https", http2_port, "/small.txt", true), "small contents", 14);
    expect_error(get_from("https", http2_port, "/small.txt", false), SL_DOWNLOAD_ERROR, "certificate verify failed");
    expect_error(get_from("https", http2_port, "/missing", true), SL_NOT_FOUND, "");
    expect_error(get_from("https", http_port, "/small.txt", false), SL_DOWNLOAD_ERROR, "SSL error");
    const struct got *got = get_from("http", https_port, "/small.txt", false);
    expect_error(got, SL_NOT_FOUND, ""); /* nginx says 400 */
}

static void run(void (*fn)(void *arg))
{
    struct fetch_options options = open_options();
    options.split_size = SPLIT;
    with_fetch(&options, fn, NULL);
}

TEST_FILE(.begin = start, .end = stop);
