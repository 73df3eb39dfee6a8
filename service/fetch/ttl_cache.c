/* Caches texts in memory for a limited time, such as tokens; renews them ahead, and shares one request among all waiting fibers. */
#include "fetch/ttl_cache.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "core/duration.h"
#include "core/loop.h"
#include "core/metrics.h"

enum {
    KEY_BYTES = 32, /* SHA-256 */
    RETRY_MS = 1000 /* pause before the next attempt when a renewal has failed and the old text is still valid */
};

struct ttl_cache_entry {
    struct lru_entry lru;
    struct fiber_wait_list waiters;
    uint32_t users;        /* fibers in ttl_cache_get with this entry; it is not evicted while there are some */
    bool asking, has_text; /* a fiber is calling the ttl_cache_request; `text` is valid */
    uint32_t round;        /* number of answers (texts or errors) so far */
    enum sl_code code;     /* code of the latest answer */
    struct sl_error error;
    struct sl_buf text;   /* valid if has_text */
    uint64_t deadline_ms; /* time until which the answer is cached; 0 = it is not */
    uint64_t renew_ms;    /* time from which on the next fiber asks for a new text */
    uint8_t key[KEY_BYTES];
};

/* Hashes the parts of a key, each after its length, so that ("ab", "c") and ("a", "bc") differ. False when out of memory. */
static bool hash(const struct sl_str *parts, size_t count, uint8_t out[KEY_BYTES])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
    for (size_t i = 0; ok && i < count; i++) {
        uint64_t size = parts[i].size;
        ok = EVP_DigestUpdate(ctx, &size, sizeof size) && EVP_DigestUpdate(ctx, parts[i].data, parts[i].size);
    }
    ok = ok && EVP_DigestFinal_ex(ctx, out, NULL);
    EVP_MD_CTX_free(ctx);
    return ok;
}

/* ---- the table ---- */
static struct ttl_cache_entry *entry_at(const struct lru_entry *entry)
{
    return entry ? LRU_ITEM(entry, struct ttl_cache_entry, lru) : NULL;
}

static bool is_in_use(const struct lru_entry *entry)
{
    return entry_at(entry)->users > 0;
}

/* Frees an entry that the LRU cache has removed. Wipes the text, which may be a secret, such as a token. */
static void ttl_cache_release(struct lru *lru, struct lru_entry *lru_entry)
{
    struct ttl_cache_entry *entry = entry_at(lru_entry);
    (void)lru;
    sl_buf_wipe(&entry->text);
    free(entry);
}

/* Returns the entry of the key, created if necessary, with one more user. NULL when out of memory. */
static struct ttl_cache_entry *use_entry(struct ttl_cache *cache, const uint8_t key[KEY_BYTES])
{
    struct lru *lru = &cache->lru;
    /* 0: the LRU cache does not expire entries here, settle does */
    struct ttl_cache_entry *entry = entry_at(lru_get(lru, (struct sl_str){(const char *)key, KEY_BYTES}, 0));
    if (entry) {
        entry->users++;
        return entry;
    }
    entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    memcpy(entry->key, key, KEY_BYTES);
    entry->lru.key = (struct sl_str){(const char *)entry->key, KEY_BYTES};
    entry->users = 1;
    /* set here, as users of a ttl_cache set only its options */
    lru->max_size = UINT64_MAX;
    lru->max_count = cache->capacity;
    lru->release = ttl_cache_release;
    lru->in_use = is_in_use;
    if (lru_put(lru, &entry->lru))
        return entry;
    free(entry);
    return NULL;
}

/* ---- one answer ---- */
/* Returns the time (of loop_now_ms) `ns` nanoseconds from now; 0 if that is less than a millisecond, as then the answer is not cached. */
static uint64_t deadline(uint64_t ns)
{
    uint64_t now = loop_now_ms(), ms = DURATION_MS(ns);
    return ms == 0 ? 0 : ms > UINT64_MAX - now ? UINT64_MAX : now + ms;
}

/* Caches the answer for `ns` nanoseconds. A text is renewed `ahead_ns` earlier, so that it does not expire while a request uses it; but not
 * before half of its lifetime. */
static void cache_for(const struct ttl_cache *cache, struct ttl_cache_entry *entry, uint64_t ns)
{
    uint64_t ahead_ns = entry->code != SL_OK ? 0 : cache->ahead_ns < ns / 2 ? cache->ahead_ns : ns / 2;
    entry->deadline_ms = deadline(ns);
    entry->renew_ms = deadline(ns - ahead_ns);
}

/* Calls `ask` for the text, stores the answer in the entry and wakes the fibers that wait for it. If `ask` fails, an old text that is still
 * valid stays in use; if `error_ns` is set, also one that has expired, for `again_ns` more. Else the answer is the error, cached as the
 * options say; SL_BUSY and SL_CANCELLED are not cached. */
