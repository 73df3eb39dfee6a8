/* Source bundles: what is written is found again, and as objects. */
#include "../check.h"

#include "object/object.h"
#include "source/bundle.h"
#include "source/zip.h"

static struct sl_buf file;

static int done(void **state)
{
    sl_buf_free(&file);
    return 0;
}

static struct sl_bytes bytes_of(const char *text)
{
    return (struct sl_bytes){(const uint8_t *)text, strlen(text)};
}

static struct sl_bundle_writer *begin(void)
{
    sl_buf_clear(&file);
    return sl_bundle_writer_new(&file);
}

static struct sl_bundle *finish(struct sl_bundle_writer *writer)
{
    static const struct sl_bundle_attribute attributes[] = {
        {SL_STR("arch"), SL_STR("x86_64")},
        {SL_STR("code_id"), SL_STR("7f883fcdc55336d0a809b0150f09500b")},
        {SL_STR("debug_id"), SL_STR("7f883fcd-c553-36d0-a809-b0150f09500b")},
        {SL_STR("object_name"), SL_STR("example")},
    };
    struct sl_bundle *bundle;
    struct sl_error error = {0};
    assert_int_equal(sl_bundle_finish(writer, attributes, 4, &error), SL_OK);
    sl_bundle_writer_free(writer);
    if (sl_bundle_open(sl_buf_bytes(&file), NULL, &bundle, &error) != SL_OK)
        fail_msg("%s", error.message);
    return bundle;
}

/* A bundle with this manifest and nothing else but the entries "one" to "three", whose text is their name. */
static enum sl_code open_manifest(const char *manifest, struct sl_bundle **bundle, struct sl_error *error)
{
    struct sl_zip_writer writer = {.out = &file};
    sl_buf_clear(&file);
    sl_buf_cstr(&file, "SYSB\2");
    sl_buf_fill(&file, 0, 3);
    sl_zip_add(&writer, SL_STR("one"), bytes_of("one"));
    sl_zip_add(&writer, SL_STR("two"), bytes_of("old two"));
    sl_zip_add(&writer, SL_STR("two"), bytes_of("two"));
    sl_zip_add(&writer, SL_STR("three"), bytes_of("three"));
    sl_zip_add(&writer, SL_STR("manifest.json"), bytes_of(manifest));
    assert_int_equal(sl_zip_finish(&writer, NULL), SL_OK);
    return sl_bundle_open(sl_buf_bytes(&file), NULL, bundle, error);
}

static struct sl_bundle *opened(const char *manifest)
{
    struct sl_bundle *bundle;
    struct sl_error error = {0};
    if (open_manifest(manifest, &bundle, &error) != SL_OK)
        fail_msg("%s", error.message);
    return bundle;
}

static void expect_text(const struct sl_bundle *bundle, const struct sl_bundle_file *found, const char *wanted)
{
    struct sl_buf text = {0};
    assert_non_null(found);
    assert_int_equal(sl_bundle_read(bundle, found, 1000, &text, NULL), SL_OK);
    assert_true(sl_str_equal(sl_buf_view(&text), sl_str(wanted)));
    sl_buf_free(&text);
}

static void expect_at(const struct sl_bundle *bundle, const char *path, const char *wanted)
{
    const struct sl_bundle_file *found = sl_bundle_by_path(bundle, sl_str(path));
    if (wanted)
        expect_text(bundle, found, wanted);
    else
        assert_null(found);
}

TEST(entry_names_are_made_unique)
{
    static const char *const rows[][2] = {{"foo", "files/foo"},
                                          {"foo/bar", "files/foo/bar"},
                                          {"/foo/bar", "files/foo/bar.1"},
                                          {"C:/foo/bar", "files/C/foo/bar"},
                                          {"\\foo\\bar", "files/foo/bar.2"},
                                          {"\\\\UNC\\foo\\bar", "files/UNC/foo/bar"},
                                          {"bar.txt", "files/bar.txt"},
                                          {"bar.txt", "files/bar.txt.1"},
                                          {"a:b/c", "files/a:b/c"}};
    struct sl_bundle_writer *writer = begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(sl_bundle_add(writer, SL_BUNDLE_SOURCE, sl_str(rows[i][0]), SL_STR(""), bytes_of("x")));
    struct sl_bundle *bundle = finish(writer);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool found = false;
        for (size_t f = 0; f < sl_bundle_count(bundle); f++)
            found = found || sl_str_equal(sl_bundle_file(bundle, f)->name, sl_str(rows[i][1]));
        if (!found)
            fail_msg("no entry %s", rows[i][1]);
    }
    sl_bundle_close(bundle);
}

