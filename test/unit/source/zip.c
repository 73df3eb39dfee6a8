/* ZIP archives: our own, those of Info-ZIP's format with its variants made by hand, and damaged ones. */
#include "../check.h"

#include "source/zip.h"

static struct sl_buf archive;
static struct sl_arena arena;

static int done(void **state)
{
    sl_buf_free(&archive);
    sl_arena_free(&arena);
    return 0;
}

/* `junk` before it, then one entry per name; contents are the name a hundred times. */
static void make(const char *junk, const char *const *names, size_t count)
{
    struct sl_zip_writer writer = {.out = &archive};
    struct sl_error error = {0};
    sl_buf_clear(&archive);
    sl_buf_cstr(&archive, junk);
    for (size_t i = 0; i < count; i++) {
        struct sl_buf text = {0};
        for (int n = 0; n < 100; n++)
            sl_buf_cstr(&text, names[i]);
        sl_zip_add(&writer, sl_str(names[i]), sl_buf_bytes(&text));
        sl_buf_free(&text);
    }
    assert_int_equal(sl_zip_finish(&writer, &error), SL_OK);
}

static enum sl_code open_archive(size_t skip, struct sl_zip *zip)
{
    struct sl_error error = {0};
    enum sl_code code = sl_zip_open(sl_buf_bytes(&archive), skip, &arena, zip, &error);
    if (code != SL_OK)
        assert_non_null(strstr(error.message, "malformed zip archive"));
    return code;
}

TEST(written_entries_read_back)
{
    static const char *const names[] = {"a", "b/c.txt", ""};
    make("SYSB1234", names, 3);
    struct sl_zip zip;
    assert_int_equal(open_archive(8, &zip), SL_OK);
    assert_int_equal(zip.count, 3);
    for (size_t i = 0; i < 3; i++) {
        struct sl_buf text = {0};
        assert_true(sl_str_equal(zip.entries[i].name, sl_str(names[i])));
        assert_int_equal(sl_zip_read(&zip, &zip.entries[i], 1000, &text, NULL), SL_OK);
        assert_int_equal(text.size, 100 * strlen(names[i]));
        sl_buf_free(&text);
    }
}

TEST(entry_size_is_limited)
{
    static const char *const names[] = {"abcdefghij"};
    make("", names, 1);
    struct sl_zip zip;
    struct sl_buf text = {0};
    struct sl_error error = {0};
    assert_int_equal(open_archive(0, &zip), SL_OK);
    assert_int_equal(sl_zip_read(&zip, &zip.entries[0], 999, &text, &error), SL_UNSUPPORTED);
    assert_string_equal(error.message, "the source file exceeded the size limit");
    assert_int_equal(sl_zip_read(&zip, &zip.entries[0], 1000, &text, &error), SL_OK);
    sl_buf_free(&text);
}

/* Offsets that count from the end of what stands before. */
TEST(offsets_relative_to_the_archive_are_accepted)
{
    static const char *const names[] = {"inner"};
    make("", names, 1);
    struct sl_buf copy = {0};
    sl_buf_cstr(&copy, "SYSB1234");
    sl_buf_str(&copy, sl_buf_view(&archive));
    sl_buf_clear(&archive);
    sl_buf_str(&archive, sl_buf_view(&copy));
    sl_buf_free(&copy);
    struct sl_zip zip;
    struct sl_buf text = {0};
    assert_int_equal(open_archive(8, &zip), SL_OK);
    assert_int_equal(sl_zip_read(&zip, &zip.entries[0], 1000, &text, NULL), SL_OK);
    assert_int_equal(text.size, 500);
    sl_buf_free(&text);
}

