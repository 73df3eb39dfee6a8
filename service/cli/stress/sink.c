/* `symloom stress`: a process that emulates Sentry for the service: accepts and drops error reports, and for script workloads answers
 * artifact lookups and serves the files. */
#include "cli/stress/stress.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "core/log.h"
#include "core/loop.h"
#include "http/http.h"

/* What the routes answer from, set before the fork: this process does nothing else. */
static struct stress_sink *sink;
static const struct stress_workload *workloads;
static size_t workload_count;

/* ---- routes ---- */

/* Returns the workload whose number is in the request's path, if it is of kind js; NULL if there is none. */
static const struct stress_workload *requested_workload(const struct http_exchange *x)
{
    char *end, number[16];
    snprintf(number, sizeof number, SL_STR_FMT, SL_STR_ARG(x->captures[0]));
    size_t i = strtoul(number, &end, 10);
    return *number && !*end && i < workload_count && workloads[i].answers.data ? &workloads[i] : NULL;
}

/* Accepts an error report, as Sentry does: counts it and drops it. */
static void accept_report(struct http_exchange *x)
{
    atomic_fetch_add(sink->reports, 1);
    http_reply(x, 200, "application/json", SL_STR("{}"));
}

/* Answers an artifact lookup with the workload's answer, in which {url} becomes the URL at which this process serves the workload's
 * files. */
static void answer_lookup(struct http_exchange *x)
{
    static const struct sl_str mark = {"{url}", 5};
    const struct stress_workload *workload = requested_workload(x);
    struct sl_buf out = {0};
    if (!workload) {
        http_reply_empty(x, 404);
        return;
    }
    for (struct sl_str rest = workload->answers; rest.size;) {
        const char *at = memmem(rest.data, rest.size, mark.data, mark.size);
        size_t before = at ? (size_t)(at - rest.data) : rest.size, used = at ? before + mark.size : before;
        sl_buf_add(&out, rest.data, before);
        if (at)
            sl_buf_printf(&out, "http://%s/scripts/%zu/files/", sink->address, (size_t)(workload - workloads));
        rest = (struct sl_str){rest.data + used, rest.size - used};
    }
    if (out.failed)
        http_reply_no_memory(x);
    else
        http_reply(x, 200, "application/json", sl_buf_view(&out));
    sl_buf_free(&out);
}

static void release_file(void *arg)
{
    sl_unmap(arg);
}

/* Sends a file of the workload's directory. A path with `..` might lead out of it and is answered with 404. */
static void serve_file(struct http_exchange *x)
{
    const struct stress_workload *workload = requested_workload(x);
    struct sl_mapping *file = SL_ARENA_ARRAY(&x->arena, struct sl_mapping, 1);
    char path[4096];
    if (!workload || memmem(x->captures[1].data, x->captures[1].size, "..", 2)) {
        http_reply_empty(x, 404);
        return;
    }
    snprintf(path, sizeof path, "%s/" SL_STR_FMT, workload->directory, SL_STR_ARG(x->captures[1]));
    if (!file || sl_map_file(path, file, NULL) != SL_OK)
        http_reply_empty(x, file ? 404 : 503);
    else
        http_reply_file(x, "application/octet-stream", file, NULL, 0, release_file, file);
}

static const struct http_route routes[] = {
    {.method = "POST", .pattern = "/api/{project}/envelope/", .handler = accept_report},
    {.method = "GET", .pattern = "/scripts/{workload}/lookup", .handler = answer_lookup},
    {.method = "GET", .pattern = "/scripts/{workload}/files/{rest..}", .handler = serve_file},
    {.method = NULL},
};

/* ---- the process ---- */

/* The main fiber of the process that emulates Sentry: serves until the process is killed. If it cannot listen, it returns. */
static void serve_sink(void *unused)
{
    (void)unused;
    static const struct http_family family = {.routes = routes};
    static const struct http_family *const families[] = {&family, NULL};
    static const char *const bind[] = {"systemd"};
    struct http_options options;
    struct http_server *server;
    struct sl_error error;
    struct fiber_wait_list never = {NULL};
    http_options_default(&options);
    options.bind = bind;
    options.bind_count = 1;
    options.families = families;
    options.access = HTTP_ACCESS_OFF;
    if (http_server_start(&options, &server, &error) == SL_OK)
        fiber_wait_on(&never, UINT64_MAX);
}

/* In the forked child: emulates Sentry on the socket that was opened before the fork, until it is killed. PR_SET_PDEATHSIG: it also ends if
 * the parent dies. */
static void become_sink(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    log_set_levels("off");
    stress_pass_listener(sink->listener);
    loop_init(1);
    loop_run_fiber(serve_sink, NULL);
    _exit(1); /* only reached if it cannot listen */
}

enum sl_code stress_sink_open(struct stress_sink *opened, struct sl_error *error)
{
    uint16_t port = 0;
    *opened = (struct stress_sink){.listener = stress_socket(SOCK_STREAM, &port)};
    if (opened->listener < 0)
        return sl_fail_errno(error, errno, "cannot create a socket for the emulated Sentry");
    snprintf(opened->address, sizeof opened->address, "127.0.0.1:%u", port);
    return SL_OK;
}

enum sl_code stress_sink_start(struct stress_sink *opened, const struct stress_workload *asked, size_t count,
                               struct sl_error *error)
{
    void *shared = mmap(NULL, sizeof *opened->reports, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return sl_fail_errno(error, errno, "out of memory");
    sink = opened;
    workloads = asked;
    workload_count = count;
    opened->reports = shared;
    opened->pid = fork();
    if (opened->pid == 0)
        become_sink();
    return opened->pid > 0 ? SL_OK : sl_fail_errno(error, errno, "cannot start the process that emulates Sentry");
}

size_t stress_sink_stop(struct stress_sink *opened)
{
    if (opened->pid > 0) {
        kill(opened->pid, SIGKILL);
        while (waitpid(opened->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    sl_close(opened->listener);
    size_t reports = opened->reports ? atomic_load(opened->reports) : 0;
    if (opened->reports)
        munmap(opened->reports, sizeof *opened->reports);
    *opened = (struct stress_sink){.listener = -1};
    return reports;
}
