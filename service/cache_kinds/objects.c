/* The kind `objects`: files from the sources, decompressed, and validated by parsing. */
#include "cache_kinds/impl.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/log.h"
#include "core/metrics.h"
#include "object/archive.h"

struct object_check {
    int fd;
    const struct object_id *wanted;
    bool same_id, same_checksum;
    char found[SL_DEBUG_ID_TEXT];
};

/* Reduces a fat file to the requested object. Moves the slice to the start piece by piece, as it may overlap its destination. */
static enum sl_code keep_slice(int fd, const struct sl_archive *archive, size_t index, struct sl_error *error)
{
    enum { PIECE = 1 << 20 };
    struct sl_bytes slice;
    if (!sl_archive_slice(archive, index, &slice))
        return sl_fail(error, SL_MALFORMED, "invalid MachO file: a slice lies outside of the file");
    uint8_t *piece = malloc(PIECE);
    off_t from = slice.data - archive->bytes.data;
    enum sl_code code = piece ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    for (size_t at = 0; code == SL_OK && at < slice.size;) {
        size_t size = slice.size - at < PIECE ? slice.size - at : PIECE;
        if (pread(fd, piece, size, from + (off_t)at) != (ssize_t)size ||
            pwrite(fd, piece, size, (off_t)at) != (ssize_t)size)
            code = sl_fail(error, SL_INTERNAL, "cannot write a cache file: %s", strerror(errno));
        at += size;
    }
    free(piece);
    if (code == SL_OK && ftruncate(fd, (off_t)slice.size) != 0)
        code = sl_fail(error, SL_INTERNAL, "cannot write a cache file: %s", strerror(errno));
    return code;
}

/* The checksum by which .NET clients identify a Portable PDB: the hash of the file before the compiler set its id, that is with
 * the 20 bytes of the id zeroed (PE/COFF Specification, additional information for .NET, "PDB Checksum"). */
enum { SHA256_SIZE = 32, ID_SIZE = 20 };

static bool hash_without_id(struct sl_bytes file, uint64_t id_offset, uint8_t digest[SHA256_SIZE])
{
    static const uint8_t zeros[ID_SIZE];
    uint64_t behind = id_offset + ID_SIZE;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
              EVP_DigestUpdate(context, file.data, id_offset) == 1 && EVP_DigestUpdate(context, zeros, ID_SIZE) == 1 &&
              EVP_DigestUpdate(context, file.data + behind, file.size - behind) == 1 &&
              EVP_DigestFinal_ex(context, digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    return ok;
}

/* True also if it cannot be compared: another type of file, or another algorithm. */
static bool checksum_matches(struct sl_bytes file, struct sl_str checksum)
{
    const struct sl_str algorithm = SL_STR("SHA256:");
    uint8_t wanted[SHA256_SIZE], found[SHA256_SIZE];
    size_t size;
    if (checksum.size < algorithm.size ||
        !sl_str_equal_nocase((struct sl_str){checksum.data, algorithm.size}, algorithm) ||
        !sl_hex_decode((struct sl_str){checksum.data + algorithm.size, checksum.size - algorithm.size}, wanted,
                       sizeof wanted, &size) ||
        size != sizeof wanted || sl_format_detect(file) != SL_FORMAT_PORTABLEPDB)
        return true;
    struct sl_arena arena = {0};
    struct sl_ppdb *ppdb;
    struct sl_ppdb_info info;
    bool known = sl_ppdb_open(file, &arena, &ppdb, &info, NULL) == SL_OK && info.id_offset &&
                 hash_without_id(file, info.id_offset, found);
    sl_arena_free(&arena);
    return !known || memcmp(wanted, found, sizeof wanted) == 0;
}

static enum sl_code check_object(struct conversion *conversion, struct sl_bytes bytes, void *arg,
                                 struct sl_error *error)
{
    struct object_check *check = arg;
    struct sl_object_wanted wanted = {check->wanted->has_debug_id ? &check->wanted->debug_id : NULL,
                                      check->wanted->code_id};
    struct sl_object_limits limits = current_object_limits();
    limits.budget = &conversion->budget;
    struct sl_archive archive;
    struct sl_object *object;
    size_t index = 0;
    enum sl_code code = sl_archive_open(bytes, &archive, error);
    if (code == SL_OK)
        code = sl_archive_find(&archive, &wanted, &limits, &object, &index, error);
    if (code != SL_OK)
        return code;
    const struct sl_object_info *info = sl_object_info(object);
    bool comparable = sl_debug_id_has_uuid(&info->debug_id) && (wanted.debug_id || wanted.code_id.size);
    check->same_id = !comparable || sl_object_matches(info, &wanted);
    check->same_checksum = checksum_matches(bytes, check->wanted->debug_checksum);
    sl_debug_id_format(&info->debug_id, check->found);
    sl_object_close(object);
    return archive.is_fat ? keep_slice(check->fd, &archive, index, error) : SL_OK;
}

/* Only logs and counts a wrong id or checksum: stores with such files are in use. */
static void report_mismatch(const struct object_request *request, const struct object_check *check)
{
    struct sl_arena arena = {0};
    metric_add(METRIC_DOWNLOAD_ID_MISMATCH, 1, origin_label(&arena, request->file->source), NULL, NULL);
    sl_arena_free(&arena);
    log_info("objects",
             check->same_id ? "the file's checksum is not the one asked for" : "the file's id is not the one asked for",
             LOG_SLSTR("source", request->file->source->id), LOG_SLSTR("location", request->file->location),
             LOG_STR("debug_id", check->found));
}

static enum sl_code objects_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                    struct sl_error *error)
{
    const struct object_request *request = context;
    enum sl_code code = origin_fetch(request->file, tmp->fd, error);
    if (code != SL_OK)
        return code;
    struct object_check check = {.fd = tmp->fd, .wanted = request->id};
    code = conversion_check(tmp->fd, request->file->location, NULL, check_object, &check, error);
    if (code == SL_OK && (!check.same_id || !check.same_checksum))
        report_mismatch(request, &check);
    return code;
}

/* Sentry's own buckets are shared already. */
static bool shareable(const void *context)
{
    const struct object_request *request = context;
    const struct source *source = request->file->source;
    return source->type != SOURCE_GCS || !sl_str_starts(source->id, SL_STR("sentry:"));
}

/* Handles of files, as for any kind, plus the bundles among them that are open. */
static uint64_t objects_capacity(const struct config *config)
{
    return config->default_capacity + OPEN_BUNDLES_BYTES;
}

static const unsigned older[] = {1, 0};

const struct cache_kind kind_objects = {
    .name = "objects",
    .section = CACHE_DOWNLOADED,
    .version = 2,
    .fallbacks = older,
    .previous = older,
    .format1_up_to = 1,
    .capacity = objects_capacity,
    .compute = objects_compute,
    .queue_name = object_request_queue_name,
    .retain = object_request_retain,
    .shareable = shareable,
    .load = source_load,
    .free_loaded = source_unload,
};
