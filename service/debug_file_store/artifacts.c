/* Artifact bundles of JavaScript releases in the store: adds, lists and finds them. */
#include "debug_file_store/artifacts.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/cache.h"
#include "conversion/conversion.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "debug_file_store/impl.h"

enum { ID_HEX = 32, SHA1_TEXT = 40, MAX_SCANNED = 10000, NAMES_AT_ONCE = 256 };

/* ---- names ---- */

/* Returns the path of a bundle below objects/; data NULL when out of memory. */
static struct sl_str bundle_path(struct sl_arena *arena, struct sl_str sha1)
{
    struct sl_buf path = {0};
    sl_buf_printf(&path, "artifacts/%.2s/" SL_STR_FMT, sha1.data, SL_STR_ARG(sha1));
    return sl_buf_move_to_arena(&path, arena);
}

/* Returns the directory that lists the bundles of a release and distribution. It is named by their SHA-1, as they may have any characters.
 * Data NULL on failure. */
static struct sl_str release_directory(struct sl_arena *arena, struct sl_str release, struct sl_str dist)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    struct sl_buf text = {0}, name = {0};
    sl_buf_str(&text, release);
    sl_buf_u8(&text, '\0');
    sl_buf_str(&text, dist);
    bool good = !text.failed && EVP_Digest(text.data, text.size, digest, &size, EVP_sha1(), NULL) == 1;
    sl_buf_cstr(&name, "uploads/js/releases/");
    sl_buf_hex(&name, digest, size);
    sl_buf_free(&text);
    name.failed |= !good;
    return sl_buf_move_to_arena(&name, arena);
}

/* Returns the directory that lists the bundles with a file of this debug id; data NULL when out of memory. */
static struct sl_str id_directory(struct sl_arena *arena, struct sl_str hex)
{
    struct sl_buf name = {0};
    sl_buf_cstr(&name, "uploads/js/ids/");
    sl_buf_str(&name, hex);
    return sl_buf_move_to_arena(&name, arena);
}

/* Returns the name of the entry by which a directory lists a bundle, DIRECTORY/TIME-SHA1; TIME has leading zeros, so that names sort by
 * time. Data NULL when out of memory, or if `directory` has no data (out of memory before). */
static struct sl_str entry_name(struct sl_arena *arena, struct sl_str directory, uint64_t time_us, struct sl_str sha1)
{
    struct sl_buf name = {0};
    sl_buf_str(&name, directory);
    sl_buf_printf(&name, "/%020llu-" SL_STR_FMT, (unsigned long long)time_us, SL_STR_ARG(sha1));
    name.failed |= !directory.data;
    return sl_buf_move_to_arena(&name, arena);
}

/* ---- adding ---- */

/* Creates the entries by which directories list bundles. All information is in the name of an entry, so its contents are an empty JSON
 * object. SL_BUSY if a name has no data, as the function that made it was out of memory. */
static enum sl_code put_entries(const struct sl_str *names, size_t count, struct sl_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (!names[i].data)
            return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = SL_OK;
    for (size_t at = 0; code == SL_OK && at < count; at += NAMES_AT_ONCE)
        code = store_area_put_text(debug_files_area(), names + at,
                                   count - at < NAMES_AT_ONCE ? count - at : NAMES_AT_ONCE, SL_STR("{}"), error);
    return code;
}

/* Deletes the entries of a bundle in a directory where it is to be listed as the newest one. The names of entries begin with a time, so the
 * last one is the newest: if that is an entry of the bundle already, it is kept and `*is_newest` is set. */
