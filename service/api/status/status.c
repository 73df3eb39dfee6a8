/* GET /status: the state of the service and counters of the last two hours, as JSON. */
#include <stdio.h>
#include <sys/statvfs.h>
#include <time.h>

#include "api/access.h"
#include "api/impl.h"
#include "api/jobs/node.h"
#include "api/jobs/peers.h"
#include "api/history.h"
#include "cache/cache.h"
#include "conversion/isolation.h"
#include "core/build.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/metrics_shared.h"
#include "core/pool.h"
#include "catalog/catalog.h"
#include "scan/scan.h"
#include "symbfile_store/symbfile_store.h"
#include "origin/health.h"

static const char *const status_rights[] = {"status", NULL};

/* ---- values ---- */

/* Writes a time in RFC 3339, UTC; null for 0. */
static void member_time(struct sl_json_writer *w, const char *key, int64_t seconds)
{
    char text[32];
    struct tm tm;
    time_t time = (time_t)seconds;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&time, &tm));
    sl_json_member_or_null(w, key, sl_str(seconds ? text : NULL));
}

/* Writes milliseconds with three decimals; null if negative. */
static void member_ms(struct sl_json_writer *w, const char *key, double ms)
{
    sl_json_put_key(w, key);
    if (ms < 0)
        sl_json_put_null(w);
    else
        sl_json_put_double(w, (double)(uint64_t)(ms * 1e3 + 0.5) / 1e3);
}

/* ---- members of the answer ---- */
/* Writes the members "jobs" and "pool". The limit of jobs is null if the number of jobs is not limited. */
static void write_work(struct sl_json_writer *w, const struct service *service, const struct history_counts *hour)
{
    uint64_t limit = service->config->max_concurrent_requests;
    sl_json_member_object(w, "jobs");
    sl_json_member_u64(w, "running", service_running(service));
    sl_json_put_key(w, "limit");
    if (limit == UINT64_MAX)
        sl_json_put_null(w);
    else
        sl_json_put_u64(w, limit);
    sl_json_member_u64(w, "finished_1h", hour->jobs_finished);
    sl_json_member_u64(w, "failed_1h", hour->jobs_failed);
    sl_json_end_object(w);
    sl_json_member_object(w, "pool");
    sl_json_member_u64(w, "threads", loop_pool_threads());
    sl_json_member_u64(w, "busy", pool_busy());
    sl_json_member_u64(w, "queued", pool_queued());
    sl_json_end_object(w);
}

/* Writes the member "conversion": whether untrusted files are parsed in worker processes or in threads of this process ("why_thread": why
 * not in processes), the kernel features that confine the workers ("confined_by"), and how many workers live, were started and died. */
static void write_isolation(struct sl_json_writer *w)
{
    struct isolation_status status;
    isolation_get_status(&status);
    sl_json_member_object(w, "conversion");
    sl_json_member_or_null(w, "isolation", sl_str(status.is_process ? "process" : "thread"));
    sl_json_member_or_null(w, "why_thread", sl_str(status.reason));
    if (status.is_process) {
        sl_json_member_or_null(w, "confined_by", sl_str(status.measures.text));
        sl_json_member_u64(w, "workers", status.counts.live);
        sl_json_member_u64(w, "workers_started", status.counts.started);
        sl_json_member_object(w, "worker_deaths");
        for (unsigned i = 0; i < WORKER_ENDS; i++)
            sl_json_member_u64(w, worker_end_names[i], status.counts.ended[i]);
        sl_json_end_object(w);
    }
    sl_json_end_object(w);
}

struct system_usage {
    const char *dir;     /* on the disk that is measured */
    uint64_t resident;   /* memory of this process */
    uint64_t free, size; /* of the disk */
};

/* Pool work: measures this process's memory and the disk of `dir`. `free` and `size` stay 0 if statvfs fails. */
static void measure_system(void *arg)
{
    struct system_usage *usage = arg;
    struct statvfs disk;
    usage->resident = metrics_resident_bytes();
    if (statvfs(usage->dir, &disk) == 0) {
        usage->free = (uint64_t)disk.f_bavail * disk.f_frsize;
        usage->size = (uint64_t)disk.f_blocks * disk.f_frsize;
    }
}

