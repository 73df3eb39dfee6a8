/* Stores the members of a checked archive, several at once; afterwards invalidates cache entries about these files on this node and on
 * others (cache_invalidate). */
#include "api/uploads/uploads.h"

#include <stdlib.h>

#include "cache/cache.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"

struct uploads_publishing {
    struct archive *archive;
    enum store_part part;
    size_t next;       /* index of the first member that no fiber has taken */
    enum sl_code code; /* of the first failure */
    struct sl_error error;
};

/* ---- is it in the store? ---- */

/* Finds out whether one part of the store has this key, and with the same contents: the same size and MD5. The store computes the MD5 of an
 * uncompressed file, which takes long, only if the size is the same. A compressed file has size and MD5 of its contents in its header
 * (has_original), unless another service has stored it: then only its own size is compared, with `packed_size`. SL_OK also if the part does
 * not have the key. */
static enum sl_code find_same_in(const struct config_store *config, const char *scope, enum store_part part,
                                 struct sl_str key, uint64_t size, const uint8_t md5[16], uint64_t packed_size,
                                 enum uploads_found *found, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct store_meta meta = {0};
    struct sl_str name = uploads_name(&arena, scope, store_prefixes[part], key);
    bool is_packed = uploads_is_packed(config, key);
    uint64_t begin = clock_mono_ns();
    /* false: without the MD5; has_original: `meta` has it all the same */
    enum sl_code code = name.data ? store_stat(name, false, &meta, error) : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK && !is_packed && meta.size == size && !meta.has_original)
        code = store_stat(name, true, &meta, error); /* with the MD5 */
    metric_observe_since(METRIC_TECKEN_FILE_EXISTS, begin, NULL);
    bool same;
    if (is_packed && !meta.has_original) /* stored by another service without the original's size */
        same = packed_size && meta.size == packed_size;
    else
        same = (is_packed ? meta.original_size : meta.size) == size &&
               (!meta.has_original || memcmp(meta.md5, md5, 16) == 0);
    *found = code != SL_OK ? UPLOADS_FOUND_NONE : same ? UPLOADS_FOUND_SAME : UPLOADS_FOUND_OTHER;
    sl_arena_free(&arena);
    return code == SL_NOT_FOUND ? SL_OK : code;
}

/* For a try build the part of releases is searched first: a file that is the same in a release is not stored again. */
enum sl_code uploads_find_duplicate(const struct config_store *config, const char *scope, enum store_part part,
                                    struct sl_str key, uint64_t size, const uint8_t md5[16], uint64_t packed_size,
                                    enum uploads_found *found, struct sl_error *error)
{
    enum sl_code code = find_same_in(config, scope, STORE_REGULAR, key, size, md5, packed_size, found, error);
    if (code == SL_OK && *found != UPLOADS_FOUND_SAME && part == STORE_TRY)
        code = find_same_in(config, scope, STORE_TRY, key, size, md5, packed_size, found, error);
    return code;
}

/* ---- one member ---- */

/* Stores the written file, then its metadata under debug id and code id, so that metadata never exists without the file. If making the
 * metadata has failed for lack of memory, the file is not stored either: it could not be found by its code id. */
