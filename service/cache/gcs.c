/* Objects of a Google Cloud Storage bucket, by its JSON API ("Cloud Storage JSON API", Google). */
#include <stdlib.h>

#include "cache/bucket.h"

enum { METADATA_MAX = 64 << 10 };

static struct sl_str name_of_bucket;

static const char *url_of(struct sl_arena *arena, enum shared_op op, const char *name, bool unconditional)
{
    struct sl_buf url = {0};
    sl_buf_cstr(&url, "https://storage.googleapis.com/");
    sl_buf_cstr(&url, op == SHARED_PUT ? "upload/storage/v1/b/" : "storage/v1/b/");
    fetch_encode(&url, name_of_bucket, false);
    sl_buf_cstr(&url, op == SHARED_PUT ? "/o?uploadType=media&name=" : "/o/");
    fetch_encode(&url, sl_str(name), false);
    if (op == SHARED_GET)
        sl_buf_cstr(&url, "?alt=media");
    if (op == SHARED_PUT)
        sl_buf_cstr(&url, unconditional ? "&contentEncoding=zstd" : "&ifGenerationMatch=0&contentEncoding=zstd");
    return sl_buf_keep(&url, arena).data;
}

static bool gcs_prepare(struct bucket_request *request, enum shared_op op, const char *name)
{
    const char *token = gcs_token_get(&request->arena);
    request->fetch.url = url_of(&request->arena, op, name, request->unconditional);
    if (!token)
        return false;
    request->fetch.trusted = false;
    bucket_header(request, SL_STR("Authorization"), sl_str(token));
    if (op == SHARED_EXISTS)
        request->fetch.max_size = METADATA_MAX;
    if (op == SHARED_PUT) {
        request->fetch.method = "POST";
        bucket_header(request, SL_STR("Content-Type"), SL_STR("application/octet-stream"));
    }
    return true;
}

static const struct bucket bucket = {.name = "gcs", .prepare = gcs_prepare, .close = gcs_token_close};

struct shared_backend *shared_gcs(const struct config *config, struct sl_arena *arena, struct fiber_group *group,
                                  const char **key, struct sl_error *error)
{
    struct google_account account = {0};
    const char *path = config->shared.gcs_service_account_path;
    name_of_bucket = sl_str(config->shared.gcs_bucket);
    if (!path)
        path = getenv("GOOGLE_APPLICATION_CREDENTIALS");
    *key = "shared_cache.gcs.service_account_path";
    if (path && *path && google_account_read(path, arena, &account, error) != SL_OK)
        return NULL;
    gcs_token_init(&account, group);
    return bucket_backend(&bucket, config);
}
