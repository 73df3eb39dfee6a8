/* GET /buildid/{id}/debuginfo, /executable and /section/{name}. */
#include "api/debuginfod/debuginfod.h"

#include <string.h>

static void release(void *arg)
{
    cache_release(arg);
}

/* Returns the last component of a path, for headers: clients must not learn paths of directories of this machine. */
static struct sl_str base_name(struct sl_str path)
{
    const char *slash = path.size ? memrchr(path.data, '/', path.size) : NULL;
    return slash ? (struct sl_str){slash + 1, path.size - (size_t)(slash + 1 - path.data)} : path;
}

/* Sets the names of the file and of its package, for headers. A scanned file that is a member of a package has the path "<path of the
 * package>!<path in it>", where the path in it begins with a slash; its source is "scan:..". Any other file is in no package: `*package`
 * becomes empty. */
static void describe_place(const struct search_result *found, struct sl_str *package, struct sl_str *name)
{
    const char *mark =
        sl_str_starts(found->source, SL_STR("scan:")) ? memmem(found->path.data, found->path.size, "!/", 2) : NULL;
    size_t before = mark ? (size_t)(mark - found->path.data) : 0;
    *package = base_name((struct sl_str){found->path.data, before});
    *name = mark ? (struct sl_str){mark + 1, found->path.size - before - 1} : base_name(found->path);
}

/* Sends `part`, the file or one of its sections. The reference to the cache entry moves to the answer, which releases it when sent. */
static void send_part(struct debuginfod_request *r, struct debuginfod_file *file, struct sl_bytes part,
                      const char *etag)
{
    struct cache_item *item = file->found.item;
    struct sl_str package, name;
    describe_place(&file->found, &package, &name);
    const struct debuginfod_answer answer = {.bytes = part,
                                             .name = name,
                                             .package = package,
                                             .note = item->note,
                                             .etag = etag,
                                             .time_created = item->time_created,
                                             .is_public = file->found.is_public,
                                             .is_resident = cache_is_resident(item),
                                             .release = release,
                                             .arg = item};
    file->found.item = NULL;
    debuginfod_send(r, &answer);
}

static void make_etag(const struct debuginfod_file *file, struct sl_bytes part, char out[64])
{
    const struct search_result *found = &file->found;
    debuginfod_make_etag(found->source, found->path, part.size, found->item->time_created, out);
}

/* Answers a request for a whole file: the debug file or the program (`purpose`). */
static void serve(struct http_exchange *x, const char *type, enum purpose purpose)
{
    struct debuginfod_request r;
    struct debuginfod_file file;
    if (debuginfod_begin(&r, x, type)) {
        /* searches leave out larger files; there 0 means no limit, so a client's limit of 0 bytes becomes 1 */
        r.where.max_size = r.max_size == UINT64_MAX ? 0 : r.max_size ? r.max_size : 1;
        enum sl_code code = debuginfod_get_file(&r, purpose, &file);
        char etag[64];
        if (code == SL_OK) {
            struct sl_bytes whole = file.found.item->mapping.bytes;
            make_etag(&file, whole, etag);
            send_part(&r, &file, whole, etag);
        } else {
            debuginfod_fail(&r, code);
        }
    }
    debuginfod_end(&r);
}

void debuginfod_debuginfo(struct http_exchange *x)
{
    serve(x, "debuginfo", PURPOSE_DEBUG_FILE);
}

void debuginfod_executable(struct http_exchange *x)
{
    serve(x, "executable", PURPOSE_CODE_FILE);
}

/* ---- sections ---- */

struct section_search {
    struct debuginfod_file file; /* the file that has it, or the last one that was looked at */
    struct sl_str name;
    enum sl_section_store store;
    struct sl_bytes bytes;
};

/* Gets the debug file or the program (`purpose`) and looks for the section in it. SL_OK: s->store says whether the file has it.
 * SL_NOT_FOUND: there is no such file. SL_BUSY: a source could not say, or the file cannot be read, so the section may still exist. A file
 * whose mapping faulted (SL_INTERNAL) is dropped from the cache. */
static enum sl_code look_into(struct debuginfod_request *r, enum purpose purpose, struct section_search *s)
{
    struct sl_error error = {0};
    debuginfod_release_file(&s->file);
    enum sl_code code = debuginfod_get_file(r, purpose, &s->file);
    if (code != SL_OK)
        return code;
    code = object_raw_section(s->file.found.item, s->name, &s->store, &s->bytes, &error);
    if (code == SL_INTERNAL)
        cache_drop_faulted();
    return code == SL_OK || code == SL_CANCELLED ? code : SL_BUSY;
}

/* Looks for the section in the debug file, then in the program. A debug file has headers of all sections of its program. So if it has no
 * header for this one, upstreams are not asked for the program: gdb asks for .gdb_index at each start, and mostly there is none. */
static enum sl_code find_section(struct debuginfod_request *r, struct section_search *s)
{
    enum sl_code code = look_into(r, PURPOSE_DEBUG_FILE, s);
    if ((code == SL_OK && s->store == SL_SECTION_STORED) || (code != SL_OK && code != SL_NOT_FOUND))
        return code;
    if (code == SL_OK && s->store == SL_SECTION_ABSENT) { /* there is not even a header */
        r->where.skips_upstreams = true;
        /* 0: the result is not cached, because searches that do ask upstreams must not get it */
        r->where.list = 0;
    }
    code = look_into(r, PURPOSE_CODE_FILE, s);
    return code == SL_OK && s->store != SL_SECTION_STORED ? SL_NOT_FOUND : code;
}

/* Makes the entity tag of a section, from the file's path and the section's name. */
static void make_section_etag(const struct section_search *s, char out[64])
{
    const struct search_result *found = &s->file.found;
    char path[2 * 4096];
    int size = snprintf(path, sizeof path, SL_STR_FMT "\n" SL_STR_FMT, SL_STR_ARG(found->path), SL_STR_ARG(s->name));
    struct sl_str text = {path, size < 0 ? 0 : (size_t)size < sizeof path ? (size_t)size : sizeof path - 1};
    debuginfod_make_etag(found->source, text, s->bytes.size, found->item->time_created, out);
}

/* Handler of GET /buildid/{id}/section/{name}: answers with the contents of an ELF section. */
void debuginfod_section(struct http_exchange *x)
{
    enum { MAX_NAME = 255 };
    struct debuginfod_request r;
    if (debuginfod_begin(&r, x, "section")) {
        struct section_search s = {.name = x->captures[1]};
        enum sl_code code = s.name.size <= MAX_NAME ? find_section(&r, &s) : SL_NOT_FOUND;
        char etag[64];
        if (code == SL_OK) {
            make_section_etag(&s, etag);
            send_part(&r, &s.file, s.bytes, etag);
        } else {
            debuginfod_fail(&r, code);
        }
        debuginfod_release_file(&s.file);
    }
    debuginfod_end(&r);
}
