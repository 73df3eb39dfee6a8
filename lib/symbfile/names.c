/* Makes readable names of functions: demangled, without template arguments and clone suffixes. Caches them. */
#include "symbfile/names.h"

#include "demangle/demangle.h"

#include <stdlib.h>

void names_init(struct symbfile_names *names, struct sl_bytes stable_bytes, struct sl_budget *budget)
{
    *names = (struct symbfile_names){.stable_bytes = stable_bytes, .account.budget = budget};
    names->map.budget = names->arena.budget = names->scratch.budget = names->full.budget = budget;
}

void names_free(struct symbfile_names *names)
{
    free(names->stable_names);
    free(names->stable_table.slots);
    sl_account_release(&names->account);
    sl_map_free(&names->map);
    sl_arena_free(&names->arena);
    sl_buf_free(&names->scratch);
    sl_buf_free(&names->full);
    names_init(names, names->stable_bytes, names->account.budget); /* empty, and can be used again */
}

/* Cuts the name before the last occurrence of `suffix`, if only digits follow it up to the end of the name or to a `.`: for ".isra."
 * "f.isra.0.cold" becomes "f". */
static struct sl_str strip_clone(struct sl_str name, const char *suffix)
{
    size_t size = strlen(suffix);
    for (size_t at = name.size; at-- > 0;) {
        if (name.size - at < size || memcmp(name.data + at, suffix, size) != 0)
            continue;
        size_t end = at + size;
        while (end < name.size && name.data[end] >= '0' && name.data[end] <= '9')
            end++;
        return end == name.size || name.data[end] == '.' ? (struct sl_str){name.data, at} : name;
    }
    return name;
}

/* Removes the suffixes that compilers give to clones and parts of a function: they are the same function in the source. */
static struct sl_str strip(struct sl_str name)
{
    static const char *const clones[] = {".clone.", ".constprop.", ".llvm.", ".isra.", ".part."};
    if (!name.size || !memchr(name.data, '.', name.size))
        return name;
    for (size_t i = 0; i < sizeof clones / sizeof *clones; i++)
        name = strip_clone(name, clones[i]);
    if (sl_str_ends(name, SL_STR(".cold")))
        name.size -= 5;
    return name;
}

/* True for a legacy Rust name: _ZN...17h<16 hex digits>E. */
static bool is_legacy_rust(struct sl_str name)
{
    enum { TAIL = 20 }; /* "17h", 16 digits, "E"; with "_ZN" 23 bytes */
    if (name.size <= 23 || !sl_str_starts(name, SL_STR("_ZN")) || name.data[name.size - 1] != 'E' ||
        memcmp(name.data + name.size - TAIL, "17h", 3) != 0)
        return false;
    for (size_t i = name.size - TAIL + 3; i < name.size - 1; i++)
        if (!strchr("0123456789abcdef", name.data[i]))
            return false;
    return true;
}

/* ---- template arguments ---- */

/* Returns the length of the operator at `at`, after the word "operator", if it is one with angle brackets, such as `<<=`; else 0. */
static size_t operator_sign(struct sl_str text, size_t at)
{
    /* longer ones first, as `<` begins `<<`, too */
    static const char *const signs[] = {"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t size = strlen(signs[i]);
        if (text.size - at >= size && memcmp(text.data + at, signs[i], size) == 0)
            return size;
    }
    return 0;
}

/* True for characters of an identifier. */
static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '$';
}

/* True if the word "operator" ends at `at`. */
static bool is_operator(struct sl_str text, size_t at)
{
    static const char word[] = "operator";
    enum { SIZE = sizeof word - 1 };
    return at >= SIZE && text.data[at - 1] == 'r' && memcmp(text.data + at - SIZE, word, SIZE) == 0 &&
           (at == SIZE || !is_word(text.data[at - SIZE - 1]));
}

/* Returns the offset of the next angle bracket or parenthesis at or after `at`; the size of the text if there is none. */
static size_t next_bracket(struct sl_str text, size_t at)
{
    static const bool brackets[256] = {['<'] = true, ['>'] = true, ['('] = true, [')'] = true};
    while (at < text.size && !brackets[(uint8_t)text.data[at]])
        at++;
    return at;
}

/* Appends the text without angle brackets and their contents. A `>` closes the last `<` only if as many parentheses are open as were there,
 * and not as part of `->`. Returns false and appends nothing if brackets stay open or are nested too deep. */
static bool drop_template_arguments(struct sl_str text, struct sl_buf *out)
{
    enum { MAX_NESTED = 256 };
    uint32_t open[MAX_NESTED], parens = 0;          /* number of open parentheses at each bracket */
    size_t height = 0, start = out->size, kept = 0; /* the text from `kept` on is not appended yet */
    for (size_t i = next_bracket(text, 0); i < text.size; i = next_bracket(text, i + 1)) {
        bool sign = text.data[i] == '<' || text.data[i] == '>';
        if (sign && is_operator(text, i)) { /* the brackets of `operator<` and the like belong to the name */
            i += operator_sign(text, i) - 1;
            continue;
        }
        switch (text.data[i]) {
        case '<':
            if (height == MAX_NESTED) {
                out->size = start;
                return false;
            }
            if (!height)
                sl_buf_add(out, text.data + kept, i - kept);
            open[height++] = parens;
            break;
        case '>':
            if (!height || (i && text.data[i - 1] == '-') || open[height - 1] != parens)
                break;
            if (--height == 0)
                kept = i + 1;
            break;
        case '(': parens++; break;
        case ')': parens -= parens > 0; break;
        }
    }
    if (height)
        out->size = start;
    else
        sl_buf_add(out, text.data + kept, text.size - kept);
    return !height;
}

