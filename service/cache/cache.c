/* Look-ups of cache entries. An entry has a kind and a key, and is contents (a cache item) or an error. A look-up asks memory first; if
 * that has no answer, it waits for a flight: the one search on disk and computation of the key (flight.c). */
#include "cache/engine.h"

#include <stdlib.h>

#include "core/duration.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/sigbus_guard.h"
#include "origin/failures.h"

enum { UNMAPPED_AT_ONCE = 64 }; /* files that one call of engine_unmap_some unmaps */

struct cache_engine cache_engine;
#define engine cache_engine

/* ---- start and end ---- */

/* Sets lifetimes and memory limit of a kind, which a new configuration may change. */
static void kind_configure(struct kind_state *state, const struct config *config)
{
    state->lifetimes = *cache_get_lifetimes(config, state->kind->section);
    state->memory.lru.max_size = state->kind->capacity ? state->kind->capacity(config) : config->default_capacity;
}

/* Sets up the state of a kind. `lazy` is the count from which refreshes of its entries in the background are taken: derived kinds share
 * one, all others another; kinds of diagnostics have no refreshes. */
static void kind_init(struct kind_state *state, const struct cache_kind *kind, const struct config *config)
{
    *state = (struct kind_state){.kind = kind};
    cache_memory_init(&state->memory, kind->name);
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
        cache_tmp_sweep(engine.dir);      /* temporary files of processes that have ended */
    cache_disk_dumps(config->core_dumps); /* if core dumps are enabled, mapped entries are left out of them */
    engine.config = config;
    /* how many refreshes may run at once: as configured, but at least 1 */
    engine.redownloads = config->downloaded.max_lazy ? config->downloaded.max_lazy : 1;
    engine.recomputations = config->derived.max_lazy ? config->derived.max_lazy : 1;
    engine.max_mapped = cache_mapped_limit(config);
    engine.renew_after_ns = config->upgrade_fallback_after_ns;
    engine.generation = engine.remote_generation = cache_generation(engine.dir);
    engine.stamping = false;
    engine.watch = (struct cache_watch){0};
    engine.count = count;
    for (size_t i = 0; i < count; i++)
        kind_init(&engine.kinds[i], kinds[i], config);
    work_queue_configure(config);
    fiber_group_init(&engine.group, NULL); /* NULL: it belongs to no other group */
    space_init(config, kinds, count, &engine.group);
    if (shared_init(config, error) != SL_OK) {
        cache_close();
        return error->code;
    }
    return SL_OK;
}

/* Returns how many background computations may run at once: as configured, but at least 1. */
static unsigned background_limit(unsigned configured)
{
    return configured ? configured : 1;
}

/* Changes `*left`, how many more background computations may run, when their configured limit changes from `before` to `after`. Those
 * that are running count against the new limit too. */
static void change_background_limit(unsigned *left, unsigned before, unsigned after)
{
    unsigned running = background_limit(before) > *left ? background_limit(before) - *left : 0;
    *left = background_limit(after) > running ? background_limit(after) - running : 0;
}

void cache_configure(const struct config *config)
{
    change_background_limit(&engine.redownloads, engine.config->downloaded.max_lazy, config->downloaded.max_lazy);
    change_background_limit(&engine.recomputations, engine.config->derived.max_lazy, config->derived.max_lazy);
    engine.config = config;
    engine.max_mapped = cache_mapped_limit(config);
    engine.renew_after_ns = config->upgrade_fallback_after_ns;
    for (size_t i = 0; i < engine.count; i++)
        kind_configure(&engine.kinds[i], config);
    work_queue_configure(config);
    space_configure(config);
}

void cache_drain(void)
{
    fiber_group_cancel(&engine.group);
    fiber_group_wait(&engine.group);
    shared_drain();
}

