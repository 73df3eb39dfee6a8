/* Names and tags of metrics pushed to StatsD, chosen for dashboards made for another service. Metrics that are not listed here are
 * pushed under the name of their row in metrics.def, with their labels as tags. */
#include <stdio.h>
#include <string.h>

#include "core/metrics_impl.h"

enum { RENAMED_TAGS = 3 };

static const struct renaming {
    enum metric metric;
    const char *when[METRIC_LABELS]; /* label values that a series must have, "a|b" = either; NULL: any */
    const char *name;                /* name to push; `*` in it stands for the value of the label `item` */
    const char *tags[RENAMED_TAGS];  /* tags to push: names of labels, or constant "tag:value" */
} renamings[] = {
    {METRIC_POLLS, {"unknown"}, "symbolication.request_id_unknown", {NULL}},
    {METRIC_MODULES, {NULL, "debug"}, "symbolication.debug_status", {"status"}},
    {METRIC_MODULES, {NULL, "unwind"}, "symbolication.unwind_status", {"status"}},
    {METRIC_ITEMS, {NULL}, "symbolication.*", {"platform", "origin"}},
    {METRIC_JS_ITEMS, {NULL}, "js.*", {NULL}},
    {METRIC_JS_LOOKUPS, {"found", NULL, "bundle_debugid"}, "js.found_via_bundle_debugid", {"type"}},
    {METRIC_JS_LOOKUPS, {"found", NULL, "bundle_url"}, "js.found_via_bundle_url", {"type"}},
    {METRIC_JS_LOOKUPS, {"found", NULL, "scraping"}, "js.found_via_scraping", {"type"}},
    {METRIC_JS_LOOKUPS, {"not_found"}, "js.file_not_found", {"type"}},
    {METRIC_SHARED_OPS, {NULL, NULL, "get", "hit"}, "services.shared_cache.fetch", {"cache", "hit:true", "status:ok"}},
    {METRIC_SHARED_OPS,
     {NULL, NULL, "get", "miss"},
     "services.shared_cache.fetch",
     {"cache", "hit:false", "status:ok"}},
    {METRIC_SHARED_OPS,
     {NULL, NULL, "get", "timeout"},
     "services.shared_cache.fetch",
     {"cache", "status:error", "errdetails:timeout"}},
    {METRIC_SHARED_OPS,
     {NULL, NULL, "get", "error"},
     "services.shared_cache.fetch",
     {"cache", "status:error", "errdetails:other"}},
    {METRIC_SHARED_OPS, {NULL, NULL, "exists", "hit|miss"}, "services.shared_cache.exists", {"cache", "status:ok"}},
    {METRIC_SHARED_OPS,
     {NULL, NULL, "exists", "timeout|error"},
     "services.shared_cache.exists",
     {"cache", "status:error"}},
    {METRIC_SHARED_OPS,
     {NULL, NULL, "put", "written"},
     "services.shared_cache.store",
     {"cache", "write:written", "status:ok"}},
    {METRIC_SHARED_OPS,
     {NULL, NULL, "put", "skipped"},
     "services.shared_cache.store",
     {"cache", "write:skipped", "status:ok"}},
    {METRIC_SHARED_OPS,
     {NULL, NULL, "put", "timeout"},
     "services.shared_cache.store",
     {"cache", "status:error", "errdetails:timeout"}},
    {METRIC_SHARED_OPS,
     {NULL, NULL, "put", "error"},
     "services.shared_cache.store",
     {"cache", "status:error", "errdetails:other"}},
    {METRIC_SHARED_OPS, {NULL, NULL, "put", "discarded"}, "services.shared_cache.store.discarded", {NULL}},
    {METRIC_SHARED_OPS, {NULL, NULL, "put", "dropped"}, "services.shared_cache.store.dropped", {NULL}},
    {METRIC_SHARED_BYTES, {NULL, "in"}, "services.shared_cache.fetch.bytes", {NULL}},
    {METRIC_SHARED_BYTES, {NULL, "out"}, "services.shared_cache.store.bytes", {NULL}},
    {METRIC_SHARED_UPLOADS, {NULL}, "services.shared_cache.uploads_in_flight", {NULL}},
    {METRIC_DOWNLOADS, {NULL}, "service.builtin_source.download", {"source"}},
    {METRIC_DOWNLOADS, {NULL, "timeout|error"}, "service.download.failure", {"source"}},
    {METRIC_DOWNLOADS, {NULL, "blocked"}, "service.download.blocked", {"source"}},
    {METRIC_DOWNLOAD_BYTES, {NULL}, "download_size", {"source"}},
    {METRIC_DOWNLOAD_SECONDS, {NULL, "connect"}, "download_duration", {"task_name:source.download.connect", "source"}},
    {METRIC_DOWNLOAD_SECONDS, {NULL, "body"}, "download_duration", {"task_name:source.download.body", "source"}},
    {METRIC_SOURCE_TOKEN, {"gcs"}, "source.gcs.token.access", {NULL}},
    {METRIC_SOURCE_TOKEN, {"gcs", "ok|error"}, "source.gcs.token.computation", {NULL}},
    {METRIC_SOURCE_TOKEN, {"s3"}, "source.s3.client.access", {NULL}},
    {METRIC_SOURCE_TOKEN, {"s3", "ok|error"}, "source.s3.client.computation", {NULL}},
    {METRIC_SOURCE_TOKEN, {"sentry_index"}, "source.sentry.dif_query.access", {NULL}},
    {METRIC_SOURCE_TOKEN, {"sentry_index", "ok|error"}, "source.sentry.dif_query.computation", {NULL}},
    {METRIC_SOURCE_TOKEN, {"artifacts"}, "source.sentry.js_lookup.access", {NULL}},
    {METRIC_SOURCE_TOKEN, {"artifacts", "ok|error"}, "source.sentry.js_lookup.computation", {NULL}},
};

