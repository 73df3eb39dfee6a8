/* The store of uploads: parts, crashes between any two steps, the lock of an executable, and what is remembered. */
#include "../cache/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>

#include "../descriptors.h"
#include "core/loop.h"
#include "catalog/catalog.h"
#include "symbfile_store/impl.h"

static const struct symbfile_key place = {.file_id = {{0xab, 1, 2, 3}}};
static const char empty[] = "symbfile\0\1";
static char home[STORE_PATH];

/* Every entry of a directory that the program reads. */
static size_t entries_read;
struct dirent64 *__real_readdir64(DIR *dir);
struct dirent64 *__wrap_readdir64(DIR *dir);
struct dirent64 *__wrap_readdir64(DIR *dir)
{
    struct dirent64 *entry = __real_readdir64(dir);
    entries_read += entry != NULL;
    return entry;
}

static void configure(void)
{
    test_config.symbfile.store_max_size = UINT64_MAX;
    test_config.symbfile.max_set_bytes = 1 << 30;
    test_config.symbfile.max_records = 1000000;
    test_config.symbfile.staging_ttl_ns = UINT64_C(3600) * 1000000000;
    catalog_init(&test_config);
    assert_true(store_home(&place, home));
}

/* `version` makes other contents (as far as the store is concerned). */
static bool add(uint64_t number, uint64_t parts, uint8_t version, const char *build_id)
{
    struct symbfile_failure failure = {0};
    struct symbfile_info info = {0};
    char path[600];
    int fd = symbfile_store_receive(path, &failure);
    assert_true(fd >= 0);
    snprintf(info.build_id, sizeof info.build_id, "%s", build_id);
    struct symbfile_upload_set arrival = {.file_key = place,
                                          .kind = SYMBFILE_RANGES,
                                          .parts = parts,
                                          .upload_id = "",
                                          .part = {(uint32_t)number, {version, (uint8_t)number}, SYMBFILE_WHOLE, 0, 10},
                                          .path = path,
                                          .fd = fd,
                                          .info = &info};
    assert_int_equal(write(fd, empty, 10), 10);
    bool ok = symbfile_store_add(&arrival, &failure);
    assert_int_equal(failure.status, 0);
    close(fd);
    return ok;
}

static uint64_t published(uint8_t version[], size_t count)
{
    struct symbfile_set sets[SYMBFILE_KINDS];
    symbfile_store_published(&place, sets);
    struct symbfile_set *set = &sets[SYMBFILE_RANGES];
    if (!set->generation)
        return 0;
    assert_true(store_load_parts(home, set));
    assert_int_equal(set->have_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(set->have[i].number, i);
        version[i] = set->have[i].sha256[0];
    }
    free(set->have);
    return set->generation;
}

static void staged(const char *name, char out[STORE_PATH + 200])
{
    snprintf(out, STORE_PATH + 200, "%s/staging-ranges-3-/%s", home, name);
}

TEST(set_is_published_with_parts_in_any_order)
{
    uint8_t version[3];
    configure();
    add(2, 3, 1, "");
    add(0, 3, 1, "");
    assert_int_equal(published(version, 3), 0);
    add(2, 3, 7, ""); /* in the place of the first one */
    add(2, 3, 7, "");
    assert_int_equal(published(version, 3), 0);
    add(1, 3, 1, "");
    uint64_t generation = published(version, 3);
    assert_true(generation > 0);
    assert_int_equal(version[2], 7);
    for (int i = 0; i < 3; i++)
        add(i, 3, i == 2 ? 7 : 1, "");
    assert_int_equal(published(version, 3), generation); /* the same again */
    for (int i = 2; i >= 0; i--)
        add(i, 3, 9, "");
    assert_true(published(version, 3) > generation);
    assert_int_equal(version[0] + version[1] + version[2], 27);
}

static void make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    close(fd);
}

TEST(leftovers_of_crashes_are_repaired)
{
    char path[STORE_PATH + 200], name[PART_NAME];
    uint8_t version[3];
    configure();
    add(0, 3, 1, "");
    staged("table", path); /* no table: of an older program, or lost */
    assert_int_equal(unlink(path), 0);
    add(1, 3, 1, "");
    assert_int_equal(truncate(path, 7), 0);                            /* half a table */
    struct symbfile_part_file other = {2, {8}, SYMBFILE_WHOLE, 0, 10}; /* a part in its place that was not noted */
    store_part_name(&other, name);
    staged(name, path);
    make_file(path);
    assert_int_equal(published(version, 3), 0);
    add(2, 3, 1, "");
    assert_true(published(version, 3) > 0);
    assert_int_equal(version[2], 1);
}

TEST(removed_part_is_asked_for_again)
{
    char path[STORE_PATH + 200], name[PART_NAME];
    uint8_t version[3];
    configure();
    add(0, 3, 1, "");
    add(1, 3, 1, "");
    struct symbfile_part_file first = {0, {1, 0}, SYMBFILE_WHOLE, 0, 10};
    store_part_name(&first, name);
    staged(name, path);
    assert_int_equal(unlink(path), 0);
    add(2, 3, 1, "");
    assert_int_equal(published(version, 3), 0);
    add(0, 3, 1, "");
    assert_true(published(version, 3) > 0);
}

