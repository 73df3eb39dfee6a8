/* Reports of samples: rows of all forms, trees, and the report with names. */
#include "crash.h"

#include "apple/samples.h"

static struct sl_samples samples;

#define HEAD "Analysis of sampling app (pid 3) every 1 millisecond\nProcess: app [3]\nCall graph:\n"

static void expect_samples(const char *text)
{
    struct sl_error error = {0};
    sl_arena_free(&arena);
    assert_true(sl_samples_is_text(sl_str(text)));
    if (sl_samples_read(sl_str(text), &arena, &samples, &error) != SL_OK)
        fail_msg("%s", error.message);
}

/* What is known of the row, "function|offset|image|place|file:line|address" */
static void expect_row(const char *line, const char *wanted)
{
    char text[2048], got[1024];
    snprintf(text, sizeof text, HEAD "    9 Thread_1\n%s\n", line);
    expect_samples(text);
    assert_int_equal(samples.row_count, 1);
    const struct sl_samples_row *row = &samples.rows[0];
    snprintf(got, sizeof got, SL_STR_FMT "|" SL_STR_FMT "|" SL_STR_FMT "|" SL_STR_FMT "|" SL_STR_FMT ":%u|%llx%s%s",
             SL_STR_ARG(row->function), SL_STR_ARG(row->offset), SL_STR_ARG(row->image_name),
             SL_STR_ARG(row->image_and_offset), SL_STR_ARG(row->filename), row->source_line,
             (unsigned long long)row->address, row->has_several ? " several" : "", row->is_kernel ? " kernel" : "");
    assert_string_equal(got, wanted);
}

