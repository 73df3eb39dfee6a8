/* The body of POST /symbolicate-jvm into the request. */
#include "api/jvm/jvm.h"
#include "api/sources.h"

#include <stddef.h>

static const struct field exception_fields[] = {
    SCHEMA_FIELD(TEXT, true, jvm_exception, type, "type"),
    SCHEMA_FIELD(TEXT, true, jvm_exception, module, "module"),
    SCHEMA_END,
};

static bool read_exception(struct schema *s, const struct schema_place *at, void *out)
{
    return schema_object(s, at, exception_fields, out);
}

static const struct field frame_fields[] = {
    SCHEMA_FIELD(TEXT, false, jvm_frame, platform, "platform"),
    SCHEMA_FIELD(TEXT, true, jvm_frame, function, "function"),
    SCHEMA_FIELD(TEXT, false, jvm_frame, filename, "filename"),
    SCHEMA_FIELD(TEXT, true, jvm_frame, module, "module"),
    SCHEMA_FIELD(TEXT, false, jvm_frame, abs_path, "abs_path"),
    SCHEMA_FIELD(LINE, false, jvm_frame, line, "lineno"),
    SCHEMA_CUSTOM(false, jvm_frame, pre_context, "pre_context", schema_raw_texts),
    SCHEMA_FIELD(TEXT, false, jvm_frame, context_line, "context_line"),
    SCHEMA_CUSTOM(false, jvm_frame, post_context, "post_context", schema_raw_texts),
    SCHEMA_FIELD(BOOL, false, jvm_frame, in_app, "in_app"),
    SCHEMA_FIELD(U64, true, jvm_frame, index, "index"),
    SCHEMA_FIELD(TEXT, false, jvm_frame, signature, "signature"),
    SCHEMA_FIELD(BOOL, false, jvm_frame, synthesized, "method_synthesized"),
    SCHEMA_END,
};

static bool jvm_read_frame(struct schema *s, const struct schema_place *at, void *out)
{
    struct jvm_request *r = s->context;
    return schema_admit(s, ++r->frame_count, r->config->max_request_frames, sizeof(struct jvm_frame),
                        "too many frames") &&
           schema_object(s, at, frame_fields, out);
}

static bool jvm_read_frames(struct schema *s, const struct schema_place *at, void *out)
{
    struct jvm_trace *trace = out;
    void *frames;
    if (!schema_array(s, at, sizeof(struct jvm_frame), jvm_read_frame, &frames, &trace->count))
        return false;
    trace->frames = frames;
    return true;
}

static const struct field trace_fields[] = {
    SCHEMA_CUSTOM(false, jvm_trace, exception, "exception", read_exception),
    {SL_STR("frames"), FIELD_CUSTOM, true, 0, jvm_read_frames},
    SCHEMA_END,
};

static bool jvm_read_trace(struct schema *s, const struct schema_place *at, void *out)
{
    return schema_object(s, at, trace_fields, out);
}

static bool jvm_read_type(struct schema *s, const struct schema_place *at, void *out)
{
    struct sl_str type;
    size_t where = s->json->at;
    if (!schema_text(s, at, &type))
        return false;
    *(bool *)out = sl_str_equal(type, SL_STR("source"));
    return *(bool *)out || sl_str_equal(type, SL_STR("proguard")) ||
           schema_fail(s, at, where, "unknown variant, expected `proguard` or `source`");
}

static bool read_uuid(struct schema *s, const struct schema_place *at, void *out)
{
    struct sl_str text;
    size_t where = s->json->at;
    return schema_text(s, at, &text) &&
           (sl_debug_id_parse(text, out) || schema_fail(s, at, where, "invalid debug identifier"));
}

static const struct field module_fields[] = {
    SCHEMA_CUSTOM(true, jvm_question, is_bundle, "type", jvm_read_type),
    SCHEMA_CUSTOM(true, jvm_question, id, "uuid", read_uuid),
    SCHEMA_END,
};

