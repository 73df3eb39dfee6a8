#include "cache/shared.h"

#include <stdlib.h>

#include "core/duration.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"

enum {
    GENERATION_MS = 1000,
    REFRESHES_REMEMBERED = 1024
}; /* per kind; when passed, those that may be tried again are forgotten */

/* One computation, or look-up on disk, that any number of callers wait for. Its fiber and each waiting caller hold a
 * reference. */
struct flight {
    struct kind_state *state;
    struct sl_arena arena;
    struct sl_str key, scope;
    void *context;
    struct fiber_wait_list waiters;
    uint32_t references;
    bool done;
    unsigned *renewal; /* old misses are asked for again; what the token goes back to, or NULL when there is none */
    bool renews;
    bool outdated; /* what it computes has been replaced since it began: for its waiters alone */
    int64_t begun_ns, stamp_ns;
    enum sl_code code;
    struct cache_item *item;
    struct sl_error error;
};

/* What came of a key that neither memory nor disk had. */
struct outcome {
    enum sl_code code;
    struct cache_item *item; /* one reference, when `code` is SL_OK */
    struct sl_error error;
    const char *layer;
    int64_t created_s, generation;
    uint64_t keep_ns; /* in memory */
};

/* A fiber that computes for a renewal: the look-ups it makes are renewals too. */
struct renewing {
    struct renewing *next;
    struct fiber *fiber;
};

/* A refresh of an outdated version: running, or failed and not to be tried again before a time. */
struct refresh {
    uint64_t not_before_ms; /* 0 = running */
    struct sl_str key;
};

struct kind_state {
    const struct cache_kind *kind;
    struct cache_lifetimes lifetimes;
    struct cache_memory memory;
    struct sl_map flights;   /* key -> struct flight */
    struct sl_map refreshes; /* key -> struct refresh */
    unsigned *lazy;          /* free tokens of the kind's counter; NULL = no refreshes */
};

static struct {
    struct cache_disk disk;
    char *dir;
    struct kind_state *kinds;
    size_t count;
    struct fiber_group group; /* of all computations */
    unsigned redownloads, recomputations;
    struct renewing *renewing;
    uint64_t max_mapped, renew_after_ns;
    uint64_t next_log_ms;
    const struct config *config;
    int64_t generation;         /* of the stamps, as last seen */
    uint64_t generation_due_ms; /* when it is looked at again */
} engine;

/* ---- start and end ---- */

static void kind_configure(struct kind_state *state, const struct config *config)
{
    state->lifetimes = *cache_lifetimes_of(config, state->kind->section);
    state->memory.capacity = state->kind->capacity ? state->kind->capacity(config) : config->default_capacity;
}

static void kind_init(struct kind_state *state, const struct cache_kind *kind, const struct config *config)
{
    *state = (struct kind_state){.kind = kind, .memory.name = kind->name};
    kind_configure(state, config);
    state->lazy = kind->section == CACHE_DIAGNOSTICS ? NULL
                  : kind->section == CACHE_DERIVED   ? &engine.recomputations
                                                     : &engine.redownloads;
}

enum sl_code cache_init(const struct config *config, const struct cache_kind *const *kinds, size_t count,
                        struct sl_error *error)
{
    enum sl_code code = cache_tmp_open(config->cache_dir, error);
    if (code != SL_OK)
        return code;
    engine.dir = config->cache_dir ? strdup(config->cache_dir) : NULL;
    engine.kinds = calloc(count, sizeof *engine.kinds);
    if (!engine.kinds || (config->cache_dir && !engine.dir)) {
        cache_close();
        return sl_fail(error, SL_BUSY, "out of memory");
    }
    engine.disk = (struct cache_disk){engine.dir, cache_start_ns()};
    if (engine.dir)
        cache_tmp_sweep(engine.dir);
    engine.config = config;
    engine.redownloads = config->downloaded.max_lazy ? config->downloaded.max_lazy : 1;
    engine.recomputations = config->derived.max_lazy ? config->derived.max_lazy : 1;
    engine.max_mapped = cache_mapped_limit(config);
    engine.renew_after_ns = config->upgrade_fallback_after_ns;
    engine.generation = cache_generation(engine.dir);
    engine.generation_due_ms = 0;
    engine.count = count;
    for (size_t i = 0; i < count; i++)
        kind_init(&engine.kinds[i], kinds[i], config);
    fiber_group_init(&engine.group, NULL);
    space_init(config, kinds, count, &engine.group);
    if (shared_init(config, error) != SL_OK) {
        cache_close();
        return error->code;
    }
    return SL_OK;
}

