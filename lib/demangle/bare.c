/* Names of C++ (Itanium C++ ABI, 5.1) without the arguments of templates, in one pass and without a tree. The text of a
 * type or a name only ever grows at its end - `foo`, `foo const`, `foo const&` - so a piece of a scratch text stands for
 * each, and one that is used again is copied. Rare constructs - expressions, thunks, pointers to functions that are
 * shown - are left to LLVM's demangler, which says the same of all others. */
#include "demangle/demangle.h"

enum {
    MAX_SCRATCH = 8 * 1024,
    MAX_SUBSTITUTIONS = 256,
    MAX_ARGUMENTS = 32,
    MAX_ELEMENTS = 16, /* of a pack */
    MAX_PARAMETERS = 24,
    MAX_DEPTH = 48,
    /* LLVM's text has up to two brackets more for every character, and must stay below 4096 bytes. */
    MAX_SHOWN = 1300,
};

enum kind {
    PLAIN,
    LVALUE,  /* a reference `&`, */
    RVALUE,  /* `&&` */
    SPECIAL, /* std::string and its like, std::basic_string before a constructor */
    NOTHING, /* a pack without elements */
    PACK,    /* an argument: `at` and `size` are of parser.elements */
    UNKNOWN, /* no text was made */
};

struct piece { /* of the scratch text */
    uint16_t at, size;
    uint16_t base, base_size; /* the class name in it, for its constructors; 0 = none */
    enum kind kind;
};

struct state { /* what the name of a function tells of the rest */
    bool no_result, arguments;
    uint8_t qualifiers;
    char reference;
};

struct parser {
    const char *at, *end;
    unsigned depth;
    bool visible;       /* template parameters are those of `arguments` */
    bool no_parameters; /* they come later: in conversion operators */
    bool no_arguments;  /* an `I` belongs to what is around the type */
    bool in_lambda;     /* parameters that are not visible are `auto` */
    int element;        /* of packs; < 0 = not in an expansion */
    int pack_size;      /* of those met in the expansion; < 0 = none */
    size_t used, substitution_count, argument_count, element_count;
    struct piece arguments[MAX_ARGUMENTS];
    struct piece elements[MAX_ARGUMENTS];
    struct piece substitutions[MAX_SUBSTITUTIONS];
    char text[MAX_SCRATCH];
};

static bool type(struct parser *p, struct piece *out);
static bool name(struct parser *p, struct state *state, struct piece *out);
static bool encoding(struct parser *p, struct piece *out);
static bool arguments(struct parser *p, bool of_function);

static inline char look(const struct parser *p, size_t ahead)
{
    return ahead < (size_t)(p->end - p->at) ? p->at[ahead] : '\0';
}

static inline bool consume(struct parser *p, char c)
{
    bool found = p->at < p->end && *p->at == c;
    p->at += found;
    return found;
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Up to seven digits. */
static bool number(struct parser *p, size_t *value)
{
    const char *start = p->at;
    for (*value = 0; is_digit(look(p, 0)); p->at++)
        *value = *value * 10 + (size_t)(*p->at - '0');
    return p->at > start && p->at - start <= 7;
}

/* ---- the scratch text ---- */
static inline bool add(struct parser *p, const char *text, size_t size)
{
    if (size > MAX_SCRATCH - p->used)
        return false;
    memcpy(p->text + p->used, text, size);
    p->used += size;
    return true;
}

#define ADD(p, text) add((p), (text), sizeof(text) - 1)

static inline struct piece from(const struct parser *p, size_t start)
{
    return (struct piece){.at = (uint16_t)start, .size = (uint16_t)(p->used - start)};
}

static inline bool add_piece(struct parser *p, const struct piece *piece)
{
    return piece->kind < NOTHING && add(p, p->text + piece->at, piece->size);
}

/* Makes the piece the end of the text. */
static inline bool reopen(struct parser *p, struct piece *piece)
{
    size_t start = p->used;
    if ((size_t)piece->at + piece->size == start)
        return true;
    if (!add_piece(p, piece))
        return false;
    piece->base = (uint16_t)(piece->base + start - piece->at);
    piece->at = (uint16_t)start;
    return true;
}

/* The piece and `size` bytes more; one without a text stays so. */
static inline bool append(struct parser *p, struct piece *piece, const char *text, size_t size)
{
    if (piece->kind >= NOTHING)
        return true;
    if (!reopen(p, piece) || !add(p, text, size))
        return false;
    piece->size = (uint16_t)(piece->size + size);
    return true;
}

static bool add_list(struct parser *p, const struct piece *pieces, size_t count)
{
    bool first = true;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].kind == NOTHING)
            continue;
        if ((!first && !ADD(p, ", ")) || !add_piece(p, &pieces[i]))
            return false;
        first = false;
    }
    return true;
}

