/* Methods of Pyroscope's service for debug information: a debug file is announced, received (Upload), then checked and stored. */
#include "api/pyroscope/pyroscope.h"

#include "base/json_write.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/pool.h"
#include "core/status.h"

#define METHOD "/debuginfo.v1alpha1.DebuginfoService/"
/* RUNNING_S: an upload that was begun this many seconds ago and is not finished counts as given up. BODY_MAX: bytes of a message.
 * MAX_BUILD_ID: hex digits. MAX_TEXT: bytes of other texts, which are cut. MAX_LISTED: uploads in one list. */
enum { RUNNING_S = 7 * 60, BODY_MAX = 64 << 10, MAX_BUILD_ID = 128, MAX_TEXT = 1024, MAX_LISTED = 10000 };

/* ---- errors: {"code": "not_found", "message": "..."} ---- */

/* Replies with an error; `message` NULL: the words for the status. */
static void reply_with_code(struct http_exchange *x, int status, const char *code, const char *message)
{
    struct sl_buf json = {0};
    struct sl_json_writer w = sl_json_writer(&json);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "code", sl_str(code));
    sl_json_member_str(&w, "message", sl_str(message ? message : status_reason(status)));
    sl_json_end_object(&w);
    http_reply_json(x, status, &json);
}

/* Replies with an error, and with the code that the Connect protocol has for the status. */
static void reply_error(struct http_exchange *x, int status, const char *message)
{
    static const struct {
        int status;
        const char *code;
    } codes[] = {{400, "invalid_argument"},   {401, "unauthenticated"},   {403, "permission_denied"},
                 {404, "not_found"},          {405, "unimplemented"},     {412, "failed_precondition"},
                 {413, "resource_exhausted"}, {415, "unimplemented"},     {429, "resource_exhausted"},
                 {503, "unavailable"},        {507, "resource_exhausted"}};
    const char *code = status < 500 ? "unknown" : "internal";
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == status)
            code = codes[i].code;
    reply_with_code(x, status, code, message);
}

/* Answers a request that is valid but does not fit the state of the upload. The Connect protocol has status 400 for that
 * (https://connectrpc.com/docs/protocol, "Error codes"). */
static void reply_wrong_state(struct http_exchange *x, const char *message)
{
    reply_with_code(x, 400, "failed_precondition", message);
}

/* Answers a failure with `status` or, if that is 0, with the status that uploads have for `code`. A failure inside of the server is
 * logged, and its reason is not answered. Nothing is answered if the client is gone. */
static void reply_failure(struct http_exchange *x, enum sl_code code, int status, const struct sl_error *error)
{
    if (code == SL_CANCELLED)
        return;
    if (!status)
        status = debug_file_status(code);
    if (status == 500)
        log_error("uploads", "cannot answer an upload request of Pyroscope: the store of debug files failed",
                  LOG_ERR(error));
    reply_error(x, status, status == 500 ? "Internal error" : error->message);
}

/* ---- requests ---- */

static bool is_json(const struct http_exchange *x)
{
    return sl_str_starts(http_header(x, "content-type"), SL_STR("application/json"));
}

/* Replies with a message in the form of the request, JSON or protobuf; frees the buffer. */
static void reply_message(struct http_exchange *x, struct sl_buf *body)
{
    if (is_json(x)) {
        http_reply_json(x, 200, body);
        return;
    }
    if (body->failed)
        http_reply_no_memory(x);
    else
        http_reply(x, 200, "application/proto", sl_buf_view(body));
    sl_buf_free(body);
}

/* Normalizes the build id, and cuts the other texts, which become part of records. False if it is no build id; also when out of
 * memory: gnu_build_id.data is then NULL. */
static bool check_file(struct debuginfo_file *file, struct sl_arena *arena)
{
    struct sl_str *texts[] = {&file->go_build_id, &file->otel_file_id, &file->name};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        texts[i]->size = texts[i]->size < MAX_TEXT ? texts[i]->size : MAX_TEXT;
    struct sl_str id = sl_code_id_normalise(arena, file->gnu_build_id);
    /* the same size: normalizing has removed nothing, so there were only hex digits */
    bool good = id.size >= 2 && id.size <= MAX_BUILD_ID && id.size == file->gnu_build_id.size;
    file->gnu_build_id = id;
    return good;
}

