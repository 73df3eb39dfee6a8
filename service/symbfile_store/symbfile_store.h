/* Uploaded symbfiles: parts as they arrive, the store that keeps them, and the index that answers look-ups. A symbfile contains symbols of
 * one executable, of one kind: ranges (of addresses) or returnpads. It is uploaded in one or more parts; those of one upload are a "set".
 *
 * The store is data, not cache. It is a directory (`symbfile.store_dir` or, shared by nodes, `symbfile.store.filesystem.path`)
 * or a bucket (bucket.h). Below the directory:
 *
 *     <aa>/<file id>/info                                    description of the executable by its uploads (JSON)
 *                   /lock                                    locked by flock(2) while a set of the executable changes
 *                   /staging-<kind>-<parts>-<upload id>/     an incomplete set, with a `table` of its parts
 *                   /<kind>-<generation>-<parts>-<records>/  a published set; the highest generation counts
 *     by-id/<build id or debug id>/<file id>                 the executables with an id
 *     scopes/<scope>/                                        <aa>/ and by-id/ of uploads that belong to a scope
 *     generation                                             its mtime changes with the published sets
 *     tmp/                                                   parts that are being received
 *
 * A part is a file `<number>.<SHA-256>.<mode>.<records>.<inflated bytes>`, which one rename adds to its set; and one rename of the set's
 * directory publishes it. Several processes and nodes may share a store. For example, part 0 of a set of two, a complete symbfile of 3
 * records and 128 bytes; and the directory of the set after both parts have arrived:
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

/* Failure of an upload: the error code of the upload protocol and a sentence for people, for the response. */
struct symbfile_failure {
    int status;        /* HTTP; 0 = no failure */
    enum sl_code kind; /* SL_BUSY, SL_NOT_FOUND, SL_INTERNAL, SL_UNSUPPORTED; SL_MALFORMED: the upload is invalid */
    char code[8];
    char text[240];
    char cause[240]; /* for the log: may name paths */
};
/* Sets the failure to a response with this HTTP status, error code and text; its kind to SL_MALFORMED. */
void symbfile_fail(struct symbfile_failure *failure, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Sets a failure of this service: 503 if `code` is SL_BUSY, otherwise 500. `cause` goes to the log. */
void symbfile_fail_with_cause(struct symbfile_failure *failure, enum sl_code code, const char *cause);

/* Sets the failure "the store does not respond": 503, so that clients retry. `cause` goes to the log. */
void symbfile_fail_unreachable(struct symbfile_failure *failure, const char *cause);

enum { SYMBFILE_SCOPE = 36 };
/* An executable in one scope: its uploads are kept together. */
struct symbfile_key {
    struct sl_file_id file_id;
    char scope[SYMBFILE_SCOPE]; /* by symbfile_scope(); the rest is zeros */
};

/* Makes the store's name of a scope: "" for the global scope; "~<hash>" for one that is invalid or too long as the name of a directory; the
 * scope itself for others. */
void symbfile_scope(struct sl_str scope, char out[SYMBFILE_SCOPE]);

/* ---- part.c: one part being received ---- */

/* What a part contains. */
enum symbfile_mode {
    SYMBFILE_WHOLE = 's', /* a complete symbfile */
    SYMBFILE_OPEN = 'o',  /* part 0 with the beginning of a symbfile; the next parts contain the rest */
    SYMBFILE_PIECE = 'b', /* a later part that continues the symbfile */
};

struct symbfile_part; /* decoder of one part */

/* Makes a decoder for part `number` of `count`. The records go to `sink` (NULL: they are only checked). NULL when out of memory. */
struct symbfile_part *symbfile_part_new(uint64_t number, uint64_t count, uint64_t max_inflated,
                                        struct sl_symbfile_sink *sink);
void symbfile_part_free(struct symbfile_part *part);

/* Decodes the next bytes of the part as they arrive, plain or compressed by zstd or gzip, which is detected by the magic number. False with
 * `failure`: the part is invalid or too large, or memory is used up. Any thread. */
bool symbfile_part_feed(struct symbfile_part *part, struct sl_bytes bytes, struct symbfile_failure *failure);
/* Checks, after the last bytes, that the part is not cut off. False with `failure`. */
bool symbfile_part_finish(struct symbfile_part *part, struct symbfile_failure *failure);

/* Results, valid after symbfile_part_finish(): what the part contains; number of decoded records; bytes after decompression; whether the
 * symbfile in the part ends too early. */
enum symbfile_mode symbfile_part_mode(const struct symbfile_part *part);
uint64_t symbfile_part_records(const struct symbfile_part *part);
uint64_t symbfile_part_inflated(const struct symbfile_part *part);
bool symbfile_part_is_truncated(const struct symbfile_part *part);

/* ---- the store in a directory; functions block: call them on the pool, unless a comment says loop thread ---- */

enum { SYMBFILE_ID_MAX = 129 }; /* hex digits of a build id, with the NUL */

/* Description of an executable; absent texts are empty. */
struct symbfile_info {
    char build_id[SYMBFILE_ID_MAX], debug_id[SL_DEBUG_ID_TEXT], go_build_id[257], code_file[4097], arch[32];
    bool has_base;
    uint64_t base;
};

struct symbfile_part_file { /* a stored part, as the name of its file describes it */
    uint32_t number;
    uint8_t sha256[32];
    char mode;                  /* enum symbfile_mode */
    uint64_t records, inflated; /* number of records; bytes after decompression */
};

struct symbfile_set {
    enum symbfile_kind kind;
    bool published;                  /* false: incomplete */
    uint64_t generation;             /* when it was published, in microseconds since the epoch; 0 = not yet */
    uint64_t parts, records;         /* number of parts of the complete set, and of their records */
    int64_t updated_s;               /* when it was published or got a part, in seconds since the epoch */
    char name[160];                  /* of its directory; in a bucket, of its object */
    struct symbfile_part_file *have; /* parts that have arrived, by number */
    size_t have_count;
};

/* Gets the path of the store; false if there is none. */
bool symbfile_store_dir(char out[512]);

struct symbfile_store_size { /* bytes on disk of incomplete and of published sets */
    uint64_t staging, published;
};

/* Makes the store's directories; removes old files in tmp/ and sets that were not completed within symbfile.staging_ttl. `*size` is the
 * size of what remains. */
enum sl_code symbfile_store_sweep(struct symbfile_store_size *size, struct sl_error *error);

/* Applies the configuration of the store, whose texts must outlive the store. Other functions may run on the pool meanwhile. */
void symbfile_store_configure(const struct config *config);

/* Makes the store's directory if it is missing, and checks that it has room for an upload. False, with `failure`, if no store is
 * configured, or it is full or not reachable. */
bool symbfile_store_make_room(struct symbfile_failure *failure);
/* Creates a temporary file in the store to receive a part; `path` gets its name. Returns its descriptor; -1 with `failure` on failure, with
 * status 507 if the store is full. */
int symbfile_store_receive(char path[600], struct symbfile_failure *failure);

struct symbfile_upload_set { /* a part that was received and decoded, and the set that it belongs to */
    struct symbfile_key file_key;
    enum symbfile_kind kind;
    uint64_t parts;        /* of the complete set */
    const char *upload_id; /* "" = none */
    struct symbfile_part_file part;
    const char *path; /* of its file, made by symbfile_store_receive(); a store in a directory renames it */
    int fd;           /* of that file */
    const struct symbfile_info *info; /* description of the executable in this request */
};

struct symbfile_lock_waiter;
struct symbfile_lock {
    int fd;                            /* of the locked file; -1: none */
    struct symbfile_lock_waiter *turn; /* queue of this process's fibers; NULL: none */
};
/* Locks an executable, so that its sets change one after the other. Waits at most `wait_ms`: then SL_BUSY. SL_CANCELLED; SL_NOT_FOUND if
 * nothing was uploaded for the executable, unless `make`; SL_DOWNLOAD_ERROR if the store is not reachable. Call symbfile_unlock() in any
 * case, also after an error. Loop thread. */
enum sl_code symbfile_lock(const struct symbfile_key *file_key, bool make, uint64_t wait_ms, struct symbfile_lock *lock,
                           struct sl_error *error) SL_SUSPENDS;
void symbfile_unlock(struct symbfile_lock *lock);

/* Adds a part, whose file must be synced, to its set; publishes the set if all its parts are there then. Call it under the lock of the
 * executable. False with `failure`. */
bool symbfile_store_add(const struct symbfile_upload_set *arrival, struct symbfile_failure *failure);

/* Gets the published set of each kind (generation 0 = none), without its parts. SL_BUSY, or SL_DOWNLOAD_ERROR if the store cannot be
 * read: then some published sets may be missing from the result. */
enum sl_code symbfile_store_published(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS]);