static bool remember(struct parser *p, const struct piece *piece)
{
    if (p->substitution_count == MAX_SUBSTITUTIONS)
        return false;
    p->substitutions[p->substitution_count++] = *piece;
    return true;
}

/* ---- names ---- */

/* Begins another component behind `whole`, which may be empty. */
static bool separate(struct parser *p, struct piece *whole)
{
    if (!whole->size)
        *whole = from(p, p->used);
    else if (whole->kind >= NOTHING || !append(p, whole, "::", 2))
        return false;
    whole->kind = PLAIN;
    whole->base_size = 0;
    return true;
}

static bool source_name(struct parser *p, struct sl_str *out)
{
    static const char anonymous[] = "_GLOBAL__N";
    size_t size;
    if (!number(p, &size) || !size || size > (size_t)(p->end - p->at))
        return false;
    *out = (struct sl_str){p->at, size};
    p->at += size;
    if (size >= sizeof anonymous - 1 && out->data[0] == '_' && memcmp(out->data, anonymous, sizeof anonymous - 1) == 0)
        *out = SL_STR("(anonymous namespace)");
    return out->data[size - 1] != 'r' || !sl_str_ends(*out, SL_STR("operator"));
}

static bool operator_name(struct parser *p, struct state *state, struct piece *whole)
{
    static const char operators[][12] = {
        "aa&&",  "ad&", "an&",  "aN&=", "aS=",      "cl()", "cm,",  "co~",  "da delete[]", "de*",   "dl delete", "dv/",
        "dV/=",  "eo^", "eO^=", "eq==", "ge>=",     "gt>",  "ix[]", "le<=", "ls<<",        "lS<<=", "lt<",       "mi-",
        "mI-=",  "ml*", "mL*=", "mm--", "na new[]", "ne!=", "ng-",  "nt!",  "nw new",      "oo||",  "or|",       "oR|=",
        "pm->*", "pl+", "pL+=", "pp++", "ps+",      "pt->", "rm%",  "rM%=", "rs>>",        "rS>>=", "ss<=>",
    };
    char code[2] = {look(p, 0), look(p, 1)};
    struct piece to = {.size = 0};
    const char *sign = NULL;
    if (p->end - p->at < 2)
        return false;
    p->at += 2;
    if (memcmp(code, "cv", 2) == 0) {
        bool no_arguments = p->no_arguments, no_parameters = p->no_parameters;
        p->no_arguments = p->no_parameters = true;
        if (!type(p, &to))
            return false;
        p->no_arguments = no_arguments;
        p->no_parameters = no_parameters;
        if (state)
            state->no_result = true;
    }
    for (size_t i = 0; i < sizeof operators / sizeof *operators && !sign && !to.size; i++)
        if (memcmp(operators[i], code, 2) == 0)
            sign = operators[i] + 2;
    if ((!sign && !to.size) || !separate(p, whole) || !ADD(p, "operator"))
        return false;
    bool added = sign ? add(p, sign, strlen(sign)) : ADD(p, " ") && add_piece(p, &to);
    whole->size = (uint16_t)(p->used - whole->at);
    return added;
}

/* `[number] _` of lambdas and types without names: the first one has no number, the second one has 0. */
static bool add_ordinal(struct parser *p)
{
    char digits[16], *at = digits + sizeof digits;
    size_t ordinal = 1;
    if (is_digit(look(p, 0))) {
        if (!number(p, &ordinal))
            return false;
        ordinal += 2;
    }
    *--at = '}';
    for (; ordinal; ordinal /= 10)
        *--at = (char)('0' + ordinal % 10);
    *--at = '#';
    return consume(p, '_') && add(p, at, (size_t)(digits + sizeof digits - at));
}

