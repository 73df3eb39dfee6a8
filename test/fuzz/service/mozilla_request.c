/* A request of Mozilla's clients from its JSON to the answer, which must be JSON again. No module has symbols. */
#include <stdlib.h>

#include "api/mozilla/mozilla.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void answer(struct mozilla_request *r)
{
    struct sl_buf out = {0};
    for (size_t i = 0; i < r->native.module_count; i++) {
        struct native_lookups *found = SL_ARENA_NEW(r->arena, struct native_lookups);
        if (!found)
            abort();
        found->lookup.code = SL_NOT_FOUND;
        r->native.modules[i].found = found;
    }
    native_symbolicate(&r->native, r->config->max_request_frames);
    native_finish(&r->native);
    mozilla_write(r, &out);
    struct sl_json again = sl_json(sl_buf_view(&out), NULL, false);
    sl_json_skip(&again);
    if (!sl_json_end(&again))
        abort();
    sl_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct config config = {.max_request_frames = 1000,
                                         .mozilla = {.max_jobs = 10, .extra_name_chars = "[]:"}};
    struct sl_arena arena = {0};
    struct answer_limit limit;
    answer_limit_begin(&limit, &arena, UINT64_MAX);
    struct mozilla_request request = {.native = {.arena = &arena, .limit = &limit},
                                      .arena = &arena,
                                      .config = &config,
                                      .version = size % 3 ? 3 + size % 3 : 0,
                                      .wants_debug = size % 5 == 0};
    struct json_failure failure = {0};
    if (mozilla_read(&request, (struct sl_str){(const char *)data, size}, &failure))
        answer(&request);
    else if (!failure.problem || (failure.status != 400 && failure.status != 413))
        abort();
    sl_arena_free(&arena);
    return 0;
}
