/* Portable PDBs as the reader sees them: containers, documents, sequence points, embedded sources, defects. */
#include "../check.h"

#include "image.h"
#include "object/object.h"
#include "ppdb/impl.h"

static struct image image;
static struct sl_buf file;
static struct sl_arena arena;
static struct sl_ppdb *ppdb;
static struct sl_ppdb_info info;
static struct sl_error error;

static enum sl_code open_image(void)
{
    sl_buf_free(&file);
    file = image_file(&image);
    return sl_ppdb_open(sl_buf_bytes(&file), &arena, &ppdb, &info, &error);
}

static void expect_malformed(const char *message)
{
    assert_int_equal(open_image(), SL_MALFORMED);
    assert_string_equal(error.message, message);
}

static int drop(void **state)
{
    image_free(&image);
    sl_buf_free(&file);
    sl_arena_free(&arena);
    return 0;
}

/* ---- compressed integers ---- */

TEST(compressed_integers_are_read)
{
    static const struct {
        uint8_t size, bytes[4];
        uint32_t value;
    } plain[] = {{1, {0x03}, 3},
                 {1, {0x7F}, 0x7F},
                 {2, {0x80, 0x80}, 0x80},
                 {2, {0xAE, 0x57}, 0x2E57},
                 {2, {0xBF, 0xFF}, 0x3FFF},
                 {4, {0xC0, 0x00, 0x40, 0x00}, 0x4000},
                 {4, {0xDF, 0xFF, 0xFF, 0xFF}, 0x1FFFFFFF}};
    static const struct {
        uint8_t size, bytes[4];
        int32_t value;
    } with_sign[] = {{1, {0x01}, -64},
                     {1, {0x7E}, 63},
                     {1, {0x7B}, -3},
                     {2, {0x80, 0x80}, 64},
                     {2, {0x80, 0x01}, -8192},
                     {4, {0xC0, 0x00, 0x40, 0x00}, 8192},
                     {4, {0xDF, 0xFF, 0xFF, 0xFE}, 268435455},
                     {4, {0xC0, 0x00, 0x00, 0x01}, -268435456}};
    for (size_t i = 0; i < 7; i++) {
        struct sl_reader r = sl_reader((struct sl_bytes){plain[i].bytes, plain[i].size}, false);
        assert_int_equal(ppdb_read_unsigned(&r), plain[i].value);
        assert_true(!r.failed && sl_reader_left(&r) == 0);
    }
    for (size_t i = 0; i < 8; i++) {
        struct sl_reader r = sl_reader((struct sl_bytes){with_sign[i].bytes, with_sign[i].size}, false);
        assert_int_equal(ppdb_read_signed(&r), with_sign[i].value);
        assert_true(!r.failed && sl_reader_left(&r) == 0);
    }
    static const uint8_t bad[] = {0xE0, 0xFF, 0x80, 0xC0};
    for (size_t i = 0; i < 4; i++) {
        struct sl_reader r = sl_reader((struct sl_bytes){&bad[i], 1}, false);
        ppdb_read_unsigned(&r);
        assert_true(r.failed);
    }
}

/* ---- the container ---- */

TEST(identity_is_that_of_the_pdb_stream)
{
    static const uint8_t id[20] = {0xF7, 0x33, 0x10, 0x0C, 0x32, 0x86, 0x2E, 0x49, 0x91, 0xC6,
                                   0xC3, 0x14, 0xB7, 0x2E, 0x19, 0x20, 0x9D, 0x81, 0x0B, 0xE6};
    char text[SL_DEBUG_ID_TEXT];
    memcpy(image.id, id, sizeof id);
    assert_int_equal(open_image(), SL_OK);
    sl_debug_id_format(&info.debug_id, text);
    assert_string_equal(text, "0c1033f7-8632-492e-91c6-c314b72e1920-e60b819d");
    assert_memory_equal(file.data + info.id_offset, id, sizeof id);
    image.leave_out = "#Pdb";
    assert_int_equal(open_image(), SL_OK);
    assert_true(sl_debug_id_is_nil(&info.debug_id));
    assert_int_equal(info.id_offset, 0);
}

