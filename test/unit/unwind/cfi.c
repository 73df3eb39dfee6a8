/* CFI caches say what the unwind information they were made from says, at every place, and nothing where it is damaged. */
#include "cache.h"

#include "../parallel.h"

#include "base/file.h"
#include "base/grow.h"

static void expect_text(const char *arch, const char *records, const char *expected)
{
    struct sl_buf cache = cache_of_records(arch, records), text = text_of_cache(&cache);
    assert_string_equal((const char *)text.data, expected);
    sl_buf_free(&text);
    sl_buf_free(&cache);
}

/* The offset of the rule of the CFA, -1 when nothing is said. */
static int64_t cfa_at(const struct sl_cfi *cfi, uint64_t address)
{
    struct sl_cfi_row row;
    struct sl_unwind_rule rule;
    if (!sl_cfi_find(cfi, address, &row))
        return -1;
    assert_true(sl_cfi_rule(&row, &rule));
    assert_int_equal(rule.reg, SL_UNWIND_CFA);
    return rule.offset;
}

static const char records[] = "STACK CFI INIT 1000 10 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n"
                              "STACK CFI 1001 .cfa: $rsp 16 + $rbp: .cfa -16 + ^\n"
                              "STACK CFI 1004 .cfa: $rbp 24 +\n"
                              "STACK CFI INIT 1010 8 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n"
                              "STACK CFI INIT 2000 20 .cfa: $rbx 48 + ^ 72 + ^ .ra: $rip foo: 1 2 +\n";

TEST(rules_are_found_for_every_address)
{
    static const struct {
        uint64_t address;
        int64_t cfa;
        bool begins;
    } places[] = {{0, -1, 0},      {0xFFF, -1, 0},  {0x1000, 8, 1},  {0x1001, 16, 0},
                  {0x1003, 16, 0}, {0x1004, 24, 0}, {0x100F, 24, 0}, {0x1010, 8, 1},
                  {0x1017, 8, 1},  {0x1018, -1, 0}, {0x1FFF, -1, 0}, {0x2000, 0, 1},
                  {0x201F, 0, 1},  {0x2020, -1, 0}, {0x3000, -1, 0}, {UINT64_MAX, -1, 0}};
    struct sl_buf cache = cache_of_records("x86_64", records);
    struct sl_cfi cfi = open_cache(&cache);
    struct sl_cfi_row row;
    struct sl_unwind_rule rule;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        assert_int_equal(cfa_at(&cfi, places[i].address), places[i].cfa);
        if (sl_cfi_find(&cfi, places[i].address, &row))
            assert_int_equal(row.begins, places[i].begins);
    }
    assert_true(sl_cfi_find(&cfi, 0x1002, &row));
    assert_int_equal(row.address, 0x1001);
    assert_true(sl_cfi_rule(&row, &rule) && sl_cfi_rule(&row, &rule));
    assert_int_equal(rule.reg, SL_UNWIND_RA);
    assert_int_equal(rule.kind, SL_UNWIND_MEMORY);
    assert_int_equal(rule.base, SL_UNWIND_CFA);
    assert_int_equal(rule.offset, -8);
    assert_true(sl_cfi_rule(&row, &rule));
    assert_int_equal(rule.reg, 6);
    assert_false(sl_cfi_rule(&row, &rule));
    assert_int_equal(cfi.arch, SL_ARCH_X86_64);
    sl_buf_free(&cache);
}

TEST(text_equals_the_records_read)
{
    expect_text("x86_64", records, records);
    expect_text("arm64", "", "");
    expect_text("arm64", "STACK CFI INIT 10 4 .cfa: sp .ra: x30\n", "STACK CFI INIT 10 4 .cfa: sp .ra: x30\n");
}

TEST(ranges_come_in_order_and_do_not_overlap)
{
    expect_text("x86_64",
                "STACK CFI INIT 30 10 .cfa: $rsp 8 +\n"
                "STACK CFI INIT 10 10 .cfa: $rsp 16 +\n"
                "STACK CFI INIT 18 10 .cfa: $rsp 24 +\n" /* begins inside the one before it */
                "STACK CFI INIT 30 20 .cfa: $rsp 32 +\n" /* begins where the first one does */
                "STACK CFI INIT 20 4 .cfa: $rsp 40 +\n",
                "STACK CFI INIT 10 10 .cfa: $rsp 16 +\n"
                "STACK CFI INIT 20 4 .cfa: $rsp 40 +\n"
                "STACK CFI INIT 30 10 .cfa: $rsp 8 +\n");
}

