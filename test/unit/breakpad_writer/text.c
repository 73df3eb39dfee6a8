/* The text of symbol files, made of functions and symbols that are written here. */
#include "../check.h"

#include "breakpad/breakpad.h"

#define NAME(text) SL_STR(text)

static const struct sl_file sources[] = {
    {.comp_dir = SL_STR("/src"), .name = SL_STR("main.c")},
    {.comp_dir = SL_STR("/src"), .directory = SL_STR("lib"), .name = SL_STR("a.c")},
};

struct text {
    struct sl_buf out;
    size_t limit; /* 0: none */
};

static bool take(void *arg, struct sl_str piece)
{
    struct text *text = arg;
    sl_buf_str(&text->out, piece);
    return !text->limit || text->out.size < text->limit;
}

static const struct sl_breakpad_options usual = {
    .os = SL_STR("Linux"),
    .arch = SL_STR("x86_64"),
    .id = SL_STR("000000000000000000000000000000000"),
    .name = SL_STR("a.out"),
    .inlines = true,
    .multiple = true,
};

/* One batch for each of `counts` (ends with 0), in this order. */
static void feed(struct sl_breakpad_writer *w, const struct sl_function *functions, const size_t *counts)
{
    struct sl_function_sink *sink = sl_breakpad_writer_sink(w);
    struct sl_error error;
    for (; *counts; functions += *counts++) {
        struct sl_arena arena = {0};
        struct sl_function_batch batch = {
            .files = sources, .file_count = 2, .functions = functions, .function_count = *counts};
        sink->prepare(sink, &batch, &arena, 0);
        assert_int_equal(sink->consume(sink, &batch, &error), SL_OK);
        sl_arena_free(&arena);
    }
}

/* The text without its MODULE line; valid until the next call. */
static const char *written(const struct sl_breakpad_options *options, const struct sl_function *functions,
                           const size_t *counts, const struct sl_symbol *symbols, size_t symbol_count)
{
    static struct text text;
    static const char module[] = "MODULE Linux x86_64 000000000000000000000000000000000 a.out\n";
    struct sl_breakpad_output output = {take, &text};
    struct sl_error error = {0};
    sl_buf_clear(&text.out);
    struct sl_breakpad_writer *w = sl_breakpad_writer_new(options);
    assert_non_null(w);
    feed(w, functions, counts);
    assert_true(sl_breakpad_writer_symbols(w, symbols, symbol_count));
    assert_int_equal(sl_breakpad_writer_finish(w, &output, &error), SL_OK);
    sl_breakpad_writer_free(w);
    sl_buf_u8(&text.out, 0);
    assert_true(text.out.size > sizeof module - 1);
    assert_memory_equal(text.out.data, module, sizeof module - 1);
    return (const char *)text.out.data + sizeof module - 1;
}

static const size_t one[] = {1, 0}, none[] = {0};

/* ---- functions ---- */

TEST(lines_and_files_are_written)
{
    static const struct sl_line lines[] = {
        {0x1000, 4, 1, 7}, {0x1004, 4, 1, 7}, {0x1008, 8, 0, 8}, {0x1010, 2, 0, 0}, {0x1012, 4, SL_NO_FILE, 9}};
    static const struct sl_function f = {.address = 0x1000,
                                         .size = 0x18,
                                         .name = NAME("_ZN1a1fEi"),
                                         .language = SL_LANG_CPP,
                                         .lines = lines,
                                         .line_count = 5};
    assert_string_equal(written(&usual, &f, one, NULL, 0), "FILE 0 /src/lib/a.c\n"
                                                           "FILE 1 /src/main.c\n"
                                                           "FILE 2 <unknown>\n"
                                                           "FUNC 1000 18 0 a::f(int)\n"
                                                           "1000 8 7 0\n"
                                                           "1008 8 8 1\n"
                                                           "1010 2 0 1\n"
                                                           "1012 4 9 2\n"); /* 2: no file */
}

/* outer calls mid, which calls inner twice; the lines of the first call of inner end before its range does. */
static const struct sl_line inner_lines[] = {{0x1008, 4, 1, 30}}, again_lines[] = {{0x1014, 4, 1, 31}};
static const struct sl_function inner[] = {{.address = 0x1008,
                                            .size = 8,
                                            .name = NAME("inner"),
                                            .lines = inner_lines,
                                            .line_count = 1,
                                            .call_file = 1,
                                            .call_line = 20},
                                           {.address = 0x1014,
                                            .size = 4,
                                            .name = NAME("inner"),
                                            .lines = again_lines,
                                            .line_count = 1,
                                            .call_file = 1,
                                            .call_line = 20}};