TEST(portable_pdb_is_opened_as_an_object)
{
    struct sl_object *object;
    static const uint8_t points[] = {0, 0, 0, 0x14, 0x19, 0x09};
    for (int i = 0; i < 2; i++) {
        if (i)
            image_method(&image, image_document(&image, "/a.cs", guid_csharp), points, sizeof points);
        assert_int_equal(open_image(), SL_OK);
        assert_int_equal(sl_object_open(sl_buf_bytes(&file), NULL, &object, &error), SL_OK);
        const struct sl_object_info *o = sl_object_info(object);
        assert_int_equal(o->format, SL_FORMAT_PORTABLEPDB);
        assert_int_equal(o->kind, SL_KIND_DBG);
        assert_int_equal(o->arch, SL_ARCH_UNKNOWN);
        assert_int_equal(o->features.has_debug_info, i == 1);
        assert_false(o->features.has_symbols || o->features.has_unwind_info || o->features.has_sources);
        struct sl_symbol *symbols;
        size_t count;
        assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, &error), SL_OK);
        assert_int_equal(count, 0);
        sl_object_close(object);
    }
}

TEST(streams_may_have_any_order_and_name)
{
    static const uint8_t points[] = {0, 0, 0, 0x14, 0x19, 0x09};
    image.method_rows = 100000; /* makes indexes into the methods wide: only #Pdb tells */
    image.scope_rows = 3;
    image.module_rows = 1;
    uint32_t document = image_document(&image, "/a.cs", guid_csharp);
    image_method(&image, document, points, sizeof points);
    image_source(&image, document, "text");
    image.add = "#JTD";
    for (unsigned options = 0; options < 16; options++) {
        struct sl_ppdb_source source;
        uint32_t cursor = 0;
        image.options = options;
        assert_int_equal(open_image(), SL_OK);
        assert_int_equal(info.document_count, 1);
        assert_int_equal(info.method_count, 1);
        assert_true(info.has_sources);
        assert_true(sl_ppdb_next_source(ppdb, &cursor, &source));
        assert_int_equal(source.document, document);
        assert_memory_equal(file.data + source.offset, "text", 4);
        assert_false(sl_ppdb_next_source(ppdb, &cursor, &source));
    }
}

TEST(missing_streams_are_malformed)
{
    image.leave_out = "#~";
    expect_malformed("file does not contain a #~ stream");
    image.leave_out = "#GUID";
    assert_int_equal(open_image(), SL_OK);
    image_document(&image, "/a.cs", guid_csharp);
    expect_malformed("file does not contain a #Guid stream");
    image.leave_out = "#Blob";
    expect_malformed("file does not contain a #Blob stream");
    image.leave_out = NULL;
    image.unknown_rows = 1;
    expect_malformed("unknown metadata table 0x3f");
}

TEST(sizes_are_checked)
{
    image_document(&image, "/a.cs", guid_csharp);
    sl_buf_free(&file);
    file = image_file(&image);
    /* The tables are the last stream; 0x18 bytes of header, one count, then eight bytes of one document. */
    size_t count_at = file.size - 12;
    file.data[count_at] = 2;
    assert_int_equal(sl_ppdb_open(sl_buf_bytes(&file), &arena, &ppdb, &info, &error), SL_MALFORMED);
    assert_string_equal(error.message,
                        "insufficient table data: 16 bytes required, but table stream only contains 8 bytes");
    memset(file.data + count_at, 0xFF, 4);
    assert_int_equal(sl_ppdb_open(sl_buf_bytes(&file), &arena, &ppdb, &info, &error), SL_MALFORMED);
    static const struct {
        size_t size;
        const char *message;
    } cuts[] = {{3, "invalid header"},         {20, "invalid length"},      {31, "invalid length"},
                {36, "invalid stream header"}, {42, "invalid stream name"}, {60, "invalid stream header"}};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        assert_int_equal(sl_ppdb_open((struct sl_bytes){file.data, cuts[i].size}, &arena, &ppdb, &info, &error),
                         SL_MALFORMED);
        assert_string_equal(error.message, cuts[i].message);
    }
    file.data[0] = 'X';
    assert_int_equal(sl_ppdb_open(sl_buf_bytes(&file), &arena, &ppdb, &info, &error), SL_MALFORMED);
    assert_string_equal(error.message, "invalid signature");
}

