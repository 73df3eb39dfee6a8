/* Which of overlapping ranges addresses belong to. */
#include "../check.h"

#include "base/ranges.h"

enum { MAX_RANGES = 40 };

static struct sl_arena arena;
static struct sl_range_map map;

static void build(const struct sl_range *ranges, size_t count)
{
    assert_true(sl_range_map_build(&arena, ranges, count, &map));
    assert_true(map.count <= 2 * count);
    for (size_t i = 0; i < map.count; i++) {
        assert_true(map.pieces[i].first <= map.pieces[i].last);
        assert_true(!i || map.pieces[i].first > map.pieces[i - 1].last);
    }
}

static int forget(void **state)
{
    sl_arena_free(&arena);
    return 0;
}

static void expect_owners(const struct sl_range *ranges, size_t count, uint64_t from, const char *owners)
{
    build(ranges, count);
    for (size_t i = 0; owners[i]; i++)
        assert_int_equal(sl_range_map_find(&map, from + i), owners[i] == '.' ? SL_NO_RANGE : (size_t)(owners[i] - 'a'));
}

TEST(address_belongs_to_the_smallest_range)
{
    build(NULL, 0);
    assert_int_equal(sl_range_map_find(&map, 0), SL_NO_RANGE);
    assert_int_equal(sl_range_map_find(&map, UINT64_MAX), SL_NO_RANGE);
    expect_owners((struct sl_range[]){{10, 12}, {13, 13}, {15, 16}}, 3, 9, ".aaab.cc.");
    assert_int_equal(map.count, 3);
    expect_owners((struct sl_range[]){{10, 19}, {12, 17}, {14, 15}}, 3, 9, ".aabbccbbaa.");
    expect_owners((struct sl_range[]){{10, 14}, {10, 19}}, 2, 9, ".aaaaabbbbb.");
    expect_owners((struct sl_range[]){{10, 19}, {15, 19}}, 2, 9, ".aaaaabbbbb.");
    expect_owners((struct sl_range[]){{10, 16}, {14, 18}}, 2, 9, ".aaaabbbbb.");
    expect_owners((struct sl_range[]){{10, 14}, {13, 19}}, 2, 9, ".aaaaabbbbb.");
    expect_owners((struct sl_range[]){{10, 12}, {10, 12}, {10, 12}}, 3, 9, ".aaa.");
    assert_int_equal(map.count, 1);
}

TEST(preferred_ranges_win_over_smaller_ones)
{
    expect_owners((struct sl_range[]){{10, 19, true}, {12, 17, false}}, 2, 9, ".aaaaaaaaaa.");
    assert_int_equal(map.count, 1);
    expect_owners((struct sl_range[]){{10, 19, false}, {12, 17, true}}, 2, 9, ".aabbbbbbaa.");
    expect_owners((struct sl_range[]){{10, 19, true}, {12, 17, false}, {14, 15, true}}, 3, 9, ".aaaaccaaaa.");
    expect_owners((struct sl_range[]){{10, 12, false}, {10, 12, true}}, 2, 9, ".bbb.");
    expect_owners((struct sl_range[]){{10, 16, true}, {14, 18, false}}, 2, 9, ".aaaaaaabb.");
}

TEST(ranges_reach_both_ends_of_the_address_space)
{
    expect_owners((struct sl_range[]){{0, 0}, {UINT64_MAX, UINT64_MAX}}, 2, 0, "a.");
    assert_int_equal(sl_range_map_find(&map, UINT64_MAX), 1);
    assert_int_equal(sl_range_map_find(&map, UINT64_MAX - 1), SL_NO_RANGE);
    expect_owners((struct sl_range[]){{0, UINT64_MAX}, {5, 6}}, 2, 4, "abba");
    assert_int_equal(sl_range_map_find(&map, UINT64_MAX), 0);
}

/* As the sweep must answer, one range after the other. */
static size_t owner_of(const struct sl_range *ranges, size_t count, uint64_t address)
{
    size_t best = SL_NO_RANGE;
    for (size_t i = 0; i < count; i++) {
        if (address < ranges[i].first || address > ranges[i].last)
            continue;
        if (best == SL_NO_RANGE || ranges[i].is_preferred > ranges[best].is_preferred ||
            (ranges[i].is_preferred == ranges[best].is_preferred &&
             ranges[i].last - ranges[i].first < ranges[best].last - ranges[best].first))
            best = i;
    }
    return best;
}

TEST(random_ranges_agree_with_a_linear_search)
{
    uint64_t seed = 1;
    for (int round = 0; round < 300; round++) {
        struct sl_range ranges[MAX_RANGES];
        size_t count = (size_t)round % MAX_RANGES;
        uint64_t first = 0;
        for (size_t i = 0; i < count; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            first += seed >> 62;
            ranges[i] = (struct sl_range){first, first + (seed >> 40) % 24, seed >> 33 & 1};
        }
        build(ranges, count);
        for (uint64_t address = 0; address < first + 30; address++)
            assert_int_equal(sl_range_map_find(&map, address), owner_of(ranges, count, address));
    }
}

TEST_FILE(.teardown = forget);
