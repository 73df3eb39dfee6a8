/* The nodes of the tree of a mangled Swift name, and decoding of the identifiers and operators in it. */
#include "demangle/swift_tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "demangle/text.h"

enum { MAX_NODES = 1 << 15 }; /* per name: bounds memory and time for hostile names */

/* Creates a node. NULL when out of memory, or when the tree has MAX_NODES nodes: a hostile name can be short and mean a large tree. */
struct swift_node *node_new(struct swift_reader *r, enum node_kind kind)
{
    struct swift_node *node = r->nodes < MAX_NODES ? SL_ARENA_NEW(&r->arena, struct swift_node) : NULL;
    if (!node)
        return NULL;
    r->nodes++;
    node->kind = kind;
    return node;
}

struct swift_node *node_text(struct swift_reader *r, enum node_kind kind, struct sl_str text)
{
    struct swift_node *node = node_new(r, kind);
    if (node)
        node->text = text;
    return node;
}

struct swift_node *node_write(struct swift_reader *r, enum node_kind kind, const char *text)
{
    return node_text(r, kind, sl_str(text));
}

/* Creates a node with a formatted text, which is copied into the reader's arena. */
struct swift_node *node_format(struct swift_reader *r, enum node_kind kind, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size < 0)
        return NULL;
    char *copy = sl_arena_strndup(&r->arena, text, (size_t)size);
    free(text);
    return copy ? node_text(r, kind, (struct sl_str){copy, (size_t)size}) : NULL;
}

struct swift_node *node_number(struct swift_reader *r, enum node_kind kind, uint32_t index)
{
    struct swift_node *node = node_new(r, kind);
    if (node)
        node->index = index;
    return node;
}

/* Copies a node, not its children, which both then share. */
struct swift_node *node_copy(struct swift_reader *r, const struct swift_node *node)
{
    struct swift_node *copy = node_text(r, node->kind, node->text);
    if (!copy)
        return NULL;
    copy->index = node->index;
    copy->depth = node->depth;
    for (uint32_t i = 0; copy && i < node->count; i++)
        copy = node_put(r, copy, node->children[i]);
    return copy;
}

/* Appends a child, which may be NULL. The array of children doubles when it is full; the old one stays in the arena until the end. */
struct swift_node *node_put(struct swift_reader *r, struct swift_node *parent, struct swift_node *child)
{
    if (!parent)
        return NULL;
    if (parent->count == parent->capacity) {
        uint32_t capacity = parent->capacity ? parent->capacity * 2 : 4;
        struct swift_node **children =
            capacity <= MAX_NODES ? SL_ARENA_ARRAY(&r->arena, struct swift_node *, capacity) : NULL;
        if (!children)
            return NULL;
        if (parent->count)
            memcpy(children, parent->children, parent->count * sizeof *children);
        parent->children = children;
        parent->capacity = capacity;
    }
    parent->children[parent->count++] = child;
    return parent;
}

struct swift_node *node_add(struct swift_reader *r, struct swift_node *parent, struct swift_node *child)
{
    return child ? node_put(r, parent, child) : NULL;
}

struct swift_node *node_with_child(struct swift_reader *r, enum node_kind kind, struct swift_node *child)
{
    return child ? node_add(r, node_new(r, kind), child) : NULL;
}

struct swift_node *node_pair(struct swift_reader *r, enum node_kind kind, struct swift_node *first,
                             struct swift_node *second)
{
    return node_add(r, node_with_child(r, kind, first), second);
}

struct swift_node *node_entity(struct swift_reader *r, enum node_kind kind, struct swift_node *context,
                               struct swift_node *name, struct swift_node *labels, struct swift_node *type)
{
    return node_put(r, node_put(r, node_put(r, node_with_child(r, kind, context), name), labels), type);
}

struct swift_node *node_phrase(struct swift_reader *r, const char *before, struct swift_node *first,
                               const char *between, struct swift_node *second)
{
    struct swift_node *phrase = node_with_child(r, N_PHRASE, node_write(r, N_LITERAL, before));
    phrase = node_add(r, phrase, first);
    if (!between)
        return phrase;
    return node_add(r, node_add(r, phrase, node_write(r, N_LITERAL, between)), second);
}

struct swift_node *node_standard(struct swift_reader *r, enum node_kind kind, const char *name)
{
    struct swift_node *module = node_write(r, N_MODULE, "Swift");
    return node_entity(r, kind, module, node_write(r, N_IDENTIFIER, name), NULL, NULL);
}

