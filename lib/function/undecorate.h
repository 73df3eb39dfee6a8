/* What compilers for Windows add to names of C: `_cdecl`, `_stdcall@N`, `@fastcall@N`, `vectorcall@@N`, where N is the size
 * of the parameters in bytes. Names that say more than that, and mangled ones, are left alone. */
#pragma once

#include "base/bytes.h"

/* A view of `name`; `*parameters` (may be NULL) becomes N, 0 when the name does not say it. */
struct sl_str sl_undecorate(struct sl_str name, uint32_t *parameters);
