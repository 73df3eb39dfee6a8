/* What a source may hold for an object id, and getting it. */
#include "origin/impl.h"

/* ---- filters ---- */
static struct sl_str slashed(struct sl_arena *arena, struct sl_str name)
{
    char *copy = sl_arena_strndup(arena, name.data, name.size);
    for (size_t i = 0; copy && i < name.size; i++)
        if (copy[i] == '\\')
            copy[i] = '/';
    return (struct sl_str){copy, copy ? name.size : 0};
}

static bool patterns_match(const struct source *source, const struct object_id *id, struct sl_arena *arena)
{
    struct sl_str names[] = {id->code_file, id->debug_file};
    for (size_t n = 0; n < 2; n++) {
        struct sl_str subject = slashed(arena, names[n]);
        for (size_t i = 0; subject.size && i < source->path_pattern_count; i++)
            if (origin_glob(source->path_patterns[i], subject))
                return true;
    }
    return source->path_pattern_count == 0;
}

/* ---- URIs ---- */
static struct sl_str bucket_uri(struct sl_arena *arena, const char *scheme, struct sl_str bucket, struct sl_str key)
{
    struct sl_buf uri = {0};
    struct sl_str out = {NULL, 0};
    sl_buf_cstr(&uri, scheme);
    sl_buf_str(&uri, bucket);
    sl_buf_u8(&uri, '/');
    url_add_path(&uri, key);
    const char *copy = uri.failed ? NULL : sl_arena_strndup(arena, (const char *)uri.data, uri.size);
    if (copy)
        out = (struct sl_str){copy, uri.size};
    sl_buf_free(&uri);
    return out;
}

static struct sl_str with_prefix(struct sl_arena *arena, struct sl_str prefix, struct sl_str path)
{
    if (prefix.size == 0)
        return path;
    char *out = sl_arena_alloc(arena, prefix.size + 1 + path.size, 1);
    if (!out)
        return (struct sl_str){NULL, 0};
    memcpy(out, prefix.data, prefix.size);
    out[prefix.size] = '/';
    memcpy(out + prefix.size + 1, path.data, path.size);
    return (struct sl_str){out, prefix.size + 1 + path.size};
}

static bool locate(struct sl_arena *arena, struct remote_file *file, struct sl_str path)
{
    const struct source *source = file->source;
    file->location = path;
    switch (source->type) {
    case SOURCE_FILESYSTEM: file->uri = filesystem_uri(arena, source, path); break;
    case SOURCE_HTTP: file->uri = http_location_url(arena, source->url, path, false); break;
    case SOURCE_S3:
    case SOURCE_GCS:
        file->location = with_prefix(arena, source->prefix, path);
        if (!file->location.data)
            return false;
        file->uri = bucket_uri(arena, source->type == SOURCE_S3 ? "s3://" : "gs://", source->bucket, file->location);
        break;
    case SOURCE_SENTRY: return false;
    }
    return file->uri.data != NULL;
}

enum sl_code origin_list(const struct source *source, struct sl_str scope, const struct object_id *id,
                         const enum file_type *types, size_t type_count, struct sl_arena *arena,
                         struct remote_file **files, size_t *count, struct sl_error *error)
{
    *count = 0;
    *files = NULL;
    if (source->type == SOURCE_SENTRY)
        return sl_fail(error, SL_UNSUPPORTED, "sentry sources are not supported by this version");
    if (source->has_index && source->layout == LAYOUT_SYMSTORE)
        return sl_fail(error, SL_UNSUPPORTED, "symstore indexes are not supported by this version");
    if ((source->requires_checksum && id->debug_checksum.size == 0) || !patterns_match(source, id, arena))
        return SL_OK;
    *files = sl_arena_alloc(arena, type_count * LAYOUT_MAX_PATHS * sizeof **files, _Alignof(struct remote_file));
    if (!*files)
        return sl_fail(error, SL_INTERNAL, "out of memory");
    for (size_t i = 0; i < type_count; i++) {
        struct sl_str paths[LAYOUT_MAX_PATHS];
        if (source->filetypes && !(source->filetypes & 1u << types[i]))
            continue;
        size_t found = layout_paths(arena, source->layout, source->casing, id, types[i], paths);
        for (size_t n = 0; n < found; n++) {
            struct remote_file *file = &(*files)[*count];
            *file = (struct remote_file){.source = source, .type = types[i]};
            if (source->type == SOURCE_HTTP)
                file->checksum = id->debug_checksum;
            *count += locate(arena, file, paths[n]);
        }
    }
    return SL_OK;
}

enum sl_code origin_fetch(const struct remote_file *file, int fd, struct sl_error *error)
{
    switch (file->source->type) {
    case SOURCE_FILESYSTEM: return filesystem_fetch(file, fd, error);
    case SOURCE_HTTP: return http_source_fetch(file, fd, error);
    case SOURCE_S3: return sl_fail(error, SL_UNSUPPORTED, "s3 sources are not supported by this version");
    case SOURCE_GCS: return sl_fail(error, SL_UNSUPPORTED, "gcs sources are not supported by this version");
    case SOURCE_SENTRY: break;
    }
    return sl_fail(error, SL_UNSUPPORTED, "sentry sources are not supported by this version");
}

struct sl_str origin_scope(const struct remote_file *file, struct sl_str scope)
{
    return file->source->is_public ? SL_STR("global") : scope;
}