/* Frees the engine after all fibers have ended. Temporary files are removed last. */
void cache_close(void)
{
    for (size_t i = 0; i < engine.count; i++) {
        cache_memory_free(&engine.kinds[i].memory);
        refreshes_expire(&engine.kinds[i], UINT64_MAX); /* all */
        for (struct sl_map_entry *e = NULL; (e = sl_map_next(&engine.kinds[i].queues, e));)
            free(e->value); /* left by fibers that were cancelled before they began */
        sl_map_free(&engine.kinds[i].queues);
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

/* Returns the engine's state of a kind; NULL if the kind was not in the table of cache_init. */
static struct kind_state *get_kind_state(const struct cache_kind *kind)
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

void engine_count(const struct kind_state *state, const char *layer, enum sl_code code)
{
    metric_add(METRIC_CACHE_LOOKUPS, 1, state->kind->name, layer, sl_code_name(code));
}

/* Records the generation that was read from the directory: the time at which the last invalidation stamp was written. If it is newer
 * than the one known, another process has written stamps, and entries in memory must be checked on disk. While this process writes
 * stamps, the generation may come from them, so it is only kept in pending_generation: cache_drop_files drops the entries that these
 * stamps invalidate. */
void engine_note_generation(int64_t generation)
{
    int64_t *seen = engine.stamping ? &engine.pending_generation : &engine.generation;
    if (generation <= *seen)
        return;
    *seen = generation;
    if (!engine.stamping)
        engine.remote_generation = generation;
}

void cache_invalidation_begin(void)
{
    engine.stamping = true;
    engine.pending_generation = engine.generation;
}

/* Called when this process has written its invalidation stamps. `previous`, `made`: the generations before and after that, as read from
 * the directory. If a generation newer than `made` was read meanwhile, it came from another process. */
void cache_invalidation_end(int64_t previous, int64_t made)
{
    int64_t pending_generation = engine.pending_generation;
    engine.stamping = false;
    engine_note_generation(previous); /* if it is unknown, another process has written stamps before this one */
    engine.generation = made > engine.generation ? made : engine.generation; /* its own: no check of entries */
    engine_note_generation(pending_generation);
}

/* Returns the entry, or NULL if another process has written invalidation stamps since the entry was stored: then the look-up has to check
 * it on disk. Reads the generation first, if that is due: once a second, or when a process of this service has written stamps. */
static struct cache_memory_entry *cache_current(struct cache_memory_entry *entry, uint64_t now)
{
    if (entry && cache_watch_is_due(&engine.watch, now))
        engine_note_generation(cache_generation(engine.dir));
    return entry && entry->generation >= engine.remote_generation ? entry : NULL;
}

/* Asks about each file that the key names, as the source of any of them may be the one that failed. */
bool engine_should_retry(struct sl_str key, enum sl_code code, int64_t created_ns)
{
    struct cache_file file;
    bool retry = false;
    while (origin_is_failure(code) && cache_key_next(&key, &file))
        retry |= origin_should_retry(file.source, file.location, code, created_ns);
    return retry;
}

/* True for a cached failure of a source that may work again: a look-up ignores it and fetches the file (engine_should_retry). */
static bool is_failure_to_retry(const struct cache_memory_entry *entry)
{
    return entry->error && engine_should_retry(entry->lru.key, entry->error->code, entry->created_ns);
}

/* Returns the entry in memory; NULL if there is none, or if it must be checked on disk (cache_current). */
static struct cache_memory_entry *cache_find(struct kind_state *state, struct sl_str key)
{
    uint64_t now = loop_now_ms();
    return cache_current(cache_memory_find(&state->memory, key, now), now);
}

/* Counts a look-up that memory has answered with this entry, and returns the entry's code. If it is contents, `*item` gets a reference to
 * them; `item` may be NULL. */
static enum sl_code cache_take(struct kind_state *state, const struct cache_memory_entry *entry,
                               struct cache_item **item)
{
    enum sl_code code = entry->item ? SL_OK : entry->error->code;
    struct metric_series **answers = &state->memory_answers[code];
    if (entry->item && item)
        *item = cache_retain(entry->item);
    if (!*answers) /* the counter is looked up once for each kind and code */
        *answers = metric_series(METRIC_CACHE_LOOKUPS, state->kind->name, "memory", sl_code_name(code));
    metric_series_add(*answers, 1);
    return code;
}

/* Answers a look-up from memory: sets its code, item or error, and handle. False if memory has no usable entry. */
static bool peek(struct kind_state *state, struct cache_lookup *look)
{
    struct cache_memory_entry *entry = cache_find(state, look->key->text);
    look->handle = (struct cache_handle){0};
    if (!entry || is_failure_to_retry(entry))
        return false;
    look->code = cache_take(state, entry, &look->item);
    if (entry->error && look->error)
        *look->error = *entry->error;
    /* by which cache_peek_handle finds the entry again without its key */
    look->handle = (struct cache_handle){state->memory.slots[entry->slot].serial, (uint32_t)entry->slot,
                                         (uint32_t)(state - engine.kinds)};
    return true;
}

bool cache_peek(const struct cache_kind *kind, const struct cache_key *key, enum sl_code *code,
                struct cache_item **item, struct sl_error *error)
{
    struct kind_state *state = get_kind_state(kind);
    struct cache_lookup look = {.key = key, .error = error};
    if (!state || !peek(state, &look))
        return false;
    *code = look.code;
    if (look.item)
        *item = look.item;
    return true;
}

/* True for a cached miss (an error other than SL_MALFORMED) older than `caches.upgrade_fallback_after`, which cache_renew computes again.
 * Not for SL_INTERNAL, which says nothing about the key and is cached for 30 s only. */
static bool is_old_miss(const struct cache_memory_entry *entry)
{
    return entry->error && cache_get_class(entry->error->code) == CACHE_NEGATIVE && entry->error->code != SL_INTERNAL &&
           entry->created_ns < engine_renew_before_ns();
}

bool cache_peek_handle(const struct cache_handle *handle, bool is_renewed, struct cache_item **item)
{
    uint64_t now = loop_now_ms();
    if (handle->kind >= engine.count)
        return false;
    struct kind_state *state = &engine.kinds[handle->kind];
    struct cache_memory_entry *entry =
        cache_current(cache_memory_at(&state->memory, handle->slot, handle->serial, now), now);
    if (!entry || is_failure_to_retry(entry) || (is_renewed && is_old_miss(entry)))
        return false;
    cache_take(state, entry, item);
    return true;
}

/* If more than `limit` files of all kinds together are mapped, drops an entry with a mapped file: the least recently used one of the kind
 * that has most of them. */
static void limit_mapped_files(uint64_t limit)
{
    uint64_t mapped = 0;
    struct kind_state *most = NULL;
    for (size_t i = 0; i < engine.count; i++) {
        mapped += engine.kinds[i].memory.mapped;
        if (!most || engine.kinds[i].memory.mapped > most->memory.mapped)
            most = &engine.kinds[i];
    }
    if (mapped > limit)
        cache_memory_evict_mapped(&most->memory);
}

void engine_store(struct kind_state *state, struct sl_str key, enum sl_code code, struct cache_item *item,
                  const struct sl_error *error, int64_t created_ns, int64_t generation, uint64_t for_ns)
{
    uint64_t for_ms = DURATION_MS(for_ns), now = loop_now_ms();
    if (for_ms == 0)
        return;
    uint64_t deadline = for_ns == DURATION_NEVER || for_ms > UINT64_MAX - now ? UINT64_MAX : now + for_ms;
    cache_memory_put(&state->memory, key, code == SL_OK ? item : NULL, error, created_ns ? created_ns : cache_now_ns(),
                     generation, deadline);
    limit_mapped_files(engine.max_mapped); /* one entry was stored, so dropping one is enough */
}

/* Logs a failed system call on the cache directory, with errno `number`, at most once a minute, as it may happen for every entry. Does
 * nothing if `number` is 0. */
void engine_log_io(const char *what, int number)
{
    if (number && loop_minutely(&engine.next_log_ms))
        log_error("cache", what, LOG_STR("cache_dir", engine.dir ? engine.dir : ""),
                  LOG_STR("error", strerror(number)));
}

int64_t engine_renew_before_ns(void)
{
    int64_t now = cache_now_ns();
    return engine.renew_after_ns < (uint64_t)now ? now - (int64_t)engine.renew_after_ns : 0;
}

/* ---- damage ---- */
/* True if the address lies in the item's mapping. */
static bool item_holds(const struct cache_item *item, const void *address)
{
    const uint8_t *begin = item->mapping.bytes.data;
    return item->mapping.mapped && (uintptr_t)address - (uintptr_t)begin < item->mapping.mapped;
}

/* Drops the entry in memory whose mapping contains the address, where reading has failed. References to its contents stay valid; later
 * look-ups search the disk, where they notice that the file was truncated. */
static void drop_damaged(const void *address)
{
    for (size_t i = 0; i < engine.count; i++) {
        struct kind_state *state = &engine.kinds[i];
        for (struct cache_memory_entry *entry = CACHE_MEMORY_OLDEST(&state->memory); entry;
             entry = LRU_NEWER(entry, lru))
            if (entry->item && item_holds(entry->item, address)) {
                char digits[CACHE_KEY_DIGITS + 1];
                cache_key_digits(entry->lru.key, digits);
                log_warn("cache", "cache entry damaged; it is dropped and made again when it is needed",
                         LOG_STR("cache", state->kind->name), LOG_STR("key", digits));
                metric_add(METRIC_CACHE_CORRUPT, 1, state->kind->name, NULL, NULL);
                cache_memory_drop(&state->memory, entry->lru.key);
                return;
            }
    }
}

bool cache_drop_faulted(void)
{
    const void *address;
    bool any = false;
    while (sigbus_guard_next_fault(&address)) {
        drop_damaged(address);
        any = true;
    }
    return any;
}

/* While `run` fails because a mapped file was damaged (SL_INTERNAL), drops the damaged entries, calls `reset` and runs it again, at most
 * CACHE_MAX_RUNS times in all. */
enum sl_code cache_run_reader(const struct cache_reader *reader, void *arg, struct sl_error *error)
{
    enum sl_code code = reader->run(arg, error);
    /* if an entry is dropped, SL_INTERNAL came from its file, which could not be read: in the next run the entry is made again */
    for (int runs = 1; runs < CACHE_MAX_RUNS && code == SL_INTERNAL && cache_drop_faulted(); runs++) {
        reader->reset(arg);
        code = reader->run(arg, error);
    }
    return code;
}

void engine_unmap_some(void)
{
    for (int i = 0; i < UNMAPPED_AT_ONCE; i++)
        limit_mapped_files(0); /* 0: drops one in any case */
}

/* ---- invalidation ---- */
/* True if the key names one of the files. */
static bool names_any(struct sl_str key, const struct cache_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cache_key_names_file(key, &files[i]))
            return true;
    return false;
}

/* For entries of the kind whose keys name one of the files: marks running computations as outdated, drops entries from memory, and calls
 * `tell` with each key. */
static void drop_files_of_kind(struct kind_state *state, const struct cache_file *files, size_t count,
                               cache_dropped_fn *tell, void *arg)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&state->flights, e));) {
        struct flight *flight = e->value;
        if (!names_any(flight->key, files, count))
            continue;
        tell(arg, state->kind, flight->key);
        flight->outdated = true;                     /* it still answers the look-ups that wait for it, */
        sl_map_remove(&state->flights, flight->key); /* but later ones start another computation */
    }
    for (struct cache_memory_entry *entry = CACHE_MEMORY_OLDEST(&state->memory), *newer; entry; entry = newer) {
        newer = LRU_NEWER(entry, lru);
        if (!names_any(entry->lru.key, files, count))
            continue;
        tell(arg, state->kind, entry->lru.key);
        cache_memory_drop(&state->memory, entry->lru.key);
    }
}

