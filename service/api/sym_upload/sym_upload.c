/* Uploads by Breakpad's sym_upload in three requests (create: answers a URL; PUT of the file; complete), or in one form (version 1). */
#include "api/sym_upload/sym_upload.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "api/form_files.h"
#include "api/breakpad_file.h"
#include "base/json_write.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/metrics.h"
#include "core/pool.h"
#include "core/status.h"
#include "http/multipart.h"
#include "store/store.h"

/* KEY_BYTES: random bytes of an upload's key and of its secret; KEY_HEX: the hex digits that stand for them. BODY_MAX: bytes of the body of
 * `complete`. */
enum { KEY_BYTES = 16, KEY_HEX = 2 * KEY_BYTES, URL_LIFE_S = 3600, BODY_MAX = 64 << 10 };

/* ---- answers ---- */

/* Answers with a JSON object of strings. Breakpad's clients do not parse it but search it for a key, a colon and one blank, which
 * sl_json_member_str does not write. */
static void reply_pairs(struct http_exchange *x, int status, const char *const *names, const struct sl_str *values,
                        size_t count)
{
    struct sl_buf json = {0};
    for (size_t i = 0; i < count; i++) {
        sl_buf_printf(&json, "%s\"%s\": ", i ? ", " : "{", names[i]);
        struct sl_json_writer w = sl_json_writer(&json);
        sl_json_put_str(&w, values[i]);
    }
    sl_buf_u8(&json, '}');
    http_reply_json(x, status, &json);
}

static void reply_pair(struct http_exchange *x, int status, const char *name, const char *value)
{
    struct sl_str text = sl_str(value);
    reply_pairs(x, status, &name, &text, 1);
}

/* http_family.error: fills in the body of an error of the HTTP server. */
static void reply_server_error(struct http_exchange *x, int status, const char *detail)
{
    reply_pair(x, status, "error", detail ? detail : status_reason(status));
}

/* Replies to a failed request with `status`, or if that is 0 with the status for `code`. Errors of the store (SL_INTERNAL: of its disk,
 * SL_DOWNLOAD_ERROR: of its server) are logged; of those with status 500 the client is not told the reason. */
static void reply_failure(struct http_exchange *x, enum sl_code code, int status, const struct sl_error *error)
{
    if (code == SL_CANCELLED) /* the client is gone */
        return;
    if (code == SL_INTERNAL || code == SL_DOWNLOAD_ERROR)
        log_error("uploads", "cannot store, find or read an uploaded file", LOG_ERR(error));
    status = status ? status : debug_file_status(code);
    reply_pair(x, status, "error", status == 500 ? "Internal error" : error->message);
}

/* ---- names in the store ---- */

/* Returns the name of an upload's file in the store: `suffix` is "" for the received file, ".secret" for the ticket (make_ticket). Data
 * NULL when out of memory. */
static struct sl_str received_name(struct sl_arena *arena, struct sl_str key, const char *suffix)
{
    struct sl_buf name = {0};
    sl_buf_printf(&name, "chunks/received/" SL_STR_FMT "%s", SL_STR_ARG(key), suffix);
    return sl_buf_move_to_arena(&name, arena);
}

static bool is_key(struct sl_str text)
{
    uint8_t bytes[KEY_BYTES];
    size_t size;
    return text.size == KEY_HEX && sl_hex_decode(text, bytes, sizeof bytes, &size) && size == KEY_BYTES;
}

/* ---- create ---- */

/* Makes a random key or secret. False if the system has no random bytes. */
static bool make_secret(char hex[KEY_HEX + 1])
{
    uint8_t bytes[KEY_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    sl_hex_encode(bytes, sizeof bytes, hex);
    return true;
}

/* Returns the ticket of an upload, which is stored to check the secret in the upload's URL later: "<SHA-256 of the secret in hex> <seconds
 * since the epoch when the URL expires>". Data NULL when out of memory. */
static struct sl_str make_ticket(struct sl_arena *arena, struct sl_str secret, int64_t ends_s)
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    struct sl_buf text = {0};
    SHA256((const uint8_t *)secret.data, secret.size, digest);
    sl_buf_hex(&text, digest, sizeof digest);
    sl_buf_printf(&text, " %lld", (long long)ends_s);
    return sl_buf_move_to_arena(&text, arena);
}

