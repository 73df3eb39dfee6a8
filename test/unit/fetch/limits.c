/* Where downloads are held back: the deny list, slots, reserved addresses behind names, cancellation, and what logs and
 * errors may say. Names are resolved by this program itself. */
#include "support.h"

#include <netdb.h>
#include <stdatomic.h>

#include "core/duration.h"

static struct server *server;
static uint16_t inner_port; /* of what nobody may reach */

/* ---- names: curl's resolver threads come here ---- */
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t names_changed = PTHREAD_COND_INITIALIZER;
static unsigned resolving; /* threads that look up slow.test */
static bool released;
static atomic_uint turned; /* how often rebinding.test was looked up */

static void wait_for_release(void)
{
    pthread_mutex_lock(&names_lock);
    resolving++;
    pthread_cond_broadcast(&names_changed);
    while (!released)
        pthread_cond_wait(&names_changed, &names_lock);
    resolving--;
    pthread_cond_broadcast(&names_changed);
    pthread_mutex_unlock(&names_lock);
}

static unsigned resolving_now(void)
{
    pthread_mutex_lock(&names_lock);
    unsigned now = resolving;
    pthread_mutex_unlock(&names_lock);
    return now;
}

static struct addrinfo *found(const char *address, const char *port, struct addrinfo *next)
{
    struct addrinfo *a = calloc(1, sizeof *a + sizeof(struct sockaddr_in));
    struct sockaddr_in *in = (struct sockaddr_in *)(void *)(a + 1);
    in->sin_family = AF_INET;
    int number = port ? leading_number(port) : 0;
    in->sin_port = htons((uint16_t)(number > 0 && number <= UINT16_MAX ? number : 0));
    inet_pton(AF_INET, address, &in->sin_addr);
    a->ai_family = AF_INET;
    a->ai_socktype = SOCK_STREAM;
    a->ai_addrlen = sizeof *in;
    a->ai_addr = (struct sockaddr *)in;
    a->ai_next = next;
    return a;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
    if (strcmp(name, "slow.test") == 0)
        wait_for_release();
    if (strcmp(name, "mixed.test") == 0)
        *result = found("10.255.255.1", service, found("127.0.0.1", service, NULL));
    else if (strcmp(name, "half-dead.test") == 0)
        *result = found("127.0.0.9", service, found("127.0.0.1", service, NULL));
    else if (strcmp(name, "metadata.test") == 0)
        *result = found("169.254.169.254", service, NULL);
    else if (strcmp(name, "rebinding.test") == 0)
        *result = found(atomic_fetch_add(&turned, 1) == 0 ? "127.0.0.1" : "127.0.0.2", service, NULL);
    else if (strcmp(name, "missing.test") == 0)
        return EAI_NONAME;
    else
        *result = found("127.0.0.1", service, NULL);
    return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
    while (list) {
        struct addrinfo *next = list->ai_next;
        free(list);
        list = next;
    }
}

/* ---- the server ---- */
static pthread_mutex_t hold_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hold_changed = PTHREAD_COND_INITIALIZER;
static unsigned held, held_ever, most_held, hold_until;

/* Answers when `hold_until` requests have been here at once; later ones at once. */
static bool hold(struct call *c)
{
    pthread_mutex_lock(&hold_lock);
    held++;
    held_ever++;
    if (held > most_held)
        most_held = held;
    pthread_cond_broadcast(&hold_changed);
    while (held_ever < hold_until)
        pthread_cond_wait(&hold_changed, &hold_lock);
    held--;
    pthread_mutex_unlock(&hold_lock);
    return body_answer(c, "", "held", 4);
}

