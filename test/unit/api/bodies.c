/* What the bodies of requests cost, but for native ones (native/read.c): memory in proportion to what was sent. */
#include "../check.h"

#include "api/js/js.h"
#include "api/jvm/jvm.h"
#include "api/mozilla/mozilla.h"

static struct config config = {.max_request_frames = 2000000, .max_request_modules = 50000};

/* Reads the body into the arena; 200 or the status, and the number of frames. */
typedef int read_body(struct sl_str body, struct sl_arena *arena, size_t *frames);

static int read_js(struct sl_str body, struct sl_arena *arena, size_t *frames)
{
    struct schema_failure failure;
    struct js_request *r = SL_ARENA_NEW(arena, struct js_request);
    r->arena = arena;
    r->config = &config;
    bool good = js_read(r, body, &failure);
    *frames = r->frame_count;
    return good ? 200 : failure.status;
}

static int read_jvm(struct sl_str body, struct sl_arena *arena, size_t *frames)
{
    struct schema_failure failure;
    struct jvm_request *r = SL_ARENA_NEW(arena, struct jvm_request);
    r->arena = arena;
    r->config = &config;
    bool good = jvm_read(r, body, &failure);
    *frames = r->frame_count;
    return good ? 200 : failure.status;
}

static int read_mozilla(struct sl_str body, struct sl_arena *arena, size_t *frames)
{
    struct schema_failure failure;
    struct mozilla_request *r = SL_ARENA_NEW(arena, struct mozilla_request);
    r->arena = arena;
    r->config = &config;
    bool good = mozilla_read(r, body, &failure);
    *frames = r->frame_count;
    return good ? 200 : failure.status;
}

#define JS_SOURCE "\"source\":{\"type\":\"sentry\",\"id\":\"s\",\"url\":\"http://x/\",\"token\":\"t\"}"

static const struct {
    read_body *read;
    const char *before, *item, *after;
    size_t count, frames;
    int status;
} bodies[] = {
    {read_js, "[", "0", "]", 3000000, 0, 422},
    {read_js, "{" JS_SOURCE ",\"x\":[", "0", "]}", 3000000, 0, 200},
    {read_js, "{" JS_SOURCE ",\"stacktraces\":[", "{\"frames\":[]}", "]}", 300000, 0, 200},
    {read_js, "{" JS_SOURCE ",\"stacktraces\":[{\"frames\":[", "{}", "]}]}", 1000000, 1000000, 200},
    {read_js, "{" JS_SOURCE ",\"stacktraces\":[{\"frames\":[", "{\"abs_path\":\"\",\"lineno\":1}", "]}]}", 500000,
     500000, 200},
    {read_js, "{" JS_SOURCE ",\"stacktraces\":[{\"frames\":[", "{\"abs_path\":\"\\n\",\"lineno\":1,\"pre_context\":[]}",
     "]}]}", 300000, 300000, 200},
    {read_js, "{" JS_SOURCE ",\"stacktraces\":[{\"frames\":[{\"abs_path\":\"\",\"lineno\":1,\"pre_context\":[", "\"\"",
     "]}]}]}", 1000000, 1, 200},
    {read_jvm, "[", "0", "]", 3000000, 0, 422},
    {read_jvm, "{\"sources\":[],\"x\":[", "0", "]}", 3000000, 0, 200},
    {read_jvm, "{\"sources\":[],\"classes\":[", "\"\"", "]}", 1000000, 0, 413},
    {read_jvm, "{\"sources\":[],\"stacktraces\":[", "{\"frames\":[]}", "]}", 300000, 0, 413},
    {read_jvm, "{\"sources\":[],\"exceptions\":[", "{\"type\":\"\",\"module\":\"\"}", "]}", 300000, 0, 200},
    {read_jvm, "{\"sources\":[],\"stacktraces\":[{\"frames\":[", "{\"function\":\"\",\"module\":\"\",\"index\":0}",
     "]}]}", 500000, 500000, 200},
    {read_mozilla, "[", "0", "]", 3000000, 0, 400},
    {read_mozilla, "{\"jobs\":[", "0", "]}", 3000000, 0, 400},
    {read_mozilla, "{\"x\":0,\"jobs\":[{\"memoryMap\":[", "[\"\",\"\"]", "],\"stacks\":[[]]}]}", 500000, 0, 413},
    {read_mozilla, "{\"jobs\":[{\"memoryMap\":[],\"stacks\":[", "[]", "]}]}", 1000000, 0, 200},
    {read_mozilla, "{\"jobs\":[{\"memoryMap\":[],\"stacks\":[[", "[-1,0]", "]]}]}", 1000000, 1000000, 200},
    {read_mozilla, "{\"jobs\":[{\"memoryMap\":[[\"a\",\"0\"]],\"stacks\":[[", "[0,1]", "]]}]}", 1000000, 1000000, 200},
};

static void memory_is_in_proportion(void **state)
{
    (void)state;
    enum { SLACK = 1 << 20 };
    bool good = true;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct sl_buf text = {0};
        struct sl_arena arena = {0};
        size_t frames;
        sl_buf_cstr(&text, bodies[i].before);
        for (size_t n = 0; n < bodies[i].count; n++) {
            sl_buf_cstr(&text, n ? "," : "");
            sl_buf_cstr(&text, bodies[i].item);
        }
        sl_buf_cstr(&text, bodies[i].after);
        int status = bodies[i].read(sl_buf_view(&text), &arena, &frames);
        if (status != bodies[i].status || (status == 200 && frames != bodies[i].frames)) {
            print_error("%s%s: %d, %zu frames\n", bodies[i].before, bodies[i].item, status, frames);
            good = false;
        }
        size_t most = 4 * text.size + 96 * frames + SLACK;
        if (arena.used > most) {
            print_error("%s%s: %zu bytes of %zu, must %zu\n", bodies[i].before, bodies[i].item, arena.used, text.size,
                        most);
            good = false;
        }
        sl_arena_free(&arena);
        sl_buf_free(&text);
    }
    assert_true(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_is_in_proportion)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