/* Reads the body of a request: with `has_file` that of ShouldInitiateUpload, otherwise one with nothing but a build id. Sets `*has_id`
 * to whether its gnu_build_id is a valid one; it may also be empty or malformed. False: the request is answered, or the client is gone. */
static bool read_request(struct http_exchange *x, bool has_file, struct debuginfo_file *file, bool *has_id)
{
    struct sl_bytes body;
    struct sl_error error;
    struct sl_str type = http_header(x, "content-type");
    if (!is_json(x) && !sl_str_starts(type, SL_STR("application/proto"))) {
        reply_error(x, 415, "the media type is neither application/proto nor application/json");
        return false;
    }
    if (http_body(x, &body) != SL_OK)
        return false;
    enum sl_code code = debuginfo_read(body, is_json(x), has_file, &x->arena, file, &error);
    if (code != SL_OK) {
        reply_failure(x, code, 0, &error);
        return false;
    }
    *has_id = check_file(file, &x->arena);
    if (file->gnu_build_id.data)
        return true;
    http_reply_no_memory(x);
    return false;
}

/* ---- records ---- */

/* Returns the name in the store of an upload's record or file; data NULL when out of memory. */
static struct sl_str stored_name(struct sl_arena *arena, const char *prefix, struct sl_str build_id)
{
    struct sl_buf name = {0};
    sl_buf_cstr(&name, prefix);
    sl_buf_str(&name, build_id);
    return sl_buf_move_to_arena(&name, arena);
}

#define RECORD_PREFIX "uploads/pyroscope/"
#define FILE_PREFIX   "chunks/received/pyroscope-"

/* Reads the record of an upload. SL_NOT_FOUND if there is none, or a damaged one. */
static enum sl_code get_record(struct sl_str build_id, struct sl_arena *arena, struct debuginfo_object *object,
                               struct sl_error *error)
{
    struct sl_buf text = {0};
    struct sl_str name = stored_name(arena, RECORD_PREFIX, build_id);
    enum sl_code code =
        name.data ? store_area_read(debug_files_area(), name, &text, error) : sl_fail(error, SL_BUSY, "out of memory");
    struct sl_str record = code == SL_OK ? sl_buf_move_to_arena(&text, arena) : (struct sl_str){NULL, 0};
    sl_buf_free(&text);
    if (code == SL_OK) {
        code = record.data ? debuginfo_read_record(record, arena, object) : SL_BUSY;
        if (code == SL_BUSY)
            return sl_fail(error, code, "out of memory");
    }
    return code == SL_NOT_FOUND || code == SL_MALFORMED
               ? sl_fail(error, SL_NOT_FOUND, "no upload of this build id is known")
               : code;
}

/* Stores the record of an upload. */
static enum sl_code put_record(const struct debuginfo_object *object, struct sl_arena *arena, struct sl_error *error)
{
    struct sl_buf text = {0};
    struct sl_str name = stored_name(arena, RECORD_PREFIX, object->file.gnu_build_id);
    debuginfo_write_record(object, &text);
    enum sl_code code = name.data && !text.failed
                            ? store_area_put_text(debug_files_area(), &name, 1, sl_buf_view(&text), error)
                            : sl_fail(error, SL_BUSY, "out of memory");
    sl_buf_free(&text);
    return code;
}

/* True if the upload is not finished and has begun less than RUNNING_S seconds ago; an older one counts as given up. */
static bool is_running(const struct debuginfo_object *object)
{
    int64_t age = clock_wall_s() - (int64_t)object->started_s;
    return object->state == DEBUGINFO_RUNNING && age < RUNNING_S;
}

/* Removes the file that was received for an upload, after it was stored or refused. */
static void forget_file(struct http_exchange *x, struct sl_str build_id)
{
    struct sl_error error;
    struct sl_str name = stored_name(&x->arena, FILE_PREFIX, build_id);
    if (name.data && store_area_delete(debug_files_area(), name, &error) != SL_OK)
        log_warn("uploads", "cannot remove the received file of a finished upload; it will be removed within a day",
                 LOG_ERR(&error));
}

