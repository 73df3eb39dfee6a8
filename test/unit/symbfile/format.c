/* Reading and writing symbfiles: the published examples, every way in which a file can be wrong, any chunking. */
#include "../check.h"
#include "records.h"

#define MAGIC "73796d6266696c65"

/* Reads hex digits in pieces of `step` bytes; the records as text, or the number of the problem. */
static enum sl_symbfile_problem read_hex(const char *hex, size_t step, struct collector *c)
{
    struct sl_bytes bytes = from_hex(hex);
    struct sl_error error;
    collector_init(c);
    struct sl_symbfile_reader *r = sl_symbfile_reader_new(&c->sink);
    enum sl_code code = SL_OK;
    for (size_t at = 0; at < bytes.size && code == SL_OK; at += step) {
        size_t size = bytes.size - at < step ? bytes.size - at : step;
        uint8_t *piece = malloc(size); /* so that reading past a piece is seen */
        memcpy(piece, bytes.data + at, size);
        code = sl_symbfile_reader_feed(r, (struct sl_bytes){piece, size}, &error);
        free(piece);
    }
    if (code == SL_OK)
        code = sl_symbfile_reader_finish(r, &error);
    enum sl_symbfile_problem problem = sl_symbfile_reader_problem(r);
    assert_int_equal(code, problem ? SL_MALFORMED : SL_OK);
    sl_symbfile_reader_free(r);
    free((void *)(uintptr_t)bytes.data);
    return problem;
}

static void gives(const char *hex, const char *expected)
{
    static const size_t steps[] = {1, 2, 7, 64, SIZE_MAX / 2};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct collector c;
        assert_int_equal(read_hex(hex, steps[i], &c), SL_SYMBFILE_FINE);
        assert_string_equal(collector_text(&c), expected);
        sl_buf_free(&c.text);
    }
}

static void refuses(const char *hex, enum sl_symbfile_problem problem)
{
    static const size_t steps[] = {1, 3, SIZE_MAX / 2};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct collector c;
        assert_int_equal(read_hex(hex, steps[i], &c), problem);
        sl_buf_free(&c.text);
    }
}

TEST(published_files_are_read)
{
    gives(MAGIC "0001", "");
    gives(MAGIC "00010004", "");
    gives(MAGIC "0001170260a30210201a01662203662e6342080a02031012020a35",
          "range 123 +20 d0 f [f.c] call -:0 {+3:10 +13:53}\n");
    gives(MAGIC "0001080260802010401a016605040a01660a000b0308201201001a01012201000602086010084800",
          "range 1000 +40 d0 f - call -:0 {}\npad 1010 f[]:0\nrange 1040 +8 d0 f - call -:0 {}\n");
    /* numbers of several bytes: an address, deltas, the largest one */
    gives(MAGIC "0001"
                "080260959aef3a1a0166"
                "060208ff011a0166"
                "060208"
                "80021a0166"
                "0e0260ffffffffffffffffff011a0166",
          "range 75bcd15 +0 d0 f - call -:0 {}\nrange 75bcc95 +0 d0 f - call -:0 {}\n"
          "range 75bcd15 +0 d0 f - call -:0 {}\nrange ffffffffffffffff +0 d0 f - call -:0 {}\n");
    gives(MAGIC "00010209dead080260802010401a0166", "range 1000 +40 d0 f - call -:0 {}\n");
}

