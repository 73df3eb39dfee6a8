/* Demangles a Swift name: chooses the reader by the prefix, and prints the tree that it makes. */
#include "demangle/swift.h"

#include "demangle/swift_tree.h"
#include "demangle/text.h"

enum { MAX_MEMORY = 4 << 20 };

/* Reads a symbol after its prefix; with `old` in the mangling before Swift 4. Returns an N_LIST of its attributes and the symbol; NULL if a
 * part is not supported or memory is short. */
static struct swift_node *read_symbol(struct swift_reader *r, bool old)
{
    r->stack = node_new(r, N_LIST);
    r->substitutions = node_new(r, N_LIST);
    if (!r->stack || !r->substitutions)
        return NULL;
    return old ? swift_read_old(r) : swift_read(r);
}

bool swift_demangle(struct sl_str name, bool returns, struct sl_buf *out, size_t limit)
{
    static const char *const prefixes[] = {"$s", "_$s", "$S", "_$S", "$e", "_$e", "@__swiftmacro_", "_T0", "_T"};
    /* indexes: from "_T0" (Swift 4.0) on, argument labels are mangled in the types; "_T" is the mangling before Swift 4 */
    enum { FIRST_LABELS_IN_TYPES = 7, FIRST_OLD = 8, COUNT };
    size_t prefix = 0;
    while (prefix < COUNT && !sl_str_starts(name, sl_str(prefixes[prefix])))
        prefix++;
    if (prefix == COUNT || !text_is_plain(name))
        return false;
    size_t skip = strlen(prefixes[prefix]);
    struct swift_reader r = {.text = {name.data + skip, name.size - skip},
                             .labels_in_types = prefix >= FIRST_LABELS_IN_TYPES};
    sl_arena_init(&r.arena, MAX_MEMORY);
    const struct swift_node *symbol = read_symbol(&r, prefix >= FIRST_OLD);
    bool good = symbol && swift_print(symbol, returns, out, limit);
    sl_arena_free(&r.arena);
    return good;
}
