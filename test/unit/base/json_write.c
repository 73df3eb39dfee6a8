/* The JSON writer. */
#include "../check.h"

#include <math.h>

#include "base/json_write.h"

static struct sl_arena arena;

static const char *text_of(struct sl_buf *out)
{
    sl_buf_u8(out, 0);
    out->size--;
    return (const char *)out->data;
}

TEST(writer_adds_commas_and_escapes)
{
    struct sl_buf out = {0};
    struct sl_json_writer w = sl_json_writer(&out);
    sl_json_begin_object(&w);
    sl_json_put_key(&w, "a");
    sl_json_begin_array(&w);
    sl_json_put_u64(&w, UINT64_MAX);
    sl_json_put_i64(&w, INT64_MIN);
    sl_json_put_hex(&w, 0);
    sl_json_put_hex(&w, 0xdeadbeef);
    sl_json_put_hex_padded(&w, 0xab, 4);
    sl_json_put_hex_padded(&w, 0x12345, 4);
    sl_json_put_null(&w);
    sl_json_put_boolean(&w, true);
    sl_json_end_array(&w);
    sl_json_put_key_str(&w, SL_STR("k\"\n"));
    sl_json_put_str(&w, SL_STR("a\"\\/\b\f\n\r\t\001\x1f\x7f"));
    sl_json_put_key(&w, "e");
    sl_json_begin_object(&w);
    sl_json_end_object(&w);
    sl_json_put_key(&w, "r");
    sl_json_put_raw(&w, SL_STR("[1]"));
    sl_json_end_object(&w);
    assert_string_equal(
        text_of(&out),
        "{\"a\":[18446744073709551615,-9223372036854775808,\"0x0\",\"0xdeadbeef\",\"0x00ab\",\"0x12345\",null,true],"
        "\"k\\\"\\n\":\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\",\"e\":{},\"r\":[1]}");
    sl_buf_free(&out);
}

TEST(bytes_are_escaped_at_any_position)
{
    static const struct {
        char byte;
        const char *escaped;
    } cases[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}, {1, "\\u0001"},
                 {'!', "!"},    {'[', "["},     {' ', " "},    {'~', "~"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (size_t size = 1; size <= 40; size++)
            for (size_t at = 0; at < size; at++) {
                char text[41], expected[64];
                struct sl_buf out = {0};
                struct sl_json_writer w = sl_json_writer(&out);
                for (size_t i = 0; i < size; i++)
                    text[i] = i == at ? cases[c].byte : (char)('a' + i % 26);
                snprintf(expected, sizeof expected, "\"%.*s%s%.*s\"", (int)at, text, cases[c].escaped,
                         (int)(size - at - 1), text + at + 1);
                sl_json_put_str(&w, (struct sl_str){text, size});
                assert_string_equal(text_of(&out), expected);
                sl_buf_free(&out);
            }
}

TEST(written_text_is_always_valid_utf8)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"caf\xC3\xA9 \xE6\xB1\x89 \xF0\x9F\x98\x80", "\"caf\xC3\xA9 \xE6\xB1\x89 \xF0\x9F\x98\x80\""},
        {"a\xFFz", "\"a\xEF\xBF\xBDz\""},
        {"\xC3", "\"\xEF\xBF\xBD\""},
        {"\xE2\x82|\xF0\x9F\x98", "\"\xEF\xBF\xBD|\xEF\xBF\xBD\""}, /* one for a character that is cut */
        {"\xC0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"\xF4\x90\x80\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"1234567\x80"
         "1234567890\"x",
         "\"1234567\xEF\xBF\xBD"
         "1234567890\\\"x\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_buf out = {0};
        struct sl_json_writer w = sl_json_writer(&out);
        sl_json_put_str(&w, sl_str(cases[i].in));
        assert_string_equal(text_of(&out), cases[i].out);
        sl_buf_free(&out);
    }
    for (unsigned c = 0; c < 256; c++) { /* each byte at each place of a word, against the parser */
        char in[20];
        memset(in, 'x', sizeof in);
        in[c % 17] = (char)c;
        struct sl_buf out = {0};
        struct sl_json_writer w = sl_json_writer(&out);
        sl_json_put_str(&w, (struct sl_str){in, sizeof in});
        struct sl_json j = sl_json(sl_buf_view(&out), &arena, false);
        struct sl_str back;
        assert_true(sl_json_string(&j, &back) && sl_json_end(&j));
        if (c < 0x80) {
            assert_int_equal(back.size, sizeof in);
            assert_memory_equal(back.data, in, sizeof in);
        }
        sl_buf_free(&out);
    }
}

TEST(doubles_are_short_and_read_back)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {{0.1, "0.1"},
                 {1, "1.0"},
                 {-2.5, "-2.5"},
                 {1e300, "1e+300"},
                 {1.0 / 3, "0.3333333333333333"},
                 {5e-324, "4.94065645841247e-324"},
                 {HUGE_VAL, "null"},
                 {123456789012345680.0, "1.2345678901234568e+17"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_buf out = {0};
        struct sl_json_writer w = sl_json_writer(&out);
        sl_json_put_double(&w, cases[i].v);
        assert_string_equal(text_of(&out), cases[i].text);
        sl_buf_free(&out);
    }
}

static void expect_copy(const char *text, const char *wanted)
{
    struct sl_json j = sl_json(sl_str(text), &arena, false);
    struct sl_buf out = {0};
    struct sl_json_writer w = sl_json_writer(&out);
    if (!sl_json_put_value(&w, &j) || !sl_json_end(&j))
        fail_msg("%s: %s", text, j.problem);
    assert_string_equal(text_of(&out), wanted);
    sl_buf_free(&out);
}

TEST(values_are_copied_verbatim)
{
    static const char *const documents[] = {
        "null",
        "true",
        "0",
        "-1",
        "18446744073709551615",
        "99999999999999999999999",
        "1.50",
        "1e5",
        "0.1000",
        "\"\"",
        "[]",
        "{}",
        "[1,[2,{\"a\":null}]]",
        "{\"b\":1,\"a\":[true,false],\"b\":2}",
    };
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++)
        expect_copy(documents[i], documents[i]);
    expect_copy(" [ 1 , 2 , { \"k\" : 0.0 } ] \n", "[1,2,{\"k\":0.0}]");
    expect_copy("[\"a\\u00e9\",\"\\u000a\",\"\\ud83d\"]", "[\"a\xC3\xA9\",\"\\n\",\"\xEF\xBF\xBD\"]");
    struct sl_json j = sl_json(SL_STR("[1,x]"), &arena, false);
    struct sl_buf out = {0};
    struct sl_json_writer w = sl_json_writer(&out);
    assert_false(sl_json_put_value(&w, &j));
    sl_buf_free(&out);
}

static int done(void **state)
{
    sl_arena_free(&arena);
    return 0;
}

TEST_FILE(.end = done);
