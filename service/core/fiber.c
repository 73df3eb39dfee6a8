/* A fiber lives at the top of its own stack mapping:
 *
 *     +------------+---------------------------------------+--------------+
 *     | guard page | stack, grows down          <----- top | struct fiber |
 *     +------------+---------------------------------------+--------------+
 *
 * Stacks of ended fibers are kept mapped on a list (`warm`) for the next fibers. A fiber that parks (stops running until it is woken)
 * returns control to its resumer: the loop, or the fiber that has just started it. Ready fibers wait in a queue that runs after the
 * loop's timers (prepare) and after its I/O (check). */
#include "core/fiber.h"

#include <sys/mman.h>
#include <stdlib.h>

#include "core/context.h"
#include "core/impl.h"
#include "core/loop.h"
#include "core/loop_slice.h"

enum { STACK_SIZE = 256 * 1024, GUARD_SIZE = 4096, WARM_STACKS = 512, MAX_REQUEST_ID = 128 };

struct fiber_trace_ids { /* distributed trace of a request; the texts follow the struct */
    unsigned holders;    /* number of fibers that refer to it */
    struct sl_str trace, baggage;
};

struct fiber {
    void *sp;
    struct fiber *next_ready; /* next one in the queue of ready fibers or, after the fiber has ended, in `warm` */
    struct fiber_group *group;
    struct fiber *next, **link; /* neighbours in the list of the group's fibers */
    void (*run)(void *arg);
    void *arg;
    bool parked, ready, cancellable, ended;
    void *fake_stack, *tsan; /* state of AddressSanitizer and ThreadSanitizer for this fiber */
    const struct journal_work *work;
    const atomic_bool *cancel;     /* flag that cancels the fiber's pool jobs; NULL = none */
    struct fiber_trace_ids *trace; /* a reference; NULL = none */
    uint64_t waited_ns;
    const char *wait_reason; /* what the fiber waits for while it is parked (fiber_set_wait_reason); NULL = not named */
    uint8_t request_id_size;
    char request_id[MAX_REQUEST_ID];
};

/* A one-shot timer. Stopped timers are kept in `free_timers` for the next use, as each new one would cost an allocation, and closing a
 * libuv timer takes a turn of the loop. */
struct timer {
    uv_timer_t handle;
    struct timer *next_free;
    struct fiber *fiber;       /* the fiber to wake when the timer fires; NULL = none */
    struct fiber_group *group; /* the group to cancel when the timer fires; NULL = none */
    bool fired;
};

static uv_loop_t *loop;
static struct fiber *ready_first, *ready_last;
static struct fiber *warm;
static size_t warm_count, live, stacks, limit = 20000, deepest;
static struct timer *free_timers;
static struct fiber_group root;
static _Thread_local struct fiber *current;
static struct resumer { /* where to return to when the running fiber parks */
    void *sp, *fake_stack, *tsan;
    const void *stack;
    size_t stack_size;
} resumer;

/* ---- stacks ---- */
static uint8_t *get_stack(struct fiber *fiber)
{
    return (uint8_t *)(fiber + 1) - STACK_SIZE;
}

/* Takes the stack of an ended fiber from the list `warm`, or maps a new one. Returns the place of the `struct fiber` at its top; NULL when
 * out of memory or mappings. */
static struct fiber *stack_take(void)
{
    struct fiber *fiber = warm;
    if (fiber) {
        warm = fiber->next_ready;
        warm_count--;
        /* for AddressSanitizer: the last fiber may have left frames on the stack */
        context_clean(get_stack(fiber) + GUARD_SIZE, STACK_SIZE - GUARD_SIZE - sizeof *fiber);
        return fiber;
    }
    uint8_t *memory =
        mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (mprotect(memory, GUARD_SIZE, PROT_NONE) != 0) {
        munmap(memory, STACK_SIZE);
        return NULL;
    }
    context_root(memory + GUARD_SIZE, STACK_SIZE - GUARD_SIZE); /* LeakSanitizer finds pointers in it */
    stacks++;
    return (struct fiber *)(memory + STACK_SIZE) - 1;
}

