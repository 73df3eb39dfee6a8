/* Fibers that walk over stacks need the same modules: each is looked for once. There are no sources, so that a use has
 * nothing to choose from, and finds by its own step. */
#include "../../check.h"

#include "api/native/native.h"
#include "core/loop.h"
#include "catalog/catalog.h"
#include "search/impl.h"

enum { MODULES = 2, WALKERS = 5 };

static unsigned asked, answered;
static enum sl_code answer; /* of those that ask now */
static struct fiber_wait_list gate;
static struct sl_arena arena;
static struct config config;

static void wait_at_gate(struct search *search)
{
    struct search_result *found = search->result;
    enum sl_code code = answer;
    if (fiber_wait_on(&gate, UINT64_MAX) == FIBER_WOKEN)
        found->code = code;
}

static void count_and_wait(struct search *search)
{
    asked++;
    search_run_in_fiber(search, wait_at_gate);
}

static const struct search_hooks steps = {.otherwise = count_and_wait};
static const struct search_target unwinding = {.purpose = PURPOSE_UNWIND, .steps = &steps};
static const struct search_target debugging = {.purpose = PURPOSE_DEBUG, .steps = &steps};
static const struct search_target *const uses[] = {&unwinding, &debugging};

static const struct object_id ids[MODULES] = {{.type = OBJECT_ELF, .code_id = SL_STR("01234567")},
                                              {.type = OBJECT_ELF, .code_id = SL_STR("89abcdef")}};
static struct module_needs needs;

struct walker {
    const struct search_result *found[MODULES][2];
};

static void walk(void *arg)
{
    struct walker *walker = arg;
    for (size_t m = 0; m < MODULES; m++)
        for (size_t u = 0; u < 2; u++)
            walker->found[m][u] = module_needs_get(&needs, m, uses[u]);
    answered++;
}

static void open_gate_until(unsigned wanted)
{
    while (answered < wanted) {
        fiber_sleep(1);
        fiber_wake_all(&gate);
    }
}

static void begin(enum sl_code code)
{
    asked = answered = 0;
    answer = code;
    needs = (struct module_needs){.where = {.scope = SL_STR("global"), .arena = &arena}, .ids = ids, .count = MODULES};
}

static void end(void)
{
    module_needs_release(&needs);
    sl_arena_free(&arena);
}

static void run(void (*body)(void *arg))
{
    loop_init(2);
    catalog_init(&config);
    loop_run_fiber(body, NULL);
    catalog_close();
    loop_close();
}

/* ---- tests; what they find is judged outside of fibers ---- */
static struct walker walkers[WALKERS];

static void many_body(void *arg)
{
    struct fiber_group group;
    begin(SL_MALFORMED);
    fiber_group_init(&group, NULL);
    for (size_t i = 0; i < WALKERS; i++)
        fiber_start(&group, walk, &walkers[i]);
    open_gate_until(WALKERS);
    fiber_group_wait(&group);
}

TEST(walkers_share_one_lookup_of_a_module)
{
    run(many_body);
    assert_int_equal(answered, WALKERS);
    assert_int_equal(asked, MODULES * 2);
    for (size_t m = 0; m < MODULES; m++)
        for (size_t u = 0; u < 2; u++) {
            assert_int_equal(walkers[0].found[m][u]->code, SL_MALFORMED);
            for (size_t i = 1; i < WALKERS; i++)
                assert_ptr_equal(walkers[i].found[m][u], walkers[0].found[m][u]);
        }
    assert_ptr_not_equal(walkers[0].found[0][0], walkers[0].found[1][0]);
    assert_ptr_not_equal(walkers[0].found[0][0], walkers[0].found[0][1]);
    end();
}

static const struct search_result *of_first, *of_second;

static void need_first(void *arg)
{
    of_first = module_needs_get(&needs, 0, &unwinding);
}

static void need_second(void *arg)
{
    of_second = module_needs_get(&needs, 0, &unwinding);
    answered++;
}

static void cancelled_body(void *arg)
{
    struct fiber_group first, second;
    begin(SL_MALFORMED);
    fiber_group_init(&first, NULL);
    fiber_group_init(&second, NULL);
    fiber_start(&first, need_first, NULL);
    fiber_sleep(1);
    fiber_start(&second, need_second, NULL); /* joins */
    fiber_sleep(1);
    fiber_group_cancel(&first);
    fiber_group_wait(&first);
    open_gate_until(1);
    fiber_group_wait(&second);
}

TEST(waiter_of_a_cancelled_lookup_asks_again)
{
    run(cancelled_body);
    assert_int_equal(asked, 2);
    assert_int_equal(of_first->code, SL_CANCELLED);
    assert_int_equal(of_second->code, SL_MALFORMED);
    end();
}

static void busy_body(void *arg)
{
    struct fiber_group group;
    static const enum sl_code codes[] = {SL_BUSY, SL_NOT_FOUND};
    begin(SL_OK);
    for (size_t i = 0; i < 3; i++) {
        fiber_group_init(&group, NULL);
        answer = codes[i > 0];
        fiber_start(&group, i ? need_second : need_first, NULL);
        while (asked <= i && i < 2)
            fiber_sleep(1);
        fiber_sleep(1);
        fiber_wake_all(&gate);
        fiber_group_wait(&group);
    }
}

TEST(busy_lookup_is_not_cached)
{
    run(busy_body);
    assert_int_equal(asked, 2);
    assert_int_equal(of_first->code, SL_BUSY);
    assert_int_equal(of_second->code, SL_NOT_FOUND);
    end();
}

static void crowd_body(void *arg)
{
    struct fiber_group group;
    begin(SL_BUSY);
    fiber_group_init(&group, NULL);
    fiber_start(&group, need_first, NULL);
    for (size_t i = 0; i < WALKERS; i++)
        fiber_start(&group, need_second, NULL);
    open_gate_until(WALKERS);
    fiber_group_wait(&group);
}

TEST(waiters_of_a_busy_lookup_get_busy)
{
    run(crowd_body);
    assert_int_equal(asked, 1);
    assert_int_equal(of_first->code, SL_BUSY);
    assert_int_equal(of_second->code, SL_BUSY);
    end();
}
