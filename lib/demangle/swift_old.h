/* The two halves of the reader of Swift's mangling before Swift 4: declarations and symbols in swift_old.c, types in
 * swift_old_type.c. It is a grammar in prefix order, read by descent; the reader's stack is not used. */
#pragma once

#include "demangle/swift_tree.h"

/* One level deeper; false at the limit. Paired with old_leave(). */
bool old_enter(struct reader *r);
void old_leave(struct reader *r);

struct node *old_type(struct reader *r);
struct node *old_signature(struct reader *r); /* behind `u` or `G` */
struct node *old_bound(struct reader *r);     /* behind `G` */

struct node *old_name(struct reader *r);
struct node *old_identifier(struct reader *r);
struct node *old_substitution(struct reader *r); /* behind `S` */
struct node *old_context(struct reader *r);
/* A context and a name, as a declaration that can be referred to. */
struct node *old_declared(struct reader *r, enum node_kind kind);
struct node *old_protocol(struct reader *r);
struct node *old_conformance(struct reader *r); /* the conforming type */
