/* Checks beyond those of single values: unknown keys, keys without effect, and rules between keys. */
#include <stdio.h>

#include "base/map.h"
#include "config/impl.h"

struct config_key_walk {     /* a walk through all keys of the file */
    struct config_path path; /* path of the current key */
    struct value_problems *problems;
};

static void walk_map(struct config_key_walk *w, const struct value *map);

/* Warns of an unknown key, and suggests the nearest known one. */
static void warn_unknown(struct config_key_walk *w, struct sl_str key)
{
    struct value at = yaml_key_position(key);
    struct sl_str near = key_nearest(path_pattern(&w->path));
    value_problem(w->problems, &at, true, path_shown(&w->path), "unknown key%s" SL_STR_FMT "%s",
                  near.size ? ", did you mean " : "", SL_STR_ARG(near), near.size ? "?" : "");
}

/* Warns of a key without effect, unless its value disables the feature anyway (null, false). */
static void warn_no_effect(struct config_key_walk *w, struct sl_str key, const struct value *value)
{
    const char *what = key_no_effect(path_pattern(&w->path));
    struct value at = yaml_key_position(key);
    if (what && value->type != VALUE_NULL && !(value->type == VALUE_BOOL && !value->boolean))
        value_problem(w->problems, &at, true, path_shown(&w->path), "%s", what);
}

/* Checks the keys of a group, whose value must be a map or null. Reports any other value, except inside of `sources`, where
 * source_parse_list() reports it. */
static void walk_group(struct config_key_walk *w, const struct value *value)
{
    if (value->type == VALUE_MAP)
        walk_map(w, value);
    else if (value->type != VALUE_NULL && !sl_str_starts(path_pattern(&w->path), SL_STR("sources[]"))) {
        char what[120];
        value_problem(w->problems, value, false, path_shown(&w->path), "%s is not a map of keys",
                      scalar_describe(value, what));
    }
}

/* Checks the keys of each map in the list `sources`. Other elements are reported by source_parse_list(). */
static void walk_elements(struct config_key_walk *w, const struct value *list)
{
    for (size_t i = 0; list->type == VALUE_LIST && i < list->count; i++) {
        struct path_mark up = path_index(&w->path, i);
        if (list->items[i].type == VALUE_MAP)
            walk_map(w, &list->items[i]);
        path_up(&w->path, up);
    }
}

/* True for a key `x_file` (`pattern`, such as "sources[].token_file") where `x` is a secret key. env_resolve() replaces such a key by `x`.
 * If the file has both keys, it reports that and keeps `x_file`, which is not to be reported as unknown, too. */
static bool is_secret_file(struct sl_str pattern)
{
    struct sl_str suffix = SL_STR("_file");
    const struct config_key *row;
    if (!sl_str_ends(pattern, suffix))
        return false;
    pattern.size -= suffix.size;
    return key_classify(pattern, &row) == KEY_SECRET;
}

/* Warns of keys in the map that are unknown or have no effect, also in groups and `sources` below it. Does not look below other keys, whose
 * values other code reads. */
static void walk_map(struct config_key_walk *w, const struct value *map)
{
    for (size_t i = 0; i < map->count && !config_has_enough_problems(w->problems); i++) {
        struct path_mark up = path_key(&w->path, map->keys[i]);
        const struct config_key *row;
        warn_no_effect(w, map->keys[i], &map->items[i]);
        switch (key_classify(path_pattern(&w->path), &row)) {
        case KEY_UNKNOWN:
            if (!is_secret_file(path_pattern(&w->path)))
                warn_unknown(w, map->keys[i]);
            break;
        case KEY_GROUP: walk_group(w, &map->items[i]); break;
        case KEY_ROW:
            if (row->type == KEY_SOURCES)
                walk_elements(w, &map->items[i]);
            break;
        case KEY_FREE:
        case KEY_FREE_BOOL:
        case KEY_SECRET: break;
        }
        path_up(&w->path, up);
    }
}

void config_check_keys(const struct value *root, struct value_problems *problems)
{
    struct config_key_walk w = {.problems = problems};
    walk_map(&w, root);
    path_free(&w.path);
}

/* ---- rules ---- */

