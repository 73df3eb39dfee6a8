/* Fibers: suspension, groups, cancellation, deadlines, wait lists, many at once. */
#include "../check.h"
#include <unistd.h>

#include "core/fiber.h"
#include "core/loop.h"

static void run(void (*fn)(void *arg), void *arg)
{
    loop_init(4);
    loop_run_fiber(fn, arg);
    assert_int_equal(fiber_count(), 0);
    loop_close();
    assert_int_equal(fiber_stacks_allocated(), 0);
}

/* ---- order ---- */
static char trace[64];
static void note(char c)
{
    size_t size = strlen(trace);
    trace[size] = c;
    trace[size + 1] = '\0';
}

static void child(void *arg)
{
    note(*(const char *)arg);
    fiber_sleep(0);
    note((char)(*(const char *)arg + 'A' - 'a'));
}

static void start_two(void *arg)
{
    struct fiber_group group;
    fiber_group_init(&group, NULL);
    assert_true(fiber_start(&group, child, (void *)"a"));
    assert_true(fiber_start(&group, child, (void *)"b"));
    note('1');
    fiber_group_wait(&group);
    note('2');
    assert_int_equal(group.count, 0);
}

TEST(group_wait_runs_fibers_in_order)
{
    trace[0] = '\0';
    run(start_two, NULL);
    assert_string_equal(trace, "1abAB2");
}

static void run_two(void *arg)
{
    struct fiber_group group;
    struct fiber *self = fiber_self();
    fiber_group_init(&group, NULL);
    assert_true(fiber_run(&group, child, (void *)"a"));
    note('1');
    assert_ptr_equal(fiber_self(), self);
    assert_true(fiber_run(&group, child, (void *)"b"));
    note('2');
    assert_ptr_equal(fiber_self(), self);
    fiber_group_wait(&group);
    note('3');
}

TEST(started_fiber_runs_until_its_first_wait)
{
    trace[0] = '\0';
    run(run_two, NULL);
    assert_string_equal(trace, "a1b2AB3");
}

/* ---- cancellation ---- */
struct sleeper {
    struct fiber_wait_list *list;
    bool slept, cancelled;
    enum fiber_wait waited;
};

static void sleep_long(void *arg)
{
    struct sleeper *sleeper = arg;
    sleeper->slept = fiber_sleep(3600 * 1000);
    sleeper->cancelled = fiber_cancelled();
    assert_false(fiber_sleep(1)); /* further operations end at once */
    assert_false(fiber_suspend());
    sleeper->waited = fiber_wait_on(sleeper->list, UINT64_MAX);
}

static void wait_long(void *arg)
{
    struct sleeper *sleeper = arg;
    sleeper->waited = fiber_wait_on(sleeper->list, UINT64_MAX);
}

FIBER_TEST_WITH(cancellation_reaches_children_and_their_waits, NULL)
{
    struct fiber_wait_list list = {0};
    struct sleeper a = {.list = &list, .slept = true}, b = {.list = &list};
    struct fiber_group outer, inner;
    fiber_group_init(&outer, NULL);
    fiber_group_init(&inner, &outer);
    fiber_start(&outer, sleep_long, &a);
    fiber_start(&inner, wait_long, &b);
    fiber_sleep(1);
    assert_non_null(list.first);
    fiber_group_cancel(&outer);
    fiber_group_wait(&inner);
    fiber_group_wait(&outer);
    assert_false(a.slept);
    assert_true(a.cancelled);
    assert_int_equal(a.waited, FIBER_CANCELLED);
    assert_int_equal(b.waited, FIBER_CANCELLED);
    assert_null(list.first);
    struct fiber_group late;
    fiber_group_init(&outer, NULL);
    fiber_group_cancel(&outer);
    fiber_group_init(&late, &outer);
    assert_true(late.cancelled);
    fiber_group_finish(&late);
    assert_null(outer.children);
}

static void expire(void *arg)
{
    struct fiber_wait_list list = {0};
    struct sleeper sleeper = {.list = &list};
    struct fiber_group group;
    fiber_group_init(&group, NULL);
    fiber_group_deadline(&group, 5);
    fiber_start(&group, wait_long, &sleeper);
    fiber_group_wait(&group);
    assert_true(group.expired);
    assert_int_equal(sleeper.waited, FIBER_CANCELLED);

    fiber_group_init(&group, NULL);
    fiber_group_deadline(&group, 3600 * 1000);
    fiber_start(&group, child, (void *)"a");
    fiber_group_wait(&group);
    assert_false(group.expired);
}

TEST(deadline_cancels_its_group)
{
    trace[0] = '\0';
    run(expire, NULL);
}

/* ---- wait lists ---- */
static void wait_and_count(void *arg)
{
    struct sleeper *sleeper = arg;
    sleeper->waited = fiber_wait_on(sleeper->list, UINT64_MAX);
    note('w');
}