TEST(files_are_found_with_either_separator)
{
    struct sl_bundle_writer *writer = begin();
    sl_bundle_add(writer, SL_BUNDLE_SOURCE, SL_STR("C:\\users\\martin\\mydebugfile.cs"), SL_STR(""), bytes_of("cs"));
    sl_bundle_add(writer, SL_BUNDLE_SOURCE, SL_STR("/usr/martin/mydebugfile.h"), SL_STR(""), bytes_of("h"));
    struct sl_bundle *bundle = finish(writer);
    expect_at(bundle, "C:\\users\\martin\\mydebugfile.cs", "cs");
    expect_at(bundle, "C:/users/martin/mydebugfile.cs", "cs");
    expect_at(bundle, "C:\\users/martin\\mydebugfile.cs", "cs");
    expect_at(bundle, "c:\\Users\\martin\\MyDebugFile.cs", "cs");
    expect_at(bundle, "/usr/martin/mydebugfile.h", "h");
    expect_at(bundle, "\\usr\\martin\\mydebugfile.h", "h");
    expect_at(bundle, "/usr/Martin/mydebugfile.h", NULL);
    expect_at(bundle, "mydebugfile.h", NULL);
    expect_at(bundle, "", NULL);
    sl_bundle_close(bundle);
}

static void expect_link(const struct sl_bundle *bundle, const char *path, const char *wanted)
{
    struct sl_buf url = {0};
    assert_int_equal(sl_bundle_link(bundle, sl_str(path), &url), wanted != NULL);
    if (wanted)
        assert_true(sl_str_equal(sl_buf_view(&url), sl_str(wanted)));
    sl_buf_free(&url);
}

TEST(source_links_are_resolved)
{
    struct sl_bundle *bundle = opened(
        "{\"files\":{\"one\":{\"path\":\"/files/bar/index.min.js\",\"url\":\"https://example.com/bar/index.min.js\","
        "\"type\":\"minified_source\"}},\"source_links\":{\"/files/bar/*\":\"https://nope.com/*\","
        "\"/files/foo/*\":\"https://example.com/*\",\"C:\\\\src\\\\*\":\"https://windows.com/*\"}}");
    expect_at(bundle, "/files/foo/index.min.js", NULL);
    expect_link(bundle, "/files/foo/index.min.js", "https://example.com/index.min.js");
    expect_link(bundle, "c:\\src\\a\\b.c", "https://windows.com/a/b.c");
    expect_link(bundle, "/other", NULL);
    const struct sl_bundle_file *found = sl_bundle_by_path(bundle, SL_STR("/files/bar/index.min.js"));
    assert_true(found && sl_str_equal(found->url, SL_STR("https://example.com/bar/index.min.js")));
    assert_int_equal(found->type, SL_BUNDLE_MINIFIED_SOURCE);
    assert_ptr_equal(sl_bundle_by_url(bundle, SL_STR("https://example.com/bar/index.min.js")), found);
    assert_null(sl_bundle_by_url(bundle, SL_STR("https://example.com/index.min.js")));
    sl_bundle_close(bundle);
}

