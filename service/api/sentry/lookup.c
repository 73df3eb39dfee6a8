/* Sentry's API by which symbolication services find uploaded artifact bundles (archives of JavaScript files):
 *
 *     GET .../artifact-lookup/?release=1.0&url=app&dist=&debug_id=...     a list of bundles
 *     GET .../artifact-lookup/?download=artifact_bundle/<sha1>            one of them */
#include "api/sentry/sentry.h"

#include <stdlib.h>

#include "base/json_write.h"
#include "core/log.h"
#include "core/pool.h"
#include "debug_file_store/artifacts.h"

#define BUNDLE_ID "artifact_bundle/"
enum { MAX_DEBUG_IDS = 64 };

/* Writes a found bundle as a JSON object. Its id is "artifact_bundle/<sha1>" (BUNDLE_ID is the text before the SHA-1); the SHA-1 is the
 * last 40 characters of the bundle's path in the store. `base`: URL of this route without a query; with the id it is the download URL. */
static void write_bundle(struct sl_json_writer *w, const struct found_bundle *bundle, struct sl_str base)
{
    struct sl_str path = bundle->file.path;
    struct sl_buf id = {0}, url = {0};
    sl_buf_printf(&id, BUNDLE_ID "%.*s", SHA1_HEX, path.data + path.size - SHA1_HEX);
    sl_buf_str(&url, base);
    sl_buf_printf(&url, "?download=" SL_STR_FMT, SL_STR_ARG(sl_buf_view(&id)));
    sl_json_begin_object(w);
    sl_json_member_str(w, "type", SL_STR("bundle"));
    sl_json_member_str(w, "id", sl_buf_view(&id));
    sl_json_member_str(w, "url", sl_buf_view(&url));
    sl_json_member_str(w, "resolved_with", bundle->by_id ? SL_STR("debug-id") : SL_STR("release"));
    sl_json_end_object(w);
    sl_buf_free(&id);
    sl_buf_free(&url);
}

/* Replies to a request whose look-up or download failed: 503 for lack of memory, else 500, with the reason in the log only. */
static void reply_lookup_failure(struct http_exchange *x, enum sl_code code, const struct sl_error *error)
{
    if (code == SL_CANCELLED) /* the client is gone */
        return;
    if (code == SL_BUSY) {
        http_reply_no_memory(x);
        return;
    }
    log_error("uploads", "cannot find or read an uploaded artifact bundle", LOG_ERR(error));
    sentry_reply_error(x, 500, "Internal error");
}

struct lookup_answer {
    struct http_exchange *x;
    struct sl_json_writer w; /* of the JSON array of bundles */
    struct sl_str base;      /* URL of this route without a query */
    /* Paths of the bundles written so far. Large enough for all: a debug id finds at most MAX_FOUND_BUNDLES, a release twice as many. */
    struct sl_str listed[2 * MAX_DEBUG_IDS * MAX_FOUND_BUNDLES];
    size_t count; /* of `listed` */
};

/* Writes the bundles that contain a file with the debug id (NULL: not asked) or belong to the release (empty: not asked). Those that were
 * written for another id before, and so are in `listed`, are left out. */
static enum sl_code add_bundles(struct lookup_answer *a, const struct artifact_release *release,
                                const struct sl_debug_id *id, struct sl_error *error)
{
    struct found_bundle *bundles;
    size_t count;
    enum sl_code code = artifact_bundles_find(release, id, &a->x->arena, &bundles, &count, error);
    for (size_t i = 0; code == SL_OK && i < count; i++) {
        bool is_listed = a->count == sizeof a->listed / sizeof *a->listed; /* full, which cannot happen: skip it too */
        for (size_t j = 0; j < a->count && !is_listed; j++)
            is_listed = sl_str_equal(a->listed[j], bundles[i].file.path);
        if (is_listed)
            continue;
        a->listed[a->count++] = bundles[i].file.path;
        write_bundle(&a->w, &bundles[i], a->base);
    }
    return code;
}

/* Writes the bundles for each `debug_id` in the query, up to MAX_DEBUG_IDS of them; malformed ids are ignored. Then writes those of the
 * `release`, but only if the query also has a `url` (the script that is searched), as Sentry requires that. */
