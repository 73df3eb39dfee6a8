/* Tables: what is written byte by byte, read back, shared out to workers; and damaged files. */
#include "../parallel.h"

#include "base/map.h"
#include "table/writer.h"

enum { HEADER = 48, AT_SECTIONS = 8, AT_CONTENTS = 16, AT_SIZE = 24, AT_OWN = 28, AT_HASH = 40, ROOM = 6 };
enum { NUMBERS = 1, UNITS, OFFSETS, STRINGS, GROUPS, NOTE };

static const struct sl_table_format sectioned = {.magic = "TEST",
                                                 .name = "test table",
                                                 .major = 3,
                                                 .minor = 1,
                                                 .header_size = HEADER,
                                                 .at_header_size = AT_SIZE,
                                                 .at_section_count = AT_SECTIONS,
                                                 .at_content_hash = AT_CONTENTS,
                                                 .sections = ROOM};
static const struct sl_table_format fixed = {.magic = "FIXD", .name = "fixed table", .major = 1, .header_size = 24};

static struct sl_buf out;
static struct sl_error error;

static int drop(void **state)
{
    sl_buf_free(&out);
    return 0;
}

/* ---- what the tests write ---- */

struct rows {
    const uint64_t (*values)[2];
};

static void fill_rows(const void *arg, uint32_t from, uint32_t count, uint64_t *const *values)
{
    const struct rows *rows = arg;
    for (uint32_t i = 0; i < count; i++)
        for (unsigned c = 0; c < 2; c++)
            values[c][i] = rows->values[from + i][c];
}

static uint64_t number(uint64_t row, unsigned width)
{
    return row * 0x9E3779B97F4A7C15u & ((UINT64_C(1) << width) - 1);
}

/* Column c has the width 7 * c, but the last, which has 56. */
static unsigned width_of(unsigned column)
{
    return column == 7 ? 56 : 7 * column;
}

static void fill_numbers(const void *arg, uint32_t from, uint32_t count, uint64_t *const *values)
{
    for (uint32_t i = 0; i < count; i++)
        for (unsigned c = 0; c < 8; c++)
            values[c][i] = number(from + i, width_of(c));
}

static void write_unit(const void *arg, size_t unit, struct sl_buf *buf)
{
    sl_buf_fill(buf, (uint8_t)unit, unit % 5);
}

static struct sl_str get_word(const void *arg, size_t index)
{
    const char *const *words = arg;
    return sl_str(words[index]);
}

static struct sl_str get_decimal(const void *arg, size_t index)
{
    const char(*texts)[32] = arg;
    return sl_str(texts[index]);
}

static void expect_bytes(struct sl_bytes bytes, const char *hex)
{
    struct sl_buf text = {0};
    sl_buf_hex(&text, bytes.data, bytes.size);
    sl_buf_u8(&text, 0);
    assert_string_equal((char *)text.data, hex);
    sl_buf_free(&text);
}

static struct sl_table opened(const struct sl_table_format *format)
{
    struct sl_table t;
    assert_int_equal(sl_table_open(sl_buf_bytes(&out), format, &t, &error), SL_OK);
    return t;
}

/* ---- bytes ---- */

static const char *const words[] = {"a", "abc", "abd", "b"};

TEST(head_and_sections_lie_where_the_header_says)
{
    struct sl_table_writer w;
    assert_true(sl_table_writer_init(&w, &sectioned, NULL, NULL));
    sl_table_section(&w, NOTE);
    sl_buf_cstr(&w.file, "hello");
    sl_table_section(&w, 77); /* which readers of this version do not know */
    sl_table_put(&w, AT_OWN, 0xA1B2C3, 3);
    assert_true(sl_table_finish(&w, &out));
    enum { HEAD = HEADER + 2 * 24, FIRST = HEADER + ROOM * 24 };
    expect_bytes((struct sl_bytes){out.data, 16}, "54455354"
                                                  "0300"
                                                  "0100"
                                                  "02000000"
                                                  "00000000");
    expect_bytes((struct sl_bytes){out.data + AT_SIZE, 16}, "30000000"
                                                            "c3b2a100"
                                                            "0000000000000000");
    expect_bytes((struct sl_bytes){out.data + HEADER, 48}, "06000000"
                                                           "00000000"
                                                           "c000000000000000"
                                                           "0500000000000000"
                                                           "4d000000"
                                                           "00000000"
                                                           "c800000000000000"
                                                           "0000000000000000");
    assert_int_equal(out.size, FIRST + 8);
    uint8_t head[HEAD];
    memcpy(head, out.data, HEAD);
    memset(head + AT_HASH, 0, 8);
    assert_true(sl_hash(head, HEAD) == sl_table_u64(out.data + AT_HASH));
    assert_true(sl_hash(out.data + HEAD, out.size - HEAD) == sl_table_u64(out.data + AT_CONTENTS));
    struct sl_table t = opened(&sectioned);
    assert_true(sl_table_is_intact(&t));
    assert_int_equal(t.sections[NOTE].size, 5);
    assert_memory_equal(t.sections[NOTE].data, "hello", 5);
    assert_null(t.sections[STRINGS].data);
}