TEST(malformed_files_report_the_fault)
{
    refuses("", SL_SYMBFILE_SHORT);
    refuses("73796d6266", SL_SYMBFILE_SHORT);
    refuses("73796d6266696c660001", SL_SYMBFILE_NO_MAGIC);
    refuses(MAGIC, SL_SYMBFILE_TRUNCATED);
    refuses(MAGIC "0002", SL_SYMBFILE_NO_HEADER);
    refuses(MAGIC "0000", SL_SYMBFILE_NO_HEADER);
    refuses(MAGIC "00010001", SL_SYMBFILE_BAD_TYPE);
    refuses(MAGIC "00010000", SL_SYMBFILE_BAD_TYPE);
    refuses(MAGIC "0001008080808008", SL_SYMBFILE_BAD_TYPE);
    refuses(MAGIC "00018180800802", SL_SYMBFILE_BAD_SIZE);
    refuses(MAGIC "00018080808080808080808001", SL_SYMBFILE_BAD_VARINT);
    refuses(MAGIC "0001e58ea6", SL_SYMBFILE_TRUNCATED);
    refuses(MAGIC "000105", SL_SYMBFILE_TRUNCATED);
    refuses(MAGIC "00010502", SL_SYMBFILE_TRUNCATED);
    refuses(MAGIC "00010502600110", SL_SYMBFILE_TRUNCATED);
    refuses(MAGIC "00010102ff", SL_SYMBFILE_BAD_MESSAGE);
    refuses(MAGIC "0001060260011a02c080", SL_SYMBFILE_BAD_MESSAGE); /* overlong UTF-8 */
    refuses(MAGIC "000106040a04eda08041", SL_SYMBFILE_BAD_MESSAGE); /* a surrogate in the table */
    refuses(MAGIC "0001090260011a004203"
                  "0a0101",
            SL_SYMBFILE_BAD_COLUMNS);
    refuses(MAGIC "00010702082010081a0166", SL_SYMBFILE_BAD_DELTA);
    refuses(MAGIC "00010002", SL_SYMBFILE_BAD_FIELD);
    refuses(MAGIC "0001020260 01", SL_SYMBFILE_BAD_FIELD);
    refuses(MAGIC "0001040260014800", SL_SYMBFILE_BAD_REFERENCE);
    refuses(MAGIC "00010b0328011201001a0100220100", SL_SYMBFILE_BAD_REFERENCE);
    refuses(MAGIC "0001050328 01120100", SL_SYMBFILE_BAD_COLUMNS);
    refuses(MAGIC "0001130260011a00420d0a06ffffffff0f0112020101", SL_SYMBFILE_TRUNCATED);
    refuses(MAGIC "0001120260011a00420c0a06ffffffff0f0112020101", SL_SYMBFILE_BAD_OFFSET);
}

TEST(protobuf_wire_rules_are_followed)
{
    /* the last member of a oneof wins: "a", then reference 0 = "tt" */
    gives(MAGIC "0001"
                "04040a027474"
                "0702600148001a0161",
          "range 1 +0 d0 a - call -:0 {}\n");
    gives(MAGIC "0001"
                "04040a027474"
                "070260011a01614800",
          "range 1 +0 d0 tt - call -:0 {}\n");
    /* numbers not packed, unknown fields, padded varints */
    gives(MAGIC "0001"
                "0e0260011a0042080801100208031004",
          "range 1 +0 d0  - call -:0 {+1:2 +4:4}\n");
    gives(MAGIC "8000"
                "81808000"
                "8580000260011a0161",
          "range 1 +0 d0 a - call -:0 {}\n" + 0);
}

TEST(string_table_replaces_the_one_before)
{
    gives(MAGIC "0001"
                "03040a0161"
                "040260014800"
                "03040a0162"
                "040208024800",
          "range 1 +0 d0 a - call -:0 {}\nrange 2 +0 d0 b - call -:0 {}\n");
    refuses(MAGIC "0001"
                  "03040a0161"
                  "0004"
                  "040260014800",
            SL_SYMBFILE_BAD_REFERENCE);
}

static struct sl_buf write_golden(void)
{
    struct sl_buf out = {0};
    struct sl_error error;
    struct sl_symbfile_writer *w = sl_symbfile_writer_new(append_output, &out, NULL);
    for (size_t i = 0; i < GOLDEN_RANGES; i++)
        assert_int_equal(sl_symbfile_write_range(w, &golden_ranges()[i], &error), SL_OK);
    assert_int_equal(sl_symbfile_writer_finish(w, &error), SL_OK);
    sl_symbfile_writer_free(w);
    return out;
}

TEST(published_ranges_are_reproduced)
{
    char digest[65];
    struct sl_buf out = write_golden();
    sha256_hex(sl_buf_bytes(&out), digest);
    assert_int_equal(out.size, 297);
    assert_string_equal(digest, "f16f4aa3772c3c2db697df8254b3a7432501e41ccc599fc1e8f09b1dd7eb2135");
    struct collector c;
    collector_init(&c);
    assert_int_equal(sl_symbfile_read(sl_buf_bytes(&out), &c.sink, NULL), SL_OK);
    assert_non_null(strstr(collector_text(&c), "range 64c +c d4 d_inline [" GOLDEN_FILE "] call [" GOLDEN_FILE
                                               "]:27 {+0:23}\nrange 7f0 +14 d0 a ["));
    sl_buf_free(&c.text);
    sl_buf_free(&out);
}

