/* TTL caches in memory: for tokens, credentials, small indexes.
 *
 * A table of texts by key: at most `capacity` entries (LRU), each with a lifetime. Fibers that want a missing text at the same time
 * share one call of the caller's ttl_cache_request; if the fiber that makes it is cancelled, another one calls again. Texts may be
 * secret: they are wiped when removed, and only the SHA-256 of a key is stored. Loop thread only. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "core/fiber.h"
#include "core/lru.h"

struct ttl_cache {
    size_t capacity;  /* 0 = store nothing */
    const char *name; /* label of metrics; NULL = not counted */
    /* Nanoseconds. error_ns: how long errors are cached; 0 = not at all. again_ns: if error_ns is not 0, a text whose renewal has failed is
     * used for so much longer. */
    uint64_t error_ns, again_ns;
    uint64_t failure_ns; /* how long errors for which `is_failure` is true are cached; 0 = `error_ns` */
    bool (*is_failure)(enum sl_code code);
    /* How long before a text expires, in nanoseconds, the next fiber that wants it renews it; at most half of its lifetime. Meanwhile, and
     * if the renewal fails, fibers use the old text until it expires. 0 = renew when it has expired. */
    uint64_t ahead_ns;
    struct lru lru; /* private */
};

/* The function that gets a text which is not cached: appends it to `text` and sets its lifetime in nanoseconds (0 = do not cache it). */
typedef enum sl_code ttl_cache_request(const void *context, struct sl_buf *text, uint64_t *for_ns,
                                       struct sl_error *error) SL_SUSPENDS;

/* Returns the text of the key (a list of texts), copied into the arena. If it is not cached, calls `ask` with `context` for it, whose error
 * is returned. SL_CANCELLED if the caller's group was cancelled. */
enum sl_code ttl_cache_get(struct ttl_cache *cache, const struct sl_str *key, size_t key_parts, ttl_cache_request *ask,
                           const void *context, struct sl_arena *arena, struct sl_str *text,
                           struct sl_error *error) SL_SUSPENDS;

/* Returns the remaining lifetime of a cached text in milliseconds; 0 = it is not cached. */
uint64_t ttl_cache_left_ms(struct ttl_cache *cache, const struct sl_str *key, size_t key_parts);

/* Makes every text expire: it is requested again by the next ttl_cache_get. */
void ttl_cache_expire(struct ttl_cache *cache);

/* Changes the capacity, and evicts the least recently used entries beyond it. */
void ttl_cache_resize(struct ttl_cache *cache, size_t capacity);

/* Frees everything. No fiber may be in ttl_cache_get. */
void ttl_cache_free(struct ttl_cache *cache);
