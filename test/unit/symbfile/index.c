/* Lookups in the index made of symbfiles. */
#include "../check.h"
#include "records.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"

struct fixture {
    struct sl_symbfile_builder *builder;
    struct sl_buf bytes;
    struct sl_symbfile_index index;
};

static void begin(struct fixture *f)
{
    *f = (struct fixture){.builder = sl_symbfile_builder_new(-1)};
}

static void add(struct fixture *f, const struct sl_symbfile_range *range)
{
    struct sl_symbfile_sink *sink = sl_symbfile_builder_sink(f->builder);
    assert_int_equal(sink->range(sink, range, NULL), SL_OK);
}

static void add_pad(struct fixture *f, uint64_t va, const struct sl_symbfile_frame *frames, size_t count)
{
    struct sl_symbfile_sink *sink = sl_symbfile_builder_sink(f->builder);
    struct sl_symbfile_pad pad = {va, frames, count};
    assert_int_equal(sink->pad(sink, &pad, NULL), SL_OK);
}

static void build(struct fixture *f)
{
    struct sl_error error;
    assert_int_equal(sl_symbfile_builder_finish(f->builder, &f->bytes, &error), SL_OK);
    assert_int_equal(sl_symbfile_index_open(sl_buf_bytes(&f->bytes), &f->index, &error), SL_OK);
    assert_int_equal(sl_symcache_verify(&f->index.ranges, &error), SL_OK);
}

static void end(struct fixture *f)
{
    sl_symbfile_builder_free(f->builder);
    sl_buf_free(&f->bytes);
}

/* "main F:39, f f.c:3 @<start>", outermost first; an unknown file is "-". */
static const char *chain_text(const struct sl_symcache *cache, const struct sl_location *chain, size_t count)
{
    static char line[1024];
    struct sl_buf out = {0};
    for (size_t i = count; i--;) {
        struct sl_symcache_function function;
        assert_true(sl_symcache_function(cache, chain[i].function, &function));
        sl_symcache_string(cache, function.name, &out);
        sl_buf_u8(&out, ' ');
        size_t at = out.size;
        sl_symcache_file(cache, chain[i].file, &out);
        if (out.size - at == sizeof GOLDEN_FILE - 1 && memcmp(out.data + at, GOLDEN_FILE, out.size - at) == 0) {
            out.size = at;
            sl_buf_u8(&out, 'F');
        }
        if (out.size == at)
            sl_buf_u8(&out, '-');
        sl_buf_printf(&out, ":%u%s", chain[i].line, i ? ", " : "");
    }
    snprintf(line, sizeof line, "%.*s", (int)out.size, out.data ? (char *)out.data : "");
    sl_buf_free(&out);
    return line;
}

static const char *at(const struct fixture *f, uint64_t va)
{
    struct sl_location chain[64];
    return chain_text(&f->index.ranges, chain, sl_symbfile_lookup_range(&f->index, va, chain, 64));
}

static const char *pad_at(const struct fixture *f, uint64_t va)
{
    struct sl_location chain[64];
    return chain_text(&f->index.pads, chain, sl_symbfile_lookup_pad(&f->index, va, chain, 64));
}

static uint64_t entry_at(const struct fixture *f, uint64_t va)
{
    struct sl_location chain[64];
    struct sl_symcache_function function;
    size_t count = sl_symbfile_lookup_range(&f->index, va, chain, 64);
    assert_true(count && sl_symcache_function(&f->index.ranges, chain[count - 1].function, &function));
    return function.entry + f->index.base;
}

static struct sl_symbfile_range range(uint64_t va, uint32_t length, uint32_t depth, const char *name, const char *file)
{
    return (struct sl_symbfile_range){va, length, depth, text(name), text(file), text(NULL), 0, NULL, 0};
}

