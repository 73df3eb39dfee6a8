/* Reads the body of POST /symbolicate-jvm. */
#include "api/jvm/jvm.h"
#include "api/sources.h"

#include <stddef.h>

static const struct sl_field exception_fields[] = {
    SL_FIELD(TEXT, true, jvm_exception, type, "type"),
    SL_FIELD(TEXT, true, jvm_exception, module, "module"),
    SL_FIELDS_END,
};

static const struct sl_field frame_fields[] = {
    SL_FIELD(TEXT, false, jvm_frame, platform, "platform"),
    SL_FIELD(TEXT, true, jvm_frame, function, "function"),
    SL_FIELD(TEXT, false, jvm_frame, filename, "filename"),
    SL_FIELD(TEXT, true, jvm_frame, module, "module"),
    SL_FIELD(TEXT, false, jvm_frame, abs_path, "abs_path"),
    SL_FIELD(LINE, false, jvm_frame, line, "lineno"),
    SL_FIELD_BY(false, jvm_frame, pre_context, "pre_context", json_raw_texts),
    SL_FIELD(TEXT, false, jvm_frame, context_line, "context_line"),
    SL_FIELD_BY(false, jvm_frame, post_context, "post_context", json_raw_texts),
    SL_FIELD(BOOL, false, jvm_frame, in_app, "in_app"),
    SL_FIELD(U64, true, jvm_frame, index, "index"),
    SL_FIELD(TEXT, false, jvm_frame, signature, "signature"),
    SL_FIELD(BOOL, false, jvm_frame, synthesized, "method_synthesized"),
    SL_FIELDS_END,
};

/* Reads a frame, up to the configured number of frames in the whole request. */
static bool jvm_read_frame(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct jvm_request *r = s->context;
    return sl_fields_admit(s, ++r->frame_count, r->config->max_request_frames, sizeof(struct jvm_frame),
                           "too many frames") &&
           sl_fields_object(s, at, frame_fields, out);
}

static const struct sl_field trace_fields[] = {
    SL_FIELD_PART(jvm_trace, exception, "exception", exception_fields),
    SL_FIELD_EACH(true, jvm_trace, frames, count, "frames", jvm_read_frame),
    SL_FIELDS_END,
};

/* Reads the member `type` of a module into is_bundle: true for "source" (a source bundle), false for "proguard" (a mapping). */
static bool jvm_read_type(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str type;
    size_t where = s->json->at;
    if (!sl_fields_text(s, at, &type))
        return false;
    *(bool *)out = sl_str_equal(type, SL_STR("source"));
    return *(bool *)out || sl_str_equal(type, SL_STR("proguard")) ||
           sl_fields_fail(s, at, where, "unknown variant, expected `proguard` or `source`");
}

/* Reads the id of a module: a UUID, or another form of a debug id. */
static bool read_uuid(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct sl_str text;
    size_t where = s->json->at;
    return sl_fields_text(s, at, &text) &&
           (sl_debug_id_parse(text, out) || sl_fields_fail(s, at, where, "invalid debug identifier"));
}

static const struct sl_field module_fields[] = {
    SL_FIELD_BY(true, jvm_query, is_bundle, "type", jvm_read_type),
    SL_FIELD_BY(true, jvm_query, id, "uuid", read_uuid),
    SL_FIELDS_END,
};

/* Reads a module (a mapping or a source bundle), up to the configured number of modules. */
static bool jvm_read_module(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct jvm_request *r = s->context;
    return sl_fields_admit(s, at->index + 1, r->config->max_request_modules, sizeof(struct jvm_query),
                           "too many modules") &&
           sl_fields_object(s, at, module_fields, out);
}

/* Reads an element of `classes`, which is only the class's name. */
static bool read_class(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    return sl_fields_text(s, at, &((struct jvm_class *)out)->name);
}

static const struct sl_field option_fields[] = {
    SL_FIELD(BOOL, false, jvm_request, apply_source_context, "apply_source_context"),
    SL_FIELD(BOOL, false, jvm_request, configured_sources, "configured_sources"),
    SL_FIELD_BY(false, jvm_request, callee_first, "frame_order", json_callee_first),
    SL_FIELDS_END,
};

/* ---- lists ---- */

static bool jvm_read_sources(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct jvm_request *r = out;
    return request_sources_read_into(s, at, r->config, &r->sources, &r->source_count, NULL);
}

/* The members of the body. `needs_sources`: `sources` is required in a JSON body; a form may send the mappings themselves. */
#define BODY_FIELDS(needs_sources)                                                                                     \
    SL_FIELD(TEXT, false, jvm_request, platform, "platform"),                                                          \
        {SL_STR("sources"), SL_FIELD_CUSTOM, needs_sources, 0, jvm_read_sources},                                      \
        SL_FIELD_ITEMS(jvm_request, exceptions, exception_count, "exceptions", exception_fields),                      \
        SL_FIELD_ITEMS(jvm_request, traces, trace_count, "stacktraces", trace_fields),                                 \
        SL_FIELD_EACH(false, jvm_request, modules, module_count, "modules", jvm_read_module),                          \
        SL_FIELD(TEXT, false, jvm_request, release_package, "release_package"),                                        \
        SL_FIELD_EACH(false, jvm_request, classes, class_count, "classes", read_class),                                \
        SL_FIELD_SAME("options", option_fields), SL_FIELDS_END

static const struct sl_field body_fields[] = {BODY_FIELDS(true)};
static const struct sl_field form_fields[] = {BODY_FIELDS(false)};

static bool jvm_read_body(struct sl_fields *s)
{
    const struct jvm_request *r = s->context;
    return sl_fields_object(s, NULL, r->files.sent ? form_fields : body_fields, s->context);
}

bool jvm_read(struct jvm_request *request, struct sl_str body, struct json_failure *failure)
{
    return json_document(body, request->arena, jvm_read_body, request, failure);
}
