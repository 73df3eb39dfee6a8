/* Fibers: requests as straight-line code on one loop thread.
 *
 * A fiber is a stackful coroutine with its own guarded stack (256 KiB reserved, only touched pages used, stacks are
 * recycled). It runs on the loop thread until it suspends; nothing preempts it, so service state needs no lock.
 * Functions that may suspend their fiber are marked SL_SUSPENDS and may only be called from a fiber.
 *
 * Every fiber belongs to a group. A group can be waited for, has an optional deadline, and can be cancelled: every
 * suspended or later suspending operation of its fibers then returns SL_CANCELLED (or false) at once, so that the fibers
 * unwind by their ordinary error paths. Cancelling is the only way to end a fiber from outside. Groups nest: cancelling
 * a parent cancels its children. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define SL_SUSPENDS /* the caller's fiber may be suspended */

struct fiber;

struct fiber_group {
    struct fiber_group *parent, *next_sibling, *children;
    struct fiber_group **parent_link; /* where the parent's list points to this group */
    struct fiber *first;              /* running or suspended fibers */
    struct fiber *waiter;             /* the fiber in fiber_group_wait */
    size_t count;                     /* live fibers of the group itself, without those of child groups */
    void *timer;                      /* the timer of the deadline; NULL = no deadline */
    atomic_bool cancelled;            /* written by the loop; pool threads may read it */
    bool expired;                     /* the deadline has cancelled the group */
    /* Called when the last fiber of the group has ended, by the loop or in fiber_run; it may free or reuse the group's memory. NULL =
     * nothing. */
    void (*on_empty)(struct fiber_group *group);
};

/* `parent` may be NULL. The group is embedded in its owner and must outlive its fibers. */
void fiber_group_init(struct fiber_group *group, struct fiber_group *parent);

/* Cancels the group when `ms` milliseconds from now have passed. Once per group: a second call is ignored. Without memory for a timer
 * the group has no deadline. */
void fiber_group_deadline(struct fiber_group *group, uint64_t ms);

/* Makes every present and later wait of the group's fibers, and of its child groups, end at once with SL_CANCELLED or false. */
void fiber_group_cancel(struct fiber_group *group);

/* fiber_group_wait suspends the caller until all fibers of the group have ended (cancelled or not), then takes the group out of its parent.
 * fiber_group_finish only takes it out, for a group whose fibers are known to have ended. Call one of them before the group's memory is
 * freed. */
void fiber_group_wait(struct fiber_group *group) SL_SUSPENDS;
void fiber_group_finish(struct fiber_group *group);

/* Starts `run(arg)` as a fiber of the group in the next turn of the loop. False when max_fibers run or memory is out. Loop
 * thread only, from a fiber or from a loop callback. */
bool fiber_start(struct fiber_group *group, void (*run)(void *arg), void *arg);

/* Like fiber_start, but ignores max_fibers: for work of a request that has begun, which must not fail because new requests use up the
 * limit. False when memory is out. */
bool fiber_start_admitted(struct fiber_group *group, void (*run)(void *arg), void *arg);

/* In a fiber the same as fiber_start; in a loop callback the same as fiber_run, which runs the new fiber at once, until it first
 * suspends. */
bool fiber_start_now(struct fiber_group *group, void (*run)(void *arg), void *arg);

/* Like fiber_start, but the fiber runs at once, until it first suspends; then the caller (a fiber or the loop) continues
 * without having been suspended. For work that mostly ends without waiting: it saves a turn of the loop. */
bool fiber_run(struct fiber_group *group, void (*run)(void *arg), void *arg);

/* Like fiber_start, for helpers that only make the running fiber's work faster: also false when half of max_fibers run, so that
 * fibers are left for new requests. */
bool fiber_start_helper(struct fiber_group *group, void (*run)(void *arg), void *arg);

/* Runs `run(arg)` in the running fiber and in up to `helpers` new ones; no new ones while half of max_fibers run, so that fibers are left
 * for requests. `run` takes items of a work list in `arg`, which all these fibers share, until the list is empty or fiber_cancelled():
 * cancelling the running fiber's group cancels all. Returns when all have ended; false when cancelled. */
bool fiber_run_workers(void (*run)(void *arg), void *arg, size_t helpers) SL_SUSPENDS;

/* Calls `run` for each item, in at most `at_once` fibers, the running one among them. False when cancelled: then some items were
 * skipped. */
bool fiber_for_each(void (*run)(void *item), void **items, size_t count, size_t at_once) SL_SUSPENDS;

struct fiber *fiber_self(void); /* NULL outside of fibers */
bool fiber_cancelled(void);     /* true if the running fiber's group is cancelled */
bool fiber_expired(void);       /* true if a deadline has cancelled the running fiber's group, or a group above it */

/* Returns the running fiber's group, to be the parent of groups that end with it; NULL outside of fibers. */
struct fiber_group *fiber_group_current(void);