/* Stored entry, data descriptor's flag, extra fields, comments: by hand. */
static void make_by_hand(uint16_t method, uint16_t flags, bool zip64)
{
    struct sl_buf *o = &archive;
    sl_buf_clear(o);
    sl_buf_add(o, "PK\3\4\12\0\0\0\0\0\0\0\0\0", 14);
    sl_buf_fill(o, 0, 12); /* checksum and sizes stand in the directory */
    sl_buf_u16(o, 1);      /* name */
    sl_buf_u16(o, 4);      /* extra field */
    sl_buf_add(o, "n\xFF\xFF\0\0", 5);
    sl_buf_cstr(o, "hello");
    size_t directory = o->size;
    sl_buf_add(o, "PK\1\2\12\0\12\0", 8);
    sl_buf_u16(o, flags);
    sl_buf_u16(o, method);
    sl_buf_u32(o, 0);
    sl_buf_u32(o, 0x3610A686); /* CRC-32 of "hello" */
    sl_buf_u32(o, zip64 ? UINT32_MAX : 5);
    sl_buf_u32(o, zip64 ? UINT32_MAX : 5);
    sl_buf_u16(o, 1);
    sl_buf_u16(o, zip64 ? 28 : 0);
    sl_buf_u16(o, 3); /* comment */
    sl_buf_fill(o, 0, 8);
    sl_buf_u32(o, zip64 ? UINT32_MAX : 0);
    sl_buf_cstr(o, "n");
    if (zip64) {
        sl_buf_u16(o, 1);
        sl_buf_u16(o, 24);
        sl_buf_u64(o, 5);
        sl_buf_u64(o, 5);
        sl_buf_u64(o, 0);
    }
    sl_buf_cstr(o, "abc");
    size_t size = o->size - directory, end64 = o->size;
    if (zip64) {
        sl_buf_add(o, "PK\6\6", 4);
        sl_buf_u64(o, 44);
        sl_buf_fill(o, 0, 12);
        sl_buf_u64(o, 1);
        sl_buf_u64(o, 1);
        sl_buf_u64(o, size);
        sl_buf_u64(o, directory);
        sl_buf_add(o, "PK\6\7", 4);
        sl_buf_u32(o, 0);
        sl_buf_u64(o, end64);
        sl_buf_u32(o, 1);
    }
    sl_buf_add(o, "PK\5\6\0\0\0\0", 8);
    sl_buf_u16(o, zip64 ? UINT16_MAX : 1);
    sl_buf_u16(o, zip64 ? UINT16_MAX : 1);
    sl_buf_u32(o, zip64 ? UINT32_MAX : (uint32_t)size);
    sl_buf_u32(o, zip64 ? UINT32_MAX : (uint32_t)directory);
    sl_buf_u16(o, 9);
    sl_buf_cstr(o, "a comment");
}

static enum sl_code read_by_hand(void)
{
    struct sl_zip zip;
    struct sl_buf text = {0};
    assert_int_equal(open_archive(0, &zip), SL_OK);
    assert_int_equal(zip.count, 1);
    enum sl_code code = sl_zip_read(&zip, &zip.entries[0], 1000, &text, NULL);
    if (code == SL_OK)
        assert_true(sl_str_equal(sl_buf_view(&text), SL_STR("hello")));
    else
        assert_int_equal(text.size, 0);
    sl_buf_free(&text);
    return code;
}

TEST(stored_entries_and_zip64_are_read)
{
    make_by_hand(0, 0, false);
    assert_int_equal(read_by_hand(), SL_OK);
    make_by_hand(0, 8, true);
    assert_int_equal(read_by_hand(), SL_OK);
    make_by_hand(0, 1, false); /* encrypted */
    assert_int_equal(read_by_hand(), SL_MALFORMED);
    make_by_hand(12, 0, false); /* bzip2 */
    assert_int_equal(read_by_hand(), SL_MALFORMED);
    make_by_hand(8, 0, false); /* not deflated at all */
    assert_int_equal(read_by_hand(), SL_MALFORMED);
    make_by_hand(0, 0, false);
    archive.data[35]++; /* a byte of the contents */
    assert_int_equal(read_by_hand(), SL_MALFORMED);
}

/* Whatever one byte is changed to, reading stays inside and ends. */
TEST(damaged_archives_stay_within_bounds)
{
    static const char *const names[] = {"first", "second"};
    static const uint8_t changes[] = {0x00, 0xFF, 0x7F, 0x80, 1};
    make("SYSB1234", names, 2);
    for (size_t i = 0; i < archive.size; i++)
        for (size_t c = 0; c < sizeof changes; c++) {
            uint8_t *copy = malloc(archive.size);
            memcpy(copy, archive.data, archive.size);
            copy[i] = (uint8_t)(copy[i] + changes[c]);
            struct sl_arena own = {0};
            struct sl_zip zip;
            if (sl_zip_open((struct sl_bytes){copy, archive.size}, 8, &own, &zip, NULL) == SL_OK)
                for (size_t e = 0; e < zip.count; e++) {
                    struct sl_buf text = {0};
                    sl_zip_read(&zip, &zip.entries[e], 1 << 20, &text, NULL);
                    sl_buf_free(&text);
                }
            sl_arena_free(&own);
            free(copy);
        }
}

TEST(truncated_archives_are_refused)
{
    static const char *const names[] = {"first", "second"};
    make("", names, 2);
    for (size_t size = 0; size < archive.size; size++) {
        uint8_t *copy = malloc(size ? size : 1);
        memcpy(copy, archive.data, size);
        struct sl_zip zip;
        assert_int_equal(sl_zip_open((struct sl_bytes){copy, size}, 0, &arena, &zip, NULL), SL_MALFORMED);
        free(copy);
    }
}

/* The number of entries is not believed: ZIP64 can say any. */
TEST(entry_count_beyond_the_file_is_refused)
{
    make_by_hand(0, 0, true);
    struct sl_zip zip;
    size_t count = archive.size - 9 - 22 - 20 - 24;
    for (size_t i = 0; i < 8; i++)
        archive.data[count - 8 + i] = archive.data[count + i] = 0x7F;
    assert_int_equal(open_archive(0, &zip), SL_MALFORMED);
}

TEST_FILE(.end = done);
