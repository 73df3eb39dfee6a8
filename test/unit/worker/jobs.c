/* Jobs of well-behaved functions: what goes in and out, how many workers there are, how they are replaced. */
#include "functions.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include "core/log.h"

static const struct worker_settings two = {.max_workers = 2, .warm = 1, .max_memory = 64 << 20, .max_threads = 4};
static struct worker_pool *pool;

static int open_two(void **state)
{
    log_set_levels("off");
    pool = open_pool(&two);
    return 0;
}

static int close_it(void **state)
{
    pid_t launcher = worker_pool_counts(pool).launcher;
    worker_pool_close(pool);
    wait_until_gone(launcher);
    return 0;
}

TEST_FILE(.setup = open_two, .teardown = close_it);

static enum sl_code run_sum(const struct worker_input *inputs, size_t count, int out, struct sum_result *result,
                            struct sl_error *error)
{
    struct worker_outcome outcome;
    struct worker_call call = {inputs, count, .out = out, .limits = test_limits};
    return worker_run(pool, &test_functions[SUM], &call, result, &outcome, error);
}

static int make_file(const char *text)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    return fd;
}

TEST(inputs_and_output_are_handed_over)
{
    struct sum_result result;
    struct sl_error error = {.code = SL_OK};
    int file = make_file("abc"), out = make_file("");
    struct worker_input inputs[] = {{{(const uint8_t *)"abc", 3}, file, 3},
                                    {{NULL, 0}, -1, 9},
                                    {{(const uint8_t *)"\1\2", 2}, -1, 5},
                                    {{(const uint8_t *)"", 0}, -1, 6}};
    unsigned before = count_descriptors();
    for (int i = 0; i < 20; i++) {
        assert_int_equal(run_sum(inputs, 4, out, &result, &error), SL_OK);
        assert_int_equal(result.sum, 'a' + 'b' + 'c' + 3);
        assert_int_equal(result.roles, 3056);
        assert_int_equal(result.written, 0);
    }
    char text[8] = "";
    assert_int_equal(pread(out, text, 7, 0), 7);
    assert_string_equal(text, "written");
    assert_in_range(count_descriptors(), before, before + 4); /* those of a second worker */
    close(file);
    close(out);
}

TEST(a_scratch_file_can_be_written)
{
    struct sum_result result;
    struct sl_error error = {.code = SL_OK};
    char text[8] = "";
    int scratch = make_file(""), file = make_file("ab");
    struct worker_input inputs[] = {{{NULL, 0}, scratch, 3, true}, {{NULL, 0}, file, 4}};
    assert_int_equal(run_sum(inputs, 2, -1, &result, &error), SL_OK);
    assert_int_equal(result.sum, 'a' + 'b');
    assert_int_equal(result.written, 2); /* its first byte, and its size */
    assert_int_equal(pread(scratch, text, 1, 0), 1);
    assert_string_equal(text, "x");
    close(scratch);
    close(file);
}

static void assert_written(int fd)
{
    char text[16] = "";
    assert_int_equal(pread(fd, text, sizeof text - 1, 0), 7);
    assert_string_equal(text, "written");
    close(fd);
}

/* A job that is repeated in a new worker does not find what the worker before it has written, and begins at the same position. */
TEST(repeated_jobs_begin_with_empty_files)
{
    struct deed_options options = {.deed = WRITE_FILES};
    struct deed_result result;
    struct worker_outcome outcome;
    struct sl_error error = {.code = SL_OK};
    int out = make_file(""), scratch = make_file("");
    const struct worker_input input = {{NULL, 0}, scratch, 3, true};
    struct worker_call call = {&input, 1, .out = out, .limits = test_limits};
    call.options = (struct sl_bytes){(const uint8_t *)&options, sizeof options};
    assert_int_equal(run_deed(pool, DO_NOTHING, 0).code, SL_OK);
    uint64_t crashes = worker_pool_counts(pool).ended[WORKER_CRASHED];
    assert_int_equal(worker_run(pool, &test_functions[DEED], &call, &result, &outcome, &error), SL_OK);
    assert_int_equal(worker_pool_counts(pool).ended[WORKER_CRASHED], crashes + 1);
    assert_written(out);
    assert_written(scratch);
}

