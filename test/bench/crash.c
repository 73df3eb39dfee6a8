/* What walking stacks needs of a debug file, in process and on one thread.
 *
 * usage: crash FILE RUNS    prints the least seconds of CPU time to make its CFI cache, those to make its symcache, and the
 *                           nanoseconds of finding a rule at a random address, warm */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "object/object.h"
#include "symcache/symcache.h"
#include "unwind/cfi.h"

enum { LOOKUPS = 1000000 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static enum sl_code make(const char *path, bool cfi, struct sl_buf *out, uint64_t *size, struct sl_error *error)
{
    struct sl_symcache_options options = {0};
    struct sl_mapping mapping;
    struct sl_object *object = NULL;
    enum sl_code code = sl_map_file(path, &mapping, error);
    if (code != SL_OK)
        return code;
    code = sl_object_open(mapping.bytes, NULL, &object, error);
    if (code == SL_OK) {
        *size = sl_object_info(object)->image_size;
        code = cfi ? sl_cfi_convert(object, NULL, out, NULL, error)
                   : sl_symcache_convert(object, NULL, &options, NULL, out, error);
    }
    sl_object_close(object);
    sl_unmap(&mapping);
    return code;
}

/* Which tells the time itself, and leaves the last file that was made in `out`. */
static double shortest(const char *path, bool cfi, unsigned long runs, struct sl_buf *out, uint64_t *size)
{
    double best = 1e9;
    struct sl_error error = {0};
    for (unsigned long i = 0; i < runs; i++) {
        sl_buf_clear(out);
        double start = seconds();
        if (make(path, cfi, out, size, &error) != SL_OK) {
            fprintf(stderr, "crash: %s\n", error.message);
            exit(1);
        }
        double time = seconds() - start;
        best = time < best ? time : best;
    }
    return best;
}

/* The rule of the CFA at each of many addresses that are covered. */
static double lookup_ns(const struct sl_cfi *cfi, uint64_t image_size)
{
    uint64_t random = 1, found = 0, tried = 0;
    double start = seconds();
    while (found < LOOKUPS && tried++ < 100 * (uint64_t)LOOKUPS) {
        struct sl_cfi_row row;
        struct sl_unwind_rule rule;
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        if (sl_cfi_find(cfi, (random >> 33) % image_size, &row))
            found += sl_cfi_rule(&row, &rule);
    }
    return (seconds() - start) * 1e9 / (double)tried;
}

int main(int argc, char **argv)
{
    unsigned long runs = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    struct sl_buf table = {0}, symbols = {0};
    struct sl_cfi cfi;
    struct sl_error error = {0};
    uint64_t size = 0;
    if (!runs) {
        fprintf(stderr, "usage: crash FILE RUNS\n");
        return 2;
    }
    double of_symbols = shortest(argv[1], false, runs, &symbols, &size);
    double of_cfi = shortest(argv[1], true, runs, &table, &size);
    if (!size || sl_cfi_open(sl_buf_bytes(&table), &cfi, &error) != SL_OK) {
        fprintf(stderr, "crash: %s\n", size ? error.message : "the file has no size");
        return 1;
    }
    lookup_ns(&cfi, size);
    printf("%.4f\n%.4f\n%.1f\n", of_cfi, of_symbols, lookup_ns(&cfi, size));
    sl_buf_free(&table);
    sl_buf_free(&symbols);
    return 0;
}