static bool types_until_end(struct parser *p, struct piece *pieces, size_t *count)
{
    *count = 0;
    if (look(p, 0) == 'v' && look(p, 1) == 'E')
        p->at++;
    else
        do {
            if (*count == MAX_PARAMETERS || !type(p, &pieces[(*count)++]))
                return false;
        } while (look(p, 0) != 'E');
    return consume(p, 'E');
}

static bool unnamed(struct parser *p, struct state *state, struct piece *whole)
{
    struct piece parameters[MAX_PARAMETERS];
    size_t count = 0;
    bool lambda = look(p, 1) == 'l', in_lambda = p->in_lambda;
    if (!lambda && look(p, 1) != 't')
        return false;
    p->at += 2;
    if (state)
        p->visible = false;
    p->in_lambda = true;
    if (lambda && !types_until_end(p, parameters, &count))
        return false;
    p->in_lambda = in_lambda;
    bool added = separate(p, whole) && (lambda ? ADD(p, "{lambda(") && add_list(p, parameters, count) && ADD(p, ")")
                                               : ADD(p, "{unnamed type"));
    added = added && add_ordinal(p);
    whole->size = (uint16_t)(p->used - whole->at);
    return added;
}

static bool tags(struct parser *p, struct piece *whole)
{
    struct sl_str tag;
    while (consume(p, 'B'))
        if (!source_name(p, &tag) || !append(p, whole, "[abi:", 5) || !append(p, whole, tag.data, tag.size) ||
            !append(p, whole, "]", 1))
            return false;
    return true;
}

static bool component(struct parser *p, struct state *state, struct piece *whole)
{
    struct sl_str text;
    char c = look(p, 0);
    if (c == 'U')
        return unnamed(p, state, whole) && tags(p, whole);
    if (!is_digit(c))
        return operator_name(p, state, whole) && tags(p, whole);
    if (!source_name(p, &text) || !separate(p, whole))
        return false;
    whole->base = (uint16_t)p->used;
    whole->base_size = (uint16_t)text.size;
    return append(p, whole, text.data, text.size) && tags(p, whole);
}

/* A constructor or destructor, which has the name of its class. */
static bool structor(struct parser *p, struct state *state, struct piece *whole)
{
    bool destructor = look(p, 0) == 'D';
    char variant = look(p, 1);
    if (!variant || !strchr(destructor ? "01245" : "12345", variant) || !whole->base_size)
        return false;
    p->at += 2;
    struct piece base = {.at = whole->base, .size = whole->base_size};
    if (whole->kind == SPECIAL) {
        size_t start = p->used;
        if (!ADD(p, "std::basic_") || !add_piece(p, &base))
            return false;
        *whole = from(p, start);
        base = (struct piece){.at = (uint16_t)(start + 5), .size = (uint16_t)(whole->size - 5)};
    }
    if (!separate(p, whole) || (destructor && !append(p, whole, "~", 1)))
        return false;
    if (state)
        state->no_result = true;
    return append(p, whole, p->text + base.at, base.size) && tags(p, whole);
}

static bool substitution(struct parser *p, struct piece *out)
{
    static const char *const specials[26] = {
        ['a' - 'a'] = "std::allocator", ['b' - 'a'] = "std::basic_string", ['d' - 'a'] = "std::iostream",
        ['i' - 'a'] = "std::istream",   ['o' - 'a'] = "std::ostream",      ['s' - 'a'] = "std::string",
    };
    char c = look(p, 1);
    size_t index = 0;
    p->at += 2;
    if (c >= 'a' && c <= 'z') {
        const char *special = specials[c - 'a'];
        size_t start = p->used;
        if (!special || look(p, 0) == 'B' || !add(p, special, strlen(special)))
            return false;
        *out = from(p, start);
        out->kind = c == 'a' || c == 'b' ? PLAIN : SPECIAL;
        out->base = (uint16_t)(start + 5);
        out->base_size = (uint16_t)(out->size - 5);
        return true;
    }
    if (c != '_') {
        for (; is_digit(c) || (c >= 'A' && c <= 'Z'); c = *p->at++) {
            index = index * 36 + (size_t)(is_digit(c) ? c - '0' : c - 'A' + 10);
            if (index > MAX_SUBSTITUTIONS || p->at == p->end)
                return false;
        }
        index++;
        if (c != '_')
            return false;
    }
    if (index >= p->substitution_count)
        return false;
    *out = p->substitutions[index];
    return true;
}

