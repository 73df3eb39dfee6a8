/* Lists the files that a source may have for an object id, and fetches them. */
#include "origin/failures.h"
#include "origin/impl.h"

/* ---- filters ---- */

/* Returns a copy with slashes instead of backslashes, as patterns have slashes. */
static struct sl_str slashed(struct sl_arena *arena, struct sl_str name)
{
    char *copy = sl_arena_strndup(arena, name.data, name.size);
    for (size_t i = 0; copy && i < name.size; i++)
        if (copy[i] == '\\')
            copy[i] = '/';
    return (struct sl_str){copy, copy ? name.size : 0};
}

/* Sets `*match`: true if a pattern of the source matches the code file or the debug file of the module, or the source has no patterns.
 * False when out of memory. */
static bool match_patterns(const struct source *source, const struct object_id *id, struct sl_arena *arena, bool *match)
{
    struct sl_str names[] = {id->code_file, id->debug_file};
    *match = source->path_pattern_count == 0;
    for (size_t n = 0; n < 2 && !*match; n++) {
        struct sl_str subject = slashed(arena, names[n]);
        if (!subject.data)
            return false;
        for (size_t i = 0; subject.size && i < source->path_pattern_count && !*match; i++)
            *match = origin_glob(source->path_patterns[i], subject);
    }
    return true;
}

/* ---- listing ---- */

/* True if the source may have file.ptr files for this type: in symbol stores of Windows, if the configuration says so. */
static bool has_pointers(const struct source *source, enum file_type type)
{
    static const unsigned types = 1u << FILE_PE | 1u << FILE_PDB | 1u << FILE_PORTABLEPDB;
    static const unsigned layouts =
        1u << LAYOUT_NATIVE | 1u << LAYOUT_SYMSTORE | 1u << LAYOUT_SYMSTORE_INDEX2 | 1u << LAYOUT_SSQP;
    return source->file_ptr && types >> type & 1 && layouts >> source->layout & 1;
}

/* Returns the path of `file.ptr` in the directory of `path`; data NULL when out of memory. */
static struct sl_str pointer_path(struct sl_arena *arena, const struct source *source, struct sl_str path)
{
    const char *slash = memrchr(path.data, '/', path.size);
    struct sl_buf text = {0};
    sl_buf_add(&text, path.data, slash ? (size_t)(slash - path.data) + 1 : 0);
    sl_buf_cstr(&text, source->casing == CASING_UPPERCASE ? "FILE.PTR" : "file.ptr");
    return sl_buf_move_to_arena(&text, arena);
}

/* Adds the files of one type that the source may have. If there may be a `file.ptr` (a file that contains the path of another one), adds
 * that too, in the directory of the first file. False when out of memory. */
static bool list_type(const struct source *source, const struct object_id *id, enum file_type type,
                      struct sl_arena *arena, struct remote_file *files, size_t *count)
{
    struct sl_str paths[LAYOUT_MAX_PATHS + 1]; /* 1: `file.ptr` */
    size_t found = layout_paths(arena, source->layout, source->casing, id, type, paths), plain = found;
    if (found == SIZE_MAX)
        return false;
    if (source->type == SOURCE_HTTP && !http_can_have_files(source->url))
        return true;
    if (found && has_pointers(source, type))
        paths[found++] = pointer_path(arena, source, paths[0]);
    for (size_t n = 0; n < found; n++) {
        struct remote_file *file = &files[*count];
        if (!paths[n].data || !fill_remote_file(arena, source, type, paths[n], file))
            return false;
        file->pointer = n == plain;
        if (source->type == SOURCE_HTTP)
            file->checksum = id->debug_checksum; /* sent as the header field SymbolChecksum */
        ++*count;
    }
    return true;
}

/* Adds the files that the index of a directory knows; their version is part of cache keys, so that a replaced file is read
 * anew. SL_DOWNLOAD_ERROR if the index cannot be read now; SL_BUSY. */
