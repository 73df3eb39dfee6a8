/* Many deaths, and the death of each of the processes: nothing is left behind, and nobody waits for ever. */
#include "functions.h"

#include "../descriptors.h"

#include <errno.h>
#include <pthread.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "core/log.h"

static const struct worker_settings two = {.max_workers = 2, .warm = 2, .max_memory = 64 << 20, .max_threads = 1};

static int be_quiet(void **state)
{
    log_set_levels("off");
    return 0;
}

TEST_FILE(.setup = be_quiet);

/* ---- many ---- */
struct dying {
    pthread_t thread;
    struct worker_pool *pool;
    unsigned count, died, other;
};

static void *die_often(void *arg)
{
    struct dying *dying = arg;
    for (unsigned i = 0; i < dying->count; i++) {
        dying->died += run_deed(dying->pool, i % 2 ? READ_NOWHERE : END_PROCESS, 0).code == SL_MALFORMED;
        dying->other += run_deed(dying->pool, TELL_ARGUMENTS, 0).result.value == 1;
    }
    return NULL;
}

static void die_in_threads(struct worker_pool *pool, unsigned count)
{
    struct dying dying[4];
    for (int i = 0; i < 4; i++) {
        dying[i] = (struct dying){.pool = pool, .count = count / 4};
        assert_int_equal(pthread_create(&dying[i].thread, NULL, die_often, &dying[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(dying[i].thread, NULL);
        assert_int_equal(dying[i].died, count / 4);
        assert_int_equal(dying[i].other, count / 4);
    }
}

TEST(a_thousand_deaths_leave_nothing_behind, .limit_s = 120)
{
    unsigned before = count_descriptors();
    struct worker_pool *pool = open_pool(&two);
    die_in_threads(pool, 40);
    pid_t launcher = worker_pool_counts(pool).launcher;
    unsigned descriptors = count_descriptors();
    uint64_t launcher_kib = read_memory_kib(launcher, "Rss:"), own_kib = read_memory_kib(getpid(), "Rss:");
    die_in_threads(pool, 1000);
    struct worker_counts counts = worker_pool_counts(pool);
    assert_int_equal(counts.launcher, launcher);
    assert_true(counts.ended[WORKER_CRASHED] >= 1040 && counts.live <= 2);
    assert_true(count_children(launcher) <= 2);
    assert_true(count_descriptors() <= descriptors + 4);
    if (!confine_has_sanitizer()) { /* which keeps freed memory for a while */
        assert_true(read_memory_kib(launcher, "Rss:") <= launcher_kib + 256);
        assert_true(read_memory_kib(getpid(), "Rss:") <= own_kib + 2048);
    }
    worker_pool_close(pool);
    wait_until_gone(launcher);
    assert_int_equal(count_descriptors(), before);
    assert_int_equal(count_children(getpid()), 0);
}

TEST(workers_that_are_asked_for_at_the_end_end_too)
{
    for (int i = 0; i < 10; i++) {
        struct worker_settings many = {.max_workers = 200, .warm = 200, .max_threads = 1};
        struct worker_pool *pool = open_pool(&many);
        pid_t launcher = worker_pool_counts(pool).launcher;
        struct timespec time = {0, i * 3000000};
        nanosleep(&time, NULL);
        worker_pool_close(pool);
        assert_int_equal(kill(launcher, 0), -1);
        assert_int_equal(count_children(launcher), 0);
        assert_int_equal(count_children(getpid()), 0);
    }
}

/* ---- each of the processes ---- */
TEST(idle_workers_that_die_are_replaced)
{
    struct worker_pool *pool = open_pool(&two);
    for (int i = 0; i < 20; i++) {
        int64_t worker = run_deed(pool, TELL_PROCESS, 0).result.value;
        assert_int_equal(kill((pid_t)worker, SIGKILL), 0);
        struct test_answer answer = run_deed(pool, TELL_PROCESS, 0); /* perhaps while it is dying */
        assert_int_equal(answer.code, SL_OK);
        assert_int_not_equal(answer.result.value, worker);
    }
    worker_pool_close(pool);
}

static void *sleep_in_worker(void *arg)
{
    struct test_answer *answer = arg;
    answer->code = run_deed((struct worker_pool *)answer->result.value, SLEEP_FOR_EVER, 0).code;
    return NULL;
}

TEST(a_worker_that_the_machine_ends_says_nothing_about_the_file)
{
    struct worker_settings one = two;
    one.max_workers = 1;
    struct worker_pool *pool = open_pool(&one);
    struct test_answer answer = {.result.value = (int64_t)pool};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, sleep_in_worker, &answer), 0);
    for (int turn = 0; turn < 3; turn++) { /* it is tried again in another worker, but not for ever */
        struct timespec time = {0, 300000000};
        nanosleep(&time, NULL);
        assert_int_equal(signal_children(worker_pool_counts(pool).launcher, SIGKILL), 1);
    }
    pthread_join(thread, NULL);
    assert_int_equal(answer.code, SL_BUSY);
    worker_pool_close(pool);
}

static void *work_on(void *arg)
{
    struct dying *dying = arg;
    for (unsigned i = 0; i < dying->count; i++)
        dying->other += run_deed(dying->pool, SPREAD_WORK, 20).result.value == 190; /* takes 40 ms */
    return NULL;
}

TEST(jobs_outlive_workers_that_are_ended_from_outside)
{
    struct worker_pool *pool = open_pool(&two);
    struct dying working[4];
    for (int i = 0; i < 4; i++) {
        working[i] = (struct dying){.pool = pool, .count = 20};
        assert_int_equal(pthread_create(&working[i].thread, NULL, work_on, &working[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        struct timespec time = {0, 250000000};
        nanosleep(&time, NULL);
        signal_children(worker_pool_counts(pool).launcher, SIGKILL);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(working[i].thread, NULL);
        assert_int_equal(working[i].other, 20);
    }
    worker_pool_close(pool);
}

TEST(without_a_launcher_calls_come_back)
{
    struct worker_pool *pool = open_pool(&two);
    int64_t worker = run_deed(pool, TELL_PROCESS, 0).result.value;
    pid_t launcher = worker_pool_counts(pool).launcher;
    assert_int_equal(kill(launcher, SIGKILL), 0);
    wait_until_gone((pid_t)worker);
    struct test_answer answer = run_deed(pool, DO_NOTHING, 0);
    assert_int_equal(answer.code, SL_BUSY);
    assert_string_equal(answer.error.message, "the launcher of workers has ended; restart the service");
    assert_int_equal(worker_pool_counts(pool).launcher, -1);
    worker_pool_close(pool);
    assert_int_equal(count_children(getpid()), 0);
}

/* The service: it dies by SIGKILL while a worker is busy. */
static _Noreturn void be_service(int out)
{
    struct worker_pool *pool = open_pool(&two);
    int pids[2] = {worker_pool_counts(pool).launcher, (int)run_deed(pool, TELL_PROCESS, 0).result.value};
    if (write(out, pids, sizeof pids) != sizeof pids)
        _exit(1);
    run_deed(pool, SLEEP_FOR_EVER, 0);
    _exit(1);
}

TEST(all_processes_end_with_the_service)
{
    int pipe_fds[2], pids[2], status;
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t service = fork();
    if (service == 0)
        be_service(pipe_fds[1]);
    assert_int_equal(read(pipe_fds[0], pids, sizeof pids), sizeof pids);
    assert_int_equal(kill(pids[0], 0), 0);
    assert_int_equal(kill(pids[1], 0), 0);
    assert_int_equal(kill(service, SIGKILL), 0);
    assert_int_equal(waitpid(service, &status, 0), service);
    wait_until_gone(pids[0]);
    wait_until_gone(pids[1]);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

/* ---- a machine that is short of something ---- */
static void assert_no_start(int resource, rlim_t most, const char *message)
{
    struct worker_settings cold = {.max_workers = 2, .max_threads = 1};
    struct worker_pool *pool = open_pool(&cold);
    pid_t launcher = worker_pool_counts(pool).launcher;
    assert_deed(pool, END_PROCESS, 0, SL_MALFORMED, NULL); /* the launcher is there, and no worker is left */
    struct rlimit none = {most, most}, before;
    assert_int_equal(prlimit(launcher, (__rlimit_resource_t)resource, NULL, &before), 0);
    none.rlim_max = before.rlim_max;
    assert_int_equal(prlimit(launcher, (__rlimit_resource_t)resource, &none, NULL), 0);
    assert_deed(pool, DO_NOTHING, 0, SL_BUSY, message);
    assert_int_equal(prlimit(launcher, (__rlimit_resource_t)resource, &before, NULL), 0);
    assert_deed(pool, DO_NOTHING, 0, SL_OK, NULL); /* later there is room again */
    worker_pool_close(pool);
}

TEST(a_worker_that_cannot_be_started_is_a_scarcity)
{
    assert_no_start(RLIMIT_NOFILE, 5, "cannot start a worker: Too many open files");
}

TEST(a_service_without_descriptors_is_busy)
{
    struct worker_settings cold = {.max_workers = 2, .max_threads = 1};
    struct worker_pool *pool = open_pool(&cold);
    use_up_descriptors();
    struct test_answer answer = run_deed(pool, DO_NOTHING, 0);
    free_descriptors();
    assert_int_equal(answer.code, SL_BUSY);
    assert_string_equal(answer.error.message, "cannot start a worker: Too many open files");
    assert_deed(pool, DO_NOTHING, 0, SL_OK, NULL);
    worker_pool_close(pool);
}

/* Asked by the leak checker, which reads this directory: the user of the test below may not be allowed to enter the root directory. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return access("/proc/self/task", R_OK | X_OK) != 0;
}

TEST(a_fork_that_fails_is_a_scarcity, .alone = true)
{
    log_set_levels("off");
    if (geteuid() == 0) /* whom the limit does not hold for */
        assert_int_equal(setresuid(65534, 65534, 65534), 0);
    prctl(PR_SET_DUMPABLE, 1); /* a leak checker at the end of the test reads /proc/self, which would belong to root */
    assert_no_start(RLIMIT_NPROC, 0, "cannot start a worker: Resource temporarily unavailable");
}

TEST(a_machine_without_filters_runs_nothing, .alone = true)
{
    log_set_levels("off");
    scmp_filter_ctx none = seccomp_init(SCMP_ACT_ALLOW);
    assert_int_equal(
        seccomp_rule_add(none, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP)), 0);
    assert_int_equal(seccomp_load(none), 0);
    seccomp_release(none);
    struct worker_pool *pool = open_pool(&two);
    uint32_t measures = 0;
    struct sl_error error = {.code = SL_OK};
    assert_int_equal(worker_pool_probe(pool, &measures, &error), SL_UNSUPPORTED);
    assert_string_equal(error.message, "this system has no seccomp filters: workers cannot be confined");
    assert_false(measures & MEASURE_FILTER);
    assert_deed(pool, DO_NOTHING, 0, SL_BUSY, "worker processes end before their first job: see the log");
    worker_pool_close(pool);
}

TEST(deaths_are_told_to_a_service_that_ignores_children)
{
    assert_true(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    struct worker_pool *pool = open_pool(&two);
    assert_deed(pool, READ_NOWHERE, 0, SL_MALFORMED, "the reader crashed on this file: signal 11 (SIGSEGV)");
    worker_pool_close(pool);
    signal(SIGCHLD, SIG_DFL);
}