static void request_now(struct ttl_cache *cache, struct ttl_cache_entry *entry, ttl_cache_request *ask,
                        const void *context)
{
    struct sl_buf text = {0};
    uint64_t for_ns = 0;
    struct sl_error error = {0};
    entry->asking = true;
    enum sl_code code = ask(context, &text, &for_ns, &error);
    if (code == SL_OK && text.failed)
        code = sl_fail(&error, SL_BUSY, "out of memory");
    entry->asking = false;
    entry->round++; /* tells the fibers that wait that there is a new answer */
    if (cache->name && code != SL_CANCELLED)
        metric_add(METRIC_SOURCE_TOKEN, 1, cache->name, code == SL_OK ? "ok" : "error", NULL);
    if (code == SL_OK) {
        sl_buf_wipe(&entry->text);
        entry->text = text;
        entry->has_text = true;
        entry->code = SL_OK;
        cache_for(cache, entry, for_ns);
    } else if (entry->has_text && entry->deadline_ms > loop_now_ms()) {
        sl_buf_wipe(&text);
        entry->renew_ms = loop_now_ms() + RETRY_MS;
    } else {
        sl_buf_wipe(&text);
        bool caches_error = code != SL_CANCELLED && cache->error_ns;
        bool keeps_text = caches_error && entry->has_text;
        /* the options may give some errors a time of their own (failure_ns) */
        uint64_t cached_ns = cache->failure_ns && cache->is_failure(code) ? cache->failure_ns : cache->error_ns;
        entry->code = keeps_text ? SL_OK : code;
        entry->error = error;
        cache_for(cache, entry, keeps_text ? cache->again_ns : caches_error && code != SL_BUSY ? cached_ns : 0);
    }
    fiber_wake_all(&entry->waiters);
}

/* Returns the entry's answer: its text, copied into the caller's arena, as a renewal may replace it, or its error. */
static enum sl_code copy_answer(const struct ttl_cache_entry *entry, struct sl_arena *arena, struct sl_str *text,
                                struct sl_error *error)
{
    if (entry->code != SL_OK) {
        if (error)
            *error = entry->error;
        return entry->code;
    }
    const char *copy =
        sl_arena_strndup(arena, entry->text.size ? (const char *)entry->text.data : "", entry->text.size);
    *text = (struct sl_str){copy, entry->text.size};
    return copy ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
}

/* Makes sure that the entry has an answer (text or error) for this fiber. It may be cached, or another fiber may have got it while this one
 * waited; else this fiber gets it by `ask`. While another fiber renews a text, the old one is used until it expires. If the asking fiber
 * was cancelled, another one asks. SL_CANCELLED if this fiber was cancelled while it waited. */
static enum sl_code settle(struct ttl_cache *cache, struct ttl_cache_entry *entry, ttl_cache_request *ask,
                           const void *context, struct sl_error *error)
{
    for (bool waited = false;;) { /* waited: another fiber has got an answer meanwhile */
        uint64_t now = loop_now_ms();
        bool answered = waited && !entry->asking && entry->code != SL_CANCELLED;
        if (answered || (entry->deadline_ms > now && (entry->asking || entry->renew_ms > now))) {
            if (cache->name)
                metric_add(METRIC_SOURCE_TOKEN, 1, cache->name, "kept", NULL);
            return SL_OK;
        }
        if (!entry->asking) {
            request_now(cache, entry, ask, context);
            return SL_OK;
        }
        uint32_t round = entry->round;
        if (fiber_wait_on(&entry->waiters, UINT64_MAX) == FIBER_CANCELLED)
            return sl_fail(error, SL_CANCELLED, "cancelled");
        waited = entry->round != round;
    }
}

enum sl_code ttl_cache_get(struct ttl_cache *cache, const struct sl_str *key, size_t key_parts, ttl_cache_request *ask,
                           const void *context, struct sl_arena *arena, struct sl_str *text, struct sl_error *error)
{
    uint8_t digest[KEY_BYTES];
    struct ttl_cache_entry *entry = hash(key, key_parts, digest) ? use_entry(cache, digest) : NULL;
    if (!entry)
        return sl_fail(error, SL_BUSY, "out of memory");
    enum sl_code code = settle(cache, entry, ask, context, error);
    if (code == SL_OK)
        code = copy_answer(entry, arena, text, error);
    entry->users--;
    if (entry->users == 0 && entry->deadline_ms == 0) /* its answer is not to be cached */
        lru_remove(&cache->lru, &entry->lru);
    lru_shrink(&cache->lru); /* the entry may be evicted only now, as it was in use */
    return code;
}

uint64_t ttl_cache_left_ms(struct ttl_cache *cache, const struct sl_str *key, size_t key_parts)
{
    uint8_t digest[KEY_BYTES];
    bool good = hash(key, key_parts, digest);
    const struct ttl_cache_entry *entry =
        good ? entry_at(lru_get(&cache->lru, (struct sl_str){(const char *)digest, KEY_BYTES}, 0)) : NULL;
    uint64_t now = loop_now_ms();
    return entry && entry->code == SL_OK && entry->deadline_ms > now ? entry->deadline_ms - now : 0;
}

void ttl_cache_expire(struct ttl_cache *cache)
{
    for (struct ttl_cache_entry *entry = LRU_OLDEST(&cache->lru, struct ttl_cache_entry, lru); entry;
         entry = LRU_NEWER(entry, lru))
        entry->deadline_ms = 0;
}

void ttl_cache_resize(struct ttl_cache *cache, size_t capacity)
{
    cache->capacity = cache->lru.max_count = capacity;
    lru_shrink(&cache->lru);
}

void ttl_cache_free(struct ttl_cache *cache)
{
    lru_clear(&cache->lru);
}
