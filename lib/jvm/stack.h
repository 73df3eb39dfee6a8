/* The frames of one stack, from the innermost on, looked up in several mappings: what the frame before was counts, and which
 * mapping it is that knows the class. */
#pragma once

#include "jvm/mapper.h"

struct sl_jvm_mappers {
    const struct sl_jvm_mapper *const
        *items; /* in the order that they are asked in; the first that knows the class answers */
    size_t count;
    bool chain; /* what a mapper made of a frame is looked up in those behind it */
};

struct sl_jvm_stack {
    struct sl_jvm_mappers mappers;
    struct sl_jvm_outline *outlines; /* for each mapper */
    struct sl_str thrown;            /* the original class, as long as rules may remove frames; else data NULL */
    struct sl_str wrapped; /* with `thrown`: another class that a line of text named beside it; data NULL = none */
};

/* A stack without frames; `thrown` has data NULL when nothing was thrown. False when out of memory. */
bool sl_jvm_stack_begin(struct sl_jvm_stack *stack, const struct sl_jvm_mappers *mappers, struct sl_str thrown,
                        struct sl_arena *arena);

/* The next frame: appends what it was. `query->thrown` does not count. SL_JVM_OUTLINE, SL_JVM_CLEARED: the frame is none.
 * SL_JVM_UNKNOWN: no mapper knows its class. */
enum sl_jvm_answer sl_jvm_stack_frame(struct sl_jvm_stack *stack, const struct sl_jvm_query *query,
                                      struct sl_jvm_frames *frames);

/* The same as R8's retrace has it (sl_jvm_mapper_retrace); mappers are not chained. Sets `query->thrown` and `query->wrapped`. */
enum sl_jvm_answer sl_jvm_stack_retrace(struct sl_jvm_stack *stack, struct sl_jvm_query *query,
                                        struct sl_jvm_frames *frames);

/* The original name of a class: of the first mapper that knows it, and when they are chained of those behind it that know
 * that. False when none does. */
bool sl_jvm_stack_class(const struct sl_jvm_mappers *mappers, struct sl_str obfuscated, struct sl_str *original);
