/* Names of functions, files and modules. */
#include "../check.h"

#include "js/names.h"

#define DIGITS32 "7d6d00eae0ceccdc7ee689659585d95f"
#define DIGITS40 "149360d3414c26adac3febdf6832e25c01234567"

static void expect(struct sl_str found, const char *wanted)
{
    assert_int_equal(found.data != NULL, wanted != NULL);
    if (wanted && !sl_str_equal(found, sl_str(wanted)))
        fail_msg("\"" SL_STR_FMT "\" is not \"%s\"", SL_STR_ARG(found), wanted);
}

TEST(host_names_are_stripped)
{
    static const char *const rows[][2] = {{"~/a/b", "/a/b"},  {"https://h/a/b", "/a/b"},
                                          {"https://h", "h"}, {"app:///_next/x", "/_next/x"},
                                          {"a/b", "a/b"},     {"", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(sl_js_strip_hostname(sl_str(rows[i][0])), rows[i][1]);
}

TEST(module_names_are_derived_from_urls)
{
    static const char *const rows[][2] = {
        {"http://example.com/js/foo/bar.js", "foo/bar"},
        {"http://example.com/javascript/foo/bar.js", "foo/bar"},
        {"http://example.com/Scripts/foo/bar.js", "foo/bar"},
        {"http://example.com/1.0/foo/bar.js", "foo/bar"},
        {"http://example.com/v1/foo/bar.js", "foo/bar"},
        {"http://example.com/v1.0.0/foo/bar.js", "foo/bar"},
        {"http://example.com/_baz/foo/bar.js", "foo/bar"},
        {"http://example.com/1/2/3/foo/bar.js", "foo/bar"},
        {"http://example.com/abcdef0/foo/bar.js", "foo/bar"},
        {"http://example.com/1..0/foo/bar.js", "1..0/foo/bar"},
        {"http://example.com/v/foo/bar.js", "v/foo/bar"},
        {"/foo/bar-" DIGITS32 ".js", "foo/bar"},
        {"/foo/bar.js?a=/b.c#d", "foo/bar"},
        {"/node_modules/foo/bar.js", "foo/bar"},
        {"../../foo/bar", "foo/bar"},
        {"/a/javascripts/application-bundle-" DIGITS32 ".min.js", "a/javascripts/application-bundle"},
        {"https://example.com/libs/libs-20150417171659.min.js", "libs/libs"},
        {"app:///example/" DIGITS40 "/vendor.js", "vendor"},
        {"app:///example/" DIGITS32 "/" DIGITS40 "/vendor.js", DIGITS40 "/vendor"},
        {"app:///the/folder-with-a-name-of-32-letters/vendor.js", "the/folder-with-a-name-of-32-letters/vendor"},
        {"http://example.com/vendor." DIGITS40 ".js", "vendor"},
        {"~/app/x/y.jsx", "app/x/y"},
        {"foo.d/bar", "foo.d/bar"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(sl_js_module(sl_str(rows[i][0])), rows[i][1]);
}

TEST(file_names_and_modules_are_chosen)
{
    static const struct {
        const char *source, *abs_path, *module, *name, *wanted;
    } rows[] = {
        {"test.js", "http://example.com/js/test.js", NULL, "test.js", "test"},
        {"test.js", "http://example.com/test.js", "mine", "test.js", "mine"},
        {"test.js", "/home/test.js", NULL, "test.js", NULL},
        {"/a/webpack:b.js", "node:x", NULL, "/a/webpack:b.js", NULL},
        {"webpack:///./src/components/CampaignContent.tsx", "webpack:///./src/components/CampaignContent.tsx", "mine",
         "./src/components/CampaignContent.tsx", "src/components/CampaignContent"},
        {"webpack:///~/react/index.js", "x", NULL, "~/react/index.js", "react/index"},
        {"webpack:///a/~/react/~/b.js", "x", NULL, "~/react/~/b.js", "react/~/b"},
        {"webpack://@my-app.x/./src/a.js", "x", NULL, "./src/a.js", "src/a"},
        {"webpack://my app/./src/a.js", "x", NULL, "webpack://my app/./src/a.js", "src/a"},
        {"webpack://my-app/src/a.js", "x", NULL, "webpack://my-app/src/a.js", "src/a"},
        {"turbopack:///[project]/app/p.tsx", "x", NULL, "app/p.tsx", "app/p"},
        {"turbopack:///[project]/~/src/B.tsx", "x", NULL, "~/src/B.tsx", "src/B"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_js_file file = sl_js_file(sl_str(rows[i].source), sl_str(rows[i].abs_path), sl_str(rows[i].module));
        expect(file.name, rows[i].name);
        expect(file.module, rows[i].wanted);
    }
}

TEST(function_name_is_chosen_from_scope_token_and_caller)
{
    static const struct {
        enum sl_js_function_kind kind;
        const char *scope, *token, *caller, *function, *name;
    } rows[] = {
        {SL_JS_FUNCTION_NAMED, "lookedup", NULL, NULL, "original", "lookedup"},
        {SL_JS_FUNCTION_NAMED, "lookedup", "token", "prev", "original", "lookedup"},
        {SL_JS_FUNCTION_NAMED, "__webpack_require__", NULL, "prev", NULL, "prev"},
        {SL_JS_FUNCTION_NAMED, "__webpack_modules__", NULL, "prev", "original", "prev"},
        {SL_JS_FUNCTION_NAMED, "__webpack_require__", NULL, NULL, NULL, "__webpack_require__"},
        {SL_JS_FUNCTION_NAMED, "__webpack_require__", NULL, NULL, "original", "original"},
        {SL_JS_FUNCTION_ANONYMOUS, NULL, NULL, NULL, NULL, "<anonymous>"},
        {SL_JS_FUNCTION_ANONYMOUS, NULL, NULL, "", "original", "original"},
        {SL_JS_FUNCTION_UNKNOWN, NULL, NULL, "prev", "Object.<anonymous>", "Object.<anonymous>"},
        {SL_JS_FUNCTION_UNKNOWN, NULL, NULL, "prev", NULL, "<unknown>"},
        {SL_JS_FUNCTION_NAMED, "$async$be", "main", NULL, NULL, "main"},
        {SL_JS_FUNCTION_NAMED, "$async$be", NULL, NULL, NULL, "$async$be"},
        {SL_JS_FUNCTION_NAMED, "foo.foo", NULL, NULL, NULL, "foo.foo"},
        {SL_JS_FUNCTION_NAMED, "foo.foo.foo", NULL, NULL, NULL, "{foo#2}.foo"},
        {SL_JS_FUNCTION_NAMED, "bar.foo.foo.onError", NULL, NULL, NULL, "bar.{foo#2}.onError"},
        {SL_JS_FUNCTION_NAMED, "bar.foo.foo.bar.bar.onError", NULL, NULL, NULL, "bar.{foo#2}.{bar#2}.onError"},
        {SL_JS_FUNCTION_NAMED, "...", NULL, NULL, NULL, "{#3}."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_buf out = {0};
        struct sl_js_function_hints naming = {rows[i].kind, sl_str(rows[i].scope), sl_str(rows[i].token),
                                              sl_str(rows[i].caller), sl_str(rows[i].function)};
        sl_js_function_name(&naming, &out);
        expect(sl_buf_view(&out), rows[i].name);
        sl_buf_free(&out);
    }
}