/* Returns the id by which the store of debug files knows the file. */
static struct object_id make_id(struct sl_str build_id)
{
    return (struct object_id){.type = OBJECT_ELF, .code_id = build_id};
}

/* ---- methods ---- */

/* Decides whether the file is wanted: not while an upload of it runs, and not if the store has a debug file with line numbers. Sets
 * `*reason`, for the answer. */
static enum sl_code decide(struct http_exchange *x, const struct debuginfo_file *file, bool *wanted,
                           const char **reason, struct sl_error *error)
{
    const struct config *config = config_retain(((const struct service *)x->service)->config);
    struct debuginfo_object before = {.state = DEBUGINFO_NONE};
    struct object_id id = make_id(file->gnu_build_id);
    enum debug_file_quality quality = QUALITY_CODE; /* the lowest one */
    *wanted = false;
    enum sl_code code = get_record(file->gnu_build_id, &x->arena, &before, error);
    if (code == SL_OK && is_running(&before)) {
        *reason = "an upload of this build id is in progress";
    } else if (code == SL_OK || code == SL_NOT_FOUND) {
        code = debug_file_best(config, &id, FILE_ELF_DEBUG, &x->arena, &quality, error);
        *wanted = code == SL_NOT_FOUND || (code == SL_OK && quality < QUALITY_LINES);
        *reason = *wanted ? "the debug information is not known yet" : "the debug information is known already";
        code = code == SL_NOT_FOUND ? SL_OK : code;
    }
    config_release((struct config *)(uintptr_t)config);
    return code;
}

/* ShouldInitiateUpload: if the file is wanted, stores a record, with which the upload has begun. A file without a build id is not
 * wanted, but no error; a malformed build id is one. */
static void should_initiate(struct http_exchange *x)
{
    struct debuginfo_file file;
    struct sl_error error = {.code = SL_OK};
    struct sl_buf answer = {0};
    bool has_id, wanted = false;
    const char *reason = "the file has no GNU build id";
    if (!read_request(x, true, &file, &has_id))
        return;
    if (!has_id && file.gnu_build_id.size) {
        reply_error(x, 400, "gnu_build_id is no hex text of 2 to 128 digits");
        return;
    }
    enum sl_code code = has_id ? decide(x, &file, &wanted, &reason, &error) : SL_OK;
    if (code == SL_OK && wanted) {
        struct debuginfo_object object = {
            .file = file, .state = DEBUGINFO_RUNNING, .started_s = (uint64_t)clock_wall_s()};
        code = put_record(&object, &x->arena, &error);
    }
    if (code != SL_OK) {
        reply_failure(x, code, 0, &error);
        return;
    }
    debuginfo_write_decision(is_json(x), wanted, reason, &answer);
    reply_message(x, &answer);
}

/* Stores the body as the received file of an upload. */
static enum sl_code store_body(struct http_exchange *x, struct sl_str build_id, struct sl_bytes body,
                               struct sl_error *error)
{
    struct store_tmp_file file;
    struct store_meta meta = {.size = body.size, .original_size = body.size};
    struct sl_str name = stored_name(&x->arena, FILE_PREFIX, build_id);
    enum sl_code code = name.data ? debug_file_copy(body, &file, error) : sl_fail(error, SL_BUSY, "out of memory");
    return code == SL_OK ? store_area_put(debug_files_area(), name, &file, &meta, "application/octet-stream", error)
                         : code;
}

/* Upload: stores the body, until UploadFinished. 412 unless the upload has begun and is not given up. */
static void upload_file(struct http_exchange *x)
{
    struct debuginfo_file file = {.gnu_build_id = x->captures[0]};
    struct debuginfo_object object;
    struct sl_error error = {.code = SL_OK};
    struct sl_bytes body;
    bool has_id = check_file(&file, &x->arena);
    if (!file.gnu_build_id.data) {
        http_reply_no_memory(x);
        return;
    }
    if (!has_id) {
        reply_error(x, 400, "the path does not end in a GNU build id");
        return;
    }
    enum sl_code code = get_record(file.gnu_build_id, &x->arena, &object, &error);
    if (code == SL_NOT_FOUND || (code == SL_OK && !is_running(&object))) {
        reply_error(x, 412, "no upload of this build id is running; call ShouldInitiateUpload first");
        return;
    }
    if (code == SL_OK && http_body(x, &body) != SL_OK)
        return;
    if (code == SL_OK)
        code = store_body(x, file.gnu_build_id, body, &error);
    if (code == SL_OK)
        http_reply_empty(x, 200);
    else
        reply_failure(x, code, 0, &error);
}

