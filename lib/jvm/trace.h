/* Stack traces as text, as java.lang.Throwable prints them, line by line:
 *
 *     Exception in thread "main" a.b: message
 *         at a.c.d(SourceFile:12)
 *             Suppressed: a.e
 *     Caused by: a.f: message
 *         ... 3 more
 *
 * Lines of frames and of exceptions become what they were, with what a log wrote in front of them; all others stay as they are. */
#pragma once

#include "jvm/signatures.h"
#include "jvm/stack.h"

struct sl_jvm_trace {
    const struct sl_jvm_signatures
        *signatures;               /* set once it began: methods are shown with their types; NULL: their names */
    struct sl_jvm_mappers mappers; /* what follows is private */
    struct sl_jvm_stack stack;
    struct sl_arena arena, thrown_arena;
    struct sl_jvm_frames frames;
};

/* False when out of memory. To be ended in either case. */
bool sl_jvm_trace_begin(struct sl_jvm_trace *trace, const struct sl_jvm_mappers *mappers);

/* Appends what the line is, which may have its end (LF, CR LF); each line of `out` ends. False when out of memory. */
bool sl_jvm_trace_line(struct sl_jvm_trace *trace, struct sl_str line, struct sl_buf *out);

void sl_jvm_trace_end(struct sl_jvm_trace *trace);
