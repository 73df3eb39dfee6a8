/* Helpers shared by the readers of source maps. Private to this folder. */
#pragma once

#include "js/sourcemap.h"

/* Returns a reader at an offset of a map that sl_sourcemap_read() has accepted, so its text is well-formed. */
static inline struct sl_json js_read_at(const struct sl_sourcemap *map, uint32_t offset)
{
    struct sl_json json = sl_json(map->text, map->arena, true);
    json.at = offset;
    return json;
}

/* Reads the string at an offset (0: an empty one); one byte after it is readable. False when out of memory. */
static inline bool js_read_text(const struct sl_sourcemap *map, uint32_t offset, struct sl_str *text)
{
    struct sl_json json = js_read_at(map, offset);
    *text = SL_STR("");
    return !offset || sl_json_string(&json, text);
}
