/* The scans of the configuration, and when their passes run. */
#include "scan/impl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/duration.h"
#include "core/files.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"

enum {
    LOOK_MS = 1000,   /* how often scan_run() looks for passes that are due, or for new indexes */
    RETRY_MS = 30000, /* until a pass that failed for lack of memory or threads is repeated */
};

struct scan scans[CONFIG_MAX_SCANS];
const struct config *scan_config;
atomic_bool scan_is_stopping;
static struct fiber_wait_list wake; /* scan_run() waits here; woken when passes are requested */

struct scan *scan_of_source(struct sl_str id)
{
    for (size_t i = 0; i < CONFIG_MAX_SCANS && scans[i].source.find; i++) /* `find` is NULL in scans never configured */
        if (sl_str_equal(id, sl_str(scans[i].id)))
            return &scans[i];
    return NULL;
}

/* ---- configuration ---- */

/* Hashes everything of the configuration that decides what is in the scan's index, and the version of the records' format. */
static uint64_t scan_key(const struct config_scan *config)
{
    struct sl_buf text = {0};
    sl_buf_printf(&text, SL_STR_FMT "\n%s\n%s\n%u\n%u", SL_STR_ARG(config->path),
                  config->include ? config->include : "", config->exclude ? config->exclude : "", config->kinds,
                  (unsigned)SL_INDEX_RECORD_VERSION);
    uint64_t key = sl_hash(text.data, text.size);
    sl_buf_free(&text);
    return key;
}

/* Lets the configured source with the scan's id find its files by the scan's index. */
static void attach(struct config *config, struct scan *scan)
{
    for (size_t i = 0; i < config->source_count; i++)
        if (sl_str_equal(config->sources[i].id, sl_str(scan->id)))
            config->sources[i].index = &scan->source;
}

void scan_configure(struct config *config)
{
    scan_config = config;
    for (size_t i = 0; i < CONFIG_MAX_SCANS; i++) {
        struct scan *scan = &scans[i];
        bool existed = scan->exists;
        uint64_t key = scan->key;
        scan->exists = i < config->scan.count;
        if (!scan->exists) {
            if (existed)
                scan_index_forget(scan);
            continue;
        }
        scan->number = i;
        scan->source =
            (struct source_index){.find = scan_find, .find_companion = scan_find_companion, .fetch = scan_fetch};
        snprintf(scan->id, sizeof scan->id, "scan:%zu", i);
        scan->config = config->scan.items[i];
        scan->key = scan_key(&scan->config);
        /* a pass may be running: then its state, such as "reading", is kept */
        scan->state.state = scan->state.state ? scan->state.state : "idle";
        attach(config, scan);
        if (!existed || scan->key != key) { /* other path, filters or kinds: the old index is of other files */
            scan_index_forget(scan);
            scan->due_ms = 0;
        }
    }
    scan_members_forget(); /* frees package members that are kept for later requests (scan.prefetch) */
}

void scan_close(void)
{
    scan_members_forget(); /* package members that are kept for later requests (scan.prefetch) */
    for (size_t i = 0; i < CONFIG_MAX_SCANS; i++) {
        scan_index_forget(&scans[i]);
        scans[i] = (struct scan){.exists = false};
    }
}

bool scan_get_state(size_t number, struct scan_state *state)
{
    if (number >= CONFIG_MAX_SCANS || !scans[number].exists)
        return false;
    *state = scans[number].state;
    state->id = sl_str(scans[number].id);
    state->path = scans[number].config.path;
    return true;
}

/* ---- indexes that are no longer used ---- */

struct sweeping { /* pool work: which index files to keep */
    const char *cache_dir;
    uint64_t keys[CONFIG_MAX_SCANS]; /* of the configured scans; an index is named after its key */
    size_t count;
};

/* True if the file of this name is the index of a configured scan. */
static bool is_of_scan(const struct sweeping *s, const char *name)
{
    char current[32];
    for (size_t i = 0; i < s->count; i++) {
        snprintf(current, sizeof current, "%016" PRIx64 ".slix", s->keys[i]);
        if (strcmp(current, name) == 0)
            return true;
    }
    return false;
}

/* Pool work: removes two kinds of files. Temporary files ("new-...") older than an hour: a process left them behind when it died. Indexes
 * older than a week that belong to no configured scan: they are kept so long as the configuration may come back. */
