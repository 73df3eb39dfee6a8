/* Breakpad symbol files, written here as text. */
#include "debug_file.h"

#include "function/assemble.h"
#include "object/breakpad_scan.h"

#define HEADER "MODULE Linux x86_64 6216C672A8D33EC9CF4A1BAB8B29D00E0 libx.so\n"

/* In memory of its own size, so that reading past the end is noticed. */
static struct sl_bytes text_bytes(const char *text)
{
    uint8_t *copy = malloc(strlen(text));
    assert_non_null(copy);
    memcpy(copy, text, strlen(text));
    return (struct sl_bytes){copy, strlen(text)};
}

static void close_text(struct sl_object *object)
{
    void *data = (void *)sl_object_file(object).data;
    sl_object_close(object);
    free(data);
}

/* ---- identity ---- */

TEST(module_and_code_id_are_read)
{
    struct sl_object *object =
        open_bytes(text_bytes("MODULE windows x86 3249D99D0C4049318610F4E4FB0B69361 crash.pdb\r\n"
                              "INFO CODE_ID \r\n"
                              "INFO CODE_ID 5AB380779000 crash.exe\r\n"
                              "INFO CODE_ID 111 other\r\n"
                              "FILE 0 a.c\r\n"));
    const struct sl_object_info *info = sl_object_info(object);
    char id[SL_DEBUG_ID_TEXT];
    sl_debug_id_format(&info->debug_id, id);
    assert_string_equal(id, "3249d99d-0c40-4931-8610-f4e4fb0b6936-1");
    assert_true(sl_str_equal(info->code_id, SL_STR("5ab380779000")));
    assert_true(sl_str_equal(info->debug_file, SL_STR("crash.pdb")));
    assert_int_equal(info->format, SL_FORMAT_BREAKPAD);
    assert_int_equal(info->kind, SL_KIND_DBG);
    assert_int_equal(info->arch, SL_ARCH_X86);
    assert_int_equal(info->load_address, 0);
    assert_false(info->features.has_symbols || info->features.has_debug_info || info->features.has_unwind_info);
    close_text(object);
}

TEST(identity_can_be_read_without_the_records)
{
    static const char *const ends[] = {"FILE 0 a.c\nFUNC 1 1 0 f\n", "FUNC 1 1 0 f\n", "PUBLIC 1 0 p\n",
                                       "STACK CFI INIT 1 1 .cfa: $rsp 8 +\n", ""};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char text[400];
        struct sl_object_limits limits = {.identity = true};
        struct sl_object *object;
        snprintf(text, sizeof text, HEADER "INFO GENERATOR x\nINFO CODE_ID 5AB380779000 x.so\n%sINFO CODE_ID 1 y\n",
                 ends[i]);
        assert_int_equal(sl_object_open(text_bytes(text), &limits, &object, NULL), SL_OK);
        const struct sl_object_info *info = sl_object_info(object);
        assert_true(sl_str_equal(info->debug_file, SL_STR("libx.so")));
        assert_true(sl_str_equal(info->code_id, SL_STR("5ab380779000")));
        assert_true(info->features.has_symbols && info->features.has_debug_info && info->features.has_unwind_info);
        close_text(object);
        snprintf(text, sizeof text, HEADER "%sINFO CODE_ID 1 y\n", ends[i]); /* behind the header's end */
        assert_int_equal(sl_object_open(text_bytes(text), &limits, &object, NULL), SL_OK);
        assert_int_equal(sl_object_info(object)->code_id.size, *ends[i] ? 0 : 1);
        close_text(object);
    }
}

TEST(module_without_age_or_name_is_read)
{
    struct sl_object *object =
        open_bytes(text_bytes("MODULE Linux x86_64 6216C672A8D33EC9CF4A1BAB8B29D00E libdispatch.so"));
    assert_int_equal(sl_object_info(object)->debug_id.age, 0);
    assert_true(sl_str_equal(sl_object_info(object)->debug_file, SL_STR("libdispatch.so")));
    close_text(object);
    object = open_bytes(text_bytes("MODULE Linux arm64 6216C672A8D33EC9CF4A1BAB8B29D00E0"));
    assert_true(sl_str_equal(sl_object_info(object)->debug_file, SL_STR("<unknown>")));
    close_text(object);
}