static bool route(struct call *c)
{
    int status;
    if (sscanf(c->path, "/status/%d", &status) == 1)
        return status_answer(c, status, "");
    if (starts(c->path, "/busy"))
        return status_answer(c, 503, "Retry-After: 10\r\n");
    if (starts(c->path, "/hold"))
        return hold(c);
    if (starts(c->path, "/inwards")) {
        char header[64];
        snprintf(header, sizeof header, "Location: http://rebinding.test:%u/\r\n", inner_port);
        return status_answer(c, 302, header);
    }
    if (starts(c->path, "/silent"))
        return hang(c), false;
    if (starts(c->path, "/stall"))
        return say(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), hang(c), false;
    if (starts(c->path, "/parts")) {
        char value[64];
        size_t start = 0;
        header_of(c->head, "Range", value, sizeof value);
        sscanf(value, "bytes=%zu", &start);
        if (start > 0)
            return hang(c), false;
        return say(c, "HTTP/1.1 206 P\r\nContent-Range: bytes 0-3/4000\r\nContent-Length: 4\r\n\r\nabcd"), true;
    }
    return body_answer(c, "", "contents", 8);
}

static struct got *get_as(const char *host, const char *path, struct fetch_request request)
{
    char url[512];
    snprintf(url, sizeof url, "http://%s:%u%s", host, server->port, path);
    request.url = url;
    return get_request(request);
}

static struct got *get_listed(const char *path) /* subject to the deny list */
{
    return get_as("localhost", path, (struct fetch_request){.deny_list = true});
}

static void run(void (*fn)(void *arg), void (*adjust)(struct fetch_options *o));

/* ---- what tests change ---- */
static void short_windows(struct fetch_options *o)
{
    o->deny_window_ns = o->deny_block_ns = 500 * MS_NS;
    o->deny_bucket_ns = 100 * MS_NS;
    o->deny_threshold = 2;
}
static void short_times(struct fetch_options *o)
{
    short_windows(o);
    o->max_download_timeout_ns = 200 * MS_NS;
}
static void never_block(struct fetch_options *o)
{
    static const struct sl_str host = {"localhost", 9};
    short_windows(o);
    o->deny_never_block = &host;
    o->deny_never_block_count = 1;
}
static void try_soon(struct fetch_options *o)
{
    short_windows(o);
    o->deny_window_ns = 60 * S_NS;
    o->deny_bucket_ns = S_NS;
    o->deny_block_ns = 3600 * S_NS;
    o->deny_probe_ns = 300 * MS_NS;
}

static void deny_nothing(struct fetch_options *o)
{
    short_windows(o);
    o->deny_list_enabled = false;
}
static void twenty(struct fetch_options *o)
{
    o->max_downloads = 20;
}
static void restricted(struct fetch_options *o)
{
    o->connect_to_reserved_ips = false;
}
static void connect_100ms(struct fetch_options *o) /* the server does not answer to TLS */
{
    o->connect_timeout_ns = 100 * MS_NS;
}
static void connect_2s(struct fetch_options *o)
{
    o->connect_timeout_ns = 2 * S_NS;
}
static void one_address(struct fetch_options *o)
{
    static const struct sl_str networks[] = {{"127.0.0.1", 9}, {"192.168.0.0/16", 14}};
    o->connect_to_reserved_ips = false;
    o->allowed_reserved_networks = networks;
    o->allowed_reserved_network_count = 2;
}
static void two_per_host(struct fetch_options *o)
{
    o->split_size = 1000;
    o->max_downloads_per_host = 2;
}

