/* Directories that a test makes for itself. */
#pragma once

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"

static inline int directory_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

/* A file of these bytes, in place of one that is there. */
static inline bool directory_write(const char *path, const void *data, size_t size)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    bool good = fd >= 0 && sl_write_all(fd, (struct sl_bytes){data, size});
    return fd >= 0 && close(fd) == 0 && good;
}

/* Removes it with all that is in it; 0 when it is gone. */
static inline int directory_remove(const char *path)
{
    return nftw(path, directory_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
