/* Access tokens for Google's APIs, requested with a service account's key or from the machine's metadata server. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/json_fields.h"
#include "base/json_write.h"
#include "core/loop.h"
#include "core/pool.h"
#include "objectstore/impl.h"

#define TOKEN_URL     "https://www.googleapis.com/oauth2/v4/token"
#define METADATA_HOST "metadata.google.internal"
#define TOKEN_PATH    "/computeMetadata/v1/instance/service-accounts/default/token"
#define SECOND_NS     UINT64_C(1000000000)
/* MARGIN_S: how much longer the signed assertion is valid than a token is cached. EXCHANGE_S, MACHINE_S: time limits of a request to the
 * token server and to the metadata server, which is near or, outside of Google's cloud, not there at all. */
enum { MARGIN_S = 30, EXCHANGE_S = 30, MACHINE_S = 1, ANSWER_MAX = 64 << 10, KEY_BITS_MAX = 8192, KEY_MAX = 64 << 10 };

/* ---- the assertion ---- */

/* Reads a private key in PEM; NULL on failure. The password for an encrypted one is "": without one, OpenSSL would ask on the terminal. */
static EVP_PKEY *from_pem(struct sl_str text)
{
    BIO *bio = text.size <= KEY_MAX ? BIO_new_mem_buf(text.data, (int)text.size) : NULL;
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, (char *)"") : NULL;
    BIO_free(bio);
    return key;
}

/* Reads a private key that is only the base64 text of a PEM file, without its first and last line; NULL on failure. */
static EVP_PKEY *from_base64(struct sl_str text)
{
    EVP_ENCODE_CTX *ctx = EVP_ENCODE_CTX_new();
    unsigned char *der = text.size <= KEY_MAX ? malloc(text.size + 4) : NULL; /* more than the decoded bytes need */
    int size = 0, rest = 0;
    EVP_PKEY *key = NULL;
    if (ctx && der) {
        EVP_DecodeInit(ctx);
        if (EVP_DecodeUpdate(ctx, der, &size, (const unsigned char *)text.data, (int)text.size) >= 0 &&
            EVP_DecodeFinal(ctx, der + size, &rest) == 1)
            key = d2i_AutoPrivateKey(NULL, &(const unsigned char *){der}, size + rest);
        explicit_bzero(der, text.size + 4);
    }
    free(der);
    EVP_ENCODE_CTX_free(ctx);
    return key;
}

/* Reads a private key in PEM, or only the base64 text of it. NULL unless it is an RSA key, as the algorithm RS256 needs, of at most
 * KEY_BITS_MAX bits, for which add_signature has a buffer. */
static EVP_PKEY *read_key(struct sl_str text)
{
    bool pem = text.size && memmem(text.data, text.size, "-----BEGIN", 10);
    EVP_PKEY *key = pem ? from_pem(text) : text.size ? from_base64(text) : NULL;
    if (key && (EVP_PKEY_base_id(key) != EVP_PKEY_RSA || EVP_PKEY_bits(key) > KEY_BITS_MAX)) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    ERR_clear_error(); /* drops what OpenSSL noted for this thread, so that later callers do not find it */
    return key;
}

static void add_base64url(struct sl_buf *out, const void *data, size_t size)
{
    if (sl_buf_reserve(out, SL_BASE64_SIZE(size)))
        out->size += sl_base64url_encode((struct sl_bytes){data, size}, (char *)out->data + out->size);
}

static struct sl_str token_url(const struct google_account *account)
{
    return account->token_url.size ? account->token_url : SL_STR(TOKEN_URL);
}

/* Appends the claims of the JWT in base64url: who asks, for which access, at which server, and until when. */
static void add_claims(struct sl_buf *out, const struct google_account *account, const char *scope, int64_t now_s)
{
    struct sl_buf json = {0};
    struct sl_json_writer w = sl_json_writer(&json);
    const struct {
        const char *key;
        struct sl_str text;
    } texts[] = {{"iss", account->client_email}, {"scope", sl_str(scope)}, {"aud", token_url(account)}};
    sl_json_begin_object(&w);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        sl_json_member_str(&w, texts[i].key, texts[i].text);
    sl_json_member_i64(&w, "exp", now_s + GOOGLE_TOKEN_LIFE_S + MARGIN_S); /* less than an hour, the longest allowed */
    sl_json_member_i64(&w, "iat", now_s);
    sl_json_end_object(&w);
    add_base64url(out, json.data, json.size);
    out->failed |= json.failed;
    sl_buf_free(&json);
}

/* Appends "." and the signature, in base64url, of all that is in the buffer before; false on failure. */
static bool add_signature(struct sl_buf *out, EVP_PKEY *key)
{
    unsigned char bytes[KEY_BITS_MAX / 8];
    size_t size = sizeof bytes;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && !out->failed && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
              EVP_DigestSign(ctx, bytes, &size, out->data, out->size) == 1;
    EVP_MD_CTX_free(ctx);
    ERR_clear_error(); /* drops what OpenSSL noted for this thread, so that later callers do not find it */
    if (ok) {
        sl_buf_u8(out, '.');
        add_base64url(out, bytes, size);
    }
    return ok && !out->failed;
}

