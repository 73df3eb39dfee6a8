/* Two kinds whose computations do what the test has planned. */
#pragma once

#include "support.h"

#include "core/loop.h"
#include "core/metrics.h"

/* What a computation does is told by its context. */
struct plan {
    unsigned *runs;    /* counted */
    const char *write; /* into the file before ending */
    enum sl_code code;
    const char *message;
    uint64_t duration_ns;
    struct fiber_wait_list *gate; /* waited for first */
    bool replace;                 /* by another file */
    bool incomplete;
    const struct plan *base; /* of kinds that are made from another */
};

static enum sl_code compute(void *context, struct cache_tmp *tmp, struct sl_arena *arena, struct sl_error *error)
{
    (void)arena;
    const struct plan *plan = context;
    ++*plan->runs;
    if (plan->gate && fiber_wait_on(plan->gate, UINT64_MAX) == FIBER_CANCELLED)
        return sl_fail(error, SL_CANCELLED, "cancelled");
    if (plan->replace) {
        cache_tmp_discard(tmp);
        assert_int_equal(cache_tmp_create(tmp, false, NULL), SL_OK);
    }
    if (plan->write)
        assert_int_equal(write(tmp->fd, plan->write, strlen(plan->write)), strlen(plan->write));
    tmp->incomplete = plan->incomplete;
    if (plan->code != SL_OK) {
        sl_fail(error, plan->code, "%s", plan->message ? plan->message : "");
        error->duration_ns = plan->duration_ns;
    }
    return plan->code;
}

static void *retain(const void *context, struct sl_arena *arena)
{
    struct plan *copy = SL_ARENA_NEW(arena, struct plan);
    *copy = *(const struct plan *)context;
    return copy;
}

static unsigned loaded_now;

/* Contents that begin with "bad" are not accepted. */
static enum sl_code load(struct sl_bytes bytes, void **loaded, uint64_t *weight, struct sl_error *error)
{
    if (bytes.size >= 3 && memcmp(bytes.data, "bad", 3) == 0)
        return sl_fail(error, SL_MALFORMED, "bad");
    *loaded = malloc(1);
    *weight = 1;
    loaded_now++; /* look-ups of these tests do not overlap on the pool */
    return SL_OK;
}

static void free_loaded(void *loaded)
{
    free(loaded);
    loaded_now--;
}

static const unsigned fallbacks[] = {2, 0}, previous[] = {1, 2, 0};
static const struct cache_kind kind = {.name = "objects",
                                       .section = CACHE_DOWNLOADED,
                                       .version = 3,
                                       .fallbacks = fallbacks,
                                       .previous = previous,
                                       .format1_up_to = 1,
                                       .compute = compute,
                                       .retain = retain};
static const struct cache_kind loading = {.name = "symcaches",
                                          .section = CACHE_DERIVED,
                                          .version = 1,
                                          .compute = compute,
                                          .retain = retain,
                                          .load = load,
                                          .free_loaded = free_loaded};
static const struct cache_kind *const kinds[] = {&kind, &loading};

static inline void open_cache(void)
{
    struct sl_error error = {0};
    if (cache_init(&test_config, kinds, 2, &error) != SL_OK)
        fail_msg("%s", error.message);
}

static inline void reopen_cache(void)
{
    cache_drain();
    cache_close();
    open_cache();
}

static inline void run_to_its_end(void *arg)
{
    (*(void (**)(void *arg))arg)(NULL);
    cache_drain(); /* what it has begun ends before the cache is closed */
}

/* A fail of cmocka jumps out of the fiber, which is fatal but reported. */
static inline void run(void (*body)(void *arg))
{
    open_cache();
    loop_run_fiber(run_to_its_end, &body);
    cache_close();
    assert_int_equal(loaded_now, 0);
    if (test_config.cache_dir)
        assert_int_equal(files_below("tmp"), 0);
}

static inline const char *path_in(const struct cache_kind *of, const char *key, unsigned version)
{
    static char out[4][200];
    static unsigned next;
    char relative[128], *path = out[next++ % 4];
    cache_relative_path(sl_str(key), version, version <= of->format1_up_to, relative);
    snprintf(path, sizeof out[0], "%s/%s", of->name, relative);
    return path;
}

static inline const char *side_of(const char *path)
{
    static char out[220];
    snprintf(out, sizeof out, "%s.metadata", path);
    return out;
}

static inline struct cache_key key_of(const char *text)
{
    return (struct cache_key){sl_str(text), SL_STR("scope1")};
}

/* Expects contents. */
static inline void get(const struct cache_kind *of, const char *text, const struct plan *plan, const char *contents)
{
    struct cache_key key = key_of(text);
    struct cache_item *item;
    struct sl_error error = {0};
    enum sl_code code = cache_get(of, &key, plan, &item, &error);
    if (code != SL_OK)
        fail_msg("%s: %s", sl_code_name(code), error.message);
    assert_int_equal(item->mapping.bytes.size, strlen(contents));
    assert_memory_equal(item->mapping.bytes.data, contents, strlen(contents));
    cache_release(item);
}

static inline void get_error(const struct cache_kind *of, const char *text, const struct plan *plan, enum sl_code code,
                             const char *message)
{
    struct cache_key key = key_of(text);
    struct cache_item *item;
    struct sl_error error = {0};
    assert_int_equal(cache_get(of, &key, plan, &item, &error), code);
    assert_null(item);
    assert_int_equal(error.code, code);
    if (message)
        assert_string_equal(error.message, message);
}
