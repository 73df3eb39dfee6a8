/* Stack traces of JavaScript as text. */
#include "../check.h"

#include "js/stack.h"

TEST(frame_lines_are_recognised)
{
    static const struct {
        const char *line, *function, *url;
        unsigned at, column;
        const char *written; /* NULL: as it was */
    } rows[] = {
        {"    at f (https://a.b/c.js:1:23)\n", "f", "https://a.b/c.js", 1, 23, NULL},
        {"    at f (https://a.b/app/(main)/%5Bid%5D/c.js:1:23)", "f", "https://a.b/app/(main)/%5Bid%5D/c.js", 1, 23,
         NULL},
        {"    at async f (/s/(a b)/(c)/[d]/e.js:1:23) {\n", "f", "/s/(a b)/(c)/[d]/e.js", 1, 23, NULL},
        {"at f (C:\\Program Files (x86)\\a\\c.js:1:2)", "f", "C:\\Program Files (x86)\\a\\c.js", 1, 2, NULL},
        {"at f (/s/(a/c.js:1:2)", "f", "/s/(a/c.js", 1, 2, NULL},
        {"at A.my f (x) (/s/c.js:1:2)", "A.my f (x)", "/s/c.js", 1, 2, NULL},
        {"at \\\\host\\share\\c.js:1:2", "", "\\\\host\\share\\c.js", 1, 2, NULL},
        {"at https://a.b/(c)/[d]/e.js:1:2,", "", "https://a.b/(c)/[d]/e.js", 1, 2, NULL},
        {"at f (a.js:1:2);\r\n", "f", "a.js", 1, 2, NULL},
        {"at eval (eval at f (https://a.b/c.js:1:2), <anonymous>:1:1)", "f", "https://a.b/c.js", 1, 2, NULL},
        {"at eval (eval at g (eval at f (c.js:1:2), <anonymous>:3:4), <anonymous>:1:1)", "f", "c.js", 1, 2, NULL},
        {"web-1  |     at f (/s/c.js:1:2)", "f", "/s/c.js", 1, 2, NULL},
        {"Nov 28 03:00:00 at node[12]:     at f (/s/c.js:1:2)", "f", "/s/c.js", 1, 2, NULL},
        {"2026-11-28T03:00:00.000Z     at /s/c.js:1:2", "", "/s/c.js", 1, 2, NULL},
        {"web | 12:00:00 global code@https://a.b/c.js:1:2", "global code", "https://a.b/c.js", 1, 2, NULL},
        {"web | f@https://a.b/(c)/[d].js:1:2", "f", "https://a.b/(c)/[d].js", 1, 2, NULL},
        {"\033[90m    at f (/s/c.js:1:2)\033[39m", "f", "/s/c.js", 1, 2, NULL},
        {"\033[90mat f (/s/c.js:1:2)\033[39m", "f", "/s/c.js", 1, 2, NULL},
        {"\\n    at f (/s/c.js:1:2)\"}", "f", "/s/c.js", 1, 2, NULL},
        {"web-5d9f f@https://a.b/c.js:1:2", "f", "https://a.b/c.js", 1, 2, NULL},
        {"promise callback*f@https://a.b/c.js:1:2", "promise callback*f", "https://a.b/c.js", 1, 2, NULL},
        {"It broke at f (/s/c.js:1:2).", "f", "/s/c.js", 1, 2, NULL},
        {"f@1:508", "f", "", 1, 508, NULL},
        {"    at async Object.f [as g] (https://a.b/c.js:1:23)", "Object.f [as g]", "https://a.b/c.js", 1, 23, NULL},
        {"\tat new F (file:///c.js:1:2)\r\n", "F", "file:///c.js", 1, 2, NULL},
        {"at new new  (c.js:1:2)", "new", "c.js", 1, 2, "at new new (c.js:1:2)"},
        {"at https://a.b:80/c.js?d#e:1:23", "", "https://a.b:80/c.js?d#e", 1, 23, NULL},
        {"at async file:///c.js:4:5", "", "file:///c.js", 4, 5, NULL},
        {"at f (/home/a b/c.js:1:2)", "f", "/home/a b/c.js", 1, 2, NULL},
        {"at f (C:\\a\\c.js:1:2)", "f", "C:\\a\\c.js", 1, 2, NULL},
        {"at f (address at index.android.bundle:1:22)", "f", "index.android.bundle", 1, 23,
         "at f (index.android.bundle:1:23)"},
        {"f@https://a.b/c.js:1:23", "f", "https://a.b/c.js", 1, 23, NULL},
        {"@https://a.b/c.js:1:23", "", "https://a.b/c.js", 1, 23, NULL},
        {"f/g<@https://a.b/@c/d.js:1:23", "f/g<", "https://a.b/@c/d.js", 1, 23, NULL},
        {"global code@https://a.b/c.js:1:2", "global code", "https://a.b/c.js", 1, 2, NULL},
        {"https://a.b/c@1.js:1:2", "", "https://a.b/c@1.js", 1, 2, "@https://a.b/c@1.js:1:2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sl_js_stack_frame frame;
        struct sl_buf out = {0};
        if (!sl_js_stack_frame(sl_str(rows[i].line), &frame))
            fail_msg("no frame: %s", rows[i].line);
        sl_buf_printf(&out, SL_STR_FMT "|" SL_STR_FMT "|", SL_STR_ARG(frame.function), SL_STR_ARG(frame.url));
        sl_js_stack_write(&frame, &out);
        sl_buf_u8(&out, 0);
        char wanted[256];
        snprintf(wanted, sizeof wanted, "%s|%s|%s", rows[i].function, rows[i].url,
                 rows[i].written ? rows[i].written : rows[i].line);
        assert_string_equal((char *)out.data, wanted);
        assert_int_equal(frame.line, rows[i].at);
        assert_int_equal(frame.column, rows[i].column);
        sl_buf_free(&out);
    }
}

TEST(other_lines_are_no_frames)
{
    static const char *const rows[] = {
        "",
        " ",
        "\n",
        "Error: at once",
        "TypeError: a@b",
        "    at f (native)",
        "    at Array.map (<anonymous>)",
        "    at eval (eval at f (<anonymous>), <anonymous>:1:1)",
        "    at <anonymous>:1:23",
        "    at new Promise (<anonymous>)",
        "    at f (<anonymous>:1:23)",
        "    at async Promise.all (index 0)",
        "format f: look at c:1:2",
        "@1:2",
        "at f (c.js:0:1)",
        "at f (c.js:1)",
        "at f (:1:2)",
        "at ",
        "at (c.js:1:2)",
        "at new )",
        "[native code]",
        "12:34:56",
        "at noon 12:34:56 it broke",
        "see c:1:2",
        "a b/c:1:2",
        "at f (c.js:99999999999:1)",
        "f@",
        "@",
        "at f (address at )",
        "f@[native code]",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sl_js_stack_frame frame;
        if (sl_js_stack_frame(sl_str(rows[i]), &frame))
            fail_msg("a frame: %s", rows[i]);
    }
}

TEST(urls_are_looked_up_without_escapes_and_colours)
{
    static const struct {
        const char *url, *wanted;
    } rows[] = {
        {"https://a.b/c.js", "https://a.b/c.js"}, {"C:\\a\\b.js", "C:/a/b.js"},
        {"C:\\\\a\\\\b.js", "C:/a/b.js"},         {"\\\\server\\a.js", "//server/a.js"},
        {"\033[36m/a/b.js\033[39m", "/a/b.js"},   {"/a\033[", "/a"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_buf out = {0};
        sl_js_stack_put_url(sl_str(rows[i].url), &out);
        sl_buf_u8(&out, 0);
        assert_string_equal((char *)out.data, rows[i].wanted);
        sl_buf_free(&out);
    }
}

TEST(lines_are_split_at_their_frames)
{
    static const struct {
        const char *line, *wanted; /* cut at each ~ */
    } rows[] = {
        {"    at f (C:\\new\\c.js:1:2)\n", "    at f (C:\\new\\c.js:1:2)\n"},
        {"{\"s\":\"E\\n    at f (c.js:1:2)\\n    at g (c.js:1:2)\"}\n",
         "{\"s\":\"E~\\n    at f (c.js:1:2)~\\n    at g (c.js:1:2)\"}\n"},
        {"{\"s\":\"f@c.js:1:2\\ng@c.js:1:2\"}", "{\"s\":\"f@c.js:1:2~\\ng@c.js:1:2\"}"},
        {"\"{\\\"s\\\":\\\"E\\\\n    at f (C:\\\\\\\\new.js:1:2)",
         "\"{\\\"s\\\":\\\"E~\\\\n    at f (C:\\\\\\\\new.js:1:2)"},
        {"\\", "\\"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sl_str rest = sl_str(rows[i].line), part;
        struct sl_buf out = {0};
        while (sl_js_stack_part(&rest, &part)) {
            sl_buf_cstr(&out, out.size ? "~" : "");
            sl_buf_str(&out, part);
        }
        sl_buf_u8(&out, 0);
        assert_string_equal((char *)out.data, rows[i].wanted);
        sl_buf_free(&out);
    }
}
