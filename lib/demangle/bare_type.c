#include "demangle/bare.h"

/* ---- templates ---- */
static bool literal(struct bare *p)
{
    struct piece ignored;
    char c = look(p, 1);
    p->at++;
    if (c == 'b') {
        char value = look(p, 1);
        p->at += value == '0' || value == '1' ? 2 : 0;
        return consume(p, 'E');
    }
    if (c && strchr("wcahstijlmxyno", c))
        p->at++;
    else if ((c != 'N' && c != 'S' && !sl_is_digit(c)) || !bare_type(p, &ignored))
        return false;
    consume(p, 'n');
    const char *digits = p->at;
    while (sl_is_digit(look(p, 0)))
        p->at++;
    return p->at > digits && consume(p, 'E');
}

/* `X name [arguments] E` and `X sr scope.. E name [arguments] E`, of all expressions. */
static bool expression(struct bare *p)
{
    struct sl_str ignored;
    bool scoped = look(p, 1) == 's' && look(p, 2) == 'r';
    p->at += scoped ? 3 : 1;
    if (!scoped && look(p, 0) == '0')
        return false;
    for (bool last = !scoped;;) {
        if (!source_name(p, &ignored) || (look(p, 0) == 'I' && !bare_arguments(p, false)))
            return false;
        bool ended = consume(p, 'E');
        if (last)
            return ended;
        last = ended;
    }
}

static bool argument(struct bare *p, struct piece *out)
{
    *out = (struct piece){.kind = UNKNOWN};
    if (look(p, 0) == 'L')
        return literal(p);
    if (look(p, 0) == 'X')
        return expression(p);
    if (look(p, 0) != 'J')
        return bare_type(p, out);
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
bool bare_arguments(struct bare *p, bool of_function)
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

static bool parameter(struct bare *p, struct piece *out)
{
    size_t index = 0;
    p->at++;
    if (sl_is_digit(look(p, 0))) {
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
static bool expansion(struct bare *p, struct piece *out)
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
        if (!bare_type(p, &pieces[i]) || p->pack_size < 0)
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
    bool added = bare_add_list(p, pieces, count);
    *out = from(p, at);
    return added;
}

/* ---- types ---- */
static const char *builtin(const struct bare *p, size_t *length)
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

static bool function_type(struct bare *p)
{
    struct piece ignored;
    p->at++;
    consume(p, 'Y');
    if (!bare_type(p, &ignored))
        return false;
    for (;;) {
        char c = look(p, 0);
        if ((c == 'R' || c == 'O') && look(p, 1) == 'E')
            p->at++;
        if (consume(p, 'E'))
            return true;
        if (!consume(p, 'v') && !bare_type(p, &ignored))
            return false;
    }
}

/* Functions, arrays and members: as a rule they stand where they are not shown, in arguments. */
static bool unshown_type(struct bare *p, struct piece *out)
{
    struct piece ignored;
    *out = (struct piece){.kind = UNKNOWN};
    switch (*p->at) {
    case 'F': return function_type(p);
    case 'M': p->at++; return bare_type(p, &ignored) && bare_type(p, &ignored);
    default:
        p->at++;
        while (sl_is_digit(look(p, 0)))
            p->at++;
        return consume(p, '_') && bare_type(p, &ignored);
    }
}

/* Which is no type that something could point to. */
static inline bool is_expansion(const struct bare *p)
{
    return look(p, 0) == 'D' && look(p, 1) == 'p';
}

static bool pointer_type(struct bare *p, struct piece *out)
{
    char sign = *p->at++;
    if (is_expansion(p) || !bare_type(p, out))
        return false;
    if (out->kind >= NOTHING)
        return true;
    out->base_size = 0;
    uint8_t was = out->kind;
    out->kind = (uint8_t)(sign == 'P' ? PLAIN : sign == 'R' ? LVALUE : RVALUE);
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

static bool qualified_type(struct bare *p, struct piece *out)
{
    uint8_t qualifiers;
    bare_read_qualifiers(p, &qualifiers);
    if (!qualifiers || look(p, 0) == 'D')
        return false;
    if (look(p, 0) == 'F')
        return unshown_type(p, out);
    if (is_expansion(p) || !bare_type(p, out))
        return false;
    if (out->kind < NOTHING)
        out->kind = PLAIN;
    out->base_size = 0;
    return bare_append_qualifiers(p, out, qualifiers);
}

/* A parameter or substitution, which may be a template. */
static bool known_type(struct bare *p, struct piece *out, bool *whole)
{
    bool is_substitution = *p->at == 'S';
    if (!(is_substitution ? bare_substitution(p, out) : parameter(p, out)))
        return false;
    *whole = is_substitution;
    if (p->no_arguments || look(p, 0) != 'I')
        return true;
    *whole = false;
    return bare_arguments(p, false) && bare_close_template(p, out);
}

static bool any_type(struct bare *p, struct piece *out)
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
    case 'D': good = is_expansion(p) && expansion(p, out); break;
    case 'T': good = (next == '_' || sl_is_digit(next)) && known_type(p, out, &known); break;
    case 'S': good = next == 't' ? bare_name(p, NULL, out) : known_type(p, out, &known); break;
    default: good = (c == 'N' || c == 'Z' || sl_is_digit(c)) && bare_name(p, NULL, out); break;
    }
    return good && (known || remember(p, out));
}

bool bare_type(struct bare *p, struct piece *out)
{
    if (p->depth == MAX_DEPTH || p->steps++ == MAX_STEPS)
        return false;
    p->depth++;
    bool good = any_type(p, out);
    p->depth--;
    return good;
}