TEST(columns_use_the_bits_of_their_largest_value)
{
    static const uint64_t values[][2] = {{1, 0}, {5, 0}, {7, 0}};
    struct rows rows = {values};
    struct sl_table_column_source source = {fill_rows, &rows, 3, 2, {7, 0}};
    struct sl_table_writer w;
    struct sl_column columns[2];
    assert_true(sl_table_writer_init(&w, &sectioned, NULL, NULL));
    assert_true(sl_table_add_columns(&w, NUMBERS, &source));
    assert_true(sl_table_finish(&w, &out));
    struct sl_table t = opened(&sectioned);
    expect_bytes(t.sections[NUMBERS], "0300000000000000"
                                      "e901"
                                      "0000000000000000"
                                      "000000000000"
                                      "0000000000000000");
    assert_true(sl_table_columns(t.sections[NUMBERS], 3, 2, columns));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(sl_column_get(&columns[0], i), values[i][0]);
    assert_int_equal(sl_column_get(&columns[1], 2), 0);
}

TEST(units_and_strings_precede_their_offsets)
{
    struct sl_table_unit_source units = {write_unit, NULL, 4, 2};
    struct sl_table_string_source strings = {get_word, words, 4};
    struct sl_table_writer w;
    assert_true(sl_table_writer_init(&w, &sectioned, NULL, NULL));
    assert_true(sl_table_add_units(&w, UNITS, OFFSETS, &units));
    assert_true(sl_table_add_strings(&w, STRINGS, GROUPS, &strings));
    assert_true(sl_table_finish(&w, &out));
    struct sl_table t = opened(&sectioned);
    expect_bytes(t.sections[UNITS], "01"
                                    "0202"
                                    "030303");
    expect_bytes(t.sections[OFFSETS], "00000000"
                                      "00000000"
                                      "01000000"
                                      "03000000"
                                      "06000000");
    expect_bytes(t.sections[STRINGS], "0161"
                                      "01026263"
                                      "020164"
                                      "000162");
    expect_bytes(t.sections[GROUPS], "00000000"
                                     "0c000000");
    assert_true(t.sections[UNITS].data < t.sections[OFFSETS].data);
}

TEST(sections_of_fixed_layout_have_no_gaps)
{
    struct sl_table_string_source strings = {get_word, words, 4};
    struct sl_table_writer w;
    struct sl_table_strings read;
    assert_true(sl_table_writer_init(&w, &fixed, NULL, NULL));
    sl_table_section(&w, 1);
    sl_buf_u8(&w.file, 0xEE);
    assert_true(sl_table_add_strings(&w, 3, 2, &strings));
    sl_table_put(&w, 8, w.sections[2].offset, 8);
    assert_true(sl_table_finish(&w, &out));
    assert_true(sl_hash(out.data, 16) == sl_table_u64(out.data + 16));
    expect_bytes((struct sl_bytes){out.data, 16}, "46495844"
                                                  "0100"
                                                  "0000"
                                                  "2100000000000000");
    expect_bytes((struct sl_bytes){out.data + 24, out.size - 24}, "ee"
                                                                  "00000000"
                                                                  "0c000000"
                                                                  "016101026263020164000162");
    struct sl_table t = opened(&fixed);
    assert_true(sl_table_locate_sections(&t, (const uint64_t[]){1, 8, 12}, 3));
    assert_true(sl_table_strings(t.sections[2], t.sections[3], 4, &read));
    assert_true(sl_table_strings_sorted(&read));
    assert_false(sl_table_locate_sections(&t, (const uint64_t[]){1, 8, 11}, 3)); /* something is left */
    assert_false(sl_table_locate_sections(&t, (const uint64_t[]){1, 8, 13}, 3));
    assert_false(sl_table_locate_sections(&t, (const uint64_t[]){UINT64_MAX, 8, 12}, 3));
}