TEST(malformed_module_records_report_the_fault)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"MODULE Linux x86_64 NOTANID libx.so\n", "invalid module id"},
        {"MODULE Linux vax 6216C672A8D33EC9CF4A1BAB8B29D00E0 libx.so\n", "invalid architecture"},
        {"MODULE Linux x86_64\n", "parsing error: the MODULE record lacks the system, architecture or id"},
        {"MODULE Linux x86_64 6216C672A8D33EC9CF4A1BAB8B29D00E0 \xC3(\n", "bad utf-8 sequence"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_object *object;
        struct sl_error error;
        struct sl_bytes bytes = text_bytes(rows[i].text);
        assert_int_equal(sl_object_open(bytes, NULL, &object, &error), SL_MALFORMED);
        assert_string_equal(error.message, rows[i].message);
        free((void *)bytes.data);
    }
}

static struct sl_features features_of(const char *text)
{
    struct sl_object *object = open_bytes(text_bytes(text));
    struct sl_features features = sl_object_info(object)->features;
    close_text(object);
    return features;
}

TEST(features_follow_the_records)
{
    struct sl_features f = features_of(HEADER "FUNC 1 1 0 f\n");
    assert_true(f.has_debug_info && !f.has_symbols && !f.has_unwind_info);
    f = features_of(HEADER "PUBLIC 1 0 f\n");
    assert_true(!f.has_debug_info && f.has_symbols && !f.has_unwind_info);
    f = features_of(HEADER "STACK CFI INIT 1 1 .cfa: $rsp 8 +\nFUNC 1 1 0 f\nPUBLIC 1 0 p\n");
    assert_true(!f.has_debug_info && !f.has_symbols && f.has_unwind_info);
    f = features_of(HEADER "STACK WIN 4 1000 c 1 0 0 0 0 0 1 $eip\n");
    assert_true(f.has_unwind_info);
    f = features_of(HEADER "STACK CFI 1 .cfa: $rsp 8 +\n"); /* of nothing */
    assert_false(f.has_unwind_info);
}

/* ---- functions, as the reader gives them ---- */

/* The stream as text: "name address+size [line records] {inlinees}" for each function. */
struct recorder {
    struct sl_function_sink sink;
    struct sl_buf text;
    size_t batches;
};

static void record_function(struct sl_buf *out, const struct sl_function_batch *batch, const struct sl_function *f)
{
    sl_buf_printf(out, SL_STR_FMT " %llx+%llx", SL_STR_ARG(f->name), (unsigned long long)f->address,
                  (unsigned long long)f->size);
    for (uint32_t i = 0; i < f->line_count; i++) {
        const struct sl_line *line = &f->lines[i];
        struct sl_str file = line->file == SL_NO_FILE ? SL_STR("?") : batch->files[line->file].name;
        sl_buf_printf(out, " " SL_STR_FMT ":%u@%llx+%llx", SL_STR_ARG(file), line->line,
                      (unsigned long long)line->address, (unsigned long long)line->size);
    }
    for (uint32_t i = 0; i < f->inlinee_count; i++) {
        sl_buf_cstr(out, " {");
        record_function(out, batch, &f->inlinees[i]);
        sl_buf_cstr(out, "}");
    }
}

static enum sl_code record_batch(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                                 struct sl_error *error)
{
    (void)error;
    struct recorder *r = (struct recorder *)sink;
    r->batches++;
    for (size_t i = 0; i < batch->function_count; i++) {
        record_function(&r->text, batch, &batch->functions[i]);
        sl_buf_cstr(&r->text, "\n");
    }
    return SL_OK;
}

static enum sl_code record(struct recorder *r, struct sl_object *object, const struct sl_parallel *parallel,
                           struct sl_error *error)
{
    *r = (struct recorder){.sink = {.consume = record_batch}};
    enum sl_code code = sl_object_read_functions(object, NULL, parallel, &r->sink, error);
    sl_buf_u8(&r->text, 0);
    return code;
}

