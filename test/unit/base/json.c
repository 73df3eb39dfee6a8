/* The reader of JSON. */
#include "../check.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/json_fields.h"

static struct sl_arena arena;

static int done(void **state)
{
    sl_arena_free(&arena);
    return 0;
}

static bool valid(const char *text, bool relaxed)
{
    struct sl_json j = sl_json(sl_str(text), &arena, relaxed);
    sl_json_skip(&j);
    return sl_json_end(&j);
}

TEST(valid_json_is_told_from_invalid)
{
    static const char *const good[] = {
        "{}",
        "[]",
        " [ 1 , 2.5 , -0 , 1e9 , 0.1E-2 , 1E+5 , 10 ] ",
        "\"a\"",
        "true",
        "null",
        "{\"a\":{\"b\":[{},[]]},\"c\":false}",
        "\xEF\xBB\xBF{}",
        "99999999999999999999",
        "\"12345678\x7F\"",
        "\"caf\xC3\xA9 \xF0\x9F\x98\x80\"",
        "{\"a\":1,\"a\":2,\"\":3}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00aF\"",
    };
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "[1 2]",
        "01",
        "-01",
        "1.",
        "-",
        "+1",
        ".5",
        "\"a",
        "\"\n\"",
        "tru",
        "nulll",
        "True",
        "{}{}",
        "[}",
        "{\"a\"}",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "// c\n{}",
        "]",
        ",",
        "1e",
        "1e+",
        "'a'",
        "NaN",
        "Infinity",
        "[1] x",
        "[1]]",
        "\"\xFF\"",
        "\"\xC3\"",
        "\"\xC0\x80\"",
        "\"\x1F\"",
        "\"1234567\t\"",
        "{\"\xFF\":1}",
        "\"\\",
        "\"\\u",
        "{\"a\":}",
        "\xC3\xA9",
        "\"\xED\xA0\x80\"",
        "{1:2}",
        "[\"a\":1]",
        "\v1",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!valid(good[i], false))
            fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (valid(bad[i], false))
            fail_msg("accepted: %s", bad[i]);
}

/* Each byte at each place of a text that is read eight bytes at a time. */
TEST(every_byte_is_checked_at_every_position)
{
    for (unsigned c = 0; c < 256; c++)
        for (size_t place = 1; place < 20; place++) {
            char text[21];
            memset(text, 'x', sizeof text);
            text[0] = text[20] = '"';
            text[place] = (char)c;
            struct sl_json j = sl_json((struct sl_str){text, sizeof text}, &arena, false);
            struct sl_str out;
            bool whole = sl_json_string(&j, &out) && sl_json_end(&j),
                 wanted = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
            assert_int_equal(whole, wanted);
            if (wanted)
                assert_memory_equal(out.data, text + 1, 19);
        }
}

static void expect_problem(const char *json, const char *problem, size_t line, size_t column)
{
    struct sl_json j = sl_json(sl_str(json), NULL, false);
    sl_json_skip(&j);
    assert_false(sl_json_end(&j));
    struct sl_json_position place = sl_json_position(j.text, j.at);
    if (strcmp(j.problem, problem) != 0 || place.line != line || place.column != column)
        fail_msg("%s: %s at line %zu column %zu", json, j.problem, place.line, place.column);
    assert_int_equal(sl_json_code(&j), SL_MALFORMED);
}

TEST(errors_report_line_and_column)
{
    expect_problem("", "expected a value but the document ends", 1, 1);
    expect_problem("{\n  \"a\": 1,\n  \"b\": x\n}", "expected a value", 3, 8);
    expect_problem("[1]\n y", "trailing characters", 2, 2);
    expect_problem("[1,2", "the document ends early", 1, 5);
    expect_problem("{\"a\n\"}", "control character in a string", 1, 4);
    expect_problem("{\"a\" 1}", "expected a colon", 1, 6);
    expect_problem("{1}", "expected a key", 1, 2);
    expect_problem("[1 2]", "expected a comma or the end of the list", 1, 4);
    expect_problem("\n\n[\"\\q\"]", "invalid escape", 3, 3);
    expect_problem("[01]", "invalid number", 1, 4);
    expect_problem("[\"\xFF\"]", "invalid UTF-8", 1, 2);
}

TEST(relaxed_mode_accepts_comments_and_trailing_commas)
{
    assert_true(valid("// c\n{ /* x */ \"a\": [1, 2,], }\n// end", true));
    assert_false(valid("{,}", true));
    assert_false(valid("[1,,]", true));
    assert_false(valid("{} /* open", true));
}