/* True if `word` is one of the words in a list like "timeout|error". */
static bool is_either(const char *words, const char *word)
{
    size_t size = strlen(word);
    for (const char *at = words;; at++) {
        size_t length = strcspn(at, "|");
        if (length == size && memcmp(at, word, size) == 0)
            return true;
        at += length;
        if (!*at)
            return false;
    }
}

/* True if the renaming is for this metric, and the pushed series has the label values that it requires. */
static bool renaming_applies(const struct renaming *renaming, enum metric metric, const struct metric_push *push)
{
    bool applies = renaming->metric == metric;
    for (int i = 0; applies && i < METRIC_LABELS; i++)
        applies = !renaming->when[i] || is_either(renaming->when[i], push->sample.labels[i]);
    return applies;
}

/* Returns the value of a label of the pushed metric; "" if it has no such label. */
static const char *find_label(const struct metric_push *push, const char *name)
{
    for (int i = 0; i < METRIC_LABELS && push->label_names[i]; i++)
        if (strcmp(push->label_names[i], name) == 0)
            return push->sample.labels[i];
    return "";
}

/* Passes the series to the function `to` with the renaming's name and tags instead of its own. `*` in the name stands for the value of
 * the label `item`; a tag is a label of the series, or constant if it has the form "tag:value". */
static void push_renamed(const struct renaming *renaming, const struct metric_push *series,
                         void (*to)(void *arg, const struct metric_push *push), void *arg)
{
    char name[96], tags[RENAMED_TAGS][32];
    const char *label_names[METRIC_LABELS] = {NULL}, *star = strchr(renaming->name, '*');
    struct metric_push push = *series;
    if (star)
        snprintf(name, sizeof name, "%.*s%s", (int)(star - renaming->name), renaming->name, find_label(series, "item"));
    push.name = star ? name : renaming->name;
    push.label_names = label_names;
    memset(push.sample.labels, 0, sizeof push.sample.labels);
    for (int i = 0; i < RENAMED_TAGS && renaming->tags[i]; i++) {
        const char *tag = renaming->tags[i], *colon = strchr(tag, ':');
        snprintf(tags[i], sizeof tags[i], "%.*s", colon ? (int)(colon - tag) : (int)strlen(tag), tag);
        label_names[i] = tags[i];
        push.sample.labels[i] = colon ? colon + 1 : find_label(series, tag);
    }
    to(arg, &push);
}

void metrics_push_named(enum metric metric, const struct metric_push *push,
                        void (*to)(void *arg, const struct metric_push *push), void *arg)
{
    bool renamed = false;
    for (size_t i = 0; i < sizeof renamings / sizeof *renamings; i++) {
        if (!renaming_applies(&renamings[i], metric, push))
            continue;
        push_renamed(&renamings[i], push, to, arg);
        renamed = true;
    }
    if (!renamed)
        to(arg, push);
}

/* Rows of `renamings` with the same name follow each other, so a comparison with the last name finds all repetitions. */
void metrics_for_each_name(enum metric metric, void (*each)(void *arg, const char *name), void *arg)
{
    const char *last = "";
    for (size_t i = 0; i < sizeof renamings / sizeof *renamings; i++) {
        if (renamings[i].metric != metric || strcmp(renamings[i].name, last) == 0)
            continue;
        last = renamings[i].name;
        each(arg, last);
    }
}
