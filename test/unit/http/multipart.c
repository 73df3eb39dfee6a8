/* multipart/form-data: every split of the bytes gives the same parts; broken streams and limits. */
#include "../check.h"

#include "http/multipart.h"

/* Records a stream as "[name:data]..." */
static enum sl_code on_begin(void *arg, struct sl_str name, struct sl_error *error)
{
    (void)error;
    sl_buf_printf(arg, "[" SL_STR_FMT ":", SL_STR_ARG(name));
    return SL_OK;
}

static enum sl_code on_data(void *arg, struct sl_bytes data, struct sl_error *error)
{
    (void)error;
    assert_true(data.size > 0);
    sl_buf_add(arg, data.data, data.size);
    return SL_OK;
}

static enum sl_code on_end(void *arg, struct sl_error *error)
{
    (void)error;
    sl_buf_cstr(arg, "]");
    return SL_OK;
}

/* Feeds `text` cut at the given places; the code of the first failure. */
static enum sl_code parse(struct sl_str boundary, struct sl_str text, size_t first, size_t second,
                          struct sl_buf *record)
{
    struct sl_arena arena = {0};
    struct sl_error error;
    struct multipart *m =
        multipart_new(&arena, boundary, &(struct multipart_callbacks){on_begin, on_data, on_end, record});
    assert_non_null(m);
    const uint8_t *data = (const uint8_t *)text.data;
    enum sl_code code = multipart_feed(m, (struct sl_bytes){data, first}, &error);
    if (code == SL_OK)
        code = multipart_feed(m, (struct sl_bytes){data + first, second - first}, &error);
    if (code == SL_OK)
        code = multipart_feed(m, (struct sl_bytes){data + second, text.size - second}, &error);
    if (code == SL_OK)
        code = multipart_finish(m, &error);
    sl_arena_free(&arena);
    sl_buf_u8(record, 0);
    return code;
}

static void assert_parts(const char *text, const char *expected)
{
    struct sl_buf record = {0};
    assert_int_equal(parse(SL_STR("ab"), sl_str(text), 0, 0, &record), SL_OK);
    assert_string_equal((char *)record.data, expected);
    sl_buf_free(&record);
}

static void assert_malformed(const char *text)
{
    struct sl_buf record = {0};
    assert_int_equal(parse(SL_STR("ab"), sl_str(text), 0, 0, &record), SL_MALFORMED);
    sl_buf_free(&record);
}

static enum sl_code on_piece(void *arg, struct sl_bytes data, struct sl_error *error)
{
    const uint8_t **next = arg;
    (void)error;
    assert_true(data.size <= MULTIPART_PIECE);
    if (*next)
        assert_ptr_equal(data.data, *next);
    *next = data.data + data.size;
    return SL_OK;
}

/* Whoever drops what has been given stays small. */
TEST(large_parts_are_delivered_in_pieces)
{
    static const char head[] = "--ab\r\nContent-Disposition: form-data; name=a\r\n\r\n", tail[] = "\r\n--ab--\r\n";
    enum { SIZE = 5 * MULTIPART_PIECE / 2 };
    struct sl_buf body = {0};
    struct sl_arena arena = {0};
    struct sl_error error;
    const uint8_t *next = NULL;
    sl_buf_cstr(&body, head);
    assert_true(sl_buf_reserve(&body, SIZE + sizeof tail));
    memset(body.data + body.size, 'x', SIZE);
    memcpy(body.data + body.size + MULTIPART_PIECE - 3, "\r\n--a\r\n", 8);
    body.size += SIZE;
    sl_buf_cstr(&body, tail);
    struct multipart *m =
        multipart_new(&arena, SL_STR("ab"), &(struct multipart_callbacks){.data = on_piece, .arg = &next});
    assert_non_null(m);
    assert_int_equal(multipart_feed(m, (struct sl_bytes){body.data, body.size}, &error), SL_OK);
    assert_int_equal(multipart_finish(m, &error), SL_OK);
    assert_ptr_equal(next, body.data + strlen(head) + SIZE);
    sl_arena_free(&arena);
    sl_buf_free(&body);
}

TEST(every_split_gives_the_same_parts)
{
    static const char text[] =
        "preamble\r\n--ab\r\nContent-Disposition: form-data; name=\"a\"; filename=\"x\"\r\n"
        "Content-Type: text/plain\r\n\r\none\r\n--a\r\n--a\r--ab\n\r\n\r\n--ab \t\r\n"
        "content-disposition:form-data;name=b\r\n\r\n\r\n--ab\r\n\r\n\r\n\r\n--ab--\r\nepilogue --ab";
    static const char expected[] = "[a:one\r\n--a\r\n--a\r--ab\n\r\n][b:][:\r\n]";
    for (size_t first = 0; first < sizeof text; first++) {
        for (size_t second = first; second < sizeof text; second++) {
            struct sl_buf record = {0};
            assert_int_equal(parse(SL_STR("ab"), sl_str(text), first, second, &record), SL_OK);
            assert_string_equal((char *)record.data, expected);
            sl_buf_free(&record);
        }
    }
}