TEST(manifests_are_read)
{
    struct sl_bundle *bundle =
        opened("{\"files\":{\"one\":{\"path\":\"/p\",\"url\":\"~/u\",\"unknown\":[{}],\"headers\":{\"Debug-Id\":"
               "\"5e618b9f-54a9-4389-b196-519819dd7c47\",\"X\":\"1\"},\"type\":\"minified_source\"},"
               "\"two\":{\"path\":\"/p\",\"type\":\"strange\"},\"three\":{\"path\":\"/t\\u0065xt\"},"
               "\"gone\":{\"path\":\"/gone\"}},\"debug_id\":7,\"note\":\"x\",\"arch\":\"amd64\"}");
    struct sl_debug_id id;
    struct sl_buf text = {0};
    assert_true(sl_debug_id_parse(SL_STR("5e618b9f-54a9-4389-b196-519819dd7c47"), &id));
    expect_text(bundle, sl_bundle_by_debug_id(bundle, &id, SL_BUNDLE_MINIFIED_SOURCE), "one");
    assert_null(sl_bundle_by_debug_id(bundle, &id, SL_BUNDLE_SOURCE));
    assert_int_equal(sl_bundle_by_url(bundle, SL_STR("~/u"))->header_count, 2);
    expect_at(bundle, "/p", "two"); /* of two the one with the greater name, and of its entries the last */
    expect_at(bundle, "/text", "three");
    assert_int_equal(sl_bundle_read(bundle, sl_bundle_by_path(bundle, SL_STR("/gone")), 9, &text, NULL), SL_NOT_FOUND);
    assert_true(sl_debug_id_is_nil(&sl_bundle_attributes(bundle)->debug_id));
    assert_true(sl_bundle_has_sources(bundle));
    sl_bundle_close(bundle);
    bundle = opened("{\"files\":{\"a\":{\"path\":\"C:/X/a.c\"},\"b\":{\"path\":\"C:/x/a.c\"}}}");
    assert_null(sl_bundle_by_path(bundle, SL_STR("c:/x/A.c"))); /* two fit */
    assert_non_null(sl_bundle_by_path(bundle, SL_STR("C:/x/a.c")));
    sl_bundle_close(bundle);
    bundle = opened("{}");
    assert_false(sl_bundle_has_sources(bundle));
    sl_bundle_close(bundle);
}

TEST(malformed_manifests_are_refused)
{
    static const char *const rows[] = {
        "", "[]", "{\"files\":{\"one\":7}}", "{\"files\":{\"one\":{}}", "{}x", "{\"note\":\"\xFF\"}"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_bundle *bundle;
        struct sl_error error = {0};
        assert_int_equal(open_manifest(rows[i], &bundle, &error), SL_MALFORMED);
        assert_non_null(strstr(error.message, "failed to read source bundle manifest"));
        assert_null(bundle);
    }
    struct sl_zip_writer writer = {.out = &file};
    struct sl_error error = {0};
    struct sl_bundle *bundle;
    sl_buf_clear(&file);
    sl_zip_add(&writer, SL_STR("a"), bytes_of("a"));
    assert_int_equal(sl_zip_finish(&writer, NULL), SL_OK);
    assert_int_equal(sl_bundle_open(sl_buf_bytes(&file), NULL, &bundle, &error), SL_MALFORMED);
    assert_non_null(strstr(error.message, "malformed zip archive"));
}

