/* Joins the chunks of files, each in a fiber of its own that outlives the request: clients ask again each second. */
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

struct assembly { /* allocated in its own arena */
    struct sl_link link;
    struct sl_arena arena;
    const struct config *config; /* held while it runs */
    struct assembly_file file;
    bool is_done, is_listed;
    uint64_t done_ms; /* of the loop's clock */
    int references;   /* of the list, and of requests that wait */
    enum sl_code code;
    struct sl_error error;
    struct debug_file_record record;
    struct fiber_wait_list waiting;
};

enum { MAX_RUNNING = 8, MAX_WAIT_MS = 2000, KEPT_MS = 60 * 1000 };

/* Assemblies that run, wait for their turn, or have ended and whose result no client has got yet: clients ask each
 * second. */
static struct sl_list assemblies;
static unsigned running;
static struct fiber_wait_list turns;

/* Releases a reference. The assembly lies in its own arena, so the arena is copied before it is freed. */
static void assembly_release(struct assembly *a)
{
    struct sl_arena arena = a->arena;
    if (--a->references == 0)
        sl_arena_free(&arena);
}

/* Takes the assembly off the list, if it is on it, and releases the reference of the list. */
static void unlist(struct assembly *a)
{
    if (!a->is_listed)
        return;
    a->is_listed = false;
    sl_list_remove(&assemblies, &a->link);
    assembly_release(a);
}

/* Drops results that nobody has asked for. */
static void drop_old(void)
{
    struct assembly *next;
    for (struct assembly *a = SL_LIST_FIRST(&assemblies, struct assembly, link); a; a = next) {
        next = SL_LIST_NEXT(a, link);
        if (a->is_done && loop_now_ms() - a->done_ms > KEPT_MS)
            unlist(a);
    }
}

static struct assembly *find_assembly(struct sl_str sha1)
{
    for (struct assembly *a = SL_LIST_FIRST(&assemblies, struct assembly, link); a; a = SL_LIST_NEXT(a, link))
        if (sl_str_equal(a->file.sha1, sha1))
            return a;
    return NULL;
}

/* ---- joining ---- */

struct chunk_appending {
    int fd;
    struct sl_bytes bytes;
};

static enum sl_code append_chunk(void *arg, struct sl_error *error)
{
    const struct chunk_appending *job = arg;
    return sl_write_all(job->fd, job->bytes) ? SL_OK : store_fail_write(error, errno, "the upload store");
}

/* Appends the chunks to the file, in their order. SL_MALFORMED beyond store.max_file_size; SL_UNSUPPORTED when the disk
 * is full. */
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

/* Reads the id from names like `/proguard/<uuid>.txt` and `<uuid>.bcsymbolmap`. */
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

struct sha1_job {
    struct sl_bytes bytes;
    struct sl_buf hex;
};

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

/* Checks the SHA-1 of an artifact bundle and stores it; consumes the file. */
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

/* Joins the chunks and stores the file, which debug_file_add and add_bundle consume. An id that the client says, or that
 * is in the name, is handed on, to be compared with that of the file. */
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
        store_tmp_file_discard_on_pool(&file);
    a->record = upload.record;
    return code;
}

/* The fiber of an assembly: waits until fewer than MAX_RUNNING run, joins the chunks, and wakes the requests that wait. */
static void run_assembly(void *arg)
{
    struct assembly *a = arg;
    a->code = SL_OK;
    while (running >= MAX_RUNNING && a->code == SL_OK)
        if (fiber_wait_on(&turns, UINT64_MAX) == FIBER_CANCELLED)
            a->code = sl_fail(&a->error, SL_CANCELLED, "cancelled");
    running++;
    if (a->code == SL_OK)
        a->code = assemble(a, &a->error);
    running--;
    fiber_wake_one(&turns);
    if (a->code != SL_OK && a->code != SL_MALFORMED && a->code != SL_CANCELLED)
        log_error("uploads", "cannot store an uploaded file", LOG_SLSTR("name", a->file.name), LOG_ERR(&a->error));
    a->is_done = true;
    a->done_ms = loop_now_ms();
    config_release((struct config *)(uintptr_t)a->config);
    fiber_wake_all(&a->waiting);
}

static bool copy_text(struct sl_arena *arena, struct sl_str *text)
{
    const char *kept = sl_arena_strndup(arena, text->data ? text->data : "", text->size);
    text->data = kept;
    return kept != NULL;
}

/* Copies the file into the assembly, as it outlives the request. */
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

/* Returns the assembly with a reference for the caller; NULL when out of memory or fibers. */
static struct assembly *begin_assembly(struct service *service, const struct assembly_file *file)
{
    struct sl_arena arena = {0};
    struct assembly *a = SL_ARENA_NEW(&arena, struct assembly);
    drop_old();
    if (!a)
        return NULL;
    *a = (struct assembly){.arena = arena, .references = 2}; /* of the list, and of the caller */
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
    a->references = 1;
    assembly_release(a);
    return NULL;
}

/* ---- answers ---- */

struct chunk_sizes {             /* of the chunks of a file */
    struct sl_map by_sha1;       /* size plus 1 of each chunk; NULL: the store does not have it */
    uint64_t distinct, repeated; /* bytes of all distinct chunks, and of the further mentions of them */
};

/* Adds a chunk of the list to `sizes`, or to status->missing if the store does not have it. The store is asked once for a chunk, however
 * often a list has it. */
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
    *size = code == SL_OK ? (void *)(uintptr_t)(meta.size + 1) : NULL;
    return code;
}

/* Says why a list of chunks is not joined, of which the store has all; NULL: it may be. Programs that are padded, mostly with zeros,
 * repeat chunks. Without a limit a client that sends one chunk could fill the disk by a list that repeats it. */
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

/* Lists the chunks that the store does not have. If it has all, but they are too much for one file, the state is SENTRY_ERROR. */
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

/* Copies a record out of the arena of an assembly. */
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

/* Waits for the assembly, whose reference it takes over, until `until_ms` of the loop's clock, and sets `status` to its
 * state. A result is given once: the assembly then leaves the list, and a later request asks the store. */
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

/* Asks the store for the file. SL_NOT_FOUND: it has to be joined, and the store has all its chunks; else `status` is complete. */
static enum sl_code ask_store(const struct config *config, const struct assembly_file *file, struct sl_arena *arena,
                              struct sentry_status *status, struct sl_error *error)
{
    struct artifact_release release = {file->release, file->dist};
    enum sl_code code = file->is_bundle ? artifact_bundle_link(file->sha1, &release, error)
                                        : debug_files_find(file->sha1, arena, &status->record, error);
    if (code == SL_OK)
        status->state = SENTRY_OK;
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
