/* Comments of scripts and what they refer to. */
#include "../check.h"

#include "js/comment.h"

static void expect(struct sl_str found, const char *wanted)
{
    if (!sl_str_equal(found, sl_str(wanted)))
        fail_msg("\"" SL_STR_FMT "\" is not \"%s\"", SL_STR_ARG(found), wanted);
}

TEST(source_mapping_url_comments_are_found)
{
    static const struct {
        const char *script, *reference;
    } rows[] = {
        {"x()\n//# sourceMappingURL=foo.js.map?v=1#hash", "foo.js.map"},
        {"//# sourceMappingURL=foo bar.map", "foo"},
        {"x();//# sourceMappingURL=foo.js.map //c", "foo.js.map"},
        {"//@ sourceMappingURL=foo.js.map\n", "foo.js.map"},
        {"//# sourceMappingURL=a\n//@ sourceMappingURL=b\n//# sourceMappingURL=c\nfoo()", "c"},
        {"//# sourceMappingURL=a\n// sourceMappingURL=b\n\"sourceMappingURL=\"", "a"},
        {"//# sourceMappingURL=\n\n a", "a"},
        {"//# sourceMappingURL=a#b?c", "a"},
        {"//# sourceMappingURL=data:,a?b", "data:,a?b"},
        {"//# sourceMappingURL=", ""},
        {"//# sourceMappingURL=a\nvar s = \"//# sourceMappingURL=b\";", "a"},
        {"//# sourceMappingURL=a\nvar s = '\\'//# sourceMappingURL=b';", "a"},
        {"//# sourceMappingURL=a\nvar s = `\n//# sourceMappingURL=b\n${x + `//# sourceMappingURL=c\n`}\n`", "a"},
        {"x = /'/; y = \"'\" //# sourceMappingURL=a 'quoted'", "a"},
        {"return/[/'\"]/ //# sourceMappingURL=a `", "a"},
        {"a = b / c //# sourceMappingURL=a \" /", "a"},
        {"f(`${{a: '}'}.a}`) //# sourceMappingURL=a `", "a"},
        {"/* ' */ //# sourceMappingURL=a '", "a"},
        {"//# sourceMappingURL=a\n/* old:\n//# sourceMappingURL=b\n*/", "a"},
        {"//# sourceMappingURL=a /* b */", "a"},
        {"//# sourceMappingURL=a\\b", "a\\b"},
        {"i++/2;s='a/`' //# sourceMappingURL=a '", "a"},
        {"f(+/[`]/) //# sourceMappingURL=a '", "a"},
    };
    static const char *const none[] = {"",
                                       "sourceMappingURL=x",
                                       "# sourceMappingURL=x",
                                       "//#  sourceMappingURL=x",
                                       "/*# sourceMappingURL=x */",
                                       "//# sourceMappingURL",
                                       "//# sourcemappingurl=x",
                                       "s = \"//# sourceMappingURL=x\"",
                                       "s = '//# sourceMappingURL=x'",
                                       "s = `\n//# sourceMappingURL=x\n`",
                                       "s = `${'//# sourceMappingURL=x'}`",
                                       "/* ` //# sourceMappingURL=x ` */",
                                       "/*\n//# sourceMappingURL=x\n*/",
                                       "s = '\\\n//# sourceMappingURL=x\\\n'",
                                       "s = '\\\r\n//# sourceMappingURL=x\\\r\n'",
                                       "s = \"//# sourceMappingURL=x\\\"\"; t()"};
    struct sl_str reference;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(sl_js_map_comment(sl_str(rows[i].script), &reference));
        expect(reference, rows[i].reference);
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_false(sl_js_map_comment(sl_str(none[i]), &reference));
        assert_null(reference.data);
    }
    assert_false(sl_js_map_comment((struct sl_str){NULL, 0}, &reference));
}

