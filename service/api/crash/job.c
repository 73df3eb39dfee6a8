/* The steps of a job for a crash file, common to all formats. */
#include "api/crash/crash.h"

#include <errno.h>
#include <unistd.h>

/* ---- the file ---- */

static enum sl_code map_download(struct job *job, void *arg, struct sl_error *error)
{
    struct crash_work *work = arg;
    return sl_map_fd(work->form.fd, &work->form.body, error);
}

/* Downloads the crash file to a temporary file and maps it. If the server fails or has no such file, that becomes the job's answer, and
 * SL_MALFORMED is returned. Else SL_OK, SL_BUSY, SL_CANCELLED or SL_INTERNAL. */
static enum sl_code crash_download(struct job *job, struct crash_work *work, struct sl_error *error)
{
    struct sl_buf text = {0};
    work->form.fd = sl_unlinked_file(cache_tmp_dir());
    if (work->form.fd < 0)
        return sl_fail(error, SL_BUSY, "cannot create a temporary file for the crash file");
    enum sl_code code = fetch_get(work->download, work->form.fd, error);
    if (code == SL_OK)
        code = job_work(job, POOL_IO, map_download, error);
    work->form.parts[PART_FILE] = work->form.body.bytes;
    if (code == SL_OK || code == SL_BUSY || code == SL_CANCELLED || code == SL_INTERNAL)
        return code;
    cache_error_text(error, &text);
    sl_buf_u8(&text, 0);
    if (!text.failed)
        crash_write_failure(&job->answer, (const char *)text.data, NULL);
    sl_buf_free(&text);
    return SL_MALFORMED;
}

/* ---- crash journal ---- */
enum { SAMPLES = 16, SAMPLE_BYTES = 4096 };

/* Pool work: makes the crash file's entry for the crash journal, identified by the file's size and samples of its bytes, as hashing all of
 * it would take too long. SL_UNSUPPORTED if the service has died of this file before (quarantine). */
static enum sl_code name_file(struct job *job, void *arg, struct sl_error *error)
{
    struct crash_work *work = arg;
    struct sl_bytes file = work->form.parts[PART_FILE];
    struct sl_buf key = {0};
    sl_buf_u64(&key, file.size);
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t at = file.size / SAMPLES * i, left = file.size - at;
        sl_buf_add(&key, file.data + at, left < SAMPLE_BYTES ? left : SAMPLE_BYTES);
    }
    enum sl_code code = key.failed ? sl_fail(error, SL_BUSY, "out of memory") : SL_OK;
    if (code == SL_OK) {
        cache_quarantine_name(work->kind->name, sl_buf_view(&key), SL_STR("sent by a client"), &work->name);
        code = cache_quarantine_check(&work->name, error);
    }
    sl_buf_free(&key);
    return code;
}

/* Registers the crash file in the crash journal as what this fiber works on: if the service dies meanwhile, it will not read the file
 * again. If it has died of the file before, the answer becomes "failed", and SL_UNSUPPORTED is returned. */
static enum sl_code crash_name(struct job *job, struct crash_work *work, struct sl_error *error)
{
    enum sl_code code = job_work(job, POOL_IO, name_file, error);
    if (code == SL_UNSUPPORTED)
        crash_write_failure(&job->answer, error->message, NULL);
    if (code != SL_OK)
        return code;
    work->native.origin = work->kind->name; /* label of the metrics that native_count() adds to */
    work->is_named = true;
    fiber_set_work(&work->name);
    return SL_OK;
}

/* ---- reading ---- */

/* Pool work: copies the converter's output, as the worker process that wrote it may still change it, and lets work->take read the copy. */
static enum sl_code take_packed(struct job *job, void *arg, struct sl_error *error)
{
    struct crash_work *work = arg;
    enum sl_code code = crash_read_packed(work->packed_fd, &job->arena, &work->packed, error);
    return code == SL_OK ? work->take(job, work, error) : code;
}

