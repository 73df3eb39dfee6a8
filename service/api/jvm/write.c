/* The answer of POST /symbolicate-jvm, keys in the order that the API has them. */
#include "api/jvm/jvm.h"

#include "base/map.h"
#include "core/json.h"

static void jvm_text(struct json_writer *w, const char *key, struct sl_str text)
{
    if (!text.data)
        return;
    json_key(w, key);
    json_str(w, text);
}

static void write_exception(struct json_writer *w, const struct jvm_exception *exception)
{
    json_object_begin(w);
    jvm_text(w, "type", exception->type);
    jvm_text(w, "module", exception->module);
    json_object_end(w);
}

static void jvm_write_frame(struct json_writer *w, const struct jvm_frame *frame)
{
    json_object_begin(w);
    jvm_text(w, "platform", frame->platform);
    jvm_text(w, "function", frame->function);
    jvm_text(w, "filename", frame->filename);
    jvm_text(w, "module", frame->module);
    jvm_text(w, "abs_path", frame->abs_path);
    if (frame->line.set) {
        json_key(w, "lineno");
        json_u64(w, frame->line.value);
    }
    if (frame->context)
        frame_lines_write(w, frame->context);
    else
        frame_lines_write_sent(w, frame->pre_context, frame->context_line, frame->post_context);
    if (frame->in_app != SL_BOOL_ABSENT) {
        json_key(w, "in_app");
        json_boolean(w, frame->in_app == SL_BOOL_TRUE);
    }
    json_key(w, "index");
    json_u64(w, frame->index.value);
    jvm_text(w, "signature", frame->signature);
    if (frame->synthesized == SL_BOOL_TRUE) {
        json_key(w, "method_synthesized");
        json_boolean(w, true);
    }
    json_object_end(w);
}

static void write_trace(struct json_writer *w, const struct jvm_trace *trace, struct answer_limit *limit)
{
    json_object_begin(w);
    json_key(w, "exception");
    if (trace->exception.type.data)
        write_exception(w, &trace->exception);
    else
        json_null(w);
    json_key(w, "frames");
    json_array_begin(w);
    for (size_t i = 0; i < trace->count; i++) {
        if (!answer_limit_fits(limit, w->out, 0)) {
            limit->omitted += trace->count - i;
            break;
        }
        jvm_write_frame(w, &trace->frames[i]);
    }
    json_array_end(w);
    json_object_end(w);
}

/* Each name once. */
static void write_classes(const struct jvm_request *r, struct json_writer *w)
{
    struct sl_map seen = {0};
    json_key(w, "classes");
    json_object_begin(w);
    for (size_t i = 0; i < r->class_count && answer_limit_fits(r->limit, w->out, 0); i++) {
        bool made = false;
        if (!r->classes[i].original.data)
            continue;
        if (!sl_map_slot(&seen, r->classes[i].name, &made))
            w->out->failed = true;
        if (!made)
            continue;
        json_key_str(w, r->classes[i].name);
        json_str(w, r->classes[i].original);
    }
    json_object_end(w);
    sl_map_free(&seen);
}

static void write_detail(struct json_writer *w, const struct jvm_question *module)
{
    struct sl_buf text = {0};
    sl_buf_printf(&text, "The proguard mapping file is %s: %s.", module->code == SL_MALFORMED ? "invalid" : "missing",
                  module->error.message);
    jvm_text(w, "detail", sl_buf_view(&text));
    w->out->failed |= text.failed;
    sl_buf_free(&text);
}

static void write_errors(const struct jvm_request *r, struct json_writer *w)
{
    json_key(w, "errors");
    json_array_begin(w);
    for (size_t i = 0; i < r->module_count; i++) {
        const struct jvm_question *module = &r->modules[i];
        char id[SL_DEBUG_ID_TEXT];
        if (module->is_bundle || module->code == SL_OK)
            continue;
        sl_debug_id_format(&module->id, id);
        json_object_begin(w);
        jvm_text(w, "uuid", sl_str(id));
        jvm_text(w, "type", module->code == SL_MALFORMED ? SL_STR("invalid") : SL_STR("missing"));
        if (r->config->jvm_error_details)
            write_detail(w, module);
        json_object_end(w);
    }
    for (size_t i = 0; i < r->files.count; i++) {
        if (r->own[i].code == SL_OK)
            continue;
        json_object_begin(w);
        jvm_text(w, "artifact", r->files.items[i].name);
        jvm_text(w, "type", SL_STR("invalid"));
        json_object_end(w);
    }
    json_array_end(w);
}

void jvm_write(const struct jvm_request *r, struct sl_buf *out)
{
    struct json_writer writer = json_writer(out), *w = &writer;
    json_object_begin(w);
    jvm_text(w, "status", SL_STR("completed"));
    json_key(w, "exceptions");
    json_array_begin(w);
    for (size_t i = 0; i < r->exception_count && answer_limit_fits(r->limit, w->out, 0); i++)
        write_exception(w, &r->mapped[i]);
    json_array_end(w);
    json_key(w, "stacktraces");
    json_array_begin(w);
    for (size_t i = 0; i < r->trace_count; i++)
        write_trace(w, &r->results[i], r->limit);
    json_array_end(w);
    write_classes(r, w);
    write_errors(r, w);
    answer_limit_write(r->limit, w);
    json_object_end(w);
}
