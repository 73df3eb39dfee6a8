/* What the bodies of requests cost, but for native ones (native/read.c): memory in proportion to what was sent. */
#include "../check.h"

#include "api/crash/crash.h"
#include "api/js/js.h"
#include "api/jvm/jvm.h"
#include "api/mozilla/mozilla.h"
#include "api/sources.h"
#include "apple/apple.h"

static struct config config = {.max_request_frames = 2000000, .max_request_modules = 50000};

/* Reads the body into the arena; 200 or the status, and the number of frames. */
typedef int read_body(struct sl_str body, struct sl_arena *arena, size_t *frames);

static int read_js(struct sl_str body, struct sl_arena *arena, size_t *frames)
{
    struct json_failure failure;
    struct js_request *r = SL_ARENA_NEW(arena, struct js_request);
    r->arena = arena;
    r->config = &config;
    bool good = js_read(r, body, &failure);
    *frames = r->frame_count;
    return good ? 200 : failure.status;
}

static int read_jvm(struct sl_str body, struct sl_arena *arena, size_t *frames)
{
    struct json_failure failure;
    struct jvm_request *r = SL_ARENA_NEW(arena, struct jvm_request);
    r->arena = arena;
    r->config = &config;
    bool good = jvm_read(r, body, &failure);
    *frames = r->frame_count;
    return good ? 200 : failure.status;
}

static int read_mozilla(struct sl_str body, struct sl_arena *arena, size_t *frames)
{
    struct json_failure failure;
    struct mozilla_request *r = SL_ARENA_NEW(arena, struct mozilla_request);
    r->arena = r->native.arena = arena;
    r->config = &config;
    bool good = mozilla_read(r, body, &failure);
    *frames = r->frame_count;
    return good ? 200 : failure.status;
}

/* A crash report, and the request that it becomes. */
static int read_apple(struct sl_str body, struct sl_arena *arena, size_t *frames)
{
    static const struct sl_apple_options options = {.names_from_report = true, .split_os_version = true};
    struct native_request *r = SL_ARENA_NEW(arena, struct native_request);
    struct sl_crash crash;
    struct sl_error error;
    r->arena = arena;
    enum sl_code code =
        sl_apple_read((struct sl_bytes){(const uint8_t *)body.data, body.size}, &options, arena, &crash, &error);
    bool good = code == SL_OK && crash_fill_request(r, &crash);
    *frames = r->frame_count;
    return good ? 200 : code == SL_MALFORMED ? 400 : 503;
}

/* ---- JSON of the forms that crash files come in ---- */
struct json_part {
    sl_field_read *read;
    void *out;
};

static bool read_value(struct sl_fields *s)
{
    const struct json_part *part = s->context;
    return part->read(s, NULL, part->out);
}

static int read_part(struct sl_str body, struct sl_arena *arena, size_t *frames, sl_field_read *read, void *out)
{
    struct json_part part = {read, out};
    struct json_failure failure;
    *frames = 0;
    return json_document(body, arena, read_value, &part, &failure) ? 200 : failure.status;
}

static int read_options(struct sl_str body, struct sl_arena *arena, size_t *frames)
{
    struct native_options options;
    return read_part(body, arena, frames, native_read_options, &options);
}

static int read_scraping(struct sl_str body, struct sl_arena *arena, size_t *frames)
{
    struct scraping scraping = {0};
    return read_part(body, arena, frames, scraping_read, &scraping);
}

static int read_rules(struct sl_str body, struct sl_arena *arena, size_t *frames)
{
    struct rewrite_rules rules = {0};
    return read_part(body, arena, frames, rewrite_read, &rules);
}

static int read_sources(struct sl_str body, struct sl_arena *arena, size_t *frames)
{
    struct request_sources sources = {.config = &config};
    return read_part(body, arena, frames, request_sources_read, &sources);
}

#define IPS_IMAGE  "{\"uuid\":\"2d903291397d3d14bfca52c7fb8c5e00\"}"
#define TEXT_IMAGE "0x1 - 0x2 a <2d903291397d3d14bfca52c7fb8c5e00> b"
#define JS_SOURCE  "\"source\":{\"type\":\"sentry\",\"id\":\"s\",\"url\":\"http://x/\",\"token\":\"t\"}"

