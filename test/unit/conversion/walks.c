/* Stacks that are walked by a converter, in rounds; and answers of one that was taken over. */
#include "../cache/support.h"
#include "stacks.h"

#include <sys/mman.h>
#include <unistd.h>

static const struct walk_options options = {.steps = 1 << 20};
static struct sl_arena arena;
static struct sl_error error;

/* Runs the converter; its answer lies in the arena. */
static struct sl_bytes run(const struct test_stacks *s, const struct thread_walk *walk, const struct walk_table *tables,
                           size_t table_count, struct walks_result *told)
{
    struct sl_buf request = {0};
    struct sl_bytes answer;
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = memfd_create("walks", 0)};
    walks_write_request(walk, 1, tables, table_count, &request);
    converter_add_bytes(&call, INPUT_WALKS, sl_buf_bytes(&request));
    converter_add_bytes(&call, INPUT_STACKS, sl_buf_bytes(&s->packed));
    converter_add_bytes(&call, INPUT_FILE, s->dump.bytes);
    assert_int_equal(converter_run_here(&converter_walk, &call, told, &error), SL_OK);
    assert_int_equal(crash_read_packed(call.out, &arena, &answer, &error), SL_OK);
    close(call.out);
    sl_buf_free(&request);
    return answer;
}

TEST(stacks_are_walked_in_rounds)
{
    struct test_stacks s;
    struct walks_result told;
    struct thread_walk walk = {.thread = 0};
    struct walk_table none = {.module = 0};
    test_stacks_make(&s);
    struct sl_bytes answer = run(&s, &walk, NULL, 0, &told);
    assert_int_equal(walks_read_answer(answer, &walk, 1, NULL, 0, 1, false, &arena, &error), SL_OK);
    assert_int_equal(walk.need, SL_WALK_NEED_CFI);
    assert_int_equal(walk.module, 0);
    assert_int_equal(walk.frame_count, 1);
    answer = run(&s, &walk, &none, 1, &told);
    assert_int_equal(walks_read_answer(answer, &walk, 1, &none, 1, 1, false, &arena, &error), SL_OK);
    assert_true(none.is_used);
    assert_int_equal(walk.need, SL_WALK_DONE);
    assert_int_equal(walk.frame_count, 2);
    assert_int_equal(walk.frames[0].resume, STACKS_PC);
    assert_int_equal(walk.frames[1].resume, STACKS_RETURN);
    assert_int_equal(walk.frames[1].trust, SL_TRUST_SCAN);
    assert_true(told.steps > 0 && told.steps < options.steps && !told.out_of_work);
    test_stacks_free(&s);
    sl_arena_free(&arena);
}

/* Whatever the bytes are, the walk is valid or the answer is refused. */
TEST(damaged_answers_about_stacks_are_refused_or_valid)
{
    struct test_stacks s;
    struct walks_result told;
    struct thread_walk walk = {.thread = 0};
    struct walk_table table = {.module = 0, .is_symbols = true};
    test_stacks_make(&s);
    struct sl_bytes answer = run(&s, &walk, &table, 1, &told);
    uint8_t *bytes = (uint8_t *)answer.data;
    for (size_t at = 0; at < answer.size; at++) {
        struct sl_arena mine = {0};
        struct thread_walk cut = {.thread = 0}, changed = {.thread = 0};
        assert_int_equal(walks_read_answer((struct sl_bytes){bytes, at}, &cut, 1, &table, 1, 1, false, &mine, &error),
                         SL_MALFORMED);
        bytes[at] ^= 0xFF;
        enum sl_code code = walks_read_answer(answer, &changed, 1, &table, 1, 1, false, &mine, &error);
        assert_true(code == SL_OK || code == SL_MALFORMED);
        if (code == SL_OK) {
            assert_true(changed.need <= SL_WALK_NEED_SYMBOLS && (!changed.need || changed.module == 0));
            assert_true(changed.frame_count == 1 && changed.frames[0].trust <= SL_TRUST_CONTEXT);
        }
        bytes[at] ^= 0xFF;
        sl_arena_free(&mine);
    }
    test_stacks_free(&s);
    sl_arena_free(&arena);
}

/* What a worker says of the work that is left may not add to it. */
TEST(results_of_walks_are_checked)
{
    struct walks_result told = {.steps = -1};
    assert_false(converter_walk.check_result(&told));
    told = (struct walks_result){.steps = 7};
    assert_true(converter_walk.check_result(&told));
    memset(&told.out_of_work, 2, 1);
    assert_false(converter_walk.check_result(&told));
}
