/* `symloom run`: the service, from start to the end of draining. */
#include "cli/cli.h"
#include "cli/config/check.h"
#include "cli/run/run.h"
#include "cli/server.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/access.h"
#include "api/api.h"
#include "cache/cache.h"
#include "core/crash.h"
#include "core/duration.h"
#include "core/journal.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/memory.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "core/statsd.h"
#include "fetch/fetch.h"
#include "conversion/conversion.h"
#include "conversion/isolation.h"
#include "catalog/catalog.h"
#include "symbfile_store/symbfile_store.h"
#include "origin/origin.h"
#include "scan/scan.h"
#include "store/store.h"
#include "debug_file_store/debug_file_store.h"

static const struct option_spec specs[] = {
    SERVER_OPTIONS,
    {"bind", 'b', OPTION_VALUE, false, "ADDR:PORT", "Listen on this address instead of `bind`; port 0 picks one"},
    {"shutdown-timeout", 0, OPTION_VALUE, false, "DURATION", "Let running jobs finish for this long after SIGTERM"},
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

enum {
    DAY_MS = 24 * 60 * 60 * 1000, /* how often the certificate's expiry date is checked */
    DRAIN_STEP_MS = 10,           /* at shutdown: how often it is checked whether all jobs have ended */
    LAST_ANSWERS_MS = 1000,       /* at shutdown, after jobs were stopped: the time to send the answers that say so */
    LAST_WORK_MS = 3000,          /* from the end of --shutdown-timeout to the forced exit */
    STATUS_MS = 10000,            /* how often the service manager gets a STATUS= line */
    LAUNCHER_MS = 1000            /* how often it is checked whether the launcher of workers still runs */
};

struct service_run {
    struct config *config; /* the current one; a reference is held */
    const struct options *options;
    struct http_server *server;
    struct service *service;
    int signals; /* signalfd(2) */
    uv_poll_t signal_poll;
    uv_timer_t watchdog, status;                     /* notifications of the service manager */
    uv_timer_t exit_timer;                           /* forces the exit, even if threads hang */
    struct fiber_wait_list signalled, configured;    /* signalled: the service is to end; configured: it was reloaded */
    struct fiber_group cleaning, pushing, reporting; /* background work; pushing: to StatsD; reporting: to Sentry */
    bool stopping;
    struct sl_error error;
    const char *failed;      /* what failed to start */
    const char *failed_late; /* why the service ended without a signal; NULL: it did not */
    char peer_socket[128];   /* socket for requests of the service's other processes; empty: none */
};

/* ---- the process ---- */
/* Sets the process's umask and its limits for core dumps and open files; warns of a low limit, and of running as root. */
static void set_limits(const struct config *config)
{
    struct rlimit files, core = {0, 0};
    umask(0027);
    if (config->core_dumps)
        config_exclude_from_core_dumps(config); /* its credentials */
    else
        setrlimit(RLIMIT_CORE, &core); /* a core dump would contain crash data and credentials */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        if (files.rlim_cur < 4096)
            log_warn("run", "the limit of open files is low; raise it (ulimit -n, LimitNOFILE=)",
                     LOG_U64("limit", files.rlim_cur));
    }
    if (geteuid() == 0)
        log_warn("run", "running as root; use an unprivileged user");
}

/* Warns if anyone can write to the cache directory, or if root writes to the cache directory of another user. */
static void warn_of_cache_owner(const struct config *config)
{
    struct stat st;
    if (config->cache_dir && stat(config->cache_dir, &st) == 0 && st.st_mode & S_IWOTH)
        log_warn("cache", "the cache directory is writable by everyone; anyone can change results (chmod o-w)",
                 LOG_STR("cache_dir", config->cache_dir));
    if (config->cache_dir && geteuid() == 0 && stat(config->cache_dir, &st) == 0 && st.st_uid != 0)
        log_warn("cache",
                 "the cache directory belongs to another user, who cannot delete files that root creates there",
                 LOG_STR("cache_dir", config->cache_dir), LOG_U64("owner", st.st_uid));
}

static void fill_http_options(const struct service_run *run, struct http_options *o);

