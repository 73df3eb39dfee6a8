/* Writes the JSON answer of POST /symbolicate-text:
 *
 *     {"status": "completed", "formats": ["asan", "js"],
 *      "stacks": [{"format": "asan", "kind": "native", "index": 0, "line": 4, "title": "READ of size 4", "frames": 5}, ...],
 *      "stacktraces": [...], "modules": [...],     as POST /symbolicate answers, for native code
 *      "js": {...}, "jvm": {...},                  the answers of POST /symbolicate-js and -jvm, if the text has such frames
 *      "text": "..."}
 *
 * Modules whose id was found by their name have "guess": true. A stack's `index` is that of its trace: in "stacktraces" for kind "native",
 * in those of "js" or "jvm" for the other kinds. Each stack also has `lines`, the stack as it stands in the text: an array of a number for
 * each frame, its index in the trace, and of a string for each line without a frame. */
#include "api/text/work.h"

enum { MAX_NOTES = 4096 }; /* lines between two frames are left out if they have so many bytes */

/* Returns the value of "kind" for a stack. */
static const char *kind_of(const struct text_work *work, const struct text_stack *stack)
{
    switch (work->items[stack->first].piece.kind) {
    case SL_TEXT_SCRIPT: return "js";
    case SL_TEXT_JAVA: return "jvm";
    default: return "native";
    }
}

/* Writes the lines of the text from `begin` (NULL: none) to `end`, none of which has a frame, as strings. Leaves out empty lines and the
 * title. Writes nothing if the lines have MAX_NOTES bytes or more, so that an answer does not repeat a long log. */
static void put_notes(const char *begin, const char *end, struct sl_str title, struct sl_json_writer *w)
{
    struct sl_str text = {begin, begin && end > begin ? (size_t)(end - begin) : 0}, line;
    while (text.size && text.size < MAX_NOTES && sl_str_next_line(&text, &line)) {
        line = sl_str_trimmed(line);
        if (line.size && line.data != title.data) /* compares pointers: the title is the same part of the text */
            sl_json_put_str(w, line);
    }
}

/* Writes the member "lines" of stack number `index`: the frames as numbers, and the lines before and between them as strings. The last
 * stack of the text also has the lines up to the end of the text. */
static void put_lines(const struct text_work *work, const struct text_stack *stack, uint32_t index,
                      struct sl_json_writer *w)
{
    struct sl_str text = work->parts[TEXT_TEXT];
    const char *done = stack->begin, *last = index + 1 == work->stack_count ? text.data + text.size : stack->end;
    size_t left = stack->count;
    bool is_json = false;
    sl_json_member_array(w, "lines");
    for (size_t i = stack->first; left && i < work->item_count; i++) {
        const struct text_item *item = &work->items[i];
        if (item->piece.kind == SL_TEXT_MADE || item->stack != index) /* replaced markup, or a frame of another stack */
            continue;
        is_json = item->piece.kind == SL_TEXT_NATIVE && item->piece.native.is_json;
        if (!is_json) /* in a report as JSON (Apple's .ips) the text between frames is only members of frames */
            put_notes(done, item->source.data, stack->title, w);
        sl_json_put_u64(w, item->frame);
        done = item->source.data + item->source.size;
        left--;
    }
    if (!is_json)
        put_notes(done, last, stack->title, w);
    sl_json_end_array(w);
}

/* Writes the member "title", unless the title is empty. In that of a stack of the JVM (`is_jvm`) obfuscated names of exceptions are
 * replaced by the original ones, if the request has a mapping. */
static void put_title(const struct text_work *work, struct sl_str title, bool is_jvm, struct sl_json_writer *w)
{
    const struct jvm_request *jvm = work->jvm.request;
    struct sl_jvm_trace trace;
    struct sl_buf line = {0};
    if (!title.size)
        return;
    if (is_jvm && jvm && jvm->mappers.count) {
        if (!sl_jvm_trace_begin(&trace, &jvm->mappers) || !sl_jvm_trace_line(&trace, title, &line))
            w->out->failed = true;
        title = sl_str_trimmed(sl_buf_view(&line));
        sl_jvm_trace_end(&trace);
    }
    sl_json_member_str(w, "title", title);
    sl_buf_free(&line);
}

/* Writes an element of the member "stacks". `line`: number of the line of its first frame. */
static void put_stack(const struct text_work *work, uint32_t index, uint64_t line, struct sl_json_writer *w)
{
    const struct text_stack *stack = &work->stacks[index];
    sl_json_begin_object(w);
    sl_json_member_str(w, "format", sl_str(sl_text_format_name(work->items[stack->first].piece.format)));
    sl_json_member_str(w, "kind", sl_str(kind_of(work, stack)));
    /* the stack's trace in "stacktraces", which the answer has at its top level and in the members "js" and "jvm" */
    sl_json_member_u64(w, "index", stack->trace);
    sl_json_member_u64(w, "line", line);
    sl_json_member_u64(w, "frames", stack->count);
    put_title(work, stack->title, work->items[stack->first].piece.kind == SL_TEXT_JAVA, w);
    put_lines(work, stack, index, w);
    sl_json_end_object(w);
}

/* Writes the member "stacks". The number of the line of a stack's first frame is counted on from that of the stack before, so that the text
 * is read only once. */
static void put_all_stacks(const struct text_work *work, struct sl_json_writer *w)
{
    const char *at = work->parts[TEXT_TEXT].data;
    uint64_t line = 1;
    sl_json_member_array(w, "stacks");
    for (size_t i = 0; i < work->stack_count; i++) {
        const char *begin = work->items[work->stacks[i].first].source.data, *newline;
        while ((newline = memchr(at, '\n', (size_t)(begin - at)))) {
            at = newline + 1;
            line++;
        }
        put_stack(work, (uint32_t)i, line, w);
    }
    sl_json_end_array(w);
}

/* Writes the member "formats": those of which frames were found; if the request names one format, at most that one. */
static void put_formats(const struct text_work *work, struct sl_json_writer *w)
{
    sl_json_member_array(w, "formats");
    for (int i = 1; i < SL_TEXT_FORMATS; i++) /* 0 is SL_TEXT_PLAIN, which is no format of frames */
        if (work->reader->counts[i] && (work->only == SL_TEXT_PLAIN || (int)work->only == i))
            sl_json_put_str(w, sl_str(sl_text_format_name((enum sl_text_format)i)));
    sl_json_end_array(w);
}

/* Writes the answer of the API for scripts or the JVM as a member, without its first member "status": copies the text behind that, which
 * ends with the closing brace. Writes nothing if that API was not used or did not answer with status "completed". */
static void put_part(const char *key, const struct job *part, struct sl_json_writer *w)
{
    static const struct sl_str status = SL_STR("{\"status\":\"completed\",");
    struct sl_str text = sl_buf_view(&part->answer);
    if (!part->request || !sl_str_starts(text, status))
        return;
    sl_json_put_key(w, key);
    sl_buf_u8(w->out, '{');
    sl_buf_add(w->out, text.data + status.size, text.size - status.size);
    w->comma = true; /* the writer was bypassed: its next member needs a comma */
}

void text_write_json(struct text_work *work, struct sl_str text, struct sl_json_writer *w)
{
    put_formats(work, w);
    put_all_stacks(work, w);
    if (work->native.results || !work->native.trace_count) /* native_write needs a result for each trace */
        native_write(&work->native, w, NULL);              /* NULL: its argument is not used */
    put_part("js", &work->js, w);
    put_part("jvm", &work->jvm, w);
    sl_json_member_str(w, "text", text);
}
