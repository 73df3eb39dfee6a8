/* Metrics: one static table (metrics_table.c), atomics, text for Prometheus.
 *
 * A metric is defined once, in the table; code bumps it by its number with up to four label values. Label values are
 * bounded by the callers (route patterns, source ids, codes); a metric keeps at most 500 series, the rest counts as
 * "overflow". Counters and histograms may be bumped from any thread. */
#pragma once

#include "base/buf.h"

/* Numbers of the rows of metrics_table.c, same order. Add a row here and there. */
enum metric {
    METRIC_HTTP_REQUESTS,          /* route, method, status */
    METRIC_HTTP_REQUEST_DURATION,  /* route; seconds */
    METRIC_HTTP_REQUEST_BYTES,     /* route */
    METRIC_HTTP_RESPONSE_BYTES,    /* route */
    METRIC_HTTP_CONNECTIONS,       /* state */
    METRIC_HTTP_CONNECTIONS_TOTAL, /* result */
    METRIC_HTTP_ABORTED,           /* reason */
    METRIC_HTTP_REFUSED,           /* reason */
    METRIC_HEALTHCHECKS,
    METRIC_STARTS,
    METRIC_JOBS_REJECTED,
    METRIC_JOBS_ACCEPTED, /* task */
    METRIC_JOBS_FINISHED, /* task, outcome */
    METRIC_JOBS_RUNNING,  /* task */
    METRIC_JOBS_LIMIT,
    METRIC_JOB_DURATION, /* task; seconds */
    METRIC_JOB_START_DELAY,
    METRIC_JOB_RESULT_IDLE,
    METRIC_POLLS,   /* result */
    METRIC_MODULES, /* platform, purpose, status */
    METRIC_FRAMES,  /* origin, platform, status */
    METRIC_ITEMS,   /* origin, item, platform: how many a request has */
    METRIC_SRCSRV,  /* vcs */
    METRIC_ADDRESS_UNDERFLOW,
    METRIC_CACHE_LOOKUPS,         /* cache, layer, result */
    METRIC_CACHE_FALLBACKS,       /* cache, version */
    METRIC_CACHE_COMPUTE_SECONDS, /* cache */
    METRIC_CACHE_ABANDONED,       /* cache */
    METRIC_CACHE_FILE_BYTES,      /* cache, hit */
    METRIC_CACHE_WRITES,          /* cache, status, is_refresh */
    METRIC_CACHE_MEMORY_BYTES,    /* cache */
    METRIC_CACHE_MEMORY_ITEMS,    /* cache */
    METRIC_CACHE_MAPPED_FILES,    /* cache */
    METRIC_CACHE_DISK_BYTES,      /* cache */
    METRIC_CACHE_DISK_FILES,      /* cache */
    METRIC_CACHE_REMOVED_BYTES,   /* cache, reason */
    METRIC_CACHE_REMOVED_FILES,   /* cache, reason */
    METRIC_CACHE_CORRUPT,         /* cache */
    METRIC_CACHE_LAZY_REFUSED,    /* cache */
    METRIC_SHARED_OPS,            /* backend, cache, op, result */
    METRIC_SHARED_BYTES,          /* backend, direction */
    METRIC_SHARED_OP_SECONDS,     /* backend, op */
    METRIC_SHARED_UP,             /* backend */
    METRIC_SHARED_QUEUE,
    METRIC_SHARED_UPLOADS,
    METRIC_DOWNLOADS,         /* source, result */
    METRIC_DOWNLOAD_ATTEMPTS, /* source */
    METRIC_DOWNLOAD_BYTES,    /* source */
    METRIC_DOWNLOAD_SECONDS,  /* source, phase */
    METRIC_DOWNLOADS_IN_FLIGHT,
    METRIC_DOWNLOADS_QUEUED,
    METRIC_BLOCKED_HOSTS,
    METRIC_SOURCE_UP,        /* source */
    METRIC_SYMSTORE_LAST_ID, /* source */
    METRIC_BLOCKED_ADDRESSES,
    METRIC_DOWNLOAD_ID_MISMATCH, /* source */
    METRIC_DOWNLOAD_COMPRESSION, /* type */
    METRIC_SOURCE_TOKEN,         /* kind, result */
    METRIC_CONVERSIONS,          /* cache, result */
    METRIC_CONVERSION_SECONDS,   /* cache */
    METRIC_CONVERSION_INPUT,     /* cache */
    METRIC_CONVERSION_PEAK,      /* cache */
    METRIC_MINIDUMP_MULTIPART,
    METRIC_MINIDUMP_BYTES,
    METRIC_MINIDUMP_WALK,
    METRIC_CONVERSIONS_PARTIAL, /* cache */
    METRIC_JS_ITEMS,            /* item: what requests for scripts had and asked for */
    METRIC_JS_LOOKUPS,          /* result, type, lookup, had_debugid */
    METRIC_MOZILLA_SECONDS,     /* version: of requests of Mozilla's API; seconds */
    METRIC_MOZILLA_ITEMS,       /* item: how many jobs they have, stacks a job, frames */
    METRIC_MOZILLA_ERRORS,      /* reason: why they were refused */
    METRIC_SYMBFILE_PARTS,      /* kind, result: ok, cut off, or the code of the answer */
    METRIC_SYMBFILE_BYTES,      /* kind */
    METRIC_SYMBFILE_RECORDS,    /* kind */
    METRIC_SYMBFILE_SETS,       /* kind */
    METRIC_STORE_BYTES,         /* area */
    METRIC_TRANSCODES,          /* version, result */
    METRIC_TRANSCODE_SECONDS,   /* version */
    METRIC_TRANSCODES_QUEUED,
    METRIC_POOL_THREADS,
    METRIC_POOL_BUSY,
    METRIC_POOL_QUEUED,
    METRIC_POOL_RUN_SECONDS,  /* job */
    METRIC_POOL_WAIT_SECONDS, /* job */
    METRIC_POOL_CANCELLED,    /* job */
    METRIC_POOL_STALLED,
    METRIC_LOOP_LAG_SECONDS,
    METRIC_FAULTS_RECOVERED, /* kind */
    METRIC_QUARANTINED,
    METRIC_BUSY,    /* what was scarce */
    METRIC_WAITING, /* what for */
    METRIC_FIBERS,
    METRIC_FIBER_STACKS,
    METRIC_FIBER_STACK_PEAK,
    METRIC_ARENAS,
    METRIC_MEMORY_BUDGET, /* state */
    METRIC_MEMORY_LIMIT,
    METRIC_LOG_MESSAGES, /* level */
    METRIC_DISK_FREE,    /* dir */
    METRIC_DISK_SIZE,    /* dir */
    METRIC_LOG_DROPPED,
    METRIC_READY,
    METRIC_DRAINING,
    METRIC_PROCESS_DEATHS,
    METRIC_RELOAD_SUCCESSFUL,
    METRIC_RELOAD_TIME,
    METRIC_BUILD_INFO, /* version, commit, compiler */

