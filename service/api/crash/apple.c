/* POST /applecrashreport: a report of an Apple system becomes a job. */
#include "api/crash/crash.h"
#include "apple/apple.h"

struct apple_work {
    struct native_request *request;
    struct sl_bytes file;
    struct sl_apple_options options;
    struct sl_crash crash;
    enum sl_code code;
    struct sl_error error;
};

static void read_report(void *arg)
{
    struct apple_work *work = arg;
    work->code = sl_apple_read(work->file, &work->options, work->request->arena, &work->crash, &work->error);
    if (work->code == SL_OK && !crash_fill(work->request, &work->crash))
        work->code = sl_fail(&work->error, SL_BUSY, "out of memory");
}

static enum sl_code apple_symbolicate(struct job *job, struct crash_work *crash, struct sl_bytes file,
                                      struct sl_error *error)
{
    struct apple_work *work = SL_ARENA_NEW(&job->arena, struct apple_work);
    if (!work)
        return sl_fail(error, SL_BUSY, "out of memory");
    work->request = crash->request;
    work->file = file;
    bool local = crash->local != NULL; /* a command shows all that there is */
    work->options = (struct sl_apple_options){.names_from_report = local || job->config->apple_names_from_report,
                                              .split_os_version = local || job->config->apple_split_os_version,
                                              .all_causes = local || job->config->apple_details};
    work->request->nests_modules = local;
    enum sl_code code = pool_run(POOL_SYMBOLICATE, read_report, work, error);
    if (code != SL_OK)
        return code;
    if (!job->config->apple_details)
        work->crash.extra_count = 0;
    if (work->code == SL_OK)
        return native_run_job(job, work->request, crash_write, &work->crash, error);
    *error = work->error;
    if (work->code == SL_UNSUPPORTED)
        crash_write_failure(&job->answer, error->message, NULL);
    else if (work->code == SL_MALFORMED)
        crash_write_failure(&job->answer, "failed to parse apple crash report", error->message);
    return work->code;
}

const struct crash_kind crash_apple = {
    .name = "applecrashreport",
    .part = "apple_crash_report",
    .missing = "missing apple crash report",
    .symbolicate = apple_symbolicate,
};

static void apple_handle(struct http_exchange *x)
{
    crash_handle(x, &crash_apple);
}

static const struct http_route routes[] = {
    {.method = "POST",
     .pattern = "/applecrashreport",
     .handler = apple_handle,
     .takes_work = true,
     .check = crash_check,
     .body_limit = crash_body_limit,
     .rights = API_RIGHT("symbolicate"),
     .task = "parse_apple_crash_report"},
    {.method = NULL},
};

const struct http_family family_apple = {.routes = routes, .group = "symbolicate"};
