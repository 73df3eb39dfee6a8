/* The pool: jobs, parallel pieces, faults of mappings. */
#include "../check.h"
#include <unistd.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/parallel.h"
#include "core/loop.h"
#include "core/pool.h"

static void run(void (*fn)(void *arg), unsigned threads)
{
    loop_init(threads);
    loop_run_fiber(fn, NULL);
    loop_close();
}

static void square(void *arg)
{
    int *number = arg;
    assert_null(fiber_self()); /* a pool thread is no fiber */
    *number *= *number;
}

FIBER_TEST_WITH(job_runs_while_its_fiber_waits, 4)
{
    int number = 7;
    struct sl_error error;
    assert_int_equal(pool_run(POOL_CONVERT, square, &number, &error), SL_OK);
    assert_int_equal(number, 49);
    assert_int_equal(pool_busy(), 0);
    assert_int_equal(pool_queued(), 0);
}

/* ---- the job outlives the cancellation of its fiber ---- */
static atomic_int job_ended;

static void slow(void *arg)
{
    usleep(20000);
    atomic_store((atomic_int *)arg, 1);
}

static void run_slow(void *arg)
{
    assert_int_equal(pool_run(POOL_IO, slow, &job_ended, NULL), SL_OK);
    assert_int_equal(atomic_load(&job_ended), 1);
    assert_true(fiber_cancelled());
}

FIBER_TEST_WITH(cancelled_fiber_still_waits_for_its_job, 4)
{
    struct fiber_group group;
    atomic_store(&job_ended, 0);
    fiber_group_init(&group, NULL);
    fiber_start(&group, run_slow, NULL);
    fiber_sleep(0);
    fiber_group_cancel(&group);
    fiber_group_wait(&group);
}

/* ---- work that nobody wants any more ---- */
static struct {
    atomic_bool flag;
    atomic_int rounds;
} unwanted;

static void spend_piece(void *arg, size_t index, unsigned worker)
{
    (void)index, (void)worker;
    while (sl_budget_spend(arg, 1))
        atomic_fetch_add(&unwanted.rounds, 1);
}

static void spend(void *arg)
{
    const struct sl_parallel *parallel = pool_parallel();
    sl_parallel_run(parallel, 4, spend_piece, arg);
    assert_true(sl_budget_exhausted(arg));
    assert_int_equal(sl_budget_fail(arg, NULL), SL_CANCELLED);
    struct sl_arena arena = {0};
    struct sl_buf buf = {0};
    assert_null(sl_arena_strndup(&arena, "x", 1));
    sl_buf_u8(&buf, 1);
    assert_true(buf.failed);
}

static void run_spending(void *arg)
{
    struct sl_error error;
    fiber_set_cancel(&unwanted.flag);
    assert_int_equal(pool_run(POOL_CONVERT, spend, arg, &error), SL_CANCELLED);
    assert_int_equal(pool_run(POOL_CONVERT, square, NULL, &error), SL_CANCELLED); /* it is not begun */
    int number = 3;
    assert_int_equal(pool_run(POOL_IO, square, &number, &error), SL_OK); /* this kind is done to its end */
    fiber_set_cancel(NULL);
    assert_int_equal(pool_run(POOL_CONVERT, square, &number, &error), SL_OK);
    assert_int_equal(number, 81);
}

FIBER_TEST_WITH(abandoned_work_ends_early, 4)
{
    struct fiber_group group;
    struct sl_budget budget;
    sl_budget_init(&budget, 1ull << 50);
    fiber_group_init(&group, NULL);
    fiber_start(&group, run_spending, &budget);
    while (!atomic_load(&unwanted.rounds))
        fiber_sleep(1);
    atomic_store(&unwanted.flag, true);
    fiber_group_wait(&group);
    assert_false(sl_budget_exhausted(&budget)); /* nothing is said of the file */
}

/* ---- parallel ---- */
enum { PIECES = 5000, MAX_WORKERS = 64 };
struct pieces {
    unsigned char done[PIECES];
    atomic_int inside[MAX_WORKERS];
    atomic_uint workers_seen;
    bool nested;
};