static const struct {
    read_body *read;
    const char *before, *item, *after;
    size_t count, frames;
    int status;
    bool is_text; /* else there are commas between items */
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
    {read_apple, "[", "0", "]", 3000000, 0, 400},
    {read_apple, "{\"usedImages\":[],\"threads\":[],\"x\":[", "0", "]}", 3000000, 0, 200},
    {read_apple, "{\"usedImages\":[],\"threads\":[", "{}", "]}", 1000000, 0, 400},
    {read_apple, "{\"threads\":[],\"usedImages\":[", "{}", "]}", 1000000, 0, 400},
    {read_apple, "{\"threads\":[],\"usedImages\":[", IPS_IMAGE, "]}", 1500, 0, 200},
    {read_apple, "{\"threads\":[],\"usedImages\":[", IPS_IMAGE, "]}", 300000, 0, 400},
    {read_apple, "{\"usedImages\":[],\"threads\":[{\"frames\":[", "{\"imageOffset\":1}", "]}]}", 500000, 500000, 200},
    {read_apple, "{\"usedImages\":[],\"threads\":[{\"frames\":[",
     "{\"imageOffset\":1,\"symbol\":\"\",\"sourceFile\":\"\\n\"}", "]}]}", 500000, 500000, 200},
    {read_apple, "{\"usedImages\":[{\"name\":\"a\"}],\"threads\":[{\"frames\":[",
     "{\"imageOffset\":1,\"imageIndex\":0}", "]}]}", 500000, 500000, 200},
    {read_apple, "{\"usedImages\":[],\"threads\":[{\"threadState\":{\"x\":[", "{\"value\":1}", "]}}]}", 4000, 0, 200},
    {read_apple, "{\"usedImages\":[],\"threads\":[{\"threadState\":{\"x\":[", "{\"value\":1}", "]}}]}", 500000, 0, 400},
    {read_apple, "{\"usedImages\":[],\"threads\":[],\"asi\":[", "\"\"", "]}", 1000000, 0, 200},
    {read_apple, "", "Thread 1:\n", "", 500000, 0, 400, true},
    {read_apple, "Thread 0:\n", "0 a 0x1 b\n", "", 10000, 10000, 200, true},
    {read_apple, "Thread 0:\n", "0 a 0x1 b\n", "", 500000, 0, 400, true},
    {read_apple, "Thread 0:\n", "0 libc.so 0x1234 name\n", "", 500000, 500000, 200, true},
    {read_apple, "Last Exception Backtrace:\n(", " 0x1", ")\n", 5000, 5000, 200, true},
    {read_apple, "Last Exception Backtrace:\n(", " 0x1", ")\n", 1000000, 0, 400, true},
    {read_apple, "Binary Images:\n", TEXT_IMAGE "\n", "", 1500, 0, 200, true},
    {read_apple, "Binary Images:\n", TEXT_IMAGE "\n", "", 300000, 0, 400, true},
    {read_apple, "Thread 0:\n0 a 0x1 b\n\nThread 0 crashed with X86 Thread State (64-bit):\n", "a: 0x1\n", "", 4000, 1,
     200, true},
    {read_apple, "Thread 0:\n0 a 0x1 b\n\nThread 0 crashed with X86 Thread State (64-bit):\n", "a: 0x1\n", "", 500000,
     0, 400, true},
    {read_apple, "Thread 0:\n0 a 0x1 b\n\nApplication Specific Information:\n", "\n", "\n", 1000000, 1, 200, true},
    {read_options, "[", "0", "]", 500000, 0, 422},
    {read_options, "{\"x\":[", "0", "]}", 500000, 0, 200},
    {read_scraping, "{\"allowed_origins\":[", "\"\"", "]}", 300000, 0, 413},
    {read_scraping, "{\"headers\":{", "\"a\":\"\"", "}}", 100000, 0, 413},
    {read_rules, "[", "{\"from\":\"a\",\"to\":\"\"}", "]", 30000, 0, 422},
    {read_sources, "[", "0", "]", 500000, 0, 422},
    {read_sources, "[", "{\"id\":\"a\",\"type\":\"http\",\"url\":\"http://a/\"}", "]", 20000, 0, 413},
    {read_sources, "[{\"id\":\"a\",\"type\":\"http\",\"url\":\"http://a/\",\"filters\":{\"path_patterns\":[", "\"a\"",
     "]}}]", 1000, 0, 200},
};

TEST(body_memory_is_proportional_to_its_size)
{
    enum { SLACK = 1 << 20 };
    bool good = true;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct sl_buf text = {0};
        struct sl_arena arena = {0};
        size_t frames;
        sl_buf_cstr(&text, bodies[i].before);
        for (size_t n = 0; n < bodies[i].count; n++) {
            sl_buf_cstr(&text, n && !bodies[i].is_text ? "," : "");
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
