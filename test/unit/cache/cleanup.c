/* Removing expired entries from a directory, as a command would. */
#include "support.h"

static const struct cache_kind objects = {.name = "objects", .section = CACHE_DOWNLOADED, .version = 2};
static const struct cache_kind derived = {.name = "symcaches", .section = CACHE_DERIVED, .version = 1};
static const struct cache_kind *const kinds[] = {&objects, &derived};

static struct cleanup_totals totals;

static void clean_with(struct cleanup_options options)
{
    struct sl_error error;
    assert_int_equal(cache_cleanup(&test_config, kinds, 2, &options, &totals, NULL, &error), SL_OK);
}

static void clean(void)
{
    clean_with((struct cleanup_options){0});
}

static void put_meta(const char *entry, const char *scope, uint64_t age_s)
{
    char name[256], json[256];
    snprintf(name, sizeof name, "%s.metadata", entry);
    snprintf(json, sizeof json, "{\"scope\":%s,\"time_created\":%lld,\"debug\":null}", scope,
             (long long)(cache_now_ns() / CACHE_SECOND_NS - (int64_t)age_s));
    put_file(name, json, 0);
}

TEST(unused_entries_are_removed)
{
    test_config.downloaded.max_unused_for = 50 * S;
    put_file("objects/v2/aa/old", "hi", 100 * S);
    put_meta("objects/v2/aa/old", "null", 100);
    put_file("objects/v2/aa/empty", "", 100 * S);
    put_file("objects/v2/aa/new", "hi", 0);
    clean();
    assert_false(exists("objects/v2/aa/old") || exists("objects/v2/aa/old.metadata"));
    assert_true(exists("objects/v2/aa/empty") && exists("objects/v2/aa/new"));
    assert_int_equal(totals.files, 2);
    assert_int_equal(totals.bytes, 2);
    assert_int_equal(totals.removed_files, 1);
    assert_int_equal(totals.removed_bytes, 2);
    assert_int_equal(totals.errors, 0);
}

TEST(misses_expire_by_creation_and_scope)
{
    test_config.derived.retry_misses_after = 10 * S;
    put_file("symcaches/contents", "hi", 0);
    put_meta("symcaches/contents", "\"12345\"", 0);
    put_file("symcaches/public", "", 100 * S);
    put_meta("symcaches/public", "null", 100);
    put_file("symcaches/old", "", 11 * S);
    put_file("symcaches/created", "", 0);
    put_meta("symcaches/created", "\"12345\"", 11);
    put_file("symcaches/fresh", "", 0);
    put_meta("symcaches/fresh", "\"12345\"", 0);
    clean();
    assert_true(exists("symcaches/contents") && exists("symcaches/public") && exists("symcaches/fresh"));
    assert_false(exists("symcaches/old") || exists("symcaches/created"));
    assert_int_equal(totals.removed_files, 2);
}

TEST(old_malformed_entries_are_removed)
{
    test_config.derived.retry_malformed_after = DURATION_NEVER;
    put_file("symcaches/a", "malformed", 60 * S);
    put_file("symcaches/b", "malformedhonk", 60 * S);
    put_file("symcaches/c", "addictive", 60 * S);
    put_file("symcaches/d", "hi", 60 * S);
    put_file("symcaches/e", "honkhonkbeepbeep", 60 * S);
    put_file("symcaches/f", "malformedsince", 0);
    clean();
    assert_false(exists("symcaches/a") || exists("symcaches/b"));
    assert_true(exists("symcaches/c") && exists("symcaches/d") && exists("symcaches/e") && exists("symcaches/f"));
}

TEST(other_errors_expire_as_misses)
{
    test_config.downloaded.retry_misses_after = 2 * S;
    static const char *const texts[] = {"downloaderror", "downloaderrorhonk", "downloaderrormalformed",
                                        "malformeddownloaderror", "timeout1day 23h 59m 59s 999ms 999us 999ns"};
    for (int i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "objects/%d", i);
        put_file(name, texts[i], 3 * S);
        put_meta(name, "\"12345\"", 3);
    }
    put_file("objects/public", "downloaderror", 3 * S);
    put_meta("objects/public", "null", 3);
    put_file("objects/long", "timeout1day 23h 59m 59s 999ms 999us 999ns", 3 * S);
    put_meta("objects/long", "null", 3);
    clean();
    for (int i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "objects/%d", i);
        assert_false(exists(name));
    }
    assert_true(exists("objects/public") && exists("objects/long"));
}

