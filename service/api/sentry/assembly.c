/* Joins the chunks of files, each in a fiber of its own, which goes on when the request has ended: clients ask again each second. */
#include "api/sentry/sentry.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>
#include <unistd.h>

#include "base/list.h"
#include "base/map.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/pool.h"
#include "debug_file_store/artifacts.h"
#include "store/store.h"

const char *const sentry_state_words[] = {"not_found", "created", "assembling", "ok", "error"};

struct assembly { /* the joining of one file; allocated in its own arena */
    struct sl_link link;
    struct sl_arena arena;
    const struct config *config; /* a reference, until it is done */
    struct assembly_file file;
    bool is_done, is_listed; /* the result is set; it is in `assemblies` */
    uint64_t done_ms;        /* when it was done, by the loop's clock */
    int references;          /* one of the list, and one of each request that waits */
    enum sl_code code;
    struct sl_error error;
    struct debug_file_record record;
    struct fiber_wait_list waiting;
};

/* MAX_RUNNING: files that are joined at a time. MAX_WAIT_MS: how long a request waits. KEPT_MS: how long a result is kept for a
 * client. */
enum { MAX_RUNNING = 8, MAX_WAIT_MS = 2000, KEPT_MS = 60 * 1000 };

/* Assemblies that run, wait for their turn, or have a result that no client has got yet. */
static struct sl_list assemblies;
static unsigned running;
static struct fiber_wait_list turns; /* fibers that wait until fewer than MAX_RUNNING run */

/* Releases a reference, and frees the assembly with the last one. The struct of its arena lies in that arena's own memory, so a copy of
 * the struct is used to free it. */
static void assembly_release(struct assembly *a)
{
    struct sl_arena arena = a->arena;
    if (--a->references == 0)
        sl_arena_free(&arena);
}

/* Removes the assembly from the list, and releases the list's reference. Does nothing if another request has removed it. */
static void unlist(struct assembly *a)
{
    if (!a->is_listed)
        return;
    a->is_listed = false;
    sl_list_remove(&assemblies, &a->link);
    assembly_release(a);
}

/* Drops results that no client has asked for within KEPT_MS. */
static void drop_old(void)
{
    struct assembly *next;
    for (struct assembly *a = SL_LIST_FIRST(&assemblies, struct assembly, link); a; a = next) {
        next = SL_LIST_NEXT(a, link);
        if (a->is_done && loop_now_ms() - a->done_ms > KEPT_MS)
            unlist(a);
    }
}

/* Returns the assembly in the list that joins the file with this SHA-1; NULL if there is none. */
static struct assembly *find_assembly(struct sl_str sha1)
{
    for (struct assembly *a = SL_LIST_FIRST(&assemblies, struct assembly, link); a; a = SL_LIST_NEXT(a, link))
        if (sl_str_equal(a->file.sha1, sha1))
            return a;
    return NULL;
}

/* ---- joining ---- */

struct chunk_appending { /* arguments of append_chunk */
    int fd;
    struct sl_bytes bytes;
};

/* Pool work: writes a chunk to the end of the file. */
static enum sl_code append_chunk(void *arg, struct sl_error *error)
{
    const struct chunk_appending *job = arg;
    return sl_write_all(job->fd, job->bytes) ? SL_OK : store_fail_write(error, errno, "the upload store");
}

/* Appends the chunks to the file in their order. SL_MALFORMED if the file becomes larger than store.max_file_size; SL_UNSUPPORTED
 * when the disk is full. */
