/* The look-up table: every key against a plain list of points, sources and names, files that repeat themselves, damage. */
#include "../check.h"

#include "image.h"
#include "ppdb/table.h"

static struct image image;
static struct sl_buf file, out;
static struct sl_budget budget;
static struct sl_arena arena = {.budget = &budget};
static uint64_t memory_limit; /* 0 = none */
static bool (*expired)(void *arg);
static struct sl_error error;
static size_t dropped;

static enum sl_code build(void)
{
    struct sl_ppdb *ppdb;
    struct sl_ppdb_info info;
    sl_buf_free(&file);
    sl_buf_clear(&out);
    file = image_file(&image);
    sl_budget_init(&budget, file.size);
    sl_budget_limit(&budget, memory_limit, expired, NULL);
    assert_int_equal(sl_ppdb_open(sl_buf_bytes(&file), &arena, &ppdb, &info, &error), SL_OK);
    return sl_ppdb_table_build(ppdb, &info, &out, &dropped, &error);
}

static struct sl_ppdb_table table(void)
{
    struct sl_ppdb_table t;
    assert_int_equal(build(), SL_OK);
    assert_int_equal(sl_ppdb_table_open(sl_buf_bytes(&out), &t, &error), SL_OK);
    assert_int_equal(sl_ppdb_table_verify(&t, &error), SL_OK);
    return t;
}

static int drop(void **state)
{
    memory_limit = 0;
    expired = NULL;
    image_free(&image);
    sl_buf_free(&file);
    sl_buf_free(&out);
    sl_arena_free(&arena);
    return 0;
}

static void expect(const struct sl_ppdb_table *t, uint32_t method, uint32_t il_offset, const char *text)
{
    struct sl_ppdb_location location;
    struct sl_ppdb_table_document document;
    struct sl_buf found = {0};
    if (sl_ppdb_table_lookup(t, method, il_offset, &location)) {
        sl_ppdb_table_name(t, location.document, &found);
        assert_true(sl_ppdb_table_document(t, location.document, &document));
        sl_buf_printf(&found, ":%u %s", location.line, sl_language_name(document.properties.language));
    }
    sl_buf_u8(&found, 0);
    assert_string_equal((char *)found.data, text);
    sl_buf_free(&found);
}

/* ---- writing points ---- */

static void put_signed(struct sl_buf *blob, int32_t v)
{
    unsigned bits = v >= -64 && v < 64 ? 7 : v >= -8192 && v < 8192 ? 14 : 29;
    uint32_t rotated = ((uint32_t)v << 1 | (v < 0)) & ((1u << bits) - 1);
    if (bits == 7)
        sl_buf_u8(blob, (uint8_t)rotated);
    else if (bits == 14)
        sl_buf_u16(blob, __builtin_bswap16((uint16_t)(rotated | 0x8000)));
    else
        sl_buf_u32(blob, __builtin_bswap32(rotated | 0xC0000000));
}

struct point {
    uint32_t il_offset, document, line; /* line 0: hidden */
};

static void add_method(const struct point *points, size_t count)
{
    struct sl_buf blob = {0};
    uint32_t document = count ? points[0].document : 1, il_offset = 0, line = 0;
    bool any_visible = false;
    image_compressed(&blob, 0);
    image_compressed(&blob, document);
    for (size_t i = 0; i < count; i++) {
        if (points[i].document != document) {
            image_compressed(&blob, 0);
            image_compressed(&blob, document = points[i].document);
        }
        if (i && points[i].il_offset == il_offset)
            sl_buf_u16(&blob, 0x0080); /* a longer zero: the short one announces a document */
        else
            image_compressed(&blob, points[i].il_offset - il_offset);
        il_offset = points[i].il_offset;
        image_compressed(&blob, 0);
        image_compressed(&blob, points[i].line ? 1 : 0);
        if (!points[i].line)
            continue;
        if (any_visible)
            put_signed(&blob, (int32_t)points[i].line - (int32_t)line);
        else
            image_compressed(&blob, points[i].line);
        if (any_visible)
            put_signed(&blob, 0);
        else
            image_compressed(&blob, 1);
        line = points[i].line;
        any_visible = true;
    }
    image_method(&image, 0, blob.data, blob.size);
    sl_buf_free(&blob);
}

