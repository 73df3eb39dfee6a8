/* Tunes glibc's malloc for a process that does one job and ends. */
#include "cli/cli.h"

#include <limits.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    KEPT = 32 << 20,     /* larger allocations are mmapped; the largest value that glibc allows */
    SPARE = 256 << 20,   /* how much the heap grows at once; takes address space, but memory only when it is touched */
    PLAIN = 2 << 20,     /* how much of that keeps small pages, so that small jobs do not fault in a huge page */
    HUGE_PAGE = 2 << 20, /* alignment of huge pages */
    TOP_PAD = 128 << 10, /* glibc's default */
};

/* True if RLIMIT_AS or RLIMIT_DATA (`resource`) is below eight times SPARE: then the spare memory would take too much from the job. */
static bool is_limited(int resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) != 0 || limit.rlim_cur < 8 * (rlim_t)SPARE;
}

/* Grows the heap by SPARE bytes; returns where the new part begins. */
static uintptr_t grow(void)
{
    uintptr_t begin = (uintptr_t)sbrk(0);
    mallopt(M_TOP_PAD, SPARE);            /* how much more than needed malloc gets when it grows the heap */
    void *volatile piece = malloc(PLAIN); /* larger than the free part: the heap grows; volatile: not optimised away */
    free(piece);
    mallopt(M_TOP_PAD, TOP_PAD);
    return begin;
}

void heap_configure_for_one_job(void)
{
    if (is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA)) /* spare memory could then make the job fail */
        return;
    mallopt(M_ARENA_MAX, 1);            /* arenas of threads would use small pages */
    mallopt(M_MMAP_THRESHOLD, KEPT);    /* smaller blocks come from the heap, where they are kept for reuse */
    mallopt(M_TRIM_THRESHOLD, INT_MAX); /* never give freed memory back */
    /* all that the heap has grown by, except the first bytes (PLAIN), rounded to whole huge pages */
    uintptr_t from = (grow() + PLAIN + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1), end = (uintptr_t)sbrk(0);
    if (from < end)
        madvise((void *)from, end - from, MADV_HUGEPAGE); /* a hint: without huge pages, small ones are used */
}
