/* A disk that is behind: the transfer is paused, the loop is not. The pool stands for the disk here, as it is where the disk
 * is written to: a download during which all its threads are taken. */
#include "support.h"

#include "core/metrics.h"
#include "core/pool.h"

enum { SIZE = 5000000, SPLIT = 1500000, THREADS = 4 /* those of the pool */ };
static struct server *server;
static uint8_t contents[SIZE];
static bool in_parts;

static bool route(struct call *c)
{
    char value[64];
    size_t start = 0, end = SIZE - 1;
    if (starts(c->path, "/small"))
        return body_answer(c, "", contents, 1000);
    if (!in_parts || !header_of(c->head, "Range", value, sizeof value))
        return body_answer(c, "", contents, SIZE);
    sscanf(value, "bytes=%zu-%zu", &start, &end);
    end = end < SIZE ? end : SIZE - 1;
    say(c, "HTTP/1.1 206 P\r\nContent-Range: bytes %zu-%zu/%d\r\nContent-Length: %zu\r\n\r\n", start, end, SIZE,
        end + 1 - start);
    send_all(c->fd, contents + start, end + 1 - start);
    return true;
}

/* ---- the disk ---- */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool stands_still;

static void stand_still(void *arg)
{
    pthread_mutex_lock(&lock);
    while (stands_still)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void take_thread(void *arg)
{
    assert_int_equal(pool_run(POOL_IO, stand_still, NULL, NULL), SL_OK);
}

static void stop_disk(struct fiber_group *group)
{
    stands_still = true;
    fiber_group_init(group, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_true(fiber_start(group, take_thread, NULL));
    while (pool_busy() < THREADS)
        assert_true(fiber_sleep(1));
}

static void let_disk_go(struct fiber_group *group)
{
    pthread_mutex_lock(&lock);
    stands_still = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    fiber_group_wait(group);
}

/* ---- downloads ---- */
struct large {
    struct got got;
    uint64_t timeout_ns;
};

static void get_large(void *arg)
{
    struct large *large = arg;
    char url[128];
    int fd = empty_file();
    snprintf(url, sizeof url, "%s/large", server->base);
    struct fetch_request request = {.url = url, .source = "test", .keep_wrapper = true};
    request.timeout_ns = large->timeout_ns;
    large->got.code = fetch_get(&request, fd, &large->got.error);
    read_file(fd, &large->got.body);
    close(fd);
}

static uint64_t received(void)
{
    struct fetch_progress progress;
    return fetch_progress(&progress) ? progress.stored : 0;
}

/* The pause lasts longer than the stall time-out, which is about the source. */
static void a_slow_disk_pauses_the_transfer(void *arg)
{
    struct fiber_group disk, group;
    struct large large = {.timeout_ns = 0};
    fiber_group_init(&group, NULL);
    stop_disk(&disk);
    assert_true(fiber_start(&group, get_large, &large));
    while (received() <= SPOOL_SIZE) /* the second buffer is being filled: the loop goes on */
        assert_true(fiber_sleep(1));
    uint64_t start = clock_mono_ns();
    while (clock_mono_ns() - start < 600 * MS_NS) {
        assert_true(received() <= 2 * SPOOL_SIZE);
        assert_true(fiber_sleep(10));
    }
    let_disk_go(&disk);
    fiber_group_wait(&group);
    expect_body(&large.got, contents, SIZE);
    sl_buf_free(&large.got.body);
}

static void many_slow_downloads(void *arg)
{
    enum { COUNT = 12 };
    static struct large all[COUNT];
    struct fiber_group disk, group;
    fiber_group_init(&group, NULL);
    stop_disk(&disk);
    for (int i = 0; i < COUNT; i++)
        assert_true(fiber_start(&group, get_large, &all[i]));
    while (received() <= SPOOL_SIZE)
        assert_true(fiber_sleep(1));
    let_disk_go(&disk);
    fiber_group_wait(&group);
    for (int i = 0; i < COUNT; i++) {
        expect_body(&all[i].got, contents, SIZE);
        sl_buf_free(&all[i].got.body);
        all[i] = (struct large){.timeout_ns = 0};
    }
}

static void run(void (*fn)(void *arg), bool parts);

FIBER_TEST_WITH(timeout_covers_a_slow_disk, false)
{
    struct fiber_group disk, group;
    struct large large = {.timeout_ns = 300 * MS_NS};
    fiber_group_init(&group, NULL);
    stop_disk(&disk);
    assert_true(fiber_start(&group, get_large, &large));
    uint64_t start = clock_mono_ns();
    while (clock_mono_ns() - start < 400 * MS_NS)
        assert_true(fiber_sleep(10));
    let_disk_go(&disk);
    fiber_group_wait(&group);
    expect_error(&large.got, SL_TIMEOUT, "300ms");
    sl_buf_free(&large.got.body);
}

static double jobs_run(void)
{
    static const char row[] = "\nsymloom_pool_run_seconds_count{job=\"io\"} ";
    struct sl_buf text = {0};
    metrics_write(&text, false);
    sl_buf_u8(&text, 0);
    const char *line = strstr((const char *)text.data, row);
    double value = line ? strtod(line + sizeof row - 1, NULL) : 0;
    sl_buf_free(&text);
    return value;
}

FIBER_TEST_WITH(small_file_is_written_in_one_job, false)
{
    char url[128];
    double before = jobs_run();
    snprintf(url, sizeof url, "%s/small", server->base);
    expect_body(get_request((struct fetch_request){.url = url, .keep_wrapper = true}), contents, 1000);
    assert_true(jobs_run() == before + 1);
}

static void run(void (*fn)(void *arg), bool parts)
{
    struct fetch_options options = open_options();
    options.split_size = SPLIT;
    options.stall_timeout_ns = 200 * MS_NS;
    in_parts = parts;
    if (fn != a_slow_disk_pauses_the_transfer)
        options.stall_timeout_ns = 30 * S_NS;
    server = server_start(route);
    with_fetch(&options, fn, NULL);
    server_stop(server);
}

TEST(concurrent_ranged_downloads_complete)
{
    run(many_slow_downloads, true);
}

TEST(slow_disk_applies_back_pressure)
{
    run(a_slow_disk_pauses_the_transfer, false);
}

TEST(concurrent_slow_downloads_complete)
{
    run(many_slow_downloads, false);
}

static int begin_file(void **state)
{
    for (size_t i = 0; i < SIZE; i++)
        contents[i] = (uint8_t)(i * 2654435761u >> 13);
    return 0;
}

TEST_FILE(.begin = begin_file);
