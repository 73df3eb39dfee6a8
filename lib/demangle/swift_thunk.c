/* Code that the compiler derives from functions: thunks, specialisations, parts of coroutines. Functions return NULL or false if it is
 * malformed. Attributes are printed before their symbol; some have an empty text. */
#include "demangle/swift_tree.h"

static struct swift_node *attribute(struct swift_reader *r, const char *text)
{
    return node_write(r, N_ATTRIBUTE, text);
}

/* ---- specialisations ---- */

/* Reads what all specialisations begin with: optional flags (`q`, then `a` or `r`) and the digit of the compiler pass that made the
 * specialisation. Nothing of it is printed. False if the digit is missing. */
static bool special_info(struct swift_reader *r)
{
    reader_eat(r, 'q');
    if (!reader_eat(r, 'a'))
        reader_eat(r, 'r');
    char pass = reader_next(r);
    return pass >= '0' && pass <= '9';
}

/* Reads a specialisation for given type arguments; they are popped and not printed. */
static struct swift_node *generic_special(struct swift_reader *r)
{
    return special_info(r) && type_list(r) ? node_new(r, N_SPECIALIZED) : NULL;
}

/* Reads a specialisation for some of the type arguments, described by one type, which is popped and not printed. */
static struct swift_node *partial_special(struct swift_reader *r)
{
    return special_info(r) && reader_pop_type(r) ? node_new(r, N_SPECIALIZED) : NULL;
}

/* Reads a specialisation with dropped arguments, after a first `t`: the numbers of the arguments, each optional and separated by `t`, then
 * the letter of the kind of specialisation (g, G or B). */
static struct swift_node *dropping_special(struct swift_reader *r)
{
    uint32_t number;
    do {
        if (reader_peek(r) >= '0' && reader_peek(r) <= '9' && !reader_natural(r, &number))
            return NULL;
    } while (reader_eat(r, 't'));
    return reader_eat(r, 'g') || reader_eat(r, 'G') || reader_eat(r, 'B') ? generic_special(r) : NULL;
}

/* Kinds of operands that an argument's specialisation has on the stack: an identifier; the identifier of a closure and the types that it
 * captures; the identifier of a key path, its root and value type; a type. The kinds are collected in a buffer while the text is read,
 * because operands are popped in reverse order. */
enum { TAKES_NAME = 'n', TAKES_CLOSURE = 'c', TAKES_KEY_PATH = 'k', TAKES_TYPE = 't' };

/* Returns the character after the next one. */
static char look_ahead(const struct swift_reader *r)
{
    return r->at + 1 < r->text.size ? r->text.data[r->at + 1] : '\0';
}

/* Reads a constant by which the compiler replaced an argument (`first`), or, if that is a struct, the constant of one of its fields.
 * Appends the kinds (TAKES_...) of its operands on the stack to `takes`. False if no constant follows: malformed, or no more fields.
 *
 *     f          a function, g a global variable: an identifier on the stack. g is not read as a field of a struct
 *     i d        an integer, a floating-point number: its bits in decimal follow
 *     sb sw sc   a string in UTF-8, in UTF-16, of Objective-C: an identifier on the stack
 *     k          a key path
 *     S          a struct: its type is on the stack; the constants of its fields follow, which the caller reads */
static bool constant(struct swift_reader *r, struct sl_buf *takes, bool first)
{
    uint32_t number;
    char c = reader_peek(r), second = look_ahead(r);
    bool string = c == 's' && (second == 'b' || second == 'w' || second == 'c');
    if ((c == 'i' || c == 'd') && sl_is_digit(second)) {
        reader_next(r);
        return reader_natural(r, &number);
    }
    if (c == 'f' || string || (first && c == 'g')) {
        sl_buf_u8(takes, TAKES_NAME);
        r->at += string ? 2 : 1;
        return true;
    }
    if (c != 'k' && c != 'S')
        return false;
    sl_buf_u8(takes, c == 'k' ? TAKES_KEY_PATH : TAKES_TYPE);
    reader_next(r);
    return true;
}

