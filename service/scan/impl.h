/* Shared by the files of this folder. Private. */
#pragma once

#include "base/file.h"
#include "conversion/conversion.h"
#include "scan/converters.h"
#include "scan/scan.h"

/* ---- a scan: an entry of `debuginfod.scan`, from the first configuration that has so many to the end of the process ---- */

/* An index in memory: the mapped file. Reference-counted, as a pass or a look-up may use it while a new one is published. */
struct scan_index {
    unsigned references;
    struct sl_mapping mapping;
    struct sl_index index;
    uint64_t inode;
    int64_t mtime_ns;
};

struct scan {
    struct source_index source; /* of its sources; first member */
    size_t number;
    bool exists; /* in the current configuration */
    char id[16];
    struct config_scan config; /* its texts are those of the current configuration */
    uint64_t key;              /* identifies what is scanned: hash of path, filters and kinds */
    struct scan_index *index;  /* NULL: none yet */
    uint64_t due_ms;           /* when the next pass begins; UINT64_MAX: not by itself */
    bool running, wanted;      /* a pass runs; another one is to follow at once */
    uint64_t next_warning_ms;  /* loop_minutely, for an index that cannot be used */
    struct scan_state state;   /* its texts id, path are unused */
};

extern struct scan scans[CONFIG_MAX_SCANS];
extern const struct config *scan_config; /* the current one */
extern atomic_bool scan_is_stopping;     /* any thread */

struct scan *scan_of_source(struct sl_str id); /* by the id of its source; NULL: it is none of a scan */

/* ---- index.c ---- */

/* Opens the index on disk if it is another one than that in use; true if it was replaced. */
bool scan_index_refresh(struct scan *scan) SL_SUSPENDS;
/* Publishes an index and uses it. Without a cache_dir it stays in memory. */
enum sl_code scan_index_publish(struct scan *scan, uint64_t key, struct sl_bytes bytes,
                                struct sl_error *error) SL_SUSPENDS;
struct scan_index *scan_index_retain(struct scan *scan); /* NULL if there is none */
void scan_index_release(struct scan_index *index);
void scan_index_forget(struct scan *scan); /* its files are no longer found */

size_t scan_find(const struct source_index *source, const struct object_id *id, enum file_type type,
                 struct sl_arena *arena, struct indexed_file *files);

size_t scan_find_companion(const struct source_index *source, const struct remote_file *file, const char *suffix,
                           struct sl_arena *arena, struct indexed_file *found);

/* ---- the version of an indexed file: tells where it is, and what it was when it was scanned (place.c) ----
 *
 *     123 1700000000000000000              a file by itself: size and time
 *     123 1700000000000000000 27 512 6232  a member: length of the package's path, offset and size of the member
 *
 * The path of a member is "<path of the package>!<path of the member>". */
struct scan_place {
    uint64_t file_size;
    int64_t mtime_ns;
    bool is_member;
    uint64_t package_path_size, offset, size;
};
bool scan_place_parse(struct sl_str version, struct scan_place *place);
/* Formats path and version in the arena; false when out of memory. */
bool scan_place_format(const struct sl_index_file *file, struct sl_str member, uint64_t offset, uint64_t size,
                       struct sl_arena *arena, struct indexed_file *out);

/* ---- record.c ---- */
struct scan_file_request {
    struct sl_str scan_id, root, path; /* NUL-terminated; path: relative to root */
    uint64_t size;
    int64_t mtime_ns;
    unsigned kinds;
    bool is_background; /* for a pass; false: a request waits for it */
};
/* Gets the record of a file. SL_MALFORMED: it is nothing that is scanned, or damaged; SL_NOT_FOUND: it is gone;
 * SL_DOWNLOAD_ERROR: it has changed. */
enum sl_code scan_record_get(const struct scan_file_request *request, struct sl_arena *arena, struct cache_item **item,
                             struct sl_error *error) SL_SUSPENDS;
/* Opens the file if it still is as it was scanned; -1 with the error. Pool. */
int scan_open_unchanged(const char *root, const char *path, uint64_t size, int64_t mtime_ns, struct sl_error *error);

/* ---- member.c ---- */
enum sl_code scan_fetch(const struct source_index *index, const struct remote_file *file, int fd,
                        struct sl_error *error) SL_SUSPENDS;
void scan_members_forget(void);

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
    bool
        is_incomplete; /* some of these may be readable at another time: files that were not found may still be there */
    bool too_many;     /* some were left out */
};
/* Finds the regular files below the root. SL_DOWNLOAD_ERROR: it cannot be read. The caller frees files and paths. Pool. */
enum sl_code scan_walk(void *walk, struct sl_error *error);
