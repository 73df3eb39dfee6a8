/* Declarations and symbols of Swift's mangling before Swift 4, which is prefix: an operator precedes its operands. Functions return NULL or
 * false if something is malformed or memory is short. */
#include "demangle/swift_old.h"

/* ---- names ---- */

/* Reads an identifier: [X][o fixity] size text. X: the text is Punycode; o: it is an operator, whose fixity is i infix, p prefix or P
 * postfix. */
struct swift_node *old_identifier(struct swift_reader *r)
{
    bool punycode = reader_eat(r, 'X');
    char fixity = reader_eat(r, 'o') ? reader_next(r) : 'n'; /* n: not an operator */
    uint32_t size;
    if (!reader_natural(r, &size))
        return NULL;
    struct sl_str text = reader_take(r, size);
    if (punycode && text.size)
        text = name_punycode(r, text);
    if (!text.size)
        return NULL;
    return fixity == 'n' ? node_text(r, N_IDENTIFIER, text) : name_operator(r, text, fixity);
}

/* Reads the name of a declaration: after P a private one, whose file identifier is not printed; after L a local one with its number. */
struct swift_node *old_name(struct swift_reader *r)
{
    uint32_t number;
    if (reader_eat(r, 'P'))
        return old_identifier(r) ? node_with_child(r, N_PRIVATE_NAME, old_identifier(r)) : NULL;
    if (!reader_eat(r, 'L'))
        return old_identifier(r);
    return reader_index(r, &number) ? node_add(r, node_number(r, N_LOCAL_NAME, number), old_identifier(r)) : NULL;
}

/* Reads what follows `S`: o and C the modules of imported C declarations, another letter a type of the standard library, a number and `_`
 * the index of a back reference. */
struct swift_node *old_substitution(struct swift_reader *r)
{
    static const struct {
        char code;
        enum node_kind kind;
        const char *name;
    } standard[] = {
        {'P', N_STRUCT, "UnsafePointer"},
        {'Q', N_ENUM, "ImplicitlyUnwrappedOptional"},
        {'R', N_STRUCT, "UnsafeBufferPointer"},
        {'S', N_STRUCT, "String"},
        {'V', N_STRUCT, "UnsafeRawPointer"},
        {'a', N_STRUCT, "Array"},
        {'b', N_STRUCT, "Bool"},
        {'c', N_STRUCT, "UnicodeScalar"},
        {'d', N_STRUCT, "Double"},
        {'f', N_STRUCT, "Float"},
        {'i', N_STRUCT, "Int"},
        {'p', N_STRUCT, "UnsafeMutablePointer"},
        {'q', N_ENUM, "Optional"},
        {'r', N_STRUCT, "UnsafeMutableBufferPointer"},
        {'u', N_STRUCT, "UInt"},
        {'v', N_STRUCT, "UnsafeMutableRawPointer"},
    };
    uint32_t number;
    if (reader_eat(r, 'o'))
        return node_write(r, N_MODULE, "__C");
    if (reader_eat(r, 'C'))
        return node_write(r, N_MODULE, "__C_Synthesized");
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++)
        if (reader_eat(r, standard[i].code))
            return node_standard(r, standard[i].kind, standard[i].name);
    return reader_index(r, &number) ? node_child(r->substitutions, number) : NULL;
}

/* ---- contexts ---- */

static struct swift_node *entity(struct swift_reader *r);

/* Reads a module: s is Swift, S a back reference; else an identifier, to which later back references may refer. */
static struct swift_node *module(struct swift_reader *r)
{
    struct swift_node *node = NULL, *name;
    if (reader_eat(r, 's'))
        return node_write(r, N_MODULE, "Swift");
    if (reader_eat(r, 'S')) {
        node = old_substitution(r);
        return node && node->kind == N_MODULE ? node : NULL;
    }
    name = old_identifier(r);
    return name ? reader_substitutable(r, node_text(r, N_MODULE, name->text)) : NULL;
}