/* Returns the URL to which the client sends the file. It begins with `upload.public_url`, if configured, else with the scheme and host that
 * the client used. Data NULL when out of memory. */
static struct sl_str upload_url(struct http_exchange *x, const char *key, const char *secret)
{
    const struct config *config = ((const struct service *)x->service)->config;
    struct sl_buf url = {0};
    struct sl_str base = sl_str(config->upload.public_url ? config->upload.public_url : "");
    while (sl_str_ends(base, SL_STR("/")))
        base.size--;
    sl_buf_str(&url, base);
    if (base.size)
        sl_buf_u8(&url, '/');
    else
        http_put_base_url(x, &url);
    sl_buf_printf(&url, "v1/uploads/%s?t=%s", key, secret);
    return sl_buf_move_to_arena(&url, &x->arena);
}

/* POST /v1/uploads:create: begins an upload, and answers with its URL and key. The answer has both in camel and in snake case, as
 * clients search for the one or the other. */
static void create_upload(struct http_exchange *x)
{
    static const char *const names[] = {"uploadUrl", "uploadKey", "upload_url", "upload_key"};
    char key[KEY_HEX + 1], secret[KEY_HEX + 1];
    struct sl_error error = {.code = SL_OK};
    if (!make_secret(key) || !make_secret(secret)) {
        http_reply_no_memory(x); /* status 503: the client may try again, as for lack of memory */
        return;
    }
    struct sl_str name = received_name(&x->arena, sl_str(key), ".secret");
    struct sl_str ticket = make_ticket(&x->arena, sl_str(secret), clock_wall_s() + URL_LIFE_S);
    struct sl_str url = upload_url(x, key, secret);
    enum sl_code code = name.data && ticket.data && url.data
                            ? store_area_put_text(debug_files_area(), &name, 1, ticket, &error)
                            : sl_fail(&error, SL_BUSY, "out of memory");
    if (code != SL_OK) {
        reply_failure(x, code, 0, &error);
        return;
    }
    const struct sl_str values[] = {url, sl_str(key), url, sl_str(key)};
    reply_pairs(x, 200, names, values, 4);
}

/* ---- the file ---- */

/* Checks the secret in the request's URL: makes a ticket from it and the stored ticket's time of expiry, which must equal the stored one.
 * SL_OK; SL_PERMISSION_DENIED: the secret is wrong, or the URL has expired; SL_NOT_FOUND: there is no such upload; errors of the store. */
static enum sl_code check_ticket(struct http_exchange *x, struct sl_str key, struct sl_error *error)
{
    struct sl_buf text = {0};
    struct sl_str name = received_name(&x->arena, key, ".secret");
    enum sl_code code = !is_key(key) ? SL_NOT_FOUND
                        : name.data  ? store_area_read(debug_files_area(), name, &text, error)
                                     : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_NOT_FOUND)
        sl_fail(error, code, "there is no such upload");
    if (code == SL_OK) {
        uint64_t ends_s = 0;
        struct sl_str stored = sl_buf_view(&text), secret = http_query(x, "t");
        const char *blank = stored.size ? memchr(stored.data, ' ', stored.size) : NULL;
        size_t hash_size = blank ? (size_t)(blank - stored.data) : 0;
        bool good = blank && sl_parse_u64((struct sl_str){blank + 1, stored.size - hash_size - 1}, &ends_s);
        struct sl_str made = make_ticket(&x->arena, secret, (int64_t)ends_s);
        if (!made.data)
            code = sl_fail(error, SL_BUSY, "out of memory");
        else if (!good || made.size != stored.size || CRYPTO_memcmp(made.data, stored.data, stored.size) != 0)
            code = sl_fail(error, SL_PERMISSION_DENIED,
                           "the secret in the URL (parameter t) is not that of this upload: use the "
                           "uploadUrl that uploads:create returned");
        else if (clock_wall_s() >= (int64_t)ends_s)
            code = sl_fail(error, SL_PERMISSION_DENIED, "the URL of this upload has expired");
    }
    sl_buf_free(&text);
    return code;
}

/* Writes the body to a temporary file, and moves that into the store of debug files, under this name. */
static enum sl_code store_body(struct sl_bytes body, struct sl_str name, struct sl_error *error)
{
    struct store_tmp_file file;
    struct store_meta meta = {.size = body.size, .original_size = body.size};
    enum sl_code code = debug_file_copy(body, &file, error);
    return code == SL_OK ? store_area_put(debug_files_area(), name, &file, &meta, "application/octet-stream", error)
                         : code;
}