/* Raises `deepest`, the largest stack use seen, if this stack was used further down. The stack grows down, and pages that were never
 * touched are not resident: so the lowest resident page above the guard page shows how far. */
static void stack_measure(struct fiber *fiber)
{
    enum { PAGE = 4096, PAGES = STACK_SIZE / PAGE };
    unsigned char resident[PAGES] = {0}; /* bit 0 of each: the page is resident */
    size_t untouched = GUARD_SIZE / PAGE;
    if (mincore(get_stack(fiber), STACK_SIZE, resident) != 0)
        return;
    while (untouched < PAGES && !(resident[untouched] & 1))
        untouched++;
    size_t depth = STACK_SIZE - untouched * PAGE;
    deepest = depth > deepest ? depth : deepest;
}

/* Measures the use of a stack and returns it to the kernel. The sanitizers must forget it first: its addresses will be used again. */
static void stack_unmap(struct fiber *fiber)
{
    uint8_t *memory = get_stack(fiber);
    stack_measure(fiber);
    context_clean(memory + GUARD_SIZE, STACK_SIZE - GUARD_SIZE);
    context_unroot(memory + GUARD_SIZE, STACK_SIZE - GUARD_SIZE);
    munmap(memory, STACK_SIZE);
    stacks--;
}

/* Keeps the stack of an ended fiber in the list `warm` for a later fiber, or unmaps it if enough are kept. */
static void stack_give(struct fiber *fiber)
{
    if (warm_count >= WARM_STACKS) {
        stack_unmap(fiber);
        return;
    }
    fiber->next_ready = warm;
    warm = fiber;
    warm_count++;
}

/* ---- switching ---- */
/* Stops the running fiber: switches back to whoever resumed it, the loop or another fiber. Returns when the fiber is resumed. Tells the
 * sanitizers of the switch: AddressSanitizer by context_start_switch and context_finish_switch, ThreadSanitizer by context_tsan_to. */
static void park(struct fiber *fiber)
{
    /* NULL tells the sanitizer that this fiber will not run again, so that it frees the fiber's fake stack. */
    context_start_switch(fiber->ended ? NULL : &fiber->fake_stack, resumer.stack, resumer.stack_size);
    context_tsan_to(resumer.tsan);
    context_switch(&fiber->sp, resumer.sp);
    context_finish_switch(fiber->fake_stack, &resumer.stack, &resumer.stack_size);
}

/* Runs as the first function on a fiber's stack. It never returns, as it has no caller: for an ended fiber, park() does not return. */
static void fiber_main(void *arg)
{
    struct fiber *fiber = arg;
    context_finish_switch(NULL, &resumer.stack, &resumer.stack_size);
    fiber->run(fiber->arg);
    fiber->ended = true;
    park(fiber);
}

/* Counts one more reference to the trace and returns it. NULL is allowed. */
static struct fiber_trace_ids *trace_hold(struct fiber_trace_ids *trace)
{
    if (trace)
        trace->holders++;
    return trace;
}
/* Drops a reference to the trace; the last one frees it. NULL is allowed. */
static void trace_release(struct fiber_trace_ids *trace)
{
    if (trace && --trace->holders == 0)
        free(trace);
}

/* Frees an ended fiber. Runs on the stack of whoever resumed it, as the fiber's own is freed. If it was the last one of its group, wakes
 * the fiber that waits for the group and calls the group's `on_empty`. */
static void fiber_end(struct fiber *fiber)
{
    struct fiber_group *group = fiber->group;
    trace_release(fiber->trace);
    if (fiber->next)
        fiber->next->link = fiber->link;
    *fiber->link = fiber->next;
    group->count--;
    live--;
    context_tsan_free(fiber->tsan);
    stack_give(fiber);
    if (group->count > 0)
        return;
    if (group->waiter)
        fiber_wake(group->waiter);
    if (group->on_empty)
        group->on_empty(group);
}

