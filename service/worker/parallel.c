/* Runs parallel items of work in a worker process: starts threads for each run and joins them at its end. */
#include <pthread.h>
#include <stdatomic.h>

#include "worker/launcher.h"

struct shared_work {
    void (*work)(void *arg, size_t index, unsigned worker);
    void *arg;
    size_t count;       /* number of items */
    atomic_size_t next; /* the first item that no thread has taken yet */
};

struct work_thread {
    struct shared_work *work;
    unsigned number;
    pthread_t thread;
};

/* A thread: does items of the work until none is left. Each item is taken by one thread, by a shared counter. */
static void *do_items(void *arg)
{
    struct work_thread *self = arg;
    struct shared_work *work = self->work;
    for (size_t i; (i = atomic_fetch_add(&work->next, 1)) < work->count;)
        work->work(work->arg, i, self->number);
    return NULL;
}

/* Callback of struct sl_parallel: does all items in up to self->workers threads, of which the calling one is the first. */
static void run_in_threads(const struct sl_parallel *self, size_t count,
                           void (*work)(void *arg, size_t index, unsigned worker), void *arg)
{
    struct shared_work all = {.work = work, .arg = arg, .count = count};
    struct work_thread threads[WORKER_MAX_THREADS];
    unsigned begun = 1;
    threads[0] = (struct work_thread){.work = &all};
    for (; begun < self->workers && begun < count; begun++) {
        threads[begun] = (struct work_thread){.work = &all, .number = begun};
        if (pthread_create(&threads[begun].thread, NULL, do_items, &threads[begun]) != 0)
            break; /* no more threads can be started: those that exist do all items */
    }
    do_items(&threads[0]);
    for (unsigned i = 1; i < begun; i++)
        pthread_join(threads[i].thread, NULL);
}

const struct sl_parallel *worker_parallel(unsigned threads, struct sl_parallel *space)
{
    *space = (struct sl_parallel){threads < WORKER_MAX_THREADS ? threads : WORKER_MAX_THREADS, run_in_threads};
    if (!space->workers)
        space->workers = 1;
    return space;
}