TEST(overlapping_windows_records_are_repaired)
{
    expect_text("x86",
                "STACK WIN 4 1000 100 0 0 4 10 8 0 1 $T0 $ebp =\n"
                "STACK WIN 4 1040 c0 3 0 0 0 0 0 1 $T0 $esp =\n" /* ends the one before */
                "STACK WIN 4 1020 40 0 0 0 0 0 0 1 $T0 1 =\n"    /* meets the one before, and starts no later */
                "STACK WIN 0 1000 10 0 0 4 8 c 0 0 1\n"
                "STACK WIN 0 2000 10 0 0 0 0 0 0 1 $T0 1 =\n" /* type 0 with a program */
                "STACK WIN 3 3000 10 0 0 0 0 0 0 0 0\n",      /* of another type */
                "STACK WIN 0 1000 10 0 0 4 8 c 0 0 1\n"
                "STACK WIN 4 1000 40 0 0 4 10 8 0 1 $T0 $ebp =\n"
                "STACK WIN 4 1040 c0 3 0 0 0 0 0 1 $T0 $esp =\n");
    struct sl_buf cache = cache_of_records("x86", "STACK WIN 4 1000 100 1 2 4 10 8 20 1 $T0 $ebp =\n"
                                                  "STACK WIN 0 1080 100 0 0 4 8 c 0 0 1\n");
    struct sl_cfi cfi = open_cache(&cache);
    struct sl_unwind_win win;
    assert_false(sl_cfi_find_win(&cfi, 4, 0xFFF, &win));
    assert_true(sl_cfi_find_win(&cfi, 4, 0x10FF, &win));
    assert_int_equal(win.prolog, 1);
    assert_int_equal(win.epilog, 2);
    assert_int_equal(win.max_stack, 0x20);
    assert_true(sl_str_equal(win.program, SL_STR("$T0 $ebp =")));
    assert_false(sl_cfi_find_win(&cfi, 4, 0x1100, &win));
    assert_false(sl_cfi_find_win(&cfi, 0, 0x107F, &win));
    assert_true(sl_cfi_find_win(&cfi, 0, 0x1100, &win));
    assert_int_equal(win.saved, 8);
    assert_int_equal(cfi.row_count, 0);
    sl_buf_free(&cache);
}

/* ---- what text cannot say ---- */

static void put_frame_entry(struct sl_buf *frame, const void *head, size_t head_size, const void *body, size_t size)
{
    sl_buf_u32(frame, (uint32_t)(head_size + size));
    sl_buf_add(frame, head, head_size);
    sl_buf_add(frame, body, size);
}

TEST(signal_frames_and_expressions_are_kept)
{
    /* CFA rsp + 8, return address at CFA - 8; then rbx at (CFA xor 16), and the CFA where (rsp xor 8) points */
    static const char cie[] = "\0\0\0\0\1zRS\0\1\x78\x10\1\0\x0C\7\x08\x90\1";
    static const char rules[] = "\0\x20\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\0" /* 0x2000, 0x40 bytes, no augmentation data */
                                "\x41\x10\3\2\x40\x27"
                                "\x41\x0F\4\x77\0\x38\x27";
    struct sl_buf frame = {0};
    put_frame_entry(&frame, "", 0, cie, sizeof cie - 1);
    sl_buf_u32(&frame, (uint32_t)(4 + sizeof rules - 1));
    sl_buf_u32(&frame, (uint32_t)frame.size);
    sl_buf_add(&frame, rules, sizeof rules - 1);
    const struct image_section section = {".eh_frame", 0x4000, buf_bytes(&frame)};
    struct sl_buf file = elf_image(62, 8, false, &section, 1), cache = cache_of(buf_bytes(&file), NULL);
    struct sl_cfi cfi = open_cache(&cache);
    struct sl_cfi_row row;
    struct sl_unwind_rule rule = {0};
    assert_true(sl_cfi_find(&cfi, 0x2001, &row));
    assert_true(row.signal_frame);
    while (sl_cfi_rule(&row, &rule))
        if (rule.reg == 3)
            break;
    assert_int_equal(rule.kind, SL_UNWIND_EXPRESSION);
    assert_true(sl_str_equal(rule.program, SL_STR("\x40\x27\6")));
    assert_true(sl_cfi_find(&cfi, 0x2002, &row) && sl_cfi_rule(&row, &rule));
    assert_int_equal(rule.reg, SL_UNWIND_CFA);
    assert_int_equal(rule.kind, SL_UNWIND_EXPRESSION);
    struct sl_buf text = text_of_cache(&cache);
    assert_string_equal((const char *)text.data, "STACK CFI INIT 2000 2 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n"
                                                 "STACK CFI 2001 $rbx: .undef\n");
    sl_buf_free(&text);
    expect(file, "STACK CFI INIT 2000 2 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n"
                 "STACK CFI 2001 $rbx: .undef\n");
    sl_buf_free(&frame);
    sl_buf_free(&cache);
}

