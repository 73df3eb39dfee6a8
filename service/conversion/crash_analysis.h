/* Writes the crash analysis of a minidump as JSON, for answers and for commands that print minidump-stackwalk's format. */
#pragma once

#include "base/json_write.h"
#include "minidump/analysis.h"

/* Writes members into the open JSON object: the address that was really accessed, the crashing instruction, its memory accesses and branch
 * target, possible bit flips, and contradictions to the reported reason. Addresses have at least `digits` hex digits; unknown values are
 * null. */
void crash_analysis_write(struct sl_json_writer *w, const struct sl_minidump_analysis *analysis, unsigned digits);
