/* Caches S3 keys and Google tokens until a minute before they expire. One request renews them earlier, while others
 * still use the cached ones. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "fetch/ttl_cache.h"
#include "objectstore/impl.h"

#define SCOPE      "https://www.googleapis.com/auth/devstorage.read_"
#define SECOND_NS  UINT64_C(1000000000)
#define RENEWAL_NS (OBJECT_RENEWAL_MS * UINT64_C(1000000))

/* MARGIN_S: cached credentials are not used in their last minute, as the request that uses them takes time, too. LIFE_MAX_S: Google's
 * tokens are not cached for longer. OWN_STORES: most cached credentials of stores that the operator configured. */
enum { MARGIN_S = 60, LIFE_MAX_S = 3600, OWN_STORES = 8, FILE_MAX = 64 << 10 };

const char *const aws_credentials_words[] = {"static", "container", "instance", "web_identity", NULL};

/* Cached credentials. Those of symbol sources have limits that can be configured and are counted in metrics, because clients can name any
 * number of sources in their requests. */
static struct ttl_cache source_keys = {.capacity = 100, .name = "s3", .ahead_ns = RENEWAL_NS},
                        source_tokens = {.capacity = 100, .name = "gcs", .ahead_ns = RENEWAL_NS},
                        own_stores = {.capacity = OWN_STORES, .ahead_ns = RENEWAL_NS};

void object_credentials_resize_cache(size_t s3_capacity, size_t gcs_capacity)
{
    ttl_cache_resize(&source_keys, s3_capacity);
    ttl_cache_resize(&source_tokens, gcs_capacity);
}

void object_credentials_clear(void)
{
    ttl_cache_free(&source_keys);
    ttl_cache_free(&source_tokens);
    ttl_cache_free(&own_stores);
}

static bool is_s3(const struct object_store *store)
{
    return store->config->s3_name.data != NULL;
}

/* True if the configuration contains the credentials, so that none are requested or cached. */
static bool has_credentials(const struct object_store *store)
{
    return is_s3(store) ? store->config->credentials == CREDENTIALS_STATIC
                        : secret_present(store->config->bearer_token);
}

struct cached_credentials {
    struct ttl_cache *cache;
    struct sl_str key[2];
};

/* Returns the cache and the cache key of a store's credentials. The service's own stores use another cache than symbol sources, so that
 * sources that clients name cannot evict their credentials. */
static struct cached_credentials find_slot(const struct object_store *store)
{
    struct ttl_cache *cache = !store->is_source ? &own_stores : is_s3(store) ? &source_keys : &source_tokens;
    if (is_s3(store)) /* the machine's keys depend on their provider and, for STS, on the region, not on the bucket */
        return (struct cached_credentials){
            cache, {sl_str(aws_credentials_words[store->config->credentials]), s3_region(store->config)}};
    return (struct cached_credentials){cache, {store->account.private_key, store->account.client_email}};
}

/* Called by the cache to get new credentials; `*for_ns`: how long to cache them. Symbol sources are only read, so the tokens for them
 * do not permit to write (Google's scopes devstorage.read_only and devstorage.read_write). */
static enum sl_code request_credentials(const void *context, struct sl_buf *text, uint64_t *for_ns,
                                        struct sl_error *error)
{
    const struct object_store *store = context;
    uint64_t life_s = 0;
    enum sl_code code = is_s3(store) ? aws_keys_get(store->config, text, &life_s, error)
                                     : google_token(&store->account, store->is_source ? SCOPE "only" : SCOPE "write",
                                                    store->label, text, &life_s, error);
    if (!is_s3(store)) /* 0: the response of Google states no lifetime */
        life_s = life_s == 0 ? GOOGLE_TOKEN_LIFE_S : life_s > LIFE_MAX_S ? LIFE_MAX_S : life_s;
    *for_ns = life_s > MARGIN_S ? (life_s - MARGIN_S) * SECOND_NS : 0;
    return code;
}

/* Gets credentials from the cache, which requests them if need be; `*text` is in the arena. */
static enum sl_code get_cached(const struct object_store *store, struct sl_arena *arena, struct sl_str *text,
                               struct sl_error *error)
{
    struct cached_credentials slot = find_slot(store);
    return ttl_cache_get(slot.cache, slot.key, 2, request_credentials, store, arena, text, error);
}

uint64_t object_store_credentials_ms(const struct object_store *store)
{
    struct cached_credentials slot = find_slot(store);
    return has_credentials(store) ? UINT64_MAX : ttl_cache_left_ms(slot.cache, slot.key, 2);
}

/* Only fills the cache; the credentials themselves are dropped. */
enum sl_code object_store_authorize(const struct object_store *store, struct sl_error *error)
{
    struct sl_arena arena = {0};
    struct sl_str text;
    enum sl_code code = has_credentials(store) ? SL_OK : get_cached(store, &arena, &text, error);
    sl_arena_free(&arena);
    return code;
}

/* Cached keys are three NUL-terminated texts, one after the other: access key, secret key, session token. */
enum sl_code credentials_aws(const struct object_store *store, struct sl_arena *arena, struct aws_keys *keys,
                             struct sl_error *error)
{
    struct sl_str text;
    *keys = store->keys;
    if (has_credentials(store))
        return SL_OK;
    enum sl_code code = get_cached(store, arena, &text, error);
    if (code == SL_OK) {
        keys->access_key = sl_str(text.data);
        keys->secret_key = sl_str(keys->access_key.data + keys->access_key.size + 1);
        keys->session_token = sl_str(keys->secret_key.data + keys->secret_key.size + 1);
    }
    return code;
}

enum sl_code credentials_google(const struct object_store *store, struct sl_arena *arena, struct sl_str *token,
                                struct sl_error *error)
{
    *token = secret_open(store->config->bearer_token);
    return has_credentials(store) ? SL_OK : get_cached(store, arena, token, error);
}

/* Returns an environment variable; NULL if it is not set or empty. */
const char *credentials_variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Reads the first FILE_MAX bytes of a file; on failure sets errno and returns false. O_NONBLOCK: a FIFO must not block the loop. */
bool credentials_read_file(const char *path, struct sl_buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = fd < 0 || !sl_buf_reserve(out, FILE_MAX) ? -1 : read(fd, out->data, FILE_MAX);
    int number = errno;
    sl_close(fd);
    out->size = size > 0 ? (size_t)size : 0;
    if (size < 0)
        sl_buf_free(out);
    errno = number;
    return size >= 0;
}