/* Runs a fiber until it parks (waits to be woken) or ends. Saves `resumer`, where the caller's own park() returns to, as the caller may be
 * a fiber that starts another one which runs at once (fiber_run). The sanitizers are told of both switches (context_tsan_to, ...). */
static void resume(struct fiber *fiber)
{
    struct resumer outer = resumer;
    struct fiber *self = current;
    fiber->ready = false;
    fiber->parked = false;
    current = fiber;
    fiber->wait_reason = NULL; /* it waits no more */
    resumer.tsan = context_tsan_self();
    context_start_switch(&resumer.fake_stack, get_stack(fiber) + GUARD_SIZE, STACK_SIZE - GUARD_SIZE - sizeof *fiber);
    context_tsan_to(fiber->tsan);
    context_switch(&resumer.sp, fiber->sp);
    context_finish_switch(resumer.fake_stack, NULL, NULL);
    current = self;
    resumer = outer;
    if (fiber->ended)
        fiber_end(fiber);
}

/* Appends the fiber to the queue of those that fibers_run_ready runs. */
static void make_ready(struct fiber *fiber)
{
    fiber->ready = true;
    fiber->next_ready = NULL;
    if (ready_last)
        ready_last->next_ready = fiber;
    else
        ready_first = fiber;
    ready_last = fiber;
}

/* Runs only the fibers that are ready at the call (up to `last`), and only until the time slice is used up: fibers that they wake run
 * later, so that the loop can poll first. True if some are left. */
bool fibers_run_ready(void)
{
    struct fiber *last = ready_last;
    bool go_on = ready_first != NULL;
    while (go_on) {
        struct fiber *fiber = ready_first;
        ready_first = fiber->next_ready;
        if (!ready_first)
            ready_last = NULL;
        resume(fiber);
        go_on = fiber != last && !loop_slice_is_used_up();
    }
    return ready_first != NULL;
}

/* ---- start ---- */
/* Creates a fiber in `group` (NULL: the root group) without starting it. It inherits request id and trace of the fiber that creates it, so
 * that its log lines can be found. NULL when out of memory. */
static struct fiber *fiber_new(struct fiber_group *group, void (*run)(void *arg), void *arg)
{
    if (!group)
        group = &root;
    struct fiber *fiber = stack_take();
    if (!fiber)
        return NULL;
    uint8_t id_size = current ? current->request_id_size : 0;
    if (id_size)
        memcpy(fiber->request_id, current->request_id, id_size);
    fiber->request_id_size = id_size;
    fiber->group = group;
    fiber->run = run;
    fiber->arg = arg;
    fiber->parked = true;
    fiber->cancellable = fiber->ended = false;
    fiber->fake_stack = NULL;
    fiber->work = NULL;
    fiber->cancel = NULL;
    fiber->trace = trace_hold(current ? current->trace : NULL);
    fiber->waited_ns = 0;
    fiber->wait_reason = NULL;
    fiber->tsan = context_tsan_new();
    /* the stack begins below the struct, aligned to 16 bytes */
    fiber->sp = context_make((void *)((uintptr_t)fiber & ~(uintptr_t)15), fiber_main, fiber);
    fiber->next = group->first;
    fiber->link = &group->first;
    if (fiber->next)
        fiber->next->link = &fiber->next;
    group->first = fiber;
    group->count++;
    live++;
    return fiber;
}

bool fiber_start_admitted(struct fiber_group *group, void (*run)(void *arg), void *arg)
{
    struct fiber *fiber = fiber_new(group, run, arg);
    if (!fiber)
        return false;
    make_ready(fiber);
    return true;
}
bool fiber_start(struct fiber_group *group, void (*run)(void *arg), void *arg)
{
    return live < limit && fiber_start_admitted(group, run, arg);
}
bool fiber_start_now(struct fiber_group *group, void (*run)(void *arg), void *arg)
{
    return current ? fiber_start(group, run, arg) : fiber_run(group, run, arg);
}