static enum sl_code join_chunks(struct assembly *a, struct store_tmp_file *file, struct sl_error *error)
{
    uint64_t size = 0;
    enum sl_code code = SL_OK;
    for (size_t i = 0; code == SL_OK && i < a->file.chunk_count; i++) {
        struct sl_mapping mapping;
        struct store_meta meta;
        struct sl_str name = sentry_chunk_name(&a->arena, a->file.chunks[i]);
        code = name.data ? store_area_open(debug_files_area(), name, &mapping, &meta, error)
                         : sl_fail(error, SL_BUSY, "out of memory");
        if (code != SL_OK)
            break;
        size += mapping.bytes.size;
        struct chunk_appending job = {file->fd, mapping.bytes};
        if (size > a->config->uploads_store.max_file_size)
            code = sl_fail(error, SL_MALFORMED, "the file is larger than allowed (store.max_file_size)");
        else
            code = pool_call(POOL_IO | POOL_HEAVY, append_chunk, &job, error);
        pool_unmap(&mapping);
    }
    return code;
}

/* Reads the id in file names such as `/proguard/<uuid>.txt` and `<uuid>.bcsymbolmap`. False if the name has none. */
static bool read_name_id(struct sl_str name, struct sl_debug_id *id)
{
    enum { UUID_TEXT = 36 };
    for (size_t i = name.size; i > 0; i--)
        if (name.data[i - 1] == '/') {
            name = (struct sl_str){name.data + i, name.size - i};
            break;
        }
    return name.size > UUID_TEXT && name.data[UUID_TEXT] == '.' &&
           sl_debug_id_parse((struct sl_str){name.data, UUID_TEXT}, id);
}

struct sha1_job { /* arguments and result of hash_bundle */
    struct sl_bytes bytes;
    struct sl_buf hex;
};

/* Pool work: computes the SHA-1 of a bundle as hex text. */
static enum sl_code hash_bundle(void *arg, struct sl_error *error)
{
    struct sha1_job *job = arg;
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (EVP_Digest(job->bytes.data, job->bytes.size, digest, &size, EVP_sha1(), NULL) != 1)
        return sl_fail(error, SL_BUSY, "out of memory");
    sl_buf_hex(&job->hex, digest, size);
    return SL_OK;
}

/* Checks the SHA-1 of an artifact bundle and stores it for its release. The store takes `file`; on failure it is discarded. */
static enum sl_code add_bundle(const struct assembly *a, struct store_tmp_file *file,
                               const struct artifact_release *release, struct sl_error *error)
{
    struct sl_mapping mapping;
    struct sha1_job job = {.hex = {0}};
    enum sl_code code = pool_map_fd(file->fd, &mapping, error);
    if (code == SL_OK) {
        job.bytes = mapping.bytes;
        code = pool_call(POOL_IO | POOL_HEAVY, hash_bundle, &job, error);
        pool_unmap(&mapping);
    }
    if (code == SL_OK && !sl_str_equal(sl_buf_view(&job.hex), a->file.sha1))
        code = sl_fail(error, SL_MALFORMED, "Checksum mismatch");
    sl_buf_free(&job.hex);
    if (code == SL_OK)
        return artifact_bundle_add(file, a->file.sha1, release, error);
    store_tmp_file_discard_on_pool(file);
    return code;
}

/* Joins the chunks and stores the file; the temporary file is used up in any case. An id that the client sends, or that is in the
 * file's name, is passed to debug_file_add, which compares it with the file's own. */
static enum sl_code assemble(struct assembly *a, struct sl_error *error)
{
    struct store_tmp_file file;
    struct debug_file_upload upload = {
        .door = "sentry", .file = &file, .name = a->file.name, .wanted_sha1 = a->file.sha1, .arena = &a->arena};
    upload.has_claimed_id = a->file.debug_id.size && sl_debug_id_parse(a->file.debug_id, &upload.claimed_id);
    upload.has_name_id = read_name_id(a->file.name, &upload.name_id);
    enum sl_code code = debug_file_tmp(&file, error);
    if (code == SL_OK)
        code = join_chunks(a, &file, error);
    struct artifact_release release = {a->file.release, a->file.dist};
    if (code == SL_OK && a->file.is_bundle)
        code = add_bundle(a, &file, &release, error);
    else if (code == SL_OK)
        code = debug_file_add(a->config, &upload, error);
    else
        store_tmp_file_discard_on_pool(&file); /* does nothing if debug_file_tmp has failed */
    a->record = upload.record;
    return code;
}

