/* Prints Swift types in Swift syntax. */
#include "demangle/swift_print.h"

/* ---- generic parameters ---- */

/* Prints a generic parameter by its index: A ... Z, AB, BB, CB ... (the last digit first, as Swift's demangler does); its depth follows
 * unless it is 0. */
static void parameter(struct swift_printer *p, uint32_t depth, uint32_t index)
{
    do {
        char letter[2] = {(char)('A' + index % 26), '\0'};
        print_write(p, letter);
        index /= 26;
    } while (index);
    if (depth)
        print_number(p, depth);
}

/* Returns the node that makes a generic parameter a pack or a value; NULL if it is an ordinary type parameter. */
static const struct swift_node *marker(const struct swift_node *signature, uint32_t depth, uint32_t index)
{
    for (uint32_t i = 0; i < signature->count; i++) {
        const struct swift_node *child = signature->children[i], *subject = node_child(child, 0);
        if ((child->kind == N_PACK_MARKER || child->kind == N_VALUE_MARKER) && subject->kind == N_PARAMETER &&
            subject->depth == depth && subject->index == index)
            return child;
    }
    return NULL;
}

/* Prints the generic parameters of one depth. Markers tell which are packs, "each A", and which are values, "let A: Int". */
static void signature_level(struct swift_printer *p, const struct swift_node *signature, uint32_t depth)
{
    enum { MAX_SHOWN = 128 }; /* the count is a number in the name, so it may be huge */
    uint32_t count = signature->children[depth]->index;
    for (uint32_t i = 0; i < count && !p->failed; i++) {
        print_write(p, i ? ", " : "");
        if (i == MAX_SHOWN) {
            print_write(p, "...");
            return;
        }
        /* markers come after the parameter counts of all depths: none if this count is the last child */
        const struct swift_node *mark = signature->count > depth + 1 ? marker(signature, depth, i) : NULL;
        if (mark)
            print_write(p, mark->kind == N_PACK_MARKER ? "each " : "let ");
        parameter(p, depth, i);
        if (mark && mark->kind == N_VALUE_MARKER) {
            print_write(p, ": ");
            print_node(p, node_child(mark, 1));
        }
    }
}

/* Prints the generic parameters, those of each depth in brackets of their own: "<A><A1, B1>"; requirements are not shown. */
void print_signature(struct swift_printer *p, const struct swift_node *signature)
{
    print_write(p, "<");
    for (uint32_t i = 0; i < signature->count && signature->children[i]->kind == N_PARAMETER_COUNT; i++) {
        print_write(p, i ? "><" : "");
        signature_level(p, signature, i);
    }
    print_write(p, ">");
}

/* ---- functions ---- */

static const struct swift_node *without_signature(const struct swift_node *type)
{
    while (type && type->kind == N_GENERIC_TYPE)
        type = node_child(type, 1);
    return type;
}

bool print_is_function(const struct swift_node *type)
{
    type = without_signature(type);
    if (!type || type->kind != N_FUNCTION_TYPE)
        return false;
    return !type->text.size || sl_str_equal(type->text, SL_STR("@convention(c) ")) ||
           sl_str_equal(type->text, SL_STR("@convention(thin) "));
}

/* Prints an element of a tuple or parameter list, with its own label if `label`; "..." marks a variadic one (`index`). */
static void element(struct swift_printer *p, const struct swift_node *element, bool label)
{
    if (label && element->text.size) {
        print_text(p, element->text);
        print_write(p, ": ");
    }
    print_node(p, node_child(element, 0));
    print_write(p, element->index ? "..." : "");
}

/* Prints the parameters in brackets: a tuple, or the type of a single parameter. `labels` are the declaration's ("_" for a missing one);
 * without them the tuple's own labels are printed. */
static void parameters(struct swift_printer *p, const struct swift_node *tuple, const struct swift_node *labels)
{
    bool labelled = labels && labels->count;
    print_write(p, "(");
    if (tuple->kind != N_TUPLE)
        print_node(p, tuple);
    for (uint32_t i = 0; tuple->kind == N_TUPLE && i < tuple->count; i++) {
        const struct swift_node *label = labelled ? node_child(labels, i) : NULL;
        print_write(p, i ? ", " : "");
        if (labelled) {
            print_text(p, label && label->kind == N_IDENTIFIER ? label->text : SL_STR("_"));
            print_write(p, ": ");
        }
        element(p, tuple->children[i], !labelled);
    }
    print_write(p, ")");
}

