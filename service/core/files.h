/* Files and directories that the service makes, and walks over directories that others may have changed: a walk never follows
 * symbolic links and has a depth limit. All functions block; any thread. On failure errno says why. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* ---- making ---- */

/* What survives a crash of the machine: nothing is guaranteed; the contents, once the name exists; contents and name, as needed
 * before an upload is acknowledged. */
enum files_sync { FILES_UNSYNCED, FILES_CONTENTS, FILES_DURABLE };

/* Makes the directory and its parents; true also if it exists. `mode` as for mkdir(2). With FILES_DURABLE new directories are
 * synced. */
bool files_make_directory(const char *path, mode_t mode, enum files_sync sync);

/* Makes the directory that `path` lies in, unsynced. */
bool files_make_parents(const char *path, mode_t mode);

/* Returns a random number for unique names; not for secrets. */
uint64_t files_random(void);

/* Creates a file "<directory>/<prefix><16 hex digits>", open for reading and writing (0640); writes its name to `path` of
 * `size` bytes. A missing directory is made with mode `make`; 0: do not make it, fail. -1 on failure; ENAMETOOLONG. */
int files_temp(const char *directory, const char *prefix, mode_t make, char *path, size_t size);

/* Returns the mtime in nanoseconds since the epoch. */
int64_t files_mtime_ns(const struct stat *st);

/* ---- publishing ---- */

/* Renames the file or directory `from` to `to`. Makes the directory of `to` (0750) if it is missing, also while another process
 * removes empty ones. `fd` is the open file, which is synced first according to `sync`; -1: its contents are synced already. */
bool files_publish(int fd, const char *from, const char *to, enum files_sync sync);

/* Syncs a directory; true also if the file system does not support it. */
bool files_sync_directory(const char *path);

/* ---- opening a file again ---- */

/* Which file a mapping was made of, so that another process can be given a descriptor of it. A file with a name is opened again by
 * its path: its descriptor would count against the limit of open files. */
struct file_place {
    dev_t device;
    ino_t inode;
    off_t size;
    int fd; /* open for reading, of a file without a name; -1 = `path` is opened */
    char path[];
};

/* Describes the open file `fd`, whose name is `path`. NULL when out of memory. */
struct file_place *file_place_new(const char *path, int fd);

/* Describes the open file `fd` without a name, by a further descriptor of it that is open until file_place_free. NULL when out of
 * memory or descriptors, and when an eighth of the descriptors that the process may have are used for such files. */
struct file_place *file_place_new_unnamed(int fd);

void file_place_free(struct file_place *place); /* NULL is allowed */

/* Returns a new read-only descriptor of the file, without following a symbolic link. -1 with errno, ESTALE if the name belongs to another file by now
 * or the size has changed. The mtime may differ: the cache sets it when it uses an entry. */
int file_place_open(const struct file_place *place);

/* ---- reading directories ---- */

/* Opens the directory `name` below the directory `at` (openat(2)); fails if it is a symbolic link. NULL on failure. Close it
 * with closedir(3). */
DIR *dir_open(int at, const char *name);

/* Opens a directory by its descriptor, or NULL if `fd` is -1. Takes over the descriptor, also on failure. */
DIR *open_directory_of_fd(int fd);

/* Returns the next entry but "." and "..", and its lstat(2) in `st` unless that is NULL; entries that cannot be examined are
 * skipped. NULL with errno 0 at the end, and if `dir` is NULL; NULL with errno set if reading failed: then entries may be missing. */
struct dirent *dir_next(DIR *dir, struct stat *st);

/* ---- walking ---- */

struct dir_entry {
    int at; /* the directory that it is in */
    const char *name;
    const struct stat *st;          /* as by lstat(2); NULL: it cannot be examined */
    const struct dir_entry *parent; /* the containing directory; NULL: the one where the walk began */
    unsigned depth;                 /* 0: directly in the directory where the walk began */
    bool emptied;                   /* a directory from which `visit` has removed everything */
};

struct dir_walk {
    unsigned depth; /* nesting limit: deeper directories are not entered */
    /* Called for every entry; for a directory after its contents. Returns true if the entry has been removed. */
    bool (*visit)(void *arg, const struct dir_entry *entry);
    /* Called for a directory before its contents; false: it is not entered. NULL: all are entered. */
    bool (*enter)(void *arg, const struct dir_entry *entry);
    /* Called with errno for an entry that cannot be examined (it is not visited), or opened (it is not entered), or of whose
     * entries not all could be read. NULL: skip it silently. */
    void (*failed)(void *arg, const struct dir_entry *entry);
    void *arg;
};

/* Walks the directory `name` below `at`. True if it is empty afterwards. */
bool dir_walk(const struct dir_walk *walk, int at, const char *name);

/* Removes `name` below `at` with its contents, at most `depth` directories deep; skips what cannot be removed. */
void dir_remove(int at, const char *name, unsigned depth);

/* ---- change counters ----
 *
 * A file whose mtime changes whenever something has changed: other processes compare it from time to time. */
struct change_counter { /* all zero: there is no file */
    uint64_t inode;
    int64_t ns; /* the file's mtime, since the epoch */
};

/* Reads the counter. `remote`: the file is on a file server; opens it, as attributes alone may be cached for a minute. */
struct change_counter change_counter_read(const char *path, bool remote);

/* Sets an mtime that the file never had: the kernel's own has a resolution of some milliseconds, clocks go back, and two
 * processes may do this at once. Sets `*before` to the old and `*made` to the new mtime. `exclusive`: fails with EWOULDBLOCK
 * while another process does this, so that no other change lies between the two. */
bool change_counter_bump(const char *path, bool exclusive, struct change_counter *before, int64_t *made);
