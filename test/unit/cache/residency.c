/* What of a mapping is in memory. */
#include "support.h"

#include "core/loop.h"

enum { LONG_AGO_MS = 60000 };

/* A file of holes: none of its pages is in memory before it is read. */
static struct cache_item map_holes(size_t size)
{
    struct cache_item item = {.references = 1};
    int fd = open(in_dir("holes"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    assert_int_equal(sl_map_fd(fd, &item.mapping, NULL), SL_OK);
    close(fd);
    return item;
}

static unsigned read_all(const struct cache_item *item)
{
    unsigned sum = 0;
    for (size_t at = 0; at < item->mapping.mapped; at += 4096)
        sum += ((const volatile uint8_t *)item->mapping.bytes.data)[at];
    return sum;
}

static void look_anew(struct cache_item *item)
{
    item->residency_checked_ms = 0;
    cache_check_residency(item);
}

TEST(read_pages_are_resident)
{
    struct cache_item item = map_holes(5 << 20), copy = {.references = 1, .mapping = {{(const uint8_t *)"x", 1}, 0}};
    assert_true(cache_is_resident(&copy));
    assert_false(cache_is_resident(&item)); /* nobody has looked */
    look_anew(&item);
    assert_false(cache_is_resident(&item));
    assert_int_equal(read_all(&item), 0);
    assert_false(cache_is_resident(&item)); /* nobody has looked since */
    look_anew(&item);
    assert_true(cache_is_resident(&item));
    sl_unmap(&item.mapping);
}

/* One of those who ask does, and the others go on. */
TEST(residency_is_checked_by_one_caller_at_a_time)
{
    struct cache_item item = map_holes(1 << 20);
    read_all(&item);
    look_anew(&item);
    assert_true(cache_is_resident(&item));
    item.residency_checked_ms -= LONG_AGO_MS;
    assert_false(cache_is_resident(&item));
    assert_true(cache_is_resident(&item));
    cache_check_residency(&item);
    assert_true(cache_is_resident(&item));
    sl_unmap(&item.mapping);
}

TEST(large_files_are_not_read_ahead_whole)
{
    struct cache_item item = map_holes(40 << 20);
    look_anew(&item);
    uint64_t residency_checked_ms = item.residency_checked_ms;
    cache_check_residency(&item); /* too soon */
    assert_int_equal(item.residency_checked_ms, residency_checked_ms);
    look_anew(&item);
    assert_false(cache_is_resident(&item));
    sl_unmap(&item.mapping);
}

TEST(fibers_and_files_share_the_map_limit)
{
    unsigned long most;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
    assert_int_equal(fscanf(file, "%lu", &most), 1);
    fclose(file);
    for (uint64_t fibers = 1; 2 * fibers + most / 4 < most; fibers += most / 16) {
        struct config config = {.max_fibers = fibers};
        uint64_t files = cache_mapped_limit(&config);
        assert_true(files > 0 && 2 * fibers + files < most); /* a stack and its guard are a map each */
        config.max_mapped_files = 7;
        assert_int_equal(cache_mapped_limit(&config), 7);
    }
}

TEST_FILE(.begin = loop_begin, .end = loop_end, .setup = dir_setup, .teardown = dir_teardown);
