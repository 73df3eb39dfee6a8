#include "cache/engine.h"

#include <stdlib.h>

#include "core/duration.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/sigbus_guard.h"
#include "origin/failures.h"

enum { SHED_FILES = 64 }; /* most that one call of engine_unmap_some unmaps */

struct cache_engine cache_engine;
#define engine cache_engine

/* ---- start and end ---- */

/* Sets what a reload may change of a kind. */
static void kind_configure(struct kind_state *state, const struct config *config)
{
    state->lifetimes = *cache_get_lifetimes(config, state->kind->section);
    state->memory.lru.max_size = state->kind->capacity ? state->kind->capacity(config) : config->default_capacity;
}

/* Sets up a kind. `lazy`: how many of its entries may be computed anew in the background at once; kinds of one section share the number. */
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
        cache_tmp_sweep(engine.dir);
    cache_disk_dumps(config->core_dumps);
    engine.config = config;
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
    fiber_group_init(&engine.group, NULL);
    space_init(config, kinds, count, &engine.group);
    if (shared_init(config, error) != SL_OK) {
        cache_close();
        return error->code;
    }
    return SL_OK;
}

/* Returns the number of background computations of a section; at least 1, since 0 would end them for good. */
static unsigned tokens(unsigned configured)
{
    return configured ? configured : 1;
}

/* Changes the number of tokens; those in use stay counted. */
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
    work_queue_configure(config);
    space_configure(config);
}

void cache_drain(void)
{
    fiber_group_cancel(&engine.group);
    fiber_group_wait(&engine.group);
    shared_drain();
}

