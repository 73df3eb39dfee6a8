/* The shared cache: entries that several machines share through one or two back ends, a Redis and a bucket (or a directory). */
#include "cache/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/duration.h"
#include "core/loop.h"
#include "core/metrics.h"

enum { DRAIN_MS = 5000 };

static struct {
    struct shared_backend *redis, *bucket; /* NULL = none */
    const struct config_shared *config;
    const char *redis_kind; /* the only kind stored in the Redis; NULL = all */
    struct sl_arena arena;
    struct fiber_group group; /* of connections and probes */
} layer;

void shared_name(struct shared_name *name, const struct cache_kind *kind, struct sl_str key)
{
    char path[128];
    cache_relative_path(key, kind->version, kind->version <= kind->format1_up_to, path);
    snprintf(name->text, sizeof name->text, "%.30s/%s", kind->name, path);
}

/* ---- start and end ---- */

/* Sets `*bucket` to the bucket or directory of the configuration, NULL if it has none. An invalid configuration is an error, with the key
 * at fault in `*key`. */
static enum sl_code open_bucket(const struct config *config, struct sl_arena *arena, struct fiber_group *group,
                                struct shared_backend **bucket, const char **key, struct sl_error *error)
{
    const struct config_shared *shared = &config->shared;
    *bucket = NULL;
    *key = "shared_cache"; /* for errors of a bucket; the other branches set it */
    if (shared->filesystem_path)
        *bucket = shared_directory(config, key, error);
    else if (bucket_is_configured(&shared->bucket))
        *bucket = shared_bucket(config, arena, group, error);
    else if (shared->bucket.endpoint.data || secret_present(shared->bucket.access_key))
        *key = "shared_cache.s3.bucket",
        sl_fail(error, SL_MALFORMED, "the bucket's name is missing, although other keys of the bucket are set");
    else
        return SL_OK;
    return *bucket ? SL_OK : error->code;
}

/* True if the Redis stores only the kind with a size limit of its own (CACHE_BOUNDED): there is no shared_cache.redis.url, but that kind is
 * configured to use one. */
static bool is_for_bounded(const struct config *config)
{
    return !config->shared.redis_url && config_bounded_in_redis(config);
}

/* True if the configuration has a Redis that stores cache entries, of all kinds or of one. */
static bool wants_redis(const struct config *config)
{
    return config->shared.redis_url || (is_for_bounded(config) && config->bounded.redis_url);
}

enum sl_code cache_check_shared(const struct config *config, const char **key, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct fiber_group group;
    struct shared_backend *bucket;
    fiber_group_init(&group, NULL); /* stays empty, as nothing is requested */
    enum sl_code code = open_bucket(config, &arena, &group, &bucket, key, error);
    if (code == SL_OK && wants_redis(config))
        code = shared_check_redis(config, key, error);
    sl_arena_free(&arena);
    return code;
}

enum sl_code shared_init(const struct config *config, struct sl_error *error)
{
    const struct config_shared *shared = &config->shared;
    const char *key;
    layer.redis = layer.bucket = NULL;
    layer.config = shared;
    fiber_group_init(&layer.group, NULL);
    write_queue_init(config);
    if (open_bucket(config, &layer.arena, &layer.group, &layer.bucket, &key, error) != SL_OK)
        return error->code;
    layer.redis_kind = is_for_bounded(config) ? config->bounded.kind : NULL; /* NULL: it stores all kinds */
    if (wants_redis(config) && !(layer.redis = shared_redis(config, &layer.group, &key, error)))
        return error->code;
    if (layer.bucket) /* `group` is for the fibers that probe a paused back end */
        layer.bucket->group = &layer.group;
    if (layer.redis) {
        layer.redis->group = &layer.group;
        redis_log_init(shared->redis_namespace, layer.redis, &layer.group);
        if (config_bounded_in_redis(config))
            redis_policy_init(config, layer.redis, &layer.group);
    }
    return SL_OK;
}

/* Closes the back end, if there is one, and sets `*backend` to NULL. */
static void close_backend(struct shared_backend **backend)
{
    if (*backend && (*backend)->close)
        (*backend)->close();
    *backend = NULL;
}

/* Ends the fiber that requests credentials, which the probe may have started, before the bucket is closed. */
enum sl_code cache_check_bucket(const struct config *config, struct sl_error *error)
{
    static const char *const wrong[] = {[SHARED_TIMEOUT] = "no response in time",
                                        [SHARED_UNREACHABLE] = "no connection",
                                        [SHARED_CANCELLED] = "no response in time",
                                        [SHARED_ERROR] = "refused",
                                        [SHARED_BUSY] = "out of memory"};
    struct sl_arena arena = {0};
    struct fiber_group group;
    struct shared_backend *bucket = NULL;
    *error = (struct sl_error){.code = SL_NOT_FOUND};
    fiber_group_init(&group, fiber_group_current());
    const char *key;
    if (bucket_is_configured(&config->shared.bucket))
        open_bucket(config, &arena, &group, &bucket, &key, error); /* on failure `bucket` is NULL, and `error` is set */
    enum shared_result result = bucket ? bucket->probe() : SHARED_ERROR;
    if (bucket && result == SHARED_HIT)
        error->code = SL_OK;
    else if (bucket)
        sl_fail(error, SL_DOWNLOAD_ERROR, "%s%s%s", wrong[result] ? wrong[result] : "refused",
                *bucket_last_error() ? ": " : "", bucket_last_error());
    fiber_group_cancel(&group);
    fiber_group_wait(&group);
    close_backend(&bucket);
    sl_arena_free(&arena);
    return error->code;
}

