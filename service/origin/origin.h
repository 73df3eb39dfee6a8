/* Sources of debug files: their configuration, directory layouts, and fetching a remote file.
 *
 * A *source* is a symbol server, bucket or directory, configured or named by a request. For an object id and a list of file types it
 * lists *remote files* (location and URI) by its layout or by Sentry's file list; origin_fetch() gets one of them. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "core/fiber.h"
#include "core/secret.h"
#include "core/value_tree.h"
#include "fetch/fetch.h"
#include "id/id.h"
#include "object/object.h"
#include "objectstore/objectstore.h"

struct origin_options { /* options of the process; referenced data must outlive them */
    size_t sentry_index_capacity, gcs_token_capacity, s3_client_capacity; /* entries */
    uint64_t sentry_index_ttl_ns;
    const struct sl_str *file_ptr_roots; /* directories that local paths in a `file.ptr` must be below */
    size_t file_ptr_root_count;
    const struct text_pair *unc_map; /* maps a share \\server\share to the directory where it is mounted */
    size_t unc_map_count;
    bool propagate_traces; /* send the trace ids of requests to Sentry (fiber_set_trace) */
};
/* May be called again: caches are kept, within the new limits. Without a call, no local files of a `file.ptr` are
 * allowed, and other options have the defaults of the configuration. */
void origin_init(const struct origin_options *options);

/* Frees everything. No list or fetch may be running. */
void origin_close(void);

/* Invalidates cached lists of files and artifacts from Sentry, sizes of symstore indexes, and build ids. */
void origin_clear_caches(void);

enum file_type {
    FILE_PE,
    FILE_PDB,
    FILE_PORTABLEPDB,
    FILE_MACH_DEBUG,
    FILE_MACH_CODE,
    FILE_ELF_DEBUG,
    FILE_ELF_CODE,
    FILE_WASM_DEBUG,
    FILE_WASM_CODE,
    FILE_BREAKPAD,
    FILE_SOURCEBUNDLE,
    FILE_UUIDMAP,
    FILE_BCSYMBOLMAP,
    FILE_IL2CPP,
    FILE_PROGUARD,
    FILE_TYPES
};
const char *file_type_name(enum file_type type);
bool file_type_parse(struct sl_str name, enum file_type *type);
/* Sets `*type` to the type under which lookups request a file of the format; false if there is none. */
bool file_type_for_format(enum sl_format format, bool has_debug_info, enum file_type *type);

enum object_type { OBJECT_UNKNOWN, OBJECT_ELF, OBJECT_MACHO, OBJECT_PE, OBJECT_PE_DOTNET, OBJECT_WASM, OBJECT_TYPES };
const char *object_type_name(enum object_type type);
enum sl_format object_type_format(enum object_type type); /* format of its programs */
/* Returns the types of files that may have the debug information of a module of this type, best first. */
const enum file_type *object_type_files(enum object_type type, size_t *count);
enum object_type object_type_parse(struct sl_str name);

/* A module in lookups. Empty text = absent. */
struct object_id {
    enum object_type type;
    struct sl_str code_id; /* normalised: lower-case hex */
    struct sl_str code_file, debug_file, debug_checksum;
    struct sl_debug_id debug_id;
    bool has_debug_id;
    enum sl_arch arch; /* of the process that loaded it; SL_ARCH_UNKNOWN: unknown. Not part of cache keys */
};

enum source_type { SOURCE_FILESYSTEM, SOURCE_HTTP, SOURCE_S3, SOURCE_GCS, SOURCE_SENTRY };
enum layout_type {
    LAYOUT_NATIVE,
    LAYOUT_SYMSTORE,
    LAYOUT_SYMSTORE_INDEX2,
    LAYOUT_SSQP,
    LAYOUT_DEBUGINFOD,
    LAYOUT_UNIFIED,
    LAYOUT_SLASHSYMBOLS,
    LAYOUT_MOZILLA, /* layout of Mozilla's symbol servers; cannot be configured */
    /* The unified layout, and after each of its paths one by the debug id, for files that have no code id of their own, such as
     * Breakpad files of Linux programs; cannot be configured. */
    LAYOUT_UPLOADS,
};
extern const char *const layout_type_words[]; /* words of configurations, "native" ...; ends with NULL */
bool layout_type_parse(struct sl_str name, enum layout_type *type);
/* CASING_INSENSITIVE: path names match in any case; filesystem sources only. */
enum layout_casing { CASING_DEFAULT, CASING_LOWERCASE, CASING_UPPERCASE, CASING_INSENSITIVE };

