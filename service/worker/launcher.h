/* The launcher process, and the main function of the workers that it forks. */
#pragma once

#include <sys/types.h>

#include "worker/confine.h"
#include "worker/protocol.h"

struct worker_launcher { /* a process's handle of a launcher */
    int socket;          /* to the launcher */
    pid_t pid;
    const struct worker_function *functions; /* that its workers can run; `count` of them */
    size_t count;
};

/* Per worker at most five messages are in the socket's buffers: START and two KILL to the launcher, STARTED and DIED from it. The kernel
 * counts less than 1 KiB for each, so the messages of this many workers fit, and neither side ever has to wait until the other reads. */
enum { LAUNCHER_MAX_WORKERS = 128 };

/* Parameters of a new worker process, which has one thread. Its socket is descriptor 0; standard error is its report pipe. */
struct worker_start {
    const struct worker_function *functions; /* that it can run; `count` of them */
    size_t count;
    const struct confine_filter *filter;
    struct confine_limits limits;
    pid_t launcher;      /* its parent */
    bool no_environment; /* environment and arguments were erased */
};
/* Confines the process, sends the hello, and serves requests until the socket is closed. */
_Noreturn void worker_serve(const struct worker_start *start);

/* Sets `*space` to an interface that runs items of work in up to `threads` threads, which exist only during one run, and returns it. */
const struct sl_parallel *worker_parallel(unsigned threads, struct sl_parallel *space);
