/* The layer on disk: an entry is a file, contents or the marker of an error (errors.c), beside it a side file with metadata (meta.c). */
#include "cache/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/duration.h"
#include "core/files.h"
#include "core/metrics.h"
#include "core/pool.h"

/* Writes the path of the file of an entry, in a version of its kind, from the hash of the entry's key. False when it is too long. */
static bool entry_path(const struct cache_disk *disk, const struct cache_kind *kind, const uint8_t *hash,
                       unsigned version, char out[CACHE_PATH_BYTES])
{
    char relative[128];
    cache_hash_path(hash, version, version <= kind->format1_up_to, relative);
    return snprintf(out, CACHE_PATH_BYTES, "%s/%s/%s", disk->dir, kind->name, relative) < CACHE_PATH_BYTES;
}

/* Removes an entry with its side file. */
static void remove_entry(const char *path)
{
    char side[CACHE_PATH_BYTES];
    unlink(path);
    if (cache_meta_name(path, side, sizeof side))
        unlink(side);
}

void cache_count_removed(const struct cache_kind *kind, const char *reason, uint64_t files, uint64_t bytes)
{
    metric_add(METRIC_CACHE_REMOVED_FILES, files, kind->name, reason, NULL);
    metric_add(METRIC_CACHE_REMOVED_BYTES, bytes, kind->name, reason, NULL);
}

/* ---- items ---- */

/* Frees an item that has no references left: what the kind has made of the contents (by `free_loaded`, or free() for kinds with `open`),
 * then the contents, which are a mapping or, if small, a copy. */
void cache_item_destroy(struct cache_item *item)
{
    if (item->kind->open)
        free(item->loaded);
    else if (item->loaded && item->kind->free_loaded)
        item->kind->free_loaded(item->loaded);
    if (item->mapping.mapped)
        sl_unmap(&item->mapping);
    else if (item->mapping.bytes.size)
        free((void *)item->mapping.bytes.data);
    file_place_free(item->place);
    free(item->note);
    free(item);
}

