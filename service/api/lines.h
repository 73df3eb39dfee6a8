/* Source lines around a frame's line, in the form in which answers have them. */
#pragma once

#include "base/arena.h"
#include "base/json_write.h"
#include "source/context.h"

struct frame_lines { /* long lines are cut; in an arena */
    struct sl_str before[SL_CONTEXT_LINES], line, after[SL_CONTEXT_LINES];
    unsigned before_count, after_count;
};

/* Copies the lines into the arena; long ones are cut to a part around the column (0-based, bytes). NULL when out of memory.
 * `scratch` is a buffer to work in, which the caller frees. */
const struct frame_lines *frame_lines_keep(const struct sl_context *found, uint64_t column, struct sl_buf *scratch,
                                           struct sl_arena *arena);

/* Writes the members "pre_context", "context_line" and "post_context"; an array without lines is not written. */
void frame_lines_write(struct sl_json_writer *w, const struct frame_lines *lines);

/* Writes "pre_context", "context_line" and "post_context" as the request had them: the arrays are raw JSON. Texts with data NULL are not
 * written. */
void frame_lines_write_sent(struct sl_json_writer *w, struct sl_str before, struct sl_str line, struct sl_str after);
