/* Functions as the assembler makes them, which are written in one pass, against the same functions in a form that is not;
 * and text that lasts from batch to batch against text that does not. */
#include "../check.h"

#include "function/assemble.h"
#include "symcache/symcache.h"

enum { ROUNDS = 300, BATCHES = 3, BASE = 0x1000, SIZE = 200, GAP = 8, INLINEES = 12, LINES = 40 };

static const struct sl_file sources[] = {
    {.comp_dir = {"/src", 4}, .name = {"a.rs", 4}, .number = 1},
    {.comp_dir = {"/src", 4}, .name = {"b.rs", 4}, .number = 2},
    {.comp_dir = {"/src", 4}, .name = {"a.rs", 4}, .number = 3},
};
static const struct sl_str names[] = {{"one", 3}, {"two", 3}, {"three", 5}, {"one", 3}, {NULL, 0}};

static uint32_t state_of_random = 1;

static uint32_t below(uint32_t limit)
{
    state_of_random = state_of_random * 1664525 + 1013904223;
    return (state_of_random >> 8) % limit;
}

static struct sl_function random_function(struct sl_arena *arena, uint64_t address)
{
    struct sl_assembler assembler = {0};
    struct sl_flat_inlinee inlinees[INLINEES];
    struct sl_line lines[LINES];
    struct sl_function function = {.address = address, .size = SIZE, .name = names[below(5)]};
    size_t inlinee_count = below(INLINEES), line_count = 0;
    for (size_t i = 0; i < inlinee_count; i++) {
        uint32_t name = below(5);
        inlinees[i] = (struct sl_flat_inlinee){
            .address = address + below(SIZE),
            .size = below(60),
            .name = names[name],
            .number = name + 1,
            .depth = below(3),
            .call_file = below(4),
            .call_line = below(3),
        };
    }
    for (uint64_t at = address + below(3) * 4; at < address + SIZE && line_count < LINES; line_count++) {
        uint32_t size = below(12);
        lines[line_count] = (struct sl_line){at, size, below(4), below(5)};
        at += (size ? size : 1) + (below(4) ? 0 : below(6));
    }
    assert_true(sl_assemble(&assembler, arena, &function, inlinees, inlinee_count, lines, line_count));
    sl_assembler_free(&assembler);
    return function;
}

/* The same function with a line before its begin, which takes it from the rule. */
static struct sl_function with_line_before(struct sl_arena *arena, struct sl_function f)
{
    struct sl_line *lines = SL_ARENA_ARRAY(arena, struct sl_line, (size_t)f.line_count + 1);
    lines[0] = (struct sl_line){f.address - 1, 1, 0, 1};
    for (uint32_t i = 0; i < f.line_count; i++)
        lines[i + 1] = f.lines[i];
    f.lines = lines;
    f.line_count++;
    return f;
}

static void write_batches(const struct sl_function functions[BATCHES], bool lasting, struct sl_buf *out)
{
    struct sl_symcache_options options = {.arch = SL_ARCH_X86_64};
    struct sl_symcache_writer *w = sl_symcache_writer_new(&options, NULL);
    struct sl_function_sink *sink = sl_symcache_writer_sink(w);
    struct sl_arena arena = {0};
    for (size_t i = 0; i < BATCHES; i++) {
        /* The last one does not last, like the end of a file that was copied. */
        struct sl_function_batch batch = {
            .files = sources, .file_count = 3, .functions = &functions[i], .function_count = 1};
        batch.lasting = lasting && i + 1 < BATCHES;
        sink->prepare(sink, &batch, &arena, 0);
        assert_int_equal(sink->consume(sink, &batch, NULL), SL_OK);
        sl_arena_reset(&arena);
    }
    sl_arena_free(&arena);
    assert_int_equal(sl_symcache_writer_finish(w, out, NULL), SL_OK);
    sl_symcache_writer_free(w);
}

static void describe(const struct sl_symcache *cache, uint64_t address, struct sl_buf *out)
{
    struct sl_location chain[16];
    size_t count = sl_symcache_lookup(cache, address, chain, 16);
    assert_true(count <= 16);
    for (size_t i = 0; i < count; i++) {
        struct sl_symcache_function f;
        assert_true(sl_symcache_function(cache, chain[i].function, &f));
        sl_symcache_string(cache, f.name, out);
        sl_buf_printf(out, ":%u %d ", chain[i].line, f.entry == UINT64_MAX);
        if (chain[i].file != SL_SYMCACHE_NONE)
            sl_symcache_file(cache, chain[i].file, out);
    }
}

static void same_answers(const struct sl_buf *left, const struct sl_buf *right)
{
    struct sl_symcache a, b;
    struct sl_buf x = {0}, y = {0};
    assert_int_equal(sl_symcache_open(sl_buf_bytes(left), &a, NULL), SL_OK);
    assert_int_equal(sl_symcache_open(sl_buf_bytes(right), &b, NULL), SL_OK);
    assert_int_equal(sl_symcache_verify(&a, NULL), SL_OK);
    for (uint64_t at = BASE; at < BASE + BATCHES * (SIZE + GAP); at++) {
        if ((at - BASE) % (SIZE + GAP) == SIZE + GAP - 1) /* the line before a function */
            continue;
        sl_buf_clear(&x);
        sl_buf_clear(&y);
        describe(&a, at, &x);
        describe(&b, at, &y);
        assert_true(sl_str_equal(sl_buf_view(&x), sl_buf_view(&y)));
    }
    sl_buf_free(&x);
    sl_buf_free(&y);
}

static void one_pass_says_what_many_say(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct sl_arena arena = {0};
        struct sl_function plain[BATCHES], other[BATCHES];
        struct sl_buf one = {0}, many = {0};
        for (uint64_t i = 0; i < BATCHES; i++) {
            plain[i] = random_function(&arena, BASE + i * (SIZE + GAP));
            other[i] = with_line_before(&arena, plain[i]);
        }
        write_batches(plain, false, &one);
        write_batches(other, false, &many);
        same_answers(&one, &many);
        sl_buf_free(&one);
        sl_buf_free(&many);
        sl_arena_free(&arena);
    }
}

static void lasting_text_gives_the_same_bytes(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct sl_arena arena = {0};
        struct sl_function functions[BATCHES];
        struct sl_buf copied = {0}, lasting = {0};
        for (uint64_t i = 0; i < BATCHES; i++)
            functions[i] = random_function(&arena, BASE + i * SIZE);
        write_batches(functions, false, &copied);
        write_batches(functions, true, &lasting);
        assert_int_equal(copied.size, lasting.size);
        assert_memory_equal(copied.data, lasting.data, copied.size);
        sl_buf_free(&copied);
        sl_buf_free(&lasting);
        sl_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_pass_says_what_many_say),
        cmocka_unit_test(lasting_text_gives_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
