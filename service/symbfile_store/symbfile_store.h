/* Uploaded symbfiles: parts as they arrive, the store that keeps them, and the index that answers look-ups.
 *
 * The store is data, not cache. It is a directory (`symbfile.store_dir` or, shared by nodes, `symbfile.store.filesystem.path`)
 * or a bucket (bucket.h). Below the directory:
 *
 *     <aa>/<file id>/info                                    description of the executable by its uploads (JSON)
 *                   /lock                                    locked by flock(2) while a set changes
 *                   /staging-<kind>-<parts>-<upload id>/     an incomplete set, with a `table` of its parts
 *                   /<kind>-<generation>-<parts>-<records>/  a published set; the highest generation counts
 *     by-id/<build id or debug id>/<file id>                 the executables with an id
 *     scopes/<scope>/                                        <aa>/ and by-id/ of uploads that belong to a scope
 *     generation                                             its mtime changes with the published sets
 *     tmp/                                                   parts that are being received
 *
 * A part is a file `<number>.<SHA-256>.<mode>.<records>.<inflated bytes>`, so that one rename makes it a part, and one rename
 * of a directory publishes a set. Several processes and nodes may share a store. For example, part 0 of a set of two, a complete
 * symbfile of 3 records and 128 bytes; and the set after both parts have arrived:
 *
 *     <aa>/<file id>/staging-ranges-2-build7/0.9f86d081884c...0a08.s.3.128
 *     <aa>/<file id>/ranges-1700000000000000-2-7/ */
#pragma once

#include "cache/cache.h"
#include "config/config.h"
#include "origin/origin.h"
#include "symbfile/symbfile.h"

enum symbfile_kind { SYMBFILE_RANGES, SYMBFILE_RETURNPADS, SYMBFILE_KINDS };
extern const char *const symbfile_kind_names[SYMBFILE_KINDS]; /* "ranges", "returnpads" */

/* Failure of an upload: the error code of the protocol and a sentence for people. */
struct symbfile_failure {
    int status;        /* HTTP; 0 = no failure */
    enum sl_code kind; /* SL_BUSY, SL_NOT_FOUND, SL_INTERNAL, SL_UNSUPPORTED; SL_MALFORMED: the upload is invalid */
    char code[8];
    char text[240];
    char cause[240]; /* for the log: may name paths */
};
void symbfile_fail(struct symbfile_failure *failure, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Sets a failure of this service: 503 if `code` is SL_BUSY, otherwise 500. `cause` goes to the log. */
void symbfile_fail_with_cause(struct symbfile_failure *failure, enum sl_code code, const char *cause);

/* Sets the failure that the store does not answer: 503, so that clients retry. */
void symbfile_fail_unreachable(struct symbfile_failure *failure, const char *cause);

/* The uploads for an executable in one scope. */
enum { SYMBFILE_SCOPE = 36 };
struct symbfile_key {
    struct sl_file_id file_id;
    char scope[SYMBFILE_SCOPE]; /* by symbfile_scope; zeros follow */
};

/* The store's name of a scope: "" = global. Other scopes keep their names; one that is invalid or too long as the name of a
 * directory becomes "~<hash>". */
void symbfile_scope(struct sl_str scope, char out[SYMBFILE_SCOPE]);

/* ---- part.c: one part being received ---- */

/* Contents of a part: a complete symbfile; the first piece of a symbfile that was split or is incomplete; a later piece. */
enum symbfile_mode { SYMBFILE_WHOLE = 's', SYMBFILE_OPEN = 'o', SYMBFILE_PIECE = 'b' };

struct symbfile_part; /* decoder of one part */

/* Decodes part `number` of `count`. The records go to `sink` (NULL: only check them). NULL when out of memory. */
struct symbfile_part *symbfile_part_new(uint64_t number, uint64_t count, uint64_t max_inflated,
                                        struct sl_symbfile_sink *sink);
void symbfile_part_free(struct symbfile_part *part);

/* False: `failure` is set. Detects zstd and gzip by their magic numbers. Pure. */
bool symbfile_part_feed(struct symbfile_part *part, struct sl_bytes bytes, struct symbfile_failure *failure);
bool symbfile_part_finish(struct symbfile_part *part, struct symbfile_failure *failure);

enum symbfile_mode symbfile_part_mode(const struct symbfile_part *part); /* after symbfile_part_finish */
uint64_t symbfile_part_records(const struct symbfile_part *part);
uint64_t symbfile_part_inflated(const struct symbfile_part *part);
bool symbfile_part_is_truncated(const struct symbfile_part *part);

/* ---- the store; functions block and are for the pool, unless they say loop thread ---- */

enum { SYMBFILE_ID_MAX = 129 }; /* hex digits of a build id, with the NUL */

/* Description of an executable; absent texts are empty. */
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

/* Gets the path of the store; false if there is none. */
bool symbfile_store_dir(char out[512]);

struct symbfile_store_size { /* bytes on disk */
    uint64_t staging, published;
};

/* Makes the directories; removes old files in tmp/ and staged sets that were not completed in time; `*size` is what remains. */
enum sl_code symbfile_store_sweep(struct symbfile_store_size *size, struct sl_error *error);

/* Applies the configuration of the store from now on; keeps its strings. The other functions may run on the pool meanwhile. */
void symbfile_store_configure(const struct config *config);

/* Makes the store's directory. False, with `failure`, if there is none, or it is full or unreachable. */
bool symbfile_store_make_room(struct symbfile_failure *failure);
/* Creates a file to receive a part; `path` gets its name. 507 in `failure` if the store is full. */
int symbfile_store_receive(char path[600], struct symbfile_failure *failure);

struct symbfile_upload_set { /* a received and decoded part */
    struct symbfile_key file_key;
    enum symbfile_kind kind;
    uint64_t parts;
    const char *upload_id; /* "" = none */
    struct symbfile_part_file part;
    const char *path; /* from symbfile_store_receive; renamed or removed */
    int fd;
    const struct symbfile_info *info; /* from this request */
};

/* Serialises changes of an executable's sets. symbfile_lock waits for the lock at most `wait_ms`: then SL_BUSY; SL_CANCELLED;
 * SL_NOT_FOUND if nothing was uploaded for the executable, unless `make`. Call symbfile_unlock in any case; zeros with fd -1
 * are an empty lock. Loop thread. */
struct symbfile_lock_waiter;
struct symbfile_lock {
    int fd;
    struct symbfile_lock_waiter *turn;
};
enum sl_code symbfile_lock(const struct symbfile_key *file_key, bool make, uint64_t wait_ms, struct symbfile_lock *lock,
                           struct sl_error *error) SL_SUSPENDS;
void symbfile_unlock(struct symbfile_lock *lock);

/* Adds the part, which is synced, to its set; the last one publishes the set. Under the lock. False: `failure` is set. */
bool symbfile_store_add(const struct symbfile_upload_set *arrival, struct symbfile_failure *failure);

/* Gets the published set of each kind (generation 0 = none), without its parts. SL_OK; SL_BUSY, or SL_DOWNLOAD_ERROR if the
 * store is unreadable. */
enum sl_code symbfile_store_published(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS]);

