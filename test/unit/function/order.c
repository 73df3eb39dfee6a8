/* Sorting nearly sorted lists: against a plain insertion sort, with equal keys in the order given. */
#include "../check.h"

#include "function/order.h"

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void sort_plainly(struct sl_ordered *items, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j; j--) {
            struct sl_ordered *a = &items[j - 1], *b = &items[j], t = *a;
            if (a->key < b->key || (a->key == b->key && a->minor <= b->minor))
                break;
            *a = *b;
            *b = t;
        }
}

static void check(const struct sl_ordered *items, size_t count)
{
    struct sl_ordered *sorted = calloc(count + 1, sizeof *sorted), *scratch = calloc(count + 1, sizeof *scratch);
    struct sl_ordered *expected = calloc(count + 1, sizeof *expected);
    for (size_t i = 0; i < count; i++)
        sorted[i] = expected[i] = items[i];
    sl_order(sorted, scratch, count);
    sort_plainly(expected, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(sorted[i].key, expected[i].key);
        assert_int_equal(sorted[i].minor, expected[i].minor);
        assert_int_equal(sorted[i].index, expected[i].index);
    }
    free(sorted);
    free(scratch);
    free(expected);
}

/* Lists made of ascending ones of a few sizes, as inlined calls give them, and lists without any order. */
TEST(run_merge_equals_a_plain_sort)
{
    static struct sl_ordered items[700];
    uint32_t random = 1;
    for (size_t run = 1; run <= 64; run *= 2)
        for (size_t count = 0; count < 700; count += 1 + count / 3) {
            uint64_t key = 0;
            for (size_t i = 0; i < count; i++) {
                key = i % run ? key + next_random(&random) % 3 : next_random(&random) % 200;
                items[i] = (struct sl_ordered){key, next_random(&random) % 2, (uint32_t)i};
            }
            check(items, count);
        }
}

TEST(extreme_keys_are_sorted)
{
    static struct sl_ordered items[512];
    for (size_t i = 0; i < 512; i++)
        items[i] = (struct sl_ordered){UINT64_MAX - i, 0, (uint32_t)i};
    check(items, 512);
    for (size_t i = 0; i < 512; i++)
        items[i] = (struct sl_ordered){i % 2 ? UINT64_MAX : 0, UINT32_MAX, (uint32_t)i};
    check(items, 512);
}
