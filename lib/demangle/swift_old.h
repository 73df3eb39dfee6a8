/* Reader of Swift's mangling before Swift 4: declarations and symbols in swift_old.c, types in swift_old_type.c. The grammar is in prefix
 * order and is parsed by recursive descent; the stack of `struct swift_reader` is not used. A function that reads a node returns NULL if
 * the text is malformed, or when out of memory. */
#pragma once

#include "demangle/swift_tree.h"

/* Counts one more type around the text being read; false if they are nested too deeply. old_leave() takes it back. */
bool old_enter(struct swift_reader *r);
void old_leave(struct swift_reader *r);

struct swift_node *old_type(struct swift_reader *r);
struct swift_node *old_signature(struct swift_reader *r); /* `u` or `G` has been read */
struct swift_node *old_bound(struct swift_reader *r);     /* `G` has been read */

struct swift_node *old_name(struct swift_reader *r);
struct swift_node *old_identifier(struct swift_reader *r);
struct swift_node *old_substitution(struct swift_reader *r); /* `S` has been read */
struct swift_node *old_context(struct swift_reader *r);
/* Reads a context and a name into a declaration, and adds it to the substitutions, to which the mangling can refer back. */
struct swift_node *old_declared(struct swift_reader *r, enum node_kind kind);
struct swift_node *old_protocol(struct swift_reader *r);
struct swift_node *old_conformance(struct swift_reader *r); /* returns the conforming type */
