/* The look-up: layers, errors, publishing, a directory that changes. Each test runs in a fiber on a cache of its own. */
#include "plan.h"

#include <stdatomic.h>
#include <unistd.h>

/* ---- computing, publishing, reading back ---- */

FIBER_TEST(entry_is_computed_once_and_read_back)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "contents"};
    get(&kind, "a", &plan, "contents");
    get(&kind, "a", &plan, "contents");
    assert_int_equal(runs, 1);
    const char *path = path_in(&kind, "a", 3);
    assert_string_equal(file_text(path), "contents");
    const char *meta = file_text(side_of(path));
    assert_non_null(meta);
    assert_non_null(strstr(meta, "\"scope\":\"scope1\""));
    assert_non_null(strstr(meta, "\"status\":\"ok\",\"size\":8,\"key\":\"a\",\"nanoseconds\":"));
    struct stat st;
    assert_int_equal(stat(in_dir(path), &st), 0);
    assert_int_equal(st.st_mode & 0777 & ~0640, 0);
    reopen_cache();
    get(&kind, "a", &plan, "contents");
    assert_int_equal(runs, 1);
}

FIBER_TEST(large_entries_are_mapped)
{
    unsigned runs = 0;
    static char large[200001];
    memset(large, 'x', 200000);
    struct plan plan = {.runs = &runs, .write = large, .replace = true};
    get(&loading, "large", &plan, large);
    struct cache_key key = key_of("large");
    struct cache_item *item;
    assert_int_equal(cache_get(&loading, &key, &plan, &item, NULL), SL_OK);
    assert_int_equal(unlink(in_dir(path_in(&loading, "large", 1))), 0); /* in use, the file may go */
    reopen_cache();
    assert_memory_equal(item->mapping.bytes.data, large, 200000);
    cache_release(item);
    get(&loading, "large", &plan, large);
    assert_int_equal(runs, 2);
}

FIBER_TEST(contents_that_look_like_errors_are_kept)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs};
    get(&kind, "a", &plan, "");
    struct plan word = {.runs = &runs, .write = "timeout handling in C"};
    get(&kind, "b", &word, "timeout handling in C");
    reopen_cache();
    get(&kind, "a", &plan, "");
    get(&kind, "b", &word, "timeout handling in C");
    assert_int_equal(runs, 2);
}

FIBER_TEST(entries_stay_in_memory_without_cache_dir, test_config.cache_dir = NULL)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "contents"};
    get(&kind, "a", &plan, "contents");
    get(&kind, "a", &plan, "contents");
    assert_int_equal(runs, 1);
    reopen_cache();
    get(&kind, "a", &plan, "contents");
    assert_int_equal(runs, 2);
    struct plan missing = {.runs = &runs, .code = SL_NOT_FOUND};
    get_error(&kind, "b", &missing, SL_NOT_FOUND, NULL);
    get_error(&kind, "b", &missing, SL_NOT_FOUND, NULL);
    assert_int_equal(runs, 3);
}

/* ---- errors ---- */

static atomic_uint syncs;

/* In place of the C library's: how often the disk is waited for. */
int fdatasync(int fd)
{
    atomic_fetch_add(&syncs, 1);
    return fsync(fd);
}

FIBER_TEST(errors_do_not_wait_for_the_disk)
{
    static const enum sl_code codes[] = {SL_NOT_FOUND,      SL_PERMISSION_DENIED, SL_TIMEOUT,
                                         SL_DOWNLOAD_ERROR, SL_MALFORMED,         SL_UNSUPPORTED};
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "contents"};
    atomic_store(&syncs, 0);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct plan failing = {.runs = &runs, .code = codes[i], .message = "so"};
        char key[2] = {(char)('a' + i)};
        get_error(&kind, key, &failing, codes[i], NULL);
        assert_non_null(file_text(path_in(&kind, key, 3)));
    }
    assert_int_equal(atomic_load(&syncs), 0);
    get(&kind, "contents", &plan, "contents");
    assert_int_equal(atomic_load(&syncs), 1);
}