static enum sl_code list_indexed(const struct source *source, const struct object_id *id, enum file_type type,
                                 struct sl_arena *arena, struct remote_file *files, size_t *count)
{
    struct indexed_file found[LAYOUT_MAX_PATHS] = {{.size = 0}};
    size_t found_count = source->index->find(source->index, id, type, arena, found);
    if (found_count == INDEX_BUSY || found_count == INDEX_UNREADABLE)
        return found_count == INDEX_BUSY ? SL_BUSY : SL_DOWNLOAD_ERROR;
    for (size_t n = 0; n < found_count; n++) {
        struct remote_file *file = &files[*count];
        if (!fill_remote_file(arena, source, type, found[n].path, file))
            return SL_BUSY;
        file->checksum = found[n].version; /* a part of cache keys */
        file->known_size = found[n].size;
        ++*count;
    }
    return SL_OK;
}

enum sl_code origin_list(const struct source *source, const struct object_id *id, const enum file_type *types,
                         size_t type_count, struct sl_arena *arena, struct remote_file **files, size_t *count,
                         struct sl_error *error)
{
    *count = 0;
    *files = NULL;
    if (source->type == SOURCE_SENTRY) {
        enum sl_code code = sentry_list(source, id, types, type_count, arena, files, count, error);
        if (code != SL_OK) /* a successful list says nothing about files */
            health_note(source, code, error);
        return code;
    }
    if (source->requires_checksum && !source->index && id->debug_checksum.size == 0)
        return SL_OK; /* filters.requires_checksum: the source is asked only for modules with a checksum */
    bool match;
    if (!match_patterns(source, id, arena, &match))
        return sl_fail(error, SL_BUSY, "out of memory");
    if (!match)
        return SL_OK;
    /* + 1: `file.ptr` */
    *files = sl_arena_alloc(arena, type_count * (LAYOUT_MAX_PATHS + 1) * sizeof **files, _Alignof(struct remote_file));
    if (!*files)
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = SL_OK;
    for (size_t i = 0; code == SL_OK && i < type_count; i++)
        if (source->index)
            code = list_indexed(source, id, types[i], arena, *files, count);
        else if ((!source->filetypes || source->filetypes & 1u << types[i]) &&
                 !list_type(source, id, types[i], arena, *files, count))
            code = SL_BUSY;
    if (code == SL_DOWNLOAD_ERROR)
        sl_fail(error, code, "the index of the symbol source cannot be read now");
    return code == SL_BUSY ? sl_fail(error, code, "out of memory") : code;
}

/* Downloads a file from a bucket. */
static enum sl_code bucket_fetch(const struct remote_file *file, int fd, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct object_store_call call = {.max_size = file->max_size,
                                     .unwrap = true,
                                     .refuse_empty = !file->may_be_empty,
                                     .refuse_pages = !file->may_be_page};
    const char *label = origin_label(&arena, file->source);
    struct object_store store = object_store_of_source(&file->source->bucket, label, file->source->internal);
    enum sl_code code =
        label ? object_get(&store, file->location, fd, &call, error) : sl_fail(error, SL_BUSY, "out of memory");
    sl_arena_free(&arena);
    return code;
}

/* Gets a file. A `file.ptr` is followed; a file of an index that keeps files in packages is taken from its package; any other is fetched
 * as the type of the source requires. */
static enum sl_code fetch_by_type(const struct remote_file *file, int fd, char *note, struct sl_error *error)
{
    const struct source_index *index = file->source->index;
    if (file->pointer)
        return pointer_fetch(file, fd, error);
    if (index && index->fetch)
        return index->fetch(index, file, fd, error);
    switch (file->source->type) {
    case SOURCE_FILESYSTEM: return filesystem_fetch(file, fd, error);
    case SOURCE_HTTP: return http_source_fetch(file, fd, note, error);
    case SOURCE_S3:
    case SOURCE_GCS: return bucket_fetch(file, fd, error);
    case SOURCE_SENTRY: break;
    }
    return sentry_fetch(file, fd, error);
}

/* Downloads the file and records the result: for the health of the source, and for retries of failures. */
enum sl_code origin_fetch_noting(const struct remote_file *file, int fd, char *note, struct sl_error *error)
{
    enum sl_code code = fetch_by_type(file, fd, note, error);
    health_note(file->source, code, error);
    origin_record_result(file->source->id, file->uri, code);
    return code;
}

enum sl_code origin_fetch(const struct remote_file *file, int fd, struct sl_error *error)
{
    return origin_fetch_noting(file, fd, NULL, error);
}

struct sl_str origin_scope(const struct remote_file *file, struct sl_str scope)
{
    return file->source->is_public ? SL_STR("global") : scope;
}
