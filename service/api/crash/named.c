/* POST /page/named: starts a job for a profile or a sample report, sent like a crash file. The answer contains the file with function names
 * added, byte for byte as `symloom symbolicate` writes it:
 *
 *     {"status": "completed", "named": "..."}
 *
 * A file that would exceed the size limit of answers is refused: half of it would be useless. */
#include "api/crash/crash.h"

#include "api/named_file.h"
#include "apple/samples.h"
#include "base/budget.h"
#include "function/path.h"

enum {
    LARGE_FILE = 1 << 20, /* bytes from which reading a file counts as heavy work */
    MEMORY_TIMES = 4,     /* reading or writing a file takes as much memory as so many times its size, at most */
};

struct named_work {
    struct crash_work crash;
    struct named_file file;
};

/* Returns the profile or sample report that the client sent. */
static struct sl_bytes named_bytes(const struct named_work *work)
{
    return work->crash.form.parts[PART_FILE];
}

/* ---- conversion to a native request ---- */

/* Makes module number `index` of the request for native frames from the file's module with that number. It has none of the members by which
 * profilers name uploaded symbols (`no_upload`). False when out of memory. */
static bool named_fill_module(struct named_work *work, size_t index)
{
    static const struct native_upload no_upload;
    struct named_module module;
    struct object_id *id = SL_ARENA_NEW(work->crash.native.arena, struct object_id);
    if (!id)
        return false;
    work->file.format->module(&work->file, index, &module);
    *id = (struct object_id){
        .type = object_type_parse(sl_str(module.type)),
        .code_file = module.code_file,
        .debug_file = module.debug_file,
    };
    id->has_debug_id = sl_debug_id_parse(module.debug_id, &id->debug_id);
    if (module.code_id.size) {
        id->code_id = sl_code_id_normalise(work->crash.native.arena, module.code_id);
        if (!id->code_id.data)
            return false;
    }
    work->crash.native.modules[index] = (struct native_module){.id = id, .upload = &no_upload};
    return true;
}

/* Makes the request for native frames: the file's modules, and one stack trace with a frame for each of its addresses. The addresses are
 * exact, as return addresses have already been moved into the call. False when out of memory. */
static bool named_fill(struct named_work *work)
{
    struct native_request *request = &work->crash.native;
    /* + 1, so that arrays are never empty */
    struct native_frame *frames = SL_ARENA_ARRAY(request->arena, struct native_frame, work->file.address_count + 1);
    request->modules = SL_ARENA_ARRAY(request->arena, struct native_module, work->file.module_count + 1);
    request->traces = SL_ARENA_NEW(request->arena, struct native_trace);
    if (!frames || !request->modules || !request->traces)
        return false;
    for (size_t i = 0; i < work->file.module_count; i++)
        if (!named_fill_module(work, i))
            return false;
    for (size_t i = 0; i < work->file.address_count; i++) {
        frames[i].is_exact = true;
        work->file.format->address(&work->file, i, &frames[i].module, &frames[i].address);
    }
    request->module_count = work->file.module_count;
    request->trace_count = 1;
    request->frame_count = work->file.address_count;
    request->traces->frames = frames;
    request->traces->frame_count = (uint32_t)request->frame_count;
    return native_prepare(request);
}

/* SL_UNSUPPORTED for files with more addresses or modules than requests may have: a file of which only a part has names is useless. */
static enum sl_code named_check(const struct named_work *work, const struct config *config, struct sl_error *error)
{
    if (work->file.address_count > config->max_request_frames)
        return sl_fail(error, SL_UNSUPPORTED, "the file has %zu addresses, more than %llu (max_request_frames)",
                       work->file.address_count, (unsigned long long)config->max_request_frames);
    if (work->file.module_count > config->max_request_modules)
        return sl_fail(error, SL_UNSUPPORTED, "the file has %zu modules, more than %llu (max_request_modules)",
                       work->file.module_count, (unsigned long long)config->max_request_modules);
    return SL_OK;
}

/* Pool work: reads a sample report or a profile and makes a request for native frames of its addresses. SL_BUSY when out of memory; else
 * the error of the reader, or SL_UNSUPPORTED above a limit. */
static enum sl_code named_read_file(struct job *job, void *arg, struct sl_error *error)
{
    struct named_work *work = arg;
    struct sl_bytes bytes = named_bytes(work);
    struct sl_str text = {(const char *)bytes.data, bytes.size};
    enum sl_code code = sl_samples_is_text(text) ? named_samples_read(bytes, &job->arena, &work->file, error)
                                                 : named_profile_read(text, &job->arena, &work->file, error);
    if (code == SL_OK)
        code = named_check(work, job->config, error);
    return code != SL_OK || named_fill(work) ? code : sl_fail(error, SL_BUSY, "out of memory");
}

