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

/* Reads the JSON string at an offset of the map; offset 0 means the map has no such string and gives an empty one. One byte after the text
 * may be read, because vlq_add() stops at the first byte that is no digit. False when out of memory. */
static inline bool js_read_text(const struct sl_sourcemap *map, uint32_t offset, struct sl_str *text)
{
    struct sl_json json = js_read_at(map, offset);
    *text = SL_STR("");
    return !offset || sl_json_string(&json, text);
}