static unsigned tokens(unsigned configured)
{
    return configured ? configured : 1;
}

/* Tokens that are out come back to the new number. */
static void change_tokens(unsigned *left, unsigned before, unsigned after)
{
    unsigned used = tokens(before) > *left ? tokens(before) - *left : 0;
    *left = tokens(after) > used ? tokens(after) - used : 0;
}

void cache_configure(const struct config *config)
{
    change_tokens(&engine.redownloads, engine.config->downloaded.max_lazy, config->downloaded.max_lazy);
    change_tokens(&engine.recomputations, engine.config->derived.max_lazy, config->derived.max_lazy);
    engine.config = config;
    engine.max_mapped = cache_mapped_limit(config);
    engine.renew_after_ns = config->upgrade_fallback_after_ns;
    for (size_t i = 0; i < engine.count; i++)
        kind_configure(&engine.kinds[i], config);
    space_configure(config);
}

void cache_drain(void)
{
    fiber_group_cancel(&engine.group);
    fiber_group_wait(&engine.group);
    shared_drain();
}

static void forget_refreshes(struct kind_state *state, uint64_t now_ms)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&state->refreshes, e));) {
        struct refresh *refresh = e->value;
        if (refresh->not_before_ms && refresh->not_before_ms <= now_ms) {
            sl_map_remove(&state->refreshes, refresh->key);
            free(refresh);
        }
    }
}

void cache_close(void)
{
    for (size_t i = 0; i < engine.count; i++) {
        cache_memory_free(&engine.kinds[i].memory);
        forget_refreshes(&engine.kinds[i], UINT64_MAX);
        sl_map_free(&engine.kinds[i].refreshes);
        sl_map_free(&engine.kinds[i].flights);
    }
    free(engine.kinds);
    free(engine.dir);
    engine.kinds = NULL;
    engine.dir = NULL;
    engine.count = 0;
    engine.disk = (struct cache_disk){0};
    cache_tmp_close();
}

static struct kind_state *state_of(const struct cache_kind *kind)
{
    for (size_t i = 0; i < engine.count; i++)
        if (engine.kinds[i].kind == kind)
            return &engine.kinds[i];
    return NULL;
}

struct cache_item *cache_retain(struct cache_item *item)
{
    item->references++;
    return item;
}

void cache_release(struct cache_item *item)
{
    if (item && --item->references == 0)
        cache_item_destroy(item);
}

/* ---- memory ---- */

static void count_lookup(const struct kind_state *state, const char *layer, enum sl_code code)
{
    metric_add(METRIC_CACHE_LOOKUPS, 1, state->kind->name, layer, sl_code_name(code));
}

static void saw_generation(int64_t generation)
{
    engine.generation = generation > engine.generation ? generation : engine.generation;
}

/* What memory holds, unless there are stamps that it has not been compared with: the disk look-up does that. Looking for
 * those of other processes is one call about a file that is always in the kernel's cache, once a second. */
static struct cache_memory_entry *find(struct kind_state *state, struct sl_str key)
{
    uint64_t now = loop_now_ms();
    struct cache_memory_entry *entry = cache_memory_find(&state->memory, key, now);
    if (entry && now >= engine.generation_due_ms) {
        engine.generation_due_ms = now + GENERATION_MS;
        saw_generation(cache_generation(engine.dir));
    }
    return entry && entry->generation == engine.generation ? entry : NULL;
}