FIBER_TEST(errors_are_stored_and_read_back)
{
    static const struct {
        enum sl_code code;
        const char *message;
        uint64_t ns;
        const char *file;
    } rows[] = {
        {SL_NOT_FOUND, "", 0, ""},
        {SL_PERMISSION_DENIED, "403 Forbidden", 0, "permissiondenied403 Forbidden"},
        {SL_PERMISSION_DENIED, "", 0, "permissiondenied"},
        {SL_TIMEOUT, "100ms", 100 * MS, "timeout100ms"},
        {SL_DOWNLOAD_ERROR, "500 Internal Server Error", 0, "downloaderror500 Internal Server Error"},
        {SL_MALFORMED, "this is garbage", 0, "malformedthis is garbage"},
        {SL_UNSUPPORTED, "so", 0, "unsupportedso"},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    unsigned runs = 0;
    for (int again = 0; again < 3; again++) {
        for (int i = 0; i < ROWS; i++) {
            char key[8] = {(char)('a' + i)};
            struct plan plan = {.runs = &runs,
                                .write = "a lot of garbage before the end came over it all",
                                .code = rows[i].code,
                                .message = rows[i].message,
                                .duration_ns = rows[i].ns};
            get_error(&kind, key, &plan, rows[i].code, rows[i].code == SL_NOT_FOUND ? NULL : rows[i].message);
            assert_string_equal(file_text(path_in(&kind, key, 3)), rows[i].file);
        }
        assert_int_equal(runs, ROWS);
        if (again == 1)
            reopen_cache();
    }
}

FIBER_TEST(internal_errors_are_kept_in_memory_only)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "garbage", .code = SL_INTERNAL, .message = "broken"};
    get_error(&kind, "a", &plan, SL_INTERNAL, "broken");
    get_error(&kind, "a", &plan, SL_INTERNAL, "broken");
    assert_int_equal(runs, 1); /* for half a minute */
    assert_false(exists("objects"));
    struct plan blocked = {.runs = &runs, .code = SL_DOWNLOAD_ERROR, .message = "blocked", .duration_ns = 5 * S};
    get_error(&kind, "b", &blocked, SL_DOWNLOAD_ERROR, "blocked");
    get_error(&kind, "b", &blocked, SL_DOWNLOAD_ERROR, "blocked");
    assert_int_equal(runs, 2);
    assert_false(exists("objects"));
    reopen_cache();
    struct plan fine = {.runs = &runs, .write = "fine"};
    get(&kind, "a", &fine, "fine");
}

FIBER_TEST(expired_errors_are_computed_again)
{
    unsigned runs = 0;
    struct plan missing = {.runs = &runs, .code = SL_NOT_FOUND}, found = {.runs = &runs, .write = "now"};
    get_error(&kind, "a", &missing, SL_NOT_FOUND, NULL);
    get_error(&kind, "a", &found, SL_NOT_FOUND, NULL);
    assert_int_equal(runs, 1);
    const char *path = path_in(&kind, "a", 3);
    put_file(side_of(path), "{\"scope\":\"1\",\"time_created\":1}", 0);
    reopen_cache();
    get(&kind, "a", &found, "now");
    assert_int_equal(runs, 2);
    assert_string_equal(file_text(path), "now");
}

FIBER_TEST(errors_in_memory_expire, test_config.downloaded.retry_misses_after = 2 * S)
{
    unsigned runs = 0;
    struct plan missing = {.runs = &runs, .code = SL_NOT_FOUND}, found = {.runs = &runs, .write = "now"};
    get_error(&kind, "a", &missing, SL_NOT_FOUND, NULL);
    /* The disk goes by whole seconds of creation, memory by the end of the computation: after two both have expired. */
    assert_true(fiber_sleep(2100));
    get(&kind, "a", &found, "now");
    assert_int_equal(runs, 2);
}

/* ---- the directory's surprises ---- */

