/* Source links: which URL a path has. */
#include "../check.h"

#include "source/links.h"

static struct sl_arena arena;

static int done(void **state)
{
    (void)state;
    sl_arena_free(&arena);
    return 0;
}

static struct sl_links parse(const char *json)
{
    struct sl_links links;
    struct sl_error error = {0};
    if (sl_links_parse(sl_str(json), &arena, &links, &error) != SL_OK)
        fail_msg("%s", error.message);
    return links;
}

static void expect(const struct sl_links *links, const char *path, const char *wanted)
{
    struct sl_buf url = {0};
    bool found = sl_links_resolve(links, sl_str(path), &url);
    if (found != (wanted != NULL) || (wanted && !sl_str_equal(sl_buf_view(&url), sl_str(wanted))))
        fail_msg("%s -> " SL_STR_FMT, path, SL_STR_ARG(sl_buf_view(&url)));
    sl_buf_free(&url);
}

static void the_most_specific_rule_wins(void **state)
{
    (void)state;
    struct sl_links links = parse("{\"documents\":{\"C:\\\\src\\\\*\":\"http://MyDefaultDomain.com/src/*\","
                                  "\"C:\\\\src\\\\fOO\\\\*\":\"http://MyFooDomain.com/src/*\","
                                  "\"C:\\\\src\\\\foo\\\\specific.txt\":"
                                  "\"http://MySpecificFoodDomain.com/src/specific.txt\","
                                  "\"C:\\\\src\\\\bar\\\\*\":\"http://MyBarDomain.com/src/*\","
                                  "\"/home/user/src/*\":\"https://linux.com/*\"}}");
    expect(&links, "c:\\other\\path", NULL);
    expect(&links, "/home/path", NULL);
    expect(&links, "c:\\src\\bAr\\foo\\FiLe.txt", "http://MyBarDomain.com/src/foo/FiLe.txt");
    expect(&links, "c:\\src\\foo\\FiLe.txt", "http://MyFooDomain.com/src/FiLe.txt");
    expect(&links, "c:\\src\\foo\\SpEcIfIc.txt", "http://MySpecificFoodDomain.com/src/specific.txt");
    expect(&links, "c:\\src\\other\\path", "http://MyDefaultDomain.com/src/other/path");
    expect(&links, "/home/user/src/Path/TO/file.txt", "https://linux.com/Path/TO/file.txt");
    expect(&links, "C:\\src\\foo\\specific.txt2", "http://MyFooDomain.com/src/specific.txt2");
}

static void equal_patterns(void **state)
{
    (void)state;
    struct sl_links links =
        parse("\xEF\xBB\xBF{ // two servers\n\"documents\": {\"C:\\\\a*\": \"http://server1/*\", \"C:\\\\A*\": "
              "\"http://server2/*\",},}");
    expect(&links, "C:\\A\\b\\c\\x.cs", "http://server1//b/c/x.cs");
}

static void stars_and_strange_characters(void **state)
{
    (void)state;
    struct sl_links links = parse("{\"documents\":{\"/a/*\":\"http://x/*?again=*\",\"/b/*\":\"http://x/fixed\","
                                  "\"/c*d\":\"http://x/literal*\",\"/n\":7},\"other\":[1]}");
    expect(&links, "/a/C# file?100%.cs", "http://x/C%23%20file%3F100%25.cs?again=C%23%20file%3F100%25.cs");
    expect(&links, "/a/\xC3\xA9", "http://x/%C3%A9?again=%C3%A9");
    expect(&links, "/b/anything", "http://x/fixed");
    expect(&links, "/c*d", "http://x/literal*");
    expect(&links, "/cxd", NULL);
    expect(&links, "/n", NULL);
}

/* The Kelvin sign is a letter k of three bytes: what follows it must not be cut elsewhere. */
static void case_beyond_ascii(void **state)
{
    (void)state;
    struct sl_links links = parse("{\"documents\":{\"/\xC3\x84pfel/*\":\"http://x/*\",\"/kk/*\":\"http://y/*\"}}");
    expect(&links, "/\xC3\xA4PFEL/b", "http://x/b");
    expect(&links, "/\xE2\x84\xAA\xE2\x84\xAA/b", "http://y/b");
}

static void malformed_links(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "", "[]", "{}", "{\"documents\":7}", "{\"documents\":{\"a\":\"b\"}", "{\"documents\":{\"a\" \"b\"}}"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_links links;
        struct sl_error error;
        assert_int_equal(sl_links_parse(sl_str(rows[i]), &arena, &links, &error), SL_MALFORMED);
        assert_non_null(strstr(error.message, "invalid source link JSON"));
        assert_int_equal(links.count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_most_specific_rule_wins), cmocka_unit_test(equal_patterns),
                                       cmocka_unit_test(stars_and_strange_characters),
                                       cmocka_unit_test(case_beyond_ascii), cmocka_unit_test(malformed_links)};
    return cmocka_run_group_tests(tests, NULL, done);
}
