/* POST /applecrashreport: starts a job for an Apple crash report. */
#include "api/crash/crash.h"
#include "apple/apple.h"

struct apple_work {
    struct crash_work crash;
    struct sl_crash report;
};

/* Pool work: reads the report from the converter's output, and makes a request for native frames of it. For commands modules may overlap,
 * and the answer has all details of the report; a service drops the details unless apple_details is configured, so that by default its
 * answers are those of Symbolicator. */
static enum sl_code take_report(struct job *job, void *arg, struct sl_error *error)
{
    struct apple_work *work = arg;
    struct native_request *request = &work->crash.native;
    struct sl_unpacker unpacker = {.r = sl_reader(work->crash.packed, false), .arena = request->arena};
    enum sl_code code = sl_crash_unpack(&unpacker, &work->report, error);
    if (code != SL_OK)
        return code;
    request->nests_modules = work->crash.local != NULL;
    if (!job->config->apple_details)
        work->report.extra_count = 0;
    request->writer_arg = &work->report;
    return crash_fill_request(request, &work->report) ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* Runs the converter that reads the Apple report, then take_report(). Commands (`local`) get all that the report has; a service what is
 * configured. */
static enum sl_code apple_read(struct job *job, void *arg, struct sl_error *error)
{
    struct apple_work *work = arg;
    const struct config *config = job->config;
    bool local = work->crash.local != NULL;
    const struct sl_apple_options options = {.names_from_report = local || config->apple_names_from_report,
                                             .split_os_version = local || config->apple_split_os_version,
                                             .all_causes = local || config->apple_details};
    return crash_convert(job, &work->crash, &converter_apple_report, CONVERTER_OPTIONS(options), NULL, POOL_SYMBOLICATE,
                         take_report, error);
}

const struct crash_kind crash_apple = {
    .job =
        {
            .task = "parse_apple_crash_report",
            .size = sizeof(struct apple_work),
            .open = crash_work_open,
            .receive = crash_receive,
            .is_allowed = native_is_allowed,
            .read_local = crash_read_local,
            .prepare = crash_prepare,
            .run = native_run,
            .reset = native_reset,
            .write = native_write_answer,
            .executor = native_answer_executor,
            .memory = native_answer_memory,
            .finish = crash_finish,
            .release = crash_release,
        },
    .name = "applecrashreport",
    .part = "apple_crash_report",
    .missing = "missing apple crash report",
    .read = apple_read,
    .malformed = "failed to parse apple crash report",
};

static const struct http_route routes[] = {CRASH_POST("/applecrashreport", &crash_apple), {.method = NULL}};

const struct http_family family_apple = {.routes = routes, .group = "symbolicate"};
