/* POST /symbolicate-jvm. */
#include "api/access.h"
#include "api/impl.h"
#include "api/jvm/jvm.h"
#include "api/sources.h"
#include "debug_file_store/debug_file_store.h"
#include "core/log.h"

#include <stddef.h>

/* ---- the job ---- */

/* True if the module is a mapping with the id of the command's mapping. */
static bool mapping_belongs_to(const struct jvm_query *module, const struct local_mapping *mapping)
{
    return !module->is_bundle && sl_debug_id_equal(&module->id, &mapping->id);
}

/* Gives the command's local mappings to the request's modules: each to all modules with its id. One whose id no module has goes to the
 * first module without a mapping, unless it is `only_by_id`. */
static void use_local_mappings(struct jvm_request *r)
{
    for (size_t i = 0; i < r->local->mapping_count; i++) {
        const struct local_mapping *mapping = &r->local->mappings[i];
        struct jvm_query *other = NULL;
        bool used = false;
        for (size_t m = 0; m < r->module_count; m++) {
            struct jvm_query *module = &r->modules[m];
            bool is_own = mapping_belongs_to(module, mapping);
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

/* Returns the largest number of mappers from the modules (one each) and the command. The command's mappings are only listed on their
 * own if none of the modules is a mapping that they could replace. */
static size_t max_mappers(const struct jvm_request *r)
{
    size_t mappings = 0;
    for (size_t i = 0; i < r->module_count; i++)
        mappings += !r->modules[i].is_bundle;
    return r->module_count + (r->local && !mappings ? r->local->mapping_count : 0);
}

/* Looks up the modules: mappings, and source bundles if the request wants source lines; otherwise bundles are dropped from
 * `modules`. Then a command's mappings replace those that were found. */
static enum sl_code find_files(struct jvm_request *r, struct sl_error *error)
{
    bool sources = r->apply_source_context != SL_BOOL_FALSE;
    struct jvm_query *wanted = SL_ARENA_ARRAY(r->arena, struct jvm_query, r->module_count + 1);
    size_t count = 0;
    if (!wanted)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; i < r->module_count; i++)
        if (sources || !r->modules[i].is_bundle)
            wanted[count++] = r->modules[i];
    r->modules = wanted;
    r->module_count = count;
    /* the store of uploaded files, which is asked after the request's sources */
    r->sources = debug_files_append(r->sources, &r->source_count, r->arena);
    if (r->source_count && !r->sources)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (!search_find_jvm(r->sources, r->source_count, r->scope, r->modules, count, r->arena))
        return SL_CANCELLED;
    for (size_t i = 0; i < count; i++)
        if (r->modules[i].code == SL_BUSY)
            return sl_fail(error, SL_BUSY, "out of memory");
    if (r->local)
        use_local_mappings(r);
    return SL_OK;
}

/* Converts the mappings that were sent with the request to look-up tables. Invalid ones are skipped, and write_errors reports them. */
static enum sl_code convert_sent_mappings(struct jvm_request *r, struct sl_error *error)
{
    for (size_t i = 0; i < r->files.count; i++) {
        struct jvm_sent_mapping *sent = &r->sent_mappings[i];
        sent->code = item_from_mapping(r->files.items[i].text, &sent->item, error);
        if (sent->code == SL_BUSY || sent->code == SL_CANCELLED)
            return sent->code;
        if (sent->code != SL_OK)
            log_debug("jvm", "a mapping that was sent with the request is invalid and is ignored",
                      LOG_STR("reason", error->message));
    }
    return SL_OK;
}

/* Returns the bytes of the look-up tables made of mappings that were sent with the request. */
static uint64_t sent_mapping_bytes(const struct jvm_request *r)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->files.count; i++)
        bytes += r->sent_mappings[i].item ? r->sent_mappings[i].item->mapping.bytes.size : 0;
    return bytes;
}

/* Lists the mappers in order of precedence (with `chain`, frames from one are looked up in the next ones as well): of files sent with the
 * request, of the modules, of the command. If files were sent, modules that were not found are no errors, as the files stand for them. */
static enum sl_code list_mappers(struct jvm_request *r, struct sl_error *error)
{
    const struct sl_jvm_mapper **items =
        SL_ARENA_ARRAY(r->arena, const struct sl_jvm_mapper *, max_mappers(r) + r->files.count + 1);
    /* number of the command's mappings; 0 if some modules are mappings, as use_local_mappings has given the mappings to these modules */
    size_t local = max_mappers(r) - r->module_count;
    if (!items)
        return sl_fail(error, SL_BUSY, "out of memory");
    r->mappers = (struct sl_jvm_mappers){.items = items, .chain = r->config->jvm_chain_mappings};
    for (size_t i = 0; i < r->files.count; i++)
        if (r->sent_mappings[i].item)
            items[r->mappers.count++] = r->sent_mappings[i].item->loaded;
    bool has_sent = r->mappers.count > 0;
    for (size_t i = 0; i < r->module_count; i++) {
        struct jvm_query *module = &r->modules[i];
        if (module->mapper)
            items[r->mappers.count++] = module->mapper;
        else if (has_sent && !module->is_bundle && module->code == SL_NOT_FOUND)
            module->code = SL_OK;
    }
    for (size_t i = 0; i < local; i++)
        if (!r->local->mappings[i].only_by_id) /* those would need a module with their id */
            items[r->mappers.count++] = r->local->mappings[i].mapper;
    return SL_OK;
}

