/* What compilers for Windows on 32-bit x86 add to names of C in symbol tables: `_cdecl`, `_stdcall@N`, `@fastcall@N`,
 * `vectorcall@@N`, where N is the size of the parameters in bytes. Names that say more than that, and mangled ones, are left
 * alone. Debug information has names without it. */
#pragma once

#include "base/bytes.h"

/* A view of `name`; `*parameters` (may be NULL) becomes N, 0 when the name does not say it. */
struct sl_str sl_undecorate(struct sl_str name, uint32_t *parameters);

/* The same of a linkage name in DWARF, which has all of that but the underscore: `stdcall@N`. */
struct sl_str sl_undecorate_linkage(struct sl_str name);
