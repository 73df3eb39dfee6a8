/* What a minidump's crash is taken apart into, as JSON: in answers, and where commands write as other tools do. */
#pragma once

#include "base/json_write.h"
#include "minidump/analysis.h"

/* Members of an object: the address as it is meant, the instruction, what it accesses and goes on to, bits that may have flipped, what
 * does not fit together. Addresses have at least `digits` digits. What is not known is null. */
void crash_analysis_write(struct sl_json_writer *w, const struct sl_minidump_analysis *analysis, unsigned digits);