bool cache_peek(const struct cache_kind *kind, const struct cache_key *key, enum sl_code *code,
                struct cache_item **item, struct sl_error *error)
{
    struct kind_state *state = state_of(kind);
    struct cache_memory_entry *entry = state ? find(state, key->text) : NULL;
    if (!entry)
        return false;
    *code = entry->item ? SL_OK : entry->error->code;
    if (entry->item)
        *item = cache_retain(entry->item);
    else if (error)
        *error = *entry->error;
    count_lookup(state, "memory", *code);
    return true;
}

static void bound_mapped(void)
{
    uint64_t mapped = 0;
    struct kind_state *most = NULL;
    for (size_t i = 0; i < engine.count; i++) {
        mapped += engine.kinds[i].memory.mapped;
        if (!most || engine.kinds[i].memory.mapped > most->memory.mapped)
            most = &engine.kinds[i];
    }
    if (mapped > engine.max_mapped)
        cache_memory_evict_mapped(&most->memory);
}

static void remember(struct kind_state *state, struct sl_str key, enum sl_code code, struct cache_item *item,
                     const struct sl_error *error, int64_t created_s, int64_t generation, uint64_t for_ns)
{
    uint64_t for_ms = DURATION_MS(for_ns), now = loop_now_ms();
    if (for_ms == 0)
        return;
    uint64_t deadline = for_ns == DURATION_NEVER || for_ms > UINT64_MAX - now ? UINT64_MAX : now + for_ms;
    cache_memory_put(&state->memory, key, code == SL_OK ? item : NULL, error, created_s, generation, deadline);
    bound_mapped();
}

/* How long a fresh result stays in memory. */
static uint64_t fresh_for(const struct kind_state *state, enum sl_code code, const struct sl_error *error)
{
    switch (code) {
    case SL_OK: return (uint64_t)CACHE_TOUCH_EVERY_NS;
    case SL_INTERNAL: return (uint64_t)CACHE_INTERNAL_FOR_NS;
    case SL_MALFORMED: return state->lifetimes.retry_malformed_after;
    case SL_CANCELLED:
    case SL_BUSY: return 0;
    case SL_DOWNLOAD_ERROR: return error->duration_ns ? error->duration_ns : state->lifetimes.retry_misses_after;
    default: return state->lifetimes.retry_misses_after;
    }
}

/* ---- one flight ---- */

static void flight_release(struct flight *flight)
{
    if (--flight->references)
        return;
    cache_release(flight->item);
    struct sl_arena arena = flight->arena;
    sl_arena_free(&arena);
}

static struct sl_str copy_str(struct sl_arena *arena, struct sl_str s, bool *ok)
{
    char *copy = sl_arena_strndup(arena, s.data ? s.data : "", s.size);
    *ok = *ok && copy;
    return (struct sl_str){copy, s.size};
}

static struct flight *flight_new(struct kind_state *state, const struct cache_key *key, const void *context)
{
    struct sl_arena arena = {0};
    struct flight *flight = SL_ARENA_NEW(&arena, struct flight);
    bool ok = flight != NULL;
    if (ok) {
        flight->state = state;
        flight->begun_ns = cache_now_ns();
        flight->key = copy_str(&arena, key->text, &ok);
        flight->scope = copy_str(&arena, key->scope, &ok);
        flight->context = state->kind->retain ? state->kind->retain(context, &arena) : (void *)context;
        ok = ok && (!state->kind->retain || flight->context);
    }
    if (!ok) {
        sl_arena_free(&arena);
        return NULL;
    }
    flight->arena = arena;
    flight->references = 1;
    return flight;
}

