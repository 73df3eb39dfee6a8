/* Shared by the files of this folder. Private. */
#pragma once

#include "base/file.h"
#include "conversion/conversion.h"
#include "scan/converters.h"
#include "scan/scan.h"

/* ---- a scan: a directory of `debuginfod.scan`; a pass reads what is new in it and makes its index ---- */

/* An index in memory: the mapped file. Reference-counted, as a look-up, or the next reading of the directory, may use it while a new index
 * is published. */
struct scan_index {
    unsigned references;
    struct sl_mapping mapping;
    struct sl_index index;
    uint64_t inode;
    int64_t mtime_ns;
};

struct scan {
    struct source_index source; /* first, so that a pointer to it is one to its scan, too */
    size_t number;
    bool exists; /* in the current configuration; the structure stays when the entry is removed */
    char id[16];
    struct config_scan config; /* its texts are those of the current configuration */
    uint64_t key;              /* identifies what is scanned: hash of path, filters and kinds */
    struct scan_index *index;  /* NULL: none yet */
    uint64_t due_ms;           /* when the directory is read next; UINT64_MAX: only on request (scan_request_pass) */
    bool running, wanted;      /* the directory is being read; it is to be read again at once after that */
    uint64_t next_warning_ms;  /* limits log lines about an index that cannot be used (loop_minutely) */
    struct scan_state state;   /* its texts id, path are unused */
};

extern struct scan scans[CONFIG_MAX_SCANS];
extern const struct config *scan_config; /* the current one */
extern atomic_bool scan_is_stopping;     /* any thread */

struct scan *scan_of_source(struct sl_str id); /* the scan of the source with this id, "scan:<n>"; NULL: none */

/* ---- index.c ---- */

/* Opens the index on disk if it is not the one in use; true if that was replaced. */
bool scan_index_refresh(struct scan *scan) SL_SUSPENDS;
/* Writes `bytes`, an index, to its file for all processes and uses it, unless the scan's configuration, and with that its key, has changed
 * meanwhile. Without a cache_dir the index stays in memory. */
enum sl_code scan_index_publish(struct scan *scan, uint64_t key, struct sl_bytes bytes,
                                struct sl_error *error) SL_SUSPENDS;
struct scan_index *scan_index_retain(struct scan *scan); /* NULL if there is none */
void scan_index_release(struct scan_index *index);
void scan_index_forget(struct scan *scan); /* drops the index in use: the scan's files are no longer found */

/* `find` of struct source_index: finds indexed files by the ids of a module. */
size_t scan_find(const struct source_index *source, const struct object_id *id, enum file_type type,
                 struct sl_arena *arena, struct indexed_file *files);

/* `find_companion` of struct source_index: finds the file beside `file`, in the same package. */
size_t scan_find_companion(const struct source_index *source, const struct remote_file *file, const char *suffix,
                           struct sl_arena *arena, struct indexed_file *found);

/* ---- the version of an indexed file: where the file is, and its size and time when it was scanned (place.c) ----
 *
 *     123 1700000000000000000              a file by itself: its size and time
 *     123 1700000000000000000 27 512 6232  a member: size and time of the package, length of its path, offset and size of the member
 *
 * The path of a member is "<path of the package>!<path of the member>". */
struct scan_place {
    uint64_t file_size;
    int64_t mtime_ns;
    bool is_member;
    uint64_t package_path_size, offset, size;
};
bool scan_place_parse(struct sl_str version, struct scan_place *place);
/* Sets path and version of `out` for the scanned file or, if `member` is not empty, for that member of it; texts lie in the arena. False
 * when out of memory. */
bool scan_place_format(const struct sl_index_file *file, struct sl_str member, uint64_t offset, uint64_t size,
                       struct sl_arena *arena, struct indexed_file *out);

/* ---- record.c ---- */
struct scan_file_request {
    struct sl_str scan_id, root, path; /* NUL-terminated; path: relative to root */
    uint64_t size;
    int64_t mtime_ns;
    unsigned kinds;
    bool is_background; /* for the reading of the directory; false: a request waits for it */
};
/* Gets the record of a file, the list of the debug files and source texts in it, from the cache or by reading the file. SL_MALFORMED: the
 * file is neither a debug file nor a package, or damaged; SL_NOT_FOUND: it is gone; SL_DOWNLOAD_ERROR: it has changed. */
enum sl_code scan_record_get(const struct scan_file_request *request, struct sl_arena *arena, struct cache_item **item,
                             struct sl_error *error) SL_SUSPENDS;
/* Opens the file if it still has this size and time; -1 with the error. Pool work. */
int scan_open_unchanged(const char *root, const char *path, uint64_t size, int64_t mtime_ns, struct sl_error *error);

/* ---- member.c ---- */
/* `fetch` of struct source_index: writes an indexed file, also one in a package, to `fd`. */
enum sl_code scan_fetch(const struct source_index *index, const struct remote_file *file, int fd,
                        struct sl_error *error) SL_SUSPENDS;
void scan_members_forget(void); /* drops the members that are kept for later requests (scan.prefetch) */

/* ---- walk.c ---- */
struct scan_found_file {
    uint64_t size;
    int64_t mtime_ns;
    uint32_t path; /* offset in `paths` */
};
struct scan_walk {
    const char *root, *include, *exclude;
    struct sl_buf paths; /* NUL-terminated */
    struct scan_found_file *files;
    size_t count, capacity;
    uint64_t unreadable; /* files and directories that could not be examined */
    bool is_incomplete; /* some of the unreadable ones may be readable later: files in them must not count as removed */
    bool too_many;      /* files were left out, as there are too many */
};
/* Finds the regular files below the root; `walk` is a struct scan_walk. SL_DOWNLOAD_ERROR: the root cannot be read. The caller frees files
 * and paths. Pool work. */
enum sl_code scan_walk(void *walk, struct sl_error *error);
