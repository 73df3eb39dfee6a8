/* Routes of sentry-cli's uploads, and their limits and errors. */
#include "api/sentry/sentry.h"

#include "base/json_write.h"
#include "core/status.h"

void sentry_reply_error(struct http_exchange *x, int status, const char *text)
{
    struct sl_buf json = {0};
    struct sl_json_writer w = sl_json_writer(&json);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "error", sl_str(text));
    sl_json_end_object(&w);
    http_reply_json(x, status, &json);
}

/* Answers an error of the server in the form of Sentry: with a text for the status, or `detail`. The text is the member `detail` if an
 * access key is missing or wrong, else `error`. 405 mostly answers uploads of single files to a release, for which there is no route. */
static void reply_server_error(struct http_exchange *x, int status, const char *detail)
{
    struct sl_buf json = {0};
    struct sl_json_writer w = sl_json_writer(&json);
    const char *text = status == 401   ? "Authentication credentials were not provided."
                       : status == 403 ? "You do not have permission to perform this action."
                       : status == 405
                           ? "Not supported. Upload the files of a release together, with `sentry-cli sourcemaps "
                             "upload --release VERSION DIRECTORY`."
                       : status == 413 ? "Request too large"
                       : detail        ? detail
                                       : status_reason(status);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, status == 401 || status == 403 ? "detail" : "error", sl_str(text));
    sl_json_end_object(&w);
    http_reply_json(x, status, &json);
}

bool sentry_is_sha1(struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!((text.data[i] >= '0' && text.data[i] <= '9') || (text.data[i] >= 'a' && text.data[i] <= 'f')))
            return false;
    return text.size == SHA1_HEX;
}

struct sl_str sentry_chunk_name(struct sl_arena *arena, struct sl_str sha1)
{
    struct sl_buf name = {0};
    sl_buf_printf(&name, "chunks/%.2s/" SL_STR_FMT, sha1.data, SL_STR_ARG(sha1));
    return sl_buf_move_to_arena(&name, arena);
}

void sentry_put_own_url(const struct http_exchange *x, struct sl_buf *out)
{
    const struct config *config = ((const struct service *)x->service)->config;
    struct sl_str base = sl_str(config->upload.public_url ? config->upload.public_url : "");
    while (sl_str_ends(base, SL_STR("/")))
        base.size--;
    sl_buf_str(out, base);
    if (!base.size) {
        http_put_base_url(x, out);
        out->size -= out->size > 0; /* removes the last slash, as the path begins with one */
    }
    sl_buf_str(out, x->path);
}

/* Answers with the limits of uploads, which sentry-cli asks for first, and with the kinds of files that it may send (`accept`). */
static void tell_limits(struct http_exchange *x)
{
    static const struct sl_str compression = SL_STR("gzip"), accept[] = {SL_STR("debug_files"),
                                                                         SL_STR("pdbs"),
                                                                         SL_STR("portablepdbs"),
                                                                         SL_STR("sources"),
                                                                         SL_STR("bcsymbolmaps"),
                                                                         SL_STR("il2cpp"),
                                                                         SL_STR("proguard"),
                                                                         SL_STR("artifact_bundles"),
                                                                         SL_STR("artifact_bundles_v2"),
                                                                         SL_STR("release_files")};
    const struct config *config = ((const struct service *)x->service)->config;
    struct sl_buf json = {0}, url = {0};
    struct sl_json_writer w = sl_json_writer(&json);
    sentry_put_own_url(x, &url);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "url", sl_buf_view(&url));
    sl_json_member_u64(&w, "chunkSize", SENTRY_CHUNK_SIZE);
    sl_json_member_u64(&w, "chunksPerRequest", SENTRY_MAX_CHUNKS);
    sl_json_member_u64(&w, "maxFileSize", config->uploads_store.max_file_size);
    sl_json_member_u64(&w, "maxRequestSize", SENTRY_MAX_REQUEST);
    sl_json_member_u64(&w, "concurrency", 8); /* requests with chunks that a client sends at a time */
    sl_json_member_str(&w, "hashAlgorithm", SL_STR("sha1"));
    sl_json_put_texts(&w, "compression", &compression, 1);
    sl_json_put_texts(&w, "accept", accept, sizeof accept / sizeof *accept);
    sl_json_end_object(&w);
    sl_buf_free(&url);
    http_reply_json(x, 200, &json);
}

/* ---- routes ---- */

static uint64_t chunks_limit(const struct http_exchange *x)
{
    enum { HEADERS = 1 << 20 };
    (void)x;
    return SENTRY_MAX_REQUEST + HEADERS;
}

static uint64_t assemble_limit(const struct http_exchange *x)
{
    (void)x;
    return SENTRY_MAX_REQUEST;
}

static uint64_t release_limit(const struct http_exchange *x)
{
    (void)x;
    return 64 << 10;
}

static bool is_enabled(const void *service)
{
    return debug_files_are_open() && ((const struct service *)service)->config->upload.sentry;
}

#define WRITE API_RIGHT("symbols:write")

static const struct http_route sentry_routes[] = {
    {.method = "GET",
     .pattern = "/api/0/organizations/{org}/chunk-upload/",
     .handler = tell_limits,
     .immediate = true,
     .rights = WRITE},
    {.method = "POST",
     .pattern = "/api/0/organizations/{org}/chunk-upload/",
     .handler = sentry_receive_chunks,
     .takes_work = true,
     .check = sentry_check_chunks,
     .body_limit = chunks_limit,
     .body_weight = 1,
     .rights = WRITE},
    {.method = "POST",
     .pattern = "/api/0/projects/{org}/{project}/files/difs/assemble/",
     .handler = sentry_assemble_debug_files,
     .takes_work = true,
     .body_limit = assemble_limit,
     .body_weight = JSON_WEIGHT,
     .rights = WRITE},
    {.method = "POST",
     .pattern = "/api/0/organizations/{org}/artifactbundle/assemble/",
     .handler = sentry_assemble_bundle,
     .takes_work = true,
     .body_limit = assemble_limit,
     .body_weight = JSON_WEIGHT,
     .rights = WRITE},
    {.method = "GET",
     .pattern = "/api/0/projects/{org}/{project}/artifact-lookup/",
     .handler = sentry_look_up_artifacts,
     .takes_work = true,
     .rights = (const char *const[]){"symbols:read", "symbols:write", NULL}},
    {.method = "POST",
     .pattern = "/api/0/projects/{org}/{project}/releases/",
     .handler = sentry_create_release,
     .body_limit = release_limit,
     .body_weight = JSON_WEIGHT,
     .rights = WRITE},
    {.method = "PUT",
     .pattern = "/api/0/projects/{org}/{project}/releases/{version}/",
     .handler = sentry_update_release,
     .body_limit = release_limit,
     .body_weight = JSON_WEIGHT,
     .rights = WRITE},
    {.method = "PUT",
     .pattern = "/api/0/organizations/{org}/releases/{version}/",
     .handler = sentry_update_organization_release,
     .body_limit = release_limit,
     .body_weight = JSON_WEIGHT,
     .rights = WRITE},
    {.method = "GET",
     .pattern = "/api/0/projects/{org}/{project}/releases/{version}/files/",
     .handler = sentry_list_release_files,
     .immediate = true,
     .rights = WRITE},
    {.method = NULL},
};

const struct http_family family_sentry = {.routes = sentry_routes,
                                          .enabled = is_enabled,
                                          .group = "symbols",
                                          .always_requires_key = true,
                                          .error = reply_server_error};
