/* Names of functions with the types of their arguments, as crash reports show them: no return type, no keywords,
 * `name(arg, arg) const`. Types form a graph, which may have cycles in a crafted file: depth, records per name and length are limited, and
 * in place of a name over a limit the name in the symbol record is used. */
#include "pdb/impl.h"

/* Limits for one name: records read, bytes of its text, bytes of memory for records. */
enum { MAX_STEPS = 4096, MAX_TEXT = 16 << 10, MAX_SCRATCH = 8 << 20 };
enum { STEPS_PER_LETTER = 3 }; /* steps of work for a byte of a name, including what readers do with it later */

enum { MODIFIER_CONST = 1, POINTER_CONST = 0x400, FUNCTION_CONSTRUCTOR = 2 };
/* Modes of a pointer type: `T*`, `T&`, pointer to a data member, pointer to a member function ("method"), `T&&`. */
enum { MODE_POINTER, MODE_REFERENCE, MODE_MEMBER, MODE_METHOD, MODE_RVALUE };

/* A sigil is what a pointer or reference adds to the text of the type that it points to: `*`, `&`, `&&` or `::*`. `int**` has two. */
struct sigil {
    uint8_t mode;          /* MODE_... */
    bool constant;         /* the pointer is const: `* const` */
    bool pointee_constant; /* what it points to is const: ` const*` */
};

static bool print_type(struct name_printer *n, uint32_t index);

void name_printer_free(struct name_printer *n)
{
    imports_free(&n->imports);
    definitions_free(&n->definitions);
    sl_arena_free(&n->scratch);
    sl_buf_free(&n->out);
}

static void pdb_names_put(struct name_printer *n, const char *text)
{
    sl_buf_cstr(&n->out, text);
}

/* Reads a record of the type or id stream. An index with bit 31 set refers to another module (imports.c). False if there is no such record,
 * if the limits of records or bytes for one name are reached, or if the work budget is used up. */
static bool pdb_names_get(struct name_printer *n, const struct type_table *table, uint32_t index,
                          struct type_record *record)
{
    uint32_t global;
    if (n->steps == MAX_STEPS || n->scratch.used > MAX_SCRATCH || !sl_account_spend(&n->account, STEPS_PER_RECORD))
        return false;
    n->steps++;
    if (index >> 31 && imports_resolve(&n->imports, index, &n->account, &global))
        index = global;
    return type_table_get(table, index, &n->scratch, record) &&
           sl_account_spend(&n->account, (uint32_t)sl_reader_left(&record->data) / BYTES_PER_STEP);
}

bool name_printer_read_type(struct name_printer *n, uint32_t index, struct type_record *record)
{
    return pdb_names_get(n, &n->pdb->types, index, record);
}

/* ---- simple types ---- */

/* Returns the text for a simple type, its C++ name if it has one; NULL for an unknown type. */
static const char *simple_name(uint32_t kind)
{
    static const char *const names[256] = {
        [0x00] = "<NoType>",
        [0x03] = "void",
        [0x08] = "HRESULT",
        [0x10] = "signed char",
        [0x11] = "short",
        [0x12] = "long",
        [0x13] = "long long",
        [0x14] = "int128_t",
        [0x20] = "unsigned char",
        [0x21] = "unsigned short",
        [0x22] = "unsigned long",
        [0x23] = "unsigned long long",
        [0x24] = "uint128_t",
        [0x30] = "bool",
        [0x31] = "bool16_t",
        [0x32] = "bool32_t",
        [0x33] = "bool64_t",
        [0x40] = "float",
        [0x41] = "double",
        [0x42] = "long double",
        [0x43] = "long double",
        [0x44] = "float48_t",
        [0x45] = "float",
        [0x46] = "float16_t",
        [0x50] = "complex<float>",
        [0x51] = "complex<double>",
        [0x52] = "complex<long double>",
        [0x53] = "complex<long double>",
        [0x68] = "int8_t",
        [0x69] = "uint8_t",
        [0x70] = "char",
        [0x71] = "wchar_t",
        [0x72] = "int16_t",
        [0x73] = "uint16_t",
        [0x74] = "int",
        [0x75] = "unsigned int",
        [0x76] = "int64_t",
        [0x77] = "uint64_t",
        [0x78] = "int128_t",
        [0x79] = "uint128_t",
        [0x7A] = "char16_t",
        [0x7B] = "char32_t",
        [0x7C] = "char8_t",
    };
    return names[kind & 0xFF];
}

