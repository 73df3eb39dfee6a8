/* Writes doc/metrics.md: every metric, from the rows that define it. */
#include "core/metrics_impl.h"

static const char *const kinds[] = {
    [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};

/* Appends a name in backquotes, with a comma before it if the text ends with another name in backquotes. */
static void put_quoted_name(void *arg, const char *name)
{
    struct sl_buf *out = arg;
    if (out->size && out->data[out->size - 1] == '`')
        sl_buf_cstr(out, ", ");
    sl_buf_printf(out, "`%s`", name);
}

static void put_label_names(struct sl_buf *out, const struct metric_row *row)
{
    for (int i = 0; i < METRIC_LABELS && row->labels[i]; i++)
        put_quoted_name(out, row->labels[i]);
}

/* Writes the names under which statsd gets a metric. Cache look-ups have several (metrics_access_name), as do metrics that metrics_names.c
 * renames; all others have one, that of their row. */
static void put_pushed(struct sl_buf *out, enum metric metric)
{
    char name[METRIC_NAME_MAX];
    size_t before = out->size;
    for (size_t i = 0; metric == METRIC_CACHE_LOOKUPS && metrics_access_name(i); i++)
        put_quoted_name(out, metrics_access_name(i));
    metrics_for_each_name(metric, put_quoted_name, out);
    metric_pushed_name(metric, name);
    if (out->size == before)
        put_quoted_name(out, name);
}

/* Writes the table row of a metric: name, kind, labels, names for statsd, meaning. */
static void put_metric(struct sl_buf *out, enum metric metric)
{
    const struct metric_row *row = &metrics_table[metric];
    sl_buf_printf(out, "| `symloom_%s` | %s | ", row->name, kinds[row->kind]);
    put_label_names(out, row);
    sl_buf_cstr(out, " | ");
    put_pushed(out, metric);
    sl_buf_printf(out, " | %s |\n", row->help);
}

/* Writes a table row for each metric of a text like this:
 *   # HELP process_open_fds Open descriptors.
 *   # TYPE process_open_fds gauge
 *   process_open_fds 17 */
static void put_written(struct sl_buf *out, struct sl_str text)
{
    static const struct sl_str help_mark = SL_STR("# HELP "), type_mark = SL_STR("# TYPE ");
    struct sl_str line, help = {0};
    while (sl_str_next_line(&text, &line)) {
        const char *blank = help.size ? memchr(help.data, ' ', help.size) : NULL; /* the end of the metric's name */
        if (sl_str_starts(line, help_mark)) {
            help = (struct sl_str){line.data + help_mark.size, line.size - help_mark.size};
        } else if (blank && sl_str_starts(line, type_mark)) {
            /* size of the name; bytes in front of the type: the mark, the name and a blank */
            size_t name = (size_t)(blank - help.data), before = type_mark.size + name + 1;
            sl_buf_printf(out, "| `%.*s` | %.*s | %.*s |\n", (int)name, help.data, (int)(line.size - before),
                          line.data + before, (int)(help.size - name - 1), blank + 1);
        }
    }
}

/* Writes table rows for the process_* metrics, which are not in metrics.def: takes them from the text that is written for Prometheus. */
static void put_others(struct sl_buf *out)
{
    struct sl_buf written = {0};
    metrics_write_process(&written, false);
    put_written(out, sl_buf_view(&written));
    out->failed |= written.failed;
    sl_buf_free(&written);
}

void metrics_reference(struct sl_buf *out)
{
    sl_buf_cstr(
        out,
        "# Metrics\n\nMade by `symloom config metrics` of the table that the program counts by.\n\n"
        "- [For Prometheus](#for-prometheus)\n- [Of every process](#of-every-process)\n"
        "- [Names of Mozilla's services](#names-of-mozillas-services)\n\n"
        "`GET /metrics` answers in the text format of Prometheus, or in OpenMetrics when the client asks for it.\n"
        "With `admin_bind` only those listeners have it. A histogram `x` has the series `x_bucket`, `x_sum` and\n"
        "`x_count`. A metric has at most 500 series; label values beyond that become `overflow`.\n\n"
        "With `metrics.statsd`, the same is sent every 10 s to a statsd that understands DogStatsD, with the name in "
        "the\n"
        "column *statsd* behind `metrics.prefix` (`symbolicator`). Durations are sent in milliseconds. In a name, `*`\n"
        "stands for the label `item`.\n\n"
        "## For Prometheus\n\n| metric | kind | labels | statsd | meaning |\n|---|---|---|---|---|\n");
    for (int i = 0; i < METRIC_MOZILLA_NAMES; i++)
        put_metric(out, (enum metric)i);
    sl_buf_cstr(out, "\n## Of every process\n\nOnly for Prometheus.\n\n| metric | kind | meaning |\n|---|---|---|\n");
    put_others(out);
    sl_buf_cstr(
        out, "\n## Names of Mozilla's services\n\nWith `metrics.mozilla_names: true`, statsd also gets what Mozilla's "
             "services send, under their names, without the\nprefix and with a tag `host`.\n\n"
             "| metric | kind | tags |\n|---|---|---|\n");
    for (int i = METRIC_MOZILLA_NAMES; i < METRIC_COUNT; i++) {
        sl_buf_printf(out, "| `%s` | %s | ", metrics_table[i].name, kinds[metrics_table[i].kind]);
        put_label_names(out, &metrics_table[i]);
        sl_buf_cstr(out, " |\n");
    }
}
