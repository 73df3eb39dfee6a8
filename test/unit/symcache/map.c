/* The symcache against its rules: every key, key - 1 and key + 1 of small maps, and damaged files. */
#include "chain.h"

static struct sl_buf file;

static const struct sl_file sources[] = {
    {.comp_dir = {"/src", 4}, .name = {"main.rs", 7}},
    {.comp_dir = {"/src", 4}, .directory = {"lib", 3}, .name = {"a.rs", 4}},
};

static struct sl_symcache build(const struct sl_function *functions, size_t n, const struct sl_symbol *symbols,
                                size_t m, bool windows)
{
    struct sl_symcache_options options = {.arch = SL_ARCH_X86_64, .image_size = 0x10000, .decorates = windows};
    struct sl_symcache_writer *w = sl_symcache_writer_new(&options, NULL);
    struct sl_function_sink *sink = sl_symcache_writer_sink(w);
    struct sl_function_batch batch = {.files = sources, .file_count = 2, .functions = functions, .function_count = n};
    struct sl_arena arena = {0};
    struct sl_symcache cache;
    struct sl_error error;
    sink->prepare(sink, &batch, &arena, 0);
    assert_int_equal(sink->consume(sink, &batch, &error), SL_OK);
    sl_symcache_writer_symbols(w, symbols, m);
    sl_buf_clear(&file);
    assert_int_equal(sl_symcache_writer_finish(w, &file, &error), SL_OK);
    sl_symcache_writer_free(w);
    sl_arena_free(&arena);
    assert_int_equal(sl_symcache_open(sl_buf_bytes(&file), &cache, &error), SL_OK);
    assert_int_equal(sl_symcache_verify(&cache, &error), SL_OK);
    return cache;
}

/* The chain as "inner:line@file outer:line", "" for none. */
static void expect(const struct sl_symcache *cache, uint64_t address, const char *text)
{
    struct sl_buf out = {0};
    chain_append(cache, address, &out);
    sl_buf_u8(&out, 0);
    assert_string_equal((char *)out.data, text);
    sl_buf_free(&out);
}

#define NAME(text)                                                                                                     \
    {                                                                                                                  \
        text, sizeof text - 1                                                                                          \
    }

TEST(functions_and_symbols_bound_each_other)
{
    static const struct sl_function f[] = {{.address = 0xd20, .size = 0x20, .name = NAME("f")}};
    static const struct sl_symbol below[] = {{0xd00, 0, NAME("p")}}, above[] = {{0xd80, 0, NAME("p")}};
    struct sl_symcache c = build(f, 1, below, 1, false);
    expect(&c, 0xcff, "");
    expect(&c, 0xd04, "p:0");
    expect(&c, 0xd24, "f:0");
    expect(&c, 0xd40, "");
    expect(&c, 0xd99, "");
    c = build(f, 1, above, 1, false);
    expect(&c, 0xd7f, "");
    expect(&c, 0xfffffa0, "p:0"); /* behind the last function: open-ended */
}

TEST(adjacent_functions_without_lines_are_told_apart)
{
    static const struct sl_function f[] = {{.address = 0xb2c, .size = 0x10, .name = NAME("first()")},
                                           {.address = 0xb3c, .size = 0x10, .name = NAME("second()")}};
    struct sl_symcache c = build(f, 2, NULL, 0, false);
    expect(&c, 0xb40, "second():0");
    expect(&c, 0xb3b, "first():0");
    expect(&c, 0xb4c, "");
}

TEST(inlined_calls_give_a_chain)
{
    static const struct sl_line outer_lines[] = {{0x1000, 0x30, 0, 5}};
    static const struct sl_line a_lines[] = {{0x1010, 0x10, 1, 7}};
    static const struct sl_line b_lines[] = {{0x1000, 0x10, 1, 8}, {0x1020, 0x10, 1, 9}};
    static const struct sl_function inlinees[] = {
        {.address = 0x1010, .size = 0x10, .name = NAME("a"), .lines = a_lines, .line_count = 1},
        {.address = 0x1000, .size = 0x30, .name = NAME("b"), .lines = b_lines, .line_count = 2},
    };
    static const struct sl_function f[] = {{.address = 0x1000,
                                            .size = 0x30,
                                            .name = NAME("outer"),
                                            .lines = outer_lines,
                                            .line_count = 1,
                                            .inlinees = inlinees,
                                            .inlinee_count = 2}};
    struct sl_symcache c = build(f, 1, NULL, 0, false);
    expect(&c, 0x1010, "a:7@/src/lib/a.rs outer:5@/src/main.rs");
    expect(&c, 0x100f, "b:8@/src/lib/a.rs outer:5@/src/main.rs");
    expect(&c, 0x1020, "b:9@/src/lib/a.rs outer:5@/src/main.rs");
    expect(&c, 0x1030, "");
}

