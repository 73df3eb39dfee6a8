/* Names of types, built along the chain of entries that describe a type (DWARF 5, 5). Each entry is named once per unit.
 *
 * In C a declarator is between two parts, `left` and `right`: a pointer to a function is `int(*` and `)(char*)`; a pointer to that
 * adds a star in the middle: `int(**` and `)(char*)`. */
#include "dwarf/impl.h"

#include <stdio.h>

/* Limits against hostile files, far above real types: length of a chain of types, bytes of a name, parameters of a function type.
 * BYTES_PER_STEP and STEPS_PER_ENTRY are the cost of reading an entry. */
enum { MAX_TYPE_DEPTH = 64, MAX_TYPE_TEXT = 4096, MAX_PARAMETERS = 255, BYTES_PER_STEP = 16, STEPS_PER_ENTRY = 8 };

struct dwarf_type {
    uint64_t key; /* in variable_reader.types */
    struct sl_str left, right, whole;
    bool is_pointer; /* qualifiers go behind the star: `char* const` */
    bool binds;      /* array or function: a pointer to it needs parentheses */
};

#define NAMED_TYPE(text)                                                                                               \
    {                                                                                                                  \
        .left = {text, sizeof text - 1}, .whole = { text, sizeof text - 1 }                                            \
    }
static const struct dwarf_type unknown_type = NAMED_TYPE("<unknown>"), other_type = NAMED_TYPE("<not implemented>"),
                               void_type = NAMED_TYPE("void");

struct typing {
    struct dwarf_worker *w;
    const struct dwarf_unit *from; /* the unit that is walked */
};

/* ---- entries ---- */

/* A bound of an array's index range; `given` is true if the attribute is present. */
struct bound {
    bool given, known; /* known: it is a constant */
    uint64_t value;
};

struct type_entry {
    uint16_t tag; /* 0 = end of the parent's children */
    bool children;
    struct description is;
    struct bound lower, upper, count;
    uint64_t end; /* offset in .debug_info behind its attributes */
};

/* Returns the value of a bound of an array. One that is no constant (an expression, a reference to a variable) is given but not known. */
static struct bound get_bound(const struct attribute *a)
{
    switch (a->form) {
    case DW_FORM_data1:
    case DW_FORM_data2:
    case DW_FORM_data4:
    case DW_FORM_data8:
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_implicit_const: return (struct bound){.given = true, .known = true, .value = a->value};
    default: return (struct bound){.given = true};
    }
}

/* Stores an attribute of a type or variable. Text and reference are views of the file; a bound of an array that is no constant is only
 * marked as given. Other attributes are ignored. */
static void store_attribute(struct dwarf_worker *w, const struct dwarf_unit *unit, uint16_t attribute,
                            const struct attribute *a, struct type_entry *e)
{
    switch (attribute) {
    case DW_AT_name: e->is.name = variables_text(w, unit, a); break;
    case DW_AT_type:
        e->is.type = dwarf_reference(unit, a);
        e->is.has_type = true;
        break;
    case DW_AT_abstract_origin:
    case DW_AT_specification: e->is.origin = dwarf_reference(unit, a); break;
    case DW_AT_declaration: e->is.declaration = a->value; break;
    case DW_AT_lower_bound: e->lower = get_bound(a); break;
    case DW_AT_upper_bound: e->upper = get_bound(a); break;
    case DW_AT_count: e->count = get_bound(a); break;
    }
}

/* Reads the attributes of an entry. Many units may refer to one entry, so every read is charged to the work budget. False if the budget is
 * used up, or if the entry is damaged. */
static bool read_attributes(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct abbrev *abbrev,
                            struct sl_reader *r, struct type_entry *out)
{
    const uint8_t *begin = r->at;
    struct attribute_walk walk = dwarf_attributes(unit, abbrev);
    const struct abbrev_step *step;
    struct attribute a;
    *out = (struct type_entry){.tag = abbrev->tag, .children = abbrev->children};
    if (!sl_account_spend(&w->account, abbrev->step_count + STEPS_PER_ENTRY))
        return false;
    while ((step = dwarf_next_attribute(&walk, r, &a)))
        store_attribute(w, unit, step->attribute, &a, out);
    return !walk.failed && sl_account_spend(&w->account, (uint64_t)(r->at - begin) / BYTES_PER_STEP);
}

bool types_read(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct abbrev *abbrev, struct sl_reader *r,
                struct description *out)
{
    struct type_entry e;
    if (!read_attributes(w, unit, abbrev, r, &e))
        return false;
    *out = e.is;
    return true;
}

/* Reads the entry at an offset of .debug_info. The end of a list of children counts as an entry with tag 0. False if the entry cannot be
 * read, or if the budget is used up. */
