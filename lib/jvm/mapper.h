/* Look-up table of a mapping: the `SLPG` file.
 *
 * Made once, in one pass over the text of a mapping, then used in place: opening checks the header, everything else is checked
 * when it is used. A damaged file gives wrong or no results, but never a crash. Look-ups only read, so any number of threads may
 * share one. Texts in results are views of the file or of the query. format.h has the layout.
 *
 * Names in the running program are *obfuscated*, names in the source *original*. An obfuscated frame becomes several frames if
 * calls were inlined: the innermost comes first. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "table/table.h"

/* ---- building ---- */

/* Appends the look-up table of the text of a mapping (an SLPG file) to `out`; equal input gives equal bytes. SL_MALFORMED for text that is
 * not a mapping, or too large. The budget (NULL = unlimited) is charged for work and memory. */
enum sl_code sl_jvm_mapper_build(struct sl_str mapping, struct sl_budget *budget, struct sl_buf *out,
                                 struct sl_error *error);

/* ---- look-up ---- */

struct sl_jvm_mapper {
    struct sl_table table; /* private */
};

/* Opens a table. SL_MALFORMED if the file is not valid. `mapper` points into `bytes`, which must outlive it and its
 * results. */
enum sl_code sl_jvm_mapper_open(struct sl_bytes bytes, struct sl_jvm_mapper *mapper, struct sl_error *error);

/* Returns the original name of a class; false if it is not in the mapping. */
bool sl_jvm_mapper_class(const struct sl_jvm_mapper *mapper, struct sl_str obfuscated, struct sl_str *original);

enum sl_jvm_by {
    SL_JVM_BY_LINE,       /* finds the members whose range contains the line; line 0: it is unknown */
    SL_JVM_BY_PARAMETERS, /* finds the members with these types of parameters, given by their original names */
};

struct sl_jvm_signatures;

/* A frame of the running program, for which the original frames are wanted. Only sl_jvm_mapper_retrace() uses the members marked
 * "retrace". */
struct sl_jvm_query {
    struct sl_str class, method;
    enum sl_jvm_by by;
    uint32_t line;
    bool line_is_known;       /* retrace: the frame has a line, which may be 0 */
    struct sl_str file;       /* retrace: the file in the running program's frame: "SourceFile", "Native Method" */
    struct sl_str parameters; /* in the form of mappings: "int,java.lang.String" */
    struct sl_str descriptor; /* in the running program: "(ILa/b;)V"; data NULL = unknown */
    /* original class of the exception, if rules of the mapping may remove this frame; else data NULL */
    struct sl_str thrown;
    struct sl_str wrapped; /* another possible class of the exception, from its message; may have data NULL */
    const struct sl_jvm_signatures *types; /* retrace, with `signatures`: return types of methods; may be NULL */
    bool signatures;                       /* treat overloads as different methods, and fill `parameters` of frames */
};

struct sl_jvm_frame {
    struct sl_str class, method;
    struct sl_str parameters;   /* with `signatures` in the form of mappings; data NULL = unknown */
    struct sl_str type;         /* retrace: return type, from the query's `types`; data NULL = unknown */
    struct sl_str file, suffix; /* the file name in two parts */
    bool has_line, synthesized; /* has_line with `line` 0: callers show the line as 0 */
    uint32_t line;
    /* retrace: frames with one number are one call chain; the chains are alternatives for the queried frame */
    uint32_t alternative;
    uint32_t order; /* private */
};

struct sl_jvm_frames {
    struct sl_arena *arena;
    struct sl_jvm_frame *items;
    size_t count, capacity;
    size_t limit;   /* of `count`; 0 = none */
    bool limited;   /* frames were omitted because of `limit` */
    bool busy;      /* frames were omitted because memory was exhausted */
    uint64_t steps; /* retrace: cost of the look-ups; a step is about as much work as making a frame */
};

/* Appends a frame. False, with frames->limited or frames->busy set, if there are frames->limit of them already, or when out of memory. */
bool sl_jvm_frames_add(struct sl_jvm_frames *frames, const struct sl_jvm_frame *frame);

/* The last frame was in an outline (code that R8 moved out of several methods). Its line determines that of the next frame, its caller. */
struct sl_jvm_outline {
    bool is_carried_over; /* false: the last frame was in no outline */
    uint32_t line;        /* in the outline; 0 = unknown */
};

enum sl_jvm_answer {
    SL_JVM_UNKNOWN, /* the class is not in this mapping */
    SL_JVM_FRAMES,  /* at least one frame was appended */
    SL_JVM_OUTLINE, /* no frame: it is in an outline (code that R8 moved out of several methods), see struct sl_jvm_outline */
    SL_JVM_CLEARED, /* no frame: a rule of the mapping removed all, for the exception that was thrown */
};

/* Appends the original frames of an obfuscated frame. `outline` is kept from frame to frame of one stack, at first all zeros; each mapper
 * needs its own. */
enum sl_jvm_answer sl_jvm_mapper_frame(const struct sl_jvm_mapper *mapper, const struct sl_jvm_query *query,
                                       struct sl_jvm_outline *outline, struct sl_jvm_frames *frames);

/* Appends the original frames that R8's retrace shows for an obfuscated frame: those of every alternative call chain, sorted by their
 * innermost frames. There are several if the mapping is ambiguous. Methods that the compiler made are left out; SL_JVM_CLEARED if no
 * frame is left. An outline may have frames of its own (SL_JVM_FRAMES) and still determine the line of the next frame. */
enum sl_jvm_answer sl_jvm_mapper_retrace(const struct sl_jvm_mapper *mapper, const struct sl_jvm_query *query,
                                         struct sl_jvm_outline *outline, struct sl_jvm_frames *frames);
