/* Health checks and metrics. Health checks are answered from memory, even when the service is overloaded; only Mozilla's heartbeat queries
 * the symbol stores. */
#include <sys/statvfs.h>

#include "api/health/dockerflow.h"
#include "api/impl.h"
#include "api/jobs/peers.h"
#include "cache/cache.h"
#include "conversion/isolation.h"
#include "core/duration.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/metrics_shared.h"
#include "core/metrics_sum.h"
#include "core/pool.h"
#include "fetch/fetch.h"

static void count_check(void)
{
    metric_add(METRIC_HEALTHCHECKS, 1, NULL, NULL, NULL);
}

static void answer_health(struct http_exchange *x)
{
    const struct service *service = x->service;
    count_check();
    reply_text(x, service->draining ? 503 : 200, service->draining ? "draining" : "ok");
}

static void answer_live(struct http_exchange *x)
{
    count_check();
    reply_text(x, 200, "ok");
}

enum { CLOCK_SET = 1704067200 }; /* 2024-01-01: an earlier date means that the clock is not set */

/* Writes the reasons why the service cannot take requests to `out`, as static strings; there are five. Returns how many of them hold; 0: it
 * is ready. */
static size_t not_ready_reasons(const struct service *service, const char *out[5])
{
    size_t count = 0;
    if (service->draining)
        out[count++] = "draining";
    if (!cache_writable())
        out[count++] = "cache directory not writable";
    if (pool_stalled(DURATION_MS(service->config->health_stalled_ns)))
        out[count++] = "pool stalled";
    if (loop_descriptors_short())
        out[count++] = "out of descriptors";
    if (clock_wall_s() < CLOCK_SET) /* the clock shows a year before 2024, so it is not set */
        out[count++] = "clock";
    return count;
}

const char *service_state(const struct service *service)
{
    const char *why[5];
    return service->draining ? "draining" : not_ready_reasons(service, why) ? "not ready" : "ready";
}

/* GET /ready: answers 200 if the service can take requests, else 503 with the reasons. http_reply() sets an empty body, to which the JSON
 * is then written directly (`w` writes to x->body). */
static void answer_ready(struct http_exchange *x)
{
    const char *why[5];
    size_t count = not_ready_reasons(x->service, why);
    struct sl_json_writer w = sl_json_writer(&x->body);
    count_check();
    http_reply(x, count ? 503 : 200, "application/json", SL_STR(""));
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "status", count ? SL_STR("not ready") : SL_STR("ready"));
    if (count) {
        sl_json_member_array(&w, "reasons");
        for (size_t i = 0; i < count; i++)
            sl_json_put_str(&w, sl_str(why[i]));
        sl_json_end_array(&w);
    }
    sl_json_end_object(&w);
}

struct metrics_text {
    const struct config *config;
    struct sl_buf text;
    bool open_metrics; /* in the OpenMetrics format, else in Prometheus' text format */
};

/* Sets the metrics of free and total bytes of the file system with this directory, under a label; nothing if `dir` is NULL or cannot be
 * queried. */
static void measure_disk(const char *dir, const char *label)
{
    struct statvfs disk;
    if (!dir || statvfs(dir, &disk) != 0)
        return;
    metric_set(METRIC_DISK_FREE, (double)disk.f_bavail * (double)disk.f_frsize, label, NULL, NULL);
    metric_set(METRIC_DISK_SIZE, (double)disk.f_blocks * (double)disk.f_frsize, label, NULL, NULL);
}

/* Pool work: writes all metrics, after measuring those that are only measured on demand: file systems and the quarantine directory. */
static void write_metrics(void *arg)
{
    struct metrics_text *metrics = arg;
    measure_disk(metrics->config->cache_dir, "cache");
    measure_disk(metrics->config->symbfile.store_dir, "store");
    if (metrics->config->cache_dir)
        metric_set(METRIC_QUARANTINED, (double)cache_quarantine_list(metrics->config->cache_dir, NULL, NULL), NULL,
                   NULL, NULL);
    metrics_write(&metrics->text, metrics->open_metrics);
}

/* ---- several processes: the one that answers queries the others ---- */
enum { MAX_TRIES = 10 }; /* how often the metrics are gathered again because a process died meanwhile */

struct metrics_summation { /* metrics texts to be summed by the pool */
    const struct sl_str *texts;
    size_t count;
    struct sl_buf sum;
};

static void add_up(void *arg)
{
    struct metrics_summation *a = arg;
    a->sum.failed = !metrics_sum(a->texts, a->count, &a->sum);
}

/* Collects the metrics of the other processes of the service, which has `count` processes: texts[i] gets the answer of process i. Those
 * that do not answer or have died have counted in shared memory: texts[count] gets their counts. Starts again if a process died
 * meanwhile, because its counts, now merged with those of dead processes, would be counted twice. */
