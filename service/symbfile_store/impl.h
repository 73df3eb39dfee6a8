/* Shared by the files of the store of uploaded symbfiles. A "set" is all parts of one upload for an executable.
 *
 *     names.c    names of files and sets      receive.c  files for parts that arrive, limited by free space
 *     table.c    parts of an incomplete set   store.c    adding parts, publishing sets
 *     lock.c     one change at a time         sweep.c    removing incomplete sets that are too old
 *     info.c     description and ids          answers.c  cache of look-ups
 *     files.c    directories, failures        part.c     decoding a part
 *     health.c   does the store respond?      build.c    the index of a set */
#pragma once

#include <stdatomic.h>

#include "core/files.h"
#include "symbfile_store/symbfile_store.h"

/* sizes of arrays for texts, with the NUL: the path of a directory in the store; a file id in hexadecimal; the name of a part's file */
enum { STORE_PATH = 960, FILE_ID_HEX = 33, PART_NAME = 160 };

/* ---- names.c ---- */

/* Values of the configuration, atomic as pool threads read them. The directories never change while the process runs. */
extern struct store_limits {
    const char *_Atomic store_dir, *_Atomic shared_dir, *_Atomic cache_dir;
    _Atomic uint64_t min_free, max_size, max_set_bytes, max_records, staging_ttl_ns;
} store_limits;

/* Makes the path of the directory for temporary files; false if there is no store. */
bool store_tmp(char out[STORE_PATH]);

/* Makes the path of a scope's directory: <store>, or <store>/scopes/<scope>; false if there is no store. */
bool store_root(const char *scope, char out[STORE_PATH]);

/* Makes the path of an executable's directory, called `home`: <scope's directory>/<aa>/<file id>; false if there is no store. */
bool store_home(const struct symbfile_key *file_key, char out[STORE_PATH]);

/* Returns the sets in an executable's directory, without their parts; allocated by malloc. errno: 0, or why some or all are
 * missing. */
struct symbfile_set *store_sets(const char *home, size_t *count);

/* Sets set->have to the parts in the set's directory, ordered by number (free it). False, with no parts, when out of memory or the
 * directory cannot be read; errno tells which. */
bool store_load_parts(const char *home, struct symbfile_set *set);

/* Make and parse the name of a part's file, "<number>.<SHA-256>.<mode>.<records>.<inflated bytes>". */
void store_part_name(const struct symbfile_part_file *part, char out[PART_NAME]);
bool store_parse_part_name(const char *name, struct symbfile_part_file *part);

/* ---- store.c: sets with their parts; blocks, for the pool ---- */
/* True if the set's parts are pieces that form a symbfile only together. */
bool store_is_split(const struct symbfile_set *set);
/* True if two sets have the same parts, with the same contents. */
bool store_same_content(const struct symbfile_set *a, const struct symbfile_set *b);
/* Checks that the parts of a set, whose directory is below `home`, are valid together and within the limits; counts set->records. Reads the
 * parts only if they are pieces of one symbfile: others were checked when they arrived. */
bool store_check_set(const char *home, struct symbfile_set *set, struct symbfile_failure *failure);

/* A copy of a set as one file: its parts as they are stored, one after the other. */
struct set_pack {
    int fd; /* set by the caller: an empty file */
    uint64_t size;
    uint64_t *lengths; /* of the parts, in their order; the caller frees them */
    size_t count;
    bool is_split;
};
/* Copies the published set, whose directory is below `home`, to pack->fd. SL_NOT_FOUND if the set was removed meanwhile. */
enum sl_code store_pack_set(const char *home, const struct symbfile_set *set, struct set_pack *pack,
                            struct sl_error *error);
/* Sets `error` to the failure of an upload: its cause or, without one, its text. Returns failure->kind. */
enum sl_code store_failure_code(const struct symbfile_failure *failure, struct sl_error *error);

/* ---- build.c ---- */

/* Decodes the parts of a set one after another: each as a symbfile of its own or, with is_split, all as pieces of one symbfile.
 * Zero-initialise, then set the first three members. */
struct set_reader {
    uint64_t max_bytes;            /* limit of a symbfile after decompression */
    bool is_split;                 /* the parts are pieces of one symbfile */
    struct sl_symbfile_sink *sink; /* gets the records; NULL: they are only counted */
    uint64_t records;              /* number of records of all ended symbfiles */
    struct symbfile_part *part;    /* decoder of the current symbfile; NULL: none */
};
/* Decodes the next bytes of the current part. False with `failure` if they are invalid. */
bool set_reader_feed(struct set_reader *reader, struct sl_bytes bytes, struct symbfile_failure *failure);
/* Call it at the end of each part. False with `failure` if a symbfile ends there but is not complete. */
bool set_reader_end_part(struct set_reader *reader, bool is_last, struct symbfile_failure *failure);
void set_reader_close(struct set_reader *reader);

/* ---- health.c: does the store respond? ---- */

