/* Several consumers ("lanes") read one request body concurrently: an upload is hashed and decoded at the same time.
 *
 *            .--- done ------ done ---------------- filled
 *            v                v                     v
 *     [      |  hashing...    |  decoding...        |      ]   a ring; the slowest lane frees the space
 *
 * The body goes through a ring buffer of at most 2 MiB. Each lane gets all of it, in order, on the pool, in pieces of what has
 * gathered (up to a quarter of the ring): few hand-overs, and an upload takes as long as its slowest lane, not the sum of all.
 * A full ring stops reading from the socket. */
#pragma once

#include "api/impl.h"
#include "core/pool.h"

struct body_consumer {
    enum pool_job job;
    bool (*take)(void *arg, struct sl_bytes bytes); /* on a pool thread; false ends body_tee_run with SL_MALFORMED */
    void *arg;
};

/* Limit for slow clients: SL_TIMEOUT when the body is more than `grace_ms` later than it would be at a constant `min_rate`
 * bytes a second (0 = no limit). Only the time spent waiting for the client counts. */
struct body_tee_pace {
    uint64_t min_rate, grace_ms;
};

enum { BODY_TEE_MAX_CONSUMERS = 4 };

/* Reads the body of a request and passes all of it to each of the `count` consumers (at most BODY_TEE_MAX_CONSUMERS). When it returns, no
 * consumer runs any more. SL_OK: all have taken the whole body. SL_CANCELLED: the server has answered, or the client is gone. SL_MALFORMED,
 * with no message: a consumer's `take` returned false. SL_TIMEOUT: the client is too slow. SL_BUSY: out of memory, fibers or pool slots.
 * Else SL_INTERNAL. */
enum sl_code body_tee_run(struct http_exchange *x, const struct body_consumer *lanes, size_t count,
                          const struct body_tee_pace *pace, struct sl_error *error) SL_SUSPENDS;