/* Prints a simple type, const if `constant`. It is a pointer if bits 8..11 of its index are not 0. False for an unknown type. */
static bool print_simple(struct name_printer *n, uint32_t index, bool constant)
{
    const char *name = index == TYPE_NULLPTR ? "std::nullptr_t" : simple_name(index);
    bool pointer = index & 0xF00 && index != TYPE_NULLPTR;
    if (!name)
        return false;
    if (constant && !pointer)
        pdb_names_put(n, "const ");
    pdb_names_put(n, name);
    if (pointer)
        pdb_names_put(n, constant ? "* const" : "*");
    return true;
}

/* ---- types ---- */

/* Prints the name of a class, union or enumeration, which has its scopes already. False if the record is damaged. */
static bool print_named_type(struct name_printer *n, struct type_record *t)
{
    struct named_type type = read_named_type(t);
    sl_buf_str(&n->out, type.name);
    return !t->data.failed;
}

/* Prints the types of an argument list (record `index`, 0 = none), separated by commas. `first` is false if an argument was printed before
 * the list. False if the record or a type cannot be printed, or if the text of the name becomes too long. */
static bool print_arguments(struct name_printer *n, uint32_t index, bool first)
{
    struct type_record t;
    if (index == 0)
        return true;
    if (!name_printer_read_type(n, index, &t) || t.leaf != LF_ARGLIST)
        return false;
    uint32_t count = sl_read_u32(&t.data);
    if (count > sl_reader_left(&t.data) / 4)
        return false;
    for (uint32_t i = 0; i < count; i++, first = false) {
        if (!first)
            pdb_names_put(n, ", ");
        if (n->out.size > MAX_TEXT || !print_type(n, sl_read_u32(&t.data)))
            return false;
    }
    return true;
}

/* Prints the types of an argument list in parentheses: `(int, char)`. False if print_arguments() cannot print them. */
static bool print_parameters(struct name_printer *n, uint32_t list)
{
    pdb_names_put(n, "(");
    bool ok = print_arguments(n, list, true);
    pdb_names_put(n, ")");
    return ok;
}

/* The type of a member function (LF_MFUNCTION); `this` is the type of its this pointer, 0 for static ones. */
struct pdb_method {
    uint32_t result, class, this, arguments;
    uint8_t options;
};

/* Reads a member function's type (LF_MFUNCTION); the caller checks r->failed. */
static struct pdb_method read_method(struct sl_reader *r)
{
    struct pdb_method m = {.result = sl_read_u32(r), .class = sl_read_u32(r), .this = sl_read_u32(r)};
    sl_read_u8(r); /* calling convention */
    m.options = sl_read_u8(r);
    sl_read_u16(r); /* number of arguments */
    m.arguments = sl_read_u32(r);
    return m;
}

enum this_kind { THIS_NONE, THIS_PLAIN, THIS_CONST, THIS_OTHER };

/* Returns the kind of a method's `this`: THIS_NONE for a static method, THIS_PLAIN or THIS_CONST for a pointer to the class or to the const
 * class. THIS_OTHER if it is no pointer to the class, as in some languages. */
static enum this_kind kind_of_this(struct name_printer *n, const struct pdb_method *m)
{
    struct type_record t;
    if (m->this == 0)
        return THIS_NONE;
    if (!name_printer_read_type(n, m->this, &t) || t.leaf != LF_POINTER)
        return THIS_OTHER;
    uint32_t pointee = sl_read_u32(&t.data);
    if (pointee == m->class)
        return THIS_PLAIN;
    if (!name_printer_read_type(n, pointee, &t) || t.leaf != LF_MODIFIER || sl_read_u32(&t.data) != m->class)
        return THIS_OTHER;
    return sl_read_u16(&t.data) & MODIFIER_CONST ? THIS_CONST : THIS_PLAIN;
}

/* Prints the arguments of a member function, `(int) const`; the `const` only if `with_const` (it is left out in pointers to member
 * functions). A `this` that is no pointer to the class is printed as the first argument, because the class does not tell its type. False if
 * a type cannot be printed. */
static bool print_method_arguments(struct name_printer *n, const struct pdb_method *m, bool with_const)
{
    enum this_kind kind = kind_of_this(n, m);
    pdb_names_put(n, "(");
    if (kind == THIS_OTHER && !print_type(n, m->this))
        return false;
    if (!print_arguments(n, m->arguments, kind != THIS_OTHER))
        return false;
    pdb_names_put(n, kind == THIS_CONST && with_const ? ") const" : ")");
    return true;
}

/* The type of a function that is no member (LF_PROCEDURE). */
struct procedure {
    uint32_t result, arguments;
    uint8_t options;
};

