/* POST /symbolicate-jvm: a request for frames of the JVM becomes a job. */
#include "api/access.h"
#include "api/json_body.h"
#include "api/jvm/jvm.h"
#include "api/sources.h"

#include "core/log.h"

/* ---- the job ---- */

static bool is_mapping_of(const struct jvm_question *module, const struct local_mapping *mapping)
{
    return !module->is_bundle && sl_debug_id_equal(&module->id, &mapping->id);
}

/* The mappings of a command: each for the modules of its id, else for one that nobody has a mapping for. */
static void use_local_mappings(struct jvm_request *r)
{
    for (size_t i = 0; i < r->local->mapping_count; i++) {
        const struct local_mapping *mapping = &r->local->mappings[i];
        struct jvm_question *other = NULL;
        bool used = false;
        for (size_t m = 0; m < r->module_count; m++) {
            struct jvm_question *module = &r->modules[m];
            bool is_own = is_mapping_of(module, mapping);
            used |= is_own;
            if (is_own) {
                module->mapper = mapping->mapper;
                module->code = SL_OK;
            } else if (!other && !module->is_bundle && !module->mapper) {
                other = module;
            }
        }
        if (!used && other && !mapping->only_by_id) {
            other->mapper = mapping->mapper;
            other->code = SL_OK;
        }
    }
}

/* Those of a command that belong to no module count without one, when the request names none. */
static size_t count_modules(const struct jvm_request *r)
{
    size_t mappings = 0;
    for (size_t i = 0; i < r->module_count; i++)
        mappings += !r->modules[i].is_bundle;
    return r->module_count + (r->local && !mappings ? r->local->mapping_count : 0);
}

/* Mappings, and bundles when somebody wants their sources. */
static enum sl_code find_files(struct jvm_request *r, struct sl_error *error)
{
    bool sources = r->apply_source_context != SL_BOOL_FALSE;
    struct jvm_question *wanted = SL_ARENA_ARRAY(r->arena, struct jvm_question, r->module_count + 1);
    size_t count = 0;
    if (!wanted)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; i < r->module_count; i++)
        if (sources || !r->modules[i].is_bundle)
            wanted[count++] = r->modules[i];
    r->modules = wanted;
    r->module_count = count;
    if (!kinds_find_jvm(r->sources, r->source_count, r->scope, r->modules, count, r->arena))
        return SL_CANCELLED;
    for (size_t i = 0; i < count; i++)
        if (r->modules[i].code == SL_BUSY)
            return sl_fail(error, SL_BUSY, "out of memory");
    if (r->local)
        use_local_mappings(r);
    return SL_OK;
}

/* The mappings that came along. One that is none is told in the answer. */
static enum sl_code make_own(struct jvm_request *r, struct sl_error *error)
{
    for (size_t i = 0; i < r->files.count; i++) {
        struct jvm_own *own = &r->own[i];
        own->code = kinds_own_mapping(r->files.items[i].text, &own->item, error);
        if (own->code == SL_BUSY || own->code == SL_CANCELLED)
            return own->code;
        if (own->code != SL_OK)
            log_debug("jvm", "a mapping of a request is not used", LOG_STR("reason", error->message));
    }
    return SL_OK;
}

static void release_own(struct jvm_request *r)
{
    for (size_t i = 0; i < r->files.count; i++)
        cache_release(r->own[i].item);
    memset(r->own, 0, sizeof r->own);
}

static uint64_t own_bytes(const struct jvm_request *r)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->files.count; i++)
        bytes += r->own[i].item ? r->own[i].item->mapping.bytes.size : 0;
    return bytes;
}

/* Those that came along are asked first. With one of them a mapping that was found nowhere is not missed. */
static enum sl_code list_mappers(struct jvm_request *r, struct sl_error *error)
{
    const struct sl_jvm_mapper **items =
        SL_ARENA_ARRAY(r->arena, const struct sl_jvm_mapper *, count_modules(r) + r->files.count + 1);
    size_t local = count_modules(r) - r->module_count;
    if (!items)
        return sl_fail(error, SL_BUSY, "out of memory");
    r->mappers = (struct sl_jvm_mappers){.items = items, .chain = r->config->jvm_chain_mappings};
    for (size_t i = 0; i < r->files.count; i++)
        if (r->own[i].item)
            items[r->mappers.count++] = r->own[i].item->loaded;
    bool served = r->mappers.count > 0;
    for (size_t i = 0; i < r->module_count; i++) {
        struct jvm_question *module = &r->modules[i];
        if (module->mapper)
            items[r->mappers.count++] = module->mapper;
        else if (served && !module->is_bundle && module->code == SL_NOT_FOUND)
            module->code = SL_OK;
    }
    for (size_t i = 0; i < local; i++)
        if (!r->local->mappings[i].only_by_id)
            items[r->mappers.count++] = r->local->mappings[i].mapper;
    return SL_OK;
}

struct jvm_work {
    struct job *job;
    struct jvm_request *request;
};

