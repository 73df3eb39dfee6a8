#include "core/metrics.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/build.h"
#include "core/fiber.h"
#include "core/impl.h"
#include "core/memory.h"
#include "core/metrics_impl.h"

enum { MAX_SERIES = 500, SLOTS = 1024, MAX_BUCKETS = 16, MAX_LABELS = 4 };

enum kind { COUNTER, GAUGE, HISTOGRAM };

struct buckets {
    unsigned count;
    double bounds[MAX_BUCKETS];
};

static const struct buckets seconds = {
    16, {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900}};
static const struct buckets counts = {11, {0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 100000}};
static const struct buckets sizes = {
    12,
    {4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864, 268435456, 1073741824, 4294967296, 17179869184}};

static const struct {
    const char *name; /* without symloom_ */
    enum kind kind;
    const char *labels[MAX_LABELS];
    const struct buckets *buckets;
    const char *help;
    const char *statsd; /* the name that it had elsewhere; NULL = the same */
} table[METRIC_COUNT] = {
    {"http_requests_total",
     COUNTER,
     {"route", "method", "status"},
     NULL,
     "Finished requests, health checks excluded.",
     "responses.status_code"},
    {"http_request_duration_seconds",
     HISTOGRAM,
     {"route"},
     &seconds,
     "Head complete to answer written.",
     "requests.duration"},
    {"http_request_bytes_total", COUNTER, {"route"}, NULL, "Request body bytes on the wire."},
    {"http_response_bytes_total", COUNTER, {"route"}, NULL, "Response body bytes on the wire."},
    {"http_connections", GAUGE, {"state"}, NULL, "Open connections."},
    {"http_connections_total", COUNTER, {"result"}, NULL, "Connections by what became of them at accept."},
    {"http_aborted_total", COUNTER, {"reason"}, NULL, "Connections that ended early."},
    {"http_refused_total", COUNTER, {"reason"}, NULL, "Requests refused before work began."},
    {"healthchecks_total", COUNTER, {NULL}, NULL, "Health checks answered.", "healthcheck"},
    {"starts_total", COUNTER, {NULL}, NULL, "Starts of the service.", "server.starting"},
    {"jobs_rejected_total", COUNTER, {NULL}, NULL, "Jobs refused because all slots were taken.", "requests.rejected"},
    {"jobs_accepted_total", COUNTER, {"task"}, NULL, "Jobs accepted.", "requests.accepted"},
    {"jobs_finished_total", COUNTER, {"task", "outcome"}, NULL, "Jobs ended.", "requests.processed"},
    {"jobs_running", GAUGE, {"task"}, NULL, "Jobs that run now.", "requests.in_flight"},
    {"jobs_limit", GAUGE, {NULL}, NULL, "Jobs that may run at once.", "requests.max_in_flight"},
    {"job_duration_seconds", HISTOGRAM, {"task"}, &seconds, "Start of a job to its outcome.", "jobs.duration"},
    {"job_start_delay_seconds",
     HISTOGRAM,
     {NULL},
     &seconds,
     "Wait of an accepted job for its first turn.",
     "symbolication.create_request.first_poll"},
    {"job_result_idle_seconds",
     HISTOGRAM,
     {NULL},
     &seconds,
     "End of a job until its result was first fetched.",
     "requests.response_idling"},
    {"polls_total", COUNTER, {"result"}, NULL, "Polls for results."},
    {"modules_total",
     COUNTER,
     {"platform", "purpose", "status"},
     NULL,
     "Module statuses of answers.",
     "symbolication.debug_status"},
    {"frames_total", COUNTER, {"origin", "platform", "status"}, NULL, "Frame statuses of answers."},
    {"symbolication_items", HISTOGRAM, {"origin", "item"}, &counts, "What requests hold, by their number."},
    {"address_underflow_total", COUNTER, {NULL}, NULL, "Addresses below their module.", "relative_addr.underflow"},
    {"cache_lookups_total", COUNTER, {"cache", "layer", "result"}, NULL, "Look-ups by the layer that answered."},
    {"cache_compute_seconds", HISTOGRAM, {"cache"}, &seconds, "Time to compute an entry."},
    {"cache_file_bytes", HISTOGRAM, {"cache", "hit"}, &sizes, "Sizes of entries.", "caches.file.size"},
    {"cache_writes_total", COUNTER, {"cache", "status", "is_refresh"}, NULL, "Entries written.", "caches.file.write"},
    {"cache_memory_bytes", GAUGE, {"cache"}, NULL, "Bytes held by the memory layer."},
    {"cache_memory_items", GAUGE, {"cache"}, NULL, "Items held by the memory layer."},
    {"cache_mapped_files", GAUGE, {"cache"}, NULL, "Items of the memory layer that are mapped files."},
    {"cache_disk_bytes", GAUGE, {"cache"}, NULL, "Bytes on disk as of the last cleanup.", "caches.size.bytes"},
    {"cache_disk_files", GAUGE, {"cache"}, NULL, "Files on disk as of the last cleanup.", "caches.size.files"},
    {"cache_removed_bytes_total",
     COUNTER,
     {"cache", "reason"},
     NULL,
     "Bytes removed by cleanups.",
     "caches.size.bytes_removed"},
    {"cache_removed_files_total",
     COUNTER,
     {"cache", "reason"},
     NULL,
     "Files removed by cleanups.",
     "caches.size.files_removed"},
    {"cache_corrupt_total", COUNTER, {"cache"}, NULL, "Entries found damaged.", "caches.file.corrupt"},
    {"cache_lazy_refused_total",
     COUNTER,
     {"cache"},
     NULL,
     "Refreshes put off because enough of them ran.",
     "caches.lazy_limit_hit"},
    {"shared_ops_total", COUNTER, {"backend", "cache", "op", "result"}, NULL, "Operations of the shared cache."},
    {"shared_bytes_total", COUNTER, {"backend", "direction"}, NULL, "Bytes to and from the shared cache."},
    {"shared_op_seconds", HISTOGRAM, {"backend", "op"}, &seconds, "Time of operations of the shared cache."},
    {"shared_up", GAUGE, {"backend"}, NULL, "1 when the back end answers."},
    {"shared_queue", GAUGE, {NULL}, NULL, "Entries that wait to be stored in the shared cache."},
    {"shared_uploads", GAUGE, {NULL}, NULL, "Entries being stored in the shared cache."},
    {"downloads_total", COUNTER, {"source", "result"}, NULL, "Whole downloads."},
    {"download_attempts_total", COUNTER, {"source"}, NULL, "Attempts of downloads."},
    {"download_bytes_total", COUNTER, {"source"}, NULL, "Bytes downloaded."},
    {"download_seconds", HISTOGRAM, {"source", "phase"}, &seconds, "Time of downloads."},
    {"downloads_in_flight", GAUGE, {NULL}, NULL, "Downloads that run now."},
    {"downloads_queued", GAUGE, {NULL}, NULL, "Downloads that wait for a slot."},
    {"blocked_hosts", GAUGE, {NULL}, NULL, "Hosts on the deny list.", "service.download.blocked-hosts"},
    {"symstore_last_id", GAUGE, {"source"}, NULL, "Segments of the source's symstore index.", "index.symstore.lastid"},
    {"blocked_addresses_total", COUNTER, {NULL}, NULL, "Connections to reserved addresses refused.", "http.blocked_ip"},
    {"download_id_mismatch_total", COUNTER, {"source"}, NULL, "Files whose id was not the one asked for."},
    {"download_compression_total", COUNTER, {"type"}, NULL, "Compressed files downloaded.", "compression"},
    {"source_token_total", COUNTER, {"kind", "result"}, NULL, "Credentials and indexes of sources, kept or asked for."},
    {"conversions_total", COUNTER, {"cache", "result"}, NULL, "Conversions of debug files."},
    {"conversion_seconds", HISTOGRAM, {"cache"}, &seconds, "Time of conversions."},
    {"minidump_bytes", HISTOGRAM, {NULL}, &sizes, "Sizes of minidumps.", "minidump.upload.size"},
    {"minidump_walk_seconds",
     HISTOGRAM,
     {NULL},
     &seconds,
     "Time to walk the stacks of a minidump.",
     "minidump.stackwalk.duration"},
    {"conversions_partial_total", COUNTER, {"cache"}, NULL, "Conversions that left out what could not be read."},
    {"js_items", HISTOGRAM, {"item"}, &counts, "What requests for frames of scripts had and asked for."},
    {"js_lookups_total",
     COUNTER,
     {"result", "type", "lookup", "had_debugid"},
     NULL,
     "Scripts, source maps and sources that were looked for."},
    {"mozilla_request_seconds", HISTOGRAM, {"version"}, &seconds, "Requests of Mozilla's clients."},
    {"mozilla_items", HISTOGRAM, {"item"}, &counts, "Jobs and frames of such a request, stacks of a job."},
    {"mozilla_errors_total", COUNTER, {"reason"}, NULL, "Such requests that were refused."},
    {"symbfile_parts_total", COUNTER, {"kind", "result"}, NULL, "Parts of symbfiles, received or refused."},
    {"symbfile_bytes_total", COUNTER, {"kind"}, NULL, "Bytes of parts that were received."},
    {"symbfile_records_total", COUNTER, {"kind"}, NULL, "Records of parts that were received."},
    {"symbfile_sets_published_total", COUNTER, {"kind"}, NULL, "Complete uploads that took the place of older ones."},
    {"store_bytes", GAUGE, {"area"}, NULL, "Bytes of uploads as of the last sweep of the store."},
    {"pool_threads", GAUGE, {NULL}, NULL, "Threads of the pool."},
    {"pool_busy", GAUGE, {NULL}, NULL, "Threads of the pool at work."},
    {"pool_queued", GAUGE, {NULL}, NULL, "Jobs that wait for a thread."},
    {"pool_run_seconds", HISTOGRAM, {"job"}, &seconds, "Time of pool jobs."},
    {"pool_wait_seconds", HISTOGRAM, {"job"}, &seconds, "Time that pool jobs waited for a thread."},
    {"loop_lag_seconds", HISTOGRAM, {NULL}, &seconds, "Lateness of a timer of the loop."},
    {"faults_recovered_total", COUNTER, {"kind"}, NULL, "Faults that ended a piece of work and not the process."},
    {"quarantined_keys", GAUGE, {NULL}, NULL, "Files that are not worked on because the service died of them."},
    {"busy_total", COUNTER, {"what"}, NULL, "Work refused or failed for want of something, by what was scarce."},
    {"waiting", GAUGE, {"what"}, NULL, "Work that waits for something scarce, by what it waits for."},
    {"fibers", GAUGE, {NULL}, NULL, "Live fibers."},
    {"fiber_stacks", GAUGE, {NULL}, NULL, "Fiber stacks allocated."},
    {"memory_budget_bytes", GAUGE, {"state"}, NULL, "Memory that requests share: used, and the limit."},
    {"log_messages_total", COUNTER, {"level"}, NULL, "Lines of the log, access lines excluded."},
    {"disk_free_bytes", GAUGE, {"dir"}, NULL, "Free bytes of the file system of a directory."},
    {"disk_size_bytes", GAUGE, {"dir"}, NULL, "Bytes of the file system of a directory."},
    {"log_dropped_total",
     COUNTER,
     {NULL},
     NULL,
     "Log lines dropped: the ring was full, or the disk, or nobody reads the pipe any more."},
    {"ready", GAUGE, {NULL}, NULL, "1 when ready for work."},
    {"draining", GAUGE, {NULL}, NULL, "1 while draining."},
    {"config_last_reload_successful", GAUGE, {NULL}, NULL, "1 when the configuration in use is the one last read."},
    {"config_last_reload_timestamp_seconds", GAUGE, {NULL}, NULL, "When a configuration was last read and taken."},
    {"build_info", GAUGE, {"version", "commit", "compiler"}, NULL, "Always 1."},
};