/* Has a worker write the file and returns its pid. */
static pid_t keep_output(int out, bool is_mapped)
{
    struct deed_options options = {.deed = KEEP_OUTPUT, .number = is_mapped};
    struct deed_result result;
    struct worker_outcome outcome;
    struct sl_error error = {.code = SL_OK};
    struct worker_call call = {.out = out, .limits = test_limits};
    call.options = (struct sl_bytes){(const uint8_t *)&options, sizeof options};
    pid_t pid = (pid_t)run_deed(pool, TELL_PROCESS, 0).result.value;
    assert_int_equal(worker_run(pool, &test_functions[DEED], &call, &result, &outcome, &error), SL_OK);
    assert_written(out);
    return pid;
}

TEST(workers_that_keep_their_output_open_are_ended)
{
    int files[] = {fileno(tmpfile()), memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    for (size_t i = 0; i < 2; i++)
        wait_until_gone(keep_output(files[i], true));
}

TEST(workers_that_close_their_output_are_kept)
{
    int files[] = {fileno(tmpfile()), memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    for (size_t i = 0; i < 2; i++) {
        pid_t pid = keep_output(files[i], false);
        assert_int_equal(run_deed(pool, TELL_PROCESS, 0).result.value, pid);
    }
}

TEST(a_launcher_makes_another_one)
{
    struct sl_error error;
    struct worker_launcher *first = worker_launcher_start(test_functions, TEST_FUNCTIONS, NULL, &error);
    struct worker_launcher *second = worker_launcher_split(first, &error);
    assert_non_null(second);
    pid_t pids[] = {worker_launcher_pid(first), worker_launcher_pid(second)};
    struct worker_pool *other = worker_pool_open(second, &two, &error);
    assert_non_null(other);
    assert_deed(other, TELL_ARGUMENTS, 0, SL_OK, NULL);
    worker_pool_close(other);
    wait_until_gone(pids[1]);
    second = worker_launcher_split(first, &error);
    pids[1] = worker_launcher_pid(second);
    worker_launcher_forget(second); /* nobody has it: it ends */
    wait_until_gone(pids[1]);
    second = worker_launcher_split(first, &error);
    pids[1] = worker_launcher_pid(second);
    worker_launcher_end(first); /* its children end with it */
    wait_until_gone(pids[0]);
    wait_until_gone(pids[1]);
    worker_launcher_forget(second);
}

TEST(a_file_is_mapped_whole_when_its_bytes_are_not_given)
{
    struct sum_result result;
    struct sl_error error = {.code = SL_OK};
    int file = make_file("abc"), empty = make_file("");
    struct worker_input inputs[] = {{{NULL, 0}, file, 1}, {{NULL, 0}, empty, 2}};
    assert_int_equal(run_sum(inputs, 2, -1, &result, &error), SL_OK);
    assert_int_equal(result.sum, 'a' + 'b' + 'c');
    assert_int_equal(result.roles, 12);
    close(file);
    close(empty);
}

TEST(small_inputs_are_aligned_copies)
{
    struct sum_result result;
    struct sl_error error = {.code = SL_OK};
    static const uint8_t ones[WORKER_MAX_INLINE] = {1, 1, 1}, more[WORKER_MAX_INLINE + 1] = {1};
    int file = make_file("\1\1");
    struct worker_input inputs[] = {{{ones, 3}, -1, 1},
                                    {{NULL, 0}, file, 2},
                                    {{ones, sizeof ones}, -1, 3},
                                    {{more, sizeof more}, -1, 4},
                                    {{ones, sizeof ones}, -1, 5}}; /* the third does not fit */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run_sum(inputs, 5, -1, &result, &error), SL_OK);
        assert_int_equal(result.sum, 3 + 2 + 3 + 1 + 3);
        assert_int_equal(result.roles, 12345);
        assert_int_equal(result.misaligned, 0);
    }
    close(file);
}

/* As parts of a form are: the worker maps from the page on. */
TEST(inputs_may_be_parts_of_files)
{
    enum { SIZE = WORKER_MAX_INLINE + 1, OFFSET = 5001 };
    static uint8_t contents[OFFSET + SIZE + 3];
    struct sum_result result;
    struct sl_error error = {.code = SL_OK};
    int file = make_file("");
    memset(contents, 9, sizeof contents);
    memset(contents + OFFSET, 1, SIZE);
    assert_int_equal(write(file, contents, sizeof contents), sizeof contents);
    struct worker_input input = {{contents + OFFSET, SIZE}, file, 1, .offset = OFFSET};
    for (int i = 0; i < 20; i++) {
        assert_int_equal(run_sum(&input, 1, -1, &result, &error), SL_OK);
        assert_int_equal(result.sum, SIZE);
    }
    assert_int_equal(result.written, 0); /* it sees no descriptor */
    input.offset += 4;                   /* the file ends before the part does */
    assert_int_equal(run_sum(&input, 1, -1, &result, &error), SL_INTERNAL);
    close(file);
}