FIBER_TEST(removed_files_are_computed_again)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "contents"};
    get(&kind, "a", &plan, "contents");
    assert_int_equal(directory_remove(test_dir), 0);
    get(&kind, "a", &plan, "contents"); /* memory */
    assert_int_equal(runs, 1);
    reopen_cache();
    get(&kind, "a", &plan, "contents");
    assert_int_equal(runs, 2);
    assert_int_equal(unlink(in_dir(side_of(path_in(&kind, "a", 3)))), 0);
    reopen_cache();
    get(&kind, "a", &plan, "contents"); /* without side file */
    assert_int_equal(runs, 2);
    assert_int_equal(directory_remove(in_dir("tmp")), 0);
    get(&kind, "b", &plan, "contents");
    assert_true(exists(path_in(&kind, "b", 3)));
}

FIBER_TEST(unpublishable_entry_is_served)
{
    unsigned runs = 0;
    put_file("objects", "a file where the directory should be", 0);
    struct plan plan = {.runs = &runs, .write = "contents"}, missing = {.runs = &runs, .code = SL_NOT_FOUND};
    get(&kind, "a", &plan, "contents");
    get_error(&kind, "b", &missing, SL_NOT_FOUND, NULL);
    get(&kind, "a", &plan, "contents");
    assert_int_equal(runs, 2);
    assert_string_equal(file_text("objects"), "a file where the directory should be");
}

FIBER_TEST(corrupt_entries_are_replaced)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "good"};
    put_file(path_in(&loading, "a", 1), "bad contents", 0);
    put_file(side_of(path_in(&loading, "a", 1)), "{\"scope\":null,\"time_created\":1}", 0);
    get(&loading, "a", &plan, "good");
    assert_int_equal(runs, 1);
    assert_string_equal(file_text(path_in(&loading, "a", 1)), "good");
    struct plan bad = {.runs = &runs, .write = "bad, too"};
    get_error(&loading, "b", &bad, SL_INTERNAL, NULL);
    assert_false(exists(path_in(&loading, "b", 1)));
    /* Short after a crash: the side file knows better. */
    put_file(path_in(&kind, "c", 3), "con", 5 * S);
    put_file(side_of(path_in(&kind, "c", 3)), "{\"scope\":null,\"time_created\":1,\"status\":\"ok\",\"size\":8}", S);
    get(&kind, "c", &plan, "good");
    assert_int_equal(runs, 3);
    put_file(path_in(&kind, "d", 3), "contents", 5 * S);
    put_file(side_of(path_in(&kind, "d", 3)), "{ no json", S);
    get(&kind, "d", &plan, "good"); /* cut, and so the entry may be */
    assert_int_equal(runs, 4);
    put_file(path_in(&kind, "e", 3), "timeoutwhenever", 0);
    get(&kind, "e", &plan, "good");
    assert_int_equal(runs, 5);
    make_parent(in_dir(path_in(&kind, "f", 3)));
    assert_int_equal(symlink(in_dir(path_in(&kind, "d", 3)), in_dir(path_in(&kind, "f", 3))), 0);
    get(&kind, "f", &plan, "good"); /* links are nobody's entries */
    assert_int_equal(runs, 6);
}

FIBER_TEST(use_of_an_entry_is_recorded_hourly)
{
    unsigned runs = 0;
    struct plan plan = {.runs = &runs, .write = "new"};
    const char *path = path_in(&kind, "a", 3);
    put_file(path, "old", 3615 * S);
    get(&kind, "a", &plan, "old");
    struct stat st;
    assert_int_equal(stat(in_dir(path), &st), 0);
    assert_true(st.st_mtim.tv_sec >= time(NULL) - 60);
    put_file(path_in(&kind, "b", 3), "old", 3500 * S);
    get(&kind, "b", &plan, "old");
    assert_int_equal(stat(in_dir(path_in(&kind, "b", 3)), &st), 0);
    assert_true(st.st_mtim.tv_sec < time(NULL) - 3400);
    put_file(path_in(&kind, "c", 3), "old", 25 * 3600 * S);
    get(&kind, "c", &plan, "new");
    assert_int_equal(runs, 1);
    put_file(path_in(&kind, "d", 3), "malformedonce", 60 * S);
    get(&kind, "d", &plan, "new"); /* written before this process began */
    assert_int_equal(runs, 2);
}

/* ---- memory ---- */

