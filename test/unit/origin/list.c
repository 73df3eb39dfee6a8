/* What a source may hold for a module: filters, order, URIs and URLs. */
#include "../check.h"

#include "origin/impl.h"

static struct sl_arena arena;

static struct object_id module(enum object_type type, const char *code_id, const char *code_file, const char *debug_id,
                               const char *debug_file)
{
    struct object_id id = {.type = type, .code_file = sl_str(code_file), .debug_file = sl_str(debug_file)};
    if (code_id)
        id.code_id = sl_code_id_normalise(&arena, sl_str(code_id));
    id.has_debug_id = debug_id && sl_debug_id_parse(sl_str(debug_id), &id.debug_id);
    return id;
}

#define PE                                                                                                             \
    module(OBJECT_PE, "5ab380779000", "C:\\Windows\\System32\\crash.exe", "3249d99d-0c40-4931-8610-f4e4fb0b6936-1",    \
           "C:\\out\\crash.pdb")
#define MACHO module(OBJECT_MACHO, NULL, "/build/crash", "67e9247c-814e-392b-a027-dbde6748fcbf", "crash")

/* The URIs, separated by blanks. */
static void expect(const struct source *source, struct object_id id, const enum file_type *types, size_t count,
                   const char *expected)
{
    struct remote_file *files;
    struct sl_error error;
    size_t found;
    struct sl_buf out = {0};
    assert_int_equal(origin_list(source, &id, types, count, &arena, &files, &found, &error), SL_OK);
    for (size_t i = 0; i < found; i++)
        sl_buf_printf(&out, "%s" SL_STR_FMT, i ? " " : "", SL_STR_ARG(files[i].uri));
    sl_buf_u8(&out, 0);
    assert_string_equal((char *)out.data, expected);
    sl_buf_free(&out);
}

TEST(files_are_listed_by_source_and_type)
{
    static const enum file_type types[] = {FILE_PE, FILE_BREAKPAD, FILE_PDB, FILE_ELF_DEBUG};
    struct source source = {.type = SOURCE_HTTP, .url = SL_STR("https://h/s/?sig=1")};
    expect(&source, PE, types, 4,
           "https://h/s/crash.exe/5AB380779000/crash.exe https://h/s/crash.exe/5AB380779000/crash.ex_ "
           "https://h/s/crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.sym "
           "https://h/s/crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.pdb "
           "https://h/s/crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.pd_ "
           "https://h/s/5a/b380779000.debug");
    source.filetypes = 1u << FILE_BREAKPAD | 1u << FILE_MACH_CODE;
    expect(&source, PE, types, 4, "https://h/s/crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.sym");
    source.filetypes = 1u << FILE_MACH_CODE;
    expect(&source, PE, types, 4, "");
}

/* With any amount of memory the list is whole, or there is none. */
TEST(lack_of_memory_leaves_no_file_out)
{
    enum { WHOLE = 6, MOST_MEMORY = 64 << 10 };
    static const enum file_type types[] = {FILE_PE, FILE_BREAKPAD, FILE_PDB, FILE_ELF_DEBUG};
    struct sl_str pattern = SL_STR("**/crash.exe");
    struct object_id id = PE;
    size_t busy = 0, whole = 0;
    for (size_t limit = 1; limit < MOST_MEMORY; limit += 100) {
        struct source source = {
            .type = SOURCE_HTTP, .url = SL_STR("https://h/s/"), .path_patterns = &pattern, .path_pattern_count = 1};
        struct remote_file *files;
        struct sl_error error;
        size_t found;
        struct sl_arena small;
        sl_arena_init(&small, limit);
        enum sl_code code = origin_list(&source, &id, types, 4, &small, &files, &found, &error);
        assert_true(code == SL_BUSY || (code == SL_OK && found == WHOLE));
        busy += code == SL_BUSY;
        whole += code == SL_OK;
        sl_arena_free(&small);
    }
    assert_true(busy && whole);
}

struct failing_index {
    struct source_index source;
    size_t answer;
};

static size_t find_with(const struct source_index *index, const struct object_id *id, enum file_type type,
                        struct sl_arena *in, struct indexed_file *found)
{
    return ((const struct failing_index *)index)->answer;
}

TEST(index_without_memory_is_busy)
{
    static const enum file_type type = FILE_PE;
    struct failing_index index = {.source.find = find_with, .answer = INDEX_BUSY};
    struct source source = {.type = SOURCE_FILESYSTEM, .path = SL_STR("/s"), .index = &index.source};
    struct object_id id = PE;
    struct remote_file *files;
    struct sl_error error;
    size_t found;
    assert_int_equal(origin_list(&source, &id, &type, 1, &arena, &files, &found, &error), SL_BUSY);
    index.answer = INDEX_UNREADABLE;
    assert_int_equal(origin_list(&source, &id, &type, 1, &arena, &files, &found, &error), SL_DOWNLOAD_ERROR);
}

TEST(url_without_a_host_has_no_files)
{
    static const enum file_type type = FILE_PE;
    struct source source = {.type = SOURCE_HTTP, .url = SL_STR("data:text/plain,x")};
    expect(&source, PE, &type, 1, "");
}