TEST(published_queries_are_answered)
{
    static const char five[] = "main F:40, a_inline F:35, b_inline F:31, c_inline F:27, d_inline F:23";
    struct fixture f;
    begin(&f);
    for (size_t i = 0; i < GOLDEN_RANGES; i++)
        add(&f, &golden_ranges()[i]);
    build(&f);
    assert_true(f.index.has_lines && f.index.has_functions);
    assert_string_equal(at(&f, 0x64b), "main F:39");
    assert_string_equal(at(&f, 0x64c), five);
    assert_string_equal(at(&f, 0x654), five);
    assert_string_equal(at(&f, 0x658), "main F:41");
    assert_string_equal(at(&f, 0x7b3), "d F:7");
    assert_string_equal(at(&f, 0x7a0), "d F:6");
    assert_string_equal(at(&f, 0x7bc), "");
    assert_string_equal(at(&f, 0x63f), "");
    assert_string_equal(at(&f, 0x664), "");
    assert_int_equal(entry_at(&f, 0x654), 0x640);
    end(&f);
}

TEST(lines_of_a_range_are_found)
{
    static const struct sl_symbfile_line lines[] = {{2, 2}, {4, 5}, {100, 99}};
    struct sl_symbfile_range r = range(0x123, 0x1000, 0, "f", "f.c");
    struct fixture f;
    r.lines = lines;
    r.line_count = 3;
    begin(&f);
    add(&f, &r);
    build(&f);
    assert_string_equal(at(&f, 0x122), "");
    assert_string_equal(at(&f, 0x123), "f f.c:0");
    assert_string_equal(at(&f, 0x124), "f f.c:0");
    assert_string_equal(at(&f, 0x125), "f f.c:2");
    assert_string_equal(at(&f, 0x126), "f f.c:2");
    assert_string_equal(at(&f, 0x127), "f f.c:5");
    assert_string_equal(at(&f, 0x186), "f f.c:5");
    assert_string_equal(at(&f, 0x187), "f f.c:99");
    assert_string_equal(at(&f, 0x1122), "f f.c:99");
    assert_string_equal(at(&f, 0x1123), "");
    end(&f);
}

/* The tree of the published flattening: each address belongs to the deepest range around it. */
TEST(address_belongs_to_the_deepest_range)
{
    static const struct sl_symbfile_line lines[] = {{0, 7}};
    static const struct {
        uint64_t va;
        const char *chain;
    } expected[] = {
        {99, ""},
        {100, "root f.c:7"},
        {199, "root f.c:7"},
        {200, "root f.c:1, first f.c:7"},
        {299, "root f.c:1, first f.c:7"},
        {300, "root f.c:7"},
        {399, "root f.c:7"},
        {400, "root f.c:2, second f.c:7"},
        {699, "root f.c:2, second f.c:7"},
        {700, "root f.c:7"},
        {999, "root f.c:7"},
        {1000, ""},
    };
    struct sl_symbfile_range ranges[] = {range(100, 900, 0, "root", "f.c"), range(200, 100, 1, "first", "f.c"),
                                         range(400, 300, 1, "second", "f.c")};
    struct fixture f;
    begin(&f);
    for (uint32_t i = 0; i < 3; i++) {
        ranges[i].lines = lines;
        ranges[i].line_count = 1;
        ranges[i].call_line = i;
        add(&f, &ranges[i]);
    }
    build(&f);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_string_equal(at(&f, expected[i].va), expected[i].chain);
    end(&f);
}

