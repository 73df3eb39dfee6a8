/* `symloom stress`: load-tests a service; options and report. */
#include "cli/stress/stress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_fields.h"
#include "base/json_write.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/server.h"
#include "core/duration.h"

static const struct option_spec specs[] = {
    {"workloads", 'w', OPTION_VALUE, false, "FILE", "Read workloads from this YAML file"},
    {"duration", 'd', OPTION_VALUE, false, "DURATION", "Run for this long (default: 30s)"},
    {"server", 0, OPTION_VALUE, false, "URL", "Test a running service (default: start one)"},
    {"rate", 0, OPTION_VALUE, false, "R",
     "Send R requests per second and workload; measure latency from the planned start"},
    {"warmup", 0, OPTION_VALUE, false, "N", "Send N uncounted requests per workload first (default: 1)"},
    {"cold", 0, OPTION_FLAG, false, NULL, "Avoid cache hits: new scope per request, new file id per upload"},
    {"tracing", 't', OPTION_FLAG, false, NULL, "Log as JSON to /dev/null, to measure the cost of logging"},
    {"sentry", 's', OPTION_FLAG, false, NULL, "Send error reports to a dummy Sentry"},
    {"metrics", 'm', OPTION_FLAG, false, NULL, "Send metrics to a dummy statsd"},
    {"json", 0, OPTION_FLAG, false, NULL, "Print the report as JSON"},
    {"compare", 0, OPTION_VALUE, false, "FILE", "Exit with 1 if a p90 is over 10 % above that of this earlier report"},
    SERVER_OPTIONS,
    {NULL, 0, OPTION_FLAG, false, NULL, NULL},
};

struct stress_report {
    const struct stress_workload *workloads;
    size_t count;
    double warmup_s, duration_s;
    uint64_t peak;  /* bytes; 0: unknown */
    bool sentry;    /* the service sent its errors to the emulated Sentry */
    size_t reports; /* how many error reports the emulated Sentry accepted */
};

/* ---- figures ---- */

/* Returns the latency in seconds below which this share of the requests lies: .9 is p90, 1 the maximum. 0 if no request succeeded. */
static double quantile(const struct stress_workload *w, double share)
{
    size_t at = (size_t)(share * (double)w->operations);
    return w->operations ? w->seconds[at < w->operations ? at : w->operations - 1] : 0;
}

static double average(const struct stress_workload *w)
{
    double sum = 0;
    for (size_t i = 0; i < w->operations; i++)
        sum += w->seconds[i];
    return w->operations ? sum / (double)w->operations : 0;
}

/* Formats a time as milliseconds, or from one second on as seconds. */
static const char *format_seconds(double seconds, char text[32])
{
    snprintf(text, 32, seconds < 1 ? "%.2fms" : "%.2fs", seconds < 1 ? seconds * 1000 : seconds);
    return text;
}

/* Appends the report as text. */
static void report_text(const struct stress_report *r, struct sl_buf *out)
{
    char a[32], b[32], c[32], d[32];
    size_t errors = 0;
    sl_buf_printf(out, "Warmup: %s\n\n", format_seconds(r->warmup_s, a));
    for (size_t i = 0; i < r->count; i++) {
        const struct stress_workload *w = &r->workloads[i];
        sl_buf_printf(out, "Workload %zu (concurrency: %u): %zu operations, %.2f ops/s\n", i, w->concurrency,
                      w->operations, (double)w->operations / r->duration_s);
        sl_buf_printf(out, "  avg: %s; p50: %s; p90: %s; p99: %s\n", format_seconds(average(w), a),
                      format_seconds(quantile(w, .5), b), format_seconds(quantile(w, .9), c),
                      format_seconds(quantile(w, .99), d));
        errors += w->errors;
    }
    sl_buf_printf(out, "\nErrors: %zu\n", errors);
    if (r->peak)
        sl_buf_printf(out, "Peak memory: %.1f MiB\n", (double)r->peak / (1 << 20));
    if (r->sentry)
        sl_buf_printf(out, "Reports: %zu\n", r->reports);
}