/* Reads a function's type (LF_PROCEDURE); the caller checks r->failed. */
static struct procedure read_procedure(struct sl_reader *r)
{
    struct procedure p = {.result = sl_read_u32(r)};
    sl_read_u8(r); /* calling convention */
    p.options = sl_read_u8(r);
    sl_read_u16(r); /* number of arguments */
    p.arguments = sl_read_u32(r);
    return p;
}

/* Prints the result type of a function type that is part of another type, and a space; nothing for constructors. (The name of a function
 * itself is printed without its result type.) False if the type cannot be printed. */
static bool print_result(struct name_printer *n, uint32_t index, uint8_t options)
{
    if (options & FUNCTION_CONSTRUCTOR)
        return true;
    if (!print_type(n, index))
        return false;
    pdb_names_put(n, " ");
    return true;
}

/* Prints the sigils (`*`, `&`, `::*` ..., with `const`) of a pointer or reference, such as `* const&`: from the innermost one, which is the
 * last in the array, to the outermost. `space`: a blank must precede a `const`, because text is in front of it. */
static void print_sigils(struct name_printer *n, const struct sigil *sigils, unsigned count, bool space)
{
    /* by mode: pointer, reference, pointer to data member, to member function, rvalue reference; others are unknown */
    static const char *const texts[8] = {"*", "&", "::*", "::*", "&&", "", "", ""};
    for (unsigned i = count; i-- > 0; space = true) {
        if (sigils[i].pointee_constant)
            pdb_names_put(n, space ? " const" : "const");
        pdb_names_put(n, texts[sigils[i].mode]);
        if (sigils[i].constant)
            pdb_names_put(n, " const");
    }
}

/* Follows pointers and modifiers (const) from the pointer `t` to the first type of another kind, whose index becomes `*index`. Sets a sigil
 * for each pointer, the outermost first; `constant` makes the outermost one const. False if the type is nested too deeply or damaged. */
static bool read_sigils(struct name_printer *n, struct type_record t, bool constant,
                        struct sigil sigils[MAX_TYPE_DEPTH], unsigned *count, uint32_t *index)
{
    *count = 0;
    for (unsigned steps = 0; *count < MAX_TYPE_DEPTH && steps < 2 * MAX_TYPE_DEPTH; steps++) {
        *index = sl_read_u32(&t.data);
        if (t.leaf == LF_POINTER) {
            uint32_t attributes = sl_read_u32(&t.data);
            /* Bits 5..7 are the mode: pointer, or kind of reference. */
            sigils[(*count)++] =
                (struct sigil){.mode = attributes >> 5 & 7, .constant = attributes & POINTER_CONST || constant};
            constant = false;
        } else { /* a modifier of what the last pointer points to; there is such a pointer, as the first record is one */
            sigils[*count - 1].pointee_constant |= sl_read_u16(&t.data) & MODIFIER_CONST;
        }
        if (t.data.failed)
            return false;
        if (type_is_simple(n, *index) || !name_printer_read_type(n, *index, &t) ||
            (t.leaf != LF_POINTER && t.leaf != LF_MODIFIER))
            return true;
    }
    return false;
}

/* Prints a pointer to a function type `t` (LF_PROCEDURE, else LF_MFUNCTION): `int (*)(char)` or `int (C::*)(char)`. False if a part of it
 * cannot be printed or the record is damaged. */
static bool print_pointer_to_function(struct name_printer *n, struct type_record t, const struct sigil *sigils,
                                      unsigned count)
{
    if (t.leaf == LF_PROCEDURE) {
        struct procedure p = read_procedure(&t.data);
        if (!print_result(n, p.result, p.options))
            return false;
        pdb_names_put(n, "(");
        print_sigils(n, sigils, count, false);
        pdb_names_put(n, ")");
        return print_parameters(n, p.arguments) && !t.data.failed;
    }
    struct pdb_method m = read_method(&t.data);
    if (!print_result(n, m.result, m.options))
        return false;
    pdb_names_put(n, "(");
    if (!print_type(n, m.class))
        return false;
    print_sigils(n, sigils, count, false);
    pdb_names_put(n, ")");
    return print_method_arguments(n, &m, false) && !t.data.failed;
}

/* Prints a pointer type: its target, then `*`, `&` and so on. `constant`: the pointer is const. False if it cannot be printed. */
static bool print_pointer(struct name_printer *n, struct type_record t, bool constant)
{
    struct sigil sigils[MAX_TYPE_DEPTH];
    unsigned count;
    uint32_t index;
    if (!read_sigils(n, t, constant, sigils, &count, &index))
        return false;
    if (!type_is_simple(n, index) && name_printer_read_type(n, index, &t) &&
        (t.leaf == LF_PROCEDURE || t.leaf == LF_MFUNCTION))
        return print_pointer_to_function(n, t, sigils, count);
    if (!print_type(n, index))
        return false;
    print_sigils(n, sigils, count, true);
    return true;
}

