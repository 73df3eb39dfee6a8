/* Connects to all servers that a configuration names, and reports those that do not answer as they should (check.h). */
#include "cli/config/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache/cache.h"
#include "cache/redis.h"
#include "cli/cli.h"
#include "cli/server.h"
#include "core/log.h"
#include "core/loop.h"
#include "objectstore/objectstore.h"
#include "origin/origin.h"
#include "store/store.h"

struct connect_check {
    const char *key;   /* configuration key; in the arena of struct connect_checks */
    struct value at;   /* where the key is in the file */
    const char *where; /* URL or bucket, for messages, without secrets; in the same arena */
    void (*ask)(struct connect_check *check) SL_SUSPENDS;
    const struct source *source; /* the source that check_source asks */
    const struct connect_target *target;
    struct sl_arena arena; /* for the answer */
    enum sl_code code;
    struct sl_error error;
    bool has_no_path; /* no request was made, as the source's layout has no path for the made-up file */
};

struct connect_checks {
    struct connect_check *items;
    size_t count, capacity;
    struct sl_arena arena;
    bool failed; /* not all checks could be added, for lack of memory */
};

static const char *connect_text(struct sl_arena *arena, struct sl_str text)
{
    const char *copy = sl_arena_strndup(arena, text.data ? text.data : "", text.size);
    return copy ? copy : "";
}

/* Adds the check of the server that configuration key `key` names, and which messages call `where`. all->items has room for max_checks()
 * checks, which suffices; when it is full, returns NULL and sets all->failed. */
static struct connect_check *add_check(struct connect_checks *all, const struct connect_target *target, const char *key,
                                       struct sl_str where)
{
    if (all->count == all->capacity) {
        all->failed = true;
        return NULL;
    }
    struct connect_check *q = &all->items[all->count++];
    *q = (struct connect_check){.key = connect_text(&all->arena, sl_str(key)),
                                .at = config_position(target->config, key),
                                .where = connect_text(&all->arena, where),
                                .target = target};
    return q;
}

/* ---- sources ---- */

/* Ids of a made-up module: no source has files for it, so one that works answers "not found". */
static const struct object_id absent_id = {
    .type = OBJECT_UNKNOWN,
    .code_id = SL_STR("73796d6c6f6f6d20636865636b2073796d6c6f6f"),
    .code_file = SL_STR("symloom-check"),
    .debug_file = SL_STR("symloom-check"),
    .debug_id = {.uuid = {0x73, 0x79, 0x6D, 0x6C, 0x6F, 0x6F, 0x6D, 0x20, 0x63, 0x68, 0x65, 0x63, 0x6B, 0x20, 0x73,
                          0x79},
                 .age = 1},
    .has_debug_id = true,
};

/* Sends the source one request without retries, usually for a made-up file: "not found" shows that it works. A symstore with an index
 * (000Admin) is asked for the number of its last transaction instead, as symloom looks files up in the index only; Sentry is asked for a
 * list of files. A source whose layout has no path for the made-up file is not asked. */
static void check_source(struct connect_check *q)
{
    enum file_type types[FILE_TYPES];
    struct source source = *q->source;
    struct remote_file *files;
    size_t count;
    uint32_t last;
    source.attempts = 1;
    source.path_pattern_count = 0; /* the patterns would exclude the made-up module */
    for (int type = 0; type < FILE_TYPES; type++)
        types[type] = (enum file_type)type;
    if (origin_has_index(&source)) {
        q->code = origin_index_last(&source, SL_STR("global"), &last, &q->error);
        return;
    }
    q->code = origin_list(&source, &absent_id, types, FILE_TYPES, &q->arena, &files, &count, &q->error);
    q->has_no_path = q->code == SL_OK && source.type != SOURCE_SENTRY && !count;
    if (q->code != SL_OK || source.type == SOURCE_SENTRY || !count)
        return;
    int fd = temporary_file();
    if (fd < 0)
        q->code = sl_fail(&q->error, SL_BUSY, "cannot create a temporary file for the answer of the source");
    else
        q->code = origin_fetch(&files[0], fd, &q->error);
    sl_close(fd);
}

/* Adds the check of a source, unless that is a directory, which needs no connection. `at`: where the source is in the configuration file;
 * NULL: where `key` is. */
static void add_source(struct connect_checks *all, const struct connect_target *target, const struct source *source,
                       const char *key, const struct value *at)
{
    if (source->type == SOURCE_FILESYSTEM)
        return;
    struct sl_str root = origin_root(source, &all->arena);
    const char *url =
        source->type == SOURCE_SENTRY ? fetch_public_url(&all->arena, connect_text(&all->arena, source->url)) : NULL;
    struct connect_check *q = add_check(all, target, key, url ? sl_str(url) : root);
    if (!q)
        return;
    q->ask = check_source;
    q->source = source;
    if (at)
        q->at = *at;
}

/* Adds a check for each source of a configuration: its `sources`, those of the Mozilla API that are not among them, and for user commands
 * the items of `symbols`. */
