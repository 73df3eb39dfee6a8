/* A process without a free descriptor, for a while. */
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static struct rlimit descriptors_before;

static inline void use_up_descriptors(void)
{
    int next = fcntl(STDIN_FILENO, F_DUPFD, 0);
    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &descriptors_before), 0);
    struct rlimit limit = {(rlim_t)next, descriptors_before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static inline void free_descriptors(void)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &descriptors_before), 0);
}
