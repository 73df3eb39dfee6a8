/* Source text of a file, for the Firefox Profiler. The client sends an address and a path; the symbols of the address must name this
 * path. The text comes from source bundles, debug files, or the URL that the path stands for; never from the local file system. */
#include "api/impl.h"
#include "api/mozilla/mozilla.h"
#include "source/text.h"

struct source_work {                /* a request of POST /source/v1, and its result */
    struct mozilla_request symbols; /* a request that symbolicates the one address */
    struct profiler_request request;
    struct native_module *module; /* NULL: it cannot be looked up; the answer is set and says why */
    struct source_lookup sources; /* bundles and debug files that may have the text */
    struct sl_buf text;           /* bytes of the source file, in any text encoding */
    bool has_text;                /* `text` is set */
};

/* ---- the address ---- */

/* Makes `symbols`, a request of one job with one module and one frame. False when out of memory. */
static bool prepare_address(struct source_work *w)
{
    struct profiler_request *r = &w->request;
    struct mozilla_job *job = SL_ARENA_NEW(r->arena, struct mozilla_job);
    struct mozilla_module *module = SL_ARENA_NEW(r->arena, struct mozilla_module);
    struct mozilla_stack *stack = SL_ARENA_NEW(r->arena, struct mozilla_stack);
    struct mozilla_frame *frame = SL_ARENA_NEW(r->arena, struct mozilla_frame);
    if (!job || !module || !stack || !frame)
        return false;
    *frame = (struct mozilla_frame){.module = 0, .offset = r->offset};
    *stack = (struct mozilla_stack){.first = 0, .count = 1};
    *module = (struct mozilla_module){
        .file = r->debug_name, .id = r->debug_id, .referenced = true, .native = NATIVE_NO_MODULE};
    *job = (struct mozilla_job){
        .modules = module, .stacks = stack, .frames = frame, .module_count = 1, .stack_count = 1, .frame_count = 1};
    w->symbols.version = 5;
    w->symbols.jobs = job;
    w->symbols.job_count = w->symbols.frame_count = 1;
    return mozilla_prepare(&w->symbols);
}

/* Sets the answer to the message `what` followed by `why`. Returns SL_OK: later steps do nothing when the answer is set. */
static enum sl_code source_fail(struct job *job, const char *what, const char *why)
{
    mozilla_profiler_error(&job->answer, "%s%s", what, why);
    return SL_OK;
}

/* Checks the module that was sent, and prepares its look-up. If it cannot be looked up, the answer is a message that the Profiler
 * shows. */
static enum sl_code source_prepare(struct job *job, void *arg, struct sl_error *error)
{
    static const char no_symbols[] = "Could not obtain symbols for the requested library: ";
    struct source_work *w = arg;
    struct sl_str *names[] = {&w->request.debug_name, &w->request.debug_id};
    for (size_t i = 0; i < 2; i++)
        if (!names[i]->data)
            *names[i] = SL_STR("");
    if (!mozilla_is_name(w->request.debug_name, sl_str(job->config->mozilla.extra_name_chars)))
        return source_fail(job, no_symbols, "invalid module name");
    if (!prepare_address(w))
        return sl_fail(error, SL_BUSY, "out of memory");
    if (!w->symbols.native.module_count)
        return source_fail(job, no_symbols, "invalid debug id");
    w->module = w->symbols.native.modules;
    return SL_OK;
}

/* True if a function at the address, inlined or not, is in the requested file. */
static bool is_named(const struct source_work *w)
{
    const struct native_result_trace *trace = w->symbols.native.results;
    struct sl_buf scratch = {0};
    bool named = false;
    for (size_t i = 0; i < trace->count && !named; i++) {
        struct sl_str path;
        uint64_t line;
        named = trace->frames[i].status == FRAME_SYMBOLICATED &&
                native_frame_location(&w->symbols.native, &trace->frames[i], &scratch, &path, &line) &&
                sl_str_equal(path, w->request.file);
    }
    sl_buf_free(&scratch);
    return named;
}

/* True if the symbols of the module have the address. */
static bool has_lines(const struct source_work *w)
{
    const struct native_result_trace *trace = w->symbols.native.results;
    return w->symbols.native.trace_count && trace->count && trace->frames[0].status == FRAME_SYMBOLICATED;
}

/* Checks that the symbols name the requested file at this address, otherwise sets a message as the answer: so a client cannot read
 * any other file. */
static enum sl_code source_check(struct job *job, void *arg, struct sl_error *error)
{
    struct source_work *w = arg;
    if (w->module->found->lookup.code != SL_OK)
        return source_fail(job,
                           "Could not obtain symbols for the requested library: ", native_module_status(w->module));
    if (!has_lines(w))
        return source_fail(job, "Don't have any debug info for the requested library", "");
    if (!is_named(w))
        return source_fail(job, "The requested path is not present in the symbolication frames", "");
    /* this step has read the tables, maybe on the pool: checks if their pages are in memory now, so that the loop may read them */
    native_check_residency(&w->symbols.native);
    return SL_OK;
}

/* ---- the text ---- */

