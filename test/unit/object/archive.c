/* Fat Mach-O files: slices, and choosing the one that was asked for. */
#include "debug_file.h"

#include "object/archive.h"

static struct sl_bytes fat;

static int make_fixtures(void **state)
{
    static const char source[] = "int f(int x)\n{\n    return x + 1;\n}\n";
    if (fixture_begin(state) != 0)
        return -1;
    fixture_write("a.c", source, sizeof source - 1);
    fixture_run("for arch in x86_64 arm64; do "
                "clang-14 --target=$arch-apple-macos11 -O1 -c -o $arch.o a.c && "
                "ld64.lld-14 -platform_version macos 11 11 -arch $arch -dylib -undefined dynamic_lookup -o $arch.dylib "
                "$arch.o || exit 1; done; llvm-lipo-14 -create x86_64.dylib arm64.dylib -output fat");
    fat = fixture_read("fat");
    return 0;
}

static int drop_fixtures(void **state)
{
    free((void *)fat.data);
    return fixture_end(state);
}

static struct sl_archive open_archive(struct sl_bytes bytes)
{
    struct sl_archive archive;
    struct sl_error error = {0};
    if (sl_archive_open(bytes, &archive, &error) != SL_OK)
        fail_msg("%s", error.message);
    return archive;
}

static struct sl_object *open_slice(const struct sl_archive *archive, size_t index)
{
    struct sl_object *object;
    struct sl_error error = {0};
    if (sl_archive_object(archive, index, NULL, &object, &error) != SL_OK)
        fail_msg("%s", error.message);
    return object;
}

TEST(slices_are_listed_in_file_order)
{
    static const enum sl_arch archs[] = {SL_ARCH_X86_64, SL_ARCH_ARM64};
    struct sl_archive archive = open_archive(fat);
    struct sl_object *object;
    struct sl_bytes slice;
    assert_true(archive.is_fat);
    assert_int_equal(archive.count, 2);
    for (size_t i = 0; i < 2; i++) {
        object = open_slice(&archive, i);
        assert_int_equal(sl_object_info(object)->arch, archs[i]);
        assert_true(sl_archive_slice(&archive, i, &slice));
        assert_ptr_equal(sl_object_file(object).data, slice.data);
        sl_object_close(object);
    }
    assert_int_equal(sl_archive_object(&archive, 2, NULL, &object, NULL), SL_NOT_FOUND);
    assert_false(sl_archive_slice(&archive, 2, &slice));
}

TEST(slice_is_found_by_id)
{
    struct sl_archive archive = open_archive(fat);
    struct sl_error error;
    size_t index;
    for (size_t i = 0; i < 2; i++) {
        struct sl_object *object = open_slice(&archive, i), *found;
        struct sl_debug_id id = sl_object_info(object)->debug_id;
        struct sl_object_wanted by_debug_id = {.debug_id = &id};
        struct sl_object_wanted by_code_id = {.code_id = sl_object_info(object)->code_id};
        assert_int_equal(sl_archive_find(&archive, &by_debug_id, NULL, &found, &index, &error), SL_OK);
        assert_int_equal(index, i);
        sl_object_close(found);
        assert_int_equal(sl_archive_find(&archive, &by_code_id, NULL, &found, &index, &error), SL_OK);
        assert_int_equal(index, i);
        sl_object_close(found);
        id.age = 1; /* newer than the file */
        assert_int_equal(sl_archive_find(&archive, &by_debug_id, NULL, &found, NULL, &error), SL_NOT_FOUND);
        assert_null(found);
        sl_object_close(object);
    }
}

TEST(single_object_is_used_whatever_the_id)
{
    struct sl_bytes bytes = fixture_read("arm64.dylib");
    struct sl_archive archive = open_archive(bytes);
    struct sl_debug_id other = {.uuid = {1}};
    struct sl_object_wanted wanted = {.debug_id = &other};
    struct sl_object *object;
    struct sl_bytes slice;
    assert_false(archive.is_fat);
    assert_int_equal(archive.count, 1);
    assert_true(sl_archive_slice(&archive, 0, &slice));
    assert_ptr_equal(slice.data, bytes.data);
    assert_int_equal(slice.size, bytes.size);
    assert_int_equal(sl_archive_find(&archive, &wanted, NULL, &object, NULL, NULL), SL_OK);
    assert_false(sl_object_matches(sl_object_info(object), &wanted));
    sl_object_close(object);
    free((void *)bytes.data);
}

TEST(debug_id_decides_before_code_id)
{
    struct sl_object_info info = {.debug_id = {.uuid = {1, 2}, .age = 3}, .code_id = SL_STR("ab01")};
    struct sl_debug_id id = info.debug_id;
    struct sl_object_wanted wanted = {.debug_id = &id, .code_id = SL_STR("ffff")};
    assert_true(sl_object_matches(&info, &wanted)); /* with a debug id the code id does not count */
    id.age = 1;
    assert_true(sl_object_matches(&info, &wanted));
    id.age = 4;
    assert_false(sl_object_matches(&info, &wanted));
    id = (struct sl_debug_id){.uuid = {1, 3}};
    assert_false(sl_object_matches(&info, &wanted));
    wanted.debug_id = NULL;
    assert_false(sl_object_matches(&info, &wanted));
    wanted.code_id = SL_STR("ab01");
    assert_true(sl_object_matches(&info, &wanted));
    info.code_id = (struct sl_str){NULL, 0}; /* not known */
    assert_false(sl_object_matches(&info, &wanted));
}

