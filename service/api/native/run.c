/* Steps of a native request, shared by the job kinds that have one. */
#include "api/impl.h"
#include "api/native/native.h"

/* Limits for work on the loop: looking up FEW_FRAMES frames, or naming or writing FEW_RESULTS, takes about 50 us. */
enum { FEW_FRAMES = 128, FEW_RESULTS = 384 };

void native_open(struct job *job, void *arg)
{
    struct native_request *request = arg;
    request->arena = &job->arena;
    request->limit = &job->limit;
    request->scope = job->scope;
}

/* Sorts the modules and assigns the frames to them. False when out of memory. */
bool native_prepare(struct native_request *request)
{
    if (!native_sort_modules(request))
        return false;
    native_assign_modules(request);
    return true;
}

/* ---- loop or pool ---- */

/* Gets the cache items of the module's tables; NULL where there is none. */
static void table_items(const struct native_lookups *found, struct cache_item *items[3])
{
    items[0] = found->lookup.item;
    items[1] = found->symbfile.items[0];
    items[2] = found->symbfile.items[1];
}

/* True if all tables of the module are in memory, so that reading them does not wait for the disk. Asks for all tables, even after a false
 * answer: cache_is_resident answers false once when a check is due, and one job on the pool then checks all of them. */
static bool tables_resident(const struct native_lookups *found)
{
    struct cache_item *items[3];
    bool all = true;
    table_items(found, items);
    for (size_t i = 0; i < 3; i++) {
        bool is_resident = !items[i] || cache_is_resident(items[i]);
        all = all && is_resident;
    }
    return all;
}

/* Returns where to do work on `frames` frames: on the loop if it is short and reads only memory. Notes for each module
 * whether its tables were in memory. */
static unsigned choose_executor(struct native_request *request, size_t frames)
{
    bool is_short = request->frame_count <= FEW_FRAMES && frames <= FEW_RESULTS && request->module_count <= FEW_FRAMES;
    for (size_t i = 0; i < request->module_count; i++) {
        struct native_lookups *found = request->modules[i].found;
        if (!found)
            continue;
        found->is_not_resident = !tables_resident(found);
        is_short = is_short && !found->is_not_resident;
    }
    return is_short ? JOB_ON_LOOP : POOL_SYMBOLICATE;
}

unsigned native_results_executor(void *arg)
{
    struct native_request *request = arg;
    return choose_executor(request, request->result_count);
}

/* Checks again the tables that were not in memory before the work, which has read parts of them. */
void native_check_residency(const struct native_request *request)
{
    struct cache_item *items[3];
    for (size_t i = 0; i < request->module_count; i++) {
        const struct native_lookups *found = request->modules[i].found;
        if (!found || !found->is_not_resident)
            continue;
        table_items(found, items);
        for (size_t k = 0; k < 3; k++)
            if (items[k])
                cache_check_residency(items[k]);
    }
}

/* ---- steps ---- */

static enum sl_code native_check_memory(const struct native_request *request, struct sl_error *error)
{
    return request->out_of_memory ? sl_fail(error, SL_BUSY, "out of memory") : SL_OK;
}

static enum sl_code look_up(struct job *job, void *request, struct sl_error *error)
{
    native_symbolicate(request, job->config->max_response_frames);
    return native_check_memory(request, error);
}

/* Removes bogus frames, then counts the variables, by which the size of the answer is estimated. */
static enum sl_code finish(struct job *job, void *arg, struct sl_error *error)
{
    struct native_request *request = arg;
    native_finish(request);
    if (!request->out_of_memory)
        request->variables = native_count_variables(request);
    return native_check_memory(request, error);
}

/* Pool work: names the frames, finishes them, and does what the request wants next. */
static enum sl_code name_and_finish(struct job *job, void *arg, struct sl_error *error)
{
    struct native_request *request = arg;
    native_name_at_once(request);
    enum sl_code code = finish(job, request, error);
    if (code == SL_OK && request->then)
        code = request->then(job, request, error);
    native_check_residency(request);
    return code;
}

static enum sl_code look_up_and_name(struct job *job, void *request, struct sl_error *error)
{
    enum sl_code code = look_up(job, request, error);
    return code == SL_OK ? name_and_finish(job, request, error) : code;
}

