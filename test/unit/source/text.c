/* Bytes of source files to UTF-8. */
#include "../check.h"

#include "source/text.h"

static void expect(struct sl_str bytes, struct sl_str wanted)
{
    struct sl_buf scratch = {0};
    struct sl_str text;
    assert_true(sl_text_decode((struct sl_bytes){(const uint8_t *)bytes.data, bytes.size}, &scratch, &text));
    assert_true(sl_str_equal(text, wanted));
    sl_buf_free(&scratch);
}

TEST(utf_8_and_utf_16_are_decoded)
{
    expect(SL_STR(""), SL_STR(""));
    expect(SL_STR("int a;\n"), SL_STR("int a;\n"));
    expect(SL_STR("\xEF\xBB\xBFint"), SL_STR("int"));
    expect(SL_STR("\xFF\xFE"
                  "a\0\xE9\0\x3D\xD8\x00\xDE"),
           SL_STR("a\xC3\xA9\xF0\x9F\x98\x80"));
    expect(SL_STR("\xFE\xFF\0a\0\xE9\xD8\x3D\xDE\x00"), SL_STR("a\xC3\xA9\xF0\x9F\x98\x80"));
    expect(SL_STR("\xFF\xFE\x3D\xD8"
                  "a\0b"),
           SL_STR("\xEF\xBF\xBD"
                  "a\xEF\xBF\xBD")); /* half a pair; half a unit */
}

/* One replacement per maximal part of a sequence (Unicode 15, table 3-8). */
TEST(malformed_sequences_are_replaced)
{
    expect(SL_STR("caf\xE9 x"), SL_STR("caf\xEF\xBF\xBD x"));
    expect(SL_STR("\xE2\x82|"), SL_STR("\xEF\xBF\xBD|"));
    expect(SL_STR("\xF0\x80\x80\x41"), SL_STR("\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\x41"));
    expect(SL_STR("\xED\xA0\x80"), SL_STR("\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"));
    expect(SL_STR("\xF4\x90\x80\x80"), SL_STR("\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"));
    expect(SL_STR("\xC0\xAF"), SL_STR("\xEF\xBF\xBD\xEF\xBF\xBD"));
}

TEST(binary_files_are_not_decoded)
{
    struct sl_buf scratch = {0};
    struct sl_str text;
    assert_false(sl_text_decode((struct sl_bytes){(const uint8_t *)"a\0b", 3}, &scratch, &text));
    assert_false(sl_text_decode((struct sl_bytes){(const uint8_t *)"\xFF\xFE\0\0", 4}, &scratch, &text));
    sl_buf_free(&scratch);
}

TEST(every_code_point_survives_encoding)
{
    for (uint32_t code = 0; code < 0x110000; code++) {
        if (code >= 0xD800 && code < 0xE000)
            continue;
        char text[4];
        size_t at = 0, size = sl_utf8_encode(code, text);
        assert_int_equal(sl_utf8_next((struct sl_str){text, size}, &at), code);
        assert_int_equal(at, size);
        assert_true(sl_str_is_utf8((struct sl_str){text, size}));
    }
    assert_false(sl_str_is_utf8(SL_STR("0123456789\x80")));
}
