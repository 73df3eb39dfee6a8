/* Frames by line, without line and by parameters. */
#include "mapper.h"

struct row {
    const char *mapping;
    struct {
        const char *frame, *wanted; /* "class.method:line"; by parameters when there are some */
        const char *parameters, *descriptor;
    } asked[6];
};

static const struct row rows[] = {
    {"some.Class -> obfuscated:\n    7:8:void method3(long):78:79 -> main\n    7:8:void method2(int):87 -> main\n"
     "    7:8:void method1(java.lang.String):95 -> main\n    7:8:void main(java.lang.String[]):101 -> main\n",
     {{"obfuscated.main:8", "some.Class.method3(Class.java:79) some.Class.method2(Class.java:87) "
                            "some.Class.method1(Class.java:95) some.Class.main(Class.java:101)"}}},
    {"com.e.M -> com.e.M:\n    29:30:void click(View) -> click\n    1016:1016:void d.Bean.doWork():16:16 -> click\n"
     "    1016:1016:void click(View):29 -> click\n",
     {{"com.e.M.click:1016", "d.Bean.doWork(Bean.java:16) com.e.M.click(M.java:29)"}}},
    {"original.class.name -> a:\n    void originalMethodName() -> b\n",
     {{"a.b:10", "original.class.name.originalMethodName(name.java:10)"}}},
    {"com.R8 -> a.a:\n    void foo(int) -> a\n    void bar(int, int) -> a\n",
     {{"a.a.a:-", "com.R8.foo(R8.java:0) com.R8.bar(R8.java:0)"},
      {"a.a.a:7", "com.R8.foo(R8.java:7) com.R8.bar(R8.java:7)"},
      {"a.a.a:-", "com.R8.bar(R8.java)", "int, int"}}},
    {"I -> I:\n    10:10:void some.inlinee1(int):10:10 -> z\n    10:10:void foo(int):10 -> z\n"
     "    11:12:void foo(int):11:12 -> z\n    10:10:void some.inlinee2(int, int):20:20 -> z\n"
     "    10:10:void foo(int, int):42 -> z\n",
     {{"I.z:10", "some.inlinee1(some.java:10) I.foo(I.java:10) some.inlinee2(some.java:20) I.foo(I.java:42)"}}},
    {"I -> I:\n    10:10:void foo(int):10:10 -> z\n    11:11:void foo(int, int):11:11 -> z\n"
     "    13:13:boolean foo(int, int):13:13 -> z\n",
     {{"I.z:-", "I.foo(I.java:0)"}}},
    {"Main -> foo:\n    void foo(long):1:1 -> a\n    void bar(int):3 -> b\n    void baz():0:0 -> c\n"
     "    void main(java.lang.String[]):0 -> d\n",
     {{"foo.a:0", "Main.foo(Main.java:1)"},
      {"foo.b:2", "Main.bar(Main.java:3)"},
      {"foo.c:8", "Main.baz(Main.java)"},
      {"foo.d:7", "Main.main(Main.java)"}}},
    {"some.Class -> b:\n    1:3:void method2():11:13 -> a\n    4:4:void method2():10:10 -> a\n",
     {{"b.a:27", "some.Class.a(Class.java:27)"}, {"b.a:-", "some.Class.method2(Class.java:0)"}}},
    {"k.ResultKt -> k.t:\n    1:1:void createFailure(java.lang.Throwable):122:122 -> a\n"
     "    2:2:void createFailure(java.lang.Throwable):124:124 -> a\n",
     {{"k.t.a:-", "k.ResultKt.createFailure(Result.kt:0)"},
      {"k.t.a:0", "k.ResultKt.createFailure(Result.kt:0)"},
      {"k.t.a:1", "k.ResultKt.createFailure(Result.kt:122)"},
      {"k.t.a:2", "k.ResultKt.createFailure(Result.kt:124)"}}},
    {"Main -> a:\n    void method1(java.lang.String):42:44 -> a\n",
     {{"a.a:1", "Main.method1(Main.java:42) Main.method1(Main.java:43) Main.method1(Main.java:44)"}}},
    {"foo.Baz -> a:\n    1:10:void qux():27:27 -> a\n    11:15:void qux():42 -> a\n",
     {{"a.a:8", "foo.Baz.qux(Baz.java:27)"}, {"a.a:13", "foo.Baz.qux(Baz.java:42)"}}},
    {"Main -> Main:\n    void overload1():7 -> overload\n    void overload2(java.lang.String):11 -> overload\n"
     "    void d():7 -> d\n    void d(java.lang.String):11 -> d\n    void mainPC():42 -> mainPC\n",
     {{"Main.overload:-", "Main.overload1(Main.java:0) Main.overload2(Main.java:0)"},
      {"Main.d:-", "Main.d(Main.java:0)"},
      {"Main.mainPC:3", "Main.mainPC(Main.java:42)"}}},
    {"Main -> foo.a:\n    0:0:void method1(S):42:42 -> a\n    0:0:void main(S[]):28 -> a\n    0:0:void "
     "method2(S):42:44 -> b\n"
     "    0:0:void main2(S[]):29 -> b\n    void method3(S):72:72 -> c\n    void main3(S[]):30 -> c\n"
     "    void main4(S[]):153 -> d\n",
     {{"foo.a.a:-", "Main.method1(Main.java:42) Main.main(Main.java:28)"},
      {"foo.a.b:-", "Main.method2(Main.java:0) Main.main2(Main.java:0)"},
      {"foo.a.c:-", "Main.main3(Main.java:0) Main.method3(Main.java:0)"},
      {"foo.a.d:-", "Main.main4(Main.java:153)"}}},
    {"Main -> Main:\n    5:3:void main(S[]) -> main\n", {{"Main.main:3", "Main.main(Main.java:3)"}}},
    {"Main -> Main:\n    2:5:void main(S[]):5:2 -> main\n", {{"Main.main:3", "Main.main(Main.java:3)"}}},
    {"some.Class -> A:\n    java.util.List select(java.util.List) -> a\n    3:3:void sync():425:425 -> a\n"
     "    void cancel(S[]) -> a\n",
     {{"A.a:3", "some.Class.sync(Class.java:425)"},
      {"A.a:0", "some.Class.select(Class.java:0) some.Class.cancel(Class.java:0)"}}},
    {"Main -> foo.a:\n    1:1:void o():7:7 -> o\n    1:1:void o(S):13:13 -> o\n    1:1:void o(int):15:15 -> o\n",
     {{"foo.a.o:1", "Main.o(Main.java:7) Main.o(Main.java:13) Main.o(Main.java:15)"}}},
    {"Main -> a:\n    void otherMain(S[]) -> foo\n    2:2:void method1(S):0:0 -> foo\n    2:2:void main(S[]):0 -> "
     "foo\n",
     {{"a.foo:-", "Main.otherMain(Main.java:0)"}}},
    {"com.e.A -> a.b:\n# {\"id\":\"sourceFile\",\"fileName\":\"A.kt\"}\n    1:1:void inner():54:54 -> c\n"
     "    1:1:void mid():44 -> c\n    1:1:void c(V):30 -> c\n",
     {{"a.b.c:0", "com.e.A.inner(A.kt:54) com.e.A.mid(A.kt:44) com.e.A.c(A.kt:30)"}}},
    {"x.A -> a.a:\n# {\"id\":\"sourceFile\",\"fileName\":\"Main.kt\"}\n    2:2:void foo.Baz$Quux.inl():42:42 -> a\n"
     "    2:2:void main():102 -> a\n",
     {{"a.a.a:2", "foo.Baz$Quux.inl(Baz.kt:42) x.A.main(Main.kt:102)"}}},
    {"host.LocalKt$$ExternalSyntheticLambda0 -> a.b:\n# {\"id\":\"sourceFile\",\"fileName\":\"R8$$SyntheticClass\"}\n"
     "    1:1:kotlin.Unit io.ComposableSingletons$MyScreenKt.l():42:42 -> a\n    2:2:void own():1:1 -> b\n",
     {{"a.b.a:1", "io.ComposableSingletons$MyScreenKt.l(MyScreen.kt:42)"},
      {"a.b.b:2", "host.LocalKt$$ExternalSyntheticLambda0.own(LocalKt:1)"}}},
    {"some.Class -> a:\n    1:1:void some.Class.existing():10:10 -> a\n",
     {{"a.missing:42", "some.Class.missing(Class.java:42)"}, {"b.x:1", NULL}}},
    {"a.B -> x:\n    1:10:void foo():5:6 -> a\n", {{"x.a:9", "a.B.foo(B.java:13)"}}},
    {"ComposeStackTrace -> $$compose:\n  1:1:State p.AnimateAsStateKt.anim(float):71:71 -> m$1125598679\n",
     {{"$$compose.m$1125598679:1", "p.AnimateAsStateKt.anim(AnimateAsState.kt:71)"}}},
    /* By parameters. */
    {"s.MainActivity -> s.MainActivity:\n    1:1:void bar():54:54 -> t\n    1:1:void foo():44 -> t\n"
     "    1:1:void onClickHandler(android.view.View):40 -> t\n",
     {{"s.MainActivity.t:-", "s.MainActivity.onClickHandler(MainActivity.java:40)", "android.view.View"},
      {"s.MainActivity.onClickHandler:-", "s.MainActivity.onClickHandler(MainActivity.java:0)", "android.view.View"},
      {"s.MainActivity.t:-", "s.MainActivity.t(MainActivity.java:0)", "int"},
      {"s.MainActivity.t:-", "s.MainActivity.t(MainActivity.java:0)", ""}}},
    {"A -> a:\n    int f(int):0:0 -> b\n    void g(int):7 -> c\n    void i(int) -> e\n"
     "    int h(int):0:0 -> d\n    void i(int) -> e\n",
     {{"a.b:-", "A.b(A.java:0)", "int"}, {"a.c:-", "A.g(A.java:7)", "int"}, {"a.d:-", "A.h(A.java)", "int"}}},
    {"A -> a:\n    1:1:void f(int):5:5 -> b\n    2:2:void f(int):6:6 -> b\nA -> a:\n    3:3:void f(int):7:7 -> b\n",
     {{"a.b:-", "A.f(A.java:5) A.f(A.java:7)", "int"}}},
    {"A -> a:\n    1:1:void f(int,B):5:5 -> b\n"
     "    # {\"id\":\"com.android.tools.r8.residualsignature\",\"signature\":\"(Lb;)V\"}\n    2:2:void g(B):6:6 -> b\n",
     {{"a.b:-", "A.f(A.java:5)", "C", "(Lb;)V"}, {"a.b:-", "A.g(A.java:6)", "B", "(Lb;)V"}}},
    /* A class that is listed twice: all members, the last name and what is said of it there. */
    {"A -> a:\n# {\"id\":\"sourceFile\",\"fileName\":\"X.kt\"}\n    1:1:void f():5:5 -> b\nB -> a:\n    2:2:void "
     "g():6:6 -> b\n"
     "A -> c:\n    2:2:void g():6:6 -> b\n",
     {{"a.b:1", "B.f(B.java:5)"}, {"a.b:2", "B.g(B.java:6)"}, {"c.b:2", "A.g(A.java:6)"}}},
    /* Files that are named after their class, and others. */
    {"p.A$B -> a:\n# {\"id\":\"sourceFile\",\"fileName\":\"A.kt\"}\n    1:1:void f():5:5 -> b\n"
     "    2:2:void p.C.h():6:6 -> b\n    2:2:void f():7:7 -> b\n"
     "p.C -> c:\n# {\"id\":\"sourceFile\",\"fileName\":\"C.java\"}\n"
     "p.D -> d:\n# {\"id\":\"sourceFile\",\"fileName\":\"Dx.kt\"}\n    1:1:void f():5:5 -> b\n"
     "p.E -> e:\n# {\"id\":\"sourceFile\",\"fileName\":\"E.scala\"}\n    1:1:void f():5:5 -> b\n",
     {{"a.b:1", "p.A$B.f(A.kt:5)"},
      {"a.b:2", "p.C.h(C.java:6) p.A$B.f(A.kt:7)"},
      {"c.x:1", "p.C.x(C.java:1)"},
      {"d.b:1", "p.D.f(Dx.kt:5)"},
      {"d.x:1", "p.D.x(D.kt:1)"},
      {"e.b:1", "p.E.f(E.scala:5)"}}},
    /* Members in front of the first class are nobody's. */
    {"    void f() -> a\nA -> a:\n    void g() -> a\n", {{"a.a:1", "A.g(A.java:1)"}}},
    /* No lines that become frames of their own without end. */
    {"A -> a:\n    void f():1:65537 -> a\n", {{"a.a:3", "A.f(A.java:1)"}}},
};