/* ---- real files ---- */

static int by_text(const void *a, const void *b)
{
    const struct sl_str *x = a, *y = b;
    return sl_str_compare(*x, *y);
}

/* The ranges of a text, each with its lines, in an order of their own. */
static size_t sorted_ranges(const struct sl_buf *text, struct sl_str **ranges)
{
    size_t count = 0, capacity = 0;
    *ranges = NULL;
    for (const char *at = (const char *)text->data, *next; at && *at; at = next) {
        next = strstr(at + 1, "STACK CFI INIT");
        assert_true(sl_grow(ranges, &capacity, count + 1, sizeof **ranges));
        (*ranges)[count++] = (struct sl_str){at, next ? (size_t)(next - at) : strlen(at)};
    }
    qsort(*ranges, count, sizeof **ranges, by_text);
    return count;
}

/* The text of the cache is that of the file, and a cache made of the text has the same rules. */
static void check_file(struct sl_bytes bytes)
{
    struct records r = records_of(bytes);
    struct sl_buf cache = cache_of(bytes, NULL), text = text_of_cache(&cache);
    struct sl_str *of_file, *of_cache;
    size_t count = sorted_ranges(&r.text, &of_file);
    assert_int_equal(sorted_ranges(&text, &of_cache), count);
    assert_true(count > 10);
    for (size_t i = 0; i < count; i++)
        if (!sl_str_equal(of_file[i], of_cache[i]))
            fail_msg("%.*s\n%.*s", (int)of_file[i].size, of_file[i].data, (int)of_cache[i].size, of_cache[i].data);
    struct sl_buf again = cache_of_records("x86_64", (const char *)text.data), text_again = text_of_cache(&again);
    assert_string_equal((const char *)text_again.data, (const char *)text.data);
    free(of_file);
    free(of_cache);
    sl_buf_free(&r.text);
    sl_buf_free(&cache);
    sl_buf_free(&text);
    sl_buf_free(&again);
    sl_buf_free(&text_again);
}

TEST(caches_of_programs_equal_their_text)
{
    static const char *const files[] = {"/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct sl_mapping mapping;
        assert_int_equal(sl_map_file(files[i], &mapping, NULL), SL_OK);
        check_file(mapping.bytes);
        sl_unmap(&mapping);
    }
}

TEST(cache_file_is_the_same_for_any_number_of_threads)
{
    struct sl_parallel parallel = parallel_of(PARALLEL_MAX);
    struct sl_mapping mapping;
    assert_int_equal(sl_map_file("/lib/x86_64-linux-gnu/libc.so.6", &mapping, NULL), SL_OK);
    struct sl_buf one = cache_of(mapping.bytes, NULL), many = cache_of(mapping.bytes, &parallel);
    assert_int_equal(one.size, many.size);
    assert_memory_equal(one.data, many.data, one.size);
    sl_buf_free(&one);
    sl_buf_free(&many);
    sl_unmap(&mapping);
}

/* ---- damage ---- */

TEST(damaged_files_stay_within_bounds)
{
    struct sl_buf cache = cache_of_records("x86_64", records);
    for (size_t size = 0; size < cache.size; size++) {
        uint8_t *copy = malloc(size + !size);
        struct sl_cfi cfi;
        memcpy(copy, cache.data, size);
        if (sl_cfi_open((struct sl_bytes){copy, size}, &cfi, NULL) == SL_OK)
            for (uint64_t address = 0xF00; address < 0x2100; address++)
                cfa_at(&cfi, address);
        free(copy);
    }
    for (size_t i = 0; i < cache.size; i++) {
        uint8_t *copy = malloc(cache.size);
        struct sl_cfi cfi;
        struct sl_cfi_row row;
        struct sl_unwind_rule rule;
        memcpy(copy, cache.data, cache.size);
        copy[i] ^= 0xFF;
        if (sl_cfi_open((struct sl_bytes){copy, cache.size}, &cfi, NULL) == SL_OK) {
            for (uint64_t address = 0xF00; address < 0x2100; address += 3)
                if (sl_cfi_find(&cfi, address, &row))
                    while (sl_cfi_rule(&row, &rule))
                        ;
            sl_cfi_read(&cfi, NULL, NULL);
        }
        free(copy);
    }
    cache.data[40] ^= 1;
    struct sl_cfi cfi;
    assert_int_equal(sl_cfi_open(sl_buf_bytes(&cache), &cfi, NULL), SL_MALFORMED);
    sl_buf_free(&cache);
}