TEST(table_is_appended_to_existing_bytes)
{
    struct sl_table_writer w;
    struct sl_table t;
    sl_buf_cstr(&out, "abc");
    assert_true(sl_table_writer_init(&w, &sectioned, NULL, NULL));
    sl_table_section(&w, NOTE);
    sl_buf_cstr(&w.file, "x");
    assert_true(sl_table_finish(&w, &out));
    assert_memory_equal(out.data, "abc\0\0\0\0", 8);
    struct sl_bytes rest = {out.data + 8, out.size - 8};
    assert_int_equal(sl_table_open(rest, &sectioned, &t, &error), SL_OK);
}

/* ---- reading back ---- */

static char decimals[5000][32];

static void write_all(const struct sl_parallel *parallel, struct sl_buf *file)
{
    struct sl_table_column_source numbers = {fill_numbers, NULL, 20001, 8, {0}};
    struct sl_table_unit_source units = {write_unit, NULL, 1000, 7};
    struct sl_table_string_source strings = {get_decimal, decimals, 5000};
    struct sl_table_writer w;
    for (unsigned c = 0; c < 8; c++)
        numbers.max[c] = (UINT64_C(1) << width_of(c)) - 1;
    for (unsigned i = 0; i < 5000; i++)
        snprintf(decimals[i], sizeof decimals[i], "name::of::%05u", i * 2);
    assert_true(sl_table_writer_init(&w, &sectioned, parallel, NULL));
    assert_true(sl_table_add_columns(&w, NUMBERS, &numbers));
    assert_true(sl_table_add_units(&w, UNITS, OFFSETS, &units));
    assert_true(sl_table_add_strings(&w, STRINGS, GROUPS, &strings));
    assert_true(sl_table_finish(&w, file));
}

TEST(written_tables_read_back)
{
    struct sl_column columns[8];
    struct sl_table_units units;
    struct sl_table_strings strings;
    struct sl_buf text = {0};
    write_all(NULL, &out);
    struct sl_table t = opened(&sectioned);
    assert_true(sl_table_columns(t.sections[NUMBERS], 20001, 8, columns));
    for (unsigned c = 0; c < 8; c++)
        for (uint64_t i = 0; i < 20001; i++)
            if (sl_column_get(&columns[c], i) != number(i, width_of(c)))
                fail_msg("column %u, row %u", c, (unsigned)i);
    assert_true(sl_table_units(t.sections[OFFSETS], t.sections[UNITS], 1000, &units));
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(sl_table_unit(&units, i).size, i % 5);
    assert_true(sl_table_strings(t.sections[GROUPS], t.sections[STRINGS], 5000, &strings));
    assert_true(sl_table_strings_sorted(&strings));
    for (uint32_t i = 0; i < 5000; i++) {
        char between[32];
        sl_buf_clear(&text);
        sl_table_string(&strings, i, &text);
        assert_true(sl_str_equal(sl_buf_view(&text), sl_str(decimals[i])));
        assert_int_equal(sl_table_strings_before(&strings, sl_str(decimals[i])), i);
        snprintf(between, sizeof between, "name::of::%05u", i * 2 + 1);
        assert_int_equal(sl_table_strings_before(&strings, sl_str(between)), i + 1);
        assert_true(sl_table_string_is(&strings, i, sl_str(decimals[i])));
        assert_false(sl_table_string_is(&strings, i, sl_str(between)));
        assert_false(sl_table_string_is(&strings, i + 1, sl_str(decimals[i])));
    }
    sl_table_string(&strings, 5000, &text);
    assert_int_equal(text.size, strlen(decimals[4999]));
    sl_buf_free(&text);
}

/* All texts of up to `longest` of the first `letters` letters. Returns their number. */
static size_t make_texts(char (*texts)[32], size_t longest, size_t letters)
{
    size_t count = 1;
    texts[0][0] = '\0';
    for (size_t from = 0; from < count && strlen(texts[from]) < longest; from++)
        for (size_t i = 0; i < letters; i++) {
            memcpy(texts[count], texts[from], 32);
            texts[count][strlen(texts[from])] = (char)('a' + i);
            texts[count++][strlen(texts[from]) + 1] = '\0';
        }
    return count;
}