static void sweep(void *arg)
{
    enum { TMP_LIFE_S = 3600, INDEX_LIFE_S = 7 * 24 * 3600 };
    const struct sweeping *s = arg;
    char path[1024];
    struct stat st;
    if (snprintf(path, sizeof path, "%s/scan", s->cache_dir) >= (int)sizeof path)
        return;
    DIR *dir = dir_open(AT_FDCWD, path);
    for (struct dirent *e; (e = dir_next(dir, &st));) {
        int64_t life_s = strncmp(e->d_name, "new-", 4) == 0 ? TMP_LIFE_S : INDEX_LIFE_S;
        if (S_ISREG(st.st_mode) && !is_of_scan(s, e->d_name) && time(NULL) - st.st_mtim.tv_sec > life_s)
            unlinkat(dirfd(dir), e->d_name, 0);
    }
    if (dir)
        closedir(dir);
}

/* Deletes old indexes of scans that are no longer configured, and old temporary files, on the pool. */
static void sweep_indexes(void)
{
    struct sweeping sweeping = {.cache_dir = scan_config->cache_dir};
    for (size_t i = 0; i < CONFIG_MAX_SCANS; i++)
        if (scans[i].exists)
            sweeping.keys[sweeping.count++] = scans[i].key;
    if (sweeping.cache_dir)
        pool_run(POOL_IO, sweep, &sweeping, NULL);
}

/* ---- passes ---- */

void scan_open(void)
{
    for (size_t i = 0; i < CONFIG_MAX_SCANS; i++)
        if (scans[i].exists && !scans[i].index)
            scan_index_refresh(&scans[i]);
}

void scan_request_pass(void)
{
    for (size_t i = 0; i < CONFIG_MAX_SCANS; i++)
        scans[i].wanted = scans[i].exists;
    fiber_wake_all(&wake);
}

/* Returns when the next pass begins (as loop_now_ms) after one that ended with `code`: soon if memory or threads were short, else after
 * the configured interval. UINT64_MAX: only on request, as no interval is configured. */
static uint64_t next_due(const struct scan *scan, enum sl_code code)
{
    if (code == SL_BUSY)
        return loop_now_ms() + RETRY_MS;
    return scan->config.interval_ns ? loop_now_ms() + DURATION_MS(scan->config.interval_ns) : UINT64_MAX;
}

/* A fiber that runs one pass and sets when the next one is due. */
static void run_pass(void *arg)
{
    struct scan *scan = arg;
    struct sl_error error;
    uint64_t key = scan->key;
    /* opens the index that an earlier process has written, so that only new and changed files are read */
    if (!scan->index)
        scan_index_refresh(scan);
    enum sl_code code = scan_pass(scan->number, &error);
    scan->running =
        false; /* set by begin_passes(); scan_pass() does not clear it if it ran out of memory at its begin */
    /* 0, at once: a reload has changed what is to be scanned */
    scan->due_ms = scan->key == key ? next_due(scan, code) : 0;
}

/* Starts a fiber for each pass that is due or was requested, unless a pass of the same scan runs. */
static void begin_passes(struct fiber_group *group)
{
    for (size_t i = 0; i < CONFIG_MAX_SCANS; i++) {
        struct scan *scan = &scans[i];
        if (!scan->exists || scan->running || (!scan->wanted && scan->due_ms > loop_now_ms()))
            continue;
        scan->wanted = false;
        scan->running = fiber_start(group, run_pass, scan);
    }
}

/* Run in the service's processes other than the first, which do not scan: opens the indexes that the first process has published. */
static void watch_indexes(void)
{
    for (size_t i = 0; i < CONFIG_MAX_SCANS; i++)
        if (scans[i].exists) {
            scans[i].state.state = "watching";
            scan_index_refresh(&scans[i]);
        }
}

void scan_run(void *unused)
{
    struct fiber_group passes;
    (void)unused;
    if (scan_config->process.index != 0) {
        do
            watch_indexes();
        while (fiber_sleep(LOOK_MS));
        return;
    }
    fiber_group_init(&passes, NULL);
    sweep_indexes();
    do
        begin_passes(&passes);
    while (fiber_wait_on(&wake, LOOK_MS) != FIBER_CANCELLED);
    atomic_store(&scan_is_stopping, true); /* ends walks of directories, which run on pool threads */
    fiber_group_cancel(&passes);
    fiber_group_wait(&passes);
}