/* ---- documents ---- */

static void expect_document(uint32_t row, const char *name, enum sl_language language)
{
    struct sl_ppdb_document document;
    struct sl_buf out = {0};
    sl_buf_cstr(&out, "before ");
    assert_int_equal(sl_ppdb_document(ppdb, row, &document, &out, &error), SL_OK);
    sl_buf_u8(&out, 0);
    assert_string_equal((char *)out.data + 7, name);
    assert_int_equal(document.language, language);
    sl_buf_free(&out);
}

TEST(document_names_are_joined)
{
    image_document(&image, "/Documents.cs", guid_csharp);
    image_document(&image, "C:\\A\\b\\c\\x.cs", guid_visualbasic);
    image_document(&image, "plain", guid_fsharp);
    image_document(&image, "/a//b/./../c.cs", guid_sha1);
    static const uint8_t separator[] = {0xE2, 0x86, 0x92, 0x01, 0x01}; /* U+2192 between two parts */
    image_document_row(&image, image_blob(&image, separator, 5), 0, 0, 77);
    assert_int_equal(open_image(), SL_OK);
    expect_document(1, "/Documents.cs", SL_LANG_CSHARP);
    expect_document(2, "C:\\A\\b\\c\\x.cs", SL_LANG_VISUALBASIC);
    expect_document(3, "plain", SL_LANG_FSHARP);
    expect_document(4, "/a//b/./../c.cs", SL_LANG_UNKNOWN);
    /* The blob at offset 1 is the text of the first part that was added. */
    expect_document(5,
                    "Documents.cs\xE2\x86\x92"
                    "Documents.cs",
                    SL_LANG_UNKNOWN);
}

TEST(malformed_document_names_are_left_out)
{
    static const uint8_t no_text[] = {0xFF, 0xFE};
    uint32_t part = image_blob(&image, no_text, 2);
    static char long_text[20000];
    memset(long_text, 'x', sizeof long_text);
    uint32_t long_part = image_blob(&image, long_text, sizeof long_text);
    struct sl_buf names[6] = {0};
    sl_buf_u8(&names[0], '/');
    image_compressed(&names[0], part);
    sl_buf_u8(&names[1], '/');
    image_compressed(&names[1], 0x100000); /* outside */
    sl_buf_u8(&names[2], '/');
    sl_buf_u8(&names[2], 0xFF);
    sl_buf_u8(&names[3], 0x80); /* no character */
    sl_buf_u8(&names[4], '/');
    image_compressed(&names[4], long_part);
    image_compressed(&names[4], long_part);
    sl_buf_fill(&names[5], 0, 1000); /* parts that say nothing, without anything between */
    for (size_t i = 0; i < 6; i++) {
        image_document_row(&image, image_blob(&image, names[i].data, names[i].size), 0, 0, 0);
        sl_buf_free(&names[i]);
    }
    image_document_row(&image, 0, 0, 0, 0);
    image_document_row(&image, 0xFFFF, 0, 0, 0);
    assert_int_equal(open_image(), SL_OK);
    struct sl_ppdb_document document;
    struct sl_buf out = {0};
    sl_buf_cstr(&out, "kept");
    for (uint32_t row = 0; row <= 9; row++) {
        assert_int_equal(sl_ppdb_document(ppdb, row, &document, &out, &error), SL_MALFORMED);
        const char *message = row == 0 || row == 9   ? "row index"
                              : row == 2 || row == 8 ? "invalid blob offset"
                                                     : "invalid document name";
        assert_int_equal(strncmp(error.message, message, strlen(message)), 0);
        assert_int_equal(out.size, 4);
    }
    sl_buf_free(&out);
}

