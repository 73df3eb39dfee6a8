/* Circuit breaker: a back end of the shared cache (Redis, bucket) that does not answer must not cost every request its time limit. It is
 * paused until a fiber has found by probes that it answers again; requests never probe. */
#include "cache/shared.h"

#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"

enum { FIRST_PAUSE_MS = 100, LONGEST_PAUSE_MS = 10000 };

static const char *const op_names[SHARED_OPS] = {"get", "put", "exists", "del", "listen"};
static const char *const result_names[] = {"hit",   "miss",  "written",   "skipped", "timeout",
                                           "error", "error", "cancelled", "error"};

bool breaker_allows(const struct shared_backend *backend)
{
    return !backend->down;
}

/* Records that the back end has answered: earlier failures no longer count. */
static void note_answer(struct shared_backend *backend)
{
    backend->failures = 0;
    backend->last_answer_ms = loop_now_ms();
    if (backend->was_up)
        return;
    backend->was_up = true;
    metric_set(METRIC_SHARED_UP, 1, backend->name, NULL, NULL);
}

/* Runs as a fiber: probes a paused back end, with pauses that double, until there is a usable answer. */
static void probe_until_up(void *arg)
{
    struct shared_backend *backend = arg;
    /* A back end that was paused for unusable answers is probed seldom from the start: what causes these usually lasts longer
     * than a restart of the server. */
    uint64_t pause = backend->failures >= backend->patience ? LONGEST_PAUSE_MS : FIRST_PAUSE_MS;
    while (fiber_sleep(pause)) {
        enum shared_result result = backend->probe();
        if (result == SHARED_HIT) { /* usable answer; any other result is a failure */
            log_warn("shared", "shared cache responds again", LOG_STR("backend", backend->name));
            backend->down = false;
            note_answer(backend);
            return;
        }
        pause = pause * 2 < LONGEST_PAUSE_MS ? pause * 2 : LONGEST_PAUSE_MS;
    }
}

/* Stops the use of a back end, unless it is paused already, and starts the fiber that probes it. */
static void pause_backend(struct shared_backend *backend)
{
    if (backend->down)
        return;
    log_warn("shared", "shared cache disabled after repeated errors; retrying in the background",
             LOG_STR("backend", backend->name), LOG_STR("reason", backend->last_error));
    backend->down = true;
    backend->was_up = false;
    metric_set(METRIC_SHARED_UP, 0, backend->name, NULL, NULL);
    if (!fiber_start(backend->group, probe_until_up, backend))
        backend->down = false; /* no fiber would ever probe it */
}

/* Counts an operation and its duration in the metrics. */
static void count(const struct shared_backend *backend, enum shared_op op, const char *kind, uint64_t begin_ms,
                  enum shared_result result)
{
    metric_add4(METRIC_SHARED_OPS, 1, backend->name, kind, op_names[op], result_names[result]);
    metric_observe(METRIC_SHARED_OP_SECONDS, (double)(loop_now_ms() - begin_ms) / 1e3, backend->name, op_names[op],
                   NULL);
}

void breaker_note(struct shared_backend *backend, enum shared_op op, const char *kind, uint64_t begin_ms,
                  enum shared_result result)
{
    if (result == SHARED_CANCELLED) /* not the back end's doing, and not counted */
        return;
    count(backend, op, kind, begin_ms, result);
    if (result == SHARED_BUSY) /* says nothing about the back end */
        return;
    if (result == SHARED_TIMEOUT || result == SHARED_UNREACHABLE || result == SHARED_ERROR)
        backend->last_error = result == SHARED_TIMEOUT ? "timeout" : result == SHARED_ERROR ? "errors" : "unreachable";
    switch (result) {
    case SHARED_TIMEOUT:
    case SHARED_UNREACHABLE:
        /* If it has answered another operation since this one began, it is alive, only slow. */
        if (backend->last_answer_ms <= begin_ms)
            pause_backend(backend);
        break;
    case SHARED_ERROR: /* a refused write does not count: reading may still work, for example from a full Redis */
        if (op != SHARED_PUT && ++backend->failures >= backend->patience)
            pause_backend(backend);
        break;
    default:                /* SHARED_HIT, _MISS, _WRITTEN, _SKIPPED: usable answers */
        if (!backend->down) /* a paused one is used again only after a successful probe */
            note_answer(backend);
    }
}
