/* Writes the answer of POST /symbolicate-jvm. Members are in the order in which Symbolicator writes them. */
#include "api/jvm/jvm.h"

#include "base/json_write.h"
#include "base/map.h"

static void write_exception(struct sl_json_writer *w, const struct jvm_exception *exception)
{
    sl_json_begin_object(w);
    sl_json_member_if_set(w, "type", exception->type);
    sl_json_member_if_set(w, "module", exception->module);
    sl_json_end_object(w);
}

/* Writes a frame. Its source lines are those that were found, else those that were sent. */
static void jvm_write_frame(struct sl_json_writer *w, const struct jvm_frame *frame)
{
    sl_json_begin_object(w);
    sl_json_member_if_set(w, "platform", frame->platform);
    sl_json_member_if_set(w, "function", frame->function);
    sl_json_member_if_set(w, "filename", frame->filename);
    sl_json_member_if_set(w, "module", frame->module);
    sl_json_member_if_set(w, "abs_path", frame->abs_path);
    if (frame->line.set)
        sl_json_member_u64(w, "lineno", frame->line.value);
    if (frame->context)
        frame_lines_write(w, frame->context);
    else
        frame_lines_write_sent(w, frame->pre_context, frame->context_line, frame->post_context);
    if (frame->in_app != SL_BOOL_ABSENT)
        sl_json_member_boolean(w, "in_app", frame->in_app == SL_BOOL_TRUE);
    sl_json_member_u64(w, "index", frame->index.value);
    sl_json_member_if_set(w, "signature", frame->signature);
    if (frame->synthesized == SL_BOOL_TRUE)
        sl_json_member_boolean(w, "method_synthesized", true);
    sl_json_end_object(w);
}

/* Writes a trace; `exception` is null if the request had none for it. At the answer's limit the other frames are counted as omitted. */
static void write_trace(struct sl_json_writer *w, const struct jvm_trace *trace, struct answer_limit *limit)
{
    sl_json_begin_object(w);
    sl_json_put_key(w, "exception");
    if (trace->exception.type.data)
        write_exception(w, &trace->exception);
    else
        sl_json_put_null(w);
    sl_json_member_array(w, "frames");
    for (size_t i = 0; i < trace->count; i++) {
        if (!answer_limit_fits(limit, w->out, 0)) {
            limit->omitted += trace->count - i;
            break;
        }
        jvm_write_frame(w, &trace->frames[i]);
    }
    sl_json_end_array(w);
    sl_json_end_object(w);
}

/* Writes {"obfuscated name": "original name", ...}. A name that the client sent twice is written once, as keys of a JSON object must
 * be unique. Names without an original are left out. */
static void write_classes(const struct jvm_request *r, struct sl_json_writer *w)
{
    struct sl_map seen = {0};
    sl_json_member_object(w, "classes");
    for (size_t i = 0; i < r->class_count && answer_limit_fits(r->limit, w->out, 0); i++) {
        bool made = false;
        if (!r->classes[i].original.data)
            continue;
        if (!sl_map_find_or_add(&seen, r->classes[i].name, &made))
            w->out->failed = true;
        if (!made)
            continue;
        sl_json_put_key_str(w, r->classes[i].name);
        sl_json_put_str(w, r->classes[i].original);
    }
    sl_json_end_object(w);
    sl_map_free(&seen);
}

/* Writes why a mapping was not used. Only with jvm.error_details, as Symbolicator has no such member. */
static void write_detail(struct sl_json_writer *w, const struct jvm_query *module)
{
    struct sl_buf text = {0};
    sl_buf_printf(&text, "The proguard mapping file is %s: %s.", module->code == SL_MALFORMED ? "invalid" : "missing",
                  module->error.message);
    sl_json_member_if_set(w, "detail", sl_buf_view(&text));
    w->out->failed |= text.failed;
    sl_buf_free(&text);
}

/* Writes an error for each module that is a mapping and was not found or is invalid, then for each invalid mapping that was sent
 * with the request. */
static void write_errors(const struct jvm_request *r, struct sl_json_writer *w)
{
    sl_json_member_array(w, "errors");
    for (size_t i = 0; i < r->module_count; i++) {
        const struct jvm_query *module = &r->modules[i];
        char id[SL_DEBUG_ID_TEXT];
        if (module->is_bundle || module->code == SL_OK)
            continue;
        sl_debug_id_format(&module->id, id);
        sl_json_begin_object(w);
        sl_json_member_if_set(w, "uuid", sl_str(id));
        sl_json_member_if_set(w, "type", module->code == SL_MALFORMED ? SL_STR("invalid") : SL_STR("missing"));
        if (r->config->jvm_error_details)
            write_detail(w, module);
        sl_json_end_object(w);
    }
    for (size_t i = 0; i < r->files.count; i++) {
        if (r->sent_mappings[i].code == SL_OK)
            continue;
        sl_json_begin_object(w);
        sl_json_member_if_set(w, "artifact", r->files.items[i].name);
        sl_json_member_if_set(w, "type", SL_STR("invalid"));
        sl_json_end_object(w);
    }
    sl_json_end_array(w);
}

/* Exceptions and frames are left out from the point where the answer's limit is reached; answer_limit_write says how many frames. */
void jvm_write(const struct jvm_request *r, struct sl_buf *out)
{
    struct sl_json_writer writer = sl_json_writer(out), *w = &writer;
    sl_json_begin_object(w);
    sl_json_member_if_set(w, "status", SL_STR("completed"));
    sl_json_member_array(w, "exceptions");
    for (size_t i = 0; i < r->exception_count && answer_limit_fits(r->limit, w->out, 0); i++)
        write_exception(w, &r->mapped[i]);
    sl_json_end_array(w);
    sl_json_member_array(w, "stacktraces");
    for (size_t i = 0; i < r->trace_count; i++)
        write_trace(w, &r->results[i], r->limit);
    sl_json_end_array(w);
    write_classes(r, w);
    write_errors(r, w);
    answer_limit_write(r->limit, w);
    sl_json_end_object(w);
}
