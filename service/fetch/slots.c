/* Limits the number of downloads that run at once, in all and per host. Each needs a slot; without a free one its fiber waits. A free slot
 * goes to the download that has waited longest and whose host has not reached its own limit. */
#include "fetch/impl.h"

#include <stdlib.h>

#include "base/list.h"
#include "base/map.h"
#include "core/metrics.h"

struct slot_host {
    unsigned active;
    size_t waiting;
    struct sl_str name; /* its text follows the struct */
};

struct fetch_slot_waiter {
    struct sl_link link;
    struct slot_host *host;
    struct fiber *fiber;
    bool granted;
};

static struct sl_map hosts;
static struct sl_list waiters;
static size_t waiting;
static unsigned active;

/* Returns the entry of a host, created if necessary. NULL when out of memory. */
static struct slot_host *get_host(struct sl_str name)
{
    struct slot_host *host = sl_map_get(&hosts, name);
    if (host)
        return host;
    host = sl_map_add(&hosts, name, sizeof *host, &name); /* `name` becomes a copy behind the struct */
    if (host)
        host->name = name;
    return host;
}

/* Frees the entry of a host if no download from it runs or waits. */
static void drop_idle(struct slot_host *host)
{
    if (host->active || host->waiting)
        return;
    sl_map_remove(&hosts, host->name);
    free(host);
}

/* True if one more download may run, in all and from this host. */
static bool has_free_slot(const struct slot_host *host)
{
    return active < fetch_state.options.max_downloads && host->active < fetch_state.options.max_downloads_per_host;
}

/* Counts a download from the host as running. */
static void occupy(struct slot_host *host)
{
    active++;
    host->active++;
    metric_set(METRIC_DOWNLOADS_IN_FLIGHT, active, NULL, NULL, NULL);
}

/* Removes a download from the queue, because it begins or was cancelled. */
static void slots_leave(struct fetch_slot_waiter *w)
{
    sl_list_remove(&waiters, &w->link);
    waiting--;
    w->host->waiting--;
    metric_set(METRIC_DOWNLOADS_QUEUED, (double)waiting, NULL, NULL, NULL);
}

/* Gives free slots to waiting downloads, the oldest first. One whose host has no free slot is passed over, so that it does not hold up
 * downloads from other hosts. */
static void grant(void)
{
    for (struct fetch_slot_waiter *w = SL_LIST_FIRST(&waiters, struct fetch_slot_waiter, link), *next;
         w && active < fetch_state.options.max_downloads; w = next) {
        next = SL_LIST_NEXT(w, link);
        if (!has_free_slot(w->host))
            continue;
        slots_leave(w);
        occupy(w->host);
        w->granted = true;
        fiber_wake(w->fiber);
    }
}

/* Takes a slot for a download from the host; waits until one is free, in all and for the host. SL_CANCELLED, or SL_BUSY when out of
 * memory. Give the slot back with slot_give. */
enum sl_code slot_take(struct sl_str name, struct fetch_slot *slot, struct sl_error *error)
{
    struct slot_host *host = get_host(name);
    if (!host)
        return sl_fail(error, SL_BUSY, "out of memory");
    slot->host = host;
    /* not if others wait for this host: they come first */
    if (has_free_slot(host) && host->waiting == 0) {
        occupy(host);
        return SL_OK;
    }
    struct fetch_slot_waiter w = {.host = host, .fiber = fiber_self()};
    sl_list_append(&waiters, &w.link);
    waiting++;
    host->waiting++;
    metric_set(METRIC_DOWNLOADS_QUEUED, (double)waiting, NULL, NULL, NULL);
    /* If this fiber was cancelled just after it was granted a slot, SL_OK is returned: the caller gives the slot back. */
    while (!w.granted) {
        fiber_set_wait_reason("a download slot");
        if (!fiber_suspend() && !w.granted) {
            slots_leave(&w);
            drop_idle(host); /* frees the host's entry if no download from it runs or waits */
            return sl_fail(error, SL_CANCELLED, "cancelled");
        }
    }
    return SL_OK;
}

/* Frees a slot, so that the next waiting download that may run gets one. */
void slot_give(struct fetch_slot *slot)
{
    struct slot_host *host = slot->host;
    active--;
    host->active--;
    metric_set(METRIC_DOWNLOADS_IN_FLIGHT, active, NULL, NULL, NULL);
    grant();
    drop_idle(host); /* frees the host's entry if no download from it runs or waits */
}

void slots_close(void)
{
    sl_map_free(&hosts);
}