/* Reports an interval of the deny list's counts (its bucket) that is longer than the period in which failures are counted. */
static void check_deny_list(const struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct value *at = config_find(root, "deny_list_bucket_size");
    if (config->deny_list_bucket_size_ns > config->deny_list_time_window_ns)
        value_problem(problems, at ? at : config_find(root, "deny_list_time_window"), false, "deny_list_bucket_size",
                      "must not be larger than deny_list_time_window");
}

/* Reports an id that another source has too: requests and cache keys name sources by their id. `seen`: the ids so far. */
static void check_source_id(const struct value *source, size_t index, struct sl_map *seen,
                            struct value_problems *problems)
{
    const struct value *id = value_get(source, "id");
    if (!id || id->type != VALUE_STRING)
        return; /* origin/ reports the problem */
    bool fresh;
    void **slot = sl_map_find_or_add(seen, id->string, &fresh);
    if (slot && fresh) {
        *slot = seen; /* any value but NULL: only the key is used */
    } else if (slot) {
        char path[48], what[120];
        snprintf(path, sizeof path, "sources[%zu].id", index);
        value_problem(problems, id, false, path, "%s is already the id of another source", scalar_describe(id, what));
    }
}

/* Warns of `has_index: true` in a source whose layout is not `symstore`: only that layout has an index. */
static void check_source_index(const struct value *source, size_t index, struct value_problems *problems)
{
    const struct value *has_index = value_get(source, "has_index");
    const struct value *layout = value_get(value_get(source, "layout"), "type");
    if (!has_index || has_index->type != VALUE_BOOL || !has_index->boolean)
        return;
    if (layout && layout->type == VALUE_STRING && sl_str_equal(layout->string, SL_STR("symstore")))
        return;
    char path[48];
    snprintf(path, sizeof path, "sources[%zu].has_index", index);
    value_problem(problems, has_index, true, path, "has no effect without layout.type: symstore");
}

/* Returns how many buckets are configured, on S3 and GCS. Callers report more than one. */
static int buckets_in(const struct bucket_config *bucket)
{
    return (bucket->s3_name.data != NULL) + (bucket->gcs_name.data != NULL);
}

/* Reports a shared cache with more than one bucket or directory, or without any back end. */
static void check_shared_cache(const struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct value *at = config_find(root, "shared_cache");
    const struct config_shared *shared = &config->shared;
    if (!at || at->type != VALUE_MAP)
        return;
    if ((shared->filesystem_path != NULL) + buckets_in(&shared->bucket) > 1)
        value_problem(problems, at, false, "shared_cache", "set only one of gcs, s3 and filesystem");
    else if (!value_get(at, "gcs") && !value_get(at, "s3") && !value_get(at, "filesystem") && !value_get(at, "redis"))
        value_problem(problems, at, false, "shared_cache", "set one of gcs, s3, filesystem and redis");
}

/* With several serving processes, reports addresses that only one process can listen on: Unix sockets, sockets of systemd, and port 0. */
static void check_processes(const struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct {
        const char *key;
        const char *const *addresses;
        size_t count;
    } lists[] = {{"bind", config->bind, config->bind_count},
                 {"bind_https", config->bind_https, config->bind_https_count},
                 {"admin_bind", config->admin_bind, config->admin_bind_count}};
    for (size_t l = 0; config->http.processes > 1 && l < sizeof lists / sizeof *lists; l++)
        for (size_t i = 0; i < lists[l].count; i++) {
            struct sl_str address = sl_str(lists[l].addresses[i]);
            if (sl_str_starts(address, SL_STR("unix:")) || sl_str_equal(address, SL_STR("systemd")) ||
                sl_str_ends(address, SL_STR(":0")))
                value_problem(problems, config_find(root, lists[l].key), false, lists[l].key,
                              "with several processes (http.processes) the service can only listen on IP addresses "
                              "with a port, not on port 0, unix: or systemd");
        }
}

/* Reports a Redis client certificate without its private key or the reverse, and results to be shared without a Redis. */
static void check_redis(const struct config *config, const struct value *root, struct value_problems *problems)
{
    if (!config->shared.redis_certificate_path != !config->shared.redis_key_path)
        value_problem(problems, config_find(root, "shared_cache"), false, "shared_cache.redis",
                      "set both certificate_path and key_path, or neither");
    if (config->cluster.results == CLUSTER_REDIS && !config->shared.redis_url)
        value_problem(problems, config_find(root, "cluster.results"), false, "cluster.results",
                      "needs shared_cache.redis");
}

