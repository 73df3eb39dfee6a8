/* Steps of a native request, used by all kinds of jobs whose requests begin with struct native_request. */
#include "api/impl.h"
#include "api/native/native.h"

/* Largest work on the loop: looking up FEW_FRAMES frames, or naming or writing FEW_RESULTS of them, takes about 50 us. */
enum { FEW_FRAMES = 128, FEW_RESULTS = 384 };

void native_open(struct job *job, void *arg)
{
    struct native_request *request = arg;
    request->arena = &job->arena;
    request->limit = &job->limit;
    request->scope = job->scope;
}

/* The modules must be sorted before a frame's module is searched. */
bool native_prepare(struct native_request *request)
{
    if (!native_sort_modules(request))
        return false;
    native_assign_modules(request);
    return true;
}

/* ---- loop or pool ---- */

/* Sets `items` to the cache entries that the module's tables lie in; NULL where there is none. */
static void table_items(const struct native_lookups *found, struct cache_item *items[3])
{
    items[0] = found->lookup.item;
    items[1] = found->symbfile.items[0];
    items[2] = found->symbfile.items[1];
}

/* True if all tables of the module are in memory, so that reading them does not wait for the disk. Asks for each one, also after the
 * first false: cache_is_resident answers false once when a check is due, so that a step on the pool is chosen, which then checks all
 * tables that are due (native_check_residency). */
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

/* Returns where to run a step for `frames` frames: on the loop if it is short and all tables are in memory, else on the pool. Sets
 * is_not_resident of each module to whether its tables are not in memory. */
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

/* Checks only tables that were not in memory when choose_executor asked: the step has read parts of them since. */
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

/* Returns SL_BUSY if the request has run out of memory. */
static enum sl_code native_check_memory(const struct native_request *request, struct sl_error *error)
{
    return request->out_of_memory ? sl_fail(error, SL_BUSY, "out of memory") : SL_OK;
}

/* Makes the resulting frames, without names. */
static enum sl_code look_up(struct job *job, void *request, struct sl_error *error)
{
    native_symbolicate(request, job->config->max_response_frames);
    return native_check_memory(request, error);
}

/* Removes bogus frames, then counts the variables, from whose number the size of the answer is estimated. */
static enum sl_code finish(struct job *job, void *arg, struct sl_error *error)
{
    struct native_request *request = arg;
    native_finish(request);
    if (!request->out_of_memory)
        request->variables = native_count_variables(request);
    return native_check_memory(request, error);
}

/* Pool work: names the frames, calls `finish`, then the step that the request wants next (`then`). If memory is missing for names, `finish`
 * reports it. */
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

/* Pool work, for requests that are too large for the loop: makes the resulting frames and names them. */
static enum sl_code look_up_and_name(struct job *job, void *request, struct sl_error *error)
{
    enum sl_code code = look_up(job, request, error);
    return code == SL_OK ? name_and_finish(job, request, error) : code;
}

/* Makes and names the resulting frames, in one step on the pool, or on the loop. There the number of results is known only after
 * look_up: if they are too many for the loop, naming moves to the pool. At the end runs the step that the request wants next (`then`). */
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

/* Pool work: adds source lines from bundles and debug files. */
static enum sl_code apply_sources(struct job *job, void *request, struct sl_error *error)
{
    native_apply_sources(request);
    return native_check_memory(request, error);
}

/* Adds source lines: from bundles and debug files, then from the web. Does nothing if no module has sources and srcsrv_links is false:
 * debug files may then not name URLs either. */
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

/* Makes an empty list for the files that were sent with a request. At most 512 MiB are decompressed in all. NULL when out of memory. */
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

/* Reads a file and adds the objects in it to `own`. */
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

/* Order: files sent with the request, symbols, results and names, source lines. native_find_symbols returns false when out of memory or
 * cancelled. */
enum sl_code native_run(struct job *job, void *arg, struct sl_error *error)
{
    struct native_request *request = arg;
    enum sl_code code = native_read_files(request, error);
    if (code != SL_OK)
        return code;
    /* estimated memory of the resulting frames, twice the number sent: their arrays grow by doubling */
    uint64_t memory = 2 * request->frame_count * sizeof(struct native_result_frame);
    if (!native_find_symbols(request))
        return request->out_of_memory ? native_check_memory(request, error) : SL_CANCELLED;
    code = job_reserve(job, memory, error);
    if (code == SL_OK && request->locate) /* a step of some kinds, which may change the frames' addresses */
        code = job_work(job, POOL_SYMBOLICATE, request->locate, error);
    if (code == SL_OK)
        code = name_frames(job, request, error);
    return code == SL_OK && request->options.apply_source_context != SL_BOOL_FALSE ? add_context(job, request, error)
                                                                                   : code;
}

/* ---- the answer ---- */

/* Estimates the bytes of the answer, so that its buffer need not grow often. */
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
    sl_buf_reserve(&job->answer, native_answer_memory(request)); /* a failure marks the buffer, which job_run sees */
    struct sl_json_writer w = sl_json_writer(&job->answer);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "status", SL_STR("completed"));
    request->writer(request, &w, request->writer_arg);
    answer_limit_write(request->limit, &w);
    sl_json_end_object(&w);
    native_check_residency(request);
    return SL_OK;
}
