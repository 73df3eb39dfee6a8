/* Reads the types and template arguments of Microsoft names. Functions return NULL, and fail the reader, if these are malformed. */
#include "demangle/microsoft_tree.h"

/* Makes a type; NULL, failing the reader, when out of memory. */
static struct ms_type *new_type(struct ms_reader *r, enum ms_kind kind)
{
    struct ms_type *type = SL_ARENA_NEW(r->arena, struct ms_type);
    if (!type)
        return ms_fail(r);
    type->kind = kind;
    return type;
}

static struct ms_type *primitive(struct ms_reader *r, struct sl_str text)
{
    struct ms_type *type = new_type(r, MS_PRIMITIVE);
    if (type)
        type->text = text;
    return type;
}

/* The letters A to D are: no qualifier, const, volatile, both; Q to T are the same for the target of a pointer to member. */
uint8_t ms_read_quals(struct ms_reader *r, bool *is_member)
{
    char c = ms_take(r);
    *is_member = c >= 'Q' && c <= 'T';
    if (!*is_member && (c < 'A' || c > 'D')) {
        ms_fail(r);
        return 0;
    }
    return (uint8_t)(c - (*is_member ? 'Q' : 'A'));
}

/* Skips E (__ptr64), F (__unaligned) and I (__restrict). */
void ms_skip_pointer_quals(struct ms_reader *r)
{
    while (ms_next(r, 'E') || ms_next(r, 'F') || ms_next(r, 'I'))
        ;
}

/* Reads a built-in type: `$$T`, a letter, or `_` and a letter for types that compilers added later. The names are those of the reference,
 * msvc-demangler of Rust: "int64_t", but "__int32". */
static struct ms_type *read_primitive(struct ms_reader *r)
{
    static const char *const plain[26] = {
        ['C' - 'A'] = "signed char",  ['D' - 'A'] = "char",           ['E' - 'A'] = "unsigned char",
        ['F' - 'A'] = "short",        ['G' - 'A'] = "unsigned short", ['H' - 'A'] = "int",
        ['I' - 'A'] = "unsigned int", ['J' - 'A'] = "long",           ['K' - 'A'] = "unsigned long",
        ['M' - 'A'] = "float",        ['N' - 'A'] = "double",         ['O' - 'A'] = "long double",
        ['X' - 'A'] = "void",
    };
    static const char *const extended[26] = {
        ['D' - 'A'] = "__int8",         ['E' - 'A'] = "unsigned __int8",
        ['F' - 'A'] = "__int16",        ['G' - 'A'] = "unsigned __int16",
        ['H' - 'A'] = "__int32",        ['I' - 'A'] = "unsigned __int32",
        ['J' - 'A'] = "int64_t",        ['K' - 'A'] = "uint64_t",
        ['L' - 'A'] = "__int128",       ['M' - 'A'] = "unsigned __int128",
        ['N' - 'A'] = "bool",           ['P' - 'A'] = "auto",
        ['Q' - 'A'] = "char8_t",        ['S' - 'A'] = "char16_t",
        ['T' - 'A'] = "decltype(auto)", ['U' - 'A'] = "char32_t",
        ['W' - 'A'] = "wchar_t",
    };
    if (ms_next_text(r, "$$T"))
        return primitive(r, SL_STR("std::nullptr_t"));
    const char *const *names = ms_next(r, '_') ? extended : plain;
    char c = ms_take(r);
    if (c < 'A' || c > 'Z' || !names[c - 'A'])
        return ms_fail(r);
    return primitive(r, sl_str(names[c - 'A']));
}

/* Reads a class (V), struct (U), union (T) or enumeration (W): the letter, which is not printed, and the name. */
static struct ms_type *read_class(struct ms_reader *r)
{
    if (ms_take(r) == 'W') { /* the underlying type of an enumeration follows, a digit that is not printed */
        char size = ms_take(r);
        if (size < '0' || size > '7')
            return ms_fail(r);
    }
    struct ms_type *type = new_type(r, MS_NAMED);
    if (type)
        type->name = ms_read_type_name(r);
    return type;
}

/* Reads a type with a name that the compiler made: after the question mark a name and `@`. */
static struct ms_type *read_custom(struct ms_reader *r)
{
    struct ms_type *type = new_type(r, MS_NAMED);
    struct ms_name *name = SL_ARENA_NEW(r->arena, struct ms_name);
    if (!type || !name)
        return ms_fail(r);
    name->innermost = ms_read_type_piece(r);
    type->name = name;
    return ms_next(r, '@') ? type : ms_fail(r);
}

