/* The job that a crash file becomes. */
#include "api/crash/crash.h"

#include <unistd.h>

#include "api/access.h"

struct crash_work *crash_work_new(struct http_exchange *x, struct job *job, const struct crash_kind *kind,
                                  struct sl_str scope)
{
    struct crash_work *work = SL_ARENA_NEW(&job->arena, struct crash_work);
    if (work) {
        work->kind = kind;
        work->request = native_request_new(&job->arena, scope);
    }
    if (work && work->request)
        return work;
    http_reply_no_memory(x);
    return NULL;
}

/* ---- the file ---- */

struct map_step {
    int fd;
    struct sl_mapping *mapping;
    enum sl_code code;
    struct sl_error error;
};

static void map_download(void *arg)
{
    struct map_step *step = arg;
    step->code = sl_map_fd(step->fd, step->mapping, &step->error);
}

static enum sl_code download_to(struct crash_work *work, int fd, struct sl_error *error)
{
    struct map_step step = {.fd = fd, .mapping = &work->form.body};
    enum sl_code code = fetch_get(work->download, fd, error);
    if (code != SL_OK || (code = pool_run(POOL_IO, map_download, &step, error)) != SL_OK)
        return code;
    if (step.code != SL_OK) {
        *error = step.error;
        return step.code;
    }
    work->form.parts[PART_FILE] = work->form.body.bytes;
    return SL_OK;
}

/* A download that failed is what the answer says. */
static enum sl_code crash_download(struct job *job, struct crash_work *work, struct sl_error *error)
{
    struct sl_buf text = {0};
    int fd = sl_unlinked_file(cache_tmp_dir());
    if (fd < 0)
        return sl_fail(error, SL_BUSY, "no temporary file");
    enum sl_code code = download_to(work, fd, error);
    close(fd);
    if (code == SL_OK || code == SL_BUSY || code == SL_CANCELLED || code == SL_INTERNAL)
        return code;
    cache_error_text(error, &text);
    sl_buf_u8(&text, 0);
    if (!text.failed)
        crash_write_failure(&job->answer, (const char *)text.data, NULL);
    sl_buf_free(&text);
    return SL_MALFORMED;
}

/* ---- what the service may have died of before ---- */
enum { SAMPLES = 16, SAMPLE_BYTES = 4096 };

struct naming {
    const char *kind;
    struct sl_bytes file;
    struct ledger_work *work;
    enum sl_code code;
    struct sl_error *error;
};

/* By its size and some of its bytes, so that a large file costs no more than a small one. */
static void name_file(void *arg)
{
    struct naming *n = arg;
    struct sl_buf key = {0};
    sl_buf_u64(&key, n->file.size);
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t at = n->file.size / SAMPLES * i, left = n->file.size - at;
        sl_buf_add(&key, n->file.data + at, left < SAMPLE_BYTES ? left : SAMPLE_BYTES);
    }
    n->code = key.failed ? sl_fail(n->error, SL_BUSY, "out of memory") : SL_OK;
    if (n->code == SL_OK) {
        cache_quarantine_name(n->kind, sl_buf_view(&key), SL_STR("sent by a client"), n->work);
        n->code = cache_quarantine_check(n->work, n->error);
    }
    sl_buf_free(&key);
}

static enum sl_code crash_name(struct job *job, const struct crash_work *work, struct ledger_work *name,
                               struct sl_error *error)
{
    struct naming n = {work->kind->name, work->form.parts[PART_FILE], name, SL_OK, error};
    enum sl_code code = pool_run(POOL_IO, name_file, &n, error);
    if (code == SL_OK && n.code == SL_UNSUPPORTED)
        crash_write_failure(&job->answer, error->message, NULL);
    return code == SL_OK ? n.code : code;
}

/* ---- the job ---- */

/* Of the file, and not of what there was of memory or time. */
static bool is_failure(enum sl_code code)
{
    return code != SL_OK && code != SL_BUSY && (code != SL_CANCELLED || fiber_group_current()->expired);
}

static enum sl_code crash_run(struct job *job, void *arg, struct sl_error *error)
{
    struct crash_work *work = arg;
    struct ledger_work name;
    work->request->origin = work->kind->name;
    enum sl_code code = work->download ? crash_download(job, work, error) : SL_OK;
    if (code == SL_OK)
        code = crash_name(job, work, &name, error);
    if (code == SL_OK) {
        fiber_set_work(&name);
        code = work->kind->symbolicate(job, work, work->form.parts[PART_FILE], error);
        fiber_set_work(NULL);
        if (work->kind->kept && job->config->keep_failed_dumps && job->config->cache_dir && is_failure(code))
            kinds_keep_dump(work->form.parts[PART_FILE]);
    }
    crash_form_close(&work->form);
    return code;
}

void crash_start(struct http_exchange *x, struct job *job, struct crash_work *work, bool good,
                 const struct api_query *query)
{
    struct crash_form form = {.parts = {{NULL, 0}}}; /* the work ends with the job */
    if (work)
        form = work->form;
    good = good && access_may_bring(x, work->request->sources, work->request->source_count);
    if (!good)
        job_discard(job);
    if (good && job_begin(x, job, crash_run, work))
        job_answer(x, job, query);
    else
        crash_form_close(&form);
}

void crash_handle(struct http_exchange *x, const struct crash_kind *kind)
{
    struct api_query query;
    struct job *job = job_new(x);
    if (!job)
        return;
    struct crash_work *work = query_read(x, &query) ? crash_work_new(x, job, kind, query.scope) : NULL;
    bool good = work && crash_form_read(x, job->config, work);
    crash_start(x, job, work, good, &query);
}
