#include "base/json_fields.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"

bool sl_fields_admit(struct sl_fields *s, size_t count, uint64_t limit, size_t size, const char *too_much)
{
    if (count > limit) {
        s->too_much = too_much;
        return sl_json_fail(s->json, too_much);
    }
    s->json->arena->limit += size + size / 2; /* a growing array has up to 1.5 times its size */
    return true;
}

/* ---- problems ---- */

/* Appends the path of a value in dotted form: "stacktraces[0].frames". */
static void add_path(struct sl_buf *out, const struct sl_json_path *at)
{
    if (!at)
        return;
    add_path(out, at->up);
    if (!at->key.data)
        sl_buf_printf(out, "[%zu]", at->index);
    else
        sl_buf_printf(out, "%s" SL_STR_FMT, out->size ? "." : "", SL_STR_ARG(at->key));
}

bool sl_fields_fail(struct sl_fields *s, const struct sl_json_path *at, size_t where, const char *format, ...)
{
    if (s->quiet || s->problem || s->json->failed)
        return false;
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    struct sl_buf text = {0};
    struct sl_json_position position = sl_json_position(s->json->text, where);
    add_path(&text, at);
    sl_buf_printf(&text, "%s%s at line %zu column %zu", text.size ? ": " : "", what, position.line, position.column);
    s->problem = sl_buf_move_to_arena(&text, s->json->arena).data; /* NULL only when out of memory */
    return s->problem ? false : sl_json_no_memory(s->json);
}

/* Returns the type of the next value in the words of error messages, and may move past the value: the reader is not used after the
 * error. */
static const char *type_name(struct sl_json *j)
{
    struct sl_str text;
    bool negative;
    uint64_t magnitude;
    switch (sl_json_peek(j)) {
    case SL_JSON_NULL: return "null";
    case SL_JSON_BOOL: return "boolean";
    case SL_JSON_NUMBER:
        return sl_json_number(j, &text) && !sl_json_integer(text, &negative, &magnitude) ? "floating point number"
                                                                                         : "integer";
    case SL_JSON_OBJECT: return "map";
    case SL_JSON_ARRAY: return "sequence";
    case SL_JSON_STRING: return "string";
    case SL_JSON_NONE: break;
    }
    sl_json_skip(j); /* fails: then sl_fields_fail() leaves the error to the JSON reader */
    return "nothing";
}

/* Fails with "invalid type" because the next value is not what is `expected`; when quiet only returns false. */
static bool mismatch(struct sl_fields *s, const struct sl_json_path *at, const char *expected)
{
    if (s->quiet)
        return false;
    sl_json_peek(s->json); /* skips white space, so that `where` is the value's offset; type_name() may move on */
    size_t where = s->json->at;
    return sl_fields_fail(s, at, where, "invalid type: %s, expected %s", type_name(s->json), expected);
}

bool sl_fields_open(struct sl_fields *s, const struct sl_json_path *at, enum sl_json_type type, const char *expected)
{
    return sl_json_peek(s->json) == type ? sl_json_enter(s->json) : mismatch(s, at, expected);
}

/* ---- values ---- */

bool sl_fields_text(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    return sl_json_peek(s->json) == SL_JSON_STRING ? sl_json_string(s->json, out) : mismatch(s, at, "a string");
}

/* Reads a number as sign and 64-bit magnitude. Fails with "invalid type" if it has a fraction or an exponent, with "out of range" if the
 * magnitude exceeds 64 bits. `expected`: what the error says was expected. */
static bool read_integer(struct sl_fields *s, const struct sl_json_path *at, const char *expected, bool *negative,
                         uint64_t *magnitude)
{
    struct sl_json before = *s->json;
    struct sl_str text;
    if (!sl_json_number(s->json, &text))
        return false;
    if (sl_json_integer(text, negative, magnitude))
        return true;
    size_t where = s->json->at - text.size;
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '.' || (text.data[i] | 0x20) == 'e') {
            *s->json = before; /* mismatch() looks at the value again */
            return mismatch(s, at, expected);
        }
    return sl_fields_fail(s, at, where, "invalid value: integer out of range, expected %s", expected);
}

