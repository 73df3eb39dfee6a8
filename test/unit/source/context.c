/* Lines around a line. */
#include "../check.h"

#include "source/context.h"

static void expect(const char *text, uint64_t line, const char *const *before, const char *wanted,
                   const char *const *after)
{
    struct sl_context_cursor cursor = sl_context_cursor(sl_str(text));
    struct sl_context context;
    assert_int_equal(sl_context_at(&cursor, line, &context), wanted != NULL);
    if (!wanted)
        return;
    assert_true(sl_str_equal(context.line, sl_str(wanted)));
    for (unsigned i = 0; i < context.before_count || before[i]; i++)
        assert_true(before[i] && i < context.before_count && sl_str_equal(context.before[i], sl_str(before[i])));
    for (unsigned i = 0; i < context.after_count || after[i]; i++)
        assert_true(after[i] && i < context.after_count && sl_str_equal(context.after[i], sl_str(after[i])));
}

#define LIST(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

TEST(context_lines_are_found)
{
    expect("a\r\nb\n\nc", 4, LIST("a", "b", ""), "c", LIST());
    expect("a\r\nb\n\nc", 1, LIST(), "a", LIST("b", "", "c"));
    expect("a\r\nb\n\nc", 5, LIST(), NULL, LIST());
    expect("a\r\nb\n\nc", 0, LIST(), NULL, LIST());
    expect("", 1, LIST(), NULL, LIST());
    expect("\n", 1, LIST(), "", LIST());
    expect("\n", 2, LIST(), NULL, LIST());
    expect("a\rb\nc\r", 1, LIST(), "a\rb", LIST("c\r"));
    expect("a\rb\r\rc", 2, LIST("a"), "b", LIST("", "c"));
    expect("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n", 7, LIST("2", "3", "4", "5", "6"), "7",
           LIST("8", "9", "10", "11", "12"));
    expect("1\n2\n", UINT64_MAX, LIST(), NULL, LIST());
}

TEST(cursor_moves_in_both_directions)
{
    struct sl_context_cursor cursor = sl_context_cursor(SL_STR("1\n2\n3\n4\n5\n6\n7\n8\n9\n"));
    static const uint64_t order[] = {2, 8, 8, 9, 1, 5, 10, 3};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        struct sl_context context;
        bool found = sl_context_at(&cursor, order[i], &context);
        assert_int_equal(found, order[i] < 10);
        if (found)
            assert_int_equal(context.line.data[0] - '0', order[i]);
    }
}

static void expect_trimmed(const char *line, uint64_t column, const char *begins, const char *ends, size_t kept)
{
    struct sl_buf out = {0};
    sl_context_trim(&out, sl_str(line), column);
    struct sl_str text = sl_buf_view(&out);
    assert_true(sl_str_starts(text, sl_str(begins)));
    assert_true(sl_str_ends(text, sl_str(ends)));
    if (kept)
        assert_int_equal(text.size, kept);
    sl_buf_free(&out);
}

TEST(long_lines_are_trimmed)
{
    char line[301];
    memset(line, 'x', 300);
    line[300] = '\0';
    line[150] = '\0';
    expect_trimmed(line, 0, "xxx", "xxx", 150);
    line[150] = 'x';
    expect_trimmed(line, 0, "xxx", "x {snip}", 140 + 7);
    expect_trimmed(line, 64, "xxx", "x {snip}", 140 + 7); /* begins before the fifth byte */
    expect_trimmed(line, 65, "{snip} x", "x {snip}", 140 + 14);
    expect_trimmed(line, 215, "{snip} x", "x {snip}", 140 + 14);
    expect_trimmed(line, 216, "{snip} x", "xxx", 140 + 7); /* ends in the last five */
    expect_trimmed(line, 1000000, "{snip} x", "xxx", 140 + 7);
}

/* Columns in a line of prose. */
TEST(trimmed_lines_are_centred_on_the_column)
{
    static const char line[] = "The public is more familiar with bad design than good design. It is, in effect, "
                               "conditioned to prefer bad design, "
                               "because that is what it lives with. The new becomes threatening, the old reassuring.";
    expect_trimmed(line, 0, "The public is", "what it li {snip}", 140 + 7);
    expect_trimmed(line, 10, "The public is", "what it li {snip}", 140 + 7);
    expect_trimmed(line, 66, "{snip} blic is", "what it lives wi {snip}", 140 + 14);
    expect_trimmed(line, 190, "{snip} gn. It is,", "the old reassuring.", 140 + 7);
    expect_trimmed(line, 9999, "{snip} gn. It is,", "the old reassuring.", 140 + 7);
}

TEST(lines_are_trimmed_between_characters)
{
    struct sl_buf hearts = {0};
    for (int i = 0; i < 10; i++)
        sl_buf_cstr(&hearts, ".\xE2\x9D\xA4\xEF\xB8\x8F\xF0\x9F\xA7\xA1\xF0\x9F\x92\x9B\xF0\x9F\x92\x9A"
                             "\xF0\x9F\x92\x99\xF0\x9F\x92\x9C");
    sl_buf_u8(&hearts, 0);
    expect_trimmed((const char *)hearts.data, 70, "{snip} \xF0\x9F\xA7\xA1", " {snip}", 0);
    sl_buf_free(&hearts);
}
