/* Shared by the files of origin. Private to this folder. */
#pragma once

#include "fetch/ttl_cache.h"
#include "origin/artifacts.h"
#include "origin/origin.h"

/* Appends `text` to a URL; percent-encodes characters that a path segment may not contain, except '/'. */
void url_add_path(struct sl_buf *url, struct sl_str text);

extern struct origin_options origin_options;

/* ---- names.c ---- */

/* BLOCK_: the functions of layout.c that build paths. UNIFIED_: the id by which the unified layout stores a file. */
enum layout_block { BLOCK_NONE, BLOCK_PE, BLOCK_PDB, BLOCK_GDB, BLOCK_LLDB, BLOCK_BREAKPAD, BLOCK_BUNDLE };
enum unified_id { UNIFIED_NONE, UNIFIED_DEBUG_ID, UNIFIED_CODE_ID, UNIFIED_CODE_ID_OR_UUID, UNIFIED_BY_TYPE };

/* A file type, and how the layouts name its files. */
struct file_type_row {
    const char *word; /* in configurations and requests */
    enum sl_format format;
    /* which files of the format: all, those without debug information, or those with it */
    enum { PART_ANY, PART_CODE, PART_DEBUG } part;
    enum layout_block native;
    const char *native_suffix;
    enum unified_id unified;
    const char *suffix;    /* last component of paths in the unified layout, and of ELF files in debuginfod's */
    const char *store_key; /* symbol stores: prefix of the id, such as "elf-buildid-"; NULL = none */
    const char
        *store_name;     /* symbol stores: fixed name that replaces the code file's, such as "_.debug"; NULL = none */
    const char *mozilla; /* suffix on Mozilla's servers; NULL: not stored there */
};
extern const struct file_type_row file_type_rows[FILE_TYPES];

/* An object type: the format of its files, how layouts name its files of other formats, and the files that may have
 * its debug information, best first. */
extern const struct object_type_row {
    const char *word;
    enum sl_format format;
    enum unified_id unified;
    enum layout_block bundle; /* for source bundles */
    enum file_type files[FILE_TYPES];
    size_t file_count;
} object_type_rows[OBJECT_TYPES];

/* The caches of responses: _init sets capacity and lifetime, _clear_cache makes all entries expire. */
void sentry_init(size_t capacity, uint64_t ttl_ns);
void index_init(size_t capacity);
void sentry_clear_cache(void);
void artifacts_init(size_t capacity, uint64_t ttl_ns);
void artifacts_clear_cache(void);

/* Parses a response of Sentry's artifact lookup; results and errors are those of origin_artifacts(). */
enum sl_code artifacts_read(struct sl_str answer, const struct source *source, struct sl_arena *arena,
                            struct artifact **items, size_t *count, struct sl_error *error);
void index_clear_cache(void);
void build_ids_clear_cache(void);
void build_ids_close(void);

/* ---- health.c ---- */

/* Records the result of requesting a file from a source, for its state that operators see. `error` may be NULL. */
void health_note(const struct source *source, enum sl_code code, const struct sl_error *error);
/* Records that, according to another process, the source with this id responds. */
void health_note_success(struct sl_str id);
void health_clear(void);

/* ---- location.c ---- */

/* Fills `file` for a path below the source's root. Returns false for Sentry, whose files have no paths, for a URL without a host, and when
 * out of memory. */
bool fill_remote_file(struct sl_arena *arena, const struct source *source, enum file_type type, struct sl_str path,
                      struct remote_file *file);

/* ---- pointer.c: file.ptr ---- */
enum sl_code pointer_fetch(const struct remote_file *file, int fd, struct sl_error *error) SL_SUSPENDS;
/* Parses a `file.ptr`: returns the text after "PATH:" without trailing blanks and NULs; empty if there is none. */
struct sl_str pointer_parse(struct sl_str text);
/* Splits a local path into an allowed root and the path relative to it; returns false if it is below none. */
bool pointer_local(struct sl_arena *arena, struct sl_str path, struct sl_str *root, struct sl_str *relative);

/* ---- http.c ---- */

/* False if nothing can be below the source's URL, as it has no host: "data:,". */
bool http_can_have_files(struct sl_str base);
/* Returns the URL of a location below the source's URL; with `secret` including user info and query, which clients do not see. Text in
 * the arena; data NULL if the base URL has no host, or when out of memory. */
struct sl_str http_location_url(struct sl_arena *arena, struct sl_str base, struct sl_str location, bool secret);
/* Appends a header field X-DEBUGINFOD-... to the note (ORIGIN_NOTE_BYTES) of origin_fetch_noting; ignores others. Called also for the
 * responses that redirect: of equal fields the first counts. A value that does not fit, or is no printable UTF-8, is left out. elfutils'
 * server sends the whole path of an archive on its machine, of which only the name is kept. */
void origin_note_add(char *note, struct sl_str name, struct sl_str value);
/* Downloads the file; `note` gets header fields of the response (origin_note_add), NULL = none. */
enum sl_code http_source_fetch(const struct remote_file *file, int fd, char *note, struct sl_error *error) SL_SUSPENDS;

/* ---- filesystem.c ---- */
struct sl_str filesystem_uri(struct sl_arena *arena, const struct source *source, struct sl_str location);
/* Opens the file at the location below the root, ignoring case; an exact match is preferred (any_case.c). -1 with errno. */
int any_case_open(const char *root, const char *location);
/* True if the errno `number` says that a path leads to no file: the file, one of its directories, or the target of a link is missing, or
 * outside of the source's directory. */
bool filesystem_is_missing(int number);
void any_case_clear_cache(void);

/* ---- sentry.c ---- */
/* Lists the files of these types that Sentry has for the id, by a request or from the cache. None without an id. */
enum sl_code sentry_list(const struct source *source, const struct object_id *id, const enum file_type *types,
                         size_t type_count, struct sl_arena *arena, struct remote_file **files, size_t *count,
                         struct sl_error *error) SL_SUSPENDS;
enum sl_code sentry_fetch(const struct remote_file *file, int fd, struct sl_error *error) SL_SUSPENDS;
struct query_pair {
    const char *name;
    struct sl_str value; /* not yet percent-encoded */
};
/* Returns the source's URL with pairs appended to its query, in the arena. */
struct sl_str sentry_url(struct sl_arena *arena, struct sl_str base, const struct query_pair *pairs, size_t count);
/* Sets "Authorization: Bearer <token>" or "Cookie: <cookies>"; the value lies in the arena. Returns false if out of
 * memory. */
bool sentry_credentials(struct sl_arena *arena, const struct source *source, struct fetch_header *header);
/* Fills `file` for the file that Sentry has under `id`; its `uri` lies in the arena. Returns false if out of memory. */
bool sentry_add_file(struct sl_arena *arena, const struct source *source, enum file_type type, struct sl_str id,
                     struct remote_file *file);
struct sentry_query {
    const struct source *source;
    const char *url;
    const struct fetch_header *credentials;
    const char *label; /* of the source in metrics */
};
/* Sends a GET request to Sentry and appends the JSON response to `answer`. Refused credentials are logged. */
enum sl_code sentry_request(const struct sentry_query *query, uint64_t max_size, struct sl_buf *answer,
                            struct sl_error *error) SL_SUSPENDS;
