/* Stacks: outlines, rules that remove frames, several mappings. */
#include "mapper.h"

static struct sl_str thrown_or_not(const char *thrown)
{
    return thrown ? sl_str(thrown) : (struct sl_str){NULL, 0};
}

/* The frames, separated by blanks, of one stack. "-": the frame is none, "?": not mapped. */
static void expect_stack(const struct sl_jvm_mappers *mappers, const char *thrown, const char *stack,
                         const char *wanted)
{
    struct sl_arena arena = {0};
    struct sl_jvm_stack s;
    char copy[512], found[1024] = "", *rest = copy;
    snprintf(copy, sizeof copy, "%s", stack);
    assert_true(sl_jvm_stack_begin(&s, mappers, thrown_or_not(thrown), &arena));
    for (const char *frame; (frame = strsep(&rest, " "));) {
        struct sl_jvm_frames frames = {.arena = &arena};
        struct sl_jvm_query query = query_of(frame);
        char text[512];
        enum sl_jvm_answer answer = sl_jvm_stack_frame(&s, &query, &frames);
        print_frames(&frames, 0, text, sizeof text);
        assert_int_equal(answer == SL_JVM_FRAMES, frames.count > 0);
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", *found ? " " : "",
                 answer == SL_JVM_FRAMES    ? text
                 : answer == SL_JVM_UNKNOWN ? "?"
                                            : "-");
    }
    assert_string_equal(found, wanted);
    sl_arena_free(&arena);
}

static void expect_one(const char *mapping, const char *thrown, const char *stack, const char *wanted)
{
    struct made made;
    make_mapper(mapping, &made);
    const struct sl_jvm_mapper *items[] = {&made.mapper};
    expect_stack(&(struct sl_jvm_mappers){items, 1, false}, thrown, stack, wanted);
    sl_buf_free(&made.file);
}

#define REMOVE(thrown, count)                                                                                          \
    "    # {\"id\":\"com.android.tools.r8.rewriteFrame\",\"conditions\":[\"throws(" thrown                             \
    ")\"],\"actions\":[\"removeInnerFrames(" count ")\"]}\n"

TEST(rewrite_rules_remove_inner_frames)
{
    static const char flow[] =
        "f.Initializer -> a:\n    10:10:void f.Inliner.firstStep(f.Step):60:60 -> start\n"
        "    10:10:void f.Inliner.secondStep(f.Step):61:61 -> start\n    10:10:void start(f.Step):42 -> start\n" REMOVE(
            "Ljava/lang/NullPointerException;",
            "2") "    15:15:void resume():55 -> start\n"
                 "f.StreamRouter -> b:\n    5:5:void f.StreamRouter$Inline.internalDispatch(java.lang.String):30:30 -> "
                 "dispatch\n"
                 "    5:5:void dispatch(java.lang.String):12 -> dispatch\n" REMOVE(
                     "Ljava/lang/IllegalStateException;",
                     "1") "f.UiBridge -> c:\n    20:20:void render():200 -> draw\n";
    expect_one(flow, "java.lang.NullPointerException", "a.start:10 b.dispatch:5 c.draw:20",
               "f.Initializer.start(Initializer.java:42) f.StreamRouter$Inline.internalDispatch(StreamRouter.java:30) "
               "f.StreamRouter.dispatch(StreamRouter.java:12) f.UiBridge.render(UiBridge.java:200)");
    expect_one(flow, "java.lang.IllegalStateException", "b.dispatch:5 c.draw:20",
               "f.StreamRouter.dispatch(StreamRouter.java:12) f.UiBridge.render(UiBridge.java:200)");
    expect_one(
        flow, NULL, "b.dispatch:5",
        "f.StreamRouter$Inline.internalDispatch(StreamRouter.java:30) f.StreamRouter.dispatch(StreamRouter.java:12)");
    expect_one(
        flow, "java.lang.IllegalStateException", "x.y:1 b.dispatch:5",
        "? f.StreamRouter$Inline.internalDispatch(StreamRouter.java:30) f.StreamRouter.dispatch(StreamRouter.java:12)");
}

