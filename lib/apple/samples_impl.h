/* What the files of the reader of samples share: samples.c the report, samples_row.c the grammar of a row, samples_write.c the report
 * with names, samples_crash.c its stacks as those of a crash. */
#pragma once

#include "apple/impl.h"
#include "apple/samples.h"

/* Whether the character draws the branches of a tree, or is a blank. */
bool samples_is_mark(char c);

/* A row, whose offsets count from the line's beginning; with its number before it, or without. False when it is none. */
bool samples_row(struct sl_str line, bool has_count, struct sl_samples_row *row);
