/* Tables of source maps: what is looked up is what the map says. */
#include "made.h"

/* "source:line:column name" of a place, "-" for none. */
static void expect_place(const struct made *made, uint32_t line, uint32_t column, const char *wanted)
{
    struct sl_smcache_position p;
    char text[200] = "-";
    if (sl_smcache_lookup(&made->cache, line, column, &p)) {
        struct sl_str source = sl_smcache_source(&made->cache, p.source);
        snprintf(text, sizeof text, SL_STR_FMT ":%u:%u%s" SL_STR_FMT, SL_STR_ARG(source), p.line, p.column,
                 p.name.size ? " " : "", SL_STR_ARG(p.name));
    }
    if (strcmp(text, wanted) != 0)
        fail_msg("%u:%u: %s, not %s", line, column, text, wanted);
}

TEST(positions_are_looked_up)
{
    struct made m;
    make("\"foo\"; /*added by bundler*/ \"bar\";",
         "{\"sources\":[\"a.js\"],\"names\":[\"x\"],\"mappings\":\"AAAA,M,sBACA;;;IAAAA;\"}", &m);
    assert_int_equal(m.cache.token_count, 4);
    expect_place(&m, 0, 0, "a.js:0:0");
    expect_place(&m, 0, 4, "a.js:0:0");
    expect_place(&m, 0, 6, "-"); /* of no source */
    expect_place(&m, 0, 17, "-");
    expect_place(&m, 0, 30, "a.js:1:0");
    expect_place(&m, 0, UINT32_MAX, "a.js:1:0");
    expect_place(&m, 1, 0, "-"); /* a line without tokens has none of the one before */
    expect_place(&m, 3, 3, "-");
    expect_place(&m, 3, 4, "a.js:1:0 x");
    expect_place(&m, 4, 4, "-");
    expect_place(&m, UINT32_MAX, UINT32_MAX, "-");
    sl_buf_free(&m.file);
    make("", "{}", &m);
    expect_place(&m, 0, 0, "-");
    sl_buf_free(&m.file);
}

TEST(first_of_equal_tokens_at_the_position_last_behind_it)
{
    struct made m;
    make("", "{\"sources\":[\"a\"],\"mappings\":\"EAAA,AACA,AACA,EACA\"}", &m);
    expect_place(&m, 0, 1, "-");
    expect_place(&m, 0, 2, "a:0:0");
    expect_place(&m, 0, 3, "a:2:0");
    expect_place(&m, 0, 4, "a:3:0");
    sl_buf_free(&m.file);
    struct sl_buf map = {0};
    sl_buf_cstr(&map, "{\"sources\":[\"a\"],\"mappings\":\"AAAA,EACA"); /* many blocks of equals */
    for (unsigned i = 0; i < 200; i++)
        sl_buf_cstr(&map, ",AACA");
    sl_buf_add(&map, "\"}", 3);
    make("", (const char *)map.data, &m);
    expect_place(&m, 0, 1, "a:0:0");
    expect_place(&m, 0, 2, "a:1:0");
    expect_place(&m, 0, 3, "a:201:0");
    sl_buf_free(&m.file);
    sl_buf_free(&map);
}

TEST(mappings_in_any_order_are_sorted)
{
    struct made m;
    make("", "{\"sources\":[\"a\",\"b\"],\"names\":[\"n\"],\"mappings\":\"UAAA,NCCAA,C,HACC,EAAA;AAAA\"}", &m);
    expect_place(&m, 0, 1, "-");
    expect_place(&m, 0, 3, "b:2:1");
    expect_place(&m, 0, 4, "b:1:0 n");
    expect_place(&m, 0, 6, "-");
    expect_place(&m, 0, 10, "a:0:0");
    expect_place(&m, 1, 0, "b:2:1");
    sl_buf_free(&m.file);
}

TEST(range_mappings_continue_over_columns_and_lines)
{
    struct made m;
    make("", "{\"sources\":[\"a\"],\"mappings\":\"EAAE,GAAG\",\"rangeMappings\":\"A\"}", &m);
    expect_place(&m, 0, 1, "-");
    expect_place(&m, 0, 2, "a:0:2");
    expect_place(&m, 0, 4, "a:0:4");
    expect_place(&m, 0, 9, "a:0:5");
    expect_place(&m, 1, 0, "-");
    sl_buf_free(&m.file);
    /* Over the ends of lines, up to the next token. */
    make("", "{\"sources\":[\"a\"],\"mappings\":\"CAAE;;IAGA;;C\",\"rangeMappings\":\"A;;A;;A\"}", &m);
    expect_place(&m, 0, 0, "-");
    expect_place(&m, 0, 3, "a:0:4");
    expect_place(&m, 1, 7, "a:1:7");
    expect_place(&m, 2, 3, "a:2:3");
    expect_place(&m, 2, 4, "a:3:2");
    expect_place(&m, 3, 9, "a:4:9");
    expect_place(&m, 4, 0, "a:5:0");
    expect_place(&m, 4, 1, "-");
    expect_place(&m, 5, 0, "-");
    sl_buf_free(&m.file);
    make("", "{\"sources\":[\"a\"],\"mappings\":\"AA+/////DA\",\"rangeMappings\":\"A\"}", &m);
    expect_place(&m, 0, 9, "a:2147483647:9");
    expect_place(&m, 1, 0, "-");
    sl_buf_free(&m.file);
}

#define SECTION(line, column, map) "{\"offset\":{\"line\":" #line ",\"column\":" #column "},\"map\":" map "}"

