/* Source lines around a frame's line, in answers. */
#include "api/lines.h"

/* Copies a line into the arena; a long one is cut to a part around the column. data NULL when out of memory. */
static struct sl_str lines_trim(struct sl_str line, uint64_t column, struct sl_buf *scratch, struct sl_arena *arena)
{
    sl_buf_clear(scratch);
    sl_context_trim(scratch, line, column);
    char *copy = scratch->failed ? NULL : sl_arena_strndup(arena, (char *)scratch->data, scratch->size);
    return (struct sl_str){copy, copy ? scratch->size : 0};
}

const struct frame_lines *frame_lines_keep(const struct sl_context *found, uint64_t column, struct sl_buf *scratch,
                                           struct sl_arena *arena)
{
    struct frame_lines *lines = SL_ARENA_NEW(arena, struct frame_lines);
    if (!lines)
        return NULL;
    bool good = (lines->line = lines_trim(found->line, column, scratch, arena)).data;
    for (unsigned i = 0; good && i < found->before_count; i++)
        good = (lines->before[i] = lines_trim(found->before[i], column, scratch, arena)).data;
    for (unsigned i = 0; good && i < found->after_count; i++)
        good = (lines->after[i] = lines_trim(found->after[i], column, scratch, arena)).data;
    lines->before_count = found->before_count;
    lines->after_count = found->after_count;
    return good ? lines : NULL;
}

void frame_lines_write(struct sl_json_writer *w, const struct frame_lines *lines)
{
    sl_json_put_texts(w, "pre_context", lines->before, lines->before_count);
    sl_json_member_str(w, "context_line", lines->line);
    sl_json_put_texts(w, "post_context", lines->after, lines->after_count);
}

/* Writes a member whose value is the JSON that was sent; nothing if none was. */
static void lines_sent(struct sl_json_writer *w, const char *key, struct sl_str json)
{
    if (!json.data)
        return;
    sl_json_member_raw(w, key, json);
}

void frame_lines_write_sent(struct sl_json_writer *w, struct sl_str before, struct sl_str line, struct sl_str after)
{
    lines_sent(w, "pre_context", before);
    if (line.data)
        sl_json_member_str(w, "context_line", line);
    lines_sent(w, "post_context", after);
}
