/* POST /symbolicate: a native request becomes a job. */
#include <stdio.h>

#include "api/impl.h"
#include "api/native.h"
#include "core/guard.h"
#include "core/metrics.h"

/* No larger bodies are read by the loop itself: some 0.1 ms. */
enum { MANY_FRAMES = 10000, SMALL_BODY = 16 * 1024, FIRST_ANSWER = 1 << 20 };

/* ---- the body ---- */
struct reading {
    struct native_request *request;
    struct sl_str body;
    const struct config *config;
    const char *problem;
    int status;
    bool good;
};

static void no_memory(struct reading *r)
{
    r->good = false;
    r->status = 503;
    r->problem = "not enough memory for this request";
}

/* The request has views of the body, which therefore stays with it. */
static void read_request(void *arg)
{
    struct reading *r = arg;
    struct sl_arena *arena = r->request->arena;
    struct sl_str body = {sl_arena_strndup(arena, r->body.data, r->body.size), r->body.size};
    if (!body.data) {
        no_memory(r);
        return;
    }
    r->good = native_read(r->request, body, r->config, &r->status, &r->problem);
    if (r->good && !native_sort_modules(r->request))
        no_memory(r);
    if (r->good)
        native_match(r->request);
}

static void reply_problem(struct http_exchange *x, const struct reading *r)
{
    struct sl_buf text = {0};
    if (r->status != 400 && r->status != 422) {
        http_reply_detail(x, r->status, r->problem, NULL);
        return;
    }
    sl_buf_cstr(&text, r->status == 400 ? "Failed to parse the request body as JSON: "
                                        : "Failed to deserialize the JSON body into the target type: ");
    sl_buf_cstr(&text, r->problem);
    http_reply(x, r->status, "text/plain; charset=utf-8", sl_buf_view(&text));
    sl_buf_free(&text);
}

static struct native_request *new_request(struct job *job, struct sl_str scope)
{
    struct native_request *request = SL_ARENA_NEW(&job->arena, struct native_request);
    const char *kept = sl_arena_strndup(&job->arena, scope.data, scope.size);
    if (!request || !kept)
        return NULL;
    request->arena = &job->arena;
    request->scope = (struct sl_str){kept, scope.size};
    return request;
}

/* NULL: the answer is set. */
static struct native_request *read_body(struct http_exchange *x, struct job *job, struct sl_str scope)
{
    struct sl_bytes body;
    struct sl_error error;
    if (http_body(x, &body) != SL_OK)
        return NULL;
    struct native_request *request = new_request(job, scope);
    struct reading r = {.request = request, .body = {(const char *)body.data, body.size}, .config = job->config};
    if (!request)
        no_memory(&r);
    else if (body.size <= SMALL_BODY)
        read_request(&r);
    else if (pool_run(POOL_JSON, read_request, &r, &error) != SL_OK) {
        http_reply_detail(x, 503, error.message, NULL);
        return NULL;
    }
    if (!r.good)
        reply_problem(x, &r);
    memory_set(&x->memory, body.size + job->arena.used); /* instead of what it might have been */
    return r.good ? request : NULL;
}

/* ---- the job ---- */
struct step { /* pure work on a request */
    struct native_request *request;
    const struct config *config;
    struct sl_buf *answer;
};

static void symbolicate(void *arg)
{
    struct step *step = arg;
    native_symbolicate(step->request, step->config->max_response_frames);
}

/* What the frames that come out will take, about: their arrays grow by doubling. */
static size_t expected_frames(const struct native_request *request)
{
    return 2 * request->frame_count * sizeof(struct native_result_frame);
}

/* About as much as the answer will take, so that a small one grows but once. */
static size_t expected_size(const struct native_request *request)
{
    enum { BASE = 512, FRAME = 384, MODULE = 384 };
    return BASE + request->result_count * FRAME + request->module_count * MODULE;
}

static void write_answer(void *arg)
{
    struct step *step = arg;
    native_finish(step->request);
    size_t size = expected_size(step->request);
    sl_buf_reserve(step->answer, size < FIRST_ANSWER ? size : FIRST_ANSWER);
    struct json_writer w = json_writer(step->answer);
    json_object_begin(&w);
    json_key(&w, "status");
    json_str(&w, SL_STR("completed"));
    native_write(step->request, &w);
    json_object_end(&w);
}

