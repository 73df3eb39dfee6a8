/* POST /symbolicate: a native request becomes a job. */
#include <stdio.h>

#include "api/impl.h"
#include "api/native.h"
#include "core/metrics.h"

/* No more frames and bytes than these are worked on by the loop itself: some 0.1 ms. */
enum { FEW_FRAMES = 64, SMALL_BODY = 16 * 1024, FIRST_ANSWER = 1 << 20 };

/* ---- the body ---- */
struct parse {
    struct sl_arena *arena;
    struct sl_str text;
    struct value root;
    enum sl_code code;
    struct sl_error error;
};

static void parse(void *arg)
{
    struct parse *p = arg;
    p->code = value_read_json(p->arena, p->text, &p->root, &p->error);
}

/* NULL: the answer is set. */
static const struct parse *parse_body(struct http_exchange *x, struct job *job)
{
    struct sl_bytes body;
    struct parse *p = SL_ARENA_NEW(&job->arena, struct parse);
    if (!p) {
        http_reply_no_memory(x);
        return NULL;
    }
    if (http_body(x, &body) != SL_OK)
        return NULL;
    p->arena = &job->arena;
    p->text = (struct sl_str){(const char *)body.data, body.size};
    struct sl_error error;
    if (body.size <= SMALL_BODY)
        parse(p);
    else if (pool_run(POOL_JSON, parse, p, &error) != SL_OK) {
        http_reply_detail(x, 503, error.message, NULL);
        return NULL;
    }
    if (p->code == SL_OK)
        return p;
    char text[sizeof p->error.message + 64];
    snprintf(text, sizeof text, "Failed to parse the request body as JSON: %s", p->error.message);
    reply_text(x, 400, text);
    return NULL;
}

struct reading {
    struct native_request *request;
    const struct value *root;
    const struct config *config;
    const char *problem;
    int status;
    bool good;
};

static void read_request(void *arg)
{
    struct reading *r = arg;
    r->good = native_read(r->request, r->root, r->config, &r->status, &r->problem);
    if (r->good && !native_sort_modules(r->request)) {
        r->good = false;
        r->status = 503;
        r->problem = "not enough memory for this request";
    }
    if (r->good)
        native_match(r->request);
}

static void reply_problem(struct http_exchange *x, const struct reading *r)
{
    if (r->status != 422) {
        http_reply_detail(x, r->status, r->problem, NULL);
        return;
    }
    struct sl_buf text = {0};
    sl_buf_printf(&text, "Failed to deserialize the JSON body into the target type: %s", r->problem);
    http_reply(x, 422, "text/plain; charset=utf-8", sl_buf_view(&text));
    sl_buf_free(&text);
}

static struct native_request *read_body(struct http_exchange *x, struct job *job, struct sl_str scope)
{
    const struct parse *body = parse_body(x, job);
    if (!body)
        return NULL;
    struct native_request *request = SL_ARENA_NEW(&job->arena, struct native_request);
    char *copy = sl_arena_strndup(&job->arena, scope.data, scope.size);
    if (!request || !copy) {
        http_reply_no_memory(x);
        return NULL;
    }
    request->arena = &job->arena;
    request->scope = (struct sl_str){copy, scope.size};
    struct reading r = {.request = request, .root = &body->root, .config = job->config};
    struct sl_error error;
    if (body->text.size <= SMALL_BODY)
        read_request(&r);
    else if (pool_run(POOL_JSON, read_request, &r, &error) != SL_OK) {
        http_reply_detail(x, 503, error.message, NULL);
        return NULL;
    }
    if (!r.good)
        reply_problem(x, &r);
    memory_set(&x->memory, body->text.size + job->arena.used); /* instead of what it might have been */
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
    if (frames > FEW_FRAMES || step->request->module_count > FEW_FRAMES)
        return pool_run(POOL_SYMBOLICATE, work, step, error);
    work(step);
    return SL_OK;
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

static enum sl_code work(struct job *job, struct native_request *request, struct sl_error *error)
{
    struct step step = {request, job->config, &job->answer};
    enum sl_code code;
    if (!native_find_symbols(request))
        return SL_CANCELLED;
    if ((code = do_step(symbolicate, &step, request->frame_count, error)) != SL_OK)
        return code;
    if (!native_name(request, job->service->names, error))
        return error->code;
    job_count_memory(job);
    if (request->options.apply_source_context != BOOL_FALSE && (code = add_context(&step, error)) != SL_OK)
        return code;
    if (request->out_of_memory)
        return sl_fail(error, SL_BUSY, "out of memory");
    code = memory_ask(&job->memory, job->arena.used + expected_size(request), error);
    if (code)
        return code == SL_CANCELLED ? code : sl_fail(error, SL_BUSY, "not enough memory for the answer");
    code = do_step(write_answer, &step, request->result_count, error);
    memory_set(&job->memory, job->arena.used + job->answer.capacity);
    return code;
}

static void count(const struct native_request *request)
{
    const char *platform = "unknown";
    for (size_t i = 0; i < request->module_count; i++) {
        const struct native_module *module = &request->modules[i];
        if (module->id.type != OBJECT_UNKNOWN && strcmp(platform, "unknown") == 0)
            platform = object_type_name(module->id.type);
        metric_add(METRIC_MODULES, 1, object_type_name(module->id.type), "debug", native_module_status(module));
    }
    for (size_t i = 0; i < FRAME_STATUSES; i++)
        if (request->status_counts[i])
            metric_add(METRIC_FRAMES, request->status_counts[i], "symbolicate", platform,
                       native_frame_status((enum native_status)i));
}

static enum sl_code run(struct job *job, void *arg, struct sl_error *error)
{
    struct native_request *request = arg;
    enum sl_code code = work(job, request, error);
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
        job_start(x, job, run, request);
    else
        job_discard(job);
}
