/* Mozilla's symbolication API, versions 4 and 5 (https://symbolication.services.mozilla.com/): the request, validated in the
 * order and with the messages of that service (read.c), all jobs' frames as one native request (run.c), the answers (write.c,
 * debug.c). Everything lives in the job's arena. */
#pragma once

#include "api/impl.h"
#include "api/native/native.h"
#include "api/json_document.h"

enum { MOZILLA_UNKNOWN = (1 << 30) - 1 }; /* module index of frames outside of every module */

struct mozilla_module {
    struct sl_str file, id; /* as sent */
    bool referenced;
    uint32_t native; /* index in the native request; NATIVE_NO_MODULE: not looked up */
};

enum mozilla_offset {
    MOZILLA_AT,      /* `offset` is set */
    MOZILLA_BEFORE,  /* the offset -1: just before the module */
    MOZILLA_LITERAL, /* a number that is not an integer; kept as written */
};

struct mozilla_frame { /* requests may have a million */
    union {
        uint64_t offset;
        const char *literal;
    };
    union {
        uint32_t trace; /* index in the native request; UINT32_MAX: not looked up */
        uint32_t literal_size;
    };
    uint32_t module : 30; /* index in the job, or MOZILLA_UNKNOWN */
    uint32_t kind : 2;    /* enum mozilla_offset */
};

struct mozilla_stack {
    uint32_t first, count; /* range of the job's frames */
};

struct mozilla_job {
    struct mozilla_module *modules;
    struct mozilla_stack *stacks;
    struct mozilla_frame *frames; /* frames of all stacks */
    size_t module_count, stack_count, frame_count;
};

struct mozilla_request {
    struct native_request native;
    struct sl_arena *arena;
    const struct config *config;
    unsigned version; /* 4 or 5; 0: the body says which */
    struct mozilla_job *jobs;
    size_t job_count, frame_count;
    bool wants_debug; /* answers have the member "debug" */
    uint64_t begun_ns;
};

/* ---- read.c ---- */

/* Reads and validates the body, which must outlive the request. False: `failure` with the API's own message. Pure: loop or
 * pool. */
bool mozilla_read(struct mozilla_request *request, struct sl_str body, struct json_failure *failure);

/* True if `name` is an allowed file name; `extra`: further allowed characters. */
bool mozilla_is_name(struct sl_str name, struct sl_str extra);

/* ---- run.c ---- */

/* Members of struct job_kind. */
void mozilla_open(struct job *job, void *request);
void mozilla_finish(struct job *job, void *request, enum sl_code code, const struct sl_error *error);

/* Fills in the native request: each distinct module once, and a trace for each frame that may have an answer. False when out of
 * memory. Pure: loop or pool. */
bool mozilla_prepare(struct mozilla_request *request);

/* Writes the answer. SL_UNSUPPORTED: a symbol store could not be reached. A job_step. */
enum sl_code mozilla_write_answer(struct job *job, void *request, struct sl_error *error);

/* ---- symbolicate.c: shared by the routes ---- */

/* Answers an error in the API's format, with its headers; `description` may be NULL. */
void mozilla_reply_title(struct http_exchange *x, int status, const char *title, const char *description);
void mozilla_error(struct http_exchange *x, int status, const char *detail);       /* member of struct http_family */
bool mozilla_origin_allowed(const struct http_exchange *x, struct sl_str *origin); /* member of struct http_family */
void mozilla_options(struct http_exchange *x);
const char *mozilla_prefix(const void *service);

/* Member of struct job_kind: waits as long as the configuration says. */
void mozilla_answer(struct http_exchange *x, struct job *job) SL_SUSPENDS;

#define MOZILLA_POST(pattern_, handler_, job_, limit_, weight_)                                                        \
    {                                                                                                                  \
        .method = "POST", .pattern = (pattern_), .handler = (handler_), .takes_work = true, .check = job_check,        \
        .body_limit = (limit_), .body_weight = (weight_), .rights = API_RIGHT("mozilla"), .job = (job_),               \
        .page_view = true                                                                                              \
    }
#define MOZILLA_PREFLIGHT(pattern_)                                                                                    \
    {                                                                                                                  \
        .method = "OPTIONS", .pattern = (pattern_), .handler = mozilla_options, .immediate = true                      \
    }

/* ---- asm.c, source.c: assembly and source of a function for the Profiler. Answers have status 200, also with errors ---- */

struct profiler_request { /* texts as sent, data NULL if absent or null; numbers are validated */
    struct sl_arena *arena;
    const struct config *config;
    struct sl_str name, code_id, debug_name, debug_id, file;
    uint64_t offset, size; /* range of the code */
    bool to_function_end;
};

extern const struct job_kind job_asm, job_source;

/* Member of struct job_kind: answers a body that cannot be read. */
void mozilla_refuse_profiler(struct http_exchange *x, const struct json_failure *failure);

/* Reads the body of a request for assembly (`is_asm`) or source; it must outlive the request. Pure: loop or pool. */
bool mozilla_read_profiler(struct profiler_request *request, bool is_asm, struct sl_str body,
                           struct json_failure *failure);

/* Writes {"error": text, "title": text}, which the Profiler shows. */
__attribute__((format(printf, 2, 3))) void mozilla_profiler_error(struct sl_buf *out, const char *format, ...);

/* ---- paths.c ---- */

/* Converts the special path of a source file to a URL:
 *
 *     hg:<repository>:<path>:<revision>    git:github.com/<owner>/<name>:<path>:<revision>    s3:<bucket>:<digest>/<path>:
 *     cargo:<registry>:<crate>-<version>:<path>
 *
 * Appends the URL; if it is an archive (compressed tar), also appends the member's name. False: not such a path. Pure. */
bool mozilla_source_url(struct sl_str path, struct sl_buf *url, struct sl_buf *member);

/* ---- write.c ---- */

/* Returns the module name for answers, "<file>/<id>" as sent; in the arena, data NULL when out of memory. */
struct sl_str mozilla_module_name(struct sl_arena *arena, const struct mozilla_module *module);

void mozilla_write(const struct mozilla_request *request, struct sl_buf *out);

/* ---- debug.c ---- */

/* Writes the member "debug": times and counts of the work. */
void mozilla_write_debug(const struct mozilla_request *request, struct sl_json_writer *w);