/* The assertion is a signed JWT: <header>.<claims>.<signature>, each in base64url. */
bool google_assertion(const struct google_account *account, const char *scope, int64_t now_s, struct sl_buf *out)
{
    static const char header[] = "{\"typ\":\"JWT\",\"alg\":\"RS256\"}";
    EVP_PKEY *key = read_key(account->private_key);
    bool ok = key != NULL;
    if (ok) {
        add_base64url(out, header, sizeof header - 1);
        sl_buf_u8(out, '.');
        add_claims(out, account, scope, now_s);
        ok = add_signature(out, key);
    }
    EVP_PKEY_free(key);
    return ok;
}

static bool is_key(struct sl_str text)
{
    EVP_PKEY *key = read_key(text);
    EVP_PKEY_free(key);
    return key != NULL;
}

static const struct sl_field account_fields[] = {
    SL_FIELD(TEXT, false, google_account, private_key, "private_key"),
    SL_FIELD(TEXT, false, google_account, client_email, "client_email"),
    SL_FIELD(TEXT, false, google_account, token_url, "token_uri"),
    SL_FIELDS_END,
};

enum sl_code google_account_read(const char *path, struct sl_arena *arena, struct google_account *account,
                                 struct sl_error *error)
{
    struct sl_buf text = {0};
    if (!credentials_read_file(path, &text))
        return sl_fail_errno(error, errno, "") == SL_BUSY /* a shortage that passes, as of memory */
                   ? SL_BUSY
                   : sl_fail(error, SL_INTERNAL, "cannot read the service account %.120s: %s", path, strerror(errno));
    *account = (struct google_account){.private_key = {NULL, 0}};
    struct sl_str kept = sl_buf_move_to_arena(&text, arena);
    struct sl_json j = sl_json(kept, arena, false);
    bool is_object = kept.data && sl_json_read_object(&j, account_fields, account) && sl_json_end(&j);
    if (!kept.data || j.busy)
        return sl_fail(error, SL_BUSY, "out of memory");
    if (!is_object)
        return sl_fail(error, SL_MALFORMED, "the service account file %.120s is not JSON", path);
    if (!account->private_key.size || !account->client_email.size)
        return sl_fail(error, SL_MALFORMED, "the service account file %.120s has no private_key or client_email", path);
    if (!is_key(account->private_key))
        return sl_fail(error, SL_MALFORMED, "the private_key in %.120s is not a valid RSA key", path);
    return SL_OK;
}

/* ---- token requests ---- */

/* Fails with the error for a token request that did not succeed, and the server's explanation if `description` has one. */
static enum sl_code no_token(struct sl_str description, struct sl_error *error)
{
    static const char what[] = "failed to send authentication request";
    if (!description.size)
        return sl_fail(error, SL_DOWNLOAD_ERROR, what);
    return sl_fail(error, SL_DOWNLOAD_ERROR, "%s: " SL_STR_FMT, what, SL_STR_ARG(description));
}

struct google_answer { /* missing members are empty; all are if the text is not JSON */
    struct sl_str token, problem;
    struct sl_opt_u64 life_s;
};

/* Reads a response; all members are empty if it is not JSON. False when out of memory. */
static bool read_answer(struct sl_str text, struct sl_arena *arena, struct google_answer *answer)
{
    static const struct sl_field fields[] = {SL_FIELD(TEXT, false, google_answer, token, "access_token"),
                                             SL_FIELD(TEXT, false, google_answer, problem, "error_description"),
                                             SL_FIELD(U64, false, google_answer, life_s, "expires_in"), SL_FIELDS_END};
    struct sl_json j = sl_json(text, arena, false);
    *answer = (struct google_answer){0};
    sl_json_read_object(&j, fields, answer);
    if (!sl_json_end(&j))
        *answer = (struct google_answer){0};
    return !j.busy;
}

/* Converts an error response to an error. `arg` points to the variable `explained` of google_request: true makes google_request keep this
 * error. */
static enum sl_code google_refused(void *arg, int status, struct sl_str body, struct sl_error *error)
{
    (void)status;
    struct google_answer answer;
    struct sl_arena arena = {0};
    enum sl_code code =
        read_answer(body, &arena, &answer) ? no_token(answer.problem, error) : sl_fail(error, SL_BUSY, "out of memory");
    *(bool *)arg = true;
    sl_arena_free(&arena);
    return code;
}

