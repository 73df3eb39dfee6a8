/* The memory that requests share, and contents that move to files. */
#include "../check.h"

#include <dirent.h>
#include <sys/stat.h>

#include "core/shared_blob.h"
#include "core/loop.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

struct asker {
    struct memory_reservation share;
    uint64_t bytes;
    enum sl_code code;
    bool answered;
    int order;
};

static int answered;

static void ask(void *arg)
{
    struct asker *a = arg;
    struct sl_error error;
    a->code = memory_reserve(&a->share, a->bytes, &error);
    a->answered = true;
    a->order = answered++;
}

static void run(void (*test)(void *arg));

FIBER_TEST(memory_is_granted_first_come_first_served)
{
    struct fiber_group group;
    struct asker large = {.bytes = 3 * MIB}, next = {.bytes = 512 * KIB}, small = {.bytes = 16 * KIB};
    struct memory_reservation held = {0};
    memory_configure(4 * MIB, 60000);
    memory_resize(&held, 2 * MIB);
    answered = 0;
    fiber_group_init(&group, NULL);
    fiber_start(&group, ask, &large);
    fiber_start(&group, ask, &next);
    fiber_start(&group, ask, &small);
    fiber_sleep(0);
    assert_false(large.answered);
    assert_false(next.answered); /* there is room for it, but not its turn */
    assert_true(small.answered);
    memory_resize(&held, 0);
    fiber_group_wait(&group);
    assert_int_equal(large.code, SL_OK);
    assert_int_equal(next.code, SL_OK);
    assert_true(small.order < large.order && large.order < next.order);
    assert_true(memory_used() == 3 * MIB + 528 * KIB);
    memory_resize(&large.share, 0);
    memory_resize(&next.share, 0);
    memory_resize(&small.share, 0);
    assert_true(memory_used() == 0);
}

FIBER_TEST(unavailable_memory_is_unsupported_or_busy)
{
    struct sl_error error;
    struct memory_reservation held = {0}, share = {0};
    memory_configure(4 * MIB, 20);
    assert_int_equal(memory_reserve(&share, 4 * MIB + 1, &error), SL_UNSUPPORTED);
    memory_resize(&held, 4 * MIB);
    assert_true(memory_is_short());
    assert_int_equal(memory_reserve(&share, MIB, &error), SL_BUSY); /* after 20 ms */
    assert_true(share.bytes == 0);
    memory_resize(&held, 6 * MIB); /* more than there is: it is there all the same */
    assert_int_equal(memory_reserve(&share, 1, &error), SL_BUSY);
    memory_resize(&held, 0);
    assert_int_equal(memory_reserve(&share, 4 * MIB, &error), SL_OK);
    assert_int_equal(memory_reserve(&share, MIB, &error), SL_OK); /* it has that */
    assert_true(memory_used() == 4 * MIB);
    memory_transfer(&held, &share);
    assert_true(share.bytes == 0 && held.bytes == 4 * MIB);
    memory_resize(&held, 0);
}

FIBER_TEST(memory_held_by_the_pool_is_counted)
{
    struct sl_error error;
    struct memory_reservation share = {0};
    uint64_t held = 0;
    memory_configure(4 * MIB, 20);
    memory_charge(&held, MIB);
    memory_charge(&held, 3 * MIB);
    assert_true(memory_used() == 3 * MIB && memory_is_short());
    assert_int_equal(memory_reserve(&share, 2 * MIB, &error), SL_BUSY);
    memory_charge(&held, 0);
    assert_true(memory_used() == 0);
    assert_int_equal(memory_reserve(&share, 2 * MIB, &error), SL_OK);
    memory_resize(&share, 0);
}

FIBER_TEST(cancelled_waiter_lets_others_through)
{
    struct fiber_group group, others;
    struct asker large = {.bytes = 3 * MIB}, next = {.bytes = MIB};
    struct memory_reservation held = {0};
    memory_configure(4 * MIB, 60000);
    memory_resize(&held, 2 * MIB);
    fiber_group_init(&group, NULL);
    fiber_group_init(&others, NULL);
    fiber_start(&group, ask, &large);
    fiber_start(&others, ask, &next);
    fiber_sleep(0);
    fiber_group_cancel(&group);
    fiber_group_wait(&group);
    fiber_group_wait(&others);
    assert_int_equal(large.code, SL_CANCELLED);
    assert_int_equal(next.code, SL_OK);
    memory_resize(&held, 0);
    memory_resize(&next.share, 0);
    assert_true(memory_used() == 0);
}

