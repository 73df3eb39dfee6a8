/* Several consumers (lanes) read one request body concurrently.
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

/* SL_OK: all lanes have taken the whole body. SL_CANCELLED: the server has answered, or the client is gone. SL_MALFORMED, with
 * no message: a lane refused. SL_TIMEOUT: the client is too slow. SL_BUSY: no memory, or no free pool slot. Else SL_INTERNAL.
 * When it returns, no lane is running. At most BODY_TEE_MAX_CONSUMERS lanes. */
enum { BODY_TEE_MAX_CONSUMERS = 4 };
enum sl_code body_tee_run(struct http_exchange *x, const struct body_consumer *lanes, size_t count,
                          const struct body_tee_pace *pace, struct sl_error *error) SL_SUSPENDS;
