/* POST /symbolicate-js: a request for frames of scripts becomes a job. */
#include "api/js/js.h"
#include "api/json_body.h"
#include "core/loop.h"
#include "core/metrics.h"

/* ---- the job ---- */

struct js_work {
    struct job *job;
    struct js_request *request;
};

/* Sources that no map holds are looked for first. */
static void js_first_work(void *arg)
{
    struct js_work *work = arg;
    js_resolve(work->request);
    if (!work->request->out_of_memory && !work->request->want_count)
        js_write(work->request, &work->job->answer);
}

static void js_last_work(void *arg)
{
    struct js_work *work = arg;
    js_add_sources(work->request);
    if (!work->request->out_of_memory)
        js_write(work->request, &work->job->answer);
}

static bool find_sources(struct js_request *r)
{
    struct js_key *keys = SL_ARENA_ARRAY(r->arena, struct js_key, r->want_count);
    const struct js_file **found = SL_ARENA_ARRAY(r->arena, const struct js_file *, r->want_count);
    if (!keys || !found)
        return false;
    for (size_t i = 0; i < r->want_count; i++)
        keys[i] = (struct js_key){.type = JS_SOURCE, .path = r->wants[i].path};
    if (!js_find(r, keys, r->want_count, found))
        return false;
    for (size_t i = 0; i < r->want_count; i++)
        r->wants[i].file = found[i];
    return true;
}

static enum sl_code js_ended(const struct js_request *r, struct sl_error *error)
{
    switch (r->finder.stopped) {
    case SL_CANCELLED: return sl_fail(error, SL_CANCELLED, "cancelled");
    case SL_INTERNAL: return sl_fail(error, SL_INTERNAL, "a mapped file could not be read");
    default: return sl_fail(error, SL_BUSY, "out of memory");
    }
}

/* What frames may grow to in arena and answer, with their lines around them twice. */
static enum sl_code js_ask_memory(struct job *job, const struct js_request *r, struct sl_error *error)
{
    enum { LINES = 2 * (2 * SL_CONTEXT_LINES + 1), LINE = 2 * 160 };
    size_t frame = 4 * sizeof(struct js_frame) + (r->apply_source_context == SL_BOOL_FALSE ? 0 : LINES * LINE);
    enum sl_code code = memory_ask(&job->memory, r->arena->used + r->frame_count * frame, error);
    return code == SL_OK || code == SL_CANCELLED ? code : sl_fail(error, SL_BUSY, "not enough memory for the answer");
}

static enum sl_code js_steps(void *arg, struct sl_error *error)
{
    struct js_work *work = arg;
    struct job *job = work->job;
    struct js_request *r = work->request;
    r->finder.now_s = clock_wall_s();
    if (!js_prepare(r))
        return sl_fail(error, SL_BUSY, "out of memory");
    if (!js_fetch_modules(r))
        return js_ended(r, error);
    enum sl_code code = js_ask_memory(job, r, error);
    if (code == SL_OK)
        code = pool_run(POOL_SYMBOLICATE, js_first_work, work, error);
    if (code == SL_OK && !r->out_of_memory && r->want_count) {
        if (!find_sources(r))
            return js_ended(r, error);
        code = pool_run(POOL_SYMBOLICATE, js_last_work, work, error);
    }
    memory_set(&job->memory, r->arena->used + job->answer.capacity);
    if (code == SL_OK && (r->out_of_memory || job->answer.failed))
        return sl_fail(error, SL_BUSY, "out of memory");
    return code;
}

static void js_count(const struct js_request *r)
{
    size_t unsymbolicated = 0;
    for (size_t t = 0; t < r->trace_count; t++)
        for (size_t i = 0; i < r->results[t].count; i++)
            unsymbolicated += !r->results[t].frames[i].symbolicated;
    metric_observe(METRIC_JS_ITEMS, (double)r->trace_count, "stacktraces", NULL, NULL);
    metric_observe(METRIC_JS_ITEMS, (double)r->frame_count, "frames", NULL, NULL);
    metric_observe(METRIC_JS_ITEMS, (double)unsymbolicated, "unsymbolicated_frames", NULL, NULL);
    metric_observe(METRIC_JS_ITEMS, (double)r->want_count, "missing_sourcescontent", NULL, NULL);
}

static void js_end(struct js_request *r)
{
    js_release_modules(r);
    js_finder_end(&r->finder);
}

static void js_reset(void *arg)
{
    struct js_work *work = arg;
    struct js_request *r = work->request;
    js_end(r);
    sl_buf_clear(&work->job->answer);
    r->errors = NULL;
    r->wants = NULL;
    r->error_count = r->error_capacity = r->want_count = r->want_capacity = 0;
    r->out_of_memory = false;
}

static enum sl_code js_run(struct job *job, void *arg, struct sl_error *error)
{
    struct js_request *r = arg;
    struct js_work work = {job, r};
    enum sl_code code = cache_run_reader(&(struct cache_reader){js_steps, js_reset}, &work, error);
    if (code == SL_OK)
        js_count(r);
    js_end(r);
    return code;
}

/* ---- the request ---- */

static bool js_read_request(void *arg, struct sl_str text, struct json_failure *failure)
{
    return js_read(arg, text, failure);
}

static struct js_request *js_request_new(struct job *job, struct sl_str scope)
{
    struct js_request *r = SL_ARENA_NEW(&job->arena, struct js_request);
    const char *kept = sl_arena_strndup(&job->arena, scope.data, scope.size);
    struct answer_limit *limit = SL_ARENA_NEW(&job->arena, struct answer_limit);
    if (!r || !kept || !limit)
        return NULL;
    *r = (struct js_request){.arena = &job->arena, .config = job->config, .scope = {kept, scope.size}, .limit = limit};
    return r;
}

/* NULL: the answer is set. */
static struct js_request *js_body(struct http_exchange *x, struct job *job, struct sl_str scope)
{
    struct js_request *r = js_request_new(job, scope);
    struct json_body body = {.arena = &job->arena, .read = js_read_request, .arg = r};
    if (!r)
        http_reply_no_memory(x);
    return r && own_files_read(x, &body, &r->files) ? r : NULL;
}

static void symbolicate_js(struct http_exchange *x)
{
    struct api_query query;
    struct job *job = job_new(x);
    if (!job)
        return;
    struct js_request *request = query_read(x, &query) ? js_body(x, job, query.scope) : NULL;
    if (request)
        job_start(x, job, &query, js_run, request);
    else
        job_discard(job);
}

static const struct http_route routes[] = {
    {.method = "POST",
     .pattern = "/symbolicate-js",
     .handler = symbolicate_js,
     .takes_work = true,
     .check = check_json_or_form,
     .body_limit = json_job_limit,
     .body_weight = JSON_WEIGHT,
     .rights = API_RIGHT("symbolicate"),
     .task = "symbolicate_js"},
    {.method = NULL},
};

/* ---- without a server ---- */

static void *js_read_local(const struct local_request *local, struct job *job, struct json_failure *failure)
{
    struct js_request *r = js_request_new(job, local_request_scope(local));
    *failure = json_no_memory;
    if (!r || !js_read(r, local->body, failure))
        return NULL;
    r->local = local;
    if (local->no_scraping)
        r->allow_scraping = SL_BOOL_FALSE;
    if (local->no_source_context)
        r->apply_source_context = SL_BOOL_FALSE;
    return r;
}

const struct local_family local_family_js = {"symbolicate_js", js_read_local, js_run};

const struct http_family family_js = {.routes = routes, .group = "symbolicate"};