/* Appends the report as JSON. */
static void report_json(const struct stress_report *r, struct sl_buf *out)
{
    struct sl_json_writer w = sl_json_writer(out);
    sl_json_begin_object(&w);
    sl_json_member_double(&w, "warmup_s", r->warmup_s);
    sl_json_member_double(&w, "duration_s", r->duration_s);
    sl_json_member_array(&w, "workloads");
    for (size_t i = 0; i < r->count; i++) {
        const struct stress_workload *load = &r->workloads[i];
        const uint64_t counts[] = {load->concurrency, load->operations, load->errors};
        static const char *const names[] = {"concurrency", "operations", "errors"};
        sl_json_begin_object(&w);
        sl_json_member_str(&w, "name", sl_str(load->name));
        for (size_t k = 0; k < 3; k++)
            sl_json_member_u64(&w, names[k], counts[k]);
        sl_json_member_double(&w, "ops_per_s", (double)load->operations / r->duration_s);
        sl_json_member_double(&w, "avg_s", average(load));
        sl_json_member_double(&w, "p50_s", quantile(load, .5));
        sl_json_member_double(&w, "p90_s", quantile(load, .9));
        sl_json_member_double(&w, "p99_s", quantile(load, .99));
        sl_json_member_double(&w, "max_s", quantile(load, 1));
        sl_json_end_object(&w);
    }
    sl_json_end_array(&w);
    sl_json_put_key(&w, "peak_rss");
    if (r->peak)
        sl_json_put_u64(&w, r->peak);
    else
        sl_json_put_null(&w);
    if (r->sentry)
        sl_json_member_u64(&w, "reports", r->reports);
    sl_json_end_object(&w);
    sl_buf_u8(out, '\n');
}

/* ---- comparison with an earlier report ---- */

/* Sets `*p90` to the member p90_s of a workload in the earlier report; false if it has none. */
static bool read_p90(struct sl_json *j, double *p90)
{
    struct sl_str number = sl_json_find(j, SL_STR("p90_s"));
    char text[64];
    snprintf(text, sizeof text, SL_STR_FMT, SL_STR_ARG(number));
    *p90 = strtod(text, NULL);
    return number.data;
}

/* Compares workloads that have the same index in both reports; `j` is the list of the earlier one. Returns the exit status: 1, after a
 * message for each, if the p90 of one has grown by more than 10 %. */
static int compare_workloads(const struct stress_report *r, struct sl_json *j)
{
    struct sl_str key;
    size_t i = 0;
    int status = 0;
    if (!sl_json_array(j))
        return 0;
    for (double before; sl_json_next(j, &key); i++) {
        bool known = read_p90(j, &before);
        double now = i < r->count ? quantile(&r->workloads[i], .9) : 0;
        if (known && i < r->count && now > before * 1.1) {
            char a[32], b[32];
            fprintf(stderr, "workload %zu: p90 grew from %s to %s\n", i, format_seconds(before, a),
                    format_seconds(now, b));
            status = 1;
        }
    }
    return status;
}

/* Compares the report with that of an earlier run, the file `path` (--compare). Returns the exit status: 1 if a workload has become slower,
 * or the file is no report. */
static int compare(const struct stress_report *r, const char *path)
{
    struct sl_mapping mapping;
    struct sl_error error = {0};
    struct sl_arena arena = {0};
    int status = 0;
    if (sl_map_file(path, &mapping, &error) != SL_OK)
        return report_error(1, error.message, NULL);
    struct sl_json j = sl_json((struct sl_str){(const char *)mapping.bytes.data, mapping.bytes.size}, &arena, false);
    struct sl_str workloads = sl_json_find(&j, SL_STR("workloads"));
    if (workloads.data) {
        struct sl_json list = sl_json(workloads, &arena, false);
        status = compare_workloads(r, &list);
    }
    if (!sl_json_end(&j))
        status = report_error(1, "not a report of 'stress --json'", path);
    sl_arena_free(&arena);
    sl_unmap(&mapping);
    return status;
}

/* ---- the command ---- */

/* Sets `load` from the options; its `url` is NULL without --server. False after a report of a usage error. */
static bool read_load(const struct options *o, struct stress_load *load)
{
    uint64_t ns = 0, warmup = 1;
    const char *duration = option_value(o, "duration", "30s"), *rate = option_value(o, "rate", NULL);
    char *end = NULL;
    *load = (struct stress_load){.cold = option_given(o, "cold"), .url = option_value(o, "server", NULL)};
    if (!duration_parse(sl_str(duration), &ns) || ns == 0 || ns > UINT64_C(86400000000000)) {
        options_wrong(o, "--duration: '%s' is not a duration (example: 30s)", duration);
        return false;
    }
    load->rate = rate ? strtod(rate, &end) : 0;
    if (rate && (*end || !(load->rate > 0))) {
        options_wrong(o, "--rate: '%s' is not a number above 0", rate);
        return false;
    }
    if (option_given(o, "warmup") && !option_number(o, "warmup", &warmup))
        return false;
    load->seconds = (double)ns / 1e9;
    load->warmup = (unsigned)(warmup < 100000 ? warmup : 100000);
    return true;
}

/* Prints the report as text or JSON, and compares it with an earlier one (--compare). Returns the exit status: 1 if a request failed or a
 * workload has become slower. */