static const struct sl_line mid_lines[] = {
    {0x1004, 4, 1, 19}, {0x1008, 8, 1, 20}, {0x1010, 4, 1, 21}, {0x1014, 4, 1, 20}};
static const struct sl_function mid = {.address = 0x1004,
                                       .size = 0x14,
                                       .name = NAME("mid"),
                                       .lines = mid_lines,
                                       .line_count = 4,
                                       .inlinees = inner,
                                       .inlinee_count = 2,
                                       .call_file = 0,
                                       .call_line = 10};
static const struct sl_line outer_lines[] = {{0x1000, 4, 0, 9}, {0x1004, 0x14, 0, 10}, {0x1018, 8, 0, 11}};
static const struct sl_function outer = {.address = 0x1000,
                                         .size = 0x20,
                                         .name = NAME("outer"),
                                         .lines = outer_lines,
                                         .line_count = 3,
                                         .inlinees = &mid,
                                         .inlinee_count = 1};

TEST(inlined_calls_are_written_as_inline_records)
{
    assert_string_equal(written(&usual, &outer, one, NULL, 0), "FILE 0 /src/main.c\n"
                                                               "FILE 1 /src/lib/a.c\n"
                                                               "INLINE_ORIGIN 0 mid\n"
                                                               "INLINE_ORIGIN 1 inner\n"
                                                               "FUNC 1000 20 0 outer\n"
                                                               "INLINE 0 10 0 0 1004 14\n"
                                                               "INLINE 1 20 1 1 1008 4 1014 4\n"
                                                               "1000 4 9 0\n"
                                                               "1004 4 19 1\n"
                                                               "1008 4 30 1\n"
                                                               "100c 4 20 1\n"
                                                               "1010 4 21 1\n"
                                                               "1014 4 31 1\n"
                                                               "1018 8 11 0\n");
}

TEST(innermost_lines_are_kept_without_inlines)
{
    struct sl_breakpad_options options = usual;
    options.inlines = false;
    const char *text = written(&options, &outer, one, NULL, 0);
    assert_null(strstr(text, "INLINE"));
    assert_non_null(strstr(text, "FUNC 1000 20 0 outer\n1000 4 9 0\n1004 4 19 1\n1008 4 30 1\n"));
}

TEST(functions_are_sorted_by_address)
{
    static const struct sl_function f[] = {{.address = 0x3000, .size = 0x10, .name = NAME("c")},
                                           {.address = 0x1000, .size = 0x10, .name = NAME("a")},
                                           {.address = 0x2000, .size = 0x10, .name = NAME("b")},
                                           {.address = 0x2800, .size = 0, .name = NAME("empty")},
                                           {.address = 0x2000, .size = 0x08, .name = NAME("shorter")},
                                           {.address = 0x1000, .size = 0x10, .name = NAME("again")}};
    static const size_t batches[] = {2, 3, 1, 0};
    assert_string_equal(written(&usual, f, batches, NULL, 0), "FUNC m 1000 10 0 again\n" /* the last of one place */
                                                              "FUNC 2000 10 0 b\n"
                                                              "FUNC 2000 8 0 shorter\n"
                                                              "FUNC 3000 10 0 c\n");
}

TEST(lines_are_clipped_to_their_function)
{
    static const struct sl_line lines[] = {{0xff0, 8, 0, 1}, {0xff8, 0x10, 0, 2}, {0x1008, 0x20, 0, 3}};
    static const struct sl_function f = {
        .address = 0x1000, .size = 0x10, .name = NAME("f"), .lines = lines, .line_count = 3};
    assert_string_equal(written(&usual, &f, one, NULL, 0), "FILE 0 /src/main.c\n"
                                                           "FUNC 1000 10 0 f\n"
                                                           "1000 8 2 0\n"
                                                           "1008 8 3 0\n");
}

/* ---- symbols ---- */

TEST(symbols_outside_functions_become_public_records)
{
    static const struct sl_function f = {.address = 0x1000, .size = 0x10, .name = NAME("f")};
    static const struct sl_symbol symbols[] = {{0x2000, 0, NAME("_Z1gv")}, {0x1008, 0, NAME("inside")},
                                               {0x800, 4, NAME("before")}, {0x1010, 0, NAME("behind")},
                                               {0x2000, 0, NAME("other")}, {0x1000, 0, NAME("f")},
                                               {0x3000, 0, NAME("")}};
    assert_string_equal(written(&usual, &f, one, symbols, 7), "PUBLIC 800 0 before\n"
                                                              "FUNC 1000 10 0 f\n"
                                                              "PUBLIC 1010 0 behind\n"
                                                              "PUBLIC m 2000 0 g()\n");
}

