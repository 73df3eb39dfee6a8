/* An upload from hostile hands: lines "Name: value" up to an empty one are its headers, the rest its body, in pieces. */
#include "api/symbfile/symbfile.h"
#include "catalog/catalog.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_HEADERS = 64 };

/* What is behind the headers. */
static struct sl_bytes read_headers(struct sl_bytes text, struct http_exchange *x, struct http_header *headers)
{
    x->headers = headers;
    while (text.size && x->header_count < MAX_HEADERS) {
        const uint8_t *end = memchr(text.data, '\n', text.size);
        size_t size = end ? (size_t)(end - text.data) : text.size;
        const uint8_t *colon = memchr(text.data, ':', size);
        struct sl_str line = {(const char *)text.data, size};
        text.data += size + (end != NULL);
        text.size -= size + (end != NULL);
        if (!colon)
            break;
        size_t name = (size_t)((const char *)colon - line.data);
        headers[x->header_count++] = (struct http_header){{line.data, name}, {line.data + name + 1, size - name - 1}};
    }
    return text;
}

static void receive(const struct upload_head *head, struct sl_bytes body)
{
    struct symbfile_failure failure = {0};
    size_t step = body.size % 97 + 1;
    struct symbfile_part *part = symbfile_part_new(head->part, head->parts, 1 << 20, NULL);
    bool good = part != NULL;
    for (size_t at = 0; at < body.size && good; at += step) {
        struct sl_bytes piece = {body.data + at, body.size - at < step ? body.size - at : step};
        good = symbfile_part_feed(part, piece, &failure);
    }
    if (good)
        good = symbfile_part_finish(part, &failure);
    if (good == (failure.status != 0) || failure.status >= 500)
        abort(); /* a failure without a reason, or the reverse, or one that is the service's */
    symbfile_part_free(part);
}

static void check_head(const struct upload_head *head)
{
    const struct symbfile_info *info = &head->info;
    if (!head->parts || head->part >= head->parts || strchr(head->upload_id, '/') ||
        strlen(head->upload_id) >= sizeof head->upload_id || strchr(info->build_id, '/') ||
        strchr(info->debug_id, '/') || strlen(info->code_file) >= sizeof info->code_file)
        abort(); /* these become names of files */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct config *config;
    struct value_problems problems = {0};
    struct http_header headers[MAX_HEADERS];
    struct upload_head *head = calloc(1, sizeof *head);
    struct symbfile_failure failure = {0};
    struct http_exchange x = {.content_length = -1};
    if (!config && (config_load(NULL, &config, &problems, NULL) != SL_OK))
        abort();
    catalog_init(config);
    struct sl_bytes body = read_headers((struct sl_bytes){data, size}, &x, headers);
    x.has_body = body.size > 0;
    x.content_length = (int64_t)body.size;
    if (head && upload_read_head(&x, head, &failure)) {
        check_head(head);
        receive(head, body);
    } else if (failure.status < 400 || failure.status >= 500) {
        abort();
    }
    free(head);
    return 0;
}
