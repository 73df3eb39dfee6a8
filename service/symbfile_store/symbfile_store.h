/* Uploaded symbfiles: parts as they arrive, the store that keeps them, and the index that answers look-ups.
 *
 * The store is data, not cache. It is a directory (`symbfile.store_dir`, or of several nodes `symbfile.store.filesystem.path`), or a
 * bucket (bucket.h). Below the directory:
 *
 *     <aa>/<file id>/info                                    what the uploads said about the executable (JSON)
 *                   /lock                                    flock(2)ed while a set changes
 *                   /staging-<kind>-<parts>-<upload id>/     a set on its way, with a `table` of its parts
 *                   /<kind>-<generation>-<parts>-<records>/  a published set; the highest generation counts
 *     by-id/<build id or debug id>/<file id>                 which executables have an id
 *     scopes/<scope>/                                        <aa>/ and by-id/ of uploads that belong to a scope
 *     generation                                             its time changes with what can be found
 *     tmp/                                                   parts that are being received
 *
 * A part is a file `<number>.<SHA-256>.<mode>.<records>.<inflated bytes>`, so that one rename makes it a part, and one
 * rename of a directory publishes a set. Several processes and nodes may share a store. */
#pragma once

#include "cache/cache.h"
#include "config/config.h"
#include "origin/origin.h"
#include "symbfile/symbfile.h"

enum symbfile_kind { SYMBFILE_RANGES, SYMBFILE_RETURNPADS, SYMBFILE_KINDS };
extern const char *const symbfile_kind_names[SYMBFILE_KINDS]; /* "ranges", "returnpads" */

