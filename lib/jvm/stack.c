/* Looks up the frames of one JVM stack in several mappings. */
#include "jvm/stack.h"

bool sl_jvm_stack_begin(struct sl_jvm_stack *stack, const struct sl_jvm_mappers *mappers, struct sl_str thrown,
                        struct sl_arena *arena)
{
    *stack = (struct sl_jvm_stack){.mappers = *mappers, .thrown = thrown};
    stack->outlines = SL_ARENA_ARRAY(arena, struct sl_jvm_outline, mappers->count + 1);
    return stack->outlines != NULL;
}

bool sl_jvm_stack_class(const struct sl_jvm_mappers *mappers, struct sl_str obfuscated, struct sl_str *original)
{
    bool found = false;
    *original = obfuscated;
    for (size_t i = 0; i < mappers->count && (!found || mappers->chain); i++)
        found |= sl_jvm_mapper_class(mappers->items[i], *original, original);
    return found;
}

/* Replaces each frame from `first` on by the frames that the mapping `mapper` gives for it; frames of classes that it does not contain
 * stay. False when out of memory. If there are more than frames->limit, the rest is missing and frames->limited is set. */
static bool map_again(struct sl_jvm_stack *stack, size_t mapper, size_t first, struct sl_jvm_frames *frames)
{
    struct sl_jvm_frames mapped = {.arena = frames->arena, .limit = frames->limit};
    for (size_t i = first; i < frames->count; i++) {
        const struct sl_jvm_frame *frame = &frames->items[i];
        struct sl_jvm_query query = {.class = frame->class, .method = frame->method};
        query.line = frame->has_line ? frame->line : 0;
        enum sl_jvm_answer answer =
            sl_jvm_mapper_frame(stack->mappers.items[mapper], &query, &stack->outlines[mapper], &mapped);
        if (answer != SL_JVM_UNKNOWN) /* its frames, if rules and outlines left any, are in `mapped` */
            continue;
        if (!sl_jvm_frames_add(&mapped, frame))
            break;
    }
    frames->limited |= mapped.limited;
    frames->busy |= mapped.busy;
    frames->count = first;
    for (size_t i = 0; i < mapped.count; i++)
        sl_jvm_frames_add(frames, &mapped.items[i]);
    return !frames->busy;
}

/* Looks up the frames from `first` on in each mapping after `mapper`, one after the other: the program was obfuscated more than once.
 * SL_JVM_CLEARED if rules or outlines of these leave no frame, else SL_JVM_FRAMES. */
static enum sl_jvm_answer map_chained(struct sl_jvm_stack *stack, size_t mapper, size_t first,
                                      struct sl_jvm_frames *frames)
{
    while (++mapper < stack->mappers.count)
        if (!map_again(stack, mapper, first, frames))
            break;
    return frames->count > first || frames->busy || frames->limited ? SL_JVM_FRAMES : SL_JVM_CLEARED;
}

enum sl_jvm_answer sl_jvm_stack_frame(struct sl_jvm_stack *stack, const struct sl_jvm_query *query,
                                      struct sl_jvm_frames *frames)
{
    struct sl_jvm_query asked = *query;
    size_t first = frames->count, i = 0;
    enum sl_jvm_answer answer = SL_JVM_UNKNOWN;
    asked.thrown = stack->thrown;
    for (; i < stack->mappers.count && answer == SL_JVM_UNKNOWN; i++)
        answer = sl_jvm_mapper_frame(stack->mappers.items[i], &asked, &stack->outlines[i], frames);
    /* rewriteFrame rules remove frames only at the top of the stack; frames in outlines, which are not shown, do not count */
    if (answer != SL_JVM_OUTLINE)
        stack->thrown.data = NULL;
    if (answer == SL_JVM_FRAMES && stack->mappers.chain)
        answer = map_chained(stack, i - 1, first, frames); /* i - 1: the mapper that has the class */
    return answer;
}

enum sl_jvm_answer sl_jvm_stack_retrace(struct sl_jvm_stack *stack, struct sl_jvm_query *query,
                                        struct sl_jvm_frames *frames)
{
    enum sl_jvm_answer answer = SL_JVM_UNKNOWN;
    bool is_outline = false;
    query->thrown = stack->thrown;
    query->wrapped = stack->wrapped;
    for (size_t i = 0; i < stack->mappers.count && answer == SL_JVM_UNKNOWN; i++) {
        answer = sl_jvm_mapper_retrace(stack->mappers.items[i], query, &stack->outlines[i], frames);
        is_outline |= stack->outlines[i].is_carried_over;
    }
    /* rewriteFrame rules remove frames only at the top of the stack; frames in outlines do not count */
    if (!is_outline)
        stack->thrown.data = NULL;
    return answer;
}
