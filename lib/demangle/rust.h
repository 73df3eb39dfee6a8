/* Rust names: the legacy scheme and v0 (RFC 2603), both shown without the hash. Private to this folder. */
#pragma once

#include "base/buf.h"

/* Appends the readable form; false, with part of it possibly appended, when `name` is not mangled so or the form has
 * more than `limit` bytes. `out` NULL: only tells whether the name is well-formed. */
bool rust_legacy(struct sl_str name, struct sl_buf *out, size_t limit);
bool rust_v0(struct sl_str name, struct sl_buf *out, size_t limit);

/* What follows the mangling proper: nothing for `.llvm.<anything>`, which tells of the compiler's inner life only.
 * False when `rest` is no suffix at all. */
bool rust_suffix(struct sl_str rest, struct sl_str *shown);
