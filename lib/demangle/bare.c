#include "demangle/bare.h"

bool bare_add_list(struct bare *p, const struct piece *pieces, size_t count)
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

bool bare_close_template(struct bare *p, struct piece *whole)
{
    if (whole->kind < NOTHING)
        whole->kind = PLAIN;
    bool sign = whole->size && whole->kind < NOTHING && p->text[whole->at + whole->size - 1] == '<';
    return !sign || append(p, whole, " ", 1); /* operator< */
}

void bare_read_qualifiers(struct bare *p, uint8_t *qualifiers)
{
    *qualifiers = 0;
    for (unsigned i = 0; i < 3; i++)
        *qualifiers |= (uint8_t)(consume(p, "rVK"[i]) << i);
}

bool bare_append_qualifiers(struct bare *p, struct piece *piece, uint8_t qualifiers)
{
    return (!(qualifiers & 4) || append(p, piece, " const", 6)) &&
           (!(qualifiers & 2) || append(p, piece, " volatile", 9)) &&
           (!(qualifiers & 1) || append(p, piece, " restrict", 9));
}

/* ---- functions ---- */
static bool at_end(const struct bare *p)
{
    return p->at == p->end || *p->at == 'E';
}

static bool bare_add_function(struct bare *p, const struct state *state, const struct piece *result,
                              const struct piece *called, const struct piece *parameters, size_t count,
                              struct piece *out)
{
    size_t start = p->used;
    if ((result->kind != UNKNOWN && (!add_piece(p, result) || !ADD(p, " "))) || !add_piece(p, called) || !ADD(p, "(") ||
        !bare_add_list(p, parameters, count) || !ADD(p, ")"))
        return false;
    *out = from(p, start);
    size_t reference = state->reference == 'R' ? 1 : 2;
    return bare_append_qualifiers(p, out, state->qualifiers) &&
           (!state->reference || (append(p, out, " ", 1) && append(p, out, "&&", reference)));
}

bool bare_encoding(struct bare *p, struct piece *out)
{
    struct state state = {.no_result = false};
    struct piece result = {.kind = UNKNOWN}, called, parameters[MAX_PARAMETERS];
    size_t count = 0;
    if (p->depth == MAX_DEPTH)
        return false;
    p->depth++;
    if (!bare_name(p, &state, &called))
        return false;
    if (at_end(p)) {
        *out = called;
        out->base_size = 0;
    } else {
        if (!state.no_result && state.arguments && (!bare_type(p, &result) || result.kind >= NOTHING))
            return false;
        if (!consume(p, 'v'))
            do {
                if (count == MAX_PARAMETERS || !bare_type(p, &parameters[count++]))
                    return false;
            } while (!at_end(p));
        if (!bare_add_function(p, &state, &result, &called, parameters, count, out))
            return false;
    }
    p->depth--;
    return true;
}

bool sl_demangle_bare(struct sl_str name, struct sl_buf *out)
{
    struct bare p;
    struct piece shown;
    if (name.size < 4 || name.size > MAX_NAME || memcmp(name.data, "_Z", 2) != 0 || memchr(name.data, '<', name.size) ||
        memchr(name.data, '>', name.size))
        return false;
    /* the hashes of Rust and of some linkers */
    if ((name.size > 20 && memcmp(name.data + name.size - 20, "17h", 3) == 0) ||
        (name.size > 33 && name.data[name.size - 33] == '$'))
        return false;
    memcpy(p.name, name.data, name.size);
    memset(p.name + name.size, 0, sizeof p.name - MAX_NAME);
    p.at = p.name + 2;
    p.end = p.name + name.size;
    p.depth = p.steps = 0;
    p.visible = p.no_parameters = p.no_arguments = p.in_lambda = false;
    p.element = p.pack_size = -1;
    p.used = p.substitution_count = p.argument_count = p.element_count = 0;
    if (!bare_encoding(&p, &shown) || p.at != p.end || shown.kind >= NOTHING || shown.size > MAX_SHOWN)
        return false;
    sl_buf_add(out, p.text + shown.at, shown.size);
    return true;
}
