/* Computes a cache entry or gets it from the shared cache, and publishes it: renames its file into the cache directory. */
#include "cache/engine.h"

#include <errno.h>
#include <stdlib.h>

#include "core/duration.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"

#define engine cache_engine

/* Contents stay until the mtime of their file is due to be set again: then the look-up has to search the disk. 0 is for errors that say
 * nothing about the key. */
uint64_t compute_memory_lifetime(const struct kind_state *state, enum sl_code code, const struct sl_error *error)
{
    switch (code) {
    case SL_OK: return (uint64_t)CACHE_TOUCH_EVERY_NS;
    case SL_INTERNAL: return (uint64_t)CACHE_INTERNAL_FOR_NS;
    case SL_MALFORMED: return state->lifetimes.retry_malformed_after;
    case SL_CANCELLED:
    case SL_BUSY: return 0;
    case SL_DOWNLOAD_ERROR: /* duration_ns: set by a computation that knows how long the error will last */
    case SL_UNSUPPORTED: return error->duration_ns ? error->duration_ns : state->lifetimes.retry_misses_after;
    default: return state->lifetimes.retry_misses_after;
    }
}

/* Returns the metric label for an entry that was written to disk. */
static const char *write_status(enum sl_code code)
{
    return code == SL_OK          ? "positive"
           : code == SL_NOT_FOUND ? "negative"
           : code == SL_MALFORMED ? "malformed"
                                  : "cache-specific error";
}

/* False for errors that say nothing about the key, or not for long, and for any error of a refresh, whose old entry stays in use. */
bool compute_publishable(enum sl_code code, const struct sl_error *error, bool is_refresh)
{
    if (code == SL_OK)
        return true;
    return !is_refresh && code != SL_INTERNAL && code != SL_CANCELLED && code != SL_BUSY &&
           !((code == SL_DOWNLOAD_ERROR || code == SL_UNSUPPORTED) && error->duration_ns);
}

/* False for a miss that the next look-up would ignore, as misses of the kind have no lifetime. If an old miss was computed again
 * (`renews`), the new one is always written, to replace it on disk. */
static bool is_worth_writing(const struct flight *flight, enum sl_code code)
{
    const struct cache_lifetimes *lifetimes = &flight->state->lifetimes;
    return flight->renews || cache_get_class(code) != CACHE_NEGATIVE || lifetimes->retry_misses_after ||
           lifetimes->retry_misses_after_public;
}

/* ---- publishing ---- */

/* Publishes the result in `outcome`, whose contents are in `tmp`, on disk, sets outcome->item, and counts what was written and removed.
 * Takes over `tmp`. If the disk cannot be written, callers still get the contents; if it is full, a cleanup starts. SL_INTERNAL or
 * SL_BUSY in outcome->code: the contents cannot be used. */
static void compute_publish(struct flight *flight, struct cache_tmp *tmp, bool is_refresh,
                            struct compute_result *outcome)
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
                                     .incomplete = tmp->incomplete,
                                     .error = outcome->error};
    if (pool_run(POOL_IO, cache_disk_publish, &job, &outcome->error) != SL_OK) {
        cache_tmp_discard(tmp);
        outcome->code = outcome->error.code;
        return;
    }
    outcome->code = job.code;
    outcome->error = job.error;
    outcome->item = job.item;
    outcome->generation = job.generation;
    engine_note_generation(job.generation);
    flight->outdated |= job.outdated;
    engine_log_io("cache write failed", job.io_errno);
    space_reclaim(job.io_errno); /* starts a cleanup if the disk is full */
    if (job.published)
        metric_add(METRIC_CACHE_WRITES, 1, state->kind->name, write_status(job.code), is_refresh ? "true" : "false");
    if (job.outdated_files) /* files of the entry in earlier versions of the kind, which were removed */
        cache_count_removed(state->kind, "version", job.outdated_files, job.outdated_bytes);
    if (job.code == SL_OK && job.published)
        cache_bounded_note_added(state, flight->key, job.item->mapping.bytes.size);
    if (job.code == SL_OK)
        /* "false": the file was not found in the cache, but made now */
        metric_observe(METRIC_CACHE_FILE_BYTES, (double)job.item->mapping.bytes.size, state->kind->name, "false", NULL);
}

/* ---- the shared layer ---- */

/* Asks the shared layer for the entry. True if it has the entry, contents or error, which is then published on disk and is in `outcome`.
 * False: `tmp` is an empty file to compute into, or closed if none could be created. Contents that the kind refuses are damaged: false, and
 * finding->stale makes to_shared replace them by those that are computed. */
