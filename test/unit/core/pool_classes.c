/* The pool's two lanes: who waits for whom, the bound of its queue, and what the log says of a job. libuv has but one pool in
 * a process: what wants a single thread runs alone. */
#include "../check.h"
#include <unistd.h>

#include <pthread.h>
#include <signal.h>

#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"

static void run(void (*fn)(void *arg), unsigned threads)
{
    loop_init(threads);
    loop_run_fiber(fn, NULL);
    loop_close();
}

/* ---- the gate ----
 * Heavy jobs that stay until they are let go, and what ends meanwhile. */
enum { MAX_JOBS = 64 };
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    size_t inside, most_inside, ended;
    char order[MAX_JOBS + 1]; /* a letter for each job that has begun */
    size_t begun;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void gate_set(bool open)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = open;
    if (!open) {
        gate.inside = gate.most_inside = gate.ended = gate.begun = 0;
        memset(gate.order, 0, sizeof gate.order);
    }
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static void pass_gate(void *arg)
{
    pthread_mutex_lock(&gate.lock);
    assert_true(gate.begun < MAX_JOBS);
    gate.order[gate.begun++] = *(char *)arg;
    gate.inside++;
    if (gate.inside > gate.most_inside)
        gate.most_inside = gate.inside;
    pthread_cond_broadcast(&gate.changed);
    while (!gate.open)
        pthread_cond_wait(&gate.changed, &gate.lock);
    gate.inside--;
    gate.ended++;
    pthread_mutex_unlock(&gate.lock);
}

static void note(void *arg)
{
    pthread_mutex_lock(&gate.lock);
    assert_true(gate.begun < MAX_JOBS);
    gate.order[gate.begun++] = *(char *)arg;
    pthread_mutex_unlock(&gate.lock);
}

struct gated { /* a fiber with one job */
    enum pool_job kind;
    char letter;
    void (*fn)(void *arg);
    const char *request;
    enum sl_code code;
};

static void run_gated(void *arg)
{
    struct gated *g = arg;
    if (g->request)
        fiber_set_request_id(sl_str(g->request));
    g->code = pool_run(g->kind, g->fn, &g->letter, NULL);
}

static void start_gated(struct fiber_group *group, struct gated *g)
{
    assert_true(fiber_start(group, run_gated, g));
}

/* Until so many jobs are held at the gate. The loop goes on. */
static void wait_inside(size_t count)
{
    for (bool there = false; !there;) {
        pthread_mutex_lock(&gate.lock);
        there = gate.inside == count;
        pthread_mutex_unlock(&gate.lock);
        fiber_sleep(0);
    }
}

static double gauge(const char *name)
{
    struct sl_buf text = {0};
    metrics_collect();
    metrics_write(&text, false);
    sl_buf_u8(&text, 0);
    const char *line = strstr((const char *)text.data, name);
    assert_non_null(line);
    double value = strtod(line + strlen(name), NULL);
    sl_buf_free(&text);
    return value;
}

