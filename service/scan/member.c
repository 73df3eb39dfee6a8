/* Files of scans for searches: takes members out of their packages. Packages that can only be read from the beginning are read
 * by one request at a time, and the debug files in front of the wanted one are kept for the requests that follow: a crash often
 * wants several files of a package. */
#include "scan/impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/list.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "fetch/fetch.h"

enum { MAX_KEPT_FILES = 16, KEPT_MEMBER_BYTES = 16 << 20 };

/* ---- members that are kept ---- */

struct kept_package {    /* an unlinked file with members of a package */
    struct sl_link link; /* in `kept`, the last used first */
    char *name;          /* package_name */
    int fd;
    unsigned references;
    uint64_t bytes;
    uint32_t count;
    struct kept_member members[];
};

static struct sl_list kept;
static size_t kept_count;
static uint64_t kept_bytes;

static void release_kept(struct kept_package *package)
{
    if (--package->references)
        return;
    close(package->fd);
    free(package->name);
    free(package);
}

static void drop_kept(struct kept_package *package)
{
    sl_list_remove(&kept, &package->link);
    kept_count--;
    kept_bytes -= package->bytes;
    release_kept(package);
}

void scan_members_forget(void)
{
    for (struct kept_package *p; (p = SL_LIST_FIRST(&kept, struct kept_package, link));)
        drop_kept(p);
}

/* Drops the packages used longest ago until the limits hold for the rest and `bytes` more. */
static void make_room(uint64_t bytes)
{
    while (kept_count && (kept_count >= MAX_KEPT_FILES || kept_bytes + bytes > scan_config->scan.prefetch)) {
        drop_kept(SL_LIST_LAST(&kept, struct kept_package, link));
    }
}

/* Remembers the file `fd`, into which members of the package were extracted, for later requests; takes over the descriptor. Drops other
 * such files if all would exceed scan.prefetch. */
static void keep_members(const char *name, const struct package_member_result *result, int fd)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < result->count; i++)
        bytes += result->kept[i].size;
    struct kept_package *package = calloc(1, sizeof *package + result->count * sizeof *package->members);
    char *copy = strdup(name);
    if (!package || !copy || bytes > scan_config->scan.prefetch) {
        free(package);
        free(copy);
        close(fd);
        return;
    }
    make_room(bytes);
    package->name = copy;
    package->fd = fd;
    package->references = 1;
    package->bytes = bytes;
    package->count = result->count;
    memcpy(package->members, result->kept, result->count * sizeof *package->members);
    sl_list_prepend(&kept, &package->link);
    kept_count++;
    kept_bytes += bytes;
}

static struct kept_package *find_kept(const char *name, const struct scan_place *place, struct kept_member *member)
{
    for (struct kept_package *p = SL_LIST_FIRST(&kept, struct kept_package, link); p; p = SL_LIST_NEXT(p, link))
        for (uint32_t i = 0; strcmp(p->name, name) == 0 && i < p->count; i++)
            if (p->members[i].offset == place->offset && p->members[i].size == place->size) {
                *member = p->members[i];
                sl_list_remove(&kept, &p->link);
                sl_list_prepend(&kept, &p->link);
                p->references++;
                return p;
            }
    return NULL;
}

struct kept_copy { /* pool work */
    int from, to;
    uint64_t at, size;
};

static enum sl_code copy_kept(void *arg, struct sl_error *error)
{
    enum { PIECE = 1 << 20 };
    const struct kept_copy *c = arg;
    uint8_t *piece = malloc(PIECE);
    enum sl_code code = piece ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    for (uint64_t done = 0; code == SL_OK && done < c->size;) {
        size_t size = c->size - done < PIECE ? (size_t)(c->size - done) : PIECE;
        ssize_t n = pread(c->from, piece, size, (off_t)(c->at + done));
        if (n <= 0 || !sl_write_all_at(c->to, (struct sl_bytes){piece, (size_t)n}, done))
            code = sl_fail_errno(error, n == 0 ? EIO : errno, "cannot copy a file of a package");
        done += n > 0 ? (uint64_t)n : 0;
    }
    free(piece);
    return code;
}

