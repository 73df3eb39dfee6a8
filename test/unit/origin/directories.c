/* Directories of sources that cannot be read to their end: what is in them is unknown, not missing. */
#include "../fixture.h"
#include "../fetch/support.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "origin/impl.h"

static int failure; /* errno of every read of a directory; 0 = reads succeed */
struct dirent64 *__real_readdir64(DIR *dir);
struct dirent64 *__wrap_readdir64(DIR *dir);
struct dirent64 *__wrap_readdir64(DIR *dir)
{
    if (!failure)
        return __real_readdir64(dir);
    errno = failure;
    return NULL;
}

static char root[200];

static int setup(void **state)
{
    char path[300];
    if (fixture_begin(state) != 0)
        return -1;
    snprintf(root, sizeof root, "%s/root", fixture_dir);
    snprintf(path, sizeof path, "%s/Sub", root);
    mkdir(root, 0755);
    mkdir(path, 0755);
    fixture_write("root/Sub/File", "contents", 8);
    snprintf(path, sizeof path, "%s/0123456789abcdef0123456789abcdef01234567", root);
    return mkdir(path, 0755);
}

static int teardown(void **state)
{
    return fixture_end(state);
}

TEST(unreadable_directory_is_an_error)
{
    failure = EIO;
    assert_int_equal(any_case_open(root, "sub/file"), -1);
    assert_int_equal(errno, EIO);
    failure = 0;
    int fd = any_case_open(root, "sub/file"); /* the failed listing was not kept */
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(any_case_open(root, "sub/other"), -1);
    assert_int_equal(errno, ENOENT);
}

static void run(void (*fn)(void *arg), uint64_t max_size);

FIBER_TEST_WITH(unreadable_directory_has_no_build_ids, 0)
{
    const struct source source = {.type = SOURCE_FILESYSTEM, .path = sl_str(root), .layout = LAYOUT_DEBUGINFOD};
    struct object_id id = {.has_debug_id = true};
    struct sl_arena arena = {0};
    struct sl_str build_id;
    assert_true(sl_debug_id_parse(SL_STR("67452301-ab89-efcd-0123-456789abcdef"), &id.debug_id));
    failure = EIO;
    assert_int_equal(origin_build_id(&source, &id, &arena, &build_id), SL_INTERNAL);
    failure = 0;
    assert_int_equal(origin_build_id(&source, &id, &arena, &build_id), SL_OK); /* the failure was not remembered */
    assert_string_equal(build_id.data, "0123456789abcdef0123456789abcdef01234567");
    id.debug_id.uuid[15] ^= 1;
    assert_int_equal(origin_build_id(&source, &id, &arena, &build_id), SL_NOT_FOUND);
    sl_arena_free(&arena);
}

static void run(void (*fn)(void *arg), uint64_t max_size)
{
    struct fetch_options options = open_options();
    (void)max_size;
    with_fetch(&options, fn, NULL);
}

TEST_FILE(.begin = setup, .end = teardown);