/* Reads the configuration again and applies it in this process. False, with `problems`, if it is invalid: the old one stays. */
static bool reload_here(struct service_run *run, struct sl_buf *problems)
{
    struct http_options options;
    struct config *before = run->config;
    struct config *fresh = reload_config(run->options, before, problems);
    if (!fresh)
        return false;
    const char *timeout = option_value(run->options, "shutdown-timeout", NULL);
    if (timeout)
        duration_parse(sl_str(timeout), &fresh->shutdown_timeout_ns); /* validated at the start */
    if (fresh->core_dumps)
        config_exclude_from_core_dumps(fresh);
    run->config = fresh;
    fill_http_options(run, &options);
    debug_files_apply(fresh);
    service_configure(run->service, fresh);
    http_server_configure(run->server, &options);
    memory_configure(fresh->memory.request_budget, DURATION_MS(fresh->memory.queue_timeout_ns));
    fiber_wake_all(&run->configured); /* starts a new cleanup interval, and checks the sources again */
    config_release(before);           /* requests that began with it hold references of their own */
    return true;
}

/* Reloads the configuration at the request of an API client; if it is valid, tells the parent process, if any, so that the other processes
 * of the service reload too. False if it is invalid. */
static bool reload(void *arg, struct sl_buf *problems)
{
    bool done = reload_here(arg, problems);
    if (done)
        processes_forward_reload();
    return done;
}

/* ---- signals ---- */

/* Blocks the signals that the service handles, and opens a signalfd from which the loop reads them, so that they interrupt no thread. All
 * threads inherit the blocked mask, so call this before any thread starts. False, with run->error, on an error. */
