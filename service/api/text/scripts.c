/* Writes the frames of scripts (JavaScript) in a text again, with their original functions, files and positions. */
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

/* Returns `now`, the path to write, without the slash before a Windows drive, "/C:/a", if the path in the text, `was`, begins with a drive
 * without a slash. */
static struct sl_str without_slash(struct sl_str was, struct sl_str now)
{
    bool drive = was.size > 1 && was.data[1] == ':' && now.size > 2 && now.data[0] == '/' && now.data[2] == ':';
    return drive ? (struct sl_str){now.data + 1, now.size - 1} : now;
}

/* Returns a copy of `text` in the arena, escaped for the place of the frame, which may stand in a JSON string. Data NULL when out of
 * memory. */
static struct sl_str escaped(const struct sl_js_stack_frame *frame, struct sl_str text, struct sl_arena *scratch)
{
    struct sl_buf out = {0};
    sl_js_stack_escape(frame, text, &out);
    return sl_buf_move_to_arena(&out, scratch);
}

/* Returns a copy of the text's frame for the line of a function that was inlined. It lacks `async`, `new`, the function and the text behind
 * the frame: these are about the function that the engine has called, whose line follows. */
static struct sl_js_stack_frame inlined_frame(const struct sl_js_stack_frame *text)
{
    static const struct sl_str async = SL_STR("async "), crlf = SL_STR("\r\n");
    struct sl_js_stack_frame frame = *text;
    if (sl_str_ends(frame.before, async))
        frame.before.size -= async.size;
    frame.constructor = false;
    frame.function = (struct sl_str){NULL, 0};
    /* only the line end; in an encoded string (`escapes`) that is in `before`, in front of the line */
    frame.behind = frame.escapes ? SL_STR("") : sl_str_ends(frame.behind, crlf) ? crlf : SL_STR("\n");
    return frame;
}

/* Writes a symbolicated frame in the form of `frame`, the frame in the text, with the function, file and position of `result`. The function
 * is written only if the text has one or the source map says which it is; the file only if the text names one or the source map has
 * changed it. `sent` is the frame of the request. False when out of memory. */
static bool put_frame(struct sl_js_stack_frame frame, const struct js_text_frame *result, const struct js_frame *sent,
                      struct sl_arena *scratch, struct sl_buf *out)
{
    const struct js_frame *mapped = &result->frame;
    bool has_name = frame.function.size || result->knows_function;
    /* compares pointers: a path that the source map has not changed is the one that was sent */
    bool has_path = frame.url.size || mapped->abs_path.data != sent->abs_path.data;
    /* if the frame names no script, there is no URL to which the source's path could be relative: write that path alone */
    struct sl_str path = frame.url.size ? without_slash(frame.url, mapped->abs_path) : mapped->filename;
    if (has_name && !(frame.function = escaped(&frame, mapped->function, scratch)).data)
        return false;
    if (has_path && !(frame.url = escaped(&frame, path, scratch)).data)
        return false;
    frame.line = (uint32_t)mapped->line.value;
    frame.column = (uint32_t)mapped->column.value;
    sl_js_stack_write(&frame, out);
    return true;
}

bool text_put_script(const struct text_work *work, const struct text_item *item, struct sl_arena *scratch,
                     struct sl_buf *out)
{
    const struct js_frame *mapped = text_js_result(work, item);
    if (!mapped) {
        sl_buf_str(out, item->piece.text);
        return true;
    }
    const struct js_request *r = work->js.request;
    const struct js_frame *sent = r->raw[work->stacks[item->stack].trace].frames[item->frame].frame;
    /* the function at the position, then the functions into which it was inlined, one after the other */
    for (const struct js_text_frame *result = js_text_frame(r, mapped); result;
         result = js_text_frame(r, result->call)) {
        struct sl_js_stack_frame frame = result->call ? inlined_frame(&item->piece.js) : item->piece.js;
        sl_arena_reset(scratch);
        if (!result->is_left_out && !put_frame(frame, result, sent, scratch, out))
            return false;
    }
    return true;
}
