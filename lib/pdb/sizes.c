/* Named types, and sizes of types, which give the dimensions of arrays. */
#include "pdb/impl.h"

/* Reads a "numeric leaf": a u16 below 0x8000 is the number itself; any other is the kind of the number after it (0x8000 LF_CHAR to 0x800A
 * LF_UQUADWORD). Other kinds, such as floating point numbers, set r->failed. */
uint64_t read_numeric(struct sl_reader *r)
{
    uint16_t leaf = sl_read_u16(r);
    if (leaf < 0x8000)
        return leaf;
    switch (leaf) {
    case 0x8000: return (uint64_t)(int8_t)sl_read_u8(r);
    case 0x8001: return (uint64_t)(int16_t)sl_read_u16(r);
    case 0x8002: return sl_read_u16(r);
    case 0x8003: return (uint64_t)(int32_t)sl_read_u32(r);
    case 0x8004: return sl_read_u32(r);
    case 0x8009:
    case 0x800A: return sl_read_u64(r);
    default: r->failed = true; return 0;
    }
}

/* Reads a record of a named type up to its name. The layouts (size is a numeric leaf; in the newer form count, too):
 *
 *     class      count u16, properties u16, fields, derived, vshape u32, size, name, unique name
 *     union      count u16, properties u16, fields u32, size, name, unique name
 *     enum       count u16, properties u16, underlying, fields u32, name, unique name
 *     class2     properties, fields, derived, vshape u32, count, size, name, unique name (newer form)
 *     union2     properties, fields u32, count, size, name, unique name */
struct named_type read_named_type(struct type_record *t)
{
    enum { FORWARD = 0x80, UNIQUE = 0x200 };
    struct sl_reader *r = &t->data;
    struct named_type type = {0};
    bool is_enum = t->leaf == LF_ENUM || t->leaf == LF_ENUM_ST;
    bool is_union = t->leaf == LF_UNION || t->leaf == LF_UNION_ST || t->leaf == LF_UNION2;
    bool is_newer = t->leaf >= LF_CLASS2;
    uint32_t first = sl_read_u32(r), properties = is_newer ? first : first >> 16;
    type.forward = properties & FORWARD;
    type.has_unique = properties & UNIQUE;
    type.underlying = sl_read_u32(r); /* of an enum; else `fields`, which is not used */
    if (!is_union)
        sl_reader_skip(r, is_enum ? 4 : 8);
    if (is_newer)
        read_numeric(r);
    if (!is_enum)
        type.size = read_numeric(r);
    bool counted = /* the name has its length in front, in place of a NUL behind it */
        t->leaf == LF_CLASS_ST || t->leaf == LF_STRUCTURE_ST || t->leaf == LF_UNION_ST || t->leaf == LF_ENUM_ST;
    if (counted) {
        struct sl_bytes text = sl_read_bytes(r, sl_read_u8(r));
        type.name = (struct sl_str){(const char *)text.data, text.size};
    } else {
        type.name = sl_read_cstr(r);
    }
    return type;
}

/* True for the kinds of records that define or declare a class, structure, interface, union or enumeration by name. */
bool is_named_type(uint16_t leaf)
{
    switch (leaf) {
    case LF_CLASS:
    case LF_STRUCTURE:
    case LF_INTERFACE:
    case LF_UNION:
    case LF_ENUM:
    case LF_CLASS2:
    case LF_STRUCTURE2:
    case LF_UNION2:
    case LF_INTERFACE2:
    case LF_CLASS_ST:
    case LF_STRUCTURE_ST:
    case LF_UNION_ST:
    case LF_ENUM_ST: return true;
    default: return false;
    }
}

/* ---- definitions ---- */

/* Returns the name by which a declaration finds its definition: the unique name if the record has one, else the name. Reads the unique name
 * from `t`, which must be behind the name (read_named_type). */
static struct sl_str get_definition_key(struct type_record *t, const struct named_type *type)
{
    return type->has_unique ? sl_read_cstr(&t->data) : type->name;
}

void definitions_free(struct definitions *d)
{
    sl_map_free(&d->by_name);
    sl_arena_free(&d->names);
}

/* Adds the record with type index `index` to the map if it is a definition; the first one if a name is defined twice. Ignores declarations
 * and damaged records (true). False when out of memory or budget. */
static bool define(struct name_printer *n, uint32_t index, struct type_record *t)
{
    struct definitions *d = &n->definitions;
    struct named_type type = read_named_type(t);
    struct sl_str key = type.forward ? type.name : get_definition_key(t, &type); /* not used if `forward` */
    if (type.forward || t->data.failed || !key.size || sl_map_get(&d->by_name, key))
        return true;
    const char *copy = sl_arena_strndup(&d->names, key.data, key.size);
    void **slot = copy ? sl_map_find_or_add(&d->by_name, (struct sl_str){copy, key.size}, NULL) : NULL;
    if (slot)
        *slot = (void *)(uintptr_t)index;
    return slot;
}