    /* What Mozilla's services, Eliot and Tecken, have told of themselves, under their names: only pushed, and only when that is
     * wanted (statsd.h); else these cost nothing. */
    METRIC_ELIOT_PAGEVIEW,      /* path, method */
    METRIC_ELIOT_API,           /* version; seconds */
    METRIC_ELIOT_REQUEST_ERROR, /* reason */
    METRIC_ELIOT_JOBS,          /* version */
    METRIC_ELIOT_STACKS,        /* version: of a job */
    METRIC_ELIOT_FRAMES,        /* of a request */
    METRIC_ELIOT_PARSE,         /* seconds */
    METRIC_ELIOT_PARSE_ERROR,   /* reason */
    METRIC_ELIOT_DOWNLOAD,      /* response; seconds */
    METRIC_ELIOT_CACHE_GET,     /* result; seconds */
    METRIC_ELIOT_CACHE_SET,     /* result; seconds */
    METRIC_BOUNDED_EVICTED,
    METRIC_BOUNDED_BYTES, /* bytes */
    METRIC_TECKEN_CACHE_HIT,
    METRIC_TECKEN_CACHE_MISS,
    METRIC_TECKEN_DOWNLOAD_FAIL,
    METRIC_TECKEN_DOWNLOAD, /* seconds, as all of these that are not counted */
    METRIC_TECKEN_EXISTS,
    METRIC_TECKEN_FILE_AGE, /* storage; days */
    METRIC_TECKEN_BY_CODE_ID,
    METRIC_TECKEN_SYMINFO,
    METRIC_TECKEN_SYMINFO_CACHED, /* result */
    METRIC_TECKEN_UPLOAD_ARCHIVE,
    METRIC_TECKEN_UPLOAD_V2,
    METRIC_TECKEN_UPLOAD_EXTRACT,
    METRIC_TECKEN_UPLOAD_BY_URL,
    METRIC_TECKEN_FILE_EXISTS,
    METRIC_TECKEN_FILE_UPLOAD,
    METRIC_TECKEN_GZIP,
    METRIC_TECKEN_PUT,
    METRIC_TECKEN_INITIATE,
    METRIC_TECKEN_FILES_UPLOADED,
    METRIC_TECKEN_FILES_SKIPPED,
    METRIC_TECKEN_FILES_FAILED,
    METRIC_TECKEN_SKIPPED_COMPRESSED,
    METRIC_TECKEN_SKIPPED_UNCOMPRESSED,
    METRIC_TECKEN_UPLOADS, /* try, bucket */
    METRIC_COUNT
};
#define METRIC_MOZILLA_NAMES METRIC_ELIOT_PAGEVIEW /* the first of those */