TEST(rewrite_rule_may_remove_all_frames_of_a_line)
{
#define CLEARED(count)                                                                                                 \
    "some.Class -> a:\n    4:4:void inlined():10:10 -> call\n    4:4:void outer():20 -> call\n" REMOVE(                \
        "Ljava/lang/NullPointerException;", count) "some.Other -> b:\n    5:5:void method():30 -> run\n"
    const char *npe = "java.lang.NullPointerException";
    expect_one(CLEARED("2"), npe, "a.call:4 b.run:5", "- some.Other.method(Other.java:30)");
    expect_one(CLEARED("99"), npe, "a.call:4 b.run:5", "- some.Other.method(Other.java:30)");
    expect_one(CLEARED("1"), npe, "a.call:4 b.run:5",
               "some.Class.outer(Class.java:20) some.Other.method(Other.java:30)");
    expect_one(CLEARED("2"), "java.lang.Error", "a.call:4 b.run:5",
               "some.Class.inlined(Class.java:10) some.Class.outer(Class.java:20) some.Other.method(Other.java:30)");
}

#define OUTLINE             "    # {\"id\":\"com.android.tools.r8.outline\"}\n"
#define CALLSITE(positions) "    # {\"id\":\"com.android.tools.r8.outlineCallsite\",\"positions\":{" positions "}}\n"

TEST(outlined_frames_are_mapped_to_their_callers)
{
    static const char plain[] = "outline.Class -> a:\n    1:2:int outline() -> a\n" OUTLINE
                                "some.Class -> b:\n    4:4:int outlineCaller(int):98:98 -> s\n"
                                "    5:5:int outlineCaller(int):100:100 -> s\n"
                                "    27:27:int outlineCaller(int):0:0 -> s\n" CALLSITE("\"1\":4,\"2\":5");
    expect_one(plain, NULL, "a.a:1 b.s:27", "- some.Class.outlineCaller(Class.java:98)");
    expect_one(plain, NULL, "a.a:2 b.s:27", "- some.Class.outlineCaller(Class.java:100)");
    expect_one(plain, NULL, "b.s:27", "some.Class.outlineCaller(Class.java:0)");
    static const char with_inlined[] =
        "o.Outline -> a:\n    1:2:int o.Helper.in():75:76 -> a\n    1:2:int outline():0 -> a\n" OUTLINE
        "p.Screen -> b:\n    5:5:int p.Util.inner(int):98:98 -> s\n"
        "    5:5:int caller(int):24 -> s\n    27:27:int caller(int):0:0 -> s\n" CALLSITE("\"1\":4,\"2\":5");
    expect_one(with_inlined, NULL, "a.a:2 b.s:27",
               "o.Helper.in(Helper.java:76) p.Util.inner(Util.java:98) p.Screen.caller(Screen.java:24)");
    static const char nested[] = "o.One -> a:\n    4:4:int outline():0:0 -> a\n" OUTLINE
                                 "o.Two -> b:\n    6:6:int outline():0:0 -> a\n" CALLSITE(
                                     "\"4\":43") "    42:43:int outline():0:0 -> a\n" OUTLINE
                                                 "p.Screen -> c:\n    10:11:int caller(int):98:98 -> a\n    28:28:int "
                                                 "caller(int):0:0 -> a\n" CALLSITE("\"42\":10,\"43\":11");
    expect_one(nested, NULL, "a.a:4 b.a:6 c.a:28", "- - p.Screen.caller(Screen.java:98)");
    expect_one(plain, NULL, "a.a:1 x.y:1 b.s:27", "- ? some.Class.outlineCaller(Class.java:0)");
    expect_one(plain, NULL, "a.a:3 b.s:27", "- some.Class.outlineCaller(Class.java:0)");
    static const char inlined[] = "outline.Class -> a:\n    1:2:int outline() -> a\n" OUTLINE
                                  "some.Class -> b:\n    4:5:int foo.bar.baz.outlineCaller(int):98:99 -> s\n"
                                  "    4:5:int outlineCaller(int):24 -> s\n"
                                  "    27:27:int outlineCaller(int):0:0 -> s\n" CALLSITE("\"1\":4,\"2\":5");
    expect_one(inlined, NULL, "a.a:2 b.s:27",
               "- foo.bar.baz.outlineCaller(baz.java:99) some.Class.outlineCaller(Class.java:24)");
}

