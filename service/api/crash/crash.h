/* Requests with crash files: the job (job.c), the form with the file (form.c) or the URL of the file (any.c), conversion to a
 * native request (fill.c), the answer (write.c). apple.c handles Apple's crash reports, minidump.c minidumps, core.c core files,
 * named.c files that are written back with names. */
#pragma once

#include "api/crash/rewrite.h"
#include "api/crash_file.h"
#include "api/impl.h"
#include "api/native/native.h"
#include "api/form_files.h"
#include "base/file.h"
#include "crash/crash.h"
#include "conversion/crashes.h"
#include "minidump/minidump.h"

struct config;
struct crash_work;

/* ---- job.c ---- */

/* One format of crash files. */
struct crash_kind {
    struct job_kind job; /* its request structs begin with struct crash_work */
    const char *name;    /* in the crash journal (ledger), and the origin in metrics */
    const char *part;    /* name of the form's part with the crash file */
    const char *missing; /* error message when that part is missing */
    bool rewrites;       /* the form may have a part `rewrite_first_module` */
    bool is_core;        /* its size has a limit of its own, and a body may be the file itself instead of a form */
    bool kept;           /* files without a usable answer are stored if the configuration asks for it */
    /* Returns an error message when the file cannot be of this format, before a job is made; NULL = no objection. May be NULL
     * itself. */
    const char *(*refuse)(struct sl_bytes file);
    job_step *read; /* reads the file into the native request; may suspend */
    /* Kinds with stacks to walk: runs the converter that reads the file; then `take` reads its output. A crash_convert. */
    enum sl_code (*convert)(struct job *job, struct crash_work *work, job_step *take,
                            struct sl_error *error) SL_SUSPENDS;
    /* The same kinds: completes the dump by what the request says of it. False when out of memory. Pure: pool. NULL = nothing. */
    bool (*complete)(struct crash_work *work, struct sl_minidump *dump);
    /* Adds what needs files of modules to the details of the crash, when its stacks were walked. NULL = nothing. */
    enum sl_code (*analyse)(struct job *job, struct crash_work *work, struct sl_error *error) SL_SUSPENDS;
    /* Messages of answers for SL_MALFORMED and SL_UNSUPPORTED; the error's text is the detail. NULL: the error's text alone. */
    const char *malformed, *unsupported;
};
extern const struct crash_kind crash_apple, crash_core, crash_minidump;

/* Returns the limit of the file's size in bytes. */
uint64_t crash_max_bytes(const struct crash_kind *kind, const struct config *config);

enum crash_part {
    PART_FILE,
    PART_SOURCES,
    PART_SCRAPING,
    PART_OPTIONS,
    PART_PLATFORM,
    PART_REWRITE,
    PART_MODULES,
    CRASH_PARTS
};

/* The ids of modules by name, for cores that do not hold them. */
struct crash_module_ids {
    struct crash_module_id {
        struct sl_str code_file, debug_file, code_id;
        struct sl_debug_id debug_id;
        bool has_debug_id;
    } * items;
    size_t count;
};

/* A multipart/form-data body, mapped from one unlinked file. */
struct crash_form {
    struct sl_mapping body;
    struct sl_mapping unpacked; /* the crash file, decompressed; empty if it was sent plain */
    int fd;                     /* file that has the crash file, from file_offset on, until it is read; -1 = none */
    uint64_t file_offset;
    struct sl_bytes parts[CRASH_PARTS]; /* views of the body; data NULL = not sent */
    /* debug files sent in the form: names in the arena, contents are views of the body */
    struct request_files artifacts;
};

struct crash_work { /* request of a job */
    struct native_request native;
    const struct crash_kind *kind;
    struct rewrite_rules rules;
    struct crash_module_ids ids; /* cores only */
    bool has_vdso;               /* cores: the kernel's library has been added to the request's own files */
    struct crash_form form;
    /* while crash_convert runs: a further input, none if it has no bytes; output of the converter, the same in the arena, and what
     * reads it */
    struct converter_input code;
    struct sl_str code_id; /* that it must have */
    int packed_fd;
    struct sl_bytes packed;
    job_step *take;
    struct fetch_request *download; /* NULL: the form holds the file */
    const struct crash_file *local; /* the file of a command; NULL: it comes from an HTTP request */
    /* the file's entry in the crash journal, should the service die while it reads it */
    struct journal_work name;
    bool is_named;
};

/* Runs a converter of crash files on the file; then `take` reads its output, work->packed, on the pool (`kind`). */
enum sl_code crash_convert(struct job *job, struct crash_work *work, const struct converter *converter,
                           struct sl_bytes options, void *result, enum pool_job kind, job_step *take,
                           struct sl_error *error) SL_SUSPENDS;

/* Adds the file as INPUT_FILE, by its descriptor if that is still open. */
void crash_add_file(struct converter_call *call, const struct crash_work *work);
/* Closes that descriptor, when the file has been read and its stacks are walked. */
void crash_close_file(struct crash_work *work);

/* Members of struct job_kind. */
void crash_work_open(struct job *job, void *work);
bool crash_read_local(struct job *job, void *work, const void *file, struct json_failure *failure);
void crash_finish(struct job *job, void *work, enum sl_code code, const struct sl_error *error);
void crash_release(void *work);

/* Downloads the file, refuses it if the service has died of it before, and reads it. A job_step. */
enum sl_code crash_prepare(struct job *job, void *work, struct sl_error *error) SL_SUSPENDS;

/* ---- core.c, core_analysis.c ---- */

/* Member of struct crash_kind: analyses the instruction that crashed, if the request wants details. */
enum sl_code core_analyse(struct job *job, struct crash_work *work, struct sl_error *error) SL_SUSPENDS;

/* Reads an array of modules, as in a body of POST /symbolicate, into a struct crash_module_ids. A sl_field_read. */
bool core_read_ids(struct sl_fields *s, const struct sl_json_path *at, void *out);

/* ---- form.c ---- */

/* http_route.body_limit of routes that take such a form. */
uint64_t crash_body_limit(const struct http_exchange *x);

#define CRASH_POST(pattern_, kind_)                                                                                    \
    {                                                                                                                  \
        .method = "POST", .pattern = (pattern_), .handler = job_handle, .takes_work = true, .check = job_check,        \
        .body_limit = crash_body_limit, .rights = API_RIGHT("symbolicate"), .job = &(kind_)->job                       \
    }

/* Receives the form and reads all parts but the crash file into the request; the configuration fills in the rest. Member of
 * struct job_kind. */
bool crash_receive(struct http_exchange *x, struct job *job, void *work) SL_SUSPENDS;
void crash_form_close(struct crash_form *form);

/* ---- fill.c ---- */

/* Converts threads and modules into the native request, ready to run. False when out of memory. Pure: pool. */
bool crash_fill_request(struct native_request *request, const struct sl_crash *crash);

/* Returns the module as an object id for look-ups; its texts are views of the crash's. */
struct object_id crash_object_id(const struct sl_crash *crash, const struct sl_crash_module *module);

/* ---- write.c ---- */

/* A native_writer: writes the crash with its symbolicated threads and modules. */
void crash_write(const struct native_request *request, struct sl_json_writer *w, const void *crash);

/* Writes {"status":"failed"} with `message` and `detail` (may be NULL). */
void crash_write_failure(struct sl_buf *answer, const char *message, const char *detail);
