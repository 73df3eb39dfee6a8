/* Lines of mapping files. */
#include "../check.h"

#include "jvm/mapping.h"

static struct sl_jvm_record only(const char *text)
{
    struct sl_jvm_reader reader = sl_jvm_reader(sl_str(text));
    struct sl_jvm_record r, more;
    assert_true(sl_jvm_reader_next(&reader, &r));
    assert_false(sl_jvm_reader_next(&reader, &more));
    return r;
}

static void expect_text(struct sl_str found, const char *wanted)
{
    assert_int_equal(found.data != NULL, wanted != NULL);
    if (wanted && !sl_str_equal(found, sl_str(wanted)))
        fail_msg("\"" SL_STR_FMT "\" is not \"%s\"", SL_STR_ARG(found), wanted);
}

TEST(header_records_are_read)
{
    static const struct {
        const char *line, *key, *value;
    } rows[] = {{"#    compiler   :    R8  ", "compiler", "R8"},
                {"# common_typos_disable", "common_typos_disable", NULL},
                {"  \t# pg_map_id: 7:8", "pg_map_id", "7:8"},
                {"#", "", NULL},
                {"# a:", "a", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_jvm_record r = only(rows[i].line);
        assert_int_equal(r.kind, SL_JVM_RECORD_HEADER);
        expect_text(r.key, rows[i].key);
        expect_text(r.value, rows[i].value);
    }
    assert_int_equal(only("# a: \xff").kind, SL_JVM_RECORD_ERROR);
}

TEST(class_records_are_read)
{
    struct sl_jvm_record r = only("a.B -> c.a:");
    assert_int_equal(r.kind, SL_JVM_RECORD_CLASS);
    expect_text(r.original, "a.B");
    expect_text(r.obfuscated, "c.a");
    expect_text(only("\xEF\xBB\xBF"
                     "a.\xC3\x84 -> b:\r\n")
                    .original,
                "a.\xC3\x84");
    static const char *const bad[] = {"a.B->c.a:", "a.B -> c.a", "a.B -> c.a\n", "a.B  -> c:", "a\xff -> b:"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(only(bad[i]).kind, SL_JVM_RECORD_ERROR);
}

TEST(member_records_are_read)
{
    struct sl_jvm_member m = only("    14:15:void x.Impl.setBar(y.Bar):436 -> onCreate").member;
    assert_true(m.has_range && m.has_line && !m.has_last_line);
    assert_true(m.start == 14 && m.end == 15 && m.line == 436);
    expect_text(m.receiver, "x.Impl");
    expect_text(m.name, "setBar");
    expect_text(m.arguments, "y.Bar");
    expect_text(m.obfuscated, "onCreate");
    m = only("  14:15:void x.Impl.setBar(y.Bar) -> onCreate").member;
    assert_true(m.has_line && m.has_last_line && m.line == 14 && m.last_line == 15);
    m = only("\tboolean equals(int, int) -> a  \r\n").member;
    assert_false(m.has_range || m.has_line);
    assert_null(m.receiver.data);
    expect_text(m.arguments, "int, int");
    expect_text(m.obfuscated, "a");
    m = only("    5:3:void main(S[]):9:7 -> main").member;
    assert_true(m.start == 3 && m.end == 5 && m.line == 7 && m.last_line == 9);
    m = only("    void a():0:4294967295 -> b").member;
    assert_true(m.line == 0 && m.last_line == UINT32_MAX);
}

TEST(fields_methods_and_errors_are_told_apart)
{
    static const struct {
        const char *line;
        enum sl_jvm_record_kind kind;
    } rows[] = {
        {"  android.app.Activity mActivity -> a", SL_JVM_RECORD_FIELD},
        {"    boolean equals(java.lang.Object,java.lang.Object) -> a", SL_JVM_RECORD_METHOD},
        {"    14:void f() -> a", SL_JVM_RECORD_ERROR},
        {"    14:15:x.Impl.setBar(y.Bar) -> onCreate", SL_JVM_RECORD_ERROR},
        {"    void f():x -> a", SL_JVM_RECORD_ERROR},
        {"    void f():1:x -> a", SL_JVM_RECORD_ERROR},
        {"    void f(int -> a", SL_JVM_RECORD_ERROR},
        {"    void f():4294967296 -> a", SL_JVM_RECORD_ERROR},
        {"    99999999999999999999999:1:void f() -> a", SL_JVM_RECORD_ERROR},
        {"    void f()->a", SL_JVM_RECORD_ERROR},
        {"    void \xff() -> a", SL_JVM_RECORD_ERROR},
        {"   ", SL_JVM_RECORD_ERROR},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (only(rows[i].line).kind != rows[i].kind)
            fail_msg("%s", rows[i].line);
}

TEST(records_are_read_line_by_line)
{
    struct sl_jvm_reader reader = sl_jvm_reader(sl_str("a.B \n-> c:\r\n\r\na -> b: # x\r    int c -> d"));
    static const enum sl_jvm_record_kind kinds[] = {SL_JVM_RECORD_ERROR, SL_JVM_RECORD_ERROR, SL_JVM_RECORD_CLASS,
                                                    SL_JVM_RECORD_HEADER, SL_JVM_RECORD_FIELD};
    struct sl_jvm_record r;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        assert_true(sl_jvm_reader_next(&reader, &r));
        assert_int_equal(r.kind, kinds[i]);
    }
    assert_false(sl_jvm_reader_next(&reader, &r));
    reader = sl_jvm_reader((struct sl_str){NULL, 0});
    assert_false(sl_jvm_reader_next(&reader, &r));
}

/* ---- comments ---- */

static bool read_comment(const char *line, struct sl_arena *arena, struct sl_jvm_comment *comment)
{
    bool busy;
    struct sl_jvm_record r = only(line);
    assert_int_equal(r.kind, SL_JVM_RECORD_COMMENT);
    bool good = sl_jvm_comment_read(r.json, arena, comment, &busy);
    assert_false(busy);
    return good;
}

TEST(comment_records_are_recognised)
{
    static const struct {
        const char *line;
        bool good;
        enum sl_jvm_comment_kind kind;
    } rows[] = {
        {"    #{\"id\":\"foobar\"}", true, SL_JVM_COMMENT_OTHER},
        {"#     {\"id\":\"foobar\"}", true, SL_JVM_COMMENT_OTHER},
        {"# {123:\"foobar\"}", false, 0},
        {"# {'id':'x'}", true, SL_JVM_COMMENT_OTHER},
        {"# { id: 'com.android.tools.r8.synthesized', x: [true, null, -1.5e3] }", true, SL_JVM_COMMENT_SYNTHESIZED},
        {"# {'id':'sourceFile','fileName':'\"\\'.kt'}", true, SL_JVM_COMMENT_SOURCE_FILE},
        {"# {'id':'x\"}", false, 0},
        {"# {'id':x'}", false, 0},
        {"# {}", false, 0},
        {"# {\"id\":7}", false, 0},
        {"# {\"id\":\"x\"} y", false, 0},
        {"# {\"fileName\":\"A.kt\",\"x\":[{}],\"id\":\"sourceFile\"}", true, SL_JVM_COMMENT_SOURCE_FILE},
        {"# {\"id\":\"sourceFile\"}", false, 0},
        {"# {\"id\":\"sourceFile\",\"fileName\":7}", false, 0},
        {"# {\"id\":\"com.android.tools.r8.synthesized\"}", true, SL_JVM_COMMENT_SYNTHESIZED},
        {"# {\"id\":\"com.android.tools.r8.outline\"}", true, SL_JVM_COMMENT_OUTLINE},
        {"# {\"id\":\"com.android.tools.r8.outlineCallsite\",\"positions\":{\"1\":4}}", true, SL_JVM_COMMENT_CALLSITE},
        {"# {\"id\":\"com.android.tools.r8.outlineCallsite\"}", false, 0},
        {"# {\"id\":\"com.android.tools.r8.outlineCallsite\",\"positions\":{\"1\":-4}}", false, 0},
        {"# {\"id\":\"com.android.tools.r8.outlineCallsite\",\"positions\":[]}", false, 0},
        {"# {\"id\":\"com.android.tools.r8.rewriteFrame\",\"conditions\":[],\"actions\":[]}", true,
         SL_JVM_COMMENT_REWRITE},
        {"# {\"id\":\"com.android.tools.r8.rewriteFrame\",\"conditions\":[7],\"actions\":[]}", false, 0},
        {"# {\"id\":\"com.android.tools.r8.rewriteFrame\",\"conditions\":[]}", false, 0},
    };
    struct sl_arena arena = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_jvm_comment c;
        if (read_comment(rows[i].line, &arena, &c) != rows[i].good || (rows[i].good && c.kind != rows[i].kind))
            fail_msg("%s", rows[i].line);
    }
    sl_arena_free(&arena);
}

TEST(comment_fields_are_read)
{
    struct sl_arena arena = {0};
    struct sl_jvm_comment c;
    assert_true(read_comment("# {\"id\":\"sourceFile\",\"fileName\":\"\\u0041.kt\"}", &arena, &c));
    expect_text(c.text, "A.kt");
    assert_true(
        read_comment("# {\"id\":\"com.android.tools.r8.outlineCallsite\",\"positions\":{\"1\":4,\"1:1\":5,\"x\":6,"
                     "\"2\":7,\"4294967296\":8},\"outline\":\"La;b()I\"}",
                     &arena, &c));
    assert_int_equal(c.position_count, 2);
    assert_true(c.positions[1].position == 2 && c.positions[1].line == 7);
    sl_arena_free(&arena);
}

TEST(rewrite_frame_rules_are_read)
{
    static const struct {
        const char *conditions, *actions, *thrown;
        uint32_t remove;
    } rows[] = {
        {"\"throws(La/B;)\"", "\"removeInnerFrames(2)\"", "La/B;", 2},
        {"\" throws(La/B;) \",\"throws(La/B;)\"", "\"removeInnerFrames(2)\",\" removeInnerFrames(3)\"", "La/B;", 5},
        {"\"throws(La/B;)\"", "\"removeInnerFrames(9999999999)\",\"removeInnerFrames(9)\"", "La/B;", UINT32_MAX},
        {"\"throws(La/B;)\"", "\"other\",\"removeInnerFrames(1)\"", "La/B;", 1},
        {"\"throws(La/B;)\",\"throws(La/C;)\"", "\"removeInnerFrames(2)\"", NULL, 0},
        {"\"throws(La/B;\"", "\"removeInnerFrames(2)\"", NULL, 0},
        {"\"throws()\"", "\"removeInnerFrames(2)\"", NULL, 0},
        {"\"other\"", "\"removeInnerFrames(2)\"", NULL, 0},
        {"", "\"removeInnerFrames(2)\"", NULL, 0},
        {"\"\"", "\"removeInnerFrames(2)\"", NULL, 0},
        {"\"throws(La/B;)\"", "\"removeInnerFrames(-2)\"", NULL, 0},
        {"\"throws(La/B;)\"", "\"removeInnerFrames(2)\",\"removeInnerFrames(x)\"", NULL, 0},
        {"\"throws(La/B;)\"", "\"removeInnerFrames(2)\",\"\"", NULL, 0},
        {"\"throws(La/B;)\"", "", NULL, 0},
    };
    struct sl_arena arena = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_jvm_comment c;
        char line[256];
        snprintf(line, sizeof line,
                 "# {\"id\":\"com.android.tools.r8.rewriteFrame\",\"conditions\":[%s],\"actions\":[%s]}",
                 rows[i].conditions, rows[i].actions);
        assert_true(read_comment(line, &arena, &c));
        if (c.remove != rows[i].remove)
            fail_msg("%s: %u", line, c.remove);
        if (rows[i].thrown)
            expect_text(c.text, rows[i].thrown);
    }
    sl_arena_free(&arena);
}