bool config_peer_number(struct sl_str text, uint16_t *number)
{
    uint64_t value;
    if (text.size > 5 || !sl_parse_u64(text, &value) || (text.data[0] == '0' && text.size > 1))
        return false;
    *number = (uint16_t)value;
    return value <= UINT16_MAX;
}

/* The processes of a node have the ids `number`, `number` + 1 and so on. Reports ids that exceed 65535, or overlap those of another node.
 * Every node is assumed to have as many processes as this one. `at` and `path`: where the number is configured. */
static void check_node_numbers(const struct config *config, const struct value *at, const char *path, uint16_t number,
                               struct value_problems *problems)
{
    uint64_t own = config->cluster.node_id, processes = config->http.processes;
    if (number + processes - 1 > UINT16_MAX)
        value_problem(problems, at, false, path, "with %llu processes, node ids would exceed 65535",
                      (unsigned long long)processes);
    for (size_t i = 0; i <= config->cluster.peer_count; i++) {
        uint16_t other = (uint16_t)own;
        /* after the peers, this node itself, if its id is configured */
        bool known = i < config->cluster.peer_count ? config_peer_number(config->cluster.peers[i].key, &other)
                                                    : own != UINT64_MAX;
        /* `other` < `number` is the same overlap, reported when `other` is checked */
        if (known && other > number && other - number < (int64_t)processes)
            value_problem(problems, at, false, path,
                          "its %llu processes use node ids %u to %llu, which overlap node %u (ids of nodes must be at "
                          "least http.processes apart)",
                          (unsigned long long)processes, number, (unsigned long long)(number + processes - 1), other);
    }
}

/* Checks `cluster.node_id`, and `cluster.peers`: its keys are ids of nodes, its values URLs. */
static void check_peers(const struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct value *peers = config_find(root, "cluster.peers");
    if (config->cluster.node_id != UINT64_MAX)
        check_node_numbers(config, config_find(root, "cluster.node_id"), "cluster.node_id",
                           (uint16_t)config->cluster.node_id, problems);
    for (size_t i = 0; peers && peers->type == VALUE_MAP && i < peers->count && !config_has_enough_problems(problems);
         i++) {
        struct sl_str node = peers->keys[i], url = peers->items[i].string;
        char path[64];
        uint16_t number;
        snprintf(path, sizeof path, "cluster.peers.%.*s", (int)(node.size < 32 ? node.size : 32), node.data);
        if (!config_peer_number(node, &number))
            value_problem(problems, &peers->items[i], false, path, "is not a node id from 0 to 65535");
        else if (peers->items[i].type == VALUE_STRING && !sl_str_starts(url, SL_STR("http://")) &&
                 !sl_str_starts(url, SL_STR("https://")))
            value_problem(problems, &peers->items[i], false, path, "is not an http or https URL");
        else if (number != config->cluster.node_id) /* a list for all nodes contains this one, checked above */
            check_node_numbers(config, &peers->items[i], path, number, problems);
    }
}

/* Reports TLS addresses without a certificate or private key, and warns of a certificate without TLS addresses. */
static void check_https(const struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct value *at = config_find(root, "bind_https");
    if (config->bind_https_count && (!config->https.certificate_path || !config->https.key_path))
        value_problem(problems, at, false, "bind_https",
                      "needs server_config.https.certificate_path and server_config.https.key_path");
    at = config_find(root, "server_config");
    if (!config->bind_https_count && config->https.certificate_path)
        value_problem(problems, at, true, "server_config", "has no effect without bind_https");
}

/* Reports `mozilla.store` with more than one bucket or directory. */
static void check_store(const struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct value *at = config_find(root, "mozilla.store");
    const struct config_store *store = &config->mozilla.store;
    if (at && (store->filesystem_path != NULL) + buckets_in(&store->bucket) > 1)
        value_problem(problems, at, false, "mozilla.store", "set only one of s3, gcs and filesystem");
}

