/* Demangles names of Microsoft's compilers, C++/CX included. Private to this folder.
 *
 * A name is parsed into a tree (microsoft_tree.h) and then printed, because declarators have parts on both sides. There is no
 * standard; the grammar follows the output of the compilers. Recursion is limited to a depth of 128, and a name whose printing
 * visits more than some 10,000 nodes is refused, so that back references cannot multiply the output. */
#pragma once

#include "base/buf.h"

/* Appends the demangled name with its parameters; with `full` also the type of the result or variable, but never `static` and
 * other specifiers. False, possibly with a part appended, if `name` is not mangled in this way or the result has more than
 * `limit` bytes. */
bool microsoft_demangle(struct sl_str name, bool full, struct sl_buf *out, size_t limit);