/* Prints an effect that is written before the parameters of a function type: "@Sendable ", or a global actor, "@MainActor ". */
static void effect_before(struct swift_printer *p, const struct swift_node *effect)
{
    const struct swift_node *actor = node_child(effect, 0);
    if (actor) {
        print_write(p, "@");
        print_node(p, actor);
        print_write(p, " ");
    }
    print_text(p, effect->text);
}

static const struct swift_node *find_effect(const struct swift_node *function, enum effect effect)
{
    for (uint32_t i = 2; i < function->count; i++) /* the effects, after the parameters and the result */
        if (function->children[i]->index == effect)
            return function->children[i];
    return NULL;
}

/* Prints the part of a function type after the parameters: " async", " throws" and " -> Result". */
static void result(struct swift_printer *p, const struct swift_node *function)
{
    const struct swift_node *throws = find_effect(function, EFFECT_THROWS), *thrown = node_child(throws, 0);
    print_write(p, find_effect(function, EFFECT_ASYNC) ? " async" : "");
    print_write(p, thrown ? " throws(" : throws ? " throws" : "");
    print_node(p, thrown);
    print_write(p, thrown ? ")" : "");
    print_write(p, find_effect(function, EFFECT_SENDING) ? " -> sending " : " -> ");
    print_node(p, node_child(function, 1));
}

void print_function_type(struct swift_printer *p, const struct swift_node *type, const struct swift_node *labels,
                         const struct swift_node *arguments)
{
    if (arguments) {
        print_write(p, "<");
        print_list(p, arguments, 0, ", ");
        print_write(p, ">");
    }
    for (; type && type->kind == N_GENERIC_TYPE; type = node_child(type, 1))
        if (!arguments) /* else they are printed in the place of the signature */
            print_signature(p, node_child(type, 0));
    if (!type || type->kind != N_FUNCTION_TYPE) {
        print_node(p, type);
        return;
    }
    print_text(p, type->text);
    for (uint32_t i = 2; i < type->count; i++) /* the effects, which follow the children for parameters and result */
        if (type->children[i]->index >= EFFECT_BEFORE) /* those that are printed in front of the parameters */
            effect_before(p, type->children[i]);
    parameters(p, node_child(type, 0), labels);
    if (p->returns) /* the caller wants effects and results, too */
        result(p, type);
}

/* Prints a function type of SIL: "@escaping @callee_guaranteed (@in A) -> (@out B) for <C>"; `function->index` 1 = its results are
 * sending. `state` is the kind of the last child printed: where it changes, a bracket opens or closes. */
static void intermediate_function(struct swift_printer *p, const struct swift_node *function)
{
    enum node_kind state = N_IMPL_ATTRIBUTE;
    uint32_t i = 0;
    for (; i < function->count && function->children[i]->kind != N_LITERAL; i++) {
        const struct swift_node *child = function->children[i];
        /* a signature stands among the attributes, before the parameters */
        enum node_kind kind = child->kind == N_SIGNATURE ? N_IMPL_ATTRIBUTE : child->kind;
        if (state == kind && kind != N_IMPL_ATTRIBUTE)
            print_write(p, ", ");
        if (state == N_IMPL_ATTRIBUTE && kind != state)
            print_write(p, "(");
        if (state != N_IMPL_RESULT && kind == N_IMPL_RESULT)
            print_write(p, function->index ? ") -> sending (" : ") -> (");
        state = kind;
        print_text(p, child->text);
        if (child->kind == N_SIGNATURE) {
            print_signature(p, child);
            print_write(p, " ");
        } else {
            print_node(p, node_child(child, 0));
        }
    }
    if (state == N_IMPL_ATTRIBUTE) /* no parameters */
        print_write(p, "(");
    if (state != N_IMPL_RESULT) /* no results */
        print_write(p, function->index ? ") -> sending (" : ") -> (");
    print_write(p, ")");
    for (; i < function->count; i++) { /* " for <" and the types that replace the parameters of the signature */
        print_text(p, function->children[i]->text);
        print_list(p, node_child(function->children[i], 0), 0, ", ");
        print_write(p, ">");
    }
}

