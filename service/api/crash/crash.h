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

struct crash_work;

/* One sort of crash files. */
struct crash_kind {
    const char *name;    /* where the service died of one */
    const char *part;    /* of forms: the crash file's */
    const char *missing; /* what is told when it is not there */
    bool rewrites;       /* requests may have rules for names */
    bool kept;           /* files that could not be answered may be, when the configuration says so */
    /* What is told of a file that cannot be this, before there is a job; NULL = nothing. May be NULL itself. */
    const char *(*refuse)(struct sl_bytes file);
    /* The work of the job, with the file: as job_run. */
    enum sl_code (*symbolicate)(struct job *job, struct crash_work *work, struct sl_bytes file,
                                struct sl_error *error) SL_SUSPENDS;
};
extern const struct crash_kind crash_apple, crash_minidump;

enum crash_part { PART_FILE, PART_SOURCES, PART_SCRAPING, PART_OPTIONS, PART_PLATFORM, PART_REWRITE, CRASH_PARTS };

/* multipart/form-data as one unlinked file. */
struct crash_form {
    struct sl_mapping body;
    struct sl_mapping unpacked;               /* of a crash file that was compressed */
    struct sl_bytes parts[CRASH_PARTS];       /* views of the body; data NULL: not sent */
    struct own_file artifacts[OWN_FILES_MAX]; /* debug files that came along: names in the arena, views of the body */
    size_t artifact_count;
};

struct crash_work { /* of one job; in its arena */
    const struct crash_kind *kind;
    struct native_request *request;
    struct rewrite_rules rules;
    struct crash_form form;
    struct fetch_request *download; /* NULL: the file is in the form */
    const struct crash_file *local; /* NULL: it came as a request */
};

/* In the job's arena; NULL: the answer is set. */
struct crash_work *crash_work_new(struct http_exchange *x, struct job *job, const struct crash_kind *kind,
                                  struct sl_str scope);

/* Begins the job and answers; or, when `work` is NULL or not `good`, discards it: the answer is set then. */
void crash_start(struct http_exchange *x, struct job *job, struct crash_work *work, bool good,
                 const struct api_query *query) SL_SUSPENDS;

/* The handler of forms of the kind. */
void crash_handle(struct http_exchange *x, const struct crash_kind *kind) SL_SUSPENDS;

/* ---- form.c ---- */

/* Of routes that take such a form. */
uint64_t crash_body_limit(const struct http_exchange *x);
void crash_check(struct http_exchange *x);

/* Takes the form, and reads all but the crash file into the request, as configured otherwise. False: the answer is set, or the
 * client gone. */
bool crash_form_read(struct http_exchange *x, const struct config *config, struct crash_work *work) SL_SUSPENDS;
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
void crash_write(const struct native_request *request, struct sl_json_writer *w, void *crash);

/* {"status":"failed"} with these; `detail` may be NULL. */
void crash_write_failure(struct sl_buf *answer, const char *message, const char *detail);
