/* Circuit breaker: a back end that does not answer must not cost every request its time limit. It is paused until a fiber has
 * found by probes that it answers again; requests never probe. */
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

/* Notes an answer: earlier failures no longer count. */
static void up(struct shared_backend *backend)
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
    /* Unusable answers usually last longer than a restart. */
    uint64_t pause = backend->failures >= backend->patience ? LONGEST_PAUSE_MS : FIRST_PAUSE_MS;
    while (fiber_sleep(pause)) {
        enum shared_result result = backend->probe();
        if (result == SHARED_HIT) {
            log_warn("shared", "shared cache responds again", LOG_STR("backend", backend->name));
            backend->down = false;
            up(backend);
            return;
        }
        pause = pause * 2 < LONGEST_PAUSE_MS ? pause * 2 : LONGEST_PAUSE_MS;
    }
}

/* Stops the use of a back end, and starts the fiber that probes it. */
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
    if (result == SHARED_CANCELLED)
        return;
    count(backend, op, kind, begin_ms, result);
    if (result == SHARED_BUSY)
        return;
    if (result == SHARED_TIMEOUT || result == SHARED_UNREACHABLE || result == SHARED_ERROR)
        backend->last_error = result == SHARED_TIMEOUT ? "timeout" : result == SHARED_ERROR ? "errors" : "unreachable";
    switch (result) {
    case SHARED_TIMEOUT:
    case SHARED_UNREACHABLE:
        /* One slow answer among many others does not mean that it is dead. */
        if (backend->last_answer_ms <= begin_ms)
            pause_backend(backend);
        break;
    case SHARED_ERROR: /* a refused write does not count: reading may still work, for example from a full Redis */
        if (op != SHARED_PUT && ++backend->failures >= backend->patience)
            pause_backend(backend);
        break;
    default:
        if (!backend->down)
            up(backend);
    }
}