static void expect_frame(const struct sl_jvm_mapper *mapper, struct sl_jvm_query query, const char *wanted)
{
    struct sl_arena arena = {0};
    struct sl_jvm_frames frames = {.arena = &arena};
    struct sl_jvm_outline outline = {.is_carried_over = false};
    char found[1024];
    enum sl_jvm_answer answer = sl_jvm_mapper_frame(mapper, &query, &outline, &frames);
    print_frames(&frames, 0, found, sizeof found);
    assert_int_equal(answer, wanted ? SL_JVM_FRAMES : SL_JVM_UNKNOWN);
    assert_string_equal(found, wanted ? wanted : "");
    sl_arena_free(&arena);
}

TEST(frames_are_mapped_as_the_table_says)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made made;
        make_mapper(rows[i].mapping, &made);
        for (size_t j = 0; j < 6 && rows[i].asked[j].frame; j++) {
            struct sl_jvm_query query = query_of(rows[i].asked[j].frame);
            if (rows[i].asked[j].parameters) {
                query.by = SL_JVM_BY_PARAMETERS;
                query.parameters = sl_str(rows[i].asked[j].parameters);
                query.descriptor = sl_str(rows[i].asked[j].descriptor);
            }
            expect_frame(&made.mapper, query, rows[i].asked[j].wanted);
        }
        sl_buf_free(&made.file);
    }
}

