/* Fibers that share a work list. */
#include "core/fiber.h"

bool fiber_run_workers(void (*run)(void *arg), void *arg, size_t helpers)
{
    struct fiber_group group;
    fiber_group_init(&group, fiber_group_current());
    while (helpers > 0 && fiber_start_helper(&group, run, arg))
        helpers--;
    run(arg);
    fiber_group_wait(&group);
    return !fiber_cancelled();
}

struct worker_items {
    void (*run)(void *item);
    void **items;
    size_t count, next;
};

/* Runs items of the list until none is left or the fiber is cancelled. Needs no lock: fibers run one at a time on the loop. */
static void take_items(void *arg)
{
    struct worker_items *list = arg;
    while (list->next < list->count && !fiber_cancelled())
        list->run(list->items[list->next++]);
}

bool fiber_for_each(void (*run)(void *item), void **items, size_t count, size_t at_once)
{
    struct worker_items list = {run, items, count, 0};
    size_t fibers = count < at_once ? count : at_once;
    return fiber_run_workers(take_items, &list, fibers ? fibers - 1 : 0); /* the running fiber is one of them */
}