TEST(parts_have_names_and_contents)
{
    assert_parts("--ab\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nvalue\r\n--ab--", "[x:value]");
    assert_parts("\r\n--ab\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n\r\n--ab--\r\n", "[x:]");
    assert_parts("--ab\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n--ab--", "[x:]");
    assert_parts("--ab\r\n\r\nno headers\r\n--ab--", "[:no headers]");
    assert_parts("--ab\r\nContent-Disposition: form-data; filename=\"a;b\"; name=\"q\\\"q\"\r\n\r\n\r\n\r\n--ab--",
                 "[q\"q:\r\n]");
    assert_parts("--ab\r\nContent-Disposition: form-data; name=x\r\n\r\n\r\r\n\r\n-\r\n--\r\n--a\r\n--ab--",
                 "[x:\r\r\n\r\n-\r\n--\r\n--a]");
    assert_parts("--ab--", "");
    assert_parts("--ab\r\nA: b\r\n\r\n1\r\n--ab\r\nA: b\r\n\r\n2\r\n--ab--\r\n--ab\r\nignored", "[:1][:2]");
}

TEST(malformed_streams_are_refused)
{
    assert_malformed("");
    assert_malformed("no boundary at all");
    assert_malformed("--ab\r\nA: b\r\n\r\nnever ended");
    assert_malformed("--ab\r\nA: b\r\n\r\nx\r\n--ab");
    assert_malformed("--ab\r\nA: b\r\n\r\nx\r\n--abc\r\n");
    assert_malformed("--ab\r\nno colon\r\n\r\nx\r\n--ab--");
    assert_malformed("--ab\r\nContent-Disposition: form-data; name=\"open\r\n\r\nx\r\n--ab--");
    assert_malformed("--abX");
}

TEST(number_of_parts_and_header_bytes_is_limited)
{
    struct sl_buf text = {0}, record = {0};
    for (int i = 0; i < 64; i++)
        sl_buf_cstr(&text, "--ab\r\n\r\nx\r\n");
    sl_buf_cstr(&text, "--ab--");
    assert_int_equal(parse(SL_STR("ab"), sl_buf_view(&text), 0, 0, &record), SL_OK);
    sl_buf_clear(&text);
    for (int i = 0; i < 65; i++)
        sl_buf_cstr(&text, "--ab\r\n\r\nx\r\n");
    sl_buf_cstr(&text, "--ab--");
    assert_int_equal(parse(SL_STR("ab"), sl_buf_view(&text), 0, 0, &record), SL_MALFORMED);
    sl_buf_clear(&text);
    sl_buf_cstr(&text, "--ab\r\nA: ");
    sl_buf_fill(&text, 'x', 16 * 1024);
    sl_buf_cstr(&text, "\r\n\r\nx\r\n--ab--");
    assert_int_equal(parse(SL_STR("ab"), sl_buf_view(&text), 0, 0, &record), SL_MALFORMED);
    sl_buf_free(&text);
    sl_buf_free(&record);
}

TEST(boundaries_are_parsed)
{
    struct sl_str boundary;
    assert_true(multipart_boundary(SL_STR("multipart/form-data; boundary=abc"), &boundary));
    assert_true(sl_str_equal(boundary, SL_STR("abc")));
    assert_true(multipart_boundary(SL_STR("Multipart/Form-Data;charset=utf-8 ; Boundary=\"a b:c\" ; x=y"), &boundary));
    assert_true(sl_str_equal(boundary, SL_STR("a b:c")));
    char longest[120] = "multipart/form-data; boundary=";
    size_t at = strlen(longest);
    memset(longest + at, 'b', 71);
    assert_false(multipart_boundary((struct sl_str){longest, at + 71}, &boundary));
    assert_true(multipart_boundary((struct sl_str){longest, at + 70}, &boundary));
    assert_false(multipart_boundary(SL_STR("multipart/form-data"), &boundary));
    assert_false(multipart_boundary(SL_STR("multipart/form-data; boundary="), &boundary));
    assert_false(multipart_boundary(SL_STR("multipart/form-data; boundary=\"\""), &boundary));
    assert_false(multipart_boundary(SL_STR("multipart/form-data; boundary=\"open"), &boundary));
    assert_false(multipart_boundary(SL_STR("multipart/form-data; boundary=a\rb"), &boundary));
    assert_false(multipart_boundary(SL_STR("multipart/form-database; boundary=a"), &boundary));
    assert_false(multipart_boundary(SL_STR("application/json; boundary=a"), &boundary));
    assert_false(multipart_boundary((struct sl_str){NULL, 0}, &boundary));
}

/* The part's bytes so far, as one view. */
static enum sl_code on_view(void *arg, struct sl_bytes data, struct sl_error *error)
{
    struct sl_bytes *view = arg;
    (void)error;
    if (!view->size)
        view->data = data.data;
    assert_ptr_equal(view->data + view->size, data.data);
    view->size += data.size;
    return SL_OK;
}

TEST(part_in_one_piece_is_not_copied)
{
    static const char content[] = "--a\r\r\n--\r\n--a\r\n-\rx\r\n--\r\n--a";
    struct sl_arena arena = {0};
    struct sl_bytes view = {NULL, 0};
    struct sl_error error;
    char text[200];
    const struct multipart_callbacks callbacks = {.data = on_view, .arg = &view};
    struct multipart *m = multipart_new(&arena, SL_STR("ab"), &callbacks);
    int size = snprintf(text, sizeof text, "--ab\r\n\r\n%s\r\n--ab--\r\n", content);
    assert_non_null(m);
    assert_int_equal(multipart_feed(m, (struct sl_bytes){(const uint8_t *)text, (size_t)size}, &error), SL_OK);
    assert_int_equal(multipart_finish(m, &error), SL_OK);
    assert_int_equal(view.size, sizeof content - 1);
    assert_memory_equal(view.data, content, view.size);
    sl_arena_free(&arena);
}
