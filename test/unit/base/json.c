/* The reader of JSON in files. */
#include "../check.h"

#include "base/json.h"

static struct sl_arena arena;

static int done(void **state)
{
    (void)state;
    sl_arena_free(&arena);
    return 0;
}

static bool valid(const char *text, bool relaxed)
{
    struct sl_json j = sl_json(sl_str(text), &arena, relaxed);
    sl_json_skip(&j);
    return sl_json_end(&j);
}

static void what_is_json(void **state)
{
    (void)state;
    static const char *const good[] = {"{}",   "[]",   " [ 1 , 2.5 , -0 , 1e9 , 0.1E-2 ] ",   "\"a\"",
                                       "true", "null", "{\"a\":{\"b\":[{},[]]},\"c\":false}", "\xEF\xBB\xBF{}"};
    static const char *const bad[] = {"",        "{",       "[1,]",      "{\"a\":1,}", "{a:1}", "[1 2]", "01",
                                      "1.",      "-",       "\"a",       "\"\n\"",     "tru",   "{}{}",  "[}",
                                      "{\"a\"}", "\"\\x\"", "\"\\u12\"", "// c\n{}",   "]",     ",",     "1e"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(valid(good[i], false));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (valid(bad[i], false))
            fail_msg("accepted: %s", bad[i]);
}

static void relaxed_json(void **state)
{
    (void)state;
    assert_true(valid("// c\n{ /* x */ \"a\": [1, 2,], }\n// end", true));
    assert_false(valid("{,}", true));
    assert_false(valid("[1,,]", true));
    assert_false(valid("{} /* open", true));
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    char text[2 * SL_JSON_MAX_DEPTH + 4];
    memset(text, '[', SL_JSON_MAX_DEPTH);
    memset(text + SL_JSON_MAX_DEPTH, ']', SL_JSON_MAX_DEPTH);
    text[2 * SL_JSON_MAX_DEPTH] = '\0';
    assert_true(valid(text, false));
    memset(text, '[', SL_JSON_MAX_DEPTH + 1);
    memset(text + SL_JSON_MAX_DEPTH + 1, ']', SL_JSON_MAX_DEPTH + 1);
    text[2 * SL_JSON_MAX_DEPTH + 2] = '\0';
    assert_false(valid(text, false));
}

static void expect_text(const char *json, struct sl_str wanted)
{
    struct sl_json j = sl_json(sl_str(json), &arena, false);
    struct sl_str text;
    assert_true(sl_json_string(&j, &text));
    assert_true(sl_str_equal(text, wanted));
    assert_true(sl_json_end(&j));
}

static void texts(void **state)
{
    (void)state;
    expect_text("\"plain\"", SL_STR("plain"));
    expect_text("\"C:\\\\a\\/b\\n\\t\\\"\"", SL_STR("C:\\a/b\n\t\""));
    expect_text("\"\\u00e9\\uD83D\\uDE00\\u0000x\"", SL_STR("\xC3\xA9\xF0\x9F\x98\x80\0x"));
    expect_text("\"\\ud83d|\\udc00|\\ud83d\\u0041\"", SL_STR("\xEF\xBF\xBD|\xEF\xBF\xBD|\xEF\xBF\xBD"
                                                             "A"));
}

static void numbers(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        bool whole;
        uint64_t value;
    } rows[] = {{"0", true, 0},    {"42", true, 42},    {"18446744073709551615", true, UINT64_MAX},
                {"-1", false, 0},  {"1.0", false, 0},   {"18446744073709551616", false, 0},
                {"1e3", false, 0}, {"\"7\"", false, 0}, {"null", false, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_json j = sl_json(sl_str(rows[i].json), &arena, false);
        uint64_t value;
        assert_int_equal(sl_json_u64(&j, &value), rows[i].whole);
        if (rows[i].whole)
            assert_int_equal(value, rows[i].value);
        assert_true(sl_json_end(&j));
    }
}

static void walking(void **state)
{
    (void)state;
    struct sl_json j = sl_json(SL_STR("{\"skip\":[1,{\"a\":2}],\"take\":[\"x\",\"y\"],\"last\":{}}"), &arena, false);
    struct sl_str key, text, seen[2];
    size_t count = 0;
    assert_true(sl_json_enter(&j));
    while (sl_json_next(&j, &key))
        if (sl_str_equal(key, SL_STR("take"))) {
            assert_int_equal(sl_json_peek(&j), SL_JSON_ARRAY);
            sl_json_enter(&j);
            while (sl_json_next(&j, &key)) {
                assert_null(key.data);
                assert_true(sl_json_string(&j, &text) && count < 2);
                seen[count++] = text;
            }
        } else {
            sl_json_skip(&j);
        }
    assert_true(sl_json_end(&j));
    assert_int_equal(count, 2);
    assert_true(sl_str_equal(seen[0], SL_STR("x")) && sl_str_equal(seen[1], SL_STR("y")));
}

/* Every beginning of a document ends in a failure and nothing worse. */
static void cut_documents(void **state)
{
    (void)state;
    static const char whole[] = "{\"a\\u00e9\":[1,-2.5e3,true,null,\"x\\n\"],\"b\":{\"c\":{}}}";
    for (size_t size = 0; size < sizeof whole - 1; size++) {
        char *copy = malloc(size + 1);
        memcpy(copy, whole, size);
        struct sl_json j = sl_json((struct sl_str){copy, size}, &arena, true);
        sl_json_skip(&j);
        assert_false(sl_json_end(&j));
        assert_non_null(j.problem);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_json), cmocka_unit_test(relaxed_json), cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(texts),        cmocka_unit_test(numbers),      cmocka_unit_test(walking),
        cmocka_unit_test(cut_documents)};
    return cmocka_run_group_tests(tests, NULL, done);
}
