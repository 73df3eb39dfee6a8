/* Functions that are in the hands of a file: each deed ends its worker or is refused, is answered, and touches no other job. */
#include "functions.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/cancel.h"
#include "core/log.h"

static const struct worker_settings two = {.max_workers = 2, .warm = 1, .max_memory = 64 << 20, .max_threads = 4};
static struct worker_pool *pool;
static unsigned descriptors;

static int open_two(void **state)
{
    log_set_levels("off");
    setenv("SYMLOOM_TEST_SECRET", "secret", 1);
    pool = open_pool(&two);
    assert_deed(pool, DO_NOTHING, 0, SL_OK, NULL);
    descriptors = count_descriptors();
    return 0;
}

/* After everything: the pool works, and nothing is left behind. */
static int close_it(void **state)
{
    assert_deed(pool, DO_NOTHING, 0, SL_OK, NULL);
    struct worker_counts counts = worker_pool_counts(pool);
    assert_in_range(counts.live, 1, 2);
    assert_true(count_children(counts.launcher) <= 2);
    assert_true(count_descriptors() <= descriptors + 2);
    worker_pool_close(pool);
    wait_until_gone(counts.launcher);
    return 0;
}

TEST_FILE(.setup = open_two, .teardown = close_it);

/* ---- confinement ---- */
TEST(a_worker_tells_what_confines_it)
{
    uint32_t measures = 0, needed = MEASURE_FILTER | MEASURE_NO_NEW_PRIVS | MEASURE_LIMITS | MEASURE_NOT_DUMPABLE |
                                    MEASURE_ENDS_WITH_PARENT | MEASURE_NO_ENVIRONMENT | MEASURE_FIRST_VICTIM;
    struct sl_error error = {.code = SL_OK};
    assert_int_equal(worker_pool_probe(pool, &measures, &error), SL_OK);
    assert_int_equal(measures & needed, needed);
    assert_true(confine_has_sanitizer() ? measures & MEASURE_SANITIZER : measures & MEASURE_MEMORY_LIMIT);
    assert_non_null(strstr(worker_measures_text(measures).text, "seccomp filter"));
    print_message("%s\n", worker_measures_text(measures).text);
}

TEST(environment_and_arguments_are_gone)
{
    assert_int_equal(run_deed(pool, TELL_ENVIRONMENT, (uintptr_t)getenv("SYMLOOM_TEST_SECRET")).result.value, 0);
    int64_t worker = run_deed(pool, TELL_PROCESS, 0).result.value;
    static const char *const files[] = {"environ", "cmdline"};
    for (int i = 0; i < 2; i++) {
        char path[64], text[4096] = "";
        snprintf(path, sizeof path, "/proc/%d/%s", (int)worker, files[i]);
        int fd = open(path, O_RDONLY);
        ssize_t size = fd >= 0 ? read(fd, text, sizeof text) : 0; /* who may not look sees nothing either */
        for (ssize_t at = i ? (ssize_t)sizeof "symloom worker" : 0; at < size; at++)
            assert_int_equal(text[at], 0);
        if (fd >= 0)
            close(fd);
    }
    assert_string_equal(getenv("SYMLOOM_TEST_SECRET"), "secret"); /* of this process it is not */
}

TEST(a_worker_has_no_descriptors_but_its_own)
{
    assert_int_equal(run_deed(pool, TELL_DESCRIPTORS, 0).result.value, 3);
}

static void assert_killed(enum deed deed, uint64_t number)
{
    struct test_answer answer = run_deed(pool, deed, number);
    assert_int_equal(answer.result.breached, 0);
    assert_int_equal(answer.code, SL_MALFORMED);
    assert_string_equal(answer.error.message, "the reader crashed on this file: signal 31 (SIGSYS)");
    assert_true(answer.outcome.is_death);
}

TEST(system_calls_that_reach_out_end_the_worker)
{
    static const enum deed deeds[] = {CALL_SOCKET,       CALL_EXECVE,          CALL_PTRACE,       CALL_UNSHARE,
                                      CALL_CODE_MAPPING, CALL_CODE_PROTECTION, CALL_SHARED_MEMORY};
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
        assert_killed(deeds[i], 0);
    assert_killed(CALL_KILL, (uint64_t)getpid());
    assert_killed(CALL_KILL, (uint64_t)worker_pool_counts(pool).launcher);
    assert_killed(CALL_TGKILL, (uint64_t)getpid());
    assert_killed(CALL_FORK, 0);
}

