/* Adds an uploaded debug file to the store: it is refused, new, a duplicate, or worse than the file that is stored. */
#include "debug_file_store/impl.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache/cache.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "search/search.h"
#include "symbfile_store/symbfile_store.h"

enum { SHA1_SIZE = 20, SHA256_BYTES = 32 };

struct debug_file_adding {
    const struct config *config;
    struct debug_file_upload *upload;
    struct sl_mapping mapping; /* mapping of the uploaded file */
    uint8_t sha1[SHA1_SIZE], sha256[SHA256_BYTES];
    struct upload_check_result found;
    struct sl_str *paths; /* below objects/: where the file was stored, or was already */
    size_t path_count;
    bool is_new, is_known; /* is_new: it was stored under a path; is_known: it was under a path already */
};

/* ---- receiving ---- */

struct tmp_job {
    struct store_tmp_file *file;
    struct symbfile_failure failure;
};

/* On the pool: creates a temporary file of the store. If the store is a directory, first checks that there is room, by the limits of the
 * symbfile store, which is in the same directory; a bucket does not fill up. SL_UNSUPPORTED: the directory is full. */
static enum sl_code make_tmp(void *arg, struct sl_error *error)
{
    struct tmp_job *job = arg;
    bool is_directory = debug_files_area()->root != NULL;
    if (!is_directory || symbfile_store_make_room(&job->failure))
        return store_area_tmp_file(debug_files_area(), job->file, error);
    return sl_fail(error, job->failure.status == 507 /* full */ ? SL_UNSUPPORTED : SL_BUSY, "%.200s",
                   job->failure.text);
}

int debug_file_status(enum sl_code code)
{
    static const int statuses[SL_CODES] = {
        [SL_NOT_FOUND] = 404, [SL_MALFORMED] = 400, [SL_UNSUPPORTED] = 507, [SL_BUSY] = 503};
    return statuses[code] ? statuses[code] : 500;
}

enum sl_code debug_file_tmp(struct store_tmp_file *file, struct sl_error *error)
{
    struct tmp_job job = {.file = file};
    *file = (struct store_tmp_file){.fd = -1};
    return pool_call(POOL_IO, make_tmp, &job, error);
}

struct debug_file_writing {
    int fd;
    struct sl_bytes bytes;
};

/* On the pool: writes the bytes to a temporary file. A failed write is reported as a full disk, its usual cause. */
static enum sl_code write_to_tmp(void *arg, struct sl_error *error)
{
    const struct debug_file_writing *w = arg;
    return sl_write_all(w->fd, w->bytes)
               ? SL_OK
               : sl_fail(error, SL_UNSUPPORTED, "cannot write the uploaded file; the upload store is probably full");
}

enum sl_code debug_file_copy(struct sl_bytes bytes, struct store_tmp_file *file, struct sl_error *error)
{
    enum sl_code code = debug_file_tmp(file, error);
    if (code != SL_OK)
        return code;
    struct debug_file_writing writing = {file->fd, bytes};
    code = pool_call(POOL_IO | POOL_HEAVY, write_to_tmp, &writing, error);
    if (code != SL_OK)
        store_tmp_file_discard_on_pool(file);
    return code;
}

