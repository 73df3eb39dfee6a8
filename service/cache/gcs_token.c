/* Tokens for Google's APIs: a service account's key is exchanged for them ("Using OAuth 2.0 for server to server
 * applications", Google Identity), or the machine's metadata server gives them ("Access tokens", Compute Engine). One is
 * kept, and the next one asked for while it is still good, so that nobody waits. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache/bucket.h"
#include "core/json.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/pool.h"

#define GOOGLE_TOKEN_URL "https://www.googleapis.com/oauth2/v4/token"
#define METADATA_URL     "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"
#define SCOPE            "https://www.googleapis.com/auth/devstorage.read_write"
#define TIMEOUT_NS       UINT64_C(30000000000)
enum {
    FILE_MAX = 64 << 10,
    ANSWER_MAX = 64 << 10,
    KEY_BITS_MAX = 8192,
    ASSERTION_LIFE_S = 3600,
    WAIT_MS = 300,
    MARGIN_MS = 60 * 1000,    /* a token this near to its end is not used */
    AHEAD_MS = 5 * 60 * 1000, /* ... and this near, the next one is asked for */
    RETRY_MS = 1000,
};

static struct {
    struct gcs_account account;
    struct fiber_group *group;
    struct sl_buf header; /* "Bearer ..." */
    uint64_t good_until_ms, not_before_ms;
    bool asking;
    struct fiber_wait_list changed;
} token;

/* ---- the key file ---- */
static struct sl_str member(struct json_object *object, const char *name, struct sl_arena *arena)
{
    struct json_object *value;
    if (!json_object_object_get_ex(object, name, &value) || !json_object_is_type(value, json_type_string))
        return (struct sl_str){NULL, 0};
    size_t size = (size_t)json_object_get_string_len(value);
    const char *copy = sl_arena_strndup(arena, json_object_get_string(value), size);
    return (struct sl_str){copy, copy ? size : 0};
}

static bool read_file(const char *path, struct sl_buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 || !sl_buf_reserve(out, FILE_MAX) ? -1 : pread(fd, out->data, FILE_MAX, 0);
    int number = errno;
    if (fd >= 0)
        close(fd);
    errno = number;
    out->size = n > 0 ? (size_t)n : 0;
    return n >= 0;
}

enum sl_code gcs_account_read(const char *path, struct sl_arena *arena, struct gcs_account *account,
                              struct sl_error *error)
{
    struct sl_buf text = {0};
    struct json_object *object = NULL;
    enum sl_code code = SL_OK;
    *account = (struct gcs_account){0};
    if (!read_file(path, &text))
        code = sl_fail(error, SL_INTERNAL, "cannot read the service account %.120s: %s", path, strerror(errno));
    else if (json_parse(sl_buf_view(&text), &object, NULL) != SL_OK || !json_object_is_type(object, json_type_object))
        code = sl_fail(error, SL_MALFORMED, "the service account %.120s is no JSON", path);
    if (code == SL_OK) {
        account->private_key = member(object, "private_key", arena);
        account->client_email = member(object, "client_email", arena);
        account->token_url = member(object, "token_uri", arena);
        if (!account->private_key.size || !account->client_email.size)
            code = sl_fail(error, SL_MALFORMED, "the service account %.120s has no private_key and client_email", path);
        if (!account->token_url.size)
            account->token_url = SL_STR(GOOGLE_TOKEN_URL);
    }
    json_object_put(object);
    if (text.data)
        explicit_bzero(text.data, text.capacity);
    sl_buf_free(&text);
    return code;
}

/* ---- the assertion ---- */
static int no_password(char *buffer, int size, int writing, void *arg)
{
    (void)buffer, (void)size, (void)writing, (void)arg;
    return -1; /* else OpenSSL asks the terminal */
}

static EVP_PKEY *read_key(struct sl_str text)
{
    BIO *bio = text.size && text.size <= FILE_MAX ? BIO_new_mem_buf(text.data, (int)text.size) : NULL;
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
    BIO_free(bio);
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
    const uint8_t *in = data;
    for (size_t at = 0; at < size; at += 3) {
        uint32_t bits = (uint32_t)in[at] << 16;
        size_t left = size - at < 3 ? size - at : 3;
        bits |= left > 1 ? (uint32_t)in[at + 1] << 8 : 0;
        bits |= left > 2 ? in[at + 2] : 0;
        for (size_t i = 0; i <= left; i++)
            sl_buf_u8(out, (uint8_t)letters[bits >> (18 - 6 * i) & 63]);
    }
}

static void add_claims(const struct gcs_account *account, int64_t now_s, struct sl_buf *out)
{
    struct sl_buf json = {0};
    struct json_writer w = json_writer(&json);
    const struct {
        const char *key;
        struct sl_str text;
    } texts[] = {{"iss", account->client_email}, {"scope", SL_STR(SCOPE)}, {"aud", account->token_url}};
    json_object_begin(&w);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_key(&w, texts[i].key);
        json_str(&w, texts[i].text);
    }
    json_key(&w, "iat");
    json_i64(&w, now_s);
    json_key(&w, "exp");
    json_i64(&w, now_s + ASSERTION_LIFE_S);
    json_object_end(&w);
    add_base64url(out, json.data, json.size);
    out->failed |= json.failed;
    sl_buf_free(&json);
}