static enum sl_code publish_put(struct uploads_publishing *p, struct member_job *job, struct sl_arena *arena)
{
    static const char *const info_prefixes[STORE_PARTS] = {"codeinfo/", "try/codeinfo/"};
    struct sl_str name = uploads_name(arena, p->archive->scope, store_prefixes[p->part], job->member->key);
    const char *type = uploads_media_type(p->archive->config, job->member->key, arena);
    uint64_t begin = clock_mono_ns();
    enum sl_code code = name.data && type && !job->info.failed
                            ? store_put(name, &job->work, &job->meta, type, &job->error)
                            : sl_fail(&job->error, SL_BUSY, "out of memory");
    metric_observe_since(METRIC_TECKEN_PUT, begin, NULL);
    struct sl_str names[2];
    size_t count = 0;
    for (int i = 0; i < 2; i++) /* empty ones: no code id, or no metadata at all */
        if (job->names[i].size)
            names[count++] = uploads_name(arena, p->archive->scope, info_prefixes[p->part], job->names[i]);
    for (size_t i = 0; code == SL_OK && i < count; i++)
        if (!names[i].data)
            code = sl_fail(&job->error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        code = store_put_text(names, count, sl_buf_view(&job->info), &job->error);
    return code;
}

/* Writes a member to a temporary file and stores it; sets its stored_size and location. The temporary file is removed in any case. SL_OK,
 * SL_BUSY when out of memory, or the error of the converter or the store. */
static enum sl_code publish_write(struct uploads_publishing *p, struct member_job *job)
{
    struct sl_arena arena = {0};
    uint64_t begin = clock_mono_ns();
    job->arena = &arena;
    member_write(job);
    if (job->member->is_packed)
        metric_observe_since(METRIC_TECKEN_GZIP, begin, NULL);
    enum sl_code code = job->code;
    if (code == SL_OK)
        code = publish_put(p, job, &arena);
    job->member->stored_size = job->meta.size;
    store_tmp_file_discard_on_pool(&job->work);
    if (code == SL_OK && !store_location(sl_str(p->archive->scope), p->part, job->member->key, p->archive->arena,
                                         &job->member->location))
        code = sl_fail(&job->error, SL_BUSY, "out of memory");
    sl_buf_free(&job->info);
    sl_arena_free(&arena);
    return code;
}

/* Stores a member, unless the store has the same file already; sets its `skipped` and `is_update`. */
static enum sl_code publish_member(struct uploads_publishing *p, struct archive_member *member, struct sl_error *error)
{
    enum uploads_found found = UPLOADS_FOUND_NONE;
    /* size as a gzip file: header, compressed data, and 8 bytes with CRC and size */
    enum sl_code code =
        uploads_find_duplicate(p->archive->config, p->archive->scope, p->part, member->key, member->entry->size,
                               member->md5, member->used + STORE_GZIP_HEADER_SIZE + 8, &found, error);
    member->skipped = found == UPLOADS_FOUND_SAME;
    member->is_update = found == UPLOADS_FOUND_OTHER;
    if (code != SL_OK || member->skipped)
        return code;
    struct member_job *job = calloc(1, sizeof *job);
    if (!job)
        return sl_fail(error, SL_BUSY, "out of memory");
    *job = (struct member_job){.archive = p->archive, .member = member, .work.fd = -1};
    code = publish_write(p, job);
    *error = job->error;
    free(job);
    return code;
}

/* Counts a stored, skipped or failed member in the metrics that Mozilla's service has. */
static void count_member(const struct archive_member *member, enum sl_code code, uint64_t begin_ns)
{
    metric_observe_since(METRIC_TECKEN_FILE_UPLOAD, begin_ns, NULL);
    metric_add(code != SL_OK     ? METRIC_TECKEN_FILES_FAILED
               : member->skipped ? METRIC_TECKEN_FILES_SKIPPED
                                 : METRIC_TECKEN_FILES_UPLOADED,
               1, NULL, NULL, NULL);
    if (code == SL_OK && member->skipped)
        metric_add(member->is_packed ? METRIC_TECKEN_SKIPPED_COMPRESSED : METRIC_TECKEN_SKIPPED_UNCOMPRESSED, 1, NULL,
                   NULL, NULL);
}

/* A worker fiber, one of several: takes members one by one and stores them, until none is left or one has failed. */
static void publish_some(void *arg)
{
    struct uploads_publishing *p = arg;
    while (p->next < p->archive->count && p->code == SL_OK && !fiber_cancelled()) {
        struct sl_error error = {0};
        uint64_t begin = clock_mono_ns();
        struct archive_member *member = &p->archive->members[p->next++];
        enum sl_code code = publish_member(p, member, &error);
        count_member(member, code, begin);
        if (code == SL_OK)
            continue;
        if (p->code == SL_OK)
            p->error = error;
        p->code = p->code == SL_OK ? code : p->code;
    }
}

/* ---- archives ---- */

/* Invalidates the cache entries about the members that were stored (those with a location), on this node and others. */
static enum sl_code publish_invalidate(const struct archive *archive, struct sl_error *error)
{
    size_t count = 0;
    struct cache_file *files = calloc(archive->count + 1, sizeof *files);
    if (!files)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; i < archive->count; i++)
        if (archive->members[i].location.data)
            files[count++] = (struct cache_file){SL_STR("uploads"), archive->members[i].location};
    enum sl_code code = count ? cache_invalidate(files, count, error) : SL_OK;
    free(files);
    return code;
}

enum sl_code uploads_publish_one(struct archive *archive, enum store_part part, struct member_job *job,
                                 struct sl_error *error)
{
    struct uploads_publishing p = {.archive = archive, .part = part};
    struct sl_error invalidation;
    enum sl_code code = publish_put(&p, job, archive->arena);
    if (code == SL_OK &&
        !store_location(sl_str(archive->scope), part, job->member->key, archive->arena, &job->member->location))
        code = sl_fail(&job->error, SL_BUSY, "out of memory");
    /* SL_INTERNAL: other processes could not be notified; this one has invalidated its entries in any case */
    if (code == SL_OK && publish_invalidate(archive, &invalidation) == SL_INTERNAL)
        log_warn("uploads", "cannot notify other processes of an uploaded file; they may answer with its older version",
                 LOG_ERR(&invalidation));
    if (error != &job->error) /* the caller may pass the job's own error */
        *error = job->error;
    return code;
}

enum sl_code uploads_publish(struct archive *archive, enum store_part part, struct sl_error *error)
{
    struct uploads_publishing p = {.archive = archive, .part = part};
    unsigned workers = archive->config->workers ? archive->config->workers : loop_pool_threads();
    size_t helpers = archive->count < workers ? archive->count : workers;
    /* - 1: this fiber works too; false: cancelled */
    bool whole = fiber_run_workers(publish_some, &p, helpers ? helpers - 1 : 0);
    struct sl_error invalidation;
    enum sl_code code = publish_invalidate(archive, &invalidation); /* also after a failure: some members are stored */
    if (code != SL_OK && code != SL_CANCELLED) /* this process has invalidated its entries in any case */
        log_warn("uploads", "cannot notify other processes of uploaded files; they may answer with older versions",
                 LOG_ERR(&invalidation));
    if (p.code != SL_OK) {
        *error = p.error;
        return p.code;
    }
    return whole ? SL_OK : sl_fail(error, SL_CANCELLED, "cancelled");
}