/* On the pool: computes SHA-1 and SHA-256 of the uploaded file. */
static enum sl_code hash_file(void *arg, struct sl_error *error)
{
    struct debug_file_adding *a = arg;
    struct sl_bytes bytes = a->mapping.bytes;
    bool good = EVP_Digest(bytes.data, bytes.size, a->sha1, NULL, EVP_sha1(), NULL) == 1 &&
                EVP_Digest(bytes.data, bytes.size, a->sha256, NULL, EVP_sha256(), NULL) == 1;
    return good ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* ---- ids ---- */

/* True if the claimed id, a build id or a debug id as Breakpad writes it, is one of the object's ids; also if nothing is claimed or the
 * object has no ids. */
static bool any_id_fits(struct sl_str claimed, const struct checked_object *object, struct sl_arena *arena)
{
    struct sl_debug_id id;
    bool has_id = sl_debug_id_has_uuid(&object->debug_id);
    if (!claimed.size || (!has_id && !*object->code_id))
        return true;
    return sl_str_equal(sl_code_id_normalise(arena, claimed), sl_str(object->code_id)) ||
           (has_id && sl_debug_id_parse_breakpad(claimed, &id) && memcmp(id.uuid, object->debug_id.uuid, 16) == 0);
}

/* True if none of the ids that the client claims contradicts those of the object. An id that only one of them has is no contradiction. */
static bool claim_fits(const struct debug_file_upload *u, const struct checked_object *object)
{
    struct sl_str own = sl_str(object->code_id), claimed = u->claimed_code_id;
    bool has_id = sl_debug_id_has_uuid(&object->debug_id);
    if (u->has_claimed_id && has_id &&
        memcmp(u->claimed_id.uuid, object->debug_id.uuid, 16) != 0) /* the age may differ */
        return false;
    if (!any_id_fits(u->claimed_any, object, u->arena))
        return false;
    return !claimed.size || !own.size || sl_str_equal(claimed, own);
}

/* Gives an object without ids the claimed one: as its debug id if it has the length of one as Breakpad writes it, else as its code id. */
static void use_claimed_id(struct sl_str claimed, struct checked_object *object, struct sl_arena *arena)
{
    enum { DEBUG_ID_DIGITS = 33 }; /* 32 of the UUID, 1 of the age */
    struct sl_str code_id = sl_code_id_normalise(arena, claimed);
    if (claimed.size == DEBUG_ID_DIGITS && sl_debug_id_parse_breakpad(claimed, &object->debug_id))
        return;
    if (code_id.size < CHECKED_CODE_ID)
        snprintf(object->code_id, sizeof object->code_id, SL_STR_FMT, SL_STR_ARG(code_id));
}

/* Refuses a file if the claimed ids contradict those of all its objects. Gives objects that lack an id the claimed one, or else the debug
 * id that the file's name has. */
static enum sl_code settle_ids(struct debug_file_adding *a, struct sl_error *error)
{
    const struct debug_file_upload *u = a->upload;
    char own[SL_DEBUG_ID_TEXT];
    bool fits = false; /* it is enough if one object of a fat file fits */
    for (uint32_t i = 0; i < a->found.count; i++)
        fits = fits || claim_fits(u, &a->found.objects[i]);
    sl_debug_id_format(&a->found.objects[0].debug_id, own);
    if (!fits)
        return sl_fail(error, SL_MALFORMED,
                       "the file has the debug id %s and the code id %s, which are not the given ones", own,
                       *a->found.objects[0].code_id ? a->found.objects[0].code_id : "(none)");
    for (uint32_t i = 0; i < a->found.count; i++) {
        struct checked_object *object = &a->found.objects[i];
        if (!sl_debug_id_has_uuid(&object->debug_id) && u->has_claimed_id)
            object->debug_id = u->claimed_id;
        else if (!sl_debug_id_has_uuid(&object->debug_id) && u->has_name_id)
            object->debug_id = u->name_id;
        /* claimed_any: an id of which the client does not say whether it is a code id or a debug id */
        if (!*object->code_id && !sl_debug_id_has_uuid(&object->debug_id) && u->claimed_any.size)
            use_claimed_id(u->claimed_any, object, u->arena);
        if (!*object->code_id && u->claimed_code_id.size < CHECKED_CODE_ID)
            snprintf(object->code_id, sizeof object->code_id, SL_STR_FMT, SL_STR_ARG(u->claimed_code_id));
    }
    return SL_OK;
}

/* Returns the ids of an object of a checked file, by which it is stored and found. */
static struct object_id make_id(const struct checked_object *object)
{
    return (struct object_id){.type = object->program,
                              .code_id = sl_str(object->code_id),
                              .debug_id = object->debug_id,
                              .has_debug_id = sl_debug_id_has_uuid(&object->debug_id)};
}

/* ---- what is there ---- */

/* Returns the object of a checked file that has the debug id; the first one if none has it. */
static const struct checked_object *matching(const struct upload_check_result *found, const struct object_id *id)
{
    for (uint32_t i = 0; i < found->count; i++)
        if (id->has_debug_id && sl_debug_id_equal(&found->objects[i].debug_id, &id->debug_id))
            return &found->objects[i];
    return &found->objects[0];
}

struct comparing {
    struct sl_bytes stored, received; /* both have the same size */
    bool same;
};

/* Compares the stored file with the received one. On the pool, as it reads both (up to their first difference). */
static void compare_files(void *arg)
{
    struct comparing *c = arg;
    c->same = memcmp(c->stored.data, c->received.data, c->stored.size) == 0;
}

struct stored_file { /* the file that is stored under a name */
    bool exists;
    struct store_meta meta; /* valid if it exists */
    bool same;              /* it has the contents of the received file */
    enum debug_file_quality quality;
};

/* Reads the file that is stored under a name: sets its quality, and whether it has the contents of the upload `a` (NULL: not compared).
 * SL_NOT_FOUND: there is none or, if `stored->exists`, it is damaged. */
static enum sl_code rate_stored(struct sl_str name, const struct object_id *id, const struct debug_file_adding *a,
                                struct stored_file *stored, struct sl_error *error)
{
    struct sl_mapping mapping;
    struct upload_check_result *found = calloc(1, sizeof *found);
    *stored = (struct stored_file){.quality = QUALITY_CODE};
    if (!found)
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = store_area_open(debug_files_area(), name, &mapping, &stored->meta, error);
    if (code == SL_OK) {
        stored->exists = true;
        code = check_file(-1, mapping.bytes, found, error);
        if (code == SL_OK)
            stored->quality = matching(found, id)->quality; /* in a fat file, that of the object with this id */
        if (code == SL_OK && a && mapping.bytes.size == a->mapping.bytes.size) {
            struct comparing c = {.stored = mapping.bytes, .received = a->mapping.bytes};
            code = pool_run(POOL_IO | POOL_HEAVY, compare_files, &c, error);
            stored->same = code == SL_OK && c.same;
        }
        pool_unmap(&mapping);
    }
    free(found);
    return code == SL_MALFORMED ? SL_NOT_FOUND : code; /* a damaged file may be replaced by any other */
}

/* Sets `*quality` to that of the file with this id and type in the configured sources. False if they have none, or do not answer. The
 * source of uploads, which is the last one, is not asked. Types from FILE_UUIDMAP on (mappings) are never asked for. */
static bool rate_configured(const struct config *config, const struct object_id *id, enum file_type type,
                            struct sl_arena *arena, enum debug_file_quality *quality)
{
    /* "global": what the search caches is for all clients */
    struct search_scope where = {config->sources, config->source_count, SL_STR("global"), arena};
    struct file_lookup file = {.code = SL_NOT_FOUND};
    struct upload_check_result *found = SL_ARENA_NEW(arena, struct upload_check_result);
    struct sl_error error;
    if (where.source_count && where.sources[where.source_count - 1].layout == LAYOUT_UPLOADS)
        where.source_count--;
    if (!where.source_count || !found || type >= FILE_UUIDMAP)
        return false;
    search_find_file(&where, id, &type, 1, &file);
    if (file.code != SL_OK)
        return false;
    bool good = check_file(-1, file.item->mapping.bytes, found, &error) == SL_OK;
    if (good)
        *quality = matching(found, id)->quality; /* in a fat file, that of the object with this id */
    cache_release(file.item);
    return good;
}

/* Lists the paths below objects/ under which a file with this id and type is stored. Returns their number; 0: it has no id by which it
 * could be found; SIZE_MAX when out of memory. */
static size_t list_paths(struct sl_arena *arena, const struct object_id *id, enum file_type type,
                         struct sl_str paths[LAYOUT_MAX_PATHS])
{
    struct object_id wanted = *id;
    /* layout_paths makes the path of the code id for ELF and that of the debug id for PE. For a source bundle with the type ELF it makes
     * both, as those are found by either id. */
    if (type == FILE_SOURCEBUNDLE || type == FILE_BREAKPAD)
        wanted.type = type == FILE_SOURCEBUNDLE && id->code_id.size ? OBJECT_ELF : OBJECT_PE;
    if (type == FILE_PROGUARD) /* such a file is found only by its debug id */
        wanted = (struct object_id){.debug_id = id->debug_id, .has_debug_id = id->has_debug_id};
    size_t count = layout_paths(arena, LAYOUT_UPLOADS, CASING_DEFAULT, &wanted, type, paths);
    if (count == SIZE_MAX)
        return count;
    /* a source bundle is stored under all its names, any other file under the first one */
    return type == FILE_SOURCEBUNDLE ? count : count ? 1 : 0;
}

enum sl_code debug_files_have(const struct object_id *id, struct sl_arena *arena, bool *found, struct sl_error *error)
{
    *found = false;
    for (int type = 0; type < FILE_TYPES; type++) {
        struct sl_str paths[LAYOUT_MAX_PATHS];
        struct store_meta meta;
        size_t count = list_paths(arena, id, (enum file_type)type, paths);
        if (!count)
            continue;
        /* A file is stored under all its paths, so it is enough to look for the first. */
        struct sl_str name = count == SIZE_MAX ? (struct sl_str){NULL, 0} : object_name(arena, paths[0]);
        enum sl_code code = name.data ? store_area_stat(debug_files_area(), name, false, &meta, error)
                                      : sl_fail(error, SL_BUSY, "out of memory");
        *found = code == SL_OK;
        if (*found || code != SL_NOT_FOUND)
            return code;
    }
    return SL_OK;
}

enum sl_code debug_file_best(const struct config *config, const struct object_id *id, enum file_type type,
                             struct sl_arena *arena, enum debug_file_quality *quality, struct sl_error *error)
{
    struct sl_str paths[LAYOUT_MAX_PATHS];
    struct stored_file stored;
    enum debug_file_quality other;
    enum sl_code code = sl_fail(error, SL_NOT_FOUND, "neither the upload store nor a source has a file with these ids");
    size_t count = list_paths(arena, id, type, paths);
    if (count) {
        struct sl_str name = count == SIZE_MAX ? (struct sl_str){NULL, 0} : object_name(arena, paths[0]);
        if (!name.data)
            code = sl_fail(error, SL_BUSY, "out of memory");
        if (name.data)
            code = rate_stored(name, id, NULL, &stored, error);
        if (code == SL_OK)
            *quality = stored.quality;
    }
    if (code != SL_OK && code != SL_NOT_FOUND) /* the store cannot be read */
        return code;
    if (code == SL_OK && *quality == QUALITY_LINES) /* the best quality: sources need not be asked */
        return code;
    if (rate_configured(config, id, type, arena, &other) && (code != SL_OK || other > *quality)) {
        *quality = other;
        code = SL_OK;
    }
    return code;
}

/* ---- storing ---- */

/* Makes all processes that share the cache drop what they have cached of the file at this path of the store. A failure is logged; SL_BUSY
 * when out of memory. */
static enum sl_code invalidate(struct sl_str path, struct sl_arena *arena)
{
    struct sl_error error;
    struct remote_file file = {.source = debug_files_source()};
    if (!origin_set_path(&file, path, arena))
        return SL_BUSY;
    struct cache_file changed = {SL_STR("uploads"), file.uri};
    enum sl_code code = cache_invalidate(&changed, 1, &error);
    if (code != SL_OK && code != SL_CANCELLED)
        log_warn("uploads", "cannot notify other processes of an uploaded file; they may answer with its older version",
                 LOG_ERR(&error));
    return code;
}

struct debug_file_copying {
    struct sl_bytes bytes;
    struct store_tmp_file file;
};

/* On the pool: copies the bytes to a new temporary file of the store. A failed write is reported as a full disk, its usual cause. */
static enum sl_code copy_file(void *arg, struct sl_error *error)
{
    struct debug_file_copying *c = arg;
    enum sl_code code = store_area_tmp_file(debug_files_area(), &c->file, error);
    if (code == SL_OK && !sl_write_all(c->file.fd, c->bytes))
        code = sl_fail(error, SL_UNSUPPORTED, "cannot write the uploaded file; the upload store is probably full");
    return code;
}

/* Stores the upload under a name, in place of `stored`. The first call for an upload stores the received file itself, after which file->fd
 * is -1; later calls store copies. `*conflict`: nothing was stored, as another node has stored a file there since `stored` was read. */
static enum sl_code publish(struct debug_file_adding *a, struct sl_str name, const struct stored_file *stored,
                            bool *conflict, struct sl_error *error)
{
    struct debug_file_copying copy = {.bytes = a->mapping.bytes, .file = {.fd = -1}};
    struct store_meta meta = {.size = a->mapping.bytes.size, .original_size = a->mapping.bytes.size};
    struct store_tmp_file *file = a->upload->file;
    if (file->fd < 0) {
        enum sl_code code = pool_call(POOL_IO | POOL_HEAVY, copy_file, &copy, error);
        file = &copy.file;
        if (code != SL_OK) {
            store_tmp_file_discard_on_pool(file);
            return code;
        }
    }
    return store_area_replace(debug_files_area(), name, file, &meta, "application/octet-stream",
                              stored->exists ? &stored->meta : NULL, conflict, error);
}

/* Stores the upload under a name. `*taken` is false if a better file is there; `*same` is true if a file with the same contents is: then
 * nothing is stored. If another node stores a file at the same time, tries again with that one as the stored file. */
static enum sl_code put_better(struct debug_file_adding *a, const struct object_id *id, enum debug_file_quality quality,
                               struct sl_str name, bool *taken, bool *same, struct sl_error *error)
{
    enum { MAX_CONFLICTS = 10 };
    for (int i = 0; i < MAX_CONFLICTS; i++) {
        struct stored_file stored;
        bool conflict = false;
        enum sl_code code = rate_stored(name, id, a, &stored, error);
        *same = stored.same;
        *taken = code == SL_NOT_FOUND || (code == SL_OK && stored.quality <= quality);
        if (!*taken || *same)
            return code;
        code = publish(a, name, &stored, &conflict, error);
        if (code != SL_OK || !conflict)
            return code;
    }
    return sl_fail(error, SL_BUSY, "other uploads keep changing the same file; try again later");
}

/* Stores the upload under a path below objects/, unless a better file or the same is there; `*taken` is false if a better one is. Locks the
 * path's directory, so that two processes do not compare and replace the file at once. Invalidates what was cached of a replaced file. */
static enum sl_code place_at(struct debug_file_adding *a, const struct object_id *id, enum debug_file_quality quality,
                             struct sl_str path, bool *taken, struct sl_error *error)
{
    struct sl_arena *arena = a->upload->arena;
    bool same = false;
    int lock = -1;
    struct sl_str name = object_name(arena, path);
    struct sl_buf lock_name = {0};
    sl_buf_printf(&lock_name, "uploads/locks/%.2s", path.data); /* "ab" of the path "ab/cdef/..." */
    struct sl_str locked = sl_buf_move_to_arena(&lock_name, arena);
    enum sl_code code = name.data && locked.data ? store_area_lock(debug_files_area(), locked, &lock, error)
                                                 : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        code = put_better(a, id, quality, name, taken, &same, error);
    a->is_new = a->is_new || (code == SL_OK && *taken && !same);
    a->is_known = a->is_known || same;
    sl_close(lock); /* unlocks the directory */
    if (code == SL_OK && *taken && !same)
        invalidate(path, arena);
    if (code == SL_OK && *taken)
        a->paths[a->path_count++] = path;
    return code;
}

/* Stores the upload under the paths of one of its objects. If the store or a configured source has a better file of its type, a debug file
 * that also has code is tried once more as an executable: the stored one may be missing or worse. */
static enum sl_code place(struct debug_file_adding *a, const struct checked_object *object, struct sl_error *error)
{
    /* 0 for all other types */
    static const enum file_type executables[FILE_TYPES] = {
        [FILE_ELF_DEBUG] = FILE_ELF_CODE, [FILE_MACH_DEBUG] = FILE_MACH_CODE, [FILE_WASM_DEBUG] = FILE_WASM_CODE};
    struct sl_str paths[LAYOUT_MAX_PATHS];
    struct object_id id = make_id(object);
    struct sl_arena *arena = a->upload->arena;
    enum file_type type = object->type;
    size_t count = list_paths(arena, &id, type, paths);
    if (!count)
        return sl_fail(error, SL_MALFORMED, "the file has no id, and none was given: it could never be found");
    for (;;) {
        if (count == SIZE_MAX)
            return sl_fail(error, SL_BUSY, "out of memory");
        enum debug_file_quality other;
        bool taken = object->quality == QUALITY_LINES || /* the best quality: sources need not be asked */
                     !rate_configured(a->config, &id, type, arena, &other) || other <= object->quality;
        enum sl_code code = SL_OK;
        for (size_t i = 0; code == SL_OK && taken && i < count; i++)
            code = place_at(a, &id, object->quality, paths[i], &taken, error);
        if (code != SL_OK || taken || !object->has_code || !executables[type])
            return code;
        type = executables[type];
        count = list_paths(arena, &id, type, paths);
    }
}

/* ---- the record ---- */

/* Returns the bytes as hex digits, in the arena; data NULL when out of memory. */
static struct sl_str hex_text(const uint8_t *bytes, size_t size, struct sl_arena *arena)
{
    struct sl_buf text = {0};
    sl_buf_hex(&text, bytes, size);
    return sl_buf_move_to_arena(&text, arena);
}

/* Returns the text behind the last slash or backslash, as some clients send whole paths; cut to 255 bytes, the longest file name. */
static struct sl_str base_name(struct sl_str path)
{
    enum { LONGEST = 255 };
    for (size_t i = path.size; i > 0; i--)
        if (path.data[i - 1] == '/' || path.data[i - 1] == '\\') {
            path = (struct sl_str){path.data + i, path.size - i};
            break;
        }
    path.size = path.size < LONGEST ? path.size : LONGEST;
    return path.data ? path : SL_STR("");
}

/* Fills in the record of the upload. Its ids, CPU, kind and features are those of the first object, though a fat file has more. False when
 * out of memory. */
static bool fill_record(const struct debug_file_adding *a)
{
    static const char *const kind_words[] = {
        [SL_KIND_NONE] = "none", [SL_KIND_REL] = "rel", [SL_KIND_EXE] = "exe", [SL_KIND_LIB] = "lib",
        [SL_KIND_DUMP] = "dump", [SL_KIND_DBG] = "dbg", [SL_KIND_SRC] = "src", [SL_KIND_OTHER] = "other"};
    struct debug_file_upload *u = a->upload;
    const struct checked_object *object = &a->found.objects[0];
    char id[SL_DEBUG_ID_TEXT] = "";
    if (sl_debug_id_has_uuid(&object->debug_id))
        sl_debug_id_format(&object->debug_id, id);
    const char *debug_id = sl_arena_strndup(u->arena, id, strlen(id)),
               *code_id = sl_arena_strndup(u->arena, object->code_id, strlen(object->code_id));
    struct sl_str name = base_name(u->name.size ? u->name : sl_str(a->found.name));
    const char *name_copy = sl_arena_strndup(u->arena, name.data, name.size);
    struct sl_str *features = SL_ARENA_ARRAY(u->arena, struct sl_str, 4);
    u->record = (struct debug_file_record){.sha1 = hex_text(a->sha1, sizeof a->sha1, u->arena),
                                           .sha256 = hex_text(a->sha256, sizeof a->sha256, u->arena),
                                           .name = {name_copy, name.size},
                                           .type = sl_str(file_type_name(object->type)),
                                           .cpu = sl_str(object->arch ? sl_arch_name(object->arch) : "any"),
                                           .debug_id = sl_str(debug_id ? debug_id : ""),
                                           .code_id = sl_str(code_id ? code_id : ""),
                                           .kind = sl_str(kind_words[object->kind]),
                                           .size = a->mapping.bytes.size,
                                           .created_s = (uint64_t)clock_wall_s(),
                                           .features = features,
                                           .paths = a->paths,
                                           .path_count = a->path_count};
    if (!features || !name_copy || !debug_id || !code_id || !u->record.sha1.data || !u->record.sha256.data)
        return false;
    if (object->has_debug_info)
        features[u->record.feature_count++] = SL_STR("debug");
    if (object->has_symbols)
        features[u->record.feature_count++] = SL_STR("symtab");
    if (object->has_unwind_info)
        features[u->record.feature_count++] = SL_STR("unwind");
    if (object->has_sources)
        features[u->record.feature_count++] = SL_STR("sources");
    return true;
}

/* Stores the record and, before it, the entry by which the file is found by name. A file that was uploaded before keeps the time of its
 * first upload. As this time is a part of the entry's name, many uploads of a file under one name make only one entry. */
static enum sl_code record(struct debug_file_upload *u, struct sl_error *error)
{
    struct debug_file_record before;
    enum sl_code code = record_get(u->record.sha1, u->arena, &before, error);
    if (code != SL_OK && code != SL_NOT_FOUND)
        return code;
    if (code == SL_OK && before.created_s)
        u->record.created_s = before.created_s;
    code = names_put(&u->record, error);
    return code == SL_OK ? record_put(&u->record, error) : code;
}

/* ---- all ---- */

/* Hashes, checks and stores the uploaded file, which is mapped (a->mapping), and writes its record. If no path took the file, as better
 * files are everywhere, there is no record; a duplicate gets one too, as its record may be missing. */
static enum sl_code add_mapped(struct debug_file_adding *a, struct sl_error *error)
{
    struct debug_file_upload *u = a->upload;
    enum sl_code code = pool_call(POOL_IO | POOL_HEAVY, hash_file, a, error);
    struct sl_str sha1 = hex_text(a->sha1, sizeof a->sha1, u->arena);
    if (code == SL_OK && u->wanted_sha1.size && !sl_str_equal(sha1, u->wanted_sha1))
        code = sl_fail(error, SL_MALFORMED, "Checksum mismatch: the file has the SHA-1 " SL_STR_FMT, SL_STR_ARG(sha1));
    if (code == SL_OK)
        code = check_file(u->file->fd, (struct sl_bytes){NULL, 0}, &a->found, error);
    if (code == SL_OK)
        code = settle_ids(a, error);
    a->paths = SL_ARENA_ARRAY(u->arena, struct sl_str, CHECKED_OBJECTS * LAYOUT_MAX_PATHS);
    if (code == SL_OK && !a->paths)
        code = sl_fail(error, SL_BUSY, "out of memory");
    for (uint32_t i = 0; code == SL_OK && i < a->found.count; i++)
        code = place(a, &a->found.objects[i], error);
    if (code == SL_OK && !fill_record(a))
        code = sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        u->result = a->is_new ? DEBUG_FILE_NEW : a->is_known ? DEBUG_FILE_DUPLICATE : DEBUG_FILE_WORSE;
    return code == SL_OK && a->path_count ? record(u, error) : code;
}

/* Sets result and HTTP status of the upload. Counts and logs the upload if it has succeeded, or if the file was refused (SL_MALFORMED);
 * other failures say nothing about the file. */
static void conclude(struct debug_file_upload *u, enum sl_code code, uint64_t size)
{
    static const char *const words[] = {"new", "duplicate", "worse", "refused"}; /* of enum debug_file_result */
    if (code == SL_MALFORMED) {
        u->result = DEBUG_FILE_REFUSED;
        u->status = 400;
    } else if (code != SL_OK && !u->status) { /* 413 is set already */
        u->status = debug_file_status(code);
    }
    if (code != SL_OK && code != SL_MALFORMED)
        return;
    metric_add(METRIC_STORE_UPLOADS, 1, u->door, words[u->result], NULL);
    metric_add(METRIC_STORE_UPLOAD_BYTES, size, u->door, words[u->result], NULL);
    log_info("uploads", "received a debug file", LOG_STR("door", u->door), LOG_STR("result", words[u->result]),
             LOG_SLSTR("name", base_name(u->name)), LOG_SLSTR("debug_id", u->record.debug_id), LOG_U64("bytes", size));
}

enum sl_code debug_file_add(const struct config *config, struct debug_file_upload *u, struct sl_error *error)
{
    struct debug_file_adding *a = calloc(1, sizeof *a);
    enum sl_code code = a ? pool_map_fd(u->file->fd, &a->mapping, error) : sl_fail(error, SL_BUSY, "out of memory");
    u->record = (struct debug_file_record){.debug_id = SL_STR("")}; /* conclude logs the debug id */
    u->status = 0;
    uint64_t size = code == SL_OK ? a->mapping.bytes.size : 0;
    if (code == SL_OK && size > config->uploads_store.max_file_size) {
        code = sl_fail(error, SL_UNSUPPORTED, "the file is larger than allowed (store.max_file_size)");
        u->status = 413;
    } else if (code == SL_OK) {
        a->config = config;
        a->upload = u;
        code = add_mapped(a, error);
    }
    if (a && a->mapping.bytes.data)
        pool_unmap(&a->mapping);
    store_tmp_file_discard_on_pool(u->file);
    free(a);
    conclude(u, code, size);
    return code;
}

enum sl_code debug_file_remove(const struct object_id *id, enum file_type type, struct sl_arena *arena,
                               struct sl_error *error)
{
    struct sl_str paths[LAYOUT_MAX_PATHS];
    size_t count = list_paths(arena, id, type, paths);
    enum sl_code code = count == SIZE_MAX ? sl_fail(error, SL_BUSY, "out of memory") : SL_OK;
    for (size_t i = 0; code == SL_OK && i < count; i++) {
        struct sl_str name = object_name(arena, paths[i]);
        code =
            name.data ? store_area_delete(debug_files_area(), name, error) : sl_fail(error, SL_BUSY, "out of memory");
        if (code == SL_OK)
            invalidate(paths[i], arena);
    }
    return code;
}