/* So many records that they lie in files. */
TEST(large_builds_spill_to_files)
{
    enum { COUNT = 500000 };
    static const struct sl_symbfile_line lines[] = {{0, 5}, {4, 6}};
    char name[32], expected[64];
    struct fixture f;
    int scratch = sl_unlinked_file("/tmp");
    assert_true(scratch >= 0);
    f = (struct fixture){.builder = sl_symbfile_builder_new(scratch)};
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t va = 0x1000 + (uint64_t)(i * 7919ull % COUNT) * 16; /* in no order */
        snprintf(name, sizeof name, "f%u", i % 1000);
        struct sl_symbfile_range r = range(va, 12, 0, name, "f.c");
        struct sl_symbfile_frame frames[] = {{text(name), text("f.c"), i % 100 + 1}, {text("in"), text("g.c"), 3}};
        r.lines = lines;
        r.line_count = 2;
        add(&f, &r);
        add_pad(&f, va + 3, frames, 2);
    }
    build(&f);
    for (uint32_t i = 0; i < COUNT; i += 97) {
        uint64_t va = 0x1000 + (uint64_t)(i * 7919ull % COUNT) * 16;
        snprintf(expected, sizeof expected, "f%u f.c:6", i % 1000);
        assert_string_equal(at(&f, va + 5), expected);
        assert_string_equal(at(&f, va + 12), "");
        snprintf(expected, sizeof expected, "f%u f.c:%u, in g.c:3", i % 1000, i % 100 + 1);
        assert_string_equal(pad_at(&f, va + 3), expected);
    }
    end(&f);
    close(scratch);
}

TEST(unwritable_spill_directory_is_busy)
{
    int unwritable = open("/dev/null", O_RDONLY);
    struct fixture f = {.builder = sl_symbfile_builder_new(unwritable)};
    struct sl_symbfile_sink *sink = sl_symbfile_builder_sink(f.builder);
    struct sl_symbfile_range r = range(1, 1, 0, "f", NULL);
    struct sl_error error;
    enum sl_code code = SL_OK;
    for (size_t i = 0; i < 2000000 && code == SL_OK; i++)
        code = sink->range(sink, &r, &error);
    assert_int_equal(code, SL_BUSY);
    assert_int_equal(sl_symbfile_builder_finish(f.builder, &f.bytes, &error), SL_BUSY);
    end(&f);
}

TEST(return_pads_answer_exact_addresses_only)
{
    struct sl_symbfile_frame one[] = {{text("main"), text("m.c"), 4}},
                             two[] = {{text("main"), text("m.c"), 5}, {text("in"), text(""), 0}},
                             other[] = {{text("x"), text("m.c"), 9}};
    struct fixture f;
    begin(&f);
    add_pad(&f, 0x100, one, 1);
    add_pad(&f, 0x101, two, 2);
    add_pad(&f, 0x200, one, 1);
    add_pad(&f, 0x200, two, 2); /* the longer one counts */
    add_pad(&f, 0x200, one, 1);
    add_pad(&f, 0x300, one, 1);
    add_pad(&f, 0x300, other, 1); /* of equals the later one */
    add_pad(&f, 0x400, one, 0);
    build(&f);
    assert_string_equal(pad_at(&f, 0x100), "main m.c:4");
    assert_string_equal(pad_at(&f, 0x101), "main m.c:5, in -:0");
    assert_string_equal(pad_at(&f, 0x102), "");
    assert_string_equal(pad_at(&f, 0xff), "");
    assert_string_equal(pad_at(&f, 0x1ff), "");
    assert_string_equal(pad_at(&f, 0x200), "main m.c:5, in -:0");
    assert_string_equal(pad_at(&f, 0x300), "x m.c:9");
    assert_string_equal(pad_at(&f, 0x301), "");
    assert_string_equal(pad_at(&f, 0x400), "");
    assert_string_equal(at(&f, 0x100), "");
    assert_false(f.index.has_functions);
    end(&f);
}

TEST(return_pads_share_functions)
{
    struct fixture f;
    begin(&f);
    for (uint32_t i = 0; i < 5000; i++) {
        struct sl_symbfile_frame frames[] = {{text("outer"), text("o.c"), 1 + i % 3}, {text("inner"), text("i.c"), i}};
        add_pad(&f, 0x5000 - i, frames, 2);
    }
    build(&f);
    assert_int_equal(f.index.pads.function_count, 3);
    assert_string_equal(pad_at(&f, 0x5000 - 4999), "outer o.c:2, inner i.c:4999");
    assert_string_equal(pad_at(&f, 0x5000), "outer o.c:1, inner i.c:0");
    assert_string_equal(pad_at(&f, 0x5001), "");
    end(&f);
}