void cache_drop_files(const struct cache_file *files, size_t count, cache_dropped_fn *tell, void *arg)
{
    for (size_t i = 0; i < engine.count; i++)
        drop_files_of_kind(&engine.kinds[i], files, count, tell, arg);
}

const char *cache_dir_of_process(void)
{
    return engine.dir;
}

/* ---- renewing misses ---- */
/* True if the running fiber computes a miss again (flight.renews): then old misses that it looks up are computed again, too. */
static bool is_renewing(void)
{
    for (const struct renewing *at = SL_LIST_FIRST(&engine.renewing, struct renewing, link); at;
         at = SL_LIST_NEXT(at, link))
        if (at->fiber == fiber_self())
            return true;
    return false;
}

/* True if memory has a miss for the key that is old enough to be computed again (is_old_miss). */
static bool has_old_miss(struct kind_state *state, struct sl_str key)
{
    const struct cache_memory_entry *entry = cache_find(state, key);
    return entry && is_old_miss(entry);
}

/* Starts a flight for which no look-up waits; it counts as one of the downloads in the background (redownloads). */
void cache_renew(const struct cache_kind *kind, const struct cache_key *key, const void *context)
{
    struct kind_state *state = get_kind_state(kind);
    struct flight *flight;
    if (!state || engine.renew_after_ns == DURATION_NEVER || !has_old_miss(state, key->text) ||
        sl_map_get(&state->flights, key->text))
        return;
    if (engine.redownloads == 0) { /* as many run as the configuration allows */
        metric_add(METRIC_CACHE_LAZY_REFUSED, 1, kind->name, NULL, NULL);
        return;
    }
    /* true: it computes old misses again; NULL: the context belongs to no other flight */
    flight = engine.group.cancelled ? NULL : flight_start(state, key, context, true, NULL);
    if (!flight)
        return;
    engine.redownloads--;
    flight->renewal = &engine.redownloads;
}