/* Those that a sanitizer makes for its report are refused in its build. */
TEST(files_have_no_names_for_a_worker)
{
    assert_int_equal(run_deed(pool, CALL_STAT, 0).result.breached, 0);
    if (confine_has_sanitizer()) {
        assert_int_equal(run_deed(pool, CALL_OPEN, 0).result.breached, 0);
        assert_int_equal(run_deed(pool, CALL_SETRLIMIT, 0).result.breached, 0);
    } else {
        assert_killed(CALL_OPEN, 0);
        assert_killed(CALL_SETRLIMIT, 0);
    }
}

/* ---- crashes ---- */
TEST(a_crash_is_an_answer_about_the_file)
{
    assert_deed(pool, READ_NOWHERE, 0, SL_MALFORMED, "the reader crashed on this file: signal 11 (SIGSEGV)");
    assert_deed(pool, ABORT, 0, SL_MALFORMED, "the reader crashed on this file: signal 6 (SIGABRT)");
    assert_deed(pool, END_PROCESS, 0, SL_MALFORMED, "the reader crashed on this file: status 3");
    assert_deed(pool, RAISE_SIGNAL, SIGBUS, SL_INTERNAL,
                "a file could not be read while it was converted: was it truncated?");
    assert_deed(pool, OVERFLOW_STACK, 0, SL_MALFORMED, "the reader crashed on this file: signal 11 (SIGSEGV)");
    assert_deed(pool, READ_OUT_OF_BOUNDS, UINT64_C(1) << 40, SL_MALFORMED,
                confine_has_sanitizer() ? NULL : "the reader crashed on this file: signal 11 (SIGSEGV)");
}

#ifdef __SANITIZE_ADDRESS__
TEST(what_a_sanitizer_finds_ends_the_worker)
{
    assert_deed(pool, READ_OUT_OF_BOUNDS, 64, SL_MALFORMED, "the reader crashed on this file: status 1");
}
#endif

TEST(a_crash_is_logged_with_return_addresses)
{
    char path[] = "/tmp/symloom_worker_log_XXXXXX", text[16384] = "";
    int fd = mkstemp(path);
    struct sl_error error = {.code = SL_OK};
    assert_true(fd >= 0 && log_set_file(path, &error) && log_set_levels("warn"));
    run_deed(pool, READ_NOWHERE, 0);
    log_flush();
    assert_true(read(fd, text, sizeof text - 1) > 0);
    assert_non_null(strstr(text, "a worker ended during a job"));
    assert_non_null(strstr(text, "deed"));
    assert_non_null(strstr(text, "signal 11 (SIGSEGV)"));
    assert_non_null(strstr(text, "unit_worker+0x"));
    assert_non_null(strstr(text, "a test")); /* the file */
    log_set_levels("off");
    log_set_file(NULL, &error);
    close(fd);
    unlink(path);
}

TEST(an_earlier_file_is_not_held_against_a_later_one)
{
    int64_t first = run_deed(pool, TELL_PROCESS, 0).result.value;
    assert_deed(pool, POISON, 0, SL_OK, NULL);
    struct test_answer answer = run_deed(pool, TELL_PROCESS, 0); /* crashes there, and is run again */
    assert_int_equal(answer.code, SL_OK);
    assert_int_not_equal(answer.result.value, first);
    assert_int_equal(worker_pool_counts(pool).ended[WORKER_CRASHED], 1);
}

/* ---- limits ---- */
static void assert_limit(enum deed deed, const struct worker_limits *limits, enum sl_budget_end end,
                         const char *message)
{
    struct test_answer answer = run_deed_within(pool, deed, 0, limits);
    assert_int_equal(answer.code, SL_UNSUPPORTED);
    assert_string_equal(answer.error.message, message);
    assert_int_equal(answer.outcome.end, end);
}

TEST(a_job_ends_with_its_time)
{
    struct worker_limits limits = test_limits;
    limits.max_time_ns = 100000000;
    assert_limit(SPEND_FOR_EVER, &limits, SL_BUDGET_TIME, "the conversion of the file needs more than 100ms of time");
    assert_int_equal(worker_pool_counts(pool).ended[WORKER_OVER_TIME], 0);
    assert_limit(LOOP_FOR_EVER, &limits, SL_BUDGET_TIME, "the conversion of the file needs more than 100ms of time");
    assert_int_equal(worker_pool_counts(pool).ended[WORKER_OVER_TIME], 2); /* a used one, and a new one */
    limits.max_wall_ns = 300000000;
    assert_limit(SLEEP_FOR_EVER, &limits, SL_BUDGET_TIME, "the conversion of the file needs more than 300ms of time");
    assert_int_equal(worker_pool_counts(pool).ended[WORKER_OVER_TIME], 3);
}

