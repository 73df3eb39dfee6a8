/* Submits work to libuv's thread pool. The work of requests is submitted first come, first served, and never more of it at a time than the
 * pool has threads for requests.
 *
 *     pool_submit ──▶ waiting ──▶ libuv's queue ──▶ at most loop_pool_threads() threads
 *     background jobs ──────────▶ libuv's queue ──▶ the other threads (pool_background_threads)
 *
 * libuv has threads for both. It would run whatever comes first on any of them: without this limit, requests would use the threads
 * of background jobs as well and load the machine with twice the configured number. */
#include "core/impl.h"

#include <stdlib.h>

#include "base/list.h"
#include "core/loop.h"

static uv_loop_t *loop;
static struct sl_list waiting; /* of struct pool_work: not yet given to libuv */
static unsigned active;        /* number of works that libuv has got and not ended, without background jobs */

static void start(struct pool_work *work);

static void run(uv_work_t *request)
{
    struct pool_work *work = request->data;
    work->run(work);
}

/* On the loop, when a thread has finished a piece of work. Starts the next one that waits before it calls `done`, which may submit another
 * one: that must not overtake those that wait. */
static void done(uv_work_t *request, int status)
{
    struct pool_work *work = request->data, *next = SL_LIST_FIRST(&waiting, struct pool_work, link);
    (void)status;
    active -= !work->background; /* background jobs are not counted: they have threads of their own */
    if (next && active < loop_pool_threads()) {
        sl_list_remove(&waiting, &next->link);
        start(next);
    }
    work->done(work);
}

/* Gives the work to libuv. `done` is called on the loop when a thread has finished it. */
static void start(struct pool_work *work)
{
    active += !work->background;
    work->request.data = work;
    if (uv_queue_work(loop, &work->request, run, done) != 0)
        abort(); /* uv_queue_work fails only if `run` is NULL */
}

void pool_submit(struct pool_work *work)
{
    if (work->background || active < loop_pool_threads())
        start(work);
    else
        sl_list_append(&waiting, &work->link);
}

void pool_submit_open(uv_loop_t *the_loop)
{
    loop = the_loop;
}