bool fiber_run(struct fiber_group *group, void (*run)(void *arg), void *arg)
{
    struct fiber *fiber = live < limit ? fiber_new(group, run, arg) : NULL;
    if (!fiber)
        return false;
    resume(fiber);
    return true;
}

struct fiber *fiber_self(void)
{
    return current;
}
struct fiber_group *fiber_group_current(void)
{
    return current ? current->group : NULL;
}
bool fiber_cancelled(void)
{
    return current && current->group->cancelled;
}
bool fiber_expired(void)
{
    const struct fiber_group *group = current ? current->group : NULL;
    while (group && !group->expired)
        group = group->parent;
    return group;
}

void fiber_set_request_id(struct sl_str id)
{
    if (!current)
        return;
    current->request_id_size = (uint8_t)(id.size < MAX_REQUEST_ID ? id.size : MAX_REQUEST_ID);
    if (id.size)
        memcpy(current->request_id, id.data, current->request_id_size);
}
struct sl_str fiber_request_id(void)
{
    return current ? (struct sl_str){current->request_id, current->request_id_size} : (struct sl_str){NULL, 0};
}
void fiber_set_work(const struct journal_work *work)
{
    if (current)
        current->work = work;
}
const struct journal_work *fiber_work(void)
{
    return current ? current->work : NULL;
}
void fiber_set_cancel(const atomic_bool *flag)
{
    if (current)
        current->cancel = flag;
}
const atomic_bool *fiber_cancel_flag(void)
{
    return current ? current->cancel : NULL;
}

/* Without memory the fiber has no trace afterwards: its previous trace would be wrong. */
void fiber_set_trace(struct sl_str trace, struct sl_str baggage)
{
    struct fiber_trace_ids *kept =
        current && (trace.size || baggage.size) ? malloc(sizeof *kept + trace.size + baggage.size) : NULL;
    if (kept) {
        char *text = (char *)(kept + 1);
        *kept = (struct fiber_trace_ids){
            .holders = 1, .trace = {text, trace.size}, .baggage = {text + trace.size, baggage.size}};
        memcpy(text, trace.size ? trace.data : "", trace.size);
        memcpy(text + trace.size, baggage.size ? baggage.data : "", baggage.size);
    }
    if (!current) /* `kept` is NULL then */
        return;
    trace_release(current->trace);
    current->trace = kept;
}

struct sl_str fiber_trace(void)
{
    return current && current->trace ? current->trace->trace : (struct sl_str){NULL, 0};
}
struct sl_str fiber_baggage(void)
{
    return current && current->trace ? current->trace->baggage : (struct sl_str){NULL, 0};
}
void fiber_add_wait_ns(uint64_t ns)
{
    if (current)
        current->waited_ns += ns;
}
uint64_t fiber_waited_ns(void)
{
    return current ? current->waited_ns : 0;
}

bool fiber_overflowed(const void *address)
{
    const uint8_t *guard = current ? get_stack(current) : NULL;
    return guard && (const uint8_t *)address >= guard && (const uint8_t *)address < guard + GUARD_SIZE;
}

/* ---- suspending ---- */
void fiber_set_wait_reason(const char *what)
{
    if (current)
        current->wait_reason = what;
}

const char *fiber_group_wait_reason(const struct fiber_group *group)
{
    const char *reason = NULL;
    for (const struct fiber *fiber = group->first; fiber && !reason; fiber = fiber->next)
        reason = fiber->wait_reason;
    for (const struct fiber_group *child = group->children; child && !reason; child = child->next_sibling)
        reason = fiber_group_wait_reason(child);
    return reason;
}

bool fiber_suspend(void)
{
    struct fiber *self = current;
    if (self->group->cancelled)
        return false;
    self->parked = self->cancellable = true; /* fiber_wake may wake it, and so may fiber_group_cancel */
    park(self);
    return !self->group->cancelled;
}

bool fiber_yield(void)
{
    struct fiber *self = current;
    if (self->group->cancelled)
        return false;
    self->parked = self->cancellable = true;
    make_ready(self);
    park(self);
    return !self->group->cancelled;
}

