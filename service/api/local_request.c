#include "api/impl.h"
#include "api/local_families.h"

static const struct local_family *const families[] = {[LOCAL_JVM] = &local_family_jvm,
                                                      [LOCAL_JS] = &local_family_js,
                                                      [LOCAL_NATIVE] = &local_family_native,
                                                      [LOCAL_MOZILLA] = &local_family_mozilla};

struct sl_str local_request_scope(const struct local_request *local)
{
    return local->scope.data ? local->scope : SL_STR("global");
}

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
    const struct local_family *family = families[request->kind];
    struct service service = {.config = config, .names = name_memo_new()};
    struct job job = {.service = &service, .config = config, .task = family->task};
    struct json_failure failure = {0};
    void *work = service.names ? family->read(request, &job, &failure) : NULL;
    enum sl_code code = work ? family->run(&job, work, error)
                             : sl_fail(error, failure.status == 503 ? SL_BUSY : SL_MALFORMED, "%s",
                                       failure.problem ? failure.problem : "out of memory");
    sl_buf_str(answer, sl_buf_view(&job.answer));
    if (code == SL_OK && (job.answer.failed || answer->failed))
        code = sl_fail(error, SL_BUSY, "out of memory");
    memory_set(&job.memory, 0);
    sl_buf_free(&job.answer);
    sl_arena_free(&job.arena);
    name_memo_free(service.names);
    return code;
}