/* ---- whole files ---- */

#define M1                                                                                                             \
    "com.example.flow.Initializer -> a:\n"                                                                             \
    "    10:10:void com.example.flow.Inliner.firstStep(com.example.flow.Step):60:60 -> start\n"                        \
    "    10:10:void com.example.flow.Inliner.secondStep(com.example.flow.Step):61:61 -> start\n"                       \
    "    10:10:void start(com.example.flow.Step):42 -> start\n"                                                        \
    "    # "                                                                                                           \
    "{\"id\":\"com.android.tools.r8.rewriteFrame\",\"conditions\":[\"throws(Ljava/lang/NullPointerException;)\"],"     \
    "\"actions\":[\"removeInnerFrames(2)\"]}\n"                                                                        \
    "    15:15:void resume():55 -> start\n"                                                                            \
    "com.example.flow.StreamRouter -> b:\n"                                                                            \
    "    5:5:void com.example.flow.StreamRouter$Inline.internalDispatch(java.lang.String):30:30 -> dispatch\n"         \
    "    5:5:void dispatch(java.lang.String):12 -> dispatch\n"                                                         \
    "    # "                                                                                                           \
    "{\"id\":\"com.android.tools.r8.rewriteFrame\",\"conditions\":[\"throws(Ljava/lang/IllegalStateException;)\"],"    \
    "\"actions\":[\"removeInnerFrames(1)\"]}\n"                                                                        \
    "com.example.flow.UiBridge -> c:\n"                                                                                \
    "    20:20:void render():200 -> draw\n"

