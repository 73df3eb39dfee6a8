/* The v0 scheme (RFC 2603): a prefix grammar of paths, types and constants with references back into the name. They can
 * name exponentially long texts; the output limit ends them, and where nothing is shown they are not followed. */
#include "demangle/rust.h"

#include "demangle/text.h"

#include <stdio.h>

enum { MAX_DEPTH = 160, MAX_STEPS = 1 << 16 };

struct v0 {
    struct sl_str text; /* behind `_R` */
    size_t at;
    struct sl_buf *out; /* NULL: nothing is shown */
    size_t end;         /* of `out`, by the limit */
    uint64_t lifetimes; /* bound by the binders around */
    unsigned depth, steps;
    bool failed;
};

static void path(struct v0 *v, bool value);
static void type(struct v0 *v);
static void constant(struct v0 *v, bool value);

static void rust_v0_fail(struct v0 *v)
{
    v->failed = true;
}

/* ---- reading ---- */

static char peek(const struct v0 *v)
{
    return !v->failed && v->at < v->text.size ? v->text.data[v->at] : '\0';
}

static char rust_v0_next(struct v0 *v)
{
    char c = peek(v);
    if (!c || ++v->steps > MAX_STEPS)
        rust_v0_fail(v);
    else
        v->at++;
    return v->failed ? '\0' : c;
}

static bool eat(struct v0 *v, char c)
{
    if (peek(v) != c)
        return false;
    rust_v0_next(v);
    return !v->failed;
}

/* One level deeper; false at the limit. Every call is paired with leave(). */
static bool enter(struct v0 *v)
{
    if (++v->depth > MAX_DEPTH)
        rust_v0_fail(v);
    return !v->failed;
}

static void rust_v0_leave(struct v0 *v)
{
    v->depth--;
}

static unsigned base62_digit(char c)
{
    return c >= '0' && c <= '9'   ? (unsigned)(c - '0')
           : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 10
           : c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 36
                                  : 62;
}

/* `_` is 0, `0_` is 1 ... */
static uint64_t base62(struct v0 *v)
{
    const char *digits = v->text.data + v->at, *end = v->text.data + v->text.size, *c = digits;
    uint64_t value = 0;
    bool over = false;
    for (; !v->failed && c < end && *c != '_' && !over; c++) {
        unsigned digit = base62_digit(*c);
        over = digit == 62 || __builtin_mul_overflow(value, 62, &value) || __builtin_add_overflow(value, digit, &value);
    }
    bool none = c == digits;
    v->steps += (unsigned)(c - digits) + 1;
    if (v->failed || over || c == end || (!none && value == UINT64_MAX) || v->steps > MAX_STEPS) {
        rust_v0_fail(v);
        return 0;
    }
    v->at += (size_t)(c - digits) + 1;
    return none ? 0 : value + 1;
}

/* A number behind `tag`, one more than written; 0 = the tag is absent. */
static uint64_t optional62(struct v0 *v, char tag)
{
    if (!eat(v, tag))
        return 0;
    uint64_t value = base62(v);
    if (value == UINT64_MAX)
        rust_v0_fail(v);
    return value + 1;
}

/* Hexadecimal digits up to `_`. */
static struct sl_str hex_digits(struct v0 *v)
{
    size_t start = v->at;
    for (char c = rust_v0_next(v); !v->failed && c != '_'; c = rust_v0_next(v))
        if (sl_hex_digit(c) < 0 || (c >= 'A' && c <= 'F'))
            rust_v0_fail(v);
    return v->failed ? (struct sl_str){"", 0} : (struct sl_str){v->text.data + start, v->at - 1 - start};
}

/* ---- showing ---- */

static void rust_v0_show(struct v0 *v, struct sl_str text)
{
    if (!v->out || v->failed)
        return;
    if (text.size > v->end - v->out->size)
        rust_v0_fail(v);
    else
        sl_buf_str(v->out, text);
}

