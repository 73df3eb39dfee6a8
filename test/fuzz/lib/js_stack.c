/* Stack traces of JavaScript as text, line by line: what is a frame is written as one on the same line of the same file. */
#include "js/stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        __builtin_trap();
}

/* True if nothing but blanks, or the escaped line end of a quoted line, "at" and "async" stand before the frame. A frame behind other text
 * has brackets; without a function it is written without them, and may then be taken for another one: "f@x    at async s:1:23". */
static bool has_only_at(struct sl_str before)
{
    while (before.size && memchr(" \t\\n", before.data[0], 4))
        before = (struct sl_str){before.data + 1, before.size - 1};
    before = sl_str_trimmed(before);
    return sl_str_equal(before, SL_STR("at")) ||
           (sl_str_starts(before, SL_STR("at")) && sl_str_ends(before, SL_STR("async")) &&
            !sl_str_trimmed((struct sl_str){before.data + 2, before.size - 7}).size);
}

/* True if the URL has characters that separate the parts of frames. */
static bool has_separator(struct sl_str url)
{
    for (size_t i = 0; i < url.size; i++)
        if ((uint8_t)url.data[i] <= ' ' || url.data[i] == '(' || url.data[i] == '@')
            return true;
    return false;
}

static void check_line(struct sl_str line)
{
    struct sl_js_stack_frame frame, again;
    struct sl_buf out = {0};
    if (!sl_js_stack_frame(line, &frame))
        return;
    must(frame.line && frame.before.size + frame.url.size + frame.behind.size < line.size);
    sl_js_stack_write(&frame, &out);
    bool is_ambiguous =
        (frame.v8 && !has_only_at(frame.before)) || has_separator(frame.url) || sl_str_trimmed(frame.behind).size;
    if (!is_ambiguous) {
        must(sl_js_stack_frame(sl_buf_view(&out), &again));
        must(again.line == frame.line && sl_str_ends(frame.url, again.url));
    }
    sl_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_str text = {(const char *)data, size};
    for (size_t at = 0; at < size;) {
        const char *newline = memchr(text.data + at, '\n', size - at);
        size_t length = newline ? (size_t)(newline + 1 - text.data) - at : size - at;
        struct sl_str rest = {text.data + at, length}, part;
        size_t left = length;
        while (sl_js_stack_part(&rest, &part)) {
            must(part.size && part.size + rest.size == left);
            left = rest.size;
            check_line(part);
        }
        must(left == 0);
        at += length;
    }
    return 0;
}