/* Reads `text` behind the header and compares the functions; `skipped` lines must have been malformed. */
static void expect_functions(const char *text, size_t skipped, const char *functions)
{
    struct sl_buf all = {0};
    struct recorder r;
    sl_buf_cstr(&all, HEADER "FILE 0 a.c\nFILE 1 dir/b file.c\nFILE 4000000000 far.c\nINLINE_ORIGIN 0 in0\n"
                             "INLINE_ORIGIN 5 in 5\nINLINE_ORIGIN 12345678901234 far\n");
    sl_buf_cstr(&all, text);
    sl_buf_u8(&all, 0);
    struct sl_object *object = open_bytes(text_bytes((const char *)all.data));
    assert_int_equal(record(&r, object, NULL, NULL), SL_OK);
    assert_string_equal((const char *)r.text.data, functions);
    assert_int_equal(r.sink.skipped_units, skipped);
    sl_buf_free(&r.text);
    sl_buf_free(&all);
    close_text(object);
}

TEST(func_records_are_read)
{
    expect_functions("FUNC 0 f 0\n", 0, "<unknown> 0+f\n");
    expect_functions("FUNC m 1730 1a 0 <name omitted>\n", 0, "<name omitted> 1730+1a\n");
    expect_functions("FUNC 1730 1a 0 two  words \r\n", 0, "two  words 1730+1a\n");
    expect_functions("  FUNC\t1730 \t 1A 0 f\n", 0, "f 1730+1a\n");
    expect_functions("FUNC ffffffffffffffff ff 0 top\n", 0, "top ffffffffffffffff+ff\n");
    expect_functions("FUNC 1 2 0 \xD0\x96\n", 0, "\xD0\x96 1+2\n");
}

TEST(line_records_are_read)
{
    expect_functions("FUNC 1000 30 0 f\n1000 10 1 0\n1010 10 2 1\n1020 10 3 77\n", 0,
                     "f 1000+30 a.c:1@1000+10 dir/b file.c:2@1010+10 ?:3@1020+10\n");
    expect_functions("FUNC e0fd10 5 0 f\ne0fd10 5 -376 2225\n", 0, "f e0fd10+5 ?:0@e0fd10+5\n");
    expect_functions("FUNC 1000 30 0 f\n1000 10 1 4000000000\n", 0, "f 1000+30 far.c:1@1000+10\n");
    /* blanks, empty lines, line ends of Windows, letters of both cases, no newline at the end */
    expect_functions("FUNC aB00 30 0 f\r\n\r\n \taB00  10\t1  0 \r\n\nAb10 0010 00000002 0", 0,
                     "f ab00+30 a.c:1@ab00+10 a.c:2@ab10+10\n");
    /* nothing of size 0, nothing outside of the function, the last one cut to it */
    expect_functions("FUNC 1000 30 0 f\nff0 10 9 0\n1000 0 8 0\n1000 10 1 0\n1020 100 2 0\n1030 1 7 0\n", 0,
                     "f 1000+30 a.c:1@1000+10 a.c:2@1020+10\n");
    /* out of order; equal addresses stay in order */
    expect_functions("FUNC 1000 30 0 f\n1020 10 3 0\n1000 10 1 0\n1010 8 2 0\n1010 8 4 0\n", 0,
                     "f 1000+30 a.c:1@1000+10 a.c:2@1010+8 a.c:4@1010+8 a.c:3@1020+10\n");
    expect_functions("FUNC 1000 10 0 f\n1000 10 4294967295 0\n", 0, "f 1000+10 a.c:4294967295@1000+10\n");
    expect_functions("FUNC 1000 10 0 f\n1000 10 4294967296 0\n", 0, "f 1000+10 a.c:0@1000+10\n");
    expect_functions("FUNC 123456789ab 10 0 f\n123456789ab 10 123456789 12345678\n", 0,
                     "f 123456789ab+10 ?:123456789@123456789ab+10\n");
}

TEST(lines_belong_to_the_function_before)
{
    expect_functions("FUNC 1000 10 0 f\n1000 10 1 0\nPUBLIC 2000 0 p\n2000 10 2 0\nFUNC 3000 10 0 g\n3000 10 3 0\n"
                     "STACK CFI INIT 1000 10 .cfa: $rsp 8 +\nFUNC 4000 10 0 h\n",
                     0, "f 1000+10 a.c:1@1000+10\ng 3000+10 a.c:3@3000+10\n");
}

