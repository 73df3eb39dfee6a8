/* Sources in Google Cloud Storage buckets: a download with a bearer token, which a service account's key is exchanged for
 * (RFC 7523; "Using OAuth 2.0 for server to server applications", Google Identity). */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "core/loop.h"
#include "core/pool.h"
#include "origin/impl.h"

#define TOKEN_URL "https://www.googleapis.com/oauth2/v4/token"
#define SCOPE     "https://www.googleapis.com/auth/devstorage.read_only"

enum { TOKEN_LIFE_S = 58 * 60, MARGIN_S = 30, ANSWER_MAX = 64 * 1024, KEY_BITS_MAX = 8192 };
#define SECOND_NS  UINT64_C(1000000000)
#define TIMEOUT_NS (30 * SECOND_NS)

static struct memo tokens = {.capacity = 100};

void gcs_init(size_t capacity)
{
    memo_free(&tokens);
    tokens.capacity = capacity;
}

/* ---- the assertion ---- */
static int no_password(char *buffer, int size, int writing, void *arg)
{
    return -1; /* else OpenSSL asks the terminal */
}

static EVP_PKEY *from_pem(struct sl_str text)
{
    BIO *bio = text.size <= INT32_MAX ? BIO_new_mem_buf(text.data, (int)text.size) : NULL;
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
    BIO_free(bio);
    return key;
}

/* The base64 that is between the lines of a PEM file. */
static EVP_PKEY *from_base64(struct sl_str text)
{
    EVP_ENCODE_CTX *ctx = EVP_ENCODE_CTX_new();
    unsigned char *der = malloc(text.size + 4);
    int size = 0, rest = 0;
    EVP_PKEY *key = NULL;
    EVP_DecodeInit(ctx);
    if (ctx && der && text.size < 64 * 1024 &&
        EVP_DecodeUpdate(ctx, der, &size, (const unsigned char *)text.data, (int)text.size) >= 0 &&
        EVP_DecodeFinal(ctx, der + size, &rest) == 1) {
        const unsigned char *at = der;
        key = d2i_AutoPrivateKey(NULL, &at, size + rest);
    }
    if (der)
        explicit_bzero(der, text.size + 4);
    free(der);
    EVP_ENCODE_CTX_free(ctx);
    return key;
}

static EVP_PKEY *read_key(struct sl_str text)
{
    bool pem = text.size && memmem(text.data, text.size, "-----BEGIN", 10);
    EVP_PKEY *key = pem ? from_pem(text) : text.size ? from_base64(text) : NULL;
    if (key && (EVP_PKEY_base_id(key) != EVP_PKEY_RSA || EVP_PKEY_bits(key) > KEY_BITS_MAX)) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    ERR_clear_error();
    return key;
}

/* RFC 4648, section 5, without padding. */
static void add_base64url(struct sl_buf *out, const void *data, size_t size)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i += 3) {
        size_t n = size - i < 3 ? size - i : 3;
        uint32_t v = (uint32_t)bytes[i] << 16 | (n > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (n > 2 ? bytes[i + 2] : 0);
        for (size_t c = 0; c <= n; c++)
            sl_buf_u8(out, (uint8_t)letters[v >> (18 - 6 * c) & 63]);
    }
}

static void add_claims(struct sl_buf *out, struct sl_str client_email, int64_t now_s)
{
    struct sl_buf json = {0};
    struct json_writer w = json_writer(&json);
    json_object_begin(&w);
    json_key(&w, "iss");
    json_str(&w, client_email);
    json_key(&w, "scope");
    json_str(&w, SL_STR(SCOPE));
    json_key(&w, "aud");
    json_str(&w, SL_STR(TOKEN_URL));
    json_key(&w, "exp");
    json_i64(&w, now_s + TOKEN_LIFE_S + MARGIN_S);
    json_key(&w, "iat");
    json_i64(&w, now_s);
    json_object_end(&w);
    add_base64url(out, json.data, json.size);
    out->failed |= json.failed;
    sl_buf_free(&json);
}

static bool add_signature(struct sl_buf *out, EVP_PKEY *key)
{
    unsigned char bytes[KEY_BITS_MAX / 8];
    size_t size = sizeof bytes;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && !out->failed && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
              EVP_DigestSign(ctx, bytes, &size, out->data, out->size) == 1;
    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    if (ok) {
        sl_buf_u8(out, '.');
        add_base64url(out, bytes, size);
    }
    return ok && !out->failed;
}

enum sl_code gcs_assertion(struct sl_str private_key, struct sl_str client_email, int64_t now_s, struct sl_buf *out,
                           struct sl_error *error)
{
    static const char header[] = "{\"typ\":\"JWT\",\"alg\":\"RS256\"}";
    EVP_PKEY *key = read_key(private_key);
    bool ok = key != NULL;
    if (ok) {
        add_base64url(out, header, sizeof header - 1);
        sl_buf_u8(out, '.');
        add_claims(out, client_email, now_s);
        ok = add_signature(out, key);
    }
    EVP_PKEY_free(key);
    return ok ? SL_OK : sl_fail(error, SL_DOWNLOAD_ERROR, "failed encoding JWT");
}

