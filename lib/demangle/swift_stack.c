/* The text of a mangled Swift name, and the operand stack of its operators. */
#include "demangle/swift_tree.h"

/* ---- the text ---- */

char reader_peek(const struct reader *r)
{
    return r->at < r->text.size ? r->text.data[r->at] : '\0';
}

char reader_next(struct reader *r)
{
    return r->at < r->text.size ? r->text.data[r->at++] : '\0';
}

bool reader_eat(struct reader *r, char c)
{
    if (r->at == r->text.size || r->text.data[r->at] != c)
        return false;
    r->at++;
    return true;
}

bool reader_eat_text(struct reader *r, const char *text)
{
    size_t size = strlen(text);
    if (size > r->text.size - r->at || memcmp(r->text.data + r->at, text, size) != 0)
        return false;
    r->at += size;
    return true;
}

bool reader_natural(struct reader *r, uint32_t *value)
{
    enum { MAX = 1 << 24 };
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

bool reader_index(struct reader *r, uint32_t *value)
{
    *value = 0;
    if (reader_eat(r, '_'))
        return true;
    return reader_natural(r, value) && ++*value && reader_eat(r, '_');
}

bool reader_subset(struct reader *r, char end)
{
    size_t start = r->at;
    while (reader_eat(r, 'S') || reader_eat(r, 'U'))
        ;
    return r->at > start && reader_eat(r, end);
}

struct sl_str reader_take(struct reader *r, uint32_t size)
{
    if (size > r->text.size - r->at)
        return (struct sl_str){"", 0};
    r->at += size;
    return (struct sl_str){r->text.data + r->at - size, size};
}

/* ---- the stack ---- */

struct node *reader_push(struct reader *r, struct node *node)
{
    return node_add(r, r->stack, node) ? node : NULL;
}

struct node *reader_top(const struct reader *r)
{
    return r->stack->count ? r->stack->children[r->stack->count - 1] : NULL;
}

struct node *reader_pop(struct reader *r)
{
    return r->stack->count ? r->stack->children[--r->stack->count] : NULL;
}

static struct node *pop_if(struct reader *r, bool (*wanted)(const struct node *))
{
    return wanted(reader_top(r)) ? reader_pop(r) : NULL;
}

struct node *reader_pop_kind(struct reader *r, enum node_kind kind)
{
    struct node *top = reader_top(r);
    return top && top->kind == kind ? reader_pop(r) : NULL;
}

struct node *reader_pop_type(struct reader *r)
{
    return pop_if(r, node_is_type);
}

struct node *reader_pop_nominal(struct reader *r)
{
    return pop_if(r, node_is_nominal);
}

struct node *reader_pop_name(struct reader *r)
{
    return pop_if(r, node_is_name);
}

static bool is_entity(const struct node *node)
{
    return node_is_type(node) || (node_is_context(node) && node->kind != N_MODULE);
}

struct node *reader_pop_entity(struct reader *r)
{
    return pop_if(r, is_entity);
}

struct node *reader_pop_module(struct reader *r)
{
    struct node *name = reader_pop_kind(r, N_IDENTIFIER);
    return name ? node_text(r, N_MODULE, name->text) : reader_pop_kind(r, N_MODULE);
}

struct node *reader_pop_context(struct reader *r)
{
    struct node *module = reader_pop_module(r);
    return module ? module : pop_if(r, node_is_context);
}

struct node *reader_pop_protocol(struct reader *r)
{
    if (node_is_type(reader_top(r)))
        return reader_pop_kind(r, N_PROTOCOL);
    struct node *name = reader_pop_name(r);
    return name ? node_entity(r, N_PROTOCOL, reader_pop_context(r), name, NULL, NULL) : NULL;
}

struct node *reader_substitutable(struct reader *r, struct node *node)
{
    return node_add(r, r->substitutions, node) ? node : NULL;
}
