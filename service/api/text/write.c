/* Writes the text of the request again, with the names that were found for its frames. */
#include "api/text/work.h"

#include <stdlib.h>

#include "base/grow.h"
#include "demangle/demangle.h"

struct text_writing {
    struct text_work *work;
    struct sl_buf *out;
    struct sl_buf path;
    struct sl_arena scratch;
    struct sl_text_call *calls; /* of one frame; reused */
    size_t capacity;            /* of `calls` */
    uint64_t added_lines; /* how many lines inlined calls have added to the current stack: kept by sl_text_write */
    struct sl_jvm_trace own_trace;
    struct sl_jvm_trace *trace; /* own_trace or the command's; NULL: there is no mapping of the JVM */
};

/* ---- native code ---- */

/* Returns the demangled function or, if there is none, the symbol; empty for a frame without names. */
static struct sl_str display_name(const struct native_result_frame *frame)
{
    const struct native_names *names = frame->names;
    if (!names)
        return (struct sl_str){NULL, 0};
    return names->function.size ? names->function : names->symbol;
}

/* Converts a frame of the result to the call that is written. `is_return`: the text has a return address, so the address before it was
 * looked up; therefore 1 is added to the call's offset. False if the frame has no symbol, or when out of memory, with `w->out` failed. */
static bool make_call(struct text_writing *w, const struct native_result_frame *frame, bool is_return,
                      struct sl_text_call *call)
{
    struct sl_str path;
    *call = (struct sl_text_call){.function = display_name(frame)};
    if (frame->status != FRAME_SYMBOLICATED || !call->function.size)
        return false;
    native_frame_location(&w->work->native, frame, &w->path, &path, &call->line);
    call->column = frame->is_dotnet ? 0 : frame->location.column; /* results of .NET have no column */
    if (path.size)
        call->path = (struct sl_str){sl_arena_strndup(&w->scratch, path.data, path.size), path.size};
    w->out->failed |= path.size && !call->path.data;
    /* only of the function that was not inlined the address of its begin is known */
    if (frame->outermost && frame->symbol_address <= frame->address) {
        call->offset = frame->address - frame->symbol_address + is_return;
        call->has_offset = true;
    }
    return !path.size || call->path.data;
}

/* Sets `w->calls` to the calls at the address of frame number `frame` of the text's stack: the function and those into which it was
 * inlined. Returns their number; 0 if one of them has no symbol, or when out of memory, with `w->out` failed. `*at` is the index of the
 * first result to look at, and is moved on: results are in the order of the frames. `is_return`: see make_call. */
static size_t find_calls(struct text_writing *w, const struct native_result_trace *trace, uint32_t frame,
                         bool is_return, size_t *at)
{
    size_t count = 0;
    while (*at < trace->count && trace->frames[*at].index < frame)
        ++*at;
    for (; *at < trace->count && trace->frames[*at].index == frame; ++*at) {
        if (!sl_grow(&w->calls, &w->capacity, count + 1, sizeof *w->calls)) {
            w->out->failed = true;
            return 0;
        }
        if (!make_call(w, &trace->frames[*at], is_return, &w->calls[count++]))
            return 0; /* without one of the calls the stack would be wrong: the frame stays as it is */
    }
    return count;
}

/* Writes the NAME of the markup element {{{symbol:NAME}}}, demangled if it is a mangled name. */
static void put_symbol(const struct sl_text_frame *frame, struct sl_buf *out)
{
    if (!sl_demangle(frame->symbol, SL_LANG_UNKNOWN, out))
        sl_buf_str(out, frame->symbol);
}

/* Writes a native frame with the calls at its address, or as it is if none are known. A markup element that names a symbol has no address:
 * its name is demangled instead. `at`: see find_calls. w->added_lines: how many lines inlined calls have added to the stack. */
