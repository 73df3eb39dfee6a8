/* Detects the language of a name and calls its demangler. */
#include "demangle/demangle.h"

#include <stdlib.h>

#include "demangle/llvm.h"
#include "demangle/microsoft.h"
#include "demangle/rust.h"
#include "demangle/swift.h"
#include "demangle/text.h"

enum {
    MAX_NAME = 64 * 1024,
    MAX_OUTPUT = 4096,
    MAX_RUST_OUTPUT = 16 * 1024, /* generic arguments are printed in full */
    /* LLVM's demangler recurses with the nesting of a name, with up to several hundred bytes of stack for each character. */
    MAX_CPP_NAME = 4096,
    MAX_TOOL_OUTPUT = 256 * 1024, /* for C++ in the styles of tools, which have no limit themselves */
};

static bool starts(struct sl_str name, const char *prefix)
{
    return sl_str_starts(name, sl_str(prefix));
}

/* ---- detection ---- */

/* True for a name that Microsoft's compiler replaced by its MD5 sum because it was too long: nothing can be demangled. */
static bool is_md5(struct sl_str name)
{
    if (name.size != 36 || !starts(name, "??@") || name.data[35] != '@')
        return false;
    for (size_t i = 3; i < 35; i++)
        if (sl_hex_digit(name.data[i]) < 0)
            return false;
    return true;
}

/* True for a method of Objective-C: "-[Class method:]" or "+[Class method]". */
static bool is_objc(struct sl_str name)
{
    return name.size >= 3 && (name.data[0] == '-' || name.data[0] == '+') && name.data[1] == '[' &&
           name.data[name.size - 1] == ']';
}

/* Returns the length of the one to four underscores and the `Z` with which an Itanium name begins; 0 for any other name. */
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

