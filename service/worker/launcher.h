/* The launcher process, and the main function of the workers that it forks. */
#pragma once

#include <sys/types.h>

#include "worker/confine.h"
#include "worker/protocol.h"

struct worker_launcher {
    int socket;
    pid_t pid;
    const struct worker_function *functions;
    size_t count;
};

/* Per worker at most five messages are in flight: START and two KILL, STARTED and DIED. The kernel counts less than 1 KiB for each, so
 * the messages of this many workers fit into the socket buffers, and neither side ever blocks until the other reads. */
enum { LAUNCHER_MAX_WORKERS = 128 };

/* Parameters of a new worker process, which has one thread. Its socket is descriptor 0; standard error is its report pipe. */
struct worker_start {
    const struct worker_function *functions;
    size_t count;
    const struct confine_filter *filter;
    struct confine_limits limits;
    pid_t launcher;
    bool no_environment;
};
/* Confines the process, sends the hello, and serves requests until the socket is closed. */
_Noreturn void worker_serve(const struct worker_start *start);

/* Fills `*space` and returns it: runs work items on up to `threads` threads, which exist only during one `run`. */
const struct sl_parallel *worker_parallel(unsigned threads, struct sl_parallel *space);
