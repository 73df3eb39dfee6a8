/* GET /proxy/<name>/<signature>/<name>: serves the files of all configured sources as one symbol server. */
#include "api/impl.h"
#include "search/search.h"

/* Releases the cache entry when its file has been sent. */
static void release(void *arg)
{
    cache_release(arg);
}

/* Answers a look-up that failed: 404 if no source has the file, else 500 with the reason. */
static void reply_failure(struct http_exchange *x, const struct file_lookup *file)
{
    if (file->code == SL_NOT_FOUND) {
        http_reply_empty(x, 404);
        return;
    }
    struct sl_error error = file->error;
    struct sl_buf text = {0};
    error.code = file->code;
    cache_error_text(&error, &text);
    sl_buf_u8(&text, '\0');
    http_reply_detail(x, 500, "failed to download object", text.failed ? NULL : (const char *)text.data);
    sl_buf_free(&text);
}

/* Finds the file that the path names in the configured sources, whatever their layouts are, and replies with it. */
static void proxy_handle(struct http_exchange *x)
{
    const struct service *service = x->service;
    const struct config *config = service->config;
    enum file_type types[2];
    struct object_id id;
    struct file_lookup file;
    if (!config->symstore_proxy || !layout_reverse(&x->arena, x->captures[0], &id, &types[0])) {
        http_reply_empty(x, 404);
        return;
    }
    types[1] = FILE_PORTABLEPDB; /* the path of a PDB may also mean a portable PDB */
    struct search_scope where;
    service_file_scope(config, &x->arena, &where);
    /* held during the look-up, as the configuration may be replaced meanwhile */
    config_retain(config);
    search_find_file(&where, &id, types, types[0] == FILE_PDB ? 2 : 1, &file);
    config_release(config);
    if (file.code != SL_OK) {
        reply_failure(x, &file);
        return;
    }
    if (file.is_public)
        http_set_header(x, "Cache-Control", SL_STR("public"));
    http_reply_file(x, "application/octet-stream", &file.item->mapping, file.etag, file.item->time_created, release,
                    file.item);
}

static const struct http_route routes[] = {
    {.method = "GET",
     .pattern = "/proxy/{rest..}",
     .handler = proxy_handle,
     .takes_work = true,
     .rights = API_RIGHT("proxy")},
    {.method = NULL},
};

const struct http_family family_proxy = {.routes = routes, .group = "proxy"};
