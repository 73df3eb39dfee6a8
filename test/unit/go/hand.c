/* Go line tables by hand: each version, of both byte orders and pointer sizes, and what is bad in them. */
#include "../check.h"

#include "go/go.h"

enum { MAGIC_12 = 0xFFFFFFFB, MAGIC_116 = 0xFFFFFFFA, MAGIC_118 = 0xFFFFFFF0, MAGIC_120 = 0xFFFFFFF1 };

static const uint64_t load = 0x400000, text = 0x1000000;

struct layout {
    uint32_t magic;
    unsigned pointer;
    bool big_endian, no_module;
};

static void put(struct sl_buf *b, const struct layout *l, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        sl_buf_u8(b, (uint8_t)(value >> 8 * (l->big_endian ? size - 1 - i : i)));
}

static void put_pointer(struct sl_buf *b, const struct layout *l, uint64_t value)
{
    put(b, l, value, l->pointer);
}

static void segment(struct sl_buf *b, const struct layout *l, uint32_t flags, uint64_t address, uint64_t file_size,
                    uint64_t memory_size)
{
    bool wide = l->pointer == 8;
    put(b, l, 1, 4);
    if (wide)
        put(b, l, flags, 4);
    put_pointer(b, l, 0);
    put_pointer(b, l, address);
    put_pointer(b, l, address);
    put_pointer(b, l, file_size);
    put_pointer(b, l, memory_size);
    if (!wide)
        put(b, l, flags, 4);
    put_pointer(b, l, 1);
}

/* All of the file at `load`, and code at `text` that the file does not have. */
static struct sl_buf go_program(const struct layout *l, const struct sl_buf *data)
{
    struct sl_buf b = {0};
    bool wide = l->pointer == 8;
    unsigned header = wide ? 64 : 52, entry = wide ? 56 : 32;
    const uint8_t ident[16] = {0x7F, 'E', 'L', 'F', wide ? 2 : 1, l->big_endian ? 2 : 1, 1};
    sl_buf_add(&b, ident, 16);
    put(&b, l, 2, 2);
    put(&b, l, l->big_endian ? 8 : wide ? 62 : 3, 2);
    put(&b, l, 1, 4);
    put_pointer(&b, l, text);
    put_pointer(&b, l, header);
    put_pointer(&b, l, 0);
    put(&b, l, 0, 4);
    const unsigned tail[6] = {header, entry, 2, 0, 0, 0};
    for (size_t i = 0; i < 6; i++)
        put(&b, l, tail[i], 2);
    segment(&b, l, 6, load, 4096, 4096);
    segment(&b, l, 5, text, 0, 4096);
    sl_buf_fill(&b, 0, 256 - b.size);
    sl_buf_add(&b, data->data, data->size);
    sl_buf_fill(&b, 0, 4096 - b.size);
    return b;
}

/* Where the table, the tree of inlined calls and the module's data are, behind the 256 bytes of headers. */
enum { TABLE = 0, TREE = 1024, MODULE = 1280, HEADERS = 256 };

/* Parts of the table. */
enum { NAMES = 96, CUS = 160, FILES = 176, VALUES = 224, FUNCTIONS = 320 };

static void pad_to(struct sl_buf *b, size_t size)
{
    assert_true(b->size <= size);
    sl_buf_fill(b, 0, size - b->size);
}

/* At FILES: "/src/a.go" at 1, "/src/b.go" at 11. At NAMES: outer, middle, inner at 1, 7, 14. */
static void parts(struct sl_buf *b, const struct layout *l)
{
    static const uint8_t values[] = {
        0,                          /* offset 0 is none */
        22, 4, 4, 4, 5, 4, 4, 4, 0, /* 1, lines: 10, 12, 9, 11, four bytes each */
        2,  4, 2, 8, 1, 4, 0,       /* 10, files: 0 for 4 bytes, 1 for 8, 0 for 4 */
        0,  4, 4, 4, 1, 4, 1, 4, 0, /* 17, calls: none, 1, 0, none */
    };
    pad_to(b, NAMES);
    sl_buf_add(b, "\0outer\0middle\0inner", 20);
    pad_to(b, CUS);
    put(b, l, 1, 4);
    put(b, l, 11, 4);
    pad_to(b, FILES);
    sl_buf_add(b, "\0/src/a.go\0/src/b.go", 21);
    pad_to(b, VALUES);
    sl_buf_add(b, values, sizeof values);
    pad_to(b, FUNCTIONS);
}