TEST(inputs_have_a_limit)
{
    struct sum_result result;
    struct sl_error error = {.code = SL_OK};
    struct worker_settings settings = two;
    settings.max_mapped = 4 << 20;
    worker_pool_configure(pool, &settings);
    int file = make_file("");
    struct worker_input inputs[] = {{{NULL, 0}, file, 1}, {{NULL, 0}, file, 2}};
    assert_int_equal(ftruncate(file, 2 << 20), 0);
    assert_int_equal(run_sum(inputs, 2, -1, &result, &error), SL_OK);
    assert_int_equal(ftruncate(file, (2 << 20) + 1), 0);
    assert_int_equal(run_sum(inputs, 2, -1, &result, &error), SL_UNSUPPORTED);
    assert_string_equal(error.message, "the conversion needs more than 4 MiB of input files");
    close(file);
}

TEST(a_file_that_shrank_is_no_statement_about_it)
{
    struct sum_result result;
    struct sl_error error = {.code = SL_OK};
    static const uint8_t mapped[WORKER_MAX_INLINE + 1]; /* as it was before; too large to be sent as a copy */
    int file = make_file("abc");
    struct worker_input input = {{mapped, sizeof mapped}, file, 1};
    assert_int_equal(run_sum(&input, 1, -1, &result, &error), SL_INTERNAL);
    close(file);
}

TEST(options_result_and_errors_come_as_they_are)
{
    assert_int_equal(run_deed(pool, TELL_ARGUMENTS, 0).result.value, 1);
    struct test_answer answer = run_deed(pool, FAIL_WITH_RESULT, 0);
    assert_int_equal(answer.code, SL_NOT_FOUND);
    assert_string_equal(answer.error.message, "nothing is there");
    assert_int_equal(answer.result.value, 41);
    assert_false(answer.outcome.is_death);
    assert_deed(pool, SORT_MUCH, 0, SL_OK, NULL);
    struct worker_call call = {.out = -1, .limits = test_limits};
    assert_int_equal(worker_run(pool, &test_functions[DEED], &call, &answer.result, &answer.outcome, &answer.error),
                     SL_INTERNAL); /* without options */
}

TEST(work_is_spread_over_threads)
{
    assert_int_equal(run_deed(pool, SPREAD_WORK, 100).result.value, 4950);
    struct worker_limits one = test_limits;
    one.threads = 1;
    assert_int_equal(run_deed_within(pool, SPREAD_WORK, 10, &one).result.value, 45);
    assert_int_equal(run_deed(pool, SPREAD_WORK, 1).result.value, 0);
}

TEST(a_worker_is_kept_for_the_next_job)
{
    int64_t first = run_deed(pool, TELL_PROCESS, 0).result.value;
    assert_true(first > 1 && first != getpid());
    for (int i = 0; i < 10; i++)
        assert_int_equal(run_deed(pool, TELL_PROCESS, 0).result.value, first);
}

TEST(a_worker_is_replaced_after_some_jobs)
{
    struct worker_settings settings = two;
    settings.max_jobs = 2;
    worker_pool_configure(pool, &settings);
    int64_t first = run_deed(pool, TELL_PROCESS, 0).result.value;
    assert_int_equal(run_deed(pool, TELL_PROCESS, 0).result.value, first);
    assert_int_not_equal(run_deed(pool, TELL_PROCESS, 0).result.value, first);
    wait_until_gone((pid_t)first);
}

TEST(a_worker_is_replaced_when_its_heap_has_grown)
{
    struct worker_settings settings = two;
    settings.max_heap = 32 << 20;
    worker_pool_configure(pool, &settings);
    int64_t first = run_deed(pool, TELL_PROCESS, 0).result.value;
    assert_deed(pool, GROW_HEAP, 1 << 20, SL_OK, NULL);
    assert_int_equal(run_deed(pool, TELL_PROCESS, 0).result.value, first);
    assert_deed(pool, GROW_HEAP, 40 << 20, SL_OK, NULL);
    for (int i = 0; i < 16; i++) /* small jobs ask for the size now and then */
        assert_deed(pool, DO_NOTHING, 0, SL_OK, NULL);
    if (!confine_has_sanitizer()) /* whose heap is another */
        assert_int_not_equal(run_deed(pool, TELL_PROCESS, 0).result.value, first);
}

