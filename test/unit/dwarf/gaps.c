/* A unit that cannot be read costs itself alone, and is told of. */
#include "../fixture.h"

#include "object/object.h"
#include "symcache/symcache.h"

static size_t convert(struct sl_bytes bytes, struct sl_symcache_gaps *gaps, bool *partial)
{
    struct sl_object *object;
    struct sl_buf out = {0};
    struct sl_symcache cache;
    assert_int_equal(sl_object_open(bytes, NULL, &object, NULL), SL_OK);
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch, .gaps = gaps};
    assert_int_equal(sl_symcache_convert(object, NULL, &options, NULL, &out, NULL), SL_OK);
    assert_int_equal(sl_symcache_open(sl_buf_bytes(&out), &cache, NULL), SL_OK);
    *partial = sl_symcache_is_partial(&cache);
    size_t files = cache.file_count;
    sl_buf_free(&out);
    sl_object_close(object);
    return files;
}

TEST(malformed_unit_is_reported)
{
    static const char f[] = "int f(int i) { return i + 1; }\n", g[] = "int f(int); int main(void) { return f(1); }\n";
    struct sl_object *object;
    struct sl_bytes info;
    struct sl_symcache_gaps gaps;
    bool partial;
    fixture_write("f.c", f, sizeof f - 1);
    fixture_write("g.c", g, sizeof g - 1);
    fixture_run("cc -gdwarf-5 -O1 f.c g.c -o a.elf");
    struct sl_bytes bytes = fixture_read("a.elf");
    size_t files = convert(bytes, &gaps, &partial);
    assert_false(partial);
    assert_int_equal(gaps.units, 0);
    assert_int_equal(gaps.first.code, SL_OK);
    assert_int_equal(sl_object_open(bytes, NULL, &object, NULL), SL_OK);
    assert_true(sl_object_section(object, "debug_info", &info, NULL));
    sl_object_close(object);
    ((uint8_t *)info.data)[12] = 0x7F; /* the first root entry: no such abbreviation */
    assert_int_equal(convert(bytes, &gaps, &partial), files - 1);
    assert_true(partial);
    assert_int_equal(gaps.units, 1);
    assert_int_equal(gaps.first.code, SL_MALFORMED);
    assert_string_equal(gaps.first.message, "cannot read all of the compilation unit at offset 0x0 of .debug_info: its "
                                            "abbreviations or its first entry are invalid");
    free((void *)bytes.data);
}

TEST_FILE(.begin = fixture_begin, .end = fixture_end);
