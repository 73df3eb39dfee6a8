/* Requests with crash files: the job (job.c), the form with the file (form.c) or the URL of the file (any.c), conversion to a request for
 * native frames (fill.c), the answer (write.c). apple.c handles Apple's crash reports, minidump.c minidumps, core.c core files, named.c
 * profiles and sample reports that are written back with names. */
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

/* One format of crash files, a subtype of struct job_kind. */
struct crash_kind {
    struct job_kind job; /* its request structs begin with struct crash_work */
    const char *name;    /* in the crash journal (core/journal.h), and as origin of the request in metrics */
    const char *part;    /* name of the form's part with the crash file */
    const char *missing; /* error message when that part is missing */
    bool rewrites;       /* the form may have a part `rewrite_first_module` */
    bool is_core;        /* its size has a limit of its own, and a body may be the file itself instead of a form */
    bool kept;           /* files that could not be processed are stored if keep_failed_dumps is configured */
    /* Called before a job is made: returns an error message when the file cannot be of this format, else NULL. The member is NULL for
     * formats without such a check. */
    const char *(*refuse)(struct sl_bytes file);
    job_step *read; /* reads the file and fills in the request for native frames; may suspend */
    /* For kinds with stacks to walk: calls crash_convert() with the converter of the format and with `take`, the function that reads the
     * converter's output. */
    enum sl_code (*convert)(struct job *job, struct crash_work *work, job_step *take,
                            struct sl_error *error) SL_SUSPENDS;
    /* Kinds with stacks to walk: adds what the request says of modules to the dump, on the pool. False when out of memory. May be NULL. */
    bool (*complete)(struct crash_work *work, struct sl_minidump *dump);
    /* Called after the stacks were walked: adds details of the crash for which files of modules must be searched. NULL: nothing. */
    enum sl_code (*analyse)(struct job *job, struct crash_work *work, struct sl_error *error) SL_SUSPENDS;
    /* Messages of answers for SL_MALFORMED and SL_UNSUPPORTED; the text of the error becomes the answer's detail. NULL: the text of the
     * error is the message. */
    const char *malformed, *unsupported;
};
extern const struct crash_kind crash_apple, crash_core, crash_minidump;

/* Returns the limit of the file's size in bytes. */
uint64_t crash_max_bytes(const struct crash_kind *kind, const struct config *config);

enum crash_part {            /* parts of the form that are read */
                  PART_FILE, /* the crash file */
                  PART_SOURCES,
                  PART_SCRAPING,
                  PART_OPTIONS,
                  PART_PLATFORM,
                  PART_REWRITE,
                  PART_MODULES,
                  CRASH_PARTS
};

/* Modules that the request names with their ids: core files often lack the ids. */
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
    int fd; /* the file that contains the crash file, from file_offset on; -1 after it was read, or if there is none */
    uint64_t file_offset;               /* bytes */
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
    /* used while crash_convert() runs */
    struct converter_input code;    /* a second file to read: the code of the module that crashed; no bytes: none */
    struct sl_str code_id;          /* that the file in `code` must have */
    int packed_fd;                  /* file with the converter's output */
    struct sl_bytes packed;         /* a copy of that output in the arena */
    job_step *take;                 /* reads `packed` */
    struct fetch_request *download; /* how to download the crash file; NULL: the form contains it */
    const struct crash_file *local; /* the file of a command; NULL: it comes from an HTTP request */
    /* the crash file's entry in the crash journal, which tells after a restart that the service died while it read the file */
    struct journal_work name;
    bool is_named; /* `name` is set */
};

/* Runs a converter in a worker process on the crash file, with its `options`; `result` receives the converter's result struct (NULL: it
 * has none). Then `take` reads the output, work->packed, on the pool as a job of this `kind`. */
enum sl_code crash_convert(struct job *job, struct crash_work *work, const struct converter *converter,
                           struct sl_bytes options, void *result, enum pool_job kind, job_step *take,
                           struct sl_error *error) SL_SUSPENDS;

/* Adds the crash file to the inputs of a converter as INPUT_FILE: by its descriptor if that is still open, else as a copy. */
void crash_add_file(struct converter_call *call, const struct crash_work *work);
/* Closes the descriptor of the crash file, when the file has been read and its stacks are walked. */
void crash_close_file(struct crash_work *work);

/* Members `open`, `read_local`, `finish` and `release` of struct job_kind. */
void crash_work_open(struct job *job, void *work);
bool crash_read_local(struct job *job, void *work, const void *file, struct json_failure *failure);
void crash_finish(struct job *job, void *work, enum sl_code code, const struct sl_error *error);
void crash_release(void *work);

/* job_kind.prepare: downloads the crash file if it was sent as a URL, refuses it if the service has died of it before, and reads it. */
enum sl_code crash_prepare(struct job *job, void *work, struct sl_error *error) SL_SUSPENDS;

/* ---- core.c, core_analysis.c ---- */

/* Member of struct crash_kind: analyses the instruction that crashed, if the request wants details. */
enum sl_code core_analyse(struct job *job, struct crash_work *work, struct sl_error *error) SL_SUSPENDS;

/* A callback for JSON members (sl_field_read): reads an array of modules, as in a body of POST /symbolicate, into a struct
 * crash_module_ids. */
bool core_read_ids(struct sl_fields *s, const struct sl_json_path *at, void *out);

/* ---- form.c ---- */

/* http_route.body_limit of routes for crash files: returns the limit of the body's size in bytes. */
uint64_t crash_body_limit(const struct http_exchange *x);

#define CRASH_POST(pattern_, kind_)                                                                                    \
    {                                                                                                                  \
        .method = "POST", .pattern = (pattern_), .handler = job_handle, .takes_work = true, .check = job_check,        \
        .body_limit = crash_body_limit, .rights = API_RIGHT("symbolicate"), .job = &(kind_)->job                       \
    }

/* job_kind.receive: receives the form, and reads all its parts except the crash file into the request; options that were not sent get
 * their configured values. False if an answer is set, or the client is gone. */
bool crash_receive(struct http_exchange *x, struct job *job, void *work) SL_SUSPENDS;
/* Releases the mappings and the descriptor of a form. */
void crash_form_close(struct crash_form *form);

/* ---- fill.c ---- */

/* Copies the threads and modules of the crash into a request for native frames, which is then ready to run. On the pool. False when out of
 * memory. */
bool crash_fill_request(struct native_request *request, const struct sl_crash *crash);

/* Returns the ids and names of a module by which its files are searched; the texts are views of those of the crash. */
struct object_id crash_object_id(const struct sl_crash *crash, const struct sl_crash_module *module);

/* ---- write.c ---- */

/* A native_writer (`crash` is a struct sl_crash): writes the members of the answer, with the symbolicated threads and modules. */
void crash_write(const struct native_request *request, struct sl_json_writer *w, const void *crash);

/* Writes the answer {"status":"failed"} with the members `message` and, unless NULL, `detail`. */
void crash_write_failure(struct sl_buf *answer, const char *message, const char *detail);
