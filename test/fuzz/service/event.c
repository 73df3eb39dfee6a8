/* Events of Sentry as requests: what becomes one is JSON, which the readers of requests take. The first byte says what is
 * given instead of what the event says. */
#include <stdlib.h>

#include "api/js/js.h"
#include "api/jvm/jvm.h"
#include "cli/symbolicate/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        abort();
}

static void read_request(struct sl_str body, enum local_request_kind kind)
{
    static const struct config config = {.max_request_frames = 2000, .max_request_modules = 500};
    struct sl_arena arena = {0};
    struct json_failure failure = {0};
    struct js_request js = {.arena = &arena, .config = &config, .scope = SL_STR("global")};
    struct sl_json j = sl_json(body, &arena, false);
    sl_json_skip(&j);
    must(sl_json_end(&j));
    if (kind == LOCAL_JS) {
        must(js_read(&js, body, &failure) || failure.status == 413);
        sl_map_free(&js.modules_by_path);
    }
    sl_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct sentry_project project;
    static const char *const platforms[] = {NULL, "node", "java", "native", "other"};
    struct sl_arena arena = {0};
    struct sl_buf body = {0};
    struct sl_error error;
    enum local_request_kind kind;
    if (!size)
        return 0;
    struct event_options options = {.platform = platforms[data[0] % (sizeof platforms / sizeof *platforms)],
                                    .release = data[0] & 0x40 ? "app@1" : NULL,
                                    .dist = data[0] & 0x80 ? "\"1\"" : NULL,
                                    .project = &project};
    struct sl_str text = {(const char *)data + 1, size - 1};
    enum sl_code code = event_request(text, &options, &arena, &kind, &body, &error);
    must(code == SL_OK || code == SL_MALFORMED || code == SL_UNSUPPORTED || code == SL_NOT_FOUND);
    if (code == SL_OK)
        read_request(sl_buf_view(&body), kind);
    sl_buf_free(&body);
    sl_arena_free(&arena);
    return 0;
}