TEST(class_names_are_mapped)
{
    struct made made;
    struct sl_str class;
    make_mapper("x.A -> a:\n    void f() -> a\n", &made);
    assert_true(sl_jvm_mapper_class(&made.mapper, SL_STR("a"), &class));
    assert_true(sl_str_equal(class, SL_STR("x.A")));
    assert_false(sl_jvm_mapper_class(&made.mapper, SL_STR("A"), &class));
    assert_false(sl_jvm_mapper_class(&made.mapper, SL_STR(""), &class));
    sl_buf_free(&made.file);
}

TEST(number_of_frames_is_limited)
{
    struct made made;
    struct sl_arena arena = {0};
    struct sl_jvm_frames frames = {.arena = &arena, .limit = 1000};
    struct sl_jvm_outline outline = {.is_carried_over = false};
    struct sl_jvm_query query = query_of("a.a:3");
    make_mapper("A -> a:\n    void f():1:65536 -> a\n", &made);
    assert_int_equal(sl_jvm_mapper_frame(&made.mapper, &query, &outline, &frames), SL_JVM_FRAMES);
    assert_int_equal(frames.count, 1000);
    assert_true(frames.limited);
    frames = (struct sl_jvm_frames){.arena = &arena};
    assert_int_equal(sl_jvm_mapper_frame(&made.mapper, &query, &outline, &frames), SL_JVM_FRAMES);
    assert_int_equal(frames.count, 65536);
    assert_int_equal(frames.items[65535].line, 65536);
    assert_false(frames.limited || frames.busy);
    sl_arena_free(&arena);
    sl_buf_free(&made.file);
}