/* ---- the token ---- */
struct signing { /* pool work */
    const struct source *source;
    struct sl_buf *out;
    struct sl_error *error;
    enum sl_code code;
};

static void sign_work(void *arg)
{
    struct signing *s = arg;
    s->code =
        gcs_assertion(secret_open(s->source->private_key), s->source->client_email, clock_wall_s(), s->out, s->error);
}

static enum sl_code no_token(struct sl_str description, struct sl_error *error)
{
    if (!description.size)
        return sl_fail(error, SL_DOWNLOAD_ERROR, "failed to send authentication request");
    return sl_fail(error, SL_DOWNLOAD_ERROR, "failed to send authentication request: " SL_STR_FMT,
                   SL_STR_ARG(description));
}

static enum sl_code refused(void *arg, int status, struct sl_str body, struct sl_error *error)
{
    struct json_object *object = NULL;
    json_parse(body, &object, NULL);
    enum sl_code code = no_token(object ? json_member(object, "error_description") : SL_STR(""), error);
    json_object_put(object);
    return code;
}

static enum sl_code exchange(const struct source *source, struct sl_str assertion, struct sl_buf *text,
                             struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct sl_buf form = {0}, answer = {0};
    struct json_object *object = NULL;
    struct fetch_header type = {SL_STR("Content-Type"), {SL_STR("application/x-www-form-urlencoded")}};
    sl_buf_cstr(&form, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=");
    sl_buf_str(&form, assertion);
    struct fetch_request request = {.url = TOKEN_URL,
                                    .method = "POST",
                                    .headers = &type,
                                    .header_count = 1,
                                    .body = {sl_buf_view(&form)},
                                    .source = source_label(&arena, source),
                                    .max_size = ANSWER_MAX,
                                    .timeout_ns = TIMEOUT_NS,
                                    .keep_wrapper = true,
                                    .refused = refused};
    enum sl_code code = form.failed || !request.source ? sl_fail(error, SL_INTERNAL, "out of memory")
                                                       : fetch_text(&request, &answer, error);
    bool explained = code == SL_DOWNLOAD_ERROR && strncmp(error->message, "failed to send", 14) == 0;
    if (code == SL_OK) {
        json_parse(sl_buf_view(&answer), &object, NULL);
        struct sl_str token = object ? json_member(object, "access_token") : SL_STR("");
        sl_buf_str(text, token);
        if (!token.size)
            code = no_token(object ? json_member(object, "error_description") : SL_STR(""), error);
        json_object_put(object);
    } else if (code != SL_CANCELLED && code != SL_INTERNAL && !explained) {
        code = no_token(SL_STR(""), error);
    }
    if (answer.data)
        explicit_bzero(answer.data, answer.capacity);
    sl_buf_free(&answer);
    sl_buf_free(&form);
    sl_arena_free(&arena);
    return code;
}

static enum sl_code ask_token(const void *context, struct sl_buf *text, uint64_t *for_ns, struct sl_error *error)
{
    struct sl_buf assertion = {0};
    struct signing s = {context, &assertion, error, SL_OK};
    enum sl_code code = pool_run(POOL_IO, sign_work, &s, error);
    if (code == SL_OK)
        code = s.code;
    if (code == SL_OK)
        code = exchange(context, sl_buf_view(&assertion), text, error);
    *for_ns = TOKEN_LIFE_S * SECOND_NS;
    sl_buf_free(&assertion);
    return code;
}

/* ---- the download ---- */
static enum sl_code fetch(struct sl_arena *arena, const struct remote_file *file, int fd, struct sl_error *error)
{
    const struct source *source = file->source;
    struct sl_str token = secret_open(source->bearer_token);
    struct sl_str key[] = {secret_open(source->private_key), source->client_email};
    if (!secret_present(source->bearer_token)) {
        enum sl_code code = memo_get(&tokens, key, 2, ask_token, source, arena, &token, error);
        if (code != SL_OK)
            return code;
    }
    struct sl_buf bearer = {0}, url = {0};
    sl_buf_cstr(&bearer, "Bearer ");
    sl_buf_str(&bearer, token);
    sl_buf_cstr(&url, "https://storage.googleapis.com/storage/v1/b/");
    aws_encode(&url, source->bucket, false);
    sl_buf_cstr(&url, "/o/");
    aws_encode(&url, file->location, false);
    sl_buf_cstr(&url, "?alt=media");
    struct fetch_header header = {SL_STR("Authorization"), {buf_in_arena(arena, &bearer)}};
    struct fetch_request request = {.url = buf_in_arena(arena, &url).data,
                                    .headers = &header,
                                    .header_count = 1,
                                    .source = source_label(arena, source),
                                    .max_size = file->max_size};
    if (!request.url || !request.source || !header.value.hidden.data)
        return sl_fail(error, SL_INTERNAL, "out of memory");
    return fetch_get(&request, fd, error);
}

enum sl_code gcs_fetch(const struct remote_file *file, int fd, struct sl_error *error)
{
    struct sl_arena arena = {0};
    enum sl_code code = fetch(&arena, file, fd, error);
    sl_arena_free(&arena);
    return code;
}
