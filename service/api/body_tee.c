/* Several consumers read one request body concurrently through a ring buffer. A lane is one consumer with its fiber. */
#include "api/body_tee.h"

#include <stdlib.h>

#include "core/loop.h"

/* RING_PARTS: a lane is handed at most 1 / RING_PARTS of the ring at once, so that the rest can be filled meanwhile. */
enum { RING_MIN = 16 * 1024, RING_MAX = 2 << 20, RING_PARTS = 4 };

struct lanes_state;

struct lane_state {
    struct lanes_state *state;
    const struct body_consumer *lane;
    uint64_t done;         /* bytes of the body that the consumer has taken */
    struct sl_bytes bytes; /* piece of the ring that the consumer takes now */
    bool good;             /* result of lane->take for that piece */
};

struct lanes_state {
    struct http_exchange *x;
    struct fiber_group group;
    struct fiber_wait_list data_ready, space_ready; /* waited on by lanes; by the reader */
    struct lane_state lane_states[BODY_TEE_MAX_CONSUMERS];
    size_t count;
    uint8_t *ring;
    size_t size;     /* of the ring */
    uint64_t filled; /* bytes of the body copied to the ring so far */
    const struct body_tee_pace *pace;
    uint64_t waited_ms; /* time spent waiting for the client */
    bool ended;         /* the whole body was read */
    enum sl_code code;
    struct sl_error error;
};

/* Stops all lanes and the reader. The code of the first call is the result of body_tee_run(). */
static void stop(struct lanes_state *t, enum sl_code code)
{
    if (t->code == SL_OK)
        t->code = code;
    fiber_group_cancel(&t->group);
}

/* Pool work: passes the lane's current piece to its consumer. */
static void take_on_pool(void *arg)
{
    struct lane_state *r = arg;
    r->good = r->lane->take(r->lane->arg, r->bytes);
}

/* Sets the lane's next piece, after waiting for data if it has taken all that the ring has. False at the end of the body, or when
 * cancelled. */
static bool next_bytes(struct lane_state *r)
{
    struct lanes_state *t = r->state;
    while (r->done == t->filled) /* bytes of the body that this lane has taken, and that the ring has got */
        if (t->ended || fiber_wait_on(&t->data_ready, UINT64_MAX) != FIBER_WOKEN)
            return false;
    /* `limit`: only a part of the ring is handed out at once, so that the rest can be filled meanwhile */
    size_t at = r->done % t->size, size = t->filled - r->done, limit = t->size / RING_PARTS;
    size = size < t->size - at ? size : t->size - at; /* a piece must not pass the end of the ring */
    r->bytes = (struct sl_bytes){t->ring + at, size < limit ? size : limit};
    return true;
}

/* The fiber of a lane: passes one piece after the other to the consumer, on the pool. If the consumer refuses a piece, all lanes stop. */
static void run_lane(void *arg)
{
    struct lane_state *r = arg;
    struct lanes_state *t = r->state;
    while (t->code == SL_OK && next_bytes(r)) {
        struct sl_error error;
        enum sl_code code = pool_run(r->lane->job, take_on_pool, r, &error);
        if (code != SL_OK && t->code == SL_OK)
            t->error = error;
        if (code != SL_OK || !r->good) {
            /* SL_MALFORMED: the consumer refused the piece; SL_INTERNAL: the pool job failed; SL_BUSY: the pool did not take the job */
            stop(t, code == SL_OK ? SL_MALFORMED : code == SL_INTERNAL ? code : SL_BUSY);
            return;
        }
        r->done += r->bytes.size;
        fiber_wake_all(&t->space_ready);
    }
}

/* Returns how far the slowest lane has read: the ring's bytes before that position can be overwritten. */
static uint64_t furthest_behind(const struct lanes_state *t)
{
    uint64_t done = t->filled;
    for (size_t i = 0; i < t->count; i++)
        done = t->lane_states[i].done < done ? t->lane_states[i].done : done;
    return done;
}

/* Copies a piece of the body into the ring, waiting for space as often as needed. False when cancelled. */
static bool fill(struct lanes_state *t, struct sl_bytes piece)
{
    while (piece.size > 0) {
        /* bytes before the position of the slowest lane can be overwritten */
        size_t space = t->size - (size_t)(t->filled - furthest_behind(t)), at = t->filled % t->size;
        if (!space) {
            if (fiber_wait_on(&t->space_ready, UINT64_MAX) != FIBER_WOKEN)
                return false;
            continue;
        }
        space = space < t->size - at ? space : t->size - at; /* a copy must not pass the end of the ring */
        size_t size = piece.size < space ? piece.size : space;
        memcpy(t->ring + at, piece.data, size);
        piece = (struct sl_bytes){piece.data + size, piece.size - size};
        t->filled += size;
        fiber_wake_all(&t->data_ready);
    }
    return true;
}

/* True if the client sends slower than the minimum rate: if the time spent waiting for it, less the grace period, is more
 * than the bytes received so far would have taken at that rate. */
static bool too_slow(const struct lanes_state *t)
{
    uint64_t rate = t->pace->min_rate;
    return rate && t->waited_ms > t->pace->grace_ms && t->waited_ms - t->pace->grace_ms > t->filled / rate * 1000;
}

/* The reader's fiber: copies the body from the client into the ring until its end, where http_body_read() returns an empty piece. Stops all
 * lanes if the client is too slow or gone. */
static void read_body(void *arg)
{
    struct lanes_state *t = arg;
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
            t->code = SL_CANCELLED; /* the server has sent an error already: this replaces a lane's failure */
        if (code != SL_OK || !fill(t, piece)) {
            stop(t, SL_CANCELLED);
            return;
        }
        t->ended = piece.size == 0;
    }
    fiber_wake_all(&t->data_ready);
}

/* Returns the size of the ring: a power of two that holds the whole body, at most RING_MAX; RING_MAX if the length is unknown. */
static size_t ring_size(const struct http_exchange *x)
{
    size_t size = RING_MIN;
    while (size < RING_MAX && (x->content_length < 0 || (uint64_t)x->content_length > size))
        size *= 2;
    return size;
}

/* Runs a fiber that reads the body and one for each consumer, and waits for all of them. */
enum sl_code body_tee_run(struct http_exchange *x, const struct body_consumer *lanes, size_t count,
                          const struct body_tee_pace *pace, struct sl_error *error)
{
    struct lanes_state t = {.x = x, .count = count, .size = ring_size(x), .pace = pace};
    t.ring = malloc(t.size);
    if (!t.ring)
        return sl_fail(error, SL_BUSY, "out of memory");
    fiber_group_init(&t.group, fiber_group_current());
    bool started = fiber_start(&t.group, read_body, &t);
    for (size_t i = 0; i < count; i++) {
        t.lane_states[i] = (struct lane_state){.state = &t, .lane = &lanes[i]};
        started = started && fiber_start(&t.group, run_lane, &t.lane_states[i]);
    }
    if (!started) {
        sl_fail(&t.error, SL_BUSY, "cannot read the request body: too many requests are being handled (no free fiber)");
        stop(&t, SL_BUSY);
    }
    fiber_group_wait(&t.group);
    free(t.ring);
    /* a lane has not taken everything: its fiber was cancelled */
    if (t.code == SL_OK && furthest_behind(&t) < t.filled)
        t.code = SL_CANCELLED;
    if (error && t.code != SL_OK)
        *error = t.error;
    return t.code;
}
