/* Rust's v0 mangling (RFC 2603): a prefix grammar of paths, types and constants, with back references into the name. Each function reads a
 * part and prints it. Back references can make the output exponentially long: the output limit stops that, and without output (v->out NULL)
 * they are not followed. */
#include "demangle/rust_v0.h"

static void path(struct rust_v0_printer *v, bool in_value);
static void type(struct rust_v0_printer *v);
static void constant(struct rust_v0_printer *v, bool in_value);

/* ---- identifiers ---- */

struct identifier {
    struct sl_str ascii, punycode; /* `punycode` is empty if the identifier is ASCII */
};

/* Reads an identifier: [u] length [_] bytes. With u, the part after the last underscore is Punycode. A length with a leading 0 is 0. */
static struct identifier read_identifier(struct rust_v0_printer *v)
{
    struct identifier id = {{"", 0}, {"", 0}};
    bool unicode = v0_eat(v, 'u');
    size_t length = 0;
    char c = v0_next(v);
    if (c < '0' || c > '9')
        v0_fail(v);
    length = (size_t)(c - '0');
    /* a length beyond the text is malformed: stopping there avoids an overflow */
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
    /* without an underscore all of it is Punycode */
    const char *mark = memrchr(id.ascii.data, '_', length);
    size_t split = mark ? (size_t)(mark - id.ascii.data) : 0, skip = mark ? split + 1 : 0;
    id.punycode = (struct sl_str){id.ascii.data + skip, length - skip};
    id.ascii.size = split;
    if (!id.punycode.size)
        v0_fail(v);
    return id;
}

/* Decodes an identifier with Punycode to code points; false if it is malformed, too long, or has surrogates. */
static bool decode_punycode(struct identifier id, uint32_t *chars, size_t *count)
{
    if (!text_punycode(id.ascii, id.punycode, '0', chars, count)) /* '0': Punycode's digits 26 to 35 are 0 to 9 */
        return false;
    for (size_t i = 0; i < *count; i++)
        if (chars[i] >= 0xD800 && chars[i] < 0xE000)
            return false;
    return true;
}