TEST(inline_records_are_read)
{
    expect_functions("FUNC 1000 40 0 f\nINLINE 0 7 0 0 1010 10\nINLINE 1 8 1 5 1018 8\n1000 10 1 0\n1010 10 2 1\n"
                     "1020 20 3 0\n",
                     0,
                     "f 1000+40 a.c:1@1000+10 a.c:7@1010+10 a.c:3@1020+20 {in0 1010+10 dir/b file.c:2@1010+8 "
                     "dir/b file.c:8@1018+8 {in 5 1018+8 dir/b file.c:2@1018+8}}\n");
    /* several ranges, an origin far above the others, one that does not exist */
    expect_functions("FUNC 1000 40 0 f\nINLINE 0 7 0 12345678901234 1000 8  1010 8 \r\nINLINE 0 9 0 3 1020 8\n"
                     "1000 40 1 0\n",
                     0,
                     "f 1000+40 a.c:7@1000+8 a.c:1@1008+8 a.c:7@1010+8 a.c:1@1018+8 a.c:9@1020+8 a.c:1@1028+18 "
                     "{far 1000+8 a.c:1@1000+8} {far 1010+8 a.c:1@1010+8} { 1020+8 a.c:1@1020+8}\n");
}

/* As Breakpad wrote them at first. A record of today that is cut in the middle of its last range is none of those. */
TEST(old_inline_records_are_read)
{
    expect_functions("INLINE_ORIGIN 20 0 first()\nINLINE_ORIGIN 21 -1 operator new (unsigned)\nFUNC 1000 40 0 f\n"
                     "INLINE 0 7 20 1010 10\nINLINE 1 8 21 1018 8 1030 8\n1000 10 1 0\n1010 10 2 1\n1020 20 3 0\n",
                     0,
                     "f 1000+40 a.c:1@1000+10 ?:7@1010+10 a.c:3@1020+20 {first() 1010+10 dir/b file.c:2@1010+8 "
                     "?:8@1018+8 {operator new (unsigned) 1018+8 dir/b file.c:2@1018+8}}\n");
    expect_functions("FUNC 1000 40 0 f\nINLINE 0 7 0 1010 10\nINLINE 0 7 0 0 1010 10 1020\n1000 10 1 0\n", 2,
                     "f 1000+40 a.c:1@1000+10\n");
}

TEST(malformed_lines_are_skipped_and_counted)
{
    expect_functions("FUNC 1000 40 0 f\n"
                     "1000 10\n"                   /* too short */
                     "1000 10 1 0 9\n"             /* too long */
                     "10000000000000000 10 1 0\n"  /* more than 64 bits */
                     "1000 10 x 0\n"               /* no number */
                     "1000 10 - 0\n"               /* no number */
                     "1000 10 1 0\x80\n"           /* no number */
                     "INLINE 6 642 8 207\n"        /* no range */
                     "INLINE 6 642 8 207 1000\n"   /* half a range */
                     "INLINE 0 1 0 0 1000 8 zz\n"  /* half a range behind a whole one */
                     "INLINE a 1 0 0 1000 8\n"     /* a hexadecimal depth */
                     "INLINE 0 1 0 0 1000 8 2000/" /* continued below */
                     "8\n"
                     "INLINEX 0 1 0 0 1000 8\n"
                     "WHATEVER\n"
                     "1010 10 2 0\n"
                     "INLINE_ORIGIN 9\n" /* no name */
                     "FUNC 2000 zz 0 g\n"
                     "2000 10 3 0\n" /* nobody's, not counted */
                     "FUNC 3000 10 0 \xFF\n"
                     "FUNC 4000 10 0 h\n",
                     16, "f 1000+40 a.c:2@1010+10\nh 4000+10\n");
}

