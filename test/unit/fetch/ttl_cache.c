/* The table of answers in memory: kept for their time, asked for once, forgotten by use. */
#include "../check.h"

#include "core/log.h"
#include "core/loop.h"
#include "fetch/ttl_cache.h"

#define HOUR UINT64_C(3600000000000)
#define MS   UINT64_C(1000000)

static struct sl_arena arena;
static struct ttl_cache memo;
static unsigned asked;
static uint64_t good_for;
static enum sl_code outcome;
static struct fiber_wait_list *gate;

static enum sl_code ask(const void *context, struct sl_buf *text, uint64_t *for_ns, struct sl_error *error)
{
    unsigned number = ++asked;
    if (gate && fiber_wait_on(gate, UINT64_MAX) == FIBER_CANCELLED)
        return sl_fail(error, SL_CANCELLED, "cancelled");
    if (outcome != SL_OK)
        return sl_fail(error, outcome, "no %u", number);
    sl_buf_printf(text, "%s%u", (const char *)context, number);
    *for_ns = good_for;
    return SL_OK;
}

/* The text, or the error's message. */
static const char *get(const char *key)
{
    struct sl_str parts[] = {sl_str(key)}, text = {NULL, 0};
    struct sl_error error = {0};
    enum sl_code code = ttl_cache_get(&memo, parts, 1, ask, key, &arena, &text, &error);
    if (code == SL_CANCELLED)
        return "cancelled";
    return code == SL_OK ? text.data : sl_arena_strndup(&arena, error.message, strlen(error.message));
}

static void run(void (*fn)(void *arg), void *arg);

FIBER_TEST_WITH(entries_are_kept_and_evicted, NULL)
{
    good_for = HOUR;
    assert_string_equal(get("a"), "a1");
    assert_string_equal(get("a"), "a1");
    assert_string_equal(get("b"), "b2");
    assert_string_equal(get("a"), "a1");
    assert_string_equal(get("c"), "c3"); /* two entries: `b` is the one longest unused */
    assert_string_equal(get("a"), "a1");
    assert_string_equal(get("b"), "b4");
    outcome = SL_TIMEOUT;
    assert_string_equal(get("x"), "no 5");
    assert_string_equal(get("x"), "no 6"); /* errors are not kept */
    outcome = SL_OK;
    good_for = 0;
    assert_string_equal(get("y"), "y7");
    assert_string_equal(get("y"), "y8");
    good_for = 30 * MS;
    assert_string_equal(get("z"), "z9");
    while (strcmp(get("z"), "z9") == 0)
        fiber_sleep(5);
    assert_string_equal(get("z"), "z10");
}

FIBER_TEST_WITH(errors_are_kept_but_busy_is_not, NULL)
{
    memo.error_ns = 30 * MS;
    memo.again_ns = HOUR;
    outcome = SL_TIMEOUT;
    assert_string_equal(get("a"), "no 1");
    assert_string_equal(get("a"), "no 1");
    outcome = SL_BUSY; /* says nothing about the key */
    assert_string_equal(get("b"), "no 2");
    assert_string_equal(get("b"), "no 3");
    asked = 1;
    outcome = SL_OK;
    good_for = 30 * MS;
    const char *text;
    while ((text = get("a"))[0] == 'n')
        fiber_sleep(5);
    assert_string_equal(text, "a2");
    outcome = SL_TIMEOUT; /* the renewal fails: what was there stays */
    while (asked == 2) {
        assert_string_equal(get("a"), "a2");
        fiber_sleep(5);
    }
    assert_int_equal(asked, 3);
    for (int i = 0; i < 20; i++) {
        assert_string_equal(get("a"), "a2");
        fiber_sleep(2);
    }
    assert_int_equal(asked, 3);
}

enum { FIBERS = 50 };
static const char *answers[FIBERS];

static void get_in_fiber(void *arg)
{
    const char **answer = arg;
    *answer = get("a");
}

static void asked_once(void *arg)
{
    struct fiber_wait_list closed = {0};
    struct fiber_group group;
    gate = &closed;
    good_for = (uint64_t)(uintptr_t)arg;
    fiber_group_init(&group, NULL);
    for (size_t i = 0; i < FIBERS; i++)
        assert_true(fiber_start(&group, get_in_fiber, &answers[i]));
    while (!closed.first)
        fiber_sleep(1);
    fiber_wake_all(&closed);
    fiber_group_wait(&group);
    for (size_t i = 0; i < FIBERS; i++)
        assert_string_equal(answers[i], outcome == SL_OK ? "a1" : "no 1");
    gate = NULL;
    assert_int_equal(asked, 1);
}

