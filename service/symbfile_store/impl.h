/* What the files of the symbfile store share.
 *
 *     names.c    names and listings      receive.c  room for parts
 *     table.c    parts that are there    store.c    staging, publishing
 *     lock.c     one change at a time    sweep.c    keeping clean
 *     info.c     ids and the way back    answers.c  what look-ups found
 *     files.c    directories             part.c     decoding a part */
#pragma once

#include <stdatomic.h>

#include "core/files.h"
#include "symbfile_store/symbfile_store.h"

enum { STORE_PATH = 960, FILE_ID_HEX = 33, PART_NAME = 160 };

/* ---- names.c ---- */

/* As configured, for the pool; the directories stay what they were at start. */
extern struct store_limits {
    const char *_Atomic store_dir, *_Atomic shared_dir, *_Atomic cache_dir;
    _Atomic uint64_t min_free, max_size, max_set_bytes, max_records, staging_ttl_ns;
} store_limits;

/* Where files are that belong to no set; false when there is no store. */
bool store_tmp(char out[STORE_PATH]);

/* <store>, or <store>/scopes/<scope>; false when there is no store. */
bool store_root(const char *scope, char out[STORE_PATH]);

/* <root>/<aa>/<file id>; false when there is no store. */
bool store_home(const struct symbfile_place *place, char out[STORE_PATH]);

/* The sets below an executable's directory, without their parts; malloc'ed. errno: 0, or why there are none or not all. */
struct symbfile_set *store_sets(const char *home, size_t *count);

/* Fills in set->have, by number (to be freed). False, with none, when out of memory or the directory is gone. */
bool store_load_parts(const char *home, struct symbfile_set *set);

/* "<number>.<SHA-256>.<mode>.<records>.<inflated>" */
void store_part_name(const struct symbfile_part_file *part, char out[PART_NAME]);
bool store_parse_part_name(const char *name, struct symbfile_part_file *part);

/* ---- store.c: sets with their parts; what blocks, for the pool ---- */
bool store_is_split(const struct symbfile_set *set); /* into pieces that are symbfiles only together */
bool store_same_content(const struct symbfile_set *a, const struct symbfile_set *b);
/* Whether the parts, below `home` in the set's directory, are what a set may be; counts its records. Of parts that are symbfiles
 * themselves nothing is read. */
bool store_check_set(const char *home, struct symbfile_set *set, struct symbfile_failure *failure);
/* As symbfile_store_read, of a set below `home`. */
enum sl_code store_read_at(const char *home, const struct symbfile_set *set, struct sl_symbfile_sink *sink,
                           struct sl_error *error);

/* ---- health.c: whether the store answers ---- */

/* Notes that it does (NULL), or why not; the log tells when that changes. Loop thread. */
void store_note(const char *trouble);
/* Whether it failed a moment ago, so that asking again is no use yet: `error` (may be NULL) then says why. Loop thread. */
bool store_is_down(struct sl_error *error);
/* Of a directory that nodes share: whether it is still what it was. False: errno. Pool. */
bool store_present(const char *store);

/* ---- receive.c ---- */
void store_grew(uint64_t bytes);
void store_shrank(void);

/* ---- table.c: the parts of a staged set by number, so that adding one costs the same however many there are.
 * Under the lock of the executable ---- */
struct part_table {
    int fd;
    uint64_t parts;    /* of the set */
    uint64_t complete; /* all parts before this one are there */
};

/* The table of the set in `dir`; one that is missing is made of the set's files. False: errno tells. */
bool part_table_open(struct part_table *table, const char *home, struct symbfile_set *set);
void part_table_close(struct part_table *table);

/* False when that part is not there. */
bool part_table_get(const struct part_table *table, uint64_t number, struct symbfile_part_file *part);

/* Notes a part whose file is in place. False when it could not be written. */
bool part_table_put(struct part_table *table, const struct symbfile_part_file *part);

/* Takes the table away: of a set that is to be published, or whose files tell another story. */
void part_table_remove(struct part_table *table, const char *home, const struct symbfile_set *set);

/* ---- lock.c ---- */

/* Without waiting, for the pool; `make` makes the executable's directory. The descriptor; -1 with errno EWOULDBLOCK when
 * somebody else has it. */
int store_try_lock(const char *home, bool make);

/* ---- answers.c ---- */

/* Tells every process, through the file `generation` in the store, that answers have changed. False: errno tells. */
bool store_changed(const char *store);

struct upload_answer {
    bool found;
    struct symbfile_place place;
    struct symbfile_set sets[SYMBFILE_KINDS]; /* published, without their parts; generation 0 = none */
    bool has_base;
    uint64_t base;
    enum sl_arch arch;
};

/* Whether what is remembered is at most a second behind; if not, answers_look makes it so. Loop thread, as all of these. */
bool answers_current(void);
enum sl_code answers_look(struct sl_error *error) SL_SUSPENDS;

/* What is remembered of the question `key`; false when nothing is. */
bool answers_get(struct sl_str key, struct upload_answer *answer);

/* Remembers what was found by a search that began at `epoch` (answers_epoch), unless something has changed since. */
uint64_t answers_epoch(void);
void answers_put(struct sl_str key, const struct upload_answer *answer, uint64_t epoch);

/* ---- files.c ---- */
/* Opens what a directory of the store lies in, when nodes share that: NFS knows for a minute what was not there, unless the
 * directories above are opened. */
void store_refresh(const char *path);
void store_remove_tree(const char *path);
uint64_t store_tree_bytes(const char *path);

/* What it means for a question that a directory cannot be read: SL_OK, nothing is there; SL_BUSY, or SL_DOWNLOAD_ERROR: who knows. */
enum sl_code store_code(int number);

/* Fails with what errno says; always false. */
bool store_fail(struct symbfile_failure *failure, const char *what);

/* ---- info.c ---- */
enum { MAX_ALIASES = 64 }; /* executables with one id that are looked at */
void info_parse(struct sl_str text, struct symbfile_info *info);
void info_format(const struct symbfile_info *info, struct sl_buf *json);
/* What an upload says of the executable counts from now on; true when it is news. */
bool info_merge(struct symbfile_info *info, const struct symbfile_info *news);
bool info_id_is_safe(const char *id); /* as a part of a path */
void info_read(const char *home, struct symbfile_info *info);
/* Writes what is known after the upload, and the file's associations below `root`; `*changed` is set when that is news. */
bool info_update(const char *root, const char *home, const struct sl_file_id *file_id, const struct symbfile_info *news,
                 bool *changed);
