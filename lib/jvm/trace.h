/* Stack traces as text, as java.lang.Throwable prints them, line by line:
 *
 *     Exception in thread "main" a.b: message
 *         at a.c.d(SourceFile:12)
 *             Suppressed: a.e
 *     Caused by: a.f: message
 *         ... 3 more
 *
 * In frames only the names and the line change, what stands around them stays: the indentation, what a log wrote in front, blanks and tabs,
 * the module, and what follows. A frame that may be one of several becomes a line for each, marked with <OR> (alternatives.h). A class
 * stands at the beginning of a line, or behind ": " or a quotation mark and a blank, and ends the line or has a colon or a bracket behind
 * it; all such that a mapping knows change. All other lines stay as they are. */
#pragma once

#include "jvm/alternatives.h"
#include "jvm/signatures.h"
#include "jvm/stack.h"

struct sl_jvm_trace_frame { /* head class "." method gap "(" file ":" line ")" rest */
    struct sl_str head, class, method, gap, file;
    uint32_t line;
    bool has_line;
    struct sl_str rest; /* from the bracket on */
};

/* The frame that this line is, which has no end; its texts are views of it. False when it is none. Linear in the line. */
bool sl_jvm_trace_frame(struct sl_str line, struct sl_jvm_trace_frame *frame);

/* Takes what goes up to the next class that the text, a trimmed line that is no frame, may name off `*rest`. False when it names
 * no further one. Linear in the text, for all calls together. */
bool sl_jvm_trace_class(struct sl_str *rest, struct sl_str *class);

struct sl_jvm_trace {
    const struct sl_jvm_signatures
        *signatures;  /* set once it began: methods are shown with their types; NULL: their names */
    bool all_classes; /* likewise: classes are also looked for in the middle of text */
    uint64_t frame_count,
        unknown_count; /* frames so far, and those of classes that no mapping has: these stay as they are */
    void (*on_unknown)(void *arg, struct sl_str class); /* set likewise: is told of each such frame; may be NULL */
    void *unknown_arg;
    struct sl_jvm_allowance allowance; /* `refused` may be read in the end */
    struct sl_jvm_mappers mappers;     /* what follows is private */
    struct sl_jvm_stack stack;
    struct sl_jvm_query query; /* of a frame; what is set once stays */
    struct sl_arena arena, thrown_arena;
    const uint8_t *arena_at; /* where the arena was before the last frame */
    struct sl_jvm_frames frames;
    struct sl_jvm_frame few_frames[16]; /* what most lines become no more than */
};

/* False when out of memory. To be ended in either case. */
bool sl_jvm_trace_begin(struct sl_jvm_trace *trace, const struct sl_jvm_mappers *mappers);

/* Appends what the line is, which may have its end (LF, CR LF); each line of `out` ends. False when out of memory. */
bool sl_jvm_trace_line(struct sl_jvm_trace *trace, struct sl_str line, struct sl_buf *out);

void sl_jvm_trace_end(struct sl_jvm_trace *trace);
