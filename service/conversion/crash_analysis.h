/* Writes the crash analysis of a minidump as JSON, for answers and for commands that print minidump-stackwalk's format. */
#pragma once

#include "base/json_write.h"
#include "minidump/analysis.h"

/* Writes members into the open object: the adjusted crash address, the instruction, its memory accesses and branch target,
 * possible bit flips, and inconsistencies. Addresses have at least `digits` hex digits; unknown values are null. */
void crash_analysis_write(struct sl_json_writer *w, const struct sl_minidump_analysis *analysis, unsigned digits);
