#include "demangle/demangle.h"

#include "demangle/llvm.h"

enum {
    MAX_OUTPUT = 4096,
    /* Bounds recursion, and with it the stack: see llvm.h. */
    MAX_NAME = 4096,
};

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool starts(struct sl_str name, const char *prefix)
{
    return sl_str_starts(name, sl_str(prefix));
}

/* ---- detection ---- */

static bool is_md5(struct sl_str name)
{
    if (name.size != 36 || !starts(name, "??@") || name.data[35] != '@')
        return false;
    for (size_t i = 3; i < 35; i++)
        if (!is_hex(name.data[i]))
            return false;
    return true;
}

static bool is_objc(struct sl_str name)
{
    return name.size >= 3 && (name.data[0] == '-' || name.data[0] == '+') && name.data[1] == '[' &&
           name.data[name.size - 1] == ']';
}

/* Length of the leading underscores and `Z` of an Itanium name; 0 = none. */
static size_t itanium_prefix(struct sl_str name)
{
    size_t underscores = 0;
    while (underscores < name.size && underscores < 5 && name.data[underscores] == '_')
        underscores++;
    bool found = underscores >= 1 && underscores <= 4 && underscores < name.size && name.data[underscores] == 'Z';
    return found ? underscores + 1 : 0;
}

static bool is_microsoft(struct sl_str name)
{
    return starts(name, "?") || starts(name, "@?");
}

