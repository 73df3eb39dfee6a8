/* Fetches files of scanned directories for searches: takes members out of their packages. One request at a time reads a package. If a
 * package can only be read from the beginning, the debug files in front of the wanted one are kept for the requests that follow
 * (scan.prefetch): a crash often wants several files of a package. */
#include "scan/impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/list.h"
#include "core/loop.h"
#include "core/lru.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "fetch/fetch.h"

enum { MAX_PREFETCHED_PACKAGES = 16, PREFETCHED_MEMBER_BYTES = 16 << 20 };

/* ---- members that were read on the way to others ---- */

/* An unlinked file with members of a package; reference-counted, as a fiber may copy from it when it is evicted. */
struct prefetched_package {
    struct lru_entry entry; /* its key is package_name, allocated behind the members */
    int fd;
    unsigned references;
    uint32_t count;
    struct prefetched_member members[];
};

static void release_package(struct prefetched_package *package)
{
    if (--package->references)
        return;
    close(package->fd);
    free(package);
}

static void release_entry(struct lru *lru, struct lru_entry *entry)
{
    (void)lru;
    release_package(LRU_ITEM(entry, struct prefetched_package, entry));
}

static struct lru prefetched = {.max_count = MAX_PREFETCHED_PACKAGES, .release = release_entry};

void scan_members_forget(void)
{
    lru_clear(&prefetched);
}

/* Keeps the members of a package that were extracted into the file `fd` for later requests, unless more members of it are kept already;
 * takes over the descriptor. `name`: package_name. Without memory they are dropped. */
static void add_prefetched(const char *name, const struct package_member_result *result, int fd)
{
    size_t size = result->count * sizeof *result->members, name_size = strlen(name);
    struct lru_entry *known = lru_find(&prefetched, sl_str(name));
    bool is_better = !known || LRU_ITEM(known, struct prefetched_package, entry)->count < result->count;
    struct prefetched_package *package = is_better ? calloc(1, sizeof *package + size + name_size + 1) : NULL;
    if (!package) {
        close(fd);
        return;
    }
    char *copy = (char *)package->members + size;
    memcpy(copy, name, name_size);
    package->entry.key = (struct sl_str){copy, name_size};
    package->fd = fd;
    package->references = 1; /* that of the cache */
    package->count = result->count;
    memcpy(package->members, result->members, size);
    for (uint32_t i = 0; i < result->count; i++)
        package->entry.size += result->members[i].size;
    prefetched.max_size = scan_config->scan.prefetch; /* the configuration may have changed */
    if (!lru_put(&prefetched, &package->entry))       /* out of memory */
        release_package(package);
}

/* Finds a member that an earlier request has kept, and copies its entry to `*member`; returns the package, with a reference for the caller,
 * or NULL. */
static struct prefetched_package *find_prefetched(const char *name, const struct scan_place *place,
                                                  struct prefetched_member *member)
{
    struct lru_entry *entry = lru_get(&prefetched, sl_str(name), 0); /* 0: entries do not expire */
    struct prefetched_package *package = entry ? LRU_ITEM(entry, struct prefetched_package, entry) : NULL;
    for (uint32_t i = 0; package && i < package->count; i++)
        if (package->members[i].offset == place->offset && package->members[i].size == place->size) {
            *member = package->members[i];
            package->references++;
            return package;
        }
    return NULL;
}

struct prefetched_copy { /* pool work */
    int from, to;
    uint64_t at, size;
};

/* Pool work: copies a member from the file in which an earlier request has kept it, at the offset c->at. */
static enum sl_code copy_member(void *arg, struct sl_error *error)
{
    enum { PIECE = 1 << 20 };
    const struct prefetched_copy *c = arg;
    uint8_t *piece = malloc(PIECE);
    enum sl_code code = piece ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    for (uint64_t done = 0; code == SL_OK && done < c->size;) {
        size_t size = c->size - done < PIECE ? (size_t)(c->size - done) : PIECE;
        ssize_t n = pread(c->from, piece, size, (off_t)(c->at + done)); /* 0: the file is shorter than was written */
        if (n <= 0 || !sl_write_all_at(c->to, (struct sl_bytes){piece, (size_t)n}, done))
            code = sl_fail_errno(error, n == 0 ? EIO : errno, "cannot copy a file of a package");
        done += n > 0 ? (uint64_t)n : 0;
    }
    free(piece);
    return code;
}

/* Writes a member that an earlier request has kept to `fd`. False if none has, or if it could not be copied. */
static bool copy_prefetched(const char *name, const struct scan_place *place, int fd)
{
    struct prefetched_member member;
    struct prefetched_package *package = find_prefetched(name, place, &member);
    if (!package)
        return false;
    struct prefetched_copy copying = {package->fd, fd, member.at, member.size};
    bool good =
        pool_call(pool_is_heavy(member.size) ? POOL_IO | POOL_HEAVY : POOL_IO, copy_member, &copying, NULL) == SL_OK;
    release_package(package);
    return good;
}

/* ---- one request at a time ---- */

struct reading { /* a package that is being read; lives on the stack of the fiber that reads it */
    struct sl_link link;
    const char *name;
    struct fiber_wait_list waiting;
};
static struct sl_list readings;

/* Waits while another fiber reads the same package, then enters `reading` into the list. False when cancelled. */
static bool begin_reading(struct reading *reading)
{
    for (struct reading *r = SL_LIST_FIRST(&readings, struct reading, link), *next; r; r = next) {
        next = SL_LIST_NEXT(r, link);
        if (strcmp(r->name, reading->name) != 0)
            continue;
        fiber_set_wait_reason("another request that reads the same package");
        if (fiber_wait_on(&r->waiting, UINT64_MAX) == FIBER_CANCELLED)
            return false;
        next = SL_LIST_FIRST(&readings, struct reading, link); /* the list may have changed: begins again */
    }
    sl_list_append(&readings, &reading->link);
    return true;
}

