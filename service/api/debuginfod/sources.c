/* GET /buildid/{id}/source/{path}: answers with the text of a source file. It is searched in this order:
 *
 *     source bundles and embedded texts of the id ─▶ directories of this machine, if a line table names the path
 *         ─▶ scanned source packages of the program's package ─▶ upstreams
 *
 * The path is what debuggers read in debug information, so it may contain anything, also `..`. It is compared with paths of bundles and
 * line tables. Only a path that a line table names is opened, below a configured directory. */
#include "api/debuginfod/debuginfod.h"

#include <stdlib.h>

#include "function/path.h"
#include "origin/failures.h"
#include "scan/scan.h"

struct source_search {
    struct sl_str path, canonical; /* as requested; without `.`, `..` and empty segments */
    /* the result: a reference to a cached file or, if that is NULL, a text */
    struct cache_item *item;
    struct sl_buf text;
    struct sl_str source; /* id of the source of the cached file */
    bool is_public;       /* that source, or the one of the debug information, is public */
    bool undecided;       /* a source could not say whether it has the file */
};

static void release_item(void *arg)
{
    cache_release(arg);
}

static void release_text(void *arg)
{
    free(arg);
}

/* Releases the result of an attempt. */
static void clear(struct source_search *s)
{
    cache_release(s->item);
    sl_buf_free(&s->text);
    s->item = NULL;
    s->is_public = false;
    s->undecided = false;
}

/* Sets s->undecided if the code is a failure that says nothing about the file. False if the search must end, because the request was
 * cancelled. */
static bool note_failure(struct source_search *s, enum sl_code code)
{
    s->undecided =
        s->undecided || code == SL_TIMEOUT || code == SL_DOWNLOAD_ERROR || code == SL_BUSY || code == SL_INTERNAL;
    return code != SL_CANCELLED;
}

/* ---- texts in bundles and debug files ---- */

struct text_reading {
    struct source_object *object;
    /* as requested, canonical, and relative to the compilation directory; empty ones are left out */
    struct sl_str paths[3];
    struct sl_buf *text;
    bool found;
};

/* Pool work: looks for the source text in the object under each of the paths, until it is found. */
static void read_text(void *arg)
{
    struct text_reading *reading = arg;
    struct sl_buf url = {0}; /* gets a URL of the file if the object has one; it is not used */
    for (size_t i = 0; i < 3 && !reading->found; i++) {
        sl_buf_clear(reading->text);
        if (reading->paths[i].size)
            source_object_find(reading->object, reading->paths[i], reading->text, &reading->found, &url);
    }
    sl_buf_free(&url);
}

/* Reads the text from the first of the bundles and debug files in `lookup` that has it, under one of its paths; `relative` may be empty.
 * SL_NOT_FOUND if none has it, or if one could not be read: then s->undecided is set. SL_CANCELLED if the request was cancelled. */
static enum sl_code read_objects(struct debuginfod_request *r, struct source_search *s, struct source_lookup *lookup,
                                 struct sl_str relative)
{
    for (size_t i = 0; i < lookup->count; i++) {
        struct text_reading reading = {
            .object = &lookup->objects[i], .paths = {s->path, s->canonical, relative}, .text = &s->text};
        enum sl_code code = pool_run(POOL_CONVERT, read_text, &reading, NULL);
        if (code == SL_INTERNAL)
            cache_drop_faulted();
        if (!note_failure(s, code)) /* sets s->undecided if the object may have the text; false for SL_CANCELLED */
            return code;
        if (code == SL_OK && reading.found && !s->text.failed) {
            s->is_public = false; /* the object does not say whether its source is */
            return SL_OK;
        }
        /* SL_BUSY: memory was short, so the text may be in this object */
        note_failure(s, s->text.failed ? SL_BUSY : SL_OK);
        sl_buf_free(&s->text);
    }
    return SL_NOT_FOUND;
}

/* Finds the source bundles and debug files with the build id, which go to `lookup`, and reads the text from them. SL_NOT_FOUND if none has
 * it; SL_CANCELLED if the request was cancelled. */
