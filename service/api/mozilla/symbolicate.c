/* POST /symbolicate/v5, /symbolicate/v4 and /, with CORS for browsers (Fetch Standard, "CORS protocol"). */
#include "api/local_request.h"
#include "api/mozilla/mozilla.h"
#include "core/duration.h"
#include "core/loop.h"
#include "core/metrics.h"

/* Memory that a request needs (body, what is read from it, native request), as a multiple of its body's size. */
enum { MOZ_WEIGHT = 24 };

static const char unavailable[] = "symbol storage is temporarily unavailable";

static const struct config *moz_config(const struct http_exchange *x)
{
    return ((const struct service *)x->service)->config;
}

/* ---- answers ---- */

/* True if the configuration lets pages of the request's origin read answers; `*origin` is then the value for
 * Access-Control-Allow-Origin. */
bool mozilla_origin_allowed(const struct http_exchange *x, struct sl_str *origin)
{
    const struct config *config = moz_config(x);
    return http_origin_allowed(x, config->http.mozilla_origins, config->http.mozilla_origin_count, origin);
}

/* Adds the CORS headers that let a browser give the answer to a page of the request's origin. */
static void moz_allow_origin(struct http_exchange *x)
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

/* Replies with an error; the title is the member "title", "error" or both, as configured. Written by hand, as each colon is followed by
 * a blank: clients compare bytes. `comma` false: the writer puts none before the next value. With status 503 the client is asked to
 * retry after five seconds. */
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
    moz_allow_origin(x);
}

/* Answers an error as Mozilla's service does, with a title for each status; `detail` is only sent with 503. */
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

/* Returns why a body was refused, as a metric label: mozilla_read's messages are told apart by words in them. */
static const char *get_refusal(const struct json_failure *failure)
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

/* Answers a body that mozilla_read has refused. Wrong bodies are counted by reason, in this service's metric and in that of
 * Mozilla's own (Eliot). */
static void moz_refuse(struct http_exchange *x, const struct json_failure *failure)
{
    if (failure->status == 400) {
        metric_add(METRIC_MOZILLA_ERRORS, 1, get_refusal(failure), NULL, NULL);
        metric_add(METRIC_ELIOT_REQUEST_ERROR, 1, get_refusal(failure), NULL, NULL);
    }
    if (failure->status == 503)
        http_reply_no_memory(x);
    else
        mozilla_reply_title(x, failure->status, failure->problem, NULL);
}

/* Answers by the outcome of the job. mozilla_write_answer is the only step that lets it fail, when a symbol store did not answer.
 * JOB_RUNNING: the configured time is over. */
static void moz_answer(struct http_exchange *x, struct job *job)
{
    switch (job->outcome) {
    case JOB_COMPLETED:
        http_reply_json(x, 200, &job->answer);
        moz_allow_origin(x);
        break;
    case JOB_FAILED: http_reply_error(x, 503, unavailable); break;
    case JOB_INTERNAL_ERROR: http_reply_error(x, 500, NULL); break;
    case JOB_BUSY: http_reply_no_memory(x); break;
    case JOB_CANCELLED: /* nobody receives this answer */
    case JOB_TIMEOUT:
    case JOB_RUNNING: http_reply_error(x, 503, "the request takes too long"); break;
    }
}

/* If the client is gone, nothing is sent, and job_remove_client cancels the job. If only the time is over, the job runs on to its end. */
void mozilla_answer(struct http_exchange *x, struct job *job)
{
    if (job_wait(job, DURATION_MS(moz_config(x)->mozilla.request_timeout_ns)) != FIBER_CANCELLED)
        moz_answer(x, job);
    job_remove_client(job);
}

/* ---- requests ---- */

static bool moz_read(struct job *job, void *arg, struct sl_str text, struct json_failure *failure)
{
    struct mozilla_request *r = arg;
    r->native.then = mozilla_write_answer; /* runs in the same pool job as the look-up of names, right after it */
    return mozilla_read(r, text, failure);
}

/* True if the request has a header `Debug` that is not one of the words for "no". */
static bool moz_wants_debug(const struct http_exchange *x)
{
    static const struct sl_str off[] = {SL_STR("0"), SL_STR("false"), SL_STR("no"), SL_STR("off")};
    struct sl_str value = http_header(x, "debug");
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (sl_str_equal_nocase(value, off[i]))
            return false;
    return value.size > 0;
}

/* Sets the version from the end of the route's path (0: the body says which), and whether the answer gets the member "debug". */
static void moz_head(struct http_exchange *x, void *arg)
{
    struct mozilla_request *r = arg;
    struct sl_str path = sl_str(x->route->pattern);
    r->version = sl_str_ends(path, SL_STR("v5")) ? 5 : sl_str_ends(path, SL_STR("v4")) ? 4 : 0;
    r->wants_debug = moz_wants_debug(x);
}

/* Reads a command's request. Its sources replace Mozilla's stores and the symbol store of the service. */
static bool moz_read_local(struct job *job, void *arg, const void *asked, struct json_failure *failure)
{
    struct mozilla_request *r = arg;
    const struct local_request *local = asked;
    if (!moz_read(job, r, local->body, failure))
        return false;
    r->native.stores = NULL;
    r->native.includes_symbol_store = false;
    r->native.sources = local->sources;
    r->native.source_count = local->source_count;
    r->native.sources_number = 0; /* results of searches are not cached for this list of sources */
    return true;
}

const struct job_kind job_mozilla = {
    .task = "mozilla",
    .size = sizeof(struct mozilla_request),
    .open = mozilla_open,
    .head = moz_head,
    .read = moz_read,
    .refuse = moz_refuse,
    .answer = mozilla_answer,
    .read_local = moz_read_local,
    .run = native_run,
    .reset = native_reset,
    .finish = mozilla_finish,
    .release = native_release,
};

/* POST /: does what the paths with a version do, if the configuration allows it. */
static void symbolicate_any(struct http_exchange *x)
{
    if (moz_config(x)->mozilla.root_alias)
        job_handle(x);
    else
        http_reply_error(x, 405, NULL);
}

/* Answers OPTIONS: a browser's preflight request (Fetch Standard, "CORS-preflight request"), which has the two headers checked here, or
 * a plain one, which gets `Allow`. A preflight may also ask for access to a private network: it gets that if the configuration allows
 * it. */
void mozilla_options(struct http_exchange *x)
{
    struct sl_str wanted = http_header(x, "access-control-request-headers");
    http_reply_empty(x, 200);
    moz_allow_origin(x);
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
    MOZILLA_POST("/symbolicate/v5", job_handle, &job_mozilla, moz_limit, MOZ_WEIGHT),
    MOZILLA_POST("/symbolicate/v4", job_handle, &job_mozilla, moz_limit, MOZ_WEIGHT),
    MOZILLA_POST("/", symbolicate_any, &job_mozilla, moz_limit, MOZ_WEIGHT),
    MOZILLA_PREFLIGHT("/symbolicate/v5"),
    MOZILLA_PREFLIGHT("/symbolicate/v4"),
    MOZILLA_PREFLIGHT("/"),
    {.method = "POST", .pattern = "/symbolicate/{rest..}", .handler = moz_not_found, .immediate = true},
    {.method = NULL},
};

const struct http_family family_mozilla = {.routes = routes,
                                           .prefix = mozilla_prefix,
                                           .enabled = moz_enabled,
                                           .group = "mozilla",
                                           .error = mozilla_error,
                                           .allow_separator = ", ",
                                           .origin_allowed = mozilla_origin_allowed};