TEST(rows_are_split_into_fields)
{
    static const struct {
        const char *line, *wanted;
    } rows[] = {
        {"    + 8 main  (in app) + 522  [0x10a]", "main|522|app|app|:0|10a"},
        {"    + ! : | 8 ???  (in My App)  load address 0x100 + 0xa  [0x10a]", "||My App|My App|:0|10a"},
        {"    + 8 f(int)  (in app) + 312,292,...  [0x10a,0x20,...]", "f(int)|312,292,...|app|app|:0|10a several"},
        {"    + 8 -[A b:]  (in app) + 1  [0x10a]  b.m:77", "-[A b:]|1|app|app|b.m:77|10a"},
        {"    + 8 ???  (in <unknown binary>)  [0x10a]", "||<unknown binary>|<unknown binary>|:0|10a"},
        {"    8  start + 462 (dyld + 21806) [0x10a] 1-49", "start|462|dyld|dyld + 21806|:0|10a"},
        {"    8   ??? (app + 7972) [0x10a]", "||app|app + 7972|:0|10a"},
        {"   *8  wait + 0 (kernel + 3) [0xffffff8000259a10] (blocked by turnstile) 1-2",
         "wait|0|kernel|kernel + 3|:0|ffffff8000259a10 kernel"},
        {"    8  a + (b) + 3 (x.swift:31,1 in My App + 16) [0x10a] 1", "a + (b)|3|My App|My App + 16|x.swift:31|10a"},
        {"    8  a + 3 (x.swift:31 in App + 16) [0x10a] 1", "a|3|App|App + 16|x.swift:31|10a"},
        {"    8  a + 3 (x.swift in App + 16) [0x10a] 1", "a|3|App|App + 16|x.swift:0|10a"},
        {"    8  -[NSApplication run] + 553 (AppKit) [0x10a]", "-[NSApplication run]|553|AppKit|AppKit|:0|10a"},
        {"    8  ??? [0x10a] 1-8", "||||:0|10a"},
        {"    8  <Kernel mode>", "||||:0|0 kernel"},
        {"    8  <patched truncated backtrace> 1-49", "||||:0|0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_row(rows[i].line, rows[i].wanted);
}

TEST(malformed_rows_are_not_read)
{
    static const char *const lines[] = {"    8 samples", "    x main  (in app) + 522  [0x10a]",
                                        "    8 f (in app [0x10a]", "    99999999999999999999 f  (in app)  [0x1]",
                                        "    8 f  (in app)  [0x]"};
    struct sl_error error = {0};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[512];
        snprintf(text, sizeof text, HEAD "    9 Thread_1\n%s\n", lines[i]);
        assert_int_equal(sl_samples_read(sl_str(text), &arena, &samples, &error), SL_MALFORMED);
        assert_string_equal(error.message, "the sampling report has no row with a call");
    }
}

/* Only where calls return to is behind what is looked up. */
TEST(only_return_addresses_are_inexact)
{
    expect_samples(HEAD "    9 Thread_1\n"
                        "    + 9 a  (in app)  [0x1]\n"
                        "    +   8 b  (in app)  [0x2]\n"
                        "    +   ! 5 c  (in app)  [0x3]\n"
                        "    +   1 d + 1 (app + 4) [0x4]\n"
                        "    +    *1 e + 1 (kernel + 5) [0x5]\n"
                        "    +      *1 f + 1 (kernel + 6) [0x6]\n");
    static const uint32_t callers[] = {SL_SAMPLES_NONE, 0, 1, 0, 3, 4};
    static const bool exact[] = {false, false, true, true, false, true};
    assert_int_equal(samples.row_count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(samples.rows[i].caller, callers[i]);
        assert_int_equal(samples.rows[i].is_exact, exact[i]);
    }
    assert_int_equal(samples.rows[1].children, 5);
    assert_int_equal(samples.threads[0].count, 9);
    expect_samples(HEAD "    9 Thread_1\n"
                        "    + 9 a  (in app)  [0x1]\n"
                        "    +   8 b  (in app) + 3  [0x2]\n"
                        "    +     8 c  (in app) + 0  [0x3]\n"
                        "    +       1 d  (in app) + 0  [0x4]\n"
                        "Total number in stack (recursive counted multiple, when >=5):\n"
                        "        8       b  (in app) + 3  [0x2]\n"
                        "        8       d  (in app) + 1  [0x4]\n"
                        "        8       e  (in app) + 0  [0x5]\n"
                        "Sort by top of stack, same collapsed (when >= 5):\n"
                        "        f  (in app) + 1  [0x6]        1\n");
    static const bool are_exact[] = {false, false, true, true, false, true, true, true};
    assert_int_equal(samples.row_count, 8);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(samples.rows[i].is_exact, are_exact[i]);
}

TEST(each_path_becomes_a_thread)
{
    expect_read(HEAD "    9 Thread_7: pool   DispatchQueue_3: q  (serial)\n"
                     "    + 9 a  (in app)  [0x1]\n"
                     "    +   2 b  (in app)  [0x2]\n"
                     "    +   4 c  (in app)  [0x3]\n");
    assert_int_equal(crash.thread_count, 3);
    assert_false(crash.crashed);
    expect_addresses(&crash.threads[0], "3 1");
    expect_addresses(&crash.threads[1], "1");
    expect_addresses(&crash.threads[2], "2 1");
    expect_text(crash.threads[0].name, "pool (4 of 9 samples)");
    assert_int_equal(crash.threads[0].id, 7);
    assert_true(crash.threads[0].frames[0].is_exact);
    assert_false(crash.threads[0].frames[1].is_exact);
}

TEST(names_are_written_into_the_report)
{
    static const char before[] = HEAD "    9 Thread_1\r\n"
                                      "    + 9 ???  (in app)  load address 0x1 + 0x1  [0x2]\r\n"
                                      "    +   4 b  (in app) + 1,2,...  [0x3,0x4,...]  old.c:1\n"
                                      "    +   3 c  (in app) + 1  [0x3]  old.c:1\n"
                                      "\nSort by top of stack, same collapsed (when >= 5):\n"
                                      "        ???  (in app)  load address 0x1 + 0x1  [0x2]        8\n";
    static const char after[] = HEAD "    9 Thread_1\r\n"
                                     "    + 9 f  (in app) + 16  [0x2]  f.c:12\r\n"
                                     "    +   4 f  (in app) + 1,2,...  [0x3,0x4,...]  f.c:12\n"
                                     "    +   3 c  (in app) + 1  [0x3]  old.c:1\n"
                                     "\nSort by top of stack, same collapsed (when >= 5):\n"
                                     "        f  (in app) + 16  [0x2]  f.c:12        8\n";
    const struct sl_samples_name f = {
        .function = SL_STR("f"), .file = SL_STR("f.c"), .line = 12, .offset = 16, .has_offset = true};
    const struct sl_samples_name names[] = {f, f, {.function = {NULL, 0}}, f};
    struct sl_buf out = {0};
    expect_samples(before);
    assert_int_equal(samples.row_count, 4);
    assert_true(sl_samples_write(&samples, names, &out));
    expect_text(sl_buf_view(&out), after);
    sl_buf_free(&out);
}

TEST(other_texts_are_not_taken_for_samples)
{
    assert_false(sl_samples_is_text(SL_STR("")));
    assert_false(sl_samples_is_text(SL_STR("Incident Identifier: x\nThread 0:\n0 a 0x1 b + 1\nBinary Images:\n")));
    assert_false(sl_samples_is_text(SL_STR("Steps: 5\n")));
    assert_false(sl_samples_is_text(SL_STR("Call graph:\n  1 nothing\n")));
    assert_true(sl_samples_is_text(SL_STR("Call graph:\n    1 Thread_1\n")));
    assert_true(sl_samples_is_text(SL_STR("Steps: 5\n  Thread 0x1  5 samples\n")));
    expect_failure("Steps: 5\n  Thread 0x1  5 samples\n  5  a [0x1]\n", SL_MALFORMED,
                   "the sampling report has no row with a call");
    expect_read("Call graph:\n    5 Thread_1\n    + 5 a  (in b)  [0x1001]\nBinary Images:\n"
                "    0x1000 - 0x1fff b (1) <2d903291-397d-3d14-bfca-52c7fb8c5e00> /b\n");
    expect_addresses(&crash.threads[0], "1001");
    assert_int_equal(crash.modules[0].size, 0x1000);
}

TEST_FILE(.teardown = forget);