/* Writes the members that each process of the service has for itself. */
static void write_process(struct sl_json_writer *w, const struct service *service, const struct history_counts *hour,
                          const struct system_usage *usage)
{
    char node[5];
    snprintf(node, sizeof node, "%04x", node_own_id(service->config));
    sl_json_member_or_null(w, "node", sl_str(node));
    sl_json_member_or_null(w, "state", sl_str(service_state(service)));
    sl_json_member_u64(w, "uptime_seconds", (clock_mono_ns() - service->started_ns) / 1000000000u);
    write_work(w, service, hour);
    sl_json_member_object(w, "memory");
    sl_json_member_u64(w, "resident", usage->resident);
    sl_json_member_u64(w, "budget_used", memory_used());
    sl_json_member_u64(w, "budget", memory_limit());
    sl_json_end_object(w);
    write_isolation(w);
}

static void write_disk(struct sl_json_writer *w, const struct system_usage *usage)
{
    sl_json_member_object(w, "disk");
    sl_json_member_u64(w, "free", usage->free);
    sl_json_member_u64(w, "size", usage->size);
    sl_json_end_object(w);
}

/* After a measurement of the caches' sizes on disk, the next one waits for MEASURE_NS plus MEASURE_SHARE times as long as it took. */
enum { MEASURE_NS = 1000000000, MEASURE_SHARE = 50 };

/* State of the measurement of the caches' sizes on disk; loop thread. */
static struct {
    uint64_t next_ns; /* earliest time of the next measurement */
    bool running;
} measured;

/* Pool work: sets the metrics of the caches' sizes on disk. */
static void measure_caches(void *arg)
{
    cache_measure(arg, catalog_kinds, catalog_kind_count);
}

/* Measures the caches on disk if no cleanup is enabled, which would measure them otherwise. Takes at most 1/50 of the time, however
 * often the status is requested. */
static void measure_if_due(const struct config *config)
{
    uint64_t began = clock_mono_ns();
    if (!config->cache_dir || config->enable_cache_cleanup || measured.running || began < measured.next_ns)
        return;
    measured.running = true; /* other requests run while this fiber waits for the pool: they must not measure too */
    pool_run(POOL_IO | POOL_HEAVY, measure_caches, (void *)config->cache_dir, NULL);
    measured.running = false;
    measured.next_ns = clock_mono_ns() + MEASURE_NS + MEASURE_SHARE * (clock_mono_ns() - began);
}

/* Writes the state of each cache: what it holds, and its look-ups in the last hour. */
static void write_caches(struct sl_json_writer *w, const struct history_counts *hour)
{
    sl_json_member_array(w, "caches");
    for (size_t i = 0; i < catalog_kind_count && i < HISTORY_KINDS; i++) { /* `hour` has arrays of HISTORY_KINDS */
        const char *name = catalog_kinds[i]->name;
        sl_json_begin_object(w);
        sl_json_member_or_null(w, "name", sl_str(name));
        sl_json_member_u64(w, "memory_bytes", (uint64_t)metric_total(METRIC_CACHE_MEMORY_BYTES, name, NULL, NULL));
        sl_json_member_u64(w, "disk_bytes", (uint64_t)metric_total(METRIC_CACHE_DISK_BYTES, name, NULL, NULL));
        sl_json_member_u64(w, "disk_files", (uint64_t)metric_total(METRIC_CACHE_DISK_FILES, name, NULL, NULL));
        sl_json_member_u64(w, "lookups_1h", hour->kind_lookups[i]);
        sl_json_member_u64(w, "computed_1h", hour->kind_computed[i]);
        sl_json_end_object(w);
    }
    sl_json_end_array(w);
}

