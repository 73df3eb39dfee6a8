/* The cache kind `ms_symcaches`: SymCache files for Windows Performance Analyzer, made from PDB files by external programs. */
#include "transcode/ms_symcaches.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "search/search.h"
#include "cache_kinds/converters.h"
#include "conversion/conversion.h"

enum { MAX_NAME = 255, MAX_VERSIONS = 64, TRANSIENT_S = 60 /* lifetime of a cached temporary failure */ };

/* Error message of a computation that was started by a look-up with is_cached_only; ms_symcache_get recognises the error by it. */
static const char cached_only[] = "not cached";

/* ---- admission: limits concurrent transcoders ---- */

static struct {
    unsigned running, queued;
    struct fiber_wait_list free;
} transcodes;

/* Waits until fewer transcoders run than ms_symcache.max_concurrent allows, and counts one more as running. If that option is not set (0)
 * or null (UINT32_MAX), as many may run as the pool has threads. False when cancelled. Call transcode_leave() when the transcoder has
 * ended. */
static bool transcode_admit(const struct config *config)
{
    unsigned configured = config->ms_symcache.max_concurrent;
    unsigned most = configured && configured != UINT32_MAX ? configured : loop_pool_threads();
    enum fiber_wait waited = FIBER_WOKEN;
    metric_set(METRIC_TRANSCODES_QUEUED, ++transcodes.queued, NULL, NULL, NULL);
    while (transcodes.running >= most && waited != FIBER_CANCELLED)
        waited = fiber_wait_on(&transcodes.free, UINT64_MAX);
    metric_set(METRIC_TRANSCODES_QUEUED, --transcodes.queued, NULL, NULL, NULL);
    transcodes.running += waited != FIBER_CANCELLED;
    return waited != FIBER_CANCELLED;
}

/* Counts a run of a transcoder, its result and duration in the metrics. */
static void transcode_count(const struct ms_symcache_query *q, enum sl_code code, uint64_t begin_ns)
{
    char version[48];
    snprintf(version, sizeof version, "%u.%u.%u", q->version[0], q->version[1], q->version[2]);
    metric_add(METRIC_TRANSCODES, 1, version, sl_code_name(code), NULL);
    metric_observe_since(METRIC_TRANSCODE_SECONDS, begin_ns, version);
}

/* Counts a transcoder as ended and lets the next one run. */
static void transcode_leave(void)
{
    transcodes.running--;
    fiber_wake_one(&transcodes.free);
}

/* ---- the PDB ---- */

/* Checks that the downloaded PDB has the requested id; SL_NOT_FOUND if not. Its age may be higher than requested: a PDB that was changed
 * after linking still describes the program, and debuggers accept it, too. */
static enum sl_code pdb_check(const struct cache_item *file, const struct sl_debug_id *id, struct sl_error *error)
{
    const struct object_check_options options = {.limits = current_reader_limits()};
    struct object_check_result result;
    struct conversion_description about = {.location = SL_STR("a PDB")};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = -1};
    converter_add_item(&call, INPUT_FILE, file);
    enum sl_code code = conversion_run(&about, &converter_object_check, &call, &result, error);
    if (code != SL_OK)
        return code;
    bool is_wanted = memcmp(result.debug_id.uuid, id->uuid, sizeof id->uuid) == 0 && result.debug_id.age >= id->age;
    return is_wanted ? SL_OK : sl_fail(error, SL_NOT_FOUND, "the PDB that was found has another id than requested");
}

/* Finds the PDB on the configured sources. On SL_OK, `file` holds a reference to its cache entry. */
static enum sl_code pdb_find(const struct ms_symcache_query *q, struct sl_arena *arena, struct file_lookup *file,
                             struct sl_error *error)
{
    const enum file_type type = FILE_PDB;
    struct object_id id = {.type = OBJECT_PE, .debug_file = q->pdb_name, .debug_id = q->id, .has_debug_id = true};
    struct search_scope where = {.sources = q->config->sources,
                                 .source_count = q->config->source_count,
                                 .scope = SL_STR("global"),
                                 .arena = arena};
    search_find_file(&where, &id, &type, 1, file);
    *error = file->error;
    if (file->code != SL_OK)
        return error->code = file->code;
    enum sl_code code = pdb_check(file->item, &q->id, error);
    if (code != SL_OK)
        cache_release(file->item);
    return code;
}

/* Converts a failure to get the PDB: temporary ones become SL_DOWNLOAD_ERROR with a lifetime in the cache (duration_ns) of TRANSIENT_S.
 * Others are returned as they are. */
static enum sl_code pdb_failed(enum sl_code code, struct sl_error *error)
{
    if (code == SL_DOWNLOAD_ERROR || code == SL_TIMEOUT || code == SL_PERMISSION_DENIED) {
        code = sl_fail(error, SL_DOWNLOAD_ERROR, "cannot get the PDB now: a symbol source has failed");
        error->duration_ns = TRANSIENT_S * UINT64_C(1000000000);
    }
    return code;
}

