/* Documents of source maps: what is a map and what is none; lists and tokens. */
#include "../check.h"

#include "js/sourcemap.h"

static enum sl_code read_text(const char *text, struct sl_arena *arena, struct sl_sourcemap *map,
                              struct sl_error *error)
{
    return sl_sourcemap_read(sl_str(text), arena, map, NULL, error);
}

/* The tokens as "line:column>source:line:column name", one behind the other; the code of the last batch. */
static enum sl_code print_tokens(const struct sl_sourcemap *map, struct sl_buf *out)
{
    struct sl_sourcemap_tokens tokens;
    struct sl_sourcemap_batch b;
    enum sl_code code;
    sl_sourcemap_tokens(map, &tokens);
    while ((code = sl_sourcemap_batch(&tokens, &b, NULL)) == SL_OK && b.count)
        for (uint32_t i = 0; i < b.count; i++) {
            sl_buf_printf(out, "%s%u:%u", out->size ? " " : "", b.line[i], b.column[i]);
            if (b.source[i] != UINT32_MAX)
                sl_buf_printf(out, ">%u:%u:%u", b.source[i], b.source_line[i], b.source_column[i]);
            if (b.name[i] != UINT32_MAX)
                sl_buf_printf(out, ",%u", b.name[i]);
            if (b.range[i])
                sl_buf_cstr(out, "+");
        }
    return code;
}

/* Of a map with three sources and five names; NULL: they are malformed. */
static void expect_tokens(const char *mappings, const char *ranges, const char *wanted)
{
    struct sl_arena arena = {0};
    struct sl_buf text = {0}, out = {0};
    struct sl_sourcemap map;
    sl_buf_printf(
        &text, "{\"sources\":[\"a\",\"b\",\"c\"],\"names\":[0,1,2,3,4],\"mappings\":\"%s\",\"rangeMappings\":\"%s\"}%c",
        mappings, ranges, 0);
    assert_int_equal(read_text((const char *)text.data, &arena, &map, NULL), SL_OK);
    enum sl_code code = print_tokens(&map, &out);
    if (code != (wanted ? SL_OK : SL_MALFORMED) || (wanted && !sl_str_equal(sl_buf_view(&out), sl_str(wanted))))
        fail_msg("%s: " SL_STR_FMT, mappings, SL_STR_ARG(sl_buf_view(&out)));
    sl_buf_free(&out);
    sl_buf_free(&text);
    sl_arena_free(&arena);
}

TEST(mappings_are_decoded)
{
    expect_tokens("", "", "");
    expect_tokens("AAAA", "", "0:0>0:0:0");
    expect_tokens("GAAIA", "", "0:3>0:0:4,0");
    expect_tokens("AAAA,M,sBACA", "", "0:0>0:0:0 0:6 0:28>0:1:0");
    expect_tokens(";;,,AAAA,;CCEG;C", "", "2:0>0:0:0 3:1>1:2:3 4:1");
    expect_tokens("\\u0041AAA", "", "0:0>0:0:0");
}

