#include "function/undecorate.h"

/* Parses a decimal number of at most 32 bits; for any other text false, and `*value` is 0. */
static bool decimal(struct sl_str text, uint32_t *value)
{
    uint64_t number;
    bool good = sl_parse_u64(text, &number) && number <= UINT32_MAX;
    *value = good ? (uint32_t)number : 0;
    return good;
}

/* True for C++ names, which have no C decoration: Microsoft's manglings (`?f@@YAXXZ`), and readable names (`N::f(int)`). */
static bool is_cpp_name(struct sl_str name)
{
    if (name.data[0] == '?')
        return true;
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] == ':' || name.data[i] == '(' || name.data[i] == '<')
            return true;
    return false;
}

/* True for mangled names of Itanium C++ and Rust without an added underscore. `_ZwClose` and `_RtlUnwind` are decorated C names: no
 * mangled name continues like that. */
static bool is_mangled(struct sl_str name)
{
    if (name.size < 3 || name.data[0] != '_')
        return false;
    char kind = name.data[1], next = name.data[2];
    return (kind == 'Z' && next != 'w') || (kind == 'R' && !(next >= 'a' && next <= 'z'));
}

/* Returns the position of `@N` (N: bytes of parameters) at the end of the name; 0 if there is none. */
static size_t count_at(struct sl_str name, uint32_t *size)
{
    const char *at = memrchr(name.data, '@', name.size);
    size_t position = at ? (size_t)(at - name.data) : 0;
    return position && decimal((struct sl_str){at + 1, name.size - position - 1}, size) ? position : 0;
}

/* Removes `@N`, and an `@` in front of the name or doubled before N: `f@4`, `@f@4` and `f@@4` become `f`. DWARF leaves out the
 * underscore of other names already. */
struct sl_str sl_undecorate_linkage(struct sl_str name)
{
    uint32_t size;
    size_t position = name.size && !is_cpp_name(name) ? count_at(name, &size) : 0;
    if (!position)
        return name;
    size_t skip = name.data[0] == '@', end = position - (name.data[position - 1] == '@');
    return end > skip ? (struct sl_str){name.data + skip, end - skip} : name;
}

/* Removes the decoration of the calling conventions of 32-bit Windows: `_f` cdecl, `_f@4` stdcall, `@f@4` fastcall, `f@@4` vectorcall. */
struct sl_str sl_undecorate(struct sl_str name, uint32_t *parameters)
{
    uint32_t size = 0;
    if (parameters)
        *parameters = 0;
    if (!name.size || is_cpp_name(name))
        return name;
    size_t position = count_at(name, &size);
    bool prefixed = name.data[0] == '@' || name.data[0] == '_';
    if (position && (name.data[position - 1] == '@' || prefixed)) {
        /* one byte is removed: the first of two `@` at the end, or the one in front of the name */
        size_t skip = name.data[position - 1] == '@' ? 0 : 1;
        if (parameters)
            *parameters = size;
        return (struct sl_str){name.data + skip, position - 1};
    }
    return name.data[0] == '_' && !is_mangled(name) ? (struct sl_str){name.data + 1, name.size - 1} : name;
}