/* A directory that does not work is an ordinary sight for an operator; once a minute is enough. */
static void log_io(const char *what, int number)
{
    if (number && loop_minutely(&engine.next_log_ms))
        log_error("cache", what, LOG_STR("cache_dir", engine.dir ? engine.dir : ""),
                  LOG_STR("error", strerror(number)));
}

/* Misses made before this are to be asked for again by a renewal. */
static int64_t renew_before_ns(void)
{
    int64_t now = cache_now_ns();
    return engine.renew_after_ns < (uint64_t)now ? now - (int64_t)engine.renew_after_ns : 0;
}

static enum sl_code look_up(struct flight *flight, struct cache_disk_lookup *lookup, struct sl_error *error)
{
    struct kind_state *state = flight->state;
    *lookup = (struct cache_disk_lookup){.disk = &engine.disk,
                                         .restart_retries_malformed = engine.config->restart_retries_malformed,
                                         .kind = state->kind,
                                         .lifetimes = state->lifetimes,
                                         .key = flight->key,
                                         .renew_before_ns = flight->renews ? renew_before_ns() : 0,
                                         .tmp = {.fd = -1}};
    enum sl_code code = pool_run(POOL_IO, cache_disk_lookup, lookup, error);
    if (code != SL_OK)
        return code;
    saw_generation(lookup->generation);
    flight->stamp_ns = lookup->stamp_ns;
    log_io("cannot read the cache directory", lookup->io_errno);
    if (lookup->corrupt) {
        metric_add(METRIC_CACHE_CORRUPT, lookup->corrupt, state->kind->name, NULL, NULL);
        log_warn("cache", "removed a corrupt entry", LOG_STR("cache", state->kind->name),
                 LOG_SLSTR("key", flight->key));
    }
    if (lookup->found && lookup->code == SL_OK)
        metric_observe(METRIC_CACHE_FILE_BYTES, (double)lookup->item->mapping.bytes.size, state->kind->name, "true",
                       NULL);
    return SL_OK;
}

static const char *write_status(enum sl_code code)
{
    return code == SL_OK          ? "positive"
           : code == SL_NOT_FOUND ? "negative"
           : code == SL_MALFORMED ? "malformed"
                                  : "cache-specific error";
}

/* Errors that say nothing about the key, or not for long, stay off the disk. */
static bool publishable(enum sl_code code, const struct sl_error *error, bool is_refresh)
{
    if (code == SL_OK)
        return true;
    return !is_refresh && code != SL_INTERNAL && code != SL_CANCELLED &&
           !(code == SL_DOWNLOAD_ERROR && error->duration_ns);
}

/* ---- publishing ---- */

/* Contents and errors get into `outcome` as they are to be given to callers. */
static void publish(struct flight *flight, struct cache_tmp *tmp, bool is_refresh, struct outcome *outcome)
{
    struct kind_state *state = flight->state;
    struct cache_disk_publish job = {.disk = &engine.disk,
                                     .kind = state->kind,
                                     .key = flight->key,
                                     .scope = flight->scope,
                                     .tmp = tmp,
                                     .code = outcome->code,
                                     .created_s = outcome->created_s,
                                     .begun_ns = flight->begun_ns,
                                     .outdated = flight->outdated,
                                     .error = outcome->error};
    if (pool_run(POOL_IO, cache_disk_publish, &job, &outcome->error) != SL_OK) {
        cache_tmp_discard(tmp);
        outcome->code = SL_INTERNAL;
        return;
    }
    outcome->code = job.code;
    outcome->error = job.error;
    outcome->item = job.item;
    outcome->generation = job.generation;
    saw_generation(job.generation);
    flight->outdated |= job.outdated;
    log_io("cache write failed", job.io_errno);
    space_make(job.io_errno);
    if (job.published)
        metric_add(METRIC_CACHE_WRITES, 1, state->kind->name, write_status(job.code), is_refresh ? "true" : "false");
    if (job.outdated_files) {
        metric_add(METRIC_CACHE_REMOVED_FILES, job.outdated_files, state->kind->name, "version", NULL);
        metric_add(METRIC_CACHE_REMOVED_BYTES, job.outdated_bytes, state->kind->name, "version", NULL);
    }
    if (job.code == SL_OK)
        metric_observe(METRIC_CACHE_FILE_BYTES, (double)job.item->mapping.bytes.size, state->kind->name, "false", NULL);
}

