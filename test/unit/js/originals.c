/* Scopes that maps have (ECMA-426, "scopes"): functions of the sources, calls that were inlined, frames that are to be hidden. */
#include "made.h"

#define NAMES    "\"names\":[\"global\",\"validate\",\"function\",\"x\",\"block\",\"App\",\"class\",\"handleClick\",\"7\"]"
#define MAPPINGS "\"mappings\":\"AAAA,YAMI,QAJE,eAIwB,2BAJtB,oBCCL,uBDIS,KAHX,UCJD\""

/* Of a.js, with a block in `validate` and an anonymous function in class App; b.js has none. */
#define TREES "BCAAA,BHBACCE,DG,BCBCE,CAc,CBB,BDBAIE,BFBCE,CCD,BEAH,CAK,CBB,CBA,A"

/* All of the script; `handleClick`, with a call of `validate` inlined; the block of `validate` as a hidden function; a function that is in no
 * source. */
#define RANGES "ECAA,EGKI,ECKH,GJ,IAGE,ECCC,FG,FC,Fe,EOAA,FU,EEA,FK,FK"

static void make_scopes(const char *scopes, struct made *made)
{
    char map[1000];
    snprintf(map, sizeof map, "{\"sources\":[\"a.js\",\"b.js\"]," NAMES "," MAPPINGS ",\"scopes\":%s}", scopes);
    make("function m(){minified()}" /* and what is behind it */, map, made);
}

/* "source:line:column function < ..." of a place on a line, from the innermost function outwards. */
static void expect_frames(const struct made *made, uint32_t line, uint32_t column, const char *wanted)
{
    static const char *const kinds[] = {
        [SL_JS_FUNCTION_UNKNOWN] = "?", [SL_JS_FUNCTION_ANONYMOUS] = "anonymous", [SL_JS_FUNCTION_NAMED] = ""};
    struct sl_smcache_position p;
    struct sl_buf text = {0};
    bool there = sl_smcache_lookup(&made->cache, line, column, &p);
    while (there) {
        sl_buf_str(&text, sl_smcache_source(&made->cache, p.source));
        sl_buf_printf(&text, ":%u:%u %s" SL_STR_FMT "%s", p.line, p.column, kinds[p.kind], SL_STR_ARG(p.function),
                      p.is_hidden ? " hidden" : "");
        there = sl_smcache_caller(&made->cache, &p);
        sl_buf_cstr(&text, there ? " < " : "");
    }
    if (!sl_str_equal(sl_buf_view(&text), sl_str(wanted)))
        fail_msg("%u:%u: " SL_STR_FMT ", not %s", line, column, SL_STR_ARG(sl_buf_view(&text)), wanted);
    sl_buf_free(&text);
}

TEST(scope_ranges_name_functions_and_inlined_calls)
{
    struct made m;
    make_scopes("\"" TREES "," RANGES "\"", &m);
    assert_int_equal(m.cache.bad_scopes, 0);
    expect_frames(&m, 0, 5, "a.js:0:0 ?"); /* in no function, though the script has one there */
    expect_frames(&m, 0, 15, "a.js:6:4 handleClick");
    expect_frames(&m, 0, 20, "a.js:2:6 validate < a.js:6:4 handleClick");
    expect_frames(&m, 0, 25, "a.js:2:6 validate < a.js:6:4 handleClick");
    expect_frames(&m, 0, 40, "a.js:6:30 handleClick");
    expect_frames(&m, 0, 62, "a.js:2:8 validate hidden");
    expect_frames(&m, 0, 85, "b.js:3:3 ?");
    expect_frames(&m, 0, 106, "a.js:7:12 anonymous"); /* behind all ranges: by its place in the source */
    expect_frames(&m, 0, 112, "a.js:4:1 ?");          /* a class is no function */
    sl_buf_free(&m.file);
}

/* Without ranges the place in the source tells; a source without scopes has the functions of the script. */
TEST(original_scopes_name_functions_without_ranges)
{
    struct made m;
    make_scopes("\"" TREES "\"", &m);
    expect_frames(&m, 0, 22, "a.js:2:6 validate");
    expect_frames(&m, 0, 15, "a.js:6:4 handleClick");
    expect_frames(&m, 0, 0, "a.js:0:0 ?");
    expect_frames(&m, 0, 82, "b.js:3:3 ?");
    sl_buf_free(&m.file);
    make("function m(){minified()}", "{\"sources\":[\"a\"],\"names\":[\"f\"],\"mappings\":\"AAAA\",\"scopes\":\"A\"}",
         &m);
    expect_frames(&m, 0, 3, "a:0:0 m");
    sl_buf_free(&m.file);
    make("function m(){minified()}",
         "{\"sources\":[\"a\"],\"names\":[\"f\"],\"mappings\":\"AAAA\",\"scopes\":\"BFAAA,CBA\"}", &m);
    expect_frames(&m, 0, 3, "a:0:0 f");
    sl_buf_free(&m.file);
}

/* Tags and numbers of later versions are passed over. */
TEST(unknown_tags_are_skipped)
{
    struct made m;
    make_scopes("\"KgB,BHAAGEhC,KAA,CBAC,,EGAAEhC,FBgBK\"", &m);
    assert_int_equal(m.cache.bad_scopes, 0);
    expect_frames(&m, 0, 0, "a.js:0:0 x");
    sl_buf_free(&m.file);
}

