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
    struct fiber_group **sibling_link; /* what points to this group in the parent's list */
    struct fiber *first;               /* running or suspended fibers */
    struct fiber *waiter;              /* in fiber_group_wait */
    size_t count;                      /* live fibers of the group itself */
    void *timer;                       /* deadline, NULL when none */
    atomic_bool cancelled;             /* written by the loop; work on the pool may look at it */
    bool expired;                      /* cancelled by its deadline */
    void (*on_empty)(
        struct fiber_group *group); /* called by the loop when the last fiber has ended, or in fiber_run; may
                                                    be NULL, and may free or reuse the group's memory */
};

/* `parent` may be NULL. The group is embedded in its owner and must outlive its fibers. */
void fiber_group_init(struct fiber_group *group, struct fiber_group *parent);

/* Cancels the group when `ms` milliseconds from now have passed. Once per group. */
void fiber_group_deadline(struct fiber_group *group, uint64_t ms);

void fiber_group_cancel(struct fiber_group *group);

/* Suspends until no fiber of the group is left (cancelled or not), then detaches it from its parent. Must be called
 * (or every fiber be known to have ended: fiber_group_finish) before the group's memory goes away. */
void fiber_group_wait(struct fiber_group *group) SL_SUSPENDS;
void fiber_group_finish(struct fiber_group *group);

/* Starts `run(arg)` as a fiber of the group, on the next turn of the loop. False when max_fibers run or memory is out.
 * Loop thread only, from a fiber or from a loop callback. */
bool fiber_start(struct fiber_group *group, void (*run)(void *arg), void *arg);

/* As fiber_start, for work that was admitted already: max_fibers is no limit to it. False when memory is out. */
bool fiber_start_inner(struct fiber_group *group, void (*run)(void *arg), void *arg);

/* As fiber_start, but a call from a loop callback runs the fiber at once, until it first suspends. */
bool fiber_start_now(struct fiber_group *group, void (*run)(void *arg), void *arg);

/* As fiber_start, but the fiber runs at once, until it first suspends; then the caller, a fiber too or the loop, goes on
 * without having been suspended. For what mostly ends without waiting: it takes no turn of the loop. */
bool fiber_run(struct fiber_group *group, void (*run)(void *arg), void *arg);

/* As fiber_start, for what only makes the running fiber's work faster: false also when half of max_fibers run, as requests at
 * the door come first. */
bool fiber_help(struct fiber_group *group, void (*run)(void *arg), void *arg);

/* Runs `run(arg)` in the running fiber and in up to `helpers` further ones, fewer when half of max_fibers run: helpers only
 * make it faster, and requests at the door come first. They share a list in `arg`, each taking from it until nothing is left or it is cancelled, which happens to all of them with the
 * running fiber's group. Returns when all have ended; false when cancelled. */
bool fiber_crew(void (*run)(void *arg), void *arg, size_t helpers) SL_SUSPENDS;

/* Such a crew for a list of items, of at most `at_once` fibers: runs `run` for each. False when cancelled, and then not for all. */
bool fiber_for_each(void (*run)(void *item), void **items, size_t count, size_t at_once) SL_SUSPENDS;

struct fiber *fiber_self(void); /* NULL outside of fibers */
bool fiber_cancelled(void);     /* of the running fiber's group */
bool fiber_expired(void);       /* and by a deadline: its own or that of a group above it */

/* The running fiber's group, as the parent of groups that are to end with it; NULL outside of fibers. */
struct fiber_group *fiber_group_current(void);

/* Parks the running fiber until fiber_wake; returns false when its group is or gets cancelled. The building block of
 * everything that suspends: whoever gives the fiber to a callback must, on false, take it back before returning. */
bool fiber_suspend(void) SL_SUSPENDS;
/* Goes on behind the others that are ready; for work that goes on when turn_is_over(). False when cancelled. */
bool fiber_yield(void) SL_SUSPENDS;

/* As fiber_suspend, but not woken by cancellation: for operations that must be waited out (a pool job that uses the
 * caller's stack). */
void fiber_suspend_uncancellable(void) SL_SUSPENDS;

/* What the running fiber is about to wait for, for people who ask what the service does; until it goes on. */
void fiber_expect(const char *what);
/* What the first fiber of the group, or of the groups below it, waits for; NULL: nobody has said. */
const char *fiber_group_expects(const struct fiber_group *group);

/* Lets a parked fiber go on in this or the next turn of the loop. Waking a fiber twice before it ran counts once; a
 * running fiber cannot be woken, so whoever may be answered before suspending keeps a flag: while (!done) suspend. Loop
 * thread only. */
void fiber_wake(struct fiber *fiber);

/* False when cancelled. */
bool fiber_sleep(uint64_t ms) SL_SUSPENDS;

/* A list of fibers waiting for one event (a flight in the cache, a free slot). Zeros are an empty list. */
struct fiber_wait_node {
    struct fiber_wait_node *next, *previous;
    struct fiber *fiber;
    bool woken;
};
struct fiber_wait_list {
    struct fiber_wait_node *first, *last;
};
enum fiber_wait { FIBER_WOKEN, FIBER_TIMED_OUT, FIBER_CANCELLED };

/* Waits on the list; `timeout_ms` UINT64_MAX = for ever. */
enum fiber_wait fiber_wait_on(struct fiber_wait_list *list, uint64_t timeout_ms) SL_SUSPENDS;
void fiber_wake_one(struct fiber_wait_list *list);
void fiber_wake_all(struct fiber_wait_list *list);

/* The request id that log lines of this fiber, and of fibers it starts from now on, carry (at most 128 bytes, copied). */
void fiber_set_request_id(struct sl_str id);
struct sl_str fiber_request_id(void); /* empty outside of fibers */

/* The trace that the request is a part of, as its client tells (sentry-trace, baggage): for this fiber and those it starts from
 * now on. Copied; both empty = none. */
void fiber_set_trace(struct sl_str trace, struct sl_str baggage);
struct sl_str fiber_trace(void); /* data NULL: none, or outside of fibers */
struct sl_str fiber_baggage(void);

/* What this fiber, and its crew, has threads of the pool work on from now on; NULL = nothing that is to be noted. It lives until
 * the next call. */
struct ledger_work;
void fiber_set_work(const struct ledger_work *work);
const struct ledger_work *fiber_work(void); /* NULL outside of fibers */

/* What this fiber, and its crew, has the pool do from now on ends early once the flag is raised (base/cancel.h, pool_run); NULL =
 * it is done to its end. The flag lives until the next call, and until the work has ended. */
void fiber_set_cancel(const atomic_bool *flag);
const atomic_bool *fiber_cancel_flag(void); /* NULL outside of fibers */

/* How long the running fiber has stood in queues, for memory or a thread of the pool: this much more; in all. */
void fiber_note_wait(uint64_t ns);
uint64_t fiber_waited_ns(void);

/* Whether the running fiber has no room left on its stack: the address lies in its guard page. Async-signal-safe. */
bool fiber_overflowed(const void *address);

/* For metrics. */
size_t fiber_live(void);
size_t fiber_stacks_allocated(void);
/* The most bytes that a fiber which has ended was seen to have used of its stack, in pages. A system call for each stack that
 * is kept. */
size_t fiber_stack_peak(void);

/* max_fibers of the configuration; default 20000. What is begun inside of running requests may go beyond it. */
void fiber_set_limit(size_t max_fibers);
