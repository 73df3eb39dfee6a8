/* Crash files as requests: the job (job.c), the form that they come in (form.c), or the address where they are (any.c), what was
 * read of them as a native request (fill.c), and the answer (write.c). apple.c has what is done with Apple's reports, minidump.c
 * what is done with minidumps, named.c what is done with files that are only written back with names. */
#pragma once

#include "api/crash/rewrite.h"
#include "api/crash_file.h"
#include "api/impl.h"
#include "api/native/native.h"
#include "api/own_files.h"
#include "base/file.h"
#include "crash/crash.h"
#include "minidump/minidump.h"

/* ---- job.c ---- */

/* One sort of crash files. */
struct crash_kind {
    struct job_kind job; /* its requests begin with a struct crash_work */
    const char *name;    /* where the service died of one */
    const char *part;    /* of forms: the crash file's */
    const char *missing; /* what is told when it is not there */
    bool rewrites;       /* requests may have rules for names */
    bool kept;           /* files that could not be answered may be, when the configuration says so */
    /* What is told of a file that cannot be this, before there is a job; NULL = nothing. May be NULL itself. */
    const char *(*refuse)(struct sl_bytes file);
    job_step *read; /* the file, into the native request; may suspend */
    /* What answers say of a file that is SL_MALFORMED or SL_UNSUPPORTED, with the error's words behind it; NULL: these alone. */
    const char *malformed, *unsupported;
};
extern const struct crash_kind crash_apple, crash_minidump;

enum crash_part { PART_FILE, PART_SOURCES, PART_SCRAPING, PART_OPTIONS, PART_PLATFORM, PART_REWRITE, CRASH_PARTS };

/* multipart/form-data as one unlinked file. */
struct crash_form {
    struct sl_mapping body;
    struct sl_mapping unpacked;         /* of a crash file that was compressed */
    struct sl_bytes parts[CRASH_PARTS]; /* views of the body; data NULL: not sent */
    struct own_files artifacts;         /* debug files that came along: names in the arena, views of the body */
};

struct crash_work { /* the request of a job */
    struct native_request native;
    const struct crash_kind *kind;
    struct rewrite_rules rules;
    struct crash_form form;
    struct fetch_request *download; /* NULL: the file is in the form */
    int download_fd;                /* while it is downloaded */
    const struct crash_file *local; /* NULL: it came as a request */
    struct ledger_work name;        /* of the file, in case the service dies of it */
    bool is_named;
};

/* Of struct job_kind. */
void crash_work_open(struct job *job, void *work);
bool crash_read_local(struct job *job, void *work, const void *file, struct json_failure *failure);
void crash_finish(struct job *job, void *work, enum sl_code code, const struct sl_error *error);
void crash_release(void *work);

/* The file is downloaded, refused if the service has died of it, and read. A job_step. */
enum sl_code crash_prepare(struct job *job, void *work, struct sl_error *error) SL_SUSPENDS;

/* ---- form.c ---- */

/* Of routes that take such a form. */
uint64_t crash_body_limit(const struct http_exchange *x);

#define CRASH_POST(pattern_, kind_)                                                                                    \
    {                                                                                                                  \
        .method = "POST", .pattern = (pattern_), .handler = job_handle, .takes_work = true, .check = job_check,        \
        .body_limit = crash_body_limit, .rights = API_RIGHT("symbolicate"), .job = &(kind_)->job                       \
    }

/* Takes the form, and reads all but the crash file into the request, as configured otherwise. Of struct job_kind. */
bool crash_receive(struct http_exchange *x, struct job *job, void *work) SL_SUSPENDS;
void crash_form_close(struct crash_form *form);

/* ---- fill.c ---- */

/* The threads and modules as a request's, ready to run. False when out of memory. Pure: pool. */
bool crash_fill(struct native_request *request, const struct sl_crash *crash);

/* The module as look-ups want it; its texts are those of the crash. */
struct object_id crash_object_id(const struct sl_crash *crash, const struct sl_crash_module *module);

/* ---- details.c ---- */

/* More of what the dump holds, as extras of its crash. False when out of memory. Pure: pool. */
bool crash_details(struct sl_minidump *dump, struct sl_arena *arena);

/* ---- write.c ---- */

/* A native_writer: the crash, and what became of its threads and modules. */
void crash_write(const struct native_request *request, struct sl_json_writer *w, const void *crash);

/* {"status":"failed"} with these; `detail` may be NULL. */
void crash_write_failure(struct sl_buf *answer, const char *message, const char *detail);
