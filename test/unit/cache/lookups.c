/* Look-ups as records: many wait without a fiber each, scarcity is kept nowhere, and what is incomplete is made again. */
#include "plan.h"

enum { MANY = 500, MAX_FIBERS = 64 + 32 + 2 };

/* ---- records ---- */
struct question {
    struct cache_lookup look;
    struct cache_key key;
    char name[16];
    unsigned answers;
};

static void answered(struct cache_lookup *look)
{
    struct question *question = (struct question *)look;
    question->answers++;
    cache_release(look->item);
}

static struct question questions[MANY];

static void ask_all(struct plan *plan)
{
    for (int i = 0; i < MANY; i++) {
        struct question *q = &questions[i];
        *q = (struct question){.look = {.kind = &kind, .context = plan, .done = answered}};
        snprintf(q->name, sizeof q->name, "many%d", i);
        q->key = key_of(q->name);
        q->look.key = &q->key;
        assert_false(cache_lookup_async(&q->look));
    }
}

static unsigned count_answers(void)
{
    unsigned count = 0;
    for (int i = 0; i < MANY; i++)
        count += questions[i].answers;
    return count;
}

FIBER_TEST(waiting_lookups_take_no_fiber)
{
    struct fiber_wait_list gate = {0};
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "many", .gate = &gate};
    ask_all(&plan);
    while (runs < 64)
        assert_true(fiber_sleep(1));
    assert_true(fiber_sleep(20));
    assert_int_equal(runs, 64); /* the rest waits in line */
    assert_true(fiber_count() <= MAX_FIBERS);
    for (int i = 0; i < MANY / 2; i++)
        cache_lookup_cancel(&questions[i].look);
    while (count_answers() < MANY / 2) {
        fiber_wake_all(&gate);
        assert_true(fiber_sleep(1));
    }
    assert_int_equal(count_answers(), MANY / 2);
    while (runs < MANY) { /* the computations were nobody's, and go on */
        fiber_wake_all(&gate);
        assert_true(fiber_sleep(1));
    }
    cache_drain();
}

/* Admission counts requests; what they need is not refused. */
FIBER_TEST(computations_do_not_count_against_the_fiber_limit)
{
    unsigned runs = 0;
    fiber_set_limit(1);
    get(&kind, "a", &(struct plan){.runs = &runs, .write = "a"}, "a");
    fiber_set_limit(20000);
}

/* ---- what an entry is made from ---- */
static bool base(const void *context, struct sl_arena *arena, const struct cache_kind **of, struct cache_key *key,
                 const void **base_context)
{
    (void)arena;
    const struct plan *plan = context;
    *of = &kind;
    *key = key_of("base");
    *base_context = plan->base;
    return plan->base;
}

static const struct cache_kind derived = {
    .name = "derived", .section = CACHE_DERIVED, .version = 1, .base = base, .compute = compute};

FIBER_TEST(base_entry_is_looked_up_first)
{
    const struct cache_kind *const all[] = {&kind, &derived};
    cache_drain();
    cache_close();
    assert_int_equal(cache_init(&test_config, all, 2, NULL), SL_OK);
    unsigned base_runs = 0, runs = 0;
    struct plan missing = {.runs = &base_runs, .code = SL_NOT_FOUND}, present = {.runs = &base_runs, .write = "base"};
    struct plan of_missing = {.runs = &runs, .write = "made", .base = &missing};
    struct plan of_present = {.runs = &runs, .write = "made", .base = &present};
    get_error(&derived, "x", &of_missing, SL_NOT_FOUND, NULL);
    assert_int_equal(runs, 0); /* there was nothing to make it of */
    assert_true(exists(path_in(&derived, "x", 1)));
    assert_int_equal(directory_remove(in_dir("objects")), 0);
    assert_int_equal(directory_remove(in_dir("derived")), 0);
    cache_drain();
    cache_close();
    assert_int_equal(cache_init(&test_config, all, 2, NULL), SL_OK);
    get(&derived, "x", &of_present, "made");
    assert_int_equal(base_runs, 2);
    assert_int_equal(runs, 1);
    cache_drain();
}

/* ---- scarcity ---- */
FIBER_TEST(busy_is_not_cached)
{
    unsigned runs = 0;
    struct plan scarce = {.runs = &runs, .code = SL_BUSY, .message = "out of memory"};
    get_error(&kind, "a", &scarce, SL_BUSY, "out of memory");
    get_error(&kind, "a", &scarce, SL_BUSY, "out of memory");
    assert_int_equal(runs, 2);
    assert_false(exists(path_in(&kind, "a", 3)));
    get(&kind, "a", &(struct plan){.runs = &runs, .write = "there"}, "there");
}

/* ---- incomplete entries ---- */
FIBER_TEST(incomplete_entry_is_served_until_it_is_complete)
{
    unsigned runs = 0;
    const char *path = path_in(&kind, "a", 3);
    struct plan part = {.runs = &runs, .write = "part", .incomplete = true}, whole = {.runs = &runs, .write = "whole"};
    get(&kind, "a", &part, "part");
    assert_non_null(strstr(file_text(side_of(path)), "\"incomplete\":true"));
    get(&kind, "a", &whole, "part");
    assert_int_equal(runs, 1); /* it is young */
    test_config.upgrade_fallback_after_ns = 0;
    reopen_cache();
    get(&kind, "a", &whole, "part"); /* used, and made again meanwhile */
    while (runs < 2 || strstr(file_text(side_of(path)), "incomplete"))
        assert_true(fiber_sleep(1));
    get(&kind, "a", &whole, "whole");
    assert_int_equal(runs, 2);
}

/* ---- invalidation ---- */
FIBER_TEST(invalidation_cost_is_proportional_to_what_it_names)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "x"};
    struct cache_file one = {SL_STR("s"), SL_STR("file://one")};
    get(&kind, "source: s\nlocation: file://one\n", &plan, "x");
    get(&kind, "source: s\nlocation: file://two\n", &plan, "x");
    assert_int_equal(runs, 2);
    assert_int_equal(directory_remove(in_dir("objects")), 0); /* a look at the disk would find nothing */
    assert_int_equal(cache_invalidate(&one, 1, NULL), SL_OK);
    get(&kind, "source: s\nlocation: file://two\n", &plan, "x");
    assert_int_equal(runs, 2);
    get(&kind, "source: s\nlocation: file://one\n", &plan, "x");
    assert_int_equal(runs, 3);
}

TEST_FILE(.begin = loop_begin, .end = loop_end, .setup = dir_setup, .teardown = dir_teardown);
