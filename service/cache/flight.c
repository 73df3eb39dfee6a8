#include "cache/engine.h"

#include <stdio.h>

#include "base/map.h"
#include "core/log.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "origin/failures.h"

/* Usual size of a flight in bytes, without and with a context of its own: there may be many. */
enum { BARE_CHUNK = 1280, FIRST_CHUNK = 2560 };

#define engine cache_engine

/* ---- start and end of a flight ---- */
/* Copies a text; clears `*ok` when out of memory. */
static struct sl_str copy_str(struct sl_arena *arena, struct sl_str s, bool *ok)
{
    char *copy = sl_arena_strndup(arena, s.data ? s.data : "", s.size);
    *ok = *ok && copy;
    return (struct sl_str){copy, s.size};
}

/* Makes a flight: the one search of disk, shared layer and computation for all look-ups of a key. It copies the context, which the look-up
 * owns; a flight for the base of another (`owner`) uses the context of that one, which it keeps alive. NULL when out of memory. */
static struct flight *flight_new(struct kind_state *state, const struct cache_key *key, const void *context,
                                 struct flight *owner)
{
    bool copies = state->kind->retain && !owner;
    struct sl_arena arena = {.next_chunk = copies ? FIRST_CHUNK : BARE_CHUNK};
    struct flight *flight = SL_ARENA_NEW(&arena, struct flight);
    bool ok = flight != NULL;
    if (ok) {
        flight->state = state;
        flight->begun_ns = cache_now_ns();
        flight->key = copy_str(&arena, key->text, &ok);
        flight->scope = copy_str(&arena, key->scope, &ok);
        flight->request_id = copy_str(&arena, fiber_request_id(), &ok);
        flight->context = copies ? state->kind->retain(context, &arena) : (void *)context;
        ok = ok && (!copies || flight->context);
    }
    if (!ok) {
        sl_arena_free(&arena);
        return NULL;
    }
    flight->arena = arena;
    flight->references = 1;
    flight->owner = owner;
    if (owner)
        owner->references++;
    return flight;
}

/* Drops a reference; the last one frees the flight, which lies in its own arena, and then releases the flight that owns its context. */
void flight_release(struct flight *flight)
{
    if (--flight->references)
        return;
    cache_release(flight->base_item);
    cache_release(flight->item);
    struct sl_arena arena = flight->arena;
    struct flight *owner = flight->owner;
    sl_arena_free(&arena);
    if (owner)
        flight_release(owner);
}

/* ---- landing ----
 * A flight lands when it has its result, and answers all look-ups that wait for it. */
/* Counts an answer that failed for lack of memory or descriptors; only the error's text tells which. */
static void count_busy(const struct sl_error *error)
{
    metric_add(METRIC_BUSY, 1, strstr(error->message, "descriptor") ? "descriptors" : "memory", NULL, NULL);
}

/* Gives a look-up its result and calls it back, which may free it. */
static void answer(struct flight *flight, struct cache_lookup *look)
{
    look->code = flight->code;
    look->item = flight->code == SL_OK ? cache_retain(flight->item) : NULL;
    if (flight->code != SL_OK && look->error)
        *look->error = flight->error;
    if (look->joined)
        engine_count(flight->state, "joined", flight->code);
    look->flight = NULL;
    flight_release(flight);
    look->done(look);
}

/* Puts the result into memory and removes the flight from the table without suspending in between, so nobody can start a
 * second one. If a renewal failed with an error that is not publishable, the old answer stays. */