static enum sl_code find_objects(struct debuginfod_request *r, struct source_search *s, struct source_lookup *lookup)
{
    struct search_scope where = r->where;
    where.list = 0; /* no cached search result: those do not tell whether a source could not answer */
    search_find_source(&where, &r->id, lookup);
    if (!note_failure(s, lookup->code)) /* sets s->undecided after a failure; false for SL_CANCELLED */
        return SL_CANCELLED;
    s->undecided = s->undecided || lookup->undecided;
    if (lookup->undecided)
        debuginfod_hurry(&lookup->candidates);
    return read_objects(r, s, lookup, SL_STR(""));
}

/* ---- line tables ---- */

/* Looks whether the line tables of the debug file with the build id name the path. SL_OK: they do; `*relative` is the path below the
 * compilation directory, or empty. SL_NOT_FOUND: they do not, there is no debug file, or that could not be found out (s->undecided).
 * SL_CANCELLED: the request was cancelled. Sources that cannot answer now are not waited for: find_source() as a whole is repeated for
 * them. */
static enum sl_code ask_line_tables(struct debuginfod_request *r, struct source_search *s, struct sl_str *relative)
{
    struct debuginfod_file file = {.purpose = PURPOSE_DEBUG_FILE};
    struct sl_error error = {0};
    bool named = false;
    enum sl_code code = debuginfod_find_file(r, &file);
    bool is_public = file.found.is_public;
    if (code == SL_OK)
        code = object_names_source(file.found.item, s->canonical, &r->x->arena, &named, relative, &error);
    debuginfod_release_file(&file);
    if (!note_failure(s, code)) /* sets s->undecided after a failure; false for SL_CANCELLED */
        return SL_CANCELLED;
    s->is_public = is_public;
    return code == SL_OK && named ? SL_OK : SL_NOT_FOUND;
}

/* ---- files ---- */

/* Gets the file from one source, as it is there, into s->item. It may be HTML, which elsewhere counts as a server's error page; an empty
 * file is accepted from a directory only. SL_NOT_FOUND also after a failure that says nothing about the file: s->undecided is set.
 * SL_CANCELLED if the request was cancelled. */
static enum sl_code get_file(struct debuginfod_request *r, struct source_search *s, const struct source *source,
                             struct remote_file *file)
{
    struct sl_error error = {0};
    file->max_size = r->config->max_source_file_size;
    file->may_be_page = true;
    file->may_be_empty = source->type == SOURCE_FILESYSTEM;
    file->forwarded_for = r->where.forwarded_for;
    file->via = r->where.via;
    struct source_request request = {.scope = origin_scope(file, r->where.scope), .file = file, .is_raw = true};
    enum sl_code code = source_file_get(&request, &r->x->arena, &s->item, &error);
    if (code == SL_OK) {
        s->source = source->id;
        s->is_public = source->is_public;
        return SL_OK;
    }
    s->item = NULL;
    if (search_is_passing(code)) /* a failure that may pass: a client waits, so the source may be asked again soon */
        origin_hurry_probe(source->id, file->uri);
    return note_failure(s, code) ? SL_NOT_FOUND : SL_CANCELLED; /* note_failure() is false for SL_CANCELLED */
}

/* Returns the path relative to the directory `root`; data NULL if it is not below that. */
static struct sl_str below(struct sl_str root, struct sl_str path)
{
    while (root.size && root.data[root.size - 1] == '/')
        root.size--;
    if (!sl_str_starts(path, root) || path.size <= root.size + 1 || path.data[root.size] != '/')
        return (struct sl_str){NULL, 0};
    return (struct sl_str){path.data + root.size + 1, path.size - root.size - 1};
}

/* Reads the file from one of the configured directories of this machine (debuginfod.source_roots) that contains the path. Paths in /proc
 * and the like, and links that lead out of the directory, are refused where files of all filesystem sources are opened
 * (origin/filesystem.c). Codes as of get_file(); SL_BUSY when out of memory. */
