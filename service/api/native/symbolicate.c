/* POST /symbolicate: a native request becomes a job. */
#include "api/access.h"
#include "api/json_body.h"
#include "api/local_families.h"
#include "api/native/native.h"
#include "api/own_files.h"

struct reading {
    struct native_request *request;
    const struct config *config;
    struct own_files files;
};

static bool read_request(void *arg, struct sl_str text, struct json_failure *failure)
{
    const struct reading *r = arg;
    if (!native_read(r->request, text, r->config, failure))
        return false;
    *failure = json_no_memory;
    for (size_t i = 0; i < r->files.count; i++) {
        const struct own_file *file = &r->files.items[i];
        struct sl_bytes bytes = {(const uint8_t *)file->text.data, file->text.size};
        if (!native_add_own(r->request, file->name, bytes))
            return false;
    }
    return native_add_configured(r->request, r->config) && native_prepare(r->request);
}

/* NULL: the answer is set. */
static struct native_request *read_body(struct http_exchange *x, struct job *job, struct sl_str scope)
{
    struct reading r = {.request = native_request_new(&job->arena, scope), .config = job->config};
    struct json_body body = {.arena = &job->arena, .read = read_request, .arg = &r};
    if (!r.request)
        http_reply_no_memory(x);
    return r.request && own_files_read(x, &body, &r.files) ? r.request : NULL;
}

static enum sl_code run(struct job *job, void *request, struct sl_error *error)
{
    return native_run_job(job, request, native_write, NULL, error);
}

static void symbolicate(struct http_exchange *x)
{
    struct api_query query;
    struct job *job = job_new(x);
    if (!job)
        return;
    struct native_request *request = query_read(x, &query) ? read_body(x, job, query.scope) : NULL;
    if (request && access_may_bring(x, request->sources, request->source_count))
        job_start(x, job, &query, run, request);
    else
        job_discard(job);
}

static const struct http_route routes[] = {
    {.method = "POST",
     .pattern = "/symbolicate",
     .handler = symbolicate,
     .takes_work = true,
     .check = check_json_or_form,
     .body_limit = json_job_limit,
     .body_weight = JSON_WEIGHT,
     .rights = API_RIGHT("symbolicate"),
     .task = "symbolicate"},
    {.method = NULL},
};

/* ---- without a server ---- */

static void *native_read_local(const struct local_request *local, struct job *job, struct json_failure *failure)
{
    struct native_request *request = native_request_new(&job->arena, local_request_scope(local));
    *failure = json_no_memory;
    if (!request || !native_read(request, local->body, job->config, failure))
        return NULL;
    *failure = json_no_memory;
    request->sources_number = 0;
    if (request->sources == job->config->sources) /* the body names none; those of the configuration are local ones */
        request->source_count = 0;
    if (local->no_source_context)
        request->options.apply_source_context = SL_BOOL_FALSE;
    request->tells_line_starts = local->line_starts;
    request->maps_at_zero = request->nests_modules = true;
    if (local->candidates)
        request->options.dif_candidates = SL_BOOL_TRUE;
    if (local->variables)
        request->options.extract_variables = SL_BOOL_TRUE;
    return local_request_sources(local, request->arena, &request->sources, &request->source_count) &&
                   native_prepare(request)
               ? request
               : NULL;
}

const struct local_family local_family_native = {"symbolicate", native_read_local, run};

const struct http_family family_native = {.routes = routes, .group = "symbolicate"};