bool gcs_assertion_sign(const struct gcs_account *account, int64_t now_s, struct sl_buf *out)
{
    static const char head[] = "{\"typ\":\"JWT\",\"alg\":\"RS256\"}";
    unsigned char signature[KEY_BITS_MAX / 8];
    size_t size = sizeof signature;
    EVP_PKEY *key = read_key(account->private_key);
    EVP_MD_CTX *context = key ? EVP_MD_CTX_new() : NULL;
    add_base64url(out, head, sizeof head - 1);
    sl_buf_u8(out, '.');
    add_claims(account, now_s, out);
    bool ok = context && !out->failed && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
              EVP_DigestSign(context, signature, &size, out->data, out->size) == 1;
    if (ok) {
        sl_buf_u8(out, '.');
        add_base64url(out, signature, size);
    }
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return ok && !out->failed;
}

/* ---- asking ---- */
struct signing {
    struct sl_buf form;
    bool ok;
};

static void sign_work(void *arg)
{
    struct signing *s = arg;
    sl_buf_cstr(&s->form, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=");
    struct sl_buf assertion = {0};
    s->ok = gcs_assertion_sign(&token.account, clock_wall_s(), &assertion);
    sl_buf_str(&s->form, sl_buf_view(&assertion));
    s->ok = s->ok && !s->form.failed;
    sl_buf_free(&assertion);
}

static enum sl_code exchange(struct sl_buf *answer, struct sl_error *error)
{
    struct signing signing = {.ok = false};
    char url[512];
    snprintf(url, sizeof url, SL_STR_FMT, SL_STR_ARG(token.account.token_url));
    enum sl_code code = pool_run(POOL_IO, sign_work, &signing, error);
    if (code == SL_OK && !signing.ok)
        code = sl_fail(error, SL_MALFORMED, "the key of the service account cannot sign");
    struct fetch_header type = {SL_STR("Content-Type"), {SL_STR("application/x-www-form-urlencoded")}};
    struct fetch_request request = {.url = url,
                                    .method = "POST",
                                    .headers = &type,
                                    .header_count = 1,
                                    .body = {sl_buf_view(&signing.form)},
                                    .source = "shared_cache",
                                    .max_size = ANSWER_MAX,
                                    .timeout_ns = TIMEOUT_NS,
                                    .keep_wrapper = true};
    if (code == SL_OK)
        code = fetch_text(&request, answer, error);
    sl_buf_free(&signing.form);
    return code;
}

static enum sl_code ask_machine(struct sl_buf *answer, struct sl_error *error)
{
    struct fetch_header flavor = {SL_STR("Metadata-Flavor"), {SL_STR("Google")}};
    struct fetch_request request = {.url = METADATA_URL,
                                    .headers = &flavor,
                                    .header_count = 1,
                                    .own = true,
                                    .trusted = true,
                                    .source = "shared_cache",
                                    .max_size = ANSWER_MAX,
                                    .timeout_ns = TIMEOUT_NS,
                                    .keep_wrapper = true};
    return fetch_text(&request, answer, error);
}

static bool take(struct sl_str answer)
{
    struct sl_arena arena = {0};
    struct json_object *object = NULL, *life;
    json_parse(answer, &object, NULL);
    struct sl_str text = object ? member(object, "access_token", &arena) : (struct sl_str){NULL, 0};
    if (text.size) {
        int64_t seconds = ASSERTION_LIFE_S;
        if (json_object_object_get_ex(object, "expires_in", &life) && json_object_is_type(life, json_type_int))
            seconds = json_object_get_int64(life);
        seconds = seconds < 0 ? 0 : seconds > ASSERTION_LIFE_S ? ASSERTION_LIFE_S : seconds;
        sl_buf_clear(&token.header);
        sl_buf_cstr(&token.header, "Bearer ");
        sl_buf_str(&token.header, text);
        token.good_until_ms = loop_now_ms() + (uint64_t)seconds * 1000;
    }
    json_object_put(object);
    sl_arena_free(&arena);
    return text.size > 0 && !token.header.failed;
}

static void ask(void *arg)
{
    (void)arg;
    struct sl_buf answer = {0};
    struct sl_error error = {0};
    enum sl_code code = token.account.private_key.size ? exchange(&answer, &error) : ask_machine(&answer, &error);
    if (code == SL_OK && !take(sl_buf_view(&answer)))
        code = sl_fail(&error, SL_DOWNLOAD_ERROR, "an answer without token");
    if (code != SL_OK && code != SL_CANCELLED) {
        log_warn("shared", "no token for the bucket", LOG_ERR(&error));
        token.not_before_ms = loop_now_ms() + RETRY_MS;
    }
    if (answer.data)
        explicit_bzero(answer.data, answer.capacity);
    sl_buf_free(&answer);
    token.asking = false;
    fiber_wake_all(&token.changed);
}

static bool good_for(uint64_t ms)
{
    return token.good_until_ms > loop_now_ms() + ms;
}

const char *gcs_token_get(struct sl_arena *arena)
{
    uint64_t end = loop_now_ms() + WAIT_MS;
    if (!good_for(AHEAD_MS) && !token.asking && loop_now_ms() >= token.not_before_ms)
        token.asking = fiber_start(token.group, ask, NULL);
    while (!good_for(MARGIN_MS) && token.asking) {
        uint64_t now = loop_now_ms();
        if (now >= end || fiber_wait_on(&token.changed, end - now) == FIBER_CANCELLED)
            break;
    }
    return good_for(MARGIN_MS) ? sl_arena_strndup(arena, (const char *)token.header.data, token.header.size) : NULL;
}

void gcs_token_init(const struct gcs_account *account, struct fiber_group *group)
{
    token.account = *account;
    token.group = group;
    token.good_until_ms = token.not_before_ms = 0;
    token.asking = false;
}

void gcs_token_close(void)
{
    if (token.header.data)
        explicit_bzero(token.header.data, token.header.capacity);
    sl_buf_free(&token.header);
    token.header = (struct sl_buf){0};
    token.good_until_ms = 0;
}
