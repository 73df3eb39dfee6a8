/* The kind `own_symcaches`: symcaches that a user's command made from files of the local machine. */
#include "cache_kinds/impl.h"

#include "core/pool.h"

struct local_symcache_making {
    const struct local_symcache *own;
    int fd;
};

/* Pool work: makes the symcache by the function of the caller (`own->make`) and writes it to the entry's file. */
static enum sl_code own_symcache_make(void *arg, struct sl_error *error)
{
    const struct local_symcache_making *m = arg;
    struct sl_bytes bytes = {NULL, 0};
    enum sl_code code = m->own->make(m->own->arg, &bytes, error);
    return code == SL_OK && !sl_write_all(m->fd, bytes)
               ? sl_fail(error, SL_INTERNAL, "cannot write the symcache to the disk cache")
               : code;
}

/* Makes the symcache by the function of the caller (`make`). If that is NULL, the caller wants an existing entry only: the error for "there
 * is none" is SL_CANCELLED, because the cache would store any other error as the result for this key. */
static enum sl_code own_symcaches_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                          struct sl_error *error)
{
    struct local_symcache_making m = {.own = context, .fd = tmp->fd};
    (void)arena;
    if (!m.own->make) /* only an existing entry is wanted */
        return sl_fail(error, SL_CANCELLED, "no symcache is cached for these files");
    return pool_call(POOL_CONVERT, own_symcache_make, &m, error);
}

/* Checks that the symcache can be opened; keeps nothing. */
static enum sl_code own_symcaches_load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error)
{
    struct sl_symcache cache;
    *loaded = NULL;
    *weight = 0;
    return sl_symcache_open(bytes, &cache, error);
}

const struct cache_kind kind_own_symcaches = {
    .name = "own_symcaches",
    .section = CACHE_DERIVED,
    .version = SYMCACHES_VERSION,
    .random_access = true,
    .compute = own_symcaches_compute,
    .shareable = kinds_never_shared,
    .load = own_symcaches_load,
};

enum sl_code local_symcache_get(struct sl_str key, const struct local_symcache *own, struct cache_item **item,
                                struct sl_error *error)
{
    struct cache_key named = {.text = key, .scope = SL_STR("global")};
    return cache_get(&kind_own_symcaches, &named, own, item, error);
}
