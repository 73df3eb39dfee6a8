/* Swift names, in the style of a crash report: no modules, no private discriminators, no where clauses, argument labels and
 * types. Private to this folder. */
#pragma once

#include "base/buf.h"

/* Appends the readable form of a name with one of the prefixes `$s $S $e _$s _$S _$e _T0 _T @__swiftmacro_`; false, with
 * part of it possibly appended, when it is not understood completely or the form has more than `limit` bytes. `returns`:
 * effects and result types of functions as well. */
bool swift_demangle(struct sl_str name, bool returns, struct sl_buf *out, size_t limit);