/* Of overlapping functions the later one owns what it sets, and a symbol inside takes over to the next entry. */
TEST(later_overlapping_function_wins)
{
    static const struct sl_line one[] = {{0x100, 0x20, 0, 1}, {0x120, 0x20, 0, 2}};
    static const struct sl_line two[] = {{0x110, 0x20, 1, 3}};
    static const struct sl_function f[] = {
        {.address = 0x100, .size = 0x40, .name = NAME("one"), .lines = one, .line_count = 2},
        {.address = 0x110, .size = 0x20, .name = NAME("two"), .lines = two, .line_count = 1},
    };
    static const struct sl_symbol symbols[] = {
        {0x118, 0, NAME("inside")}, {0x100, 0, NAME("late")}, {0x200, 0x10, NAME("gap")}, {0x200, 0, NAME("again")}};
    struct sl_symcache c = build(f, 2, symbols, 4, false);
    expect(&c, 0x100, "one:1@/src/main.rs");
    expect(&c, 0x110, "two:3@/src/lib/a.rs");
    expect(&c, 0x118, "inside:0");
    expect(&c, 0x11f, "inside:0");
    expect(&c, 0x120, "one:2@/src/main.rs");
    expect(&c, 0x130, "");
    expect(&c, 0x200, "gap:0");
    expect(&c, 0x210, "");
}

TEST(windows_decoration_of_symbols_is_removed)
{
    static const struct sl_symbol symbols[] = {
        {0x10, 0, NAME("_malloc")},       {0x20, 0, NAME("_foo@8")},     {0x30, 0, NAME("@bar@12")},
        {0x40, 0, NAME("baz@@16")},       {0x50, 0, NAME("?x@@YAXXZ")},  {0x60, 0, NAME("_a::b")},
        {0x70, 0, NAME("_RtlUnwind@16")}, {0x80, 0, NAME("_RtlUnwind")}, {0x90, 0, NAME("_ZwClose@4")},
        {0xa0, 0, NAME("_ZwClose")},      {0xb0, 0, NAME("_RNvC1a1b")},  {0xc0, 0, NAME("__RNvC1a1b")},
        {0xd0, 0, NAME("_Z1fv")},         {0xe0, 0, NAME("__Z1fv@8")}};
    struct sl_symcache c = build(NULL, 0, symbols, 14, true);
    expect(&c, 0x10, "malloc:0");
    expect(&c, 0x20, "foo:0");
    expect(&c, 0x30, "bar:0");
    expect(&c, 0x40, "baz:0");
    expect(&c, 0x50, "?x@@YAXXZ:0");
    expect(&c, 0x60, "_a::b:0");
    expect(&c, 0x70, "RtlUnwind:0"); /* neither of Rust ... */
    expect(&c, 0x80, "RtlUnwind:0");
    expect(&c, 0x90, "ZwClose:0"); /* ... nor of C++ */
    expect(&c, 0xa0, "ZwClose:0");
    expect(&c, 0xb0, "_RNvC1a1b:0");
    expect(&c, 0xc0, "_RNvC1a1b:0");
    expect(&c, 0xd0, "_Z1fv:0");
    expect(&c, 0xe0, "_Z1fv:0");
    c = build(NULL, 0, symbols, 14, false);
    expect(&c, 0x10, "_malloc:0");
    expect(&c, 0x20, "_foo@8:0");
}

/* Debug information has names as they were written. */
TEST(function_names_keep_underscores)
{
    static const struct sl_function f[] = {{.address = 0x10, .size = 0x10, .name = NAME("__tmainCRTStartup")},
                                           {.address = 0x20, .size = 0x10, .name = NAME("_f@8")}};
    struct sl_symcache c = build(f, 2, NULL, 0, true);
    expect(&c, 0x10, "__tmainCRTStartup:0");
    expect(&c, 0x20, "_f@8:0");
}

TEST(functions_of_equal_names_stay_separate)
{
    static const struct sl_function f[] = {{.address = 0x3f90, .size = 0x20, .name = NAME("unique_i_swear")},
                                           {.address = 0x3fb0, .size = 0x20, .name = NAME("unique_i_swear")}};
    struct sl_symcache c = build(f, 2, NULL, 0, false);
    struct sl_location chain[1];
    struct sl_symcache_function one, two;
    sl_symcache_lookup(&c, 0x3f91, chain, 1);
    sl_symcache_function(&c, chain[0].function, &one);
    sl_symcache_lookup(&c, 0x3fb1, chain, 1);
    sl_symcache_function(&c, chain[0].function, &two);
    assert_int_equal(one.entry, 0x3f90);
    assert_int_equal(two.entry, 0x3fb0);
    assert_int_equal(one.name, two.name);
}