/* True if the access key has the right. */
static bool has_right(const struct access_key *key, struct sl_str right)
{
    for (size_t i = 0; i < key->right_count; i++)
        if (sl_str_equal(key->rights[i], right))
            return true;
    return false;
}

/* Reports `store`, for uploaded debug files, with two buckets: only one would be used. */
static void check_debug_files(const struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct value *at = config_find(root, "store");
    if (at && buckets_in(&config->uploads_store.bucket) > 1)
        value_problem(problems, at, false, "store", "set only one of s3 and gcs");
}

/* True if symbfiles can be uploaded: without an access key, or there is a key with the right `symbols:write`. */
static bool may_upload(const struct config *config)
{
    bool open = true;
    for (size_t i = 0; i < config->auth.require_count; i++)
        open = open && !sl_str_equal(config->auth.require[i], SL_STR("symbols"));
    for (size_t i = 0; !open && i < config->auth.key_count; i++)
        open = has_right(&config->auth.keys[i], SL_STR("symbols:write"));
    return open;
}

/* Warns if access keys restrict uploads to scopes, but requests for symbolication need no key: anyone can name a scope in such a request
 * and see its uploads. No warning if all scopes share their uploads anyway. */
static void check_scopes(const struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct value *at = config_find(root, "auth.require");
    bool is_safe = config->uploads_scope == UPLOADS_SHARED, scoped = false;
    for (size_t i = 0; i < config->auth.require_count; i++)
        is_safe = is_safe || sl_str_equal(config->auth.require[i], SL_STR("symbolicate"));
    for (size_t i = 0; i < config->auth.key_count; i++)
        scoped = scoped || (config->auth.keys[i].scopes && has_right(&config->auth.keys[i], SL_STR("symbols:write")));
    if (scoped && !is_safe)
        value_problem(problems, at ? at : config_find(root, "auth.keys"), true, "auth.require",
                      "without `symbolicate` in this list, anyone can request any scope and see its uploads");
}

/* Reports symbfile uploads with more than one bucket or directory. Warns if there seem to be several nodes (a section `cluster` or
 * `shared_cache`) but no store that they share. */
static void check_symbfile_store(const struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct value *at = config_find(root, "symbfile.store"), *own = config_find(root, "symbfile.store_dir");
    const struct value *cluster = config_find(root, "cluster"), *shared = config_find(root, "shared_cache");
    int stores = (config->symbfile.shared_dir != NULL) + buckets_in(&config->symbfile.bucket);
    if (stores > 1)
        value_problem(problems, at, false, "symbfile.store", "set only one of s3, gcs and filesystem");
    else if (config->symbfile.shared_dir && config->symbfile.store_dir)
        value_problem(problems, own, false, "symbfile.store_dir",
                      "symbfile.store.filesystem.path is set too; set only one of them");
    const struct value *several = cluster && cluster->type == VALUE_MAP ? cluster
                                  : shared && shared->type == VALUE_MAP ? shared
                                                                        : NULL;
    if (!stores && several && may_upload(config))
        value_problem(problems, own ? own : several, true, "symbfile.store_dir",
                      "with several nodes, symbfile uploads need a shared store, or each node answers from its own "
                      "uploads only: set symbfile.store.filesystem.path to a shared directory, or symbfile.store.s3 or "
                      "symbfile.store.gcs to a bucket");
}

void config_check_rules(const struct config *config, const struct value *root, struct value_problems *problems)
{
    const struct value *sources = config_find(root, "sources");
    struct sl_map ids = {0};
    check_deny_list(config, root, problems);
    check_shared_cache(config, root, problems);
    check_processes(config, root, problems);
    check_redis(config, root, problems);
    check_peers(config, root, problems);
    check_https(config, root, problems);
    check_store(config, root, problems);
    check_symbfile_store(config, root, problems);
    check_debug_files(config, root, problems);
    check_scopes(config, root, problems);
    for (size_t i = 0;
         sources && sources->type == VALUE_LIST && i < sources->count && !config_has_enough_problems(problems); i++) {
        check_source_id(&sources->items[i], i, &ids, problems);
        check_source_index(&sources->items[i], i, problems);
    }
    sl_map_free(&ids);
}