struct swift_node *node_parameter(struct swift_reader *r, uint32_t depth, uint32_t index)
{
    struct swift_node *node = node_number(r, N_PARAMETER, index);
    if (node)
        node->depth = depth;
    return node;
}

struct swift_node *node_optional(struct swift_reader *r, struct swift_node *type)
{
    return node_pair(r, N_BOUND, node_standard(r, N_ENUM, "Optional"), node_with_child(r, N_LIST, type));
}

struct swift_node *node_marked(struct swift_reader *r, const char *prefix, struct swift_node *type)
{
    return node_add(r, node_write(r, N_MARKED, prefix), type);
}

struct swift_node *node_effect(struct swift_reader *r, enum effect effect, const char *text)
{
    struct swift_node *node = node_write(r, N_EFFECT, text);
    if (node)
        node->index = effect;
    return node;
}

struct swift_node *node_reverse(struct swift_node *node, uint32_t from)
{
    for (uint32_t i = from, j = node ? node->count : 0; i + 1 < j; i++) {
        struct swift_node *last = node->children[--j];
        node->children[j] = node->children[i];
        node->children[i] = last;
    }
    return node;
}

struct swift_node *node_child(const struct swift_node *node, uint32_t index)
{
    return node && index < node->count ? node->children[index] : NULL;
}

bool node_is_type(const struct swift_node *node)
{
    return node && node->kind >= N_FIRST_TYPE && node->kind <= N_LAST_TYPE;
}

bool node_is_nominal(const struct swift_node *node)
{
    return node && node->kind >= N_FIRST_TYPE && node->kind <= N_LAST_NOMINAL;
}

bool node_is_context(const struct swift_node *node)
{
    return node && node->kind >= N_FIRST_CONTEXT && node->kind <= N_LAST_CONTEXT;
}

bool node_is_name(const struct swift_node *node)
{
    return node && node->kind >= N_IDENTIFIER && node->kind <= N_OPERATOR;
}

/* ---- names ---- */

/* Swift adds 0xD800 to ASCII characters that an identifier cannot contain, which makes them surrogates that valid text never contains, and
 * then applies Punycode with `_` before the deltas. This reverses both. */
struct sl_str name_punycode(struct swift_reader *r, struct sl_str text)
{
    uint32_t chars[TEXT_MAX_PUNYCODE];
    size_t count;
    struct sl_buf out = {0};
    const char *mark = text.size ? memrchr(text.data, '_', text.size) : NULL;
    size_t split = mark ? (size_t)(mark - text.data) : 0, skip = mark ? split + 1 : 0;
    if (!text_punycode((struct sl_str){text.data, split}, (struct sl_str){text.data + skip, text.size - skip}, 'A',
                       chars, &count)) /* 'A': Swift's digits after `z` are A to J */
        return (struct sl_str){"", 0};
    for (size_t i = 0; i < count; i++) {
        if (chars[i] >= 0xD800 && chars[i] < 0xD880)
            chars[i] -= 0xD800;
        if ((chars[i] >= 0xD800 && chars[i] < 0xE000) || chars[i] < 0x20) /* other surrogates, control characters */
            return (struct sl_str){"", 0};
    }
    for (size_t i = 0; i < count; i++)
        text_add_char(&out, chars[i]);
    char *copy = out.failed ? NULL : sl_arena_strndup(&r->arena, (const char *)out.data, out.size);
    struct sl_str name = {copy ? copy : "", copy ? out.size : 0};
    sl_buf_free(&out);
    return name;
}

struct swift_node *name_operator(struct swift_reader *r, struct sl_str letters, char fixity)
{
    /* The characters for the letters a to z; a space where a letter stands for none. Non-ASCII bytes stand for themselves. */
    static const char characters[] = "& @/= >    <*!|+?%-~   ^ .";
    const char *suffix = fixity == 'i' ? " infix" : fixity == 'p' ? " prefix" : fixity == 'P' ? " postfix" : NULL;
    struct swift_node *node = node_new(r, N_OPERATOR);
    char *text = suffix ? SL_ARENA_ARRAY(&r->arena, char, letters.size + strlen(suffix)) : NULL;
    if (!node || !text)
        return NULL;
    for (size_t i = 0; i < letters.size; i++) {
        char c = letters.data[i];
        bool letter = c >= 'a' && c <= 'z';
        text[i] = letter ? characters[c - 'a'] : c;
        if (text[i] == ' ' || (!letter && !((uint8_t)c & 0x80)))
            return NULL;
    }
    memcpy(text + letters.size, suffix, strlen(suffix));
    node->text = (struct sl_str){text, letters.size + strlen(suffix)};
    return node;
}