/* Writes the state of each cache that several nodes share (Redis, bucket). */
static void write_shared(struct sl_json_writer *w)
{
    struct cache_shared_state state;
    sl_json_member_array(w, "shared");
    for (size_t i = 0; cache_shared_state(i, &state); i++) {
        sl_json_begin_object(w);
        sl_json_member_or_null(w, "backend", sl_str(state.name));
        sl_json_member_boolean(w, "up", state.up);
        sl_json_member_or_null(w, "last_error", sl_str(state.last_error));
        sl_json_end_object(w);
    }
    sl_json_end_array(w);
}

/* Writes the state of the store of uploads if several nodes share it. A local store needs none: the member "disk" shows its state. */
static void write_uploads(struct sl_json_writer *w)
{
    struct symbfile_store_state state;
    symbfile_store_get_state(&state);
    if (!state.shared)
        return;
    sl_json_member_object(w, "uploads");
    sl_json_member_or_null(w, "store", sl_str(state.type));
    sl_json_member_boolean(w, "up", state.up);
    sl_json_member_or_null(w, "last_error", sl_str(state.last_error));
    member_time(w, "last_error_at", state.failed_s);
    sl_json_end_object(w);
}

static const char *const type_names[] = {"filesystem", "http", "s3", "gcs", "sentry"}; /* by source.type */

/* Writes the state of a source. `up` is null until the source was used. `blocked_until`, up to which no request is sent to it, is rounded
 * up to the next second. */
static void write_source(struct sl_json_writer *w, const struct source *source)
{
    struct origin_health health;
    uint64_t blocked_ms = origin_blocked_ms(source);
    origin_health(source, &health);
    sl_json_begin_object(w);
    sl_json_member_str(w, "id", source->id);
    sl_json_member_or_null(w, "type", sl_str(type_names[source->type]));
    sl_json_member_or_null(w, "layout",
                           sl_str(source->type == SOURCE_SENTRY ? NULL : layout_type_words[source->layout]));
    member_time(w, "last_success", health.last_success_s);
    sl_json_member_or_null(w, "last_error", sl_str(health.last_error_s ? health.last_error : NULL));
    member_time(w, "last_error_at", health.last_error_s);
    member_time(w, "blocked_until", blocked_ms ? clock_wall_s() + (int64_t)(blocked_ms / 1000) + 1 : 0);
    sl_json_member_u64(w, "ok_1h", health.last_hour[ORIGIN_OK]);
    sl_json_member_u64(w, "not_found_1h", health.last_hour[ORIGIN_NOT_FOUND]);
    sl_json_member_u64(w, "failed_1h", health.last_hour[ORIGIN_FAILED]);
    sl_json_put_key(w, "up");
    if (health.state == ORIGIN_UNKNOWN)
        sl_json_put_null(w);
    else
        sl_json_put_boolean(w, health.state == ORIGIN_UP);
    sl_json_end_object(w);
}

static void write_sources(struct sl_json_writer *w, const struct config *config)
{
    sl_json_member_array(w, "sources");
    for (size_t i = 0; i < config->source_count; i++)
        write_source(w, &config->sources[i]);
    sl_json_end_array(w);
}

/* Writes the scanned directories: what their indexes contain, and how far a scan that is running has come. */
static void write_scans(struct sl_json_writer *w)
{
    struct scan_state state;
    sl_json_member_array(w, "scans");
    for (size_t i = 0; scan_get_state(i, &state); i++) {
        sl_json_begin_object(w);
        sl_json_member_str(w, "id", state.id);
        sl_json_member_or_null(w, "state", sl_str(state.state));
        sl_json_member_u64(w, "files", state.files);
        sl_json_member_u64(w, "done", state.done);
        sl_json_member_u64(w, "new_files", state.new_files);
        sl_json_member_u64(w, "packages", state.packages);
        sl_json_member_u64(w, "failed", state.failed);
        sl_json_member_u64(w, "skipped", state.skipped);
        sl_json_member_u64(w, "indexed_files", state.indexed_files);
        sl_json_member_u64(w, "ids", state.ids);
        sl_json_member_u64(w, "index_bytes", state.index_bytes);
        member_time(w, "last_pass", state.last_pass_s);
        sl_json_member_u64(w, "last_pass_ms", state.last_pass_ms);
        sl_json_member_or_null(w, "last_error", sl_str(*state.last_error ? state.last_error : NULL));
        sl_json_end_object(w);
    }
    sl_json_end_array(w);
}

