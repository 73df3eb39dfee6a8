#include "demangle/bare.h"

/* Begins another component behind `whole`, which may be empty. */
static bool separate(struct bare *p, struct piece *whole)
{
    if (!whole->size)
        *whole = from(p, p->used);
    else if (whole->kind >= NOTHING || !append(p, whole, "::", 2))
        return false;
    whole->kind = PLAIN;
    whole->base_size = 0;
    return true;
}

static bool operator_name(struct bare *p, struct state *state, struct piece *whole)
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
    if (!code[0] || !code[1])
        return false;
    p->at += 2;
    if (memcmp(code, "cv", 2) == 0) {
        bool no_arguments = p->no_arguments, no_parameters = p->no_parameters;
        p->no_arguments = p->no_parameters = true;
        if (!bare_type(p, &to))
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
static bool add_ordinal(struct bare *p)
{
    char digits[16], *at = digits + sizeof digits;
    size_t ordinal = 1;
    if (sl_is_digit(look(p, 0))) {
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

static bool types_until_end(struct bare *p, struct piece *pieces, size_t *count)
{
    *count = 0;
    if (look(p, 0) == 'v') /* then there are no others */
        p->at++;
    else
        do {
            if (*count == MAX_PARAMETERS || !bare_type(p, &pieces[(*count)++]))
                return false;
        } while (look(p, 0) != 'E');
    return consume(p, 'E');
}

static bool unnamed(struct bare *p, struct state *state, struct piece *whole)
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
    bool added =
        separate(p, whole) &&
        (lambda ? ADD(p, "{lambda(") && bare_add_list(p, parameters, count) && ADD(p, ")") : ADD(p, "{unnamed type"));
    added = added && add_ordinal(p);
    whole->size = (uint16_t)(p->used - whole->at);
    return added;
}

static bool some_tags(struct bare *p, struct piece *whole)
{
    struct sl_str tag;
    while (consume(p, 'B'))
        if (!source_name(p, &tag) || !append(p, whole, "[abi:", 5) || !append(p, whole, tag.data, tag.size) ||
            !append(p, whole, "]", 1))
            return false;
    return true;
}

static inline bool tags(struct bare *p, struct piece *whole)
{
    return look(p, 0) != 'B' || some_tags(p, whole);
}

static bool component(struct bare *p, struct state *state, struct piece *whole)
{
    struct sl_str text;
    char c = look(p, 0);
    if (c == 'U')
        return unnamed(p, state, whole) && tags(p, whole);
    if (c < '1' || c > '9')
        return operator_name(p, state, whole) && tags(p, whole);
    if (!source_name(p, &text) || !separate(p, whole))
        return false;
    whole->base = (uint16_t)p->used;
    whole->base_size = (uint8_t)(text.size <= UINT8_MAX ? text.size : 0);
    return append(p, whole, text.data, text.size) && tags(p, whole);
}

/* A constructor or destructor, which has the name of its class. Behind an inherited one is where it comes from. */
static bool structor(struct bare *p, struct state *state, struct piece *whole)
{
    bool destructor = look(p, 0) == 'D', inherited = !destructor && look(p, 1) == 'I';
    char variant = look(p, inherited ? 2 : 1);
    struct piece origin;
    if (!variant || !strchr(destructor ? "01245" : "12345", variant) || !whole->base_size)
        return false;
    p->at += inherited ? 3 : 2;
    if (state)
        state->no_result = true;
    if (inherited && !bare_name(p, state, &origin))
        return false;
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
    return append(p, whole, p->text + base.at, base.size) && tags(p, whole);
}

bool bare_substitution(struct bare *p, struct piece *out)
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
        out->base_size = (uint8_t)(out->size - 5);
        return true;
    }
    if (c != '_') {
        for (; sl_is_digit(c) || (c >= 'A' && c <= 'Z'); c = *p->at++) {
            index = index * 36 + (size_t)(sl_is_digit(c) ? c - '0' : c - 'A' + 10);
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

/* One more part of a nested name. */
static bool bare_name_part(struct bare *p, struct state *state, struct piece *whole)
{
    consume(p, 'L');
    char c = look(p, 0), next = look(p, 1);
    if (c == 'S' && next != 't')
        return !whole->size && bare_substitution(p, whole);
    if (c == 'I') {
        if (!whole->size || !bare_arguments(p, state != NULL) || !bare_close_template(p, whole))
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

static bool nested_name(struct bare *p, struct state *state, struct piece *out)
{
    uint8_t qualifiers;
    char reference = '\0';
    p->at++;
    bare_read_qualifiers(p, &qualifiers);
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
        if (p->at == p->end || !bare_name_part(p, state, out))
            return false;
    if (!out->size || !p->substitution_count)
        return false;
    p->substitution_count--;
    return true;
}

static bool skip_discriminator(struct bare *p)
{
    if (look(p, 0) != '_')
        return !sl_is_digit(look(p, 0));
    bool is_long = look(p, 1) == '_';
    p->at += is_long ? 2 : 1;
    if (!sl_is_digit(look(p, 0)))
        return false;
    p->at++;
    while (is_long && sl_is_digit(look(p, 0)))
        p->at++;
    return !is_long || consume(p, '_');
}

/* What is in a function. The template parameters of that have nothing to do with those around it. */
static bool local_name(struct bare *p, struct state *state, struct piece *out)
{
    struct piece inner, kept[MAX_ARGUMENTS];
    size_t kept_count = p->argument_count;
    bool visible = p->visible, in_lambda = p->in_lambda;
    memcpy(kept, p->arguments, kept_count * sizeof *kept);
    p->visible = p->in_lambda = false;
    p->at++;
    if (!bare_encoding(p, out) || !consume(p, 'E') || look(p, 0) == 'd' || look(p, 0) == 's')
        return false;
    memcpy(p->arguments, kept, kept_count * sizeof *kept);
    p->argument_count = kept_count;
    p->visible = visible;
    p->in_lambda = in_lambda;
    if (!bare_name(p, state, &inner) || !skip_discriminator(p) || inner.kind >= NOTHING || !separate(p, out))
        return false;
    return append(p, out, p->text + inner.at, inner.size);
}

bool bare_name(struct bare *p, struct state *state, struct piece *out)
{
    consume(p, 'L');
    char c = look(p, 0);
    bool again = c == 'S' && look(p, 1) != 't';
    if (c == 'N')
        return nested_name(p, state, out);
    if (c == 'Z')
        return local_name(p, state, out);
    if (again) {
        if (!bare_substitution(p, out))
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
    if ((!again && !remember(p, out)) || !bare_arguments(p, state != NULL))
        return false;
    if (state)
        state->arguments = true;
    return bare_close_template(p, out);
}