TEST(each_class_of_entry_has_its_own_lifetime)
{
    test_config.downloaded = (struct cache_lifetimes){60 * S, 60 * S, 7200 * S, 60 * S, 0};
    put_file("objects/contents", "hi", 3600 * S);
    put_file("objects/private", "", 3600 * S);
    put_meta("objects/private", "\"1\"", 3600);
    put_file("objects/public", "", 3600 * S);
    put_meta("objects/public", "null", 3600);
    clean();
    assert_true(exists("objects/public"));
    assert_false(exists("objects/contents") || exists("objects/private"));
    test_config.downloaded.max_unused_for = DURATION_NEVER;
    put_file("objects/contents", "hi", 3600000 * S);
    clean();
    assert_true(exists("objects/contents"));
}

TEST(empty_directories_are_removed)
{
    put_file("objects/v2/aa/bb/old", "hi", 30 * 24 * 3600 * S);
    put_file("objects/v2/cc/bb/old", "hi", 30 * 24 * 3600 * S);
    put_file("objects/v2/cc/new", "hi", 0);
    make_parent(in_dir("objects/v1/empty/"));
    make_parent(in_dir("other/v1/empty/"));
    clean();
    assert_false(exists("objects/v2/aa") || exists("objects/v1") || exists("objects/v2/cc/bb"));
    assert_true(exists("objects/v2/cc/new") && exists("objects") && exists("symcaches") && exists("other/v1/empty"));
    assert_int_equal(unlink(in_dir("objects/v2/cc/new")), 0);
    clean();
    assert_false(exists("objects/v2"));
    assert_true(exists("objects"));
}

TEST(old_orphaned_side_files_are_removed)
{
    put_file("objects/v2/a.metadata", "{}", 3700 * S);
    put_file("objects/v2/b.metadata", "{}", 60 * S);
    clean();
    assert_false(exists("objects/v2/a.metadata"));
    assert_true(exists("objects/v2/b.metadata"));
    assert_int_equal(totals.files + totals.removed_files, 0);
}

TEST(unreadable_side_files_are_kept)
{
    put_file("objects/a", "hi", 0);
    put_file("objects/a.metadata", "{", 0);
    clean();
    assert_true(exists("objects/a") && exists("objects/a.metadata"));
}

TEST(damaged_entries_are_removed)
{
    put_file("objects/short", "hi", 10 * S);
    put_file("objects/short.metadata", "{\"scope\":null,\"time_created\":1,\"status\":\"ok\",\"size\":3}", 5 * S);
    put_file("objects/empty", "", 10 * S);
    put_file("objects/empty.metadata", "{\"scope\":\"1\",\"time_created\":1,\"status\":\"ok\",\"size\":0}", 5 * S);
    clean();
    assert_false(exists("objects/short") || exists("objects/short.metadata"));
    assert_true(exists("objects/empty"));
}

TEST(links_are_not_followed)
{
    put_file("outside/file", "hi", 30 * 24 * 3600 * S);
    make_parent(in_dir("objects/v2/"));
    assert_int_equal(symlink(in_dir("outside"), in_dir("objects/v2/dir")), 0);
    assert_int_equal(symlink(in_dir("outside/file"), in_dir("objects/v2/file")), 0);
    clean();
    assert_true(exists("outside/file"));
    assert_false(exists("objects/v2"));
}

TEST(dry_run_only_counts)
{
    put_file("objects/v2/old", "hi", 30 * 24 * 3600 * S);
    put_meta("objects/v2/old", "null", 100);
    put_file("symcaches/v1/new", "hello", 0);
    put_file("symcaches/v1/bad.metadata", "x", 7200 * S);
    put_file("tmp/x", "x", 48 * 3600 * S);
    clean_with((struct cleanup_options){.dry_run = true});
    assert_int_equal(totals.removed_files, 1);
    assert_int_equal(totals.removed_bytes, 2);
    assert_int_equal(totals.files, 1);
    assert_true(exists("objects/v2/old") && exists("objects/v2/old.metadata") && exists("symcaches/v1/bad.metadata") &&
                exists("tmp/x"));
}

TEST(all_and_only_options_select_kinds)
{
    put_file("objects/v2/new", "hi", 0);
    put_file("symcaches/v1/new", "hello", 0);
    put_file("symcaches/v1/lonely.metadata", "x", 0);
    const char *only[] = {"symcaches"};
    clean_with((struct cleanup_options){.all = true, .only = only, .only_count = 1});
    assert_true(exists("objects/v2/new") && exists("symcaches"));
    assert_false(exists("symcaches/v1"));
    const char *unknown[] = {"symcaches", "nonsense"};
    struct sl_error error;
    struct cleanup_options options = {.only = unknown, .only_count = 2};
    assert_int_equal(cache_cleanup(&test_config, kinds, 2, &options, &totals, NULL, &error), SL_MALFORMED);
    assert_string_equal(error.message, "unknown cache kind: nonsense");
}

