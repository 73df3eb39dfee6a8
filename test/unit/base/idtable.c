/* The table from items to their ids: base/idtable.h. */
#include "../check.h"

#include "base/idtable.h"

enum { ITEMS = 5000 };

static bool same_number(const void *items, uint32_t id, const void *key)
{
    return ((const uint32_t *)items)[id] == *(const uint32_t *)key;
}

/* The id of a number among `count` items, which gets the next one if it is not there. */
static uint32_t number_id(struct sl_id_table *table, struct sl_account *account, uint32_t *items, uint32_t *count,
                          uint32_t hash, uint32_t number)
{
    struct sl_id_slot *slot = sl_id_table_find(table, account, hash, same_number, items, &number);
    assert_non_null(slot);
    if (sl_id_table_has(table, slot))
        return sl_id_table_id(table, slot);
    items[*count] = number;
    return sl_id_table_put(table, slot, hash, (*count)++);
}

TEST(equal_items_have_one_id_while_the_table_grows)
{
    struct sl_account account = {0};
    struct sl_id_table table = {0};
    uint32_t *items = malloc(ITEMS * sizeof *items), count = 0;
    assert_null(sl_id_table_first_slot(&table, 7));
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < ITEMS; i++)
            assert_int_equal(number_id(&table, &account, items, &count, i * 2654435761u % 4099, i), i);
    assert_int_equal(count, ITEMS);
    assert_int_equal(table.count, ITEMS);
    assert_true(table.capacity >= 2 * ITEMS && account.bytes == table.capacity * sizeof *table.slots);
    sl_account_free(&account, table.slots, table.capacity, sizeof *table.slots);
    assert_int_equal(account.bytes, 0);
    free(items);
}

TEST(cleared_table_is_empty)
{
    struct sl_account account = {0};
    struct sl_id_table table = {0};
    uint32_t items[3], count = 0;
    /* Also where the numbers in the slots come to their end, and begin again. */
    static const uint32_t last[] = {0, 0, INT32_MAX, UINT32_MAX - 8};
    for (size_t round = 0; round < sizeof last / sizeof *last; round++) {
        table.last = last[round] > table.last ? last[round] : table.last;
        sl_id_table_clear(&table);
        assert_int_equal(table.generation, round + 1);
        assert_int_equal(table.count, count = 0);
        for (uint32_t number = 10; number < 13; number++)
            assert_int_equal(number_id(&table, &account, items, &count, number, number), number - 10);
        for (uint32_t number = 10; number < 13; number++)
            assert_int_equal(number_id(&table, &account, items, &count, number, number), number - 10);
        assert_int_equal(count, 3);
    }
    free(table.slots);
}

TEST(colliding_items_are_charged)
{
    struct sl_budget budget;
    struct sl_account account = {.budget = &budget};
    struct sl_id_table table = {0};
    uint32_t *items = malloc(ITEMS * sizeof *items), count = 0;
    sl_budget_init(&budget, 0);
    struct sl_id_slot *slot = NULL;
    for (uint32_t i = 0; i < ITEMS && (slot = sl_id_table_find(&table, &account, 3, same_number, items, &i)); i++) {
        items[count] = i;
        sl_id_table_put(&table, slot, 3, count++);
    }
    assert_null(slot);
    assert_true(account.failed && sl_budget_exhausted(&budget));
    assert_true(count > 1000 && count < 2000); /* half of its square are a million steps */
    sl_account_free(&account, table.slots, table.capacity, sizeof *table.slots);
    free(items);
}