static void wake_some(void *arg)
{
    struct fiber_wait_list list = {0};
    struct sleeper waiters[4] = {{.list = &list}, {.list = &list}, {.list = &list}, {.list = &list}};
    struct fiber_group group, one;
    fiber_group_init(&group, NULL);
    fiber_group_init(&one, NULL);
    assert_int_equal(fiber_wait_on(&list, 1), FIBER_TIMED_OUT);
    fiber_start(&one, wait_and_count, &waiters[0]);
    for (int i = 1; i < 4; i++)
        fiber_start(&group, wait_and_count, &waiters[i]);
    fiber_sleep(0);
    fiber_wake_one(&list);
    fiber_group_cancel(&one); /* after the wake: what was handed over is not lost */
    fiber_group_wait(&one);
    assert_string_equal(trace, "w");
    assert_int_equal(waiters[0].waited, FIBER_WOKEN);
    fiber_wake_all(&list);
    fiber_group_wait(&group);
    assert_string_equal(trace, "wwww");
    fiber_wake_one(&list); /* an empty list */
}

TEST(wait_lists_wake_in_order)
{
    trace[0] = '\0';
    run(wake_some, NULL);
}

/* ---- many ---- */
#ifdef __SANITIZE_THREAD__
enum { MANY = 1000 }; /* its run time maps much memory for every fiber */
#else
enum { MANY = 10000 };
#endif
static size_t finished, most;

static void use_stack_and_wait(void *arg)
{
    volatile char frame[4096];
    memset((char *)frame, (int)(uintptr_t)arg, sizeof frame);
    if (fiber_count() > most)
        most = fiber_count();
    struct fiber_wait_list *list = arg;
    assert_int_equal(fiber_wait_on(list, UINT64_MAX), FIBER_WOKEN);
    assert_int_equal(frame[100], (char)(uintptr_t)arg);
    finished++;
}

static void start_many(void *arg)
{
    struct fiber_wait_list list = {0};
    for (int round = 0; round < 2; round++) {
        struct fiber_group group;
        fiber_group_init(&group, NULL);
        for (int i = 0; i < MANY; i++)
            assert_true(fiber_start(&group, use_stack_and_wait, &list));
        fiber_sleep(1);
        fiber_wake_all(&list);
        fiber_group_wait(&group);
    }
    fiber_set_limit(1);
    assert_false(fiber_start(NULL, use_stack_and_wait, &list));
    fiber_set_limit(20000);
}

TEST(ten_thousand_fibers_run_at_once)
{
    finished = most = 0;
    run(start_many, NULL);
    assert_int_equal(finished, 2 * MANY);
    assert_true(most > MANY);
}

/* ---- from callbacks ---- */
struct from_callback {
    struct fiber_group group;
    struct fiber_wait_list started;
};

static void on_timer(uv_timer_t *timer)
{
    struct from_callback *shared = timer->data;
    fiber_start_now(&shared->group, child, (void *)"x");
    note('-');
    fiber_wake_all(&shared->started);
    uv_close((uv_handle_t *)timer, NULL);
}

static void start_from_callback(void *arg)
{
    struct from_callback shared = {0};
    static uv_timer_t timer;
    fiber_group_init(&shared.group, NULL);
    uv_timer_init(loop_get(), &timer);
    timer.data = &shared;
    uv_timer_start(&timer, on_timer, 1, 0);
    assert_int_equal(fiber_wait_on(&shared.started, UINT64_MAX), FIBER_WOKEN);
    fiber_group_wait(&shared.group);
    struct fiber *self = fiber_self();
    fiber_wake(self); /* a running fiber cannot be woken */
    assert_non_null(self);
    fiber_set_request_id(SL_STR("abc"));
    assert_true(sl_str_equal(fiber_request_id(), SL_STR("abc")));
}

TEST(callback_may_start_a_fiber)
{
    trace[0] = '\0';
    run(start_from_callback, NULL);
    assert_string_equal(trace, "x-X");
    assert_null(fiber_self());
    assert_false(fiber_cancelled());
}

struct shared_list {
    int left, done, at_once, most_at_once;
    struct fiber_wait_list closed; /* items wait for it when `waits` */
    bool waits;
};

static void take_some(void *arg)
{
    struct shared_list *list = arg;
    list->at_once++;
    if (list->at_once > list->most_at_once)
        list->most_at_once = list->at_once;
    while (list->left > 0 && !fiber_cancelled()) {
        list->left--;
        list->done += list->waits ? fiber_wait_on(&list->closed, UINT64_MAX) == FIBER_WOKEN : fiber_sleep(1);
    }
    list->at_once--;
}

static bool crew_done;

static void work_as_crew(void *arg)
{
    crew_done = fiber_run_workers(take_some, arg, 3);
}

FIBER_TEST_WITH(crew_shares_a_list_of_work, NULL)
{
    struct shared_list many = {.left = 100}, alone = {.left = 5}, cancelled = {.left = 100, .waits = true};
    assert_true(fiber_run_workers(take_some, &many, 7));
    assert_true(many.done == 100 && many.most_at_once == 8);
    fiber_set_limit(2 * (fiber_count() + 1));
    assert_true(fiber_run_workers(take_some, &alone, 7));
    assert_true(alone.done == 5 && alone.most_at_once == 2); /* helpers leave half of the fibers to others */
    fiber_set_limit(20000);
    struct fiber_group group;
    fiber_group_init(&group, NULL);
    crew_done = true;
    assert_true(fiber_start(&group, work_as_crew, &cancelled));
    while (cancelled.at_once < 4)
        fiber_sleep(1);
    fiber_group_cancel(&group);
    fiber_group_wait(&group);
    assert_false(crew_done);
    assert_true(cancelled.left == 96 && cancelled.done == 0 && cancelled.at_once == 0);
}