/* ---- look-ups ---- */

TEST(lines_are_found_by_method_and_offset)
{
    image_document(&image, "/src/b.vb", guid_visualbasic);
    image_document(&image, "C:\\a.cs", guid_csharp);
    const struct point first[] = {{3, 1, 10}, {7, 1, 0}, {9, 2, 5}, {20, 1, 11}};
    const struct point hidden[] = {{0, 1, 0}, {5, 1, 0}};
    const struct point twice[] = {{0, 1, 1}, {4, 1, 2}, {4, 2, 3}, {4, 1, 0}, {6, 1, 4}};
    add_method(first, 4);
    add_method(hidden, 2);
    add_method(twice, 5);
    image_method(&image, 1, NULL, 0);
    struct sl_ppdb_table t = table();
    assert_int_equal(t.method_count, 3); /* nothing behind the last one with points */
    expect(&t, 1, 0, "");
    expect(&t, 1, 2, "");
    expect(&t, 1, 3, "/src/b.vb:10 visualbasic");
    expect(&t, 1, 8, "/src/b.vb:10 visualbasic"); /* hidden at 7 */
    expect(&t, 1, 9, "C:\\a.cs:5 csharp");
    expect(&t, 1, 19, "C:\\a.cs:5 csharp");
    expect(&t, 1, 20, "/src/b.vb:11 visualbasic");
    expect(&t, 1, 1000000, "/src/b.vb:11 visualbasic");
    expect(&t, 1, UINT32_MAX - 1, "/src/b.vb:11 visualbasic");
    expect(&t, 1, UINT32_MAX, ""); /* not known */
    expect(&t, 2, 0, "");
    expect(&t, 2, 100, "");
    expect(&t, 3, 0, "/src/b.vb:1 visualbasic");
    expect(&t, 3, 4, "C:\\a.cs:3 csharp"); /* of two at one offset the later, unless it is hidden */
    expect(&t, 3, 5, "C:\\a.cs:3 csharp");
    expect(&t, 3, 6, "/src/b.vb:4 visualbasic");
    expect(&t, 4, 0, "");
    expect(&t, 0, 0, "");
    expect(&t, 5, 0, "");
    expect(&t, UINT32_MAX, 0, "");
}

static uint32_t seed = 1;
static uint32_t any(uint32_t below)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % below;
}

/* Methods of every length around the restart points, with jumps of lines, offsets and documents. */
TEST(every_offset_of_long_methods_is_found)
{
    enum { METHODS = 100, MAX_POINTS = 4000 };
    static struct point points[METHODS][MAX_POINTS];
    static size_t counts[METHODS];
    size_t total = 0;
    char name[32];
    for (unsigned d = 0; d < 40; d++) {
        snprintf(name, sizeof name, "/src/some/dir%u/f.cs", d % 7 + d);
        image_document(&image, name, guid_csharp);
    }
    for (unsigned m = 0; m < METHODS; m++) {
        uint32_t il_offset = any(10), line = 1 + any(500), document = 1 + any(40);
        counts[m] = m < 99 ? m : MAX_POINTS;
        for (size_t i = 0; i < counts[m]; i++) {
            points[m][i] = (struct point){il_offset, document, line};
            il_offset += 1 + any(any(20) ? 12 : 3000);
            line = any(10) ? line + any(3) : 1 + any(100000);
            document = any(30) ? document : 1 + any(40);
        }
        add_method(points[m], counts[m]);
        total += counts[m];
    }
    struct sl_ppdb_table t = table();
    assert_int_equal(dropped, 0);
    for (uint32_t m = 0; m < METHODS; m++)
        for (size_t i = 0; i < counts[m]; i++) {
            const struct point *p = &points[m][i];
            struct sl_ppdb_location location;
            assert_true(sl_ppdb_table_lookup(&t, m + 1, p->il_offset, &location));
            assert_int_equal(location.line, p->line);
            uint32_t last = i + 1 < counts[m] ? p[1].il_offset - 1 : p->il_offset + 1000;
            assert_true(sl_ppdb_table_lookup(&t, m + 1, last, &location));
            assert_int_equal(location.line, p->line);
            struct sl_buf found = {0};
            sl_ppdb_table_name(&t, location.document, &found);
            snprintf(name, sizeof name, "/src/some/dir%u/f.cs", (p->document - 1) % 7 + (p->document - 1));
            assert_int_equal(found.size, strlen(name));
            assert_memory_equal(found.data, name, found.size);
            sl_buf_free(&found);
        }
    assert_true(out.size < total * 5);
}

