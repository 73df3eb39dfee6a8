/* Files and directories that the service makes, and walks over directories that others may have changed: a walk never follows
 * symbolic links and has a depth limit. All functions block; any thread. On failure errno says why. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* ---- making ---- */

/* How much of a new file survives a crash of the machine. FILES_UNSYNCED: nothing is guaranteed; FILES_CONTENTS: if the name survives, so
 * do the contents; FILES_DURABLE: name and contents, as needed before an upload is acknowledged. */
enum files_sync { FILES_UNSYNCED, FILES_CONTENTS, FILES_DURABLE };

/* Makes the directory and its parents; true also if it exists. `mode` as for mkdir(2). With FILES_DURABLE new directories are
 * synced. */
bool files_make_directory(const char *path, mode_t mode, enum files_sync sync);

/* Makes the directory that `path` lies in, unsynced. */
bool files_make_parents(const char *path, mode_t mode);

/* Returns a random number for unique names; not for secrets. */
uint64_t files_random(void);

/* Creates a file "<directory>/<prefix><16 hex digits>" (mode 0640), writes its name to `path` of `size` bytes and returns a descriptor
 * for reading and writing. A missing directory is made with mode `make`, unless that is 0. -1 on failure; ENAMETOOLONG if `path` is too
 * small. */
int files_temp(const char *directory, const char *prefix, mode_t make, char *path, size_t size);

/* Returns the mtime in nanoseconds since the epoch. */
int64_t files_mtime_ns(const struct stat *st);

/* ---- publishing ---- */

/* Renames the file or directory `from` to `to`. Makes the directory of `to` (0750) if it is missing, and once more if another process finds
 * it empty and removes it meanwhile. `fd` is the open file, which is synced first according to `sync`; -1: it is synced already. */
bool files_publish(int fd, const char *from, const char *to, enum files_sync sync);

/* Syncs a directory; true also if the file system does not support it. */
bool files_sync_directory(const char *path);

/* ---- opening a file again ---- */

/* Says which file was mapped into memory, so that it can be opened again and its descriptor passed to another process. Only a file without
 * a name keeps a descriptor open for this: descriptors are limited. */
struct file_place {
    dev_t device;
    ino_t inode;
    off_t size;
    int fd; /* of a file without a name: open for reading; -1: the file is opened by `path` */
    char path[];
};

/* Describes the open file `fd`, whose name is `path`. NULL when out of memory, or if fstat(2) fails. */
struct file_place *file_place_new(const char *path, int fd);

/* Describes the open file `fd` without a name, by a further descriptor of it that is open until file_place_free. NULL when out of
 * memory or descriptors, and when an eighth of the descriptors that the process may have are used for such files. */
struct file_place *file_place_new_unnamed(int fd);

void file_place_free(struct file_place *place); /* NULL is allowed */

/* Returns a new read-only descriptor of the file, without following a symbolic link. -1 with errno; ESTALE if the name belongs to another
 * file by now or the size has changed. The mtime is not compared: the cache sets it when it uses an entry. */
int file_place_open(const struct file_place *place);

/* ---- reading directories ---- */

/* Opens the directory `name` below the directory `at` (openat(2)); fails if it is a symbolic link. NULL on failure. Close it
 * with closedir(3). */
DIR *dir_open(int at, const char *name);

/* Opens a directory by its descriptor, or NULL if `fd` is -1. Takes over the descriptor, also on failure. */
DIR *open_directory_of_fd(int fd);

/* Returns the next entry other than "." and "..". If `st` is not NULL, fills it in as lstat(2), and skips entries for which that fails.
 * NULL with errno 0 at the end, and if `dir` is NULL; NULL with errno set if reading failed: then entries may be missing. */
struct dirent *dir_next(DIR *dir, struct stat *st);

/* ---- walking ---- */

struct dir_entry {
    int at; /* descriptor of the directory that contains the entry */
    const char *name;
    const struct stat *st;          /* as lstat(2) sets it; NULL: the entry cannot be examined */
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
    /* Called with errno set for an entry that cannot be examined (and so is not visited), a directory that cannot be opened (and so is not
     * entered), and one whose list of entries could not be read to its end. NULL: these are skipped silently. */
    void (*failed)(void *arg, const struct dir_entry *entry);
    void *arg;
};

/* Walks the directory `name` below `at`. True if it is empty afterwards. */
bool dir_walk(const struct dir_walk *walk, int at, const char *name);

/* Removes `name` below `at` with its contents, at most `depth` directories deep; skips what cannot be removed. */
void dir_remove(int at, const char *name, unsigned depth);

/* ---- change counters ----
 *
 * A change counter is a file. A process sets its mtime anew whenever it has changed data that other processes use too; these compare
 * the mtime from time to time, to learn of the change. */
struct change_counter { /* all zero: there is no file */
    uint64_t inode;
    int64_t ns; /* the file's mtime, since the epoch */
};

/* Reads the counter. `remote`: the file is on a file server; opens it then, as attributes of a file that is not opened may be a minute
 * old. */
struct change_counter change_counter_read(const char *path, bool remote);

/* Gives the file, which is created if missing, an mtime that it never had. Not simply by touching it: the kernel's clock has a resolution
 * of some milliseconds, clocks go back, and two processes may do this at once. Sets `*before` to the counter before and `*made` to the new
 * mtime. `exclusive`: fails with EWOULDBLOCK while another process does this, so that no change lies between `*before` and `*made`. */
bool change_counter_bump(const char *path, bool exclusive, struct change_counter *before, int64_t *made);