/* Reads how one argument, or the result, is specialised, and appends the kinds (TAKES_...) of its operands on the stack to `takes`. Letters
 * without operands: n unchanged, x exploded into its fields, i box to value, s box on the stack, r inout to result, d dead, e existential
 * made generic (D: and dead), g owned to guaranteed, o guaranteed to owned; after d, e, g, o also G, O, X, which mean the same as g, o, x.
 * With operands: c, E a known closure; C the closure of an earlier argument, whose number follows; p a constant. */
static bool argument(struct swift_reader *r, struct sl_buf *takes)
{
    uint32_t number;
    switch (reader_next(r)) {
    case 'n':
    case 'x':
    case 'i':
    case 's':
    case 'r': return true;
    case 'c':
    case 'E': sl_buf_u8(takes, TAKES_CLOSURE); return true;
    case 'C': return reader_natural(r, &number);
    case 'p': {
        bool is_struct = reader_peek(r) == 'S', good = constant(r, takes, true);
        while (is_struct && constant(r, takes, false)) /* its fields, and those of structs in it */
            ;
        return good;
    }
    case 'e':
        reader_eat(r, 'D');
        /* fall through */
    case 'd':
        if (!reader_eat(r, 'G'))
            reader_eat(r, 'O');
        reader_eat(r, 'X');
        return true;
    case 'g':
    case 'o': reader_eat(r, 'X'); return true;
    default: return false;
    }
}

/* Pops the operands of a specialised argument, of the kind `what` (TAKES_...); false if they are not on the stack. */
static bool take_operands(struct swift_reader *r, char what)
{
    switch (what) {
    case TAKES_CLOSURE:
        while (reader_pop_type(r)) /* the types that it captures */
            ;
        return reader_pop_kind(r, N_IDENTIFIER);
    case TAKES_KEY_PATH: {
        bool value = reader_pop_type(r), root = reader_pop_type(r);
        return value && root && reader_pop_kind(r, N_IDENTIFIER);
    }
    case TAKES_TYPE: return reader_pop_type(r);
    default: return reader_pop_kind(r, N_IDENTIFIER);
    }
}

/* Reads a specialisation of a function's signature: how each argument is changed, `_`, how the result is changed. It is printed as the one
 * word "specialized". */
static struct swift_node *signature_special(struct swift_reader *r)
{
    struct sl_buf takes = {0};
    bool good = special_info(r);
    while (good && !reader_eat(r, '_'))
        good = argument(r, &takes);
    good = good && argument(r, &takes);         /* the result */
    for (size_t i = takes.size; good && i; i--) /* the last operand is on top of the stack */
        good = take_operands(r, (char)takes.data[i - 1]);
    good = good && !takes.failed;
    sl_buf_free(&takes);
    return good ? node_new(r, N_SPECIALIZED) : NULL;
}

/* ---- derivatives ---- */

/* Reads a letter: f forward-mode derivative, r reverse-mode derivative, d differential, p pullback; returns its text, NULL for others. */
static const char *derivative_kind(struct swift_reader *r, const char *const texts[4])
{
    static const char letters[] = "frdp";
    /* not at the end of the name, since strchr would find '\0' */
    const char *at = reader_peek(r) ? strchr(letters, reader_next(r)) : NULL;
    return at ? texts[at - letters] : NULL;
}

/* Reads a thunk that adapts a derivative to fewer parameters: kind, sets of parameters, of results, and of wanted parameters. The sets are
 * not printed. On the stack are a generic signature (optional, not printed), the derivative's type, and the function (optional; if it is
 * there it is printed instead of the type). */
static struct swift_node *subset_thunk(struct swift_reader *r)
{
    static const char *const texts[] = {
        "autodiff subset parameters thunk for forward-mode derivative from ",
        "autodiff subset parameters thunk for reverse-mode derivative from ",
        "autodiff subset parameters thunk for differential from ",
        "autodiff subset parameters thunk for pullback from ",
    };
    const char *text = derivative_kind(r, texts);
    /* each set ends with its letter: p parameters, r results, P wanted parameters */
    if (!text || !reader_subset(r, 'p') || !reader_subset(r, 'r') || !reader_subset(r, 'P'))
        return NULL;
    reader_pop_kind(r, N_SIGNATURE);
    struct swift_node *type = reader_pop_type(r), *original = type ? reader_pop_entity(r) : NULL;
    return node_phrase(r, text, original ? original : type, NULL, NULL);
}