TEST(repeated_files_are_stored_once)
{
    image_document(&image, "/x.cs", guid_csharp);
    image_document(&image, "/x.cs", guid_csharp);
    image_source(&image, image_document(&image, "/x.cs", guid_fsharp), "x");
    const struct point points[] = {{0, 1, 1}, {1, 2, 2}, {2, 3, 3}};
    add_method(points, 3);
    struct sl_ppdb_table t = table();
    assert_int_equal(t.document_count, 2);
    struct sl_ppdb_source source;
    assert_true(sl_ppdb_table_source(&t, SL_STR("/x.cs"), &source)); /* whichever of the two has one */
    expect(&t, 1, 0, "/x.cs:1 csharp");
    expect(&t, 1, 1, "/x.cs:2 csharp");
    expect(&t, 1, 2, "/x.cs:3 fsharp");
}

TEST(unreadable_methods_are_left_out)
{
    image_document_row(&image, 0, 0, 0, 0); /* without a name */
    image_document(&image, "/x.cs", guid_csharp);
    const struct point unnamed[] = {{0, 2, 1}, {3, 1, 2}, {6, 2, 3}}, missing[] = {{0, 9, 1}}, good[] = {{0, 2, 7}};
    add_method(unnamed, 3);
    add_method(missing, 1);
    add_method(good, 1);
    struct sl_ppdb_table t = table();
    assert_int_equal(dropped, 3);
    expect(&t, 1, 0, "/x.cs:1 csharp");
    expect(&t, 1, 6, "/x.cs:1 csharp"); /* nothing behind the defect */
    expect(&t, 2, 0, "");
    expect(&t, 3, 0, "/x.cs:7 csharp");
}

/* A name blob of a separator and no parts. */
TEST(empty_document_name_is_accepted)
{
    struct sl_ppdb_source source;
    uint32_t row = image_document_row(&image, image_blob(&image, "/", 1), 0, 0, image_guid(&image, guid_csharp));
    image_source(&image, row, "x");
    const struct point points[] = {{0, 1, 1}};
    add_method(points, 1);
    struct sl_ppdb_table t = table();
    expect(&t, 1, 0, ":1 csharp");
    assert_true(sl_ppdb_table_source(&t, SL_STR(""), &source));
}

TEST(empty_table_finds_nothing)
{
    struct sl_ppdb_table t = table();
    struct sl_ppdb_source source;
    expect(&t, 1, 0, "");
    assert_false(sl_ppdb_table_source(&t, SL_STR("/x.cs"), &source));
    assert_false(sl_ppdb_table_source(&t, SL_STR(""), &source));
}

/* ---- sources ---- */

