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
    const struct config *config; /* held until debuginfod_end */
    const char *type;            /* for the metric: "debuginfo", "executable", "section", "source" */
    struct object_id id;         /* of an ELF file */
    struct search_scope where;
    uint64_t max_size; /* X-DEBUGINFOD-MAXSIZE; UINT64_MAX: no limit */
    uint64_t end_ms;   /* until when the request may wait for sources (debuginfod.hold), by loop_now_ms */
    int64_t begun_s;   /* seconds since the epoch */
    bool answered;     /* the metric has counted it */
};

/* ---- routes.c ---- */

/* On whose behalf other debuginfod servers are asked: values of header fields, allocated from the exchange's arena. */
struct debuginfod_forwarding {
    struct sl_str forwarded_for, via; /* X-Forwarded-For and Via; data NULL when out of memory */
    bool skips_upstreams; /* they must not be asked: the request was passed on too often, or came through here before */
};
/* Reads the clients and servers that the request has passed, and adds this one. Servers that ask each other would do so
 * for ever; and as equal requests join, one that comes back here would wait for itself. */
void debuginfod_read_forwarding(struct http_exchange *x, const struct config *config,
                                struct debuginfod_forwarding *forwarding);

/* Functions of the families of this folder (http_family); `service` is a struct service. */
bool debuginfod_is_enabled(const void *service);
const char *debuginfod_path_prefix(const void *service);

/* Reads the build id and where to look. False: 404 is answered, or that memory is short. Ends with debuginfod_end either way. */
bool debuginfod_begin(struct debuginfod_request *r, struct http_exchange *x, const char *type);
void debuginfod_end(struct debuginfod_request *r);

/* What an answer consists of. `release(arg)` is called when it is sent, also if another answer is sent instead. */
struct debuginfod_answer {
    struct sl_bytes bytes;
    struct sl_str name;          /* X-DEBUGINFOD-FILE: a name, or the path of a member in its package; empty = none */
    struct sl_str package;       /* X-DEBUGINFOD-ARCHIVE: name of that package; empty = none */
    const char *note;            /* header fields of the upstream that it came from (origin_note_field), or NULL */
    const char *etag;            /* quoted */
    int64_t time_created;        /* seconds since the epoch: when its cache entry was made */
    bool is_public, is_resident; /* the source is public; all bytes are in memory */
    void (*release)(void *arg);
    void *arg;
};

/* Sends the answer, or 406 if the client does not want one of this size. */
void debuginfod_send(struct debuginfod_request *r, const struct debuginfod_answer *answer);
/* Answers that no source has it. */
void debuginfod_not_found(struct debuginfod_request *r);
/* Answers why nothing was found; `code` is that of debuginfod_retry. */
void debuginfod_fail(struct debuginfod_request *r, enum sl_code code);

/* Makes a strong entity tag for a file of this origin and size. */
void debuginfod_make_etag(struct sl_str source, struct sl_str path, uint64_t size, int64_t time_created, char out[64]);

/* ---- find.c ---- */

/* Makes one attempt to find something. SL_OK: it is found. SL_NOT_FOUND: every source has said that it has none. SL_BUSY: a source could
 * not say. SL_UNSUPPORTED: it is known without fetching it that the file is larger than the client wants. SL_CANCELLED. `arg` may still have
 * the result of the attempt before, which the attempt must release first. */
typedef enum sl_code debuginfod_attempt(struct debuginfod_request *r, void *arg) SL_SUSPENDS;

/* Repeats the attempt, with pauses, until its result is other than SL_BUSY, or r->end_ms; that time also cancels an attempt that runs.
 * SL_OK, SL_NOT_FOUND, SL_UNSUPPORTED: as the attempt; SL_BUSY: it was still undecided at the end; SL_CANCELLED: the client is gone. */
enum sl_code debuginfod_retry(struct debuginfod_request *r, debuginfod_attempt *attempt, void *arg) SL_SUSPENDS;

/* A file that is found; zeros = none. */
struct debuginfod_file {
    enum purpose purpose;       /* PURPOSE_DEBUG_FILE, PURPOSE_CODE_FILE */
    struct search_result found; /* `item`: a reference */
};

/* A debuginfod_attempt with a struct debuginfod_file. SL_BUSY with an item: a lesser file is found, a source may have a better one. */
debuginfod_attempt debuginfod_find_file;
void debuginfod_release_file(struct debuginfod_file *file);

/* Finds a file, with debuginfod_retry. At the end of that time it takes a lesser file if a source may still have a better one. SL_OK,
 * SL_NOT_FOUND, SL_BUSY ... as debuginfod_retry. */
enum sl_code debuginfod_get_file(struct debuginfod_request *r, enum purpose purpose,
                                 struct debuginfod_file *file) SL_SUSPENDS;

/* After an undecided attempt: lets the sources that failed be asked again soon (origin_hurry_probe). */
void debuginfod_hurry(const struct candidate_list *candidates);

/* ---- files.c, sources.c ---- */
http_handler debuginfod_debuginfo, debuginfod_executable, debuginfod_section, debuginfod_source;
