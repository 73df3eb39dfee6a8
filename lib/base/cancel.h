/* Cancellation of the work of a thread.
 *
 * A caller that runs work for a client that may go away sets a flag for the thread. Once the flag is raised, every charge on
 * that thread (steps of a budget, memory of arenas, buffers and arrays) is refused, so the work ends through its ordinary error
 * paths. Its result must be discarded and says nothing about the file. A raised flag stays raised. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The flag of the calling thread; NULL = its work is never cancelled. Accessed through the functions below. */
extern _Thread_local const atomic_bool *sl_cancel_flag;

/* Sets the flag of the calling thread, until the next call; returns the previous flag, to be restored. */
static inline const atomic_bool *sl_cancel_watch(const atomic_bool *flag)
{
    const atomic_bool *before = sl_cancel_flag;
    sl_cancel_flag = flag;
    return before;
}

/* True if the calling thread's work has been cancelled. */
static inline bool sl_is_cancelled(void)
{
    return sl_cancel_flag && atomic_load_explicit(sl_cancel_flag, memory_order_relaxed);
}