/* Prints a type with a modifier. A const type is `const int`, but a const pointer `int* const`. Other modifiers are not printed. False if
 * the type cannot be printed. */
static bool print_modifier(struct name_printer *n, struct type_record t)
{
    struct type_record below;
    uint32_t index = sl_read_u32(&t.data);
    bool constant = sl_read_u16(&t.data) & MODIFIER_CONST;
    if (type_is_simple(n, index))
        return print_simple(n, index, constant);
    if (name_printer_read_type(n, index, &below) && below.leaf == LF_POINTER)
        return print_pointer(n, below, constant);
    if (constant)
        pdb_names_put(n, "const ");
    return print_type(n, index);
}

/* Prints an array: `int[3][4]`. The record of each dimension has its size in bytes. The number of elements is that size divided by the size
 * of the next dimension or, in the last dimension, of the element; `[]` if that is unknown. False if a record is damaged or the type of the
 * element cannot be printed. */
static bool print_array(struct name_printer *n, struct type_record t)
{
    uint64_t sizes[MAX_TYPE_DEPTH + 1];
    unsigned count = 0;
    uint32_t element;
    do {
        element = sl_read_u32(&t.data);
        sl_read_u32(&t.data); /* type of the index */
        sizes[count++] = read_numeric(&t.data);
        if (t.data.failed)
            return false;
    } while (count < MAX_TYPE_DEPTH && !type_is_simple(n, element) && name_printer_read_type(n, element, &t) &&
             (t.leaf == LF_ARRAY || t.leaf == LF_ARRAY_ST));
    sizes[count] = name_printer_value_size(n, element);
    if (!print_type(n, element))
        return false;
    for (unsigned i = 0; i < count; i++) {
        if (sizes[i + 1])
            sl_buf_printf(&n->out, "[%llu]", (unsigned long long)(sizes[i] / sizes[i + 1]));
        else
            pdb_names_put(n, "[]");
    }
    return true;
}

/* Prints a type by the kind of its record; false if it cannot be printed. An unknown kind is printed as `<unimplemented type kind ...>`
 * (true), because the rest of the name is still of use. */
static bool print_record(struct name_printer *n, struct type_record t)
{
    if (is_named_type(t.leaf))
        return print_named_type(n, &t);
    switch (t.leaf) {
    case LF_MODIFIER: return print_modifier(n, t);
    case LF_POINTER: return print_pointer(n, t, false);
    case LF_ARRAY:
    case LF_ARRAY_ST: return print_array(n, t);
    case LF_PROCEDURE: {
        struct procedure p = read_procedure(&t.data);
        return print_result(n, p.result, p.options) && print_parameters(n, p.arguments) && !t.data.failed;
    }
    case LF_MFUNCTION: {
        struct pdb_method m = read_method(&t.data);
        return print_result(n, m.result, m.options) && print_method_arguments(n, &m, true) && !t.data.failed;
    }
    default: sl_buf_printf(&n->out, "<unimplemented type kind 0x%x>", t.leaf); return true;
    }
}

/* Prints a type. A type that is missing in the file is printed as `<missing type ...>`. False if a limit is reached or a record damaged. */
static bool print_type(struct name_printer *n, uint32_t index)
{
    struct type_record t;
    if (type_is_simple(n, index))
        return print_simple(n, index, false);
    if (n->depth == MAX_TYPE_DEPTH || n->steps == MAX_STEPS || n->out.size > MAX_TEXT)
        return false;
    if (!name_printer_read_type(n, index, &t)) {
        sl_buf_printf(&n->out, "<missing type 0x%x>", index);
        return true;
    }
    n->depth++;
    bool ok = print_record(n, t);
    n->depth--;
    return ok;
}

/* ---- functions ---- */

/* Prints `name(arguments)`, "<name omitted>" in place of an empty name. Only the name if there is no type or it cannot be read. False if
 * the arguments cannot be printed. */
static bool print_function(struct name_printer *n, struct sl_str name, uint32_t type)
{
    struct type_record t;
    if (name.size)
        sl_buf_str(&n->out, name);
    else
        pdb_names_put(n, "<name omitted>");
    if (type == 0 || !name_printer_read_type(n, type, &t))
        return true;
    if (t.leaf == LF_PROCEDURE) {
        struct procedure p = read_procedure(&t.data);
        return print_parameters(n, p.arguments) && !t.data.failed;
    }
    if (t.leaf == LF_MFUNCTION) {
        struct pdb_method m = read_method(&t.data);
        return print_method_arguments(n, &m, true) && !t.data.failed;
    }
    return true;
}

