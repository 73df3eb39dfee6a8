/* Swift names, in the style of a crash report: no modules, no private discriminators, no where clauses, but labels and
 * types of arguments. Private to this folder. */
#pragma once

#include "base/buf.h"

/* Appends the readable form of a name that begins with `$s $S $e _$s _$S _$e _T0 _T` or `@__swiftmacro_`; false, with
 * part of it possibly appended, when it is not understood completely or the form has more than `limit` bytes.
 * `returns`: with effects and result types of functions. */
bool swift_demangle(struct sl_str name, bool returns, struct sl_buf *out, size_t limit);