/* ---- syntactic sugar ---- */

/* True for the type of the standard library with this name. */
static bool is_standard(const struct swift_node *nominal, const char *name)
{
    const struct swift_node *module = node_child(nominal, 0), *identifier = node_child(nominal, 1);
    return module && module->kind == N_MODULE && sl_str_equal(module->text, SL_STR("Swift")) && identifier &&
           identifier->kind == N_IDENTIFIER && sl_str_equal(identifier->text, sl_str(name));
}

/* True if the printed type can be followed by `?` or `.Type` without parentheses. */
static bool is_simple(const struct swift_node *type)
{
    switch (type->kind) {
    case N_FUNCTION_TYPE:
    case N_IMPL_FUNCTION:
    case N_GENERIC_TYPE:
    case N_MARKED:
    case N_CONSTRAINED:
    case N_BOX: return false;
    case N_COMPOSITION: /* of one protocol or AnyObject, without a superclass: printed without "&" */
        return !node_child(type, 1) && node_child(type, 0)->count + type->index <= 1;
    default: return true;
    }
}

/* Prints a type, in parentheses if `?` or `.Type` could not follow it otherwise. */
static void with_parentheses(struct swift_printer *p, const struct swift_node *type)
{
    bool simple = is_simple(type);
    print_write(p, simple ? "" : "(");
    print_node(p, type);
    print_write(p, simple ? "" : ")");
}

static void bracketed(struct swift_printer *p, const struct swift_node *list)
{
    print_write(p, "[");
    print_list(p, list, 0, " : ");
    print_write(p, "]");
}

/* Prints a bound type, in short form if Swift has one: `A?`, `A!`, `[A]`, `[A : B]`. */
static void bound(struct swift_printer *p, const struct swift_node *type)
{
    const struct swift_node *nominal = node_child(type, 0), *arguments = node_child(type, 1);
    bool optional = arguments->count == 1 && is_standard(nominal, "Optional");
    bool unwrapped = arguments->count == 1 && is_standard(nominal, "ImplicitlyUnwrappedOptional");
    if (optional || unwrapped) {
        with_parentheses(p, arguments->children[0]);
        print_write(p, optional ? "?" : "!");
    } else if ((arguments->count == 1 && is_standard(nominal, "Array")) ||
               (arguments->count == 2 && is_standard(nominal, "Dictionary"))) {
        bracketed(p, arguments);
    } else if (nominal->kind == N_PROTOCOL) { /* an alias in a protocol, accessed through a conforming type */
        print_list(p, arguments, 0, ", ");
        print_write(p, " as ");
        print_node(p, nominal);
    } else {
        print_node(p, nominal);
        print_write(p, "<");
        print_list(p, arguments, 0, ", ");
        print_write(p, ">");
    }
}

/* Prints a type in its short form: `A?`, `(A)`, `[A]` or `[A : B]`; the node's text is the character that tells which. */
static void sugar(struct swift_printer *p, const struct swift_node *type)
{
    switch (type->text.data[0]) {
    case '?':
        with_parentheses(p, type->children[0]);
        print_write(p, "?");
        break;
    case '(':
        print_write(p, "(");
        print_node(p, type->children[0]);
        print_write(p, ")");
        break;
    default: bracketed(p, type);
    }
}

/* ---- other types ---- */

/* Prints a composition of protocols: "A & B", with AnyObject if only classes conform (`index`); "Any" if it is empty. */
static void swift_print_type_composition(struct swift_printer *p, const struct swift_node *type)
{
    const struct swift_node *protocols = node_child(type, 0), *superclass = node_child(type, 1);
    print_node(p, superclass);
    print_write(p, superclass && protocols->count ? " & " : "");
    print_list(p, protocols, 0, " & ");
    if (type->index)
        print_write(p, protocols->count ? " & Swift.AnyObject" : "Swift.AnyObject");
    else if (!superclass && !protocols->count)
        print_write(p, "Any");
}

/* Prints a metatype: its representation if given ("@thin "), then "T.Type", or "P.Protocol" for the metatype of an existential type `P`
 * itself. As in Swift's demangler, "A & B" gets parentheses in front of ".Protocol", but not in front of ".Type". */
