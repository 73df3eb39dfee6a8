/* The two halves of the printer: symbols and declarations in swift_print.c, types in swift_print_type.c. */
#pragma once

#include "demangle/swift_tree.h"

struct printer {
    struct sl_buf *out;
    size_t end; /* of `out`, by the limit */
    unsigned depth, steps;
    bool returns;     /* function types with effects and results */
    bool specialized; /* has been said */
    bool failed;
};

void print_text(struct printer *p, struct sl_str text);
void print_say(struct printer *p, const char *text);
void print_number(struct printer *p, uint32_t number);
/* One level deeper; false at a limit. Paired with print_leave(). */
bool print_enter(struct printer *p);
void print_leave(struct printer *p);

/* `prefix`: before a dot and what is declared inside. What cannot be put there is returned, and said behind. */
const struct node *print_context(struct printer *p, const struct node *node, bool prefix);
void print_node(struct printer *p, const struct node *node); /* NULL: nothing */
/* The children from index `from` on. */
void print_list(struct printer *p, const struct node *list, uint32_t from, const char *separator);

void print_type(struct printer *p, const struct node *type);
void print_signature(struct printer *p, const struct node *signature);
/* A function type behind the function's name. `labels` and `arguments`, which replace the generic parameters, may be
 * NULL. */
void print_function_type(struct printer *p, const struct node *type, const struct node *labels,
                         const struct node *arguments);
/* Whether a declaration of the type is shown with its parameters: functions, generic or not, of no special kind. */
bool print_is_function(const struct node *type);