/* Reads an extension after its `E` or `e`: the module that extends a type (not printed), the signature if it is constrained, and the
 * extended type. */
static struct swift_node *extension(struct swift_reader *r, bool constrained)
{
    struct swift_node *signature = NULL;
    if (!module(r) || (constrained && !(signature = old_signature(r))))
        return NULL;
    return node_put(r, node_with_child(r, N_EXTENSION, old_context(r)), signature);
}

/* Reads a context: E and e an extension (e: constrained), S a back reference, G a type with generic arguments; the letters of entity() a
 * declaration; else a module. */
static struct swift_node *context(struct swift_reader *r)
{
    struct swift_node *node;
    switch (reader_peek(r)) {
    case 'E': reader_next(r); return extension(r, false);
    case 'e': reader_next(r); return extension(r, true);
    case 'S':
        reader_next(r);
        node = old_substitution(r);
        return node_is_context(node) ? node : NULL;
    case 'G': reader_next(r); return old_bound(r);
    case 'C':
    case 'F':
    case 'I':
    case 'O':
    case 'P':
    case 'V':
    case 'Z':
    case 'v': return entity(r);
    default: return module(r);
    }
}

/* Reads a context, with the nesting limited: contexts may be nested in each other. */
struct swift_node *old_context(struct swift_reader *r)
{
    struct swift_node *node = old_enter(r) ? context(r) : NULL;
    old_leave(r);
    return node;
}

/* Reads a name and makes a declaration of this kind in the context `place`; back references may refer to it. */
static struct swift_node *declared_in(struct swift_reader *r, enum node_kind kind, struct swift_node *place)
{
    struct swift_node *name = place ? old_name(r) : NULL;
    return name ? reader_substitutable(r, node_entity(r, kind, place, name, NULL, NULL)) : NULL;
}

struct swift_node *old_declared(struct swift_reader *r, enum node_kind kind)
{
    return declared_in(r, kind, old_context(r));
}

/* Reads a protocol: after s one of the module Swift; after S a back reference to the protocol, or to its module and then the protocol's
 * name; else a context and a name. */
struct swift_node *old_protocol(struct swift_reader *r)
{
    struct swift_node *node;
    if (reader_eat(r, 's'))
        return declared_in(r, N_PROTOCOL, node_write(r, N_MODULE, "Swift"));
    if (!reader_eat(r, 'S'))
        return old_declared(r, N_PROTOCOL);
    node = old_substitution(r);
    if (node && node->kind == N_MODULE)
        return declared_in(r, N_PROTOCOL, node);
    return node && node->kind == N_PROTOCOL ? node : NULL;
}

/* Reads a conformance: type, protocol, and the module that declares it. Only the type is printed, so this is returned. */
struct swift_node *old_conformance(struct swift_reader *r)
{
    struct swift_node *type = old_type(r);
    return type && old_protocol(r) && old_context(r) ? type : NULL;
}

/* ---- declarations ---- */

/* Makes the code that belongs to the declaration `place`. `index`: for N_PART_OF and N_CLOSURE a number to print after `text` (NO_INDEX:
 * none), for N_INIT 1 = allocating, for N_DEINIT 1 = only that of a class is printed with `text`, others as "deinit". */
static struct swift_node *swift_old_part(struct swift_reader *r, struct swift_node *place, enum node_kind kind,
                                         const char *text, uint32_t index)
{
    struct swift_node *node = node_entity(r, kind, place, NULL, NULL, NULL);
    if (node) {
        node->text = sl_str(text);
        node->index = index;
    }
    return node;
}

/* Reads a type and sets it as that of `node`, an entity that was made without one. Returns `node`. */
static struct swift_node *typed(struct swift_reader *r, struct swift_node *node)
{
    struct swift_node *type = node ? old_type(r) : NULL;
    if (!type)
        return NULL;
    node->children[3] = type; /* 3: the place of its type, after context, name and labels */
    return node;
}

