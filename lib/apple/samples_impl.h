/* Shared by samples.c (the report), samples_row.c (grammar of rows), samples_write.c (the report with names) and
 * samples_crash.c (the stacks of a report as threads of a crash). */
#pragma once

#include "apple/impl.h"
#include "apple/samples.h"

/* True for a blank or one of the characters `+!:|*` that draw the branches of a call tree. */
bool samples_is_mark(char c);

/* Parses a row of a sampling report; with `has_count` a number of samples stands before it. Offsets in `row` are relative to the line.
 * Returns false for other lines. */
bool samples_row(struct sl_str line, bool has_count, struct sl_samples_row *row);
