/* Functions in tables of source maps: of the script, with the names that the map has for them; and of Metro's function maps. */
#include "made.h"

/* "line:column function" of a place on a line, counted from 0. */
static void expect_function(const struct made *made, uint32_t line, uint32_t column, const char *wanted)
{
    static const char *const kinds[] = {
        [SL_JS_FUNCTION_UNKNOWN] = "?", [SL_JS_FUNCTION_ANONYMOUS] = "anonymous", [SL_JS_FUNCTION_NAMED] = ""};
    struct sl_smcache_position p;
    char text[200] = "-";
    if (sl_smcache_lookup(&made->cache, line, column, &p))
        snprintf(text, sizeof text, "%u:%u %s" SL_STR_FMT, p.line, p.column, kinds[p.kind], SL_STR_ARG(p.function));
    if (strcmp(text, wanted) != 0)
        fail_msg("%u:%u: %s, not %s", line, column, text, wanted);
}

TEST(map_that_is_off_by_one_still_names_functions)
{
    static const char script[] =
        "var makeAFailure=function(){function n(n){}function e(n){throw new Error(\"failed!\")}function r(r){var "
        "i=null;if(r.failed){i=e}else{i=n}i(r)}function i(){var n={failed:true,value:42};r(n)}return i}();\n"
        "//# sourceMappingURL=test.min.js.map";
    static const char map[] =
        "{\"version\":3,\"sources\":[\"test.js\"],\"names\":[\"makeAFailure\",\"onSuccess\",\"data\",\"onFailure\","
        "\"Error\","
        "\"invoke\",\"cb\",\"failed\",\"test\",\"value\"],\"mappings\":\"AAAA,GAAIA,cAAe,WACjB,QAASC,GAAUC,IAEnB,"
        "QAASC,GAAUD,GACjB,KAAM,IAAIE,OAAM,WAGlB,QAASC,GAAOH,GACd,GAAII,GAAK,IACT,IAAIJ,EAAKK,OAAQ,CACfD,EAAKH,MACA,"
        "CACLG,EAAKL,"
        "EAEPK,EAAGJ,GAGL,QAASM,KACP,GAAIN,IAAQK,OAAQ,KAAME,MAAO,GACjCJ,GAAOH,GAGT,MAAOM\"}";
    struct made m;
    make(script, map, &m);
    expect_function(&m, 0, 182, "19:4 test");
    expect_function(&m, 0, 135, "14:4 invoke");
    expect_function(&m, 0, 63, "4:10 onFailure");
    expect_function(&m, 0, 0, "0:0 ?");
    expect_function(&m, 0, 30, "1:2 onSuccess");
    sl_buf_free(&m.file);
}

TEST(names_mapped_at_the_keyword_are_used)
{
    struct made m;
    make("function ab(){console.log(\"hello\")}",
         "{\"sources\":[\"a\"],\"names\":[\"initServer\",\"console\"],"
         "\"mappings\":\"AAAA,OAASA,CAAA,GAAY,EAAC,CAClBC,qBACJ\"}",
         &m);
    expect_function(&m, 0, 14, "1:4 initServer");
    sl_buf_free(&m.file);
    make("function t(){}t.prototype.bar=()=>{};export default(new t).bar();",
         "{\"sources\":[\"a\"],\"names\":[\"Foo\",\"bar\"],"
         "\"mappings\":\"AAAA,SAASA,KACTA,YAAcC,IAAM,sBACL,IAAKD,GAAKC\"}",
         &m);
    expect_function(&m, 0, 9, "0:9 Foo");
    expect_function(&m, 0, 33, "1:20 Foo.prototype.bar");
    expect_function(&m, 0, 60, "2:25 ?");
    sl_buf_free(&m.file);
}

/* A range may be all of a script: it has a token where a function begins or ends. */
TEST(functions_inside_range_mappings_are_named)
{
    struct made m;
    make("a();\nfunction f(){b()}\nc=()=>1;d()", "{\"sources\":[\"a\"],\"mappings\":\"AACE\",\"rangeMappings\":\"A\"}",
         &m);
    expect_function(&m, 0, 1, "1:3 ?");
    expect_function(&m, 1, 0, "2:0 f");
    expect_function(&m, 1, 13, "2:13 f");
    expect_function(&m, 1, 17, "2:17 ?");
    expect_function(&m, 2, 6, "3:6 c");
    expect_function(&m, 2, 8, "3:8 ?");
    expect_function(&m, 9, 8, "10:8 ?");
    sl_buf_free(&m.file);
    make("f=()=>{};g=()=>{};h=()=>{}", "{\"sources\":[\"a\"],\"mappings\":\"QAAQ,QAAA,TAAA\",\"rangeMappings\":\"A\"}",
         &m);
    expect_function(&m, 0, 7, "0:8 f");
    expect_function(&m, 0, 14, "0:14 g");
    expect_function(&m, 0, 20, "0:8 g");
    sl_buf_free(&m.file);
}