static void gather_processes(struct http_exchange *x, struct sl_str accept, struct sl_buf *texts, bool open_metrics)
{
    const struct config *config = ((const struct service *)x->service)->config;
    size_t count = config->http.processes;
    bool *silent = SL_ARENA_ARRAY(&x->arena, bool, count);
    unsigned before = metrics_merge_count() + 1; /* differs from the count, so that the loop runs at least once */
    for (int tries = 0; silent && before != metrics_merge_count() && tries < MAX_TRIES; tries++) {
        for (size_t i = 0; i <= count; i++)
            sl_buf_free(&texts[i]);
        /* an odd count means that a death is being recorded now: `before` then differs, and the loop runs again */
        before = metrics_merge_count() & ~1u;
        peers_request(x, "/metrics", accept, texts);
        for (size_t i = 0; i < count; i++)
            silent[i] = !texts[i].size && i != config->process.index;
        metrics_write_others(&texts[count], open_metrics, silent);
    }
}

/* Replaces the metrics of this process in `own` by the sums over all processes. When out of memory before the others were asked, leaves
 * `own` as it is; if the sums cannot be made, own->failed is set. */
static void sum_processes(struct http_exchange *x, struct sl_buf *own, struct sl_str accept, bool open_metrics)
{
    const struct config *config = ((const struct service *)x->service)->config;
    size_t count = config->http.processes, index = config->process.index;
    struct sl_buf *texts = SL_ARENA_ARRAY(&x->arena, struct sl_buf, count + 1);
    struct sl_str *views = SL_ARENA_ARRAY(&x->arena, struct sl_str, count + 1);
    struct metrics_summation a = {.texts = views};
    if (!texts || !views)
        return;
    gather_processes(x, accept, texts, open_metrics); /* the last text is of the processes that did not answer */
    texts[index] = *own;
    *own = (struct sl_buf){0};
    views[a.count++] = sl_buf_view(&texts[index]);
    for (size_t i = 0; i <= count; i++)
        if (i != index && texts[i].size)
            views[a.count++] = sl_buf_view(&texts[i]);
    if (pool_run(POOL_IO, add_up, &a, NULL) != SL_OK)
        a.sum.failed = true;
    for (size_t i = 0; i <= count; i++)
        sl_buf_free(&texts[i]);
    *own = a.sum;
}

/* GET /metrics: answers with the metrics of all processes of the service or, if another of these processes asks, of this one. They are
 * written on the pool, because there are hundreds of series and file systems are queried. */
static void answer_metrics(struct http_exchange *x)
{
    struct service *service = x->service;
    struct sl_str accept = http_header(x, "accept");
    struct metrics_text metrics = {.config = config_retain(service->config)};
    struct sl_error error;
    /* 28: the length of the name */
    metrics.open_metrics = accept.size && memmem(accept.data, accept.size, "application/openmetrics-text", 28);
    jobs_collect_metrics(service);
    metric_set(METRIC_READY, strcmp(service_state(service), "ready") == 0, NULL, NULL, NULL);
    metric_set(METRIC_DRAINING, service->draining ? 1 : 0, NULL, NULL, NULL);
    isolation_set_metrics();
    metrics_collect();
    fetch_collect_metrics();
    bool written = pool_run(POOL_IO, write_metrics, &metrics, &error) == SL_OK;
    if (written && peers_should_answer(x))
        sum_processes(x, &metrics.text, accept, metrics.open_metrics);
    config_release(metrics.config);
    if (!written || metrics.text.failed) {
        sl_buf_free(&metrics.text);
        http_reply_detail(x, 503, "cannot collect metrics", NULL);
        return;
    }
    http_reply(x, 200,
               metrics.open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                    : "text/plain; version=0.0.4; charset=utf-8",
               SL_STR(""));
    sl_buf_free(&x->body); /* http_reply() has set an empty body; the text is not copied */
    x->body = metrics.text;
}

static const struct http_route routes[] = {
    {.method = "GET", .pattern = "/__version__", .handler = dockerflow_version, .health = true, .page_view = true},
    {.method = "GET", .pattern = "/__heartbeat__", .handler = dockerflow_heartbeat, .health = true, .page_view = true},
    {.method = "GET",
     .pattern = "/__lbheartbeat__",
     .handler = dockerflow_alive,
     .health = true,
     .immediate = true,
     .page_view = true},
    {.method = "GET",
     .pattern = "/__broken__",
     .handler = dockerflow_broken,
     .health = true,
     .immediate = true,
     .page_view = true},
    {.method = "GET", .pattern = "/healthcheck", .handler = answer_health, .health = true, .immediate = true},
    {.method = "GET", .pattern = "/live", .handler = answer_live, .health = true, .immediate = true},
    {.method = "GET", .pattern = "/ready", .handler = answer_ready, .health = true, .immediate = true},
    {.method = "GET",
     .pattern = "/metrics",
     .handler = answer_metrics,
     .health = true,
     .operators = true,
     .rights = API_RIGHT("metrics")},
    {.method = NULL},
};

const struct http_family family_health = {.routes = routes, .group = "metrics", .offers_basic_auth = true};
