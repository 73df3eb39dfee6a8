/* Shared by the files of the symbfile store.
 *
 *     names.c    names and listings      receive.c  space for parts
 *     table.c    parts of a staged set   store.c    staging, publishing
 *     lock.c     one change at a time    sweep.c    cleaning
 *     info.c     ids and associations    answers.c  cached look-ups
 *     files.c    directories             part.c     decoding a part */
#pragma once

#include <stdatomic.h>

#include "core/files.h"
#include "symbfile_store/symbfile_store.h"

enum { STORE_PATH = 960, FILE_ID_HEX = 33, PART_NAME = 160 };

/* ---- names.c ---- */

/* From the configuration, for the pool; the directories are those of the start. */
extern struct store_limits {
    const char *_Atomic store_dir, *_Atomic shared_dir, *_Atomic cache_dir;
    _Atomic uint64_t min_free, max_size, max_set_bytes, max_records, staging_ttl_ns;
} store_limits;

/* Directory for files outside of sets; false if there is no store. */
bool store_tmp(char out[STORE_PATH]);

/* <store>, or <store>/scopes/<scope>; false if there is no store. */
bool store_root(const char *scope, char out[STORE_PATH]);

/* <root>/<aa>/<file id>; false if there is no store. */
bool store_home(const struct symbfile_key *file_key, char out[STORE_PATH]);

/* Returns the sets in an executable's directory, without their parts; allocated by malloc. errno: 0, or why some or all are
 * missing. */
struct symbfile_set *store_sets(const char *home, size_t *count);

/* Fills in set->have, ordered by number (free it). False, with none, when out of memory or the directory is gone. */
bool store_load_parts(const char *home, struct symbfile_set *set);

/* "<number>.<SHA-256>.<mode>.<records>.<inflated>" */
void store_part_name(const struct symbfile_part_file *part, char out[PART_NAME]);
bool store_parse_part_name(const char *name, struct symbfile_part_file *part);

/* ---- store.c: sets with their parts; blocks, for the pool ---- */
/* true if its parts are pieces that form a symbfile only together */
bool store_is_split(const struct symbfile_set *set);
bool store_same_content(const struct symbfile_set *a, const struct symbfile_set *b);
/* Validates the parts of a set in its directory below `home`, and counts its records. Parts that are complete symbfiles are not
 * read. */
bool store_check_set(const char *home, struct symbfile_set *set, struct symbfile_failure *failure);

/* A copy of a set: its parts as they are stored, one after the other. */
struct set_pack {
    int fd; /* set by the caller: an empty file */
    uint64_t size;
    uint64_t *lengths; /* of the parts, in their order; the caller frees them */
    size_t count;
    bool is_split;
};
/* Copies the published set below `home`. SL_NOT_FOUND if the set has been removed. */
enum sl_code store_pack_set(const char *home, const struct symbfile_set *set, struct set_pack *pack,
                            struct sl_error *error);
/* Converts the failure of an upload to a code and message. */
enum sl_code store_failure_code(const struct symbfile_failure *failure, struct sl_error *error);

/* ---- build.c ---- */

/* Reads the parts of a set one after another: each by itself, or the pieces as the one file that they form. Zero-initialise, then
 * set the first three members. */
struct set_reader {
    uint64_t max_bytes;            /* of a decompressed part */
    bool is_split;                 /* the parts are pieces of one file */
    struct sl_symbfile_sink *sink; /* NULL: records are only counted */
    uint64_t records;
    struct symbfile_part *part;
};
bool set_reader_feed(struct set_reader *reader, struct sl_bytes bytes, struct symbfile_failure *failure);
bool set_reader_end_part(struct set_reader *reader, bool is_last, struct symbfile_failure *failure);
void set_reader_close(struct set_reader *reader);

/* ---- health.c: does the store answer? ---- */

