/* Whether anybody still wants what a thread works on.
 *
 * Who runs work for somebody that may leave before its end puts a flag in front of it; once that is raised, whatever is charged
 * for on the thread (steps of a budget, memory of arenas, buffers and arrays) is refused, so that the work ends by its ordinary
 * error paths. What it leaves is of no use then, and says nothing about the file. A raised flag stays raised. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The flag of the calling thread; NULL = its work is never cancelled. Set and read by the functions below. */
extern _Thread_local const atomic_bool *sl_cancel_flag;

/* From now on, until it is called again; returns the flag before. */
static inline const atomic_bool *sl_cancel_watch(const atomic_bool *flag)
{
    const atomic_bool *before = sl_cancel_flag;
    sl_cancel_flag = flag;
    return before;
}

/* Whether the calling thread's work is to end. */
static inline bool sl_is_cancelled(void)
{
    return sl_cancel_flag && atomic_load_explicit(sl_cancel_flag, memory_order_relaxed);
}
