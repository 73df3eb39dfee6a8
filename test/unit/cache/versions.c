/* Entries of older versions: used, and refreshed in the background. */
#include "plan.h"

/* ---- versions ---- */

/* Until the computations that run in the background have ended. */
static void settle(const unsigned *runs, unsigned expected, const char *gone)
{
    for (int i = 0; i < 1000 && (*runs < expected || exists(gone)); i++)
        assert_true(fiber_sleep(5));
}

FIBER_TEST(old_versions_are_served_until_refreshed)
{
    unsigned runs = 0;
    struct fiber_wait_list gate = {0};
    struct plan plan = {.runs = &runs, .write = "new", .gate = &gate};
    put_file(path_in(&kind, "a", 1), "ancient", 0);
    put_file(path_in(&kind, "a", 2), "old", 0);
    put_file(side_of(path_in(&kind, "a", 2)), "{\"scope\":null,\"time_created\":1}", 0);
    double fallbacks_before = metric_total(METRIC_CACHE_FALLBACKS, "objects", "2", NULL);
    get(&kind, "a", &plan, "old");
    get(&kind, "a", &plan, "old");
    assert_true(metric_total(METRIC_CACHE_FALLBACKS, "objects", "2", NULL) == fallbacks_before + 1); /* then memory */
    while (!gate.first)
        assert_true(fiber_sleep(1));
    fiber_wake_all(&gate);
    settle(&runs, 1, path_in(&kind, "a", 2));
    assert_false(exists(path_in(&kind, "a", 1)) || exists(path_in(&kind, "a", 2)) ||
                 exists(side_of(path_in(&kind, "a", 2))));
    while (true) { /* the memory entry is replaced in the turn after the files */
        struct cache_key key = key_of("a");
        struct cache_item *item;
        assert_int_equal(cache_get(&kind, &key, &plan, &item, NULL), SL_OK);
        bool new = item->mapping.bytes.size == 3 && memcmp(item->mapping.bytes.data, "new", 3) == 0;
        cache_release(item);
        if (new)
            break;
        assert_true(fiber_sleep(1));
    }
    assert_int_equal(runs, 1);
    put_file(path_in(&kind, "b", 3), "", 0);
    put_file(path_in(&kind, "b", 2), "contents", 0);
    get_error(&kind, "b", &plan, SL_NOT_FOUND, NULL);
    assert_int_equal(runs, 1);
}

FIBER_TEST(number_of_refreshes_is_limited, test_config.downloaded.max_lazy = 1)
{
    unsigned runs = 0;
    struct fiber_wait_list gate = {0};
    struct plan plan = {.runs = &runs, .write = "new", .gate = &gate};
    static const char *const keys[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++)
        put_file(path_in(&kind, keys[i], 2), "old", 0);
    for (int i = 0; i < 3; i++)
        get(&kind, keys[i], &plan, "old");
    while (!gate.first)
        assert_true(fiber_sleep(1));
    assert_int_equal(runs, 1);
    get(&kind, "b", &plan, "old");
    get(&kind, "c", &plan, "old");
    fiber_wake_all(&gate);
    settle(&runs, 1, path_in(&kind, "a", 2));
    assert_int_equal(runs, 1);
    assert_true(exists(path_in(&kind, "b", 2)) && exists(path_in(&kind, "c", 2)));
}

FIBER_TEST(failed_refresh_keeps_the_old_entry)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .code = SL_NOT_FOUND};
    put_file(path_in(&kind, "a", 2), "old", 0);
    get(&kind, "a", &plan, "old");
    for (int i = 0; i < 1000 && !runs; i++)
        assert_true(fiber_sleep(1));
    get(&kind, "a", &plan, "old");
    assert_true(exists(path_in(&kind, "a", 2)));
    assert_false(exists(path_in(&kind, "a", 3)));
    /* Pushed out of memory, the key reaches the disk again, but is not tried again. */
    for (int i = 0; i < 2000; i++) {
        char other[24];
        snprintf(other, sizeof other, "other%d", i);
        struct plan fill = {.runs = &(unsigned){0}, .write = "x"};
        get(&kind, other, &fill, "x");
    }
    get(&kind, "a", &plan, "old");
    assert_true(fiber_sleep(20));
    assert_int_equal(runs, 1);
}

static void wait_for_runs(const unsigned *runs, unsigned expected)
{
    for (int i = 0; i < 5000 && *runs < expected; i++)
        assert_true(fiber_sleep(1));
    assert_int_equal(*runs, expected);
}

/* The refresh of a key ended long ago and is among those that are dropped when the next one of this key begins. */
FIBER_TEST(refresh_begins_again_when_ended_ones_are_dropped, test_config.downloaded.retry_misses_after = MS,
           test_config.downloaded.max_lazy = 2000, test_config.default_capacity = 16)
{
    enum { REMEMBERED = 1024 };
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .code = SL_NOT_FOUND};
    char name[24];
    for (unsigned i = 0; i < REMEMBERED; i++) {
        snprintf(name, sizeof name, "old%u", i);
        put_file(path_in(&kind, name, 2), "old", 0);
        get(&kind, name, &plan, "old");
    }
    wait_for_runs(&runs, REMEMBERED);
    assert_true(fiber_sleep(3)); /* until the pause of the last one is over */
    get(&kind, "old0", &plan, "old");
    wait_for_runs(&runs, REMEMBERED + 1);
}

TEST_FILE(.begin = loop_begin, .end = loop_end, .setup = dir_setup, .teardown = dir_teardown);
