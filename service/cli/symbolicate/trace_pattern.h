/* Lines of a log that match an expression with letters for obfuscated names (trace_pattern.c describes it). Private to this folder. */
#pragma once

#include "jvm/alternatives.h"
#include "jvm/signatures.h"
#include "jvm/stack.h"

enum { TRACE_PROBLEM = 160 };

struct trace_pattern;

/* Compiles an expression. `allowance` is shared with the rest of the text. `verbose`: methods with types, of `signatures`. NULL, with the
 * reason in `problem`, when it is wrong or out of memory. */
struct trace_pattern *trace_pattern_new(const char *regex, const struct sl_jvm_mappers *mappers,
                                        const struct sl_jvm_signatures *signatures, bool verbose,
                                        struct sl_jvm_output_limit *allowance, char problem[TRACE_PROBLEM]);
void trace_pattern_free(struct trace_pattern *pattern); /* may be NULL */

/* Appends the line, retraced if it matches; `whole` may include the line end. False when out of memory. */
bool trace_pattern_line(struct trace_pattern *pattern, struct sl_str whole, struct sl_buf *out);