/* Records that the store responds (`trouble` is NULL), or why not; logs a change of that. Loop thread. */
void store_note(const char *trouble);
/* True if the store failed less than two seconds ago, so that another attempt is too early: sets `error` (may be NULL). Loop thread. */
bool store_is_down(struct sl_error *error);
/* False, with errno, if the directory of a store shared by nodes is unreadable or has lost its contents (not mounted). Pool. */
bool store_present(const char *store);

/* ---- receive.c: the measured size of the store, for its maximum ---- */
/* Adds the bytes of a new part to the size that was measured last. */
void store_grew(uint64_t bytes);
/* Lets the size be measured again, as files were removed. */
void store_shrank(void);

/* ---- table.c: the parts of an incomplete set by number, in a file, so that adding a part takes the same time for any number of parts.
 * Call the functions under the lock of the executable ---- */
struct part_table {
    int fd;
    uint64_t parts;    /* number of parts of the set when it is complete */
    uint64_t complete; /* all parts below this number exist */
};

/* Opens the table of the set, whose directory is below `home`; rebuilds a missing one from the names of the set's files. False with
 * errno. */
bool part_table_open(struct part_table *table, const char *home, struct symbfile_set *set);
void part_table_close(struct part_table *table);

/* Gets the entry of a part. False if there is no such part. */
bool part_table_get(const struct part_table *table, uint64_t number, struct symbfile_part_file *part);

/* Adds a part whose file is in place. False if it could not be written. */
bool part_table_put(struct part_table *table, const struct symbfile_part_file *part);

/* Closes and removes the table: before the set is published, or if it does not match the files. */
void part_table_remove(struct part_table *table, const char *home, const struct symbfile_set *set);

/* ---- lock.c ---- */

/* Locks an executable's directory `home` against other processes, without waiting; with `make` the directory is made if it is missing.
 * Returns the descriptor to close for unlocking; -1 with errno: EWOULDBLOCK if the lock is taken. Pool. */
int store_try_lock(const char *home, bool make);

/* ---- answers.c ---- */

/* Tells every process, by changing the file `generation` in the store, that cached answers may be outdated. False with errno. */
bool store_changed(const char *store);

struct upload_answer { /* the answer to a look-up of a module */
    bool found;        /* false: nothing was uploaded for it, and the rest is not set */
    struct symbfile_key file_key;
    struct symbfile_set sets[SYMBFILE_KINDS]; /* published, without their parts; generation 0 = none */
    bool has_base;
    uint64_t base;
    enum sl_arch arch;
};

/* True if the store was checked for changes within the last second; if not, call answers_refresh(). Loop thread, like the functions
 * below. */
bool answers_current(void);
/* Drops the cached answers if the store has changed. An error means that this is not known. */
enum sl_code answers_refresh(struct sl_error *error) SL_SUSPENDS;

/* Returns the cached answer for `key`; false if there is none. */
bool answers_get(struct sl_str key, struct upload_answer *answer);

uint64_t answers_epoch(void); /* get it before a search, for answers_put() */
/* Caches the result of a search, unless the store has changed since the search began: answers_epoch() returned `epoch` then. */
void answers_put(struct sl_str key, const struct upload_answer *answer, uint64_t epoch);

/* ---- files.c ---- */
/* Lets an NFS client see the current contents of the directories above `path`, if nodes share the store. Without that it may report for a
 * minute, from its cache, that a file does not exist. */
void store_refresh(const char *path);
void store_remove_tree(const char *path);
/* Returns the disk space of all files below a directory, in bytes. */
uint64_t store_tree_bytes(const char *path);

/* Converts the errno of reading a directory. SL_OK if that is 0, or the directory does not exist: then it has no entries. SL_BUSY (out of
 * memory or descriptors) or SL_DOWNLOAD_ERROR: what is in it is not known. */
enum sl_code store_code(int number);

/* Sets the failure by errno; its cause is "<what>: <text of errno>". Always returns false. */
bool store_fail(struct symbfile_failure *failure, const char *what);

/* ---- info.c ---- */
enum { MAX_ALIASES = 64 }; /* maximum number of executables with one id */
void info_parse(struct sl_str text, struct symbfile_info *info);
void info_format(const struct symbfile_info *info, struct sl_buf *json);
/* Merges the description `news` of a new upload into `info`; true if that changes something. */
bool info_merge(struct symbfile_info *info, const struct symbfile_info *news);
bool info_id_is_safe(const char *id); /* true if it can be a component of a path */
/* Reads the stored description; empty if there is none. False, with errno, if memory or descriptors were missing to read it. */
bool info_read(const char *home, struct symbfile_info *info);
/* Merges `news` into the stored description of an executable, and makes the files by-id/<id>/<file id> below `root` for its ids. Sets
 * `*changed` to true if that changes something. False with errno. */
bool info_update(const char *root, const char *home, const struct sl_file_id *file_id, const struct symbfile_info *news,
                 bool *changed);
