/* The APIs that answer requests without a server: what local_request.c needs of each. */
#pragma once

#include "api/jobs/jobs.h"
#include "api/local_request.h"
#include "api/json_document.h"

struct local_family {
    const char *task;
    /* The body into what `run` takes, in the job's arena; NULL: `failure` says why. */
    void *(*read)(const struct local_request *local, struct job *job, struct json_failure *failure);
    job_run *run;
};

extern const struct local_family local_family_jvm, local_family_js, local_family_native, local_family_mozilla;

/* The request's scope; "global" when it has none. */
struct sl_str local_request_scope(const struct local_request *local);

/* The local sources, and with own_sources those of the body behind them, which `*sources` has at first; in the arena. False when
 * out of memory. */
bool local_request_sources(const struct local_request *local, struct sl_arena *arena, const struct source **sources,
                           size_t *count);
