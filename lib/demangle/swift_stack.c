/* The text of a mangled Swift name, and the operand stack of its operators. */
#include "demangle/swift_tree.h"

/* ---- the text ---- */

char reader_peek(const struct swift_reader *r)
{
    return r->at < r->text.size ? r->text.data[r->at] : '\0';
}

char reader_next(struct swift_reader *r)
{
    return r->at < r->text.size ? r->text.data[r->at++] : '\0';
}

bool reader_eat(struct swift_reader *r, char c)
{
    if (r->at == r->text.size || r->text.data[r->at] != c)
        return false;
    r->at++;
    return true;
}

/* Moves past `text` if the rest of the name begins with it; else false, and nothing is read. */
bool reader_eat_text(struct swift_reader *r, const char *text)
{
    size_t size = strlen(text);
    if (size > r->text.size - r->at || memcmp(r->text.data + r->at, text, size) != 0)
        return false;
    r->at += size;
    return true;
}

/* Reads a decimal number; false if there is none or it is absurdly large. */
bool reader_natural(struct swift_reader *r, uint32_t *value)
{
    enum { MAX = 1 << 24 }; /* more than any name has bytes, and far from overflow */
    uint32_t number = 0;
    if (reader_peek(r) < '0' || reader_peek(r) > '9')
        return false;
    while (reader_peek(r) >= '0' && reader_peek(r) <= '9') {
        number = number * 10 + (uint32_t)(reader_next(r) - '0');
        if (number > MAX)
            return false;
    }
    *value = number;
    return true;
}

bool reader_index(struct swift_reader *r, uint32_t *value)
{
    *value = 0;
    if (reader_eat(r, '_'))
        return true;
    return reader_natural(r, value) && ++*value && reader_eat(r, '_');
}

bool reader_subset(struct swift_reader *r, char end)
{
    size_t start = r->at;
    while (reader_eat(r, 'S') || reader_eat(r, 'U'))
        ;
    return r->at > start && reader_eat(r, end);
}

struct sl_str reader_take(struct swift_reader *r, uint32_t size)
{
    if (size > r->text.size - r->at)
        return (struct sl_str){"", 0};
    r->at += size;
    return (struct sl_str){r->text.data + r->at - size, size};
}

/* ---- the stack ---- */

struct swift_node *reader_push(struct swift_reader *r, struct swift_node *node)
{
    return node_add(r, r->stack, node) ? node : NULL;
}

struct swift_node *reader_top(const struct swift_reader *r)
{
    return r->stack->count ? r->stack->children[r->stack->count - 1] : NULL;
}

struct swift_node *reader_pop(struct swift_reader *r)
{
    return r->stack->count ? r->stack->children[--r->stack->count] : NULL;
}

static struct swift_node *pop_if(struct swift_reader *r, bool (*wanted)(const struct swift_node *))
{
    return wanted(reader_top(r)) ? reader_pop(r) : NULL;
}

struct swift_node *reader_pop_kind(struct swift_reader *r, enum node_kind kind)
{
    struct swift_node *top = reader_top(r);
    return top && top->kind == kind ? reader_pop(r) : NULL;
}

struct swift_node *reader_pop_type(struct swift_reader *r)
{
    return pop_if(r, node_is_type);
}

struct swift_node *reader_pop_nominal(struct swift_reader *r)
{
    return pop_if(r, node_is_nominal);
}

struct swift_node *reader_pop_name(struct swift_reader *r)
{
    return pop_if(r, node_is_name);
}

static bool is_entity(const struct swift_node *node)
{
    return node_is_type(node) || (node_is_context(node) && node->kind != N_MODULE);
}

struct swift_node *reader_pop_entity(struct swift_reader *r)
{
    return pop_if(r, is_entity);
}

struct swift_node *reader_pop_module(struct swift_reader *r)
{
    struct swift_node *name = reader_pop_kind(r, N_IDENTIFIER);
    return name ? node_text(r, N_MODULE, name->text) : reader_pop_kind(r, N_MODULE);
}

struct swift_node *reader_pop_context(struct swift_reader *r)
{
    struct swift_node *module = reader_pop_module(r);
    return module ? module : pop_if(r, node_is_context);
}

/* Pops a protocol: a type on the stack, or, where the grammar allows only a protocol, a context and a name without the operator for
 * protocols. */
struct swift_node *reader_pop_protocol(struct swift_reader *r)
{
    if (node_is_type(reader_top(r)))
        return reader_pop_kind(r, N_PROTOCOL);
    struct swift_node *name = reader_pop_name(r);
    return name ? node_entity(r, N_PROTOCOL, reader_pop_context(r), name, NULL, NULL) : NULL;
}

struct swift_node *reader_substitutable(struct swift_reader *r, struct swift_node *node)
{
    return node_add(r, r->substitutions, node) ? node : NULL;
}
