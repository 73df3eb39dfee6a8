/* Durations, sizes and value trees: what configuration and requests are made of. */
#include "../check.h"

#include "core/duration.h"
#include "core/value_tree.h"

#define S 1000000000ull

TEST(durations_are_read)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {
        {"0", 0},
        {" 0 ", 0},
        {"1h 30m", 5400 * S},
        {"7days", 604800 * S},
        {"100ms", S / 10},
        {"4m33s", 273 * S},
        {"2h 37min", 9420 * S},
        {" 5 s ", 5 * S},
        {"1M", 2630016 * S},
        {"1m", 60 * S},
        {"1y", 31557600 * S},
        {"3us", 3000},
        {"3\xC2\xB5s", 3000},
        {"1nsec 1usec 1msec 1sec", 1001001001},
        {"1wk", 604800 * S},
        {"0s", 0},
        {"1year 1month 1day 1hr 1min 1s 1ms 1us 1ns", (31557600 + 2630016 + 86400 + 3600 + 60 + 1) * S + 1001001},
    };
    static const char *const bad[] = {"",         " ",     "5",    "0 5s",  "-5s",  "+5s",   "1.5s",
                                      "s",        "5x",    "5S",   "7dayz", "5s 3", "5 s x", "99999999999999999999s",
                                      "600years", "5s,3s", "0x5s", "1h-3m"};
    uint64_t ns;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!duration_parse(sl_str(good[i].text), &ns) || ns != good[i].ns)
            fail_msg("%s", good[i].text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (duration_parse(sl_str(bad[i]), &ns))
            fail_msg("accepted: %s", bad[i]);
}

TEST(durations_are_written)
{
    static const struct {
        uint64_t ns;
        const char *exact, *shortly;
    } cases[] = {
        {0, "0s", "0ns"},
        {273 * S, "4m 33s", "273s"},
        {86400 * S, "1day", "86400s"},
        {2 * 86400 * S, "2days", "172800s"},
        {200000000, "200ms", "200ms"},
        {300 * S, "5m", "300s"},
        {S + S / 2, "1s 500ms", "1.5s"},
        {S + 1, "1s 1ns", "1.000000001s"},
        {1500, "1us 500ns", "1.5\xC2\xB5s"},
        {999, "999ns", "999ns"},
        {(31557600 + 2 * 2630016 + 3600) * S, "1year 2months 1h", "36821232s"},
        {UINT64_MAX, NULL, "18446744073.709551615s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_buf exact = {0}, shortly = {0};
        uint64_t back;
        duration_format(cases[i].ns, &exact);
        duration_format_short(cases[i].ns, &shortly);
        if (cases[i].exact)
            assert_true(sl_str_equal(sl_buf_view(&exact), sl_str(cases[i].exact)));
        assert_true(sl_str_equal(sl_buf_view(&shortly), sl_str(cases[i].shortly)));
        assert_true(duration_parse(sl_buf_view(&exact), &back));
        assert_int_equal(back, cases[i].ns);
        sl_buf_free(&exact);
        sl_buf_free(&shortly);
    }
}

TEST(sizes_are_read)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},   {"17", 17},         {"64KiB", 65536}, {"1GiB", 1 << 30}, {"512 MB", 512000000},
                {"3 B", 3}, {" 2MiB ", 2 << 20}};
    static const char *const bad[] = {
        "", "x", "-1", "1.5MiB", "5XiB", "18446744073709551616", "16777216TiB 1", "99999999TiB", "1 2"};
    uint64_t bytes;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!size_parse(sl_str(good[i].text), &bytes) || bytes != good[i].bytes)
            fail_msg("%s", good[i].text);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (size_parse(sl_str(bad[i]), &bytes))
            fail_msg("accepted: %s", bad[i]);
}

TEST(json_becomes_a_tree_in_an_arena)
{
    struct sl_arena arena = {0}, texts = {0};
    struct sl_json j = sl_json(SL_STR("{\"s\":\"x\\u0000y\",\"n\":-9223372036854775808,\"u\":18446744073709551615,"
                                      "\"d\":1.5,\"l\":[null,true,{}],\"big\":18446744073709551616}"),
                               &texts, false);
    struct value tree, *value = &tree;
    assert_true(value_from_json(&arena, &j, value));
    assert_true(sl_json_end(&j));
    assert_int_equal(value->count, 6);
    assert_int_equal(value_get(value, "s")->string.size, 3);
    assert_memory_equal(value_get(value, "s")->string.data, "x\0y", 3);
    assert_true(value_get(value, "n")->negative);
    assert_true(value_get(value, "n")->integer == 1ull << 63);
    assert_true(value_get(value, "u")->integer == UINT64_MAX && !value_get(value, "u")->negative);
    assert_true(value_get(value, "d")->number == 1.5);
    assert_true(sl_str_equal(value_get(value, "d")->string, SL_STR("1.5")));
    assert_int_equal(value_get(value, "big")->type, VALUE_DOUBLE);
    struct value *list = value_get(value, "l");
    assert_int_equal(list->type, VALUE_LIST);
    assert_int_equal(list->count, 3);
    assert_int_equal(list->items[0].type, VALUE_NULL);
    assert_true(list->items[1].boolean);
    assert_int_equal(list->items[2].type, VALUE_MAP);
    assert_null(value_get(value, "absent"));
    assert_null(value_get(list, "s"));
    assert_null(value_get(NULL, "s"));
    struct sl_str text = value_get(value, "s")->string;
    sl_arena_free(&arena);
    assert_memory_equal(text.data, "x\0y", 3); /* of the reader's arena */
    sl_arena_init(&arena, 1);                  /* out of memory */
    j = sl_json(SL_STR("[1,2,3]"), &texts, false);
    assert_false(value_from_json(&arena, &j, value));
    assert_int_equal(sl_json_code(&j), SL_BUSY);
    sl_arena_free(&arena);
    sl_arena_free(&texts);
}

TEST(problems_are_collected_up_to_a_limit)
{
    struct sl_arena arena = {0};
    struct value_problems problems = {.arena = &arena};
    struct value at = {.line = 3, .column = 7};
    for (int i = 0; i < 40; i++)
        value_problem(&problems, i % 2 ? &at : NULL, i % 4 == 0, "a.b", "number %d", i);
    assert_int_equal(problems.count, 40);
    assert_int_equal(problems.errors, 30);
    assert_true(sl_str_equal(problems.items[39].what, SL_STR("number 39")));
    assert_true(sl_str_equal(problems.items[39].path, SL_STR("a.b")));
    assert_int_equal(problems.items[39].line, 3);
    assert_int_equal(problems.items[0].line, 0);
    assert_true(problems.items[0].warning);
    sl_arena_free(&arena);
}
