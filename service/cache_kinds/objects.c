/* The kind `objects`: files from the sources, decompressed, and validated by parsing. */
#include "cache_kinds/impl.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/log.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "object/archive.h"

/* The checksum by which .NET clients identify a Portable PDB: the hash of the file before the compiler set its id, that is with
 * the 20 bytes of the id zeroed (PE/COFF Specification, additional information for .NET, "PDB Checksum"). */
enum { ID_SIZE = 20 };

/* Computes the "PDB Checksum" of a Portable PDB: the hash of the file with zeros in place of its id. False when OpenSSL fails, that is when
 * out of memory: then nothing is compared. */
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

/* Reads the requested checksum, "SHA256:" and a hash in hex; false if there is none or it has another form, so that it is not compared. */
static bool read_checksum(struct sl_str checksum, uint8_t wanted[SHA256_SIZE])
{
    const struct sl_str algorithm = SL_STR("SHA256:");
    size_t size;
    return checksum.size >= algorithm.size &&
           sl_str_equal_nocase((struct sl_str){checksum.data, algorithm.size}, algorithm) &&
           sl_hex_decode((struct sl_str){checksum.data + algorithm.size, checksum.size - algorithm.size}, wanted,
                         SHA256_SIZE, &size) &&
           size == SHA256_SIZE;
}

/* False if the file is a Portable PDB whose checksum is not the wanted one. True also for other files, and if the checksum cannot be
 * computed. */
static bool checksum_matches(struct sl_bytes file, const uint8_t wanted[SHA256_SIZE])
{
    uint8_t found[SHA256_SIZE];
    if (sl_format_detect(file) != SL_FORMAT_PORTABLEPDB)
        return true;
    struct sl_arena arena = {0};
    struct sl_ppdb *ppdb;
    struct sl_ppdb_info info;
    bool known = sl_ppdb_open(file, &arena, &ppdb, &info, NULL) == SL_OK && info.id_offset &&
                 hash_without_id(file, info.id_offset, found);
    sl_arena_free(&arena);
    return !known || memcmp(wanted, found, SHA256_SIZE) == 0;
}

/* Stores in the result where slice number `index` is in the fat Mach-O file. */
static enum sl_code set_slice(const struct sl_archive *archive, size_t index, struct object_check_result *outcome,
                              struct sl_error *error)
{
    struct sl_bytes slice;
    if (!sl_archive_slice(archive, index, &slice))
        return sl_fail(error, SL_MALFORMED, "invalid MachO file: a slice lies outside of the file");
    outcome->is_fat = true;
    outcome->slice_offset = (uint64_t)(slice.data - archive->bytes.data);
    outcome->slice_size = slice.size;
    return SL_OK;
}

/* Runs in a worker: checks that the file has a valid object, and compares its id and checksum with the wanted ones. Of a fat file, checks
 * the slice with the wanted id, or the first readable one if no id is wanted. */
static enum sl_code check_object(struct conversion *conversion, const struct converter_call *call, void *result,
                                 struct sl_error *error)
{
    const struct object_check_options *options = converter_options(call);
    struct object_check_result *outcome = result;
    struct sl_bytes bytes = converter_input_bytes(call, INPUT_FILE),
                    code_id = converter_input_bytes(call, INPUT_CODE_ID);
    struct sl_object_wanted wanted = {options->has_debug_id ? &options->debug_id : NULL,
                                      {(const char *)code_id.data, code_id.size}};
    struct sl_object_limits limits = make_object_limits(&options->limits, &conversion->budget);
    struct sl_archive archive;
    struct sl_object *object;
    size_t index = 0;
    enum sl_code code = sl_archive_open(bytes, &archive, error);
    if (code == SL_OK)
        code = sl_archive_find(&archive, &wanted, &limits, &object, &index, error);
    if (code != SL_OK)
        return code;
    const struct sl_object_info *info = sl_object_info(object);
    /* ids are compared only if one is wanted and the object has a debug id (not all zeros) */
    bool comparable = sl_debug_id_has_uuid(&info->debug_id) && (wanted.debug_id || wanted.code_id.size);
    outcome->same_id = !comparable || sl_object_matches(info, &wanted);
    outcome->same_checksum = !options->has_checksum || checksum_matches(bytes, options->checksum);
    outcome->debug_id = info->debug_id;
    sl_object_close(object);
    return archive.is_fat ? set_slice(&archive, index, outcome, error) : SL_OK;
}

static bool check_result(const void *result)
{
    const struct object_check_result *outcome = result;
    return converter_bool_is_valid(&outcome->same_id) && converter_bool_is_valid(&outcome->same_checksum) &&
           converter_bool_is_valid(&outcome->is_fat);
}

const struct converter converter_object_check = {"object_check", sizeof(struct object_check_options),
                                                 sizeof(struct object_check_result), check_object, check_result};

/* ---- the kind ---- */