/* ---- the shared layer ---- */

/* True when it has the answer. Otherwise `tmp` is there to compute into, or closed when there is none to be had. */
static bool from_shared(struct flight *flight, struct cache_tmp *tmp, bool is_refresh, struct shared_finding *finding,
                        struct outcome *outcome)
{
    struct kind_state *state = flight->state;
    struct shared_question question = {.kind = state->kind,
                                       .lifetimes = state->lifetimes,
                                       .key = flight->key,
                                       .scope = flight->scope,
                                       .stamp_ns = flight->stamp_ns,
                                       .start_ns = engine.disk.start_ns,
                                       .restart_retries_malformed = engine.config->restart_retries_malformed};
    if (!shared_get(&question, tmp->fd, finding))
        return false;
    const struct shared_value *value = &finding->value;
    *outcome = (struct outcome){
        .code = value->code, .error = value->error, .layer = "shared", .generation = outcome->generation};
    outcome->error.code = value->code;
    outcome->keep_ns = fresh_for(state, value->code, &value->error);
    if (value->code != SL_OK) {
        outcome->created_s = value->created_s;
        outcome->keep_ns = finding->left_ns;
    }
    publish(flight, tmp, is_refresh, outcome);
    if (outcome->code == SL_OK && !flight->outdated)
        shared_pass_on(state->kind, flight->key, outcome->item, finding);
    if (outcome->code == value->code)
        return true;
    /* What the others hold is of no use here: the kind's loader refused it. */
    log_warn("shared", "a shared entry is damaged", LOG_STR("cache", state->kind->name),
             LOG_STR("backend", finding->from->name), LOG_SLSTR("key", flight->key));
    finding->stale = true;
    cache_tmp_create(tmp, false, NULL);
    return false;
}

static void to_shared(const struct flight *flight, const struct shared_finding *finding, const struct outcome *outcome)
{
    const struct cache_lifetimes *lifetimes = &flight->state->lifetimes;
    if (outcome->code == SL_OK)
        shared_offer(flight->state->kind, flight->key, outcome->item, SHARED_NEW, finding->stale || flight->renews);
    else
        shared_offer_error(flight->state->kind, flight->key, &outcome->error,
                           outcome->code == SL_MALFORMED       ? lifetimes->retry_malformed_after
                           : cache_scope_global(flight->scope) ? lifetimes->retry_misses_after_public
                                                               : lifetimes->retry_misses_after);
}

/* ---- computing ---- */

/* Gets what neither memory nor disk has into `tmp`, which is closed in the end. */
static void obtain(struct flight *flight, struct cache_tmp *tmp, bool is_refresh, struct outcome *outcome)
{
    const struct cache_kind *kind = flight->state->kind;
    bool shareable = shared_active() && (!kind->shareable || kind->shareable(flight->context));
    struct shared_finding finding = {.stale = false};
    /* The others' misses are what a renewal wants to get behind. */
    if (shareable && !flight->renews && from_shared(flight, tmp, is_refresh, &finding, outcome))
        return;
    *outcome = (struct outcome){.layer = "computed", .generation = outcome->generation};
    if (tmp->fd < 0) {
        outcome->code = sl_fail(&outcome->error, SL_INTERNAL, "cannot create a temporary file");
        outcome->keep_ns = (uint64_t)CACHE_INTERNAL_FOR_NS;
        return;
    }
    uint64_t begin = clock_mono_ns();
    struct sl_arena arena = {0};
    outcome->code = kind->compute(flight->context, tmp, &arena, &outcome->error);
    sl_arena_free(&arena);
    outcome->error.code = outcome->code;
    metric_observe(METRIC_CACHE_COMPUTE_SECONDS, (double)(clock_mono_ns() - begin) / 1e9, kind->name, NULL, NULL);
    if (outcome->code == SL_INTERNAL)
        space_suspect();
    if (publishable(outcome->code, &outcome->error, is_refresh)) {
        publish(flight, tmp, is_refresh, outcome);
        if (shareable && outcome->code != SL_INTERNAL && !flight->outdated)
            to_shared(flight, &finding, outcome);
    } else {
        cache_tmp_discard(tmp);
    }
    outcome->keep_ns = fresh_for(flight->state, outcome->code, &outcome->error);
}