static bool jvm_read_module(struct schema *s, const struct schema_place *at, void *out)
{
    struct jvm_request *r = s->context;
    return schema_admit(s, at->index + 1, r->config->max_request_modules, sizeof(struct jvm_question),
                        "too many modules") &&
           schema_object(s, at, module_fields, out);
}

static bool read_class(struct schema *s, const struct schema_place *at, void *out)
{
    return schema_text(s, at, &((struct jvm_class *)out)->name);
}

static const struct field option_fields[] = {
    SCHEMA_FIELD(BOOL, false, jvm_request, apply_source_context, "apply_source_context"),
    SCHEMA_FIELD(BOOL, false, jvm_request, configured_sources, "configured_sources"),
    SCHEMA_CUSTOM(false, jvm_request, callee_first, "frame_order", schema_callee_first),
    SCHEMA_END,
};

static bool jvm_read_options(struct schema *s, const struct schema_place *at, void *out)
{
    (void)out;
    return schema_object(s, at, option_fields, s->context);
}

/* ---- lists ---- */

static bool jvm_read_sources(struct schema *s, const struct schema_place *at, void *out)
{
    struct jvm_request *r = out;
    return request_sources_read_into(s, at, r->config, &r->sources, &r->source_count, NULL);
}

static bool read_exceptions(struct schema *s, const struct schema_place *at, void *out)
{
    struct jvm_request *r = out;
    void *items;
    bool good = schema_array(s, at, sizeof(struct jvm_exception), read_exception, &items, &r->exception_count);
    r->exceptions = good ? items : NULL;
    return good;
}

static bool jvm_read_traces(struct schema *s, const struct schema_place *at, void *out)
{
    struct jvm_request *r = out;
    void *items;
    bool good = schema_array(s, at, sizeof(struct jvm_trace), jvm_read_trace, &items, &r->trace_count);
    r->traces = good ? items : NULL;
    return good;
}

static bool jvm_read_modules(struct schema *s, const struct schema_place *at, void *out)
{
    struct jvm_request *r = out;
    void *items;
    bool good = schema_array(s, at, sizeof(struct jvm_question), jvm_read_module, &items, &r->module_count);
    r->modules = good ? items : NULL;
    return good;
}

static bool read_classes(struct schema *s, const struct schema_place *at, void *out)
{
    struct jvm_request *r = out;
    void *items;
    bool good = schema_array(s, at, sizeof(struct jvm_class), read_class, &items, &r->class_count);
    r->classes = good ? items : NULL;
    return good;
}

#define BODY_FIELDS(needs_sources)                                                                                     \
    SCHEMA_FIELD(TEXT, false, jvm_request, platform, "platform"),                                                      \
        {SL_STR("sources"), FIELD_CUSTOM, (needs_sources), 0, jvm_read_sources},                                       \
        {SL_STR("exceptions"), FIELD_CUSTOM, false, 0, read_exceptions},                                               \
        {SL_STR("stacktraces"), FIELD_CUSTOM, false, 0, jvm_read_traces},                                              \
        {SL_STR("modules"), FIELD_CUSTOM, false, 0, jvm_read_modules},                                                 \
        SCHEMA_FIELD(TEXT, false, jvm_request, release_package, "release_package"),                                    \
        {SL_STR("classes"), FIELD_CUSTOM, false, 0, read_classes},                                                     \
        {SL_STR("options"), FIELD_CUSTOM, false, 0, jvm_read_options}, SCHEMA_END

static const struct field body_fields[] = {BODY_FIELDS(true)};
static const struct field form_fields[] = {BODY_FIELDS(false)};

static bool jvm_read_body(struct schema *s)
{
    const struct jvm_request *r = s->context;
    return schema_object(s, NULL, r->files.sent ? form_fields : body_fields, s->context);
}

bool jvm_read(struct jvm_request *request, struct sl_str body, struct schema_failure *failure)
{
    return schema_document(body, request->arena, jvm_read_body, request, failure);
}
