/* Scanned directories: each entry of `debuginfod.scan` is a source, id `scan:<n>`, whose files are found by their contents.
 *
 *     walk.c    files of the directory that are new, by path, size and time
 *     record.c  kind `scan_file`: what is in one file or package: an index of one file (package/index.h)
 *     pass.c    all records together become the index of the directory, `<cache_dir>/scan/<key>.slix`
 *     index.c   the index, mapped: finds files by their ids for searches
 *     place.c   what the index says of a file that it lists: its package, and where it is in it
 *     member.c  takes a member out of a package when a search wants it
 *     source.c  source texts of packages, and files by their path
 *     named.c   ids of modules by their name
 *     scan.c    when passes run, and their state
 *
 *     identify.c, extract.c   converters (conversion/converter.h) for record.c and member.c: only they read the packages' bytes
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

/* Gives the sources of the scans their indexes; for a new configuration too. Call it before the configuration is used; not for
 * the configurations of commands, which do not scan. `config` must outlive the next call. */
void scan_configure(struct config *config);

/* Opens the indexes that earlier passes have written, so that the first requests can use them. */
void scan_open(void) SL_SUSPENDS;

/* A fiber that scans all directories when they are due, until it is cancelled. Processes other than the first only look for new
 * indexes. `unused` is NULL. */
void scan_run(void *unused) SL_SUSPENDS;

/* Lets a pass of every scan begin now, or when the running one has ended. */
void scan_request_pass(void);

/* Makes one pass of a scan, in the running fiber. SL_DOWNLOAD_ERROR: the directory cannot be read; SL_CANCELLED. */
enum sl_code scan_pass(size_t scan, struct sl_error *error) SL_SUSPENDS;

void scan_close(void);

/* ---- state ---- */
struct scan_state {
    struct sl_str id, path; /* valid until the next call of scan_configure */
    const char *state;      /* "idle", "walking", "reading", "writing"; "watching" in other processes */
    /* Of the running or last pass: files found, examined, and read as they were new or changed. */
    uint64_t files, done, new_files;
    uint64_t packages, failed, skipped; /* among those read; skipped: neither a debug file nor a package */
    uint64_t ids, indexed_files;        /* in the index */
    uint64_t index_bytes;
    int64_t last_pass_s;   /* when the last pass ended, seconds since the epoch; 0 = none has */
    uint64_t last_pass_ms; /* its duration */
    char last_error[496];  /* of the last pass; empty = none */
};
/* False past the last scan. */
bool scan_get_state(size_t scan, struct scan_state *state);

/* ---- look-ups for the debuginfod API ---- */

/* Finds the source text `path` (as debug information has it) of the program with this build id, among the source texts of all
 * packages that were built from the same source. The item's contents are UTF-8. SL_NOT_FOUND: there is none, or several that are
 * equally likely. */
enum sl_code scan_find_source(struct sl_bytes build_id, struct sl_str path, struct sl_arena *arena,
                              struct cache_item **item, struct sl_error *error) SL_SUSPENDS;

/* A file found by its path in packages, or below the scanned directory. */
struct scan_named_file {
    struct sl_index_id id; /* complete: at most SL_INDEX_ID_BYTES */
    bool is_executable;    /* its code is in it; else it has only debug information */
    struct sl_str path;    /* in its package, or relative to the directory, with a slash in front */
    struct sl_str package; /* base name; empty: none */
};
struct scan_name_query {
    struct sl_str pattern;
    bool is_glob; /* fnmatch(3) with FNM_PATHNAME, else the exact path */
    size_t max_count;
    uint64_t max_ns; /* time limit */
};
/* Finds files with build ids by their path; they lie in the arena. `*complete` is false if a limit was reached first, or if
 * there are others whose ids are longer than the index keeps (SL_INDEX_ID_BYTES). */
enum sl_code scan_find_by_name(const struct scan_name_query *query, struct sl_arena *arena,
                               struct scan_named_file **files, size_t *count, bool *complete,
                               struct sl_error *error) SL_SUSPENDS;

/* A file that is not in a scanned directory, but has the name of a module as well. */
struct scan_other_file {
    struct sl_str path; /* or its name, if no directories are known */
    struct sl_index_id id;
    enum sl_format format;
    int64_t mtime_ns; /* since the epoch */
};
/* A module of which only the path, or the name, is known. */
struct scan_module_query {
    struct sl_str path;
    const struct scan_other_file *others; /* count like scanned files */
    size_t other_count;
    bool is_undecided;    /* there may be more others: the module is not found */
    struct object_id *id; /* if `found`: its type and ids are set; texts in the arena */
    bool found;
    bool is_known; /* all files were compared: `parts` is valid */
    size_t
        parts; /* how many last components of the best file's path are those of `path`, even if it is not found; 0: there is no file */
};
/* Finds the ids of modules among the scanned and other files that have their name (sl_path_module_name), and of those among the files
 * whose path has the most of the module's last directories. If these have different ids the module is not found, but for `newest`:
 * then the file that was changed last counts. Nothing is found if the time limit is over first: there might be others. */
enum sl_code scan_find_modules(struct scan_module_query *queries, size_t count, bool newest, uint64_t max_ns,
                               struct sl_arena *arena, struct sl_error *error) SL_SUSPENDS;

extern const struct cache_kind kind_scan_file; /* loaded: struct sl_index */
