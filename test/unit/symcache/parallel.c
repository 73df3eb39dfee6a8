/* The same functions and symbols, written by one and by several threads: the same bytes, and the map that the rules of
 * writing at addresses give. */
#include "../parallel.h"

#include "symcache/symcache.h"

enum { UNITS = 120, FUNCTIONS = 60, STEP = 0x40, LINES = 6 };

/* Functions of LINES lines one behind the other; in every third an inlined call in two parts covers lines 2 and 4; every
 * seventh reaches into the next one. */
struct unit {
    struct sl_function functions[FUNCTIONS], inlinees[FUNCTIONS][2];
    struct sl_line lines[FUNCTIONS][LINES], inner[FUNCTIONS][2];
    char names[FUNCTIONS][32];
};

static const struct sl_file files[] = {{.comp_dir = {"/src", 4}, .name = {"a.c", 3}},
                                       {.comp_dir = {"/src", 4}, .name = {"b.h", 3}},
                                       {.comp_dir = {"/src", 4}, .name = {"./a.c", 5}}};

static struct unit units[UNITS];
static struct sl_symbol symbols[UNITS * FUNCTIONS];

static bool is_long(size_t i)
{
    return i % 7 == 6;
}

static void make_units(uint64_t base)
{
    for (size_t u = 0; u < UNITS; u++) {
        struct unit *unit = &units[u];
        *unit = (struct unit){0};
        for (size_t i = 0; i < FUNCTIONS; i++) {
            struct sl_function *f = &unit->functions[i];
            int n = snprintf(unit->names[i], sizeof unit->names[i], "function_with_a_long_name_%zu", u * FUNCTIONS + i);
            uint64_t address = base + (u * FUNCTIONS + i) * STEP;
            for (size_t l = 0; l < LINES; l++)
                unit->lines[i][l] = (struct sl_line){address + 8 * l, 8, l % 2 ? 2 : 0, (uint32_t)(10 * i + l)};
            *f = (struct sl_function){.address = address,
                                      .size = is_long(i) ? STEP + 12 : 8 * LINES,
                                      .name = {unit->names[i], (size_t)n},
                                      .lines = unit->lines[i],
                                      .line_count = LINES};
            for (size_t part = 0; i % 3 == 0 && part < 2; part++) {
                uint64_t at = address + 16 + 16 * part;
                unit->inner[i][part] = (struct sl_line){at, 8, 1, (uint32_t)(500 + part)};
                unit->inlinees[i][part] = (struct sl_function){
                    .address = at, .size = 8, .name = SL_STR("inner"), .lines = &unit->inner[i][part], .line_count = 1};
                f->inlinees = unit->inlinees[i];
                f->inlinee_count = 2;
            }
            symbols[u * FUNCTIONS + i] = (struct sl_symbol){address, 0, f->name};
        }
    }
}

struct preparing {
    struct sl_function_sink *sink;
    struct sl_function_batch batches[UNITS];
    struct sl_arena arenas[UNITS];
};

static void prepare(void *arg, size_t i, unsigned worker)
{
    struct preparing *p = arg;
    p->batches[i] = (struct sl_function_batch){
        .files = files, .file_count = 3, .functions = units[i].functions, .function_count = FUNCTIONS};
    p->sink->prepare(p->sink, &p->batches[i], &p->arenas[i], worker);
}

static void write_all(const struct sl_parallel *parallel, struct sl_buf *out)
{
    struct sl_symcache_options options = {.arch = SL_ARCH_X86_64};
    struct sl_symcache_writer *w = sl_symcache_writer_new(&options, parallel);
    struct preparing p = {.sink = sl_symcache_writer_sink(w)};
    sl_parallel_run(parallel, UNITS, prepare, &p);
    for (size_t i = 0; i < UNITS; i++) {
        assert_int_equal(p.sink->consume(p.sink, &p.batches[i], NULL), SL_OK);
        sl_arena_free(&p.arenas[i]);
    }
    sl_symcache_writer_symbols(w, symbols, UNITS * FUNCTIONS);
    assert_int_equal(sl_symcache_writer_finish(w, out, NULL), SL_OK);
    sl_symcache_writer_free(w);
}

