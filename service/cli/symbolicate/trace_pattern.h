/* Lines of logs that are no usual stack traces, by a regular expression that says where the names are in them, as ProGuard's and
 * R8's retrace take it. Private to this folder.
 *
 *     %c   name of a class, a.b.C        %m   of a method        %s   of a source file       %a   types of arguments, separated by commas
 *     %C   the same, a/b/C               %f   of a field         %l   a line number          %S   %s, or %s:%l
 *                                        %t   of a type
 *
 * A line that the whole expression matches is written with what the names were, once for each call; all others as they are. */
#pragma once

#include "jvm/alternatives.h"
#include "jvm/signatures.h"
#include "jvm/stack.h"

struct trace_pattern;

/* NULL: the expression is of no use, `problem` says why, or out of memory. `signatures` is where fields are, `verbose` whether methods
 * are shown with their types; these, the mappers and the `allowance` must outlive it. */
enum { TRACE_PROBLEM = 160 };
struct trace_pattern *trace_pattern_new(const char *regex, const struct sl_jvm_mappers *mappers,
                                        const struct sl_jvm_signatures *signatures, bool verbose,
                                        struct sl_jvm_allowance *allowance, char problem[TRACE_PROBLEM]);
void trace_pattern_free(struct trace_pattern *pattern); /* may be NULL */

/* Appends what the line is, which may have its end. False when out of memory. */
bool trace_pattern_line(struct trace_pattern *pattern, struct sl_str line, struct sl_buf *out);
