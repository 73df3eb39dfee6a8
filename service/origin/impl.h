/* What the files of origin share. Private to this folder. */
#pragma once

#include "fetch/memo.h"
#include "origin/artifacts.h"
#include "origin/origin.h"

/* `text` appended with what a path segment of a URL may not hold percent-encoded; '/' separates and stays. */
void url_add_path(struct sl_buf *url, struct sl_str text);

extern struct origin_options origin_options;

/* ---- names.c ---- */
/* What a path of a layout is made of (layout.c). */
enum layout_block { BLOCK_NONE, BLOCK_PE, BLOCK_PDB, BLOCK_GDB, BLOCK_LLDB, BLOCK_BREAKPAD, BLOCK_BUNDLE };
enum unified_id { UNIFIED_NONE, UNIFIED_DEBUG_ID, UNIFIED_CODE_ID, UNIFIED_CODE_ID_OR_UUID, UNIFIED_BY_TYPE };

/* A file type, and where the layouts have its files. */
struct file_type_row {
    const char *word; /* in configurations and requests */
    enum sl_format format;
    enum { PART_ANY, PART_CODE, PART_DEBUG } part; /* of the format: only files with debug information, or without */
    enum layout_block native;
    const char *native_suffix;
    enum unified_id unified;
    const char *suffix; /* of the layout unified; of ELF of debuginfod's too */
    const char *store_key,
        *store_name;     /* of symbol stores: what is before the id, and instead of the code file's name; NULL */
    const char *mozilla; /* suffix on Mozilla's servers; NULL: not there */
};
extern const struct file_type_row file_type_rows[FILE_TYPES];

/* An object type: the format of its programs, how layouts name its files of other formats, and the files that may have its debug
 * information, the best first. */
extern const struct object_type_row {
    const char *word;
    enum sl_format format;
    enum unified_id unified;
    enum layout_block bundle; /* of source bundles */
    enum file_type files[FILE_TYPES];
    size_t file_count;
} object_type_rows[OBJECT_TYPES];

/* From now on so much is kept of answers. */
void sentry_init(size_t capacity, uint64_t ttl_ns);
void index_init(size_t capacity);
void sentry_forget(void);
void artifacts_init(size_t capacity, uint64_t ttl_ns);
void artifacts_forget(void);

/* The artifacts that an answer lists, as origin_artifacts() has them. */
enum sl_code artifacts_read(struct sl_str answer, const struct source *source, struct sl_arena *arena,
                            struct artifact **items, size_t *count, struct sl_error *error);
void index_forget(void);
void build_ids_forget(void);
void build_ids_close(void);

/* ---- health.c ---- */
/* What became of a file that was asked of the source. */
void health_note(const struct source *source, enum sl_code code, const struct sl_error *error);
/* The source of this id answers, as another process has found out. */
void health_heard(struct sl_str id);
void health_forget(void);

/* ---- location.c ---- */
/* Fills `file` for a path of a source that is no Sentry. False when there is no such file or no memory. */
bool locate(struct sl_arena *arena, const struct source *source, enum file_type type, struct sl_str path,
            struct remote_file *file);

/* ---- pointer.c: file.ptr ---- */
enum sl_code pointer_fetch(const struct remote_file *file, int fd, struct sl_error *error) SL_SUSPENDS;
/* What a pointer says: the text after "PATH:", without what trails it; empty when it says nothing of use. */
struct sl_str pointer_parse(struct sl_str text);
/* The root that the local path is below and the path relative to it; false when there is no such root. */
bool pointer_local(struct sl_arena *arena, struct sl_str path, struct sl_str *root, struct sl_str *relative);

/* ---- http.c ---- */
/* The URL of a location below the source's; `secret`: with the user info and query that candidates do not show.
 * Text in the arena; data NULL when the base can have no path. */
struct sl_str http_location_url(struct sl_arena *arena, struct sl_str base, struct sl_str location, bool secret);
enum sl_code http_source_fetch(const struct remote_file *file, int fd, struct sl_error *error) SL_SUSPENDS;

/* ---- filesystem.c ---- */
struct sl_str filesystem_uri(struct sl_arena *arena, const struct source *source, struct sl_str location);
/* Opens a file or a directory below the root, for reading; -1 with errno. Pool work. */
int filesystem_open(const char *root, const char *location);
/* The same, with the names of the location in any case: as it is written if that is there (any_case.c). */
int any_case_open(const char *root, const char *location);
void any_case_forget(void);
enum sl_code filesystem_fetch(const struct remote_file *file, int fd, struct sl_error *error) SL_SUSPENDS;

/* ---- sentry.c ---- */
enum sl_code sentry_list(const struct source *source, const struct object_id *id, const enum file_type *types,
                         size_t type_count, struct sl_arena *arena, struct remote_file **files, size_t *count,
                         struct sl_error *error) SL_SUSPENDS;
enum sl_code sentry_fetch(const struct remote_file *file, int fd, struct sl_error *error) SL_SUSPENDS;
/* The source's URL with further pairs in its query; texts in the arena. */
struct query_pair {
    const char *name;
    struct sl_str value;
};
struct sl_str sentry_url(struct sl_arena *arena, struct sl_str base, const struct query_pair *pairs, size_t count);
/* "Authorization: Bearer <token>" or "Cookie: <cookies>", in the arena; false when out of memory. */
bool sentry_credentials(struct sl_arena *arena, const struct source *source, struct fetch_header *header);
/* The file of this id; its `uri` is in the arena. False when out of memory. */
bool sentry_add_file(struct sl_arena *arena, const struct source *source, enum file_type type, struct sl_str id,
                     struct remote_file *file);
/* One GET that Sentry answers with a JSON text, which is appended. Refused credentials are told of in the log. */
struct sentry_question {
    const struct source *source;
    const char *url;
    const struct fetch_header *credentials;
    const char *label;
};
enum sl_code sentry_ask(const struct sentry_question *question, uint64_t max_size, struct sl_buf *answer,
                        struct sl_error *error) SL_SUSPENDS;
