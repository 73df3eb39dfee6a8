/* What the files of api share. */
#pragma once

#include <uv.h>

#include "api/api.h"
#include "api/jobs/jobs.h"
#include "api/name_memo.h"
#include "base/map.h"

struct history; /* api/history.h */

struct service {
    const struct config *config;
    service_reload *reload;
    void *reload_arg;
    /* of jobs */
    struct fiber_group jobs_group;
    struct results *results; /* of jobs, for other nodes; NULL = not there */
    uint16_t node;           /* with which their ids begin */
    struct sl_map jobs;      /* by the 16 bytes of their ids */
    size_t running;
    struct {
        const char *task; /* NULL: free */
        size_t count;
    } running_of[16];                           /* the same by task, of which there are fewer */
    struct job *finished_first, *finished_last; /* results that are kept, in the order of their ends */
    uint64_t kept_bytes, next_busy_log_ms;
    struct job *spare; /* to be used again, with their arenas */
    size_t spare_count, spare_bytes;
    uv_timer_t expiry;
    uint8_t random[256]; /* not used yet: its first `random_left` bytes */
    size_t random_left;
    void (*jobs_closed)(struct service *service);
    /* of all */
    struct history *history;
    uint64_t started_ns;
    bool draining, stopping;
    struct name_memo *names; /* demangled ones, by language and mangled name */
};

/* Of a route: the one right that opens it. */
#define API_RIGHT(right_) ((const char *const[]){(right_), NULL})

/* ---- query.c ---- */
struct api_query {
    bool has_timeout;
    uint64_t timeout_s;
    struct sl_str scope; /* "global" when absent */
};

/* False: the answer is set (400). */
bool query_read(struct http_exchange *x, struct api_query *query);

/* The limit of a POST route that takes JSON. */
uint64_t json_job_limit(const struct http_exchange *x);
#define JSON_JOB(pattern_, job_)                                                                                       \
    {                                                                                                                  \
        .method = "POST", .pattern = (pattern_), .handler = job_handle, .takes_work = true, .check = job_check,        \
        .body_limit = json_job_limit, .body_weight = JSON_WEIGHT, .rights = API_RIGHT("symbolicate"), .job = (job_)    \
    }
enum { JSON_WEIGHT = 4 }; /* body_weight: times its size is what a body and all that is read out of it may take */

/* "ready", "draining", or "not ready" for a reason that GET /ready tells. Loop thread. */
const char *service_state(const struct service *service);

void reply_text(struct http_exchange *x, int status, const char *text);