/* Reads an operator of automatic differentiation, after `J`: S is a subset thunk, O a self-reordering thunk, V a vtable thunk, and any
 * other letter the derivative itself. The last two return an attribute, which is printed before the original function. A generic signature
 * on the stack is not printed. */
static struct swift_node *derivative(struct swift_reader *r)
{
    static const char *const plain[] = {"forward-mode derivative of ", "reverse-mode derivative of ",
                                        "differential of ", "pullback of "};
    static const char *const virtual[] = {"vtable thunk for forward-mode derivative of ",
                                          "vtable thunk for reverse-mode derivative of ",
                                          "vtable thunk for differential of ", "vtable thunk for pullback of "};
    static const char *const reordering[] = {
        "autodiff self-reordering reabstraction thunk for forward-mode derivative for ",
        "autodiff self-reordering reabstraction thunk for reverse-mode derivative for ",
        "autodiff self-reordering reabstraction thunk for differential for ",
        "autodiff self-reordering reabstraction thunk for pullback for "};
    if (reader_eat(r, 'S'))
        return subset_thunk(r);
    if (reader_eat(r, 'O')) {
        const char *text = derivative_kind(r, reordering);
        reader_pop_kind(r, N_SIGNATURE);
        /* of the two types on the stack the lower one is printed: the function that is called */
        return text && reader_pop_type(r) ? node_phrase(r, text, reader_pop_type(r), NULL, NULL) : NULL;
    }
    const char *text = derivative_kind(r, reader_eat(r, 'V') ? virtual : plain);
    reader_pop_kind(r, N_SIGNATURE);
    return text && reader_subset(r, 'p') && reader_subset(r, 'r') ? attribute(r, text) : NULL;
}

/* ---- thunks ---- */

/* Reads a thunk that calls a function of one type as one of another type. Returns "thunk for " and the type that is called, the lower of
 * the two on the stack. `self`: the type of a dynamic Self is on top of them; it is not printed, nor is a generic signature above it. */
static struct swift_node *reabstraction(struct swift_reader *r, bool self)
{
    reader_pop_kind(r, N_SIGNATURE);
    if ((self && !reader_pop_type(r)) || !reader_pop_type(r))
        return NULL;
    return node_phrase(r, "thunk for ", reader_pop_type(r), NULL, NULL);
}

/* Pops an actor's type and the thunk below it. Returns the thunk, " with global actor constraint " and the type. */
static struct swift_node *with_global_actor(struct swift_reader *r)
{
    struct swift_node *actor = reader_pop_type(r), *thunk = reader_pop_kind(r, N_PHRASE);
    return actor ? node_phrase(r, "", thunk, " with global actor constraint ", actor) : NULL;
}

/* Reads the block that Objective-C calls when an async function is done. Returns `text`, the block's type, " with result type " and the
 * function's result type. Flags in front, and a generic signature on the stack, are not printed. */
static struct swift_node *completion_handler(struct swift_reader *r, const char *text)
{
    uint32_t flags;
    if ((reader_peek(r) == '_' || sl_is_digit(reader_peek(r))) && !reader_index(r, &flags))
        return NULL;
    reader_pop_kind(r, N_SIGNATURE);
    struct swift_node *result = reader_pop_type(r);
    return result ? node_phrase(r, text, reader_pop_type(r), " with result type ", result) : NULL;
}

static struct swift_node *vtable_thunk(struct swift_reader *r)
{
    struct swift_node *base = reader_pop_entity(r);
    return base ? node_phrase(r, "vtable thunk for ", base, " dispatching to ", reader_pop_entity(r)) : NULL;
}

static struct swift_node *witness_thunk(struct swift_reader *r)
{
    struct swift_node *entity = reader_pop_entity(r);
    return entity ? node_phrase(r, "protocol witness for ", entity, " in conformance ", generic_conformance(r)) : NULL;
}

/* ---- key paths ---- */

