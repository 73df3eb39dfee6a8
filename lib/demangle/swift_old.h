/* Reader of Swift's mangling before Swift 4: declarations and symbols in swift_old.c, types in swift_old_type.c. The grammar is
 * in prefix order and is parsed by recursive descent; the stack of `struct reader` is not used. */
#pragma once

#include "demangle/swift_tree.h"

/* Enters a recursion level; false at the limit. Pair it with old_leave(). */
bool old_enter(struct reader *r);
void old_leave(struct reader *r);

struct node *old_type(struct reader *r);
struct node *old_signature(struct reader *r); /* after `u` or `G` */
struct node *old_bound(struct reader *r);     /* after `G` */

struct node *old_name(struct reader *r);
struct node *old_identifier(struct reader *r);
struct node *old_substitution(struct reader *r); /* after `S` */
struct node *old_context(struct reader *r);
/* Reads a context and a name into a declaration, which later references may name. */
struct node *old_declared(struct reader *r, enum node_kind kind);
struct node *old_protocol(struct reader *r);
struct node *old_conformance(struct reader *r); /* returns the conforming type */