static int by_text(const void *left, const void *right)
{
    return strcmp(left, right);
}

/* Texts that are prefixes of others, that share prefixes, and that are not there. */
TEST(strings_are_found_by_text)
{
    static char texts[1024][32], asked[4096][32];
    size_t count = make_texts(texts, 5, 2), asked_count = make_texts(asked, 6, 3);
    struct sl_table_string_source source = {get_decimal, texts, count};
    struct sl_table_writer w;
    struct sl_table_strings strings;
    qsort(texts, count, sizeof *texts, by_text);
    assert_true(sl_table_writer_init(&w, &sectioned, NULL, NULL));
    assert_true(sl_table_add_strings(&w, STRINGS, GROUPS, &source));
    assert_true(sl_table_finish(&w, &out));
    struct sl_table t = opened(&sectioned);
    assert_true(sl_table_strings(t.sections[GROUPS], t.sections[STRINGS], count, &strings));
    for (size_t i = 0; i < asked_count; i++) {
        uint32_t before = 0;
        while (before < count && strcmp(texts[before], asked[i]) < 0)
            before++;
        assert_int_equal(sl_table_strings_before(&strings, sl_str(asked[i])), before);
        for (uint32_t id = 0; id <= count; id++)
            assert_int_equal(sl_table_string_is(&strings, id, sl_str(asked[i])),
                             id < count && strcmp(texts[id], asked[i]) == 0);
    }
}

TEST(workers_write_the_same_bytes)
{
    const struct sl_parallel parallel = parallel_of(3);
    struct sl_buf shared = {0};
    write_all(NULL, &out);
    write_all(&parallel, &shared);
    assert_int_equal(shared.size, out.size);
    assert_memory_equal(shared.data, out.data, out.size);
    sl_buf_free(&shared);
}

TEST(empty_sections_are_read)
{
    struct sl_table_column_source numbers = {fill_numbers, NULL, 0, 8, {0}};
    struct sl_table_string_source strings = {get_word, words, 0};
    struct sl_table_writer w;
    struct sl_table_strings read;
    struct sl_column columns[8];
    assert_true(sl_table_writer_init(&w, &sectioned, NULL, NULL));
    assert_true(sl_table_add_columns(&w, NUMBERS, &numbers));
    assert_true(sl_table_add_strings(&w, STRINGS, GROUPS, &strings));
    assert_true(sl_table_finish(&w, &out));
    struct sl_table t = opened(&sectioned);
    assert_true(sl_table_columns(t.sections[NUMBERS], 0, 8, columns));
    assert_true(sl_table_strings(t.sections[GROUPS], t.sections[STRINGS], 0, &read));
    assert_int_equal(sl_table_strings_before(&read, SL_STR("a")), 0);
}

TEST(numbers_of_more_than_56_bits_are_refused)
{
    struct sl_table_column_source numbers = {fill_numbers, NULL, 1, 1, {UINT64_C(1) << 56}};
    struct sl_table_writer w;
    assert_true(sl_table_writer_init(&w, &sectioned, NULL, NULL));
    assert_false(sl_table_add_columns(&w, NUMBERS, &numbers));
    assert_true(w.too_large);
    assert_false(sl_table_finish(&w, &out));
    assert_int_equal(out.size, 0);
}

/* ---- damage ---- */

static void expect_refusal(const char *message)
{
    struct sl_table t;
    assert_int_equal(sl_table_open(sl_buf_bytes(&out), &sectioned, &t, &error), SL_MALFORMED);
    assert_string_equal(error.message, message);
}

static void mend(void)
{
    size_t size = HEADER + sl_table_u32(out.data + AT_SECTIONS) * 24;
    uint64_t hash = sl_table_head_hash(&sectioned, out.data, size);
    memcpy(out.data + AT_HASH, &hash, 8);
}

