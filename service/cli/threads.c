/* A struct sl_parallel for commands that convert one file: each call of its `run` starts threads and joins them at its end. */
#include "cli/cli.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MAX_THREADS = 64 };

/* One call of sl_parallel.run. */
struct threads_job {
    void (*work)(void *arg, size_t index, unsigned worker);
    void *arg;
    size_t count;       /* number of calls of `work`, with the indexes 0 to count - 1 */
    atomic_size_t next; /* the first index that no thread has taken yet */
};

struct threads_member {
    struct threads_job *job;
    unsigned worker;
};

/* The main function of a thread: takes one index after the other, until there are no more, and calls job->work for it. */
static void *serve(void *arg)
{
    struct threads_member *member = arg;
    struct threads_job *job = member->job;
    for (size_t i; (i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->count;)
        job->work(job->arg, i, member->worker);
    return NULL;
}

/* Calls work(arg, index, worker) for each index below `count`, on up to self->workers threads, the caller's among them (sl_parallel.run).
 * If a thread cannot be started, the others take its indexes. */
static void threads_run(const struct sl_parallel *self, size_t count, void (*work)(void *, size_t, unsigned), void *arg)
{
    struct threads_job job = {.work = work, .arg = arg, .count = count};
    struct threads_member members[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    unsigned started = 0, wanted = self->workers < count ? self->workers : (unsigned)count;
    for (unsigned i = 0; i < wanted; i++)
        members[i] = (struct threads_member){&job, i};
    while (started + 1 < wanted && pthread_create(&threads[started], NULL, serve, &members[started + 1]) == 0)
        started++;
    serve(&members[0]); /* this thread is the first */
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

const struct sl_parallel *threads_parallel(unsigned jobs)
{
    static struct sl_parallel parallel = {.run = threads_run};
    cpu_set_t cpus;
    const char *wanted = getenv("SYMLOOM_JOBS");
    if (!jobs && wanted)
        jobs = (unsigned)strtoul(wanted, NULL, 10);
    if (!jobs)
        jobs = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? (unsigned)CPU_COUNT(&cpus) : 1;
    parallel.workers = jobs > MAX_THREADS ? MAX_THREADS : jobs;
    return &parallel;
}
