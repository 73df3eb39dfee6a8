/* A pass over a scanned directory: finds its files, makes a record (list of contents) of each new one, publishes the index of all. */
#include "scan/pass.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"

enum {
    /* a running pass publishes an unfinished index after this time, then after 2, 4, 8 ... times it */
    PUBLISH_MS = 60000,
    /* records of scanned files with more objects are merged into the index on the pool, not the loop */
    BIG_RECORD = 500,
    HEAD_BYTES = 512, /* read from the start of each new file to recognise its format */
};

/* ---- unchanged files ---- */

/* match_files() gives each file of the old index its number in the new one, or one of these values, which are no file's number.
 * LEFT_OUT: the file is not copied to the new index; sl_index_copy_objects() knows this value and skips the file's objects.
 * NOT_SEEN: the walk of the directory has not found the file (yet). */
#define LEFT_OUT UINT32_MAX
#define NOT_SEEN (UINT32_MAX - 1)

/* Adds a file of the old index to the new one and counts it as unchanged. Returns its number in the new index. */
static uint32_t keep_file(struct pass *p, const struct sl_index_file *file)
{
    p->kept++;
    return sl_index_add_file(&p->builder, file);
}

/* Sets the numbers of the files of the old index that the walk has not found. If the walk could not read some directories for now, the
 * files may be there still and are kept; otherwise they were deleted and are left out. */
static void keep_unseen(struct pass *p, const struct sl_index *old, uint32_t *numbers)
{
    struct sl_index_file file;
    for (size_t i = 0; i < old->file_count; i++)
        if (numbers[i] == NOT_SEEN)
            numbers[i] = p->walk.is_incomplete && sl_index_file(old, i, &file) ? keep_file(p, &file) : LEFT_OUT;
}

/* Copies the files that have not changed since the old index, with their objects, to the new one, and lists the new and changed files in
 * p->todo. `numbers` has for each file of the old index its number in the new one, or LEFT_OUT (changed or deleted: not copied), or
 * NOT_SEEN (not found by this walk of the directory, so far). Pool work. */