TEST(several_symbols_of_a_function_set_the_multiple_mark)
{
    static const struct sl_function f = {.address = 0x1000, .size = 0x10, .name = NAME("f")};
    static const struct sl_symbol symbols[] = {{0x1000, 0, NAME("public_f")}, {0x1000, 0, NAME("f")}};
    struct sl_breakpad_options options = usual;
    assert_string_equal(written(&options, &f, one, symbols, 2), "FUNC m 1000 10 0 f\n");
    options.prefer_public = true;
    assert_string_equal(written(&options, &f, one, symbols, 2), "FUNC m 1000 10 0 public_f\n");
    options.multiple = false;
    assert_string_equal(written(&options, &f, one, symbols, 2), "FUNC 1000 10 0 public_f\n");
}

/* One symbol of another name is no second name: debug information says `f(int)` where the symbol is mangled. */
TEST(single_symbol_is_no_second_name)
{
    static const struct sl_function f = {.address = 0x1000, .size = 0x10, .name = NAME("f(int)")};
    static const struct sl_symbol symbols[] = {{0x1000, 0, NAME("?f@@YAXH@Z")}, {0x1000, 0, NAME("?f@@YAXH@Z")}};
    static const struct sl_symbol constructors[] = {{0x1000, 0, NAME("_ZN1AC1Ev")}, {0x1000, 0, NAME("_ZN1AC2Ev")}};
    assert_string_equal(written(&usual, &f, one, symbols, 1), "FUNC 1000 10 0 f(int)\n");
    assert_string_equal(written(&usual, &f, one, symbols, 2), "FUNC 1000 10 0 f(int)\n");
    assert_string_equal(written(&usual, &f, one, constructors, 2), "FUNC 1000 10 0 f(int)\n");
    assert_string_equal(written(&usual, NULL, none, constructors, 2), "PUBLIC 1000 0 A::A()\n");
}

TEST(parameters_and_multiple_marks_are_kept)
{
    static const struct sl_function f = {
        .address = 0x1000, .size = 0x10, .name = NAME("f"), .parameters = 8, .multiple = true};
    static const struct sl_symbol symbols[] = {{0x2000, 0, NAME("p"), .parameters = 12, .multiple = true},
                                               {0x3000, 0, NAME("q"), .parameters = 4}};
    assert_string_equal(written(&usual, &f, one, symbols, 2), "FUNC m 1000 10 8 f\n"
                                                              "PUBLIC m 2000 c p\n"
                                                              "PUBLIC 3000 4 q\n");
}

TEST(windows_decoration_is_removed)
{
    static const struct sl_symbol symbols[] = {{0x10, 0, NAME("_malloc")},   {0x20, 0, NAME("_free@12")},
                                               {0x30, 0, NAME("@fast@16")},  {0x40, 0, NAME("vector@@8")},
                                               {0x50, 0, NAME("?f@@YAXXZ")}, {0x60, 0, NAME("_odd@name")}};
    static const struct sl_function f = {.address = 0x20, .size = 0x10, .name = NAME("_free")};
    struct sl_breakpad_options options = usual;
    assert_non_null(strstr(written(&options, NULL, none, symbols, 6), "PUBLIC 20 0 _free@12\n"));
    options.decorates = true;
    /* names of debug information stand as they are; their symbols tell the size of the parameters */
    assert_string_equal(written(&options, &f, one, symbols, 2), "PUBLIC 10 0 malloc\nFUNC 20 10 c _free\n");
    assert_string_equal(written(&options, NULL, none, symbols, 6), "PUBLIC 10 0 malloc\n"
                                                                   "PUBLIC 20 c free\n"
                                                                   "PUBLIC 30 10 fast\n"
                                                                   "PUBLIC 40 8 vector\n"
                                                                   "PUBLIC 50 0 f(void)\n"
                                                                   "PUBLIC 60 0 odd@name\n");
}

/* ---- the header ---- */

static struct sl_str rewrite(void *arg, struct sl_str path)
{
    return sl_str_equal(path, SL_STR("/src/main.c")) ? SL_STR("git:main.c") : path;
}