/* Finds the mappings and bundles; jvm_work does the rest. */
static enum sl_code jvm_run(struct job *job, void *arg, struct sl_error *error)
{
    struct jvm_request *r = arg;
    enum sl_code code = find_files(r, error);
    if (code == SL_OK)
        code = convert_sent_mappings(r, error);
    return code == SL_OK ? list_mappers(r, error) : code;
}

/* Estimates the memory of jvm_work: the tables of mappings that were sent, and results twice as large as the frames. */
static uint64_t jvm_memory(const void *arg)
{
    const struct jvm_request *r = arg;
    return sent_mapping_bytes(r) + 2 * r->frame_count * sizeof(struct jvm_frame);
}

/* Maps the frames, adds source lines if the request wants them, and writes the answer. */
static enum sl_code jvm_work(struct job *job, void *arg, struct sl_error *error)
{
    struct jvm_request *r = arg;
    jvm_map(r);
    if (!r->out_of_memory && r->apply_source_context != SL_BOOL_FALSE)
        jvm_add_context(r);
    if (r->out_of_memory)
        return sl_fail(error, SL_BUSY, "out of memory");
    jvm_write(r, &job->answer);
    return SL_OK;
}

/* Releases the cache entries of modules and sent mappings. Clears sent_mappings: after jvm_reset the job runs again and fills them
 * anew. */
static void jvm_release(void *arg)
{
    struct jvm_request *r = arg;
    search_release_jvm(r->modules, r->module_count);
    for (size_t i = 0; i < r->files.count; i++)
        cache_release(r->sent_mappings[i].item);
    memset(r->sent_mappings, 0, sizeof r->sent_mappings);
}

/* Restores the state before jvm_run, which then runs again. */
static void jvm_reset(void *arg)
{
    struct jvm_request *r = arg;
    jvm_release(r);
    r->result_count = 0;
    r->limited = false;
}

/* Counts the results of a request, and logs if frames were left out. */
static void jvm_finish(struct job *job, void *arg, enum sl_code code, const struct sl_error *error)
{
    const struct jvm_request *r = arg;
    if (r->limited)
        log_warn("jvm", "dropped frames because the response reached max_response_frames; raise it to get all frames",
                 LOG_U64("frames", r->result_count));
    if (code == SL_OK)
        jvm_count(r, job->task);
}

/* ---- the request ---- */

/* Initializes an empty request (member of struct job_kind). */
static void jvm_open(struct job *job, void *arg)
{
    struct jvm_request *r = arg;
    r->arena = &job->arena;
    r->limit = &job->limit;
    r->config = job->config;
    r->scope = job->scope;
}

/* Reads a request's body, then adds the configured sources if the request asks for them. That fails only when out of memory. */
static bool jvm_read_request(struct job *job, void *arg, struct sl_str text, struct json_failure *failure)
{
    struct jvm_request *r = arg;
    if (!jvm_read(r, text, failure))
        return false;
    *failure = json_no_memory;
    return r->configured_sources != SL_BOOL_TRUE ||
           request_sources_add_configured(r->config, r->arena, &r->sources, &r->source_count);
}

static bool jvm_is_allowed(struct http_exchange *x, const void *arg)
{
    const struct jvm_request *r = arg;
    return access_may_use_sources(x, r->sources, r->source_count);
}

/* Reads a command's request; its sources replace those in the body, or come before them (own_sources). */
static bool jvm_read_local(struct job *job, void *arg, const void *local, struct json_failure *failure)
{
    struct jvm_request *r = arg;
    r->local = local;
    if (!jvm_read(r, r->local->body, failure))
        return false;
    if (r->local->no_source_context)
        r->apply_source_context = SL_BOOL_FALSE;
    *failure = json_no_memory;
    return local_request_sources(local, r->arena, &r->sources, &r->source_count);
}

const struct job_kind job_jvm = {
    .task = "symbolicate_jvm",
    .size = sizeof(struct jvm_request),
    .open = jvm_open,
    .read = jvm_read_request,
    .files = offsetof(struct jvm_request, files),
    .is_allowed = jvm_is_allowed,
    .read_local = jvm_read_local,
    .run = jvm_run,
    .reset = jvm_reset,
    .write = jvm_work,
    .memory = jvm_memory,
    .finish = jvm_finish,
    .release = jvm_release,
};

static const struct http_route routes[] = {JSON_JOB("/symbolicate-jvm", &job_jvm), {.method = NULL}};

const struct http_family family_jvm = {.routes = routes, .group = "symbolicate"};
