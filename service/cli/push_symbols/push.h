/* `symloom push-symbols`: making the parts of an upload, and sending them. */
#pragma once

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "symbfile/extract.h"
#include "symbfile/fileid.h"

/* The two files of symbols (symbfiles) that are made of an executable: RANGES has functions and lines by code range, RETURNPADS by the
 * address to which each call returns (return pad). */
enum push_kind { PUSH_RANGES, PUSH_RETURNPADS, PUSH_KINDS };
extern const char *const push_kind_names[PUSH_KINDS]; /* "ranges", "returnpads" */

/* Exit statuses of push-symbols. NOTHING: an executable has no symbols, or is unusable; DENIED: the service rejected the access key. */
enum push_status { PUSH_OK = 0, PUSH_FAILED = 1, PUSH_USAGE = 2, PUSH_NOTHING = 3, PUSH_DENIED = 4 };

/* ---- executables.c ---- */
/* An executable whose symbols are to be sent. */
struct push_item {
    char *path;
    const char *name; /* the end of `path`: its name for the user and the service */
    bool named;       /* named by the user, not found in a directory or process: it is an error if it has no symbols */
};
struct push_list {
    struct push_item *items;
    size_t count, capacity;
};
/* Adds the file `path`, or the programs and libraries below the directory `path`. Returns a push_status; problems are reported. */
int push_list_path(struct push_list *list, const char *path);
/* Adds the programs and libraries that a running process has mapped. Returns a push_status; problems are reported. */
int push_list_process(struct push_list *list, const char *pid);
void push_list_free(struct push_list *list);

/* ---- parts.c ---- */
/* One part of an upload: a complete symbfile with some of an executable's records (ranges or return pads), in an unlinked file. */
struct push_part {
    int fd;
    uint64_t size, records;
    uint8_t sha256[32]; /* set by push_hash */
};

/* All parts of one kind (ranges or return pads) of an executable. */
struct push_set {
    struct push_part *parts;
    size_t count;
    uint64_t records;
    char sha256[65]; /* hash of the parts' hashes, in hexadecimal; set by push_hash */
};

/* What is sent of one executable. */
struct push_job {
    struct sl_file_id file_id;
    char build_id[129], arch[32];
    const char *code_file; /* may be NULL */
    bool has_base;
    uint64_t base;                    /* address of the executable's lowest loaded page; valid if has_base */
    bool wanted[PUSH_KINDS];          /* which kinds are to be made and sent */
    uint64_t chunk_size;              /* approximate size of a part, in bytes; UINT64_MAX: one part */
    struct push_set sets[PUSH_KINDS]; /* the parts of each kind */
};

/* Where push_extract reads the symbols of one executable. */
struct push_source {
    const char *executable, *name;        /* its path, and its name in messages */
    const char *debug_file;               /* NULL: searched if the executable has no debug information */
    const char *const *debug_directories; /* where debug_file_find searches; ends with NULL */
    /* follow_alt_link: read the supplementary debug file (dwz); force: use `debug_file` even if its build id is another one */
    bool follow_alt_link, force, verbose;
};

/* Fills `job` with what identifies an executable, and makes the parts of the wanted kinds. Returns a push_status; problems are reported. */
int push_extract(const struct push_source *source, struct push_job *job);

/* Copies the records of an existing symbfile into parts of job->chunk_size. Returns a push_status; problems are reported. */
int push_reread(const char *path, enum push_kind kind, struct push_job *job);

void push_job_free(struct push_job *job);

/* Computes the SHA-256 of each part and of all parts together, which only an upload needs. False when out of memory, or when a part cannot
 * be read. */
bool push_hash(struct push_set *set);

/* Writes `<directory>/<file id>.<kind>.symbfile` for each kind that has records, and prints the path; creates the directory, but not its
 * parents. The job must have been made with the chunk size UINT64_MAX, so that each kind has at most one part. Returns a push_status;
 * problems are reported. */
int push_save(const struct push_job *job, const char *directory);

/* ---- upload.c ---- */
enum push_progress { PUSH_SILENT, PUSH_LINES, PUSH_JSON, PUSH_BAR };

struct push_target {
    const char *url;     /* without trailing slashes */
    const char *key;     /* base64, as sent; NULL: none */
    const char *ca_file; /* may be NULL */
    bool insecure, force;
    enum { COMPRESS_AUTO, COMPRESS_ZSTD, COMPRESS_NONE } compress;
    int zstd_level;
    unsigned concurrency, retries, timeout_s;
    enum push_progress progress;
    struct progress *bar; /* for PUSH_BAR */
};

/* Sends the parts of each wanted kind, unless the service has the same ones already; with `force` always. Returns a push_status; problems
 * are reported. */
int push_upload(const struct push_target *target, const struct push_job *job);
