/* Strips the decoration of C names in symbol tables of 32-bit x86 Windows: `_cdecl`, `_stdcall@N`, `@fastcall@N`, `vectorcall@@N`,
 * where N is the size of the parameters in bytes: `_f@8` becomes `f`, 8. Mangled and readable C++ names stay as they are. In debug
 * information DW_AT_name has no decoration, but linkage names may have a part of it. */
#pragma once

#include "base/bytes.h"

/* Returns the name without decoration, a view of `name`; `*parameters` (may be NULL) becomes N, or 0 if the name has none. */
struct sl_str sl_undecorate(struct sl_str name, uint32_t *parameters);

/* Returns a linkage name of DWARF without decoration. DWARF leaves out the underscore: `f@8` becomes `f`. A view of `name`. */
struct sl_str sl_undecorate_linkage(struct sl_str name);
