/* multipart/form-data, cut at any place: parts must not depend on the cut. */
#include <stdlib.h>
#include <string.h>

#include "http/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum sl_code on_begin(void *arg, struct sl_str name, struct sl_error *error)
{
    (void)error;
    sl_buf_cstr(arg, "[");
    sl_buf_str(arg, name);
    return SL_OK;
}

static enum sl_code on_data(void *arg, struct sl_bytes piece, struct sl_error *error)
{
    (void)error;
    sl_buf_add(arg, piece.data, piece.size);
    return SL_OK;
}

static enum sl_code on_end(void *arg, struct sl_error *error)
{
    (void)error;
    sl_buf_cstr(arg, "]");
    return SL_OK;
}

static enum sl_code run(struct sl_str boundary, struct sl_bytes body, size_t cut, struct sl_buf *record)
{
    struct sl_arena arena = {0};
    struct sl_error error;
    struct multipart *m =
        multipart_new(&arena, boundary, &(struct multipart_callbacks){on_begin, on_data, on_end, record});
    enum sl_code code = m ? multipart_feed(m, (struct sl_bytes){body.data, cut}, &error) : SL_INTERNAL;
    if (code == SL_OK)
        code = multipart_feed(m, (struct sl_bytes){body.data + cut, body.size - cut}, &error);
    if (code == SL_OK)
        code = multipart_finish(m, &error);
    sl_arena_free(&arena);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* First line: the content type; the rest: the body. */
    const uint8_t *line = size > 1 ? memchr(data, '\n', size) : NULL;
    struct sl_str boundary;
    if (!line || !multipart_boundary((struct sl_str){(const char *)data, (size_t)(line - data)}, &boundary))
        return 0;
    struct sl_bytes body = {line + 1, size - (size_t)(line + 1 - data)};
    struct sl_buf whole = {0}, cut = {0};
    enum sl_code first = run(boundary, body, 0, &whole);
    enum sl_code second = run(boundary, body, body.size ? data[0] * 7u % body.size : 0, &cut);
    if (first != second || !sl_str_equal(sl_buf_view(&whole), sl_buf_view(&cut)))
        abort();
    sl_buf_free(&whole);
    sl_buf_free(&cut);
    return 0;
}