/* ---- the kind ---- */

/* Formats the id in upper case, as it appears in the transcoder's output path and in cache keys. */
static void pdb_id_text(const struct sl_debug_id *id, char out[SL_DEBUG_ID_TEXT])
{
    sl_debug_id_format_breakpad(id, out);
    for (char *c = out; *c; c++)
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 32) : *c;
}

/* The kind's `compute`: makes a SymCache file. Finds the PDB, waits until not too many transcoders run, runs the transcoder. For a
 * look-up with is_cached_only it fails with SL_BUSY, a code that the cache does not keep. */
static enum sl_code ms_symcaches_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                         struct sl_error *error)
{
    const struct ms_symcache_query *q = context;
    struct file_lookup file;
    char id[SL_DEBUG_ID_TEXT];
    if (q->is_cached_only)
        return sl_fail(error, SL_BUSY, cached_only);
    enum sl_code code = pdb_find(q, arena, &file, error);
    if (code != SL_OK)
        return pdb_failed(code, error);
    pdb_id_text(&q->id, id);
    struct transcode job = {q->config, q->transcoder, sl_arena_strndup(arena, q->pdb_name.data, q->pdb_name.size), id,
                            file.item->mapping.bytes};
    if (!job.pdb_name) {
        code = sl_fail(error, SL_BUSY, "out of memory");
    } else if (!transcode_admit(q->config)) {
        code = sl_fail(error, SL_CANCELLED, "cancelled");
    } else {
        uint64_t begin = clock_mono_ns();
        code = transcode_run(&job, tmp->fd, error);
        transcode_leave();
        transcode_count(q, code, begin);
    }
    cache_release(file.item);
    return code;
}

static void ms_symcache_release(void *config)
{
    config_release(config);
}

/* The kind's `retain`: copies the query into the arena of the computation, and retains the configuration until the arena is freed, as the
 * computation may outlive the client. NULL when out of memory. */
static void *ms_symcache_retain(const void *context, struct sl_arena *arena)
{
    const struct ms_symcache_query *from = context;
    struct ms_symcache_query *to = SL_ARENA_NEW(arena, struct ms_symcache_query);
    char *name = sl_arena_strndup(arena, from->pdb_name.data, from->pdb_name.size);
    if (!to || !name)
        return NULL;
    *to = *from;
    to->pdb_name.data = name;
    to->config = config_retain(from->config);
    if (sl_arena_on_free(arena, ms_symcache_release, (void *)(uintptr_t)to->config))
        return to;
    config_release(to->config);
    return NULL;
}

const struct cache_kind kind_ms_symcaches = {
    .name = "ms_symcaches",
    .section = CACHE_TRANSCODED,
    .version = 1001,
    .compute = ms_symcaches_compute,
    .retain = ms_symcache_retain,
};

/* ---- lookups ---- */

/* The name of the PDB is in lower case in the key, as Windows compares file names without case. */
struct sl_str ms_symcache_key(const struct ms_symcache_query *q, struct sl_arena *arena)
{
    struct sl_buf key = {0};
    char id[SL_DEBUG_ID_TEXT];
    pdb_id_text(&q->id, id);
    sl_buf_printf(&key, "scope: global\n\n%u.%u.%u\n", q->version[0], q->version[1], q->version[2]);
    for (size_t i = 0; i < q->pdb_name.size; i++) {
        char c = q->pdb_name.data[i];
        sl_buf_u8(&key, (uint8_t)(c >= 'A' && c <= 'Z' ? c + 32 : c));
    }
    sl_buf_printf(&key, "\n%s\n", id);
    return sl_buf_move_to_arena(&key, arena);
}

/* Look-ups of one key share a computation. If a look-up with is_cached_only has started the computation, it fails with the message
 * cached_only for all look-ups that share it. Of these, a look-up without is_cached_only tries again. */
enum sl_code ms_symcache_get(const struct ms_symcache_query *q, struct sl_arena *arena, struct cache_item **item,
                             struct sl_error *error)
{
    struct cache_key key = {.text = ms_symcache_key(q, arena), .scope = SL_STR("global")};
    if (!key.text.data)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (;;) {
        enum sl_code code = cache_get(&kind_ms_symcaches, &key, q, item, error);
        bool joined_other = code == SL_BUSY && strcmp(error->message, cached_only) == 0 && !q->is_cached_only;
        if (!joined_other)
            return code;
        if (!fiber_yield())
            return sl_fail(error, SL_CANCELLED, "cancelled");
    }
}

/* ---- versions of transcoders whose files may be in the cache: one per line, in the file <cache_dir>/ms_symcaches/versions ---- */

struct version_list {
    unsigned items[MAX_VERSIONS][3];
    size_t count;
};

static struct {
    struct version_list list;
    bool is_loaded;
    bool is_loading; /* by a fiber; others wait for `loaded` */
    struct fiber_wait_list loaded;
} versions;