static inline void say(struct v0 *v, const char *text)
{
    if (*text)
        rust_v0_show(v, sl_str(text));
}

static void show_number(struct v0 *v, uint64_t value)
{
    char text[20], *begin = text + sizeof text;
    do
        *--begin = (char)('0' + value % 10);
    while (value /= 10);
    rust_v0_show(v, (struct sl_str){begin, (size_t)(text + sizeof text - begin)});
}

static void show_char(struct v0 *v, uint32_t c)
{
    char text[4];
    rust_v0_show(v, (struct sl_str){text, sl_utf8_encode(c, text)});
}

/* As in Rust source, between `quote`s. */
static void show_escaped(struct v0 *v, uint32_t c, char quote)
{
    static const struct {
        uint32_t c;
        const char *text;
    } escapes[] = {{0, "\\0"}, {'\t', "\\t"}, {'\n', "\\n"}, {'\r', "\\r"}, {'\\', "\\\\"}};
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
        if (escapes[i].c == c) {
            say(v, escapes[i].text);
            return;
        }
    if (c < 0x20 || c == 0x7F) {
        char text[16];
        snprintf(text, sizeof text, "\\u{%x}", c);
        say(v, text);
        return;
    }
    if (c == (uint32_t)quote)
        say(v, "\\");
    show_char(v, c);
}

/* ---- identifiers ---- */

struct identifier {
    struct sl_str ascii, punycode;
};