static void expect_text(const struct sl_symcache *cache, const struct sl_location *l, const char *name, uint32_t line,
                        const char *path)
{
    struct sl_symcache_function f;
    struct sl_buf text = {0};
    assert_true(sl_symcache_function(cache, l->function, &f));
    sl_symcache_string(cache, f.name, &text);
    sl_buf_u8(&text, ' ');
    sl_symcache_file(cache, l->file, &text);
    char expected[64];
    int n = snprintf(expected, sizeof expected, "%s %s", name, path);
    assert_true(sl_str_equal(sl_buf_view(&text), (struct sl_str){expected, (size_t)n}));
    assert_int_equal(l->line, line);
    sl_buf_free(&text);
}

static void check_function(const struct sl_symcache *cache, size_t u, size_t i)
{
    uint64_t address = units[u].functions[i].address;
    struct sl_location chain[4];
    for (size_t l = 0; l < LINES; l++) {
        bool inlined = i % 3 == 0 && (l == 2 || l == 4);
        size_t count = sl_symcache_lookup(cache, address + 8 * l + 3, chain, 4);
        assert_int_equal(count, inlined ? 2 : 1);
        if (inlined)
            expect_text(cache, &chain[0], "inner", (uint32_t)(500 + (l == 4)), "/src/b.h");
        expect_text(cache, &chain[inlined], units[u].names[i], (uint32_t)(10 * i + l), "/src/a.c");
    }
    /* Behind the last line a function's own last entry holds; a hole comes where it ends. */
    size_t behind = sl_symcache_lookup(cache, address + 8 * LINES + 1, chain, 4);
    assert_int_equal(behind, is_long(i) ? 1 : 0);
}

static void check_all(uint64_t base)
{
    struct sl_parallel parallel = parallel_of(PARALLEL_MAX);
    struct sl_buf one = {0}, several = {0};
    struct sl_symcache cache;
    make_units(base);
    write_all(NULL, &one);
    for (int round = 0; round < 3; round++) {
        sl_buf_clear(&several);
        write_all(&parallel, &several);
        assert_true(sl_str_equal(sl_buf_view(&one), sl_buf_view(&several)));
    }
    assert_int_equal(sl_symcache_open(sl_buf_bytes(&one), &cache, NULL), SL_OK);
    assert_int_equal(sl_symcache_verify(&cache, NULL), SL_OK);
    for (size_t u = 0; u < UNITS; u++)
        for (size_t i = 0; i < FUNCTIONS; i++)
            check_function(&cache, u, i);
    sl_buf_free(&one);
    sl_buf_free(&several);
}

TEST(cache_file_is_the_same_for_any_number_of_threads)
{
    check_all(0x1000);
}

TEST(addresses_beyond_32_bits_give_the_same_file_for_any_threads)
{
    check_all(UINT64_C(0x7fff0000) + 0x7fff0000);
}

/* One function whose lines lie further apart than 32 bits. */
TEST(functions_larger_than_32_bits_are_stored)
{
    uint64_t far = UINT64_C(0x300000000);
    struct sl_line lines[] = {{0x1000, 0x10, 0, 1}, {far, 0x10, 0, 2}, {2 * far, 0x10, 0, 3}};
    struct sl_function f = {.address = 0x1000, .size = 3 * far, .name = SL_STR("f"), .lines = lines, .line_count = 3};
    struct sl_function_batch batch = {.files = files, .file_count = 1, .functions = &f, .function_count = 1};
    struct sl_symcache_options options = {0};
    struct sl_symcache_writer *w = sl_symcache_writer_new(&options, NULL);
    struct sl_function_sink *sink = sl_symcache_writer_sink(w);
    struct sl_arena arena = {0};
    struct sl_buf out = {0};
    struct sl_symcache cache;
    struct sl_location chain[1];
    sink->prepare(sink, &batch, &arena, 0);
    assert_int_equal(sink->consume(sink, &batch, NULL), SL_OK);
    assert_int_equal(sl_symcache_writer_finish(w, &out, NULL), SL_OK);
    assert_int_equal(sl_symcache_open(sl_buf_bytes(&out), &cache, NULL), SL_OK);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(sl_symcache_lookup(&cache, lines[i].address + 5, chain, 1), 1);
        assert_int_equal(chain[0].line, i + 1);
    }
    assert_int_equal(sl_symcache_lookup(&cache, 0x1000 + 3 * far, chain, 1), 0);
    sl_symcache_writer_free(w);
    sl_arena_free(&arena);
    sl_buf_free(&out);
}