/* Reads all definitions of named types into the map. Called when the first size of a declared type is needed: most files need none. Lack of
 * memory or budget is recorded in the PDB. */
static void read_definitions(struct name_printer *n)
{
    const struct type_table *types = &n->pdb->types;
    struct definitions *d = &n->definitions;
    struct sl_arena scratch = {.budget = n->pdb->budget};
    struct type_record t;
    bool ok = true;
    d->read = true;
    d->names.budget = d->by_name.budget = n->pdb->budget;
    for (uint32_t i = types->begin; i < types->end && ok; i++) {
        sl_arena_reset(&scratch);
        ok = sl_account_spend(&n->account, STEPS_PER_RECORD);
        if (ok && type_table_get(types, i, &scratch, &t) && is_named_type(t.leaf))
            ok = sl_account_spend(&n->account, (uint32_t)sl_reader_left(&t.data) / BYTES_PER_STEP) && define(n, i, &t);
    }
    if (!ok)
        *n->pdb->msf.no_memory = true;
    sl_arena_free(&scratch);
}

/* Returns the type index of the definition of a declared type; 0 if there is none. `t` must be behind the name (read_named_type). */
static uint32_t find_definition(struct name_printer *n, struct type_record *t, const struct named_type *type)
{
    struct sl_str key = get_definition_key(t, type);
    if (!n->definitions.read)
        read_definitions(n);
    return t->data.failed ? 0 : (uint32_t)(uintptr_t)sl_map_get(&n->definitions.by_name, key);
}

/* ---- sizes ---- */

/* Returns the size of a simple type in bytes; 0 = unknown. The lowest byte of the index is the type; bits 8..11 are 0, or the kind of a
 * pointer to that type. */
static uint64_t simple_size(uint32_t index)
{
    /* by kind: none, 16-bit near, far, huge; 32-bit near, far; 64-bit, 128-bit */
    static const uint8_t of_pointer[16] = {0, 2, 4, 4, 4, 6, 8, 16};
    static const uint8_t sizes[256] = {
        [0x08] = 4, [0x10] = 1,  [0x11] = 2,  [0x12] = 4,  [0x13] = 8,  [0x14] = 16, [0x20] = 1,
        [0x21] = 2, [0x22] = 4,  [0x23] = 8,  [0x24] = 16, [0x30] = 1,  [0x31] = 2,  [0x32] = 4,
        [0x33] = 8, [0x40] = 4,  [0x41] = 8,  [0x42] = 10, [0x43] = 16, [0x44] = 6,  [0x45] = 4,
        [0x46] = 2, [0x50] = 8,  [0x51] = 16, [0x52] = 20, [0x53] = 32, [0x68] = 1,  [0x69] = 1,
        [0x70] = 1, [0x71] = 2,  [0x72] = 2,  [0x73] = 2,  [0x74] = 4,  [0x75] = 4,  [0x76] = 8,
        [0x77] = 8, [0x78] = 16, [0x79] = 16, [0x7A] = 2,  [0x7B] = 4,  [0x7C] = 1,
    };
    if (index == TYPE_NULLPTR) /* encoded as a 16-bit pointer, which is not its size */
        return 0;
    return index & 0xF00 ? of_pointer[index >> 8 & 15] : sizes[index & 0xFF];
}

/* Returns the size of a type in bytes; 0 = unknown. Follows modifiers, declarations and the underlying types of enumerations to a type with
 * a size, at most MAX_TYPE_DEPTH of them. */
uint64_t name_printer_value_size(struct name_printer *n, uint32_t index)
{
    struct type_record t;
    struct named_type type;
    for (unsigned i = 0; i < MAX_TYPE_DEPTH; i++) {
        if (type_is_simple(n, index))
            return simple_size(index);
        if (!name_printer_read_type(n, index, &t))
            return 0;
        switch (t.leaf) {
        case LF_MODIFIER: index = sl_read_u32(&t.data); continue;
        /* After the type pointed to, the attributes; bits 13..18 are the size. */
        case LF_POINTER: sl_read_u32(&t.data); return sl_read_u32(&t.data) >> 13 & 0x3F;
        case LF_ARRAY:
        case LF_ARRAY_ST:
            sl_reader_skip(&t.data, 8); /* types of element and index */
            return read_numeric(&t.data);
        default: break;
        }
        if (!is_named_type(t.leaf))
            return 0;
        type = read_named_type(&t);
        if (!type.forward && t.leaf != LF_ENUM && t.leaf != LF_ENUM_ST)
            return type.size;
        index = type.forward ? find_definition(n, &t, &type) : type.underlying;
        if (!index)
            return 0;
    }
    return 0;
}