static enum sl_code add_all(struct lookup_answer *a, struct sl_error *error)
{
    struct http_exchange *x = a->x;
    struct artifact_release none = {{NULL, 0}, {NULL, 0}}, release = {http_query(x, "release"), http_query(x, "dist")};
    enum sl_code code = SL_OK;
    size_t ids = 0;
    for (size_t i = 0; code == SL_OK && i < x->query_count && ids < MAX_DEBUG_IDS; i++) {
        struct sl_debug_id id;
        if (!sl_str_equal(x->query[i].key, SL_STR("debug_id")) || !sl_debug_id_parse(x->query[i].value, &id))
            continue;
        ids++;
        code = add_bundles(a, &none, &id, error);
    }
    return code == SL_OK && http_query(x, "url").data ? add_bundles(a, &release, NULL, error) : code;
}

/* Answers with a JSON array of the bundles that have the debug ids or the release of the query. */
static void list_bundles(struct http_exchange *x)
{
    struct lookup_answer *a = SL_ARENA_NEW(&x->arena, struct lookup_answer);
    struct sl_error error = {.code = SL_OK};
    struct sl_buf json = {0}, base = {0};
    sentry_put_own_url(x, &base);
    struct sl_str base_url = sl_buf_move_to_arena(&base, &x->arena);
    if (!a || !base_url.data) {
        http_reply_no_memory(x);
        return;
    }
    a->x = x;
    a->base = base_url;
    a->w = sl_json_writer(&json);
    sl_json_begin_array(&a->w);
    enum sl_code code = add_all(a, &error);
    sl_json_end_array(&a->w);
    if (code == SL_OK) {
        http_reply_json(x, 200, &json);
        return;
    }
    sl_buf_free(&json);
    reply_lookup_failure(x, code, &error);
}

/* ---- downloads ---- */

static void unmap_bundle(void *arg)
{
    sl_unmap(arg);
    free(arg);
}

static void release_bundle(void *arg)
{
    pool_run_detached(unmap_bundle, NULL, arg);
}

/* Answers with the file of the bundle with this id, "artifact_bundle/<sha1>"; 404 if there is none. The file is sent from a mapping after
 * the arena of the exchange is freed: so the mapping is allocated by calloc, and release_bundle frees it when all is sent. */
static void send_bundle(struct http_exchange *x, struct sl_str id)
{
    struct sl_str prefix = SL_STR(BUNDLE_ID), sha1 = {NULL, 0};
    struct sl_mapping *mapping = calloc(1, sizeof *mapping);
    struct sl_error error = {.code = SL_OK};
    struct store_meta meta;
    struct sl_buf name = {0}, tag = {0};
    if (!mapping) {
        http_reply_no_memory(x);
        return;
    }
    if (sl_str_starts(id, prefix))
        sha1 = (struct sl_str){id.data + prefix.size, id.size - prefix.size};
    if (!sentry_is_sha1(sha1)) {
        free(mapping);
        sentry_reply_error(x, 404, "Not Found");
        return;
    }
    sl_buf_printf(&name, "objects/artifacts/%.2s/" SL_STR_FMT, sha1.data, SL_STR_ARG(sha1));
    sl_buf_printf(&tag, "\"" SL_STR_FMT "\"", SL_STR_ARG(sha1));
    struct sl_str etag = sl_buf_move_to_arena(&tag, &x->arena);
    enum sl_code code = name.failed || !etag.data
                            ? sl_fail(&error, SL_BUSY, "out of memory")
                            : store_area_open(debug_files_area(), sl_buf_view(&name), mapping, &meta, &error);
    sl_buf_free(&name);
    if (code == SL_OK) {
        /* 0: without Last-Modified */
        http_reply_file(x, "application/octet-stream", mapping, etag.data, 0, release_bundle, mapping);
        return;
    }
    free(mapping);
    if (code == SL_NOT_FOUND)
        sentry_reply_error(x, 404, "Not Found");
    else
        reply_lookup_failure(x, code, &error);
}

/* GET .../artifact-lookup/: sends the bundle whose id is the parameter `download`; without that, lists bundles. */
void sentry_look_up_artifacts(struct http_exchange *x)
{
    struct sl_str download = http_query(x, "download");
    if (download.data)
        send_bundle(x, download);
    else
        list_bundles(x);
}