static void jvm_work(void *arg)
{
    struct jvm_work *work = arg;
    jvm_map(work->request);
    if (!work->request->out_of_memory && work->request->apply_source_context != SL_BOOL_FALSE)
        jvm_add_context(work->request);
    if (!work->request->out_of_memory)
        jvm_write(work->request, &work->job->answer);
}

static enum sl_code jvm_steps(void *arg, struct sl_error *error)
{
    struct jvm_work *work = arg;
    struct job *job = work->job;
    struct jvm_request *r = work->request;
    enum sl_code code = find_files(r, error);
    if (code != SL_OK || (code = make_own(r, error)) != SL_OK || (code = list_mappers(r, error)) != SL_OK)
        return code;
    uint64_t needed = r->arena->used + own_bytes(r) + 2 * r->frame_count * sizeof(struct jvm_frame);
    if ((code = memory_ask(&job->memory, needed, error)) != SL_OK)
        return code == SL_CANCELLED ? code : sl_fail(error, SL_BUSY, "not enough memory for the answer");
    code = pool_run(POOL_SYMBOLICATE, jvm_work, work, error);
    memory_set(&job->memory, r->arena->used + job->answer.capacity);
    if (r->limited)
        log_warn("jvm", "frames were left out of an answer, which has as many as it may",
                 LOG_U64("frames", r->result_count));
    if (code == SL_OK && (r->out_of_memory || job->answer.failed))
        return sl_fail(error, SL_BUSY, "out of memory");
    return code;
}

static void jvm_reset(void *arg)
{
    struct jvm_work *work = arg;
    struct jvm_request *r = work->request;
    kinds_release_jvm(r->modules, r->module_count);
    release_own(r);
    sl_buf_clear(&work->job->answer);
    r->result_count = 0;
    r->limited = false;
}

static enum sl_code jvm_run(struct job *job, void *arg, struct sl_error *error)
{
    struct jvm_request *r = arg;
    struct jvm_work work = {job, r};
    enum sl_code code = cache_run_reader(&(struct cache_reader){jvm_steps, jvm_reset}, &work, error);
    if (code == SL_OK)
        jvm_count(r, job->task);
    kinds_release_jvm(r->modules, r->module_count);
    release_own(r);
    return code;
}

/* ---- the request ---- */

static bool jvm_read_request(void *arg, struct sl_str text, struct json_failure *failure)
{
    struct jvm_request *r = arg;
    if (!jvm_read(r, text, failure))
        return false;
    *failure = json_no_memory;
    return r->configured_sources != SL_BOOL_TRUE ||
           request_sources_add_configured(r->config, r->arena, &r->sources, &r->source_count);
}

static struct jvm_request *jvm_request_new(struct job *job, struct sl_str scope)
{
    struct jvm_request *r = SL_ARENA_NEW(&job->arena, struct jvm_request);
    const char *kept = sl_arena_strndup(&job->arena, scope.data, scope.size);
    struct answer_limit *limit = SL_ARENA_NEW(&job->arena, struct answer_limit);
    if (!r || !kept || !limit)
        return NULL;
    *r = (struct jvm_request){.arena = &job->arena, .config = job->config, .scope = {kept, scope.size}, .limit = limit};
    return r;
}

/* NULL: the answer is set. */
static struct jvm_request *jvm_body(struct http_exchange *x, struct job *job, struct sl_str scope)
{
    struct jvm_request *r = jvm_request_new(job, scope);
    struct json_body body = {.arena = &job->arena, .read = jvm_read_request, .arg = r};
    if (!r)
        http_reply_no_memory(x);
    return r && own_files_read(x, &body, &r->files) ? r : NULL;
}

static void symbolicate_jvm(struct http_exchange *x)
{
    struct api_query query;
    struct job *job = job_new(x);
    if (!job)
        return;
    struct jvm_request *request = query_read(x, &query) ? jvm_body(x, job, query.scope) : NULL;
    if (request && access_may_bring(x, request->sources, request->source_count))
        job_start(x, job, &query, jvm_run, request);
    else
        job_discard(job);
}

static const struct http_route routes[] = {
    {.method = "POST",
     .pattern = "/symbolicate-jvm",
     .handler = symbolicate_jvm,
     .takes_work = true,
     .check = check_json_or_form,
     .body_limit = json_job_limit,
     .body_weight = JSON_WEIGHT,
     .rights = API_RIGHT("symbolicate"),
     .task = "symbolicate_jvm"},
    {.method = NULL},
};

/* ---- without a server ---- */

static void *jvm_read_local(const struct local_request *local, struct job *job, struct json_failure *failure)
{
    struct jvm_request *r = jvm_request_new(job, local_request_scope(local));
    *failure = json_no_memory;
    if (!r || !jvm_read(r, local->body, failure) ||
        !local_request_sources(local, r->arena, &r->sources, &r->source_count))
        return NULL;
    r->local = local;
    if (local->no_source_context)
        r->apply_source_context = SL_BOOL_FALSE;
    return r;
}

const struct local_family local_family_jvm = {"symbolicate_jvm", jvm_read_local, jvm_run};

const struct http_family family_jvm = {.routes = routes, .group = "symbolicate"};