static enum sl_code drop_older_entry(struct sl_str directory, struct sl_str sha1, struct sl_arena *arena,
                                     bool *is_newest, struct sl_error *error)
{
    struct sl_str *names;
    size_t count;
    *is_newest = false;
    enum sl_code code = store_area_list(debug_files_area(), directory, MAX_SCANNED, arena, &names, &count, error);
    for (size_t i = 0; code == SL_OK && i < count && !*is_newest; i++) {
        if (!sl_str_ends(names[i], sha1))
            continue;
        *is_newest = i + 1 == count;
        struct sl_buf name = {0};
        sl_buf_printf(&name, SL_STR_FMT "/" SL_STR_FMT, SL_STR_ARG(directory), SL_STR_ARG(names[i]));
        if (!*is_newest)
            code = name.failed ? sl_fail(error, SL_BUSY, "out of memory")
                               : store_area_delete(debug_files_area(), sl_buf_view(&name), error);
        sl_buf_free(&name);
    }
    return code;
}

/* Lists the bundle in the directory of a release, as the newest bundle there: creates an entry with the present time, and deletes an older
 * one of the bundle. */
static enum sl_code list_for_release(struct sl_str sha1, const struct artifact_release *release, struct sl_error *error)
{
    struct sl_arena arena = {0};
    bool is_newest = false;
    struct sl_str directory = release_directory(&arena, release->release, release->dist);
    struct sl_str name = entry_name(&arena, directory, clock_wall_us(), sha1);
    enum sl_code code = name.data ? drop_older_entry(directory, sha1, &arena, &is_newest, error)
                                  : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK && !is_newest)
        code = put_entries(&name, 1, error);
    sl_arena_free(&arena);
    return code;
}

/* True if the text consists of lines of ID_HEX hex digits. A worker has written it, which is not trusted, and each becomes the name of a
 * directory. */
static bool ids_are_valid(struct sl_str ids)
{
    bool good = ids.size % (ID_HEX + 1) == 0;
    for (size_t i = 0; good && i < ids.size; i++)
        good = i % (ID_HEX + 1) == ID_HEX ? ids.data[i] == '\n' : sl_hex_digit(ids.data[i]) >= 0;
    return good;
}

/* Lists the bundle in the directories of all its debug ids (`ids`: lines of ID_HEX digits) and, if it has a release, in that of its
 * release. */
static enum sl_code list_bundle(struct sl_str sha1, struct sl_str ids, const struct artifact_release *release,
                                struct sl_error *error)
{
    struct sl_arena arena = {0};
    size_t most = ids.size / (ID_HEX + 1) + 1, count = 0; /* + 1: never empty */
    uint64_t now_us = clock_wall_us();
    struct sl_str *names = SL_ARENA_ARRAY(&arena, struct sl_str, most);
    for (size_t at = 0; names && at + ID_HEX < ids.size; at += ID_HEX + 1)
        names[count++] = entry_name(&arena, id_directory(&arena, (struct sl_str){ids.data + at, ID_HEX}), now_us, sha1);
    enum sl_code code = names ? put_entries(names, count, error) : sl_fail(error, SL_BUSY, "out of memory");
    sl_arena_free(&arena);
    return code == SL_OK && release->release.size ? list_for_release(sha1, release, error) : code;
}

struct indexing {
    struct cache_tmp ids; /* temporary file to which the converter writes the debug ids */
    struct sl_mapping mapping;
    struct artifact_index_result result;
};

/* Runs the converter that reads the bundle's release and debug ids, and maps the list of ids that it has written into memory. */
static enum sl_code index_bundle(int fd, struct indexing *indexing, struct sl_error *error)
{
    struct conversion_description about = {.size = get_file_size(fd)};
    struct converter_call call = {.out = -1};
    enum sl_code code = cache_tmp_create(&indexing->ids, true, error); /* true: a file without a name */
    if (code != SL_OK)
        return code;
    call.out = indexing->ids.fd;
    converter_add_file(&call, INPUT_FILE, fd);
    code = conversion_run(&about, &converter_artifact_index, &call, &indexing->result, error);
    if (code == SL_UNSUPPORTED) /* over a limit of conversions; from this store SL_UNSUPPORTED would mean a full disk */
        code = error->code = SL_MALFORMED;
    return code == SL_OK ? pool_map_fd(indexing->ids.fd, &indexing->mapping, error) : code;
}

