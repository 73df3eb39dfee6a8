/* Directories that a test makes for itself. */
#pragma once

#include <ftw.h>
#include <stdio.h>

static inline int directory_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

/* Removes it with all that is in it; 0 when it is gone. */
static inline int directory_remove(const char *path)
{
    return nftw(path, directory_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