TEST(cost_of_a_part_is_independent_of_their_number)
{
    enum { PARTS = 600 };
    static uint8_t version[PARTS];
    configure();
    entries_read = 0;
    for (int i = PARTS - 1; i >= 0; i--)
        add(i, PARTS, 1, "");
    assert_true(published(version, PARTS) > 0);
    assert_true(entries_read >= PARTS);
    assert_true(entries_read < 10 * PARTS);
}

/* ---- the lock ---- */
static size_t turns_taken;

static void take_turn(void *arg)
{
    struct symbfile_lock lock;
    struct sl_error error;
    assert_int_equal(symbfile_lock(&place, true, 60000, &lock, &error), SL_OK);
    assert_int_equal(++turns_taken, (uintptr_t)arg);
    assert_true(fiber_sleep(1));
    assert_int_equal(turns_taken, (uintptr_t)arg);
    symbfile_unlock(&lock);
}

static void lock_body(void *arg)
{
    struct symbfile_lock lock, other;
    struct sl_error error;
    struct fiber_group group;
    assert_int_equal(symbfile_lock(&place, false, 10, &lock, &error), SL_NOT_FOUND);
    assert_int_equal(symbfile_lock(&place, true, 10, &lock, &error), SL_OK);
    assert_int_equal(symbfile_lock(&place, true, 10, &other, &error), SL_BUSY);
    turns_taken = 0;
    fiber_group_init(&group, NULL);
    for (uintptr_t i = 1; i <= 20; i++)
        assert_true(fiber_start(&group, take_turn, (void *)i));
    assert_true(fiber_sleep(1));
    assert_int_equal(turns_taken, 0);
    symbfile_unlock(&lock);
    fiber_group_wait(&group);
    assert_int_equal(turns_taken, 20);
    int held = store_try_lock(home, false); /* another process */
    assert_true(held >= 0);
    assert_int_equal(symbfile_lock(&place, true, 30, &lock, &error), SL_BUSY);
    fiber_group_init(&group, NULL);
    assert_true(fiber_start(&group, take_turn, (void *)21));
    assert_true(fiber_sleep(1));
    assert_int_equal(turns_taken, 20);
    close(held);
    fiber_group_wait(&group);
    assert_int_equal(turns_taken, 21);
}

TEST(lookup_without_descriptors_is_busy_not_missing)
{
    struct symbfile_set sets[SYMBFILE_KINDS];
    struct symbfile_key found = {.scope = ""};
    configure();
    add(0, 1, 1, "abcdef");
    assert_int_equal(symbfile_store_find("abcdef", &found), SL_OK);
    use_up_descriptors();
    enum sl_code published = symbfile_store_published(&place, sets), by_id = symbfile_store_find("abcdef", &found);
    free_descriptors();
    assert_int_equal(published, SL_BUSY);
    assert_int_equal(by_id, SL_BUSY);
    assert_int_equal(symbfile_store_published(&place, sets), SL_OK);
    assert_true(sets[SYMBFILE_RANGES].generation > 0);
    assert_int_equal(symbfile_store_find("fedcba", &found), SL_NOT_FOUND);
}

TEST(changes_are_serialised_by_the_lock)
{
    configure();
    loop_run_fiber(lock_body, NULL);
}

/* ---- what is remembered ---- */
static enum sl_code find(const char *build_id)
{
    struct symbfile_lookup found;
    struct object_id id = {.code_id = sl_str(build_id)};
    symbfile_find(SL_STR("global"), *build_id ? NULL : &place.file_id, &id, &found);
    enum sl_code code = found.code;
    symbfile_lookup_release(&found);
    return code;
}

static void remembered_body(void *arg)
{
    assert_int_equal(find(""), SL_NOT_FOUND);
    assert_int_equal(find("aabb"), SL_NOT_FOUND);
    entries_read = 0;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(find(""), SL_NOT_FOUND);
        assert_int_equal(find("aabb"), SL_NOT_FOUND);
    }
    assert_int_equal(entries_read, 0);
    add(0, 1, 1, "aabb");
    symbfile_answers_clear(); /* as whoever adds in this process does */
    assert_int_equal(find(""), SL_OK);
    assert_int_equal(find("aabb"), SL_OK);
    entries_read = 0;
    for (int i = 0; i < 100; i++)
        assert_int_equal(find("aabb"), SL_OK);
    assert_int_equal(entries_read, 0);
    assert_true(symbfile_store_delete(&place)); /* another process: this one comes to know it */
    for (int i = 0; i < 3000 && find("aabb") == SL_OK; i++)
        assert_true(fiber_sleep(10));
    assert_int_equal(find("aabb"), SL_NOT_FOUND);
    add(0, 1, 2, "");
    for (int i = 0; i < 3000 && find("aabb") != SL_OK; i++)
        assert_true(fiber_sleep(10));
    assert_int_equal(find("aabb"), SL_OK);
}

TEST(answers_are_cached_until_something_changes)
{
    configure();
    assert_int_equal(cache_init(&test_config, catalog_kinds, catalog_kind_count, NULL), SL_OK);
    loop_run_fiber(remembered_body, NULL);
    symbfile_answers_clear();
    catalog_close();
    cache_close();
}

static int begin_file(void **state)
{
    loop_init(2);
    return 0;
}

TEST_FILE(.begin = begin_file, .setup = dir_setup, .teardown = dir_teardown);