/* Reads an array after its `Y`: the number of dimensions, the size of each, perhaps `$$C` and qualifiers, and the element type. */
static struct ms_type *read_array(struct ms_reader *r)
{
    enum { MAX_DIMENSIONS = 64 };
    uint64_t count;
    bool negative;
    struct ms_type *type = new_type(r, MS_ARRAY);
    if (!type || !ms_number(r, &count, &negative) || negative || !count || count > MAX_DIMENSIONS)
        return ms_fail(r);
    const struct ms_list **last = &type->list;
    for (uint64_t i = 0; i < count; i++) {
        struct ms_list *entry = SL_ARENA_NEW(r->arena, struct ms_list);
        struct ms_type *number = new_type(r, MS_NUMBER);
        if (!entry || !number)
            return ms_fail(r);
        number->text = ms_number_text(r);
        entry->item = number;
        *last = entry;
        last = (const struct ms_list **)&entry->next;
    }
    if (ms_next_text(r, "$$C")) {
        bool is_member;
        type->quals = ms_read_quals(r, &is_member);
    }
    type->inner = ms_read_type(r, MS_BARE);
    return type;
}

/* ---- pointers ---- */

/* Reads the rest of a C++/CX handle to a class, after `P` `$`. It is mangled as a reference (A, qualifiers, class) that a pointer points
 * to. */
static struct ms_type *read_handle(struct ms_reader *r)
{
    struct ms_type *type = new_type(r, MS_POINTER);
    bool is_member;
    if (!type || !ms_next(r, 'A'))
        return ms_fail(r);
    type->sigil = "&";
    uint8_t quals = ms_read_quals(r, &is_member);
    struct ms_type *inner = ms_read_type(r, MS_BARE);
    if (inner)
        inner->quals |= quals;
    type->inner = inner;
    return type;
}

/* Reads what a pointer points to into type->inner: `$` a handle, `8` a member function, qualifiers Q to T a member (type->name is the class
 * of these two), other qualifiers a type. */
static void read_pointee(struct ms_reader *r, struct ms_type *type)
{
    ms_skip_pointer_quals(r);
    if (ms_next(r, '$')) {
        type->inner = read_handle(r);
        return;
    }
    if (ms_next(r, '8')) {
        type->name = ms_read_type_name(r);
        type->inner = ms_read_function(r, true);
        return;
    }
    bool is_member;
    uint8_t quals = ms_read_quals(r, &is_member);
    if (is_member)
        type->name = ms_read_type_name(r);
    struct ms_type *inner = ms_read_type(r, MS_BARE);
    if (inner)
        inner->quals |= quals;
    type->inner = inner;
}

/* Reads a pointer or reference: its code, for the sigil and its own qualifiers, and what it points to, which is a function after `6`. */
static struct ms_type *read_pointer(struct ms_reader *r)
{
    static const struct {
        const char *code, *sigil;
        uint8_t quals;
    } kinds[] = {
        {"$$Q", "&&", 0}, {"$$R", "&&", MS_VOLATILE}, {"A", "&", 0},           {"B", "&", MS_VOLATILE},
        {"P", "*", 0},    {"Q", "*", MS_CONST},       {"R", "*", MS_VOLATILE}, {"S", "*", MS_CONST | MS_VOLATILE}};
    struct ms_type *type = new_type(r, MS_POINTER);
    for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++) {
        if (!ms_next_text(r, kinds[i].code))
            continue;
        type->sigil = kinds[i].sigil;
        type->quals = kinds[i].quals;
        if (ms_next(r, '6'))
            type->inner = ms_read_function(r, false);
        else
            read_pointee(r, type);
        return type->inner ? type : ms_fail(r);
    }
    return ms_fail(r);
}

/* ---- functions ---- */

/* Reads a calling convention, which is not printed. False, with the reader failed, if it is unknown. */
static bool read_calling_convention(struct ms_reader *r)
{
    char c = ms_take(r);
    return (c >= 'A' && c <= 'Q') || c == 'S' || c == 'W' || c == 'w' || (ms_fail(r), false);
}

/* Records a parameter type for back references, by its mangled `text`: a digit refers to one of the first ten different types whose text is
 * longer than one letter. */
static void store_type(struct ms_references *known, const struct ms_type *type, struct sl_str text)
{
    if (text.size <= 1 || known->type_count == MS_BACK_REFERENCES)
        return;
    for (unsigned i = 0; i < known->type_count; i++)
        if (sl_str_equal(known->type_texts[i], text))
            return;
    known->type_texts[known->type_count] = text;
    known->types[known->type_count++] = type;
}