/* What went wrong with an upload: the code of the protocol and a sentence for humans. */
struct symbfile_failure {
    int status;        /* HTTP; 0 = nothing went wrong */
    enum sl_code kind; /* SL_BUSY, SL_NOT_FOUND, SL_INTERNAL, SL_UNSUPPORTED; SL_MALFORMED: what was sent is at fault */
    char code[8];
    char text[240];
    char cause[240]; /* for the log: may name paths */
};
void symbfile_fail(struct symbfile_failure *failure, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* What says nothing about the upload: 503 when the code is SL_BUSY, else 500. `cause` goes to the log. */
void symbfile_fail_by(struct symbfile_failure *failure, enum sl_code code, const char *cause);

/* The store does not answer: 503, which clients try again after. */
void symbfile_fail_unreachable(struct symbfile_failure *failure, const char *cause);

/* An executable's uploads that belong to one scope. */
enum { SYMBFILE_SCOPE = 36 };
struct symbfile_place {
    struct sl_file_id file_id;
    char scope[SYMBFILE_SCOPE]; /* as symbfile_scope has it; zeros behind it */
};

/* What the store calls a scope: "" = everybody's uploads, those of "global". Other scopes keep their names, or what is no good or too
 * long as the name of a directory becomes "~<hash>". */
void symbfile_scope(struct sl_str scope, char out[SYMBFILE_SCOPE]);

/* ---- part.c: one part on its way ---- */

/* A symbfile of its own; the first of pieces that are symbfiles only together, or alone not complete; a later piece. */
enum symbfile_mode { SYMBFILE_WHOLE = 's', SYMBFILE_OPEN = 'o', SYMBFILE_PIECE = 'b' };

struct symbfile_part; /* decoder of one part */

/* `number` of `count`. The records go to `sink` (NULL: they are only checked). NULL when out of memory. */
struct symbfile_part *symbfile_part_new(uint64_t number, uint64_t count, uint64_t max_inflated,
                                        struct sl_symbfile_sink *sink);
void symbfile_part_free(struct symbfile_part *part);

/* False: `failure`. zstd and gzip are told by their first bytes. Pure. */
bool symbfile_part_feed(struct symbfile_part *part, struct sl_bytes bytes, struct symbfile_failure *failure);
bool symbfile_part_finish(struct symbfile_part *part, struct symbfile_failure *failure);

enum symbfile_mode symbfile_part_mode(const struct symbfile_part *part); /* after finish */
uint64_t symbfile_part_records(const struct symbfile_part *part);
uint64_t symbfile_part_inflated(const struct symbfile_part *part);
bool symbfile_part_cut(const struct symbfile_part *part);

/* ---- the store; what is not said to be of the loop thread blocks, for the pool ---- */

enum { SYMBFILE_ID_MAX = 129 }; /* hex of a build id with its NUL */

/* What is known of the executable; absent texts are empty. */
struct symbfile_info {
    char build_id[SYMBFILE_ID_MAX], debug_id[SL_DEBUG_ID_TEXT], go_build_id[257], code_file[4097], arch[32];
    bool has_base;
    uint64_t base;
};

struct symbfile_part_file {
    uint32_t number;
    uint8_t sha256[32];
    char mode;
    uint64_t records, inflated;
};

struct symbfile_set {
    enum symbfile_kind kind;
    bool published;
    uint64_t generation; /* microseconds since the epoch at its publication; 0 = staged */
    uint64_t parts, records;
    int64_t updated_s;
    char name[160];                  /* of its directory */
    struct symbfile_part_file *have; /* by number */
    size_t have_count;
};

/* False when there is no store. */
bool symbfile_store_dir(char out[512]);

struct symbfile_store_size { /* bytes on disk */
    uint64_t staging, published;
};

/* Makes the directories; removes what was left in tmp/ and staged sets that nobody completed; `*size` is what is left. */
enum sl_code symbfile_store_sweep(struct symbfile_store_size *size, struct sl_error *error);

/* What the configuration says of the store, from now on; its strings are kept. The functions here may run on the pool. */
void symbfile_store_configure(const struct config *config);

/* A file to receive a part in; `path` gets its name. 507 in `failure` when the store is full. */
int symbfile_store_receive(char path[600], struct symbfile_failure *failure);

struct symbfile_arrival { /* a part that was received and decoded */
    struct symbfile_place place;
    enum symbfile_kind kind;
    uint64_t parts;
    const char *upload_id; /* "" = none */
    struct symbfile_part_file part;
    const char *path; /* of symbfile_store_receive; renamed away or removed */
    int fd;
    const struct symbfile_info *info; /* of this request */
};

/* Changes of an executable's sets are made by whoever holds its lock. symbfile_lock waits for it at most `wait_ms`: SL_BUSY
 * after that, SL_CANCELLED; SL_NOT_FOUND when nothing was uploaded for it, unless `make`. Released in any case by
 * symbfile_unlock; zeros with fd -1 hold nothing. Loop thread. */
struct symbfile_turn;
struct symbfile_lock {
    int fd;
    struct symbfile_turn *turn;
};
enum sl_code symbfile_lock(const struct symbfile_place *place, bool make, uint64_t wait_ms, struct symbfile_lock *lock,
                           struct sl_error *error) SL_SUSPENDS;
void symbfile_unlock(struct symbfile_lock *lock);

/* Puts the part, which is synced, into its set; the last one publishes it. Under the lock. False: `failure`. */
bool symbfile_store_add(const struct symbfile_arrival *arrival, struct symbfile_failure *failure);

/* The published set of each kind (generation 0 = none); `sets`' parts are left out. SL_OK; SL_BUSY, or
 * SL_DOWNLOAD_ERROR when that cannot be told. */
enum sl_code symbfile_store_published(const struct symbfile_place *place, struct symbfile_set sets[SYMBFILE_KINDS]);

/* What answers show of each kind: the published set, else the one that is on its way, with its parts (free them);
 * `*info` as well. `*any`: something is known. SL_OK; SL_BUSY, or SL_DOWNLOAD_ERROR when that cannot be told. */
enum sl_code symbfile_store_status(const struct symbfile_place *place, struct symbfile_set sets[SYMBFILE_KINDS],
                                   bool known[SYMBFILE_KINDS], struct symbfile_info *info, bool *any);

/* Under the lock. False when there was nothing. */
bool symbfile_store_delete(const struct symbfile_place *place);

void symbfile_store_info(const struct symbfile_place *place, struct symbfile_info *info);

/* The executable with that id whose upload was published last; `place` has the scope, and gets the file id. SL_NOT_FOUND; SL_BUSY,
 * or SL_DOWNLOAD_ERROR when that cannot be told. */
enum sl_code symbfile_store_find(const char *id, struct symbfile_place *place);

/* Feeds all parts of a published set to the sink. SL_NOT_FOUND when it is gone. */
enum sl_code symbfile_store_read(const struct symbfile_place *place, const struct symbfile_set *set,
                                 struct sl_symbfile_sink *sink, struct sl_error *error);

/* ---- ask.c: the same wherever the store is; in a fiber ---- */

/* As symbfile_store_add. */
bool symbfile_add(const struct symbfile_arrival *arrival, struct symbfile_failure *failure) SL_SUSPENDS;
/* As symbfile_store_status; every other error than SL_BUSY, SL_INTERNAL and SL_CANCELLED: the store does not answer. */
enum sl_code symbfile_status(const struct symbfile_place *place, struct symbfile_set sets[SYMBFILE_KINDS],
                             bool known[SYMBFILE_KINDS], struct symbfile_info *info, bool *any,
                             struct sl_error *error) SL_SUSPENDS;
/* As symbfile_store_delete; the same errors. */
enum sl_code symbfile_delete(const struct symbfile_place *place, bool *any, struct sl_error *error) SL_SUSPENDS;

/* What this process remembers of the store counts no more: after every change that it has made. Loop thread. */
void symbfile_answers_forget(void);

/* ---- index.c ---- */
extern const struct cache_kind kind_symbfile_index; /* loaded: struct sl_symbfile_index */

void symbfiles_init(const struct config *config);
void symbfiles_close(void);

/* ---- look-ups (index.c) ---- */

/* An executable's uploaded symbols. */
struct symbfile_lookup {
    enum sl_code code;           /* SL_OK: at least one of `indexes` is there */
    struct cache_item *items[2]; /* references, by enum symbfile_kind; NULL = none */
    const struct sl_symbfile_index *indexes[2];
    struct sl_file_id file_id;
    bool has_base;
    uint64_t base; /* lowest page of the executable, if the upload said so */
    enum sl_arch arch;
    struct sl_features features;
};

/* How the store of uploads is. */
struct kinds_store_state {
    const char *type; /* "filesystem", "s3", "gcs"; NULL: there is none */
    bool shared;      /* by several nodes, as far as the configuration tells */
    bool up;
    const char *last_error; /* NULL: none yet */
    int64_t failed_s;       /* when that was */
};
void kinds_symbfile_store(struct kinds_store_state *state);

/* Whether uploads are asked before the sources. */
bool kinds_prefer_symbfile(bool has_file_id);

/* By the file id if there is one (else NULL), then by code id and debug id; among the uploads of the scope, then among everybody's.
 * `result` owns the items. SL_DOWNLOAD_ERROR: the store cannot be asked. */
void kinds_find_symbfile(struct sl_str scope, const struct sl_file_id *file_id, const struct object_id *id,
                         struct symbfile_lookup *result) SL_SUSPENDS;
void kinds_release_symbfile(struct symbfile_lookup *lookup);

/* A fiber that keeps the store of uploads clean until it is cancelled; `unused` is NULL. */
void kinds_sweep_symbfiles(void *unused) SL_SUSPENDS;