struct metric_series {
    uint64_t hash;
    char *labels;             /* `a="x",b="y"`, escaped; empty without labels */
    char *values[MAX_LABELS]; /* as they are; NULL = none */
    const struct buckets *buckets;
    atomic_ullong value; /* a counter; the bits of a gauge's double; a histogram's sum (bits of a double) */
    atomic_ullong bucket[MAX_BUCKETS + 1];
    uint64_t pushed;             /* the value of a counter when it was last pushed */
    _Atomic(struct kept *) kept; /* values of a histogram since then; NULL = none yet */
};

enum { KEPT_MOST = 1000 };
struct kept {
    atomic_uint seen;
    _Atomic float values[KEPT_MOST]; /* the first of them */
};
static atomic_bool keeps_values;

/* Open addressing; a slot is filled once and never emptied, so readers need no lock. */
static _Atomic(struct metric_series *) *_Atomic slots[METRIC_COUNT];
static size_t series_count[METRIC_COUNT];
static pthread_mutex_t insert_lock = PTHREAD_MUTEX_INITIALIZER;

static double from_bits(unsigned long long bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static unsigned long long to_bits(double value)
{
    unsigned long long bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t hash_labels(const char *const values[MAX_LABELS])
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < MAX_LABELS; i++) {
        for (const char *at = values[i] ? values[i] : ""; *at; at++)
            hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;
        hash = (hash ^ 0xFF) * 0x100000001b3u;
    }
    return hash ? hash : 1;
}

