#include "api/json_body.h"

#include "core/pool.h"

/* No larger bodies are read by the loop itself: some 0.1 ms. */
enum { SMALL_BODY = 16 * 1024 };

struct body_reading {
    const struct json_body *body;
    struct sl_bytes bytes;
    struct json_failure failure;
    bool good;
};

static void read_copy(void *arg)
{
    struct body_reading *r = arg;
    const char *copy = sl_arena_strndup(r->body->arena, (const char *)r->bytes.data, r->bytes.size);
    r->failure = json_no_memory;
    r->good = copy && r->body->read(r->body->arg, (struct sl_str){copy, r->bytes.size}, &r->failure);
}

static void refuse_as_text(struct http_exchange *x, const struct json_failure *failure)
{
    struct sl_buf text = {0};
    if (failure->status != 400 && failure->status != 422) {
        http_reply_detail(x, failure->status, failure->problem, NULL);
        return;
    }
    sl_buf_cstr(&text, failure->status == 400 ? "Failed to parse the request body as JSON: "
                                              : "Failed to deserialize the JSON body into the target type: ");
    sl_buf_cstr(&text, failure->problem);
    http_reply(x, failure->status, "text/plain; charset=utf-8", sl_buf_view(&text));
    sl_buf_free(&text);
}

bool json_body_read(struct http_exchange *x, const struct json_body *body)
{
    struct body_reading r = {.body = body};
    struct sl_error error;
    if (http_body(x, &r.bytes) != SL_OK)
        return false;
    if (r.bytes.size <= SMALL_BODY) {
        read_copy(&r);
    } else if (http_pool_run(x, POOL_JSON, read_copy, &r, &error) != SL_OK) {
        http_reply_error(x, 503, error.message);
        return false;
    }
    if (!r.good)
        (body->refuse ? body->refuse : refuse_as_text)(x, &r.failure);
    memory_set(&x->memory, r.bytes.size + body->arena->used); /* instead of what it might have been */
    return r.good;
}