/* ---- names ---- */

struct naming_scratch { /* scratch memory for one address, reused for the next */
    struct sl_arena arena;
    struct sl_buf path;
};

/* Fills `call` with function, path and line of a symbolicated frame. `*known` is false if the frame has no name; then `call` is not set.
 * Texts are in `scratch` or in the request. False when out of memory. */
static bool named_make_call(const struct named_work *work, const struct native_result_frame *frame,
                            struct named_call *call, struct naming_scratch *scratch, bool *known)
{
    const struct native_names *names = frame->names;
    struct sl_str path, directory;
    *known = names && (names->function.size || names->symbol.size);
    if (!*known)
        return true;
    *call = (struct named_call){.function = names->function.size ? names->function : names->symbol};
    native_frame_location(&work->crash.native, frame, &scratch->path, &path, &call->line);
    if (!path.size)
        return true;
    call->path = (struct sl_str){sl_arena_strndup(&scratch->arena, path.data, path.size), path.size};
    if (!call->path.data)
        return false;
    sl_path_split(call->path, &directory, &call->filename);
    return true;
}

/* Stores the `count` calls at one address in the file's format. If one of them has no name, nothing is stored, and the address stays as it
 * is: a stack in which a call is missing would be wrong. False when out of memory. */
static bool named_take(struct named_work *work, const struct native_result_frame *frames, size_t count,
                       struct naming_scratch *scratch)
{
    const struct native_result_frame *outermost = &frames[count - 1];
    struct named_call *items = SL_ARENA_ARRAY(&scratch->arena, struct named_call, count);
    bool known = items != NULL;
    for (size_t i = 0; i < count && known; i++)
        if (!named_make_call(work, &frames[i], &items[i], scratch, &known))
            return false;
    /* `outermost->outermost`: the address of the symbol, the function that was not inlined, is known */
    const struct named_calls calls = {
        .items = items, .count = count, .symbol = outermost->symbol_address, .has_symbol = outermost->outermost};
    return items && (!known || work->file.format->take(&work->file, outermost->index, &calls));
}

/* Stores the calls at each address in the file's format. The result has one frame per call; consecutive frames with the same index are the
 * inlined calls at one address. False when out of memory. */
static bool named_take_all(struct named_work *work)
{
    const struct native_result_trace *trace = work->crash.native.results;
    struct naming_scratch scratch = {.path = {NULL}};
    bool good = true;
    for (size_t i = 0, end = 0; good && i < trace->count; i = end) {
        while (end < trace->count && trace->frames[end].index == trace->frames[i].index)
            end++;
        good = named_take(work, &trace->frames[i], end - i, &scratch);
        sl_arena_reset(&scratch.arena);
    }
    good = good && !scratch.path.failed;
    sl_buf_free(&scratch.path);
    sl_arena_free(&scratch.arena);
    return good;
}

/* ---- the answer ---- */

/* Sets and returns the error for a text that would exceed max_response_bytes; `what` names it. */
static enum sl_code named_too_large(const struct config *config, const char *what, struct sl_error *error)
{
    return sl_fail(error, SL_UNSUPPORTED, "%s would be larger than %llu bytes (max_response_bytes)", what,
                   (unsigned long long)config->max_response_bytes);
}

/* Writes the answer with the symbolicated file `named`. SL_UNSUPPORTED if it is larger than max_response_bytes: JSON escapes add to the
 * file's size. */
static enum sl_code named_put_answer(struct job *job, struct sl_str named, struct sl_error *error)
{
    struct sl_json_writer w = sl_json_writer(&job->answer);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "status", SL_STR("completed"));
    sl_json_member_str(&w, "named", named);
    sl_json_end_object(&w);
    if (w.out->failed || w.out->size <= job->config->max_response_bytes) /* the caller of the step checks `failed` */
        return SL_OK;
    sl_buf_clear(&job->answer);
    return named_too_large(job->config, "the answer", error);
}

/* Writes the symbolicated file and the answer with it. The format's writer gets a memory limit of a few times max_response_bytes, for its
 * output and its tables; if it exceeds that, the file counts as too large. */
