/* Combines the metrics of several processes, from their texts in Prometheus' format. */
#include "core/metrics_sum.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "core/metrics_impl.h"

struct metric_text_series {
    struct metric_text_series *next;
    struct sl_str name; /* with its labels: `name{a="x"}` */
    double value;
};

struct metric_text_family {
    struct metric_text_family *next;
    struct sl_str head; /* the comment lines (HELP and TYPE) in front of the samples */
    struct metric_text_series *first, **end;
    struct sl_map series; /* finds a series by its name with labels */
    enum metric_sum sum;
};

struct metrics_text_sum {
    struct sl_arena arena;
    struct sl_map families; /* finds a family by its comment lines */
    struct metric_text_family *first, **end;
    bool failed;
};

/* Returns how to combine the values of a metric in several processes, by the name of one of its series. The series of a histogram are
 * `name_bucket{...}` and the like: no row of the table has such a name, so they are summed. */
static enum metric_sum choose_sum(struct sl_str series)
{
    static const struct sl_str prefix = SL_STR("symloom_");
    if (sl_str_starts(series, SL_STR("process_start_time_seconds")))
        return METRIC_MIN;
    if (!sl_str_starts(series, prefix))
        return METRIC_SUM;
    struct sl_str name = {series.data + prefix.size, series.size - prefix.size};
    const char *labels = memchr(name.data, '{', name.size);
    name.size = labels ? (size_t)(labels - name.data) : name.size;
    for (size_t i = 0; i < METRIC_MOZILLA_NAMES; i++)
        if (sl_str_equal(name, sl_str(metrics_table[i].name)))
            return metrics_table[i].sum;
    return METRIC_SUM;
}

/* Combines a sample line `name{labels} value` with the series of the same name and labels that other processes have: adds the value, or
 * keeps the minimum or maximum. Ignores a malformed line. */
static void add_sample(struct metrics_text_sum *s, struct metric_text_family *family, struct sl_str line)
{
    const char *blank = memrchr(line.data, ' ', line.size);
    char number[64];
    if (!blank || blank == line.data)
        return;
    struct sl_str name = {line.data, (size_t)(blank - line.data)};
    size_t size = line.size - name.size - 1;
    if (size >= sizeof number)
        return;
    memcpy(number, blank + 1, size);
    number[size] = '\0';
    double value = strtod(number, NULL);
    bool fresh; /* the map had no such key: `*slot` is to be set */
    void **slot = sl_map_find_or_add(&family->series, name, &fresh);
    struct metric_text_series *series = !slot   ? NULL
                                        : fresh ? SL_ARENA_NEW(&s->arena, struct metric_text_series)
                                                : *slot;
    s->failed |= !series;
    if (!series)
        return;
    *slot = series;
    if (fresh) {
        *series = (struct metric_text_series){.name = name, .value = value};
        family->sum = family->first ? family->sum : choose_sum(name); /* chosen by the name of the first series */
        *family->end = series;
        family->end = &series->next;
    } else {
        bool replaces = family->sum == METRIC_MIN ? value < series->value : value > series->value;
        series->value = family->sum == METRIC_SUM ? series->value + value : replaces ? value : series->value;
    }
}

/* Returns the metric family with these comment lines; if no process had it so far, adds it behind the others. */
static struct metric_text_family *find_family(struct metrics_text_sum *s, struct sl_str head)
{
    bool fresh; /* the map had no such key: `*slot` is to be set */
    void **slot = sl_map_find_or_add(&s->families, head, &fresh);
    struct metric_text_family *family = !slot   ? NULL
                                        : fresh ? SL_ARENA_NEW(&s->arena, struct metric_text_family)
                                                : *slot;
    s->failed |= !family;
    if (!family || !fresh)
        return family;
    *slot = family;
    *family = (struct metric_text_family){.head = head};
    family->end = &family->first;
    *s->end = family;
    s->end = &family->next;
    return family;
}

/* Adds the text of one process. Comment lines before samples are the key of their metric family; "# EOF" is not part of it. */
static void metrics_sum_text(struct metrics_text_sum *s, struct sl_str text)
{
    struct metric_text_family *family = NULL;
    for (struct sl_str line; !s->failed && sl_str_next_line(&text, &line);) {
        struct sl_str head = {line.data, 0};
        while (sl_str_starts(line, SL_STR("# ")) && !sl_str_equal(line, SL_STR("# EOF"))) {
            head.size = (size_t)(line.data + line.size - head.data);
            if (!sl_str_next_line(&text, &line))
                line = SL_STR(""); /* the text ends with these comment lines */
        }
        if (head.size)
            family = find_family(s, head);
        if (family && line.size && line.data[0] != '#')
            add_sample(s, family, line);
    }
}

bool metrics_sum(const struct sl_str *texts, size_t count, struct sl_buf *out)
{
    struct metrics_text_sum s = {.end = &s.first};
    bool open_metrics = count && sl_str_ends(texts[0], SL_STR("# EOF\n"));
    for (size_t i = 0; i < count; i++)
        metrics_sum_text(&s, texts[i]);
    /* Writes values with a fraction, which are sums of seconds, with 12 digits: added in another order, a sum could be less by its last
     * digit, which Prometheus would take for a counter reset. */
    for (struct metric_text_family *family = s.first; family; family = family->next) {
        sl_buf_str(out, family->head);
        sl_buf_u8(out, '\n');
        for (const struct metric_text_series *series = family->first; series; series = series->next) {
            sl_buf_str(out, series->name);
            sl_buf_printf(out, floor(series->value) == series->value ? " %.17g\n" : " %.12g\n", series->value);
        }
        sl_map_free(&family->series);
    }
    if (open_metrics)
        sl_buf_cstr(out, "# EOF\n");
    sl_map_free(&s.families);
    sl_arena_free(&s.arena);
    return !s.failed && !out->failed;
}