enum { LAYOUT_MAX_PATHS = 12 }; /* per file type */

/* A file of a directory that is not stored according to a layout. */
struct indexed_file {
    struct sl_str path;    /* relative to the source's path */
    struct sl_str version; /* changes if the file is replaced */
    /* Size of the fetched file; 0 = unknown, or the file may lack the code or debug information that is wanted. */
    uint64_t size;
};
struct remote_file;
/* Errors that `find` of struct source_index returns instead of a number of files. */
#define INDEX_BUSY       SIZE_MAX       /* memory is short */
#define INDEX_UNREADABLE (SIZE_MAX - 1) /* the index cannot be read now */
struct source_index {
    /* Finds the files of the type, best first, at most LAYOUT_MAX_PATHS; texts lie in the arena. Or returns INDEX_BUSY or
     * INDEX_UNREADABLE. */
    size_t (*find)(const struct source_index *index, const struct object_id *id, enum file_type type,
                   struct sl_arena *arena, struct indexed_file *files);
    /* Finds the file whose path is that of `file`, which `find` has listed, with `suffix` appended, in the same package. If there is none
     * and the path of `file` ends with ".debug", tries the path with `suffix` instead of that. Returns the number of files, 0 or 1, or
     * INDEX_BUSY. NULL: files have no names of their own. */
    size_t (*find_companion)(const struct source_index *index, const struct remote_file *file, const char *suffix,
                             struct sl_arena *arena, struct indexed_file *found);
    /* Writes a file that `find` has listed into `fd`, which is empty; errors are those of fetch_get(). NULL: all listed files are files of
     * the source's directory. */
    enum sl_code (*fetch)(const struct source_index *index, const struct remote_file *file, int fd,
                          struct sl_error *error) SL_SUSPENDS;
};

struct source {
    struct sl_str id;
    enum source_type type;
    enum layout_type layout;
    enum layout_casing casing;
    uint32_t filetypes; /* bit per enum file_type; 0 = all */
    struct sl_str *path_patterns;
    size_t path_pattern_count;
    /* requires_checksum: asked only for modules with a debug_checksum; is_public: its cached files serve all scopes; has_index: `000Admin`
     * lists its files (symstore); file_ptr: a `file.ptr` in a file's directory is followed */
    bool requires_checksum, is_public, has_index, file_ptr;
    bool configured;   /* by the operator; false: named by a request */
    bool hides_misses; /* responses do not list files that it does not have as candidates */
    bool internal;     /* may connect to reserved addresses; http: only to its own host, not to redirect targets */
    unsigned attempts; /* of a download: 0 = three, else this many, with longer pauses */
    /* filesystem */
    struct sl_str path;
    const struct source_index *index; /* replaces the layout; must outlive everything; NULL: use the layout */
    /* http, sentry */
    struct sl_str url; /* as configured */
    struct fetch_header *headers;
    size_t header_count;
    bool accept_invalid_certs;
    struct sl_secret token, cookies;
    /* s3, gcs */
    struct bucket_config bucket;
};

struct source_policy { /* what a request may name; for configurations all are true */
    /* configuration: it is not a request; filesystem: directories; ambient_credentials: keys of the machine for S3; internal_sentry: Sentry
     * at reserved addresses */
    bool configuration, filesystem, ambient_credentials, internal_sentry;
    const struct sl_str *sentry_hosts; /* hosts of Sentry sources, "*.example.com", too; none = any */
    size_t sentry_host_count;
};

/* Returns a number that is unique for each list of sources in this process; caches use it as key. Any thread. */
uint64_t source_list_number(void);