TEST(empty_ids_match_nothing)
{
    struct sl_object_info info = {.code_id = {NULL, 0}};
    struct sl_debug_id id = {.age = 1};
    struct sl_object_wanted wanted = {.debug_id = NULL};
    assert_false(sl_object_matches(&info, &wanted));
    info.code_id = SL_STR("ab01");
    assert_false(sl_object_matches(&info, &wanted));
    wanted.debug_id = &id;
    assert_false(sl_object_matches(&info, &wanted));
    info.debug_id = id;
    assert_false(sl_object_matches(&info, &wanted));
    assert_false(sl_debug_id_equal(&id, &id));
    info.debug_id = (struct sl_debug_id){.uuid = {1, 2, 3, 4}, .age = 1};
    id = (struct sl_debug_id){.uuid = {1, 2, 3, 4}, .age = 1, .pdb20 = true}; /* a time stamp is no UUID */
    assert_false(sl_object_matches(&info, &wanted));
}

/* ---- hand-made headers ---- */

static void put_be(struct sl_buf *out, uint64_t value, unsigned size)
{
    while (size--)
        sl_buf_u8(out, (uint8_t)(value >> (8 * size)));
}

/* A fat file with one entry whose object is at `offset`; the object of the real file's last slice comes at 64. */
static struct sl_buf make_fat(bool wide, uint32_t count, uint64_t offset, uint64_t size)
{
    struct sl_buf out = {0};
    struct sl_archive archive = open_archive(fat);
    struct sl_bytes slice;
    assert_true(sl_archive_slice(&archive, 1, &slice));
    put_be(&out, wide ? 0xCAFEBABF : 0xCAFEBABE, 4);
    put_be(&out, count, 4);
    put_be(&out, 0x0100000C, 4);
    put_be(&out, 0, 4);
    put_be(&out, offset, wide ? 8 : 4);
    put_be(&out, size ? size : slice.size, wide ? 8 : 4);
    put_be(&out, 14, 4);
    sl_buf_fill(&out, 0, 64 - out.size);
    sl_buf_add(&out, slice.data, slice.size);
    return out;
}

TEST(fat_64_headers_are_read)
{
    struct sl_buf file = make_fat(true, 1, 64, 0);
    assert_int_equal(sl_format_detect(sl_buf_bytes(&file)), SL_FORMAT_MACHO);
    struct sl_archive archive = open_archive(sl_buf_bytes(&file));
    assert_true(archive.is_fat && archive.is_64bit);
    struct sl_object *object = open_slice(&archive, 0);
    assert_int_equal(sl_object_info(object)->arch, SL_ARCH_ARM64);
    sl_object_close(object);
    sl_buf_free(&file);
}

TEST(slice_is_clipped_to_the_file)
{
    struct sl_buf file = make_fat(true, 1, 64, UINT64_MAX);
    struct sl_archive archive = open_archive(sl_buf_bytes(&file));
    struct sl_bytes slice;
    assert_true(sl_archive_slice(&archive, 0, &slice));
    assert_int_equal(slice.size, file.size - 64);
    sl_buf_free(&file);
}

TEST(slice_outside_the_file_is_malformed)
{
    struct sl_buf file = make_fat(false, 1, 0x00FFFFFF, 0x1000);
    struct sl_archive archive = open_archive(sl_buf_bytes(&file));
    struct sl_object_wanted wanted = {.code_id = SL_STR("ab")};
    struct sl_object *object;
    struct sl_error error;
    assert_int_equal(sl_archive_object(&archive, 0, NULL, &object, &error), SL_MALFORMED);
    assert_string_equal(error.message, "invalid MachO file: object 0 extends beyond the file");
    assert_int_equal(sl_archive_find(&archive, &wanted, NULL, &object, NULL, &error), SL_MALFORMED);
    assert_null(object);
    sl_buf_free(&file);
}

/* Else a small header would make many large objects. */
TEST(overlapping_slices_are_refused)
{
    struct sl_buf file = make_fat(false, 2, 64, 0);
    struct sl_archive archive;
    struct sl_error error;
    memcpy(file.data + 28, file.data + 8, 20);
    assert_int_equal(sl_archive_open(sl_buf_bytes(&file), &archive, &error), SL_MALFORMED);
    assert_string_equal(error.message, "invalid MachO file: objects of the fat file overlap");
    sl_buf_free(&file);
}

TEST(malformed_headers_are_refused)
{
    struct sl_archive archive;
    struct sl_object *object;
    struct sl_error error;
    struct sl_buf file = make_fat(false, 0, 64, 0);
    assert_int_equal(sl_archive_open(sl_buf_bytes(&file), &archive, &error), SL_MALFORMED);
    assert_string_equal(error.message, "invalid MachO file: fat file without objects");
    sl_buf_free(&file);

    file = make_fat(true, 44, 64, 0);
    file.size = 200;
    assert_int_equal(sl_archive_open(sl_buf_bytes(&file), &archive, &error), SL_MALFORMED);
    assert_string_equal(error.message, "invalid MachO file: fat header outside of the file");
    sl_buf_free(&file);

    file = make_fat(false, 55, 64, 0); /* a Java class file */
    assert_int_equal(sl_archive_open(sl_buf_bytes(&file), &archive, &error), SL_MALFORMED);
    assert_string_equal(error.message, "unsupported object file format");
    sl_buf_free(&file);

    file = make_fat(false, 1, 0, 0xFFFFFFFF); /* a fat file in itself */
    archive = open_archive(sl_buf_bytes(&file));
    assert_int_equal(sl_archive_object(&archive, 0, NULL, &object, &error), SL_MALFORMED);
    assert_string_equal(error.message, "invalid MachO file: fat files must be opened as an archive at 0x0");
    sl_buf_free(&file);
}

TEST_FILE(.begin = make_fixtures, .end = drop_fixtures);