/* Reads a parameter type: a digit, which refers to a recorded type, or any type, which store_type() records. */
static const struct ms_type *read_parameter(struct ms_reader *r)
{
    struct ms_references *known = &r->references;
    const char *begin = r->at;
    if (r->at < r->end && *begin >= '0' && *begin <= '9') {
        unsigned index = (unsigned)(ms_take(r) - '0');
        return index < known->type_count ? known->types[index] : ms_fail(r);
    }
    const struct ms_type *type = ms_read_type(r, MS_BARE);
    if (type)
        store_type(known, type, (struct sl_str){begin, (size_t)(r->at - begin)});
    return type;
}

/* Reads the parameters of a function: X for none, else types up to `@`, or up to `Z` if it is variadic. */
static void read_parameters(struct ms_reader *r, struct ms_type *function)
{
    const struct ms_list **last = &function->list;
    if (ms_next(r, 'X'))
        return;
    while (!r->failed && !ms_starts(r, "@") && !ms_starts(r, "Z")) {
        struct ms_list *entry = SL_ARENA_NEW(r->arena, struct ms_list);
        if (!entry) {
            ms_fail(r);
            return;
        }
        entry->item = read_parameter(r);
        *last = entry;
        last = (const struct ms_list **)&entry->next;
    }
    function->variadic = !ms_next(r, '@') && ms_next(r, 'Z');
}

/* The type of a function is mangled as: with `has_this`, qualifiers of the object that `this` points to; calling convention; result (`@`:
 * none, as of constructors); parameters; `_E` for noexcept, else `Z`. */
struct ms_type *ms_read_function(struct ms_reader *r, bool has_this)
{
    struct ms_type *type = new_type(r, MS_FUNCTION);
    bool is_member;
    if (!type)
        return NULL;
    if (has_this) {
        ms_skip_pointer_quals(r);
        ms_next_text(r, "$A"); /* C++/CX: `this` is a handle */
        /* the reference qualifier */
        type->sigil = ms_next(r, 'G') ? "&" : ms_next(r, 'H') ? "&&" : NULL;
        type->quals = ms_read_quals(r, &is_member);
    }
    if (!read_calling_convention(r))
        return NULL;
    if (!ms_next(r, '@'))
        type->inner = ms_read_type(r, MS_RESULT);
    read_parameters(r, type);
    if (ms_next_text(r, "_E"))
        type->no_except = true;
    else if (!ms_next(r, 'Z'))
        return ms_fail(r);
    return type;
}

/* ---- any type ---- */

/* Reads a type that has no qualifiers before it. Its first characters tell the kind: T to W a class, struct, union or enumeration, Y an
 * array, `?` a type named by the compiler, A and B a reference, P to S a pointer; others a built-in type. */
static struct ms_type *read_unqualified(struct ms_reader *r)
{
    if (r->at == r->end)
        return ms_fail(r);
    switch (*r->at) {
    case 'T':
    case 'U':
    case 'V':
    case 'W': return read_class(r);
    case 'Y': r->at++; return read_array(r);
    case '?': r->at++; return read_custom(r);
    case 'A':
    case 'B':
    case 'P':
    case 'Q':
    case 'R':
    case 'S': return read_pointer(r);
    default: break;
    }
    if (ms_starts(r, "$$Q") || ms_starts(r, "$$R"))
        return read_pointer(r);
    if (ms_next_text(r, "$$A8@@")) /* a function type with qualifiers of `this` */
        return ms_read_function(r, true);
    if (ms_next_text(r, "$$A6"))
        return ms_read_function(r, false);
    return read_primitive(r);
}

/* Qualifiers before the type are read with MS_QUALIFIED, with MS_RESULT only after a question mark, with MS_BARE never. Every recursive
 * reading of types passes through here, so the nesting is limited here (ms_enter). */
struct ms_type *ms_read_type(struct ms_reader *r, enum ms_mode mode)
{
    uint8_t quals = 0;
    bool is_member;
    if (!ms_enter(r))
        return NULL;
    if (mode == MS_QUALIFIED || (mode == MS_RESULT && ms_next(r, '?')))
        quals = ms_read_quals(r, &is_member);
    struct ms_type *type = read_unqualified(r);
    if (type && !r->failed)
        type->quals |= quals;
    ms_leave(r);
    return r->failed ? NULL : type;
}

/* ---- template arguments ---- */

/* Reads a template argument that is an integer. */
static const struct ms_type *read_number_argument(struct ms_reader *r)
{
    struct ms_type *type = new_type(r, MS_NUMBER);
    if (type)
        type->text = ms_number_text(r);
    return type;
}

/* Reads a template argument that is a pointer to member: with `has_symbol` perhaps a symbol, and `offsets` numbers. Printed in braces,
 * "{symbol, 8}"; without offsets it is a null pointer, printed as "&". */
