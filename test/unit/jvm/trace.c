/* Stack traces as text. */
#include "mapper.h"

#include "jvm/trace.h"

static const char mapping[] =
    "com.x.Main -> a.b:\n    1:1:void com.x.Util.check(int):7:7 -> c\n    1:1:void run():20 -> c\n    int f -> f\n"
    "    2:2:void gone():1:1 -> d\n    # {\"id\":\"com.android.tools.r8.rewriteFrame\",\"conditions\":"
    "[\"throws(Lcom/x/Oops;)\"],\"actions\":[\"removeInnerFrames(1)\"]}\n    void whole():0:0 -> w\n"
    "com.x.Oops -> a.e:\n    int f -> f\n";

static void expect(const char *text, const char *wanted)
{
    struct made made;
    struct sl_jvm_trace trace;
    struct sl_buf out = {0};
    make_mapper(mapping, &made);
    const struct sl_jvm_mapper *items[] = {&made.mapper};
    assert_true(sl_jvm_trace_begin(&trace, &(struct sl_jvm_mappers){items, 1, false}));
    while (*text) {
        const char *newline = strchr(text, '\n');
        size_t size = newline ? (size_t)(newline + 1 - text) : strlen(text);
        assert_true(sl_jvm_trace_line(&trace, (struct sl_str){text, size}, &out));
        text += size;
    }
    sl_buf_u8(&out, '\0');
    assert_string_equal(out.data, wanted);
    sl_jvm_trace_end(&trace);
    sl_buf_free(&out);
    sl_buf_free(&made.file);
}

static void a_trace(void **state)
{
    (void)state;
    expect("a.e: message: a.e\n\tat a.b.c(SourceFile:1)\n    at x.y.z(Z.java:3)\n  at a.b.none(Unknown Source)\n"
           "\tat a.b.w(SourceFile:1)\n\t... 3 more\nCaused by: a.e\n\tat a.b.c(:1)",
           "com.x.Oops: message: a.e\n    at com.x.Util.check(Util.java:7)\n    at com.x.Main.run(Main.java:20)\n"
           "    at x.y.z(Z.java:3)\n    at com.x.Main.none(Main.java:0)\n    at com.x.Main.whole(Main.java)\n"
           "\t... 3 more\nCaused by: com.x.Oops\n    at com.x.Util.check(Util.java:7)\n"
           "    at com.x.Main.run(Main.java:20)\n");
}

static void what_was_thrown(void **state)
{
    (void)state;
    expect("a.e\n at a.b.d(S:2)\n at a.b.d(S:2)\n", "com.x.Oops\n    at com.x.Main.gone(Main.java:1)\n");
    expect("a.e\nsome words\n at a.b.d(S:2)\n", "com.x.Oops\nsome words\n    at com.x.Main.gone(Main.java:1)\n");
    expect("com.x.Oops: m\n at a.b.d(S:2)\n", "com.x.Oops: m\n");
    expect("Caused by: a.e: m\n at a.b.d(S:2)\n", "Caused by: com.x.Oops: m\n");
    expect("java.lang.Error\n at a.b.d(S:2)\n", "java.lang.Error\n    at com.x.Main.gone(Main.java:1)\n");
}

static void words_and_logs_in_front(void **state)
{
    (void)state;
    expect("Exception in thread \"a b\" a.e: m\r\n\tat a.b.c(SourceFile:1)\r\n",
           "Exception in thread \"a b\" com.x.Oops: m\r\n    at com.x.Util.check(Util.java:7)\r\n"
           "    at com.x.Main.run(Main.java:20)\r\n");
    expect("\t\tSuppressed: a.e: m\n\t\t\t\t\tat a.b.c(SourceFile:1)\n",
           "\t\tSuppressed: com.x.Oops: m\n\t\t\t\t\tat com.x.Util.check(Util.java:7)\n"
           "\t\t\t\t\tat com.x.Main.run(Main.java:20)\n");
    expect("E/AndroidRuntime( 123): \tat a.b.d(SourceFile:2)\nE/R( 1): Caused by: a.e: m\n",
           "E/AndroidRuntime( 123): \tat com.x.Main.gone(Main.java:1)\nE/R( 1): Caused by: com.x.Oops: m\n");
    expect("\tat app//a.b.d(SourceFile:2) ~[a.jar:1.0]\n", "    at app//com.x.Main.gone(Main.java:1) ~[a.jar:1.0]\n");
}

static void other_lines(void **state)
{
    (void)state;
    static const char text[] =
        "\n  \nsomething at a.b.c\n\tat (x)\n\tat x(y)\nat\nCaused by: \nhat a.b.d(S:2)\n\xff\xfe\n"
        "1 at a.b d(S:2)\n\tat a.b.c(S:1\n";
    expect(text, text);
    expect("last", "last\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_trace), cmocka_unit_test(what_was_thrown),
                                       cmocka_unit_test(words_and_logs_in_front), cmocka_unit_test(other_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
