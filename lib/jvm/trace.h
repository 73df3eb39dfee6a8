/* Stack traces in text, as java.lang.Throwable prints them, processed line by line:
 *
 *     Exception in thread "main" a.b: message
 *         at a.c.d(SourceFile:12)
 *             Suppressed: a.e
 *     Caused by: a.f: message
 *         ... 3 more
 *
 * In frames only the names and the line change. Everything around them is kept: indentation, log prefixes, blanks and tabs, the
 * module, and the text after the frame. An ambiguous frame becomes one line for each alternative, marked with <OR> (alternatives.h). A
 * class name is at the beginning of a line, or after ": " or a quotation mark and a blank, and is followed by the line end,
 * a colon or a bracket; every such name that a mapping contains is replaced. All other lines are kept. */
#pragma once

#include "jvm/alternatives.h"
#include "jvm/signatures.h"
#include "jvm/stack.h"

struct sl_jvm_trace_frame { /* head class "." method gap "(" file ":" line ")" rest */
    struct sl_str head, class, method, gap, file;
    uint32_t line;
    bool has_line;
    struct sl_str rest; /* from the closing bracket on */
};

/* Parses a line without its line end as a frame; the texts are views. False if it is not a frame. Linear in the line. */
bool sl_jvm_trace_frame(struct sl_str line, struct sl_jvm_trace_frame *frame);

/* Returns the next class name in a trimmed line that is not a frame; `*rest` becomes the text where the search continues. False
 * when there is none. All calls together are linear in the text. */
bool sl_jvm_trace_class(struct sl_str *rest, struct sl_str *class);

struct sl_jvm_trace {
    /* options: the caller may set these, and on_unknown with its argument, after sl_jvm_trace_begin() */
    const struct sl_jvm_signatures *signatures; /* shows methods with their types; NULL: names only */
    bool all_classes;                           /* every word of a line may be a class */
    /* results: frames so far, and those with unknown classes, which are kept as they are */
    uint64_t frame_count, unknown_count;
    void (*on_unknown)(void *arg, struct sl_str class); /* called for frames with an unknown class; may be NULL */
    void *unknown_arg;
    struct sl_jvm_output_limit allowance; /* allowance.refused: lines left unchanged as the output would be too large */
    /* private from here on */
    struct sl_jvm_mappers mappers;
    struct sl_jvm_stack stack;
    struct sl_jvm_query query; /* of the current frame */
    struct sl_arena arena, thrown_arena;
    const uint8_t *arena_at; /* position of `arena` before the last frame was looked up */
    struct sl_jvm_frames frames;
    struct sl_jvm_frame few_frames[16]; /* enough for most lines */
};

/* Starts with an empty stack and no options. False when out of memory. Call sl_jvm_trace_end() in either case. */
bool sl_jvm_trace_begin(struct sl_jvm_trace *trace, const struct sl_jvm_mappers *mappers);

/* Appends the retraced form of a line, which may include its line end (LF, CR LF); every line of `out` has one. False when out
 * of memory. */
bool sl_jvm_trace_line(struct sl_jvm_trace *trace, struct sl_str line, struct sl_buf *out);

void sl_jvm_trace_end(struct sl_jvm_trace *trace);