/* Symbolicates and names the frames: in one pool job, or on the loop as far as it is allowed there. */
static enum sl_code name_frames(struct job *job, struct native_request *request, struct sl_error *error)
{
    unsigned executor = choose_executor(request, request->frame_count);
    if (executor != JOB_ON_LOOP)
        return job_work(job, executor, look_up_and_name, error);
    enum sl_code code = job_work(job, JOB_ON_LOOP, look_up, error);
    if (code == SL_OK && (executor = native_results_executor(request)) != JOB_ON_LOOP)
        return job_work(job, executor, name_and_finish, error);
    if (code == SL_OK)
        code = native_name(request, job->service->names, error);
    if (code == SL_OK)
        code = job_work(job, JOB_ON_LOOP, finish, error);
    return code == SL_OK && request->then ? job_work(job, native_results_executor(request), request->then, error)
                                          : code;
}

static enum sl_code apply_sources(struct job *job, void *request, struct sl_error *error)
{
    native_apply_sources(request);
    return native_check_memory(request, error);
}

/* Adds source lines: from objects that have sources, then from the web. Nothing is done if no module has any. */
static enum sl_code add_context(struct job *job, struct native_request *request, struct sl_error *error)
{
    bool any = request->srcsrv_links;
    if (!native_find_sources(request))
        return SL_CANCELLED;
    for (size_t i = 0; i < request->module_count; i++)
        any = any || request->modules[i].has_sources;
    enum sl_code code = any ? job_work(job, POOL_SYMBOLICATE, apply_sources, error) : SL_OK;
    if (code == SL_OK && any)
        code = native_download_sources(request, error);
    return code == SL_OK ? native_check_memory(request, error) : code;
}

/* Makes an empty list of the files sent with a request, of which at most 512 MiB are decompressed. NULL when out of
 * memory. */
static struct supplied_objects *make_own(struct native_request *request, struct sl_error *error)
{
    const uint64_t most_unpacked = UINT64_C(512) << 20;
    struct supplied_objects *own = SL_ARENA_NEW(request->arena, struct supplied_objects);
    if (own)
        *own = (struct supplied_objects){.arena = request->arena, .bytes_left = most_unpacked};
    else
        sl_fail(error, SL_BUSY, "out of memory");
    return own;
}

static enum sl_code add_file(struct supplied_objects *own, const struct request_file *file, struct sl_error *error)
{
    return supplied_objects_add(own, file->name, (struct sl_bytes){(const uint8_t *)file->text.data, file->text.size},
                                error);
}

enum sl_code native_read_files(struct native_request *request, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    if (!request->file_count || request->own)
        return SL_OK;
    struct supplied_objects *own = make_own(request, error);
    if (!own)
        return SL_BUSY;
    for (size_t i = 0; i < request->file_count && code == SL_OK; i++)
        code = add_file(own, &request->files[i], error);
    if (code == SL_OK)
        request->own = own;
    return code;
}

enum sl_code native_add_file(struct native_request *request, const struct request_file *file, struct sl_error *error)
{
    if (!request->own && !(request->own = make_own(request, error)))
        return SL_BUSY;
    return add_file(request->own, file, error);
}

enum sl_code native_run(struct job *job, void *arg, struct sl_error *error)
{
    struct native_request *request = arg;
    enum sl_code code = native_read_files(request, error);
    if (code != SL_OK)
        return code;
    /* Estimated memory of the resulting frames; arrays grow by doubling. */
    uint64_t memory = 2 * request->frame_count * sizeof(struct native_result_frame);
    if (!native_find_symbols(request))
        return request->out_of_memory ? native_check_memory(request, error) : SL_CANCELLED;
    code = job_reserve(job, memory, error);
    if (code == SL_OK && request->locate)
        code = job_work(job, POOL_SYMBOLICATE, request->locate, error);
    if (code == SL_OK)
        code = name_frames(job, request, error);
    return code == SL_OK && request->options.apply_source_context != SL_BOOL_FALSE ? add_context(job, request, error)
                                                                                   : code;
}

/* ---- the answer ---- */

/* Estimates the size of the answer, so that the buffer hardly grows. */
uint64_t native_answer_memory(const void *arg)
{
    enum { BASE = 512, FRAME = 448, VARIABLE = 32, MODULE = 384 };
    const struct native_request *request = arg;
    return answer_limit_reserve(request->limit, BASE + request->result_count * FRAME + request->variables * VARIABLE +
                                                    request->module_count * MODULE);
}

unsigned native_answer_executor(void *arg)
{
    struct native_request *request = arg;
    return choose_executor(request, request->result_count + request->variables);
}

enum sl_code native_write_answer(struct job *job, void *arg, struct sl_error *error)
{
    struct native_request *request = arg;
    sl_buf_reserve(&job->answer, native_answer_memory(request));
    struct sl_json_writer w = sl_json_writer(&job->answer);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "status", SL_STR("completed"));
    request->writer(request, &w, request->writer_arg);
    answer_limit_write(request->limit, &w);
    sl_json_end_object(&w);
    native_check_residency(request);
    return SL_OK;
}
