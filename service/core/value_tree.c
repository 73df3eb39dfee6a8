/* Trees of values: reads them from JSON, finds keys, and collects problems. */
#include "core/value_tree.h"

#include "base/grow.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- from JSON ---- */

/* Reads a number as VALUE_INT if it is an integer that fits int64_t or uint64_t, else as VALUE_DOUBLE; `string` is its text as written. */
static bool read_number(struct sl_arena *arena, struct sl_json *j, struct value *out)
{
    if (!sl_json_number(j, &out->string))
        return false;
    const char *text = sl_arena_strndup(arena, out->string.data, out->string.size); /* views have no NUL */
    if (!text)
        return sl_json_no_memory(j);
    out->number = strtod(text, NULL);
    out->type = sl_json_integer(out->string, &out->negative, &out->integer) ? VALUE_INT : VALUE_DOUBLE;
    out->negative = out->negative && out->type == VALUE_INT; /* sl_json_integer sets it also on failure */
    return true;
}

/* Reads the members of an object, or the items of an array (`key.data` is NULL). False if the document is malformed, or when out of memory:
 * then j->busy is set. */
static bool read_members(struct sl_arena *arena, struct sl_json *j, struct value *out)
{
    size_t item_capacity = 0, key_capacity = 0;
    struct sl_str key;
    bool good = sl_json_enter(j);
    while (good && sl_json_next(j, &key)) {
        if (!sl_grow_in_arena(arena, &out->items, &item_capacity, out->count + 1, sizeof *out->items) ||
            (key.data && !sl_grow_in_arena(arena, &out->keys, &key_capacity, out->count + 1, sizeof *out->keys)))
            return sl_json_no_memory(j);
        if (key.data)
            out->keys[out->count] = key;
        good = value_from_json(arena, j, &out->items[out->count++]);
    }
    return !j->failed;
}

/* VALUE_DOUBLE stands for any number here: read_number makes it VALUE_INT if it is an integer. Malformed JSON (SL_JSON_NONE) is treated
 * like null, so that sl_json_skip reports it. */
bool value_from_json(struct sl_arena *arena, struct sl_json *j, struct value *out)
{
    static const enum value_type types[] = {
        [SL_JSON_NONE] = VALUE_NULL,     [SL_JSON_OBJECT] = VALUE_MAP,    [SL_JSON_ARRAY] = VALUE_LIST,
        [SL_JSON_STRING] = VALUE_STRING, [SL_JSON_NUMBER] = VALUE_DOUBLE, [SL_JSON_BOOL] = VALUE_BOOL,
        [SL_JSON_NULL] = VALUE_NULL};
    *out = (struct value){.type = types[sl_json_peek(j)]};
    switch (out->type) {
    case VALUE_MAP:
    case VALUE_LIST: return read_members(arena, j, out);
    case VALUE_STRING: return sl_json_string(j, &out->string);
    case VALUE_DOUBLE: return read_number(arena, j, out);
    case VALUE_BOOL: return sl_json_bool(j, &out->boolean);
    default: sl_json_skip(j); return !j->failed;
    }
}

/* Makes room for one more problem in the list. False when out of memory. The old array is left to the arena, which frees it at its end. */
static bool value_grow(struct value_problems *problems)
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

/* Adds a problem about the value at `path`, with its text formatted. Without memory it is left out; a text of more than 1023 bytes is
 * cut. */
static void value_add(struct value_problems *problems, struct value_problem problem, const char *path,
                      const char *format, va_list args)
{
    if (!value_grow(problems))
        return;
    char text[1024];
    int length = vsnprintf(text, sizeof text, format, args);
    size_t size = length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    if (copy_text(problems->arena, path, strlen(path), &problem.path) &&
        copy_text(problems->arena, text, size, &problem.what))
        problems->items[problems->count++] = problem;
}

/* Adds an error or warning about the value `at` (NULL: about the whole document), whose dotted path in the document is `path`. */
void value_problem(struct value_problems *problems, const struct value *at, bool warning, const char *path,
                   const char *format, ...)
{
    struct value_problem problem = {.line = at ? at->line : 0, .column = at ? at->column : 0, .warning = warning};
    va_list args;
    if (!warning)
        problems->errors++; /* also counted without memory for the text */
    va_start(args, format);
    value_add(problems, problem, path, format, args);
    va_end(args);
}

void value_info(struct value_problems *problems, const struct value *at, const char *path, const char *format, ...)
{
    struct value_problem problem = {.line = at ? at->line : 0, .column = at ? at->column : 0, .info = true};
    va_list args;
    va_start(args, format);
    value_add(problems, problem, path, format, args);
    va_end(args);
}

size_t value_warnings(const struct value_problems *problems)
{
    size_t count = 0;
    for (size_t i = 0; i < problems->count; i++)
        count += problems->items[i].warning;
    return count;
}