/* Reads the first `size` bytes of the file; false on an error, or if it is shorter. */
static bool read_exactly(int fd, uint8_t *to, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t n = pread(fd, to + at, size - at, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static bool is_dumpable; /* core dumps are enabled: exclude the cache from them */

void cache_disk_dumps(bool made)
{
    is_dumpable = made;
}

/* Maps the contents of a file, or copies them if they are small: a mapping costs a page, a page fault and one of the process's limited
 * number of maps, and entries of a hundred bytes are by far the most frequent. SL_BUSY when out of memory or maps, SL_INTERNAL for other
 * failures. */
static enum sl_code map_contents(int fd, uint64_t size, const struct cache_kind *kind, struct sl_mapping *mapping,
                                 struct sl_error *error)
{
    *mapping = (struct sl_mapping){{(const uint8_t *)"", 0}, 0};
    if (size == 0)
        return SL_OK;
    if (size > CACHE_HEAD_BYTES) {
        enum sl_code code = sl_map_fd(fd, mapping, error);
        if (code == SL_OK && kind->random_access)
            madvise((void *)mapping->bytes.data, mapping->mapped, MADV_RANDOM);
        if (code == SL_OK && is_dumpable) /* core dumps are enabled: keep the cache out of them */
            madvise((void *)mapping->bytes.data, mapping->mapped, MADV_DONTDUMP);
        return code == SL_OK || code == SL_BUSY ? code : SL_INTERNAL;
    }
    uint8_t *copy = malloc(size);
    if (!copy)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (!read_exactly(fd, copy, size)) {
        free(copy);
        return sl_fail(error, SL_INTERNAL, "cannot read a cache entry");
    }
    mapping->bytes = (struct sl_bytes){copy, size};
    return SL_OK;
}

/* Loads an item of a kind with `open`, whose loaded form has a fixed size. */
static enum sl_code open_item(struct cache_item *item, struct sl_error *error)
{
    item->loaded = calloc(1, item->kind->opened_size);
    if (!item->loaded)
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = item->kind->open(item->mapping.bytes, item->loaded, error);
    if (code == SL_OK)
        item->weight = item->kind->opened_size;
    else
        free(item->loaded);
    return code;
}

/* Makes what the kind keeps of the contents (`loaded`), if it keeps anything. SL_MALFORMED: the kind's loader refused the bytes. */
static enum sl_code load_item(struct cache_item *item, struct sl_error *error)
{
    if (!item->kind->load && !item->kind->open)
        return SL_OK;
    enum sl_code code = item->kind->open ? open_item(item, error)
                                         : item->kind->load(item->mapping.bytes, &item->loaded, &item->weight, error);
    if (code != SL_OK)
        item->loaded = NULL; /* nothing was made, or it is freed already */
    return code == SL_OK || code == SL_BUSY ? code : SL_MALFORMED;
}

enum sl_code cache_item_from_bytes(const struct cache_kind *kind, struct sl_buf *bytes, struct cache_item **item,
                                   struct sl_error *error)
{
    *item = bytes->failed ? NULL : calloc(1, sizeof **item);
    if (!*item) {
        sl_buf_free(bytes);
        return sl_fail(error, SL_BUSY, "out of memory");
    }
    **item = (struct cache_item){.mapping = {sl_buf_bytes(bytes), 0}, .references = 1, .kind = kind};
    if (!bytes->size)
        sl_buf_free(bytes); /* cache_item_destroy does not free contents of size 0 */
    *bytes = (struct sl_buf){0};
    enum sl_code code = load_item(*item, error);
    if (code != SL_OK) {
        cache_item_destroy(*item);
        *item = NULL;
    }
    return code;
}

/* Makes an item from an open file: maps its contents and lets the kind load them. `note`: the computation's remark on the entry, may be
 * empty. SL_BUSY when out of memory or maps; SL_MALFORMED if the kind refuses the contents; SL_INTERNAL for other failures. */
static enum sl_code make_item(int fd, uint64_t size, const struct cache_kind *kind, int64_t created_s, const char *note,
                              struct cache_item **made, struct sl_error *error)
{
    struct cache_item *item = calloc(1, sizeof *item);
    if (!item)
        return sl_fail(error, SL_BUSY, "out of memory");
    *item = (struct cache_item){.references = 1, .kind = kind, .time_created = created_s};
    enum sl_code code = map_contents(fd, size, kind, &item->mapping, error);
    if (note[0] && !(item->note = strdup(note)) && code == SL_OK)
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        code = load_item(item, error);
    if (code != SL_OK) {
        cache_item_destroy(item);
        return code;
    }
    cache_check_residency(item); /* the first check, here on the pool */
    *made = item;
    return SL_OK;
}

/* ---- look-up ---- */

/* Sets the mtime of an open entry to now, so that a cleanup does not remove it as unused. False: another process has deleted the entry. */
static bool touch(int fd, struct cache_disk_lookup *l)
{
    struct stat st;
    if (futimens(fd, NULL) != 0)
        l->io_errno = errno;
    return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/* Keeps a descriptor of an item's file that has no name, by which conversions in worker processes can map it. Items of less than MIN_BYTES
 * are sent to workers as bytes. */
static void remember_unnamed(struct cache_item *item, int fd)
{
    enum { MIN_BYTES = 16 << 10 };
    if (item->mapping.mapped && item->mapping.bytes.size >= MIN_BYTES)
        item->place = file_place_new_unnamed(fd);
}

struct file_opening { /* pool work */
    int fd;
    const struct cache_kind *kind;
    struct cache_item **item;
};

/* Pool work: makes an item from a file that is not in the cache. */
static enum sl_code open_file(void *arg, struct sl_error *error)
{
    const struct file_opening *o = arg;
    struct stat st;
    if (fstat(o->fd, &st) != 0)
        return sl_fail(error, SL_INTERNAL, "cannot read a computed file: %s", strerror(errno));
    /* 0, "": time of creation and remark, which only entries of the cache have */
    enum sl_code code = make_item(o->fd, (uint64_t)st.st_size, o->kind, 0, "", o->item, error);
    if (code == SL_OK)
        remember_unnamed(*o->item, o->fd);
    return code;
}

enum sl_code cache_item_from_file(const struct cache_kind *kind, int fd, struct cache_item **item,
                                  struct sl_error *error)
{
    struct file_opening opening = {fd, kind, item};
    *item = NULL;
    return pool_call(POOL_IO, open_file, &opening, error);
}

/* Makes l->item from an open entry that is contents and has not expired. True: it is made, or l->code is SL_BUSY, which is an answer as
 * well: the entry is good, so it must not be computed again. False: the entry cannot be used; if the kind refuses the contents, it is
 * damaged and removed. */
static bool take_contents(struct cache_disk_lookup *l, int fd, const struct stat *st, const char *path,
                          const struct cache_facts *facts, const struct cache_freshness *verdict, const char *note)
{
    if (verdict->touch && !touch(fd, l)) /* another process has deleted the entry */
        return false;
    enum sl_code code =
        make_item(fd, (uint64_t)st->st_size, l->kind, facts->created_ns / CACHE_SECOND_NS, note, &l->item, &l->error);
    if (code == SL_MALFORMED) {
        remove_entry(path);
        l->corrupt++;
    }
    if (code == SL_BUSY)
        l->code = code;
    if (code == SL_OK && l->item->mapping.mapped)
        l->item->place = file_place_new(path, fd);
    return code == SL_OK || code == SL_BUSY;
}

/* True if the entry was made before the invalidation stamp, or may have been: if the time of the entry is known in whole seconds only, one
 * of the same second counts as older. `stamp_ns` 0: there is no stamp. */
static bool is_older_than_stamp(const struct cache_facts *facts, int64_t stamp_ns)
{
    if (stamp_ns == 0)
        return false;
    return facts->exact_ns ? facts->exact_ns <= stamp_ns
                           : facts->created_ns / CACHE_SECOND_NS <= stamp_ns / CACHE_SECOND_NS;
}

/* Removes an entry that an invalidation stamp has invalidated, unless the file at its path is another one by now, which another process has
 * published. */
static void remove_replaced(struct cache_disk_lookup *l, const char *path, const struct stat *st)
{
    struct stat now;
    if (lstat(path, &now) != 0 || now.st_ino != st->st_ino || now.st_dev != st->st_dev)
        return;
    remove_entry(path);
    l->replaced_files++;
    l->replaced_bytes += (uint64_t)st->st_size;
}

/* For an entry that was made without some input: sets l->incomplete, and l->renewable if it is old enough to be computed again, as the
 * input may exist by now. The entry is used until then, but stays in memory (left_ns) only until the next computation is due. */
static void renew_incomplete(struct cache_disk_lookup *l, const struct cache_facts *facts)
{
    int64_t now = cache_now_ns();
    uint64_t age = now > facts->created_ns ? (uint64_t)(now - facts->created_ns) : 0;
    l->incomplete = true;
    l->renewable = age >= l->renew_after_ns;
    /* if it is computed now and that changes nothing, the next attempt is due after the whole interval */
    uint64_t next_ns = l->renewable ? l->renew_after_ns : l->renew_after_ns - age;
    if (next_ns < l->left_ns)
        l->left_ns = next_ns;
}

/* Reads an open entry and its side file. True if they answer the look-up: contents or an error that has not expired and is newer than the
 * invalidation stamps of its files; or SL_BUSY, if this process lacks memory or descriptors. False: the entry is to be computed; a damaged
 * or invalidated one is removed. */
static bool open_entry(struct cache_disk_lookup *l, int fd, const char *path)
{
    struct stat st;
    uint8_t head[CACHE_HEAD_BYTES];
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    size_t head_size = st.st_size < (off_t)sizeof head ? (size_t)st.st_size : sizeof head;
    if (!read_exactly(fd, head, head_size))
        return false;
    struct cache_meta read;
    enum cache_meta_result result = cache_meta_read(AT_FDCWD, path, &read);
    if (result == CACHE_META_BUSY) {
        l->code = sl_fail_errno(&l->error, errno, "cannot open the metadata file of a cache entry");
        return true;
    }
    const struct cache_meta *meta = result == CACHE_META_READ ? &read : NULL;
    /* Side files are never written in place: an unreadable one was damaged, and its entry may be as well. */
    if (result == CACHE_META_BAD ||
        cache_entry_damaged((uint64_t)st.st_size, cache_mtime_ns(&st), cache_creation_ns(fd, ""), meta)) {
        remove_entry(path);
        l->corrupt++;
        return false;
    }
    l->code = cache_entry_decode((struct sl_bytes){head, head_size}, (uint64_t)st.st_size, &meta, &l->error);
    if (l->code == SL_INTERNAL) /* the error's marker is damaged */
        return false;
    struct cache_facts facts;
    cache_entry_facts(l->code, cache_mtime_ns(&st), meta, &facts);
    struct cache_freshness verdict =
        cache_expiry(&l->lifetimes, &facts, cache_now_ns(), l->disk->start_ns, l->restart_retries_malformed);
    l->left_ns = verdict.left_ns;
    l->created_ns = facts.exact_ns ? facts.exact_ns : facts.created_ns;
    l->touched = verdict.touch && l->code == SL_OK;
    if (meta && meta->incomplete && l->code == SL_OK)
        renew_incomplete(l, &facts);
    /* an old miss, which is computed again */
    if (facts.class == CACHE_NEGATIVE && facts.created_ns < l->renew_before_ns)
        return false;
    if (is_older_than_stamp(&facts, l->stamp_ns)) {
        remove_replaced(l, path, &st);
        return false;
    }
    return !verdict.expired &&
           (l->code != SL_OK || take_contents(l, fd, &st, path, &facts, &verdict, meta ? meta->note : ""));
}

/* Looks for the entry in one version of the kind. True if it answers the look-up, or if l->code is SL_BUSY. */
static bool look_up_version(struct cache_disk_lookup *l, const uint8_t *hash, unsigned version)
{
    char path[CACHE_PATH_BYTES];
    if (!entry_path(l->disk, l->kind, hash, version, path))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && sl_fail_errno(NULL, errno, "") == SL_BUSY) {
        l->code = sl_fail_errno(&l->error, errno, "cannot open a cache entry");
        return true;
    }
    if (fd < 0) {
        if (errno != ENOENT && errno != ENOTDIR) /* not simply absent: reported by the caller */
            l->io_errno = errno;
        return false;
    }
    bool found = open_entry(l, fd, path);
    close(fd);
    l->version = version;
    return found;
}

/* Pool work: looks for the entry in the present version of the kind, then in the older versions that may be used instead (`fallbacks`). If
 * the entry was damaged, older ones are not used: it is computed again. */
void cache_disk_lookup(void *arg)
{
    struct cache_disk_lookup *l = arg;
    uint8_t hash[CACHE_HASH_BYTES];
    cache_key_hash(l->key, hash);
    l->generation = cache_generation(l->disk->dir);
    l->stamp_ns = l->generation ? cache_newest_stamp(l->disk->dir, l->key) : 0; /* generation 0: there are no stamps */
    l->found = look_up_version(l, hash, l->kind->version);
    const unsigned *fallback = l->kind->fallbacks;
    for (unsigned i = 0; !l->found && !l->corrupt && fallback && i < CACHE_VERSIONS_MAX && fallback[i]; i++)
        l->found = look_up_version(l, hash, fallback[i]);
}

/* ---- publishing ---- */

/* Renames the temporary file to the entry's path. Contents are synced to the disk before, as a crash of the machine must not leave a
 * half-written entry. The marker of an error is not synced, as losing it only costs another request. False if that fails, or if the file
 * has no name. */
static bool move_into_place(struct cache_disk_publish *p, const char *path)
{
    enum files_sync sync = p->code == SL_OK ? FILES_CONTENTS : FILES_UNSYNCED;
    if (!p->tmp->path[0])
        return false;
    if (!files_publish(p->tmp->fd, p->tmp->path, path, sync)) {
        p->io_errno = errno;
        return false;
    }
    p->tmp->path[0] = '\0'; /* so that cache_tmp_discard does not unlink it */
    return true;
}

/* True if the cache has a directory for this version of the kind. */
static bool has_version(const struct cache_disk *disk, const struct cache_kind *kind, unsigned version)
{
    char path[CACHE_PATH_BYTES];
    return snprintf(path, sizeof path, "%s/%s/v%u", disk->dir, kind->name, version) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

/* Removes the entry's files in earlier versions of the kind, which are not used any more (`previous`). */
static void remove_previous(struct cache_disk_publish *p, const uint8_t *hash)
{
    const unsigned *previous = p->kind->previous;
    char path[CACHE_PATH_BYTES];
    for (unsigned i = 0; previous && i < CACHE_VERSIONS_MAX && previous[i]; i++) {
        struct stat st;
        if (!has_version(p->disk, p->kind, previous[i]) || !entry_path(p->disk, p->kind, hash, previous[i], path))
            continue;
        if (lstat(path, &st) == 0) {
            p->outdated_files++;
            p->outdated_bytes += (uint64_t)st.st_size;
        }
        remove_entry(path); /* also removes a side file without an entry */
    }
}

/* Publishes the temporary file as the entry, writes its side file, and removes the entry's files in earlier versions of the kind. Does
 * nothing without a cache directory or for an outdated result. */
static void disk_publish_entry(struct cache_disk_publish *p, uint64_t size, int64_t created_ns)
{
    uint8_t hash[CACHE_HASH_BYTES];
    char path[CACHE_PATH_BYTES];
    cache_key_hash(p->key, hash);
    if (!p->disk->dir || p->outdated || !entry_path(p->disk, p->kind, hash, p->kind->version, path) ||
        !move_into_place(p, path))
        return;
    p->published = true;
    if (p->item && p->item->mapping.mapped)
        p->item->place = file_place_new(path, p->tmp->fd); /* by which worker processes can map it */
    struct sl_buf json = {0};
    cache_meta_encode(p->key, p->scope, created_ns, p->code, size, p->incomplete, p->code == SL_OK ? p->tmp->note : "",
                      &json);
    if (!json.failed)
        cache_meta_write(path, sl_buf_bytes(&json));
    sl_buf_free(&json);
    remove_previous(p, hash);
}

/* Replaces whatever the failed computation has written to the temporary file by the marker of its error (errors.c); sets `*size` to its
 * size. False, with io_errno, if it cannot be written. */
static bool write_marker(struct cache_disk_publish *p, uint64_t *size)
{
    struct sl_buf marker = {0};
    cache_error_encode(&p->error, &marker);
    *size = marker.size;
    bool ok = !marker.failed && ftruncate(p->tmp->fd, 0) == 0 &&
              (marker.size == 0 || pwrite(p->tmp->fd, marker.data, marker.size, 0) == (ssize_t)marker.size);
    if (!ok)
        p->io_errno = errno;
    sl_buf_free(&marker);
    return ok;
}

/* Marks the result as outdated if a file that its key names was invalidated since the computation began. */
static void check_stamps(struct cache_disk_publish *p)
{
    p->generation = cache_generation(p->disk->dir);
    int64_t stamp_ns = p->generation ? cache_newest_stamp(p->disk->dir, p->key) : 0;
    p->outdated |= stamp_ns && stamp_ns >= p->begun_ns;
}

/* Pool work. Makes an item of contents before they are published, so that contents that the kind refuses are never published: `code`
 * then becomes SL_INTERNAL, or SL_BUSY if only memory was missing. An error is published as its marker, if the directory takes files.
 * Discards the temporary file in any case. */
void cache_disk_publish(void *arg)
{
    struct cache_disk_publish *p = arg;
    struct stat st;
    uint64_t size = 0;
    int64_t created_ns = p->created_s ? p->created_s * CACHE_SECOND_NS : cache_now_ns();
    check_stamps(p); /* sets `outdated` if a file of the entry has changed: then disk_publish_entry does nothing */
    p->error.code = p->code;
    if (p->code != SL_OK) {
        /* without a path the file has no name, and cannot be moved into place */
        if (p->disk->dir && (p->tmp->fd >= 0 || cache_tmp_create(p->tmp, false, NULL) == SL_OK) && p->tmp->path[0] &&
            write_marker(p, &size))
            disk_publish_entry(p, size, created_ns);
    } else if (fstat(p->tmp->fd, &st) != 0) {
        p->code = sl_fail(&p->error, SL_INTERNAL, "cannot read a computed file: %s", strerror(errno));
    } else if (make_item(p->tmp->fd, (uint64_t)st.st_size, p->kind, created_ns / CACHE_SECOND_NS, p->tmp->note,
                         &p->item, &p->error) != SL_OK) {
        p->code = p->error.code = p->error.code == SL_BUSY ? SL_BUSY : SL_INTERNAL;
    } else {
        disk_publish_entry(p, (uint64_t)st.st_size, created_ns);
        if (!p->item->place)
            remember_unnamed(p->item, p->tmp->fd);
    }
    cache_tmp_discard(p->tmp);
}
