/* Seconds of CPU time to convert a debug file into a symcache on one thread, in process: without the start of a program
 * and the writing of a file.
 *
 * usage: convert FILE RUNS    prints the bytes of what the symcache says, decoded, and each run's seconds */
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

static enum sl_code convert(const char *path, struct sl_buf *out, struct sl_error *error)
{
    struct sl_symcache_options options = {0};
    struct sl_mapping mapping;
    struct sl_object *object = NULL;
    enum sl_code code = sl_map_file(path, &mapping, error);
    if (code != SL_OK)
        return code;
    code = sl_object_open(mapping.bytes, NULL, &object, error);
    if (code == SL_OK)
        code = sl_symcache_convert(object, NULL, &options, NULL, out, error);
    sl_object_close(object);
    sl_unmap(&mapping);
    return code;
}

/* Each entry, link of an inline chain, function and text once. */
static size_t decoded_size(const struct sl_buf *file)
{
    enum { ENTRY = 24, LINK = 20, FUNCTION = 24 }; /* address, context, file, line; and so on */
    struct sl_symcache cache;
    struct sl_buf text = {0};
    size_t size;
    if (sl_symcache_open(sl_buf_bytes(file), &cache, NULL) != SL_OK)
        return 0;
    size = cache.entry_count * ENTRY + cache.context_count * LINK + cache.function_count * FUNCTION;
    for (uint32_t i = 0; i < cache.string_count; i++) {
        sl_buf_clear(&text);
        sl_symcache_string(&cache, i, &text);
        size += text.size;
    }
    sl_buf_free(&text);
    return size;
}

int main(int argc, char **argv)
{
    struct sl_error error = {0};
    unsigned long runs = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (!runs) {
        fprintf(stderr, "usage: convert FILE RUNS\n");
        return 2;
    }
    for (unsigned long i = 0; i < runs; i++) {
        struct sl_buf out = {0};
        double start = seconds();
        if (convert(argv[1], &out, &error) != SL_OK) {
            fprintf(stderr, "convert: %s\n", error.message);
            return 1;
        }
        double time = seconds() - start;
        if (!i)
            printf("%zu\n", decoded_size(&out));
        printf("%.4f\n", time);
        sl_buf_free(&out);
    }
    return 0;
}