/* Reads an integer, or a string of decimal digits or of 0x and hex digits. Fails for any other value. */
bool sl_fields_hex(struct sl_fields *s, const struct sl_json_path *at, uint64_t *out)
{
    static const char expected[] = "an integer or a string with a hexadecimal number";
    enum sl_json_type type = sl_json_peek(s->json);
    size_t where = s->json->at;
    struct sl_str text;
    bool negative;
    if (type == SL_JSON_NUMBER) {
        if (!read_integer(s, at, expected, &negative, out))
            return false;
        /* a negative number stands for the 64-bit address with the same bits */
        *out = negative ? 0 - *out : *out;
        return true;
    }
    if (type != SL_JSON_STRING)
        return mismatch(s, at, expected);
    if (!sl_json_string(s->json, &text))
        return false;
    bool hex = text.size >= 2 && text.data[0] == '0' && (text.data[1] | 32) == 'x';
    if (hex ? sl_parse_hex_u64((struct sl_str){text.data + 2, text.size - 2}, out) : sl_parse_u64(text, out))
        return true;
    /* the message quotes no more of a text that may be long */
    text.size = text.size < 40 ? text.size : 40;
    return sl_fields_fail(s, at, where,
                          "invalid number \"" SL_STR_FMT "\", expected decimal digits, or 0x and hexadecimal digits",
                          SL_STR_ARG(text));
}

/* Reads an integer from 0 to `max`, which is UINT32_MAX or UINT64_MAX; fails for any other value. */
static bool read_unsigned(struct sl_fields *s, const struct sl_json_path *at, uint64_t max, struct sl_opt_u64 *out)
{
    const char *expected = max == UINT32_MAX ? "u32" : "u64";
    bool negative;
    if (sl_json_peek(s->json) != SL_JSON_NUMBER)
        return mismatch(s, at, expected);
    size_t where = s->json->at;
    if (!read_integer(s, at, expected, &negative, &out->value))
        return false;
    out->set = true;
    return (!negative && out->value <= max) ||
           sl_fields_fail(s, at, where, "invalid value: integer out of range, expected %s", expected);
}

/* Reads the line number of a stack frame. JVMs report -2 for a native method and -1 for an unknown line, so a negative number is skipped
 * and `*out` stays unset, as if the member were absent; the function returns true then, too. */
static bool read_source_line(struct sl_fields *s, const struct sl_json_path *at, struct sl_opt_u64 *out)
{
    struct sl_json before = *s->json;
    struct sl_str text;
    bool negative;
    uint64_t magnitude;
    if (sl_json_peek(s->json) == SL_JSON_NUMBER && sl_json_number(s->json, &text) &&
        sl_json_integer(text, &negative, &magnitude) && negative && magnitude)
        return true;
    *s->json = before;
    return read_unsigned(s, at, UINT32_MAX, out);
}

/* Reads a boolean; fails for any other value, and then leaves `*out` as it is. */
static bool read_bool(struct sl_fields *s, const struct sl_json_path *at, enum sl_opt_bool *out)
{
    bool value;
    if (sl_json_peek(s->json) != SL_JSON_BOOL)
        return mismatch(s, at, "a boolean");
    bool good = sl_json_bool(s->json, &value);
    *out = value ? SL_BOOL_TRUE : SL_BOOL_FALSE;
    return good;
}

bool sl_fields_raw(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    return sl_json_value(s->json, out);
}

/* ---- objects and arrays ---- */

static bool read_items(struct sl_fields *s, const struct sl_json_path *at, const struct sl_field *of, void **items,
                       size_t *count);

/* Reads a value as the field's type says into `out`, the struct's member at field->offset. The number of a list's items goes to another
 * member of that struct, at field->count. */