static int print_report(const struct options *o, const struct stress_report *r)
{
    struct sl_buf out = {0};
    size_t errors = 0;
    if (option_given(o, "json"))
        report_json(r, &out);
    else
        report_text(r, &out);
    output_write(sl_buf_view(&out));
    sl_buf_free(&out);
    for (size_t i = 0; i < r->count; i++)
        errors += r->workloads[i].errors;
    int status = errors ? 1 : 0;
    if (option_given(o, "compare"))
        status |= compare(r, option_value(o, "compare", ""));
    return status;
}

/* True if a workload is of kind js, which needs the emulated Sentry. */
static bool has_scripts(const struct stress_workload *workloads, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (workloads[i].answers.data)
            return true;
    return false;
}

/* Starts the emulated Sentry, if it is needed, and, without --server, the service under test; sends the load, stops both and prints the
 * report. Returns the exit status. */
static int load_service(const struct options *o, struct stress_load *load, struct stress_sink *sink,
                        struct stress_workload *workloads, size_t count)
{
    struct sl_error error = {0};
    struct stress_service service = {.pid = -1, .sink = -1};
    struct stress_report result = {
        .workloads = workloads, .count = count, .duration_s = load->seconds, .sentry = option_given(o, "sentry")};
    struct stress_service_options options = {.config = option_value(o, "config", server_environment("SYMLOOM_CONFIG")),
                                             .cache_dir = option_value(o, "cache-dir", NULL),
                                             .sentry = result.sentry ? sink->address : NULL,
                                             .json_log = option_given(o, "tracing"),
                                             .statsd = option_given(o, "metrics")};
    enum sl_code code = SL_OK;
    if (result.sentry || has_scripts(workloads, count))
        code = stress_sink_start(sink, workloads, count, &error);
    if (code == SL_OK && !load->url) {
        code = stress_service_start(&options, &service, &error);
        load->url = service.url;
    }
    struct progress progress;
    progress_begin(&progress, o, "asking");
    if (code == SL_OK)
        progress_set_item(&progress, load->url, 0);
    if (code == SL_OK)
        code = stress_run(load, workloads, count, &result.warmup_s, &error);
    progress_end(&progress);
    result.peak = stress_service_stop(&service);
    result.reports = stress_sink_stop(sink);
    return code == SL_OK ? print_report(o, &result) : report_error(1, error.message, NULL);
}

/* Reads the workloads of the file `path`, sends their requests and reports. Returns the exit status. */
static int read_and_load(const struct options *o, struct stress_load *load, const char *path)
{
    struct sl_arena arena = {0};
    struct sl_error error = {0};
    struct stress_sink sink;
    struct stress_workload *workloads = NULL;
    size_t count = 0;
    int status = 0;
    /* the socket is opened first, because the workloads contain its address */
    if (stress_sink_open(&sink, &error) != SL_OK ||
        stress_read_workloads(path, sink.address, &arena, &workloads, &count, &error) != SL_OK)
        status = report_error(1, error.message, NULL);
    else
        status = load_service(o, load, &sink, workloads, count);
    stress_sink_stop(&sink); /* does nothing if load_service has stopped it */
    for (size_t i = 0; i < count; i++) {
        sl_buf_free(&workloads[i].body);
        free(workloads[i].seconds);
    }
    sl_arena_free(&arena);
    return status;
}

/* Runs `symloom stress`. Without --server it starts a service, whose configuration is loaded here once to report its errors. Returns the
 * exit status. */
static int stress_command(const struct options *o)
{
    struct stress_load load;
    struct config *config = NULL;
    const char *path = option_value(o, "workloads", NULL);
    if (!options_arguments(o, 0) || !server_may_connect(o) || !read_load(o, &load))
        return 2;
    if (!path)
        return options_wrong(o, "no workloads given (-w FILE)");
    int status = load.url ? 0 : server_load(o, &config); /* the started service has no output for errors */
    config_release(config);
    return status ? status : read_and_load(o, &load, path);
}

const struct command command_stress = {
    .name = "stress",
    .summary = "load-test a service",
    .usage = "stress -w FILE [OPTION...]",
    .about = "Sends requests to a service over and over and reports how long responses take. A workload names "
             "a file with a request body (event, minidump, apple, jvm, mozilla), a symbfile of ranges to "
             "upload with the key $SYMLOOM_API_KEY (symbfile) or a path to download (proxy); js takes two "
             "files, js: {source: FILE, event: FILE}: source is the response to artifact lookups, where {url} "
             "stands for the directory of the file. An event is JSON with stacktraces (callers first) and "
             "modules.",
    .examples = "symloom stress -w workloads.yml -d 1m --server http://127.0.0.1:3021",
    .options = specs,
    .groups = {{"Most used", "workloads duration server rate warmup cold json compare metrics config"},
               {"More", "tracing sentry cache-dir log-level log-format verbose quiet"}},
    .run = stress_command,
};
