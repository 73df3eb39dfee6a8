/* The v0 scheme (RFC 2603): a prefix grammar of paths, types and constants, with back references into the name. Back references
 * can make the output exponentially long: the output limit stops that, and without output they are not followed. */
#include "demangle/rust_v0.h"

static void path(struct rust_v0_printer *v, bool value);
static void type(struct rust_v0_printer *v);
static void constant(struct rust_v0_printer *v, bool value);

/* ---- identifiers ---- */

struct identifier {
    struct sl_str ascii, punycode;
};

/* Reads [u] length [_] bytes: with u, the part after the last underscore is Punycode. */
static struct identifier undisambiguated(struct rust_v0_printer *v)
{
    struct identifier id = {{"", 0}, {"", 0}};
    bool unicode = v0_eat(v, 'u');
    size_t length = 0;
    char c = v0_next(v);
    if (c < '0' || c > '9')
        v0_fail(v);
    length = (size_t)(c - '0');
    while (length && v0_peek(v) >= '0' && v0_peek(v) <= '9' && length < v->text.size)
        length = length * 10 + (size_t)(v0_next(v) - '0');
    v0_eat(v, '_');
    if (v->failed || length > v->text.size - v->at) {
        v0_fail(v);
        return id;
    }
    id.ascii = (struct sl_str){v->text.data + v->at, length};
    v->at += length;
    if (!unicode)
        return id;
    const char *mark = memrchr(id.ascii.data, '_', length);
    size_t split = mark ? (size_t)(mark - id.ascii.data) : 0, skip = mark ? split + 1 : 0;
    id.punycode = (struct sl_str){id.ascii.data + skip, length - skip};
    id.ascii.size = split;
    if (!id.punycode.size)
        v0_fail(v);
    return id;
}

/* Decodes an identifier; false if it is malformed or has surrogates. */
static bool decode_punycode(struct identifier id, uint32_t *chars, size_t *count)
{
    if (!text_punycode(id.ascii, id.punycode, '0', chars, count))
        return false;
    for (size_t i = 0; i < *count; i++)
        if (chars[i] >= 0xD800 && chars[i] < 0xE000)
            return false;
    return true;
}

/* Shows an identifier; Punycode that cannot be decoded as "punycode{ascii-rest}", as rustc's demangler does. */
static void show_identifier(struct rust_v0_printer *v, struct identifier id)
{
    uint32_t chars[TEXT_MAX_PUNYCODE];
    size_t count;
    if (!id.punycode.size) {
        v0_put(v, id.ascii);
    } else if (v->out && decode_punycode(id, chars, &count)) {
        for (size_t i = 0; i < count; i++)
            v0_put_char(v, chars[i]);
    } else {
        v0_write(v, "punycode{");
        v0_put(v, id.ascii);
        v0_write(v, id.ascii.size ? "-" : "");
        v0_put(v, id.punycode);
        v0_write(v, "}");
    }
}

/* ---- back references, lifetimes, lists ---- */

/* Continues at the target of a back reference and returns in `back` where to resume, which come_back() does. False when there is no output,
 * so that work stays linear, or if the target does not precede the reference. */
static bool follow(struct rust_v0_printer *v, size_t *back)
{
    size_t begin = v->at - 1; /* position of the `B` */
    uint64_t target = v0_base62(v);
    if (target >= begin)
        v0_fail(v);
    if (v->failed || !v->out || !v0_enter(v))
        return false;
    *back = v->at;
    v->at = (size_t)target;
    return true;
}

/* Resumes after the back reference that follow() has followed. */
static void come_back(struct rust_v0_printer *v, size_t back)
{
    v->at = back;
    v0_leave(v);
}

