/* Visits the regular files at and below a path, each directory's in the order of their names. Symbolic links are followed. A directory to
 * which several paths lead is entered once, so that cycles of links end. */
#pragma once

#include <fts.h>

#include "base/arena.h"
#include "base/map.h"

struct file_walk {
    FTS *fts; /* NULL: the path does not exist, or out of memory */
    struct sl_map entered;
    struct sl_arena keys; /* keys of `entered`: device and inode */
};

void file_walk_open(struct file_walk *walk, const char *path);
/* Returns the next regular file, with its path (fts_path) and stat (fts_statp; of a link's target); NULL at the end. Unreadable files and
 * directories are left out. Valid until the next call. */
const FTSENT *file_walk_next(struct file_walk *walk);
void file_walk_close(struct file_walk *walk);

/* Compares two entries by name. To be passed to fts_open by walks that do not use this struct because they do not follow links. */
int file_walk_by_name(const FTSENT **a, const FTSENT **b);