TEST(reused_memory_slots_do_not_return_old_entries)
{
    struct cache_memory memory;
    cache_memory_init(&memory, "objects");
    memory.lru.max_size = 1 << 20;
    struct sl_error error = {.code = SL_NOT_FOUND};
    cache_memory_put(&memory, SL_STR("a"), NULL, &error, 0, 0, 10);
    cache_memory_put(&memory, SL_STR("b"), NULL, &error, 0, 0, 20);
    struct cache_memory_entry *a = cache_memory_find(&memory, SL_STR("a"), 1);
    size_t place = a->slot;
    uint64_t serial = memory.slots[place].serial;
    assert_ptr_equal(cache_memory_at(&memory, place, serial, 1), a);
    assert_null(cache_memory_at(&memory, place, serial + 1, 1));
    assert_null(cache_memory_at(&memory, 2, serial, 1));
    cache_memory_put(&memory, SL_STR("a"), NULL, &error, 0, 0, 20); /* another answer to the same key */
    assert_null(cache_memory_at(&memory, place, serial, 1));
    struct cache_memory_entry *b = cache_memory_find(&memory, SL_STR("b"), 1);
    place = b->slot;
    serial = memory.slots[place].serial;
    assert_ptr_equal(CACHE_MEMORY_NEWEST(&memory), b);
    assert_non_null(cache_memory_find(&memory, SL_STR("a"), 1));
    assert_ptr_equal(cache_memory_at(&memory, place, serial, 1), b); /* it counts as used */
    assert_ptr_equal(CACHE_MEMORY_NEWEST(&memory), b);
    assert_null(cache_memory_at(&memory, place, serial, 20)); /* its time is over */
    for (uint64_t i = 0; i < 8; i++)
        assert_null(cache_memory_at(&memory, place, i, 1)); /* the place is free */
    cache_memory_put(&memory, SL_STR("c"), NULL, &error, 0, 0, 20);
    assert_int_equal(cache_memory_find(&memory, SL_STR("c"), 1)->slot, place);
    assert_null(cache_memory_at(&memory, place, serial, 1));
    cache_memory_free(&memory);
}

TEST(memory_is_an_lru_by_bytes)
{
    struct cache_memory memory;
    cache_memory_init(&memory, "objects");
    memory.lru.max_size = 112 * 3;
    struct sl_error error = {.code = SL_NOT_FOUND};
    cache_memory_put(&memory, SL_STR("a"), NULL, &error, 0, 0, 10);
    cache_memory_put(&memory, SL_STR("b"), NULL, &error, 0, 0, 10);
    cache_memory_put(&memory, SL_STR("c"), NULL, &error, 0, 0, UINT64_MAX);
    assert_non_null(cache_memory_find(&memory, SL_STR("a"), 5));
    cache_memory_put(&memory, SL_STR("d"), NULL, &error, 0, 0, 10);
    assert_null(cache_memory_find(&memory, SL_STR("b"), 5));
    assert_non_null(cache_memory_find(&memory, SL_STR("a"), 5));
    assert_null(cache_memory_find(&memory, SL_STR("a"), 10)); /* the deadline itself is too late */
    assert_non_null(cache_memory_find(&memory, SL_STR("c"), UINT64_MAX - 1));
    assert_int_equal(memory.lru.size, 224);
    cache_memory_put(&memory, SL_STR("c"), NULL, &error, 0, 0, UINT64_MAX);
    assert_int_equal(memory.lru.size, 224);
    assert_false(cache_memory_evict_mapped(&memory));
    struct cache_item *item = calloc(1, sizeof *item);
    *item = (struct cache_item){.references = 1, .weight = 1000, .kind = &kind};
    cache_memory_put(&memory, SL_STR("large"), item, NULL, 0, 0, 10); /* alone too large: not kept, still usable */
    assert_int_equal(memory.lru.size, 0);
    assert_int_equal(item->references, 1);
    cache_release(item);
    cache_memory_free(&memory);
}

TEST_FILE(.begin = loop_begin, .end = loop_end, .setup = dir_setup, .teardown = dir_teardown);
