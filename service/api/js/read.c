/* Reads the body of POST /symbolicate-js. */
#include <stddef.h>

#include "api/js/js.h"
#include "api/sources.h"
#include "core/log.h"
#include "debug_file_store/debug_file_store.h"

static struct js_request *js_get_request(struct sl_fields *s)
{
    return s->context;
}

/* ---- frames ---- */

/* True if the next frame has the members that resolving needs: a text `abs_path` and a number `lineno` up to UINT32_MAX. Reads ahead
 * with a copy of the reader, so nothing is consumed. */
static bool has_position(struct sl_json j)
{
    bool has_path = false, has_line = false, in_range;
    struct sl_str key, text;
    uint64_t line;
    if (sl_json_peek(&j) != SL_JSON_OBJECT || !sl_json_enter(&j))
        return false;
    while (sl_json_next(&j, &key)) {
        bool is_text = sl_json_peek(&j) == SL_JSON_STRING;
        if (sl_str_equal(key, SL_STR("abs_path"))) {
            has_path = is_text;
            sl_json_skip(&j);
        } else if (sl_str_equal(key, SL_STR("lineno")) && sl_json_peek(&j) == SL_JSON_NUMBER) {
            bool negative;
            in_range = sl_json_number(&j, &text) && sl_json_integer(text, &negative, &line);
            has_line = in_range && !negative && line <= UINT32_MAX;
        } else {
            sl_json_skip(&j);
        }
    }
    return has_path && has_line;
}

/* Keeps `sourcemap_origin` as it is, JSON of any type. */
static bool read_origin_json(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    (void)at;
    return sl_json_value(s->json, out);
}

static const struct sl_field data_fields[] = {
    SL_FIELD(TEXT, false, js_frame_origin, sourcemap, "sourcemap"),
    SL_FIELD_BY(false, js_frame_origin, json, "sourcemap_origin", read_origin_json),
    SL_FIELD(TEXT, false, js_frame_origin, resolved_with, "resolved_with"),
    SL_FIELDS_END,
};

/* Reads the member `data` of a frame: says which map resolved the frame before, if it was resolved already. Few frames have that, so
 * it is stored outside of the frame. */
static bool read_frame_data(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct js_frame *frame = out;
    struct js_frame_origin origin = {.json.data = NULL};
    if (!sl_fields_object(s, at, data_fields, &origin))
        return false;
    if (!origin.sourcemap.data && !origin.resolved_with.data && !origin.json.data)
        return true;
    struct js_frame_origin *kept = SL_ARENA_NEW(s->json->arena, struct js_frame_origin);
    if (!kept)
        return sl_json_no_memory(s->json);
    *kept = origin;
    frame->origin = kept;
    return true;
}

static const struct sl_field js_frame_fields[] = {
    SL_FIELD(TEXT, false, js_frame, platform, "platform"),
    SL_FIELD(TEXT, false, js_frame, function, "function"),
    SL_FIELD(TEXT, false, js_frame, filename, "filename"),
    SL_FIELD(TEXT, false, js_frame, module, "module"),
    SL_FIELD(TEXT, true, js_frame, abs_path, "abs_path"),
    SL_FIELD(U32, true, js_frame, line, "lineno"),
    SL_FIELD(U32, false, js_frame, column, "colno"),
    SL_FIELD_BY(false, js_frame, pre_context, "pre_context", json_raw_texts),
    SL_FIELD(TEXT, false, js_frame, context_line, "context_line"),
    SL_FIELD_BY(false, js_frame, post_context, "post_context", json_raw_texts),
    {SL_STR("data"), SL_FIELD_CUSTOM, false, 0, read_frame_data},
    SL_FIELDS_END,
};

/* Reads a frame. If it lacks abs_path or lineno it cannot be resolved: its JSON is kept, and written as it is. From a path "async
 * https://..." removes the first word, which is V8's and not a part of the path. */
