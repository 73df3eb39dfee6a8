/* Mozilla's symbolication API, versions 4 and 5 (https://symbolication.services.mozilla.com/): reads the request, with the checks
 * and messages of that service, in its order (read.c); looks up the frames of all its jobs as one native request (run.c); writes the
 * answer (write.c, debug.c). All structs lie in the arena of the server's job (struct job); a `struct mozilla_job` is an element of
 * the request's list "jobs". */
#pragma once

#include "api/impl.h"
#include "api/native/native.h"
#include "api/json_document.h"

enum { MOZILLA_UNKNOWN = (1 << 30) - 1 }; /* module index of a frame that is in no module (sent as -1) */

struct mozilla_module {
    struct sl_str file, id; /* name of the debug file, and debug id, as sent */
    bool referenced;        /* a frame names it */
    uint32_t native;        /* its index in native.modules; NATIVE_NO_MODULE: it has no name or no valid id */
};

enum mozilla_offset {
    MOZILLA_AT,      /* `offset` is set */
    MOZILLA_BEFORE,  /* -1 was sent: the address just before the module */
    MOZILLA_LITERAL, /* a number that is not an integer was sent: `literal` is its text */
};

struct mozilla_frame { /* small, as requests may have a million */
    union {
        uint64_t offset;
        const char *literal;
    };
    union {
        uint32_t trace;        /* index in native.traces of the frame's look-up; UINT32_MAX: not looked up */
        uint32_t literal_size; /* MOZILLA_LITERAL, which is never looked up */
    };
    uint32_t module : 30; /* index in the modules of its job, or MOZILLA_UNKNOWN */
    uint32_t kind : 2;    /* enum mozilla_offset */
};

struct mozilla_stack {
    uint32_t first, count; /* its frames: a range of mozilla_job.frames */
};

struct mozilla_job { /* an element of "jobs": stacks of one process */
    struct mozilla_module *modules;
    struct mozilla_stack *stacks;
    struct mozilla_frame *frames; /* frames of all stacks */
    size_t module_count, stack_count, frame_count;
};

struct mozilla_request {
    struct native_request native; /* the request that looks up the frames of all jobs */
    struct sl_arena *arena;
    const struct config *config;
    unsigned version; /* 4 or 5; 0: the body says which */
    struct mozilla_job *jobs;
    size_t job_count, frame_count;
    bool wants_debug;  /* answers have the member "debug" */
    uint64_t begun_ns; /* when the request was opened */
};

/* ---- read.c ---- */

/* Reads and checks the body, of which the request keeps views, and prepares the native request. False: `failure` has the message of
 * Mozilla's service. Runs on the loop or the pool. */
bool mozilla_read(struct mozilla_request *request, struct sl_str body, struct json_failure *failure);

/* True if `name` may be the name of a debug file, or is empty; `extra` has further allowed characters. */
bool mozilla_is_name(struct sl_str name, struct sl_str extra);

/* ---- run.c ---- */

/* Members of struct job_kind: mozilla_open prepares an empty request, mozilla_finish counts one that was answered. */
void mozilla_open(struct job *job, void *request);
void mozilla_finish(struct job *job, void *request, enum sl_code code, const struct sl_error *error);

/* Fills in the native request: each distinct module once, and a trace of one frame for each frame that can be looked up. False when
 * out of memory. Runs on the loop or the pool. */
bool mozilla_prepare(struct mozilla_request *request);

/* Writes the answer; a step of the job (job_step). SL_UNSUPPORTED: a symbol store could not be reached. */
enum sl_code mozilla_write_answer(struct job *job, void *request, struct sl_error *error);

/* ---- symbolicate.c: shared by the routes ---- */

/* Answers an error in the form of this API, with its headers; `description` NULL: none. */
void mozilla_reply_title(struct http_exchange *x, int status, const char *title, const char *description);
void mozilla_error(struct http_exchange *x, int status, const char *detail);       /* member of struct http_family */
bool mozilla_origin_allowed(const struct http_exchange *x, struct sl_str *origin); /* member of struct http_family */
void mozilla_options(struct http_exchange *x);                                     /* handler of OPTIONS */
const char *mozilla_prefix(const void *service); /* what the paths of the API begin with */

/* Member of struct job_kind: waits for the job for the configured time, then answers and calls job_remove_client. */
void mozilla_answer(struct http_exchange *x, struct job *job) SL_SUSPENDS;

/* Routes of this API: a POST that starts a job of kind `job_`, and the OPTIONS of such a path. limit_ is a function that returns the
 * largest body in bytes; weight_ is the memory that a request needs, as a multiple of its body. */
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

/* ---- asm.c, source.c: assembly and source of a function, for the Firefox Profiler. Errors are answered with status 200, too ---- */

struct profiler_request { /* texts as sent, data NULL if absent or null; numbers are validated */
    struct sl_arena *arena;
    const struct config *config;
    struct sl_str name, code_id, debug_name, debug_id, file;
    uint64_t offset, size; /* range of the code */
    bool to_function_end;  /* disassemble at least to the end of the function */
};

extern const struct job_kind job_asm, job_source;

/* Member of struct job_kind: answers a body that mozilla_read_profiler has refused. */
void mozilla_refuse_profiler(struct http_exchange *x, const struct json_failure *failure);

/* Reads the body of a request for assembly (`is_asm`) or source; the request keeps views of it. False: `failure` says why. Runs on the
 * loop or the pool. */
bool mozilla_read_profiler(struct profiler_request *request, bool is_asm, struct sl_str body,
                           struct json_failure *failure);

/* Writes {"error": text, "title": text}, which the Profiler shows. */
__attribute__((format(printf, 2, 3))) void mozilla_profiler_error(struct sl_buf *out, const char *format, ...);

/* ---- paths.c ---- */

/* Converts the path of a source file in the form in which Mozilla's builds write it into symbols to a URL:
 *
 *     hg:<repository>:<path>:<revision>    git:github.com/<owner>/<name>:<path>:<revision>    s3:<bucket>:<digest>/<path>:
 *     cargo:<registry>:<crate>-<version>:<path>
 *
 * Appends the URL to `url`. If it leads to an archive (tar.gz of a crate), appends the name of the file in it to `member`. False:
 * the path has no such form, or out of memory. */
bool mozilla_source_url(struct sl_str path, struct sl_buf *url, struct sl_buf *member);

/* ---- write.c ---- */

/* Returns the module name for answers, "<file>/<id>" as sent; in the arena, data NULL when out of memory. */
struct sl_str mozilla_module_name(struct sl_arena *arena, const struct mozilla_module *module);

/* Writes the JSON answer. When out of memory, `out` is marked as failed. */
void mozilla_write(const struct mozilla_request *request, struct sl_buf *out);

/* ---- debug.c ---- */

/* Writes the member "debug": times and counts of the work. */
void mozilla_write_debug(const struct mozilla_request *request, struct sl_json_writer *w);