/* Reads the number and type of a closure in `place`; `text` is "closure #" or "implicit closure #". */
static struct swift_node *closure(struct swift_reader *r, struct swift_node *place, const char *text)
{
    uint32_t number;
    return reader_index(r, &number) ? typed(r, swift_old_part(r, place, N_CLOSURE, text, number)) : NULL;
}

/* Reads what follows `I` and the declaration `place`: A and a number, a default argument; i, the initial value of a variable. */
static struct swift_node *initializer(struct swift_reader *r, struct swift_node *place)
{
    uint32_t number;
    if (reader_eat(r, 'A'))
        return reader_index(r, &number) ? swift_old_part(r, place, N_PART_OF, "default argument ", number) : NULL;
    return reader_eat(r, 'i') ? swift_old_part(r, place, N_PART_OF, "variable initialization expression", NO_INDEX)
                              : NULL;
}

/* Reads name and type of a variable, subscript or function in `place`. A variable named "subscript" is a subscript: their accessors are
 * mangled with that name. */
static struct swift_node *storage(struct swift_reader *r, struct swift_node *place, enum node_kind kind)
{
    struct swift_node *name = old_name(r);
    if (!name)
        return NULL;
    bool subscript = name->kind == N_IDENTIFIER && sl_str_equal(name->text, SL_STR("subscript"));
    if (subscript && kind != N_FUNCTION)
        kind = N_SUBSCRIPT;
    return typed(r, node_entity(r, kind, place, kind == N_SUBSCRIPT ? NULL : name, NULL, NULL));
}

/* Reads the variable or subscript of an accessor in `place`; `text` is the kind of accessor, "getter". */
static struct swift_node *accessor(struct swift_reader *r, struct swift_node *place, const char *text)
{
    return node_add(r, node_write(r, N_ACCESSOR, text), storage(r, place, N_VARIABLE));
}

/* Reads what follows `F` and the context `place`: an accessor, an initialiser (C allocating, c not), a deinitialiser, a closure, or a
 * function. The number of a deinitialiser is 1 if only that of a class is printed with its text. */
static struct swift_node *function(struct swift_reader *r, struct swift_node *place)
{
    static const struct {
        const char *code, *text;
    } accessors[] = {
        {"aO", "owningMutableAddressor"},
        {"ao", "nativeOwningMutableAddressor"},
        {"ap", "nativePinningMutableAddressor"},
        {"au", "unsafeMutableAddressor"},
        {"lO", "owningAddressor"},
        {"lo", "nativeOwningAddressor"},
        {"lp", "nativePinningAddressor"},
        {"lu", "unsafeAddressor"},
        {"G", "getter"},
        {"M", "modify"},
        {"W", "didset"},
        {"g", "getter"},
        {"m", "materializeForSet"},
        {"r", "read"},
        {"s", "setter"},
        {"w", "willset"},
    };
    for (size_t i = 0; i < sizeof accessors / sizeof *accessors; i++)
        if (reader_eat_text(r, accessors[i].code))
            return accessor(r, place, accessors[i].text);
    if (reader_eat(r, 'C'))
        return typed(r, swift_old_part(r, place, N_INIT, "", 1));
    if (reader_eat(r, 'c'))
        return typed(r, swift_old_part(r, place, N_INIT, "", 0));
    if (reader_eat(r, 'D'))
        return swift_old_part(r, place, N_DEINIT, "__deallocating_deinit", 1);
    if (reader_eat(r, 'Z'))
        return swift_old_part(r, place, N_DEINIT, "__isolated_deallocating_deinit", 1);
    if (reader_eat(r, 'd'))
        return swift_old_part(r, place, N_DEINIT, "deinit", 0);
    if (reader_eat(r, 'E'))
        return swift_old_part(r, place, N_DEINIT, "__ivar_destroyer", 0);
    if (reader_eat(r, 'e'))
        return swift_old_part(r, place, N_DEINIT, "__ivar_initializer", 0);
    if (reader_eat(r, 'U'))
        return closure(r, place, "closure #");
    if (reader_eat(r, 'u'))
        return closure(r, place, "implicit closure #");
    return storage(r, place, N_FUNCTION);
}

