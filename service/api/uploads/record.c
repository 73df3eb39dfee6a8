/* Records of finished uploads. GET /api/uploads/upload/<id> answers with the JSON document as it is stored, to the user who made the upload
 * and to tokens with view_all. */
#include "api/uploads/uploads.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json_fields.h"

static const char *const prefixes[STORE_PARTS] = {"uploads/", "try/uploads/"};

void uploads_write_user(struct sl_json_writer *w, const struct mozilla_token *token)
{
    sl_json_begin_object(w);
    sl_json_member_u64(w, "id", token->user_id);
    sl_json_member_str(w, "email", token->email);
    sl_json_end_object(w);
}

enum sl_code uploads_record_put(const char *scope, enum store_part part, uint64_t id, struct sl_str record,
                                struct sl_error *error)
{
    struct sl_arena arena = {0};
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)id);
    struct sl_str name = uploads_name(&arena, scope, prefixes[part], sl_str(number));
    enum sl_code code = name.data ? store_put_text(&name, 1, record, error) : sl_fail(error, SL_BUSY, "out of memory");
    sl_arena_free(&arena);
    return code;
}

/* ---- the owner ---- */

/* True if the record's upload was made by the user of the token: their email addresses are the same. */
static bool is_of_user(struct sl_bytes record, struct sl_arena *arena, const struct mozilla_token *token)
{
    /* the text at upload.user.email; it is read into offset 0 of the target, so that the target is a struct sl_str */
    static const struct sl_field user[] = {{.key = SL_STR("email"), .type = SL_FIELD_TEXT}, SL_FIELDS_END};
    static const struct sl_field upload[] = {SL_FIELD_SAME("user", user), SL_FIELDS_END};
    static const struct sl_field fields[] = {SL_FIELD_SAME("upload", upload), SL_FIELDS_END};
    struct sl_json j = sl_json((struct sl_str){(const char *)record.data, record.size}, arena, true);
    struct sl_str email = {NULL, 0};
    return sl_json_read_object(&j, fields, &email) && email.data && sl_str_equal(email, token->email);
}

/* ---- the answer ---- */

/* True for the id of an upload: 1 to 16 digits, which is what uploads_next_id returns. */
static bool is_number(struct sl_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!sl_is_digit(text.data[i]))
            return false;
    return text.size && text.size <= 16;
}

/* Maps the record with the id in the path: searches the part of releases, then that of try builds, as the id does not tell which one has
 * it. SL_NOT_FOUND, also if the id is no number. */
static enum sl_code open_record(struct http_exchange *x, const char *scope, struct sl_mapping *record,
                                struct sl_error *error)
{
    enum sl_code code = SL_NOT_FOUND;
    struct store_meta meta;
    for (int part = 0; part < STORE_PARTS && code == SL_NOT_FOUND && is_number(x->captures[0]); part++) {
        struct sl_str name = uploads_name(&x->arena, scope, prefixes[part], x->captures[0]);
        code = name.data ? store_open(name, record, &meta, error) : sl_fail(error, SL_BUSY, "out of memory");
    }
    return code;
}

/* Answers the record of an upload, to its user or to a token that may see all. */
void uploads_record_get(struct http_exchange *x)
{
    /* a reference, as `token` points into the configuration, which may be replaced meanwhile */
    const struct config *config = config_retain(((const struct service *)x->service)->config);
    const struct mozilla_token *token;
    struct sl_mapping record;
    struct sl_error error = {0};
    if (uploads_get_token(x, &token) && !token)
        uploads_reply_error(x, 403, SL_STR("This requires an Auth-Token to authenticate the request"));
    if (token && !x->status) { /* a status is set if the token is invalid and that is answered */
        char scope[SYMBFILE_SCOPE];
        uploads_get_scope(x, token, scope);
        enum sl_code code = open_record(x, scope, &record, &error);
        if (code == SL_OK && !token->view_all && !is_of_user(record.bytes, &x->arena, token)) {
            uploads_reply_error(x, 403, SL_STR("Insufficient access to view this upload"));
        } else if (code == SL_OK) {
            struct sl_buf body = {0};
            sl_buf_add(&body, record.bytes.data, record.bytes.size);
            http_reply_json(x, 200, &body);
            http_set_header(x, "Vary", SL_STR("Auth-Token"));
        } else if (code != SL_CANCELLED) {
            uploads_error(x, code == SL_NOT_FOUND ? 404 : code == SL_BUSY ? 503 : 500, NULL);
        }
        if (code == SL_OK)
            sl_unmap(&record);
    }
    config_release(config);
}