TEST(mapping_ids_are_the_hash_of_the_text)
{
    static const struct {
        const char *text, *id;
    } rows[] = {{"", "0e71d76c-5067-5a02-a5d9-7e81070eb125"},
                {"a -> b:\n    void method() -> b", "0099d4ac-7da8-5ef9-bad6-43c26f052e98"},
                {M1 "\n", "44a756f2-6a95-59b1-995e-480907d7a54e"},
                {M1, "3231cd8d-c3c9-5fc5-8abb-ca24d07cc0d0"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_debug_id id;
        char text[SL_DEBUG_ID_TEXT];
        assert_true(sl_jvm_mapping_id(sl_str(rows[i].text), &id));
        sl_debug_id_format(&id, text);
        assert_string_equal(text, rows[i].id);
    }
}

TEST(mappings_are_told_from_other_texts)
{
    assert_true(sl_jvm_is_mapping(sl_str("a -> b:\n    void method() -> b")));
    assert_true(sl_jvm_is_mapping(sl_str("# compiler: R8\na -> b:\nx\n    int f -> b")));
    static const char *const bad[] = {"", "not a mapping", "a -> proguard:\n  not a valid proguard member line",
                                      "a -> b:\nsome words\nc -> d:\n", "    int f -> b\na -> b\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(sl_jvm_is_mapping(sl_str(bad[i])));
    static const char class[] = "a -> b:\n# {\"id\":\"sourceFile\",\"fileName\":\"A.kt\"}\n";
    struct sl_buf late = {0};
    for (unsigned i = 0; i < 100; i++) {
        sl_buf_cstr(&late, class); /* classes and what is said of them do not count */
        sl_buf_cstr(&late, i < 49 ? "#a\n" : "");
    }
    assert_true(sl_jvm_is_mapping(sl_buf_view(&late)));
    sl_buf_cstr(&late, "    int f -> b\n");
    assert_true(sl_jvm_is_mapping(sl_buf_view(&late)));
    late.size -= strlen("    int f -> b\n");
    sl_buf_cstr(&late, "#a\n    int f -> b\n");
    assert_false(sl_jvm_is_mapping(sl_buf_view(&late)));
    sl_buf_free(&late);
}

TEST(summary_counts_classes_and_methods)
{
    struct sl_jvm_summary s = sl_jvm_summarise(sl_str("# compiler: R8\n# compiler_version: 1.3.49\n# min_api: 15\n"
                                                      "a -> b:\n    int f -> a\n    void g() -> b\nc -> d:\n"
                                                      "    1:1:void method() -> a\n"));
    expect_text(s.compiler, "R8");
    expect_text(s.compiler_version, "1.3.49");
    expect_text(s.min_api, "15");
    assert_int_equal(s.classes, 2);
    assert_int_equal(s.methods, 2);
    assert_true(s.has_lines);
    assert_false(sl_jvm_summarise(sl_str("a -> b:\n    void method() -> b")).has_lines);
}

/* Wherever a line lies, what it holds and what ends it are seen. */
TEST(records_are_read_at_any_alignment)
{
    enum { SIZE = 200 };
    for (size_t front = 0; front < SIZE; front++) {
        char text[SIZE * 3] = "";
        memset(text, '\n', front);
        strcpy(text + front, "a -> b:\r    int f() -> a\n    int g\xff() -> a\n# \xc3\xa4: b\n");
        memset(text + strlen(text), '\n', SIZE - front);
        static const enum sl_jvm_record_kind kinds[] = {SL_JVM_RECORD_CLASS, SL_JVM_RECORD_METHOD, SL_JVM_RECORD_ERROR,
                                                        SL_JVM_RECORD_HEADER};
        struct sl_jvm_reader reader = sl_jvm_reader(sl_str(text));
        struct sl_jvm_record r;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            assert_true(sl_jvm_reader_next(&reader, &r));
            assert_int_equal(r.kind, kinds[i]);
        }
        expect_text(r.key, "\xc3\xa4");
        assert_false(sl_jvm_reader_next(&reader, &r));
    }
}

TEST(line_numbers_are_read_up_to_32_bits)
{
    static const struct {
        const char *line;
        uint32_t start, end;
    } rows[] = {{"1:12:int f() -> a", 1, 12},
                {"123:1234:int f() -> a", 123, 1234},
                {"12345:123456:int f() -> a", 12345, 123456},
                {"1234567:12345678:int f() -> a", 1234567, 12345678},
                {"123456789:4294967295:int f() -> a", 123456789, 4294967295},
                {"00000000000007:0000009:int f() -> a", 7, 9}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[64];
        snprintf(line, sizeof line, "\t%s", rows[i].line);
        struct sl_jvm_record r = only(line);
        assert_int_equal(r.kind, SL_JVM_RECORD_METHOD);
        assert_int_equal(r.member.start, rows[i].start);
        assert_int_equal(r.member.end, rows[i].end);
    }
    assert_int_equal(only(" 1:4294967296:int f() -> a").kind, SL_JVM_RECORD_ERROR);
    assert_int_equal(only(" 1:2/:int f() -> a").kind, SL_JVM_RECORD_ERROR);
    assert_int_equal(only(" int f():12 -> a").member.line, 12);
    assert_int_equal(only(" int f():1:7 -> ").member.last_line, 7);
}