static bool open_signals(struct service_run *run)
{
    static const int handled[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++)
        sigaddset(&set, handled[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    run->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (run->signals < 0)
        sl_fail(&run->error, SL_INTERNAL, "cannot install signal handlers: %s", strerror(errno));
    return run->signals >= 0;
}

/* Ends the service because of signal `number`: the first time lets running jobs finish (drain), the second time exits at once. */
static void run_finish(struct service_run *run, int number)
{
    if (run->stopping) {
        journal_note_end(0, false); /* notes a normal exit: the next start must not blame the jobs that were running */
        _exit(128 + number);
    }
    run->stopping = true;
    fiber_wake_all(&run->signalled);
}

/* Handles SIGHUP: reloads the configuration, and scans directories again. The problems are not used: reload_config has logged them. */
static void on_hangup(struct service_run *run)
{
    struct sl_buf problems = {0};
    if (!run->stopping && reload_here(run, &problems))
        scan_request_pass();
    sl_buf_free(&problems);
}

/* Called by libuv when signals have arrived. SIGHUP: reload; SIGUSR1: reopen log files; SIGUSR2: log running jobs; the others: end. */
static void on_signals(uv_poll_t *poll, int status, int events)
{
    struct service_run *run = poll->data;
    struct signalfd_siginfo signal;
    (void)status, (void)events;
    while (read(run->signals, &signal, sizeof signal) == sizeof signal)
        switch (signal.ssi_signo) {
        case SIGHUP: on_hangup(run); break;
        case SIGUSR1: log_reopen(); break;
        case SIGUSR2: service_log_state(run->service); break;
        default: run_finish(run, (int)signal.ssi_signo);
        }
}

/* Reads signals on the loop. uv_unref: the watch alone must not keep the loop alive. */
static void watch_signals(struct service_run *run)
{
    uv_poll_init(loop_get(), &run->signal_poll, run->signals);
    run->signal_poll.data = run;
    uv_poll_start(&run->signal_poll, UV_READABLE, on_signals);
    uv_unref((uv_handle_t *)&run->signal_poll);
}

/* ---- the HTTP server ---- */
/* Sets `o` to the options of the HTTP server, from the current configuration. */
static void fill_http_options(const struct service_run *run, struct http_options *o)
{
    const struct config *config = run->config;
    http_options_default(o);
    o->bind = config->bind;
    o->bind_count = config->bind_count;
    o->bind_https = config->bind_https;
    o->bind_https_count = config->bind_https_count;
    o->admin_bind = config->admin_bind;
    o->admin_bind_count = config->admin_bind_count;
    o->certificate_path = config->https.certificate_path;
    o->key_path = config->https.key_path;
    o->client_ca_path = config->https.client_ca_path;
    o->unix_group = config->http.unix_group;
    o->families = api_families;
    o->service = run->service;
    o->authorize = access_authorize;
    o->tmp_dir = cache_tmp_dir();
    o->backlog = config->http.backlog;
    o->max_request_line = config->http.max_request_line;
    o->max_head_bytes = config->http.max_head_bytes;
    o->compress_min = config->http.compress_min;
    o->max_header_fields = config->http.max_header_fields;
    o->max_bodies_in_flight = config->http.max_bodies_in_flight;
    o->max_connections = config->http.max_connections;
    o->max_connections_per_ip = config->http.max_connections_per_ip;
    o->keepalive_requests = config->http.keepalive_requests;
    o->header_timeout_ms = DURATION_MS(config->http.header_timeout_ns);
    o->body_timeout_ms = DURATION_MS(config->http.body_timeout_ns);
    o->idle_timeout_ms = DURATION_MS(config->http.idle_timeout_ns);
    o->write_timeout_ms = DURATION_MS(config->http.write_timeout_ns);
    o->min_rate = config->http.min_rate;
    o->allowed_hosts = config->http.allowed_hosts;
    o->allowed_host_count = config->http.allowed_host_count;
    o->loopback_hosts = config->http.trusted_proxy_count == 0; /* a proxy forwards the names of its clients' requests */
    o->trusted_proxies = config->http.trusted_proxies;
    o->trusted_proxy_count = config->http.trusted_proxy_count;
    o->server_header = config->http.server_header;
    /* process.directory: set if this is one of several processes (http.processes), which listen on the same addresses. They end together;
     * with http.reuseport, independent services go on when this one ends */
    o->reuseport = config->http.reuseport || config->process.directory;
    o->shares_listeners = config->http.reuseport && !config->process.directory;
    o->peer_socket = run->peer_socket[0] ? run->peer_socket : NULL;
    o->cors_origins = config->http.cors_origins;
    o->cors_origin_count = config->http.cors_origin_count;
    o->file_max_age_s = config->http.file_max_age_ns / 1000000000u;
    o->access = config->access_log;
    o->access_combined = config->access_format != 0;
}

/* Starts the HTTP server and tells the service manager that the service is ready. False, with run->error, if it cannot listen. */
static bool start_server(struct service_run *run)
{
    struct http_options options;
    fill_http_options(run, &options);
    if (http_server_start(&options, &run->server, &run->error) != SL_OK)
        return false;
    const char *address;
    for (size_t i = 0; *(address = http_server_address(run->server, i)); i++) {
        char line[256];
        snprintf(line, sizeof line, "Starting %s server on %s", http_server_protocol(run->server, i), address);
        log_info("run", line);
    }
    service_on_reload(run->service, reload, run);
    metric_set(METRIC_RELOAD_SUCCESSFUL, 1, NULL, NULL, NULL);
    metric_set(METRIC_RELOAD_TIME, (double)clock_wall_s(), NULL, NULL, NULL);
    if (run->config->path && !config_container_is_set() && config_container_is_detected())
        log_info("run", "using the defaults for hosts, not those for containers, because there is a configuration "
                        "file; set SYMLOOM_CONTAINER=1 for container defaults");
    log_info("run", "symloom is up", LOG_STR("version", SYMLOOM_VERSION), LOG_U64("threads", loop_pool_threads()),
             LOG_U64("memory_budget", memory_limit()),
             LOG_STR("cache_dir", run->config->cache_dir ? run->config->cache_dir : "none"),
             LOG_U64("sources", run->config->source_count));
    service_manager_notify("READY=1");
    return true;
}

/* ---- watchdog and status ----
 *
 * The timers run on the loop, so that the notifications stop when it hangs. */
static void on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    service_manager_notify_limited("WATCHDOG=1");
}

/* Tells the service manager how busy the service is, for `systemctl status`. */
static void on_status(uv_timer_t *timer)
{
    const struct service_run *run = timer->data;
    uint64_t limit = run->config->max_concurrent_requests;
    char text[128], most[32] = "";
    if (limit != UINT64_MAX)
        snprintf(most, sizeof most, "/%llu", (unsigned long long)limit);
    snprintf(text, sizeof text, "STATUS=%zu%s jobs, %zu connections", (size_t)service_running(run->service), most,
             (size_t)http_server_connections(run->server));
    service_manager_notify_limited(text);
}

/* Starts the timers that report to the service manager, if it wants that. uv_unref: the timers alone must not keep the loop alive. */
static void start_notifications(struct service_run *run)
{
    uint64_t watchdog_ms = service_manager_watchdog_ms();
    uv_timer_init(loop_get(), &run->watchdog);
    uv_timer_init(loop_get(), &run->status);
    run->status.data = run;
    if (watchdog_ms)
        uv_timer_start(&run->watchdog, on_watchdog, 0, watchdog_ms);
    if (getenv("NOTIFY_SOCKET"))
        uv_timer_start(&run->status, on_status, 0, STATUS_MS);
    uv_unref((uv_handle_t *)&run->watchdog);
    uv_unref((uv_handle_t *)&run->status);
}

/* ---- cleaning the cache while serving ---- */
struct periodic_cleanup {
    const struct config *config;
    struct cleanup_totals totals;
};

/* Removes expired files of the cache, and others if it is too large. Runs on a pool thread, because it takes long. */
static enum sl_code clean_once(void *arg, struct sl_error *error)
{
    struct periodic_cleanup *c = arg;
    struct cleanup_options options = {0};
    return cache_cleanup(c->config, catalog_kinds, catalog_kind_count, &options, &c->totals, NULL, error);
}

/* Removes expired files of the cache on a pool thread, and logs the result. Holds `config`, since a reload may replace it meanwhile. */
static void clean_now(const struct config *config)
{
    struct periodic_cleanup c = {.config = config_retain(config)};
    struct sl_error error = {0};
    enum sl_code code = pool_call(POOL_IO | POOL_HEAVY, clean_once, &c, &error);
    if (code != SL_CANCELLED && code != SL_OK) /* SL_CANCELLED: the service ends, nothing to report */
        log_error("cleanup", "cache cleanup failed", LOG_ERR(&error));
    else if (code == SL_OK)
        log_info("cleanup", "cache cleanup finished", LOG_U64("removed", c.totals.removed_files),
                 LOG_U64("freed", c.totals.removed_bytes), LOG_U64("left", c.totals.files));
    config_release(c.config);
    cache_drop_deleted(); /* unmaps the removed files: only then their disk space is free */
}

/* True if this process cleans the cache: of the processes of a service (http.processes) only the first does. */
static bool wants_cleaning(const struct config *config)
{
    return config->enable_cache_cleanup && config->cache_dir && config->process.index == 0;
}

/* A fiber: cleans the cache at the start, then at every interval. A reload of the configuration starts a new interval. */
static void clean_repeatedly(void *arg)
{
    struct service_run *run = arg;
    enum fiber_wait woken = FIBER_TIMED_OUT;
    while (woken != FIBER_CANCELLED) {
        if (woken == FIBER_TIMED_OUT && wants_cleaning(run->config))
            clean_now(run->config);
        woken = fiber_wait_on(&run->configured, wants_cleaning(run->config)
                                                    ? DURATION_MS(run->config->cache_cleanup_interval_ns)
                                                    : UINT64_MAX);
    }
}

/* ---- sources at refused addresses ---- */

/* Warns of an HTTP source whose host has a reserved address (such as 10.0.0.1) that downloads may not use. `internal` sources may. */
static void warn_if_refused(const struct source *source, struct sl_arena *arena)
{
    const char *url = source->type == SOURCE_HTTP && !source->internal
                          ? sl_arena_strndup(arena, source->url.data, source->url.size)
                          : NULL;
    const char *host = url ? fetch_url_host(arena, url) : NULL;
    if (host && fetch_is_host_refused(host))
        log_warn("fetch",
                 "a configured source is not asked because its address is reserved; allow it with "
                 "connect_to_reserved_ips or allowed_reserved_networks",
                 LOG_SLSTR("source", source->id), LOG_STR("host", host));
}

/* Warns of each configured source that is not asked because its host has a reserved address, so that the operator knows before the first
 * request. Ends early when the fiber is cancelled. */
static void warn_of_refused_sources(const struct config *config)
{
    struct sl_arena arena = {0};
    for (size_t i = 0; i < config->source_count && !fiber_cancelled(); i++)
        warn_if_refused(&config->sources[i], &arena);
    for (size_t i = 0; config->mozilla.on && i < config->mozilla.source_count && !fiber_cancelled(); i++)
        warn_if_refused(&config->mozilla.stores[i], &arena);
    sl_arena_free(&arena);
}

/* A fiber: checks the sources for reserved addresses at the start and after every reload of the configuration. */
static void warn_repeatedly(void *arg)
{
    struct service_run *run = arg;
    enum fiber_wait woken = FIBER_WOKEN;
    while (woken != FIBER_CANCELLED) {
        const struct config *config = config_retain(run->config);
        warn_of_refused_sources(config);
        config_release(config);
        woken = fiber_wait_on(&run->configured, UINT64_MAX);
    }
}

/* ---- the certificate ---- */
/* A fiber: checks once a day whether the certificate of the HTTPS server expires soon. */
static void watch_certificate(void *arg)
{
    const struct service_run *run = arg;
    while (fiber_sleep(DAY_MS))
        http_server_check_certificate(run->server);
}

/* ---- the launcher of workers ---- */
/* A fiber: ends the service when the launcher, the process that forks the workers that read files, has ended. It can only be started before
 * there are threads and secrets, so the exit status makes the service manager start the service again. */
static void watch_launcher(void *arg)
{
    struct service_run *run = arg;
    while (fiber_sleep(LAUNCHER_MS))
        if (isolation_is_lost() && !run->stopping) {
            log_error("run", "stopping: the launcher of the processes that read files has ended");
            run->failed_late = "the launcher of the processes that read files has ended";
            run_finish(run, SIGTERM);
        }
}

/* ---- StatsD ---- */
/* Returns the host name for metrics that are sent to StatsD: the configured one, else this machine's; NULL when out of memory. */
static const char *statsd_host(const struct config *config, struct sl_arena *arena)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    return config->metrics.host ? config->metrics.host : sl_arena_strndup(arena, host, strlen(host));
}

