/* Releases as sentry-cli 2 asks for them. A release is nothing but a name that artifact bundles have (debug_file_store/artifacts.h), so
 * it need not be created, and has no files besides those in its bundles:
 *
 *     POST /api/0/projects/{org}/{project}/releases/                    {"version": "1.0"}: says that it exists
 *     PUT  /api/0/projects/{org}/{project}/releases/{version}/          the same: `releases finalize`
 *     GET  /api/0/projects/{org}/{project}/releases/{version}/files/    []
 *
 * Single files of a release are refused (405): look-ups ask the newest bundles of a release, and one for each file would soon be too
 * many. */
#include "api/sentry/sentry.h"

#include "base/json_fields.h"
#include "base/json_write.h"
#include "core/loop.h"

enum { MAX_VERSION = 512 };

static const struct sl_field release_fields[] = {
    SL_FIELD(TEXT, false, sentry_release, version, "version"),
    SL_FIELD(TEXT, false, sentry_release, released, "dateReleased"),
    SL_FIELDS_END,
};

bool sentry_read_release(struct sl_str body, struct sl_arena *arena, struct sentry_release *release,
                         const char **problem)
{
    struct sl_json json = sl_json(body, arena, false);
    struct sl_fields s = {.json = &json};
    *release = (struct sentry_release){.version = {NULL, 0}};
    *problem = NULL;
    if (sl_fields_object(&s, NULL, release_fields, release) && sl_json_end(&json))
        return true;
    if (!json.busy)
        *problem = s.problem ? s.problem : json.problem ? json.problem : "expected one object";
    return false;
}

static void reply_release(struct http_exchange *x, int status, struct sl_str version, struct sl_str released)
{
    struct sl_buf json = {0};
    struct sl_json_writer w = sl_json_writer(&json);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "version", version);
    sl_json_member_str(&w, "shortVersion", version);
    sentry_put_date(&w, "dateCreated", (uint64_t)clock_wall_s());
    sl_json_member_or_null(&w, "dateReleased", released.size ? released : (struct sl_str){NULL, 0});
    sl_json_member_u64(&w, "newGroups", 0);
    sl_json_end_object(&w);
    http_reply_json(x, status, &json);
}

/* Answers with the release that the body or, if `named` is not NULL, the path names. */
static void answer_release(struct http_exchange *x, int status, const struct sl_str *named)
{
    struct sl_bytes body;
    struct sentry_release release;
    const char *problem;
    if (http_body(x, &body) != SL_OK)
        return;
    bool is_read =
        sentry_read_release((struct sl_str){(const char *)body.data, body.size}, &x->arena, &release, &problem);
    struct sl_str version = named ? *named : release.version;
    if (!is_read && !problem)
        http_reply_no_memory(x);
    else if (!is_read)
        sentry_reply_error(x, 400, problem);
    else if (!version.size || version.size > MAX_VERSION)
        sentry_reply_error(x, 400, "version must be the name of a release, of at most 512 bytes");
    else
        reply_release(x, status, version, release.released);
}

void sentry_create_release(struct http_exchange *x)
{
    answer_release(x, 201, NULL);
}

void sentry_update_release(struct http_exchange *x)
{
    answer_release(x, 200, &x->captures[2]); /* the first are organization and project */
}

void sentry_update_organization_release(struct http_exchange *x)
{
    answer_release(x, 200, &x->captures[1]);
}

void sentry_list_release_files(struct http_exchange *x)
{
    struct sl_buf json = {0};
    sl_buf_cstr(&json, "[]");
    http_reply_json(x, 200, &json);
}
