/* The kind `sourcefiles`: single source files from the web, as UTF-8. */
#include "kinds/impl.h"

#include <stdlib.h>
#include <unistd.h>

#include "source/text.h"

/* What is kept is text: decoded once, and not at every use. */
static enum sl_code decode_file(void *arg, struct sl_error *error)
{
    int fd = *(const int *)arg;
    struct sl_mapping mapping;
    struct sl_buf scratch = {0};
    struct sl_str text;
    enum sl_code code = SL_OK;
    if (sl_map_fd(fd, &mapping, error) != SL_OK)
        return SL_INTERNAL;
    bool is_text = sl_text_decode(mapping.bytes, &scratch, &text);
    if (scratch.failed) {
        code = sl_fail(error, SL_BUSY, "out of memory");
    } else if (!is_text) {
        code = sl_fail(error, SL_MALFORMED, "the file is not text");
    } else if (text.size != mapping.bytes.size || text.data != (const char *)mapping.bytes.data) {
        if (!scratch.size) /* a view of the mapping, which is about to be overwritten */
            sl_buf_str(&scratch, text);
        code =
            scratch.failed ? sl_fail(error, SL_BUSY, "out of memory") : kinds_write(fd, sl_buf_bytes(&scratch), error);
        if (code == SL_OK && ftruncate(fd, (off_t)scratch.size) != 0)
            code = sl_fail(error, SL_INTERNAL, "cannot write a cache file");
    }
    sl_buf_free(&scratch);
    sl_unmap(&mapping);
    return code;
}

static enum sl_code source_files_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                         struct sl_error *error)
{
    const struct source_request *request = context;
    (void)arena;
    struct fetch_request fetch = {
        .url = request->url.data,
        .headers = request->headers,
        .header_count = request->header_count,
        .accept_invalid_certs = request->accept_invalid_certs,
        .deny_list = true,
        .source = "web-scraping",
        .max_size = kinds_config()->max_source_file_size == UINT64_MAX ? 0 : kinds_config()->max_source_file_size,
    };
    enum sl_code code = fetch_get(&fetch, tmp->fd, error);
    return code == SL_OK ? kinds_on_pool(decode_file, &tmp->fd, error) : code;
}

static bool source_files_copy(struct sl_arena *arena, struct sl_str *text)
{
    text->data = sl_arena_strndup(arena, text->data, text->size);
    return text->data;
}

static void *retain(const void *context, struct sl_arena *arena)
{
    struct source_request *to = SL_ARENA_NEW(arena, struct source_request);
    if (!to)
        return NULL;
    *to = *(const struct source_request *)context;
    struct fetch_header *headers = SL_ARENA_ARRAY(arena, struct fetch_header, to->header_count + 1);
    bool good = headers && source_files_copy(arena, &to->url) && source_files_copy(arena, &to->scope);
    for (size_t i = 0; good && i < to->header_count; i++) {
        headers[i] = to->headers[i];
        good = source_files_copy(arena, &headers[i].name) && source_files_copy(arena, &headers[i].value.hidden);
    }
    to->headers = headers;
    return good ? to : NULL;
}

static const unsigned older[] = {1, 0};

const struct cache_kind kind_source_files = {
    .name = "sourcefiles",
    .section = CACHE_DOWNLOADED,
    .version = 2,
    .fallbacks = older,
    .previous = older,
    .format1_up_to = 1,
    .compute = source_files_compute,
    .retain = retain,
};

enum sl_code kinds_get_source_file(const struct source_request *request, struct sl_arena *arena,
                                   struct cache_item **item, struct sl_error *error)
{
    struct sl_buf text = {0};
    *item = NULL;
    sl_buf_printf(&text, "scope: " SL_STR_FMT "\n\nsource: web-scraping\nlocation: " SL_STR_FMT "\n",
                  SL_STR_ARG(request->scope.size ? request->scope : SL_STR("global")), SL_STR_ARG(request->url));
    struct cache_key key = {.text = sl_buf_keep(&text, arena), .scope = request->scope};
    if (!key.text.data)
        return sl_fail(error, SL_BUSY, "out of memory");
    return cache_get(&kind_source_files, &key, request, item, error);
}
