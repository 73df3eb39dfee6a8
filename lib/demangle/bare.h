/* Names of C++ (Itanium C++ ABI, 5.1) without the arguments of templates, in one pass and without a tree. The text of a
 * type or a name only ever grows at its end - `foo`, `foo const`, `foo const&` - so a piece of a scratch text stands for
 * each, and one that is used again is copied. Rare constructs - expressions, thunks, pointers to functions that are
 * shown - are left to LLVM's demangler, which says the same of all others. */
#pragma once

#include "demangle/demangle.h"

enum {
    MAX_SCRATCH = 8 * 1024,
    MAX_SUBSTITUTIONS = 256,
    MAX_ARGUMENTS = 32,
    MAX_ELEMENTS = 16, /* of a pack */
    MAX_PARAMETERS = 24,
    MAX_DEPTH = 48,
    MAX_STEPS = 16 * 1024, /* types read: expansions of packs within each other read one again and again */
    MAX_NAME = 4096,
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
    uint16_t base;     /* where the class name is, for its constructors, */
    uint8_t base_size; /* 0 = none */
    uint8_t kind;
};

struct state { /* what the name of a function tells of the rest */
    bool no_result, arguments;
    uint8_t qualifiers;
    char reference;
};

struct bare {             /* a name that is being read */
    const char *at, *end; /* of `name`, behind which zeros stand */
    unsigned depth, steps;
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
    char text[MAX_SCRATCH], name[MAX_NAME + 4];
};

/* Each reads what the grammar calls so; false when it is not there, or not for us. `state` is that of a function whose
 * name it is, or NULL. */
bool bare_encoding(struct bare *p, struct piece *out);
bool bare_name(struct bare *p, struct state *state, struct piece *out);
bool bare_substitution(struct bare *p, struct piece *out);
bool bare_type(struct bare *p, struct piece *out);
bool bare_arguments(struct bare *p, bool of_function); /* of a template; a function's are what its type refers to */

/* At most two ahead. */
static inline char look(const struct bare *p, size_t ahead)
{
    return p->at[ahead];
}

static inline bool consume(struct bare *p, char c)
{
    bool found = *p->at == c;
    p->at += found;
    return found;
}

/* Up to seven digits. */
static inline bool number(struct bare *p, size_t *value)
{
    const char *start = p->at;
    for (*value = 0; sl_is_digit(look(p, 0)); p->at++)
        *value = *value * 10 + (size_t)(*p->at - '0');
    return p->at > start && p->at - start <= 7;
}

/* A length and as many characters. */
static inline bool source_name(struct bare *p, struct sl_str *out)
{
    static const char anonymous[] = "_GLOBAL__N";
    size_t size = 0, left = (size_t)(p->end - p->at);
    while (sl_is_digit(look(p, 0)) && size < left)
        size = size * 10 + (size_t)(*p->at++ - '0');
    if (!size || size > (size_t)(p->end - p->at))
        return false;
    *out = (struct sl_str){p->at, size};
    p->at += size;
    if (size >= sizeof anonymous - 1 && out->data[0] == '_' && memcmp(out->data, anonymous, sizeof anonymous - 1) == 0)
        *out = SL_STR("(anonymous namespace)");
    return out->data[out->size - 1] != 'r' || !sl_str_ends(*out, SL_STR("operator"));
}

/* ---- the scratch text ---- */
static inline bool add(struct bare *p, const char *text, size_t size)
{
    if (size > MAX_SCRATCH - p->used)
        return false;
    memcpy(p->text + p->used, text, size);
    p->used += size;
    return true;
}

#define ADD(p, text) add((p), (text), sizeof(text) - 1)

static inline struct piece from(const struct bare *p, size_t start)
{
    return (struct piece){.at = (uint16_t)start, .size = (uint16_t)(p->used - start)};
}

static inline bool add_piece(struct bare *p, const struct piece *piece)
{
    return piece->kind < NOTHING && add(p, p->text + piece->at, piece->size);
}

/* Makes the piece the end of the text. */
static inline bool reopen(struct bare *p, struct piece *piece)
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
static inline bool append(struct bare *p, struct piece *piece, const char *text, size_t size)
{
    if (piece->kind >= NOTHING)
        return true;
    if (!reopen(p, piece) || !add(p, text, size))
        return false;
    piece->size = (uint16_t)(piece->size + size);
    return true;
}

static inline bool remember(struct bare *p, const struct piece *piece)
{
    if (p->substitution_count == MAX_SUBSTITUTIONS)
        return false;
    p->substitutions[p->substitution_count++] = *piece;
    return true;
}

/* The pieces behind one another, with commas. */
bool bare_add_list(struct bare *p, const struct piece *pieces, size_t count);

/* To be called behind the arguments of the template `whole`. */
bool bare_close_template(struct bare *p, struct piece *whole);

/* Of types and of member functions, as bits. */
void bare_read_qualifiers(struct bare *p, uint8_t *qualifiers);
bool bare_append_qualifiers(struct bare *p, struct piece *piece, uint8_t qualifiers);