/* True if the name begins like one of Swift's manglings, of all versions. */
static bool is_swift(struct sl_str name)
{
    static const char *const prefixes[] = {"$s", "_$s", "$S", "_$S", "$e", "_$e", "_T", "@__swiftmacro_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (starts(name, prefixes[i]))
            return true;
    return false;
}

/* ---- C++ ---- */

/* Returns the name without `$` and 32 hex digits at its end, which some linkers append. */
static struct sl_str without_hash_suffix(struct sl_str name)
{
    if (name.size <= 33 || name.data[name.size - 33] != '$')
        return name;
    for (size_t i = name.size - 32; i < name.size; i++)
        if (sl_hex_digit(name.data[i]) < 0)
            return name;
    return (struct sl_str){name.data, name.size - 33};
}

/* Demangles a C++ name of the Itanium ABI. LLVM's demangler first gets the name with one underscore before the `Z`: `skip` is the number of
 * others, which platforms prefix. If it refuses that name and there are three or four underscores, it gets the whole name: "___Z" begins
 * the block of a function. Tools have no limit of output, so in their styles a larger buffer is tried. */
static bool demangle_cpp(struct sl_str name, enum sl_demangle_style style, struct sl_buf *out)
{
    char usual[MAX_OUTPUT], *readable = usual;
    bool as_tool = style == SL_DEMANGLE_GNU || style == SL_DEMANGLE_LLVM;
    size_t prefix = itanium_prefix(name), capacity = sizeof usual;
    if (!prefix || name.size > MAX_CPP_NAME)
        return false;
    name = without_hash_suffix(name);
    size_t skip = prefix - 2, size = demangle_itanium(name.data + skip, name.size - skip, style, readable, capacity);
    if (!size && as_tool && (readable = malloc(MAX_TOOL_OUTPUT))) { /* size 0: refused, or too long */
        capacity = MAX_TOOL_OUTPUT;
        size = demangle_itanium(name.data + skip, name.size - skip, style, readable, capacity);
    }
    if (!size && prefix > 3 && readable) /* NULL only when out of memory */
        size = demangle_itanium(name.data, name.size, style, readable, capacity);
    sl_buf_add(out, readable, size);
    if (readable != usual)
        free(readable);
    return size > 0;
}

/* Demangles a C++ name of Microsoft's compiler; false if it cannot. An `@` before the question mark is skipped. With `full` it prints
 * result types, too. */
static bool demangle_msvc(struct sl_str name, bool full, struct sl_buf *out)
{
    if (name.size > MAX_CPP_NAME)
        return false;
    if (starts(name, "@?"))
        name = (struct sl_str){name.data + 1, name.size - 1};
    return microsoft_demangle(name, full, out, MAX_OUTPUT);
}

/* ---- interface ---- */

/* True if the name is well-formed in one of Rust's two manglings: without output they only check it. */
static bool is_rust(struct sl_str name)
{
    return rust_v0(name, NULL, 0) || rust_legacy(name, NULL, 0);
}

/* False if no mangling has names with this first character, which is quick to tell for most names. */
static bool may_be_mangled(struct sl_str name)
{
    return name.size && memchr("_?$@-+RZ", name.data[0], 8);
}

enum sl_language sl_demangle_detect(struct sl_str name)
{
    if (!may_be_mangled(name))
        return SL_LANG_UNKNOWN;
    if (is_objc(name))
        return SL_LANG_OBJC;
    if (is_rust(name)) /* before C++: the legacy mangling is also a well-formed C++ name */
        return SL_LANG_RUST;
    if (itanium_prefix(name) || is_microsoft(name))
        return SL_LANG_CPP;
    return is_swift(name) ? SL_LANG_SWIFT : SL_LANG_UNKNOWN;
}

/* Calls the demangler of the language, or, for SL_LANG_UNKNOWN, of the language that sl_demangle_detect() returns. False if the name is not
 * mangled; `out` may then have a part of a name. Objective-C names are not mangled but written as they are. */
static bool demangle(struct sl_str name, enum sl_language language, enum sl_demangle_style style, struct sl_buf *out)
{
    bool full = style != SL_DEMANGLE_CRASH;
    switch (language == SL_LANG_UNKNOWN ? sl_demangle_detect(name) : language) {
    case SL_LANG_OBJC: sl_buf_str(out, name); return true;
    case SL_LANG_OBJCPP:
        if (!is_objc(name))
            return demangle_cpp(name, style, out);
        sl_buf_str(out, name);
        return true;
    case SL_LANG_CPP: return is_microsoft(name) ? demangle_msvc(name, full, out) : demangle_cpp(name, style, out);
    case SL_LANG_RUST: /* LLVM's tools treat the legacy mangling as C++ and show the hash */
        return rust_v0(name, out, MAX_RUST_OUTPUT) ||
               (style == SL_DEMANGLE_LLVM ? demangle_cpp(name, style, out) : rust_legacy(name, out, MAX_RUST_OUTPUT));
    case SL_LANG_SWIFT: /* - 1: Symbolicator's buffer has MAX_OUTPUT bytes, one of them for a NUL */
        return swift_demangle(name, full, out, MAX_OUTPUT - 1);
    default: return false;
    }
}

/* Demangles a name. False, with nothing appended, if it is empty or too long or cannot be demangled. A name that Microsoft's compiler
 * replaced by its MD5 sum is appended unchanged. */
static bool demangle_checked(struct sl_str name, enum sl_language language, enum sl_demangle_style style,
                             struct sl_buf *out)
{
    size_t start = out->size;
    if (name.size == 0 || name.size > MAX_NAME)
        return false;
    if (is_md5(name)) {
        sl_buf_str(out, name);
        return true;
    }
    const struct sl_str stub = SL_STR("DYLD-STUB$$"); /* Mach-O: a jump to the function whose name follows */
    if (sl_str_starts(name, stub)) {
        sl_buf_str(out, stub);
        name = (struct sl_str){name.data + stub.size, name.size - stub.size};
    }
    if (!demangle(name, language, style, out)) {
        out->size = start;
        return false;
    }
    return true;
}

bool sl_demangle(struct sl_str name, enum sl_language language, struct sl_buf *out)
{
    return demangle_checked(name, language, SL_DEMANGLE_CRASH, out);
}

bool sl_demangle_full(struct sl_str name, struct sl_buf *out)
{
    return demangle_checked(name, SL_LANG_UNKNOWN, SL_DEMANGLE_PROFILE, out);
}

bool sl_demangle_styled(struct sl_str name, enum sl_language language, enum sl_demangle_style style, struct sl_buf *out)
{
    return demangle_checked(name, language, style, out);
}
