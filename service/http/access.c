/* Access log and metrics of finished requests. */
#include <stdio.h>
#include <time.h>

#include "core/log.h"
#include "core/loop.h"
#include "http/impl.h"

/* SLOW_MS: requests that took longer are logged even with HTTP_ACCESS_ERRORS. *_MAX_LOGGED: longer texts of clients are cut. */
enum { SLOW_MS = 30000, PATH_MAX_LOGGED = 512, AGENT_MAX_LOGGED = 128 };

/* Cuts a text to `most` bytes, as the client could make it as long as it likes. */
static struct sl_str cut(struct sl_str text, size_t most)
{
    if (text.size > most)
        text.size = most;
    return text;
}

/* Appends a text, escaped as in the combined log format of Apache and nginx. */
static void put_combined(struct sl_buf *line, struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = (uint8_t)text.data[i];
        if (c < 0x20 || c >= 0x7F || c == '"' || c == '\\')
            sl_buf_printf(line, "\\x%02x", c);
        else
            sl_buf_u8(line, c);
    }
}

/* Returns the text, or "-" if it is empty: so the combined log format writes what is absent. */
static struct sl_str or_dash(struct sl_str text)
{
    return text.size ? text : SL_STR("-");
}

/* Writes a line in the combined log format, for programs that read logs of web servers. */
static void write_combined(const struct request *r)
{
    const struct http_exchange *x = &r->x;
    char date[40];
    struct tm tm;
    time_t now = (time_t)clock_wall_s();
    struct sl_buf line = {0};
    strftime(date, sizeof date, "%d/%b/%Y:%H:%M:%S +0000", gmtime_r(&now, &tm));
    put_combined(&line, x->client);
    sl_buf_cstr(&line, " - "); /* "-": the client's identity of RFC 1413, which no server asks for */
    put_combined(&line, or_dash(x->key_id));
    sl_buf_printf(&line, " [%s] \"", date);
    put_combined(&line, or_dash(x->method));
    sl_buf_u8(&line, ' ');
    put_combined(&line, or_dash(cut(x->path, PATH_MAX_LOGGED)));
    sl_buf_printf(&line, " HTTP/1.%d\" %d %llu \"", r->http10 ? 0 : 1, x->status, (unsigned long long)r->bytes_out);
    put_combined(&line, or_dash(cut(http_header(x, "referer"), PATH_MAX_LOGGED)));
    sl_buf_cstr(&line, "\" \"");
    put_combined(&line, or_dash(cut(http_header(x, "user-agent"), AGENT_MAX_LOGGED)));
    sl_buf_cstr(&line, "\"\n");
    if (!line.failed)
        log_access_line(sl_buf_view(&line));
    sl_buf_free(&line);
}

static size_t add_if_any(struct log_field *fields, size_t count, const char *key, struct sl_str text)
{
    if (text.size)
        fields[count++] = (struct log_field)LOG_SLSTR(key, text);
    return count;
}

/* Writes a line of fields in the service's own log format. */
static void write_line(const struct request *r, enum log_level level, double duration_ms)
{
    const struct http_exchange *x = &r->x;
    struct log_field fields[20]; /* at most 18 fields and the end mark */
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
    if (x->waited_ns)
        fields[count++] = (struct log_field)LOG_DOUBLE("wait_ms", (double)x->waited_ns / 1e6);
    if (x->route && x->route->takes_work) /* such routes have the parameter `scope`, which separates tenants */
        count = add_if_any(fields, count, "scope", http_query(x, "scope"));
    count = add_if_any(fields, count, "job", sl_str(x->job_id));
    count = add_if_any(fields, count, "key_id", x->key_id);
    count = add_if_any(fields, count, "refused", sl_str(x->refused));
    count = add_if_any(fields, count, "user_agent", cut(http_header(x, "user-agent"), AGENT_MAX_LOGGED));
    count = add_if_any(fields, count, "traceparent", cut(http_header(x, "traceparent"), AGENT_MAX_LOGGED));
    if (r->connection->tls)
        fields[count++] = (struct log_field)LOG_STR("tls", tls_version(r->connection->tls));
    if (r->aborted) /* what went wrong on the connection: "reset", "slow", .. */
        fields[count++] = (struct log_field)LOG_STR("aborted", r->aborted);
    fields[count] = (struct log_field){.key = NULL};
    /* NULL: no rate limit */
    log_write(NULL, level, "access", __FILE__, __LINE__, "request", fields);
}

/* Returns the counter for route, method and status. Each route caches its first SERIES_PER_ROUTE counters, so that most requests need
 * no look-up by labels (metric_series). A HEAD request is counted as such, although its route has the method GET. */
static struct metric_series *requests_series(struct request *r, struct route_series *route)
{
    /* "none": the head could not be parsed. "other": unknown methods share one series, as clients choose them freely. */
    const char *method = r->x.route || r->x.method.size == 0 ? (r->head_only            ? "HEAD"
                                                                : r->x.method.size == 0 ? "none"
                                                                                        : r->x.route->method)
                                                             : "other";
    int status = r->x.status;
    char text[16];
    /* methods are compared by address: they are literals here or in the table of routes */
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

/* Adds the request to the metrics of its route; the last entry of server->series is for requests without a route. */
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
    metric_series_observe(route->duration, seconds); /* a histogram */
    metric_series_add(route->bytes_in, r->body.received);
    metric_series_add(route->bytes_out, r->bytes_out);
}

/* Counts an ended request and writes its line of the access log. Health checks are left out of the metrics of routes, and logged at
 * the level trace. With HTTP_ACCESS_ERRORS only responses of 500 and above and slow requests are logged. */
void access_record(struct request *r)
{
    bool health = r->x.route && r->x.route->health;
    double ms = (double)(clock_mono_ns() - r->start_ns) / 1e6;
    enum log_level level = health ? LOG_TRACE : LOG_INFO;
    int access = r->server->options.access;
    if (!health)
        count(r, ms / 1e3);
    if (r->x.route && r->x.route->page_view) /* a metric of Mozilla's symbolication service Eliot */
        metric_add(METRIC_ELIOT_PAGEVIEW, 1, r->x.route->pattern,
                   strcmp(r->x.route->method, "GET") == 0 ? "get" : "post", NULL);
    if (r->aborted)
        metric_add(METRIC_HTTP_ABORTED, 1, r->aborted, NULL, NULL);
    if (access == HTTP_ACCESS_OFF || !log_enabled(level, "access"))
        return;
    if (access == HTTP_ACCESS_ERRORS && r->x.status < 500 && ms <= SLOW_MS)
        return;
    if (r->server->options.access_combined)
        write_combined(r);
    else
        write_line(r, level, ms);
}