/* Behind the arguments of the template `whole`. */
static bool close_template(struct parser *p, struct piece *whole)
{
    if (whole->kind == SPECIAL)
        whole->kind = PLAIN;
    bool sign = whole->size && whole->kind < NOTHING && p->text[whole->at + whole->size - 1] == '<';
    return !sign || append(p, whole, " ", 1); /* operator< */
}

static void read_qualifiers(struct parser *p, uint8_t *qualifiers)
{
    *qualifiers = 0;
    for (unsigned i = 0; i < 3; i++)
        *qualifiers |= (uint8_t)(consume(p, "rVK"[i]) << i);
}

static bool append_qualifiers(struct parser *p, struct piece *piece, uint8_t qualifiers)
{
    return (!(qualifiers & 4) || append(p, piece, " const", 6)) &&
           (!(qualifiers & 2) || append(p, piece, " volatile", 9)) &&
           (!(qualifiers & 1) || append(p, piece, " restrict", 9));
}

/* One more part of a nested name. */
static bool part(struct parser *p, struct state *state, struct piece *whole)
{
    consume(p, 'L');
    char c = look(p, 0), next = look(p, 1);
    if (c == 'S' && next != 't')
        return !whole->size && substitution(p, whole);
    if (c == 'I') {
        if (!whole->size || !arguments(p, state != NULL) || !close_template(p, whole))
            return false;
        if (state)
            state->arguments = true;
        return remember(p, whole);
    }
    bool named = c == 'C' || c == 'D' ? structor(p, state, whole) : component(p, state, whole);
    if (state)
        state->arguments = false;
    return named && remember(p, whole);
}

static bool nested_name(struct parser *p, struct state *state, struct piece *out)
{
    uint8_t qualifiers;
    char reference = '\0';
    p->at++;
    read_qualifiers(p, &qualifiers);
    if (look(p, 0) == 'O' || look(p, 0) == 'R')
        reference = *p->at++;
    if (state) {
        state->qualifiers = qualifiers;
        state->reference = reference;
    }
    *out = (struct piece){.size = 0};
    if (look(p, 0) == 'S' && look(p, 1) == 't') {
        p->at += 2;
        *out = from(p, p->used);
        if (!append(p, out, "std", 3))
            return false;
    }
    while (!consume(p, 'E'))
        if (p->at == p->end || !part(p, state, out))
            return false;
    if (!out->size || !p->substitution_count)
        return false;
    p->substitution_count--;
    return true;
}

static bool skip_discriminator(struct parser *p)
{
    if (look(p, 0) != '_')
        return !is_digit(look(p, 0));
    bool is_long = look(p, 1) == '_';
    p->at += is_long ? 2 : 1;
    if (!is_digit(look(p, 0)))
        return false;
    p->at++;
    while (is_long && is_digit(look(p, 0)))
        p->at++;
    return !is_long || consume(p, '_');
}

/* What is in a function. The template parameters of that have nothing to do with those around it. */
static bool local_name(struct parser *p, struct state *state, struct piece *out)
{
    struct piece inner, kept[MAX_ARGUMENTS];
    size_t kept_count = p->argument_count;
    bool visible = p->visible, in_lambda = p->in_lambda;
    memcpy(kept, p->arguments, kept_count * sizeof *kept);
    p->visible = p->in_lambda = false;
    p->at++;
    if (!encoding(p, out) || !consume(p, 'E') || look(p, 0) == 'd' || look(p, 0) == 's')
        return false;
    memcpy(p->arguments, kept, kept_count * sizeof *kept);
    p->argument_count = kept_count;
    p->visible = visible;
    p->in_lambda = in_lambda;
    if (!name(p, state, &inner) || !skip_discriminator(p) || inner.kind >= NOTHING || !separate(p, out))
        return false;
    return append(p, out, p->text + inner.at, inner.size);
}