/* Pool work: reads the text from the first bundle or debug file that has it. A URL that one has instead is not used. */
static enum sl_code source_read(struct job *job, void *arg, struct sl_error *error)
{
    struct source_work *w = arg;
    for (size_t i = 0; i < w->sources.count && !w->has_text; i++) {
        struct sl_buf url = {0};
        sl_buf_clear(&w->text);
        source_object_find(&w->sources.objects[i], w->request.file, &w->text, &w->has_text, &url);
        sl_buf_free(&url);
    }
    return SL_OK;
}

/* Downloads the text from the URL that the path stands for. SL_NOT_FOUND if it stands for none. */
static enum sl_code source_download(struct source_work *w, struct sl_error *error)
{
    struct sl_arena *arena = w->request.arena;
    struct sl_buf url = {0}, member = {0};
    struct cache_item *item;
    bool has_url = mozilla_source_url(w->request.file, &url, &member);
    struct source_request request = {.scope = SL_STR("global")};
    if (has_url) {
        request.url = scraping_url(arena, sl_buf_view(&url));
        request.member = sl_buf_move_to_arena(&member, arena);
    }
    sl_buf_free(&url);
    sl_buf_free(&member);
    if (!request.url.data)
        return sl_fail(error, SL_NOT_FOUND,
                       has_url ? "the URL that the path stands for is not valid"
                               : "not found in any source bundle or debug file");
    enum sl_code code = source_file_get(&request, w->request.arena, &item, error);
    if (code != SL_OK)
        return code;
    code = append_item_text(&w->text, item, error);
    cache_release(item);
    w->has_text = code == SL_OK;
    return code;
}

/* Symbolicates the address, checks that its symbols name the file, and gets the text. Ends early when a step has set the answer, which is
 * then an error message; w->module is NULL if source_prepare has set it already. */
static enum sl_code source_run(struct job *job, void *arg, struct sl_error *error)
{
    struct source_work *w = arg;
    struct native_request *native = &w->symbols.native;
    enum sl_code code = w->module ? native_run(job, native, error) : SL_OK;
    if (code == SL_OK && w->module)
        code = job_work(job, native_results_executor(native), source_check, error);
    if (code != SL_OK || job->answer.size)
        return code;
    struct search_scope where = native_search_scope(native);
    search_find_source(&where, w->module->id, &w->sources);
    code = w->sources.code;
    if (code == SL_CANCELLED || code == SL_BUSY)
        return sl_fail(error, code, "%s", code == SL_BUSY ? "out of memory" : "cancelled");
    code = job_work(job, POOL_SYMBOLICATE, source_read, error);
    if (code == SL_OK && !w->has_text)
        code = source_download(w, error);
    if (code == SL_OK || code == SL_CANCELLED || code == SL_BUSY || code == SL_INTERNAL)
        return code;
    return source_fail(job, "Cannot get the source file: ", error->message[0] ? error->message : sl_code_name(code));
}

/* ---- the answer ---- */

/* Writes the answer. Clients expect its two dates; they are null, as the service does not store them. */
static enum sl_code source_write(struct job *job, void *arg, struct sl_error *error)
{
    struct source_work *w = arg;
    struct sl_buf decoded = {0};
    struct sl_str text;
    if (!sl_text_decode(sl_buf_bytes(&w->text), &decoded, &text)) {
        mozilla_profiler_error(&job->answer, "The file is not text");
        sl_buf_free(&decoded);
        return SL_OK;
    }
    struct sl_json_writer json = sl_json_writer(&job->answer);
    sl_json_begin_object(&json);
    sl_json_member_null(&json, "symbolsLastModified");
    sl_json_member_null(&json, "sourceLastModified");
    sl_json_member_str(&json, "file", w->request.file);
    sl_json_member_str(&json, "source", text);
    sl_json_end_object(&json);
    sl_buf_free(&decoded);
    return SL_OK;
}

static unsigned source_executor(void *request)
{
    return POOL_JSON;
}

/* Releases the text and where it came from. */
static void release_text(struct source_work *w)
{
    for (size_t i = 0; i < w->sources.count; i++)
        source_object_release(&w->sources.objects[i]);
    w->sources = (struct source_lookup){.count = 0};
    sl_buf_free(&w->text);
    w->has_text = false;
}

static void source_release(void *arg)
{
    struct source_work *w = arg;
    release_text(w);
    native_release(&w->symbols.native);
}

/* Restores the state before source_run. What source_prepare has made stays. */
static void source_reset(void *arg)
{
    struct source_work *w = arg;
    release_text(w);
    native_reset(&w->symbols.native);
}

/* ---- the request ---- */

static bool source_read_request(struct job *job, void *arg, struct sl_str body, struct json_failure *failure)
{
    struct source_work *w = arg;
    w->request = (struct profiler_request){.arena = &job->arena, .config = job->config};
    return mozilla_read_profiler(&w->request, false, body, failure);
}

const struct job_kind job_source = {
    .task = "mozilla",
    .size = sizeof(struct source_work),
    .open = mozilla_open,
    .read = source_read_request,
    .refuse = mozilla_refuse_profiler,
    .answer = mozilla_answer,
    .prepare = source_prepare,
    .run = source_run,
    .reset = source_reset,
    .write = source_write,
    .executor = source_executor,
    .release = source_release,
};
