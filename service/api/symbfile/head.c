/* Checks access key, scope and headers of uploads of symbfiles (symbols of one executable for profilers); answers errors. */
#include "api/symbfile/symbfile.h"

#include <stdio.h>
#include <sys/random.h>

#include "api/access.h"
#include "core/log.h"
#include "core/status.h"
#include "symbfile/fileid.h"

/* ---- answers ---- */

/* Makes the random UUID (version 4) of an error answer, by which the log line for the answer can be found. If the system has no random
 * bytes it is always the same UUID, which only makes the log line harder to find. */
static void make_uuid(char out[37])
{
    uint8_t b[16] = {0};
    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        memset(b, 0, sizeof b);
    b[6] = (b[6] & 0x0F) | 0x40; /* version 4: random */
    b[8] = (b[8] & 0x3F) | 0x80; /* variant of RFC 4122 */
    snprintf(out, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3],
             b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

/* Answers a failed request in the error format of this upload protocol; `code` is the protocol's error code, a number as text. With status
 * 503 the client is asked to retry after five seconds. Accept-Encoding in the answer names the compressions that uploads may have. */
static void write_failure(struct http_exchange *x, const char *uuid, int status, const char *code, const char *text)
{
    struct sl_json_writer w = sl_json_writer(&x->body);
    http_reply(x, status, "application/json", SL_STR("")); /* with an empty body, to which `w` appends */
    sl_json_begin_object(&w);
    sl_json_member_boolean(&w, "success", false);
    sl_json_member_str(&w, "uuid", sl_str(uuid));
    sl_json_member_object(&w, "error");
    sl_json_member_str(&w, "Code", sl_str(code));
    sl_json_member_str(&w, "Text", sl_str(text));
    sl_json_end_object(&w);
    sl_json_member_u64(&w, "status", (uint64_t)status);
    sl_json_end_object(&w);
    if (status == 503)
        http_set_header(x, "Retry-After", SL_STR("5"));
    http_set_header(x, "Accept-Encoding", SL_STR("zstd, gzip"));
}

void upload_reply_failure(struct http_exchange *x, const struct symbfile_failure *failure)
{
    char uuid[37];
    make_uuid(uuid);
    log_info("symbfile", "rejected a symbfile request", LOG_STR("uuid", uuid), LOG_STR("code", failure->code),
             LOG_STR("text", failure->text), LOG_STR("cause", failure->cause));
    write_failure(x, uuid, failure->status, failure->code, failure->text);
    if (failure->status == 401)
        http_set_header(x, "WWW-Authenticate", SL_STR("ApiKey realm=\"symloom\""));
}

void upload_reply_error(struct http_exchange *x, int status, const char *detail)
{
    static const struct {
        int status;
        const char *code, *text;
    } codes[] = {
        {404, "1301", "Not found."},
        {405, "1302", "Method not allowed."},
        {408, "1110", "Upload timed out."},
        {413, "1108", "Upload is too large."},
        {415, "1109", "Content-Encoding is not supported."},
        {400, "1112", "Body could not be decompressed."},
        {503, "1401", "Too many uploads in progress."},
        {500, "1000", "Something went wrong on our side."},
    };
    char uuid[37];
    /* for a status that is not in the list above: the protocol's code for any other error */
    const char *code = "1000", *text = detail ? detail : status_reason(status);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == status) {
            code = codes[i].code;
            text = codes[i].text;
        }
    make_uuid(uuid);
    write_failure(x, uuid, status, code, text);
}

/* ---- authorization ---- */

/* True if the access key may use the scope: it has this scope, or has no list of scopes at all. */
static bool is_allowed(const struct access_key *key, struct sl_str scope)
{
    for (size_t i = 0; i < key->scope_count; i++)
        if (sl_str_equal(key->scopes[i], scope))
            return true;
    return !key->scopes;
}

/* Finds the scopes that the request may read and write. If the query names a scope, it is that one, which the key must allow; else all
 * scopes of the key, or the shared scope "global" if the key has no list of scopes. Without a key (`key` NULL: none is required), or if
 * the configuration does not keep uploads in the scopes of their keys (UPLOADS_OF_SCOPE), always the shared scope. False: `failure` is
 * set. */
static bool find_owner(struct http_exchange *x, const struct access_key *key, struct upload_owner *owner,
                       struct symbfile_failure *failure)
{
    const struct sl_str global = SL_STR("global");
    bool owned = key && current_config()->uploads_scope == UPLOADS_OF_SCOPE;
    struct sl_str named = owned ? http_query(x, "scope") : (struct sl_str){NULL, 0};
    if (named.data && !is_allowed(key, named)) {
        symbfile_fail(failure, 403, "1004", "API key is not allowed to name this scope.");
        return false;
    }
    const struct sl_str *scopes = named.data ? &named : owned && key->scopes ? key->scopes : &global;
    owner->count = !named.data && owned && key->scopes ? key->scope_count : 1;
    if (!owner->count) {
        symbfile_fail(failure, 403, "1004", "API key is not allowed to name any scope.");
        return false;
    }
    owner->scopes = (char(*)[SYMBFILE_SCOPE])SL_ARENA_ARRAY(&x->arena, char, owner->count *SYMBFILE_SCOPE);
    owner->reads_shared = true;
    if (!owner->scopes) {
        symbfile_fail_with_cause(failure, SL_BUSY, "out of memory");
        return false;
    }
    for (size_t i = 0; i < owner->count; i++) {
        symbfile_scope(scopes[i], owner->scopes[i]);
        /* the shared scope is "" here: if it is in the list, it is read anyway */
        owner->reads_shared = owner->reads_shared && *owner->scopes[i];
    }
    return true;
}