/* For responses: gets the published set of each kind or, without one, the incomplete set, with its parts (free them); and
 * `*info`. `*any`: something exists. SL_OK; SL_BUSY, or SL_DOWNLOAD_ERROR if the store is unreadable. */
enum sl_code symbfile_store_status(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS],
                                   bool known[SYMBFILE_KINDS], struct symbfile_info *info, bool *any);

/* Deletes the uploads for an executable in one scope. Call it under the lock. False if there was nothing to delete. errno: 0, or why
 * some or all of them were not found. */
bool symbfile_store_delete(const struct symbfile_key *file_key);

/* Reads the description of an executable; empty if there is none. SL_BUSY if memory or descriptors were missing to read it. */
enum sl_code symbfile_store_info(const struct symbfile_key *file_key, struct symbfile_info *info);

/* Finds the executable with that id whose upload was published last; `file_key` has the scope, and gets the file id. SL_NOT_FOUND;
 * SL_BUSY, or SL_DOWNLOAD_ERROR if the store is unreadable. */
enum sl_code symbfile_store_find(const char *id, struct symbfile_key *file_key);

/* ---- client.c: the same for a directory or a bucket; in a fiber ---- */

/* Like symbfile_store_add. */
bool symbfile_add(const struct symbfile_upload_set *arrival, struct symbfile_failure *failure) SL_SUSPENDS;
/* Like symbfile_store_status; errors except SL_BUSY, SL_INTERNAL and SL_CANCELLED mean that the store does not answer. */
enum sl_code symbfile_status(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS],
                             bool known[SYMBFILE_KINDS], struct symbfile_info *info, bool *any,
                             struct sl_error *error) SL_SUSPENDS;
/* Like symbfile_store_delete; errors mean the same as those of symbfile_status. */
enum sl_code symbfile_delete(const struct symbfile_key *file_key, bool *any, struct sl_error *error) SL_SUSPENDS;

/* Drops this process's cached answers about the store: call after each of its own changes. Loop thread. */
void symbfile_answers_clear(void);

/* ---- index.c ---- */
extern const struct cache_kind kind_symbfile_index; /* loaded: struct sl_symbfile_index */

void symbfiles_init(const struct config *config);
void symbfiles_close(void);

/* ---- look-ups (index.c) ---- */

/* An executable's uploaded symbols. */
struct symbfile_lookup {
    enum sl_code code;           /* SL_OK: at least one of `indexes` is set */
    struct cache_item *items[2]; /* references, by enum symbfile_kind; NULL = none */
    const struct sl_symbfile_index *indexes[2];
    struct sl_file_id file_id;
    bool has_base;
    uint64_t base; /* lowest page of the executable, if the upload contained it */
    enum sl_arch arch;
    struct sl_features features;
};

/* State of the store of uploads. */
struct symbfile_store_state {
    const char *type; /* "filesystem", "s3", "gcs"; NULL: no store */
    bool shared;      /* by several nodes, according to the configuration */
    bool up;
    const char *last_error; /* NULL: none */
    int64_t failed_s;       /* time of the last error */
};
void symbfile_store_get_state(struct symbfile_store_state *state);

/* True if uploads are searched before the sources. */
bool symbfile_is_preferred(bool has_file_id);

/* Looks up by the file id if there is one (else NULL), then by code id and debug id; first in the uploads of the scope, then in
 * the global ones. `result` owns the items. SL_DOWNLOAD_ERROR: the store is unreachable. */
void symbfile_find(struct sl_str scope, const struct sl_file_id *file_id, const struct object_id *id,
                   struct symbfile_lookup *result) SL_SUSPENDS;
void symbfile_lookup_release(struct symbfile_lookup *lookup);

/* A fiber that regularly cleans the store of uploads until it is cancelled; `unused` is NULL. */
void symbfile_sweep_repeatedly(void *unused) SL_SUSPENDS;
