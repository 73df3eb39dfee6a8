/* Arena, reader, buffer, map, error, file: the behaviours the rest of the house stands on. */
#include "../check.h"
#include "../directory.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/plain.h"
#include "base/search.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/file.h"
#include "base/map.h"
#include "base/parallel.h"
#include "base/spill.h"

/* A file is the same whether its zeros are holes or not, wherever writes begin. */
TEST(zero_blocks_become_holes)
{
    enum { SIZE = 1 << 20 };
    static uint8_t data[SIZE];
    static const size_t pieces[] = {SIZE, 4096, 1000, 64 * 1024 + 1};
    for (size_t at = 0; at < SIZE; at += 300 * 1024)
        data[at + 5000] = 'x';
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct sl_mapping mapping;
        struct stat st;
        int fd = sl_unlinked_file("/tmp");
        for (size_t at = 0; at < SIZE; at += pieces[i])
            assert_true(sl_write_sparse(fd, sl_bytes_part((struct sl_bytes){data, SIZE}, at, pieces[i])));
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(sl_map_fd(fd, &mapping, NULL), SL_OK);
        assert_int_equal(mapping.bytes.size, SIZE);
        assert_memory_equal(mapping.bytes.data, data, SIZE);
        if (pieces[i] >= 4096)
            assert_true((size_t)st.st_blocks * 512 < SIZE / 4);
        sl_unmap(&mapping);
        close(fd);
    }
}

TEST(arena_aligns_zeroes_and_keeps_its_limit)
{
    struct sl_arena arena;
    sl_arena_init(&arena, 64 * 1024);
    for (size_t align = 1; align <= 64; align *= 2)
        assert_int_equal((uintptr_t)sl_arena_alloc(&arena, 3, align) % align, 0);
    uint8_t *zeros = sl_arena_zalloc(&arena, 100, 10);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(zeros[i], 0);
    assert_null(sl_arena_alloc(&arena, 64 * 1024, 1));
    assert_null(sl_arena_alloc(&arena, SIZE_MAX - 8, 8));
    assert_null(sl_arena_zalloc(&arena, SIZE_MAX / 2, 3));
    assert_string_equal(sl_arena_strndup(&arena, "hello", 4), "hell");
    sl_arena_reset(&arena);
    assert_non_null(sl_arena_alloc(&arena, 16, 16));
    sl_arena_free(&arena);
    assert_int_equal(arena.used, 0);
}

TEST(reader_stops_at_the_end_and_stays_failed)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct sl_reader r = sl_reader((struct sl_bytes){bytes, sizeof bytes}, false);
    assert_int_equal(sl_read_u8(&r), 1);
    assert_int_equal(sl_read_u32(&r), 0x05040302);
    assert_int_equal(sl_read_uint(&r, 3), 0x080706);
    assert_int_equal(sl_read_u16(&r), 0);
    assert_true(r.failed);
    assert_int_equal(sl_read_u8(&r), 0);
    r = sl_reader((struct sl_bytes){bytes, sizeof bytes}, true);
    assert_int_equal(sl_read_u64(&r), 0x0102030405060708);
    sl_reader_seek(&r, 9);
    assert_false(r.failed);
    sl_reader_seek(&r, 10);
    assert_true(r.failed);
    r = sl_reader((struct sl_bytes){NULL, 0}, false);
    assert_int_equal(sl_read_uleb(&r), 0);
    assert_true(r.failed);
}