/* Pops all types on top of the stack, as an N_LIST in the order of the text; NULL if there is none. */
static struct swift_node *pop_types(struct swift_reader *r)
{
    struct swift_node *types = node_new(r, N_LIST), *type;
    while (types && (type = reader_pop_type(r)))
        types = node_add(r, types, type);
    return types && types->count ? node_reverse(types, 0) : NULL;
}

/* Reads an accessor of a property in a key path: `q` if it is serialized; types, perhaps a generic signature, and the property are on the
 * stack. Returns `text`, the property, " : ", the signature, the types, and ", serialized" after `q`. */
static struct swift_node *key_path_accessor(struct swift_reader *r, const char *text)
{
    bool serialized = reader_eat(r, 'q');
    struct swift_node *types = pop_types(r), *signature = reader_pop_kind(r, N_SIGNATURE);
    struct swift_node *phrase =
        types ? node_phrase(r, text, reader_pop_entity(r), " : ", signature ? signature : types) : NULL;
    if (signature)
        phrase = node_add(r, phrase, types);
    return serialized ? node_add(r, phrase, node_write(r, N_LITERAL, ", serialized")) : phrase;
}

/* Reads the function that compares or hashes the indices of a key path's subscript. Returns `text`, the generic signature if there is one,
 * and the types of the indices in brackets: "key path index hash operator for <A>(A)"; then ", serialized" after a `q`. */
static struct swift_node *key_path_index(struct swift_reader *r, const char *text)
{
    bool serialized = reader_eat(r, 'q');
    struct swift_node *signature = reader_pop_kind(r, N_SIGNATURE), *types = pop_types(r);
    struct swift_node *phrase = signature ? node_phrase(r, text, signature, "(", types)
                                          : node_phrase(r, text, node_write(r, N_LITERAL, "("), "", types);
    return node_add(r, phrase, node_write(r, N_LITERAL, serialized ? "), serialized" : ")"));
}

/* Reads an accessor of a key path; without further letters it is the setter. */
static struct swift_node *key_path(struct swift_reader *r)
{
    if (reader_eat_text(r, "mu"))
        return key_path_accessor(r, "key path unapplied method for ");
    if (reader_eat_text(r, "MA"))
        return key_path_accessor(r, "key path applied method for ");
    return key_path_accessor(r, "key path setter for ");
}

/* ---- associated types ---- */

/* Returns `text` and "Type.Associated: Protocol". The three are on the stack, the protocol on top. Associated is a type, or a chain of
 * names "A.B"; a protocol below the popped one belongs to such a name: it declares the associated type. */
static struct swift_node *associated_conformance(struct swift_reader *r, const char *text)
{
    struct swift_node *required = reader_pop_protocol(r);
    if (!required)
        return NULL;
    bool is_type = node_is_type(reader_top(r)) && reader_top(r)->kind != N_PROTOCOL;
    struct swift_node *subject = is_type ? reader_pop_type(r) : generic_names(r);
    struct swift_node *phrase = subject ? node_phrase(r, text, reader_pop_type(r), ".", subject) : NULL;
    return node_add(r, node_add(r, phrase, node_write(r, N_LITERAL, ": ")), required);
}

static struct swift_node *base_conformance(struct swift_reader *r)
{
    struct swift_node *required = reader_pop_protocol(r);
    return required ? node_phrase(r, "base conformance descriptor for ", reader_pop_type(r), ": ", required) : NULL;
}

/* ---- parts of functions ---- */

/* Reads a constant that the compiler moved out of a function: its number, then `r` for a read-only object. Returns the attribute "outlined
 * variable #1 of " or "outlined read-only object #1 of ", which precedes the function. */
static struct swift_node *outlined_variable(struct swift_reader *r)
{
    uint32_t number;
    if (!reader_index(r, &number))
        return NULL;
    const char *what = reader_eat(r, 'r') ? "read-only object" : "variable";
    return node_format(r, N_ATTRIBUTE, "outlined %s #%u of ", what, number);
}

/* Reads a call of an Objective-C method that was moved out of functions: the kind of method (a, p, m), a letter for each parameter and the
 * result (n unchanged, b bridged, g guaranteed), and `_`. All these letters are printed as they are. */