TEST(document_hashes_are_read)
{
    uint8_t digest[32];
    for (unsigned i = 0; i < 32; i++)
        digest[i] = (uint8_t)i;
    uint32_t name = image_blob(&image, "", 0), name_of_one = image_blob(&image, "\0\1", 2);
    (void)name;
    image_document_row(&image, name_of_one, image_guid(&image, guid_sha256), image_blob(&image, digest, 32), 0);
    image_document_row(&image, name_of_one, image_guid(&image, guid_sha1), image_blob(&image, digest, 20), 0);
    image_document_row(&image, name_of_one, image_guid(&image, guid_sha1), image_blob(&image, digest, 32), 0);
    image_document_row(&image, name_of_one, image_guid(&image, guid_csharp), image_blob(&image, digest, 32), 0);
    image_document_row(&image, name_of_one, 1, 0xFFFF, 0);
    static const enum sl_ppdb_hash expected[] = {SL_PPDB_HASH_SHA256, SL_PPDB_HASH_SHA1, SL_PPDB_HASH_NONE,
                                                 SL_PPDB_HASH_NONE, SL_PPDB_HASH_NONE};
    assert_int_equal(open_image(), SL_OK);
    for (uint32_t row = 1; row <= 5; row++) {
        struct sl_ppdb_document document;
        struct sl_buf out = {0};
        assert_int_equal(sl_ppdb_document(ppdb, row, &document, &out, &error), SL_OK);
        assert_int_equal(document.hash, expected[row - 1]);
        if (document.hash)
            assert_memory_equal(document.digest, digest, document.hash == SL_PPDB_HASH_SHA1 ? 20 : 32);
        sl_buf_free(&out);
    }
}

/* ---- sequence points ---- */

/* The points of a method as "il: document line:column-line:column", "!" where it could not go on. */
static void expect_points(uint32_t method, const char *text)
{
    struct sl_buf out = {0};
    struct sl_ppdb_points points;
    struct sl_ppdb_point p;
    sl_ppdb_points_begin(ppdb, method, &points);
    while (sl_ppdb_points_next(&points, &p)) {
        sl_buf_printf(&out, "%s%u: ", out.size ? "; " : "", p.il_offset);
        if (p.hidden)
            sl_buf_cstr(&out, "hidden");
        else
            sl_buf_printf(&out, "%u %u:%u-%u:%u", p.document, p.line, p.column, p.end_line, p.end_column);
    }
    sl_buf_cstr(&out, points.failed ? " !" : "");
    sl_buf_u8(&out, 0);
    assert_string_equal((char *)out.data, text);
    sl_buf_free(&out);
    assert_false(sl_ppdb_points_next(&points, &p)); /* the end stays the end */
}

#define METHOD(document, ...)                                                                                          \
    do {                                                                                                               \
        static const uint8_t bytes[] = {__VA_ARGS__};                                                                  \
        image_method(&image, document, bytes, sizeof bytes);                                                           \
    } while (0)