/* Writes the points of the history, the oldest first. */
static void write_history(struct sl_json_writer *w, const struct history *history)
{
    struct history_point points[HISTORY_POINTS + 1]; /* + 1: the minute that has not ended yet */
    size_t count = history_points(history, points);
    sl_json_member_object(w, "history");
    sl_json_member_u64(w, "step_seconds", HISTORY_STEP_S);
    sl_json_member_array(w, "points");
    for (size_t i = 0; i < count; i++) {
        sl_json_begin_object(w);
        member_time(w, "t", points[i].t);
        sl_json_member_u64(w, "requests", points[i].requests);
        sl_json_member_u64(w, "errors", points[i].errors);
        sl_json_member_u64(w, "lookups", points[i].lookups);
        sl_json_member_u64(w, "computed", points[i].computed);
        member_ms(w, "p50_ms", points[i].p50_ms);
        member_ms(w, "p99_ms", points[i].p99_ms);
        sl_json_end_object(w);
    }
    sl_json_end_array(w);
    sl_json_end_object(w);
}

/* ---- the answer ---- */

/* True if the client may see the whole status: the group of routes "status" needs no key, or the client's key has the right "status". */
static bool may_see_all(struct http_exchange *x)
{
    const struct config *config = ((const struct service *)x->service)->config;
    if (!access_required(config, "status"))
        return true;
    return access_check(x, ACCESS_ANY_FORM, status_rights, NULL) == ACCESS_GRANTED;
}

/* Asks the other processes of this service for their status, and appends a JSON array of all processes that answer, this one included, in
 * the order of their indexes. Appends nothing if this is the only process, or if another process of the service is the client. */
static void request_from_peers(struct http_exchange *x, const struct config *config, const struct history_counts *hour,
                               const struct system_usage *usage, struct sl_buf *out)
{
    size_t count = config->http.processes, own = config->process.index;
    struct sl_buf *texts = peers_should_answer(x) ? SL_ARENA_ARRAY(&x->arena, struct sl_buf, count) : NULL;
    struct sl_json_writer w = sl_json_writer(out);
    if (!texts) /* no other process is to be asked, or there is no memory */
        return;
    peers_request(x, "/status", (struct sl_str){0}, texts);
    sl_json_begin_array(&w);
    for (size_t i = 0; i < count; i++) {
        if (i == own) {
            sl_json_begin_object(&w);
            write_process(&w, x->service, hour, usage);
            sl_json_end_object(&w);
        } else if (texts[i].size) {
            sl_json_put_raw(&w, sl_buf_view(&texts[i]));
        }
        sl_buf_free(&texts[i]);
    }
    sl_json_end_array(&w);
}

/* Writes how many processes of the service have died since it started, and why the last one did. */
static void write_deaths(struct sl_json_writer *w)
{
    struct metrics_deaths deaths = {0};
    metrics_get_deaths(&deaths);
    sl_json_member_object(w, "deaths");
    sl_json_member_u64(w, "count", deaths.count);
    member_time(w, "last", deaths.last_s);
    sl_json_member_or_null(w, "last_why", sl_str(deaths.count ? deaths.last_why : NULL));
    sl_json_end_object(w);
}

/* Writes the members of the whole status. If another process of this service sent the request, writes only the members of this process,
 * which the other one adds to its answer to the client. */
