/* The printer: symbols and declarations in swift_print.c, types in swift_print_type.c. */
#pragma once

#include "demangle/swift_tree.h"

struct swift_printer {
    struct sl_buf *out;
    size_t end; /* limit of `out` */
    unsigned depth, steps;
    bool returns;     /* print function types with effects and results */
    bool specialized; /* "specialized" has been printed */
    bool failed;
};

void print_text(struct swift_printer *p, struct sl_str text);
void print_write(struct swift_printer *p, const char *text);
void print_number(struct swift_printer *p, uint32_t number);
/* Enters a recursion level; false at a limit. Pair it with print_leave(). */
bool print_enter(struct swift_printer *p);
void print_leave(struct swift_printer *p);

/* Prints a context. With `prefix` it precedes a dot and the declaration inside it; a context that cannot be a prefix is
 * returned, to be printed after the declaration. */
const struct swift_node *print_context(struct swift_printer *p, const struct swift_node *node, bool prefix);
void print_node(struct swift_printer *p, const struct swift_node *node); /* prints nothing for NULL */
/* Prints the children from index `from` on. */
void print_list(struct swift_printer *p, const struct swift_node *list, uint32_t from, const char *separator);

void print_type(struct swift_printer *p, const struct swift_node *type);
void print_signature(struct swift_printer *p, const struct swift_node *signature);
/* Prints a function type after the function's name. `labels` and `arguments`, which replace the generic parameters, may be
 * NULL. */
void print_function_type(struct swift_printer *p, const struct swift_node *type, const struct swift_node *labels,
                         const struct swift_node *arguments);
/* True if a declaration of this type is printed with its parameters: functions, generic or not, of the ordinary representation. */
bool print_is_function(const struct swift_node *type);
