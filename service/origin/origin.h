/* Where files come from: sources, directory layouts, and getting one remote file.
 *
 * A *source* is configured or named by a request. For an object id and a list of file types it lists *remote files*
 * (location and URI) by its layout, or by Sentry's list; `origin_fetch` gets one of them. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "core/fiber.h"
#include "core/secret.h"
#include "core/value.h"
#include "fetch/fetch.h"
#include "id/id.h"
#include "object/object.h"
#include "objectstore/objectstore.h"

struct origin_options { /* of the process; what it points to must stay */
    size_t sentry_index_capacity, gcs_token_capacity, s3_client_capacity; /* entries */
    uint64_t sentry_index_ttl_ns;
    const struct sl_str *file_ptr_roots; /* directories in which files that a `file.ptr` names may lie */
    size_t file_ptr_root_count;
    const struct text_pair *unc_map; /* "\\\\server\\share" is mounted at a directory */
    size_t unc_map_count;
    bool propagate_traces; /* Sentry hears of which trace a request is a part (fiber_set_trace) */
};
/* May be called again: what is remembered stays, as much of it as the new options allow. Without it nothing a
 * `file.ptr` names is a local file, and the rest has the defaults of the configuration. */
void origin_init(const struct origin_options *options);

/* Forgets everything. Nothing may be listed or fetched. */
void origin_close(void);

/* Lists of Sentry and sizes of indexes are asked for again when they are needed next. */
void origin_forget(void);

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
/* The type by which look-ups ask for a file of the format. False when none does. */
bool file_type_of(enum sl_format format, bool has_debug_info, enum file_type *type);

enum object_type { OBJECT_UNKNOWN, OBJECT_ELF, OBJECT_MACHO, OBJECT_PE, OBJECT_PE_DOTNET, OBJECT_WASM, OBJECT_TYPES };
const char *object_type_name(enum object_type type);
enum sl_format object_type_format(enum object_type type); /* of its programs */
/* The files that may have the debug information of such a module, the best first. */
const enum file_type *object_type_files(enum object_type type, size_t *count);
enum object_type object_type_parse(struct sl_str name);

/* A module as look-ups see it. Empty text = absent. */
struct object_id {
    enum object_type type;
    struct sl_str code_id; /* normalised: lower-case hex */
    struct sl_str code_file, debug_file, debug_checksum;
    struct sl_debug_id debug_id;
    bool has_debug_id;
    enum sl_arch arch; /* of the process that has it loaded; SL_ARCH_UNKNOWN: not known. No part of cache keys */
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
    LAYOUT_MOZILLA, /* of Mozilla's symbol servers; no word stands for it */
};
extern const char *const layout_type_words[]; /* "native" and so on, as configurations have it; NULL ends them */
bool layout_type_parse(struct sl_str name, enum layout_type *type);
/* CASING_INSENSITIVE: the names of a directory count in whatever case they are written; of filesystem sources only. */
enum layout_casing { CASING_DEFAULT, CASING_LOWERCASE, CASING_UPPERCASE, CASING_INSENSITIVE };

enum { LAYOUT_MAX_PATHS = 12 }; /* of one file type */

/* What lies in a directory at no place that a layout knows. */
struct indexed_file {
    struct sl_str path;    /* relative to the source's */
    struct sl_str version; /* tells it from what lay there before */
};
struct source_index {
    /* The files of the type, best first, at most LAYOUT_MAX_PATHS; texts in the arena. */
    size_t (*find)(const struct source_index *index, const struct object_id *id, enum file_type type,
                   struct sl_arena *arena, struct indexed_file *files);
};

struct source {
    struct sl_str id;
    enum source_type type;
    enum layout_type layout;
    enum layout_casing casing;
    uint32_t filetypes; /* bit per enum file_type; 0 = all */
    struct sl_str *path_patterns;
    size_t path_pattern_count;
    bool requires_checksum, is_public, has_index, file_ptr;
    bool configured;   /* by the operator, not named by a request */
    bool internal;     /* may connect to reserved addresses; http: at its own host, not where that redirects to */
    unsigned attempts; /* as that of struct fetch_request */
    /* filesystem */
    struct sl_str path;
    const struct source_index *index; /* instead of the layout; must outlive everything; NULL: none */
    /* http, sentry */
    struct sl_str url; /* as given */
    struct fetch_header *headers;
    size_t header_count;
    bool accept_invalid_certs;
    struct sl_secret token, cookies;
    /* s3, gcs */
    struct bucket_config bucket;
};

struct source_policy { /* what a request may name; all true for the configuration */
    bool configuration, filesystem, ambient_credentials, internal_sentry;
    const struct sl_str *sentry_hosts;
    size_t sentry_host_count;
};

/* A number that no other list of sources of this process has: what is remembered by it belongs to that list. Any thread. */
uint64_t source_list_number(void);

/* Reads a list of sources into the arena; unknown keys are ignored. Problems are reported with paths below `path`
 * ("sources"); the code is SL_MALFORMED if there was an error, SL_BUSY when out of memory. */
