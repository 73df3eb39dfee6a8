/* What remote sources are asked with and how their answers are read: URLs, indexes, pointers. */
#include "../check.h"

#include "origin/impl.h"

static struct sl_arena arena;

static int forget(void **state)
{
    sl_arena_free(&arena);
    return 0;
}

#define same(str, text) assert_true(sl_str_equal((str), sl_str(text)))

/* ---- URLs of Sentry ---- */
TEST(queries_are_appended)
{
    static const struct {
        const char *base, *url;
    } rows[] = {
        {"https://h/p/", "https://h/p/?debug_id=a-1&code_id=b%26c"},
        {"https://h/p", "https://h/p?debug_id=a-1&code_id=b%26c"},
        {"https://h", "https://h/?debug_id=a-1&code_id=b%26c"},
        {"https://h?x=1", "https://h/?x=1&debug_id=a-1&code_id=b%26c"},
        {"https://h/?", "https://h/?debug_id=a-1&code_id=b%26c"},
        {"https://h/?_last_upload=17", "https://h/?_last_upload=17&debug_id=a-1&code_id=b%26c"},
        {"https://h/p#f", "https://h/p?debug_id=a-1&code_id=b%26c"},
        {"https://h?a=/b", "https://h/?a=/b&debug_id=a-1&code_id=b%26c"},
    };
    static const struct query_pair pairs[] = {{"debug_id", SL_STR("a-1")}, {"code_id", SL_STR("b&c")}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        same(sentry_url(&arena, sl_str(rows[i].base), pairs, 2), rows[i].url);
    same(sentry_url(&arena, SL_STR("https://example.net/endpoint/"), &(struct query_pair){"id", SL_STR("abc123")}, 1),
         "https://example.net/endpoint/?id=abc123");
}

/* ---- indexes ---- */
TEST(segment_lines_give_paths)
{
    static const struct {
        const char *line, *path; /* NULL = names none */
    } rows[] = {
        {"\"crash.exe\\5AB380779000\",some more data", "crash.exe/5AB380779000/crash.exe\n"},
        {"\"a\\1\",\"x\\y\"", "a/1/a\n"},
        {"\"a\\1\"", "a/1/a\n"},
        {"junk\"a\\1\"", "a/1/a\n"},
        {"\"a\\1\\2\",", "a/1\\2/a\n"},
        {"\"a\\1", NULL},
        {"\"a1\",", NULL},
        {"\"\\1\",", NULL},
        {"\"a\\\",", NULL},
        {"a\\1", NULL},
        {"\"", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_buf lines = {0};
        struct sl_bytes bytes = {(const uint8_t *)rows[i].line, strlen(rows[i].line)};
        assert_int_equal(origin_index_read(bytes, &lines), rows[i].path == NULL);
        same(sl_buf_view(&lines), rows[i].path ? rows[i].path : "");
        sl_buf_free(&lines);
    }
    struct sl_buf lines = {0};
    static const char text[] = "\"b\\2\"\r\n\r\n\n\"a\\1\"\nwhat\n\"b\\2\"\n\"B\\2\"";
    assert_int_equal(origin_index_read((struct sl_bytes){(const uint8_t *)text, sizeof text - 1}, &lines), 1);
    assert_true(origin_index_sort(&lines));
    same(sl_buf_view(&lines), "B/2/B\na/1/a\nb/2/b\n");
    sl_buf_clear(&lines);
    assert_true(origin_index_sort(&lines));
    sl_buf_free(&lines);
}

TEST(index_finds_paths_in_any_case)
{
    static const char text[] = "A.PDB/1/A.PDB\nCRASH.pdb/1a/CRASH.pdb\nKernel32.dll/1/Kernel32.dll\na.pdb/1/a.pdb\n"
                               "a.pdb/1a/a.pdb\nb\nb/C\nkernel32.dll/2/kernel32.dll\nz/1/z\n";
    static const struct {
        const char *path, *found;
    } rows[] = {
        {"A.PDB/1/A.PDB", "A.PDB/1/A.PDB"},
        {"a.pdb/1/a.pdb", "a.pdb/1/a.pdb"},
        {"A.pdb/1/a.pdb", "A.PDB/1/A.PDB"},
        {"a.pdb/1A/a.pdb", "a.pdb/1a/a.pdb"},
        {"crash.PDB/1A/crash.PDB", "CRASH.pdb/1a/CRASH.pdb"},
        {"kernel32.dll/1/kernel32.dll", "Kernel32.dll/1/Kernel32.dll"},
        {"KERNEL32.DLL/2/KERNEL32.DLL", "kernel32.dll/2/kernel32.dll"},
        {"Z/1/Z", "z/1/z"},
        {"B", "b"},
        {"b/c", "b/C"},
        {"b/", NULL},
        {"", NULL},
        {"kernel32.dll/3/kernel32.dll", NULL},
        {"a.pdb/1/a.pd", NULL},
        {"a.pdb/1/a.pdbx", NULL},
        {"zz", NULL},
        {"!", NULL},
    };
    struct sl_bytes lines = {(const uint8_t *)text, sizeof text - 1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_str found = origin_index_find(lines, sl_str(rows[i].path));
        if ((found.data != NULL) != (rows[i].found != NULL) ||
            (found.data && !sl_str_equal(found, sl_str(rows[i].found))))
            fail_msg("%s: " SL_STR_FMT, rows[i].path, SL_STR_ARG(found));
    }
    assert_null(origin_index_find((struct sl_bytes){NULL, 0}, SL_STR("a")).data);
    /* no line end at the end, empty lines */
    static const char odd[] = "\n\nA";
    same(origin_index_find((struct sl_bytes){(const uint8_t *)odd, 3}, SL_STR("a")), "A");
}

/* An index with every case of a name must not cost more than so many steps. */
TEST(hostile_index_is_searched_in_limited_steps)
{
    struct sl_buf lines = {0};
    char name[] = "aaaaaaaaaaaaaaaaX";
    for (unsigned i = 0; i < 1u << 16; i++) {
        for (unsigned bit = 0; bit < 16; bit++)
            name[bit] = i >> (15 - bit) & 1 ? 'a' : 'A';
        sl_buf_cstr(&lines, name);
        sl_buf_u8(&lines, '\n');
    }
    assert_null(origin_index_find(sl_buf_bytes(&lines), SL_STR("aaaaaaaaaaaaaaaay")).data);
    same(origin_index_find(sl_buf_bytes(&lines), SL_STR("aaaaaaaaaaaaaaaax")), "aaaaaaaaaaaaaaaaX");
    sl_buf_free(&lines);
}

TEST(segment_urls_follow_the_source_root)
{
    struct source source = {
        .id = SL_STR("s"), .type = SOURCE_S3, .bucket = {.s3_name = SL_STR("b"), .prefix = SL_STR("p/q")}};
    struct remote_file file;
    assert_true(origin_index_segment(&source, 12, &arena, &file));
    same(file.uri, "s3://b/p/q/000Admin/0000000012");
    same(file.path, "000Admin/0000000012");
    assert_true(origin_set_path(&file, SL_STR("x/1/x"), &arena));
    same(file.uri, "s3://b/p/q/x/1/x");
    same(origin_root(&source, &arena), "s3://b/p/q/");
    source = (struct source){.type = SOURCE_HTTP, .url = SL_STR("https://u:p@h/x/?sig=1")};
    same(origin_root(&source, &arena), "https://h/x");
    assert_false(origin_has_index(&source));
    source.has_index = true;
    assert_false(origin_has_index(&source));
    source.layout = LAYOUT_SYMSTORE;
    assert_true(origin_has_index(&source));
}

/* ---- pointers ---- */
TEST(file_ptr_contents_are_parsed)
{
    static const struct {
        struct sl_str text;
        const char *path;
    } rows[] = {
        {SL_STR("PATH:\\\\host\\share\\x"), "\\\\host\\share\\x"},
        {SL_STR("PATH:/x y \r\n\0\0"), "/x y"},
        {SL_STR("PATH: /x"), " /x"},
        {SL_STR("PATH:"), ""},
        {SL_STR("PATH:\r\n"), ""},
        {SL_STR("path:/x"), ""},
        {SL_STR("MSG: gone"), ""},
        {SL_STR(" PATH:/x"), ""},
        {SL_STR(""), ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        same(pointer_parse(rows[i].text), rows[i].path);
}

TEST(file_ptr_paths_must_lie_below_the_roots)
{
    static const struct sl_str roots[] = {SL_STR("/srv/one/"), SL_STR("/srv/two")};
    static const struct text_pair shares[] = {{SL_STR("\\\\host\\share"), SL_STR("/srv/two")},
                                              {SL_STR("//other/s/"), SL_STR("/elsewhere")}};
    static const struct {
        const char *path, *root, *relative; /* root NULL = refused */
    } rows[] = {
        {"/srv/one/a/b", "/srv/one", "a/b"},
        {"/srv/two//a", "/srv/two", "a"},
        {"\\\\HOST\\share\\a\\b", "/srv/two", "a/b"},
        {"//host/Share/a", "/srv/two", "a"},
        {"\\\\host\\share\\..\\a", "/srv/two", "../a"}, /* opened beneath the root alone */
        {"/srv/ones/a", NULL, NULL},
        {"/srv/one", NULL, NULL},
        {"/srv/one/", NULL, NULL},
        {"\\\\host\\share", NULL, NULL},
        {"\\\\host\\shares\\a", NULL, NULL},
        {"\\\\other\\s\\a", NULL, NULL},
        {"srv/one/a", NULL, NULL},
        {"C:\\a", NULL, NULL},
        {"/etc/passwd", NULL, NULL},
        {"", NULL, NULL},
    };
    struct sl_str root, relative;
    assert_false(pointer_local(&arena, SL_STR("/srv/one/a"), &root, &relative));
    origin_init(&(struct origin_options){
        .file_ptr_roots = roots, .file_ptr_root_count = 2, .unc_map = shares, .unc_map_count = 2});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool ok = pointer_local(&arena, sl_str(rows[i].path), &root, &relative);
        if (ok != (rows[i].root != NULL))
            fail_msg("%s", rows[i].path);
        if (ok) {
            same(root, rows[i].root);
            same(relative, rows[i].relative);
        }
    }
    assert_false(pointer_local(&arena, SL_STR("/srv/one/a\0b"), &root, &relative));
    origin_init(&(struct origin_options){0});
}

TEST(file_ptr_files_are_listed)
{
    static const enum file_type types[] = {FILE_PE, FILE_PDB, FILE_BREAKPAD};
    struct object_id id = {.type = OBJECT_PE,
                           .code_id = SL_STR("5ab380779000"),
                           .code_file = SL_STR("c.exe"),
                           .debug_file = SL_STR("c.pdb"),
                           .has_debug_id = true};
    assert_true(sl_debug_id_parse(SL_STR("3249d99d-0c40-4931-8610-f4e4fb0b6936-1"), &id.debug_id));
    static const struct {
        enum layout_type layout;
        enum layout_casing casing;
        const char *first; /* NULL = none */
    } rows[] = {
        {LAYOUT_NATIVE, CASING_DEFAULT, "c.exe/5AB380779000/file.ptr"},
        {LAYOUT_SYMSTORE, CASING_UPPERCASE, "C.EXE/5AB380779000/FILE.PTR"},
        {LAYOUT_SYMSTORE_INDEX2, CASING_DEFAULT, "c/c.exe/5AB380779000/file.ptr"},
        {LAYOUT_SSQP, CASING_DEFAULT, "c.exe/5ab380779000/file.ptr"},
        {LAYOUT_UNIFIED, CASING_DEFAULT, NULL},
        {LAYOUT_DEBUGINFOD, CASING_DEFAULT, NULL},
        {LAYOUT_SLASHSYMBOLS, CASING_DEFAULT, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct source source = {.type = SOURCE_FILESYSTEM,
                                .path = SL_STR("/s"),
                                .layout = rows[i].layout,
                                .casing = rows[i].casing,
                                .file_ptr = true};
        struct remote_file *files;
        size_t count, pointers = 0;
        assert_int_equal(origin_list(&source, &id, types, 3, &arena, &files, &count, NULL), SL_OK);
        for (size_t f = 0; f < count; f++) {
            if (files[f].pointer && pointers++ == 0)
                same(files[f].path, rows[i].first);
        }
        assert_int_equal(pointers, rows[i].first ? 2 : 0);
    }
}

TEST_FILE(.teardown = forget);