/* The fiber of an assembly: waits while MAX_RUNNING others run, joins the chunks, and wakes the requests that wait for it. Logs its
 * error, except SL_MALFORMED and SL_CANCELLED. */
static void run_assembly(void *arg)
{
    struct assembly *a = arg;
    a->code = SL_OK;
    while (running >= MAX_RUNNING && a->code == SL_OK)
        if (fiber_wait_on(&turns, UINT64_MAX) == FIBER_CANCELLED)
            a->code = sl_fail(&a->error, SL_CANCELLED, "cancelled");
    running++; /* also if cancelled: then nothing is joined, and the lines below let the next one run */
    if (a->code == SL_OK)
        a->code = assemble(a, &a->error);
    running--;
    fiber_wake_one(&turns);
    if (a->code != SL_OK && a->code != SL_MALFORMED && a->code != SL_CANCELLED)
        log_error("uploads", "cannot store a file that sentry-cli has uploaded; the client gets an error",
                  LOG_SLSTR("name", a->file.name), LOG_ERR(&a->error));
    a->is_done = true;
    a->done_ms = loop_now_ms();
    config_release((struct config *)(uintptr_t)a->config);
    fiber_wake_all(&a->waiting);
}

/* Replaces the text by a copy in the arena; data NULL becomes empty. False when out of memory. */
static bool copy_text(struct sl_arena *arena, struct sl_str *text)
{
    const char *kept = sl_arena_strndup(arena, text->data ? text->data : "", text->size);
    text->data = kept;
    return kept != NULL;
}

/* Copies what the client sent about the file into the assembly, which outlives the request. False when out of memory. */
static bool copy_file(struct assembly *a, const struct assembly_file *file)
{
    a->file = *file;
    a->file.chunks = SL_ARENA_ARRAY(&a->arena, struct sl_str, file->chunk_count + 1);
    bool good = a->file.chunks && copy_text(&a->arena, &a->file.sha1) && copy_text(&a->arena, &a->file.name) &&
                copy_text(&a->arena, &a->file.debug_id) && copy_text(&a->arena, &a->file.release) &&
                copy_text(&a->arena, &a->file.dist);
    for (size_t i = 0; good && i < file->chunk_count; i++) {
        a->file.chunks[i] = file->chunks[i];
        good = copy_text(&a->arena, &a->file.chunks[i]);
    }
    return good;
}

/* Starts to join a file, after dropping old results. Returns its assembly, with a reference for the caller; NULL when out of memory or
 * fibers. */
static struct assembly *begin_assembly(struct service *service, const struct assembly_file *file)
{
    struct sl_arena arena = {0};
    struct assembly *a = SL_ARENA_NEW(&arena, struct assembly);
    drop_old();
    if (!a)
        return NULL;
    *a = (struct assembly){.arena = arena, .references = 2}; /* one of the list, and one of the caller */
    if (copy_file(a, file)) {
        a->config = config_retain(service->config);
        sl_list_prepend(&assemblies, &a->link);
        a->is_listed = true;
        if (fiber_start(&service->jobs_group, run_assembly, a))
            return a;
        sl_list_remove(&assemblies, &a->link);
        a->is_listed = false;
        config_release((struct config *)(uintptr_t)a->config);
    }
    a->references = 1; /* it is not in the list, and nobody else has seen it */
    assembly_release(a);
    return NULL;
}

/* ---- answers ---- */

struct chunk_sizes {       /* sizes of the chunks of one file */
    struct sl_map by_sha1; /* size plus 1 of each chunk; NULL: the store does not have it */
    /* Bytes of the different chunks; bytes of their second and further occurrences in the file. */
    uint64_t distinct, repeated;
};