static void check_sources(struct connect_checks *all, const struct connect_target *target)
{
    const struct config *config = target->config;
    char key[48];
    for (size_t i = 0; i < config->source_count; i++) {
        snprintf(key, sizeof key, "sources[%zu]", i);
        add_source(all, target, &config->sources[i], key, config->source_list ? &config->source_list->items[i] : NULL);
    }
    for (size_t i = 0; config->mozilla.on && i < config->mozilla.source_count; i++) {
        const struct source *store = &config->mozilla.stores[i];
        bool known = false; /* a source with this id was added already */
        for (size_t j = 0; j < config->source_count; j++)
            known = known || sl_str_equal(config->sources[j].id, store->id);
        if (!known)
            add_source(all, target, store, "mozilla.sources", NULL);
    }
    for (size_t i = 0; i < target->symbol_count; i++)
        add_source(all, target, &target->symbols[i], "symbols", NULL);
}

/* ---- shared cache and stores ---- */

/* Connects to Redis with the configured options and sends PING; q->code is the result. The connection's fibers are in a group of their own,
 * because they must be cancelled and ended before redis_close. */
static void check_redis(struct connect_check *q)
{
    struct redis_options options;
    struct redis_answer answer = {0};
    struct fiber_group group;
    struct sl_str words[] = {SL_STR("PING")};
    const char *key;
    q->code = cache_redis_options(q->target->config, &options, &key, &q->error);
    if (q->code != SL_OK)
        return;
    fiber_group_init(&group, fiber_group_current());
    struct redis *redis = redis_open(&options, &group);
    enum redis_result result = redis ? redis_command(redis, words, 1, &answer) : REDIS_UNREACHABLE;
    if (!redis || result == REDIS_BUSY)
        q->code = sl_fail(&q->error, SL_BUSY, "out of memory");
    else if (result == REDIS_ANSWERED && answer.type == REDIS_FAILURE)
        q->code = sl_fail(&q->error, SL_DOWNLOAD_ERROR, SL_STR_FMT, SL_STR_ARG(sl_buf_view(&answer.text)));
    else if (result != REDIS_ANSWERED)
        q->code = sl_fail(&q->error, SL_DOWNLOAD_ERROR, "%s",
                          *redis_last_error(redis) ? redis_last_error(redis) : "no response in time");
    sl_buf_free(&answer.text);
    fiber_group_cancel(&group);
    fiber_group_wait(&group);
    redis_close(redis);
}

static void check_bucket(struct connect_check *q)
{
    q->code = cache_check_bucket(q->target->config, &q->error);
}

/* Asks the store of the Mozilla API's uploads for a file that does not exist. */
static void check_store(struct connect_check *q)
{
    struct store_meta meta;
    q->code = store_init(q->target->config, &q->error);
    if (q->code == SL_OK)
        q->code = store_stat(SL_STR("v1/symloom-check/0/symloom-check"), false, &meta, &q->error); /* false: no MD5 */
    store_close();
}

/* Checks a bucket with uploads by listing the names with this prefix, which the service itself does. */
static void check_listing(struct connect_check *q, const struct bucket_config *bucket, struct sl_str prefix)
{
    const char *key;
    struct object_list *list = malloc(sizeof *list); /* too large for the stack of a fiber */
    struct object_store store;
    q->code = list ? object_store_open(&store, bucket, "uploads", &q->arena, &key, &q->error)
                   : sl_fail(&q->error, SL_BUSY, "out of memory");
    if (q->code == SL_OK) {
        q->code = object_list(&store, prefix, SL_STR(""), list, &q->error); /* "": from the first name on */
        object_list_free(list);
    }
    free(list);
}

static void check_symbfiles(struct connect_check *q)
{
    check_listing(q, &q->target->config->symbfile.bucket, SL_STR("symbfiles/generation"));
}

static void check_debug_files(struct connect_check *q)
{
    check_listing(q, &q->target->config->uploads_store.bucket, SL_STR("uploads/sha1/00/"));
}

/* Adds the check `ask` of a Redis or bucket. `where`: its URL or name, of which messages show neither user nor password. */
static void add_shared(struct connect_checks *all, const struct connect_target *target, const char *key,
                       const char *where, void (*ask)(struct connect_check *check))
{
    const char *shown = strstr(where, "://") ? fetch_public_url(&all->arena, where) : where;
    /* end of "user:password@" in a URL that is not HTTP: fetch_public_url returns NULL */
    const char *at = strrchr(where, '@');
    struct connect_check *q = add_check(all, target, key, sl_str(shown ? shown : at ? at + 1 : where));
    if (q)
        q->ask = ask;
}

/* Adds the check `ask` of the bucket of a configuration section, if one is configured there. */
static void add_bucket(struct connect_checks *all, const struct connect_target *target, const char *section,
                       const struct bucket_config *bucket, void (*ask)(struct connect_check *check))
{
    char key[64];
    snprintf(key, sizeof key, "%s.%s.bucket", section, bucket->s3_name.data ? "s3" : "gcs");
    if (bucket_is_configured(bucket))
        add_shared(all, target, key, bucket_name(bucket).data, ask);
}