static void hold_heavy_jobs(void *arg)
{
    enum { JOBS = 9 };
    struct gated jobs[JOBS];
    struct fiber_group group;
    char letter = 'q';
    size_t heavy = loop_pool_threads() - 1;
    fiber_group_init(&group, NULL);
    gate_set(false);
    for (size_t i = 0; i < JOBS; i++) {
        static const enum pool_job kinds[] = {POOL_CONVERT, POOL_WALK, POOL_IO | POOL_HEAVY};
        jobs[i] = (struct gated){.kind = kinds[i % 3], .letter = 'h', .fn = pass_gate};
        start_gated(&group, &jobs[i]);
    }
    wait_inside(heavy);
    for (int i = 0; i < 20; i++)
        assert_int_equal(pool_run(POOL_IO, note, &letter, NULL), SL_OK); /* ends, though heavy ones wait */
    assert_int_equal(gate.inside, heavy);
    assert_int_equal(pool_busy(), heavy);
    assert_int_equal(pool_queued(), JOBS - heavy);
    assert_true(gauge("\nsymloom_waiting{what=\"pool_heavy\"} ") == (double)(JOBS - heavy));
    assert_true(gauge("\nsymloom_waiting{what=\"pool_quick\"} ") == 0);
    assert_true(gauge("\nsymloom_pool_busy ") == (double)heavy);
    /* A full queue is a matter of new work. */
    assert_true(pool_can_accept());
    pool_set_limit(JOBS - heavy);
    assert_false(pool_can_accept());
    assert_true(gauge("\nsymloom_busy_total{what=\"pool\"} ") >= 1);
    assert_int_equal(pool_run(POOL_IO, note, &letter, NULL), SL_OK);
    gate_set(true);
    fiber_group_wait(&group);
    assert_true(pool_can_accept());
    pool_set_limit(10000);
    assert_int_equal(gate.ended, JOBS);
    assert_int_equal(gate.most_inside, heavy);
    for (size_t i = 0; i < JOBS; i++)
        assert_int_equal(jobs[i].code, SL_OK);
    assert_true(gauge("\nsymloom_pool_wait_seconds_count{job=\"walk\"} ") >= 3);
    assert_true(gauge("\nsymloom_pool_run_seconds_count{job=\"io\"} ") >= 23);
}

TEST(heavy_jobs_leave_a_thread_to_quick_jobs)
{
    run(hold_heavy_jobs, 4);
    run(hold_heavy_jobs, 2);
}

/* The gate opens once the first is inside and all have been started. */
static void run_all_behind_the_first(struct gated *jobs, size_t count)
{
    struct fiber_group group;
    fiber_group_init(&group, NULL);
    gate_set(false);
    for (size_t i = 0; i < count; i++)
        start_gated(&group, &jobs[i]);
    wait_inside(1);
    gate_set(true);
    fiber_group_wait(&group);
}

static void alternate(void *arg)
{
    struct gated jobs[] = {{.kind = POOL_CONVERT, .letter = 'A', .fn = pass_gate},
                           {.kind = POOL_CONVERT, .letter = 'B', .fn = note},
                           {.kind = POOL_CONVERT, .letter = 'C', .fn = note},
                           {.kind = POOL_IO, .letter = 'q', .fn = note},
                           {.kind = POOL_IO, .letter = 'r', .fn = note}};
    run_all_behind_the_first(jobs, sizeof jobs / sizeof *jobs);
    assert_string_equal(gate.order, "AqrBC"); /* what is quick does not wait for all that is heavy */
}

TEST(one_thread_serves_both_classes, .alone = true)
{
    run(alternate, 1);
}

FIBER_TEST_WITH(heavy_jobs_are_shared_fairly_between_requests, 2)
{
    /* One heavy thread. The second request's only job comes last but does not wait for all of the first's. */
    struct gated jobs[] = {
        {.kind = POOL_CONVERT, .letter = '-', .fn = pass_gate, .request = "first"},
        {.kind = POOL_CONVERT, .letter = 'a', .fn = note, .request = "first"},
        {.kind = POOL_CONVERT, .letter = 'b', .fn = note, .request = "first"},
        {.kind = POOL_CONVERT, .letter = 'c', .fn = note, .request = "first"},
        {.kind = POOL_CONVERT, .letter = 'X', .fn = note, .request = "second"},
    };
    run_all_behind_the_first(jobs, sizeof jobs / sizeof *jobs);
    size_t second = (size_t)(strchr(gate.order, 'X') - gate.order);
    assert_true(second <= 2);
    memmove(gate.order + second, gate.order + second + 1, strlen(gate.order + second));
    assert_string_equal(gate.order, "-abc"); /* each request's in order */
}