/* The result goes into memory and the flight out of the table in one go: nobody can start a second one in between. A
 * renewal that failed for reasons of its own leaves the old answer. */
static void land(struct flight *flight, int64_t created_s, int64_t generation, uint64_t keep_ns)
{
    struct kind_state *state = flight->state;
    flight->done = true;
    flight->error.code = flight->code;
    if (!flight->outdated && (!flight->renews || publishable(flight->code, &flight->error, false)))
        remember(state, flight->key, flight->code, flight->item, &flight->error, created_s ? created_s : clock_wall_s(),
                 generation, keep_ns);
    if (sl_map_get(&state->flights, flight->key) == flight)
        sl_map_remove(&state->flights, flight->key);
    fiber_wake_all(&flight->waiters);
}

/* ---- refreshing outdated versions ---- */

/* A place in `refreshes` and a token, or NULL. */
static struct refresh *refresh_begin(struct flight *flight)
{
    struct kind_state *state = flight->state;
    uint64_t now = loop_now_ms();
    struct refresh *refresh = sl_map_get(&state->refreshes, flight->key);
    if (!state->lazy || (refresh && (!refresh->not_before_ms || refresh->not_before_ms > now)))
        return NULL;
    if (*state->lazy == 0) {
        metric_add(METRIC_CACHE_LAZY_REFUSED, 1, state->kind->name, NULL, NULL);
        return NULL;
    }
    if (state->refreshes.count >= REFRESHES_REMEMBERED)
        forget_refreshes(state, now);
    if (!refresh && (refresh = sl_map_get(&state->refreshes, flight->key)) == NULL) {
        refresh = calloc(1, sizeof *refresh + flight->key.size);
        if (!refresh)
            return NULL;
        memcpy(refresh + 1, flight->key.data, flight->key.size);
        refresh->key = (struct sl_str){(char *)(refresh + 1), flight->key.size};
        void **slot = sl_map_slot(&state->refreshes, refresh->key, NULL);
        if (!slot) {
            free(refresh);
            return NULL;
        }
        *slot = refresh;
    }
    refresh->not_before_ms = 0;
    --*state->lazy;
    return refresh;
}

static void refresh_end(struct flight *flight, struct refresh *refresh, enum sl_code code)
{
    struct kind_state *state = flight->state;
    uint64_t wait_ms = DURATION_MS(state->lifetimes.retry_misses_after), now = loop_now_ms();
    ++*state->lazy;
    if (code == SL_OK || wait_ms == 0) {
        sl_map_remove(&state->refreshes, refresh->key);
        free(refresh);
    } else {
        refresh->not_before_ms = wait_ms > UINT64_MAX - now ? UINT64_MAX : now + wait_ms;
    }
}

/* After the callers have gone on with the old version, the flight's fiber makes the current one. Only contents replace
 * it: an error must not destroy what still serves. */