/* True if `look` is answered at once: from memory, or with an error. False: it has joined or started a flight, which answers it later. */
bool engine_lookup_async(struct cache_lookup *look, bool renews, struct flight *owner)
{
    struct kind_state *state = get_kind_state(look->kind);
    struct flight *flight;
    look->item = NULL;
    if (!state) {
        look->code = sl_fail(look->error, SL_INTERNAL, "cache kind %s is not registered", look->kind->name);
        return true;
    }
    if (!(renews && has_old_miss(state, look->key->text)) && peek(state, look))
        return true;
    if (engine.group.cancelled) { /* the process shuts down */
        look->code = sl_fail(look->error, SL_CANCELLED, "cancelled");
        return true;
    }
    flight = sl_map_get(&state->flights, look->key->text);
    look->joined = flight != NULL;
    if (!flight && !(flight = flight_start(state, look->key, look->context, renews, owner))) {
        metric_add(METRIC_BUSY, 1, "memory", NULL, NULL);
        look->code = sl_fail(look->error, SL_BUSY, "out of memory");
        return true;
    }
    flight->references++;
    look->flight = flight;
    sl_list_append(&flight->looks, &look->link);
    return false;
}

bool cache_lookup_async(struct cache_lookup *look)
{
    return engine_lookup_async(look, is_renewing(), NULL);
}