/* PUT <uploadUrl>: stores the file until the request to complete the upload. A second file for the same upload is refused with 403. */
static void receive_file(struct http_exchange *x)
{
    struct sl_error error = {.code = SL_OK};
    struct sl_str key = x->captures[0];
    struct store_meta meta;
    struct sl_bytes body;
    enum sl_code code = check_ticket(x, key, &error);
    struct sl_str name = code == SL_OK ? received_name(&x->arena, key, "") : (struct sl_str){NULL, 0};
    if (code == SL_OK && !name.data)
        code = sl_fail(&error, SL_BUSY, "out of memory");
    if (code == SL_OK) {
        code = store_area_stat(debug_files_area(), name, false, &meta, &error); /* false: without the MD5 */
        code = code == SL_OK ? sl_fail(&error, SL_PERMISSION_DENIED, "the file of this upload has arrived already")
               : code == SL_NOT_FOUND ? SL_OK
                                      : code;
    }
    if (code == SL_OK && http_body(x, &body) != SL_OK) /* answered by the server, or the client is gone */
        return;
    if (code == SL_OK)
        code = store_body(body, name, &error);
    if (code == SL_OK)
        http_reply(x, 200, "text/plain", SL_STR("")); /* the client takes any other status for a failure */
    else
        reply_failure(x, code, code == SL_PERMISSION_DENIED ? 403 : 0, &error);
}

/* ---- complete ---- */

/* True if the file is a Breakpad symbol file according to the `symbol_upload_type` of the client, which may be absent. */
static bool is_breakpad(struct sl_str type)
{
    return !type.size || sl_str_equal_nocase(type, SL_STR("BREAKPAD"));
}