/* Returns the tags that all metrics sent to StatsD have, in its syntax; "" if there are none, or out of memory. */
static const char *statsd_tags(const struct config *config, const char *host, struct sl_arena *arena)
{
    struct sl_buf tags = {0};
    const struct {
        const char *name, *value;
    } own[] = {{config->metrics.hostname_tag, host},
               {config->metrics.environment_tag, server_environment("SENTRY_ENVIRONMENT")},
               {config->metrics.platform_tag, server_environment("SYMBOLICATOR_PLATFORM")}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i].name && own[i].value)
            statsd_add_tag(&tags, sl_str(own[i].name), sl_str(own[i].value));
    for (size_t i = 0; i < config->metrics.custom_tag_count; i++)
        statsd_add_tag(&tags, config->metrics.custom_tags[i].key, config->metrics.custom_tags[i].value);
    struct sl_str text = sl_buf_move_to_arena(&tags, arena);
    return text.data ? sl_arena_strndup(arena, text.data, text.size) : "";
}

/* Sets up the sending of metrics to StatsD; statsd_init does nothing if no server is configured. Without memory none are sent. */
static void init_statsd(struct config *config)
{
    const char *host = statsd_host(config, &config->arena);
    struct statsd_options options = {.server = config->metrics.statsd,
                                     .prefix = config->metrics.prefix,
                                     .tags = host ? statsd_tags(config, host, &config->arena) : NULL,
                                     .tagged = config->metrics.tags,
                                     .mozilla_names = config->metrics.mozilla_names,
                                     .host = host};
    if (options.tags)
        statsd_init(&options);
}

