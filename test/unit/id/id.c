/* Debug ids in their forms, code ids, build ids. */
#include "../check.h"

#include "id/id.h"

static void expect(const char *text, const char *display, const char *breakpad)
{
    struct sl_debug_id id;
    char out[SL_DEBUG_ID_TEXT];
    assert_int_equal(sl_debug_id_parse(sl_str(text), &id), display != NULL);
    if (!display)
        return;
    sl_debug_id_format(&id, out);
    assert_string_equal(out, display);
    sl_debug_id_format_breakpad(&id, out);
    assert_string_equal(out, breakpad);
}

TEST(debug_ids_are_read_in_lenient_forms)
{
    expect("3249d99d-0c40-4931-8610-f4e4fb0b6936-1", "3249d99d-0c40-4931-8610-f4e4fb0b6936-1",
           "3249D99D0C4049318610F4E4FB0B69361");
    expect("67E9247C814E392BA027DBDE6748FCBF", "67e9247c-814e-392b-a027-dbde6748fcbf",
           "67E9247C814E392BA027DBDE6748FCBF0");
    expect("0c1033f78632492e91c6c314b72e1920e60b819d", "0c1033f7-8632-492e-91c6-c314b72e1920-e60b819d",
           "0C1033F78632492E91C6C314B72E1920e60b819d");
    expect("0c1033f78632492e91c6c314b72e1920e60b819d12345", "0c1033f7-8632-492e-91c6-c314b72e1920-e60b819d",
           "0C1033F78632492E91C6C314B72E1920e60b819d");
    expect("418e89c3-1", "418E89C3-1", "418E89C31");
    expect("418E89C31", "418E89C3-1", "418E89C31");
    expect("", NULL, NULL);
    expect("nonsense", NULL, NULL);
    expect("3249d99d-0c40-4931-8610-f4e4fb0b6936-", NULL, NULL);
    expect("3249d99d-0c40-4931-8610-f4e4fb0b69361", NULL, NULL);
    expect("3249d99d0c4049318610f4e4fb0b6936-1", NULL, NULL);
    expect("3249d99d-0c4049318610f4e4fb0b6936", NULL, NULL);
}

TEST(breakpad_form_is_strict)
{
    struct sl_debug_id id;
    assert_true(sl_debug_id_parse_breakpad(SL_STR("497b72f6390a44fc878e5a2d63b6cc4b1"), &id));
    assert_int_equal(id.age, 1);
    assert_true(sl_debug_id_parse_breakpad(SL_STR("0C1033F78632492E91C6C314B72E1920FFFFFFFF"), &id));
    assert_int_equal(id.age, 0xFFFFFFFF);
    assert_false(sl_debug_id_parse_breakpad(SL_STR("497b72f6390a44fc878e5a2d63b6cc4b"), &id));
    assert_false(sl_debug_id_parse_breakpad(SL_STR("497b72f6-390a-44fc-878e-5a2d63b6cc4b1"), &id));
    assert_false(sl_debug_id_parse_breakpad(SL_STR("0C1033F78632492E91C6C314B72E1920FFFFFFFFF"), &id));
}

TEST(build_ids_are_converted_to_debug_ids)
{
    static const char *const rows[][2] = {
        {"b931c4fbd186e551bb617b3807d594b9064f5cac", "fbc431b9-86d1-51e5-bb61-7b3807d594b9"},
        {"f1c3bcc0279865fe3058404b2831d9e64135386c", "c0bcc3f1-9827-fe65-3058-404b2831d9e6"},
    };
    struct sl_debug_id id;
    uint8_t bytes[20];
    char out[SL_DEBUG_ID_TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char hex[41];
        assert_true(sl_hex_decode(sl_str(rows[i][0]), bytes, sizeof bytes, NULL));
        sl_hex_encode(bytes, sizeof bytes, hex);
        assert_string_equal(hex, rows[i][0]);
        id = sl_debug_id_from_build_id((struct sl_bytes){bytes, 20}, false);
        sl_debug_id_format(&id, out);
        assert_string_equal(out, rows[i][1]);
    }
    id = sl_debug_id_from_build_id((struct sl_bytes){bytes, 4}, true);
    sl_debug_id_format(&id, out);
    assert_string_equal(out, "f1c3bcc0-0000-0000-0000-000000000000");
}

TEST(code_ids_keep_hex_digits)
{
    struct sl_arena arena = {0};
    assert_true(sl_str_equal(sl_code_id_normalise(&arena, SL_STR("5CCC38584b08000")), SL_STR("5ccc38584b08000")));
    assert_true(sl_code_id_is_set(SL_STR("5ccc38584b08000")) && sl_code_id_is_set(SL_STR("00cc38584b08000")));
    assert_true(sl_code_id_is_set(SL_STR("000000000102030405060708090a0b0c0d0e0f10")));
    assert_false(sl_code_id_is_set(SL_STR("")) || sl_code_id_is_set(SL_STR("00")));
    assert_false(sl_code_id_is_set(SL_STR("000000004b08000"))); /* a time stamp of 0 */
    assert_false(sl_code_id_is_set(SL_STR("0000000000000000000000000000000000000000")));
    assert_true(sl_str_equal(sl_code_id_normalise(&arena, SL_STR("abcdefghijklmnopqrstuvwxyz1234567890abcd")),
                             SL_STR("abcdef1234567890abcd")));
    assert_int_equal(sl_code_id_normalise(&arena, SL_STR("xyz")).size, 0);
    sl_arena_free(&arena);
}