TEST(other_headers_are_refused)
{
    size_t size;
    write_all(NULL, &out);
    size = out.size;
    out.size = HEADER - 1;
    expect_refusal("not a test table");
    out.size = HEADER;
    expect_refusal("test table: the section table has too many entries or is cut off");
    out.size = size;
    out.data[0] ^= 1;
    expect_refusal("not a test table");
    out.data[0] ^= 1;
    for (size_t at = 4; at < HEADER + 5 * 24; at++) {
        bool hashed = at == 6 || at == 7; /* the minor version may be any */
        struct sl_table t;
        out.data[at] ^= 0x10;
        assert_int_equal(sl_table_open(sl_buf_bytes(&out), &sectioned, &t, &error), SL_MALFORMED);
        if (hashed)
            assert_string_equal(error.message, "test table: the header does not match its checksum");
        out.data[at] ^= 0x10;
    }
    out.data[4]++;
    expect_refusal("unsupported version of test table");
    out.data[4]--;
    out.data[6]++;
    mend();
    opened(&sectioned);
}

TEST(sections_outside_the_file_are_refused)
{
    struct sl_table_unit_source units = {write_unit, NULL, 4, 2};
    struct sl_table_writer w;
    assert_true(sl_table_writer_init(&w, &sectioned, NULL, NULL));
    assert_true(sl_table_add_units(&w, UNITS, OFFSETS, &units));
    assert_true(sl_table_finish(&w, &out));
    uint8_t *entry = out.data + HEADER + 24;
    for (unsigned at = 8; at < 24; at++) {
        uint8_t before = entry[at];
        entry[at] = at == 8 ? (uint8_t)(before + 4) : 0xFF; /* not aligned, or outside */
        mend();
        expect_refusal("test table: a section is not aligned or extends beyond the file");
        entry[at] = before;
    }
    out.data[AT_SECTIONS] = 17;
    expect_refusal("test table: the section table has too many entries or is cut off");
}

TEST(damaged_contents_fail_the_checksum)
{
    write_all(NULL, &out);
    out.data[out.size / 2] ^= 1;
    struct sl_table t = opened(&sectioned);
    assert_false(sl_table_is_intact(&t));
}

TEST(columns_outside_their_section_are_refused)
{
    static uint8_t bytes[8 + 16 + 8] = {8, 0};
    struct sl_column columns[2];
    assert_true(sl_table_columns((struct sl_bytes){bytes, 32}, 8, 2, columns));
    assert_false(sl_table_columns((struct sl_bytes){bytes, 31}, 8, 2, columns));
    assert_false(sl_table_columns((struct sl_bytes){bytes, 32}, 9, 2, columns));
    assert_false(sl_table_columns((struct sl_bytes){bytes, 32}, UINT64_MAX, 2, columns));
    assert_false(sl_table_columns((struct sl_bytes){bytes, 7}, 0, 0, columns));
    bytes[0] = 57;
    assert_false(sl_table_columns((struct sl_bytes){bytes, 32}, 0, 1, columns));
    bytes[0] = 8;
}

/* Every byte of offsets and texts with every bit turned: what comes is wrong or nothing, and within bounds. */
TEST(damaged_strings_stay_within_bounds)
{
    struct sl_table_string_source source = {get_word, words, 4};
    struct sl_table_writer w;
    assert_true(sl_table_writer_init(&w, &fixed, NULL, NULL));
    assert_true(sl_table_add_strings(&w, 2, 1, &source));
    assert_true(sl_table_finish(&w, &out));
    struct sl_buf text = {0};
    size_t size = out.size - fixed.header_size, damaged = 0;
    uint8_t *bytes = malloc(size); /* its own block: nothing may be read behind it */
    struct sl_table_strings strings;
    assert_true(sl_table_strings((struct sl_bytes){bytes, 8}, (struct sl_bytes){bytes + 8, size - 8}, 4, &strings));
    for (size_t bit = 0; bit < size * 8; bit++) {
        memcpy(bytes, out.data + fixed.header_size, size);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        damaged += !sl_table_strings_sorted(&strings);
        for (uint32_t i = 0; i < 4; i++) {
            sl_buf_clear(&text);
            sl_table_string(&strings, i, &text);
            assert_true(text.size < size * 2);
            assert_true(sl_table_strings_before(&strings, sl_str(words[i])) <= 4);
        }
    }
    assert_true(damaged > size);
    assert_false(sl_table_strings((struct sl_bytes){bytes, 8}, (struct sl_bytes){bytes + 8, 5}, 17, &strings));
    assert_false(sl_table_strings((struct sl_bytes){bytes, 8}, (struct sl_bytes){bytes + 8, 5}, UINT64_MAX, &strings));
    free(bytes);
    sl_buf_free(&text);
}

TEST_FILE(.teardown = drop);
