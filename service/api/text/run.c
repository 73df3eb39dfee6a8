/* The job of POST /symbolicate-text: looks up frames of native code, scripts (JavaScript) and the JVM, and writes the answer. */
#include "api/access.h"
#include "api/impl.h"
#include "api/text/work.h"

#include "core/metrics.h"
#include "http/multipart.h"

extern const struct job_kind job_js, job_jvm;

/* ---- jobs within this one ---- */

/* Frees text_work.js or .jvm, whether it was used or not. */
static void end_part(struct job *part)
{
    job_release(part);
    sl_buf_free(&part->answer);
    memory_resize(&part->memory, 0);
    sl_arena_free(&part->arena);
    *part = (struct job){.service = NULL};
}

/* How the request to the API for scripts or the JVM is made. */
struct text_part_maker {
    const struct job_kind *kind;
    void (*put_body)(const struct text_work *work, struct sl_buf *body);
    bool (*fill)(const struct text_work *work, void *request);
};

static const struct text_part_maker js_maker = {&job_js, text_put_js_body, text_fill_js};
static const struct text_part_maker jvm_maker = {&job_jvm, text_put_jvm_body, text_fill_jvm};

/* Lets the API of `part` read the JSON body that was made for it, and gives it the files of the request or of the command. False: `failure`
 * is set, which the caller has set to "out of memory" before. */
static bool read_part(struct job *part, const struct text_work *work, struct sl_str json, struct json_failure *failure)
{
    const struct local_request *local = work->local ? work->local->files : NULL;
    /* kind->files: offset of the files in the API's request struct */
    struct request_files *files = (struct request_files *)((char *)part->request + part->kind->files);
    *files = work->files;
    files->sent = true; /* as in a form: then the request need not name sources */
    if (!local)
        return part->kind->read(part, part->request, json, failure);
    struct local_request *copy = SL_ARENA_NEW(&part->arena, struct local_request);
    if (!copy)
        return false;
    *copy = *local;
    copy->body = json;
    return part->kind->read_local(part, part->request, copy, failure);
}

/* Makes and runs the request to the API for scripts or the JVM, as a job in the fiber of this job. Its result stays in `part` until
 * end_part. Frames that could not be symbolicated are no failure. */
static enum sl_code run_part(struct job *job, struct job *part, const struct text_part_maker *maker,
                             struct sl_error *error)
{
    const struct text_work *work = job->request;
    struct json_failure failure = json_no_memory;
    struct sl_buf body = {0};
    *part = (struct job){.service = job->service, .config = job->config};
    maker->put_body(work, &body);
    bool good = !body.failed && job_set_kind(part, maker->kind, work->native.scope);
    struct sl_str json = good ? sl_buf_move_to_arena(&body, &part->arena) : (struct sl_str){NULL, 0};
    sl_buf_free(&body);
    if (!json.data)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (!read_part(part, work, json, &failure))
        return failure.status == 503 ? sl_fail(error, SL_BUSY, "out of memory")
                                     : sl_fail(error, SL_MALFORMED, "%s", failure.problem);
    if (!maker->fill(work, part->request))
        return sl_fail(error, SL_BUSY, "out of memory");
    return maker->kind->run(part, part->request, error);
}

/* Pool work (job_step): writes the answer of the JVM's API, which the JSON answer of this job contains. */
static enum sl_code write_jvm(struct job *part, void *request, struct sl_error *error)
{
    return job_jvm.write(part, request, error);
}

/* True if the JVM's API is needed: for frames, or, if the request comes with a mapping, for names of exceptions, which may stand anywhere
 * in the text. */
static bool wants_jvm(const struct text_work *work)
{
    bool has_mapping =
        work->jvm_modules.size > 0 || (work->local && work->local->files && work->local->files->mapping_count);
    if (work->local && work->wants_text) /* the command has loaded the mappings itself (local_text.trace) */
        return false;
    for (size_t i = 0; i < work->files.count; i++)
        has_mapping |= sl_str_ends(work->files.items[i].name, SL_STR(".txt")); /* as in "mapping.txt" */
    bool wants_format = work->only == SL_TEXT_PLAIN || work->only == SL_TEXT_JVM;
    return work->jvm_frames || (has_mapping && wants_format);
}

