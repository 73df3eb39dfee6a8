/* A request through all its steps. */
#include "api/impl.h"
#include "api/native/native.h"
#include "core/guard.h"

enum { MANY_FRAMES = 10000 };

struct native_request *native_request_new(struct sl_arena *arena, struct sl_str scope)
{
    struct native_request *request = SL_ARENA_NEW(arena, struct native_request);
    const char *kept = sl_arena_strndup(arena, scope.data, scope.size);
    struct answer_limit *limit = SL_ARENA_NEW(arena, struct answer_limit);
    if (!request || !kept || !limit)
        return NULL;
    answer_limit_begin(limit, arena, UINT64_MAX);
    request->limit = limit;
    request->arena = arena;
    request->origin = "symbolicate";
    request->scope = (struct sl_str){kept, scope.size};
    return request;
}

bool native_prepare(struct native_request *request)
{
    if (!native_sort_modules(request))
        return false;
    native_match(request);
    return true;
}

/* ---- steps ---- */
struct step {
    const struct native_request *request;
    void (*work)(void *arg);
    void *arg;
};

/* The items that the tables of a module lie in; NULL where there is none. */
static void items_of(const struct native_found *found, struct cache_item *items[3])
{
    items[0] = found->lookup.item;
    items[1] = found->symbfile.items[0];
    items[2] = found->symbfile.items[1];
}

static bool is_at_hand(const struct native_found *found)
{
    struct cache_item *items[3];
    bool all = true;
    items_of(found, items);
    for (size_t i = 0; i < 3; i++)
        all = (!items[i] || cache_at_hand(items[i])) && all;
    return all;
}

bool native_stays(const struct native_request *request, size_t frames)
{
    bool stays = request->frame_count <= NATIVE_FEW_FRAMES && frames <= NATIVE_FEW_RESULTS &&
                 request->module_count <= NATIVE_FEW_FRAMES;
    for (size_t i = 0; i < request->module_count; i++) {
        struct native_found *found = request->modules[i].found;
        if (!found)
            continue;
        found->is_cold = !is_at_hand(found);
        stays = stays && !found->is_cold;
    }
    return stays;
}

static void work_and_look(void *arg)
{
    const struct step *step = arg;
    struct cache_item *items[3];
    step->work(step->arg);
    for (size_t i = 0; i < step->request->module_count; i++) {
        const struct native_found *found = step->request->modules[i].found;
        if (!found || !found->is_cold)
            continue;
        items_of(found, items);
        for (size_t k = 0; k < 3; k++)
            if (items[k])
                cache_look_at_pages(items[k]);
    }
}

enum sl_code native_on_pool(const struct native_request *request, size_t frames, void (*work)(void *arg), void *arg,
                            struct sl_error *error)
{
    struct step step = {request, work, arg};
    return pool_run(frames > MANY_FRAMES ? POOL_SYMBOLICATE | POOL_HEAVY : POOL_SYMBOLICATE, work_and_look, &step,
                    error);
}

enum sl_code native_here(void (*work)(void *arg), void *arg, struct sl_error *error)
{
    return guard_run(work, arg) ? SL_OK : sl_fail(error, SL_INTERNAL, "a mapped file could not be read");
}

enum sl_code native_step(const struct native_request *request, size_t frames, void (*work)(void *arg), void *arg,
                         struct sl_error *error)
{
    return native_stays(request, frames) ? native_here(work, arg, error)
                                         : native_on_pool(request, frames, work, arg, error);
}

struct run {
    struct native_request *request;
    const struct native_means *means;
};

static void symbolicate(void *arg)
{
    const struct run *run = arg;
    answer_limit_begin(run->request->limit, run->request->arena, run->means->config->max_response_bytes);
    native_symbolicate(run->request, run->means->config->max_response_frames);
}

static void finish(void *request)
{
    native_finish(request);
}

static void name_and_finish(void *arg)
{
    const struct run *run = arg;
    struct native_then *then = run->means->then;
    native_name_at_once(run->request);
    native_finish(run->request);
    if (then && !run->request->out_of_memory) {
        then->work(then->arg);
        then->done = true;
    }
}

static void symbolicate_and_name(void *arg)
{
    symbolicate(arg);
    name_and_finish(arg);
}

/* From what was found to frames with names: in one job of the pool, or as much of it on the loop as may be. */
static enum sl_code look_up(struct run *run, struct sl_error *error)
{
    struct native_request *request = run->request;
    if (!native_stays(request, request->frame_count))
        return native_on_pool(request, request->frame_count, symbolicate_and_name, run, error);
    enum sl_code code = native_here(symbolicate, run, error);
    if (code == SL_OK && !native_stays(request, request->result_count))
        return native_on_pool(request, request->result_count, name_and_finish, run, error);
    if (code == SL_OK)
        code = native_name(request, run->means->names, error);
    return code == SL_OK ? native_here(finish, request, error) : code;
}