/* Appends the token of a response to `token` and sets `*life_s` to its lifetime: 0 if the response does not state one. */
static enum sl_code google_take(struct sl_str text, struct sl_buf *token, uint64_t *life_s, struct sl_error *error)
{
    struct google_answer answer;
    struct sl_arena arena = {0};
    bool read = read_answer(text, &arena, &answer);
    enum sl_code code = answer.token.size ? SL_OK : no_token(answer.problem, error);
    *life_s = answer.life_s.value;
    sl_buf_str(token, answer.token);
    if (!read || token->failed)
        code = sl_fail(error, SL_BUSY, "out of memory");
    sl_arena_free(&arena);
    return code;
}

/* Requests a token. SL_CANCELLED, SL_BUSY, SL_INTERNAL and errors that the server explained (google_refused) are returned as they are.
 * Others become an error about authentication: SL_NOT_FOUND, for example, would be taken for the result of the object that the caller
 * requests. */
static enum sl_code google_request(struct fetch_request *request, struct sl_buf *token, uint64_t *life_s,
                                   struct sl_error *error)
{
    struct sl_buf answer = {0};
    bool explained = false;
    request->max_size = ANSWER_MAX;
    request->keep_wrapper = true; /* the response is JSON, not a compressed file */
    request->refused = google_refused;
    request->arg = &explained;
    enum sl_code code = fetch_text(request, &answer, error);
    if (code == SL_OK)
        code = google_take(sl_buf_view(&answer), token, life_s, error);
    else if (code != SL_CANCELLED && code != SL_BUSY && code != SL_INTERNAL &&
             !(explained && code == SL_DOWNLOAD_ERROR))
        code = no_token(SL_STR(""), error);
    sl_buf_wipe(&answer);
    return code;
}

struct signing { /* pool work */
    const struct google_account *account;
    const char *scope;
    struct sl_buf form;
    bool ok, no_memory;
};

/* Pool work: makes the form of a token request. */
static void sign_work(void *arg)
{
    struct signing *s = arg;
    sl_buf_cstr(&s->form, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=");
    struct sl_buf assertion = {0};
    s->ok = google_assertion(s->account, s->scope, clock_wall_s(), &assertion);
    sl_buf_str(&s->form, sl_buf_view(&assertion));
    s->no_memory = assertion.failed || s->form.failed;
    sl_buf_free(&assertion);
}

/* Requests a token with a signed assertion. Signing takes long for large keys, so it is pool work. */
static enum sl_code exchange(const struct google_account *account, const char *scope, struct fetch_request *request,
                             struct sl_buf *token, uint64_t *life_s, struct sl_error *error)
{
    struct signing signing = {.account = account, .scope = scope};
    struct fetch_header type = {SL_STR("Content-Type"), {SL_STR("application/x-www-form-urlencoded")}};
    enum sl_code code = pool_run(POOL_IO, sign_work, &signing, error);
    if (code == SL_OK && signing.no_memory)
        code = sl_fail(error, SL_BUSY, "out of memory");
    else if (code == SL_OK && !signing.ok)
        code = sl_fail(error, SL_DOWNLOAD_ERROR, "failed encoding JWT");
    request->method = "POST";
    request->headers = &type;
    request->header_count = 1;
    request->body.hidden = sl_buf_view(&signing.form);
    request->timeout_ns = EXCHANGE_S * SECOND_NS;
    if (code == SL_OK)
        code = google_request(request, token, life_s, error);
    sl_buf_wipe(&signing.form);
    return code;
}

/* Requests a token for the machine's own account from the metadata server. */
static enum sl_code request_from_machine(struct fetch_request *request, struct sl_buf *token, uint64_t *life_s,
                                         struct sl_error *error)
{
    struct fetch_header flavor = {SL_STR("Metadata-Flavor"), {SL_STR("Google")}};
    request->headers = &flavor;
    request->header_count = 1;
    request->own = true; /* metadata addresses are allowed; no proxy, no redirects */
    request->timeout_ns = MACHINE_S * SECOND_NS;
    return google_request(request, token, life_s, error);
}

/* Returns the URL of token requests: the server of the service account, or the metadata server. */
static struct sl_str make_url(const struct google_account *account, struct sl_arena *arena)
{
    struct sl_buf url = {0};
    const char *host = credentials_variable("GCE_METADATA_HOST");
    if (account->private_key.data)
        sl_buf_str(&url, token_url(account));
    else
        sl_buf_printf(&url, "http://%s" TOKEN_PATH, host ? host : METADATA_HOST);
    return sl_buf_move_to_arena(&url, arena);
}

enum sl_code google_token(const struct google_account *account, const char *scope, const char *label,
                          struct sl_buf *token, uint64_t *life_s, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct fetch_request request = {.url = make_url(account, &arena).data, .source = label};
    enum sl_code code = !request.url                ? sl_fail(error, SL_BUSY, "out of memory")
                        : account->private_key.data ? exchange(account, scope, &request, token, life_s, error)
                                                    : request_from_machine(&request, token, life_s, error);
    sl_arena_free(&arena);
    return code;
}
