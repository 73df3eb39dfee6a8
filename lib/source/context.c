/* Finds the lines around a line of a source file, and shortens long lines for reports. */
#include "source/context.h"

struct sl_context_cursor sl_context_cursor(struct sl_str text)
{
    /* texts of the classic Mac OS end lines with CR alone */
    bool old_mac = text.size && !memchr(text.data, '\n', text.size) && memchr(text.data, '\r', text.size);
    return (struct sl_context_cursor){.text = text, .line = 1, .newline = old_mac ? '\r' : '\n'};
}

/* Sets `*line` to the line at the cursor, without CR and LF at its end, and moves the cursor to the next line. c->newline is the byte that
 * ends lines: LF or, in a text without LF, CR. False at the end of the text. */
static bool context_next_line(struct sl_context_cursor *c, struct sl_str *line)
{
    if (c->at >= c->text.size)
        return false;
    const char *begin = c->text.data + c->at, *end = memchr(begin, c->newline, c->text.size - c->at);
    size_t size = end ? (size_t)(end - begin) : c->text.size - c->at;
    c->at += size + (end != NULL);
    c->line++;
    if (end && c->newline == '\n' && size && begin[size - 1] == '\r')
        size--;
    *line = (struct sl_str){begin, size};
    return true;
}

bool sl_context_at(struct sl_context_cursor *cursor, uint64_t line, struct sl_context *context)
{
    uint64_t first = line > SL_CONTEXT_LINES ? line - SL_CONTEXT_LINES : 1;
    struct sl_str ignored;
    *context = (struct sl_context){0};
    if (!line)
        return false;
    if (cursor->line > first) { /* lines can only be read forwards */
        cursor->line = 1;
        cursor->at = 0;
    }
    while (cursor->line < first)
        if (!context_next_line(cursor, &ignored))
            return false;
    /* the caller's cursor stays at `first`, because the lines of the next call may overlap these */
    struct sl_context_cursor window = *cursor;
    while (window.line < line)
        if (!context_next_line(&window, &context->before[context->before_count++]))
            return false;
    if (!context_next_line(&window, &context->line))
        return false;
    while (context->after_count < SL_CONTEXT_LINES && context_next_line(&window, &context->after[context->after_count]))
        context->after_count++;
    return true;
}

/* Returns the offset at which the UTF-8 character at offset `at` begins, so that the line is not cut within a character. */
static size_t character_start(struct sl_str line, size_t at)
{
    while (at > 0 && at < line.size && ((unsigned char)line.data[at] & 0xC0) == 0x80)
        at--;
    return at;
}

void sl_context_trim(struct sl_buf *out, struct sl_str line, uint64_t column)
{
    /* A line of up to WHOLE bytes is not cut. Of longer ones KEPT bytes remain, of which BEFORE are in front of the column. If fewer than
     * NEAR bytes would be cut off at one end, the line is not cut there. */
    enum { WHOLE = 150, KEPT = 140, BEFORE = 60, NEAR = 5 };
    if (line.size <= WHOLE) {
        sl_buf_str(out, line);
        return;
    }
    size_t target = column < line.size ? (size_t)column : line.size;
    size_t start = target > BEFORE + NEAR - 1 ? target - BEFORE : 0;
    size_t end = start + KEPT < line.size ? start + KEPT : line.size;
    if (end > line.size - NEAR)
        end = line.size;
    if (end == line.size) /* the column is near the end: keep the last KEPT bytes */
        start = line.size - KEPT;
    start = character_start(line, start);
    end = character_start(line, end);
    if (start > 0)
        sl_buf_cstr(out, "{snip} ");
    sl_buf_add(out, line.data + start, end - start);
    if (end < line.size)
        sl_buf_cstr(out, " {snip}");
}