static void record(struct sl_buf *b, const struct layout *l)
{
    bool old = l->magic == MAGIC_116;
    if (old)
        put_pointer(b, l, text);
    else
        put(b, l, 0, 4);
    put(b, l, 1, 4); /* name */
    sl_buf_fill(b, 0, 12);
    put(b, l, 10, 4);
    put(b, l, 1, 4);
    put(b, l, 3, 4); /* values by code offset, */
    put(b, l, 0, 4); /* the unit */
    if (l->magic == MAGIC_120)
        put(b, l, 8, 4);
    sl_buf_fill(b, 0, 3);
    sl_buf_u8(b, 4); /* and data */
    put(b, l, 0, 4);
    put(b, l, 0, 4);
    put(b, l, 17, 4);
    if (old)
        sl_buf_fill(b, 0, -(b->size - FUNCTIONS) & (l->pointer - 1));
    sl_buf_fill(b, 0, 3u * (old ? l->pointer : 4));
    if (old)
        put_pointer(b, l, load + HEADERS + TREE);
    else
        put(b, l, 16, 4);
}

/* Call 0 is `middle`, called at offset 0; call 1 is `inner`, called where `middle` is at offset 8. */
static void tree(struct sl_buf *b, const struct layout *l)
{
    static const uint32_t calls[2][2] = {{7, 0}, {14, 8}};
    for (size_t i = 0; i < 2; i++) {
        sl_buf_fill(b, 0, l->magic == MAGIC_120 ? 4 : 12);
        put(b, l, calls[i][0], 4);
        put(b, l, calls[i][1], 4);
        if (l->magic == MAGIC_120)
            put(b, l, 0, 4);
    }
}

static struct sl_buf table(const struct layout *l)
{
    struct sl_buf b = {0};
    bool old = l->magic == MAGIC_116;
    uint64_t at = load + HEADERS + TABLE;
    put(&b, l, l->magic, 4);
    put(&b, l, 0, 2);
    sl_buf_u8(&b, 1);
    sl_buf_u8(&b, (uint8_t)l->pointer);
    put_pointer(&b, l, 1);
    put_pointer(&b, l, 2);
    if (!old)
        put_pointer(&b, l, l->no_module ? text : 0);
    const unsigned offsets[] = {NAMES, CUS, FILES, VALUES, FUNCTIONS};
    for (size_t i = 0; i < 5; i++)
        put_pointer(&b, l, offsets[i]);
    parts(&b, l);
    unsigned word = old ? l->pointer : 4;
    put(&b, l, old ? text : 0, word);
    put(&b, l, 4 * word, word);
    put(&b, l, old ? text + 16 : 16, word);
    put(&b, l, 0, word);
    record(&b, l);
    pad_to(&b, TREE);
    if (!old)
        sl_buf_fill(&b, 0, 16);
    tree(&b, l);
    pad_to(&b, MODULE);
    for (unsigned i = 0; !old && !l->no_module && i < 41; i++)
        put_pointer(&b, l,
                    i == 0                                   ? at
                    : i == 1                                 ? at + NAMES
                    : i == 4                                 ? at + CUS
                    : i == 22                                ? text
                    : i == (l->magic == MAGIC_120 ? 40 : 38) ? load + HEADERS + TREE
                                                             : 0);
    return b;
}

/* ---- what comes of them ---- */

struct printer {
    struct sl_function_sink sink;
    struct sl_buf out;
};

static void print(struct sl_buf *out, const struct sl_function_batch *batch, const struct sl_function *f, int depth)
{
    sl_buf_printf(out, "%*s%llx+%llx %.*s", depth, "", (unsigned long long)f->address, (unsigned long long)f->size,
                  (int)f->name.size, f->name.data);
    for (uint32_t i = 0; i < f->line_count; i++) {
        const struct sl_line *line = &f->lines[i];
        struct sl_str file = line->file == SL_NO_FILE ? SL_STR("-") : batch->files[line->file].name;
        sl_buf_printf(out, " %llx:%.*s:%u", (unsigned long long)line->address, (int)file.size, file.data, line->line);
    }
    sl_buf_str(out, SL_STR("\n"));
    for (uint32_t i = 0; i < f->inlinee_count; i++)
        print(out, batch, &f->inlinees[i], depth + 1);
}

