/* Directories as somebody else may have left them: never through a symbolic link, never deeper than told. All block; any
 * thread. */
#pragma once

#include <dirent.h>
#include <sys/stat.h>

/* Opens the directory `name` below the directory `at` (openat(2)), unless it is a symbolic link. NULL: it cannot be read. The
 * caller ends it with closedir(3). */
DIR *dir_open(int at, const char *name);

/* The same, of a descriptor of a directory, or -1. Takes the descriptor over, whatever comes of it. */
DIR *dir_of(int fd);

/* The next entry that is neither "." nor "..", and what it is itself, should `st` be wanted: entries that cannot be looked at
 * are passed by. NULL at the end, and for a `dir` of NULL. */
struct dirent *dir_next(DIR *dir, struct stat *st);

/* Removes `name` below `at` with what is in it, of directories within directories `depth` at the most; what cannot be removed
 * stays. */
void dir_remove(int at, const char *name, unsigned depth);