static bool js_read_frame(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    static const struct sl_str async = SL_STR("async ");
    struct js_request *r = js_get_request(s);
    struct js_entry *entry = out;
    struct sl_str sent;
    if (!sl_fields_admit(s, ++r->frame_count, r->config->max_request_frames, sizeof *entry + sizeof(struct js_frame),
                         "too many frames"))
        return false;
    if (sl_json_peek(s->json) == SL_JSON_OBJECT && !has_position(*s->json)) { /* other values are refused below */
        if (!sl_json_value(s->json, &sent))
            return false;
        entry->sent = sent.data;
        entry->sent_size = (uint32_t)sent.size;
        return true;
    }
    struct js_frame *frame = entry->frame = SL_ARENA_NEW(s->json->arena, struct js_frame);
    if (!frame)
        return sl_json_no_memory(s->json);
    if (!sl_fields_object(s, at, js_frame_fields, frame))
        return false;
    if (sl_str_starts(frame->abs_path, async))
        frame->abs_path = (struct sl_str){frame->abs_path.data + async.size, frame->abs_path.size - async.size};
    return true;
}

static const struct sl_field js_trace_fields[] = {
    SL_FIELD_EACH(true, js_trace, frames, count, "frames", js_read_frame),
    SL_FIELDS_END,
};

/* ---- modules ---- */

/* Checks the member `type` of a module: anything but "sourcemap" is an error. */
static bool js_read_type(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str type;
    size_t where = s->json->at;
    (void)out;
    return sl_fields_text(s, at, &type) && (sl_str_equal(type, SL_STR("sourcemap")) ||
                                            sl_fields_fail(s, at, where, "unknown variant, expected `sourcemap`"));
}

/* Reads a debug id; an invalid one stays nil and is ignored. */
static bool js_read_debug_id(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str text;
    if (!sl_fields_text(s, at, &text))
        return false;
    if (!sl_debug_id_parse(text, out))
        log_debug("js", "a module of the request has an invalid debug id, which is ignored",
                  LOG_SLSTR("debug_id", text));
    return true;
}

static const struct sl_field js_module_fields[] = {
    {SL_STR("type"), SL_FIELD_CUSTOM, true, 0, js_read_type},
    SL_FIELD(TEXT, true, js_debug_id, code_file, "code_file"),
    SL_FIELD_BY(true, js_debug_id, id, "debug_id", js_read_debug_id),
    SL_FIELDS_END,
};

/* Reads a module (a script and its debug id), up to the configured number of modules. */
static bool js_read_module(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct js_request *r = js_get_request(s);
    return sl_fields_admit(s, at->index + 1, r->config->max_request_modules, sizeof(struct js_debug_id),
                           "too many modules") &&
           sl_fields_object(s, at, js_module_fields, out);
}

/* ---- the rest ---- */

static const struct sl_field js_option_fields[] = {
    SL_FIELD(BOOL, false, js_request, apply_source_context, "apply_source_context"),
    SL_FIELD_BY(false, js_request, callee_first, "frame_order", json_callee_first),
    SL_FIELDS_END,
};

static bool js_read_source(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct js_request *r = out;
    return request_sentry_read(s, at, r->config, &r->source);
}

/* The members of the body. `needs_source`: `source` is required. A form may do without it, as it may have the files themselves. A JSON
 * body must have it, unless this server has a store of uploaded files, as otherwise there is no place to look for files. */
#define JS_BODY_FIELDS(needs_source)                                                                                   \
    SL_FIELD(TEXT, false, js_request, platform, "platform"),                                                           \
        {SL_STR("source"), SL_FIELD_CUSTOM, needs_source, 0, js_read_source},                                          \
        SL_FIELD_ITEMS(js_request, raw, trace_count, "stacktraces", js_trace_fields),                                  \
        SL_FIELD_EACH(false, js_request, ids, id_count, "modules", js_read_module),                                    \
        SL_FIELD(TEXT, false, js_request, release, "release"), SL_FIELD(TEXT, false, js_request, dist, "dist"),        \
        SL_FIELD_BY(false, js_request, scraping, "scraping", scraping_read),                                           \
        SL_FIELD(BOOL, false, js_request, allow_scraping, "allow_scraping"),                                           \
        SL_FIELD_SAME("options", js_option_fields), SL_FIELDS_END

static const struct sl_field js_body_fields[] = {JS_BODY_FIELDS(true)};
static const struct sl_field js_form_fields[] = {JS_BODY_FIELDS(false)};

static bool js_read_body(struct sl_fields *s)
{
    return sl_fields_object(
        s, NULL, js_get_request(s)->files.sent || debug_files_are_open() ? js_form_fields : js_body_fields, s->context);
}

bool js_read(struct js_request *request, struct sl_str body, struct json_failure *failure)
{
    request->scraping = scraping_default;
    return json_document(body, request->arena, js_read_body, request, failure);
}
