/* What a file answers, its Breakpad form answers as well. The functions are made at random. */
#include "../object/debug_file.h"

#include "breakpad/breakpad.h"

static const struct sl_file sources[] = {
    {.name = SL_STR("/src/a.c")}, {.name = SL_STR("/src/b.c")}, {.name = SL_STR("/src/c.h")}};

static uint32_t seed;
static uint32_t below(uint32_t limit)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % limit;
}

static bool take(void *arg, struct sl_str piece)
{
    sl_buf_str(arg, piece);
    return true;
}

static struct sl_str name_of(struct sl_arena *arena, const char *kind, uint32_t number)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%s_%u", kind, number);
    return (struct sl_str){sl_arena_strndup(arena, text, (size_t)length), (size_t)length};
}

/* Lines cover [start, end) of `f` without a gap or with a few, call lines where an inlinee is; inlinees inside. */
static void fill(struct sl_arena *arena, struct sl_function *f, unsigned depth)
{
    uint64_t at = f->address, end = f->address + f->size;
    struct sl_line *lines = SL_ARENA_ARRAY(arena, struct sl_line, f->size + 1);
    struct sl_function *inlinees = SL_ARENA_ARRAY(arena, struct sl_function, f->size + 1);
    f->lines = lines;
    f->inlinees = inlinees;
    while (at < end) {
        uint64_t size = 1 + below((uint32_t)(end - at));
        uint32_t file = below(4), line = below(40);
        file = file == 3 ? SL_NO_FILE : file;
        if (below(8) == 0 && (!depth || at + size < end)) { /* a gap, but for the end of an inlined call */
            at += size;
            continue;
        }
        lines[f->line_count++] = (struct sl_line){at, size, file, line};
        if (depth < 4 && below(2)) {
            struct sl_function *inlinee = &inlinees[f->inlinee_count++];
            *inlinee = (struct sl_function){.address = at,
                                            .size = size,
                                            .name = name_of(arena, "inlined", below(6)),
                                            .call_file = file,
                                            .call_line = line};
            fill(arena, inlinee, depth + 1);
        }
        at += size;
    }
}

TEST(written_functions_read_back_equal)
{
    enum { FUNCTIONS = 40, ROUNDS = 30 };
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct sl_arena arena = {0}, batch_arenas[2] = {{0}, {0}};
        struct sl_function functions[FUNCTIONS] = {0};
        struct sl_error error = {0};
        struct sl_buf text = {0}, made = {0};
        uint64_t at = 0x100;
        seed = round + 1;
        for (unsigned i = 0; i < FUNCTIONS; i++, at += below(3) * 8) {
            functions[i] = (struct sl_function){.address = at, .size = 1 + below(90), .name = name_of(&arena, "f", i)};
            fill(&arena, &functions[i], 0);
            at += functions[i].size;
        }
        struct sl_breakpad_options options = {.os = SL_STR("Linux"),
                                              .arch = SL_STR("x86_64"),
                                              .name = SL_STR("x"),
                                              .id = SL_STR("000000000000000000000000000000000"),
                                              .inlines = true};
        struct sl_symcache_options cache_options = {.arch = SL_ARCH_X86_64};
        struct sl_breakpad_writer *w = sl_breakpad_writer_new(&options);
        struct sl_symcache_writer *c = sl_symcache_writer_new(&cache_options, NULL);
        struct sl_function_sink *sinks[] = {sl_breakpad_writer_sink(w), sl_symcache_writer_sink(c)};
        for (size_t i = 0; i < 2; i++) {
            struct sl_function_batch batch = {
                .files = sources, .file_count = 3, .functions = functions, .function_count = FUNCTIONS};
            sinks[i]->prepare(sinks[i], &batch, &batch_arenas[i], 0);
            assert_int_equal(sinks[i]->consume(sinks[i], &batch, &error), SL_OK);
        }
        struct sl_breakpad_output output = {take, &text};
        assert_int_equal(sl_breakpad_writer_finish(w, &output, &error), SL_OK);
        assert_int_equal(sl_symcache_writer_finish(c, &made, &error), SL_OK);
        struct sl_symcache direct;
        struct converted back;
        assert_int_equal(sl_symcache_open(sl_buf_bytes(&made), &direct, &error), SL_OK);
        struct sl_object *object = open_bytes(sl_buf_bytes(&text));
        convert(&back, object);
        for (uint64_t address = 0; address < at + 16; address++) {
            char expected[4096];
            snprintf(expected, sizeof expected, "%s", chain_at(&direct, address));
            if (strcmp(expected, chain_at(&back.cache, address)) != 0)
                fail_msg("round %u, 0x%llx: \"%s\" became \"%s\" in\n%.*s", round, (unsigned long long)address,
                         expected, chain_at(&back.cache, address), (int)text.size, text.data);
        }
        sl_object_close(object);
        sl_buf_free(&back.file);
        sl_buf_free(&made);
        sl_buf_free(&text);
        sl_breakpad_writer_free(w);
        sl_symcache_writer_free(c);
        sl_arena_free(&arena);
        sl_arena_free(&batch_arenas[0]);
        sl_arena_free(&batch_arenas[1]);
    }
}
