/* Reading a request: what it costs, and that the order of its keys does not matter. */
#include "../../check.h"

#include "api/native/native.h"
#include "base/budget.h"

static struct config config = {.max_request_frames = 2000000, .max_request_modules = 50000};

static void repeat(struct sl_buf *text, const char *before, const char *item, size_t count, const char *after)
{
    sl_buf_cstr(text, before);
    for (size_t i = 0; i < count; i++) {
        sl_buf_cstr(text, i ? "," : "");
        sl_buf_cstr(text, item);
    }
    sl_buf_cstr(text, after);
}

/* Reads the body; 200 or the status, and what it took of the arena. */
static int read_body(struct sl_str body, struct sl_arena *arena, struct native_request *request)
{
    struct json_failure failure;
    *request = (struct native_request){.arena = arena};
    return native_read(request, body, &config, &failure) ? 200 : failure.status;
}

TEST(request_memory_is_proportional_to_its_size)
{
    enum { SLACK = 1 << 20 };
    static const struct {
        const char *before, *item, *after;
        size_t count, frames;
        int status;
    } rows[] = {
        {"[", "0", "]", 3000000, 0, 422},
        {"{\"x\":[", "0", "]}", 3000000, 0, 200},
        {"{\"x\":{", "\"k\\n\":\"\\u00e9\"", "}}", 300000, 0, 200},
        {"{\"sources\":[", "0", "]}", 1000000, 0, 422},
        {"{\"stacktraces\":[", "{\"frames\":[]}", "]}", 300000, 0, 413},
        {"{\"modules\":[", "{\"type\":\"\"}", "]}", 50000, 0, 200},
        {"{\"stacktraces\":[{\"frames\":[", "{\"instruction_addr\":0}", "]}]}", 1000000, 1000000, 200},
        {"{\"stacktraces\":[{\"frames\":[", "{\"instruction_addr\":0,\"lang\":\"c\",\"vars\":{}}", "]}]}", 300000,
         300000, 200},
        {"{\"stacktraces\":[{\"frames\":[{\"instruction_addr\":0,\"function\":\"", "\\n", "\"}]}]}", 1000000, 1, 200},
        {"{\"stacktraces\":[{\"frames\":[{\"instruction_addr\":0,\"pre_context\":[", "\"\"", "]}]}]}", 1000000, 1, 200},
    };
    assert_true(sizeof(struct native_frame) <= 56 && sizeof(struct native_module) <= 48);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_buf text = {0};
        struct sl_arena arena = {0};
        struct native_request request;
        repeat(&text, rows[i].before, rows[i].item, rows[i].count, rows[i].after);
        int status = read_body(sl_buf_view(&text), &arena, &request);
        if (status != rows[i].status)
            fail_msg("%s: %d", rows[i].before, status);
        if (arena.used > 3 * text.size + 96 * rows[i].frames + SLACK)
            fail_msg("%s: %zu of %zu", rows[i].before, arena.used, text.size);
        if (status == 200)
            assert_int_equal(request.frame_count, rows[i].frames);
        sl_arena_free(&arena);
        sl_buf_free(&text);
    }
}

TEST(reading_ends_at_the_limit_of_counts)
{
    struct sl_arena arena = {0};
    struct native_request request;
    const struct config before = config;
    config.max_request_frames = config.max_request_modules = 1;
    assert_int_equal(read_body(SL_STR("{\"modules\":[{\"type\":\"\"},{\"type\":"), &arena, &request), 413);
    assert_int_equal(read_body(SL_STR("{\"stacktraces\":[{\"frames\":[{\"instruction_addr\":1}"), &arena, &request),
                     400);
    assert_int_equal(read_body(SL_STR("{\"stacktraces\":[{\"frames\":[{\"instruction_addr\":1},{"), &arena, &request),
                     413);
    config = before;
    sl_arena_free(&arena);
}

TEST(order_of_keys_does_not_matter)
{
    static const char *const bodies[] = {
        "{\"modules\":[{\"type\":\"elf\"}],\"stacktraces\":[{\"frames\":[{\"package\":\"p\",\"instruction_addr\":7}]}]"
        "}",
        "{\"threads\":0,\"stacktraces\":[{\"frames\":[{\"instruction_addr\":\"0x7\",\"package\":\"p\"}]}],"
        "\"modules\":[{\"type\":\"elf\"}]}",
        "{\"threads\":[{\"frames\":[{\"instruction_addr\":\"7\",\"package\":\"\\u0070\"}]}],\"modules\":[{\"type\":"
        "\"elf\"}]}",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct sl_arena arena = {0};
        struct native_request request;
        assert_int_equal(read_body(sl_str(bodies[i]), &arena, &request), 200);
        assert_int_equal(request.module_count, 1);
        assert_int_equal(request.trace_count, 1);
        assert_int_equal(request.traces[0].frame_count, 1);
        const struct native_frame *frame = request.traces[0].frames;
        assert_int_equal(frame->address, 7);
        assert_true(sl_str_equal(native_text(frame, SENT_PACKAGE), SL_STR("p")));
        assert_null(native_text(frame, SENT_FUNCTION).data);
        sl_arena_free(&arena);
    }
}

TEST(no_memory_for_a_code_id_does_not_make_it_absent)
{
    enum { DIGITS = 100000, LIMIT = 50000 };
    struct sl_buf text = {0};
    struct sl_budget budget;
    sl_budget_init(&budget, DIGITS);
    sl_budget_limit(&budget, LIMIT, NULL, NULL);
    struct sl_arena arena = {.budget = &budget};
    struct native_request request;
    repeat(&text, "{\"stacktraces\":[],\"modules\":[{\"type\":\"elf\",\"code_id\":\"", "a", DIGITS, "\"}]}");
    assert_int_equal(read_body(sl_buf_view(&text), &arena, &request), 503);
    sl_arena_free(&arena);
    arena.budget = NULL;
    assert_int_equal(read_body(sl_buf_view(&text), &arena, &request), 200);
    sl_arena_free(&arena);
    sl_buf_free(&text);
}