/* For responses: gets the published set of each kind or, without one, the incomplete set that was updated last, with its parts (free
 * them). `known[kind]`: there is one; `*any`: there is one of any kind. Also gets the description of the executable. SL_BUSY, or
 * SL_DOWNLOAD_ERROR if the store cannot be read. */
enum sl_code symbfile_store_status(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS],
                                   bool known[SYMBFILE_KINDS], struct symbfile_info *info, bool *any);

/* Deletes the uploads for an executable in one scope. Call it under the lock of the executable. False if there was nothing to delete.
 * errno is 0, or tells why some uploads may not have been found. */
bool symbfile_store_delete(const struct symbfile_key *file_key);

/* Reads the description of an executable; empty if there is none. SL_BUSY if memory or descriptors were missing to read it. */
enum sl_code symbfile_store_info(const struct symbfile_key *file_key, struct symbfile_info *info);

/* Finds the executable with this build id or debug id; if several have it, the one whose symbfiles were published last. `file_key` has the
 * scope, and gets the file id. SL_NOT_FOUND; SL_BUSY, or SL_DOWNLOAD_ERROR if the store cannot be read. */
enum sl_code symbfile_store_find(const char *id, struct symbfile_key *file_key);

/* ---- client.c: functions for a store of either type, a directory or a bucket; call them in a fiber ---- */