/* Reads a declaration, after Z a static one: F function, v variable, I initial value or default argument, i subscript, C class, O enum, V
 * struct, P protocol. */
static struct swift_node *entity(struct swift_reader *r)
{
    bool is_static = reader_eat(r, 'Z');
    char kind = reader_peek(r);
    struct swift_node *node, *place;
    if (kind != 'F' && kind != 'v' && kind != 'I' && kind != 'i') {
        if (kind != 'C' && kind != 'O' && kind != 'V' && kind != 'P')
            return NULL;
        reader_next(r);
        return old_declared(r, kind == 'C' ? N_CLASS : kind == 'O' ? N_ENUM : kind == 'V' ? N_STRUCT : N_PROTOCOL);
    }
    reader_next(r);
    place = old_context(r);
    if (!place)
        return NULL;
    node = kind == 'F'   ? function(r, place)
           : kind == 'I' ? initializer(r, place)
                         : storage(r, place, kind == 'v' ? N_VARIABLE : N_SUBSCRIPT);
    return is_static ? node_with_child(r, N_STATIC, node) : node;
}

/* ---- specialisations ---- */

/* Skips the text up to the next underscore, and the underscore; false if there is none. */
static bool until_mark(struct swift_reader *r)
{
    while (r->at < r->text.size)
        if (reader_next(r) == '_')
            return true;
    return false;
}

/* Reads a constant that replaces an argument, which is not printed:
 *
 *     fr NAME _            a function
 *     g NAME _             a global variable
 *     i DIGITS _           an integer
 *     fl DIGITS _          a floating-point number
 *     se NUMBER v NAME _   a string: its encoding and its text (a hash if it is long) */
static bool constant(struct swift_reader *r)
{
    uint32_t encoding;
    if (reader_eat_text(r, "fr") || reader_eat(r, 'g'))
        return old_identifier(r) && reader_eat(r, '_');
    if (reader_eat(r, 'i') || reader_eat_text(r, "fl"))
        return until_mark(r);
    return reader_eat_text(r, "se") && reader_natural(r, &encoding) && reader_eat(r, 'v') && old_identifier(r) &&
           reader_eat(r, '_');
}

/* Reads a closure that replaces an argument: its name, and the types that it captures up to `_`. False if it is malformed. */
static bool closure_argument(struct swift_reader *r)
{
    if (!old_identifier(r))
        return false;
    while (!reader_eat(r, '_'))
        if (!old_type(r))
            return false;
    return true;
}

/* Reads how one argument of a function is specialised, which is not printed: n unchanged, i box to value, k box on the stack, r inout to
 * result, cl a closure, cp a constant; or flags: d dead, g owned to guaranteed, o guaranteed to owned, s exploded into its fields. Each
 * ends with `_`. False if it is malformed. */
