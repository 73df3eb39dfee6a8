/* Functions as the assembler makes them, which are written in one pass, against the same functions in a form that is not;
 * flat records against assembled ones; functions that are encoded as they come against functions that are kept; and text that
 * lasts from batch to batch against text that does not. */
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

static struct sl_flat_inlinee random_inlinee(uint64_t address, uint64_t size, uint32_t depth)
{
    uint32_t name = below(5);
    return (struct sl_flat_inlinee){
        .address = address,
        .size = size,
        .name = names[name],
        .number = name + 1,
        .depth = depth,
        .call_file = below(4),
        .call_line = below(3),
    };
}

/* Calls that lie within each other, as compilers write them; their order is that of addresses, or not. */
static size_t nest(struct sl_flat_inlinee *calls, size_t count, uint64_t begin, uint64_t end, uint32_t depth)
{
    while (count < INLINEES && begin < end && below(4)) {
        uint64_t start = begin + below((uint32_t)(end - begin)), size = 1 + below((uint32_t)(end - start));
        calls[count] = random_inlinee(start, size, depth);
        count = nest(calls, count + 1, start, start + size, depth + 1);
        begin = start + size;
    }
    if (count > 1 && !below(4)) {
        struct sl_flat_inlinee swap = calls[count - 1];
        calls[count - 1] = calls[0];
        calls[0] = swap;
    }
    return count;
}

struct records {
    struct sl_function function; /* with its own lines */
    struct sl_flat flat;
};

static struct records random_records(struct sl_arena *arena, uint64_t address)
{
    struct sl_flat_inlinee *inlinees = SL_ARENA_ARRAY(arena, struct sl_flat_inlinee, INLINEES);
    struct sl_line *lines = SL_ARENA_ARRAY(arena, struct sl_line, LINES);
    struct sl_function function = {.address = address, .size = SIZE, .name = names[below(5)], .lines = lines};
    size_t inlinee_count = 0;
    if (below(2))
        inlinee_count = nest(inlinees, 0, address, address + SIZE, 0);
    else
        for (inlinee_count = 0; inlinee_count + 1 < INLINEES && below(8); inlinee_count++)
            inlinees[inlinee_count] = random_inlinee(address + below(SIZE), below(60), below(3));
    for (uint64_t at = address + below(3) * 4; at < address + SIZE && function.line_count < LINES;) {
        uint32_t size = below(12);
        lines[function.line_count++] = (struct sl_line){at, size, below(4), below(5)};
        at += (size ? size : 1) + (below(4) ? 0 : below(6));
    }
    return (struct records){function, {inlinees, inlinee_count}};
}

static struct sl_function assembled(struct sl_arena *arena, const struct records *records)
{
    struct sl_assembler assembler = {0};
    struct sl_function f = records->function;
    assert_true(
        sl_assemble(&assembler, arena, &f, records->flat.inlinees, records->flat.inlinee_count, f.lines, f.line_count));
    sl_assembler_free(&assembler);
    return f;
}

static struct sl_function random_function(struct sl_arena *arena, uint64_t address)
{
    struct records records = random_records(arena, address);
    return assembled(arena, &records);
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

TEST(one_pass_gives_the_ranges_of_many)
{
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

TEST(borrowed_text_gives_the_same_bytes)
{
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

/* With `flat`, the functions' inlined calls are those of the records. */
static enum sl_code write_records(const struct records *records, bool flat, bool in_order,
                                  const struct sl_symbol *symbols, size_t symbol_count, struct sl_buf *out)
{
    struct sl_symcache_options options = {.arch = SL_ARCH_X86_64};
    struct sl_symcache_writer *w = sl_symcache_writer_new(&options, NULL);
    struct sl_function_sink *sink = sl_symcache_writer_sink(w);
    struct sl_arena arena = {0};
    enum sl_code code = SL_OK;
    assert_true(sink->accepts_flat);
    if (in_order) {
        sl_symcache_writer_symbols(w, symbols, symbol_count);
        assert_true(sl_symcache_writer_in_order(w));
    }
    for (size_t i = 0; i < BATCHES && code == SL_OK; i++) {
        struct sl_function function = flat ? records[i].function : assembled(&arena, &records[i]);
        struct sl_function_batch batch = {
            .files = sources, .file_count = 3, .functions = &function, .function_count = 1};
        batch.flats = flat ? &records[i].flat : NULL;
        batch.lasting = true;
        sink->prepare(sink, &batch, &arena, 0);
        code = sink->consume(sink, &batch, NULL);
    }
    if (!in_order)
        sl_symcache_writer_symbols(w, symbols, symbol_count);
    if (code == SL_OK)
        assert_int_equal(sl_symcache_writer_finish(w, out, NULL), SL_OK);
    else
        assert_int_equal(code, SL_UNSUPPORTED);
    sl_arena_free(&arena);
    sl_symcache_writer_free(w);
    return code;
}

static void same_bytes(struct sl_buf *a, struct sl_buf *b)
{
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->data, b->data, a->size);
    sl_buf_free(a);
    sl_buf_free(b);
}

TEST(flat_records_give_the_same_bytes)
{
    for (int round = 0; round < 10 * ROUNDS; round++) {
        struct sl_arena arena = {0};
        struct records records[BATCHES];
        struct sl_buf flat = {0}, tree = {0};
        for (uint64_t i = 0; i < BATCHES; i++)
            records[i] = random_records(&arena, BASE + i * SIZE);
        assert_int_equal(write_records(records, true, false, NULL, 0, &flat), SL_OK);
        assert_int_equal(write_records(records, false, false, NULL, 0, &tree), SL_OK);
        same_bytes(&flat, &tree);
        sl_arena_free(&arena);
    }
}

TEST(functions_in_order_give_the_same_bytes)
{
    int in_order = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct sl_arena arena = {0};
        struct records records[BATCHES];
        struct sl_symbol symbols[4];
        struct sl_buf kept = {0}, flowing = {0};
        uint64_t gap = below(2) ? GAP : 0;
        for (uint64_t i = 0; i < BATCHES; i++)
            records[i] = random_records(&arena, BASE + i * (SIZE + gap));
        for (size_t i = 0; i < 4; i++)
            symbols[i] = (struct sl_symbol){.address = BASE - 20 + below(BATCHES * (SIZE + GAP)),
                                            .size = below(2) * below(300),
                                            .name = names[below(5)]};
        size_t count = below(5);
        assert_int_equal(write_records(records, true, false, symbols, count, &kept), SL_OK);
        if (write_records(records, true, true, symbols, count, &flowing) == SL_OK) {
            same_bytes(&kept, &flowing);
            in_order++;
        } else { /* a call goes beyond the end of its function, over the next */
            sl_buf_free(&kept);
        }
        sl_arena_free(&arena);
    }
    assert_true(in_order > ROUNDS / 2);
}

TEST(functions_out_of_order_are_refused)
{
    const uint64_t addresses[][BATCHES] = {
        {BASE + SIZE, BASE, BASE + 2 * SIZE}, {BASE, BASE + SIZE - 1, BASE + 3 * SIZE}, {BASE, BASE + SIZE, BASE}};
    for (size_t i = 0; i < 3; i++) {
        struct sl_arena arena = {0};
        struct records records[BATCHES];
        struct sl_buf out = {0};
        for (size_t j = 0; j < BATCHES; j++)
            records[j] = random_records(&arena, addresses[i][j]);
        assert_int_equal(write_records(records, true, true, NULL, 0, &out), SL_UNSUPPORTED);
        assert_int_equal(out.size, 0);
        sl_arena_free(&arena);
    }
}