/* Prints an identifier; if its Punycode cannot be decoded, as "punycode{ascii-rest}", like rustc's demangler. */
static void show_identifier(struct rust_v0_printer *v, struct identifier id)
{
    uint32_t chars[TEXT_MAX_PUNYCODE];
    size_t count;
    if (!id.punycode.size) {
        v0_put(v, id.ascii);
    } else if (v->out && decode_punycode(id, chars, &count)) { /* without output nothing needs decoding */
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

/* Reads a back reference after its `B`, moves to its target and returns true. `*back` is the text after the reference: come_back() returns
 * there. Without output it returns false and does not move, so that work stays linear. It also returns false, with v->failed set, if the
 * target does not precede the reference or the nesting is too deep. */
static bool follow(struct rust_v0_printer *v, size_t *back)
{
    size_t begin = v->at - 1; /* position of the `B` */
    uint64_t target = v0_base62(v);
    if (target >= begin)
        v0_fail(v);
    if (v->failed || !v->out || !v0_enter(v))
        return false;
    *back = v->at;
    v->at = (size_t)target; /* come_back() pairs v0_enter() with v0_leave() */
    return true;
}

/* Moves back to the text after the reference that follow() has followed. */
static void come_back(struct rust_v0_printer *v, size_t back)
{
    v->at = back;
    v0_leave(v);
}

/* Prints the lifetime that a name gives as `index`: 0 is the erased one, '_; 1 is the one that a binder introduced last. The outermost is
 * called 'a; after 'z come '_26, '_27 ... */
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

/* Reads a binder, `G` and a number of lifetimes, if there is one: prints `for<'a, 'b> `, adds the number to v->lifetimes, and returns it.
 * The caller subtracts it again where these lifetimes go out of scope. */
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
    if (!v->out) /* the loop, which counts them one by one, has not run */
        v->lifetimes += count;
    if (count)
        v0_write(v, "> ");
    return count;
}

/* Reads and prints a generic argument: a lifetime (L), a constant (K) or a type. */
static void generic_argument(struct rust_v0_printer *v)
{
    if (v0_eat(v, 'L'))
        show_lifetime(v, v0_base62(v));
    else if (v0_eat(v, 'K'))
        constant(v, false); /* false: not part of another constant */
    else
        type(v);
}

/* Reads items up to `E`, each by `item`, and prints commas between them; returns their number. */
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

/* Reads the path of an impl without printing it, because an impl is printed as its type and trait. */
static void silent_impl_path(struct rust_v0_printer *v)
{
    struct sl_buf *out = v->out;
    v0_optional62(v, 's'); /* the number of the impl in its path */
    v->out = NULL;
    path(v, false);
    v->out = out;
}

/* Reads a namespace letter, a path and an item in it, and prints "path::item". Namespaces with a small letter (types, values) are not
 * printed; those with a capital are, C as "::{closure#0}", S as "::{shim:drop#0}", others by their letter. */
static void nested(struct rust_v0_printer *v, bool in_value)
{
    char space = v0_next(v);
    if (!((space >= 'a' && space <= 'z') || (space >= 'A' && space <= 'Z')))
        v0_fail(v);
    path(v, in_value);
    uint64_t number = v0_optional62(v, 's');
    struct identifier id = read_identifier(v);
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

/* Reads a type and, with `trait`, a trait; prints "<Type>" or "<Type as Trait>". */
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

/* Reads and prints a path (B: a back reference, I: one with generic arguments, else another), but not the `>` after its generic arguments,
 * because the caller may print more arguments. True if it has such arguments, so that the `>` is still to be printed. */
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

/* Reads and prints a path: C a crate, N an item in a path, M an inherent impl, X a trait impl, Y an item of a trait, I generic arguments, B
 * a back reference. `in_value`: it names a value, not a type, and so has generic arguments after `::`, "f::<u8>". */
static void path(struct rust_v0_printer *v, bool in_value)
{
    size_t back;
    if (v0_enter(v)) {
        switch (v0_next(v)) {
        case 'C':
            v0_optional62(v, 's'); /* distinguishes crates with the same name; not printed */
            show_identifier(v, read_identifier(v));
            break;
        case 'N': nested(v, in_value); break;
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
            path(v, in_value);
            v0_write(v, in_value ? "::<" : "<");
            list(v, generic_argument);
            v0_write(v, ">");
            break;
        case 'B':
            if (follow(v, &back)) {
                path(v, in_value);
                come_back(v, back);
            }
            break;
        default: v0_fail(v);
        }
    }
    v0_leave(v);
}

/* ---- types ---- */

/* Returns the name of the basic type for a letter; NULL if there is none. */
static const char *basic_type(char c)
{
    static const char *const names[26] = {"i8",    "bool", "char", "f64", "str",  "f32",  NULL,  "u8", "isize",
                                          "usize", NULL,   "i32",  "u32", "i128", "u128", "_",   NULL, NULL,
                                          "i16",   "u16",  "()",   "...", NULL,   "i64",  "u64", "!"};
    return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

/* Reads and prints a function type: [G lifetimes] [U: unsafe] [K ABI] parameters E result; the unit type (u) as result is not printed. */
static void function_type(struct rust_v0_printer *v)
{
    uint64_t bound = binder(v);
    v0_write(v, v0_eat(v, 'U') ? "unsafe " : "");
    if (v0_eat(v, 'K')) {
        v0_write(v, "extern \"");
        if (v0_eat(v, 'C')) {
            v0_write(v, "C");
        } else {
            struct identifier abi = read_identifier(v);
            if (!abi.ascii.size || abi.punycode.size)
                v0_fail(v);
            for (size_t i = 0; i < abi.ascii.size; i++) /* a `-` is mangled as `_` */
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

/* Reads and prints a trait of a trait object, with its associated types (p) among the generic arguments: "Iterator<Item = u8>". */
static void dyn_trait(struct rust_v0_printer *v)
{
    bool open = open_path(v);
    while (v0_eat(v, 'p')) {
        v0_write(v, open ? ", " : "<");
        open = true;
        show_identifier(v, read_identifier(v));
        v0_write(v, " = ");
        type(v);
    }
    v0_write(v, open ? ">" : "");
}

/* Reads and prints a trait object: "dyn A + B + 'a". The binder's lifetimes are only valid in the traits, not in the lifetime after them.
 * An erased lifetime (0) is not printed. */
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

/* Reads and prints a reference type: "&'a mut T". An erased lifetime (0) is not printed. */
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

/* Reads and prints a type that begins with the letter `tag`, already taken: A array, S slice, T tuple, R and Q references (Q: mut), P and O
 * pointers (O: mut), F function, D trait object, B back reference. Any other letter begins a path. */
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
            constant(v, true); /* true: the length is never in braces */
        }
        v0_write(v, "]");
        break;
    case 'T':
        v0_write(v, "(");
        v0_write(v, list(v, type) == 1 ? ",)" : ")"); /* a tuple of one type has a comma */
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

/* Reads and prints a type: a basic one, a letter, or a compound one. */
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

/* Parses hexadecimal digits; no digits mean 0. False if the number exceeds 64 bits. */
static bool hex_value(struct sl_str digits, uint64_t *value)
{
    *value = 0;
    return !digits.size || sl_parse_hex_u64(digits, value);
}

/* Reads and prints an integer constant: in decimal, or in hexadecimal if it exceeds 64 bits. An `n` before the digits is the minus sign. */
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

/* Reads and prints a constant of type char, given as the hexadecimal digits of its code point; fails for surrogates and numbers above
 * U+10FFFF. */
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

/* Reads the hexadecimal digits of a string's UTF-8 bytes and prints it as a string literal. */
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

/* Reads and prints an element of a constant array, tuple or struct, for list(). */
static void element(struct rust_v0_printer *v)
{
    constant(v, true);
}

/* Reads and prints a field of a constant struct, "name: value", for list(). */
static void field(struct rust_v0_printer *v)
{
    v0_optional62(v, 's'); /* distinguishes equal names; not printed */
    show_identifier(v, read_identifier(v));
    v0_write(v, ": ");
    constant(v, true);
}

/* Reads and prints a constant of a struct or enum: its path, then U without fields, T with unnamed fields, S with named ones. */
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

/* Reads and prints a compound constant that begins with the letter `tag`: e a str, R and Q references (Q: mut), A array, T tuple, V struct
 * or enum. It is put in braces unless it is part of another constant (`in_value`). A reference to a str (Re) is printed as a string literal
 * "x", which is a reference; so a str itself is printed as *"x". */
static void compound_constant(struct rust_v0_printer *v, char tag, bool in_value)
{
    if (tag == 'R' && v0_eat(v, 'e')) {
        string(v);
        return;
    }
    v0_write(v, in_value ? "" : "{");
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
        v0_write(v, list(v, element) == 1 ? ",)" : ")"); /* a tuple of one value has a comma */
        break;
    case 'V': structure(v); break;
    default: v0_fail(v);
    }
    v0_write(v, in_value ? "" : "}");
}

/* Reads and prints a constant: its first letter is p for a placeholder, B for a back reference, else that of its type. `in_value` is false
 * for a generic argument: Rust puts braces around it if it is compound, f::<{S(1)}>. It is true for a part of another constant: no
 * braces. */
static void constant(struct rust_v0_printer *v, bool in_value)
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
                constant(v, in_value);
                come_back(v, back);
            }
            break;
        default: compound_constant(v, tag, in_value);
        }
    }
    v0_leave(v);
}