static bool name(struct parser *p, struct state *state, struct piece *out)
{
    consume(p, 'L');
    char c = look(p, 0);
    bool again = c == 'S' && look(p, 1) != 't';
    if (c == 'N')
        return nested_name(p, state, out);
    if (c == 'Z')
        return local_name(p, state, out);
    if (again) {
        if (!substitution(p, out))
            return false;
    } else {
        *out = (struct piece){.size = 0};
        if (c == 'S') {
            p->at += 2;
            consume(p, 'L');
            *out = from(p, p->used);
            if (!append(p, out, "std", 3))
                return false;
        }
        if (!component(p, state, out))
            return false;
    }
    if (look(p, 0) != 'I')
        return !again;
    if ((!again && !remember(p, out)) || !arguments(p, state != NULL))
        return false;
    if (state)
        state->arguments = true;
    return close_template(p, out);
}

/* ---- templates ---- */
static bool literal(struct parser *p)
{
    struct piece ignored;
    char c = look(p, 1);
    p->at++;
    if (c && strchr("wbcahstijlmxyno", c))
        p->at++;
    else if ((c != 'N' && c != 'S' && !is_digit(c)) || !type(p, &ignored))
        return false;
    consume(p, 'n');
    const char *digits = p->at;
    while (is_digit(look(p, 0)))
        p->at++;
    return p->at > digits && consume(p, 'E');
}

static bool argument(struct parser *p, struct piece *out)
{
    *out = (struct piece){.kind = UNKNOWN};
    if (look(p, 0) == 'L')
        return literal(p);
    if (look(p, 0) != 'J')
        return type(p, out);
    struct piece elements[MAX_ELEMENTS];
    size_t count = 0;
    for (p->at++; !consume(p, 'E'); count++)
        if (count == MAX_ELEMENTS || p->depth == MAX_DEPTH || look(p, 0) == 'J' || !argument(p, &elements[count]))
            return false;
    if (count > MAX_ARGUMENTS - p->element_count)
        return false;
    *out = (struct piece){.at = (uint16_t)p->element_count, .size = (uint16_t)count, .kind = PACK};
    memcpy(p->elements + p->element_count, elements, count * sizeof *elements);
    p->element_count += count;
    return true;
}

/* Those of a function are what its type refers to. */
static bool arguments(struct parser *p, bool of_function)
{
    bool no_arguments = p->no_arguments;
    int element = p->element;
    p->no_arguments = false;
    p->element = -1;
    p->at++;
    if (of_function)
        p->argument_count = 0;
    while (!consume(p, 'E')) {
        struct piece one;
        size_t elements = p->element_count;
        p->visible &= !of_function;
        if (!argument(p, &one))
            return false;
        if (!of_function) {
            p->element_count = elements;
            continue;
        }
        p->visible = true;
        if (p->argument_count == MAX_ARGUMENTS)
            return false;
        p->arguments[p->argument_count++] = one;
    }
    p->visible |= of_function;
    p->no_arguments = no_arguments;
    p->element = element;
    return true;
}

static bool parameter(struct parser *p, struct piece *out)
{
    size_t index = 0;
    p->at++;
    if (is_digit(look(p, 0))) {
        if (!number(p, &index))
            return false;
        index++;
    }
    if (!consume(p, '_') || p->no_parameters)
        return false;
    if (!p->visible && p->in_lambda) {
        size_t start = p->used;
        bool added = ADD(p, "auto");
        *out = from(p, start);
        return added;
    }
    if (!p->visible || index >= p->argument_count)
        return false;
    *out = p->arguments[index];
    if (out->kind != PACK)
        return true;
    int size = out->size, first = out->at;
    *out = (struct piece){.kind = UNKNOWN};
    if (p->element < 0)
        return true;
    if (p->pack_size >= 0 && p->pack_size != size)
        return false;
    p->pack_size = size;
    if (p->element < size)
        *out = p->elements[first + p->element];
    return true;
}

/* `Dp type`: the type for each element of the pack in it. */
static bool expansion(struct parser *p, struct piece *out)
{
    struct piece pieces[MAX_ELEMENTS];
    const char *start = p->at += 2;
    size_t substitutions = p->substitution_count, count = 1;
    if (p->element >= 0)
        return false;
    p->pack_size = -1;
    for (size_t i = 0; i < count; i++) {
        p->at = start;
        p->substitution_count = substitutions;
        p->element = (int)i;
        if (!type(p, &pieces[i]) || p->pack_size < 0)
            return false;
        count = (size_t)p->pack_size;
    }
    p->element = -1;
    for (size_t i = substitutions; i < p->substitution_count; i++)
        p->substitutions[i] = (struct piece){.kind = UNKNOWN};
    *out = (struct piece){.kind = NOTHING};
    for (size_t i = 0; i < count; i++)
        if (pieces[i].kind >= NOTHING)
            out->kind = UNKNOWN;
    if (!count || out->kind == UNKNOWN)
        return true;
    size_t at = p->used;
    bool added = add_list(p, pieces, count);
    *out = from(p, at);
    return added;
}

