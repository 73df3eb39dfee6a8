/* Scanned directories: each entry of `debuginfod.scan` is a source, id `scan:<n>`, whose files are found by their contents.
 *
 *     walk.c    lists the files of the directory, with path, size and time
 *     record.c  cache kind `scan_file`: what is in one file or package, as an index of one file (package/index.h)
 *     pass.c    reads new and changed files; merges all records into the directory's index, `<cache_dir>/scan/<key>.slix`
 *     index.c   maps the index into memory and finds files by their ids for searches
 *     place.c   the version text of a listed file: its size and time, and its offset in a package
 *     member.c  takes a member out of a package when a search wants it
 *     source.c  finds source texts in packages, and files by their path
 *     named.c   finds the ids of modules by their name
 *     scan.c    when passes run, and their state
 *
 *     identify.c, extract.c   converters (conversion/converter.h) for record.c and member.c: only these two parse packages
 *
 *     /srv/mirror/bash-dbgsym_5.2_amd64.ddeb ──identify──▶ record: build id 17ef.. at offset 1536 ──pass──▶ index
 *     search for build id 17ef.. ──index──▶ that package and offset ──extract──▶ the debug file, as an entry of the cache
 *
 * One process of the service scans; the others notice a new index within seconds. Nothing is lost when the process dies in a
 * pass: records are cache entries, and the index is replaced by a rename. All functions: loop thread. */
#pragma once

#include "cache/cache.h"
#include "config/config.h"
#include "origin/origin.h"
#include "package/index.h"

/* Sets up the scans of a configuration: the first one or, after a reload, a new one. Each scan's source gets the scan's index. Call it
 * before the configuration is used; only in the service and in `symloom scan`. `config` must live until the next call has returned. */
void scan_configure(struct config *config);

/* Opens the indexes that earlier passes have written, so that the first requests can use them. */
void scan_open(void) SL_SUSPENDS;

/* Run in a fiber: scans each directory whenever its interval has passed, until the fiber is cancelled. In processes other than the first
 * it only opens the indexes that the first one publishes. `unused` is NULL. */
void scan_run(void *unused) SL_SUSPENDS;

/* Requests a pass over every scanned directory: it begins at once or, if a pass over the directory is running, after that one. */
void scan_request_pass(void);

/* Runs one pass in the running fiber: finds the directory's files, reads the new and changed ones, publishes the index. `scan` is the
 * scan's number in the configuration, from 0 on. SL_DOWNLOAD_ERROR: the directory cannot be read; SL_BUSY; SL_CANCELLED. */
enum sl_code scan_pass(size_t scan, struct sl_error *error) SL_SUSPENDS;

/* Frees all scans, at the end of the process. */
void scan_close(void);

/* ---- state ---- */
struct scan_state {
    struct sl_str id, path; /* valid until the next call of scan_configure */
    const char *state;      /* "idle", "walking", "reading", "writing"; "watching" in other processes */
    /* Numbers of files of the running or last pass: found in the directory; dealt with so far, unchanged ones included; read. */
    uint64_t files, done, new_files;
    uint64_t packages, failed, skipped; /* of new and changed files; skipped: neither a debug file nor a package */
    uint64_t ids, indexed_files;        /* in the index */
    uint64_t index_bytes;
    int64_t last_pass_s;   /* when the last pass ended, seconds since the epoch; 0 = none has */
    uint64_t last_pass_ms; /* its duration */
    char last_error[496];  /* of the last pass; empty = none */
};
/* Gets the state of the scan with this number in the configuration, from 0 on; false if there are not so many scans. */
bool scan_get_state(size_t scan, struct scan_state *state);

/* ---- look-ups for the debuginfod API ---- */

/* Finds the source text `path` (as it stands in debug information) of the program with this build id. Searches the source texts of all
 * packages that were built from the same source package as the program. The item's contents are UTF-8. SL_NOT_FOUND: there is no such
 * text, or several with different paths fit equally well. */
enum sl_code scan_find_source(struct sl_bytes build_id, struct sl_str path, struct sl_arena *arena,
                              struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* A file found by its path in a package or, if it is in none, its path below the scanned directory. */
struct scan_named_file {
    struct sl_index_id id; /* never cut: at most SL_INDEX_ID_BYTES long */
    bool is_executable;    /* true: the file contains code; false: only debug information */
    struct sl_str path;    /* in its package, or relative to the directory, with a slash in front */
    struct sl_str package; /* base name of the package file; empty: the file is not in a package */
};
struct scan_name_query {
    struct sl_str pattern;
    bool is_glob; /* fnmatch(3) with FNM_PATHNAME, else the exact path */
    size_t max_count;
    uint64_t max_ns; /* time limit */
};
/* Finds files that have a build id by their path; `*files` lies in the arena. `*complete` is false if a limit of the query was reached,
 * or if matching files were left out because the index has only the first SL_INDEX_ID_BYTES bytes of their ids. */
enum sl_code scan_find_by_name(const struct scan_name_query *query, struct sl_arena *arena,
                               struct scan_named_file **files, size_t *count, bool *complete,
                               struct sl_error *error) SL_SUSPENDS;

/* A file that is not in a scanned directory, but whose name may be that of a searched module. */
struct scan_other_file {
    struct sl_str path; /* or only the file's name, if its directories are unknown */
    struct sl_index_id id;
    enum sl_format format;
    int64_t mtime_ns; /* since the epoch */
};
/* A module of which only the path, or the name, is known. */
struct scan_module_query {
    struct sl_str path;
    const struct scan_other_file *others; /* compared in addition to the scanned files */
    size_t other_count;
    bool is_undecided; /* set by the caller if not all other files are known: then the module counts as not found */
    /* results */
    struct object_id *id; /* the caller's; if `found`, its type and ids are set, with texts in the arena */
    bool found;
    bool is_known; /* all files were compared: `parts` is valid */
    /* How many path components, counted from the end, the best file has in common with `path`, also if `found` is false; 0: no file
     * has the module's name. */
    size_t parts;
};
/* Finds the ids of modules by their path. Of the scanned and other files with a module's name (sl_path_module_name) those count whose
 * path has the most last components in common with the module's path. If these files have different ids, the module is not found or,
 * with `newest`, the file that was changed last is taken. After `max_ns` the search stops and the modules are not found. */
enum sl_code scan_find_modules(struct scan_module_query *queries, size_t count, bool newest, uint64_t max_ns,
                               struct sl_arena *arena, struct sl_error *error) SL_SUSPENDS;

extern const struct cache_kind kind_scan_file; /* loaded: struct sl_index */