static enum sl_code read_local(struct debuginfod_request *r, struct source_search *s)
{
    enum sl_code code = SL_NOT_FOUND;
    for (size_t i = 0; i < r->config->debuginfod.source_root_count && code == SL_NOT_FOUND; i++) {
        struct sl_str root = r->config->debuginfod.source_roots[i], rest = below(root, s->canonical);
        struct source *source = rest.data ? SL_ARENA_NEW(&r->x->arena, struct source) : NULL;
        struct remote_file file;
        if (!rest.data)
            continue;
        if (!source)
            return SL_BUSY;
        *source = (struct source){.id = SL_STR("debuginfod.source_roots"), .type = SOURCE_FILESYSTEM, .path = root};
        /* FILE_SOURCEBUNDLE: any type; the file is taken as it is */
        if (!origin_file_at(source, FILE_SOURCEBUNDLE, rest, &r->x->arena, &file))
            return SL_BUSY;
        code = get_file(r, s, source, &file);
    }
    return code;
}

/* Asks one upstream, another debuginfod server, for the source file. Codes as of get_file(); SL_BUSY when out of memory. */
static enum sl_code ask_upstream(struct debuginfod_request *r, struct source_search *s, const struct source *source)
{
    struct sl_buf path = {0};
    struct remote_file file;
    sl_buf_str(&path, r->id.code_id);
    sl_buf_cstr(&path, "/source");
    sl_buf_str(&path, s->canonical);
    struct sl_str text = sl_buf_move_to_arena(&path, &r->x->arena);
    /* FILE_SOURCEBUNDLE: any type; the file is taken as it is */
    if (!text.data || !origin_file_at(source, FILE_SOURCEBUNDLE, text, &r->x->arena, &file))
        return SL_BUSY;
    return get_file(r, s, source, &file);
}

/* Asks the upstreams one after the other until one has the source file. Upstreams with path_patterns are left out: the patterns match names
 * of modules, and the request only has a build id. */
static enum sl_code ask_upstreams(struct debuginfod_request *r, struct source_search *s)
{
    enum sl_code code = SL_NOT_FOUND;
    for (size_t i = 0; i < r->where.source_count && code == SL_NOT_FOUND && !r->where.skips_upstreams; i++) {
        const struct source *source = &r->where.sources[i];
        if (origin_is_upstream(source) && !source->path_pattern_count)
            code = ask_upstream(r, s, source);
    }
    return code;
}

/* ---- packages ---- */

/* Searches the file in the scanned packages that were built from the same source package as the program. Codes as of get_file(); SL_BUSY
 * when out of memory. */
static enum sl_code ask_packages(struct debuginfod_request *r, struct source_search *s)
{
    struct sl_error error = {0};
    struct sl_str id = r->id.code_id;
    uint8_t *bytes = SL_ARENA_ARRAY(&r->x->arena, uint8_t, id.size / 2 + 1);
    if (!bytes)
        return SL_BUSY;
    if (!sl_hex_decode(id, bytes, id.size / 2, NULL))
        return SL_NOT_FOUND;
    enum sl_code code =
        scan_find_source((struct sl_bytes){bytes, id.size / 2}, s->canonical, &r->x->arena, &s->item, &error);
    if (!note_failure(s, code))
        return SL_CANCELLED;
    s->source = SL_STR("scan");
    s->is_public = false;
    return code == SL_OK ? SL_OK : SL_NOT_FOUND;
}

/* ---- all together ---- */

/* Finds a source file whose path the line tables of the program name. They are read only if that matters: bundles (`lookup`) may have the
 * file under its path relative to the compilation directory, and directories of this machine are searched only for paths that line tables
 * name, so that clients cannot read other files there. */
static enum sl_code find_named(struct debuginfod_request *r, struct source_search *s, struct source_lookup *lookup)
{
    struct sl_str relative = {NULL, 0};
    if (!lookup->count && !r->config->debuginfod.source_root_count)
        return SL_NOT_FOUND;
    enum sl_code code = ask_line_tables(r, s, &relative);
    if (code == SL_OK)
        code = relative.size ? read_objects(r, s, lookup, relative) : SL_NOT_FOUND;
    else
        return code;
    return code == SL_NOT_FOUND ? read_local(r, s) : code;
}

/* A debuginfod_attempt, `arg` is a struct source_search: searches bundles and debug files, directories of this machine, scanned packages,
 * then upstreams. SL_BUSY: not found, but a source could not say. */