static const struct ms_type *read_member_argument(struct ms_reader *r, bool has_symbol, unsigned offsets)
{
    struct ms_type *type = new_type(r, MS_SYMBOL);
    struct sl_buf text = {0};
    if (!type)
        return NULL;
    if (has_symbol && ms_starts(r, "?"))
        type->symbol = ms_read_symbol(r);
    for (unsigned i = 0; i < offsets && !r->failed; i++) {
        struct sl_str number = ms_number_text(r);
        sl_buf_printf(&text, i || type->symbol ? ", " SL_STR_FMT : SL_STR_FMT, SL_STR_ARG(number));
    }
    type->sigil = offsets ? "{" : "&";
    type->text = ms_format(r, SL_STR_FMT "%s", SL_STR_ARG(sl_buf_view(&text)), offsets ? "}" : "");
    sl_buf_free(&text);
    return type;
}

/* Reads a template argument that is a symbol; `sigil` is printed before its name. */
static const struct ms_type *read_reference_argument(struct ms_reader *r, const char *sigil)
{
    struct ms_type *type = new_type(r, MS_SYMBOL);
    if (!type)
        return NULL;
    type->sigil = sigil;
    type->symbol = ms_read_symbol(r);
    return type;
}

/* Reads a template argument that is an alias template. */
static const struct ms_type *read_alias_argument(struct ms_reader *r)
{
    struct ms_type *type = new_type(r, MS_NAMED);
    if (type)
        type->name = ms_read_type_name(r);
    return type;
}

/* Reads a template argument that is a parameter of another template, given by its number: `template-parameter-1'. */
static const struct ms_type *read_parameter_argument(struct ms_reader *r)
{
    struct ms_type *type = new_type(r, MS_NUMBER);
    struct sl_str number = ms_number_text(r);
    if (type)
        type->text = ms_format(r, "`template-parameter-" SL_STR_FMT "'", SL_STR_ARG(number));
    return type;
}

/* Reads a template argument: $0 a number; $1 and $E a symbol; $F to $J a pointer to member; $D and $Q a parameter of another template; $$Y
 * an alias template; $S, $$V, $$Z and $$$V an empty pack; else a type, after $$B without and after $$C with qualifiers. */
static const struct ms_type *read_argument(struct ms_reader *r)
{
    if (ms_next_text(r, "$M")) /* a parameter declared `auto`: its type, which is not printed, precedes the value */
        ms_read_type(r, MS_BARE);
    if (ms_next_text(r, "$S") || ms_next_text(r, "$$V") || ms_next_text(r, "$$Z") || ms_next_text(r, "$$$V"))
        return new_type(r, MS_NOTHING);
    if (ms_next_text(r, "$$Y"))
        return read_alias_argument(r);
    if (ms_next_text(r, "$$B"))
        return ms_read_type(r, MS_BARE);
    if (ms_next_text(r, "$$C"))
        return ms_read_type(r, MS_QUALIFIED);
    if (ms_next_text(r, "$0"))
        return read_number_argument(r);
    if (ms_next_text(r, "$1"))
        return ms_starts(r, "?") ? read_reference_argument(r, "&") : read_member_argument(r, false, 0);
    if (ms_next_text(r, "$E"))
        return read_reference_argument(r, "");
    if (ms_next_text(r, "$F"))
        return read_member_argument(r, false, 2);
    if (ms_next_text(r, "$G"))
        return read_member_argument(r, false, 3);
    if (ms_next_text(r, "$H"))
        return read_member_argument(r, true, 1);
    if (ms_next_text(r, "$I"))
        return read_member_argument(r, true, 2);
    if (ms_next_text(r, "$J"))
        return read_member_argument(r, true, 3);
    if (ms_next_text(r, "$D") || ms_next_text(r, "$Q"))
        return read_parameter_argument(r);
    return ms_read_type(r, MS_BARE);
}

/* Reads template arguments up to `@`. Empty packs (MS_NOTHING) are left out; NULL if no argument is left or the reader has failed. */
const struct ms_list *ms_read_arguments(struct ms_reader *r)
{
    struct ms_list *first = NULL, **last = &first;
    while (!r->failed && !ms_next(r, '@')) {
        const struct ms_type *item = read_argument(r);
        struct ms_list *entry = SL_ARENA_NEW(r->arena, struct ms_list);
        if (!entry || !item)
            return ms_fail(r);
        if (item->kind == MS_NOTHING)
            continue;
        entry->item = item;
        *last = entry;
        last = &entry->next;
    }
    return first;
}