enum sl_code source_parse_list(struct sl_arena *arena, const struct value *list, const char *path,
                               const struct source_policy *policy, struct source **sources, size_t *count,
                               struct value_problems *problems);

/* The same out of the JSON that comes next in `j`, into the reader's arena; ends at the first source with an error. Texts are
 * views of the document. */
enum sl_code source_read_list(struct sl_json *j, const char *path, const struct source_policy *policy,
                              struct source **sources, size_t *count, struct value_problems *problems);

/* One that is a Sentry source, whatever its `type` says. */
enum sl_code source_read_sentry(struct sl_json *j, const char *path, const struct source_policy *policy,
                                struct source *source, struct value_problems *problems);

struct remote_file {
    const struct source *source;
    enum file_type type;
    struct sl_str path;     /* relative to the source, as layouts make it; of Sentry sources the file's id */
    struct sl_str location; /* the same below the prefix of a bucket */
    struct sl_str uri;      /* candidate location and part of the cache key; no secrets */
    struct sl_str url;      /* of Sentry sources: where it lies, terminated; empty = asked for by its id */
    struct sl_str checksum; /* sent to HTTP sources when not empty; of an index the version */
    uint64_t max_size;      /* 0 = max_download_size */
    bool pointer;           /* a `file.ptr`: of use when no other file of its directory is there */
    bool may_be_empty;      /* no file of symbols is */
    bool may_be_page;       /* of HTML: any text may be */
};

/* The relative paths of one file type in one layout, best first, post-processed (casing, `_` variants). At most
 * LAYOUT_MAX_PATHS. Texts in the arena. */
size_t layout_paths(struct sl_arena *arena, enum layout_type layout, enum layout_casing casing,
                    const struct object_id *id, enum file_type type, struct sl_str paths[LAYOUT_MAX_PATHS]);

/* `path` of a symbol proxy request ("crash.pdb/<id>/crash.pdb") to what is asked for; false = not found. */
bool layout_reverse(struct sl_arena *arena, struct sl_str path, struct object_id *id, enum file_type *type);

/* Everything the source may hold for the id, in the order of `types` and paths. Filters are applied, an index is not.
 * Suspends only for Sentry sources, whose failure is an error. */
enum sl_code origin_list(const struct source *source, const struct object_id *id, const enum file_type *types,
                         size_t type_count, struct sl_arena *arena, struct remote_file **files, size_t *count,
                         struct sl_error *error) SL_SUSPENDS;

/* The build id (a code id) of an ELF file of which only the debug id is known, if the source is a directory that has one of its
 * name; remembered for an hour, misses for a minute. */
bool origin_build_id(const struct source *source, const struct object_id *id, struct sl_arena *arena,
                     struct sl_str *build_id) SL_SUSPENDS;

/* Whether the whole-string glob matches (ASCII without case, '*' and '?' match '/' too). */
bool origin_glob_valid(struct sl_str pattern);
bool origin_glob(struct sl_str pattern, struct sl_str subject);

/* Downloads or copies the file into `fd` (empty, read-write). Same errors as fetch_get. The contents are unwrapped. */
enum sl_code origin_fetch(const struct remote_file *file, int fd, struct sl_error *error) SL_SUSPENDS;

/* ---- indexes of symstore sources: `000Admin` names every file that was ever added ---- */
bool origin_has_index(const struct source *source);
/* The number of the last segment, remembered for a day; an error for ten minutes. `scope` as in the request. */
enum sl_code origin_index_last(const struct source *source, struct sl_str scope, uint32_t *last,
                               struct sl_error *error) SL_SUSPENDS;
/* The segment `n`, counted from 1, as a remote file. False when out of memory. */
bool origin_index_segment(const struct source *source, uint32_t n, struct sl_arena *arena, struct remote_file *file);
/* Appends the paths that a segment names, "<name>/<id>/<name>\n" each; returns how many of its lines name none. */
size_t origin_index_read(struct sl_bytes segment, struct sl_buf *lines);
/* Sorts the lines by bytes, each once. False when out of memory. Pool work. */
bool origin_index_sort(struct sl_buf *lines);
/* The path as the sorted lines have it, in any case if need be; data NULL when they do not. */
struct sl_str origin_index_find(struct sl_bytes lines, struct sl_str path);
/* Gives the file another path of the same source. False when out of memory. */
bool origin_move(struct remote_file *file, struct sl_str path, struct sl_arena *arena);
/* What tells sources of the same id apart: the location of their root, without secrets. */
struct sl_str origin_root(const struct source *source, struct sl_arena *arena);

/* The source as the label of metrics: its id, but "custom" for those of requests, of which there is no end, unless they
 * are built in. In the arena; NULL when out of memory. */
const char *origin_label(struct sl_arena *arena, const struct source *source);

/* The scope its cache entries have: "global" for public sources, else the request's. */
struct sl_str origin_scope(const struct remote_file *file, struct sl_str scope);
