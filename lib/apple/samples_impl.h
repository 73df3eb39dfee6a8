/* Shared by samples.c (the report), samples_row.c (grammar of rows), samples_write.c (the report with names) and
 * samples_crash.c (its stacks as threads of a crash). */
#pragma once

#include "apple/impl.h"
#include "apple/samples.h"

/* True for a blank or a character that draws the branches of a tree. */
bool samples_is_mark(char c);

/* Parses a row, with or without the sample count before it; offsets in `row` are relative to the line. Returns false
 * for other lines. */
bool samples_row(struct sl_str line, bool has_count, struct sl_samples_row *row);