static enum sl_code named_write_file(struct job *job, struct named_work *work, struct sl_error *error)
{
    uint64_t most = job->config->max_response_bytes;
    struct sl_budget budget;
    sl_budget_init(&budget, named_bytes(work).size); /* work in proportion to the file's size; no memory limit yet */
    if (most < UINT64_MAX / MEMORY_TIMES)            /* else answers are unlimited, and so is the memory */
        /* at least LARGE_FILE (1 MiB), also if max_response_bytes is small */
        sl_budget_limit(&budget, MEMORY_TIMES * most + LARGE_FILE, NULL, NULL);
    struct sl_buf named = {.budget = &budget};
    enum sl_code code = named_take_all(work) ? work->file.format->write(&work->file, &named, error)
                                             : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK && named.size <= most)
        code = named_put_answer(job, sl_buf_view(&named), error);
    else if (code == SL_OK || sl_budget_exhausted(&budget))
        code = named_too_large(job->config, "the symbolicated file", error);
    sl_buf_free(&named);
    return code;
}

/* True if the last addresses of the file have no frames in the result, because that has reached max_response_frames. */
static bool named_is_cut(const struct named_work *work, const struct config *config)
{
    const struct native_result_trace *trace = work->crash.native.results;
    uint32_t last = trace->count ? trace->frames[trace->count - 1].index + 1 : 0;
    return work->crash.native.result_count >= config->max_response_frames && last < work->file.address_count;
}

/* job_kind.write: writes the answer. SL_UNSUPPORTED if a limit has left out frames: a file of which only a part has names is useless. */
static enum sl_code named_write(struct job *job, void *arg, struct sl_error *error)
{
    struct named_work *work = arg;
    if (job->limit.omitted)
        return named_too_large(job->config, "the names", error);
    if (named_is_cut(work, job->config))
        return sl_fail(error, SL_UNSUPPORTED,
                       "the addresses have more than %llu frames, with inlined functions (max_response_frames)",
                       (unsigned long long)job->config->max_response_frames);
    enum sl_code code = named_write_file(job, work, error);
    /* checks which tables are in memory now: later requests may read those on the loop */
    native_check_residency(&work->crash.native);
    return code;
}

/* ---- steps ---- */

static uint64_t named_memory(const void *work)
{
    return MEMORY_TIMES * named_bytes(work).size;
}

/* crash_kind.read: reads the file on the pool. With names the file only grows, so one larger than max_response_bytes is refused at once. */
static enum sl_code named_read(struct job *job, void *arg, struct sl_error *error)
{
    struct named_work *work = arg;
    unsigned heavy = named_bytes(work).size > LARGE_FILE ? POOL_HEAVY : 0; /* takes more than some milliseconds */
    work->crash.native.options.apply_source_context = SL_BOOL_FALSE;
    if (named_bytes(work).size > job->config->max_response_bytes)
        return named_too_large(job->config, "the symbolicated file", error);
    enum sl_code code = job_reserve(job, named_memory(work), error);
    return code == SL_OK ? job_work(job, POOL_SYMBOLICATE | heavy, named_read_file, error) : code;
}

/* job_kind.executor: where the answer is written. Never on the loop, because writing the file may take long even if all names are in
 * memory. */
static unsigned named_executor(void *work)
{
    unsigned executor = native_results_executor(work);
    return executor == JOB_ON_LOOP ? POOL_SYMBOLICATE : executor;
}

/* job_kind.undo: drops what was read from the file, before it is read again. */
static void named_forget_file(void *arg)
{
    struct named_work *work = arg;
    named_file_end(&work->file);
    work->file = (struct named_file){.format = NULL};
}

/* job_kind.reset: drops the names that were looked up, before they are looked up again; keeps what was read from the file. */
static void named_reset(void *arg)
{
    struct named_work *work = arg;
    native_reset(&work->crash.native);
    work->file.format->forget(&work->file);
}

static void named_release(void *arg)
{
    named_forget_file(arg);
    crash_release(arg);
}

static const struct crash_kind crash_named = {
    .job =
        {
            .task = "named_file",
            .size = sizeof(struct named_work),
            .open = crash_work_open,
            .receive = crash_receive,
            .is_allowed = native_is_allowed,
            .prepare = crash_prepare,
            .undo = named_forget_file,
            .run = native_run,
            .reset = named_reset,
            .write = named_write,
            .executor = named_executor,
            .memory = named_memory,
            .finish = crash_finish,
            .release = named_release,
        },
    .name = "named",
    .part = "file",
    .missing = "missing file",
    .read = named_read,
    .malformed = "cannot symbolicate this file",
    .unsupported = "cannot symbolicate this file",
};

static const struct http_route routes[] = {CRASH_POST("/page/named", &crash_named), {.method = NULL}};

static bool named_enabled(const void *service)
{
    return ((const struct service *)service)->config->page_enabled;
}

/* In the access group `symbolicate` like POST /symbolicate, because it does the same work; the web page is only its client. */
const struct http_family family_named = {.routes = routes, .enabled = named_enabled, .group = "symbolicate"};
