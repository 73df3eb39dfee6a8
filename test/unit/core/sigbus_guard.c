/* Guarded code: a fault under a mapping ends it and nothing else, on any thread, in a fiber, and inside each other. */
#include "../check.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/sigbus_guard.h"
#include "core/loop.h"
#include "core/metrics.h"

static void *cut; /* a page whose file has ended */

static void touch(void *arg)
{
    *(int *)arg = 1;
    (void)*(volatile const char *)cut;
    *(int *)arg = 2;
}

static void leave_alone(void *arg)
{
    *(int *)arg = 3;
}

static void nest(void *arg)
{
    int *reached = arg;
    assert_false(sigbus_guard_run(touch, reached));
    assert_int_equal(*reached, 1);
    assert_true(sigbus_guard_run(leave_alone, reached));
    sigbus_guard_fail(); /* of the outer one, whose recovery point is in force again */
    *reached = 4;
}

static void check(void *arg)
{
    int reached = 0;
    assert_true(sigbus_guard_run(leave_alone, &reached));
    assert_int_equal(reached, 3);
    assert_false(sigbus_guard_run(nest, &reached));
    assert_int_equal(reached, 3);
    assert_false(sigbus_guard_run(touch, &reached));
    assert_int_equal(reached, 1);
    sigbus_guard_fail(); /* nothing to end */
}

static void *check_on_thread(void *arg)
{
    check(arg);
    return NULL;
}

TEST(sigbus_ends_only_the_guarded_code)
{
    char path[] = "/tmp/symloom-unit-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    assert_int_equal(ftruncate(fd, 4096), 0);
    cut = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    loop_init(2);
    check(NULL);
    loop_run_fiber(check, NULL);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, check_on_thread, NULL), 0);
    pthread_join(thread, NULL);
    loop_close();
    munmap(cut, 4096);
    close(fd);
    struct sl_buf text = {0};
    metrics_write(&text, false);
    sl_buf_u8(&text, 0);
    /* Three times two faults, and the one that sigbus_guard_fail plays. */
    assert_non_null(strstr((const char *)text.data, "\nsymloom_faults_recovered_total{kind=\"sigbus\"} 9\n"));
    sl_buf_free(&text);
}
