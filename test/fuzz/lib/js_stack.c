/* Stack traces of JavaScript as text, line by line: what is a frame is written as one on the same line of the same file. */
#include "js/stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        __builtin_trap();
}

static void check_line(struct sl_str line)
{
    struct sl_js_stack_frame frame, again;
    struct sl_buf out = {0};
    if (!sl_js_stack_frame(line, &frame))
        return;
    must(frame.line && frame.before.size + frame.url.size + frame.behind.size < line.size);
    sl_js_stack_write(&frame, &out);
    must(sl_js_stack_frame(sl_buf_view(&out), &again));
    /* "f@x    at async s:1:23" is a frame of Firefox when it has no brackets, and a blank in a URL may be taken for its end */
    bool is_ambiguous = (frame.before.size && memchr(frame.before.data, '@', frame.before.size)) ||
                        (frame.url.size && memchr(frame.url.data, ' ', frame.url.size));
    must(again.line == frame.line && (is_ambiguous || sl_str_ends(frame.url, again.url)));
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
