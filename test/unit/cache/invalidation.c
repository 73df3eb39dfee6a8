/* What uploads replace is absent: in every layer, scope and version, for this process and for others. */
#include "plan.h"

#define ONE   "source: s\nlocation: file://one\n"
#define TWO   "source: s\nlocation: file://two\n"
#define OTHER "source: t\nlocation: file://one\n"

static struct cache_generations generations;

static struct cache_file file(const char *source, const char *location)
{
    return (struct cache_file){sl_str(source), sl_str(location)};
}

static void invalidate(const char *source, const char *location)
{
    struct cache_file changed = file(source, location);
    struct sl_error error = {0};
    if (cache_invalidate(&changed, 1, &error) != SL_OK)
        fail_msg("%s", error.message);
}

/* ---- keys ---- */
TEST(keys_match_the_files_they_name)
{
    static const struct {
        const char *key, *source, *location;
        bool names;
    } rows[] = {
        {"scope: a\n\n" ONE, "s", "file://one", true},
        {"scope: a\n\n" ONE, "s", "file://two", false},
        {"scope: a\n\n" ONE, "s", "", true},
        {"scope: a\n\n" ONE, "t", "", false},
        {"scope: a\n\n" ONE, "s", "file://on", false},
        {"scope: a\n\n" ONE "\nbcsymbolmap:\n" TWO, "s", "file://two", true},
        {"scope: a\n\n" ONE "\nil2cpp:\n" OTHER, "t", "", true},
        {"scope: a\n\n" ONE "\nvariables: true\n", "s", "file://one", true},
        {"scope: a\n\ntype: symstore_segment\nsource_id: s\nsegment: 1\n", "s", "", true},
        {"scope: a\n\ntype: symstore_segment\nsource_id: s\nsegment: 1\n", "s", "file://one", false},
        {"scope: a\n\nsource:\nx\nsourcemap:\ny\n", "s", "", false},
        {"source: s", "s", "", false},
        {"source: s\nlocation: file://one", "s", "file://one", true},
        {"", "s", "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cache_file wanted = file(rows[i].source, rows[i].location);
        if (cache_key_names_file(sl_str(rows[i].key), &wanted) != rows[i].names)
            fail_msg("row %zu", i);
    }
}

/* ---- this process ---- */
FIBER_TEST(invalidated_entries_are_computed_again)
{
    unsigned runs = 0;
    struct plan old = {.runs = &runs, .write = "old"}, new = {.runs = &runs, .write = "new"};
    get(&kind, "scope: a\n\n" ONE, &old, "old");
    get(&kind, "scope: b\n\n" ONE, &old, "old");
    get(&loading, "scope: a\n\n" TWO "\nbcsymbolmap:\n" ONE, &old, "old");
    get(&kind, "scope: a\n\n" TWO, &old, "old");
    assert_int_equal(runs, 4);
    invalidate("s", "file://three");
    invalidate("t", "");
    get(&kind, "scope: a\n\n" ONE, &new, "old");
    assert_int_equal(runs, 4);
    invalidate("s", "file://one");
    for (int round = 0; round < 3; round++) { /* from the source, from memory, from disk */
        get(&kind, "scope: a\n\n" ONE, &new, "new");
        get(&kind, "scope: b\n\n" ONE, &new, "new");
        get(&loading, "scope: a\n\n" TWO "\nbcsymbolmap:\n" ONE, &new, "new");
        get(&kind, "scope: a\n\n" TWO, &new, "old");
        assert_int_equal(runs, 7);
        if (round == 1)
            reopen_cache();
    }
    invalidate("s", "");
    get(&kind, "scope: a\n\n" TWO, &new, "new");
    assert_int_equal(runs, 8);
    cache_drain();
}

static double removed(enum metric metric)
{
    return metric_total(metric, "objects", "invalidated", NULL);
}

/* All versions of it, a miss too; only when somebody asks, and not what another process has made of the new file. */
FIBER_TEST(invalidated_entry_is_removed_from_disk_on_lookup)
{
    unsigned runs = 0;
    struct plan new = {.runs = &runs, .write = "new"}, unused = {.runs = &runs, .write = "unused"};
    double files = removed(METRIC_CACHE_REMOVED_FILES), bytes = removed(METRIC_CACHE_REMOVED_BYTES);
    put_file(path_in(&kind, "scope: a\n\n" ONE, 3), "", 100 * S);
    put_file(path_in(&kind, "scope: a\n\n" ONE, 2), "older", 100 * S);
    put_file(path_in(&kind, "scope: a\n\n" TWO, 3), "old", 100 * S);
    invalidate("s", "");
    assert_true(removed(METRIC_CACHE_REMOVED_FILES) == files);
    get(&kind, "scope: a\n\n" ONE, &new, "new");
    assert_true(removed(METRIC_CACHE_REMOVED_FILES) == files + 2);
    assert_true(removed(METRIC_CACHE_REMOVED_BYTES) == bytes + 5);
    assert_false(exists(path_in(&kind, "scope: a\n\n" ONE, 2)));
    put_file(path_in(&kind, "scope: a\n\n" TWO, 3), "newer", -10 * S);
    get(&kind, "scope: a\n\n" TWO, &unused, "newer");
    assert_true(removed(METRIC_CACHE_REMOVED_FILES) == files + 2);
    assert_int_equal(runs, 1);
    cache_drain();
}

FIBER_TEST(invalidation_works_without_cache_dir, test_config.cache_dir = NULL)
{
    unsigned runs = 0;
    struct plan old = {.runs = &runs, .write = "old"}, new = {.runs = &runs, .write = "new"};
    get(&kind, "scope: a\n\n" ONE, &old, "old");
    get(&kind, "scope: a\n\n" TWO, &old, "old");
    invalidate("s", "file://one");
    get(&kind, "scope: a\n\n" ONE, &new, "new");
    get(&kind, "scope: a\n\n" TWO, &new, "old");
    get(&kind, "scope: a\n\n" ONE, &new, "new");
    assert_int_equal(runs, 3);
    cache_drain();
}

FIBER_TEST(invalidation_drops_misses)
{
    unsigned runs = 0;
    struct plan miss = {.runs = &runs, .code = SL_NOT_FOUND}, new = {.runs = &runs, .write = "new"};
    get_error(&kind, "scope: a\n\n" ONE, &miss, SL_NOT_FOUND, NULL);
    get_error(&kind, "scope: a\n\n" ONE, &new, SL_NOT_FOUND, NULL);
    invalidate("s", "file://one");
    get(&kind, "scope: a\n\n" ONE, &new, "new");
    assert_int_equal(runs, 2);
    cache_drain();
}

/* ---- others ---- */
FIBER_TEST(invalidation_by_another_process_is_seen)
{
    unsigned runs = 0;
    struct plan old = {.runs = &runs, .write = "old"}, new = {.runs = &runs, .write = "new"};
    struct cache_key key = key_of("scope: a\n\n" ONE);
    struct cache_file changed = file("s", "file://one");
    get(&kind, "scope: a\n\n" ONE, &old, "old");
    get(&kind, "scope: a\n\n" TWO, &old, "old");
    assert_int_equal(cache_write_stamp(test_dir, &changed, 1, cache_now_ns(), &generations, NULL), SL_OK);
    uint64_t begin = loop_now_ms();
    while (runs == 2) {
        struct cache_item *item;
        assert_int_equal(cache_get(&kind, &key, &new, &item, NULL), SL_OK);
        cache_release(item);
        assert_true(fiber_sleep(10));
        assert_true(loop_now_ms() - begin < 10000);
    }
    get(&kind, "scope: a\n\n" ONE, &new, "new");
    get(&kind, "scope: a\n\n" TWO, &new, "old");
    assert_int_equal(runs, 3);
    /* Its next look at the disk tells at once. */
    assert_int_equal(cache_write_stamp(test_dir, &changed, 1, cache_now_ns(), &generations, NULL), SL_OK);
    get(&kind, "scope: a\n\nsource: x\nlocation: y\n", &new, "new");
    get(&kind, "scope: a\n\n" ONE, &old, "old");
    assert_int_equal(runs, 5);
    cache_drain();
}

/* ---- the race: download of the old, upload of the new, publication of the old ---- */
struct race {
    struct fiber_wait_list gate;
    struct plan plan;
    unsigned got;
};

static void racer(void *arg)
{
    struct race *race = arg;
    get(&kind, "scope: a\n\n" ONE, &race->plan, "old");
    race->got++;
}

/* Begins to compute the old contents, which is held at the gate. */
static void race_begin(struct race *race, struct fiber_group *group, unsigned *runs)
{
    *race = (struct race){.plan = {.runs = runs, .write = "old", .gate = &race->gate}};
    fiber_group_init(group, NULL);
    assert_true(fiber_start(group, racer, race));
    while (!race->gate.first)
        assert_true(fiber_sleep(1));
}

static void race_end(struct race *race, struct fiber_group *group)
{
    fiber_wake_all(&race->gate);
    fiber_group_wait(group);
}

FIBER_TEST(result_begun_before_an_invalidation_is_not_kept)
{
    unsigned runs = 0;
    struct race race;
    struct plan new = {.runs = &runs, .write = "new"};
    struct fiber_group group;
    race_begin(&race, &group, &runs);
    invalidate("s", "file://one");
    get(&kind, "scope: a\n\n" ONE, &new, "new"); /* does not wait for the old one */
    race_end(&race, &group);
    assert_int_equal(race.got, 1);
    get(&kind, "scope: a\n\n" ONE, &new, "new");
    reopen_cache();
    get(&kind, "scope: a\n\n" ONE, &new, "new");
    assert_int_equal(runs, 2);
    cache_drain();
}

FIBER_TEST(result_begun_before_another_process_invalidates_is_not_kept)
{
    unsigned runs = 0;
    struct race race;
    struct plan new = {.runs = &runs, .write = "new"};
    struct cache_file changed = file("s", "file://one");
    struct fiber_group group;
    race_begin(&race, &group, &runs);
    assert_int_equal(cache_write_stamp(test_dir, &changed, 1, cache_now_ns(), &generations, NULL), SL_OK);
    race_end(&race, &group);
    assert_false(exists(path_in(&kind, "scope: a\n\n" ONE, 3)));
    get(&kind, "scope: a\n\n" ONE, &new, "new");
    assert_int_equal(runs, 2);
    cache_drain();
}

/* ---- the shared layer ---- */
static void shared_body(void *arg)
{
    unsigned runs = 0;
    struct plan old = {.runs = &runs, .write = "old"}, new = {.runs = &runs, .write = "new"};
    char name[300];
    snprintf(name, sizeof name, "bucket/%s", path_in(&kind, "scope: a\n\n" ONE, 3));
    get(&kind, "scope: a\n\n" ONE, &old, "old");
    for (int i = 0; i < 1000 && !exists(name); i++)
        assert_true(fiber_sleep(5));
    invalidate("s", "file://one");
    assert_false(exists(name));
    /* Another machine puts the old one there again: it is older than the stamp. */
    put_file(name, "old", 3600 * S);
    get(&kind, "scope: a\n\n" ONE, &new, "new");
    assert_int_equal(runs, 2);
    cache_drain();
}

TEST(invalidation_reaches_the_shared_cache)
{
    static char bucket[128];
    snprintf(bucket, sizeof bucket, "%s", in_dir("bucket"));
    test_config.shared.filesystem_path = bucket;
    run(shared_body);
}

/* ---- cleaning ---- */
TEST(old_invalidation_stamps_are_removed)
{
    struct cache_file changed = file("s", "file://one");
    struct cleanup_options options = {0};
    struct cleanup_totals totals;
    assert_int_equal(cache_write_stamp(test_dir, &changed, 1, cache_now_ns(), &generations, NULL), SL_OK);
    int64_t generation = cache_generation(test_dir);
    assert_true(generation > 0);
    assert_true(cache_newest_stamp(test_dir, SL_STR(ONE)) > 0);
    assert_true(cache_newest_stamp(test_dir, SL_STR(TWO)) == 0);
    assert_int_equal(cache_cleanup(&test_config, kinds, 2, &options, &totals, NULL, NULL), SL_OK);
    assert_true(cache_newest_stamp(test_dir, SL_STR(ONE)) > 0);
    test_config.downloaded.max_unused_for = test_config.derived.max_unused_for = test_config.index.max_unused_for = 0;
    assert_int_equal(cache_cleanup(&test_config, kinds, 2, &options, &totals, NULL, NULL), SL_OK);
    assert_true(cache_newest_stamp(test_dir, SL_STR(ONE)) == 0);
    assert_true(cache_generation(test_dir) == generation);
    assert_int_equal(files_below("invalidated"), 1);
}

/* Entries of a bounded kind are used until they are evicted, so a stamp must last as long as an entry that is older. */
TEST(stamps_are_kept_for_older_entries_without_a_lifetime)
{
    static const struct cache_kind bounded = {.name = "mozilla_syms", .section = CACHE_BOUNDED, .version = 1};
    static const struct cache_kind *const with_bounded[] = {&kind, &bounded};
    struct cache_file changed = file("s", "file://one");
    struct cleanup_options options = {0}, others = {.only = (const char *[]){"objects"}, .only_count = 1};
    struct cleanup_totals totals;
    test_config.downloaded.max_unused_for = test_config.derived.max_unused_for = test_config.index.max_unused_for = 0;
    test_config.bounded.lifetimes.max_unused_for = DURATION_NEVER;
    put_file(path_in(&bounded, "a", 1), "contents", 3600 * S);
    assert_int_equal(cache_write_stamp(test_dir, &changed, 1, cache_now_ns(), &generations, NULL), SL_OK);
    assert_int_equal(cache_cleanup(&test_config, with_bounded, 2, &options, &totals, NULL, NULL), SL_OK);
    assert_true(cache_newest_stamp(test_dir, SL_STR(ONE)) > 0);
    assert_int_equal(unlink(in_dir(path_in(&bounded, "a", 1))), 0);
    assert_int_equal(cache_cleanup(&test_config, with_bounded, 2, &others, &totals, NULL, NULL), SL_OK);
    assert_true(cache_newest_stamp(test_dir, SL_STR(ONE)) > 0); /* entries of the kind were not looked at */
    assert_int_equal(cache_cleanup(&test_config, with_bounded, 2, &options, &totals, NULL, NULL), SL_OK);
    assert_true(cache_newest_stamp(test_dir, SL_STR(ONE)) == 0);
}

TEST(unwritable_directory_fails_the_invalidation)
{
    struct cache_file changed = file("s", "file://one");
    struct sl_error error = {0};
    put_file("invalidated", "a file", 0);
    assert_int_equal(cache_write_stamp(test_dir, &changed, 1, cache_now_ns(), &generations, &error), SL_INTERNAL);
    assert_non_null(strstr(error.message, "invalidated"));
    assert_true(cache_newest_stamp(test_dir, SL_STR(ONE)) == 0);
}

TEST_FILE(.begin = loop_begin, .end = loop_end, .setup = dir_setup, .teardown = dir_teardown);