static void end_reading(struct reading *reading)
{
    sl_list_remove(&readings, &reading->link);
    fiber_wake_all(&reading->waiting);
}

/* ---- reading a package ---- */

struct package_opening { /* pool work */
    const char *root, *path;
    const struct scan_place *place;
    int fd;
};

static enum sl_code open_package(void *arg, struct sl_error *error)
{
    struct package_opening *o = arg;
    o->fd = scan_open_unchanged(o->root, o->path, o->place->file_size, o->place->mtime_ns, error);
    return o->fd >= 0 ? SL_OK : error->code;
}

struct member_fetch {
    const char *root, *package, *name; /* name: package_name */
    struct sl_str member;              /* path */
    struct scan_place place;
    int fd;
};

/* Extracts the member from `package`, a descriptor, to m->fd. Debug files in front of it that the converter has extracted, too, are kept
 * for later requests; if that fails, it is no error. */
static enum sl_code read_member(const struct member_fetch *m, int package, struct sl_error *error)
{
    struct cache_tmp scratch;
    struct package_member_result *result = malloc(sizeof *result);
    if (!result)
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = cache_tmp_create(&scratch, true, error); /* true: unlinked */
    if (code != SL_OK) {
        free(result);
        return code;
    }
    struct package_member_options options = {.offset = m->place.offset,
                                             .size = m->place.size,
                                             .max_ratio = current_config()->max_inflate_ratio,
                                             .prefetch_bytes = scan_config->scan.prefetch,
                                             .max_prefetched_size = PREFETCHED_MEMBER_BYTES};
    struct conversion_description about = {.size = m->place.file_size, .location = sl_str(m->package)};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = m->fd};
    converter_add_file(&call, INPUT_FILE, package);
    converter_add_text(&call, INPUT_NAME, m->member);
    converter_add_file(&call, INPUT_SCRATCH, scratch.fd);
    code = conversion_run(&about, &converter_package_member, &call, result, error);
    int prefetched_fd =
        code == SL_OK && result->count ? dup(scratch.fd) : -1; /* cache_tmp_discard closes the original */
    if (prefetched_fd >= 0)
        add_prefetched(m->name, result, prefetched_fd);
    cache_tmp_discard(&scratch);
    free(result);
    return code;
}

/* Gets a member: from those that earlier requests have kept, else out of the package, which only one request reads at a time; the others
 * wait in begin_reading(). */
static enum sl_code fetch_member(const struct member_fetch *m, struct sl_error *error)
{
    struct reading reading = {.name = m->name};
    struct package_opening opening = {m->root, m->package, &m->place, -1};
    if (copy_prefetched(m->name, &m->place, m->fd))
        return SL_OK;
    if (!begin_reading(&reading))
        return sl_fail(error, SL_CANCELLED, "cancelled");
    enum sl_code code = SL_OK;
    /* The request that read the package meanwhile may have kept the member. */
    if (!copy_prefetched(m->name, &m->place, m->fd)) {
        code = pool_call(POOL_IO, open_package, &opening, error);
        if (code == SL_OK) {
            code = read_member(m, opening.fd, error);
            close(opening.fd);
        }
    }
    end_reading(&reading);
    return code;
}

/* Returns the key of a package in its present state: path, size and time of change. NULL when out of memory. */
static const char *package_name(const struct member_fetch *m, struct sl_arena *arena)
{
    struct sl_buf text = {0};
    sl_buf_printf(&text, "%s/%s %llu %lld", m->root, m->package, (unsigned long long)m->place.file_size,
                  (long long)m->place.mtime_ns);
    return sl_buf_move_to_arena(&text, arena).data;
}

/* Fetches a member whose location is "<path of the package>!<path of the member>". The former may contain '!', so its length comes from the
 * version of the indexed file, which file->checksum holds. SL_NOT_FOUND if location and version do not fit each other. */
static enum sl_code fetch_in_arena(const struct remote_file *file, int fd, struct sl_arena *arena,
                                   struct sl_error *error)
{
    struct member_fetch m = {.root = sl_arena_strndup(arena, file->source->path.data, file->source->path.size),
                             .fd = fd};
    scan_place_parse(file->checksum, &m.place); /* succeeds, as scan_fetch has checked the text */
    size_t size = (size_t)m.place.package_path_size;
    if (m.place.package_path_size >= file->location.size || file->location.data[size] != '!')
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    if (m.place.size > (file->max_size ? file->max_size : fetch_max_size()))
        return fetch_too_large(error);
    m.package = sl_arena_strndup(arena, file->location.data, size);
    m.member = (struct sl_str){file->location.data + size + 1, file->location.size - size - 1};
    m.name = m.root && m.package ? package_name(&m, arena) : NULL;
    return m.name ? fetch_member(&m, error) : sl_fail(error, SL_BUSY, "out of memory");
}

enum sl_code scan_fetch(const struct source_index *index, const struct remote_file *file, int fd,
                        struct sl_error *error)
{
    const struct scan *scan = (const struct scan *)(const void *)index; /* its first member */
    struct scan_place place;
    if (!scan_place_parse(file->checksum, &place))
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    if (!place.is_member)
        return filesystem_fetch(file, fd, error);
    struct sl_arena arena = {0};
    uint64_t begun_ns = clock_mono_ns();
    enum sl_code code = fetch_in_arena(file, fd, &arena, error);
    metric_observe(METRIC_SCAN_EXTRACT_SECONDS, (double)(clock_mono_ns() - begun_ns) / 1e9, scan->id,
                   sl_code_name(code), NULL);
    sl_arena_free(&arena);
    return code;
}
