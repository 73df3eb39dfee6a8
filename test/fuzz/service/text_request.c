/* A request of POST /symbolicate-text: a text, and behind a NUL the part `modules`. Nothing is found, so the text comes back, unless it
 * has markup; the requests for other APIs are JSON. */
#include <stdlib.h>

#include "api/text/work.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void assert_json(struct sl_buf *text)
{
    struct sl_json j = sl_json(sl_buf_view(text), NULL, false);
    sl_json_skip(&j);
    if (!sl_json_end(&j))
        abort();
    sl_buf_free(text);
}

static void answer(struct text_work *work)
{
    struct sl_buf js = {0}, jvm = {0}, out = {0}, json = {0};
    struct sl_str text = work->parts[TEXT_TEXT];
    text_put_js_body(work, &js);
    text_put_jvm_body(work, &jvm);
    assert_json(&js);
    assert_json(&jvm);
    struct js_request scripts = {.arena = work->native.arena};
    struct jvm_request traces = {.arena = work->native.arena};
    if (!text_fill_js(work, &scripts) || !text_fill_jvm(work, &traces))
        abort();
    if (!text_write(work, &out))
        abort();
    if (!work->reader->counts[SL_TEXT_MARKUP] && !memmem(text.data, text.size, "{{{", 3) &&
        !sl_str_equal(sl_buf_view(&out), text))
        abort();
    struct sl_json_writer w = sl_json_writer(&json);
    work->native.trace_count = 0; /* nothing was looked up */
    for (size_t i = 0; i < work->native.module_count; i++)
        work->native.modules[i].referenced = false;
    sl_json_begin_object(&w);
    text_write_json(work, sl_buf_view(&out), &w);
    sl_json_end_object(&w);
    assert_json(&json);
    sl_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct config config = {.max_request_frames = 500,
                                         .max_request_modules = 100,
                                         .max_response_frames = 1000,
                                         .max_response_bytes = UINT64_MAX};
    struct job job = {.config = &config};
    struct text_work work = {.wants_text = size % 2};
    struct json_failure failure = {0};
    const char *text = (const char *)data, *end = size ? memchr(text, 0, size) : NULL;
    work.native.arena = &job.arena;
    work.native.limit = &job.limit;
    answer_limit_begin(&job.limit, &job.arena, UINT64_MAX);
    work.native.scope = SL_STR("global");
    work.guess = (enum text_guess)(size % 3);
    sl_text_begin(&work.request_reader);
    work.reader = &work.request_reader;
    work.parts[TEXT_TEXT] = (struct sl_str){text ? text : "", end ? (size_t)(end - text) : size};
    if (end)
        work.parts[TEXT_MODULES] = (struct sl_str){end + 1, size - (size_t)(end + 1 - text)};
    if (text_fill(&job, &work, &failure)) {
        answer_limit_begin(&job.limit, &job.arena, config.max_response_bytes);
        answer(&work);
    } else if (!failure.problem || failure.status == 503) {
        abort();
    }
    sl_text_end(&work.request_reader);
    sl_arena_free(&job.arena);
    return 0;
}