/* Adds a chunk of the file to `sizes`, or to status->missing if the store does not have it. Asks the store only once for each chunk. */
static enum sl_code add_chunk(struct chunk_sizes *sizes, struct sl_str sha1, struct sl_arena *arena,
                              struct sentry_status *status, struct sl_error *error)
{
    struct store_meta meta;
    bool is_new;
    void **size = sl_map_find_or_add(&sizes->by_sha1, sha1, &is_new);
    if (!size)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (!is_new) {
        sizes->repeated += *size ? (uintptr_t)*size - 1 : 0;
        return SL_OK;
    }
    struct sl_str name = sentry_chunk_name(arena, sha1);
    enum sl_code code = name.data ? store_area_stat(debug_files_area(), name, false, &meta, error)
                                  : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_NOT_FOUND) {
        status->missing[status->missing_count++] = sha1;
        return SL_OK;
    }
    sizes->distinct += code == SL_OK ? meta.size : 0;
    *size = code == SL_OK ? (void *)(uintptr_t)(meta.size + 1) : NULL; /* + 1: NULL means that the chunk is missing */
    return code;
}

/* Returns why the chunks, all of which the store has, must not be joined; NULL: they may be. Files with padding do repeat chunks;
 * but without a limit a client could fill the disk by one chunk and a list that repeats it. */
static const char *refuse_sizes(const struct chunk_sizes *sizes, uint64_t max_file_size)
{
    enum { MAX_FACTOR = 4, ALWAYS_ALLOWED = 256 << 20 };
    if (sizes->distinct + sizes->repeated > max_file_size)
        return "the file is larger than allowed (store.max_file_size)";
    if (sizes->repeated > ALWAYS_ALLOWED && sizes->repeated / MAX_FACTOR > sizes->distinct)
        return "the chunks are repeated too often: beyond 256 MiB, a file may repeat at most 4 times the size of its "
               "different chunks";
    return NULL;
}

/* Lists the chunks that the store does not have in status->missing. If it has all, but they must not be joined, sets the state
 * SENTRY_ERROR. */
static enum sl_code list_missing(const struct config *config, const struct assembly_file *file, struct sl_arena *arena,
                                 struct sentry_status *status, struct sl_error *error)
{
    struct chunk_sizes sizes = {.distinct = 0};
    enum sl_code code = SL_OK;
    status->missing = SL_ARENA_ARRAY(arena, struct sl_str, file->chunk_count + 1);
    if (!status->missing)
        return sl_fail(error, SL_BUSY, "out of memory");
    for (size_t i = 0; code == SL_OK && i < file->chunk_count; i++)
        code = add_chunk(&sizes, file->chunks[i], arena, status, error);
    sl_map_free(&sizes.by_sha1);
    const char *refusal =
        code == SL_OK && !status->missing_count ? refuse_sizes(&sizes, config->uploads_store.max_file_size) : NULL;
    if (refusal) {
        status->state = SENTRY_ERROR;
        status->detail = sl_str(refusal);
    }
    return code;
}

/* Copies the record of an assembly to another arena, as the assembly may be freed. `paths` is not needed for answers and left out. False
 * when out of memory. */
static bool copy_record(struct debug_file_record *to, const struct debug_file_record *from, struct sl_arena *arena)
{
    *to = *from;
    bool good = copy_text(arena, &to->sha1) && copy_text(arena, &to->name) && copy_text(arena, &to->type) &&
                copy_text(arena, &to->cpu) && copy_text(arena, &to->debug_id) && copy_text(arena, &to->code_id) &&
                copy_text(arena, &to->kind);
    to->paths = NULL;
    to->path_count = 0;
    to->features = SL_ARENA_ARRAY(arena, struct sl_str, from->feature_count + 1);
    for (size_t i = 0; to->features && i < from->feature_count; i++)
        to->features[i] = from->features[i]; /* static texts */
    return good && to->features;
}