static void swift_print_type_metatype(struct swift_printer *p, const struct swift_node *type)
{
    const struct swift_node *instance = node_child(type, 0);
    bool existential = instance->kind == N_COMPOSITION || instance->kind == N_EXISTENTIAL_METATYPE;
    print_text(p, type->text);
    if (type->kind == N_EXISTENTIAL_METATYPE)
        print_node(p, instance);
    else
        with_parentheses(p, instance);
    print_write(p, type->kind == N_METATYPE && existential ? ".Protocol" : ".Type");
}

/* Prints a tuple with its labels. */
static void tuple(struct swift_printer *p, const struct swift_node *type)
{
    print_write(p, "(");
    for (uint32_t i = 0; i < type->count; i++) {
        print_write(p, i ? ", " : "");
        element(p, type->children[i], true);
    }
    print_write(p, ")");
}

/* Prints a box of SIL: "<A> { let Int, var A } <String>". A field marked `inout` is mutable. */
static void box(struct swift_printer *p, const struct swift_node *type)
{
    const struct swift_node *fields = node_child(type, 0), *signature = node_child(type, 1),
                            *arguments = node_child(type, 2);
    if (signature) {
        print_signature(p, signature);
        print_write(p, " ");
    }
    print_write(p, "{");
    for (uint32_t i = 0; i < fields->count; i++) {
        const struct swift_node *field = fields->children[i];
        bool mutable = field->kind == N_MARKED && sl_str_equal(field->text, SL_STR("inout "));
        print_write(p, i ? ", " : " ");
        print_write(p, mutable ? "var " : "let ");
        print_node(p, mutable ? node_child(field, 0) : field);
    }
    print_write(p, " }");
    if (arguments) {
        print_write(p, " <");
        print_list(p, arguments, 0, ", ");
        print_write(p, ">");
    }
}

/* Prints a generic type: the signature, then the type; between them a blank, unless the type begins with a signature or a bracket. */
static void generic(struct swift_printer *p, const struct swift_node *type)
{
    const struct swift_node *inner = node_child(type, 1);
    print_signature(p, node_child(type, 0));
    bool plain = inner->kind == N_GENERIC_TYPE || (inner->kind == N_FUNCTION_TYPE && !inner->text.size);
    print_write(p, plain ? "" : " ");
    print_node(p, inner);
}

void print_type(struct swift_printer *p, const struct swift_node *type)
{
    switch (type->kind) {
    case N_BUILTIN:
    case N_INTEGER: print_text(p, type->text); break;
    case N_BUILTIN_OF:
        print_text(p, type->text);
        print_write(p, "<");
        print_list(p, node_child(type, 0), 0, ", ");
        print_write(p, ">");
        break;
    case N_BOUND: bound(p, type); break;
    case N_PARAMETER: parameter(p, type->depth, type->index); break;
    case N_SELF:
    case N_DYNAMIC_SELF: print_write(p, "Self"); break;
    case N_MEMBER: print_list(p, type, 0, "."); break;
    case N_GENERIC_TYPE: generic(p, type); break;
    case N_FUNCTION_TYPE: print_function_type(p, type, NULL, NULL); break;
    case N_IMPL_FUNCTION: intermediate_function(p, type); break;
    case N_TUPLE: tuple(p, type); break;
    case N_MARKED:
        print_text(p, type->text);
        print_node(p, node_child(type, 0));
        break;
    case N_METATYPE:
    case N_EXISTENTIAL_METATYPE: swift_print_type_metatype(p, type); break;
    case N_COMPOSITION: swift_print_type_composition(p, type); break;
    case N_CONSTRAINED:
        print_write(p, "any ");
        print_node(p, node_child(type, 0));
        print_write(p, "<");
        print_node(p, node_child(type, 1));
        print_write(p, ">");
        break;
    case N_OPAQUE_RESULT: print_write(p, "some"); break;
    case N_OPAQUE:
        print_node(p, node_child(type, 0));
        print_write(p, ".");
        print_number(p, type->index);
        break;
    case N_PACK:
        print_write(p, "Pack{");
        print_list(p, type, 0, ", ");
        print_write(p, "}");
        break;
    case N_SUGAR: sugar(p, type); break;
    case N_BOX: box(p, type); break;
    case N_ERROR: print_write(p, "<ERROR TYPE>"); break;
    default: p->failed = true;
    }
}