/* ---- the end ---- */

/* Sends Sentry the errors that were logged while the service drained. Gives up at `end`, when --shutdown-timeout is over, but not before
 * LAST_ANSWERS_MS have passed. */
static void send_last_errors(struct service_run *run, uint64_t end)
{
    uint64_t now = loop_now_ms();
    errors_end();
    fiber_group_deadline(&run->reporting, now + LAST_ANSWERS_MS < end ? end - now : LAST_ANSWERS_MS);
    fiber_group_wait(&run->reporting);
}

/* Logs the jobs that are still running, so that the operator knows which input hangs. */
static void log_left_behind(void)
{
    const struct journal_work *work;
    for (unsigned i = 0; journal_slot_work(i, &work); i++)
        if (work)
            log_warn("run", "this work was not finished when the service exited", LOG_STR("kind", work->kind),
                     LOG_STR("key", work->key), LOG_STR("about", work->about));
}

/* Called by exit_timer when draining took too long: exits without waiting for threads that do not check for cancellation. */
static void exit_without_threads(uv_timer_t *timer)
{
    const struct service_run *run = timer->data;
    log_warn("run", "exiting although some threads are still running", LOG_U64("threads_at_work", pool_busy()),
             LOG_U64("waiting", pool_queued()), LOG_U64("jobs", service_running(run->service)));
    log_left_behind();
    cache_tmp_abandon();
    log_stop();
    _exit(0); /* success: the operator ended the service, although work was left */
}

