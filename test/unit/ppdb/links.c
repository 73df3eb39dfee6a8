/* Source Link rules: which of them counts, and what URL comes out. */
#include "../check.h"

#include "ppdb/links.h"

static struct sl_arena arena;
static struct sl_buf stored;

static struct sl_ppdb_links rules_of(const struct sl_ppdb_link *rules, size_t count)
{
    struct sl_ppdb_links links;
    sl_buf_clear(&stored);
    assert_int_equal(sl_ppdb_links_build(rules, count, &stored, NULL), SL_OK);
    assert_true(sl_ppdb_links_open(sl_buf_bytes(&stored), &links));
    return links;
}

static struct sl_ppdb_links rules_in(const char *json)
{
    struct sl_ppdb_link *rules;
    size_t count;
    assert_int_equal(sl_ppdb_links_parse(sl_str(json), &arena, &rules, &count, NULL), SL_OK);
    return rules_of(rules, count);
}

static void expect(const struct sl_ppdb_links *links, const char *path, const char *url)
{
    struct sl_buf out = {0};
    bool found = sl_ppdb_links_resolve(links, sl_str(path), &out);
    sl_buf_u8(&out, 0);
    assert_string_equal(found ? (char *)out.data : "none", url ? url : "none");
    sl_buf_free(&out);
}

static int drop(void **state)
{
    sl_arena_free(&arena);
    sl_buf_free(&stored);
    return 0;
}

TEST(longest_prefix_wins_and_exact_before_all)
{
    struct sl_ppdb_links links =
        rules_in("{\"documents\":{\"C:\\\\src\\\\*\":\"http://MyDefaultDomain.com/src/*\","
                 "\"C:\\\\src\\\\fOO\\\\*\":\"http://MyFooDomain.com/src/*\","
                 "\"C:\\\\src\\\\foo\\\\specific.txt\":\"http://MySpecificFoodDomain.com/src/specific.txt\","
                 "\"C:\\\\src\\\\bar\\\\*\":\"http://MyBarDomain.com/src/*\","
                 "\"/home/user/src/*\":\"https://linux.com/*\"}}");
    assert_int_equal(links.exact_count, 1);
    assert_int_equal(links.prefix_count, 4);
    expect(&links, "c:\\other\\path", NULL);
    expect(&links, "/home/path", NULL);
    expect(&links, "", NULL);
    expect(&links, "c:\\src\\bAr\\foo\\FiLe.txt", "http://MyBarDomain.com/src/foo/FiLe.txt");
    expect(&links, "c:\\src\\foo\\FiLe.txt", "http://MyFooDomain.com/src/FiLe.txt");
    expect(&links, "c:\\src\\foo\\SpEcIfIc.txt", "http://MySpecificFoodDomain.com/src/specific.txt");
    expect(&links, "c:\\src\\other\\path", "http://MyDefaultDomain.com/src/other/path");
    expect(&links, "c:\\src\\fop", "http://MyDefaultDomain.com/src/fop"); /* between two longer ones in byte order */
    expect(&links, "c:\\src\\zzz", "http://MyDefaultDomain.com/src/zzz");
    expect(&links, "/home/user/src/Path/TO/file.txt", "https://linux.com/Path/TO/file.txt");
}

TEST(patterns_differing_by_case_are_merged)
{
    /* As the compiler's own test file has it, with the trailing comma. */
    struct sl_ppdb_links links =
        rules_in("{\"documents\": {\"C:\\\\a*\": \"http://server1/*\", \"C:\\\\A*\": \"http://server2/*\",}}");
    assert_int_equal(links.prefix_count, 1);
    expect(&links, "C:\\A\\b\\c\\x.cs", "http://server1//b/c/x.cs");
    const struct sl_ppdb_link twice[] = {{SL_STR("/x"), SL_STR("first")}, {SL_STR("/x"), SL_STR("second")}};
    links = rules_of(twice, 2);
    expect(&links, "/X", "second");
}

TEST(nested_prefixes_are_resolved)
{
    const struct sl_ppdb_link nested[] = {
        {SL_STR("*"), SL_STR("0:*")},       {SL_STR("/a*"), SL_STR("1:*")},    {SL_STR("/a/b*"), SL_STR("2:*")},
        {SL_STR("/a/b/c*"), SL_STR("3:*")}, {SL_STR("/a/c*"), SL_STR("2c:*")}, {SL_STR("/a/b/c/d"), SL_STR("exact*")},
    };
    struct sl_ppdb_links links = rules_of(nested, 6);
    expect(&links, "/", "0:/");
    expect(&links, "/a", "1:");
    expect(&links, "/a/bb", "2:b");
    expect(&links, "/a/b/d", "2:/d");
    expect(&links, "/a/b/cc", "3:c");
    expect(&links, "/a/b/c/d", "exact*"); /* an exact rule's URL is as it stands */
    expect(&links, "/a/b/c/e", "3:/e");
    expect(&links, "/a/bz", "2:z");
    expect(&links, "/a/c", "2c:");
    expect(&links, "/b", "0:/b");
    expect(&links, "", "0:");
    assert_true(sl_ppdb_links_resolve(&links, (struct sl_str){NULL, 0}, NULL)); /* whether, not where */
    assert_true(sl_ppdb_links_resolve(&links, SL_STR("/a/b/c/d"), NULL));
}

