/* A source map to its table on one thread, its script's functions left out unless the script is given; and the time of a warm
 * look-up of a random token, in process.
 *
 * usage: sourcemap MAP [SCRIPT]
 * prints the seconds of a conversion, the bytes of the table, the greatest resident size (KB) of the program up to there, the map's
 * pages with it, the seconds of a look-up, and how many of the look-ups found something. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "js/smcache.h"
#include "js/sourcemap.h"

enum { ROUNDS = 15, LOOK_UPS = 1 << 20 };

struct position {
    uint32_t line, column;
};

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "sourcemap: %s\n", what);
    exit(1);
}

/* Of this program alone; what getrusage() says begins with that of its parent. */
static long peak_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %ld", &kb) == 1)
            break;
    if (status)
        fclose(status);
    return kb;
}

static struct sl_str map_text(const char *path)
{
    struct sl_mapping mapping;
    struct sl_error error = {0};
    must(sl_map_file(path, &mapping, &error) == SL_OK, error.message);
    return (struct sl_str){(const char *)mapping.bytes.data, mapping.bytes.size};
}

static double convert(struct sl_str script, struct sl_str text, struct sl_buf *out)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const struct sl_smcache_options options = {0};
        struct sl_budget budget;
        struct sl_error error = {0};
        double start = cpu_seconds();
        sl_budget_init(&budget, script.size + text.size);
        sl_buf_free(out);
        must(sl_smcache_write(script, text, &options, &budget, out, &error) == SL_OK, error.message);
        double seconds = cpu_seconds() - start;
        best = seconds < best ? seconds : best;
    }
    return best;
}

/* Positions at or behind random tokens. */
static struct position *choose(struct sl_str text, uint64_t count)
{
    struct sl_arena arena = {0};
    struct sl_sourcemap map;
    struct sl_sourcemap_tokens tokens;
    struct sl_sourcemap_batch batch;
    struct position *all = malloc((count + 1) * sizeof *all), *chosen = malloc(LOOK_UPS * sizeof *chosen);
    uint64_t n = 0, random = 1;
    must(all && chosen && count && sl_sourcemap_read(text, &arena, &map, NULL, NULL) == SL_OK, "no tokens");
    sl_sourcemap_tokens(&map, &tokens);
    while (sl_sourcemap_batch(&tokens, &batch, NULL) == SL_OK && batch.count)
        for (uint32_t i = 0; i < batch.count && n < count; i++)
            all[n++] = (struct position){batch.line[i], batch.column[i]};
    for (size_t i = 0; i < LOOK_UPS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        chosen[i] = all[(random >> 33) % n];
        chosen[i].column += (uint32_t)(random >> 32 & 1);
    }
    free(all);
    sl_arena_free(&arena);
    return chosen;
}

static double look_up(const struct sl_smcache *cache, const struct position *positions, uint64_t *found)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        struct sl_smcache_position place;
        double start = cpu_seconds();
        *found = 0;
        for (size_t i = 0; i < LOOK_UPS; i++)
            *found += sl_smcache_lookup(cache, positions[i].line, positions[i].column, &place);
        double seconds = cpu_seconds() - start;
        best = seconds < best ? seconds : best;
    }
    return best / LOOK_UPS;
}

int main(int argc, char **argv)
{
    struct sl_buf table = {0};
    struct sl_smcache cache;
    uint64_t found;
    must(argc == 2 || argc == 3, "usage: sourcemap MAP [SCRIPT]");
    struct sl_str text = map_text(argv[1]), script = argc == 3 ? map_text(argv[2]) : SL_STR("");
    double converted = convert(script, text, &table);
    long memory = peak_kb();
    must(sl_smcache_open(sl_buf_bytes(&table), &cache, NULL) == SL_OK, "a table that does not open");
    struct position *positions = choose(text, cache.token_count);
    double looked_up = look_up(&cache, positions, &found);
    printf("%.6f %zu %ld %.9f %llu\n", converted, table.size, memory, looked_up, (unsigned long long)found);
    free(positions);
    sl_buf_free(&table);
    return 0;
}
