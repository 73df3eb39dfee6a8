/* Stack traces of JavaScript as text, as engines write them, frame by frame:
 *
 *     V8       at async Object.f (https://a.b/c.js:1:23)      at https://a.b/c.js:1:23      at new F (file:///c.js:1:2)
 *     Firefox  f@https://a.b/c.js:1:23                        @https://a.b/c.js:1:23
 *     Safari   f@https://a.b/c.js:1:23                        https://a.b/c.js:1:23         global code@https://a.b/c.js:1:2
 *     Hermes   at f (address at index.android.bundle:1:22)
 *
 * What is in front of a frame (white space, what a log wrote) and behind it is kept, so that a line can be written again with
 * another function, file and place. */
#pragma once

#include "base/buf.h"

struct sl_js_stack_frame {
    struct sl_str before;    /* up to `at` or the function */
    struct sl_str function;  /* without `async` and `new`; empty = none */
    struct sl_str url;       /* not empty */
    struct sl_str behind;    /* the line's end, which may be CR LF, LF or none */
    uint32_t line, column;   /* both from 1 */
    bool v8;                 /* with "at" */
    bool async, constructor; /* v8: "at async f", "at new F" */
};

/* The frame that this line is, its texts views of it. False when it is none, or its place is none: native code, or
 * an eval. Linear in the line. */
bool sl_js_stack_frame(struct sl_str line, struct sl_js_stack_frame *frame);

/* Appends the line that the frame is. */
void sl_js_stack_write(const struct sl_js_stack_frame *frame, struct sl_buf *out);