TEST(url_paths_are_encoded)
{
    const struct sl_ppdb_link rules[] = {
        {SL_STR("/s/*"), SL_STR("https://h/*")},
        {SL_STR("/q/*"), SL_STR("https://h/items?path=/*&version=1")},
        {SL_STR("/twice/*"), SL_STR("https://*/*")},
        {SL_STR("/plain/*"), SL_STR("https://h/none")},
        {SL_STR("/in*side/*"), SL_STR("https://h/star/*")},
    };
    struct sl_ppdb_links links = rules_of(rules, 5);
    expect(&links, "/s/C#\\50% ?.cs", "https://h/C%23/50%25%20%3F.cs");
    expect(&links, "/s/\xC3\xA4.cs", "https://h/%C3%A4.cs");
    expect(&links, "/s/a+b&c=d,e.cs", "https://h/a+b&c=d,e.cs");
    expect(&links, "/q/a+b&c=d.cs", "https://h/items?path=/a%2Bb%26c%3Dd.cs&version=1");
    expect(&links, "/twice/x", "https://x/x");
    expect(&links, "/plain/x", "https://h/none");
    expect(&links, "/in*side/x", "https://h/star/x");
    expect(&links, "/inside/x", NULL);
}

TEST(non_ascii_letters_are_compared_without_case)
{
    /* In lower case U+212A (Kelvin) takes one byte instead of three, U+023A three instead of two. */
    const struct sl_ppdb_link rules[] = {
        {SL_STR("/\xC3\x84/*"), SL_STR("umlaut:*")},
        {SL_STR("/k/*"), SL_STR("kelvin:*")},
        {SL_STR("/\xC8\xBA/*"), SL_STR("stroke:*")},
        {SL_STR("/\xFF/*"), SL_STR("no text:*")},
    };
    struct sl_ppdb_links links = rules_of(rules, 4);
    expect(&links, "/\xC3\xA4/X", "umlaut:X");
    expect(&links, "/\xE2\x84\xAA/Rest", "kelvin:Rest");
    expect(&links, "/K/Rest", "kelvin:Rest");
    expect(&links, "/\xE2\xB1\xA5/Rest", "stroke:Rest");
    expect(&links, "/\xFF/x", "no text:x");
    expect(&links, "/\xC3/x", NULL);
}

TEST(lenient_json_is_accepted)
{
    struct sl_ppdb_links links = rules_in(
        "\xEF\xBB\xBF // a comment\n{ \"other\": [1, {\"a\": null}, true, \"]\",], /* and */ \"documents\":\n"
        "{ \"/a\\u00e4\\ud83d\\ude00\\n\\/*\": \"u:*\", \"/n*\": 5, \"/o*\": {\"x\": []}, \"/s*\": \"s:*\" } }\n ");
    assert_int_equal(links.prefix_count, 2);
    expect(&links, "/a\xC3\xA4\xF0\x9F\x98\x80\n/x", "u:x");
    expect(&links, "/s1", "s:1");
    static const char *const bad[] = {"",
                                      "x",
                                      "{",
                                      "[]",
                                      "{}",
                                      "{\"documents\":[]}",
                                      "{\"documents\":{}",
                                      "{\"documents\":{\"a\"}}",
                                      "{\"documents\":{\"a\":\"b\" \"c\":\"d\"}}",
                                      "{\"documents\":{\"a\":\"b}}",
                                      "{\"documents\":{\"a\":\"\\x\"}}",
                                      "{\"documents\":{\"a\":\"\\u12\"}}",
                                      "{\"documents\":{}} x",
                                      "{\"documents\":{},,}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sl_ppdb_link *rules;
        struct sl_error error;
        size_t count;
        assert_int_equal(sl_ppdb_links_parse(sl_str(bad[i]), &arena, &rules, &count, &error), SL_MALFORMED);
        assert_string_equal(error.message, "invalid source link JSON");
        assert_int_equal(count, 0);
    }
    char deep[4096] = "{\"x\":";
    memset(deep + 5, '[', 4000);
    struct sl_ppdb_link *rules;
    size_t count;
    assert_int_equal(sl_ppdb_links_parse(sl_str(deep), &arena, &rules, &count, NULL), SL_MALFORMED);
}

TEST(empty_rules_take_no_space)
{
    struct sl_ppdb_links links = rules_of(NULL, 0);
    assert_int_equal(stored.size, 0);
    expect(&links, "/x", NULL);
}

/* Whatever the bytes are, resolving ends and stays within them. */
TEST(damaged_rules_stay_within_bounds)
{
    const struct sl_ppdb_link rules[] = {{SL_STR("/a*"), SL_STR("1:*")},
                                         {SL_STR("/a/b*"), SL_STR("2:*")},
                                         {SL_STR("/a/b/c*"), SL_STR("3:*")},
                                         {SL_STR("/x"), SL_STR("x")}};
    rules_of(rules, 4);
    for (size_t at = 0; at < stored.size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            struct sl_ppdb_links links;
            struct sl_buf out = {0};
            stored.data[at] ^= (uint8_t)(1u << bit);
            if (sl_ppdb_links_open(sl_buf_bytes(&stored), &links)) {
                sl_ppdb_links_resolve(&links, SL_STR("/a/b/cd"), &out);
                sl_ppdb_links_resolve(&links, SL_STR("/x"), &out);
            }
            sl_buf_free(&out);
            stored.data[at] ^= (uint8_t)(1u << bit);
        }
    for (size_t size = 1; size < stored.size; size++) {
        struct sl_ppdb_links links;
        assert_false(sl_ppdb_links_open((struct sl_bytes){stored.data, size}, &links));
    }
}

/* A URL of nothing but stars would be as long as their number times the path. */
TEST(url_length_is_limited)
{
    static char stars[20001], path[20003] = "/";
    memset(stars, '*', 20000);
    memset(path + 1, 'a', 20000);
    const struct sl_ppdb_link rule = {SL_STR("/*"), {stars, 20000}};
    struct sl_ppdb_links links = rules_of(&rule, 1);
    expect(&links, path, NULL);
    expect(&links, "/", "");
}

TEST_FILE(.teardown = drop);