static bool special_argument(struct swift_reader *r)
{
    static const char *const plain[] = {"n_", "i_", "k_", "r_"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (reader_eat_text(r, plain[i]))
            return true;
    if (reader_eat_text(r, "cl"))
        return closure_argument(r);
    if (reader_eat_text(r, "cp"))
        return constant(r);
    size_t start = r->at;
    reader_eat(r, 'd');
    if (!reader_eat(r, 'g'))
        reader_eat(r, 'o');
    reader_eat(r, 's');
    return r->at > start && reader_eat(r, '_');
}

/* Reads a type argument of a specialisation, and its conformances up to `_`; they are not printed. False if they are malformed. */
static bool special_type(struct swift_reader *r)
{
    if (!old_type(r))
        return false;
    while (!reader_eat(r, '_'))
        if (!old_conformance(r))
            return false;
    return true;
}

/* Checks a specialisation after `TS`: g or r for given type arguments, f for a changed signature; q if it is serialized; the digit of the
 * compiler pass; and the arguments up to `_`. False if it is malformed. Back references of the symbol after it do not count what was read
 * here. */
static bool special(struct swift_reader *r)
{
    bool generic = reader_eat(r, 'g') || reader_eat(r, 'r');
    if (!generic && !reader_eat(r, 'f'))
        return false;
    reader_eat(r, 'q');
    char pass = reader_next(r);
    if (pass < '0' || pass > '9')
        return false;
    while (!reader_eat(r, '_'))
        if (!(generic ? special_type(r) : special_argument(r)))
            return false;
    r->substitutions->count = 0;
    return true;
}

/* ---- symbols ---- */

/* Makes a symbol that is printed as `text` and `subject`. */
static struct swift_node *say(struct swift_reader *r, const char *text, struct swift_node *subject)
{
    return node_phrase(r, text, subject, NULL, NULL);
}

/* Reads a symbol of type metadata; without a letter it is the metadata itself. */
static struct swift_node *metadata(struct swift_reader *r)
{
    switch (reader_peek(r)) {
    case 'L': reader_next(r); return say(r, "lazy cache variable for type metadata for ", old_type(r));
    case 'P': reader_next(r); return say(r, "generic type metadata pattern for ", old_type(r));
    case 'a': reader_next(r); return say(r, "type metadata accessor for ", old_type(r));
    case 'f': reader_next(r); return say(r, "full type metadata for ", old_type(r));
    case 'm': reader_next(r); return say(r, "metaclass for ", old_type(r));
    case 'n': reader_next(r); return say(r, "nominal type descriptor for ", old_type(r));
    case 'p': reader_next(r); return say(r, "protocol descriptor for ", old_protocol(r));
    default: return say(r, "type metadata for ", old_type(r));
    }
}

/* Reads a two-letter code and a type; makes "destroy for Type": a function that copies, moves or destroys values of the type. */
static struct swift_node *value_witness(struct swift_reader *r)
{
    char first = reader_next(r);
    const char *name = global_value_witness_name(first, reader_next(r));
    return name ? say(r, name, say(r, " for ", old_type(r))) : NULL;
}

/* Reads a type A and a conformance of a type B; makes "<text>A and conformance B". */
static struct swift_node *lazy_table(struct swift_reader *r, const char *text)
{
    struct swift_node *type = old_type(r);
    return type ? node_phrase(r, text, type, " and conformance ", old_conformance(r)) : NULL;
}

/* Reads a conformance of a type, and the name of an associated type. Makes `text` and "Name in Type" or, with `table`, which has a
 * protocol, "Name : Protocol in Type". */
static struct swift_node *associated(struct swift_reader *r, const char *text, bool table)
{
    struct swift_node *conforming = old_conformance(r), *name = conforming ? old_name(r) : NULL, *protocol = NULL;
    if (!name || (table && !(protocol = old_protocol(r))))
        return NULL;
    if (!protocol)
        return node_phrase(r, text, name, " in ", conforming);
    return node_phrase(r, text, node_phrase(r, "", name, " : ", protocol), " in ", conforming);
}

/* Reads d (direct) or i (indirect) and a field; makes the symbol of its offset. */
static struct swift_node *field_offset(struct swift_reader *r)
{
    bool direct = reader_eat(r, 'd');
    if (!direct && !reader_eat(r, 'i'))
        return NULL;
    return say(r, direct ? "direct field offset for " : "indirect field offset for ", entity(r));
}

/* Reads the letter after `W` and its operands: a symbol of witness tables or, after v, of a field's offset. */
static struct swift_node *witness(struct swift_reader *r)
{
    switch (reader_next(r)) {
    case 'G': return say(r, "generic protocol witness table for ", old_conformance(r));
    case 'I': return say(r, "instantiation function for generic protocol witness table for ", old_conformance(r));
    case 'L': return lazy_table(r, "lazy protocol witness table cache variable for type ");
    case 'P': return say(r, "protocol witness table for ", old_conformance(r));
    case 'T': return associated(r, "associated type witness table accessor for ", true);
    case 'V': return say(r, "value witness table for ", old_type(r));
    case 'a': return say(r, "protocol witness table accessor for ", old_conformance(r));
    case 'l': return lazy_table(r, "lazy protocol witness table accessor for type ");
    case 't': return associated(r, "associated type metadata accessor for ", false);
    case 'v': return field_offset(r);
    default: return NULL;
    }
}

/* Reads a thunk that adapts one function type to another: after G a generic signature, then both types. Makes "thunk for " and the second
 * type. */
static struct swift_node *reabstraction(struct swift_reader *r)
{
    bool good = !reader_eat(r, 'G') || old_signature(r);
    return good && old_type(r) ? say(r, "thunk for ", old_type(r)) : NULL;
}

/* Reads what follows `T`: R or r a thunk between function types, W a function that implements a requirement of a protocol. */
static struct swift_node *thunk(struct swift_reader *r)
{
    if (reader_eat(r, 'R') || reader_eat(r, 'r'))
        return reabstraction(r);
    struct swift_node *conforming = reader_eat(r, 'W') ? old_conformance(r) : NULL;
    return conforming ? node_phrase(r, "protocol witness for ", entity(r), " in conformance ", conforming) : NULL;
}

static struct swift_node *global(struct swift_reader *r);

/* Reads a partial application after `PA`: a closure that calls the symbol mangled after `__T`. */
static struct swift_node *forwarder(struct swift_reader *r)
{
    reader_eat(r, 'o'); /* of Objective-C; printed alike */
    if (!reader_eat_text(r, "__T"))
        return NULL;
    struct swift_node *forwarded = old_enter(r) ? global(r) : NULL;
    old_leave(r);
    return forwarded ? say(r, "partial apply for ", forwarded) : NULL;
}

/* Reads a symbol: PA partial application, M metadata, T thunk, W witness table, t type, w value witness, else a declaration. */
static struct swift_node *global(struct swift_reader *r)
{
    if (reader_eat_text(r, "PA"))
        return forwarder(r);
    if (reader_eat(r, 'M'))
        return metadata(r);
    if (reader_eat(r, 'T'))
        return thunk(r);
    if (reader_eat(r, 'W'))
        return witness(r);
    if (reader_eat(r, 't'))
        return old_type(r);
    return reader_eat(r, 'w') ? value_witness(r) : entity(r);
}

static const struct {
    const char *code, *text;
} attributes[] = {
    {"TD", "dynamic "}, {"TO", "@nonobjc "}, {"TV", "override "}, {"Td", "super "}, {"To", "@objc "},
};

/* True at a suffix that tools have appended, or at the end. */
static bool is_suffix(const struct swift_reader *r)
{
    char c = reader_peek(r);
    return r->at == r->text.size || c == '.' || c == '_' || (c >= '0' && c <= '9');
}

/* Reads a whole symbol after its prefix `_T`: specializations (TS, several joined by _TTS, then _T), one attribute, and the symbol itself.
 * NULL if it is malformed, or if something other than a suffix of tools follows. */
struct swift_node *swift_read_old(struct swift_reader *r)
{
    struct swift_node *symbol = node_new(r, N_LIST);
    if (reader_eat_text(r, "TS")) {
        symbol = node_add(r, symbol, node_new(r, N_SPECIALIZED));
        do {
            if (!special(r))
                return NULL;
        } while (reader_eat_text(r, "_TTS"));
        if (!reader_eat_text(r, "_T"))
            return NULL;
    }
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (reader_eat_text(r, attributes[i].code)) {
            symbol = node_add(r, symbol, node_write(r, N_ATTRIBUTE, attributes[i].text));
            break;
        }
    symbol = node_add(r, symbol, global(r));
    return is_suffix(r) ? symbol : NULL;
}
