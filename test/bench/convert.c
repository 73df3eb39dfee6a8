/* Seconds of CPU time to convert a debug file into a symcache on one thread, in process: without the start of a program
 * and the writing of a file.
 *
 * usage: convert FILE RUNS    prints each run's seconds */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "object/object.h"
#include "symcache/symcache.h"

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static enum sl_code convert(const char *path, struct sl_error *error)
{
    struct sl_symcache_options options = {0};
    struct sl_mapping mapping;
    struct sl_object *object = NULL;
    struct sl_buf out = {0};
    enum sl_code code = sl_map_file(path, &mapping, error);
    if (code != SL_OK)
        return code;
    code = sl_object_open(mapping.bytes, NULL, &object, error);
    if (code == SL_OK)
        code = sl_symcache_convert(object, NULL, &options, NULL, &out, error);
    sl_object_close(object);
    sl_buf_free(&out);
    sl_unmap(&mapping);
    return code;
}

int main(int argc, char **argv)
{
    struct sl_error error = {0};
    for (int i = 0, runs = argc == 3 ? atoi(argv[2]) : 0; i < runs; i++) {
        double start = seconds();
        if (convert(argv[1], &error) != SL_OK) {
            fprintf(stderr, "convert: %s\n", error.message);
            return 1;
        }
        printf("%.4f\n", seconds() - start);
    }
    return argc == 3 ? 0 : 2;
}