/* Frees the engine after all fibers have ended. UINT64_MAX: all refreshes have expired. Temporary files are removed last. */
void cache_close(void)
{
    for (size_t i = 0; i < engine.count; i++) {
        cache_memory_free(&engine.kinds[i].memory);
        refreshes_expire(&engine.kinds[i], UINT64_MAX);
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

/* Returns the state of a registered kind; NULL for others. */
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

/* Notes the generation that was read from the directory: the time of the newest stamp. A newer one than before means that entries in memory
 * must be checked on disk. While this process writes stamps, generations are only collected, since they may be its own: entries that its
 * own stamps invalidate were already dropped by cache_drop_files. */
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

/* `previous` and `made`: the generations before and after the stamps of this process. A generation above `made` came from another one. */
void cache_invalidation_end(int64_t previous, int64_t made)
{
    int64_t pending_generation = engine.pending_generation;
    engine.stamping = false;
    engine_note_generation(previous); /* another process may have written stamps before */
    engine.generation = made > engine.generation ? made : engine.generation;
    engine_note_generation(pending_generation);
}

/* Returns the entry unless another process has written stamps since it was last checked; then the disk look-up has to check it.
 * Reading the generation is one system call for a file that is always in the page cache, once a second or after a notification. */
static struct cache_memory_entry *cache_current(struct cache_memory_entry *entry, uint64_t now)
{
    if (entry && cache_watch_is_due(&engine.watch, now))
        engine_note_generation(cache_generation(engine.dir));
    return entry && entry->generation >= engine.remote_generation ? entry : NULL;
}

bool engine_should_retry(struct sl_str key, enum sl_code code, int64_t created_ns)
{
    struct cache_file file;
    bool doubted = false;
    while (origin_is_failure(code) && cache_key_next(&key, &file))
        doubted |= origin_should_retry(file.source, file.location, code, created_ns);
    return doubted;
}

/* True for a cached failure whose cause may be over, so that the look-up ignores it (engine_should_retry). */
static bool is_doubted(const struct cache_memory_entry *entry)
{
    return entry->error && engine_should_retry(entry->lru.key, entry->error->code, entry->created_ns);
}

/* Returns the entry in memory, if it is current. */
static struct cache_memory_entry *cache_find(struct kind_state *state, struct sl_str key)
{
    uint64_t now = loop_now_ms();
    return cache_current(cache_memory_find(&state->memory, key, now), now);
}

/* Counts a hit in memory and returns its code; `*item` gets a reference to contents. `item` may be NULL. */
static enum sl_code cache_take(struct kind_state *state, const struct cache_memory_entry *entry,
                               struct cache_item **item)
{
    enum sl_code code = entry->item ? SL_OK : entry->error->code;
    struct metric_series **answers = &state->memory_answers[code];
    if (entry->item && item)
        *item = cache_retain(entry->item);
    if (!*answers)
        *answers = metric_series(METRIC_CACHE_LOOKUPS, state->kind->name, "memory", sl_code_name(code));
    metric_series_add(*answers, 1);
    return code;
}

/* Answers a look-up from memory. False if memory has no usable entry. */
static bool peek(struct kind_state *state, struct cache_lookup *look)
{
    struct cache_memory_entry *entry = cache_find(state, look->key->text);
    look->handle = (struct cache_handle){0};
    if (!entry || is_doubted(entry))
        return false;
    look->code = cache_take(state, entry, &look->item);
    if (entry->error && look->error)
        *look->error = *entry->error;
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

/* True for a miss that a renewal looks up again. Not SL_INTERNAL, which says nothing about the key and is cached for 30 s only. */
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
    if (!entry || is_doubted(entry) || (is_renewed && is_old_miss(entry)))
        return false;
    cache_take(state, entry, item);
    return true;
}

/* Evicts a file of the kind that maps most if the files of all kinds map more than the limit. */
static void bound_mapped_to(uint64_t most_mapped)
{
    uint64_t mapped = 0;
    struct kind_state *most = NULL;
    for (size_t i = 0; i < engine.count; i++) {
        mapped += engine.kinds[i].memory.mapped;
        if (!most || engine.kinds[i].memory.mapped > most->memory.mapped)
            most = &engine.kinds[i];
    }
    if (mapped > most_mapped)
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
    bound_mapped_to(engine.max_mapped);
}

/* Logs a failed system call on the cache directory, at most once a minute, as it may happen for every entry. `number` 0: nothing failed. */
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
/* True if the address is in the item's mapping. */
static bool item_holds(const struct cache_item *item, const void *address)
{
    const uint8_t *begin = item->mapping.bytes.data;
    return item->mapping.mapped && (uintptr_t)address - (uintptr_t)begin < item->mapping.mapped;
}

/* Drops the entry whose mapping has the address. Whoever holds its item keeps that; later look-ups search the disk, where they notice that
 * the file was truncated. */
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

enum sl_code cache_run_reader(const struct cache_reader *reader, void *arg, struct sl_error *error)
{
    enum sl_code code = reader->run(arg, error);
    /* SL_INTERNAL with a dropped entry: its mapped file could not be read. The next run gets the entry made again */
    for (int runs = 1; runs < CACHE_MAX_RUNS && code == SL_INTERNAL && cache_drop_faulted(); runs++) {
        reader->reset(arg);
        code = reader->run(arg, error);
    }
    return code;
}

void engine_unmap_some(void)
{
    for (int i = 0; i < SHED_FILES; i++)
        bound_mapped_to(0);
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

/* Drops the kind's entries and computations that name one of the files; tells the caller of each key. */
static void drop_files_of_kind(struct kind_state *state, const struct cache_file *files, size_t count,
                               cache_dropped_fn *tell, void *arg)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&state->flights, e));) {
        struct flight *flight = e->value;
        if (!names_any(flight->key, files, count))
            continue;
        tell(arg, state->kind, flight->key);
        flight->outdated = true; /* its waiters hold it; later look-ups start another one */
        sl_map_remove(&state->flights, flight->key);
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
/* True if the running fiber computes a renewal: then the entries that it looks up are renewed, too. */
static bool is_renewing(void)
{
    for (const struct renewing *at = SL_LIST_FIRST(&engine.renewing, struct renewing, link); at;
         at = SL_LIST_NEXT(at, link))
        if (at->fiber == fiber_self())
            return true;
    return false;
}

/* True if memory has a miss that a renewal looks up again. */
static bool old_miss(struct kind_state *state, struct sl_str key)
{
    const struct cache_memory_entry *entry = cache_find(state, key);
    return entry && is_old_miss(entry);
}

/* A renewal is a flight that no look-up waits for. */
void cache_renew(const struct cache_kind *kind, const struct cache_key *key, const void *context)
{
    struct kind_state *state = get_kind_state(kind);
    struct flight *flight;
    if (!state || engine.renew_after_ns == DURATION_NEVER || !old_miss(state, key->text) ||
        sl_map_get(&state->flights, key->text))
        return;
    /* as many renewals run as the configuration allows */
    if (engine.redownloads == 0) {
        metric_add(METRIC_CACHE_LAZY_REFUSED, 1, kind->name, NULL, NULL);
        return;
    }
    flight = engine.group.cancelled ? NULL : flight_start(state, key, context, true, NULL);
    if (!flight)
        return;
    engine.redownloads--;
    flight->renewal = &engine.redownloads;
}

/* True if `look` is answered at once: from memory, or with an error. False: it joined or started a flight, which answers it later. */
bool engine_lookup_async(struct cache_lookup *look, bool renews, struct flight *owner)
{
    struct kind_state *state = get_kind_state(look->kind);
    struct flight *flight;
    look->item = NULL;
    if (!state) {
        look->code = sl_fail(look->error, SL_INTERNAL, "cache kind %s is not registered", look->kind->name);
        return true;
    }
    if (!(renews && old_miss(state, look->key->text)) && peek(state, look))
        return true;
    if (engine.group.cancelled) {
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
    struct cache_lookup look;
    struct fiber *fiber;
    bool done;
};

/* Wakes the fiber in cache_get. */
static void got(struct cache_lookup *look)
{
    struct cache_get_waiter *getting = (struct cache_get_waiter *)look;
    getting->done = true;
    fiber_wake(getting->fiber);
}

enum sl_code cache_get(const struct cache_kind *kind, const struct cache_key *key, const void *context,
                       struct cache_item **item, struct sl_error *error)
{
    struct cache_get_waiter getting = {
        .look = {.kind = kind, .key = key, .context = context, .error = error, .done = got}, .fiber = fiber_self()};
    bool answered = cache_lookup_async(&getting.look);
    *item = NULL;
    while (!answered && !getting.done) {
        fiber_set_wait_reason(kind->name);
        if (!fiber_suspend() && !getting.done) {
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