/* ---- the deny list ---- */
FIBER_TEST_WITH(failing_hosts_are_blocked, short_times)
{
    expect_error(get_listed("/status/500"), SL_DOWNLOAD_ERROR, "500 Internal Server Error");
    expect_error(get_listed("/status/500"), SL_DOWNLOAD_ERROR, "500 Internal Server Error");
    assert_int_equal(hits_of(server), 6);
    const struct got *got = get_listed("/status/500");
    expect_error(got, SL_DOWNLOAD_ERROR,
                 "Host localhost is temporarily blocked because there were too many download failures. It will remain "
                 "blocked for a maximum of 500ms. The error that triggered the block was: `download failed: 500 "
                 "Internal Server Error`.");
    assert_true(got->error.duration_ns > 0 && got->error.duration_ns <= 500 * MS_NS);
    assert_int_equal(hits_of(server), 6);
    expect_body(get_as("127.0.0.1", "/", (struct fetch_request){.deny_list = true}), "contents", 8);
    expect_body(get_as("localhost", "/", (struct fetch_request){.deny_list = false}), "contents", 8);
    assert_true(fiber_sleep(DURATION_MS(get_listed("/")->error.duration_ns) + 1));

    expect_error(get_listed("/silent"), SL_TIMEOUT, "200ms");
    expect_error(get_listed("/silent"), SL_TIMEOUT, "200ms");
    got = get_listed("/");
    expect_error(got, SL_DOWNLOAD_ERROR,
                 "Host localhost is temporarily blocked because there were too many download failures. It will remain "
                 "blocked for a maximum of 500ms. The error that triggered the block was: `download timed out after "
                 "200ms`.");
    assert_true(fiber_sleep(DURATION_MS(got->error.duration_ns) + 1));
    for (int i = 0; i < 3; i++) {
        expect_error(get_listed("/status/404"), SL_NOT_FOUND, "");
        expect_error(get_listed("/status/403"), SL_PERMISSION_DENIED, "403 Forbidden");
    }
    assert_int_equal(hits_of(server), 14 + 2);
}

FIBER_TEST_WITH(failures_outside_the_window_do_not_count, short_windows)
{
    for (int i = 0; i < 3; i++) {
        expect_error(get_listed("/status/500"), SL_DOWNLOAD_ERROR, "500 Internal Server Error");
        assert_true(fiber_sleep(700));
    }
    expect_body(get_listed("/"), "contents", 8);
}

/* One that is blocked for an hour shows that it answers when a download is let through. */
FIBER_TEST_WITH(blocked_hosts_are_retried_occasionally, try_soon)
{
    static const char blocked[] =
        "Host localhost is temporarily blocked because there were too many download failures. "
        "It will remain blocked for a maximum of 1h. The error that triggered the block was: "
        "`download failed: 500 Internal Server Error`.";
    for (int i = 0; i < 2; i++)
        expect_error(get_listed("/status/500"), SL_DOWNLOAD_ERROR, "500 Internal Server Error");
    size_t hits = hits_of(server);
    expect_error(get_listed("/"), SL_DOWNLOAD_ERROR, blocked);
    assert_int_equal(hits_of(server), hits);
    assert_true(fiber_sleep(350));
    expect_error(get_listed("/status/500"), SL_DOWNLOAD_ERROR, "500 Internal Server Error");
    expect_error(get_listed("/"), SL_DOWNLOAD_ERROR, blocked); /* it did not answer */
    assert_true(fiber_sleep(350));
    expect_error(get_listed("/status/404"), SL_NOT_FOUND, "");
    expect_body(get_listed("/"), "contents", 8);
}

static void some_hosts_are_never_blocked(void *arg)
{
    for (int i = 0; i < 4; i++)
        expect_error(get_listed("/status/500"), SL_DOWNLOAD_ERROR, "500 Internal Server Error");
}

/* ---- slots ---- */
struct one {
    const char *host;
    const char *path;
    enum sl_code code;
};

static void get_one(void *arg)
{
    struct one *one = arg;
    char url[128];
    int fd = empty_file();
    snprintf(url, sizeof url, "http://%s:%u%s", one->host, server->port, one->path);
    one->code = fetch_get(&(struct fetch_request){.url = url, .source = "test"}, fd, NULL);
    close(fd);
}

enum { MANY = 500 };

static void many_downloads(unsigned expected, const char *second_host)
{
    static struct one ones[MANY];
    struct fiber_group group;
    fiber_group_init(&group, NULL);
    held = held_ever = most_held = 0;
    hold_until = expected;
    for (size_t i = 0; i < MANY; i++) {
        ones[i] = (struct one){.host = i % 2 ? second_host : "a.test", .path = "/hold"};
        assert_true(fiber_start(&group, get_one, &ones[i]));
    }
    fiber_group_wait(&group);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(ones[i].code, SL_OK);
    assert_int_equal(held_ever, MANY);
    assert_int_equal(most_held, expected);
}

