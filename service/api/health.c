/* Health checks and metrics: answered from memory, at saturation too. */
#include "api/impl.h"
#include "cache/cache.h"
#include "core/metrics.h"

void health_handle(struct http_exchange *x)
{
    const struct service *service = x->service;
    metric_add(METRIC_HEALTHCHECKS, 1, NULL, NULL, NULL);
    reply_text(x, service->draining ? 503 : 200, service->draining ? "draining" : "ok");
}

void live_handle(struct http_exchange *x)
{
    reply_text(x, 200, "ok");
}

void ready_handle(struct http_exchange *x)
{
    const struct service *service = x->service;
    bool writable = cache_writable(), ready = writable && !service->draining;
    struct json_writer w = json_writer(&x->body);
    http_reply(x, ready ? 200 : 503, "application/json", SL_STR(""));
    json_object_begin(&w);
    json_key(&w, "status");
    json_str(&w, ready ? SL_STR("ready") : SL_STR("not ready"));
    if (!ready) {
        json_key(&w, "reasons");
        json_array_begin(&w);
        if (service->draining)
            json_str(&w, SL_STR("draining"));
        if (!writable)
            json_str(&w, SL_STR("cache directory not writable"));
        json_array_end(&w);
    }
    json_object_end(&w);
}

void metrics_handle(struct http_exchange *x)
{
    const struct service *service = x->service;
    struct sl_str accept = http_header(x, "accept");
    bool open_metrics = accept.size && memmem(accept.data, accept.size, "application/openmetrics-text", 28);
    metric_set(METRIC_JOBS_RUNNING, (double)service->running, "symbolicate", NULL, NULL);
    metric_set(METRIC_READY, service->draining || !cache_writable() ? 0 : 1, NULL, NULL, NULL);
    metric_set(METRIC_DRAINING, service->draining ? 1 : 0, NULL, NULL, NULL);
    http_reply(x, 200,
               open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                            : "text/plain; version=0.0.4; charset=utf-8",
               SL_STR(""));
    metrics_write(&x->body, open_metrics);
}
