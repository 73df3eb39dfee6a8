/* The kind `diagnostics`: minidumps that could not be processed. They contain memory of users' programs, so they are stored
 * only if the configuration says so, and never shared. */
#include "cache_kinds/impl.h"

#include <stdio.h>

#include "base/map.h"
#include "core/log.h"
#include "core/pool.h"

struct failed_minidump {
    struct cache_lookup look; /* first: dump_kept gets a pointer to it */
    struct fiber *fiber;
    bool done;
    struct sl_bytes dump;
    char key[128];
    int fd; /* of the entry, while it is written */
    bool written;
};

static void write_dump(void *arg)
{
    struct failed_minidump *k = arg;
    k->written = sl_write_all(k->fd, k->dump);
}

/* Writes the minidump to the entry. */
static enum sl_code diagnostics_compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                        struct sl_error *error)
{
    (void)arena;
    struct failed_minidump *k = context; /* lives until this ends: save_failed_minidump waits for it */
    k->fd = tmp->fd;
    enum sl_code code = pool_run(POOL_IO, write_dump, k, error);
    return code != SL_OK || k->written ? code
                                       : sl_fail(error, SL_INTERNAL, "cannot write the minidump to its cache file");
}

const struct cache_kind kind_diagnostics = {
    .name = "diagnostics",
    .section = CACHE_DIAGNOSTICS,
    .version = 2,
    .compute = diagnostics_compute,
    .shareable = kinds_never_shared,
};

/* Pool work: makes the key of the entry. It has a hash of the whole minidump, so that equal ones are stored once. */
static void name_dump(void *arg)
{
    struct failed_minidump *k = arg;
    snprintf(k->key, sizeof k->key, "scope: global\n\nminidump: %zu bytes, %016llx\n", k->dump.size,
             (unsigned long long)sl_hash(k->dump.data, k->dump.size));
}

static void dump_kept(struct cache_lookup *look)
{
    struct failed_minidump *k = (struct failed_minidump *)look;
    k->done = true;
    fiber_wake(k->fiber);
}

/* Stores the minidump. Waits until it is written, even if cancelled: the record that the look-up uses is on this fiber's stack. */
void save_failed_minidump(struct sl_bytes dump)
{
    struct sl_error error = {0};
    struct failed_minidump k = {.fiber = fiber_self(), .dump = dump};
    if (pool_run(POOL_IO, name_dump, &k, &error) != SL_OK) /* it cannot be read any more, or memory is out */
        return;
    struct cache_key key = {.text = sl_str(k.key)};
    k.look = (struct cache_lookup){
        .kind = &kind_diagnostics, .key = &key, .context = &k, .error = &error, .done = dump_kept};
    k.done = cache_lookup_async(&k.look); /* true: answered at once; otherwise dump_kept will be called */
    while (!k.done)
        fiber_suspend_uncancellable();
    cache_release(k.look.item);
    if (k.look.code == SL_OK)
        log_info("kinds", "kept a minidump that could not be processed", LOG_U64("bytes", dump.size));
    else
        log_warn("kinds", "cannot keep a minidump that could not be processed", LOG_ERR(&error));
}
