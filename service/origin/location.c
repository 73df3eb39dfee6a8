/* Makes the location and the URI of a file from its path on a source. */
#include "origin/impl.h"

/* Makes "<scheme><bucket>/<key>". */
static struct sl_str bucket_uri(struct sl_arena *arena, const char *scheme, struct sl_str bucket, struct sl_str key)
{
    struct sl_buf uri = {0};
    sl_buf_cstr(&uri, scheme);
    sl_buf_str(&uri, bucket);
    sl_buf_u8(&uri, '/');
    url_add_path(&uri, key);
    return sl_buf_move_to_arena(&uri, arena);
}

bool fill_remote_file(struct sl_arena *arena, const struct source *source, enum file_type type, struct sl_str path,
                      struct remote_file *file)
{
    *file = (struct remote_file){.source = source, .type = type, .path = path, .location = path};
    switch (source->type) {
    case SOURCE_FILESYSTEM: file->uri = filesystem_uri(arena, source, path); break;
    case SOURCE_HTTP: file->uri = http_location_url(arena, source->url, path, false); break;
    case SOURCE_S3:
    case SOURCE_GCS:
        file->location = bucket_key(arena, &source->bucket, path);
        if (!file->location.data)
            return false;
        file->uri = bucket_uri(arena, source->type == SOURCE_S3 ? "s3://" : "gs://", bucket_name(&source->bucket),
                               file->location);
        break;
    case SOURCE_SENTRY: return false;
    }
    return file->uri.data != NULL;
}

bool origin_file_at(const struct source *source, enum file_type type, struct sl_str path, struct sl_arena *arena,
                    struct remote_file *file)
{
    return fill_remote_file(arena, source, type, path, file);
}

/* Keeps the properties that do not depend on the path. */
bool origin_set_path(struct remote_file *file, struct sl_str path, struct sl_arena *arena)
{
    struct remote_file moved;
    if (!fill_remote_file(arena, file->source, file->type, path, &moved))
        return false;
    moved.checksum = file->checksum;
    moved.may_be_empty = file->may_be_empty;
    moved.may_be_page = file->may_be_page;
    *file = moved;
    return true;
}

/* It is the URI of an empty path on the source, for Sentry its URL. Data NULL when out of memory. */
struct sl_str origin_root(const struct source *source, struct sl_arena *arena)
{
    struct remote_file root;
    if (source->type == SOURCE_SENTRY)
        return source->url;
    /* FILE_PE: any type; the URI does not depend on it */
    return fill_remote_file(arena, source, FILE_PE, SL_STR(""), &root) ? root.uri : (struct sl_str){NULL, 0};
}

/* Appends the suffix to a text; data NULL when out of memory. */
static struct sl_str with_suffix(struct sl_arena *arena, struct sl_str text, const char *suffix)
{
    struct sl_buf out = {0};
    sl_buf_str(&out, text);
    sl_buf_cstr(&out, suffix);
    return sl_buf_move_to_arena(&out, arena);
}

enum sl_code origin_companion(const struct remote_file *file, const char *suffix, struct sl_arena *arena,
                              struct remote_file *companion, struct sl_error *error)
{
    const struct source_index *index = file->source->index;
    struct indexed_file found = {.size = 0};
    *companion = *file;
    /* Sentry has no file names; a symstore index lists all files of its source itself; a `file.ptr` only names another file */
    if (file->source->type == SOURCE_SENTRY || origin_has_index(file->source) || file->pointer)
        return sl_fail(error, SL_NOT_FOUND, "%s", "");
    if (index && index->find_companion) {
        size_t count = index->find_companion(index, file, suffix, arena, &found);
        if (!count)
            return sl_fail(error, SL_NOT_FOUND, "%s", "");
        companion->checksum = found.version;
        companion->known_size = found.size;
        /* other counts: INDEX_BUSY */
        return count == 1 && origin_set_path(companion, found.path, arena) ? SL_OK
                                                                           : sl_fail(error, SL_BUSY, "out of memory");
    }
    companion->location = with_suffix(arena, file->location, suffix);
    companion->uri = with_suffix(arena, file->uri, suffix);
    return companion->location.data && companion->uri.data ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}