__attribute__((always_inline)) static inline bool read_field(struct sl_fields *s, const struct sl_json_path *at,
                                                             const struct sl_field *field, void *out)
{
    switch (field->type) {
    case SL_FIELD_TEXT: return sl_fields_text(s, at, out);
    case SL_FIELD_HEX:
        ((struct sl_opt_u64 *)out)->set = true;
        return sl_fields_hex(s, at, &((struct sl_opt_u64 *)out)->value);
    case SL_FIELD_U64: return read_unsigned(s, at, UINT64_MAX, out);
    case SL_FIELD_U32: return read_unsigned(s, at, UINT32_MAX, out);
    case SL_FIELD_LINE: return read_source_line(s, at, out);
    case SL_FIELD_BOOL: return read_bool(s, at, out);
    case SL_FIELD_FLAG:
        return sl_json_peek(s->json) == SL_JSON_BOOL ? sl_json_bool(s->json, out) : mismatch(s, at, "a boolean");
    case SL_FIELD_RAW:
        if (field->json_type != SL_JSON_NONE && sl_json_peek(s->json) != field->json_type)
            return mismatch(s, at, "another value");
        return sl_json_value(s->json, out);
    case SL_FIELD_OBJECT: return sl_fields_object(s, at, field->fields, out);
    case SL_FIELD_LIST:
        return read_items(s, at, field, out, (size_t *)(void *)((char *)out - field->offset + field->count));
    case SL_FIELD_CUSTOM: return field->read(s, at, out);
    }
    return false;
}

/* Quiet reading of a field: true if the value was stored. After a failure of the JSON reader the result means nothing. A value that does
 * not fit is skipped, and `*out` becomes zero: an earlier member of the object with the same key may have set it. The two most frequent
 * types are read without a copy of the reader, because sl_json_text() and sl_json_u64() skip such a value and zero `*out` themselves. */
static bool read_or_skip(struct sl_fields *s, const struct sl_field *field, void *out)
{
    static const uint8_t sizes[] = {
        [SL_FIELD_TEXT] = sizeof(struct sl_str),
        [SL_FIELD_HEX] = sizeof(struct sl_opt_u64),
        [SL_FIELD_U64] = sizeof(struct sl_opt_u64),
        [SL_FIELD_U32] = sizeof(struct sl_opt_u64),
        [SL_FIELD_LINE] = sizeof(struct sl_opt_u64),
        [SL_FIELD_BOOL] = sizeof(enum sl_opt_bool),
        [SL_FIELD_FLAG] = sizeof(bool),
        [SL_FIELD_RAW] = sizeof(struct sl_str),
        [SL_FIELD_CUSTOM] = 0,
    };
    struct sl_opt_u64 *number = out;
    if (field->type == SL_FIELD_TEXT)
        return sl_json_text(s->json, out);
    if (field->type == SL_FIELD_U64)
        return number->set = sl_json_u64(s->json, &number->value);
    struct sl_json before = *s->json;
    if (read_field(s, NULL, field, out) || s->json->failed)
        return true;
    memset(out, 0, sizes[field->type]); /* 0 bytes for objects, lists and custom fields */
    *s->json = before;
    sl_json_skip(s->json);
    return false;
}

/* True if the field has this key. Comparing one byte in the middle first is cheap and tells most keys apart. */
static inline bool is_field(const struct sl_field *field, struct sl_str key)
{
    return field->key.size == key.size && field->key.data[key.size / 2] == key.data[key.size / 2] &&
           memcmp(field->key.data, key.data, key.size) == 0;
}

/* Returns the index of the field with `key` in the table, or that of the table's end. Searches from index `from` to the end, then before
 * it: members mostly come in the order of the table. */
static inline size_t find_field(const struct sl_field *fields, struct sl_str key, size_t from)
{
    size_t i = from;
    while (fields[i].key.data && !is_field(&fields[i], key))
        i++;
    if (fields[i].key.data || !from)
        return i;
    size_t end = i;
    for (i = 0; i < from; i++)
        if (is_field(&fields[i], key))
            return i;
    return end;
}

/* Returns a mask with bit i set if field i of the table is required. Caches it: mostly an object of the same table follows. */
static inline uint64_t required_fields(struct sl_fields *s, const struct sl_field *fields)
{
    if (s->fields == fields)
        return s->required;
    s->fields = fields;
    s->required = 0;
    for (size_t i = 0; fields[i].key.data; i++)
        s->required |= (uint64_t)fields[i].required << i;
    return s->required;
}