void flight_finish(struct flight *flight, int64_t created_ns, int64_t generation, uint64_t keep_ns)
{
    struct kind_state *state = flight->state;
    flight->done = true;
    flight->error.code = flight->code;
    /* memory or mappings are short: unmaps files that no request uses */
    if (flight->code == SL_BUSY) {
        count_busy(&flight->error);
        engine_unmap_some();
    }
    if (!flight->outdated && (!flight->renews || compute_publishable(flight->code, &flight->error, false)))
        engine_store(state, flight->key, flight->code, flight->item, &flight->error, created_ns, generation, keep_ns);
    if (sl_map_get(&state->flights, flight->key) == flight)
        sl_map_remove(&state->flights, flight->key);
    if (flight->renewal)
        ++*flight->renewal;
    flight->renewal = NULL;
    for (struct cache_lookup *look; (look = SL_LIST_FIRST(&flight->looks, struct cache_lookup, link));) {
        sl_list_remove(&flight->looks, &look->link);
        answer(flight, look);
    }
}

/* Lands with an error that says nothing about the key, such as a lack of memory. */
static void land_as(struct flight *flight, enum sl_code code, const char *message)
{
    flight->code = sl_fail(&flight->error, code, "%s", message);
    engine_count(flight->state, "computed", code);
    flight_finish(flight, 0, 0, 0);
    flight_release(flight);
}

/* Lands with the result of a computation. */
static void land_computed(struct flight *flight, struct compute_result *outcome)
{
    flight->code = outcome->code;
    flight->item = outcome->item;
    flight->error = outcome->error;
    engine_count(flight->state, outcome->layer, outcome->code);
    if (outcome->code == SL_INTERNAL) { /* clients get no details */
        char digits[CACHE_KEY_DIGITS + 1];
        cache_key_digits(flight->key, digits);
        log_warn("cache", "cannot create a cache entry", LOG_STR("cache", flight->state->kind->name),
                 LOG_STR("key", digits), LOG_ERR(&outcome->error));
    }
    flight_finish(flight, outcome->created_s * CACHE_SECOND_NS, outcome->generation, outcome->keep_ns);
    flight_release(flight);
}

/* Queues the flight, or lands it with an error. */
static void go_on(struct work_queue *queue, struct flight *flight, flight_step *step)
{
    if (engine.group.cancelled)
        land_as(flight, SL_CANCELLED, "cancelled");
    else if (!queue || !work_queue_push(queue, flight, step))
        land_as(flight, SL_BUSY, "out of memory");
}

/* ---- abandoned computations ----
 * Hashes of the keys of the last ones: a second computation of one of these is not abandoned. */
enum { ABANDONED_KEPT = 256 };
static struct {
    uint64_t keys[ABANDONED_KEPT];
    size_t count;
} abandoned;

/* Returns a key of one kind, as a number; kinds may have equal keys. */
static uint64_t abandoned_key(const struct flight *flight)
{
    return sl_hash(flight->key.data, flight->key.size) ^ (uint64_t)(flight->state - engine.kinds);
}

static bool was_abandoned(uint64_t key)
{
    for (size_t i = 0; i < ABANDONED_KEPT && i < abandoned.count; i++)
        if (abandoned.keys[i] == key)
            return true;
    return false;
}

/* Stops a conversion that nobody waits for any more. Not if the waiter left because its time was over: the client will ask again, and then
 * the entry should be there. Not downloads, whose bytes would be lost. */
void flight_waiter_left(struct flight *flight)
{
    if (flight->looks.first || flight->done || flight->renews || fiber_expired() ||
        flight->state->kind->section != CACHE_DERIVED || was_abandoned(abandoned_key(flight)))
        return;
    atomic_store(&flight->abandoned, true);
}

/* ---- computing ---- */
/* Computes the entry and lands. If the computation was abandoned and another look-up has joined meanwhile, computes again. */
static void flight_compute(struct flight *flight)
{
    struct compute_result outcome;
    fiber_set_cancel(&flight->abandoned);
    compute_entry(flight, false, &outcome);
    fiber_set_cancel(NULL);
    if (outcome.code != SL_CANCELLED || !flight->abandoned) {
        land_computed(flight, &outcome);
        return;
    }
    metric_add(METRIC_CACHE_ABANDONED, 1, flight->state->kind->name, NULL, NULL);
    abandoned.keys[abandoned.count++ % ABANDONED_KEPT] = abandoned_key(flight);
    if (!flight->looks.first) {
        land_computed(flight, &outcome);
        return;
    }
    flight->abandoned = false; /* another look-up has joined meanwhile */
    go_on(work_queue_for(flight), flight, flight_compute);
}