TEST(sources_are_found_by_exact_name)
{
    char name[64];
    for (unsigned i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "/src/%u/file.cs", i);
        uint32_t row = image_document(&image, name, guid_csharp);
        snprintf(name, sizeof name, "text of %u", i);
        if (i % 3 == 0)
            image_source(&image, row, name);
        else if (i % 3 == 1)
            image_deflated(&image, row, name, (int32_t)strlen(name));
    }
    static const char json[] = "{\"documents\":{\"/src/1*\":\"https://h/*\"}}";
    image_custom(&image, PARENT_MODULE, 1, guid_source_link, json, sizeof json - 1);
    struct sl_ppdb_table t = table();
    assert_int_equal(t.source_count, 34);
    for (unsigned i = 0; i < 50; i++) {
        struct sl_ppdb_source source;
        struct sl_ppdb_table_document document;
        struct sl_bytes text;
        uint32_t id;
        snprintf(name, sizeof name, "/src/%u/file.cs", i);
        assert_true(sl_ppdb_table_find(&t, sl_str(name), &id));
        assert_int_equal(sl_ppdb_table_source(&t, sl_str(name), &source), i % 3 != 2);
        if (i % 3 == 2)
            continue;
        assert_true(sl_ppdb_table_document(&t, source.document, &document));
        assert_true(document.embedded);
        assert_int_equal(document.linked, i == 1 || (i >= 10 && i < 20));
        assert_int_equal(sl_ppdb_source_text(sl_buf_bytes(&file), &source, 100, &arena, &text, &error), SL_OK);
        snprintf(name, sizeof name, "text of %u", i);
        assert_int_equal(text.size, strlen(name));
        assert_memory_equal(text.data, name, text.size);
    }
    struct sl_ppdb_source source;
    uint32_t none;
    static const char *const others[] = {"/src/0/file.c", "/src/0/file.css",  "/SRC/0/file.cs", "",
                                         "/zzz",          "\\src\\0\\file.cs"};
    for (size_t i = 0; i < 6; i++)
        assert_false(sl_ppdb_table_source(&t, sl_str(others[i]), &source) ||
                     sl_ppdb_table_find(&t, sl_str(others[i]), &none));
    struct sl_buf url = {0};
    assert_true(sl_ppdb_links_resolve(&t.links, SL_STR("/src/12/file.cs"), &url));
    assert_int_equal(url.size, strlen("https://h/2/file.cs"));
    assert_memory_equal(url.data, "https://h/2/file.cs", url.size);
    sl_buf_free(&url);
}

TEST(equal_input_gives_equal_bytes)
{
    struct sl_buf first = {0};
    image_source(&image, image_document(&image, "/x.cs", guid_csharp), "x");
    const struct point points[] = {{0, 1, 1}, {5, 1, 2}};
    add_method(points, 2);
    table();
    sl_buf_add(&first, out.data, out.size);
    table();
    assert_int_equal(out.size, first.size);
    assert_memory_equal(out.data, first.data, out.size);
    sl_buf_free(&first);
}

/* ---- hostile files ---- */

/* A few bytes a row ask for the same large blob again and again. */
TEST(rows_sharing_a_blob_are_limited)
{
    struct sl_buf blob = {0};
    image_document(&image, "/x.cs", guid_csharp);
    sl_buf_u8(&blob, 0);
    for (unsigned i = 0; i < 500000; i++) {
        static const uint8_t point[] = {1, 0, 1, 0, 0};
        sl_buf_add(&blob, i ? point : (const uint8_t *)"\1\0\1\1\1", 5);
    }
    uint32_t method = image_method(&image, 1, blob.data, blob.size);
    for (unsigned i = 0; i < 1000; i++) {
        image_method(&image, 1, NULL, 0);
        image.methods[image.method_count - 1] = image.methods[method - 1];
    }
    image.options = IMAGE_WIDE_HEAPS;
    assert_int_equal(build(), SL_MALFORMED);
    assert_non_null(strstr(error.message, "reading the file needs more work than allowed for a file of"));
    sl_buf_free(&blob);
}

static bool from_the_first_look_on(void *arg)
{
    return true;
}

TEST(limits_of_the_caller_give_unsupported)
{
    image_document(&image, "/x.cs", guid_csharp);
    image_method(&image, 1, "\0\0\1\1\1\1", 6);
    memory_limit = 8 << 10; /* enough to open it */
    assert_int_equal(build(), SL_UNSUPPORTED);
    assert_string_equal(error.message, "reading the file needs more than 0 MiB of memory");
    memory_limit = 0;
    expired = from_the_first_look_on;
    assert_int_equal(build(), SL_UNSUPPORTED);
    assert_string_equal(error.message, "reading the file needs more time than allowed (setting conversion.max_time)");
}