static void write_all(struct http_exchange *x, struct sl_json_writer *w, const struct config *config)
{
    const struct service *service = x->service;
    struct system_usage usage = {.dir = config->cache_dir ? config->cache_dir : cache_tmp_dir()};
    struct history_counts hour;
    struct sl_buf processes = {0};
    bool only_process = node_is_forwarded(x);
    pool_run(POOL_IO, measure_system, &usage, NULL); /* on failure `usage` stays zero */
    if (!only_process)
        measure_if_due(config);
    history_last_hour(service->history, &hour);
    request_from_peers(x, config, &hour, &usage, &processes);
    if (!only_process) {
        sl_json_member_or_null(w, "version", sl_str(BUILD_VERSION));
        sl_json_member_or_null(w, "commit", sl_str(build_commit()));
    }
    write_process(w, service, &hour, &usage);
    if (!only_process) {
        write_disk(w, &usage);
        write_caches(w, &hour);
        write_shared(w);
        write_uploads(w);
        write_sources(w, config);
        write_scans(w);
        write_history(w, service->history);
    }
    if (processes.size && !processes.failed) { /* out of memory: the status of this process alone is better than none */
        sl_json_member_raw(w, "processes", sl_buf_view(&processes));
        write_deaths(w); /* counted by the parent process, which only a service of several processes has */
    }
    sl_buf_free(&processes);
}

/* GET /status: answers with the whole status, or only with version and state, if the client's key does not allow more. */
static void answer_status(struct http_exchange *x)
{
    const struct config *config = config_retain(((const struct service *)x->service)->config);
    struct sl_json_writer w = sl_json_writer(&x->body);
    http_reply(x, 200, "application/json", SL_STR("")); /* with an empty body, to which `w` appends */
    sl_json_begin_object(&w);
    if (may_see_all(x)) {
        write_all(x, &w, config);
    } else {
        sl_json_member_or_null(&w, "version", sl_str(BUILD_VERSION));
        sl_json_member_or_null(&w, "state", sl_str(service_state(x->service)));
    }
    sl_json_end_object(&w);
    config_release(config);
}

static const struct http_route routes[] = {
    {.method = "GET", .pattern = "/status", .handler = answer_status, .health = true, .operators = true},
    {.method = NULL},
};

const struct http_family family_status = {.routes = routes, .offers_basic_auth = true};

/* LOOK_S: seconds between two checks of clock, pool and directories. LOOK_AGAIN_S: seconds between two checks of the directories while
 * one is missing. JUMP_S: smaller changes of the clock are not reported. STALLED_MS: when quick jobs have waited so long for a pool
 * thread, the process aborts. */
enum { LOOK_S = 10, LOOK_AGAIN_S = 2, JUMP_S = 60, STALLED_MS = 5 * 60 * 1000 };

/* Warns when the wall clock was set by more than JUMP_S: times of expiry are times of this clock. `*offset_s` is the wall clock minus
 * the monotonic clock (which never jumps) at the last call; it is updated for the next call. */
static void watch_clock(int64_t *offset_s)
{
    int64_t new_offset_s = clock_wall_s() - (int64_t)(clock_mono_ns() / 1000000000), jump_s = new_offset_s - *offset_s;
    if (jump_s > JUMP_S || jump_s < -JUMP_S)
        log_warn("core", "the system clock was changed; cached entries may expire too early or too late",
                 LOG_I64("seconds", jump_s));
    *offset_s = new_offset_s;
}

/* Checks every LOOK_S seconds whether the clock was set or the thread pool is stalled. Every HISTORY_STEP_S seconds (a minute) records
 * the counters of the metrics and of the sources. */
void service_watch(void *arg)
{
    struct service *service = arg;
    int64_t offset_s = clock_wall_s() - (int64_t)(clock_mono_ns() / 1000000000);
    origin_health_watch(); /* from now on sources that go down are logged, which commands do not want */
    for (unsigned looks = 1; fiber_sleep(LOOK_S * 1000); looks++) {
        watch_clock(&offset_s);
        pool_end_if_stalled(STALLED_MS);
        if (looks % (HISTORY_STEP_S / LOOK_S)) /* the rest only once a minute */
            continue;
        history_minute(service->history);
        origin_health_minute();
    }
}

/* Runs as a fiber until it is cancelled: checks that the directories of filesystem sources exist, more often while one is missing. */
void service_watch_directories(void *arg)
{
    const struct service *service = arg;
    bool all;
    do {
        const struct config *config = config_retain(service->config);
        all = origin_check_directories(config->sources, config->source_count);
        config_release(config);
    } while (fiber_sleep((all ? LOOK_S : LOOK_AGAIN_S) * 1000));
}