/* Stores a received part; publishes its set if all parts of that are there now. Call it under the lock of the executable. False with
 * `failure`. */
bool symbfile_add(const struct symbfile_upload_set *arrival, struct symbfile_failure *failure) SL_SUSPENDS;
/* For responses: gets the published set of each kind or, without one, the incomplete set that was updated last, with its parts (free
 * them). `known[kind]`: there is one; `*any`: there is one of any kind. Also gets the description of the executable. Errors except SL_BUSY,
 * SL_INTERNAL and SL_CANCELLED mean that the store does not respond. */
enum sl_code symbfile_status(const struct symbfile_key *file_key, struct symbfile_set sets[SYMBFILE_KINDS],
                             bool known[SYMBFILE_KINDS], struct symbfile_info *info, bool *any,
                             struct sl_error *error) SL_SUSPENDS;
/* Deletes the uploads for an executable in one scope, under its lock; `*any`: there were some. Errors except SL_BUSY, SL_INTERNAL and
 * SL_CANCELLED mean that the store does not respond. */
enum sl_code symbfile_delete(const struct symbfile_key *file_key, bool *any, struct sl_error *error) SL_SUSPENDS;

/* Drops this process's cached answers to look-ups. Call it after each change of the store that this process makes or tries. Loop thread. */
void symbfile_answers_clear(void);

/* ---- index.c ---- */
extern const struct cache_kind kind_symbfile_index; /* loaded: struct sl_symbfile_index */

void symbfiles_init(const struct config *config);
void symbfiles_close(void);

/* ---- look-ups (index.c) ---- */

/* Result of a look-up: an executable's uploaded symbols. */
struct symbfile_lookup {
    enum sl_code code;                          /* SL_OK: at least one of `indexes` is set */
    struct cache_item *items[2];                /* references, by enum symbfile_kind; NULL = none */
    const struct sl_symbfile_index *indexes[2]; /* of the items */
    struct sl_file_id file_id;
    bool has_base;
    uint64_t base; /* if has_base: lowest page address of the executable, as an upload gave it */
    enum sl_arch arch;
    struct sl_features features;
};

/* State of the store of uploads. */
struct symbfile_store_state {
    const char *type;       /* "filesystem", "s3", "gcs"; NULL: no store */
    bool shared;            /* by several nodes, according to the configuration */
    bool up;                /* the last access succeeded */
    const char *last_error; /* NULL: none */
    int64_t failed_s;       /* time of the last error */
};
void symbfile_store_get_state(struct symbfile_store_state *state);

/* True if a module's uploaded symbols are used before those of the sources, by the setting symbfile.prefer. */
bool symbfile_is_preferred(bool has_file_id);

/* Finds the uploaded symbols of a module: by its file id (NULL: unknown), then by code id, then by debug id; by each first in the
 * uploads of the scope, then in the global ones. Release the result in any case. Its code is SL_NOT_FOUND if there are none,
 * SL_DOWNLOAD_ERROR if the store does not respond. */
void symbfile_find(struct sl_str scope, const struct sl_file_id *file_id, const struct object_id *id,
                   struct symbfile_lookup *result) SL_SUSPENDS;
void symbfile_lookup_release(struct symbfile_lookup *lookup);

/* Run in a fiber: removes incomplete uploads that are too old from time to time, until the fiber is cancelled. `unused` is NULL. */
void symbfile_sweep_repeatedly(void *unused) SL_SUSPENDS;