/* Checks the received file of an upload, and adds it to the store of debug files, which takes `copy`. SL_NOT_FOUND: none was
 * received. `*status` is set if debug_file_add has a status of its own for the error. */
static enum sl_code publish_file(struct http_exchange *x, struct debuginfo_object *object, int *status,
                                 struct sl_error *error)
{
    struct store_tmp_file copy;
    struct sl_mapping file;
    struct store_meta meta;
    struct sl_str name = stored_name(&x->arena, FILE_PREFIX, object->file.gnu_build_id);
    enum sl_code code = name.data ? store_area_open(debug_files_area(), name, &file, &meta, error)
                                  : sl_fail(error, SL_BUSY, "out of memory");
    if (code != SL_OK)
        return code == SL_NOT_FOUND
                   ? sl_fail(error, code, "no file has arrived for this build id; send it with Upload first")
                   : code;
    const struct config *config = config_retain(((const struct service *)x->service)->config);
    object->size = file.bytes.size;
    code = debug_file_copy(file.bytes, &copy, error);
    pool_unmap(&file);
    struct debug_file_upload upload = {.door = "pyroscope",
                                       .file = &copy,
                                       .name = object->file.name,
                                       .claimed_code_id = object->file.gnu_build_id,
                                       .arena = &x->arena};
    if (code == SL_OK) {
        code = debug_file_add(config, &upload, error);
        *status = upload.status;
    }
    config_release((struct config *)(uintptr_t)config);
    return code;
}

/* UploadFinished: checks and stores the received file, also after RUNNING_S. If the file is refused (SL_MALFORMED), it and the
 * record are removed, so that another upload can begin; after other failures both stay, and the client may call again. */
static void finish_upload(struct http_exchange *x)
{
    struct debuginfo_file file;
    struct debuginfo_object object;
    struct sl_error error = {.code = SL_OK};
    struct sl_buf answer = {0};
    bool has_id;
    int status = 0;
    if (!read_request(x, false, &file, &has_id))
        return;
    enum sl_code code =
        has_id ? get_record(file.gnu_build_id, &x->arena, &object, &error)
               : sl_fail(&error, SL_MALFORMED, "gnu_build_id is missing or no hex text of 2 to 128 digits");
    if (code == SL_OK && object.state != DEBUGINFO_RUNNING) {
        reply_wrong_state(x, "the upload of this build id is finished already");
        return;
    }
    if (code == SL_OK) {
        code = publish_file(x, &object, &status, &error);
        if (code == SL_NOT_FOUND) {
            reply_wrong_state(x, error.message);
            return;
        }
    }
    if (code == SL_OK) {
        object.state = DEBUGINFO_FINISHED;
        object.finished_s = (uint64_t)clock_wall_s();
        code = put_record(&object, &x->arena, &error);
    } else if (code == SL_MALFORMED && has_id) {
        struct sl_error unused;
        struct sl_str name = stored_name(&x->arena, RECORD_PREFIX, file.gnu_build_id);
        if (name.data)
            /* if that fails, the upload counts as given up later */
            store_area_delete(debug_files_area(), name, &unused);
    }
    if (has_id && (code == SL_OK || code == SL_MALFORMED))
        forget_file(x, file.gnu_build_id);
    if (code != SL_OK) {
        reply_failure(x, code, status, &error);
        return;
    }
    if (is_json(x))
        sl_buf_cstr(&answer, "{}");
    reply_message(x, &answer);
}

/* ListDebuginfo: lists at most MAX_LISTED uploads, by their records. The message is read like the others, so a build id in it is
 * accepted, and ignored. */
