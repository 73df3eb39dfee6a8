/* Demangles Rust names, legacy and v0 (RFC 2603), without the hash. Private to this folder. */
#pragma once

#include "base/buf.h"

/* Appends the demangled name. False, possibly with a part appended, if `name` is not mangled in this way or the result has more
 * than `limit` bytes. With `out` NULL only checks whether the name is well-formed. */
bool rust_legacy(struct sl_str name, struct sl_buf *out, size_t limit);
bool rust_v0(struct sl_str name, struct sl_buf *out, size_t limit);

/* Parses the suffix after a mangled name: `*shown` is empty for `.llvm.<anything>`, which LLVM adds. False if `rest` is not a
 * suffix. */
bool rust_suffix(struct sl_str rest, struct sl_str *shown);