TEST(leb128_is_read_up_to_64_bits)
{
    static const uint64_t unsigned_values[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX};
    static const int64_t signed_values[] = {0, 1, -1, 63, 64, -64, -65, INT32_MIN, INT64_MAX, INT64_MIN};
    struct sl_buf buf = {0};
    for (size_t i = 0; i < 8; i++)
        sl_buf_uleb(&buf, unsigned_values[i]);
    for (size_t i = 0; i < 10; i++)
        sl_buf_sleb(&buf, signed_values[i]);
    struct sl_reader r = sl_reader(sl_buf_bytes(&buf), false);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(sl_read_uleb(&r), unsigned_values[i]);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(sl_read_sleb(&r), signed_values[i]);
    assert_false(r.failed);
    sl_buf_free(&buf);

    static const uint8_t too_long[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
    static const uint8_t too_big[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02};
    static const uint8_t padded[] = {0x81, 0x80, 0x80, 0x00};
    r = sl_reader((struct sl_bytes){too_long, sizeof too_long}, false);
    sl_read_uleb(&r);
    assert_true(r.failed);
    r = sl_reader((struct sl_bytes){too_big, sizeof too_big}, false);
    sl_read_uleb(&r);
    assert_true(r.failed);
    r = sl_reader((struct sl_bytes){padded, sizeof padded}, false);
    assert_int_equal(sl_read_uleb(&r), 1);
    assert_false(r.failed);
}

TEST(unterminated_text_is_not_read)
{
    struct sl_bytes table = {(const uint8_t *)"ab\0cd", 5};
    assert_true(sl_str_equal(sl_cstr_at(table, 0), SL_STR("ab")));
    assert_null(sl_cstr_at(table, 3).data);
    assert_null(sl_cstr_at(table, 5).data);
    struct sl_reader r = sl_reader(table, false);
    assert_int_equal(sl_read_cstr(&r).size, 2);
    assert_null(sl_read_cstr(&r).data);
    assert_true(r.failed);
}

TEST(slices_outside_the_bytes_are_refused)
{
    struct sl_bytes bytes = {(const uint8_t *)"0123", 4};
    bool ok;
    assert_int_equal(sl_bytes_slice(bytes, 1, 3, &ok).size, 3);
    assert_true(ok);
    sl_bytes_slice(bytes, 1, 4, &ok);
    assert_false(ok);
    sl_bytes_slice(bytes, UINT64_MAX, 2, &ok);
    assert_false(ok);
    sl_bytes_slice(bytes, 2, UINT64_MAX, &ok);
    assert_false(ok);
}

/* Texts whose plain hashes all begin a probe at the same place. */
TEST(map_hash_is_salted_against_chosen_collisions)
{
    enum { KEYS = 1000, MASK = 4095, MAX_IN_A_ROW = 100 };
    static char keys[KEYS][16];
    struct sl_map map = {0};
    for (unsigned i = 0, found = 0; found < KEYS; i++) {
        int size = snprintf(keys[found], sizeof *keys, "%u", i);
        if ((sl_hash(keys[found], (size_t)size) & MASK) == 0)
            *sl_map_find_or_add(&map, sl_str(keys[found]), NULL) = keys[found], found++;
    }
    size_t longest = 0;
    for (size_t i = 0, row = 0; i < map.capacity; i++) {
        row = map.entries[i].used ? row + 1 : 0;
        longest = row > longest ? row : longest;
    }
    assert_true(longest < MAX_IN_A_ROW);
    sl_map_free(&map);
}

TEST(map_grows_finds_and_removes_keys)
{
    enum { COUNT = 5000 };
    static char keys[COUNT][8];
    struct sl_map map = {0};
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(keys[i], sizeof keys[i], "%zu", i);
        bool made;
        *sl_map_find_or_add(&map, sl_str(keys[i]), &made) = keys[i];
        assert_true(made);
    }
    for (size_t i = 0; i < COUNT; i += 2)
        assert_ptr_equal(sl_map_remove(&map, sl_str(keys[i])), keys[i]);
    for (size_t i = 0; i < COUNT; i++)
        assert_ptr_equal(sl_map_get(&map, sl_str(keys[i])), i % 2 ? keys[i] : NULL);
    size_t seen = 0;
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&map, e));)
        seen++;
    assert_int_equal(seen, COUNT / 2);
    for (size_t round = 0; round < 10 * COUNT; round++) {
        *sl_map_find_or_add(&map, sl_str(keys[0]), NULL) = keys[0];
        sl_map_remove(&map, sl_str(keys[0]));
    }
    assert_true(map.capacity < 8 * COUNT);
    sl_map_free(&map);
}

TEST(map_puts_and_adds)
{
    struct sl_map map = {0};
    char first[] = "first", second[] = "second", name[] = "names";
    struct sl_str kept;
    assert_true(sl_map_put(&map, SL_STR("key"), first) && sl_map_put(&map, SL_STR("key"), second));
    assert_ptr_equal(sl_map_get(&map, SL_STR("key")), second);
    assert_int_equal(map.count, 1);
    uint64_t *item = sl_map_add(&map, (struct sl_str){name, 4}, sizeof *item, &kept);
    assert_non_null(item);
    assert_int_equal(*item, 0);
    memset(name, 'x', sizeof name - 1); /* the map has its own */
    assert_string_equal(kept.data, "name");
    assert_int_equal(kept.size, 4);
    assert_ptr_equal(sl_map_remove(&map, kept), item);
    free(item);
    sl_map_free(&map);
}