/* A manifest deflates well, but no honest one is many times as large as the archive that it is in. */
TEST(oversized_manifests_are_refused)
{
    static const struct {
        const char *more, *message;
        size_t count;
    } rows[] = {
        {",\"\":{}", "more files than the archive contains", 1000},
        {"                ", "the manifest of the source bundle is too large", (5 << 20) / 16},
        {"                ", NULL, (3 << 20) / 16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_buf manifest = {0};
        struct sl_bundle *bundle;
        struct sl_error error = {0};
        sl_buf_cstr(&manifest, "{\"files\":{\"one\":{}");
        for (size_t j = 0; j < rows[i].count; j++)
            sl_buf_cstr(&manifest, rows[i].more);
        sl_buf_cstr(&manifest, "}}");
        sl_buf_u8(&manifest, 0);
        enum sl_code code = open_manifest((const char *)manifest.data, &bundle, &error);
        assert_int_equal(code, rows[i].message ? SL_MALFORMED : SL_OK);
        assert_true(!rows[i].message || strstr(error.message, rows[i].message));
        sl_bundle_close(bundle);
        sl_buf_free(&manifest);
    }
}

TEST(file_size_limit_is_enforced)
{
    struct sl_bundle_writer *writer = begin();
    struct sl_buf text = {0};
    struct sl_error error = {0};
    assert_true(
        sl_bundle_add(writer, SL_BUNDLE_SOURCE, SL_STR("/a"), SL_STR(""), bytes_of("abcdefghijklmnopqrstuvwxyz")));
    assert_false(sl_bundle_add(writer, SL_BUNDLE_SOURCE, SL_STR("/b"), SL_STR(""),
                               (struct sl_bytes){(const uint8_t *)"\x00\x9F\x92\x96", 4}));
    struct sl_bundle *bundle = finish(writer);
    assert_int_equal(sl_bundle_count(bundle), 1);
    assert_int_equal(sl_bundle_read(bundle, sl_bundle_by_path(bundle, SL_STR("/a")), 20, &text, &error),
                     SL_UNSUPPORTED);
    assert_string_equal(error.message, "the source file exceeded the size limit");
    sl_bundle_close(bundle);
    writer = begin();
    assert_int_equal(sl_bundle_finish(writer, NULL, 0, &error), SL_NOT_FOUND);
    assert_string_equal(error.message, "the source bundle would have no files");
    sl_bundle_writer_free(writer);
}

TEST(equal_input_gives_equal_bytes)
{
    struct sl_buf first = {0};
    for (int round = 0; round < 2; round++) {
        struct sl_bundle_writer *writer = begin();
        sl_bundle_add(writer, SL_BUNDLE_SOURCE, SL_STR("/\"q\"\n"), SL_STR(""), bytes_of("a"));
        sl_bundle_add(writer, SL_BUNDLE_SOURCE, SL_STR("/b"), SL_STR(""), bytes_of("b"));
        struct sl_bundle *bundle = finish(writer);
        expect_at(bundle, "/\"q\"\n", "a");
        sl_bundle_close(bundle);
        if (round)
            assert_true(sl_str_equal(sl_buf_view(&first), sl_buf_view(&file)));
        else
            sl_buf_str(&first, sl_buf_view(&file));
    }
    sl_buf_free(&first);
}

TEST(opening_keeps_to_its_budget)
{
    enum { FILES = 2000, MIN_MEMORY = 64 << 10 };
    struct sl_bundle_writer *writer = begin();
    struct sl_budget budget;
    struct sl_bundle *bundle;
    struct sl_error error = {0};
    for (unsigned i = 0; i < FILES; i++) {
        char path[32];
        snprintf(path, sizeof path, "C:\\src\\%u.c", i);
        sl_bundle_add(writer, SL_BUNDLE_SOURCE, sl_str(path), SL_STR(""), bytes_of("a"));
    }
    sl_bundle_close(finish(writer));
    sl_budget_init(&budget, file.size);
    assert_int_equal(sl_bundle_open(sl_buf_bytes(&file), &budget, &bundle, &error), SL_OK);
    assert_true(budget.memory == INT64_MAX); /* the bundle outlives it */
    size_t memory = sl_bundle_memory(bundle);
    sl_bundle_close(bundle);
    for (; memory > MIN_MEMORY; memory /= 2) {
        sl_budget_init(&budget, file.size);
        sl_budget_limit(&budget, memory / 2, NULL, NULL);
        assert_int_equal(sl_bundle_open(sl_buf_bytes(&file), &budget, &bundle, &error), SL_UNSUPPORTED);
        assert_memory_equal(error.message, "reading the file needs more than ", 33);
        assert_null(bundle);
        assert_true(budget.memory == (int64_t)(memory / 2));
    }
}

TEST(bundles_are_objects)
{
    struct sl_bundle_writer *writer = begin();
    struct sl_object *object;
    char id[SL_DEBUG_ID_TEXT];
    sl_bundle_add(writer, SL_BUNDLE_SOURCE, SL_STR("/a"), SL_STR(""), bytes_of("a"));
    sl_bundle_close(finish(writer));
    assert_int_equal(sl_format_detect(sl_buf_bytes(&file)), SL_FORMAT_SOURCEBUNDLE);
    assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, NULL), SL_OK);
    const struct sl_object_info *info = sl_object_info(object);
    sl_debug_id_format(&info->debug_id, id);
    assert_string_equal(id, "7f883fcd-c553-36d0-a809-b0150f09500b");
    assert_true(sl_str_equal(info->code_id, SL_STR("7f883fcdc55336d0a809b0150f09500b")));
    assert_int_equal(info->kind, SL_KIND_SRC);
    assert_int_equal(info->arch, SL_ARCH_X86_64);
    assert_true(info->features.has_sources);
    assert_false(info->features.has_symbols || info->features.has_debug_info || info->features.has_unwind_info);
    sl_object_close(object);
}

TEST_FILE(.end = done);