static void put_native(struct text_writing *w, const struct text_item *item, size_t *at)
{
    const struct sl_text_frame *frame = &item->piece.native;
    const struct text_stack *stack = &w->work->stacks[item->stack];
    size_t count = 0;
    sl_arena_reset(&w->scratch);
    if (w->work->native.results)
        count = find_calls(w, &w->work->native.results[stack->trace], item->frame, frame->is_return, at);
    if (frame->format == SL_TEXT_MARKUP && frame->symbol.size)
        put_symbol(frame, w->out);
    else
        sl_text_write(frame, w->calls, count, &w->added_lines, w->out);
}

/* ---- the text ---- */

/* Copies the text from `at` to `end`. With a mapping of the JVM, names of exceptions in it are replaced by their original names, and so are
 * frames of the JVM. False when out of memory. */
static bool put_plain(struct text_writing *w, const char *at, const char *end)
{
    struct sl_str mark = SL_STR("\xEF\xBB\xBF"), rest = {at, (size_t)(end - at)}, whole = w->work->parts[TEXT_TEXT],
                  line;
    if (at == whole.data && sl_str_starts(rest, mark)) { /* byte order mark: copied, and not seen as part of line 1 */
        sl_buf_str(w->out, mark);
        rest = (struct sl_str){rest.data + mark.size, rest.size - mark.size};
    }
    while (w->trace && sl_text_next_line(&rest, &line)) {
        /* false: the line continues with a frame of another kind, so that it is no line of a trace of the JVM */
        bool is_line = sl_str_ends(line, SL_STR("\n")) || rest.data == whole.data + whole.size;
        if (!is_line || line.size > SL_TEXT_MAX_LINE)
            sl_buf_str(w->out, line);
        else if (!sl_jvm_trace_line(w->trace, line, w->out))
            return false;
    }
    sl_buf_str(w->out, rest);
    return true;
}

/* Writes a frame, or the text that replaces markup. Frames of the JVM are rewritten line by line with the lines around them, so put_plain
 * writes them. `at`: see find_calls. False when out of memory. */
static bool put_item(struct text_writing *w, const struct text_item *item, size_t *at)
{
    switch (item->piece.kind) {
    case SL_TEXT_NATIVE: put_native(w, item, at); break;
    case SL_TEXT_SCRIPT: return text_put_script(w->work, item, &w->scratch, w->out);
    case SL_TEXT_JAVA: return put_plain(w, item->source.data, item->source.data + item->source.size);
    default: sl_buf_str(w->out, item->piece.text); break;
    }
    return true;
}

/* Writes the frames and copies the text between them. `at`, the index in the results of the current native stack, is set to 0 at its first
 * frame. Stops when the written text exceeds the size limit of answers: it will be refused anyway, and must not fill the memory before.
 * False when out of memory. */
static bool put_items(struct text_writing *w)
{
    struct sl_str text = w->work->parts[TEXT_TEXT];
    const char *done = text.data;
    size_t at = 0;
    for (size_t i = 0; i < w->work->item_count && answer_limit_fits(w->work->native.limit, w->out, 0); i++) {
        const struct text_item *item = &w->work->items[i];
        at = item->frame || item->piece.kind != SL_TEXT_NATIVE ? at : 0;
        if (!put_plain(w, done, item->source.data) || !put_item(w, item, &at))
            return false;
        done = item->source.data + item->source.size;
    }
    return put_plain(w, done, text.data + text.size);
}

bool text_write(struct text_work *work, struct sl_buf *out)
{
    struct text_writing w = {.work = work, .out = out};
    const struct jvm_request *jvm = work->jvm.request;
    bool good = true;
    if (work->local)
        w.trace = work->local->trace;
    else if (jvm && jvm->mappers.count)
        good = sl_jvm_trace_begin(w.trace = &w.own_trace, &jvm->mappers);
    good = good && put_items(&w);
    if (good && !(work->local && work->local->is_part)) /* if more text follows, the reader goes on with it */
        sl_text_flush(work->reader, out);
    if (w.trace == &w.own_trace)
        sl_jvm_trace_end(w.trace);
    good = good && !w.path.failed;
    sl_buf_free(&w.path);
    sl_arena_free(&w.scratch);
    free(w.calls);
    return good;
}
