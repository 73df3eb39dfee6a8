#include "cli/file_walk.h"

#include <sys/stat.h>

int file_walk_by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

void file_walk_open(struct file_walk *walk, const char *path)
{
    char *const roots[] = {(char *)path, NULL};
    *walk = (struct file_walk){.fts = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, file_walk_by_name)};
}

/* Marks a directory, by device and inode, as entered. False if it was entered before, or when out of memory. */
static bool enter_directory(struct file_walk *walk, const struct stat *st)
{
    uint64_t key[2] = {(uint64_t)st->st_dev, (uint64_t)st->st_ino};
    bool is_new = false;
    char *copy = sl_arena_strndup(&walk->keys, (const char *)key, sizeof key);
    void **slot = copy ? sl_map_find_or_add(&walk->entered, (struct sl_str){copy, sizeof key}, &is_new) : NULL;
    if (slot)
        *slot = walk; /* any value: only the keys matter */
    return slot && is_new;
}

const FTSENT *file_walk_next(struct file_walk *walk)
{
    for (FTSENT *entry; walk->fts && (entry = fts_read(walk->fts));) {
        if (entry->fts_info == FTS_F)
            return entry;
        if (entry->fts_info == FTS_D && !enter_directory(walk, entry->fts_statp))
            fts_set(walk->fts, entry, FTS_SKIP); /* fts itself notices a cycle only on the path to the directory */
    }
    return NULL;
}

void file_walk_close(struct file_walk *walk)
{
    if (walk->fts)
        fts_close(walk->fts);
    sl_map_free(&walk->entered);
    sl_arena_free(&walk->keys);
}
