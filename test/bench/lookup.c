/* Nanoseconds for a warm look-up with its inline chain, in process.
 *
 * usage: lookup SYMCACHE ADDRESSES    one relative hexadecimal address a line */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "symcache/symcache.h"

enum { ROUNDS = 20, MAX_ADDRESSES = 1 << 20 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t read_addresses(const char *path, uint64_t *out)
{
    FILE *file = fopen(path, "r");
    size_t count = 0;
    unsigned long long address;
    while (file && count < MAX_ADDRESSES && fscanf(file, "%llx", &address) == 1)
        out[count++] = address;
    if (file)
        fclose(file);
    return count;
}

int main(int argc, char **argv)
{
    static uint64_t addresses[MAX_ADDRESSES];
    struct sl_mapping mapping;
    struct sl_symcache cache;
    struct sl_error error = {0};
    if (argc != 3 || sl_map_file(argv[1], &mapping, &error) != SL_OK ||
        sl_symcache_open(mapping.bytes, &cache, &error) != SL_OK) {
        fprintf(stderr, "lookup: %s\n", error.message);
        return 1;
    }
    struct sl_location chain[64];
    size_t count = read_addresses(argv[2], addresses), elements = 0, found = 0;
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = seconds();
        for (size_t i = 0; i < count; i++) {
            size_t n = sl_symcache_lookup(&cache, addresses[i], chain, 64);
            elements += n;
            found += n > 0;
        }
        double time = seconds() - start;
        best = time < best ? time : best;
    }
    printf("%.1f ns a look-up, %.2f elements, %zu addresses, %.1f %% found\n", best / (double)count * 1e9,
           (double)elements / (double)(found ? found : 1), count, 100.0 * (double)found / ROUNDS / (double)count);
    sl_unmap(&mapping);
    return 0;
}