TEST(call_files_are_inherited_from_the_outer_range)
{
    static const struct sl_symbfile_line row[] = {{4, 9}};
    struct fixture f;
    struct sl_symbfile_range inner = range(0x110, 0x10, 1, "inner", "i.h"), named = inner, unknown = inner;
    begin(&f);
    struct sl_symbfile_range outer = range(0x100, 0x100, 0, "outer", "o.c");
    add(&f, &outer);
    inner.call_line = 7;
    inner.lines = row;
    inner.line_count = 1;
    add(&f, &inner);
    named.va = 0x120;
    named.call_file = text("call.c");
    named.call_line = 8;
    add(&f, &named);
    unknown.va = 0x130;
    unknown.call_file = text("");
    add(&f, &unknown);
    build(&f);
    assert_string_equal(at(&f, 0x110), "outer o.c:7, inner i.h:0");
    assert_string_equal(at(&f, 0x114), "outer o.c:7, inner i.h:9");
    assert_string_equal(at(&f, 0x120), "outer call.c:8, inner i.h:0");
    assert_string_equal(at(&f, 0x130), "outer -:0, inner i.h:0");
    assert_string_equal(at(&f, 0x140), "outer o.c:0");
    end(&f);
}

TEST(missing_depths_are_bridged)
{
    static const struct sl_symbfile_line rows[] = {{0, 10}, {0x18, 11}};
    struct fixture f;
    struct sl_symbfile_range outer = range(0x100, 0x100, 0, "outer", "o.c"),
                             deep = range(0x110, 0x10, 2, "deep", "d.c");
    struct sl_symbfile_range alone = range(0x300, 0x10, 1, "alone", "a.c");
    outer.lines = rows;
    outer.line_count = 2;
    deep.call_line = 99; /* the call is in the function that is missing */
    begin(&f);
    add(&f, &outer);
    add(&f, &deep);
    add(&f, &alone);
    build(&f);
    assert_string_equal(at(&f, 0x110), "outer o.c:10, deep d.c:0");
    assert_string_equal(at(&f, 0x118), "outer o.c:11, deep d.c:0");
    assert_string_equal(at(&f, 0x300), "alone a.c:0");
    end(&f);
}

TEST(overlapping_ranges_are_resolved)
{
    struct fixture f;
    struct sl_symbfile_range ranges[] = {
        range(0x100, 0x100, 0, "long", "a.c"), range(0x110, 0x10, 0, "short", "b.c"),
        range(0x118, 4, 0, "nofile", NULL),    range(0x112, 2, 1, "outside", "c.c"),
        range(0x112, 2, 1, "later", "c.c"),    range(0x1f0, 0x20, 1, "straddles", "s.c"),
    };
    begin(&f);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        add(&f, &ranges[i]);
    build(&f);
    assert_string_equal(at(&f, 0x100), "long a.c:0");
    assert_string_equal(at(&f, 0x110), "short b.c:0");
    assert_string_equal(at(&f, 0x112), "short b.c:0, later c.c:0");
    assert_string_equal(at(&f, 0x118), "short b.c:0"); /* a file is better than a shorter range */
    assert_string_equal(at(&f, 0x120), "long a.c:0");
    assert_string_equal(at(&f, 0x1f8), "long a.c:0, straddles s.c:0");
    assert_string_equal(at(&f, 0x200), "straddles s.c:0");
    assert_string_equal(at(&f, 0x210), "");
    end(&f);
}

TEST(function_in_parts_begins_at_its_lowest_address)
{
    struct fixture f;
    struct sl_symbfile_range ranges[] = {range(0x120, 0x20, 0, "f", "b.h"), range(0x100, 0x20, 0, "f", "a.c"),
                                         range(0x200, 0x20, 0, "f", "a.c"), range(0x140, 0x10, 0, "g", "a.c")};
    begin(&f);
    for (size_t i = 0; i < 4; i++)
        add(&f, &ranges[i]);
    build(&f);
    assert_int_equal(entry_at(&f, 0x13f), 0x100);
    assert_int_equal(entry_at(&f, 0x140), 0x140);
    assert_int_equal(entry_at(&f, 0x210), 0x200);
    end(&f);
}