/* ---- contents ---- */
static size_t descriptors(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static struct shared_blob *some_content(size_t size, uint8_t byte)
{
    struct sl_buf bytes = {0};
    sl_buf_fill(&bytes, byte, size);
    return shared_blob_new(&bytes);
}

struct spilling {
    struct shared_blob *content;
    enum sl_code code;
};

static void spill(void *arg)
{
    struct spilling *s = arg;
    struct sl_error error;
    s->code = shared_blob_spill(s->content, "/tmp", &error);
}

FIBER_TEST(spilled_contents_share_one_file)
{
    enum { COUNT = 20, SIZE = 100 * KIB };
    struct fiber_group group;
    struct spilling all[COUNT];
    struct sl_error error;
    memory_configure(64 * MIB, 0);
    size_t before = descriptors();
    fiber_group_init(&group, NULL);
    for (int i = 0; i < COUNT; i++) {
        all[i] = (struct spilling){some_content(SIZE, (uint8_t)i), SL_INTERNAL};
        fiber_start(&group, spill, &all[i]);
    }
    assert_true(memory_used() >= (uint64_t)COUNT * SIZE);
    fiber_group_wait(&group);
    assert_true(memory_used() == 0);
    assert_int_equal(descriptors(), before + 1);
    for (int i = 0; i < COUNT; i++) {
        uint8_t piece[1000];
        assert_int_equal(all[i].code, SL_OK);
        assert_null(shared_blob_bytes(all[i].content).data);
        assert_int_equal(shared_blob_size(all[i].content), SIZE);
        assert_int_equal(shared_blob_read(all[i].content, SIZE - sizeof piece, piece, sizeof piece, &error), SL_OK);
        for (size_t k = 0; k < sizeof piece; k++)
            assert_int_equal(piece[k], i);
        shared_blob_release(all[i].content);
    }
}

FIBER_TEST(pinned_bytes_stay_valid_after_a_spill)
{
    struct sl_error error;
    struct shared_blob *content = some_content(100, 'x');
    shared_blob_retain(content);
    shared_blob_release(content);
    struct sl_bytes bytes = shared_blob_pin(content);
    assert_int_equal(shared_blob_spill(content, "/tmp", &error), SL_OK);
    assert_int_equal(bytes.data[99], 'x');
    assert_true(memory_used() > 0);
    shared_blob_unpin(content);
    assert_true(memory_used() == 0);
    shared_blob_release(content);
}

FIBER_TEST(contents_stay_in_memory_without_a_spill_file)
{
    struct sl_error error;
    struct shared_blob *full = some_content(100, 'x');
    assert_int_equal(shared_blob_spill(full, "/tmp", &error), SL_OK); /* begins the file that others go on with */
    for (int i = 0; i < 1024; i++) {                                  /* until it is full and another one is wanted */
        struct shared_blob *filler = some_content(MIB, 'f');
        assert_int_equal(shared_blob_spill(filler, "/tmp", &error), SL_OK);
        shared_blob_release(filler);
    }
    struct shared_blob *content = some_content(100, 'y');
    assert_int_equal(shared_blob_spill(content, "/nowhere", &error), SL_INTERNAL);
    assert_non_null(strstr(error.message, "/nowhere"));
    assert_int_equal(shared_blob_bytes(content).data[0], 'y');
    assert_int_equal(shared_blob_spill(content, "/tmp", &error), SL_OK);
    uint8_t byte = 0;
    assert_int_equal(shared_blob_read(full, 99, &byte, 1, &error), SL_OK);
    assert_int_equal(byte, 'x');
    shared_blob_release(content);
    shared_blob_release(full);
}

/* What deleted files of this process hold, in blocks of 512 bytes. */
static uint64_t blocks_of_deleted_files(void)
{
    uint64_t blocks = 0;
    struct stat status;
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *e; (e = readdir(dir));)
        if (fstatat(dirfd(dir), e->d_name, &status, 0) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0)
            blocks += (uint64_t)status.st_blocks;
    closedir(dir);
    return blocks;
}

FIBER_TEST(large_contents_are_freed_by_the_pool)
{
    struct sl_error error;
    struct shared_blob *in_memory = some_content(8 * MIB, 'x'), *in_file = some_content(8 * MIB, 'y');
    struct shared_blob *behind = some_content(100, 'z'); /* keeps the file in use */
    assert_int_equal(shared_blob_spill(in_file, "/tmp", &error), SL_OK);
    assert_int_equal(shared_blob_spill(behind, "/tmp", &error), SL_OK);
    assert_in_range(memory_used(), 8 * MIB, 9 * MIB);
    shared_blob_release(in_memory);
    while (memory_used() > 0)
        fiber_sleep(1);
    uint64_t blocks = blocks_of_deleted_files();
    assert_true(blocks >= 8 * MIB / 512);
    shared_blob_release(in_file);
    while (blocks_of_deleted_files() > blocks - 8 * MIB / 512 + 8)
        fiber_sleep(1);
    uint8_t byte = 0;
    assert_int_equal(shared_blob_read(behind, 99, &byte, 1, &error), SL_OK);
    assert_int_equal(byte, 'z');
    shared_blob_release(behind);
}

static void run(void (*test)(void *arg))
{
    loop_init(2);
    loop_run_fiber(test, NULL);
    loop_close();
}