/* Takes a member that is kept. False: it is not, or could not be copied. */
static bool take_kept(const char *name, const struct scan_place *place, int fd)
{
    struct kept_member member;
    struct kept_package *package = find_kept(name, place, &member);
    if (!package)
        return false;
    struct kept_copy copying = {package->fd, fd, member.at, member.size};
    bool good =
        pool_call(pool_is_heavy(member.size) ? POOL_IO | POOL_HEAVY : POOL_IO, copy_kept, &copying, NULL) == SL_OK;
    release_kept(package);
    return good;
}

/* ---- one request at a time ---- */

struct reading { /* a package that is being read; lives on the stack of the fiber that reads it */
    struct sl_link link;
    const char *name;
    struct fiber_wait_list waiting;
};
static struct sl_list readings;

/* Waits while another fiber reads the package. False when cancelled. */
static bool begin_reading(struct reading *reading)
{
    for (struct reading *r = SL_LIST_FIRST(&readings, struct reading, link), *next; r; r = next) {
        next = SL_LIST_NEXT(r, link);
        if (strcmp(r->name, reading->name) != 0)
            continue;
        fiber_set_wait_reason("another request that reads the same package");
        if (fiber_wait_on(&r->waiting, UINT64_MAX) == FIBER_CANCELLED)
            return false;
        next = SL_LIST_FIRST(&readings, struct reading, link); /* the list has changed */
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

static enum sl_code read_member(const struct member_fetch *m, int package, struct sl_error *error)
{
    struct cache_tmp scratch;
    struct package_member_result *result = malloc(sizeof *result);
    if (!result)
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = cache_tmp_create(&scratch, true, error);
    if (code != SL_OK) {
        free(result);
        return code;
    }
    struct package_member_options options = {.offset = m->place.offset,
                                             .size = m->place.size,
                                             .max_ratio = current_config()->max_inflate_ratio,
                                             .keep_bytes = scan_config->scan.prefetch,
                                             .keep_size = KEPT_MEMBER_BYTES};
    struct conversion_description about = {.size = m->place.file_size, .location = sl_str(m->package)};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = m->fd};
    converter_add_file(&call, INPUT_FILE, package);
    converter_add_text(&call, INPUT_NAME, m->member);
    converter_add_file(&call, INPUT_SCRATCH, scratch.fd);
    code = conversion_run(&about, &converter_package_member, &call, result, error);
    int kept_fd = code == SL_OK && result->count ? dup(scratch.fd) : -1;
    if (kept_fd >= 0)
        keep_members(m->name, result, kept_fd);
    cache_tmp_discard(&scratch);
    free(result);
    return code;
}

static enum sl_code fetch_member(const struct member_fetch *m, struct sl_error *error)
{
    struct reading reading = {.name = m->name};
    struct package_opening opening = {m->root, m->package, &m->place, -1};
    if (take_kept(m->name, &m->place, m->fd))
        return SL_OK;
    if (!begin_reading(&reading))
        return sl_fail(error, SL_CANCELLED, "cancelled");
    enum sl_code code = SL_OK;
    if (!take_kept(m->name, &m->place, m->fd)) {
        code = pool_call(POOL_IO, open_package, &opening, error);
        if (code == SL_OK) {
            code = read_member(m, opening.fd, error);
            close(opening.fd);
        }
    }
    end_reading(&reading);
    return code;
}

/* A package in its state: path and what version says of it. */
static const char *package_name(const struct member_fetch *m, struct sl_arena *arena)
{
    struct sl_buf text = {0};
    sl_buf_printf(&text, "%s/%s %llu %lld", m->root, m->package, (unsigned long long)m->place.file_size,
                  (long long)m->place.mtime_ns);
    return sl_buf_move_to_arena(&text, arena).data;
}

static enum sl_code fetch_in_arena(const struct remote_file *file, int fd, struct sl_arena *arena,
                                   struct sl_error *error)
{
    struct member_fetch m = {.root = sl_arena_strndup(arena, file->source->path.data, file->source->path.size),
                             .fd = fd};
    scan_place_parse(file->checksum, &m.place);
    size_t size = (size_t)m.place.package_path_size;
    if (m.place.package_path_size + 1 >= file->location.size || file->location.data[size] != '!')
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
    const struct scan *scan = (const struct scan *)(const void *)index;
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
