/* A flight is the one search on disk and computation of a cache key: all look-ups that memory could not answer wait for its result. */
#include "cache/engine.h"

#include <stdio.h>

#include "base/map.h"
#include "core/log.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "origin/failures.h"

/* First chunk of a flight's arena in bytes, without and with a copy of the context: enough for most flights, of which there may be many. */
enum { BARE_CHUNK = 1280, FIRST_CHUNK = 2560 };

#define engine cache_engine

/* ---- start and end of a flight ---- */
/* Copies a text to the arena; sets `*ok` to false when out of memory. */
static struct sl_str copy_str(struct sl_arena *arena, struct sl_str s, bool *ok)
{
    char *copy = sl_arena_strndup(arena, s.data ? s.data : "", s.size);
    *ok = *ok && copy;
    return (struct sl_str){copy, s.size};
}

/* Makes a flight: the one search and computation of a key for all its look-ups. It copies the look-up's context, if the kind has `retain`.
 * The flight for the base of another flight (`owner`) does not: its context belongs to `owner`, to which it holds a reference. NULL when
 * out of memory. */
static struct flight *flight_new(struct kind_state *state, const struct cache_key *key, const void *context,
                                 struct flight *owner)
{
    bool copies = state->kind->retain && !owner;
    struct sl_arena arena = {.next_chunk = copies ? FIRST_CHUNK : BARE_CHUNK}; /* less memory without a context */
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

/* Drops a reference. With the last one frees the flight, which lies in its own arena, and drops its reference to the flight that owns its
 * context. */
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

/* ---- results ---- */
/* Counts a result that failed for lack of memory or of descriptors; only the error's text tells which. */
static void count_busy(const struct sl_error *error)
{
    metric_add(METRIC_BUSY, 1, strstr(error->message, "descriptor") ? "descriptors" : "memory", NULL, NULL);
}

/* Gives a look-up the flight's result, and calls its `done`, which may free it. */
static void answer(struct flight *flight, struct cache_lookup *look)
{
    look->code = flight->code;
    look->item = flight->code == SL_OK ? cache_retain(flight->item) : NULL;
    if (flight->code != SL_OK && look->error)
        *look->error = flight->error;
    if (look->joined)
        engine_count(flight->state, "joined", flight->code);
    look->flight = NULL;
    flight_release(flight); /* the look-up's reference */
    look->done(look);
}

/* Stores the result in memory, removes the flight from the table, and answers its look-ups. Nothing suspends in between, so that no second
 * flight of the key can start. If an old miss was computed again (`renews`), an error that says nothing lasting about the key does not
 * replace the miss in memory. */
void flight_finish(struct flight *flight, int64_t created_ns, int64_t generation, uint64_t keep_ns)
{
    struct kind_state *state = flight->state;
    flight->done = true;
    flight->error.code = flight->code;
    if (flight->code == SL_BUSY) {
        count_busy(&flight->error);
        engine_unmap_some(); /* frees maps and memory */
    }
    /* compute_publishable: contents, or an error that says something lasting; false: it is no refresh */
    if (!flight->outdated && (!flight->renews || compute_publishable(flight->code, &flight->error, false)))
        engine_store(state, flight->key, flight->code, flight->item, &flight->error, created_ns, generation, keep_ns);
    if (sl_map_get(&state->flights, flight->key) == flight) /* else an invalidation has removed it already */
        sl_map_remove(&state->flights, flight->key);
    if (flight->renewal) /* the count of refreshes that may still run */
        ++*flight->renewal;
    flight->renewal = NULL;
    for (struct cache_lookup *look; (look = SL_LIST_FIRST(&flight->looks, struct cache_lookup, link));) {
        sl_list_remove(&flight->looks, &look->link);
        answer(flight, look);
    }
}

/* Answers the flight's look-ups with an error that says nothing about the key, such as a lack of memory, and ends the flight. */
static void finish_with_error(struct flight *flight, enum sl_code code, const char *message)
{
    flight->code = sl_fail(&flight->error, code, "%s", message);
    engine_count(flight->state, "computed", code);
    flight_finish(flight, 0, 0, 0); /* the last 0: not stored in memory */
    flight_release(flight);
}

/* Answers the flight's look-ups with the result of the shared layer or of a computation, and ends the flight. */
static void finish_computed(struct flight *flight, struct compute_result *outcome)
{
    flight->code = outcome->code;
    flight->item = outcome->item;
    flight->error = outcome->error;
    engine_count(flight->state, outcome->layer, outcome->code);
    if (outcome->code == SL_INTERNAL) { /* logged, as clients do not get the details */
        char digits[CACHE_KEY_DIGITS + 1];
        cache_key_digits(flight->key, digits);
        log_warn("cache", "cannot create a cache entry", LOG_STR("cache", flight->state->kind->name),
                 LOG_STR("key", digits), LOG_ERR(&outcome->error));
    }
    flight_finish(flight, outcome->created_s * CACHE_SECOND_NS, outcome->generation, outcome->keep_ns);
    flight_release(flight); /* the reference that flight_new has made */
}

/* Queues the flight until a fiber of the queue calls `step`; if that cannot be, ends the flight with an error. `queue` NULL: out of
 * memory. */
static void queue_step(struct work_queue *queue, struct flight *flight, flight_step *step)
{
    if (engine.group.cancelled)
        finish_with_error(flight, SL_CANCELLED, "cancelled");
    else if (!queue || !work_queue_push(queue, flight, step))
        finish_with_error(flight, SL_BUSY, "out of memory");
}

/* ---- abandoned computations ---- */
/* The keys of the last computations that ended early because nobody waited: a second computation of these keys runs to its end. */
enum { ABANDONED_KEPT = 256 };
static struct {
    uint64_t keys[ABANDONED_KEPT]; /* abandoned_key; a ring */
    size_t count;                  /* of all so far */
} abandoned;

/* Returns a hash of the flight's key and kind, as kinds may have equal keys. */
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

/* Lets a computation end early if nobody waits for it any more and it is of a derived kind. A download goes on, as what it has received
 * would be lost. A derived computation goes on too if the last look-up was withdrawn because its time was over (fiber_expired), as the
 * client will probably ask again, or if a computation of the key has ended early before. */
void flight_waiter_left(struct flight *flight)
{
    if (flight->looks.first || flight->done || flight->renews || fiber_expired() ||
        flight->state->kind->section != CACHE_DERIVED || was_abandoned(abandoned_key(flight)))
        return;
    atomic_store(&flight->abandoned, true);
}

/* ---- computing ---- */
/* Computes the entry and answers the flight's look-ups. If the computation was abandoned, but another look-up has joined meanwhile, queues
 * it again. */
static void flight_compute(struct flight *flight)
{
    struct compute_result outcome;
    fiber_set_cancel(&flight->abandoned); /* pool jobs of this fiber end early once it is true */
    compute_entry(flight, false, &outcome);
    fiber_set_cancel(NULL);
    if (outcome.code != SL_CANCELLED || !flight->abandoned) {
        finish_computed(flight, &outcome);
        return;
    }
    metric_add(METRIC_CACHE_ABANDONED, 1, flight->state->kind->name, NULL, NULL);
    /* the next computation of this key will not be abandoned */
    abandoned.keys[abandoned.count++ % ABANDONED_KEPT] = abandoned_key(flight);
    if (!flight->looks.first) {
        finish_computed(flight, &outcome);
        return;
    }
    flight->abandoned = false; /* for the look-up that has joined meanwhile */
    queue_step(work_queue_for(flight), flight, flight_compute);
}

/* Publishes the error of the base as the error of this entry, and answers the flight's look-ups with it. */
static void publish_base_error(struct flight *flight)
{
    struct compute_result outcome = {
        .code = flight->error.code, .error = flight->error, .layer = "computed", .generation = flight->generation};
    compute_publish_error(flight, &outcome);
    finish_computed(flight, &outcome);
}

/* Called when the look-up of the base is answered: queues the computation or, if the base is an error, the publishing of that. */
static void base_answered(struct flight *flight)
{
    flight->base_item = flight->base.item; /* keeps it in memory for the computation; NULL for an error */
    if (flight->base.code == SL_OK)
        queue_step(work_queue_for(flight), flight, flight_compute);
    else
        queue_step(&engine.disk_queue, flight, publish_base_error);
}

/* cache_lookup.done of flight.base. */
static void base_done(struct cache_lookup *look)
{
    base_answered((struct flight *)((char *)look - offsetof(struct flight, base)));
}

/* True if the entry is made from another one, its base, which is to be looked up first; sets `*key` to the base's key. False if the shared
 * layer may have the entry, as then the base may not be needed: the computation looks it up itself. */
static bool has_base(struct flight *flight, struct cache_key *key)
{
    const struct cache_kind *kind = flight->state->kind;
    bool shared = shared_active() && !flight->renews && (!kind->shareable || kind->shareable(flight->context));
    return kind->base && !shared &&
           kind->base(flight->context, &flight->arena, &flight->base.kind, key, &flight->base.context);
}

/* Called when the entry is not on disk: queues its computation, after the look-up of its base, if it has one. */
static void begin_computing(struct flight *flight)
{
    struct cache_key key;
    if (!has_base(flight, &key)) {
        queue_step(work_queue_for(flight), flight, flight_compute);
        return;
    }
    flight->base.key = &key; /* read in the call below only: the base's flight copies it */
    flight->base.error = &flight->error;
    flight->base.done = base_done;
    if (engine_lookup_async(&flight->base, flight->renews, flight))
        base_answered(flight); /* at once; else base_done is called later */
}

/* ---- disk ---- */
/* flight_step of a refresh. */
static void refresh_step(struct flight *flight)
{
    refresh_run(flight, flight->refresh);
    flight_release(flight);
}

/* Called after the look-ups were answered with an entry of an old version or an incomplete one: queues the computation of a better one, or
 * releases the flight if that may not run now. `renews`: the entry is incomplete, so the inputs that were missing are looked up again. */
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

/* Counts a look-up that was answered with an entry of an older version of its kind. */
static void count_fallback(const struct cache_kind *kind, unsigned version)
{
    char number[16];
    snprintf(number, sizeof number, "%u", version);
    metric_add(METRIC_CACHE_FALLBACKS, 1, kind->name, number, NULL);
}

/* Answers the flight's look-ups with an entry from disk. One of an older version or an incomplete one is computed again afterwards. One of
 * the present version that is used for the first time in an hour is offered to the shared layer again, so that buckets do not delete it. */
static void finish_found(struct flight *flight, const struct cache_disk_lookup *lookup)
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
        shared_enqueue(state->kind, flight->key, flight->item, SHARED_REFRESH, false); /* false: not if it is there */
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
        /* "true": the file was found; see compute_publish for computed ones */
        metric_observe(METRIC_CACHE_FILE_BYTES, (double)lookup->item->mapping.bytes.size, kind, "true", NULL);
}

