/* Looks up the frames of one stack in several mappings, from the innermost frame on. The result depends on earlier frames
 * (outlines, rules) and on which mapping contains the class. */
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
    struct sl_str thrown;            /* the exception's original class while rules may remove frames; else data NULL */
    struct sl_str wrapped;           /* with `thrown`: another class named in the same line of text; data NULL = none */
};

/* Initialises an empty stack; data of `thrown` NULL = no exception. False when out of memory. */
bool sl_jvm_stack_begin(struct sl_jvm_stack *stack, const struct sl_jvm_mappers *mappers, struct sl_str thrown,
                        struct sl_arena *arena);

/* Looks up the next frame and appends the original frames. Ignores `query->thrown`. SL_JVM_OUTLINE, SL_JVM_CLEARED: nothing is
 * appended. SL_JVM_UNKNOWN: no mapper contains the class. */
enum sl_jvm_answer sl_jvm_stack_frame(struct sl_jvm_stack *stack, const struct sl_jvm_query *query,
                                      struct sl_jvm_frames *frames);

/* Does what sl_jvm_stack_frame() does, with the results of R8's retrace (sl_jvm_mapper_retrace()). Mappers are not
 * chained. Sets `query->thrown` and `query->wrapped`. */
enum sl_jvm_answer sl_jvm_stack_retrace(struct sl_jvm_stack *stack, struct sl_jvm_query *query,
                                        struct sl_jvm_frames *frames);

/* Returns the original name of a class from the first mapper that contains it; if mappers are chained, translated further by those
 * after it. False if none contains it. */
bool sl_jvm_stack_class(const struct sl_jvm_mappers *mappers, struct sl_str obfuscated, struct sl_str *original);
