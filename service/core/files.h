/* Files and directories of the service's own making, and directories as somebody else may have left them: those are never
 * entered through a symbolic link, and never deeper than told. All block; any thread. What fails leaves the reason in errno. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* ---- making ---- */

/* What a crash of the machine must not take away: nothing; that the contents belong to the name, once that is there; contents and
 * name, before an upload is acknowledged. */
enum files_sync { FILES_UNSYNCED, FILES_CONTENTS, FILES_DURABLE };

/* Makes the directory with its parents; true also when it is there. `mode` as for mkdir(2). FILES_DURABLE: those that are made are
 * synced. */
bool files_make_directory(const char *path, mode_t mode, enum files_sync sync);

/* The same, unsynced, of the directory that `path` lies in. */
bool files_make_parents(const char *path, mode_t mode);

/* For names that have to differ: not for secrets. */
uint64_t files_random(void);

/* A new file "<directory>/<prefix><16 hex digits>", open for reading and writing (0640); `path` of `size` bytes gets its name. The
 * directory is made with the mode `make` when it is missing; 0: that is a failure. -1 on failure; ENAMETOOLONG. */
int files_temp(const char *directory, const char *prefix, mode_t make, char *path, size_t size);

/* ---- publishing ---- */

/* Renames the file or directory `from` to `to`, whose directory is made (0750) when it is missing, also while somebody else removes
 * empty ones. `fd` is the file's, which is synced first as `sync` says; -1: its contents are synced already. */
bool files_publish(int fd, const char *from, const char *to, enum files_sync sync);

/* Syncs a directory; true also on a file system that cannot. */
bool files_sync_directory(const char *path);

/* ---- reading directories ---- */

/* Opens the directory `name` below the directory `at` (openat(2)), unless it is a symbolic link. NULL: it cannot be read. The
 * caller ends it with closedir(3). */
DIR *dir_open(int at, const char *name);

/* The same, of a descriptor of a directory, or -1. Takes the descriptor over, whatever comes of it. */
DIR *dir_of(int fd);

/* The next entry that is neither "." nor "..", and what it is itself, should `st` be wanted: entries that cannot be looked at
 * are passed by. NULL at the end, and for a `dir` of NULL. */
struct dirent *dir_next(DIR *dir, struct stat *st);

/* ---- walking ---- */

struct dir_entry {
    int at; /* the directory that it is in */
    const char *name;
    const struct stat *st;          /* not of what a link leads to; NULL: it cannot be looked at */
    const struct dir_entry *parent; /* the directory that it is in; NULL: the one where the walk began */
    unsigned depth;                 /* 0: of the directory where the walk began */
    bool emptied;                   /* a directory in which nothing is left, as far as `visit` said */
};

struct dir_walk {
    unsigned depth; /* that directories lie within directories and are entered */
    /* Called for every entry; for a directory after what is in it. True: it is gone now. */
    bool (*visit)(void *arg, const struct dir_entry *entry);
    /* What cannot be looked at or opened: errno tells, and it is not visited, or was not entered. NULL: it is passed by. */
    void (*failed)(void *arg, const struct dir_entry *entry);
    void *arg;
};

/* Walks the directory `name` below `at`. True when nothing is left in it. */
bool dir_walk(const struct dir_walk *walk, int at, const char *name);

/* Removes `name` below `at` with what is in it, of directories within directories `depth` at the most; what cannot be removed
 * stays. */
void dir_remove(int at, const char *name, unsigned depth);

/* ---- change counters ----
 *
 * A file whose time tells processes that read it now and then that something has changed. */
struct change_counter { /* zeros: there is no file */
    uint64_t inode;
    int64_t ns; /* the file's time */
};

/* `remote`: on a file server, which is asked for what is opened; else it may not be for a minute. */
struct change_counter change_counter_read(const char *path, bool remote);

/* Sets a time that the file never had: the kernel's own is some milliseconds coarse, clocks go back, and two processes may do this at
 * once. `*before` is what it was, `*made` its time now. `exclusive`: EWOULDBLOCK while another process does this, so that
 * nobody's change lies between the two. */
bool change_counter_bump(const char *path, bool exclusive, struct change_counter *before, int64_t *made);