static struct identifier undisambiguated(struct v0 *v)
{
    struct identifier id = {{"", 0}, {"", 0}};
    bool unicode = eat(v, 'u');
    size_t length = 0;
    char c = rust_v0_next(v);
    if (c < '0' || c > '9')
        rust_v0_fail(v);
    length = (size_t)(c - '0');
    while (length && peek(v) >= '0' && peek(v) <= '9' && length < v->text.size)
        length = length * 10 + (size_t)(rust_v0_next(v) - '0');
    eat(v, '_');
    if (v->failed || length > v->text.size - v->at) {
        rust_v0_fail(v);
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
        rust_v0_fail(v);
    return id;
}

static bool decode_punycode(struct identifier id, uint32_t *chars, size_t *count)
{
    if (!text_punycode(id.ascii, id.punycode, '0', chars, count))
        return false;
    for (size_t i = 0; i < *count; i++)
        if (chars[i] >= 0xD800 && chars[i] < 0xE000)
            return false;
    return true;
}

static void show_identifier(struct v0 *v, struct identifier id)
{
    uint32_t chars[TEXT_MAX_PUNYCODE];
    size_t count;
    if (!id.punycode.size) {
        rust_v0_show(v, id.ascii);
    } else if (v->out && decode_punycode(id, chars, &count)) {
        for (size_t i = 0; i < count; i++)
            show_char(v, chars[i]);
    } else {
        say(v, "punycode{");
        rust_v0_show(v, id.ascii);
        say(v, id.ascii.size ? "-" : "");
        rust_v0_show(v, id.punycode);
        say(v, "}");
    }
}

/* ---- references, lifetimes, lists ---- */

/* Continues where the reference points and returns the place to come back to with `at`; false when nothing is to be
 * shown, or it does not point backwards. */
static bool follow(struct v0 *v, size_t *back)
{
    size_t here = v->at - 1; /* of the `B` */
    uint64_t target = base62(v);
    if (target >= here)
        rust_v0_fail(v);
    if (v->failed || !v->out || !enter(v))
        return false;
    *back = v->at;
    v->at = (size_t)target;
    return true;
}

static void come_back(struct v0 *v, size_t back)
{
    v->at = back;
    rust_v0_leave(v);
}

/* 0 is the erased lifetime, 1 the innermost bound one. */
static void show_lifetime(struct v0 *v, uint64_t index)
{
    if (index == 0) {
        say(v, "'_");
        return;
    }
    if (index > v->lifetimes) {
        rust_v0_fail(v);
        return;
    }
    uint64_t depth = v->lifetimes - index;
    char letter[3] = {'\'', depth < 26 ? (char)('a' + depth) : '_', '\0'};
    say(v, letter);
    if (depth >= 26)
        show_number(v, depth);
}

/* `G`: shows `for<'a, 'b> ` and returns how many lifetimes it binds. */
static uint64_t binder(struct v0 *v)
{
    uint64_t count = optional62(v, 'G');
    if (v->failed || count > MAX_STEPS) {
        rust_v0_fail(v);
        return 0;
    }
    if (count)
        say(v, "for<");
    for (uint64_t i = 0; i < count && !v->failed && v->out; i++) {
        say(v, i ? ", " : "");
        v->lifetimes++;
        show_lifetime(v, 1);
    }
    if (!v->out)
        v->lifetimes += count;
    if (count)
        say(v, "> ");
    return count;
}

static void generic_argument(struct v0 *v)
{
    if (eat(v, 'L'))
        show_lifetime(v, base62(v));
    else if (eat(v, 'K'))
        constant(v, false);
    else
        type(v);
}

/* Items up to `E`, with commas; returns their number. */
static size_t list(struct v0 *v, void (*item)(struct v0 *))
{
    size_t count = 0;
    for (; !v->failed && !eat(v, 'E'); count++) {
        if (count)
            say(v, ", ");
        item(v);
    }
    return count;
}

/* ---- paths ---- */

static void silent_impl_path(struct v0 *v)
{
    struct sl_buf *out = v->out;
    optional62(v, 's');
    v->out = NULL;
    path(v, false);
    v->out = out;
}

static void nested(struct v0 *v, bool value)
{
    char space = rust_v0_next(v);
    if (!((space >= 'a' && space <= 'z') || (space >= 'A' && space <= 'Z')))
        rust_v0_fail(v);
    path(v, value);
    uint64_t number = optional62(v, 's');
    struct identifier id = undisambiguated(v);
    bool named = id.ascii.size || id.punycode.size;
    if (space >= 'a') {
        say(v, named ? "::" : "");
        show_identifier(v, id);
        return;
    }
    char other[2] = {space, '\0'};
    say(v, "::{");
    say(v, space == 'C' ? "closure" : space == 'S' ? "shim" : other);
    say(v, named ? ":" : "");
    show_identifier(v, id);
    say(v, "#");
    show_number(v, number);
    say(v, "}");
}

static void qualified(struct v0 *v, bool trait)
{
    say(v, "<");
    type(v);
    if (trait) {
        say(v, " as ");
        path(v, false);
    }
    say(v, ">");
}

/* Leaves the `>` of generic arguments out: the caller has more to put before it. Returns whether it is due. */
static bool open_path(struct v0 *v)
{
    size_t back;
    bool open = false;
    if (eat(v, 'B')) {
        if (follow(v, &back)) {
            open = open_path(v);
            come_back(v, back);
        }
    } else if (eat(v, 'I')) {
        path(v, false);
        say(v, "<");
        list(v, generic_argument);
        open = true;
    } else {
        path(v, false);
    }
    return open;
}

/* `value`: where an expression stands, generic arguments are written `::<...>`. */
static void path(struct v0 *v, bool value)
{
    size_t back;
    if (enter(v)) {
        switch (rust_v0_next(v)) {
        case 'C':
            optional62(v, 's');
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
            say(v, value ? "::<" : "<");
            list(v, generic_argument);
            say(v, ">");
            break;
        case 'B':
            if (follow(v, &back)) {
                path(v, value);
                come_back(v, back);
            }
            break;
        default: rust_v0_fail(v);
        }
    }
    rust_v0_leave(v);
}

/* ---- types ---- */

static const char *basic_type(char c)
{
    static const char *const names[26] = {"i8",    "bool", "char", "f64", "str",  "f32",  NULL,  "u8", "isize",
                                          "usize", NULL,   "i32",  "u32", "i128", "u128", "_",   NULL, NULL,
                                          "i16",   "u16",  "()",   "...", NULL,   "i64",  "u64", "!"};
    return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

static void function_type(struct v0 *v)
{
    uint64_t bound = binder(v);
    say(v, eat(v, 'U') ? "unsafe " : "");
    if (eat(v, 'K')) {
        say(v, "extern \"");
        if (eat(v, 'C')) {
            say(v, "C");
        } else {
            struct identifier abi = undisambiguated(v);
            if (!abi.ascii.size || abi.punycode.size)
                rust_v0_fail(v);
            for (size_t i = 0; i < abi.ascii.size; i++)
                show_char(v, abi.ascii.data[i] == '_' ? '-' : (uint8_t)abi.ascii.data[i]);
        }
        say(v, "\" ");
    }
    say(v, "fn(");
    list(v, type);
    say(v, ")");
    if (!eat(v, 'u')) {
        say(v, " -> ");
        type(v);
    }
    v->lifetimes -= bound;
}

static void dyn_trait(struct v0 *v)
{
    bool open = open_path(v);
    while (eat(v, 'p')) {
        say(v, open ? ", " : "<");
        open = true;
        show_identifier(v, undisambiguated(v));
        say(v, " = ");
        type(v);
    }
    say(v, open ? ">" : "");
}

static void dyn_type(struct v0 *v)
{
    say(v, "dyn ");
    uint64_t bound = binder(v);
    for (size_t i = 0; !v->failed && !eat(v, 'E'); i++) {
        say(v, i ? " + " : "");
        dyn_trait(v);
    }
    v->lifetimes -= bound;
    if (!eat(v, 'L'))
        rust_v0_fail(v);
    uint64_t lifetime = base62(v);
    if (lifetime) {
        say(v, " + ");
        show_lifetime(v, lifetime);
    }
}

static void reference(struct v0 *v, bool mutable)
{
    say(v, "&");
    uint64_t lifetime = eat(v, 'L') ? base62(v) : 0;
    if (lifetime) {
        show_lifetime(v, lifetime);
        say(v, " ");
    }
    say(v, mutable ? "mut " : "");
    type(v);
}

static void compound_type(struct v0 *v, char tag)
{
    size_t back;
    switch (tag) {
    case 'A':
    case 'S':
        say(v, "[");
        type(v);
        if (tag == 'A') {
            say(v, "; ");
            constant(v, true);
        }
        say(v, "]");
        break;
    case 'T':
        say(v, "(");
        say(v, list(v, type) == 1 ? ",)" : ")");
        break;
    case 'R':
    case 'Q': reference(v, tag == 'Q'); break;
    case 'P':
    case 'O':
        say(v, tag == 'P' ? "*const " : "*mut ");
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
        v->at--; /* the tag is the path's */
        path(v, false);
    }
}

static void type(struct v0 *v)
{
    if (enter(v)) {
        char tag = rust_v0_next(v);
        const char *basic = basic_type(tag);
        if (basic)
            say(v, basic);
        else if (!v->failed)
            compound_type(v, tag);
    }
    rust_v0_leave(v);
}

/* ---- constants ---- */

static bool hex_value(struct sl_str digits, uint64_t *value)
{
    *value = 0;
    return !digits.size || sl_parse_hex_u64(digits, value);
}

static void integer(struct v0 *v, bool is_signed)
{
    uint64_t value;
    say(v, is_signed && eat(v, 'n') ? "-" : "");
    struct sl_str digits = hex_digits(v);
    if (hex_value(digits, &value)) {
        show_number(v, value);
    } else {
        say(v, "0x");
        rust_v0_show(v, digits);
    }
}

static void character(struct v0 *v)
{
    uint64_t c;
    if (!hex_value(hex_digits(v), &c) || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
        rust_v0_fail(v);
        return;
    }
    say(v, "'");
    show_escaped(v, (uint32_t)c, '\'');
    say(v, "'");
}

/* The text as the bytes of its UTF-8. */
static void string(struct v0 *v)
{
    struct sl_str digits = hex_digits(v);
    struct sl_buf bytes = {0};
    if (digits.size % 2)
        rust_v0_fail(v);
    for (size_t i = 0; i + 1 < digits.size; i += 2)
        sl_buf_u8(&bytes, (uint8_t)(sl_hex_digit(digits.data[i]) << 4 | sl_hex_digit(digits.data[i + 1])));
    struct sl_str text = sl_buf_view(&bytes);
    if (bytes.failed || !sl_str_is_utf8(text))
        rust_v0_fail(v);
    say(v, "\"");
    for (size_t at = 0; at < text.size && !v->failed;)
        show_escaped(v, sl_utf8_next(text, &at), '"');
    say(v, "\"");
    sl_buf_free(&bytes);
}

static void element(struct v0 *v)
{
    constant(v, true);
}

static void field(struct v0 *v)
{
    optional62(v, 's');
    show_identifier(v, undisambiguated(v));
    say(v, ": ");
    constant(v, true);
}

static void structure(struct v0 *v)
{
    path(v, true);
    switch (rust_v0_next(v)) {
    case 'U': break;
    case 'T':
        say(v, "(");
        list(v, element);
        say(v, ")");
        break;
    case 'S':
        say(v, " { ");
        list(v, field);
        say(v, " }");
        break;
    default: rust_v0_fail(v);
    }
}

/* Constants that are more than a literal stand in braces among generic arguments; text behind a reference is one. */
static void compound_constant(struct v0 *v, char tag, bool value)
{
    if (tag == 'R' && eat(v, 'e')) {
        string(v);
        return;
    }
    say(v, value ? "" : "{");
    switch (tag) {
    case 'e':
        say(v, "*");
        string(v);
        break;
    case 'R':
    case 'Q':
        say(v, tag == 'R' ? "&" : "&mut ");
        constant(v, true);
        break;
    case 'A':
        say(v, "[");
        list(v, element);
        say(v, "]");
        break;
    case 'T':
        say(v, "(");
        say(v, list(v, element) == 1 ? ",)" : ")");
        break;
    case 'V': structure(v); break;
    default: rust_v0_fail(v);
    }
    say(v, value ? "" : "}");
}

static void constant(struct v0 *v, bool value)
{
    size_t back;
    uint64_t truth;
    if (enter(v)) {
        char tag = rust_v0_next(v);
        switch (tag) {
        case 'p': say(v, "_"); break;
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
            if (!hex_value(hex_digits(v), &truth) || truth > 1)
                rust_v0_fail(v);
            else
                say(v, truth ? "true" : "false");
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
    rust_v0_leave(v);
}

bool rust_v0(struct sl_str name, struct sl_buf *out, size_t limit)
{
    size_t skip = 0;
    while (skip < 2 && skip < name.size && name.data[skip] == '_')
        skip++;
    if (name.size < skip + 3 || name.data[skip] != 'R' || name.data[skip + 1] < 'A' || name.data[skip + 1] > 'Z' ||
        !text_is_plain(name))
        return false;
    struct v0 v = {
        .text = {name.data + skip + 1, name.size - skip - 1}, .out = out, .end = out ? out->size + limit : 0};
    struct sl_str suffix;
    path(&v, true);
    if (peek(&v) >= 'A' && peek(&v) <= 'Z') { /* the crate that instantiated a generic */
        v.out = NULL;
        path(&v, false);
        v.out = out;
    }
    if (v.failed || !rust_suffix((struct sl_str){v.text.data + v.at, v.text.size - v.at}, &suffix))
        return false;
    rust_v0_show(&v, suffix);
    return !v.failed;
}
