/* The APIs that answer requests without a server: what local_request.c needs of each. */
#pragma once

#include "api/jobs/jobs.h"
#include "api/local_request.h"
#include "api/schema.h"

struct local_family {
    const char *task;
    /* The body into what `run` takes, in the job's arena; NULL: `failure` says why. */
    void *(*read)(const struct local_request *local, struct job *job, struct schema_failure *failure);
    job_run *run;
};

extern const struct local_family local_family_jvm, local_family_js;
