/* Tokens by which clients of Mozilla's upload API authenticate (header Auth-Token), and errors in the format of that API. */
#include "api/uploads/uploads.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "api/access.h"
#include "core/loop.h"
#include "core/status.h"

/* http_route.there: the routes of this API exist only while a store is configured. */
bool uploads_find(const struct http_exchange *x)
{
    (void)x;
    return store_is_open();
}

/* Replies with {"error": text}, for 404 also with the request's path. The blanks after the colons are needed, as tests of clients compare
 * the bytes; the JSON writer does not put them there. */
void uploads_reply_error(struct http_exchange *x, int status, struct sl_str text)
{
    struct sl_buf body = {0};
    struct sl_json_writer w = sl_json_writer(&body);
    sl_buf_cstr(&body, "{\"error\": ");
    sl_json_put_str(&w, text);
    if (status == 404) {
        sl_buf_cstr(&body, ", \"path\": ");
        w.comma = false; /* the comma is written already */
        sl_json_put_str(&w, x->path);
    }
    sl_buf_u8(&body, '}');
    http_reply_json(x, status, &body);
    if (http_header(x, "auth-token").data)
        http_set_header(x, "Vary", SL_STR("Auth-Token"));
}

/* Answers an error with the text that Mozilla's service has for it. A request with an invalid token gets the answer for that (by
 * uploads_get_token) instead of 404 or 405. */
void uploads_error(struct http_exchange *x, int status, const char *detail)
{
    const struct mozilla_token *token;
    struct sl_buf text = {0};
    if ((status == 404 || status == 405) && !uploads_get_token(x, &token))
        return;
    if (status == 405)
        sl_buf_printf(&text, "Method Not Allowed (" SL_STR_FMT "): " SL_STR_FMT, SL_STR_ARG(x->method),
                      SL_STR_ARG(x->path));
    else
        sl_buf_cstr(&text, status == 413   ? "Upload is too large"
                           : status == 500 ? "Internal Server Error"
                           : detail        ? detail
                                           : status_reason(status));
    uploads_reply_error(x, status, sl_buf_view(&text));
    sl_buf_free(&text);
}

/* Reads the rest of the request's body and drops it: a client that is still sending would not read the answer. */
void uploads_discard_body(struct http_exchange *x)
{
    struct sl_bytes piece;
    if (!x->has_body)
        return;
    while (http_body_read(x, &piece) == SL_OK && piece.size)
        ;
}

/* Finds the configured token that the client has sent; NULL if there is none. A label behind the token, from the first '-' on, is ignored.
 * Always compares with all tokens, so that the time does not tell which one matches. */
static const struct mozilla_token *token_find(const struct config *config, struct sl_str sent)
{
    const struct mozilla_token *found = NULL;
    uint8_t digest[SHA256_DIGEST_LENGTH];
    const char *label = sent.size ? memchr(sent.data, '-', sent.size) : NULL;
    SHA256((const uint8_t *)sent.data, label ? (size_t)(label - sent.data) : sent.size, digest);
    for (size_t i = 0; i < config->mozilla.token_count; i++)
        if (CRYPTO_memcmp(digest, config->mozilla.tokens[i].sha256, sizeof digest) == 0)
            found = &config->mozilla.tokens[i];
    return found;
}

/* Answers that the token is refused; returns false. */
static bool refuse_token(struct http_exchange *x, int status, struct sl_str text)
{
    uploads_reply_error(x, status, text);
    return false;
}

/* Finds the token that the request sends; `*token` is NULL if it sends none. False: the token is unknown, expired or of an inactive user,
 * and 403 is answered, or 429 after too many unknown tokens. */
bool uploads_get_token(struct http_exchange *x, const struct mozilla_token **token)
{
    const struct config *config = ((const struct service *)x->service)->config;
    struct sl_str sent = http_header(x, "auth-token");
    *token = NULL;
    if (!sent.data)
        return true;
    *token = token_find(config, sent);
    if (!*token) /* the call below counts the client's wrong tokens; false: there were too many */
        return access_note_wrong_key(x, (struct sl_str){NULL, 0})
                   ? refuse_token(x, 403, SL_STR("API Token not matched"))
                   : refuse_token(x, 429, SL_STR("Too many wrong tokens"));
    if (clock_wall_s() >= (*token)->expires_s)
        return refuse_token(x, 403, SL_STR("API Token found but expired"));
    if (!(*token)->active)
        return refuse_token(x, 403, SL_STR("API Token matched but user not active"));
    return true;
}

bool uploads_authorize(struct http_exchange *x, const struct mozilla_token **token)
{
    if (!uploads_get_token(x, token))
        return false;
    if (!*token)
        return refuse_token(x, 403, SL_STR("This requires an Auth-Token to authenticate the request"));
    return (*token)->upload || (*token)->upload_try || refuse_token(x, 403, SL_STR("Forbidden"));
}

/* ---- scopes ---- */

void uploads_get_scope(const struct http_exchange *x, const struct mozilla_token *token, char scope[SYMBFILE_SCOPE])
{
    const struct config *config = ((const struct service *)x->service)->config;
    bool owned = token && config->uploads_scope == UPLOADS_OF_SCOPE;
    symbfile_scope(owned ? token->scope : SL_STR(""), scope);
}

/* Returns the access key of the request, to read its scopes: it was checked before the handler, which sets key_has_scopes. NULL if there is
 * none, if it has no scopes, or if uploads do not belong to scopes. */
static const struct access_key *find_access_key(struct http_exchange *x, const struct config *config)
{
    const struct access_key *key = NULL;
    if (!x->key_has_scopes || config->uploads_scope != UPLOADS_OF_SCOPE)
        return NULL;
    return access_check(x, ACCESS_ANY_FORM, x->route->rights, &key) == ACCESS_GRANTED ? key : NULL;
}

/* Lists the scopes, besides the shared one, whose uploads the request may read: that of its token, or without a token those of its access
 * key. False when out of memory. */
bool uploads_list_scopes(struct http_exchange *x, const struct mozilla_token *token, char (**scopes)[SYMBFILE_SCOPE],
                         size_t *count)
{
    const struct config *config = ((const struct service *)x->service)->config;
    const struct access_key *key = token ? NULL : find_access_key(x, config);
    size_t most = key ? key->scope_count : 1; /* + 1 below: an array is never empty */
    *count = 0;
    *scopes = (char(*)[SYMBFILE_SCOPE])SL_ARENA_ARRAY(&x->arena, char, (most + 1) * SYMBFILE_SCOPE);
    for (size_t i = 0; *scopes && i < most; i++) {
        if (key)
            symbfile_scope(key->scopes[i], (*scopes)[*count]);
        else
            uploads_get_scope(x, token, (*scopes)[*count]);
        *count += *(*scopes)[*count] != '\0'; /* the shared scope, "", is not listed: the next one overwrites it */
    }
    return *scopes != NULL;
}
