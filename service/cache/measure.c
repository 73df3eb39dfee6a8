/* How much of each kind is on disk. */
#include "cache/impl.h"

#include <fts.h>
#include <stdio.h>
#include <sys/stat.h>

#include "core/metrics.h"

static bool is_side_file(const char *name)
{
    struct sl_str text = sl_str(name);
    return sl_str_ends(text, SL_STR(".metadata"));
}

static void measure_kind(const char *cache_dir, const char *kind, struct cleanup_totals *totals)
{
    char path[4096];
    char *const paths[] = {path, NULL};
    int size = snprintf(path, sizeof path, "%s/%s", cache_dir, kind);
    FTS *walk = size < (int)sizeof path ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL) : NULL;
    *totals = (struct cleanup_totals){0};
    for (const FTSENT *entry; walk && (entry = fts_read(walk));)
        if (entry->fts_info == FTS_F && !is_side_file(entry->fts_name)) {
            totals->files++;
            totals->bytes += (uint64_t)entry->fts_statp->st_size;
        }
    if (walk)
        fts_close(walk);
}

void cache_measure(const char *cache_dir, const struct cache_kind *const *kinds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct cleanup_totals totals;
        measure_kind(cache_dir, kinds[i]->name, &totals);
        metric_set(METRIC_CACHE_DISK_BYTES, (double)totals.bytes, kinds[i]->name, NULL, NULL);
        metric_set(METRIC_CACHE_DISK_FILES, (double)totals.files, kinds[i]->name, NULL, NULL);
    }
}