static enum sl_code match_files(void *arg, struct sl_error *error)
{
    struct pass *p = arg;
    const struct sl_index *old = p->old ? &p->old->index : NULL;
    size_t old_count = old ? old->file_count : 0;
    uint32_t *numbers = malloc((old_count + 1) * sizeof *numbers); /* + 1, as the number may be 0 */
    struct sl_map by_path = {0};
    struct sl_index_file file;
    bool good = numbers && (p->todo = malloc((p->walk.count + 1) * sizeof *p->todo)); /* + 1, as the number may be 0 */
    for (size_t i = 0; good && i < old_count; i++) {
        numbers[i] = NOT_SEEN;
        if (sl_index_file(old, i, &file))
            good = sl_map_put(&by_path, file.path, (void *)(uintptr_t)(i + 1)); /* + 1, as 0 means "not in the map" */
    }
    for (size_t i = 0; good && i < p->walk.count; i++) {
        const struct scan_found_file *found = &p->walk.files[i];
        size_t at = (size_t)(uintptr_t)sl_map_get(&by_path, sl_str(pass_path(p, found)));
        bool is_unchanged =
            at && sl_index_file(old, at - 1, &file) && file.size == found->size && file.mtime_ns == found->mtime_ns;
        if (at)
            numbers[at - 1] = is_unchanged ? keep_file(p, &file) : LEFT_OUT;
        if (!is_unchanged)
            p->todo[p->todo_count++] = (uint32_t)i;
    }
    if (good && old) {
        keep_unseen(p, old, numbers); /* deleted files, or those in directories that cannot be read now */
        sl_index_copy_objects(&p->builder, old, numbers);
    }
    free(numbers);
    sl_map_free(&by_path);
    return good && !p->builder.failed ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* ---- one file ---- */

struct head_check { /* checks on the pool, by a file's first bytes, whether it may be a debug file or a package */
    const char *root, *path;
    const struct scan_found_file *file;
    /* results */
    bool is_candidate; /* it may be a debug file or a package */
    bool is_package; /* it surely is a package: failing to read it is an error, not a sign that it is something else */
};

/* Sets the results of the check from the file's first bytes. A compressed file is a candidate, as it may contain a package or a debug
 * file, but not surely a package. */
static void recognise_head(struct head_check *c, struct sl_bytes head)
{
    bool is_compressed = sl_package_is_compressed(head);
    enum sl_package_kind kind = is_compressed ? SL_PACKAGE_NONE : sl_package_detect(head);
    c->is_package = kind == SL_PACKAGE_DEB || kind == SL_PACKAGE_RPM || kind == SL_PACKAGE_ZIP;
    /* 16: sl_format_detect() needs so many bytes */
    c->is_candidate =
        is_compressed || kind != SL_PACKAGE_NONE || (head.size >= 16 && sl_format_detect(head) != SL_FORMAT_UNKNOWN);
}

/* True for file names with the ending of a package: such files are read as packages without looking at their first bytes before. */
static bool has_package_name(const char *path)
{
    static const char *const endings[] = {".deb", ".ddeb", ".rpm"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (sl_str_ends(sl_str(path), sl_str(endings[i])))
            return true;
    return false;
}

/* Pool work: reads the first bytes of a file and sets whether it may be a debug file or a package. */
static enum sl_code check_head(void *arg, struct sl_error *error)
{
    struct head_check *c = arg;
    uint8_t head[HEAD_BYTES];
    int fd = scan_open_unchanged(c->root, c->path, c->file->size, c->file->mtime_ns, error);
    if (fd < 0)
        return error->code;
    ssize_t size = pread(fd, head, sizeof head, 0);
    int number = errno;
    close(fd);
    if (size < 0)
        return sl_fail_errno(error, number, "cannot read the first bytes of a scanned file");
    recognise_head(c, (struct sl_bytes){head, (size_t)size});
    return SL_OK;
}

struct record_merge {
    struct pass *pass;
    const struct scan_found_file *found;
    const struct sl_index *record;
};

/* Adds the record of one file, which is an index of that file alone, to the directory's index that is being built. Path and time come
 * from the walk: the record has only the base name, and no time. */
static enum sl_code merge_record(void *arg, struct sl_error *error)
{
    const struct record_merge *m = arg;
    struct sl_index_file file;
    if (!sl_index_file(m->record, 0, &file))
        return sl_fail(error, SL_MALFORMED, "the cached list of a scanned file's contents is damaged");
    file.path = sl_str(pass_path(m->pass, m->found));
    file.size = m->found->size;
    file.mtime_ns = m->found->mtime_ns;
    uint32_t number = sl_index_add_file(&m->pass->builder, &file);
    sl_index_copy_objects(&m->pass->builder, m->record, &number);
    return m->pass->builder.failed ? sl_fail(error, SL_BUSY, "out of memory") : SL_OK;
}

/* Locks p->builder against the other fibers of the pass, for work that may suspend; waits while another one holds the lock. False when
 * cancelled: the lock is not held then. */
static bool lock_builder(struct pass *p)
{
    while (p->builder_is_used)
        if (fiber_wait_on(&p->builder_free, UINT64_MAX) == FIBER_CANCELLED)
            return false;
    p->builder_is_used = true;
    return true;
}

static void unlock_builder(struct pass *p)
{
    p->builder_is_used = false;
    fiber_wake_one(&p->builder_free);
}

/* Adds a file's record (`item`) to the index that is being built. Small records are merged on the loop thread, which takes less time than
 * passing them to the pool. */
static enum sl_code add_record(struct pass *p, const struct scan_found_file *found, const struct cache_item *item,
                               struct sl_error *error)
{
    struct record_merge merge = {p, found, item->loaded};
    if (!lock_builder(p))
        return sl_fail(error, SL_CANCELLED, "cancelled");
    enum sl_code code = merge.record->object_count > BIG_RECORD
                            ? pool_call(POOL_WALK | POOL_BACKGROUND, merge_record, &merge, error)
                            : merge_record(&merge, error);
    unlock_builder(p);
    return code;
}

/* Gets the record of a found file (from the cache, else by reading the file) and adds it to the index. Sets `*skipped` and returns SL_OK
 * if the file is neither a debug file nor a package. */
static enum sl_code read_file(struct pass *p, const struct scan_found_file *found, bool *skipped,
                              struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct head_check check = {.root = p->root, .path = pass_path(p, found), .file = found};
    struct scan_file_request request = {.scan_id = sl_str(p->scan->id),
                                        .root = sl_str(p->root),
                                        .path = sl_str(pass_path(p, found)),
                                        .size = found->size,
                                        .mtime_ns = found->mtime_ns,
                                        .kinds = p->kinds,
                                        .is_background = true};
    struct cache_item *item = NULL;
    check.is_candidate = check.is_package = has_package_name(check.path); /* else check_head sets both */
    enum sl_code code = check.is_package ? SL_OK : pool_call(POOL_IO, check_head, &check, error);
    *skipped = code == SL_OK && !check.is_candidate;
    if (code == SL_OK && check.is_candidate)
        code = scan_record_get(&request, &arena, &item, error);
    if (item) {
        code = add_record(p, found, item, error);
        p->packages += check.is_package;
        p->read++;
    }
    if (code == SL_MALFORMED && !check.is_package) { /* a compressed file with other contents, or a damaged program */
        *skipped = true;
        code = SL_OK;
    }
    cache_release(item);
    sl_arena_free(&arena);
    return code;
}

/* Counts one examined file as failed, skipped or read, in the scan's state, which /status shows, and in the metrics. */
static void count_file(struct pass *p, const struct scan_found_file *found, enum sl_code code, bool skipped,
                       const struct sl_error *error)
{
    struct scan_state *state = &p->scan->state;
    const char *result = code != SL_OK ? "failed" : skipped ? "skipped" : "read";
    state->done++;
    metric_add(METRIC_SCAN_FILES, 1, p->scan->id, result, NULL);
    if (code != SL_OK) {
        state->failed++;
        log_debug("scan", "cannot use a scanned file", LOG_STR("scan", p->scan->id),
                  LOG_STR("path", pass_path(p, found)), LOG_ERR(error));
    } else if (skipped) {
        state->skipped++;
    }
    state->new_files = p->read;
    state->packages = p->packages;
}

/* ---- publishing ---- */

static enum sl_code build_index(void *arg, struct sl_error *error)
{
    struct pass *p = arg;
    return sl_index_finish(&p->builder, p->key, &p->out) ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* Publishes the index of all files added so far: writes it to disk and lets searches use it. The builder is locked while the index is
 * made, so that no other fiber adds files to it then. */
static enum sl_code publish(struct pass *p, struct sl_error *error)
{
    if (!lock_builder(p))
        return sl_fail(error, SL_CANCELLED, "cancelled");
    enum sl_code code = pool_call(POOL_WALK | POOL_BACKGROUND, build_index, p, error);
    unlock_builder(p);
    if (code == SL_OK)
        code = scan_index_publish(p->scan, p->key, sl_buf_bytes(&p->out), error);
    sl_buf_free(&p->out);
    return code;
}

/* Publishes the unfinished index of a long pass, if p->publish_after_ms have passed since the last time. Doubles that time, as writing
 * the index takes longer the larger it gets. Failure is only logged, as the index is published again later. */
static void publish_early(struct pass *p)
{
    struct sl_error error;
    if (p->is_publishing || loop_now_ms() - p->published_ms < p->publish_after_ms) /* is_publishing: by another fiber */
        return;
    p->is_publishing = true;
    if (publish(p, &error) != SL_OK && error.code != SL_CANCELLED)
        log_warn("scan", "cannot publish the unfinished index of a directory that is being scanned",
                 LOG_STR("scan", p->scan->id), LOG_ERR(&error));
    p->published_ms = loop_now_ms();
    p->publish_after_ms *= 2;
    p->is_publishing = false;
}

/* ---- the pass ---- */

/* True for errors of reading a file that concern the whole process (cancelled, out of memory or threads), not this file: the pass ends. */
static bool ends_pass(enum sl_code code)
{
    return code == SL_CANCELLED || code == SL_BUSY;
}

/* Run by several fibers at once: reads the files in p->todo one after the other, until none is left or a fiber has set p->failure. */
static void read_files(void *arg)
{
    struct pass *p = arg;
    while (p->next < p->todo_count && p->failure.code == SL_OK && !fiber_cancelled()) {
        const struct scan_found_file *found = &p->walk.files[p->todo[p->next++]];
        struct sl_error error = {.code = SL_OK};
        bool skipped = false;
        enum sl_code code = read_file(p, found, &skipped, &error);
        if (ends_pass(code)) { /* cancelled, or out of memory: no fault of this file */
            p->failure = error;
            p->failure.code = code;
            return;
        }
        count_file(p, found, code, skipped, &error);
        publish_early(p);
    }
}

/* Reads all new and changed files, in several fibers: twice as many as the pool has background threads, so that the threads have work
 * while some of the fibers wait. The calling fiber is one of them, hence the - 1. */
static enum sl_code read_new_files(struct pass *p, struct sl_error *error)
{
    p->scan->state.state = "reading";
    p->published_ms = loop_now_ms();
    p->publish_after_ms = PUBLISH_MS;
    if (!fiber_run_workers(read_files, p, 2 * pool_background_threads(loop_pool_threads()) - 1) || fiber_cancelled())
        return sl_fail(error, SL_CANCELLED, "cancelled");
    if (p->failure.code != SL_OK)
        *error = p->failure;
    return p->failure.code;
}

/* Walks the directory and compares its files with the old index, to find those that have to be read. Logs a warning if some files could
 * not be examined or were too many. */
static enum sl_code find_files(struct pass *p, struct sl_error *error)
{
    p->scan->state.state = "walking";
    enum sl_code code = pool_call(POOL_WALK | POOL_BACKGROUND, scan_walk, &p->walk, error);
    if (code != SL_OK)
        return code;
    if (p->walk.too_many || p->walk.unreadable)
        log_warn("scan", "some files of a scanned directory are left out", LOG_STR("scan", p->scan->id),
                 LOG_STR("why", p->walk.too_many        ? "there are too many"
                                : p->walk.is_incomplete ? "some directories cannot be read now; what was found there "
                                                          "before stays in the index"
                                                        : "they cannot be examined; check the permissions"),
                 LOG_U64("unreadable", p->walk.unreadable));
    p->scan->state.files = p->walk.count;
    return pool_call(POOL_WALK | POOL_BACKGROUND, match_files, p, error);
}

/* Runs the pass: finds the directory's files, reads those that are new or changed, publishes the index. Nothing is published if the old
 * index is still right: no file was read, and all of its files (p->kept) are still there. */
static enum sl_code run_steps(struct pass *p, struct sl_error *error)
{
    enum sl_code code = find_files(p, error);
    p->scan->state.done = p->kept; /* unchanged files need not be read */
    metric_add(METRIC_SCAN_FILES, (double)p->kept, p->scan->id, "unchanged", NULL);
    if (code == SL_OK)
        code = read_new_files(p, error);
    bool changed = !p->old || p->read || p->kept != p->old->index.file_count;
    p->scan->state.state = "writing";
    return code == SL_OK && changed ? publish(p, error) : code;
}

/* Copies what the pass needs from the configuration, which may be replaced while the pass runs. False when out of memory. */
static bool copy_config(struct pass *p, const struct config_scan *config)
{
    const char *include = config->include, *exclude = config->exclude;
    p->root = sl_arena_strndup(&p->arena, config->path.data, config->path.size);
    p->walk.root = p->root;
    p->walk.include = include ? sl_arena_strndup(&p->arena, include, strlen(include)) : NULL;
    p->walk.exclude = exclude ? sl_arena_strndup(&p->arena, exclude, strlen(exclude)) : NULL;
    p->kinds = config->kinds;
    p->key = p->scan->key; /* a reload may change the scan's key: then the index of this pass is not published */
    return p->root && (!include || p->walk.include) && (!exclude || p->walk.exclude);
}

/* Frees a pass. Run on the pool, as freeing the data of millions of files takes long. */
static void free_pass(void *arg)
{
    struct pass *p = arg;
    sl_index_builder_free(&p->builder);
    sl_buf_free(&p->walk.paths);
    free(p->walk.files);
    free(p->todo);
    sl_arena_free(&p->arena);
    free(p);
}

/* Records in the scan's state and in the metrics how the pass ended, and logs it. A cancelled pass is not logged: the process is ending. */
static void finish(struct pass *p, enum sl_code code, const struct sl_error *error, uint64_t begun_ns)
{
    struct scan_state *state = &p->scan->state;
    double seconds = (double)(clock_mono_ns() - begun_ns) / 1e9;
    state->state = "idle";
    state->last_pass_s = clock_wall_s();
    state->last_pass_ms = (uint64_t)(seconds * 1e3);
    snprintf(state->last_error, sizeof state->last_error, "%s", code == SL_OK ? "" : error->message);
    metric_observe(METRIC_SCAN_PASS_SECONDS, seconds, p->scan->id, sl_code_name(code), NULL);
    if (code == SL_OK)
        log_info("scan", "scanned a directory", LOG_STR("scan", p->scan->id), LOG_STR("path", p->root),
                 LOG_U64("files", state->files), LOG_U64("new_files", p->read), LOG_U64("failed", state->failed),
                 LOG_U64("ids", state->ids), LOG_U64("ms", state->last_pass_ms));
    else if (code != SL_CANCELLED)
        log_warn("scan", "cannot scan a directory; its index stays as it was", LOG_STR("scan", p->scan->id),
                 LOG_STR("path", p->root), LOG_ERR(error));
}

enum sl_code scan_pass(size_t number, struct sl_error *error)
{
    struct scan *scan = &scans[number];
    struct pass *p = calloc(1, sizeof *p);
    uint64_t begun_ns = clock_mono_ns();
    if (!p)
        return sl_fail(error, SL_BUSY, "out of memory");
    p->scan = scan;
    if (!copy_config(p, &scan->config)) {
        free_pass(p);
        return sl_fail(error, SL_BUSY, "out of memory");
    }
    struct scan_state *state = &scan->state;
    state->files = state->done = state->new_files = state->packages = state->failed = state->skipped = 0;
    scan->running = true;
    p->old = scan_index_retain(scan);
    enum sl_code code = run_steps(p, error);
    scan_index_release(p->old);
    scan->running = false;
    finish(p, code, error, begun_ns);
    pool_run_detached(free_pass, NULL, p);
    return code;
}