TEST(malformed_scopes_are_ignored_with_their_item)
{
    static const struct {
        const char *scopes;
        uint32_t item;
    } wrong[] = {
        {"7", 1},
        {"[]", 1},
        {"\"BFAAC,CBA,E\"", 3},
        {"\"BFAAC\"", 1},             /* no end */
        {"\"BFAAC,CBA,EGAA\"", 3},    /* likewise */
        {"\"C\"", 1},                 /* no begin */
        {"\"A,F\"", 2},               /* likewise */
        {"\"BFAAC,,CBA\"", 2},        /* a source within a scope */
        {"\"BFAAyB,CBA\"", 1},        /* a name that is not there */
        {"\"BFAAD,CBA\"", 1},         /* likewise: -1 */
        {"\"BFAAC,CBA,EGAC,FK\"", 3}, /* a definition that is not there */
        {"\"A,IAAA\"", 2},            /* a call in no range */
        {"\"A,EAA,IDAA,FA\"", 3},     /* of a source that is not there */
        {"\"BFAAC!,CBA\"", 1},        /* a foreign character */
        {"\"BF+++++++DAC,CBA\"", 1},  /* a line of more than 31 bits */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct made m;
        make_scopes(wrong[i].scopes, &m);
        if (m.cache.bad_scopes != wrong[i].item)
            fail_msg("%s: item %u, not %u", wrong[i].scopes, m.cache.bad_scopes, wrong[i].item);
        expect_frames(&m, 0, 12, "a.js:6:4 m");
        expect_frames(&m, 0, 82, "b.js:3:3 ?");
        sl_buf_free(&m.file);
    }
}

/* Cut anywhere, scopes are whole or malformed, and positions stay. */
TEST(truncated_scopes_are_whole_or_malformed)
{
    static const char all[] = TREES "," RANGES;
    for (int size = 0; size < (int)sizeof all; size++) {
        char scopes[sizeof all + 3];
        struct sl_smcache_position p;
        struct made m;
        snprintf(scopes, sizeof scopes, "\"%.*s\"", size, all);
        make_scopes(scopes, &m);
        assert_true(sl_smcache_lookup(&m.cache, 0, 22, &p) && p.line == 2 && p.column == 6);
        if (m.cache.bad_scopes)
            assert_int_equal(p.kind, SL_JS_FUNCTION_NAMED - (p.function.size == 0) * 2);
        sl_buf_free(&m.file);
    }
}

/* Ranges of a section begin where it does, and end where the next one begins; an error costs those of its section. */
TEST(scopes_of_sections_keep_their_offsets)
{
    struct made m;
    make("",
         "{\"sections\":["
         "{\"offset\":{\"line\":0,\"column\":10},\"map\":{\"sources\":[\"a\"],\"names\":[\"f\"],\"mappings\":\"AAAA\","
         "\"scopes\":\"BFAAA,CKA,EGAA,FBgB\"}},"
         "{\"offset\":{\"line\":0,\"column\":50},\"map\":{\"sources\":[\"b\"],\"names\":[\"g\"],\"mappings\":\"AAAA;"
         "AAAA\","
         "\"scopes\":\"BFAAA,CKA,EGKA,FFE\"}},"
         "{\"offset\":{\"line\":2,\"column\":0},\"map\":{\"sources\":[\"c\"],\"names\":[\"h\"],\"mappings\":\"AAAA\","
         "\"scopes\":\"BFAAC,CKA\"}},"
         "{\"offset\":{\"line\":3,\"column\":0},\"map\":{\"sources\":[\"a\"],\"names\":[\"i\"],\"mappings\":\"AAAA\","
         "\"scopes\":\",EGAA,FK\"}}]}",
         &m);
    expect_frames(&m, 0, 11, "a:0:0 f");
    expect_frames(&m, 0, 55, "b:0:0 g"); /* in none of the ranges, and by its place in the source */
    expect_frames(&m, 0, 60, "b:0:0 g");
    expect_frames(&m, 1, 3, "b:0:0 g");
    expect_frames(&m, 2, 3, "c:0:0 ?");
    expect_frames(&m, 3, 0, "a:0:0 f");
    assert_int_equal(m.cache.bad_scopes, 1);
    sl_buf_free(&m.file);
}

/* Of calls in each other the innermost are there, and the outermost. */
TEST(deep_inlining_keeps_innermost_and_outermost)
{
    enum { CALLS = 1000 };
    struct sl_buf map = {0};
    struct sl_smcache_position p;
    struct made m;
    unsigned calls = 0;
    sl_buf_cstr(&map, "{\"sources\":[\"a\"],\"names\":[\"f\"],\"mappings\":\"AAAA\",\"scopes\":\"BFAAA,CCA,EGAA");
    for (int i = 0; i < CALLS; i++)
        sl_buf_printf(&map, ",ECAA,IAA%c", i ? 'B' : 'D');
    for (int i = 0; i <= CALLS; i++)
        sl_buf_cstr(&map, ",FK");
    sl_buf_cstr(&map, "\"}");
    sl_buf_u8(&map, 0);
    make("", (const char *)map.data, &m);
    assert_true(sl_smcache_lookup(&m.cache, 0, 0, &p));
    for (; sl_smcache_caller(&m.cache, &p); calls++)
        assert_int_equal(p.kind, SL_JS_FUNCTION_NAMED);
    assert_int_equal(calls, 256);
    assert_int_equal(p.column, 3);
    sl_buf_free(&m.file);
    sl_buf_free(&map);
}
