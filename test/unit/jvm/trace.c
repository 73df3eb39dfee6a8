/* Stack traces as text. */
#include "mapper.h"

#include "jvm/trace.h"

static const char plain[] =
    "com.x.Main -> a.b:\n    1:1:void com.x.Util.check(int):7:7 -> c\n    1:1:void run():20 -> c\n    int f -> f\n"
    "    2:2:void gone():1:1 -> d\n    # {\"id\":\"com.android.tools.r8.rewriteFrame\",\"conditions\":"
    "[\"throws(Lcom/x/Oops;)\"],\"actions\":[\"removeInnerFrames(1)\"]}\n    void whole():0:0 -> w\n"
    "com.x.Oops -> a.e:\n    int f -> f\n";

static void expect_of(const char *mapping, const char *text, const char *wanted)
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

static void expect(const char *text, const char *wanted)
{
    expect_of(plain, text, wanted);
}

TEST(whole_trace_is_retraced)
{
    expect("a.e: message: a.e\n\tat a.b.c(SourceFile:1)\n    at x.y.z(Z.java:3)\n  at a.b.none(Unknown Source)\n"
           "\tat a.b.w(SourceFile:1)\n\t... 3 more\nCaused by: a.e\n\tat a.b.c(:1)",
           "com.x.Oops: message: com.x.Oops\n\tat com.x.Util.check(Util.java:7)\n\tat com.x.Main.run(Main.java:20)\n"
           "    at x.y.z(Z.java:3)\n  at com.x.Main.none(Main.java)\n\tat com.x.Main.whole(Main.java)\n"
           "\t... 3 more\nCaused by: com.x.Oops\n\tat com.x.Util.check(Util.java:7)\n"
           "\tat com.x.Main.run(Main.java:20)\n");
}

TEST(exception_lines_are_retraced)
{
    expect("a.e\n at a.b.d(S:2)\n at a.b.d(S:2)\n", "com.x.Oops\n at com.x.Main.gone(Main.java:1)\n");
    expect("a.e\nsome words\n at a.b.d(S:2)\n", "com.x.Oops\nsome words\n at com.x.Main.gone(Main.java:1)\n");
    expect("com.x.Oops: m\n at a.b.d(S:2)\n", "com.x.Oops: m\n");
    expect("Caused by: a.e: m\n at a.b.d(S:2)\n", "Caused by: com.x.Oops: m\n");
    expect("java.lang.Error\n at a.b.d(S:2)\n", "java.lang.Error\n at com.x.Main.gone(Main.java:1)\n");
    /* also in logs, and behind the words of others */
    expect("E/R( 1): a.e: m\nE/R( 1): \tat a.b.d(S:2)\n", "E/R( 1): com.x.Oops: m\n");
    expect("E R: com.x.Oops: a: m\n\tat a.b.d(S:2)\n", "E R: com.x.Oops: a: m\n");
    expect("java.lang.RuntimeException: cannot: a.e: m\n\tat a.b.d(S:2)\n",
           "java.lang.RuntimeException: cannot: com.x.Oops: m\n");
    expect("\t[CIRCULAR REFERENCE: a.e: m]\n\tat a.b.d(S:2)\n", "\t[CIRCULAR REFERENCE: com.x.Oops: m]\n");
}

TEST(log_prefixes_are_kept)
{
    expect("Exception in thread \"a b\" a.e: m\r\n\tat a.b.c(SourceFile:1)\r\n",
           "Exception in thread \"a b\" com.x.Oops: m\r\n\tat com.x.Util.check(Util.java:7)\r\n"
           "\tat com.x.Main.run(Main.java:20)\r\n");
    expect("\t\tSuppressed: a.e: m\n\t\t\t\t\tat a.b.c(SourceFile:1)\n",
           "\t\tSuppressed: com.x.Oops: m\n\t\t\t\t\tat com.x.Util.check(Util.java:7)\n"
           "\t\t\t\t\tat com.x.Main.run(Main.java:20)\n");
    expect("E/AndroidRuntime( 123): \tat a.b.d(SourceFile:2)\nE/R( 1): Caused by: a.e: m\n",
           "E/AndroidRuntime( 123): \tat com.x.Main.gone(Main.java:1)\nE/R( 1): Caused by: com.x.Oops: m\n");
    expect("\tat app//a.b.d(SourceFile:2) ~[a.jar:1.0]\n", "\tat app//com.x.Main.gone(Main.java:1) ~[a.jar:1.0]\n");
}