static void refresh(struct flight *flight)
{
    struct kind_state *state = flight->state;
    struct refresh *place = refresh_begin(flight);
    struct cache_tmp tmp;
    if (!place)
        return;
    struct outcome outcome = {0};
    outcome.code = cache_tmp_create(&tmp, false, &outcome.error);
    if (outcome.code == SL_OK)
        obtain(flight, &tmp, true, &outcome);
    if (outcome.code == SL_OK && !flight->outdated)
        remember(state, flight->key, SL_OK, outcome.item, NULL, 0, outcome.generation, (uint64_t)CACHE_TOUCH_EVERY_NS);
    else if (outcome.code != SL_OK)
        log_debug("cache", "could not refresh an outdated entry", LOG_STR("cache", state->kind->name),
                  LOG_ERR(&outcome.error));
    cache_release(outcome.item);
    refresh_end(flight, place, outcome.code);
}

/* ---- the fiber of a key ---- */
static void land_found(struct flight *flight, const struct cache_disk_lookup *lookup)
{
    struct kind_state *state = flight->state;
    bool outdated = lookup->version != state->kind->version;
    flight->code = lookup->code;
    flight->item = lookup->item;
    flight->error = lookup->error;
    count_lookup(state, outdated ? "fallback" : "disk", flight->code);
    land(flight, lookup->created_s, lookup->generation, lookup->left_ns);
    if (outdated)
        refresh(flight);
    else if (lookup->touched && shared_active() && (!state->kind->shareable || state->kind->shareable(flight->context)))
        shared_offer(state->kind, flight->key, flight->item, SHARED_REFRESH, false);
}

static void land_missing(struct flight *flight, struct cache_disk_lookup *lookup)
{
    struct outcome outcome = {.code = SL_INTERNAL,
                              .error = lookup->tmp_error,
                              .layer = "computed",
                              .generation = lookup->generation,
                              .keep_ns = CACHE_INTERNAL_FOR_NS};
    if (lookup->tmp.fd >= 0)
        obtain(flight, &lookup->tmp, false, &outcome);
    else
        space_suspect();
    flight->code = outcome.code;
    flight->item = outcome.item;
    flight->error = outcome.error;
    count_lookup(flight->state, outcome.layer, outcome.code);
    if (outcome.code == SL_INTERNAL) /* clients learn no more than that */
        log_warn("cache", "an entry could not be made", LOG_STR("cache", flight->state->kind->name),
                 LOG_SLSTR("key", flight->key), LOG_ERR(&outcome.error));
    land(flight, outcome.created_s, outcome.generation, outcome.keep_ns);
}

static void fly(void *arg)
{
    struct flight *flight = arg;
    struct cache_disk_lookup lookup;
    struct renewing renewing = {engine.renewing, fiber_self()};
    if (flight->renews)
        engine.renewing = &renewing;
    enum sl_code code = look_up(flight, &lookup, &flight->error);
    if (code != SL_OK) { /* the pool is full: a statement about now, not about the key */
        flight->code = code == SL_CANCELLED ? code : SL_INTERNAL;
        count_lookup(flight->state, "computed", flight->code);
        land(flight, 0, 0, 0);
    } else if (lookup.found) {
        land_found(flight, &lookup);
    } else {
        land_missing(flight, &lookup);
    }
    if (flight->renews) {
        struct renewing **at = &engine.renewing;
        while (*at != &renewing)
            at = &(*at)->next;
        *at = renewing.next;
    }
    if (flight->renewal)
        ++*flight->renewal;
    flight_release(flight);
}

static enum sl_code start(struct kind_state *state, const struct cache_key *key, const void *context, bool renews,
                          struct flight **started, struct sl_error *error)
{
    struct flight *flight = flight_new(state, key, context);
    if (flight)
        flight->renews = renews;
    void **slot = flight ? sl_map_slot(&state->flights, flight->key, NULL) : NULL;
    if (!slot) {
        if (flight)
            flight_release(flight);
        return sl_fail(error, SL_BUSY, "out of memory");
    }
    *slot = flight;
    if (!fiber_start(&engine.group, fly, flight)) {
        sl_map_remove(&state->flights, flight->key);
        flight_release(flight);
        return sl_fail(error, SL_INTERNAL, "too many fibers");
    }
    *started = flight;
    return SL_OK;
}