TEST(cleanup_without_cache_dir_fails)
{
    struct sl_error error;
    struct cleanup_options options = {0};
    test_config.cache_dir = NULL;
    assert_int_equal(cache_cleanup(&test_config, kinds, 2, &options, &totals, NULL, &error), SL_NOT_FOUND);
    assert_string_equal(error.message, "no caching configured! Did you provide a path to your config file?");
}

TEST(failing_kind_does_not_stop_the_others)
{
    struct sl_error error;
    struct cleanup_options options = {0};
    put_file("symcaches", "a file where the directory should be", 0);
    put_file("objects/v2/old", "hi", 30 * 24 * 3600 * S);
    assert_int_equal(cache_cleanup(&test_config, kinds, 2, &options, &totals, NULL, &error), SL_INTERNAL);
    assert_true(totals.errors > 0);
    assert_false(exists("objects/v2"));
}

/* ---- the budget ---- */
enum { HOURS = 3600 };

static void put_sized(const char *name, size_t size, uint64_t age_s)
{
    char *text = malloc(size + 1);
    memset(text, 'x', size);
    text[size] = '\0';
    put_file(name, text, age_s * S);
    free(text);
}

/* Seven files of 100 kB, and a miss. */
static void fill(void)
{
    test_config.derived.max_unused_for = DURATION_NEVER;
    put_sized("objects/v2/old", 100000, 20 * HOURS);
    put_sized("objects/v2/middle", 100000, 10 * HOURS);
    put_sized("objects/v2/young", 100000, 1 * HOURS);
    put_sized("symcaches/v1/ancient", 100000, 100 * HOURS);
    put_sized("symcaches/v1/old", 100000, 20 * HOURS);
    put_sized("symcaches/v1/young", 100000, 1 * HOURS);
    put_sized("objects/v2/spared", 100000, 60);
    put_file("objects/v2/miss", "", 23 * HOURS * S);
    put_meta("objects/v2/old", "null", 20 * HOURS);
    put_meta("objects/v2/miss", "null", 0);
}

TEST(least_recently_used_entries_are_removed)
{
    fill();
    test_config.cache_max_size = 10 << 20;
    clean();
    assert_int_equal(totals.removed_files, 0);
    test_config.cache_max_size = 600000; /* 540,000 are to be left: two files and some blocks above */
    clean();
    assert_false(exists("objects/v2/old") || exists("objects/v2/old.metadata") || exists("objects/v2/middle"));
    assert_true(exists("objects/v2/young") && exists("objects/v2/miss"));
    assert_true(exists("symcaches/v1/ancient")); /* old, but dear */
    assert_int_equal(totals.removed_files, 2);
    assert_int_equal(totals.removed_bytes, 200000);
    assert_int_equal(totals.files, 6);
    assert_int_equal(totals.bytes, 500000);
    clean(); /* nothing more */
    assert_int_equal(totals.removed_files, 0);
    test_config.cache_max_size = 280000; /* 252,000 */
    clean();
    assert_false(exists("objects/v2/young") || exists("symcaches/v1/ancient") || exists("symcaches/v1/old"));
    assert_true(exists("symcaches/v1/young") && exists("objects/v2/spared") && exists("objects/v2/miss"));
    test_config.cache_max_size = 1;
    clean();
    assert_false(exists("symcaches/v1/young"));
    assert_true(exists("objects/v2/spared") && exists("objects/v2/miss")); /* just made, and no space */
}

TEST(minimum_free_space_is_kept)
{
    fill();
    test_config.cache_min_free_space = INT64_MAX;
    clean();
    assert_int_equal(totals.removed_files, 6);
    assert_true(exists("objects/v2/spared"));
}

TEST(full_disk_is_cleaned_without_a_limit)
{
    fill();
    clean_with((struct cleanup_options){.full = true, .dry_run = true});
    assert_int_equal(totals.removed_files, 1);
    assert_true(exists("objects/v2/old"));
    clean_with((struct cleanup_options){.full = true});
    assert_int_equal(totals.removed_files, 1);
    assert_false(exists("objects/v2/old"));
}

TEST(size_limit_spares_other_kinds)
{
    const char *only[] = {"symcaches"};
    fill();
    test_config.cache_max_size = 1;
    clean_with((struct cleanup_options){.only = only, .only_count = 1});
    assert_int_equal(totals.removed_files, 3);
    assert_true(exists("objects/v2/old"));
}

static int begin_file(void **state)
{
    cache_start_ns();
    return 0;
}

TEST_FILE(.begin = begin_file, .setup = dir_setup, .teardown = dir_teardown);