/* True for "?A0x1f2e3d4c", which compilers write for an unnamed namespace. */
static bool is_unnamed(struct sl_str part)
{
    if (!sl_str_starts(part, SL_STR("?A0x")))
        return false;
    for (size_t i = 4; i < part.size; i++) {
        char c = part.data[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
            return false;
    }
    return true;
}

/* Prints the namespace of an inlined function, which is the text of a record of the id stream, and `::`. False if there is none. */
static bool print_scope(struct name_printer *n, uint32_t index)
{
    struct type_record t;
    if (!pdb_names_get(n, &n->pdb->ids, index, &t) || t.leaf != LF_STRING_ID)
        return false;
    sl_read_u32(&t.data); /* list of further parts */
    struct sl_str text = sl_read_cstr(&t.data);
    if (is_unnamed(text))
        pdb_names_put(n, "`anonymous namespace'");
    else
        sl_buf_str(&n->out, text);
    pdb_names_put(n, "::");
    return !t.data.failed;
}

/* Prints an inlined function by its record in the id stream: LF_FUNC_ID has a namespace (or 0) as its parent, LF_MFUNC_ID a class. False if
 * it cannot be printed. */
static bool print_id(struct name_printer *n, uint32_t index)
{
    struct type_record t;
    if (!pdb_names_get(n, &n->pdb->ids, index, &t))
        return false;
    uint32_t parent = sl_read_u32(&t.data), type = sl_read_u32(&t.data);
    struct sl_str name = sl_read_cstr(&t.data);
    if (t.data.failed)
        return false;
    if (t.leaf == LF_FUNC_ID)
        return (parent == 0 || print_scope(n, parent)) && print_function(n, name, type);
    if (t.leaf != LF_MFUNC_ID || !print_type(n, parent))
        return false;
    pdb_names_put(n, "::");
    return print_function(n, name, type);
}

void name_printer_begin_module(struct name_printer *n, struct sl_bytes imports)
{
    imports_begin_module(&n->imports, imports);
}

/* Starts a new name: resets its text, memory and limits. */
static void pdb_names_begin(struct name_printer *n)
{
    sl_arena_reset(&n->scratch);
    sl_buf_clear(&n->out);
    n->depth = n->steps = 0;
}

/* Copies the printed name into the arena. False if it is too long, or when out of memory or budget. */
static bool pdb_names_finish(struct name_printer *n, struct sl_arena *arena, struct sl_str *name)
{
    size_t size = n->out.size;
    if (size > MAX_TEXT || !sl_account_spend(&n->account, (uint32_t)size * STEPS_PER_LETTER))
        return false;
    name->data = n->out.failed ? NULL : sl_arena_strndup(arena, (const char *)n->out.data, size);
    name->size = name->data ? size : 0;
    if (!name->data)
        *n->pdb->msf.no_memory = true;
    return name->data != NULL;
}

/* Returns `name(arguments)` of a procedure. If `is_id`, `type` is the number of a record in the id stream, which has the type. Without a
 * type, or if it cannot be printed, returns the name alone. */
struct sl_str name_printer_print_procedure(struct name_printer *n, struct sl_arena *arena, struct sl_str name,
                                           uint32_t type, bool is_id)
{
    struct type_record t;
    struct sl_str out;
    pdb_names_begin(n);
    if (is_id) {
        bool found = pdb_names_get(n, &n->pdb->ids, type, &t) && (t.leaf == LF_FUNC_ID || t.leaf == LF_MFUNC_ID);
        if (found)
            sl_read_u32(&t.data); /* namespace or class: in symbol records the name has it already */
        type = found ? sl_read_u32(&t.data) : 0;
    }
    if (type == 0 && name.size)
        return name;
    if (print_function(n, name, type) && pdb_names_finish(n, arena, &out))
        return out;
    return name.size ? name : SL_STR("<name omitted>");
}

uint64_t name_printer_type_size(struct name_printer *n, uint32_t type)
{
    pdb_names_begin(n);
    return type ? name_printer_value_size(n, type) : 0;
}

bool name_printer_print_inlinee(struct name_printer *n, struct sl_arena *arena, uint32_t id, struct sl_str *name)
{
    pdb_names_begin(n);
    return print_id(n, id) && pdb_names_finish(n, arena, name);
}