/* ---- types ---- */
static const char *builtin(const struct parser *p, size_t *length)
{
    static const char *const names[26] = {
        ['v' - 'a'] = "void",        ['w' - 'a'] = "wchar_t",
        ['b' - 'a'] = "bool",        ['c' - 'a'] = "char",
        ['a' - 'a'] = "signed char", ['h' - 'a'] = "unsigned char",
        ['s' - 'a'] = "short",       ['t' - 'a'] = "unsigned short",
        ['i' - 'a'] = "int",         ['j' - 'a'] = "unsigned int",
        ['l' - 'a'] = "long",        ['m' - 'a'] = "unsigned long",
        ['x' - 'a'] = "long long",   ['y' - 'a'] = "unsigned long long",
        ['n' - 'a'] = "__int128",    ['o' - 'a'] = "unsigned __int128",
        ['f' - 'a'] = "float",       ['d' - 'a'] = "double",
        ['e' - 'a'] = "long double", ['g' - 'a'] = "__float128",
        ['z' - 'a'] = "...",
    };
    static const char *const more[26] = {
        ['a' - 'a'] = "auto",     ['c' - 'a'] = "decltype(auto)", ['n' - 'a'] = "std::nullptr_t",
        ['i' - 'a'] = "char32_t", ['s' - 'a'] = "char16_t",       ['u' - 'a'] = "char8_t",
    };
    char c = look(p, 0), next = look(p, 1);
    *length = c == 'D' ? 2 : 1;
    if (c == 'D')
        return next >= 'a' && next <= 'z' ? more[next - 'a'] : NULL;
    return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

static bool function_type(struct parser *p)
{
    struct piece ignored;
    p->at++;
    consume(p, 'Y');
    if (!type(p, &ignored))
        return false;
    for (;;) {
        char c = look(p, 0);
        if ((c == 'R' || c == 'O') && look(p, 1) == 'E')
            p->at++;
        if (consume(p, 'E'))
            return true;
        if (!consume(p, 'v') && !type(p, &ignored))
            return false;
    }
}

/* Functions, arrays and members: as a rule they stand where they are not shown, in arguments. */
static bool unshown_type(struct parser *p, struct piece *out)
{
    struct piece ignored;
    *out = (struct piece){.kind = UNKNOWN};
    switch (*p->at) {
    case 'F': return function_type(p);
    case 'M': p->at++; return type(p, &ignored) && type(p, &ignored);
    default:
        p->at++;
        while (is_digit(look(p, 0)))
            p->at++;
        return consume(p, '_') && type(p, &ignored);
    }
}

static bool pointer_type(struct parser *p, struct piece *out)
{
    char sign = *p->at++;
    if (!type(p, out))
        return false;
    if (out->kind >= NOTHING)
        return true;
    out->base_size = 0;
    enum kind was = out->kind;
    out->kind = sign == 'P' ? PLAIN : sign == 'R' ? LVALUE : RVALUE;
    if (sign == 'P')
        return append(p, out, "*", 1);
    if (was != LVALUE && was != RVALUE)
        return append(p, out, "&&", sign == 'R' ? 1 : 2);
    if (was == RVALUE && sign == 'R')
        out->size--;
    if (was == LVALUE)
        out->kind = LVALUE;
    return true;
}

static bool qualified_type(struct parser *p, struct piece *out)
{
    uint8_t qualifiers;
    read_qualifiers(p, &qualifiers);
    if (!qualifiers || look(p, 0) == 'D')
        return false;
    if (look(p, 0) == 'F')
        return unshown_type(p, out);
    if (!type(p, out))
        return false;
    if (out->kind < NOTHING)
        out->kind = PLAIN;
    out->base_size = 0;
    return append_qualifiers(p, out, qualifiers);
}

/* A parameter or substitution, which may be a template. */
static bool known_type(struct parser *p, struct piece *out, bool *whole)
{
    bool is_substitution = *p->at == 'S';
    if (!(is_substitution ? substitution(p, out) : parameter(p, out)))
        return false;
    *whole = is_substitution;
    if (p->no_arguments || look(p, 0) != 'I')
        return true;
    *whole = false;
    return arguments(p, false) && close_template(p, out);
}

static bool any_type(struct parser *p, struct piece *out)
{
    size_t length, start = p->used;
    const char *text = builtin(p, &length);
    bool known = false, good = false;
    if (text) {
        p->at += length;
        good = add(p, text, strlen(text));
        *out = from(p, start);
        return good;
    }
    char c = look(p, 0), next = look(p, 1);
    switch (c) {
    case 'r':
    case 'V':
    case 'K': good = qualified_type(p, out); break;
    case 'P':
    case 'R':
    case 'O': good = pointer_type(p, out); break;
    case 'F':
    case 'A':
    case 'M': good = unshown_type(p, out); break;
    case 'D': good = next == 'p' && expansion(p, out); break;
    case 'T': good = (next == '_' || is_digit(next)) && known_type(p, out, &known); break;
    case 'S': good = next == 't' ? name(p, NULL, out) : known_type(p, out, &known); break;
    default: good = (c == 'N' || c == 'Z' || is_digit(c)) && name(p, NULL, out); break;
    }
    return good && (known || remember(p, out));
}

static bool type(struct parser *p, struct piece *out)
{
    if (p->depth == MAX_DEPTH)
        return false;
    p->depth++;
    bool good = any_type(p, out);
    p->depth--;
    return good;
}

/* ---- functions ---- */
static bool at_end(const struct parser *p)
{
    return p->at == p->end || *p->at == 'E';
}

static bool add_function(struct parser *p, const struct state *state, const struct piece *result,
                         const struct piece *called, const struct piece *parameters, size_t count, struct piece *out)
{
    size_t start = p->used;
    if ((result->kind != UNKNOWN && (!add_piece(p, result) || !ADD(p, " "))) || !add_piece(p, called) || !ADD(p, "(") ||
        !add_list(p, parameters, count) || !ADD(p, ")"))
        return false;
    *out = from(p, start);
    size_t reference = state->reference == 'R' ? 1 : 2;
    return append_qualifiers(p, out, state->qualifiers) &&
           (!state->reference || (append(p, out, " ", 1) && append(p, out, "&&", reference)));
}

static bool encoding(struct parser *p, struct piece *out)
{
    struct state state = {.no_result = false};
    struct piece result = {.kind = UNKNOWN}, called, parameters[MAX_PARAMETERS];
    size_t count = 0;
    if (p->depth == MAX_DEPTH)
        return false;
    p->depth++;
    if (!name(p, &state, &called))
        return false;
    if (at_end(p)) {
        *out = called;
        out->base_size = 0;
    } else {
        if (!state.no_result && state.arguments && (!type(p, &result) || result.kind >= NOTHING))
            return false;
        if (!consume(p, 'v'))
            do {
                if (count == MAX_PARAMETERS || !type(p, &parameters[count++]))
                    return false;
            } while (!at_end(p));
        if (!add_function(p, &state, &result, &called, parameters, count, out))
            return false;
    }
    p->depth--;
    return true;
}

bool sl_demangle_bare(struct sl_str name, struct sl_buf *out)
{
    struct parser p;
    struct piece shown;
    if (name.size < 4 || name.size > 4096 || memcmp(name.data, "_Z", 2) != 0 || memchr(name.data, '<', name.size) ||
        memchr(name.data, '>', name.size))
        return false;
    /* the hashes of Rust and of some linkers */
    if ((name.size > 20 && memcmp(name.data + name.size - 20, "17h", 3) == 0) ||
        (name.size > 33 && name.data[name.size - 33] == '$'))
        return false;
    p.at = name.data + 2;
    p.end = name.data + name.size;
    p.depth = 0;
    p.visible = p.no_parameters = p.no_arguments = p.in_lambda = false;
    p.element = p.pack_size = -1;
    p.used = p.substitution_count = p.argument_count = p.element_count = 0;
    if (!encoding(&p, &shown) || p.at != p.end || shown.kind >= NOTHING || shown.size > MAX_SHOWN)
        return false;
    sl_buf_add(out, p.text + shown.at, shown.size);
    return true;
}
