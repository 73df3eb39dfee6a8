/* The file: equal for equal input, within its limits, harmless when it is damaged. */
#include "mapper.h"

static const char mapping[] =
    "# compiler: R8\nx.A -> a:\n# {\"id\":\"sourceFile\",\"fileName\":\"A.kt\"}\n    1:3:void y.B.f(int):5:7 -> m\n"
    "    1:3:void g():9 -> m\n    # {\"id\":\"com.android.tools.r8.outlineCallsite\",\"positions\":{\"1\":4,\"2\":5}}\n"
    "    # {\"id\":\"com.android.tools.r8.rewriteFrame\",\"conditions\":[\"throws(LE;)\"],\"actions\":"
    "[\"removeInnerFrames(1)\"]}\n    void h() -> n\nx.C -> c:\n    1:1:void o():1:1 -> o\n"
    "    # {\"id\":\"com.android.tools.r8.outline\"}\n";

TEST(equal_input_gives_equal_bytes)
{
    struct made a, b;
    make_mapper(mapping, &a);
    make_mapper(mapping, &b);
    assert_int_equal(a.file.size, b.file.size);
    assert_memory_equal(a.file.data, b.file.data, a.file.size);
    sl_buf_free(&a.file);
    sl_buf_free(&b.file);
}

static void ask_everything(const struct sl_jvm_mapper *mapper)
{
    static const char *const frames[] = {"a.m:2", "a.m:-", "a.n:0", "c.o:1", "b.m:2", "a.x:7"};
    const struct sl_jvm_mappers mappers = {&mapper, 1, false};
    struct sl_arena arena = {0};
    struct sl_jvm_frames out = {.arena = &arena, .limit = 10000};
    struct sl_jvm_stack stack;
    struct sl_str class;
    volatile unsigned sum = 0;
    assert_true(sl_jvm_stack_begin(&stack, &mappers, SL_STR("E"), &arena));
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        struct sl_jvm_query query = query_of(frames[i]);
        sl_jvm_stack_frame(&stack, &query, &out);
        query.by = SL_JVM_BY_PARAMETERS;
        query.parameters = SL_STR("int");
        query.descriptor = SL_STR("(I)V");
        sl_jvm_stack_frame(&stack, &query, &out);
        sl_jvm_mapper_class(mapper, query.class, &class);
    }
    for (size_t i = 0; i < out.count; i++)
        for (size_t j = 0; j < out.items[i].method.size; j++)
            sum += (unsigned char)out.items[i].method.data[j]; /* all of it is there */
    sl_arena_free(&arena);
}

TEST(damaged_tables_stay_within_bounds)
{
    struct made made;
    make_mapper(mapping, &made);
    for (size_t size = 0; size < made.file.size; size++) {
        struct sl_jvm_mapper mapper;
        uint8_t *copy = malloc(size + !size); /* of its own, so that reading past the end is noticed */
        memcpy(copy, made.file.data, size);
        if (sl_jvm_mapper_open((struct sl_bytes){copy, size}, &mapper, NULL) == SL_OK)
            ask_everything(&mapper);
        free(copy);
    }
    uint8_t *copy = malloc(made.file.size);
    for (size_t bit = 0; bit < made.file.size * 8; bit++) {
        struct sl_jvm_mapper mapper;
        memcpy(copy, made.file.data, made.file.size);
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (sl_jvm_mapper_open((struct sl_bytes){copy, made.file.size}, &mapper, NULL) == SL_OK)
            ask_everything(&mapper);
    }
    free(copy);
    sl_buf_free(&made.file);
}

TEST(input_that_is_no_mapping_is_malformed)
{
    struct sl_buf out = {0};
    struct sl_error error = {0};
    assert_int_equal(sl_jvm_mapper_build(SL_STR("not a mapping"), NULL, &out, &error), SL_MALFORMED);
    assert_string_equal(error.message, "The file is not a valid ProGuard file");
    assert_int_equal(out.size, 0);
}

TEST(building_keeps_to_its_budget)
{
    struct sl_buf out = {0};
    struct sl_budget budget;
    struct sl_error error = {0};
    struct sl_str text = sl_str(mapping);
    sl_budget_init(&budget, text.size);
    sl_budget_limit(&budget, 1 << 20, NULL, NULL);
    assert_int_equal(sl_jvm_mapper_build(text, &budget, &out, &error), SL_OK);
    assert_true(budget.memory == 1 << 20);
    sl_buf_free(&out);
    for (unsigned limit = 64; limit <= 4096; limit *= 2) {
        sl_budget_init(&budget, text.size);
        sl_budget_limit(&budget, limit, NULL, NULL);
        enum sl_code code = sl_jvm_mapper_build(text, &budget, &out, &error);
        assert_true(code == SL_UNSUPPORTED || code == SL_OK);
        assert_true(budget.memory == limit);
        sl_buf_free(&out);
    }
}