FIBER_TEST_WITH(waiters_share_an_error, NULL)
{
    outcome = SL_TIMEOUT;
    asked_once(NULL);
}

FIBER_TEST_WITH(waiter_takes_over_a_cancelled_lookup, NULL)
{
    struct fiber_wait_list closed = {0};
    struct fiber_group first, second;
    gate = &closed;
    good_for = HOUR;
    fiber_group_init(&first, NULL);
    fiber_group_init(&second, NULL);
    assert_true(fiber_start(&first, get_in_fiber, &answers[0]));
    while (!closed.first)
        fiber_sleep(1);
    for (size_t i = 1; i < FIBERS; i++)
        assert_true(fiber_start(&second, get_in_fiber, &answers[i]));
    fiber_sleep(1);
    fiber_group_cancel(&first);
    fiber_group_wait(&first);
    assert_string_equal(answers[0], "cancelled");
    while (!closed.first)
        fiber_sleep(1);
    fiber_wake_all(&closed);
    fiber_group_wait(&second);
    for (size_t i = 1; i < FIBERS; i++)
        assert_string_equal(answers[i], "a2");
    gate = NULL;
}

FIBER_TEST_WITH(entry_is_renewed_before_it_expires, NULL)
{
    struct sl_str key[] = {SL_STR("a")};
    memo.ahead_ns = HOUR; /* of texts for 200 ms: their second half */
    good_for = 200 * MS;
    assert_int_equal(ttl_cache_left_ms(&memo, key, 1), 0);
    assert_string_equal(get("a"), "a1");
    assert_true(ttl_cache_left_ms(&memo, key, 1) > 100);
    assert_string_equal(get("a"), "a1");
    fiber_sleep(110);
    outcome = SL_TIMEOUT; /* then the first one stays, and is not renewed in vain again and again */
    assert_string_equal(get("a"), "a1");
    assert_string_equal(get("a"), "a1");
    assert_int_equal(asked, 2);
    fiber_sleep(110);
    assert_string_equal(get("a"), "no 3");
}

FIBER_TEST_WITH(one_caller_renews_while_others_use_the_old_value, NULL)
{
    struct fiber_wait_list closed = {0};
    struct fiber_group group;
    memo.ahead_ns = HOUR;
    good_for = 400 * MS;
    fiber_group_init(&group, NULL);
    assert_string_equal(get("a"), "a1");
    fiber_sleep(210);
    gate = &closed;
    assert_true(fiber_start(&group, get_in_fiber, &answers[0]));
    while (!closed.first)
        fiber_sleep(1);
    assert_string_equal(get("a"), "a1");
    fiber_wake_all(&closed);
    fiber_group_wait(&group);
    gate = NULL;
    assert_string_equal(answers[0], "a2");
    assert_string_equal(get("a"), "a2");
}

FIBER_TEST_WITH(key_parts_are_kept_separate, NULL)
{
    struct sl_str one[] = {SL_STR("ab"), SL_STR("c")}, other[] = {SL_STR("a"), SL_STR("bc")}, text;
    good_for = HOUR;
    assert_int_equal(ttl_cache_get(&memo, one, 2, ask, "x", &arena, &text, NULL), SL_OK);
    assert_int_equal(ttl_cache_get(&memo, other, 2, ask, "x", &arena, &text, NULL), SL_OK);
    assert_string_equal(text.data, "x2");
}

static void run(void (*fn)(void *arg), void *arg)
{
    memo = (struct ttl_cache){.capacity = 2};
    asked = 0;
    outcome = SL_OK;
    log_set_levels("off");
    loop_init(2);
    loop_run_fiber(fn, arg);
    ttl_cache_free(&memo);
    sl_arena_free(&arena);
    loop_close();
}

TEST(concurrent_callers_share_one_lookup)
{
    run(asked_once, (void *)(uintptr_t)HOUR);
}
TEST(concurrent_callers_share_one_lookup_of_an_uncached_value)
{
    run(asked_once, NULL);
}