static bool from_shared(struct flight *flight, struct cache_tmp *tmp, bool is_refresh,
                        struct shared_result_value *finding, struct compute_result *outcome)
{
    struct kind_state *state = flight->state;
    struct shared_query question = {.kind = state->kind,
                                    .lifetimes = state->lifetimes,
                                    .key = flight->key,
                                    .scope = flight->scope,
                                    .stamp_ns = flight->stamp_ns,
                                    .start_ns = engine.disk.start_ns,
                                    .restart_retries_malformed = engine.config->restart_retries_malformed};
    if (!shared_get(&question, tmp->fd, finding))
        return false;
    const struct shared_value *value = &finding->value;
    *outcome = (struct compute_result){
        .code = value->code, .error = value->error, .layer = "shared", .generation = outcome->generation};
    outcome->error.code = value->code;
    outcome->keep_ns = compute_memory_lifetime(state, value->code, &value->error);
    if (value->code != SL_OK) { /* an error goes on to age from when the other machine has made it */
        outcome->created_s = value->created_s;
        outcome->keep_ns = finding->left_ns;
    }
    compute_publish(flight, tmp, is_refresh, outcome);
    if (outcome->code == SL_OK && !flight->outdated)
        shared_fill_first(state->kind, flight->key, outcome->item, finding); /* from the bucket to the Redis */
    /* SL_BUSY: a lack of memory says nothing about the entry */
    if (outcome->code == value->code || outcome->code == SL_BUSY)
        return true;
    /* compute_publish has changed the code: the contents could not be loaded */
    char digits[CACHE_KEY_DIGITS + 1];
    cache_key_digits(flight->key, digits);
    log_warn("shared", "an entry of the shared cache is damaged; making it again", LOG_STR("cache", state->kind->name),
             LOG_STR("backend", finding->from->name), LOG_STR("key", digits));
    finding->stale = true;
    cache_tmp_create(tmp, false, NULL); /* false: with a name, by which it can be moved into the cache */
    return false;
}

/* Queues a computed result to be written to the shared layer, unless it is an error that may concern this machine only. */
static void to_shared(const struct flight *flight, const struct shared_result_value *finding,
                      const struct compute_result *outcome)
{
    const struct cache_lifetimes *lifetimes = &flight->state->lifetimes;
    if (!shared_is_definitive(outcome->code))
        return;
    if (outcome->code == SL_OK) /* replaces an entry that is damaged (stale) or may be an old miss (renews) */
        shared_enqueue(flight->state->kind, flight->key, outcome->item, SHARED_NEW, finding->stale || flight->renews);
    else
        shared_enqueue_error(flight->state->kind, flight->key, &outcome->error,
                             outcome->code == SL_MALFORMED       ? lifetimes->retry_malformed_after
                             : cache_scope_global(flight->scope) ? lifetimes->retry_misses_after_public
                                                                 : lifetimes->retry_misses_after);
}

/* ---- computing ---- */
struct cache_tmp_opening { /* pool work */
    const struct journal_work *work;
    struct cache_tmp tmp;
};

/* Pool work: creates the file to compute into. SL_UNSUPPORTED if the work is quarantined, as it has ended the process before. */
static enum sl_code open_tmp(void *arg, struct sl_error *error)
{
    struct cache_tmp_opening *o = arg;
    enum sl_code code = cache_quarantine_check(o->work, error);
    if (code == SL_UNSUPPORTED)
        metric_add(METRIC_CONVERSIONS, 1, o->work->kind, "crashed", NULL);
    /* false: with a name, by which it can be moved into the cache */
    return code == SL_OK ? cache_tmp_create(&o->tmp, false, error) : code;
}

/* Creates the file to compute into, on the pool. SL_UNSUPPORTED if the work is quarantined. */
static enum sl_code compute_open_file(struct cache_tmp *tmp, struct sl_error *error)
{
    struct cache_tmp_opening o = {.work = fiber_work(), .tmp.fd = -1};
    enum sl_code code = pool_call(POOL_IO, open_tmp, &o, error);
    *tmp = o.tmp;
    space_retry(); /* if the cache directory took no file, it is tried again from now on */
    return code;
}

struct computation {
    struct flight *flight;
    struct cache_tmp *tmp; /* open, or discarded by a failed run */
};

/* Runs the kind's computation once, into a new file if an earlier run has discarded its file. */
static enum sl_code compute_once(void *arg, struct sl_error *error)
{
    const struct computation *c = arg;
    struct sl_arena arena = {0};
    enum sl_code code = c->tmp->fd < 0 ? compute_open_file(c->tmp, error) : SL_OK;
    if (code == SL_OK)
        code = c->flight->state->kind->compute(c->flight->context, c->tmp, &arena, error);
    sl_arena_free(&arena);
    return code;
}

/* cache_reader.reset, after a run that failed because a mapped file was damaged: releases the base and the file, so that the next run makes
 * both anew. */
