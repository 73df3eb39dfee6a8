/* Time of the processor, summed over threads. */
#include "../check.h"

#include <pthread.h>
#include <time.h>

#include "core/cpu_clock.h"

static const uint64_t ms = 1000000;

static uint64_t thread_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000 * ms + (uint64_t)time.tv_nsec;
}

static void burn(uint64_t ns)
{
    for (uint64_t begun = thread_ns(); thread_ns() - begun < ns;)
        ;
}

TEST(waiting_takes_no_cpu_time)
{
    struct cpu_clock clock;
    struct timespec nap = {0, 60 * (long)ms};
    cpu_clock_init(&clock, 20 * ms);
    assert_true(cpu_clock_enter(&clock));
    assert_false(cpu_clock_enter(&clock));
    nanosleep(&nap, NULL);
    assert_false(cpu_clock_expired(&clock));
    while (!cpu_clock_expired(&clock))
        burn(ms);
    cpu_clock_leave(&clock);
    assert_true(atomic_load(&clock.spent_ns) > 20 * ms);
}

TEST(work_of_other_clocks_is_not_counted)
{
    struct cpu_clock one, two;
    cpu_clock_init(&one, 20 * ms);
    cpu_clock_init(&two, 20 * ms);
    assert_true(cpu_clock_enter(&one)); /* and never left: a jump out of it */
    assert_true(cpu_clock_enter(&two));
    burn(30 * ms);
    cpu_clock_leave(&two);
    assert_true(cpu_clock_expired(&two));
    assert_false(cpu_clock_expired(&one));
    burn(30 * ms);
    assert_false(cpu_clock_expired(&one));
}

/* Each piece on a thread of its own. */
struct piece {
    void (*work)(void *arg, size_t index, unsigned worker);
    void *arg;
    size_t index;
};

static void *run_piece(void *arg)
{
    struct piece *piece = arg;
    piece->work(piece->arg, piece->index, (unsigned)piece->index);
    return NULL;
}

static void run_threads(const struct sl_parallel *self, size_t count,
                        void (*work)(void *arg, size_t index, unsigned worker), void *arg)
{
    pthread_t threads[4];
    struct piece pieces[4];
    for (size_t i = 0; i < count; i++) {
        pieces[i] = (struct piece){work, arg, i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_piece, &pieces[i]), 0);
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void work_on_piece(void *arg, size_t index, unsigned worker)
{
    burn(10 * ms);
    ((bool *)arg)[index] = true;
}

TEST(time_of_parallel_pieces_is_summed)
{
    const struct sl_parallel threads = {.workers = 4, .run = run_threads};
    struct cpu_parallel parallel;
    struct cpu_clock clock;
    bool done[4] = {false};
    cpu_clock_init(&clock, 39 * ms);
    cpu_parallel_init(&parallel, &threads, &clock);
    assert_true(cpu_clock_enter(&clock));
    sl_parallel_run(&parallel.parallel, 4, work_on_piece, done);
    cpu_clock_leave(&clock);
    assert_true(done[0] && done[1] && done[2] && done[3]);
    assert_true(cpu_clock_expired(&clock));
}