TEST(every_form_of_frame_is_retraced)
{
    static const char *const rows[][2] = {
        {"at a.b.d (S:2)", "at com.x.Main.gone (Main.java:1)"},
        {"\tat\ta.b.d\t(S:2)", "\tat\tcom.x.Main.gone\t(Main.java:1)"},
        {"at l/m@1.0/a.b.d(S:2)", "at l/m@1.0/com.x.Main.gone(Main.java:1)"},
        {"at a.b.d(:g@1.2 (04-1):2)", "at com.x.Main.gone(Main.java:1)"},
        {"at a.b.d(S.kt:2)", "at com.x.Main.gone(Main.kt:1)"},
        {"at a.b.d(S:2) (x.jar) and more", "at com.x.Main.gone(Main.java:1) (x.jar) and more"},
        {"at a.b.n(Native Method)", "at com.x.Main.n(Native Method)"},
        {"at a.b.n(S.java:)", "at com.x.Main.n(Main.java)"},
        {"at a.b.n(S:99999999999)", "at com.x.Main.n(Main.java)"},
        {"at a.e.<init>(S:4)", "at com.x.Oops.<init>(Oops.java:4)"},
        {"(1) [x]at a.b.d(S:2", "(1) [x]at a.b.d(S:2"},
        {"that a.b.d(S:2)", "that a.b.d(S:2)"},
        {"at l/.d(S:2)", "at l/.d(S:2)"},
        {"at l/.d(at a.b.d(S:2))", "at l/.d(at com.x.Main.gone(Main.java:1))"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char in[100], out[100];
        snprintf(in, sizeof in, "%s\n", rows[i][0]);
        snprintf(out, sizeof out, "%s\n", rows[i][1]);
        expect(in, out);
    }
}

#define OUTLINE "    # {'id':'com.android.tools.r8.outline'}\n"

/* As R8's retrace has it. */
TEST(ambiguous_frames_list_alternatives)
{
    static const struct {
        const char *mapping, *in, *out;
    } rows[] = {
        /* overloads: sorted by their names, with and without lines */
        {"p.R -> a:\n    void foo(int) -> a\n    void bar(int,int) -> a\n", "\tat a.a(S)\n at a.a(S:7)\n",
         "\tat p.R.bar(R.java)\n\t<OR> at p.R.foo(R.java)\n at p.R.bar(R.java:7)\n <OR> at p.R.foo(R.java:7)\n"},
        /* one range that stands for several lines, with what it was inlined into */
        {"p.R -> a:\n    1:1:void foo(int):42:43 -> a\n    1:1:void bar():32 -> a\n", "at a.a(S:1)\n",
         "at p.R.foo(R.java:42)\n<OR> at p.R.foo(R.java:43)\nat p.R.bar(R.java:32)\n"},
        /* chains of overloads, side by side */
        {"p.R -> a:\n    1:1:void q.A.in():1:1 -> a\n    1:1:void f():2 -> a\n    2:2:void f():3:3 -> a\n"
         "    1:1:void q.B.in():4:4 -> a\n    1:1:void f(int):5 -> a\n",
         "at a.a(S:1)\n",
         "at q.A.in(A.java:1)\n<OR> at q.B.in(B.java:4)\nat p.R.f(R.java:2)\n<OR> at p.R.f(R.java:5)\n"},
        /* no line: nothing is taken for inlined, one name is told once */
        {"p.R -> a:\n    1:1:void q.A.in():1:1 -> a\n    1:1:void f():2 -> a\n    2:2:void f(int):3:3 -> a\n",
         "at a.a(S)\n", "at p.R.f(R.java)\n"},
        {"p.R -> a:\n    0:65535:void f():9:9 -> a\n", "at a.a(S)\n", "at p.R.f(R.java:9)\n"},
        /* lines that are counted on beyond the last there can be */
        {"p.R -> a:\n    1:9:void q.A.in():5:6 -> a\n    1:9:void f():4294967290:4294967291 -> a\n", "at a.a(S:8)\n",
         "at q.A.in(A.java:5)\n<OR> at q.A.in(A.java:6)\nat p.R.f(R.java)\n"},
        /* a line that no range has */
        {"p.R -> a:\n    1:2:void f():9:10 -> a\n", "at a.a(S:7)\n", "at p.R.a(R.java:7)\n"},
        {"p.R -> a:\n    1:2:void f():9:10 -> a\n    void g() -> a\n", "at a.a(S:7)\n", "at p.R.g(R.java:7)\n"},
        /* what a compiler made is left out, but not for its class alone */
        {"p.R -> a:\n# {\"id\":\"com.android.tools.r8.synthesized\"}\n    1:1:void f():9:9 -> a\n"
         "    2:2:void q.A.in():1:1 -> b\n    2:2:void bridge():0:0 -> b\n"
         "    # {\"id\":\"com.android.tools.r8.synthesized\"}\n    3:3:void bridge():0:0 -> b\n",
         "at a.a(S:1)\nat a.b(S:2)\nat a.b(S:3)\n", "at p.R.f(R.java:9)\nat q.A.in(A.java:1)\n"},
        /* code that was inlined into an outline */
        {"o.O -> a:\n    1:2:int o.H.in():75:76 -> a\n    1:2:int o():0 -> a\n" OUTLINE
         "p.S -> b:\n    5:5:int p.U.inner():98:98 -> s\n    5:5:int caller():24 -> s\n    27:27:int caller():0:0 -> "
         "s\n"
         "    # {'id':'com.android.tools.r8.outlineCallsite','positions':{'1':4,'2':5}}\n",
         "at a.a(S:2)\nat b.s(S:27)\n", "at o.H.in(H.java:76)\nat p.U.inner(U.java:98)\nat p.S.caller(S.java:24)\n"},
        /* a rule that removes more than there is removes nothing */
        {"p.R -> a:\n    1:1:void f():9:9 -> a\n    # {'id':'com.android.tools.r8.rewriteFrame','conditions':"
         "['throws(Ljava/lang/Error;)'],'actions':['removeInnerFrames(2)']}\n",
         "java.lang.Error\nat a.a(S:1)\n", "java.lang.Error\nat p.R.f(R.java:9)\n"},
        {"p.R -> a:\n# {\"id\":\"sourceFile\",\"fileName\":\"Rs.kt\"}\n    1:1:void q.AKt.in():1:1 -> a\n    1:1:void "
         "f():2 -> a\n",
         "at a.a(S:1)\n", "at q.AKt.in(A.kt:1)\nat p.R.f(Rs.kt:2)\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_of(rows[i].mapping, rows[i].in, rows[i].out);
}

/* What one line becomes is bounded, and what all do by what is read: such lines stay, and are counted. */
TEST(expansion_of_a_line_is_limited)
{
    struct sl_buf mapping = {0}, text = {0}, out = {0};
    struct made made;
    struct sl_jvm_trace trace;
    sl_buf_cstr(&mapping, "A -> a:\n");
    for (unsigned i = 0; i < 4000; i++)
        sl_buf_cstr(&mapping, "    1:1:void x():1 -> b\n");
    for (unsigned i = 0; i < 5000; i++)
        sl_buf_cstr(&mapping, "    1:1:void x():1 -> c\n");
    sl_buf_u8(&mapping, '\0');
    make_mapper((const char *)mapping.data, &made);
    const struct sl_jvm_mapper *items[] = {&made.mapper};
    assert_true(sl_jvm_trace_begin(&trace, &(struct sl_jvm_mappers){items, 1, false}));
    assert_true(sl_jvm_trace_line(&trace, SL_STR("at a.c(S:1)\n"), &out));
    assert_true(sl_str_equal(sl_buf_view(&out), SL_STR("at a.c(S:1)\n")));
    assert_int_equal(trace.allowance.refused, 1);
    for (unsigned i = 0; i < 2000; i++) {
        assert_true(sl_jvm_trace_line(&trace, SL_STR("at a.b(S:1)\n"), &out));
        text.size += out.size;
        out.size = 0;
    }
    assert_true(trace.allowance.refused > 1000);
    assert_true(text.size > 1000000 && text.size < 40000000);
    sl_jvm_trace_end(&trace);
    sl_buf_free(&out);
    sl_buf_free(&mapping);
    sl_buf_free(&made.file);
}

TEST(other_lines_are_kept)
{
    static const char text[] =
        "\n  \nsomething at a.b.c\n\tat (x)\n\tat x(y)\nat\nCaused by: \nhat a.b.d(S:2)\n\xff\xfe\n"
        "1 at a.b d(S:2)\n\tat a.b.c(S:1\n";
    expect(text, text);
    expect("last", "last\n");
}
