/* URLs of sources, and the origins that get a request's headers. */
#include "../check.h"

#include "api/scraping.h"

static struct sl_arena arena;

static int done(void **state)
{
    sl_arena_free(&arena);
    return 0;
}

static bool allowed(const char *url, const char *origin)
{
    struct sl_str pattern = sl_str(origin);
    return scraping_origin_allowed(&arena, &pattern, 1, sl_str(url));
}

TEST(allowed_origins_match_urls)
{
    static const char *const rows[][2] = {
        {"http://example.com", "*"},
        {"http://example.com", "*.example.com"},
        {"http://foo.example.com:80", "*.example.com"},
        {"http://a.foo.example.com:1234", "*.example.com"},
        {"http://example.com:80", "example.com:80"},
        {"http://example.com", "example.com:80"},
        {"https://example.com", "example.com:443"},
        {"http://example.com:1234", "*:1234"},
        {"http://example.com:1234/", "example.com"},
        {"http://example.com/foo/bar", "http://example.com"},
        {"http://example.com/foo/bar", "example.com/foo/*"},
        {"http://example.com/foo/bar", "http://example.com/f"},
        {"http://example.com/foo/bar", "*://example.com/*"},
        {"http://EXAMPLE.com/", "Example.COM"},
        {"http://xn--lcalhost-54a:80", "l\xC3\xB8"
                                       "calhost:80"},
        {"http://l\xC3\xB8"
         "calhost/",
         "xn--lcalhost-54a"},
        {"foo://a", "foo://*"},
        {"sp://custom-thing/foo", "sp://*"},
        {"http://[::1]:80/", "[::1]:80"},
        {"http://[::1]/", "[::1]"},
        {"not a URL", "not a URL"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!allowed(rows[i][0], rows[i][1]))
            fail_msg("%s is not in %s", rows[i][0], rows[i][1]);
}

TEST(other_origins_are_refused)
{
    static const char *const rows[][2] = {
        {"http://example.com", "foo.example.com"},
        {"http://foo.com", "*.example.com"},
        {"http://example.com", "."},
        {"https://example.com", "http://example.com"},
        {"http://example.com:80", "example.com:443"},
        {"foo://a", "foo://"},
        {"http://badexample.com", "*.example.com"},
        {"http://example.com.evil.org", "*.example.com"},
        {"http://example.com", "*:1234"},
        {"http://example.com/bar", "example.com/foo"},
        {"http://example.com", ""},
        {"http://example.com@evil.org/", "example.com"},
        {"http://evil.org/?http://example.com", "example.com"},
        {"http://example.com.", "*.example"},
        {"not a URL", "*.example.com"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (allowed(rows[i][0], rows[i][1]))
            fail_msg("%s is in %s", rows[i][0], rows[i][1]);
    assert_false(scraping_origin_allowed(&arena, NULL, 0, SL_STR("http://example.com")));
}

TEST(one_matching_origin_is_enough)
{
    static const struct sl_str origins[] = {SL_STR("a.org"), SL_STR("*.b.org")};
    assert_true(scraping_origin_allowed(&arena, origins, 2, SL_STR("https://x.b.org/")));
    assert_false(scraping_origin_allowed(&arena, origins, 2, SL_STR("https://c.org/")));
}

TEST(urls_are_normalised)
{
    static const char *const rows[][2] = {
        {"https://Example.COM/A b", "https://example.com/A%20b"},
        {"https://example.com:443/x?q=1#f", "https://example.com/x?q=1#f"},
        {"http://example.com:8080", "http://example.com:8080/"},
        {"http://example.com/a/../b/./c", "http://example.com/b/c"},
        {"http://example.com/\xC3\xA9%20", "http://example.com/%c3%a9%20"},
        {"HTTPS://example.com/", NULL},
        {"ftp://example.com/", NULL},
        {"~/relative", NULL},
        {"http://", NULL},
        {"http://a b/", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_str url = scraping_url(&arena, sl_str(rows[i][0]));
        if (!rows[i][1] ? url.data != NULL : !sl_str_equal(url, sl_str(rows[i][1])))
            fail_msg("%s -> " SL_STR_FMT, rows[i][0], SL_STR_ARG(url));
    }
    assert_null(scraping_url(&arena, SL_STR("http://a/\0b")).data);
}

TEST(cache_periods_are_spread_by_url)
{
    static const struct {
        int64_t period, now, begin;
    } rows[] = {{100, 1000, 939},  {100, 1038, 939},  {100, 1039, 1039},  {100, 1040, 1039},
                {100, 1100, 1039}, {3600, 3938, 339}, {3600, 3939, 3939}, {3600, 7538, 3939}};
    int64_t begin;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(scraping_period_begin(SL_STR("https://example.com/foo.js"), rows[i].period, rows[i].now, &begin));
        assert_int_equal(begin, rows[i].begin);
    }
}

TEST_FILE(.end = done);