/* Missing trailing labels are NULL. */
void metric_add(enum metric metric, uint64_t n, const char *a, const char *b, const char *c);
void metric_add4(enum metric metric, uint64_t n, const char *a, const char *b, const char *c, const char *d);
void metric_set(enum metric metric, double value, const char *a, const char *b, const char *c);
void metric_observe(enum metric metric, double value, const char *a, const char *b, const char *c);
/* The seconds since then (clock_mono_ns). */
void metric_observe_since(enum metric metric, uint64_t begin_ns, const char *a);

/* One series looked up once, for hot paths: the same label values always give the same series, which lives for ever.
 * NULL when out of memory, which the functions accept. */
struct metric_series;
struct metric_series *metric_series(enum metric metric, const char *a, const char *b, const char *c);
void metric_series_add(struct metric_series *series, uint64_t n);       /* a counter */
void metric_series_set(struct metric_series *series, double value);     /* a gauge */
void metric_series_observe(struct metric_series *series, double value); /* a histogram */

/* A series as it is now. */
struct metric_sample {
    const char *labels[4]; /* values, in the order of the table; missing ones are "" */
    double value;          /* of a counter or gauge; of a histogram the sum */
    const double *bounds;  /* of a histogram: `bucket_count` of them, and one more bucket for the rest */
    unsigned bucket_count;
    unsigned long long buckets[20], count; /* each bucket on its own; all */
};
void metrics_each(enum metric metric, void (*each)(void *arg, const struct metric_sample *sample), void *arg);
/* The sum of all series with these label values; NULL = any. */
double metric_total(enum metric metric, const char *a, const char *b, const char *c);

uint64_t metrics_resident_bytes(void); /* of this process */

/* Takes the gauges of core (pool, fibers) as they are now: loop thread, before metrics_write. */
void metrics_collect(void);
/* Text format 0.0.4, or OpenMetrics 1.0. Takes milliseconds; any thread. */
void metrics_write(struct sl_buf *out, bool open_metrics);
