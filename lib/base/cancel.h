/* Cancellation of the work of a thread.
 *
 * A caller that runs work for a client that may go away gives the thread a flag (sl_cancel_watch) and sets it to true to cancel the work.
 * From then on budgets, arenas, buffers and arrays refuse all steps and memory to that thread, so the work ends through its ordinary error
 * paths. Its result must be discarded and says nothing about the file. The flag never becomes false again. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The flag of the calling thread; NULL = its work is never cancelled. Accessed through the functions below. */
extern _Thread_local const atomic_bool *sl_cancel_flag;

/* Lets `flag` (NULL: nothing) cancel the calling thread's work, until the next call. Returns the previous flag, which the caller sets again
 * when the work has ended. */
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
