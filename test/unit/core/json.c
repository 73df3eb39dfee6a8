/* The JSON writer and the strict parser around json-c. */
#include "../check.h"

#include <math.h>
#include <string.h>

#include "core/json.h"

static const char *text_of(struct sl_buf *out)
{
    sl_buf_u8(out, 0);
    out->size--;
    return (const char *)out->data;
}

static void the_writer_puts_commas_and_escapes(void **state)
{
    (void)state;
    struct sl_buf out = {0};
    struct json_writer w = json_writer(&out);
    json_object_begin(&w);
    json_key(&w, "a");
    json_array_begin(&w);
    json_u64(&w, UINT64_MAX);
    json_i64(&w, INT64_MIN);
    json_hex(&w, 0);
    json_hex(&w, 0xdeadbeef);
    json_null(&w);
    json_boolean(&w, true);
    json_array_end(&w);
    json_key_str(&w, SL_STR("k\"\n"));
    json_str(&w, SL_STR("a\"\\/\b\f\n\r\t\001\x1f\x7f"));
    json_key(&w, "e");
    json_object_begin(&w);
    json_object_end(&w);
    json_key(&w, "r");
    json_raw(&w, SL_STR("[1]"));
    json_object_end(&w);
    assert_string_equal(text_of(&out),
                        "{\"a\":[18446744073709551615,-9223372036854775808,\"0x0\",\"0xdeadbeef\",null,true],"
                        "\"k\\\"\\n\":\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\",\"e\":{},\"r\":[1]}");
    sl_buf_free(&out);
}

static void text_is_valid_utf8_whatever_comes_in(void **state)
{
    (void)state;
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
        struct json_writer w = json_writer(&out);
        json_str(&w, sl_str(cases[i].in));
        assert_string_equal(text_of(&out), cases[i].out);
        sl_buf_free(&out);
    }
    for (unsigned c = 0; c < 256; c++) { /* each byte at each place of a word, against the parser */
        char in[20];
        memset(in, 'x', sizeof in);
        in[c % 17] = (char)c;
        struct sl_buf out = {0};
        struct json_writer w = json_writer(&out);
        json_str(&w, (struct sl_str){in, sizeof in});
        struct json_object *object;
        assert_int_equal(json_parse(sl_buf_view(&out), &object, NULL), SL_OK);
        if (c < 0x80) {
            assert_int_equal(json_object_get_string_len(object), sizeof in);
            assert_memory_equal(json_object_get_string(object), in, sizeof in);
        }
        json_object_put(object);
        sl_buf_free(&out);
    }
}

static void doubles_are_short_and_read_back(void **state)
{
    (void)state;
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
        struct json_writer w = json_writer(&out);
        json_double(&w, cases[i].v);
        assert_string_equal(text_of(&out), cases[i].text);
        sl_buf_free(&out);
    }
}

static enum sl_code parse(const char *text, struct sl_error *error)
{
    struct json_object *object;
    enum sl_code code = json_parse(sl_str(text), &object, error);
    json_object_put(object);
    return code;
}

static void documents_round_trip(void **state)
{
    (void)state;
    static const char *const documents[] = {
        "null",
        "true",
        "0",
        "-1",
        "18446744073709551615",
        "-9223372036854775808",
        "1.50",
        "1e5",
        "0.1000",
        "\"\"",
        "\"a\\u00e9\"",
        "[]",
        "{}",
        "[1,[2,{\"a\":null}]]",
        "{\"b\":1,\"a\":[true,false]}",
        " [ 1 , 2 ] \n",
    };
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        struct json_object *object;
        struct sl_error error;
        struct sl_buf out = {0};
        struct json_writer w = json_writer(&out);
        if (json_parse(sl_str(documents[i]), &object, &error) != SL_OK)
            fail_msg("%s: %s", documents[i], error.message);
        json_value(&w, object);
        if (documents[i][0] == ' ')
            assert_string_equal(text_of(&out), "[1,2]");
        else if (documents[i][0] == '"' && documents[i][1] == 'a')
            assert_string_equal(text_of(&out), "\"a\xC3\xA9\"");
        else
            assert_string_equal(text_of(&out), documents[i]);
        json_object_put(object);
        sl_buf_free(&out);
    }
}

static void malformed_documents_are_refused_with_a_position(void **state)
{
    (void)state;
    static const char *const documents[] = {
        "",
        " ",
        "{",
        "[1,",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":1,}",
        "[1,]",
        "{a:1}",
        "'a'",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "nul",
        "nulll",
        "tru",
        "+1",
        "01",
        "1.",
        "-",
        "NaN",
        "Infinity",
        "[1] x",
        "{} {}",
        "/* c */ 1",
        "[1]]",
        "\"\xFF\"",
        "\"\xC3\"",
        "99999999999999999999",
        "\"a\nb\"",
        "[\"a\tb\"]",
    };
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        struct sl_error error = {.message = ""};
        if (parse(documents[i], &error) != SL_MALFORMED)
            fail_msg("accepted: %s", documents[i]);
        if (!strstr(error.message, " at line ") || !strstr(error.message, " column "))
            fail_msg("no position: %s: %s", documents[i], error.message);
    }
    struct sl_error error;
    assert_int_equal(parse("{\n  \"a\": 1,\n  \"b\": x\n}", &error), SL_MALFORMED);
    assert_non_null(strstr(error.message, "at line 3 column 8"));
    assert_int_equal(parse("[1]\n y", &error), SL_MALFORMED);
    assert_string_equal(error.message, "trailing characters at line 2 column 2");
}

static void nesting_is_limited_to_128_levels(void **state)
{
    (void)state;
    struct sl_error error;
    for (int object = 0; object < 2; object++) {
        for (int levels = 127; levels <= 130; levels++) {
            struct sl_buf text = {0};
            for (int i = 0; i < levels; i++)
                sl_buf_cstr(&text, object ? "{\"a\":" : "[");
            if (object)
                sl_buf_cstr(&text, "1");
            for (int i = 0; i < levels; i++)
                sl_buf_cstr(&text, object ? "}" : "]");
            struct json_object *parsed;
            assert_int_equal(json_parse(sl_buf_view(&text), &parsed, &error), levels <= 128 ? SL_OK : SL_MALFORMED);
            if (parsed) {
                struct sl_buf out = {0};
                struct json_writer w = json_writer(&out);
                json_value(&w, parsed);
                assert_true(sl_str_equal(sl_buf_view(&out), sl_buf_view(&text)));
                sl_buf_free(&out);
            }
            json_object_put(parsed);
            sl_buf_free(&text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_writer_puts_commas_and_escapes),
        cmocka_unit_test(text_is_valid_utf8_whatever_comes_in),
        cmocka_unit_test(doubles_are_short_and_read_back),
        cmocka_unit_test(documents_round_trip),
        cmocka_unit_test(malformed_documents_are_refused_with_a_position),
        cmocka_unit_test(nesting_is_limited_to_128_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
