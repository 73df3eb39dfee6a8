/* Joining, cleaning and splitting paths of debug information. */
#include "../check.h"

#include "function/path.h"

static void expect(struct sl_buf *out, const char *text)
{
    assert_true(sl_str_equal(sl_buf_view(out), sl_str(text)));
    sl_buf_free(out);
}

TEST(paths_are_joined)
{
    static const char *const rows[][3] = {
        {"foo", "C:", "C:"},
        {"foo", "C:bar", "foo/C:bar"},
        {"C:/a", "b", "C:/a\\b"},
        {"\\\\UNC\\", "a", "\\\\UNC\\a"},
        {"C:\\foo/bar", "\\baz", "C:\\baz"},
        {"/a/b", "\\c", "\\c"},
        {"a/b/", "c", "a/b/c"},
        {"a/b/", "<stdin>", "<stdin>"},
        {"", "x", "x"},
        {"x", "", "x"},
        {"a", "/b", "/b"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_buf out = {0};
        sl_path_join(&out, sl_str(rows[i][0]), sl_str(rows[i][1]));
        expect(&out, rows[i][2]);
    }
}

TEST(paths_are_normalised)
{
    static const char *const rows[][2] = {
        {"/foo/bar/baz/./blah/", "/foo/bar/baz/blah"},
        {"foo/bar/baz/../blah/", "foo/bar/blah"},
        {"..\\../blah/", "..\\..\\blah"},
        {"foo\\bar\\baz/../../../../blah/", "..\\blah"},
        {"../../blah/", "../../blah"},
        {"\\\\foo\\..\\bar", "\\\\bar"},
        {"/foo/../bar", "/bar"}, /* an absolute path stays absolute */
        {"/foo/../../b", "/b"},
        {"a//b", "a/b"},
        {"C:\\a\\..\\..\\b", "C:\\b"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_buf out = {0};
        sl_path_clean(&out, sl_str(rows[i][0]));
        expect(&out, rows[i][1]);
    }
}

TEST(paths_are_split_into_directory_and_name)
{
    static const char *const rows[][3] = {
        {"/a", "/", "a"}, {"a/", "", "a"}, {"C:/a\\b", "C:/a", "b"}, {"C:\\a\\b", "C:\\a", "b"}, {"", "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_str directory, name;
        sl_path_split(sl_str(rows[i][0]), &directory, &name);
        assert_true(sl_str_equal(directory, sl_str(rows[i][1])));
        assert_true(sl_str_equal(name, sl_str(rows[i][2])));
    }
}

TEST(modules_are_known_by_their_name)
{
    static const char *const rows[][2] = {{"/usr/lib/debug/usr/bin/app.debug", "app"},
                                          {"C:\\a\\app.exe", "app"},
                                          {"C:\\a\\app.pdb", "app"},
                                          {"libc.so.6", "libc.so.6"},
                                          {".debug", ".debug"},
                                          {"", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(sl_str_equal(sl_path_module_name(sl_str(rows[i][0])), sl_str(rows[i][1])));
}

TEST(paths_have_common_parts_at_their_ends)
{
    static const struct {
        const char *a, *b;
        size_t parts;
    } rows[] = {
        {"app", "app", 1},
        {"/a/b/app", "b/app.debug", 2},
        {"/a/b/app", "/a/b/app", 3},
        {"/a/b/app", "/x/b/app", 2},
        {"C:\\b\\app.exe", "b/app", 2},
        {"/bb/app", "/b/app", 1},
        {"", "", 1},
        {"///", "/", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(sl_path_common_parts(sl_str(rows[i].a), sl_str(rows[i].b)), rows[i].parts);
        assert_int_equal(sl_path_common_parts(sl_str(rows[i].b), sl_str(rows[i].a)), rows[i].parts);
    }
}
