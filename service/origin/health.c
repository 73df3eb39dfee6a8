/* Records whether the configured sources respond, for operators. */
#include "origin/health.h"

#include <stdlib.h>

#include "base/map.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "origin/failures.h"
#include "origin/impl.h"

enum { MINUTES = 60 };

struct source_health_record {
    struct origin_health seen;
    uint32_t minutes[MINUTES][ORIGIN_OUTCOMES]; /* a ring; the current minute is `minute_now` */
    bool logged_failing;
    bool is_without_directory; /* the last check has not found the directory of the source */
    uint64_t next_line_ms;
    const char *id;
};

static struct sl_map records; /* by id; never more than sources were configured */
static size_t minute_now;
static bool watched; /* true if log lines are enabled */

/* Returns the record of a configured source, created if necessary. NULL when out of memory. */
static struct source_health_record *get_record(const struct source *source)
{
    struct source_health_record *record = sl_map_get(&records, source->id);
    if (record)
        return record;
    struct sl_str id;
    record = sl_map_add(&records, source->id, sizeof *record, &id); /* `id` becomes the map's copy of source->id */
    if (record)
        record->id = id.data;
    return record;
}

static void set_failing(struct source_health_record *record, bool failing)
{
    record->seen.state = failing ? ORIGIN_DOWN : ORIGIN_UP;
    metric_set(METRIC_SOURCE_UP, failing ? 0 : 1, record->id, NULL, NULL);
}

/* Logs that a source began or ceased to fail, at most once a minute; a change in between is logged later
 * (origin_health_minute). */
static void log_change(struct source_health_record *record)
{
    bool failing = record->seen.state == ORIGIN_DOWN;
    if (!watched || failing == record->logged_failing || loop_now_ms() < record->next_line_ms)
        return;
    char line[128];
    snprintf(line, sizeof line, failing ? "symbol source %.80s is failing" : "symbol source %.80s works again",
             record->id);
    record->logged_failing = failing;
    record->next_line_ms = loop_now_ms() + 60000;
    if (failing)
        log_warn("fetch", line, LOG_STR("source", record->id), LOG_STR("error", record->seen.last_error));
    else /* a warning as well: logged at the same levels as the failure */
        log_warn("fetch", line, LOG_STR("source", record->id));
}

void health_note(const struct source *source, enum sl_code code, const struct sl_error *error)
{
    if (!source->configured || code == SL_CANCELLED || code == SL_BUSY || code == SL_INTERNAL)
        return; /* only configured sources have a record; these codes say nothing about a source */
    struct source_health_record *record = get_record(source);
    if (!record)
        return;
    int outcome = code == SL_NOT_FOUND                                                              ? ORIGIN_NOT_FOUND
                  : code == SL_DOWNLOAD_ERROR || code == SL_TIMEOUT || code == SL_PERMISSION_DENIED ? ORIGIN_FAILED
                                                                                                    : ORIGIN_OK;
    record->minutes[minute_now][outcome]++;
    set_failing(record, outcome == ORIGIN_FAILED);
    if (outcome != ORIGIN_FAILED) {
        record->seen.last_success_s = clock_wall_s();
    } else {
        record->seen.last_error_s = clock_wall_s();
        snprintf(record->seen.last_error, sizeof record->seen.last_error, "%s", error ? error->message : "");
    }
    log_change(record);
}

void health_note_success(struct sl_str id)
{
    struct source_health_record *record = sl_map_get(&records, id);
    if (!record || record->seen.state != ORIGIN_DOWN)
        return;
    set_failing(record, false);
    record->seen.last_success_s = clock_wall_s();
    log_change(record);
}

/* ---- directories ---- */
struct directory_check {
    const char *root;
    enum sl_code code;
    struct sl_error error;
};

static void check_directory(void *arg)
{
    struct directory_check *look = arg;
    look->code = origin_check_directory(look->root, &look->error);
}

/* Records whether the directory of a source is there. When it is back, cached failures of its files are retried. A check that failed for
 * another reason, such as lack of descriptors, says nothing. */
static void record_directory(const struct source *source, const struct directory_check *look)
{
    struct source_health_record *record = get_record(source);
    if (!record || (look->code != SL_OK && look->code != SL_DOWNLOAD_ERROR))
        return;
    bool was_without = record->is_without_directory;
    record->is_without_directory = look->code != SL_OK;
    if (record->is_without_directory) {
        set_failing(record, true);
        record->seen.last_error_s = clock_wall_s();
        snprintf(record->seen.last_error, sizeof record->seen.last_error, "%s", look->error.message);
    } else if (was_without) {
        set_failing(record, false);
        /* "file:///": the failures of a source are recorded by its id and the scheme and host of a URI */
        origin_note_success(source->id, SL_STR("file:///"), (int64_t)clock_wall_us() * 1000);
    }
    log_change(record);
}

bool origin_check_directories(const struct source *sources, size_t count)
{
    bool all = true;
    for (size_t i = 0; i < count; i++) {
        struct sl_arena arena = {0};
        struct sl_str path = sources[i].path;
        struct directory_check look = {.root = sl_arena_strndup(&arena, path.data ? path.data : "", path.size)};
        /* not those of uploads, whose directories are created by the first upload; heavy work, as a network file system may be slow */
        if (sources[i].type == SOURCE_FILESYSTEM && sources[i].layout != LAYOUT_UPLOADS && look.root &&
            pool_run(POOL_IO | POOL_HEAVY, check_directory, &look, NULL) == SL_OK) {
            record_directory(&sources[i], &look);
            all = all && look.code == SL_OK;
        }
        sl_arena_free(&arena);
    }
    return all;
}

void health_clear(void)
{
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&records, e));)
        free(e->value);
    sl_map_free(&records);
}

void origin_health(const struct source *source, struct origin_health *health)
{
    const struct source_health_record *record = sl_map_get(&records, source->id);
    *health = record ? record->seen : (struct origin_health){0};
    for (size_t i = 0; record && i < MINUTES; i++)
        for (size_t outcome = 0; outcome < ORIGIN_OUTCOMES; outcome++)
            health->last_hour[outcome] += record->minutes[i][outcome];
}

bool origin_health_is_watched(void)
{
    return watched;
}

void origin_health_watch(void)
{
    watched = true;
}

void origin_health_minute(void)
{
    minute_now = (minute_now + 1) % MINUTES;
    for (struct sl_map_entry *e = NULL; (e = sl_map_next(&records, e));) {
        struct source_health_record *record = e->value;
        memset(record->minutes[minute_now], 0, sizeof record->minutes[minute_now]);
        log_change(record);
    }
}

/* The host is that of the URL, or of a bucket's endpoint. */
uint64_t origin_blocked_ms(const struct source *source)
{
    struct sl_arena arena = {0};
    struct sl_str url = source->url.size ? source->url : source->bucket.endpoint;
    const char *text = url.size ? sl_arena_strndup(&arena, url.data, url.size) : NULL;
    const char *host = text ? fetch_url_host(&arena, text) : NULL;
    uint64_t ms = host ? fetch_blocked_ms(host) : 0;
    sl_arena_free(&arena);
    return ms;
}
