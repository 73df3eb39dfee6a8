/* A crash file that came with no request. */
#include "api/crash_file.h"

#include "api/crash/crash.h"

static const struct crash_kind *const kinds[] = {
    [CRASH_FILE_MINIDUMP] = &crash_minidump,
    [CRASH_FILE_APPLE] = &crash_apple,
};

static bool file_read_rules(struct sl_fields *s)
{
    return rewrite_read(s, NULL, s->context);
}

static enum sl_code file_prepare(const struct crash_file *file, struct job *job, struct crash_work *work,
                                 struct sl_error *error)
{
    struct json_failure failure;
    work->kind = kinds[file->kind];
    work->request = native_request_new(&job->arena, file->scope.data ? file->scope : SL_STR("global"));
    if (!work->request)
        return sl_fail(error, SL_BUSY, "out of memory");
    native_configure(work->request, job->config);
    work->request->sources = file->sources;
    work->request->source_count = file->source_count;
    work->request->options.apply_source_context = file->no_source_context ? SL_BOOL_FALSE : SL_BOOL_TRUE;
    work->request->tells_line_starts = file->walked != NULL;
    work->local = file;
    work->request->options.extract_variables = file->variables ? SL_BOOL_TRUE : SL_BOOL_FALSE;
    work->request->options.dif_candidates = file->candidates ? SL_BOOL_TRUE : SL_BOOL_FALSE;
    if (!file->rewrite || json_document(sl_str(file->rewrite), &job->arena, file_read_rules, &work->rules, &failure))
        return SL_OK;
    return sl_fail(error, failure.status == 503 ? SL_BUSY : SL_MALFORMED, "%s", failure.problem);
}

enum sl_code crash_file_symbolicate(const struct crash_file *file, const struct config *config, struct sl_buf *answer,
                                    struct sl_error *error)
{
    struct service service = {.config = config, .names = name_memo_new()};
    struct job job = {.service = &service, .config = config, .task = kinds[file->kind]->part};
    struct crash_work work = {0};
    enum sl_code code = service.names ? SL_OK : sl_fail(error, SL_BUSY, "out of memory");
    if (code == SL_OK)
        code = file_prepare(file, &job, &work, error);
    if (code == SL_OK)
        code = work.kind->symbolicate(&job, &work, file->bytes, error);
    *answer = job.answer;
    if (code == SL_OK && answer->failed)
        code = sl_fail(error, SL_BUSY, "out of memory");
    memory_set(&job.memory, 0);
    sl_arena_free(&job.arena);
    name_memo_free(service.names);
    return code;
}