static struct swift_node *bridged_method(struct swift_reader *r)
{
    size_t start = r->at;
    if (!reader_eat(r, 'a') && !reader_eat(r, 'p') && !reader_eat(r, 'm'))
        return NULL;
    while (reader_eat(r, 'n') || reader_eat(r, 'b') || reader_eat(r, 'g'))
        ;
    struct sl_str kinds = {r->text.data + start, r->at - start};
    if (!reader_eat(r, '_'))
        return NULL;
    return node_format(r, N_ATTRIBUTE, "outlined bridged method (" SL_STR_FMT ") of ", SL_STR_ARG(kinds));
}

/* Reads a part of an async function, from a suspension point on; it is printed like the function itself. */
static struct swift_node *resume(struct swift_reader *r)
{
    uint32_t number;
    return reader_index(r, &number) ? attribute(r, "") : NULL;
}

/* Reads the operators that begin with `Tw`, after these letters; NULL for an unknown one. */
static struct swift_node *w_operator(struct swift_reader *r)
{
    switch (reader_next(r)) {
    case 'B':
    case 'b': return attribute(r, ""); /* fallback for systems that lack the function */
    case 'S': return attribute(r, "#_hasSymbol query for ");
    case 'c': return attribute(r, "coro function pointer to ");
    case 'd': return attribute(r, "default override of ");
    default: return NULL;
    }
}

/* Returns the attribute of an operator without operands: the text before the symbol. It is empty for merged, distributed and dynamically
 * replaceable functions, which are printed like the original function. NULL: another operator. */
static const char *plain_attribute(char c)
{
    switch (c) {
    case 'A':
    case 'a': return "partial apply for ";
    case 'D': return "dynamic ";
    case 'E':
    case 'F':
    case 'I':
    case 'X':
    case 'm':
    case 'x': return "";
    case 'O': return "@nonobjc ";
    case 'c': return "curry thunk of ";
    case 'd': return "super ";
    case 'j': return "dispatch thunk of ";
    case 'o': return "@objc ";
    case 'q': return "method descriptor for ";
    case 'u': return "async function pointer to ";
    default: return NULL;
    }
}

/* Reads an operator that begins with `T`, after this letter; NULL for an unknown one. */
struct swift_node *thunk_operator(struct swift_reader *r)
{
    char c = reader_next(r);
    const char *text = plain_attribute(c);
    if (text)
        return attribute(r, text);
    switch (c) {
    case 'B':
    case 'G':
    case 'g':
    case 'i':
    case 's': return generic_special(r);
    case 'P':
    case 'p': return partial_special(r);
    case 't': return dropping_special(r);
    case 'f': return signature_special(r);
    case 'J': return derivative(r);
    case 'Q':
    case 'Y': return resume(r);
    case 'R':
    case 'r': return reabstraction(r, false);
    case 'y': return reabstraction(r, true);
    case 'U': return with_global_actor(r);
    case 'C': return node_phrase(r, "coroutine continuation prototype for ", reader_pop_type(r), NULL, NULL);
    case 'S': return node_phrase(r, "protocol self-conformance witness for ", reader_pop_entity(r), NULL, NULL);
    case 'V': return vtable_thunk(r);
    case 'W': return witness_thunk(r);
    case 'Z': return completion_handler(r, "predefined @objc completion handler block implementation for ");
    case 'z': return completion_handler(r, "@objc completion handler block implementation for ");
    case 'K': return key_path_accessor(r, "key path getter for ");
    case 'k': return key_path(r);
    case 'H': return key_path_index(r, "key path index equality operator for ");
    case 'h': return key_path_index(r, "key path index hash operator for ");
    case 'L': return node_phrase(r, "protocol requirements base descriptor for ", reader_pop_protocol(r), NULL, NULL);
    case 'M': return node_phrase(r, "default associated type metadata accessor for ", generic_name(r), NULL, NULL);
    case 'l': return node_phrase(r, "associated type descriptor for ", generic_name(r), NULL, NULL);
    case 'N': return associated_conformance(r, "default associated conformance accessor for ");
    case 'n': return associated_conformance(r, "associated conformance descriptor for ");
    case 'b': return base_conformance(r);
    case 'e': return bridged_method(r);
    case 'v': return outlined_variable(r);
    case 'w': return w_operator(r);
    default: return NULL;
    }
}