/* Waits until the assembly is done, but not longer than `until_ms` of the loop's clock, and sets `status`. Releases the caller's
 * reference. A result is answered once: the assembly then leaves the list, and later requests ask the store. */
static enum sl_code wait_for(struct assembly *a, uint64_t until_ms, struct sl_arena *arena,
                             struct sentry_status *status, struct sl_error *error)
{
    enum sl_code code = SL_OK;
    uint64_t now_ms = loop_now_ms();
    status->state = SENTRY_ASSEMBLING;
    if (!a->is_done && now_ms < until_ms && fiber_wait_on(&a->waiting, until_ms - now_ms) == FIBER_CANCELLED)
        code = sl_fail(error, SL_CANCELLED, "cancelled");
    if (code == SL_OK && a->is_done && a->code == SL_OK) {
        status->state = SENTRY_OK;
        if (!a->file.is_bundle && !copy_record(&status->record, &a->record, arena))
            code = sl_fail(error, SL_BUSY, "out of memory");
    } else if (code == SL_OK && a->is_done) {
        status->state = SENTRY_ERROR;
        status->detail = a->code == SL_INTERNAL ? SL_STR("the file could not be stored; see the log of the service")
                                                : sl_str(a->error.message);
        if (!copy_text(arena, &status->detail))
            code = sl_fail(error, SL_BUSY, "out of memory");
    }
    if (a->is_done)
        unlist(a);
    assembly_release(a);
    return code;
}

uint64_t sentry_deadline_ms(void)
{
    return loop_now_ms() + MAX_WAIT_MS;
}

/* Asks the store about a file. SL_NOT_FOUND: it does not have the file, but all its chunks, so that it can be joined. SL_OK: `status` is
 * complete, for example with the chunks that are missing. A stored bundle is also listed for the release of this request
 * (artifact_bundle_link). */
static enum sl_code ask_store(const struct config *config, const struct assembly_file *file, struct sl_arena *arena,
                              struct sentry_status *status, struct sl_error *error)
{
    struct artifact_release release = {file->release, file->dist};
    enum sl_code code = file->is_bundle ? artifact_bundle_link(file->sha1, &release, error)
                                        : debug_files_find(file->sha1, arena, &status->record, error);
    if (code == SL_OK)
        status->state = SENTRY_OK;
    /* without a list of chunks the client only asks: the state is SENTRY_NOT_FOUND, set by the caller */
    if (code != SL_NOT_FOUND || !file->chunk_count)
        return code == SL_NOT_FOUND ? SL_OK : code;
    code = list_missing(config, file, arena, status, error);
    return code == SL_OK && !status->missing_count && status->state != SENTRY_ERROR ? SL_NOT_FOUND : code;
}

enum sl_code sentry_get_status(struct http_exchange *x, const struct assembly_file *file, uint64_t until_ms,
                               struct sentry_status *status, struct sl_error *error)
{
    *status = (struct sentry_status){.state = SENTRY_NOT_FOUND};
    struct assembly *a = find_assembly(file->sha1);
    if (!a) {
        const struct config *config = config_retain(((const struct service *)x->service)->config);
        enum sl_code code = ask_store(config, file, &x->arena, status, error);
        config_release(config);
        if (code != SL_NOT_FOUND)
            return code;
        a = find_assembly(file->sha1); /* another request may have begun meanwhile */
    }
    if (a)
        a->references++;
    else if (!(a = begin_assembly(x->service, file)))
        return sl_fail(error, SL_BUSY, "too many uploads at once");
    struct artifact_release release = {file->release, file->dist};
    enum sl_code code = wait_for(a, until_ms, &x->arena, status, error);
    return code == SL_OK && status->state == SENTRY_OK && file->is_bundle
               ? artifact_bundle_link(file->sha1, &release, error) /* it may have been joined for another release */
               : code;
}
