/* The service: what the handlers of all requests of this process share (configuration, jobs, history, names), from start to end. */
#include "api/impl.h"
#include "api/source_lists.h"
#include "api/history.h"

#include <stdlib.h>

#include "core/loop.h"
#include "core/metrics.h"
#include "search/search.h"

void service_configure(struct service *service, const struct config *config)
{
    service->config = config;
    metric_set(METRIC_JOBS_LIMIT, (double)config->max_concurrent_requests, NULL, NULL, NULL);
}

struct service *service_new(const struct config *config)
{
    struct service *service = calloc(1, sizeof *service);
    if (!service)
        return NULL;
    service_configure(service, config);
    service->names = name_cache_new();
    service->started_ns = clock_mono_ns();
    service->history = history_new();
    if (!service->names || !service->history) {
        name_cache_free(service->names);
        history_free(service->history);
        free(service);
        return NULL;
    }
    jobs_init(service);
    return service;
}

void service_on_reload(struct service *service, service_reload *reload, void *arg)
{
    service->reload = reload;
    service->reload_arg = arg;
}

void service_drain(struct service *service)
{
    service->draining = true;
}

/* Called when the jobs' timer is closed: frees the rest of the service. */
static void on_jobs_closed(struct service *service)
{
    name_cache_free(service->names);
    history_free(service->history);
    source_lists_clear();
    free(service);
}

void service_free(struct service *service)
{
    jobs_close(service, on_jobs_closed); /* frees the jobs; on_jobs_closed is called later, and frees the rest */
}

void service_file_scope(const struct config *config, struct sl_arena *arena, struct search_scope *where)
{
    *where = (struct search_scope){.sources = config->sources,
                                   .source_count = config->source_count,
                                   .scope = SL_STR("global"),
                                   .arena = arena,
                                   .list = config->sources_number}; /* identifies the sources in the search cache */
}