static bool types_read_entry(struct dwarf_worker *w, const struct dwarf_unit *unit, uint64_t offset,
                             struct type_entry *out)
{
    struct sl_reader r =
        sl_reader((struct sl_bytes){unit->file->info.data, (size_t)unit->header->end}, unit->file->big_endian);
    sl_reader_seek(&r, offset);
    uint64_t code = dwarf_uleb(&r);
    const struct abbrev *abbrev = code && !r.failed ? abbrev_find(unit->abbrevs, code) : NULL;
    *out = (struct type_entry){.tag = 0};
    bool read =
        abbrev ? read_attributes(w, unit, abbrev, &r, out) : !code && !r.failed && sl_account_spend(&w->account, 1);
    out->end = sl_reader_offset(&r);
    return read;
}

/* Takes a missing name or type from the entry's abstract origin or specification, from that of the origin, and so on. */
void types_complete(struct dwarf_worker *w, const struct dwarf_unit *from, struct description *is)
{
    struct reference origin = is->origin;
    for (int hops = 0; hops < MAX_REFERENCES && origin.file && (!is->name.size || !is->has_type); hops++) {
        struct type_entry e;
        const struct dwarf_unit *unit = dwarf_find_unit(w, from, origin);
        if (!unit || !types_read_entry(w, unit, origin.offset, &e))
            return;
        is->name = is->name.size ? is->name : e.is.name;
        if (!is->has_type) {
            is->type = e.is.type;
            is->has_type = e.is.has_type;
        }
        origin = e.is.origin;
    }
}

/* Reads the entry that `reference` leads to, and completes name and type from its origins. False if it is not there, cannot be read, or
 * when out of memory or budget (account.failed). */
static bool find_entry(struct typing *t, struct reference reference, struct type_entry *out)
{
    const struct dwarf_unit *unit = dwarf_find_unit(t->w, t->from, reference);
    if (!unit || !types_read_entry(t->w, unit, reference.offset, out) || !out->tag)
        return false;
    types_complete(t->w, t->from, &out->is);
    return !t->w->account.failed;
}

/* Iterates the children of an entry. */
struct children {
    const struct dwarf_unit *unit; /* valid until the next dwarf_find_unit */
    uint64_t at;
    size_t open; /* depth of `at` below the children */
};

static struct children open_children(struct typing *t, struct reference parent, const struct type_entry *e)
{
    return (struct children){e->children ? dwarf_find_unit(t->w, t->from, parent) : NULL, e->end, 0};
}

/* Moves to the next direct child and reads it into `e`; deeper descendants are skipped. False at the end, or if an entry cannot be read. */
static bool next_child(struct typing *t, struct children *c, struct type_entry *e)
{
    while (c->unit && types_read_entry(t->w, c->unit, c->at, e) && (e->tag || c->open)) {
        bool is_direct = !c->open && e->tag;
        c->at = e->end;
        c->open = c->open + (e->tag && e->children) - !e->tag; /* open lists of grandchildren; tag 0 ends a list */
        if (is_direct)
            return true;
    }
    return false;
}

/* ---- texts ---- */

/* Concatenates two texts; empty if longer than MAX_TYPE_TEXT, or when out of memory or budget. */
static struct sl_str join(struct typing *t, struct sl_str a, struct sl_str b)
{
    size_t size = a.size + b.size;
    char *text = NULL;
    if (size <= MAX_TYPE_TEXT && sl_account_spend(&t->w->account, size / BYTES_PER_STEP + 1)) {
        text = sl_arena_alloc(t->w->variable_reader.arena, size + 1, 1);
        t->w->account.failed = t->w->account.failed || !text;
    }
    if (!text)
        return (struct sl_str){NULL, 0};
    if (a.size)
        memcpy(text, a.data, a.size);
    if (b.size)
        memcpy(text + a.size, b.data, b.size);
    return (struct sl_str){text, size};
}

/* Sets the parts of a type's name that stand before and behind a variable's name (`int(*` and `)[4]`), and the whole of it. False, without
 * effect, if `left` is empty or the whole too long. */
static bool set_type(struct typing *t, struct dwarf_type *type, struct sl_str left, struct sl_str right)
{
    struct sl_str whole = left.size && right.size ? join(t, left, right) : left;
    if (!whole.size || whole.size > MAX_TYPE_TEXT)
        return false;
    type->left = left;
    type->right = right;
    type->whole = whole;
    return true;
}

/* Names a pointer or reference to `target`: `sign` goes behind the left part, after an opening parenthesis if the target is an array or
 * function (`binds`): `int(*` and `)[4]`. Without effect if the text is too long: the type stays `<unknown>`. */
