/* The cache kind `scan_file`: the record of one scanned file, which lists the debug files and source texts in it. */
#include "scan/impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files.h"
#include "core/log.h"
#include "core/pool.h"
#include "fetch/fetch.h"
#include "function/path.h"

int scan_open_unchanged(const char *root, const char *path, uint64_t size, int64_t mtime_ns, struct sl_error *error)
{
    struct stat st;
    int fd = filesystem_open(root, path);
    if (fd < 0) {
        int number = errno;
        /* the messages do not repeat what the code says: "permission denied", "not found" */
        if (number == EACCES || number == EPERM)
            sl_fail(error, SL_PERMISSION_DENIED, "%s", strerror(number));
        /* ELOOP, EXDEV: symbolic links and paths out of the root are refused, as if there were no file */
        else if (number == ENOENT || number == ENOTDIR || number == ELOOP || number == EXDEV)
            sl_fail(error, SL_NOT_FOUND, "%s", "");
        else
            sl_fail_errno(error, number, "cannot open a scanned file");
        return -1;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == size && files_mtime_ns(&st) == mtime_ns)
        return fd;
    close(fd);
    sl_fail(error, SL_DOWNLOAD_ERROR, "the file has changed since it was scanned; the next pass reads it again");
    return -1;
}

/* ---- the kind ---- */

struct record_opening { /* opens the scanned file on the pool */
    const struct scan_file_request *request;
    int fd; /* result */
};

/* Pool work: opens the scanned file, if it still has the size and time of the request. */
static enum sl_code open_file(void *arg, struct sl_error *error)
{
    struct record_opening *o = arg;
    const struct scan_file_request *r = o->request;
    o->fd = scan_open_unchanged(r->root.data, r->path.data, r->size, r->mtime_ns, error);
    return o->fd >= 0 ? SL_OK : error->code;
}

/* Bytes. A package of this size decompresses to about 256 MiB at most (max_inflate_ratio is 1000), which is held in memory. Larger ones
 * get a temporary file for members that do not fit in memory. */
enum { NEEDS_SCRATCH = 256 << 10 };

/* Writes the record of the file `fd` to the file `out`. `scratch` is an empty file for package members that do not fit in memory; -1 for
 * packages too small to have such members. Logs damaged and useless files. */
static enum sl_code convert_file(const struct scan_file_request *r, int fd, int scratch, int out,
                                 struct sl_error *error)
{
    struct scan_file_result result;
    struct sl_str directory, name;
    struct scan_file_options options = {.limits = current_reader_limits(),
                                        .max_member = fetch_max_size(),
                                        .max_ratio = current_config()->max_inflate_ratio,
                                        .kinds = r->kinds};
    struct conversion_description about = {
        .size = r->size, .location = r->path, .kind = kind_scan_file.name, .is_background = r->is_background};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = out};
    converter_add_file(&call, INPUT_FILE, fd);
    sl_path_split(r->path, &directory, &name);
    converter_add_text(&call, INPUT_NAME, name);
    if (scratch >= 0)
        converter_add_file(&call, INPUT_SCRATCH, scratch);
    enum sl_code code = conversion_run(&about, &converter_scan_file, &call, &result, error);
    if (code == SL_OK && result.is_damaged)
        log_warn("scan", "a scanned package is damaged; using the files in front of the damage",
                 LOG_SLSTR("scan", r->scan_id), LOG_SLSTR("path", r->path), LOG_STR("damage", result.damage),
                 LOG_U64("objects", result.objects));
    else if (code == SL_MALFORMED || code == SL_UNSUPPORTED)
        log_info("scan", "a scanned file is left out: it is neither a readable debug file nor a package",
                 LOG_SLSTR("scan", r->scan_id), LOG_SLSTR("path", r->path), LOG_ERR(error));
    return code;
}

/* The kind's `compute`: makes the record of the requested file in tmp->fd. */
static enum sl_code record_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena, struct sl_error *error)
{
    const struct scan_file_request *r = context;
    struct record_opening opening = {r, -1};
    struct cache_tmp scratch = {.fd = -1};
    (void)arena;
    enum sl_code code = pool_call(POOL_IO, open_file, &opening, error);
    if (code != SL_OK)
        return code;
    if (r->size >
        NEEDS_SCRATCH) /* such a package may have members that do not fit in memory: they are unpacked to `scratch` */
        code = cache_tmp_create(&scratch, true, error); /* true: a file without a name */
    if (code == SL_OK)
        code = convert_file(r, opening.fd, scratch.fd, tmp->fd, error);
    if (scratch.fd >= 0)
        cache_tmp_discard(&scratch);
    close(opening.fd);
    return code;
}

static bool copy_text(struct sl_arena *arena, struct sl_str *text)
{
    text->data = sl_arena_strndup(arena, text->data, text->size);
    return text->data;
}

/* Copies the request (the kind's `retain`) for a computation that outlives the fiber that began it. NULL when out of memory. */
static void *record_retain(const void *context, struct sl_arena *arena)
{
    struct scan_file_request *copy = SL_ARENA_NEW(arena, struct scan_file_request);
    if (!copy)
        return NULL;
    *copy = *(const struct scan_file_request *)context;
    return copy_text(arena, &copy->scan_id) && copy_text(arena, &copy->root) && copy_text(arena, &copy->path) ? copy
                                                                                                              : NULL;
}

/* The kind's `shareable`: records are not shared with other nodes, as they tell what is in a file of this machine. */
static bool never_shared(const void *context)
{
    (void)context;
    return false;
}

/* Opens a record. It must be an index of exactly one file, as its readers use file 0 without a check; a worker process that a hostile
 * file has taken over may have written anything. */
static enum sl_code open_record(struct sl_bytes bytes, void *opened, struct sl_error *error)
{
    struct sl_index *index = opened;
    enum sl_code code = sl_index_open(bytes, index, error);
    return code == SL_OK && index->file_count != 1
               ? sl_fail(error, SL_MALFORMED, "the list of a scanned file's contents is damaged: it is not of one file")
               : code;
}

const struct cache_kind kind_scan_file = {
    .name = "scan_file",
    .section = CACHE_INDEX,
    .version = SL_INDEX_RECORD_VERSION,
    .compute = record_compute,
    .retain = record_retain,
    .shareable = never_shared,
    .open = open_record,
    .opened_size = sizeof(struct sl_index),
};

enum sl_code scan_record_get(const struct scan_file_request *r, struct sl_arena *arena, struct cache_item **item,
                             struct sl_error *error)
{
    struct sl_buf text = {0};
    *item = NULL;
    /* the text of the cache key: a file with another size, time or set of wanted kinds gets another entry */
    sl_buf_printf(&text,
                  "scope: global\n\nsource: " SL_STR_FMT "\nlocation: file://" SL_STR_FMT "/" SL_STR_FMT
                  "\nsize: %" PRIu64 "\nmtime: %" PRId64 "\nkinds: %u\n",
                  SL_STR_ARG(r->scan_id), SL_STR_ARG(r->root), SL_STR_ARG(r->path), r->size, r->mtime_ns, r->kinds);
    struct cache_key key = {.text = sl_buf_move_to_arena(&text, arena)};
    if (!key.text.data)
        return sl_fail(error, SL_BUSY, "out of memory");
    return cache_get(&kind_scan_file, &key, r, item, error);
}