TEST(published_return_pads_are_read)
{
    static const struct {
        uint64_t va;
        struct {
            const char *name;
            uint32_t line;
        } frames[5];
    } pads[] = {
        {0x64b, {{"main", 39}}},
        {0x657, {{"main", 40}, {"a_inline", 35}, {"b_inline", 31}, {"c_inline", 27}, {"d_inline", 23}}},
        {0x7fb, {{"a", 19}}},
        {0x7df, {{"b", 15}}},
        {0x7cb, {{"c", 11}}},
        {0x7b3, {{"d", 7}}},
    };
    char digest[65];
    struct sl_buf out = {0};
    struct sl_symbfile_writer *w = sl_symbfile_writer_new(append_output, &out, NULL);
    for (size_t i = 0; i < sizeof pads / sizeof *pads; i++) {
        struct sl_symbfile_frame frames[5];
        size_t count = 0;
        for (; count < 5 && pads[i].frames[count].name; count++)
            frames[count] = (struct sl_symbfile_frame){text(pads[i].frames[count].name), text(GOLDEN_FILE),
                                                       pads[i].frames[count].line};
        struct sl_symbfile_pad pad = {pads[i].va, frames, count};
        assert_int_equal(sl_symbfile_write_pad(w, &pad, NULL), SL_OK);
    }
    assert_int_equal(sl_symbfile_writer_finish(w, NULL), SL_OK);
    sha256_hex(sl_buf_bytes(&out), digest);
    assert_int_equal(out.size, 225);
    assert_string_equal(digest, "17806e46f06bf953e94b07e017d2d053f8d2f020b4578a45bd4d6e5f1b95ee0a");
    sl_symbfile_writer_free(w);
    sl_buf_free(&out);
}

TEST(empty_writer_gives_an_empty_file)
{
    struct sl_buf out = {0};
    struct sl_symbfile_writer *w = sl_symbfile_writer_new(append_output, &out, NULL);
    assert_int_equal(sl_symbfile_writer_finish(w, NULL), SL_OK);
    struct sl_bytes expected = from_hex(MAGIC "00010004");
    assert_int_equal(out.size, expected.size);
    assert_memory_equal(out.data, expected.data, out.size);
    free((void *)(uintptr_t)expected.data);
    sl_symbfile_writer_free(w);
    sl_buf_free(&out);
}

/* A thousand records of both kinds, far apart and near, through a file. */
TEST(records_survive_a_round_trip)
{
    struct sl_buf out = {0};
    struct collector before, after;
    struct sl_symbfile_writer *w = sl_symbfile_writer_new(append_output, &out, NULL);
    collector_init(&before);
    collector_init(&after);
    uint64_t random = 88172645463325252u;
    for (unsigned i = 0; i < 1000; i++) {
        char name[32], file[32];
        struct sl_symbfile_line lines[4];
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        snprintf(name, sizeof name, "f%u", (unsigned)(random >> 20 & 255));
        snprintf(file, sizeof file, "%u.c", (unsigned)(random >> 40 & 1023));
        for (unsigned j = 0; j < 4; j++)
            lines[j] = (struct sl_symbfile_line){j * 7 + (random & 3), (uint32_t)(random >> 32) + j};
        struct sl_symbfile_frame frames[2] = {{text(name), text(file), 3}, {text(file), text(""), 0}};
        struct sl_symbfile_range range = {
            random, (uint32_t)random, i & 7, text(name), text(i & 1 ? file : NULL), text(i & 2 ? "" : NULL), i, lines,
            i % 5};
        struct sl_symbfile_pad pad = {random >> (i & 31), frames, i % 3};
        if (i & 8) {
            assert_int_equal(sl_symbfile_write_pad(w, &pad, NULL), SL_OK);
            before.sink.pad(&before.sink, &pad, NULL);
        } else {
            assert_int_equal(sl_symbfile_write_range(w, &range, NULL), SL_OK);
            before.sink.range(&before.sink, &range, NULL);
        }
    }
    assert_int_equal(sl_symbfile_writer_records(w), 1000);
    assert_int_equal(sl_symbfile_writer_finish(w, NULL), SL_OK);
    assert_int_equal(sl_symbfile_read(sl_buf_bytes(&out), &after.sink, NULL), SL_OK);
    assert_string_equal(collector_text(&after), collector_text(&before));
    sl_symbfile_writer_free(w);
    sl_buf_free(&out);
    sl_buf_free(&before.text);
    sl_buf_free(&after.text);
}

