/* Misses asked for again before they expire, because something better may have turned up. */
#include "support.h"

#include "core/loop.h"
#include "core/metrics.h"

/* The world as the sources have it, and how often it was asked. */
static struct world {
    enum sl_code code;
    unsigned files, features, tables;
    struct fiber_wait_list *gate;
} world;

static enum sl_code compute_file(void *context, struct cache_tmp *tmp, struct sl_arena *arena, struct sl_error *error)
{
    (void)context, (void)arena;
    world.files++;
    if (world.gate)
        fiber_wait_on(world.gate, UINT64_MAX);
    if (world.code != SL_OK)
        return sl_fail(error, world.code, "not there");
    assert_int_equal(write(tmp->fd, "file", 4), 4);
    return SL_OK;
}

static const struct cache_kind objects = {
    .name = "objects", .section = CACHE_DOWNLOADED, .version = 2, .compute = compute_file};

static const struct cache_key key = {SL_STR("scope: global\n\na"), SL_STR("global")};

static enum sl_code compute_features(void *context, struct cache_tmp *tmp, struct sl_arena *arena,
                                     struct sl_error *error)
{
    (void)arena;
    struct cache_item *item;
    world.features++;
    enum sl_code code = cache_get(&objects, &key, context, &item, error);
    if (code != SL_OK)
        return code;
    cache_release(item);
    assert_int_equal(write(tmp->fd, "features", 8), 8);
    return SL_OK;
}

static const struct cache_kind meta = {
    .name = "object_meta", .section = CACHE_DERIVED, .version = 2, .compute = compute_features};
/* Made of the features, of less when they are not to be had. */
static enum sl_code compute_table(void *context, struct cache_tmp *tmp, struct sl_arena *arena, struct sl_error *error)
{
    (void)arena;
    struct cache_item *item;
    world.tables++;
    tmp->incomplete = cache_get(&meta, &key, context, &item, error) != SL_OK;
    cache_release(item);
    assert_int_equal(write(tmp->fd, tmp->incomplete ? "some" : "all!", 4), 4);
    return SL_OK;
}

static const struct cache_kind table = {
    .name = "symcaches", .section = CACHE_DERIVED, .version = 1, .compute = compute_table};
static const struct cache_kind *const kinds[] = {&objects, &meta, &table};

static void run(void (*body)(void *arg))
{
    struct sl_error error = {0};
    world = (struct world){.code = SL_NOT_FOUND};
    if (cache_init(&test_config, kinds, 3, &error) != SL_OK)
        fail_msg("%s", error.message);
    loop_run_fiber(body, NULL);
    cache_close();
}

static void expect(enum sl_code code)
{
    struct cache_item *item;
    assert_int_equal(cache_get(&meta, &key, NULL, &item, NULL), code);
    cache_release(item);
}

static void wait_for(const unsigned *counter, unsigned value)
{
    while (*counter < value)
        fiber_sleep(1);
}

static void wait_until_ok(void)
{
    struct cache_item *item = NULL;
    while (cache_get(&meta, &key, NULL, &item, NULL) != SL_OK)
        fiber_sleep(1);
    cache_release(item);
}

FIBER_TEST(appeared_file_is_found_in_the_background, test_config.upgrade_fallback_after_ns = 0)
{
    struct fiber_wait_list gate = {0};
    expect(SL_NOT_FOUND);
    world.code = SL_OK;
    world.gate = &gate;
    cache_renew(&meta, &key, NULL);
    cache_renew(&meta, &key, NULL); /* one at a time */
    wait_for(&world.files, 2);
    expect(SL_NOT_FOUND); /* nobody waits for it */
    world.gate = NULL;
    fiber_wake_all(&gate);
    wait_until_ok();
    assert_int_equal(world.files, 2);
    assert_int_equal(world.features, 2);
    cache_renew(&meta, &key, NULL); /* contents are not renewed */
    cache_drain();
    assert_int_equal(world.files, 2);
}

static void young_body(void *arg)
{
    expect(SL_NOT_FOUND);
    cache_renew(&meta, &key, NULL);
    cache_drain();
    assert_int_equal(world.features, 1);
}

