/* Sets of parts: staged, published, replaced, dropped. The only state is the names of files and directories. */
#include "kinds/symbfile_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/loop.h"
#include "core/metrics.h"

const char *const symbfile_kind_names[SYMBFILE_KINDS] = {"ranges", "returnpads"};

enum { SIZE_KNOWN_S = 60, TMP_AGE_S = 24 * 3600 };

/* As configured, for the pool; the directories stay what they were at start. */
static const char *_Atomic store_dir, *_Atomic cache_dir;
static _Atomic uint64_t min_free, max_size, max_set_bytes, max_records, staging_ttl_ns;

void symbfile_store_configure(const struct config *config)
{
    store_dir = config->symbfile.store_dir;
    cache_dir = config->cache_dir;
    min_free = config->symbfile.store_min_free;
    max_size = config->symbfile.store_max_size;
    max_set_bytes = config->symbfile.max_set_bytes;
    max_records = config->symbfile.max_records;
    staging_ttl_ns = config->symbfile.staging_ttl_ns;
}

void store_hex(const uint8_t *bytes, size_t size, char *out)
{
    for (size_t i = 0; i < size; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

bool symbfile_store_dir(char out[512])
{
    const char *own = store_dir, *cache = cache_dir;
    int size = -1;
    if (own)
        size = snprintf(out, 512, "%s", own);
    else if (cache)
        size = snprintf(out, 512, "%s/uploads", cache);
    return size > 0 && size < 512;
}

bool store_tmp(char out[STORE_PATH])
{
    char store[512];
    if (!symbfile_store_dir(store))
        return false;
    snprintf(out, STORE_PATH, "%s/tmp", store);
    return true;
}

bool store_home(const struct sl_file_id *file_id, char out[STORE_PATH])
{
    char store[512], hex[FILE_ID_HEX];
    if (!symbfile_store_dir(store))
        return false;
    store_hex(file_id->bytes, sizeof file_id->bytes, hex);
    snprintf(out, STORE_PATH, "%s/%.2s/%s", store, hex, hex);
    return true;
}

/* ---- names ---- */
void store_part_name(const struct symbfile_part_file *part, char out[160])
{
    char hex[65];
    store_hex(part->sha256, sizeof part->sha256, hex);
    snprintf(out, 160, "%" PRIu32 ".%s.%c.%" PRIu64 ".%" PRIu64, part->number, hex, part->mode, part->records,
             part->inflated);
}

static bool parse_part_name(const char *name, struct symbfile_part_file *part)
{
    char hex[65];
    int end = 0;
    *part = (struct symbfile_part_file){0};
    return sscanf(name, "%" SCNu32 ".%64[0-9a-f].%c.%" SCNu64 ".%" SCNu64 "%n", &part->number, hex, &part->mode,
                  &part->records, &part->inflated, &end) == 5 &&
           name[end] == '\0' && sl_hex_decode(sl_str(hex), part->sha256, sizeof part->sha256, NULL);
}

static bool parse_set_name(const char *name, struct symbfile_set *set)
{
    *set = (struct symbfile_set){0};
    if (strlen(name) >= sizeof set->name)
        return false;
    snprintf(set->name, sizeof set->name, "%s", name);
    set->published = strncmp(name, "staging-", 8) != 0;
    const char *at = set->published ? name : name + 8;
    int kind = 0, end = 0;
    while (kind < SYMBFILE_KINDS && strncmp(at, symbfile_kind_names[kind], strlen(symbfile_kind_names[kind])) != 0)
        kind++;
    if (kind == SYMBFILE_KINDS)
        return false;
    set->kind = (enum symbfile_kind)kind;
    at += strlen(symbfile_kind_names[kind]);
    if (!set->published)
        return sscanf(at, "-%" SCNu64 "%n", &set->parts, &end) == 1 && at[end] == '-';
    return sscanf(at, "-%" SCNu64 "-%" SCNu64 "-%" SCNu64 "%n", &set->generation, &set->parts, &set->records, &end) ==
               3 &&
           at[end] == '\0';
}

struct symbfile_set *store_sets(const char *home, size_t *count)
{
    struct symbfile_set *sets = NULL;
    DIR *dir = opendir(home);
    *count = 0;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct symbfile_set set;
        struct stat st;
        if (!parse_set_name(e->d_name, &set) || fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        set.updated_s = set.published ? (int64_t)(set.generation / 1000000) : (int64_t)st.st_mtim.tv_sec;
        struct symbfile_set *grown = realloc(sets, (*count + 1) * sizeof *sets);
        if (!grown)
            break;
        sets = grown;
        sets[(*count)++] = set;
    }
    if (dir)
        closedir(dir);
    return sets;
}

static int by_number(const void *left, const void *right)
{
    const struct symbfile_part_file *a = left, *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

bool store_load_parts(const char *home, struct symbfile_set *set)
{
    char path[STORE_PATH + 200];
    snprintf(path, sizeof path, "%s/%s", home, set->name);
    DIR *dir = opendir(path);
    bool ok = dir != NULL;
    set->have = NULL;
    set->have_count = 0;
    for (struct dirent *e; ok && (e = readdir(dir));) {
        struct symbfile_part_file part;
        if (!parse_part_name(e->d_name, &part))
            continue;
        if ((set->have_count & (set->have_count - 1)) == 0) { /* room doubles */
            void *grown = realloc(set->have, (set->have_count ? 2 * set->have_count : 1) * sizeof *set->have);
            if (!grown) {
                ok = false;
                break;
            }
            set->have = grown;
        }
        set->have[set->have_count++] = part;
    }
    if (dir)
        closedir(dir);
    if (!ok) {
        free(set->have);
        set->have = NULL;
        set->have_count = 0;
    }
    if (set->have_count)
        qsort(set->have, set->have_count, sizeof *set->have, by_number);
    return ok;
}

void symbfile_store_published(const struct sl_file_id *file_id, struct symbfile_set sets[SYMBFILE_KINDS])
{
    char home[STORE_PATH];
    size_t count = 0;
    struct symbfile_set *all = store_home(file_id, home) ? store_sets(home, &count) : NULL;
    for (int kind = 0; kind < SYMBFILE_KINDS; kind++) {
        sets[kind] = (struct symbfile_set){.kind = (enum symbfile_kind)kind};
        for (size_t i = 0; i < count; i++)
            if (all[i].published && (int)all[i].kind == kind && all[i].generation > sets[kind].generation)
                sets[kind] = all[i];
    }
    free(all);
}

/* ---- failing ---- */
static bool internal(struct symbfile_failure *failure, const char *what)
{
    int reason = errno;
    if (reason == ENOSPC || reason == EDQUOT)
        symbfile_fail(failure, 507, "1402", "Storage is full.");
    else
        symbfile_fail(failure, 500, "1000", "Something went wrong on our side.");
    snprintf(failure->cause, sizeof failure->cause, "%s: %s", what, strerror(reason));
    return false;
}

/* ---- receiving ---- */

/* The size of the store is looked at once a minute; what was received since then is added. */
static _Atomic uint64_t known_bytes;
static _Atomic int64_t known_s;

static bool has_room(const char *store)
{
    uint64_t reserve = min_free, most = max_size;
    struct statvfs fs;
    if (reserve && statvfs(store, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < reserve)
        return false;
    if (most == UINT64_MAX)
        return true;
    int64_t now = clock_wall_s();
    if (now - atomic_load(&known_s) >= SIZE_KNOWN_S || now < atomic_load(&known_s) ||
        atomic_load(&known_bytes) >= most) {
        atomic_store(&known_bytes, files_tree_bytes(store));
        atomic_store(&known_s, now);
    }
    return atomic_load(&known_bytes) < most;
}

int symbfile_store_receive(char path[600], struct symbfile_failure *failure)
{
    char store[512];
    uint64_t random;
    if (!symbfile_store_dir(store)) {
        symbfile_fail(failure, 404, "1301", "Not found.");
        return -1;
    }
    if (!has_room(store)) {
        symbfile_fail(failure, 507, "1402", "Storage is full.");
        return -1;
    }
    for (int attempt = 0; attempt < 3; attempt++) {
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            continue;
        snprintf(path, 600, "%s/tmp/%016" PRIx64, store, random);
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
        if (fd >= 0)
            return fd;
        snprintf(path, 600, "%s/tmp", store);
        if (errno == ENOENT && !files_make_dirs(path))
            break;
    }
    internal(failure, "cannot make a file in the store");
    return -1;
}

/* ---- sets ---- */
static int lock_home(const char *home)
{
    char path[STORE_PATH + 16];
    if (!files_make_dirs(home))
        return -1;
    snprintf(path, sizeof path, "%s/lock", home);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (fd >= 0)
        while (flock(fd, LOCK_EX) != 0 && errno == EINTR)
            continue;
    return fd;
}

static bool same_content(const struct symbfile_set *a, const struct symbfile_set *b)
{
    if (a->have_count != b->have_count)
        return false;
    for (size_t i = 0; i < a->have_count; i++)
        if (a->have[i].number != b->have[i].number ||
            memcmp(a->have[i].sha256, b->have[i].sha256, sizeof a->have[i].sha256) != 0)
            return false;
    return true;
}

/* Other contents of the same part make way. */
static void drop_others(const char *dir, const struct symbfile_set *set, const struct symbfile_part_file *part)
{
    char keep[160];
    store_part_name(part, keep);
    for (size_t i = 0; i < set->have_count; i++) {
        char name[160], path[STORE_PATH + 400];
        store_part_name(&set->have[i], name);
        if (set->have[i].number != part->number || strcmp(name, keep) == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, name);
        unlink(path);
    }
}

static bool feed_file(const char *path, struct symbfile_part *part, struct symbfile_failure *failure)
{
    enum { STEP = 256 * 1024 };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *buffer = malloc(STEP);
    bool ok = fd >= 0 && buffer;
    if (!ok)
        internal(failure, "cannot read a stored part");
    for (ssize_t n; ok && (n = read(fd, buffer, STEP)) != 0;) {
        if (n < 0 && errno == EINTR)
            continue;
        ok = n > 0 ? symbfile_part_feed(part, (struct sl_bytes){buffer, (size_t)n}, failure)
                   : internal(failure, "cannot read a stored part");
    }
    free(buffer);
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool is_split(const struct symbfile_set *set)
{
    for (size_t i = 0; i < set->have_count; i++)
        if (set->have[i].mode != SYMBFILE_WHOLE)
            return true;
    return false;
}

/* Reads all parts: each for itself, or the pieces as the one file that they are. */
static bool read_set(const char *home, const struct symbfile_set *set, struct sl_symbfile_sink *sink, uint64_t *records,
                     struct symbfile_failure *failure)
{
    uint64_t limit = max_set_bytes;
    bool split = is_split(set), ok = true;
    struct symbfile_part *part = NULL;
    *records = 0;
    for (size_t i = 0; i < set->have_count && ok; i++) {
        char name[160], path[STORE_PATH + 400];
        if (!part)
            part = symbfile_part_new(0, 1, limit, sink);
        store_part_name(&set->have[i], name);
        snprintf(path, sizeof path, "%s/%s/%s", home, set->name, name);
        errno = ENOMEM;
        ok = part ? feed_file(path, part, failure) : internal(failure, "cannot read a set");
        if (ok && (!split || i + 1 == set->have_count)) {
            ok = symbfile_part_finish(part, failure);
            *records += symbfile_part_records(part);
            symbfile_part_free(part);
            part = NULL;
        }
    }
    symbfile_part_free(part);
    return ok;
}

static bool check_set(const char *home, struct symbfile_set *set, struct symbfile_failure *failure)
{
    uint64_t inflated = 0;
    set->records = 0;
    for (size_t i = 0; i < set->have_count; i++) {
        inflated += set->have[i].inflated;
        set->records += set->have[i].records;
    }
    if (is_split(set) && !read_set(home, set, NULL, &set->records, failure))
        return false;
    if (inflated <= max_set_bytes && set->records <= max_records)
        return true;
    symbfile_fail(failure, 413, "1108", "Upload is too large.");
    return false;
}

/* Under the lock: the complete set takes the place of what was published, unless that is the same. */
static bool publish(const char *home, struct symbfile_set *set, struct symbfile_failure *failure)
{
    char from[STORE_PATH + 200], to[STORE_PATH + 200];
    size_t count;
    struct symbfile_set *all = store_sets(home, &count);
    uint64_t generation = clock_wall_us(), newest = 0;
    bool same = false, ok = true;
    snprintf(from, sizeof from, "%s/%s", home, set->name);
    for (size_t i = 0; i < count; i++)
        if (all[i].published && all[i].kind == set->kind && all[i].generation > newest)
            newest = all[i].generation;
    for (size_t i = 0; i < count; i++) {
        if (all[i].kind != set->kind || all[i].generation != newest || !newest || all[i].parts != set->parts)
            continue;
        same = store_load_parts(home, &all[i]) && same_content(&all[i], set);
        free(all[i].have);
    }
    generation = generation > newest ? generation : newest + 1;
    snprintf(to, sizeof to, "%s/%s-%" PRIu64 "-%" PRIu64 "-%" PRIu64, home, symbfile_kind_names[set->kind], generation,
             set->parts, set->records);
    if (same)
        files_remove_tree(from);
    else if (rename(from, to) != 0 || !files_sync_dir(home))
        ok = internal(failure, "cannot publish a set");
    else
        metric_add(METRIC_SYMBFILE_SETS, 1, symbfile_kind_names[set->kind], NULL, NULL);
    for (size_t i = 0; ok && !same && i < count; i++) {
        if (!all[i].published || all[i].kind != set->kind)
            continue;
        snprintf(from, sizeof from, "%s/%s", home, all[i].name);
        files_remove_tree(from);
    }
    free(all);
    return ok;
}

static bool add_locked(const struct symbfile_arrival *a, const char *home, struct symbfile_failure *failure)
{
    struct symbfile_set set = {.kind = a->kind, .parts = a->parts};
    char store[512], dir[STORE_PATH + 200], to[STORE_PATH + 400], name[160];
    snprintf(set.name, sizeof set.name, "staging-%s-%" PRIu64 "-%s", symbfile_kind_names[a->kind], a->parts,
             a->upload_id);
    snprintf(dir, sizeof dir, "%s/%s", home, set.name);
    store_part_name(&a->part, name);
    snprintf(to, sizeof to, "%s/%s", dir, name);
    if (!files_make_dirs(dir) || !store_load_parts(home, &set))
        return internal(failure, "cannot stage a part");
    drop_others(dir, &set, &a->part);
    free(set.have);
    if (rename(a->path, to) != 0 || !files_sync_dir(dir) || !symbfile_store_dir(store) ||
        !info_update(store, home, &a->file_id, a->info) || !store_load_parts(home, &set))
        return internal(failure, "cannot stage a part");
    bool ok = true;
    if (set.have_count == a->parts) {
        ok = check_set(home, &set, failure);
        if (ok)
            ok = publish(home, &set, failure);
        else if (failure->status < 500)
            files_remove_tree(dir);
    }
    free(set.have);
    return ok;
}

bool symbfile_store_add(const struct symbfile_arrival *a, struct symbfile_failure *failure)
{
    char home[STORE_PATH];
    if (!store_home(&a->file_id, home)) {
        symbfile_fail(failure, 404, "1301", "Not found.");
        return false;
    }
    int lock = fsync(a->fd) == 0 ? lock_home(home) : -1;
    if (lock < 0)
        return internal(failure, "cannot stage a part");
    struct stat st;
    bool ok = add_locked(a, home, failure);
    if (ok && fstat(a->fd, &st) == 0)
        atomic_fetch_add(&known_bytes, (uint64_t)st.st_size);
    close(lock);
    return ok;
}

/* ---- asking ---- */
void symbfile_store_info(const struct sl_file_id *file_id, struct symbfile_info *info)
{
    char home[STORE_PATH];
    *info = (struct symbfile_info){0};
    if (store_home(file_id, home))
        info_read(home, info);
}

/* Whether `a` is to be shown rather than `b`: what is published, then what came last. */
static bool shown_before(const struct symbfile_set *a, const struct symbfile_set *b)
{
    if (a->published != b->published)
        return a->published;
    return a->published ? a->generation > b->generation : a->updated_s > b->updated_s;
}

bool symbfile_store_status(const struct sl_file_id *file_id, struct symbfile_set sets[SYMBFILE_KINDS],
                           bool known[SYMBFILE_KINDS], struct symbfile_info *info)
{
    char home[STORE_PATH];
    size_t count = 0;
    bool any = false;
    struct symbfile_set *all = store_home(file_id, home) ? store_sets(home, &count) : NULL;
    for (int kind = 0; kind < SYMBFILE_KINDS; kind++) {
        known[kind] = false;
        for (size_t i = 0; i < count; i++) {
            if ((int)all[i].kind != kind || (known[kind] && !shown_before(&all[i], &sets[kind])))
                continue;
            sets[kind] = all[i];
            known[kind] = true;
        }
        known[kind] = known[kind] && store_load_parts(home, &sets[kind]);
        for (size_t i = 0; known[kind] && !sets[kind].published && i < sets[kind].have_count; i++)
            sets[kind].records += sets[kind].have[i].records;
        any |= known[kind];
    }
    free(all);
    symbfile_store_info(file_id, info);
    return any;
}

bool symbfile_store_delete(const struct sl_file_id *file_id)
{
    char home[STORE_PATH], path[STORE_PATH + 200];
    size_t count;
    struct stat st;
    if (!store_home(file_id, home) || stat(home, &st) != 0)
        return false;
    int lock = lock_home(home);
    struct symbfile_set *all = store_sets(home, &count);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", home, all[i].name);
        files_remove_tree(path);
    }
    free(all);
    if (lock >= 0)
        close(lock);
    return count > 0;
}

enum sl_code symbfile_store_read(const struct sl_file_id *file_id, const struct symbfile_set *wanted,
                                 struct sl_symbfile_sink *sink, struct sl_error *error)
{
    char home[STORE_PATH];
    struct symbfile_set set = *wanted;
    struct symbfile_failure failure = {0};
    uint64_t records;
    if (!store_home(file_id, home) || !store_load_parts(home, &set))
        return sl_fail(error, SL_NOT_FOUND, "the upload was replaced");
    bool ok = set.have_count == set.parts && read_set(home, &set, sink, &records, &failure);
    enum sl_code code = ok                      ? SL_OK
                        : failure.status == 400 ? sl_fail(error, SL_MALFORMED, "%.200s", failure.text)
                                                : sl_fail(error, SL_NOT_FOUND, "the upload was replaced");
    free(set.have);
    return code;
}

/* ---- sweeping ---- */
/* Counts, or (`remove`) removes, what was staged too long ago. */
static size_t expired_sets(const char *home, int64_t now, int64_t ttl_s, bool remove)
{
    char path[STORE_PATH + 200];
    size_t count, expired = 0;
    struct symbfile_set *sets = store_sets(home, &count);
    for (size_t i = 0; i < count; i++) {
        if (sets[i].published || now - sets[i].updated_s < ttl_s)
            continue;
        expired++;
        snprintf(path, sizeof path, "%s/%s", home, sets[i].name);
        if (remove)
            files_remove_tree(path);
    }
    free(sets);
    return expired;
}

/* Looked at again under the lock: a part may have arrived meanwhile. */
static void sweep_home(const char *home, int64_t now, int64_t ttl_s)
{
    if (!expired_sets(home, now, ttl_s, false))
        return;
    int lock = lock_home(home);
    if (lock < 0)
        return;
    expired_sets(home, now, ttl_s, true);
    close(lock);
}

static void add_bytes(const char *home, struct symbfile_store_size *size)
{
    char path[STORE_PATH + 200];
    size_t count;
    struct symbfile_set *sets = store_sets(home, &count);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", home, sets[i].name);
        *(sets[i].published ? &size->published : &size->staging) += files_tree_bytes(path);
    }
    free(sets);
}

static void sweep_tmp(const char *store, int64_t now)
{
    char path[STORE_PATH];
    snprintf(path, sizeof path, "%s/tmp", store);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct stat st;
        if (e->d_name[0] != '.' && fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            now - (int64_t)st.st_mtim.tv_sec > TMP_AGE_S)
            unlinkat(dirfd(dir), e->d_name, 0);
    }
    if (dir)
        closedir(dir);
}

enum sl_code symbfile_store_sweep(struct symbfile_store_size *size, struct sl_error *error)
{
    char store[512], path[STORE_PATH];
    int64_t now = clock_wall_s(), ttl_s = (int64_t)(staging_ttl_ns / 1000000000);
    *size = (struct symbfile_store_size){0};
    if (!symbfile_store_dir(store))
        return SL_OK;
    snprintf(path, sizeof path, "%s/tmp", store);
    if (!files_make_dirs(path))
        return sl_fail(error, SL_INTERNAL, "cannot make the upload store: %s", strerror(errno));
    sweep_tmp(store, now);
    for (unsigned first = 0; first < 256; first++) {
        snprintf(path, sizeof path, "%s/%02x", store, first);
        DIR *dir = opendir(path);
        for (struct dirent *e; dir && (e = readdir(dir));) {
            if (strlen(e->d_name) != FILE_ID_HEX - 1)
                continue;
            snprintf(path, sizeof path, "%s/%02x/%s", store, first, e->d_name);
            sweep_home(path, now, ttl_s);
            add_bytes(path, size);
        }
        if (dir)
            closedir(dir);
    }
    return SL_OK;
}
