/* The text's shape: encodings, places, aliases, merges, limits. */
#include "parse.h"

#include "config/impl.h"
#include "core/duration.h"

#define MINUTE 60000000000ull

TEST(empty_files_are_errors)
{
    static const char *const empty[] = {"",           "\n\n", "# only a remark\n", "---\n",           "--- ~\n",
                                        "---\n...\n", "null", "\xEF\xBB\xBF",      "\xEF\xBB\xBF\r\n"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        struct outcome o;
        parse(&o, empty[i]);
        assert_int_equal(o.code, SL_MALFORMED);
        assert_string_equal(o.error.message, "config file empty");
        assert_string_equal(outcome_text(&o), "config.yml: error: config file empty\n");
        outcome_free(&o);
    }
    struct outcome o;
    parse_good(&o, "{}");
    assert_int_equal(o.config->max_concurrent_requests, 200);
    outcome_free(&o);
}

TEST(root_must_be_a_map)
{
    expect_error("- a\n", "1:1: error: the file must contain `key: value` lines");
    expect_error("\n  words\n", "2:3: error: the file must contain `key: value` lines");
    expect_error("result_ttl: 1s\n---\nresult_ttl: 2s\n",
                 "2:1: error: the file has a second YAML document; only one is allowed");
}

TEST(every_line_end_is_accepted)
{
    static const char *const texts[] = {
        "result_ttl: 2m\r\nmax_fibers: x\r\n",
        "result_ttl: 2m\rmax_fibers: x\r",
        "result_ttl: 2m\nmax_fibers: x",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_error(texts[i], "2:13: error: max_fibers: \"x\" is not an integer");
}

TEST(byte_order_mark_is_skipped)
{
    struct outcome o;
    parse_good(&o, "\xEF\xBB\xBFresult_ttl: 2m\nmax_fibers: 7\n");
    assert_true(o.config->result_ttl_ns == 2 * MINUTE);
    assert_int_equal(o.config->max_fibers, 7);
    outcome_free(&o);
    expect_error("\xEF\xBB\xBFmax_fibers: x\n", "1:13: error: max_fibers: \"x\" is not an integer");
    expect_error("\xEF\xBB\xBFmax_fibers: \x01\n", "1:13: error: not valid YAML: control characters are not allowed");
}

TEST(other_encodings_are_refused)
{
    static const char little[] = "\xFF\xFE"
                                 "a\0:\0 \0001\0",
                      big[] = "\xFE\xFF"
                              "\0a\0:\0 \0001";
    struct outcome o;
    parse_sized(&o, (struct sl_str){little, sizeof little - 1});
    assert_string_equal(outcome_text(&o), "config.yml:1:1: error: the file is UTF-16; convert it to UTF-8\n");
    assert_string_equal(o.error.message, "failed to parse config YAML");
    outcome_free(&o);
    parse_sized(&o, (struct sl_str){big, sizeof big - 1});
    assert_string_equal(outcome_text(&o), "config.yml:1:1: error: the file is UTF-16; convert it to UTF-8\n");
    outcome_free(&o);
    parse_sized(&o, (struct sl_str){little + 2, sizeof little - 3}); /* without a mark */
    assert_string_equal(outcome_text(&o),
                        "config.yml:1:2: error: not valid YAML: control characters are not allowed\n");
    outcome_free(&o);
    expect_error("a: b\r\nc: \xC3\xA9 \xE9\n", "2:6: error: not valid YAML: incomplete UTF-8 octet sequence");
    expect_error("a: b\rc: \xFF\n", "2:4: error: not valid YAML: invalid leading UTF-8 octet");
}

TEST(columns_count_characters)
{
    expect_problems("{result_ttl: 1s, \"\xC3\xA4\": 1, max_fibers: x}",
                    "config.yml:1:18: warning: \xC3\xA4: unknown key\n"
                    "config.yml:1:38: error: max_fibers: \"x\" is not an integer\n");
}

TEST(syntax_errors_report_line_and_column)
{
    expect_error("a: b: c\n", "1:5: error: not valid YAML: mapping values are not allowed in this context");
    expect_error("bind: [a\nx: 1\n", "2:2: error: not valid YAML: did not find expected ',' or ']' "
                                     "(while parsing a flow sequence that begins on line 1)");
    expect_error("a: *b\n", "1:4: error: a: the alias refers to an anchor that is not complete before it");
    expect_error("a: !thing b\n", "1:4: error: a: YAML tags are not supported");
    expect_error("a: !thing [b]\n", "1:4: error: a: YAML tags are not supported");
    expect_error("a: !thing {b: c}\n", "1:4: error: a: YAML tags are not supported");
    expect_error("a: \"x\\0y\"\n", "1:4: error: a: the text contains a NUL character");
    expect_error("\"x\\0y\": a\n", "1:1: error: the text contains a NUL character");
    expect_error("? [a]\n: b\n", "1:3: error: a key must be plain text");
    expect_error("a: {? {b: c} : d}\n", "1:7: error: a: a key must be plain text");
}

TEST(repeated_keys_are_errors)
{
    expect_error("max_fibers: 5\nmax_fibers: 6\n", "2:1: error: max_fibers: the key occurs twice");
    expect_error("http: {backlog: 1, \"backlog\": 2}\n", "1:20: error: http.backlog: the key occurs twice");
    expect_error("shutdown: &a {}\nhttp:\n  <<: *a\n  <<: *a\n", "4:3: error: http.<<: the key occurs twice");
}

/* ---- aliases ---- */
TEST(aliases_copy_their_anchor)
{
    struct outcome o;
    parse_good(&o, "connect_timeout: &short 2m\nhead_timeout: *short\n"
                   "caches:\n  derived: &life {max_unused_for: 5m}\n  index: *life\n");
    assert_true(o.config->head_timeout_ns == 2 * MINUTE);
    assert_true(o.config->index.max_unused_for == 5 * MINUTE);
    outcome_free(&o);
    expect_error("connect_timeout: &x 2m\nmax_fibers: *x\n", "2:13: error: max_fibers: \"2m\" is not an integer");
}

TEST(anchor_may_be_redefined)
{
    struct outcome o;
    parse_good(&o, "connect_timeout: &x 1m\nhead_timeout: &x 2m\nresult_ttl: *x\n");
    assert_true(o.config->result_ttl_ns == 2 * MINUTE);
    outcome_free(&o);
}

TEST(alias_inside_its_anchor_is_an_error)
{
    expect_error("a: &a\n  b: *a\n", "2:6: error: a.b: the alias refers to an anchor that is not complete before it");
    expect_error("a: &a [x, *a]\n", "1:11: error: a[1]: the alias refers to an anchor that is not complete before it");
    expect_error("a: &a\n  <<: *a\n", "2:7: error: a.<<: the alias refers to an anchor that is not complete before it");
}

TEST(merge_keys_fill_missing_keys)
{
    struct outcome o;
    parse_good(&o, "caches:\n"
                   "  derived: &first {max_unused_for: 1m, retry_misses_after: 2m}\n"
                   "  downloaded: &second {max_unused_for: 3m, retry_malformed_after: 4m}\n"
                   "  index:\n"
                   "    <<: [*first, *second]\n"
                   "    retry_misses_after: 5m\n");
    assert_true(o.config->index.max_unused_for == MINUTE);
    assert_true(o.config->index.retry_misses_after == 5 * MINUTE);
    assert_true(o.config->index.retry_malformed_after == 4 * MINUTE);
    assert_true(o.config->derived.retry_misses_after == 2 * MINUTE);
    outcome_free(&o);
    parse_good(&o, "http: {<<: {backlog: 7}}\n");
    assert_int_equal(o.config->http.backlog, 7);
    outcome_free(&o);
    expect_error("http: {<<: 5}\n", "1:12: error: http: only maps can be merged with <<");
    expect_error("http: {<<: [{}, x]}\n", "1:17: error: http: only maps can be merged with <<");
    expect_error("http: {\"<<\": {backlog: 7}}\n", "1:8: warning: http.<<: unknown key");
}

/* ---- limits ---- */
TEST(alias_expansion_is_limited)
{
    struct sl_buf text = {0};
    sl_buf_cstr(&text, "l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 12; i++) {
        sl_buf_printf(&text, "l%d: &l%d [", i, i);
        for (int j = 0; j < 10; j++)
            sl_buf_printf(&text, "%s*l%d", j ? ", " : "", i - 1);
        sl_buf_cstr(&text, "]\n");
    }
    struct outcome o;
    parse_sized(&o, sl_buf_view(&text));
    assert_int_equal(o.code, SL_MALFORMED);
    assert_non_null(strstr(outcome_text(&o), "too many values (aliases count each time)"));
    assert_int_equal(o.problems.count, 1);
    outcome_free(&o);
    sl_buf_free(&text);
}

static void nested(struct outcome *o, unsigned depth)
{
    struct sl_buf text = {0};
    sl_buf_cstr(&text, "special_paths: ");
    sl_buf_fill(&text, '[', depth);
    sl_buf_fill(&text, ']', depth);
    parse_sized(o, sl_buf_view(&text));
    sl_buf_free(&text);
}

TEST(depth_is_limited)
{
    struct outcome o;
    nested(&o, CONFIG_MAX_DEPTH);
    assert_int_equal(o.code, SL_OK);
    outcome_free(&o);
    nested(&o, CONFIG_MAX_DEPTH + 1);
    assert_non_null(strstr(outcome_text(&o), "values are nested too deeply"));
    outcome_free(&o);
    nested(&o, 100000);
    assert_non_null(strstr(outcome_text(&o), "values are nested too deeply"));
    outcome_free(&o);
    expect_error(
        "special_paths: &a [[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]\n" /* 17 lists, and 16 around them */
        "file_ptr: {roots: [[[[[[[[[[[[[[[*a]]]]]]]]]]]]]]]}\n",
        "2:34: error: file_ptr.roots[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]: values are nested too deeply");
}

TEST(number_of_values_is_limited)
{
    for (unsigned extra = 0; extra < 2; extra++) {
        struct sl_buf text = {0};
        struct outcome o;
        sl_buf_cstr(&text, "special_paths: [");
        for (unsigned i = 0; i < CONFIG_MAX_NODES - 2 + extra; i++) /* beside the root and the list */
            sl_buf_cstr(&text, i ? ",x" : "x");
        sl_buf_cstr(&text, "]");
        parse_sized(&o, sl_buf_view(&text));
        assert_int_equal(o.code, extra ? SL_MALFORMED : SL_OK);
        outcome_free(&o);
        sl_buf_free(&text);
    }
}

TEST(file_size_is_limited)
{
    static const char head[] = "max_fibers: 9 #";
    for (unsigned extra = 0; extra < 2; extra++) {
        struct sl_buf text = {0};
        struct outcome o;
        sl_buf_cstr(&text, head);
        sl_buf_fill(&text, 'x', CONFIG_MAX_BYTES - (sizeof head - 1) + extra);
        parse_sized(&o, sl_buf_view(&text));
        assert_int_equal(o.code, extra ? SL_MALFORMED : SL_OK);
        if (extra)
            assert_string_equal(outcome_text(&o), "config.yml: error: the file is larger than 1048576 bytes\n");
        outcome_free(&o);
        sl_buf_free(&text);
    }
}

TEST(key_length_is_limited)
{
    struct sl_buf text = {0};
    struct outcome o;
    sl_buf_fill(&text, 'k', CONFIG_MAX_KEY + 1);
    sl_buf_cstr(&text, ": 1\n");
    parse_sized(&o, sl_buf_view(&text));
    assert_string_equal(outcome_text(&o), "config.yml:1:1: error: the key is too long\n");
    outcome_free(&o);
    parse_sized(&o, (struct sl_str){(const char *)text.data + 1, text.size - 1});
    assert_int_equal(o.code, SL_OK); /* unknown, but a key */
    assert_int_equal(o.problems.count, 1);
    outcome_free(&o);
    sl_buf_free(&text);
}
