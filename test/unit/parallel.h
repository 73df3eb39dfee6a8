/* Work spread over threads that live as long as one run, for tests of what takes a `sl_parallel`. */
#pragma once

#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/parallel.h"

enum { PARALLEL_MAX = 4 };

struct parallel_job {
    void (*work)(void *arg, size_t index, unsigned worker);
    void *arg;
    size_t count;
    atomic_size_t next;
};

struct parallel_member {
    struct parallel_job *job;
    unsigned worker;
};

static void *parallel_serve(void *arg)
{
    struct parallel_member *m = arg;
    for (size_t i; (i = atomic_fetch_add(&m->job->next, 1)) < m->job->count;)
        m->job->work(m->job->arg, i, m->worker);
    return NULL;
}

static void parallel_run(const struct sl_parallel *self, size_t count, void (*work)(void *, size_t, unsigned),
                         void *arg)
{
    struct parallel_job job = {.work = work, .arg = arg, .count = count};
    struct parallel_member members[PARALLEL_MAX];
    pthread_t threads[PARALLEL_MAX];
    for (unsigned i = 0; i < self->workers; i++) {
        members[i] = (struct parallel_member){&job, i};
        assert_int_equal(pthread_create(&threads[i], NULL, parallel_serve, &members[i]), 0);
    }
    for (unsigned i = 0; i < self->workers; i++)
        pthread_join(threads[i], NULL);
}

/* At most PARALLEL_MAX workers. */
static struct sl_parallel parallel_of(unsigned workers)
{
    return (struct sl_parallel){.workers = workers, .run = parallel_run};
}
