/* Symbolication requests of commands, without a server. */
#include "api/local_request.h"

#include "api/jobs/jobs.h"

extern const struct job_kind job_jvm, job_js, job_native, job_mozilla;

static const struct job_kind *const kinds[] = {
    [LOCAL_JVM] = &job_jvm,
    [LOCAL_JS] = &job_js,
    [LOCAL_NATIVE] = &job_native,
    [LOCAL_MOZILLA] = &job_mozilla,
};

/* Sources of the body follow only with own_sources; otherwise they are dropped. */
bool local_request_sources(const struct local_request *local, struct sl_arena *arena, const struct source **sources,
                           size_t *count)
{
    size_t own = local->own_sources ? *count : 0;
    struct source *all = SL_ARENA_ARRAY(arena, struct source, local->source_count + own + 1);
    if (!all)
        return false;
    for (size_t i = 0; i < local->source_count; i++)
        all[i] = local->sources[i];
    for (size_t i = 0; i < own; i++)
        all[local->source_count + i] = (*sources)[i];
    *sources = all;
    *count = local->source_count + own;
    return true;
}

enum sl_code local_request_symbolicate(const struct local_request *request, const struct config *config,
                                       struct sl_buf *answer, struct sl_error *error)
{
    return job_run_local(kinds[request->kind], config, request->scope, request, answer, error);
}