TEST(young_misses_are_not_renewed)
{
    run(young_body);
}

TEST(renewal_can_be_disabled)
{
    test_config.upgrade_fallback_after_ns = DURATION_NEVER;
    run(young_body);
}

/* A public miss of two hours ago, as another process left it: it lasts for a day. */
static void put_old_miss(const struct cache_kind *kind)
{
    char relative[128], path[300], text[300];
    cache_relative_path(key.text, kind->version, false, relative);
    snprintf(path, sizeof path, "%s/%s", kind->name, relative);
    put_file(path, "", 7200 * S);
    snprintf(path, sizeof path, "%s/%s.metadata", kind->name, relative);
    snprintf(text, sizeof text, "{\"scope\":null,\"time_created\":%lld,\"status\":\"not_found\",\"size\":0}",
             (long long)(cache_now_ns() / CACHE_SECOND_NS - 7200));
    put_file(path, text, 7200 * S);
}

FIBER_TEST(processes_renew_at_most_once_a_period)
{
    put_old_miss(&objects);
    put_old_miss(&meta);
    expect(SL_NOT_FOUND);
    assert_int_equal(world.features, 0);
    cache_renew(&meta, &key, NULL);
    wait_for(&world.files, 1); /* through both kinds */
    expect(SL_NOT_FOUND);
    fiber_sleep(1);
    cache_drain();
    cache_close();
    struct sl_error error;
    assert_int_equal(cache_init(&test_config, kinds, 3, &error), SL_OK);
    expect(SL_NOT_FOUND);
    cache_renew(&meta, &key, NULL); /* renewed by the first process: not yet of age */
    cache_drain();
    assert_int_equal(world.files, 1);
}

FIBER_TEST(internal_failures_leave_the_old_answer, test_config.upgrade_fallback_after_ns = 0)
{
    expect(SL_NOT_FOUND);
    world.code = SL_INTERNAL;
    cache_renew(&meta, &key, NULL);
    wait_for(&world.files, 2);
    expect(SL_NOT_FOUND);
    cache_drain();
    expect(SL_NOT_FOUND);
}

FIBER_TEST(number_of_renewals_is_limited, test_config.upgrade_fallback_after_ns = 0,
           test_config.downloaded.max_lazy = 1)
{
    struct fiber_wait_list gate = {0};
    struct cache_key other = {SL_STR("other"), SL_STR("global")};
    struct cache_item *item;
    expect(SL_NOT_FOUND);
    assert_int_equal(cache_get(&objects, &other, NULL, &item, NULL), SL_NOT_FOUND);
    world.gate = &gate;
    unsigned before = world.files;
    cache_renew(&meta, &key, NULL);
    wait_for(&world.files, before + 1);
    cache_renew(&objects, &other, NULL); /* all tokens are out */
    fiber_wake_all(&gate);
    world.gate = NULL;
    cache_drain();
    assert_int_equal(world.files, before + 1);
}

static bool table_is(const char *text)
{
    struct cache_item *item;
    assert_int_equal(cache_get(&table, &key, NULL, &item, NULL), SL_OK);
    bool same = memcmp(item->mapping.bytes.data, text, 4) == 0;
    cache_release(item);
    return same;
}

FIBER_TEST(incomplete_entry_renews_what_it_lacked, test_config.upgrade_fallback_after_ns = 0)
{
    put_old_miss(&objects);
    put_old_miss(&meta);
    assert_true(table_is("some"));
    assert_int_equal(world.files, 0);
    world.code = SL_OK;
    while (!table_is("all!")) /* used, and made anew: the misses would last for a day */
        fiber_sleep(1);
    assert_int_equal(world.files, 1);
    cache_drain();
}

FIBER_TEST(incomplete_entry_is_retried_repeatedly, test_config.upgrade_fallback_after_ns = 2 * MS)
{
    put_old_miss(&objects);
    put_old_miss(&meta);
    while (world.tables < 4) { /* each time again, not only once */
        assert_true(table_is("some"));
        fiber_sleep(1);
    }
    cache_drain();
}

TEST_FILE(.begin = loop_begin, .end = loop_end, .setup = dir_setup, .teardown = dir_teardown);
