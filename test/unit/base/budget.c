/* Budgets of work and memory, and what spends them. */
#include "../check.h"

#include "base/arena.h"
#include "base/account.h"

TEST(exhausted_budget_stays_exhausted)
{
    struct sl_budget budget;
    struct sl_error error;
    uint64_t small = 0;
    sl_budget_init(&budget, 1000);
    while (sl_budget_spend(&budget, 1000))
        small++;
    assert_true(sl_budget_exhausted(&budget));
    assert_false(sl_budget_spend(&budget, 1));
    assert_int_equal(sl_budget_fail(&budget, &error), SL_MALFORMED);
    assert_string_equal(error.message,
                        "reading the file needs more work than allowed for a file of 1000 bytes; it may be damaged");
    sl_budget_init(&budget, 1000);
    sl_budget_grow(&budget, 1000000);
    for (uint64_t i = 0; i < small + 10000; i++)
        assert_true(sl_budget_spend(&budget, 1000));
}

TEST(an_account_is_refilled_while_steps_are_left)
{
    struct sl_budget budget;
    struct sl_account none = {0}, account = {.budget = &budget};
    uint64_t spent = 0;
    sl_budget_init(&budget, 0);
    while (sl_account_spend(&account, 7))
        spent += 7;
    assert_false(sl_account_spend(&account, 1));
    assert_true(spent > 1 << 19 && spent <= 1 << 20);
    for (int i = 0; i < 1000; i++)
        assert_true(sl_account_spend(&none, UINT32_MAX));
}

static bool time_is_up(void *arg)
{
    return ++*(int *)arg > 3;
}

TEST(limits_of_the_caller_give_unsupported)
{
    struct sl_budget budget;
    struct sl_error error;
    int asked = 0;
    sl_budget_init(&budget, 0);
    sl_budget_limit(&budget, 1 << 20, time_is_up, &asked);
    struct sl_arena arena = {.budget = &budget};
    struct sl_account account = {.budget = &budget};
    int *items = NULL;
    size_t capacity = 0;
    assert_true(sl_account_grow(&account, &items, &capacity, 1000, sizeof *items));
    assert_true(sl_account_grow(&account, &items, &capacity, 2000, sizeof *items));
    assert_true(account.bytes >= 2000 * sizeof *items);
    assert_non_null(sl_arena_alloc(&arena, 1 << 19, 1));
    assert_false(sl_budget_exhausted(&budget));
    assert_null(sl_arena_alloc(&arena, 1 << 20, 1));
    assert_int_equal(sl_budget_fail(&budget, &error), SL_UNSUPPORTED);
    assert_string_equal(error.message, "reading the file needs more than 1 MiB of memory");
    sl_arena_free(&arena);
    free(items);
    sl_account_release(&account);
    assert_int_equal(atomic_load(&budget.memory), 1 << 20);
    sl_budget_init(&budget, 0);
    sl_budget_limit(&budget, 0, time_is_up, &asked);
    while (sl_budget_spend(&budget, 1))
        continue;
    assert_int_equal(asked, 4);
    assert_int_equal(sl_budget_fail(&budget, &error), SL_UNSUPPORTED);
}

TEST(failed_account_is_marked)
{
    struct sl_budget budget;
    struct sl_account account = {.budget = &budget};
    sl_budget_init(&budget, 0);
    sl_budget_limit(&budget, 1000, NULL, NULL);
    void *items = sl_account_alloc(&account, 10, 90), *more = NULL;
    size_t capacity = 0;
    assert_true(items && !account.failed);
    assert_null(sl_account_alloc(&account, 2, 90));
    assert_true(account.failed);
    account.failed = false;
    assert_null(sl_account_alloc(&account, SIZE_MAX, 2));
    assert_true(account.failed);
    account.failed = false;
    assert_false(sl_account_grow(&account, &more, &capacity, 2, 90));
    assert_true(account.failed && !more && !capacity && account.bytes == 900);
    sl_account_free(&account, items, 10, 90);
    assert_int_equal(atomic_load(&budget.memory), 1000);
}

TEST(names_are_limited_and_charged)
{
    struct sl_budget budget;
    struct sl_account account = {.budget = &budget};
    size_t size = 2 * SL_MAX_NAME;
    char *text = malloc(size);
    memset(text, 'a', size);
    text[size - 1] = '\0';
    struct sl_bytes table = {(const uint8_t *)text, size};
    sl_budget_init(&budget, size);
    assert_int_equal(sl_account_read_name(&account, table, 0).size, 0);
    assert_int_equal(sl_account_read_name(&account, table, size).size, 0);
    assert_int_equal(sl_account_read_name(&account, table, size - 10).size, 9);
    size_t names = 0;
    while (sl_account_read_name(&account, table, size - SL_MAX_NAME).size == SL_MAX_NAME - 1)
        names++;
    assert_true(names > 10 && names < 1000);
    assert_true(sl_budget_exhausted(&budget));
    free(text);
}
