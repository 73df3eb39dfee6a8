/* A request's body read by several workers side by side.
 *
 *            .--- done ------ done ---------------- filled
 *            v                v                     v
 *     [      |  hashing...    |  decoding...        |      ]   a ring; the lane that is furthest behind makes room
 *
 * The body goes into a ring of at most 2 MiB. Each lane has it from the ring in order and in full, on the pool, as much at a
 * time as has gathered (up to a quarter of the ring), so that an upload takes as long as its slowest lane and not as long as
 * all of them, and few hand-overs are made. A full ring stops the reading of the socket. */
#pragma once

#include "api/impl.h"
#include "core/pool.h"

struct lane {
    enum pool_job job;
    bool (*take)(void *arg, struct sl_bytes bytes); /* on a pool thread; false ends everything */
    void *arg;
};

/* How slow a client may be: not more than `grace_ms` behind one that sends `min_rate` bytes a second (0 = any). Only the time
 * counts in which the client was waited for. */
struct lanes_pace {
    uint64_t min_rate, grace_ms;
};

/* SL_OK: all lanes have taken all. SL_CANCELLED: the server has answered or the client is gone. SL_MALFORMED, without a
 * message: a lane refused. SL_TIMEOUT: the client is too slow. SL_BUSY: there is no memory, or no place. Else SL_INTERNAL. In
 * each case no lane is at work any more. At most LANES_MAX lanes. */
enum { LANES_MAX = 4 };
enum sl_code lanes_run(struct http_exchange *x, const struct lane *lanes, size_t count, const struct lanes_pace *pace,
                       struct sl_error *error) SL_SUSPENDS;
