/* What Sentry's artifact look-up answers: artifacts are complete, and what is no list is told. */
#include <stdlib.h>

#include "origin/impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct source source = {
        .id = SL_STR("sentry"), .type = SOURCE_SENTRY, .url = SL_STR("http://sentry.example.com/api/lookup/")};
    struct sl_arena arena = {0};
    struct artifact *items;
    struct sl_error error = {.code = SL_OK};
    size_t count;
    enum sl_code code =
        artifacts_read((struct sl_str){(const char *)data, size}, &source, &arena, &items, &count, &error);
    must(code == SL_OK || code == SL_DOWNLOAD_ERROR);
    for (size_t i = 0; code == SL_OK && i < count; i++) {
        const struct artifact *a = &items[i];
        must(a->file.source == &source && a->file.url.size && a->match != MATCH_FROM_WEB);
        must(a->is_bundle || a->abs_path.data);
        must(artifact_match_name(a->match) != NULL);
    }
    sl_arena_free(&arena);
    return 0;
}