TEST(sequence_points_of_compilers_are_read)
{
    METHOD(1, 0x00, 0x00, 0x00, 0x14, 0x19, 0x09, 0x06, 0x00, 0x01, 0x02, 0x79);
    METHOD(1, 0x00, 0x00, 0x00, 0x18, 0x23, 0x09, 0x06, 0x00, 0x12, 0x04, 0x08, 0x06, 0x00, 0x01, 0x02, 0x79);
    /* Several documents: the first is in the blob, others are announced. */
    METHOD(0, 0x01, 0x01, 0x00, 0x00, 0x01, 0x11, 0x05, 0x01, 0x00, 0x04, 0x73, 0x08, 0x06, 0x00, 0x04, 0x77, 0x00,
           0x06, 0x00, 0x04, 0x04, 0x00, 0x06, 0x00, 0x04, 0x02, 0x00, 0x06, 0x00, 0x04, 0x7B, 0x00, 0x00, 0x02, 0x06,
           0x00, 0x04, 0x79, 0x00, 0x00, 0x01, 0x06, 0x00, 0x04, 0x26, 0x00, 0x06, 0x00, 0x09, 0x04, 0x00, 0x04, 0x00,
           0x01, 0x02, 0x79);
    /* Hidden points; the first visible one is absolute wherever it comes. */
    METHOD(0, 0x03, 0x01, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x02, 0x20, 0x00, 0x01, 0x08, 0x02, 0x01, 0x00,
           0x19, 0x02, 0x02, 0x0C, 0x00, 0x00);
    image_method(&image, 1, NULL, 0);
    METHOD(1, 0x07);                                           /* a header alone: no points */
    METHOD(1, 0x00, 0x05, 0x02, 0x7D, 0x03, 0x09);             /* over lines, ending further left */
    METHOD(1, 0x00, 0x00, 0x00, 0x05, 0x01, 0x01, 0x00, 0x02); /* a document behind the last point */
    assert_int_equal(open_image(), SL_OK);
    expect_points(1, "0: 1 25:9-25:29; 6: 1 26:5-26:6");
    expect_points(2, "0: 1 35:9-35:33; 6: 1 37:13-37:31; 12: 1 38:9-38:10");
    expect_points(3, "0: 1 17:5-17:6; 1: 1 10:9-10:13; 7: 1 5:9-5:13; 13: 1 7:9-7:13; 19: 1 8:9-8:13; 25: 1 5:9-5:13; "
                     "31: 2 1:9-1:13; 37: 1 20:9-20:13; 43: 1 22:9-22:18; 47: 1 23:5-23:6");
    expect_points(4, "0: hidden; 7: hidden; 39: 2 8:2-8:3; 40: 2 9:3-9:28; 52: hidden");
    expect_points(5, "");
    expect_points(6, "");
    expect_points(7, "5: 1 3:9-5:7");
    expect_points(8, "0: 1 1:1-1:6");
    expect_points(0, "");
    expect_points(9, "");
}

TEST(a_defect_ends_its_method_only)
{
    METHOD(1, 0x00, 0x00, 0x00, 0x14, 0x19, 0x09, 0x06, 0x00);                         /* cut */
    METHOD(1, 0x00, 0x00, 0x00, 0x14, 0x19, 0x09, 0xE0);                               /* no integer */
    METHOD(1, 0x00, 0x00, 0x00, 0x14, 0x01, 0x09, 0x01, 0x00, 0x01, 0x7B, 0x00);       /* line -2 */
    METHOD(1, 0x00, 0x00, 0x00, 0x05, 0xC0, 0xFE, 0xEF, 0xEE, 0x09);                   /* the line of hidden points */
    METHOD(1, 0x00, 0x00, 0x00, 0xC0, 0x01, 0x00, 0x00, 0x01, 0x01);                   /* column 65537 */
    METHOD(1, 0x00, 0x05, 0x00, 0x01, 0x01, 0x01, 0xDF, 0xFF, 0xFF, 0xFF, 0x00, 0x00); /* IL offset too large */
    METHOD(1, 0x00, 0x00, 0x00, 0x14, 0x19, 0x09, 0x00);                               /* a document, but which */
    METHOD(0, 0xE0);
    image_method(&image, 1, "x", 1);
    image.methods[8].columns[1] = 0xFFF0; /* a blob outside */
    METHOD(1, 0x00, 0x00, 0x00, 0x14, 0x19, 0x09);
    assert_int_equal(open_image(), SL_OK);
    expect_points(1, "0: 1 25:9-25:29 !");
    expect_points(2, "0: 1 25:9-25:29 !");
    expect_points(3, "0: 1 1:9-1:29 !");
    expect_points(4, " !");
    expect_points(5, " !");
    expect_points(6, "5: 1 1:1-1:2 !");
    expect_points(7, "0: 1 25:9-25:29 !");
    expect_points(8, " !");
    expect_points(9, " !");
    expect_points(10, "0: 1 25:9-25:29");
}

/* ---- embedded sources ---- */

static void expect_source(uint32_t *cursor, uint32_t document, uint64_t limit, const char *text)
{
    struct sl_ppdb_source source;
    struct sl_bytes bytes;
    assert_true(sl_ppdb_next_source(ppdb, cursor, &source));
    assert_int_equal(source.document, document);
    enum sl_code code = sl_ppdb_source_text(sl_buf_bytes(&file), &source, limit, &arena, &bytes, &error);
    if (code != SL_OK) {
        assert_int_equal(code, SL_MALFORMED);
        assert_string_equal(error.message, text);
        return;
    }
    assert_int_equal(bytes.size, strlen(text));
    assert_memory_equal(bytes.data, text, bytes.size);
}

