/* A process that runs tests is watched by another: what takes too long is shown and ended. */
#pragma once

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WATCH_LIMIT_S = 120 };

/* Shared by the two processes. */
struct watched {
    volatile int64_t since_ms; /* when what runs now began, of the monotonic clock */
    volatile int limit_s;      /* how long that may take */
    volatile size_t next;      /* what runs now, or is to run next */
    volatile bool runs, done;
};

static inline void watch_step(struct watched *w, int limit_s)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    w->limit_s = limit_s ? limit_s : WATCH_LIMIT_S;
    w->since_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Zeros that forks share. */
static inline void *watch_share(size_t size)
{
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        abort();
    return shared;
}

static inline struct watched *watch_new(void)
{
    return watch_share(sizeof(struct watched));
}

/* Until it is late; at most a second, since limits differ. */
static inline int watch_rest_ms(const struct watched *w)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t end = w->since_ms + (int64_t)w->limit_s * 1000;
    int64_t rest = end - ((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    return rest > 1000 ? 1000 : rest > 0 ? (int)rest : 0;
}

/* Prints where every thread of the process and of those that it started stands. */
static inline void watch_show(pid_t pid)
{
    char command[400];
    snprintf(command, sizeof command,
             "for p in %d $(cat /proc/%d/task/*/children); do\n"
             "  echo \"process $p: $(tr '\\0' ' ' </proc/$p/cmdline)\"\n"
             "  timeout 60 eu-stack -p $p\n"
             "done 2>&1",
             pid, pid);
    fflush(stdout);
    if (system(command) != 0)
        puts("eu-stack could not show it");
}

/* A fork whose child ends with this process, in a process group of its own. */
static inline pid_t watch_fork(void)
{
    fflush(stdout);
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
    }
    return pid;
}

/* Waits for the end of a watched fork. Returns its status as waitpid(2) has it, or -1 when it took too long. */
static inline int watch_wait(pid_t pid, const struct watched *w)
{
    int status = 0;
    struct pollfd ended = {.fd = pidfd_open(pid, 0), .events = POLLIN};
    bool late = false;
    while (!late && poll(&ended, 1, watch_rest_ms(w)) == 0)
        late = watch_rest_ms(w) == 0;
    close(ended.fd);
    if (late) {
        watch_show(pid);
        kill(-pid, SIGKILL);
    }
    waitpid(pid, &status, 0);
    return late ? -1 : status;
}