TEST(functions_are_found_per_line_in_utf_16_columns)
{
    struct made m;
    /* A column is of UTF-16; tokens at each of them: the outer function, an anonymous one within, and outside. */
    make("/*\xF0\x9F\x98\x80*/function f(){\n(()=>\n0)()}f()",
         "{\"sources\":[\"a\"],\"mappings\":\"MAAA,CAAC;CAAA,GAAA;A,CAAA,CAAA,CAAA,CAAA,CAAA\"}", &m);
    expect_function(&m, 0, 6, "0:0 f");
    expect_function(&m, 1, 1, "0:1 anonymous");
    expect_function(&m, 1, 4, "0:1 anonymous");
    expect_function(&m, 2, 0, "-");
    expect_function(&m, 2, 1, "0:1 f"); /* a token begins where the arrow function has ended */
    expect_function(&m, 2, 4, "0:1 f");
    expect_function(&m, 2, 5, "0:1 ?");
    sl_buf_free(&m.file);
}

TEST(names_mapped_at_the_closing_bracket_are_used)
{
    struct made m;
    /* As Dart's compiler names them: at the bracket, with something else behind it. */
    make("function be(){x()}y()", "{\"sources\":[\"a\"],\"names\":[\"main\"],\"mappings\":\"AAAA,cAAA,GAAAA,CAAA\"}",
         &m);
    expect_function(&m, 0, 14, "0:0 main");
    sl_buf_free(&m.file);
    make("function be(){x()}y()", "{\"sources\":[\"a\"],\"names\":[\"main\"],\"mappings\":\"AAAA,cAAA,GAAAA\"}", &m);
    expect_function(&m, 0, 14, "0:0 be"); /* the same token goes on behind the bracket */
    sl_buf_free(&m.file);
}

TEST(malformed_script_has_no_functions)
{
    struct made m;
    make("function f( {", "{\"sources\":[\"a\"],\"mappings\":\"AAAA\"}", &m);
    expect_function(&m, 0, 0, "0:0 ?");
    sl_buf_free(&m.file);
    make("function f(){\xff}", "{\"sources\":[\"a\"],\"mappings\":\"AAAA\"}", &m);
    expect_function(&m, 0, 0, "0:0 ?");
    sl_buf_free(&m.file);
}

TEST(metro_function_maps_name_functions)
{
    struct made m;
    make("function not_looked_at(){}",
         "{\"sources\":[\"a\",\"b\",\"c\",\"d\",\"e\"],\"mappings\":\"AAAA,CACA,CACA,CCAA,CCAA,CCAA,CCAA,C\","
         "\"x_facebook_sources\":[[{\"names\":[\"<global>\",\"foo\"],\"mappings\":\"AAA;ACC\"},{\"names\":[\"x\"]}],"
         "null,"
         "[{\"names\":[\"b\"],\"mappings\":\"A!A\"}],[{\"names\":[\"late\",7],\"mappings\":\"AAAE,CCA\"}]]}",
         &m);
    expect_function(&m, 0, 0, "0:0 <global>");
    expect_function(&m, 0, 1, "1:0 foo");
    expect_function(&m, 0, 2, "2:0 foo");
    expect_function(&m, 0, 3, "2:0 ?"); /* no function map */
    expect_function(&m, 0, 4, "2:0 ?"); /* one that cannot be read */
    expect_function(&m, 0, 5, "2:0 anonymous");
    expect_function(&m, 0, 6, "2:0 ?");
    expect_function(&m, 0, 7, "-");
    sl_buf_free(&m.file);
}

/* Sums of "+/////D", which is 2^31 - 1: those with 32 bits are the first place or name again. */
TEST(function_map_sums_do_not_wrap)
{
    struct made m;
    make("",
         "{\"sources\":[\"a\",\"b\",\"c\",\"d\"],\"mappings\":\"AAAA,CCAA,CCAA,CCAA\",\"x_facebook_sources\":["
         "[{\"names\":[\"f\",\"wrong\"],\"mappings\":\"AAA,+/////DAA,+/////DAA,ECA\"}],"
         "[{\"names\":[\"wrong\"],\"mappings\":\"A+/////DA,A+/////DA,AEA\"}],"
         "[{\"names\":[\"f\",\"wrong\"],\"mappings\":\"AAA,AA+/////D,AA+/////D,ACE\"}],"
         "[{\"names\":[\"f\",\"g\"],\"mappings\":\"AAA,+/////DAA,//////DCA\"}]]}",
         &m);
    expect_function(&m, 0, 0, "0:0 ?");
    expect_function(&m, 0, 1, "0:0 ?");
    expect_function(&m, 0, 2, "0:0 ?");
    expect_function(&m, 0, 3, "0:0 g"); /* and back */
    sl_buf_free(&m.file);
}
