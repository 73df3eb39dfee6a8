/* The lines around a line of a source file, for crash reports.
 *
 * A line ends at LF; one CR before it is not part of the line, and a final LF does not begin another line. If a text has CR
 * but no LF, lines end at CR. */
#pragma once

#include "base/buf.h"

enum { SL_CONTEXT_LINES = 5 };

struct sl_context { /* views of the text, not trimmed */
    struct sl_str before[SL_CONTEXT_LINES], line, after[SL_CONTEXT_LINES];
    unsigned before_count, after_count;
};

/* Position in a text. Reading lines in ascending order costs one pass over the text; going back restarts at the
 * beginning. */
struct sl_context_cursor {
    struct sl_str text;
    size_t at;     /* offset of line `line` */
    uint64_t line; /* 1-based */
    char newline;
};

/* Returns a cursor at the first line of the text, which must outlive it. */
struct sl_context_cursor sl_context_cursor(struct sl_str text);

/* Sets `context` to line number `line` and at most SL_CONTEXT_LINES lines before and after it; they are views of the text. False if the
 * text has no such line (lines count from 1). */
bool sl_context_at(struct sl_context_cursor *cursor, uint64_t line, struct sl_context *context);

/* Appends a line for a report: lines of up to 150 bytes unchanged, else the 140 bytes around the column (0-based, in
 * bytes), with "{snip}" where text was cut. Cuts are at character boundaries. */
void sl_context_trim(struct sl_buf *out, struct sl_str line, uint64_t column);