void cache_lookup_cancel(struct cache_lookup *look)
{
    struct flight *flight = look->flight;
    if (!flight)
        return;
    sl_list_remove(&flight->looks, &look->link);
    look->flight = NULL;
    flight_waiter_left(flight);
    flight_release(flight);
}

struct cache_get_waiter {
    struct cache_lookup look; /* comes first: a pointer to it is one to this struct */
    struct fiber *fiber;
    bool done;
};

/* cache_lookup.done: wakes the fiber that waits in cache_get. */
static void wake_waiter(struct cache_lookup *look)
{
    struct cache_get_waiter *getting = (struct cache_get_waiter *)look;
    getting->done = true;
    fiber_wake(getting->fiber);
}

enum sl_code cache_get(const struct cache_kind *kind, const struct cache_key *key, const void *context,
                       struct cache_item **item, struct sl_error *error)
{
    struct cache_get_waiter getting = {
        .look = {.kind = kind, .key = key, .context = context, .error = error, .done = wake_waiter},
        .fiber = fiber_self()};
    bool answered = cache_lookup_async(&getting.look);
    *item = NULL;
    while (!answered && !getting.done) {
        fiber_set_wait_reason(kind->name);
        if (!fiber_suspend() && !getting.done) { /* false: the fiber was cancelled */
            cache_lookup_cancel(&getting.look);
            return sl_fail(error, SL_CANCELLED, "cancelled");
        }
    }
    *item = getting.look.item;
    return getting.look.code;
}

/* ---- for operators ---- */
void cache_log_state(void)
{
    for (size_t i = 0; i < engine.count; i++) {
        const struct kind_state *state = &engine.kinds[i];
        const struct flight *oldest = NULL;
        size_t count = 0;
        for (struct sl_map_entry *e = NULL; (e = sl_map_next(&state->flights, e)); count++) {
            const struct flight *flight = e->value;
            oldest = !oldest || flight->begun_ns < oldest->begun_ns ? flight : oldest;
        }
        const struct log_field fields[] = {
            LOG_STR("cache", state->kind->name),
            LOG_U64("in_work", count),
            LOG_SLSTR("oldest", oldest ? oldest->key : SL_STR("")),
            LOG_I64("age_ms", oldest ? (cache_now_ns() - oldest->begun_ns) / 1000000 : 0),
            {.key = NULL}};
        if (count)
            log_write(NULL, LOG_INFO, "state", __FILE__, __LINE__, "cache", fields);
    }
}
