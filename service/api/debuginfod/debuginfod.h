/* A debuginfod server (debuginfod(8) of elfutils): files, sections and source files by build id, from all configured sources. Private to
 * this folder.
 *
 *     routes.c    reads the request; headers and errors of all answers
 *     find.c      asks the sources, again and again while one of them cannot answer
 *     files.c     /debuginfo, /executable and /section
 *     sources.c   /source
 *     metadata.c  /metadata: build ids of files by the path where they are installed
 *
 * elfutils' clients remember any status but 200 and 406 for ten minutes as "there is no such file". So 404 is answered only when every
 * source has said that it has none. Until then a request waits, for at most `debuginfod.hold`; then the connection is reset. */
#pragma once

#include "api/impl.h"
#include "search/search.h"

enum { DEBUGINFOD_MAX_PATH = 4096 }; /* bytes of a source file's path, decoded */

struct debuginfod_request {
    struct http_exchange *x;
    const struct config *config; /* a reference, released by debuginfod_end() */
    const char *type;            /* for the metric: "debuginfo", "executable", "section", "source" */
    struct object_id id;         /* the build id, as the code id of an ELF file */
    struct search_scope where;   /* in which sources, and on whose behalf, files are searched */
    uint64_t max_size; /* X-DEBUGINFOD-MAXSIZE, the largest file in bytes that the client accepts; UINT64_MAX: any */
    uint64_t end_ms;   /* until when the request may wait for sources (debuginfod.hold), by loop_now_ms() */
    int64_t begun_s;   /* when the request began, seconds since the epoch */
    bool answered;     /* METRIC_DEBUGINFOD_REQUESTS has counted it */
};

/* ---- routes.c ---- */

/* Header fields of requests to other debuginfod servers (upstreams), which tell on whose behalf they are asked; in the exchange's arena. */
struct debuginfod_forwarding {
    struct sl_str forwarded_for, via; /* X-Forwarded-For and Via; data NULL when out of memory */
    bool skips_upstreams; /* ask no upstreams: the request was passed on too often, or came through here before */
};
/* Makes X-Forwarded-For and Via from those of the request, with its client and this process appended. Also finds out whether servers ask
 * each other in a circle: a request that comes back here would wait for itself, because equal requests wait for the same download. */
void debuginfod_read_forwarding(struct http_exchange *x, const struct config *config,
                                struct debuginfod_forwarding *forwarding);

/* Members `enabled` and `prefix` of struct http_family, for the route families of this folder; `service` is a struct service. */
bool debuginfod_is_enabled(const void *service);
const char *debuginfod_path_prefix(const void *service);

/* Initialises `r` from the request's path and headers. `type` names the kind of request in the metric. False if the build id is malformed
 * or memory is short: an answer is set. Call debuginfod_end() in either case. */
bool debuginfod_begin(struct debuginfod_request *r, struct http_exchange *x, const char *type);
void debuginfod_end(struct debuginfod_request *r);

/* An answer with a file or a part of it. `release(arg)` is called when it has been sent, or if it is not sent. */
struct debuginfod_answer {
    struct sl_bytes bytes;
    struct sl_str name;    /* X-DEBUGINFOD-FILE: a file name, or the path of a member of a package; empty = none */
    struct sl_str package; /* X-DEBUGINFOD-ARCHIVE: name of the package; empty = the file is in none */
    const char *note;      /* header fields of the upstream that sent the file (origin_note_field), or NULL */
    const char *etag;      /* with its quotes */
    int64_t time_created;  /* seconds since the epoch: when its cache entry was made */
    bool is_public, is_resident; /* the source is public; all bytes are in memory */
    void (*release)(void *arg);
    void *arg;
};

/* Sends the answer, or 406 if it is larger than the client accepts. */
void debuginfod_send(struct debuginfod_request *r, const struct debuginfod_answer *answer);
/* Answers 404: no source has the file. */
void debuginfod_not_found(struct debuginfod_request *r);
/* Answers for a result of debuginfod_retry() other than SL_OK: 404 for SL_NOT_FOUND, 406 for SL_UNSUPPORTED (too large), nothing for
 * SL_CANCELLED. For all others the answer is 503, or the connection is reset in its place. */
void debuginfod_fail(struct debuginfod_request *r, enum sl_code code);

/* Makes a strong entity tag, with quotes, from where the file comes from, its size, and when its cache entry was made. */
void debuginfod_make_etag(struct sl_str source, struct sl_str path, uint64_t size, int64_t time_created, char out[64]);

/* ---- find.c ---- */

/* Makes one attempt to find what the client wants. SL_OK: found. SL_NOT_FOUND: every source has said that it does not have it. SL_BUSY: a
 * source could not say. SL_UNSUPPORTED: the file is larger than the client accepts, which was known without fetching it. SL_CANCELLED.
 * `arg` receives the result; it may still have that of the attempt before, which the attempt must release first. */
typedef enum sl_code debuginfod_attempt(struct debuginfod_request *r, void *arg) SL_SUSPENDS;

/* Repeats the attempt, with pauses, until its result is other than SL_BUSY; at the time r->end_ms it gives up and cancels a running
 * attempt. Returns the last result. So SL_BUSY means that up to the end a source could not say; SL_CANCELLED means that the client is
 * gone. */
enum sl_code debuginfod_retry(struct debuginfod_request *r, debuginfod_attempt *attempt, void *arg) SL_SUSPENDS;

/* A file that is searched, and what was found. */
struct debuginfod_file {
    enum purpose purpose;       /* PURPOSE_DEBUG_FILE or PURPOSE_CODE_FILE */
    struct search_result found; /* `item`: a reference to the file; NULL: none */
};

/* A debuginfod_attempt; `arg` is a struct debuginfod_file. SL_BUSY although an item is found: a source that could not answer may have a
 * better file for the purpose. */
debuginfod_attempt debuginfod_find_file;
/* Releases the reference to what was found. */
void debuginfod_release_file(struct debuginfod_file *file);

/* Finds a file by debuginfod_retry(). If at its end a file was found, but a source that could not answer may have a better one, returns
 * SL_OK with that file. Else the code of debuginfod_retry(). */
enum sl_code debuginfod_get_file(struct debuginfod_request *r, enum purpose purpose,
                                 struct debuginfod_file *file) SL_SUSPENDS;

/* A client waits: allows sources that failed to be asked again soon (origin_hurry_probe). `candidates` are the files that were looked for
 * and their sources. */
void debuginfod_hurry(const struct candidate_list *candidates);

/* ---- files.c, sources.c ---- */
http_handler debuginfod_debuginfo, debuginfod_executable, debuginfod_section, debuginfod_source;