/* Lists, tables and messages whose sizes take one byte, two and three. */
TEST(sizes_of_every_width_survive_a_round_trip)
{
    enum { LONGEST = 16400 };
    static const unsigned counts[] = {0,   1,   60,   61,   62,   63,    64,    124,    127,
                                      128, 129, 8186, 8190, 8192, 16383, 16384, LONGEST};
    struct sl_buf out = {0};
    struct collector before, after;
    struct sl_symbfile_writer *w = sl_symbfile_writer_new(append_output, &out, NULL);
    struct sl_symbfile_line *lines = calloc(LONGEST, sizeof *lines);
    struct sl_symbfile_frame *frames = calloc(LONGEST, sizeof *frames);
    char *name = calloc(1, LONGEST + 1);
    collector_init(&before);
    collector_init(&after);
    for (unsigned i = 0; i < LONGEST; i++) {
        lines[i] = (struct sl_symbfile_line){i, i & 64 ? 0x10000000 : 1};
        frames[i] = (struct sl_symbfile_frame){text("f"), text(i & 1 ? "f.c" : ""), i};
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        memset(name, 'a' + (int)i, counts[i]);
        struct sl_symbfile_range range = {UINT64_MAX / (i + 1), UINT32_MAX, UINT32_MAX, text(name), text("f.c"),
                                          text("g.c"),          UINT32_MAX, lines,      counts[i]};
        struct sl_symbfile_pad pad = {i, frames, counts[i]};
        assert_int_equal(sl_symbfile_write_range(w, &range, NULL), SL_OK);
        before.sink.range(&before.sink, &range, NULL);
        assert_int_equal(sl_symbfile_write_pad(w, &pad, NULL), SL_OK);
        before.sink.pad(&before.sink, &pad, NULL);
    }
    assert_int_equal(sl_symbfile_writer_finish(w, NULL), SL_OK);
    assert_int_equal(sl_symbfile_read(sl_buf_bytes(&out), &after.sink, NULL), SL_OK);
    assert_string_equal(collector_text(&after), collector_text(&before));
    sl_symbfile_writer_free(w);
    sl_buf_free(&out);
    sl_buf_free(&before.text);
    sl_buf_free(&after.text);
    free(frames);
    free(lines);
    free(name);
}

/* Latin-1, and a sequence that is cut off. */
TEST(texts_become_valid_utf8)
{
    struct sl_buf out = {0};
    struct collector after;
    struct sl_symbfile_writer *w = sl_symbfile_writer_new(append_output, &out, NULL);
    struct sl_symbfile_range range = {
        .va = 16, .length = 4, .function = text("gr\xFC\xDF"), .file = text("\xE2\x82/a.c")};
    collector_init(&after);
    assert_int_equal(sl_symbfile_write_range(w, &range, NULL), SL_OK);
    assert_int_equal(sl_symbfile_write_range(w, &range, NULL), SL_OK);
    assert_int_equal(sl_symbfile_writer_finish(w, NULL), SL_OK);
    assert_int_equal(sl_symbfile_read(sl_buf_bytes(&out), &after.sink, NULL), SL_OK);
    assert_non_null(strstr(collector_text(&after), "gr\uFFFD\uFFFD"));
    assert_non_null(strstr(collector_text(&after), "\uFFFD/a.c"));
    sl_symbfile_writer_free(w);
    sl_buf_free(&out);
    sl_buf_free(&after.text);
}