/* Stores the bundle and lists it. If listing fails, removes the bundle again, unless it was stored before: artifact_bundle_link takes any
 * stored bundle for completely listed, and its debug ids would never be listed. */
static enum sl_code publish_bundle(struct store_tmp_file *file, struct sl_str sha1, struct sl_str ids,
                                   const struct artifact_release *release, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct sl_error ignored;
    uint64_t size = get_file_size(file->fd);
    struct store_meta meta = {.size = size, .original_size = size}, before;
    struct sl_str path = bundle_path(&arena, sha1), name = object_name(&arena, path);
    enum sl_code code = path.data && name.data ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    bool is_new = code == SL_OK && store_area_stat(debug_files_area(), name, false, &before, &ignored) == SL_NOT_FOUND;
    if (code == SL_OK)
        code = store_area_put(debug_files_area(), name, file, &meta, "application/octet-stream", error);
    if (code == SL_OK) {
        code = list_bundle(sha1, ids, release, error);
        if (code != SL_OK && is_new)
            store_area_delete(debug_files_area(), name, &ignored);
    }
    sl_arena_free(&arena);
    return code;
}

/* Reads the bundle's release and debug ids by a converter, then stores and lists the bundle. Checks the ids first, as the converter's
 * worker process is not trusted. The release that the client names (`asked`) comes before that of the bundle's manifest. */
static enum sl_code store_bundle(struct store_tmp_file *file, struct sl_str sha1, const struct artifact_release *asked,
                                 struct indexing *indexing, struct sl_error *error)
{
    struct artifact_release release = *asked;
    enum sl_code code = index_bundle(file->fd, indexing, error);
    if (!release.release.size)
        release = (struct artifact_release){sl_str(indexing->result.release), sl_str(indexing->result.dist)};
    struct sl_str ids = {(const char *)indexing->mapping.bytes.data, indexing->mapping.bytes.size};
    if (code == SL_OK && !ids_are_valid(ids))
        code = sl_fail(error, SL_MALFORMED, "reading the bundle gave a damaged list of debug ids");
    if (code == SL_OK && !release.release.size && !ids.size)
        code = sl_fail(error, SL_MALFORMED, "the bundle has neither a release nor debug ids: it could never be found");
    return code == SL_OK ? publish_bundle(file, sha1, ids, &release, error) : code;
}

enum sl_code artifact_bundle_add(struct store_tmp_file *file, struct sl_str sha1,
                                 const struct artifact_release *release, struct sl_error *error)
{
    struct indexing *indexing = calloc(1, sizeof *indexing);
    uint64_t size = get_file_size(file->fd);
    enum sl_code code =
        indexing ? store_bundle(file, sha1, release, indexing, error) : sl_fail(error, SL_BUSY, "out of memory");
    if (indexing && indexing->mapping.bytes.data)
        pool_unmap(&indexing->mapping);
    if (indexing && indexing->ids.fd > 0) /* still 0, from calloc, if index_bundle was not called or failed early */
        cache_tmp_discard(&indexing->ids);
    store_tmp_file_discard_on_pool(file);
    free(indexing);
    if (code != SL_OK && code != SL_MALFORMED) /* the upload has failed: it was neither stored nor refused */
        return code;
    metric_add(METRIC_STORE_UPLOADS, 1, "sentry", code == SL_OK ? "new" : "refused", NULL);
    metric_add(METRIC_STORE_UPLOAD_BYTES, size, "sentry", code == SL_OK ? "new" : "refused", NULL);
    log_info("uploads", "received an artifact bundle", LOG_SLSTR("release", release->release), LOG_U64("bytes", size),
             LOG_STR("result", code == SL_OK ? "new" : "refused"));
    return code;
}

