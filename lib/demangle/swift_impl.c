/* Function types of SIL (Swift's intermediate language), in names of thunks. The types are already on the reader's stack (postfix
 * mangling); the letters read here say the convention of each parameter and result. The node's children are in the order of the text:
 * N_IMPL_ATTRIBUTE, then at most one N_SIGNATURE, N_IMPL_PARAMETER, N_IMPL_RESULT, and last, for substituted types, an N_LITERAL for each
 * part of the phrase after it. */
#include "demangle/swift_tree.h"

/* The letter for an attribute or a convention, and how it is printed. A table of these ends with letter 0. */
struct swift_impl_code {
    char letter;
    const char *text;
};

static const struct swift_impl_code isolations[] = {{'A', "@isolated(any) "}, {'N', "@caller_isolated "}, {0, NULL}};
static const struct swift_impl_code once[] = {{'O', "@called(once) "}, {0, NULL}};
static const struct swift_impl_code derivatives[] = {
    {'d', "@differentiable "},
    {'f', "@differentiable(_forward) "},
    {'l', "@differentiable(_linear) "},
    {'r', "@differentiable(reverse) "},
    {0, NULL},
};
static const struct swift_impl_code callees[] = {
    {'y', "@callee_unowned "},
    {'g', "@callee_guaranteed "},
    {'x', "@callee_owned "},
    {'t', "@convention(thin) "},
    {0, NULL},
};
static const struct swift_impl_code representations[] = {
    {'B', "@convention(block) "},          {'C', "@convention(c) "},
    {'J', "@convention(objc_method) "},    {'K', "@convention(closure) "},
    {'M', "@convention(method) "},         {'V', "@convention(com_method) "},
    {'W', "@convention(witness_method) "}, {0, NULL},
};
static const struct swift_impl_code coroutines[] = {
    {'A', "@yield_once "}, {'I', "@yield_once_2 "}, {'G', "@yield_many "}, {0, NULL}};
static const struct swift_impl_code sendable[] = {{'h', "@Sendable "}, {0, NULL}};
static const struct swift_impl_code async[] = {{'H', "@async "}, {0, NULL}};
static const struct swift_impl_code parameters[] = {
    {'X', "@in_cxx "},        {'b', "@inout_aliasable "},
    {'c', "@in_constant "},   {'e', "@deallocating "},
    {'g', "@guaranteed "},    {'i', "@in "},
    {'l', "@inout "},         {'m', "@pack_inout "},
    {'n', "@in_guaranteed "}, {'p', "@pack_guaranteed "},
    {'v', "@pack_owned "},    {'x', "@owned "},
    {'y', "@unowned "},       {0, NULL},
};
static const struct swift_impl_code results[] = {
    {'a', "@autoreleased "},          {'d', "@unowned "}, {'g', "@guaranteed "}, {'k', "@pack_out "},
    {'l', "@guaranteed_address "},    {'m', "@inout "},   {'o', "@owned "},      {'r', "@out "},
    {'u', "@unowned_inner_pointer "}, {0, NULL},
};

/* Qualifiers after the convention of a parameter or a result, in this order. The last two are not printed. */
static const struct swift_impl_code qualifiers[] = {
    {'w', "@noDerivative "}, {'T', "sending "}, {'I', ""}, {'L', ""}, {0, NULL}};

/* Reads one of the letters of the table and returns its text; NULL if the next character is none of them. */
static const char *eat_code(struct swift_reader *r, const struct swift_impl_code *codes)
{
    for (; codes->letter; codes++)
        if (reader_eat(r, codes->letter))
            return codes->text;
    return NULL;
}

/* Reads one of the letters of the table, if it is there, and adds its text to `function`. Returns `function`; NULL when out of memory. */
static struct swift_node *attribute(struct swift_reader *r, struct swift_node *function,
                                    const struct swift_impl_code *codes)
{
    const char *text = eat_code(r, codes);
    return text ? node_add(r, function, node_write(r, N_IMPL_ATTRIBUTE, text)) : function;
}

/* Reads the letter for how the function is called, if it is there, and adds its text. If `z` precedes the letter, the size and the text of
 * a C type follow it, which are not printed. Returns `function`; NULL if it is malformed. */
static struct swift_node *representation(struct swift_reader *r, struct swift_node *function)
{
    uint32_t size;
    if (!reader_eat(r, 'z'))
        return attribute(r, function, representations);
    function = attribute(r, function, representations);
    return reader_natural(r, &size) && reader_take(r, size).size ? function : NULL;
}

/* Reads a parameter or result: the letter of its convention from `codes`, and qualifiers. Its text is `before` and their texts; pop_types()
 * adds its type later. NULL when there are no more. */
