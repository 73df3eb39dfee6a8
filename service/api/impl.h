/* Private to this folder: the service behind the HTTP API, and what the route families share. */
#pragma once

#include <uv.h>

#include "api/api.h"
#include "api/jobs/jobs.h"
#include "api/name_cache.h"
#include "base/map.h"

struct history; /* api/history.h */

struct service {
    const struct config *config;
    service_reload *reload;
    void *reload_arg;
    /* ---- jobs ---- */
    struct fiber_group jobs_group;
    struct job_results *results; /* job results in Redis for other nodes; NULL = off */
    uint16_t node;               /* number of this process among the nodes: the first 16 bits of its job ids */
    struct sl_map jobs;          /* job id (16 bytes) -> struct job */
    size_t running;              /* number of running jobs */
    struct {
        const char *task; /* NULL: free */
        size_t count;
    } running_of[16];                           /* running jobs by task; there are fewer than 16 tasks */
    struct job *finished_first, *finished_last; /* jobs with stored results, in the order in which they ended */
    uint64_t stored_result_bytes;               /* bytes of those results in memory */
    uint64_t next_busy_log_ms;                  /* when refused jobs may be logged again */
    struct job *spare;                          /* free list: job structs with their arenas */
    size_t spare_count, spare_bytes;
    uv_timer_t expiry;   /* drops stored results that are too old */
    uint8_t random[256]; /* random bytes for job ids; the first `random_left` are unused */
    size_t random_left;
    void (*jobs_closed)(struct service *service);
    /* ---- the service ---- */
    struct history *history;
    uint64_t started_ns;
    bool draining, stopping;
    struct name_cache *names; /* demangled names, keyed by language and mangled name */
};

/* Value of http_route.rights with one right. */
#define API_RIGHT(right_) ((const char *const[]){(right_), NULL})

struct search_scope;
/* Sets `where` for APIs that deliver files (proxy, debuginfod): files are searched in all configured sources, in the global cache scope. */
void service_file_scope(const struct config *config, struct sl_arena *arena, struct search_scope *where);

/* ---- query.c ---- */
struct api_query { /* query parameters of requests that start jobs */
    bool has_timeout;
    uint64_t timeout_s;
    struct sl_str scope; /* cache scope; "global" if the query has none */
};

/* Reads the query of a request. False if it is malformed: 400 is answered. */
bool query_read(struct http_exchange *x, struct api_query *query);

/* http_route.body_limit of POST routes with a JSON body: returns the limit of the body's size in bytes. */
uint64_t json_job_limit(const struct http_exchange *x);
#define JSON_JOB(pattern_, job_)                                                                                       \
    {                                                                                                                  \
        .method = "POST", .pattern = (pattern_), .handler = job_handle, .takes_work = true, .check = job_check,        \
        .body_limit = json_job_limit, .body_weight = JSON_WEIGHT, .rights = API_RIGHT("symbolicate"), .job = (job_)    \
    }
/* http_route.body_weight: a JSON body and the structs that are made of it take at most this many times as much memory as the body alone. */
enum { JSON_WEIGHT = 4 };

/* Returns "ready", "draining" or "not ready"; GET /ready gives the reason. Loop thread. */
const char *service_state(const struct service *service);

/* Answers with plain text. */
void reply_text(struct http_exchange *x, int status, const char *text);
