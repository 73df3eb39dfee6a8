/* The text of a source file that the symbols of an address name: out of bundles, debug files, or where the path says that it is
 * kept. Never of the machine's own files. */
#include "api/impl.h"
#include "api/mozilla/mozilla.h"
#include "source/text.h"

struct source_work {
    struct job *job;
    struct profiler_request *request;
    struct mozilla_request symbols; /* of the one address */
    struct native_module *module;
    struct source_lookup sources;
    struct sl_buf text; /* as it is kept */
    bool has_text;
};

/* ---- the address ---- */

/* One job with one frame in its one module. */
static bool prepare_address(struct source_work *w)
{
    struct profiler_request *r = w->request;
    struct mozilla_job *job = SL_ARENA_NEW(r->arena, struct mozilla_job);
    struct mozilla_module *module = SL_ARENA_NEW(r->arena, struct mozilla_module);
    struct mozilla_stack *stack = SL_ARENA_NEW(r->arena, struct mozilla_stack);
    struct mozilla_frame *frame = SL_ARENA_NEW(r->arena, struct mozilla_frame);
    if (!job || !module || !stack || !frame)
        return false;
    *frame = (struct mozilla_frame){.module = 0, .offset = r->offset};
    *stack = (struct mozilla_stack){0, 1};
    *module = (struct mozilla_module){
        .file = r->debug_name, .id = r->debug_id, .referenced = true, .native = NATIVE_NO_MODULE};
    *job = (struct mozilla_job){
        .modules = module, .stacks = stack, .frames = frame, .module_count = 1, .stack_count = 1, .frame_count = 1};
    w->symbols = (struct mozilla_request){
        .arena = r->arena, .config = r->config, .version = 5, .jobs = job, .job_count = 1, .frame_count = 1};
    return mozilla_prepare(&w->symbols);
}

/* Whether one of the functions at the address is in the file that was asked for. */
static bool is_named(const struct source_work *w)
{
    const struct native_result_trace *trace = w->symbols.native->results;
    struct sl_buf scratch = {0};
    bool named = false;
    for (size_t i = 0; i < trace->count && !named; i++) {
        struct sl_str path;
        uint64_t line;
        named = trace->frames[i].status == FRAME_SYMBOLICATED &&
                native_frame_place(w->symbols.native, &trace->frames[i], &scratch, &path, &line) &&
                sl_str_equal(path, w->request->file);
    }
    sl_buf_free(&scratch);
    return named;
}

static bool has_lines(const struct source_work *w)
{
    const struct native_result_trace *trace = w->symbols.native->results;
    return w->symbols.native->trace_count && trace->count && trace->frames[0].status == FRAME_SYMBOLICATED;
}

/* Where its path says that it is kept. */
static enum sl_code source_download(struct source_work *w, struct sl_error *error)
{
    struct sl_arena *arena = w->request->arena;
    struct sl_buf url = {0}, member = {0};
    struct cache_item *item;
    bool leads = mozilla_source_url(w->request->file, &url, &member);
    struct source_request request = {.scope = SL_STR("global")};
    if (leads) {
        request.url = scraping_url(arena, sl_buf_view(&url));
        request.member = sl_buf_keep(&member, arena);
    }
    sl_buf_free(&url);
    sl_buf_free(&member);
    if (!request.url.data)
        return sl_fail(error, SL_NOT_FOUND, leads ? "its path leads nowhere" : "no bundle and no debug file has it");
    enum sl_code code = kinds_get_source_file(&request, w->request->arena, &item, error);
    if (code != SL_OK)
        return code;
    code = kinds_append_text(&w->text, item, error);
    cache_release(item);
    w->has_text = code == SL_OK;
    return code;
}

/* ---- the text ---- */

static void find_text(void *arg)
{
    struct source_work *w = arg;
    for (size_t i = 0; i < w->sources.count && !w->has_text; i++) {
        struct sl_buf url = {0};
        sl_buf_clear(&w->text);
        kinds_source_at(&w->sources.objects[i], w->request->arena, w->request->file, &w->text, &w->has_text, &url);
        sl_buf_free(&url);
    }
}

