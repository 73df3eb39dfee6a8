/* What remains of an ended request: one line of the access log, and metrics. */
#include "core/log.h"
#include "core/loop.h"
#include "http/impl.h"

enum { SLOW_MS = 30000, PATH_MAX_LOGGED = 512, AGENT_MAX_LOGGED = 128 };

static struct sl_str cut(struct sl_str text, size_t most)
{
    if (text.size > most)
        text.size = most;
    return text;
}

static void write_line(const struct request *r, enum log_level level, double duration_ms)
{
    const struct http_exchange *x = &r->x;
    struct log_field fields[12];
    size_t count = 0;
    fields[count++] = (struct log_field)LOG_SLSTR("req", x->request_id);
    fields[count++] = (struct log_field)LOG_DOUBLE("duration_ms", duration_ms);
    fields[count++] = (struct log_field)LOG_SLSTR("client", x->client);
    fields[count++] = (struct log_field)LOG_SLSTR("method", x->method);
    fields[count++] = (struct log_field)LOG_SLSTR("path", cut(x->path, PATH_MAX_LOGGED));
    fields[count++] = (struct log_field)LOG_STR("route", x->route ? x->route->pattern : "other");
    fields[count++] = (struct log_field)LOG_I64("status", x->status);
    fields[count++] = (struct log_field)LOG_U64("bytes_in", r->body.received);
    fields[count++] = (struct log_field)LOG_U64("bytes_out", r->bytes_out);
    struct sl_str agent = http_header(x, "user-agent");
    if (agent.data)
        fields[count++] = (struct log_field)LOG_SLSTR("user_agent", cut(agent, AGENT_MAX_LOGGED));
    if (r->aborted)
        fields[count++] = (struct log_field)LOG_STR("aborted", r->aborted);
    fields[count] = (struct log_field){.key = NULL};
    log_write(NULL, level, "access", __FILE__, __LINE__, "request", fields);
}

static struct metric_series *requests_series(struct request *r, struct route_series *route)
{
    /* Unknown methods are the client's choice of words and share one series. */
    const char *method = r->x.route || r->x.method.size == 0 ? (r->head_only            ? "HEAD"
                                                                : r->x.method.size == 0 ? "none"
                                                                                        : r->x.route->method)
                                                             : "other";
    int status = r->x.status;
    char text[16];
    for (int i = 0; i < SERIES_PER_ROUTE && route->requests[i].series; i++)
        if (route->requests[i].status == status && route->requests[i].method == method)
            return route->requests[i].series;
    snprintf(text, sizeof text, "%d", status);
    const char *pattern = r->x.route ? r->x.route->pattern : "other";
    struct metric_series *series = metric_series(METRIC_HTTP_REQUESTS, pattern, method, text);
    for (int i = 0; i < SERIES_PER_ROUTE; i++) {
        if (!route->requests[i].series) {
            route->requests[i].status = status;
            route->requests[i].method = method;
            route->requests[i].series = series;
            break;
        }
    }
    return series;
}

static void count(struct request *r, double seconds)
{
    struct http_server *server = r->server;
    struct route_series *route = &server->series[r->x.route ? r->route_index : server->route_count];
    if (!route->duration) {
        const char *pattern = r->x.route ? r->x.route->pattern : "other";
        route->duration = metric_series(METRIC_HTTP_REQUEST_DURATION, pattern, NULL, NULL);
        route->bytes_in = metric_series(METRIC_HTTP_REQUEST_BYTES, pattern, NULL, NULL);
        route->bytes_out = metric_series(METRIC_HTTP_RESPONSE_BYTES, pattern, NULL, NULL);
    }
    metric_series_add(requests_series(r, route), 1);
    metric_series_observe(route->duration, seconds);
    metric_series_add(route->bytes_in, r->body.received);
    metric_series_add(route->bytes_out, r->bytes_out);
}

void access_record(struct request *r)
{
    bool health = r->x.route && r->x.route->health;
    double ms = (double)(clock_mono_ns() - r->start_ns) / 1e6;
    enum log_level level = health ? LOG_TRACE : LOG_INFO;
    int access = r->server->options.access;
    if (!health)
        count(r, ms / 1e3);
    if (r->aborted)
        metric_add(METRIC_HTTP_ABORTED, 1, r->aborted, NULL, NULL);
    if (access == HTTP_ACCESS_OFF || !log_enabled(level, "access"))
        return;
    if (access == HTTP_ACCESS_ALL || r->x.status >= 500 || ms > SLOW_MS)
        write_line(r, level, ms);
}