static struct swift_node *swift_impl_part(struct swift_reader *r, enum node_kind kind, const char *before,
                                          const struct swift_impl_code *codes)
{
    const char *convention = eat_code(r, codes);
    if (!convention)
        return NULL;
    const char *said[sizeof qualifiers / sizeof *qualifiers] = {NULL}; /* only the first two have a text to print */
    for (size_t i = 0; qualifiers[i].letter; i++)
        said[i] = reader_eat(r, qualifiers[i].letter) ? qualifiers[i].text : "";
    return node_format(r, kind, "%s%s%s%s", before, convention, said[0], said[1]);
}

/* Reads the parameters, the results, after `Y` each a value yielded by a coroutine, and after `z` the error, and adds them to `function`.
 * Returns `function`; NULL if one is malformed. */
static struct swift_node *parts(struct swift_reader *r, struct swift_node *function)
{
    struct swift_node *node;
    while ((node = swift_impl_part(r, N_IMPL_PARAMETER, "", parameters)))
        function = node_add(r, function, node);
    while ((node = swift_impl_part(r, N_IMPL_RESULT, "", results)))
        function = node_add(r, function, node);
    while (reader_eat(r, 'Y'))
        function = node_add(r, function, swift_impl_part(r, N_IMPL_RESULT, "@yields ", parameters));
    if (reader_eat(r, 'z'))
        function = node_add(r, function, swift_impl_part(r, N_IMPL_RESULT, "@error ", results));
    return function;
}

/* Pops the type of each parameter and result, from the last to the first, and adds it to that. False if one is missing. */
static bool pop_types(struct swift_reader *r, struct swift_node *function)
{
    for (uint32_t i = function->count; i; i--) {
        struct swift_node *child = function->children[i - 1];
        bool typed = child->kind == N_IMPL_PARAMETER || child->kind == N_IMPL_RESULT;
        if (typed && !node_add(r, child, reader_pop_type(r)))
            return false;
    }
    return true;
}

/* Pops the types that replace the generic parameters of a signature; NULL if they are malformed. */
static struct swift_node *pop_substitutions(struct swift_reader *r)
{
    struct swift_node *lists = generic_arguments(r);
    return lists && lists->count == 1 ? lists->children[0] : NULL;
}

/* Adds " for <A, B>" to `function`, with the types that replace the generic parameters of its signature. */
static struct swift_node *substituted(struct swift_reader *r, struct swift_node *function, struct swift_node *arguments)
{
    struct swift_node *phrase = node_write(r, N_LITERAL, " for <");
    return node_add(r, function, node_add(r, phrase, arguments));
}

/* Reads the letters after `I` in the order in which Swift mangles them; all are optional except that for the ownership of the callee, and
 * `_` at the end. `s`: the types are a pattern with its own signature and substitutions; `I`: the whole type is generic and has
 * substitutions. NULL if it is malformed. */
struct swift_node *impl_function(struct swift_reader *r)
{
    struct swift_node *function = node_new(r, N_IMPL_FUNCTION), *pattern = NULL, *signature = NULL, *invocation = NULL;
    if (reader_eat(r, 's')) {
        pattern = pop_substitutions(r);
        signature = reader_pop_kind(r, N_SIGNATURE);
        if (!pattern || !signature)
            return NULL;
    }
    if (reader_eat(r, 'I') && !(invocation = pop_substitutions(r)))
        return NULL;
    struct swift_node *generic = reader_pop_kind(r, N_SIGNATURE);
    if (generic)
        reader_eat(r, 'P'); /* pseudogeneric: not printed */
    if (reader_eat(r, 'e'))
        function = node_add(r, function, node_write(r, N_IMPL_ATTRIBUTE, "@escaping "));
    function = attribute(r, function, isolations);
    function = attribute(r, function, once);
    function = attribute(r, function, derivatives);
    const char *callee = eat_code(r, callees);
    if (!callee)
        return NULL;
    function = node_add(r, function, node_write(r, N_IMPL_ATTRIBUTE, callee));
    function = representation(r, function);
    function = attribute(r, function, coroutines);
    function = attribute(r, function, sendable);
    function = attribute(r, function, async);
    bool sending = reader_eat(r, 'T');
    if (generic)
        function = node_add(r, function, generic);
    if (pattern)
        function = node_add(r, node_add(r, function, node_write(r, N_IMPL_ATTRIBUTE, "@substituted ")), signature);
    function = parts(r, function);
    if (!function || !reader_eat(r, '_') || !pop_types(r, function))
        return NULL;
    function->index = sending; /* its result is printed as "sending" */
    if (pattern)
        function = substituted(r, function, pattern);
    if (invocation)
        function = substituted(r, function, invocation);
    return function;
}