/* Demangles `_R`, a path, perhaps a second path for the instantiating crate (not printed), and a suffix such as ".cold". */
bool rust_v0(struct sl_str name, struct sl_buf *out, size_t limit)
{
    size_t skip = 0;
    /* "_R", with one more `_` on Mach-O, and "R" where the platform's `_` was removed */
    while (skip < 2 && skip < name.size && name.data[skip] == '_')
        skip++;
    /* a path, which begins with a capital letter, follows the `R` */
    if (name.size < skip + 3 || name.data[skip] != 'R' || name.data[skip + 1] < 'A' || name.data[skip + 1] > 'Z' ||
        !text_is_plain(name))
        return false;
    struct rust_v0_printer v = {
        .text = {name.data + skip + 1, name.size - skip - 1}, .out = out, .end = out ? out->size + limit : 0};
    struct sl_str suffix;
    path(&v, true); /* true: a symbol is a value, "f::<u8>" */
    /* the crate that instantiated a generic function may follow; it is not printed */
    if (v0_peek(&v) >= 'A' && v0_peek(&v) <= 'Z') {
        v.out = NULL;
        path(&v, false);
        v.out = out;
    }
    if (v.failed || !rust_suffix((struct sl_str){v.text.data + v.at, v.text.size - v.at}, &suffix))
        return false;
    v0_put(&v, suffix);
    return !v.failed;
}