/* Lands with the error of the base, which is also the answer for this entry. */
static void publish_base_error(struct flight *flight)
{
    struct compute_result outcome = {
        .code = flight->error.code, .error = flight->error, .layer = "computed", .generation = flight->generation};
    compute_publish_error(flight, &outcome);
    land_computed(flight, &outcome);
}

/* Goes on after the look-up of the base: computes the entry of it, or fails as it did. */
static void base_answered(struct flight *flight)
{
    flight->base_item = flight->base.item;
    if (flight->base.code == SL_OK)
        go_on(work_queue_for(flight), flight, flight_compute);
    else
        go_on(&engine.disk_queue, flight, publish_base_error);
}

/* Called when the look-up of the base, which is a member of its flight, is answered. */
static void base_done(struct cache_lookup *look)
{
    base_answered((struct flight *)((char *)look - offsetof(struct flight, base)));
}

/* True if the entry is made of another one, its base, which has to be looked up first; `*key` is then the key of the base. Not if the
 * shared layer may have the entry: a base that is not needed would be downloaded. */
static bool has_base(struct flight *flight, struct cache_key *key)
{
    const struct cache_kind *kind = flight->state->kind;
    bool shared = shared_active() && !flight->renews && (!kind->shareable || kind->shareable(flight->context));
    return kind->base && !shared &&
           kind->base(flight->context, &flight->arena, &flight->base.kind, key, &flight->base.context);
}

/* Called when the entry is not on disk: looks up its base, if it has one, and queues the computation. */
static void begin_computing(struct flight *flight)
{
    struct cache_key key;
    if (!has_base(flight, &key)) {
        go_on(work_queue_for(flight), flight, flight_compute);
        return;
    }
    flight->base.key = &key;
    flight->base.error = &flight->error;
    flight->base.done = base_done;
    if (engine_lookup_async(&flight->base, flight->renews, flight))
        base_answered(flight);
}

/* ---- disk ---- */
static void refresh_step(struct flight *flight)
{
    refresh_run(flight, flight->refresh);
    flight_release(flight);
}

/* Called after the look-ups were answered with an entry that is old or incomplete: queues the computation of a better one.
 * `renews`: the entry is incomplete, so missing inputs are looked up again. */
static void refresh_later(struct flight *flight, bool renews)
{
    flight->renews = renews;
    struct refresh *refresh = engine.group.cancelled ? NULL : refresh_begin(flight);
    struct work_queue *queue = refresh ? work_queue_for(flight) : NULL;
    flight->refresh = refresh;
    if (queue && work_queue_push(queue, flight, refresh_step))
        return;
    if (refresh)
        refresh_give_up(flight, refresh);
    flight_release(flight);
}

static void count_fallback(const struct cache_kind *kind, unsigned version)
{
    char number[16];
    snprintf(number, sizeof number, "%u", version);
    metric_add(METRIC_CACHE_FALLBACKS, 1, kind->name, number, NULL);
}

/* Lands with an entry from disk. An entry of an older version or an incomplete one is an answer for now, and computed again afterwards. */
static void land_found(struct flight *flight, const struct cache_disk_lookup *lookup)
{
    struct kind_state *state = flight->state;
    bool outdated = lookup->version != state->kind->version;
    flight->code = lookup->code;
    flight->item = lookup->item;
    flight->error = lookup->error;
    engine_count(state, outdated ? "fallback" : "disk", flight->code);
    if (outdated)
        count_fallback(state->kind, lookup->version);
    flight_finish(flight, lookup->created_ns, lookup->generation, lookup->left_ns);
    if (outdated || lookup->renewable) {
        refresh_later(flight, lookup->renewable);
        return;
    }
    if (lookup->touched && !lookup->incomplete && shared_active() &&
        (!state->kind->shareable || state->kind->shareable(flight->context)))
        shared_enqueue(state->kind, flight->key, flight->item, SHARED_REFRESH, false);
    flight_release(flight);
}

