/* What the layers of the cache cost: bench_cache DIRECTORY ENTRIES
 *
 * Fills the directory with entries, then measures the start, hits in memory and hits on disk. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/cache.h"
#include "core/duration.h"
#include "core/loop.h"

#define DAY_NS (UINT64_C(86400) * 1000000000)
enum { CONTENTS = 4000, MEMORY_HITS = 1000000, DISK_HITS = 20000 };

static const struct cache_kind kind = {.name = "symcaches", .section = CACHE_DERIVED, .version = 1};
static const struct cache_kind *const kinds[] = {&kind};
static unsigned entries;

static struct cache_key key_of(char text[128], unsigned i)
{
    int size = snprintf(text, 128, "scope: global\n\nsource: bench\nlocation: https://example.com/%u\n", i);
    return (struct cache_key){{text, (size_t)size}, SL_STR("global")};
}

static bool write_file(const char *path, const char *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    bool ok = fd >= 0 && write(fd, data, size) == (ssize_t)size;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* As the service writes them, with side files, but without its care for power losses. */
static bool fill(const char *dir)
{
    static char contents[CONTENTS];
    char text[128], relative[128], path[512], side[600], json[256];
    for (unsigned i = 0; i < entries; i++) {
        struct cache_key key = key_of(text, i);
        cache_relative_path(key.text, kind.version, false, relative);
        snprintf(path, sizeof path, "%s/%s/%s", dir, kind.name, relative);
        for (char *slash = path + strlen(dir); (slash = strchr(slash + 1, '/'));) {
            *slash = '\0';
            mkdir(path, 0750);
            *slash = '/';
        }
        snprintf(side, sizeof side, "%s.metadata", path);
        int size = snprintf(json, sizeof json, "{\"scope\":null,\"time_created\":%lld,\"status\":\"ok\",\"size\":%d}",
                            (long long)clock_wall_s(), CONTENTS);
        if (!write_file(path, contents, sizeof contents) || !write_file(side, json, (size_t)size))
            return false;
    }
    return true;
}

static bool hit(unsigned i)
{
    char text[128];
    struct cache_key key = key_of(text, i);
    struct cache_item *item;
    if (cache_get(&kind, &key, NULL, &item, NULL) != SL_OK)
        return false;
    cache_release(item);
    return true;
}

static void measure(void *arg)
{
    (void)arg;
    bool ok = hit(0);
    uint64_t begin = clock_mono_ns();
    for (unsigned i = 0; i < MEMORY_HITS; i++)
        ok = hit(0) && ok;
    printf("memory_hit_ns %.0f\n", (double)(clock_mono_ns() - begin) / MEMORY_HITS);
    for (int round = 0; round < 2; round++) { /* the kernel's caches as they happen to be; then warm */
        unsigned count = entries < DISK_HITS ? entries : DISK_HITS;
        uint64_t x = 88172645463325252u;
        begin = clock_mono_ns();
        for (unsigned i = 0; i < count; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            ok = hit((unsigned)(x % entries)) && ok;
        }
        printf("disk_hit_us_%s %.1f\n", round ? "warm" : "first", (double)(clock_mono_ns() - begin) / count / 1e3);
    }
    if (!ok)
        printf("failed 1\n");
    cache_drain();
}

int main(int argc, char **argv)
{
    struct cache_lifetimes days = {DAY_NS, DAY_NS, DAY_NS, DAY_NS, 20};
    struct config config = {.downloaded = days,
                            .derived = days,
                            .index = days,
                            .diagnostics = days,
                            .default_capacity = 4096, /* so that hits are on disk */
                            .cache_max_size = UINT64_MAX,
                            .cache_min_free_space = UINT64_MAX,
                            .upgrade_fallback_after_ns = DURATION_NEVER};
    struct sl_error error = {0};
    uint64_t count;
    if (argc != 3 || !sl_parse_u64(sl_str(argv[2]), &count) || !count || count > UINT_MAX)
        return 2;
    entries = (unsigned)count;
    config.cache_dir = argv[1];
    if (!fill(argv[1]))
        return 1;
    loop_init(4);
    uint64_t begin = clock_mono_ns();
    if (cache_init(&config, kinds, 1, &error) != SL_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("start_ms %.2f\n", (double)(clock_mono_ns() - begin) / 1e6);
    loop_run_fiber(measure, NULL);
    cache_close();
    loop_close();
    return 0;
}