TEST(file_without_usable_records_is_malformed)
{
    struct recorder r;
    struct sl_error error;
    struct sl_object *object = open_bytes(text_bytes(HEADER "FUNC zz\nFUNC yy\n"));
    assert_int_equal(record(&r, object, NULL, &error), SL_MALFORMED);
    assert_string_equal(error.message, "bad debug file: no FUNC record of the Breakpad file can be read");
    assert_int_equal(r.sink.skipped_units, 2);
    sl_buf_free(&r.text);
    close_text(object);
    object = open_bytes(text_bytes(HEADER "PUBLIC 1 0 p\n"));
    assert_int_equal(record(&r, object, NULL, &error), SL_NOT_FOUND);
    sl_buf_free(&r.text);
    close_text(object);
}

TEST(inline_depth_is_limited)
{
    struct sl_buf text = {0};
    struct converted c;
    sl_buf_cstr(&text, HEADER "FILE 0 a.c\nINLINE_ORIGIN 0 in\nFUNC 1000 1000 0 f\n");
    for (unsigned depth = 0; depth < 1000; depth++)
        sl_buf_printf(&text, "INLINE %u 1 0 0 1000 %x\n", depth, 0x1000 - depth);
    sl_buf_cstr(&text, "1000 1000 5 0\n");
    sl_buf_u8(&text, 0);
    struct sl_object *object = open_bytes(text_bytes((const char *)text.data));
    struct sl_location chain[2];
    convert(&c, object);
    assert_int_equal(sl_symcache_lookup(&c.cache, 0x1000, chain, 2), 514);
    sl_buf_free(&c.file);
    sl_buf_free(&text);
    close_text(object);
}

/* ---- symbols ---- */

TEST(public_records_are_read)
{
    struct sl_object *object = open_bytes(text_bytes(HEADER "PUBLIC m 10 0 one\nFUNC 1 1 0 f\nPUBLIC zz 0 bad\n"
                                                            "PUBLIC 20 4\n  PUBLIC 30 0 three words\r\n"
                                                            "STACK CFI INIT 1 1 .cfa: $rsp 8 +\nPUBLIC 40 0 late\n"));
    struct sl_arena arena = {0};
    struct sl_symbol *symbols;
    size_t count;
    assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, NULL), SL_OK);
    assert_int_equal(count, 3);
    assert_true(symbols[0].address == 0x10 && symbols[0].size == 0 && sl_str_equal(symbols[0].name, SL_STR("one")));
    assert_true(symbols[1].address == 0x20 && sl_str_equal(symbols[1].name, SL_STR("<unknown>")));
    assert_true(symbols[2].address == 0x30 && sl_str_equal(symbols[2].name, SL_STR("three words")));
    sl_arena_free(&arena);
    close_text(object);
}

/* ---- through the symcache ---- */

static void expect_chain(const char *text, uint64_t address, const char *chain)
{
    struct converted c;
    struct sl_object *object = open_bytes(text_bytes(text));
    convert(&c, object);
    assert_string_equal(chain_at(&c.cache, address), chain);
    sl_buf_free(&c.file);
    close_text(object);
}

TEST(functions_and_public_symbols_bound_each_other)
{
    static const char before[] = HEADER "FUNC d20 20 0 f\nPUBLIC d00 0 p\n";
    expect_chain(before, 0xd04, "p:0");
    expect_chain(before, 0xd24, "f:0");
    expect_chain(before, 0xd99, "");
    expect_chain(HEADER "FUNC d20 20 0 f\nPUBLIC d80 0 p\n", 0xfffffa0, "p:0");
    expect_chain(HEADER "FUNC b2c 10 0 first()\nFUNC b3c 10 0 second()\n", 0xb40, "second():0");
}

TEST(inlined_calls_give_a_chain)
{
    expect_chain(HEADER "FILE 0 main.rs\nINLINE_ORIGIN 0 inlineeA\nINLINE_ORIGIN 1 inlineeB\nFUNC 1000 30 0 outer\n"
                        "INLINE 0 5 0 1 1000 10 1020 10\nINLINE 0 5 0 0 1010 10\n1000 30 7 0\n",
                 0x1010, "inlineeA:7@main.rs outer:5@main.rs");
}

