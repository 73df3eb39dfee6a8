/* A request of the Firefox Profiler for code or source, and where the path in it says that its file is. The first byte chooses. */
#include <stdlib.h>

#include "api/mozilla/mozilla.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
    if (!good)
        abort();
}

static void use(const struct profiler_request *r)
{
    struct sl_buf url = {0}, member = {0};
    expect(r->offset <= UINT32_MAX && r->size <= UINT32_MAX);
    if (mozilla_source_url(r->file, &url, &member)) {
        expect(sl_str_starts(sl_buf_view(&url), SL_STR("https://")));
        scraping_url(r->arena, sl_buf_view(&url));
    }
    sl_buf_free(&url);
    sl_buf_free(&member);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_arena arena = {0};
    struct profiler_request request = {.arena = &arena};
    struct json_failure failure = {0};
    if (!size)
        return 0;
    struct sl_str body = {(const char *)data + 1, size - 1};
    if (mozilla_read_profiler(&request, data[0] & 1, body, &failure))
        use(&request);
    else
        expect(failure.problem && (failure.status == 400 || failure.status == 422));
    sl_arena_free(&arena);
    return 0;
}
