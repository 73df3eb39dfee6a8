/* Reads members and columns of a profile's tables. */
#include "profile/impl.h"

bool profile_object(struct sl_str object, struct sl_arena *arena, const struct sl_field *fields, void *out)
{
    struct sl_json j = sl_json(object, arena, false);
    if (object.data)
        sl_json_read_object(&j, fields, out);
    return !j.failed;
}

bool profile_member(struct sl_str object, struct sl_arena *arena, const char *name, struct sl_str *value)
{
    const struct sl_field fields[] = {{.key = sl_str(name), .type = SL_FIELD_RAW}, SL_FIELDS_END};
    *value = (struct sl_str){NULL, 0};
    return profile_object(object, arena, fields, value);
}

/* Reads a column of numbers; an item that is no number, or too large, becomes PROFILE_NONE. A column that is missing or no array is empty.
 * False when out of memory: the loop then ends before the array does, which sl_json_end() tells. */
bool profile_column_read(struct sl_str text, struct sl_arena *arena, struct profile_column *column)
{
    struct sl_json j = sl_json(text, arena, false);
    struct sl_arena_array array = {.arena = arena, .item = sizeof(uint32_t)};
    struct sl_str key;
    uint64_t value;
    *column = (struct profile_column){.items = NULL};
    if (!text.data || !sl_json_array(&j))
        return true;
    while (sl_json_next(&j, &key)) {
        uint32_t *item = sl_arena_array_add(&array);
        if (!item)
            break;
        *item = sl_json_u64(&j, &value) && value < PROFILE_NONE ? (uint32_t)value : PROFILE_NONE;
    }
    column->count = array.count;
    column->items = sl_arena_array_finish(&array);
    return column->items && sl_json_end(&j);
}

bool profile_addresses_read(struct sl_str text, struct sl_arena *arena, uint64_t **items, size_t *count)
{
    struct sl_json j = sl_json(text, arena, false);
    struct sl_arena_array array = {.arena = arena, .item = sizeof(uint64_t)};
    struct sl_str key;
    *items = NULL;
    *count = 0;
    if (!text.data || !sl_json_array(&j))
        return true;
    while (sl_json_next(&j, &key)) {
        uint64_t *item = sl_arena_array_add(&array);
        if (!item)
            break; /* out of memory: sl_json_end() then returns false, as the array is not read to its end */
        if (!sl_json_u64(&j, item))
            *item = UINT64_MAX;
    }
    *count = array.count;
    *items = sl_arena_array_finish(&array);
    return *items && sl_json_end(&j);
}