/* Checks that the request's access key has one of the rights, and sets the key and the scopes of uploads in `owner`. If the configuration
 * requires no keys, every request may. False: `failure` is set. */
bool upload_authorize(struct http_exchange *x, const char *const *rights, struct upload_owner *owner,
                      struct symbfile_failure *failure)
{
    const struct config *config = current_config();
    const struct access_key *key = NULL;
    *owner = (struct upload_owner){.key_id = {"", 0}};
    if (!access_required(config, x->route->family->group))
        return find_owner(x, NULL, owner, failure);
    switch (access_check(x, ACCESS_API_KEY, rights, &key)) {
    case ACCESS_GRANTED: owner->key_id = x->key_id; return find_owner(x, key, owner, failure);
    case ACCESS_MISSING: symbfile_fail(failure, 401, "1001", "API key is missing."); break;
    case ACCESS_MALFORMED: symbfile_fail(failure, 401, "1002", "API key is malformed."); break;
    case ACCESS_UNKNOWN:
    case ACCESS_EXPIRED: symbfile_fail(failure, 401, "1003", "API key is not valid."); break;
    case ACCESS_BLOCKED: symbfile_fail(failure, 429, "1000", "Too many wrong API keys."); break;
    case ACCESS_DENIED: symbfile_fail(failure, 403, "1004", "API key is not allowed to upload symbols."); break;
    }
    return false;
}

/* ---- headers ---- */

/* Gets the value of a header, data NULL if it is absent. False if it occurs twice with different values. */
static bool get_single_header(const struct http_exchange *x, const char *name, struct sl_str *value)
{
    struct sl_str wanted = sl_str(name);
    *value = (struct sl_str){NULL, 0};
    for (size_t i = 0; i < x->header_count; i++) {
        struct sl_str found = sl_str_trimmed(x->headers[i].value);
        if (!sl_str_equal_nocase(x->headers[i].name, wanted))
            continue;
        if (value->data && !sl_str_equal(*value, found))
            return false;
        *value = (struct sl_str){found.data ? found.data : "", found.size}; /* "": present, though empty */
    }
    return true;
}

/* Sets the failure "Header ... is invalid"; returns false. */
static bool fail_invalid_header(struct symbfile_failure *failure, const char *name)
{
    symbfile_fail(failure, 400, "1106", "Header %s is invalid.", name);
    return false;
}

/* Parses one to ten digits. */
static bool read_count(struct sl_str text, uint64_t *value)
{
    return text.size <= 10 && sl_parse_u64(text, value);
}

/* Reads the header FileID. False: `failure` is set. */
static bool read_file_id(const struct http_exchange *x, struct upload_head *head, struct symbfile_failure *failure)
{
    struct sl_str text;
    if (!get_single_header(x, "FileID", &text))
        return fail_invalid_header(failure, "FileID");
    if (text.data && sl_file_id_parse_any(text, &head->file_key.file_id))
        return true;
    if (text.data)
        symbfile_fail(failure, 400, "1102", "FileID header is not a valid file ID.");
    else
        symbfile_fail(failure, 400, "1101", "FileID header is missing.");
    return false;
}

/* Reads the number of the part (FilePart, from 0) and how many parts the symbfile has (FileParts). Without both headers this is the only
 * part. False: `failure` is set. */
static bool read_parts(const struct http_exchange *x, struct upload_head *head, struct symbfile_failure *failure)
{
    struct sl_str part, parts;
    head->part = 0;
    head->parts = 1;
    if (!get_single_header(x, "FilePart", &part) || !get_single_header(x, "FileParts", &parts))
        return fail_invalid_header(failure, "FilePart"); /* also if it was FileParts */
    if (!part.data && !parts.data)
        return true;
    if (!part.data || !read_count(part, &head->part)) {
        symbfile_fail(failure, 400, "1103", "FilePart header is missing or invalid.");
        return false;
    }
    if (!parts.data || !read_count(parts, &head->parts) || head->parts == 0 ||
        head->parts > current_config()->symbfile.max_parts) {
        symbfile_fail(failure, 400, "1104", "FileParts header is missing or invalid.");
        return false;
    }
    if (head->part < head->parts)
        return true;
    symbfile_fail(failure, 400, "1105", "FilePart must be less than FileParts.");
    return false;
}