/* Reads a list of sources into the arena; unknown keys are ignored. Problems are reported with paths below `path`
 * ("sources"). SL_MALFORMED if any is an error, SL_BUSY if out of memory. */
enum sl_code source_parse_list(struct sl_arena *arena, const struct value *list, const char *path,
                               const struct source_policy *policy, struct source **sources, size_t *count,
                               struct value_problems *problems);

/* Reads a list of sources, the next JSON value in `j`, into the reader's arena; stops at the first source with an error. Texts are views of
 * the document. Codes are those of source_parse_list, and of the JSON reader. */
enum sl_code source_read_list(struct sl_json *j, const char *path, const struct source_policy *policy,
                              struct source **sources, size_t *count, struct value_problems *problems);

/* Reads one Sentry source; ignores its `type`. */
enum sl_code source_read_sentry(struct sl_json *j, const char *path, const struct source_policy *policy,
                                struct source *source, struct value_problems *problems);

struct remote_file {
    const struct source *source;
    enum file_type type;
    struct sl_str path;     /* relative to the source, as in layouts; Sentry: the file's id */
    struct sl_str location; /* `path` with the prefix of a bucket */
    struct sl_str uri;      /* location shown for candidates and part of the cache key; no secrets */
    struct sl_str url;      /* Sentry: download URL, NUL-terminated; empty = fetch by id */
    struct sl_str checksum; /* sent to HTTP sources if not empty; for indexed files the version */
    uint64_t max_size;      /* 0 = max_download_size */
    uint64_t known_size;    /* indexed_file.size, for files of an index; 0 = unknown */
    bool pointer;           /* a `file.ptr`: only used if no other file of its directory exists */
    bool may_be_empty;      /* false for symbol files, which are never empty */
    bool may_be_page;       /* may be HTML; true for files that may be any text */
    /* Values of X-Forwarded-For and Via towards servers of layout debuginfod: the clients on whose behalf it is fetched, and the
     * servers that have passed the request on. Empty: not sent. Not part of cache keys */
    struct sl_str forwarded_for, via;
};

/* Sets `paths` to the relative paths of one file type in one layout, best first, in the source's casing, with those of compressed files
 * (`crash.pd_`). Returns their number, at most LAYOUT_MAX_PATHS; SIZE_MAX when out of memory. Texts lie in the arena. */
size_t layout_paths(struct sl_arena *arena, enum layout_type layout, enum layout_casing casing,
                    const struct object_id *id, enum file_type type, struct sl_str paths[LAYOUT_MAX_PATHS]);

/* Converts a path of a symbol store, `<name>/<id>/<file>` as in "crash.pdb/<id>/crash.pdb", to an object id and a file type; false if it
 * has another form. */
bool layout_reverse(struct sl_arena *arena, struct sl_str path, struct object_id *id, enum file_type *type);

/* Lists all files that the source may have for the id, ordered by `types`, then by layout path. The source's filters are applied; its
 * symstore index, if any, is not consulted. Suspends only for Sentry sources, whose failures are returned. */
enum sl_code origin_list(const struct source *source, const struct object_id *id, const enum file_type *types,
                         size_t type_count, struct sl_arena *arena, struct remote_file **files, size_t *count,
                         struct sl_error *error) SL_SUSPENDS;

/* Finds the build id (code id) of an ELF file whose debug id is known, from the names in a source's directory.
 * Cached for an hour, misses for a minute. SL_NOT_FOUND: the directory has none, or the source cannot be listed; other codes: it could
 * not be read. */
enum sl_code origin_build_id(const struct source *source, const struct object_id *id, struct sl_arena *arena,
                             struct sl_str *build_id) SL_SUSPENDS;

/* origin_glob_valid: true if the pattern is a glob. origin_glob: true if it matches the whole text (ASCII case is ignored;
 * '*' and '?' also match '/'). */
bool origin_glob_valid(struct sl_str pattern);
bool origin_glob(struct sl_str pattern, struct sl_str subject);

/* Opens a file below the directory `root`, whatever symbolic links `path` contains: none may lead out of it. Returns -1 and
 * sets errno on failure. Pool work. */