TEST(other_limits_hold_from_the_next_job_on)
{
    int64_t first = run_deed(pool, TELL_PROCESS, 0).result.value;
    worker_pool_configure(pool, &two);
    assert_int_not_equal(run_deed(pool, TELL_PROCESS, 0).result.value, first);
}

/* ---- many threads ---- */
struct runner {
    pthread_t thread;
    unsigned jobs, good;
};

static void *run_jobs(void *arg)
{
    struct runner *runner = arg;
    for (unsigned i = 0; i < runner->jobs; i++)
        runner->good += run_deed(pool, TELL_ARGUMENTS, 0).result.value == 1;
    return NULL;
}

TEST(many_threads_share_few_workers)
{
    struct runner runners[8];
    for (int i = 0; i < 8; i++) {
        runners[i] = (struct runner){.jobs = 200};
        assert_int_equal(pthread_create(&runners[i].thread, NULL, run_jobs, &runners[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(runners[i].thread, NULL);
        assert_int_equal(runners[i].good, 200);
    }
    struct worker_counts counts = worker_pool_counts(pool);
    assert_in_range(counts.live, 1, 2);
    assert_in_range(counts.started, 1, 2);
    assert_true(count_children(counts.launcher) <= 2);
}

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* The same hand over to a thread of this process, as far as locks and wakings go. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int state; /* 1: asked; 0: done; -1: to end */
} desk = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static void *serve_desk(void *arg)
{
    pthread_mutex_lock(&desk.lock);
    while (desk.state >= 0) {
        if (desk.state == 1) {
            desk.state = 0;
            pthread_cond_broadcast(&desk.changed);
        }
        pthread_cond_wait(&desk.changed, &desk.lock);
    }
    pthread_mutex_unlock(&desk.lock);
    return NULL;
}

static double time_thread_jobs(unsigned count)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, serve_desk, NULL), 0);
    double begin = now_us();
    for (unsigned i = 0; i <= count; i++) {
        pthread_mutex_lock(&desk.lock);
        desk.state = i < count ? 1 : -1;
        pthread_cond_broadcast(&desk.changed);
        while (desk.state == 1)
            pthread_cond_wait(&desk.changed, &desk.lock);
        pthread_mutex_unlock(&desk.lock);
    }
    double took = now_us() - begin;
    pthread_join(thread, NULL);
    return took / count;
}

TEST(trivial_jobs_are_measured)
{
    enum { COUNT = 5000 };
    unsigned good = run_deed(pool, DO_NOTHING, 0).code == SL_OK;
    double begin = now_us();
    for (unsigned i = 0; i < COUNT; i++)
        good += run_deed(pool, DO_NOTHING, 0).code == SL_OK;
    double took = (now_us() - begin) / COUNT;
    assert_int_equal(good, COUNT + 1);
    static uint8_t bytes[20 << 10];
    struct worker_input input = {{bytes, sizeof bytes}, -1, 1};
    struct sum_result sum;
    struct sl_error error = {.code = SL_OK};
    begin = now_us();
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(run_sum(&input, 1, -1, &sum, &error), SL_OK);
    print_message("one over 20 KiB of memory takes %.1f us in a worker\n", (now_us() - begin) / COUNT);
    int64_t worker = run_deed(pool, TELL_PROCESS, 0).result.value;
    pid_t launcher = worker_pool_counts(pool).launcher;
    print_message("a trivial job takes %.1f us in a worker, %.1f us in a thread\n", took, time_thread_jobs(COUNT));
    print_message("idle worker: %llu KiB resident, %llu KiB of its own share; launcher: %llu, %llu\n",
                  (unsigned long long)read_memory_kib((pid_t)worker, "Rss:"),
                  (unsigned long long)read_memory_kib((pid_t)worker, "Pss:"),
                  (unsigned long long)read_memory_kib(launcher, "Rss:"),
                  (unsigned long long)read_memory_kib(launcher, "Pss:"));
    struct worker_settings settings = two;
    settings.max_jobs = 1;
    worker_pool_configure(pool, &settings);
    begin = now_us();
    for (unsigned i = 0; i < 200; i++)
        assert_deed(pool, DO_NOTHING, 0, SL_OK, NULL);
    print_message("a trivial job takes %.1f us when each has a new worker\n", (now_us() - begin) / 200);
}
