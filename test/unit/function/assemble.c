/* From flat inlinees and lines to the tree: call lines, cuts, orphans, hostile nesting. */
#include "../check.h"

#include "function/assemble.h"

static struct sl_arena arena;
static struct sl_assembler assembler;

static struct sl_function assemble(uint64_t address, uint64_t size, const struct sl_flat_inlinee *inlinees, size_t n,
                                   const struct sl_line *lines, size_t m)
{
    struct sl_function f = {.address = address, .size = size};
    assert_true(sl_assemble(&assembler, &arena, &f, inlinees, n, lines, m));
    return f;
}

static void expect_line(const struct sl_function *f, uint32_t i, uint64_t address, uint64_t size, uint32_t file,
                        uint32_t line)
{
    assert_true(i < f->line_count);
    assert_int_equal(f->lines[i].address, address);
    assert_int_equal(f->lines[i].size, size);
    assert_int_equal(f->lines[i].file, file);
    assert_int_equal(f->lines[i].line, line);
}

/* The standard example: child1 > child2 at 0x20, another child2 at 0x30 called from line 2. */
TEST(parents_get_the_lines_of_their_calls)
{
    enum { PARENT_C, CHILD1_C, CHILD2_C };
    static const struct sl_flat_inlinee inlinees[] = {
        {.address = 0x20, .size = 0x10, .depth = 0, .call_file = PARENT_C, .call_line = 1},
        {.address = 0x20, .size = 0x10, .depth = 1, .call_file = CHILD1_C, .call_line = 1},
        {.address = 0x30, .size = 0x10, .depth = 0, .call_file = PARENT_C, .call_line = 2},
    };
    static const struct sl_line lines[] = {
        {0x10, 0x10, PARENT_C, 1}, {0x20, 0x20, CHILD2_C, 1}, {0x40, 0x10, PARENT_C, 1}};
    struct sl_function f = assemble(0x10, 0x40, inlinees, 3, lines, 3);
    assert_int_equal(f.line_count, 4);
    expect_line(&f, 0, 0x10, 0x10, PARENT_C, 1);
    expect_line(&f, 1, 0x20, 0x10, PARENT_C, 1);
    expect_line(&f, 2, 0x30, 0x10, PARENT_C, 2);
    expect_line(&f, 3, 0x40, 0x10, PARENT_C, 1);
    assert_int_equal(f.inlinee_count, 2);
    assert_int_equal(f.inlinees[0].inlinee_count, 1);
    expect_line(&f.inlinees[0], 0, 0x20, 0x10, CHILD1_C, 1);
    expect_line(&f.inlinees[0].inlinees[0], 0, 0x20, 0x10, CHILD2_C, 1);
    expect_line(&f.inlinees[1], 0, 0x30, 0x10, CHILD2_C, 1);
}

TEST(inlined_calls_behind_the_function_are_dropped)
{
    static const struct sl_flat_inlinee inlinees[] = {
        {.address = 0x10, .size = 0x8, .depth = 0, .call_line = 1},
        {.address = 0x30, .size = 0x8, .depth = 0, .call_line = 2}, /* behind the end */
        {.address = 0x32, .size = 0x2, .depth = 1, .call_line = 3},
    };
    static const struct sl_line lines[] = {{0x10, 0x8, 0, 7}, {0x18, 0x8, 0, 8}, {0x30, 0x8, 0, 9}};
    struct sl_function f = assemble(0x10, 0x10, inlinees, 3, lines, 3);
    assert_int_equal(f.inlinee_count, 1);
    assert_int_equal(f.inlinees[0].inlinee_count, 0);
    assert_int_equal(f.line_count, 2);
    expect_line(&f, 0, 0x10, 0x8, 0, 1);
    expect_line(&f, 1, 0x18, 0x8, 0, 8);
    expect_line(&f.inlinees[0], 0, 0x10, 0x8, 0, 7);
}

TEST(overlapping_siblings_are_clipped)
{
    static const struct sl_flat_inlinee inlinees[] = {
        {.address = 0x10, .size = 0x20, .depth = 0},
        {.address = 0x20, .size = 0x20, .depth = 0}, /* begins inside the first */
        {.address = 0x18, .size = 0x08, .depth = 0}, /* inside the first: dropped */
        {.address = 0x60, .size = 0x08, .depth = 3}, /* orphan: dropped */
        {.address = 0x08, .size = 0x08, .depth = 0}, /* before the function: dropped */
    };
    struct sl_function f = assemble(0x10, 0x100, inlinees, 5, NULL, 0);
    assert_int_equal(f.inlinee_count, 2);
    assert_int_equal(f.inlinees[0].address, 0x10);
    assert_int_equal(f.inlinees[0].size, 0x20);
    assert_int_equal(f.inlinees[1].address, 0x30);
    assert_int_equal(f.inlinees[1].size, 0x10);
}

TEST(last_of_siblings_cut_at_one_place_comes_next)
{
    static const struct sl_flat_inlinee inlinees[] = {
        {.address = 0x10, .size = 0x10}, {.address = 0x10, .size = 0x28},
        {.address = 0x10, .size = 0x20}, {.address = 0x20, .size = 0x30}, /* begins where they are put back */
        {.address = 0x38, .size = 0x20},
    };
    struct sl_function f = assemble(0x10, 0x100, inlinees, 5, NULL, 0);
    assert_int_equal(f.inlinee_count,
                     4); /* the third at 0x20, the fourth at 0x30, where nothing of the second is left then */
    static const uint64_t starts[] = {0x10, 0x20, 0x30, 0x50}, sizes[] = {0x10, 0x10, 0x20, 0x8};
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(f.inlinees[i].address, starts[i]);
        assert_int_equal(f.inlinees[i].size, sizes[i]);
    }
}

TEST(children_are_clipped_to_their_parent)
{
    static const struct sl_flat_inlinee inlinees[] = {
        {.address = 0x10, .size = 0x10, .depth = 0},
        {.address = 0x18, .size = 0x10, .depth = 1}, /* leaves its parent at 0x20, where it has none */
    };
    struct sl_function f = assemble(0x10, 0x40, inlinees, 2, NULL, 0);
    assert_int_equal(f.inlinee_count, 1);
    assert_int_equal(f.inlinees[0].inlinee_count, 1);
    assert_int_equal(f.inlinees[0].inlinees[0].size, 0x8);
}

TEST(lines_outside_the_function_are_dropped)
{
    static const struct sl_line lines[] = {{0x08, 0x10, 0, 1}, {0x20, 0x10, 0, 2}, {0x60, 0x10, 0, 3}};
    struct sl_function f = assemble(0x10, 0x40, NULL, 0, lines, 3);
    assert_int_equal(f.line_count, 1);
    expect_line(&f, 0, 0x20, 0x10, 0, 2);
}

TEST(hostile_lists_end_quickly)
{
    enum { COUNT = 3000 };
    static struct sl_flat_inlinee inlinees[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        inlinees[i] = (struct sl_flat_inlinee){.address = i * 7 % 97, .size = UINT64_MAX - i, .depth = i % 700};
    struct sl_function f = assemble(0, UINT64_MAX, inlinees, COUNT, NULL, 0);
    assert_true(f.inlinee_count <= COUNT);
}

static int teardown(void **state)
{
    sl_arena_free(&arena);
    sl_assembler_free(&assembler);
    return 0;
}

TEST_FILE(.end = teardown);
