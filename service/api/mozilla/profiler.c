/* POST /source/v1 and /asm/v1: source and assembly of a function, for the Firefox Profiler. */
#include <stdarg.h>
#include <stdio.h>

#include "api/mozilla/mozilla.h"

/* WEIGHT: memory that a request needs, as a multiple of its body's size. MAX_BODY: largest body, in bytes. */
enum { WEIGHT = 4, MAX_BODY = 64 * 1024 };

/* Replaces what `out` has by the message, under the keys "error" and "title"; cut at 511 bytes. */
void mozilla_profiler_error(struct sl_buf *out, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sl_buf_clear(out);
    struct sl_json_writer w = sl_json_writer(out);
    sl_json_begin_object(&w);
    sl_json_member_str(&w, "error", sl_str(text));
    sl_json_member_str(&w, "title", sl_str(text));
    sl_json_end_object(&w);
}

/* ---- requests ---- */

/* Reads a text "0x..." with a number of at most 32 bits. */
static bool profiler_hex(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str text;
    uint64_t value = 0;
    size_t where = s->json->at;
    if (!sl_fields_text(s, at, &text))
        return false;
    bool good = sl_str_starts(text, SL_STR("0x")) &&
                sl_parse_hex_u64((struct sl_str){text.data + 2, text.size - 2}, &value) && value <= UINT32_MAX;
    *(uint64_t *)out = value;
    return good || sl_fields_fail(s, at, where, "expected a hex number of at most 32 bits with 0x");
}

static const struct sl_field source_fields[] = {
    SL_FIELD(TEXT, false, profiler_request, debug_name, "debugName"),
    SL_FIELD(TEXT, false, profiler_request, debug_id, "debugId"), SL_FIELD(TEXT, true, profiler_request, file, "file"),
    SL_FIELD_BY(true, profiler_request, offset, "moduleOffset", profiler_hex), SL_FIELDS_END};

/* Reads true or false; nothing else is accepted. */
static bool profiler_bool(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    size_t where = s->json->at;
    return sl_json_bool(s->json, out) || sl_fields_fail(s, at, where, "expected a boolean");
}

static const struct sl_field asm_fields[] = {
    SL_FIELD(TEXT, false, profiler_request, name, "name"),
    SL_FIELD(TEXT, false, profiler_request, code_id, "codeId"),
    SL_FIELD(TEXT, false, profiler_request, debug_name, "debugName"),
    SL_FIELD(TEXT, false, profiler_request, debug_id, "debugId"),
    SL_FIELD_BY(true, profiler_request, offset, "startAddress", profiler_hex),
    SL_FIELD_BY(true, profiler_request, size, "size", profiler_hex),
    SL_FIELD_BY(false, profiler_request, to_function_end, "continueUntilFunctionEnd", profiler_bool),
    SL_FIELDS_END};

static bool read_source(struct sl_fields *s)
{
    return sl_fields_object(s, NULL, source_fields, s->context);
}

static bool read_asm(struct sl_fields *s)
{
    return sl_fields_object(s, NULL, asm_fields, s->context);
}

bool mozilla_read_profiler(struct profiler_request *request, bool is_asm, struct sl_str body,
                           struct json_failure *failure)
{
    return json_document(body, request->arena, is_asm ? read_asm : read_source, request, failure);
}

/* Answers 400 with a text that tells wrong members (422) from malformed JSON (400); 503 if memory is short. */
void mozilla_refuse_profiler(struct http_exchange *x, const struct json_failure *failure)
{
    struct sl_buf text = {0};
    if (failure->status == 503) {
        http_reply_no_memory(x);
        return;
    }
    sl_buf_cstr(&text, failure->status == 422 ? "Malformed request JSON: " : "Couldn't parse request: ");
    sl_buf_cstr(&text, failure->problem);
    sl_buf_u8(&text, '\0');
    mozilla_reply_title(x, 400, text.failed ? "Malformed request JSON" : (const char *)text.data, NULL);
    sl_buf_free(&text);
}

/* ---- routes ---- */

/* Answers 404 with the path; without memory for that text, with "404 Not Found". */
static void unrecognized(struct http_exchange *x)
{
    struct sl_buf text = {0};
    sl_buf_cstr(&text, "Unrecognized URL: ");
    sl_buf_str(&text, x->path);
    sl_buf_u8(&text, '\0');
    mozilla_reply_title(x, 404, text.failed ? "404 Not Found" : (const char *)text.data, NULL);
    sl_buf_free(&text);
}

static bool profiler_enabled(const void *service)
{
    const struct config *config = ((const struct service *)service)->config;
    return config->mozilla.on && config->mozilla.profiler_apis;
}

static uint64_t profiler_limit(const struct http_exchange *x)
{
    (void)x;
    return MAX_BODY;
}

static const struct http_route routes[] = {
    MOZILLA_POST("/source/v1", job_handle, &job_source, profiler_limit, WEIGHT),
    MOZILLA_POST("/asm/v1", job_handle, &job_asm, profiler_limit, WEIGHT),
    MOZILLA_PREFLIGHT("/source/v1"),
    MOZILLA_PREFLIGHT("/asm/v1"),
    {.method = "POST", .pattern = "/source/{rest..}", .handler = unrecognized, .immediate = true},
    {.method = "POST", .pattern = "/asm/{rest..}", .handler = unrecognized, .immediate = true},
    {.method = NULL},
};

const struct http_family family_profiler = {.routes = routes,
                                            .prefix = mozilla_prefix,
                                            .enabled = profiler_enabled,
                                            .group = "mozilla",
                                            .error = mozilla_error,
                                            .allow_separator = ", ",
                                            .origin_allowed = mozilla_origin_allowed};