/* Runs the requests to the APIs for scripts and for the JVM, if the text needs them. The answer of the JVM's API is written only if this
 * job's answer is JSON, which contains it; a text is rewritten by the mappings that the request has loaded. */
static enum sl_code run_parts(struct job *job, struct text_work *work, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    if (work->js_frames)
        code = run_part(job, &work->js, &js_maker, error);
    bool jvm = wants_jvm(work);
    if (code == SL_OK && jvm)
        code = run_part(job, &work->jvm, &jvm_maker, error);
    if (code == SL_OK && jvm && !work->wants_text)
        code = job_work(&work->jvm, POOL_SYMBOLICATE, write_jvm, error);
    return code;
}

/* ---- the job ---- */

/* Does all look-ups. Modules without ids get them by their names first, as native code is looked up by id. */
static enum sl_code text_run(struct job *job, void *arg, struct sl_error *error)
{
    struct text_work *work = arg;
    enum sl_code code = work->native.frame_count ? text_guess_ids(job, work, error) : SL_OK;
    if (code == SL_OK && work->native.frame_count)
        code = native_run(job, &work->native, error);
    return code == SL_OK ? run_parts(job, work, error) : code;
}

/* Returns the error that the answer is too large. */
static enum sl_code too_large(const struct job *job, struct sl_error *error)
{
    return sl_fail(error, SL_UNSUPPORTED, "the text with names would be larger than %llu bytes (max_response_bytes)",
                   (unsigned long long)job->config->max_response_bytes);
}

/* Writes the text, or the JSON with the text in it. A text that is too large is an error: it is never cut. */
static enum sl_code text_put_answer(struct job *job, void *arg, struct sl_error *error)
{
    struct text_work *work = arg;
    struct sl_buf text = {0};
    sl_buf_reserve(&text, work->parts[TEXT_TEXT].size + 1);
    bool good = text_write(work, &text) && !text.failed;
    native_check_residency(&work->native); /* writing has read pages of tables, which may all be in memory now */
    if (!good || text.size > job->config->max_response_bytes) {
        sl_buf_free(&text);
        return good ? too_large(job, error) : sl_fail(error, SL_BUSY, "out of memory");
    }
    if (work->wants_text) {
        sl_buf_free(&job->answer);
        job->answer = text;
        return SL_OK;
    }
    struct sl_json_writer w = sl_json_writer(&job->answer);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "status", SL_STR("completed"));
    text_write_json(work, sl_buf_view(&text), &w);
    answer_limit_write(&job->limit, &w); /* how many frames were left out for the size limit, if any */
    sl_json_end_object(&w);
    sl_buf_free(&text);
    if (job->answer.size <= job->config->max_response_bytes)
        return SL_OK;
    sl_buf_clear(&job->answer);
    return too_large(job, error);
}

/* Estimates the memory that writing the answer needs: for the text with names twice its length and 128 bytes for each frame. A JSON answer
 * needs that twice, as it contains the text, and the memory of the answer for native code. */
static uint64_t text_memory(const void *arg)
{
    const struct text_work *work = arg;
    uint64_t text = 2 * work->parts[TEXT_TEXT].size + work->item_count * 128;
    return work->wants_text ? text : 2 * text + native_answer_memory(&work->native);
}

static void text_reset(void *arg)
{
    struct text_work *work = arg;
    native_reset(&work->native);
    end_part(&work->js);
    end_part(&work->jvm);
}

/* job_kind.release: frees what the job used; `js`, `jvm` and the reader also if they were not used. */
static void text_release(void *arg)
{
    struct text_work *work = arg;
    native_release(&work->native);
    end_part(&work->js);
    end_part(&work->jvm);
    sl_text_end(&work->request_reader);
}

/* Tells a command whether a frame of a script was symbolicated, and if not, why: there is no usable source map (with the reason if the
 * script was found), or the source map does not cover the position. */