/* Starts the timer that ends the process if draining takes longer than the configured delay and timeout together, and LAST_WORK_MS more. */
static void schedule_exit(struct service_run *run)
{
    uint64_t delay = DURATION_MS(run->config->shutdown_delay_ns),
             timeout = DURATION_MS(run->config->shutdown_timeout_ns);
    uv_timer_init(loop_get(), &run->exit_timer);
    run->exit_timer.data = run;
    uv_timer_start(&run->exit_timer, exit_without_threads, delay + timeout + LAST_WORK_MS, 0);
}

/* Ends the service in order: refuse new jobs; wait until load balancers have noticed (shutdown_delay); close idle connections; wait for
 * running jobs; stop the rest and send their answers; finish the cache's writes; send the last errors and metrics. */
static void drain(struct service_run *run)
{
    log_info("run", "stopping: waiting for running jobs and open connections",
             LOG_U64("jobs", service_running(run->service)),
             LOG_U64("connections", http_server_connections(run->server)));
    service_manager_notify("STOPPING=1");
    schedule_exit(run);
    service_drain(run->service);
    fiber_group_cancel(&run->cleaning);
    if (run->config->shutdown_delay_ns)
        fiber_sleep(DURATION_MS(run->config->shutdown_delay_ns));
    http_server_drain(run->server);
    uint64_t end = loop_now_ms() + DURATION_MS(run->config->shutdown_timeout_ns), answered;
    while ((!service_idle(run->service) || http_server_active(run->server)) && loop_now_ms() < end)
        fiber_sleep(DRAIN_STEP_MS);
    conversions_abort_all();
    service_stop(run->service);
    answered = loop_now_ms() + LAST_ANSWERS_MS;
    while (http_server_active(run->server) && loop_now_ms() < answered)
        fiber_sleep(DRAIN_STEP_MS);
    http_server_stop(run->server);
    cache_drain();
    fiber_group_wait(&run->cleaning);
    send_last_errors(run, end);
    fiber_group_cancel(&run->pushing); /* statsd_run then sends the last counts and ends */
    fiber_group_wait(&run->pushing);
    uv_close((uv_handle_t *)&run->status, NULL);
    uv_close((uv_handle_t *)&run->exit_timer, NULL);
    service_free(run->service);
}

/* Runs as the main fiber: starts server and background work, waits for a signal, then drains. run->server is NULL if it cannot start. */
static void serve(void *arg)
{
    struct service_run *run = arg;
    scan_open();
    if (!start_server(run)) {
        service_stop(run->service);
        service_free(run->service);
        return;
    }
    watch_signals(run);
    start_notifications(run);
    fiber_group_init(&run->cleaning, NULL);
    fiber_start(&run->cleaning, clean_repeatedly, run);
    if (run->config->process.index == 0) { /* of the processes of a service only the first does this */
        fiber_start(&run->cleaning, symbfile_sweep_repeatedly, NULL);
        fiber_start(&run->cleaning, store_sweep_repeatedly, NULL);
        fiber_start(&run->cleaning, debug_files_sweep_repeatedly, NULL);
        fiber_start(&run->cleaning, warn_repeatedly, run);
    }
    fiber_start(&run->cleaning, scan_run, NULL);
    fiber_start(&run->cleaning, memory_trim_repeatedly, NULL);
    fiber_start(&run->cleaning, cache_unmap_repeatedly, NULL);
    fiber_start(&run->cleaning, service_watch, run->service);
    fiber_start(&run->cleaning, service_watch_directories, run->service);
    fiber_start(&run->cleaning, watch_certificate, run);
    fiber_start(&run->cleaning, watch_launcher, run);
    fiber_group_init(&run->pushing, NULL);
    fiber_start(&run->pushing, statsd_run, NULL);
    fiber_group_init(&run->reporting, NULL);
    fiber_start(&run->reporting, errors_send, NULL);
    while (!run->stopping)
        fiber_wait_on(&run->signalled, UINT64_MAX);
    drain(run);
    uv_close((uv_handle_t *)&run->watchdog, NULL);
    uv_close((uv_handle_t *)&run->signal_poll, NULL);
}