/* Functions with numbers of all lengths; `blank` between the fields. */
static struct sl_buf spelled(const char *blank, const char *end)
{
    struct sl_buf text = {0};
    uint64_t seed = 7;
    sl_buf_cstr(&text, HEADER "FILE 0 a.c\nFILE 7 b.c\nFILE 12345 c.c\nFILE 123456789 d.c\nINLINE_ORIGIN 3 in\n");
    static const uint32_t files[] = {0, 7, 12345, 123456789};
    for (uint64_t i = 0, at = 1; i < 400; i++) {
        uint64_t start = at;
        struct sl_buf lines = {0};
        for (int j = 0; j < 6; j++) {
            seed = seed * 6364136223846793005 + 1442695040888963407;
            uint64_t size = (seed >> 40) >> (seed >> 33) % 24;
            sl_buf_printf(&lines, seed >> 63 ? "%llx%s%llx%s%llu%s%u%s" : "%llX%s%llX%s%llu%s%u%s",
                          (unsigned long long)at, blank, (unsigned long long)size, blank,
                          (unsigned long long)(seed >> 20) >> (seed >> 50) % 44, blank, files[(seed >> 10) % 4], end);
            at += size + j % 2;
        }
        sl_buf_printf(&text, "FUNC%s%llx%s%llx%s0%sname %llu%s", blank, (unsigned long long)start, blank,
                      (unsigned long long)(at - start), blank, blank, (unsigned long long)i, end);
        if (at > start + 2)
            sl_buf_printf(&text, "INLINE%s0%s%llu%s7%s3%s%llx%s%llx%s", blank, blank, (unsigned long long)i * i * i,
                          blank, blank, blank, (unsigned long long)start + 1, blank,
                          (unsigned long long)(at - start) / 2, end);
        sl_buf_add(&text, lines.data, lines.size);
        sl_buf_free(&lines);
        at += at < UINT64_C(1) << 40 && i % 20 == 19 ? at : 1;
    }
    return text;
}

TEST(blanks_and_line_ends_do_not_matter)
{
    static const char *const blanks[] = {" ", "  ", "\t", " \t "}, *const ends[] = {"\n", " \n", "\r\n", "\t\n"};
    struct converted first, other;
    for (size_t i = 0; i < 4; i++) {
        struct sl_buf text = spelled(blanks[i], ends[i]);
        struct sl_object *object = open_bytes(sl_buf_bytes(&text));
        convert(i ? &other : &first, object);
        sl_object_close(object);
        sl_buf_free(&text);
        if (i == 0)
            continue;
        assert_int_equal(first.file.size, other.file.size);
        assert_memory_equal(first.file.data, other.file.data, first.file.size);
        sl_buf_free(&other.file);
    }
    assert_int_equal(first.cache.function_count, 401);
    sl_buf_free(&first.file);
}

/* ---- chunks ---- */

/* Runs on one thread, but as if three shared the work. */
static void run_scattered(const struct sl_parallel *self, size_t count, void (*work)(void *, size_t, unsigned),
                          void *arg)
{
    for (size_t i = 0; i < count; i++)
        work(arg, i, (unsigned)(i % self->workers));
}

/* Some thousand functions: more than one chunk, and more than one window of them. */
static struct sl_buf large_text(bool origins_inside)
{
    struct sl_buf text = {0};
    sl_buf_cstr(&text, HEADER);
    for (unsigned i = 0; i < 300; i++)
        sl_buf_printf(&text, "FILE %u file%u.c\n", i, i);
    for (unsigned i = 0; i < 500; i++)
        sl_buf_printf(&text, "INLINE_ORIGIN %u inlined%u\n", i, i);
    for (unsigned i = 0; i < 40000; i++) {
        unsigned at = 0x1000 + i * 0x40;
        if (origins_inside && i % 5000 == 4000)
            sl_buf_printf(&text, "INLINE_ORIGIN 7 renamed at %u\n", i);
        sl_buf_printf(&text, "FUNC %x 40 0 function %u\nINLINE 0 %u %u %u %x 8\n", at, i, i % 77, i % 300, i % 20,
                      at + 0x10);
        for (unsigned k = 0; k < 4; k++)
            sl_buf_printf(&text, "%x 10 %u %u\n", at + 0x10 * k, i % 1000 + k, (i + k) % 310);
    }
    return text;
}

