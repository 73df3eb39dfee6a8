/* Demangles Rust names, legacy and v0 (RFC 2603), without the hash. Private to this folder. */
#pragma once

#include "base/buf.h"

/* Append the demangled name of the legacy or the v0 mangling. False, possibly with a part appended, if `name` is not mangled in this way or
 * the result has more than `limit` bytes. With `out` NULL they only check whether the name is well-formed. */
bool rust_legacy(struct sl_str name, struct sl_buf *out, size_t limit);
bool rust_v0(struct sl_str name, struct sl_buf *out, size_t limit);

/* Checks `rest`, the text after a mangled name, which must be empty or begin with a dot, as ".cold". `*shown` becomes `rest` up to
 * ".llvm.<anything>", which LLVM adds and which is not shown. */
bool rust_suffix(struct sl_str rest, struct sl_str *shown);
