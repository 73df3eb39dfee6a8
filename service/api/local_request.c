#include "api/impl.h"
#include "api/local_families.h"

static const struct local_family *const families[] = {[LOCAL_JVM] = &local_family_jvm, [LOCAL_JS] = &local_family_js};

enum sl_code local_request_symbolicate(const struct local_request *request, const struct config *config,
                                       struct sl_buf *answer, struct sl_error *error)
{
    const struct local_family *family = families[request->kind];
    struct service service = {.config = config};
    struct job job = {.service = &service, .config = config, .task = family->task};
    struct schema_failure failure = {0};
    void *work = family->read(request, &job, &failure);
    enum sl_code code = work ? family->run(&job, work, error)
                             : sl_fail(error, failure.status == 503 ? SL_BUSY : SL_MALFORMED, "%s",
                                       failure.problem ? failure.problem : "out of memory");
    sl_buf_str(answer, sl_buf_view(&job.answer));
    if (code == SL_OK && (job.answer.failed || answer->failed))
        code = sl_fail(error, SL_BUSY, "out of memory");
    memory_set(&job.memory, 0);
    sl_buf_free(&job.answer);
    sl_arena_free(&job.arena);
    return code;
}