/* Logs and counts what a look-up on disk has found out. */
static void report_lookup(const struct flight *flight, const struct cache_disk_lookup *lookup)
{
    const char *kind = flight->state->kind->name;
    engine_note_generation(lookup->generation);
    engine_log_io("cannot read the cache directory", lookup->io_errno);
    if (lookup->corrupt) {
        char digits[CACHE_KEY_DIGITS + 1];
        cache_key_digits(flight->key, digits);
        metric_add(METRIC_CACHE_CORRUPT, lookup->corrupt, kind, NULL, NULL);
        log_warn("cache", "cache entry damaged; it is dropped and made again when it is needed", LOG_STR("cache", kind),
                 LOG_STR("key", digits));
    }
    if (lookup->replaced_files)
        cache_count_removed(flight->state->kind, "invalidated", lookup->replaced_files, lookup->replaced_bytes);
    if (lookup->found && lookup->code == SL_OK)
        metric_observe(METRIC_CACHE_FILE_BYTES, (double)lookup->item->mapping.bytes.size, kind, "true", NULL);
}

/* An entry newer than the recorded failures of its sources was fetched by another process: the sources work. */
static void note_sources_answer(const struct flight *flight, const struct cache_disk_lookup *lookup)
{
    struct sl_str key = flight->key;
    struct cache_file file;
    bool answered = lookup->code == SL_OK || lookup->code == SL_NOT_FOUND || lookup->code == SL_MALFORMED;
    while (answered && cache_key_next(&key, &file))
        origin_note_success(file.source, file.location, lookup->created_ns);
}

/* Searches the disk on the pool, and lands or begins to compute. */
static void look_on_disk(struct flight *flight)
{
    struct kind_state *state = flight->state;
    struct cache_disk_lookup lookup = {.disk = &engine.disk,
                                       .restart_retries_malformed = engine.config->restart_retries_malformed,
                                       .kind = state->kind,
                                       .lifetimes = state->lifetimes,
                                       .key = flight->key,
                                       .renew_before_ns = flight->renews ? engine_renew_before_ns() : 0,
                                       .renew_after_ns = engine.renew_after_ns};
    enum sl_code code = engine.dir ? pool_run(POOL_IO, cache_disk_lookup, &lookup, &flight->error) : SL_OK;
    if (code == SL_INTERNAL && cache_drop_faulted()) { /* truncated while it was opened */
        lookup = (struct cache_disk_lookup){.corrupt = 1};
        code = SL_OK;
    }
    if (code != SL_OK) {
        land_as(flight, code, flight->error.message);
        return;
    }
    report_lookup(flight, &lookup);
    flight->stamp_ns = lookup.stamp_ns;
    flight->generation = lookup.generation;
    if (lookup.found && engine_should_retry(flight->key, lookup.code, lookup.created_ns))
        lookup.found = false;
    if (!lookup.found) {
        begin_computing(flight);
        return;
    }
    note_sources_answer(flight, &lookup);
    land_found(flight, &lookup);
}

/* Work that is listed in the table, but cannot be queued, is removed again: nobody would answer those who join it. */
struct flight *flight_start(struct kind_state *state, const struct cache_key *key, const void *context, bool renews,
                            struct flight *owner)
{
    struct flight *flight = flight_new(state, key, context, owner);
    if (!flight)
        return NULL;
    flight->renews = renews;
    if (sl_map_put(&state->flights, flight->key, flight) && work_queue_push(&engine.disk_queue, flight, look_on_disk))
        return flight;
    sl_map_remove(&state->flights, flight->key);
    flight_release(flight);
    return NULL;
}
