/* The files at and below a path, by name, as the commands look through directories of symbols, scripts and mappings. Symbolic links to
 * files and directories are followed; each directory is entered once, by the first path to it, so that cycles and links among
 * directories end. */
#pragma once

#include <fts.h>

#include "base/arena.h"
#include "base/map.h"

struct file_walk {
    FTS *fts; /* NULL: the path is not there, or out of memory */
    struct sl_map entered;
    struct sl_arena keys; /* of these: device and inode */
};

void file_walk_open(struct file_walk *walk, const char *path);
/* The next regular file, with its path and stat (of what a link leads to); NULL at the end. It lives until the next call. */
const FTSENT *file_walk_next(struct file_walk *walk);
void file_walk_close(struct file_walk *walk);

/* The order of walks that do not follow links: of fts_open. */
int file_walk_by_name(const FTSENT **a, const FTSENT **b);