enum sl_code artifact_bundle_link(struct sl_str sha1, const struct artifact_release *release, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct store_meta meta;
    struct sl_str path = bundle_path(&arena, sha1), name = object_name(&arena, path);
    enum sl_code code = path.data && name.data ? store_area_stat(debug_files_area(), name, false, &meta, error)
                                               : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK && release->release.size)
        code = list_for_release(sha1, release, error);
    sl_arena_free(&arena);
    return code;
}

/* ---- finding ---- */

struct bundle_finding {
    struct sl_arena *arena;
    struct found_bundle *bundles;
    size_t count, capacity;
};

/* True if the bundle with this path is in the result already: several directories may list it. */
static bool is_added(const struct bundle_finding *f, struct sl_str path)
{
    for (size_t i = 0; i < f->count; i++)
        if (sl_str_equal(f->bundles[i].file.path, path))
            return true;
    return false;
}

/* Adds the newest bundles that a directory lists, at most MAX_FOUND_BUNDLES, without those that are in the result already. `by_id`: the
 * directory is that of a debug id. */
static enum sl_code add_listed(struct bundle_finding *f, struct sl_str directory, bool by_id, struct sl_error *error)
{
    struct sl_str *names;
    size_t count, added = 0;
    if (!directory.data)
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = store_area_list(debug_files_area(), directory, MAX_SCANNED, f->arena, &names, &count, error);
    for (size_t i = count; code == SL_OK && i > 0 && added < MAX_FOUND_BUNDLES && f->count < f->capacity; i--) {
        struct sl_str name = names[i - 1];
        if (name.size <= SHA1_TEXT) /* not a name TIME-SHA1: skip it */
            continue;
        struct sl_str sha1 = {name.data + name.size - SHA1_TEXT, SHA1_TEXT}, path = bundle_path(f->arena, sha1);
        struct found_bundle *bundle = &f->bundles[f->count];
        *bundle =
            (struct found_bundle){.file = {.source = debug_files_source(), .type = FILE_SOURCEBUNDLE}, .by_id = by_id};
        if (!path.data || !origin_set_path(&bundle->file, path, f->arena))
            return sl_fail(error, SL_BUSY, "out of memory");
        struct sl_buf uri = {0};
        /* if several bundles have a file, that of the greatest URI is used: the newest, as names begin with the time */
        sl_buf_printf(&uri, "uploads://artifacts/" SL_STR_FMT, SL_STR_ARG(name));
        bundle->file.uri = sl_buf_move_to_arena(&uri, f->arena);
        if (!bundle->file.uri.data)
            return sl_fail(error, SL_BUSY, "out of memory");
        added++;
        f->count += !is_added(f, bundle->file.path); /* + 0: in the result already; the next bundle overwrites it */
    }
    return code;
}

enum sl_code artifact_bundles_find(const struct artifact_release *release, const struct sl_debug_id *debug_id,
                                   struct sl_arena *arena, struct found_bundle **bundles, size_t *count,
                                   struct sl_error *error)
{
    /* 3: each of the three add_listed below adds MAX_FOUND_BUNDLES at most */
    struct bundle_finding f = {.arena = arena, .capacity = 3 * (size_t)MAX_FOUND_BUNDLES};
    char hex[ID_HEX + 1];
    enum sl_code code = SL_OK;
    f.bundles = SL_ARENA_ARRAY(arena, struct found_bundle, f.capacity);
    if (!f.bundles)
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK && debug_id) {
        sl_hex_encode(debug_id->uuid, sizeof debug_id->uuid, hex);
        code = add_listed(&f, id_directory(arena, sl_str(hex)), true, error);
    }
    if (code == SL_OK && release->release.size)
        code = add_listed(&f, release_directory(arena, release->release, release->dist), false, error);
    /* bundles uploaded for the release without a distribution fit any distribution */
    if (code == SL_OK && release->release.size && release->dist.size)
        code = add_listed(&f, release_directory(arena, release->release, SL_STR("")), false, error);
    *bundles = f.bundles;
    *count = f.count;
    return code;
}