TEST(texts_and_numbers_are_compared)
{
    const struct sl_str a = SL_STR("a"), ab = SL_STR("ab");
    assert_true(sl_str_order(&a, &ab) < 0 && sl_str_order(&ab, &a) > 0 && sl_str_order(&ab, &ab) == 0);
    assert_true(sl_compare_u64(1, UINT64_MAX) < 0 && sl_compare_u64(UINT64_MAX, 1) > 0 && sl_compare_u64(7, 7) == 0);
}

TEST(messages_are_cut_at_a_character)
{
    struct sl_error error;
    char text[400];
    for (size_t i = 0; i < 199; i++)
        memcpy(text + 2 * i, "é", 2);
    text[398] = '\0';
    assert_int_equal(sl_fail(&error, SL_MALFORMED, "x%s", text), SL_MALFORMED);
    size_t length = strlen(error.message);
    assert_true(length < sizeof error.message && length % 2 == 1);
    assert_int_equal((unsigned char)error.message[length - 1], 0xA9);
    assert_int_equal(sl_fail(NULL, SL_TIMEOUT, "x"), SL_TIMEOUT);
    assert_string_equal(sl_code_name(SL_DOWNLOAD_ERROR), "download_error");
}

TEST(files_are_written_and_mapped)
{
    char dir[] = "/tmp/symloom-base-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/file", dir);
    struct sl_error error;
    struct sl_mapping mapping;
    assert_int_equal(sl_map_file(path, &mapping, &error), SL_NOT_FOUND);
    assert_true(directory_write(path, "abc", 3));
    assert_int_equal(sl_map_file(path, &mapping, &error), SL_OK);
    assert_memory_equal(mapping.bytes.data, "abc", 3);
    sl_mapping_drop(&mapping, 0, 3);
    assert_int_equal(mapping.bytes.data[1], 'b');
    sl_unmap(&mapping);
    assert_true(directory_write(path, NULL, 0));
    assert_int_equal(sl_map_file(path, &mapping, &error), SL_OK);
    assert_int_equal(mapping.bytes.size, 0);
    sl_unmap(&mapping);
    assert_int_equal(sl_map_file(dir, &mapping, &error), SL_INTERNAL);
    unlink(path);
    rmdir(dir);
}

static void note_order(void *arg, size_t index, unsigned worker)
{
    size_t *next = arg;
    assert_int_equal(index, (*next)++);
    assert_int_equal(worker, 0);
}

TEST(parallel_without_threads_is_a_loop)
{
    size_t next = 0;
    sl_parallel_run(NULL, 10, note_order, &next);
    assert_int_equal(next, 10);
}

TEST(buffer_writes_little_endian_and_hex)
{
    struct sl_buf buf = {0};
    sl_buf_u32(&buf, 0x01020304);
    sl_buf_u8(&buf, 9);
    sl_buf_align(&buf, 8);
    assert_int_equal(buf.size, 8);
    sl_buf_hex(&buf, buf.data, 5);
    assert_memory_equal(buf.data + 8, "0403020109", 10);
    sl_buf_clear(&buf);
    sl_buf_printf(&buf, "%d-%s", 5, "x");
    assert_true(sl_str_equal(sl_buf_view(&buf), SL_STR("5-x")));
    sl_buf_free(&buf);
}