TEST(sections_are_joined)
{
    struct made m;
    make("",
         "{\"sections\":[" SECTION(
             1, 0,
             "{\"sources\":[\"a\",\"b\"],\"sourcesContent\":[\"A\"],\"names\":[\"x\"],"
             "\"mappings\":\"AAAAA,CCAA\"}") "," SECTION(0, 2,
                                                         "{\"sources\":[\"b\",\"a\"],\"sourcesContent\":[\"B\",null],"
                                                         "\"mappings\":\"AAAA,CCAA;AACA\"}") "]}",
         &m);
    assert_int_equal(m.cache.source_count, 2);
    expect_place(&m, 0, 2, "b:0:0");
    expect_place(&m, 0, 3, "a:0:0");
    expect_place(&m, 1, 1, "b:0:0");
    struct sl_smcache_position p;
    assert_true(sl_smcache_lookup(&m.cache, 0, 2, &p));
    assert_true(sl_str_equal(sl_smcache_text(&m.cache, p.source), SL_STR("B")));
    assert_true(sl_smcache_lookup(&m.cache, 0, 3, &p));
    assert_true(sl_str_equal(sl_smcache_text(&m.cache, p.source), SL_STR("A")));
    sl_buf_free(&m.file);
}

TEST(source_contents_are_stored)
{
    struct made m;
    make("", "{\"sources\":[\"a\",null,\"c\",\"d\"],\"sourcesContent\":[\"one\\ntwo\",\"\",null],\"mappings\":\"\"}",
         &m);
    assert_true(sl_str_equal(sl_smcache_text(&m.cache, 0), SL_STR("one\ntwo")));
    struct sl_str empty = sl_smcache_text(&m.cache, 1);
    assert_true(empty.data && !empty.size);
    assert_true(!sl_smcache_source(&m.cache, 1).size && sl_smcache_source(&m.cache, 1).data);
    for (uint32_t i = 2; i < 6; i++)
        assert_null(sl_smcache_text(&m.cache, i).data);
    assert_null(sl_smcache_source(&m.cache, 4).data);
    sl_buf_free(&m.file);
}

/* Each line of a long text is found, and those around it. */
TEST(lines_of_long_sources_are_found)
{
    enum { LINES = 3000 };
    struct sl_buf map = {0};
    struct made m;
    sl_buf_cstr(&map, "{\"sources\":[\"short\",\"long\"],\"sourcesContent\":[\"x\\ny\",\"");
    for (unsigned i = 1; i <= LINES; i++)
        sl_buf_printf(&map, "%u%.*s\\n", i, i % 97 == 0 ? 60 : (int)(i % 7),
                      "............................................................");
    sl_buf_fill(&map, 'z', 20000);
    sl_buf_cstr(&map, "\\nlast\"]}");
    sl_buf_u8(&map, 0);
    make("", (const char *)map.data, &m);
    for (uint32_t line = 1; line <= LINES + 2; line++) {
        struct sl_context_cursor cursor = sl_smcache_cursor(&m.cache, 1, line), all = cursor;
        struct sl_context found, wanted;
        all.at = 0;
        all.line = 1;
        assert_true(sl_context_at(&cursor, line, &found) && sl_context_at(&all, line, &wanted));
        assert_true(found.line.data == wanted.line.data && found.line.size == wanted.line.size);
        assert_int_equal(found.before_count, wanted.before_count);
        assert_true(cursor.at + 30000 > (size_t)(found.line.data - cursor.text.data));
    }
    struct sl_context none;
    struct sl_context_cursor cursor = sl_smcache_cursor(&m.cache, 1, LINES + 3);
    assert_false(sl_context_at(&cursor, LINES + 3, &none));
    cursor = sl_smcache_cursor(&m.cache, 0, 2);
    assert_true(sl_context_at(&cursor, 2, &none));
    sl_buf_free(&m.file);
    sl_buf_free(&map);
}

TEST(positions_far_apart_are_stored)
{
    struct sl_buf map = {0};
    struct made m;
    sl_buf_cstr(&map, "{\"sources\":[\"a\"],\"mappings\":\"AAAA,+////DAAA");
    sl_buf_fill(&map, ';', 40000000);
    sl_buf_cstr(&map, "AACA,+////DAAA\"}");
    sl_buf_u8(&map, 0);
    make("", (const char *)map.data, &m);
    expect_place(&m, 0, 1, "a:0:0");
    expect_place(&m, 0, 0x7FFFFFFF, "a:0:0");
    expect_place(&m, 40000000, 5, "a:1:0");
    expect_place(&m, 39999999, 5, "-");
    sl_buf_free(&m.file);
    sl_buf_free(&map);
}

TEST(input_that_is_no_map_makes_no_cache_file)
{
    struct sl_buf out = {0};
    struct sl_error error;
    const struct sl_smcache_options options = {0};
    assert_int_equal(sl_smcache_write(SL_STR(""), SL_STR("{\"mappings\":\"AAAA\"}"), &options, NULL, &out, &error),
                     SL_MALFORMED);
    assert_int_equal(out.size, 0);
    assert_int_equal(sl_smcache_write(SL_STR(""), SL_STR("[]"), &options, NULL, &out, &error), SL_MALFORMED);
    struct sl_smcache cache;
    assert_int_equal(sl_smcache_open((struct sl_bytes){(const uint8_t *)"SLSM", 4}, &cache, &error), SL_MALFORMED);
    sl_buf_free(&out);
}