static bool is_swift(struct sl_str name)
{
    static const char *const prefixes[] = {"$s", "_$s", "$S", "_$S", "$e", "_$e", "_T", "@__swiftmacro_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (starts(name, prefixes[i]))
            return true;
    return false;
}

/* ---- Rust ---- */

struct legacy { /* the identifiers of a legacy name, `17h<16 hex>E` cut off */
    struct sl_str body;
};

static struct sl_str without_llvm_suffix(struct sl_str name)
{
    const char *at = memmem(name.data, name.size, ".llvm.", 6);
    return at ? (struct sl_str){name.data, (size_t)(at - name.data)} : name;
}

/* `_ZN` identifiers `17h` sixteen hex digits `E`. */
static bool split_legacy(struct sl_str name, struct legacy *out)
{
    size_t prefix = itanium_prefix(name);
    name = without_llvm_suffix(name);
    if (!prefix || name.size < prefix + 22 || name.data[prefix] != 'N' || name.data[name.size - 1] != 'E')
        return false;
    struct sl_str hash = {name.data + name.size - 20, 20};
    if (memcmp(hash.data, "17h", 3) != 0)
        return false;
    for (size_t i = 3; i < 19; i++)
        if (!is_hex(hash.data[i]) || (hash.data[i] >= 'A' && hash.data[i] <= 'F'))
            return false;
    out->body = (struct sl_str){name.data + prefix + 1, name.size - prefix - 1 - 20};
    return out->body.size > 0;
}

static bool next_identifier(struct sl_str *body, struct sl_str *identifier)
{
    size_t length = 0, digits = 0;
    while (digits < body->size && digits < 5 && body->data[digits] >= '0' && body->data[digits] <= '9')
        length = length * 10 + (size_t)(body->data[digits++] - '0');
    if (!digits || !length || length > body->size - digits)
        return false;
    *identifier = (struct sl_str){body->data + digits, length};
    *body = (struct sl_str){identifier->data + length, body->size - digits - length};
    return true;
}

static bool is_rust_legacy(struct sl_str name)
{
    struct legacy legacy;
    struct sl_str identifier;
    if (!split_legacy(name, &legacy))
        return false;
    while (legacy.body.size)
        if (!next_identifier(&legacy.body, &identifier))
            return false;
    return true;
}

static size_t rust_v0_prefix(struct sl_str name)
{
    size_t skip = starts(name, "_R") ? 2 : starts(name, "__R") ? 3 : 0;
    return skip && name.size > skip && name.data[skip] >= 'A' && name.data[skip] <= 'Z' ? skip : 0;
}

static void add_utf8(struct sl_buf *out, uint32_t c)
{
    if (c < 0x80) {
        sl_buf_u8(out, (uint8_t)c);
    } else if (c < 0x800) {
        sl_buf_u8(out, (uint8_t)(0xC0 | c >> 6));
        sl_buf_u8(out, (uint8_t)(0x80 | (c & 63)));
    } else {
        if (c >= 0x10000)
            sl_buf_u8(out, (uint8_t)(0xF0 | c >> 18));
        sl_buf_u8(out, (uint8_t)(c >= 0x10000 ? 0x80 | (c >> 12 & 63) : 0xE0 | c >> 12));
        sl_buf_u8(out, (uint8_t)(0x80 | (c >> 6 & 63)));
        sl_buf_u8(out, (uint8_t)(0x80 | (c & 63)));
    }
}

/* `$LT$` and its like, `$u7e$`, `..`; false for an escape nobody knows: the rest is kept as it is. */
static bool add_escape(struct sl_buf *out, struct sl_str escape)
{
    static const struct {
        const char *name, *text;
    } known[] = {
        {"SP", "@"}, {"BP", "*"}, {"RF", "&"}, {"LT", "<"}, {"GT", ">"}, {"LP", "("}, {"RP", ")"}, {"C", ","},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (sl_str_equal(escape, sl_str(known[i].name))) {
            sl_buf_cstr(out, known[i].text);
            return true;
        }
    uint32_t code = 0;
    if (escape.size < 2 || escape.size > 7 || escape.data[0] != 'u')
        return false;
    for (size_t i = 1; i < escape.size; i++) {
        char c = escape.data[i];
        if (!is_hex(c))
            return false;
        code = code << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    if (code < 0x20 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return false;
    add_utf8(out, code);
    return true;
}

static void add_rust_identifier(struct sl_buf *out, struct sl_str id)
{
    if (starts(id, "_$"))
        id = (struct sl_str){id.data + 1, id.size - 1};
    while (id.size) {
        size_t used = 1;
        const char *end = id.data[0] == '$' ? memchr(id.data + 1, '$', id.size - 1) : NULL;
        if (id.data[0] == '.' && id.size > 1 && id.data[1] == '.') {
            sl_buf_cstr(out, "::");
            used = 2;
        } else if (end && add_escape(out, (struct sl_str){id.data + 1, (size_t)(end - id.data) - 1})) {
            used = (size_t)(end - id.data) + 1;
        } else if (id.data[0] == '$') {
            sl_buf_str(out, id);
            used = id.size;
        } else {
            sl_buf_u8(out, (uint8_t)id.data[0]);
        }
        id = (struct sl_str){id.data + used, id.size - used};
    }
}

static bool demangle_rust_legacy(struct sl_str name, struct sl_buf *out)
{
    struct legacy legacy;
    struct sl_str identifier;
    if (!split_legacy(name, &legacy))
        return false;
    for (bool first = true; legacy.body.size; first = false) {
        if (!next_identifier(&legacy.body, &identifier))
            return false;
        if (!first)
            sl_buf_cstr(out, "::");
        add_rust_identifier(out, identifier);
    }
    return true;
}

static bool demangle_rust(struct sl_str name, struct sl_buf *out)
{
    char text[MAX_NAME + 2], readable[MAX_OUTPUT];
    size_t prefix = rust_v0_prefix(name);
    if (!prefix)
        return demangle_rust_legacy(name, out);
    name = without_llvm_suffix(name);
    if (name.size > MAX_NAME)
        return false;
    memcpy(text, "_R", 2); /* LLVM knows one underscore only */
    memcpy(text + 2, name.data + prefix, name.size - prefix);
    text[2 + name.size - prefix] = '\0';
    size_t size = demangle_rust_v0(text, readable, sizeof readable);
    sl_buf_add(out, readable, size);
    return size > 0;
}

/* ---- C++ ---- */

/* `$` and 32 hex digits at the end, as some linkers append. */
static struct sl_str without_hash_suffix(struct sl_str name)
{
    if (name.size <= 33 || name.data[name.size - 33] != '$')
        return name;
    for (size_t i = name.size - 32; i < name.size; i++)
        if (!is_hex(name.data[i]))
            return name;
    return (struct sl_str){name.data, name.size - 33};
}

static bool demangle_cpp(struct sl_str name, bool full, struct sl_buf *out)
{
    char readable[MAX_OUTPUT];
    size_t prefix = itanium_prefix(name);
    if (!prefix)
        return false;
    name = without_hash_suffix(name);
    /* `.isra.0` and its like stand behind the mangling (Itanium ABI, 5.1.1: vendor suffixes begin with a dot). */
    const char *dot = memchr(name.data, '.', name.size);
    struct sl_str suffix = dot ? (struct sl_str){dot, name.size - (size_t)(dot - name.data)} : (struct sl_str){"", 0};
    name.size -= suffix.size;
    const char *begin = name.data + prefix - 2; /* exactly one underscore */
    size_t size = demangle_itanium(begin, name.size - (prefix - 2), full, readable, sizeof readable);
    if (!size || size + suffix.size + 9 > MAX_OUTPUT)
        return false;
    sl_buf_add(out, readable, size);
    if (suffix.size > 1) {
        sl_buf_cstr(out, " [clone ");
        sl_buf_str(out, suffix);
        sl_buf_cstr(out, "]");
    }
    return true;
}

/* LLVM writes `void *`, `T const &` and `deleting dtor'`; here the sigil touches the type and words are written out. */
static bool demangle_msvc(struct sl_str name, bool full, struct sl_buf *out)
{
    char readable[MAX_OUTPUT];
    if (starts(name, "@?"))
        name = (struct sl_str){name.data + 1, name.size - 1};
    size_t size = demangle_microsoft(name.data, name.size, full, readable, sizeof readable);
    for (size_t i = 0; i < size; i++) {
        if (size - i >= 6 && memcmp(readable + i, " dtor'", 6) == 0) {
            sl_buf_cstr(out, " destructor'");
            i += 5;
            continue;
        }
        bool hug = readable[i] == ' ' && i + 1 < size && (readable[i + 1] == '*' || readable[i + 1] == '&') && i > 0 &&
                   readable[i - 1] != ',';
        if (!hug)
            sl_buf_u8(out, (uint8_t)readable[i]);
    }
    return size > 0;
}

/* ---- the interface ---- */

enum sl_language sl_demangle_detect(struct sl_str name)
{
    if (is_objc(name))
        return SL_LANG_OBJC;
    if (rust_v0_prefix(name) || is_rust_legacy(name))
        return SL_LANG_RUST;
    if (itanium_prefix(name) || is_microsoft(name))
        return SL_LANG_CPP;
    return is_swift(name) ? SL_LANG_SWIFT : SL_LANG_UNKNOWN;
}

static bool demangle(struct sl_str name, enum sl_language language, bool full, struct sl_buf *out)
{
    switch (language == SL_LANG_UNKNOWN ? sl_demangle_detect(name) : language) {
    case SL_LANG_OBJC: sl_buf_str(out, name); return true;
    case SL_LANG_OBJCPP:
        if (!is_objc(name))
            return demangle_cpp(name, full, out);
        sl_buf_str(out, name);
        return true;
    case SL_LANG_CPP: return is_microsoft(name) ? demangle_msvc(name, full, out) : demangle_cpp(name, full, out);
    case SL_LANG_RUST: return demangle_rust(name, out);
    default: return false;
    }
}

static bool demangle_checked(struct sl_str name, enum sl_language language, bool full, struct sl_buf *out)
{
    size_t start = out->size;
    if (name.size == 0 || name.size > MAX_NAME)
        return false;
    if (is_md5(name)) {
        sl_buf_str(out, name);
        return true;
    }
    if (!demangle(name, language, full, out) || out->size - start > MAX_OUTPUT) {
        out->size = start;
        return false;
    }
    return true;
}

bool sl_demangle(struct sl_str name, enum sl_language language, struct sl_buf *out)
{
    return demangle_checked(name, language, false, out);
}

bool sl_demangle_full(struct sl_str name, struct sl_buf *out)
{
    return demangle_checked(name, SL_LANG_UNKNOWN, true, out);
}
