/* POST /symbolicate-js. */
#include "api/impl.h"
#include "api/js/js.h"
#include "core/loop.h"
#include "core/metrics.h"

#include <stddef.h>

/* ---- the job ---- */

/* Returns the code with which the job ends, with a message, when the finder has stopped or memory is out. */
static enum sl_code js_ended(const struct js_request *r, struct sl_error *error)
{
    switch (r->finder.stopped) {
    case SL_CANCELLED: return sl_fail(error, SL_CANCELLED, "cancelled");
    case SL_INTERNAL:
        return sl_fail(error, SL_INTERNAL,
                       "a script or source map was truncated while it was read, or its disk failed");
    default: return sl_fail(error, SL_BUSY, "out of memory");
    }
}

/* Estimates the memory of frames in arena and answer. Each frame takes 4 times its struct, for its texts, and lines of source code.
 * LINES: lines at, before and after the position, in the script and in the source. LINE: bytes of a line, once in the arena and once in
 * the answer. */
static uint64_t js_memory(const struct js_request *r)
{
    enum { LINES = 2 * (2 * SL_CONTEXT_LINES + 1), LINE = 2 * 160 /* bytes */ };
    size_t frame = 4 * sizeof(struct js_frame) + (r->apply_source_context == SL_BOOL_FALSE ? 0 : LINES * LINE);
    return r->frame_count * frame;
}

/* Looks up the sources whose text their maps do not contain. False when the request cannot go on (js_ended says why). */
static bool js_find_sources(struct js_request *r)
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

/* Writes the answer, if the caller wants one. */
static enum sl_code js_write_answer(struct job *job, struct js_request *r, struct sl_error *error)
{
    if (r->out_of_memory)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (!r->skips_answer)
        js_write(r, &job->answer);
    return SL_OK;
}

/* Pool work: resolves the frames. Then writes the answer, unless sources have to be looked up first, which the loop does. */
static enum sl_code js_first_work(struct job *job, void *arg, struct sl_error *error)
{
    struct js_request *r = arg;
    js_resolve(r);
    return r->want_count ? SL_OK : js_write_answer(job, r, error);
}

/* Pool work after the sources were looked up: adds their lines and writes the answer. */
static enum sl_code js_last_work(struct job *job, void *arg, struct sl_error *error)
{
    struct js_request *r = arg;
    js_add_sources(r);
    return js_write_answer(job, r, error);
}

/* Fetches scripts and maps, resolves the frames and writes the answer. Sources whose text no map contains are looked up last, as only
 * the maps name them; if there are such, js_first_work has not written the answer yet, and js_last_work does. */
static enum sl_code js_run(struct job *job, void *arg, struct sl_error *error)
{
    struct js_request *r = arg;
    r->finder.now_s = clock_wall_s();
    if (!js_prepare(r) || !js_fetch_modules(r))
        return js_ended(r, error);
    enum sl_code code = job_reserve(job, js_memory(r), error);
    if (code == SL_OK)
        code = job_work(job, POOL_SYMBOLICATE, js_first_work, error);
    if (code != SL_OK || !r->want_count)
        return code;
    return js_find_sources(r) ? job_work(job, POOL_SYMBOLICATE, js_last_work, error) : js_ended(r, error);
}

/* Counts frames and traces of a request that was answered. */
static void js_finish(struct job *job, void *arg, enum sl_code code, const struct sl_error *error)
{
    const struct js_request *r = arg;
    size_t unsymbolicated = 0;
    if (code != SL_OK)
        return;
    for (size_t t = 0; t < r->trace_count; t++)
        for (size_t i = 0; i < r->results[t].count; i++)
            unsymbolicated += !r->results[t].frames[i].symbolicated;
    metric_observe(METRIC_JS_ITEMS, (double)r->trace_count, "stacktraces", NULL, NULL);
    metric_observe(METRIC_JS_ITEMS, (double)r->frame_count, "frames", NULL, NULL);
    metric_observe(METRIC_JS_ITEMS, (double)unsymbolicated, "unsymbolicated_frames", NULL, NULL);
    metric_observe(METRIC_JS_ITEMS, (double)r->want_count, "missing_sourcescontent", NULL, NULL);
}

static void js_release(void *arg)
{
    struct js_request *r = arg;
    js_release_modules(r);
    js_finder_end(&r->finder);
}

/* Restores the state before js_run, which then runs again, as a cache file was damaged. */
static void js_reset(void *arg)
{
    struct js_request *r = arg;
    js_release(r);
    r->errors = NULL;
    r->wants = NULL;
    r->error_count = r->error_capacity = r->want_count = r->want_capacity = 0;
    r->out_of_memory = false;
}

/* ---- the request ---- */

/* Initializes an empty request (member of struct job_kind). */
static void js_open(struct job *job, void *arg)
{
    struct js_request *r = arg;
    r->arena = &job->arena;
    r->limit = &job->limit;
    r->config = job->config;
    r->scope = job->scope;
}

static bool js_read_request(struct job *job, void *request, struct sl_str text, struct json_failure *failure)
{
    return js_read(request, text, failure);
}

/* Reads a command's request. */
static bool js_read_local(struct job *job, void *arg, const void *local, struct json_failure *failure)
{
    struct js_request *r = arg;
    r->local = local;
    if (!js_read(r, r->local->body, failure))
        return false;
    if (r->local->no_scraping)
        r->allow_scraping = SL_BOOL_FALSE;
    if (r->local->no_source_context)
        r->apply_source_context = SL_BOOL_FALSE;
    return true;
}

const struct job_kind job_js = {
    .task = "symbolicate_js",
    .size = sizeof(struct js_request),
    .open = js_open,
    .read = js_read_request,
    .files = offsetof(struct js_request, files),
    .read_local = js_read_local,
    .run = js_run,
    .reset = js_reset,
    .finish = js_finish,
    .release = js_release,
};

static const struct http_route routes[] = {JSON_JOB("/symbolicate-js", &job_js), {.method = NULL}};

const struct http_family family_js = {.routes = routes, .group = "symbolicate"};