FIBER_TEST_WITH(queued_heavy_job_can_be_cancelled, 2)
{
    struct gated held = {.kind = POOL_CONVERT, .letter = '-', .fn = pass_gate};
    struct gated waiting = {.kind = POOL_CONVERT, .letter = 'w', .fn = note},
                 behind = {.kind = POOL_CONVERT, .letter = 'b', .fn = note};
    struct fiber_group group, cancelled;
    fiber_group_init(&group, NULL);
    fiber_group_init(&cancelled, NULL);
    gate_set(false);
    start_gated(&group, &held);
    start_gated(&cancelled, &waiting);
    start_gated(&group, &behind);
    wait_inside(1);
    fiber_group_cancel(&cancelled);
    fiber_group_wait(&cancelled); /* does not wait for the gate */
    assert_int_equal(waiting.code, SL_CANCELLED);
    gate_set(true);
    fiber_group_wait(&group);
    assert_string_equal(gate.order, "-b");
    assert_int_equal(pool_queued(), 0);
}

/* ---- what a job logs ---- */
static void write_line(void *arg)
{
    log_info("convert", arg);
}

static void write_piece(void *arg, size_t index, unsigned worker)
{
    (void)index, (void)worker;
    log_write(NULL, LOG_INFO, "convert", __FILE__, __LINE__, arg, (const struct log_field[]){{.key = NULL}});
}

static void write_pieces(void *arg)
{
    sl_parallel_run(pool_parallel(), 100, write_piece, arg);
}

static void log_in_jobs(void *arg)
{
    fiber_set_request_id(SL_STR("id-of-request"));
    assert_int_equal(pool_run(POOL_IO, write_line, (char[]){"first line"}, NULL), SL_OK);
    assert_int_equal(pool_run(POOL_CONVERT, write_pieces, (char[]){"piece"}, NULL), SL_OK);
    fiber_set_request_id(SL_STR(""));
    assert_int_equal(pool_run(POOL_IO, write_line, (char[]){"last line"}, NULL), SL_OK);
}

static size_t occurrences(const char *text, const char *what)
{
    size_t count = 0;
    for (; (text = strstr(text, what)); text++)
        count++;
    return count;
}

TEST(log_lines_of_a_job_carry_the_request_id)
{
    static char text[65536];
    char path[] = "/tmp/symloom-unit-XXXXXX";
    int fd = mkstemp(path);
    assert_true(log_set_file(path, NULL));
    log_set_format(LOG_SIMPLIFIED);
    run(log_in_jobs, 4);
    assert_true(log_set_file(NULL, NULL));
    assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
    assert_int_equal(occurrences(text, "convert: first line req=id-of-request\n"), 1);
    assert_int_equal(occurrences(text, "convert: piece req=id-of-request\n"), 100);
    assert_int_equal(occurrences(text, "convert: last line\n"), 1);
    unlink(path);
    close(fd);
}

static sigjmp_buf before_abort;

static void on_abort(int number)
{
    (void)number;
    siglongjmp(before_abort, 1);
}

static bool aborts_when_stalled(void)
{
    struct sigaction action = {.sa_handler = on_abort};
    volatile bool ended = sigsetjmp(before_abort, 1) != 0;
    if (!ended) {
        sigaction(SIGABRT, &action, NULL);
        pool_end_if_stalled(1);
    }
    signal(SIGABRT, SIG_DFL);
    return ended;
}

FIBER_TEST_WITH(pool_without_a_free_thread_is_stalled, 4)
{
    struct fiber_group group;
    struct gated jobs[4];
    assert_false(pool_stalled(UINT64_MAX));
    gate_set(false);
    fiber_group_init(&group, NULL);
    for (int i = 0; i < 4; i++) { /* quick ones, for each thread */
        jobs[i] = (struct gated){.kind = POOL_IO, .letter = 'a', .fn = pass_gate, .request = ""};
        assert_true(fiber_start(&group, run_gated, &jobs[i]));
    }
    while (!pool_stalled(1))
        assert_true(fiber_sleep(1));
    assert_false(pool_stalled(UINT64_MAX));
    pool_end_if_stalled(UINT64_MAX);
    assert_true(aborts_when_stalled());
    gate_set(true);
    fiber_group_wait(&group);
    fiber_group_finish(&group);
    while (pool_stalled(1)) /* until the probe had its turn */
        assert_true(fiber_sleep(1));
}