static void write_text(void *arg)
{
    struct source_work *w = arg;
    struct sl_buf decoded = {0};
    struct sl_str text;
    if (!sl_text_decode(sl_buf_bytes(&w->text), &decoded, &text)) {
        mozilla_profiler_error(&w->job->answer, "The file is no text");
        sl_buf_free(&decoded);
        return;
    }
    struct sl_json_writer json = sl_json_writer(&w->job->answer);
    sl_json_begin_object(&json);
    sl_json_member_null(&json, "symbolsLastModified");
    sl_json_member_null(&json, "sourceLastModified");
    sl_json_member_str(&json, "file", w->request->file);
    sl_json_member_str(&json, "source", text);
    sl_json_end_object(&json);
    sl_buf_free(&decoded);
}

static enum sl_code get_text(struct source_work *w, struct sl_error *error)
{
    struct kinds_search where = native_where(w->symbols.native);
    kinds_find_source(&where, w->module->id, &w->sources);
    enum sl_code code = w->sources.code;
    if (code == SL_CANCELLED || code == SL_BUSY)
        return sl_fail(error, code, "%s", code == SL_BUSY ? "out of memory" : "cancelled");
    code = pool_run(POOL_SYMBOLICATE, find_text, w, error);
    return code == SL_OK && !w->has_text ? source_download(w, error) : code;
}

static enum sl_code answer_source(void *arg, struct sl_error *error)
{
    struct source_work *w = arg;
    struct job *job = w->job;
    struct native_means means = {job->config, job->service->names, &job->memory};
    enum sl_code code = native_run(w->symbols.native, &means, error);
    if (code != SL_OK)
        return code;
    w->module = w->symbols.native->module_count ? w->symbols.native->modules : NULL;
    if (!w->module || w->module->found->lookup.code != SL_OK) {
        const char *why = w->module ? native_module_status(w->module) : "its id is none";
        mozilla_profiler_error(&w->job->answer, "Could not obtain symbols for the requested library: %s", why);
        return SL_OK;
    }
    if (!has_lines(w)) {
        mozilla_profiler_error(&w->job->answer, "Don't have any debug info for the requested library");
        return SL_OK;
    }
    if (!is_named(w)) {
        mozilla_profiler_error(&w->job->answer, "The requested path is not present in the symbolication frames");
        return SL_OK;
    }
    code = get_text(w, error);
    if (code == SL_CANCELLED || code == SL_BUSY || code == SL_INTERNAL)
        return code;
    if (code != SL_OK) {
        mozilla_profiler_error(&w->job->answer, "The source of the file cannot be had: %s",
                               error->message[0] ? error->message : sl_code_name(code));
        return SL_OK;
    }
    return pool_run(POOL_JSON, write_text, w, error);
}

static void release_sources(struct source_work *w)
{
    for (size_t i = 0; i < w->sources.count; i++)
        kinds_source_release(&w->sources.objects[i]);
    w->sources = (struct source_lookup){.count = 0};
    sl_buf_clear(&w->text);
    w->has_text = false;
}

static void reset_source(void *arg)
{
    struct source_work *w = arg;
    release_sources(w);
    native_reset(w->symbols.native);
    sl_buf_clear(&w->job->answer);
}

enum sl_code mozilla_source_run(struct job *job, void *arg, struct sl_error *error)
{
    struct source_work w = {.job = job, .request = arg};
    struct sl_str *names[] = {&w.request->debug_name, &w.request->debug_id};
    for (size_t i = 0; i < 2; i++)
        if (!names[i]->data)
            *names[i] = SL_STR("");
    if (!mozilla_is_name(w.request->debug_name, sl_str(job->config->mozilla.extra_name_chars))) {
        mozilla_profiler_error(&job->answer, "Could not obtain symbols for the requested library: its name is none");
        return SL_OK;
    }
    if (!prepare_address(&w))
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = cache_run_reader(&(struct cache_reader){answer_source, reset_source}, &w, error);
    release_sources(&w);
    sl_buf_free(&w.text);
    native_release(w.symbols.native);
    if (code == SL_OK && job->answer.failed)
        code = sl_fail(error, SL_BUSY, "out of memory");
    memory_set(&job->memory, job->arena.used + job->answer.capacity);
    return code;
}
