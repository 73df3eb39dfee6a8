/* sl_parallel of a worker: starts threads for each run and joins them at its end. */
#include <pthread.h>
#include <stdatomic.h>

#include "worker/launcher.h"

struct spread_work {
    void (*work)(void *arg, size_t index, unsigned worker);
    void *arg;
    size_t count;
    atomic_size_t next;
};

struct spread_thread {
    struct spread_work *work;
    unsigned number;
    pthread_t thread;
};

/* Does pieces of the work until none is left; threads take the next number from a shared counter. */
static void *do_pieces(void *arg)
{
    struct spread_thread *self = arg;
    struct spread_work *work = self->work;
    for (size_t i; (i = atomic_fetch_add(&work->next, 1)) < work->count;)
        work->work(work->arg, i, self->number);
    return NULL;
}

/* The `sl_parallel` callback of workers: does the pieces in up to self->workers threads, of which the calling one is the first. */
static void spread(const struct sl_parallel *self, size_t count, void (*work)(void *arg, size_t index, unsigned worker),
                   void *arg)
{
    struct spread_work all = {.work = work, .arg = arg, .count = count};
    struct spread_thread threads[WORKER_MAX_THREADS];
    unsigned begun = 1;
    threads[0] = (struct spread_thread){.work = &all};
    for (; begun < self->workers && begun < count; begun++) {
        threads[begun] = (struct spread_thread){.work = &all, .number = begun};
        if (pthread_create(&threads[begun].thread, NULL, do_pieces, &threads[begun]) != 0)
            break; /* the threads that exist do all the work */
    }
    do_pieces(&threads[0]);
    for (unsigned i = 1; i < begun; i++)
        pthread_join(threads[i].thread, NULL);
}

const struct sl_parallel *worker_parallel(unsigned threads, struct sl_parallel *space)
{
    *space = (struct sl_parallel){threads < WORKER_MAX_THREADS ? threads : WORKER_MAX_THREADS, spread};
    if (!space->workers)
        space->workers = 1;
    return space;
}