/* ECMA-426: decoders go on. What begins at a bad segment with a column is of no source, and no negative number is a position. */
TEST(malformed_segments_leave_others_readable)
{
    expect_tokens("AAAA,CAAD,EAAE", "", "0:0>0:0:0 0:1 0:3>0:0:1");
    expect_tokens("AAAA,CADA,EACA", "", "0:0>0:0:0 0:1 0:3>0:0:0");
    expect_tokens("AAAA,D,EAAC", "", "0:0>0:0:0 0:1>0:0:1"); /* a column below 0 */
    expect_tokens("AAAA,CGAA,CDAA", "", "0:0>0:0:0 0:1 0:2>2:0:0");
    expect_tokens("AAAAA,CGAAC,CDAAC", "", "0:0>0:0:0,0 0:1 0:2>2:0:0,2"); /* its name counts for those behind it */
    expect_tokens("AAAA,CAAAK,CAAAL", "", "0:0>0:0:0 0:1>0:0:0 0:2>0:0:0,0");
    expect_tokens("AAAA,CAA,C!A,CAAC;AAAA", "", "0:0>0:0:0 0:1 0:2 0:3>0:0:1 1:0>0:0:1");
    expect_tokens("AAAA,gggggggggggggE,gggggggggggggA,CAAA", "", "0:0>0:0:0 0:0 0:1>0:0:0");
    expect_tokens("AAAA,C\\/A,AAAAAA,AAAA", "", "0:0>0:0:0 0:1 0:1 0:1");
    static const char *const bad[] = {"AA",    "AAA",  "AGAA", "ADAA",      "AAAg", "g",       "A!A",
                                      "A AAA", "\\\"", "=",    "A\xC3\xA4", "D",    "!!!;???", "gggggggggggggE"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_tokens(bad[i], "", NULL);
    static const char *const good[] = {"AAAAAA", "AAAAAAA", "AAAA.", "AAAA\\u0000", "AAAA="};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        expect_tokens(good[i], "", i < 2 ? "0:0>0:0:0,0" : "0:0>0:0:0");
}

/* "+/////D" is 2^31 - 1. Of sums with 32 bits, the last ones here are numbers of some place again. */
TEST(field_sums_do_not_wrap)
{
    expect_tokens("AAAA,+/////DAAA,+/////DAAA,GAAU", "", "0:0>0:0:0 0:2147483647>0:0:0");
    expect_tokens("AAAA,A+/////DAA,A+/////DAA,AEAA", "", "0:0>0:0:0 0:0 0:0 0:0");
    expect_tokens("AAAA,AA+/////DA,AA+/////DA,AAEA", "", "0:0>0:0:0 0:0>0:2147483647:0 0:0 0:0");
    expect_tokens("AAAA,AAA+/////D,AAA+/////D,AAAE", "", "0:0>0:0:0 0:0>0:0:2147483647 0:0 0:0");
    expect_tokens("AAAAA,AAAA+/////D,AAAA+/////D,AAAAE", "", "0:0>0:0:0,0 0:0>0:0:0 0:0>0:0:0 0:0>0:0:0");
    expect_tokens("AAAA,+/////DAAA,CAAA,DAAA", "", "0:0>0:0:0 0:2147483647>0:0:0 0:2147483647>0:0:0"); /* and back */
    expect_tokens("AAAA,DDDD,DAAA,ECCC", "", "0:0>0:0:0 0:0>1:1:1"); /* behind a column below 0 no field counts */
    expect_tokens("AAAAA,DCCDC,DAAAA,ECCCC", "", "0:0>0:0:0,0 0:0>1:1:1,1");
    expect_tokens("AAAA,DC+/////DAAAA,CCCC", "", "0:0>0:0:0 0:0>1:1:1"); /* nor one of too many */
    expect_tokens("AAAA,CABA,CAAA;AAAA", "", "0:0>0:0:0 0:1 0:2 1:0");   /* minus zero is -2^31 */
    expect_tokens("AAAA,CAhAA,CAAA;AAAA", "", "0:0>0:0:0 0:1 0:2 1:0");
    expect_tokens("AAAA,CAhgAA,CAAA;AAAA", "", "0:0>0:0:0 0:1 0:2 1:0");
    expect_tokens("AAAA,CAgBA,CAAA", "", "0:0>0:0:0 0:1>0:16:0 0:2>0:16:0");
    expect_tokens("AAAA,BAAA,CAAA;AAAA", "", "0:0>0:0:0 1:0>0:0:0");
}

TEST(range_mappings_are_decoded)
{
    expect_tokens("AAAA,CAAA,CAAA;AAAA", "C;A", "0:0>0:0:0 0:1>0:0:0 0:2>0:0:0+ 1:0>0:0:0+");
    expect_tokens(";;AAAA;AAAA", ";;A", "2:0>0:0:0+ 3:0>0:0:0");
    expect_tokens("A,A,A,A,A,A,A", "ABCgB", "0:0+ 0:0+ 0:0 0:0+ 0:0 0:0 0:0");
    expect_tokens("A,A,A;A,A", "AAAC;hAA;B", "0:0+ 0:0 0:0+ 1:0 1:0+");
    expect_tokens("A,,A", "B", "0:0 0:0+");               /* tokens are counted, not commas */
    expect_tokens("A,A;A", "//////DA;A", "0:0 0:0 1:0+"); /* a number that is too large costs its line */
    expect_tokens("A,A", "A/", "0:0+ 0:0");
    expect_tokens("A", "A;!", "0:0"); /* what is no list of numbers says nothing */
}

TEST(valid_maps_are_told_from_invalid)
{
    static const char *const good[] = {
        "{}",
        "\xEF\xBB\xBF{\"version\":\"three\",\"file\":[]}",
        ")]}'\n{}",
        ")]}'x\r\n{}",
        "{\"sources\":null,\"names\":null,\"mappings\":null,\"sourcesContent\":null,\"sections\":null}",
        "{\"names\":[1,\"a\",null,{},[]],\"ignoreList\":\"?\",\"debugId\":5}",
    };
    static const char *const bad[] = {
        "",
        "[]",
        "{",
        "{} {}",
        ")]}'\r{}",
        ")]}'",
        "{\"sources\":{}}",
        "{\"sources\":[1]}",
        "{\"sourcesContent\":[[]]}",
        "{\"names\":\"\"}",
        "{\"mappings\":[]}",
        "{\"sourceRoot\":1}",
        "{\"sources\":[],\"sources\":[]}",
        "{\"mappings\":\"\",\"mappings\":\"\"}",
        "{\"mappings\":\"\xff\"}",
        "{\"sections\":{}}",
        "{\"sections\":[1]}",
        "{\"sections\":[{\"map\":{}}]}",
        "{\"sections\":[{\"offset\":{\"line\":0,\"column\":0}}]}",
        "{\"sections\":[{\"offset\":{\"line\":0,\"column\":0},\"url\":\"x\"}]}",
        "{\"sections\":[{\"offset\":{\"line\":0},\"map\":{}}]}",
        "{\"sections\":[{\"offset\":{\"line\":-1,\"column\":0},\"map\":{}}]}",
        "{\"sections\":[{\"offset\":{\"line\":4294967296,\"column\":0},\"map\":{}}]}",
    };
    struct sl_arena arena = {0};
    struct sl_sourcemap map;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (read_text(good[i], &arena, &map, NULL) != SL_OK)
            fail_msg("%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (read_text(bad[i], &arena, &map, NULL) != SL_MALFORMED)
            fail_msg("%s", bad[i]);
    struct sl_error error;
    read_text("{\n\"sources\": 1}", &arena, &map, &error);
    assert_string_equal(error.message, "source map: expected a list at line 2, column 13");
    sl_arena_free(&arena);
}

/* The texts of a list of all parts, with a '|' behind each. */
static void expect_list(const char *text, enum sl_sourcemap_list list, const char *wanted)
{
    struct sl_arena arena = {0};
    struct sl_buf out = {0};
    struct sl_sourcemap map;
    bool null;
    assert_int_equal(read_text(text, &arena, &map, NULL), SL_OK);
    for (size_t i = 0; i < map.part_count; i++) {
        struct sl_sourcemap_texts texts;
        uint32_t count = 0;
        assert_true(sl_sourcemap_texts(&map, &map.parts[i], list, &texts));
        for (; sl_sourcemap_text(&texts, &out, &null); count++)
            sl_buf_cstr(&out, null ? "-|" : "|");
        assert_int_equal(count, map.parts[i].counts[list]);
    }
    if (!sl_str_equal(sl_buf_view(&out), sl_str(wanted)))
        fail_msg("%s: " SL_STR_FMT, text, SL_STR_ARG(sl_buf_view(&out)));
    sl_buf_free(&out);
    sl_arena_free(&arena);
}

TEST(sources_and_names_are_listed)
{
    expect_list("{\"sources\":[\"a\",null,\"\",\"\\u00e4\\n\"]}", SL_SOURCEMAP_SOURCES, "a|-||\xC3\xA4\n|");
    expect_list("{\"sourceRoot\":\"webpack:///\",\"sources\":[\"coolstuff.js\",\"/evencoolerstuff.js\",\"https://"
                "awesome.js\"]}",
                SL_SOURCEMAP_SOURCES, "webpack:///coolstuff.js|/evencoolerstuff.js|https://awesome.js|");
    expect_list("{\"sources\":[\"a\",\"\",\"webpack://b\",\"\\/c\",null],\"sourceRoot\":\"r\"}", SL_SOURCEMAP_SOURCES,
                "r/a|r/|r/webpack://b|/c|r/-|");
    expect_list("{\"sources\":[\"a\"],\"sourceRoot\":\"/\"}", SL_SOURCEMAP_SOURCES, "/a|");
    expect_list("{\"sources\":[\"a\"],\"sourceRoot\":\"\"}", SL_SOURCEMAP_SOURCES, "a|");
    expect_list("{\"sourcesContent\":[\"x\\ty\",null]}", SL_SOURCEMAP_CONTENTS, "x\ty|-|");
    expect_list("{\"names\":[\"a\",12.5,true,{\"b\":[]},\"\"]}", SL_SOURCEMAP_NAMES, "a|12.5|-|-||");
    expect_list("{}", SL_SOURCEMAP_NAMES, "");
}

#define SECTION(line, column, map) "{\"offset\":{\"line\":" #line ",\"column\":" #column "},\"map\":" map "}"

static const char sectioned[] = "{\"sections\":[" SECTION(
    4, 7,
    "{\"sections\":[" SECTION(0, 2, "{\"sources\":[\"n\"],\"mappings\":\"AAAA;AAAA\"}") "," SECTION(
        1, 3,
        "{\"names\":[\"x\"],\"sources\":[\"m\"],\"mappings\":\"AAAAA\"}") "]}") "," SECTION(1, 1,
                                                                                            "{\"sources\":[\"first\"],"
                                                                                            "\"mappings\":\"AAAA,CAAC;"
                                                                                            "AAAA\"}") "]}";

TEST(sections_are_read_in_order)
{
    static const char wanted[] = "1:1>0:0:0 1:2>0:0:1 2:0>0:0:1 4:9>1:0:0 5:0>1:0:0 5:3>2:0:0,0";
    struct sl_arena arena = {0};
    struct sl_buf out = {0};
    struct sl_sourcemap map;
    assert_int_equal(read_text("{\"sections\":[]}", &arena, &map, NULL), SL_OK);
    assert_int_equal(map.part_count, 0);
    assert_int_equal(read_text(sectioned, &arena, &map, NULL), SL_OK);
    assert_true(map.indexed);
    assert_int_equal(print_tokens(&map, &out), SL_OK);
    if (!sl_str_equal(sl_buf_view(&out), sl_str(wanted)))
        fail_msg(SL_STR_FMT, SL_STR_ARG(sl_buf_view(&out)));
    sl_buf_free(&out);
    sl_arena_free(&arena);
}

TEST(deeply_nested_sections_are_refused)
{
    struct sl_arena arena = {0};
    struct sl_buf text = {0};
    struct sl_sourcemap map;
    for (unsigned i = 0; i < 100; i++)
        sl_buf_cstr(&text, "{\"sections\":[{\"offset\":{\"line\":1,\"column\":0},\"map\":");
    assert_int_equal(sl_sourcemap_read(sl_buf_view(&text), &arena, &map, NULL, NULL), SL_MALFORMED);
    sl_buf_free(&text);
    sl_arena_free(&arena);
}

TEST(debug_id_and_ignore_list_are_read)
{
    struct sl_arena arena = {0};
    struct sl_sourcemap map;
    char id[SL_DEBUG_ID_TEXT];
    assert_int_equal(read_text("{\"debug_id\":\"11111111-1111-1111-1111-111111111111\","
                               "\"debugId\":\"22222222-2222-2222-2222-222222222222\",\"ignoreList\":[2, 0 ,7]}",
                               &arena, &map, NULL),
                     SL_OK);
    sl_debug_id_format(&map.debug_id, id);
    assert_string_equal(id, "11111111-1111-1111-1111-111111111111");
    uint32_t at = 0;
    uint64_t source, found[4] = {9, 9, 9, 9};
    for (unsigned i = 0; i < 4 && sl_sourcemap_ignored(&map, &at, &source); i++)
        found[i] = source;
    assert_true(found[0] == 2 && found[1] == 0 && found[2] == 7 && found[3] == 9);
    assert_int_equal(read_text("{\"ignoreList\":[]}", &arena, &map, NULL), SL_OK);
    at = 0;
    assert_false(sl_sourcemap_ignored(&map, &at, &source));
    sl_arena_free(&arena);
}