static bool version_list_has(const struct version_list *list, const unsigned version[3])
{
    for (size_t i = 0; i < list->count; i++)
        if (memcmp(list->items[i], version, sizeof list->items[i]) == 0)
            return true;
    return false;
}

/* Adds a version, unless the list has it or is full. */
static void version_list_add(struct version_list *list, const unsigned version[3])
{
    if (list->count < MAX_VERSIONS && !version_list_has(list, version))
        memcpy(list->items[list->count++], version, sizeof list->items[0]);
}

struct version_load { /* load_versions() on the pool */
    const struct config *config;
    struct version_list list; /* result */
};

/* Appends the versions of the configured transcoders that are not in load->list to the file, and to the list. */
static enum sl_code append_configured(struct version_load *load, const char *path, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0)
        return sl_fail_errno(error, errno, "cannot write the file ms_symcaches/versions in cache_dir");
    for (size_t i = 0; code == SL_OK && i < load->config->ms_symcache.transcoder_count; i++) {
        const unsigned *v = load->config->ms_symcache.transcoders[i].version;
        if (!version_list_has(&load->list, v) && dprintf(fd, "%u.%u.%u\n", v[0], v[1], v[2]) < 0)
            code = sl_fail_errno(error, errno, "cannot write the file ms_symcaches/versions in cache_dir");
        else
            version_list_add(&load->list, v);
    }
    sl_close(fd);
    return code;
}

/* Pool work: reads the file of versions, and adds those of the configured transcoders to it. The file exists because earlier configurations
 * may have had other transcoders, whose SymCache files are still in the cache. */
static enum sl_code load_versions(void *arg, struct sl_error *error)
{
    struct version_load *load = arg;
    char path[4096];
    unsigned v[3];
    if (!load->config->cache_dir)
        return SL_OK;
    snprintf(path, sizeof path, "%s/ms_symcaches", load->config->cache_dir);
    mkdir(path, 0750); /* usually it exists; if it cannot be made, opening the file below fails */
    snprintf(path, sizeof path, "%s/ms_symcaches/versions", load->config->cache_dir);
    FILE *file = fopen(path, "re");
    if (!file && errno != ENOENT)
        return sl_fail_errno(error, errno, "cannot read the file ms_symcaches/versions in cache_dir");
    while (file && fscanf(file, "%u.%u.%u", &v[0], &v[1], &v[2]) == 3)
        version_list_add(&load->list, v);
    if (file)
        fclose(file);
    return append_configured(load, path, error);
}

/* Loads the list `versions`. If another fiber is loading it, waits for that one, and does nothing if the list has `version` then. After
 * SL_BUSY and SL_CANCELLED the next look-up tries again; after other errors the list counts as loaded. */
static void update_versions(const struct config *config, const unsigned version[3])
{
    while (versions.is_loading)
        if (fiber_wait_on(&versions.loaded, UINT64_MAX) == FIBER_CANCELLED)
            return;
    if (versions.is_loaded && version_list_has(&versions.list, version))
        return;
    struct version_load load = {.config = config};
    struct sl_error error;
    versions.is_loading = true;
    enum sl_code code = pool_call(POOL_IO, load_versions, &load, &error);
    versions.is_loading = false;
    versions.is_loaded |= code != SL_BUSY && code != SL_CANCELLED;
    for (size_t i = 0; i < load.list.count; i++)
        version_list_add(&versions.list, load.list.items[i]);
    if (code != SL_OK)
        log_warn("symcache", "cannot load the list of transcoder versions; older SymCache files may not be found",
                 LOG_ERR(&error));
    fiber_wake_all(&versions.loaded);
}

/* Comparison for qsort of versions of three numbers, the greatest first. */
static int newest_first(const void *left, const void *right)
{
    const unsigned *a = left, *b = right;
    for (int i = 0; i < 3; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? 1 : -1;
    return 0;
}

/* Loads the list of versions at the first call, and when it lacks `version`: then a reload has configured another transcoder. */
size_t ms_symcache_get_older(const struct config *config, const unsigned version[3], unsigned (*found)[3], size_t max)
{
    const struct version_list *known = &versions.list;
    size_t count = 0;
    if (!versions.is_loaded || !version_list_has(known, version))
        update_versions(config, version);
    /* if the file could not be read or written, the list still lacks `version`: added here, so that the next call does not load again */
    if (versions.is_loaded)
        version_list_add(&versions.list, version);
    qsort(versions.list.items, versions.list.count, sizeof *versions.list.items, newest_first);
    for (size_t i = 0; i < known->count && count < max; i++)
        if (known->items[i][0] == version[0] && newest_first(known->items[i], version) > 0)
            memcpy(found[count++], known->items[i], sizeof known->items[i]);
    return count;
}

void ms_symcaches_close(void)
{
    versions.is_loaded = false;
    versions.list.count = 0;
}