enum sl_code crash_convert(struct job *job, struct crash_work *work, const struct converter *converter,
                           struct sl_bytes options, void *result, enum pool_job kind, job_step *take,
                           struct sl_error *error)
{
    struct conversion_description about = {.location = SL_STR("a crash file")};
    struct converter_call call = {.options = options, .out = conversion_new_output("crash")};
    if (call.out < 0)
        return sl_fail_errno(error, errno, "cannot create a file in memory for the output of a worker process");
    work->packed_fd = call.out;
    work->take = take;
    crash_add_file(&call, work);
    if (work->code.bytes.data) { /* core_analyse() has found the file with the code that crashed: a second input */
        call.inputs[call.input_count++] = work->code;
        converter_add_text(&call, INPUT_CODE_ID, work->code_id);
    }
    enum sl_code code = conversion_run(&about, converter, &call, result, error);
    if (code == SL_OK)
        code = job_work(job, kind, take_packed, error);
    close(call.out);
    return code;
}

void crash_add_file(struct converter_call *call, const struct crash_work *work)
{
    if (work->form.fd >= 0)
        converter_add_part(call, INPUT_FILE, work->form.parts[PART_FILE], work->form.fd, work->form.file_offset);
    else
        converter_add_bytes(call, INPUT_FILE, work->form.parts[PART_FILE]);
}

void crash_close_file(struct crash_work *work)
{
    sl_close(work->form.fd); /* if the job begins again, crash_add_file() copies the file for the worker instead */
    work->form.fd = -1;
}

/* ---- the job ---- */

enum sl_code crash_prepare(struct job *job, void *arg, struct sl_error *error)
{
    struct crash_work *work = arg;
    enum sl_code code = SL_OK;
    /* if the job is repeated because a cache file was damaged, the file has been downloaded and named before */
    if (work->download && !work->form.body.bytes.data)
        code = crash_download(job, work, error);
    if (code == SL_OK && !work->local && !work->is_named)
        code = crash_name(job, work, error);
    if (code == SL_OK)
        code = native_read_files(&work->native, error);
    code = code == SL_OK ? work->kind->read(job, work, error) : code;
    crash_close_file(work);
    return code;
}

/* True if the code means that the file could not be processed, or not in time (the job's fiber group has expired). False for lack of memory
 * and for a client that left. */
static bool is_failure(enum sl_code code)
{
    return code != SL_OK && code != SL_BUSY && (code != SL_CANCELLED || fiber_group_current()->expired);
}

/* Writes the answer of a file that cannot be used. The kind may have a message of its own; then the reason is the detail. */
static void answer_failure(struct job *job, const struct crash_work *work, enum sl_code code,
                           const struct sl_error *error)
{
    const char *what = code == SL_MALFORMED ? work->kind->malformed : work->kind->unsupported;
    if ((code == SL_MALFORMED || code == SL_UNSUPPORTED) && !job->answer.size)
        crash_write_failure(&job->answer, what ? what : error->message, what ? error->message : NULL);
}

/* job_kind.finish: removes the file from the crash journal and counts the results in metrics, or writes the answer of a failure. A file
 * that could not be processed is stored if its kind allows that and keep_failed_dumps is configured. */
void crash_finish(struct job *job, void *arg, enum sl_code code, const struct sl_error *error)
{
    const struct crash_work *work = arg;
    fiber_set_work(NULL);
    if (code == SL_OK)
        native_count(&work->native);
    answer_failure(job, work, code, error);
    if (work->is_named && work->kind->kept && job->config->keep_failed_dumps && job->config->cache_dir &&
        is_failure(code))
        save_failed_minidump(work->form.parts[PART_FILE]);
}

void crash_release(void *arg)
{
    struct crash_work *work = arg;
    native_release(&work->native);
    crash_form_close(&work->form);
}

/* ---- the request ---- */

void crash_work_open(struct job *job, void *arg)
{
    struct crash_work *work = arg;
    native_open(job, &work->native);
    work->native.writer = crash_write;
    work->form.fd = -1;
    work->kind = (const struct crash_kind *)job->kind;
}
