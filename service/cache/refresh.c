/* A refresh computes a cache entry again that is of an old version or was made without some input; the entry is used until then. Only
 * contents replace it: an error must not destroy a usable entry. */
#include "cache/engine.h"

#include <stdlib.h>

#include "core/duration.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"

/* Once so many refreshes of a kind are listed, running and failed ones, those that failed and may be retried are removed from the list. */
enum { REFRESHES_REMEMBERED = 1024 };

/* A refresh that runs, or that failed and must not be retried too early. */
struct refresh {
    uint64_t not_before_ms; /* 0 = running */
    struct sl_str key;
};

/* Removes the failed refreshes that may be retried at `now_ms`. Running ones (not_before_ms 0) stay. */
void refreshes_expire(struct kind_state *state, uint64_t now_ms)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&state->refreshes, e));) {
        struct refresh *refresh = e->value;
        if (refresh->not_before_ms && refresh->not_before_ms <= now_ms) {
            sl_map_remove(&state->refreshes, refresh->key);
            free(refresh);
        }
    }
}

/* Lists the flight's key as a running refresh, and takes 1 from *state->lazy, which says how many more may run. NULL if the kind has no
 * refreshes, if one of the key runs or may not be retried yet, if too many run, or when out of memory. */
struct refresh *refresh_begin(struct flight *flight)
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
    if (state->refreshes.count >= REFRESHES_REMEMBERED) {
        refreshes_expire(state, now);
        /* that of this key may have been freed, too */
        refresh = sl_map_get(&state->refreshes, flight->key);
    }
    if (!refresh) {
        struct sl_str key;
        refresh = sl_map_add(&state->refreshes, flight->key, sizeof *refresh, &key);
        if (!refresh)
            return NULL;
        refresh->key = key;
    }
    refresh->not_before_ms = 0;
    --*state->lazy;
    return refresh;
}

/* Ends a refresh with the result `code`, and adds 1 to *state->lazy again. A failed one stays listed as long as misses of the kind are
 * cached, so that the next look-up does not repeat it at once; after SL_BUSY it may be repeated. */
static void refresh_end(struct flight *flight, struct refresh *refresh, enum sl_code code)
{
    struct kind_state *state = flight->state;
    uint64_t wait_ms = DURATION_MS(state->lifetimes.retry_misses_after), now = loop_now_ms();
    ++*state->lazy;
    if (code == SL_OK || code == SL_BUSY || wait_ms == 0) {
        sl_map_remove(&state->refreshes, refresh->key);
        free(refresh);
    } else {
        refresh->not_before_ms = wait_ms > UINT64_MAX - now ? UINT64_MAX : now + wait_ms;
    }
}

void refresh_give_up(struct flight *flight, struct refresh *refresh)
{
    refresh_end(flight, refresh, SL_BUSY);
}

/* Computes an entry again and stores it in memory if that succeeds. A failure leaves the old entry in use, and refresh_end makes the next
 * attempt wait. */
void refresh_run(struct flight *flight, struct refresh *refresh)
{
    struct kind_state *state = flight->state;
    struct compute_result outcome;
    compute_entry(flight, true, &outcome);
    if (outcome.code == SL_OK && !flight->outdated)
        /* 0: it was made now */
        engine_store(state, flight->key, SL_OK, outcome.item, NULL, 0, outcome.generation, outcome.keep_ns);
    else if (outcome.code != SL_OK)
        log_debug("cache", "cannot refresh a cache entry", LOG_STR("cache", state->kind->name),
                  LOG_ERR(&outcome.error));
    cache_release(outcome.item);
    refresh_end(flight, refresh, outcome.code);
}
