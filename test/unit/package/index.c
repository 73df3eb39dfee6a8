/* The index of scanned files: what is added is found, newest first; damage gives nothing wrong. */
#include "../check.h"

#include "package/index.h"

static struct sl_index_id build_id(uint8_t first)
{
    uint8_t bytes[20] = {first, 2, 3};
    return sl_index_id(SL_INDEX_CODE_ID, (struct sl_bytes){bytes, sizeof bytes});
}

static uint32_t add_file(struct sl_index_builder *b, const char *path, int64_t mtime_ns)
{
    struct sl_index_file file = {
        .path = sl_str(path), .source = SL_STR("foo 1.0-1"), .size = 7, .mtime_ns = mtime_ns, .kind = SL_PACKAGE_DEB};
    return sl_index_add_file(b, &file);
}

static void add_object(struct sl_index_builder *b, uint32_t file, struct sl_index_id id, const char *member)
{
    struct sl_index_object object = {.id = id,
                                     .content = SL_INDEX_DEBUG,
                                     .format = SL_FORMAT_ELF,
                                     .file = file,
                                     .member = sl_str(member),
                                     .size = 100,
                                     .offset = 512};
    sl_index_add_object(b, &object);
}

static void open_built(struct sl_index_builder *b, struct sl_buf *out, struct sl_index *index)
{
    assert_true(sl_index_finish(b, 42, out));
    assert_int_equal(sl_index_open(sl_buf_bytes(out), index, NULL), SL_OK);
    assert_int_equal(index->key, 42);
}

static void check_member(const struct sl_index_object *object, const char *expected)
{
    struct sl_buf path = {0};
    sl_index_member_path(object, &path);
    sl_buf_u8(&path, '\0');
    assert_string_equal((const char *)path.data, expected);
    sl_buf_free(&path);
}

TEST(objects_are_found_by_id_newest_file_first)
{
    struct sl_index_builder b = {0};
    struct sl_buf out = {0};
    struct sl_index index;
    struct sl_index_object object;
    struct sl_index_file file;
    size_t first;
    uint32_t old = add_file(&b, "old.deb", 5), new = add_file(&b, "new.deb", 9);
    add_object(&b, old, build_id(7), "/a");
    add_object(&b, new, build_id(7), "/a");
    add_object(&b, new, build_id(9), "/b");
    open_built(&b, &out, &index);
    struct sl_index_id id = build_id(7), none = build_id(8), debug = build_id(7);
    debug.type = SL_INDEX_DEBUG_ID;
    assert_int_equal(sl_index_find(&index, &id, 20, &first), 2);
    assert_true(sl_index_object(&index, first, &object));
    assert_true(sl_index_file(&index, object.file, &file));
    assert_true(sl_str_equal(file.path, SL_STR("new.deb")));
    assert_true(sl_str_equal(file.source, SL_STR("foo 1.0-1")));
    assert_int_equal(sl_index_find(&index, &none, 20, &first), 0);
    assert_int_equal(sl_index_find(&index, &debug, 20, &first), 0);
    assert_int_equal(sl_index_find(&index, &id, 1, &first), 2);
    sl_buf_free(&out);
    sl_index_builder_free(&b);
}

TEST(paths_of_debug_packages_take_no_space)
{
    static const char derived[] = "/usr/lib/debug/.build-id/07/0203"
                                  "0000000000000000000000000000000000.debug";
    struct sl_index_builder b = {0};
    struct sl_buf out = {0};
    struct sl_index index;
    struct sl_index_object object;
    uint32_t file = add_file(&b, "a.deb", 1);
    size_t strings = b.strings.size;
    add_object(&b, file, build_id(7), derived);
    assert_int_equal(b.strings.size, strings);
    add_object(&b, file, build_id(8), derived);
    assert_true(b.strings.size > strings);
    open_built(&b, &out, &index);
    for (size_t i = 0; i < 2; i++) {
        assert_true(sl_index_object(&index, i, &object));
        assert_int_equal(object.is_derived, i == 0);
        check_member(&object, derived);
    }
    sl_buf_free(&out);
    sl_index_builder_free(&b);
}

TEST(an_index_is_merged_from_others)
{
    struct sl_index_builder b = {0}, merged = {0};
    struct sl_buf out = {0}, both = {0};
    struct sl_index index, result;
    uint32_t numbers[2] = {UINT32_MAX, UINT32_MAX};
    add_object(&b, add_file(&b, "a.deb", 1), build_id(1), "/a");
    add_object(&b, add_file(&b, "b.deb", 2), build_id(2), "");
    open_built(&b, &out, &index);
    numbers[1] = add_file(&merged, "dir/b.deb", 3);
    sl_index_copy_objects(&merged, &index, numbers);
    open_built(&merged, &both, &result);
    assert_int_equal(result.object_count, 1);
    assert_int_equal(result.file_count, 1);
    sl_buf_free(&out);
    sl_buf_free(&both);
    sl_index_builder_free(&b);
    sl_index_builder_free(&merged);
}

TEST(cut_indexes_are_refused)
{
    struct sl_index_builder b = {0};
    struct sl_buf out = {0};
    struct sl_index index;
    struct sl_index_object object;
    add_object(&b, add_file(&b, "a.deb", 1), build_id(1), "/a");
    open_built(&b, &out, &index);
    for (size_t size = 0; size < out.size; size += 8)
        assert_int_equal(sl_index_open((struct sl_bytes){out.data, size}, &index, NULL), SL_MALFORMED);
    out.data[index.table.sections[1].data - out.data + 24] = 200; /* the number of its file */
    assert_int_equal(sl_index_open(sl_buf_bytes(&out), &index, NULL), SL_OK);
    assert_false(sl_index_object(&index, 0, &object));
    sl_buf_free(&out);
    sl_index_builder_free(&b);
}

TEST(ids_are_told_apart)
{
    struct sl_index_id time_and_size = sl_index_code_id(SL_STR("5ab380779000")),
                       build = sl_index_code_id(SL_STR("b9f5a5671ea38cc875b40142b93e23844f615db1"));
    assert_int_equal(time_and_size.type, SL_INDEX_CODE_TEXT);
    assert_int_equal(build.type, SL_INDEX_CODE_ID);
    assert_int_equal(build.size, 20);
    assert_int_equal(build.bytes[0], 0xb9);
}

TEST(source_paths_are_recognised)
{
    static const char *const yes[] = {"/a/b.c", "/x.HPP", "/usr/src/debug/foo/Makefile"}, *const no[] = {
                                                                                              "/a/b.o", "/c", "/a.c/b",
                                                                                              "/usr/lib/debug/x.debug"};
    for (size_t i = 0; i < 3; i++)
        assert_true(sl_package_is_source_path(sl_str(yes[i])));
    for (size_t i = 0; i < 4; i++)
        assert_false(sl_package_is_source_path(sl_str(no[i])));
}
