/* POST /symbolicate: symbolicates native stack traces. */
#include "api/access.h"
#include "api/impl.h"
#include "api/local_request.h"
#include "api/native/native.h"
#include "api/form_files.h"

#include <stddef.h>

struct symbolicate_request { /* native_request comes first, as the steps of run.c expect */
    struct native_request native;
    struct request_files files;
};

/* Reads a request: its body, files and sources. What follows native_read fails only when out of memory. */
static bool symbolicate_read(struct job *job, void *arg, struct sl_str text, struct json_failure *failure)
{
    struct symbolicate_request *r = arg;
    if (!native_read(&r->native, text, job->config, failure))
        return false;
    *failure = json_no_memory;
    r->native.files = r->files.items;
    r->native.file_count = r->files.count;
    return native_add_configured(&r->native, job->config) && native_prepare(&r->native);
}

/* Member is_allowed of struct job_kind: true if the client may use the sources that the request names; otherwise the answer is set. */
bool native_is_allowed(struct http_exchange *x, const void *arg)
{
    const struct native_request *request = arg;
    return access_may_use_sources(x, request->sources, request->source_count);
}

/* Reads a command's request. Its searches are not cached (sources_number 0). */
static bool symbolicate_read_local(struct job *job, void *arg, const void *asked, struct json_failure *failure)
{
    struct native_request *request = arg; /* the first member of struct symbolicate_request */
    const struct local_request *local = asked;
    if (!native_read(request, local->body, job->config, failure))
        return false;
    *failure = json_no_memory;
    request->sources_number = 0;
    /* the body names no sources, so these are the configured ones; `local` has all that the command wants to search */
    if (request->sources == job->config->sources)
        request->source_count = 0;
    if (local->no_source_context)
        request->options.apply_source_context = SL_BOOL_FALSE;
    request->reports_line_starts = local->line_starts;
    /* modules that a command names may lie at address 0, and in each other */
    request->maps_at_zero = request->nests_modules = true;
    if (local->candidates)
        request->options.dif_candidates = SL_BOOL_TRUE;
    if (local->variables)
        request->options.extract_variables = SL_BOOL_TRUE;
    return local_request_sources(local, request->arena, &request->sources, &request->source_count) &&
           native_prepare(request);
}

static void symbolicate_open(struct job *job, void *arg)
{
    struct native_request *request = arg;
    native_open(job, request);
    request->origin = "symbolicate";
    request->writer = native_write;
}

static void symbolicate_finish(struct job *job, void *request, enum sl_code code, const struct sl_error *error)
{
    if (code == SL_OK)
        native_count(request);
}

const struct job_kind job_native = {
    .task = "symbolicate",
    .size = sizeof(struct symbolicate_request),
    .open = symbolicate_open,
    .read = symbolicate_read,
    .files = offsetof(struct symbolicate_request, files),
    .is_allowed = native_is_allowed,
    .read_local = symbolicate_read_local,
    .run = native_run,
    .reset = native_reset,
    .write = native_write_answer,
    .executor = native_answer_executor,
    .memory = native_answer_memory,
    .finish = symbolicate_finish,
    .release = native_release,
};

static const struct http_route routes[] = {JSON_JOB("/symbolicate", &job_native), {.method = NULL}};

const struct http_family family_native = {.routes = routes, .group = "symbolicate"};
