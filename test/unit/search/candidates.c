/* Lists of candidates. */
#include "../check.h"

#include "search/impl.h"

static struct candidate row(const char *source, const char *location, enum sl_code download)
{
    return (struct candidate){.source = sl_str(source), .location = sl_str(location), .download = download};
}

TEST(candidates_are_merged)
{
    struct candidate first[] = {row("b", "x", SL_OK), row("a", "y", SL_NOT_FOUND), row("a", "nowhere", SL_NOT_FOUND)};
    first[0].debug.set = true;
    struct candidate second[] = {row("b", "x", SL_TIMEOUT), row("a", "x", SL_OK), row("a", "x", SL_MALFORMED),
                                 row("B", "z", SL_OK)};
    second[1].unwind.set = true;
    struct candidate_list list = {0};
    struct sl_arena arena = {0};
    candidates_merge(&arena, &list, &(struct candidate_list){first, 3, 3});
    assert_int_equal(list.count, 3);
    candidates_merge(&arena, &list, &(struct candidate_list){second, 4, 4});
    candidates_merge(&arena, &list, &(struct candidate_list){0});
    static const char *const expected[][2] = {{"B", "z"}, {"a", "nowhere"}, {"a", "x"}, {"a", "y"}, {"b", "x"}};
    assert_int_equal(list.count, 5);
    for (int i = 0; i < 5; i++) {
        assert_true(sl_str_equal(list.items[i].source, sl_str(expected[i][0])));
        assert_true(sl_str_equal(list.items[i].location, sl_str(expected[i][1])));
    }
    assert_int_equal(list.items[2].download, SL_MALFORMED); /* the later one */
    assert_true(list.items[2].unwind.set);
    assert_int_equal(list.items[4].download, SL_TIMEOUT);
    assert_true(list.items[4].debug.set); /* kept from the earlier one */
    sl_arena_free(&arena);
}

TEST_FILE();
