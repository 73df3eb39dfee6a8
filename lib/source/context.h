/* The lines around a line of a source file, as crash reports show them.
 *
 * A line ends at LF, one CR before it does not belong to it; a last LF begins no further line. A text without any LF but
 * with CR has lines that end at CR. */
#pragma once

#include "base/buf.h"

enum { SL_CONTEXT_LINES = 5 };

struct sl_context { /* views of the text, not trimmed */
    struct sl_str before[SL_CONTEXT_LINES], line, after[SL_CONTEXT_LINES];
    unsigned before_count, after_count;
};

/* A place in a text. Asking for lines in ascending order costs one pass over the text; going back begins anew. */
struct sl_context_cursor {
    struct sl_str text;
    size_t at;     /* where line `line` begins */
    uint64_t line; /* 1-based */
    char newline;
};

struct sl_context_cursor sl_context_cursor(struct sl_str text);

/* False when the text has no such line (line 0 never exists). */
bool sl_context_at(struct sl_context_cursor *cursor, uint64_t line, struct sl_context *context);

/* Appends a line as reports show it: up to 150 bytes as it is, of longer ones the 140 bytes around the column (0-based, in
 * bytes), marked with "{snip}" where something is left out. Cuts are at character boundaries. */
void sl_context_trim(struct sl_buf *out, struct sl_str line, uint64_t column);