unsigned cache_redis_state(void)
{
    if (!layer.redis)
        return 0;
    return (breaker_allows(layer.redis) ? 0u : CACHE_REDIS_DOWN) | (redis_policy_keeps() ? CACHE_REDIS_KEEPS : 0u);
}

bool shared_active(void)
{
    return layer.redis || layer.bucket;
}

/* At the end of the process: writes what is queued, for at most DRAIN_MS, then ends the layer's fibers and closes the back ends. */
void shared_drain(void)
{
    if (!shared_active())
        return;
    write_queue_drain(DRAIN_MS);
    fiber_group_cancel(&layer.group);
    fiber_group_wait(&layer.group); /* before the back ends, which these fibers use, are closed */
    redis_log_close();
    close_backend(&layer.redis);
    close_backend(&layer.bucket);
    sl_arena_free(&layer.arena);
}

/* Gets the state of back end number `i`: the Redis is 0 and the bucket 1; without a Redis the bucket is 0. False: there is no such one. */
bool cache_shared_state(size_t i, struct cache_shared_state *state)
{
    const struct shared_backend *all[2] = {layer.redis ? layer.redis : layer.bucket, layer.redis ? layer.bucket : NULL};
    const struct shared_backend *backend = i < 2 ? all[i] : NULL;
    if (!backend)
        return false;
    *state = (struct cache_shared_state){backend->name, !backend->down, backend->last_error};
    return true;
}

/* ---- which back ends ---- */
/* Returns which back ends shall store the kind, by the configuration (shared_cache.route.<kind>); both for a kind without such a key. */
static enum shared_route get_route(const char *kind)
{
    for (int i = 0; i < CONFIG_SHARED_KINDS; i++)
        if (strcmp(config_shared_kinds[i], kind) == 0)
            return (enum shared_route)layer.config->route[i];
    return SHARED_BOTH;
}

/* Sets `out` to the back ends that store entries of the kind, in the order in which they are asked; NULL: none. What the configuration says
 * of the kind (get_route) applies only if there are two back ends. */
static void list_backends(const char *kind, struct shared_backend *out[SHARED_BACKENDS])
{
    enum shared_route route = layer.redis && layer.bucket ? get_route(kind) : SHARED_BOTH;
    bool for_redis = !layer.redis_kind || strcmp(layer.redis_kind, kind) == 0;
    out[0] = route == SHARED_BUCKET_ONLY || !for_redis ? NULL : layer.redis;
    out[1] = route == SHARED_REDIS_ONLY ? NULL : layer.bucket;
}

/* ---- asking ---- */

/* True if an error that another machine has stored has not expired by the lifetimes of this machine; sets `*left_ns`, how long it is still
 * valid. */
static bool is_unexpired(const struct shared_query *q, const struct shared_value *value, uint64_t *left_ns)
{
    struct cache_facts facts = {.class = cache_get_class(value->code),
                                .is_public = cache_scope_global(q->scope),
                                .created_ns = value->created_s * CACHE_SECOND_NS,
                                .created_in_seconds = true};
    struct cache_freshness verdict =
        cache_expiry(&q->lifetimes, &facts, cache_now_ns(), q->start_ns, q->restart_retries_malformed);
    *left_ns = verdict.left_ns;
    return !verdict.expired;
}