static void set_pointer(struct typing *t, struct dwarf_type *type, const struct dwarf_type *target, struct sl_str sign)
{
    struct sl_str left = target->left, right = target->right;
    if (target->binds) {
        left = join(t, left, SL_STR("("));
        right = join(t, SL_STR(")"), right);
    }
    if (left.size && (right.size || !target->binds)) /* join() did not fail: a text with a parenthesis is not empty */
        type->is_pointer = set_type(t, type, join(t, left, sign), right);
}

/* Names a qualified `target`: with `before` ("const ") in front, or `behind` (" const") behind the star of a pointer. A qualifier that is
 * there already is not repeated: a qualified array has qualified elements, and both may have the qualifier. */
static void set_qualified(struct typing *t, struct dwarf_type *type, const struct dwarf_type *target,
                          struct sl_str before, struct sl_str behind)
{
    struct sl_str left = target->left;
    if (target->is_pointer)
        left = sl_str_ends(left, behind) ? left : join(t, left, behind);
    else
        left = sl_str_starts(left, before) ? left : join(t, before, left);
    if (!set_type(t, type, left, target->right))
        return;
    type->is_pointer = target->is_pointer;
    type->binds = target->binds;
}

/* Appends the number of elements of an array's dimension, `[4]`; `[]` if it is no constant. `from_one`: the default lower bound is 1, not
 * 0. */
static void put_extent(struct sl_buf *out, const struct type_entry *range, bool from_one)
{
    uint64_t lower = range->lower.given ? range->lower.value : from_one;
    bool known = range->count.known || (range->upper.known && (range->lower.known || !range->lower.given));
    if (known)
        sl_buf_printf(out, "[%llu]",
                      (unsigned long long)(range->count.known ? range->count.value : range->upper.value - lower + 1));
    else
        sl_buf_cstr(out, "[]");
}

/* Names an array or function type: `left` is that of `target` (the element or result type), `right` the suffix given here ("[4]") and that
 * of `target`. Frees the buffer. */
static void set_array_or_function(struct typing *t, struct dwarf_type *type, const struct dwarf_type *target,
                                  struct sl_buf *right)
{
    sl_buf_str(right, target->right);
    struct sl_str text = join(t, sl_buf_view(right), (struct sl_str){NULL, 0}); /* a copy in the arena */
    t->w->account.failed = t->w->account.failed || right->failed;
    sl_buf_free(right);
    if (!text.size || !set_type(t, type, target->left, text))
        return;
    type->is_pointer = target->is_pointer; /* a qualifier of an array goes where that of its elements does */
    type->binds = true;
}

/* Names an array type: one pair of brackets per child with an index range, one for each dimension; `[]` if there is none. */
static void set_array(struct typing *t, struct dwarf_type *type, struct reference reference, const struct type_entry *e,
                      const struct dwarf_type *element)
{
    struct children children = open_children(t, reference, e);
    struct type_entry range;
    struct sl_buf right = {0};
    while (right.size <= MAX_TYPE_TEXT && next_child(t, &children, &range))
        if (range.tag == DW_TAG_subrange_type || range.tag == DW_TAG_enumeration_type)
            put_extent(&right, &range, children.unit->counts_from_one);
    if (!right.size)
        sl_buf_cstr(&right, "[]");
    set_array_or_function(t, type, element, &right);
}

struct type_parameter {
    struct reference type;
    bool has_type, is_rest;
};

/* Pushes the parameters of a function type. They are named after all are read: naming one may open another unit, which invalidates the
 * iterator over the children. False if there are too many, or when out of memory. */
static bool push_parameters(struct typing *t, struct reference reference, const struct type_entry *e)
{
    struct variable_reader *v = &t->w->variable_reader;
    struct children children = open_children(t, reference, e);
    struct type_entry child;
    size_t first = v->parameter_count;
    while (next_child(t, &children, &child)) {
        bool is_rest = child.tag == DW_TAG_unspecified_parameters;
        if (child.tag != DW_TAG_formal_parameter && !is_rest)
            continue;
        if (v->parameter_count - first == MAX_PARAMETERS ||
            !sl_account_grow(&t->w->account, &v->parameters, &v->parameter_capacity, v->parameter_count + 1,
                             sizeof *v->parameters))
            return false;
        v->parameters[v->parameter_count++] = (struct type_parameter){child.is.type, child.is.has_type, is_rest};
    }
    return true;
}

static const struct dwarf_type *find_type(struct typing *t, struct reference reference, bool has, unsigned depth);