TEST(rewrite_rules_apply_after_outlines)
{
    expect_one(
        "o.O -> o:\n    1:1:int outline() -> a\n" OUTLINE
        "some.Class -> a:\n    4:4:void inlined():10:10 -> call\n    4:4:void outer():20 -> call\n" REMOVE("LE;", "1"),
        "E", "o.a:1 a.call:4", "- some.Class.outer(Class.java:20)");
}

TEST(synthesized_frames_are_dropped)
{
#define SYNTHESIZED "    # {\"id\":\"com.android.tools.r8.synthesized\"}\n"
    expect_one("A -> a:\n    1:1:void x():1:1 -> m\n" SYNTHESIZED "    1:1:void y():2 -> m\n    void plain() -> p\n"
               "B -> b:\n    1:1:void A.x():1:1 -> n\n    1:1:void n():9 -> n\n"
               "C -> c:\n" SYNTHESIZED
               "    1:1:void z():1:1 -> k\nD -> d:\n    1:1:void C.w():1:1 -> e\n    1:1:void e():2 -> e\n",
               NULL, "a.m:1 b.n:1 c.k:1 d.e:1 a.p:1",
               "A.x(A.java:1)! A.y(A.java:2) A.x(A.java:1)! B.n(B.java:9) C.z(C.java:1)! C.w(C.java:1)! D.e(D.java:2) "
               "A.plain(A.java:1)");
}

TEST(comments_apply_to_the_record_before)
{
    expect_one("A -> a:\n# x: y\n# {\"id\":\"sourceFile\",\"fileName\":\"No.kt\"}\n    1:1:void x():1:1 -> m\n"
               "    int f -> f\n" SYNTHESIZED
               "B -> b:\nnothing\n\n   # {\"id\":\"sourceFile\",\"fileName\":\"Yes.kt\"}\n    1:1:void x():1:1 -> m\n  "
               "bad\n" SYNTHESIZED,
               NULL, "a.m:1 b.m:1", "A.x(A.java:1) B.x(Yes.kt:1)!");
}

TEST(first_mapping_with_the_class_is_used)
{
    struct made first, second;
    make_mapper("p.A -> a:\n    1:1:void x():5:5 -> m\n", &first);
    make_mapper(
        "q.A -> a:\n    2:2:void z():9:9 -> m\nr.A -> p.A:\n    5:5:void i():7:7 -> x\n    5:5:void y():8 -> x\n"
        "    2:2:void m():3:3 -> m\n",
        &second);
    const struct sl_jvm_mapper *items[] = {&first.mapper, &second.mapper};
    struct sl_jvm_mappers both = {items, 2, false}, chain = {items, 2, true};
    struct sl_str class;
    expect_stack(&both, NULL, "a.m:2 a.m:1 p.A.x:5", "p.A.m(A.java:2) p.A.x(A.java:5) r.A.i(A.java:7) r.A.y(A.java:8)");
    expect_stack(&chain, NULL, "a.m:2 a.m:1 a.n:1", "r.A.m(A.java:3) r.A.i(A.java:7) r.A.y(A.java:8) r.A.n(A.java:1)");
    assert_true(sl_jvm_stack_class(&both, SL_STR("a"), &class) && sl_str_equal(class, SL_STR("p.A")));
    assert_true(sl_jvm_stack_class(&chain, SL_STR("a"), &class) && sl_str_equal(class, SL_STR("r.A")));
    assert_false(sl_jvm_stack_class(&chain, SL_STR("b"), &class));
    sl_buf_free(&first.file);
    sl_buf_free(&second.file);
}
