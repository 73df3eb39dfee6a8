/* Names as Microsoft's compilers mangle them, C++/CX included. Private to this folder.
 *
 * Parsed into a tree (microsoft_tree.h), which is then printed: declarators have their parts on both sides. There is no
 * standard; the grammar follows what the compilers write. Recursion ends at a depth of 128, and a name that would take
 * more than some 10,000 nodes to print is refused, so that references to parts of the name itself cannot multiply. */
#pragma once

#include "base/buf.h"

/* Appends the readable form: name and parameters; with `full` the type of the result or the variable, `static` and the
 * like are still left out. False, with part of it possibly appended, when `name` is not mangled so or the form has more
 * than `limit` bytes. */
bool microsoft_demangle(struct sl_str name, bool full, struct sl_buf *out, size_t limit);
