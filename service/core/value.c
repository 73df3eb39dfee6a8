#include "core/value.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LEVELS = 128 };

struct value *value_get(const struct value *map, const char *key)
{
    if (!map || map->type != VALUE_MAP)
        return NULL;
    struct sl_str wanted = sl_str(key);
    for (size_t i = 0; i < map->count; i++)
        if (sl_str_equal(map->keys[i], wanted))
            return &map->items[i];
    return NULL;
}

static bool copy_text(struct sl_arena *arena, const char *data, size_t size, struct sl_str *out)
{
    char *copy = sl_arena_strndup(arena, data, size);
    *out = (struct sl_str){copy, size};
    return copy != NULL;
}

static bool fill(struct sl_arena *arena, struct json_object *object, struct value *out, unsigned level);

static bool fill_list(struct sl_arena *arena, struct json_object *object, struct value *out, unsigned level)
{
    out->type = VALUE_LIST;
    out->count = json_object_array_length(object);
    out->items = SL_ARENA_ARRAY(arena, struct value, out->count);
    if (!out->items)
        return false;
    for (size_t i = 0; i < out->count; i++)
        if (!fill(arena, json_object_array_get_idx(object, i), &out->items[i], level + 1))
            return false;
    return true;
}

static bool fill_map(struct sl_arena *arena, struct json_object *object, struct value *out, unsigned level)
{
    out->type = VALUE_MAP;
    size_t count = (size_t)json_object_object_length(object);
    out->items = SL_ARENA_ARRAY(arena, struct value, count);
    out->keys = SL_ARENA_ARRAY(arena, struct sl_str, count);
    if (!out->items || !out->keys)
        return false;
    for (struct lh_entry *entry = json_object_get_object(object)->head; entry && out->count < count;
         entry = entry->next) {
        const char *key = lh_entry_k(entry);
        if (!copy_text(arena, key, strlen(key), &out->keys[out->count]) ||
            !fill(arena, lh_entry_v(entry), &out->items[out->count], level + 1))
            return false;
        out->count++;
    }
    return true;
}

static void fill_int(struct json_object *object, struct value *out)
{
    out->type = VALUE_INT;
    int64_t as_signed = json_object_get_int64(object);
    out->negative = as_signed < 0;
    out->integer = as_signed < 0 ? 0 - (uint64_t)as_signed : json_object_get_uint64(object);
    out->number = json_object_get_double(object);
}

static bool fill(struct sl_arena *arena, struct json_object *object, struct value *out, unsigned level)
{
    if (level > MAX_LEVELS)
        return false;
    switch (json_object_get_type(object)) {
    case json_type_null: out->type = VALUE_NULL; return true;
    case json_type_boolean:
        out->type = VALUE_BOOL;
        out->boolean = json_object_get_boolean(object);
        return true;
    case json_type_int: fill_int(object, out); return true;
    case json_type_double:
        out->type = VALUE_DOUBLE;
        out->number = json_object_get_double(object);
        return true;
    case json_type_string:
        out->type = VALUE_STRING;
        return copy_text(arena, json_object_get_string(object), (size_t)json_object_get_string_len(object),
                         &out->string);
    case json_type_array: return fill_list(arena, object, out, level);
    case json_type_object: return fill_map(arena, object, out, level);
    }
    return false;
}

struct value *value_from_json(struct sl_arena *arena, struct json_object *object)
{
    struct value *value = SL_ARENA_NEW(arena, struct value);
    return value && fill(arena, object, value, 0) ? value : NULL;
}

static bool grow(struct value_problems *problems)
{
    if (problems->count < problems->capacity)
        return true;
    size_t capacity = problems->capacity ? problems->capacity * 2 : 16;
    struct value_problem *items = SL_ARENA_ARRAY(problems->arena, struct value_problem, capacity);
    if (!items)
        return false;
    if (problems->count)
        memcpy(items, problems->items, problems->count * sizeof *items);
    problems->items = items;
    problems->capacity = capacity;
    return true;
}

void value_problem(struct value_problems *problems, const struct value *at, bool warning, const char *path,
                   const char *format, ...)
{
    if (!warning)
        problems->errors++; /* counted even when there is no memory to keep the text */
    if (!grow(problems))
        return;
    char text[1024];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t size = length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    struct value_problem problem = {.line = at ? at->line : 0, .column = at ? at->column : 0, .warning = warning};
    if (copy_text(problems->arena, path, strlen(path), &problem.path) &&
        copy_text(problems->arena, text, size, &problem.what))
        problems->items[problems->count++] = problem;
}