/* Shows a lifetime: 0 is the erased one, 1 the innermost bound one. */
static void show_lifetime(struct rust_v0_printer *v, uint64_t index)
{
    if (index == 0) {
        v0_write(v, "'_");
        return;
    }
    if (index > v->lifetimes) {
        v0_fail(v);
        return;
    }
    uint64_t depth = v->lifetimes - index;
    char letter[3] = {'\'', depth < 26 ? (char)('a' + depth) : '_', '\0'};
    v0_write(v, letter);
    if (depth >= 26)
        v0_put_number(v, depth);
}

/* Reads `G` and a number of lifetimes, if they are there: shows `for<'a, 'b> ` and returns the number. The caller subtracts it from
 * `lifetimes` where they go out of scope. */
static uint64_t binder(struct rust_v0_printer *v)
{
    uint64_t count = v0_optional62(v, 'G');
    if (v->failed || count > MAX_STEPS) {
        v0_fail(v);
        return 0;
    }
    if (count)
        v0_write(v, "for<");
    for (uint64_t i = 0; i < count && !v->failed && v->out; i++) {
        v0_write(v, i ? ", " : "");
        v->lifetimes++;
        show_lifetime(v, 1);
    }
    if (!v->out)
        v->lifetimes += count;
    if (count)
        v0_write(v, "> ");
    return count;
}

/* Reads a lifetime (L), a constant (K) or a type. */
static void generic_argument(struct rust_v0_printer *v)
{
    if (v0_eat(v, 'L'))
        show_lifetime(v, v0_base62(v));
    else if (v0_eat(v, 'K'))
        constant(v, false);
    else
        type(v);
}

/* Reads items up to `E`, separated by commas; returns their number. */
static size_t list(struct rust_v0_printer *v, void (*item)(struct rust_v0_printer *))
{
    size_t count = 0;
    for (; !v->failed && !v0_eat(v, 'E'); count++) {
        if (count)
            v0_write(v, ", ");
        item(v);
    }
    return count;
}

/* ---- paths ---- */

/* Reads the path of an impl without output, because an impl is shown by its type and trait. */
static void silent_impl_path(struct rust_v0_printer *v)
{
    struct sl_buf *out = v->out;
    v0_optional62(v, 's');
    v->out = NULL;
    path(v, false);
    v->out = out;
}

/* Reads a path and an item in it. Small letters are namespaces that are not shown; capitals are shown: "::{closure#0}",
 * "::{shim:drop#0}". */
static void nested(struct rust_v0_printer *v, bool value)
{
    char space = v0_next(v);
    if (!((space >= 'a' && space <= 'z') || (space >= 'A' && space <= 'Z')))
        v0_fail(v);
    path(v, value);
    uint64_t number = v0_optional62(v, 's');
    struct identifier id = undisambiguated(v);
    bool named = id.ascii.size || id.punycode.size;
    if (space >= 'a') {
        v0_write(v, named ? "::" : "");
        show_identifier(v, id);
        return;
    }
    char other[2] = {space, '\0'};
    v0_write(v, "::{");
    v0_write(v, space == 'C' ? "closure" : space == 'S' ? "shim" : other);
    v0_write(v, named ? ":" : "");
    show_identifier(v, id);
    v0_write(v, "#");
    v0_put_number(v, number);
    v0_write(v, "}");
}

/* Reads a type and, with `trait`, a trait; shows "<Type as Trait>". */
static void qualified(struct rust_v0_printer *v, bool trait)
{
    v0_write(v, "<");
    type(v);
    if (trait) {
        v0_write(v, " as ");
        path(v, false);
    }
    v0_write(v, ">");
}

/* Reads a path but omits the final `>` of generic arguments, because the caller has more to put before it. Returns whether it
 * was omitted. */
static bool open_path(struct rust_v0_printer *v)
{
    size_t back;
    bool open = false;
    if (v0_eat(v, 'B')) {
        if (follow(v, &back)) {
            open = open_path(v);
            come_back(v, back);
        }
    } else if (v0_eat(v, 'I')) {
        path(v, false);
        v0_write(v, "<");
        list(v, generic_argument);
        open = true;
    } else {
        path(v, false);
    }
    return open;
}

