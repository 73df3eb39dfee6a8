/* Text: UTF-8 that is mended, and base64. */
#include "../check.h"

#include "base/base64.h"
#include "base/buf.h"

static void expect_mended(struct sl_str text, const char *expected)
{
    struct sl_buf out = {0};
    sl_buf_utf8(&out, text);
    assert_false(out.failed);
    assert_int_equal(out.size, strlen(expected));
    assert_memory_equal(out.size ? out.data : (const void *)"", expected, out.size);
    assert_true(sl_str_is_utf8(sl_buf_view(&out)));
    sl_buf_free(&out);
}

#define BAD "\xEF\xBF\xBD"

/* The Unicode Standard, 3.9, tables 3-8 to 3-11: one U+FFFD for each maximal part. */
TEST(invalid_utf8_is_replaced)
{
    expect_mended((struct sl_str){NULL, 0}, "");
    expect_mended(SL_STR("caf\xC3\xA9 \xE6\xB1\x89 \xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF"),
                  "caf\xC3\xA9 \xE6\xB1\x89 \xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF");
    expect_mended(SL_STR("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), BAD BAD BAD BAD BAD BAD BAD BAD "A");
    expect_mended(SL_STR("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), BAD BAD BAD BAD BAD BAD BAD BAD "A");
    expect_mended(SL_STR("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), BAD BAD BAD BAD BAD "A" BAD BAD "B");
    expect_mended(SL_STR("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), BAD BAD BAD BAD "A");
    expect_mended(SL_STR("\xE2\x82"), BAD);
    expect_mended(SL_STR("\xF0\x9F\x98"), BAD);
}

TEST(utf8_repair_always_advances)
{
    for (unsigned n = 0; n < 0x10000; n++) {
        const char bytes[] = {(char)(n >> 8), (char)n, '\xBF'};
        struct sl_str text = {bytes, sizeof bytes};
        for (size_t at = 0, before = 0; at < text.size; before = at) {
            struct sl_str character = sl_utf8_next_valid(text, &at);
            assert_true(at > before && at <= text.size);
            assert_true(sl_str_is_utf8(character) && character.size);
        }
    }
}

TEST(lines_end_at_lf_or_crlf)
{
    static const char *const expected[] = {"a", "", "b\r", "c", "\r", "d"};
    struct sl_str rest = SL_STR("a\n\r\nb\r\r\nc\n\r\r\nd\r"), line;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_true(sl_str_next_line(&rest, &line));
        assert_true(sl_str_equal(line, sl_str(expected[i])));
    }
    assert_false(sl_str_next_line(&rest, &line));
    assert_false(sl_str_next_line(&(struct sl_str){NULL, 0}, &line));
}

static void expect_base64(const char *bytes, const char *text)
{
    char encoded[16];
    uint8_t decoded[8];
    size_t size, length = strlen(bytes);
    assert_int_equal(sl_base64url_encode((struct sl_bytes){(const uint8_t *)bytes, length}, encoded), strlen(text));
    assert_int_equal(SL_BASE64_SIZE(length), strlen(text));
    assert_memory_equal(encoded, text, strlen(text));
    assert_true(sl_base64_decode(sl_str(text), decoded, length, &size));
    assert_int_equal(size, length);
    assert_memory_equal(decoded, bytes, length);
    assert_false(length && sl_base64_decode(sl_str(text), decoded, length - 1, &size));
}

TEST(base64_is_written_and_read)
{
    expect_base64("", "");
    expect_base64("f", "Zg");
    expect_base64("fo", "Zm8");
    expect_base64("foo", "Zm9v");
    expect_base64("foob", "Zm9vYg");
    expect_base64("fooba", "Zm9vYmE");
    expect_base64("foobar", "Zm9vYmFy");
    expect_base64("\xFB\xFF\xBF", "-_-_");
}

TEST(malformed_base64_is_refused)
{
    uint8_t out[8];
    size_t size;
    static const char *const good[] = {"Zg==", "Zg", "Zm8=", "+/+/", "-_-_", "+_-/", "Zm9v"};
    static const char *const bad[] = {
        "Z", "Zm9vY", "Zg=", "Zg===", "Zm8==", "Zm9v=", "=", "====", "Zh", "Zm9", "Z g=", "Zm9\n"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(sl_base64_decode(sl_str(good[i]), out, sizeof out, &size));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(sl_base64_decode(sl_str(bad[i]), out, sizeof out, &size));
    assert_false(sl_base64_decode(SL_STR("Zm9\0"), out, sizeof out, &size));
}