TEST(functions_are_found_by_their_names)
{
    static const struct sl_function f[] = {{.address = 0x10, .size = 0x10, .name = NAME("twice")},
                                           {.address = 0x20, .size = 0x10, .name = NAME("twice")},
                                           {.address = 0x30, .size = 0x10, .name = NAME("f")}};
    static const struct sl_symbol symbols[] = {{0x40, 8, NAME("symbol")}};
    struct sl_symcache c = build(f, 3, symbols, 1, false);
    struct sl_symcache_named named[] = {{.name = NAME("symbol"), .item = 0}, {.name = NAME("twice"), .item = 1},
                                        {.name = NAME("f"), .item = 2},      {.name = NAME("nothing"), .item = 3},
                                        {.name = NAME(""), .item = 4},       {.name = NAME("f"), .item = 5}};
    const unsigned found[] = {1, 2, 1, 0, 0, 1};
    const uint64_t entries[] = {0x40, 0, 0x30, 0, 0, 0x30};
    assert_true(sl_symcache_find_named(&c, named, 6));
    for (size_t i = 0; i < 6; i++) {
        size_t item = named[i].item;
        assert_int_equal(named[i].found, found[item]);
        if (found[item] == 1)
            assert_int_equal(named[i].entry, entries[item]);
    }
}

/* Many entries: several blocks and string groups, 64-bit addresses, and the same bytes each time. */
TEST(large_maps_are_written_and_read)
{
    enum { COUNT = 1000 };
    static struct sl_symbol symbols[COUNT];
    static char names[COUNT][24];
    for (uint64_t wide = 0; wide < 2; wide++) {
        uint64_t base = wide ? UINT64_C(0x7f0000000000) : 0x1000;
        for (size_t i = 0; i < COUNT; i++) {
            int n = snprintf(names[i], sizeof names[i], "symbol_%zu", i * 7919 % COUNT);
            symbols[i] = (struct sl_symbol){base + i * 16, 12, {names[i], (size_t)n}};
        }
        struct sl_symcache c = build(NULL, 0, symbols, COUNT, false);
        struct sl_buf first = {0};
        sl_buf_str(&first, sl_buf_view(&file));
        for (size_t i = 0; i < COUNT; i++) {
            char expected[32];
            snprintf(expected, sizeof expected, "%.23s:0", names[i]);
            expect(&c, base + i * 16, expected);
            expect(&c, base + i * 16 + 11, expected);
            expect(&c, base + i * 16 + 12, "");
        }
        build(NULL, 0, symbols, COUNT, false);
        assert_true(sl_str_equal(sl_buf_view(&first), sl_buf_view(&file)));
        sl_buf_free(&first);
    }
}

TEST(damaged_cache_files_give_no_symbol_at_worst)
{
    static const struct sl_line lines[] = {{0x100, 0x20, 0, 1}, {0x120, 0x20, 1, 200}};
    static const struct sl_function f[] = {
        {.address = 0x100, .size = 0x40, .name = NAME("one"), .lines = lines, .line_count = 2}};
    build(f, 1, NULL, 0, false);
    uint8_t *copy = malloc(file.size);
    struct sl_buf out = {0};
    for (size_t at = 0; at < file.size; at++) {
        struct sl_symcache c;
        struct sl_location chain[4];
        struct sl_symcache_function function;
        memcpy(copy, file.data, file.size);
        copy[at] ^= 0xFF;
        if (sl_symcache_open((struct sl_bytes){copy, file.size}, &c, NULL) != SL_OK)
            continue;
        for (uint64_t address = 0xF0; address < 0x150; address += 8) {
            size_t n = sl_symcache_lookup(&c, address, chain, 4);
            for (size_t i = 0; i < n && i < 4; i++)
                if (sl_symcache_function(&c, chain[i].function, &function))
                    sl_symcache_string(&c, function.name, &out);
        }
        for (size_t size = 0; size < file.size; size += 31)
            sl_symcache_open((struct sl_bytes){copy, size}, &c, NULL);
    }
    sl_buf_free(&out);
    free(copy);
}

/* The largest numbers where deltas are: sums of them overflow. */
TEST(overflowing_deltas_are_harmless)
{
    static const uint8_t most[] = {0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01};
    static const struct sl_line lines[] = {{0x100, 4, 0, 7}, {0x104, 4, 1, 70000}, {0x108, 8, 0, 3}};
    static const struct sl_function f[] = {
        {.address = 0x100, .size = 0x10, .name = NAME("f"), .lines = lines, .line_count = 3},
        {.address = 0x110, .size = 0x10, .name = NAME("g")},
        {.address = 0x120, .size = 0x10, .name = NAME("h"), .lines = lines, .line_count = 3},
    };
    build(f, 3, NULL, 0, false);
    uint8_t *copy = aligned_alloc(8, (file.size + 7) & ~(size_t)7);
    for (size_t at = 100; at + sizeof most <= file.size; at++) {
        struct sl_symcache c;
        struct sl_location chain[4];
        memcpy(copy, file.data, file.size);
        memcpy(copy + at, most, sizeof most);
        if (sl_symcache_open((struct sl_bytes){copy, file.size}, &c, NULL) == SL_OK)
            for (uint64_t address = 0xFE; address < 0x134; address++)
                sl_symcache_lookup(&c, address, chain, 4);
    }
    free(copy);
}

static int teardown(void **state)
{
    sl_buf_free(&file);
    return 0;
}

TEST_FILE(.end = teardown);