/* ---- forgetting ---- */
static bool names_any(struct sl_str key, const struct cache_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cache_key_names(key, &files[i]))
            return true;
    return false;
}

static void forget(struct kind_state *state, const struct cache_file *files, size_t count, cache_forgotten *tell,
                   void *arg)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&state->flights, e));) {
        struct flight *flight = e->value;
        if (!names_any(flight->key, files, count))
            continue;
        tell(arg, state->kind, flight->key);
        flight->outdated = true; /* its waiters hold it; who asks from now on starts another one */
        sl_map_remove(&state->flights, flight->key);
    }
    for (struct cache_memory_entry *entry = state->memory.oldest, *newer; entry; entry = newer) {
        newer = entry->newer;
        if (!names_any(entry->key, files, count))
            continue;
        tell(arg, state->kind, entry->key);
        cache_memory_forget(&state->memory, entry->key);
    }
}

void cache_forget(const struct cache_file *files, size_t count, cache_forgotten *tell, void *arg)
{
    for (size_t i = 0; i < engine.count; i++)
        forget(&engine.kinds[i], files, count, tell, arg);
}

const char *cache_dir_of_process(void)
{
    return engine.dir;
}

/* ---- renewing misses ---- */
static bool is_renewing(void)
{
    for (const struct renewing *at = engine.renewing; at; at = at->next)
        if (at->fiber == fiber_self())
            return true;
    return false;
}

/* Whether memory holds a miss that is old enough to be asked for again. */
static bool old_miss(struct kind_state *state, struct sl_str key)
{
    const struct cache_memory_entry *entry = find(state, key);
    return entry && entry->error && cache_class_of(entry->error->code) == CACHE_NEGATIVE &&
           entry->error->code != SL_INTERNAL && entry->created_s * CACHE_SECOND_NS < renew_before_ns();
}

void cache_renew(const struct cache_kind *kind, const struct cache_key *key, const void *context)
{
    struct kind_state *state = state_of(kind);
    struct flight *flight;
    if (!state || engine.renew_after_ns == DURATION_NEVER || !old_miss(state, key->text) ||
        sl_map_get(&state->flights, key->text))
        return;
    if (engine.redownloads == 0) {
        metric_add(METRIC_CACHE_LAZY_REFUSED, 1, kind->name, NULL, NULL);
        return;
    }
    if (start(state, key, context, true, &flight, NULL) != SL_OK)
        return;
    engine.redownloads--;
    flight->renewal = &engine.redownloads;
}

enum sl_code cache_get(const struct cache_kind *kind, const struct cache_key *key, const void *context,
                       struct cache_item **item, struct sl_error *error)
{
    enum sl_code code;
    *item = NULL;
    struct kind_state *state = state_of(kind);
    if (!state)
        return sl_fail(error, SL_INTERNAL, "the cache kind %s is not registered", kind->name);
    bool renews = is_renewing();
    if (!(renews && old_miss(state, key->text)) && cache_peek(kind, key, &code, item, error))
        return code;
    struct flight *flight = sl_map_get(&state->flights, key->text);
    bool joined = flight != NULL;
    if (!joined && (code = start(state, key, context, renews, &flight, error)) != SL_OK)
        return code;
    flight->references++;
    while (!flight->done)
        if (fiber_wait_on(&flight->waiters, UINT64_MAX) == FIBER_CANCELLED) {
            flight_release(flight);
            return sl_fail(error, SL_CANCELLED, "cancelled");
        }
    code = flight->code;
    if (code == SL_OK)
        *item = cache_retain(flight->item);
    else if (error)
        *error = flight->error;
    if (joined)
        count_lookup(state, "joined", code);
    flight_release(flight);
    return code;
}