static void inner_piece(void *arg, size_t index, unsigned worker)
{
    (void)index, (void)worker;
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void piece(void *arg, size_t index, unsigned worker)
{
    struct pieces *pieces = arg;
    assert_true(worker < pool_parallel()->workers);
    assert_int_equal(atomic_fetch_add(&pieces->inside[worker], 1), 0); /* one thread per number */
    pieces->done[index]++;
    atomic_fetch_or(&pieces->workers_seen, 1u << worker);
    if (pieces->nested && index < 4) {
        atomic_int count = 0;
        sl_parallel_run(pool_parallel(), 100, inner_piece, &count);
        assert_int_equal(atomic_load(&count), 100);
    } else if (index < 200) {
        usleep(200);
    }
    atomic_fetch_sub(&pieces->inside[worker], 1);
}

static void do_pieces(void *arg)
{
    sl_parallel_run(pool_parallel(), PIECES, piece, arg);
}

static void check_pieces(struct pieces *pieces)
{
    for (size_t i = 0; i < PIECES; i++)
        assert_int_equal(pieces->done[i], 1);
}

FIBER_TEST_WITH(parallel_pieces_run_once_each, 4)
{
    static struct pieces pieces;
    memset(&pieces, 0, sizeof pieces);
    assert_int_equal(pool_run(POOL_CONVERT, do_pieces, &pieces, NULL), SL_OK);
    check_pieces(&pieces);
    if (loop_pool_threads() >= 4)
        assert_true((pieces.workers_seen & ~1u) != 0); /* somebody helped */
    memset(&pieces, 0, sizeof pieces);
    pieces.nested = true;
    assert_int_equal(pool_run(POOL_CONVERT, do_pieces, &pieces, NULL), SL_OK);
    check_pieces(&pieces);
    memset(&pieces, 0, sizeof pieces);
    do_pieces(&pieces); /* on the loop's thread: alone, but whole */
    check_pieces(&pieces);
}

/* ---- a mapping whose file shrank ---- */
static void touch(void *arg)
{
    volatile const char *memory = arg;
    (void)memory[0];
}

static void touch_piece(void *arg, size_t index, unsigned worker)
{
    (void)worker;
    if (index == 17)
        touch(arg);
}

static void touch_in_pieces(void *arg)
{
    sl_parallel_run(pool_parallel(), 1000, touch_piece, arg);
}

FIBER_TEST_WITH(truncated_mapped_file_fails_only_the_job, 4)
{
    char path[] = "/tmp/symloom-unit-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    assert_int_equal(ftruncate(fd, 4096), 0);
    void *memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    struct sl_error error;
    assert_int_equal(pool_run(POOL_CONVERT, touch, memory, &error), SL_OK);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pool_run(POOL_CONVERT, touch, memory, &error), SL_INTERNAL);
    assert_int_equal(pool_run(POOL_CONVERT, touch_in_pieces, memory, &error), SL_INTERNAL);
    int number = 3;
    assert_int_equal(pool_run(POOL_CONVERT, square, &number, &error), SL_OK);
    munmap(memory, 4096);
    close(fd);
}

/* ---- work that nobody waits for ---- */
static atomic_int detached_ran;
static int detached_done;

static void work_slowly(void *arg)
{
    (void)arg;
    assert_null(fiber_self());
    usleep(20000);
    atomic_fetch_add(&detached_ran, 1);
}

static void count_done(void *arg)
{
    assert_ptr_equal(arg, &detached_done);
    detached_done++;
}

static void detach_two(void *arg)
{
    (void)arg;
    pool_run_detached(work_slowly, count_done, &detached_done);
    pool_run_detached(work_slowly, NULL, NULL);
    assert_int_equal(atomic_load(&detached_ran), 0);
}

TEST(detached_work_is_done_before_the_loop_is_closed)
{
    run(detach_two, 4);
    assert_int_equal(atomic_load(&detached_ran), 2);
    assert_int_equal(detached_done, 1);
}