FIBER_TEST_WITH(downloads_of_a_host_are_limited, NULL)
{
    many_downloads(16, "a.test");
}

FIBER_TEST_WITH(downloads_of_all_hosts_are_limited, twenty)
{
    many_downloads(20, "b.test");
}

/* ---- addresses behind names ---- */
FIBER_TEST_WITH(reserved_addresses_are_refused, restricted)
{
    static const char *const hosts[] = {"127.0.0.1",          "localhost", "public.test",   "2130706433", "0.0.0.0",
                                        "[::ffff:127.0.0.1]", "[::1]",     "metadata.test", "0x7f.1",     "mixed.test"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        expect_error(get_as(hosts[i], "/", (struct fetch_request){0}), SL_DOWNLOAD_ERROR, "destination is restricted");
    expect_error(get_as("missing.test", "/", (struct fetch_request){0}), SL_DOWNLOAD_ERROR,
                 "Could not resolve host: missing.test");
    assert_int_equal(hits_of(server), 0);
    expect_body(get_as("127.0.0.1", "/", (struct fetch_request){.trusted = true}), "contents", 8);
    expect_body(get_as("public.test", "/", (struct fetch_request){.trusted = true}), "contents", 8);
    expect_error(get_as("metadata.test", "/", (struct fetch_request){.trusted = true}), SL_DOWNLOAD_ERROR,
                 "destination is restricted");
    /* the connection that is kept for trusted downloads is not for others */
    expect_error(get_as("127.0.0.1", "/", (struct fetch_request){0}), SL_DOWNLOAD_ERROR, "destination is restricted");
    expect_error(get_as("public.test", "/", (struct fetch_request){0}), SL_DOWNLOAD_ERROR, "destination is restricted");
    assert_int_equal(hits_of(server), 2);
}

FIBER_TEST_WITH(allowed_networks_are_reached, one_address)
{
    expect_body(get_as("127.0.0.1", "/", (struct fetch_request){0}), "contents", 8);
    expect_body(get_as("mixed.test", "/", (struct fetch_request){0}), "contents",
                8); /* the other address is left out */
    expect_error(get_as("127.0.0.2", "/", (struct fetch_request){0}), SL_DOWNLOAD_ERROR, "destination is restricted");
}

/* A name whose address is a good one when it is asked for first, and a reserved one ever after: each connection is judged by
 * the address that it goes to, which no other look-up than its own has found. */
FIBER_TEST_WITH(dns_rebinding_is_refused, one_address)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int inner = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    inet_pton(AF_INET, "127.0.0.2", &address.sin_addr);
    assert_int_equal(bind(inner, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(inner, 8), 0);
    assert_int_equal(getsockname(inner, (struct sockaddr *)&address, &size), 0);
    inner_port = ntohs(address.sin_port);

    atomic_store(&turned, 0);
    expect_body(get_as("rebinding.test", "/", (struct fetch_request){0}), "contents", 8);
    assert_int_equal(atomic_load(&turned), 1);
    expect_error(get_as("rebinding.test", "/inwards", (struct fetch_request){0}), SL_DOWNLOAD_ERROR,
                 "destination is restricted");
    assert_true(hits_of(server) > 1 && atomic_load(&turned) > 1); /* the way inwards was shown, and looked for */
    assert_int_equal(accept(inner, NULL, NULL), -1);              /* nobody came */
    assert_int_equal(errno, EAGAIN);
    close(inner);
}

/* A listener whose queue is full: further connections to it stay without an answer. */
static int deaf_listener(int clients[4])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(server->port)};
    inet_pton(AF_INET, "127.0.0.9", &address.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 0), 0);
    for (int i = 0; i < 4; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(clients[i], (struct sockaddr *)&address, sizeof address);
    }
    return fd;
}

