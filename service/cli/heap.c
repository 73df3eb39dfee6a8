/* malloc for a process that does one job and ends. */
#include "cli/cli.h"

#include <limits.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    KEPT = 32 << 20,     /* pieces up to this size stay in the heap: the most that glibc has */
    SPARE = 256 << 20,   /* addresses; pages are taken when they are used */
    PLAIN = 2 << 20,     /* a job that needs no more pays for no huge page */
    HUGE_PAGE = 2 << 20, /* what a huge page is aligned to */
    TOP_PAD = 128 << 10, /* glibc's own */
};

/* Whether a process that may have so little would miss the addresses. */
static bool limited(int resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) != 0 || limit.rlim_cur < 8 * (rlim_t)SPARE;
}

/* Lets the heap grow by SPARE; the address that the new part begins at. */
static uintptr_t grow(void)
{
    uintptr_t begin = (uintptr_t)sbrk(0);
    mallopt(M_TOP_PAD, SPARE);
    void *volatile piece = malloc(PLAIN); /* which is not there yet */
    free(piece);
    mallopt(M_TOP_PAD, TOP_PAD);
    return begin;
}

void heap_for_one_job(void)
{
    if (limited(RLIMIT_AS) || limited(RLIMIT_DATA))
        return;
    mallopt(M_ARENA_MAX, 1); /* those of threads have small pages */
    mallopt(M_MMAP_THRESHOLD, KEPT);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    uintptr_t from = (grow() + PLAIN + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1), end = (uintptr_t)sbrk(0);
    if (from < end)
        madvise((void *)from, end - from, MADV_HUGEPAGE); /* where there are none, small ones do */
}
