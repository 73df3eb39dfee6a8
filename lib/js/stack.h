/* Stack traces of JavaScript as text, as engines and the logs around them write them, frame by frame:
 *
 *     V8       at async Object.f (https://a.b/c.js:1:23)      at https://a.b/c.js:1:23      at new F (file:///c.js:1:2)
 *              at eval (eval at f (https://a.b/c.js:1:23), <anonymous>:1:1): what called eval
 *     Firefox  f@https://a.b/c.js:1:23                        @https://a.b/c.js:1:23
 *     Safari   f@https://a.b/c.js:1:23                        https://a.b/c.js:1:23         global code@https://a.b/c.js:1:2
 *     Hermes   at f (address at index.android.bundle:1:22)
 *     JSC      f@1:23: of the only script that there is
 *
 * In front of a frame may be white space and what a log writes there: names, times, codes for colours. Behind it may be more of the
 * log, or the ` {` of an error's own members. Paths may have blanks, parentheses and brackets. All of that is kept, so that a
 * line can be written again with another function, file and place. */
#pragma once

#include "base/buf.h"

struct sl_js_stack_frame {
    struct sl_str before;   /* up to the function, with "at " and "async " */
    struct sl_str function; /* without `new`; empty = none */
    struct sl_str url;      /* empty: it names none, "f@1:23" */
    struct sl_str behind;   /* what follows, with the line's end */
    uint32_t line, column;  /* both from 1 */
    unsigned escapes;       /* how often the text around it was written as a string of JSON */
    bool v8;                /* with "at" */
    bool constructor;       /* v8: "at new F" */
    bool of_eval;           /* v8: it called the eval that the line is of */
};

/* Cuts the next part off `*rest`: a line's stack may be one string of JSON, of whose lines each is a part, which begins with the
 * `\n` in front of it. A line that has none is one part. False when nothing is left. Linear in the part. */
bool sl_js_stack_part(struct sl_str *rest, struct sl_str *part);

/* The frame that this line or part is, its texts views of it. False when it is none, or its place is none: native code, or
 * `<anonymous>`. Linear in the line. */
bool sl_js_stack_frame(struct sl_str line, struct sl_js_stack_frame *frame);

/* Appends a text as it has to be for a function or URL of this frame, when it is written: escaped as what is around it. */
void sl_js_stack_escape(const struct sl_js_stack_frame *frame, struct sl_str text, struct sl_buf *out);

/* Appends the line that the frame is. */
void sl_js_stack_write(const struct sl_js_stack_frame *frame, struct sl_buf *out);
