/* The printer: symbols and declarations in swift_print.c, types in swift_print_type.c. */
#pragma once

#include "demangle/swift_tree.h"

struct swift_printer {
    struct sl_buf *out;
    size_t end; /* size that `out` must not exceed */
    unsigned depth, steps;
    bool returns;     /* print function types with effects and results */
    bool specialized; /* the word "specialized" has been printed; it is printed once a symbol */
    bool failed;
};

void print_text(struct swift_printer *p, struct sl_str text);
void print_write(struct swift_printer *p, const char *text);
void print_number(struct swift_printer *p, uint32_t number);
/* Counts one more printed and one more nested node; false, and `failed` is set, if there are too many. Call print_leave() in both cases. */
bool print_enter(struct swift_printer *p);
void print_leave(struct swift_printer *p);

/* Prints a context. With `prefix` a dot and the declaration inside it follow; a context that cannot stand in front of a dot is not
 * printed but returned, for the caller to print after the declaration ("f in ..."). Else NULL. */
const struct swift_node *print_context(struct swift_printer *p, const struct swift_node *node, bool prefix);
void print_node(struct swift_printer *p, const struct swift_node *node); /* prints nothing for NULL */
/* Prints the list's children from index `from` on, with `separator` between them; nothing for NULL. */
void print_list(struct swift_printer *p, const struct swift_node *list, uint32_t from, const char *separator);

void print_type(struct swift_printer *p, const struct swift_node *type);
void print_signature(struct swift_printer *p, const struct swift_node *signature);
/* Prints a function type, after the function's name if it has one: "<A>(A, label: B)". `labels` are those of the declaration, `arguments`
 * the types that replace the generic parameters; both may be NULL. */
void print_function_type(struct swift_printer *p, const struct swift_node *type, const struct swift_node *labels,
                         const struct swift_node *arguments);
/* True if a declaration of this type is printed with its parameters: function types, generic or not, without an attribute or with
 * @convention(c) or @convention(thin). */
bool print_is_function(const struct swift_node *type);