TEST(a_thread_that_was_left_behind_costs_nobody_else_time)
{
    struct worker_limits limits = test_limits;
    limits.max_time_ns = 100000000;
    assert_deed(pool, BURN_AFTER_ANSWER, 0, SL_OK, NULL);
    struct test_answer answer =
        run_deed_within(pool, SPREAD_WORK, 4000, &limits); /* two seconds, little of the processor */
    assert_int_equal(answer.code, SL_OK);
    assert_in_range(worker_pool_counts(pool).ended[WORKER_OVER_TIME], 0,
                    1); /* 0: the machine gave the thread hardly any time */
}

TEST(a_result_that_the_check_refuses_breaks_the_protocol)
{
    struct test_answer answer = run_deed(pool, GIVE_BAD_RESULT, 0);
    assert_int_equal(answer.code, SL_MALFORMED);
    assert_int_equal(answer.result.value, 0);
    assert_string_equal(answer.error.message, "the worker process that read this file gave no valid answer");
    assert_in_range(worker_pool_counts(pool).ended[WORKER_BROKE_PROTOCOL], 1, 2); /* a used worker, and a new one */
}

TEST(a_job_ends_with_its_memory)
{
    assert_limit(CHARGE_FOR_EVER, &test_limits, SL_BUDGET_MEMORY, "reading the file needs more than 64 MiB of memory");
    if (!confine_has_sanitizer())
        assert_limit(ALLOCATE_FOR_EVER, &test_limits, SL_BUDGET_MEMORY,
                     "reading the file needs more than 64 MiB of memory");
}

/* ---- the protocol ---- */
TEST(what_is_no_answer_is_refused)
{
    static const enum deed deeds[] = {ANSWER_GARBAGE, ANSWER_WITH_DESCRIPTOR, ANSWER_FOR_ANOTHER, ANSWER_TOO_LONG,
                                      CLOSE_SOCKET};
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
        assert_deed(pool, deeds[i], 0, SL_MALFORMED, "the worker process that read this file gave no valid answer");
}

static void wait_ms(long ms)
{
    struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

TEST(what_a_worker_does_after_its_answer_is_its_own_end)
{
    static const enum deed deeds[] = {ANSWER_TWICE, DIE_AFTER_ANSWER};
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++) {
        int64_t first = run_deed(pool, TELL_PROCESS, 0).result.value;
        assert_deed(pool, deeds[i], 0, SL_OK, NULL);
        wait_ms(100);
        struct test_answer answer = run_deed(pool, TELL_PROCESS, 0);
        assert_int_equal(answer.code, SL_OK);
        assert_int_not_equal(answer.result.value, first);
        wait_until_gone((pid_t)first);
    }
    for (int i = 0; i < 20; i++) { /* while the next job runs, or is handed over */
        assert_deed(pool, deeds[i % 2], 0, SL_OK, NULL);
        wait_ms(i);
        assert_deed(pool, TELL_ARGUMENTS, 0, SL_OK, NULL);
    }
}

/* ---- the end of all ---- */
static void *run_for_ever(void *arg)
{
    static atomic_bool raised;
    struct test_answer *answer = arg;
    const atomic_bool *before = sl_cancel_watch(&raised);
    *answer = run_deed(pool, SLEEP_FOR_EVER, 0);
    sl_cancel_watch(before);
    return NULL;
}

TEST(a_cancelled_thread_comes_back)
{
    static const atomic_bool raised = true;
    const atomic_bool *before = sl_cancel_watch(&raised);
    assert_deed(pool, SLEEP_FOR_EVER, 0, SL_CANCELLED, "cancelled");
    sl_cancel_watch(before);
}

TEST(all_jobs_end_when_the_service_does, .teardown = NULL)
{
    struct test_answer answers[4];
    pthread_t threads[4];
    struct worker_pool *mine = pool;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_for_ever, &answers[i]), 0);
    wait_ms(200);
    worker_pool_abort(mine);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(answers[i].code, SL_CANCELLED);
    }
    worker_pool_close(mine);
    pool = open_pool(&two); /* for the teardown */
    assert_deed(pool, DO_NOTHING, 0, SL_OK, NULL);
}
