/* Confines a worker process before its first job by several measures, of which each one is tried whatever the others gave. The result is
 * the set (bits) of those that took effect. A worker without MEASURE_FILTER refuses to serve. */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum worker_measure {
    MEASURE_NO_NEW_PRIVS = 1 << 0,
    MEASURE_USER_NAMESPACE = 1 << 1, /* own user namespace, in which the user is unmapped (nobody) */
    /* No access to files by name; on newer kernels also no TCP bind or connect, and no signals or abstract sockets to other processes. */
    MEASURE_LANDLOCK = 1 << 2,
    MEASURE_MEMORY_LIMIT = 1 << 3,     /* RLIMIT_DATA, RLIMIT_AS */
    MEASURE_LIMITS = 1 << 4,           /* RLIMIT_CORE, RLIMIT_NOFILE */
    MEASURE_NOT_DUMPABLE = 1 << 5,     /* other processes of the user cannot read its memory */
    MEASURE_ENDS_WITH_PARENT = 1 << 6, /* the kernel kills it when the launcher ends */
    MEASURE_FILTER = 1 << 7,           /* seccomp allowlist; any other system call kills the process */
    MEASURE_SANITIZER = 1 << 8,        /* built with a sanitizer, for which the filter has exceptions: filter.c */
    MEASURE_NO_ENVIRONMENT = 1 << 9,   /* environment and arguments erased, also in /proc/PID/environ and cmdline */
    MEASURE_FIRST_VICTIM = 1 << 10,    /* the OOM killer takes a worker before the service: oom_score_adj 1000 */
};

struct confine_limits {
    uint64_t max_memory, max_mapped; /* bytes a job may allocate, and bytes of its mapped inputs; 0 = no limit */
    uint32_t threads;                /* largest number of threads of the worker */
};

/* The seccomp filter of workers as a BPF program. The launcher makes it once, for all of them. */
enum { FILTER_MAX = 1024 };
struct confine_filter {
    struct sock_filter code[FILTER_MAX];
    unsigned short count; /* 0 = no filter */
};
void confine_filter_make(struct confine_filter *filter);

/* Installs the filter in the calling process. False if there is none or the kernel refuses it. */
bool confine_filter_apply(const struct confine_filter *filter);

/* Empties the environment, and overwrites the strings of environment and arguments in memory, which other processes could read in /proc.
 * The launcher calls it, and workers inherit the result. False if the kernel does not tell where the strings are: then only the environment
 * is empty. */
bool confine_erase_environment(void);

/* Confines the calling process, which must have one thread; this cannot be undone. The process ends when its parent, process `parent`,
 * ends. Returns the measures that took effect. */
uint32_t confine(const struct confine_filter *filter, const struct confine_limits *limits, int parent);

/* True if the program is built with an address, memory or thread sanitizer. */
bool confine_has_sanitizer(void);