static void apply_sources(void *request)
{
    native_apply_sources(request);
}

static enum sl_code add_context(struct native_request *request, struct sl_error *error)
{
    bool any = request->srcsrv_links;
    if (!native_find_sources(request))
        return SL_CANCELLED;
    for (size_t i = 0; i < request->module_count; i++)
        any = any || request->modules[i].has_sources;
    if (!any)
        return SL_OK;
    enum sl_code code = pool_run(POOL_SYMBOLICATE, apply_sources, request, error);
    return code == SL_OK ? native_download_sources(request, error) : code;
}

/* What the frames that come out will take, about: their arrays grow by doubling. */
static size_t expected_frames(const struct native_request *request)
{
    return 2 * request->frame_count * sizeof(struct native_result_frame);
}

/* The request may use so much more from now on; waits until there is as much. */
static enum sl_code ask_for(const struct native_request *request, struct memory_share *memory, size_t more,
                            struct sl_error *error)
{
    enum sl_code code = memory_ask(memory, request->arena->used + more, error);
    return code && code != SL_CANCELLED ? sl_fail(error, SL_BUSY, "not enough memory for the answer") : code;
}

enum sl_code native_run(struct native_request *request, const struct native_means *means, struct sl_error *error)
{
    struct run run = {request, means};
    enum sl_code code;
    if (!native_find_symbols(request))
        return request->out_of_memory ? sl_fail(error, SL_BUSY, "out of memory") : SL_CANCELLED;
    if ((code = ask_for(request, means->memory, expected_frames(request), error)) != SL_OK ||
        (code = look_up(&run, error)) != SL_OK)
        return code;
    if (means->memory->bytes < request->arena->used)
        memory_set(means->memory, request->arena->used);
    if (request->options.apply_source_context != SL_BOOL_FALSE && (code = add_context(request, error)) != SL_OK)
        return code;
    return request->out_of_memory ? sl_fail(error, SL_BUSY, "out of memory") : SL_OK;
}

/* ---- jobs ---- */
struct answer {
    const struct native_request *request;
    native_writer *write;
    void *arg;
    size_t variables; /* that it tells */
    struct sl_buf *text;
};

/* About as much as the answer will take, so that it hardly grows. */
static size_t expected_size(const struct answer *answer)
{
    enum { BASE = 512, FRAME = 448, VARIABLE = 32, MODULE = 384 };
    const struct native_request *request = answer->request;
    return BASE + request->result_count * FRAME + answer->variables * VARIABLE + request->module_count * MODULE;
}

static void write_answer(void *arg)
{
    struct answer *answer = arg;
    sl_buf_reserve(answer->text, answer_limit_reserve(answer->request->limit, expected_size(answer)));
    struct sl_json_writer w = sl_json_writer(answer->text);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "status", SL_STR("completed"));
    answer->write(answer->request, &w, answer->arg);
    answer_limit_write(answer->request->limit, &w);
    sl_json_end_object(&w);
}

struct native_job {
    struct job *job;
    struct native_request *request;
    struct answer *answer;
};

static enum sl_code run_and_write(void *arg, struct sl_error *error)
{
    const struct native_job *work = arg;
    struct job *job = work->job;
    struct native_request *request = work->request;
    struct answer *answer = work->answer;
    struct native_means means = {job->config, job->service->names, &job->memory};
    enum sl_code code = native_run(request, &means, error);
    if (code != SL_OK)
        return code;
    answer->variables = native_count_variables(request);
    size_t size = answer_limit_reserve(request->limit, expected_size(answer));
    if ((code = ask_for(request, &job->memory, size, error)) != SL_OK)
        return code;
    code = native_step(request, request->result_count + answer->variables, write_answer, answer, error);
    memory_set(&job->memory, job->arena.used + job->answer.capacity);
    return code;
}

static void reset_job(void *arg)
{
    const struct native_job *work = arg;
    native_reset(work->request);
    sl_buf_clear(&work->job->answer);
}

enum sl_code native_run_job(struct job *job, struct native_request *request, native_writer *write, void *arg,
                            struct sl_error *error)
{
    struct answer answer = {.request = request, .write = write, .arg = arg, .text = &job->answer};
    struct native_job work = {job, request, &answer};
    enum sl_code code = cache_run_reader(&(struct cache_reader){run_and_write, reset_job}, &work, error);
    if (code == SL_OK)
        native_count(request);
    native_release(request);
    return code;
}
