#include "api/schema.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- problems ---- */
static void add_place(struct sl_buf *out, const struct schema_place *at)
{
    if (!at)
        return;
    add_place(out, at->up);
    if (!at->key)
        sl_buf_printf(out, "[%zu]", at->index);
    else
        sl_buf_printf(out, "%s%s", out->size ? "." : "", at->key);
}

bool schema_fail(struct schema *s, const struct schema_place *at, const struct value *value, const char *format, ...)
{
    if (s->problem)
        return false;
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    struct sl_buf text = {0};
    add_place(&text, at);
    sl_buf_cstr(&text, text.size ? ": " : "");
    sl_buf_cstr(&text, what);
    if (value && value->line)
        sl_buf_printf(&text, " at line %u column %u", value->line, value->column);
    const char *problem = sl_buf_keep(&text, s->arena).data;
    s->problem = problem ? problem : "out of memory";
    return false;
}

static const char *type_name(const struct value *value)
{
    switch (value->type) {
    case VALUE_NULL: return "null";
    case VALUE_BOOL: return "boolean";
    case VALUE_DOUBLE: return "floating point number";
    case VALUE_INT: return "integer";
    case VALUE_MAP: return "map";
    case VALUE_LIST: return "sequence";
    case VALUE_STRING: return "string";
    }
    return "value";
}

bool schema_mismatch(struct schema *s, const struct schema_place *at, const struct value *value, const char *expected)
{
    return schema_fail(s, at, value, "invalid type: %s, expected %s", type_name(value), expected);
}

/* ---- values ---- */
bool schema_text(struct schema *s, const struct schema_place *at, const struct value *value, struct sl_str *out)
{
    if (value->type != VALUE_STRING)
        return schema_mismatch(s, at, value, "a string");
    *out = value->string;
    return true;
}

static bool parse_digits(struct sl_str digits, unsigned base, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < digits.size; i++) {
        char c = digits.data[i];
        unsigned digit = c >= '0' && c <= '9'                 ? (unsigned)(c - '0')
                         : (c | 32) >= 'a' && (c | 32) <= 'f' ? (unsigned)((c | 32) - 'a' + 10)
                                                              : base;
        if (digit >= base || __builtin_mul_overflow(v, (uint64_t)base, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    *out = v;
    return digits.size > 0;
}

bool schema_hex(struct schema *s, const struct schema_place *at, const struct value *value, uint64_t *out)
{
    if (value->type == VALUE_INT) {
        *out = value->negative ? 0 - value->integer : value->integer;
        return true;
    }
    if (value->type != VALUE_STRING)
        return schema_mismatch(s, at, value, "an integer or a string with a hexadecimal number");
    struct sl_str text = value->string;
    bool hex = text.size >= 2 && text.data[0] == '0' && (text.data[1] | 32) == 'x';
    struct sl_str digits = hex ? (struct sl_str){text.data + 2, text.size - 2} : text;
    if (!parse_digits(digits, hex ? 16 : 10, out))
        return schema_fail(s, at, value, "invalid number \"%.40s\", expected decimal digits or 0x and hexadecimal ones",
                           text.data);
    return true;
}

static bool read_unsigned(struct schema *s, const struct schema_place *at, const struct value *value, uint64_t max,
                          struct opt_u64 *out)
{
    const char *expected = max == UINT32_MAX ? "u32" : "u64";
    if (value->type != VALUE_INT)
        return schema_mismatch(s, at, value, expected);
    if (value->negative || value->integer > max)
        return schema_fail(s, at, value, "invalid value: integer out of range, expected %s", expected);
    *out = (struct opt_u64){true, value->integer};
    return true;
}

/* ---- objects ---- */
static bool read_field(struct schema *s, const struct schema_place *at, const struct value *value,
                       const struct field *field, void *out)
{
    switch (field->type) {
    case FIELD_TEXT: return schema_text(s, at, value, out);
    case FIELD_HEX: {
        struct opt_u64 *number = out;
        number->set = true;
        return schema_hex(s, at, value, &number->value);
    }
    case FIELD_U64: return read_unsigned(s, at, value, UINT64_MAX, out);
    case FIELD_U32: return read_unsigned(s, at, value, UINT32_MAX, out);
    case FIELD_BOOL:
        if (value->type != VALUE_BOOL)
            return schema_mismatch(s, at, value, "a boolean");
        *(enum opt_bool *)out = value->boolean ? BOOL_TRUE : BOOL_FALSE;
        return true;
    case FIELD_CUSTOM: return field->read(s, at, value, out);
    }
    return false;
}

bool schema_object(struct schema *s, const struct schema_place *at, const struct value *value,
                   const struct field *fields, void *out)
{
    if (value->type != VALUE_MAP)
        return schema_mismatch(s, at, value, "a map");
    uint64_t seen = 0;
    for (size_t k = 0; k < value->count; k++) {
        size_t i = 0;
        while (fields[i].key && !sl_str_equal(sl_str(fields[i].key), value->keys[k]))
            i++;
        if (!fields[i].key || value->items[k].type == VALUE_NULL)
            continue;
        struct schema_place place = {at, fields[i].key, 0};
        if (seen >> i & 1)
            return schema_fail(s, at, value, "duplicate field `%s`", fields[i].key);
        seen |= (uint64_t)1 << i;
        if (!read_field(s, &place, &value->items[k], &fields[i], (char *)out + fields[i].offset))
            return false;
    }
    for (size_t i = 0; fields[i].key; i++)
        if (fields[i].required && !(seen >> i & 1))
            return schema_fail(s, at, value, "missing field `%s`", fields[i].key);
    return true;
}

bool schema_array(struct schema *s, const struct schema_place *at, const struct value *value, size_t item_size,
                  bool (*read)(struct schema *s, const struct schema_place *at, const struct value *value, void *out),
                  void **items, size_t *count)
{
    if (value->type != VALUE_LIST)
        return schema_mismatch(s, at, value, "a sequence");
    char *array = sl_arena_zalloc(s->arena, value->count, item_size);
    if (!array && value->count)
        return schema_fail(s, at, value, "out of memory");
    for (size_t i = 0; i < value->count; i++) {
        struct schema_place place = {at, NULL, i};
        if (!read(s, &place, &value->items[i], array + i * item_size))
            return false;
    }
    *items = array;
    *count = value->count;
    return true;
}