static void report_script(const struct local_text *local, const struct js_request *r, const struct js_frame *sent,
                          bool symbolicated)
{
    /* the module of the script with its files, and the table of its source map; NULL: there is none */
    const struct js_module *module = sl_map_get(&r->modules_by_path, sent->abs_path);
    const struct sl_smcache *table = module && module->item ? module->item->loaded : NULL;
    struct local_script_frame frame = {.url = sent->abs_path, .outcome = LOCAL_SCRIPT_UNMAPPED};
    if (table)
        frame.bad_scopes = table->bad_scopes;
    if (symbolicated)
        frame.outcome = LOCAL_SCRIPT_MAPPED;
    else if (table)
        frame.outcome = LOCAL_SCRIPT_NOT_COVERED;
    else if (module && module->minified && module->minified->code == SL_OK)
        frame.problem = module->problem.data ? module->problem
                        : module->has_map    ? SL_STR("its source map was not found")
                                             : SL_STR("it names no source map, and there is none beside it");
    local->on_script(local->on_script_arg, &frame);
}

/* Tells a command, if it wants to know, about each frame of a script. */
static void report_scripts(const struct text_work *work)
{
    const struct js_request *r = work->js.request;
    for (size_t t = 0; r && r->results && work->local->on_script && t < r->trace_count; t++)
        for (size_t i = 0; i < r->raw[t].count; i++)
            report_script(work->local, r, r->raw[t].frames[i].frame, r->results[t].frames[i].symbolicated);
}

/* Reports to a command how many native frames there are, how many of them have no module, and for which modules symbols were found. Frames
 * whose file and line the text has already are not counted. */
static void report_to_command(const struct text_work *work)
{
    for (size_t t = 0; work->local->frame_count && t < work->native.trace_count; t++)
        for (size_t i = 0; i < work->native.traces[t].frame_count; i++) {
            const struct native_frame *frame = &work->native.traces[t].frames[i];
            bool has_names = frame->has_text >> SENT_FILENAME & 1;
            *work->local->frame_count += !has_names;
            *work->local->without_module += !has_names && frame->module_index == NATIVE_NO_MODULE;
        }
    for (size_t i = 0; i < work->native.module_count; i++) {
        const struct native_module *module = &work->native.modules[i];
        if (work->local->on_module && module->referenced && module->found)
            work->local->on_module(work->local->on_module_arg, module->id, module->found->lookup.code == SL_OK);
    }
}

/* Counts the frames in the metrics, and reports them to a command. If the job failed because of its input and has no answer yet, writes one
 * with the reason: JSON, or for a client that wants text the message as a C string, which refuse_text sends. */
static void text_finish(struct job *job, void *arg, enum sl_code code, const struct sl_error *error)
{
    const struct text_work *work = arg;
    if (code == SL_OK && work->native.frame_count)
        native_count(&work->native);
    if (code == SL_OK && work->local) {
        report_to_command(work);
        report_scripts(work);
    }
    if ((code != SL_MALFORMED && code != SL_UNSUPPORTED) || job->answer.size)
        return;
    if (work->wants_text && !work->local) {
        sl_buf_cstr(&job->answer, error->message);
        sl_buf_u8(&job->answer, '\0');
        return;
    }
    struct sl_json_writer w = sl_json_writer(&job->answer);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "status", SL_STR("failed"));
    sl_json_member_str(&w, "message", sl_str(error->message));
    sl_json_end_object(&w);
}

/* ---- the request ---- */

/* job_kind.open: initialises the request of a new job; `origin` is a metric label. */
static void text_open(struct job *job, void *arg)
{
    struct text_work *work = arg;
    native_open(job, &work->native);
    work->native.origin = "symbolicate_text";
    work->native.writer = native_write;
    sl_text_begin(&work->request_reader);
    work->reader = &work->request_reader;
}

/* Reads a command's request, a struct local_text. The command's sources replace those that native_read has taken from the configuration; as
 * they have no number, searches are not cached. */
