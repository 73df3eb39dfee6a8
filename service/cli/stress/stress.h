/* What the parts of `symloom stress` share: workload.c reads what is to be asked, load.c asks it with many threads, service.c runs
 * the service that is asked, stress.c is the command and its report. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

struct stress_workload {
    const char *name;        /* "event", "minidump" .. */
    unsigned concurrency;    /* requests at once */
    const char *path, *type; /* of the URL; of the body, NULL: a GET */
    struct sl_buf body;
    bool scoped;    /* takes ?scope= */
    bool completes; /* its answer says whether it was completed */

    /* what came of it */
    double *seconds; /* of each request, ascending; the caller frees */
    size_t operations, errors;
};

/* The list `workloads` of a YAML file; bodies are the caller's to free. */
enum sl_code stress_read_workloads(const char *path, struct sl_arena *arena, struct stress_workload **workloads,
                                   size_t *count, struct sl_error *error);

struct stress_load {
    const char *url;      /* http://127.0.0.1:3021 */
    double seconds, rate; /* rate 0: each asks again as soon as it is answered; else requests a second, of a workload */
    unsigned warmup;      /* requests before, of each workload */
    bool cold;            /* each request has a scope of its own */
};

/* Asks; fills the results. `*warmup_s` is how long the first requests took. SL_BUSY: no memory or threads. */
enum sl_code stress_run(const struct stress_load *load, struct stress_workload *workloads, size_t count,
                        double *warmup_s, struct sl_error *error);

/* A service of this program on a port of its own. */
struct stress_service {
    int pid;
    char url[64];
    int sink; /* a socket that takes statsd packets nobody reads; -1 */
};
struct stress_service_options {
    const char *config, *cache_dir; /* NULL: none */
    bool json_log, statsd;
};
enum sl_code stress_service_start(const struct stress_service_options *options, struct stress_service *service,
                                  struct sl_error *error);
/* Ends it; the most memory that it held, in bytes. */
uint64_t stress_service_stop(struct stress_service *service);