static enum sl_code find_source(struct debuginfod_request *r, void *arg)
{
    struct source_search *s = arg;
    struct source_lookup lookup = {.count = 0};
    clear(s);
    enum sl_code code = find_objects(r, s, &lookup);
    if (code == SL_NOT_FOUND)
        code = find_named(r, s, &lookup);
    for (size_t i = 0; i < lookup.count; i++)
        source_object_release(&lookup.objects[i]);
    if (code == SL_NOT_FOUND)
        code = ask_packages(r, s);
    if (code == SL_NOT_FOUND)
        code = ask_upstreams(r, s);
    return code == SL_NOT_FOUND && s->undecided ? SL_BUSY : code;
}

/* ---- the answer ---- */

/* Sends a file from the cache under this name. The reference s->item moves to the answer, which releases it when sent. */
static void send_item(struct debuginfod_request *r, struct source_search *s, struct sl_str name)
{
    struct cache_item *item = s->item;
    char etag[64];
    debuginfod_make_etag(s->source, s->canonical, item->mapping.bytes.size, item->time_created, etag);
    const struct debuginfod_answer answer = {.bytes = item->mapping.bytes,
                                             .name = name,
                                             .note = item->note,
                                             .etag = etag,
                                             .time_created = item->time_created,
                                             .is_public = s->is_public,
                                             .is_resident = cache_is_resident(item),
                                             .release = release_item,
                                             .arg = item};
    s->item = NULL;
    debuginfod_send(r, &answer);
}

/* Sends a text that was read from a bundle or debug file. It has no creation time, so its entity tag is made of its contents. The memory of
 * s->text moves to the answer. */
static void send_text(struct debuginfod_request *r, struct source_search *s, struct sl_str name)
{
    struct sl_bytes bytes = sl_buf_bytes(&s->text);
    char etag[64];
    debuginfod_make_etag(SL_STR(""), (struct sl_str){(const char *)bytes.data, bytes.size}, bytes.size, 0, etag);
    const struct debuginfod_answer answer = {.bytes = bytes,
                                             .name = name,
                                             .etag = etag,
                                             .is_public = s->is_public,
                                             .is_resident = true,
                                             .release = release_text,
                                             .arg = s->text.data};
    s->text = (struct sl_buf){0};
    debuginfod_send(r, &answer);
}

/* Sets s->path, as requested, and s->canonical, without `.` and `..`. SL_NOT_FOUND if it is too long or names no file; SL_BUSY when out of
 * memory. */
static enum sl_code read_path(struct http_exchange *x, struct source_search *s)
{
    struct sl_str rest = x->captures[1], name, directory;
    struct sl_buf path = {0}, clean = {0};
    sl_buf_u8(&path, '/');
    sl_buf_str(&path, rest);
    s->path = sl_buf_move_to_arena(&path, &x->arena);
    if (rest.size >= DEBUGINFOD_MAX_PATH)
        return SL_NOT_FOUND;
    if (!s->path.data)
        return SL_BUSY;
    sl_path_clean(&clean, s->path);
    s->canonical = sl_buf_move_to_arena(&clean, &x->arena);
    sl_path_split(s->canonical, &directory, &name);
    if (!s->canonical.data)
        return SL_BUSY;
    return name.size && s->canonical.data[0] == '/' ? SL_OK : SL_NOT_FOUND;
}

/* Handler of GET /buildid/{id}/source/{path}. */
void debuginfod_source(struct http_exchange *x)
{
    struct debuginfod_request r;
    struct source_search s = {.item = NULL};
    struct sl_str directory, name;
    if (debuginfod_begin(&r, x, "source")) {
        enum sl_code code = read_path(x, &s);
        if (code == SL_OK)
            code = debuginfod_retry(&r, find_source, &s);
        sl_path_split(s.canonical, &directory, &name);
        if (code != SL_OK)
            debuginfod_fail(&r, code);
        else if (s.item)
            send_item(&r, &s, name);
        else
            send_text(&r, &s, name);
        clear(&s);
    }
    debuginfod_end(&r);
}
