/* Demangles Swift names in the style of crash reports: no modules, no private discriminators, no where clauses, but labels and
 * argument types. Private to this folder. */
#pragma once

#include "base/buf.h"

/* Appends the demangled form of a name that begins with `$s $S $e _$s _$S _$e _T0 _T` or `@__swiftmacro_`. False, possibly with
 * a part appended, if a part of it is not supported or the result has more than `limit` bytes. `returns`: print effects
 * (async, throws) and result types of functions. */
bool swift_demangle(struct sl_str name, bool returns, struct sl_buf *out, size_t limit);