static void use(const struct sl_ppdb_table *t)
{
    struct sl_ppdb_location location;
    struct sl_ppdb_source source;
    struct sl_ppdb_table_document document;
    struct sl_bytes text;
    struct sl_arena scratch = {0};
    struct sl_buf name = {0};
    for (uint32_t m = 0; m <= t->method_count && m < 5; m++)
        for (uint32_t o = 0; o < 300; o += 7)
            sl_ppdb_table_lookup(t, m, o, &location);
    for (uint32_t d = 0; d <= t->document_count && d < 50; d++) {
        sl_ppdb_table_document(t, d, &document);
        sl_ppdb_table_name(t, d, &name);
    }
    if (sl_ppdb_table_source(t, SL_STR("/src/x1.cs"), &source))
        sl_ppdb_source_text(sl_buf_bytes(&file), &source, 1000, &scratch, &text, NULL);
    sl_ppdb_links_resolve(&t->links, SL_STR("/src/x"), &name);
    sl_ppdb_table_verify(t, NULL);
    sl_buf_free(&name);
    sl_arena_free(&scratch);
}

static void make_small(void)
{
    struct point points[70];
    char name[32];
    for (unsigned i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "/src/x%u.cs", i);
        image_source(&image, image_document(&image, name, guid_csharp), "x");
    }
    for (unsigned i = 0; i < 70; i++)
        points[i] = (struct point){i * 3, i % 20 + 1, i + 1};
    add_method(points, 70);
    add_method(points, 3);
    static const char json[] = "{\"documents\":{\"/src/*\":\"https://h/*\"}}";
    image_custom(&image, PARENT_MODULE, 1, guid_source_link, json, sizeof json - 1);
    table();
}

TEST(damaged_tables_stay_within_bounds)
{
    struct sl_ppdb_table t;
    make_small();
    for (size_t size = 0; size < out.size; size++) {
        uint8_t *copy = malloc(size ? size : 1); /* of its own size, so that reading behind it is noticed */
        memcpy(copy, out.data, size);
        assert_int_equal(sl_ppdb_table_open((struct sl_bytes){copy, size}, &t, &error), SL_MALFORMED);
        free(copy);
    }
    for (size_t at = 0; at < out.size; at++) {
        uint8_t kept = out.data[at];
        for (unsigned i = 0; i < 4; i++) {
            out.data[at] = (uint8_t[]){0x00, 0xFF, 0x80, (uint8_t)(kept ^ 1)}[i];
            enum sl_code code = sl_ppdb_table_open(sl_buf_bytes(&out), &t, &error);
            if (at < 64)
                assert_true(code == SL_MALFORMED || out.data[at] == kept);
            if (code == SL_OK)
                use(&t);
        }
        out.data[at] = kept;
    }
}

TEST(damaged_files_never_crash)
{
    make_small();
    struct sl_buf whole = file, made = {0};
    for (size_t at = 0; at < whole.size; at++) {
        uint8_t kept = whole.data[at];
        for (unsigned i = 0; i < 3; i++) {
            struct sl_ppdb *ppdb;
            struct sl_ppdb_info info;
            struct sl_ppdb_table t;
            struct sl_arena scratch = {0};
            whole.data[at] = (uint8_t[]){0x00, 0xFF, (uint8_t)(kept ^ 0x10)}[i];
            sl_buf_clear(&made);
            if (sl_ppdb_open(sl_buf_bytes(&whole), &scratch, &ppdb, &info, NULL) == SL_OK &&
                sl_ppdb_table_build(ppdb, &info, &made, NULL, NULL) == SL_OK) {
                assert_int_equal(sl_ppdb_table_open(sl_buf_bytes(&made), &t, &error), SL_OK);
                assert_int_equal(sl_ppdb_table_verify(&t, &error), SL_OK);
                use(&t);
            }
            sl_arena_free(&scratch);
        }
        whole.data[at] = kept;
    }
    sl_buf_free(&made);
}

TEST_FILE(.teardown = drop);