static char *format_labels(enum metric metric, const char *const values[MAX_LABELS])
{
    struct sl_buf text = {0};
    for (int i = 0; i < MAX_LABELS && table[metric].labels[i]; i++) {
        sl_buf_printf(&text, "%s%s=\"", i ? "," : "", table[metric].labels[i]);
        for (const char *at = values[i] ? values[i] : ""; *at; at++) {
            if (*at == '\\' || *at == '"')
                sl_buf_u8(&text, '\\');
            if (*at == '\n')
                sl_buf_cstr(&text, "\\n");
            else
                sl_buf_u8(&text, (uint8_t)*at);
        }
        sl_buf_u8(&text, '"');
    }
    sl_buf_u8(&text, 0);
    if (text.failed)
        sl_buf_free(&text);
    return (char *)text.data;
}

static struct metric_series *metrics_find(_Atomic(struct metric_series *) *metric_slots, uint64_t hash, size_t *at)
{
    for (*at = hash % SLOTS;; *at = (*at + 1) % SLOTS) {
        struct metric_series *series = atomic_load_explicit(&metric_slots[*at], memory_order_acquire);
        if (!series || series->hash == hash)
            return series;
    }
}

static void series_free(struct metric_series *series)
{
    for (int i = 0; i < MAX_LABELS; i++)
        free(series->values[i]);
    free(series->labels);
    free(series);
}