/* curl then closes one socket and opens the next, which gets the same number. */
FIBER_TEST_WITH(unresponsive_address_is_skipped, connect_2s)
{
    int clients[4], deaf = deaf_listener(clients);
    uint64_t start = clock_mono_ns();
    expect_body(get_as("half-dead.test", "/", (struct fetch_request){0}), "contents", 8);
    assert_true(clock_mono_ns() - start < 1900 * MS_NS); /* it had half of the time to connect */
    assert_int_equal(hits_of(server), 1);
    for (int i = 0; i < 4; i++)
        close(clients[i]);
    close(deaf);
}

static void get_half_dead(void *arg)
{
    struct sl_error *error = arg;
    char url[128];
    int fd = empty_file();
    snprintf(url, sizeof url, "http://half-dead.test:%u/", server->port);
    error->code = fetch_get(&(struct fetch_request){.url = url, .source = "test"}, fd, error);
    close(fd);
}

/* The refusal comes when the connection is asked for a second time, a second later. */
FIBER_TEST_WITH(late_refusal_tries_the_next_address, NULL)
{
    int clients[4], deaf = deaf_listener(clients);
    struct sl_error error = {.message = ""};
    struct fiber_group group;
    uint64_t start = clock_mono_ns();
    fiber_group_init(&group, NULL);
    assert_true(fiber_start(&group, get_half_dead, &error));
    fiber_sleep(100); /* if it were too short, the refusal would come at once */
    for (int i = 0; i < 4; i++)
        close(clients[i]);
    close(deaf);
    fiber_group_wait(&group);
    if (error.code != SL_OK)
        fail_msg("%s", error.message);
    assert_true(clock_mono_ns() - start < 4 * S_NS);
}