static void list_uploads(struct http_exchange *x)
{
    struct debuginfo_file file;
    struct debuginfo_object *objects;
    struct sl_error error = {.code = SL_OK};
    struct sl_buf answer = {0};
    struct sl_str *names;
    size_t count, listed = 0;
    bool has_id;
    if (!read_request(x, false, &file, &has_id))
        return;
    enum sl_code code =
        store_area_list(debug_files_area(), SL_STR("uploads/pyroscope"), MAX_LISTED, &x->arena, &names, &count, &error);
    objects = SL_ARENA_ARRAY(&x->arena, struct debuginfo_object, count + 1);
    if (code == SL_OK && !objects)
        code = sl_fail(&error, SL_BUSY, "out of memory");
    for (size_t i = 0; code == SL_OK && i < count; i++) {
        code = get_record(names[i], &x->arena, &objects[listed], &error);
        listed += code == SL_OK;
        code = code == SL_NOT_FOUND ? SL_OK : code; /* removed meanwhile, or damaged */
    }
    if (code != SL_OK) {
        reply_failure(x, code, 0, &error);
        return;
    }
    debuginfo_write_list(is_json(x), objects, listed, &answer);
    reply_message(x, &answer);
}

/* DeleteDebuginfo: removes the files of the build id, and after them the record: if that fails half-way, the client can try again. */
static void delete_upload(struct http_exchange *x)
{
    struct debuginfo_file file;
    struct debuginfo_object object;
    struct sl_error error = {.code = SL_OK};
    struct sl_buf answer = {0};
    bool has_id;
    if (!read_request(x, false, &file, &has_id))
        return;
    enum sl_code code =
        has_id ? get_record(file.gnu_build_id, &x->arena, &object, &error)
               : sl_fail(&error, SL_MALFORMED, "gnu_build_id is missing or no hex text of 2 to 128 digits");
    struct object_id id = make_id(file.gnu_build_id);
    struct sl_str name = stored_name(&x->arena, RECORD_PREFIX, file.gnu_build_id);
    /* Deleting an unknown upload succeeds, as with Pyroscope: the client may delete again after a lost answer. */
    bool is_unknown = has_id && code == SL_NOT_FOUND;
    if (code == SL_OK)
        code = debug_file_remove(&id, FILE_ELF_DEBUG, &x->arena, &error);
    if (code == SL_OK)
        code = debug_file_remove(&id, FILE_ELF_CODE, &x->arena, &error);
    if (code == SL_OK)
        code =
            name.data ? store_area_delete(debug_files_area(), name, &error) : sl_fail(&error, SL_BUSY, "out of memory");
    if (code != SL_OK && !is_unknown) {
        reply_failure(x, code, 0, &error);
        return;
    }
    if (is_json(x))
        sl_buf_cstr(&answer, "{}");
    reply_message(x, &answer);
}

/* ---- routes ---- */

static uint64_t message_limit(const struct http_exchange *x)
{
    (void)x;
    return BODY_MAX;
}

static uint64_t file_limit(const struct http_exchange *x)
{
    return ((const struct service *)x->service)->config->uploads_store.max_file_size;
}

static bool is_enabled(const void *service)
{
    return debug_files_are_open() && ((const struct service *)service)->config->upload.pyroscope;
}

#define MESSAGE(name_, handler_, right_)                                                                               \
    {                                                                                                                  \
        .method = "POST", .pattern = METHOD name_, .handler = (handler_), .takes_work = true,                          \
        .body_limit = message_limit, .rights = API_RIGHT(right_)                                                       \
    }

static const struct http_route pyroscope_routes[] = {
    MESSAGE("ShouldInitiateUpload", should_initiate, "symbols:write"),
    MESSAGE("UploadFinished", finish_upload, "symbols:write"),
    MESSAGE("ListDebuginfo", list_uploads, "symbols:write"),
    MESSAGE("DeleteDebuginfo", delete_upload, "symbols:delete"),
    {.method = "POST",
     .pattern = METHOD "Upload/{id}",
     .handler = upload_file,
     .takes_work = true,
     .body_limit = file_limit,
     .rights = API_RIGHT("symbols:write")},
    {.method = NULL},
};

const struct http_family family_pyroscope = {.routes = pyroscope_routes,
                                             .enabled = is_enabled,
                                             .group = "symbols",
                                             .always_requires_key = true,
                                             .error = reply_error};
