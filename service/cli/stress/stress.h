/* `symloom stress`: workload.c reads the workloads, load.c sends their requests from many threads, service.c runs the service under
 * test, sink.c emulates the servers that the service itself calls; stress.c is the command and its report. */
#pragma once

#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* One kind of request that is sent over and over, and the results of that. */
struct stress_workload {
    const char *name;        /* "event", "minidump" .. */
    unsigned concurrency;    /* requests at once */
    const char *path, *type; /* the URL's path; the body's content type, NULL: a GET */
    struct sl_buf body;
    bool scoped;    /* the API accepts ?scope=, the scope of cache entries */
    bool completes; /* a successful answer has "status":"completed" */
    bool uploads;   /* requests carry a file id, and the key $SYMLOOM_API_KEY */

    /* kind js: what the emulated Sentry answers to artifact lookups, and the directory whose files it serves */
    struct sl_str answers; /* data NULL: another kind */
    const char *directory;

    /* results */
    double *seconds; /* latency of each request, ascending; the caller frees */
    size_t operations, errors;
};

/* Reads the list `workloads` of a YAML file; the caller frees the bodies. `sink`: HOST:PORT of the emulated Sentry, which workloads of kind
 * js name as their source. */
enum sl_code stress_read_workloads(const char *path, const char *sink, struct sl_arena *arena,
                                   struct stress_workload **workloads, size_t *count, struct sl_error *error);

/* How the load is applied. */
struct stress_load {
    const char *url;      /* http://127.0.0.1:3021 */
    double seconds, rate; /* requests a second per workload; 0: closed loop, each client sends again once answered */
    unsigned warmup;      /* unmeasured requests first, per workload */
    bool cold;            /* each request uses a new scope or file id, so that nothing is cached */
};

/* Sends the requests of all workloads at the same time, and sets their results. `*warmup_s`: how many seconds the unmeasured requests
 * before took. SL_BUSY: no memory or threads; SL_INTERNAL: one of the unmeasured requests failed. */
enum sl_code stress_run(const struct stress_load *load, struct stress_workload *workloads, size_t count,
                        double *warmup_s, struct sl_error *error);

/* Creates a socket that is bound to 127.0.0.1 and any free port, `*port`; one of type SOCK_STREAM listens. -1 with errno. */
int stress_socket(int type, uint16_t *port);
/* In a forked child: makes the listening socket descriptor 3 and sets LISTEN_FDS and LISTEN_PID, as systemd does (sd_listen_fds(3)), so
 * that the server listens on it. */
void stress_pass_listener(int listener);

/* A process that emulates Sentry for the service: accepts error reports and answers artifact lookups. */
struct stress_sink {
    int pid;                /* 0: not started */
    int listener;           /* the socket it listens on */
    char address[32];       /* 127.0.0.1:4711 */
    atomic_size_t *reports; /* accepted so far; in memory shared with the child */
};
/* Binds the socket, so that the address is known. Nothing answers there before stress_sink_start. */
enum sl_code stress_sink_open(struct stress_sink *sink, struct sl_error *error);
/* Forks the process, which answers for these workloads. */
enum sl_code stress_sink_start(struct stress_sink *sink, const struct stress_workload *workloads, size_t count,
                               struct sl_error *error);
/* Kills the process, if it was started, and closes the socket. Returns the number of error reports that it accepted. */
size_t stress_sink_stop(struct stress_sink *sink);

/* The service under test: a process `symloom run` on a port that was free. */
struct stress_service {
    int pid;
    char url[64];
    int sink; /* UDP socket that receives the service's statsd packets, which nobody reads; -1: none */
};
struct stress_service_options {
    const char *config, *cache_dir; /* NULL: none */
    const char *sentry;             /* HOST:PORT for its error reports; NULL: none, whatever the configuration says */
    bool json_log, statsd;
};
/* Starts this program as `symloom run` on a free port. */
enum sl_code stress_service_start(const struct stress_service_options *options, struct stress_service *service,
                                  struct sl_error *error);
/* Ends the service with SIGTERM and waits for it; returns its peak memory in bytes, 0 if it was not started. */
uint64_t stress_service_stop(struct stress_service *service);
