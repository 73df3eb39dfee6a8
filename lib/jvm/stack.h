/* Looks up the frames of one stack in several mappings, from the innermost frame on. If the frame before was in an outline (code that R8
 * moved out of several methods), what a frame becomes depends on that frame; at the top of the stack it may depend on the exception. */
#pragma once

#include "jvm/mapper.h"

struct sl_jvm_mappers {
    const struct sl_jvm_mapper *const *items; /* in order of precedence: the first that contains the class is used */
    size_t count;
    bool chain; /* look up the result of a mapper in the mappers after it */
};

struct sl_jvm_stack {
    struct sl_jvm_mappers mappers;
    struct sl_jvm_outline *outlines; /* one for each mapper */
    /* original class of the exception; data NULL once a frame that is in no outline was looked up */
    struct sl_str thrown;
    struct sl_str wrapped; /* with `thrown`: another class that the exception's line names; data NULL = none */
};

/* Initialises an empty stack; data of `thrown` NULL = no exception. False when out of memory. */
bool sl_jvm_stack_begin(struct sl_jvm_stack *stack, const struct sl_jvm_mappers *mappers, struct sl_str thrown,
                        struct sl_arena *arena);

/* Looks up the next frame and appends the original frames. Uses stack->thrown in place of `query->thrown`. SL_JVM_OUTLINE, SL_JVM_CLEARED:
 * nothing is appended. SL_JVM_UNKNOWN: no mapper contains the class. */
enum sl_jvm_answer sl_jvm_stack_frame(struct sl_jvm_stack *stack, const struct sl_jvm_query *query,
                                      struct sl_jvm_frames *frames);

/* Looks up the next frame and appends the frames that R8's retrace shows for it (sl_jvm_mapper_retrace()), from the first mapping that
 * contains the class; mappings are not chained. Sets `query->thrown` and `query->wrapped`. SL_JVM_UNKNOWN: no mapping contains the
 * class. */
enum sl_jvm_answer sl_jvm_stack_retrace(struct sl_jvm_stack *stack, struct sl_jvm_query *query,
                                        struct sl_jvm_frames *frames);

/* Returns the original name of a class from the first mapper that contains it; if mappers are chained, translated further by those
 * after it. False if none contains it. */
bool sl_jvm_stack_class(const struct sl_jvm_mappers *mappers, struct sl_str obfuscated, struct sl_str *original);
