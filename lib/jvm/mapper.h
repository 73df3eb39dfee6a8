/* Mappings that names and lines are looked up in: the `SLPG` file.
 *
 * Made once from the text of a mapping, in one pass; used in place: opening checks the header, all else is checked where it is
 * used. A damaged file answers wrongly or nothing, never with a crash. Look-ups are pure reads: any number of threads may share
 * one. Texts of answers are views of the file or of what was asked. The layout is in format.h.
 *
 * Names of the running program are *obfuscated*, those of the source *original*. A frame of the running program becomes several
 * when calls were inlined: the innermost comes first. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "table/table.h"

/* ---- making one ---- */

/* Appends the file to `out`; equal input gives equal bytes. SL_MALFORMED: no mapping, or too large a one. Work and memory are
 * the budget's (NULL = no limits). */
enum sl_code sl_jvm_mapper_build(struct sl_str mapping, struct sl_budget *budget, struct sl_buf *out,
                                 struct sl_error *error);

/* ---- looking up ---- */

struct sl_jvm_mapper {
    struct sl_table table; /* private */
};

/* SL_MALFORMED when it is none. `mapper` points into `bytes`, which must outlive it and its answers. */
enum sl_code sl_jvm_mapper_open(struct sl_bytes bytes, struct sl_jvm_mapper *mapper, struct sl_error *error);

/* The original name of a class; false when it has none. */
bool sl_jvm_mapper_class(const struct sl_jvm_mapper *mapper, struct sl_str obfuscated, struct sl_str *original);

enum sl_jvm_by {
    SL_JVM_BY_LINE,       /* 0 or none: no line is known */
    SL_JVM_BY_PARAMETERS, /* of the original types */
};

struct sl_jvm_signatures;
struct sl_jvm_query {
    struct sl_str class, method;
    enum sl_jvm_by by;
    uint32_t line;
    bool line_is_known; /* retrace: `line` was given, 0 too */
    struct sl_str file; /* retrace: the source file that the running program tells, "SourceFile", "Native Method" */
    struct sl_str parameters; /* as a mapping has them: "int,java.lang.String" */
    struct sl_str descriptor; /* as the running program has it, "(ILa/b;)V"; data NULL = not known */
    struct sl_str thrown;     /* the original class of what was thrown, when rules may remove frames; else data NULL */
    struct sl_str wrapped;    /* likewise, another class that may have been: the message named it; may have data NULL */
    const struct sl_jvm_signatures *types; /* retrace, with `signatures`: what methods return; may be NULL */
    bool signatures; /* methods that differ only in their parameters are others, and frames have these */
};

struct sl_jvm_frame {
    struct sl_str class, method;
    struct sl_str
        parameters;     /* with `signatures`, as mappings have them; else, and when they are not known, data NULL */
    struct sl_str type; /* retrace: what it returns, with the query's `types`; data NULL when it is not known */
    struct sl_str file, suffix; /* two parts of the file's name */
    bool has_line, synthesized;
    uint32_t line;
    uint32_t
        alternative; /* retrace: frames with the same number are one chain of calls, others are what it may be instead */
    uint32_t place;  /* private */
};

struct sl_jvm_frames {
    struct sl_arena *arena;
    struct sl_jvm_frame *items;
    size_t count, capacity;
    size_t limit;   /* 0 = none */
    bool limited;   /* frames were left out for it */
    bool busy;      /* frames were left out for want of memory */
    uint64_t steps; /* retrace: what looking them up took, about as much each as making a frame */
};

/* Appends a frame; false, with the reason in `frames`, when it cannot. */
bool sl_jvm_frames_add(struct sl_jvm_frames *frames, const struct sl_jvm_frame *frame);

/* A line of an outline, code that several methods share: it says where the frame that called it is. */
struct sl_jvm_outline {
    bool carried;
    uint32_t line;
};

enum sl_jvm_answer {
    SL_JVM_UNKNOWN, /* the class is none of this mapping */
    SL_JVM_FRAMES,  /* at least one was appended */
    SL_JVM_OUTLINE, /* the frame is of an outline; it is carried to the next */
    SL_JVM_CLEARED, /* a rule of the mapping removed all frames */
};

/* Appends what the frame was. `outline` goes from frame to frame of one stack, for each mapper. */
enum sl_jvm_answer sl_jvm_mapper_frame(const struct sl_jvm_mapper *mapper, const struct sl_jvm_query *query,
                                       struct sl_jvm_outline *outline, struct sl_jvm_frames *frames);

/* The same as R8's retrace has it (R8, "Retrace"): appends the frames of each alternative, sorted by their innermost frame. When the
 * mapping does not tell what a frame was, there are several; methods that a compiler made are left out, and so SL_JVM_CLEARED means
 * that nothing is left. An outline may have frames of its own, and is carried to the next frame nevertheless. */
enum sl_jvm_answer sl_jvm_mapper_retrace(const struct sl_jvm_mapper *mapper, const struct sl_jvm_query *query,
                                         struct sl_jvm_outline *outline, struct sl_jvm_frames *frames);