/* More text than one table holds: several batches, each with a table of its own, one chain of addresses. */
TEST(many_batches_keep_one_address_chain)
{
    enum { NAME = 60000, COUNT = 700 };
    struct sl_buf out = {0};
    struct sl_error error;
    char *name = malloc(NAME + 1);
    struct sl_symbfile_writer *w = sl_symbfile_writer_new(append_output, &out, NULL);
    memset(name, 'x', NAME);
    name[NAME] = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        int n = snprintf(name, NAME, "%08u", i);
        name[n] = 'x';
        struct sl_symbfile_frame place = {text(name), text("f.c"), i};
        struct sl_symbfile_pad pad = {1000 - i, &place, 1};
        assert_int_equal(sl_symbfile_write_pad(w, &pad, &error), SL_OK);
    }
    assert_int_equal(sl_symbfile_writer_finish(w, &error), SL_OK);
    struct collector c;
    collector_init(&c);
    assert_int_equal(sl_symbfile_read(sl_buf_bytes(&out), &c.sink, &error), SL_OK);
    const char *all = collector_text(&c), *at = all;
    for (uint32_t i = 0; i < COUNT; i++, at = strchr(at, '\n') + 1) {
        char expected[64];
        int n = snprintf(expected, sizeof expected, "pad %x %08uxxx", 1000 - i, i);
        assert_memory_equal(at, expected, (size_t)n);
    }
    sl_symbfile_writer_free(w);
    sl_buf_free(&c.text);
    sl_buf_free(&out);
    free(name);
}

TEST(hostile_sizes_take_no_memory)
{
    /* says 16 MiB, has nothing */
    refuses(MAGIC "00018080800802", SL_SYMBFILE_TRUNCATED);
    /* a table of eight million empty strings */
    struct sl_buf file = {0};
    struct collector c;
    sl_buf_add(&file, "symbfile\0\1", 10);
    sl_buf_uleb(&file, SL_SYMBFILE_MAX_MESSAGE);
    sl_buf_u8(&file, 4);
    for (size_t i = 0; i < SL_SYMBFILE_MAX_MESSAGE / 2; i++)
        sl_buf_u16(&file, 0x000A);
    collector_init(&c);
    struct sl_symbfile_reader *r = sl_symbfile_reader_new(&c.sink);
    assert_int_equal(sl_symbfile_reader_feed(r, sl_buf_bytes(&file), NULL), SL_MALFORMED);
    assert_int_equal(sl_symbfile_reader_problem(r), SL_SYMBFILE_BAD_MESSAGE);
    sl_symbfile_reader_free(r);
    sl_buf_free(&file);
}

static enum sl_code write_names(struct sl_budget *budget, unsigned count, size_t size, struct sl_error *error)
{
    static char names[1 << 16];
    struct sl_buf out = {0};
    struct sl_symbfile_writer *w = sl_symbfile_writer_new(append_output, &out, budget);
    enum sl_code code = SL_OK;
    memset(names, 'n', sizeof names);
    for (unsigned i = 0; i < count && code == SL_OK; i++) {
        struct sl_symbfile_range range = {
            .va = i, .length = 1, .function = {{names, size - i % 2}, SL_SYMBFILE_INLINE}};
        code = sl_symbfile_write_range(w, &range, error);
    }
    if (code == SL_OK)
        code = sl_symbfile_writer_finish(w, error);
    sl_symbfile_writer_free(w);
    sl_buf_free(&out);
    return code;
}

TEST(writer_keeps_to_its_budget)
{
    struct sl_budget budget;
    struct sl_error error;
    sl_budget_init(&budget, 0);
    assert_int_equal(write_names(&budget, 100, 65536, &error), SL_OK);
    assert_int_equal(write_names(&budget, 2000, 65536, &error), SL_MALFORMED);
    assert_string_equal(error.message,
                        "reading the file needs more work than allowed for a file of 0 bytes; it may be damaged");
    sl_budget_init(&budget, 0);
    sl_budget_limit(&budget, 1 << 20, NULL, NULL);
    assert_int_equal(write_names(&budget, 2, 32, &error), SL_OK);
    assert_int_equal(atomic_load(&budget.memory), 1 << 20); /* all of it came back */
    assert_int_equal(write_names(&budget, 100000, 32, &error), SL_UNSUPPORTED);
    assert_string_equal(error.message, "reading the file needs more than 1 MiB of memory");
    assert_int_equal(atomic_load(&budget.memory), 1 << 20);
}