bool sl_fields_object(struct sl_fields *s, const struct sl_json_path *at, const struct sl_field *fields, void *out)
{
    struct sl_str key;
    uint64_t seen = 0;
    size_t from = 0;
    sl_json_peek(s->json);
    size_t where = s->json->at;
    if (!sl_fields_open(s, at, SL_JSON_OBJECT, "a map")) {
        if (s->quiet)
            sl_json_skip(s->json);
        return false;
    }
    while (sl_json_next(s->json, &key)) {
        size_t i = find_field(fields, key, from);
        const struct sl_field *field = &fields[i];
        from = field->key.data ? i + 1 : from; /* the next key is mostly that of the next field */
        void *member = (char *)out + field->offset;
        /* quiet: of several members with this key the last one counts; if that does not fit, the field counts as absent */
        if (field->key.data && s->quiet) {
            bool fits = read_or_skip(s, field, member);
            seen = fits ? seen | (uint64_t)1 << i : seen & ~((uint64_t)1 << i);
            continue;
        }
        if (!field->key.data || sl_json_peek(s->json) == SL_JSON_NULL) { /* an unknown key; null counts as absent */
            sl_json_skip(s->json);
            continue;
        }
        struct sl_json_path path = {at, field->key, 0};
        if (seen >> i & 1)
            return sl_fields_fail(s, at, where, "duplicate field `" SL_STR_FMT "`", SL_STR_ARG(field->key));
        seen |= (uint64_t)1 << i;
        if (!read_field(s, &path, field, member))
            return false;
    }
    if (s->json->failed)
        return false;
    uint64_t missing = required_fields(s, fields) & ~seen;
    return !missing || sl_fields_fail(s, at, where, "missing field `" SL_STR_FMT "`",
                                      SL_STR_ARG(fields[__builtin_ctzll(missing)].key));
}

/* Reads an array element into `item`: by the table of the list's field `of`, or by its function if it has no table. */
static bool read_item(struct sl_fields *s, const struct sl_json_path *at, const struct sl_field *of, void *item)
{
    return of->fields ? sl_fields_object(s, at, of->fields, item) : of->read(s, at, item);
}

/* Reads an array element quietly: one of another type is skipped, but the members of `item` that could be read stay set. False only if the
 * JSON reader has failed. */
static bool read_item_or_skip(struct sl_fields *s, const struct sl_field *of, void *item)
{
    struct sl_json before = *s->json;
    if (!read_item(s, NULL, of, item) && !s->json->failed) {
        *s->json = before;
        sl_json_skip(s->json);
    }
    return !s->json->failed;
}

/* Reads a JSON array into a new array in the arena, whose items the list's field `of` describes. False on failure: then `*items` and
 * `*count` are not set. `at` is the path of the JSON array. */
static bool read_items(struct sl_fields *s, const struct sl_json_path *at, const struct sl_field *of, void **items,
                       size_t *count)
{
    struct sl_arena_array array = {.arena = s->json->arena, .item = of->size};
    struct sl_json_path path = {.up = at};
    struct sl_str key;
    bool good = sl_fields_open(s, at, SL_JSON_ARRAY, "a sequence");
    for (; good && sl_json_next(s->json, &key); path.index++) {
        void *item = sl_arena_array_add(&array);
        if (!item)
            good = sl_json_no_memory(s->json);
        else
            good = s->quiet ? read_item_or_skip(s, of, item) : read_item(s, &path, of, item);
    }
    if (!good || s->json->failed) {
        sl_arena_array_discard(&array);
        return false;
    }
    *count = array.count;
    *items = sl_arena_array_finish(&array);
    return *items || sl_json_no_memory(s->json);
}

bool sl_fields_array(struct sl_fields *s, const struct sl_json_path *at, size_t item_size, sl_field_read *read,
                     void **items, size_t *count)
{
    const struct sl_field of = {.read = read, .size = (uint32_t)item_size};
    return read_items(s, at, &of, items, count);
}

/* ---- quietly ---- */

bool sl_json_read_object(struct sl_json *j, const struct sl_field *fields, void *out)
{
    struct sl_fields s = {.json = j, .quiet = true};
    return sl_fields_object(&s, NULL, fields, out);
}

struct sl_str sl_json_find(struct sl_json *j, struct sl_str key)
{
    const struct sl_field fields[] = {{.key = key, .type = SL_FIELD_RAW}, SL_FIELDS_END};
    struct sl_str value = {NULL, 0};
    sl_json_read_object(j, fields, &value);
    return value;
}
