/* The printer: symbols and declarations in swift_print.c, types in swift_print_type.c. */
#pragma once

#include "demangle/swift_tree.h"

struct printer {
    struct sl_buf *out;
    size_t end; /* limit of `out` */
    unsigned depth, steps;
    bool returns;     /* print function types with effects and results */
    bool specialized; /* "specialized" has been printed */
    bool failed;
};

void print_text(struct printer *p, struct sl_str text);
void print_say(struct printer *p, const char *text);
void print_number(struct printer *p, uint32_t number);
/* Enters a recursion level; false at a limit. Pair it with print_leave(). */
bool print_enter(struct printer *p);
void print_leave(struct printer *p);

/* Prints a context. With `prefix` it precedes a dot and the declaration inside it; a context that cannot be a prefix is
 * returned, to be printed after the declaration. */
const struct node *print_context(struct printer *p, const struct node *node, bool prefix);
void print_node(struct printer *p, const struct node *node); /* prints nothing for NULL */
/* Prints the children from index `from` on. */
void print_list(struct printer *p, const struct node *list, uint32_t from, const char *separator);

void print_type(struct printer *p, const struct node *type);
void print_signature(struct printer *p, const struct node *signature);
/* Prints a function type after the function's name. `labels` and `arguments`, which replace the generic parameters, may be
 * NULL. */
void print_function_type(struct printer *p, const struct node *type, const struct node *labels,
                         const struct node *arguments);
/* True if a declaration of this type is printed with its parameters: functions, generic or not, of the ordinary representation. */
bool print_is_function(const struct node *type);