/* Adds the checks of the Redis and the buckets that are configured. There is one Redis: that of shared_cache also serves the Mozilla API,
 * whose own URL then is not used. */
static void add_back_ends(struct connect_checks *all, const struct connect_target *target)
{
    const struct config *config = target->config;
    const struct config_shared *shared = &config->shared;
    if (shared->redis_url)
        add_shared(all, target, "shared_cache.redis.url", shared->redis_url, check_redis);
    else if (config_bounded_in_redis(config) && config->bounded.redis_url) /* modules converted for the Mozilla API */
        add_shared(all, target, config->bounded.redis_url_key, config->bounded.redis_url, check_redis);
    add_bucket(all, target, "shared_cache", &shared->bucket, check_bucket);
    if (config->mozilla.on)
        add_bucket(all, target, "mozilla.store", &config->mozilla.store.bucket, check_store);
    add_bucket(all, target, "symbfile.store", &config->symbfile.bucket, check_symbfiles);
    add_bucket(all, target, "store", &config->uploads_store.bucket, check_debug_files);
}

/* ---- requests ---- */

static void check_one(void *arg)
{
    struct connect_check *q = arg;
    q->ask(q);
}

/* Sends all requests at once, each in its own fiber: a server that does not answer delays no other check. */
static void check_all(void *arg)
{
    struct connect_checks *all = arg;
    struct fiber_group group;
    fiber_group_init(&group, NULL);
    for (size_t i = 0; i < all->count; i++)
        if (!fiber_start(&group, check_one, &all->items[i]))
            all->failed = true;
    fiber_group_wait(&group);
}

/* Adds the result of a check to the problems of its configuration. Any answer proves that the server works, so "not found" and a malformed
 * file are good; a refusal is a warning, no answer an error. */
static void report_answer(const struct connect_check *q)
{
    struct value_problems *problems = q->target->problems;
    if (q->has_no_path) {
        value_info(problems, &q->at, q->key, "%s was not asked: its layout has no path for a made-up file", q->where);
        return;
    }
    switch (q->code) {
    case SL_OK:
    case SL_NOT_FOUND:
    case SL_MALFORMED: value_info(problems, &q->at, q->key, "%s answers", q->where); break;
    case SL_PERMISSION_DENIED:
        value_problem(problems, &q->at, true, q->key,
                      "%s refuses the request (%s): credentials are wrong or missing, or the server answers so for "
                      "every missing file",
                      q->where, q->error.message);
        break;
    default:
        if (strcmp(q->error.message, "destination is restricted") == 0) /* the error of fetch_get for such an address */
            value_problem(problems, &q->at, false, q->key,
                          "%s is not asked: its address is private or reserved; allow it with connect_to_reserved_ips "
                          "or allowed_reserved_networks",
                          q->where);
        else
            value_problem(problems, &q->at, false, q->key, "%s does not respond: %s", q->where,
                          *q->error.message ? q->error.message : "timed out");
    }
}

/* Returns how many checks check_sources and add_back_ends add at most, for all configurations together. */
static size_t max_checks(const struct connect_target *targets, size_t count)
{
    enum { BACK_ENDS = 6 }; /* more than add_back_ends adds: a Redis, the shared bucket and three stores */
    size_t most = 0;
    for (size_t i = 0; i < count; i++)
        most += targets[i].config->source_count + targets[i].config->mozilla.source_count + targets[i].symbol_count +
                BACK_ENDS;
    return most;
}

void config_check_connections(const struct connect_target *targets, size_t count, const char *level)
{
    const struct config *first = targets[0].config;
    /* only what check_source needs of the options */
    const struct origin_options origin = {.s3_client_capacity = (size_t)first->s3_client_capacity,
                                          .gcs_token_capacity = (size_t)first->gcs_token_capacity,
                                          .file_ptr_roots = first->file_ptr_roots,
                                          .file_ptr_root_count = first->file_ptr_root_count};
    struct connect_checks all = {.capacity = max_checks(targets, count)};
    all.items = calloc(all.capacity, sizeof *all.items);
    all.failed = !all.items;
    log_set_levels(level ? level : "off");
    log_set_file("/dev/stderr", NULL);
    loop_init(0);
    log_start();
    origin_init(&origin);
    server_init_fetch(first);
    for (size_t i = 0; i < count && all.items; i++) {
        check_sources(&all, &targets[i]);
        add_back_ends(&all, &targets[i]);
    }
    loop_run_fiber(check_all, &all);
    for (size_t i = 0; i < all.count; i++) {
        report_answer(&all.items[i]);
        sl_arena_free(&all.items[i].arena);
    }
    if (all.failed)
        value_problem(targets[0].problems, NULL, false, "", "out of memory: not all servers were checked");
    fetch_close();
    origin_close();
    log_stop();
    loop_close();
    free(all.items);
    sl_arena_free(&all.arena);
}