void fiber_suspend_uncancellable(void)
{
    struct fiber *self = current;
    self->parked = true;
    self->cancellable = false;
    park(self);
}

void fiber_wake(struct fiber *fiber)
{
    if (fiber->parked && !fiber->ready)
        make_ready(fiber);
}

/* ---- timers ---- */
/* Returns a timer that is not started, from `free_timers` or newly allocated; NULL when out of memory. */
static struct timer *timer_take(void)
{
    struct timer *timer = free_timers;
    if (timer) {
        free_timers = timer->next_free;
    } else {
        timer = malloc(sizeof *timer);
        if (!timer)
            return NULL;
        uv_timer_init(loop, &timer->handle);
        timer->handle.data = timer;
    }
    timer->fired = false;
    timer->fiber = NULL;
    timer->group = NULL;
    return timer;
}

static void timer_give(struct timer *timer)
{
    uv_timer_stop(&timer->handle);
    timer->next_free = free_timers;
    free_timers = timer;
}

/* Wakes the fiber that sleeps until this timer, or cancels the group whose deadline it is. `expired` tells that the deadline, not another
 * reason, has cancelled the group: so it stays false if the group was cancelled before. */
static void on_timer(uv_timer_t *handle)
{
    struct timer *timer = handle->data;
    timer->fired = true;
    if (timer->fiber)
        fiber_wake(timer->fiber);
    if (timer->group) {
        timer->group->expired = !timer->group->cancelled;
        fiber_group_cancel(timer->group);
    }
}

static void timer_set(struct timer *timer, uint64_t ms)
{
    uv_update_time(loop); /* timers count from the loop's time, which is old if a callback or fiber runs long */
    uv_timer_start(&timer->handle, on_timer, ms, 0);
}

/* fiber_suspend also returns when something else has woken the fiber: then it waits again, until the timer has fired. */
bool fiber_sleep(uint64_t ms)
{
    if (fiber_cancelled())
        return false;
    struct timer *timer = timer_take();
    if (!timer)
        return false;
    timer->fiber = current;
    timer_set(timer, ms);
    while (!timer->fired && fiber_suspend())
        ;
    bool fired = timer->fired;
    timer_give(timer);
    return fired && !fiber_cancelled();
}

/* ---- groups ---- */
void fiber_group_init(struct fiber_group *group, struct fiber_group *parent)
{
    /* below a cancelled group, it is cancelled from the start */
    *group = (struct fiber_group){.parent = parent, .cancelled = parent && parent->cancelled};
    if (!parent)
        return;
    group->next_sibling = parent->children;
    group->parent_link = &parent->children;
    if (group->next_sibling)
        group->next_sibling->parent_link = &group->next_sibling;
    parent->children = group;
}

void fiber_group_deadline(struct fiber_group *group, uint64_t ms)
{
    if (group->timer) /* it has a deadline already */
        return;
    struct timer *timer = timer_take();
    if (!timer)
        return;
    timer->group = group;
    group->timer = timer;
    timer_set(timer, ms);
}

/* Wakes every fiber of the group, and of its child groups, that waits in a cancellable call. If the group is cancelled already, the first
 * call has done so, and later calls of its fibers do not wait. */
void fiber_group_cancel(struct fiber_group *group)
{
    if (group->cancelled)
        return;
    group->cancelled = true;
    for (struct fiber *fiber = group->first; fiber; fiber = fiber->next)
        if (fiber->cancellable)
            fiber_wake(fiber);
    for (struct fiber_group *child = group->children; child; child = child->next_sibling)
        fiber_group_cancel(child);
}

/* Returns the group's timer to the free timers and takes the group out of its parent's list. Its fibers must have ended. */
void fiber_group_finish(struct fiber_group *group)
{
    if (group->timer)
        timer_give(group->timer);
    group->timer = NULL;
    if (!group->parent)
        return;
    if (group->next_sibling)
        group->next_sibling->parent_link = group->parent_link;
    *group->parent_link = group->next_sibling;
    group->parent = NULL;
}

