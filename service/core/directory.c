/* Directories as somebody else may have left them. */
#include "core/directory.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

DIR *dir_of(int fd)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0)
        close(fd);
    return dir;
}

DIR *dir_open(int at, const char *name)
{
    return dir_of(openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

struct dirent *dir_next(DIR *dir, struct stat *st)
{
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            (!st || fstatat(dirfd(dir), e->d_name, st, AT_SYMLINK_NOFOLLOW) == 0))
            return e;
    return NULL;
}

void dir_remove(int at, const char *name, unsigned depth)
{
    DIR *dir = dir_open(at, name);
    if (!dir)
        return;
    for (struct dirent *e; (e = dir_next(dir, NULL));)
        if (unlinkat(dirfd(dir), e->d_name, 0) != 0 && depth)
            dir_remove(dirfd(dir), e->d_name, depth - 1);
    closedir(dir);
    unlinkat(at, name, AT_REMOVEDIR);
}
