/* Limit of an answer's size (max_response_bytes). */
#include "api/answer_limit.h"

#include "core/log.h"

void answer_limit_begin(struct answer_limit *limit, const struct sl_arena *arena, uint64_t max)
{
    *limit = (struct answer_limit){.arena = arena, .arena_start = arena->used, .max = max};
}

/* Returns `expected`, but at most the limit plus 64 KiB: the limit holds for the frames, and more of the answer follows the last one. */
uint64_t answer_limit_reserve(const struct answer_limit *limit, uint64_t expected)
{
    enum { BEHIND_LAST_FRAME = 64 * 1024 };
    uint64_t most = limit->max < UINT64_MAX - BEHIND_LAST_FRAME ? limit->max + BEHIND_LAST_FRAME : UINT64_MAX;
    return expected < most ? expected : most;
}

void answer_limit_write(const struct answer_limit *limit, struct sl_json_writer *w)
{
    if (!limit->omitted)
        return;
    sl_json_member_u64(w, "omitted_frames", limit->omitted);
    log_warn("api", "dropped frames because the response reached max_response_bytes", LOG_U64("frames", limit->omitted),
             LOG_U64("max_response_bytes", limit->max));
}