static bool nests(const char *open, const char *inside, const char *close, unsigned levels)
{
    struct sl_buf text = {0};
    for (unsigned i = 0; i < levels; i++)
        sl_buf_cstr(&text, open);
    sl_buf_cstr(&text, inside);
    for (unsigned i = 0; i < levels; i++)
        sl_buf_cstr(&text, close);
    struct sl_json j = sl_json(sl_buf_view(&text), NULL, false);
    sl_json_skip(&j);
    bool good = sl_json_end(&j);
    sl_buf_free(&text);
    return good;
}

TEST(nesting_depth_is_limited)
{
    for (unsigned levels = 60; levels <= SL_JSON_MAX_DEPTH + 2; levels++) {
        assert_int_equal(nests("[", "", "]", levels), levels <= SL_JSON_MAX_DEPTH);
        assert_int_equal(nests("{\"a\":", "1", "}", levels), levels <= SL_JSON_MAX_DEPTH);
        assert_int_equal(nests("[{\"a\":", "1", "}]", levels / 2), levels / 2 <= SL_JSON_MAX_DEPTH / 2);
    }
    assert_false(nests("[{\"a\":", "1", "]}", 10));
}

static void expect_text(const char *json, struct sl_str wanted)
{
    struct sl_json j = sl_json(sl_str(json), &arena, false);
    struct sl_str text;
    assert_true(sl_json_string(&j, &text));
    assert_true(sl_str_equal(text, wanted));
    assert_true(sl_json_end(&j));
}

TEST(string_escapes_are_decoded)
{
    expect_text("\"plain\"", SL_STR("plain"));
    expect_text("\"C:\\\\a\\/b\\n\\t\\\"\"", SL_STR("C:\\a/b\n\t\""));
    expect_text("\"\\u00e9\\uD83D\\uDE00\\u0000x\"", SL_STR("\xC3\xA9\xF0\x9F\x98\x80\0x"));
    expect_text("\"\"", SL_STR(""));
    expect_text("\"\\ud83d\\ud83d\\ude00\"", SL_STR("\xEF\xBF\xBD\xF0\x9F\x98\x80"));
    expect_text("\"\\ud83d|\\udc00|\\ud83d\\u0041\"", SL_STR("\xEF\xBF\xBD|\xEF\xBF\xBD|\xEF\xBF\xBD"
                                                             "A"));
}