/* Names a function type: `int` and `(char, ...)`. With too many parameters it stays `<unknown>`. */
static void set_function(struct typing *t, struct dwarf_type *type, struct reference reference,
                         const struct type_entry *e, const struct dwarf_type *result, unsigned depth)
{
    struct variable_reader *v = &t->w->variable_reader;
    struct sl_buf right = {0};
    size_t first = v->parameter_count;
    bool fits = push_parameters(t, reference, e);
    sl_buf_cstr(&right, "(");
    for (size_t i = first; fits && i < v->parameter_count && right.size <= MAX_TYPE_TEXT; i++) {
        const struct type_parameter p = v->parameters[i]; /* a copy: find_type may move the array */
        if (i > first)
            sl_buf_cstr(&right, ", ");
        sl_buf_str(&right, p.is_rest ? SL_STR("...") : find_type(t, p.type, p.has_type, depth + 1)->whole);
    }
    v->parameter_count = first;
    sl_buf_cstr(&right, ")");
    if (fits)
        set_array_or_function(t, type, result, &right); /* frees the buffer, too; it may be freed twice */
    sl_buf_free(&right);
}

/* ---- types ---- */

/* Sets the name of the type: its own, else one made of the types it refers to. Without a name, a type that needs one, such as a structure,
 * stays `<unknown>`; a kind of type that C does not have is `<not implemented>`. */
static void name_type(struct typing *t, struct dwarf_type *type, struct reference reference, unsigned depth)
{
    struct type_entry e;
    if (!find_entry(t, reference, &e))
        return;
    if (e.is.name.size) {
        type->is_pointer = set_type(t, type, e.is.name, (struct sl_str){NULL, 0}) && e.tag == DW_TAG_pointer_type;
        return;
    }
    switch (e.tag) {
    case DW_TAG_base_type:
    case DW_TAG_class_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_interface_type:
    case DW_TAG_structure_type:
    case DW_TAG_typedef:
    case DW_TAG_union_type:
    case DW_TAG_unspecified_type: return;
    }
    const struct dwarf_type *target = find_type(t, e.is.type, e.is.has_type, depth + 1);
    switch (e.tag) {
    case DW_TAG_pointer_type: set_pointer(t, type, target, SL_STR("*")); break;
    case DW_TAG_reference_type: set_pointer(t, type, target, SL_STR("&")); break;
    case DW_TAG_rvalue_reference_type: set_pointer(t, type, target, SL_STR("&&")); break;
    case DW_TAG_const_type: set_qualified(t, type, target, SL_STR("const "), SL_STR(" const")); break;
    case DW_TAG_volatile_type: set_qualified(t, type, target, SL_STR("volatile "), SL_STR(" volatile")); break;
    case DW_TAG_restrict_type: set_qualified(t, type, target, SL_STR("restrict "), SL_STR(" restrict")); break;
    case DW_TAG_atomic_type: set_qualified(t, type, target, SL_STR("_Atomic "), SL_STR(" _Atomic")); break;
    case DW_TAG_array_type: set_array(t, type, reference, &e, target); break;
    case DW_TAG_subroutine_type: set_function(t, type, reference, &e, target, depth); break;
    default: set_type(t, type, other_type.left, (struct sl_str){NULL, 0}); break;
    }
}

/* Returns the type of an entry, named once per unit; `has` false: the type `void`. The type is put into the map as `<unknown>` before it is
 * named, so that a cycle of types ends there. A chain of more than MAX_TYPE_DEPTH types is `<unknown>`, too. */
static const struct dwarf_type *find_type(struct typing *t, struct reference reference, bool has, unsigned depth)
{
    struct variable_reader *v = &t->w->variable_reader;
    /* entries refer to their own file or to the supplementary file: one bit tells which */
    uint64_t key = reference.offset << 1 | (reference.file != t->from->file);
    if (!has || !reference.file)
        return has ? &unknown_type : &void_type;
    struct dwarf_type *type = sl_map_get(&v->types, (struct sl_str){(const char *)&key, sizeof key});
    if (type)
        return type;
    type = sl_arena_alloc(v->arena, sizeof *type, _Alignof(struct dwarf_type));
    if (type) {
        *type = unknown_type;
        type->key = key;
    }
    void **slot =
        type ? sl_map_find_or_add(&v->types, (struct sl_str){(const char *)&type->key, sizeof key}, NULL) : NULL;
    if (!slot) {
        t->w->account.failed = true;
        return &unknown_type;
    }
    *slot = type;
    if (depth < MAX_TYPE_DEPTH && !t->w->account.failed)
        name_type(t, type, reference, depth);
    return type;
}

struct sl_str types_name(struct dwarf_worker *w, const struct dwarf_unit *from, struct reference type, bool has)
{
    struct typing t = {w, from};
    return find_type(&t, type, has, 0)->whole;
}
