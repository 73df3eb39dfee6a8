/* Limit of an answer's size (max_response_bytes).
 *
 * A short request can ask for a long answer: a long name times many frames. So frames are counted while they are made: by the
 * least number of bytes that each takes in the answer, and by the bytes that were allocated from the request's arena. At the
 * limit no further frames are made. The writer, which alone knows the final length of the texts, leaves out the frames that do
 * not fit. The answer gives the number of omitted frames ("omitted_frames"). All functions may run on any thread. */
#pragma once

#include "base/arena.h"
#include "base/cancel.h"
#include "base/json_write.h"

struct answer_limit {
    const struct sl_arena *arena;
    uint64_t arena_start; /* arena->used at answer_limit_begin() or the last answer_limit_step() */
    uint64_t max;         /* bytes of the whole answer; UINT64_MAX = no limit */
    uint64_t least;       /* lower bound of the bytes that the frames made so far take */
    uint64_t omitted;     /* frames left out of the answer, or written without symbolication as the client sent them */
};

/* Begins to count frames, whose texts are allocated from `arena`; the answer may have `max` bytes (UINT64_MAX: no limit). */
void answer_limit_begin(struct answer_limit *limit, const struct sl_arena *arena, uint64_t max);

/* Call before the next step of making frames (first their names, then source lines): each step may allocate as many bytes from the arena as
 * the limit allows. */
static inline void answer_limit_step(struct answer_limit *limit)
{
    limit->arena_start = limit->arena->used;
}

/* True if the current step has not allocated more bytes from the arena than the limit allows. */
static inline bool answer_limit_has_memory(const struct answer_limit *limit)
{
    return limit->arena->used - limit->arena_start <= limit->max;
}

/* Counts a frame that takes at least `bytes` in the answer. False when it does not fit, when the current step has allocated too much, or
 * when the job is cancelled. */
static inline bool answer_limit_take(struct answer_limit *limit, uint64_t bytes)
{
    limit->least += bytes;
    return limit->least <= limit->max && answer_limit_has_memory(limit) && !sl_is_cancelled();
}

/* True if the answer written so far and `behind` more bytes are within the limit. */
static inline bool answer_limit_fits(const struct answer_limit *limit, const struct sl_buf *out, uint64_t behind)
{
    return limit->max >= behind && out->size <= limit->max - behind;
}

/* Returns how many bytes to reserve for an answer that would have `expected` bytes without the limit. */
uint64_t answer_limit_reserve(const struct answer_limit *limit, uint64_t expected);

/* If frames were left out: writes the member "omitted_frames" into the open object, and a warning into the log. */
void answer_limit_write(const struct answer_limit *limit, struct sl_json_writer *w);