static struct metric_series *insert(enum metric metric, uint64_t hash, const char *const values[MAX_LABELS])
{
    if (!slots[metric])
        slots[metric] = calloc(SLOTS, sizeof *slots[metric]);
    if (!slots[metric])
        return NULL;
    if (series_count[metric] >= MAX_SERIES) {
        static const char *const overflow[MAX_LABELS] = {"overflow", "overflow", "overflow", "overflow"};
        values = overflow;
        hash = hash_labels(values);
    }
    size_t at;
    struct metric_series *series = metrics_find(slots[metric], hash, &at);
    if (series)
        return series;
    series = calloc(1, sizeof *series);
    if (!series)
        return NULL;
    series->hash = hash;
    series->buckets = table[metric].buckets;
    series->labels = format_labels(metric, values);
    bool whole = series->labels != NULL;
    for (int i = 0; whole && i < MAX_LABELS && values[i]; i++)
        whole = (series->values[i] = strdup(values[i])) != NULL;
    if (!whole) {
        series_free(series);
        return NULL;
    }
    series_count[metric]++;
    atomic_store_explicit(&slots[metric][at], series, memory_order_release);
    return series;
}

static struct metric_series *series_of(enum metric metric, const char *const values[MAX_LABELS])
{
    uint64_t hash = hash_labels(values);
    size_t at;
    struct metric_series *series = slots[metric] ? metrics_find(slots[metric], hash, &at) : NULL;
    if (series)
        return series;
    pthread_mutex_lock(&insert_lock);
    series = insert(metric, hash, values);
    pthread_mutex_unlock(&insert_lock);
    return series;
}

struct metric_series *metric_series(enum metric metric, const char *a, const char *b, const char *c)
{
    return series_of(metric, (const char *const[MAX_LABELS]){a, b, c});
}

void metric_series_add(struct metric_series *series, uint64_t n)
{
    if (series)
        atomic_fetch_add_explicit(&series->value, n, memory_order_relaxed);
}

void metric_series_set(struct metric_series *series, double value)
{
    if (series)
        atomic_store_explicit(&series->value, to_bits(value), memory_order_relaxed);
}

