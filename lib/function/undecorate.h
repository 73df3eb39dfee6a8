/* Strips the decoration of C names in symbol tables of 32-bit x86 Windows: `_cdecl`, `_stdcall@N`, `@fastcall@N`, `vectorcall@@N`,
 * where N is the size of the parameters in bytes: `_f@8` becomes `f`, 8. Mangled and readable C++ names stay as they are. Names in debug
 * information have no decoration. */
#pragma once

#include "base/bytes.h"

/* Returns a view of `name`; `*parameters` (may be NULL) becomes N, or 0 if the name has none. */
struct sl_str sl_undecorate(struct sl_str name, uint32_t *parameters);

/* For linkage names in DWARF, which have the same decoration without the underscore: `stdcall@N`. */
struct sl_str sl_undecorate_linkage(struct sl_str name);