/* Runs the service in this process until it ends; returns the exit status. The caller keeps its reference to `config`, because values that
 * a reload cannot change point into it for good. */
static int start(struct config *config, const struct options *options)
{
    static struct service_run run;
    run.config = config;
    run.options = options;
    if (config->process.directory)
        snprintf(run.peer_socket, sizeof run.peer_socket, "%s/%zu", config->process.directory, config->process.index);
    if (!open_signals(&run))
        return server_failed("failed to start the server", run.error.message);
    loop_init(process_threads(config));
    crash_open();
    log_start();
    set_limits(config);
    pool_set_limit(config->pool_max_queued);
    fiber_set_limit(config->max_fibers);
    memory_configure(config->memory.request_budget, DURATION_MS(config->memory.queue_timeout_ns));
    if (cache_init(config, catalog_kinds, catalog_kind_count, &run.error) != SL_OK) {
        log_stop();
        return server_failed("failed to start the server", run.error.message);
    }
    config_retain(config); /* for run.config, which a reload releases and replaces */
    warn_of_cache_owner(config);
    init_statsd(config);
    errors_init(config->sentry_dsn);
    isolation_open(config);
    catalog_init(config);
    scan_configure(config);
    enum sl_code stored = store_init(config, &run.error);
    /* SL_NOT_FOUND: no store of uploaded symbols is configured */
    if (stored != SL_OK && stored != SL_NOT_FOUND) {
        catalog_close();
        cache_close();
        isolation_close();
        log_stop();
        return server_failed("failed to start the server", run.error.message);
    }
    debug_files_apply(config);
    server_init_fetch(config);
    run.service = fetch_start(&run.error) == SL_OK ? service_new(config) : NULL;
    metric_add(METRIC_STARTS, 1, NULL, NULL, NULL);
    if (run.service)
        loop_run_fiber(serve, &run);
    fetch_close();
    catalog_close();
    store_close();
    debug_files_close();
    cache_close();
    isolation_close();
    log_stop();
    loop_close();
    close(run.signals);
    config_release(run.config);
    if (!run.server)
        return server_failed("failed to start the server", run.error.message);
    return run.failed_late ? server_failed("the service has ended", run.failed_late) : 0;
}

/* Checks what the configuration says of this machine, such as directories, as `symloom config check` does, and reports the problems.
 * Returns 0, or the exit status if there is an error: the service must not start. */
static int check_machine(const struct options *o, const struct config *config)
{
    struct sl_arena arena = {0};
    struct value_problems problems = {.arena = &arena};
    config_check_machine(config, &problems);
    server_report_problems(o, &problems);
    bool failed = problems.errors;
    sl_arena_free(&arena);
    return failed ? server_failed("failed to start the server", "the configuration cannot be used on this machine") : 0;
}

/* Runs `symloom run`: loads and checks the configuration, and serves in one or several processes. Returns the exit status. */
static int load_and_start(const struct options *o)
{
    struct config *config = NULL;
    const char *timeout = option_value(o, "shutdown-timeout", NULL);
    uint64_t ns;
    struct sl_error error;
    if (!options_arguments(o, 0))
        return 2;
    /* forks the launcher of workers before there are secrets and threads; if it fails, files are read in this process */
    isolation_prepare(catalog_converters, catalog_converter_count, catalog_prepare_workers, &error);
    if (timeout && !duration_parse(sl_str(timeout), &ns))
        return options_wrong(o, "--shutdown-timeout: '%s' is not a duration (example: 30s)", timeout);
    int status = server_load(o, &config);
    if (status == 0 && timeout)
        config->shutdown_timeout_ns = ns;
    if (status == 0)
        status = check_machine(o, config);
    if (status == 0)
        status = server_log(o, config, server_verbosity(o));
    if (status == 0 && config->http.processes > 1)
        status = processes_run(config, o, start);
    else if (status == 0)
        status = start(config, o);
    isolation_close();
    config_release(config);
    return status;
}

const struct command command_run = {
    .name = "run",
    .summary = "start the service",
    .usage = "run [OPTION...]",
    .about = "Serves the HTTP API until it receives SIGTERM.",
    .examples = "symloom run -c /etc/symloom/config.yml\n"
                "symloom run --bind 127.0.0.1:3021",
    .options = specs,
    .run = load_and_start,
};
