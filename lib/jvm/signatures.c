/* Return types of methods and names of fields, read from the text of JVM mappings. */
#include "jvm/signatures.h"

#include "jvm/mapping.h"

/* Makes the key under which a method (`rest`: its parameters) or field (`rest`: its type) is kept: "class name rest ". Names contain no
 * blanks. False when out of memory. */
static bool signature_key(struct sl_buf *key, struct sl_str class, struct sl_str name, struct sl_str rest)
{
    const struct sl_str parts[] = {class, name, rest};
    sl_buf_clear(key);
    for (size_t i = 0; i < 3; i++) {
        sl_buf_str(key, parts[i]);
        sl_buf_u8(key, ' ');
    }
    return !key->failed;
}

/* A return type, and the source lines of the method that has it. A bridge method, made by the compiler, may have the name and parameters of
 * the method that it calls: only the lines tell which of the two a frame is in. */
struct jvm_returned {
    struct sl_str type;
    uint32_t first, last; /* first > last: none */
    struct jvm_returned *next;
};

enum { MAX_RETURNED = 16 }; /* of one method; more are ignored, so that a hostile mapping has no long lists */

/* Returns where the value of `key` is kept in `map`, adding the key, with the value NULL, if it is new. NULL when out of memory. */
static void **signature_slot(struct sl_jvm_signatures *s, struct sl_map *map, const struct sl_buf *key)
{
    bool known = sl_map_get(map, sl_buf_view(key)) != NULL;
    const char *kept =
        known ? (const char *)key->data : sl_arena_strndup(&s->arena, (const char *)key->data, key->size);
    return kept ? sl_map_find_or_add(map, (struct sl_str){kept, key->size}, NULL) : NULL;
}

/* Adds the return type of a method to the list for its name and parameters; if the type is in it, extends its source lines. More than
 * MAX_RETURNED types are ignored. False when out of memory. */
static bool add_method(struct sl_jvm_signatures *s, const struct sl_buf *key, const struct sl_jvm_member *m)
{
    struct jvm_returned **at = (struct jvm_returned **)signature_slot(s, &s->methods, key);
    if (!at)
        return false;
    for (unsigned i = 0; *at && !sl_str_equal((*at)->type, m->type); at = &(*at)->next)
        if (++i == MAX_RETURNED)
            return true;
    if (!*at && !(*at = SL_ARENA_NEW(&s->arena, struct jvm_returned)))
        return false;
    struct jvm_returned *r = *at;
    if (!r->type.data)
        *r = (struct jvm_returned){.type = m->type, .first = UINT32_MAX};
    if (m->has_line) {
        r->first = m->line < r->first ? m->line : r->first;
        uint32_t last = m->has_last_line ? m->last_line : m->line;
        r->last = last > r->last ? last : r->last;
    }
    return true;
}

/* Adds a field; if a key occurs twice, the first field is used. False when out of memory. */
static bool add_field(struct sl_jvm_signatures *s, const struct sl_buf *key, struct sl_str name)
{
    void **slot = signature_slot(s, &s->fields, key);
    struct sl_str *value = slot && !*slot ? SL_ARENA_NEW(&s->arena, struct sl_str) : NULL;
    if (value) {
        *value = name;
        *slot = value;
    }
    return slot && *slot;
}

/* Adds a method or field of the mapping. A field gets two keys: with its type, and without, for callers that do not know the type. False
 * when out of memory. */
static bool signature_add(struct sl_jvm_signatures *s, struct sl_str class, const struct sl_jvm_record *record,
                          struct sl_buf *key)
{
    const struct sl_jvm_member *m = &record->member;
    if (record->kind == SL_JVM_RECORD_METHOD)
        return signature_key(key, m->receiver.data ? m->receiver : class, m->name, m->arguments) &&
               add_method(s, key, m);
    return signature_key(key, class, m->obfuscated, m->type) && add_field(s, key, m->name) &&
           signature_key(key, class, m->obfuscated, SL_STR("")) && add_field(s, key, m->name);
}

bool sl_jvm_signatures_add(struct sl_jvm_signatures *s, struct sl_str mapping)
{
    struct sl_jvm_reader reader = sl_jvm_reader(mapping);
    struct sl_jvm_record record;
    struct sl_str class = {NULL, 0};
    struct sl_buf key = {0};
    bool good = true;
    while (good && sl_jvm_reader_next(&reader, &record)) {
        if (record.kind == SL_JVM_RECORD_CLASS)
            class = record.original;
        else if (class.data && (record.kind == SL_JVM_RECORD_METHOD || record.kind == SL_JVM_RECORD_FIELD))
            good = signature_add(s, class, &record, &key);
    }
    sl_buf_free(&key);
    return good;
}

void sl_jvm_signatures_free(struct sl_jvm_signatures *s)
{
    sl_map_free(&s->methods);
    sl_map_free(&s->fields);
    sl_arena_free(&s->arena);
}

/* Returns the value for a method or field; NULL if there is none, or when out of memory. */
static const void *signature_find(const struct sl_map *map, struct sl_str class, struct sl_str name, struct sl_str rest)
{
    struct sl_buf key = {0};
    const void *found = signature_key(&key, class, name, rest) ? sl_map_get(map, sl_buf_view(&key)) : NULL;
    sl_buf_free(&key);
    return found;
}

/* Several methods may share name and parameters: returns the type of the one whose lines contain `line`, else that of the first. */
struct sl_str sl_jvm_signatures_type(const struct sl_jvm_signatures *s, struct sl_str class, struct sl_str method,
                                     struct sl_str parameters, uint32_t line)
{
    const struct jvm_returned *first = signature_find(&s->methods, class, method, parameters);
    for (const struct jvm_returned *r = line ? first : NULL; r; r = r->next)
        if (r->first <= line && line <= r->last)
            return r->type;
    return first ? first->type : (struct sl_str){NULL, 0};
}

bool sl_jvm_signatures_field(const struct sl_jvm_signatures *s, struct sl_str class, struct sl_str obfuscated,
                             struct sl_str type, struct sl_str *name)
{
    const struct sl_str *found = signature_find(&s->fields, class, obfuscated, type);
    *name = found ? *found : obfuscated;
    return found != NULL;
}

/* Appends types separated by commas, without blanks. */
static void put_types(struct sl_str types, struct sl_buf *out)
{
    for (size_t i = 0; i < types.size; i++)
        if (!sl_is_blank(types.data[i]))
            sl_buf_u8(out, (uint8_t)types.data[i]);
}

void sl_jvm_signatures_put(const struct sl_jvm_frame *frame, struct sl_buf *out)
{
    bool known = frame->type.data && frame->parameters.data;
    if (known) {
        sl_buf_str(out, frame->type);
        sl_buf_u8(out, ' ');
    }
    sl_buf_str(out, frame->method);
    if (known) {
        sl_buf_u8(out, '(');
        put_types(frame->parameters, out);
        sl_buf_u8(out, ')');
    }
}
