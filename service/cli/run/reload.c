/* Reloads the configuration while serving. Running requests hold the old configuration, which is freed after the last of them. The values
 * that need a restart are copied from each configuration to the next one. They point into the memory of the first configuration, which
 * lives as long as the process. */
#include "cli/run/run.h"

#include <stdio.h>
#include <time.h>

#include "cache/cache.h"
#include "cli/server.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "catalog/catalog.h"
#include "scan/scan.h"

/* Keys of the configuration that are used at the start only, to bind, open or connect: a reload cannot change them. A dot at the end stands
 * for all keys below. */
static const char *const fixed[] = {"bind",
                                    "bind_https",
                                    "admin_bind",
                                    "metrics.",
                                    "sentry_dsn",
                                    "cache_dir",
                                    "symbfile.store_dir",
                                    "symbfile.store.",
                                    "shared_cache.",
                                    "cluster.",
                                    "http.processes",
                                    "http.reuseport",
                                    "http.backlog",
                                    "http.unix_group",
                                    "mozilla.cache",
                                    "mozilla.redis.",
                                    "mozilla.store.filesystem.",
                                    "mozilla.store.gcs.",
                                    "mozilla.store.s3.",
                                    "mozilla.store.public_url",
                                    "mozilla.store.serve_native",
                                    "mozilla.store.try_retention",
                                    "conversion.isolation",
                                    "core_dumps"};
enum { KEYS_MAX = 32 };

/* Copies those keys of the upload store (mozilla.store) that need a restart from the old configuration; its other keys are reloaded. */
static void keep_store(const struct config_store *before, struct config_store *fresh)
{
    fresh->filesystem_path = before->filesystem_path;
    fresh->bucket = before->bucket;
    fresh->public_url = before->public_url;
    fresh->serve_native = before->serve_native;
    fresh->try_retention_ns = before->try_retention_ns;
}

/* Copies the values of the keys that need a restart (`fixed`) from the old configuration, and warns of those that were changed. */
static void keep_fixed(const struct config *before, struct config *fresh)
{
    const char *keys[KEYS_MAX];
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        size_t count = config_differences(before, fresh, fixed[i], keys, KEYS_MAX);
        for (size_t k = 0; k < count; k++)
            log_warn("config", "a change of this key needs a restart; the old value stays in use",
                     LOG_STR("key", keys[k]));
    }
    fresh->bind = before->bind;
    fresh->bind_count = before->bind_count;
    fresh->metrics = before->metrics;
    fresh->bind_https = before->bind_https;
    fresh->bind_https_count = before->bind_https_count;
    fresh->admin_bind = before->admin_bind;
    fresh->admin_bind_count = before->admin_bind_count;
    fresh->cache_dir = before->cache_dir;
    fresh->symbfile.store_dir = before->symbfile.store_dir;
    fresh->symbfile.shared_dir = before->symbfile.shared_dir;
    fresh->symbfile.bucket = before->symbfile.bucket;
    fresh->shared = before->shared;
    fresh->cluster = before->cluster;
    fresh->http.processes = before->http.processes;
    fresh->http.reuseport = before->http.reuseport;
    fresh->http.backlog = before->http.backlog;
    fresh->http.unix_group = before->http.unix_group;
    fresh->mozilla.cache = before->mozilla.cache;
    fresh->bounded.redis_url = before->bounded.redis_url;
    fresh->bounded.redis_manage = before->bounded.redis_manage;
    keep_store(&before->mozilla.store, &fresh->mozilla.store);
    fresh->conversion.isolation = before->conversion.isolation;
    fresh->core_dumps = before->core_dumps;
    fresh->process = before->process;
}

/* Logs each line, a problem of the new configuration: as an error if the reload `failed`, else as a warning. */
static void log_lines(struct sl_str lines, bool failed)
{
    struct sl_str line;
    while (sl_str_next_line(&lines, &line))
        if (failed)
            log_error("config", "invalid configuration; keeping the old one", LOG_SLSTR("problem", line));
        else
            log_warn("config", "the new configuration has a warning", LOG_SLSTR("problem", line));
}

/* Tells the service manager that a reload has begun; READY=1 tells that it is over (sd_notify(3)). */
static void notify_reloading(void)
{
    char text[64];
    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(clock_mono_ns() / 1000));
    service_manager_notify(text);
}

struct config *reload_config(const struct options *options, const struct config *before, struct sl_buf *problems)
{
    struct config *fresh = NULL;
    notify_reloading();
    bool ok = server_reload(options, &fresh, problems);
    log_lines(sl_buf_view(problems), !ok);
    metric_set(METRIC_RELOAD_SUCCESSFUL, ok ? 1 : 0, NULL, NULL, NULL);
    if (ok) {
        keep_fixed(before, fresh);
        process_share(fresh); /* divides the memory limit by the number of processes, which keep_fixed has set */
        server_log(options, fresh, server_verbosity(options)); /* reports errors itself; the reload goes on */
        pool_set_limit(fresh->pool_max_queued);
        fiber_set_limit(fresh->max_fibers);
        cache_configure(fresh);
        catalog_init(fresh);
        scan_configure(fresh);
        server_configure_fetch(fresh);
        metric_set(METRIC_RELOAD_TIME, (double)clock_wall_s(), NULL, NULL, NULL);
        log_info("config", "configuration reloaded", LOG_U64("sources", fresh->source_count));
    }
    service_manager_notify("READY=1"); /* the reload is over, even if it failed */
    return fresh;
}