static bool text_read_local(struct job *job, void *arg, const void *asked, struct json_failure *failure)
{
    struct text_work *work = arg;
    const struct local_text *local = asked;
    work->local = local;
    work->reader = local->reader ? local->reader : work->reader;
    work->parts[TEXT_TEXT] = local->text;
    work->wants_text = !local->wants_json;
    work->only = local->only;
    if (!text_fill(job, work, failure))
        return false;
    work->native.sources = local->sources;
    work->native.source_count = local->source_count;
    work->native.sources_number = 0;
    if (local->candidates) /* the answer is to list the files that were tried for each module */
        work->native.options.dif_candidates = SL_BOOL_TRUE;
    return true;
}

/* Answers a failed request of a client that wants text: 413 if the text with names is too large, else 400. */
static void refuse_text(struct http_exchange *x, const struct job *job)
{
    if (job->code == SL_UNSUPPORTED)
        http_reply_detail(x, 413, "the text with names would be larger than max_response_bytes", NULL);
    else if (job->answer.failed)
        http_reply_no_memory(x);
    else
        http_reply_detail(x, 400, (const char *)job->answer.data, NULL);
}

/* Waits until the text is ready, at most as long as the client's `timeout`, and replies with it; 503 if it is not ready by then. */
static void answer_text(struct http_exchange *x, struct job *job, const struct api_query *query)
{
    enum fiber_wait waited = job_wait(job, job_client_timeout_ms(query));
    if (job->outcome == JOB_COMPLETED)
        http_reply(x, 200, "text/plain; charset=utf-8", sl_buf_view(&job->answer));
    else if (job->outcome == JOB_FAILED)
        refuse_text(x, job);
    else if (job->outcome == JOB_BUSY)
        http_reply_no_memory(x);
    else if (job->outcome == JOB_RUNNING && waited != FIBER_CANCELLED) /* FIBER_CANCELLED: the client is gone */
        http_reply_detail(x, 503, "the text is not ready",
                          "raise `timeout`, or ask for application/json, whose answer can be fetched later");
    else if (waited != FIBER_CANCELLED)
        http_reply_detail(x, 500, "the text could not be symbolicated", NULL);
    job_remove_client(job);
}

/* Answers the job: with JSON, which the client may also fetch later by the id of the job, or with text, for which it has to wait. Reads
 * the Accept header again to tell which, as the job may have ended already, and work->wants_text is released with it. */
static void text_answer(struct http_exchange *x, struct job *job)
{
    struct api_query query;
    if (!query_read(x, &query))
        job_remove_client(job);
    else if (text_wants_json(x))
        job_answer(x, job, &query);
    else
        answer_text(x, job, &query);
}

const struct job_kind job_text = {
    .task = "symbolicate_text",
    .size = sizeof(struct text_work),
    .open = text_open,
    .receive = text_receive,
    .is_allowed = native_is_allowed,
    .answer = text_answer,
    .read_local = text_read_local,
    .run = text_run,
    .reset = text_reset,
    .write = text_put_answer,
    .memory = text_memory,
    .finish = text_finish,
    .release = text_release,
};

enum sl_code local_text_symbolicate(const struct local_text *text, const struct config *config, struct sl_buf *answer,
                                    struct sl_error *error)
{
    return job_run_local(&job_text, config, text->scope, text, answer, error);
}

/* Returns the limit of a request's body: text_max_body for a text; for a form, which may contain symbol files too, the limit of JSON
 * requests if that is larger. For the part `text` of a form receive.c also checks text_max_body. */
static uint64_t text_limit(const struct http_exchange *x)
{
    const struct config *config = ((const struct service *)x->service)->config;
    struct sl_str boundary;
    uint64_t form = json_job_limit(x);
    bool is_form = multipart_boundary(http_header(x, "content-type"), &boundary);
    return is_form && form > config->text_max_body ? form : config->text_max_body;
}

static const struct http_route routes[] = {
    {.method = "POST",
     .pattern = "/symbolicate-text",
     .handler = job_handle,
     .takes_work = true,
     .check = job_check,
     .body_limit = text_limit,
     .body_weight = JSON_WEIGHT,
     .rights = API_RIGHT("symbolicate"),
     .job = &job_text},
    {.method = NULL},
};

const struct http_family family_text = {.routes = routes, .group = "symbolicate"};