TEST(embedded_sources_are_read)
{
    static const char text[] = "class A { /* aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa */ }\n";
    int32_t size = sizeof text - 1;
    uint32_t row = image_document(&image, "/a.cs", guid_csharp);
    image_document(&image, "/b.cs", guid_csharp);
    image_source(&image, 2, "raw");
    image_deflated(&image, row, text, size);
    image_deflated(&image, row, text, size - 1);
    image_deflated(&image, row, text, size + 1);
    image_deflated(&image, row, text, 0x7FFFFFFF);
    image_deflated(&image, row, text, -5);                                                /* not readable */
    image_custom(&image, PARENT_DOCUMENT, row, guid_embedded, "abc", 3);                  /* too short */
    image_custom(&image, PARENT_METHOD, 0, guid_embedded, "\0\0\0\0x", 5);                /* of no document */
    image_custom(&image, PARENT_DOCUMENT, 3, guid_embedded, "\0\0\0\0x", 5);              /* of none that exists */
    image_custom(&image, PARENT_DOCUMENT, row, guid_sha1, "\0\0\0\0x", 5);                /* something else */
    image_custom(&image, PARENT_DOCUMENT, row, guid_embedded, "\4\0\0\0\xFF\xFF\xFF", 7); /* does not inflate */
    image_source(&image, row, "");
    assert_int_equal(open_image(), SL_OK);
    assert_true(info.has_sources);
    uint32_t cursor = 0;
    struct sl_ppdb_source none;
    expect_source(&cursor, 2, 0, "raw"); /* the limit is one of inflating */
    expect_source(&cursor, row, 62, text);
    expect_source(&cursor, row, 1000, "invalid length");
    expect_source(&cursor, row, 1000, "invalid length");
    expect_source(&cursor, row, UINT64_MAX, "invalid length");
    expect_source(&cursor, row, 1000, "invalid blob data");
    expect_source(&cursor, row, 0, "");
    assert_false(sl_ppdb_next_source(ppdb, &cursor, &none));
    cursor = 1;
    char message[80];
    snprintf(message, sizeof message, "embedded source file size (%d) exceeds maximum", (int)size);
    expect_source(&cursor, row, (uint64_t)size - 1, message);
    struct sl_ppdb_source outside = {.offset = file.size - 1, .stored = 2, .size = 2};
    struct sl_bytes bytes;
    assert_int_equal(sl_ppdb_source_text(sl_buf_bytes(&file), &outside, 10, &arena, &bytes, &error), SL_MALFORMED);
}

static void link(const char *json)
{
    image_custom(&image, PARENT_MODULE, 1, guid_source_link, json, strlen(json));
}

TEST(source_links_of_all_rows_are_merged)
{
    struct sl_buf out = {0};
    struct sl_ppdb_links links;
    link("{\"documents\":{\"/a/*\":\"a:*\"}}");
    link("not JSON");
    link("{\"documents\":{\"/b/*\":\"b:*\"}}");
    image_custom(&image, PARENT_MODULE, 2, guid_source_link, "{\"documents\":{\"/c/*\":\"c:*\"}}", 28);
    assert_int_equal(open_image(), SL_OK);
    assert_false(info.has_sources); /* rules, but no document */
    image_document(&image, "/a/x", guid_csharp);
    assert_int_equal(open_image(), SL_OK);
    assert_true(info.has_sources);
    sl_ppdb_read_links(ppdb, &out);
    assert_true(sl_ppdb_links_open(sl_buf_bytes(&out), &links));
    assert_int_equal(links.prefix_count, 2);
    sl_buf_free(&out);
}

TEST(malformed_source_links_are_ignored)
{
    struct sl_buf out = {0};
    image_document(&image, "/a/x", guid_csharp);
    link("{\"documents\":");
    assert_int_equal(open_image(), SL_OK);
    assert_false(info.has_sources);
    sl_ppdb_read_links(ppdb, &out);
    assert_int_equal(out.size, 0);
}

TEST_FILE(.teardown = drop);