/* Reads a path. `value`: in an expression, generic arguments are written `::<...>`. */
static void path(struct rust_v0_printer *v, bool value)
{
    size_t back;
    if (v0_enter(v)) {
        switch (v0_next(v)) {
        case 'C':
            v0_optional62(v, 's');
            show_identifier(v, undisambiguated(v));
            break;
        case 'N': nested(v, value); break;
        case 'M':
            silent_impl_path(v);
            qualified(v, false);
            break;
        case 'X':
            silent_impl_path(v);
            qualified(v, true);
            break;
        case 'Y': qualified(v, true); break;
        case 'I':
            path(v, value);
            v0_write(v, value ? "::<" : "<");
            list(v, generic_argument);
            v0_write(v, ">");
            break;
        case 'B':
            if (follow(v, &back)) {
                path(v, value);
                come_back(v, back);
            }
            break;
        default: v0_fail(v);
        }
    }
    v0_leave(v);
}

/* ---- types ---- */

/* Returns the type for a small letter; NULL if there is none. */
static const char *basic_type(char c)
{
    static const char *const names[26] = {"i8",    "bool", "char", "f64", "str",  "f32",  NULL,  "u8", "isize",
                                          "usize", NULL,   "i32",  "u32", "i128", "u128", "_",   NULL, NULL,
                                          "i16",   "u16",  "()",   "...", NULL,   "i64",  "u64", "!"};
    return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

/* Reads a function type: [G lifetimes] [U unsafe] [K ABI] parameters E result; result u, the unit type, is not shown. */
static void function_type(struct rust_v0_printer *v)
{
    uint64_t bound = binder(v);
    v0_write(v, v0_eat(v, 'U') ? "unsafe " : "");
    if (v0_eat(v, 'K')) {
        v0_write(v, "extern \"");
        if (v0_eat(v, 'C')) {
            v0_write(v, "C");
        } else {
            struct identifier abi = undisambiguated(v);
            if (!abi.ascii.size || abi.punycode.size)
                v0_fail(v);
            for (size_t i = 0; i < abi.ascii.size; i++)
                v0_put_char(v, abi.ascii.data[i] == '_' ? '-' : (uint8_t)abi.ascii.data[i]);
        }
        v0_write(v, "\" ");
    }
    v0_write(v, "fn(");
    list(v, type);
    v0_write(v, ")");
    if (!v0_eat(v, 'u')) {
        v0_write(v, " -> ");
        type(v);
    }
    v->lifetimes -= bound;
}

/* Reads a trait of a trait object and its associated types (p): "Iterator<Item = u8>". */
static void dyn_trait(struct rust_v0_printer *v)
{
    bool open = open_path(v);
    while (v0_eat(v, 'p')) {
        v0_write(v, open ? ", " : "<");
        open = true;
        show_identifier(v, undisambiguated(v));
        v0_write(v, " = ");
        type(v);
    }
    v0_write(v, open ? ">" : "");
}

/* Prints a trait object: "dyn A + B + 'a". The erased lifetime, 0, is not shown. Lifetimes of the binder end with the traits. */
static void dyn_type(struct rust_v0_printer *v)
{
    v0_write(v, "dyn ");
    uint64_t bound = binder(v);
    for (size_t i = 0; !v->failed && !v0_eat(v, 'E'); i++) {
        v0_write(v, i ? " + " : "");
        dyn_trait(v);
    }
    v->lifetimes -= bound;
    if (!v0_eat(v, 'L'))
        v0_fail(v);
    uint64_t lifetime = v0_base62(v);
    if (lifetime) {
        v0_write(v, " + ");
        show_lifetime(v, lifetime);
    }
}

/* Prints a reference type; an erased lifetime is not shown. */
static void reference(struct rust_v0_printer *v, bool mutable)
{
    v0_write(v, "&");
    uint64_t lifetime = v0_eat(v, 'L') ? v0_base62(v) : 0;
    if (lifetime) {
        show_lifetime(v, lifetime);
        v0_write(v, " ");
    }
    v0_write(v, mutable ? "mut " : "");
    type(v);
}

/* Reads a type with the letter `tag`: A array, S slice, T tuple, R and Q references (Q: mut), P and O pointers (O: mut), F function, D
 * trait object, B back reference. Any other letter begins a path. */
static void compound_type(struct rust_v0_printer *v, char tag)
{
    size_t back;
    switch (tag) {
    case 'A':
    case 'S':
        v0_write(v, "[");
        type(v);
        if (tag == 'A') {
            v0_write(v, "; ");
            constant(v, true);
        }
        v0_write(v, "]");
        break;
    case 'T':
        v0_write(v, "(");
        v0_write(v, list(v, type) == 1 ? ",)" : ")");
        break;
    case 'R':
    case 'Q': reference(v, tag == 'Q'); break;
    case 'P':
    case 'O':
        v0_write(v, tag == 'P' ? "*const " : "*mut ");
        type(v);
        break;
    case 'F': function_type(v); break;
    case 'D': dyn_type(v); break;
    case 'B':
        if (follow(v, &back)) {
            type(v);
            come_back(v, back);
        }
        break;
    default:
        v->at--; /* the tag belongs to the path */
        path(v, false);
    }
}

/* Prints a type. Nesting is limited (v0_enter). */
static void type(struct rust_v0_printer *v)
{
    if (v0_enter(v)) {
        char tag = v0_next(v);
        const char *basic = basic_type(tag);
        if (basic)
            v0_write(v, basic);
        else if (!v->failed)
            compound_type(v, tag);
    }
    v0_leave(v);
}

/* ---- constants ---- */

/* Parses hexadecimal digits; none mean 0. False above 64 bits. */
static bool hex_value(struct sl_str digits, uint64_t *value)
{
    *value = 0;
    return !digits.size || sl_parse_hex_u64(digits, value);
}

/* Shows an integer in decimal; one above 64 bits in hexadecimal. */
static void integer(struct rust_v0_printer *v, bool is_signed)
{
    uint64_t value;
    v0_write(v, is_signed && v0_eat(v, 'n') ? "-" : "");
    struct sl_str digits = v0_hex_digits(v);
    if (hex_value(digits, &value)) {
        v0_put_number(v, value);
    } else {
        v0_write(v, "0x");
        v0_put(v, digits);
    }
}

/* Prints a constant of type char, given as the hexadecimal digits of its code point; surrogates and larger numbers are malformed. */
static void character(struct rust_v0_printer *v)
{
    uint64_t c;
    if (!hex_value(v0_hex_digits(v), &c) || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
        v0_fail(v);
        return;
    }
    v0_write(v, "'");
    v0_put_escaped(v, (uint32_t)c, '\'');
    v0_write(v, "'");
}

/* Reads a string literal: the hex digits of its UTF-8 bytes. */
static void string(struct rust_v0_printer *v)
{
    struct sl_str digits = v0_hex_digits(v);
    struct sl_buf bytes = {0};
    if (digits.size % 2)
        v0_fail(v);
    for (size_t i = 0; i + 1 < digits.size; i += 2)
        sl_buf_u8(&bytes, (uint8_t)(sl_hex_digit(digits.data[i]) << 4 | sl_hex_digit(digits.data[i + 1])));
    struct sl_str text = sl_buf_view(&bytes);
    if (bytes.failed || !sl_str_is_utf8(text))
        v0_fail(v);
    v0_write(v, "\"");
    for (size_t at = 0; at < text.size && !v->failed;)
        v0_put_escaped(v, sl_utf8_next(text, &at), '"');
    v0_write(v, "\"");
    sl_buf_free(&bytes);
}

static void element(struct rust_v0_printer *v)
{
    constant(v, true);
}

static void field(struct rust_v0_printer *v)
{
    v0_optional62(v, 's');
    show_identifier(v, undisambiguated(v));
    v0_write(v, ": ");
    constant(v, true);
}

/* Reads a value of a struct or enum: its path, then U without fields, T with unnamed ones, S with named ones. */
static void structure(struct rust_v0_printer *v)
{
    path(v, true);
    switch (v0_next(v)) {
    case 'U': break;
    case 'T':
        v0_write(v, "(");
        list(v, element);
        v0_write(v, ")");
        break;
    case 'S':
        v0_write(v, " { ");
        list(v, field);
        v0_write(v, " }");
        break;
    default: v0_fail(v);
    }
}

/* Reads a compound constant. A generic argument (`value` is false) is put in braces; a reference to a string is shown as a string
 * literal. */
static void compound_constant(struct rust_v0_printer *v, char tag, bool value)
{
    if (tag == 'R' && v0_eat(v, 'e')) {
        string(v);
        return;
    }
    v0_write(v, value ? "" : "{");
    switch (tag) {
    case 'e':
        v0_write(v, "*");
        string(v);
        break;
    case 'R':
    case 'Q':
        v0_write(v, tag == 'R' ? "&" : "&mut ");
        constant(v, true);
        break;
    case 'A':
        v0_write(v, "[");
        list(v, element);
        v0_write(v, "]");
        break;
    case 'T':
        v0_write(v, "(");
        v0_write(v, list(v, element) == 1 ? ",)" : ")");
        break;
    case 'V': structure(v); break;
    default: v0_fail(v);
    }
    v0_write(v, value ? "" : "}");
}

/* Reads a constant: the letter is its type (see basic_type()), p a placeholder, B a back reference. `value` is false for a constant that is
 * a generic argument: Rust puts braces around it if it is compound, f::<{S(1)}>. Inside another constant it is true: no braces. */
static void constant(struct rust_v0_printer *v, bool value)
{
    size_t back;
    uint64_t truth;
    if (v0_enter(v)) {
        char tag = v0_next(v);
        switch (tag) {
        case 'p': v0_write(v, "_"); break;
        case 'h':
        case 't':
        case 'm':
        case 'y':
        case 'o':
        case 'j': integer(v, false); break;
        case 'a':
        case 's':
        case 'l':
        case 'x':
        case 'n':
        case 'i': integer(v, true); break;
        case 'b':
            if (!hex_value(v0_hex_digits(v), &truth) || truth > 1)
                v0_fail(v);
            else
                v0_write(v, truth ? "true" : "false");
            break;
        case 'c': character(v); break;
        case 'B':
            if (follow(v, &back)) {
                constant(v, value);
                come_back(v, back);
            }
            break;
        default: compound_constant(v, tag, value);
        }
    }
    v0_leave(v);
}

bool rust_v0(struct sl_str name, struct sl_buf *out, size_t limit)
{
    size_t skip = 0;
    /* "_R", with one more `_` on Mach-O, and "R" where the platform's `_` was removed */
    while (skip < 2 && skip < name.size && name.data[skip] == '_')
        skip++;
    if (name.size < skip + 3 || name.data[skip] != 'R' || name.data[skip + 1] < 'A' || name.data[skip + 1] > 'Z' ||
        !text_is_plain(name))
        return false;
    struct rust_v0_printer v = {
        .text = {name.data + skip + 1, name.size - skip - 1}, .out = out, .end = out ? out->size + limit : 0};
    struct sl_str suffix;
    path(&v, true);
    if (v0_peek(&v) >= 'A' && v0_peek(&v) <= 'Z') { /* the crate that instantiated a generic: read but not shown */
        v.out = NULL;
        path(&v, false);
        v.out = out;
    }
    if (v.failed || !rust_suffix((struct sl_str){v.text.data + v.at, v.text.size - v.at}, &suffix))
        return false;
    v0_put(&v, suffix);
    return !v.failed;
}
