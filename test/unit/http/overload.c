/* More at once than there is room for: bodies, fibers, memory, answers that wait for their client. */
#include "handlers.h"

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

/* `receive` bytes of answers wait in the client's socket at most; 0 = as many as is usual. */
static int connect_from(const struct test_server *t, const char *source, int receive)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(t->port)}, from = {.sin_family = AF_INET};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    inet_pton(AF_INET, source, &from.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive) /* before TCP tells its window: it pauses where one becomes smaller */
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive, sizeof receive);
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

TEST(slow_bodies_do_not_block_other_addresses, .alone = true)
{
    struct test_server other;
    int first[4], second[2];
    bool refused[4];
    server_start(&other, counted_routes, few_bodies);
    for (int i = 0; i < 4; i++) {
        first[i] = connect_from(&other, "127.0.0.2", 0);
        refused[i] = is_refused(first[i]);
    }
    assert_false(refused[0] || refused[1] || refused[2]);
    assert_true(refused[3]);
    for (int i = 0; i < 2; i++)
        second[i] = connect_from(&other, "127.0.0.3", 0);
    assert_false(is_refused(second[0]));
    assert_true(is_refused(second[1]));
    struct answer answer; /* a small one is always taken, wherever it comes from */
    assert_int_equal(exchange(&other, HEAD("/collect") "Content-Length: 2\r\n\r\n{}", &answer), 200);
    answer_free(&answer);
    close(first[0]);
    close(first[1]);
    do { /* their places are free, as soon as the server sees it */
        close(second[1]);
        second[1] = connect_from(&other, "127.0.0.3", 0);
    } while (is_refused(second[1]));
    for (int i = 0; i < 2; i++)
        close(second[i]), close(first[i + 2]);
    server_stop(&other);
}

TEST(waiting_for_a_small_body_takes_no_fiber, .alone = true)
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

TEST(health_is_answered_without_a_fiber, .alone = true)
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
TEST(pipelined_answers_wait_for_a_slow_reader, .alone = true)
{
    enum { REQUESTS = 9000 };
    static const char one[] = "GET /live HTTP/1.1\r\nHost: x\r\n\r\n";
    struct test_server other;
    server_start(&other, counted_routes, NULL);
    int fd = connect_from(&other, "127.0.0.1", 4096); /* far less than the answers */
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

static struct memory_reservation held;

static void memory_for_small_bodies(void)
{
    memory_configure(1 << 20, 50); /* of up to 256 KiB, at weight 4 */
}

static void memory_is_taken(void)
{
    memory_resize(&held, 1 << 20);
}

static void memory_is_given_back(void)
{
    memory_resize(&held, 0);
}

static void memory_for_all(void)
{
    memory_configure(UINT64_MAX, 5000);
}

TEST(bodies_over_the_memory_limit_wait_or_are_refused, .alone = true)
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
