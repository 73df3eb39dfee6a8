#include "api/lanes.h"

#include <stdlib.h>

#include "core/loop.h"

enum { RING_MIN = 16 * 1024, RING_MAX = 2 << 20, STEPS = 4 };

struct traffic;

struct runner {
    struct traffic *traffic;
    const struct lane *lane;
    uint64_t done;
    struct sl_bytes bytes; /* piece that the lane reads now */
    bool good;
};

struct traffic {
    struct http_exchange *x;
    struct fiber_group group;
    struct fiber_wait_list news, room; /* news: runners wait for data; room: the reader waits for space */
    struct runner runners[LANES_MAX];
    size_t count;
    uint8_t *ring;
    size_t size;
    uint64_t filled;
    const struct lanes_pace *pace;
    uint64_t waited_ms; /* time spent waiting for the client */
    bool ended;         /* the whole body was read */
    enum sl_code code;
    struct sl_error error;
};

/* Stops all lanes; the first code wins. */
static void stop(struct traffic *t, enum sl_code code)
{
    if (t->code == SL_OK)
        t->code = code;
    fiber_group_cancel(&t->group);
}

static void take_on_pool(void *arg)
{
    struct runner *r = arg;
    r->good = r->lane->take(r->lane->arg, r->bytes);
}

/* Waits for the next piece. False at the end of the body, or when cancelled. */
static bool next_bytes(struct runner *r)
{
    struct traffic *t = r->traffic;
    while (r->done == t->filled)
        if (t->ended || fiber_wait_on(&t->news, UINT64_MAX) != FIBER_WOKEN)
            return false;
    size_t at = r->done % t->size, size = t->filled - r->done, limit = t->size / STEPS;
    size = size < t->size - at ? size : t->size - at;
    r->bytes = (struct sl_bytes){t->ring + at, size < limit ? size : limit};
    return true;
}

static void run_lane(void *arg)
{
    struct runner *r = arg;
    struct traffic *t = r->traffic;
    while (t->code == SL_OK && next_bytes(r)) {
        struct sl_error error;
        enum sl_code code = pool_run(r->lane->job, take_on_pool, r, &error);
        if (code != SL_OK && t->code == SL_OK)
            t->error = error;
        if (code != SL_OK || !r->good) {
            stop(t, code == SL_OK ? SL_MALFORMED : code == SL_INTERNAL ? code : SL_BUSY);
            return;
        }
        r->done += r->bytes.size;
        fiber_wake_all(&t->room);
    }
}

static uint64_t furthest_behind(const struct traffic *t)
{
    uint64_t done = t->filled;
    for (size_t i = 0; i < t->count; i++)
        done = t->runners[i].done < done ? t->runners[i].done : done;
    return done;
}

/* Copies a piece into the ring; waits for space. False when cancelled. */
static bool fill(struct traffic *t, struct sl_bytes piece)
{
    while (piece.size > 0) {
        size_t room = t->size - (size_t)(t->filled - furthest_behind(t)), at = t->filled % t->size;
        if (!room) {
            if (fiber_wait_on(&t->room, UINT64_MAX) != FIBER_WOKEN)
                return false;
            continue;
        }
        room = room < t->size - at ? room : t->size - at;
        size_t size = piece.size < room ? piece.size : room;
        memcpy(t->ring + at, piece.data, size);
        piece = (struct sl_bytes){piece.data + size, piece.size - size};
        t->filled += size;
        fiber_wake_all(&t->news);
    }
    return true;
}

static bool too_slow(const struct traffic *t)
{
    uint64_t rate = t->pace->min_rate;
    return rate && t->waited_ms > t->pace->grace_ms && t->waited_ms - t->pace->grace_ms > t->filled / rate * 1000;
}

static void read_body(void *arg)
{
    struct traffic *t = arg;
    struct sl_bytes piece;
    while (!t->ended) {
        uint64_t begun_ms = loop_now_ms();
        enum sl_code code = http_body_read(t->x, &piece);
        t->waited_ms += loop_now_ms() - begun_ms;
        if (code == SL_OK && piece.size && too_slow(t)) {
            stop(t, SL_TIMEOUT);
            return;
        }
        if (code != SL_OK && code != SL_CANCELLED)
            t->code = SL_CANCELLED; /* the server has answered: a lane's failure comes too late */
        if (code != SL_OK || !fill(t, piece)) {
            stop(t, SL_CANCELLED);
            return;
        }
        t->ended = piece.size == 0;
    }
    fiber_wake_all(&t->news);
}

static size_t ring_size(const struct http_exchange *x)
{
    size_t size = RING_MIN;
    while (size < RING_MAX && (x->content_length < 0 || (uint64_t)x->content_length > size))
        size *= 2;
    return size;
}

enum sl_code lanes_run(struct http_exchange *x, const struct lane *lanes, size_t count, const struct lanes_pace *pace,
                       struct sl_error *error)
{
    struct traffic t = {.x = x, .count = count, .size = ring_size(x), .pace = pace};
    t.ring = malloc(t.size);
    if (!t.ring)
        return sl_fail(error, SL_BUSY, "out of memory");
    fiber_group_init(&t.group, fiber_group_current());
    bool started = fiber_start(&t.group, read_body, &t);
    for (size_t i = 0; i < count; i++) {
        t.runners[i] = (struct runner){.traffic = &t, .lane = &lanes[i]};
        started = started && fiber_start(&t.group, run_lane, &t.runners[i]);
    }
    if (!started) {
        sl_fail(&t.error, SL_BUSY, "too many fibers");
        stop(&t, SL_BUSY);
    }
    fiber_group_wait(&t.group);
    free(t.ring);
    if (t.code == SL_OK && furthest_behind(&t) < t.filled) /* a lane was cancelled while waiting */
        t.code = SL_CANCELLED;
    if (error && t.code != SL_OK)
        *error = t.error;
    return t.code;
}
