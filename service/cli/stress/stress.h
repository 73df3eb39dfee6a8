/* What the parts of `symloom stress` share: workload.c reads what is to be asked, load.c asks it with many threads, service.c runs
 * the service that is asked, sink.c what that asks in turn; stress.c is the command and its report. */
#pragma once

#include <stdatomic.h>

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
    bool uploads;   /* each request under a file id; sent with $SYMLOOM_API_KEY */

    /* of scripts: what the service hears when it looks up where their files are, and where these are */
    struct sl_str answers; /* data NULL: no workload of scripts */
    const char *directory;

    /* what came of it */
    double *seconds; /* of each request, ascending; the caller frees */
    size_t operations, errors;
};

/* The list `workloads` of a YAML file; bodies are the caller's to free. `sink`: HOST:PORT where scripts are looked up. */
enum sl_code stress_read_workloads(const char *path, const char *sink, struct sl_arena *arena,
                                   struct stress_workload **workloads, size_t *count, struct sl_error *error);

struct stress_load {
    const char *url;      /* http://127.0.0.1:3021 */
    double seconds, rate; /* rate 0: each asks again as soon as it is answered; else requests a second, of a workload */
    unsigned warmup;      /* requests before, of each workload */
    bool cold;            /* each request has a scope of its own */
};

/* Asks; fills the results. `*warmup_s` is how long the first requests took. SL_BUSY: no memory or threads. */
enum sl_code stress_run(const struct stress_load *load, struct stress_workload *workloads, size_t count,
                        double *warmup_s, struct sl_error *error);

/* A socket of 127.0.0.1 on any port; -1: errno tells. */
int stress_socket(int type, uint16_t *port);
/* In a child: the socket as systemd would pass it (sd_listen_fds(3)). */
void stress_pass_listener(int listener);

/* What the service asks: a Sentry that takes reports of errors, and tells where the files of scripts are. */
struct stress_sink {
    int pid; /* 0: not started */
    int listener;
    char address[32];       /* 127.0.0.1:4711 */
    atomic_size_t *reports; /* that it has taken; shared with it */
};
enum sl_code stress_sink_open(struct stress_sink *sink, struct sl_error *error); /* has an address, answers later */
enum sl_code stress_sink_start(struct stress_sink *sink, const struct stress_workload *workloads, size_t count,
                               struct sl_error *error);
size_t stress_sink_stop(struct stress_sink *sink); /* how many reports it took */

/* A service of this program on a port of its own. */
struct stress_service {
    int pid;
    char url[64];
    int sink; /* a socket that takes statsd packets nobody reads; -1 */
};
struct stress_service_options {
    const char *config, *cache_dir; /* NULL: none */
    const char
        *sentry; /* HOST:PORT that its errors are reported to; NULL: to nobody, whatever the configuration says */
    bool json_log, statsd;
};
enum sl_code stress_service_start(const struct stress_service_options *options, struct stress_service *service,
                                  struct sl_error *error);
/* Ends it; the most memory that it held, in bytes. */
uint64_t stress_service_stop(struct stress_service *service);
