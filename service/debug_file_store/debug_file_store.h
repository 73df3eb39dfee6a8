/* The store of uploaded debug files: executables, debug files, Breakpad files, source bundles and mappings, kept as they are.
 *
 * It is data, not cache: the source "uploads" of every API, asked after the configured sources. The files are in the directory of
 * uploads (`symbfile.store_dir` or `symbfile.store.filesystem.path`) or in a bucket (`store.s3`, `store.gcs`):
 *
 *     objects/ab/cdef.../debuginfo     a file by its id, as in the unified layout (LAYOUT_UPLOADS)
 *     uploads/sha1/<aa>/<sha1>         the record of a stored file (JSON: ids, name, type), by the SHA-1 of its contents;
 *                                      <aa> are the first two digits
 *     objects/artifacts/, uploads/js/  bundles of JavaScript releases (artifacts.h)
 *     uploads/names/<module>/          files with this module name (names.h)
 *     uploads/locks/<aa>               locked while a file below objects/<aa>/ may be replaced
 *     chunks/<aa>/<sha1>               pieces of files that are being uploaded; removed after a day
 *     tmp/                             files that are being written
 *
 *     API  ──▶ debug_file_tmp ──▶ check.c: what is it? ──▶ place.c: is it better than what is there? ──▶ objects/
 *
 * Quality decides, not arrival: a worse file never replaces or hides a better one of the same id and type. Several processes and
 * nodes may share the directory or the bucket. Loop thread. */
#pragma once

#include "config/config.h"
#include "debug_file_store/converters.h"
#include "store/area.h"

/* Opens the store if a bucket is configured for it. A directory is opened as the store only if a key may upload, or if it has files
 * already. Then appends the source "uploads" to the configured sources. Call it for every new configuration, before that is used. Failures
 * are logged: then there is no store. Blocks. */
void debug_files_apply(struct config *config);
void debug_files_close(void);
bool debug_files_are_open(void);
/* Returns the directory or bucket of the store. */
const struct store_area *debug_files_area(void);
/* Returns the source "uploads"; NULL: there is no store. Requests that name their own sources ask it after those. */
const struct source *debug_files_source(void);
/* Returns a copy, in the arena, of a list of sources with the source "uploads" appended, and increments `*count`. Returns `sources` itself
 * if it has that source already or there is no store; NULL when out of memory. */
const struct source *debug_files_append(const struct source *sources, size_t *count, struct sl_arena *arena);

/* The function of a fiber: removes old chunks and temporary files, and creates missing entries below uploads/names/, until the fiber is
 * cancelled. */
void debug_files_sweep_repeatedly(void *unused) SL_SUSPENDS;

/* Result of an upload: it was stored; the store has the same file; it has a better one; the file was refused. */
enum debug_file_result { DEBUG_FILE_NEW, DEBUG_FILE_DUPLICATE, DEBUG_FILE_WORSE, DEBUG_FILE_REFUSED };

/* The record of a stored file. Texts may be empty. */
struct debug_file_record {
    struct sl_str sha1, sha256; /* lower-case hex */
    struct sl_str name;         /* base name, as the client sent it */
    struct sl_str type;         /* a word of the configuration key `filetypes` of sources */
    struct sl_str cpu, debug_id, code_id, kind;
    struct sl_str *features; /* "debug", "symtab", "unwind", "sources" */
    struct sl_str *paths;    /* where the file is, below objects/ */
    size_t feature_count, path_count;
    uint64_t size;
    uint64_t created_s; /* first upload, since the epoch */
};

struct debug_file_upload {
    const char *door;            /* API that received the file, for metrics and log: "sentry", ... */
    struct store_tmp_file *file; /* complete; consumed in any case */
    struct sl_str name;          /* as the client sent it */
    /* The ids that the client claims. They must not contradict those of the file, and serve for a file that has none. */
    struct sl_str claimed_code_id; /* lower-case hex; empty = none */
    struct sl_debug_id claimed_id;
    bool has_claimed_id;
    /* an id of which the client does not say whether it is a build id or a debug id as Breakpad writes it; empty = none */
    struct sl_str claimed_any;
    struct sl_debug_id name_id; /* read from `name`; used only if neither the file nor the client gives an id */
    bool has_name_id;
    struct sl_str wanted_sha1; /* lower-case hex; refused if the file has another one; empty = any */
    struct sl_arena *arena;    /* where the texts of `record` are allocated */
    /* the answer */
    enum debug_file_result result;
    int status; /* HTTP status for a failure: that of debug_file_status, or 413 */
    struct debug_file_record record;
};

/* Returns the HTTP status for an error of the store: 400 the file is refused, 404 not found, 503 out of memory, 507 the disk is full, else
 * 500. */
int debug_file_status(enum sl_code code);

/* Creates the temporary file that receives an upload. */
enum sl_code debug_file_tmp(struct store_tmp_file *file, struct sl_error *error) SL_SUSPENDS;

/* Creates a temporary file for an upload and writes the bytes to it. */
enum sl_code debug_file_copy(struct sl_bytes bytes, struct store_tmp_file *file, struct sl_error *error) SL_SUSPENDS;

/* Sets `*found`: whether the store has a file, of any type, with these ids. */
enum sl_code debug_files_have(const struct object_id *id, struct sl_arena *arena, bool *found,
                              struct sl_error *error) SL_SUSPENDS;

/* Checks the uploaded file and stores it, unless the store or a configured source has the same file or a better one. SL_OK:
 * `upload->result` says what became of it. SL_MALFORMED: refused (DEBUG_FILE_REFUSED); `error` says why, for the client. For every failure
 * `upload->status` is the HTTP status. */
enum sl_code debug_file_add(const struct config *config, struct debug_file_upload *upload,
                            struct sl_error *error) SL_SUSPENDS;

/* Finds the record of a stored file by its SHA-1 (lower-case hex). SL_NOT_FOUND also if the file has been replaced or removed since. */
enum sl_code debug_files_find(struct sl_str sha1, struct sl_arena *arena, struct debug_file_record *record,
                              struct sl_error *error) SL_SUSPENDS;

/* Sets `*quality` to that of the best file with these ids and of this type, in the store or a configured source. SL_NOT_FOUND if there is
 * none. */
enum sl_code debug_file_best(const struct config *config, const struct object_id *id, enum file_type type,
                             struct sl_arena *arena, enum debug_file_quality *quality,
                             struct sl_error *error) SL_SUSPENDS;

/* Removes the stored files with these ids and of this type. SL_OK also if there are none. */
enum sl_code debug_file_remove(const struct object_id *id, enum file_type type, struct sl_arena *arena,
                               struct sl_error *error) SL_SUSPENDS;
