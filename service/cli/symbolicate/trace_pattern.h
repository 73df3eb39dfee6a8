/* Retraces lines of a log that match --regex, a regular expression with letters such as %c for obfuscated names (see trace_pattern.c).
 * Private to this folder. */
#pragma once

#include "jvm/alternatives.h"
#include "jvm/signatures.h"
#include "jvm/stack.h"

enum { TRACE_PROBLEM = 160 }; /* size of an error message */

struct trace_pattern;

/* Compiles an expression; NULL, with the reason in `problem`, if it is invalid or when out of memory. `signatures`: types of fields and
 * methods; `verbose`: write methods with their types. `allowance` limits the output. Mappers, signatures and allowance must outlive the
 * result. */
struct trace_pattern *trace_pattern_new(const char *regex, const struct sl_jvm_mappers *mappers,
                                        const struct sl_jvm_signatures *signatures, bool verbose,
                                        struct sl_jvm_output_limit *allowance, char problem[TRACE_PROBLEM]);
void trace_pattern_free(struct trace_pattern *pattern); /* may be NULL */

/* Appends the line, retraced if it matches; `whole` may include the line end. False when out of memory. */
bool trace_pattern_line(struct trace_pattern *pattern, struct sl_str whole, struct sl_buf *out);