static void keep(struct metric_series *series, double value)
{
    struct kept *kept = atomic_load(&series->kept), *fresh = kept ? NULL : calloc(1, sizeof *fresh);
    if (fresh && !atomic_compare_exchange_strong(&series->kept, &kept, fresh))
        free(fresh); /* somebody else was first */
    else if (fresh)
        kept = fresh;
    unsigned at = kept ? atomic_fetch_add_explicit(&kept->seen, 1, memory_order_relaxed) : KEPT_MOST;
    if (at < KEPT_MOST)
        atomic_store_explicit(&kept->values[at], (float)value, memory_order_relaxed);
}

void metric_series_observe(struct metric_series *series, double value)
{
    if (!series)
        return;
    if (atomic_load_explicit(&keeps_values, memory_order_relaxed))
        keep(series, value);
    unsigned i = 0;
    while (i < series->buckets->count && value > series->buckets->bounds[i])
        i++;
    atomic_fetch_add_explicit(&series->bucket[i], 1, memory_order_relaxed);
    unsigned long long old = atomic_load_explicit(&series->value, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&series->value, &old, to_bits(from_bits(old) + value),
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

void metric_add(enum metric metric, uint64_t n, const char *a, const char *b, const char *c)
{
    metric_series_add(metric_series(metric, a, b, c), n);
}

void metric_add4(enum metric metric, uint64_t n, const char *a, const char *b, const char *c, const char *d)
{
    metric_series_add(series_of(metric, (const char *const[MAX_LABELS]){a, b, c, d}), n);
}

void metric_set(enum metric metric, double value, const char *a, const char *b, const char *c)
{
    metric_series_set(metric_series(metric, a, b, c), value);
}

void metric_observe(enum metric metric, double value, const char *a, const char *b, const char *c)
{
    metric_series_observe(metric_series(metric, a, b, c), value);
}

/* ---- reading ---- */
static struct metric_sample sample_of(enum metric metric, struct metric_series *series)
{
    unsigned long long value = atomic_load_explicit(&series->value, memory_order_relaxed);
    struct metric_sample sample = {.value = table[metric].kind == COUNTER ? (double)value : from_bits(value)};
    for (int i = 0; i < MAX_LABELS; i++)
        sample.labels[i] = series->values[i] ? series->values[i] : "";
    if (!series->buckets)
        return sample;
    sample.bounds = series->buckets->bounds;
    sample.bucket_count = series->buckets->count;
    for (unsigned i = 0; i <= sample.bucket_count; i++) {
        sample.buckets[i] = atomic_load_explicit(&series->bucket[i], memory_order_relaxed);
        sample.count += sample.buckets[i];
    }
    return sample;
}

void metrics_each(enum metric metric, void (*each)(void *arg, const struct metric_sample *sample), void *arg)
{
    for (size_t i = 0; slots[metric] && i < SLOTS; i++) {
        struct metric_series *series = atomic_load_explicit(&slots[metric][i], memory_order_acquire);
        if (!series)
            continue;
        struct metric_sample sample = sample_of(metric, series);
        each(arg, &sample);
    }
}

struct summing {
    const char *labels[3];
    double sum;
};

static void add_matching(void *arg, const struct metric_sample *sample)
{
    struct summing *summing = arg;
    for (int i = 0; i < 3; i++)
        if (summing->labels[i] && strcmp(summing->labels[i], sample->labels[i]) != 0)
            return;
    summing->sum += sample->value;
}

double metric_total(enum metric metric, const char *a, const char *b, const char *c)
{
    struct summing summing = {{a, b, c}, 0};
    metrics_each(metric, add_matching, &summing);
    return summing.sum;
}

/* ---- pushing ---- */
void metrics_keep_values(void)
{
    atomic_store(&keeps_values, true);
}

struct pushing {
    void (*push)(void *arg, const struct metric_push *push);
    void *arg;
};

static void push_values(const struct pushing *to, struct metric_series *series, struct metric_push *push)
{
    struct kept *kept = atomic_load(&series->kept);
    unsigned seen = kept ? atomic_exchange_explicit(&kept->seen, 0, memory_order_relaxed) : 0;
    float values[KEPT_MOST];
    if (!seen)
        return;
    push->values_seen = seen;
    push->value_count = seen < KEPT_MOST ? seen : KEPT_MOST;
    for (size_t i = 0; i < push->value_count; i++)
        values[i] = atomic_load_explicit(&kept->values[i], memory_order_relaxed);
    push->values = values;
    to->push(to->arg, push);
}

static void push_series(const struct pushing *to, enum metric metric, struct metric_series *series)
{
    struct metric_push push = {.name = table[metric].statsd,
                               .label_names = table[metric].labels,
                               .sample = sample_of(metric, series),
                               .gauge = table[metric].kind == GAUGE,
                               .seconds = table[metric].buckets == &seconds};
    char name[80];
    if (!push.name) {
        size_t size = strlen(table[metric].name), suffix = strlen("_total");
        bool total = size > suffix && strcmp(table[metric].name + size - suffix, "_total") == 0;
        snprintf(name, sizeof name, "%.*s", (int)(total ? size - suffix : size), table[metric].name);
        push.name = name;
    }
    if (table[metric].kind == HISTOGRAM) {
        push_values(to, series, &push);
        return;
    }
    if (table[metric].kind == COUNTER) {
        uint64_t now = (uint64_t)push.sample.value;
        push.sample.value = (double)(now - series->pushed);
        series->pushed = now;
        if (push.sample.value == 0)
            return;
    }
    to->push(to->arg, &push);
}

/* What the reference counts of each look-up, instead of one series for each layer. */
static const struct {
    const char *name, *layers; /* that count, with a blank before and behind each; NULL = all */
} access_names[] = {
    {"caches.access", NULL},
    {"caches.memory.hit", " memory joined "},
    {"caches.file.hit", " disk fallback "},
    {"caches.file.fallback", " fallback "},
    {"caches.file.miss", " shared computed "},
    {"caches.computation", " computed "},
};
enum { ACCESS_NAMES = sizeof access_names / sizeof *access_names, ACCESS_CACHES = 40 };

struct accesses {
    size_t count;
    struct {
        const char *cache;
        double sums[ACCESS_NAMES];
    } caches[ACCESS_CACHES];
};

static void add_access(struct accesses *all, const struct metric_series *series, uint64_t added)
{
    size_t at = 0;
    char layer[32];
    snprintf(layer, sizeof layer, " %s ", series->values[1] ? series->values[1] : "");
    while (at < all->count && strcmp(all->caches[at].cache, series->values[0]) != 0)
        at++;
    if (at == ACCESS_CACHES)
        return;
    if (at == all->count)
        all->caches[all->count++].cache = series->values[0];
    for (size_t i = 0; i < ACCESS_NAMES; i++)
        if (!access_names[i].layers || strstr(access_names[i].layers, layer))
            all->caches[at].sums[i] += (double)added;
}

static void push_accesses(const struct pushing *to)
{
    static const char *const label_names[MAX_LABELS] = {"cache"};
    struct accesses all = {.count = 0};
    for (size_t i = 0; slots[METRIC_CACHE_LOOKUPS] && i < SLOTS; i++) {
        struct metric_series *series = atomic_load_explicit(&slots[METRIC_CACHE_LOOKUPS][i], memory_order_acquire);
        if (!series || !series->values[0])
            continue;
        uint64_t now = atomic_load_explicit(&series->value, memory_order_relaxed);
        add_access(&all, series, now - series->pushed);
        series->pushed = now;
    }
    for (size_t cache = 0; cache < all.count; cache++)
        for (size_t i = 0; i < ACCESS_NAMES; i++) {
            struct metric_push push = {
                .name = access_names[i].name,
                .label_names = label_names,
                .sample = {.labels = {all.caches[cache].cache}, .value = all.caches[cache].sums[i]}};
            if (push.sample.value > 0)
                to->push(to->arg, &push);
        }
}

void metrics_push(void (*push)(void *arg, const struct metric_push *push), void *arg)
{
    struct pushing to = {push, arg};
    for (int metric = 0; metric < METRIC_COUNT; metric++)
        for (size_t i = 0; slots[metric] && metric != METRIC_CACHE_LOOKUPS && i < SLOTS; i++) {
            struct metric_series *series = atomic_load_explicit(&slots[metric][i], memory_order_acquire);
            if (series)
                push_series(&to, (enum metric)metric, series);
        }
    push_accesses(&to);
}

/* ---- text ---- */
static void write_sample(struct sl_buf *out, const char *name, const char *suffix, const char *labels,
                         const char *extra)
{
    sl_buf_printf(out, "symloom_%s%s", name, suffix);
    if (*labels || *extra)
        sl_buf_printf(out, "{%s%s%s}", labels, *labels && *extra ? "," : "", extra);
    sl_buf_u8(out, ' ');
}

static void write_histogram(struct sl_buf *out, const char *name, struct metric_series *series)
{
    unsigned long long total = 0;
    for (unsigned i = 0; i <= series->buckets->count; i++) {
        char bound[40] = "le=\"+Inf\"";
        if (i < series->buckets->count)
            snprintf(bound, sizeof bound, "le=\"%.15g\"", series->buckets->bounds[i]);
        total += atomic_load_explicit(&series->bucket[i], memory_order_relaxed);
        write_sample(out, name, "_bucket", series->labels, bound);
        sl_buf_printf(out, "%llu\n", total);
    }
    write_sample(out, name, "_sum", series->labels, "");
    sl_buf_printf(out, "%.15g\n", from_bits(atomic_load_explicit(&series->value, memory_order_relaxed)));
    write_sample(out, name, "_count", series->labels, "");
    sl_buf_printf(out, "%llu\n", total);
}

static void write_series(struct sl_buf *out, enum metric metric, struct metric_series *series)
{
    const char *name = table[metric].name;
    unsigned long long value = atomic_load_explicit(&series->value, memory_order_relaxed);
    if (table[metric].kind == HISTOGRAM) {
        write_histogram(out, name, series);
        return;
    }
    write_sample(out, name, "", series->labels, "");
    if (table[metric].kind == COUNTER)
        sl_buf_printf(out, "%llu\n", value);
    else
        sl_buf_printf(out, "%.15g\n", from_bits(value));
}

void metrics_write_header(struct sl_buf *out, const char *name, const char *type, const char *help, bool open_metrics)
{
    size_t size = strlen(name), suffix = strlen("_total");
    /* OpenMetrics names a counter's family without the suffix of its samples. */
    if (open_metrics && strcmp(type, "counter") == 0 && size > suffix && strcmp(name + size - suffix, "_total") == 0)
        size -= suffix;
    sl_buf_printf(out, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)size, name, help, (int)size, name, type);
}

/* Whether a counter's family would have the name of another metric's in OpenMetrics. */
static bool family_taken(enum metric metric)
{
    size_t size = strlen(table[metric].name) - strlen("_total");
    for (int i = 0; i < METRIC_COUNT; i++)
        if (strlen(table[i].name) == size && memcmp(table[i].name, table[metric].name, size) == 0)
            return true;
    return false;
}

static void write_metric(struct sl_buf *out, enum metric metric, bool open_metrics)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    const char *type = types[table[metric].kind];
    char name[80];
    if (!table[metric].labels[0])
        metric_series(metric, NULL, NULL, NULL); /* a metric without labels is always there */
    if (!slots[metric])
        return;
    snprintf(name, sizeof name, "symloom_%s", table[metric].name);
    if (open_metrics && table[metric].kind == COUNTER && family_taken(metric))
        type = "unknown"; /* so that the samples have the same name in both formats */
    metrics_write_header(out, name, type, table[metric].help, open_metrics);
    for (size_t i = 0; i < SLOTS; i++) {
        struct metric_series *series = atomic_load_explicit(&slots[metric][i], memory_order_acquire);
        if (series)
            write_series(out, metric, series);
    }
}

void metrics_collect(void)
{
    pool_set_metrics();
    metric_set(METRIC_FIBERS, (double)fiber_live(), NULL, NULL, NULL);
    metric_set(METRIC_FIBER_STACKS, (double)fiber_stacks_allocated(), NULL, NULL, NULL);
    metric_set(METRIC_MEMORY_BUDGET, (double)memory_used(), "used", NULL, NULL);
    metric_set(METRIC_MEMORY_BUDGET, (double)memory_limit(), "limit", NULL, NULL);
}

void metrics_write(struct sl_buf *out, bool open_metrics)
{
    metric_set(METRIC_BUILD_INFO, 1, BUILD_VERSION, build_commit(), __VERSION__);
    for (int i = 0; i < METRIC_COUNT; i++)
        write_metric(out, (enum metric)i, open_metrics);
    metrics_write_process(out, open_metrics);
    if (open_metrics)
        sl_buf_cstr(out, "# EOF\n");
}