void name_readable(struct sl_str name, struct sl_buf *full, struct sl_buf *out)
{
    name = strip(name);
    /* Rust names keep their generic arguments, which can begin a path: `<T as Trait>::f`; other names lose their template arguments
     * below */
    if ((sl_str_starts(name, SL_STR("_R")) || is_legacy_rust(name)) && sl_demangle(name, SL_LANG_RUST, out))
        return;
    sl_buf_clear(full);
    /* C++ names of the Itanium ABI; those of blocks (clang) begin with ___Z */
    bool itanium = sl_str_starts(name, SL_STR("_Z")) || sl_str_starts(name, SL_STR("___Z"));
    if (!itanium || !sl_demangle_full(name, full))
        sl_buf_str(out, name);
    else if (!drop_template_arguments(sl_buf_view(full), out))
        sl_buf_str(out, sl_buf_view(full));
}

void names_clear_recent(struct symbfile_names *names)
{
    memset(names->recent, 0, sizeof names->recent);
}

/* Returns the readable form of a name, in the arena; data NULL if out of memory. */
static struct sl_str make_readable(struct symbfile_names *names, struct sl_str name)
{
    sl_buf_clear(&names->scratch);
    name_readable(name, &names->full, &names->scratch);
    struct sl_str made = sl_buf_view(&names->scratch);
    bool failed = names->scratch.failed || names->full.failed;
    return (struct sl_str){failed ? NULL : sl_arena_strndup(&names->arena, made.data, made.size), made.size};
}

/* Records in names->failed that memory or budget ran out, and returns the name itself, so that callers need no check. */
static struct sl_str fail_unchanged(struct symbfile_names *names, struct sl_str name)
{
    names->failed = true;
    return name;
}

/* ---- names in `stable_bytes` ---- */
/* True if the entry is the name `key`. Compares addresses, not text: names in `stable_bytes` do not move. */
static bool same_stable_name(const void *stable_names, uint32_t i, const void *key)
{
    const struct stable_name *stable = (const struct stable_name *)stable_names + i;
    const struct sl_str *name = key;
    return stable->name == name->data && stable->size == name->size;
}

/* Returns the readable form of a name in `stable_bytes`, looked up by address and size; makes it at the first use. Returns the name itself
 * if memory or budget runs out. */
static struct sl_str symbfile_names_get_stable(struct symbfile_names *names, struct sl_str name)
{
    uint32_t hash = (uint32_t)((uintptr_t)name.data * 0x9E3779B97F4A7C15u >> 32); /* Fibonacci hashing */
    struct sl_id_slot *slot =
        sl_id_table_find(&names->stable_table, &names->account, hash, same_stable_name, names->stable_names, &name);
    if (!slot)
        return fail_unchanged(names, name);
    if (!sl_id_table_has(&names->stable_table, slot)) {
        struct sl_str readable = make_readable(names, name);
        if (!readable.data || name.size > UINT32_MAX || readable.size > UINT32_MAX ||
            !sl_account_grow(&names->account, &names->stable_names, &names->stable_capacity, names->stable_count + 1,
                             sizeof *names->stable_names))
            return fail_unchanged(names, name);
        names->stable_names[names->stable_count] =
            (struct stable_name){name.data, readable.data, (uint32_t)name.size, (uint32_t)readable.size};
        sl_id_table_put(&names->stable_table, slot, hash, (uint32_t)names->stable_count++);
    }
    const struct stable_name *stable = &names->stable_names[sl_id_table_id(&names->stable_table, slot)];
    return (struct sl_str){stable->readable, stable->readable_size};
}

/* ---- other names ---- */
/* Returns the readable form of a name, looked up by its text; makes it at the first use. Returns the name itself if memory or budget runs
 * out. */
static struct sl_str by_text(struct symbfile_names *names, struct sl_str name)
{
    const struct sl_str *known = sl_map_get(&names->map, name);
    if (known)
        return *known;
    struct sl_str readable = make_readable(names, name), *value = SL_ARENA_NEW(&names->arena, struct sl_str);
    char *key = sl_arena_strndup(&names->arena, name.data, name.size);
    void **slot =
        value && readable.data && key ? sl_map_find_or_add(&names->map, (struct sl_str){key, name.size}, NULL) : NULL;
    if (!slot)
        return fail_unchanged(names, name);
    *value = readable;
    *slot = value;
    return readable;
}

struct sl_str names_readable(struct symbfile_names *names, struct sl_str name)
{
    /* true if the name lies in `stable_bytes`: for a name before them the difference wraps around to a large number */
    if ((uintptr_t)name.data - (uintptr_t)names->stable_bytes.data < names->stable_bytes.size)
        return symbfile_names_get_stable(names, name);
    /* other names are looked up by address first, which is faster than by text */
    size_t hash = ((uintptr_t)name.data ^ (uintptr_t)name.data >> 9) % NAMES_RECENT;
    if (names->recent[hash].name.data != name.data || names->recent[hash].name.size != name.size) {
        names->recent[hash].readable = by_text(names, name);
        names->recent[hash].name = name;
    }
    return names->recent[hash].readable;
}
