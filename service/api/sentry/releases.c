/* The requests of sentry-cli 2 for releases. A release is only a name under which artifact bundles are uploaded
 * (debug_file_store/artifacts.h): nothing is stored for it alone, and it has no files besides those in its bundles:
 *
 *     POST /api/0/projects/{org}/{project}/releases/                    {"version": "1.0"}: answers as if it were created
 *     PUT  /api/0/projects/{org}/{project}/releases/{version}/          answers as if it were changed: `releases finalize`
 *     GET  /api/0/projects/{org}/{project}/releases/{version}/files/    []
 *
 * Uploads of single files to a release are refused (405): a look-up reads only the newest bundles of a release, so files that were stored
 * as a bundle each would soon not be found. */
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
    struct sl_json json = sl_json(body, arena, false); /* false: strict JSON, without comments */
    struct sl_fields s = {.json = &json};
    *release = (struct sentry_release){.version = {NULL, 0}};
    *problem = NULL;
    if (sl_fields_object(&s, NULL, release_fields, release) && sl_json_end(&json))
        return true;
    /* the reason: of the first wrong member, of the JSON syntax, or further text behind a valid object */
    if (!json.busy) /* busy: out of memory */
        *problem = s.problem ? s.problem : json.problem ? json.problem : "expected one JSON object";
    return false;
}

/* Replies with the release as Sentry describes one. Nothing is stored of releases, so `dateCreated` is now. */
static void reply_release(struct http_exchange *x, int status, struct sl_str version, struct sl_str released)
{
    struct sl_buf json = {0};
    struct sl_json_writer w = sl_json_writer(&json);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "version", version);
    sl_json_member_str(&w, "shortVersion", version);
    sentry_put_date(&w, "dateCreated", (uint64_t)clock_wall_s());
    sl_json_member_or_null(&w, "dateReleased", released.size ? released : (struct sl_str){NULL, 0});
    sl_json_member_u64(&w, "newGroups", 0); /* Sentry's count of new issues in the release */
    sl_json_end_object(&w);
    http_reply_json(x, status, &json);
}

/* Answers a request to create or change a release with `status` and the release. Its name is `in_path`, the version in the request's path,
 * or, if that is NULL, the "version" of the body. */
static void answer_release(struct http_exchange *x, int status, const struct sl_str *in_path)
{
    struct sl_bytes body;
    struct sentry_release release;
    const char *problem;
    if (http_body(x, &body) != SL_OK) /* the server has answered, or the client is gone */
        return;
    bool is_read =
        sentry_read_release((struct sl_str){(const char *)body.data, body.size}, &x->arena, &release, &problem);
    struct sl_str version = in_path ? *in_path : release.version;
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
    answer_release(x, 201, NULL); /* NULL: the name is in the body */
}

void sentry_update_release(struct http_exchange *x)
{
    answer_release(x, 200, &x->captures[2]); /* captures 0 and 1 are organization and project */
}

void sentry_update_organization_release(struct http_exchange *x)
{
    answer_release(x, 200, &x->captures[1]); /* capture 0 is the organization */
}

/* Answers an empty list: releases have no files besides their bundles. */
void sentry_list_release_files(struct http_exchange *x)
{
    struct sl_buf json = {0};
    sl_buf_cstr(&json, "[]");
    http_reply_json(x, 200, &json);
}