/* Reports that the sources of the files that the key names have answered, at the time at which the entry on disk was made. Another
 * process may have made the entry: its success then ends the failures that this process has recorded of the sources. */
static void note_sources_answer(const struct flight *flight, const struct cache_disk_lookup *lookup)
{
    struct sl_str key = flight->key;
    struct cache_file file;
    /* these results need an answer of the source, other errors are its failures */
    bool answered = lookup->code == SL_OK || lookup->code == SL_NOT_FOUND || lookup->code == SL_MALFORMED;
    while (answered && cache_key_next(&key, &file))
        origin_note_success(file.source, file.location, lookup->created_ns);
}

/* The first step of a flight: searches the disk on the pool. Answers the look-ups if the entry is there, else begins to compute it. */
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
    struct sl_error error;
    enum sl_code code = engine.dir ? pool_run(POOL_IO, cache_disk_lookup, &lookup, &error) : SL_OK;
    if (code == SL_INTERNAL && cache_drop_faulted()) { /* the entry was truncated while it was read: compute it */
        lookup = (struct cache_disk_lookup){.corrupt = 1};
        code = SL_OK;
    }
    if (code != SL_OK) {
        finish_with_error(flight, code, error.message);
        return;
    }
    report_lookup(flight, &lookup);
    flight->stamp_ns = lookup.stamp_ns;
    flight->generation = lookup.generation;
    if (lookup.found && engine_should_retry(flight->key, lookup.code, lookup.created_ns))
        lookup.found = false; /* a failure of a source that may work again */
    if (!lookup.found) {
        begin_computing(flight);
        return;
    }
    note_sources_answer(flight, &lookup);
    finish_found(flight, &lookup);
}

/* If the flight cannot be queued, it is removed from the table again: nobody would answer look-ups that join it. */
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
