/* POST /symbolicate/v5, /symbolicate/v4 and /, for browsers too (Fetch Standard, "CORS protocol"). */
#include "api/json_body.h"
#include "api/local_families.h"
#include "api/mozilla/mozilla.h"
#include "core/duration.h"
#include "core/loop.h"
#include "core/metrics.h"

/* What a body, all that is read out of it and the native request take, in the body's sizes. */
enum { MOZ_WEIGHT = 24 };

static const char unavailable[] = "symbol storage is temporarily unavailable";

static const struct config *moz_config(const struct http_exchange *x)
{
    return ((const struct service *)x->service)->config;
}

/* ---- answers ---- */

bool mozilla_origin_allowed(const struct http_exchange *x, struct sl_str *origin)
{
    const struct config *config = moz_config(x);
    return http_origin_allowed(x, config->http.mozilla_origins, config->http.mozilla_origin_count, origin);
}

void mozilla_allow_origin(struct http_exchange *x)
{
    struct sl_str origin;
    if (!mozilla_origin_allowed(x, &origin))
        return;
    http_set_header(x, "Access-Control-Allow-Origin", origin);
    if (!sl_str_equal(origin, SL_STR("*")))
        http_add_vary(x, SL_STR("Origin"));
    http_set_header(
        x, "Access-Control-Expose-Headers",
        SL_STR("accept, accept-encoding, authorization, content-type, dnt, origin, user-agent, x-csrftoken, "
               "x-requested-with"));
}

/* A blank is behind each colon, as clients' tests compare the bytes. */
void mozilla_reply_title(struct http_exchange *x, int status, const char *title, const char *description)
{
    int error_key = moz_config(x)->mozilla.error_key;
    struct sl_buf body = {0};
    struct sl_json_writer w = sl_json_writer(&body);
    sl_buf_cstr(&body, error_key == MOZILLA_ERROR ? "{\"error\": " : "{\"title\": ");
    sl_json_put_str(&w, sl_str(title));
    if (error_key == MOZILLA_BOTH) {
        sl_buf_cstr(&body, ", \"error\": ");
        w.comma = false;
        sl_json_put_str(&w, sl_str(title));
    }
    if (description) {
        sl_buf_cstr(&body, ", \"description\": ");
        w.comma = false;
        sl_json_put_str(&w, sl_str(description));
    }
    sl_buf_u8(&body, '}');
    http_reply_json(x, status, &body);
    http_set_header(x, "Vary", SL_STR("Accept"));
    if (status == 503)
        http_set_header(x, "Retry-After", SL_STR("5"));
    mozilla_allow_origin(x);
}

void mozilla_error(struct http_exchange *x, int status, const char *detail)
{
    static const struct {
        int status;
        const char *title;
    } titles[] = {{400, "400 Bad Request"},        {401, "401 Unauthorized"},           {403, "403 Forbidden"},
                  {404, "404 Not Found"},          {405, "405 Method Not Allowed"},     {408, "408 Request Timeout"},
                  {413, "Payload is too large"},   {415, "415 Unsupported Media Type"}, {429, "429 Too Many Requests"},
                  {503, "503 Service Unavailable"}};
    const char *title = "500 Internal Server Error";
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (titles[i].status == status)
            title = titles[i].title;
    mozilla_reply_title(x, status, title, status == 503 ? detail : NULL);
}

/* Of the texts that checks end with, the part that tells what was checked. */
static const char *refusal_of(const struct json_failure *failure)
{
    static const struct {
        const char *part, *reason;
    } reasons[] = {{"invalid modules", "invalid_modules"},
                   {"invalid stacks", "invalid_stacks"},
                   {"no memoryMap", "invalid_modules"},
                   {"no stacks", "invalid_stacks"},
                   {"limit number of jobs", "too_many_jobs"}};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strstr(failure->problem, reasons[i].part))
            return reasons[i].reason;
    return "bad_json";
}

static void moz_refuse(struct http_exchange *x, const struct json_failure *failure)
{
    if (failure->status == 400) {
        metric_add(METRIC_MOZILLA_ERRORS, 1, refusal_of(failure), NULL, NULL);
        metric_add(METRIC_ELIOT_REQUEST_ERROR, 1, refusal_of(failure), NULL, NULL);
    }
    if (failure->status == 503)
        http_reply_no_memory(x);
    else
        mozilla_reply_title(x, failure->status, failure->problem, NULL);
}

static void moz_answer(struct http_exchange *x, struct job *job)
{
    switch (job->outcome) {
    case JOB_COMPLETED:
        http_reply_json(x, 200, &job->answer);
        mozilla_allow_origin(x);
        break;
    case JOB_FAILED: http_reply_error(x, 503, unavailable); break;
    case JOB_INTERNAL_ERROR: http_reply_error(x, 500, NULL); break;
    case JOB_BUSY: http_reply_no_memory(x); break;
    case JOB_CANCELLED: /* heard of by nobody */
    case JOB_TIMEOUT:
    case JOB_RUNNING: http_reply_error(x, 503, "the request takes too long"); break;
    }
}

void mozilla_serve(struct http_exchange *x, struct job *job, job_run *run, void *request)
{
    uint64_t patience_ms = DURATION_MS(job->config->mozilla.request_timeout_ns);
    if (!request) {
        job_discard(job);
        return;
    }
    if (!job_begin(x, job, run, request))
        return;
    if (job_wait(job, patience_ms) != FIBER_CANCELLED)
        moz_answer(x, job);
    job_leave(job);
}