TEST(parallel_chunks_give_the_same_functions)
{
    const struct sl_parallel parallel = {.workers = 3, .run = run_scattered};
    for (unsigned round = 0; round < 2; round++) {
        struct sl_buf text = large_text(round == 1);
        struct recorder one, many;
        struct sl_object *object = open_bytes(sl_buf_bytes(&text));
        assert_int_equal(record(&one, object, NULL, NULL), SL_OK);
        assert_int_equal(record(&many, object, &parallel, NULL), SL_OK);
        assert_true(many.batches > 12);
        assert_int_equal(one.text.size, many.text.size);
        assert_memory_equal(one.text.data, many.text.data, one.text.size);
        assert_int_equal(strstr((char *)one.text.data, "{renamed at 34000 ") != NULL, round == 1);
        assert_non_null(strstr((char *)one.text.data, "function 39999 "));
        sl_buf_free(&one.text);
        sl_buf_free(&many.text);
        sl_object_close(object);
        sl_buf_free(&text);
    }
}

static enum sl_code refuse(struct sl_function_sink *sink, const struct sl_function_batch *batch, struct sl_error *error)
{
    (void)sink, (void)batch;
    return sl_fail(error, SL_CANCELLED, "enough");
}

TEST(sink_can_cancel_the_reader)
{
    struct sl_function_sink sink = {.consume = refuse};
    struct sl_error error;
    struct sl_object *object = open_bytes(text_bytes(HEADER "FUNC 1 1 0 f\n"));
    assert_int_equal(sl_object_read_functions(object, NULL, NULL, &sink, &error), SL_CANCELLED);
    close_text(object);
}

/* ---- numbers ---- */

TEST(numbers_of_every_length_are_read)
{
    char text[64];
    uint64_t value;
    for (unsigned length = 1; length <= 16; length++) {
        uint64_t hex = UINT64_C(0xFEDCBA9876543210) >> (64 - 4 * length), decimal = 0;
        for (unsigned i = 0; i < length; i++)
            decimal = decimal * 10 + (i + 1) % 10;
        memset(text, '7', sizeof text);
        int end = snprintf(text, 32, length & 1 ? "%llx" : "%llX", (unsigned long long)hex);
        text[end] = ' ';
        assert_ptr_equal(scan_hex((uint8_t *)text, &value), text + length);
        assert_true(value == hex);
        memset(text, '7', sizeof text);
        end = snprintf(text, 32, "%0*llu", (int)length, (unsigned long long)decimal);
        text[end] = '\n';
        assert_ptr_equal(scan_decimal((uint8_t *)text, &value), text + length);
        assert_true(value == decimal);
    }
    memset(text, '1', sizeof text);
    text[17] = ' ';
    assert_null(scan_hex((uint8_t *)text, &value));
    assert_null(scan_decimal((uint8_t *)text, &value));
}

/* What is a digit and what is not, at the first and at the last place of eight. */
TEST(every_byte_is_classified_as_digit_or_not)
{
    for (unsigned c = 0; c < 256; c++) {
        uint8_t text[24];
        uint64_t value;
        bool decimal = c >= '0' && c <= '9';
        bool hex = decimal || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        for (unsigned place = 0; place < 8; place += 7) {
            memset(text, '0', sizeof text);
            text[8] = ' ';
            text[place] = (uint8_t)c;
            const uint8_t *end = hex ? text + 8 : place ? text + place : NULL;
            assert_ptr_equal(scan_hex(text, &value), end);
            end = decimal ? text + 8 : place ? text + place : NULL;
            assert_ptr_equal(scan_decimal(text, &value), end);
        }
    }
}

TEST(damaged_files_never_crash)
{
    static const char text[] = HEADER
        "INFO CODE_ID AB\nFILE 0 a.c\nFILE 1 b.c\nINLINE_ORIGIN 0 in\nFUNC 1000 40 0 f\nINLINE 0 1 0 0 1000 8 1010 8\n"
        "1000 10 1 0\n1010 30 2 1\nFUNC m 2000 10 0 g\n2000 10 -3 0\nPUBLIC 3000 0 p\nSTACK CFI INIT 1000 10 .cfa: "
        "$rsp 8 +\nSTACK WIN 4 1000 c b 0 c c 4 0 0 1\n";
    damage((struct sl_bytes){(const uint8_t *)text, sizeof text - 1}, sizeof text - 1, 2000);
}