/* Returns the size of the file; 0 on an error. */
static uint64_t shared_file_size(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* Asks one back end (NULL: none) for the entry, contents into `fd`. True if it has the entry and that can be used. An entry that cannot be
 * used sets finding->stale: it will be replaced by the computed one. */
static bool shared_lookup(struct shared_backend *backend, const struct shared_query *q, const char *name, int fd,
                          struct shared_result_value *finding)
{
    if (!backend || !breaker_allows(backend))
        return false;
    uint64_t begin = loop_now_ms();
    finding->value = (struct shared_value){0};
    enum shared_result result = backend->get(name, fd, &finding->value);
    breaker_note(backend, SHARED_GET, q->kind->name, begin, result);
    bool hit = result == SHARED_HIT;
    /* The entry is older than the invalidation stamp of its files. As times are in whole seconds and clocks of machines differ a
     * little, one of the same second counts as older, too. */
    if (hit && q->stamp_ns && finding->value.created_s <= q->stamp_ns / CACHE_SECOND_NS) {
        finding->stale = true;
        hit = false;
    }
    if (hit && !shared_is_definitive(finding->value.code)) { /* older versions of the service stored such errors */
        finding->stale = true;
        hit = false;
    }
    if (hit && finding->value.code != SL_OK && !is_unexpired(q, &finding->value, &finding->left_ns)) {
        finding->stale = true;
        hit = false;
    }
    /* A server that has lost its data, but not its index, returns empty contents. Entries that really are empty are cheap to make again. */
    if (hit && finding->value.code == SL_OK && shared_file_size(fd) == 0) {
        finding->stale = true;
        hit = false;
    }
    if (hit)
        finding->from = backend;
    if (hit && finding->value.code == SL_OK)
        metric_add(METRIC_SHARED_BYTES, shared_file_size(fd), backend->name, "in", NULL);
    return hit;
}

bool shared_get(const struct shared_query *question, int fd, struct shared_result_value *finding)
{
    struct shared_backend *backends[SHARED_BACKENDS];
    struct shared_name name;
    *finding = (struct shared_result_value){0};
    list_backends(question->kind->name, backends);
    shared_name(&name, question->kind, question->key);
    for (int i = 0; i < SHARED_BACKENDS; i++) {
        if (shared_lookup(backends[i], question, name.text, fd, finding))
            return true;
        /* Removes contents that were written to the file before a failure. If that fails, so will the next write to the file. */
        if (backends[i] && ftruncate(fd, 0) == 0)
            lseek(fd, 0, SEEK_SET);
    }
    return false;
}

void shared_delete(const struct cache_kind *kind, const struct shared_name *name)
{
    struct shared_backend *backends[SHARED_BACKENDS] = {layer.redis, layer.bucket};
    for (int i = 0; i < SHARED_BACKENDS; i++) {
        uint64_t begin = loop_now_ms();
        if (backends[i] && breaker_allows(backends[i]))
            breaker_note(backends[i], SHARED_DEL, kind->name, begin, backends[i]->del(name->text));
    }
}

bool shared_publish_invalidation(const struct cache_file *files, size_t count, int64_t at_ns)
{
    return !layer.redis || redis_log_publish(files, count, at_ns);
}

/* ---- storing ---- */
/* Makes a write for the queue, of an entry that was made now, to all back ends that store the kind; NULL when out of memory. */
static struct queued_write *new_write(const struct cache_kind *kind, struct sl_str key)
{
    struct queued_write *queued = calloc(1, sizeof *queued); /* outlives the request */
    if (!queued)
        return NULL;
    queued->kind = kind;
    queued->created_s = clock_wall_s();
    shared_name(&queued->name, kind, key);
    list_backends(kind->name, queued->to);
    return queued;
}

void shared_enqueue(const struct cache_kind *kind, struct sl_str key, struct cache_item *item,
                    enum shared_reason reason, bool replace)
{
    struct queued_write *queued = shared_active() ? new_write(kind, key) : NULL;
    if (!queued)
        return;
    queued->item = cache_retain(item);
    queued->reason = reason;
    queued->replace = replace;
    write_queue_add(queued);
}

/* The Redis is asked before the bucket: an entry that the bucket had is missing in the Redis, or unusable there (finding->stale). */
void shared_fill_first(const struct cache_kind *kind, struct sl_str key, struct cache_item *item,
                       const struct shared_result_value *finding)
{
    struct shared_backend *backends[SHARED_BACKENDS];
    list_backends(kind->name, backends);
    if (finding->from != layer.bucket || !backends[0])
        return; /* there is only the bucket, or the Redis had the entry */
    struct queued_write *queued = new_write(kind, key);
    if (!queued)
        return;
    queued->item = cache_retain(item);
    queued->replace = finding->stale;
    queued->to[1] = NULL; /* not to the bucket, which has it */
    write_queue_add(queued);
}

/* Only back ends that store errors (`negative`) get it; an error that expires within a second is not stored. DURATION_NEVER becomes
 * UINT32_MAX seconds, as a time to live in Redis is a finite number. */
void shared_enqueue_error(const struct cache_kind *kind, struct sl_str key, const struct sl_error *error,
                          uint64_t ttl_ns)
{
    struct queued_write *queued = shared_active() && ttl_ns >= (uint64_t)CACHE_SECOND_NS ? new_write(kind, key) : NULL;
    bool wanted = false;
    for (int i = 0; queued && i < SHARED_BACKENDS; i++) {
        if (queued->to[i] && !queued->to[i]->negative)
            queued->to[i] = NULL;
        wanted |= queued->to[i] != NULL;
    }
    if (!wanted) {
        free(queued);
        return;
    }
    queued->error = *error;
    queued->ttl_s = ttl_ns == DURATION_NEVER ? UINT32_MAX : ttl_ns / (uint64_t)CACHE_SECOND_NS;
    write_queue_add(queued);
}