/* Takes the id that the client gave its upload of several parts. It becomes part of a file name, so only letters, digits, '_' and '-' are
 * allowed. False if it is malformed or too long. */
static bool take_upload_id(struct sl_str text, struct upload_head *head)
{
    if (text.size < 1 || text.size >= sizeof head->upload_id)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        /* c | 32 is the lower case of a letter */
        if (!((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '-'))
            return false;
    }
    memcpy(head->upload_id, text.data, text.size);
    return true;
}

/* Takes a build id in hexadecimal, of at least one byte; stores it in lower case. False if it is malformed or too long. */
static bool take_build_id(struct sl_str text, struct upload_head *head)
{
    uint8_t bytes[(SYMBFILE_ID_MAX - 1) / 2]; /* info.build_id has space for their hex digits and a NUL */
    size_t size;
    if (text.size < 2 || !sl_hex_decode(text, bytes, sizeof bytes, &size))
        return false;
    sl_hex_encode(bytes, size, head->info.build_id);
    return true;
}

/* Takes a debug id in any of its spellings; stores it as sl_debug_id_format writes it. False if it is malformed. */
static bool take_debug_id(struct sl_str text, struct upload_head *head)
{
    struct sl_debug_id id;
    if (!sl_debug_id_parse(text, &id))
        return false;
    sl_debug_id_format(&id, head->info.debug_id);
    return true;
}

/* Copies a header's value to `out`, of `size` bytes. False if it is too long or has control characters. */
static bool take_text(struct sl_str text, char *out, size_t size)
{
    if (text.size >= size)
        return false;
    for (size_t i = 0; i < text.size; i++)
        if ((uint8_t)text.data[i] < 0x20)
            return false;
    memcpy(out, text.data, text.size);
    out[text.size] = '\0';
    return true;
}

static bool take_go_build_id(struct sl_str text, struct upload_head *head)
{
    return take_text(text, head->info.go_build_id, sizeof head->info.go_build_id);
}

/* Takes the base address of the executable, a decimal number or hexadecimal with 0x. False if it is malformed. */
static bool take_base(struct sl_str text, struct upload_head *head)
{
    bool hex = text.size > 2 && text.data[0] == '0' && (text.data[1] | 32) == 'x'; /* | 32: lower case */
    if (hex)
        text = (struct sl_str){text.data + 2, text.size - 2};
    head->info.has_base = hex ? sl_parse_hex_u64(text, &head->info.base) : sl_parse_u64(text, &head->info.base);
    return head->info.has_base;
}

/* Takes the path of the executable. */
static bool take_code_file(struct sl_str text, struct upload_head *head)
{
    return take_text(text, head->info.code_file, sizeof head->info.code_file);
}

static bool take_arch(struct sl_str text, struct upload_head *head)
{
    return sl_arch_parse(text) != SL_ARCH_UNKNOWN && take_text(text, head->info.arch, sizeof head->info.arch);
}

static const struct {
    const char *name;
    bool (*take)(struct sl_str text, struct upload_head *head); /* false: the value is invalid */
} optional_headers[] = {
    {"UploadID", take_upload_id}, {"BuildID", take_build_id},
    {"DebugID", take_debug_id},   {"GoBuildID", take_go_build_id},
    {"BaseAddress", take_base},   {"CodeFile", take_code_file},
    {"Arch", take_arch},
};

/* Checks the header Content-Encoding, but does not keep its value: the decoder of parts recognises the compression by the data. False:
 * `failure` is set, to status 415 for an unknown encoding. */
static bool read_encoding(const struct http_exchange *x, struct symbfile_failure *failure)
{
    struct sl_str coding;
    if (!get_single_header(x, "Content-Encoding", &coding))
        return fail_invalid_header(failure, "Content-Encoding");
    if (!coding.data || sl_str_equal_nocase(coding, SL_STR("identity")) ||
        sl_str_equal_nocase(coding, SL_STR("zstd")) || sl_str_equal_nocase(coding, SL_STR("gzip")))
        return true;
    symbfile_fail(failure, 415, "1109", "Content-Encoding is not supported.");
    return false;
}

/* Reads the headers of an upload into `head`. Checks them in a fixed order, so that a request with several faults always gets the same
 * error. False: `failure` is set. */
bool upload_read_head(const struct http_exchange *x, struct upload_head *head, struct symbfile_failure *failure)
{
    if (!read_file_id(x, head, failure) || !read_parts(x, head, failure))
        return false;
    if (!x->has_body && x->content_length < 0) {
        symbfile_fail(failure, 411, "1107", "Content-Length is required.");
        return false;
    }
    if (!x->has_body) {
        symbfile_fail(failure, 400, "1111", "Upload is empty.");
        return false;
    }
    if (!read_encoding(x, failure))
        return false;
    for (size_t i = 0; i < sizeof optional_headers / sizeof *optional_headers; i++) {
        struct sl_str value;
        if (!get_single_header(x, optional_headers[i].name, &value) ||
            (value.data && !optional_headers[i].take(value, head)))
            return fail_invalid_header(failure, optional_headers[i].name);
    }
    return true;
}