TEST(debug_id_comments_are_found)
{
    char text[SL_DEBUG_ID_TEXT];
    struct sl_debug_id id;
    assert_true(sl_js_debug_id_comment(SL_STR("x\n//# debugId=2F259F80-58B7-44CB-D7CD-DE1505E7E718\n"), &id));
    sl_debug_id_format(&id, text);
    assert_string_equal(text, "2f259f80-58b7-44cb-d7cd-de1505e7e718");
    assert_false(sl_js_debug_id_comment(SL_STR("//@ debugId=2f259f80-58b7-44cb-d7cd-de1505e7e718"), &id));
    assert_false(sl_js_debug_id_comment(SL_STR("//# debugId=none"), &id));
    assert_false(sl_js_debug_id_comment(SL_STR(""), &id));
}

TEST(data_urls_are_decoded)
{
    static const struct {
        const char *url, *content; /* NULL = none */
    } rows[] = {
        {"data", NULL},
        {"data:", NULL},
        {"data:,Hello%2C%20World%21", "Hello, World!"},
        {"data:,a%2", "a%2"},
        {"data:,a%zz#b", "a%zz"},
        {"data:;base64,SGVsbG8sIFdvcmxkIQ==", "Hello, World!"},
        {"data:application/json;charset=utf-8; BASE64,SGVsbG8s%0AIFdvcmxkIQ#x", "Hello, World!"},
        {"data:base64,SGVs", "SGVs"},
        {"data:;base64,", ""},
        {"data:;base64,SGVsbG8sIFdvcmxkIQ=", NULL},
        {"data:;base64,S", NULL},
        {"data:;base64,/w==", NULL},
        {"data:,%ff", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_buf out = {0};
        sl_buf_cstr(&out, "<");
        bool good = sl_js_data_url(sl_str(rows[i].url), &out);
        if (good != (rows[i].content != NULL))
            fail_msg("%s", rows[i].url);
        expect((struct sl_str){(const char *)out.data + 1, out.size - 1}, good ? rows[i].content : "");
        sl_buf_free(&out);
    }
}

TEST(references_are_resolved_against_the_script)
{
    static const char script[] = "https://example.com/path/to/assets/bundle.min.js?foo=1&bar=baz#wat";
    static const struct {
        const char *base, *reference, *path;
    } rows[] = {
        {script, "../sourcemaps/bundle.min.js.map", "https://example.com/path/to/sourcemaps/bundle.min.js.map"},
        {script, "/foo.js", "https://example.com/foo.js"},
        {script, "~/foo.js", "https://example.com/foo.js"},
        {script, ".././.././to/./sourcemaps/./bundle.min.js.map",
         "https://example.com/path/to/sourcemaps/bundle.min.js.map"},
        {script, "", "https://example.com/path/to/assets"},
        {script, "../../../../../x", "https://example.com/x"},
        {"/home/foo/bar/baz.js", "../sourcemaps/x.map", "/home/foo/sourcemaps/x.map"},
        {"http://example.com", "path/./to/file.min.js", "http://example.com/path/to/file.min.js"},
        {"app:///_next/static/chunks/pages/_app-1.js.map", "./node_modules/a.js",
         "app:///_next/static/chunks/pages/node_modules/a.js"},
        {"app:///main.js.map", "webpack:/node_modules/x.js", "webpack:/node_modules/x.js"},
        {"app:///main.js.map", "turbopack:x", "turbopack:x"},
        {"https://foo.net/static//js/a.js", "a.js.map", "https://foo.net/static/js/a.js.map"},
        {"https://foo.net/static//js/a.js", "../../a.js.map", "https://foo.net/static/a.js.map"},
        {"http://example.com/foo/baz", "bar", "http://example.com/foo/bar"},
        {"apsunknown://example.com/foo", "//aha/uhu", "apsunknown://aha/uhu"},
        {"app:///a/b.js", "../../x.js", "app:///../x.js"},
        {"app:///a/b.js", "x/./y.js", "app:///a/x/./y.js"},
        {"bundle.js", "x.map", "/x.map"},
        {"file:///a/b.js", "b.map", "/a/b.map"},
        {"file:///a/b.js", "/b.map", "/b.map"},
        {"/p/\xC3\xB6ut path/a.js", "../s\xC3\xB6urce/b.js", "/p/s\xC3\xB6urce/b.js"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_buf out = {0};
        sl_js_join(sl_str(rows[i].base), sl_str(rows[i].reference), &out);
        expect(sl_buf_view(&out), rows[i].path);
        sl_buf_free(&out);
    }
}