/* ---- requests ---- */

static bool moz_read(void *arg, struct sl_str text, struct json_failure *failure)
{
    return mozilla_read(arg, text, failure);
}

static bool moz_wants_debug(const struct http_exchange *x)
{
    static const struct sl_str off[] = {SL_STR("0"), SL_STR("false"), SL_STR("no"), SL_STR("off")};
    struct sl_str value = http_header(x, "debug");
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (sl_str_equal_nocase(value, off[i]))
            return false;
    return value.size > 0;
}

static struct mozilla_request *moz_body(struct http_exchange *x, struct job *job, unsigned version)
{
    struct mozilla_request *r = SL_ARENA_NEW(&job->arena, struct mozilla_request);
    struct json_body body = {.arena = &job->arena, .read = moz_read, .arg = r, .refuse = moz_refuse};
    if (!r) {
        http_reply_no_memory(x);
        return NULL;
    }
    *r = (struct mozilla_request){.arena = &job->arena,
                                  .config = job->config,
                                  .version = version,
                                  .wants_debug = moz_wants_debug(x),
                                  .begun_ns = clock_mono_ns()};
    return json_body_read(x, &body) ? r : NULL;
}

static void moz_symbolicate(struct http_exchange *x, unsigned version)
{
    struct job *job = job_new(x);
    if (!job)
        return;
    struct mozilla_request *request = moz_body(x, job, version);
    mozilla_serve(x, job, mozilla_run, request);
}

static void symbolicate_v5(struct http_exchange *x)
{
    moz_symbolicate(x, 5);
}

static void symbolicate_v4(struct http_exchange *x)
{
    moz_symbolicate(x, 4);
}

/* The body says which version it is. */
static void symbolicate_any(struct http_exchange *x)
{
    if (moz_config(x)->mozilla.root_alias)
        moz_symbolicate(x, 0);
    else
        http_reply_error(x, 405, NULL);
}

void mozilla_options(struct http_exchange *x)
{
    struct sl_str wanted = http_header(x, "access-control-request-headers");
    http_reply_empty(x, 200);
    mozilla_allow_origin(x);
    if (!http_header(x, "origin").data || !http_header(x, "access-control-request-method").data) {
        http_set_header(x, "Allow", SL_STR("POST"));
        return;
    }
    http_set_header(x, "Access-Control-Allow-Methods", SL_STR("POST"));
    http_set_header(x, "Access-Control-Allow-Headers", wanted.size ? wanted : SL_STR("*"));
    http_set_header(x, "Access-Control-Max-Age", SL_STR("86400"));
    if (moz_config(x)->mozilla.allow_private_network &&
        sl_str_equal(http_header(x, "access-control-request-private-network"), SL_STR("true")))
        http_set_header(x, "Access-Control-Allow-Private-Network", SL_STR("true"));
}

static void moz_not_found(struct http_exchange *x)
{
    http_reply_error(x, 404, NULL);
}

void mozilla_check(struct http_exchange *x)
{
    job_slot_free(x);
}

static uint64_t moz_limit(const struct http_exchange *x)
{
    return moz_config(x)->mozilla.max_body_size;
}

static bool moz_enabled(const void *service)
{
    return ((const struct service *)service)->config->mozilla.on;
}

const char *mozilla_prefix(const void *service)
{
    return ((const struct service *)service)->config->mozilla.path_prefix;
}

static const struct http_route routes[] = {
    MOZILLA_POST("/symbolicate/v5", symbolicate_v5, moz_limit, MOZ_WEIGHT),
    MOZILLA_POST("/symbolicate/v4", symbolicate_v4, moz_limit, MOZ_WEIGHT),
    MOZILLA_POST("/", symbolicate_any, moz_limit, MOZ_WEIGHT),
    MOZILLA_PREFLIGHT("/symbolicate/v5"),
    MOZILLA_PREFLIGHT("/symbolicate/v4"),
    MOZILLA_PREFLIGHT("/"),
    {.method = "POST", .pattern = "/symbolicate/{rest..}", .handler = moz_not_found, .immediate = true},
    {.method = NULL},
};

/* ---- without a server ---- */

/* The stores of the configuration are the service's; here the local sources are asked instead. */
static void *moz_read_local(const struct local_request *local, struct job *job, struct json_failure *failure)
{
    struct mozilla_request *r = SL_ARENA_NEW(&job->arena, struct mozilla_request);
    *failure = json_no_memory;
    if (!r)
        return NULL;
    *r = (struct mozilla_request){.arena = &job->arena, .config = job->config, .begun_ns = clock_mono_ns()};
    if (!mozilla_read(r, local->body, failure))
        return NULL;
    r->native->stores = NULL;
    r->native->asks_store = false;
    r->native->sources = local->sources;
    r->native->source_count = local->source_count;
    r->native->sources_number = 0;
    return r;
}

const struct local_family local_family_mozilla = {"mozilla", moz_read_local, mozilla_run};

const struct http_family family_mozilla = {.routes = routes,
                                           .prefix = mozilla_prefix,
                                           .enabled = moz_enabled,
                                           .group = "mozilla",
                                           .error = mozilla_error,
                                           .allow_separator = ", ",
                                           .origin_allowed = mozilla_origin_allowed};