TEST(numbers_are_read_as_integers_that_fit)
{
    static const struct {
        const char *json;
        bool whole, fits;
        uint64_t value;
        int64_t integer;
    } rows[] = {{"0", true, true, 0, 0},
                {"-0", true, true, 0, 0},
                {"42", true, true, 42, 42},
                {"18446744073709551615", true, false, UINT64_MAX, 0},
                {"9223372036854775807", true, true, INT64_MAX, INT64_MAX},
                {"-9223372036854775808", false, true, 0, INT64_MIN},
                {"-9223372036854775809", false, false, 0, 0},
                {"-1", false, true, 0, -1},
                {"1.0", false, false, 0, 0},
                {"18446744073709551616", false, false, 0, 0},
                {"1e3", false, false, 0, 0},
                {"\"7\"", false, false, 0, 0},
                {"[7]", false, false, 0, 0},
                {"null", false, false, 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_json j = sl_json(sl_str(rows[i].json), &arena, false), again = j;
        uint64_t value;
        int64_t integer;
        assert_int_equal(sl_json_u64(&j, &value), rows[i].whole);
        assert_int_equal(value, rows[i].value);
        assert_true(sl_json_end(&j));
        assert_int_equal(sl_json_i64(&again, &integer), rows[i].fits);
        assert_int_equal(integer, rows[i].integer);
        assert_true(sl_json_end(&again));
    }
    struct sl_json j = sl_json(SL_STR("[ 1.50e+3 ,-7, x"), &arena, false);
    struct sl_str key, text;
    sl_json_enter(&j);
    assert_true(sl_json_next(&j, &key) && sl_json_number(&j, &text) && sl_str_equal(text, SL_STR("1.50e+3")));
    assert_true(sl_json_next(&j, &key) && sl_json_number(&j, &text) && sl_str_equal(text, SL_STR("-7")));
    assert_true(sl_json_next(&j, &key) && !sl_json_number(&j, &text) && j.failed);
}

/* What is of another type is passed over. */
TEST(values_of_another_type_are_skipped)
{
    struct sl_json j = sl_json(SL_STR("[true,false,1,\"x\",{\"a\":[1]},[{}],null,{\"k\":\"v\"},[7]]"), &arena, false);
    struct sl_str key, text;
    bool flag;
    assert_true(sl_json_array(&j));
    assert_true(sl_json_next(&j, &key) && sl_json_bool(&j, &flag) && flag);
    assert_true(sl_json_next(&j, &key) && sl_json_bool(&j, &flag) && !flag);
    assert_true(sl_json_next(&j, &key) && !sl_json_bool(&j, &flag) && !flag);
    assert_true(sl_json_next(&j, &key) && sl_json_text(&j, &text) && sl_str_equal(text, SL_STR("x")));
    assert_true(sl_json_next(&j, &key) && !sl_json_text(&j, &text) && !text.data);
    assert_true(sl_json_next(&j, &key) && !sl_json_object(&j));
    assert_true(sl_json_next(&j, &key) && !sl_json_array(&j));
    assert_true(sl_json_next(&j, &key) && sl_json_object(&j) && sl_json_next(&j, &key) && sl_json_text(&j, &text));
    assert_true(sl_str_equal(key, SL_STR("k")) && sl_str_equal(text, SL_STR("v")) && !sl_json_next(&j, &key));
    assert_true(sl_json_next(&j, &key) && sl_json_value(&j, &text) && sl_str_equal(text, SL_STR("[7]")));
    assert_true(!sl_json_next(&j, &key) && sl_json_end(&j));
}

TEST(string_members_are_read_into_fields)
{
    struct texts {
        struct sl_str id, kind;
    } texts = {.id = {NULL, 0}};
    static const struct sl_field fields[] = {SL_FIELD(TEXT, false, texts, id, "id"),
                                             SL_FIELD(TEXT, false, texts, kind, "kind"), SL_FIELDS_END};
    struct sl_json j =
        sl_json(SL_STR("[{\"x\":{\"id\":\"no\"},\"id\":\"a\",\"k\\u0069nd\":\"b\",\"id\":\"c\"},7]"), &arena, false);
    struct sl_str key;
    assert_true(sl_json_array(&j) && sl_json_next(&j, &key) && sl_json_read_object(&j, fields, &texts));
    assert_true(sl_str_equal(texts.id, SL_STR("c")) && sl_str_equal(texts.kind, SL_STR("b")));
    assert_true(sl_json_next(&j, &key) && !sl_json_read_object(&j, fields, &texts));
    assert_true(!sl_json_next(&j, &key) && sl_json_end(&j));
}

TEST(raw_strings_can_be_unescaped_later)
{
    struct sl_json j = sl_json(SL_STR("[\"a\\n\\ud83d\\ude00\", \"plain\"]"), NULL, false);
    struct sl_str key, raw;
    bool escaped;
    char out[32];
    sl_json_enter(&j);
    assert_true(sl_json_next(&j, &key) && sl_json_raw_string(&j, &raw, &escaped) && escaped);
    assert_true(sl_str_equal(raw, SL_STR("a\\n\\ud83d\\ude00")));
    assert_int_equal(sl_json_unescape(raw, out), 6);
    assert_memory_equal(out, "a\n\xF0\x9F\x98\x80", 6);
    assert_true(sl_json_next(&j, &key) && sl_json_raw_string(&j, &raw, &escaped) && !escaped);
    assert_true(sl_str_equal(raw, SL_STR("plain")));
}

/* Views where nothing is to be unescaped; nothing at all for what is skipped, whatever its size. */
TEST(only_escaped_strings_take_memory)
{
    struct sl_arena own = {0};
    struct sl_buf text = {0};
    struct sl_str key, out;
    sl_buf_cstr(&text, "{\"skip\\u0070ed\":[");
    for (int i = 0; i < 1 << 20; i++)
        sl_buf_cstr(&text, "{\"k\\n\":\"\\u00e9\"},");
    sl_buf_cstr(&text, "0],\"plain\":\"x\"}");
    struct sl_json j = sl_json(sl_buf_view(&text), &own, false);
    assert_true(sl_json_object(&j) && sl_json_next(&j, &key) && sl_str_equal(key, SL_STR("skipped")));
    size_t used = own.used;
    sl_json_skip(&j);
    assert_true(sl_json_next(&j, &key) && sl_json_text(&j, &out));
    assert_true(!sl_json_next(&j, &key) && sl_json_end(&j));
    assert_int_equal(own.used, used);
    assert_true(out.data > (const char *)text.data && out.data < (const char *)text.data + text.size);
    sl_arena_free(&own);
    sl_arena_init(&own, 1);
    j = sl_json(SL_STR("\"\\n\""), &own, false);
    assert_false(sl_json_string(&j, &out));
    assert_int_equal(sl_json_code(&j), SL_BUSY);
    sl_buf_free(&text);
}

TEST(values_can_be_skipped_or_entered)
{
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
TEST(truncated_documents_fail)
{
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

TEST_FILE(.end = done);