TEST(white_space_is_trimmed)
{
    static const char *const rows[][2] = {
        {"", ""}, {" \t\r\n\v\f", ""}, {"a", "a"}, {"\ta b \n", "a b"}, {"\x01 a", "\x01 a"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(sl_str_equal(sl_str_trimmed(sl_str(rows[i][0])), sl_str(rows[i][1])));
}

TEST(arrays_keep_their_items_when_they_grow)
{
    uint32_t *items = NULL;
    size_t capacity = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(sl_grow(&items, &capacity, i + 1, sizeof *items));
        items[i] = i;
    }
    assert_true(sl_grow(&items, &capacity, 5000, sizeof *items));
    assert_true(capacity >= 5000);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    size_t before = capacity;
    assert_false(sl_grow(&items, &capacity, SIZE_MAX / 2, sizeof *items));
    assert_int_equal(capacity, before);
    assert_int_equal(items[999], 999);
    free(items);
}

TEST(arrays_grow_zeroed_and_in_arenas)
{
    uint32_t *items = NULL, *kept = NULL;
    size_t capacity = 0, kept_capacity = 0;
    struct sl_arena arena = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(sl_grow_zeroed(&items, &capacity, i + 1, sizeof *items));
        assert_int_equal(items[i], 0);
        items[i] = i + 1;
        assert_true(sl_grow_in_arena(&arena, &kept, &kept_capacity, i + 1, sizeof *kept));
        kept[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(items[i], i + 1);
        assert_int_equal(kept[i], i);
    }
    assert_false(sl_grow_zeroed(&items, &capacity, SIZE_MAX / 2, sizeof *items));
    assert_false(sl_grow_in_arena(&arena, &kept, &kept_capacity, SIZE_MAX / 2, sizeof *kept));
    assert_int_equal(kept[999], 999);
    free(items);
    sl_arena_free(&arena);
}

TEST(large_arrays_move_to_files)
{
    enum { STEP = 100000, STEPS = 60 }; /* 24 MB of numbers */
    struct sl_spill spill = {0}, other = {0};
    int fd = sl_unlinked_file("/tmp"), unwritable = open("/dev/null", O_RDONLY);
    assert_true(fd >= 0 && unwritable >= 0);
    sl_spill_into(&spill, fd, 1);
    sl_spill_into(&other, fd, 0);
    assert_true(sl_spill_reserve(&other, 1 << 25));
    memset(other.data, 0xff, other.capacity);
    for (uint32_t n = 0; n < STEP * STEPS; n++) {
        assert_true(sl_spill_reserve(&spill, (n + 1) * sizeof(uint32_t)));
        assert_int_equal(((uint32_t *)spill.data)[n], 0);
        ((uint32_t *)spill.data)[n] = n;
        if (n % STEP == 0)
            sl_spill_drop_pages(&spill);
    }
    assert_true(spill.in_file);
    sl_spill_drop_pages(&spill);
    for (uint32_t n = 0; n < STEP * STEPS; n++)
        assert_int_equal(((uint32_t *)spill.data)[n], n);
    assert_int_equal(((uint8_t *)other.data)[other.capacity - 1], 0xff);
    sl_spill_free(&spill);
    sl_spill_free(&other);
    sl_spill_into(&spill, unwritable, 0);
    assert_true(sl_spill_reserve(&spill, 1 << 20));
    assert_false(sl_spill_reserve(&spill, 1 << 26));
    sl_spill_free(&spill);
    assert_true(sl_spill_reserve(&spill, 1 << 26));
    assert_false(spill.in_file);
    sl_spill_free(&spill);
    close(fd);
    close(unwritable);
}

TEST(write_all_writes_every_byte_at_its_offset)
{
    char path[] = "/tmp/write-XXXXXX", got[12];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    assert_true(sl_write_all(fd, (struct sl_bytes){(const uint8_t *)"hello ", 6}));
    assert_true(sl_write_all(fd, (struct sl_bytes){(const uint8_t *)"world", 5}));
    assert_true(sl_write_all_at(fd, (struct sl_bytes){(const uint8_t *)"J", 1}, 0));
    assert_int_equal(pread(fd, got, sizeof got, 0), 11);
    assert_memory_equal(got, "Jello world", 11);
    close(fd);
    assert_false(sl_write_all(fd, (struct sl_bytes){(const uint8_t *)"x", 1}));
    assert_false(sl_write_all_at(fd, (struct sl_bytes){(const uint8_t *)"x", 1}, 0));
}

TEST(print_precision_is_limited_to_int_max)
{
    assert_int_equal(sl_str_precision((struct sl_str){"", 3}), 3);
    assert_int_equal(sl_str_precision((struct sl_str){"", (size_t)INT_MAX + 1}), INT_MAX);
}

/* Arrays of every size beside other allocations: exact in the end, and never over the limit. */
static void note_end(void *arg)
{
    char *notes = arg;
    notes[strlen(notes)] = (char)('a' + strlen(notes));
}

TEST(arena_end_callbacks_run_once)
{
    char notes[2][8] = {"", ""};
    struct sl_arena arena = {0};
    assert_true(sl_arena_on_free(&arena, note_end, notes[0]));
    assert_true(sl_arena_on_free(&arena, note_end, notes[0]));
    sl_arena_reset(&arena);
    assert_string_equal(notes[0], "ab");
    assert_true(sl_arena_on_free(&arena, note_end, notes[1]));
    sl_arena_free(&arena);
    assert_string_equal(notes[1], "a");
    sl_arena_free(&arena);
    assert_string_equal(notes[0], "ab");
    assert_string_equal(notes[1], "a");
    struct sl_arena full = {.limit = 8};
    assert_false(sl_arena_on_free(&full, note_end, notes[0]));
    sl_arena_free(&full);
    assert_string_equal(notes[0], "ab");
}

TEST(lower_bound_counts_smaller_items)
{
    struct item {
        char other;
        uint64_t number;
    } items[] = {{'a', 3}, {'b', 5}, {'c', 5}, {'d', UINT64_MAX}};
    static const size_t wanted[][2] = {{0, 0}, {2, 0}, {3, 1}, {4, 1}, {5, 3}, {6, 3}, {UINT64_MAX, 4}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_int_equal(SL_COUNT_UP_TO(items, 4, number, wanted[i][0]), wanted[i][1]);
    struct item *none = NULL;
    assert_int_equal(SL_COUNT_UP_TO(none, 0, number, 7), 0);
}

TEST(numbers_are_parsed_from_digits_only)
{
    static const struct {
        const char *text;
        bool is_decimal, is_hex;
        uint64_t decimal, hex;
    } cases[] = {
        {"0", true, true, 0, 0},
        {"10", true, true, 10, 16},
        {"00000000000000000000000012", true, true, 12, 18},
        {"18446744073709551615", true, false, UINT64_MAX, 0},
        {"18446744073709551616", false, false, 0, 0},
        {"fFFFffffFFFFffff", false, true, 0, UINT64_MAX},
        {"1ffffffffffffffff", false, false, 0, 0},
        {"", false, false, 0, 0},
        {"-1", false, false, 0, 0},
        {" 1", false, false, 0, 0},
        {"1g", false, false, 0, 0},
        {"0x1", false, false, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_str text = {cases[i].text, strlen(cases[i].text)};
        uint64_t value;
        assert_int_equal(sl_parse_u64(text, &value), cases[i].is_decimal);
        assert_true(!cases[i].is_decimal || value == cases[i].decimal);
        assert_int_equal(sl_parse_hex_u64(text, &value), cases[i].is_hex);
        assert_true(!cases[i].is_hex || value == cases[i].hex);
    }
}

TEST(arena_arrays_take_memory_for_their_items_only)
{
    static const size_t counts[] = {0, 1, 8, 9, 1000, 100000};
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
        struct sl_arena arena = {0};
        struct sl_arena_array array = {.arena = &arena, .item = 24};
        for (size_t i = 0; i < counts[n]; i++) {
            uint64_t *item = sl_arena_array_add(&array);
            assert_true(item && !item[0] && !item[1] && !item[2]);
            item[0] = i;
            assert_non_null(sl_arena_alloc(&arena, 1, 1));
        }
        assert_true(arena.used <= counts[n] * (24 + 12) + 2 * (counts[n] + 4096));
        const uint64_t *items = sl_arena_array_finish(&array);
        assert_non_null(items);
        for (size_t i = 0; i < counts[n]; i++)
            assert_int_equal(items[3 * i], i);
        assert_true(arena.used <= counts[n] * 24 + 2 * (counts[n] + 4096) + (counts[n] == 1000 ? 65536 : 0));
        assert_non_null(sl_arena_alloc(&arena, 100, 8));
        sl_arena_reset(&arena);
        assert_non_null(sl_arena_alloc(&arena, 100, 8));
        sl_arena_free(&arena);
        assert_int_equal(arena.used, 0);
    }
    struct sl_arena arena;
    sl_arena_init(&arena, 10000);
    struct sl_arena_array array = {.arena = &arena, .item = 100};
    while (sl_arena_array_add(&array))
        assert_true(arena.used <= 10000);
    assert_true(array.count >= 60 && arena.over_limit);
    sl_arena_array_discard(&array);
    assert_int_equal(arena.used, 0);
    sl_arena_free(&arena);
}

TEST(plain_text_scan_stops_at_bytes_that_need_an_escape)
{
    static const char *const stops[] = {"\"", "\\", "\x1F", "\x7F", "\x80", "\xFF", "\n"};
    char text[64], copy[64 + SL_PLAIN_SLACK];
    for (size_t size = 0; size <= sizeof text; size++)
        for (size_t at = 0; at <= size; at++)
            for (size_t s = 0; s < sizeof stops / sizeof *stops; s++) {
                memset(text, ' ', sizeof text);
                if (at < size)
                    text[at] = stops[s][0];
                assert_int_equal(sl_plain_run((struct sl_str){text, size}), at);
                assert_int_equal(sl_plain_copy(copy, (struct sl_str){text, size}), at);
                assert_memory_equal(copy, text, at);
            }
    for (int c = 0; c < 256; c++) {
        char one = (char)c;
        assert_int_equal(sl_plain_run((struct sl_str){&one, 1}), sl_is_plain(one));
    }
}