TEST(path_patterns_filter_files)
{
    static const enum file_type type = FILE_MACH_CODE;
    static const struct {
        const char *pattern;
        bool match;
    } rows[] = {{"c:/windows/*", true},    {"?:/windows/**", true},  {"C:/WINDOWS/**/crash.exe", true},
                {"c:/out/*.pdb", true},    {"d:/windows/**", false}, {"?:/windows/", false},
                {"crash.exe", false},      {"**/crash.exe", true},   {"**/rash.exe", false},
                {"c:\\windows\\*", false}, {"**/system32/*", true}};
    const char *file = "s3://b/67E9/247C/814E/392B/A027/DBDE6748FCBF.app";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_str text[] = {SL_STR("nothing"), sl_str(rows[i].pattern)};
        struct source source = {
            .type = SOURCE_S3, .bucket.s3_name = SL_STR("b"), .path_patterns = text, .path_pattern_count = 2};
        struct object_id id = MACHO;
        id.code_file = SL_STR("C:\\Windows\\System32\\crash.exe");
        id.debug_file = SL_STR("C:\\out\\crash.pdb");
        expect(&source, id, &type, 1, rows[i].match ? file : "");
        id.code_file = id.debug_file = (struct sl_str){NULL, 0};
        expect(&source, id, &type, 1, "");
        source.path_pattern_count = 0;
        expect(&source, id, &type, 1, file);
    }
}

TEST(sources_requiring_checksums_need_one)
{
    static const enum file_type type = FILE_PDB;
    struct source source = {.type = SOURCE_HTTP, .url = SL_STR("https://h"), .requires_checksum = true};
    struct object_id id = PE;
    expect(&source, id, &type, 1, "");
    id.debug_checksum = SL_STR("SHA256:87a8");
    expect(&source, id, &type, 1,
           "https://h/crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.pdb "
           "https://h/crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.pd_");
}

TEST(uris_are_encoded_by_source_type)
{
    static const enum file_type type = FILE_BREAKPAD;
    struct object_id id = PE;
    id.debug_file = SL_STR("with spaces?#%.pdb");
    struct source source = {.type = SOURCE_S3, .bucket = {.s3_name = SL_STR("bucket"), .prefix = SL_STR("prefix/a")}};
    expect(
        &source, id, &type, 1,
        "s3://bucket/prefix/a/with%20spaces%3F%23%25.pdb/3249D99D0C4049318610F4E4FB0B69361/with%20spaces%3F%23%25.sym");
    source.type = SOURCE_GCS;
    source.bucket.prefix.size = 0;
    expect(&source, id, &type, 1,
           "gs://bucket/with%20spaces%3F%23%25.pdb/3249D99D0C4049318610F4E4FB0B69361/with%20spaces%3F%23%25.sym");
    source = (struct source){.type = SOURCE_FILESYSTEM, .path = SL_STR("/srv/x y")};
    expect(&source, id, &type, 1,
           "file:///srv/x y/with spaces?#%.pdb/3249D99D0C4049318610F4E4FB0B69361/with spaces?#%.sym");
    source.path = SL_STR("/srv/");
    id = PE;
    expect(&source, id, &type, 1, "file:///srv/crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.sym");
}

TEST(urls_are_joined)
{
    static const struct {
        const char *base, *location, *url;
    } rows[] = {
        {"https://example.org/base", "", "https://example.org/base"},
        {"https://example.org/base/", "", "https://example.org/base"},
        {"https://example.org/base", "foo bar", "https://example.org/base/foo%20bar"},
        {"https://example.org/base/", "foo", "https://example.org/base/foo"},
        {"https://example.org/base/", "/foo", "https://example.org/base/foo"},
        {"https://example.org/base", "foo//bar", "https://example.org/base/foo/bar"},
        {"https://example.org", "", "https://example.org/"},
        {"https://example.org", "a", "https://example.org/a"},
        {"https://example.org?x=1", "a", "https://example.org/a?x=1"},
        {"https://example.org/b/?x=1#f", "a", "https://example.org/b/a?x=1"},
        {"HTTPS://Example.ORG:443/B", "a", "https://example.org/B/a"},
        {"http://example.org:80", "a", "http://example.org/a"},
        {"https://example.org:80", "a", "https://example.org:80/a"},
        {"https://u:p@example.org/b", "a", "https://u:p@example.org/b/a"},
        {"https://example.org/base", "../../etc/./passwd", "https://example.org/base/etc/passwd"},
        {"https://example.org/base", "?#%\"<>{}`\\\xC3\xA9",
         "https://example.org/base/%3F%23%25%22%3C%3E%7B%7D%60%5C%C3%A9"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_str url = http_location_url(&arena, sl_str(rows[i].base), sl_str(rows[i].location), true);
        if (!sl_str_equal(url, sl_str(rows[i].url)))
            fail_msg(SL_STR_FMT " != %s", SL_STR_ARG(url), rows[i].url);
    }
    struct sl_str shown = http_location_url(&arena, SL_STR("https://u:p@h/b?sig=1"), SL_STR("a"), false);
    assert_true(sl_str_equal(shown, SL_STR("https://h/b/a")));
    assert_null(http_location_url(&arena, SL_STR("mailto:x"), SL_STR("a"), true).data);
    assert_null(http_location_url(&arena, SL_STR("http://"), SL_STR("a"), true).data);
}

TEST(public_sources_have_the_global_scope)
{
    struct source source = {.is_public = true};
    struct remote_file file = {.source = &source};
    assert_true(sl_str_equal(origin_scope(&file, SL_STR("42")), SL_STR("global")));
    source.is_public = false;
    assert_true(sl_str_equal(origin_scope(&file, SL_STR("42")), SL_STR("42")));
}

TEST(index_is_used_for_symstore_only)
{
    static const enum file_type type = FILE_BREAKPAD;
    struct source source = {.type = SOURCE_HTTP, .url = SL_STR("https://h"), .has_index = true};
    expect(&source, PE, &type, 1, "https://h/crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.sym");
}

static int forget(void **state)
{
    sl_arena_free(&arena);
    return 0;
}

TEST_FILE(.teardown = forget);
