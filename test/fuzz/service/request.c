/* A symbolication request from its JSON to the answer, which must be JSON again. Modules take turns in having a small
 * symbol file, none, and a broken one. */
#include <stdlib.h>

#include "api/native/native.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sl_buf file;
static struct sl_symcache symcache;

static bool make_symcache(void)
{
    static const struct sl_file source = {.name = {"a.c", 3}};
    static const struct sl_line outer[] = {{0x10, 0x20, 0, 7}, {0x30, 0x10, 0, 8}}, inner[] = {{0x10, 0x20, 0, 3}};
    static const struct sl_function inlinee = {
        .address = 0x10, .size = 0x20, .name = {"inner", 5}, .lines = inner, .line_count = 1, .call_line = 7};
    static const struct sl_function function = {.address = 0x10,
                                                .size = 0x30,
                                                .name = {"outer", 5},
                                                .lines = outer,
                                                .line_count = 2,
                                                .inlinees = &inlinee,
                                                .inlinee_count = 1};
    struct sl_symcache_options options = {.arch = SL_ARCH_ARM64};
    struct sl_symcache_writer *w = sl_symcache_writer_new(&options, NULL);
    struct sl_function_sink *sink = sl_symcache_writer_sink(w);
    struct sl_function_batch batch = {.files = &source, .file_count = 1, .functions = &function, .function_count = 1};
    struct sl_arena arena = {0};
    sink->prepare(sink, &batch, &arena, 0);
    bool made = sink->consume(sink, &batch, NULL) == SL_OK && sl_symcache_writer_finish(w, &file, NULL) == SL_OK &&
                sl_symcache_open(sl_buf_bytes(&file), &symcache, NULL) == SL_OK;
    sl_symcache_writer_free(w);
    sl_arena_free(&arena);
    return made;
}

static void answer(struct native_request *request)
{
    static const enum sl_code codes[] = {SL_OK, SL_NOT_FOUND, SL_MALFORMED};
    struct sl_buf out = {0};
    struct sl_json_writer w = sl_json_writer(&out);
    native_assign_modules(request);
    for (size_t i = 0; i < request->module_count; i++) {
        if (!request->modules[i].referenced)
            continue;
        struct native_lookups *found = SL_ARENA_NEW(request->arena, struct native_lookups);
        if (!found)
            abort();
        found->lookup.code = codes[i % 3];
        found->lookup.symcache = i % 3 ? NULL : &symcache;
        found->lookup.arch = SL_ARCH_ARM64;
        request->modules[i].found = found;
    }
    native_symbolicate(request, 1000);
    native_finish(request);
    sl_json_begin_object(&w);
    native_write(request, &w, NULL);
    sl_json_end_object(&w);
    struct sl_json again = sl_json(sl_buf_view(&out), NULL, false);
    sl_json_skip(&again);
    if (!sl_json_end(&again))
        abort();
    sl_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct config config = {.max_request_frames = 2000, .max_request_modules = 500};
    struct sl_arena arena = {0};
    struct answer_limit limit;
    struct native_request request = {.arena = &arena, .scope = SL_STR("global"), .limit = &limit};
    answer_limit_begin(&limit, &arena, size % 2 ? 2000 : UINT64_MAX);
    struct json_failure failure = {0};
    if (!file.size && !make_symcache())
        abort();
    struct sl_str body = {(const char *)data, size};
    bool good = native_read(&request, body, &config, &failure);
    if (arena.used > 3 * size + (1 << 20) + request.frame_count * 96 + config.max_request_modules * 300)
        abort();
    if (!good) {
        if (!failure.problem || (failure.status != 400 && failure.status != 422 && failure.status != 413))
            abort();
    } else if (native_sort_modules(&request)) {
        answer(&request);
    }
    sl_arena_free(&arena);
    return 0;
}