int filesystem_open(const char *root, const char *path);
/* Copies a file of a SOURCE_FILESYSTEM into `fd` and decompresses it. Unlike origin_fetch, records no result for the source. */
enum sl_code filesystem_fetch(const struct remote_file *file, int fd, struct sl_error *error) SL_SUSPENDS;

/* Downloads or copies the file into `fd` (empty, read-write) and decompresses it. Errors are those of fetch_get(). */
enum sl_code origin_fetch(const struct remote_file *file, int fd, struct sl_error *error) SL_SUSPENDS;

/* Does what origin_fetch does, and appends the header fields X-DEBUGINFOD-FILE, -ARCHIVE and -IMASIGNATURE of a response from a source of
 * layout debuginfod to `note` (ORIGIN_NOTE_BYTES, empty at first), as lines "FILE: libx.so\n". `note` may be NULL. */
enum { ORIGIN_NOTE_BYTES = 2048 };
enum sl_code origin_fetch_noting(const struct remote_file *file, int fd, char *note,
                                 struct sl_error *error) SL_SUSPENDS;
/* Returns a field, "FILE", "ARCHIVE" or "IMASIGNATURE", of a note made by origin_fetch_noting; empty if it is not there. `note` may be
 * NULL. */
struct sl_str origin_note_field(const char *note, const char *name);

/* True for HTTP servers of layout debuginfod: they get X-Forwarded-For, and are not asked when a request was forwarded too often. */
bool origin_is_upstream(const struct source *source);

/* Sets `*companion` to the file `<path of file><suffix>` of the same source. SL_NOT_FOUND if the source has
 * an index that does not list it, or has ids instead of paths, as Sentry. Whether the file exists is not checked otherwise. SL_BUSY when out
 * of memory. */
enum sl_code origin_companion(const struct remote_file *file, const char *suffix, struct sl_arena *arena,
                              struct remote_file *companion, struct sl_error *error);

/* Sets `*file` to the file at a path of the source, which need not follow the source's layout. Not for Sentry. False if out of memory. */
bool origin_file_at(const struct source *source, enum file_type type, struct sl_str path, struct sl_arena *arena,
                    struct remote_file *file);

/* ---- indexes of symstore sources: `000Admin` lists every file that was ever added ---- */
bool origin_has_index(const struct source *source);
/* Sets `*last` to the number of the last segment, which is the file of one transaction; cached for a day, errors for ten minutes. `scope`:
 * the request's, for the cache key. */
enum sl_code origin_index_last(const struct source *source, struct sl_str scope, uint32_t *last,
                               struct sl_error *error) SL_SUSPENDS;
/* Sets `*file` to segment `n` of the index, the file of its n-th transaction. False if out of memory. */
bool origin_index_segment(const struct source *source, uint32_t n, struct sl_arena *arena, struct remote_file *file);
/* Appends the paths listed in a segment, the file of one transaction, as lines "<name>/<id>/<name>\n"; returns the number of its lines
 * that could not be parsed. */
size_t origin_index_read(struct sl_bytes segment, struct sl_buf *lines);
/* Sorts the lines by bytes and removes duplicates. Returns false if out of memory. Pool work. */
bool origin_index_sort(struct sl_buf *lines);
/* Finds a path in the sorted lines and returns it as written there; an exact match is preferred, case is ignored.
 * Data NULL: not found. */
struct sl_str origin_index_find(struct sl_bytes lines, struct sl_str path);
/* Changes the path of the file within its source. Returns false if out of memory. */
bool origin_set_path(struct remote_file *file, struct sl_str path, struct sl_arena *arena);
/* Returns the location of the source's root, without secrets. It distinguishes sources with the same id. */
struct sl_str origin_root(const struct source *source, struct sl_arena *arena);

/* Returns the source's label in metrics: its id if it is configured or built in, else "custom", because requests can
 * name any number of sources. In the arena; NULL if out of memory. */
const char *origin_label(struct sl_arena *arena, const struct source *source);

/* Returns the scope of the file's cache entries: "global" if its source is public, else `scope`, that of the request. */
struct sl_str origin_scope(const struct remote_file *file, struct sl_str scope);