/* True if the protocol has this `symbol_upload_type`, or if the client sent none. */
static bool is_known_type(struct sl_str type)
{
    static const char *const types[] = {"BREAKPAD", "ELF", "PE", "MACHO", "DEBUG_ONLY", "DWP", "DSYM", "PDB"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (sl_str_equal_nocase(type, sl_str(types[i])))
            return true;
    return !type.size;
}

/* Stores the file: a Breakpad file in the store of the upload API of Mozilla's symbol server, if that is open, any other file in the store
 * of debug files. `*same`: it was stored already. `*status` gets the HTTP status of a failure of the store of debug files; else it stays.
 * The debug id that the client sends for a Breakpad file is ignored: the file itself has it. */
static enum sl_code take_symbols(struct http_exchange *x, const struct config *config, struct sl_bytes file,
                                 const struct symbol_description *description, bool *same, int *status,
                                 struct sl_error *error)
{
    struct store_tmp_file copy;
    struct debug_file_upload upload = {
        .door = "breakpad", .file = &copy, .name = description->debug_file, .arena = &x->arena}; /* door: for metrics */
    *same = false;
    if (!is_known_type(description->type))
        return sl_fail(error, SL_MALFORMED, "unknown symbol_upload_type");
    if (is_breakpad(description->type) && store_is_open()) {
        enum sl_code code = uploads_store_breakpad_file(config, file, &x->arena, same, error);
        const char *result = code != SL_OK ? "refused" : *same ? "duplicate" : "new";
        if (code == SL_OK || code == SL_MALFORMED) { /* other errors are no fault of the file: they are not counted */
            metric_add(METRIC_STORE_UPLOADS, 1, upload.door, result, NULL);
            metric_add(METRIC_STORE_UPLOAD_BYTES, file.size, upload.door, result, NULL);
        }
        return code;
    }
    if (!is_breakpad(description->type))
        upload.claimed_any = description->debug_id; /* or a build id: debug_file_add compares it with both ids */
    enum sl_code code = debug_file_copy(file, &copy, error);
    if (code != SL_OK)
        return code;
    code = debug_file_add(config, &upload, error);
    *same = upload.result == DEBUG_FILE_DUPLICATE;
    *status = upload.status;
    return code;
}

/* Removes the received file and the ticket of an upload that has ended. */
static void remove_received(struct http_exchange *x, struct sl_str key)
{
    struct sl_error error;
    struct sl_str names[] = {received_name(&x->arena, key, ""), received_name(&x->arena, key, ".secret")};
    for (int i = 0; i < 2; i++)
        if (names[i].data && store_area_delete(debug_files_area(), names[i], &error) != SL_OK)
            log_warn("uploads", "cannot remove the temporary file of a finished upload; it is removed within a day",
                     LOG_ERR(&error));
}

/* POST /v1/uploads/{key}:complete: moves the received file to the store of symbols, if it is valid. After success or refusal the received
 * file is removed; after another failure it stays, so that the client may send this request again. */
static void complete_upload(struct http_exchange *x)
{
    struct sl_str key = x->captures[0], end = SL_STR(":complete");
    struct sl_error error = {.code = SL_OK};
    struct symbol_description description;
    struct sl_mapping file;
    struct store_meta meta;
    struct sl_bytes body;
    bool same = false;
    int status = 0;
    if (!sl_str_ends(key, end) || !is_key((struct sl_str){key.data, key.size - end.size})) {
        reply_pair(x, 404, "error", "there is no such upload");
        return;
    }
    key.size -= end.size;
    if (http_body(x, &body) != SL_OK)
        return;
    symbol_description_read((struct sl_str){(const char *)body.data, body.size}, &description);
    struct sl_str name = received_name(&x->arena, key, "");
    enum sl_code code = name.data ? store_area_open(debug_files_area(), name, &file, &meta, &error)
                                  : sl_fail(&error, SL_BUSY, "out of memory");
    if (code == SL_NOT_FOUND) {
        reply_pair(x, 404, "error", "no file has arrived for this upload");
        return;
    }
    if (code == SL_OK) {
        const struct config *config = config_retain(((const struct service *)x->service)->config);
        code = take_symbols(x, config, file.bytes, &description, &same, &status, &error);
        pool_unmap(&file);
        config_release(config);
    }
    if (code == SL_OK || code == SL_MALFORMED) /* SL_MALFORMED: the file is refused, and would be again */
        remove_received(x, key);
    if (code == SL_OK)
        reply_pair(x, 200, "result", same ? "DUPLICATE_DATA" : "OK");
    else
        reply_failure(x, code, status, &error);
}

/* ---- status ---- */

/* GET /v1/symbols/{debug file}/{debug id}:checkStatus: answers whether symbols with this id are stored: in the store of debug files, or in
 * that of the upload API of Mozilla's symbol server. The name of the debug file may contain slashes: the last one of the path ends it. */
static void check_status(struct http_exchange *x)
{
    struct sl_str text = x->captures[0], end = SL_STR(":checkStatus");
    struct sl_error error = {.code = SL_OK};
    bool found = false;
    size_t slash = text.size;
    if (!sl_str_ends(text, end)) {
        reply_pair(x, 404, "error", "Not Found");
        return;
    }
    text.size -= end.size;
    for (slash = text.size; slash > 0 && text.data[slash - 1] != '/'; slash--)
        ;
    struct sl_str name = {text.data, slash ? slash - 1 : 0}, id = {text.data + slash, text.size - slash};
    /* the id may be a debug id or, of an ELF file, the build id: search by both */
    struct object_id object = {.type = OBJECT_ELF, .code_id = sl_code_id_normalise(&x->arena, id), .debug_file = name};
    object.has_debug_id = sl_debug_id_parse_breakpad(id, &object.debug_id);
    enum sl_code code = object.code_id.data ? debug_files_have(&object, &x->arena, &found, &error)
                                            : sl_fail(&error, SL_BUSY, "out of memory");
    struct sl_str paths[LAYOUT_MAX_PATHS];
    size_t count;
    if (code == SL_OK && !found && store_is_open() && object.has_debug_id &&
        (count = layout_paths(&x->arena, LAYOUT_MOZILLA, CASING_DEFAULT, &object, FILE_BREAKPAD, paths)) > 0) {
        struct store_meta meta;
        struct sl_buf full = {0};
        sl_buf_cstr(&full, store_prefixes[STORE_REGULAR]);
        if (count != SIZE_MAX) /* SIZE_MAX: out of memory */
            sl_buf_str(&full, paths[0]);
        code = full.failed || count == SIZE_MAX ? sl_fail(&error, SL_BUSY, "out of memory")
                                                /* without MD5 */
                                                : store_stat(sl_buf_view(&full), false, &meta, &error);
        sl_buf_free(&full);
        found = code == SL_OK;
        code = code == SL_NOT_FOUND ? SL_OK : code;
    }
    if (code == SL_OK)
        reply_pair(x, 200, "status", found ? "FOUND" : "MISSING");
    else
        reply_failure(x, code, 0, &error);
}

/* ---- version 1 ---- */

struct form_splitting_job {
    struct sl_bytes body;
    struct sl_str boundary;
    struct sl_arena *arena;
    struct request_files *files;
    struct form_part parts[2];
};

/* Pool work: splits the form into `files` and `parts`. Not on the loop, as the form may be as large as `store.max_file_size`. */
static enum sl_code split_form(void *arg, struct sl_error *error)
{
    struct form_splitting_job *job = arg;
    return form_split(job->body, job->boundary, job->arena, job->files, job->parts, 2, error);
}

/* POST /v1/symupload: version 1 of the protocol: stores the file in the form's part `symbol_file`, whose name is the part `debug_file`. */
static void receive_form(struct http_exchange *x)
{
    struct form_splitting_job form = {.arena = &x->arena,
                                      .files = SL_ARENA_NEW(&x->arena, struct request_files),
                                      .parts = {{SL_STR("symbol_file")}, {SL_STR("debug_file")}}};
    struct sl_error error = {.code = SL_OK};
    bool same = false;
    int status = 0;
    if (!form.files) {
        http_reply_no_memory(x);
        return;
    }
    if (!multipart_boundary(http_header(x, "content-type"), &form.boundary)) {
        reply_pair(x, 400, "error", "the body is not multipart/form-data");
        return;
    }
    if (http_body(x, &form.body) != SL_OK)
        return;
    enum sl_code code = pool_call(POOL_JSON | POOL_HEAVY, split_form, &form, &error);
    const struct sl_str *text = &form.parts[0].text;
    if (code == SL_OK && !text->size)
        code = sl_fail(&error, SL_MALFORMED, "the form has no symbol_file");
    if (code == SL_OK) {
        struct symbol_description description = {.debug_file = form.parts[1].text};
        struct sl_bytes file = {(const uint8_t *)text->data, text->size};
        const struct config *config = config_retain(((const struct service *)x->service)->config);
        code = take_symbols(x, config, file, &description, &same, &status, &error);
        config_release(config);
    }
    if (code == SL_OK)
        reply_pair(x, 200, "result", same ? "DUPLICATE_DATA" : "OK");
    else
        reply_failure(x, code, status, &error);
}

/* ---- routes ---- */

static uint64_t file_limit(const struct http_exchange *x)
{
    return ((const struct service *)x->service)->config->uploads_store.max_file_size;
}

static uint64_t description_limit(const struct http_exchange *x)
{
    (void)x;
    return BODY_MAX;
}

static bool is_enabled(const void *service)
{
    return debug_files_are_open() && ((const struct service *)service)->config->upload.breakpad;
}

#define WRITE API_RIGHT("symbols:write")

static const struct http_route sym_upload_routes[] = {
    {.method = "GET", .pattern = "/v1/symbols/{rest..}", .handler = check_status, .rights = WRITE},
    {.method = "POST", .pattern = "/v1/uploads:create", .handler = create_upload, .rights = WRITE},
    {.method = "POST",
     .pattern = "/v1/uploads/{key}",
     .handler = complete_upload,
     .takes_work = true,
     .body_limit = description_limit,
     .rights = WRITE},
    {.method = "POST",
     .pattern = "/v1/symupload",
     .handler = receive_form,
     .takes_work = true,
     .body_limit = file_limit,
     .rights = WRITE},
    {.method = NULL},
};

const struct http_family family_sym_upload = {.routes = sym_upload_routes,
                                              .enabled = is_enabled,
                                              .group = "symbols",
                                              .key_in_query = true,
                                              .always_requires_key = true,
                                              .error = reply_server_error};

/* These routes need no access key, unlike those of family_sym_upload: the URL contains the secret of the upload. */
static const struct http_route sym_upload_file_routes[] = {
    {.method = "PUT",
     .pattern = "/v1/uploads/{key}",
     .handler = receive_file,
     .takes_work = true,
     .body_limit = file_limit},
    {.method = NULL},
};

const struct http_family family_sym_upload_file = {
    .routes = sym_upload_file_routes, .enabled = is_enabled, .error = reply_server_error};
