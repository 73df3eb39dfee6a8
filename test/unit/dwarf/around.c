/* Reading this very program's DWARF around some addresses: the answers are those of the whole, and most units are left out. */
#include "../object/debug_file.h"

#include "base/file.h"
#include "function/position.h"

enum { ROUNDS = 40, ADDRESSES = 50 };

static int by_number(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Addresses in functions, where a line is known. */
static void draw(const struct sl_symcache *whole, const struct sl_symbol *symbols, size_t count, uint64_t *addresses)
{
    static uint64_t state = 7;
    struct sl_location innermost;
    for (size_t i = 0; i < ADDRESSES;) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const struct sl_symbol *s = &symbols[(state >> 33) % count];
        addresses[i] = s->address + (s->size ? (state >> 20) % s->size : 0);
        i += sl_symcache_lookup(whole, addresses[i], &innermost, 1) && innermost.line;
    }
    qsort(addresses, ADDRESSES, sizeof *addresses, by_number);
}

static void same_answers(const struct sl_symcache *whole, const struct sl_symcache *part, uint64_t address)
{
    char expected[4096];
    snprintf(expected, sizeof expected, "%s", chain_at(whole, address));
    assert_string_equal(chain_at(part, address), expected);
}

TEST(partial_reading_gives_the_answers_of_the_whole_file)
{
    struct sl_mapping mapping;
    struct converted whole;
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count;
    uint64_t addresses[ADDRESSES];
    assert_int_equal(sl_map_file("/proc/self/exe", &mapping, NULL), SL_OK);
    struct sl_object *object = open_bytes(mapping.bytes);
    convert(&whole, object);
    assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, NULL), SL_OK);
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch};
    for (size_t round = 0; round < ROUNDS; round++) {
        struct converted part = {0};
        size_t wanted = round % 4 ? 3 : ADDRESSES;
        draw(&whole.cache, symbols, count, addresses);
        sl_budget_grow(sl_object_budget(object), mapping.bytes.size);
        assert_int_equal(sl_symcache_convert_around(object, NULL, &options, addresses, wanted, NULL, &part.file, NULL),
                         SL_OK);
        assert_int_equal(sl_symcache_open(sl_buf_bytes(&part.file), &part.cache, NULL), SL_OK);
        assert_int_equal(sl_symcache_verify(&part.cache, NULL), SL_OK);
        for (size_t i = 0; i < wanted; i++)
            same_answers(&whole.cache, &part.cache, addresses[i]);
        if (wanted == 3)
            assert_true(part.cache.function_count < whole.cache.function_count / 2);
        sl_buf_free(&part.file);
    }
    sl_buf_free(&whole.file);
    sl_arena_free(&arena);
    sl_object_close(object);
    sl_unmap(&mapping);
}

/* At an address that no unit has, nothing is known: the whole has to be asked. */
TEST(addresses_outside_the_units_are_unknown)
{
    struct sl_mapping mapping;
    struct sl_buf out = {0};
    struct sl_symcache cache;
    struct sl_location link;
    assert_int_equal(sl_map_file("/proc/self/exe", &mapping, NULL), SL_OK);
    struct sl_object *object = open_bytes(mapping.bytes);
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch};
    const uint64_t address = 1;
    assert_int_equal(sl_symcache_convert_around(object, NULL, &options, &address, 1, NULL, &out, NULL), SL_OK);
    assert_int_equal(sl_symcache_open(sl_buf_bytes(&out), &cache, NULL), SL_OK);
    assert_int_equal(sl_symcache_lookup(&cache, address, &link, 1), 0);
    sl_buf_free(&out);
    sl_object_close(object);
    sl_unmap(&mapping);
}

/* This program's symbols with columns: all else is as in a table without, which has column 0 everywhere. */
TEST(columns_are_stored_if_wanted)
{
    struct sl_mapping mapping;
    struct converted plain;
    struct sl_buf out = {0};
    struct sl_symcache cache;
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count, columns = 0;
    uint64_t addresses[ADDRESSES];
    assert_int_equal(sl_map_file("/proc/self/exe", &mapping, NULL), SL_OK);
    struct sl_object *object = open_bytes(mapping.bytes);
    convert(&plain, object);
    assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, NULL), SL_OK);
    struct sl_symcache_options options = {.arch = sl_object_info(object)->arch, .positions = true};
    sl_budget_grow(sl_object_budget(object), mapping.bytes.size);
    assert_int_equal(sl_symcache_convert(object, NULL, &options, NULL, &out, NULL), SL_OK);
    assert_int_equal(sl_symcache_open(sl_buf_bytes(&out), &cache, NULL), SL_OK);
    assert_int_equal(sl_symcache_verify(&cache, NULL), SL_OK);
    draw(&plain.cache, symbols, count, addresses);
    for (size_t i = 0; i < ADDRESSES; i++) {
        struct sl_location before, now;
        same_answers(&plain.cache, &cache, addresses[i]);
        assert_true(sl_symcache_lookup(&plain.cache, addresses[i], &before, 1) > 0);
        assert_true(sl_symcache_lookup(&cache, addresses[i], &now, 1) > 0);
        assert_int_equal(before.column, 0);
        columns += now.column > 0;
    }
    assert_true(columns > ADDRESSES / 2);
    sl_buf_free(&out);
    sl_buf_free(&plain.file);
    sl_arena_free(&arena);
    sl_object_close(object);
    sl_unmap(&mapping);
}

TEST(line_and_column_are_packed_within_limits)
{
    static const struct {
        uint32_t line, column, line_back, column_back;
    } cases[] = {{0, 0, 0, 0},
                 {0, 7, 0, 0},
                 {1, 0, 1, 0},
                 {1, 1, 1, 1},
                 {(1 << 18) - 1, (1 << 11) - 1, (1 << 18) - 1, (1 << 11) - 1},
                 {1 << 18, 1, 1 << 18, 0},
                 {5, 1 << 11, 5, 0},
                 {(1 << 29) - 1, 3, (1 << 29) - 1, 0},
                 {1 << 29, 3, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t position = sl_position(cases[i].line, cases[i].column);
        assert_true(position < 1u << 30);
        assert_int_equal(sl_position_line(position), cases[i].line_back);
        assert_int_equal(sl_position_column(position), cases[i].column_back);
    }
}
