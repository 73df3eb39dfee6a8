/* How large an answer may become (max_response_bytes).
 *
 * A short request can ask for a long answer: a long name times many frames. So frames are counted while they are made: by what
 * each takes in the answer at least, and by what the request's arena came to hold since. Once there is no room, no further
 * frames are made; and a writer, which alone knows how long texts become, writes none that do not fit. The answer says how
 * many frames it lacks. Pure: loop or pool. */
#pragma once

#include "base/arena.h"
#include "base/cancel.h"
#include "base/json_write.h"

struct answer_limit {
    const struct sl_arena *arena;
    uint64_t arena_start; /* bytes it held before this step */
    uint64_t max;         /* bytes of the whole answer; UINT64_MAX = no limit */
    uint64_t least;       /* bytes that the frames made so far take in it at least */
    uint64_t omitted;     /* frames that were left out, or stay as they were sent */
};

/* From here on frames are made whose texts lie in the arena. */
void answer_limit_begin(struct answer_limit *limit, const struct sl_arena *arena, uint64_t max);

/* The next step (names, lines of source) may add as much to the arena again. */
static inline void answer_limit_step(struct answer_limit *limit)
{
    limit->arena_start = limit->arena->used;
}

/* Whether the arena may get further texts of frames. */
static inline bool answer_limit_has_memory(const struct answer_limit *limit)
{
    return limit->arena->used - limit->arena_start <= limit->max;
}

/* Counts what another frame takes at least, in bytes. False when there is no room for it, or nobody who wants it. */
static inline bool answer_limit_take(struct answer_limit *limit, uint64_t bytes)
{
    limit->least += bytes;
    return limit->least <= limit->max && answer_limit_has_memory(limit) && !sl_is_cancelled();
}

/* Whether the written text is still shorter than the answer may be, when `behind` bytes are to follow. */
static inline bool answer_limit_fits(const struct answer_limit *limit, const struct sl_buf *out, uint64_t behind)
{
    return limit->max >= behind && out->size <= limit->max - behind;
}

/* The bytes to reserve for an answer that is expected to have so many. */
uint64_t answer_limit_reserve(const struct answer_limit *limit, uint64_t expected);

/* Writes the member "omitted_frames" into the open object, and a line into the log, when there are any. */
void answer_limit_write(const struct answer_limit *limit, struct sl_json_writer *w);