/* The operator's proxy may be anywhere; what the URL names is checked all the same. */
static void proxies(void *arg)
{
    expect_body(get_as("public.test", "/", (struct fetch_request){0}), "contents", 8);
    char *log = take_log(server);
    assert_true(starts(log, "GET http://public.test:"));
    assert_non_null(strstr(log, "\r\nProxy-Authorization: Basic dTpwYTU1\r\n"));
    free(log);
    static const char *const hosts[] = {"10.0.0.1", "127.0.0.1", "[::1]", "2130706433", "metadata.google.internal"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        expect_error(get_as(hosts[i], "/", (struct fetch_request){0}), SL_DOWNLOAD_ERROR, "destination is restricted");
    assert_int_equal(hits_of(server), 0);
    const struct got *got = get(NULL, "https://public.test/");
    expect_error(got, SL_DOWNLOAD_ERROR, NULL);
    assert_null(strstr(got->error.message, "pa55"));
}

static void a_proxy_that_is_not_there(void *arg)
{
    const struct got *got = get_as("public.test", "/", (struct fetch_request){0});
    expect_error(got, SL_DOWNLOAD_ERROR, NULL);
    assert_null(strstr(got->error.message, "pa55"));
}

/* ---- cancellation ---- */
FIBER_TEST_WITH(cancelled_downloads_end, two_per_host)
{
    static struct one ones[] = {{.host = "a.test", .path = "/silent"}, {.host = "a.test", .path = "/stall"},
                                {.host = "b.test", .path = "/parts"},  {.host = "b.test", .path = "/busy"},
                                {.host = "slow.test", .path = "/"},    {.host = "a.test", .path = "/waits-for-a-slot"}};
    enum { COUNT = sizeof ones / sizeof *ones, REQUESTS = 8 };
    struct fiber_group group;
    fiber_group_init(&group, NULL);
    released = false;
    for (size_t i = 0; i < COUNT; i++)
        assert_true(fiber_start(&group, get_one, &ones[i]));
    while (hits_of(server) < REQUESTS || resolving_now() < 1)
        assert_true(fiber_sleep(1));
    uint64_t start = clock_mono_ns();
    fiber_group_cancel(&group);
    fiber_group_wait(&group);
    assert_true(clock_mono_ns() - start < 2 * S_NS); /* the name server is not waited for */
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(ones[i].code, SL_CANCELLED);
    assert_int_equal(hits_of(server), REQUESTS);
    expect_body(get_as("a.test", "/", (struct fetch_request){0}), "contents", 8);
    expect_body(get_as("b.test", "/", (struct fetch_request){0}), "contents", 8);

    pthread_mutex_lock(&names_lock); /* the thread ends before its memory is missed */
    released = true;
    pthread_cond_broadcast(&names_changed);
    while (resolving > 0)
        pthread_cond_wait(&names_changed, &names_lock);
    pthread_mutex_unlock(&names_lock);
}

FIBER_TEST_WITH(immediate_cancellation_ends_the_download, NULL)
{
    struct one one = {.host = "a.test", .path = "/"};
    struct fiber_group group;
    fiber_group_init(&group, NULL);
    assert_true(fiber_start(&group, get_one, &one));
    fiber_group_cancel(&group);
    fiber_group_wait(&group);
    assert_int_equal(one.code, SL_CANCELLED);
}

/* ---- secrets ---- */
FIBER_TEST_WITH(logs_and_errors_hold_no_secrets, connect_100ms)
{
    static const char *const urls[] = {"http://user:pa55@127.0.0.1:%u/status/500?sig=t0ken",
                                       "http://user:pa55@missing.test:%u/x?sig=t0ken",
                                       "http://user:pa55@127.0.0.1:%u/status/403?sig=t0ken",
                                       "http://user:pa55@169.254.169.254:%u/?sig=t0ken",
                                       "ftp://user:pa55@127.0.0.1:%u/?sig=t0ken",
                                       "http://user:pa55@127.0.0.1:%u/b ad?sig=t0ken",
                                       "https://user:pa55@127.0.0.1:%u/?sig=t0ken"};
    const struct fetch_header headers[] = {{SL_STR("Authorization"), {SL_STR("Bearer t0ken")}},
                                           {SL_STR("X-Bad"), {SL_STR("t0ken\n")}}};
    char path[] = "/tmp/symloom-test-XXXXXX", url[256];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_true(log_set_levels("trace"));
    assert_true(log_set_file(path, NULL));
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        for (size_t headers_sent = 0; headers_sent <= 2; headers_sent++) {
            snprintf(url, sizeof url, urls[i], server->port);
            const struct got *got =
                get_request((struct fetch_request){.url = url, .headers = headers, .header_count = headers_sent});
            assert_int_not_equal(got->code, SL_OK);
            assert_null(strstr(got->error.message, "pa55"));
            assert_null(strstr(got->error.message, "t0ken"));
        }
    log_flush();
    assert_true(log_set_levels("off"));
    assert_true(log_set_file(NULL, NULL));
    struct sl_buf text = {0};
    read_file(fd, &text);
    sl_buf_u8(&text, 0);
    assert_non_null(strstr((char *)text.data, "500 Internal Server Error"));
    assert_null(strstr((char *)text.data, "pa55"));
    assert_null(strstr((char *)text.data, "t0ken"));
    sl_buf_free(&text);
    close(fd);
    unlink(path);
}

/* ---- harness ---- */
static const char *proxy; /* of the environment; the server's port goes in */

static void run(void (*fn)(void *arg), void (*adjust)(struct fetch_options *o))
{
    struct fetch_options options = open_options();
    if (adjust)
        adjust(&options);
    server = server_start(route);
    if (proxy) {
        char url[64];
        snprintf(url, sizeof url, proxy, server->port);
        setenv("http_proxy", url, 1);
        setenv("https_proxy", url, 1);
    }
    with_fetch(&options, fn, NULL);
    server_stop(server);
}

TEST(never_block_list_is_respected)
{
    run(some_hosts_are_never_blocked, never_block);
}

TEST(proxies_are_used_and_reported)
{
    proxy = "http://u:pa55@127.0.0.1:%u";
    run(proxies, restricted);
    proxy = "http://u:pa55@missing.test:%u";
    run(a_proxy_that_is_not_there, restricted);
    proxy = "nonsense://u:pa55@127.0.0.1:%u";
    run(a_proxy_that_is_not_there, restricted);
    proxy = NULL;
}

TEST(deny_list_can_be_disabled)
{
    run(some_hosts_are_never_blocked, deny_nothing);
}