static enum sl_code consume(struct sl_function_sink *sink, const struct sl_function_batch *batch,
                            struct sl_error *error)
{
    struct printer *p = (struct printer *)sink;
    (void)error;
    for (size_t i = 0; i < batch->function_count; i++)
        print(&p->out, batch, &batch->functions[i], 0);
    return SL_OK;
}

/* The code, or what was read as text. */
static enum sl_code read_program(struct sl_buf *data, const struct layout *l, struct printer *p, struct sl_error *error)
{
    struct sl_buf file = go_program(l, data);
    struct sl_object *object;
    *p = (struct printer){.sink = {.consume = consume}};
    assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, error), SL_OK);
    enum sl_code code = sl_go_read(object, &p->sink, error);
    sl_object_close(object);
    sl_buf_u8(&p->out, 0);
    sl_buf_free(&file);
    sl_buf_free(data);
    return code;
}

static void expect_code(struct sl_buf data, const struct layout *l, enum sl_code code)
{
    struct printer p;
    struct sl_error error = {0};
    assert_int_equal(read_program(&data, l, &p, &error), code);
    sl_buf_free(&p.out);
}

static void expect_text(struct sl_buf data, const struct layout *l, const char *expected)
{
    struct printer p;
    struct sl_error error = {0};
    assert_int_equal(read_program(&data, l, &p, &error), SL_OK);
    assert_string_equal((char *)p.out.data, expected);
    assert_int_equal(p.sink.skipped_units, 0);
    sl_buf_free(&p.out);
}

TEST(every_pclntab_version_is_read)
{
    static const struct layout layouts[] = {
        {MAGIC_116, 8, false, false}, {MAGIC_116, 4, false, false}, {MAGIC_116, 8, true, false},
        {MAGIC_118, 8, false, false}, {MAGIC_118, 4, true, false},  {MAGIC_120, 8, false, false},
        {MAGIC_120, 4, false, false}, {MAGIC_120, 8, true, false},
    };
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        expect_text(table(&layouts[i]), &layouts[i],
                    "c00000+10 outer c00000:/src/a.go:10 c00004:/src/a.go:10 c0000c:/src/a.go:11\n"
                    " c00004+8 middle c00004:/src/b.go:9 c00008:/src/b.go:9\n"
                    "  c00004+4 inner c00004:/src/b.go:12\n");
}

TEST(lines_are_the_innermost_without_module_data)
{
    static const struct layout l = {MAGIC_120, 8, false, true};
    expect_text(table(&l), &l,
                "c00000+10 outer c00000:/src/a.go:10 c00004:/src/b.go:12 c00008:/src/b.go:9 c0000c:/src/a.go:11\n");
}

static struct sl_buf changed(const struct layout *l, size_t at, uint32_t value)
{
    struct sl_buf b = table(l);
    for (size_t i = 0; i < 4; i++)
        b.data[at + i] = (uint8_t)(value >> 8 * i);
    return b;
}

TEST(malformed_tables_are_refused)
{
    static const struct layout l = {MAGIC_120, 8, false, false}, before = {MAGIC_12, 8, false, false};
    expect_code(table(&before), &before, SL_UNSUPPORTED);
    expect_code(changed(&l, 0, 0xFFFFFFF9), &l, SL_NOT_FOUND);
    expect_code(changed(&l, 8, 0x10000), &l, SL_MALFORMED);                  /* functions that do not fit */
    expect_code(changed(&l, 64, 0x10000), &l, SL_MALFORMED);                 /* nor do they begin */
    expect_code(changed(&l, FUNCTIONS + 4, 0x7FFF), &l, SL_MALFORMED);       /* the only record is outside */
    expect_code(changed(&l, FUNCTIONS + 16 + 24, 0x7FFF), &l, SL_MALFORMED); /* so are its lines */
}

/* A call that is made by itself has no callers to tell; nor has one without a name. */
TEST(malformed_inline_trees_are_ignored)
{
    static const struct layout l = {MAGIC_120, 8, false, false};
    const char *expected =
        "c00000+10 outer c00000:/src/a.go:10 c00004:/src/b.go:12 c00008:/src/a.go:10 c0000c:/src/a.go:11\n"
        " c00008+4 middle c00008:/src/b.go:9\n";
    expect_text(changed(&l, TREE + 16 + 16 + 8, 4), &l, expected);
    expect_text(changed(&l, TREE + 16 + 16 + 4, 0x7FFF), &l, expected);
}
