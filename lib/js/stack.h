/* Reads and rewrites JavaScript stack traces in text, frame by frame, as written by engines and log files:
 *
 *     V8       at async Object.f (https://a.b/c.js:1:23)      at https://a.b/c.js:1:23      at new F (file:///c.js:1:2)
 *              at eval (eval at f (https://a.b/c.js:1:23), <anonymous>:1:1): the position is that of the caller of eval
 *     Firefox  f@https://a.b/c.js:1:23                        @https://a.b/c.js:1:23
 *     Safari   f@https://a.b/c.js:1:23                        https://a.b/c.js:1:23         global code@https://a.b/c.js:1:2
 *     Hermes   at f (address at index.android.bundle:1:22)
 *     JSC      f@1:23: a position in the only script
 *
 * White space and a log prefix (names, times, colour codes) may precede a frame. More of the log, or the ` {` before an error's
 * own members, may follow it. Paths may contain blanks, parentheses and brackets. All of that is kept, so that the line can be
 * written again with another function, file and position. */
#pragma once

#include "base/buf.h"

struct sl_js_stack_frame {
    struct sl_str before;   /* the text before the function, including "at " and "async " */
    struct sl_str function; /* without `new`; empty = none */
    struct sl_str url;      /* empty for "f@1:23" */
    struct sl_str behind;   /* the text after the position, including the line end */
    uint32_t line, column;  /* both from 1 */
    unsigned escapes;       /* how many times the surrounding text was encoded as a JSON string */
    bool v8;                /* written as "at ..." */
    bool constructor;       /* V8: "at new F" */
    bool of_eval; /* V8: the line is a frame of code in an eval; `function` and position are those of its caller */
};

/* Splits a line of text into parts that each have at most one frame: moves the next one from `*rest` to `*part`. A line may contain a whole
 * stack in one JSON string; then each line of that string is a part and begins with the escaped `\n` before it. Any other line is one part.
 * False when nothing is left. Linear in the part. */
bool sl_js_stack_part(struct sl_str *rest, struct sl_str *part);

/* Parses the frame in a line, or in a part from sl_js_stack_part(); the texts of `frame` are views. False when there is no frame, or it has
 * no position (native code, `<anonymous>`). Linear in the line. */
bool sl_js_stack_frame(struct sl_str line, struct sl_js_stack_frame *frame);

/* Appends `text`, a function or URL for this frame, escaped as often as the surrounding text is encoded as a JSON string (up to four
 * times). */
void sl_js_stack_escape(const struct sl_js_stack_frame *frame, struct sl_str text, struct sl_buf *out);

/* Appends the URL of a frame as it is looked up: without ANSI colour codes and JSON escapes, and with slashes in the paths of Windows:
 * "C:\a", in JSON "C:\\a", becomes "C:/a"; "\\server\a" becomes "//server/a". */
void sl_js_stack_put_url(struct sl_str url, struct sl_buf *out);

/* Appends the line of the frame, with the text before and behind it. */
void sl_js_stack_write(const struct sl_js_stack_frame *frame, struct sl_buf *out);