/* Starts no helper when half of max_fibers run: the other half is for requests, which cannot be served without a fiber. A helper inherits
 * the journal work and the cancel flag of the fiber that starts it. */
bool fiber_start_helper(struct fiber_group *group, void (*run)(void *arg), void *arg)
{
    if (live >= limit / 2 || !fiber_start(group, run, arg))
        return false;
    /* `first` is the helper: fiber_new puts a new fiber at the front of the group's list */
    group->first->work = current->work;
    group->first->cancel = current->cancel;
    return true;
}

/* The wait is not cancellable, as the fibers of the group use memory of the caller until they have ended. */
void fiber_group_wait(struct fiber_group *group)
{
    while (group->count > 0) {
        group->waiter = current;
        fiber_suspend_uncancellable();
    }
    group->waiter = NULL;
    fiber_group_finish(group);
}

/* ---- wait lists ---- */
/* Takes the node of a waiting fiber out of the list. */
static void list_remove(struct fiber_wait_list *list, struct fiber_wait_node *node)
{
    if (node->previous)
        node->previous->next = node->next;
    else
        list->first = node->next;
    if (node->next)
        node->next->previous = node->previous;
    else
        list->last = node->previous;
}

enum fiber_wait fiber_wait_on(struct fiber_wait_list *list, uint64_t timeout_ms)
{
    if (fiber_cancelled())
        return FIBER_CANCELLED;
    struct timer *timer = NULL;
    if (timeout_ms != UINT64_MAX) {
        timer = timer_take();
        if (!timer)
            return FIBER_TIMED_OUT;
        timer->fiber = current;
        timer_set(timer, timeout_ms);
    }
    struct fiber_wait_node node = {.previous = list->last, .fiber = current};
    if (list->last)
        list->last->next = &node;
    else
        list->first = &node;
    list->last = &node;
    while (!node.woken && !(timer && timer->fired) && fiber_suspend())
        ;
    if (timer)
        timer_give(timer);
    if (node.woken) /* also if cancelled meanwhile: the waker may have handed over something */
        return FIBER_WOKEN;
    list_remove(list, &node);
    return fiber_cancelled() ? FIBER_CANCELLED : FIBER_TIMED_OUT;
}

/* Wakes the fiber that has waited longest on the list. Its fiber_wait_on finds `woken` set in its node, and so tells this from a
 * timeout. */
void fiber_wake_one(struct fiber_wait_list *list)
{
    struct fiber_wait_node *node = list->first;
    if (!node)
        return;
    list_remove(list, node);
    node->woken = true;
    fiber_wake(node->fiber);
}

void fiber_wake_all(struct fiber_wait_list *list)
{
    while (list->first)
        fiber_wake_one(list);
}

/* ---- start and end ---- */
size_t fiber_count(void)
{
    return live;
}
size_t fiber_stacks_allocated(void)
{
    return stacks;
}
size_t fiber_stack_peak(void)
{
    for (struct fiber *fiber = warm; fiber; fiber = fiber->next_ready)
        stack_measure(fiber);
    return deepest;
}
void fiber_set_limit(size_t max_fibers)
{
    limit = max_fibers;
}
void fibers_open(uv_loop_t *the_loop)
{
    loop = the_loop;
    fiber_group_init(&root, NULL);
}

/* Closes the timers, all of which are free once the last fiber has ended. fibers_free frees them after the loop has run once more. */
void fibers_close(void)
{
    for (struct timer *timer = free_timers; timer; timer = timer->next_free)
        uv_close((uv_handle_t *)&timer->handle, NULL);
}

/* Frees the timers and stacks that were kept for reuse. Called after the loop has ended, when fibers_close has closed the timers. */
void fibers_free(void)
{
    while (free_timers) {
        struct timer *next = free_timers->next_free;
        free(free_timers);
        free_timers = next;
    }
    while (warm) {
        struct fiber *next = warm->next_ready;
        stack_unmap(warm);
        warm = next;
    }
    warm_count = 0;
}