static void compute_reset(void *arg)
{
    const struct computation *c = arg;
    cache_release(c->flight->base_item);
    c->flight->base_item = NULL;
    cache_tmp_discard(c->tmp);
    c->tmp->fd = -1;
}

/* Runs the kind's computation, again if a file that it reads was damaged under its mapping. */
static enum sl_code cache_compute(struct flight *flight, struct cache_tmp *tmp, struct sl_error *error)
{
    struct computation computation = {flight, tmp};
    return cache_run_reader(&(struct cache_reader){compute_once, compute_reset}, &computation, error);
}

/* Gets the entry from the shared layer or computes it, and publishes it on disk; a computed entry is published in the shared layer as
 * well. Takes over `tmp`. Contents made without some input (tmp->incomplete) stay in memory for a shorter time and are not shared. */
static void obtain(struct flight *flight, struct cache_tmp *tmp, bool is_refresh, struct compute_result *outcome)
{
    const struct cache_kind *kind = flight->state->kind;
    bool shareable = shared_active() && (!kind->shareable || kind->shareable(flight->context));
    struct shared_result_value finding = {.stale = false};
    /* If an old miss is computed again (`renews`), the shared layer is not asked, as it may have the same miss. The refresh of an
     * incomplete entry asks the shared layer, all of whose contents are complete. */
    if (shareable && (!flight->renews || is_refresh) && from_shared(flight, tmp, is_refresh, &finding, outcome))
        return;
    *outcome = (struct compute_result){.layer = "computed", .generation = outcome->generation};
    if (tmp->fd < 0) {
        outcome->code = sl_fail(&outcome->error, SL_INTERNAL, "cannot create a temporary file for a cache entry");
        outcome->keep_ns = (uint64_t)CACHE_INTERNAL_FOR_NS;
        return;
    }
    uint64_t begin = clock_mono_ns();
    outcome->code = cache_compute(flight, tmp, &outcome->error);
    if (flight->abandoned) /* even SL_OK is no result then: optional parts of the computation may have ended early */
        outcome->code = sl_fail(&outcome->error, SL_CANCELLED, "cancelled");
    outcome->error.code = outcome->code;
    metric_observe(METRIC_CACHE_COMPUTE_SECONDS, (double)(clock_mono_ns() - begin) / 1e9, kind->name, NULL, NULL);
    if (outcome->code == SL_INTERNAL && space_is_disk_full())
        engine_log_io("cache write failed", ENOSPC);
    bool incomplete = tmp->incomplete;
    if (compute_publishable(outcome->code, &outcome->error, is_refresh) && is_worth_writing(flight, outcome->code)) {
        compute_publish(flight, tmp, is_refresh, outcome);
        if (shareable && outcome->code != SL_INTERNAL && outcome->code != SL_BUSY && !incomplete && !flight->outdated)
            to_shared(flight, &finding, outcome);
    } else {
        cache_tmp_discard(tmp);
    }
    outcome->keep_ns = compute_memory_lifetime(flight->state, outcome->code, &outcome->error);
    if (incomplete && outcome->code == SL_OK && outcome->keep_ns > engine.renew_after_ns)
        outcome->keep_ns = engine.renew_after_ns;
}

void compute_entry(struct flight *flight, bool is_refresh, struct compute_result *outcome)
{
    struct cache_tmp tmp;
    struct journal_work work;
    /* If the process dies while a pool thread works for this fiber, the journal names this work: see quarantine.c. The key is also
     * the text for people. */
    cache_quarantine_name(flight->state->kind->name, flight->key, flight->key, &work);
    fiber_set_work(&work);
    *outcome = (struct compute_result){.layer = "computed", .generation = flight->generation};
    outcome->code = compute_open_file(&tmp, &outcome->error);
    outcome->keep_ns = compute_memory_lifetime(flight->state, outcome->code, &outcome->error);
    struct renewing renewing = {.fiber = fiber_self()}; /* while it is listed, this fiber's look-ups renew old misses */
    if (flight->renews)
        sl_list_prepend(&engine.renewing, &renewing.link);
    if (outcome->code == SL_OK)
        obtain(flight, &tmp, is_refresh, outcome);
    else if (outcome->code == SL_INTERNAL && space_is_disk_full())
        engine_log_io("cache write failed", ENOSPC);
    if (flight->renews)
        sl_list_remove(&engine.renewing, &renewing.link);
    fiber_set_work(NULL);
}

/* There is no temporary file (fd -1): publishing creates one for the error's marker. */
void compute_publish_error(struct flight *flight, struct compute_result *outcome)
{
    struct cache_tmp tmp = {.fd = -1};
    if (compute_publishable(outcome->code, &outcome->error, false) && is_worth_writing(flight, outcome->code))
        compute_publish(flight, &tmp, false, outcome);
    outcome->keep_ns = compute_memory_lifetime(flight->state, outcome->code, &outcome->error);
}