/* Parks (stops) the running fiber until fiber_wake. False if its group is cancelled, before or meanwhile. All other waits are built on this
 * one. A caller that has registered a callback to wake this fiber must unregister it before it returns because of false: the callback would
 * wake a fiber that waits for something else, or has ended. */
bool fiber_suspend(void) SL_SUSPENDS;
/* Lets the other fibers that are ready run first: for long work on the loop, when loop_slice_is_used_up(). False when cancelled. */
bool fiber_yield(void) SL_SUSPENDS;

/* Like fiber_suspend, but cancelling does not wake the fiber: for an operation that must be waited for, such as a pool job that uses the
 * caller's stack. */
void fiber_suspend_uncancellable(void) SL_SUSPENDS;

/* Names what the running fiber is about to wait for ("memory"); the name holds until the fiber is woken. Reports of the service's state
 * show it. `what` is not copied. */
void fiber_set_wait_reason(const char *what);
/* Returns the wait reason (fiber_set_wait_reason) of the first fiber found that waits and has set one: in the group, else in its child
 * groups. NULL if there is none. */
const char *fiber_group_wait_reason(const struct fiber_group *group);

/* Makes a parked fiber run again in this or the next turn of the loop. Waking a fiber twice before it runs counts once. Waking
 * a running fiber has no effect, so a fiber whose event may come before it suspends keeps a flag: while (!done) suspend. Loop
 * thread only. */
void fiber_wake(struct fiber *fiber);

/* Sleeps for `ms` milliseconds, then returns true. Returns false early when cancelled, and at once without memory for a timer. */
bool fiber_sleep(uint64_t ms) SL_SUSPENDS;

/* A list of fibers waiting for one event (an in-flight computation of the cache, a free slot). Zeros are an empty list. */
struct fiber_wait_node {
    struct fiber_wait_node *next, *previous;
    struct fiber *fiber;
    bool woken;
};
struct fiber_wait_list {
    struct fiber_wait_node *first, *last;
};
enum fiber_wait { FIBER_WOKEN, FIBER_TIMED_OUT, FIBER_CANCELLED };

/* Waits at the end of the list until fiber_wake_one or fiber_wake_all wakes this fiber; `timeout_ms` UINT64_MAX = for ever. Without memory
 * for a timer it times out at once. */
enum fiber_wait fiber_wait_on(struct fiber_wait_list *list, uint64_t timeout_ms) SL_SUSPENDS;
/* Wake the fiber that has waited longest, or all; nothing if none waits. */
void fiber_wake_one(struct fiber_wait_list *list);
void fiber_wake_all(struct fiber_wait_list *list);

/* Sets the request id in the log lines of this fiber and of the fibers it starts later (at most 128 bytes, copied). */
void fiber_set_request_id(struct sl_str id);
struct sl_str fiber_request_id(void); /* empty outside of fibers */

/* Sets the distributed trace of the request, from the client's headers sentry-trace and baggage, for this fiber and those it
 * starts later. Copied; both empty = none. */
void fiber_set_trace(struct sl_str trace, struct sl_str baggage);
struct sl_str fiber_trace(void); /* data is NULL if there is none, or outside of fibers */
struct sl_str fiber_baggage(void);

/* Sets the work that the journal (journal.h) notes for pool jobs of this fiber, and of its helpers (fiber_start_helper); NULL = none is
 * noted. `work` must live until the next call. */
struct journal_work;
void fiber_set_work(const struct journal_work *work);
const struct journal_work *fiber_work(void); /* NULL outside of fibers */

/* Sets a flag for pool jobs of this fiber and of its helpers (fiber_start_helper): once it is raised, they end early (base/cancel.h,
 * pool_run). NULL = they run to their end. The flag must live until the next call, and until the jobs have ended. */
void fiber_set_cancel(const atomic_bool *flag);
const atomic_bool *fiber_cancel_flag(void); /* NULL outside of fibers */

/* fiber_add_wait_ns adds to the time that the running fiber has waited in queues, for memory or a pool thread; fiber_waited_ns returns its
 * sum. */
void fiber_add_wait_ns(uint64_t ns);
uint64_t fiber_waited_ns(void);

/* True if the address lies in the guard page of the running fiber's stack: a stack overflow. Async-signal-safe. */
bool fiber_overflowed(const void *address);

/* For metrics. */
size_t fiber_count(void);
size_t fiber_stacks_allocated(void);
/* Returns the largest stack use of the fibers that have ended, in bytes (whole pages). Costs a system call for each stack that is kept for
 * reuse. */
size_t fiber_stack_peak(void);

/* Sets how many fibers may live at one time (max_fibers of the configuration); 20000 before the first call. Only fiber_start_admitted goes
 * beyond it. */
void fiber_set_limit(size_t max_fibers);