TEST(header_has_module_and_info_records)
{
    static const struct sl_line lines[] = {{0, 4, 0, 1}, {4, 4, 1, 2}};
    static const struct sl_function f = {.size = 8, .name = NAME("f"), .lines = lines, .line_count = 2};
    const struct sl_str infos[] = {SL_STR("CODE_ID AB"), SL_STR("GENERATOR x\n1")};
    struct sl_breakpad_options options = usual;
    options.infos = infos;
    options.info_count = 2;
    options.map_path = rewrite;
    options.base = 0x400000;
    assert_string_equal(written(&options, &f, one, NULL, 0), "INFO CODE_ID AB\n"
                                                             "INFO GENERATOR x?1\n"
                                                             "FILE 0 git:main.c\n"
                                                             "FILE 1 /src/lib/a.c\n"
                                                             "FUNC 400000 8 0 f\n"
                                                             "400000 4 1 0\n"
                                                             "400004 4 2 1\n");
    options.header_only = true;
    assert_string_equal(written(&options, &f, one, NULL, 0), "INFO CODE_ID AB\nINFO GENERATOR x?1\n");
}

/* ---- hostile input ---- */

/* Names must not make lines of their own, and the file must stay UTF-8. */
TEST(line_breaks_in_names_are_replaced)
{
    static const struct sl_function f[] = {{.address = 0x10, .size = 4, .name = NAME("a\nFUNC 0 ffff 0 b\r")},
                                           {.address = 0x20, .size = 4, .name = NAME(" \t\n ")},
                                           {.address = 0x30, .size = 4, .name = {NULL, 0}},
                                           {.address = 0x40,
                                            .size = 4,
                                            .name = NAME("x\xff\xc3\xa4\xed\xa0\x80\x7f"
                                                         "y")}};
    static const size_t all[] = {4, 0};
    assert_string_equal(written(&usual, f, all, NULL, 0), "FUNC 10 4 0 a?FUNC 0 ffff 0 b\n"
                                                          "FUNC 20 4 0 <name omitted>\n"
                                                          "FUNC 30 4 0 <name omitted>\n"
                                                          "FUNC 40 4 0 x\xEF\xBF\xBD\xc3\xa4"
                                                          "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD?y\n");
}

/* Addresses at the end of the address space, inlined calls outside of their function, children before their parents. */
TEST(impossible_ranges_are_clipped)
{
    static const struct sl_line wild[] = {{0, UINT64_MAX, 0, 1}, {UINT64_MAX - 3, 100, 9, 2}};
    static const struct sl_function child = {
        .address = 0, .size = UINT64_MAX, .name = NAME("child"), .lines = wild, .line_count = 2};
    static const struct sl_function f[] = {
        {.address = UINT64_MAX - 8, .size = 100, .name = NAME("over"), .lines = wild, .line_count = 2},
        {.address = 0x1000,
         .size = 0x10,
         .name = NAME("f"),
         .lines = wild,
         .line_count = 2,
         .inlinees = &child,
         .inlinee_count = 1}};
    static const size_t all[] = {2, 0};
    const char *text = written(&usual, f, all, NULL, 0);
    assert_null(strstr(text, "over"));
    assert_non_null(strstr(text, "FUNC 1000 10 0 f\nINLINE 0 1 0 0 1000 10\n1000 10 1 0\n"));
}

/* As many functions and names at one address as there are, in reasonable time. */
TEST(many_functions_at_one_address_are_written_quickly)
{
    enum { COUNT = 20000 };
    static struct sl_function f[COUNT];
    static struct sl_symbol symbols[COUNT];
    static char names[COUNT][16];
    static const size_t all[] = {COUNT, 0};
    for (size_t i = 0; i < COUNT; i++) {
        int length = snprintf(names[i], sizeof names[i], "n%zu", i);
        f[i] = (struct sl_function){.address = 0x1000, .size = i + 1, .name = {names[0], 2}};
        symbols[i] = (struct sl_symbol){0x1000, 0, {names[i], (size_t)length}};
    }
    assert_non_null(strstr(written(&usual, f, all, symbols, COUNT), "FUNC m 1000 1 0 n0\n"));
}

TEST(closed_output_cancels_the_writer)
{
    struct text text = {.limit = 10};
    struct sl_breakpad_output output = {take, &text};
    struct sl_error error;
    struct sl_breakpad_writer *w = sl_breakpad_writer_new(&usual);
    feed(w, &outer, one);
    assert_int_equal(sl_breakpad_writer_finish(w, &output, &error), SL_CANCELLED);
    sl_breakpad_writer_free(w);
    sl_buf_free(&text.out);
}

/* A reader that fails may drop what was prepared. */
TEST(unconsumed_batch_can_be_dropped)
{
    struct sl_breakpad_writer *w = sl_breakpad_writer_new(&usual);
    struct sl_function_sink *sink = sl_breakpad_writer_sink(w);
    struct sl_arena arena = {0};
    struct sl_function_batch batch = {.files = sources, .file_count = 2, .functions = &outer, .function_count = 1};
    sink->prepare(sink, &batch, &arena, 0);
    sl_arena_free(&arena);
    sl_breakpad_writer_free(w);
}
