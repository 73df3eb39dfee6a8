/* Writes the frames of scripts with their original functions, files and positions. */
#include "api/text/work.h"

const struct js_frame *text_js_result(const struct text_work *work, const struct text_item *item)
{
    const struct js_request *r = work->js.request;
    uint32_t trace = work->stacks[item->stack].trace;
    if (!r || !r->results || trace >= r->trace_count || item->frame >= r->results[trace].count)
        return NULL;
    const struct js_entry *entry = &r->results[trace].frames[item->frame];
    return entry->symbolicated ? entry->frame : NULL;
}

/* Returns the path without the slash before the drive of Windows, "/C:/a", if the frame had none either. */
static struct sl_str without_slash(struct sl_str was, struct sl_str now)
{
    bool drive = was.size > 1 && was.data[1] == ':' && now.size > 2 && now.data[0] == '/' && now.data[2] == ':';
    return drive ? (struct sl_str){now.data + 1, now.size - 1} : now;
}

/* Returns a copy in the arena that is escaped as the frame is, which may stand in a string of JSON; data is NULL when out of memory. */
static struct sl_str escaped(const struct sl_js_stack_frame *frame, struct sl_str text, struct sl_arena *scratch)
{
    struct sl_buf out = {0};
    sl_js_stack_escape(frame, text, &out);
    return sl_buf_move_to_arena(&out, scratch);
}

/* Makes the frame of a function that was inlined out of the frame in the text: without `async`, `new` and the text behind it, which say
 * something about the function that the engine has called. */
static struct sl_js_stack_frame inlined_frame(const struct sl_js_stack_frame *text)
{
    static const struct sl_str async = SL_STR("async "), crlf = SL_STR("\r\n");
    struct sl_js_stack_frame frame = *text;
    if (sl_str_ends(frame.before, async))
        frame.before.size -= async.size;
    frame.constructor = false;
    frame.function = (struct sl_str){NULL, 0};
    frame.behind = frame.escapes ? SL_STR("") : sl_str_ends(frame.behind, crlf) ? crlf : SL_STR("\n");
    return frame;
}

/* Writes a frame of the result, in the form of the frame in the text. False when out of memory. */
static bool put_frame(struct sl_js_stack_frame frame, const struct js_text_frame *result, const struct js_frame *sent,
                      struct sl_arena *scratch, struct sl_buf *out)
{
    const struct js_frame *now = &result->frame;
    bool has_name = frame.function.size || result->knows_function;
    bool has_path = frame.url.size || now->abs_path.data != sent->abs_path.data;
    /* a source has no place if the frame names no script */
    struct sl_str path = frame.url.size ? without_slash(frame.url, now->abs_path) : now->filename;
    if (has_name && !(frame.function = escaped(&frame, now->function, scratch)).data)
        return false;
    if (has_path && !(frame.url = escaped(&frame, path, scratch)).data)
        return false;
    frame.line = (uint32_t)now->line.value;
    frame.column = (uint32_t)now->column.value;
    sl_js_stack_write(&frame, out);
    return true;
}

bool text_put_script(const struct text_work *work, const struct text_item *item, struct sl_arena *scratch,
                     struct sl_buf *out)
{
    const struct js_frame *now = text_js_result(work, item);
    if (!now) {
        sl_buf_str(out, item->piece.text);
        return true;
    }
    const struct js_request *r = work->js.request;
    const struct js_frame *sent = r->raw[work->stacks[item->stack].trace].frames[item->frame].frame;
    for (const struct js_text_frame *result = js_text_frame(r, now); result; result = js_text_frame(r, result->call)) {
        struct sl_js_stack_frame frame = result->call ? inlined_frame(&item->piece.js) : item->piece.js;
        sl_arena_reset(scratch);
        if (!result->is_left_out && !put_frame(frame, result, sent, scratch, out))
            return false;
    }
    return true;
}