/* where the wanted slice is in the fat file `fd`, in bytes */
struct file_slice {
    int fd;
    uint64_t offset, size;
};

/* Pool work: keeps only the requested object of a fat file. Copies the slice to the front of the file, from its beginning on, as source and
 * destination may overlap, and truncates the file behind it. */
static enum sl_code keep_slice(void *arg, struct sl_error *error)
{
    enum { PIECE = 1 << 20 };
    const struct file_slice *slice = arg;
    uint8_t *piece = malloc(PIECE);
    enum sl_code code = piece ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    for (uint64_t at = 0; code == SL_OK && at < slice->size;) {
        size_t size = slice->size - at < PIECE ? (size_t)(slice->size - at) : PIECE;
        if (pread(slice->fd, piece, size, (off_t)(slice->offset + at)) != (ssize_t)size ||
            pwrite(slice->fd, piece, size, (off_t)at) != (ssize_t)size)
            code = sl_fail(error, SL_INTERNAL, "cannot move the object within its cache file: %s", strerror(errno));
        at += size;
    }
    free(piece);
    if (code == SL_OK && ftruncate(slice->fd, (off_t)slice->size) != 0)
        code = sl_fail(error, SL_INTERNAL, "cannot truncate a cache file: %s", strerror(errno));
    return code;
}

/* Has a worker check the downloaded file; of a fat Mach-O file, keeps only the slice that the worker chose. */
static enum sl_code run_check(const struct object_request *request, int fd, struct object_check_result *outcome,
                              struct sl_error *error)
{
    const struct object_id *id = request->id;
    struct object_check_options options = {
        .limits = current_reader_limits(), .has_debug_id = id->has_debug_id, .debug_id = id->debug_id};
    options.has_checksum = read_checksum(id->debug_checksum, options.checksum);
    struct conversion_description about = {.size = get_file_size(fd), .location = request->file->location};
    struct converter_call call = {.options = CONVERTER_OPTIONS(options), .out = -1}; /* -1: it writes nothing */
    converter_add_file(&call, INPUT_FILE, fd);
    if (id->code_id.size)
        converter_add_text(&call, INPUT_CODE_ID, id->code_id);
    enum sl_code code = conversion_run(&about, &converter_object_check, &call, outcome, error);
    struct file_slice slice = {fd, outcome->slice_offset, outcome->slice_size};
    bool fits = outcome->slice_offset <= about.size && outcome->slice_size <= about.size - outcome->slice_offset;
    /* a hostile file may have taken over the worker, and so its result */
    if (code == SL_OK && outcome->is_fat && !fits)
        return sl_fail(error, SL_MALFORMED, "the process that read this file chose an object beyond the file's end");
    return code == SL_OK && outcome->is_fat ? pool_call(POOL_IO | POOL_HEAVY, keep_slice, &slice, error) : code;
}

/* Logs and counts a downloaded file whose id or checksum is not the wanted one. It is used nevertheless: some stores in use have such
 * files. */
static void report_mismatch(const struct object_request *request, const struct object_check_result *outcome)
{
    char found[SL_DEBUG_ID_TEXT];
    struct sl_arena arena = {0};
    sl_debug_id_format(&outcome->debug_id, found);
    metric_add(METRIC_DOWNLOAD_ID_MISMATCH, 1, origin_label(&arena, request->file->source), NULL, NULL);
    sl_arena_free(&arena);
    log_info("objects",
             outcome->same_id ? "the downloaded file's checksum is not the one asked for"
                              : "the downloaded file's id is not the one asked for",
             LOG_SLSTR("source", request->file->source->id), LOG_SLSTR("location", request->file->location),
             LOG_STR("debug_id", found));
}

_Static_assert(ORIGIN_NOTE_BYTES == (int)CACHE_NOTE_BYTES, "notes of sources become notes of entries");

/* Downloads the file into the entry and checks that it is an object with the wanted id and checksum. A wrong id or checksum is only
 * reported: some stores in use have such files. tmp->note, which is stored with the entry, receives header fields of the response that
 * clients of the debuginfod protocol get with the file. */
static enum sl_code objects_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                    struct sl_error *error)
{
    const struct object_request *request = context;
    enum sl_code code = origin_fetch_noting(request->file, tmp->fd, tmp->note, error);
    if (code != SL_OK)
        return code;
    struct object_check_result outcome;
    code = run_check(request, tmp->fd, &outcome, error);
    if (code == SL_OK && (!outcome.same_id || !outcome.same_checksum))
        report_mismatch(request, &outcome);
    return code;
}

/* True if the entry may be copied to the shared cache. False for files of Sentry's own GCS buckets, which all machines can read anyway. */
static bool shareable(const void *context)
{
    const struct object_request *request = context;
    const struct source *source = request->file->source;
    return source->type != SOURCE_GCS || !sl_str_starts(source->id, SL_STR("sentry:"));
}

/* Returns the memory limit of the kind: the usual one, for mapped files, plus that for source bundles, which are open while in memory. */
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