/* Records that it answers (NULL), or why not; logs changes of that. Loop thread. */
void store_note(const char *trouble);
/* True if it failed a moment ago, so that a retry is too early: sets `error` (may be NULL). Loop thread. */
bool store_is_down(struct sl_error *error);
/* False, with errno, if the directory of a store shared by nodes is unreadable or has lost its contents (not mounted). Pool. */
bool store_present(const char *store);

/* ---- receive.c ---- */
void store_grew(uint64_t bytes);
void store_shrank(void);

/* ---- table.c: the parts of a staged set by number, so that adding one costs the same for any number of parts. Under the lock
 * of the executable ---- */
struct part_table {
    int fd;
    uint64_t parts;    /* of the set */
    uint64_t complete; /* all parts below this number exist */
};

/* Opens the table of the set in `dir`; rebuilds a missing one from the set's files. False: errno. */
bool part_table_open(struct part_table *table, const char *home, struct symbfile_set *set);
void part_table_close(struct part_table *table);

/* False if there is no such part. */
bool part_table_get(const struct part_table *table, uint64_t number, struct symbfile_part_file *part);

/* Adds a part whose file is in place. False if it could not be written. */
bool part_table_put(struct part_table *table, const struct symbfile_part_file *part);

/* Removes the table: before the set is published, or if it does not match the files. */
void part_table_remove(struct part_table *table, const char *home, const struct symbfile_set *set);

/* ---- lock.c ---- */

/* Takes the lock without waiting, for the pool; `make` makes the executable's directory. Returns the descriptor; -1 with errno
 * EWOULDBLOCK if it is taken. */
int store_try_lock(const char *home, bool make);

/* ---- answers.c ---- */

/* Announces to every process, by the file `generation` in the store, that answers have changed. False: errno. */
bool store_changed(const char *store);

struct upload_answer {
    bool found;
    struct symbfile_key file_key;
    struct symbfile_set sets[SYMBFILE_KINDS]; /* published, without their parts; generation 0 = none */
    bool has_base;
    uint64_t base;
    enum sl_arch arch;
};

/* True if the cached answers are at most a second old; if not, call answers_refresh to revalidate them. Loop thread, like all of
 * these. */
bool answers_current(void);
enum sl_code answers_refresh(struct sl_error *error) SL_SUSPENDS;

/* Returns the cached answer for `key`; false if there is none. */
bool answers_get(struct sl_str key, struct upload_answer *answer);

/* Caches the result of a search that began at `epoch` (answers_epoch), unless something has changed since. */
uint64_t answers_epoch(void);
void answers_put(struct sl_str key, const struct upload_answer *answer, uint64_t epoch);

/* ---- files.c ---- */
/* Opens the directories above `path`, if nodes share the store. Without that, an NFS client may report for a minute, from
 * its cache, that the file does not exist. */
void store_refresh(const char *path);
void store_remove_tree(const char *path);
uint64_t store_tree_bytes(const char *path);

/* Result for a directory that cannot be read: SL_OK, it does not exist; SL_BUSY, or SL_DOWNLOAD_ERROR: unknown. */
enum sl_code store_code(int number);

/* Sets the failure from errno; always false. */
bool store_fail(struct symbfile_failure *failure, const char *what);

/* ---- info.c ---- */
enum { MAX_ALIASES = 64 }; /* maximum number of executables with one id */
void info_parse(struct sl_str text, struct symbfile_info *info);
void info_format(const struct symbfile_info *info, struct sl_buf *json);
/* Merges the description of a new upload; true if it changes something. */
bool info_merge(struct symbfile_info *info, const struct symbfile_info *news);
bool info_id_is_safe(const char *id); /* true if it can be a component of a path */
/* Reads the stored description; empty if there is none. False, with errno, if memory or descriptors were missing to read it. */
bool info_read(const char *home, struct symbfile_info *info);
/* Merges `news` into the stored description, and adds the file's ids below `root`; sets `*changed` if that changes something. */
bool info_update(const char *root, const char *home, const struct sl_file_id *file_id, const struct symbfile_info *news,
                 bool *changed);