TEST(kernel_addresses_are_indexed)
{
    struct fixture f;
    struct sl_symbfile_range low = range(0xffffffff81000000, 0x10, 0, "startup", "head.S"),
                             last = range(UINT64_MAX - 7, 0x10, 0, "end", "tail.S"),
                             empty = range(0x10, 0, 0, "e", "e.c"), deep = range(0x10, 1, 1024, "deep", "e.c");
    begin(&f);
    add(&f, &low);
    add(&f, &last);
    add(&f, &empty);
    add(&f, &deep);
    build(&f);
    assert_string_equal(at(&f, 0xffffffff81000000), "startup head.S:0");
    assert_string_equal(at(&f, 0xffffffff8100000f), "startup head.S:0");
    assert_string_equal(at(&f, 0xffffffff81000010), "");
    assert_string_equal(at(&f, UINT64_MAX - 1), "end tail.S:0");
    assert_string_equal(at(&f, 0x10), "");
    assert_string_equal(at(&f, 0), "");
    end(&f);
}

TEST(deep_inline_chains_are_answered)
{
    enum { DEPTH = 1000 };
    static struct sl_location chain[SL_SYMCACHE_MAX_CHAIN];
    static struct sl_symbfile_frame frames[DEPTH];
    struct fixture f;
    begin(&f);
    for (uint32_t i = 0; i < DEPTH; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        struct sl_symbfile_range r = range(0x100, 0x10, i, name, "f.c");
        r.call_line = i;
        add(&f, &r);
        frames[i] = (struct sl_symbfile_frame){text("f"), text("f.c"), i};
    }
    add_pad(&f, 0x50, frames, DEPTH);
    build(&f);
    assert_int_equal(sl_symbfile_lookup_range(&f.index, 0x10f, chain, SL_SYMCACHE_MAX_CHAIN), DEPTH);
    assert_int_equal(chain[1].line, DEPTH - 1);
    assert_int_equal(chain[DEPTH - 1].line, 1);
    assert_int_equal(sl_symbfile_lookup_pad(&f.index, 0x50, chain, SL_SYMCACHE_MAX_CHAIN), DEPTH);
    assert_int_equal(chain[0].line, DEPTH - 1);
    end(&f);
}

TEST(empty_index_answers_nothing_and_damage_is_noticed)
{
    struct fixture f;
    struct sl_symbfile_index index;
    begin(&f);
    build(&f);
    assert_string_equal(at(&f, 0), "");
    assert_string_equal(pad_at(&f, 0), "");
    f.bytes.data[f.bytes.size - 32]++;
    assert_int_equal(sl_symbfile_index_open(sl_buf_bytes(&f.bytes), &index, NULL), SL_MALFORMED);
    end(&f);
}

/* Every function called a thousand levels deep, again and again: an index of that would be a thousand times the file. */
TEST(exploding_ranges_are_refused)
{
    struct fixture f;
    struct sl_error error;
    begin(&f);
    for (uint32_t depth = 1; depth <= SL_SYMBFILE_MAX_DEPTH; depth++) {
        struct sl_symbfile_range r = range(0, 1 << 20, depth, "long", "f.c");
        add(&f, &r);
    }
    for (uint32_t i = 0; i < 1 << 16; i++) {
        struct sl_symbfile_range r = range(i * 16, 16, 0, i & 1 ? "odd" : "even", "f.c");
        add(&f, &r);
    }
    assert_int_equal(sl_symbfile_builder_finish(f.builder, &f.bytes, &error), SL_MALFORMED);
    assert_non_null(strstr(error.message, "overlap too much"));
    end(&f);
}
