/* Time slices for work on the event loop, and the queue of work that waits for its next turn. */
#include "core/loop_slice.h"

#include <stdint.h>

#include "core/impl.h"

/* SLICE_NS: how long one part of a turn of the loop may take (time slice). CALM_NS: after this time without a used-up slice, the loop
 * counts as calm. */
static const uint64_t SLICE_NS = 1000000, CALM_NS = 1000000000;

static uv_prepare_t prepare;
static uv_check_t check;
static uv_idle_t idle;
static uint64_t slice_began_ns; /* time of the first loop_slice_is_used_up() in this slice; 0: not called yet */
static uint64_t last_over_ns;   /* when a slice was last found to be used up */
static struct sl_list queue;

/* True if the current time slice has lasted longer than SLICE_NS. A slice begins with the first call of this function in it. */
bool loop_slice_is_used_up(void)
{
    uint64_t now = uv_hrtime();
    if (slice_began_ns == 0) /* the first call since new_slice(): the slice begins now */
        slice_began_ns = now;
    bool over = now - slice_began_ns > SLICE_NS;
    if (over)
        last_over_ns = now; /* for loop_is_calm */
    return over;
}

bool loop_is_calm(void)
{
    return uv_hrtime() - last_over_ns > CALM_NS;
}

static void new_slice(void)
{
    slice_began_ns = 0;
}

/* ---- the queue ---- */
void loop_waiter_enter(struct loop_waiter *waiter, void (*run)(struct loop_waiter *waiter))
{
    if (waiter->taken)
        return;
    waiter->run = run;
    waiter->taken = true;
    sl_list_append(&queue, &waiter->link);
}

void loop_waiter_leave(struct loop_waiter *waiter)
{
    if (!waiter->taken)
        return;
    sl_list_remove(&queue, &waiter->link);
    waiter->taken = false;
}

/* Runs the entries that are in the queue now (up to `end`), until the time slice is used up. Those that they add wait for the next turn, so
 * that the loop can poll first. */
static void run_queue(void)
{
    const struct sl_link *end = queue.last;
    bool go_on = queue.first != NULL;
    while (go_on) {
        struct loop_waiter *waiter = SL_LIST_FIRST(&queue, struct loop_waiter, link);
        bool is_last = &waiter->link == end;
        loop_waiter_leave(waiter);
        waiter->run(waiter);
        go_on = queue.first && !is_last && !loop_slice_is_used_up();
    }
}

/* ---- turns of the loop ---- */
/* Does nothing: an active idle handle makes the loop poll without blocking. */
static void on_idle(uv_idle_t *handle)
{
    (void)handle;
}

/* Before each poll: runs fibers, then the queue, each for one slice. */
static void on_prepare(uv_prepare_t *handle)
{
    (void)handle;
    bool more = fibers_run_ready(); /* in the slice that on_check began: fibers get one slice a turn */
    new_slice();
    run_queue();
    new_slice();
    if (more || queue.first)
        uv_idle_start(&idle, on_idle); /* keeps the poll from blocking */
    else
        uv_idle_stop(&idle);
}

/* After each poll: runs the fibers that callbacks of the poll have woken. */
static void on_check(uv_check_t *handle)
{
    (void)handle;
    new_slice();
    fibers_run_ready();
}

/* Starts the handles whose callbacks run before (prepare) and after (check) the loop polls for events. They do not keep the loop alive
 * (uv_unref). */
void loop_slices_open(uv_loop_t *loop)
{
    uv_prepare_init(loop, &prepare);
    uv_check_init(loop, &check);
    uv_idle_init(loop, &idle);
    uv_prepare_start(&prepare, on_prepare);
    uv_check_start(&check, on_check);
    uv_unref((uv_handle_t *)&prepare);
    uv_unref((uv_handle_t *)&check);
}

void loop_slices_close(void)
{
    uv_close((uv_handle_t *)&prepare, NULL);
    uv_close((uv_handle_t *)&check, NULL);
    uv_close((uv_handle_t *)&idle, NULL);
}