/* On the loop when it is little, else on the pool. */
static enum sl_code do_step(void (*work)(void *arg), struct step *step, size_t frames, struct sl_error *error)
{
    if (frames > NATIVE_FEW_FRAMES || step->request->module_count > NATIVE_FEW_FRAMES)
        return pool_run(frames > MANY_FRAMES ? POOL_SYMBOLICATE | POOL_HEAVY : POOL_SYMBOLICATE, work, step, error);
    return guard_run(work, step) ? SL_OK : sl_fail(error, SL_INTERNAL, "a mapped file could not be read");
}

static void apply_sources(void *arg)
{
    native_apply_sources(((struct step *)arg)->request);
}

static enum sl_code add_context(struct step *step, struct sl_error *error)
{
    struct native_request *request = step->request;
    bool any = request->srcsrv_links;
    if (!native_find_sources(request))
        return SL_CANCELLED;
    for (size_t i = 0; i < request->module_count; i++)
        any = any || request->modules[i].has_sources;
    if (!any)
        return SL_OK;
    enum sl_code code = pool_run(POOL_SYMBOLICATE, apply_sources, step, error);
    return code == SL_OK ? native_download_sources(request, error) : code;
}

/* The job may use so much more from now on; waits until there is as much. */
static enum sl_code ask_for(struct job *job, size_t more, struct sl_error *error)
{
    enum sl_code code = memory_ask(&job->memory, job->arena.used + more, error);
    return code && code != SL_CANCELLED ? sl_fail(error, SL_BUSY, "not enough memory for the answer") : code;
}

static enum sl_code symbolicate_work(struct job *job, struct native_request *request, struct sl_error *error)
{
    struct step step = {request, job->config, &job->answer};
    enum sl_code code;
    if (!native_find_symbols(request))
        return request->out_of_memory ? sl_fail(error, SL_BUSY, "out of memory") : SL_CANCELLED;
    if ((code = ask_for(job, expected_frames(request), error)) != SL_OK ||
        (code = do_step(symbolicate, &step, request->frame_count, error)) != SL_OK)
        return code;
    if (!native_name(request, job->service->names, error))
        return error->code;
    job_count_memory(job);
    if (request->options.apply_source_context != BOOL_FALSE && (code = add_context(&step, error)) != SL_OK)
        return code;
    if (request->out_of_memory)
        return sl_fail(error, SL_BUSY, "out of memory");
    if ((code = ask_for(job, expected_size(request), error)) != SL_OK)
        return code;
    code = do_step(write_answer, &step, request->result_count, error);
    memory_set(&job->memory, job->arena.used + job->answer.capacity);
    return code;
}

static void count(const struct native_request *request)
{
    const char *platform = "unknown";
    for (size_t i = 0; i < request->module_count; i++) {
        const struct native_module *module = &request->modules[i];
        if (module->id->type != OBJECT_UNKNOWN && strcmp(platform, "unknown") == 0)
            platform = object_type_name(module->id->type);
        metric_add(METRIC_MODULES, 1, object_type_name(module->id->type), "debug", native_module_status(module));
    }
    for (size_t i = 0; i < FRAME_STATUSES; i++)
        if (request->status_counts[i])
            metric_add(METRIC_FRAMES, request->status_counts[i], "symbolicate", platform,
                       native_frame_status((enum native_status)i));
}

static enum sl_code symbolicate_run(struct job *job, void *arg, struct sl_error *error)
{
    struct native_request *request = arg;
    enum sl_code code = symbolicate_work(job, request, error);
    if (code == SL_INTERNAL && cache_mend()) { /* a file was cut under its mapping: it is made anew */
        native_reset(request);
        sl_buf_clear(&job->answer);
        code = symbolicate_work(job, request, error);
    }
    if (code == SL_OK)
        count(request);
    native_release(request);
    return code;
}

void native_handle(struct http_exchange *x)
{
    struct api_query query;
    struct job *job = job_new(x->service, TASK_SYMBOLICATE);
    if (!job) {
        http_reply_no_memory(x);
        return;
    }
    struct native_request *request = query_read(x, &query) ? read_body(x, job, query.scope) : NULL;
    if (request)
        job_start(x, job, symbolicate_run, request);
    else
        job_discard(job);
}
