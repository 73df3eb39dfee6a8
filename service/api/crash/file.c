/* Symbolicates crash files for commands, without an HTTP request. */
#include "api/crash_file.h"

#include "api/crash/crash.h"

static const struct crash_kind *const kinds[] = {
    [CRASH_FILE_MINIDUMP] = &crash_minidump,
    [CRASH_FILE_APPLE] = &crash_apple,
    [CRASH_FILE_CORE] = &crash_core,
};

static bool file_read_rules(struct sl_fields *s)
{
    return rewrite_read(s, NULL, s->context);
}

static bool file_read_ids(struct sl_fields *s)
{
    return core_read_ids(s, NULL, s->context);
}

/* job_kind.read_local: takes the crash file and options from a command (`asked`, a struct crash_file) instead of an HTTP request. False if
 * its rewrite rules or its list of modules are malformed, or when out of memory. */
bool crash_read_local(struct job *job, void *arg, const void *asked, struct json_failure *failure)
{
    struct crash_work *work = arg;
    const struct crash_file *file = asked;
    struct native_request *request = &work->native;
    native_configure(request, job->config);
    request->origin = work->kind->name;
    request->sources = file->sources;
    request->source_count = file->source_count;
    request->options.apply_source_context = file->no_source_context ? SL_BOOL_FALSE : SL_BOOL_TRUE;
    /* commands that print the walked dump also print where a line begins */
    request->reports_line_starts = file->walked != NULL;
    request->options.extract_variables = file->variables ? SL_BOOL_TRUE : SL_BOOL_FALSE;
    request->options.dif_candidates = file->candidates ? SL_BOOL_TRUE : SL_BOOL_FALSE;
    work->local = file;
    work->form.parts[PART_FILE] = file->bytes;
    return (!file->rewrite ||
            json_document(sl_str(file->rewrite), &job->arena, file_read_rules, &work->rules, failure)) &&
           (!file->modules || json_document(sl_str(file->modules), &job->arena, file_read_ids, &work->ids, failure));
}

enum sl_code crash_file_symbolicate(const struct crash_file *file, const struct config *config, struct sl_buf *answer,
                                    struct sl_error *error)
{
    return job_run_local(&kinds[file->kind]->job, config, file->scope, file, answer, error);
}
